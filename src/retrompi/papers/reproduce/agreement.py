"""The third verdict: how published statements agree with the simulation when the uncertainty of both is counted.

Every draw of the parameters (`retrompi.papers.statements.draw`) gives points and facts, which the evaluators of pass and fail judge. The
share of the draws that pass is the verdict; the numbers of the draws have an interval, and a statement's own range lies inside it or not
(docs/uncertainty.md). Pass and fail, which are of nominal values, do not change.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.papers.experiments import Done, Job, merge, module
from retrompi.papers.judging import curve_verdicts
from retrompi.papers.judging.curve_checks import times_of
from retrompi.papers.judging.evaluators import evaluate
from retrompi.papers.judging.findings import Check, Data
from retrompi.papers.judging.verdicts import Agreement, Verdict, judge
from retrompi.papers.reproduce import reproduction
from retrompi.papers.statements import curves
from retrompi.papers.statements.claims import Checks, Claim, by_paper, checks
from retrompi.papers.statements.draw import Draw
from retrompi.papers.statements.metrics import curves as curves_of
from retrompi.sim.simulate import SimulationEnded
from retrompi.studies.draws.uncertainty import Spec, interval

if TYPE_CHECKING:
    from retrompi.papers.reproduce.reproduction import Progress, Reproduction
    from retrompi.papers.statements.paper import Paper
    from retrompi.store.database import Store

__all__ = ["FEW", "CheckReading", "StudyDraw", "agreement_of", "draws_of", "judge_draws", "readings", "stated_range", "with_agreement",
           "word_of"]

FEW = 5
"""Draws of the slow kinds of experiment, of which one takes longer than all others together."""
AGREES, DISAGREES = 0.5, 0.05


@dataclass(frozen=True)
class CheckReading:
    """A number that a check reads off the simulation, in the unit of the claim, and the range that the paper states (None: open)."""

    name: str
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class StudyDraw:
    """Points and facts of one draw of a study; ``slow``: whether the slow experiments are among them."""

    points: Sequence[Mapping[str, Any]]
    facts: Mapping[str, Any]
    slow: bool

    @cached_property
    def data(self) -> Data:
        """The data for verdicts."""
        return Data(curves_of(self.points), self.facts)


# --- simulating the draws ----------------------------------------------------------------------------------------------------------


def _job_result(plan: Paper, job: Job) -> Done:
    """The job's result; nothing if a run does not complete or the values of the draw exclude each other: no claim on it passes then."""
    try:
        return job.work()
    except (SimulationEnded, UsageError):
        return Done("", None)
    except RetrompiError as error:
        if plan.draw is not None and error.code == "not-completed":
            return Done("", None)
        raise


def draws_of(plans: Sequence[Paper], store: Store, spec: Spec, progress: Progress | None = None, *, fresh: bool = False,
             workers: int = reproduction.WORKERS) -> list[list[StudyDraw]]:
    """For each study its draws, `FEW` of them with the slow experiments. Runs that are stored are found; new ones are stored one by one, so
    that an interrupted sample goes on where it was. Raises the errors of the papers' folders."""
    work: list[tuple[int, int, Job]] = []
    for i, plan in enumerate(plans):
        for number in range(spec.draws):
            drawn = replace(plan, draw=Draw(number, spec))
            for kind in _kinds(plan, number):
                work += [(i, number, job) for job in reproduction.jobs_of(drawn, kind, store, fresh)]
    labelled = [
        (f"{plans[i].key}, draw {n + 1}: {job.label}", replace(job, work=partial(_job_result, plans[i], job))) for i, n, job in work
    ]
    done = reproduction.run_jobs(labelled, progress, workers)
    found: list[list[StudyDraw]] = []
    for i, plan in enumerate(plans):
        mine: list[list[Done]] = [[] for _ in range(spec.draws)]
        for (at, number, _), one in zip(work, done, strict=True):
            if at == i:
                mine[number].append(one)
        found.append([_data(plan, Draw(n, spec), results) for n, results in enumerate(mine)])
    return found


def _kinds(plan: Paper, number: int) -> list[str]:
    """The kinds of experiment of a draw."""
    modules = {k: module(k, plan.folder) for k in reproduction.kinds(plan)}
    return [k for k, m in modules.items() if getattr(m, "JUDGED", True) and (number < FEW or not getattr(m, "SLOW", False))]


