"""How the blind predictions compare with what is known now: opened curves and numbers, and the scores of those that stay closed.

    scores()         # a `Score` for each of the predicted curves that was compared
    numbers()        # a `Compared` for each single number

All of it comes from ``validate/reference/period/opened`` and from the files of the predictions, which stay as they were written.

Definitions. The error of a point is the predicted one-way time over the published one, less 1; the prediction is linear in the size
between those at which it was made. A point is left out if its reading error is above 5 % of its value, if it reads 0, or if its size is
outside those of the prediction. A point is inside its interval if its value, with its reading error, meets it. The width of a curve's
intervals is the median over the prediction's own sizes of high over low. The raw layer's error is that of the prediction "the library
costs nothing": the published curve of the layer below on that machine. The interval score (Gneiting & Raftery 2007, equation 43) is that
of log(time): the interval's length plus 2 / 0.1 times the distance of what lies outside, averaged over points; smaller is better.
"""

from __future__ import annotations

import csv
import math
import tomllib
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from retrompi.base import paths
from retrompi.base.units import parse
from retrompi.papers.predict import predictions
from retrompi.papers.statements import curves
from retrompi.papers.statements.curve_points import CurvePoint, PointSource, points
from retrompi.papers.statements.paper import all_papers

__all__ = ["Compared", "LaterScore", "Miss", "Score", "ScoreGroup", "Scored", "again", "groups", "interval_score", "misses", "numbers",
           "published_points", "score_of", "score_points", "scores", "sum_scores"]

OUTSIDE = 2 / (1 - predictions.LEVEL)
"""The price of a unit of log(time) outside the interval."""
KEYS = ("curve", "prediction", "runtime", "machine", "opened", "points", "median_error", "raw_error", "bias", "worst", "worst_size_B",
        "inside", "interval_score", "width")
"""The columns of `Score.row`; errors and shares are fractions of 1."""


@dataclass(frozen=True)
class Scored:
    """A published point beside its prediction; times one way, in s. ``published_error`` is that of the reading, a share of the time."""

    size: int
    published: float
    published_error: float
    nominal: float
    low: float
    high: float

    @property
    def error(self) -> float:
        return self.nominal / self.published - 1

    @property
    def inside(self) -> bool:
        """Whether the interval holds a time that the reading allows: most curves are drawn as rates, whose error is the same both ways."""
        return self.low <= self.published / (1 - self.published_error) and self.published / (1 + self.published_error) <= self.high


@dataclass(frozen=True)
class Score:
    """The score of a curve. ``opened``: its points are known and everything is computed from them; the others' numbers are those that were
    published of them (``scores.csv``), without interval score, worst point and ``compared``."""

    curve: str
    prediction: str
    runtime: str
    machine: str
    opened: bool
    points: int
    median_error: float
    raw_error: float
    bias: float
    inside: float
    width: float
    worst: float | None = None
    worst_size: int | None = None
    interval_score: float | None = None
    compared: tuple[Scored, ...] = ()

    def row(self) -> dict[str, Any]:
        return {k: getattr(self, {"worst_size_B": "worst_size"}.get(k, k)) for k in KEYS}


@dataclass(frozen=True)
class Compared:
    """A single published number beside its prediction, in ``unit``; without one, its fields are None.

    ``inside`` is strict: a printed number has no reading error here.
    """

    id: str
    system: str
    prediction: str
    observable: str
    unit: str
    published: float
    nominal: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def inside(self) -> bool | None:
        return None if self.low is None or self.high is None else self.low <= self.published <= self.high

    def row(self) -> dict[str, Any]:
        return {**asdict(self), "inside": self.inside}


@dataclass(frozen=True)
class LaterScore:
    """A scored curve and what a changed model wrote of it later, on ``date``: the ``width`` of its intervals and, of an opened curve, which
    is no blind prediction any more, its score."""

    first: Score
    date: str
    width: float
    later: Score | None


@dataclass(frozen=True)
class ScoreGroup:
    """The curves of one runtime or machine: medians of their median errors, and the share of all their points inside the intervals."""

    name: str
    curves: int
    points: int
    median_error: float
    raw_error: float
    inside: float
    interval_score: float | None


