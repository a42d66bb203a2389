"""The one way in which an interval is drawn: a translucent band around a line, an error bar beside a point or on a bar.

The points are computed by pure functions (`pieces`, `band_text`) before they are drawn. A colour is that of the line which the interval
belongs to, its edge a thin line of it, so that bands which overlap, and bands in print, can be told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import plotly.graph_objects as go

from retrompi.base.translate import _

__all__ = ["NOTE", "area", "band_text", "below", "faint", "key", "lower_key", "of_draws", "pieces", "share", "whiskers"]

NOTE = (
    "The interval contains what the parameters' ranges and the measurements leave open and the error of the model itself as far as it is "
    "known; it does not contain what no model here has. See docs/uncertainty.md."
)
"""What an interval stands for, as a page says it once."""
_FILL, _EDGE = 0.24, 0.6
_META = "interval"
_KEY, _BAR = "#555555", "#333333"


def faint(colour: str, alpha: float = 0.22) -> str:
    """A colour (``#rrggbb``) made translucent."""
    r, g, b = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({r},{g},{b},{alpha})"


def share(value: float) -> str:
    """``90 %``: a share of 1 in percent, with as few digits as it has."""
    return f"{100 * value:.4g} %"


def of_draws(completed: float, draws: int) -> str:
    """``all 100 draws`` or ``71 of 100 draws``, for the share ``completed`` of them; the share in percent where ``draws`` is 0."""
    if not draws:
        return share(completed)
    n = round(completed * draws)
    return (_("all {draws} draws") if n == draws else _("{n} of {draws} draws")).format(n=n, draws=draws)


def band_text(level: float, draws: int, completed: Sequence[float] = ()) -> str:
    """The words for the bands of a figure; ``completed``: the share of draws behind each of its intervals, 1 where none is given.

    An interval of those draws that complete says nothing about the others, so the least share is a part of the words. Two lines then,
    as a legend on a phone has no space for one.
    """
    words = _("{share} interval").format(share=share(level))
    least = min((c for c in completed if isfinite(c)), default=1.0)
    if least < 1:
        told = _("{interval} of the draws that<br>complete (at least {draws})")
        return told.format(interval=words, draws=of_draws(least, draws))
    return _("{interval} of {draws} draws").format(interval=words, draws=draws) if draws else words


Piece = tuple[list[Any], list[float]]


def pieces(x: Sequence[Any], low: Sequence[float], high: Sequence[float], *, log: bool = False) -> list[Piece]:
    """The outlines (x, y) of a band: one for each run of neighbouring places where both ends are known.

    A place is left out where an end is not finite, and on a logarithmic axis (``log``) where the upper end is not above 0; a lower end
    at or below 0 is drawn at the smallest positive end, since such an axis has no place for it.
    """
    floor = min((v for ends in (low, high) for v in ends if isfinite(v) and v > 0), default=0.0)
    runs: list[list[tuple[Any, float, float]]] = [[]]
    for at, a, b in zip(x, low, high, strict=True):
        if not (isfinite(a) and isfinite(b)) or (log and b <= 0):
            runs.append([])
        else:
            runs[-1].append((at, max(a, floor) if log else a, b))
    there_and_back = [(run, run[::-1]) for run in runs if run]
    return [([p[0] for p in (*run, *back)], [p[1] for p in run] + [p[2] for p in back]) for run, back in there_and_back]


def area(x: Sequence[Any], low: Sequence[float], high: Sequence[float], colour: str, *, log: bool = False, **more: Any) -> go.Scatter:
    """The band between ``low`` and ``high`` along ``x`` in ``colour`` (``#rrggbb``); ``more`` goes to Plotly's Scatter.

    Where a neighbour is unknown the interval of a single place is a vertical line. Without ``more`` it is not in the legend: it
    belongs to its line.
    """
    xs: list[Any] = []
    ys: list[float | None] = []
    for at, ends in pieces(x, low, high, log=log):
        xs += [None, *at] if xs else at
        ys += [None, *ends] if ys else ends
    return go.Scatter(
        x=xs, y=ys, mode="lines", fill="toself", fillcolor=faint(colour, _FILL), line={"color": faint(colour, _EDGE), "width": 0.8},
        meta=_META, **{"showlegend": False, "hoverinfo": "skip", **more},
    )


def key(words: str) -> go.Scatter:
    """An entry of the legend that says what all bands of a figure are."""
    return go.Scatter(x=[None], y=[None], mode="markers", name=words, hoverinfo="skip", legendrank=2000,
                      marker={"symbol": "square", "size": 14, "color": faint(_KEY, 0.25), "line": {"color": _KEY, "width": 1}})


def lower_key(figure: go.Figure) -> None:
    """Moves the legend down: with the entry of `key` it has a line more, which on a phone would cover the title of the axis."""
    figure.update_layout(legend={"y": -0.24}, xaxis={"title": {"standoff": 4}})


def below(figure: go.Figure) -> None:
    """Moves the bands below all lines and marks of a figure."""
    figure.data = [*(t for t in figure.data if t.meta == _META), *(t for t in figure.data if t.meta != _META)]


def whiskers(at: Sequence[Any], ends: Sequence[tuple[float, float]], *, across: bool = False, **more: Any) -> go.Scatter:
    """The intervals ``ends`` (low, high) of single values at ``at``, lying down if ``across`` (for horizontal bars).

    They are drawn by themselves and not from the values, which are nominal and may lie outside.
    """
    middle = [(low + high) / 2 for low, high in ends]
    half = [(high - low) / 2 for low, high in ends]
    bar = {"type": "data", "array": half, "color": _BAR, "thickness": 1.8, "width": 6}
    x, y = (middle, list(at)) if across else (list(at), middle)
    return go.Scatter(
        x=x, y=y, mode="markers", **{"error_x" if across else "error_y": bar},
        **{"marker": {"size": 1, "color": _BAR}, "showlegend": False, "hoverinfo": "skip", **more},
    )
