"""Verdicts: one evaluator per kind of statement, judged from stored points and start-up facts.

What is checked for which claim is `checks.toml`; published numbers come from the claim's own row. An evaluator returns a
`Finding`; several findings of one claim make one `Verdict`, which passes when all of them do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from retrompi.validate import metrics
from retrompi.validate.claims import Claim, SizeRange, checks
from retrompi.validate.metrics import Curve, curves

__all__ = ["EVALUATORS", "Data", "Finding", "Summary", "Verdict", "judge", "measure", "residual", "summary"]

Check = Mapping[str, Any]
Observed = float | str | None

# Published unit -> how many of it one base unit (s, B/s, B, 1) makes. "KB" and "KByte/s": the papers' K of a rate is 1000.
_PER_BASE: Mapping[str, float] = {
    "microseconds": 1e6,
    "ms": 1e3,
    "s": 1.0,
    "MByte/s": 1e-6,
    "KByte/s": 1e-3,
    "MByte": 1e-6,
    "bytes": 1.0,
    "B": 1.0,
    "ratio": 1.0,
    "%": 1.0,
    "probability": 1.0,
    "crashes": 1.0,
    "windows": 1.0,
    "processes": 1.0,
}


class Unavailable(Exception):
    """The data do not hold what a check needs; the text says what is missing."""


@dataclass(frozen=True)
class Finding:
    """What one check found: ``ok`` None means that it could not decide; ``low``/``high`` are what it judged by."""

    ok: bool | None
    observed: Observed
    note: str = ""
    low: float | None = None
    high: float | None = None
    unit: str = ""


@dataclass(frozen=True)
class Verdict:
    """The judgement of one claim.

    ``verdict`` is pass, fail or unjudged; ``observed`` is in ``unit``; ``residual`` is the signed distance of the observed
    number outside ``low``..``high`` (0 inside, None without a number); ``reading`` says how the words were read;
    ``contradiction`` is the reference's own note.
    """

    id: str
    system: str
    use: str
    verdict: str
    observed: Observed
    low: float | None
    high: float | None
    unit: str
    note: str
    observable: str = ""
    published: str = ""
    residual: float | None = None
    reading: str = ""
    contradiction: str = ""
    source: str = ""
    kind: str = ""
    models: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """The flat JSON object scripts depend on; the contradiction is part of its note."""
        note = "; ".join(t for t in (self.note, f"reference: {self.contradiction}" if self.contradiction else "") if t)
        return {
            "id": self.id,
            "system": self.system,
            "use": self.use,
            "verdict": self.verdict,
            "observed": self.observed,
            "low": self.low,
            "high": self.high,
            "unit": self.unit,
            "note": note,
        }


@dataclass
class Data:
    """What verdicts are made from: curves by (model, mode) and a nested dict of start-up facts.

    ``stand_in`` lets a rival variant answer for a model: ``{"wmpi": "wmpi:additive-stall"}``.
    """

    points: Mapping[tuple[str, str], Curve] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    stand_in: Mapping[str, str] = field(default_factory=dict)

    def curve(self, model: str, mode: str) -> Curve:
        """The curve of a model in a mode; Unavailable when it was not simulated."""
        key = (self.stand_in.get(model, model), mode)
        if key not in self.points:
            raise Unavailable(f"no points of {key[0]} in {mode} mode (not simulated yet)")
        return self.points[key]

    def fact(self, path: str) -> Any:
        """The fact at a dotted path; Unavailable when no simulation gave it."""
        here: Any = self.facts
        for i, name in enumerate(path.split(".")):
            name = self.stand_in.get(name, name) if i == 1 else name
            if not isinstance(here, Mapping) or name not in here:
                raise Unavailable(f"no simulated fact '{path}'")
            here = here[name]
        return here


def residual(observed: float, low: float, high: float) -> float:
    """Signed distance of ``observed`` outside low..high: negative below, 0 inside, positive above."""
    return observed - low if observed < low else observed - high if observed > high else 0.0


def _sizes(claim: Claim, check: Check) -> SizeRange | None:
    column = check.get("sizes")
    if column is None:
        return None
    found = claim.sizes(column)
    if found is None:
        raise ValueError(f"{claim.id}: no message size in the column '{column}'")
    return found


def _part(curve: Curve, claim: Claim, check: Check, least: int = 1) -> Curve:
    sizes = _sizes(claim, check)
    part = curve.within(sizes)
    if len(part.sizes) < least:
        raise Unavailable(f"needs {least} or more simulated sizes in {sizes if sizes is not None else 'the sweep'}")
    return part


def _unit(claim: Claim, check: Check) -> str:
    return str(check.get("unit", claim.unit))


def _scaled(value: float, unit: str) -> float:
    if unit not in _PER_BASE:
        raise ValueError(f"no conversion to the published unit '{unit}'")
    return value * _PER_BASE[unit]


def _in_range(values: Mapping[str, float], claim: Claim, unit: str, note: str = "") -> Finding:
    """All of ``values`` (name -> number in ``unit``) in low..high; the one furthest out is the observed one."""
    if claim.low is None or claim.high is None:
        raise ValueError(f"{claim.id}: no low..high to judge a number by")
    low, high = claim.low, claim.high
    worst = max(values, key=lambda k: (abs(residual(values[k], low, high)), abs(values[k] - (low + high) / 2)))
    told = ", ".join(f"{k} {v:.4g}" for k, v in values.items()) if len(values) > 1 else ""
    ok = all(low <= v <= high for v in values.values())
    return Finding(ok, values[worst], "; ".join(t for t in (told, note) if t), low, high, unit)


def _metric(name: str, curve: Curve, claim: Claim, check: Check) -> float:
    if name == "startup":
        if 0 not in curve.sizes:
            raise Unavailable("needs the simulated size 0 B")
        return metrics.startup(curve)
    part = _part(curve, claim, check)
    if name == "bandwidth_at":
        if len(part.sizes) != 1:
            raise Unavailable(f"needs exactly the size {_sizes(claim, check)}")
        return part.rates[0]
    functions: Mapping[str, Callable[[Curve], float]] = {
        "peak": metrics.peak,
        "lowest": metrics.lowest,
        "median_time": lambda c: float(median(c.times)),
    }
    if name not in functions:
        raise ValueError(f"{claim.id}: no metric '{name}'; valid: startup, bandwidth_at, {', '.join(functions)}")
    return functions[name](part)


def _range(claim: Claim, check: Check, data: Data) -> Finding:
    """A number in low..high: ``metric`` of each of ``models``, or of their largest with ``combine = "max"``."""
    unit = _unit(claim, check)
    values = {m: _scaled(_metric(check["metric"], data.curve(m, check["mode"]), claim, check), unit) for m in check["models"]}
    if check.get("combine") == "max":
        best = max(values, key=lambda m: values[m])
        return _in_range({best: values[best]}, claim, unit, f"largest of {', '.join(values)}: {best}")
    return _in_range(values, claim, unit)


def _plateau(claim: Claim, check: Check, data: Data) -> Finding:
    """Approximately constant: spread <= CONSTANT over the sizes, and the median in low..high where there is one."""
    (model,) = check["models"]
    part = _part(data.curve(model, check["mode"]), claim, check, least=2)
    values = part.series(check["metric"])
    spread = metrics.spread(values)
    flat = spread <= metrics.CONSTANT
    note = f"largest / smallest {spread:.3g} over {_sizes(claim, check)} (at most {metrics.CONSTANT})"
    if claim.low is None or check.get("value") is False:
        return Finding(flat, float(f"{spread:.4g}"), note, 1.0, metrics.CONSTANT, "ratio")
    unit = _unit(claim, check)
    found = _in_range({model: _scaled(float(median(values)), unit)}, claim, unit, note)
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


def _knee_of(claim: Claim, check: Check, whole: Curve, model: str) -> Finding:
    if claim.low is None or claim.high is None:
        raise ValueError(f"{claim.id}: no size to judge a knee by")
    feature = check["feature"]
    curve = whole.within(SizeRange(1, None))
    if len(curve.sizes) < 2:
        raise Unavailable("needs a sweep over sizes")
    if feature == "peak":
        size = metrics.peak_size(curve)
        return Finding(claim.low <= size <= claim.high, float(size), f"{model}: maximum at {size} B")
    if feature == "plateau":
        size = metrics.plateau_size(curve)
        return Finding(
            claim.low <= size <= claim.high,
            float(size),
            f"{model}: within {metrics.CONSTANT} of the maximum from {size} B on",
        )
    if feature == "step":
        if not any(b == 2 * a for a, b in zip(curve.sizes, curve.sizes[1:], strict=False)):
            raise Unavailable("needs a sweep of doubling sizes")
        size, grown = metrics.largest_step(curve)
        ok = claim.low <= size <= claim.high and grown >= metrics.STEP
        return Finding(ok, float(size), f"{model}: time x{grown:.3g} from {size // 2} B to {size} B (at least x{metrics.STEP:g})")
    if feature == "bend":
        size = int(claim.high)
        rest = metrics.after(whole, size)
        if 0 not in whole.sizes or size not in whole.sizes or len(rest.sizes) < 2:
            raise Unavailable(f"needs the sizes 0 B, {size} B and the doublings after it")
        small, grown = whole.time(size) / whole.time(0), metrics.mean_growth(rest.times)
        ok = small <= metrics.SMALL_INCREASE and grown >= metrics.GROWTH
        told = (
            f"T({size} B) = {small:.3g} T(0) (at most {metrics.SMALL_INCREASE}), then x{grown:.3g} per doubling (at least {metrics.GROWTH})"
        )
        return Finding(ok, told, model)
    raise ValueError(f"{claim.id}: no feature '{feature}'; valid: peak, plateau, step, bend")


def _trend(claim: Claim, check: Check, data: Data) -> Finding:
    """The shape of ``metric`` (time or bandwidth) over the claim's sizes; see `SHAPES`."""
    shape = SHAPES.get(check["shape"])
    if shape is None:
        raise ValueError(f"{claim.id}: no shape '{check['shape']}'; valid: {', '.join(SHAPES)}")
    found = [shape(data.curve(m, check["mode"]), claim, check) for m in check["models"]]
    told = "; ".join(f"{m}: {text}" for m, (_, text) in zip(check["models"], found, strict=True))
    return Finding(all(ok for ok, _ in found), told)


