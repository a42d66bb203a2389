"""Tolerance: how far a parameter can move before a metric gets worse by a given share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.api.answering import Answer, Asking, asking_in, cautions_of, metric_of, scenario_of, spec_of
from retrompi.api.checking import check_arguments
from retrompi.api.frames import Progress, Row, texts
from retrompi.base.errors import UsageError
from retrompi.base.units import canonical
from retrompi.sim.cautions import Caution
from retrompi.spec import needs

if TYPE_CHECKING:
    from retrompi.store import Store
    from retrompi.studies.define.metrics import Metric
    from retrompi.studies.define.scenario import Scenario
    from retrompi.studies.draws.uncertainty import Spec
    from retrompi.studies.search.certainty import Distance
    from retrompi.studies.search.reading import Asker
    from retrompi.studies.search.sensitivity import Tolerated
    from retrompi.studies.search.tolerance import SearchRange
    from retrompi.studies.search.tolerance import Tolerance as Found
    from retrompi.studies.search.tolerance import ToleranceAnswer as One

__all__ = ["Tolerance", "tolerance", "tolerance_of"]

FARTHEST = 2.0**16
"""Default limit, as a factor of the base."""
_FALLING = ("B/s", "Hz", "flop/s")


class Tolerance(Answer):
    """How far a key can move: a row for each share by which the metric may be worse.

    >>> found = retrompi.tolerance("bf-wmpi-shared", add="wmpi.event", up_to="1ms", metric="time@1KiB", slower=[0.5], tolerance=0.5,
    ...                            set={"trace.sizes": "1KiB", "trace.reps": 2})
    >>> found.rows[0]["slower"], found.unit
    (0.5, 's')
    """

    def __init__(
        self, scenario: Scenario, metric: Metric, found: Found, warnings: Sequence[Caution], alone: Mapping[float, Tolerated],
        spec: Spec | None, drawn: Sequence[Distance],
    ) -> None:
        super().__init__(scenario, metric, warnings)
        self.found, self.alone, self.spec, self.drawn = found, alone, spec, drawn
        """Every place that was simulated; what the path of one run says, by share; the answers over draws."""

    @property
    def unit(self) -> str:
        """The unit of the metric (s, B/s, ...)."""
        return self.metric.unit

    @property
    def slope(self) -> float | None:
        """The metric by the key near its value, in base units; for a latency and a time: how often it is on the critical path."""
        return self.found.slope

    @property
    def title(self) -> str:
        """The question in a few words, e.g. for a heading."""
        way = self.found.way
        return f"how far {way.scale.key} of {self.scenario.name} can move from {way.scale.text(way.base)}"

    @property
    def rows(self) -> Sequence[Row]:
        """slower (a share), status (reached, never, ends), within and beyond (base unit of the key; both simulated) with their texts,
        estimate, by_slope, metric_within, metric_beyond, unit, run_within, run_beyond, outcome_beyond, back (later values that are within
        again); with ``one_run`` also one_run and one_run_in_order."""
        return [self._row(a) for a in self.found.answers]

    @property
    def points(self) -> Sequence[Row]:
        """value (base unit), text, metric, worse (a share), outcome, run of every place that was simulated, away from the scenario's
        own."""
        return [
            {"value": p.x, "text": p.text, "metric": p.reading.value, "worse": p.worse, "outcome": p.reading.outcome,
             "run": p.reading.run_id}
            for p in self.found.places
        ]

    def _row(self, a: One) -> dict[str, Any]:
        high, one = a.high, self.alone.get(a.slower)
        more = {} if one is None else {"one_run": one.value, "one_run_in_order": one.in_range}
        return {
            "slower": a.slower, "status": a.status, "within": a.low.x, "within_text": a.low.text, "beyond": high.x if high else None,
            "beyond_text": high.text if high else None, "estimate": a.estimate, "by_slope": a.by_slope,
            "metric_within": a.low.reading.value, "metric_beyond": high.reading.value if high else None, "unit": self.unit,
            "run_within": a.low.reading.run_id, "run_beyond": high.reading.run_id if high else None,
            "outcome_beyond": high.reading.outcome if high else None,
            "back": [p.text for p in a.back], **more,
        }


def _way(base: Scenario, add: str | None, change: str | None, up_to: str | None, down_to: str | None) -> SearchRange:
    """The range to search; UsageError in one line if what is given is inconsistent."""
    from retrompi.studies.define.keys import number, with_range
    from retrompi.studies.search.tolerance import SearchRange

    if (add is None) == (change is None):
        raise UsageError(
            "give the key to change: --add KEY adds to its value, --change KEY multiplies or divides it", code="missing-option"
        )
    if up_to is not None and down_to is not None:
        raise UsageError("--up-to and --down-to are mutually exclusive", code="conflicting-options")
    if add is not None and down_to is not None:
        raise UsageError("--add increases the key; to decrease it use --change KEY --down-to VALUE", code="bad-range")
    key = number(base, str(add or change))
    if math.isnan(key.value):
        raise UsageError(f"'{key.path}' has no initial value in '{base.name}'; give one with --set {key.path}=VALUE", code="bad-range")
    limit_text = up_to if up_to is not None else down_to
    down = down_to is not None or (change is not None and up_to is None and canonical(key.unit) in _FALLING)
    values_given = [key.value_text] if limit_text is None else [limit_text]
    scale = replace(with_range(key, values_given, log=False), larger="", digits=9)
    limit = scale.low if limit_text is not None else None
    if key.value <= 0 and (change is not None or limit is None):
        raise UsageError(f"'{key.path}' is 0: use --add {key.path} with a largest value in --up-to", code="bad-range")
    if limit is None:
        limit = key.value / FARTHEST if down else key.value * FARTHEST
        if key.whole:
            limit = max(1.0, key.value / 64) if down else key.value * 64
    if limit == key.value or (limit > key.value) == down:
        word = "below" if down else "above"
        raise UsageError(f"'{key.path}' is {key.value_text}; give a value {word} it", code="bad-range")
    if change is not None:
        return SearchRange(scale, key.value, 2.0, key.value / limit if down else limit / key.value, by_factor=True, down=down)
    first = 1.0 if key.whole else key.value / 8 if key.value > 0 else limit / 1024
    return SearchRange(scale, key.value, first, limit - key.value)


def tolerance_of(
    base: Scenario, metric: Metric, moves: tuple[str | None, str | None, str | None, str | None], asking: Asking, *,
    shares: Sequence[float], width: float, one_run: bool, spec: Spec | None,
) -> Tolerance:
    """The search; ``moves`` are the key to add to, the key to multiply, the largest and the least value."""
    from retrompi.studies.define import case
    from retrompi.studies.define.used_overrides import refuse_idle
    from retrompi.studies.search.tolerance import tolerance as search

    way = _way(base, *moves)
    if one_run and metric.name != "time":
        raise UsageError(f"--one-run is about the time of the run, not about {metric.name}", code="conflicting-options")
    far = case.apply(base, {way.scale.key: way.scale.text(way.value(way.limit))})
    case.identity(far)
    refuse_idle(far)
    with asking(base, metric, 40) as ask:
        (start,) = ask([{}])

        def evaluate(values: Sequence[float]) -> Sequence[Any]:
            return ask([{way.scale.key: way.scale.text(x)} for x in values])

        found = search(evaluate, way, start, slower=shares, more_is_better=metric.more_is_better, width=width)
        drawn = [] if spec is None else _search_draws(ask, spec, way, shares, width)
        warnings = cautions_of(ask, [base, far], spec)
    return Tolerance(base, metric, found, warnings, _alone(base, way, shares) if one_run else {}, spec, drawn)


def _alone(base: Scenario, way: SearchRange, shares: Sequence[float]) -> dict[float, Tolerated]:
    """Tolerances read off the critical path of the base run alone, by share."""
    from retrompi.sim import simulate
    from retrompi.sim.observe import Observe
    from retrompi.studies.search.sensitivity import tolerances

    result = simulate.run(base.question(), Observe(critical_path=True))
    simulate.require_completed(result, base.name)
    return {t.slower: t for t in tolerances(base, result.recorded_path, way.scale.key, tuple(shares), down=way.down)}


def _search_draws(ask: Asker, spec: Spec, way: SearchRange, shares: Sequence[float], width: float) -> list[Distance]:
    """The search in each draw; the key's own value is the given one in all of them."""
    from retrompi.studies.search.certainty import WIDTH, DrawnAsker, distances, together
    from retrompi.studies.search.tolerance import tolerance as search

    asker = DrawnAsker.like(ask, spec)

    def one(at: Callable[[Sequence[Any]], Sequence[Any]]) -> Found:
        def evaluate(values: Sequence[float]) -> Sequence[Any]:
            return at([{way.scale.key: way.scale.text(x)} for x in values])

        (start,) = evaluate([way.base])
        return search(evaluate, way, start, slower=shares, more_is_better=ask.metric.more_is_better, width=max(width, WIDTH))

    return distances(together([one] * spec.draws, asker), shares, spec.level)


