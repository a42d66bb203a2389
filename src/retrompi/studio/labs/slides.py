"""A lab's slides for the lecturer: ``slides.md`` beside its text, as one file of HTML that fetches nothing.

Slides are separated by lines ``---``. A line ``    retrompi ...`` is a command of a lab (`retrompi.studio.labs.lab_commands`), with the
numbers of an example student; it is run when the deck is made, and what follows shows its result:

    [figure time: the caption]        # a figure by its name: time, bandwidth, stages, study
    [table]   [table 5]               # its tables, the first rows of them
    [lines]                           # what it says
    [predictions]                     # the questions that are to be predicted, with the names of numbers for numbers

A paragraph that begins with ``Note:`` is for the lecturer's eyes (key S). Slides are in English; reveal.js, which the
package pyreveal brings (``pip install retrompi[slides]``), shows them.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base import translate
from retrompi.base.errors import InputError, RetrompiError, UsageError, nearest
from retrompi.base.files import read_text
from retrompi.labs import text as _words
from retrompi.labs import work
from retrompi.labs.student import draw
from retrompi.render.document.plotted import sketch_script
from retrompi.studio.labs import lab_commands

if TYPE_CHECKING:
    from retrompi.labs.lab import Lab

__all__ = ["EXAMPLE", "FILE", "MISSING", "count", "deck"]

FILE = "slides.md"
EXAMPLE = "the lecturer"
"""Whose numbers the slides have."""
_SHOWN = re.compile(r"^\[(figure|table|lines|predictions)(?: ([a-z]+|\d+))?(?:: (.+))?\]$")
_NAME = re.compile(r"\{([a-z][a-z0-9_]*)(?::arg)?\}")
_RUNS = re.compile(r"^    retrompi (?!lab )", re.MULTILINE)
MISSING = "slides need the package pyreveal, which brings reveal.js: pip install 'retrompi[slides]'"
_REVEAL = ("reveal.css", "reveal.js", "plugin/notes.js")
_CSS = """
:root { --ink: #14181f; --soft: #4d5663; --line: #c9ced6; --paper: #fff; --link: #0059a0; --tint: #f1f4f8; }
html, body, .reveal-viewport { background: var(--paper); color: var(--ink); }
.reveal { font: 26px/1.4 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
.reveal .slides { text-align: left; }
.reveal .slides section { box-sizing: border-box; padding: 18px 44px; height: 100%; overflow: auto; }
.reveal h1 { font-size: 52px; line-height: 1.15; margin: 150px 0 24px; } .reveal h2 { font-size: 38px; line-height: 1.2; margin: 0 0 18px; }
.reveal :is(p, ul, ol, table, pre, figure) { margin: 0 0 14px; } .reveal li { margin-bottom: 8px; }
.reveal pre { font: 19px/1.4 ui-monospace, "DejaVu Sans Mono", monospace; background: var(--tint); border-left: 5px solid var(--link);
  padding: 8px 14px; white-space: pre-wrap; overflow-wrap: anywhere; }
.reveal code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .9em; }
.reveal table { border-collapse: collapse; font-size: 21px; line-height: 1.3; }
.reveal :is(th, td) { text-align: left; padding: 5px 22px 5px 0; border-bottom: 1px solid var(--line); }
.reveal th { border-bottom: 2px solid var(--ink); } .reveal a { color: var(--link); }
.reveal blockquote { margin: 0 0 14px; padding: 8px 18px; background: #fdf3e7; border-left: 6px solid #b65c00; }
.reveal blockquote p:last-child { margin: 0; }
.reveal figure figcaption { font-size: 21px; font-weight: 600; } .reveal .figure { height: 460px; width: 100%; }
.reveal .figure text { fill: var(--ink); } .reveal .figure .grid { stroke: var(--line); }
.reveal .figure .axis { stroke: var(--soft); fill: none; }
.sketch-legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 0 !important; padding: 0; font-size: 18px; }
.sketch-legend li { display: inline-flex; align-items: center; gap: 6px; margin: 0; } .sketch-legend svg { flex: none; }
.reveal .slide-number { left: 44px; right: auto; color: var(--soft); background: none; font-size: 18px; }
.reveal .slide-number a { display: block; padding: 8px 10px; line-height: 1.2; color: inherit; }
.reveal .controls { color: var(--link); }
.reveal .soft { color: var(--soft); font-size: 19px; }
@media print { .reveal .figure { break-inside: avoid; } }
"""
_START = """
for (const [id, data, layout] of JSON.parse(document.getElementById("figures").textContent))
  window.retrompiSketch.draw(document.getElementById(id), { data, layout });
const narrow = innerWidth < 700;
Reveal.initialize({ width: narrow ? 640 : 1280, height: narrow ? 1000 : 720, margin: 0.03, center: false,
  hash: true, slideNumber: "c/t", transition: "none", pdfSeparateFragments: false, plugins: [RevealNotes] });
"""


@dataclass
class _Making:
    """A deck being made: the lab's file, the example's names and files, the store, and what came of the commands."""

    lab: Lab
    store: str | None
    known: Mapping[str, str]
    files: Mapping[str, bytes]
    varied: dict[str, str] = field(default_factory=dict)
    told: Mapping[str, Any] | None = None
    figures: list[list[Any]] = field(default_factory=list)

    def fail(self, line: int, said: str, code: str) -> InputError:
        """An error at a line of the slides."""
        return InputError(said, self.lab.folder / FILE, line, code=code)


def deck(lab: Lab, store: str | None = None) -> str:
    """The slides of a lab as a page. Raises UsageError for a lab without any or without pyreveal, InputError for what a line of them gets
    wrong."""
    file = lab.folder / FILE
    if not file.is_file():
        raise UsageError(f"lab {lab.key} has no slides (a file {FILE} beside its text)", code="not-found")
    carried = _reveal()
    with translate.speaking(translate.ENGLISH):
        begun = work.begin(lab, EXAMPLE)
        making = _Making(lab, store, _words.names(lab, draw(lab, EXAMPLE), EXAMPLE), begun.files)
        slides = [_slide(making, lines) for lines in _split(read_text(file))]
    return _page(lab, slides, making.figures, carried)


def count(lab: Lab) -> int:
    """How many slides a lab has; 0 for one without any."""
    file = lab.folder / FILE
    return sum(1 for _slide in _split(read_text(file))) if file.is_file() else 0


def _split(text: str) -> Iterator[list[tuple[int, str]]]:
    """The lines of each slide, with their numbers."""
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() == "---":
            yield lines
            lines = []
        else:
            lines.append((number, line))
    yield lines


def _slide(making: _Making, lines: list[tuple[int, str]]) -> str:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    out, held, notes = [], [], []  # type: tuple[list[str], list[str], list[str]]

    def close() -> None:
        text = _words.fill("\n".join(held), making.known, where=making.lab.folder / FILE)
        out.append(str(parser.render(text)))
        held.clear()

    for number, line in lines:
        shown = _SHOWN.match(line)
        if line.startswith("Note:") or notes:
            notes.append(line.removeprefix("Note:"))
        elif line.startswith("    retrompi "):
            close()
            out.append(_command(making, number, line.strip()))
        elif shown:
            close()
            out.append(_result(making, number, shown[1], shown[2] or "", shown[3] or ""))
        else:
            held.append(line)
    close()
    told = parser.render(_words.fill("\n".join(notes).strip(), making.known, where=making.lab.folder / FILE)) if notes else ""
    return "".join(out) + (f'<aside class="notes">{told}</aside>' if told else "")


def _command(making: _Making, number: int, line: str) -> str:
    written = _words.fill(line, making.known, where=making.lab.folder / FILE)
    form = lab_commands.form_of(written, making.varied)
    if form is None:
        raise making.fail(number, f"'{written}' is no command that slides can run", "bad-value")
    values = {f.name: f.value for f in form.fields}
    if form.kind == "sweep":
        making.varied[form.given.get("file", "").removesuffix(".toml")] = form.given.get("vary", "")
    try:
        making.told = lab_commands.run(lambda *_at: None, making.store, form.kind, form.given, values, making.files)
    except RetrompiError as error:
        raise making.fail(number, str(error), error.code) from None
    return f"<pre><code>{escape(written)}</code></pre>"


def _result(making: _Making, number: int, what: str, which: str, caption: str) -> str:
    if what == "predictions":
        return _predictions(making.lab)
    told = making.told
    if told is None:
        raise making.fail(number, "no command stands before this", "bad-value")
    if what == "lines":
        return "".join(f"<p>{escape(line)}</p>" for line in told["lines"])
    if what == "table":
        return "".join(_table(table, int(which) if which else None) for table in told["tables"])
    if which not in told["figures"]:
        raise making.fail(number, f"the command draws no figure '{which}'{nearest(which, told['figures'], 9)}", "bad-value")
    figure, name = told["figures"][which], f"figure-{len(making.figures) + 1}"
    layout = {**figure["layout"], "title": None, "font": {**figure["layout"].get("font", {}), "size": 17}}
    making.figures.append([name, figure["data"], layout])
    box = f'<div class="figure" id="{name}" role="img" aria-label="{escape(caption or which)}"></div>'
    return f"<figure><figcaption>{escape(caption)}</figcaption>{box}</figure>"


def _predictions(lab: Lab) -> str:
    """Each student has numbers of their own, so the questions have names."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False})
    first = lab.text[: begun.start()] if (begun := _RUNS.search(lab.text)) else lab.text
    those = [t for t in lab.predictions if f"[task {t.id}]" in first]  # later ones say what came out before
    asked = [parser.renderInline(_NAME.sub(r"[\1]", " ".join(t.question.split()))) for t in those]
    return "<ol>" + "".join(f"<li>{q}</li>" for q in asked) + "</ol><p>Alone, before anybody runs anything.</p>"


def _table(table: Mapping[str, Any], most: int | None) -> str:
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in table["head"])
    rows = "".join("<tr>" + "".join(f"<td>{escape(str(c))}</td>" for c in row) + "</tr>" for row in table["rows"][:most])
    left = len(table["rows"]) - len(table["rows"][:most])
    more = f'<p class="soft">and {left} rows more</p>' if left else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _reveal() -> list[str]:
    """The files of reveal.js that a deck carries, fit for an element of HTML. UsageError without the package that has them."""
    package = importlib.util.find_spec("pyreveal")
    if package is None or not package.submodule_search_locations:
        raise UsageError(MISSING, code="missing-tool")
    folder = Path(package.submodule_search_locations[0]) / "revealjs" / "dist"
    return [read_text(folder / name).replace("</script", "<\\/script") for name in _REVEAL]


def _page(lab: Lab, slides: list[str], figures: list[list[Any]], carried: list[str]) -> str:
    style, script, notes = carried
    data = json.dumps(figures, separators=(",", ":")).replace("</", "<\\/")
    body = "\n".join(f"<section>{s}</section>" for s in slides)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lab {escape(lab.key)}: {escape(lab.title)} (slides)</title><link rel="icon" href="data:,">
<style>{style}{_CSS}</style></head>
<body><main class="reveal"><div class="slides">
{body}
</div></main>
<script type="application/json" id="figures">{data}</script>
<script>{script}</script><script>{notes}</script><script>{sketch_script()}</script><script>{_START}</script>
</body></html>
"""
