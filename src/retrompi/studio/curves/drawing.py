"""Figures of the pages, and their numbers as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from retrompi.base.translate import _, lazy
from retrompi.base.units import format_bytes
from retrompi.measure.stored_curves import StoredCurve
from retrompi.papers.statements.exhibits import CurveFigure
from retrompi.render.document.engine_words import outcome_name
from retrompi.render.figures import bands
from retrompi.render.figures.figures import AXES, DASHES, PALETTE, curve_figure, place
from retrompi.render.figures.overlay import StatementMark
from retrompi.render.figures.stored_curves import add as add_measured
from retrompi.spec.declare.outcome import Outcome
from retrompi.studies.define import metrics
from retrompi.studio.components import titles
from retrompi.studio.components.parameters import readable
from retrompi.studio.curves.intervals import METRICS, span

__all__ = ["curves_figure", "metric_rows", "number_rows", "plain", "what_if_figure", "with_settings"]

_CHANGED = "changed"
"""Says of a trace that it is of the changed curve: assets/whatif.js draws another in its place while a slider is moved."""
_TITLES = {"time": lazy("One-way time"), "bandwidth": lazy("Bandwidth")}


def with_settings(figure: go.Figure, revision: str = "") -> go.Figure:
    """Common settings of figures on a page: scrolling by touch does not zoom; hidden curves stay hidden while ``revision`` is unchanged."""
    figure.update_layout(
        dragmode=False, uirevision=revision or "same", hovermode="closest", paper_bgcolor="rgba(0,0,0,0)", title_text="",
        margin={"t": max(16, (figure.layout.margin.t or 16) - 28), "b": 96, "r": 8},
        legend={"xref": "container", "x": 0.0, "xanchor": "left", "yref": "container", "y": 0.0, "yanchor": "bottom"},
    )
    figure.update_xaxes(automargin=True, title_standoff=10)
    return figure


def curves_figure(answer: Mapping[str, Any], series: str, y: str = "log", published: bool = True) -> go.Figure:
    """The curves of `retrompi.studio.curves.runs.curves` with published marks and stored runs drawn over them."""
    made = [c for c in answer["curves"] if c["rows"]]
    modes, platforms = {c["mode"] for c in made}, {c["platform"] for c in made}
    # The figure distinguishes curves by model and mode; two platforms of one model and mode cannot occur together here.
    points = [{**r, "model": c["model"], "mode": c["mode"]} for c in made for r in c["rows"]]
    legends = tuple((c["model"], c["mode"], titles.in_a_legend(titles.of_curve(c, len(modes) > 1))) for c in made)
    plan = CurveFigure(series, _(_TITLES[series]), series, legends, y=y)
    marks = _marks(answer) if published else []
    figure = curve_figure(points, plan, marks)
    names = {f"{c['model']} {c['mode']}": f"{c['model']}, {c['mode']}, {c['platform']}" for c in made}
    for trace in figure.data:  # the pointer tells by which names the command line knows the curve
        if trace.legendgroup in names and trace.hovertemplate:
            trace.hovertemplate = trace.hovertemplate.replace("<extra>", f"<br>{plain(names[trace.legendgroup])}<extra>")
    simulated = [o for o in answer["overlays"] if o["kind"] == "simulated"]
    measured = [
        StoredCurve(o["run"], o["kind"], titles.in_a_legend(o["name"]), tuple(o["rows"]), "", o["about"],
                 {int(k): tuple(v) for k, v in o["bands"].items()})
        for o in answer["overlays"] if o["kind"] != "simulated"
    ]
    column, _title, unit = AXES[series]
    for i, one in enumerate(simulated):
        colour = PALETTE[(5, 3, 4, 2, 1, 0)[i % 6]]
        same = f", {titles.platform(one['platform'])}" if platforms == {one["platform"]} else ""
        name = titles.in_a_legend(_("run {run}: {plain}").format(run=one["run"], plain=one["name"].removesuffix(same)))
        figure.add_trace(_line(one["rows"], column, unit, name, colour, DASHES[1 + i % 5], "circle-open"))
    add_measured(figure, measured, series)
    return with_settings(figure, f"{sorted(modes)} {sorted(platforms)}")


def _marks(answer: Mapping[str, Any]) -> list[StatementMark]:
    return [StatementMark(**{**m, "models": tuple(m["models"])}) for m in answer["marks"]]


def plain(text: str, most: int = 60) -> str:
    """A user-supplied name for a figure: shortened, with Plotly's markup (such as links) and template fields escaped."""
    shown, kept = _harmless(text), len(text)
    while len(shown) > most:
        kept -= 1  # truncated before escaping, so that no escape sequence is cut
        shown = _harmless(text[:kept] + "…")
    return shown


def _harmless(text: str) -> str:
    return escape(text, quote=False).replace("%{", "&#37;{")


