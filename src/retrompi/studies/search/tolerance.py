"""Tolerance: how far one key can move from its value until a metric is worse by a given share.

    found = tolerance(evaluate, way, metric_at_the_base, slower=(0.05,))
    found.answers[0].low, found.answers[0].high        # within at low, worse at high, both simulated
    found.slope                                        # d metric / d key near the base

For a latency, the slope of the time is the number of latencies on the critical path, as LLAMP (Shen et al., SC 2024) computes it from a
linear program; here it is a finite difference of two simulations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from retrompi.base.errors import UsageError
from retrompi.spec.declare.number import Number
from retrompi.studies.search.boundaries import LEAST_TOLERANCE, BoundarySearch
from retrompi.studies.search.reading import NoNumber, Reading, count_runs

__all__ = ["SearchRange", "Tolerance", "ToleranceAnswer", "TriedValue", "tolerance"]

BATCH = 4
"""Doublings simulated in one batch."""
FARTHER = 3
"""Doublings simulated beyond the first that is worse, since a response need not be monotonic."""
ROUNDING = 1e-9
FALL = 1e-3
"""An improvement by less than this share of the base, going away from it, does not count as non-monotonic."""


@dataclass(frozen=True)
class SearchRange:
    """The search range: from ``base`` by ``first``, doubled repeatedly, up to ``limit`` away (amounts in base units of ``scale``).

    With ``by_factor`` an amount is a factor instead: base times 2, 4, ... or, ``down``, divided by them.
    """

    scale: Number
    base: float
    first: float
    limit: float
    by_factor: bool = False
    down: bool = False

    def value(self, amount: float) -> float:
        """The key's value at this amount from the base; ``amount`` 0 (or a factor of 1) is the base."""
        if not self.by_factor:
            return self.scale.snap(self.base - amount if self.down else self.base + amount)
        return self.scale.snap(self.base / amount if self.down else self.base * amount)

    def doublings(self) -> list[float]:
        """Amounts from the first to the limit; repeated values of an integer key are dropped."""
        found, amount = [], self.first
        while amount < self.limit:
            found.append(amount)
            amount *= 2
        seen: dict[float, float] = {}
        for a in [*found, self.limit]:
            seen.setdefault(self.value(a), a)
        return [a for v, a in seen.items() if v != self.base]


@dataclass(frozen=True)
class TriedValue:
    """A value of the key that was simulated, and how much worse the metric is than at the base (0.05: 5 %; None: no number)."""

    x: float
    text: str
    amount: float
    reading: Reading
    worse: float | None


@dataclass(frozen=True)
class ToleranceAnswer:
    """Answer for one share: ``status`` is reached, never (within the limit) or ends (runs stop completing before the metric is worse).

    ``low`` is within and ``high`` is not; ``never`` has the farthest place as ``low``. ``estimate`` is the key's value by linear
    interpolation, ``by_slope`` by the slope at the base alone. ``back`` are later places that are within again.
    """

    slower: float
    status: str
    low: TriedValue
    high: TriedValue | None
    estimate: float | None
    by_slope: float | None
    back: tuple[TriedValue, ...] = ()


@dataclass(frozen=True)
class Tolerance:
    """Result of the search; ``places`` are ordered away from the base; ``falls`` are neighbours of which the farther one is better."""

    way: SearchRange
    base: Reading
    places: list[TriedValue]
    answers: list[ToleranceAnswer]
    slope: float | None
    elasticity: float | None
    falls: list[tuple[TriedValue, TriedValue]]

    @property
    def monotonic(self) -> bool:
        """Whether the metric never improved with distance, at the places simulated."""
        return not self.falls

    @property
    def counts(self) -> tuple[int, int]:
        """(runs evaluated, of which simulated now)."""
        return count_runs([self.base, *(p.reading for p in self.places)])


def tolerance(
    evaluate: Callable[[Sequence[float]], Sequence[Reading]],
    way: SearchRange,
    base: Reading,
    *,
    slower: Sequence[float] = (0.05,),
    more_is_better: bool = False,
    width: float = 0.01,
) -> Tolerance:
    """Distance along ``way`` at which the metric is worse than ``base`` by each share in ``slower``.

    ``evaluate`` returns readings at values of the key. ``width`` is the target width of an answer's interval, relative to the amount.
    Raises NoNumber when the base has no number, UsageError when it is zero.
    """
    if base.value is None:
        raise NoNumber(f"the base itself has no number: {base.outcome_text()}")
    if base.value <= 0:
        raise UsageError("the metric is 0 at the base, so that no relative change is defined", code="bad-range")
    if not LEAST_TOLERANCE <= width < 1:
        raise UsageError(f"the tolerance is a share from {LEAST_TOLERANCE:g} to 1, not {width:g}", code="out-of-range")
    if not slower or not all(s > 0 for s in slower):
        raise UsageError("how much worse is a share above zero, e.g. 5%", code="out-of-range")
    if not way.doublings() or (way.scale.whole and way.down and way.base <= 1):
        raise UsageError(f"{way.scale.key}: there is no value between {way.scale.text(way.base)} and the limit", code="bad-range")
    start = base.value

    def worse(value: float | None) -> float | None:
        if value is None:
            return None
        if more_is_better:
            return start / value - 1 if value > 0 else float("inf")
        return value / start - 1

    def look(amounts: Sequence[float]) -> list[TriedValue]:
        values = [way.value(a) for a in amounts]
        readings = evaluate(values)
        return [TriedValue(v, way.scale.text(v), a, r, worse(r.value)) for v, a, r in zip(values, amounts, readings, strict=True)]

    origin = 1.0 if way.by_factor else 0.0
    at_base = TriedValue(way.base, way.scale.text(way.base), origin, base, 0.0)
    # The search runs over amounts, not values: the width is relative to the amount added, not to the sum.
    amounts = _Amounts(way)
    known: dict[float, TriedValue] = {origin: at_base}
    probe = BoundarySearch(amounts, look, lambda p: _state(p, max(slower)), points=known)
    near = _near(way)
    probe.at([near])
    probe_slope = _slope(at_base, known[near])
    _scan(probe, way, max(slower))
    answers = []
    for share in slower:
        search = BoundarySearch(amounts, look, _within(share), points=known)
        found = search.refine(width, 0.0 if way.by_factor else width * way.first)
        answers.append(_answer(share, found, search.points, at_base, probe_slope, more_is_better))
    places = [p for _, p in probe.in_order()]
    elasticity = None if probe_slope is None else probe_slope * way.base / start
    return Tolerance(way, base, places, answers, probe_slope, elasticity, _falls(places))


