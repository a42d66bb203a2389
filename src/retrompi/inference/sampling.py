"""Draws from a posterior over the unit cube, by emcee's ensemble sampler with differential-evolution moves.

The cube is mapped to independent normal variables: there the prior has no edges, and the posterior is closer to a normal distribution,
which the moves are made for. The choice among libraries and moves is measured in docs/uncertainty; emcee's snooker move is not used,
since its draws of a known posterior are a tenth too narrow. The evidence is by importance sampling from a mixture of normal distributions
fitted to the draws.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtr

from retrompi.base.errors import UsageError
from retrompi.inference.likelihood import Array

__all__ = ["NAME", "CubeSample", "r_hat", "sample", "sample_each"]

LogLikelihood = Callable[[Array], Array]
"""Points of the unit cube [m, dims] -> logarithm of the likelihood [m]."""
Predict = Callable[[Array], Array]
"""Points of the unit cube [m, dims] -> what the data sets are compared with [m, ...]."""
Judge = Callable[[Array, Array, Array], Array]
"""What `Predict` gave, its points [m, dims], and for each the number of its data set [m] -> logarithm of the likelihood [m]."""

NAME = "emcee, differential evolution"
ENSEMBLES = 2
"""Independent ensembles of a posterior, compared by R-hat."""
THIN = 5
"""Steps between those that are kept."""
FIRST, BLOCK = 1200, 400
"""Steps before the first look at convergence, and between looks."""
FIRST_EACH, BLOCK_EACH = 300, 150
"""The same where many data sets are sampled together."""
MOST_STEPS = 10_000
ENOUGH_R_HAT = 1.02
LENGTHS = 8
"""Autocorrelation times, at least, that the kept half of a chain is long: below that their estimate is not reliable."""
SCOUTS = 8192
"""Points of the prior from which the walkers' first places are taken."""
EVIDENCE = 20_000
"""Points of the importance sample for the evidence."""
EDGE = 1e-12


@dataclass(frozen=True)
class CubeSample:
    """Draws ``u`` [draws, dims] in the unit cube and how well they were found.

    ``r_hat``: the largest of all dimensions, between and within the halves of independent ensembles. ``ess``: the least effective sample
    size of any dimension, of all steps kept. ``log_evidence`` and its standard error are nan where they were not asked for.
    """

    u: Array
    r_hat: float
    ess: float
    acceptance: float
    log_evidence: float = float("nan")
    log_evidence_error: float = float("nan")
    steps: int = 0


def _emcee() -> Any:
    try:
        import emcee
    except ImportError:
        raise UsageError("posteriors need the package emcee: pip install 'retrompi[posterior]'", code="missing-tool") from None
    return emcee


def r_hat(chains: Array) -> float:
    """The largest R-hat of ``chains`` [chains, draws, dims], of the values and of their distances from the median: the latter sees chains
    that differ in width (Vehtari et al., Bayesian Analysis 16, 2021; without its ranks, since the chains are close to normal)."""
    return max(_r_hat(chains), _r_hat(np.abs(chains - np.median(chains, axis=(0, 1)))))


def _r_hat(chains: Array) -> float:
    draws = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean(axis=0)
    between = chains.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.sqrt((draws - 1) / draws + between / within)
    return float(np.max(np.where(within > 0, found, np.inf)))


def _starts(told: Array, walkers: int, rng: np.random.Generator) -> Array:
    """Indices [walkers] of points of the prior, by their log likelihoods ``told``: in proportion to a power of the likelihood, as large as
    leaves several times as many effective points as walkers. They are spread over the posterior and beyond."""
    if not np.isfinite(told).any():
        raise UsageError("no point of the prior is possible: the likelihood is zero everywhere", code="no-results")
    low, high = 0.0, 1.0
    for _ in range(25):
        power = (low + high) / 2
        weights = np.exp(power * (told - told.max()))
        low, high = (power, high) if weights.sum() ** 2 / (weights**2).sum() > 2 * walkers else (low, power)
    weights = np.where(np.isfinite(told), np.exp(low * (told - told.max())), 0.0)
    few = int((weights > 0).sum()) < walkers
    return rng.choice(len(told), size=walkers, replace=few, p=weights / weights.sum())


