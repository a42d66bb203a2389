"""Fitting mechanisms to measured curves: the ``[[fit]]`` of a paper. Hosts, networks and models move inside their sourced ranges.

    found = fit(plan, evidence, folder=None)     # nothing is written
    found.rows                                   # what the fit saw and what was held out, judged apart
    found.write()

A curve is one measurement, however many points it has; claims of use calibrate count beside it. Of a curve a fit reads the points that are
not held out, and of the claims those for which `retrompi.papers.statements.claims.for_fit` would be asked: nothing else is simulated or
looked at before the optimiser has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrompi.base import paths
from retrompi.base.errors import InputError, UsageError
from retrompi.papers.fit.free_values import Owner, add_to_fit, belongs, limit_cards, number_text, options, owner, place, span
from retrompi.papers.fit.optimise import OptimiserSettings, identifiability, minimise, sensitivity
from retrompi.papers.judging import curve_checks
from retrompi.papers.judging.curve_verdicts import HELD_OUT, Errors, errors
from retrompi.papers.judging.evaluators import evaluate
from retrompi.papers.judging.findings import Check, Data
from retrompi.papers.statements import curves
from retrompi.papers.statements.curve_points import CurvePoint
from retrompi.papers.statements.curves import FitPlan, PaperCurve
from retrompi.papers.statements.metrics import FITTED, PREDICTED
from retrompi.spec.declare.number import Number

if TYPE_CHECKING:
    from retrompi.papers.statements.claims import Claim
    from retrompi.papers.statements.paper import Paper

__all__ = ["SEARCH", "CurveFit", "PaperEvidence", "claims_of", "evidence_of", "fit", "inspect_fits", "judge_curve", "residuals",
           "seen_points", "sizes_of"]

SIZES = 26
"""Sizes of a curve that a fit sees."""
SEARCH = OptimiserSettings(starts=4, steps=25, step=0.02, scale=0.3, linear=0.05, finer=(0.005, 0.1))
"""Residuals beyond 0.05 count linearly: the median is to be small, not the largest error of a curve whose shape a mechanism misses."""
LATENCY_SIZE = 8
COARSE = 0.5
"""Points whose error is at least this share of their value say nothing."""
MANY = 100
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class PaperEvidence:
    """The evidence that the fits of a paper may use: its curves by name, and its claims of use calibrate with their checks."""

    key: str
    curves: Mapping[str, PaperCurve]
    claims: Mapping[str, Claim] = field(default_factory=dict)
    checks: Mapping[str, Sequence[Check]] = field(default_factory=dict)


def evidence_of(paper: Paper) -> PaperEvidence:
    """The evidence of a paper; its held-out claims are left out here, and so are never read by a fit."""
    visible = {c.id: c for c in paper.claims if c.use == "calibrate"}
    return PaperEvidence(paper.key, {c.name: c for c in curves.of(paper)}, visible, {i: paper.checks.get(i, ()) for i in visible})


@dataclass
class CurveFit:
    """The outcome: ``values`` rows parameter, value, low, high, note; ``rows`` what was judged, `ROWS`; ``missed`` what of it fails."""

    key: str
    plan: FitPlan
    seed: int
    folder: Path | None
    evaluations: int = 0
    values: list[dict[str, Any]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def missed(self) -> list[str]:
        """The curves and claims that the fit saw and missed."""
        return [str(r["evidence"]) for r in self.rows if r["seen"] and r["verdict"] == "fail"]

    def write(self) -> list[Path]:
        """Writes the values beside their owners, or into the paper's own fit.toml; those there of other fits stay. Returns the files."""
        tables: dict[tuple[Path, str], dict[str, str]] = {}
        for row in self.values:
            path = str(row["parameter"])
            at = place(path, owner(path), self.folder, self.plan.name)
            tables.setdefault((at.file, at.table), {})[at.key] = row["value"]
        meta = {"seed": self.seed, "evaluations": self.evaluations, "fits": [f"{self.key}:{self.plan.name}"]}
        for (file, table), values in tables.items():
            add_to_fit(file, table, values, meta, "retrompi calibrate")
        return sorted({file for file, _ in tables})


# --- what a fit sees ---------------------------------------------------------------------------------------------------------------


def seen_points(curve: PaperCurve) -> list[CurvePoint]:
    """The points that a fit sees: `SIZES` of those not held out, spread by the logarithms of their sizes, and the printed latency at 8 B.

    NetPIPE measures every size and three bytes less and more; only the middle of such three is seen, whose data are aligned.
    """
    among = curve.seen
    sizes = [p.size for p in among]
    beside = {s for s in sizes if (s - 3 in sizes) != (s + 3 in sizes)} if len(sizes) > MANY else set()
    usable = [p for p in among if p.error < max(COARSE, curve.fine) and p.size > 0 and p.size not in beside]
    found: list[CurvePoint] = []
    if usable:
        wanted = np.geomspace(usable[0].size, usable[-1].size, SIZES)
        chosen = {min(usable, key=lambda p, w=w: abs(np.log(p.size / w))).size for w in wanted}  # type: ignore[misc]
        found = list({p.size: p for p in usable if p.size in chosen}.values())
    if curve.latency is not None:
        found.append(CurvePoint(LATENCY_SIZE, *curve.latency))
    return found


