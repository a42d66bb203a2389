"""The data that a table, a page or a figure shows of a stored study: its axes, one number for each run, and the points to draw.

Everything is computed from plain rows, so that tests check the points and not the drawing. Of zipped keys, those that distinguish the
points are axes. An axis that does not apply to a point (a parameter of another model) has the value "-" there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import nan
from statistics import median
from typing import Any

from retrompi.base import units
from retrompi.base.errors import UsageError, nearest
from retrompi.spec.declare.outcome import Outcome
from retrompi.studies.define.axes import ABSENT
from retrompi.studies.define.metrics import Metric

__all__ = ["COUNTS", "SIZE", "Cell", "Failure", "SeriesLine", "View", "ViewAxis", "axis_of", "by_panel", "failures", "grid", "group_rows",
           "lines", "metric_of", "order_of", "speedups", "values_in_order", "view", "without_effect"]

COUNTS = ("ranks", "trace.ranks", "hosts")
"""Axes that count participants (ranks, hosts): a time over one of them has a speed-up."""
SIZE = "size"
"""The axis of message sizes that every curve has in addition to the study's axes."""
Row = Mapping[str, Any]


@dataclass(frozen=True)
class ViewAxis:
    """An axis of a study: ``values`` as written, in order, and the number of each if they are numeric.

    ``keys`` are the study's keys behind it: its own, and redundant ones zipped with it. ``unit`` is a base unit, "" if
    the values are names.
    """

    key: str
    values: tuple[str, ...]
    unit: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    drawn: str = ""
    """For an axis whose values were sampled from a range: "linear" or "log"."""

    @property
    def numeric(self) -> bool:
        """Whether the axis is numeric, so that lines can be drawn along it."""
        return bool(self.unit) and len(self.numbers) > 1

    @property
    def log(self) -> bool:
        """Whether the range of its numbers calls for a logarithmic scale."""
        if self.drawn:
            return self.drawn == "log"
        found = list(self.numbers.values())
        return bool(found) and min(found) > 0 and max(found) / min(found) >= 8


def _number(text: str) -> tuple[str, float] | None:
    for unit in ("1", "B", "s", "B/s", "s/B", "Hz", "flop/s", "probability"):
        try:
            return unit, units.parse(text, unit)
        except UsageError:
            continue
    return None


def axis_of(key: str, values: Iterable[str], keys: Sequence[str] = ()) -> ViewAxis:
    """The axis of ``key`` with its distinct values in order; numeric if all values but "-" are numbers of one unit.

    ``nt-cluster*8`` counts as the number after the star if the values differ in nothing else.
    """
    distinct = tuple(dict.fromkeys(values))
    shown = [v for v in distinct if v != ABSENT]
    stems = {v.rpartition("*")[0] for v in shown}
    texts = {v: v.rpartition("*")[2] for v in shown} if len(stems) == 1 and stems != {""} else {v: v for v in shown}
    found = {v: _number(text) for v, text in texts.items()}
    kinds = {n[0] for n in found.values() if n is not None}
    # 0 needs no unit
    kinds -= {"1"} if len(kinds) > 1 and all(n is None or n[0] != "1" or n[1] == 0 for n in found.values()) else set()
    if None in found.values() or len(kinds) != 1 or not shown:
        return ViewAxis(key, distinct, keys=tuple(keys) or (key,))
    numbers = {v: n[1] for v, n in found.items() if n is not None}
    return ViewAxis(key, distinct, kinds.pop(), numbers, tuple(keys) or (key,))


@dataclass(frozen=True)
class Failure:
    """A point without a result: its values, its outcome, and the reason."""

    position: int
    values: Mapping[str, str]
    outcome: str
    reason: str


