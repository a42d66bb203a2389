"""Curves of known segments, and their times with noise, for the tests of fits and of models made of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Truth = Sequence[tuple[int, float, float]]
"""(first size, latency in s, rate in B/s) of each segment."""
KNOWN: Truth = ((0, 2e-6, 1e9), (1025, 3e-6, 2e9), (65537, 8e-6, 4e9), (1048576, 50e-6, 3e9))
POWERS = (0, *(1 << k for k in range(23)))
BRACKETED = sorted({*POWERS, *(3 << k for k in range(20)), *(s for low, _, _ in KNOWN[1:] for s in (low - 1, low))})


def time_of(truth: Truth, size: int) -> float:
    return next(a + size / r for low, a, r in reversed(truth) if size >= low)


def times(truth: Truth, sizes: Sequence[int], noise: float = 0.0, seed: int = 0) -> list[float]:
    draw = np.random.default_rng(seed)
    return [time_of(truth, s) * (1 + noise * float(draw.standard_normal())) for s in sizes]
