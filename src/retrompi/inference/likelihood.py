"""The likelihood of published numbers: statements censored to an interval, and curves with a discrepancy in two parts: a Gaussian process,
which is smooth in the size, and one without correlation between sizes.

An *observable* is one simulated number: a time, a rate, a ratio. Arrays hold its natural logarithm where its datum is on the logarithmic
scale, the number itself otherwise. The rules and their reasons are in docs/uncertainty.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import log_ndtr, logsumexp, ndtri

from retrompi.studies.draws.uncertainty import DISCREPANCY_SCALE, kernel

__all__ = ["Array", "CurveData", "Likelihood", "Observations", "Replicas", "StatedInterval", "correlation", "log_likelihood", "sigma_of"]

Array = NDArray[Any]
LEAST = 1e-3
"""The least relative error of a curve's point and the least deviation of a statement: clocks, digits of a file."""
ROUGH_POINTS = 20
"""Points from which a curve tells the part of its discrepancy without correlation from the smooth one (docs/uncertainty/decided.md)."""


@dataclass(frozen=True)
class StatedInterval:
    """A published number in an interval: observable ``index`` lies in ``low``..``high``, in its unit; an infinite limit is none.

    ``log``: the discrepancy multiplies; it is a share of the simulated number on the linear scale too. ``group``: whose discrepancy, where
    several models have a joint posterior. Several statements of one ``index`` are readings of one number, each as credible as the others.
    """

    index: int
    low: float
    high: float
    log: bool = True
    group: int = 0

    @cached_property
    def limits(self) -> tuple[float, float]:
        """``low`` and ``high`` on the scale of the observable."""
        if not self.log:
            return self.low, self.high
        return (float(np.log(self.low)) if self.low > 0 else -np.inf), (float(np.log(self.high)) if self.high > 0 else -np.inf)


@dataclass(frozen=True)
class CurveData:
    """Points of a curve: the logarithms of their times in s, relative errors (standard deviations), log10(1 + size in B)."""

    indices: Sequence[int]
    log_time: Sequence[float]
    error: Sequence[float]
    log10_size: Sequence[float]
    group: int = 0


@dataclass(frozen=True)
class Observations:
    """Published values of the observables; ``groups``: number of models with a discrepancy of their own.

    Its standard deviations are the columns of every ``sigma``: the smooth part's of each group, then those of `rough`.
    """

    statements: Sequence[StatedInterval] = ()
    curves: Sequence[CurveData] = ()
    groups: int = 1

    @cached_property
    def rough(self) -> tuple[int, ...]:
        """The groups whose discrepancy has a part without correlation between sizes: those with a curve of `ROUGH_POINTS`."""
        return tuple(sorted({c.group for c in self.curves if len(c.indices) >= ROUGH_POINTS}))

    @property
    def deviations(self) -> int:
        """The number of standard deviations of discrepancies."""
        return self.groups + len(self.rough)

    @property
    def indices(self) -> list[int]:
        """The observables that something was published about."""
        return sorted({*(s.index for s in self.statements), *(i for c in self.curves for i in c.indices)})


def sigma_of(u: Array) -> Array:
    """Standard deviation of the discrepancy at shares ``u`` in 0..1 of its prior."""
    return np.asarray(DISCREPANCY_SCALE * ndtri(0.5 + 0.5 * np.clip(u, 0.0, 1.0 - 1e-12)))


def correlation(log10_size: Sequence[float]) -> Array:
    """That of the discrepancy at the sizes of a curve, [n, n]; the one that draws have (`retrompi.studies.draws.uncertainty`)."""
    at = np.asarray(log10_size, dtype=float)
    return kernel(at, at)


def _log_between(a: Array, b: Array) -> Array:
    """Logarithm of the standard normal probability between ``a`` and ``b``, precise in both tails."""
    flip = a > 0
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    top = log_ndtr(high)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(top + np.log1p(-np.exp(np.minimum(log_ndtr(low) - top, 0.0))))


@dataclass(frozen=True)
class Replicas:
    """Data sets that differ in their numbers only: ``limits`` [sets, statements, 2] on the scale of the observables, and of every curve
    the logarithms of its times [sets, points]."""

    limits: Array
    log_times: Sequence[Array]

    def __len__(self) -> int:
        return len(self.limits)


class _Smooth:
    """A measured curve whose differences from what is simulated have the covariance C + s² K: errors C, discrepancy of deviation s."""

    def __init__(self, c: CurveData, errors: Array, group: int) -> None:
        self.points = np.asarray(c.indices, dtype=int)
        self.log_time = np.asarray(c.log_time, dtype=float)
        self._group = group
        # One decomposition serves every standard deviation of the discrepancy: K v = w C v, so that (C + s² K) is diagonal.
        w, self._turn = eigh(correlation(c.log10_size), errors)
        self._w = np.maximum(w, 0.0)
        self._constant = -0.5 * (np.linalg.slogdet(errors)[1] + len(self.points) * np.log(2 * np.pi))

    def log_density(self, away: Array, sigma: Array) -> Array:
        """Logarithm of the density [m] of differences ``away`` [m, points]; nan where one is not a number."""
        spread = 1.0 + sigma[:, self._group, None] ** 2 * self._w
        return np.asarray(self._constant - 0.5 * ((away @ self._turn) ** 2 / spread + np.log(spread)).sum(axis=1))