def residuals(points: Sequence[CurvePoint], got: Mapping[int, float]) -> list[float]:
    """Logarithms of simulated / published in units of `FITTED` and the point's error; a curve counts once, however many points it has."""
    scale = 1 / np.sqrt(len(points))
    return [scale * float(np.log(got[p.size] / p.time) / np.hypot(FITTED, p.error)) for p in points]


def claims_of(plan: FitPlan, of: PaperEvidence) -> list[tuple[Claim, Check]]:
    """The claims of a fit with their checks of kind curve. Raises InputError for one that it may not see, or that is of another kind."""
    found = []
    for name in plan.claims:
        if name not in of.claims:
            raise InputError(f"[[fit]] '{plan.name}': '{name}' is no claim of this paper of use calibrate; a fit sees no other", plan.file,
                             plan.line, code="held-out")
        checks = [c for c in of.checks[name] if c.get("kind") == "curve"]
        if not checks:
            raise InputError(f"[[fit]] '{plan.name}': '{name}' has no check of kind curve", plan.file, plan.line, code="wrong-kind")
        found += [(of.claims[name], c) for c in checks]
    return found


_OVER_GRID = ("bandwidth_max", "plateau", "dip", "dip_depth", "time", "bandwidth")


def sizes_of(plan: FitPlan, of: PaperEvidence) -> dict[str, set[int]]:
    """Curve -> the sizes at which a fit simulates it, for its points and for its claims. Raises InputError as `claims_of`."""
    below = {c.name: c.layer_below for c in of.curves.values()}
    sizes: dict[str, set[int]] = {name: {p.size for p in seen_points(of.curves[name])} for name in plan.curves}
    for claim, check in claims_of(plan, of):
        for name in curve_checks.curves_of(check, below.get(str(check["curve"]), "")):
            if name not in of.curves:
                raise InputError(f"claim '{claim.id}': no curve '{name}'", plan.file, plan.line, code="unknown-name")
            asked = sizes.setdefault(name, set())
            asked.update(curve_checks.sizes_for(claim, check))
            asked.update(of.curves[name].grid if check["metric"] in _OVER_GRID else ())
    return sizes


class _Problem:
    """The simulations for a point of the free values, and their distance from the evidence."""

    def __init__(self, plan: FitPlan, of: PaperEvidence, folder: Path | None) -> None:
        self.plan, self.of = plan, of
        self.owners: dict[str, Owner] = {}
        self.free: list[Number] = []
        for path in plan.free:
            try:
                self.owners[path] = o = owner(path)
                self.free.append(span(path, o, beside=place(path, o, folder, plan.name).key != path))
            except UsageError as error:
                raise InputError(f"[[fit]] '{plan.name}': {error}", plan.file, plan.line, code=error.code) from None
        self.claims = claims_of(plan, of)
        self.points = {name: seen_points(of.curves[name]) for name in plan.curves}
        for name, points in self.points.items():
            if not points:
                raise InputError(f"[[fit]] '{plan.name}': no point of the curve '{name}' may be seen", plan.file, plan.line,
                                 code="no-results")
        self.below = {c.name: c.layer_below for c in of.curves.values()}
        self.sizes = sizes_of(plan, of)
        self.platforms = list(dict.fromkeys(of.curves[name].platform for name in self.sizes))
        idle = [f.path for f in self.free if not any(belongs(self.owners[f.path], *self._run(name)) for name in self.sizes)]
        if idle:
            raise InputError(f"[[fit]] '{plan.name}': no curve of this fit has '{idle[0]}'", plan.file, plan.line, code="unused-option")
        self.known: dict[tuple[str, tuple[str, ...]], dict[int, float]] = {}
        self.evaluations = 0

    def _run(self, name: str) -> tuple[str, str]:
        return self.of.curves[name].model, self.of.curves[name].platform

    def values_text(self, x: Any) -> dict[str, str]:
        """The values at ``x`` as text."""
        return limit_cards(self.owners, {f.path: number_text(f, float(at)) for f, at in zip(self.free, x, strict=True)}, self.platforms)

    def sets(self, name: str, at: Mapping[str, str]) -> tuple[str, ...]:
        """The overrides of a curve's run."""
        model, platform = self._run(name)
        mine = [(self.owners[f.path], at[f.path]) for f in self.free if belongs(self.owners[f.path], model, platform)]
        return tuple(one for o, text in mine for one in options(o, platform, text))

    def times(self, name: str, at: Mapping[str, str]) -> dict[int, float]:
        """Size -> time (s) of a curve at the sizes that the fit sees."""
        sets = self.sets(name, at)
        if (name, sets) not in self.known:
            self.known[name, sets] = curves.simulate_times(self.of.curves[name], self.sizes[name], sets)
            self.evaluations += 1
        return self.known[name, sets]

    def claim_rows(self, at: Mapping[str, str]) -> list[dict[str, Any]]:
        """Rows claim, observed, low, high, unit, residual (in half ranges) of the claims; InputError for one without a number."""
        told = {name: curve_checks.facts_of(self.of.curves[name].grid, self.times(name, at)) for name in self.sizes}
        data = Data({}, {"curves": told, "layers_below": self.below})
        rows = []
        for claim, check in self.claims:
            found = evaluate(claim, check, data)
            if not isinstance(found.observed, float) or found.low is None or found.high is None:
                said = f"claim '{claim.id}' gives a fit no number: {found.note}"
                raise InputError(said, self.plan.file, self.plan.line, code="no-claims")
            if found.high <= found.low:
                raise InputError(f"claim '{claim.id}': low and high are equal; near = true in its check, or a range, is right",
                                 self.plan.file, self.plan.line, code="bad-range")
            middle, half = (found.low + found.high) / 2, (found.high - found.low) / 2
            rows.append({"claim": claim.id, "observed": found.observed, "low": found.low, "high": found.high, "unit": found.unit,
                         "residual": (found.observed - middle) / half})
        return rows

    def residuals(self, x: Any) -> Any:
        """Those of the curves (`residuals`), then those of the claims in half ranges."""
        at = self.values_text(x)
        out = [r for name, points in self.points.items() for r in residuals(points, self.times(name, at))]
        return np.array([*out, *(r["residual"] for r in self.claim_rows(at))])


