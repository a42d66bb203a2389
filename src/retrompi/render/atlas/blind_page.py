"""The atlas's page of the opened blind test: each prediction over its measured curve, the scores, and what was missed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from statistics import median

import plotly.graph_objects as go

from retrompi.base.units import format_bytes
from retrompi.papers.predict import predictions, scores
from retrompi.papers.predict.scores import LaterScore, Score, ScoreGroup
from retrompi.papers.statements.curves import by_name, of
from retrompi.papers.statements.paper import all_papers
from retrompi.render.atlas.matrix import SORT, sortable
from retrompi.render.document.html import Content, boxes, document, number, percent, row, table
from retrompi.render.document.plotted import drawing, figure_html
from retrompi.render.figures import bands
from retrompi.render.figures.figures import PALETTE, layout, name_of, place, size_axis, value_axis

__all__ = ["PAGE", "blind_page", "figure", "summary"]

PAGE = "blind"
"""The name of the page's file, without its ending."""
COARSEST = 0.25
"""Published points are drawn whose reading error is at most this share of their value."""
_PREDICTED, _PUBLISHED, _RAW = PALETTE[0], PALETTE[1], "#555555"
_HEAD = ("curve", "points", "error", "raw layer's error", "bias", "worst", "inside 90 %", "width", "interval score")
_GROUP = ("", "curves", "points", "error", "raw layer's error", "inside 90 %", "interval score")
_AGAIN = ("curve", "again on", "error", "error again", "inside 90 %", "inside again", "width", "width again", "interval score",
          "score again")
_STATES = {"adopted": "explained, in the model", "explained": "explained", "open": "not explained"}


def summary(found: Sequence[Score]) -> list[tuple[str, str, str]]:
    """(what, its number, a remark) of all curves together."""
    points = sum(s.points for s in found)
    opened = sum(s.opened for s in found)
    single = [n.inside for n in scores.numbers() if n.inside is not None]
    return [
        ("Median error of a prediction", f"{100 * median(s.median_error for s in found):.1f} %", f"median over {len(found)} curves"),
        ("The raw layer alone", f"{100 * median(s.raw_error for s in found):.1f} %", "of “the library costs nothing”, on the same points"),
        ("Inside the 90 % intervals", f"{100 * _inside(found):.0f} %",
         f"of {points:,} points; {opened} curves open, {len(found) - opened} closed"),
        ("Single numbers inside", f"{sum(single)} of {len(single)}", "strictly: without a tolerance for their rounding"),
    ]


def _inside(found: Sequence[Score]) -> float:
    return sum(s.points * s.inside for s in found) / sum(s.points for s in found)


def figure(score: Score) -> go.Figure:
    """The bandwidths of an opened curve: predicted, its interval, published, and those of the raw layer."""
    told = predictions.shipped_predictions()[score.prediction]
    values = [v for v in told["value"] if v["size_B"] > 0]
    x = [place(v["size_B"]) for v in values]
    rate = {k: [v["size_B"] / v[f"{k}_s"] / 1e6 for v in values] for k in ("nominal", "low", "high")}
    drawn = go.Figure()
    drawn.add_trace(bands.area(x, rate["high"], rate["low"], _PREDICTED))  # the longer time is the lower rate
    paper, name = score.prediction.split("/")
    curves = of(all_papers()[paper])
    raw = by_name(by_name(name, curves).layer_below, curves)
    shown = (p for p in raw.points if p.error <= COARSEST and 0 < p.size <= values[-1]["size_B"])
    below = sorted({p.size: p for p in shown}.values(), key=lambda p: p.size)
    drawn.add_scatter(x=[place(p.size) for p in below], y=[p.size / p.time / 1e6 for p in below], mode="lines", name="published, raw layer",
                      line={"color": _RAW, "width": 1.5, "dash": "dot"}, customdata=[format_bytes(p.size) for p in below],
                      hovertemplate="raw layer, %{customdata}: %{y:.3g} MB/s<extra></extra>")
    drawn.add_scatter(x=x, y=rate["nominal"], mode="lines", name="predicted", line={"color": _PREDICTED, "width": 2.2},
                      customdata=[format_bytes(v["size_B"]) for v in values],
                      hovertemplate="predicted, %{customdata}: %{y:.3g} MB/s<extra></extra>")
    points = [p for p in scores.published_points(score.curve) if p.size > 0 and p.error <= COARSEST]
    drawn.add_scatter(x=[place(p.size) for p in points], y=[p.size / p.time / 1e6 for p in points], mode="markers", name="published",
                      marker={"color": _PUBLISHED, "size": 5, "symbol": "circle-open"}, customdata=[format_bytes(p.size) for p in points],
                      hovertemplate="published, %{customdata}: %{y:.3g} MB/s<extra></extra>")
    drawn.add_trace(bands.key(f"{bands.share(predictions.LEVEL)} interval"))
    layout(drawn, f"{told['title']}: predicted and published")
    every = [p.size for p in points]
    drawn.update_layout(xaxis=size_axis(every), yaxis=value_axis("bandwidth", "linear", rate["nominal"]))
    bands.lower_key(drawn)
    return drawn


