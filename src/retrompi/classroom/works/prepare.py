"""Answers of the students' own numbers, simulated before they are needed: a check then simulates nothing.

One job at a time works through them, for all students after a restart; a check that comes first simulates for itself. What is known is
shared with the labs' pages (`retrompi.studio.labs.lab_session.Desk`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from retrompi.base.errors import RetrompiError
from retrompi.classroom.course.database import Database
from retrompi.classroom.course.schema import Member as Row
from retrompi.classroom.course.schema import Work
from retrompi.classroom.course.settings import labs
from retrompi.labs.lab import lab as lab_of
from retrompi.studio.labs.lab_jobs import expected_values, key_of
from retrompi.studio.labs.lab_session import Desk

if TYPE_CHECKING:
    from retrompi.studio.jobs.resources import Resources, SessionMember

__all__ = ["SESSION", "Preparer"]

SESSION = "the course itself, which prepares"
"""No browser can have this session: it is no cookie's."""
_WAIT_S = 120.0


class Preparer:
    """Prepares the works that are begun, those at hand first. Thread-safe."""

    def __init__(self, db: Database, resources: Resources) -> None:
        self._db, self._resources = db, resources
        self._changed = threading.Condition()
        self._waiting: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._known = Desk(resources).known
        self._ending = False
        self._thread = threading.Thread(target=self._work, name="course references", daemon=True)

    def start(self) -> None:
        """Begins, with the works that there are."""
        self._thread.start()
        names = {row["lab"] for row in labs(self._db)}
        with self._db.reading() as connection:
            rows = connection.execute(sa.select(Row.student, Work.lab).join(Work, Work.member_id == Row.id)).all()
        with self._changed:
            for row in rows:
                if row.lab in names:
                    self._waiting[row.lab, row.student] = None
            self._changed.notify()

    def prefer(self, member: SessionMember, lab: str) -> None:
        """A member has begun a lab."""
        with self._changed:
            self._waiting[lab, member.student] = None
            self._waiting.move_to_end((lab, member.student), last=False)
            self._changed.notify()

    def right(self, lab: str, student: str) -> dict[str, Any] | None:
        """The right answers of a student, if they are prepared."""
        found = self._known.get(key_of(lab_of(lab), student))
        return None if found is None else dict(found["expected"])

    def known_values(self, lab: str, students: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Key of a student's values -> right ones and those of mistakes, of the students for whom they are prepared."""
        keys = {key_of(lab_of(lab), student) for student in students}
        return {key: dict(found) for key in keys if (found := self._known.get(key)) is not None}

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._ending:
                    self._changed.wait()
                if self._ending:
                    return
                lab, student = next(iter(self._waiting))
            with suppress(RetrompiError):
                self._compute(lab, student)
            with self._changed:
                self._waiting.pop((lab, student), None)

    def _compute(self, lab: str, student: str) -> None:
        key, jobs = key_of(lab_of(lab), student), self._resources.jobs
        if self._known.get(key) is not None:
            return
        job = jobs.submit(SESSION, "answers", expected_values, lab, student, self._resources.places[1], client=SESSION)
        state = jobs.wait(job, SESSION, _WAIT_S)
        if state.status == "done":
            self._known.put(key, state.result)

    def close(self) -> None:
        """Ends."""
        with self._changed:
            self._ending = True
            self._changed.notify()
