"""Checks of kind ``curve``: what is said about one of a paper's curves (`retrompi.papers.statements.curves`), or about two of them.

A check names its ``curve``, a ``metric`` and, for two, ``against`` (another curve, or "below": its layer below) and ``op``. The curves are
simulated once for all claims: `sizes_for` says at which sizes a check needs one besides its own grid, and the facts hold them as
``curves.NAME`` = {size_B, time_us (the grid), at_B, at_us (what checks asked for)}.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from retrompi.base import units
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.papers.judging.findings import Check, Data, Finding, Unavailable, base_value, in_range, number_of, one_size, to_unit, unit_of
from retrompi.papers.statements import metrics
from retrompi.papers.statements.claims import Claim, SizeRange
from retrompi.spec.declare.curve import TimeCurve

__all__ = ["METRICS", "OPS", "curve_check", "curves_of", "facts_of", "ideal", "sizes_asked", "sizes_for", "times_of"]

OPS = ("ratio", "difference", "deficit", "loss", "extra_rate")
BELOW = "below"
LATENCY_SIZE = 8
"""The size whose time is a latency, if none is named: NetPIPE's is half a round trip of less than 64 B."""
_AROUND = 8
"""Sizes on either side of a knee, over a factor of two."""


@dataclass(frozen=True)
class _Simulated:
    """A curve as simulated: its grid, and all sizes."""

    grid: TimeCurve
    every: TimeCurve


def facts_of(grid: Sequence[int], times: Mapping[int, float]) -> dict[str, list[float]]:
    """The facts of one curve: one-way times (s) at the sizes of its grid, and at the others that were asked for."""
    at = sorted(set(times) - set(grid))
    shown = sorted(set(grid) & set(times))
    return {"size_B": [*shown], "time_us": [times[s] * 1e6 for s in shown], "at_B": [*at], "at_us": [times[s] * 1e6 for s in at]}


def times_of(told: Mapping[str, Sequence[float]]) -> dict[int, float]:
    """Size -> time (s) of the facts of a curve."""
    pairs = [*zip(told["size_B"], told["time_us"], strict=True), *zip(told["at_B"], told["at_us"], strict=True)]
    return {int(s): t * 1e-6 for s, t in pairs}


def _curve(name: str, data: Data) -> _Simulated:
    told: Mapping[str, Any] = data.fact("curves")
    if name not in told:
        raise Unavailable(f"no simulated curve '{name}'")
    times = sorted(times_of(told[name]).items())
    every = TimeCurve(tuple(s for s, _ in times), tuple(t for _, t in times))
    return _Simulated(every.within(frozenset(told[name]["size_B"])), every)


# --- what a check asks for ---------------------------------------------------------------------------------------------------------


def curves_of(check: Check, below: str = "") -> list[str]:
    """The curves that a check names; ``below`` is the layer below its first."""
    against = check.get("against")
    return [str(check["curve"]), *([below if against == BELOW else str(against)] if against else [])]


def _size(claim: Claim, check: Check, default: int | None = None) -> int:
    """The one size of a check: its own, that of ``time@32B``, or that of the configuration. Raises ValueError without any."""
    if "size" in check:
        return one_size(claim, check)
    if found := re.search(r"@\s*(\d+)\s*B\b", claim.observable):
        return int(found[1])
    if default is not None:
        return default
    sizes = claim.sizes("configuration")
    if sizes is None or sizes.low != sizes.high:
        raise ValueError(f'{claim.id}: which size? Say size = "1 KiB" in the check')
    return sizes.low


def _parse_sizes(claim: Claim, given: Any) -> list[int]:
    try:
        return units.parse_sizes(given)
    except UsageError as error:
        raise ValueError(f"{claim.id}: sizes: {error}") from None


def _list(claim: Claim, check: Check) -> list[int]:
    if "sizes" not in check:
        raise ValueError(f"{claim.id}: '{check['metric']}' needs sizes, such as sizes = \"0..1KiB:+32\"")
    found = _parse_sizes(claim, check["sizes"])
    if len(found) < 2:
        raise ValueError(f"{claim.id}: a straight line needs two sizes or more")
    return sorted(found)


def _span(claim: Claim, check: Check) -> SizeRange | None:
    """``sizes = "A..B"`` as a range of the grid, both included; None for the whole grid."""
    if "sizes" not in check:
        return None
    ends = re.fullmatch(r"\s*([^.]+)\.\.([^.]*)\s*", str(check["sizes"]))
    if ends is None:
        raise ValueError(f"{claim.id}: sizes is '{check['sizes']}'; a range such as 64KiB..8MiB, or 64KiB.., is right")
    (low,) = _parse_sizes(claim, ends[1])
    return SizeRange(low, _parse_sizes(claim, ends[2])[0] if ends[2].strip() else None)


