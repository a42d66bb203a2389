"""Members of a course and how they sign in: single-use links and codes, and a session for each device.

Links, codes and session cookies are kept as hashes: who reads the database, or a backup of it, cannot enter with what it holds.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from retrompi.base.errors import UsageError, nearest
from retrompi.base.translate import _
from retrompi.classroom.course.database import Database
from retrompi.classroom.course.schema import Course, Device, EntryLink, Member
from retrompi.labs.student import normal_id, shown_id
from retrompi.studio.jobs.resources import SessionMember as Person

__all__ = ["ROLES", "EntryRefused", "add", "by_session", "code_for", "digest", "enrol", "enter", "find", "join", "link_for", "members",
           "of_link", "person", "remove", "rename", "saw", "sign_out"]

ROLES = ("student", "assistant", "teacher")
CODE_MINUTES = 10
"""How long a code for another device is good."""
MOST_DEVICES = 12
"""Browsers of one member; the one not seen for longest is signed out for a new one."""
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # without those that look alike
_CODE = 8


class EntryRefused(UsageError):
    """A link or a code that lets nobody in; the line may be shown to anybody."""

    code = "bad-link"


def _now() -> datetime:
    return datetime.now(UTC)


def digest(secret: str) -> str:
    """The hash by which a secret is stored."""
    return hashlib.sha256(secret.encode()).hexdigest()


def person(row: Mapping[str, Any] | RowMapping) -> Person:
    """A member's row as the pages see it."""
    return Person(int(row["id"]), str(row["name"]), str(row["student"]), str(row["role"]), row["language"])


# -- the roll ----------------------------------------------------------------------------------------------------------


def add(db: Database, student: str, *, name: str = "", role: str = "student", email: str | None = None, language: str | None = None) -> int:
    """Adds a member and returns its id. UsageError for an id that draws the same numbers as another's, or an unknown role."""
    if role not in ROLES:
        raise UsageError(f"no role '{role[:40]}'{nearest(role[:40], ROLES)}", code="bad-name")
    key, shown = normal_id(student), shown_id(student)
    with db.transaction() as connection:
        other = connection.scalar(sa.select(Member.student).where(Member.key == key))
        if other is not None:
            raise UsageError(f"there is a member '{other}' already, who has the same numbers as '{shown}'", code="exists-already")
        row = {"student": shown, "key": key, "name": (shown_id(name) or shown)[:200], "role": role, "email": email or None,
               "language": language or None, "created": _now()}
        return int(connection.execute(sa.insert(Member).returning(Member.id), [row]).scalar_one())


def members(db: Database, role: str | None = None) -> list[dict[str, Any]]:
    """The members, teachers first, by id."""
    order = sa.case({role: -i for i, role in enumerate(ROLES)}, value=Member.role)
    query = sa.select(Member.__table__).order_by(order, Member.key)
    with db.reading() as connection:
        rows = connection.execute(query if role is None else query.where(Member.role == role)).mappings()
        return [dict(row) for row in rows]


def find(db: Database, student: str) -> dict[str, Any]:
    """The member with this id. UsageError with the nearest one otherwise."""
    with db.reading() as connection:
        row = connection.execute(sa.select(Member.__table__).where(Member.key == normal_id(student))).mappings().first()
        if row is not None:
            return dict(row)
        known = [str(s) for s in connection.scalars(sa.select(Member.student))]
    raise UsageError(f"no member '{shown_id(student)[:80]}'{nearest(shown_id(student)[:80], known)}", code="bad-name")


def rename(db: Database, member_id: int, *, name: str, email: str | None, role: str) -> None:
    """Changes what a member is called and may do."""
    if role not in ROLES:
        raise UsageError(f"no role '{role[:40]}'{nearest(role[:40], ROLES)}", code="bad-name")
    values = {"email": email or None, "role": role, **({"name": shown_id(name)[:200]} if shown_id(name) else {})}
    with db.transaction() as connection:
        connection.execute(sa.update(Member).where(Member.id == member_id).values(**values))


def remove(db: Database, member_id: int) -> None:
    """Deletes a member with everything that is kept of that person."""
    with db.transaction() as connection:
        connection.execute(sa.delete(Member).where(Member.id == member_id))


# -- ways in -----------------------------------------------------------------------------------------------------------


def link_for(db: Database, member_id: int, *, days: float | None = None) -> str:
    """The secret of a new link for a member; links not used before become invalid."""
    secret = secrets.token_urlsafe(18)
    expires = None if days is None else _now() + timedelta(days=days)
    with db.transaction() as connection:
        old = sa.delete(EntryLink).where(EntryLink.member_id == member_id, EntryLink.kind == "join", EntryLink.used.is_(None))
        connection.execute(old)
        connection.execute(
            sa.insert(EntryLink),
            [{"member_id": member_id, "kind": "join", "digest": digest(secret), "created": _now(), "expires": expires}],
        )
    return secret


