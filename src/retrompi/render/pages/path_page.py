"""The critical path of one run or of two, as a page: who was on it when, and the sum of each stage."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import islice
from pathlib import Path

import plotly.graph_objects as go

from retrompi.base.units import PS, format_time
from retrompi.render.document.html import Content, document, save, table
from retrompi.render.document.plotted import drawing, figure_html
from retrompi.render.figures.figures import AXIS, PALETTE, hatch_pattern, layout
from retrompi.sim.critical_path import CriticalPath, difference
from retrompi.sim.stages import place_of
from retrompi.sim.timeline.kinds import KINDS

__all__ = ["MOST_PIECES", "figures", "page", "write"]

MOST_PIECES = 4000
"""Pieces that a figure shows: of a longer path its beginning."""
Named = Sequence[tuple[str, CriticalPath]]


_NETWORK = ("wire, latency, acknowledgements", "#56B4E9", "", ("wire", "latency", "ack"))
"""On a path, a message's time on the network is an activity of its own."""
_CARD = ("card", "#56B4E9", "/", ("nic",))


def _kinds() -> list[tuple[str, str, str, tuple[str, ...]]]:
    """The kinds of the timeline, without states of waiting, which no path has, and without the network, which has its own."""
    apart = {*_NETWORK[3], *_CARD[3]}
    kept = [tuple(s for s in states if s not in apart and not s.startswith("wait:")) for *_, states in KINDS]
    of = [(name.replace(", card", ""), color, shape, stages) for (name, color, shape, _), stages in zip(KINDS, kept, strict=True)]
    return [*(kind for kind in of if kind[3]), _CARD, _NETWORK]


def _course(name: str, path: CriticalPath) -> go.Figure:
    """The process on the path over time: a bar for each piece."""
    figure = go.Figure()
    pieces = list(islice(path, MOST_PIECES))
    for kind, color, shape, stages in _kinds():
        mine = [p for p in pieces if p.stage in stages]
        if not mine:
            continue
        figure.add_trace(go.Bar(
            orientation="h", name=kind, y=[p.who for p in mine],
            base=[p.begin * PS * 1e3 for p in mine], x=[p.took * PS * 1e3 for p in mine],
            marker={"color": color, "line": {"width": 0}, "pattern": hatch_pattern(shape, 0.3)},
            customdata=[f"{p.stage} of {p.who}: {format_time(p.took * PS)}" for p in mine], hovertemplate="%{customdata}<extra></extra>",
        ))
    cut = f", its first {MOST_PIECES} of {len(path)} pieces" if len(path) > MOST_PIECES else ""
    layout(figure, f"Critical path of {name}{cut}")
    rows = len({p.who for p in pieces})
    figure.update_layout(barmode="overlay", bargap=0.3, height=34 * rows + 200, showlegend=True)
    figure.update_layout(legend={"y": -90 / (34 * rows + 40)}, margin={"b": 140})
    figure.update_xaxes(**AXIS, title={"text": "time, ms"}, rangemode="tozero")
    figure.update_yaxes(autorange="reversed", automargin=True, zeroline=False, type="category")
    return figure


def _sums(paths: Named) -> go.Figure:
    """The sum of each stage, a bar for each run."""
    figure = go.Figure()
    stages = sorted({stage for _, path in paths for stage in path.by("stage")}, key=place_of)
    for (name, path), color in zip(paths, PALETTE, strict=False):
        sums = path.by("stage")
        figure.add_trace(go.Bar(
            orientation="h", name=name, y=stages, x=[sums.get(s, 0) * PS * 1e3 for s in stages], marker={"color": color},
            customdata=[format_time(sums.get(s, 0) * PS) for s in stages], hovertemplate="%{y}: %{customdata}<extra></extra>",
        ))
    layout(figure, "Time on the critical path by stage")
    tall = 30 * len(stages) + 160
    figure.update_layout(height=tall, bargap=0.25, showlegend=len(paths) > 1, legend={"y": -60 / (tall - 120)}, margin={"b": 100})
    figure.update_xaxes(**AXIS, title={"text": "time, ms"}, rangemode="tozero")
    figure.update_yaxes(autorange="reversed", automargin=True, zeroline=False)
    return figure


def figures(paths: Named) -> dict[str, go.Figure]:
    """The sums by stage, and the course of each path."""
    courses = {f"course-{i}" if len(paths) > 1 else "course": _course(name, path) for i, (name, path) in enumerate(paths)}
    return {"stages": _sums(paths), **courses}


def page(title: str, paths: Named, footer: str = "") -> str:
    """The page as HTML text."""
    drawn = figures(paths)
    head = ["stage", *(name for name, _ in paths)]
    rows: list[list[Content]] = []
    sums = [path.by("stage") for _, path in paths]
    if len(paths) == 2:
        head.append("B - A")
        for d in difference(paths[0][1], paths[1][1]):
            change = ("-" if d.ps < 0 else "+") + format_time(abs(d.ps) * PS)
            rows.append([escape(d.stage), *((format_time(s.get(d.stage, 0) * PS), "n") for s in sums), (change, "n")])
    else:
        rows = [[escape(stage), (format_time(ps * PS), "n")] for stage, ps in sums[0].items()]
    total: list[Content] = ["total", *((format_time(path.took * PS), "n") for _, path in paths)]
    if len(paths) == 2:
        change_ps = paths[1][1].took - paths[0][1].took
        total.append((("-" if change_ps < 0 else "+") + format_time(abs(change_ps) * PS), "n"))
    rows.append(total)
    heights = "".join(f"#figure-{n}{{height:{f.layout.height}px}}" for n, f in drawn.items())
    return document(
        title,
        f"""<style>{heights}</style><header><p class="soft">retrompi why</p><h1>{escape(title)}</h1></header>
{"".join(figure_html(f, n) for n, f in drawn.items())}
<h2>Stages</h2>{table(head, rows)}
<footer class="soft"><p><small>{escape(footer)}</small></p></footer>
{drawing(drawn)}""",
    )


def write(path: Path, title: str, paths: Named) -> None:
    """Write the page. Raises InputError when it cannot be written."""
    from retrompi.store import code_version

    save(path, page(title, paths, f"retrompi {code_version()}"))
