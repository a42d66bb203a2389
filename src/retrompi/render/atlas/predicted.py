"""Blind predictions on the page of their source: a figure for each machine and network, and a table of the curves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from retrompi.base.units import format_bytes, format_quantity, format_span
from retrompi.papers.predict import predictions
from retrompi.papers.predict.matrix import place_of
from retrompi.render.atlas.matrix import sortable
from retrompi.render.document.html import Content, row
from retrompi.render.figures.bands import area, key
from retrompi.render.figures.figures import DASHES, PALETTE, layout, place, size_axis, value_axis

__all__ = ["PREFIX", "blind_figures", "blind_html", "blind_rows"]

PREFIX = "blind-"
"""Name prefix of the figures."""
_MANY = 6
"""With more curves than this the legend takes much of the figure's height."""
_HEAD = ("curve", "of the smallest message", "5 to 95 %", "largest bandwidth", "5 to 95 %", "at", "made")


def blind_rows(paper: str) -> list[dict[str, Any]]:
    """Flat rows of the paper's predicted curves for the CSV export."""
    return [
        {"curve": name.partition("/")[2], "model": told["model"], "platform": told["platform"], "set": " ".join(told.get("set", ())),
         **value, "date": told["date"], "commit": told["commit"]}
        for name, told in predictions.shipped_predictions(paper).items() for value in told["value"]
    ]


def blind_figures(paper: str) -> dict[str, go.Figure]:
    """Name -> figure of the bandwidths that are predicted on one platform, each with its interval."""
    by_platform: dict[str, list[Mapping[str, Any]]] = {}
    for told in predictions.shipped_predictions(paper).values():
        by_platform.setdefault(told["platform"], []).append(told)
    return {f"{PREFIX}{i}": _figure(platform, mine) for i, (platform, mine) in enumerate(by_platform.items(), 1)}


def _figure(platform: str, mine: Sequence[Mapping[str, Any]]) -> go.Figure:
    figure = go.Figure()
    rates: list[float] = []
    every: list[int] = []
    names = _short([str(told["title"]) for told in mine])
    for i, told in enumerate(mine):
        values = [v for v in told["value"] if v["size_B"] > 0]
        colour, dash = PALETTE[i % 7], DASHES[i // 7 % len(DASHES)]
        x = [place(v["size_B"]) for v in values]
        every += [v["size_B"] for v in values]
        rate = {k: [v["size_B"] / v[f"{k}_s"] / 1e6 for v in values] for k in ("nominal", "low", "high")}
        rates += rate["nominal"]
        figure.add_trace(area(x, rate["high"], rate["low"], colour, legendgroup=str(i)))  # the longer time is the lower rate
        shown = [f"{format_bytes(v['size_B'])}: {format_span(v['low_s'], v['high_s'], 's')}, "
                 f"{format_span(v['parameters_low_s'], v['parameters_high_s'], 's')} by the parameters alone" for v in values]
        figure.add_scatter(x=x, y=rate["nominal"], mode="lines", name=names[i], legendgroup=str(i), text=shown,
                           hovertemplate="%{text}<br>%{y:.3g} MB/s<extra>%{fullData.name}</extra>",
                           line={"color": colour, "width": 2, "dash": dash})
    figure.add_trace(key("5 to 95 % over the draws"))
    layout(figure, f"{'; '.join(filter(None, place_of(platform)))}: predicted blind")
    figure.update_layout(xaxis=size_axis(every), yaxis=value_axis("bandwidth", "linear", rates))
    figure.update_layout(xaxis={"title": {"standoff": 4}}, legend={"y": -0.28 if len(mine) > _MANY else -0.2})
    return figure


def _short(titles: Sequence[str]) -> list[str]:
    """The titles of curves without the card, with which most of them end after a comma."""
    out = list(titles)
    while len(out) > 1:
        (end, count), = Counter(t.rpartition(", ")[2] for t in out).most_common(1)
        if 2 * count <= len(out) or any(t == end for t in out):
            break
        out = [t.removesuffix(f", {end}") for t in out]
    return out


def blind_html(paper: str, drawn: Sequence[str], scored: str = "") -> str:
    """The section of a source's page: ``drawn`` figures, then a row for each curve; "" without predictions.

    ``scored``: the page of the scores.
    """
    found = predictions.shipped_predictions(paper)
    if not found:
        return ""
    came = f'; <a href="{escape(scored)}">what came of them</a> has a page of its own' if scored else ""
    rows = []
    for name, told in found.items():
        short = name.partition("/")[2]
        values = [v for v in told["value"] if v["size_B"] > 0]
        first, best = values[0], max(values, key=lambda v: v["size_B"] / v["nominal_s"])
        size = best["size_B"]
        options = f'<br><small class="soft">{escape(" ".join(told.get("set", ())))}</small>' if told.get("set") else ""
        cells: list[Content] = [
            f'<span class="id">{escape(short)}</span><br><small>{escape(told["title"])}</small>{options}',
            (format_quantity(first["nominal_s"], "s"), "n"), (format_span(first["low_s"], first["high_s"], "s"), "n"),
            (format_quantity(size / best["nominal_s"], "B/s"), "n"),
            (format_span(size / best["high_s"], size / best["low_s"], "B/s"), "n"), (format_bytes(size), "n"),
            f'<small>{escape(told["date"])}, commit {escape(told["commit"][:12])}</small>',
        ]
        rows.append(row(_HEAD, cells, f"blind-{short}"))
    return (
        f"<p><b>Blind</b>: the source prints these curves, and the project had not looked at them. {len(found)} curves were simulated "
        "from the runtimes' source code and the layers below them, and written down with date and commit before anything could be "
        "compared. Lines: nominal values; bands: 5 to 95 % over draws of the parameters, from posteriors where something was fitted, and "
        "of the model's discrepancy. "
        f"The files, with all that was drawn, are in <code>validate/predictions/{escape(paper)}</code>{came}.</p>"
        f'<div class="figures">{"".join(drawn)}</div>{sortable(_HEAD, rows)}'
    )
