"""The tables of a course's database; one database holds one course. A change here needs a new `REVISION` and a step in `upgrades`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Date,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

__all__ = ["REVISION", "VERSION_TABLE", "AskedCheck", "Base", "Check", "CheckResult", "Course", "CourseLab", "Device", "EntryLink", "Id",
           "Mark", "Member", "Usage", "Utc", "Work", "WorkFile", "WorkResult", "of_member"]

REVISION = "0001"
"""The version of the tables that this code works with."""

VERSION_TABLE = "retrompi_course_version"
"""A name of our own, so that another application's database is never taken for a course."""

# SQLite auto-increments only columns of type INTEGER; elsewhere ids are 64 bits.
Id = BigInteger().with_variant(Integer, "sqlite")


class Utc(TypeDecorator[datetime]):
    """A time with its zone, UTC, also from SQLite, which keeps none."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


class Base(DeclarativeBase):
    """Declarative base; constraint names are fixed so that later versions can address them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


def of_member(*, primary_key: bool = False) -> Mapped[int]:
    """A reference to a member, whose deletion deletes the row."""
    return mapped_column(Id, ForeignKey("members.id", ondelete="CASCADE"), index=not primary_key, primary_key=primary_key)


class Course(Base):
    """The course: one row."""

    __tablename__ = "course"

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    created: Mapped[datetime] = mapped_column(Utc)
    code: Mapped[str | None] = mapped_column(String(40))
    """The class code with which students enrol themselves; None: only by links."""
    settings: Mapped[dict[str, Any]] = mapped_column(JSON)
    """Quotas, language, anonymous marking: see `retrompi.classroom.course.settings.Settings`."""


class CourseLab(Base):
    """A lab of the course."""

    __tablename__ = "course_labs"

    lab: Mapped[str] = mapped_column(String(80), primary_key=True)
    """Its full name, ``01-latency-bandwidth``."""
    position: Mapped[int] = mapped_column(Integer)
    opens: Mapped[datetime | None] = mapped_column(Utc)
    closes: Mapped[datetime | None] = mapped_column(Utc)
    """Checks after this time are accepted and flagged as late."""
    released: Mapped[datetime | None] = mapped_column(Utc)
    """When students were allowed to see marks and comments; None: not yet."""
    revealed: Mapped[list[str]] = mapped_column(JSON)
    """Predictions whose simulated answers the teacher has shown to the class."""


class Member(Base):
    """A person of the course."""

    __tablename__ = "members"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    student: Mapped[str] = mapped_column(String(200))
    """The id that draws a student's numbers, as written."""
    key: Mapped[str] = mapped_column(String(400), unique=True)
    """The id as `retrompi.labs.student.normal_id` has it: two that draw the same numbers are one person."""
    name: Mapped[str] = mapped_column(String(200))
    role: Mapped[str] = mapped_column(String(16), index=True)
    """``student``, ``assistant`` or ``teacher``."""
    email: Mapped[str | None] = mapped_column(String(320))
    language: Mapped[str | None] = mapped_column(String(16))
    created: Mapped[datetime] = mapped_column(Utc)
    seen: Mapped[datetime | None] = mapped_column(Utc)


class EntryLink(Base):
    """A way in, used once: a link (``kind`` join) or a code for another device (``kind`` device). Only a hash of it is kept."""

    __tablename__ = "links"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    member_id: Mapped[int] = of_member()
    kind: Mapped[str] = mapped_column(String(16))
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    created: Mapped[datetime] = mapped_column(Utc)
    expires: Mapped[datetime | None] = mapped_column(Utc)
    used: Mapped[datetime | None] = mapped_column(Utc)


class Device(Base):
    """A browser that has come in; ``digest`` is a hash of its session cookie."""

    __tablename__ = "devices"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    member_id: Mapped[int] = of_member()
    created: Mapped[datetime] = mapped_column(Utc)
    seen: Mapped[datetime] = mapped_column(Utc)
    about: Mapped[str] = mapped_column(String(120))
    """How it came in: ``link``, ``code``, ``class code``, ``lti``."""


class Work(Base):
    """A student's work on a lab (`retrompi.labs.work.Work`)."""

    __tablename__ = "works"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    member_id: Mapped[int] = of_member()
    lab: Mapped[str] = mapped_column(String(80), index=True)
    revision: Mapped[int] = mapped_column(Integer)
    state: Mapped[dict[str, Any]] = mapped_column(JSON)
    answers: Mapped[dict[str, Any]] = mapped_column(JSON)
    begun: Mapped[datetime] = mapped_column(Utc)
    saved: Mapped[datetime] = mapped_column(Utc)

    __table_args__ = (UniqueConstraint("member_id", "lab"),)


