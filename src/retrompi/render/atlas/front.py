"""The front page of the atlas: the verdict matrix over all papers, failures, claims not judged, and how the runs were produced."""

from __future__ import annotations

import os
import platform as _machine
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base.units import format_time
from retrompi.papers.judging.verdicts import Summary, Verdict, summary
from retrompi.papers.predict import predictions, scores
from retrompi.papers.predict.interventions import Effect, effects
from retrompi.papers.predict.matrix import MatrixCell, cells, merge_cells
from retrompi.papers.predict.transfer import shipped_rows, with_verdicts
from retrompi.papers.reproduce.network_agreement import NetworkAgreement
from retrompi.papers.reproduce.reproduction import Reproduction, judge_all
from retrompi.papers.statements.claims import KINDS, Claim, load, paper_key
from retrompi.papers.statements.systems import anchor, system_of
from retrompi.render.atlas import blind_page
from retrompi.render.atlas import glance as glancing
from retrompi.render.atlas.ladder import ladder_rows, ladder_table
from retrompi.render.atlas.machines_page import PAGE, SOURCES, machine_cells
from retrompi.render.atlas.matrix import SORT, matrix_html
from retrompi.render.atlas.paper_page import over_draws
from retrompi.render.atlas.transfer_table import transfer_html
from retrompi.render.document.html import SIGN, bounds, boxes, document, number, ranges, scroller, table
from retrompi.render.document.plotted import drawing, figure_html
from retrompi.studies.archive.provenance import networks

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["JUDGED", "AtlasProvenance", "Scorecard", "front_page", "provenance_of", "scorecard"]

JUDGED = ("calibrate", "validate")
"""Uses whose claims must be judged; claims of other uses cannot be."""

_USE = {"calibrate": "Fit", "validate": "Held out", "exclude": "Excluded", "context": "Context"}


@dataclass(frozen=True)
class AtlasProvenance:
    """How an atlas was produced: rows of (what, text)."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Scorecard:
    """The content of the front page. ``verdicts`` covers every claim of the reference, ``claims`` the same rows in the same order."""

    studies: tuple[Reproduction, ...]
    claims: tuple[Claim, ...]
    verdicts: tuple[Verdict, ...]
    fidelity: tuple[dict[str, Any], ...] = ()
    lmbench: tuple[dict[str, Any], ...] = ()
    """The rows of lmbench's table, simulated and published."""
    beside: NetworkAgreement | None = None
    """If the runs had another network: how many verdicts are those of the engine's own."""

    @property
    def replayed(self) -> dict[str, Reproduction]:
        """Key -> study, for the papers that have a page."""
        return {s.paper.key: s for s in self.studies}

    def matrix(self) -> dict[tuple[str, str, str], Counter[str]]:
        """(system, kind, use) -> how many pass, fail and are unjudged."""
        out: dict[tuple[str, str, str], Counter[str]] = {}
        for claim, verdict in zip(self.claims, self.verdicts, strict=True):
            out.setdefault((system_of(claim), claim.kind, claim.use), Counter())[verdict.verdict] += 1
        return out

    def transfer(self) -> list[dict[str, Any]]:
        """The table of transfer, its statements counted by these verdicts."""
        return with_verdicts(shipped_rows(), {v.id: v.verdict for v in self.verdicts})

    def cells(self) -> list[MatrixCell]:
        """The cells of the matrix of runtimes, machines and networks."""
        words = {v.id: v.verdict for v in (*self.verdicts, *(v for s in self.studies for v in s.verdicts))}
        return merge_cells([*cells(self.transfer(), words), *machine_cells(self.lmbench)])

    def failures(self) -> list[tuple[Claim, Verdict]]:
        """Claims that fail, in file order."""
        return [(c, v) for c, v in self._both() if v.verdict == "fail"]

    def defects(self) -> list[tuple[Claim, Verdict]]:
        """Claims that must be judged but are not."""
        return [(c, v) for c, v in self._both() if v.verdict == "unjudged" and c.use in JUDGED]

    def shown_only(self) -> list[tuple[Claim, Verdict]]:
        """Claims that are not judged by their nature: context, and statements in which a paper contradicts itself."""
        return [(c, v) for c, v in self._both() if c.use not in JUDGED]

    def of_paper(self, paper: str) -> list[Summary]:
        """Counts of one study's claims by use."""
        return summary([v for c, v in self._both() if paper_key(c.paper) == paper])

    def _both(self) -> zip[tuple[Claim, Verdict]]:
        return zip(self.claims, self.verdicts, strict=True)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Name -> flat rows for the CSV exports."""
        matrix = [
            {"system": s, "kind": k, "use": u, **{w: n[w] for w in ("pass", "fail", "unjudged")}} for (s, k, u), n in self.matrix().items()
        ]
        return {
            "matrix": matrix,
            "cells": [c.row() for c in self.cells()],
            "verdicts": [
                {"paper": paper_key(c.paper), "group": system_of(c), "kind": c.kind, **v.row(), "published": v.published}
                for c, v in self._both()
            ],
            "fidelity": list(self.fidelity),
            **({"networks": [d.row(self.beside.network) for d in self.beside.differing]} if self.beside is not None else {}),
        }


def scorecard(
    studies: Sequence[Reproduction], lmbench: Sequence[dict[str, Any]] = (), beside: NetworkAgreement | None = None
) -> Scorecard:
    """The scorecard of these studies and of lmbench's table; claims of papers that were not replayed count as not judged."""
    rows = [{"paper": s.paper.key, **row} for s in studies for row in ladder_rows(s.facts)]
    return Scorecard(tuple(studies), tuple(load()), tuple(judge_all(studies)), tuple(rows), tuple(lmbench), beside)


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return _machine.processor() or _machine.machine()