def _link(prediction: str, pages: Collection[str]) -> str:
    """A prediction's name, a link to its row on the page of its paper if that is among ``pages``."""
    paper, _, name = prediction.partition("/")
    shown = escape(prediction)
    return f'<a href="{escape(paper)}.html#blind-{escape(name)}">{shown}</a>' if name and paper in pages else shown


def _row(score: Score, pages: Collection[str]) -> str:
    worst = '<span class="soft">closed</span>'
    if score.worst is not None and score.worst_size is not None:
        worst = f"{100 * score.worst:+.0f} % at {format_bytes(score.worst_size)}"
    shown = predictions.shipped_predictions()[score.prediction]["title"]
    cells: list[Content] = [
        f"{escape(shown)}<br><small>{_link(score.prediction, pages)}</small>", (f"{score.points}", "n"),
        (f"{100 * score.median_error:.1f} %", "n"), (f"{100 * score.raw_error:.1f} %", "n"), (percent(100 * score.bias), "n"),
        (worst, "n"), (f"{100 * score.inside:.0f} %", "n"), (f"× {score.width:.2f}", "n"),
        ("" if score.interval_score is None else f"{score.interval_score:.2f}", "n"),
    ]
    return row(_HEAD, cells, f"score-{score.prediction.replace('/', '-')}")


def _again(found: Sequence[LaterScore], pages: Collection[str]) -> str:
    rows = []
    for a in found:
        s, late = a.first, a.later
        closed = '<span class="soft">closed</span>'
        cells: list[Content] = [
            _link(s.prediction, pages), escape(a.date.partition(" ")[0]),
            (f"{100 * s.median_error:.1f} %", "n"), (closed if late is None else f"{100 * late.median_error:.1f} %", "n"),
            (f"{100 * s.inside:.0f} %", "n"), (closed if late is None else f"{100 * late.inside:.0f} %", "n"),
            (f"× {s.width:.2f}", "n"), (f"× {a.width:.2f}", "n"),
            ("" if s.interval_score is None else f"{s.interval_score:.2f}", "n"),
            ("" if late is None or late.interval_score is None else f"{late.interval_score:.2f}", "n"),
        ]
        rows.append(row(_AGAIN, cells, f"again-{s.prediction.replace('/', '-')}"))
    return sortable(_AGAIN, rows)


def _groups(found: Sequence[ScoreGroup], *, runtimes: bool) -> str:
    rows = []
    for g in found:
        cells: list[Content] = [
            escape(name_of(g.name) if runtimes else g.name), (f"{g.curves}", "n"), (f"{g.points}", "n"),
            (f"{100 * g.median_error:.1f} %", "n"), (f"{100 * g.raw_error:.1f} %", "n"), (f"{100 * g.inside:.0f} %", "n"),
            ("" if g.interval_score is None else f"{g.interval_score:.2f}", "n"),
        ]
        rows.append(row(_GROUP, cells))
    return table(_GROUP, rows)


def _numbers(pages: Collection[str]) -> str:
    head = ("number", "system, prediction", "what", "published", "predicted", "90 % interval", "inside")
    rows = []
    for n in scores.numbers():
        known = n.inside is not None
        mark = '<span class="pass">✓ inside</span>' if n.inside else '<span class="fail">✗ outside</span>'
        predicted = (f"{number(n.nominal)} {escape(n.unit)}", f"{number(n.low)} – {number(n.high)}") if known else ("", "")
        cells: list[Content] = [
            (escape(n.id), "id"), f"{escape(n.system)}<br><small>{_link(n.prediction, pages) if n.prediction else 'not predicted'}</small>",
            escape(n.observable),
            (f"{number(n.published)} {escape(n.unit)}", "n"), (predicted[0], "n"), (predicted[1], "n"), mark if known else "",
        ]
        rows.append(row(head, cells))
    return table(head, rows)