def _line(rows: Sequence[Mapping[str, Any]], column: str, unit: str, name: str, colour: str, dash: str, symbol: str,
          width: float = 2.0) -> go.Scatter:
    shown = sorted((r for r in rows if column != "bandwidth_MBps" or r["size_B"] > 0), key=lambda r: r["size_B"])
    return go.Scatter(
        x=[place(r["size_B"]) for r in shown], y=[r[column] for r in shown], name=name, mode="lines+markers",
        line={"color": colour, "width": width, "dash": dash}, marker={"symbol": symbol, "size": 7, "color": colour},
        customdata=[format_bytes(r["size_B"]) for r in shown], hovertemplate=f"%{{customdata}}: %{{y:.4g}} {unit}<extra></extra>",
    )


def what_if_figure(answer: Mapping[str, Any], series: str, y: str = "log") -> go.Figure:
    """The base curve, pale and dashed, with what is published of it, and the changed one over it, each with its band if the answer has
    intervals.
    """
    base, changed = answer["base"], answer["changed"]
    told = answer.get("intervals")
    level, draws = (told["level"], told["draws"]) if told else (0.0, 0)
    key = (base["model"], base["mode"])
    points = [{**r, "model": key[0], "mode": key[1]} for r in base["rows"]]
    legend = titles.in_a_legend(_("{runtime} as it was").format(runtime=titles.runtime(key[0])))
    plan = CurveFigure(series, _(_TITLES[series]), series, ((*key, legend),), y=y)
    figure = curve_figure(points, plan, _marks(answer), level, draws)
    column, _title, unit = AXES[series]
    if changed is not None:
        for trace in (t for t in figure.data if t.mode == "lines+markers"):
            trace.line.dash, trace.line.width = "dot", 2
            trace.marker.symbol = "circle-open"
        if told:
            known = [r for r in changed["rows"] if r.get(f"{column}_low") is not None and (series == "time" or r["size_B"] > 0)]
            low, high = ([r[f"{column}_{end}"] for r in known] for end in ("low", "high"))
            figure.add_trace(bands.area([place(r["size_B"]) for r in known], low, high, PALETTE[1], log=y == "log").update(meta=_CHANGED))
        outcome = outcome_name(changed["outcome"])
        ended = "" if changed["outcome"] == Outcome.COMPLETED else _(" (until its end: {outcome})").format(outcome=outcome)
        figure.add_trace(
            _line(changed["rows"], column, unit, _("changed") + ended, PALETTE[1], "solid", "square", 3.5).update(meta=_CHANGED)
        )
        if ended and changed["rows"]:
            last = max((r for r in changed["rows"]), key=lambda r: r["size_B"])
            figure.add_trace(go.Scatter(
                x=[place(last["size_B"])], y=[last[column]], mode="markers", name=outcome, showlegend=False, meta=_CHANGED,
                marker={"symbol": "x", "size": 16, "color": PALETTE[1]}, hovertext=[outcome], hoverinfo="text",
            ))
    bands.below(figure)
    return with_settings(figure, f"{key} {base['platform']}")


def number_rows(named: Sequence[tuple[str, Sequence[Mapping[str, Any]]]], series: str) -> list[dict[str, Any]]:
    """One row per size: size_B, and the series (µs or MB/s) of every named curve that has the size."""
    column = AXES[series][0]
    by_size: dict[int, dict[str, Any]] = {}
    for name, rows in named:
        for r in rows:
            by_size.setdefault(int(r["size_B"]), {})[name] = float(r[column])
    return [{"size_B": size, **by_size[size]} for size in sorted(by_size)]


def metric_rows(
    named: Sequence[tuple[str, Mapping[str, Any]]], ends: Mapping[str, Mapping[str, Sequence[float] | None]] | None = None
) -> list[dict[str, Any]]:
    """Start-up latency, largest bandwidth and its size, N½ and the largest message: one row each with one column per curve, as texts.

    ``ends``: curve -> metric -> its interval (low, median, high), written behind the number.
    """

    def value_text(name: str, metric: metrics.Metric, curve: Mapping[str, Any]) -> str:
        text = readable(metric.show(metric.of(curve, curve["rows"])))
        interval = span((ends or {}).get(name, {}).get(metric.name), metric.unit)
        return f"{text} ({interval})" if interval else text

    rows = [{"what": metric.label, **{name: value_text(name, metric, c) for name, c in named}} for metric in map(metrics.parse, METRICS)]
    best = {name: max(c["rows"], key=lambda r: float(r["bandwidth_MBps"]), default=None) for name, c in named}
    rows.insert(2, {"what": _("at the size"), **{name: format_bytes(r["size_B"]) if r else "" for name, r in best.items()}})
    last = {name: max(c["rows"], key=lambda r: int(r["size_B"]), default=None) for name, c in named}
    rows.append({"what": _("bandwidth of the largest message"), **{
        name: f"{r['bandwidth_MBps']:.4g} MB/s ({format_bytes(r['size_B'])})" if r else "" for name, r in last.items()}})
    return rows
