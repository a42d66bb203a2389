"""A course's settings, labs and dates, and how one is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, tzinfo
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import sqlalchemy as sa

from retrompi.base.errors import UsageError, nearest
from retrompi.classroom.course import members
from retrompi.classroom.course.class_list import Entry
from retrompi.classroom.course.database import Database
from retrompi.classroom.course.schema import Course, CourseLab
from retrompi.labs.lab import lab as lab_of

__all__ = ["CourseInfo", "Settings", "about", "change", "dates", "lab_names", "labs", "new", "plan", "reveal", "time_of", "zone_names",
           "zone_of"]


@dataclass(frozen=True)
class Settings:
    """Settings of a course, for its teacher; quotas are per student and day (UTC)."""

    address: str = ""
    """The course's address as students reach it, ``https://lab.example.org/``; empty: of the machine that serves it."""
    runs: int = 3000
    """Jobs (figures, checks, replays)."""
    cpu_s: float = 3600.0
    """Processor seconds of these jobs."""
    uploads: int = 60
    """Files."""
    upload_B: int = 200 << 20
    """Bytes of these files together."""
    members: int = 500
    """Members of the course, so that a class code cannot be used without end."""
    anonymous: bool = False
    """Whether answers are marked without names."""
    language: str = ""
    """Language of the pages where a member has chosen none."""
    zone: str = ""
    """Time zone of the course's dates, ``Europe/Berlin``; empty: that of the machine that serves it."""

    @property
    def tz(self) -> tzinfo | None:
        """The zone; None: the machine's own."""
        return ZoneInfo(self.zone) if self.zone else None


@dataclass(frozen=True)
class CourseInfo:
    """The course's row."""

    name: str
    created: datetime
    code: str | None
    settings: Settings


def new(
    db: Database, name: str, labs: Sequence[str], people: Sequence[Entry], *, code: str | None = None, settings: Settings | None = None
) -> dict[str, str]:
    """Fills a new database: the course, its labs (by number or name) and members. Student id -> the secret of each member's first link.

    All or nothing: whoever makes the database removes it when this raises.
    """
    if not name.strip() or len(name) > 200 or not name.isprintable():
        raise UsageError("a course's name has 1 to 200 characters on one line", code="bad-name")
    found = dict.fromkeys(lab_of(one).name for one in labs)
    if not found:
        raise UsageError("a course needs a lab; see 'retrompi lab list'", code="missing-option")
    with db.transaction() as connection:
        row = {"id": 1, "name": name.strip(), "created": datetime.now(UTC), "code": code, "settings": asdict(settings or Settings())}
        connection.execute(sa.insert(Course), [row])
        rows = [{"lab": lab, "position": i, "revealed": []} for i, lab in enumerate(found)]
        connection.execute(sa.insert(CourseLab), rows)
    links = {}
    for one in people:
        member = members.add(db, one.student, name=one.name, role=one.role, email=one.email, language=one.language)
        links[one.student] = members.link_for(db, member)
    return links


def about(db: Database) -> CourseInfo:
    """The course. StoreError-free: a database that `Database.open` opens has one."""
    with db.reading() as connection:
        row = connection.execute(sa.select(Course.name, Course.created, Course.code, Course.settings)).one()
    known = {f.name for f in fields(Settings)}
    return CourseInfo(row.name, row.created, row.code, Settings(**{k: v for k, v in row.settings.items() if k in known}))


def change(db: Database, *, code: str | None = None, **settings: Any) -> CourseInfo:
    """Changes settings; ``code`` "" ends the class code. UsageError for a value out of range."""
    for name in ("runs", "cpu_s", "uploads", "upload_B", "members"):
        if name in settings and not 0 < settings[name] < 1e15:
            raise UsageError(f"{name} is a number above 0, not {settings[name]:g}", code="out-of-range")
    if settings.get("zone"):
        zone_of(settings["zone"])
    now = about(db)
    values: dict[str, Any] = {"settings": asdict(replace(now.settings, **settings))}
    if code is not None:
        values["code"] = code.strip() or None
    with db.transaction() as connection:
        connection.execute(sa.update(Course).values(**values))
    return about(db)


