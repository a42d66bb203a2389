"""Evaluators for each kind of statement about curves and counted facts; `fact_checks` contains those about measured facts.

The checks of every claim are beside ``claims.csv``; published numbers come from the claim's own row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from statistics import median

from retrompi.base.errors import InputError, nearest
from retrompi.papers.judging.curve_checks import curve_check
from retrompi.papers.judging.fact_checks import FACT_EVALUATORS
from retrompi.papers.judging.findings import (
    Check,
    Data,
    Finding,
    Unavailable,
    in_range,
    number_of,
    one_size,
    part_of,
    sizes_of,
    to_unit,
    unit_of,
)
from retrompi.papers.statements import metrics
from retrompi.papers.statements.claims import Claim, SizeRange
from retrompi.spec.declare.curve import TimeCurve

__all__ = ["EVALUATORS", "evaluate", "stated_count"]


_METRICS = ("startup", "time_at", "bandwidth_at", "peak", "lowest", "median_time")
"""Metrics of a check: start-up is the time at 0 B, ``_at`` is at one size, the others are of the sizes stated."""


def _metric(name: str, curve: TimeCurve, claim: Claim, check: Check) -> float:
    if name not in _METRICS:
        raise ValueError(f"{claim.id}: no metric '{name}'; valid: {', '.join(_METRICS)}")
    if name == "startup":
        return number_of(curve, "time", 0)
    kind, at, _ = name.partition("_at")
    if at and "size" in check:
        return number_of(curve, kind, one_size(claim, check))
    if at and "sizes" not in check:
        raise ValueError(f"{claim.id}: '{name}' is at one size; say size = \"1 KiB\", or sizes = \"configuration\"")
    part = part_of(curve, claim, check)
    if at and len(part) != 1:
        raise Unavailable(f"needs exactly the size {sizes_of(claim, check)}")
    return number_of(part, kind)


def _range(claim: Claim, check: Check, data: Data) -> Finding:
    """A number in low..high: ``metric`` of each of ``models``, or of their largest with ``combine = "max"``."""
    unit = unit_of(claim, check)
    values = {m: to_unit(_metric(check["metric"], data.curve(m, check["mode"]), claim, check), unit) for m in check["models"]}
    if check.get("combine") == "max":
        best = max(values, key=lambda m: values[m])
        return in_range({best: values[best]}, claim, unit, f"largest of {', '.join(values)}: {best}")
    return in_range(values, claim, unit)


def _plateau(claim: Claim, check: Check, data: Data) -> Finding:
    """Approximately constant: spread <= CONSTANT over the sizes, and the median in low..high if given."""
    (model,) = check["models"]
    part = part_of(data.curve(model, check["mode"]), claim, check, least=2)
    values = part.series(check["metric"])
    spread = metrics.spread(values)
    flat = spread <= metrics.CONSTANT
    note = f"largest / smallest {spread:.3g} over {sizes_of(claim, check)} (at most {metrics.CONSTANT})"
    if claim.low is None or check.get("value") is False:
        return Finding(flat, float(f"{spread:.4g}"), note, 1.0, metrics.CONSTANT, "ratio")
    unit = unit_of(claim, check)
    found = in_range({model: to_unit(float(median(values)), unit)}, claim, unit, note)
    return Finding(bool(found.ok) and flat, found.observed, found.note, found.low, found.high, unit)


def _knee(claim: Claim, check: Check, data: Data) -> Finding:
    """A feature of the curve at a size in low..high: ``peak``, ``plateau``, ``step`` or ``bend``."""
    found = [_knee_of(claim, check, data.curve(m, check["mode"]), m) for m in check["models"]]
    bad = [f for f in found if not f.ok]
    pick = (bad or found)[0]
    if isinstance(pick.observed, str):
        told = "; ".join(f"{f.note}: {f.observed}" for f in found)
        return Finding(not bad, told, "", claim.low, claim.high, "B")
    return Finding(not bad, pick.observed, "; ".join(f.note for f in found if f.note), claim.low, claim.high, "B")


def _knee_of(claim: Claim, check: Check, whole: TimeCurve, model: str) -> Finding:
    if claim.low is None or claim.high is None:
        raise ValueError(f"{claim.id}: no size to judge a knee by")
    feature = check["feature"]
    curve = whole.within(SizeRange(1, None))
    if len(curve.sizes) < 2:
        raise Unavailable("needs a sweep over sizes")
    if feature == "peak":
        size = number_of(curve, "peak_size")
        return Finding(claim.low <= size <= claim.high, float(size), f"{model}: maximum at {size:.0f} B")
    if feature == "plateau":
        size = number_of(curve, "plateau_size")
        return Finding(
            claim.low <= size <= claim.high,
            float(size),
            f"{model}: within {metrics.CONSTANT} of the maximum from {size:.0f} B on",
        )
    if feature == "step":
        size, grown = number_of(curve, "step_size"), number_of(curve, "step")
        ok = claim.low <= size <= claim.high and grown >= metrics.STEP
        return Finding(ok, float(size), f"{model}: time x{grown:.3g} from {size / 2:.0f} B to {size:.0f} B (at least x{metrics.STEP:g})")
    if feature == "bend":
        size = int(claim.high)
        rest = metrics.after(whole, size)
        if 0 not in whole or size not in whole or len(rest.sizes) < 2:
            raise Unavailable(f"needs the sizes 0 B, {size} B and the doublings after it")
        small, grown = whole[size] / whole[0], metrics.mean_growth(rest.times)
        ok = small <= metrics.SMALL_INCREASE and grown >= metrics.GROWTH
        told = (
            f"T({size} B) = {small:.3g} T(0) (at most {metrics.SMALL_INCREASE}), then x{grown:.3g} per doubling (at least {metrics.GROWTH})"
        )
        return Finding(ok, told, model)
    if feature in ("drop", "recovery"):
        return _turn(feature, int(claim.high), curve, model)
    raise ValueError(f"{claim.id}: no feature '{feature}'; valid: peak, plateau, step, bend, drop, recovery")


def _turn(feature: str, size: int, curve: TimeCurve, model: str) -> Finding:
    """The bandwidth turns at ``size`` or the doubling before it: falls after a local maximum, or rises after a minimum."""
    sign = 1.0 if feature == "drop" else -1.0
    rates = dict(zip(curve.sizes, curve.rates, strict=True))
    places = [k for k in (size // 2, size) if all(n in rates for n in (k // 2, k, 2 * k))]
    if not places:
        raise Unavailable(f"needs the sizes around {size} B")
    told = ", ".join(f"{rates[k] * 1e-6:.4g} MB/s at {k} B" for k in (size // 4, size // 2, size, 2 * size, 4 * size) if k in rates)
    for k in places:
        before, here, then = rates[k // 2], rates[k], rates[2 * k]
        if sign * (here - before) >= 0 and sign * (here - then) > metrics.SLACK * here:
            return Finding(True, float(k), f"{model}: {told}")
    return Finding(False, f"no {feature} there", f"{model}: {told}")


def _trend(claim: Claim, check: Check, data: Data) -> Finding:
    """The shape of ``metric`` (time or bandwidth) over the claim's sizes; see `SHAPES`."""
    shape = SHAPES.get(check["shape"])
    if shape is None:
        raise ValueError(f"{claim.id}: no shape '{check['shape']}'; valid: {', '.join(SHAPES)}")
    found = [shape(data.curve(m, check["mode"]), claim, check) for m in check["models"]]
    told = "; ".join(f"{m}: {text}" for m, (_, text) in zip(check["models"], found, strict=True))
    return Finding(all(ok for ok, _ in found), told)


