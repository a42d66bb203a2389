"""Components shared by several pages of cards and tables. Texts are inserted only as text nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dash import html

from retrompi.base.translate import _, count, lazy
from retrompi.studio.cards.card_numbers import KINDS, ShownNumber

__all__ = ["Part", "Value", "cell", "citation_parts", "count_boxes", "facts", "number_rows", "number_text", "parameter_name", "source",
           "span_css", "table", "verdict"]

Part = Any
"""A Dash component, a text, a number, or a list of them."""

SIGN = {"pass": lazy("✓ pass"), "fail": lazy("✗ fail"), "unjudged": lazy("· not judged")}


def number_text(value: float | str | None) -> str:
    """A number formatted for readers; text unchanged, "" for None."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return count(round(value)) if 1000 <= abs(value) < 1e12 else f"{value:.4g}"


def verdict(word: str) -> html.Span:
    """A verdict shown by symbol, word and colour."""
    return html.Span(_(SIGN[word]), className=f"verdict {word}")


def cell(label: str, *parts: Part, css: str = "") -> html.Td:
    """A cell that carries its column's label for narrow screens."""
    given = {"data-label": label}
    empty = all(p in (None, "") for p in parts)
    return html.Td([] if empty else html.Div(list(parts)), className=css or None, **given)


@dataclass(frozen=True)
class Value:
    """A cell's content that is a number or a range: kept on one line, or styled by ``css``."""

    shown: Part
    css: str = "v"


def table(head: Sequence[str], rows: Iterable[Sequence[Part]], css: str = "stack", caption: str = "") -> html.Div:
    """A table of rows of cells, a list where a cell has several parts; on a phone, css class "stack" shows each row as a card."""

    def of(label: str, content: Part) -> html.Td:
        shown, kind = (content.shown, content.css) if isinstance(content, Value) else (content, "")
        return cell(label, *(shown if isinstance(shown, list) else [shown]), css=kind)

    words = [html.Caption(caption)] if caption else []
    names = html.Thead(html.Tr([html.Th(_(h), scope="col") for h in head]))
    body = html.Tbody([html.Tr([of(_(h), c) for h, c in zip(head, row, strict=True)]) for row in rows])
    return html.Div(html.Table([*words, names, body], className=css), className="scroll", tabIndex=0, role="region",
                    **{"aria-label": caption or f"{_('table')}: {', '.join(_(h) for h in head if h)}"})


def facts(pairs: Iterable[tuple[str, Part]]) -> html.Dl:
    """Terms and their values; empty values are left out."""
    return html.Dl([p for term, told in pairs if told not in (None, "", []) for p in (html.Dt(term), html.Dd(told))], className="facts")


def count_boxes(boxes: Iterable[tuple[str, str, str]]) -> html.Div:
    """Boxes of (what, count, a few words)."""
    return html.Div(
        [html.Div([html.Span(a), html.B(b), html.Small(c, className="soft")], className="count") for a, b, c in boxes], className="counts"
    )


def citation_parts(rows: Sequence[Mapping[str, str]]) -> list[Part]:
    """The text of the reference rows that a number cites, collapsed."""
    if not rows:
        return []
    told = []
    for r in rows:
        where = html.Span(f"({r['where']}{', ' + r['use'] if r['use'] else ''})", className="soft")
        note = [html.Span(r["note"], className="contradiction")] if r["note"] else []
        told.append(html.Li([html.B(r["id"]), f" {r['text']} ", where, *note], lang="en"))  # quotations stay as they are
    return [html.Details([html.Summary(", ".join(r["id"] for r in rows)), html.Ul(told)], className="cited")]


def source(n: ShownNumber) -> list[Part]:
    """A number's source: its kind as a chip, the rest as text, and the text of the rows it cites."""
    kind = html.Span(n.kind, className=f"kind kind-{n.kind}", title=_(KINDS[n.kind]))
    return [kind, " ", html.Span(n.source, lang="en"), *citation_parts(n.rows)]


def parameter_name(name: str, help: str) -> list[Part]:
    """A parameter's name with its description below."""
    return [html.Code(name), html.Small(help, className="help", lang="en")]


def span_css(span: str) -> str:
    """The css class of a range, kept on one line, or of a list of choices, which may wrap."""
    return "" if "|" in span else "v"


def number_rows(some: Sequence[ShownNumber]) -> list[list[Part]]:
    """Rows of name and meaning, value, range, source."""
    spans = [html.Span(n.span, lang="en") if "|" in n.span else n.span for n in some]
    return [
        [parameter_name(n.name, n.help), Value(n.value), Value(span, span_css(n.span)), source(n)]
        for n, span in zip(some, spans, strict=True)
    ]
