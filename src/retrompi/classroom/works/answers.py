"""One student's answers in a lab beside the right ones for their own numbers, and what each of their checks said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from retrompi.classroom.course.database import Database
from retrompi.classroom.course.schema import Check, CheckResult
from retrompi.classroom.works.marks import answer_text
from retrompi.classroom.works.shelf import kept_work
from retrompi.labs import text as _text
from retrompi.labs.lab import Lab, Task
from retrompi.labs.start import value_text
from retrompi.labs.student import draw

__all__ = ["Answered", "CheckRow", "answers", "checks"]


@dataclass(frozen=True)
class Answered:
    """A task of one student: the answer that stands there now, the sealed prediction, the right value ("" while it is not known, or where
    there is none), and what each check said: (number of the check, answer then, status, words), where any of these changed."""

    task: Task
    question: str
    answer: str
    sealed: str
    right: str
    points: float | None
    tries: tuple[tuple[int, str, str, str], ...]

    @property
    def status(self) -> str:
        """The result of the newest check."""
        return self.tries[-1][2] if self.tries else ""


@dataclass(frozen=True)
class CheckRow:
    """A check of one student: ``changed`` are (task, status before, status) of the tasks that it judged otherwise than the one before."""

    number: int
    at: datetime
    late: bool
    points: float
    of: float
    changed: tuple[tuple[Task, str, str], ...] = field(default=())


def _right_value_text(task: Task, value: Any) -> str:
    """A right value as a student would write it."""
    if task.kind == "order":
        return ", ".join(task.choice_text(str(one)) for one in value)
    if not task.number:
        return task.choice_text(str(value))
    return value_text(task, value).strip('"')


def _results(db: Database, lab: Lab, member_id: int) -> list[dict[str, Any]]:
    """The rows of all checks of a student, the first check first."""
    columns = (Check.number, Check.at, Check.late, Check.points.label("all_points"), Check.of.label("all_of"), CheckResult.task,
               CheckResult.status, CheckResult.says, CheckResult.given, CheckResult.points)
    query = sa.select(*columns).join(CheckResult, CheckResult.check_id == Check.id)
    with db.reading() as connection:
        rows = connection.execute(query.where(Check.member_id == member_id, Check.lab == lab.name).order_by(Check.number, Check.id))
        return [dict(row) for row in rows.mappings()]


def answers(db: Database, lab: Lab, member_id: int, right: Mapping[str, Any] | None) -> list[Answered]:
    """A student's tasks in their order; ``right`` are the right values of this student's numbers. [] without a work."""
    with db.reading() as connection:
        work = kept_work(connection, lab.name, member_id)
    if work is None:
        return []
    known = _text.names(lab, draw(lab, work.state.student), work.state.student)
    results: dict[str, list[dict[str, Any]]] = {}
    for one in _results(db, lab, member_id):
        results.setdefault(one["task"], []).append(one)
    found = []
    for task in lab.tasks:
        tries: list[tuple[int, str, str, str]] = []
        for one in results.get(task.id, ()):
            said = (one["given"], one["status"], one["says"])
            if not tries or tries[-1][1:] != said:
                tries.append((one["number"], *said))
        of = task.of or task.id
        value = _right_value_text(lab.task(of), right[of]) if right and of in right else ""
        sealed = work.state.sealed[task.id].text if task.id in work.state.sealed else ""
        points = results[task.id][-1]["points"] if task.id in results else None
        question = _text.fill(task.question, known, strict=False)
        found.append(Answered(task, question, answer_text(work, task), sealed, value, points, tuple(tries)))
    return found


def checks(db: Database, lab: Lab, member_id: int) -> list[CheckRow]:
    """The checks of a student, the first one first, with what changed from one to the next."""
    tasks = {t.id: t for t in lab.tasks}
    before: dict[str, str] = {}
    found: dict[int, tuple[dict[str, Any], list[tuple[Task, str, str]]]] = {}
    for row in _results(db, lab, member_id):
        _, changed = found.setdefault(row["number"], (row, []))
        if row["task"] in tasks and before.get(row["task"], "missing") != row["status"]:
            changed.append((tasks[row["task"]], before.get(row["task"], ""), row["status"]))
        before[row["task"]] = row["status"]
    return [
        CheckRow(number, row["at"], row["late"], row["all_points"], row["all_of"], tuple(changed))
        for number, (row, changed) in found.items()
    ]
