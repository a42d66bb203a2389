"""Posteriors: training runs, emulators, the likelihood and a sampler put together, and the files that predictions are drawn from.

    found = posterior(of_model("wmpi", "nt-pair"), seed=1)
    found.write()                                   # models/wmpi/posterior.npz, and those of winmpich and hpvm

The file has a row a draw: the discrepancy, then every parameter in base units. Rows of the same number belong together in all files of a
group. docs/uncertainty.md has the rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from retrompi.base.errors import InputError, UsageError
from retrompi.inference import emulator, sampling
from retrompi.inference.design import Training, sobol
from retrompi.inference.likelihood import Array, Likelihood, sigma_of
from retrompi.inference.problem import PosteriorMember, Problem, ProblemPart, StatedNumber
from retrompi.spec import registry
from retrompi.spec.question import canonical_hash
from retrompi.studies.draws import posteriors

__all__ = ["CHECKED", "DRAWS", "ESS", "R_HAT", "SIMULATIONS", "Posterior", "has_converged", "posterior", "summary"]

DRAWS = 1000
SIMULATIONS = 512
"""Training runs of a part: half of them over the prior, half over the posterior that these give."""
CHECKED = 32
"""Draws at which the emulator is compared with the simulator when everything is done."""
R_HAT, ESS = 1.05, 400.0
"""Limits of convergence: the largest R-hat, the least effective sample size."""
Progress = Callable[[int, int, str], None]


def has_converged(diagnostics: Mapping[str, float]) -> bool:
    """Whether the diagnostics of a file lie within the limits."""
    return diagnostics["r_hat"] <= R_HAT and diagnostics["ess"] >= ESS


@dataclass(frozen=True)
class Posterior:
    """The draws of a problem: shares ``u`` [draws, dims] of the priors, ``sigma`` [draws, deviations] of the discrepancies, and what is
    told beside them."""

    problem: Problem
    seed: int
    u: Array
    sigma: Array
    diagnostics: Mapping[str, float]
    error: Mapping[str, float]
    log_evidence: float
    log_evidence_error: float
    simulations: int
    failed: float

    @property
    def converged(self) -> bool:
        """Whether the sampler converged."""
        return has_converged(self.diagnostics)

    @property
    def left(self) -> dict[str, float]:
        """Path -> the share of the prior's variance (on its scale) that is left."""
        return {p.path: float(self.u[:, i].var() * 12) for i, p in enumerate(self.problem.priors)}

    def rows(self) -> list[dict[str, Any]]:
        """Rows parameter, prior_low, prior_high, low, median, high (5, 50 and 95 %, base units), unit, left, fitted."""
        fitted = {path for m in self.problem.members for path in m.fitted}
        left = self.left
        found = []
        for i, p in enumerate(self.problem.priors):
            low, middle, high = (p.at(float(q)) for q in np.quantile(self.u[:, i], (0.05, 0.5, 0.95)))
            found.append({"parameter": p.path, "prior_low": p.low, "prior_high": p.high, "low": low, "median": middle, "high": high,
                          "unit": p.unit, "left": left[p.path], "fitted": p.path in fitted})
        return sorted(found, key=lambda row: (not row["fitted"], row["left"]))

    def write(self) -> list[Path]:
        """Writes the files of the members that are to be written, and returns them. Raises InputError for one that cannot be."""
        values = np.array([[p.at(float(x)) for x in self.u[:, i]] for i, p in enumerate(self.problem.priors)], dtype=np.float32)
        group = hashlib.sha256(values.tobytes() + self.sigma.astype(np.float32).tobytes()).hexdigest()[:16]
        return [self._write(m, values, group) for m in self.problem.members if m.name in self.problem.written]

    def _write(self, member: PosteriorMember, values: Array, group: str) -> Path:
        used = {path for i in member.parts for path in self.problem.parts[i].paths}
        mine = [i for i, p in enumerate(self.problem.priors) if p.path in used]
        data, model = self.problem.data, self.problem.models.index(member.model)
        columns = {posteriors.DISCREPANCY: self.sigma[:, model], **{self.problem.priors[i].path: values[i] for i in mine}}
        if model in data.rough:
            columns[posteriors.ROUGH] = self.sigma[:, data.groups + data.rough.index(model)]
        try:
            posteriors.write(member.file, columns, {**self._about(member, group), **_stamps()})
        except OSError as error:
            raise InputError(f"cannot write the posterior: {error.strerror or error}", member.file, code="unwritable-file") from None
        return member.file

    def _about(self, member: PosteriorMember, group: str) -> dict[str, Any]:
        """The facts of a member's file, except the stamps."""
        problem, left = self.problem, self.left
        parts = [problem.parts[i] for i in member.parts]
        priors = {p.path: p for part in parts for p in part.priors}
        everything = {
            "claims": sorted({i for part in problem.parts for o in part.observables if isinstance(o, StatedNumber) for i in o.stated_by}),
            "curves": sorted({name for m in problem.members for name in m.curves}),
        }
        return {
            "of": member.name if problem.platform else problem.of, "platform": problem.platform, "member": member.name,
            "models": [member.model], "rough": problem.models.index(member.model) in problem.data.rough, "group": group,
            "members": [m.name for m in problem.members], "fitted": list(member.fitted),
            "seed": self.seed, **everything,
            "own_claims": list(member.claims), "own_curves": list(member.curves), "model_hash": _hashes(parts),
            "priors": {k: [p.low, p.high, p.log, p.unit] for k, p in sorted(priors.items())},
            "seen": {k: round(left[k], 4) for k in sorted(priors)},
            "diagnostics": dict(self.diagnostics), "converged": self.converged, "emulator": dict(self.error), "sampler": sampling.NAME,
            "log_evidence": self.log_evidence, "log_evidence_error": self.log_evidence_error, "simulations": self.simulations,
            "failed": self.failed,
        }


