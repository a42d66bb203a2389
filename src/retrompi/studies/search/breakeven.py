"""Break-even search: every value of one key at which A overtakes B, bracketed by two simulated points.

    found = break_even(evaluate, scale)
    found.crossings        # each an interval, with the side that is ahead below and above it
    found.ends             # the two ends of the range: which side is ahead there, and by how much

The states of a point are ``a`` or ``b`` (which side is ahead), ``tie``, ``only a``, ``only b`` (the other did not complete) and
``neither``. Every change of state is searched for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from retrompi.base.errors import UsageError
from retrompi.spec.declare.number import Number
from retrompi.studies.search.boundaries import LEAST_TOLERANCE, BoundarySearch
from retrompi.studies.search.reading import Reading, count_runs

__all__ = ["SCAN", "BothSides", "BreakEven", "Crossing", "break_even"]

SCAN = 9
"""Points of the first scan."""


@dataclass(frozen=True)
class BothSides:
    """Both sides at one value ``x`` (base units; ``text`` as simulated)."""

    x: float
    text: str
    a: Reading
    b: Reading

    def state(self, more_is_better: bool, tie: float) -> str:
        """The side that is ahead: a, b, tie, only a, only b, neither."""
        a, b = self.a.value, self.b.value
        if a is None or b is None:
            return "neither" if a is b else ("only b" if a is None else "only a")
        if abs(a - b) <= tie * max(abs(a), abs(b)):
            return "tie"
        return "a" if (a > b) == more_is_better else "b"

    def lead(self, more_is_better: bool) -> float | None:
        """Natural logarithm of the ratio by which A is better than B: positive when A is ahead; None if the ratio is undefined."""
        a, b = self.a.value, self.b.value
        if a is None or b is None or a <= 0 or b <= 0:
            return None
        return math.log(a / b) if more_is_better else math.log(b / a)


@dataclass(frozen=True)
class Crossing:
    """A change between two simulated neighbours: ``before`` is the state at ``low``, ``after`` that at ``high``.

    ``estimate`` is where the linearly interpolated ratio equals one (base units); None if one side did not complete.
    """

    low: BothSides
    high: BothSides
    before: str
    after: str
    estimate: float | None

    @property
    def overtakes(self) -> bool:
        """Whether A and B completed at both ends of the interval, so that one overtakes or equals the other."""
        return {self.before, self.after} <= {"a", "b", "tie"}


@dataclass(frozen=True)
class BreakEven:
    """Result of the search: ``points`` ordered by value, and the state of each in ``states``."""

    scale: Number
    more_is_better: bool
    points: list[BothSides]
    states: list[str]
    crossings: list[Crossing] = field(default_factory=list)
    scanned: int = 0

    @property
    def ends(self) -> tuple[BothSides, BothSides]:
        """The ends of the range."""
        return self.points[0], self.points[-1]

    @property
    def counts(self) -> tuple[int, int]:
        """(runs evaluated, of which simulated now)."""
        return count_runs(r for p in self.points for r in (p.a, p.b))


@dataclass(frozen=True)
class Rules:
    """Search settings: ``scan`` is the number of points of the first scan; ``tolerance`` the relative width at which an interval is
    narrow enough (integer keys stop at neighbours if that is wider); readings within ``tie`` of each other (relative) are a tie."""

    more_is_better: bool = False
    scan: int = SCAN
    tolerance: float = 0.01
    tie: float = 0.0


def break_even(
    evaluate: Callable[[Sequence[float]], Sequence[tuple[Reading, Reading]]],
    scale: Number,
    rules: Rules | None = None,
) -> BreakEven:
    """Every change of the leading side from end to end of ``scale``. ``evaluate`` returns A and B at a batch of values.

    Raises UsageError for an empty range and for invalid rules.
    """
    rules = rules or Rules()
    more_is_better, scan, tolerance, tie = rules.more_is_better, rules.scan, rules.tolerance, rules.tie
    if not scale.low < scale.high:
        raise UsageError(
            f"{scale.key}: the range is empty; write the smaller value first, e.g. {scale.text(scale.high)}..{scale.text(scale.low)}",
            code="bad-range",
        )
    if scan < 2:
        raise UsageError("a scan needs two points at least", code="bad-range")
    if not LEAST_TOLERANCE <= tolerance < 1:
        raise UsageError(f"the tolerance is a share from {LEAST_TOLERANCE:g} to 1, not {tolerance:g}", code="out-of-range")
    if not 0 <= tie < 1:
        raise UsageError(f"a tie is a share from 0 to 1, not {tie:g}", code="out-of-range")

    def pairs(values: Sequence[float]) -> list[BothSides]:
        return [BothSides(x, scale.text(x), a, b) for x, (a, b) in zip(values, evaluate(values), strict=True)]

    search = BoundarySearch(scale, pairs, lambda p: p.state(more_is_better, tie), lambda p: p.lead(more_is_better))
    first = scale.spread(scan)
    search.at(first)
    search.look_closer()
    found = search.refine(tolerance)
    points = [p for _, p in search.in_order()]
    crossings = []
    for x0, x1 in found:
        below, above = search.at([x0, x1])
        states = [p.state(more_is_better, tie) for p in (below, above)]
        crossings.append(Crossing(below, above, states[0], states[1], _meet(scale, below, above, more_is_better)))
    return BreakEven(scale, more_is_better, points, [p.state(more_is_better, tie) for p in points], crossings, len(first))


def _meet(scale: Number, below: BothSides, above: BothSides, more_is_better: bool) -> float | None:
    """The place where the ratio of the two is one, interpolated linearly between the ends on the scale of the search."""
    left, right = below.lead(more_is_better), above.lead(more_is_better)
    if left is None or right is None or left == right:
        return None
    share = left / (left - right)
    if not 0 <= share <= 1:
        return None
    if scale.log and below.x > 0:
        return below.x * math.exp(share * math.log(above.x / below.x))
    return below.x + share * (above.x - below.x)
