"""The fidelity ladder of a study, from its facts ``fidelity.MODEL.WHERE``: the distance of the coarser rungs from the mechanism.

Studies without these facts omit it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from retrompi.papers.statements.exhibits import CurveFigure, FactTable
from retrompi.render.document.html import Content, table
from retrompi.render.figures.exhibits import fact_rows
from retrompi.render.figures.figures import curve_figure, name_of
from retrompi.render.figures.tables import fact_cell

__all__ = ["ladder_figures", "ladder_points", "ladder_rows", "ladder_table"]

_COLUMNS = (
    ("curve_off", "curve: largest deviation from the mechanism", "%"),
    ("loggp_off", "LogGP: largest distance", "%"),
    ("spread.median", "slowest / fastest rung, median"),
    ("spread.max", "largest"),
)
_PLAN = FactTable("fidelity", "", "fidelity", ("model", "where"), _COLUMNS)


def ladder_rows(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows model, where (platform and mode), and the distances as shares; [] without such facts."""
    return fact_rows(facts, _PLAN)


def ladder_points(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows model, where, mode (the rung), size_B, time_us of every rung."""
    return [
        {"model": model, "where": where, "mode": key.removesuffix("_us"), "size_B": row["size_B"], "time_us": value}
        for model, places in facts.get("fidelity", {}).items()
        if isinstance(places, Mapping)
        for where, found in places.items()
        if isinstance(found, Mapping)
        for row in found.get("rows", ())
        for key, value in row.items()
        if key.endswith("_us")
    ]


def ladder_figures(facts: Mapping[str, Any]) -> dict[str, go.Figure]:
    """Name -> figure: one per place, with a curve for each model and rung."""
    points = ladder_points(facts)
    out = {}
    for i, where in enumerate(dict.fromkeys(p["where"] for p in points), 1):
        plan = CurveFigure(f"fidelity-{i}", f"Levels of fidelity, {where}: one-way time", "time", (("*", "*"),), published=False)
        out[plan.name] = curve_figure([p for p in points if p["where"] == where], plan)
    return out


def ladder_table(rows: Sequence[Mapping[str, Any]], *first: str) -> str:
    """The rows as HTML; ``first`` are the headings of columns before the model."""
    head = (*first, "model", "where", *(c[1] for c in _COLUMNS))
    forms = {c[0]: c[2] for c in _COLUMNS if len(c) > 2}
    lines: list[list[Content]] = [
        [
            *(fact_cell(row.get(k)) for k in first), f'<span class="id">{escape(name_of(str(row["model"])))}</span>',
            fact_cell(row["where"]),
            *((fact_cell(row.get(c[0]), forms.get(c[0], "")), "n") for c in _COLUMNS),
        ]
        for row in rows
    ]
    return table(head, lines)
