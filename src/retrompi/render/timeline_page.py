"""The timeline of a run as a page: a Gantt chart of ranks, proxies and daemons with their messages, and the communication matrix.

The content is computed by pure functions (`bars`, `strips`, `arrows`, `matrix`) before it is drawn. A run of many states is drawn from
samples, and the page says so.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from retrompi.base.errors import InputError
from retrompi.base.units import format_bytes, format_time
from retrompi.render.figures import AXIS, hatched, layout
from retrompi.render.html import CONFIG, Content, document, number, table
from retrompi.sim.timeline import PS, Timeline, call_name
from retrompi.sim.timeline.kinds import KINDS

__all__ = ["DRAWN", "Bars", "bars", "gantt", "matrix", "matrix_figure", "page", "section", "write"]

DRAWN = 6_000
"""The most states and calls drawn, each: a browser still moves these smoothly."""
ARROWS = 1_500
"""The most messages drawn: more would hide everything else."""
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_CELLS = 64
_WRITTEN = 4  # ranks: a matrix of at most this size shows the numbers in its cells


@dataclass
class Bars:
    """Bars of one kind: row of the chart, start and length in the chart's unit, and their hover texts."""

    row: list[float]
    base: list[float]
    length: list[float]
    text: list[str]


def _unit(t: Timeline) -> tuple[float, str]:
    begin, end = _span(t)
    return next((u for u in _UNITS if (end - begin) * PS >= 2 * u[0]), _UNITS[-1])


def _span(t: Timeline) -> tuple[int, int]:
    begins = [p.begin[0] for p in t.processes if p.begin]
    return min(begins, default=0), max((p.end for p in t.processes if p.begin), default=t.end)


def order(t: Timeline) -> list[int]:
    """Processes from top to bottom: by host in order of its first rank, on each the ranks, then proxies and daemons."""
    places = t.process_of()
    hosts = list(dict.fromkeys([t.processes[i].host for i in places] + [p.host for p in t.processes]))
    ranks = {i: r for r, i in enumerate(places)}
    return sorted(range(len(t.processes)), key=lambda i: (hosts.index(t.processes[i].host), i not in ranks, ranks.get(i, 0), i))


def _calls_by_rank(t: Timeline) -> dict[int, tuple[list[int], list[int]]]:
    """Process -> start times of its calls, and their indices in `Timeline.calls`."""
    place = t.process_of()
    out: dict[int, tuple[list[int], list[int]]] = {}
    for i, rank in enumerate(t.calls.rank):
        begins, at = out.setdefault(place[rank], ([], []))
        begins.append(t.calls.begin[i])
        at.append(i)
    return out


def call_text(t: Timeline, i: int) -> str:
    """The hover text of a call."""
    c = t.calls
    name = call_name(t.ops[c.op[i]], c.peer[i], c.tag[i], c.bytes[i])
    still = " (had not returned)" if c.open[i] else ""
    comm = f", communicator {t.comms[c.comm[i]][0]}" if 0 < c.comm[i] < len(t.comms) else ""
    return f"{escape(name)}{comm}<br>{escape(t.files[c.rank[i]])}:{c.line[i]}<br>{format_time((c.end[i] - c.begin[i]) * PS)}{still}"


def bars(t: Timeline, rows: Mapping[int, int], unit: float) -> dict[str, Bars]:
    """The states of the processes in ``rows`` (process -> row), by kind."""
    kind_of = {state: name for name, _, _, states in KINDS for state in states}
    out: dict[str, Bars] = {}
    calls = _calls_by_rank(t)
    for place, row in rows.items():
        p = t.processes[place]
        begins, numbers = calls.get(place, ([], []))
        for begin, end, state, merged in p.states():
            name = t.states[state]
            found = out.setdefault(kind_of.get(name, name), Bars([], [], [], []))
            found.row.append(row)
            found.base.append(begin * PS / unit)
            found.length.append((end - begin) * PS / unit)
            told = f"<b>{escape(p.name)}</b> on {escape(p.host)}<br>{escape(name)}: {format_time((end - begin) * PS)}"
            if merged:
                told += f"<br>most of several states shorter than {format_time(t.resolution * PS)}"
            k = bisect_right(begins, begin) - 1
            if k >= 0 and t.calls.end[numbers[k]] > begin:
                told += "<br>in " + call_text(t, numbers[k])
            found.text.append(f"{told}<br>from {format_time(begin * PS)}")
    return out


