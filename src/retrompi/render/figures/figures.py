"""Points to figures. The content of every figure is computed by a pure function first, so that tests can check the points.

Colours are Okabe and Ito's palette, which is distinguishable with any colour vision; symbols and dashes encode the same information
for print. Sizes are on a logarithmic axis on which 0 B has its own place left of 1 B.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite, log10
from typing import Any

import plotly.graph_objects as go

from retrompi.base import units
from retrompi.base.translate import _, lazy
from retrompi.base.units import format_bytes, format_rate, format_span, format_time
from retrompi.papers.statements.exhibits import CurveFigure
from retrompi.render.document.html import brief
from retrompi.render.figures import bands
from retrompi.render.figures.bands import faint
from retrompi.render.figures.exhibits import FigureCurve, curves
from retrompi.render.figures.overlay import StatementMark
from retrompi.sim.stages import place_of
from retrompi.spec.runtime.legend import COLOURS, legend

__all__ = ["AXES", "AXIS", "GREY", "PALETTE", "SYMBOLS", "anatomy_bars", "anatomy_figure", "curve_figure", "decades", "hatch_pattern",
           "interval_text", "layout", "line_trace", "looks", "name_of", "place", "setting", "size_axis", "size_label", "stage_order",
           "style", "value_axis"]

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
SYMBOLS = ("circle", "square", "diamond", "cross", "x", "triangle-up", "star", "hexagon")
_PATTERNS = ("", "/", "\\", "x", "-", "|", "+", ".")
_BOTH = "#444444"  # a statement about several runtimes together
_LINES = (0, 1, 2, 3, 6, 4, 5, 7)  # the palette, with colours that are pale on white last
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")

ZERO = 0.5
"""The position of 0 B on the logarithmic axis: one doubling left of 1 B."""

AXES = {
    "time": ("time_us", lazy("one-way time"), "µs"),
    "bandwidth": ("bandwidth_MBps", lazy("bandwidth"), "MB/s"),
}
"""Series -> (column of a point, axis title, unit)."""


def name_of(model: str) -> str:
    """A runtime's name as the field writes it."""
    base, colon, variant = model.partition(":")
    return (legend(base).short or base) + (f" ({variant})" if colon else "")


def _own_colour(model: str) -> int | None:
    """The place in the palette that a runtime, not one of its variants, has in every figure."""
    return None if ":" in model else legend(model).colour


_SPELLINGS = {spelling for known in units.UNITS.values() for spelling in known}
_QUANTITY = re.compile(r"([+-]?[\d.]+(?:e[+-]?\d+)?) ?([A-Za-z/]+)")


def setting(key: str, value: str) -> str:
    """A parameter's value as legends say it: ``wmpi.packet``, ``64KiB`` -> ``packet 64 KiB``."""
    found = _QUANTITY.fullmatch(value)
    if found and found[2] in _SPELLINGS:
        value = f"{found[1]} {'µs' if found[2] == 'us' else found[2]}"
    return f"{key.rpartition('.')[2].replace('_', ' ')} {value}"


def style(model: str, models: Sequence[str]) -> tuple[str, str]:
    """(colour, symbol) of a model among those of a figure; a runtime with a colour of its own has the same ones in every figure."""
    own = _own_colour(model)
    if own is not None:
        return PALETTE[own], SYMBOLS[own]
    others = [m for m in models if _own_colour(m) is None]
    # Beside a runtime with a colour of its own, the others take none that such a runtime may have.
    free = [i for i in _LINES if len(others) == len(models) or i >= COLOURS]
    index = free[others.index(model) % len(free)] if model in others else 6
    return PALETTE[index], SYMBOLS[index]


@dataclass(frozen=True)
class CurveStyle:
    """How a curve is drawn: three visual cues, so that no reader depends on colour alone."""

    colour: str
    symbol: str
    dash: str


_MOST_DASHES = 3
"""The most modes that dashes alone tell apart, each model in its colour."""


