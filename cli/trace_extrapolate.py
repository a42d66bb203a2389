"""``retrompi trace extrapolate``: a trace for more ranks than were recorded."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes
from retrompi.cli.bundle import options
from retrompi.cli.options import UndefinedSource, new_path, progress, ranks_option
from retrompi.cli.output import Column, Output, print_json, print_table, say

__all__ = ["command"]

CALLS = (
    Column("action", "call"),
    Column("peers", "with"),
    Column("calls", "calls", right=True),
    Column("law", "numbers"),
    Column("tested", "tested by", lambda v: "" if v is None else f"{v} sizes" if v != 1 else "1 size", right=True),
)
COMPUTATION = (
    Column("law", "computation"),
    Column("share", "share", lambda v: f"{v:.1%}", right=True),
    Column("error", "mean error", lambda v: f"{v:.1%}", right=True),
)
MOST_ROWS = 40


@dataclass(frozen=True)
class TraceExtrapolateOptions(UndefinedSource):
    """Options of ``retrompi trace extrapolate``."""

    ranks: int | None = ranks_option(" (more than were recorded)")


@click.command("extrapolate")
@click.argument("traces_in", metavar="A B ... OUT", nargs=-1, required=True)
@options(given=TraceExtrapolateOptions, output=Output)
def command(traces_in: tuple[str, ...], given: TraceExtrapolateOptions, output: Output) -> None:
    """Make a trace OUT for more ranks from recordings A, B, ... of a program on several numbers of ranks.

    OUT is a folder, or one file if it ends in .ti, .gz or .zst. Prints what was recognised: the process grid, the peers of each
    call, and how tags, sizes and computation follow from the number of ranks. With three recordings or more, the largest is also
    extrapolated from the smaller ones and compared. A pattern that is not recognised is refused with its first place.

    \b
    Examples:
      retrompi trace extrapolate lu-4.tar.zst lu-8.tar.zst lu-16.tar.zst lu-64.ti.zst -n 64
      retrompi trace extrapolate run-16 run-64 run-256 run-1024.ti.zst -n 1024 --json
    """
    from retrompi import traces
    from retrompi.traces.extrapolate import extrapolate

    *names, last = traces_in
    if given.ranks is None:
        raise UsageError("give the number of ranks of the trace to make: -n", code="missing-option")
    if len(names) < 2:
        raise UsageError("give at least two recordings and the name of the result", code="out-of-range")
    out = new_path(Path(last))
    read = [traces.read(name, undefined_source=given.undefined_source) for name in names]
    with progress("extrapolating") as report:
        made = extrapolate(read, given.ranks, progress=report)
    traces.write(made.trace, out, shared=out.suffix in (".ti", ".gz", ".zst"))
    about = made.report
    if output.as_json:
        print_json({"trace": str(out), "ranks": made.trace.ranks, "actions": made.trace.actions, **asdict(about)})
        return
    if output.as_csv:
        output.emit(about.calls, CALLS)
        return
    say(f"{out}: {made.trace.ranks} ranks, {made.trace.actions} actions")
    say(f"process grid: {about.grid}: " + ", ".join(f"{p} ranks {grid}" for p, grid in about.grids.items()))
    say(f"{about.places} kind{'s' if about.places != 1 else ''} of places with programs of their own\n")
    print_table(about.calls[:MOST_ROWS], CALLS)
    if len(about.calls) > MOST_ROWS:
        say(f"… and {len(about.calls) - MOST_ROWS} more rows (--csv has all)")
    say("")
    print_table(about.computation, COMPUTATION, empty="no computation")
    say("\n" + _check_line(about))
    for note in about.notes:
        say(f"note: {note}")


def _check_line(about: Any) -> str:
    held = about.held_out
    if held is None:
        return f"check on the largest recording: {about.why_not}"
    same = "the same messages between every pair of ranks" if held.equal else (
        f"{held.messages[0]} messages of {format_bytes(held.bytes[0])} instead of {held.messages[1]} of {format_bytes(held.bytes[1])}"
    )
    return f"check: {held.ranks} ranks from the smaller recordings: {same}; computation {held.compute_error:+.1%}"
