"""Relative errors and their distribution, and the noise band of repeated measurements: pure functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from retrompi.measure.launch.stats import quantile, rank_quantile

__all__ = ["Band", "Distribution", "band", "distribution", "rank_quantile", "relative"]

BAND = (0.05, 0.95)
"""The quantiles of repeated measurements that bound the noise band."""


def relative(value: float | None, reference: float | None) -> float | None:
    """``value / reference - 1``; None where either is missing or the reference is not above 0."""
    if value is None or reference is None or not reference > 0 or not math.isfinite(value) or not math.isfinite(reference):
        return None
    return value / reference - 1


@dataclass(frozen=True)
class Band:
    """Repeated measurements of one time: ``low`` and ``high`` are the `BAND` quantiles, ``spread`` is (high - low) / median."""

    n: int
    median: float
    low: float
    high: float
    least: float
    most: float

    @property
    def spread(self) -> float | None:
        """None where the median is not above 0."""
        return (self.high - self.low) / self.median if self.median > 0 else None

    def holds(self, value: float | None) -> bool:
        """Whether ``value`` is inside the band; a single measurement has no band and contains nothing."""
        return value is not None and self.n > 1 and self.low <= value <= self.high


def band(samples: Iterable[float]) -> Band | None:
    """The band of repeated measurements; None without samples."""
    values = [s for s in samples if math.isfinite(s)]
    if not values:
        return None
    low, high = (quantile(values, q) for q in BAND)
    return Band(len(values), quantile(values, 0.5), low, high, min(values), max(values))


@dataclass(frozen=True)
class Distribution:
    """Signed relative errors: ``median`` and ``p95`` of their magnitudes, the signed ``worst`` and ``where`` it is, ``bias``: their median.

    ``p95`` is not interpolated: at least 95 % of the errors are not larger (`rank_quantile`).
    """

    n: int
    median: float
    p95: float
    worst: float
    where: str
    bias: float

    def row(self) -> dict[str, Any]:
        """A flat object."""
        return asdict(self)


def distribution(errors: Iterable[tuple[str, float | None]]) -> Distribution | None:
    """The distribution of named errors; those that are None are ignored. None when no errors are left."""
    known = [(name, e) for name, e in errors if e is not None]
    if not known:
        return None
    sizes = [abs(e) for _, e in known]
    where, worst = max(known, key=lambda pair: abs(pair[1]))
    return Distribution(len(known), quantile(sizes, 0.5), rank_quantile(sizes, 0.95), worst, where, quantile([e for _, e in known], 0.5))
