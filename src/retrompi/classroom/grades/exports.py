"""Grades of a class in the forms that learning platforms import: whose they are, and what each student reached in each lab.

Two sources have one form: a course's database (`of_course`) and what `lab collect` graded (`of_collected`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from retrompi.base.csv_safe import write_rows
from retrompi.base.errors import InputError, RetrompiError

if TYPE_CHECKING:
    from retrompi.base.csv_safe import _Writable
    from retrompi.classroom.course.database import Database

__all__ = ["PLAIN", "Grade", "Person", "labs_of", "of_collected", "of_course", "plain", "title_of"]

PLAIN = ("student", "name", "email", "account", "account_id", "lab", "points", "of", "open", "percent", "feedback")


@dataclass(frozen=True)
class Grade:
    """A student's points in a lab; ``open``: points of answers that still wait for a mark."""

    points: float
    of: float
    open: float = 0.0
    feedback: str = ""

    @property
    def percent(self) -> float | None:
        """Points in percent; None for a lab without points."""
        return round(100 * self.points / self.of, 2) if self.of else None


@dataclass(frozen=True)
class Person:
    """A student, and the grades by the lab's full name. ``account_id``: the number that the platform gave (`retrompi.labs.accounts`)."""

    student: str
    name: str = ""
    email: str = ""
    account: str = ""
    account_id: str = ""
    grades: Mapping[str, Grade] = field(default_factory=dict)


def labs_of(people: Iterable[Person]) -> list[str]:
    """The labs in which anybody has a grade, by number."""
    return sorted({lab for one in people for lab in one.grades})


def title_of(lab: str) -> str:
    """The name of a lab's column: ``Lab 01: Latency and bandwidth``; of a lab that is not installed, its name."""
    from retrompi.labs.lab import lab as find

    try:
        found = find(lab)
    except RetrompiError:
        return f"Lab {lab}"
    # A number in brackets at the end would be an assignment's id to Canvas.
    return f"Lab {found.key}: {found.title}".replace("(", "").replace(")", "")


def of_course(db: Database, labs: Sequence[str] = ()) -> list[Person]:
    """The students of a course with their grades in its labs (or in ``labs``), marks included."""
    import sqlalchemy as sa

    from retrompi.classroom.course.schema import Member
    from retrompi.classroom.grades.records import standings_of

    with db.reading() as connection:
        found = standings_of(connection)
        query = sa.select(Member.id, Member.student, Member.name, Member.email).where(Member.role == "student").order_by(Member.key)
        people = connection.execute(query).all()
    out = []
    for person in people:
        grades = {
            lab: Grade(one.points, one.of, one.open, _feedback(one.open, one.late))
            for (member, lab), one in found.items()
            if member == person.id and one.checked is not None and (not labs or lab in labs)
        }
        out.append(Person(person.student, person.name, person.email or "", grades=grades))
    return out


def _feedback(left: float, late: bool) -> str:
    """The feedback that accompanies the points."""
    parts = [f"not marked yet: {left:g} points" if left else "", "handed in late" if late else ""]
    return "; ".join(p for p in parts if p)


def of_collected(data: Any, source: Any = None) -> list[Person]:
    """The students in what ``lab collect --json`` printed; of two submissions of a lab the better one counts. InputError otherwise."""
    try:
        rows = [row for row in data["submissions"] if row["points"] is not None]
        found: dict[tuple[str, str], Person] = {}
        for row in rows:
            account, number = str(row.get("account") or ""), str(row.get("account_id") or "")
            key = (number, "") if number else ("", str(row["student"]))
            known = found.get(key) or Person(str(row["student"]), account or str(row["student"]), account=account, account_id=number)
            left = float(row.get("open") or 0.0)
            grade = Grade(float(row["points"]), float(row["of"]), left, _feedback(left, bool(row.get("late"))))
            before = known.grades.get(str(row["lab"]))
            if before is None or before.points < grade.points:
                known = Person(known.student, known.name, "", account, number, {**known.grades, str(row["lab"]): grade})
            found[key] = known
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError("not what 'retrompi lab collect --json' prints", source) from None
    return list(found.values())


def plain(out: _Writable, people: Sequence[Person], labs: Sequence[str]) -> int:
    """A row for each student and lab; returns the number of rows."""
    rows = [
        {"student": p.student, "name": p.name, "email": p.email, "account": p.account, "account_id": p.account_id, "lab": lab,
         "points": g.points, "of": g.of, "open": g.open, "percent": g.percent, "feedback": g.feedback}
        for p in people for lab in labs if (g := p.grades.get(lab)) is not None
    ]
    write_rows(out, PLAIN, rows)
    return len(rows)
