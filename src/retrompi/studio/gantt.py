"""The replay page's chart: a Gantt chart of ranks, proxies and daemons with their messages, as a figure for Dash.

Its content is computed by pure functions (`bars`, `strips`, `arrows`) before it is drawn. It has few thousand elements; pages of their own
(`retrompi.render.timeline_page`) have no such bound.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

import plotly.graph_objects as go

from retrompi.base.translate import _
from retrompi.base.units import format_bytes, format_time
from retrompi.render.figures import AXIS, hatched, layout
from retrompi.render.timeline_view import order
from retrompi.render.timeline_view import span_of as _span
from retrompi.sim.timeline import PS, Timeline, call_name
from retrompi.sim.timeline.kinds import KINDS

__all__ = ["Bars", "arrows", "bars", "gantt", "strips"]

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


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
    still = _(" (had not returned)") if c.open[i] else ""
    comm = _(", communicator {comms}").format(comms=t.comms[c.comm[i]][0]) if 0 < c.comm[i] < len(t.comms) else ""
    return f"{escape(name)}{comm}<br>{escape(t.files[c.rank[i]])}:{c.line[i]}<br>{format_time((c.end[i] - c.begin[i]) * PS)}{still}"


def bars(t: Timeline, rows: Mapping[int, int], unit: float) -> dict[str, Bars]:
    """The states of the processes in ``rows`` (process -> row), by kind."""
    kind_of = {state: name for name, _colour, _hatch, states in KINDS for state in states}
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
            told = _("<b>{name}</b> on {host}<br>{name2}: {end}").format(
                name=escape(p.name), host=escape(p.host), name2=escape(name), end=format_time((end - begin) * PS)
            )
            if merged:
                told += _("<br>most of several states shorter than {resolution}").format(resolution=format_time(t.resolution * PS))
            k = bisect_right(begins, begin) - 1
            if k >= 0 and t.calls.end[numbers[k]] > begin:
                told += "<br>in " + call_text(t, numbers[k])
            found.text.append(_("{told}<br>from {begin}").format(told=told, begin=format_time(begin * PS)))
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
        out.text.append(
            _("<b>rank {rank}</b><br>{call_text}<br>from {begin}").format(
                rank=c.rank[i], call_text=call_text(t, i), begin=format_time(begin * PS)
            )
        )
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
        told = _("<b>rank {source} → rank {destination}</b>: {bytes}").format(
            source=m.source[i], destination=m.destination[i], bytes=format_bytes(m.bytes[i])
        )
        told += _(", of a collective") if m.context[i] % 2 else _(", tag {tag}").format(tag=m.tag[i])
        told += _("<br>sent at {files}:{line}, {sent}").format(
            files=escape(t.files[m.source[i]]), line=m.line[i], sent=format_time(m.sent[i] * PS)
        )
        if m.received[i] >= 0:
            stops.append((place[m.destination[i]], m.received[i]))
            told += _("<br>received {received}, after {took}").format(received=format_time(m.received[i] * PS), took=format_time(took * PS))
        else:
            told += _("<br>not received")
        for p, at, left in hops:
            rest = f" to {format_time(left * PS)}" if left >= 0 else _(", not passed on")
            told += _("<br>through {name}: {at}{rest}").format(name=escape(t.processes[p].name), at=format_time(at * PS), rest=rest)
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
    for name, colour, hatch, _states in KINDS:
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
            orientation="h", y=calls.row, x=calls.length, base=calls.base, width=0.3 if len(rows) <= 8 else 0.22, name=_("MPI calls"),
            hovertext=calls.text, hoverinfo="text",
            marker={"color": "#ffffff", "line": {"width": 1 if few else 0.5, "color": "#333333" if few else "#999999"}},
            **(written if few else {}),
        ))  # fmt: skip
    drawn = arrows(t, rows, scale)
    crowded = len(drawn) > 400
    for name, colour, dash, mine in (
        ("messages", "#1a1a1a", "solid", [a for a in drawn if a.arrived and not a.collective]),
        (_("messages of collectives"), "#8a5a00", "solid", [a for a in drawn if a.arrived and a.collective]),
        (_("messages not received"), "#D55E00", "dash", [a for a in drawn if not a.arrived]),
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
