"""A study as a self-contained page: question, figures, numbers, failures, definition, provenance."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from retrompi.render.document.html import Content, boxes, document, ranges, save, scroller, table
from retrompi.render.document.plotted import drawing, figure_html
from retrompi.render.figures.bands import NOTE, band_text, of_draws
from retrompi.render.figures.figures import name_of
from retrompi.render.figures.sweep_figures import FigurePlan, choose, draw
from retrompi.spec.declare.outcome import Outcome
from retrompi.studies.archive.provenance import About
from retrompi.studies.read.table import StudyTable, tables
from retrompi.studies.read.view import View, failures

__all__ = ["figures", "page", "write", "write_figures"]

_MOST_FIGURES = 24
"""The most figures on a page; the table has every number."""
_MOST_ROWS = 400
_SECTIONS = {
    "curves": "Curves", "lines": "Along an axis", "speedup": "Speed-up", "efficiency": "Efficiency", "heat": "Two axes",
    "bars": "Side by side", "scatter": "Axis by axis", "parallel": "All axes together",
}


def figures(v: View, plans: Sequence[FigurePlan]) -> dict[str, dict[str, go.Figure]]:
    """Kind -> name -> figure, in the order of the plans."""
    out: dict[str, dict[str, go.Figure]] = {}
    for plan in plans:
        out.setdefault(plan.kind, {}).update(draw(v, plan))
    return out


def _counts(v: View) -> str:
    done = sum(r["outcome"] == Outcome.COMPLETED for r in v.rows)
    values = [r["value"] for r in v.rows if r["value"] is not None]
    shown = [("points", f"{len(v.rows):,}", f"{done:,} completed" + (f", {len(v.rows) - done:,} not" if done < len(v.rows) else ""))]
    if values:
        shown.append((v.metric.label, f"{v.metric.show(min(values))} – {v.metric.show(max(values))}", "smallest and largest"))
    return boxes((escape(a), escape(b), escape(c)) for a, b, c in shown)


def _table_html(t: StudyTable) -> str:
    head = (*t.heads, *t.columns)
    rows: list[list[Content]] = [
        [*(escape(name_of(x) if h == "model" else x) for h, x in zip(t.heads, left, strict=True)), *((escape(x), "n") for x in right)]
        for left, right in t.rows[:_MOST_ROWS]
    ]
    more = f'<p class="soft">{len(t.rows) - _MOST_ROWS:,} more rows are in the export.</p>' if len(t.rows) > _MOST_ROWS else ""
    title = f"<h3>{escape(t.title)}</h3>" if t.title else ""
    across = f'<p class="soft"><small>{escape(t.across)} across</small></p>' if t.across else ""
    return title + across + table(head, rows, "grid") + more


def _incomplete(v: View) -> str:
    """The points of whose draws some did not complete: their interval is of the others."""
    found = [r for r in v.rows if r.get("completed", 1.0) < 1 and r["outcome"] == Outcome.COMPLETED]
    if not v.draws or not found:
        return ""
    head = ("point", *(a.key for a in v.axes), "completed")
    rows: list[list[Content]] = [
        [(str(r["position"] // (1 + v.draws)), "n"), *(escape(r["values"][a.key]) for a in v.axes), of_draws(r["completed"], v.draws)]
        for r in found[:_MOST_ROWS]
    ]
    more = f'<p class="soft">{len(found) - _MOST_ROWS:,} more.</p>' if len(found) > _MOST_ROWS else ""
    return f'<h2 id="draws">Points with draws that did not complete</h2>{table(head, rows)}{more}'


def _failures(v: View) -> str:
    found = failures(v)
    if not found:
        return ""
    head = ("point", *(a.key for a in v.axes), "outcome", "reason")
    rows: list[list[Content]] = [
        [
            (str(f.position), "n"),
            *(escape(f.values[a.key]) for a in v.axes),
            f'<span class="fail">{escape(f.outcome)}</span>',
            escape(f.reason),
        ]
        for f in found[:_MOST_ROWS]
    ]
    more = f'<p class="soft">{len(found) - _MOST_ROWS:,} more.</p>' if len(found) > _MOST_ROWS else ""
    return f'<h2 id="failures">Points without a result</h2>{table(head, rows)}{more}'


def _warnings(about: About) -> str:
    if not about.warnings:
        return ""
    items = "".join(f"<li><b>{escape(name_of(m))}</b>: {escape('; '.join(lines))}</li>" for m, lines in about.warnings.items())
    return f'<div class="defect"><p>Outside the calibrated range:</p><ul>{items}</ul></div>'


def _definition(definition: Mapping[str, Any]) -> str:
    def values_text(values: Any) -> str:
        return escape(values if isinstance(values, str) else ", ".join(map(str, values)))

    rows = [(escape(key), values_text(values)) for key, values in definition.get("vary", {}).items()]
    together = [pair for group in definition.get("zip", ()) for pair in group.items()]
    rows += [(f"{escape(key)} <small>(together)</small>", values_text(values)) for key, values in together]
    rows += [(f"{escape(key)} <small>(fixed)</small>", escape(str(value))) for key, value in definition.get("set", {}).items()]
    text = json.dumps(definition, indent=1, ensure_ascii=False)
    return (
        table(("key", "values"), rows)
        + f"<details><summary>Complete definition</summary>{scroller('definition')}<pre><small>{escape(text)}</small></pre></div></details>"
    )


def _short(hashes: Sequence[str]) -> str:
    return ", ".join(h[:12] for h in hashes[:3]) + (f" and {len(hashes) - 3} more, by override" if len(hashes) > 3 else "")


def _provenance(about: About) -> str:
    lines = [("code", ", ".join(about.code_versions)), ("network", ", ".join(about.networks)), ("fidelity", ", ".join(about.fidelities))]
    lines += [(f"model {m}", _short(h)) for m, h in about.models.items()]
    lines += [(f"platform {p}", _short(h)) for p, h in about.platforms.items()]
    lines += [("runs of the store", ranges(about.runs))]
    out = table(("what", "value"), [(escape(k), escape(v)) for k, v in lines if v])
    if about.sources:
        names = ("varied", "of", "when not overridden", "source")
        rows = [[escape(s[k]) for k in ("key", "of", "value", "source")] for s in about.sources]
        out += "<h3>Varied parameters, and the sources of their default values</h3>" + table(names, rows)
    return out


def page(
    v: View, about: About, title: str = "", plans: Sequence[FigurePlan] | None = None, footer: str = "", panel: Sequence[str] = ()
) -> str:
    """The page as HTML text; ``plans`` are the figures, by default those that suit the axes."""
    d = v.definition
    title = title or str(d.get("title") or d.get("name") or "A study")
    drawn = figures(v, choose(v) if plans is None else plans)
    kept = 0
    parts, shown = [], {}
    for kind, found in drawn.items():
        # Too many panels would make the page unusable.
        some = dict(list(found.items())[: max(_MOST_FIGURES - kept, 1)])
        kept += len(some)
        shown.update(some)
        more = f'<p class="soft">{len(found) - len(some)} more panels: retrompi study figure</p>' if len(some) < len(found) else ""
        holds = scroller(_SECTIONS[kind]) if kind == "parallel" else '<div class="figures">'
        holder = "".join(figure_html(f, n) for n, f in some.items())
        parts.append(f'<h2 id="{kind}">{_SECTIONS[kind]}</h2>{holds}{holder}</div>{more}')
    texts = "".join(f"<p>{escape(str(d[k]))}</p>" for k in ("question", "summary") if d.get(k))
    bad = failures(v)
    links = [(k, _SECTIONS[k]) for k in drawn] + [("numbers", "Numbers")] + ([("failures", "Failures")] if bad else [])
    links += [("definition", "Definition"), ("provenance", "Provenance")]
    nav = " ".join(f'<a href="#{k}">{t}</a>' for k, t in links)
    many = sum(len(t.rows) for t in tables(v, panel))
    words = band_text(v.level, v.draws, [r["completed"] for r in v.rows if v.draws]).replace("<br>", " ")
    between = f"; in parentheses the {words}. {escape(NOTE[:-1])}" if v.draws else ""
    numbers = "".join(_table_html(t) for t in tables(v, panel))
    if many > 60:
        numbers = f"<details><summary>{many:,} rows</summary>{numbers}</details>"
    return document(
        title,
        f"""<header><p class="soft">retrompi asks: what if</p><h1>{escape(title)}</h1>{texts}<nav>{nav}</nav></header>
{_counts(v)}{_warnings(about)}{"".join(parts)}
<h2 id="numbers">Numbers</h2><p class="soft">{escape(v.metric.label)}{between}.</p>{numbers}
{_failures(v)}{_incomplete(v)}
<h2 id="definition">Definition</h2>{_definition(d)}
<h2 id="provenance">Provenance</h2>{_provenance(about)}
<footer class="soft"><p><small>{escape(footer)}</small></p></footer>
{drawing(shown)}""",
    )


def write_figures(path: Path, drawn: Mapping[str, go.Figure], title: str, footer: str = "") -> None:
    """Write figures alone as a page. Raises InputError when it cannot be written."""
    holder = "".join(figure_html(f, n) for n, f in drawn.items())
    body = f"""<header><p class="soft">retrompi asks: what if</p><h1>{escape(title)}</h1></header><div class="figures">{holder}</div>
<footer class="soft"><p><small>{escape(footer)}</small></p></footer>{drawing(drawn)}"""
    save(path, document(title, body))


def write(path: Path, v: View, about: About, **how: Any) -> None:
    """Write the page. Raises InputError when it cannot be written."""
    from retrompi.store import code_version

    save(path, page(v, about, footer=f"retrompi {code_version()}", **how))
