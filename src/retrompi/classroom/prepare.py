"""Answers of the students' own numbers, simulated before they are needed: a check then finds all of its runs in the store.

One quiet process works through them; a check that comes first simulates for itself.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from retrompi.base.errors import RetrompiError
from retrompi.classroom.course import labs
from retrompi.classroom.database import Database
from retrompi.classroom.schema import Member as Row
from retrompi.classroom.schema import Work

if TYPE_CHECKING:
    from retrompi.studio.jobs import Report
    from retrompi.studio.room import Member, Room

__all__ = ["SESSION", "Preparer", "reference"]

SESSION = "the course itself, which prepares"
"""No browser can have this session: it is no cookie's."""
_WAIT_S = 120.0


def reference(report: Report, store: str | None, lab: str, student: str) -> dict[str, Any]:
    """The right answers of a student, and where mistakes lead; a job. Afterwards the store has all their runs."""
    from retrompi.labs.bench import Bench
    from retrompi.labs.grade import computed, usual
    from retrompi.labs.lab import lab as lab_of
    from retrompi.labs.student import draw
    from retrompi.store import open_store

    found = lab_of(lab)
    bench = Bench(open_store(store))
    p = draw(found, student)
    right = computed(found, p, bench)
    usual(found, p, bench)
    return {k: v for k, v in right.items() if isinstance(v, (int, float, str))}


class Preparer:
    """Prepares the works that are begun, those at hand first. Thread-safe."""

    def __init__(self, db: Database, room: Room) -> None:
        self._db, self._room = db, room
        self._changed = threading.Condition()
        self._waiting: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._known: dict[tuple[str, str], dict[str, Any]] = {}
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

    def wanted(self, member: Member, lab: str) -> None:
        """A member has begun a lab."""
        with self._changed:
            if (lab, member.student) not in self._known:
                self._waiting[lab, member.student] = None
                self._waiting.move_to_end((lab, member.student), last=False)
                self._changed.notify()

    def right(self, lab: str, student: str) -> dict[str, Any] | None:
        """The right answers of a student, if they are prepared."""
        with self._changed:
            return self._known.get((lab, student))

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._ending:
                    self._changed.wait()
                if self._ending:
                    return
                lab, student = next(iter(self._waiting))
            found: dict[str, Any] = {}
            with suppress(RetrompiError):
                jobs = self._room.jobs
                job = jobs.submit(SESSION, "answers", reference, self._room.store, lab, student)
                state = jobs.wait(job, SESSION, _WAIT_S)
                if state.status == "done":
                    found = state.result
            with self._changed:
                self._waiting.pop((lab, student), None)
                self._known[lab, student] = found

    def close(self) -> None:
        """Ends."""
        with self._changed:
            self._ending = True
            self._changed.notify()
