"""Figures of single numbers: published against simulated, and facts against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from math import log10

import plotly.graph_objects as go

from retrompi.papers.statements.exhibits import FactFigure, ScatterFigure
from retrompi.papers.statements.metrics import PREDICTED, SAME
from retrompi.render.figures.exhibits import FigureCurve, NumberPair
from retrompi.render.figures.figures import AXIS, PALETTE, SYMBOLS, decades, layout, line_trace, looks

__all__ = ["fact_figure", "scatter_figure"]

_SAME: Mapping[str, tuple[str, float]] = {
    "GByte/s": ("MByte/s", 1e3),
    "KByte/s": ("MByte/s", 1e-3),
    "MB/s": ("MByte/s", 1.0),
    "ms": ("s", 1e-3),
    "microseconds": ("s", 1e-6),
    "ns": ("s", 1e-9),
    "minutes": ("s", 60.0),
}
"""Units that share an axis: the common unit, and the conversion factor."""


def one_unit(found: Sequence[NumberPair]) -> list[NumberPair]:
    """The pairs in one unit per kind of quantity if there are several units, else unchanged."""
    if len({p.unit for p in found}) < 2:
        return list(found)
    out = []
    for p in found:
        unit, factor = _SAME.get(p.unit, (p.unit, 1.0))
        numbers = {k: getattr(p, k) * factor for k in ("published", "simulated", "low", "high")}
        out.append(replace(p, unit=unit, **numbers))
    return out


def _ends(values: Sequence[float], log: bool) -> tuple[float, float]:
    """The ends of an axis: all numbers with a margin."""
    low, high = min(values, default=1.0), max(values, default=10.0)
    if log:
        margin = max((high / low) ** 0.06, 1.15)
        return low / margin, high * margin
    margin = 0.06 * (high - low) or 1.0
    return low - margin, high + margin


def _group_of(claim: str, groups: Mapping[str, str]) -> str:
    return next((name for name, pattern in groups.items() if fnmatchcase(claim, pattern)), "" if not groups else "other")


def _middle(value: float, low: float, high: float, log: bool) -> float:
    """The relative position of a value between the ends of its axis, 0 to 1."""
    return log10(value / low) / log10(high / low) if log else (value - low) / (high - low)


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


_LABELS = 5
"""The most labels of failing claims; more would overlap."""


def _tolerance(shown: Sequence[NumberPair], low: float, high: float, off: bool) -> list[go.Scatter]:
    """The stripe within which a prediction is right, and the line of equality."""
    # The ends of a stated range have a wider reading tolerance than a single number.
    ends = bool(shown) and all(p.part for p in shown)
    slack = (1 / SAME, SAME) if ends else (1 - PREDICTED, 1 + PREDICTED)
    edge = [low * slack[0], high * slack[0], high * slack[1], low * slack[1]]
    if off:
        edge = [100 * (s - 1) for s in (slack[0], slack[0], slack[1], slack[1])]
    within = go.Scatter(
        x=[low, high, high, low], y=edge, fill="toself", mode="lines", line={"width": 0}, fillcolor="rgba(120,120,120,0.15)",
        hoverinfo="skip", name=f"within a factor {SAME}" if ends else f"within {PREDICTED:.0%}",
    )
    equal = [0, 0] if off else [low, high]
    return [within, go.Scatter(x=[low, high], y=equal, mode="lines", line={"color": "#444", "width": 1.5}, hoverinfo="skip", name="equal")]


def scatter_figure(found: Sequence[NumberPair], plan: ScatterFigure) -> go.Figure:
    """Simulated numbers, or their deviation, against the published ones; the stripe is the tolerance for predictions.

    Filled: held out; open: seen by a fit; grey: excluded; a red ring: the claim fails.
    """
    log = plan.scale == "log"
    off = plan.show == "deviation"
    shown = [p for p in one_unit(found) if not log or (p.published > 0 and p.simulated > 0)]
    shown = [p for p in shown if not off or p.deviation is not None]

    def height(p: NumberPair) -> float:
        return 100 * (p.deviation or 0.0) if off else p.simulated

    low, high = _ends([v for p in shown for v in (p.published, *(() if off else (p.simulated,)))], log)
    figure = go.Figure(_tolerance(shown, low, high, off))
    names = [n for n in (*plan.groups, "other", "") if any(_group_of(p.claim, plan.groups) == n for p in shown)]
    for i, name in enumerate(names):
        for use, meaning in (("validate", "held out"), ("calibrate", "fitted"), ("exclude", "excluded")):
            mine = [p for p in shown if p.use == use and _group_of(p.claim, plan.groups) == name]
            if not mine:
                continue
            colour = PALETTE[i % len(PALETTE)] if use != "exclude" else "#777777"
            symbol = SYMBOLS[i % len(SYMBOLS)]
            figure.add_trace(go.Scatter(
                x=[p.published for p in mine], y=[height(p) for p in mine], name=", ".join(t for t in (name, meaning) if t), mode="markers",
                marker={"symbol": symbol if use == "validate" else f"{symbol}-open", "size": 10, "color": colour,
                        "line": {"color": colour, "width": 2}},
                hovertext=[_pair_text(p) for p in mine], hoverinfo="text",
            ))
    bad = [p for p in shown if p.verdict == "fail"]
    if bad:
        # Labels are placed towards the middle, where there is space.
        where = ["middle right" if _middle(p.published, low, high, log) < 0.5 else "middle left" for p in bad]
        figure.add_trace(go.Scatter(
            x=[p.published for p in bad], y=[height(p) for p in bad], name="claim fails",
            mode="markers+text" if len(bad) <= _LABELS else "markers", text=[f"{p.claim} {p.part}".strip() for p in bad],
            textposition=where, textfont={"size": 11, "color": "#b03a00"}, hoverinfo="skip",
            marker={"symbol": "circle-open", "size": 20, "color": "#b03a00", "line": {"width": 2}},
        ))
    layout(figure, plan.title)
    units = "; ".join(dict.fromkeys(p.unit for p in shown))
    span = [log10(low), log10(high)] if log else [low, high]
    ticks = decades(low, high, _plain) if log else {}
    figure.update_xaxes(**AXIS, **ticks, type=plan.scale, title={"text": f"published, {units}"}, range=span)
    if off:
        figure.update_yaxes(**AXIS, title={"text": "simulated against published, %"})
    else:
        # The same span on both axes, so that the line of equality is a diagonal.
        figure.update_yaxes(**AXIS, **ticks, type=plan.scale, title={"text": f"simulated, {units}"}, range=span)
    return figure


def _pair_text(p: NumberPair) -> str:
    off = "" if p.deviation is None else f" ({p.deviation:+.1%})"
    return f"{p.claim} {p.part}".strip() + f": published {p.published:.4g}, simulated {p.simulated:.4g} {p.unit}{off}, {p.verdict}"


def fact_figure(found: Sequence[FigureCurve], plan: FactFigure) -> go.Figure:
    """Lines with markers for each series of a figure of facts."""
    shown = looks([("", c.legend) for c in found])
    figure = go.Figure()
    for c in found:
        hover = f"{c.legend} %{{x:.6g}}: %{{y:.4g}}<extra></extra>"
        figure.add_trace(line_trace(shown["", c.legend], c.legend, c.x, c.y, hovertemplate=hover, showlegend=True))
    layout(figure, plan.title)
    for update, scale, title, values in (
        (figure.update_xaxes, plan.x_scale, plan.x_title, [v for c in found for v in c.x]),
        (figure.update_yaxes, plan.y_scale, plan.y_title, [v for c in found for v in c.y]),
    ):
        ends = _ends(values, log=True) if scale == "log" and min(values, default=0) > 0 else None
        update(**AXIS, **(decades(*ends, _plain) if ends else {}), type=scale, title={"text": title})
    return figure
