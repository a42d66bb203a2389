"""Statistics from the checks of a class: progress, tasks, common mistakes, grades. Rows, for pages and commands alike."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from retrompi.classroom.course.database import Database
from retrompi.classroom.course.schema import Check, CheckResult, Mark, Member, Work
from retrompi.classroom.course.settings import labs
from retrompi.labs.lab import Lab
from retrompi.labs.lab import lab as lab_of

__all__ = ["MistakeTally", "Standing", "TaskStatistics", "grades", "mistakes", "standings", "standings_of", "statistics"]

DONE = ("right", "sealed", "changed", "open")


@dataclass
class Standing:
    """A student's progress in a lab. ``results``: task -> its status at the newest check."""

    member_id: int
    lab: str
    begun: datetime | None = None
    saved: datetime | None = None
    checked: datetime | None = None
    checks: int = 0
    answered: int = 0
    hints: int = 0
    points: float = 0.0
    """Of the newest check in time; with the marks."""
    of: float = 0.0
    open: float = 0.0
    """Points of open answers that nobody has marked yet."""
    late: bool = False
    """Whether there are only late checks."""
    late_points: float | None = None
    """With the late checks, where that is more."""
    unmarked: tuple[float, float] = (0.0, 0.0)
    """(points, open points) as if nobody had marked."""
    passed: bool = False
    results: dict[str, str] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)


def _newest(connection: Connection, member_id: int | None, *, late: bool) -> list[Mapping[str, Any]]:
    """The newest check of each student (or of one) and lab: of all, or of those in time."""
    # By number, not in the order of recording: of two that are graded at once either may be done first.
    place = sa.func.row_number().over(partition_by=(Check.member_id, Check.lab), order_by=(Check.number.desc(), Check.id.desc()))
    ranked = sa.select(Check.id, place.label("place"))
    if member_id is not None:
        ranked = ranked.where(Check.member_id == member_id)
    if not late:
        ranked = ranked.where(Check.late.is_(False))
    found = ranked.subquery()
    query = sa.select(Check.__table__).join(found, found.c.id == Check.id).where(found.c.place == 1)
    return [dict(row) for row in connection.execute(query).mappings()]


def _points_given(connection: Connection) -> dict[tuple[int, str, str], float]:
    """(member, lab, task) -> points that teachers gave."""
    query = sa.select(Mark.member_id, Mark.lab, Mark.task, sa.func.sum(Mark.points)).where(Mark.points.is_not(None))
    rows = connection.execute(query.group_by(Mark.member_id, Mark.lab, Mark.task))
    return {(m, lab, task): float(points or 0) for m, lab, task, points in rows}


def _points(check: Mapping[str, Any], results: Sequence[Mapping[str, Any]], marked: Mapping[Any, float]) -> tuple[float, float]:
    """(points with marks, points not marked yet) of a check."""
    total = left = 0.0
    for row in results:
        given = marked.get((check["member_id"], check["lab"], row["task"])) if row["kind"] in ("text", "file") else None
        total += row["points"] if given is None else given
        left += row["open"] if given is None else 0.0
    return total, left


def standings(db: Database, member_id: int | None = None) -> dict[tuple[int, str], Standing]:
    """(member, lab) -> where each is, of all works, or of those of one member."""
    with db.reading() as connection:
        return standings_of(connection, member_id)


def standings_of(connection: Connection, member_id: int | None = None) -> dict[tuple[int, str], Standing]:
    """`standings` within a transaction."""
    found: dict[tuple[int, str], Standing] = {}
    works = sa.select(Work.member_id, Work.lab, Work.begun, Work.saved, Work.answers, Work.state)
    for row in connection.execute(works if member_id is None else works.where(Work.member_id == member_id)):
        one = found[row.member_id, row.lab] = Standing(row.member_id, row.lab, row.begun, row.saved, answered=len(row.answers))
        one.hints = sum(row.state["hints"].values())
        one.checks = row.state["checks"]
    newest, timely = _newest(connection, member_id, late=True), {}
    for check in _newest(connection, member_id, late=False):
        timely[check["member_id"], check["lab"]] = check
    results: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    wanted = {r["id"] for r in newest} | {r["id"] for r in timely.values()}
    columns = (CheckResult.check_id, CheckResult.task, CheckResult.kind, CheckResult.status, CheckResult.points, CheckResult.open)
    for part in _parts(sorted(wanted)):
        for result in connection.execute(sa.select(*columns).where(CheckResult.check_id.in_(part))).mappings():
            results[result["check_id"]].append(dict(result))
    marked = _points_given(connection)
    for check in newest:
        one = found.setdefault((check["member_id"], check["lab"]), Standing(check["member_id"], check["lab"]))
        counted = timely.get((check["member_id"], check["lab"]), check)
        one.points, one.open = _points(counted, results[counted["id"]], marked)
        one.unmarked = _points(counted, results[counted["id"]], {})
        one.of, one.passed, one.flags = check["of"], check["passed"], list(check["flags"])
        one.late = bool(counted["late"])
        if check["late"] and not one.late:
            after, _ = _points(check, results[check["id"]], marked)
            one.late_points = after if after > one.points else None
        one.checked = check["at"]
        one.results = {r["task"]: r["status"] for r in results[check["id"]]}
    return found


def _parts(ids: Sequence[int], size: int = 500) -> list[Sequence[int]]:
    return [ids[i : i + size] for i in range(0, len(ids), size)]


@dataclass
class TaskStatistics:
    """A task in the class: how many students answered, tried how often, were right; minutes are medians."""

    task: str
    kind: str
    of: float
    answered: int = 0
    right: int = 0
    open: int = 0
    attempts: float = 0.0
    """Mean number of checks with different answers, of those who answered."""
    first: int = 0
    """Students who were right at the first answer."""
    points: float | None = None
    """Mean, of those who answered."""
    hints: int = 0
    minutes: float | None = None
    """Median from beginning the lab to the first right answer."""


