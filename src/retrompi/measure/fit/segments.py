"""Segments of a curve: T = latency + size / rate, piecewise, with jumps where the runtime changes its protocol.

For K segments the K - 1 thresholds are optimal, found by dynamic programming over all places (Bellman's segmented least squares) on the
squared relative errors of the times. K minimises BIC with a correction for few points analogous to AICc: the penalty of
p = 3K - 1 parameters for n times is p log(n) n / (n - 2K - 2), since 2K + 1 parameters (the lines, the noise) are averages of the times.
The residuals of K segments enter the criterion as logarithms: a relative error is never below -1, so that missing a step of 70 would
cost no more than missing one of 7.

Uncertainty: the noise is the residual over all segments (or the stated spread, whichever is larger). Latencies and rates have the interval
of linear least squares given the thresholds; a threshold has the smallest set of places that holds the level of the likelihood over all
places between its neighbouring thresholds. No time is taken to be known better than one part in 10^5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from retrompi.base import units
from retrompi.base.errors import UsageError

__all__ = ["Residual", "Segment", "SegmentFit", "Threshold", "fit", "partitions", "starts_of"]

FLOOR = 1e-5
"""The least relative noise assumed."""
LEAST = 2
"""Least points of a segment, unless a pinned threshold leaves fewer."""
MOST_POINTS = 3000
_MODERATE = 0.3
_FAR = 1e-3
"""A line's value below this share of a time, or negative, counts as this share."""
LEVEL = 0.95

Array = np.ndarray[Any, np.dtype[np.float64]]
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Segment:
    """T = latency_s + size / rate_Bps for ``low`` <= size < ``high`` (None: no end); the intervals are at the fit's level.

    ``latency_s`` is the line's intercept: where a rate falls with the size (a cache is left) it can be negative. ``rate_Bps`` is
    infinite where no size dependence was found.
    """

    low: int
    high: int | None
    latency_s: float
    rate_Bps: float
    latency_interval: Interval
    rate_interval: Interval
    points: int
    """Number of fitted sizes in it."""
    slope: float
    """Seconds a byte: 1 / rate."""

    def time(self, size: float) -> float:
        """Seconds."""
        return self.latency_s + self.slope * size

    def row(self) -> dict[str, Any]:
        """For tables and fit.toml: base units."""
        return {
            "low_B": self.low,
            "high_B": self.high if self.high is not None else "none",
            "latency_s": self.latency_s,
            "rate_Bps": self.rate_Bps,
            "latency_interval_s": list(self.latency_interval),
            "rate_interval_Bps": list(self.rate_interval),
            "points": self.points,
        }


@dataclass(frozen=True, slots=True)
class Threshold:
    """From ``size`` bytes on another segment applies. ``low``..``high``: where that first size lies at the fit's level.

    With ``low`` == ``high`` it is exact: the size before was measured as well. ``how``: pinned, bracketed, crossing (of the two lines,
    inside the interval between two measured sizes), or grid (somewhere between two measured sizes; the larger is taken).
    """

    size: int
    low: int
    high: int
    step: float
    """The relative change of the time there."""
    how: str

    def row(self) -> dict[str, Any]:
        """For tables and fit.toml."""
        return {"size_B": self.size, "low_B": self.low, "high_B": self.high, "step": self.step, "how": self.how}


@dataclass(frozen=True, slots=True)
class Residual:
    """A measured time beside the fit's, seconds; ``seen``: whether the fit used it; ``inside``: in a threshold's uncertainty interval."""

    size: int
    measured_s: float
    fitted_s: float
    seen: bool
    inside: bool

    @property
    def error(self) -> float:
        """fitted / measured - 1."""
        return self.fitted_s / self.measured_s - 1

    def row(self) -> dict[str, Any]:
        """For tables and fit.toml."""
        return {"size_B": self.size, "measured_s": self.measured_s, "fitted_s": self.fitted_s, "error": self.error, "seen": self.seen,
                "inside_threshold": self.inside}


