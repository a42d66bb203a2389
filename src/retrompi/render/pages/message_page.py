"""The page of one message: a bar for each stage and for the total, with intervals if there are draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from retrompi.base.units import format_span, format_time
from retrompi.render.document.html import Content, document, save, table
from retrompi.render.document.plotted import drawing, figure_html
from retrompi.render.figures import bands
from retrompi.render.figures.figures import AXIS, PALETTE, hatch_pattern, layout

__all__ = ["Stages", "figures", "fold_stages", "page", "write"]

_TOTAL = "#6b6b6b"
LEAST = 0.01
"""Share of the total below which a stage has no bar of its own: it would be invisible."""
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Stages:
    """A message: ``rows`` stage, process, seconds, and their sum ``total`` in the same form.

    With an interval, the ``level`` of ``draws`` draws of which the share ``completed`` did, also seconds_low and seconds_high.
    """

    title: str
    rows: tuple[Row, ...]
    total: Row
    run_id: int
    level: float = 0.0
    draws: int = 0
    completed: float = 1.0


def _unit(seconds: float) -> tuple[str, float]:
    """The unit of an axis up to ``seconds``, and seconds in it."""
    return next(((u, s) for u, s in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)) if seconds >= s), ("ns", 1e-9))


def fold_stages(told: Stages) -> list[Row]:
    """The stages that a bar can show; those below `LEAST` of the total, also at the high end of their interval, as one row with their
    sum."""
    least = LEAST * told.total["seconds"]
    small = [r for r in told.rows if max(r["seconds"], r.get("seconds_high") or 0.0) < least]
    if len(small) < 2:
        return list(told.rows)
    rest = {"stage": f"{len(small)} stages below {LEAST:.0%} each", "process": "", "seconds": sum(r["seconds"] for r in small)}
    return [*(r for r in told.rows if r not in small), rest]


def figures(told: Stages) -> dict[str, go.Figure]:
    """The bars, the total first; small ones are `fold_stages`, the table has all. An interval is drawn by itself: a stage that few draws
    have may be 0 in the nominal run."""
    shown = fold_stages(told)
    rows = [told.total, *shown]
    names = [str(r["stage"]) + (f", {r['process']}" if r["process"] else "") for r in rows]
    ends = [(r.get("seconds_low"), r.get("seconds_high")) for r in rows]
    unit, scale = _unit(max([r["seconds"] for r in rows] + [high for _, high in ends if high is not None]))
    figure = go.Figure(go.Bar(
        orientation="h", y=[f"{n}<br><b>{format_time(r['seconds'])}</b>".replace(" us<", " µs<") for n, r in zip(names, rows, strict=True)],
        x=[r["seconds"] / scale for r in rows], customdata=[_stage_text(r) for r in rows], showlegend=False,
        marker={"color": [_TOTAL, *[PALETTE[0]] * len(shown)],
                "pattern": {**hatch_pattern("", 0.25), "shape": ["/", *[""] * len(shown)]}},
        hovertemplate="%{customdata}<extra></extra>",
    ))
    both = zip(figure.data[0].y, ends, strict=True)
    known = [(name, (low / scale, high / scale)) for name, (low, high) in both if low is not None and high is not None]
    layout(figure, "Time of one message by stage")
    if known:
        figure.add_trace(bands.whiskers([name for name, _ in known], [interval for _, interval in known], across=True))
        figure.add_trace(bands.key(bands.band_text(told.level, told.draws, [told.completed])))
        figure.update_layout(showlegend=True)
        bands.lower_key(figure)
    figure.update_layout(margin={"l": 10}, bargap=0.25, height=max(300, 52 * len(rows) + 120))
    figure.update_xaxes(**AXIS, title={"text": f"time, {unit}"}, rangemode="tozero")
    figure.update_yaxes(autorange="reversed", automargin=True, zeroline=False)
    return {"stages": figure}


def _stage_text(row: Row) -> str:
    interval = "" if row.get("seconds_low") is None else f" ({format_span(row['seconds_low'], row['seconds_high'], 's')})"
    return f"{row['stage']}: {format_time(row['seconds'])}{interval}"


def page(told: Stages, footer: str = "") -> str:
    """The page as HTML text."""
    drawn = figures(told)
    level = f"{bands.share(told.level)} interval" if told.level else ""
    head = ["stage", "process", "time", *([level] if level else []), "share"]
    rows: list[list[Content]] = []
    for r in (*told.rows, told.total):
        of = r["seconds"] / told.total["seconds"] if told.total["seconds"] else 0.0
        known = level and r.get("seconds_low") is not None
        interval = [format_span(r["seconds_low"], r["seconds_high"], "s") if known else ""] if level else []
        numbers = [format_time(r["seconds"]), *interval, f"{100 * of:.1f} %"]
        rows.append([escape(str(r["stage"])), escape(str(r["process"])), *((n, "n") for n in numbers)])
    words = bands.band_text(told.level, told.draws, [told.completed]).replace("<br>", " ")
    about = f"<p class='soft'>{escape(words[0].upper() + words[1:])}. {escape(bands.NOTE)}</p>" if level else ""
    return document(
        told.title,
        f"""<header><p class="soft">retrompi explains</p><h1>{escape(told.title)}</h1></header>
{"".join(figure_html(f, n) for n, f in drawn.items())}
<h2>Stages</h2>{about}{table(head, rows)}
<footer class="soft"><p><small>{escape(footer)} · run {told.run_id} of the store</small></p></footer>
{drawing(drawn)}""",
    )


def write(path: Path, told: Stages) -> None:
    """Write the page. Raises InputError when it cannot be written."""
    from retrompi.store import code_version

    save(path, page(told, f"retrompi {code_version()}"))