def provenance_of(store: Store, studies: Sequence[Reproduction], wall_s: float, jobs: int) -> AtlasProvenance:
    """When, where and from which runs an atlas was produced; ``wall_s``: seconds of the preceding replay, ``jobs``: its parallel jobs."""
    from retrompi.store import code_version

    ids = list(dict.fromkeys(i for s in studies for i in s.runs))
    simulated = sum(s.simulated for s in studies)
    runs = [store.run(i) for i in ids]
    rows = [
        ("made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        (
            "time",
            f"{format_time(wall_s)} with {jobs} parallel jobs: {simulated} runs simulated, {len(ids) - simulated} found in the store",
        ),
        ("machine", f"{_cpu()}, {os.cpu_count()} processors, {_machine.system()} {_machine.release()}, Python {_machine.python_version()}"),
        ("program", f"retrompi {code_version()}"),
    ]
    if carried := networks(runs):
        rows.append(("network", ", ".join(carried)))
    if runs:
        hosts = sorted({str(r["host"]) for r in runs})
        spent = sum(float(r["wall_s"] or 0.0) for r in runs)
        first, last = min(str(r["created"]) for r in runs), max(str(r["created"]) for r in runs)
        when = first if first == last else f"{first} to {last}"
        rows.append(("runs", f"{ranges(ids)}: {format_time(spent)} of simulation on {', '.join(hosts)}, {when}"))
    return AtlasProvenance(tuple(rows))


# --- HTML ---


def _page_of(score: Scorecard, paper: str) -> str:
    return f"{paper}.html" if paper in score.replayed else ""


def _link(score: Scorecard, claim: Claim) -> str:
    page = _page_of(score, paper_key(claim.paper))
    return (
        f'<a class="id" href="{page}#{escape(claim.id)}">{escape(claim.id)}</a>' if page else f'<span class="id">{escape(claim.id)}</span>'
    )


def _tally(n: Counter[str]) -> tuple[str, str]:
    """(text, class) of a cell: passed out of judged, failed, not judged."""
    judged = n["pass"] + n["fail"]
    parts = [f"{n['pass']}/{judged}" if judged else ""]
    if n["unjudged"]:
        parts.append(f"· {n['unjudged']}")
    look = "bad" if n["fail"] else "open" if n["unjudged"] else "good"
    return " ".join(p for p in parts if p), look