def _doubles(curve: Curve, claim: Claim, check: Check) -> tuple[bool, str]:
    sizes = _sizes(claim, check)
    if sizes is None:
        raise ValueError(f"{claim.id}: 'doubles' needs a size range")
    # A new size is compared with the one before it, which lies on the edge of "> 64K".
    part = curve.within(SizeRange(max(1, sizes.low), sizes.high))
    if len(part.sizes) < 2:
        raise Unavailable(f"needs two or more simulated sizes in {sizes}")
    low, high = metrics.DOUBLES
    grown = metrics.steps(part.series(check["metric"]))
    return all(low <= g <= high for g in grown), f"x{min(grown):.3g}..x{max(grown):.3g} per doubling"


def _slows(curve: Curve, claim: Claim, check: Check) -> tuple[bool, str]:
    sizes = _sizes(claim, check)
    if sizes is None or sizes.high is None:
        raise ValueError(f"{claim.id}: 'slows' needs an upper size")
    before, then = curve.within(SizeRange(1, sizes.high)), metrics.after(curve, sizes.high)
    if len(before.sizes) < 2 or len(then.sizes) < 2:
        raise Unavailable(f"needs simulated sizes on both sides of {sizes.high} B")
    a, b = (metrics.mean_growth(c.series(check["metric"])) for c in (before, then))
    return b < a, f"x{a:.3g} per doubling before, x{b:.3g} after"


