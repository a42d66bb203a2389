"""Why an interval over draws is as it is: the nominal value outside it, an end far from the median, a level that the draws do not resolve.

All of it is computed from the draws: their parameters, and the counters of their runs. Where these do not tell, nothing is said of a cause.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from retrompi.base.units import format_quantity
from retrompi.sim.cautions import Caution
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.declare.result import metrics as counters
from retrompi.studies.draws.uncertainty import Ensemble, Interval, Spec, interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from retrompi.spec.declare.number import Number
    from retrompi.studies.read.view import View

__all__ = ["FAR", "DrawnReading", "fewest", "of_view", "reasons", "unresolved_level"]

FAR = 4.0
"""An end that is more than so many times from the median is explained."""
_COUNTERS: Mapping[str, str] = {name: o.title for name, o in counters().items() if o.trouble}
_SEPARATES = 3.5
"""Standard errors by which the mean of a parameter has to differ between two groups of draws; there are some thirty parameters."""


@dataclass(frozen=True)
class DrawnReading:
    """A number of the nominal run and of each draw (None: it did not complete), in base units of ``unit``; ``name`` says which."""

    name: str
    nominal: float
    values: Sequence[float | None]
    unit: str = "s"


def fewest(level: float) -> int:
    """The fewest draws that resolve a central interval: one of them beyond each end, on average."""
    return math.ceil(2 / (1 - Fraction(repr(float(level)))))


def unresolved_level(spec: Spec) -> list[Caution]:
    """A caution if there are too few draws for the level."""
    if spec.draws >= fewest(spec.level):
        return []
    told = f"{spec.draws} draws do not resolve an interval at {100 * spec.level:.12g} %, which takes {fewest(spec.level)}"
    return [Caution("unresolved-level", f"{told}: its ends are about the least and the largest draw")]


def reasons(drawn: Ensemble, readings: Sequence[DrawnReading]) -> list[Caution]:
    """Cautions about the intervals of these numbers: one sentence for all numbers alike, which names the first and counts the others."""
    found: list[Caution] = unresolved_level(drawn.spec)
    outside = [r for r in readings if _has_number(r) and not interval(r.values, drawn.spec.level).holds(r.nominal)]
    if outside:
        found.append(Caution("nominal-outside", _outside(drawn, outside[0]) + _more(outside)))
    far = [r for r in readings if _has_number(r) and _far(interval(r.values, drawn.spec.level))]
    if far:
        found.append(Caution("far-end", _end(drawn, far[0]) + _more(far)))
    return found


def of_view(v: View) -> list[Caution]:
    """Cautions about the intervals of a study's points: of how many, and which is the first; `reasons` of a point alone says why."""
    if not v.draws:
        return []
    found = unresolved_level(Spec(v.level, v.draws))
    having = [r for r in v.rows if r["value"] is not None and r["low"] is not None]
    outside = [r for r in having if not r["low"] <= r["value"] <= r["high"]]
    if outside:
        first = ", ".join(f"{k}={x}" for k, x in outside[0]["values"].items())
        told = (f"{v.metric.name}: the nominal value lies outside its interval at {len(outside)} of {len(having)} points, the first at "
                f"{first}; pingpong, explain, replay and compare with --uncertainty say by which parameters")
        found.append(Caution("nominal-outside", told))
    return found


def _has_number(r: DrawnReading) -> bool:
    return any(v is not None and not math.isnan(v) for v in r.values)


def _more(some: Sequence[DrawnReading]) -> str:
    return f" (and {len(some) - 1} more)" if len(some) > 1 else ""


def _numbers(r: DrawnReading) -> NDArray[np.float64]:
    return np.array([math.nan if v is None else float(v) for v in r.values])


def _outside(drawn: Ensemble, r: DrawnReading) -> str:
    """How many draws are beyond the nominal value, and by the draws of which parameters its own values lie outside too."""
    values = _numbers(r)
    done = int(np.count_nonzero(~np.isnan(values)))
    above = int(np.count_nonzero(values > r.nominal))
    side, n = ("above", above) if above * 2 > done else ("below", int(np.count_nonzero(values < r.nominal)))
    told = f"{r.name}: the nominal {format_quantity(r.nominal, r.unit)} lies outside: {n} of {done} draws are {side} it"
    known = ~np.isnan(values)
    priors = sorted(drawn.drawn.priors, key=lambda p: -_goes_with(drawn.shares[p.path][known], values[known]))
    odd = [one for prior in priors if (one := _beyond(drawn, prior)) is not None]
    own = [line for _, line in sorted(odd, key=lambda one: -one[0])]
    if own:
        return f"{told}; so do the nominal values of {' and '.join(own[:2])}{f', and {len(own) - 2} more' if len(own) > 2 else ''}"
    counted = _largest_counter(drawn, values > r.nominal if side == "above" else values < r.nominal)
    return f"{told}{f'; {counted}' if counted else ''}"