def strips(t: Timeline, rows: Mapping[int, int], unit: float) -> tuple[Bars, list[str]]:
    """The calls of the ranks as thin bars under their states, and the name of each."""
    place, c = t.process_of(), t.calls
    out, names = Bars([], [], [], []), []
    first, last = _span(t)
    for i in range(len(c)):
        begin, end = max(c.begin[i], first), min(c.end[i], last)
        if place[c.rank[i]] not in rows or end <= begin:
            continue
        out.row.append(rows[place[c.rank[i]]] + 0.37)
        out.base.append(begin * PS / unit)
        out.length.append((end - begin) * PS / unit)
        out.text.append(f"<b>rank {c.rank[i]}</b><br>{call_text(t, i)}<br>from {format_time(begin * PS)}")
        names.append(t.ops[c.op[i]])
    return out, names


@dataclass
class Arrow:
    """A message as a line: its points (time in the chart's unit, row), the hover text of its end, whether it is a collective's."""

    x: list[float]
    y: list[float]
    text: str
    collective: bool
    arrived: bool


def arrows(t: Timeline, rows: Mapping[int, int], unit: float) -> list[Arrow]:
    """The messages, through the processes they passed; one that was not received ends where it was last observed."""
    place, m, out = t.process_of(), t.messages, []
    for i, hops in enumerate(m.paths()):
        stops = [(place[m.source[i]], m.sent[i]), *((p, at) for p, at, _ in hops)]
        took = m.received[i] - m.sent[i]
        told = f"<b>rank {m.source[i]} → rank {m.destination[i]}</b>: {format_bytes(m.bytes[i])}"
        told += ", of a collective" if m.context[i] % 2 else f", tag {m.tag[i]}"
        told += f"<br>sent at {escape(t.files[m.source[i]])}:{m.line[i]}, {format_time(m.sent[i] * PS)}"
        if m.received[i] >= 0:
            stops.append((place[m.destination[i]], m.received[i]))
            told += f"<br>received {format_time(m.received[i] * PS)}, after {format_time(took * PS)}"
        else:
            told += "<br>not received"
        for p, at, left in hops:
            rest = f" to {format_time(left * PS)}" if left >= 0 else ", not passed on"
            told += f"<br>through {escape(t.processes[p].name)}: {format_time(at * PS)}{rest}"
        told += "<br>rendezvous" if m.rendezvous[i] else ""
        if all(p in rows for p, _ in stops):
            xs, ys = [at * PS / unit for _, at in stops], [float(rows[p]) for p, _ in stops]
            if m.received[i] < 0:
                xs, ys = [*xs, _span(t)[1] * PS / unit], [*ys, (ys[-1] + rows[place[m.destination[i]]]) / 2]
            out.append(Arrow(xs, ys, told, bool(m.context[i] % 2), m.received[i] >= 0))
    return out


def gantt(t: Timeline) -> go.Figure:
    """The chart. A bar is a state, the thin one under it the MPI call, a line a message; time from left to right."""
    scale, unit = _unit(t)
    rows = {place: row for row, place in enumerate(order(t))}
    figure = go.Figure()
    found = bars(t, rows, scale)
    for name, colour, hatch, _ in KINDS:
        if name in found:
            b = found[name]
            # A hatched bar is much slower to draw than a plain one.
            few = bool(hatch) and len(b.row) < 1500
            figure.add_trace(go.Bar(
                orientation="h", y=b.row, x=b.length, base=b.base, width=0.5, name=name, hovertext=b.text, hoverinfo="text",
                marker={"color": colour, "line": {"width": 0}, **({"pattern": hatched(hatch, 0.35, 6)} if few else {})},
            ))  # fmt: skip
    calls, names = strips(t, rows, scale)
    if calls.row:
        few = len(names) <= 400
        written = {"text": names, "textposition": "inside", "insidetextanchor": "middle", "textangle": 0, "constraintext": "inside",
                   "textfont": {"size": 10}}  # fmt: skip
        figure.add_trace(go.Bar(
            orientation="h", y=calls.row, x=calls.length, base=calls.base, width=0.3 if len(rows) <= 8 else 0.22, name="MPI calls",
            hovertext=calls.text, hoverinfo="text",
            marker={"color": "#ffffff", "line": {"width": 1 if few else 0.5, "color": "#333333" if few else "#999999"}},
            **(written if few else {}),
        ))  # fmt: skip
    drawn = arrows(t, rows, scale)
    crowded = len(drawn) > 400
    for name, colour, dash, mine in (
        ("messages", "#1a1a1a", "solid", [a for a in drawn if a.arrived and not a.collective]),
        ("messages of collectives", "#8a5a00", "solid", [a for a in drawn if a.arrived and a.collective]),
        ("messages not received", "#D55E00", "dash", [a for a in drawn if not a.arrived]),
    ):
        if mine:
            x = [v for a in mine for v in (*a.x, None)]
            y = [v for a in mine for v in (*a.y, None)]
            head = [v for a in mine for v in (*([0] * (len(a.x) - 1)), 6 if crowded else 9, 0)]
            text = [v for a in mine for v in (*([a.text] * len(a.x)), "")]
            figure.add_trace(go.Scatter(
                x=x, y=y, mode="lines+markers", name=name, hovertext=text, hoverinfo="text",
                line={"color": colour, "width": 0.7 if crowded else 1.2, "dash": dash},
                opacity=0.45 if crowded else 1.0,
                marker={"symbol": "arrow", "angleref": "previous", "size": head, "color": colour, "opacity": 1, "line": {"width": 0}},
            ))  # fmt: skip
    _layout(figure, t, rows, unit)
    return figure


