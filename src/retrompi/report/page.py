"""One self-contained page per study: nothing is loaded from elsewhere, and it reads on a phone as on a projector."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from retrompi.report.cards import Card
from retrompi.report.figures import name_of
from retrompi.units import format_bytes
from retrompi.validate.metrics import READINGS
from retrompi.validate.study import Study, Why
from retrompi.validate.verdicts import Verdict, summary

__all__ = ["page", "why_paragraph"]

_CSS = """
:root { --ink: #1a1a1a; --soft: #555; --line: #d6d6d6; --paper: #fff; --tint: #f5f6f8;
  --pass: #0a6b4b; --fail: #b03a00; --open: #5c5c5c; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1760px; padding: 1rem clamp(.7rem, 2.5vw, 2.5rem) 4rem; color: var(--ink); background: var(--paper);
  font: 1.06rem/1.55 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: clamp(1.4rem, 3.2vw, 2.2rem); line-height: 1.2; margin: .6rem 0 .2rem; }
h2 { font-size: clamp(1.2rem, 2.3vw, 1.6rem); margin: 2.4rem 0 .6rem; border-bottom: 2px solid var(--ink); padding-bottom: .2rem; }
h3 { font-size: 1.12rem; margin: 1.2rem 0 .2rem; }
p { max-width: 78ch; margin: .4rem 0; }
nav { font-size: .95rem; } nav a { margin-right: 1.1rem; white-space: nowrap; }
a { color: #0059a0; }
.soft { color: var(--soft); } small { font-size: .88rem; }
.counts { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); margin: 1rem 0; }
.count { background: var(--tint); border-left: .35rem solid var(--soft); padding: .6rem .9rem; }
.count b { display: block; font-size: 1.5rem; line-height: 1.25; }
.figures { display: grid; gap: 1rem 1.6rem; grid-template-columns: repeat(auto-fit, minmax(min(34rem, 100%), 1fr)); }
figure { margin: 0; min-width: 0; } figcaption { font-weight: 600; font-size: 1.08rem; }
.figure { height: clamp(27rem, 62vh, 46rem); min-width: 0; }
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
.scroll { overflow-x: auto; }
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

_SIGN = {"pass": "✓ pass", "fail": "✗ fail", "unjudged": "· unjudged"}
_CONFIG: dict[str, Any] = {"displaylogo": False, "responsive": True, "modeBarButtonsToRemove": ["lasso2d", "select2d"]}
_USES = (
    ("calibrate", "Fit", "what calibration was allowed to see"),
    ("validate", "Held out", "judged only, never seen by a fit"),
    ("exclude", "Excluded", "contradicted inside the paper; shown, never judged"),
    ("context", "Context", "configuration and definitions"),
)