def _doubles(curve: TimeCurve, claim: Claim, check: Check) -> tuple[bool, str]:
    sizes = sizes_of(claim, check)
    if sizes is None:
        raise ValueError(f"{claim.id}: 'doubles' needs a size range")
    # The first size is compared with the one before it, which is on the boundary of "> 64K".
    part = curve.within(SizeRange(max(1, sizes.low), sizes.high))
    if len(part.sizes) < 2:
        raise Unavailable(f"needs two or more simulated sizes in {sizes}")
    low, high = metrics.DOUBLES
    grown = metrics.steps(part.series(check["metric"]))
    return all(low <= g <= high for g in grown), f"x{min(grown):.3g}..x{max(grown):.3g} per doubling"


def _slows(curve: TimeCurve, claim: Claim, check: Check) -> tuple[bool, str]:
    sizes = sizes_of(claim, check)
    if sizes is None or sizes.high is None:
        raise ValueError(f"{claim.id}: 'slows' needs an upper size")
    before, then = curve.within(SizeRange(1, sizes.high)), metrics.after(curve, sizes.high)
    if len(before.sizes) < 2 or len(then.sizes) < 2:
        raise Unavailable(f"needs simulated sizes on both sides of {sizes.high} B")
    a, b = (metrics.mean_growth(c.series(check["metric"])) for c in (before, then))
    return b < a, f"x{a:.3g} per doubling before, x{b:.3g} after"


