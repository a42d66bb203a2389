"""Fitting a model's free parameters to the claims marked for calibration, inside their sourced ranges.

Bounded non-linear least squares (scipy) on the logarithms of the parameters, from the middle of the ranges and from a
seeded second start; a residual is the distance of a simulated number from the middle of its claim's range, in half ranges.
The claims come from `retrompi.papers.claims.for_fit`; nothing else of the reference is read.
"""

from __future__ import annotations

import datetime
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares, minimize

import retrompi
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, UsageError
from retrompi.papers.claims import Claim, for_fit
from retrompi.papers.evidence import own_for_fit
from retrompi.papers.verdicts import measure
from retrompi.spec import registry
from retrompi.spec.model import RuntimeModel

__all__ = ["Fit", "Free", "add_to_fit", "fit", "write_platform"]

Progress = Callable[[int, int, str], None]
STARTS = 2
STEPS = 12
"""Steps of the optimiser from each start; each costs one simulation a parameter and one more."""
SIMPLEXES = (0.15, 0.03, 0.005)
"""Initial sizes of the simplex as fractions of a range: a wide search, then finer ones."""
UNDETERMINED = 1e-2
"""A parameter whose whole range moves no residual by more than this many half ranges is not determined by the claims."""


@dataclass
class Free:
    """A free parameter; ``key`` as in ``--set``."""

    key: str
    unit: str
    low: float
    high: float
    text: str

    def value(self, x: float) -> float:
        """The value at ``x`` in 0..1 of the range, on a logarithmic scale, or a linear one if the range begins at zero."""
        if self.low > 0:
            return float(self.low * (self.high / self.low) ** x)
        return float(self.low + x * (self.high - self.low))

    def show(self, x: float) -> str:
        return _text(self.value(x), self.unit)


def _text(value: float, unit: str) -> str:
    """A value with its unit and six digits, as written to a fit file."""
    if unit == "s":
        for name, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
            if value >= scale or name == "ns":
                return f"{value / scale:.6g} {name}"
    if unit == "B/s":
        return f"{value / 1e6:.6g} MB/s"
    if unit == "B":
        return f"{max(1, round(value))} B"
    return f"{value:.6g}" if unit in ("1", "count", "probability") else f"{value:.6g} {unit}"


@dataclass
class Fit:
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
        """The claims outside their ranges."""
        return [r["claim"] for r in self.residuals if abs(r["residual"]) > 1]

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
                "version": retrompi.__version__,
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