def _number(value: float | str | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return escape(value)
    return f"{value:,.0f}" if abs(value) >= 1000 and value == int(value) else f"{value:.4g}"


def _bounds(v: Verdict) -> str:
    if v.low is None and v.high is None:
        return ""
    if v.high is None:
        return f"≥ {_number(v.low)}"
    bounds = _number(v.low) if v.low == v.high else f"{_number(v.low)} – {_number(v.high)}"
    return f"{bounds} {escape(v.unit)}"


def _cell(label: str, html: str, css: str = "") -> str:
    name = f' class="{css}"' if css else ""
    # One element inside: on a phone the cell is a grid of label and content.
    return f'<td data-label="{label}"{name}><div>{html}</div></td>' if html else f'<td data-label="{label}"{name}></td>'


def _verdict_row(v: Verdict) -> str:
    published = f"{escape(v.observable)}: <b>{escape(v.published)}</b>"
    notes = [f"<span>{escape(v.note)}</span>"] if v.note else []
    if v.reading:
        notes.append(f'<span class="soft">Read as: {escape(v.reading)}</span>')
    if v.contradiction:
        notes.append(f'<span class="contradiction">{escape(v.contradiction)}</span>')
    residual = "" if v.residual is None else "inside" if v.residual == 0 else f"{v.residual:+.3g}"
    return (
        f'<tr id="{escape(v.id)}">'
        + _cell("claim", f'<span class="id">{escape(v.id)}</span><br><small class="soft">{escape(v.system)}</small>')
        + _cell("published", published)
        + _cell("observed", _number(v.observed), "n" if not isinstance(v.observed, str) else "")
        + _cell("read as", _bounds(v))
        + _cell("residual", residual, "n")
        + _cell("verdict", f'<span class="{v.verdict}">{_SIGN[v.verdict]}</span>')
        + _cell("notes", "<br>".join(notes))
        + _cell("source", escape(v.source))
        + "</tr>"
    )


def _table(head: Sequence[str], rows: Iterable[str], css: str = "stack") -> str:
    cells = "".join(f"<th>{escape(h)}</th>" for h in head)
    return f'<div class="scroll"><table class="{css}"><thead><tr>{cells}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _verdict_tables(verdicts: Sequence[Verdict]) -> str:
    out = []
    head = (
        "claim",
        "published",
        "observed",
        "read as",
        "residual",
        "verdict",
        "notes, reading, contradiction",
        "source",
    )
    for use, name, meaning in _USES:
        mine = [v for v in verdicts if v.use == use]
        judged = [v for v in mine if v.verdict != "unjudged"]
        rest = [v for v in mine if v.verdict == "unjudged"]
        if judged:
            text = f"{sum(v.verdict == 'pass' for v in judged)} of {len(judged)} pass"
            out.append(f"<h3>{name}: {text}</h3><p class='soft'>{meaning}</p>" + _table(head, map(_verdict_row, judged)))
        if rest:
            label = f"{name}: {len(rest)} not judged" if judged or use not in ("exclude", "context") else f"{name}: {len(rest)}"
            is_open = " open" if use == "exclude" else ""
            out.append(f"<details{is_open}><summary>{label}</summary>{_table(head, map(_verdict_row, rest))}</details>")
    return "".join(out)


def shares(stages: Sequence[Mapping[str, Any]], most: int = 3) -> list[tuple[str, float, float]]:
    """(stage, seconds, share of the whole) of the largest stages that matter (half a percent), processes added up."""
    total: dict[str, float] = {}
    for s in stages:
        total[s["stage"]] = total.get(s["stage"], 0.0) + float(s["seconds"])
    whole = sum(total.values())
    ranked = sorted(total.items(), key=lambda kv: -kv[1])[:most]
    return [(name, value, value / whole) for name, value in ranked if whole and value / whole >= 0.005]


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"


def why_paragraph(why: Why, study: Study) -> str:
    """The paragraph of an anomaly as HTML: mechanism, text, the simulated shares and the verdicts of its claims."""
    parts = [
        f"<h3>{escape(why.title)}</h3>",
        f'<p><span class="mechanism">{escape(why.mechanism)}</span> {escape(why.text)}',
    ]
    entry = next((a for a in study.anatomy if (a["model"], a["mode"], a["size_B"]) == (why.model, why.mode, why.size)), None)
    if entry is not None:
        told = ", ".join(f"{escape(name)} {_seconds(value)} ({share:.0%})" for name, value, share in shares(entry["stages"]))
        parts.append(f" In the simulated message of {format_bytes(entry['size_B'])} ({_seconds(entry['total_s'])}): {told}.")
    found = {v.id: v for v in study.verdicts}
    links = [
        f'<li><a href="#{escape(c)}">{escape(c)}</a> <span class="{found[c].verdict}">{_SIGN[found[c].verdict][0]}</span> '
        f"{escape(found[c].observable)}: {escape(found[c].published)}</li>"
        for c in why.claims
        if c in found
    ]
    return "".join(parts) + f'</p><ul class="claims">{"".join(links)}</ul>'


def _figure(figure: go.Figure, name: str) -> str:
    # The title is the page's: it wraps on a phone, which one inside the drawing does not.
    title = figure.layout.title.text or ""
    box = f'<div class="figure" id="figure-{escape(name)}" role="img" aria-label="{escape(title)}"></div>'
    return f"<figure><figcaption>{escape(title)}</figcaption>{box}</figure>"


def _drawing(figures: Mapping[str, go.Figure]) -> str:
    """The script that draws all figures. It stands last: a figure drawn before its neighbours exist gets their room."""
    parts = []
    for name, figure in figures.items():
        spec = json.loads(figure.to_json())
        spec["layout"].pop("title", None)
        spec["layout"]["margin"]["t"] -= 10  # the buttons keep their room above the labels
        parts.append([f"figure-{name}", spec["data"], spec["layout"]])
    data = json.dumps(parts, separators=(",", ":")).replace("</", "<\\/")
    return f"<script>for (const [id, data, layout] of {data}) Plotly.newPlot(id, data, layout, {json.dumps(_CONFIG)});</script>"


def _card(card: Card) -> str:
    head = ("parameter", "value", "range", "source", "what it is")
    rows = [
        "<tr>"
        + _cell("parameter", f'<span class="id">{escape(r["name"])}</span>')
        + _cell("value", escape(r["value"]), "n")
        + _cell("range", escape(r["range"]))
        + _cell("source", escape(r["source"]))
        + _cell("what it is", escape(r["help"]))
        + "</tr>"
        for r in card.rows
    ]
    fit = ""
    if card.fit:
        rows_fit = [
            "<tr>" + _cell("what", escape(f["what"])) + _cell("name", escape(f["name"])) + _cell("text", escape(f["text"])) + "</tr>"
            for f in card.fit
        ]
        fit = "<h3>Fit: bounds, residuals, identifiability</h3>" + _table(("what", "name", ""), rows_fit)
    variants = "".join(f"<li><b>{escape(n)}</b>: {escape(note)}</li>" for n, note in card.variants)
    rivals = f"<h3>Rival hypotheses that can be run</h3><ul>{variants}</ul>" if variants else ""
    return (
        f"<details><summary>{escape(card.title)} ({escape(card.version)}, {escape(card.years)})</summary>"
        f"<p>{escape(card.summary)}</p>{_table(head, rows)}{fit}{rivals}</details>"
    )


def _platform(name: str, rows: Sequence[Mapping[str, str]]) -> str:
    head = ("quantity", "value", "range", "source", "what it is")
    cells = [
        "<tr>"
        + "".join(_cell(label, escape(r[k])) for label, k in zip(head, ("name", "value", "range", "source", "help"), strict=True))
        + "</tr>"
        for r in rows
    ]
    return f"<details><summary>Platform {escape(name)}</summary>{_table(head, cells)}</details>"


def _startup(study: Study) -> str:
    facts = study.facts.get("startup", {})
    if not facts:
        return ""
    rows = []
    for model, f in facts.items():
        failed = f"{f['failures']} of {f['attempts']} ({f['failure_rate']:.1%})" if f.get("attempts") else ""
        steps = "; ".join(escape(str(s.get("step", ""))) + (" <b>by hand</b>" if s.get("manual") else "") for s in f.get("steps", ()))
        rows.append(
            "<tr>"
            + _cell("runtime", f'<span class="id">{escape(name_of(model))}</span>')
            + _cell("starts that fail", failed, "n")
            + _cell("windows", _number(f.get("windows")), "n")
            + _cell("daemons", _number(f.get("daemons")), "n")
            + _cell("by hand", _number(f.get("manual_steps_per_job")), "n")
            + _cell("steps", steps)
            + "</tr>"
        )
    head = ("runtime", "starts that fail", "console windows", "daemons", "manual steps a job", "steps")
    return '<h2 id="start">Starting a job</h2>' + _table(head, rows)


def _counts(study: Study) -> str:
    boxes = []
    for part in summary(study.verdicts):
        name, meaning = next((n, m) for u, n, m in _USES if u == part.use)
        if part.judged:
            tail = f"; {part.unjudged} more not judged" if part.unjudged else ""
            boxes.append(
                f'<div class="count">{name}<b>{part.passed} of {part.judged} pass</b><small class="soft">{meaning}{tail}</small></div>'
            )
        elif part.use == "exclude":
            boxes.append(f'<div class="count">{name}<b>{part.unjudged} shown</b><small class="soft">{meaning}</small></div>')
    return f'<div class="counts">{"".join(boxes)}</div>'


def page(
    study: Study,
    figures: Mapping[str, go.Figure],
    cards: Sequence[Card],
    platform: Sequence[Mapping[str, str]] = (),
    footer: str = "",
) -> str:
    """The page of a study as HTML text. ``figures``: name -> figure, those named ``anatomy-*`` go to their own section."""
    setup = study.setup
    curves = [_figure(f, n) for n, f in figures.items() if not n.startswith("anatomy")]
    stacks = [_figure(f, n) for n, f in figures.items() if n.startswith("anatomy")]
    whys = "".join(f"<div>{why_paragraph(w, study)}</div>" for w in setup.why)
    readings = _table(
        ("the paper's words", "how they are read"),
        (f"<tr>{_cell('words', escape(k))}{_cell('read as', escape(v))}</tr>" for k, v in READINGS.items()),
    )
    runtimes = ", ".join(name_of(m) for m in setup.models)
    runs = ", ".join(str(r) for r in study.runs)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(setup.title)} — retrompi</title><link rel="icon" href="data:,"><style>{_CSS}</style>