def _hashes(parts: Sequence[ProblemPart]) -> dict[str, str]:
    """Model -> a hash of its code, by which a posterior is known to be older than its model."""
    models = dict.fromkeys(one.question.model for part in parts for one in part.looks)
    return {registry.model(m).name: registry.model(m).code_hash() for m in models}


def _stamps() -> dict[str, str]:
    from retrompi.papers.predict.predictions import stamps

    return stamps()


def summary(found: Posterior) -> str:
    """One line: what it is of, whether it converged, and how much of the prior is left."""
    d = found.diagnostics
    left = [v for path, v in found.left.items() if any(path in m.fitted for m in found.problem.members)]
    what = f"posterior of {', '.join(found.problem.written)}: {len(left)} fitted of {len(found.problem.priors)} parameters"
    numbers = f"R-hat {d['r_hat']:.3f}, effective sample size {d['ess']:.0f}"
    if not found.converged:
        return f"{what}; NOT CONVERGED ({numbers}; at most {R_HAT} and at least {ESS:.0f} are right): more --simulations, or another --seed"
    return f"{what}; {numbers}; of the fitted ones {min(left):.0%} to {min(1.0, max(left)):.0%} of the prior's variance is left"


# --- the computation ---------------------------------------------------------------------------------------------------------------


_FITTED: dict[tuple[str, str, int], emulator.Emulator] = {}
"""Emulators of this process: rivals share those of the models that they do not differ in."""


class _Trained:
    """The emulators of all parts on the dimensions of the problem, and the likelihood of the data with their errors."""

    def __init__(self, problem: Problem, u: Sequence[Array], y: Sequence[Array], near: int) -> None:
        self.problem = problem
        self.dims = [problem.dims(part) for part in problem.parts]
        self.fits = [_fit_emulator(part, a, b, near) for part, a, b in zip(problem.parts, u, y, strict=True)]
        self.error = np.concatenate([f.error for f in self.fits])
        size = [len(f.error) for f in self.fits]
        covariance = np.zeros((sum(size), sum(size)))
        at = 0
        for f, n in zip(self.fits, size, strict=True):
            covariance[at : at + n, at : at + n] = f.covariance
            at += n
        self.likelihood = Likelihood(problem.data, covariance)
        self.seen = sorted({dims[d] for f, dims in zip(self.fits, self.dims, strict=True) for k in f.active for d in k})

    def predict(self, u: Array) -> Array:
        """Observables of all parts [m, K] at points of the problem's cube."""
        return np.concatenate([f.predict(u[:, dims]) for f, dims in zip(self.fits, self.dims, strict=True)], axis=1)

    def log_density(self, x: Array) -> Array:
        """Logarithm of the likelihood at points of the cube of the seen parameters and the discrepancies, [m]."""
        u = np.full((len(x), len(self.problem.priors)), 0.5)
        u[:, self.seen] = x[:, : len(self.seen)]
        return self.likelihood(self.predict(u), sigma_of(x[:, len(self.seen) :]))


def _fit_emulator(part: ProblemPart, u: Array, y: Array, near: int) -> emulator.Emulator:
    """The emulator of a part; its error is that of the last ``near`` runs, which are where the posterior is. 0: of all."""
    key = (part.key, hashlib.sha256(u.tobytes() + y.tobytes()).hexdigest(), near)
    if key not in _FITTED:
        try:
            _FITTED[key] = emulator.fit(u, y, near=near)
        except ValueError as error:
            raise InputError(f"'{part.name}' has no emulator: {error}", code="not-completed") from None
    return _FITTED[key]


