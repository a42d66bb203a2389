"""The critical path of a run: the chain of delays that its time consists of, and the difference of two.

    path = simulate.run(question, Observe(critical_path=True)).critical_path
    sum(p.took for p in path) == path.took        # exactly: the pieces tile the run from 0 to its end
    path.by("stage")["wire"]                      # picoseconds on the path

Every piece was started by the end of the one before: the last that came of all that it waited for. Times are whole picoseconds.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["CriticalPath", "Difference", "Piece", "Share", "difference"]


@dataclass(frozen=True, slots=True)
class Piece:
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
class Share:
    """What a stage of somebody contributes to the path: ``ps`` in ``pieces`` intervals."""

    stage: str
    who: str
    ps: int
    pieces: int


class CriticalPath(Sequence[Piece]):
    """The pieces of a run's path in order of time, as columns: a piece is made when it is looked at."""

    def __init__(self, got: Mapping[str, Any]) -> None:
        """``got``: as the engine returns it, with ``kind_of``: host -> its kind."""
        self._end = array("q", got["end_ps"])
        self._stage = array("B", got["stage"])
        self._who = array("I", got["who"])
        self._names: list[str] = got["names"]
        self._stages: list[str] = got["stages"]
        kind_of = got["kind_of"]
        self._slopes: dict[tuple[str, int, str], float] = {}
        for owner, index, field, times in got["slopes"]:
            of = (owner, kind_of[index] if owner == "host" else index, field)
            self._slopes[of] = self._slopes.get(of, 0.0) + times

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

    def __iter__(self) -> Iterator[Piece]:
        return map(self._piece, range(len(self)))

    def _piece(self, i: int) -> Piece:
        return Piece(self._end[i - 1] if i else 0, self._end[i], self._stages[self._stage[i]], self._names[self._who[i]])

    def shares(self) -> list[Share]:
        """The path summed by stage and by who, the largest first; the sum is `took`."""
        sums: dict[tuple[int, int], list[int]] = {}
        before = 0
        for end, stage, who in zip(self._end, self._stage, self._who, strict=True):
            of = sums.setdefault((stage, who), [0, 0])
            of[0] += end - before
            of[1] += 1
            before = end
        found = [Share(self._stages[s], self._names[w], ps, n) for (s, w), (ps, n) in sums.items()]
        return sorted(found, key=lambda s: (-s.ps, s.stage, s.who))

    def slope(self, number: tuple[str, int, str]) -> float:
        """Seconds of the path for a base unit of a declared number: owner (host, link, same, remote, ...), index of the kind of host or of
        the hop, field."""
        return self._slopes.get(number, 0.0)

    def by(self, what: Literal["stage", "who"]) -> dict[str, int]:
        """Picoseconds of each stage, or of each process and place, the largest first."""
        sums: dict[str, int] = {}
        for share in self.shares():
            key = share.stage if what == "stage" else share.who
            sums[key] = sums.get(key, 0) + share.ps
        return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True, slots=True)
class Difference:
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


def difference(a: CriticalPath, b: CriticalPath) -> list[Difference]:
    """How the paths of two runs differ, by stage, the largest part first; ``ps`` sums to ``b.took - a.took``, exactly."""
    both: dict[str, list[int]] = {}
    for side, path in enumerate((a, b)):
        for share in path.shares():
            row = both.setdefault(share.stage, [0, 0, 0, 0])
            row[side] += share.ps
            row[2 + side] += share.pieces
    return sorted((Difference(stage, *row) for stage, row in both.items()), key=lambda d: (-abs(d.ps), d.stage))
