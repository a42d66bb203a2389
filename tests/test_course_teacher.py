"""What a teacher sees of a class: answers beside the right ones, checks, mistakes by kind, alike works, dates in the course's zone; and
the page that starts a class."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from conftest import Outcome
from flask.testing import FlaskClient
from refusals import refused
from test_course_server import browser, served, shelf, solve  # noqa: F401

from retrompi.base.errors import UsageError
from retrompi.classroom.course import members, settings
from retrompi.classroom.course.class_list import Entry
from retrompi.classroom.course.database import Database
from retrompi.classroom.grades import records
from retrompi.classroom.pages.start_page import StartPage
from retrompi.classroom.serve import ClassServer
from retrompi.classroom.works import answers, marks, similar
from retrompi.labs.bench import Bench
from retrompi.labs.grade import right_values, usual
from retrompi.labs.lab import lab
from retrompi.labs.student import draw
from retrompi.store import open_store
from retrompi.studio.labs.lab_jobs import key_of

Browser = Callable[[str], FlaskClient]
COPIED = ("The card waits until the kernel has copied every frame, and the second rank polls its buffer meanwhile although nothing came; "
          "therefore a quarter of each period is lost between two ticks, whatever the wire would have carried in that time.")


@pytest.fixture(scope="module")
def worked(served: ClassServer) -> ClassServer:  # noqa: F811
    """Ann and Bo have the same words, Cy was wrong about the start-up three times; the right values of all are prepared."""
    one, store = lab("1"), open_store(str(served.resources.folder / "test-runs.db"))
    texts = [t.id for t in one.tasks if t.kind == "text"]
    own = {who: {t: " ".join(f"{t} {who} {i}" for i in range(40)) for t in texts} for who in ("ann", "bo", "cy")}
    solve(served, "ann", **own["ann"] | {"explain": COPIED})
    solve(served, "bo", **own["bo"] | {"explain": COPIED, "startup": "187"})
    for wrong in ("1 s", "225", "2 s"):
        solve(served, "cy", **own["cy"] | {"startup": wrong})
    for who in ("ann", "bo", "cy"):
        p, bench = draw(one, who), Bench(store)
        served.preparer._known.put(key_of(one, who), {"expected": right_values(one, p, bench), "mistakes": usual(one, p, bench)})
    return served


def test_a_students_answers_stand_beside_the_right_ones_for_their_numbers(worked: ClassServer, browser: Browser) -> None:  # noqa: F811
    one, member = lab("1"), members.find(worked.db, "cy")["id"]
    rows = {r.task.id: r for r in answers.answers(worked.db, one, member, worked.preparer.right(one.name, "cy"))}
    own = right_values(one, draw(one, "cy"), Bench(open_store(str(worked.resources.folder / "test-runs.db"))))
    assert [r.task.id for r in rows.values()] == [t.id for t in one.tasks]
    startup = rows["startup"]
    assert startup.answer == "2 s"
    said = [(given, status) for _number, given, status, _says in startup.tries]
    assert said == [("1 s", "wrong"), ("225", "unreadable"), ("2 s", "wrong")]
    from retrompi.base.units import parse

    assert parse(startup.right, "s") == pytest.approx(own["startup"], rel=1e-4)
    assert rows["p-startup"].right == startup.right, "a prediction stands beside what it is compared with"
    assert "{" not in "".join(r.question for r in rows.values())
    assert answers.answers(worked.db, one, member, None)[0].right == ""
    page = browser("lecturer").get(f"/course/teacher/student/{member}/1").text
    for told in (startup.right, "<code>225</code>", f"check {startup.tries[-1][0]}", one.task("startup").title):
        assert told in page
    assert "not computed yet" not in page


def test_checks_say_what_changed(worked: ClassServer) -> None:
    found = answers.checks(worked.db, lab("1"), members.find(worked.db, "cy")["id"])
    assert len({c.number for c in found}) == len(found) == 3
    assert found == sorted(found, key=lambda c: c.number)
    assert [[(t.id, before, after) for t, before, after in c.changed if t.id == "startup"] for c in found] == [
        [("startup", "", "wrong")], [("startup", "wrong", "unreadable")], [("startup", "unreadable", "wrong")]]
    assert found[0].points <= found[0].of == lab("1").points


def test_mistakes_are_grouped_by_kind_not_by_the_number_written(worked: ClassServer, browser: Browser) -> None:  # noqa: F811
    found = records.mistakes(worked.db, lab("1"))["startup"]
    unit = next(m for m in found if "unit" in m.says)
    assert len(unit.students) == 2
    assert set(unit.examples) == {"225", "187"}
    assert not re.search(r"\d", unit.says)
    page = browser("lecturer").get("/course/teacher/lab/1").text
    assert page.count("has no unit") == 1
    assert "<code>225</code>" in page


def test_alike_works_are_told_with_reasons_and_those_unknown_are_named(worked: ClassServer) -> None:
    one = lab("1")
    works = similar.works(worked.db, one)
    known = worked.preparer.known_values(one.name, [student for _id, student, _work in works])
    place = str(worked.resources.folder / "test-runs.db")
    told = similar.compare_works(lambda *_: None, one.name, works, known, place)
    ids = {who: members.find(worked.db, who)["id"] for who in ("ann", "bo", "cy")}
    assert [{p["one"], p["other"]} for p in told["pairs"]] == [{ids["ann"], ids["bo"]}]
    assert told["pairs"][0]["why"]
    del known[key_of(one, "bo")]
    told = similar.compare_works(lambda *_: None, one.name, works, known, place)
    assert (told["pairs"], told["left_out"], told["compared"]) == ([], [ids["bo"]], 2)


def test_the_page_of_alike_works_is_made_by_a_job(worked: ClassServer, browser: Browser) -> None:  # noqa: F811
    page = browser("lecturer").get("/course/teacher/alike/1").text
    assert "Works that are alike" in page
    assert "Ann &lt;b&gt;Bee" in page
    assert f"/{lab('1').name}" in page


def test_a_rubric_has_the_students_numbers(worked: ClassServer, browser: Browser) -> None:  # noqa: F811
    for one in (lab("1"), lab("2")):
        for task in marks.open_tasks(one):
            for sheet in marks.sheets(worked.db, one, task):
                told = [c.says for c in sheet.criteria] + [says for c in sheet.criteria for _, says in c.levels]
                assert not [t for t in told if re.search(r"\{[a-z]", t)], task.id
    assert not re.search(r"\{[a-z]+\}", browser("lecturer").get("/course/teacher/marks/1/explain").text)


def test_dates_are_in_the_zone_of_the_course(served: ClassServer, browser: Browser) -> None:  # noqa: F811
    teacher = browser("lecturer")
    teacher.post("/course/teacher/settings", data={"zone": "Europe/Berlin", "code": "falcon-7"})
    given = {"opens": "2026-06-01T08:00", "closes": "2026-12-01T18:00"}
    teacher.post("/course/teacher/lab/2/dates", data=given)
    row = settings.plan(served.db, "2")
    assert (row["opens"], row["closes"]) == (datetime(2026, 6, 1, 6, tzinfo=UTC), datetime(2026, 12, 1, 17, tzinfo=UTC))
    page = teacher.get("/course/teacher").text
    assert all(f'value="{text}"' in page for text in given.values())
    assert "Europe/Berlin" in page
    assert "2026-12-01 18:00 CET" in teacher.get("/course/me").text
    assert "no time zone" in teacher.post("/course/teacher/settings", data={"zone": "Europe/Berlim"}).text
    for wrong in ("../../etc/passwd", "Europe", "/etc/localtime", "x" * 60):
        with refused(UsageError, "unknown-name"):
            settings.change(served.db, zone=wrong)
    assert settings.about(served.db).settings.zone == "Europe/Berlin"
    served.settings(zone="")
    teacher.post("/course/teacher/lab/2/dates", data={"opens": "", "closes": ""})


# -- the page that starts a class --------------------------------------------------------------------------------------


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartPage]:
    page = StartPage(str(tmp_path / "new" / "course.db"), lambda db: "http://lab.example.org/")
    page.serve()
    yield page
    page.close()
    if page.db is not None:
        page.db.close()


def ask(page: StartPage, path: str = "", data: Any = None, **headers: str) -> SimpleNamespace:
    """What the page answers."""
    body = None if data is None else urlencode(data, doseq=True).encode()
    try:
        with urlopen(Request(page.address + path, body, headers), timeout=30) as answer:
            return SimpleNamespace(status=answer.status, text=answer.read().decode())
    except HTTPError as error:
        return SimpleNamespace(status=error.code, text=error.read().decode())


def test_a_class_is_started_without_a_shell(start: StartPage) -> None:
    form = ask(start)
    assert form.status == 200
    assert all(f'value="{lab(n).name}"' in form.text for n in ("1", "12"))
    name = lab("1").name
    asked = {"name": "MPI <in> winter", "lab": [name, lab("11").name], f"opens-{name}": "2026-10-01T08:00", "zone": "Europe/Berlin",
             "students": "student,name\nann.bee,Ann Bee\nbo.cole,Bo"}
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"name": ""}, "name"), ({"lab": []}, "lab"), ({"zone": "Europe/Berlim"}, "zone"), ({"students": "a,b\nc"}, "student"),
        ({f"closes-{name}": "2026-09-01T08:00"}, "close")]
    for wrong, says in refusals:
        again = ask(start, data=asked | wrong)
        assert again.status == 400, says
        assert says in again.text
        assert "MPI &lt;in&gt; winter" in again.text or wrong == {"name": ""}, "what was typed stays"
    assert not Path(str(start.where)).exists(), "nothing is left of what could not be made"
    made = ask(start, data=asked)
    assert made.status == 200
    assert start.made.is_set()
    assert start.db is not None
    rows = {m["student"]: m["role"] for m in members.members(start.db)}
    assert rows == {"teacher": "teacher", "ann.bee": "student", "bo.cole": "student"}
    assert settings.plan(start.db, "1")["opens"] == datetime(2026, 10, 1, 6, tzinfo=UTC)
    assert settings.lab_names(start.db) == [name, lab("11").name]
    links = re.findall(r"http://lab\.example\.org/join/([\w-]+)", ask(start, "/links.csv").text)
    assert len(links) == 3
    for link in links:
        assert members.join(start.db, link)
    assert ask(start, data=asked | {"name": "another"}).text == ask(start).text, "a page that is sent twice makes one class"


def test_the_start_page_is_for_this_machines_browsers(start: StartPage) -> None:
    assert ask(start, Host="evil.example:80").status == 403
    outside = StartPage.__new__(StartPage)
    outside.address = start.address.rpartition("/")[0] + "/guess"
    assert ask(outside).status == 404
    assert ask(outside, data={"name": "x"}).status in (404, 405)


def test_no_class_is_started_over_another(retrompi: Callable[..., Outcome], tmp_path: Path) -> None:
    file = tmp_path / "course.db"
    db = Database.open(file, new=True)
    settings.new(db, "one", ["1"], [Entry("t", role="teacher")])
    db.close()
    out = retrompi("course", "start", "--as-root", "--database", str(file))
    assert out.code == 2
    assert "course serve" in out.err
