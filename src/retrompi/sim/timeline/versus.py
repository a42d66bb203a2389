"""Two runs of one program side by side: the points that both pass, and what each takes from one to the next."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from retrompi.base.units import PS
from retrompi.sim.timeline import Timeline

__all__ = ["SectionTimes", "points", "sections"]

_CALLS = 12
"""Points taken from the calls of rank 0 when a trace has no marks."""


@dataclass(frozen=True)
class SectionTimes:
    """From one point to the next: the time in seconds in either run."""

    name: str
    one_s: float
    other_s: float

    @property
    def more_s(self) -> float:
        """The additional time of the other run, in seconds."""
        return self.other_s - self.one_s

    @property
    def ratio(self) -> float | None:
        """The other's time by the first one's; None if that is 0."""
        return self.other_s / self.one_s if self.one_s else None


def points(one: Timeline, other: Timeline) -> list[tuple[str, int, int]]:
    """(name, time in either run, in ps from the beginning), in order: the start, what rank 0 passes in both, the end.

    These are the marks of the trace, as often as both runs passed them; without a mark a dozen of rank 0's calls, evenly spaced among
    the lines that both timelines have.
    """
    found = _marks(one, other) or _calls(one, other)
    inner = [p for p in found if 0 <= p[1] <= one.end and 0 <= p[2] <= other.end]
    return [("the start", 0, 0), *inner, ("the end", one.end, other.end)]


def _marks(one: Timeline, other: Timeline) -> list[tuple[str, int, int]]:
    passed: list[dict[tuple[str, int], int]] = []
    for t in (one, other):
        times: dict[tuple[str, int], int] = {}
        seen: Counter[str] = Counter()
        for label, at in t.marks:
            seen[label] += 1
            times[label, seen[label]] = at
        passed.append(times)
    again = Counter(label for label, _ in passed[0])
    both = [key for key in passed[0] if key in passed[1]]
    return [(f"mark {label}" + (f" ({k})" if again[label] > 1 else ""), passed[0][label, k], passed[1][label, k]) for label, k in both]


def _calls(one: Timeline, other: Timeline) -> list[tuple[str, int, int]]:
    begun = []
    for t in (one, other):
        first: dict[int, int] = {}
        for i, rank in enumerate(t.calls.rank):
            if rank == 0:
                first.setdefault(t.calls.line[i], i)
        begun.append(first)
    lines = [line for line in sorted(begun[0]) if line in begun[1]][1:]  # the first call is the start
    step = max(1, -(-len(lines) // _CALLS))
    return [
        (f"line {line}, {one.ops[one.calls.op[begun[0][line]]]}", one.calls.begin[begun[0][line]], other.calls.begin[begun[1][line]])
        for line in lines[::step]
    ]


def sections(found: Sequence[tuple[str, int, int]]) -> list[SectionTimes]:
    """The times between `points`; they add up to the runs' times exactly in picoseconds."""
    return [SectionTimes(f"{a} to {b}", (b1 - a1) * PS, (b2 - a2) * PS) for (a, a1, a2), (b, b1, b2) in itertools.pairwise(found)]
