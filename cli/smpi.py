"""``retrompi smpi``: files for SimGrid's SMPI to run programs at a runtime's costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from retrompi.base.errors import UsageError
from retrompi.cli.bundle import debug_option, instead_of, option, options
from retrompi.cli.options import Fictions, OfModel, Seeded, StoreOutput, complete_model, output_option, progress, ranks_option
from retrompi.cli.output import Output, note, print_csv, print_json

POINTS = ("pair", "curve", "size_B", "send_ps", "transit_ps", "recv_ps", "gap_ps", "port_ps", "both_ps", "wire_ps")


@click.group()
@debug_option
def command() -> None:
    """Export a model's costs for SimGrid's SMPI, or build the plug-in that reads them.

    \b
    Examples:
      retrompi smpi export -m wmpi -p nt-cluster -n 4 -o wmpi.export
      retrompi smpi plugin
    """


@dataclass(frozen=True)
class SmpiExportOptions(Fictions, Seeded, OfModel):
    """Options of ``retrompi smpi export_command``."""

    ranks: int = ranks_option(default=2)
    out: Path | None = output_option("a file, with --plain a folder (default: print it)", folder=True, type=click.Path(path_type=Path))
    plain: bool = option("Export for SMPI without the plug-in: platform, host file, settings, and a list of what is lost.")
    pairs: Literal["same", "remote"] | None = option("With --plain: which pairs of ranks the platform describes (default: remote).")


@command.command("export")
@instead_of("model", shell_complete=complete_model)
@options(given=SmpiExportOptions, output=StoreOutput)
def export_command(given: SmpiExportOptions, output: StoreOutput) -> None:
    """Write the curves, thresholds, collectives and settings of a model for one placement.

    Without --output the export is printed; --csv prints the points of the curves. 'retrompi run --backend smpi' does all of this
    itself; docs/smpi.md describes how to do it by hand.

    \b
    Examples:
      retrompi smpi export -m wmpi -p nt-cluster -n 4 -o wmpi.export
      retrompi smpi export -m wmpi -p nt-cluster -n 4 --plain -o wmpi-plain
    """
    from retrompi.measure.smpi.export import export
    from retrompi.measure.smpi.plain import plain as for_plain_smpi
    from retrompi.spec.question import Starts

    if given.pairs is not None and not given.plain:
        raise UsageError("--pairs applies only with --plain: the plug-in reads both kinds of pairs", code="unused-option")
    model, asked = given.model, given.question(Starts(given.ranks))
    facts = export(asked, given.ranks, output.open())
    if output.as_csv:
        print_csv(list(facts.points()), POINTS)
    if not given.plain:
        if output.as_json:
            about = {"model": model, "platform": given.platform, "mode": facts.mode, "ranks": given.ranks}
            more = {"notes": list(facts.notes), "warnings": [c.row() for c in facts.cautions]}
            print_json({**about, "rows": facts.rows, "settings": facts.settings(), "puts": facts.puts, **more})
        elif given.out is None and not output.as_csv:
            click.echo(facts.text(), nl=False)
        if given.out is not None:
            _write(given.out, facts.text())
            note(f"written: {given.out}")
        return
    told = for_plain_smpi(facts, given.pairs)
    if output.as_json:
        print_json({"platform": told.platform, "hosts": told.hosts, "settings": told.settings, "notes": told.notes})
    elif given.out is None and not output.as_csv:
        click.echo("".join(f"# lost: {line}\n" for line in told.notes) + told.command("platform.xml", "hosts", given.ranks) + " PROGRAM")
        click.echo(told.platform, nl=False)
    if given.out is not None:
        _write(given.out / "platform.xml", told.platform)
        _write(given.out / "hosts", told.hosts)
        _write(given.out / "run.sh", "#!/bin/sh\n" + "".join(f"# lost: {line}\n" for line in told.notes)
               + f'cd "$(dirname "$0")" && exec {told.command("platform.xml", "hosts", given.ranks)} "$@"\n')
        (given.out / "run.sh").chmod(0o755)
        note(f"written: {given.out / 'platform.xml'}, {given.out / 'hosts'}, {given.out / 'run.sh'}")


@command.command("plugin")
@click.option("--smpicc", metavar="COMPILER", help="smpicc of another SimGrid than the first on the PATH.")
@options(output=Output)
def plugin_command(smpicc: str | None, output: Output) -> None:
    """Print the path of the plug-in for the installed SimGrid, compiling it if necessary.

    \b
    Examples:
      retrompi smpi plugin
      retrompi smpi plugin --smpicc /opt/simgrid/bin/smpicc
    """
    from retrompi.measure.smpi.plugin import plugin

    with progress("smpi plugin") as report:
        path = plugin(smpicc, report)
    if output.as_json:
        print_json({"path": str(path)})
    elif output.as_csv:
        print_csv([{"path": str(path)}], ["path"])
    else:
        click.echo(path)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as e:
        raise UsageError(f"{path} cannot be written: {e.strerror or e}", code="unwritable-file") from e
