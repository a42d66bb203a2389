"""One self-contained page per study: loads no external resource, readable on a phone and on a projector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from retrompi.base.units import format_bytes
from retrompi.measure.stored_curves import StoredCurve, row_of
from retrompi.papers.judging.verdicts import Summary, Verdict, summary
from retrompi.papers.reproduce.reproduction import Reproduction
from retrompi.papers.statements.exhibits import CurveFigure
from retrompi.papers.statements.metrics import READINGS
from retrompi.papers.statements.paper import Anomaly
from retrompi.papers.statements.systems import anchor, system_of
from retrompi.render.atlas.ladder import ladder_rows, ladder_table
from retrompi.render.atlas.matrix import SORT
from retrompi.render.atlas.predicted import PREFIX, blind_html
from retrompi.render.cards.cards import Card
from retrompi.render.cards.determined import of_folder, section
from retrompi.render.document.html import SIGN, THIRD, USES, Content, bounds, boxes, brief, document, number, ranges, row, table
from retrompi.render.document.plotted import drawing, figure_html
from retrompi.render.figures.exhibits import missing_curves
from retrompi.render.figures.figures import name_of
from retrompi.render.figures.tables import is_narrow, table_html

__all__ = ["measured_table", "over_draws", "page", "why_paragraph"]


def _verdict_row(v: Verdict) -> str:
    published = f"{escape(v.observable)}: <b>{escape(v.published)}</b>"
    notes = [f"<span>{escape(v.note)}</span>"] if v.note else []
    if v.reading:
        notes.append(f'<span class="soft">Read as: {escape(v.reading)}</span>')
    if v.contradiction:
        notes.append(f'<span class="contradiction">{escape(v.contradiction)}</span>')
    third, interval = _third(v)
    residual = "" if v.residual is None else "inside" if v.residual == 0 else f"{v.residual:+.3g}"
    return row(_VERDICTS, [
        f'<span class="id">{escape(v.id)}</span><br><small class="soft">{escape(v.system)}</small>', published,
        (number(v.observed) + interval, "n" if not isinstance(v.observed, str) else ""), bounds(v), (residual, "n"),
        f'<span class="{v.verdict}">{SIGN[v.verdict]}</span>{third}', "<br>".join(notes), escape(v.source),
    ], escape(v.id))


def _third(v: Verdict) -> tuple[str, str]:
    """The third verdict below that of pass and fail, and the interval below the observed number; "" without draws."""
    a = v.agreement
    if a is None:
        return "", ""
    title = f"{round(a.share * a.draws)} of {a.draws} draws pass"
    third = f'<br><small title="{title}">{THIRD[a.word]}, {a.share:.0%}</small>'
    ends = f"<br><small class='soft'>{number(a.low)} – {number(a.high)}</small>" if a.low is not None and a.high is not None else ""
    return third, ends


_VERDICTS = ("claim", "published", "observed", "read as", "residual", "verdict", "notes, reading, contradiction", "source")


def _verdict_tables(verdicts: Sequence[Verdict]) -> str:
    out = []
    head = _VERDICTS
    for use, name, meaning in USES:
        mine = [v for v in verdicts if v.use == use]
        judged = [v for v in mine if v.verdict != "unjudged"]
        rest = [v for v in mine if v.verdict == "unjudged"]
        if judged:
            text = f"{sum(v.verdict == 'pass' for v in judged)} of {len(judged)} pass"
            out.append(f"<h3>{name}: {text}</h3><p class='soft'>{meaning}</p>" + table(head, map(_verdict_row, judged)))
        if rest:
            label = f"{name}: {len(rest)} not judged" if judged or use not in ("exclude", "context") else f"{name}: {len(rest)}"
            is_open = " open" if use == "exclude" else ""
            out.append(f"<details{is_open}><summary>{label}</summary>{table(head, map(_verdict_row, rest))}</details>")
    return "".join(out)


def shares(stages: Sequence[Mapping[str, Any]], most: int = 3) -> list[tuple[str, float, float]]:
    """(stage, seconds, share of the whole) of the largest significant stages (at least half a percent), processes added up."""
    total: dict[str, float] = {}
    for s in stages:
        total[s["stage"]] = total.get(s["stage"], 0.0) + float(s["seconds"])
    whole = sum(total.values())
    ranked = sorted(total.items(), key=lambda kv: -kv[1])[:most]
    return [(name, value, value / whole) for name, value in ranked if whole and value / whole >= 0.005]


def why_paragraph(why: Anomaly, study: Reproduction) -> str:
    """The paragraph of an anomaly as HTML: mechanism, text, the simulated shares and the verdicts of its claims."""
    parts = [
        f"<h3>{escape(why.title)}</h3>",
        f'<p><span class="mechanism">{escape(why.mechanism)}</span> {escape(why.text)}',
    ]
    entry = next((a for a in study.anatomy if (a["model"], a["mode"], a["size_B"]) == (why.model, why.mode, why.size)), None)
    if entry is not None:
        told = ", ".join(f"{escape(name)} {brief(value)} ({share:.0%})" for name, value, share in shares(entry["stages"]))
        parts.append(f" In the simulated message of {format_bytes(entry['size_B'])} ({brief(entry['total_s'])}): {told}.")
    found = {v.id: v for v in study.verdicts}
    links = [
        f'<li><a href="#{escape(c)}">{escape(c)}</a> <span class="{found[c].verdict}">{SIGN[found[c].verdict][0]}</span> '
        f"{escape(found[c].observable)}: {escape(found[c].published)}</li>"
        for c in why.claims
        if c in found
    ]
    return "".join(parts) + f'</p><ul class="claims">{"".join(links)}</ul>'


def _card(card: Card, evidence: Mapping[str, str]) -> str:
    """A model's card; ``evidence``: what is said of its variants (`_evidence`)."""
    head = ("parameter", "value", "range", "source", "what it is")
    rows: list[Sequence[Content]] = [
        (f'<span class="id">{escape(r["name"])}</span>', (escape(r["value"]), "n"), *(escape(r[k]) for k in ("range", "source", "help")))
        for r in card.rows
    ]
    fit = ""
    if card.fit:
        fitted = [[escape(f[k]) for k in ("what", "name", "text")] for f in card.fit]
        fit = "<h3>Fit: bounds, residuals, identifiability</h3>" + table(("what", "name", ""), fitted)
    fit += f"<h3>Posterior</h3>{section(card.posterior)}" if card.posterior is not None else ""
    variants = "".join(f"<li><b>{escape(n)}</b>: {escape(note)}{evidence.get(n, '')}</li>" for n, note in card.variants)
    others = f"<h3>Variants and rival hypotheses</h3><ul>{variants}</ul>" if variants else ""
    return (
        f"<details><summary>{escape(card.title)} ({escape(card.version)}, {escape(card.years)})</summary>"
        f"<p>{escape(card.summary)}</p>{table(head, rows)}{fit}{others}</details>"
    )


