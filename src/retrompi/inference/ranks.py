"""Simulation-based calibration: whether the intervals of a posterior hold the truth as often as they say.

A point of the prior is taken as the truth, and the simulator's own numbers there, a discrepancy, an error of measurement and the rounding
of what is printed make data of the published kind. The posterior of these data gives every parameter's truth a rank among its draws; over
many truths ranks are uniform if prior, emulator, likelihood and sampler are right (Talts et al., arXiv:1804.06788).

A truth is no training point of the emulator that judges it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom, chi2

from retrompi.inference import emulator
from retrompi.inference.likelihood import LEAST, Array, Likelihood, Observations, Replicas, correlation, sigma_of
from retrompi.inference.sampling import CubeSample, sample_each

__all__ = ["BINS", "DRAWS", "LEVEL", "Block", "RankTest", "Ranks", "check", "judge", "published_like"]

DRAWS = 99
"""Draws of a posterior: ranks are 0..99."""
LEVEL = 0.90
BINS = 10


@dataclass(frozen=True)
class Block:
    """Observables of the same runs: the dimensions ``dims`` that they depend on, and their ``columns``."""

    dims: Sequence[int]
    columns: Sequence[int]


@dataclass(frozen=True)
class Ranks:
    """``ranks`` [truths, dims + deviations], 0..``draws``: of the parameters, then of each discrepancy's standard deviation.

    ``seen``: the dimensions that the data depend on; the others have the prior's draws. ``skipped``: truths whose run did not complete.
    ``error`` [k]: the emulator's stated error, ``actual`` [k] that at the truths. ``r_hat`` and ``ess``: medians over the posteriors,
    ``left`` [dims]: the share of the prior's variance that is left, averaged.
    """

    ranks: Array
    draws: int
    deviations: int
    seen: tuple[int, ...]
    skipped: int
    error: Array
    actual: Array
    r_hat: float
    ess: float
    left: Array

    @property
    def dims(self) -> int:
        """Number of parameters."""
        return int(self.ranks.shape[1]) - self.deviations

    def judge_columns(self, dims: Sequence[int]) -> RankTest:
        """Coverage and uniformity of these columns together."""
        return judge(self.ranks[:, list(dims)], self.draws)


@dataclass(frozen=True)
class RankTest:
    """``coverage``: share of the truths inside the central interval of `LEVEL`; ``low``..``high``: between which it lies with 95 %
    probability if the posteriors are right and ranks independent; ``histogram`` of the ranks in `BINS` equal bins, and the probability
    ``p`` of a histogram at least as uneven (chi square; the ranks of one truth are taken as independent)."""

    coverage: float
    low: float
    high: float
    histogram: tuple[int, ...]
    p: float


def judge(ranks: Array, draws: int) -> RankTest:
    """Coverage and uniformity of ``ranks`` of any shape, 0..``draws``."""
    every = np.asarray(ranks).ravel()
    shares = (every + 0.5) / (draws + 1)
    tail = (1 - LEVEL) / 2
    inside = (shares > tail) & (shares < 1 - tail)
    counts = np.histogram(shares, bins=BINS, range=(0.0, 1.0))[0]
    n = max(len(every), 1)
    even = n / BINS
    low, high = (float(binom.ppf(q, n, LEVEL)) / n for q in (0.025, 0.975))
    return RankTest(float(inside.mean()) if len(every) else float("nan"), low, high, tuple(int(c) for c in counts),
                  float(chi2.sf(((counts - even) ** 2 / even).sum(), BINS - 1)))


def published_like(y: Array, sigma: Array, data: Observations, rng: np.random.Generator) -> tuple[Observations, Replicas]:
    """Data of the published kind about true observables ``y`` [n, k], with discrepancies ``sigma`` [n, deviations].

    A number is rounded as the published one: to the cell of a grid as wide as its interval, or to the side of its limit. Of several
    readings of one number only the first is kept.
    """
    n = len(y)
    first = {s.index: s for s in reversed(data.statements)}
    said = [first[i] for i in dict.fromkeys(s.index for s in data.statements)]
    limits = np.empty((n, len(said), 2))
    for j, s in enumerate(said):
        unit = np.ones(n) if s.log else np.abs(y[:, s.index])
        true = y[:, s.index] + unit * np.hypot(sigma[:, s.group], LEAST) * rng.standard_normal(n)
        low, high = s.limits
        if np.isfinite(low) and np.isfinite(high):
            cell = np.floor((true - low) / (high - low))
            limits[:, j, 0] = low + cell * (high - low)
            limits[:, j, 1] = low + (cell + 1) * (high - low)
        else:
            limit = low if np.isfinite(low) else high
            limits[:, j, 0] = np.where(true >= limit, limit, -np.inf)
            limits[:, j, 1] = np.where(true >= limit, np.inf, limit)
    times = []
    for c in data.curves:
        at = np.asarray(c.indices, dtype=int)
        smooth = np.linalg.cholesky(correlation(c.log10_size) + 1e-9 * np.eye(len(at)))
        discrepancy = sigma[:, c.group, None] * (rng.standard_normal((n, len(at))) @ smooth.T)
        if c.group in data.rough:
            discrepancy += sigma[:, data.groups + data.rough.index(c.group), None] * rng.standard_normal((n, len(at)))
        times.append(y[:, at] + discrepancy + np.maximum(np.asarray(c.error), LEAST) * rng.standard_normal((n, len(at))))
    return Observations(tuple(said), data.curves, data.groups), Replicas(limits, times)


def check(u: Array, y: Array, data: Observations, *, blocks: Sequence[Block] = (), truths: int = 100, seed: int = 1) -> Ranks:
    """Ranks of the last ``truths`` points of a design ``u`` [n, d] over the prior with observables ``y`` [n, k]; the other points train
    the emulator. The same seed gives the same ranks.

    ``blocks``: which observables depend on which dimensions (default: all on all). Raises ValueError if too few runs completed.
    """
    u, y = np.asarray(u, dtype=float), np.asarray(y, dtype=float)
    d, k = u.shape[1], y.shape[1]
    rng = np.random.default_rng(seed)
    parts = blocks or (Block(range(d), range(k)),)
    train, own = slice(0, len(u) - truths), slice(len(u) - truths, len(u))
    fits = [emulator.fit(u[train][:, list(b.dims)], y[train][:, list(b.columns)]) for b in parts]
    covariance = np.zeros((k, k))
    for b, f in zip(parts, fits, strict=True):
        covariance[np.ix_(b.columns, b.columns)] = f.covariance
    used = data.indices
    complete = np.isfinite(y[own][:, used]).all(axis=1)
    true_u, true_y = u[own][complete], y[own][complete]
    n = len(true_u)
    sigma = sigma_of(rng.uniform(size=(n, data.deviations)))
    likely, replicas = published_like(true_y, sigma, data, rng)
    likelihood = Likelihood(likely, covariance, replicas)
    seen = sorted({b.dims[i] for b, f in zip(parts, fits, strict=True) for c, column in enumerate(b.columns) if column in used
                   for i in f.active[c]})

    def predict(x: Array) -> Array:
        whole = np.full((len(x), d), 0.5)
        whole[:, seen] = x[:, : len(seen)]
        out = np.empty((len(x), k))
        for b, f in zip(parts, fits, strict=True):
            out[:, list(b.columns)] = f.predict(whole[:, list(b.dims)])
        return out

    def likelihoods(predicted: Array, x: Array, which: Array) -> Array:
        return likelihood(predicted, sigma_of(x[:, len(seen) :]), which)

    found: list[CubeSample] = sample_each(predict, likelihoods, len(seen) + data.deviations, n, seed, DRAWS)
    ranks = np.empty((n, d + data.deviations), dtype=int)
    left = np.ones((n, d))
    for i, one in enumerate(found):
        drawn = rng.uniform(size=(DRAWS, d))
        drawn[:, seen] = one.u[:, : len(seen)]
        ranks[i, :d] = (drawn < true_u[i]).sum(axis=0)
        ranks[i, d:] = (sigma_of(one.u[:, len(seen) :]) < sigma[i]).sum(axis=0)
        left[i] = drawn.var(axis=0) * 12
    predicted = predict(true_u[:, seen])
    actual = np.sqrt(np.nanmean((predicted - true_y) ** 2, axis=0))
    return Ranks(ranks, DRAWS, data.deviations, tuple(seen), truths - n, np.sqrt(np.diag(covariance)), actual,
                 float(np.median([s.r_hat for s in found])), float(np.median([s.ess for s in found])), left.mean(axis=0))
