"""Pieces of HTML that the pages share: the style sheet, cells and tables, numbers, and the page frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from retrompi.base.errors import InputError
from retrompi.base.translate import ENGLISH, _, language, lazy
from retrompi.papers.judging.verdicts import Verdict

__all__ = [
    "CONFIG",
    "CSS",
    "SIGN",
    "THIRD",
    "USES",
    "Content",
    "bounds",
    "boxes",
    "brief",
    "cell",
    "config",
    "document",
    "number",
    "percent",
    "ranges",
    "row",
    "save",
    "scroller",
    "table",
]

CSS = """
:root { --ink: #1a1a1a; --soft: #555; --line: #d6d6d6; --paper: #fff; --tint: #f5f6f8;
  --pass: #0a6b4b; --fail: #b03a00; --open: #5c5c5c; --link: #0059a0; --rim: #0072b2; --warn: #fdf1eb;
  --good-tint: #e2f3ec; --bad-tint: #fbe6dc; --open-tint: #ececec; --fit: #5a4a00; --fit-tint: #f6efcf; --blind: #11447a;
  --blind-tint: #e1ecf8; color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --soft: #b4b4b4; --line: #444; --paper: #16181b; --tint: #212429;
    --pass: #6fd3ab; --fail: #ff9d6f; --open: #b8b8b8; --link: #7fbcf5; --rim: #56b4e9; --warn: #35221a;
    --good-tint: #16352a; --bad-tint: #43261a; --open-tint: #33363b; --fit: #ecd982; --fit-tint: #3a3414; --blind: #a5cdf7;
    --blind-tint: #1b2f47; }
  .figure { filter: invert(.91) hue-rotate(180deg); --ink: #1a1a1a; --line: #d6d6d6; --soft: #555; --paper: #fff;
    background: #fff; color: var(--ink); } /* drawn for white paper: lightness is swapped, hues stay */
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1760px; padding: 1rem clamp(.7rem, 2.5vw, 2.5rem) 4rem; color: var(--ink); background: var(--paper);
  font: 1.06rem/1.55 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: clamp(1.4rem, 3.2vw, 2.2rem); line-height: 1.2; margin: .6rem 0 .2rem; }
h2 { font-size: clamp(1.2rem, 2.3vw, 1.6rem); margin: 2.4rem 0 .6rem; border-bottom: 2px solid var(--ink); padding-bottom: .2rem; }
h3 { font-size: 1.12rem; margin: 1.2rem 0 .2rem; }
p { max-width: 78ch; margin: .4rem 0; }
nav { font-size: .95rem; display: flex; flex-wrap: wrap; gap: 0 1.1rem; } nav a { white-space: nowrap; padding: .15rem 0; }
a { color: var(--link); }
.soft { color: var(--soft); } small { font-size: .88rem; }
.counts { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); margin: 1rem 0; }
.count { background: var(--tint); border-left: .35rem solid var(--soft); padding: .6rem .9rem; }
.count b { display: block; font-size: 1.5rem; line-height: 1.25; }
.figures { display: grid; gap: 1rem 1.6rem; grid-template-columns: repeat(auto-fit, minmax(min(34rem, 100%), 1fr)); }
figure { margin: 0; min-width: 0; } figcaption { font-weight: 600; font-size: 1.08rem; }
.figure { height: clamp(27rem, 62vh, 46rem); min-width: 0; } .figure.tall { height: clamp(38rem, 68vh, 52rem); }
.figure { overflow: hidden; } .sketch-legend { list-style: none; display: flex; flex-wrap: wrap; gap: .1rem 1rem; margin: 0;
  padding: 0 .3rem; font-size: .86rem; }
.sketch-legend li { display: inline-flex; align-items: center; gap: .35rem; } .sketch-legend svg { flex: none; }
.figure text { fill: var(--ink); } .figure .grid { stroke: var(--line); } .figure .axis { stroke: var(--soft); fill: none; }
details.behind { font-size: .93rem; margin: .2rem 0; } details.behind .scroll { max-height: 24rem; overflow-y: auto; }
table.plain { width: auto; } table.plain :is(td, th) { padding-right: 1.4rem; font-variant-numeric: tabular-nums; }
.why { display: grid; gap: .4rem 2rem; grid-template-columns: repeat(auto-fit, minmax(min(28rem, 100%), 1fr)); }
.mechanism { display: inline-block; background: var(--tint); border: 1px solid var(--line);
  border-radius: .3rem; padding: 0 .45rem; font-size: .92rem; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; line-height: 1.4; }