# -- its labs ----------------------------------------------------------------------------------------------------------


def labs(db: Database) -> list[dict[str, Any]]:
    """Rows lab, position, opens, closes, released, revealed, in the order of the course."""
    with db.reading() as connection:
        rows = connection.execute(sa.select(CourseLab.__table__).order_by(CourseLab.position)).mappings().all()
    return [dict(row) for row in rows]


def lab_names(db: Database) -> list[str]:
    """The full names of the course's labs."""
    return [str(row["lab"]) for row in labs(db)]


def plan(db: Database, lab: str) -> dict[str, Any]:
    """The row of one of the course's labs, given by number or name. UsageError otherwise."""
    rows = {str(row["lab"]): row for row in labs(db)}
    name = lab if lab in rows else next((n for n in rows if n[:2] == lab.zfill(2)), None)
    if name is None:
        raise UsageError(f"lab '{lab[:60]}' is not of this course{nearest(lab[:60], rows)}", code="unknown-lab")
    return rows[name]


@cache
def zone_names() -> tuple[str, ...]:
    """The names of all time zones, in order: the system's folder of them is walked once."""
    return tuple(sorted(available_timezones()))


def zone_of(name: str) -> ZoneInfo:
    """A time zone by its name, ``Europe/Berlin``. UsageError for an unknown one."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # also names that are paths, or folders of names
        raise UsageError(f"no time zone '{name[:40]}'{nearest(name[:40], zone_names())}", code="unknown-name") from None


def time_of(text: str, zone: tzinfo | None = None) -> datetime | None:
    """A time as written: ISO 8601, in ``zone`` (None: that of this machine) unless it names one; "" or "none" is no time. UsageError
    otherwise."""
    if text.strip().lower() in ("", "none", "never"):
        return None
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"'{text[:40]}' is no time; write it as 2026-12-01T18:00, or none", code="bad-value") from None
    return (found.replace(tzinfo=zone) if found.tzinfo is None else found).astimezone(UTC)


def dates(db: Database, lab: str, **times: datetime | None) -> dict[str, Any]:
    """Sets when a lab ``opens`` and ``closes``; returns its row. UsageError where it would close before it opens."""
    row = plan(db, lab)
    after = {**row, **times}
    if after["opens"] is not None and after["closes"] is not None and after["closes"] <= after["opens"]:
        raise UsageError(f"lab {row['lab'][:2]} would close before it opens", code="out-of-range")
    if times:
        with db.transaction() as connection:
            connection.execute(sa.update(CourseLab).where(CourseLab.lab == row["lab"]).values(**times))
    return after


def reveal(db: Database, lab: str, task: str, yes: bool) -> None:
    """Shows the simulated answer to a prediction beside what the class predicted, or hides it again."""
    row = plan(db, lab)
    found = lab_of(row["lab"])
    found.task(task)
    shown = sorted({*row["revealed"], task} if yes else set(row["revealed"]) - {task})
    with db.transaction() as connection:
        connection.execute(sa.update(CourseLab).where(CourseLab.lab == row["lab"]).values(revealed=shown))


def is_open(row: Mapping[str, Any], now: datetime | None = None) -> bool:
    """Whether students may begin a lab by now."""
    return row["opens"] is None or row["opens"] <= (now or datetime.now(UTC))


def is_late(row: Mapping[str, Any], now: datetime | None = None) -> bool:
    """Whether what is done now is late."""
    return row["closes"] is not None and (now or datetime.now(UTC)) > row["closes"]


def file_of_runs(db: Database) -> str | None:
    """The store of the class's simulations: beside an SQLite course; the server's own database for PostgreSQL."""
    return None if db.path is None else str(Path(db.path).with_suffix(".runs.db"))