def _within(emcee: Any, sets: int) -> Any:
    """emcee's differential-evolution move for ``sets`` ensembles in one: a walker moves by the difference of two others of its ensemble.

    The last coordinate of a walker is the number of its ensemble, and stays. Every tenth step is as long as the difference itself, which
    changes modes (ter Braak, Statistics and Computing 16, 2006).
    """

    class Within(emcee.moves.RedBlueMove):  # type: ignore[misc]
        def get_proposal(self, s: Array, c: list[Array], random: np.random.RandomState) -> tuple[Array, Array]:
            own = s.reshape(sets, -1, s.shape[1])
            others = c[0].reshape(sets, -1, s.shape[1])
            count = others.shape[1]
            a = random.randint(count, size=own.shape[:2])
            b = (a + 1 + random.randint(count - 1, size=own.shape[:2])) % count
            row = np.arange(sets)[:, None]
            dims = s.shape[1] - 1
            length = 1.0 if random.rand() < 0.1 else 2.38 / np.sqrt(2 * dims) * (1 + 0.1 * random.randn(*own.shape[:2], 1))
            moved = own + length * (others[row, a] - others[row, b])
            moved[..., :-1] += 1e-5 * random.randn(*own.shape[:2], dims)
            moved[..., -1] = own[..., -1]
            return moved.reshape(s.shape), np.zeros(len(s))

    # The halves alternate, so that each has as many walkers of every ensemble.
    return Within(nsplits=2, randomize_split=False)