def _data(plan: Paper, draw: Draw, done: Sequence[Done]) -> StudyDraw:
    facts: dict[str, Any] = {"parameters": reproduction.parameters(replace(plan, draw=draw))}
    points = [row for d in done if d.where == "points" for row in d.result]
    for d in done:
        if d.where not in ("points", "anatomy", ""):
            merge(facts, d.where, d.result)
    return StudyDraw(points, facts, draw.number < FEW)


# --- what a statement says ---------------------------------------------------------------------------------------------------------


def stated_range(claim: Claim, number: float) -> tuple[float, float]:
    """The range that a printed ``number`` of the claim stands for: half a unit of its last digit either way."""
    texts = [t for t in re.findall(r"\d+(?:\.\d+)?", claim.value.replace(",", "")) if float(t) == abs(number)]
    text = texts[0] if texts else f"{number:.12g}"
    half = 0.5 * 10.0 ** -len(text.partition(".")[2])
    return number - half, number + half


def _of_near(claim: Claim) -> tuple[float | None, float | None]:
    """What a number that a check compares with a tolerance of its own states: its digits, or the range of its reading."""
    if claim.low is not None and claim.low == claim.high:
        return stated_range(claim, claim.low)
    return claim.low, claim.high


def readings(claim: Claim, check: Check, data: Data) -> list[CheckReading]:
    """The numbers that a check reads off ``data``, () of one that has none; a value is None where the data lack it."""
    if check["kind"] == "extremes":
        found = []
        for end, published in (("min", claim.low), ("max", claim.high)):
            assert published is not None
            one = evaluate(replace(claim, low=published, high=published), {**check, "kind": "near", "path": f"{check['path']}.{end}"}, data)
            value = _number(one.observed)
            # As a ratio to the published number, the unit of this check's verdict.
            span = stated_range(claim, published)
            found.append(CheckReading(end, None if value is None else value / published, span[0] / published, span[1] / published))
        return found
    if check["kind"] not in _NUMBERS or check.get("feature") in _BENDS:
        return []
    models: Sequence[str] = check.get("models", ())
    apart = len(models) > 1 and check["kind"] in ("range", "knee", "failures") and "combine" not in check
    found = []
    for name, mine in [(m, {**check, "models": [m]}) for m in models] if apart else [("", check)]:
        finding = evaluate(claim, mine, data)
        low, high = _of_near(claim) if check["kind"] == "near" or check.get("near") else (finding.low, finding.high)
        if low is not None or high is not None:
            found.append(CheckReading(name, _number(finding.observed), low, high))
    return found


_NUMBERS = frozenset({"range", "plateau", "knee", "ratio", "fact", "count", "nought", "near", "digits", "failures", "faster", "curve"})
"""Kinds of check with a number and a stated range; orders, trends and outcomes have none."""

_BENDS = frozenset({"bend", "drop", "recovery"})
"""Features of a knee that are looked for around the size stated: their size is no reading of a number."""


def _number(observed: object) -> float | None:
    return float(observed) if isinstance(observed, int | float) and math.isfinite(observed) else None


# --- the verdict -------------------------------------------------------------------------------------------------------------------


def word_of(share: float) -> str:
    """The verdict of a share of draws that pass."""
    return "agrees" if share >= AGREES else "disagrees" if share <= DISAGREES else "cannot tell"


def agreement_of(words: Sequence[str], read: Mapping[str, Sequence[CheckReading]], shown: str, spec: Spec) -> Agreement | None:
    """The agreement of a claim from its verdict in each draw, and its readings in each: None without draws.

    ``shown`` is the reading whose interval is told; a claim is inside if all its readings are.
    """
    if not words:
        return None
    share = words.count("pass") / len(words)
    told = {name: _Told(values, spec.level) for name, values in read.items()}
    if not told:
        return Agreement(word_of(share), share, len(words))
    inside = all(t.inside for t in told.values())
    one = told.get(shown) or next(iter(told.values()))
    return Agreement(word_of(share), share, len(words), *one.span, one.low, one.high, inside)


