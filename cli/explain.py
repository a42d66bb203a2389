"""``retrompi explain``: the anatomy of one message."""

from __future__ import annotations

from typing import Any

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes, format_time, parse_sizes
from retrompi.cli.options import (
    complete_model,
    csv_option,
    debug_option,
    fidelity_option,
    fresh_option,
    json_option,
    mode_option,
    open_for,
    platform_option,
    set_option,
    store_option,
)
from retrompi.cli.output import Column, emit, note, print_json

KEYS = ("stage", "process", "seconds")


@click.command()
@click.argument("model", shell_complete=complete_model)
@platform_option
@mode_option("shared")
@click.option("--size", required=True, metavar="SIZE", help="Message size with its unit, e.g. 512KiB.")
@set_option
@fidelity_option
@fresh_option
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def command(
    ctx: click.Context,
    model: str,
    platform: str,
    mode: str,
    size: str,
    sets: tuple[str, ...],
    fidelity: str,
    fresh: bool,
    as_json: bool,
    as_csv: bool,
    store: str | None,
) -> None:
    """Show where the time of one message goes, stage by stage.

    MODEL is a name or a folder. The stages sum to the total exactly, to the picosecond.
    """
    from retrompi.sim.resolved import Resolved
    from retrompi.spec.question import Message, Question
    from retrompi.store.lookup import answer

    sizes = parse_sizes(size)
    if len(sizes) != 1:
        raise UsageError(f"--size {size}: give one size")
    asked = Resolved.of(Question(model, platform, Message(sizes[0]), mode, sets, fidelity=fidelity))
    store_ = open_for(ctx, store)
    found = answer(store_, asked, fresh=fresh)
    total = store_.run(found.run_id)["time_s"]
    if as_json and not as_csv:
        print_json({"total_s": total, "stages": [{k: row[k] for k in KEYS} for row in found.rows]})
        return
    rows: list[dict[str, Any]] = [{**row, "share": row["seconds"] / total if total else 0.0} for row in found.rows]
    if not as_csv and not as_json:
        click.echo(f"{model}, {mode} on {platform}, {format_bytes(sizes[0])}: {format_time(total)} one way")
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
    emit(rows, columns, as_json=as_json, as_csv=as_csv, keys=KEYS)
    note(f"run {found.run_id}" + (" (found in the store; --fresh simulates again)" if found.found else ""))


def _sum(rows: list[dict[str, Any]]) -> int | None:
    values = [row.get("ps") for row in rows]
    return None if any(v is None for v in values) else sum(v for v in values if v is not None)