def add_to_fit(file: Path, table: str, values: Mapping[str, str], meta: Mapping[str, Any], by: str) -> None:
    """Adds ``values`` to a table of a fit file, where those of other fits stay; lists of ``meta`` are united with those there.

    ``by``: the command that writes. Raises InputError if the file cannot be read or written.
    """
    tables = toml_text.read(file, "fit")[1] if file.exists() else {}
    mine = tables.setdefault(table, {})
    before = mine.get("meta", {})
    united = {k: sorted({*before.get(k, []), *v}) if isinstance(v, list) else v for k, v in meta.items()}
    mine["values"] = {**mine.get("values", {}), **values}
    mine["meta"] = {**before, "date": datetime.date.today().isoformat(), **united}
    try:
        file.write_text(toml_text.tables(by, tables), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the fit: {error.strerror}", file, code="unwritable-file") from None


def _free_parameters(cls: type[RuntimeModel], platform: str) -> list[Free]:
    free = []
    for name, p in cls.params().items():
        if not p.fitted:
            continue
        if p.low is None or p.high is None:
            raise UsageError(f"model '{cls.name}': parameter '{name}' is to be fitted but has no range low..high")
        free.append(Free(f"{cls.name.partition(':')[0]}.{name}", p.unit, p.low, p.high, p.default))
    described = {q["path"]: q for q in registry.platform(platform).describe()}
    for key in cls.fits_platform:
        host = registry.platform(platform).hosts[0].name
        q = described[f"{host}.{key}"]
        free.append(Free(f"platform.host.{key}", q["unit"], q["low"], q["high"], q["text"]))
    return free


def _experiment(cls: type[RuntimeModel]) -> Any:
    """``look`` of the experiment that a model is measured by."""
    try:
        return importlib.import_module(f"retrompi.papers.experiments.{cls.measured_by}").look
    except (ImportError, AttributeError, ValueError):
        raise InputError(f"no experiment '{cls.measured_by}' (measured_by of model '{cls.name}') measures a model",
                         cls.folder() / "__init__.py", code="broken-model") from None  # fmt: skip


class _Problem:
    def __init__(
        self, model: str, platform: str, claims: Sequence[Claim], free: Sequence[Free], report: Progress | None, total: int
    ) -> None:
        self.model, self.platform, self.claims, self.free = model, platform, list(claims), list(free)
        self.entries = own_for_fit(registry.model(model))[1]
        # The experiments of the papers' studies define how a model is measured for its fit, in a short form.
        self.measure_at = _experiment(registry.model(model))
        self.report, self.total = report, total
        self.evaluations = 0
        self.known: dict[tuple[float, ...], np.ndarray] = {}
        self.told: list[dict[str, Any]] = []

    def sets(self, x: Sequence[float]) -> list[str]:
        return [f"{f.key}={f.show(v)}" for f, v in zip(self.free, x, strict=True)]

    def look(self, x: Sequence[float]) -> list[dict[str, Any]]:
        """Simulates with the parameters at ``x`` and measures every claim marked for calibration."""
        points, facts = self.measure_at(self.model, self.platform, self.sets(x))
        out = []
        for claim in self.claims:
            for f in measure(claim, points, facts, entries=self.entries):
                if isinstance(f.observed, int | float) and f.low is not None and f.high is not None and f.high > f.low:
                    middle, half = (f.low + f.high) / 2, (f.high - f.low) / 2
                    out.append({"claim": claim.id, "observed": float(f.observed), "low": f.low, "high": f.high,
                                "unit": f.unit, "residual": (float(f.observed) - middle) / half})  # fmt: skip
        return out

    def residuals(self, x: np.ndarray) -> np.ndarray:
        key = tuple(round(float(v), 9) for v in x)
        if key not in self.known:
            self.evaluations += 1
            self.known[key] = np.array([r["residual"] for r in self.look(key)])
            if self.report:
                worst = float(np.max(np.abs(self.known[key]))) if len(self.known[key]) else 0.0
                self.report(min(self.evaluations, self.total), self.total, f"worst residual {worst:.2f} half ranges")
        return self.known[key]

    def cost(self, x: np.ndarray) -> float:
        """The soft-L1 cost minimised by both searches, which limits the weight of outliers."""
        r = self.residuals(np.asarray(x))
        return float(np.sum(2 * (np.sqrt(1 + r * r) - 1)))


def _simplex(x: np.ndarray, width: float) -> np.ndarray:
    """A simplex around ``x`` that stays inside 0..1."""
    corners = [np.array(x)]
    for i in range(len(x)):
        corner = np.array(x)
        corner[i] += width if corner[i] + width <= 1 else -width
        corners.append(corner)
    return np.array(corners)


def fit(model: str, platform: str, *, seed: int = 1, evaluations: int | None = None, progress: Progress | None = None) -> Fit:
    """Fits ``model`` on ``platform``. The same seed gives the same fit. No file is written (see `Fit.write`).

    Raises UsageError when no claim is marked for calibration or a fitted parameter has no range.
    """
    cls = registry.model(model)
    free = _free_parameters(cls, platform)
    claims = own_for_fit(cls)[0] or for_fit(cls.name)
    room = registry.platform(platform)
    platform_file = room.path.with_name(f"{room.path.stem}.fit.toml") if room.path and cls.fits_platform else None
    result = Fit(cls.name, cls.folder(), seed, 0, platform_file=platform_file)
    # The gradient search gets half a share of the evaluations, each simplex a whole one.
    shares = 0.5 + len(SIMPLEXES)
    share = max(1, int(evaluations / shares)) if evaluations else STARTS * STEPS * (len(free) + 1)
    problem = _Problem(model, platform, claims, free, progress, round(share * shares))
    if not free:
        result.residuals = problem.look([])
        result.note = "nothing to fit: every number has a source"
        return result
    draw = np.random.default_rng(seed)
    starts = [np.full(len(free), 0.5), *(draw.uniform(0.1, 0.9, len(free)) for _ in range(STARTS - 1))]
    best: Any = None
    for start in starts:
        found = least_squares(
            problem.residuals, start, bounds=(0, 1), diff_step=0.05, x_scale=0.2, loss="soft_l1",
            max_nfev=max(1, share // (2 * len(starts) * (len(free) + 1))), xtol=1e-6, ftol=1e-10,
        )  # fmt: skip
        if best is None or found.cost < best.cost:
            best = found
    # Clock ticks and packet boundaries make the cost discontinuous in the parameters: a simplex copes with this, gradients do not.
    for width in SIMPLEXES:
        polished = minimize(
            problem.cost, best.x, method="Nelder-Mead", bounds=[(0.0, 1.0)] * len(free),
            options={"maxfev": share, "xatol": 1e-6, "fatol": 1e-9, "initial_simplex": _simplex(best.x, width)},
        )  # fmt: skip
        if polished.fun < problem.cost(best.x):
            best.x = np.asarray(polished.x)
    jacobian = np.asarray(best.jac)
    for i, f in enumerate(free):
        moved = float(np.linalg.norm(jacobian[:, i]))
        others = np.delete(jacobian, i, axis=1)
        alone = moved
        if others.shape[1]:
            rest = jacobian[:, i] - others @ np.linalg.lstsq(others, jacobian[:, i], rcond=None)[0]
            alone = float(np.linalg.norm(rest))
        at_edge = best.x[i] < 1e-3 or best.x[i] > 1 - 1e-3
        if moved < UNDETERMINED:
            note = "not determined: no claim that may be seen depends on it"
        elif alone < 0.05 * moved:
            note = "determined only together with others: a change of them can stand in for it"
        else:
            note = f"determined: its range moves the residuals by {moved:.3g} half ranges"
        result.values.append({
            "parameter": f.key.partition(".")[2] if not f.key.startswith("platform.") else f.key, "value": f.show(best.x[i]),
            "low": _text(f.low, f.unit), "high": _text(f.high, f.unit), "note": note + (" (at the edge of its range)" if at_edge else ""),
        })  # fmt: skip
    result.residuals = problem.look([float(v) for v in best.x])
    if not result.residuals:
        raise UsageError(f"no claim of '{cls.name}' gives a number to fit to: {', '.join(c.id for c in claims)}", code="no-claims")
    result.evaluations = problem.evaluations
    told = ", ".join(result.outside)
    result.note = f"outside their ranges: {told}" if told else "every claim seen by the fit lies in its range"
    return result