def _increases(curve: Curve, claim: Claim, check: Check) -> tuple[bool, str]:
    part = _part(curve.within(SizeRange(1, None)), claim, check, least=2)
    values = part.series(check["metric"])
    worst = min(metrics.steps(values))
    ok = worst >= 1 - metrics.SLACK
    total = values[-1] / values[0]
    if check.get("rapidly"):
        ok = ok and total >= metrics.RAPIDLY
    return ok, f"weakest step x{worst:.4g}, x{total:.3g} in all"


def _decreases(curve: Curve, claim: Claim, check: Check) -> tuple[bool, str]:
    part = _part(curve, claim, check, least=2)
    values = part.series(check["metric"])
    ok = values[-1] < values[0] and max(values[1:-1], default=values[0]) <= values[0] * metrics.BUMP
    return ok, f"from {_told(values[0], check)} to {_told(values[-1], check)}, highest {_told(max(values), check)}"


def _dips(curve: Curve, claim: Claim, check: Check) -> tuple[bool, str]:
    if len(curve.sizes) < 2 or curve.sizes[0] != 0:
        raise Unavailable("needs the simulated size 0 B and the next one")
    first, then = curve.times[:2]
    ok = (1 - metrics.SLIGHT) * first <= then < first
    return ok, f"T({curve.sizes[1]} B) / T(0) = {then / first:.5f}"


def _ends(curve: Curve, claim: Claim, check: Check) -> tuple[bool, str]:
    part = _part(curve, claim, check, least=2)
    if claim.low is None or claim.high is None:
        raise ValueError(f"{claim.id}: no low..high to judge the ends by")
    unit = _unit(claim, check)
    first, last = (_scaled(t, unit) for t in (part.times[0], part.times[-1]))
    ok = all(claim.low <= t <= claim.high for t in (first, last))
    return ok, f"{first:.4g} {unit} at {part.sizes[0]} B, {last:.4g} {unit} at {part.sizes[-1]} B"


