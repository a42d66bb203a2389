"""Measured curves of a paper as a figure: what simulates them as lines, the published points in the same colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from retrompi.base.units import format_bytes
from retrompi.papers.judging import curve_verdicts
from retrompi.papers.statements import curves
from retrompi.papers.statements.exhibits import MeasuredFigure
from retrompi.render.figures import bands
from retrompi.render.figures.figures import AXES, GREY, layout, place, size_axis, value_axis

if TYPE_CHECKING:
    from retrompi.papers.reproduce.reproduction import Reproduction

__all__ = ["measured_figure", "measured_rows"]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
COARSEST = 0.25
"""Points are drawn whose error is at most this share of their value."""


def measured_rows(study: Reproduction, plan: MeasuredFigure) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Rows as of `curve_verdicts.rows` of the curves of a figure, and their titles by name."""
    wanted = [c for c in curves.of(study.paper) if any(fnmatchcase(c.name, p) for p in plan.measured)]
    return [row for c in wanted for row in curve_verdicts.rows(c, study.facts)], {c.name: c.title for c in wanted}


def measured_figure(
    plan: MeasuredFigure, points: Sequence[Mapping[str, Any]], titles: Mapping[str, str], study: Reproduction | None = None
) -> go.Figure:
    """The figure of rows as of `measured_rows`, with the bands of the ``study`` if it has any."""
    figure, unit = go.Figure(), AXES[plan.what][2]
    drawn: list[float] = []

    def value(row: Mapping[str, Any], key: str) -> float:
        return float(row[key]) if plan.what == "time" else row["size_B"] / row[key]

    for i, curve in enumerate(dict.fromkeys(str(p["curve"]) for p in points)):
        mine = [p for p in points if p["curve"] == curve and (p["size_B"] > 0 or plan.what == "time")]
        colour, name = COLOURS[i % len(COLOURS)], titles.get(curve, curve)
        ends = [b for b in (study.bands.get(("curve", curve), ()) if study is not None else ()) if b[0] > 0 or plan.what == "time"]
        if ends:
            sides = [[us if plan.what == "time" else size / us for us in both] for size, *both in ((b[0], b[1], b[3]) for b in ends)]
            low, high = [min(both) for both in sides], [max(both) for both in sides]
            figure.add_trace(bands.area([place(b[0]) for b in ends], low, high, colour, log=True, legendgroup=curve))
            drawn += [*low, *high]
        for key, kind in (("simulated_us", "simulated"), ("published_us", "published")):
            rows = [p for p in mine if p[key] is not None and (kind == "simulated" or p["error"] <= COARSEST)]
            if kind == "simulated":
                rows = list({p["size_B"]: p for p in rows}.values())
                look: dict[str, Any] = {"mode": "lines", "line": {"color": colour, "width": 2}}
            else:
                look = {"mode": "markers", "showlegend": False, "marker": {"color": colour, "size": 5, "symbol": "circle-open"}}
            values = [value(p, key) for p in rows]
            drawn += values
            figure.add_scatter(
                x=[place(p["size_B"]) for p in rows], y=values, name=name, legendgroup=curve,
                customdata=[format_bytes(p["size_B"]) for p in rows],
                hovertemplate=f"{name} %{{customdata}}: %{{y:.4g}} {unit}<extra>{kind}</extra>", **look,
            )
    if any(p["published_us"] is not None for p in points):
        figure.add_scatter(x=[None], y=[None], mode="markers", name="published", hoverinfo="skip", legendrank=1500,
                           marker={"color": GREY, "size": 5, "symbol": "circle-open"})
    layout(figure, plan.title)
    figure.update_layout(xaxis=size_axis([p["size_B"] for p in points]), yaxis=value_axis(plan.what, "log", drawn))
    if study is not None and study.spec is not None and study.bands:
        figure.add_trace(bands.key(bands.band_text(study.spec.level, study.spec.draws)))
        bands.lower_key(figure)
        bands.below(figure)
    return figure