_WORDS = {"bad": "✗ ", "open": "", "good": "✓ "}


def _matrix(score: Scorecard) -> str:
    found = score.matrix()
    columns = [(u, k) for u in JUDGED for k in KINDS if any(key[1:] == (k, u) for key in found)]
    papers = {system_of(c): paper_key(c.paper) for c in score.claims}

    def td(n: Counter[str], href: str, told: str) -> str:
        if not n:
            return "<td></td>"
        text, look = _tally(n)
        link = f' href="{href}"' if href else ""
        return f'<td><a class="{look}"{link} title="{escape(told)}">{_WORDS[look]}{text}</a></td>'

    rows = []
    sums: dict[tuple[str, str], Counter[str]] = {}
    for system in papers:
        page = _page_of(score, papers.get(system, ""))
        cells = []
        for use, kind in columns:
            n = found.get((system, kind, use), Counter())
            sums.setdefault((use, kind), Counter()).update(n)
            told = f"{system}, {kind}, {_USE[use].lower()}: {n['pass']} pass, {n['fail']} fail, {n['unjudged']} not judged"
            cells.append(td(n, f"{page}#{anchor(system, kind, use)}" if page else "", told))
        whole = [sum((found.get((system, k, u), Counter()) for k in KINDS), Counter()) for u in JUDGED]
        other = sum(sum(n.values()) for (s, _, u), n in found.items() if s == system and u not in JUDGED)
        totals = "".join(td(n, "", f"{system}, {_USE[u].lower()}, all kinds") for n, u in zip(whole, JUDGED, strict=True))
        name = f'<a href="{page}">{escape(system)}</a>' if page else escape(system)
        rows.append(f'<tr><th scope="row">{name}</th>{totals}{"".join(cells)}<td>{other or ""}</td></tr>')
    last = "".join(td(sum((n for (u, _), n in sums.items() if u == use), Counter()), "", f"all, {_USE[use].lower()}") for use in JUDGED)
    last += "".join(td(sums[c], "", f"all systems, {c[1]}, {_USE[c[0]].lower()}") for c in columns)
    other = sum(sum(n.values()) for (_, _, u), n in found.items() if u not in JUDGED)
    rows.append(f'<tr class="sum"><th scope="row">all</th>{last}<td>{other}</td></tr>')
    spans = "".join(f'<th colspan="{sum(u == use for u, _ in columns)}">{_USE[use]}</th>' for use in JUDGED)
    kinds = "".join(f"<th>{k}</th>" for _, k in columns)
    return (
        f'{scroller("claims by system and kind")}<table class="grid matrix"><thead>'
        f'<tr><td></td><th colspan="2">All kinds</th>{spans}<th>Shown only</th></tr>'
        f"<tr><td></td><th>fit</th><th>held out</th>{kinds}<td></td></tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        '<p class="soft"><small>✓ all judged claims pass · ✗ some fail · "7/8": 7 of 8 judged claims pass; "· 2": 2 not judged. '
        "Shown only: definitions, and statements contradicted within their paper. A cell links to its claims.</small></p>"
    )


