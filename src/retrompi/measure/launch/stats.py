"""Statistics of times: quantiles, spread, and when a machine is too busy for measurements. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from retrompi.base.errors import UsageError
from retrompi.measure.launch.execution import Noise

__all__ = ["BUSY_PROBE", "BUSY_STOLEN", "BUSY_WAITING", "MOVED", "NOISY_SPREAD", "judge_noise", "quantile", "rank_quantile", "spread",
           "summary"]

NOISY_SPREAD = 0.10
"""Interquartile range over median above which repetitions disagree: twice the 5 % required of predictions."""
BUSY_WAITING = 0.5
"""Average number of other processes that want a core: half a core is lost to them."""
BUSY_STOLEN = 0.05
"""Share of the cores' time used elsewhere: as much as the permitted error of a prediction."""
MOVED = 2.5
"""Ratio of cache-line times that shows other cores were used. Measured: 43 to 84 ns between neighbours, else 200 ns."""
BUSY_PROBE = 0.10
"""How much longer than its minimum a communication-free piece of work takes, at the median."""


def quantile(samples: Sequence[float], q: float) -> float:
    """The ``q`` quantile (0..1) of unsorted ``samples``, interpolated linearly between neighbours (type 7, numpy's default).

    Raises UsageError without samples, or for ``q`` outside 0..1.
    """
    if not samples:
        raise UsageError("a quantile needs at least one sample", code="out-of-range")
    if not 0 <= q <= 1:
        raise UsageError(f"a quantile is between 0 and 1, not {q:g}", code="out-of-range")
    ordered = sorted(samples)
    at = q * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    low, high = ordered[below], ordered[above]
    # Not low * (1 - f) + high * f: for equal neighbours the result may differ from both.
    return min(max(low + (high - low) * (at - below), low), high)


def rank_quantile(values: Sequence[float], q: float) -> float:
    """The smallest value such that at least the share ``q`` of all values is not larger: with fewer than 20 values, 95 % is the maximum."""
    ordered = sorted(values)
    return ordered[max(math.ceil(q * len(ordered) - 1e-9), 1) - 1]


def spread(samples: Sequence[float]) -> float:
    """Interquartile range over median; 0 for fewer than two samples or a median of 0."""
    if len(samples) < 2:
        return 0.0
    middle = quantile(samples, 0.5)
    return (quantile(samples, 0.75) - quantile(samples, 0.25)) / middle if middle > 0 else 0.0


def summary(samples: Sequence[float]) -> dict[str, float | int]:
    """n, min, q25, median, q75, p95, max in the samples' unit. Raises UsageError without samples."""
    points = {"min": 0.0, "q25": 0.25, "median": 0.5, "q75": 0.75, "p95": 0.95, "max": 1.0}
    return {"n": len(samples), **{name: quantile(samples, q) for name, q in points.items()}}


def judge_noise(
    samples: Sequence[float], probes: Sequence[float], stolen: float, waiting: float, switches: float, lines: Sequence[float] = ()
) -> Noise:
    """The noise of a measurement: see `Noise`. ``probes``: seconds of each execution of the fixed work; ``lines``: nanoseconds of a
    cache-line transfer between two cores, before and after.

    The machine is loaded when others wanted its cores or the fixed work was slow; disagreement between repetitions is reported as well, but
    the program itself may be the reason.
    """
    probe = quantile(probes, 0.5) / min(probes) - 1 if probes and min(probes) > 0 else 0.0
    wide = spread(samples)
    reasons = []
    if waiting >= BUSY_WAITING:
        reasons.append(f"{waiting:.1f} other processes wanted a core")
    if stolen >= BUSY_STOLEN:
        reasons.append(f"{stolen:.0%} of the cores' time went elsewhere")
    if probe >= BUSY_PROBE:
        reasons.append(f"fixed work took {probe:.0%} longer than its quickest")
    loaded = bool(reasons)
    if lines and max(lines) >= MOVED * min(lines) > 0:
        reasons.append(f"a cache line between two cores took {lines[0]:.0f} ns before and {lines[-1]:.0f} ns after: they were moved")
    if wide >= NOISY_SPREAD:
        reasons.append(f"half of the repetitions differ by more than {wide:.0%} of the median")
    return Noise(wide, probe, stolen, waiting, switches, loaded, ", ".join(reasons), list(lines))