def looks(wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], CurveStyle]:
    """(model, mode) -> its look in a figure: colour by model and dash by mode; if there is only one of either, both by the other."""
    keys = list(dict.fromkeys(wanted))
    models, modes = (list(dict.fromkeys(k[i] for k in keys)) for i in (0, 1))
    out: dict[tuple[str, str], CurveStyle] = {}
    # Many modes of few models: each curve has a colour of its own, or nine curves would have two.
    each = len(modes) > max(_MOST_DASHES, len(models))
    for model, mode in keys:
        number = keys.index((model, mode)) if each else modes.index(mode)
        if each or (len(models) == 1 and len(modes) > 1):
            index = _LINES[number % len(_LINES)]
            # Every second symbol is open: where two curves coincide, both are visible.
            out[model, mode] = CurveStyle(PALETTE[index], SYMBOLS[index] + ("-open" if number % 2 else ""), DASHES[number % len(DASHES)])
        else:
            colour, symbol = style(model, models)
            others = [m for m in models if _own_colour(m) is None]
            if len(modes) == 1 and model in others:
                number = others.index(model)
            out[model, mode] = CurveStyle(colour, symbol + ("-open" if number % 2 else ""), DASHES[number % len(DASHES)])
    return _distinct(out)


def _distinct(given: Mapping[tuple[str, str], CurveStyle]) -> dict[tuple[str, str], CurveStyle]:
    """The looks, with another symbol for each that equals one before it: a legend tells lines apart by colour and symbol."""
    out: dict[tuple[str, str], CurveStyle] = {}
    taken: set[tuple[str, str]] = set()
    every = [*SYMBOLS, *(f"{s}-open" for s in SYMBOLS)]
    for key, look in given.items():
        first = every.index(look.symbol)
        symbol = next((s for s in (*every[first:], *every[:first]) if (look.colour, s) not in taken), look.symbol)
        taken.add((look.colour, symbol))
        out[key] = replace(look, symbol=symbol)
    return out


def size_label(size: float) -> str:
    """``65536`` -> ``64K``, ``5500`` -> ``5.37K``; K is 1024 as in the papers."""
    n = int(size)
    return next((f"{n / unit:.4g}{letter}" for unit, letter in ((1 << 20, "M"), (1 << 10, "K")) if n >= unit), f"{n}")


def place(size: float) -> float:
    """The position of a size on the axis."""
    return float(size) if size > 0 else ZERO


def layout(figure: go.Figure, title: str) -> None:
    """The layout common to all figures: type, colours, margins, a legend below the plot."""
    figure.update_layout(
        title={"text": title, "x": 0, "xref": "container", "xanchor": "left", "font": {"size": 18}, "y": 1, "yanchor": "top",
               "pad": {"l": 8, "t": 8}},
        font={"family": "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif", "size": 15, "color": "#1a1a1a"},
        template="none",
        margin={"l": 68, "r": 16, "t": 44, "b": 60},
        legend={"orientation": "h", "y": -0.16, "yanchor": "top", "x": 0, "font": {"size": 14}},
        hoverlabel={"align": "left"},
        paper_bgcolor="white",
        plot_bgcolor="white",
    )


AXIS: Mapping[str, Any] = {"gridcolor": "#e3e3e3", "linecolor": "#666", "showline": True, "ticks": "outside", "automargin": True,
                           "zeroline": False}
"""Common settings of all axes: a pale grid, a line, ticks outside, space for the labels."""


def hatch_pattern(shape: str, solidity: float, size: int = 7) -> dict[str, Any]:
    """The pattern of a bar: white lines over its colour, so that bars are distinguishable in print."""
    return {"shape": shape, "fillmode": "overlay", "fgcolor": "white", "size": size, "solidity": solidity}


def line_trace(look: CurveStyle, name: str, x: Sequence[float], y: Sequence[float], *, symbol_size: float = 7, **more: Any) -> go.Scatter:
    """A line with markers in ``look``; ``more`` goes to Plotly's Scatter."""
    return go.Scatter(
        x=list(x), y=list(y), name=name, mode="lines+markers", line={"color": look.colour, "width": 2.5, "dash": look.dash},
        marker={"symbol": look.symbol, "size": symbol_size}, **more,
    )