def _papers(score: Scorecard) -> str:
    out = []
    for paper in dict.fromkeys([*(paper_key(c.paper) for c in score.claims), *score.replayed]):
        study = score.replayed.get(paper)
        forms = list(dict.fromkeys(c.paper for c in score.claims if paper_key(c.paper) == paper))
        title = study.paper.title if study else paper
        head = f'<a href="{paper}.html">{escape(title)}</a>' if study else f"{escape(title)}: not reproduced"
        about = f'<p class="soft"><small>{escape(study.paper.citation)}</small></p>' if study else ""
        both = (
            f'<p class="soft"><small>Two forms of one paper: {escape(" and ".join(sorted(forms)))}.</small></p>' if len(forms) > 1 else ""
        )
        counts = "".join(f"<br>{escape(str(s).removesuffix(', 0 not judged'))}" for s in score.of_paper(paper) if s.use in JUDGED)
        shown = ""
        if study:
            links = [f'<a href="{paper}.html#table-{t.name}">{escape(t.title)}</a>' for t in study.paper.table_plans]
            blind = sum(told["paper"] == paper for told in predictions.shipped_predictions().values())
            links += [f'<a href="{paper}.html#blind">{blind} curves predicted blind</a>'] if blind else []
            shown = f"<p><small>{'; '.join(links)}</small></p>"
        out.append(f'<div class="paper"><h3>{head}</h3>{about}{both}<p>{counts.removeprefix("<br>")}</p>{shown}</div>')
    if score.lmbench:
        near = sum(bool(r["near"]) for r in score.lmbench if r["use"] == "predicted")
        of = sum(r["use"] == "predicted" for r in score.lmbench)
        told = "".join(f"<br>{escape(s)}" for s in SOURCES.values())
        out.append(
            f'<div class="paper"><h3><a href="{PAGE}.html">Sources that speak of machines only</a></h3><p class="soft"><small>'
            f"{told.removeprefix('<br>')}</small></p><p>lmbench: {near} of {of} predicted numbers within 15 %</p></div>"
        )
    return f'<div class="papers">{"".join(out)}</div>'


def _interventions(found: Sequence[Effect]) -> str:
    head = ("one option is changed", "published", "simulated", "direction", "size", "rows or curves")
    rows = []
    for e in found:
        published = "not known to the project" if e.published is None else f"× {e.published:.2f} ({e.low:.2f} – {e.high:.2f})"
        simulated = "" if e.simulated is None else f"× {e.simulated:.2f}"
        words = ["" if ok is None else "pass" if ok else "fail" for ok in (e.direction, e.size)]
        signs = [f'<span class="{w}">{SIGN[w]}</span>' if w else "" for w in words]
        option = f'<br><small class="soft">{escape(e.option)}</small>'
        rows.append((escape(e.title) + option, published, simulated, *signs, escape(f"{e.before}, {e.after}")))
    return table(head, rows)


def _failures(score: Scorecard) -> str:
    rows = [
        (f'{_link(score, c)}<br><small class="soft">{escape(c.system)}</small>', _USE[c.use],
         f"{escape(v.observable)}: <b>{escape(v.published)}</b>", number(v.observed), bounds(v),
         escape("; ".join(t for t in (v.note, v.contradiction) if t)))
        for c, v in score.failures()
    ]
    if not rows:
        return "<p>None.</p>"
    return table(("claim", "use", "published", "observed", "read as", "notes, contradiction"), rows)


def _unjudged_section(score: Scorecard) -> str:
    by_note: dict[str, list[Claim]] = {}
    for c, v in score.defects():
        by_note.setdefault(v.note, []).append(c)
    parts = []
    if by_note:
        items = "".join(f"<li>{', '.join(_link(score, c) for c in found)}: {escape(note)}</li>" for note, found in by_note.items())
        count = len(score.defects())
        parts.append(f'<div class="defect"><b>Defect: {count} claims that must be judged are not.</b><ul>{items}</ul></div>')
    else:
        parts.append("<p>Every claim that can be judged has been judged.</p>")
    rows = [
        (_link(score, c), _USE[c.use], escape(c.system), f"{escape(c.observable)}: {escape(v.published)}", number(v.observed))
        for c, v in score.shown_only()
    ]
    shown = table(("claim", "use", "system", "published", "observed"), rows)
    parts.append(f"<details><summary>Shown, not judged: {len(rows)} definitions and contradicted statements</summary>{shown}</details>")
    return "".join(parts)


def _fidelity(score: Scorecard) -> str:
    if not score.fidelity:
        return ""
    return (
        '<h2 id="fidelity">The fidelity ladder</h2><p>What coarser models of the same runtime give on a PingPong, sampled from the '
        "mechanism or fitted to it. Each paper's page has the curves.</p>" + ladder_table(score.fidelity, "paper")
    )


