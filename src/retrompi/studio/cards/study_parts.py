"""A study's display: the list, the figures, tables and failures, the definition and the provenance."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dash import dcc, html

from retrompi.base.translate import _, count, lazy, ngettext
from retrompi.render.document.engine_words import outcome_name
from retrompi.render.document.html import config, ranges
from retrompi.render.figures.figures import name_of
from retrompi.studies.read.table import StudyTable
from retrompi.studio.cards.card_pieces import Part, Value, count_boxes, facts, table
from retrompi.studio.cards.study_jobs import Listed, ShownStudy
from retrompi.studio.components.parts import english

__all__ = ["listing", "result_parts", "unrun"]

_MOST_ROWS = 240
_HEAD = (lazy("study"), lazy("points"), lazy("axes"), lazy("made"))


def listing(some: Sequence[Listed]) -> Part:
    """The table of studies; each name is a button that shows the study."""
    if not some:
        return html.P(_("There are no studies."), className="soft")
    rows = [
        [[html.Button(s.title or s.name, id={"type": "studies-pick", "name": s.key}, className="link", type="button", lang="en"),
          html.Small(" " + (f"{s.name} ({s.id})" if s.id is not None else s.name), className="soft")],
         Value(s.state if s.done else f"{s.points}, {s.state}"), html.Span(", ".join(s.axes), lang="en"), s.created[:16].replace("T", " ")]
        for s in some
    ]
    return table(_HEAD, rows)


def unrun(s: Listed) -> list[Part]:
    """A predefined study of which nothing was run."""
    line = _("Not run yet: {points} points, over {axes}.").format(points=s.points, axes=", ".join(s.axes))
    return [html.H2(s.title or s.name, lang="en"), *([html.P(s.question, className="lead", lang="en")] if s.question else []), html.P(line)]


def _table(t: StudyTable) -> list[Part]:
    head = (*t.heads, *t.columns)
    rows = [[*(name_of(x) if h == "model" else x for h, x in zip(t.heads, left, strict=True)), *(Value(x, "n") for x in right)]
            for left, right in t.rows[:_MOST_ROWS]]
    more = [html.P(_("{n} more rows.").format(n=len(t.rows) - _MOST_ROWS), className="soft")] if len(t.rows) > _MOST_ROWS else []
    told = ", ".join(x for x in (t.title, _("{across} across").format(across=t.across) if t.across else "") if x)
    return [table(head, rows, "grid", told), *more]


def _failures(found: ShownStudy) -> list[Part]:
    if not found.failures:
        return []
    head = (lazy("point"), *found.axes, lazy("outcome"), lazy("reason"))
    rows = [
        [Value(str(f.position), "n"), *(f.values[a] for a in found.axes),
         html.Span(outcome_name(f.outcome), className="verdict fail"), english(f.reason)]
        for f in found.failures[:_MOST_ROWS]
    ]
    return [html.H3(_("Points without a result")), table(head, rows)]


def _definition(definition: Mapping[str, Any]) -> list[Part]:
    def values_text(values: Any) -> str:
        return values if isinstance(values, str) else ", ".join(map(str, values))

    pairs = [(k, values_text(v)) for k, v in definition.get("vary", {}).items()]
    pairs += [(_("{k} (together)").format(k=k), values_text(v)) for group in definition.get("zip", ()) for k, v in group.items()]
    pairs += [(_("{k} (fixed)").format(k=k), str(v)) for k, v in definition.get("set", {}).items()]
    shown = {k: v for k, v in definition.items() if k != "folder"}
    text = json.dumps(shown, indent=1, ensure_ascii=False)
    return [facts(pairs), html.Details([html.Summary(_("Complete definition")), html.Pre(text, className="scroll", tabIndex=0)])]


def _provenance(found: ShownStudy) -> list[Part]:
    a = found.about
    pairs = [(_("code"), ", ".join(a.code_versions)), (_("network"), ", ".join(a.networks)), (_("fidelity"), ", ".join(a.fidelities))]
    pairs += [(_("model {m}").format(m=m), ", ".join(h[:12] for h in hashes[:3])) for m, hashes in a.models.items()]
    pairs += [(_("platform {p}").format(p=p), ", ".join(h[:12] for h in hashes[:3])) for p, hashes in a.platforms.items()]
    pairs += [(_("runs of the store"), ranges(a.runs))]
    out: list[Part] = [facts(pairs)]
    if a.sources:
        head = (_("varied"), _("of"), _("when not overridden"), _("source"))
        out.append(table(head, [[str(s[k]) for k in ("key", "of", "value", "source")] for s in a.sources]))
    return out


def result_parts(found: ShownStudy) -> list[Part]:
    """A stored study: counts, warnings, figures, tables, failures, definition, provenance."""
    d = found.study["definition"]
    missing = _(", {points} not").format(points=found.points - found.completed) if found.completed < found.points else ""
    told = _("{completed} completed{missing}").format(completed=count(found.completed), missing=missing)
    boxes = [(_("points"), count(found.points), told)]
    if found.span:
        boxes.append((found.label, found.span, _("smallest and largest")))
    warned = [html.Li([html.B(name_of(m)), f": {'; '.join(lines)}"]) for m, lines in found.about.warnings.items()]
    figures = [
        html.Figure(
            [
                html.Figcaption(f.layout.title.text or ""),
                dcc.Graph(figure=_without_title(f), id={"type": "studies-figure", "name": name}, config=config(), className="plot"),
            ]
        )
        for name, f in found.figures.items()
    ]
    many = sum(len(t.rows) for t in found.tables)
    numbers = [p for t in found.tables for p in _table(t)]
    return [
        html.H2(str(d.get("title") or found.study["name"]), lang="en"),
        *(html.P(str(d[k]), className="lead" if k == "question" else None, lang="en") for k in ("question", "summary") if d.get(k)),
        count_boxes(boxes),
        *([html.Div([html.P(_("Outside the calibrated range:")), html.Ul(warned)], className="caution")] if warned else []),
        *(
            [html.P(_("Without effect on {metric}: {idle}.").format(metric=found.metric, idle=", ".join(found.idle)), className="caution")]
            if found.idle
            else []
        ),
        *(html.P(f"{_runs(n)}: {line}", className="caution") for line, n in found.cautions.items()),
        html.Div(figures, className="figures"),
        *(
            [html.P(_("{more_figures} more figures: retrompi study figure.").format(more_figures=found.more_figures), className="soft")]
            if found.more_figures
            else []
        ),
        html.H3(_("Numbers")),
        html.P(f"{found.label}.", className="soft"),
        *(numbers if many <= 60 else [html.Details([html.Summary(_("{many} rows").format(many=many)), *numbers])]),
        *_failures(found),
        html.Details([html.Summary(_("Definition")), *_definition(d)]),
        html.Details([html.Summary(_("Provenance")), *_provenance(found)]),
    ]


def _runs(number: int) -> str:
    return ngettext("{n} run", "{n} runs", number).format(n=number)


def _without_title(figure: Any) -> Any:
    """The figure without its title, which is placed above it, where it wraps on a phone."""
    figure.update_layout(title=None, margin_t=30)
    return figure
