"""Protocol changes in a library's curve: bisection on the behaviour of a send, and on steps between neighbouring sizes.

The sizes around a suspected step are measured again with every probe, so that drift of the machine affects both sides alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

__all__ = ["Behaviour", "CurveStep", "Measure", "by_behaviour", "find", "spread"]

Samples = Mapping[int, Sequence[float]]
Measure = Callable[[Sequence[int]], Samples]
"""Sizes in bytes -> one-way times of each, one per round."""

LEAST_STEP = 0.04
"""The least relative change attributed to a protocol: the models are required to be within 5 %."""
SURE = 0.01
"""The largest probability of a chance difference that counts as significant."""
MOST_PROBES = 24


@dataclass(frozen=True)
class Behaviour:
    """The size from which a send waits for its receive. When ``exact``, the smallest size seen to wait is ``size``, the largest seen not to
    wait ``size - 1``; else it is within ``low``..``high``. Of ``trials`` bisections ``agree`` gave the same result."""

    size: int | None
    low: int
    high: int
    trials: int
    agree: int

    def row(self) -> dict[str, Any]:
        """For tables and JSON."""
        return {"what": "asks first (behaviour)", **asdict(self)}


def by_behaviour(rows: Sequence[tuple[int, int, bool]]) -> Behaviour:
    """The limit from probes (round, size, whether the send completed without a receive). ``size`` None: all sends did, or none."""
    limits: list[tuple[int, int]] = []
    for r in sorted({r for r, _, _ in rows}):
        mine = [(size, done) for at, size, done in rows if at == r]
        alone = [size for size, done in mine if done]
        waited = [size for size, done in mine if not done]
        if alone and waited and max(alone) < min(waited):
            limits.append((max(alone), min(waited)))
    if not limits:
        sizes = [size for _, size, _ in rows]
        return Behaviour(None, min(sizes, default=0), max(sizes, default=0), len({r for r, _, _ in rows}), 0)
    ordered = sorted(limits, key=lambda x: x[1])
    low, high = ordered[len(ordered) // 2]
    return Behaviour(high, min(a for a, _ in limits) + 1, max(b for _, b in limits), len(limits), sum(x == (low, high) for x in limits))


@dataclass(frozen=True)
class CurveStep:
    """A change of the curve: ``size`` is the first size after it, known to lie in ``low``..``high``; ``step``: the relative jump of the
    time there, ``chance``: the probability of such a difference between equal times (rank test). ``kind``: ``step``, or ``bend`` if only
    the slope changes and its place cannot be determined."""

    size: int
    low: int
    high: int
    step: float
    chance: float
    kind: str

    def row(self) -> dict[str, Any]:
        """For tables and JSON."""
        return {"what": self.kind, **{k: v for k, v in asdict(self).items() if k != "kind"}}


def spread(values: Sequence[float]) -> float:
    """A standard deviation estimated from the quartiles, robust against outliers."""
    s = sorted(values)
    return (s[(3 * (len(s) - 1)) // 4] - s[(len(s) - 1) // 4]) / 1.349 if len(s) > 1 else 0.0


def rank_test(a: Sequence[float], b: Sequence[float]) -> float:
    """The probability of such a difference between two samples of one distribution (Mann-Whitney, two-sided)."""
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(a, b, alternative="two-sided").pvalue) if len(a) > 1 and len(b) > 1 else 1.0


def _line(a: tuple[int, float], b: tuple[int, float], x: float) -> float:
    return a[1] if a[0] == b[0] else a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0])


def candidates(sizes: Sequence[int], samples: Samples) -> list[int]:
    """Indices i of possible changes between ``sizes[i]`` and ``sizes[i + 1]``: the line through the two sizes before misses the next one by
    more than noise and `LEAST_STEP`, and the line through the two sizes after misses the one before."""
    at = {s: median(samples[s]) for s in sizes}
    noise = {s: spread(samples[s]) / max(1, len(samples[s])) ** 0.5 for s in sizes}
    out = []
    for i in range(1, len(sizes) - 2):
        a, b, c, d = sizes[i - 1 : i + 3]
        ahead = at[c] - _line((a, at[a]), (b, at[b]), c)
        behind = at[b] - _line((d, at[d]), (c, at[c]), b)
        wide = (c - b) / max(1, b - a)
        doubt = 4 * max(noise[a] * wide, noise[b] * (1 + wide), noise[c], noise[d])
        if min(abs(ahead), abs(behind)) > max(doubt, LEAST_STEP * at[c]):
            out.append(i)
    return out


def find(measure: Measure, sizes: Sequence[int], samples: Samples) -> list[CurveStep]:
    """The steps of a curve, given its ``samples`` at ascending ``sizes``, each narrowed down by bisection with ``measure``."""
    open_: dict[int, tuple[int, int]] = {i: (sizes[i], sizes[i + 1]) for i in candidates(sizes, samples)}
    done: dict[int, CurveStep] = {}
    last: dict[int, Samples] = {}
    for _ in range(MOST_PROBES):
        wanted: set[int] = set()
        for i, (low, high) in open_.items():
            wanted |= {sizes[i - 1], low, (low + high) // 2, high, sizes[i + 2]}
        if not wanted:
            break
        seen = measure(sorted(wanted))
        for i, (low, high) in list(open_.items()):
            last[i] = seen
            middle = (low + high) // 2
            left = _line((sizes[i - 1], median(seen[sizes[i - 1]])), (low, median(seen[low])), middle)
            right = _line((sizes[i + 2], median(seen[sizes[i + 2]])), (high, median(seen[high])), middle)
            here = median(seen[middle])
            if high - low == 1 or abs(right - left) < LEAST_STEP * here:
                done[i] = _step(i, low, high, sizes, seen)
                del open_[i]
                continue
            goes_left = abs(here - left) < abs(here - right)
            # A sample that is close to neither line's value at the middle is inconclusive.
            other = (
                [v - median(seen[low]) + left for v in seen[low]] if not goes_left else [v - median(seen[high]) + right for v in seen[high]]
            )
            if rank_test(seen[middle], other) > SURE or min(abs(here - left), abs(here - right)) > 0.4 * abs(right - left):
                done[i] = _step(i, low, high, sizes, seen)
                del open_[i]
                continue
            open_[i] = (middle, high) if goes_left else (low, middle)
    for i, (low, high) in open_.items():
        done[i] = _step(i, low, high, sizes, last[i])
    return _apart([done[i] for i in sorted(done)])


def _step(i: int, low: int, high: int, sizes: Sequence[int], seen: Samples) -> CurveStep:
    a, b = median(seen[low]), median(seen[high])
    slope = min(abs(median(seen[low]) - median(seen[sizes[i - 1]])) / max(1, low - sizes[i - 1]),
                abs(median(seen[sizes[i + 2]]) - median(seen[high])) / max(1, sizes[i + 2] - high))
    jump = (b - a - slope * (high - low)) / a if a > 0 else 0.0
    chance = rank_test([v + slope * (high - low) for v in seen[low]], seen[high])
    kind = "step" if abs(jump) >= LEAST_STEP and chance <= SURE else "bend"
    return CurveStep(high, low + 1, high, jump, chance, kind)


def _apart(steps: list[CurveStep]) -> list[CurveStep]:
    """Merge neighbouring intervals that found the same place."""
    sure = [s for s in steps if s.kind == "step"]
    # A bend beside a step is the step's effect on its neighbours; one between two neighbouring sizes is not significant.
    bends = [s for s in steps if s.kind == "bend" and s.high > s.low and not any(s.low - 2 <= t.size <= s.high + 2 for t in sure)]
    out: list[CurveStep] = []
    for step in bends:
        if out and step.low <= out[-1].high + 1:
            out[-1] = CurveStep(step.size, out[-1].low, step.high, step.step, step.chance, "bend")
        else:
            out.append(step)
    return sorted([*sure, *out], key=lambda s: s.size)