class _Rough:
    """The same with a part of deviation t without correlation between sizes: C + s² K + t² I."""

    def __init__(self, c: CurveData, errors: Array, group: int, rough: int) -> None:
        self.points = np.asarray(c.indices, dtype=int)
        self.log_time = np.asarray(c.log_time, dtype=float)
        self._errors, self._smooth, self._columns = errors, correlation(c.log10_size), (group, rough)

    def log_density(self, away: Array, sigma: Array) -> Array:
        """As `_Smooth.log_density`."""
        s, t = (sigma[:, i, None, None] ** 2 for i in self._columns)
        lower = np.linalg.cholesky(self._errors + s * self._smooth + t * np.eye(len(self.points)))
        z = np.linalg.solve(lower, away[:, :, None])[:, :, 0]
        logs = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        return np.asarray(-0.5 * ((z**2).sum(axis=1) + len(self.points) * np.log(2 * np.pi)) - logs)


def _curve_term(c: CurveData, covariance: Array, data: Observations) -> _Smooth | _Rough:
    at = np.asarray(c.indices, dtype=int)
    errors = np.diag(np.maximum(np.asarray(c.error, dtype=float), LEAST) ** 2) + covariance[np.ix_(at, at)]
    return _Rough(c, errors, c.group, data.groups + data.rough.index(c.group)) if c.group in data.rough else _Smooth(c, errors, c.group)


class Likelihood:
    """The likelihood of ``data`` where the observables are known up to ``error``: deviations [k], or a covariance [k, k].

    ``replicas``: data sets to be judged in place of the published one.
    """

    def __init__(self, data: Observations, error: Array, replicas: Replicas | None = None) -> None:
        self.data = data
        self.replicas = replicas
        covariance = np.diag(np.asarray(error, dtype=float) ** 2) if np.ndim(error) == 1 else np.asarray(error, dtype=float)
        said = data.statements
        self._index = np.array([s.index for s in said], dtype=int)
        self._group = np.array([s.group for s in said], dtype=int)
        self._limits = np.array([s.limits for s in said], dtype=float).reshape(-1, 2)
        self._linear = np.array([not s.log for s in said], dtype=bool)
        self.numbers = list(dict.fromkeys(s.index for s in said))
        """The observables that statements are about, in the order of `terms`."""
        self._readings = [np.flatnonzero(self._index == i) for i in self.numbers]
        self._error = np.sqrt(np.diag(covariance))[self._index] if len(said) else np.zeros(0)
        self._curves = [_curve_term(c, covariance, data) for c in data.curves]

    def terms(self, y: Array, sigma: Array, which: Array | None = None) -> Array:
        """Logarithms of the likelihood of each of `numbers`, then of every curve: [m, numbers + curves] for ``y`` [m, k], ``sigma``
        [m, deviations]; -inf where an observable is not a number (the run did not complete). ``which`` [m]: the replica of every row."""
        n = len(self.numbers)
        out = np.zeros((len(y), n + len(self._curves)))
        if n:
            at = y[:, self._index]
            unit = np.where(self._linear, np.abs(at), 1.0)
            deviation = np.sqrt((np.hypot(sigma[:, self._group], LEAST) * unit) ** 2 + self._error**2) + 1e-300
            limits = self._limits if self.replicas is None else self.replicas.limits[which]
            told = _log_between((limits[..., 0] - at) / deviation, (limits[..., 1] - at) / deviation)
            for j, readings in enumerate(self._readings):
                first = told[:, readings[0]]
                out[:, j] = first if len(readings) == 1 else logsumexp(told[:, readings], axis=1) - np.log(len(readings))
        for j, curve in enumerate(self._curves):
            told = curve.log_time if self.replicas is None else self.replicas.log_times[j][which]
            out[:, n + j] = curve.log_density(told - y[:, curve.points], sigma)
        return np.where(np.isnan(out), -np.inf, out)

    def __call__(self, y: Array, sigma: Array, which: Array | None = None) -> Array:
        """Logarithm of the likelihood, [m]."""
        return np.asarray(self.terms(y, sigma, which).sum(axis=1))


def log_likelihood(y: Array, y_error: Array, sigma: Array, data: Observations) -> Array:
    """Logarithm of the likelihood [m] of observables ``y`` [m, k] known up to ``y_error`` ([k] or [k, k]); ``sigma``: [m] or
    [m, deviations]."""
    s = np.asarray(sigma, dtype=float)
    return Likelihood(data, y_error)(np.asarray(y, dtype=float), s[:, None] if s.ndim == 1 else s)