def _evidence() -> dict[str, str]:
    """Variant -> what the evidence says of it beside its base, of those that have been compared."""
    from retrompi.inference import evidence

    rows = evidence.read_rivals()
    bases, errors = {r.base: r for r in rows if r.variant == r.base}, evidence.against(rows)
    told = {}
    for r in rows:
        base = bases[r.base]
        if r is not base:
            told[r.variant] = (
                f' <span class="soft">Evidence of the statements that calibrate: {number(r.log_evidence)} ± {r.error:.2g} (logarithm), its '
                f"base {number(base.log_evidence)} ± {base.error:.2g}: {evidence.word(r.difference, errors[r.variant])}. Mean log "
                f"probability of {r.statements} numbers held out: {number(r.score)}, its base {number(base.score)}.</span>"
            )
    return told


def _platform(name: str, rows: Sequence[Mapping[str, str]]) -> str:
    head = ("quantity", "value", "range", "source", "what it is")
    cells = ([escape(r[k]) for k in ("name", "value", "range", "source", "help")] for r in rows)
    return f"<details><summary>Platform {escape(name)}</summary>{table(head, cells)}</details>"


def _startup(study: Reproduction) -> str:
    head = ("runtime", "starts that fail", "console windows", "daemons", "manual steps per job", "steps")
    rows: list[list[Content]] = []
    for model, f in study.facts.get("startup", {}).items():
        if isinstance(f, Mapping):
            failed = f"{f['failures']} of {f['attempts']} ({f['failure_rate']:.1%})" if f.get("attempts") else ""
            steps = "; ".join(escape(str(s.get("step", ""))) + (" <b>by hand</b>" if s.get("manual") else "") for s in f.get("steps", ()))
            counts = [(number(f.get(k)), "n") for k in ("windows", "daemons", "manual_steps_per_job")]
            rows.append([f'<span class="id">{escape(name_of(model))}</span>', (failed, "n"), *counts, steps])
    return table(head, rows) if rows else ""


def over_draws(part: Summary) -> str:
    """The third verdicts of one use in words, to follow others; "" without draws."""
    if not part.agreement:
        return ""
    words = ", ".join(f"{n} {w.replace('agrees', 'agree')}" for w, n in part.agreement.items())
    return f". Over draws: {words}; {part.inside} of {part.numbers} numbers are inside their interval"