def _told(value: float, check: Check) -> str:
    return f"{value * 1e3:.4g} ms" if check["metric"] == "time" else f"{value * 1e-6:.4g} MB/s"


SHAPES: Mapping[str, Callable[[Curve, Claim, Check], tuple[bool, str]]] = {
    "doubles": _doubles,
    "slows": _slows,
    "increases": _increases,
    "decreases": _decreases,
    "dips": _dips,
    "ends": _ends,
}


def _order(claim: Claim, check: Check, data: Data) -> Finding:
    """``relation`` such as "wmpi > winmpich >> hpvm" holds; a > b: a is the better one.

    ``by`` is ``time`` (median over sizes of the ratio) or ``peak`` (largest bandwidth); ``throughout = true`` asks for
    ``>`` to hold at every size too.
    """
    tokens = check["relation"].split()
    names, signs = tokens[::2], tokens[1::2]
    told, ok = [], True
    for a, sign, b in zip(names, signs, names[1:], strict=False):
        better, worse = data.curve(a, check["mode"]), data.curve(b, check["mode"])
        ratio = metrics.peak(better) / metrics.peak(worse) if check["by"] == "peak" else metrics.median_ratio(worse, better)
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
    op, unit = check.get("op", "ratio"), _unit(claim, check)
    a = data.curve(first, check["mode"])
    rest = [data.curve(m, check["mode"]) for m in others]
    if check["metric"] == "startup":
        x, y = _metric("startup", a, claim, check), sum(_metric("startup", c, claim, check) for c in rest) / len(rest)
        ratio, difference = x / y, x - y
    else:
        sizes = _sizes(claim, check)
        if len(rest) != 1 or not metrics.common(a, rest[0], sizes):
            raise Unavailable(f"needs simulated sizes of {first} and {' '.join(others)} in {sizes}")
        ratio, difference = metrics.median_ratio(a, rest[0], sizes), metrics.median_difference(a, rest[0], sizes)
    if check.get("within") == "same":
        ok = 1 / metrics.SAME <= ratio <= metrics.SAME
        return Finding(ok, ratio, f"{first} / {' '.join(others)}", 1 / metrics.SAME, metrics.SAME, "ratio")
    value = {"ratio": ratio, "percent": (ratio - 1) * 100, "difference": _scaled(difference, unit)}[op]
    return _in_range({first: value}, claim, unit, f"{first} against {' and '.join(others)}")


def _fact(claim: Claim, check: Check, data: Data) -> Finding:
    """A simulated fact at ``path`` in low..high, above zero (``positive``), or one of the words ``among``."""
    value = data.fact(check["path"])
    if "among" in check:
        return Finding(value in check["among"], str(value), check["path"])
    if check.get("positive"):
        return Finding(float(value) > 0, float(value), f"{check['path']} above zero", unit=str(check.get("unit", "")))
    unit = _unit(claim, check)
    return _in_range({check["path"]: _scaled(float(value), unit)}, claim, unit, check["path"])


def stated_count(claim: Claim, phrase: str) -> int:
    """How many of something the claim's words state: ``1 GRM`` -> 1; a phrase without a number is one of each.

    Raises ValueError when the words are not in the claim.
    """
    if m := re.search(rf"(\d+) {re.escape(phrase)}", claim.value):
        return int(m[1])
    if phrase in claim.value:
        return 1
    raise ValueError(f"{claim.id}: the words '{phrase}' are not in '{claim.value}'")


def _count(claim: Claim, check: Check, data: Data) -> Finding:
    """A counted fact equals the sum of what the words state (``terms``: phrase and what it is counted per).

    ``at_least = true`` accepts more.
    """
    value = float(data.fact(check["path"]))
    expected = sum(stated_count(claim, t["phrase"]) * float(data.fact(t["per"]) if "per" in t else 1) for t in check["terms"])
    more = bool(check.get("at_least"))
    told = " + ".join(f"{t['phrase']}" + (f" x {t['per']}" if "per" in t else "") for t in check["terms"])
    ok = value >= expected if more else value == expected
    return Finding(ok, value, f"{check['path']}; stated: {told} = {expected:g}", expected, None if more else expected)


def _none(claim: Claim, check: Check, data: Data) -> Finding:
    """Nothing simulated can decide it; ``why`` says what would."""
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
}
"""Kind of check -> its evaluator."""


def evaluate(claim: Claim, check: Check, data: Data) -> Finding:
    """One check of one claim; what is missing in ``data`` becomes an undecided finding that says so (or says ``why``)."""
    try:
        return EVALUATORS[check["kind"]](claim, check, data)
    except Unavailable as missing:
        return Finding(None, None, str(check.get("why", missing)))