def decades(low: float, high: float, show: Callable[[float], str], margin: float = 1.0) -> dict[str, Any]:
    """Ticks of a logarithmic axis: the decades, with more steps in each the shorter it is, so that at least three lie between the ends.

    ``margin``: the margin factor at the ends.
    """
    shown: list[float] = []
    for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8)):
        if steps == (1,) and log10(high / low) < 2.3:
            continue
        found = [s * 10.0**k for k in range(floor(log10(low)) - 1, ceil(log10(high)) + 1) for s in steps]
        shown = [t for t in found if low / margin <= t <= high * margin]
        if sum(low <= t <= high for t in shown) >= _LEAST_TICKS:
            break
    else:  # a narrow axis: round numbers of equal distance
        spread = max(high - low, 0.02 * high)
        step = 10.0 ** floor(log10(spread))
        step = next(s * step for s in (0.2, 0.25, 0.5, 1, 2, 5) if spread / (s * step) <= 5)
        shown = [i * step for i in range(max(floor(low / step), 1), ceil(high / step) + 1)]
    return {"tickvals": shown, "ticktext": [show(t) for t in shown]}


_LEAST_TICKS = 3


def size_axis(sizes: Iterable[float], least: int = 1 << 22) -> dict[str, Any]:
    """The axis of message sizes, from 0 B to the largest of ``sizes`` and at least to ``least``; of ``sizes`` alone if that is 0."""
    known = sorted({place(s) for s in sizes}) or [ZERO, float(1 << 22)]
    low, top = (ZERO, max(known[-1], least)) if least else (known[0], known[-1])
    shown = _size_ticks(low, top, known)
    return {
        "type": "log",
        "title": {"text": _("message size, B (K = 1024)")},
        "tickvals": shown,
        "ticktext": [size_label(s) for s in shown],
        "range": [log10(low) - 0.12, log10(top) + 0.12],
        **AXIS,
        "minor": {"ticks": "outside", "ticklen": 3, "tickvals": [2.0**k for k in range(31)]},
        "tickangle": 0,
    }


def _size_ticks(low: float, top: float, known: Sequence[float]) -> list[float]:
    """Round sizes between ``low`` and ``top``, the closer the shorter the axis is; of a very short one the sizes ``known`` themselves."""
    for step in (16, 4, 2):
        shown = [ZERO] * (low <= ZERO) + [float(step**k) for k in range(1, 31) if low <= step**k <= top]
        if len(shown) >= _LEAST_TICKS:
            return shown
    return list(known[:: ceil(len(known) / _MOST_SIZES)])


_MOST_SIZES = 5
_TICKS = {
    "time": [(10.0**k, format_time(10.0 ** (k - 6)).replace("us", "µs")) for k in range(-3, 9)],
    "bandwidth": [(10.0**k, format_rate(10.0 ** (k + 6))) for k in range(-6, 6)],
}
"""The decades of a logarithmic axis in readable units; Plotly's SI prefixes would call 1,000 µs "1k µs"."""


def value_axis(what: str, y: str = "log", drawn: Iterable[float] = ()) -> dict[str, Any]:
    """The axis of a series of `AXES`, logarithmic or linear; ``drawn`` are the values on it, for the ticks of a narrow axis."""
    _column, title, unit = AXES[what]
    if y != "log":
        return {**AXIS, "type": "linear", "title": {"text": f"{_(title)}, {unit}", "standoff": 12}, "rangemode": "tozero"}
    values, texts = zip(*_TICKS[what], strict=True)
    axis = {**AXIS, "type": "log", "title": {"text": _(title), "standoff": 12}, "tickvals": values, "ticktext": texts}
    known = [v for v in drawn if v > 0]
    if known and sum(min(known) <= v <= max(known) for v in values) < _LEAST_TICKS:
        show = _time if what == "time" else _rate
        every = sorted({*values, *decades(min(known), max(known), show)["tickvals"]})  # measured curves may be added, outside of these
        axis |= {"tickvals": every, "ticktext": [show(v) for v in every]}
    return axis


def _time(us: float) -> str:
    return format_time(us * 1e-6).replace("us", "µs")