def _counts(study: Reproduction) -> str:
    shown = []
    for part in summary(study.verdicts):
        name, meaning = next((n, m) for u, n, m in USES if u == part.use)
        if part.judged:
            tail = f"; {part.unjudged} more not judged" if part.unjudged else ""
            tail += over_draws(part)
            shown.append((name, f"{part.passed} of {part.judged} pass", f"{meaning}{tail}"))
        elif part.use == "exclude":
            shown.append((name, f"{part.unjudged} shown", meaning))
    return boxes(shown)


_OVER_DRAWS = (
    '<p class="soft">Below pass and fail: the third verdict, with the share of draws that pass. = agrees: at least half of them; '
    "≠ disagrees: at most 5 %; ? cannot tell: in between. Below the observed number: its interval over the draws.</p>"
)
_KEPT = (
    '<p class="soft">The third verdicts are those of <code>validate/agreement.csv</code>; '
    "<code>retrompi reproduce --uncertainty 90%</code> makes them again.</p>"
)
_OWN = ("anatomy-", "fidelity-", PREFIX)
"""Name prefixes of the figures that have their own section."""


def _with_caption(figure: go.Figure, name: str, caption: str, lacking: Sequence[str]) -> str:
    text = f'<p class="soft">{escape(caption)}</p>' if caption else ""
    text += f'<p class="defect">No simulation for: {escape(", ".join(lacking))}</p>' if lacking else ""
    return figure_html(figure, name).replace("</figcaption>", f"</figcaption>{text}", 1)


def _figures(study: Reproduction, figures: Mapping[str, go.Figure]) -> str:
    """The figures of the study's file in its order, then the generated ones."""
    plans = {p.name: p for p in study.paper.figure_plans}
    tables = {f"{t.name}-scatter" for t in study.paper.table_plans}
    out = []
    for name, figure in figures.items():
        if name.startswith(_OWN) or name in tables:
            continue
        plan = plans.get(name)
        lacking = missing_curves(study.points, plan) if isinstance(plan, CurveFigure) else [] if figure.data else ["this figure"]
        out.append(_with_caption(figure, name, plan.caption if plan else "", lacking))
    return "".join(out)


def _exhibits(study: Reproduction, figures: Mapping[str, go.Figure]) -> str:
    """The tables of the study's file, each with its figure if it has one."""
    out = []
    for plan in study.paper.table_plans:
        name = f"{plan.name}-scatter"
        shown = table_html(study, plan)
        if name in figures:
            layout = "beside" if is_narrow(study, plan) else "above"
            shown = f'<div class="{layout}"><div>{shown}</div>{figure_html(figures[name], name)}</div>'
        caption = f"<p>{escape(plan.caption)}</p>" if plan.caption else ""
        out.append(f'<section class="exhibit" id="table-{escape(plan.name)}"><h3>{escape(plan.title)}</h3>{caption}{shown}</section>')
    return "".join(out)


def measured_table(found: Sequence[StoredCurve]) -> str:
    """The measured curves of a page and their provenance; "" if there are none."""
    if not found:
        return ""
    told = [row_of(m) for m in found]
    rows = [[escape(str(v)) for v in r.values()] for r in told]
    note = "<p>Drawn in black and grey. Measured on other systems than those published or simulated here; not used for judging.</p>"
    return note + table(tuple(told[0]), rows)


def _index(study: Reproduction) -> str:
    """The study's claims by system and kind: the link targets of the verdict matrix's cells."""
    words = {v.id: v.verdict for v in study.verdicts}
    found: dict[tuple[str, str, str], list[str]] = {}
    for claim in study.claims:
        found.setdefault((system_of(claim), claim.kind, claim.use), []).append(claim.id)
    names = {use: name for use, name, _ in USES}
    order = [system for system, _, _ in found]
    head = ("system", "kind", "use", "claims")
    rows = []
    for (system, kind, use), ids in sorted(found.items(), key=lambda kv: (order.index(kv[0][0]), kv[0][1:])):
        links = "".join(f'<a href="#{escape(i)}" class="{words[i]}">{SIGN[words[i]][0]} {escape(i)}</a>' for i in ids)
        cells = ((escape(system), "id"), escape(kind), names[use], f'<span class="chips">{links}</span>')
        rows.append(row(head, cells, anchor(system, kind, use)))
    return table(head, rows)


