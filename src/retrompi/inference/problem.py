"""The problem that a posterior solves: the parameters of calibrations that belong together, and the published values they may use.

    problem = of_model("wmpi", "nt-pair")          # with winmpich and hpvm, which are calibrated on the same platform
    problem.parts[0].simulate(shares)              # observables at a point of the prior
    problem.data                                   # what was published about them

A part is a run, or several that one statement compares. What is read is what `retrompi calibrate` reads: claims of use ``calibrate`` and
the points of curves that are not held out (docs/uncertainty.md has the rules).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np

from retrompi.base import paths
from retrompi.base.errors import EngineError, UsageError
from retrompi.inference.likelihood import Array, CurveData, Observations, StatedInterval
from retrompi.papers.experiments import Look, Seen, merge
from retrompi.papers.fit import calibrate, curve_fits
from retrompi.papers.fit.free_values import options, owner
from retrompi.papers.judging import curve_checks
from retrompi.papers.judging.curve_checks import times_of
from retrompi.papers.judging.evaluators import evaluate
from retrompi.papers.judging.findings import Check, Finding, base_value, to_unit, unit_of
from retrompi.papers.judging.findings import Data as Shown
from retrompi.papers.statements import curves
from retrompi.papers.statements.claims import Checks, Claim, excluded_readings, judging
from retrompi.papers.statements.curves import FitPlan, PaperCurve
from retrompi.papers.statements.metrics import curves as curves_in
from retrompi.papers.statements.paper import Paper
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.spec.conditions.bounds import Bounds
from retrompi.spec.declare.number import Number
from retrompi.spec.machine import machines
from retrompi.spec.model import RuntimeModel
from retrompi.spec.question import Question, canonical_hash
from retrompi.studies.draws.priors import priors_of, sets_at

__all__ = ["PointObservable", "PosteriorMember", "Problem", "ProblemPart", "StatedNumber", "calibrated_on", "held_out", "of_model",
           "of_paper", "printed_range"]

LONGEST_S = 30.0
"""Seconds that one run may take: with some values of their ranges a run does not end."""


@dataclass(frozen=True)
class StatedNumber:
    """An observable that statements are about, by the check of ``claim``; ``readings``: their limits, in the unit of the check.

    ``model``: the base name of the model whose discrepancy it has; ``stated_by``: the claims.
    """

    name: str
    model: str
    claim: Claim
    check: Check
    readings: tuple[tuple[float, float], ...]
    stated_by: tuple[str, ...]

    @property
    def log(self) -> bool:
        """Whether it is a ratio scale: nothing at or below zero was published."""
        return min(low for low, _ in self.readings) > 0

    def of(self, shown: Shown) -> float | None:
        """The number in the unit of the check; None without one."""
        found = evaluate(self.claim, self.check, shown).observed
        return float(found) if isinstance(found, int | float) else None


@dataclass(frozen=True)
class PointObservable:
    """An observable that a point of a measured curve is about: the time of ``size`` B; ``error`` is a share of ``time`` (s)."""

    curve: str
    model: str
    size: int
    time: float
    error: float
    log = True

    @property
    def name(self) -> str:
        """``ga620 8 B``."""
        return f"{self.curve} {self.size} B"

    def of(self, shown: Shown) -> float | None:
        """The time in s."""
        return times_of(shown.fact("curves")[self.curve])[self.size]


@dataclass(frozen=True)
class ProblemPart:
    """Runs that are simulated together, and the observables that they show. ``below``: curve -> that of the layer below it."""

    name: str
    looks: tuple[Look, ...]
    observables: tuple[StatedNumber | PointObservable, ...]
    below: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def drawn(self) -> tuple[tuple[Resolved, tuple[Number, ...]], ...]:
        """Every run with its parameters."""
        asked = [Resolved.of(one.question) for one in self.looks]
        return tuple((a, tuple(priors_of(a))) for a in asked)

    @cached_property
    def priors(self) -> tuple[Number, ...]:
        """The parameters of its runs, by path."""
        found = {p.path: p for _, drawn in self.drawn for p in drawn}
        return tuple(found[path] for path in sorted(found))

    @property
    def paths(self) -> tuple[str, ...]:
        """Those of `priors`."""
        return tuple(p.path for p in self.priors)

    @cached_property
    def key(self) -> str:
        """A hash of what determines its observables, except the code."""
        seen = [
            [o.name, o.claim.row(), dict(o.check), o.log] if isinstance(o, StatedNumber) else [o.curve, o.size] for o in self.observables
        ]
        priors = [[p.path, p.low, p.high, p.log, p.whole, dict(p.keys)] for p in self.priors]
        return canonical_hash([[asked.key for asked, _ in self.drawn], priors, seen])

    def sets(self, shares: Sequence[float] | Array) -> list[list[str]]:
        """The overrides of every run at a point, shares 0..1 of `priors`."""
        at = {path: float(u) for path, u in zip(self.paths, shares, strict=True)}
        return [[f"{k}={v}" for k, v in sets_at(asked, drawn, at).items()] for asked, drawn in self.drawn]

    def simulate(self, shares: Sequence[float] | Array) -> Array:
        """The observables [k] at a point, logarithms where `StatedNumber.log`; nan where a run does not complete or has no such number."""
        points: list[dict[str, object]] = []
        facts: dict[str, object] = {}
        for one, sets in zip(self.looks, self.sets(shares), strict=True):
            told = _try_look(one, sets)
            if told is None:
                return np.full(len(self.observables), np.nan)
            points += told[0]
            for name, value in told[1].items():
                merge(facts, name, value)
        shown = Shown(curves_in(points), {**facts, "layers_below": dict(self.below)})
        return np.array([_on_scale(o.of(shown), o.log) for o in self.observables])

    @property
    def nominal(self) -> list[float]:
        """The shares of nominal values."""
        return [p.share(p.value) for p in self.priors]


def _on_scale(value: float | None, log: bool) -> float:
    if value is None or (log and value <= 0):
        return float("nan")
    return float(np.log(value)) if log else value


def _try_look(one: Look, sets: Sequence[str]) -> Seen | None:
    """The observables of a run; None if it does not complete, or if drawn values exclude each other."""
    try:
        return one.with_(sets)
    except (simulate.SimulationEnded, UsageError, EngineError):
        return None


@dataclass(frozen=True)
class PosteriorMember:
    """A calibration: the ``file`` of its posterior, the ``fitted`` paths, its ``model`` (base name), and the indices of its ``parts``."""

    name: str
    file: Path
    model: str
    fitted: tuple[str, ...]
    parts: tuple[int, ...]
    claims: tuple[str, ...]
    curves: tuple[str, ...] = ()


@dataclass(frozen=True)
class Problem:
    """A joint posterior. ``of``: what `retrompi calibrate` was asked for; ``platform``: the model's, "" for a paper; ``written``: the
    members whose files are written; ``base``: of a rival variant, the problem of its base's group, with which it shares the other parts."""

    of: str
    platform: str
    parts: tuple[ProblemPart, ...]
    members: tuple[PosteriorMember, ...]
    written: tuple[str, ...]
    base: Problem | None = None

    @cached_property
    def priors(self) -> tuple[Number, ...]:
        """The dimensions: the parameters of all parts, by path."""
        found = {p.path: p for part in self.parts for p in part.priors}
        return tuple(found[path] for path in sorted(found))

    @property
    def paths(self) -> tuple[str, ...]:
        """Those of `priors`."""
        return tuple(p.path for p in self.priors)

    @cached_property
    def models(self) -> tuple[str, ...]:
        """The base names of the models, each of which has a discrepancy."""
        return tuple(dict.fromkeys(o.model for part in self.parts for o in part.observables))

    def dims(self, part: ProblemPart) -> list[int]:
        """The dimensions that a part uses."""
        at = {path: i for i, path in enumerate(self.paths)}
        return [at[path] for path in part.paths]

    @property
    def observables(self) -> list[StatedNumber | PointObservable]:
        """Those of all parts, one after the other."""
        return [o for part in self.parts for o in part.observables]

    @cached_property
    def data(self) -> Observations:
        """The published values of `observables`."""
        statements: list[StatedInterval] = []
        points: dict[str, list[tuple[int, PointObservable]]] = {}
        for k, o in enumerate(self.observables):
            if isinstance(o, PointObservable):
                points.setdefault(o.curve, []).append((k, o))
            else:
                statements += [StatedInterval(k, low, high, o.log, self.models.index(o.model)) for low, high in o.readings]
        measured = [
            CurveData(
                [k for k, _ in of], [float(np.log(p.time)) for _, p in of], [p.error for _, p in of],
                [float(np.log10(1 + p.size)) for _, p in of], self.models.index(of[0][1].model),
            )
            for of in points.values()
        ]
        return Observations(statements, measured, len(self.models))


