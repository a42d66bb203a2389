"""Checks that a server still owes: those it was stopped under, and results that the database did not take."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from retrompi.base import translate
from retrompi.base.errors import InputError, RetrompiError, StoreError
from retrompi.classroom.course.database import Database
from retrompi.classroom.works.asked_checks import Waiting, fail, record, waiting
from retrompi.classroom.works.prepare import SESSION
from retrompi.labs.lab import lab as lab_of
from retrompi.labs.work import CheckRequest
from retrompi.studio.labs.lab_jobs import check
from retrompi.studio.labs.lab_session import Desk, owner_of

if TYPE_CHECKING:
    from retrompi.classroom.works.shelf import DatabaseShelf
    from retrompi.labs.grade import Grading
    from retrompi.studio.jobs.resources import Resources, SessionMember

__all__ = ["Owed"]


class Owed:
    """The checks that are graded again, and the results that are recorded later. Thread-safe."""

    def __init__(self, db: Database, resources: Resources, shelf: Callable[[SessionMember], DatabaseShelf]) -> None:
        self._db, self._resources, self._shelf = db, resources, shelf
        self._known = Desk(resources).known
        self._lock = threading.Lock()
        self._again: deque[Waiting] = deque()
        self._unrecorded: deque[tuple[CheckRequest, Grading]] = deque()

    def find(self) -> None:
        """The checks under which a server of this course was stopped: they are graded by `pay`. Only before the course is served."""
        with self._lock:
            self._again.extend(waiting(self._db))

    def later(self, asked: CheckRequest, grading: Grading) -> None:
        """A result that the database did not take."""
        with self._lock:
            self._unrecorded.append((asked, grading))

    def pay(self) -> None:
        """Records what is left, and begins the checks that are left, as many as the studio takes; the others the next time."""
        self.record()
        with self._lock:
            left, self._again = self._again, deque()
        try:
            while left:
                try:
                    self._begin(left[0])
                except StoreError:
                    break
                except RetrompiError as error:
                    if error.code == "jobs-refused":
                        break
                    fail(self._db, left[0].asked, str(error))  # another version of the lab, say
                left.popleft()
        finally:
            with self._lock:
                self._again.extendleft(reversed(left))

    def _begin(self, one: Waiting) -> None:
        lab, version = lab_of(one.asked.lab), one.work.state.version
        if version != lab.version:
            raise InputError(f"asked for with version {version} of lab {lab.key}; this retrompi has {lab.version}", code="wrong-version")
        with translate.speaking(one.language):
            title, function, args, then = check(one.asked, self._shelf(one.member), one.work, self._resources.places[1], self._known)
            whose = owner_of(one.member)
            self._resources.jobs.submit(
                whose, title, function, *args, slot="labs again", client=whose, payer=SESSION, then=then, stays=True
            )

    def record(self) -> None:
        """Records what is left; what the database still does not take stays."""
        with self._lock:
            left, self._unrecorded = self._unrecorded, deque()
        while left:
            try:
                record(self._db, *left[0])
            except StoreError:
                break
            left.popleft()
        with self._lock:
            self._unrecorded.extendleft(reversed(left))
