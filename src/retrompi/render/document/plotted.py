"""Figures on a page that is one file: their places, the numbers behind each, and what draws them.

A figure is sketched at once (sketch.js); Plotly, which the file carries compressed, is unpacked when a figure comes into view and draws it
anew, then with a pointer that tells values. Nothing is fetched, and nothing on a figure offers to send it anywhere.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape, unescape
from pathlib import Path
from re import sub
from typing import Any

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from retrompi.render.document.html import config, scroller

__all__ = ["drawing", "drawn_late", "figure_html", "numbers", "packed_plotly", "sketch_script", "words_script"]

_LEGEND = 6
MOST_ROWS = 600
"""Rows of the numbers behind one figure; a figure of more says so."""


def figure_html(figure: go.Figure, name: str, tall: bool = False) -> str:
    """The place of a figure on a page, under its title, with its numbers folded up below; `drawing` fills it. ``tall``: a higher one."""
    # The title is in the page, where it wraps on a phone; inside the drawing it would not.
    title = _plain(figure.layout.title.text or "")
    # A long legend reduces the height of the plot.
    high = " tall" if tall or sum(bool(t.name) and t.showlegend is not False for t in figure.data) > _LEGEND else ""
    shown = escape(title or name.replace("-", " "))
    if not figure.data:
        return f'<p class="soft">{shown}: nothing to draw, no point of it has a result.</p>'
    box = f'<div class="figure{high}" id="figure-{escape(name)}" role="figure" aria-label="{shown}; its numbers follow below"></div>'
    return f"<figure><figcaption>{escape(title)}</figcaption>{box}{_behind(figure, shown)}</figure>"


def _plain(text: Any) -> str:
    """Plotly's markup as a text."""
    return unescape(sub(r"<[^>]*>", "", sub(r"<br\s*/?>", " ", str(text)))).strip()


def _behind(figure: go.Figure, title: str) -> str:
    head, rows = numbers(figure)
    if not rows:
        return ""
    names = "".join(f'<th scope="col">{escape(h)}</th>' for h in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows[:MOST_ROWS])
    more = f'<p class="soft">The first {MOST_ROWS} of {len(rows):,} points.</p>' if len(rows) > MOST_ROWS else ""
    region = scroller(f"numbers: {unescape(title)}")
    table = f'<table class="plain"><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>'
    return f'<details class="behind"><summary>Numbers of this figure</summary>{more}{region}{table}</div></details>'


def numbers(figure: go.Figure) -> tuple[tuple[str, str, str], list[tuple[str, str, str]]]:
    """(heads, rows) of series, place and value of every point that a figure draws, as texts; bands and nameless marks are left out."""
    title = _plain(figure.layout.title.text or "")
    # Marks without a name are ornaments beside curves, and the content of a figure of bars alone.
    alone = not any(t.name and t.type in ("scatter", "bar") for t in figure.data)
    found = [row for t in figure.data for row in _points(figure, t, _plain(t.name or (title if alone or t.type == "bar" else "")))]
    across = any(t.type == "bar" and t.orientation == "h" for t in figure.data)
    x, y = (_plain(a.title.text or "") for a in (figure.layout.xaxis, figure.layout.yaxis))
    return ("series", *((y or "bar", x or "value") if across else (x or "place", y or "value"))), found


def _points(figure: go.Figure, trace: Any, name: str) -> Iterator[tuple[str, str, str]]:
    if trace.type == "heatmap":
        for line, row in zip(_as_list(trace.y), _as_list(trace.z), strict=False):
            cells = zip(_as_list(trace.x), row, strict=False)
            yield from ((f"{_plain(line)}", _plain(x), _value_text(v)) for x, v in cells if v is not None)
    elif trace.type in ("scatter", "bar") and name and getattr(trace, "fill", None) in (None, "none"):
        across = trace.type == "bar" and trace.orientation == "h"
        places, values = (_as_list(v) for v in ((trace.y, trace.x) if across else (trace.x, trace.y)))
        shown = _as_list(trace.customdata) if trace.type == "scatter" else []
        log = figure.layout.xaxis.type == "log"
        for i, (place, value) in enumerate(zip(places, values, strict=False)):
            if place is None or value is None:
                continue
            at = shown[i][0] if i < len(shown) and isinstance(shown[i], (list, tuple)) else shown[i] if i < len(shown) else place
            # Half a byte is where the axis has the empty message (`retrompi.render.figures.figures.ZERO`).
            yield name, "0" if log and at == 0.5 else _value_text(at), _value_text(value)