<script>{get_plotlyjs()}</script></head><body>
<header><p class="soft">retrompi replays: {escape(setup.authors)}</p><h1>{escape(setup.title)}</h1>
<p>{escape(runtimes)} on {escape(setup.platform)}, simulated process by process. Stars, bands and dashed lines are what the paper's
text states; its plotted figures are lost, and no point of theirs is invented here.</p>
<nav><a href="#curves">Curves</a><a href="#why">Why</a><a href="#anatomy">Anatomy</a><a href="#verdicts">Verdicts</a>
<a href="#start">Start-up</a><a href="#models">Models</a></nav></header>
{_counts(study)}
<h2 id="curves">Time and bandwidth against message size</h2>
<p class="soft">Hover over a star, a band or a label for the statement it stands for. Click a name in the legend to hide a runtime.</p>
<div class="figures">{"".join(curves)}</div>
<h2 id="why">Why</h2><div class="why">{whys}</div>
<h2 id="anatomy">Where the time of one message goes</h2><div class="figures">{"".join(stacks)}</div>
<h2 id="verdicts">What was published, and what comes out</h2>{_verdict_tables(study.verdicts)}
<details><summary>How the paper's words are read</summary>{readings}</details>
{_startup(study)}
<h2 id="models">The models and the machines</h2>{"".join(map(_card, cards))}{_platform(setup.platform, platform) if platform else ""}
<footer class="soft"><p><small>{escape(footer)}{" · " if footer else ""}drawn from runs {escape(runs)} of the store</small></p></footer>
{_drawing(figures)}</body></html>
"""


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
