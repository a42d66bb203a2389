"""Sensitivity of a metric to the parameters of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from retrompi.api.answering import Answer, Asking, asking_in, cautions_of, metric_of, scenario_of, spec_of
from retrompi.api.checking import check_arguments
from retrompi.api.frames import Progress, Row, as_store, reporting, texts
from retrompi.base.errors import UsageError
from retrompi.sim.cautions import Caution
from retrompi.spec import needs

if TYPE_CHECKING:
    from retrompi.sim.resolved import Resolved
    from retrompi.store import Store
    from retrompi.studies.define.axes import Axis
    from retrompi.studies.define.metrics import Metric
    from retrompi.studies.define.scenario import Scenario
    from retrompi.studies.draws.uncertainty import Ensemble
    from retrompi.studies.search.tornado import OneAtATime, Sobol
    from retrompi.studies.search.worth import Worth

__all__ = ["Tornado", "change_of", "factors_of", "information_of", "one_at_a_time_of", "range_of", "sobol_of", "tornado"]

Method = Literal["oat", "sobol", "information"]


class Tornado(Answer):
    """Sensitivity of a metric: a row for each value tried, each index, or each parameter (by ``method``), the most important first.

    >>> found = retrompi.tornado("bf-wmpi-shared", {"wmpi.packet": ["64 KiB", "256 KiB"]}, metric="time@1KiB",
    ...                          set={"trace.sizes": "1KiB", "trace.reps": 2})
    >>> [row["key"] for row in found.rows], found.unit
    (['wmpi.packet', 'wmpi.packet'], 's')
    """

    def __init__(
        self, scenario: Scenario, metric: Metric, found: OneAtATime | Sobol | Worth, warnings: Sequence[Caution],
        drawn: Ensemble | None = None,
    ) -> None:
        super().__init__(scenario, metric, warnings)
        self.found, self.drawn = found, drawn

    @property
    def method(self) -> Method:
        """``oat`` (one key at a time), ``sobol`` or ``information``."""
        from retrompi.studies.search.tornado import OneAtATime, Sobol

        return "oat" if isinstance(self.found, OneAtATime) else "sobol" if isinstance(self.found, Sobol) else "information"

    @property
    def unit(self) -> str:
        """The unit of the metric, of ``base`` and ``swing`` (s, B/s, ...)."""
        return self.metric.unit

    @property
    def base(self) -> float | None:
        """The metric of the scenario as it is, in its unit; None with ``sobol`` and ``information``."""
        from retrompi.studies.search.tornado import OneAtATime

        return self.found.base.value if isinstance(self.found, OneAtATime) else None

    @property
    def title(self) -> str:
        """The question in a few words, e.g. for a heading."""
        return f"what {self.metric.label} of {self.scenario.name} depends on"

    @property
    def rows(self) -> Sequence[Row]:
        """``oat``: key, base, value, metric, change (relative), unit, outcome, reason, run, swing, source of every value tried.
        ``sobol``: key, with, index (first, total, second), value, conf (share of the variance), range, source. ``information``: kind,
        name, share (by how much the variance would fall, if known), error, resolved, rank_low, rank_high, with_those_before, left,
        measurement, measurement_share."""
        from retrompi.studies.search.tornado import OneAtATime, Sobol

        if isinstance(self.found, OneAtATime):
            return _oat_rows(self.found, self.metric)
        return _sobol_rows(self.found) if isinstance(self.found, Sobol) else self.found.rows()


def change_of(found: OneAtATime, value: float | None) -> float | None:
    """The relative change of the metric from the base; None without a number."""
    start = found.base.value
    return None if value is None or not start else value / start - 1


def _oat_rows(found: OneAtATime, metric: Metric) -> list[dict[str, Any]]:
    """A row for each value tried, the bars in order."""
    return [
        {"key": bar.factor.key, "base": bar.factor.base, "value": text, "metric": r.value, "change": change_of(found, r.value),
         "unit": metric.unit, "outcome": r.outcome, "reason": r.reason, "run": r.run_id, "swing": bar.swing, "source": bar.factor.source}
        for bar in found.bars for text, r in zip(bar.factor.ends, bar.readings, strict=True)
    ]


def range_of(factor: Axis) -> str:
    """The range of a key, or its values."""
    joint = ".." if factor.span is not None else ","
    return joint.join(factor.ends) + (":log" if factor.span is not None and factor.span.log else "")


def _sobol_rows(found: Sobol) -> list[dict[str, Any]]:
    """A row for each index: first, total, and second of a pair."""
    rows: list[dict[str, Any]] = []
    for i in found.indices:
        both = (("first", i.first, i.first_conf), ("total", i.total, i.total_conf))
        rows += [
            {"key": i.factor.key, "with": "", "index": name, "value": v, "conf": c, "range": range_of(i.factor), "source": i.factor.source}
            for name, v, c in both
        ]
    for s in found.seconds:
        rows.append({"key": s.a, "with": s.b, "index": "second", "value": s.index, "conf": s.conf, "range": "", "source": ""})
    return rows


def factors_of(base: Scenario, vary: Mapping[str, str]) -> list[Axis]:
    """The varied keys with their ranges or lists of values, checked against the scenario; without any, all that have a sourced range.
    Raises UsageError for an unknown key, a wrong unit or a range that is none."""
    from retrompi.studies.define import axes, case, keys

    if not vary:
        found = keys.sourced_factors(base)
        if not found:
            raise UsageError(f"no parameter of '{base.name}' has a sourced range; give --vary KEY=LOW..HIGH", code="nothing-varies")
        return found
    checker = case.ValueChecker(base, [base.model], [base.platform])
    out: list[Axis] = []
    for key, text in vary.items():
        name = case.proper(key)
        if any(f.key == name for f in out):
            raise UsageError(f"'{name}' varies twice", code="duplicate-name")
        axis = axes.parse(name, text.strip(), continuous=True)
        whole = axis.span is not None and keys.number(base, name).whole
        span = axis.span.in_whole_numbers() if axis.span is not None and whole else axis.span
        factor = replace(axis, span=span, base=case.about(base, name).text)
        if len(factor.ends) > 64:
            raise UsageError(f"'{name}' has {len(factor.ends)} values; a tornado takes LOW..HIGH or a short list", code="bad-range")
        checker.check(name, factor.ends)
        out.append(factor)
    return out


def _check(base: Scenario, metric: Metric, factors: Sequence[Axis]) -> None:
    """Raises UsageError for a metric that an end does not have, and for a key without effect, before anything runs."""
    from retrompi.studies.define import case
    from retrompi.studies.define.used_overrides import refuse_idle

    for f in factors:
        for text in f.ends[:1]:
            metric.check(case.apply(base, {f.key: text}))
        refuse_idle(*(case.apply(base, {f.key: text}) for text in f.ends))


def one_at_a_time_of(base: Scenario, metric: Metric, factors: Sequence[Axis], asking: Asking) -> Tornado:
    """Each key alone, at both ends of its range."""
    from retrompi.studies.search.tornado import one_at_a_time

    _check(base, metric, factors)
    with asking(base, metric, 1 + sum(len(f.ends) for f in factors)) as ask:
        return Tornado(base, metric, one_at_a_time(ask, factors), cautions_of(ask, [base]))


def sobol_of(
    base: Scenario, metric: Metric, factors: Sequence[Axis], asking: Asking, *, samples: int, seed: int, second: bool, incomplete: str
) -> Tornado:
    """Sobol indices of the keys, drawn together over their ranges."""
    from retrompi.studies.search.tornado import saltelli, sobol

    _check(base, metric, factors)
    expected = len(saltelli(factors, samples, seed, second))  # rejects invalid samples before anything runs
    with asking(base, metric, expected) as ask:
        found = sobol(ask, factors, samples=samples, seed=seed, second=second, incomplete=incomplete)
        return Tornado(base, metric, found, cautions_of(ask, [base]))


def information_of(
    base: Scenario, metric: Metric, measure: Sequence[str], draw: Callable[[Sequence[Resolved]], Sequence[Ensemble]]
) -> Tornado:
    """Value of information: the share of the metric's variance that knowing each parameter, or making each measurement, would remove.

    ``draw`` simulates the draws of the question and of each measurement that could be made.
    """
    from retrompi.sim.resolved import Resolved
    from retrompi.studies.read.cautions import of_scenarios
    from retrompi.studies.search.worth import measurements, worth

    asked = measurements(base, metric, measure)
    drawn = draw([Resolved.of(q) for q in (metric.shorten(base).question(), *(a.question for a in asked))])
    values = {a.name: one.values(a.metric) for a, one in zip(asked, drawn[1:], strict=True)}
    return Tornado(base, metric, worth(drawn[0], metric, values), of_scenarios([(base.model, base)]), drawn[0])


@check_arguments
def tornado(
    scenario: str | Path, vary: Mapping[str, str | Sequence[str | float]] | None = None, *, metric: str = "time", method: Method = "oat",
    samples: int = 64, seed: int = 1, second: bool = False, incomplete: Literal["refuse", "drop"] = "refuse", level: float = 0.9,
    draws: int = 100, measure: Sequence[str] = (), set: Mapping[str, str | float] | None = None, what_if_hardware: bool = False,
    store: Store | Path | str | None = None, fresh: bool = False, jobs: int | None = None, progress: Progress | None = None,
) -> Tornado:
    """Finds which parameters matter for a metric: one at a time over its range, by Sobol indices, or what would make it more certain.

    ``vary`` has a range (``"5us..90us"``) or a list of values for each key; None: every parameter that the run uses and that has a sourced
    range. ``sobol`` draws all keys together (``samples`` blocks, a power of two; ``second``: interactions of pairs too; ``incomplete``:
    what to do with runs that do not complete). ``information`` takes ``draws`` draws of all that is uncertain, and the measurements that
    could be made (``measure``). ``what_if_hardware``, ``jobs`` and ``progress`` as in `sweep`. Raises UsageError for a wrong key or
    range, NoNumber (a RetrompiError) if the scenario itself has no number.

    >>> found = retrompi.tornado("bf-wmpi-shared", {"wmpi.event": "1us..100us"}, metric="time@1KiB",
    ...                          set={"trace.sizes": "1KiB", "trace.reps": 2})
    >>> found.rows[0]["swing"] > 0    # s
    True
    """
    from retrompi.studies.draws.uncertainty import ensemble

    if method not in ("oat", "sobol", "information"):
        raise UsageError(f"no method '{method}': oat, sobol or information", code="unknown-name")
    if measure and method != "information":
        raise UsageError("'measure' is for method='information'", code="unused-option")
    with needs.asking(what_if_hardware or needs.allows_fiction()):
        base = scenario_of(scenario, texts(set or {}))
        wanted = metric_of(metric, "time", base)
        if method == "information":
            if vary:
                raise UsageError("method='information' draws all that is uncertain; 'vary' does not apply then", code="conflicting-options")
            if (spec := spec_of(level, draws)) is None:
                raise UsageError("method='information' takes at least two draws", code="out-of-range")
            with reporting(progress, "draws") as report:
                return information_of(base, wanted, measure, lambda asked: ensemble(as_store(store), asked, spec, report, fresh))
        factors = factors_of(base, {k: v if isinstance(v, str) else ",".join(map(str, v)) for k, v in (vary or {}).items()})
        asking = asking_in(store, fresh, jobs, progress, "tornado")
        if method == "sobol":
            return sobol_of(base, wanted, factors, asking, samples=samples, seed=seed, second=second, incomplete=incomplete)
        return one_at_a_time_of(base, wanted, factors, asking)