def _no_check(claim: Claim) -> str:
    if claim.use == "context":
        return "context: configuration or definition, nothing to judge"
    return "its runtime or test is not simulated yet"


def _verdict(claim: Claim, data: Data) -> Verdict:
    entries = checks().get(claim.id, ())
    findings = [evaluate(claim, c, data) for c in entries]
    oks = [f.ok for f in findings]
    word = "unjudged" if not findings or (None in oks and False not in oks) else "pass" if all(oks) else "fail"
    notes = [f.note for f in findings if f.note] or ([] if findings else [_no_check(claim)])
    if claim.use == "exclude":
        word = "unjudged"
        notes.insert(0, "excluded: the paper contradicts itself here; shown, not judged")
    # The row shows what failed if something did, else the first number that was found.
    ranked = [f for f in findings if f.ok is False] + [f for f in findings if isinstance(f.observed, float)] + findings
    shown = ranked[0] if ranked else Finding(None, None)
    texts = [f.observed for f in findings if isinstance(f.observed, str) and f is not shown]
    observed = shown.observed
    if isinstance(observed, str):  # words beside words; a number stands alone
        observed, texts = "; ".join([observed, *texts]), []
    low, high = (shown.low, shown.high) if shown.low is not None or shown.unit else (claim.low, claim.high)
    number = shown.observed if isinstance(shown.observed, float) else None
    distance = None if number is None or low is None or high is None else residual(number, low, high)
    return Verdict(
        id=claim.id,
        system=claim.system,
        use=claim.use,
        verdict=word,
        observed=observed,
        low=low,
        high=high,
        unit=shown.unit or (claim.unit if claim.unit != "-" else ""),
        note="; ".join(dict.fromkeys(notes + texts)),
        observable=claim.observable,
        published=f"{claim.value} {claim.unit}" if claim.kind == "quant" and claim.unit != "-" else claim.value,
        residual=distance,
        reading=" ".join(str(c["reading"]) for c in entries if "reading" in c),
        contradiction=claim.note,
        source=claim.source,
        kind=claim.kind,
        models=tuple(dict.fromkeys(m for c in entries for m in c.get("models", ()))),
    )


def _data(points: Iterable[Mapping[str, Any]], facts: Mapping[str, Any], stand_in: Mapping[str, str] | None) -> Data:
    return Data(curves(points), facts, stand_in or {})


def judge(
    claims: Iterable[Claim],
    points: Iterable[Mapping[str, Any]],
    facts: Mapping[str, Any],
    *,
    stand_in: Mapping[str, str] | None = None,
) -> list[Verdict]:
    """One verdict per claim, in the order given.

    ``points``: rows with model, mode, size_B, time_us. ``facts``: see `retrompi.validate.study`. ``stand_in`` maps a
    model to the variant whose points answer for it. Deterministic; nothing is simulated here.
    """
    data = _data(points, facts, stand_in)
    return [_verdict(c, data) for c in claims]


def measure(
    claim: Claim,
    points: Iterable[Mapping[str, Any]] | Mapping[tuple[str, str], Curve],
    facts: Mapping[str, Any] | None = None,
    *,
    stand_in: Mapping[str, str] | None = None,
) -> list[Finding]:
    """The findings behind a verdict, for a calibration: numbers in the claim's unit with the low..high they face.

    ``points`` may be rows or ready curves.
    """
    ready = dict(points) if isinstance(points, Mapping) else curves(points)
    data = Data(ready, facts or {}, stand_in or {})
    return [evaluate(claim, c, data) for c in checks().get(claim.id, ())]


@dataclass(frozen=True)
class Summary:
    """How many passed, failed or stayed unjudged, of one use of the claims."""

    use: str
    passed: int
    failed: int
    unjudged: int

    @property
    def judged(self) -> int:
        """Passed and failed together."""
        return self.passed + self.failed

    def __str__(self) -> str:
        word = {"calibrate": "fit", "validate": "held out", "exclude": "excluded"}.get(self.use, self.use)
        if not self.judged:
            return f"{word}: {self.unjudged} not judged"
        return f"{word}: {self.passed} of {self.judged} pass ({self.passed / self.judged:.0%}), {self.unjudged} not judged"


def summary(verdicts: Sequence[Verdict]) -> list[Summary]:
    """Counts by use, fit and held-out apart, then excluded and context where there are any."""
    out = []
    for use in ("calibrate", "validate", "exclude", "context"):
        mine = [v.verdict for v in verdicts if v.use == use]
        if mine:
            out.append(Summary(use, mine.count("pass"), mine.count("fail"), mine.count("unjudged")))
    return out