def _sections(
    study: Reproduction, figures: Mapping[str, go.Figure], cards: Sequence[Card], platforms: Mapping[str, Sequence[Mapping[str, str]]],
    home: str,
) -> tuple[tuple[str, str, str], ...]:
    """(name, title, HTML) of every section; no HTML where the study has nothing of it."""
    paper = study.paper
    readings = table(
        ("the paper's words", "interpretation"),
        ((escape(k), escape(v)) for k, v in READINGS.items()),
    )
    stacks = "".join(figure_html(f, n) for n, f in figures.items() if n.startswith("anatomy-"))
    rungs = "".join(figure_html(f, n) for n, f in figures.items() if n.startswith("fidelity-"))
    ladder = f'{ladder_table(ladder_rows(study.facts))}<div class="figures">{rungs}</div>' if rungs else ""
    whys = "".join(f"<div>{why_paragraph(w, study)}</div>" for w in paper.why)
    evidence = _evidence()
    models = "".join(_card(card, evidence) for card in cards) + "".join(_platform(name, rows) for name, rows in platforms.items())
    models += "".join(f"<details><summary>Posterior of the fit {escape(p['of'])}</summary>{section(p)}</details>"
                      for p in of_folder(paper.folder))
    drawn = _figures(study, figures)
    hint = (
        '<p class="soft">Hover over a point, a star, a band or a label for what it stands for. Click a name in the legend to hide it.</p>'
    )
    return (
        ("curves", "Figures", f'{hint}<div class="figures">{drawn}</div>' if drawn else ""),
        ("blind", "Predicted blind", blind_html(paper.key, [figure_html(f, n) for n, f in figures.items() if n.startswith(PREFIX)],
                                                   "blind.html" if home else "")),
        ("measured", "Measured curves", measured_table(study.measured)),
        ("tables", "Tables: published and simulated", _exhibits(study, figures)),
        ("why", "Why", f'<div class="why">{whys}</div>' if whys else ""),
        ("anatomy", "Where the time of one message is spent", f'<div class="figures">{stacks}</div>' if stacks else ""),
        (
            "verdicts",
            "Published statements and simulated results",
            (_OVER_DRAWS + (_KEPT if study.spec is None else "") if any(v.agreement for v in study.verdicts) else "")
            + _verdict_tables(study.verdicts)
            + f"<details><summary>Interpretation of the paper's wording</summary>{readings}</details>",
        ),
        ("systems", "Claims by system and kind", _index(study)),
        ("start", "Starting a job", _startup(study)),
        ("fidelity", "Levels of fidelity", ladder),
        ("models", "The models and the machines", models),
    )


def page(
    study: Reproduction,
    figures: Mapping[str, go.Figure],
    cards: Sequence[Card],
    platforms: Mapping[str, Sequence[Mapping[str, str]]] | None = None,
    footer: str = "",
    home: str = "",
) -> str:
    """The page of a study as HTML text. ``figures``: name -> figure, those named ``anatomy-*`` and ``fidelity-*`` go to their own sections.

    ``platforms``: name -> its numbers; ``home``: the file of the front page, where there is one.
    """
    paper = study.paper
    shown = [part for part in _sections(study, figures, cards, platforms or {}, home) if part[2]]
    links = " ".join(f'<a href="#{name}">{_SHORT.get(name, title)}</a>' for name, title, _ in shown)
    above = f'<a href="{escape(home)}">All papers</a> ' if home else ""
    body = "".join(f'<h2 id="{name}">{title}</h2>{html}' for name, title, html in shown)
    runtimes = ", ".join(name_of(m) for m in paper.models)
    marked = " Stars, bands and dashed lines show what the paper's text states." if study.points else ""
    marked += f" {paper.remark}" if paper.remark else ""
    rung = "" if paper.fidelity == "mechanism" else f" Simulated at fidelity level {paper.fidelity}, not with the mechanism."
    told = " · ".join(t for t in (footer, f"drawn from runs {ranges(study.runs)} of the store" if study.runs else "") if t)
    return document(
        paper.title,
        f"""<header><p class="soft">retrompi replays: {escape(paper.citation)}</p><h1>{escape(paper.title)}</h1>
<p>{escape(runtimes)} on {escape(", ".join(paper.platforms))}, simulated process by process.{escape(rung)}{escape(marked)}</p>
<nav>{above}{links}</nav></header>
{_counts(study)}
{body}
<footer class="soft"><p><small>{escape(told)}</small></p></footer>
{drawing(figures)}<script>{SORT}</script>""",
    )


_SHORT = {
    "measured": "StoredCurve",
    "blind": "Blind",
    "tables": "Tables",
    "anatomy": "Anatomy",
    "verdicts": "Verdicts",
    "systems": "By system",
    "start": "Start-up",
    "fidelity": "Fidelity",
    "models": "Models",
}


def anatomy_table(anatomy: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Flat rows model, mode, size_B, stage, process, seconds for the CSV export."""
    return [
        {
            "model": a["model"],
            "mode": a["mode"],
            "size_B": a["size_B"],
            **{k: s[k] for k in ("stage", "process", "seconds")},
        }
        for a in anatomy
        for s in a["stages"]
    ]
