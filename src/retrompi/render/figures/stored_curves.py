"""Stored curves drawn over a figure of published and simulated ones.

They are black and grey with separate symbols, so that they are not mistaken for simulations of the study or for numbers of its paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from retrompi.base.units import format_bytes
from retrompi.measure.stored_curves import StoredCurve
from retrompi.render.figures.figures import AXES, place

__all__ = ["add"]

_SIGNS = (("circle-open", "solid"), ("x-thin-open", "dash"), ("diamond-open", "dot"), ("triangle-down-open", "dashdot"))
_COLOURS = ("#000000", "#5a5a5a", "#8a8a8a")


def add(figure: go.Figure, found: Sequence[StoredCurve], what: str) -> None:
    """Draw the curves into a figure of the series ``what`` ("time", "bandwidth"); a bandwidth needs sizes above 0."""
    column, _, unit = AXES[what]
    for i, m in enumerate(found):
        colour, (symbol, dash) = _COLOURS[i % len(_COLOURS)], _SIGNS[i % len(_SIGNS)]
        points = sorted((p for p in m.points if p[column] > 0), key=lambda p: p["size_B"])
        noise: dict[str, Any] = {}
        if what == "time" and all(p["size_B"] in m.bands for p in points):
            ends = [(p[column], *m.bands[p["size_B"]]) for p in points]
            noise = {"error_y": {"type": "data", "symmetric": False, "color": colour, "thickness": 1, "width": 3,
                                 "array": [max(high - y, 0.0) for y, _, high in ends],
                                 "arrayminus": [max(y - low, 0.0) for y, low, _ in ends]}}
        figure.add_trace(go.Scatter(
            x=[place(p["size_B"]) for p in points], y=[p[column] for p in points], name=m.legend, mode="lines+markers",
            line={"color": colour, "width": 1.5, "dash": dash},
            marker={"symbol": symbol, "size": 8, "color": colour, "line": {"width": 1.5}},
            customdata=[format_bytes(p["size_B"]) for p in points],
            hovertemplate=f"{m.legend} %{{customdata}}: %{{y:.4g}} {unit}<extra>{f'run {m.run_id}' if m.run_id else ''}</extra>", **noise,
        ))