# --- statements --------------------------------------------------------------------------------------------------------------------


def printed_range(claim: Claim) -> tuple[float, float]:
    """The range that a claim states: ``low``..``high`` in its unit; where these are one number, the interval of its printed digits.

    Raises ValueError for a claim without a number.
    """
    if claim.low is None or claim.high is None:
        raise ValueError(f"{claim.id}: no low..high")
    if claim.low < claim.high:
        return claim.low, claim.high
    texts = [t for t in re.findall(r"\d+(?:\.\d+)?", claim.value) if float(t) == claim.low] or [f"{claim.low:.12g}"]
    half = 0.5 * 10.0 ** -len(texts[0].partition(".")[2])
    return claim.low - half, claim.high + half


def _limits(claim: Claim, check: Check, found: Finding) -> tuple[float, float] | None:
    """The limits of the published number that a check observes, in its unit; None if it observes none.

    The tolerance of ``near`` belongs to the verdict, not to the number.
    """
    if not isinstance(found.observed, int | float) or claim.low is None or claim.high is None:
        return None
    if check.get("kind") == "near" or check.get("near") or found.low is None or found.high is None or found.low >= found.high:
        return printed_range(claim)
    return found.low, found.high


@dataclass(frozen=True)
class _Asked:
    """A claim's check, and whose discrepancy what it observes has."""

    claim: Claim
    check: Check
    model: str