def _increases(curve: TimeCurve, claim: Claim, check: Check) -> tuple[bool, str]:
    part = part_of(curve.within(SizeRange(1, None)), claim, check, least=2)
    values = part.series(check["metric"])
    worst = min(metrics.steps(values))
    ok = worst >= 1 - metrics.SLACK
    total = values[-1] / values[0]
    if check.get("rapidly"):
        ok = ok and total >= metrics.RAPIDLY
    return ok, f"weakest step x{worst:.4g}, x{total:.3g} in all"


def _decreases(curve: TimeCurve, claim: Claim, check: Check) -> tuple[bool, str]:
    part = part_of(curve, claim, check, least=2)
    values = part.series(check["metric"])
    ok = values[-1] < values[0] and max(values[1:-1], default=values[0]) <= values[0] * metrics.BUMP
    return ok, f"from {_value_text(values[0], check)} to {_value_text(values[-1], check)}, highest {_value_text(max(values), check)}"


def _dips(curve: TimeCurve, claim: Claim, check: Check) -> tuple[bool, str]:
    if len(curve.sizes) < 2 or curve.sizes[0] != 0:
        raise Unavailable("needs the simulated size 0 B and the next one")
    first, then = curve.times[:2]
    ok = (1 - metrics.SLIGHT) * first <= then < first
    return ok, f"T({curve.sizes[1]} B) / T(0) = {then / first:.5f}"


def _ends(curve: TimeCurve, claim: Claim, check: Check) -> tuple[bool, str]:
    part = part_of(curve, claim, check, least=2)
    if claim.low is None or claim.high is None:
        raise ValueError(f"{claim.id}: no low..high to judge the ends by")
    unit = unit_of(claim, check)
    first, last = (to_unit(t, unit) for t in (part.times[0], part.times[-1]))
    ok = all(claim.low <= t <= claim.high for t in (first, last))
    return ok, f"{first:.4g} {unit} at {part.sizes[0]} B, {last:.4g} {unit} at {part.sizes[-1]} B"


def _value_text(value: float, check: Check) -> str:
    return f"{value * 1e3:.4g} ms" if check["metric"] == "time" else f"{value * 1e-6:.4g} MB/s"


SHAPES: Mapping[str, Callable[[TimeCurve, Claim, Check], tuple[bool, str]]] = {
    "doubles": _doubles,
    "slows": _slows,
    "increases": _increases,
    "decreases": _decreases,
    "dips": _dips,
    "ends": _ends,
}


def _order(claim: Claim, check: Check, data: Data) -> Finding:
    """``relation`` such as "wmpi > winmpich >> hpvm" holds; a > b means that a is better.

    ``by`` is ``time`` (median over sizes of the ratio) or ``peak`` (largest bandwidth); ``throughout = true`` requires
    ``>`` to hold at every size.
    """
    tokens = check["relation"].split()
    names, signs = tokens[::2], tokens[1::2]
    told, ok = [], True
    for a, sign, b in zip(names, signs, names[1:], strict=False):
        better, worse = data.curve(a, check["mode"]), data.curve(b, check["mode"])
        ratio = number_of(better, "peak") / number_of(worse, "peak") if check["by"] == "peak" else metrics.median_ratio(worse, better)
        told.append(f"{a}:{b} {ratio:.3g}")
        if sign == "=":
            ok = ok and 1 / metrics.SAME <= ratio <= metrics.SAME
        elif sign in (">", ">>"):
            ok = ok and ratio > (metrics.MUCH if sign == ">>" else 1.0)
        else:
            raise ValueError(f"{claim.id}: no relation '{sign}'; valid: > >> =")
    for a in check.get("throughout", ()):
        others = [m for m in names if m != a]
        slower = all(x > y for b in others for _, x, y in metrics.common(data.curve(a, check["mode"]), data.curve(b, check["mode"]), None))
        told.append(f"{a} slower at every size: {'yes' if slower else 'no'}")
        ok = ok and slower
    by = "peak bandwidth" if check["by"] == "peak" else "median time"
    return Finding(ok, ", ".join(told), f"by {by}, {check['mode']} mode")


