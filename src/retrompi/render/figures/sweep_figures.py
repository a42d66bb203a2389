"""A study's figures: which ones suit its axes, and how their points are drawn.

The points come from `retrompi.studies.read.view`; this module only draws them. Colours are Okabe and Ito's and, for heat maps, Cividis,
which are distinguishable with any colour vision; symbols, dashes and numbers in the cells encode the same information for print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, floor, isfinite, log2, log10
from typing import Any

import plotly.graph_objects as go

from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes, format_quantity, format_span
from retrompi.render.figures import bands
from retrompi.render.figures.bands import of_draws, share, whiskers
from retrompi.render.figures.figures import (
    AXIS,
    PALETTE,
    CurveStyle,
    decades,
    hatch_pattern,
    layout,
    line_trace,
    looks,
    name_of,
    place,
    setting,
    size_axis,
)
from retrompi.studies.define.axes import ABSENT
from retrompi.studies.define.metrics import Metric
from retrompi.studies.read.view import (
    COUNTS,
    SIZE,
    Row,
    SeriesLine,
    View,
    ViewAxis,
    by_panel,
    grid,
    lines,
    order_of,
    speedups,
    values_in_order,
)

__all__ = ["KINDS", "FigurePlan", "choose", "draw", "plan_of"]

KINDS = ("curves", "lines", "speedup", "efficiency", "heat", "bars", "scatter", "parallel")
_MOST_LINES = 9
"""The most lines in one figure; more are spread over panels."""
_MOST_NUMBERS = 70
"""The most cells of a heat map in which numbers fit."""
_MOST_TICKS = 7
_MOST_WRITTEN = 40
"""The most values used as ticks; with more an axis has round ticks."""


@dataclass(frozen=True)
class FigurePlan:
    """A figure to draw: its kind (`KINDS`), the axis along it, the axes that distinguish its lines (or rows), and those with panels."""

    kind: str
    x: str = ""
    by: tuple[str, ...] = ()
    panel: tuple[str, ...] = ()


def _numeric(v: View, least: int = 2) -> list[ViewAxis]:
    return sorted((a for a in v.axes if a.numeric and len(a.numbers) >= least), key=lambda a: -len(a.numbers))


def _spread(v: View, rest: Sequence[ViewAxis], before: Sequence[str] = ()) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(by, panel): of the axes ``rest``, those that give as many lines per figure as are readable, and the others."""
    sorted_rest = sorted(rest, key=lambda a: (not _of_models(a), len(a.values)))
    sets = [some for n in range(len(rest) + 1) for some in combinations(sorted_rest, n)]

    def count(some: Sequence[ViewAxis]) -> int:
        return len({tuple(r["values"][k] for k in (*before, *(a.key for a in some))) for r in v.rows})

    # A single axis may have some more: with a panel for each of its values, each panel would hold a single line. So may one of models,
    # which are to be compared with each other: in separate figures they are not.
    fitting = [
        s for s in sets
        if not s or count(s) <= (2 * _MOST_LINES if len(s) == 1 and (len(rest) == 1 or _of_models(s[0])) else _MOST_LINES)
    ]
    by = max(fitting, key=lambda s: (any(_of_models(a) for a in s), count(s), -len(s)))
    return tuple(a.key for a in by), tuple(a.key for a in sorted_rest if a not in by)


def _of_models(axis: ViewAxis) -> bool:
    return "model" in axis.keys


