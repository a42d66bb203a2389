"""One simulated curve as a page, with published and measured values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from retrompi.base.units import format_bytes, format_span, format_time
from retrompi.measure.stored_curves import StoredCurve, curves_for
from retrompi.papers.statements.claims import by_paper
from retrompi.papers.statements.exhibits import CurveFigure
from retrompi.papers.statements.paper import all_papers
from retrompi.render.atlas.paper_page import measured_table
from retrompi.render.document.html import document, save, table
from retrompi.render.document.plotted import drawing, figure_html
from retrompi.render.figures import bands
from retrompi.render.figures.figures import curve_figure, name_of
from retrompi.render.figures.overlay import StatementMark, marks
from retrompi.render.figures.stored_curves import add
from retrompi.spec.runtime import possible

__all__ = ["Simulated", "figures", "points", "published_marks", "write"]


@dataclass(frozen=True)
class Simulated:
    """A curve: rows size_B, time_us, bandwidth_MBps of a run.

    With an interval, the ``level`` of ``draws`` draws, also time_us_low, time_us_high, bandwidth_MBps_low, bandwidth_MBps_high, and
    completed, the share of draws behind it.
    """

    model: str
    platform: str
    mode: str
    rows: tuple[Mapping[str, Any], ...]
    run_id: int
    level: float = 0.0
    draws: int = 0


def published_marks(curve: Simulated) -> list[StatementMark]:
    """The published statements about this runtime on this platform in this mode."""
    last = max((int(r["size_B"]) for r in curve.rows), default=4 << 20)
    out = []
    for plan in all_papers().values():
        if plan.platform == curve.platform and curve.model in plan.models:
            out += [m for m in marks(by_paper(plan.key), last=last) if curve.model in m.models and m.mode == curve.mode]
    return out


def figures(curve: Simulated, measured: Sequence[StoredCurve] = ()) -> dict[str, go.Figure]:
    """Time and bandwidth, with published marks and measured curves on both."""
    shown = [{**r, "model": curve.model, "mode": curve.mode} for r in curve.rows]
    found = published_marks(curve)
    out = {}
    for what in ("time", "bandwidth"):
        plan = CurveFigure(what, {"time": "One-way time", "bandwidth": "Bandwidth"}[what], what, ((curve.model, curve.mode),))
        out[what] = curve_figure(shown, plan, found, curve.level, curve.draws)
        add(out[what], curves_for(measured, what), what)
    return out


def points(curve: Simulated) -> tuple[list[str], list[list[str]]]:
    """(heads, rows of texts) of the table of points, with the intervals if there are any."""
    head = ["size", "one-way time", "MB/s", "repetitions"]
    rows = [[format_bytes(r["size_B"]), format_time(r["time_us"] * 1e-6), f"{r['bandwidth_MBps']:.4g}", str(r["repetitions"])]
            for r in curve.rows]
    if not curve.level:
        return head, rows
    for r, row in zip(curve.rows, rows, strict=True):
        known = r.get("time_us_low") is not None
        time = format_span(r["time_us_low"] * 1e-6, r["time_us_high"] * 1e-6, "s") if known else ""
        rate = f"{r['bandwidth_MBps_low']:.4g} .. {r['bandwidth_MBps_high']:.4g}" if known and r["size_B"] else ""
        row[2:2], row[4:4] = [time], [rate]
        row.append(bands.of_draws(r.get("completed", 1.0), curve.draws))
    level = f"its {bands.share(curve.level)} interval"
    return [*head[:2], level, head[2], level, head[3], "that complete"], rows


def page(curve: Simulated, measured: Sequence[StoredCurve] = (), footer: str = "") -> str:
    """The page as HTML text."""
    drawn = figures(curve, measured)
    head, rows = points(curve)
    cells = [[(escape(text), "n") for text in row] for row in rows]
    about = f"<p class='soft'>{escape(bands.NOTE)}</p>" if curve.level else ""
    overlaid = f"<h2>Measured curves</h2>{measured_table(measured)}" if measured else ""
    runs = ", ".join(str(i) for i in (curve.run_id, *(m.run_id for m in measured)))
    fiction = possible.fiction(curve.model, curve.platform)
    title = f"PingPong of {name_of(curve.model)} on {curve.platform}, {curve.mode}{f': {fiction}' if fiction else ''}"
    return document(
        title,
        f"""<header><p class="soft">retrompi simulates</p><h1>{escape(title)}</h1></header>
<div class="figures">{"".join(figure_html(f, n) for n, f in drawn.items())}</div>
{overlaid}<h2>Points</h2>{about}{table(head, cells)}
<footer class="soft"><p><small>{escape(footer)} · drawn from runs {runs} of the store</small></p></footer>
{drawing(drawn)}""",
    )


def write(path: Path, curve: Simulated, measured: Sequence[StoredCurve] = ()) -> None:
    """Write the page. Raises InputError when it cannot be written."""
    from retrompi.store import code_version

    save(path, page(curve, measured, f"retrompi {code_version()}"))
