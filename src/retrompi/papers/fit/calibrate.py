"""Fitting a model's free parameters to the claims and curves marked for calibration, inside their sourced ranges.

`retrompi.papers.fit.optimise` moves the logarithms of the parameters; a residual is the distance of a simulated number from the middle of
its claim's range, in half ranges, or that of a curve's point (`retrompi.papers.fit.curve_fits`). The claims come from
`retrompi.papers.statements.claims.for_fit` or from the model's own evidence.toml, as curves do; nothing else of the reference is read.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, UsageError
from retrompi.base.release import version
from retrompi.papers.experiments import Look, look, looks
from retrompi.papers.fit import curve_fits
from retrompi.papers.fit.free_values import free_number, number_text, value_text
from retrompi.papers.fit.optimise import OptimiserSettings, identifiability, minimise
from retrompi.papers.judging import curve_checks
from retrompi.papers.judging.evidence import facts_of_curves, own_curves, own_for_fit
from retrompi.papers.judging.verdicts import measure
from retrompi.papers.statements import curves
from retrompi.papers.statements.claims import Checks, Claim, for_fit
from retrompi.papers.statements.curves import PaperCurve
from retrompi.spec import registry
from retrompi.spec.declare.number import Number
from retrompi.spec.model import RuntimeModel

__all__ = ["ModelEvidence", "ModelFit", "fit", "looks_of", "seen_by_fit", "write_platform"]

Progress = Callable[[int, int, str], None]
STARTS = 2
STEPS = 12
"""Steps of the optimiser from each start; each costs one simulation a parameter and one more."""
SIMPLEXES = (0.15, 0.03, 0.005)
"""Initial sizes of the simplex as fractions of a range: a wide search, then finer ones."""


@dataclass
class ModelFit:
    """The outcome of a calibration.

    ``values``: rows parameter, value, low, high, note; ``residuals``: rows claim, observed, low, high, unit, residual.
    """

    model: str
    folder: Path
    seed: int
    evaluations: int
    values: list[dict[str, Any]] = field(default_factory=list)
    residuals: list[dict[str, Any]] = field(default_factory=list)
    note: str = ""
    platform_file: Path | None = None

    @property
    def outside(self) -> list[str]:
        """The claims and curves seen by the fit that lie outside their ranges."""
        return [r["claim"] for r in self.residuals if r.get("seen", True) and abs(r["residual"]) > 1]

    def write(self) -> Path:
        """Replaces this model's tables in ``fit.toml`` (and in the platform's fit file, if fitted); returns the path."""
        mine = [v for v in self.values if not v["parameter"].startswith("platform.")]
        file = self.folder / "fit.toml"
        tables = toml_text.read(file, "fit")[1] if file.exists() else {}
        tables[self.model] = {
            "values": {v["parameter"]: v["value"] for v in mine},
            "bounds": {v["parameter"]: [v["low"], v["high"]] for v in mine},
            "residuals": {r["claim"]: [r["observed"], r["low"], r["high"], r["unit"], r["residual"]] for r in self.residuals},
            "meta": {
                "date": datetime.date.today().isoformat(),
                "version": version(),
                "seed": self.seed,
                "evaluations": self.evaluations,
                "claims": [r["claim"] for r in self.residuals],
                "identifiability": {v["parameter"]: v["note"] for v in mine},
                "note": self.note,
            },
        }
        try:
            file.write_text(toml_text.tables("retrompi calibrate", tables), encoding="utf-8")
            theirs = [v for v in self.values if v["parameter"].startswith("platform.")]
            if theirs and self.platform_file is not None:
                meta = {k: tables[self.model]["meta"][k] for k in ("date", "version", "seed", "claims")}
                write_platform(self.platform_file, self.model, {v["parameter"].removeprefix("platform."): v["value"] for v in theirs}, meta)
        except OSError as error:
            raise InputError(f"cannot write the fit: {error.strerror}", file, code="unwritable-file") from None
        return file


def write_platform(file: Path, by: str, values: Mapping[str, str], meta: Mapping[str, Any]) -> None:
    """Replaces the tables of the fit ``by`` (a model, or a study such as ``rinf1``) in a platform's fit file and keeps those of others.

    ``values``: keys as in `Platform.with_overrides`. Raises OSError.
    """
    tables = toml_text.read(file, "fit")[1] if file.exists() else {}
    file.write_text(toml_text.tables("retrompi calibrate", {**tables, by: {"values": values, "meta": meta}}), encoding="utf-8")


def _free_parameters(cls: type[RuntimeModel], platform: str) -> list[Number]:
    free = []
    for name, p in cls.params().items():
        if not p.fitted:
            continue
        if p.low is None or p.high is None:
            raise UsageError(f"model '{cls.name}': parameter '{name}' is to be fitted but has no range low..high")
        free.append(free_number(f"{cls.name.partition(':')[0]}.{name}", p.unit, p.low, p.high))
    described = {q["path"]: q for q in registry.platform(platform).describe()}
    for key in cls.fits_platform:
        host = registry.platform(platform).hosts[0].name
        q = described[f"{host}.{key}"]
        free.append(free_number(f"platform.host.{key}", q["unit"], q["low"], q["high"]))
    return free


def looks_of(cls: type[RuntimeModel], model: str, platform: str) -> list[Look]:
    """The runs of the experiment that a model is measured by; ``model``: the name or folder by which it is found."""
    try:
        return looks(cls.measured_by, model, platform)
    except LookupError:
        raise InputError(f"no experiment '{cls.measured_by}' (measured_by of model '{cls.name}') measures a model",
                         cls.folder() / "__init__.py", code="broken-model") from None


@dataclass(frozen=True)
class ModelEvidence:
    """The evidence that a fit of a model may use: claims (with checks, where they are the model's own) and the curves of its
    evidence.toml."""

    claims: Sequence[Claim]
    entries: Checks
    curves: Sequence[PaperCurve]

    @property
    def below(self) -> dict[str, str]:
        """Curve -> that of the layer below it."""
        return {c.name: c.layer_below for c in self.curves}


def seen_by_fit(cls: type[RuntimeModel], model: str, platform: str) -> ModelEvidence:
    """All the evidence that a fit of a model reads. Raises UsageError if no claim is marked for it."""
    own, entries = own_for_fit(cls)
    measured = own_curves(cls, model, platform)
    return ModelEvidence(own or ([] if any(c.use == "calibrate" for c in measured) else for_fit(cls.name)), entries, measured)


class _Problem:
    def __init__(
        self, model: str, platform: str, seen: ModelEvidence, free: Sequence[Number], report: Progress | None, total: int
    ) -> None:
        self.model, self.platform, self.seen, self.free = model, platform, seen, list(free)
        # The experiments of the papers' studies define how a model is measured for its fit, in a short form.
        self.looks = looks_of(registry.model(model), model, platform)
        own = seen.entries
        self.plain = any(c.id not in own or any(check["kind"] != "curve" for check in own[c.id]) for c in seen.claims)
        self.points = {c.name: curve_fits.seen_points(c) for c in seen.curves if c.use == "calibrate"}
        self.asked = curve_checks.sizes_asked(seen.claims, seen.entries, seen.below)
        self.report, self.total = report, total
        self.evaluations = 0
        self.known: dict[tuple[float, ...], np.ndarray] = {}

    def sets(self, x: Sequence[float]) -> list[str]:
        return [f"{f.path}={number_text(f, v)}" for f, v in zip(self.free, x, strict=True)]

    def times(self, curve: PaperCurve, sizes: Iterable[int], x: Sequence[float]) -> dict[int, float]:
        """Size -> time (s) of a curve; a value of the fitted platform is set on that platform alone."""
        mine = [s for s in self.sets(x) if not s.startswith("platform.") or curve.platform == self.platform]
        return curves.simulate_times(curve, sizes, mine)

    def curve_residuals(self, x: Sequence[float]) -> list[float]:
        """Of every point that a fit sees, as of `curve_fits`: logarithms in units of the tolerance and the point's error."""
        out: list[float] = []
        for curve in self.seen.curves:
            if points := self.points.get(curve.name):
                out += curve_fits.residuals(points, self.times(curve, (p.size for p in points), x))
        return out

    def judge_curves(self, x: Sequence[float]) -> list[dict[str, Any]]:
        """Rows as of `look` of the curves, the points held out apart: the median error in percent, and the residual in tolerances."""
        rows = []
        for curve in self.seen.curves:
            if curve.use == "calibrate":
                for row in curve_fits.judge_curve(curve, self.times(curve, {p.size for p in curve.points}, x)):
                    if row["median"] is not None:
                        away = max(row["median"] / row["limit"], row["largest"] / max(curve.largest, row["limit"]))
                        name = f"curve {curve.name}" + ("" if row["seen"] else f", {row['what']}")
                        rows.append({"claim": name, "low": 0.0, "high": 100 * row["limit"], "observed": 100 * row["median"], "unit": "%",
                                     "residual": away, "seen": row["seen"]})
        return rows

    def look(self, x: Sequence[float]) -> list[dict[str, Any]]:
        """Simulates with the parameters at ``x`` and measures every claim marked for calibration."""
        points, facts = look(self.looks, self.sets(x)) if self.plain else ([], {})
        named = [c for c in self.seen.curves if self.asked[c.name]]
        facts |= facts_of_curves(named, self.asked, lambda curve, sizes: self.times(curve, sizes, x))
        out = []
        for claim in self.seen.claims:
            for f in measure(claim, points, facts, entries=self.seen.entries):
                if isinstance(f.observed, int | float) and f.low is not None and f.high is not None and f.high > f.low:
                    middle, half = (f.low + f.high) / 2, (f.high - f.low) / 2
                    out.append({"claim": claim.id, "observed": float(f.observed), "low": f.low, "high": f.high,
                                "unit": f.unit, "residual": (float(f.observed) - middle) / half})
        return out

    def residuals(self, x: np.ndarray) -> np.ndarray:
        key = tuple(round(float(v), 9) for v in x)
        if key not in self.known:
            self.evaluations += 1
            self.known[key] = np.array([*(r["residual"] for r in self.look(key)), *self.curve_residuals(key)])
            if self.report:
                worst = float(np.max(np.abs(self.known[key]))) if len(self.known[key]) else 0.0
                self.report(min(self.evaluations, self.total), self.total, f"worst residual {worst:.2f} half ranges")
        return self.known[key]


def fit(model: str, platform: str, *, seed: int = 1, evaluations: int | None = None, progress: Progress | None = None) -> ModelFit:
    """Fits ``model`` on ``platform``. The same seed gives the same fit. No file is written (see `ModelFit.write`).

    Raises UsageError when no claim is marked for calibration or a fitted parameter has no range.
    """
    cls = registry.model(model)
    free = _free_parameters(cls, platform)
    seen = seen_by_fit(cls, model, platform)
    loaded = registry.platform(platform)
    platform_file = loaded.path.with_name(f"{loaded.path.stem}.fit.toml") if loaded.path and cls.fits_platform else None
    result = ModelFit(cls.name, cls.folder(), seed, 0, platform_file=platform_file)
    # The gradient search gets half a share of the evaluations, each simplex a whole one.
    shares = 0.5 + len(SIMPLEXES)
    share = max(1, int(evaluations / shares)) if evaluations else STARTS * STEPS * (len(free) + 1)
    problem = _Problem(model, platform, seen, free, progress, round(share * shares))
    if not free:
        result.residuals = [*problem.look([]), *problem.judge_curves([])]
        result.note = "nothing to fit: every number has a source"
        return result
    how = OptimiserSettings(
        starts=STARTS, steps=max(1, share // (2 * STARTS * (len(free) + 1))), step=0.05, scale=0.2, xtol=1e-6, ftol=1e-10,
        simplexes=SIMPLEXES, simplex_steps=share,
    )
    # Clock ticks and packet boundaries make the cost discontinuous in the parameters: a simplex copes with this, gradients do not.
    best = minimise(problem.residuals, len(free), how, seed)
    for i, f in enumerate(free):
        result.values.append({
            "parameter": f.path.partition(".")[2] if not f.path.startswith("platform.") else f.path, "value": number_text(f, best.x[i]),
            "low": value_text(f.low, f.unit), "high": value_text(f.high, f.unit),
            "note": identifiability(best.jacobian, best.x, i, "half ranges"),
        })
    at = [float(v) for v in best.x]
    result.residuals = [*problem.look(at), *problem.judge_curves(at)]
    if not result.residuals:
        raise UsageError(f"no claim of '{cls.name}' gives a number to fit to: {', '.join(c.id for c in seen.claims)}", code="no-claims")
    result.evaluations = problem.evaluations
    told = ", ".join(result.outside)
    result.note = f"outside their ranges: {told}" if told else "every claim seen by the fit lies in its range"
    return result
