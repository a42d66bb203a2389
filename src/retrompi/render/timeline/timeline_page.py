"""The page of a run's timeline, or of two runs' on one axis: the chart, the communication matrix and the sums.

The chart is made of tiles (`retrompi.render.timeline.timeline_view`), so that a page of any number of states, calls and messages opens at
once.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from io import StringIO
from pathlib import Path
from typing import IO

import plotly.graph_objects as go

from retrompi.base.errors import InputError
from retrompi.base.translate import _, count, language, ngettext
from retrompi.base.units import format_bytes, format_time
from retrompi.render.document.html import Content, document, number, table
from retrompi.render.document.plotted import drawing, figure_html
from retrompi.render.figures.figures import layout
from retrompi.render.timeline.timeline_view import CSS, ChartRun, Track, order, write_chart
from retrompi.sim.timeline import PS, Timeline
from retrompi.sim.timeline.kinds import KINDS
from retrompi.sim.timeline.versus import SectionTimes, points, sections

__all__ = ["alone", "matrix", "matrix_figure", "write", "write_versus"]

_CELLS = 64
_WRITTEN = 4  # ranks: a matrix of at most this size shows the numbers in its cells


def matrix(t: Timeline, what: str) -> tuple[list[list[float]], int]:
    """(rows by source, ranks a cell stands for): messages or bytes of the run between all ranks, collectives and one-sided included."""
    block = -(-t.ranks // _CELLS)
    n = -(-t.ranks // block)
    cells = [[0.0] * n for _ in range(n)]
    for x in t.traffic:
        count = x.messages + x.collective_messages + x.transfers if what == "messages" else x.bytes + x.collective_bytes + x.transferred
        cells[x.source // block][x.destination // block] += count
    return cells, block


def matrix_figure(t: Timeline, what: str) -> go.Figure:
    """A heat map of the matrix; empty cells stay white."""
    cells, block = matrix(t, what)
    names = [f"{i * block}" if block == 1 else f"{i * block}–{min(t.ranks, (i + 1) * block) - 1}" for i in range(len(cells))]
    ranks = [_("rank {n}").format(n=n) for n in names]
    say = format_bytes if what == "bytes" else _messages
    text = [[f"{a} → {b}<br>{say(v)}" for b, v in zip(ranks, row, strict=True)] for a, row in zip(ranks, cells, strict=True)]
    figure = go.Figure(go.Heatmap(
        z=[[v if v > 0 else None for v in row] for row in cells], x=names, y=names, colorscale="Cividis", reversescale=True, hovertext=text,
        hoverinfo="text", zmin=0, zmax=max(max(row) for row in cells) or 1, xgap=1, ygap=1,
        colorbar={"title": {"text": "B" if what == "bytes" else ""}, "thickness": 14},
        **({"text": [[say(v) if v else "" for v in row] for row in cells], "texttemplate": "%{text}"} if len(cells) <= _WRITTEN else {}),
    ))
    layout(figure, _("Bytes from rank to rank") if what == "bytes" else _("Messages from rank to rank"))
    figure.update_layout(margin={"l": 60, "r": 10, "t": 30, "b": 56})
    figure.update_xaxes(title={"text": _("to rank")}, type="category", showgrid=False)
    figure.update_yaxes(title={"text": _("from rank")}, type="category", autorange="reversed", showgrid=False, automargin=True)
    return figure


def _messages(n: float) -> str:
    return ngettext("{n} message", "{n} messages", round(n)).format(n=count(round(n)))


def _sums(t: Timeline) -> str:
    """A table of the time that each process spent in each kind of state."""
    shown = [(name, states) for name, _, _, states in KINDS if any(p.totals.get(s) for p in t.processes for s in states)]
    most = 40
    rows: list[list[Content]] = []
    for i in order(t)[:most]:
        p = t.processes[i]
        whole = sum(p.totals.values()) or 1
        spent = [sum(p.totals.get(s, 0) for s in states) / whole for _, states in shown]
        rows.append([f'<span class="id">{escape(p.name)}</span> <small class="soft">{escape(p.host)}</small>',
                     *((f"{share:.1%}" if share >= 0.0005 else "", "n") for share in spent)])
    more = f'<p class="soft">{len(t.processes) - most} more processes are not listed.</p>' if len(t.processes) > most else ""
    return table(["process", *(name for name, _ in shown)], rows) + more


def _both(count: int, size: int) -> str:
    return f"{number(count)}, {format_bytes(size)}" if count else ""


def _pairs(t: Timeline) -> str:
    top = sorted(t.traffic, key=lambda x: -(x.bytes + x.collective_bytes + x.transferred))[:12]
    head = ("from", "to", "messages", "bytes", "in collectives", "one-sided")
    rows: list[list[Content]] = [
        [f"rank {x.source}", f"rank {x.destination}",
         *((n, "n") for n in (number(x.messages), format_bytes(x.bytes), _both(x.collective_messages, x.collective_bytes),
                              _both(x.transfers, x.transferred)))]
        for x in top
    ]
    more = f'<p class="soft">The {len(top)} pairs with most bytes of {len(t.traffic)}.</p>' if len(t.traffic) > len(top) else ""
    return table(head, rows) + more


def _hint() -> str:
    return (
        '<p class="soft">A column of pixels shows the shares of its time in each state; nearer, one sees the states themselves, the calls '
        "below them, and messages as lines. Drag to move, turn the wheel or pinch to zoom, double-click to see all. Point at a bar for the "
        "call, its line in the trace and how long it took, and at either end of a line for the message.</p>"
    )


def _sampling_note(t: Timeline, before: str = "") -> str:
    notes = t.notes()
    return f'<p class="defect"><b>{before}Sampled.</b> {escape(" ".join(notes))}</p>' if notes else ""


def _traffic(t: Timeline) -> tuple[str, dict[str, go.Figure]]:
    """(HTML, figures by the id of their element): the matrix and its largest pairs."""
    if not t.traffic:
        return "", {}
    figures = {what: matrix_figure(t, what) for what in ("messages", "bytes")}
    block = -(-t.ranks // _CELLS)
    joined = f" {block} ranks are one cell." if block > 1 else ""
    boxes = "".join(figure_html(figure, name) for name, figure in figures.items())
    html = (
        f'<h2>Who sends to whom</h2><p class="soft">All messages of the run: the program\'s, those of its collectives, and one-sided '
        f'transfers.{joined}</p><div class="figures">{boxes}</div>{_pairs(t)}'
    )
    return html, figures


def _kinds(t: Timeline) -> dict[str, int]:
    out: dict[str, int] = {}
    for i in order(t):
        out[t.processes[i].kind] = out.get(t.processes[i].kind, 0) + 1
    return out


def _run_name(t: Timeline) -> str:
    """The run in a few words: model, platform, placement."""
    about = t.about
    what = " on ".join(str(about[k]) for k in ("model", "platform") if about.get(k))
    return f"{what}, {about['mode']}" if about.get("mode") else what


def _facts(t: Timeline) -> str:
    kinds = ", ".join(f"{n} {k if n == 1 else 'proxies' if k == 'proxy' else f'{k}s'}" for k, n in _kinds(t).items())
    ended = f", {t.about['outcome']}" if t.about.get("outcome") else ""
    named = f"{_run_name(t)}: " if _run_name(t) else ""
    return f"{named}{kinds}; {format_time(t.end * PS)} simulated, {t.calls_seen:,} calls, {t.messages_seen:,} messages{ended}."


def _frame(out: IO[str], title: str, header: str) -> str:
    """Writes the page up to the chart; returns its end."""
    first, last = document(title, f"<style>{CSS}</style><header>{header}</header>\0").split("\0")
    out.write(first)
    return last


def _footer() -> str:
    from retrompi.store import code_version

    return f'<footer class="soft"><p><small>retrompi {escape(code_version())}</small></p></footer>'


def write(t: Timeline, path: Path, told: Sequence[str] = (), more: Sequence[Track] = ()) -> list[str]:
    """Write the page of one run; returns how it was sampled.

    ``told``: lines on how the run ended. ``more``: tracks to show below those of the processes. Raises InputError when the page cannot be
    written.
    """
    title = f"Timeline: {t.about.get('trace') or 'a run'}"
    ended = "".join(f"<p>{escape(line)}</p>" for line in told)
    matrices, figures = _traffic(t)
    try:
        with path.open("w", encoding="utf-8") as out:
            last = _frame(out, title, f'<p class="soft">retrompi: a simulated run</p><h1>{escape(title)}</h1><p>{escape(_facts(t))}</p>')
            out.write((f'<div class="defect">{ended}</div>' if ended else "") + _sampling_note(t) + _hint())
            write_chart(out, [ChartRun(t, more=more)])
            out.write(f"<details open><summary>Fraction of the run in each state</summary>{_sums(t)}</details>{matrices}{_footer()}")
            out.write(drawing(figures) + last)
    except OSError as error:
        raise InputError(f"cannot write the page: {error.strerror}", path, code="unwritable-file") from error
    return t.notes()


def alone(t: Timeline) -> str:
    """The chart of a run as a document of its own, without what a page tells around it."""
    out = StringIO()
    style = f"<style>{CSS}\nbody {{ padding: 0; }}</style>"
    first, last = document(t.about.get("trace") or _("a run"), f"{style}\0", language=language()).split("\0")
    out.write(first)
    write_chart(out, [ChartRun(t)])
    out.write(last)
    return out.getvalue()


def write_versus(one: Timeline, other: Timeline, path: Path, titles: tuple[str, str]) -> list[str]:
    """Write the page of two runs on one axis, with the difference of each section; returns how they were sampled.

    Raises InputError when the page cannot be written.
    """
    found = points(one, other)
    aligned = {name: (a, b) for name, a, b in found}
    title = f"{titles[0]} and {titles[1]}"
    both = tuple(zip("AB", titles, (one, other), strict=True))
    facts = "".join(f"<p><b>{letter}</b> {escape(name)}: {escape(_facts(t))}</p>" for letter, name, t in both)
    try:
        with path.open("w", encoding="utf-8") as out:
            last = _frame(out, title, f'<p class="soft">retrompi: two simulated runs</p><h1>{escape(title)}</h1>{facts}')
            out.write(_sampling_note(one, "A: ") + _sampling_note(other, "B: ") + _hint())
            write_chart(out, [ChartRun(t, letter) for letter, _, t in both], aligned)
            out.write(f"<h2>Section by section</h2>{_difference(sections(found))}")
            for letter, _, t in both:
                out.write(f"<details open><summary>{letter}: fraction of the run in each state</summary>{_sums(t)}</details>")
            out.write(_footer() + last)
    except OSError as error:
        raise InputError(f"cannot write the page: {error.strerror}", path, code="unwritable-file") from error
    return [f"{letter}: {note}" for letter, _, t in both for note in t.notes()]


def _difference(rows: Sequence[SectionTimes]) -> str:
    most = 60
    shown: list[list[Content]] = [
        [escape(s.name), (format_time(s.one_s), "n"), (format_time(s.other_s), "n"),
         (f"{'+' if s.more_s >= 0 else '−'}{format_time(abs(s.more_s))}", "n"), (f"{s.ratio:.3f}" if s.ratio is not None else "", "n")]
        for s in rows[:most]
    ]
    rest = f'<p class="soft">{len(rows) - most} more sections are not listed.</p>' if len(rows) > most else ""
    return table(["section of rank 0", "A", "B", "B − A", "B / A"], shown) + rest
