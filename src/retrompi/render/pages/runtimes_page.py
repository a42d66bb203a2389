"""A program on many runtimes and platforms as a page: the grid of times, the order, why the first is first, and what cannot run it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import log10
from typing import Literal

import plotly.graph_objects as go

from retrompi.base.units import format_time
from retrompi.render.atlas.matrix import SORT, sortable
from retrompi.render.document.html import Content, boxes, document, row, scroller, table
from retrompi.render.document.plotted import drawing, figure_html
from retrompi.render.figures.figures import layout, name_of
from retrompi.sim.cautions import Caution
from retrompi.studies.compare.compare_runtimes import RuntimeRow
from retrompi.studies.compare.matrix_summary import (
    SCREEN,
    Without,
    caution_lines,
    first_beyond_range,
    first_clause,
    outcome_word,
    ratio_text,
    sides,
    without_time,
)

__all__ = ["figures", "grid", "page"]

_MOST_TICKS = 6
_LETTER_PX, _CELL_PX, _ROW_PX = 8, 70, 34
"""Size of a letter of the platforms' names, and of a time that can be read; a narrower screen scrolls."""
_HEADS_PX = 190
"""Height of the colours and of the runtimes' names."""


def grid(found: Sequence[RuntimeRow]) -> tuple[list[str], list[str], list[list[float | None]]]:
    """Runtimes, platforms (each the fastest first) and seconds by platform and runtime; None where a pair has no time."""
    by_time = [r for r in found if r.time_s is not None]
    order = [*by_time, *(r for r in found if r.time_s is None)]
    models, platforms = list(dict.fromkeys(r.model for r in order)), list(dict.fromkeys(r.platform for r in order))
    times = {(r.model, r.platform): r.time_s for r in found}
    return models, platforms, [[times.get((m, p)) for m in models] for p in platforms]


def figures(found: Sequence[RuntimeRow], title: str) -> dict[str, go.Figure]:
    """``matrix``: the times as colours, on a logarithmic scale. A pair without a time is blank and says why when it is pointed at; runtimes
    and platforms without any are left out."""
    timed = [{getattr(r, key) for r in found if r.time_s is not None} for key in ("model", "platform")]
    models, platforms, times = grid([r for r in found if r.model in timed[0] and r.platform in timed[1]])
    why = {(r.model, r.platform): f"{outcome_word(r.outcome)}: {first_clause(r)}" for r in found if r.time_s is None}
    star = {(r.model, r.platform): " *" for r in found if r.fiction}
    told = [[(format_time(t) if t else "") + star.get((m, p), "") for m, t in zip(models, line, strict=True)]
            for p, line in zip(platforms, times, strict=True)]
    known = sorted(t for line in times for t in line if t)
    figure = go.Figure()
    if known:
        low, high = log10(known[0]), log10(known[-1])
        steps = [*(low + (high - low) * i / (_MOST_TICKS - 1) for i in range(_MOST_TICKS - 1)), high] if high > low else [low]
        figure.add_heatmap(
            x=[name_of(m) for m in models], y=platforms, z=[[log10(t) if t else None for t in line] for line in times],
            text=told, texttemplate="%{text}",
            customdata=[[why.get((m, p), text.replace("*", "(a fiction)")) for m, text in zip(models, line, strict=True)]
                        for p, line in zip(platforms, told, strict=True)],
            hovertemplate="%{y}<br>%{x}<br>%{customdata}<extra></extra>",
            colorscale="Cividis_r", xgap=2, ygap=2,
            colorbar={"tickvals": steps, "ticktext": [format_time(10**s) for s in steps], "orientation": "h", "y": 1.0, "yanchor": "bottom",
                      "thickness": 12, "len": 0.97},
        )
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_xaxes(automargin=True, tickangle=-40)
    layout(figure, title)
    height = max(420, _HEADS_PX + _ROW_PX * len(platforms))
    least = [_LETTER_PX * max(map(len, platforms), default=0) + _CELL_PX * len(models), height]
    # The colours above the rows move the title up, out of the picture.
    figure.update_layout(height=height, meta={"least": least}, title_pad={"l": 8, "t": 36})
    return {"matrix": figure}


