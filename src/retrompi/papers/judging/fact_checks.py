"""Evaluators of measured facts: numbers at dotted paths in the results of a study's experiments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from retrompi.papers.judging.findings import Check, Data, Finding, Unavailable, sizes_of, to_unit, unit_of
from retrompi.papers.statements import metrics
from retrompi.papers.statements.claims import Claim, SizeRange

__all__ = ["FACT_EVALUATORS"]


def _near(claim: Claim, check: Check, data: Data) -> Finding:
    """A fact at ``path`` against a number printed without a tolerance: within FITTED of it, PREDICTED when it was held out."""
    if claim.low is None or claim.low != claim.high:
        raise ValueError(f"{claim.id}: 'near' needs a single published number")
    unit = unit_of(claim, check)
    value = to_unit(float(data.fact(check["path"])), unit)
    slack = metrics.FITTED if claim.use == "calibrate" else metrics.PREDICTED
    low, high = sorted((claim.low * (1 - slack), claim.low * (1 + slack)))
    off = value / claim.low - 1
    return Finding(low <= value <= high, value, f"published {claim.low:g}, {off:+.1%} (at most {slack:.0%})", low, high, unit)


def _digits(claim: Claim, check: Check, data: Data) -> Finding:
    """A fact rounds to the number as it is printed: half a unit of its last digit either way."""
    found = re.search(r"(\d+(?:\.(\d+))?)\s*(%?)", claim.value)
    if found is None or claim.low is None:
        raise ValueError(f"{claim.id}: no printed number in '{claim.value}'")
    half = 0.5 * 10.0 ** -len(found[2] or "") * (0.01 if found[3] else 1.0)
    unit = unit_of(claim, check)
    value = to_unit(float(data.fact(check["path"])), unit)
    low, high = claim.low - half, claim.low + half
    return Finding(low <= value <= high, value, f"printed as {found[0].strip()}", low, high, unit)


def _extremes(claim: Claim, check: Check, data: Data) -> Finding:
    """Facts ``path``.min and ``path``.max are each within a factor SAME of the published minimum and maximum."""
    if claim.low is None or claim.high is None:
        raise ValueError(f"{claim.id}: 'extremes' needs a minimum and a maximum")
    unit = unit_of(claim, check)
    told, off = [], []
    for name, published in (("min", claim.low), ("max", claim.high)):
        value = to_unit(float(data.fact(f"{check['path']}.{name}")), unit)
        off.append(max(value / published, published / value))
        told.append(f"{name} {value:.4g} against {published:g} ({value / published - 1:+.0%})")
    return Finding(max(off) <= metrics.SAME, float(f"{max(off):.4g}"), "; ".join(told), 1.0, metrics.SAME, "ratio")


def _compare(claim: Claim, check: Check, data: Data) -> Finding:
    """``relation`` such as "a > b >= c" between the facts at ``paths``; the larger number is on the left.

    ``>+`` is larger by more than a factor SAME, ``>>`` by a factor MUCH or more.
    """
    tokens = check["relation"].split()
    names, signs = tokens[::2], tokens[1::2]
    values = {n: float(data.fact(check["paths"][n])) for n in dict.fromkeys(names)}
    ok = True
    for a, sign, b in zip(names, signs, names[1:], strict=False):
        if sign not in (">", ">=", "=", ">+", ">>"):
            raise ValueError(f"{claim.id}: no relation '{sign}'; valid: > >= = >+ >>")
        same = max(values[a], values[b]) <= metrics.SAME * min(values[a], values[b])
        if sign in (">+", ">>"):
            ok = ok and values[a] > metrics.SAME * values[b] and (sign == ">+" or values[a] >= metrics.MUCH * values[b])
        else:
            ok = ok and (same if sign == "=" else values[a] > values[b] or (sign == ">=" and values[a] == values[b]))
    return Finding(ok, ", ".join(f"{n} {v:.4g}" for n, v in values.items()), check["relation"])


_ENDS: Mapping[str, SizeRange] = {"small": SizeRange(0, 1 << 10), "large": SizeRange(1 << 20, None)}


def _faster(claim: Claim, check: Check, data: Data) -> Finding:
    """The curve ``better`` beats ``worse`` (each [model, mode]): median over the sizes of the ratio of times above 1.

    ``sizes``: a column of the claim, "small" (up to 1 KiB), "large" (from 1 MiB), or nothing for all sizes. With ``substantially``
    the ratio must be above SAME.
    """
    a, b = (data.curve(*check[k]) for k in ("better", "worse"))
    sizes = _ENDS.get(check.get("sizes", "")) or sizes_of(claim, check)
    if not metrics.common(a, b, sizes):
        raise Unavailable(f"needs simulated sizes of both curves in {sizes}")
    ratio = metrics.median_ratio(b, a, sizes)
    least = metrics.SAME if check.get("substantially") else 1.0
    names = " / ".join(" ".join(check[k]) for k in ("worse", "better"))
    return Finding(ratio > least, float(f"{ratio:.4g}"), f"median time ratio of {names}", least, None, "ratio")


def _failures(claim: Claim, check: Check, data: Data) -> Finding:
    """Programs that fail, ``path``, of ``programs`` (MODEL is replaced by each of ``models``), against a published count such as 87.

    A count of passed programs is converted to one of failed programs; ``scaled``: scaled to the number of available programs.
    """
    total = re.search(r"(\d+) of (\d+)", claim.value)
    if total is None or claim.low is None or claim.high is None:
        raise ValueError(f"{claim.id}: no 'n of N' in '{claim.value}'")
    low, high = claim.low, claim.high
    if claim.observable != "tests failed":
        low, high = int(total[2]) - high, int(total[2]) - low
    told, values = [], {}
    for model in check["models"]:
        values[model] = float(data.fact(check["path"].replace("MODEL", model)))
        programs = int(data.fact(check["programs"].replace("MODEL", model)))
        told.append(f"{model}: {values[model]:g} of {programs} recorded programs fail")
        if check.get("scaled"):
            low, high = low * programs / int(total[2]), high * programs / int(total[2])
    worst = max(values, key=lambda m: abs(values[m] - (low + high) / 2))
    return Finding(all(low <= v <= high for v in values.values()), values[worst], "; ".join(told), low, high, "programs that fail")


def _nought(claim: Claim, check: Check, data: Data) -> Finding:
    """A counted fact is zero."""
    value = float(data.fact(check["path"]))
    return Finding(value == 0, value, check["path"], 0.0, 0.0, str(check.get("unit", "")))


FACT_EVALUATORS: Mapping[str, Callable[[Claim, Check, Data], Finding]] = {
    "near": _near,
    "digits": _digits,
    "extremes": _extremes,
    "compare": _compare,
    "faster": _faster,
    "failures": _failures,
    "nought": _nought,
}
"""Kind of check -> its evaluator."""