def _as_list(values: Any) -> list[Any]:
    return [] if values is None else [v.tolist() if hasattr(v, "tolist") else v for v in values]


def _value_text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else _plain(value)


@cache
def sketch_script() -> str:
    """The script that sketches a figure."""
    return Path(__file__).with_name("sketch.js").read_text(encoding="utf-8")


@cache
def words_script() -> str:
    """The script with which others say what they say in the language of their page."""
    return Path(__file__).with_name("words.js").read_text(encoding="utf-8")


@cache
def packed_plotly() -> str:
    """Plotly, compressed, as text: a third of it."""
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode("ascii")


_DRAW = """
(() => {
  const figures = JSON.parse(document.getElementById('figures').textContent), config = %s;
  const places = figures.map(([id]) => document.getElementById(id));
  figures.forEach(([, data, layout], i) => window.retrompiSketch.draw(places[i], { data, layout }));
  if (!window.DecompressionStream) return; // an old browser keeps the sketches
  let begun = false;
  const draw = async () => {
    if (begun) return;
    begun = true;
    const packed = Uint8Array.from(atob(document.getElementById('plotly').textContent), (c) => c.charCodeAt(0));
    const plotly = document.createElement('script');
    plotly.textContent = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
    document.head.append(plotly);
    figures.forEach(([id, data, layout], i) => {
      window.retrompiSketch.clear(places[i]);
      Plotly.newPlot(id, data, layout, config).then((drawn) => { // letters of ticks read one by one tell nothing: its numbers follow
        drawn.querySelectorAll('svg').forEach((e) => e.setAttribute('aria-hidden', 'true'));
        const { legend, _size } = drawn._fullLayout; // its place is a share of the height, that of ticks and title is in pixels
        const below = drawn.layout.xaxis?.title?.text ? 78 : 40;
        const near = legend?.orientation === 'h' && legend.y < 0 && -legend.y * _size.h < below;
        if (near) Plotly.relayout(drawn, { 'legend.y': -below / _size.h });
      });
    });
    document.documentElement.dataset.plotted = '1';
  };
  const near = new IntersectionObserver((seen) => {
    if (!seen.some((e) => e.isIntersecting)) return;
    near.disconnect();
    setTimeout(draw, 100);
  }, { rootMargin: '500px' });
  places.forEach((place) => near.observe(place));
  addEventListener('beforeprint', draw);
})();
"""


def drawing(figures: Mapping[str, go.Figure]) -> str:
    """The script that draws the figures of `figure_html`. It comes last: a figure drawn before its neighbours exist would take their
    space."""
    parts = []
    for name, figure in figures.items():
        if not figure.data:
            continue
        spec = json.loads(figure.to_json())
        spec["layout"].pop("title", None)
        spec["layout"]["margin"]["t"] -= 10  # keeps space for the buttons above the labels
        parts.append([f"figure-{name}", spec["data"], spec["layout"]])
    return drawn_late(parts)


def drawn_late(parts: Sequence[Sequence[Any]]) -> str:
    """The same for figures as (id of the element, data, layout); "" for none."""
    if not parts:
        return ""
    data = json.dumps(parts, separators=(",", ":")).replace("</", "<\\/")
    return f"""<script type="application/json" id="figures">{data}</script>
<script type="text/plain" id="plotly">{packed_plotly()}</script>
<script>{sketch_script()}{_DRAW % json.dumps(config())}</script>"""