def row_height(t: Timeline) -> int:
    """Pixels of a row: many ranks are drawn closer."""
    n = len(t.processes)
    return 44 if n <= 8 else 30 if n <= 24 else 20 if n <= 80 else 12 if n <= 300 else 6


def _layout(figure: go.Figure, t: Timeline, rows: Mapping[int, int], unit: str) -> None:
    layout(figure, "")
    first, last = _span(t)
    scale = next(s for s, name in _UNITS if name == unit)
    n = len(rows)
    plot = max(180, row_height(t) * n)
    step = 1 if n <= 80 else -(-n // 80)
    shown = [(row, t.processes[p].name) for p, row in rows.items() if row % step == 0]
    figure.update_layout(
        barmode="overlay", bargap=0, uniformtext={"minsize": 9, "mode": "hide"}, hovermode="closest", dragmode="pan",
        margin={"l": 10, "r": 10, "t": 34, "b": 150},
        height=plot + 184,
        legend={"orientation": "h", "y": -38 / plot, "yanchor": "top", "x": 0, "xanchor": "left", "font": {"size": 13},
                "traceorder": "normal"},
    )  # fmt: skip
    figure.update_xaxes(
        **AXIS, ticksuffix=f" {unit}", range=[first * PS / scale, last * PS / scale], exponentformat="none", separatethousands=True,
    )  # fmt: skip
    figure.update_yaxes(
        tickvals=[r for r, _ in shown], ticktext=[name for _, name in shown], range=[n - 0.4, -0.6], fixedrange=n <= 24, automargin=True,
        zeroline=False, showgrid=False, tickfont={"size": 13 if n <= 24 else 11},
    )  # fmt: skip


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
    say = format_bytes if what == "bytes" else _messages
    text = [[f"rank {a} → rank {b}<br>{say(v)}" for b, v in zip(names, row, strict=True)] for a, row in zip(names, cells, strict=True)]
    figure = go.Figure(go.Heatmap(
        z=[[v if v > 0 else None for v in row] for row in cells], x=names, y=names, colorscale="Cividis", reversescale=True, hovertext=text,
        hoverinfo="text", zmin=0, zmax=max(max(row) for row in cells) or 1, xgap=1, ygap=1,
        colorbar={"title": {"text": "B" if what == "bytes" else ""}, "thickness": 14},
        **({"text": [[say(v) if v else "" for v in row] for row in cells], "texttemplate": "%{text}"} if len(cells) <= _WRITTEN else {}),
    ))  # fmt: skip
    layout(figure, f"{what} from rank to rank".capitalize())
    figure.update_layout(margin={"l": 60, "r": 10, "t": 30, "b": 56})
    figure.update_xaxes(title={"text": "to rank"}, type="category", showgrid=False)
    figure.update_yaxes(title={"text": "from rank"}, type="category", autorange="reversed", showgrid=False, automargin=True)
    return figure


def _messages(n: float) -> str:
    return f"{n:,.0f} message{'s' if n != 1 else ''}"


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
                     *((f"{share:.1%}" if share >= 0.0005 else "", "n") for share in spent)])  # fmt: skip
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
    ]  # fmt: skip
    more = f'<p class="soft">The {len(top)} pairs with most bytes of {len(t.traffic)}.</p>' if len(t.traffic) > len(top) else ""
    return table(head, rows) + more


