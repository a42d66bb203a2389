"""The rows of the table of transfer as texts, and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from retrompi.base.units import format_bytes, format_quantity
from retrompi.papers.transfer import STATEMENTS
from retrompi.render.html import table

__all__ = ["HEAD", "shown", "transfer_html"]

HEAD = ("model", "machine", "what", "published", "simulated", "ratio", "use")
"""The columns that `shown` makes texts of."""


def _number(value: float | None, unit: str | None) -> str:
    if value is None:
        return ""
    return format_quantity(value, unit) if unit in ("s", "B/s", "B") else f"{value:g}"


def shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with texts for `HEAD`: what is compared, the published number or its range, the simulated one, and their ratio."""
    unit = row["unit"]
    what = str(row["what"]) + (f" at {format_bytes(row['size_B'])}" if row["size_B"] is not None else "")
    published, simulated, low, high = (_number(row[k], unit) for k in ("published", "simulated", "low", "high"))
    if unit == STATEMENTS:
        simulated = f"{simulated} pass" if simulated else "not judged"
    elif row["use"] == "blind":
        published, simulated = "kept apart", f"{simulated} ({low} .. {high})"
    elif low != high:
        published = f"{low} .. {high}"
    if not simulated and published:
        simulated = "not simulated"
    ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
    texts = {"what": what, "published": published, "simulated": simulated, "ratio": ratio, "use": row["use"] or ""}
    return {**row, **texts}


def transfer_html(rows: Iterable[Mapping[str, Any]]) -> str:
    """The table as HTML."""
    cells = []
    for row in rows:
        texts = shown(row)
        told = " ".join(t for t in (texts["ref"], texts["note"]) if t)
        cells.append([escape(texts[k]) for k in HEAD] + [f'<small class="soft">{escape(told)}</small>'])
    return table((*HEAD, "source, note"), cells)