th { text-align: left; border-bottom: 2px solid var(--ink); padding: .35rem .6rem .35rem 0; vertical-align: bottom; }
td { border-bottom: 1px solid var(--line); padding: .4rem .6rem .4rem 0; vertical-align: top; }
td.n { font-variant-numeric: tabular-nums; white-space: nowrap; }
.id { white-space: nowrap; font-weight: 600; }
.pass, .fail, .unjudged { font-weight: 700; white-space: nowrap; }
.pass { color: var(--pass); } .fail { color: var(--fail); } .unjudged { color: var(--open); font-weight: 500; }
.contradiction { display: block; border-left: .2rem solid #E69F00; padding-left: .5rem; margin-top: .2rem; }
details { margin: .7rem 0; } summary { cursor: pointer; font-weight: 600; font-size: 1.05rem; padding: .3rem 0; }
ul.claims { margin: .2rem 0 .8rem; padding-left: 1.1rem; font-size: .9rem; color: var(--soft); }
.scroll { overflow-x: auto; } .scroll:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
td > div > a:not(:only-child) { display: inline-block; min-width: 1.5rem; min-height: 1.5rem; } /* several in a cell: a finger hits one */
.exhibit { margin: 1.6rem 0 2.4rem; }
.beside { display: grid; gap: .6rem 2rem; align-items: start; grid-template-columns: repeat(auto-fit, minmax(min(34rem, 100%), 1fr)); }
.beside > div { min-width: 0; } .above > figure { max-width: 60rem; margin-top: 1rem; }
table.grid { width: auto; min-width: min(100%, 40rem); } table.grid td, table.grid th { padding-right: 1.3rem; white-space: nowrap; }
table.grid td:first-child, table.grid th:first-child { position: sticky; left: 0; background: var(--paper); font-weight: 600;
  white-space: normal; min-width: 7.5rem; }
table.grid td b { font-size: 1.06em; } table.grid small { display: block; color: var(--soft); }
table.matrix th { text-align: center; padding: .3rem .8rem; } table.matrix th[scope=row] { text-align: left; font-weight: 600;
  border-bottom: 1px solid var(--line); }
table.matrix td { text-align: center; padding: .3rem .5rem; } table.matrix thead tr:first-child th { border-bottom: 1px solid var(--line); }
table.matrix td a { display: inline-block; padding: .1rem .5rem; border-radius: .3rem; text-decoration: none; font-weight: 700;
  white-space: nowrap; }
a.good { background: var(--good-tint); color: var(--pass); } a.bad { background: var(--bad-tint); color: var(--fail); }
a.open { background: var(--open-tint); color: var(--open); } a.fitted { background: var(--fit-tint); color: var(--fit); }
a.blind { background: var(--blind-tint); color: var(--blind); }
table.upright thead th { vertical-align: bottom; padding: .3rem .1rem; }
table.upright thead th span { writing-mode: vertical-rl; rotate: 180deg; } table.upright thead th:first-child { text-align: left; }
table.upright td { padding: .2rem .12rem; } table.upright td a { padding: .1rem .3rem; font-size: .88rem; }
table.upright th[scope=row] { line-height: 1.25; font-size: .9rem; min-width: min(15rem, 40vw) !important; max-width: 21rem; }
table.upright th small { font-weight: 400; } table.sortable th button { all: unset; cursor: pointer; font-weight: 700; }
table.sortable th button:focus-visible { outline: 2px solid var(--link); }
table.sortable th[aria-sort=ascending] button::after { content: " ▲"; }
table.sortable th[aria-sort=descending] button::after { content: " ▼"; } table.matrix tr.sum { background: var(--tint); }
.papers { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); margin: 1rem 0; }
.paper { border: 1px solid var(--line); border-top: .35rem solid var(--rim); padding: .5rem 1rem .8rem; }
.paper h3 { margin: .3rem 0; } .chips a { display: inline-block; margin: 0 .5rem .2rem 0; white-space: nowrap; }
.prior { position: relative; display: inline-block; width: 9rem; max-width: 100%; height: .6rem; background: var(--open-tint);
  border-radius: .2rem; vertical-align: middle; }
.prior i { position: absolute; top: 0; bottom: 0; background: var(--rim); border-radius: .2rem; }
.prior b { position: absolute; top: -.15rem; bottom: -.15rem; width: 2px; background: var(--ink); }
.defect { border-left: .35rem solid var(--fail); background: var(--warn); padding: .5rem .9rem; }
@media (max-width: 760px) {
  table.stack thead { display: none; }
  table.stack tr { display: block; border-bottom: 2px solid var(--line); padding: .5rem 0; }
  table.stack td { display: grid; grid-template-columns: 6.6rem 1fr; gap: .6rem; border: 0; padding: .12rem 0;
    white-space: normal; overflow-wrap: anywhere; }
  table.stack td::before { content: attr(data-label); color: var(--soft); font-size: .86rem; }
  table.stack td:empty { display: none; }
}
@media print { details { display: block; } .figure { break-inside: avoid; } }
"""

SIGN = {"pass": "✓ pass", "fail": "✗ fail", "unjudged": "· unjudged"}
THIRD = {"agrees": "= agrees", "cannot tell": "? cannot tell", "disagrees": "≠ disagrees"}
"""The third verdict, over draws, with its sign."""
CONFIG: dict[str, Any] = {
    "displaylogo": False, "responsive": True, "modeBarButtonsToRemove": ["lasso2d", "select2d"],
    "showSendToCloud": False, "showEditInChartStudio": False, "showLink": False, "plotlyServerURL": "",
}
"""Plotly's configuration of every figure: what a figure shows stays on the machine."""
_PLOTLY = (
    lazy("Download plot as a PNG"), lazy("Zoom"), lazy("Pan"), lazy("Zoom in"), lazy("Zoom out"), lazy("Autoscale"), lazy("Reset axes"),
    lazy("Double-click to zoom back out"), lazy("Double-click on legend to isolate one trace"),
)
"""What Plotly itself says on a figure, by its own keys."""
USES = (
    ("calibrate", "Fit", "may be used by calibration"),
    ("validate", "Held out", "held out, never used by a fit"),
    ("exclude", "Excluded", "contradicted within the paper; shown, never judged"),
    ("context", "Context", "configuration and definitions"),
)