class _Ensembles:
    """``sets`` independent ensembles that step together: one call of the likelihood for all of them."""

    def __init__(self, predict: Predict, judge: Judge, dims: int, sets: int, rng: np.random.Generator) -> None:
        self.emcee, self.dims, self.sets = _emcee(), dims, sets
        self.walkers = max(48, 2 * (dims + dims // 2))

        def log_posterior(x: Array) -> Array:
            z = x[:, :-1]
            u = _cube(z)
            told = judge(predict(u), u, np.rint(x[:, -1]).astype(int)) - 0.5 * (z**2).sum(axis=1)
            return np.where(np.isnan(told), -np.inf, told)

        scouts = rng.standard_normal((SCOUTS, dims))
        u = _cube(scouts)
        y = np.concatenate([predict(part) for part in np.array_split(u, 4)])
        begin = np.empty((sets, self.walkers, dims + 1))
        for i in range(sets):
            told = judge(y, u, np.full(SCOUTS, i))
            begin[i, :, :-1] = scouts[_starts(np.where(np.isnan(told), -np.inf, told), self.walkers, rng)]
            begin[i, :, -1] = i
        begin[..., :-1] += 1e-3 * rng.standard_normal((sets, self.walkers, dims))  # no two walkers at one place
        moves = _within(self.emcee, sets)
        self.sampler = self.emcee.EnsembleSampler(sets * self.walkers, dims + 1, log_posterior, moves=moves, vectorize=True)
        state = np.random.RandomState(int(rng.integers(2**32))).get_state()
        self.at = self.emcee.State(begin.reshape(-1, dims + 1), random_state=state)
        self.steps = 0

    def go(self, steps: int) -> None:
        """So many steps more."""
        self.at = self.sampler.run_mcmc(self.at, steps // THIN, thin_by=THIN, skip_initial_state_check=True)
        self.steps += steps // THIN * THIN

    @property
    def kept(self) -> Array:
        """The second half of the steps, [sets, steps, walkers, dims]."""
        chain = self.sampler.get_chain(discard=self.steps // THIN // 2)[..., :-1]
        return np.asarray(chain.reshape(len(chain), self.sets, self.walkers, self.dims).transpose(1, 0, 2, 3))

    def tau(self, chain: Array) -> float:
        """The longest autocorrelation time of any dimension, in kept steps, of ``chain`` [steps, walkers, dims]."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            told = np.asarray(self.emcee.autocorr.integrated_time(chain, quiet=True, tol=0))
        return float(np.max(np.where(np.isfinite(told), np.maximum(told, 1.0), np.inf)))


def _cube(z: Array) -> Array:
    return np.asarray(np.clip(ndtr(z), EDGE, 1 - EDGE))


def _halves(chains: Array) -> Array:
    """Each half of each of ``chains`` [chains, steps, walkers, dims] as a chain, its walkers together."""
    half = chains.shape[1] // 2
    return np.concatenate([part.reshape(len(chains), -1, chains.shape[3]) for part in (chains[:, :half], chains[:, half : 2 * half])])


def sample(log_likelihood: LogLikelihood, dims: int, seed: int, draws: int = 1000, evidence: bool = True) -> CubeSample:
    """``draws`` points of the posterior under a uniform prior in the unit cube. The same seed gives the same draws.

    Steps are added until R-hat and the effective sample size (at least ``draws``) are good, or `MOST_STEPS` are made: what was reached
    is in the `CubeSample`. Raises UsageError if emcee is not installed or no point of the prior is possible.
    """
    rng = np.random.default_rng(seed)
    run = _Ensembles(log_likelihood, lambda told, u, which: told, dims, ENSEMBLES, rng)
    while True:
        run.go(BLOCK if run.steps else FIRST)
        kept = run.kept
        tau = [run.tau(c) for c in kept]
        size = sum(c.shape[0] * c.shape[1] / t for c, t in zip(kept, tau, strict=True))
        mixed = r_hat(_halves(kept))
        if (mixed <= ENOUGH_R_HAT and size >= draws and kept.shape[1] >= LENGTHS * max(tau)) or run.steps >= MOST_STEPS:
            break
    every = kept.reshape(-1, dims)
    at = rng.permutation(len(every))[:draws]
    told = _evidence(log_likelihood, every, rng) if evidence else (np.nan, np.nan)
    return CubeSample(_cube(every[at]), mixed, float(size), float(run.sampler.acceptance_fraction.mean()), *told, run.steps)


def sample_each(predict: Predict, judge: Judge, dims: int, data_sets: int, seed: int, draws: int = 99) -> list[CubeSample]:
    """A posterior for each of ``data_sets``, all sampled together: as `sample`, with one ensemble each and no evidence.

    Steps are added until nineteen of twenty have the effective sample size ``draws``.
    """
    rng = np.random.default_rng(seed)
    run = _Ensembles(predict, judge, dims, data_sets, rng)
    while True:
        run.go(BLOCK_EACH if run.steps else FIRST_EACH)
        kept = run.kept
        tau = np.array([run.tau(c[:, ::3]) for c in kept])
        size = kept.shape[1] * kept.shape[2] / tau
        enough = (size >= draws) & (kept.shape[1] >= LENGTHS / 2 * tau)
        if enough.mean() >= 0.95 or run.steps >= MOST_STEPS:
            break
    rate = run.sampler.acceptance_fraction.reshape(data_sets, -1).mean(axis=1)
    found = []
    for i, chain in enumerate(kept):
        every = chain.reshape(-1, dims)
        at = rng.permutation(len(every))[:draws]
        found.append(CubeSample(_cube(every[at]), r_hat(_halves(chain[None])), float(size[i]), float(rate[i]), steps=run.steps))
    return found


def _evidence(log_likelihood: LogLikelihood, z: Array, rng: np.random.Generator) -> tuple[float, float]:
    """Logarithm of the evidence and its standard error. The proposal: a mixture fitted to the draws and widened, with a tenth of the
    prior, so that weights are bounded where the draws have none."""
    from sklearn.mixture import GaussianMixture

    dims = z.shape[1]
    some = z[rng.permutation(len(z))[:4000]]
    tried = [GaussianMixture(k, reg_covar=1e-4, random_state=0, max_iter=200).fit(some) for k in (1, 2, 3)]
    best = min(tried, key=lambda g: float(g.bic(some)))
    widened = [1.2 * c for c in best.covariances_]
    prior = 0.1
    which = rng.choice(len(widened) + 1, size=EVIDENCE, p=[*((1 - prior) * best.weights_ / best.weights_.sum()), prior])
    means, covariances = [*best.means_, np.zeros(dims)], [*widened, np.eye(dims)]
    points = np.empty((EVIDENCE, dims))
    for i, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        mine = which == i
        points[mine] = rng.multivariate_normal(mean, covariance, size=int(mine.sum()))
    log_q = logsumexp([np.log(w) + _log_normal(points, m, c) for w, m, c in
                       zip([*((1 - prior) * best.weights_), prior], means, covariances, strict=True)], axis=0)
    told = np.concatenate([log_likelihood(_cube(part)) for part in np.array_split(points, 10)])
    log_w = np.where(np.isnan(told), -np.inf, told) + _log_normal(points, np.zeros(dims), np.eye(dims)) - log_q
    log_z = float(logsumexp(log_w) - np.log(EVIDENCE))
    return log_z, float(np.std(np.exp(log_w - log_z)) / np.sqrt(EVIDENCE))


def _log_normal(x: Array, mean: Array, covariance: Array) -> Array:
    lower = np.linalg.cholesky(covariance)
    away = np.linalg.solve(lower, (x - mean).T)
    return np.asarray(-0.5 * (away**2).sum(axis=0) - np.log(np.diag(lower)).sum() - 0.5 * len(mean) * np.log(2 * np.pi))
