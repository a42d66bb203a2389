"""A class list: a CSV file with a column of ids, and columns of names, addresses, roles and languages where it has them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from retrompi.base.errors import InputError, RetrompiError
from retrompi.labs.student import normal_id

__all__ = ["Entry", "entries", "read"]

_COLUMNS = {
    "student": (
        "student",
        "id",
        "student id",
        "student number",
        "number",
        "username",
        "user name",
        "matriculation",
        "sis login id",
        "login",
    ),
    "name": ("name", "full name", "student name"),
    "first": ("first name", "firstname", "given name"),
    "last": ("last name", "lastname", "surname", "family name"),
    "email": ("email", "e-mail", "email address", "mail"),
    "role": ("role",),
    "language": ("language", "lang"),
}
"""Column -> what class lists of learning platforms call it."""
LARGEST_B = 4 << 20
MOST = 20_000


@dataclass(frozen=True)
class Entry:
    """A line of the list."""

    student: str
    name: str = ""
    role: str = "student"
    email: str | None = None
    language: str | None = None


def read(file: Path) -> list[Entry]:
    """The people of the class list in a file. InputError with file and line for what cannot be taken: nobody is left out in silence."""
    try:
        if file.stat().st_size > LARGEST_B:
            raise InputError(f"the class list is larger than {LARGEST_B >> 20} MiB", file, code="out-of-range")
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("the class list is not UTF-8 text; save it as 'CSV UTF-8'", file, code="unreadable-file") from None
    except OSError as error:
        raise InputError(f"cannot read the class list: {error.strerror}", file, code="unreadable-file") from None
    return entries(text, file)


def entries(text: str, file: Path | None = None) -> list[Entry]:
    """The people of a class list, which is the text of ``file``, if it is of a file; a line with an id alone needs no heading above it.
    InputError with the line."""
    first = text.split("\n", 1)[0]
    mark = max(",;\t", key=first.count)
    try:
        rows = [(number, [cell.strip() for cell in row]) for number, row in enumerate(csv.reader(text.splitlines(), delimiter=mark), 1)]
    except csv.Error as error:
        raise InputError(f"not a CSV file: {error}", file, code="unreadable-file") from None
    rows = [(number, row) for number, row in rows if any(row)]
    if not rows:
        raise InputError("the class list is empty", file, code="unreadable-file")
    if len(rows) > MOST:
        raise InputError(f"the class list has {len(rows)} lines; at most {MOST} are taken", file, code="out-of-range")
    head = [cell.lower() for cell in rows[0][1]]
    places = {column: next((head.index(n) for n in names if n in head), None) for column, names in _COLUMNS.items()}
    if places["student"] is None and places["email"] is not None:
        places["student"] = places["email"]
    if places["student"] is None:
        if len(head) > 1:
            raise InputError("the class list has no column 'student' with the ids (or 'username', 'email')", file, 1, code="missing-key")
        places, rows = {**dict.fromkeys(places), "student": 0}, [(0, []), *rows]  # a plain list of ids, without a heading
    found: dict[str, tuple[int, Entry]] = {}
    for number, row in rows[1:]:
        cells = {c: row[i] if i is not None and i < len(row) else "" for c, i in places.items()}
        entry = Entry(
            cells["student"], cells["name"] or " ".join(p for p in (cells["first"], cells["last"]) if p),
            cells["role"].lower() or "student", cells["email"] or None, cells["language"] or None,
        )
        try:
            key = normal_id(entry.student)
        except RetrompiError as error:
            raise InputError(str(error), file, number, code="bad-name") from None
        if entry.role not in ("student", "assistant", "teacher"):
            raise InputError(f"no role '{entry.role[:40]}'; valid: student, assistant, teacher", file, number, code="bad-name")
        if key in found:
            raise InputError(f"'{entry.student[:80]}' is in line {found[key][0]} already", file, number, code="duplicate-name")
        found[key] = (number, entry)
    return [entry for _, entry in found.values()]
