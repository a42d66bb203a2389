"""Grades for Moodle: a file for the gradebook's CSV import, and the grading worksheet of an assignment, filled in.

The gradebook's import asks which column is what; it stops at the first student whom it does not find, takes ``-`` for no grade, a point
as decimal separator, and no grade above 100 for a new item. The worksheet is recognised by the columns ``Identifier``, ``Grade`` and
``Last modified (grade)``; a participant whom Moodle graded after that time is left alone.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base.csv_safe import safe_cell, write_back, write_rows
from retrompi.base.errors import InputError
from retrompi.classroom.grades.exports import Grade, Person, title_of

if TYPE_CHECKING:
    from retrompi.base.csv_safe import _Writable

__all__ = ["IDENTIFIERS", "WORKSHEET", "gradebook", "worksheet", "worksheet_filled"]

IDENTIFIERS = {"email": "Email address", "username": "Username", "idnumber": "ID number"}
"""What identifies a student -> the column's name in Moodle's own exports."""
WORKSHEET = ("Identifier", "Full name", "Grade", "Last modified (grade)", "Feedback comments")


def gradebook(out: _Writable, people: Sequence[Person], labs: Sequence[str], identifier: str) -> list[str]:
    """The file for the gradebook's import: identifier, name, and for each lab a column of points and one of feedback.

    Returns the students without an identifier: one of them would stop the whole import, and they are left out.
    """
    key = IDENTIFIERS[identifier]
    names = [key, "Full name", *(c for lab in labs for c in (title_of(lab), f"Feedback: {title_of(lab)}"))]
    rows, left = [], []
    for person in people:
        told = person.email if identifier == "email" else person.student
        if identifier == "email" and not told and "@" in person.student:
            told = person.student
        if not told:
            left.append(person.student)
            continue
        row: dict[str, Any] = {key: told, "Full name": person.name or person.student}
        for lab in labs:
            grade = person.grades.get(lab)
            row[title_of(lab)] = "-" if grade is None else f"{grade.points:.2f}"
            row[f"Feedback: {title_of(lab)}"] = "" if grade is None else grade.feedback
        rows.append(row)
    write_rows(out, names, rows)
    return left


def worksheet(out: _Writable, people: Sequence[Person], lab: str) -> list[str]:
    """A grading worksheet of a lab for students whose participant's number is known from Moodle's download; returns the others.

    It grades participants who have no grade yet; for new grades the worksheet that Moodle gives out has to be filled in.
    """
    rows, left = [], []
    for person in people:
        grade = person.grades.get(lab)
        if not person.account_id.isdigit():
            left.append(person.student)
        elif grade is not None:
            rows.append({"Identifier": f"Participant {person.account_id}", "Full name": person.name, "Grade": f"{grade.points:.2f}",
                         "Last modified (grade)": "-", "Feedback comments": grade.feedback})
    write_rows(out, WORKSHEET, rows)
    return left


def worksheet_filled(file: Path, people: Sequence[Person], lab: str) -> tuple[str, list[str]]:
    """(the worksheet ``file`` that Moodle gave out, with the grades and feedback of ``lab``; students who are not in it).

    Everything else stays as it was. Where the worksheet has a maximum grade, points are scaled to it. InputError for another file.
    """
    names, rows = read_table(file)
    lacks = [c for c in ("Identifier", "Grade", "Last modified (grade)") if c not in names]
    if lacks:
        said = f"not a grading worksheet of Moodle (in English): it has no column '{lacks[0]}'; it has {', '.join(names[:8])}"
        raise InputError(said, file, code="missing-key")
    found: set[str] = set()
    for row in rows:
        person = _of_row(row, people)
        grade = person.grades.get(lab) if person else None
        if person is None or grade is None:
            continue
        found.add(person.student)
        row["Grade"] = f"{_scale_points(grade, row.get('Maximum grade') or row.get('Maximum Grade') or ''):.2f}"
        if "Feedback comments" in names:
            row["Feedback comments"] = safe_cell(grade.feedback)
    text = io.StringIO()
    write_back(text, [names, *([row[name] for name in names] for row in rows)])
    return text.getvalue(), [p.student for p in people if lab in p.grades and p.student not in found]


def _scale_points(grade: Grade, maximum: str) -> float:
    top = re.fullmatch(r"\s*(\d+(?:[.,]\d+)?)\s*", maximum)
    return grade.points * float(top[1].replace(",", ".")) / grade.of if top and grade.of else grade.points


def _of_row(row: Mapping[str, str], people: Sequence[Person]) -> Person | None:
    """The student of a worksheet's row: by the participant's number, else by address, id or full name, each only if it is one person's."""
    number = re.search(r"(\d+)\s*$", row["Identifier"])
    same = [p for p in people if number and p.account_id == number[1]]
    for column, told in (
        ("Email address", lambda p: (p.email, p.student)), ("ID number", lambda p: (p.student,)), ("Username", lambda p: (p.student,)),
        ("Full name", lambda p: (p.name, p.student)),
    ):
        value = row.get(column, "").strip().casefold()
        if not same and value:
            same = [p for p in people if not p.account_id and value in {t.casefold() for t in told(p) if t}]
    return same[0] if len(same) == 1 else None


def read_table(file: Path) -> tuple[list[str], list[dict[str, str]]]:
    """(columns, rows) of a CSV file that a platform gave out. InputError if it is none."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
        lines = list(csv.reader(io.StringIO(text), strict=True))
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}", file, code="unreadable-file") from None
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text; export it as CSV in UTF-8", file, code="unreadable-file") from None
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", file, code="unreadable-file") from None
    if not lines:
        raise InputError("an empty file", file, code="unreadable-file")
    names = [c.strip() for c in lines[0]]
    for number, line in enumerate(lines[1:], 2):
        if line and len(line) != len(names):
            raise InputError(f"{len(line)} cells where the first line has {len(names)}", file, number, code="unreadable-file")
    return names, [dict(zip(names, line, strict=True)) for line in lines[1:] if line]