@dataclass(frozen=True)
class SeriesLine:
    """Points of one series: x as numbers, y in the metric's unit. ``flat`` is the value of points that the x axis does not vary.

    With draws also the interval of each y, ``low`` to ``high`` (nan where no draw completed), and the share of draws that ``completed``.
    """

    label: tuple[str, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    positions: tuple[int, ...] = ()
    flat: float | None = None
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    completed: tuple[float, ...] = ()


@dataclass(frozen=True)
class Cell:
    """A cell of a heat map or table: its value, or the outcome of its run; of a single run with draws, the interval ``low`` to ``high``."""

    value: float | None
    outcome: str = Outcome.COMPLETED
    position: int = 0
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class View:
    """A study prepared for display. ``rows`` have ``position``, ``values`` (axis key -> text), ``value`` (in the metric's unit or None),
    ``outcome``, ``reason``, ``run_id``; ``curves`` are the points of its runs by run id, if they are curves.

    Of a study with ``draws``, rows are the runs with nominal values, with ``low`` and ``high`` of the interval at ``level`` (None where no
    draw completed) and the share of draws that ``completed``; points of ``curves`` have ``time_us_low``, ``time_us_high``,
    ``bandwidth_MBps_low``, ``bandwidth_MBps_high`` and ``completed``.
    """

    definition: Mapping[str, Any]
    axes: tuple[ViewAxis, ...]
    rows: tuple[Row, ...]
    metric: Metric
    curves: Mapping[int, Sequence[Row]] = field(default_factory=dict)
    level: float = 0.0
    draws: int = 0

    @property
    def sampled(self) -> bool:
        """Whether the points were sampled from ranges rather than forming a grid."""
        return str(self.definition.get("sampling", "grid")) != "grid"

    def axis(self, key: str) -> ViewAxis:
        """An axis by its key, or by one of the keys that are zipped into it; UsageError names the valid ones."""
        for a in self.axes:
            if key == a.key or key in a.keys:
                return a
        raise UsageError(f"this study does not vary '{key}'{nearest(key, [k for a in self.axes for k in a.keys])}", code="unknown-name")


def _distinguishing_keys(keys: Sequence[str], rows: Sequence[Row], given: Callable[[Row, str], str]) -> list[str]:
    """The smallest subset of zipped ``keys``, in order, that distinguishes their points."""
    whole = {tuple(given(r, k) for k in keys) for r in rows}
    kept: list[str] = []
    for key in keys:
        before = {tuple(given(r, k) for k in kept) for r in rows}
        if len(before) == len(whole):
            break
        if len({(*(given(r, k) for k in kept), given(r, key)) for r in rows}) > len(before):
            kept.append(key)
    return kept or list(keys[:1])


def _value_text(row: Row, key: str) -> str:
    return str(row.get(key, ABSENT))


def _axes(definition: Mapping[str, Any], rows: Sequence[Row]) -> list[tuple[ViewAxis, Callable[[Row], str]]]:
    """Every axis with more than one value, and the function that reads a row's value on it."""
    groups = [list(table) for table in definition.get("zip", ())]
    zipped = {k for g in groups for k in g}
    vary = [k for k in definition.get("vary", {}) if k not in zipped]

    given = _value_text
    out: list[tuple[ViewAxis, Callable[[Row], str]]] = []
    for group in [*groups, *([k] for k in vary)]:
        keys = [k for k in group if len({given(r, k) for r in rows}) > 1]
        if not keys:
            continue
        told = _distinguishing_keys(keys, rows, given)
        by_ranks: dict[tuple[str, ...], set[Any]] = {}
        for r in rows:
            if r.get("ranks") is not None:
                by_ranks.setdefault(tuple(given(r, k) for k in keys), set()).add(r["ranks"])
        counts = [next(iter(s)) for s in by_ranks.values() if len(s) == 1]
        if "trace.file" in keys and len(counts) == len(by_ranks) == len(set(counts)) > 1:
            # Captures of one program, distinguished by their number of ranks.
            names = {values: str(next(iter(found))) for values, found in by_ranks.items()}

            def read(row: Row, keys: list[str] = keys, names: Mapping[tuple[str, ...], str] = names) -> str:
                return names.get(tuple(given(row, k) for k in keys), ABSENT)

            out.append((axis_of("ranks", sorted((read(r) for r in rows), key=_order), keys), read))
            continue

        for key in told:
            # A redundant key zipped with an axis is listed under that axis.
            others = [k for k in keys if k not in told] if key == told[0] else []
            axis = axis_of(key, (given(r, key) for r in rows), [key, *others])
            text = definition.get("vary", {}).get(key)
            if definition.get("sampling", "grid") != "grid" and isinstance(text, str) and ".." in text:
                axis = replace(axis, drawn="log" if text.endswith(":log") else "linear")
            out.append((axis, partial(_value_text, key=key)))
    return out


def without_effect(v: View) -> list[str]:
    """Axes of a grid without effect: with all others fixed, every value of them gives the same number and outcome.

    A parameter that these runs never read is one of them, and would otherwise look like a result.
    """
    if v.sampled:
        return []
    found = []
    for a in v.axes:
        groups: dict[tuple[str, ...], list[Row]] = {}
        for r in v.rows:
            if r["values"][a.key] != ABSENT:
                groups.setdefault(tuple(r["values"][o.key] for o in v.axes if o is not a), []).append(r)
        compared = [rows for rows in groups.values() if len(rows) > 1]
        same = all(len({(r["value"], r["outcome"]) for r in rows}) == 1 for rows in compared)
        # If no run has a number there is nothing to compare.
        if compared and same and any(r["value"] is not None for rows in compared for r in rows):
            found.append(a.key)
    return found


def _order(text: str) -> tuple[float, str]:
    return (float(text), text) if text.isdecimal() else (float("inf"), text)


def view(
    definition: Mapping[str, Any],
    rows: Sequence[Row],
    metric: Metric,
    runs: Mapping[int, Row],
    curves: Mapping[int, Sequence[Row]],
    ranks: Mapping[int, Sequence[Row]],
) -> View:
    """The `View` of a study's rows; ``runs``, ``curves`` and ``ranks`` map run ids to rows of the store."""
    full = [{**r, "ranks": runs[r["run_id"]].get("ranks") if r.get("run_id") in runs else None} for r in rows]
    axes = _axes(definition, full)
    shown = []
    for row in full:
        run_id = row.get("run_id")
        known = runs.get(run_id) if run_id is not None else None
        number = metric.base or metric
        value = None if known is None or run_id is None else number.of(known, curves.get(run_id, ()), ranks.get(run_id, ()))
        shown.append({
            "position": row["position"], "values": {a.key: read(row) for a, read in axes}, "value": value,
            "outcome": row["outcome"], "reason": row.get("reason") or "", "run_id": run_id,
        })
    kept = {i: c for i, c in curves.items() if len(c) > 1}
    made = View(definition, tuple(a for a, _ in axes), tuple(shown), metric, kept)
    return _with_speedup(made) if metric.base is not None else made


def _with_speedup(v: View) -> View:
    """The times of ``v`` as speed-ups relative to the smallest count of the series if an axis counts participants, else the first point."""
    count = next((a for a in v.axes if a.key in COUNTS and a.numeric), None)
    others = [a.key for a in v.axes if a is not count] if count else []
    bases: dict[tuple[str, ...], float] = {}
    for row in sorted(v.rows, key=lambda r: count.numbers.get(r["values"][count.key], float("inf")) if count else r["position"]):
        if row["value"] is not None:
            bases.setdefault(_label(row, others), row["value"])
    rows = [{**r, "value": v.metric.over([r["value"]], bases.get(_label(r, others)))[0]} for r in v.rows]
    return replace(v, rows=tuple(rows))


def failures(v: View) -> list[Failure]:
    """The points that did not complete, in order."""
    return [Failure(r["position"], r["values"], r["outcome"], r["reason"]) for r in v.rows if r["outcome"] != Outcome.COMPLETED]


def values_in_order(axis: ViewAxis) -> list[str]:
    """The values of an axis in display order: numbers ascending, names as written, "-" last."""
    if axis.numeric:
        return [*sorted(axis.numbers, key=axis.numbers.__getitem__), *(v for v in axis.values if v == ABSENT)]
    return list(axis.values)


def _label(row: Row, by: Sequence[str]) -> tuple[str, ...]:
    return tuple(row["values"][k] for k in by)


def order_of(v: View, by: Sequence[str], rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """The labels of ``rows`` on the axes ``by``, in the axes' order."""
    places = [{value: i for i, value in enumerate(values_in_order(v.axis(k)))} for k in by]
    found = {_label(r, by) for r in rows}
    return sorted(found, key=lambda label: tuple(p[x] for p, x in zip(places, label, strict=True)))


def group_rows(by: Sequence[str], rows: Sequence[Row]) -> dict[tuple[str, ...], list[Row]]:
    """The rows of each label on the axes ``by``, in the order they came."""
    out: dict[tuple[str, ...], list[Row]] = {}
    for r in rows:
        out.setdefault(_label(r, by), []).append(r)
    return out


def lines(v: View, x: str, by: Sequence[str], rows: Sequence[Row] | None = None) -> list[SeriesLine]:
    """The metric along the axis ``x``, one line for each combination of the axes ``by``; runs without a value are left out.

    With ``x`` = "size" the points are those of the runs' curves and y is a time or a bandwidth, as the metric is.
    """
    chosen = list(v.rows if rows is None else rows)
    out = []
    of_line = group_rows(by, chosen)
    for label in order_of(v, by, chosen):
        mine = of_line[label]
        if x == SIZE:
            found = [(float(p["size_B"]), _of_point(v.metric, p), r["position"], _between(p, *_ENDS[v.metric.unit == "s"]))
                     for r in mine for p in v.curves.get(r["run_id"], ())]
            flat = None
        else:
            axis = v.axis(x)
            found = [(axis.numbers[t], r["value"], r["position"], _between(r, "low", "high", 1.0)) for r in mine
                     if r["value"] is not None and (t := r["values"][axis.key]) in axis.numbers]
            flat = next((r["value"] for r in mine if r["values"][axis.key] == ABSENT), None)
        found.sort(key=lambda p: p[0])
        if found or flat is not None:
            line = SeriesLine(label, tuple(p[0] for p in found), tuple(p[1] for p in found), tuple(p[2] for p in found), flat)
            if v.draws:
                low, high, completed = (tuple(p[3][i] for p in found) for i in range(3))
                line = replace(line, low=low, high=high, completed=completed)
            out.append(line)
    return out


def _of_point(metric: Metric, point: Row) -> float:
    """A curve point's value for a metric: its one-way time if the metric is a time, else its bandwidth. Base units."""
    return float(point["time_us"]) * 1e-6 if metric.unit == "s" else float(point["bandwidth_MBps"]) * 1e6


_ENDS = {True: ("time_us_low", "time_us_high", 1e-6), False: ("bandwidth_MBps_low", "bandwidth_MBps_high", 1e6)}
"""Whether the metric is a time -> the columns of a curve point's interval, and what they are times to be in base units."""


def _between(row: Row, low: str, high: str, scale: float) -> tuple[float, float, float]:
    """(low, high, share of draws that completed) of a row; nan without an interval."""
    if row.get(low) is None or row.get(high) is None:
        return nan, nan, float(row.get("completed", 0.0))
    return float(row[low]) * scale, float(row[high]) * scale, float(row["completed"])


def grid(v: View, x: str, y: str, rows: Sequence[Row] | None = None) -> tuple[list[str], list[str], list[list[Cell | None]]]:
    """(values along x, values along y, cells[y][x]) of two axes; a cell with several runs holds their median, an empty one None."""
    chosen = list(v.rows if rows is None else rows)
    across, up = v.axis(x), v.axis(y)
    xs = [t for t in values_in_order(across) if any(r["values"][across.key] == t for r in chosen)]
    ys = [t for t in values_in_order(up) if any(r["values"][up.key] == t for r in chosen)]
    cells: list[list[Cell | None]] = []
    for b in ys:
        line: list[Cell | None] = []
        for a in xs:
            here = [r for r in chosen if r["values"][across.key] == a and r["values"][up.key] == b]
            line.append(_cell(here))
        cells.append(line)
    return xs, ys, cells


def _cell(here: Sequence[Row]) -> Cell | None:
    if not here:
        return None
    values = [r["value"] for r in here if r["value"] is not None]
    if not values:
        return Cell(None, here[0]["outcome"], here[0]["position"])
    ends = (here[0].get("low"), here[0].get("high")) if len(here) == 1 else (None, None)
    return Cell(median(values), Outcome.COMPLETED, here[0]["position"], *ends)


def speedups(line: SeriesLine) -> list[tuple[float, float, float]]:
    """(count, speed-up, efficiency) for a line of times over a count, with its smallest count p: T(p) / T(n), and that times p / n."""
    if not line.x or line.y[0] <= 0:
        return []
    first, base = line.x[0], line.y[0]
    return [(n, base / t, base / t * first / n) for n, t in zip(line.x, line.y, strict=True) if t > 0]


def by_panel(v: View, panel: Sequence[str]) -> list[tuple[tuple[str, ...], list[Row]]]:
    """The rows of each panel, in the axes' order; one panel () with all of them where no axis is given."""
    of_panel = group_rows(panel, v.rows)
    return [(label, of_panel[label]) for label in order_of(v, panel, v.rows)]


def metric_of(wanted: str | None, definition: Mapping[str, Any], curves: bool) -> Metric:
    """The metric asked for, else the study's own, else the largest bandwidth of curves or the time of jobs."""
    from retrompi.studies.define.metrics import parse

    return parse(wanted or str(definition.get("metric") or "") or ("peak" if curves else "time"))
