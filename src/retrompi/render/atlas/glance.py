"""The figure that a report on all papers opens with: how far off the held-out numbers and the blind curves are, at a glance."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from retrompi.papers.judging.verdicts import Verdict
from retrompi.papers.predict.scores import Score
from retrompi.papers.statements.claims import Claim, paper_key
from retrompi.render.figures.figures import AXIS, PALETTE, layout

__all__ = ["figure", "ratio"]

_TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
_HELD, _MISSED, _BLIND = PALETTE[0], PALETTE[1], PALETTE[2]


def ratio(verdict: Verdict) -> float | None:
    """The simulated number over the published one (the geometric middle of its range); None where either is no positive number, or the
    published one has no two ends."""
    low, high, found = verdict.low, verdict.high, verdict.observed
    if low is None or high is None or isinstance(found, str | bool) or found is None or min(low, high, found) <= 0:
        return None
    value = float(found) / math.sqrt(low * high)
    return value if math.isfinite(value) else None


def figure(claims: Sequence[Claim], verdicts: Sequence[Verdict], blind: Sequence[Score]) -> go.Figure:
    """A row for each paper with its held-out numbers, and one for each runtime that was predicted blind with its curves; across, simulated
    over published. ``claims`` and ``verdicts`` are the same rows. What cannot be a ratio (words, orders, bounds) is not in it."""
    held = [(paper_key(c.paper), v, value) for c, v in zip(claims, verdicts, strict=True)
            if v.use == "validate" and v.verdict in ("pass", "fail") and (value := ratio(v)) is not None]
    drawn = go.Figure()
    for name, word, colour, symbol in (("held out, passes", "pass", _HELD, "circle"), ("held out, fails", "fail", _MISSED, "x")):
        mine = [row for row in held if row[1].verdict == word]
        drawn.add_scatter(
            x=[value for *_, value in mine], y=[paper for paper, *_ in mine], mode="markers", name=name,
            marker={"color": colour, "symbol": symbol, "size": 9, "opacity": 0.7},
            customdata=[f"{v.id}: {v.observable}, {v.observed:.4g} {v.unit}; published {v.published}; × {x:.3g}" for _, v, x in mine],
            hovertemplate="%{customdata}<extra></extra>",
        )
    drawn.add_scatter(
        x=[1 + s.bias for s in blind], y=[f"blind: {s.runtime}" for s in blind], mode="markers",
        name="a curve predicted blind, median of its points",
        marker={"color": _BLIND, "symbol": "diamond", "size": 9, "opacity": 0.7},
        customdata=[f"{s.prediction}, {s.inside:.0%} of {s.points} points inside their interval, × {1 + s.bias:.3g}" for s in blind],
        hovertemplate="%{customdata}<extra></extra>",
    )
    layout(drawn, "Simulated over published: held-out numbers, and curves predicted blind")
    rows = [*dict.fromkeys(paper for paper, *_ in held), *dict.fromkeys(f"blind: {s.runtime}" for s in blind)]
    values = [v for t in drawn.data for v in t.x]
    low, high = min([0.5, *values]) / 1.2, max([2, *values]) * 1.2
    drawn.update_layout(
        xaxis={**AXIS, "type": "log", "range": [math.log10(low), math.log10(high)], "tickvals": _TICKS,
               "ticktext": [f"× {t:g}" for t in _TICKS], "title": {"text": "simulated / published", "standoff": 12}},
        yaxis={**AXIS, "type": "category", "categoryorder": "array", "categoryarray": rows[::-1]},
        shapes=[{"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "line": {"color": "#666", "dash": "dot"}}],
    )
    return drawn