def _ratio(claim: Claim, check: Check, data: Data) -> Finding:
    """The first of ``models`` against the mean of the others: ratio, percent above, or difference in the claim's unit.

    ``metric`` is ``time`` (median over the claim's sizes) or ``startup``; ``within = "same"`` judges by SAME instead of
    low..high.
    """
    first, *others = check["models"]
    op, unit = check.get("op", "ratio"), unit_of(claim, check)
    a = data.curve(first, check["mode"])
    rest = [data.curve(m, check["mode"]) for m in others]
    if check["metric"] == "startup":
        x, y = _metric("startup", a, claim, check), sum(_metric("startup", c, claim, check) for c in rest) / len(rest)
        ratio, difference = x / y, x - y
    else:
        sizes = sizes_of(claim, check)
        if len(rest) != 1 or not metrics.common(a, rest[0], sizes):
            raise Unavailable(f"needs simulated sizes of {first} and {' '.join(others)} in {sizes}")
        ratio, difference = metrics.median_ratio(a, rest[0], sizes), metrics.median_difference(a, rest[0], sizes)
    if check.get("within") == "same":
        ok = 1 / metrics.SAME <= ratio <= metrics.SAME
        return Finding(ok, ratio, f"{first} / {' '.join(others)}", 1 / metrics.SAME, metrics.SAME, "ratio")
    value = {"ratio": ratio, "percent": (ratio - 1) * 100, "difference": to_unit(difference, unit)}[op]
    return in_range({first: value}, claim, unit, f"{first} against {' and '.join(others)}")


def _fact(claim: Claim, check: Check, data: Data) -> Finding:
    """A simulated fact at ``path`` in low..high, above zero (``positive``), or one of the words ``among``."""
    value = data.fact(check["path"])
    if "among" in check:
        return Finding(value in check["among"], str(value), check["path"])
    if check.get("positive"):
        return Finding(float(value) > 0, float(value), f"{check['path']} above zero", unit=str(check.get("unit", "")))
    unit = unit_of(claim, check)
    return in_range({check["path"]: to_unit(float(value), unit)}, claim, unit, check["path"])


def stated_count(claim: Claim, phrase: str) -> int:
    """The count stated in the claim's words: ``1 GRM`` -> 1; a phrase without a number counts as one.

    Raises ValueError when the words are not in the claim.
    """
    if m := re.search(rf"(\d+) {re.escape(phrase)}", claim.value):
        return int(m[1])
    if phrase in claim.value:
        return 1
    raise ValueError(f"{claim.id}: the words '{phrase}' are not in '{claim.value}'")


def _count(claim: Claim, check: Check, data: Data) -> Finding:
    """A counted fact equals the sum of the stated counts (``terms``: phrase, and the unit it is counted per).

    ``at_least = true`` accepts more.
    """
    value = float(data.fact(check["path"]))
    expected = sum(stated_count(claim, t["phrase"]) * float(data.fact(t["per"]) if "per" in t else 1) for t in check["terms"])
    more = bool(check.get("at_least"))
    told = " + ".join(f"{t['phrase']}" + (f" x {t['per']}" if "per" in t else "") for t in check["terms"])
    ok = value >= expected if more else value == expected
    return Finding(ok, value, f"{check['path']}; stated: {told} = {expected:g}", expected, None if more else expected)


def _none(claim: Claim, check: Check, data: Data) -> Finding:
    """The claim cannot be decided by simulation; ``why`` says what would decide it."""
    return Finding(None, None, check["why"])


EVALUATORS: Mapping[str, Callable[[Claim, Check, Data], Finding]] = {
    "range": _range,
    "plateau": _plateau,
    "knee": _knee,
    "trend": _trend,
    "order": _order,
    "ratio": _ratio,
    "fact": _fact,
    "count": _count,
    "none": _none,
    "curve": curve_check,
    **FACT_EVALUATORS,
}
"""Kind of check -> its evaluator."""


def evaluate(claim: Claim, check: Check, data: Data) -> Finding:
    """One check of one claim; missing ``data`` gives an undecided finding with the reason (or ``why``).

    Raises InputError for a check that cannot be: an unknown kind or metric, a missing key, a value of a wrong type.
    """
    try:
        kind = check["kind"]
        if kind not in EVALUATORS:
            raise ValueError(f"no kind of check '{kind}'{nearest(str(kind), EVALUATORS, 20)}")
        return EVALUATORS[kind](claim, check, data)
    except Unavailable as missing:
        return Finding(None, None, str(check.get("why", missing)))
    except KeyError as error:
        raise InputError(f"claim '{claim.id}': its check needs '{error.args[0] if error.args else '?'}'", code="missing-key") from None
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        said = str(error).removeprefix(f"{claim.id}: ")
        raise InputError(f"claim '{claim.id}': its check cannot be judged: {said}", code="bad-value") from None
