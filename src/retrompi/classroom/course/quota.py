"""Daily quotas of a student: jobs, processor seconds, uploads. Teachers have no quota."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import sqlalchemy as sa

from retrompi.base.errors import UsageError
from retrompi.classroom.course.database import Database
from retrompi.classroom.course.schema import Usage
from retrompi.classroom.course.settings import Settings
from retrompi.studio.jobs.resources import SessionMember

__all__ = ["Quotas", "usage_of"]


@dataclass
class _Used:
    runs: int = 0
    cpu_s: float = 0.0
    uploads: int = 0
    upload_B: int = 0


def usage_of(db: Database, member_id: int, day: date) -> dict[str, Any]:
    """A member's usage on a day: runs, cpu_s, uploads, upload_B."""
    columns = (Usage.runs, Usage.cpu_s, Usage.uploads, Usage.upload_B)
    with db.reading() as connection:
        row = connection.execute(sa.select(*columns).where(Usage.member_id == member_id, Usage.day == day)).mappings().first()
    return dict(row) if row is not None else {"runs": 0, "cpu_s": 0.0, "uploads": 0, "upload_B": 0}


class Quotas:
    """The account of a class (`retrompi.studio.jobs.queue.Allowance`): counted in memory, written by `flush`. Thread-safe."""

    def __init__(self, db: Database, member: Callable[[str], SessionMember | None], settings: Callable[[], Settings]) -> None:
        self._db, self._member, self._settings = db, member, settings
        self._lock = threading.Lock()
        self._of: dict[tuple[int, date], _Used] = {}
        self._changed: set[tuple[int, date]] = set()
        self._whose: dict[str, SessionMember | None] = {}
        """Session -> member, from `ask`: `pay` must not wait for the database."""

    def _today(self, member_id: int) -> tuple[tuple[int, date], _Used]:
        """A member's use of today; the first time from the database."""
        key = (member_id, datetime.now(UTC).date())
        with self._lock:
            if key in self._of:
                return key, self._of[key]
        stored = _Used(**usage_of(self._db, *key))
        with self._lock:
            return key, self._of.setdefault(key, stored)

    def _member_of(self, session: str) -> SessionMember | None:
        found = self._member(session)
        with self._lock:
            if len(self._whose) > 10_000:
                self._whose.clear()
            self._whose[session] = found
        return found

    def ask(self, session: str) -> None:
        """Counts a job. UsageError when the day's jobs or processor seconds are used up."""
        if " " in session:  # the studio itself computes something in advance: no cookie can have a blank
            return
        found = self._member_of(session)
        if found is None:
            raise UsageError("only members of the course may simulate here", code="quota")
        key, now = self._today(found.id)
        most = self._settings()
        with self._lock:
            if not found.teaches:
                if now.runs >= most.runs:
                    raise UsageError(
                        f"you have used the {most.runs} simulations of today; go on tomorrow, or ask your teacher", code="quota"
                    )
                if now.cpu_s >= most.cpu_s:
                    raise UsageError(
                        f"your simulations have taken the {most.cpu_s:g} processor seconds of today; go on tomorrow, or ask your teacher",
                        code="quota",
                    )
            now.runs += 1
            self._changed.add(key)

    def pay(self, session: str, cpu_s: float) -> None:
        """Notes the processor seconds of a job that has ended; does not wait."""
        with self._lock:
            found = self._whose.get(session)
            key = None if found is None else (found.id, datetime.now(UTC).date())
            if key in self._of and key is not None:
                self._of[key].cpu_s += cpu_s
                self._changed.add(key)

    def upload(self, session: str, size_B: int) -> None:
        """Counts an upload. UsageError when the day's files or bytes are used up."""
        found = self._member_of(session)
        if found is None:
            raise UsageError("only members of the course may upload here", code="quota")
        key, now = self._today(found.id)
        most = self._settings()
        with self._lock:
            if not found.teaches and (now.uploads >= most.uploads or now.upload_B + size_B > most.upload_B):
                raise UsageError(
                    f"you have used the uploads of today ({most.uploads} files, {most.upload_B >> 20} MiB); go on tomorrow, or ask your "
                    "teacher",
                    code="quota",
                )
            now.uploads += 1
            now.upload_B += size_B
            self._changed.add(key)

    def flush(self) -> None:
        """Writes what has changed, and forgets other days."""
        today = datetime.now(UTC).date()
        with self._lock:
            rows = [(key, _Used(**vars(self._of[key]))) for key in self._changed if key in self._of]
            self._changed.clear()
            for key in [k for k in self._of if k[1] != today]:
                del self._of[key]
        if not rows:
            return
        with self._db.transaction() as connection:
            for (member_id, day), values in rows:
                mine = (Usage.member_id == member_id, Usage.day == day)
                if not connection.execute(sa.update(Usage).where(*mine).values(**vars(values))).rowcount:
                    if connection.scalar(sa.text("SELECT 1 FROM members WHERE id = :id"), {"id": member_id}) is None:
                        continue  # removed in the meantime
                    connection.execute(sa.insert(Usage), [{"member_id": member_id, "day": day, **vars(values)}])
