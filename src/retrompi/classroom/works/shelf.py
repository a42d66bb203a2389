"""The works of one member and their checks, kept in the course's database (`retrompi.labs.work.Shelf`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from retrompi.base.errors import InputError, StoreError, UsageError
from retrompi.base.translate import _
from retrompi.classroom.course.database import Database
from retrompi.classroom.course.schema import Member as Person
from retrompi.classroom.course.schema import Work as Row
from retrompi.classroom.course.schema import WorkFile, WorkResult
from retrompi.classroom.course.settings import is_open, lab_names, plan
from retrompi.classroom.grades.shown_marks import with_marks
from retrompi.classroom.page import when
from retrompi.classroom.works import asked_checks
from retrompi.classroom.works.states import state_of, told_state
from retrompi.labs import student as _student
from retrompi.labs.student import normal_id
from retrompi.labs.work import CheckRequest, Conflict, Last, Ran, Work, begin
from retrompi.studio.jobs.resources import SessionMember

if TYPE_CHECKING:
    from retrompi.labs.grade import Grading
    from retrompi.labs.lab import Lab

__all__ = ["DatabaseShelf", "bring", "kept_work", "work_of"]


def work_of(connection: Connection, row: Mapping[str, Any]) -> Work:
    """The work of a row of `works`."""
    files = connection.execute(sa.select(WorkFile.name, WorkFile.content).where(WorkFile.work_id == row["id"]))
    return Work(state_of(row["state"]), row["answers"], {f.name: f.content for f in files}, row["revision"])


def kept_work(connection: Connection, lab: str, member_id: int) -> Work | None:
    """A member's work on the lab of this name; None if none was begun."""
    query = sa.select(Row.__table__).where(Row.member_id == member_id, Row.lab == lab)
    row = connection.execute(query).mappings().first()
    return None if row is None else work_of(connection, dict(row))


