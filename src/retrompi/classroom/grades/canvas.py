"""Grades for Canvas: a file for the gradebook's import, made anew or filled into the file that Canvas exported.

The import knows a file by its first columns (Student, ID, SIS User ID, SIS Login ID, Section), finds a student by ID, else by SIS user
id, login or name, and an assignment by the number in brackets at the end of its column's name, else by the name. A line ``Points
Possible`` gives the points of new assignments. Columns that are left out stay as they are.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base.csv_safe import write_back, write_rows
from retrompi.base.errors import InputError
from retrompi.classroom.grades.exports import Grade, Person, title_of
from retrompi.classroom.grades.moodle import read_table

if TYPE_CHECKING:
    from retrompi.base.csv_safe import _Writable

__all__ = ["HEAD", "gradebook", "gradebook_filled"]

HEAD = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POSSIBLE = "    Points Possible"


def gradebook(out: _Writable, people: Sequence[Person], labs: Sequence[str]) -> None:
    """A gradebook with a column for each lab; its students are found by the number in Canvas' download, else by address, id or name."""
    columns = {lab: title_of(lab) for lab in labs}
    points: dict[str, Any] = {"Student": POSSIBLE}
    for lab, column in columns.items():
        points[column] = next((f"{p.grades[lab].of:g}" for p in people if lab in p.grades), "")
    rows = [
        {"Student": p.name or p.student, "ID": p.account_id if p.account_id.isdigit() else "", "SIS Login ID": p.email or p.student,
         **{column: _points_text(p.grades.get(lab)) for lab, column in columns.items()}}
        for p in people
    ]
    write_rows(out, (*HEAD, *columns.values()), [points, *rows])


def _points_text(grade: Grade | None) -> str:
    return "" if grade is None else f"{grade.points:.2f}"


def gradebook_filled(file: Path, people: Sequence[Person], labs: Sequence[str]) -> tuple[str, list[str]]:
    """(the gradebook ``file`` that Canvas exported, with only the columns of ``labs`` filled in; students who are not in it).

    A lab's column is one whose name has its number ("Lab 1", "Lab 01: …") or its title. Points are scaled to the assignment's.
    InputError for another file, and for a lab without a column.
    """
    names, rows = read_table(file)
    if not names or "Student" not in names[0] or len(names) < 4 or "ID" not in names[1] or "Section" not in names:
        raise InputError("not a gradebook that Canvas exported: it begins with Student, ID, …, Section", file, code="missing-key")
    head = names[: names.index("Section") + 1]
    columns = {lab: _column(lab, names[len(head) :], file) for lab in labs}
    possible = next((row for row in rows if "Points Possible" in row[names[0]]), {})
    found: set[str] = set()
    for row in rows:
        person = _of_row(row, names[0], people)
        if person is None:
            continue
        for lab, column in columns.items():
            grade = person.grades.get(lab)
            if grade is not None:
                found.add(person.student)
                top = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*", possible.get(column, ""))
                row[column] = f"{grade.points * float(top[1]) / grade.of if top and grade.of else grade.points:.2f}"
    text = io.StringIO()
    shown = (*head, *columns.values())
    write_back(text, [shown, *([row[name] for name in shown] for row in rows)])
    return text.getvalue(), [p.student for p in people if p.grades.keys() & set(labs) and p.student not in found]


def _column(lab: str, names: Sequence[str], file: Path) -> str:
    key, title = lab[:2], title_of(lab).partition(": ")[2].casefold()
    number = re.compile(rf"\blab\s*0*{re.escape(key.lstrip('0'))}\b", re.IGNORECASE)
    same = [n for n in names if number.search(n) or (title and title in n.casefold())]
    if len(same) == 1:
        return same[0]
    told = f"no column for lab {key}" if not same else f"{len(same)} columns for lab {key} ({', '.join(same[:3])})"
    raise InputError(f"{told}; name the assignment 'Lab {key.lstrip('0')}' in Canvas, and export again", file, code="missing-key")


def _of_row(row: dict[str, str], student: str, people: Sequence[Person]) -> Person | None:
    """The student of a row: by Canvas' number, else by login, SIS id or name, each only if it is one person's."""
    number = row["ID"].strip()
    same = [p for p in people if number and p.account_id == number]
    for value in (row.get("SIS Login ID", ""), row.get("SIS User ID", ""), row[student]):
        told = value.strip().casefold()
        first = " ".join(reversed([part.strip() for part in told.split(",", 1)]))  # "Bee, Ann" is Ann Bee
        if not same and told:
            same = [p for p in people if not p.account_id and {told, first} & {t.casefold() for t in (p.student, p.email, p.name) if t}]
    return same[0] if len(same) == 1 else None
