"""Marks and comments of open answers, by the criteria of a task's rubric."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from retrompi.base.errors import UsageError
from retrompi.classroom.course.database import Database
from retrompi.classroom.course.schema import Course, CourseLab, Mark, Member, Work
from retrompi.classroom.course.settings import plan
from retrompi.classroom.grades.scores import tell
from retrompi.classroom.works.shelf import kept_work, work_of
from retrompi.labs import text as _text
from retrompi.labs.lab import Criterion, Lab, Task
from retrompi.labs.student import draw
from retrompi.labs.work import Work as Done
from retrompi.labs.work import model_answer

__all__ = ["WHOLE", "GivenMark", "Sheet", "answer_text", "criteria", "fill_criteria", "give", "given_to", "of_member", "open_tasks",
           "release", "sheets"]

WHOLE = ""
"""The criterion of a task without a rubric, and of the comment on the whole answer."""
LONGEST = 4000
_WRAPPED = re.compile(r"(?<!\n)\n(?![\n*-])")
"""The end of a line within a paragraph of a model answer, which is wrapped in its file; the page wraps it anew."""


@dataclass(frozen=True)
class GivenMark:
    """A teacher's mark for a criterion."""

    points: float | None = None
    comment: str = ""


@dataclass
class Sheet:
    """One student's answer to be marked. ``tag`` names it in forms, also where the student is not to be known."""

    member_id: int
    name: str
    student: str
    tag: str
    question: str
    answer: str
    model: str
    criteria: tuple[Criterion, ...] = ()
    """What marks are given for, with this student's numbers."""
    marks: Mapping[str, GivenMark] = field(default_factory=dict)
    by: str = ""

    @property
    def marked(self) -> bool:
        """Whether it has points."""
        return any(m.points is not None for m in self.marks.values())

    @property
    def points(self) -> float:
        """The sum of its points."""
        return sum(m.points or 0.0 for m in self.marks.values())


def open_tasks(lab: Lab) -> list[Task]:
    """The tasks that a person marks: open questions, and programs (whose points may stay open)."""
    return [t for t in lab.tasks if t.kind in ("text", "file")]


def criteria(task: Task) -> tuple[Criterion, ...]:
    """The criteria to be marked: those of the rubric, or the whole answer as one."""
    return task.criteria or (Criterion(WHOLE, task.points, ""),)


def fill_criteria(task: Task, known: Mapping[str, str]) -> tuple[Criterion, ...]:
    """The criteria of a task with a student's numbers in their words."""
    return tuple(
        replace(c, says=_text.fill(c.says, known, strict=False),
                levels=tuple((points, _text.fill(says, known, strict=False)) for points, says in c.levels))
        for c in criteria(task)
    )


def _tag(secret: str, member_id: int, lab: str) -> str:
    return hashlib.sha256(f"{secret}\0{member_id}\0{lab}".encode()).hexdigest()[:16]


def answer_text(work: Done, task: Task) -> str:
    """The answer that stands in a work: its text, the items of an order in lines, or the program."""
    if task.kind == "file":
        return work.files.get(task.file, b"")[:100_000].decode("utf-8", "replace")
    found = work.answers.get(task.id, "")
    return found if isinstance(found, str) else "\n".join(found)


def sheets(db: Database, lab: Lab, task: Task, *, anonymous: bool = False) -> list[Sheet]:
    """The answers of all students who gave one; in an order without a meaning where names are not to be known."""
    found = []
    with db.reading() as connection:
        secret = _secret(connection)
        people = sa.select(Member.id, Member.name, Member.student).where(Member.role == "student").order_by(Member.key)
        marks = _marks(connection, lab.name, task.id)
        markers = sa.select(Mark.member_id, Member.name).join(Member, Member.id == Mark.by_id)
        by = {row.member_id: row.name for row in connection.execute(markers.where(Mark.lab == lab.name, Mark.task == task.id))}
        works = {r["member_id"]: dict(r) for r in connection.execute(sa.select(Work.__table__).where(Work.lab == lab.name)).mappings()}
        for person in connection.execute(people):
            if person.id not in works:
                continue
            work = work_of(connection, works[person.id])
            answer = answer_text(work, task)
            if not answer.strip():
                continue
            known = _text.names(lab, draw(lab, person.student), person.student)
            question = _text.fill(task.question, known, strict=False)
            model = _WRAPPED.sub(" ", model_answer(work, lab, task.id)) if task.kind == "text" else ""
            found.append(Sheet(person.id, person.name, person.student, _tag(secret, person.id, lab.name), question, answer, model,
                               fill_criteria(task, known), marks.get(person.id, {}), by.get(person.id, "")))
    return sorted(found, key=lambda s: s.tag) if anonymous else found