def plan_of(kind: str, v: View, x: str | None = None, by: Sequence[str] = (), panel: Sequence[str] = ()) -> FigurePlan:
    """The plan of a figure of ``kind``; unspecified axes are chosen. Raises UsageError in one line when the study lacks one of them."""
    if kind not in KINDS:
        from retrompi.base.errors import nearest

        raise UsageError(f"no kind of figure '{kind}'{nearest(kind, KINDS)}", code="unknown-name")
    given = [v.axis(k).key for k in (*by, *panel)]
    if kind == "curves":
        if not v.curves:
            raise UsageError("the runs of this study have no curves; possible figures: lines, speedup, heat, bars", code="no-figure")
        if x not in (None, SIZE):
            raise UsageError(f"curves run along the message size, not along '{x}'; take --chart lines", code="no-figure")
        along = SIZE
    elif kind in ("bars", "parallel"):
        along = v.axis(x).key if x else ""
    else:
        along = v.axis(x).key if x else _best(kind, v, given)
        if kind != "heat" and not v.axis(along).numeric:
            raise UsageError(f"'{along}' has no numbers to draw along; take --chart bars or heat", code="no-figure")
    rest = [a for a in v.axes if a.key not in (along, *given)]
    chosen_by, chosen_panel = tuple(v.axis(k).key for k in by), tuple(v.axis(k).key for k in panel)
    if kind == "heat":
        if not chosen_by:
            others = [a for a in (*_numeric(v), *v.axes) if a in rest]
            if not others:
                raise UsageError("a heat map needs two axes; this study varies one: take --chart lines or bars", code="no-figure")
            chosen_by = (others[0].key,)
            rest.remove(others[0])
        return FigurePlan(kind, along, chosen_by, (*chosen_panel, *(a.key for a in rest)))
    if kind in ("bars", "parallel", "scatter"):
        return FigurePlan(kind, along, (*chosen_by, *(a.key for a in rest)), chosen_panel)
    more_by, more_panel = _spread(v, rest, chosen_by)
    return FigurePlan(kind, along, (*chosen_by, *more_by), (*chosen_panel, *more_panel))


def _best(kind: str, v: View, taken: Sequence[str]) -> str:
    found = [a for a in _numeric(v) if a.key not in taken]
    if kind in ("speedup", "efficiency"):
        counted = [a for a in found if a.key in COUNTS]
        if not counted:
            raise UsageError(f"no axis counts ranks or hosts ({', '.join(COUNTS)}): there is no speed-up to show", code="no-figure")
        return counted[0].key
    if kind == "heat" and not found:
        found = sorted((a for a in v.axes if a.key not in taken), key=lambda a: -len(a.values))
    if not found:
        raise UsageError("no axis of this study has numbers to draw along; take --chart bars", code="no-figure")
    return found[0].key


def choose(v: View, x: str | None = None, by: Sequence[str] = (), panel: Sequence[str] = ()) -> list[FigurePlan]:
    """The figures that suit the axes of a study; with ``x``, along that one."""
    if not v.axes:
        return [plan_of("curves", v)] if v.curves else []
    if v.sampled:
        return [*(plan_of("scatter", v, a.key) for a in _numeric(v)), plan_of("parallel", v)]
    kinds: list[str] = ["curves"] if v.curves and x in (None, SIZE) else []
    along = x if x != SIZE else None
    counted = [a for a in _numeric(v) if a.key in COUNTS and (along is None or v.axis(along) is a)]
    if counted and v.metric.unit == "s":
        kinds += ["lines", "speedup", "efficiency"]
    long = [a for a in _numeric(v, 3) if a not in counted]
    if len(_numeric(v, 3)) > 1:
        kinds += ["heat"]
    if "lines" not in kinds and (long or (along and v.axis(along).numeric)):
        kinds += ["lines"]
    if not {"lines", "heat"} & set(kinds) and not (v.curves and len(v.rows) == 1):
        kinds += ["bars"]
    out = []
    for kind in kinds:
        mine = None if kind == "curves" else along
        out.append(plan_of(kind, v, counted[0].key if counted and kind == "lines" else mine, by, panel))
    return out


# -- drawing -----------------------------------------------------------------------------------------------------------


def label_of(keys: Sequence[str], label: Sequence[str]) -> str:
    """A combination of values as a legend shows it: models by name, words as they are, numbers and booleans with what they are of."""
    out = []
    for key, text in zip(keys, label, strict=True):
        if key == "model":
            out.append(name_of(text))
        elif text != ABSENT:
            out.append(setting(key, text) if text[:1].isdecimal() or text in ("yes", "no", "on", "off") else text)
    return ", ".join(out) or "all"