@dataclass(frozen=True)
class _Amounts:
    """The coordinate of amounts: a midpoint is an amount whose value lies strictly between."""

    way: SearchRange

    def middle(self, low: float, high: float) -> float | None:
        middle = (low * high) ** 0.5 if self.way.by_factor else (low + high) / 2
        values = [self.way.value(a) for a in (low, middle, high)]
        if not self.way.scale.whole:
            return middle if len(set(values)) == 3 else None
        ends = sorted((values[0], values[2]))
        inside = self.way.scale.middle(*ends)
        if inside is None:
            return None
        if not self.way.by_factor:
            return abs(inside - self.way.base)
        return self.way.base / inside if self.way.down else inside / self.way.base

    def width(self, low: float, high: float) -> float:
        if self.way.scale.whole:
            return self.way.scale.width(*sorted((self.way.value(low), self.way.value(high))))
        return (high - low) / (high - 1.0) if self.way.by_factor and high < 2 else (high - low) / high


def _within(share: float) -> Callable[[TriedValue], str]:
    return lambda place: _state(place, share)


def _state(place: TriedValue, share: float) -> str:
    if place.worse is None:
        return place.reading.outcome
    return "worse" if place.worse > share * (1 + ROUNDING) else "within"


def _near(way: SearchRange) -> float:
    """The amount at which the slope is taken: 1 % of the base, one for whole numbers, a hundredth of the first step from zero."""
    if way.scale.whole:
        if not way.by_factor:
            return 1.0
        return way.base / (way.base - 1) if way.down else (way.base + 1) / way.base
    if way.by_factor:
        return min(1.01, way.limit)
    return min(0.01 * way.base if way.base > 0 else 0.01 * way.first, way.limit)


def _slope(base: TriedValue, near: TriedValue) -> float | None:
    if near.reading.value is None or base.reading.value is None or near.x == base.x:
        return None
    return (near.reading.value - base.reading.value) / (near.x - base.x)


def _scan(search: BoundarySearch[TriedValue], way: SearchRange, share: float) -> None:
    """Doublings until the metric is worse, a few beyond, then the midpoints between all of them."""
    ahead = way.doublings()
    seen: list[float] = []
    while ahead:
        seen += ahead[:BATCH]
        found = search.at(seen)
        ahead = ahead[BATCH:]
        outside = next((i for i, p in enumerate(found) if _state(p, share) != "within"), len(found))
        if outside < len(found):
            more = max(0, FARTHER - (len(found) - 1 - outside))
            seen += ahead[:more]
            search.at(seen)
            break
    scale = search.scale
    between = [scale.middle(lo, hi) for lo, hi in zip([search.in_order()[0][0], *seen], seen, strict=False)]
    search.at([b for b in between if b is not None])


def _answer(
    share: float, found: Sequence[tuple[float, float]], points: dict[float, TriedValue], base: TriedValue,
    slope: float | None, more_is_better: bool,
) -> ToleranceAnswer:
    by_slope = None
    gets_worse = slope is not None and slope != 0 and base.reading.value is not None
    if gets_worse and slope is not None and base.reading.value is not None:
        aim = base.reading.value / (1 + share) if more_is_better else base.reading.value * (1 + share)
        by_slope = base.x + (aim - base.reading.value) / slope
    if not found:
        farthest = points[max(points)]
        return ToleranceAnswer(share, "never", farthest, None, None, by_slope)
    low, high = (points[a] for a in found[0])
    back = tuple(points[far] for _, far in found[1:] if _state(points[far], share) == "within")
    if high.worse is None:
        return ToleranceAnswer(share, "ends", low, high, None, by_slope, back)
    inner = 0.0 if low.worse is None else low.worse
    part = (share - inner) / (high.worse - inner)
    return ToleranceAnswer(share, "reached", low, high, low.x + part * (high.x - low.x), by_slope, back)


def _falls(places: Sequence[TriedValue]) -> list[tuple[TriedValue, TriedValue]]:
    known = [p for p in places if p.worse is not None]
    return [(a, b) for a, b in pairwise(known) if (b.worse or 0.0) < (a.worse or 0.0) - FALL]