def section(full: Timeline, name: str = "timeline") -> tuple[str, dict[str, go.Figure]]:
    """(HTML, figures by the id of the element they go into): the chart, the matrix and the sums, for any page."""
    t = full.thinned(DRAWN, DRAWN, ARROWS)
    notes = t.notes()
    said = f'<p class="defect" id="{name}-sampled"><b>Drawn from samples.</b> {escape(" ".join(notes))}</p>' if notes else ""
    hint = (
        '<p class="soft">Drag to move, turn the wheel or pinch to zoom, double-click to see all. Hover over a bar for the call, its line '
        "in the trace and how long it took; over either end of a line for the message. Click a name in the legend to hide it.</p>"
    )
    figures = {f"{name}-gantt": gantt(t)}
    height = figures[f"{name}-gantt"].layout.height
    html = f'{said}{hint}<div class="gantt" id="{name}-gantt" style="height:{height}px" role="img" aria-label="Timeline"></div>'
    html += f"<details open><summary>Fraction of the run in each state</summary>{_sums(t)}</details>"
    if t.traffic:
        figures |= {f"{name}-{what}": matrix_figure(t, what) for what in ("messages", "bytes")}
        block = -(-t.ranks // _CELLS)
        joined = f" {block} ranks are one cell." if block > 1 else ""
        boxes = "".join(
            f'<figure><figcaption>{what.capitalize()}</figcaption><div class="figure" id="{name}-{what}" role="img" '
            f'aria-label="{what} from rank to rank"></div></figure>'
            for what in ("messages", "bytes")
        )
        html += (
            f'<h3>Who sends to whom</h3><p class="soft">All messages of the run: the program\'s, those of its collectives, and one-sided '
            f'transfers.{joined}</p><div class="figures">{boxes}</div>{_pairs(t)}'
        )
    return html, figures


def script(figures: Mapping[str, go.Figure]) -> str:
    """The script that draws the figures of a section; it must follow their elements."""
    parts = [[name, (spec := json.loads(f.to_json()))["data"], {**spec["layout"], "title": None}] for name, f in figures.items()]
    data = json.dumps(parts, separators=(",", ":")).replace("</", "<\\/")
    return (
        f"<script>for (const [id, data, layout] of {data}) "
        f"Plotly.newPlot(id, data, layout, {{...{json.dumps(CONFIG)}, scrollZoom: id.endsWith('-gantt')}});</script>"
    )


def page(t: Timeline, *, footer: str = "", told: Sequence[str] = ()) -> str:
    """The page of one run; ``told``: lines on how it ended."""
    about = t.about
    what = " on ".join(str(about[k]) for k in ("model", "platform") if about.get(k))
    title = f"Timeline: {about.get('trace') or 'a run'}"
    html, figures = section(t)
    ended = "".join(f"<p>{escape(line)}</p>" for line in told)
    ended = f'<div class="defect">{ended}</div>' if ended else ""
    kinds = ", ".join(f"{n} {k}{'s' if n != 1 else ''}" for k, n in _kinds(t).items())
    return document(
        title,
        f"""<header><p class="soft">retrompi: a simulated run</p><h1>{escape(title)}</h1>
<p>{escape(what)}{f", {escape(str(about['mode']))}" if about.get("mode") else ""}: {escape(kinds)}; {format_time(t.end * PS)} simulated,
{t.calls_seen:,} calls, {t.messages_seen:,} messages{f", {escape(str(about['outcome']))}" if about.get("outcome") else ""}.</p></header>
{ended}{html}
<footer class="soft"><p><small>{escape(footer)}</small></p></footer>
{script(figures)}""",
        get_plotlyjs(),
    )


def _kinds(t: Timeline) -> dict[str, int]:
    out: dict[str, int] = {}
    for i in order(t):
        out[t.processes[i].kind] = out.get(t.processes[i].kind, 0) + 1
    return out


def write(t: Timeline, path: Path, told: Sequence[str] = ()) -> list[str]:
    """Write the page; returns what it cannot show. Raises InputError when it cannot be written."""
    from retrompi.store import code_version

    try:
        path.write_text(page(t, footer=f"retrompi {code_version()}", told=told), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the page: {error.strerror}", path, code="unwritable-file") from error
    return t.thinned(DRAWN, DRAWN, ARROWS).notes()
