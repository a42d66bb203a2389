"""Quantitative readings of the papers' wording: functions of curves, and thresholds fixed before any result. `retrompi.spec.declare.curve`
has the numbers of one curve.

A curve is time against message size for one runtime in one mode, sizes ascending. Times are seconds one way, rates
bytes per second (a published MB/s is 1e6 B/s), sizes bytes. `docs/validation.md` lists the readings below in prose;
they were fixed before the first simulation and must not be tuned to results.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from retrompi.papers.statements.claims import SizeRange
from retrompi.spec.declare.curve import PLATEAU, TimeCurve

__all__ = ["READINGS", "curves"]

CONSTANT = PLATEAU  # "approximately constant", "plateau": largest over smallest in the range
SAME = 1.25  # "almost the same", "almost matches", "~": ratio either way
DOUBLES = (1.6, 2.4)  # "doubles at each size": each successive ratio
SLACK = 0.01  # "increases steadily": a step may fall by this much
BUMP = 1.10  # "decreases" between two ends: no inner point above the first by more
SLIGHT = 0.10  # "decreases slightly": by at most this much
MUCH = 10.0  # ">>", "virtually unusable", "far behind": ratio at least
STEP = 4.0  # "large step": one doubling of size multiplies time by at least twice what doubling explains
SMALL_INCREASE = 1.5  # "small increase up to S": T(S) over T(0) at most
GROWTH = 1.3  # "then almost exponentially": mean growth of time per doubling over the four doublings after S
RAPIDLY = 2.0  # "rises rapidly": the last value over the first at least, besides rising at every step
FITTED = 0.05  # relative tolerance of a number printed without one, used by a fit
PREDICTED = 0.15  # the same, held out

READINGS: Mapping[str, str] = {
    "start-up latency": "time at 0 B",
    "peak": "maximum over the sizes",
    "ratio or difference up to / in a size range": "median over the default sizes in the range",
    "approximately constant, plateau": (
        f"largest / smallest <= {CONSTANT} in the range, and the median in low..high where a number is given"
    ),
    "doubles at each size": f"each successive ratio within {DOUBLES[0]}..{DOUBLES[1]}",
    "increases steadily": f"no step falls by more than {SLACK:.0%}",
    "rises rapidly": f"no step falls by more than {SLACK:.0%} and the last is at least {RAPIDLY:g} times the first",
    "almost the same, almost matches, ~": f"median ratio within a factor {SAME}",
    "decreases (between two sizes)": f"T(last) < T(first), no inner point above T(first) by more than {BUMP - 1:.0%}",
    "decreases slightly just above 0 B": f"T(first size above 0) < T(0), by at most {SLIGHT:.0%}",
    "X > Y (order)": "median over the sizes of the ratio is above 1 (slower / faster)",
    "X >> Y, far behind, virtually unusable": f"that ratio is at least {MUCH:g}",
    "poor throughout": "slower at every size",
    "large step": f"the largest growth of time over one doubling of size; at least x{STEP:g}",
    "small increase up to S, then almost exponentially": (
        f"T(S) <= {SMALL_INCREASE} T(0); over the four doublings after S time grows by >= x{GROWTH} per doubling on average"
    ),
    "bandwidth growth decreases": "mean growth per doubling over the four doublings after S is below the mean up to S",
    "a number printed without a tolerance": f"within {FITTED:.0%} if a fit saw it, within {PREDICTED:.0%} if it was held out",
    "a number that the authors computed": "rounds to the digits as they are printed",
    "min .. max over vector length": f"minimum and maximum each within a factor {SAME}",
    "drops (recovers) at S": (
        f"the bandwidth has a local maximum (minimum) at S or at S/2 and falls (rises) by more than {SLACK:.0%} in the next doubling"
    ),
    "degrades substantially, significantly lower": f"the ratio is above {SAME}: not almost the same",
    "much better (two measured costs)": f"ratio at least {MUCH:g}, as for >>",
    "better, degrades (two curves)": "median over the sizes (small: up to 1K, large: from 1M) of the ratio of times is above 1",
    "a curve of points": (
        f"the median error of its points is at most {FITTED:.0%} if a fit saw them, {PREDICTED:.0%} if not, and the largest at most "
        f"{SAME - 1:.0%}, where the points are that exact"
    ),
    "latency (NetPIPE)": "time of 8 B",
    "start-up and rate fitted over sizes": "the straight line of time over size by least squares, as mpptest prints it",
    "threshold at S": (
        f"of all steps of time over a factor of two around it, beyond the usual growth, the largest is at S and at least {SLACK:.0%}"
    ),
    "dip": "the size whose bandwidth is lowest below that of the size before it",
    "peaks at S, then constant": f"S is the first size within a factor {CONSTANT} of the maximum, and all later ones are too",
}
"""The papers' wording -> its reading; shown in the report and in docs/validation.md."""


def curves(points: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], TimeCurve]:
    """Points (rows with model, mode, size_B, time_us) -> a curve per (model, mode).

    The last row of a repeated size is used, so that a fresh run replaces an older one.
    """
    found: dict[tuple[str, str], dict[int, float]] = {}
    for p in points:
        found.setdefault((str(p["model"]), str(p["mode"])), {})[int(p["size_B"])] = float(p["time_us"]) * 1e-6
    if any(time == 0 for rows in found.values() for time in rows.values()):
        raise ValueError("times must be above zero")
    return {key: TimeCurve(tuple(sorted(rows)), tuple(rows[s] for s in sorted(rows))) for key, rows in found.items()}


def steps(values: Sequence[float]) -> list[float]:
    """Successive ratios: value over the value before it."""
    return [b / a for a, b in itertools.pairwise(values)]


def mean_growth(values: Sequence[float]) -> float:
    """Geometric mean of the successive ratios."""
    return float((values[-1] / values[0]) ** (1 / (len(values) - 1)))


def spread(values: Sequence[float]) -> float:
    """Largest over smallest."""
    return max(values) / min(values)


def after(curve: TimeCurve, size: int, doublings: int = 4) -> TimeCurve:
    """The part from ``size`` over that many doublings."""
    return curve.within(SizeRange(size, size << doublings))


def common(a: TimeCurve, b: TimeCurve, sizes: SizeRange | None) -> list[tuple[int, float, float]]:
    """(size, time of a, time of b) at the sizes both have in the range."""
    return [(size, time, b[size]) for size, time in a.within(sizes).items() if size in b]


def median_ratio(a: TimeCurve, b: TimeCurve, sizes: SizeRange | None = None) -> float:
    """Median over the common sizes of time(a) / time(b); above 1 means a is slower."""
    return float(median(x / y for _, x, y in common(a, b, sizes)))


def median_difference(a: TimeCurve, b: TimeCurve, sizes: SizeRange | None = None) -> float:
    """Median over the common sizes of time(a) - time(b), s."""
    return float(median(x - y for _, x, y in common(a, b, sizes)))