def config() -> dict[str, Any]:
    """`CONFIG`, with Plotly's words and the space between thousands (`retrompi.base.translate.count`) of the language at hand."""
    spoken = language()
    if spoken == ENGLISH:
        return CONFIG
    said = {"dictionary": {text: _(text) for text in _PLOTLY}, "format": {"decimal": ".", "thousands": "\u202f"}}
    return {**CONFIG, "locale": spoken, "locales": {spoken: said}}


def number(value: float | str | None) -> str:
    """A number formatted for readers; text is escaped, an empty text for None."""
    if value is None:
        return ""
    if isinstance(value, str):
        return escape(value)
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.4g}"


def brief(seconds: float) -> str:
    """A time with three digits, in µs or a larger unit."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def bounds(v: Verdict) -> str:
    """The reading range of the published statement: ``low – high unit``."""
    if v.low is None and v.high is None:
        return ""
    if v.high is None:
        return f"≥ {number(v.low)}"
    bounds = number(v.low) if v.low == v.high else f"{number(v.low)} – {number(v.high)}"
    return f"{bounds} {escape(v.unit)}"


def cell(label: str, html: str, css: str = "") -> str:
    """A cell of ready HTML, which carries its column's label for narrow screens."""
    name = f' class="{css}"' if css else ""
    # A single child element: on a phone the cell is a grid of label and content.
    return f'<td data-label="{label}"{name}><div>{html}</div></td>' if html else f'<td data-label="{label}"{name}></td>'


Content = str | tuple[str, str]
"""The content of a cell: ready HTML, or a tuple of HTML and the cell's CSS class ("n": a number)."""


def row(head: Sequence[str], cells: Sequence[Content], mark: str = "") -> str:
    """A row of a table with the columns ``head``; ``mark`` is the row's id, for links."""
    shown = "".join(cell(escape(h), *((c,) if isinstance(c, str) else c)) for h, c in zip(head, cells, strict=True))
    return f'<tr id="{mark}">{shown}</tr>' if mark else f"<tr>{shown}</tr>"


def table(head: Sequence[str], rows: Iterable[str | Sequence[Content]], css: str = "stack") -> str:
    """A table of cells, or of ready rows; on a phone, css class "stack" shows each row as a card."""
    names = "".join(f'<th scope="col">{escape(h)}</th>' for h in head)
    body = "".join(r if isinstance(r, str) else row(head, r) for r in rows)
    opened = f'{scroller(", ".join(h for h in head if h))}<table class="{css}">'
    return f"{opened}<thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>"


def scroller(name: str) -> str:
    """The opening tag of what scrolls a wide table in itself: the keyboard reaches it, and a screen reader says what it is."""
    return f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(name)}">'


def boxes(shown: Iterable[tuple[str, str, str]]) -> str:
    """Numbers at the top of a page: (what, the number, a remark), all ready HTML."""
    inside = (f'<div class="count">{a}<b>{b}</b><small class="soft">{c}</small></div>' for a, b, c in shown)
    return f'<div class="counts">{"".join(inside)}</div>'


def percent(value: float | None) -> str:
    """A signed deviation in percent."""
    if value is None:
        return ""
    return f"{value:+.1f} %" if abs(value) >= 0.05 else "0.0 %"


def ranges(numbers: Iterable[int]) -> str:
    """``1, 2, 3, 7`` as ``1–3, 7``."""
    out: list[list[int]] = []
    for n in sorted(set(numbers)):
        if out and n == out[-1][1] + 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in out)


def document(title: str, body: str, script: str = "", language: str = "en") -> str:
    """A complete page that loads no external resource; ``script`` is ready JavaScript for its head."""
    inline = f"<script>{script}</script>" if script else ""
    return f"""<!doctype html>
<html lang="{language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} — retrompi</title><link rel="icon" href="data:,"><style>{CSS}</style>
{inline}</head><body>
{body}</body></html>
"""


def save(path: Path, page: str) -> None:
    """Write a page, and the folder for it. Raises InputError when it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the page: {error.strerror}", path, code="unwritable-file") from error
