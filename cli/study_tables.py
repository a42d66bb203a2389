"""The tables of a study's values, as ``retrompi study show`` and ``retrompi sweep`` print them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from retrompi.cli.draws import percent
from retrompi.cli.output import Column, print_table, say

if TYPE_CHECKING:
    from retrompi.studies.read.table import StudyTable
    from retrompi.studies.read.view import View

__all__ = ["intervals", "print_tables"]


def intervals(v: View) -> str:
    """``; in brackets the 90 % interval over 100 draws``; empty for a study without draws."""
    if not v.draws:
        return ""
    least = min((r["completed"] for r in v.rows), default=1.0)
    some = f", of which {100 * least:.4g} % or more completed" if least < 1 else ""
    return f"; in brackets the {percent(v.level)} interval over {v.draws} draws{some}"


def print_tables(v: View, panel: Sequence[str] = (), x: str | None = None) -> None:
    """The tables of a study's values, and the axes without effect on them."""
    from retrompi.studies.read.table import tables
    from retrompi.studies.read.view import without_effect

    for t in tables(v, panel, x):
        _table(t)
    if idle := without_effect(v):
        say(f"\nwithout effect on {v.metric.name}: {', '.join(idle)}")


def _table(t: StudyTable) -> None:
    from retrompi.studies.read.table import WIDTH

    titles = list(t.heads)
    widths = [max(len(h), *(len(left[i]) for left, _ in t.rows)) for i, h in enumerate(titles)] if t.rows else []
    numbers = [max(len(c), *(len(right[i]) for _, right in t.rows)) for i, c in enumerate(t.columns)] if t.rows else []
    if sum(widths) + sum(numbers) + 2 * (len(widths) + len(numbers)) > WIDTH:
        titles = [h.rpartition(".")[2] if len({x.rpartition(".")[2] for x in t.heads}) == len(t.heads) else h for h in t.heads]
    told = ", ".join(x for x in (t.title, f"{t.across} across" if t.across else "") if x)
    if told:
        say(f"\n{told}")
    names = [Column(str(i), title) for i, title in enumerate(titles)]
    columns = [*names, *(Column(str(len(names) + i), title, right=True) for i, title in enumerate(t.columns))]
    print_table([{str(i): x for i, x in enumerate((*left, *right))} for left, right in t.rows], columns)