@dataclass(frozen=True, slots=True)
class SegmentFit:
    """A segmented curve. ``noise`` is the relative standard deviation of a time; ``criterion``: K -> BIC, whose minimum was chosen."""

    segments: tuple[Segment, ...]
    thresholds: tuple[Threshold, ...]
    residuals: tuple[Residual, ...]
    noise: float
    level: float
    criterion: dict[int, float]

    def segment(self, size: float) -> Segment:
        """The segment that applies to messages of ``size`` bytes."""
        return next(s for s in reversed(self.segments) if size >= s.low or s is self.segments[0])

    def time(self, size: float) -> float:
        """One-way time of a message of ``size`` bytes, seconds; never negative."""
        return max(0.0, self.segment(size).time(size))

    def residuals_of(self, sizes: Sequence[int], times_s: Sequence[float], *, seen: bool) -> tuple[Residual, ...]:
        """The residuals of other times, such as held-out ones."""
        return tuple(
            Residual(int(s), float(t), self.time(s), seen, any(h.low <= s < h.high for h in self.thresholds))
            for s, t in zip(sizes, times_s, strict=True)
        )

    def choice(self) -> dict[str, Any]:
        """The reason for the number of segments: the number, the criterion of each number, the noise, the level of the intervals."""
        return {"segments": len(self.segments), "noise": self.noise, "level": self.level,
                "criterion": {str(k): v for k, v in self.criterion.items()}}