def page(
    found: Sequence[RuntimeRow], title: str, causes: Sequence[str], warnings: Sequence[Caution], made_by: str, ahead: Sequence[str] = (),
) -> str:
    """The page: ready HTML that loads nothing. Of many pairs it has what the screen has, and each pair where it is asked for. ``ahead``:
    which of two pairs is faster in how many draws."""
    done, not_done = [r for r in found if r.time_s is not None], [r for r in found if r.time_s is None]
    drawn = figures(found, "")
    models, platforms, _ = grid(found)
    counts = boxes([
        ("pairs that completed", str(len(done)), f"of {len(found)}"), ("runtimes", str(len(models)), ""),
        ("platforms", str(len(platforms)), ""),
        ("fastest", escape(format_time(done[0].time_s)) if done and done[0].time_s else "none",
         escape(f"{name_of(done[0].model)} on {done[0].platform}{_fiction(done[0])}") if done else ""),
    ])
    parts = [f"<h1>{escape(title)}</h1>", counts]
    if done:
        matrix = drawn["matrix"]
        # As high as its rows need: the page's other figures have the height of a screen, and what is beyond it is hidden.
        parts += ["<h2>Times</h2>", f"<style>#figure-matrix {{ height: {matrix.layout.height}px }}</style>{scroller('times')}"
                  f'<div style="min-width: {matrix.layout.meta["least"][0]}px">{figure_html(matrix, "matrix")}</div></div>']
        if any(r.fiction for r in done):
            parts.append('<p class="soft">* a fiction: the runtime never ran on such a network, or under such a system</p>')
    if causes:
        parts += [f"<h2>Why the first is first</h2><p>{escape(causes[0])}</p>", _items(causes[1:]),
                  '<p class="soft">Of the critical paths of both runs: the delays one after another that led to the end.</p>']
        if beyond := first_beyond_range(found, warnings):
            parts.append(f'<p class="soft">{escape(beyond[0].upper() + beyond[1:])}.</p>')
    many = len(found) > SCREEN
    if ahead:
        every = _items(ahead)
        parts += ["<h2>Which is ahead, draw by draw</h2>", _details(f"All {len(ahead)} lines", every) if many else every]
    parts += _in_order(found, done, many)
    parts += _without(not_done, many)
    if warnings:
        every = _items(map(_caution_text, warnings))
        short = caution_lines(warnings, len(found))
        parts += ["<h2>What to know of these runs</h2>",
                  f"{_items(short)}{_details(f'All {len(warnings)}, with the pairs that they concern', every)}" if many else every]
    parts.append(f'<p class="soft">{escape(made_by)}</p>')
    return document(title, f"<main>{''.join(parts)}</main>{drawing(drawn) if done else ''}<script>{SORT}</script>")


def _caution_text(one: Caution) -> str:
    beyond = "outside the calibrated range: " if one.code == "outside-calibration" and one.minor else ""
    return f"{f'{one.about}: ' if one.about else ''}{beyond}{one.text}"


def _items(texts: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(t)}</li>' for t in texts)}</ul>"


def _details(summary: str, inside: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{inside}</details>"


def _in_order(found: Sequence[RuntimeRow], done: Sequence[RuntimeRow], many: bool) -> list[str]:
    """The pairs in their order; of many the best of each platform and of each runtime first."""
    drawn = any("time_s" in r.intervals for r in done)
    head = tuple(h for h in ("runtime", "platform", "time", "interval", "ratio", "in MPI", "computing") if drawn or h != "interval")
    lines = [row(head, _line(r, drawn)) for r in done]
    every = sortable(head, lines) if lines else "<p>No pair completed.</p>"
    if not many or not done:
        return ["<h2>In order</h2>", every]
    return ["<h2>The best of each platform</h2>", _best(found, "platform"), "<h2>The best of each runtime</h2>", _best(found, "model"),
            _details(f"All {len(done)} pairs with a time, in order", every)]


def _best(found: Sequence[RuntimeRow], what: Literal["model", "platform"]) -> str:
    """Of each platform, or of each runtime: how many of its pairs have a time, and the fastest and the slowest of them."""
    this, other = ("runtime", "platform") if what == "model" else ("platform", "runtime")
    head = (this, "pairs", f"fastest {other}", "time", "ratio", "slowest")
    lines = []
    for side in sides(found, what):
        name = escape(name_of(side.name) if what == "model" else side.name)
        count = (f"{side.timed} of {side.pairs}", "n")
        if side.fastest is None or side.slowest is None:
            lines.append(row(head, [name, count, "", "", "", ""]))
            continue
        best = side.fastest.platform if what == "model" else name_of(side.fastest.model)
        best += _fiction(side.fastest)
        times = [format_time(r.time_s or 0.0) for r in (side.fastest, side.slowest)]
        lines.append(row(head, [name, count, escape(best), (times[0], "n"), (ratio_text(side.fastest.relative), "n"), (times[1], "n")]))
    return sortable(head, lines)


def _without(not_done: Sequence[RuntimeRow], many: bool) -> list[str]:
    """What has no time, by its reason; of many pairs each one only where it is asked for."""
    if not not_done:
        return []
    why = [(escape(name_of(r.model)), escape(r.platform), escape(outcome_word(r.outcome)), escape(r.reason)) for r in not_done]
    every = table(("runtime", "platform", "outcome", "why"), why)
    if not many:
        return ["<h2>What has no time, and why</h2>", every]
    head = ("pairs", "outcome", "why", "runtimes", "platforms")
    groups = [_group(g) for g in without_time(not_done)]
    return ["<h2>What has no time, and why</h2>", table(head, groups),
            _details(f"Each of the {len(not_done)} pairs, and where else it can run", every)]


def _group(g: Without) -> list[Content]:
    models, platforms = dict.fromkeys(name_of(r.model) for r in g.rows), dict.fromkeys(r.platform for r in g.rows)
    return [(str(len(g.rows)), "n"), *map(escape, (outcome_word(g.outcome), g.reason, ", ".join(models), ", ".join(platforms)))]


def _line(r: RuntimeRow, drawn: bool) -> list[Content]:
    ends = r.intervals.get("time_s")
    interval = f"{format_time(ends.low)} … {format_time(ends.high)}" if ends is not None and ends.completed else ""
    shares = ["" if v is None else f"{100 * v:.3g} %" for v in (r.in_mpi, r.computing)]
    numbers = [format_time(r.time_s or 0.0), *([interval] if drawn else []), ratio_text(r.relative), *shares]
    return [escape(name_of(r.model) + _fiction(r)), escape(r.platform), *((escape(n), "n") for n in numbers)]


def _fiction(r: RuntimeRow) -> str:
    return " (a fiction)" if r.fiction else ""
