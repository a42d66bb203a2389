"""The predictions of a class as a distribution: counts by choice, or by decade and its parts for numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import sqlalchemy as sa

from retrompi.base import units
from retrompi.classroom.course.database import Database
from retrompi.classroom.course.schema import Member, Work
from retrompi.classroom.works.states import state_of
from retrompi.labs import answers
from retrompi.labs.answers import Given, UnreadableAnswer
from retrompi.labs.lab import Lab, Task

__all__ = ["Bin", "PredictionSpread", "distribution", "sealed_predictions"]

MOST_BINS = 14


@dataclass
class Bin:
    """A class of the histogram; ``answers``: for how many students the simulated answer falls into it."""

    label: str
    count: int
    answers: int = 0


@dataclass
class PredictionSpread:
    """The predictions of a task: ``median`` as text for numbers, ``within`` how many were within a factor of two of their own answer."""

    task: Task
    bins: list[Bin] = field(default_factory=list)
    count: int = 0
    median: str = ""
    answer: str = ""
    """The simulated answer, or its range over the students; empty while it is not shown."""
    within: int | None = None


def sealed_predictions(db: Database, lab: Lab) -> list[tuple[str, dict[str, str]]]:
    """(student, task -> sealed prediction) of all students with a work on the lab."""
    query = sa.select(Member.student, Work.state).join(Work, Work.member_id == Member.id)
    with db.reading() as connection:
        rows = connection.execute(query.where(Work.lab == lab.name, Member.role == "student").order_by(Member.id)).all()
    return [(row.student, {k: s.text for k, s in state_of(row.state).sealed.items()}) for row in rows]


def distribution(task: Task, rows: Sequence[tuple[str, dict[str, str]]], right: Mapping[str, Any] | None = None) -> PredictionSpread:
    """The distribution of the predictions of ``task``; with the simulated answers of the students beside it, where they are to be shown."""
    found = PredictionSpread(task)
    values: list[tuple[str, Any]] = []
    for student, texts in rows:
        if task.id in texts:
            try:
                values.append((student, answers.value(task, Given(texts[task.id], texts[task.id]))))
            except UnreadableAnswer:
                continue
    found.count = len(values)
    wanted = {student for student, _ in values}
    right = {student: v for student, v in (right or {}).items() if student in wanted}
    if not task.number:
        words = list(task.choices) or sorted({str(v) for _, v in values})
        normal = [answers.normal(w) for w in words]
        counts = [sum(answers.normal(str(v)) == n for _, v in values) for n in normal]
        shown = [sum(answers.normal(str(v)) == n for v in right.values()) for n in normal]
        found.bins = [Bin(*row) for row in zip(words, counts, shown, strict=True)]
        if right:
            found.within = sum(answers.normal(str(v)) == answers.normal(str(right.get(s, ""))) for s, v in values)
            found.answer = ", ".join(f"{b.label} ({b.answers})" if b.answers < len(right) else b.label for b in found.bins if b.answers)
        return found
    _numbers(found, values, right)
    return found


def _numbers(found: PredictionSpread, values: Sequence[tuple[str, float]], right: Mapping[str, Any]) -> None:
    """Fills in the bins of numbers: 1, 2, 5 of every decade, so that guesses that differ by powers of ten are seen side by side."""
    unit = found.task.unit
    numbers = sorted(float(v) for _, v in values)
    if not numbers:
        return
    found.median = number_text(numbers[len(numbers) // 2], unit)
    edges = _edges([v for v in [*numbers, *map(float, right.values())] if v > 0 and math.isfinite(v)])
    rest = sum(v <= 0 for v in numbers)
    if rest:
        found.bins.append(Bin(f"0 {unit}".strip() if min(numbers) >= 0 else "0 or less", rest))
    for low, high in pairwise(edges):
        count = sum(low <= v < high for v in numbers)
        hits = sum(low <= float(v) < high for v in right.values())
        found.bins.append(Bin(f"{number_text(low, unit)} … {number_text(high, unit)}", count, hits))
    if right:
        found.within = sum(s in right and float(right[s]) > 0 and v > 0 and 0.5 <= v / float(right[s]) <= 2 for s, v in values)
        low, high = min(map(float, right.values())), max(map(float, right.values()))
        ends = dict.fromkeys((number_text(low, unit), number_text(high, unit)))
        found.answer = " … ".join(ends)


def _edges(values: Sequence[float]) -> list[float]:
    """Edges 1, 2, 5 of each decade around the values; whole decades where that would be too many bins."""
    if not values:
        return []
    low, high = math.floor(math.log10(min(values))), math.floor(math.log10(max(values))) + 1
    steps = (1, 2, 5) if 3 * (high - low) <= 3 * MOST_BINS else (1,)
    edges = [m * 10.0**e for e in range(low, high) for m in steps] + [10.0**high]
    first = max((i for i, e in enumerate(edges) if e <= min(values) * (1 + 1e-12)), default=0)
    last = next((i for i, e in enumerate(edges) if e > max(values)), len(edges) - 1)
    edges = edges[first : last + 1]
    if len(edges) > MOST_BINS + 1:
        edges = [10.0**e for e in range(low, high + 1)]
    return edges


def number_text(value: float, unit: str) -> str:
    """A number with its unit, in three digits."""
    return units.format_quantity(float(f"{value:.3g}"), unit)
