"""An emulator of the simulator: sparse polynomial chaos, fitted to a design of runs, with an error that is cross-validated.

The logarithm of a time is a smooth function of the logarithms of a few of the parameters. Each observable is a sum of products of
Legendre polynomials (single ones up to degree 3 of all parameters, products of two and three of the parameters that matter most); the lasso
selects the terms. Clock ticks, packets and thresholds make steps that a polynomial smooths: they are in `Emulator.error`, which the
likelihood adds.
The choice against Gaussian processes is measured in docs/uncertainty/tests.md.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from retrompi.inference.likelihood import Array

__all__ = ["FOLDS", "Emulator", "fit"]

FOLDS = 5
"""Parts of the design; each is predicted by an emulator of the others."""
PAIRED, MIXED, TRIPLED = 20, 12, 8
"""Parameters with products of two linear terms, of a linear and a quadratic one, and of three linear ones: those of largest effect."""
LEAST_SHARE = 1e-3
"""The least share of an observable's variance by which a parameter is seen."""
ALPHAS = 30
MOST_TERMS = 4
"""Runs for each term, at least."""
FEW = 30
"""The least number of completed runs that an emulator can be made of."""

Term = tuple[tuple[int, int], ...]
"""A product of Legendre polynomials: (parameter, degree)."""


@dataclass(frozen=True)
class Emulator:
    """``terms`` and their ``coefficients`` [terms, k] beside ``constant`` [k]; ``error`` [k]: the cross-validated standard deviation.

    ``covariance`` [k, k] of the cross-validated errors: those of neighbouring sizes are alike. ``active``: of every observable, the
    parameters that it depends on. ``residuals`` [n, k], nan where a run did not complete; ``dims``: number of parameters.
    """

    dims: int
    terms: tuple[Term, ...]
    constant: Array
    coefficients: Array
    error: Array
    covariance: Array
    active: tuple[tuple[int, ...], ...]
    residuals: Array

    def predict(self, u: Array) -> Array:
        """Observables [m, k] at points ``u`` [m, dims] of the unit cube."""
        return np.asarray(self.constant + _basis(np.asarray(u, dtype=float), self.terms) @ self.coefficients)

    def parameters_of(self, indices: Array | list[int]) -> list[int]:
        """The parameters that any of these observables depends on."""
        return sorted({d for i in indices for d in self.active[int(i)]})


def _basis(u: Array, terms: tuple[Term, ...]) -> Array:
    """[m, terms]; a polynomial has mean 0 and variance 1 over the unit interval."""
    x = np.ascontiguousarray(2.0 * u.T - 1.0)
    single = {(d, degree): _legendre(x[d], degree) for d, degree in {factor for term in terms for factor in term}}
    out = np.empty((len(terms), len(u)))
    for row, term in zip(out, terms, strict=True):
        row[:] = single[term[0]]
        for factor in term[1:]:
            row *= single[factor]
    return out.T


def _legendre(x: Array, degree: int) -> Array:
    if degree == 1:
        return np.asarray(np.sqrt(3.0) * x)
    return np.asarray(np.sqrt(5.0) * (1.5 * x**2 - 0.5) if degree == 2 else np.sqrt(7.0) * (2.5 * x**2 - 1.5) * x)


def _candidates(u: Array, z: Array) -> tuple[Term, ...]:
    """Terms that an observable may need: parameters are ranked by their largest effect on any of the observables ``z`` (of deviation 1)."""
    d = u.shape[1]
    single: list[Term] = [((i, degree),) for degree in (1, 2, 3) for i in range(d)]
    some = tuple(single[: 2 * d])
    basis = _basis(u, some)
    # Ridge: the design may have fewer runs than terms.
    effects = np.linalg.solve(basis.T @ basis + 0.02 * len(u) * np.eye(2 * d), basis.T @ z) ** 2
    order = [int(i) for i in np.argsort(-(effects[:d] + effects[d:]).max(axis=1), kind="stable")]
    pairs: list[Term] = [((a, 1), (b, 1)) for a, b in combinations(order[:PAIRED], 2)]
    mixed: list[Term] = [((a, 1), (b, 2)) for a in order[:MIXED] for b in order[:MIXED] if a != b]
    triples: list[Term] = [((a, 1), (b, 1), (c, 1)) for a, b, c in combinations(order[:TRIPLED], 3)]
    return (*single, *pairs, *mixed, *triples)


def _path(basis: Array, z: Array, alphas: Array) -> Array:
    """Coefficients of the lasso at every penalty, [terms, alphas]."""
    from sklearn.linear_model import lasso_path

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a path that has not converged to the last digit is a choice of terms all the same
        return np.asarray(lasso_path(basis, z, alphas=alphas, precompute=basis.T @ basis, max_iter=500, tol=1e-3)[1])


