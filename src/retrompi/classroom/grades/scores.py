"""The score of a student in a lab as others may see it: marks count once they are shown. Told to the learning platform, if there is one."""

from __future__ import annotations

import importlib
import importlib.util
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from retrompi.classroom.course.schema import CourseLab
from retrompi.classroom.grades.records import Standing, standings_of

__all__ = ["tell", "visible_points"]


def visible_points(one: Standing, released: datetime | None) -> tuple[float, float]:
    """(points, points that are still open) as the student sees them."""
    return (one.points, one.open) if released is not None else one.unmarked


def tell(connection: Connection, lab: str, member_id: int | None = None) -> None:
    """Puts a student's score in a lab (None: all of them) into the outbox of the learning platform, in the transaction that changed it."""
    if importlib.util.find_spec("retrompi.classroom.lti") is None:
        return
    scores: Any = importlib.import_module("retrompi.classroom.lti.lti_scores")
    released = connection.scalar(sa.select(CourseLab.released).where(CourseLab.lab == lab))
    for (member, name), one in standings_of(connection, member_id).items():
        if name == lab and one.checked is not None:
            points, left = visible_points(one, released)
            scores.record(connection, member=member, lab=lab, points=points, of=one.of, pending=left > 0, at=datetime.now(UTC))