def posterior(problem: Problem, *, seed: int = 1, simulations: int = SIMULATIONS, progress: Progress | None = None) -> Posterior:
    """The joint posterior of a problem. The same seed gives the same draws; no file is written.

    ``simulations``: training runs of every part; those known are not simulated again. Raises InputError if too few of them complete,
    UsageError without the packages of the extra ``posterior``.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise UsageError("posteriors need scikit-learn and emcee: pip install 'retrompi[posterior]'", code="missing-tool") from None
    with threadpool_limits(1):  # matrices are small: threads of the linear algebra would only wait for each other, ten times as long
        return _posterior(problem, seed, simulations, progress)


def _posterior(problem: Problem, seed: int, simulations: int, progress: Progress | None) -> Posterior:
    first = max(simulations // 2, emulator.FEW)
    second = max(simulations - first, CHECKED)
    runs = _Runs(problem, first + second, progress)
    u, y = _trained_on(problem, seed, (first, second), runs)
    trained = _Trained(problem, u, y, second)
    drawn, told = _draw_points(trained, seed, DRAWS)
    some = drawn[:: DRAWS // CHECKED][:CHECKED]
    away = np.concatenate([runs.of(part, some[:, problem.dims(part)]) for part in problem.parts], axis=1) - trained.predict(some)
    checked = np.sqrt(np.nanmean(away**2, axis=0))
    names = [o.name for o in problem.observables]
    diagnostics = {"r_hat": told.r_hat, "ess": told.ess, "acceptance": told.acceptance,
                   "emulator_within_2_sd": float(np.nanmean(np.abs(away) <= 2 * trained.error)),
                   "incomplete_draws": float(np.isnan(away).any(axis=1).mean())}
    return Posterior(
        problem, seed, drawn, sigma_of(told.u[:, len(trained.seen) :]), {k: round(float(v), 5) for k, v in diagnostics.items()},
        {n: round(float(max(e, c)), 5) for n, e, c in zip(names, trained.error, checked, strict=True)},
        round(float(told.log_evidence), 4), round(float(told.log_evidence_error), 4), first + second,
        round(float(np.mean([np.isnan(part).any(axis=1).mean() for part in y])), 4),
    )


class _Runs:
    """Training runs of the parts of a problem, of which progress is told."""

    def __init__(self, problem: Problem, each: int, progress: Progress | None) -> None:
        self.training: dict[str, Training] = {}
        self.progress = progress
        self.done, self.total = 0, len(problem.parts) * (each + CHECKED)

    def of(self, part: ProblemPart, points: Array) -> Array:
        """The observables [n, k] of a part at points [n, d] of its own cube."""
        rows = self.training.setdefault(part.key, Training(part))
        found = rows.at(points, self.progress, self.done, self.total)
        self.done = min(self.done + len(points), self.total)
        return found


def _trained_on(problem: Problem, seed: int, waves: tuple[int, int], runs: _Runs) -> tuple[list[Array], list[Array]]:
    """The training points and observables of every part, of both waves.

    A rival variant has the runs of its base's group for the parts that they share: then their evidences differ by what differs.
    """
    first, second = waves
    shared: dict[str, tuple[Array, Array]] = {}
    if problem.base is not None:
        of_base = _trained_on(problem.base, seed, waves, runs)
        shared = {part.key: (a, b) for part, a, b in zip(problem.base.parts, *of_base, strict=True)}
    design = sobol(len(problem.priors), first, seed)
    u = [shared[part.key][0][:first] if part.key in shared else design[:, problem.dims(part)] for part in problem.parts]
    y = [shared[part.key][1][:first] if part.key in shared else runs.of(part, a) for part, a in zip(problem.parts, u, strict=True)]
    rough, _ = _draw_points(_Trained(problem, u, y, 0), seed, second)
    for i, part in enumerate(problem.parts):
        if part.key in shared:
            u[i], y[i] = shared[part.key]
        else:
            near = rough[:, problem.dims(part)]
            u[i], y[i] = np.concatenate([u[i], near]), np.concatenate([y[i], runs.of(part, near)])
    return u, y


def _draw_points(trained: _Trained, seed: int, draws: int) -> tuple[Array, sampling.CubeSample]:
    """Points of the problem's cube [draws, dims] from the posterior: the parameters that nothing seen depends on have their prior."""
    problem = trained.problem
    dims = len(trained.seen) + problem.data.deviations
    told = sampling.sample(trained.log_density, dims, seed, draws=draws, evidence=draws == DRAWS)
    u = np.empty((draws, len(problem.priors)))
    for i, p in enumerate(problem.priors):
        u[:, i] = np.random.default_rng([seed, int(canonical_hash(p.path)[:12], 16)]).uniform(size=draws)
    u[:, trained.seen] = told.u[:, : len(trained.seen)]
    return u, told