def code_for(db: Database, member_id: int) -> str:
    """A code with which another device of a member comes in, within `CODE_MINUTES`; ``abcd-efgh``."""
    letters = "".join(secrets.choice(_LETTERS) for _ in range(_CODE))
    expires = _now() + timedelta(minutes=CODE_MINUTES)
    row = {"member_id": member_id, "kind": "device", "digest": digest(letters), "created": _now(), "expires": expires}
    with db.transaction() as connection:
        connection.execute(sa.delete(EntryLink).where(EntryLink.member_id == member_id, EntryLink.kind == "device"))
        connection.execute(sa.insert(EntryLink), [row])
    return f"{letters[:4]}-{letters[4:]}"


def _valid(connection: Connection, kind: str, secret: str) -> RowMapping:
    query = sa.select(EntryLink.__table__).where(EntryLink.kind == kind, EntryLink.digest == digest(secret))
    row = connection.execute(query).mappings().first()
    if row is None:
        raise EntryRefused(_("this code is not known; make a new one in the studio") if kind == "device" else
                      _("this link is not known: it may have been replaced by a newer one; ask your teacher"))
    if row["used"] is not None:
        raise EntryRefused(_("this link has been used already: a further device needs a code from the studio of the first one, "
                             "or a new link from your teacher"))
    if row["expires"] is not None and row["expires"] < _now():
        told = _("this code is too old; make a new one in the studio") if kind == "device" else _("this link is too old; ask your teacher")
        raise EntryRefused(told)
    return row


def of_link(db: Database, secret: str) -> Person:
    """The member whom a valid link would let in; nothing is used up. Refused otherwise."""
    with db.reading() as connection:
        row = _valid(connection, "join", secret)
        return person(connection.execute(sa.select(Member.__table__).where(Member.id == row["member_id"])).mappings().one())


def join(db: Database, secret: str, *, kind: str = "join") -> str:
    """Uses a link or (``kind`` device) a code up: the session of the browser that is now its member's. Refused otherwise."""
    if kind == "device":
        secret = "".join(c for c in secret.lower() if c in _LETTERS)
    with db.transaction() as connection:
        row = _valid(connection, kind, secret)
        # Two browsers at once: only one of them changes the row.
        used = connection.execute(sa.update(EntryLink).where(EntryLink.id == row["id"], EntryLink.used.is_(None)).values(used=_now()))
        if used.rowcount != 1:
            raise EntryRefused(_("this link has been used already"))
        return _enter(connection, int(row["member_id"]), "code" if kind == "device" else "link")


def enrol(db: Database, code: str, student: str, name: str, most: int) -> str:
    """A new student by the class code, if the course has one and fewer than ``most`` members: the browser's session. Refused otherwise.

    Nobody becomes an existing member this way: that takes a link, or a code from a device.
    """
    with db.reading() as connection:
        wanted = connection.scalar(sa.select(Course.code))
        count = int(connection.scalar(sa.select(sa.func.count()).select_from(Member)) or 0)
    if not wanted or not secrets.compare_digest(wanted.strip().lower().encode(), code.strip().lower().encode()):
        raise EntryRefused(_("this is not the code of the class"))
    if count >= most:
        raise EntryRefused(_("the course has {most} members, as many as it takes; ask your teacher").format(most=most))
    return enter(db, add(db, student, name=name), "class code")


def enter(db: Database, member_id: int, about: str) -> str:
    """A new session of a member, for the cookie of a browser."""
    with db.transaction() as connection:
        return _enter(connection, member_id, about)


def _enter(connection: Connection, member_id: int, about: str) -> str:
    session = secrets.token_urlsafe(32)
    row = {"digest": digest(session), "member_id": member_id, "created": _now(), "seen": _now(), "about": about[:120]}
    connection.execute(sa.insert(Device), [row])
    newest = sa.select(Device.digest).where(Device.member_id == member_id).order_by(Device.seen.desc()).offset(MOST_DEVICES)
    for old in connection.scalars(newest).all():
        connection.execute(sa.delete(Device).where(Device.digest == old))
    return session


def by_session(db: Database, session: str) -> Person | None:
    """The member whose browser has this session; None for a stranger's."""
    query = sa.select(Member.__table__).join(Device, Device.member_id == Member.id).where(Device.digest == digest(session))
    with db.reading() as connection:
        row = connection.execute(query).mappings().first()
    return None if row is None else person(row)


def saw(db: Database, sessions: Mapping[str, datetime], people: Mapping[int, datetime]) -> None:
    """Notes when sessions and members were seen last."""
    with db.transaction() as connection:
        for session, at in sessions.items():
            connection.execute(sa.update(Device).where(Device.digest == digest(session)).values(seen=at))
        for member_id, at in people.items():
            connection.execute(sa.update(Member).where(Member.id == member_id).values(seen=at))


def sign_out(db: Database, member_id: int, sessions: Sequence[str] | None = None) -> None:
    """Ends sessions of a member: these, or all, with the links and codes not used yet."""
    with db.transaction() as connection:
        gone = sa.delete(Device).where(Device.member_id == member_id)
        if sessions is not None:
            gone = gone.where(Device.digest.in_([digest(s) for s in sessions]))
        else:
            connection.execute(sa.delete(EntryLink).where(EntryLink.member_id == member_id, EntryLink.used.is_(None)))
        connection.execute(gone)
