"""Curves of time against message size, and the numbers that are read off them: by sweeps, statements about papers, labs and pages.

    curve = TimeCurve.of(store.points(run_id))
    curve[1024], curve.number("n_half"), curve.number("bandwidth", 1 << 20)

Times are seconds one way, rates bytes per second, sizes bytes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

from retrompi.base.translate import lazy

__all__ = ["NUMBERS", "PLATEAU", "CurveNumber", "NotOnCurve", "TimeCurve"]

PLATEAU = 1.25
"""On a plateau the largest bandwidth is at most this many times the smallest."""


class NotOnCurve(LookupError):
    """A curve has no such number; the text says why."""


@dataclass(frozen=True)
class TimeCurve(Mapping[int, float]):
    """Time (s, one way) against size (B), sizes strictly ascending; as a mapping, size -> time.

    ``rates``: the bandwidth at each size (B/s), by default size over time; a collective moves more than its size.
    """

    sizes: tuple[int, ...]
    times: tuple[float, ...]
    rates: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.sizes) != len(self.times):
            raise ValueError(f"{len(self.sizes)} sizes but {len(self.times)} times")
        if any(b <= a for a, b in itertools.pairwise(self.sizes)):
            raise ValueError("sizes must ascend strictly")
        if any(not (t >= 0 and math.isfinite(t)) for t in self.times):
            raise ValueError("times must be finite and not negative")
        if not self.rates:
            object.__setattr__(self, "rates", tuple(s / t if t else 0.0 for s, t in zip(self.sizes, self.times, strict=True)))

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> TimeCurve:
        """Of rows size_B, time_us, bandwidth_MBps, in any order; the last row of a repeated size is used."""
        found = {int(r["size_B"]): (float(r["time_us"]) * 1e-6, float(r["bandwidth_MBps"]) * 1e6) for r in rows}
        sizes = tuple(sorted(found))
        return cls(sizes, tuple(found[s][0] for s in sizes), tuple(found[s][1] for s in sizes))

    @cached_property
    def _places(self) -> dict[int, int]:
        return {size: i for i, size in enumerate(self.sizes)}

    def __getitem__(self, size: int) -> float:
        return self.times[self._places[size]]

    def __iter__(self) -> Iterator[int]:
        return iter(self.sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    def rate(self, size: int) -> float:
        """The bandwidth at ``size``, B/s; KeyError where there is no such size."""
        return self.rates[self._places[size]]

    def within(self, sizes: Container[int] | None) -> TimeCurve:
        """The part of the curve at these sizes; the whole curve for None."""
        if sizes is None:
            return self
        kept = [row for row in zip(self.sizes, self.times, self.rates, strict=True) if row[0] in sizes]
        return TimeCurve(tuple(s for s, _, _ in kept), tuple(t for _, t, _ in kept), tuple(r for _, _, r in kept))

    def series(self, what: str) -> tuple[float, ...]:
        """``time`` or ``bandwidth`` as one value per size."""
        if what not in ("time", "bandwidth"):
            raise ValueError(f"no series '{what}'; valid: time, bandwidth")
        return self.times if what == "time" else self.rates

    def number(self, name: str, *sizes: int) -> float:
        """A number of `NUMBERS`, in its unit: of the curve, or of its points at ``sizes``. Raises NotOnCurve if there is none."""
        for size in sizes:
            if size not in self:
                raise NotOnCurve(f"needs the simulated size {size} B")
        part = self.within(frozenset(sizes)) if sizes else self
        if not part:
            raise NotOnCurve("needs simulated sizes")
        return NUMBERS[name].read(part)


def _plateau_size(curve: TimeCurve) -> int:
    enough = max(curve.rates) / PLATEAU
    start = len(curve)
    while start > 0 and curve.rates[start - 1] >= enough:
        start -= 1
    return curve.sizes[start] if start < len(curve) else -1


def _plateau(curve: TimeCurve) -> float:
    start = _plateau_size(curve)
    if start < 0:
        raise NotOnCurve(f"the bandwidth has no plateau: it ends more than a factor {PLATEAU} below its maximum")
    return float(median(rate for size, rate in zip(curve.sizes, curve.rates, strict=True) if size >= start))


def _n_half(curve: TimeCurve) -> float:
    half = max(curve.rates) / 2
    if half <= 0:
        raise NotOnCurve("it has no bandwidth")
    i = next(i for i, rate in enumerate(curve.rates) if rate >= half)
    if i == 0:
        return float(curve.sizes[0])
    (low, high), (below, above) = curve.sizes[i - 1 : i + 1], curve.rates[i - 1 : i + 1]
    return low + (high - low) * (half - below) / (above - below)


def _line(curve: TimeCurve) -> tuple[float, float]:
    """(start-up in s, seconds a byte): time over size by least squares, as mpptest prints them."""
    n, mean_size, mean_time = len(curve), sum(curve.sizes) / len(curve), sum(curve.times) / len(curve)
    if n < 2:
        raise NotOnCurve("a straight line needs two sizes or more")
    across = sum((s - mean_size) ** 2 for s in curve.sizes)
    slope = sum((s - mean_size) * (t - mean_time) for s, t in zip(curve.sizes, curve.times, strict=True)) / across
    return mean_time - slope * mean_size, slope


def _fit_rate(curve: TimeCurve) -> float:
    slope = _line(curve)[1]
    if slope <= 0:
        raise NotOnCurve("the time does not grow over these sizes: no rate")
    return 1 / slope


def _dip(curve: TimeCurve) -> tuple[int, float]:
    falls = [(1 - b / a, size) for (a, b), size in zip(itertools.pairwise(curve.rates), curve.sizes[1:], strict=True)]
    share, size = max(falls, default=(0.0, -1))
    return (size, share) if share > 0 else (-1, 0.0)


def _largest_step(curve: TimeCurve) -> tuple[int, float]:
    rows = itertools.pairwise(zip(curve.sizes, curve.times, strict=True))
    steps = [(b[0], b[1] / a[1]) for a, b in rows if b[0] == 2 * a[0]]
    if not steps:
        raise NotOnCurve("needs a sweep of doubling sizes")
    return max(steps, key=lambda step: step[1])


@dataclass(frozen=True)
class CurveNumber:
    """A number of a curve: ``label`` for axes and tables, its base ``unit``, and how it is read; ``sized``: it is of one point."""

    label: str
    unit: str
    read: Callable[[TimeCurve], float]
    sized: bool = False
    more_is_better: bool = False


NUMBERS: Mapping[str, CurveNumber] = {
    "time": CurveNumber(lazy("one-way time"), "s", lambda c: c.times[0], sized=True),
    "bandwidth": CurveNumber(lazy("bandwidth"), "B/s", lambda c: c.rates[0], sized=True, more_is_better=True),
    "latency": CurveNumber(lazy("one-way time at the smallest size"), "s", lambda c: c.times[0]),
    "peak": CurveNumber(lazy("largest bandwidth"), "B/s", lambda c: max(c.rates), more_is_better=True),
    "n_half": CurveNumber(lazy("size at half of the largest bandwidth"), "B", _n_half),
    "peak_size": CurveNumber("first size of the largest bandwidth", "B", lambda c: c.sizes[c.rates.index(max(c.rates))]),
    "lowest": CurveNumber("smallest bandwidth", "B/s", lambda c: min(c.rates), more_is_better=True),
    "median_time": CurveNumber("median of the times", "s", lambda c: float(median(c.times))),
    "plateau": CurveNumber("median bandwidth from the plateau's first size on", "B/s", _plateau, more_is_better=True),
    "plateau_size": CurveNumber("first size from which the bandwidth stays close to its maximum; -1: none", "B", _plateau_size),
    "fit_startup": CurveNumber("start-up of the straight line of time over size", "s", lambda c: _line(c)[0]),
    "fit_rate": CurveNumber("rate of the straight line of time over size", "B/s", _fit_rate, more_is_better=True),
    "dip": CurveNumber("size whose bandwidth is lowest below that of the size before it; -1: none", "B", lambda c: _dip(c)[0]),
    "dip_depth": CurveNumber("share by which the bandwidth falls there", "1", lambda c: _dip(c)[1]),
    "step_size": CurveNumber("size after the largest growth of time over one doubling", "B", lambda c: _largest_step(c)[0]),
    "step": CurveNumber("that growth, a factor", "1", lambda c: _largest_step(c)[1]),
}
"""What can be read off a curve, by name."""