def _rate(mbps: float) -> str:
    return format_rate(mbps * 1e6)


def _mark_traces(mark: StatementMark, colour: str) -> list[go.Scatter]:
    """The traces of a point or a band; knees are shapes, not traces."""
    excluded = mark.use == "exclude"
    colour = "#777777" if excluded else colour
    common: dict[str, Any] = {
        "showlegend": False,
        "hoverinfo": "text",
        "legendgroup": f"{mark.models[0]} {mark.mode}" if mark.models else None,
    }
    if mark.low is None or mark.high is None:
        return []
    told = f"{mark.text}<br>{_('read as')} {mark.low:.4g}..{mark.high:.4g}"
    if excluded:
        told += f"<br>{_('excluded: contradicted in the paper')}"
    if mark.shape == "point":
        y = mark.y if mark.y is not None and mark.low <= mark.y <= mark.high else (mark.low * mark.high) ** 0.5
        error = {"type": "data", "symmetric": False, "array": [mark.high - y], "arrayminus": [y - mark.low], "thickness": 3, "width": 9,
                 "color": colour}
        return [go.Scatter(
            x=[place(mark.x0)], y=[y], error_y=error, mode="markers", hovertext=[told], **common,
            marker={"symbol": "star", "size": 15, "color": "white", "line": {"color": colour, "width": 2.5}},
        )]
    x0, x1 = place(mark.x0), place(mark.x1)
    return [go.Scatter(
        x=[x0, x1, x1, x0, x0], y=[mark.low, mark.low, mark.high, mark.high, mark.low], fill="toself", mode="lines",
        line={"width": 1.5, "color": colour, "dash": "dot"}, fillcolor=faint(colour), hovertext=told, hoveron="fills+points", **common,
    )]


GREY = "#808080"
"""Of what stands for no curve: 4 to 1 on white and on the dark pages."""


def _said_of(figure: go.Figure, shapes: Collection[str]) -> None:
    """Entries of the legend for the published marks that a figure has: what they mean is said without a pointer."""
    star = {"mode": "markers", "marker": {"symbol": "star", "size": 13, "color": "white", "line": {"color": GREY, "width": 2}}}
    for shape, name, look in (
        ("point", _("published, with reading tolerance"), star),
        ("band", _("published range"), {"mode": "lines", "line": {"color": GREY, "width": 1.5, "dash": "dot"}}),
        ("knee", _("published: here the curve changes"), {"mode": "lines", "line": {"color": GREY, "width": 2, "dash": "dash"}}),
    ):
        if shape in shapes:
            figure.add_trace(go.Scatter(x=[None], y=[None], name=name, hoverinfo="skip", **look))


def _knees(figure: go.Figure, knees: Sequence[StatementMark], shown: Mapping[tuple[str, str], CurveStyle]) -> None:
    """Dashed lines (a size) and stripes (a range of sizes), labelled above the plot; nearby labels are staggered."""
    taken: list[tuple[float, int]] = []
    for mark in sorted(knees, key=lambda k: (k.x0, k.claim)):
        colour = _colour(mark, shown)
        if mark.x0 == mark.x1:
            figure.add_vline(x=mark.x0, line={"color": colour, "width": 2, "dash": "dash"}, layer="below")
        else:
            figure.add_vrect(x0=mark.x0, x1=mark.x1, fillcolor=faint(colour, 0.12), line_width=0, layer="below")
        at = (log10(mark.x0) + log10(mark.x1)) / 2
        row = 0
        while any(abs(at - other) < 3.4 and row == used for other, used in taken):
            row += 1
        taken.append((at, row))
        sizes = size_label(mark.x0) + (f"–{size_label(mark.x1)}" if mark.x1 != mark.x0 else "")
        *others, last = (name_of(m) for m in mark.models)
        whose = _("{those} and {last}").format(those=", ".join(others), last=last) if others else last
        edge = at > 5.0  # a label centred here would exceed a phone's screen: it ends at its line
        figure.add_annotation(
            x=at, xref="x", xanchor="right" if edge else "center", y=1, yref="paper", yanchor="bottom",
            yshift=2 + 17 * row, text=f"{whose}: {sizes}", hovertext=f"{mark.claim}: {mark.text}", showarrow=False,
            font={"size": 12.5, "color": colour},
        )
    figure.update_layout(margin={"t": 46 + 17 * (1 + max((row for _, row in taken), default=-1))})


