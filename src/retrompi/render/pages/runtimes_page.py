"""A program on many runtimes and platforms as a page: the grid of times, the order, why the first is first, and what cannot run it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log10
from typing import Any

import plotly.graph_objects as go

from retrompi.base.units import format_time
from retrompi.render.atlas.matrix import SORT, sortable
from retrompi.render.document.html import Content, boxes, document, row, scroller, table
from retrompi.render.document.plotted import drawing, figure_html
from retrompi.render.figures.figures import layout, name_of
from retrompi.studies.compare.compare_runtimes import RuntimeRow

__all__ = ["figures", "grid", "page"]

_MOST_TICKS = 6
_ROWS_OF_A_SCREEN = 8
_NAMES_PX, _CELL_PX = 180, 70
"""Width of the platforms' names, and of a time that can be read; a narrower screen scrolls."""


def grid(found: Sequence[RuntimeRow]) -> tuple[list[str], list[str], list[list[float | None]]]:
    """Runtimes, platforms (each the fastest first) and seconds by platform and runtime; None where a pair has no time."""
    by_time = [r for r in found if r.time_s is not None]
    order = [*by_time, *(r for r in found if r.time_s is None)]
    models, platforms = list(dict.fromkeys(r.model for r in order)), list(dict.fromkeys(r.platform for r in order))
    times = {(r.model, r.platform): r.time_s for r in found}
    return models, platforms, [[times.get((m, p)) for m in models] for p in platforms]


def figures(found: Sequence[RuntimeRow], title: str) -> dict[str, go.Figure]:
    """``matrix``: the times as colours, on a logarithmic scale; a pair without a time is blank."""
    models, platforms, times = grid(found)
    known = sorted(t for line in times for t in line if t)
    figure = go.Figure()
    if known:
        low, high = log10(known[0]), log10(known[-1])
        steps = [*(low + (high - low) * i / (_MOST_TICKS - 1) for i in range(_MOST_TICKS - 1)), high] if high > low else [low]
        figure.add_heatmap(
            x=[name_of(m) for m in models], y=platforms, z=[[log10(t) if t else None for t in line] for line in times],
            text=[[format_time(t) if t else "" for t in line] for line in times], texttemplate="%{text}",
            hovertemplate="%{y}<br>%{x}<br>%{text}<extra></extra>",
            colorscale="Cividis_r", xgap=2, ygap=2, hoverongaps=False,
            colorbar={"tickvals": steps, "ticktext": [format_time(10**s) for s in steps], "orientation": "h", "y": 1.0, "yanchor": "bottom",
                      "thickness": 12, "len": 1.0},
        )
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_xaxes(automargin=True, tickangle=-40)
    layout(figure, title)
    figure.update_layout(height=max(420, 130 + 34 * len(platforms)))
    return {"matrix": figure}


def page(found: Sequence[RuntimeRow], title: str, causes: Sequence[str], warnings: Sequence[Any], made_by: str) -> str:
    """The page: ready HTML that loads nothing."""
    done, not_done = [r for r in found if r.time_s is not None], [r for r in found if r.time_s is None]
    drawn = figures(found, "")
    models, platforms, _ = grid(found)
    counts = boxes([
        ("pairs that completed", str(len(done)), f"of {len(found)}"), ("runtimes", str(len(models)), ""),
        ("platforms", str(len(platforms)), ""),
        ("fastest", escape(format_time(done[0].time_s)) if done and done[0].time_s else "none",
         escape(f"{name_of(done[0].model)} on {done[0].platform}") if done else ""),
    ])
    parts = [f"<h1>{escape(title)}</h1>", counts]
    if done:
        matrix = figure_html(drawn["matrix"], "matrix", tall=len(platforms) > _ROWS_OF_A_SCREEN)
        wide = f'<div style="min-width: {_NAMES_PX + _CELL_PX * len(models)}px">{matrix}</div>'
        parts += ["<h2>Times</h2>", f"{scroller('times')}{wide}</div>"]
    if causes:
        parts += [f"<h2>Why the first is first</h2><p>{escape(causes[0])}</p><ul>", *(f"<li>{escape(c)}</li>" for c in causes[1:]), "</ul>"]
    head = ("runtime", "platform", "time", "interval", "ratio", "in MPI", "computing")
    lines = [row(head, _line(r)) for r in done]
    parts += ["<h2>In order</h2>", sortable(head, lines) if lines else "<p>No pair completed.</p>"]
    if not_done:
        why = [(escape(name_of(r.model)), escape(r.platform), escape(r.outcome), escape(r.reason)) for r in not_done]
        parts += ["<h2>What has no time, and why</h2>", table(("runtime", "platform", "outcome", "why"), why)]
    if warnings:
        parts += ["<h2>What to know of these runs</h2><ul>", *(f"<li>{escape(str(w))}</li>" for w in warnings), "</ul>"]
    parts.append(f'<p class="soft">{escape(made_by)}</p>')
    return document(title, f"<main>{''.join(parts)}</main>{drawing(drawn) if done else ''}<script>{SORT}</script>")


def _line(r: RuntimeRow) -> list[Content]:
    ends = r.intervals.get("time_s")
    interval = f"{format_time(ends.low)} … {format_time(ends.high)}" if ends is not None and ends.completed else ""
    shares = ["" if v is None else f"{100 * v:.3g} %" for v in (r.in_mpi, r.computing)]
    numbers = [format_time(r.time_s or 0.0), interval, "" if r.relative is None else f"{r.relative:.3g}", *shares]
    return [escape(name_of(r.model)), escape(r.platform), *((escape(n), "n") for n in numbers)]