def _secret(connection: sa.Connection) -> str:
    """Something that only the course's database knows, for tags."""
    row = connection.execute(sa.select(Course.created, sa.func.min(Member.created)).select_from(Course).join(Member, sa.true())
                             .group_by(Course.created)).first()
    return repr(tuple(row or ()))


def _marks(connection: sa.Connection, lab: str, task: str) -> dict[int, dict[str, GivenMark]]:
    rows = connection.execute(sa.select(Mark.__table__).where(Mark.lab == lab, Mark.task == task)).mappings()
    found: dict[int, dict[str, GivenMark]] = {}
    for row in rows:
        found.setdefault(row["member_id"], {})[row["criterion"]] = GivenMark(row["points"], row["comment"])
    return found


def give(db: Database, lab: Lab, task: Task, member_id: int, given: Mapping[str, GivenMark], by_id: int | None) -> None:
    """Keeps the marks of one answer, in the place of those before. UsageError for points that the criterion does not have."""
    if task not in open_tasks(lab):
        raise UsageError(f"'{task.id}' is graded by simulation", code="bad-value")
    known = {c.name: c for c in criteria(task)}
    for name, one in given.items():
        if name not in known and not (name == WHOLE and one.points is None):
            raise UsageError(f"'{task.id}' has no criterion '{name[:60]}'", code="unknown-name")
        if one.points is not None and not 0 <= one.points <= known[name].points:
            raise UsageError(f"{name or task.id}: 0 to {known[name].points:g} points, not {one.points:g}", code="out-of-range")
        if len(one.comment) > LONGEST:
            raise UsageError(f"a comment of {len(one.comment)} characters; at most {LONGEST} are kept", code="out-of-range")
    now = datetime.now(UTC)
    mine = (Mark.member_id == member_id, Mark.lab == lab.name, Mark.task == task.id)
    rows = [
        {"member_id": member_id, "lab": lab.name, "task": task.id, "criterion": name, "points": one.points, "comment": one.comment,
         "by_id": by_id, "at": now}
        for name, one in given.items() if one.points is not None or one.comment
    ]
    with db.transaction() as connection:
        connection.execute(sa.delete(Mark).where(*mine))
        if rows:
            connection.execute(sa.insert(Mark), rows)
        tell(connection, lab.name, member_id)


def of_member(db: Database, member_id: int, lab: Lab) -> list[dict[str, Any]]:
    """The marked answers of one student in a lab: task, question, answer, points, criteria (name, points, of), comment."""
    found = []
    with db.reading() as connection:
        work = kept_work(connection, lab.name, member_id)
        if work is None:
            return []
        known = _text.names(lab, draw(lab, work.state.student), work.state.student)
        for task in open_tasks(lab):
            marks = _marks(connection, lab.name, task.id).get(member_id)
            if marks:
                rows = [{"name": c.name or task.id, "points": marks.get(c.name, GivenMark()).points, "of": c.points,
                         "says": c.says, "comment": marks.get(c.name, GivenMark()).comment if c.name else ""}
                        for c in fill_criteria(task, known)]
                question = _text.fill(task.question, known, strict=False)
                comment = marks.get(WHOLE, GivenMark()).comment
                found.append({"task": task.id, "question": question, "answer": answer_text(work, task), "criteria": rows,
                              "comment": comment, "points": sum(m.points or 0.0 for m in marks.values())})
    return found


def given_to(db: Database, member_id: int, lab: Lab) -> dict[str, tuple[float, str]]:
    """Task -> (points, comment) that teachers gave a student in a lab."""
    query = sa.select(Mark.task, Mark.criterion, Mark.points, Mark.comment).where(Mark.member_id == member_id, Mark.lab == lab.name)
    found: dict[str, tuple[float, str]] = {}
    with db.reading() as connection:
        for task, criterion, points, comment in connection.execute(query):
            before = found.get(task, (0.0, ""))
            found[task] = (before[0] + (points or 0.0), comment if criterion == WHOLE else before[1])
    return found


def release(db: Database, lab: str, yes: bool) -> None:
    """Shows a lab's marks and comments to the students, or hides them again."""
    row = plan(db, lab)
    with db.transaction() as connection:
        values = {"released": datetime.now(UTC) if yes else None}
        connection.execute(sa.update(CourseLab).where(CourseLab.lab == row["lab"]).values(**values))
        tell(connection, row["lab"])