def inspect_fits(paper: Paper) -> list[InputError]:
    """Errors in the fits of a paper at hand, whose curves and claims are right: names, ranges, sources. Nothing is simulated."""
    found = []
    evidence = evidence_of(paper)
    for plan in curves.fits_of(paper):
        try:
            _Problem(plan, evidence, None if paper.folder.parent == paths.papers_dir() else paper.folder)
        except InputError as error:
            found.append(error if error.path is not None else InputError(error.message, plan.file, plan.line, code=error.code))
    return found


# --- the fit -----------------------------------------------------------------------------------------------------------------------


def fit(
    plan: FitPlan, of: PaperEvidence, *, folder: Path | None = None, seed: int = 1, search: OptimiserSettings = SEARCH,
    progress: Progress | None = None,
) -> CurveFit:
    """Fits the free values of ``plan`` to its curves and claims, and judges what it saw and what was held out. Writes nothing.

    ``folder``: of the paper, if it is none of the package's. Raises InputError for a plan that cannot be carried out.
    """
    problem = _Problem(plan, of, folder)

    def away(x: Any) -> Any:
        found = problem.residuals(x)
        if progress is not None:
            progress(min(problem.evaluations, 10**6), 10**6, plan.name)
        return found

    best = minimise(away, len(problem.free), search, seed)
    done = CurveFit(of.key, plan, seed, folder, problem.evaluations)
    at = problem.values_text(best.x)
    jacobian = sensitivity(away, best.x)
    for i, f in enumerate(problem.free):
        note = identifiability(jacobian, best.x, i, "tolerances", "curve or claim that is seen")
        if at[f.path] != number_text(f, float(best.x[i])):
            note += "; as fast as the host's bus"
        done.values.append({"parameter": f.path, "value": at[f.path], "low": number_text(f, 0), "high": number_text(f, 1), "note": note})
    for name in plan.curves:
        curve = of.curves[name]
        done.rows += judge_curve(curve, curves.simulate_times(curve, {p.size for p in curve.points}, problem.sets(name, at)))
    for row in problem.claim_rows(at):
        told = f"{row['observed']:.4g} {row['unit']} in {row['low']:.4g}..{row['high']:.4g}"
        word = "fail" if abs(row["residual"]) > 1 else "pass"
        done.rows.append({"evidence": row["claim"], "what": "claim", "seen": True, "points": 1, "median": None, "largest": None,
                          "at_B": None, "limit": None, "observed": told, "verdict": word})
    return done


def judge_curve(curve: PaperCurve, got: Mapping[int, float]) -> list[dict[str, Any]]:
    """A row of the points that were not held out, and one of those that were; ``got``: size -> time (s) with the fitted values."""
    rows = [_row(curve, "curve", True, errors(curve, curve.seen, got), curve.tolerance)]
    if curve.held_out:
        rows.append(_row(curve, HELD_OUT, False, errors(curve, curve.held_out, got), max(curve.tolerance, PREDICTED)))
    return rows


def _row(curve: PaperCurve, what: str, seen: bool, found: Errors | None, limit: float) -> dict[str, Any]:
    row: dict[str, Any] = {"evidence": curve.name, "what": what, "seen": seen, "points": 0, "median": None, "largest": None, "at_B": None,
                           "limit": limit, "observed": "", "verdict": "unjudged"}
    if found is not None:
        ok = found.median <= limit and found.largest <= max(curve.largest, limit)
        row |= {"points": found.points, "median": found.median, "largest": found.largest, "at_B": found.largest_at,
                "observed": f"median {found.median:.1%}, largest {found.largest:.1%}", "verdict": "pass" if ok else "fail"}
    return row
