"""Checks that students have asked for, from the click to the record: nothing of one depends on a page, nor on the server going on.

`ask` notes a check with the work as it is. Whoever has graded it calls `record`; only the first one does anything, in the transaction that
takes the note. A server that finds notes when it starts (`waiting`) was stopped while they were graded, and grades them again.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from retrompi.base import translate
from retrompi.classroom.course.database import Database
from retrompi.classroom.course.members import person
from retrompi.classroom.course.schema import AskedCheck as Note
from retrompi.classroom.course.schema import Check, CheckResult, Member
from retrompi.classroom.course.settings import is_late, plan
from retrompi.classroom.grades.scores import tell
from retrompi.classroom.works.states import state_of, told_state
from retrompi.labs.lab import lab as lab_of
from retrompi.labs.work import CheckRequest, Last, Work

if TYPE_CHECKING:
    from retrompi.labs.grade import Grading
    from retrompi.studio.jobs.resources import SessionMember as Person

__all__ = ["Waiting", "ask", "fail", "last", "record", "waiting"]

LONGEST_GIVEN = 4000
"""Characters of an answer that the record of a check keeps."""


@dataclass(frozen=True)
class Waiting:
    """A check that nobody has answered."""

    member: Person
    asked: CheckRequest
    work: Work
    language: str


def ask(db: Database, member_id: int, work: Work) -> CheckRequest:
    """Notes that a check is asked for, of the work as it is. Whether it is late is decided now."""
    asked = CheckRequest.now(work)
    files = work.files if any(t.kind == "file" for t in lab_of(asked.lab).tasks) else {}
    told = {"state": told_state(work.state), "answers": dict(work.answers),
            "files": {name: base64.b64encode(content).decode() for name, content in files.items()}}
    row = {"member_id": member_id, "lab": asked.lab, "number": asked.number, "at": asked.at, "late": is_late(plan(db, asked.lab), asked.at),
           "language": translate.language(), "status": "waiting", "work": told, "said": {}, "error": ""}
    with db.transaction() as connection:
        made = int(connection.execute(sa.insert(Note).returning(Note.id), [row]).scalar_one())
    return CheckRequest(asked.lab, asked.number, asked.at, made)


def record(db: Database, asked: CheckRequest, grading: Grading) -> bool:
    """Records what a check said of each task, in the transaction that takes its note; returns whether there was one to take.

    There is none if it was recorded before, or taken back, or its member removed: then nothing happens.
    """
    with db.transaction() as connection:
        note = connection.execute(sa.select(Note.member_id, Note.late, Note.at).where(Note.id == asked.id)).first()
        if note is None or not _lock_member(connection, note.member_id):
            return False
        values = {"status": "done", "work": {}, "said": grading.row(), "error": ""}
        taken = connection.execute(sa.update(Note).where(Note.id == asked.id, Note.status != "done").values(**values))
        if taken.rowcount != 1:
            return False
        row = {"member_id": note.member_id, "lab": asked.lab, "at": note.at, "late": note.late, "number": grading.checks,
               "points": grading.points, "of": grading.of, "passed": grading.passed, "hints": grading.hints,
               "flags": list(grading.flags)}
        made = connection.execute(sa.insert(Check).returning(Check.id), [row]).scalar_one()
        results = [
            {"check_id": made, "task": r.task, "kind": r.kind, "status": r.status, "points": r.points, "of": r.of, "open": r.open,
             "says": r.says, "given": r.given[:LONGEST_GIVEN]}
            for r in grading.results
        ]
        connection.execute(sa.insert(CheckResult), results)
        _tidy(connection, note.member_id, asked.lab)
        tell(connection, asked.lab, note.member_id)
    return True


def _lock_member(connection: Connection, member_id: int) -> bool:
    """Whether the member is there, and from now on until the end of the transaction: who removes a member locks that row before the others
    of the member, so that in any other order the two would wait for each other. Two checks of a member are recorded one after the other,
    and the second one's score counts the first."""
    return connection.scalar(sa.select(Member.id).where(Member.id == member_id).with_for_update(key_share=True)) is not None


def _tidy(connection: Connection, member_id: int, lab: str) -> None:
    """Removes the notes of answered checks that are older than the newest done one."""
    mine = (Note.member_id == member_id, Note.lab == lab)
    newest = connection.scalar(sa.select(sa.func.max(Note.number)).where(*mine, Note.status == "done"))
    connection.execute(sa.delete(Note).where(*mine, Note.status != "waiting", Note.number < newest))


def fail(db: Database, asked: CheckRequest, error: str) -> None:
    """Keeps why a check could not be graded; with "" it is taken back. Nothing if it has been recorded."""
    mine = (Note.id == asked.id, Note.status == "waiting")
    with db.transaction() as connection:
        if error:
            connection.execute(sa.update(Note).where(*mine).values(status="failed", work={}, error=error))
        else:
            connection.execute(sa.delete(Note).where(*mine))


def last(db: Database, member_id: int, lab: str) -> Last:
    """The result of a member's newest check of a lab."""
    query = sa.select(Note.status, Note.said, Note.error).where(Note.member_id == member_id, Note.lab == lab)
    with db.reading() as connection:
        rows = connection.execute(query.where(Note.status != "waiting").order_by(Note.number.desc(), Note.id.desc())).all()
    done: Mapping[str, Any] = next((r.said for r in rows if r.status == "done"), {})
    return Last(done, rows[0].error if rows else "")


def waiting(db: Database) -> list[Waiting]:
    """The checks that nobody has answered, in the order in which they were asked for."""
    query = sa.select(Note.__table__).where(Note.status == "waiting").order_by(Note.id)
    with db.reading() as connection:
        rows = connection.execute(query).mappings().all()
        found = connection.execute(sa.select(Member.__table__).where(Member.id.in_({r["member_id"] for r in rows}))).mappings()
        people = {row["id"]: person(row) for row in found}
    return [
        Waiting(people[r["member_id"]], CheckRequest(r["lab"], r["number"], r["at"], r["id"]), _work(r["work"]), r["language"])
        for r in rows
    ]


def _work(told: Mapping[str, Any]) -> Work:
    files = {name: base64.b64decode(content) for name, content in told["files"].items()}
    return Work(state_of(told["state"]), told["answers"], files)
