"""A member's own data, shown to that member: devices, and a copy of everything."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import sqlalchemy as sa

from retrompi.classroom.course.database import Database
from retrompi.classroom.course.members import digest
from retrompi.classroom.course.schema import Base, Course, CourseLab, Device, Mark, Member, Work
from retrompi.classroom.works.shelf import work_of
from retrompi.labs.lab import lab
from retrompi.labs.work import folder_files

__all__ = ["archive", "devices"]

_NOT_TOLD = {"digest", "key"}
"""Columns that say nothing to the person."""


def devices(db: Database, member_id: int, session: str = "") -> list[dict[str, Any]]:
    """Rows created, seen, about, this (whether it is the one that asks)."""
    query = sa.select(Device.__table__).where(Device.member_id == member_id).order_by(Device.seen.desc())
    with db.reading() as connection:
        rows = connection.execute(query).mappings().all()
    return [{"created": r["created"], "seen": r["seen"], "about": r["about"], "this": r["digest"] == digest(session)} for r in rows]


def archive(db: Database, member_id: int) -> bytes:
    """A zip of all that is kept of a member: a JSON of the rows of every table, and each lab's folder as `retrompi lab` reads it.

    Marks and comments of labs that are not released yet are left out: they are their teachers' drafts.
    """
    told: dict[str, Any] = {}
    out = io.BytesIO()
    with db.reading() as connection, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        told["course"] = connection.scalar(sa.select(Course.name))
        told["member"] = _plain(connection.execute(sa.select(Member.__table__).where(Member.id == member_id)).mappings().one())
        released = set(connection.scalars(sa.select(CourseLab.lab).where(CourseLab.released.is_not(None))))
        for name, table in Base.metadata.tables.items():
            if "member_id" not in table.c or name == Work.__tablename__:
                continue
            rows = connection.execute(sa.select(table).where(table.c.member_id == member_id)).mappings().all()
            if name == Mark.__tablename__:
                rows = [row for row in rows if row["lab"] in released]
            told[name] = [_plain(row) for row in rows]
        results = Base.metadata.tables["check_results"]
        checks = Base.metadata.tables["checks"]
        mine = sa.select(results).join(checks, checks.c.id == results.c.check_id).where(checks.c.member_id == member_id)
        told["check_results"] = [_plain(row) for row in connection.execute(mine).mappings()]
        for row in connection.execute(sa.select(Work.__table__).where(Work.member_id == member_id)).mappings().all():
            told.setdefault("works", []).append(_plain(row))
            for name, content in folder_files(work_of(connection, dict(row)), lab(row["lab"])).items():
                packed.writestr(f"{row['lab']}/{name}", content)
        packed.writestr("data.json", json.dumps(told, indent=1, ensure_ascii=False, default=str))
    return out.getvalue()


def _plain(row: Any) -> dict[str, Any]:
    return {k: v for k, v in dict(row).items() if k not in _NOT_TOLD and not isinstance(v, bytes)}
