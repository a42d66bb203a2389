"""A teacher's marks in what a student sees of a check, once they are shown to students."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from retrompi.classroom.course.database import Database
from retrompi.classroom.course.schema import CourseLab, Mark

__all__ = ["with_marks"]


def with_marks(db: Database, member_id: int, lab: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a check's grading (`retrompi.labs.grade.Grading.row`) with the marks of the tasks that a person marks.

    Such a task has the status ``marked``, the points of its marks, nothing open, and says what the teacher wrote; the sums follow. The row
    as it is while the marks are not shown.
    """
    mine = sa.select(Mark.task, Mark.points, Mark.comment).where(Mark.member_id == member_id, Mark.lab == lab).order_by(Mark.criterion)
    with db.reading() as connection:
        if connection.scalar(sa.select(CourseLab.released).where(CourseLab.lab == lab)) is None:
            return dict(row)
        given: dict[str, list[Any]] = {}
        for mark in connection.execute(mine):
            given.setdefault(mark.task, []).append(mark)
    tasks = []
    for task in row["tasks"]:
        marks = given.get(task["task"], []) if task["kind"] in ("text", "file") else []
        if any(m.points is not None for m in marks):
            said = " ".join(m.comment for m in marks if m.comment)
            points = sum(m.points or 0.0 for m in marks)
            task = {**task, "status": "marked", "points": points, "open": 0.0, "says": said, "compared": ""}
        tasks.append(task)
    return {**row, "tasks": tasks, "points": sum(t["points"] for t in tasks), "open": sum(t["open"] for t in tasks)}