def _around(claim: Claim, check: Check) -> list[int]:
    """The sizes that show a step of time in low..high: close around it, and over a factor of two on both sides."""
    low, high = _knee(claim, check)
    inner = {low + round(i * (high - low) / 4) for i in range(5)}
    below = {round((low - 1) * 2 ** (-i / _AROUND)) for i in range(_AROUND + 1)}
    above = {round((high + 1) * 2 ** (i / _AROUND)) for i in range(_AROUND + 1)}
    return sorted(s for s in inner | below | above if s >= 0)


def _knee(claim: Claim, check: Check) -> tuple[int, int]:
    if claim.low is None or claim.high is None:
        raise ValueError(f"{claim.id}: no size low..high to look for a knee at")
    low, high = (round(base_value(v, unit_of(claim, check))) for v in (claim.low, claim.high))
    return max(low, 1), max(high, 1)


def sizes_for(claim: Claim, check: Check) -> list[int]:
    """The sizes (B) at which a check needs its curves besides their grids. Raises ValueError for a check that cannot be."""
    metric = str(check.get("metric"))
    if metric not in METRICS:
        raise ValueError(f"{claim.id}: no metric '{metric}' of a curve{nearest(metric, METRICS, 20)}")
    return METRICS[metric].sizes(claim, check)


def sizes_asked(claims: Iterable[Claim], checks: Mapping[str, Sequence[Check]], below: Mapping[str, str]) -> dict[str, set[int]]:
    """Curve -> the sizes that checks of kind ``curve`` ask for; ``below`` has every curve, with its layer below.

    Raises InputError naming the claim for a curve that is not there and for a check that cannot be.
    """
    found: dict[str, set[int]] = {name: set() for name in below}
    for claim in claims:
        for check in checks.get(claim.id, ()):
            if check.get("kind") != "curve":
                continue
            if "curve" not in check:
                raise InputError(f"claim '{claim.id}': its check needs 'curve'{nearest('', below)}", code="missing-key")
            for name in curves_of(check, below.get(str(check["curve"]), "")):
                if name not in found:
                    said = f"no curve '{name}'{nearest(name, below)}" if name else f"the curve '{check['curve']}' has no layer_below"
                    raise InputError(f"claim '{claim.id}': {said}", code="unknown-name")
                try:
                    found[name].update(sizes_for(claim, check))
                except ValueError as error:
                    said = str(error).removeprefix(f"{claim.id}: ")
                    raise InputError(f"claim '{claim.id}': its check cannot be judged: {said}", code="bad-value") from None
    return found


def ideal(grids: Mapping[str, Sequence[int]], sizes: Mapping[str, Iterable[int]], below: Mapping[str, str]) -> dict[str, Any]:
    """The facts of curves on an ideal network, 50 us and 10 MB/s, at their grids and further sizes: what a check can be tried on."""
    told = {name: facts_of(grid, {s: 50e-6 + s * 1e-7 for s in (*grid, *sizes.get(name, ()))}) for name, grid in grids.items()}
    return {"curves": told, "layers_below": dict(below)}


# --- metrics -----------------------------------------------------------------------------------------------------------------------


def _number(curve: _Simulated, claim: Claim, check: Check) -> float:
    """The metric of a check: of the sizes that it asks for, or of the grid."""
    metric = METRICS[check["metric"]]
    if not metric.number:
        raise ValueError(f'{claim.id}: \'{check["metric"]}\' compares two curves; say against = "NAME" or "{BELOW}"')
    if sizes := metric.sizes(claim, check):
        return number_of(curve.every, metric.number, *sizes)
    part = curve.grid.within(SizeRange(1, None)).within(_span(claim, check))
    if not part.sizes:
        raise Unavailable(f"needs simulated sizes in {_span(claim, check)}")
    return number_of(part, metric.number)


@dataclass(frozen=True)
class _Metric:
    """A number of a curve (`retrompi.spec.declare.curve.NUMBERS`), "" for one of two curves, and the sizes that it needs besides the
    grid."""

    number: str = ""
    sizes: Callable[[Claim, Check], list[int]] = lambda claim, check: []


def _one(claim: Claim, check: Check) -> list[int]:
    return [_size(claim, check)]


METRICS: Mapping[str, _Metric] = {
    "bandwidth_max": _Metric("peak"),
    "plateau": _Metric("plateau"),
    "time_at": _Metric("time", _one),
    "bandwidth_at": _Metric("bandwidth", _one),
    "latency": _Metric("time", lambda claim, check: [_size(claim, check, LATENCY_SIZE)]),
    "fit_startup": _Metric("fit_startup", _list),
    "fit_rate": _Metric("fit_rate", _list),
    "knee": _Metric("", _around),
    "dip": _Metric("dip"),
    "dip_depth": _Metric("dip_depth"),
    "time": _Metric(),
    "bandwidth": _Metric(),
}
"""Metric of a check -> what it is. ``time`` and ``bandwidth`` are medians over the sizes of two curves."""


# --- verdicts ----------------------------------------------------------------------------------------------------------------------