def fit(
    sizes_B: Sequence[int],
    times_s: Sequence[float],
    *,
    spread: Sequence[float] | None = None,
    thresholds: Sequence[int] = (),
    segments: int | None = None,
    max_segments: int = 12,
    level: float = LEVEL,
) -> SegmentFit:
    """Segments of the one-way times ``times_s`` (seconds) of messages of ``sizes_B`` bytes, in any order.

    ``spread``: relative standard deviation of each time as far as known; the remaining scatter is estimated. ``thresholds`` are pinned:
    each is the first size of a segment; others may be found as well. ``segments`` fixes their number. Several times of one size are
    averaged. Raises UsageError when there are too few sizes, a time is not positive, or a pinned threshold lies outside the sizes.
    """
    x, y, sd, count = _merge_sizes(sizes_B, times_s, spread)
    n = len(x)
    forced = _forced_starts(x, thresholds)
    if segments is not None and segments < len(forced) + 1:
        raise UsageError(f"{len(forced)} pinned thresholds make at least {len(forced) + 1} segments, not {segments}", code="cannot-fit")
    weight = np.sqrt(count) / y
    if sd is not None:
        weight = weight * _typical(x, y, sd, forced, max_segments)
    costs = _costs(x, y, weight)
    most = min(max_segments, max(1, (n + 1) // LEAST)) if segments is None else segments
    best, cuts = partitions(costs, max(most, len(forced) + 1), forced)
    criterion = _criteria(x, y, weight, best, cuts, len(forced))
    if segments is not None:
        if segments not in criterion:
            raise UsageError(f"{n} sizes cannot be {segments} segments of at least {LEAST} sizes each", code="cannot-fit")
        criterion = {segments: criterion[segments]}
    usable = {k: c for k, c in criterion.items() if math.isfinite(c)}
    chosen = min(usable, key=lambda k: (usable[k], k)) if usable else min(criterion)
    starts = starts_of(cuts, chosen, n)
    return _describe_fit(x, y, weight, sd, costs, starts, forced, thresholds, criterion, level)


def _typical(x: Array, y: Array, sd: Array, forced: Sequence[int], most: int) -> Array:
    """The weight of each time relative to a typical one, from its stated spread and the common noise."""
    n = len(x)
    best, cuts = partitions(_costs(x, y, 1 / y), max(min(most, (n + 1) // LEAST), len(forced) + 1), forced)
    criterion = _criteria(x, y, 1 / y, best, cuts, len(forced))
    k = min(criterion, key=lambda k: (criterion[k], k))
    noise = max(FLOOR**2, best[k] / max(1, n - 2 * k) - float(np.mean(sd**2)))
    whole = np.sqrt(np.maximum(sd, FLOOR) ** 2 + noise)
    share: Array = np.median(whole) / whole
    return share


def _merge_sizes(
    sizes_B: Sequence[int], times_s: Sequence[float], spread: Sequence[float] | None
) -> tuple[Array, Array, Array | None, Array]:
    """Sorted sizes, mean times, spreads, and the number of times of each size; all float64."""
    if len(sizes_B) != len(times_s) or (spread is not None and len(spread) != len(sizes_B)):
        raise UsageError(
            f"{len(sizes_B)} sizes, {len(times_s)} times and {len(spread or times_s)} spreads do not belong together", code="cannot-fit"
        )
    groups: dict[int, list[tuple[float, float]]] = {}
    for i, (size, time) in enumerate(zip(sizes_B, times_s, strict=True)):
        if size < 0 or size != int(size) or not math.isfinite(time) or time <= 0:
            raise UsageError(
                f"a point of {size} B and {time} s cannot be fitted: sizes are whole numbers from 0 on, times are more than 0",
                code="cannot-fit",
            )
        groups.setdefault(int(size), []).append((float(time), float(spread[i]) if spread is not None else 0.0))
    if len(groups) < 2:
        raise UsageError(f"a fit needs at least two sizes, not {len(groups)}", code="out-of-range")
    if len(groups) > MOST_POINTS:
        raise UsageError(f"a fit of {len(groups)} sizes would take too long; at most {MOST_POINTS}", code="out-of-range")
    x = np.array(sorted(groups), dtype=np.float64)
    y = np.array([sum(t for t, _ in groups[int(s)]) / len(groups[int(s)]) for s in x])
    sd = np.array([sum(d for _, d in groups[int(s)]) / len(groups[int(s)]) for s in x]) if spread is not None else None
    return x, y, sd, np.array([float(len(groups[int(s)])) for s in x])


def _forced_starts(x: Array, thresholds: Sequence[int]) -> list[int]:
    """The index of the first size at or above each pinned threshold."""
    found = []
    for size in sorted(set(thresholds)):
        at = int(np.searchsorted(x, size))
        if at == 0 or at == len(x):
            raise UsageError(f"a threshold at {units.format_bytes(size)} has no measured size on one of its sides "
                             f"(sizes: {units.format_bytes(x[0])} to {units.format_bytes(x[-1])})", code="cannot-fit")
        if at in found:
            raise UsageError(
                f"there is no measured size between two of the pinned thresholds below {units.format_bytes(size + 1)}", code="cannot-fit"
            )
        found.append(at)
    return found


def _line(x: Array, y: Array, weight: Array) -> tuple[float, float, float]:
    """(a, b, cost) of the line a + b x, b >= 0, with the least weighted squares; a constant for one point."""
    u2 = weight * weight
    base = x[0]
    d = x - base
    s0, s1, s2 = float(u2.sum()), float((u2 * d).sum()), float((u2 * d * d).sum())
    t0, t1 = float((u2 * y).sum()), float((u2 * d * y).sum())
    det = s0 * s2 - s1 * s1
    b = (s0 * t1 - s1 * t0) / det if len(x) > 1 and det > 1e-14 * s0 * s2 else 0.0
    b = max(0.0, b)
    a = (t0 - b * s1) / s0
    r = weight * (a + b * d - y)
    return float(a - b * base), float(b), float((r * r).sum())


def _refine_line(x: Array, y: Array, weight: Array) -> tuple[tuple[float, float, float], Array]:
    """A segment's line with errors relative to the line, not to the times, whose noise biases it downwards; and those weights."""
    line, better = _line(x, y, weight), weight
    for _ in range(3):
        there = line[0] + line[1] * x
        # A time far above the line would be weighted much more relative to the line than relative to itself, and pull the line to it.
        if there.min() <= 0 or np.abs(y / there - 1).max() > _MODERATE:
            break
        better = weight * y / there
        line = _line(x, y, better)
    return line, better


def _costs(x: Array, y: Array, weight: Array) -> Array:
    """cost[i, j]: weighted squares of the best line through the points i..j; infinite below the diagonal. Shape (n, n)."""
    n = len(x)
    u2 = weight * weight
    out = np.full((n, n), np.inf)
    for i in range(n):
        d = x[i:] - x[i]  # relative to the segment's first size, to keep precision at large sizes
        s0, s1, s2 = np.cumsum(u2[i:]), np.cumsum(u2[i:] * d), np.cumsum(u2[i:] * d * d)
        t0, t1, t2 = np.cumsum(u2[i:] * y[i:]), np.cumsum(u2[i:] * d * y[i:]), np.cumsum(u2[i:] * y[i:] * y[i:])
        det = s0 * s2 - s1 * s1
        sound = det > 1e-14 * s0 * s2
        slope = np.maximum(0.0, np.where(sound, (s0 * t1 - s1 * t0) / np.where(sound, det, 1.0), 0.0))
        start = (t0 - slope * s1) / s0
        out[i, i:] = np.maximum(
            0.0, t2 - 2 * start * t0 - 2 * slope * t1 + start * start * s0 + 2 * start * slope * s1 + slope * slope * s2
        )
    return out


def partitions(costs: Array, most: int, forced: Sequence[int] = ()) -> tuple[dict[int, float], list[np.ndarray[Any, Any]]]:
    """K -> least cost of K pieces (infinite where there are none), up to ``most``, and for each K and end the beginning of the last one.

    ``costs[i, j]`` is the cost of the points i..j as one piece. A piece has at least `LEAST` points; one begins at each of ``forced``.
    """
    n = len(costs)
    allowed = costs.copy()
    index = np.arange(n)
    for at in forced:
        allowed[np.ix_(index < at, index >= at)] = np.inf
    bounds = {0, n, *forced}
    for i in range(n):
        for j in range(i, min(n, i + LEAST - 1)):
            if not (i in bounds and j + 1 in bounds):
                allowed[i, j] = np.inf
    total = allowed[0].copy()
    best, cuts = {1: float(total[-1])}, [np.zeros(n, dtype=np.int64)]
    for k in range(2, most + 1):
        # A segment that begins at i follows the best of k - 1 segments that end at i - 1.
        before = np.concatenate([[np.inf], total[:-1]])
        table = before[:, None] + allowed
        begin = np.argmin(table, axis=0)
        total = table[begin, index]
        best[k] = float(total[-1])
        cuts.append(begin)
    return best, cuts


def starts_of(cuts: Sequence[np.ndarray[Any, Any]], k: int, n: int) -> list[int]:
    """The index of the first point of each of ``k`` pieces of ``n`` points, from the second value that `partitions` returns."""
    out, end = [], n - 1
    for i in range(k - 1, -1, -1):
        begin = int(cuts[i][end])
        out.append(begin)
        end = begin - 1
    return out[::-1]


def _criteria(
    x: Array, y: Array, weight: Array, best: dict[int, float], cuts: Sequence[np.ndarray[Any, Any]], pinned: int
) -> dict[int, float]:
    """K -> criterion of the best K segments, for every possible K; infinite where there are too few points."""
    n, out = len(x), {}
    for k in (k for k in best if math.isfinite(best[k])):
        if (left := n - 2 * k - 2) <= 0:
            out[k] = math.inf
            continue
        starts = starts_of(cuts, k, n)
        cost = sum(_distance(x[i:j], y[i:j], weight[i:j]) for i, j in zip(starts, [*starts[1:], n], strict=True))
        out[k] = n * math.log(cost / n + FLOOR * FLOOR) + (3 * k - 1 - pinned) * math.log(n) * n / left
    return out


def _distance(x: Array, y: Array, weight: Array) -> float:
    """Weighted squares of the logarithms of line over time, for one segment."""
    (a, b, _), _ = _refine_line(x, y, weight)
    off = weight * y * np.log(np.maximum((a + b * x) / y, _FAR))
    return float(off @ off)


def _describe_fit(
    x: Array, y: Array, weight: Array, sd: Array | None, costs: Array, starts: Sequence[int], forced: Sequence[int],
    pinned: Sequence[int], criterion: dict[int, float], level: float,
) -> SegmentFit:
    n, k = len(x), len(starts)
    ends = [*starts[1:], n]
    lines, weights = zip(*(_refine_line(x[i:j], y[i:j], weight[i:j]) for i, j in zip(starts, ends, strict=True)), strict=True)
    left = max(1, n - 2 * k)
    variance = max(sum(c for *_, c in lines) / left, FLOOR * FLOOR)
    if sd is not None:
        variance = max(variance, float(np.median(sd)) ** 2)
    # The places of the pieces are fitted too: with this few sizes the residuals say nothing of the noise, as in the criterion.
    known = sd is not None or n - 2 * k - 2 > 0 or (k == 1 and n > 2)
    freedom = left if n > 2 * k else 1
    wide = float(student.ppf((1 + level) / 2, freedom)) if known else math.inf
    thresholds = []
    exact = dict(zip(forced, sorted(set(pinned)), strict=True))
    for m in range(1, k):
        thresholds.append(_threshold(x, costs, lines, starts[m - 1], starts[m], ends[m], exact.get(starts[m]), m, variance, freedom, level))
    segments = []
    for m, ((a, b, _), own, i, j) in enumerate(zip(lines, weights, starts, ends, strict=True)):
        da, db = _errors(x[i:j], own, variance)
        low_b, high_b = max(0.0, b - wide * db), b + wide * db
        segments.append(Segment(
            low=int(x[0]) if m == 0 else thresholds[m - 1].size,
            high=thresholds[m].size if m < k - 1 else None,
            latency_s=a, rate_Bps=1 / b if b > 0 else math.inf,
            latency_interval=(a - wide * da, a + wide * da),
            rate_interval=(1 / high_b if high_b > 0 else math.inf, 1 / low_b if low_b > 0 else math.inf),
            points=j - i, slope=b,
        ))
    found = SegmentFit(tuple(segments), tuple(thresholds), (), math.sqrt(variance), level, criterion)
    residuals = found.residuals_of([int(s) for s in x], [float(t) for t in y], seen=True)
    return SegmentFit(found.segments, found.thresholds, residuals, found.noise, level, criterion)


def _errors(x: Array, weight: Array, variance: float) -> tuple[float, float]:
    """Standard errors of the intercept and the slope of a line; infinite for a single size."""
    u2 = weight * weight
    s0, s1, s2 = float(u2.sum()), float((u2 * x).sum()), float((u2 * x * x).sum())
    mean = s1 / s0
    spread = float((u2 * (x - mean) ** 2).sum())
    if len(x) < 2 or spread <= 0:
        return math.sqrt(variance / s0), math.inf
    return math.sqrt(variance * s2 / (s0 * spread)), math.sqrt(variance / spread)


def _threshold(
    x: Array, costs: Array, lines: Sequence[tuple[float, float, float]], begin: int, at: int, end: int, pinned: int | None, m: int,
    variance: float, freedom: int, level: float,
) -> Threshold:
    before, after = lines[m - 1][:2], lines[m][:2]
    low, high = int(x[at - 1]) + 1, int(x[at])
    if pinned is not None:
        size, how = pinned, "pinned"
        low = high = pinned
    else:
        places = np.arange(begin + 1, end)
        squares = np.array([costs[begin, p - 1] + costs[p, end - 1] for p in places])
        likely = -0.5 * (freedom + 1) * np.log1p((squares - squares.min()) / (freedom * variance))
        share = np.exp(likely - likely.max())
        share /= share.sum()
        order = np.argsort(-share)
        enough = int(np.searchsorted(np.cumsum(share[order]), level)) + 1
        kept = places[order[:enough]]
        first, last = min(int(kept.min()), at), max(int(kept.max()), at)
        size, how = high, "bracketed" if low == high else "grid"
        slope = before[1] - after[1]
        cross = (after[0] - before[0]) / slope if slope else math.nan
        if low < high and low <= cross <= high:
            size, how = math.ceil(cross), "crossing"
        low, high = int(x[first - 1]) + 1, int(x[last])
    old, new = (float(line[0] + line[1] * size) for line in (before, after))
    return Threshold(size, low, high, new / old - 1 if old > 0 else math.inf, how)