def statistics(db: Database, lab: Lab) -> list[TaskStatistics]:
    """A lab's tasks in their order, from all checks."""
    with db.reading() as connection:
        begun: dict[int, datetime] = {}
        hints: Counter[str] = Counter()
        for row in connection.execute(sa.select(Work.member_id, Work.begun, Work.state).where(Work.lab == lab.name)):
            begun[row.member_id] = row.begun
            hints.update(row.state["hints"])
        query = sa.select(CheckResult.task, CheckResult.status, CheckResult.points, CheckResult.given, Check.member_id, Check.at)
        query = query.join(Check).where(Check.lab == lab.name, Check.member_id.in_(_students()))
        rows = connection.execute(query.order_by(Check.number, Check.id)).all()
        marked = _points_given(connection)
    tries: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for row in rows:
        if row.given and row.status not in ("missing", "waiting"):
            tries[row.task, row.member_id].append(row)
    found = []
    for task in lab.tasks:
        one = TaskStatistics(task.id, task.kind, task.points, hints=hints[task.id])
        mine = {member: seen for (name, member), seen in tries.items() if name == task.id}
        one.answered = len(mine)
        one.right = sum(seen[-1].status in ("right", "sealed", "changed") for seen in mine.values())
        one.open = sum(seen[-1].status == "open" and (member, lab.name, task.id) not in marked for member, seen in mine.items())
        one.first = sum(seen[0].status == "right" for seen in mine.values())
        if mine:
            one.attempts = sum(len({row.given for row in seen}) for seen in mine.values()) / len(mine)
            one.points = sum(marked.get((m, lab.name, task.id), seen[-1].points) for m, seen in mine.items()) / len(mine)
            firsts = {m: next((row.at for row in seen if row.status in DONE), None) for m, seen in mine.items()}
            times = sorted((at - begun[m]).total_seconds() / 60 for m, at in firsts.items() if at is not None and m in begun)
            one.minutes = times[len(times) // 2] if times else None
        found.append(one)
    return found


def _students() -> Any:
    return sa.select(Member.id).where(Member.role == "student")


@dataclass
class MistakeTally:
    """A kind of mistake in a task: what the check says of it, without the numbers of single students; who made it; their answers."""

    says: str
    students: set[int] = field(default_factory=set)
    given: Counter[str] = field(default_factory=Counter)

    @property
    def examples(self) -> list[str]:
        """The most frequent answers."""
        return [text if len(text) <= 40 else f"{text[:39]}…" for text, _ in self.given.most_common(3)]


def mistakes(db: Database, lab: Lab, most: int = 8) -> dict[str, list[MistakeTally]]:
    """Task -> kinds of mistakes, those of the most students first; ``says`` is empty for what no usual mistake leads to."""
    query = sa.select(CheckResult.task, CheckResult.says, CheckResult.given, Check.member_id).join(Check)
    wrong = query.where(Check.lab == lab.name, CheckResult.status.in_(("wrong", "unreadable")), Check.member_id.in_(_students()))
    found: dict[str, dict[str, MistakeTally]] = defaultdict(dict)
    with db.reading() as connection:
        rows = connection.execute(wrong.order_by(Check.number, Check.id)).all()
    seen: set[tuple[str, int, str]] = set()
    for task, says, given, student in rows:
        kind = _kind(says, given)
        one = found[task].setdefault(kind, MistakeTally(kind))
        one.students.add(student)
        if (task, student, given) not in seen:  # the same answer, checked again, is one answer
            seen.add((task, student, given))
            one.given[given] += 1
    order = [t.id for t in lab.tasks]
    return {task: sorted(found[task].values(), key=lambda m: (-len(m.students), m.says))[:most] for task in order if task in found}


_UNIT = r"(?:[KMGT]i?B(?:/s)?|B(?:/s)?|[mun\u00b5]?s|[KMG]?Hz|[KMG]?bit/s|[KMG]?bps|[KMG])"
_NUMBER = re.compile(rf"(?<![\w.])[-+]?\d[\d.,]*(?:e[-+]?\d+)?(?: ?{_UNIT}\b)?", re.IGNORECASE)


def _kind(says: str, given: str) -> str:
    """What a check said, without the answer and the numbers of the student to whom it said it."""
    told = says
    for cut in dict.fromkeys((given, given.strip(), given[:40])):
        if cut:
            told = told.replace(f"'{cut}'", "'…'")
    return _NUMBER.sub("…", told)


def grades(db: Database) -> list[dict[str, Any]]:
    """A row for each student: student, name, email; for each lab its points, what is not marked yet, and whether it is late; the sum."""
    found = standings(db)
    names = [str(row["lab"]) for row in labs(db)]
    with db.reading() as connection:
        query = sa.select(Member.id, Member.student, Member.name, Member.email).where(Member.role == "student").order_by(Member.key)
        people = connection.execute(query).mappings().all()
    rows = []
    for person in people:
        row: dict[str, Any] = {k: person[k] for k in ("student", "name", "email")}
        total = whole = 0.0
        for name in names:
            one, key = found.get((person["id"], name)), name[:2]
            row[f"{key} points"] = one.points if one is not None and one.checked else None
            row[f"{key} open"] = one.open if one is not None else 0.0
            row[f"{key} late"] = bool(one is not None and (one.late or one.late_points is not None))
            row[f"{key} with late"] = one.late_points if one is not None else None
            total += one.points if one is not None else 0.0
            whole += lab_of(name).points
        rows.append({**row, "points": total, "of": whole})
    return rows