def curve_check(claim: Claim, check: Check, data: Data) -> Finding:
    """A number of a curve, or of two, in low..high; ``near``: within `metrics.FITTED` or `PREDICTED` of a number printed without tolerance.

    Raises ValueError for a check that cannot be, `Unavailable` when a curve or size was not simulated.
    """
    sizes_for(claim, check)  # a wrong check is found whether or not its curve was simulated
    op, metric = check.get("op"), check["metric"]
    if ("against" in check) != (op is not None):
        raise ValueError(f"{claim.id}: two curves need both 'against' and 'op' ({', '.join(OPS)})")
    if op is not None and op not in OPS:
        raise ValueError(f"{claim.id}: no op '{op}'{nearest(op, OPS)}")
    first = _curve(str(check["curve"]), data)
    if metric == "knee":
        if op is not None:
            raise ValueError(f"{claim.id}: a knee is one curve's")
        return _step(claim, check, first)
    unit = unit_of(claim, check)
    if op is None:
        return _judge(_to_unit(_number(first, claim, check), metric, unit), claim, check, f"{metric} of {check['curve']}")
    below = data.layers_below.get(str(check["curve"]), "")
    other = curves_of(check, below)[1]
    if not other:
        raise ValueError(f"{claim.id}: the curve '{check['curve']}' has no layer_below")
    second = _curve(other, data)
    pairs = _both(claim, check, first, second)
    value = float(median(_compare(claim, op, metric, unit, pair) for pair in pairs))
    over = f" at {len(pairs)} sizes" if len(pairs) > 1 else ""
    return _judge(value, claim, check, f"{op} of {check['curve']} and {other}{over}")


def _to_unit(value: float, metric: str, unit: str) -> float:
    return value * 100 if metric == "dip_depth" and unit == "%" else to_unit(value, unit)


def _both(claim: Claim, check: Check, first: _Simulated, second: _Simulated) -> list[tuple[float, float]]:
    """The numbers to compare, in base units: one pair of a metric, a pair a size of ``time`` and ``bandwidth``."""
    metric = check["metric"]
    if metric not in ("time", "bandwidth"):
        return [(_number(first, claim, check), _number(second, claim, check))]
    rows = [r for r in metrics.common(first.grid, second.grid, _span(claim, check)) if r[0] > 0 or metric == "time"]
    if not rows:
        raise Unavailable("the two curves have no simulated size in common there")
    return [(x, y) if metric == "time" else (size / x, size / y) for size, x, y in rows]


def _compare(claim: Claim, op: str, metric: str, unit: str, both: tuple[float, float]) -> float:
    """The comparison of two numbers in the unit that the claim is judged in."""
    mine, theirs = both
    if op in ("difference", "deficit"):
        return to_unit(mine - theirs if op == "difference" else theirs - mine, unit)
    if op == "extra_rate":
        if metric != "fit_rate":
            raise ValueError(f"{claim.id}: 'extra_rate' is of fit_rate: what a byte costs more")
        if mine >= theirs:
            raise Unavailable("its bytes do not cost more than those of the other curve")
        return to_unit(1 / (1 / mine - 1 / theirs), unit)
    if theirs == 0:
        raise Unavailable("the other curve's number is 0")
    if op == "loss":
        return (1 - mine / theirs) * (100 if unit == "%" else 1)
    return mine / theirs * (100 if unit == "%" else 1)


def _judge(value: float, claim: Claim, check: Check, note: str) -> Finding:
    unit = unit_of(claim, check)
    if not check.get("near"):
        return in_range({check["curve"]: value}, claim, unit, note)
    if claim.low is None or claim.high is None:
        raise ValueError(f"{claim.id}: 'near' needs a published number")
    slack = metrics.FITTED if claim.use == "calibrate" else metrics.PREDICTED
    middle = fmean((claim.low, claim.high))
    low, high = sorted(float(f"{middle * (1 + off):.6g}") for off in (-slack, slack))
    away = f"{value / middle - 1:+.1%}" if middle else ""
    return Finding(low <= value <= high, value, f"{note}: published {middle:g}, {away} (at most {slack:.0%})", low, high, unit)


def _step(claim: Claim, check: Check, curve: _Simulated) -> Finding:
    """The largest step of time, beyond the usual growth, over a factor of two around low..high lies there and is no rounding."""
    low, high = _knee(claim, check)
    unit = unit_of(claim, check)
    asked = _around(claim, check)
    rows = [(s, number_of(curve.every, "time", s)) for s in asked]
    slope = median((b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(rows))
    steps = [(abs(b[1] - a[1] - slope * (b[0] - a[0])) / a[1], a[0], b[0]) for a, b in pairwise(rows)]
    size, start, end = max(steps)
    at = float(end if start >= low - 1 else start)
    told = f"time steps by {size:.1%} from {start} B to {end} B"
    if size < metrics.SLACK:
        return Finding(False, "no step", f"{told}: less than {metrics.SLACK:.0%}", claim.low, claim.high, unit)
    ok = low - 1 <= start and end <= high + 1
    limits = claim.low, claim.high
    value = min(max(at, low), high) if ok else at
    return Finding(ok, to_unit(value, unit), told, *limits, unit)
