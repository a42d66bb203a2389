"""A study's results as tables for the terminal and for pages: one axis across if it fits, the others down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrompi.base.units import format_span
from retrompi.studies.read.view import COUNTS, View, ViewAxis, by_panel, group_rows, order_of, values_in_order

__all__ = ["WIDTH", "StudyTable", "cell", "tables"]

WIDTH = 80
"""Maximum width of a table in characters; wider ones list their values in one column."""
_MOST = 9


@dataclass(frozen=True)
class StudyTable:
    """A table: ``across`` is the axis whose values are the columns ("" for one column of numbers), ``heads`` the axes down the side."""

    title: str
    heads: tuple[str, ...]
    across: str
    columns: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    """(values of ``heads``, the numbers as text)."""

    def dicts(self) -> list[dict[str, Any]]:
        """Flat rows with every head and column as a key."""
        return [{**dict(zip(self.heads, left, strict=True)), **dict(zip(self.columns, right, strict=True))} for left, right in self.rows]


def cell(v: View, row: Mapping[str, Any]) -> str:
    """A row's number with its interval, or the outcome of its run."""
    told = v.metric.show(row["value"]) or str(row["outcome"])
    low, high = row.get("low"), row.get("high")
    return told if low is None or high is None else f"{told} ({format_span(low, high, v.metric.unit)})"


def _table_width(v: View, axis: ViewAxis, other: Sequence[ViewAxis]) -> int:
    """The table's width with ``axis`` across."""
    number = max((len(cell(v, r)) for r in v.rows), default=1)
    left = sum(max(len(a.key), *(len(t) for t in a.values)) + 2 for a in other)
    return left + sum(max(len(t), number) + 2 for t in axis.values)


def _across(v: View, panel: Sequence[str], x: str | None) -> ViewAxis | None:
    free = [a for a in v.axes if a.key not in panel]
    if x is not None:
        return v.axis(x)
    fit = [a for a in free if len(a.values) <= _MOST and _table_width(v, a, [o for o in free if o is not a]) <= WIDTH]
    if len(free) < 2 or v.sampled:
        return None
    # Prefer numeric axes, counts first, and axes without missing cells; then the axis with most values, which saves most lines.
    return max(fit, key=lambda a: (_full(v, a, free), a.key in COUNTS, a.numeric, len(a.values)), default=None)


def _full(v: View, across: ViewAxis, free: Sequence[ViewAxis]) -> bool:
    """Whether every line of the table has a value in every column of ``across``."""
    left = {tuple(r["values"][a.key] for a in free if a is not across) for r in v.rows}
    every = {tuple(r["values"][a.key] for a in free) for r in v.rows}
    return len(left) * len(across.values) == len(every)


def tables(v: View, panel: Sequence[str] = (), x: str | None = None) -> list[StudyTable]:
    """A table for each panel: the metric over the other axes; a run without a value shows its outcome."""
    panel = [v.axis(k).key for k in panel]
    across = _across(v, panel, x)
    out = []
    for label, rows in by_panel(v, panel):
        # An axis that does not apply to a panel ("-" everywhere) needs no column.
        title = ", ".join(f"{k} {t}" for k, t in zip(panel, label, strict=True))
        down = [a for a in v.axes if a.key not in panel and a is not across]
        heads = tuple(a.key for a in down if len({r["values"][a.key] for r in rows}) > 1 or len(rows) == 1)
        lines: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        of_line = group_rows(heads, rows)
        found = {r["values"][across.key] for r in rows} if across else set()
        columns = [t for t in values_in_order(across) if t in found] if across else [v.metric.name]
        for values in order_of(v, heads, rows):
            mine = of_line[values]
            if across:
                first = {r["values"][across.key]: r for r in reversed(mine)}
                lines.append((values, tuple(cell(v, first[t]) if t in first else "" for t in columns)))
            else:
                lines += [(values, (cell(v, r),)) for r in mine]
        out.append(StudyTable(title, heads, across.key if across else "", tuple(columns), tuple(lines)))
    return out