def _networks(beside: NetworkAgreement | None) -> str:
    """How many verdicts are those of the engine's own network, and a table of the others."""
    if beside is None:
        return ""
    head = ("statement", "paper", "native", "observed", beside.network, "observed", "published", "why")
    rows = [
        (f'<a class="id" href="{d.paper}.html#{escape(d.native.id)}">{escape(d.native.id)}</a>', escape(d.paper), d.native.verdict,
         number(d.native.observed), d.other.verdict, number(d.other.observed), escape(d.native.published), escape(d.reason(beside.network)))
        for d in beside.differing
    ]
    return f'<h2 id="networks">Under another network</h2><p>{escape(str(beside))}.</p>' + (table(head, rows) if rows else "")


def _counts(score: Scorecard) -> str:
    shown = []
    for part in summary(score.verdicts):
        if part.judged:
            tail = f"; {part.unjudged} not judged" if part.unjudged else ""
            share = f"{part.passed / part.judged:.0%} of the judged claims{tail}{over_draws(part)}"
            shown.append((_USE[part.use], f"{part.passed} of {part.judged} pass", share))
        else:
            shown.append((_USE[part.use], f"{part.unjudged}", "shown, never judged"))
    return boxes(shown)


def front_page(score: Scorecard, how: AtlasProvenance) -> str:
    """The front page as HTML text. It loads no external resource; its script sorts tables, and without it they stay as they are."""
    papers = len({c.paper for c in score.claims})
    glance = glancing.figure(score.claims, score.verdicts, scores.scores())
    rows = [(f"<b>{escape(a)}</b>", escape(b)) for a, b in how.rows]
    return document(
        "Atlas",
        f"""<header><h1>retrompi: what {papers} papers said, and what the simulator says</h1>
<p>{len(score.claims)} published statements about historical MPI environments, each with a verdict. <b>Fit</b>: a calibration was allowed to
see it. <b>Held out</b>: it judges, and no fit ever saw it.</p>
<nav><a href="#runtimes">Runtimes and machines</a><a href="#blind">The blind test</a>
<a href="#interventions">Interventions</a>
<a href="#matrix">Verdicts</a><a href="#papers">Papers</a><a href="#failures">Failures</a>
<a href="#unjudged">Not judged</a>
{'<a href="#fidelity">Fidelity</a>' if score.fidelity else ""}
{'<a href="#networks">Networks</a>' if score.beside else ""}<a href="#transfer">Transfer</a>
<a href="#made">How it was made</a></nav></header>
{figure_html(glance, "glance", tall=True)}
{_counts(score)}
<h2 id="runtimes">Runtimes, networks, machines</h2>{matrix_html(score.cells(), [*score.replayed, PAGE])}
<h2 id="blind">The blind test</h2><p>Whole curves of runtimes were predicted before the project knew them, and then laid over the
published ones: <a href="{blind_page.PAGE}.html">each over its curve, the scores, and what was missed</a>.</p>
{boxes(blind_page.summary(scores.scores()))}
<h2 id="interventions">Interventions</h2><p>Published what-ifs: one option of a runtime is changed and nothing else. The effect is the ratio
of the largest bandwidths; no model is tuned to it.</p>{_interventions(effects(v for s in score.studies for v in s.verdicts))}
<h2 id="matrix">Verdicts by system and kind of claim</h2>{_matrix(score)}
<h2 id="papers">The papers</h2>{_papers(score)}
<h2 id="failures">What fails: {len(score.failures())}</h2>{_failures(score)}
<h2 id="unjudged">What is not judged</h2>{_unjudged_section(score)}
{_fidelity(score)}
{_networks(score.beside)}
<h2 id="transfer">Transfer</h2><p>Every model on every machine that its library is known to have run on. <b>Input</b>: a value of the model
or the machine comes from it. <b>Blind</b>: predicted, with an interval, before the project knows the published number.</p>
{transfer_html(score.transfer())}
<h2 id="made">Provenance</h2>{table(("what", ""), rows)}
{drawing({"glance": glance})}<script>{SORT}</script>""",
    )
