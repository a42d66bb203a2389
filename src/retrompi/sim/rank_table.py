"""Results of each rank of a job, stored as columns: a million ranks take 72 MB, and a row is built when it is read."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from retrompi.base.units import PS
from retrompi.spec.declare.result import RankRow, outputs

__all__ = ["KEPT", "RankTable"]

KEPT = 4096
"""Rows of ranks that a store keeps of a run; of a job with more ranks, `RankTable.some` and `RankTable.summary`."""

_READ = {name: (o.key, PS if o.kind == "time" else 1) for name, o in outputs(RankRow).items() if o.is_number}
"""Number of a rank -> the engine's column, and the factor to its unit."""


class RankTable(Sequence[RankRow]):
    """The rows of the ranks, by rank.

    ``columns``: the engine's, bytes of 64-bit integers (times in picoseconds, ``host`` an index of ``names``).
    """

    def __init__(self, columns: Mapping[str, bytes], names: Sequence[str]) -> None:
        self._columns = {name: array("q", data) for name, data in columns.items()}
        self._names = names

    def __len__(self) -> int:
        return len(self._columns["host"])

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self._row(i) for i in range(len(self))[at]]
        return self._row(range(len(self))[at])

    def __iter__(self) -> Iterator[RankRow]:
        return map(self._row, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RankTable):
            mine, theirs = ({k: c for k, c in t._columns.items() if k != "host"} for t in (self, other))
            return mine == theirs and all(a["host"] == b["host"] for a, b in zip(self, other, strict=True))
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, memo: Any) -> RankTable:
        return self  # never changed

    def _row(self, rank: int) -> RankRow:
        c = self._columns
        return {
            "rank": rank,
            "host": self._names[c["host"][rank]],
            **{name: c[key][rank] * factor for name, (key, factor) in _READ.items()},  # type: ignore[typeddict-item]
        }

    def some(self, most: int = KEPT) -> list[RankRow]:
        """All rows, or of more than ``most`` ranks: ``most`` of them, evenly spaced, the first and the last to finish among them."""
        n = len(self)
        if n <= most:
            return list(self)
        times = self._columns["time_ps"]
        ends = {min(range(n), key=times.__getitem__), max(range(n), key=times.__getitem__)}
        spaced = [i * n // (most - len(ends)) for i in range(most - len(ends))]
        return [self._row(i) for i in sorted({*spaced, *ends})]

    def summary(self) -> dict[str, Any]:
        """``ranks``: how many; for each column of numbers the smallest, the mean and the largest value and the ranks of both ends."""
        told: dict[str, Any] = {"ranks": len(self)}
        for name, (key, scale) in _READ.items():
            values = self._columns[key]
            if not values:
                continue
            low, high = min(values), max(values)
            told[name] = {"low": low * scale, "mean": sum(values) / len(values) * scale, "high": high * scale,
                         "low_rank": values.index(low), "high_rank": values.index(high)}
        return told