@check_arguments
def tolerance(
    scenario: str | Path, *, add: str | None = None, change: str | None = None, up_to: str | float | None = None,
    down_to: str | float | None = None, slower: float | Sequence[float] = 0.05, metric: str = "time", one_run: bool = False,
    tolerance: float = 0.01, level: float = 0.9, draws: int = 0, set: Mapping[str, str | float] | None = None,
    what_if_hardware: bool = False, store: Store | Path | str | None = None, fresh: bool = False, jobs: int | None = None,
    progress: Progress | None = None,
) -> Tolerance:
    """Finds how far a number can move before a metric is worse by the shares ``slower`` (0.05: 5 %).

    ``add`` names a key whose value is added to, ``change`` one that is multiplied (a rate is divided); ``up_to`` or ``down_to`` is the
    limit. ``tolerance`` is the relative width of a narrow answer; ``one_run`` adds what the critical path of the base run alone says;
    ``draws`` repeats the search in draws of what is uncertain (``drawn``, at ``level``). The others as in `sweep`. Raises UsageError for
    a wrong key or range, NoNumber (a RetrompiError) if the scenario itself has no number.

    >>> found = retrompi.tolerance("bf-wmpi-shared", add="wmpi.event", up_to="1ms", metric="time@1KiB", slower=0.5, tolerance=0.5,
    ...                            set={"trace.sizes": "1KiB", "trace.reps": 2})
    >>> found.rows[0]["estimate"] > 0    # s
    True
    """
    ends = tuple(None if end is None else str(end) for end in (up_to, down_to))
    shares = list(slower) if isinstance(slower, Sequence) else [slower]
    with needs.asking(what_if_hardware or needs.allows_fiction()):
        base = scenario_of(scenario, texts(set or {}))
        wanted = metric_of(metric, "time", base)
        return tolerance_of(
            base, wanted, (add, change, ends[0], ends[1]), asking_in(store, fresh, jobs, progress, "tolerance"), shares=shares,
            width=tolerance, one_run=one_run, spec=spec_of(level, draws),
        )
