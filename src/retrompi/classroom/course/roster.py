"""Whose a session is, asked at every request: remembered for seconds, and when members were seen last, written once in a while."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from datetime import UTC, datetime

from retrompi.classroom.course import members
from retrompi.classroom.course.database import Database
from retrompi.studio.jobs.resources import SessionMember

__all__ = ["Roster"]

KEEP_S = 5.0
"""How long an answer is remembered: so long a member removed on the command line still gets pages."""
SAW_S = 20.0
"""How often it is written when members were seen."""
MOST = 5000


class Roster:
    """The members of a served course. Thread-safe."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[float, SessionMember | None]] = OrderedDict()
        self._sessions: dict[str, datetime] = {}
        self._people: dict[int, datetime] = {}
        self._wrote = time.monotonic()

    def member(self, session: str) -> SessionMember | None:
        """The member whose browser has this session; None for a stranger's."""
        now = time.monotonic()
        with self._lock:
            known = self._known.get(session)
            if known is not None and now - known[0] < KEEP_S:
                return known[1]
        found = members.by_session(self.db, session)
        with self._lock:
            self._known[session] = (now, found)
            self._known.move_to_end(session)
            while len(self._known) > MOST:
                self._known.popitem(last=False)
        return found

    def saw(self, session: str) -> None:
        """Notes that the browser of this session has asked for something."""
        found = self.member(session)
        if found is None:
            return
        at, now = datetime.now(UTC), time.monotonic()
        with self._lock:
            self._sessions[session] = self._people[found.id] = at
            if now - self._wrote < SAW_S:
                return
            self._wrote = now
            sessions, self._sessions, people, self._people = self._sessions, {}, self._people, {}
        members.saw(self.db, sessions, people)

    def flush(self) -> None:
        """Writes what is not written yet."""
        with self._lock:
            sessions, self._sessions, people, self._people = self._sessions, {}, self._people, {}
        if sessions:
            members.saw(self.db, sessions, people)

    def last_seen(self) -> dict[int, datetime]:
        """Member -> when seen last, of those not written yet."""
        with self._lock:
            return dict(self._people)

    def forget(self) -> None:
        """Asks the database again: members were changed."""
        with self._lock:
            self._known.clear()
