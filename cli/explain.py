"""``retrompi explain``: the time of one message by stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes, format_time, parse_sizes
from retrompi.cli.bundle import instead_of, option, options
from retrompi.cli.draws import drawing, interval_column, note_draws
from retrompi.cli.options import (
    BoundsOptions,
    Fidelity,
    OfModel,
    Placed,
    RunOutput,
    Uncertain,
    complete_model,
    output_option,
    placement_words,
)
from retrompi.cli.output import Column, note_run, note_warnings, print_json, say, write_drawn

if TYPE_CHECKING:
    from retrompi.render.pages.message_page import Stages

KEYS = ("stage", "process", "seconds")


@dataclass(frozen=True)
class ExplainOptions(Uncertain, BoundsOptions, Placed, Fidelity, OfModel):
    """Options of ``retrompi explain``."""

    size: str = option("Message size, e.g. 512KiB.", "--size", required=True, metavar="SIZE", aliases=("--sizes",))
    out: Path | None = output_option("the stages, as a page, a figure or numbers", "html", "svg", "png", "csv", "json")


@click.command()
@instead_of("model", shell_complete=complete_model)
@options(given=ExplainOptions, output=RunOutput)
def command(given: ExplainOptions, output: RunOutput) -> None:
    """Show where the time of one message goes, stage by stage.

    The stages add up to the total exactly, to the picosecond. It is a message of its own, on an idle network: with other traffic, ask
    'retrompi why pingpong sizes=1MiB reps=2 --set traffic="any 2Mbps 1500B poisson"' what the time consists of.

    \b
    Examples:
      retrompi explain -m wmpi --mode shared --size 512KiB
      retrompi explain -m mpibip -p myrinet-piii --mode distributed --size 1KiB --csv
      retrompi explain -m wmpi --mode shared --size 1KiB --uncertainty 90% -o stages.html
    """
    from retrompi.api.asking import Where
    from retrompi.api.runs import anatomy_of
    from retrompi.sim.cautions import mark
    from retrompi.sim.resolved import Resolved
    from retrompi.spec.question import Message

    spec = given.spec()
    sizes = parse_sizes(given.size)
    if len(sizes) != 1:
        raise UsageError(f"--size {given.size}: give one size", code="bad-size")
    asked = Resolved.of(given.question(Message(sizes[0])))
    anatomy = anatomy_of(asked, Where(output.open(), output.fresh))
    if spec is not None:
        with drawing() as report:
            anatomy = anatomy.uncertainty(spec.level, spec.draws, report)
    total, warnings = anatomy.total, anatomy.warnings
    warned = note_warnings(warnings)
    rows, whole = [{**row} for row in anatomy.rows], {**anatomy.whole}
    keys, more = list(KEYS), {}
    columns = [
        Column("stage", "stage"),
        Column("process", "process"),
        Column("seconds", "time", lambda v: format_time(v), right=True),
        Column("ps", "picoseconds", lambda v: "" if v is None else f"{v:,}".replace(",", " "), right=True),
        Column("share", "share", lambda v: f"{100 * v:.1f} %", right=True),
    ]
    if spec is not None:
        for row in (*rows, whole):
            row["seconds_interval"] = (row["seconds_low"], row["seconds_high"])
        more = {"total_s_low": whole["seconds_low"], "total_s_high": whole["seconds_high"], "completed": anatomy.ensemble.completed}
        keys += ["seconds_low", "seconds_high"]
        columns[3] = interval_column("seconds", spec.level, "s")  # no draw has the sum to the picosecond
    if output.as_json:
        stages = [{k: row[k] for k in keys} for row in rows]
        print_json({"total_s": total, **more, "run_id": anatomy.run_id, "stages": stages, "warnings": warned})
    else:
        if output.text:
            say(f"{given.model}, {placement_words(asked)} on {given.platform}, {format_bytes(sizes[0])}: {format_time(total)} one way "
                f"(run {anatomy.run_id}){mark(warnings)}")
            rows.append(whole)
        output.emit(rows, columns, keys=keys)
    if spec is not None:
        note_draws([anatomy.ensemble])
    if given.out is not None:
        _write(given.out, anatomy.stages, {"total_s": total, **more}, [{k: r.get(k) for k in keys} for r in rows if r is not whole])
    if not output.as_json:
        note_run(anatomy.run_id, anatomy.found.found)


def _write(out: Path, drawn: Stages, whole: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """The anatomy as a page, a figure or a table."""
    from retrompi.render.pages import message_page

    made = [out]
    if out.suffix.lower() == ".html":
        message_page.write(out, drawn)
    else:
        made = write_drawn(out, lambda: message_page.figures(drawn), rows, {**whole, "stages": rows})
    click.echo(f"written: {', '.join(map(str, made))}", err=True)
