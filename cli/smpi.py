"""``retrompi smpi``: what SimGrid's SMPI needs to run programs at a runtime's costs."""

from __future__ import annotations

from pathlib import Path

import click

from retrompi.base.errors import UsageError
from retrompi.cli.options import (
    complete_model,
    csv_option,
    debug_option,
    json_option,
    mode_option,
    open_for,
    platform_option,
    progress,
    seed_option,
    set_option,
    store_option,
)
from retrompi.cli.output import note, one_format, print_csv, print_json

POINTS = ("pair", "curve", "size_B", "send_ps", "transit_ps", "recv_ps", "gap_ps", "port_ps", "both_ps", "wire_ps")


@click.group()
@debug_option
def command() -> None:
    """Export a model's costs for SimGrid's SMPI, or build the plug-in that reads them."""


@command.command("export")
@click.argument("model", shell_complete=complete_model)
@platform_option
@mode_option("distributed")
@click.option("-n", "--np", "ranks", type=click.IntRange(1), default=2, show_default=True, help="Number of ranks.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write it to this file (with --plain: to this folder).")
@click.option("--plain", is_flag=True, help="For SMPI without the plug-in: a platform, hosts, settings, and what is lost by that.")
@click.option("--pairs", type=click.Choice(["same", "remote"]), help="With --plain: which pairs of ranks count (default: remote).")
@set_option
@seed_option
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def export_command(
    ctx: click.Context,
    model: str,
    platform: str,
    mode: str,
    ranks: int,
    out: Path | None,
    plain: bool,
    pairs: str | None,
    sets: tuple[str, ...],
    seed: int,
    as_json: bool,
    as_csv: bool,
    store: str | None,
) -> None:
    """Write the curves, thresholds, collectives and settings of MODEL for a placement to a file.

    Without --out it is printed; --csv prints the points of the curves. 'retrompi run --backend smpi' does all of this by itself;
    docs/smpi.md says how to do it by hand.
    """
    from retrompi.measure.smpi.export import export
    from retrompi.measure.smpi.plain import plain as for_plain_smpi
    from retrompi.spec.question import Question, Starts

    one_format(as_json, as_csv)
    if pairs is not None and not plain:
        raise UsageError("--pairs is for --plain: the plug-in reads both kinds of pairs")
    asked = Question(model, platform, Starts(ranks), mode, sets, seed)
    facts = export(asked, ranks, open_for(ctx, store))
    if as_csv:
        print_csv(list(facts.points()), POINTS)
    if not plain:
        if as_json:
            about = {"model": model, "platform": platform, "mode": facts.mode, "ranks": ranks}
            notes = [*facts.cautions, *facts.notes]
            print_json({**about, "rows": facts.rows, "settings": facts.settings(), "puts": facts.puts, "notes": notes})
        elif out is None and not as_csv:
            click.echo(facts.text(), nl=False)
        if out is not None:
            _write(out, facts.text())
            note(f"written: {out}")
        return
    told = for_plain_smpi(facts, pairs)
    if as_json:
        print_json({"platform": told.platform, "hosts": told.hosts, "settings": told.settings, "notes": told.notes})
    elif out is None and not as_csv:
        click.echo("".join(f"# lost: {line}\n" for line in told.notes) + told.command("platform.xml", "hosts", ranks) + " PROGRAM")
        click.echo(told.platform, nl=False)
    if out is not None:
        _write(out / "platform.xml", told.platform)
        _write(out / "hosts", told.hosts)
        _write(out / "run.sh", "#!/bin/sh\n" + "".join(f"# lost: {line}\n" for line in told.notes)
               + f'cd "$(dirname "$0")" && exec {told.command("platform.xml", "hosts", ranks)} "$@"\n')  # fmt: skip
        (out / "run.sh").chmod(0o755)
        note(f"written: {out / 'platform.xml'}, {out / 'hosts'}, {out / 'run.sh'}")


@command.command("plugin")
@click.option("--mpicc", metavar="SMPICC", help="The compiler of another SimGrid than the first one on the PATH.")
@json_option
@csv_option
@debug_option
def plugin_command(mpicc: str | None, as_json: bool, as_csv: bool) -> None:
    """Print the path of the plug-in for the SimGrid in use, and compile it if need be."""
    from retrompi.measure.smpi.plugin import plugin

    with progress("smpi plugin") as report:
        path = plugin(mpicc, report)
    if as_json:
        print_json({"path": str(path)})
    elif as_csv:
        print_csv([{"path": str(path)}], ["path"])
    else:
        click.echo(path)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as e:
        raise UsageError(f"{path} cannot be written: {e.strerror or e}") from e
