"""Grades for learning platforms: the files keep the rules by which Moodle and Canvas read them (their importers' code and manuals)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import for_each

from retrompi.base.errors import InputError
from retrompi.classroom.grades import canvas, exports, moodle
from retrompi.classroom.grades.exports import Grade, Person

Run = Callable[..., Any]
ONE, TWO = "01-latency-bandwidth", "02-eager-rendezvous"
PEOPLE = [
    Person("ann@example.edu", "Ann Bee", "ann@example.edu", grades={ONE: Grade(16.5, 22, 2, "not marked yet: 2 points"), TWO: Grade(9, 20)}),
    Person("bob", "Ünal, Bob; \"B\"", "bob@example.edu", grades={ONE: Grade(22, 22)}),
    Person("=cmd|' /C calc'!A0", "@evil", "", grades={ONE: Grade(1 / 3, 22, 0, "=1+1")}),
]
COLLECTED = [Person("Ann", "Ann Bee", account="Ann Bee", account_id="12345", grades={ONE: Grade(11, 22, 0, "two\nlines")}),
             Person("Bob", "cebob", account="cebob", account_id="12346", grades={ONE: Grade(22, 22)})]


def read(text: str) -> list[list[str]]:
    """A strict reader: every line has as many cells as the first, as both importers demand."""
    lines = list(csv.reader(io.StringIO(text), strict=True))
    assert len({len(line) for line in lines}) == 1
    return lines


def written(write: Callable[..., Any], *args: Any) -> tuple[list[list[str]], Any]:
    out = io.StringIO()
    result = write(out, *args)
    return read(out.getvalue()), result


# -- Moodle ------------------------------------------------------------------------------------------------------------


def moodle_imports(lines: list[list[str]], users: set[str], mapping: dict[str, str]) -> dict[str, dict[str, float]]:
    """What the gradebook's import does with a mapping of columns: the first unknown user, a text as grade or a grade above 100 stops all;
    ``-`` is no grade, and at least two columns are needed."""
    names = [n.strip() for n in lines[0]]
    assert len(names) >= 2
    assert len(set(names)) == len(names), "each column can be mapped by its name"
    grades: dict[str, dict[str, float]] = {}
    for line in lines[1:]:
        cells = dict(zip(names, (c.strip() for c in line), strict=True))
        user = cells[next(n for n, to in mapping.items() if to == "user")]
        assert user in users, f"user mapping error: {user}"
        for name, to in mapping.items():
            if to == "new" and cells[name] != "-":
                value = float(cells[name])
                assert value <= 100
                grades.setdefault(user, {})[name] = value
    return grades


@pytest.mark.parametrize("identifier", ["email", "username", "idnumber"])
def test_moodles_gradebook_takes_the_file(identifier: str) -> None:
    lines, left = written(moodle.gradebook, PEOPLE, [ONE, TWO], identifier)
    key = {"email": "Email address", "username": "Username", "idnumber": "ID number"}[identifier]
    assert lines[0] == [key, "Full name", "Lab 01: Latency and bandwidth from a PingPong curve", "Feedback: Lab 01: Latency and bandwidth from a PingPong curve",
                        exports.title_of(TWO), f"Feedback: {exports.title_of(TWO)}"]
    users = {line[0] for line in lines[1:]} if identifier != "email" else {"ann@example.edu", "bob@example.edu"}
    got = moodle_imports(lines, users, {key: "user", lines[0][2]: "new", lines[0][4]: "new"})
    ann = got["ann@example.edu"]
    assert list(ann.values()) == [16.5, 9.0]
    assert lines[1][3] == "not marked yet: 2 points"
    assert list(got["bob@example.edu" if identifier == "email" else "bob"].values()) == [22.0], "no grade in lab 2"
    assert left == ([PEOPLE[2].student] if identifier == "email" else [])
    assert all(not cell.startswith(("=", "@", "+")) for line in lines for cell in line)


WORKSHEET = """\ufeffIdentifier,"Full name","Email address",Status,Grade,"Maximum grade","Grade can be changed","Last modified (submission)","Last modified (grade)","Feedback comments"
"Participant 12345","Ann Bee",ann@example.edu,"Submitted for grading - ",,100.00,Yes,"Monday, 23 November 2026, 8:00 AM",-,
"Participant 12346","Bob Cee",bob@example.edu,"Submitted for grading - ",50.00,100.00,Yes,"Monday, 23 November 2026, 8:01 AM","Monday, 23 November 2026, 9:00 AM","<p>ok, ""fine""</p>"
"Participant 12399","-Cyd, Dee",cyd@example.edu,"No submission - ",,100.00,Yes,-,-,
"""


def offline_import(text: str) -> dict[str, tuple[str, str]]:
    """What the assignment's import takes from a worksheet: the number after "Participant ", grade and feedback; three columns are needed,
    and the column of feedback must not be the first."""
    lines = read(text)
    names = lines[0]
    at = {name: names.index(name) for name in ("Identifier", "Grade", "Last modified (grade)")}
    comments = names.index("Feedback comments")
    assert comments > 0
    out = {}
    for line in lines[1:]:
        number = line[at["Identifier"]][len("Participant ") :]
        assert number.isdigit()
        if line[at["Grade"]]:
            out[number] = (line[at["Grade"]], line[comments])
    return out


def test_moodles_worksheet_is_filled_and_nothing_else_in_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "worksheet.csv"
    file.write_text(WORKSHEET, encoding="utf-8")
    text, left = moodle.worksheet_filled(file, COLLECTED, ONE)
    assert offline_import(text) == {"12345": ("50.00", "two lines"), "12346": ("100.00", "")}
    assert left == []
    before, after = read(WORKSHEET.lstrip("\ufeff")), read(text)
    for old, new in zip(before, after, strict=True):
        assert [c for i, c in enumerate(old) if i not in (4, 9)] == [c for i, c in enumerate(new) if i not in (4, 9)]
    text, left = moodle.worksheet_filled(file, PEOPLE, ONE)
    assert offline_import(text)["12345"] == ("75.00", "not marked yet: 2 points"), "a course's student is found by the address"
    assert left == [PEOPLE[2].student]


def test_a_worksheet_is_made_from_a_download_alone() -> None:
    lines, left = written(moodle.worksheet, [*COLLECTED, PEOPLE[0]], ONE)
    assert tuple(lines[0]) == moodle.WORKSHEET
    text = io.StringIO()
    csv.writer(text).writerows(lines)
    assert offline_import(text.getvalue()) == {"12345": ("11.00", "two lines"), "12346": ("22.00", "")}
    assert left == ["ann@example.edu"]


# -- Canvas ------------------------------------------------------------------------------------------------------------


def canvas_imports(text: str, students: dict[str, dict[str, str]], assignments: dict[str, str]) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """What the gradebook's import does: (name of the assignment -> user -> grade, assignment -> points possible). ``students``: ID -> what is known;
    ``assignments``: ID -> title."""
    lines = read(text)
    head = lines[0]
    assert len(head) > 3
    assert "Student" in head[0]
    assert "ID" in head[1]
    info = 3
    sis = login = None
    if re.search(r"SIS\s+Login\s+ID", head[2]):
        login, info = 2, 4
    elif re.search(r"SIS\s+User\s+ID", head[2]) and re.search(r"SIS\s+Login\s+ID", head[3]):
        sis, login, info = 2, 3, 5
    assert "Section" in head[info - 1]
    columns = {}
    for at, name in enumerate(head[info:], info):
        if re.search("Current Score|Current Points|Current Grade|Final Score|Final Points|Final Grade|Override Score|Override Grade", name):
            continue
        found = re.fullmatch(r"(.*)\s\((\d+)\)", name)
        columns[at] = assignments.get(found[2], name) if found else name
    first = ["".join(io.StringIO(text).readlines()[:3]).splitlines()]
    counts = {d: {len(next(csv.reader([line], delimiter=d))) for line in first[0]} for d in ";,"}
    assert len(counts[","]) == 1
    assert len(counts[";"]) != 1 or max(counts[";"]) <= max(counts[","]), "taken for a file with semicolons"
    grades: dict[str, dict[str, str]] = {}
    possible: dict[str, str] = {}
    for line in lines[1:]:
        if "Points Possible" in line[0]:
            possible = {columns[at]: line[at] for at in columns}
            continue
        user = line[1] if line[1] in students else None
        for column, key in ((sis, "sis"), (login, "login"), (0, "name")):
            if user is None and column is not None and line[column]:
                user = next((i for i, s in students.items() if s.get(key) == line[column]), None)
        assert user is not None, f"a new student would be made: {line[0]}"
        for at, name in columns.items():
            grades.setdefault(name, {})[user] = line[at]
    return grades, possible


CANVAS = {"501": {"login": "ann@example.edu", "name": "Ann Bee"}, "502": {"login": "bob@example.edu", "name": "Bob"}, "12345": {}, "12346": {}}


def test_canvas_takes_the_file() -> None:
    out = io.StringIO()
    canvas.gradebook(out, PEOPLE[:2], [ONE, TWO])
    grades, possible = canvas_imports(out.getvalue(), CANVAS, {})
    assert grades[exports.title_of(ONE)] == {"501": "16.50", "502": "22.00"}
    assert grades[exports.title_of(TWO)] == {"501": "9.00", "502": ""}, "an empty cell is no change"
    assert possible == {exports.title_of(ONE): "22", exports.title_of(TWO): "20"}
    out = io.StringIO()
    canvas.gradebook(out, COLLECTED, [ONE])
    assert canvas_imports(out.getvalue(), CANVAS, {})[0][exports.title_of(ONE)] == {"12345": "11.00", "12346": "22.00"}


EXPORTED = """Student,ID,SIS User ID,SIS Login ID,Section,Lab 01 (777),"Essay, long (778)",Lab 11 (779),Assignments Current Score,Final Grade
,,,,,Manual Posting,,,,
    Points Possible,,,,,100.00,10.00,5.00,(read only),(read only)
