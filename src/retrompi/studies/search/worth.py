"""Value of information: which parameters and which measurements would make a predicted number more certain, from the draws of an ensemble.

    found = worth(drawn, metric, {"time@1KiB": values})
    told(drawn, metric)             # in a line or two

Shares are of the variance of the number's logarithm (`information`), for a number that can be zero of the number itself. The model's
discrepancy is among the candidates: no parameter tells it, a measurement of the same system does. A measurement is of the real system, so
that it has the discrepancy, and no error of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from retrompi.base.errors import RetrompiError
from retrompi.sim.resolved import Resolved
from retrompi.spec.question import Beside, Question, pingpong
from retrompi.studies.define import catalogue, metrics
from retrompi.studies.draws.uncertainty import Ensemble, Interval, interval
from retrompi.studies.search.information import FEWEST, Information, KnownQuantity, information
from retrompi.studies.search.reading import NoNumber

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from retrompi.studies.define.scenario import Scenario

__all__ = ["DISCREPANCY", "Measurement", "Worth", "deciding", "measurements", "worth", "worth_lines"]

DISCREPANCY = "discrepancy"
"""The name of the model's discrepancy among the parameters."""
Values = Sequence[float | None]
SIZES = ("0B", "1KiB", "64KiB", "1MiB")
REPETITIONS, WARM_UP = 20, 2
"""Of the PingPong that could be measured."""


@dataclass(frozen=True)
class Measurement:
    """A measurement that could be made: its ``name``, the ``question`` whose run stands for it, and the ``metric`` of it."""

    name: str
    question: Question
    metric: metrics.Metric


def measurements(scenario: Scenario, number: metrics.Metric, given: Sequence[str]) -> list[Measurement]:
    """The measurements ``given`` as METRIC of the scenario or SCENARIO:METRIC; without any, a PingPong of two ranks on the same machine.

    Not the number itself. Raises UsageError for an unknown scenario, and a metric that its runs cannot have.
    """
    found = []
    for text in given:
        name, colon, metric_text = text.rpartition(":")
        of = catalogue.scenario(name) if colon else scenario
        metric = metrics.parse(metric_text)
        metric.check(of)
        found.append(Measurement(text, metric.shorten(of).question(), metric))
    if given:
        return found
    curve = scenario.generator == "pingpong" and number.size_B is not None
    for text in SIZES:
        metric = metrics.parse(f"time@{text}")
        if not (curve and metric.size_B == number.size_B):
            work = pingpong([metric.size_B or 0], REPETITIONS, WARM_UP)
            asked = replace(scenario.question(), workload=work, beside=Beside(), idle_overrides=True)
            try:
                Resolved.of(asked)
            except RetrompiError:
                return []  # a placement that two ranks cannot have
            found.append(Measurement(f"pingpong:{metric.name}", asked, metric))
    return found


@dataclass(frozen=True)
class Worth:
    """The value of knowing each parameter, and of each measurement, for a number; ``number`` is its interval.

    ``left``: path -> the share of the prior's variance that the calibrations left (1: no calibration saw it). ``by``: path of a parameter
    that matters -> the measurement that would tell most about it, None if the draws show none.
    """

    number: Interval
    parameters: Information
    measurements: Information | None
    left: Mapping[str, float]
    by: Mapping[str, KnownQuantity | None]

    @property
    def matter(self) -> list[str]:
        """The parameters that the draws show to matter, those that tell most first."""
        return _matter(self.parameters)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each parameter and each measurement."""
        then = {s.name: s.share for s in self.parameters.steps}
        found = [{"kind": "parameter", **i.row(), "with_those_before": then.get(i.name), "left": self.left.get(i.name),
                  "measurement": by.name if (by := self.by.get(i.name)) is not None else None,
                  "measurement_share": by.share if by is not None else None} for i in self.parameters.items]
        if self.measurements is not None:
            found += [{"kind": "measurement", **i.row()} for i in self.measurements.items]
        return found


def _finite(values: Values) -> NDArray[np.float64]:
    return np.array([math.nan if v is None else float(v) for v in values])


def _logarithm(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithm, if no value is zero or negative."""
    return np.log(values) if np.nanmin(values, initial=math.inf) > 0 else values


