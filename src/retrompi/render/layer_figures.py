"""The layers below MPI as a figure: simulated bandwidth as lines, published points in the same colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from retrompi.render.figures import layout, size_axis, value_axis

__all__ = ["bandwidth"]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
COARSEST = 0.25
"""Points are drawn whose published drawing resolves at least this share of their value."""


def bandwidth(points: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> go.Figure:
    """The figure of rows as of `retrompi.papers.layers.curve_rows`; ``titles``: curve -> its name in the legend."""
    figure = go.Figure()
    drawn: list[float] = []
    for i, curve in enumerate(dict.fromkeys(str(p["curve"]) for p in points)):
        mine = [p for p in points if p["curve"] == curve and p["size_B"] > 0 and p["grid"] <= COARSEST]
        sizes, colour = [p["size_B"] for p in mine], COLOURS[i % len(COLOURS)]
        simulated, published = ([p["size_B"] / p[k] for p in mine] for k in ("simulated_us", "published_us"))
        drawn += simulated
        figure.add_scatter(x=sizes, y=simulated, mode="lines", name=titles.get(curve, curve), line={"color": colour, "width": 2})
        marker = {"color": colour, "size": 5, "symbol": "circle-open"}
        figure.add_scatter(x=sizes, y=published, mode="markers", showlegend=False, marker=marker)
    layout(figure, "Below MPI: simulated (lines) and published (points)")
    sizes = [p["size_B"] for p in points]
    figure.update_layout(xaxis=size_axis(sizes), yaxis=value_axis("bandwidth", "log", drawn))
    return figure
