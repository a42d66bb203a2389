"""``retrompi explain``: the time of one message by stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes, format_time, parse_sizes
from retrompi.cli.bundle import instead_of, option, options
from retrompi.cli.options import Bounds, Fidelity, OfModel, Placed, RunOutput, complete_model, placement_words
from retrompi.cli.output import Column, note_run, print_json, say

KEYS = ("stage", "process", "seconds")


@dataclass(frozen=True)
class ExplainOptions(Bounds, Placed, Fidelity, OfModel):
    """Options of ``retrompi explain``."""

    size: str = option("Message size, e.g. 512KiB.", "--size", required=True, metavar="SIZE", aliases=("--sizes",))


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
    """
    from retrompi.sim.resolved import Resolved
    from retrompi.spec.question import Message, Question
    from retrompi.store.lookup import answer

    model = given.model
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
    if output.as_json:
        print_json({"total_s": total, "stages": [{k: row[k] for k in KEYS} for row in found.rows]})
        return
    rows: list[dict[str, Any]] = [{**row, "share": row["seconds"] / total if total else 0.0} for row in found.rows]
    if output.text:
        say(f"{model}, {placement_words(asked)} on {given.platform}, {format_bytes(sizes[0])}: {format_time(total)} one way")
        rows.append(
            {"stage": "total", "process": "", "seconds": total, "ps": _sum(rows), "share": 1.0 if total else 0.0}
        )
    columns = (
        Column("stage", "stage"),
        Column("process", "process"),
        Column("seconds", "time", lambda v: format_time(v), right=True),
        Column("ps", "picoseconds", lambda v: "" if v is None else f"{v:,}".replace(",", " "), right=True),
        Column("share", "share", lambda v: f"{100 * v:.1f} %", right=True),
    )
    output.emit(rows, columns, keys=KEYS)
    note_run(found.run_id, found.found)


def _sum(rows: list[dict[str, Any]]) -> int | None:
    values = [row.get("ps") for row in rows]
    return None if any(v is None for v in values) else sum(v for v in values if v is not None)