class _Told:
    """The interval of a reading over the draws, and what is stated."""

    def __init__(self, values: Sequence[CheckReading], level: float) -> None:
        numbers = [r.value for r in values if r.value is not None]
        self.low, self.high = values[0].low, values[0].high
        self.span: tuple[float | None, float | None, float | None] = (None, None, None)
        self.inside = False
        if numbers:
            span = interval(numbers, level)
            self.span = span.low, span.median, span.high
            self.inside = (self.low is None or span.high >= self.low) and (self.high is None or span.low <= self.high)


def judge_draws(study: Reproduction, drawn: Sequence[StudyDraw], spec: Spec) -> list[Verdict]:
    """The verdicts of a study with their agreement. A claim that draws without the slow experiments can judge has all draws, any other
    those that have them."""
    key = study.paper.key
    claims, how = by_paper(key), checks()
    own = curves.of(study.paper)
    by_draw = [{v.id: v for v in [*judge(claims, d.points, d.facts), *curve_verdicts.judge(key, own, d.facts)]} for d in drawn]
    named = {c.id: c for c in claims}
    without = [d for d in drawn if not d.slow]
    nominal = Data(curves_of(study.points), study.facts)
    found = []
    for v in study.verdicts:
        if v.verdict == "unjudged":
            found.append(v)
            continue
        used = range(len(drawn)) if v.id not in named or _quick(named[v.id], how, without) else [n for n, d in enumerate(drawn) if d.slow]
        words = [by_draw[n][v.id].verdict for n in used]
        read = _readings(named[v.id], how, [drawn[n] for n in used]) if v.id in named else {}
        shown = _shown_reading(v, named[v.id], how, nominal) if read else ""
        found.append(replace(v, agreement=agreement_of(words, read, shown, spec)))
    return found


def _quick(claim: Claim, how: Checks, without: Sequence[StudyDraw]) -> bool:
    """Whether each check of a claim can be decided in a draw ``without`` the slow experiments."""
    return all(any(evaluate(claim, check, d.data).ok is not None for d in without) for check in how.get(claim.id, ()))


def _readings(claim: Claim, how: Checks, drawn: Sequence[StudyDraw]) -> dict[str, list[CheckReading]]:
    """Reading -> its values in each draw."""
    found: dict[str, list[CheckReading]] = {}
    for d in drawn:
        for i, check in enumerate(how.get(claim.id, ())):
            for r in readings(claim, check, d.data):
                found.setdefault(f"{i} {r.name}", []).append(r)
    return found


def _shown_reading(verdict: Verdict, claim: Claim, how: Checks, nominal: Data) -> str:
    """The reading that the verdict's row shows."""
    for i, check in enumerate(how.get(claim.id, ())):
        for r in readings(claim, check, nominal):
            if isinstance(verdict.observed, float) and r.value is not None:
                told = max(r.value, 1 / r.value) if check["kind"] == "extremes" else r.value
                if math.isclose(told, verdict.observed, rel_tol=1e-3):
                    return f"{i} {r.name}"
    return ""


def with_agreement(studies: Sequence[Reproduction], store: Store, spec: Spec, progress: Progress | None = None, *, fresh: bool = False,
                   workers: int = reproduction.WORKERS) -> list[Reproduction]:
    """The studies with the agreement of each judged claim and curve, and the intervals of their curves. Deterministic for a spec."""
    drawn = draws_of([s.paper for s in studies], store, spec, progress, fresh=fresh, workers=workers)
    return [replace(s, verdicts=judge_draws(s, d, spec), bands=bands(d, spec), spec=spec) for s, d in zip(studies, drawn, strict=True)]


def bands(drawn: Sequence[StudyDraw], spec: Spec) -> dict[tuple[str, str], list[tuple[int, float, float, float]]]:
    """(model, mode), or ("curve", name) -> the interval of the time at each size: size (B), low, median, high (us)."""
    times: dict[tuple[str, str], dict[int, list[float]]] = {}
    for d in drawn:
        for p in d.points:
            times.setdefault((str(p["model"]), str(p["mode"])), {}).setdefault(int(p["size_B"]), []).append(float(p["time_us"]))
        for name, told in d.facts.get("curves", {}).items():
            for size, seconds in times_of(told).items():
                times.setdefault(("curve", name), {}).setdefault(size, []).append(seconds * 1e6)
    found = {}
    for key, by_size in times.items():
        spans = {size: interval(values, spec.level) for size, values in sorted(by_size.items())}
        found[key] = [(size, s.low, s.median, s.high) for size, s in spans.items()]
    return found
