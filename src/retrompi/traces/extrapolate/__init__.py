"""Traces for more ranks than were recorded, from recordings of one program on several numbers of ranks.

The calls of the largest recording are expressed in its process grid: a peer as a neighbour, a transposed place or a fixed rank, a run of
exchanges as a butterfly or as a round over all other ranks, exchanges over the levels of a multigrid by the points of each level. What this
gives on the smaller grids must be what was recorded there. Message sizes, tags and computation follow laws over the recorded sizes. What is
not recognised is refused with the first place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from retrompi._engine import Trace
from retrompi.base.errors import UsageError

from .calls import RecordedCalls, read_calls
from .grid import Grid, GridLaw, rival
from .levels import recognise_levels
from .levels_make import Amounts, make_levels, told_levels
from .make import ExtrapolatedTrace, make
from .recognise import NotRecognised, Pattern, recognise
from .report import Report, TraceComparison, compare, report_on

__all__ = ["Extrapolated", "Report", "TraceComparison", "compare", "extrapolate"]


@dataclass(frozen=True)
class Extrapolated:
    """The trace, and what was recognised."""

    trace: Trace
    report: Report


def extrapolate(recorded: Sequence[Trace], ranks: int, *, progress: Callable[[int, int, str], None] | None = None) -> Extrapolated:
    """The trace of a program on ``ranks`` ranks, from recordings on two or more numbers of ranks.

    With three recordings or more the largest is also extrapolated from the others and compared (``report.held_out``). Raises TraceError
    for a pattern that is not recognised, with the file and line of its first place, and UsageError for a wrong number of recordings.
    """
    by_size = sorted(recorded, key=lambda t: t.ranks)
    sizes = [t.ranks for t in by_size]
    if len(set(sizes)) < 2 or len(set(sizes)) < len(sizes):
        told_sizes = ", ".join(map(str, sizes))
        raise UsageError(f"give recordings of different numbers of ranks, two or more, not {told_sizes}", code="wrong-ranks")
    if ranks <= sizes[-1]:
        raise UsageError(f"{ranks} ranks are not more than the {sizes[-1]} that were recorded", code="out-of-range")
    jobs = len(sizes) + 2
    tell = progress or (lambda done, total, what: None)
    read: list[RecordedCalls] = []
    for i, trace in enumerate(by_size):
        read.append(read_calls(trace))
        tell(i + 1, jobs, f"{trace.ranks} ranks read")
    try:
        made, report = _extrapolate(read, ranks)
    except NotRecognised as e:
        raise e.error() from None
    tell(jobs - 1, jobs, "made")
    if made.untested:
        report.notes.append(f"{made.untested / made.numbers:.0%} of the numbers follow laws that no further recorded size has tested")
    if len(read) < 3:
        report.why_not = "needs a third recording"
    else:
        try:
            held, _ = _extrapolate(read[:-1], sizes[-1])
            report.held_out = compare(held.trace, by_size[-1])
        except NotRecognised as e:
            report.why_not = f"the smaller recordings are not enough: {e}"
    tell(jobs, jobs, "checked")
    return Extrapolated(made.trace, report)


def _extrapolate(read: Sequence[RecordedCalls], ranks: int) -> tuple[ExtrapolatedTrace, Report]:
    """The trace and what was recognised: ranks that do the same at the same place of the grid, or else the levels of a multigrid."""
    try:
        pattern = recognise(read)
    except NotRecognised as e:
        try:
            found = recognise_levels(read)
        except NotRecognised as other:
            raise (other if other.stage else e) from None
        _one_grid(found.law, read, ranks)
        amounts = Amounts(found, read)
        made = make_levels(found, amounts, ranks)
        return made, told_levels(found, amounts, ranks, str(made.grid))
    _one_grid(pattern.law, read, ranks)
    _no_blind_axis(pattern, ranks)
    made = make(pattern, ranks)
    return made, report_on(pattern, ranks, str(made.grid))


def _one_grid(law: GridLaw, read: Sequence[RecordedCalls], ranks: int) -> None:
    """Raises Refused where the recorded grids do not show the order of the axes and the wanted one depends on it."""
    other = rival(law, [r.ranks for r in read], ranks)
    mine = law.of(ranks)
    if other is not None and mine is not None:
        raise NotRecognised(f"{ranks} ranks could be a grid of {Grid(mine)} or of {Grid(other)}: the recorded grids are as long along both "
                            "axes; record a size at which they are not")


def _no_blind_axis(pattern: Pattern, ranks: int) -> None:
    """Raises Refused where the wanted grid is longer along an axis whose length is the same in all recordings: no number shows whether it
    depends on that length."""
    wanted = pattern.law.of(ranks) or ()
    for axis, length in enumerate(wanted):
        recorded = {grid.dims[axis] for grid in pattern.grids.values()}
        if len(recorded) == 1 and length not in recorded:
            raise NotRecognised(f"{ranks} ranks are {length} long along axis {axis + 1} and all recorded grids {recorded.pop()}: what "
                                "depends on that length is not known; record a size with another")
