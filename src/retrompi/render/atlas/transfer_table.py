"""The table of transfer as texts: a table of numbers, and one of the statements that hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from retrompi.base.translate import lazy
from retrompi.base.units import format_bytes, format_quantity, format_span
from retrompi.papers.predict.transfer import PREDICTION, STATEMENTS
from retrompi.render.document.html import table

__all__ = ["HELD", "NUMBERS", "numbers", "statement_rows", "transfer_html"]

NUMBERS = (lazy("model"), lazy("machine"), lazy("what"), lazy("published"), lazy("simulated"), lazy("ratio"), lazy("use"))
"""The columns of `numbers`."""
HELD = (lazy("model"), lazy("machine"), lazy("fitted"), lazy("held out"))
"""The columns of `statement_rows`."""


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return f"{value:.0f} B" if unit == "B" else format_quantity(value, unit)


def numbers(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of numbers with texts for `NUMBERS`. A prediction's range is its interval, in parentheses, and not what was published."""
    out = []
    for row in rows:
        if row["unit"] in (STATEMENTS, None):
            continue
        size = "" if row["unit"] == "B" else f" {format_bytes(row['size_B'])}"
        published, simulated = (_number(row[k], row["unit"]) for k in ("published", "simulated"))
        if row["low"] is not None and row["low"] != row["high"]:
            published = format_span(row["low"], row["high"], row["unit"])
        texts = {
            "what": f"{row['what']}{size}", "published": f"({published})" if str(row["ref"]).startswith(PREDICTION) else published,
            "simulated": simulated or "not run", "ratio": "" if row["ratio"] is None else f"{row['ratio']:.2f}",
        }
        out.append({**row, **texts})
    return out


def statement_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each model and machine whose statements are counted, or of which no number is known, with texts for `HELD`."""
    out: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        if row["unit"] not in (STATEMENTS, None):
            continue
        texts = out.setdefault((row["model"], row["machine"]), {**row, "fitted": "", "held out": ""})
        if row["unit"] is None:
            texts["held out"] = "no number is published"
        elif row["simulated"] is None:
            texts[row["use"]] = f"{row['published']:g}, not judged"
        else:
            texts[row["use"]] = f"{row['simulated']:g} of {row['published']:g} hold"
    return list(out.values())


def transfer_html(rows: Sequence[Mapping[str, Any]]) -> str:
    """Both tables as HTML."""
    both = []
    for head, texts in ((NUMBERS, numbers(rows)), (HELD, statement_rows(rows))):
        cells = [
            [escape(str(t[k])) for k in head] + [f'<small class="soft">{escape(" ".join(x for x in (t["ref"], t["note"]) if x))}</small>']
            for t in texts
        ]
        both.append(table((*head, "source, note"), cells))
    return "".join(both)