@dataclass(frozen=True)
class Miss:
    """Predictions that failed in one way, and what is known of its cause; ``state``: explained, adopted or open."""

    title: str
    predictions: tuple[str, ...]
    numbers: tuple[str, ...]
    state: str
    text: str


def folder() -> Path:
    """The folder of the published data that predictions are scored against."""
    return paths.validate_dir() / "reference" / "period" / "opened"


def _rows(name: str) -> list[dict[str, str]]:
    with (folder() / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# --- curves ------------------------------------------------------------------------------------------------------------------------


def _between(x: float, at: Sequence[float], values: Sequence[float]) -> float:
    """Linear between the points ``at``, which rise, and constant beyond them; numpy would be a quarter of a command that shows scores."""
    k = bisect_right(at, x)
    if k in (0, len(at)):
        return values[max(0, k - 1)]
    return (values[k] - values[k - 1]) / (at[k] - at[k - 1]) * (x - at[k - 1]) + values[k - 1]


def score_points(told: Mapping[str, Any], published: Sequence[CurvePoint]) -> tuple[Scored, ...]:
    """The points of a measured curve that can judge the prediction ``told`` (a table of `shipped_predictions`), each beside it."""
    values = told["value"]
    at = [v["size_B"] for v in values]
    nominal, low, high = ([v[f"{k}_s"] for v in values] for k in ("nominal", "low", "high"))
    found = []
    for p in published:
        if p.error <= curves.FINE and at[0] <= p.size <= at[-1]:
            n, a, b = (_between(p.size, at, of) for of in (nominal, low, high))
            found.append(Scored(p.size, p.time, p.error, n, a, b))
    return tuple(found)


def interval_score(points: Iterable[Scored]) -> float:
    """The mean interval score of log(time)."""
    found = []
    for p in points:
        low, value, high = math.log(p.low), math.log(p.published), math.log(p.high)
        found.append(high - low + OUTSIDE * (max(low - value, 0) + max(value - high, 0)))
    return sum(found) / len(found)


def _raw(paper: str, name: str) -> tuple[list[float], list[float]]:
    """(sizes, one-way times in s) of the published curve of the layer below a predicted one; the mean where a size has several."""
    known = curves.of(all_papers()[paper])
    below = curves.by_name(curves.by_name(name, known).layer_below, known)
    by_size: dict[int, list[float]] = {}
    for p in below.points:
        by_size.setdefault(p.size, []).append(p.time)
    return list(by_size), [sum(t) / len(t) for t in by_size.values()]


def score_of(curve: str, prediction: str, told: Mapping[str, Any], published: Sequence[CurvePoint]) -> Score:
    """The score of the prediction ``told`` on the published points of ``curve``. Raises ValueError if no point can judge it."""
    found = score_points(told, published)
    if not found:
        raise ValueError(f"no point of '{curve}' can judge {prediction}")
    errors = [p.error for p in found]
    worst = max(found, key=lambda p: abs(p.error))
    sizes, times = _raw(*prediction.split("/"))
    raw = [abs(_between(p.size, sizes, times) / p.published - 1) for p in found]
    return Score(
        curve=curve, prediction=prediction, runtime=told["model"], machine=told["platform"], opened=True, points=len(found),
        median_error=median(map(abs, errors)), raw_error=median(raw), bias=median(errors), inside=sum(p.inside for p in found) / len(found),
        width=_width(told), worst=worst.error, worst_size=worst.size,
        interval_score=interval_score(found), compared=found,
    )


def published_points(curve: str) -> tuple[CurvePoint, ...]:
    """The points of an opened curve. Raises InputError if there is none of this name."""
    return points(PointSource(folder() / "curves.csv", where=(("id", curve),), megabit=10**6))


@cache
def scores() -> tuple[Score, ...]:
    """The scores of all curves that were compared, in the order of ``scores.csv``."""
    shipped = predictions.shipped_predictions()
    found = []
    for row in _rows("scores.csv"):
        told = shipped[row["prediction"]]
        if row["opened"] == "yes":
            found.append(score_of(row["curve"], row["prediction"], told, published_points(row["curve"])))
            continue
        errors = (float(row[f"{k}_pct"]) / 100 for k in ("median_error", "median_error_of_the_raw_layer", "bias", "inside_90"))
        middle, raw, bias, inside = errors
        found.append(Score(row["curve"], row["prediction"], told["model"], told["platform"], False, int(row["points"]), middle, raw, bias,
                           inside, float(row["interval_high_over_low"])))
    return tuple(found)


def again() -> tuple[LaterScore, ...]:
    """The scored curves that were predicted again, in the order of `scores`."""
    found = []
    for first in scores():
        told = predictions.in_force(first.prediction)
        if told["date"] != predictions.shipped_predictions()[first.prediction]["date"]:
            later = score_of(first.curve, first.prediction, told, published_points(first.curve)) if first.opened else None
            found.append(LaterScore(first, str(told["date"]), _width(told), later))
    return tuple(found)


def _width(told: Mapping[str, Any]) -> float:
    """The median over its sizes of high over low."""
    return float(median(v["high_s"] / v["low_s"] for v in told["value"]))


def groups(of: Sequence[Score], by: str) -> list[ScoreGroup]:
    """The scores together, by ``runtime`` or ``machine``."""
    names = dict.fromkeys(getattr(s, by) for s in of)
    return [sum_scores(name, [s for s in of if getattr(s, by) == name]) for name in names]


def sum_scores(name: str, mine: Sequence[Score]) -> ScoreGroup:
    """Scores (at least one) together."""
    count = sum(s.points for s in mine)
    opened = [(s.points, s.interval_score) for s in mine if s.interval_score is not None]
    price = sum(n * v for n, v in opened) / sum(n for n, _ in opened) if opened else None
    return ScoreGroup(name, len(mine), count, median(s.median_error for s in mine), median(s.raw_error for s in mine),
                 sum(s.points * s.inside for s in mine) / count, price)


# --- single numbers ----------------------------------------------------------------------------------------------------------------

_BASE = {"us": ("us", "s"), "Mbps": ("Mbps", "B/s"), "MByte/s": ("MB/s", "B/s")}


@cache
def numbers() -> tuple[Compared, ...]:
    """Every opened single number beside its prediction; one about several predictions (``gigabit-*``) has a row for each."""
    shipped = predictions.shipped_predictions()
    found = []
    for row in _rows("numbers.csv"):
        about = Compared(row["id"], row["system"], row["prediction"], row["observable"], row["unit"], float(row["value"]))
        pattern = row["prediction"]
        names = [n for n in shipped if n.startswith(pattern[:-1])] if pattern.endswith("*") else [pattern] if pattern else []
        found += [_number(about, name, shipped[name]["value"]) for name in names] or [about]
    return tuple(found)


def _number(about: Compared, name: str, values: Sequence[Mapping[str, Any]]) -> Compared:
    """The number as the prediction has it: the time of its smallest message, its largest bandwidth, or the loss against the raw one."""
    what = about.observable
    if what.startswith(("latency", "one-way time")):
        times = (values[0][f"{k}_s"] for k in ("nominal", "low", "high"))
        nominal, low, high = (t / parse(f"1 {about.unit}", "s") for t in times)
    else:
        nominal, high, low = (max(v["size_B"] / v[f"{k}_s"] for v in values if v["size_B"]) for k in ("nominal", "low", "high"))
        if about.unit == "%":
            sizes, times_below = _raw(*name.split("/"))
            raw = max(s / t for s, t in zip(sizes, times_below, strict=True) if s)
            nominal, low, high = (100 * (1 - rate / raw) for rate in (nominal, high, low))
        else:
            written, base = _BASE[about.unit]
            nominal, low, high = (rate / parse(f"1 {written}", base) for rate in (nominal, low, high))
    return Compared(about.id, about.system, name, what, about.unit, about.published, nominal, low, high)


# --- misses ------------------------------------------------------------------------------------------------------------------------


def misses() -> tuple[Miss, ...]:
    """Failed predictions and the known causes (``validate/predictions/misses.toml``)."""
    with (predictions.folder() / "misses.toml").open("rb") as file:
        given = tomllib.load(file)["miss"]
    return tuple(
        Miss(m["title"], tuple(m.get("predictions", ())), tuple(m.get("numbers", ())), m["state"], " ".join(m["text"].split()))
        for m in given
    )