def _colour(mark: StatementMark, shown: Mapping[tuple[str, str], CurveStyle]) -> str:
    look = shown.get((mark.models[0], mark.mode)) if len(mark.models) == 1 else None
    return look.colour if look is not None else _BOTH


def marks_of(plan: CurveFigure, drawn: Iterable[FigureCurve], marks: Iterable[StatementMark]) -> list[StatementMark]:
    """The published marks of a figure: of its series, and of one of its curves; none if the figure excludes them.

    A statement that several checks judge is one mark.
    """
    keys = {(c.model, c.mode) for c in drawn}
    out: dict[tuple[object, ...], StatementMark] = {}
    for m in marks:
        if plan.published and m.series == plan.what and any((model, m.mode) in keys for model in m.models):
            # Two statements with the same range share one band with the first one's text.
            key = (m.models, m.mode, m.shape, m.x0, m.x1, m.low, m.high, m.claim if m.shape == "knee" else "")
            out.setdefault(key, m)
    return list(out.values())


def interval_text(curve: FigureCurve, what: str, level: float, draws: int) -> list[str]:
    """For each point of a curve its interval as the pointer shows it, with the draws that complete; "" for a point without one."""
    scale, base = {"time": (1e-6, "s"), "bandwidth": (1e6, "B/s")}[what]
    out = []
    for low, high, completed in zip(curve.low, curve.high, curve.completed, strict=True):
        ends = f"<br>{bands.share(level)}: {format_span(low * scale, high * scale, base)}".replace(" us", " µs")
        out.append(f"{ends}, {bands.of_draws(completed, draws)}" if isfinite(low) and isfinite(high) else "")
    return out


def curve_figure(
    points: Iterable[Mapping[str, Any]], plan: CurveFigure, marks: Sequence[StatementMark] = (), level: float = 0.9, draws: int = 0
) -> go.Figure:
    """Time or bandwidth against size for the curves of ``plan``, with the published marks on it.

    Points with intervals (see `retrompi.render.figures.exhibits.curves`) have a band, the ``level`` interval of ``draws`` draws.
    """
    found = curves(points, plan)
    mine = marks_of(plan, found, marks)
    shown = looks([(c.model, c.mode) for c in found])
    several = len({c.mode for c in found}) > 1
    unit = AXES[plan.what][2]
    figure = go.Figure()
    for curve in found:
        look = shown[curve.model, curve.mode]
        name = curve.legend or (f"{name_of(curve.model)}, {curve.mode}" if several else name_of(curve.model))
        group, at = f"{curve.model} {curve.mode}", [place(s) for s in curve.x]
        told = [""] * len(at)
        if curve.low:
            figure.add_trace(bands.area(at, curve.low, curve.high, look.colour, log=plan.y == "log", legendgroup=group))
            told = interval_text(curve, plan.what, level, draws)
        simulated = _("simulated")
        figure.add_trace(line_trace(
            look, name, at, curve.y, customdata=[[format_bytes(s), more] for s, more in zip(curve.x, told, strict=True)],
            hovertemplate=f"{name} %{{customdata[0]}}: %{{y:.4g}} {unit}%{{customdata[1]}}<extra>{simulated}</extra>", legendgroup=group,
        ))
    for mark in mine:
        for trace in _mark_traces(mark, _colour(mark, shown)):
            figure.add_trace(trace)
    _said_of(figure, {m.shape for m in mine})
    layout(figure, plan.title)
    figure.update_xaxes(**size_axis([s for c in found for s in c.x]))
    if any(c.low for c in found):
        figure.add_trace(bands.key(bands.band_text(level, draws, [share for c in found for share in c.completed])))
        bands.lower_key(figure)
        bands.below(figure)
    levels = [v for m in mine if m.shape != "knee" for v in (m.low, m.high) if v is not None]
    figure.update_yaxes(**value_axis(plan.what, plan.y, [*(y for c in found for y in (*c.y, *c.low, *c.high) if isfinite(y)), *levels]))
    _knees(figure, [m for m in mine if m.shape == "knee"], shown)
    return figure


