"""The critical path of a run: the chain of delays that its time consists of, and the difference of two.

    path = simulate.run(question, Observe(critical_path=True)).critical_path
    sum(p.took for p in path) == path.took        # exactly: the pieces tile the run from 0 to its end
    path.by("stage")["wire"]                      # picoseconds on the path

Every piece was started by the end of the one before: the last that came of all that it waited for. Times are whole picoseconds.

    path.slacks()                                 # what happens beside the path, and how much later it could be
    path.slope({("link", 0, "latency"): 1e-6})    # seconds that the run takes longer if the latency is a microsecond more
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from retrompi.base.units import PS

if TYPE_CHECKING:
    from retrompi._engine import PathGraph

__all__ = ["Changes", "CriticalPath", "Number", "PathPiece", "Slack", "StageDifference", "StageShare", "difference"]

Number = tuple[str, int, str, int]
"""A declared number of the compiled run: owner, index of the kind of host, of the hop or of the curve, field; of a curve, the size."""
Changes = Mapping[Number, float]
"""Changes of declared numbers, in base units."""


@dataclass(frozen=True, slots=True)
class PathPiece:
    """An interval of the path, ps: ``stage`` of ``who`` (a process; a host, for its kernel and card; the wire)."""

    begin: int
    end: int
    stage: str
    who: str

    @property
    def took(self) -> int:
        """Picoseconds."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class StageShare:
    """The contribution of one stage of one process to the path: ``ps`` in ``pieces`` intervals."""

    stage: str
    who: str
    ps: int
    pieces: int


@dataclass(frozen=True, slots=True)
class Slack:
    """A stage of somebody: ``on_path`` ps are on the path; ``beside`` ps in ``parts`` intervals are not. The first of those that would make
    the run longer if they ended later may be ``least`` ps later (None: nothing of the run waits for any of them)."""

    stage: str
    who: str
    on_path: int
    beside: int
    parts: int
    least: int | None


@dataclass(frozen=True, slots=True)
class PathPart:
    """An interval of the run, on the path or beside it: ``slack`` ps later it would still not make the run longer (None: nothing waits)."""

    begin: int
    end: int
    stage: str
    who: str
    slack: int | None


class CriticalPath(Sequence[PathPiece]):
    """The pieces of a run's path in order of time, as columns: a piece is made when it is looked at."""

    def __init__(self, got: Mapping[str, Any]) -> None:
        """``got``: as the engine returns it, with ``kind_of``: host -> its kind."""
        self._end = array("q", got["end_ps"])
        self._stage = array("B", got["stage"])
        self._who = array("I", got["who"])
        self._names: list[str] = got["names"]
        self._stages: list[str] = got["stages"]
        self._columns = got["graph"]
        kind_of = got["kind_of"]
        self.numbers: list[Number] = [
            (owner, kind_of[index] if owner == "host" else index, field, size) for owner, index, field, size in got["graph"]["numbers"]
        ]
        """The declared numbers that its delays have."""
        self.unfollowed: dict[str, int] = dict(got["graph"]["unfollowed"])
        """What acted on the run's time without a known derivative, and how often."""

    @property
    def took(self) -> int:
        """The length of the path: the run's time, ps."""
        return self._end[-1] if self._end else 0

    def __len__(self) -> int:
        return len(self._end)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self._piece(i) for i in range(len(self))[at]]
        return self._piece(range(len(self))[at])

    def __iter__(self) -> Iterator[PathPiece]:
        return map(self._piece, range(len(self)))

    def _piece(self, i: int) -> PathPiece:
        return PathPiece(self._end[i - 1] if i else 0, self._end[i], self._stages[self._stage[i]], self._names[self._who[i]])

    def shares(self) -> list[StageShare]:
        """The path summed by stage and by who, the largest first; the sum is `took`."""
        sums: dict[tuple[int, int], list[int]] = {}
        before = 0
        for end, stage, who in zip(self._end, self._stage, self._who, strict=True):
            of = sums.setdefault((stage, who), [0, 0])
            of[0] += end - before
            of[1] += 1
            before = end
        found = [StageShare(self._stages[s], self._names[w], ps, n) for (s, w), (ps, n) in sums.items()]
        return sorted(found, key=lambda s: (-s.ps, s.stage, s.who))

    @cached_property
    def _graph(self) -> PathGraph:
        from retrompi import _engine

        return _engine.PathGraph(self._columns)

    def slacks(self) -> list[Slack]:
        """Every stage of every process, host and wire: what of it is on the path, and how much later the rest could be; those with the
        least slack first, then what is on the path alone.

        To first order: it is how much later the one part could end, everything else being as it was. Space that was there long before it
        was needed (a free buffer, an open window) is not counted among what a sender waits for.
        """
        found = [Slack(self._stages[stage], who, on, beside, parts, least) for stage, who, on, beside, parts, least in self._graph.slacks()]
        return sorted(found, key=lambda s: (s.least is None, s.least or 0, -s.on_path, s.stage, s.who))

    def parts(self) -> Iterator[PathPart]:
        """Every interval of the run in the order in which it was recorded, with its slack."""
        for begin, end, stage, who, slack in self._graph.parts():
            yield PathPart(begin, end, self._stages[stage], who, slack)

    def _of(self, changes: Changes) -> list[float]:
        return [changes.get(number, 0.0) for number in self.numbers]

    def slope(self, changes: Changes) -> float:
        """Seconds by which the run is longer, to first order, if the declared numbers change so."""
        return float(self._graph.slope(self._of(changes))) * PS

    def time_change(self, changes: Changes) -> tuple[float, bool]:
        """(seconds by which the run is longer if the declared numbers change so, whether everything still happens in the same order).

        If it does not, the first is not to be relied on.
        """
        ps, in_order = self._graph.changed(self._of(changes))
        return ps * PS, in_order

    def reach(self, changes: Changes, agree: float = 1e-6, rounding: float = 1.0) -> float:
        """The part of these changes, 0 to 1, up to which the run's time is proportional to them, to a relative ``agree`` and ``rounding``
        ps."""
        return float(self._graph.reach(self._of(changes), agree, rounding))

    @property
    def ties(self) -> int:
        """How many pairs in order happened at one instant, as on hosts that are alike."""
        return self._graph.ties

    @property
    def recorded(self) -> tuple[int, int, int]:
        """How many points, joins and pairs in order were recorded."""
        points, joins, orders = self._graph.size
        return points, joins, orders

    def by(self, what: Literal["stage", "who"]) -> dict[str, int]:
        """Picoseconds of each stage, or of each process and place, the largest first."""
        sums: dict[str, int] = {}
        for share in self.shares():
            key = share.stage if what == "stage" else share.who
            sums[key] = sums.get(key, 0) + share.ps
        return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True, slots=True)
class StageDifference:
    """A mechanism's part of the difference of two runs: ps on the path of each, and how many pieces."""

    stage: str
    a: int
    b: int
    pieces_a: int
    pieces_b: int

    @property
    def ps(self) -> int:
        """Picoseconds that B has more."""
        return self.b - self.a


def difference(a: CriticalPath, b: CriticalPath) -> list[StageDifference]:
    """How the paths of two runs differ, by stage, the largest part first; ``ps`` sums to ``b.took - a.took``, exactly."""
    both: dict[str, list[int]] = {}
    for side, path in enumerate((a, b)):
        for share in path.shares():
            row = both.setdefault(share.stage, [0, 0, 0, 0])
            row[side] += share.ps
            row[2 + side] += share.pieces
    return sorted((StageDifference(stage, *row) for stage, row in both.items()), key=lambda d: (-abs(d.ps), d.stage))
