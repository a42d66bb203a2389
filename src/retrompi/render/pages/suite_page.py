"""The table of held-out results as a page: a row in a figure and in a table for each program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from retrompi.measure.compare.suite import CaseResult, row_of, totals, warnings_of
from retrompi.render.document.html import Content, boxes, document, save, table
from retrompi.render.document.plotted import drawing, figure_html
from retrompi.render.figures.figures import AXIS, layout
from retrompi.render.pages.compare_page import LOOKS, NAMES, pair_name, share

__all__ = ["figure", "page", "write"]


def _of(rows: Sequence[Mapping[str, Any]], backend: str, reference: str) -> list[Mapping[str, Any]]:
    return [r for r in rows if (r["backend"], r["reference"]) == (backend, reference) and r["median"] is not None]


def figure(done: Sequence[CaseResult], bound: float | None, backend: str, reference: str) -> go.Figure:
    """Signed median and 95th percentile (end of the line) of each program's held-out errors, the noise as grey bars."""
    rows = _of([r for j in done for r in row_of(j)], backend, reference)
    names = [r["program"] for r in rows]
    out = go.Figure()
    if any(r["noise"] is not None for r in rows):
        out.add_trace(go.Bar(orientation="h", y=names, x=[100 * (r["noise"] or 0) for r in rows], name="half of the native noise band",
                             marker={"color": "#d4d4d4"}, width=0.8, hovertemplate="%{y}: ± %{x:.1f} %<extra>noise</extra>"))
    colour, symbol, _ = LOOKS[backend]
    out.add_trace(go.Scatter(
        x=[100 * r["median"] for r in rows], y=names, mode="markers", name="median of the errors, and 95th percentile",
        marker={"color": colour, "symbol": symbol, "size": 11},
        error_x={"type": "data", "symmetric": False, "array": [100 * (r["p95"] - r["median"]) for r in rows],
                 "arrayminus": [0] * len(rows), "color": colour, "thickness": 2, "width": 6},
        customdata=[[100 * r["p95"], r["n"]] for r in rows],
        hovertemplate="%{y}: median %{x:.1f} %, 95th %{customdata[0]:.1f} % of %{customdata[1]} rows<extra></extra>",
    ))
    layout(out, f"Held-out errors, {pair_name(backend, reference)}")
    if bound is not None:
        out.add_vline(x=100 * bound, line={"color": "#D55E00", "width": 2, "dash": "dash"},
                      annotation={"text": f"{100 * bound:g} %", "yanchor": "bottom"})
    # One outlier must not compress the scale for all other programs: its line leaves the figure.
    most = 100 * max([2 * (bound or 0), *(2.5 * r["median"] for r in rows)], default=1)
    top = min(most, 105 * max([bound or 0, *(r["p95"] for r in rows)], default=1))
    out.update_xaxes(title={"text": "absolute error, %"}, range=[0, top or 1], **AXIS)
    out.update_yaxes(autorange="reversed", automargin=True)
    out.update_layout(margin={"l": 10}, barmode="overlay")
    return out


def _size(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def _table(done: Sequence[CaseResult]) -> str:
    head = (
        "program",
        "group",
        "pair",
        "n",
        "median",
        "95th",
        "worst",
        "bias",
        "whole program",
        "noise",
        "in the noise",
        "most from",
        "runs",
    )
    lines: list[list[Content]] = []
    for j in done:
        for r in row_of(j):
            pair = escape(pair_name(r["backend"], r["reference"]))
            words = (f'<span class="id">{escape(r["program"])}</span>', escape(r["group"]), pair)
            worst = f"{share(r['worst'])} at {escape(str(r['where']))}" if r["worst"] is not None else ""
            noise = "" if r["noise"] is None else f"± {_size(r['noise'])}"
            inside = "" if r["inside"] is None else f"{r['inside']:.0%}"
            numbers = (str(r["n"] or ""), _size(r["median"]), _size(r["p95"]), worst, share(r["bias"]), share(r["whole"]), noise, inside)
            tail = (escape(r["most_from"]), ", ".join(map(str, r["runs"])))
            lines.append([*words, *((n, "n") for n in numbers), *tail])
    return table(head, lines)


def _groups(done: Sequence[CaseResult]) -> str:
    shown = []
    for t in totals(done):
        told = f"median of {t['n']} held-out rows; 95th percentile {_size(t['p95'])}, worst {share(t['worst'])} at {escape(t['where'])}"
        pair = escape(pair_name(t["backend"], t["reference"]))
        shown.append((f"{escape(t['group'])}, {pair}", f"{_size(t['median'])} off", told))
    return boxes(shown)


def page(done: Sequence[CaseResult], bounds: Mapping[str, float], footer: str = "") -> str:
    """The page as HTML text."""
    pairs = dict.fromkeys(p for j in done for p in j.comparison.pairs)
    drawn = {f"suite-{b}-{r}": figure(done, bounds.get("median"), b, r) for b, r in pairs}
    first = done[0].comparison
    models = ", ".join(dict.fromkeys(e.model for e in first.executions.values() if e.model))
    machine = next((e.machine.cpu for e in first.executions.values() if e.machine), "")
    warned = "".join(f'<p class="defect">{escape(w[0].upper() + w[1:])}.</p>' for w in warnings_of(done))
    title = f"Hold-outs: {models}"
    where = f" {escape(machine)}." if machine else ""
    return document(
        title,
        f"""<header><p class="soft">retrompi compares</p><h1>{escape(title)}</h1>
<p>The collectives and the example programs on {first.ranks} ranks, {escape(", ".join(NAMES[b] for b in first.executions))}.{where}
Nothing here was seen by a fit, but single messages of sizes that are marked so on a comparison's own page; those are left out.</p></header>
{warned}{_groups(done)}
<div class="figures">{"".join(figure_html(f, n, tall=True) for n, f in drawn.items())}</div>
<h2>Programs</h2><p class="soft">A program's own page: <code>retrompi compare --runs RUNS -o PAGE.html</code>.</p>{_table(done)}
<footer class="soft"><p><small>{escape(footer)}</small></p></footer>
{drawing(drawn)}""",
    )


def write(path: Path, done: Sequence[CaseResult], bounds: Mapping[str, float]) -> None:
    """Write the page. Raises InputError when it cannot be written."""
    from retrompi.store import code_version

    save(path, page(done, bounds, f"retrompi {code_version()}"))