def _parts(
    name: str, looks: Mapping[str, Look], asked: Sequence[_Asked], points: Sequence[PointObservable], below: Mapping[str, str]
) -> list[ProblemPart]:
    """The runs, those together that a check compares, with what they show of the ``asked`` checks and ``points``.

    Simulates every run once, with nominal values. Runs that nothing is asked about are left out.
    """
    bounded = {k: replace(one, question=one.question.with_(bounds=Bounds(wall_s=LONGEST_S))) for k, one in looks.items()}
    nominal = {k: one.with_([]) for k, one in bounded.items()}
    together: dict[str, set[str]] = {k: {k} for k in looks}
    numbers: list[tuple[StatedNumber, str]] = []
    for a, used, limits in [(a, *_runs_observed(a, nominal, below)) for a in asked if "same" not in a.check]:
        if limits is None:
            continue
        for k in used[1:]:
            both = together[used[0]] | together[k]
            together |= dict.fromkeys(both, both)
        others = [o for o in asked if o.check.get("same") == a.claim.id]
        others += [_Asked(c, check, a.model) for c, check in excluded_readings(a.claim.id)]
        unit = unit_of(a.claim, a.check)
        said = [limits, *(tuple(to_unit(base_value(v, unit_of(o.claim, o.check)), unit) for v in printed_range(o.claim)) for o in others)]
        again = sum(n.claim.id == a.claim.id for n, _ in numbers)
        number = StatedNumber(f"{a.claim.id}/{again + 1}" if again else a.claim.id, a.model, a.claim, a.check,
                        tuple((float(low), float(high)) for low, high in dict.fromkeys(said)),
                        (a.claim.id, *dict.fromkeys(o.claim.id for o in others)))
        numbers.append((number, used[0]))
    found = []
    for group in {id(g): g for g in together.values()}.values():
        mine = tuple(k for k in looks if k in group)
        seen: tuple[StatedNumber | PointObservable, ...] = (
            *(n for n, k in numbers if k in group), *(p for p in points if p.curve in group)
        )
        if seen:
            used_below = {k: v for k, v in below.items() if k in group}
            found.append(ProblemPart(f"{name} {'+'.join(mine)}".strip(), tuple(bounded[k] for k in mine), seen, used_below))
    return found


def _runs_observed(a: _Asked, nominal: Mapping[str, Seen], below: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[float, float] | None]:
    """The fewest runs that show what a check observes, and its limits."""
    for count in (1, 2):
        for some in combinations(nominal, count):
            points: list[dict[str, object]] = []
            facts: dict[str, object] = {"layers_below": dict(below)}
            for k in some:
                points += nominal[k][0]
                for key, value in nominal[k][1].items():
                    merge(facts, key, value)
            limits = _limits(a.claim, a.check, evaluate(a.claim, a.check, Shown(curves_in(points), facts)))
            if limits is not None:
                return some, limits
    return (), None


