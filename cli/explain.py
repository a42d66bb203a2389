"""``retrompi explain``: the time of one message by stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes, format_time, parse_sizes
from retrompi.cli.bundle import instead_of, option, options
from retrompi.cli.draws import draw, interval_column, note_draws
from retrompi.cli.options import Bounds, Fidelity, OfModel, Placed, RunOutput, Uncertain, complete_model, output_option, placement_words
from retrompi.cli.output import Column, note_run, print_json, say, write_drawn

if TYPE_CHECKING:
    from retrompi.studies.uncertainty import Ensemble

KEYS = ("stage", "process", "seconds")


@dataclass(frozen=True)
class ExplainOptions(Uncertain, Bounds, Placed, Fidelity, OfModel):
    """Options of ``retrompi explain``."""

    size: str = option("Message size, e.g. 512KiB.", "--size", required=True, metavar="SIZE", aliases=("--sizes",))
    out: Path | None = output_option("the stages, as a page, a figure or numbers", "html", "svg", "png", "csv", "json")


@click.command()
@instead_of("model", shell_complete=complete_model)
@options(given=ExplainOptions, output=RunOutput)
def command(given: ExplainOptions, output: RunOutput) -> None:
    """Show where the time of one message goes, stage by stage.

    The stages add up to the total exactly, to the picosecond.

    \b
    Examples:
      retrompi explain -m wmpi --mode shared --size 512KiB
      retrompi explain -m mpibip -p myrinet-piii --mode distributed --size 1KiB --csv
      retrompi explain -m wmpi --mode shared --size 1KiB --uncertainty 90% -o stages.html
    """
    from retrompi.sim.resolved import Resolved
    from retrompi.spec.question import Message, Question
    from retrompi.store.lookup import answer

    model, spec = given.model, given.spec()
    sizes = parse_sizes(given.size)
    if len(sizes) != 1:
        raise UsageError(f"--size {given.size}: give one size", code="bad-size")
    asked = Resolved.of(Question(
        model, given.platform, Message(sizes[0]), given.mode, given.sets, fidelity=given.fidelity, limit_s=given.limit_s,
        bounds=given.bounds(),
    ))  # fmt: skip
    store_ = output.open()
    found = answer(store_, asked, fresh=output.fresh)
    total = store_.run(found.run_id)["time_s"]
    rows: list[dict[str, Any]] = [{**row, "share": row["seconds"] / total if total else 0.0} for row in found.rows]
    whole: dict[str, Any] = {"stage": "total", "process": "", "seconds": total, "ps": _sum(rows), "share": 1.0 if total else 0.0}
    keys, more = list(KEYS), {}
    columns = [
        Column("stage", "stage"),
        Column("process", "process"),
        Column("seconds", "time", lambda v: format_time(v), right=True),
        Column("ps", "picoseconds", lambda v: "" if v is None else f"{v:,}".replace(",", " "), right=True),
        Column("share", "share", lambda v: f"{100 * v:.1f} %", right=True),
    ]
    if spec is not None:
        ensembles = draw(store_, [asked], spec, output.fresh)
        rows, whole = _with_intervals(rows, whole, ensembles[0])
        more = {"total_s_low": whole["seconds_low"], "total_s_high": whole["seconds_high"], "completed": ensembles[0].completed}
        keys += ["seconds_low", "seconds_high"]
        columns[3] = interval_column("seconds", spec.level, "s")  # no draw has the sum to the picosecond
    if output.as_json:
        print_json({"total_s": total, **more, "stages": [{k: row[k] for k in keys} for row in rows]})
    else:
        if output.text:
            say(f"{model}, {placement_words(asked)} on {given.platform}, {format_bytes(sizes[0])}: {format_time(total)} one way")
            rows.append(whole)
        output.emit(rows, columns, keys=keys)
    if spec is not None:
        note_draws(ensembles)
    if given.out is not None:
        from retrompi.render import message_page

        title = f"{format_bytes(sizes[0])} with {model} on {given.platform}, {asked.mode}"
        stages = [r for r in rows if r is not whole]
        drawn = message_page.Stages(title, tuple(stages), whole, found.run_id)
        if spec is not None:
            drawn = replace(drawn, level=spec.level, draws=spec.draws, completed=ensembles[0].completed)
        made = [given.out]
        if given.out.suffix.lower() == ".html":
            message_page.write(given.out, drawn)
        else:
            told = [{k: r.get(k) for k in keys} for r in stages]
            made = write_drawn(given.out, lambda: message_page.figures(drawn), told, {"total_s": total, **more, "stages": told})
        click.echo(f"written: {', '.join(map(str, made))}", err=True)
    if not output.as_json:
        note_run(found.run_id, found.found)


def _with_intervals(
    rows: Sequence[Mapping[str, Any]], whole: Mapping[str, Any], drawn: Ensemble
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The stages and their total with ``seconds_low`` and ``seconds_high``; stages that only draws have are added, with 0 s."""
    from retrompi.studies import metrics
    from retrompi.studies.uncertainty import ends, interval

    level, found = drawn.spec.level, drawn.stage_seconds()
    nominal = {(row["stage"], row["process"]): dict(row) for row in rows}
    told = []
    for name in dict.fromkeys([*nominal, *found]):
        row = nominal.get(name) or {"stage": name[0], "process": name[1], "seconds": 0.0, "ps": 0, "share": 0.0}
        both = ends("seconds", interval(found.get(name, ()), level))
        if name in nominal or both["seconds_high"]:
            told.append({**row, **both, "seconds_interval": tuple(both.values())})
    both = ends("seconds", interval(drawn.values(metrics.parse("time")), level))
    return told, {**whole, **both, "seconds_interval": tuple(both.values())}


def _sum(rows: list[dict[str, Any]]) -> int | None:
    values = [row.get("ps") for row in rows]
    return None if any(v is None for v in values) else sum(v for v in values if v is not None)