class DatabaseShelf:
    """The works of ``member``. ``changed`` is called with (member, lab) when one is begun, for whoever prepares its answers; ``later`` with
    the result of a check that the database did not take."""

    def __init__(
        self, db: Database, member: SessionMember, changed: Callable[[SessionMember, str], None] = lambda member, lab: None,
        later: Callable[[CheckRequest, Grading], None] = lambda asked, grading: None,
    ) -> None:
        self.db, self.member, self._changed, self._later = db, member, changed, later

    def labs(self) -> list[str]:
        """The names of the labs with a work."""
        with self.db.reading() as connection:
            return [str(n) for n in connection.scalars(sa.select(Row.lab).where(Row.member_id == self.member.id).order_by(Row.lab))]

    def offers(self, lab: str) -> bool:
        """Whether the lab is of the course."""
        return lab in lab_names(self.db)

    def _row(self, connection: Connection, lab: str) -> Mapping[str, Any] | None:
        mine = sa.select(Row.__table__).where(Row.member_id == self.member.id, Row.lab == lab)
        found = connection.execute(mine).mappings().first()
        return None if found is None else dict(found)

    def open(self, lab: Lab) -> Work:
        """The member's work on ``lab``, begun if there is none. UsageError while the lab is not open, or if it is not of the course."""
        with self.db.reading() as connection:
            row = self._row(connection, lab.name)
            found = None if row is None else work_of(connection, row)
        if found is not None:
            if found.state.version != lab.version:
                raise InputError(
                    f"the work was begun with version {found.state.version} of lab {lab.key}; this retrompi has version {lab.version}",
                    code="wrong-version",
                )
            return found
        planned = plan(self.db, lab.name)
        if not is_open(planned) and not self.member.teaches:
            raise UsageError(f"lab {lab.key} opens at {when(planned['opens'])}", code="not-open")
        made = begin(lab, self.member.student)
        try:
            with self.db.transaction() as connection:
                if connection.scalar(sa.select(Person.id).where(Person.id == self.member.id)) is None:
                    raise UsageError("this member is no longer in the course", code="gone")
                if self._row(connection, lab.name) is None:
                    self._insert(connection, made)
        except Exception as error:
            if not isinstance(error.__cause__, IntegrityError):  # another of the member's browsers was faster
                raise
        self._changed(self.member, lab.name)
        return self.open(lab)

    def _insert(self, connection: Connection, work: Work) -> None:
        now = datetime.now(UTC)
        row = {"member_id": self.member.id, "lab": work.state.lab, "revision": 1, "state": told_state(work.state),
               "answers": dict(work.answers), "begun": now, "saved": now}
        made = connection.execute(sa.insert(Row).returning(Row.id), [row]).scalar_one()
        if work.files:
            connection.execute(sa.insert(WorkFile), [{"work_id": made, "name": n, "content": c} for n, c in work.files.items()])

    def save(self, work: Work) -> Work:
        """Keeps ``work``; returns it with its new revision. Conflict if what is kept is not the revision that was opened."""
        if normal_id(work.state.student) != normal_id(self.member.student):
            raise UsageError("that is the work of another student", code="bad-name")
        with self.db.transaction() as connection:
            query = sa.update(Row).where(Row.member_id == self.member.id, Row.lab == work.state.lab, Row.revision == work.revision)
            values = {"revision": work.revision + 1, "state": told_state(work.state), "answers": dict(work.answers),
                      "saved": datetime.now(UTC)}
            made = connection.execute(query.values(**values).returning(Row.id)).first()
            if made is None:
                raise Conflict(f"lab {work.state.lab[:2]} was changed elsewhere in the meantime; look at it again")
            self._files(connection, int(made.id), work)
        return replace(work, revision=work.revision + 1)

    def _files(self, connection: Connection, work_id: int, work: Work) -> None:
        kept = connection.execute(sa.select(WorkFile.name, WorkFile.content).where(WorkFile.work_id == work_id))
        before = {f.name: f.content for f in kept}
        for name in before.keys() - work.files.keys() | {n for n, c in work.files.items() if n in before and before[n] != c}:
            connection.execute(sa.delete(WorkFile).where(WorkFile.work_id == work_id, WorkFile.name == name))
        new = [{"work_id": work_id, "name": n, "content": c} for n, c in work.files.items() if before.get(n) != c]
        if new:
            connection.execute(sa.insert(WorkFile), new)

    def ask(self, work: Work) -> CheckRequest:
        """Notes that a check is asked for, of the work as it is, and whether it comes late."""
        return asked_checks.ask(self.db, self.member.id, work)

    def keep_check(self, asked: CheckRequest, grading: Grading) -> None:
        """Records a check: what it said of each task. Only the first time that it is told, and for members only."""
        try:
            asked_checks.record(self.db, asked, grading)
        except StoreError as error:
            self._later(asked, grading)
            told = _("the result is kept, and recorded when the course's database takes it; now it says: {error}")
            raise StoreError(told.format(error=error)) from error

    def keep_failure(self, asked: CheckRequest, error: str) -> None:
        """Keeps why a check could not be graded; "" if it was taken back."""
        asked_checks.fail(self.db, asked, error)

    def last(self, lab: str) -> Last:
        """The result of the member's newest check of a lab, with the marks that are shown."""
        found = asked_checks.last(self.db, self.member.id, lab)
        return replace(found, row=with_marks(self.db, self.member.id, lab, found.row)) if found.row else found

    def ran(self, lab: Lab) -> dict[str, Ran]:
        """The last results of the lab's forms, by the forms' keys; a damaged one is left out."""
        mine = sa.select(WorkResult.content).join(Row, Row.id == WorkResult.work_id)
        with self.db.reading() as connection:
            rows = connection.scalars(mine.where(Row.member_id == self.member.id, Row.lab == lab.name)).all()
        out = {}
        for content in rows:
            with suppress(InputError):  # it can be run again
                found = Ran.unpack(content)
                out[found.key] = found
        return out

    def keep(self, lab: Lab, ran: Ran) -> None:
        """Keeps a form's result in the place of its last one; of a work that is gone it keeps nothing."""
        content = ran.pack()
        with self.db.transaction() as connection:
            work = connection.scalar(sa.select(Row.id).where(Row.member_id == self.member.id, Row.lab == lab.name))
            if work is None:
                return
            connection.execute(sa.delete(WorkResult).where(WorkResult.work_id == work, WorkResult.key == ran.key))
            connection.execute(sa.insert(WorkResult), [{"work_id": work, "key": ran.key, "content": content}])


def bring(db: Database, member: SessionMember, work: Work) -> Work:
    """Keeps a work that was done on the command line (a zip of its folder) as the member's, in the place of what there was.

    UsageError for another student's, or with fewer checks, hints or sealed predictions than the one that is kept: a work goes on, it does
    not go back.
    """
    if normal_id(work.state.student) != normal_id(member.student):
        raise UsageError(f"that is the work of '{work.state.student[:60]}', and this the page of '{member.student[:60]}'", code="bad-name")
    if not work.state.intact or work.state.seed != _student.seed_of(_lab(work.state.lab), work.state.student):
        raise UsageError("the lab's own file .lab.toml in it was changed by hand; ask your teacher", code="damaged-file")
    plan(db, work.state.lab)
    shelf = DatabaseShelf(db, member)
    kept = shelf.open(_lab(work.state.lab))
    lost = [t for t, s in kept.state.sealed.items() if work.state.sealed.get(t) != s]
    fewer = [t for t, n in kept.state.hints.items() if work.state.hints.get(t, 0) < n]
    if lost or fewer:
        raise UsageError(
            f"the work kept here is ahead of it ({', '.join(lost or fewer)}): take a copy of that one to the command line, and go on there",
            code="changed-meanwhile",
        )
    checks = max(work.state.checks, kept.state.checks)
    state = replace(work.state, checks=checks)
    return shelf.save(replace(work, state=replace(state, seal=state.computed_seal()), revision=kept.revision))


def _lab(name: str) -> Lab:
    from retrompi.labs.lab import lab

    return lab(name)