def worth(drawn: Ensemble, metric: metrics.Metric, measured: Mapping[str, Values] | None = None) -> Worth:
    """The parameters and measurements that would make ``metric`` of a run more certain; ``measured``: name -> a value for each draw, in any
    unit.

    Draws in which the run or a measurement has no number do not count. Raises NoNumber if too few are left, or the number does not vary.
    """
    told = _finite(drawn.values(metric))
    plain = _plain(drawn, metric)
    known = ~np.isnan(told)
    if known.sum() < FEWEST:
        raise NoNumber(f"{known.sum()} of {len(told)} draws have a number: too few to say what would make it more certain "
                       f"(it takes {FEWEST})")
    number = _logarithm(told)
    columns = dict(drawn.shares)
    apart = number - _logarithm(plain)
    if np.ptp(apart[known]) > 0:
        columns[DISCREPANCY] = apart
    parameters = information(number[known], {name: x[known] for name, x in columns.items()})
    left = {path: drawn.seen.get(path, 1.0) for path in drawn.shares}
    others = {name: _logarithm(_finite(values)) for name, values in (measured or {}).items()}
    both = known & np.all([~np.isnan(v) for v in others.values()], axis=0) if others else known
    if not others or both.sum() < FEWEST:
        return Worth(interval(told, drawn.spec.level), parameters, None, left, {})
    others = {name: v[both] for name, v in others.items()}
    made = Worth(interval(told, drawn.spec.level), parameters, information(number[both], others), left, {})
    by: dict[str, KnownQuantity | None] = {}
    for path in made.matter:
        if path != DISCREPANCY:
            about = information(columns[path][both], others).resolved
            by[path] = about[0] if about else None
    return Worth(made.number, parameters, made.measurements, left, by)


def worth_lines(drawn: Ensemble, metric: metrics.Metric) -> list[str]:
    """In a line: the parameters that matter most for ``metric``; none if the draws show none, or are too few."""
    try:
        found = worth(drawn, metric)
    except NoNumber:
        return []
    most = _most(found.parameters)
    return [f"what would make {metric.name} more certain, by the share of its variance: {most}"] if most else []


def deciding(a: Ensemble, b: Ensemble, metric: metrics.Metric) -> list[str]:
    """In a line: the parameters that matter most for the ratio of a metric of two runs; none if the draws show none, or are too few."""
    sides = [(_finite(one.values(metric)), _plain(one, metric)) for one in (a, b)]
    known = np.all([~np.isnan(v) for v, _ in sides], axis=0)
    if known.sum() < FEWEST or min(np.nanmin(v) for v, _ in sides) <= 0:
        return []
    (one, plain_one), (other, plain_other) = ((np.log(v[known]), np.log(p[known])) for v, p in sides)
    columns = {path: x[known] for path, x in {**a.shares, **b.shares}.items()}
    apart = {f"{DISCREPANCY} of {e.asked.model.name}": v for e, v in ((a, one - plain_one), (b, other - plain_other)) if np.ptp(v) > 0}
    try:
        most = _most(information(one - other, {**columns, **apart}))
    except NoNumber:
        return []
    return [f"what would decide it, by the share of the variance of the ratio: {most}"] if most else []


def _plain(drawn: Ensemble, metric: metrics.Metric) -> NDArray[np.float64]:
    """The metric without the discrepancy."""
    return _finite([metric.of(*rows) for rows in zip(drawn.runs, drawn.points, drawn.ranks, strict=True)])


def _matter(found: Information) -> list[str]:
    return list(dict.fromkeys([*(i.name for i in found.resolved), *(s.name for s in found.steps)]))


def _most(found: Information) -> str:
    """The three that matter most, with their shares: alone, or what they add where only that is resolved."""
    items = {i.name: i for i in found.items}
    parts = []
    for name in _matter(found)[:3]:
        i = items[name]
        shown = name.replace(DISCREPANCY, f"the {DISCREPANCY}", 1) if name.startswith(DISCREPANCY) else name
        parts.append(f"{shown} {i.share:.0%} ± {i.error:.0%}" if i.resolved else f"then {shown}")
    return ", ".join(parts)