class WorkFile(Base):
    """A file of a student's work."""

    __tablename__ = "work_files"

    work_id: Mapped[int] = mapped_column(Id, ForeignKey("works.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(String(120), primary_key=True)
    content: Mapped[bytes] = mapped_column(LargeBinary)


class WorkResult(Base):
    """The last result of a form of a lab (`retrompi.labs.work.Ran`)."""

    __tablename__ = "work_results"

    work_id: Mapped[int] = mapped_column(Id, ForeignKey("works.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[str] = mapped_column(String(16), primary_key=True)
    content: Mapped[bytes] = mapped_column(LargeBinary)


class Check(Base):
    """One check of a student's work: what it said, and when. Every one is kept."""

    __tablename__ = "checks"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    member_id: Mapped[int] = of_member()
    lab: Mapped[str] = mapped_column(String(80))
    at: Mapped[datetime] = mapped_column(Utc)
    late: Mapped[bool] = mapped_column(Boolean)
    number: Mapped[int] = mapped_column(Integer)
    """The student's how-many-th check of this lab."""
    points: Mapped[float] = mapped_column(Double)
    of: Mapped[float] = mapped_column(Double)
    passed: Mapped[bool] = mapped_column(Boolean)
    hints: Mapped[int] = mapped_column(Integer)
    flags: Mapped[list[str]] = mapped_column(JSON)

    __table_args__ = (Index("ix_checks_lab_member", "lab", "member_id"),)


class CheckResult(Base):
    """The result of a check for one task."""

    __tablename__ = "check_results"

    check_id: Mapped[int] = mapped_column(Id, ForeignKey("checks.id", ondelete="CASCADE"), primary_key=True)
    task: Mapped[str] = mapped_column(String(80), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    status: Mapped[str] = mapped_column(String(16))
    points: Mapped[float] = mapped_column(Double)
    of: Mapped[float] = mapped_column(Double)
    open: Mapped[float] = mapped_column(Double)
    """Points that a teacher's mark decides."""
    says: Mapped[str] = mapped_column(Text)
    given: Mapped[str] = mapped_column(Text)


class AskedCheck(Base):
    """A check that a student has asked for: kept from then on with the work as it was, so that it is graded and recorded whatever becomes
    of the page and of the server. Of those that have been answered only the newest of each lab stays: the page shows it."""

    __tablename__ = "asked_checks"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    member_id: Mapped[int] = of_member()
    lab: Mapped[str] = mapped_column(String(80))
    number: Mapped[int] = mapped_column(Integer)
    at: Mapped[datetime] = mapped_column(Utc)
    late: Mapped[bool] = mapped_column(Boolean)
    """By the dates of the lab when it was asked for."""
    language: Mapped[str] = mapped_column(String(16))
    status: Mapped[str] = mapped_column(String(16), index=True)
    """``waiting``, ``done`` or ``failed``."""
    work: Mapped[dict[str, Any]] = mapped_column(JSON)
    """While it waits: state, answers, and the files (base64) where tasks are answered by them."""
    said: Mapped[dict[str, Any]] = mapped_column(JSON)
    """The row of its grading (`retrompi.labs.grade.Grading`), once it is done."""
    error: Mapped[str] = mapped_column(Text)
    """Why it could not be graded."""

    __table_args__ = (Index("ix_asked_checks_lab_member", "lab", "member_id"),)


class Mark(Base):
    """A teacher's mark of an open answer by one criterion of its rubric; criterion ``""`` carries the comment on the whole answer, and
    the points of a task without a rubric."""

    __tablename__ = "marks"

    member_id: Mapped[int] = of_member(primary_key=True)
    lab: Mapped[str] = mapped_column(String(80), primary_key=True)
    task: Mapped[str] = mapped_column(String(80), primary_key=True)
    criterion: Mapped[str] = mapped_column(String(80), primary_key=True)
    points: Mapped[float | None] = mapped_column(Double)
    comment: Mapped[str] = mapped_column(Text)
    by_id: Mapped[int | None] = mapped_column(Id, ForeignKey("members.id", ondelete="SET NULL"))
    at: Mapped[datetime] = mapped_column(Utc)


class Usage(Base):
    """A member's usage on one day, for the quotas."""

    __tablename__ = "usage"

    member_id: Mapped[int] = of_member(primary_key=True)
    day: Mapped[Any] = mapped_column(Date, primary_key=True)
    runs: Mapped[int] = mapped_column(Integer)
    cpu_s: Mapped[float] = mapped_column(Double)
    uploads: Mapped[int] = mapped_column(Integer)
    upload_B: Mapped[int] = mapped_column(BigInteger)