def _curve_look(curve: PaperCurve, sizes: Iterable[int]) -> Look:
    def run_curve(question: Question) -> Seen:
        times = {int(r["size_B"]): float(r["time_us"]) * 1e-6 for r in simulate.benchmark(question)}
        return [], {"curves": {curve.name: curve_checks.facts_of(curve.grid, times)}}

    return Look(curve.name, curves.question(curve, sizes).with_(idle_overrides=True), run_curve)


def _points(curve: PaperCurve) -> list[PointObservable]:
    return [PointObservable(curve.name, _base(curve.model), p.size, p.time, p.error) for p in curve_fits.seen_points(curve)]


def _base(model: str) -> str:
    return registry.model(model).name.partition(":")[0]


# --- models ------------------------------------------------------------------------------------------------------------------------


def calibrated_on(platform: str) -> list[str]:
    """The package's models that are calibrated on ``platform`` by statements of their own."""
    found = []
    for name in registry.model_names():
        cls = registry.model(name)
        if ":" in name or not cls.folder().is_relative_to(paths.models_dir()) or cls.calibrated is None:
            continue
        if cls.calibrated.platforms[0] == platform and any(p.fitted for p in cls.params().values()) and _plain(cls, name, platform):
            found.append(name)
    return found


def _plain(cls: type[RuntimeModel], model: str, platform: str) -> bool:
    """Whether a model has a claim to be fitted to that is not about a paper's curve."""
    try:
        seen = calibrate.seen_by_fit(cls, model, platform)
    except UsageError:
        return False
    return any(check["kind"] != "curve" for c in seen.claims for check in _checks_of(c, seen.entries))


def _checks_of(claim: Claim, entries: Checks) -> Sequence[Check]:
    from retrompi.papers.statements.claims import checks

    return {**checks(), **entries}.get(claim.id, ())


def of_model(model: str, platform: str) -> Problem:
    """The joint posterior of ``model`` and of those calibrated on the same platform; of a variant, in the place of its base.

    A model of the package has its file beside its fit; one of the user's is alone. Raises UsageError if nothing says what to fit to.
    """
    cls = registry.model(model)
    base = cls.name.partition(":")[0]
    ours = cls.folder().is_relative_to(paths.models_dir())
    names = [cls.name if m == base else m for m in calibrated_on(platform)] if ours else []
    if cls.name not in names:
        names = [model, *(m for m in names if m.partition(":")[0] != base)]
    parts: list[ProblemPart] = []
    members: list[PosteriorMember] = []
    for name in names:
        more, member = _of_one(name, platform, len(parts))
        parts += more
        members.append(member)
    if not members[[m.name for m in members].index(cls.name)].parts:
        raise UsageError(f"no claim of '{cls.name}' gives a number to fit to", code="no-claims")
    kept = tuple(m for m in members if m.parts)
    if ":" not in cls.name:
        return Problem(cls.name, platform, tuple(parts), kept, tuple(m.name for m in kept))
    rivals = ours and len(kept) > 1
    return Problem(cls.name, platform, tuple(parts), kept, (cls.name,), of_model(base, platform) if rivals else None)


def _of_one(model: str, platform: str, begin: int) -> tuple[list[ProblemPart], PosteriorMember]:
    """The parts of one model, of which the first is part ``begin`` of the problem."""
    cls = registry.model(model)
    base, _, variant = cls.name.partition(":")
    seen = calibrate.seen_by_fit(cls, model, platform)
    asked = [_Asked(c, check, base) for c in seen.claims for check in _checks_of(c, seen.entries)]
    looks: dict[str, Look] = {}
    if any(a.check["kind"] != "curve" for a in asked):
        looks = {one.name: one for one in calibrate.looks_of(cls, model, platform)}
    sizes = curve_checks.sizes_asked(seen.claims, seen.entries, seen.below)
    points = [p for c in seen.curves if c.use == "calibrate" for p in _points(c)]
    for curve in seen.curves:
        mine = {p.size for p in points if p.curve == curve.name} | sizes[curve.name] | set(curve.grid if sizes[curve.name] else ())
        if mine:
            looks[curve.name] = _curve_look(curve, mine)
    parts = _parts(cls.name, looks, asked, points, seen.below)
    keys = [f"{base}.{k}" for k, p in cls.params().items() if p.fitted] + [f"platform.host.{k}" for k in cls.fits_platform]
    fitted = _paths_of(keys, parts)
    stated = tuple(i for part in parts for o in part.observables if isinstance(o, StatedNumber) for i in o.stated_by)
    drawn = tuple(dict.fromkeys(o.curve for part in parts for o in part.observables if isinstance(o, PointObservable)))
    file = cls.folder() / (f"posterior-{variant}.npz" if variant else "posterior.npz")
    return parts, PosteriorMember(cls.name, file, base, fitted, tuple(range(begin, begin + len(parts))), stated, drawn)


