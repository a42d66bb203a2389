"""The tables of a study as HTML and as flat rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from retrompi.base.units import format_bytes, format_rate, format_time
from retrompi.papers.reproduce.reproduction import Reproduction
from retrompi.papers.statements.exhibits import ClaimTable, FactTable, ScatterFigure, TablePlan
from retrompi.render.document.html import SIGN, Content, cell, number, percent, table
from retrompi.render.figures.exhibits import GridCell, claim_rows, fact_rows, grid, matching, pairs
from retrompi.render.figures.figures import name_of

__all__ = ["fact_cell", "flat_table", "is_narrow", "scatter_of", "scatter_pairs", "table_html"]

_MISSING = '<p class="defect">Nothing was simulated for this table.</p>'
_SHORT = {"calibrate": "fit", "validate": "held out", "exclude": "excluded", "context": "context"}


def flat_table(study: Reproduction, plan: TablePlan) -> list[dict[str, Any]]:
    """The rows of a table for the CSV export."""
    if isinstance(plan, FactTable):
        return fact_rows(study.facts, plan)
    return grid(study, plan).flat() if plan.cells else claim_rows(study, plan)


def scatter_of(study: Reproduction, plan: TablePlan) -> ScatterFigure | None:
    """The figure beside a table of numbers; None if the file has none."""
    if not isinstance(plan, ClaimTable) or not plan.scatter:
        return None
    claims = tuple(c.claim.id for c in grid(study, plan).cells.values()) if plan.cells else plan.claims
    title = "Published against simulated" if plan.scatter == "numbers" else "Simulated: deviation from the published value"
    return ScatterFigure(f"{plan.name}-scatter", title, claims, plan.groups, show=plan.scatter)


_NARROW = 5


def is_narrow(study: Reproduction, plan: TablePlan) -> bool:
    """Whether there is space for a figure beside the table."""
    return isinstance(plan, ClaimTable) and bool(plan.cells) and len(grid(study, plan).columns) <= _NARROW


def table_html(study: Reproduction, plan: TablePlan) -> str:
    """A table as HTML, without its title and caption."""
    if isinstance(plan, FactTable):
        return _facts(study, plan)
    return _grid(study, plan) if plan.cells else _claims(study, plan)


def _link(claim: str, text: str | None = None) -> str:
    return f'<a href="#{escape(claim)}">{escape(text or claim)}</a>'


def _verdict(word: str) -> str:
    return '<span class="unjudged">· excluded</span>' if word == "excluded" else f'<span class="{word}">{SIGN[word]}</span>'


def _claims(study: Reproduction, plan: ClaimTable) -> str:
    rows = claim_rows(study, plan)
    if not rows:
        return _MISSING
    head = ("claim", plan.head or "what", "published", "simulated", "unit", "deviation", "verdict", "use")
    cells: list[list[Content]] = [
        [
            f'<span class="id">{_link(r["id"])}</span>', escape(r["what"]), number(r["published"]),
            f"<b>{number(r['simulated'])}</b>" if r["simulated"] is not None else "", escape(r["unit"]),
            (percent(r["deviation_percent"]), "n"), _verdict(r["verdict"]), _SHORT[r["use"]],
        ]
        for r in rows
    ]
    return table(head, cells)


def _grid_cell(found: GridCell | None, unit: bool) -> str:
    if found is None:
        return ""
    sign = SIGN[found.verdict.verdict][0] if found.claim.use != "exclude" else "excluded"
    word = f'<a class="{found.verdict.verdict}" href="#{escape(found.claim.id)}" title="{escape(found.claim.id)}">{sign}</a>'
    if not found.pairs:
        told = "not simulated" if found.verdict.observed is None else number(found.verdict.observed)
        return f"{told} {word}<small>published {escape(found.claim.value)}</small>"
    simulated = " … ".join(number(p.simulated) for p in found.pairs)
    published = " … ".join(number(p.published) for p in found.pairs)
    off = " … ".join(percent(None if p.deviation is None else 100 * p.deviation) for p in found.pairs)
    use = ", fitted" if found.claim.use == "calibrate" else ""
    tail = f" {escape(found.claim.unit)}" if unit else ""
    return f"<b>{simulated}</b>{tail} {word}<small>published {published}<br>{off}{use}</small>"


def _grid(study: Reproduction, plan: ClaimTable) -> str:
    found = grid(study, plan)
    if not found.cells:
        return _MISSING
    units = dict.fromkeys(c.claim.unit for c in found.cells.values())
    head = (plan.head or "", *found.columns)
    # the first column is a name, without a cell label
    rows = [
        f"<tr><td>{escape(row)}</td>"
        + "".join(cell(column, _grid_cell(found.cells.get((row, column)), len(units) > 1)) for column in found.columns)
        + "</tr>"
        for row in found.rows
    ]
    head_unit = f"In {next(iter(units))}: s" if len(units) == 1 else "S"
    note = f'<p class="soft"><small>{escape(head_unit)}imulated in bold, published below it.</small></p>'
    return table(head, rows, "grid") + note


def fact_cell(value: Any, form: str = "") -> str:
    """A fact as HTML: a number formatted by ``form`` ("%", "s", "B", "B/s"), text escaped, mappings and lists spelled out."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        if form == "%":
            return "&lt; 0.01 %" if 0 < abs(value) < 1e-4 else f"{100 * value:.3g} %"
        if form == "s":
            return format_time(float(value))
        if form == "B/s":
            return format_rate(float(value))
        return format_bytes(float(value)) if form == "B" else number(float(value))
    if isinstance(value, Mapping):
        return "; ".join(f"{escape(str(k))} {fact_cell(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(fact_cell(v) for v in value)
    return escape(str(value))


def _facts(study: Reproduction, plan: FactTable) -> str:
    rows = fact_rows(study.facts, plan)
    if not rows:
        return _MISSING
    keys = list(dict.fromkeys(k for row in rows for k in row))
    titles = {c[0]: c[1] if len(c) > 1 else c[0] for c in plan.columns}
    forms = {c[0]: c[2] for c in plan.columns if len(c) > 2}
    head = [titles.get(k, k.replace("_", " ").replace(".", ", ")) for k in keys]
    cells = []
    for row in rows:
        shown: list[Content] = []
        for key in keys:
            value = row.get(key)
            if key in plan.keys:
                html = f'<span class="id">{escape(name_of(str(value if value is not None else "")).replace("_", " "))}</span>'
            else:
                html = fact_cell(name_of(value) if key == "model" and isinstance(value, str) else value, forms.get(key, ""))
            shown.append((html, "n" if _plain(value) else ""))
        cells.append(shown)
    return table(head, cells)


def _plain(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def scatter_pairs(study: Reproduction, patterns: Sequence[str]) -> list[Any]:
    """The pairs of numbers of all claims that match."""
    return [p for claim, verdict in matching(study, patterns) for p in pairs(study, claim, verdict)]