def _refit(basis: Array, z: Array, on: Array) -> Array:
    """Least squares of the terms ``on``: their coefficients, the constant first."""
    return np.asarray(np.linalg.lstsq(np.column_stack([np.ones(len(z)), basis[:, on]]), z, rcond=None)[0])


def _sparse(basis: Array, z: Array, fold: Array) -> tuple[Array, float, Array]:
    """Coefficients [terms], constant, and cross-validated residuals [n] of one observable of mean 0 and deviation 1.

    The relaxed lasso: a penalty selects terms, least squares fits them; the penalty is that of the least cross-validated error.
    """
    largest = float(np.abs(basis.T @ z).max()) / len(z)
    alphas = largest * np.logspace(0, -3.5, ALPHAS)
    residuals = np.full((len(z), ALPHAS), np.inf)
    for part in range(FOLDS):
        rest, out = fold != part, fold == part
        centre = z[rest].mean()
        path = _path(basis[rest], z[rest] - centre, alphas)
        last: Array = np.zeros(0, dtype=int)
        for i in range(ALPHAS):
            on = np.flatnonzero(path[:, i])
            if len(on) > rest.sum() // MOST_TERMS:
                break
            if i == 0 or not np.array_equal(on, last):
                found = _refit(basis[rest], z[rest], on)
                predicted = found[0] + basis[np.ix_(out, on)] @ found[1:]
            residuals[out, i] = z[out] - predicted
            last = on
    best = int(np.argmin((residuals**2).mean(axis=0)))
    on = np.flatnonzero(_path(basis, z - z.mean(), alphas[: best + 1])[:, best])
    found = _refit(basis, z, on)
    coefficients = np.zeros(basis.shape[1])
    coefficients[on] = found[1:]
    return coefficients, float(found[0]), residuals[:, best]


def fit(u: Array, y: Array, near: int = 0) -> Emulator:
    """Emulator of the observables ``y`` [n, k] at points ``u`` [n, d] of the unit cube; nan: a run that did not complete is left out.

    ``near``: the error is that of the last so many runs, where the posterior is; 0: of all. Deterministic. Raises ValueError for an
    observable with fewer than `FEW` completed runs.
    """
    u, y = np.asarray(u, dtype=float), np.asarray(y, dtype=float)
    n, k = y.shape
    known = np.isfinite(y)
    if (known.sum(axis=0) < FEW).any():
        raise ValueError(f"observable {int(np.argmin(known.sum(axis=0)))} has fewer than {FEW} completed runs")
    mean = np.nanmean(np.where(known, y, np.nan), axis=0)
    spread = np.nanstd(np.where(known, y, np.nan), axis=0)
    varies = spread > 1e-9
    z = np.where(known, (y - mean) / np.where(varies, spread, 1.0), 0.0)
    terms = _candidates(u, z)
    basis = _basis(u, terms)
    part = np.arange(n) % FOLDS
    coefficients, constant, residuals = np.zeros((len(terms), k)), mean.copy(), np.full((n, k), np.nan)
    active: list[tuple[int, ...]] = []
    dropped = np.zeros(k)
    has = [frozenset(d for d, _ in t) for t in terms]
    for j in range(k):
        mine = known[:, j]
        if not varies[j]:
            residuals[mine, j] = 0.0
            active.append(())
            continue
        own, base, left = _sparse(basis[mine], z[mine, j], part[mine])
        residuals[mine, j] = left * spread[j]
        share = {d: float(sum(own[i] ** 2 for i in np.flatnonzero(own) if d in has[i])) for d in range(u.shape[1])}
        seen = frozenset(d for d, s in share.items() if s > LEAST_SHARE)
        # What is not seen leaves; the error has what it explained.
        left_out = [i for i in np.flatnonzero(own) if not has[i] <= seen]
        dropped[j] = float((own[left_out] ** 2).sum()) * spread[j] ** 2
        own[left_out] = 0.0
        coefficients[:, j], constant[j] = own * spread[j], mean[j] + base * spread[j]
        active.append(tuple(sorted(seen)))
    used = np.flatnonzero((coefficients != 0).any(axis=1))
    covariance = _covariance(residuals[-near:]) + np.diag(dropped)
    return Emulator(u.shape[1], tuple(terms[i] for i in used), constant, coefficients[used], np.sqrt(np.diag(covariance)), covariance,
                    tuple(active), residuals)


def _covariance(residuals: Array) -> Array:
    """About zero, of the runs that completed; positive definite."""
    known = np.isfinite(residuals)
    filled = np.where(known, residuals, 0.0)
    both = known.astype(float).T @ known.astype(float)
    raw = filled.T @ filled / np.maximum(both, 1.0)
    if known.all():
        return np.asarray(raw)
    w, v = np.linalg.eigh(raw)  # pairwise counts can make it indefinite
    return np.asarray((v * np.maximum(w, 0.0)) @ v.T)