def _looks(v: View, plan: FigurePlan) -> dict[tuple[str, ...], CurveStyle]:
    """A look for every line, the same in every panel: colour by the first axis, dash by the combination of the others."""
    labels = order_of(v, plan.by, v.rows)
    pairs = {label: (label[0], ", ".join(label[1:])) if label else ("", "") for label in labels}
    if plan.by and "model" not in v.axis(plan.by[0]).keys and len({p[1] for p in pairs.values()}) == 1:
        pairs = {label: ("", first) for label, (first, _) in pairs.items()}
    found = looks(pairs.values())
    return {label: found[pair] for label, pair in pairs.items()}


def _ticks(values: Sequence[float], show: Callable[[float], str]) -> dict[str, Any]:
    """Ticks of a logarithmic axis at these values."""
    return decades(min(values), max(values), show, margin=2)


def _size_ticks(low: float, high: float) -> dict[str, Any]:
    """Ticks of a logarithmic axis of sizes: powers of two, at most seven."""
    first, last = ceil(log2(max(low, 1))), floor(log2(high))
    every = -(-(last - first + 1) // _MOST_TICKS) or 1
    shown = [2.0**k for k in range(first, last + 1, every)]
    return {"tickvals": shown, "ticktext": [format_bytes(t) for t in shown]}


def metric_axis(metric: Metric, title: str, values: Iterable[float]) -> dict[str, Any]:
    """The axis of a metric: logarithmic if its values span more than a factor of ten."""
    known = [y for y in values if y is not None]
    positive = [y for y in known if y > 0]
    if positive and len(positive) == len(known) and max(positive) / min(positive) >= 10:
        return {**AXIS, "type": "log", "title": {"text": title, "standoff": 12}, **_ticks(positive, lambda t: _short(metric.unit, t))}
    if metric.unit in ("1", "count"):
        return {**AXIS, "title": {"text": title, "standoff": 12}, "rangemode": "tozero"}
    top = max(known, default=1.0) or 1.0
    step = 10.0 ** floor(log10(top))
    step = next(s * step for s in (0.2, 0.5, 1, 2, 5) if top / (s * step) <= 6)
    ticks = [i * step for i in range(int(top / step) + 2)]
    return {**AXIS, "title": {"text": title, "standoff": 12}, "range": [0, 1.06 * top],
            "tickvals": ticks, "ticktext": [_short(metric.unit, t) for t in ticks]}


def _short(unit: str, value: float) -> str:
    if unit in ("1", "count"):
        return f"{value:.4g}"
    if value == 0:
        return "0"
    if unit == "B":
        return format_bytes(round(value))
    return f"{100 * value:g} %" if unit == "probability" else format_quantity(float(f"{value:.3g}"), unit)


def _number_axis(axis: ViewAxis) -> dict[str, Any]:
    """The axis of a parameter, with ticks as written in the study."""
    texts = [t for t in values_in_order(axis) if t in axis.numbers]
    every = -(-len(texts) // _MOST_TICKS)
    scale: dict[str, Any] = {"type": "log" if axis.log else "linear"}
    if len(texts) > _MOST_WRITTEN:
        scale |= _round_ticks([axis.numbers[t] for t in texts], axis.log, axis.unit)
    else:
        shown = _apart([(axis.numbers[t], _tick(axis, t)) for t in texts[::every]], axis.log)
        scale |= {"tickvals": [v for v, _ in shown], "ticktext": [t for _, t in shown]}
    return {**AXIS, **scale, "title": {"text": _title(axis)}, "tickangle": 0}


_LETTERS = 40
"""Letters that fit along an axis on a phone."""


def _apart(ticks: Sequence[tuple[float, str]], log: bool) -> list[tuple[float, str]]:
    """The ticks whose labels do not touch their neighbours': values are not evenly spread."""

    def at(value: float) -> float:
        return log10(value) if log else value

    found = sorted(ticks, key=lambda t: t[0])
    if len(found) < 2 or (log and found[0][0] <= 0):
        return found
    across = (at(found[-1][0]) - at(found[0][0])) or 1.0
    out = [found[0]]
    for value, text in found[1:]:
        gap = (at(value) - at(out[-1][0])) / across * _LETTERS
        if gap >= (len(text) + len(out[-1][1])) / 2 + 1:
            out.append((value, text))
    return out


def _round_ticks(values: Sequence[float], log: bool, unit: str) -> dict[str, Any]:
    """Ticks at round numbers, for values that are not round."""
    if log:
        return _size_ticks(min(values), max(values)) if unit == "B" else _ticks(values, lambda t: _short(unit, t))
    low, high = min(values), max(values)
    step = 10.0 ** floor(log10(high - low)) if high > low else 1.0
    step = next(s * step for s in (0.2, 0.5, 1, 2, 5) if (high - low) / (s * step) <= 5)
    if unit == "B":
        step = 2.0 ** ceil(log2(max((high - low) / 5, 1)))
    ticks = [i * step for i in range(ceil(low / step), int(high / step) + 1)]
    return {"tickvals": ticks, "ticktext": [_short(unit, t) for t in ticks]}


def _tick(axis: ViewAxis, text: str) -> str:
    if len(text) <= 9:
        return text
    rounded = float(f"{axis.numbers[text]:.3g}")
    return f"{rounded:g}" if axis.unit in ("1", "probability") else format_quantity(rounded, axis.unit)


def _title(axis: ViewAxis) -> str:
    """``wmpi.packet`` -> "packet of WMPI", ``platform.link.bandwidth`` -> "link bandwidth"."""
    if axis.key == SIZE:
        return "message size"
    if axis.key in ("ranks", "trace.ranks"):
        return "number of ranks"
    whose, dot, name = axis.key.partition(".")
    said = (name if dot else whose).replace(".", " ").replace("_", " ")
    return said if not dot or whose in ("platform", "trace") else f"{said} of {name_of(whose)}"


def _y_title(v: View, plan: FigurePlan) -> str:
    if plan.kind == "curves":
        return "one-way time" if v.metric.unit == "s" else "bandwidth"
    return v.metric.label


def _curve_metric(v: View) -> Metric:
    from retrompi.studies.define.metrics import parse

    return parse("latency" if v.metric.unit == "s" else "peak")


def _line_figure(
    v: View, plan: FigurePlan, rows: Sequence[Row], shown: Mapping[tuple[str, ...], CurveStyle], every: Sequence[SeriesLine]
) -> go.Figure:
    figure = go.Figure()
    metric = _curve_metric(v) if plan.kind == "curves" else v.metric
    axis = None if plan.x == SIZE else v.axis(plan.x)
    for line in lines(v, plan.x, plan.by, rows):
        look, name = shown[line.label], label_of(plan.by, line.label)
        points = [(x, y, _position_text(axis, x)) for x, y in zip(line.x, line.y, strict=True) if metric.unit != "B/s" or y > 0]
        if line.flat is not None and not points and axis is not None:
            ends = list(axis.numbers.values())
            points = [(min(ends), line.flat, "any"), (max(ends), line.flat, "any")]
        told = _band(figure, v, line, axis, look, name)
        figure.add_trace(line_trace(
            look, name, [place(x) if axis is None else x for x, _, _ in points], [y for _, y, _ in points], symbol_size=8,
            customdata=[[said, f"{metric.show(y)}{told.get(x, '')}"] for x, y, said in points], showlegend=bool(plan.by),
            legendgroup=name, hovertemplate=f"{name}, %{{customdata[0]}}: %{{customdata[1]}}<extra></extra>",
        ))
    layout(figure, "")
    shown_y = [y for one in every for y in (*one.y, *one.low, *one.high) if isfinite(y) and (metric.unit != "B/s" or y > 0)]
    figure.update_yaxes(**metric_axis(metric, _y_title(v, plan), shown_y))
    _key(figure, v, [c for one in every for c in one.completed])
    if axis is None:
        sizes = [x for one in every for x in one.x]
        figure.update_xaxes(**size_axis(sizes, 0))
    else:
        figure.update_xaxes(**_number_axis(axis))
    return figure


def _band(figure: go.Figure, v: View, line: SeriesLine, axis: ViewAxis | None, look: CurveStyle, name: str) -> dict[float, str]:
    """Draws the band of a line with draws; x -> what the pointer says of the interval there."""
    if not v.draws:
        return {}
    metric = v.metric
    known = [i for i, _ in enumerate(line.x) if metric.unit != "B/s" or line.y[i] > 0]
    at = [place(line.x[i]) if axis is None else line.x[i] for i in known]
    low, high = ([ends[i] for i in known] for ends in (line.low, line.high))
    band = bands.area(at, low, high, look.colour, log=min(low, default=0.0) > 0, legendgroup=name)
    # Equal bands on top of each other would add up to an opaque one.
    if not any((t.x, t.y, t.fillcolor) == (band.x, band.y, band.fillcolor) for t in figure.data):
        figure.add_trace(band)
    return {x: _interval(v, metric, a, b, c) for x, a, b, c in zip(line.x, line.low, line.high, line.completed, strict=True)}


def _interval(v: View, metric: Metric, low: float | None, high: float | None, completed: float) -> str:
    """An interval as the pointer shows it below the value; "" without one."""
    if low is None or high is None or not isfinite(low):
        return ""
    return f"<br>{share(v.level)}: {format_span(low, high, metric.unit)}, {of_draws(completed, v.draws)}"


def _key(figure: go.Figure, v: View, completed: Sequence[float]) -> None:
    """The legend's entry for intervals, of a study with draws."""
    if v.draws:
        figure.add_trace(bands.key(bands.band_text(v.level, v.draws, completed)))
        figure.update_layout(showlegend=True)
        bands.lower_key(figure)
        bands.below(figure)


def _position_text(axis: ViewAxis | None, x: float) -> str:
    if axis is None:
        return format_bytes(x)
    return next((t for t, n in axis.numbers.items() if n == x), f"{x:g}")


def _speedup_figure(
    v: View, plan: FigurePlan, rows: Sequence[Row], shown: Mapping[tuple[str, ...], CurveStyle], every: Sequence[SeriesLine]
) -> go.Figure:
    """Speed-up beside the ideal, or efficiency, relative to the smallest count of each line."""
    figure = go.Figure()
    axis = v.axis(plan.x)
    part = 1 if plan.kind == "speedup" else 2
    counts = sorted(axis.numbers.values())
    ideal = [n / counts[0] if part == 1 else 100.0 for n in counts]
    figure.add_trace(go.Scatter(x=counts, y=ideal, mode="lines", name="ideal", line={"color": "#777777", "width": 1.5}, hoverinfo="skip"))
    for line in lines(v, plan.x, plan.by, rows):
        look, name = shown[line.label], label_of(plan.by, line.label)
        found = speedups(line)
        figure.add_trace(line_trace(
            look, name, [f[0] for f in found], [f[part] * (1 if part == 1 else 100) for f in found], symbol_size=8,
            hovertemplate=f"{name}, %{{x}}: %{{y:.3g}}{'' if part == 1 else ' %'}<extra></extra>",
        ))
    layout(figure, "")
    # On linear axes the ideal is a straight line.
    figure.update_xaxes(**{**_number_axis(axis), "type": "linear"}, rangemode="tozero")
    title = f"speed-up over {counts[0]:g}" if part == 1 else f"efficiency against {counts[0]:g}, %"
    figure.update_yaxes(**AXIS, title={"text": title, "standoff": 12}, rangemode="tozero")
    return figure


def _heat_figure(v: View, plan: FigurePlan, rows: Sequence[Row]) -> go.Figure:
    xs, ys, cells = grid(v, plan.x, plan.by[0], rows)
    every = [r["value"] for r in v.rows if r["value"] is not None]
    log = bool(every) and min(every) > 0 and max(every) / min(every) >= 10

    def on_scale(value: float) -> float:
        return log10(value) if log else value

    z = [[None if c is None or c.value is None else on_scale(c.value) for c in line] for line in cells]
    told = [["" if c is None else c.outcome if c.value is None else _short(v.metric.unit, c.value) for c in line] for line in cells]
    with_numbers = len(xs) * len(ys) <= _MOST_NUMBERS and len(xs) <= _MOST_TICKS
    bar: dict[str, Any] = {"title": {"text": v.metric.label, "side": "right"}, "thickness": 14}
    if log and every:
        ticks = _ticks(every, lambda t: _short(v.metric.unit, t))
        bar |= {"tickvals": [log10(t) for t in ticks["tickvals"]], "ticktext": ticks["ticktext"]}
    elif every:
        axis = metric_axis(v.metric, "", every)
        bar |= {k: axis[k] for k in ("tickvals", "ticktext") if k in axis}
    ends = (on_scale(min(every)), on_scale(max(every))) if every else (0.0, 1.0)
    figure = go.Figure(go.Heatmap(
        x=xs, y=ys, z=z, text=told, texttemplate="%{text}" if with_numbers else None, textfont={"size": 12}, colorscale="Cividis",
        zmin=ends[0], zmax=ends[1] if ends[1] > ends[0] else ends[0] + 1, colorbar=bar, xgap=1, ygap=1, hoverongaps=True,
        # Where the cells show their numbers, a colour bar would only take space on a phone.
        showscale=not with_numbers,
        customdata=[["" if c is None else _interval(v, v.metric, c.low, c.high, 1.0) for c in line] for line in cells],
        hovertemplate=f"{plan.x} %{{x}}, {plan.by[0]} %{{y}}: %{{text}}%{{customdata}}<extra></extra>",
    ))
    for i, line in enumerate(cells):
        for j, c in enumerate(line):
            if c is not None and c.value is None:
                # an empty cell with the outcome in it: no colour represents a failure
                figure.add_annotation(x=xs[j], y=ys[i], text=c.outcome, showarrow=False, font={"size": 12, "color": "#b03a00"})
    layout(figure, "")
    figure.update_xaxes(type="category", title={"text": _title(v.axis(plan.x))}, tickangle=0, automargin=True, zeroline=False)
    figure.update_yaxes(type="category", title={"text": _title(v.axis(plan.by[0])), "standoff": 12}, automargin=True, zeroline=False)
    return figure


def _bar_figure(v: View, plan: FigurePlan, rows: Sequence[Row]) -> go.Figure:
    """Horizontal bars, one for each combination; colours by the first axis."""
    figure = go.Figure()
    order = order_of(v, plan.by, rows)
    first = plan.by[0] if plan.by else ""
    axis = v.axis(first) if first else None
    for i, value in enumerate(values_in_order(axis) if axis else [""]):
        mine = [(label, r) for label in order if not axis or label[0] == value
                for r in rows if tuple(r["values"][k] for k in plan.by) == label and r["value"] is not None]
        if not mine:
            continue
        names = [label_of(plan.by, label) for label, _ in mine]
        if v.draws:  # the error bar is where the number would be
            names = [f"{name}<br><b>{v.metric.show(r['value'])}</b>" for name, (_, r) in zip(names, mine, strict=True)]
        figure.add_trace(go.Bar(
            orientation="h", y=names, x=[r["value"] for _, r in mine],
            marker={"color": PALETTE[i % 6], "pattern": hatch_pattern(("", "/", "x", "-", "|", "+")[i % 6], 0.25)},
            text=[v.metric.show(r["value"]) for _, r in mine], textposition="none" if v.draws else "auto", cliponaxis=False,
            customdata=[_interval(v, v.metric, r.get("low"), r.get("high"), r.get("completed", 0.0)) for _, r in mine], showlegend=False,
            hovertemplate="%{y}: %{text}%{customdata}<extra></extra>",
        ))
        known = [(name, (r["low"], r["high"])) for name, (_, r) in zip(names, mine, strict=True) if r.get("low") is not None]
        if v.draws and known:
            figure.add_trace(whiskers([name for name, _ in known], [ends for _, ends in known], across=True))
    layout(figure, "")
    _key(figure, v, [r["completed"] for r in rows if v.draws])
    spread = metric_axis(v.metric, v.metric.label, _values(v))
    if spread.get("type") != "log":
        spread["tickvals"], spread["ticktext"] = spread.get("tickvals", [])[::2] or None, spread.get("ticktext", [])[::2] or None
    figure.update_layout(margin={"l": 10}, bargap=0.25, height=max(300, 34 * len(order) + 130) if len(order) > 14 else None)
    figure.update_xaxes(**spread)
    figure.update_yaxes(autorange="reversed", automargin=True, zeroline=False)
    return figure


def _values(v: View) -> list[float]:
    """Every number that an axis of the metric must have space for."""
    return [r[k] for r in v.rows for k in ("value", "low", "high") if r.get(k) is not None]


def _scatter_figure(v: View, plan: FigurePlan, rows: Sequence[Row]) -> go.Figure:
    axis = v.axis(plan.x)
    names = [k for k in plan.by if not v.axis(k).numeric]
    figure = go.Figure()
    shown = _looks(v, FigurePlan("scatter", plan.x, tuple(names)))
    for line in lines(v, plan.x, names, rows):
        look = shown[line.label]
        figure.add_trace(go.Scatter(
            x=list(line.x), y=list(line.y), name=label_of(names, line.label), mode="markers", showlegend=bool(names),
            marker={"symbol": look.symbol.removesuffix("-open"), "size": 7, "color": look.colour, "opacity": 0.75},
            customdata=[[_position_text(axis, x), v.metric.show(y), p] for x, y, p in zip(line.x, line.y, line.positions, strict=True)],
            hovertemplate="point %{customdata[2]}, %{customdata[0]}: %{customdata[1]}<extra></extra>",
        ))
        ends = [(x, (a, b)) for x, a, b in zip(line.x, line.low, line.high, strict=True) if isfinite(a)] if v.draws else []
        if ends:
            figure.add_trace(whiskers([x for x, _ in ends], [both for _, both in ends], opacity=0.6))
    layout(figure, "")
    _key(figure, v, [r["completed"] for r in rows if v.draws])
    figure.update_xaxes(**_number_axis(axis))
    figure.update_yaxes(**metric_axis(v.metric, v.metric.label, _values(v)))
    return figure


def _parallel_figure(v: View, plan: FigurePlan, rows: Sequence[Row]) -> go.Figure:
    """Parallel coordinates: a line for each point through its values on every axis, coloured by the metric."""
    done = [r for r in rows if r["value"] is not None]
    dimensions: list[dict[str, Any]] = []
    for axis in v.axes:
        if axis.numeric:
            values = [axis.numbers.get(r["values"][axis.key], float("nan")) for r in done]
            scaled = [log10(x) if axis.log and x > 0 else x for x in values]
            ends = sorted(axis.numbers, key=axis.numbers.__getitem__)
            ticks = [ends[i * (len(ends) - 1) // 3] for i in range(4)] if len(ends) > 4 else ends
            at = [log10(axis.numbers[t]) if axis.log else axis.numbers[t] for t in ticks]
            texts = [_tick(axis, t) for t in ticks]
            dimensions.append({"label": _short_key(axis.key), "values": scaled, "tickvals": at, "ticktext": texts})
        else:
            names = values_in_order(axis)
            dimensions.append({"label": _short_key(axis.key), "values": [names.index(r["values"][axis.key]) for r in done],
                               "tickvals": list(range(len(names))), "ticktext": names})
    found = [float(r["value"]) for r in done]
    log = bool(found) and min(found) > 0 and max(found) / min(found) >= 10
    scaled = [log10(x) if log else x for x in found]
    axis_ticks = _ticks(found, lambda t: _short(v.metric.unit, t)) if log else metric_axis(v.metric, "", found)
    last: dict[str, Any] = {"label": v.metric.name, "values": scaled}
    if "tickvals" in axis_ticks:
        last |= {"tickvals": [log10(t) if log else t for t in axis_ticks["tickvals"]], "ticktext": axis_ticks["ticktext"]}
    figure = go.Figure(go.Parcoords(
        dimensions=[*dimensions, last], line={"color": scaled, "colorscale": "Cividis", "showscale": False}, labelangle=-20,
        labelfont={"size": 12}, tickfont={"size": 11},
    ))
    layout(figure, "")
    figure.update_layout(margin={"l": 80, "r": 60, "t": 90, "b": 30})
    return figure


def _short_key(key: str) -> str:
    return key.rpartition(".")[2] if len(key) > 18 else key


_WHAT = {
    "lines": "{y} along {x}", "speedup": "Speed-up along {x}", "efficiency": "Efficiency along {x}", "heat": "{y} over {x} and {by}",
    "bars": "{y}", "scatter": "{y} against {x}", "parallel": "All axes together: one line per point, coloured by {y}",
}


def _heading(v: View, plan: FigurePlan, label: Sequence[str]) -> str:
    if plan.kind == "curves":
        text = f"{_y_title(v, plan)[0].upper()}{_y_title(v, plan)[1:]} against message size"
    else:
        x = _title(v.axis(plan.x)) if plan.x else ""
        text = _WHAT[plan.kind].format(y=v.metric.label, x=x, by=_title(v.axis(plan.by[0])) if plan.by else "")
        text = text[0].upper() + text[1:]
    return f"{text}: {label_of(plan.panel, label)}" if plan.panel else text


def draw(v: View, plan: FigurePlan) -> dict[str, go.Figure]:
    """Name -> figure: one for each panel of the plan, with the same looks and the same value range in all of them."""
    out = {}
    several = by_panel(v, plan.panel)
    name = plan.kind if plan.kind != "scatter" else f"scatter-{plan.x.replace('.', '-').replace('+', '-')}"
    lined = plan.kind in ("curves", "lines", "speedup", "efficiency")
    shown = _looks(v, plan) if lined else {}
    every = [one for _, rows in several for one in lines(v, plan.x, plan.by, rows)] if lined else []
    for i, (label, rows) in enumerate(several, 1):
        if plan.kind in ("curves", "lines"):
            figure = _line_figure(v, plan, rows, shown, every)
        elif lined:
            figure = _speedup_figure(v, plan, rows, shown, every)
        else:
            kinds = {"heat": _heat_figure, "bars": _bar_figure, "scatter": _scatter_figure, "parallel": _parallel_figure}
            figure = kinds[plan.kind](v, plan, rows)
        figure.layout.title.text = _heading(v, plan, label)
        out[name if len(several) == 1 else f"{name}-{i}"] = figure
    if lined and len(several) > 1 and plan.kind in ("curves", "lines"):
        _one_range(out.values(), every)
    return out


def _one_range(figures: Iterable[go.Figure], every: Sequence[SeriesLine]) -> None:
    values = [y for one in every for y in (*one.y, *one.low, *one.high) if isfinite(y) and y > 0]
    for figure in figures:
        if figure.layout.yaxis.type == "log" and values:
            figure.update_yaxes(range=[log10(min(values)) - 0.1, log10(max(values)) + 0.1])
