"""A study's display: the list, the figures, tables and failures, the definition and the provenance."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dash import dcc, html

from retrompi.render.figures import name_of
from retrompi.render.html import ranges
from retrompi.studies.table import Table
from retrompi.studio import parts
from retrompi.studio.pieces import Part, Value, counted, facts, table
from retrompi.studio.studying import Listed, Shown

__all__ = ["listing", "shown", "unrun"]

_MOST_ROWS = 240
_HEAD = ("study", "title", "points", "axes", "made")


def listing(some: Sequence[Listed]) -> Part:
    """The table of studies; each name is a button that shows the study."""
    if not some:
        return html.P("There are no studies.", className="soft")
    rows = [
        [[html.Button(s.name, id={"type": "studies-pick", "name": s.key}, className="link", type="button"),
          html.Small(f" {s.id}" if s.id is not None else " ready", className="soft")],
         s.title, Value(s.state if s.done else f"{s.points}, {s.state}"), ", ".join(s.axes), s.created[:16].replace("T", " ")]
        for s in some
    ]  # fmt: skip
    return table(_HEAD, rows)


def unrun(s: Listed) -> list[Part]:
    """A predefined study of which nothing was run."""
    line = f"Not run yet: {s.points} points, over {', '.join(s.axes)}."
    return [html.H2(s.title or s.name), *([html.P(s.question, className="lead")] if s.question else []), html.P(line)]


def _table(t: Table) -> list[Part]:
    head = (*t.heads, *t.columns)
    rows = [[*(name_of(x) if h == "model" else x for h, x in zip(t.heads, left, strict=True)), *(Value(x, "n") for x in right)]
            for left, right in t.rows[:_MOST_ROWS]]  # fmt: skip
    more = [html.P(f"{len(t.rows) - _MOST_ROWS} more rows.", className="soft")] if len(t.rows) > _MOST_ROWS else []
    told = ", ".join(x for x in (t.title, f"{t.across} across" if t.across else "") if x)
    return [table(head, rows, "grid", told), *more]


def _failures(found: Shown) -> list[Part]:
    if not found.failures:
        return []
    head = ("point", *found.axes, "outcome", "reason")
    rows = [
        [Value(str(f.position), "n"), *(f.values[a] for a in found.axes), html.Span(f.outcome, className="verdict fail"), f.reason]
        for f in found.failures[:_MOST_ROWS]
    ]
    return [html.H3("Points without a result"), table(head, rows)]


def _definition(definition: Mapping[str, Any]) -> list[Part]:
    def told(values: Any) -> str:
        return values if isinstance(values, str) else ", ".join(map(str, values))

    pairs = [(k, told(v)) for k, v in definition.get("vary", {}).items()]
    pairs += [(f"{k} (together)", told(v)) for group in definition.get("zip", ()) for k, v in group.items()]
    pairs += [(f"{k} (fixed)", str(v)) for k, v in definition.get("set", {}).items()]
    shown = {k: v for k, v in definition.items() if k != "folder"}
    text = json.dumps(shown, indent=1, ensure_ascii=False)
    return [facts(pairs), html.Details([html.Summary("Complete definition"), html.Pre(text, className="scroll", tabIndex=0)])]


def _provenance(found: Shown) -> list[Part]:
    a = found.about
    pairs = [("code", ", ".join(a.code_versions)), ("network", ", ".join(a.networks)), ("fidelity", ", ".join(a.fidelities))]
    pairs += [(f"model {m}", ", ".join(h[:12] for h in hashes[:3])) for m, hashes in a.models.items()]
    pairs += [(f"platform {p}", ", ".join(h[:12] for h in hashes[:3])) for p, hashes in a.platforms.items()]
    pairs += [("runs of the store", ranges(a.runs))]
    out: list[Part] = [facts(pairs)]
    if a.sources:
        head = ("varied", "of", "when not overridden", "source")
        out.append(table(head, [[str(s[k]) for k in ("key", "of", "value", "source")] for s in a.sources]))
    return out


def shown(found: Shown) -> list[Part]:
    """A stored study: counts, warnings, figures, tables, failures, definition, provenance."""
    d = found.study["definition"]
    missing = f", {found.points - found.completed} not" if found.completed < found.points else ""
    boxes = [("points", f"{found.points:,}", f"{found.completed:,} completed{missing}")]
    if found.span:
        boxes.append((found.label, found.span, "smallest and largest"))
    warned = [html.Li([html.B(name_of(m)), f": {'; '.join(lines)}"]) for m, lines in found.about.warnings.items()]
    figures = [
        html.Figure(
            [
                html.Figcaption(f.layout.title.text or ""),
                dcc.Graph(figure=_untitled(f), id={"type": "studies-figure", "name": name}, config=parts.GRAPH, className="plot"),
            ]
        )
        for name, f in found.figures.items()
    ]
    many = sum(len(t.rows) for t in found.tables)
    numbers = [p for t in found.tables for p in _table(t)]
    return [
        html.H2(str(d.get("title") or found.study["name"])),
        *(html.P(str(d[k]), className="lead" if k == "question" else None) for k in ("question", "summary") if d.get(k)),
        counted(boxes),
        *([html.Div([html.P("Outside the calibrated range:"), html.Ul(warned)], className="caution")] if warned else []),
        *([html.P(f"Without effect on {found.metric}: {', '.join(found.idle)}.", className="caution")] if found.idle else []),
        *(html.P(f"{_runs(n)}: {line}", className="caution") for line, n in found.cautions.items()),
        html.Div(figures, className="figures"),
        *([html.P(f"{found.more_figures} more figures: retrompi study figure.", className="soft")] if found.more_figures else []),
        html.H3("Numbers"),
        html.P(f"{found.label}.", className="soft"),
        *(numbers if many <= 60 else [html.Details([html.Summary(f"{many} rows"), *numbers])]),
        *_failures(found),
        html.Details([html.Summary("Definition"), *_definition(d)]),
        html.Details([html.Summary("Provenance"), *_provenance(found)]),
    ]


def _runs(number: int) -> str:
    return f"{number} run{'s' if number != 1 else ''}"


def _untitled(figure: Any) -> Any:
    """The figure without its title, which is placed above it, where it wraps on a phone."""
    figure.update_layout(title=None, margin_t=30)
    return figure
