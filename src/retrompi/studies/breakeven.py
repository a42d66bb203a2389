"""Where along one key A overtakes B: every crossing between two points that were simulated.

    found = break_even(evaluate, scale, low, high)
    found.crossings        # each an interval; what is ahead below and above it
    found.ends             # the two ends of the range: who is ahead there, and by how much

The states of a point are ``a`` or ``b`` (who is ahead), ``tie``, ``only a``, ``only b`` (the other did not complete) and ``neither``; a
change between any two of them is searched for alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from retrompi.base.errors import UsageError
from retrompi.studies.boundaries import Search
from retrompi.studies.reading import Reading, counted
from retrompi.studies.scale import LEAST_TOLERANCE, Scale

__all__ = ["SCAN", "BreakEven", "Crossing", "Pair", "break_even"]

SCAN = 9
"""Points of the first scan."""


@dataclass(frozen=True)
class Pair:
    """Both sides at one value ``x`` (base units; ``text`` as simulated)."""

    x: float
    text: str
    a: Reading
    b: Reading

    def state(self, more_is_better: bool, tie: float) -> str:
        """Who is ahead: a, b, tie, only a, only b, neither."""
        a, b = self.a.value, self.b.value
        if a is None or b is None:
            return "neither" if a is b else ("only b" if a is None else "only a")
        if abs(a - b) <= tie * max(abs(a), abs(b)):
            return "tie"
        return "a" if (a > b) == more_is_better else "b"

    def lead(self, more_is_better: bool) -> float | None:
        """ln of how many times A is better than B: positive when A is ahead; None where there is no such quotient."""
        a, b = self.a.value, self.b.value
        if a is None or b is None or a <= 0 or b <= 0:
            return None
        return math.log(a / b) if more_is_better else math.log(b / a)


@dataclass(frozen=True)
class Crossing:
    """A change between two simulated neighbours: ``before`` is the state at ``low``, ``after`` that at ``high``.

    ``estimate`` is where straight lines through the quotients meet one (base units), None where one side did not complete.
    """

    low: Pair
    high: Pair
    before: str
    after: str
    estimate: float | None

    @property
    def overtakes(self) -> bool:
        """Whether both completed on both sides: one overtakes, or meets, the other."""
        return {self.before, self.after} <= {"a", "b", "tie"}


@dataclass(frozen=True)
class BreakEven:
    """All that was found; ``points`` by value, ``states`` with them."""

    scale: Scale
    more_is_better: bool
    points: list[Pair]
    states: list[str]
    crossings: list[Crossing] = field(default_factory=list)
    scanned: int = 0

    @property
    def ends(self) -> tuple[Pair, Pair]:
        """The ends of the range."""
        return self.points[0], self.points[-1]

    @property
    def counts(self) -> tuple[int, int]:
        """(runs that were looked at, of them simulated now)."""
        return counted(r for p in self.points for r in (p.a, p.b))


@dataclass(frozen=True)
class Rules:
    """How the search is done: ``scan`` points are looked at first; ``tolerance`` is the relative width of an interval that is narrow
    enough (whole numbers end as neighbours where that is wider); readings within ``tie`` of each other (relative) are a tie."""

    more_is_better: bool = False
    scan: int = SCAN
    tolerance: float = 0.01
    tie: float = 0.0


def break_even(
    evaluate: Callable[[Sequence[float]], Sequence[tuple[Reading, Reading]]],
    scale: Scale,
    low: float,
    high: float,
    rules: Rules | None = None,
) -> BreakEven:
    """Every change of who is ahead from ``low`` to ``high``. ``evaluate`` gives A and B at many values.

    Raises UsageError for an empty range and for rules that make no sense.
    """
    rules = rules or Rules()
    more_is_better, scan, tolerance, tie = rules.more_is_better, rules.scan, rules.tolerance, rules.tie
    if not low < high:
        raise UsageError(
            f"{scale.key}: the range is empty; write the smaller value first, e.g. {scale.text(high)}..{scale.text(low)}", code="bad-range"
        )
    if scan < 2:
        raise UsageError("a scan needs two points at least", code="bad-range")
    if not LEAST_TOLERANCE <= tolerance < 1:
        raise UsageError(f"the tolerance is a share from {LEAST_TOLERANCE:g} to 1, not {tolerance:g}", code="out-of-range")
    if not 0 <= tie < 1:
        raise UsageError(f"a tie is a share from 0 to 1, not {tie:g}", code="out-of-range")

    def pairs(values: Sequence[float]) -> list[Pair]:
        return [Pair(x, scale.text(x), a, b) for x, (a, b) in zip(values, evaluate(values), strict=True)]

    search = Search(scale, pairs, lambda p: p.state(more_is_better, tie), lambda p: p.lead(more_is_better))
    first = scale.spread(low, high, scan)
    search.at(first)
    search.look_closer()
    found = search.refine(tolerance)
    points = [p for _, p in search.ordered()]
    crossings = []
    for x0, x1 in found:
        below, above = search.at([x0, x1])
        states = [p.state(more_is_better, tie) for p in (below, above)]
        crossings.append(Crossing(below, above, states[0], states[1], _meet(scale, below, above, more_is_better)))
    return BreakEven(scale, more_is_better, points, [p.state(more_is_better, tie) for p in points], crossings, len(first))


def _meet(scale: Scale, below: Pair, above: Pair, more_is_better: bool) -> float | None:
    """Where the quotient of the two is one, on a straight line between the ends on the search's own scale."""
    left, right = below.lead(more_is_better), above.lead(more_is_better)
    if left is None or right is None or left == right:
        return None
    share = left / (left - right)
    if not 0 <= share <= 1:
        return None
    if scale.log and below.x > 0:
        return below.x * math.exp(share * math.log(above.x / below.x))
    return below.x + share * (above.x - below.x)