def _misses(pages: Collection[str]) -> str:
    by_name = {s.prediction: s for s in scores.scores()}
    known = {n.id for n in scores.numbers()}
    parts = []
    for miss in scores.misses():
        where = [f"{_link(p, pages)}: bias {percent(100 * by_name[p].bias)}" if p in by_name else _link(p, pages) for p in miss.predictions]
        where += [escape(n) for n in miss.numbers if n in known]
        parts.append(f'<div><h3>{escape(miss.title)}</h3><p><span class="mechanism">{_STATES[miss.state]}</span></p>'
                     f'<p>{escape(miss.text)}</p><p class="soft"><small>{"; ".join(where)}</small></p></div>')
    return f'<div class="why">{"".join(parts)}</div>'


def blind_page(pages: Collection[str], home: str = "index.html") -> str:
    """The page as HTML text; it loads no external resource. ``pages``: the papers that have a page beside it."""
    found, later = scores.scores(), scores.again()
    opened, closed = ([s for s in found if s.opened is is_open] for is_open in (True, False))
    figures = {f"blind-{s.prediction.replace('/', '-')}": figure(s) for s in opened}
    drawn = "".join(figure_html(f, n) for n, f in figures.items())
    made = sorted({str(predictions.shipped_predictions()[s.prediction]["date"]) for s in found})
    return document(
        "The blind test",
        f"""<header><h1>The blind test: predicted first, compared afterwards</h1>
<p>{len(predictions.shipped_predictions())} predictions were committed (those below between {made[0]} and {made[-1]}), from the runtimes'
source code and from machines that were fitted to the layers below message passing only. {len(found)} of the whole curves were then
laid over published ones, of which nobody at the project had seen a point. {len(opened)} are open now; {len(closed)} stay closed, and judge
what is changed because of the open ones. The predictions are as they were written.</p>
<nav><a href="{escape(home)}">All papers</a> <a href="#curves">Curves</a> <a href="#scores">Scores</a>
<a href="#again">Predicted again</a> <a href="#groups">Runtimes and machines</a> <a href="#numbers">Single numbers</a>
<a href="#misses">What was missed</a></nav></header>
{boxes(summary(found))}
<h2 id="curves">Predicted and published</h2>
<p class="soft">Lines: nominal values. Bands: 90 % intervals. Circles: published. Dotted: the published curve of the raw layer below.</p>
<div class="figures">{drawn}</div>
<h2 id="scores">Scores by curve</h2>
<p>Error: median over the points of predicted time over published, less 1; the <b>raw layer's error</b> is that of a library that costs
nothing. Bias: the same with its sign (negative: too fast). Points that the drawing does not show to 5 % are left out. Width: median of high
over low. Interval score: width in log(time) plus 20 times the distance of what lies outside; smaller is better.</p>
{sortable(_HEAD, [_row(s, pages) for s in opened])}
<h3>Closed: only these scores are known here</h3>{sortable(_HEAD, [_row(s, pages) for s in closed])}
<h2 id="again">Predicted again</h2>
<p>What the models of today say of {len(later)} of these curves, in files beside the first ones. Closed curves are predicted blind once
more: of them the width alone is known. Of an opened curve it is no prediction, but shows what the changes did. The median width was
× {median(a.first.width for a in later):.2f} and is × {median(a.width for a in later):.2f}; of the points of opened curves
{100 * _inside([a.first for a in later if a.later]):.0f} % were inside, and
{100 * _inside([a.later for a in later if a.later]):.0f} % are.</p>
{_again(later, pages)}
<h2 id="groups">By runtime and by machine</h2>
<div class="beside"><div>{_groups(scores.groups(found, "runtime"), runtimes=True)}</div>
<div>{_groups(scores.groups(found, "machine"), runtimes=False)}</div></div>
<h2 id="numbers">Single numbers</h2>{_numbers(pages)}
<h2 id="misses">What was missed, and what is known of it</h2>
<p>What was tried for each is in <code>validate/predictions/rivals.md</code>, written down before it was run. A mechanism is adopted for its
reason in a source, never for the number.</p>
{_misses(pages)}
{drawing(figures)}<script>{SORT}</script>""",
    )