def _goes_with(shares: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    """How strongly the values go with a parameter: the absolute rank correlation."""
    if len(values) < 3 or np.ptp(shares) == 0 or np.ptp(values) == 0:
        return 0.0
    a, b = (np.argsort(np.argsort(x)) for x in (shares, values))
    return abs(float(np.corrcoef(a, b)[0, 1]))


def _beyond(drawn: Ensemble, prior: Number) -> tuple[int, str] | None:
    """Of a parameter whose nominal value lies outside the interval of its draws: how many are beyond it, and the words
    ``wmpi.library (20 us; 38 of 40 draws above it)``."""
    shares = drawn.shares[prior.path]
    at = prior.share(prior.value)
    low, high = np.quantile(shares, [(1 - drawn.spec.level) / 2, (1 + drawn.spec.level) / 2])
    if low <= at <= high or not 0 < at < 1:  # a nominal value at the end of its range has all draws on one side
        return None
    n = int(np.count_nonzero(shares > at if at < low else shares < at))
    return n, f"{prior.key} ({format_quantity(prior.value, prior.unit)}; {n} of {len(shares)} draws {'above' if at < low else 'below'} it)"


def _far(found: Interval) -> bool:
    return found.high > FAR * found.median or 0 < found.low < found.median / FAR


def _end(drawn: Ensemble, r: DrawnReading) -> str:
    """The draws at the far end, and the values that set them apart from the others."""
    values = _numbers(r)
    found = interval(r.values, drawn.spec.level)
    upper = found.high > FAR * found.median
    beyond = values > FAR * found.median if upper else values < found.median / FAR
    where = f"the upper end is {found.high / found.median:.3g} times the median"
    if not upper:
        where = f"the median is {found.median / found.low:.3g} times the lower end"
    n = int(np.count_nonzero(beyond))
    told = f"{r.name}: {where}, by {n} of {int(np.count_nonzero(~np.isnan(values)))} draws"
    counted = _largest_counter(drawn, beyond)
    parameters = _separating(drawn, beyond, ~beyond & ~np.isnan(values))
    why = [x for x in (counted, parameters) if x]
    return f"{told}: {'; '.join(why)}" if why else f"{told}; neither a counter nor a single parameter sets these apart"


def _largest_counter(drawn: Ensemble, beyond: NDArray[np.bool_]) -> str:
    """The counter of which these draws have most beside the others, if at least twice: ``14 packets sent again (in the others 0.2)``."""
    done = np.array([o == Outcome.COMPLETED for o in drawn.outcomes])
    inside, rest = beyond & done, ~beyond & done
    if not inside.any() or not rest.any():
        return ""
    best: tuple[float, str] | None = None
    for key, words in _COUNTERS.items():
        n = np.array([float((run.get("facts") or {}).get(key) or 0) for run in drawn.runs])
        a, b = float(n[inside].mean()), float(n[rest].mean())
        if a >= 1 and a >= 2 * b and (best is None or a / max(b, 0.1) > best[0]):
            best = a / max(b, 0.1), f"{a:.3g} {words} on average, in the others {b:.3g}"
    return "" if best is None else best[1]


def _separating(drawn: Ensemble, beyond: NDArray[np.bool_], rest: NDArray[np.bool_]) -> str:
    """The parameter whose draws differ most between the two groups, if they do beyond chance."""
    if beyond.sum() < 3 or rest.sum() < 3:
        return ""
    best: tuple[float, str] | None = None
    for prior in drawn.drawn.priors:
        shares: Any = drawn.shares[prior.path]
        a, b = shares[beyond], shares[rest]
        error = shares[beyond | rest].std() * math.sqrt(1 / len(a) + 1 / len(b))
        z = (a.mean() - b.mean()) / error if error > 0 else 0.0
        if abs(z) > _SEPARATES and (best is None or abs(z) > best[0]):
            best = abs(z), f"with {'large' if z > 0 else 'small'} {prior.key}"
    return "" if best is None else best[1]
