"""Break-even: the values of a key at which one of two variants of a scenario overtakes the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from retrompi.api.answering import Answer, Asking, asking_in, cautions_of, metric_of, scenario_of, spec_of
from retrompi.api.checking import check_arguments
from retrompi.api.frames import Progress, Row, texts
from retrompi.base.errors import RetrompiError, UsageError
from retrompi.sim.cautions import Caution
from retrompi.spec import needs

if TYPE_CHECKING:
    from retrompi.spec.declare.number import Number
    from retrompi.store import Store
    from retrompi.studies.define.metrics import Metric
    from retrompi.studies.define.scenario import Scenario
    from retrompi.studies.draws.uncertainty import Spec
    from retrompi.studies.search.breakeven import BreakEven as Found
    from retrompi.studies.search.certainty import Crossed
    from retrompi.studies.search.reading import Asker

__all__ = ["BreakEven", "break_even", "break_even_of"]

IDENTICAL = "A and B are identical; state a difference, e.g. --a model=wmpi --b model=winmpich"


class BreakEven(Answer):
    """The values of a key at which A overtakes B: a row for every simulated point; `crossings` lists the intervals in which the leader
    changes.

    >>> found = retrompi.break_even("bf-wmpi-shared", "trace.sizes", "1KiB", "64KiB", a={"model": "wmpi"}, b={"model": "hpvm"},
    ...                             scan=2, tolerance=0.5)
    >>> found.rows[0]["ahead"], found.unit
    ('...', 's')
    """

    def __init__(self, scenario: Scenario, metric: Metric, found: Found, warnings: Sequence[Caution], drawn: Crossed | None = None) -> None:
        super().__init__(scenario, metric, warnings)
        self.found, self.drawn = found, drawn
        """The points with their runs; the crossings over draws, if any were asked for."""

    @property
    def unit(self) -> str:
        """The unit of the metric (s, B/s, ...)."""
        return self.metric.unit

    @property
    def title(self) -> str:
        """The question in a few words, e.g. for a heading."""
        low, high = self.found.ends
        return f"{self.metric.label} of {self.scenario.name} along {self.found.scale.key}, {low.text} to {high.text}"

    @property
    def rows(self) -> Sequence[Row]:
        """key, value (base unit), text, a, b (the metric), unit, ahead (a, b, tie, only a, only b, neither), outcome_a, outcome_b, run_a,
        run_b of every point, in order of the key."""
        return [self._point(i) for i in range(len(self.found.points))]

    @property
    def crossings(self) -> Sequence[Row]:
        """low and high (rows of the two simulated points), before and after (who is ahead), overtakes, estimate (base unit of the key)."""
        index = {p.x: i for i, p in enumerate(self.found.points)}
        return [
            {"low": self._point(index[c.low.x]), "high": self._point(index[c.high.x]), "before": c.before, "after": c.after,
             "overtakes": c.overtakes, "estimate": c.estimate}
            for c in self.found.crossings
        ]

    def _point(self, i: int) -> dict[str, Any]:
        found, p = self.found, self.found.points[i]
        return {
            "key": found.scale.key, "value": p.x, "text": p.text, "a": p.a.value, "b": p.b.value, "unit": self.unit,
            "ahead": found.states[i], "outcome_a": p.a.outcome, "outcome_b": p.b.outcome, "run_a": p.a.run_id, "run_b": p.b.run_id,
        }


def _range(key: str, low: str, high: str, shape: str, sides: Sequence[Scenario]) -> Number:
    """A key with its range, for the side to which the key applies."""
    from retrompi.studies.define.keys import number, with_range

    told = []
    refused: RetrompiError | None = None
    for side in sides:
        try:
            told.append(number(side, key))
        except RetrompiError as error:
            refused = refused or error
    if not told:
        raise refused or UsageError(f"no key '{key}'")
    return with_range(told[0], [low.strip(), high.strip()], log={"": None, "log": True, "linear": False}[shape])


def break_even_of(
    base: Scenario, key: str, ends: tuple[str, str, str], changes: tuple[Mapping[str, str], Mapping[str, str]], asking: Asking, *,
    metric: str | None, scan: int, tolerance: float, tie: float, spec: Spec | None,
) -> BreakEven:
    """The search along ``key``; ``ends`` are the least and the largest value and the shape (log, linear or ""), ``changes`` those of A
    and B."""
    from retrompi.studies.define import case
    from retrompi.studies.define.used_overrides import refuse_idle
    from retrompi.studies.search.breakeven import Rules, break_even
    from retrompi.studies.search.certainty import coarser

    if not any(changes):
        raise UsageError(IDENTICAL, code="conflicting-options")
    sides = [case.apply(base, own) for own in changes]
    for side in sides:
        case.identity(side)
    scale = _range(key, *ends, sides)
    concerned = [case.concerns(scale.key, s.model) for s in sides]
    edges = (scale.text(scale.low), scale.text(scale.high))
    bounds = [case.apply(s, {scale.key: t}) if mine else s for t in edges for s, mine in zip(sides, concerned, strict=True)]
    refuse_idle(*sides, *bounds)
    known = [case.identity(end) for end in bounds]
    if known[::2] == known[1::2]:  # the given values are the scenario's own: a costly tie everywhere
        raise UsageError(IDENTICAL, code="conflicting-options")
    for end in bounds:
        wanted = metric_of(metric, "latency" if scale.key in ("trace.size", "trace.sizes") else "time", end)

    def points(values: Sequence[float]) -> list[dict[str, str]]:
        moved = [({scale.key: scale.text(x)}, own, mine) for x in values for own, mine in zip(changes, concerned, strict=True)]
        return [{**own, **(to if mine else {})} for to, own, mine in moved]

    rules = Rules(wanted.more_is_better, scan, tolerance, tie)
    with asking(base, wanted, 2 * scan + 16) as ask:
        found = break_even(_pair_readings(ask, points), scale, rules)
        drawn = None
        if spec is not None:
            drawn = _search_draws(ask, spec, lambda at: break_even(_pair_readings(at, points), scale, coarser(rules)))
        return BreakEven(base, wanted, found, cautions_of(ask, bounds, spec), drawn)


def _pair_readings(
    ask: Callable[[Sequence[Any]], Sequence[Any]], points: Callable[[Sequence[float]], list[dict[str, str]]]
) -> Callable[..., Any]:
    """Readings of A and B at values of the key."""

    def evaluate(values: Sequence[float]) -> list[Any]:
        readings = ask(points(values))
        return list(zip(readings[::2], readings[1::2], strict=True))

    return evaluate


def _search_draws(ask: Asker, spec: Spec, search: Callable[[Any], Found]) -> Crossed:
    """The search in each draw."""
    from retrompi.studies.search.certainty import DrawnAsker, merge_crossings, together

    return merge_crossings(together([search] * spec.draws, DrawnAsker.like(ask, spec)), spec)


@check_arguments
def break_even(
    scenario: str | Path, key: str, low: str | float, high: str | float, *, a: Mapping[str, str | float] | None = None,
    b: Mapping[str, str | float] | None = None, metric: str | None = None, shape: Literal["", "log", "linear"] = "", scan: int = 9,
    tolerance: float = 0.01, tie: float = 0.0, level: float = 0.9, draws: int = 0, set: Mapping[str, str | float] | None = None,
    what_if_hardware: bool = False, store: Store | Path | str | None = None, fresh: bool = False, jobs: int | None = None,
    progress: Progress | None = None,
) -> BreakEven:
    """Finds every value of ``key`` between ``low`` and ``high`` at which A overtakes B; ``a`` and ``b`` are changes of the scenario.

    A scan of ``scan`` points finds the changes of the leader, bisection narrows each down to ``tolerance`` (relative); both ends of an
    interval were simulated. ``metric`` None: the time, along a size the latency; ``tie``: the relative difference below which the two are
    equal. ``draws`` repeats the search in draws of what is uncertain (``drawn``, at ``level``). The others as in `sweep`. Raises UsageError
    for a wrong key or range, and for sides that are identical.

    >>> found = retrompi.break_even("bf-wmpi-shared", "trace.sizes", "1KiB", "64KiB", a={"model": "wmpi"}, b={"model": "hpvm"},
    ...                             scan=2, tolerance=0.5)
    >>> len(found.rows) >= 2    # found.crossings: their "estimate" is in B
    True
    """
    if shape not in ("", "log", "linear"):
        raise UsageError(f"no shape '{shape}': log or linear", code="unknown-name")
    if not 2 <= scan <= 10_000:
        raise UsageError(f"a scan has 2 to 10000 points, not {scan}", code="out-of-range")
    with needs.asking(what_if_hardware or needs.allows_fiction()):
        base, asking = scenario_of(scenario, texts(set or {})), asking_in(store, fresh, jobs, progress, "break-even")
        return break_even_of(
            base, key, (str(low), str(high), shape), (texts(a or {}), texts(b or {})), asking,
            metric=metric, scan=scan, tolerance=tolerance, tie=tie, spec=spec_of(level, draws),
        )
