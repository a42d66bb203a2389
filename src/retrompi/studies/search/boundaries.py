"""Finds the values of one key at which a state changes: a coarse scan, then bisection of each change.

A change is found when two neighbouring points of the scan differ. Where the gap between two curves has a small minimum without a change
of sign, the scan is refined; otherwise a change that is reversed between two points of the scan is missed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

__all__ = ["LEAST_TOLERANCE", "LOOKS", "BoundarySearch", "Coordinate"]

LEAST_TOLERANCE = 1e-4
"""The values tried have six digits: an interval cannot be much narrower than their rounding."""

P = TypeVar("P")
LOOKS = 4
"""How many times the neighbourhood of a small gap is halved."""


class Coordinate(Protocol):
    """The coordinate of a search: `retrompi.spec.declare.number.Number`, or amounts on it."""

    def middle(self, low: float, high: float) -> float | None:
        """A value strictly between the two; None if there is none."""

    def width(self, low: float, high: float) -> float:
        """The distance of the two, relative to the larger."""


@dataclass
class BoundarySearch(Generic[P]):
    """Points along ``scale``, evaluated by ``evaluate`` (many at a time), each in a ``state``; ``gap`` of a point is its
    distance from a change.

    ``points`` holds all evaluated points.
    """

    scale: Coordinate
    evaluate: Callable[[Sequence[float]], Sequence[P]]
    state: Callable[[P], Hashable]
    gap: Callable[[P], float | None] = lambda point: None
    points: dict[float, P] = field(default_factory=dict)

    def at(self, values: Sequence[float]) -> list[P]:
        """The points at ``values``; those not yet evaluated are evaluated in one batch."""
        new = [x for x in dict.fromkeys(values) if x not in self.points]
        if new:
            self.points.update(zip(new, self.evaluate(new), strict=True))
        return [self.points[x] for x in values]

    def in_order(self) -> list[tuple[float, P]]:
        """All points by value."""
        return sorted(self.points.items(), key=lambda item: item[0])

    def look_closer(self) -> None:
        """Adds points around each minimum of the gap that could hide two changes."""
        for _ in range(LOOKS):
            wanted = [x for x in self._suspects() if x not in self.points]
            if not wanted:
                return
            self.at(wanted)

    def _suspects(self) -> Iterator[float]:
        known = self.in_order()
        for (x0, p0), (x1, p1), (x2, p2) in zip(known, known[1:], known[2:], strict=False):
            gaps = [None if g is None else abs(g) for g in map(self.gap, (p0, p1, p2))]
            if len({self.state(p) for p in (p0, p1, p2)}) > 1 or None in gaps:
                continue
            left, here, right = (g for g in gaps if g is not None)
            # The remaining gap must be comparable to its slope, or every curve would be refined indefinitely.
            if here <= min(left, right) and here <= max(left, right) / 2:
                yield from (m for m in (self.scale.middle(x0, x1), self.scale.middle(x1, x2)) if m is not None)

    def changes(self) -> list[tuple[float, float]]:
        """Neighbours whose states differ."""
        return [(x0, x1) for (x0, p0), (x1, p1) in pairwise(self.in_order()) if self.state(p0) != self.state(p1)]

    def refine(self, tolerance: float, floor: float = 0.0) -> list[tuple[float, float]]:
        """Bisects every change until its ends are ``tolerance`` (relative) or ``floor`` (base units) apart, or neighbours."""
        while True:
            wide = [(lo, hi) for lo, hi in self.changes() if self.scale.width(lo, hi) > tolerance and hi - lo > floor]
            middles = [m for lo, hi in wide if (m := self.scale.middle(lo, hi)) is not None]
            if not middles:
                return self.changes()
            self.at(middles)