"Bee, Ann",12345,s1,ann@example.edu,A,,8,1,,
"Dee, Bob",502,s2,bob@example.edu,A,3,9,2,,
"Student, Test",999,,xyz,A,,,,,
"""


def test_canvas_own_file_is_filled_in_the_lab_alone(tmp_path: Path) -> None:
    file = tmp_path / "exported.csv"
    file.write_text(EXPORTED)
    text, left = canvas.gradebook_filled(file, [COLLECTED[0], PEOPLE[1]], [ONE])
    students = {"12345": {}, "502": {}, "999": {}}
    lines = read(text)
    assert lines[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Lab 01 (777)"]
    del lines[1]  # manual posting, which the import skips
    out = io.StringIO()
    csv.writer(out).writerows(lines)
    grades, possible = canvas_imports(out.getvalue(), students, {"777": "Lab 01"})
    assert grades == {"Lab 01": {"12345": "50.00", "502": "100.00", "999": ""}}
    assert possible == {"Lab 01": "100.00"}
    assert left == []
    assert canvas.gradebook_filled(file, [COLLECTED[1]], [ONE])[1] == ["Bob"]
    with pytest.raises(InputError, match="no column for lab 02; name the assignment 'Lab 2'"):
        canvas.gradebook_filled(file, PEOPLE, [TWO])


# -- the command -------------------------------------------------------------------------------------------------------


@for_each(
    "content, platform, says",
    [
        (b"", "moodle", "an empty file"),
        (b"a,b\n1\n", "moodle", ":2: 1 cells"),
        (b"ID,Bewertung\n", "moodle", "no column 'Identifier'; it has ID, Bewertung"),
        (b"\xff\xfe", "canvas", "not UTF-8"),
        (b"a,b,c,d\n", "canvas", "not a gradebook"),
        (b'a,"b\n', "canvas", "not CSV"),
    ],
)
def test_another_file_to_fill_is_one_line(content: bytes, platform: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "given.csv"
    file.write_bytes(content)
    with pytest.raises(InputError, match=re.escape(says)):
        moodle.worksheet_filled(file, COLLECTED, ONE) if platform == "moodle" else canvas.gradebook_filled(file, COLLECTED, [ONE])


def collected() -> dict[str, Any]:
    row = {"student": "Ann", "account": "Ann Bee", "account_id": "12345", "late": True, "lab": ONE, "points": 10.0, "of": 22.0, "open": 4.0}
    return {"submissions": [row, {**row, "points": 11.0}, {**row, "points": None}], "alike": []}


def test_of_two_submissions_the_better_one_counts_and_what_is_open_is_told() -> None:
    (ann,) = exports.of_collected(collected())
    assert ann.grades == {ONE: Grade(11.0, 22.0, 4.0, "not marked yet: 4 points; handed in late")}
    for wrong in ({}, [], {"submissions": [3]}, {"submissions": [{"points": "x"}]}, None):
        with pytest.raises(InputError, match="not what 'retrompi lab collect --json' prints"):
            exports.of_collected(wrong)
