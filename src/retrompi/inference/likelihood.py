"""The likelihood of published numbers: statements censored to an interval, and curves with a discrepancy that is a Gaussian process.

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

from retrompi.studies.uncertainty import DISCREPANCY_SCALE, kernel

__all__ = ["Array", "Data", "Likelihood", "MeasuredCurve", "Replicas", "Statement", "correlation", "log_likelihood", "sigma_of"]

Array = NDArray[Any]
LEAST = 1e-3
"""The least relative error of a curve's point and the least deviation of a statement: clocks, digits of a file."""


@dataclass(frozen=True)
class Statement:
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
class MeasuredCurve:
    """Points of a curve: the logarithms of their times in s, relative errors (standard deviations), log10(1 + size in B)."""

    indices: Sequence[int]
    log_time: Sequence[float]
    error: Sequence[float]
    log10_size: Sequence[float]
    group: int = 0


@dataclass(frozen=True)
class Data:
    """What was published about the observables; ``groups``: number of models with a discrepancy of their own."""

    statements: Sequence[Statement] = ()
    curves: Sequence[MeasuredCurve] = ()
    groups: int = 1

    @property
    def indices(self) -> list[int]:
        """The observables that something was published about."""
        return sorted({*(s.index for s in self.statements), *(i for c in self.curves for i in c.indices)})


def sigma_of(u: Array) -> Array:
    """Standard deviation of the discrepancy at shares ``u`` in 0..1 of its prior."""
    return np.asarray(DISCREPANCY_SCALE * ndtri(0.5 + 0.5 * np.clip(u, 0.0, 1.0 - 1e-12)))


def correlation(log10_size: Sequence[float]) -> Array:
    """That of the discrepancy at the sizes of a curve, [n, n]; the one that draws have (`retrompi.studies.uncertainty`)."""
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


class Likelihood:
    """The likelihood of ``data`` where the observables are known up to ``error``: deviations [k], or a covariance [k, k].

    ``replicas``: data sets to be judged in place of the published one.
    """

    def __init__(self, data: Data, error: Array, replicas: Replicas | None = None) -> None:
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
        self._curves = []
        for c in data.curves:
            at = np.asarray(c.indices, dtype=int)
            known = np.diag(np.maximum(np.asarray(c.error, dtype=float), LEAST) ** 2) + covariance[np.ix_(at, at)]
            # One decomposition serves every standard deviation of the discrepancy: K v = w C v, so that (C + s² K) is diagonal.
            w, v = eigh(correlation(c.log10_size), known)
            constant = -0.5 * (np.linalg.slogdet(known)[1] + len(at) * np.log(2 * np.pi))
            self._curves.append((at, np.asarray(c.log_time, dtype=float), v, np.maximum(w, 0.0), constant, c.group))

    def terms(self, y: Array, sigma: Array, which: Array | None = None) -> Array:
        """Logarithms of the likelihood of each of `numbers`, then of every curve: [m, numbers + curves] for ``y`` [m, k], ``sigma``
        [m, groups]; -inf where an observable is not a number (the run did not complete). ``which`` [m]: the replica of every row."""
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
        for j, (points, log_time, v, w, constant, group) in enumerate(self._curves):
            told = log_time if self.replicas is None else self.replicas.log_times[j][which]
            away = (told - y[:, points]) @ v
            spread = 1.0 + sigma[:, group, None] ** 2 * w
            out[:, n + j] = constant - 0.5 * (away**2 / spread + np.log(spread)).sum(axis=1)
        return np.where(np.isnan(out), -np.inf, out)

    def __call__(self, y: Array, sigma: Array, which: Array | None = None) -> Array:
        """Logarithm of the likelihood, [m]."""
        return np.asarray(self.terms(y, sigma, which).sum(axis=1))


def log_likelihood(y: Array, y_error: Array, sigma: Array, data: Data) -> Array:
    """Logarithm of the likelihood [m] of observables ``y`` [m, k] known up to ``y_error`` ([k] or [k, k]); ``sigma``: [m] or
    [m, groups]."""
    s = np.asarray(sigma, dtype=float)
    return Likelihood(data, y_error)(np.asarray(y, dtype=float), s[:, None] if s.ndim == 1 else s)