OTHER = "other stages"
_LEAST = 0.5
"""Stages below this share (percent) of every message are drawn together."""


def _by_stage(stages: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    out: dict[str, float] = {}
    for s in stages:
        out[s["stage"]] = out.get(s["stage"], 0.0) + float(s["seconds"])
    return out


def stage_order(anatomy: Iterable[Mapping[str, Any]]) -> list[str]:
    """The stages to be coloured separately, those with the largest share of any message first."""
    largest: dict[str, float] = {}
    for entry in anatomy:
        found = _by_stage(entry["stages"])
        whole = sum(found.values())
        for stage, value in found.items():
            largest[stage] = max(largest.get(stage, 0.0), 100 * value / whole if whole else 0.0)
    return sorted((s for s in largest if largest[s] >= _LEAST), key=lambda s: (-largest[s], s))


def anatomy_bars(
    anatomy: Iterable[Mapping[str, Any]], order: Sequence[str]
) -> tuple[list[str], dict[str, list[float]], dict[str, list[float]]]:
    """Bars of the anatomy chart: (labels, stage -> share of each bar in percent, stage -> seconds in each bar).

    A bar is one entry; stages of several processes are added up, those not in ``order`` together as `OTHER`. Only stages
    that occur are given, in the order of a message's path.
    """
    entries = list(anatomy)
    labels = [f"{name_of(str(e['model']))} {format_bytes(e['size_B'])}" for e in entries]
    bars = [_by_stage(e["stages"]) for e in entries]
    seconds = {s: [bar.get(s, 0.0) for bar in bars] for s in sorted(order, key=place_of)}
    seconds[OTHER] = [sum(v for s, v in bar.items() if s not in order) for bar in bars]
    sums = [sum(bar.values()) for bar in bars]
    seconds = {s: values for s, values in seconds.items() if any(values)}
    share = {s: [100 * v / whole if whole else 0.0 for v, whole in zip(values, sums, strict=True)] for s, values in seconds.items()}
    return labels, share, seconds


def anatomy_figure(anatomy: Iterable[Mapping[str, Any]], title: str = "", order: Sequence[str] | None = None) -> go.Figure:
    """Stacked horizontal bars: where the one-way time of chosen messages goes, by stage, in percent.

    ``order`` fixes the colours, so that a stage looks the same in several charts; by default that of these messages.
    """
    entries = list(anatomy)
    order = stage_order(entries) if order is None else order
    labels, shares, seconds = anatomy_bars(entries, order)
    totals = [sum(seconds[s][i] for s in seconds) for i in range(len(labels))]
    ticks = [f"{label}<br><b>{brief(t)}</b>" for label, t in zip(labels, totals, strict=True)]
    figure = go.Figure()
    for stage, values in shares.items():
        i = order.index(stage) if stage in order else -1
        # After the last colour the palette begins again, hatched.
        shape = _PATTERNS[i // len(PALETTE) % len(_PATTERNS)] if i >= 0 else ""
        figure.add_trace(go.Bar(
            y=ticks, x=values, name=stage, orientation="h", customdata=[brief(s) for s in seconds[stage]],
            marker={"color": PALETTE[i % len(PALETTE)] if i >= 0 else "#bbbbbb", "pattern": hatch_pattern(shape, 0.35),
                    "line": {"color": "white", "width": 1}},
            hovertemplate=f"{stage}: %{{customdata}} (%{{x:.1f}} %)<extra></extra>",
        ))
    layout(figure, title)
    figure.update_layout(barmode="stack", margin={"l": 10, "r": 16, "t": 44, "b": 60}, legend={"y": -0.2, "traceorder": "normal"})
    figure.update_xaxes(title={"text": "share of the one-way time, %"}, range=[0, 100], gridcolor="#e3e3e3", zeroline=False)
    figure.update_yaxes(autorange="reversed", automargin=True, zeroline=False)
    return figure
