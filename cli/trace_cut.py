"""``retrompi trace cut``: a section of a trace as a trace of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes
from retrompi.cli.bundle import option, options
from retrompi.cli.options import UndefinedSource, new_path, progress
from retrompi.cli.output import Column, Output

__all__ = ["command"]

PIECE = (
    Column("trace", "written"),
    Column("ranks", "ranks", right=True),
    Column("actions", "actions", right=True),
    Column("lines", "lines of rank 0"),
    Column("messages", "messages", right=True),
    Column("crossing", "left out", right=True),
    Column("crossing_B", "their bytes", lambda v: format_bytes(int(v)), right=True),
    Column("moved", "receives moved", right=True),
    Column("waited", "waited for", right=True),
)


@dataclass(frozen=True)
class TraceCutOptions(UndefinedSource):
    """Options of ``retrompi trace_cut``."""

    first: str | None = option(
        "Start of the section: a line of rank 0's file or one of its marks (default: the beginning).", "--begin", metavar="LINE|MARK")
    last: str | None = option("End of the section, inclusive (default: the end).", "--end", metavar="LINE|MARK")
    iterations: str | None = option("Cut out these iterations of rank 0's main loop, counted from 1.", metavar="FIRST-LAST")
    ranks: str | None = option(
        "Keep only these ranks, e.g. 0-3,8; they must not communicate with the others.", metavar="RANKS")
    crossing: Literal["drop", "refuse"] = option(
        "Messages with only one end in the section: drop both ends and count them, or refuse.", default="drop")


@click.command("cut")
@click.argument("trace", metavar="IN")
@click.argument("out", type=click.Path(path_type=Path))
@options(given=TraceCutOptions, output=Output)
def command(trace: str, out: Path, given: TraceCutOptions, output: Output) -> None:
    """Cut a section out of trace IN and write it to OUT as a trace of its own.

    OUT is a folder, or one file if it ends in .ti, .gz or .zst. The other ranks are cut at the same collectives and messages.
    Communicators, windows and persistent requests created earlier are created at the start; receives posted earlier move to the
    start; requests still pending at the end are completed there.

    \b
    Examples:
      retrompi trace cut my-trace piece --iterations 10-20
      retrompi trace cut my-trace piece --begin 34 --end 578
      retrompi trace cut my-trace two.ti.zst --ranks 0,1
    """
    from retrompi import traces
    from retrompi.traces import cut, subset

    new_path(out)
    if given.iterations is not None and (given.first is not None or given.last is not None):
        raise UsageError("--iterations and --begin/--end are mutually exclusive", code="conflicting-options")
    if given.iterations is None and given.first is None and given.last is None and given.ranks is None:
        raise UsageError("give --begin, --end, --iterations or --ranks", code="missing-option")
    read = traces.read(trace, undefined_source=given.undefined_source)
    if given.ranks is not None:
        read = subset.keep_ranks(read, _ranks(given.ranks))
    row: dict[str, Any] = {"trace": str(out), "lines": "all", "messages": None, "crossing": 0, "crossing_B": 0, "moved": 0, "waited": 0}
    if given.iterations is not None or given.first is not None or given.last is not None:
        with progress("matching") as report:
            piece = cut.cut(
                read, given.first, given.last, turns=_turns(given.iterations), refuse_crossing=given.crossing == "refuse",
                progress=lambda done, total: report(done, total, "ranks"),
            )
        here = piece.ranges[0]
        row |= {
            "lines": "none" if here is None else f"{here[0]}-{here[1]}", "messages": piece.messages, "crossing": piece.crossing,
            "crossing_B": piece.crossing_bytes, "moved": piece.moved, "waited": piece.waited,
            "ranges": piece.ranges, "places": piece.places, "guessed": piece.guessed,
        }
        read = piece.trace
        if piece.crossing:
            size = format_bytes(piece.crossing_bytes)
            what = f"{piece.crossing} messages ({size}) cross the cut and are dropped at both ends, the first is {piece.places[0]}"
            click.echo(f"warning: {what}", err=True)
        if piece.guessed:
            click.echo(f"warning: {piece.guessed} receives from any source have no recorded match: matched by their order", err=True)
    traces.write(read, out, shared=out.suffix in (".ti", ".gz", ".zst"))
    row |= {"ranks": read.ranks, "actions": read.actions}
    output.emit([row], PIECE, keys=[*(c.key for c in PIECE), "ranges", "places", "guessed"] if output.as_json else None)


def _ranks(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,7})(?:-(\d{1,7}))?", part.strip())
        if match is None:
            raise UsageError(f"--ranks {text}: expected ranks as in 0-3,8", code="bad-syntax")
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return found


def _turns(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", text)
    if match is None:
        raise UsageError(f"--iterations {text}: expected FIRST-LAST, as in 10-20", code="bad-syntax")
    return int(match[1]), int(match[2] or match[1])