def held_out(model: str, platform: str) -> list[ProblemPart]:
    """The runs by which a model is measured for its fit, with the numbers of claims of use ``validate`` that they show. No fit and no
    posterior reads them: they are for scores."""
    cls = registry.model(model)
    base = cls.name.partition(":")[0]
    asked = [_Asked(c, check, base) for c in judging(cls.name) if c.use == "validate" for check in _checks_of(c, {})]
    return _parts(cls.name, {one.name: one for one in calibrate.looks_of(cls, model, platform)}, asked, (), {})


def _paths_of(keys: Iterable[str], parts: Sequence[ProblemPart]) -> tuple[str, ...]:
    """The paths of the parameters that these ``--set`` keys set in any of the runs."""
    wanted = set(keys)
    return tuple(dict.fromkeys(p.path for part in parts for _, drawn in part.drawn for p in drawn if wanted & set(p.keys)))


# --- papers ------------------------------------------------------------------------------------------------------------------------


def of_paper(paper: Paper) -> list[Problem]:
    """The joint posteriors of the fits of a paper: one for those that share a host. Raises InputError for a fit that cannot be."""
    evidence = curve_fits.evidence_of(paper)
    apart = [(plan, *_of_fit(plan, evidence)) for plan in curves.fits_of(paper)]
    hosts = {*machines.host_names(), *registry.platform_names()}
    groups: list[tuple[list[FitPlan], set[str]]] = []
    for plan, _, parts in apart:
        mine = {owner for part in parts for path in part.paths if (owner := path.partition(".")[0]) in hosts}
        near = [g for g in groups if g[1] & mine]
        groups = [g for g in groups if g not in near]
        groups.append(([*(p for g in near for p in g[0]), plan], mine.union(*(g[1] for g in near))))
    return [_together(paper, plans, evidence) for plans, _ in groups]


def _of_fit(plan: FitPlan, of: curve_fits.PaperEvidence) -> tuple[dict[str, set[int]], list[ProblemPart]]:
    """Curve -> the sizes that a fit sees, and its parts when it is alone."""
    sizes = curve_fits.sizes_of(plan, of)
    return sizes, _parts_of([plan], sizes, of)


def _parts_of(plans: Sequence[FitPlan], sizes: Mapping[str, set[int]], of: curve_fits.PaperEvidence) -> list[ProblemPart]:
    looks = {name: _curve_look(of.curves[name], mine) for name, mine in sizes.items()}
    below = {c.name: c.layer_below for c in of.curves.values()}
    asked = [_Asked(c, check, _base(of.curves[str(check["curve"])].model)) for plan in plans for c, check in curve_fits.claims_of(plan, of)]
    points = [p for name in dict.fromkeys(n for plan in plans for n in plan.curves) for p in _points(of.curves[name])]
    return _parts("", looks, asked, points, below)


def _together(paper: Paper, plans: Sequence[FitPlan], of: curve_fits.PaperEvidence) -> Problem:
    """One problem of several fits, whose curves are simulated once for all of them."""
    sizes: dict[str, set[int]] = {}
    for plan in plans:
        for name, mine in curve_fits.sizes_of(plan, of).items():
            sizes.setdefault(name, set()).update(mine)
    parts = _parts_of(plans, sizes, of)
    members = []
    for plan in plans:
        used = list(curve_fits.sizes_of(plan, of))
        shown = tuple(i for i, part in enumerate(parts) if any(one.name in used for one in part.looks))
        keys = [option.partition("=")[0] for path in plan.free for name in used
                for option in options(owner(path), of.curves[name].platform, "0")]
        fitted = _paths_of(keys, [parts[i] for i in shown])
        first = plan.curves[0] if plan.curves else str(curve_fits.claims_of(plan, of)[0][1]["curve"])
        file = paper.folder / f"posterior-{plan.name}.npz"
        members.append(PosteriorMember(plan.name, file, _base(of.curves[first].model), fitted, shown, plan.claims, plan.curves))
    return Problem(paper.key, "", tuple(parts), tuple(members), tuple(m.name for m in members))
