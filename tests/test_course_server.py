"""A class's server: who gets in, what each may see, quotas and turns, dates, marks; without a browser."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from conftest import Outcome
from flask.testing import FlaskClient

from retrompi.base.errors import InputError, UsageError
from retrompi.classroom.course import members, settings
from retrompi.classroom.course.class_list import Entry, read
from retrompi.classroom.course.database import Database
from retrompi.classroom.course.quota import usage_of
from retrompi.classroom.grades import records
from retrompi.classroom.serve import ClassServer, checked_address
from retrompi.classroom.works import marks, predictions
from retrompi.classroom.works.shelf import DatabaseShelf, bring
from retrompi.labs import work as _work
from retrompi.labs.bench import Bench
from retrompi.labs.grade import right_values
from retrompi.labs.lab import lab
from retrompi.labs.student import draw
from retrompi.labs.work import Conflict, answer, change, check, seal
from retrompi.store import open_store

WORDS = "Ground truth in forty different words, one by one: " + " ".join(f"word{i}" for i in range(60))
"""An answer to an open question that is long enough."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClassServer]:
    """A course with a teacher, an assistant and three students, on a port that nobody asks."""
    folder = tmp_path_factory.mktemp("course")
    db = Database.open(folder / "c.db", new=True)
    people = [
        Entry("lecturer", "Lea Lecturer", "teacher"),
        Entry("helper", "Hal Helper", "assistant"),
        Entry("ann", "Ann <b>Bee</b>"),
        Entry("bo"),
        Entry("cy"),
    ]
    settings.new(db, "MPI & more", ["1", "2"], people, code="falcon-7")
    made = ClassServer(db, host="127.0.0.1", port=0, store=None)
    yield made
    made.close()


@pytest.fixture(scope="module")
def browser(served: ClassServer) -> Callable[[str], FlaskClient]:
    """Student id -> a browser that has come in by a new link; "" -> a stranger's."""

    def come(student: str) -> FlaskClient:
        client = served.app.server.test_client()
        client.environ_base["HTTP_HOST"] = f"127.0.0.1:{served.port}"
        if student:
            secret = members.link_for(served.db, members.find(served.db, student)["id"])
            assert client.get(f"/join/{secret}").status_code == 200
            assert client.post(f"/join/{secret}").status_code == 303
        return client

    return come


def shelf(served: ClassServer, student: str) -> DatabaseShelf:
    row = members.find(served.db, student)
    return DatabaseShelf(served.db, members.person(row))


TEACHERS = ("/course/teacher", "/course/teacher/lab/1", "/course/teacher/marks/1/explain", "/course/teacher/student/{id}",
            "/course/teacher/student/{id}/1", "/course/teacher/alike/1", "/course/teacher/grades.csv")
CHANGES = ("/course/teacher/lab/1/dates", "/course/teacher/lab/1/release", "/course/teacher/lab/1/reveal", "/course/teacher/add",
           "/course/teacher/settings", "/course/teacher/student/{id}/link", "/course/teacher/student/{id}/out",
           "/course/teacher/student/{id}/remove")


def test_a_stranger_sees_the_entrance_and_nothing_else(served: ClassServer, browser: Callable[[str], FlaskClient]) -> None:
    stranger = browser("")
    for path in ("/", "/labs", "/whatif", "/course/me", *TEACHERS):
        found = stranger.get(path.format(id=3))
        assert (found.status_code, found.location) == (302, "/login"), path
    for path in ("/_dash-layout", "/_dash-dependencies", "/assets/studio.css"):
        assert stranger.get(path).status_code == 401, path
    assert stranger.get("/login").status_code == 200
    assert stranger.post("/_dash-update-component", json={}).status_code == 401
    for path in (*CHANGES, "/course/me/code"):
        assert stranger.post(path.format(id=3)).status_code == 401, path
    assert stranger.get("/join/guessed").status_code == 403
    assert "Ann" not in stranger.get("/login").text


def test_a_student_reaches_no_teachers_page_and_no_change(served: ClassServer, browser: Callable[[str], FlaskClient]) -> None:
    ann, bo = browser("ann"), members.find(served.db, "bo")
    for path in TEACHERS:
        found = ann.get(path.format(id=bo["id"]))
        assert found.status_code == 403, path
        assert "bo" not in re.findall(r"\w+", re.sub(r"<[^>]+>", " ", found.text)), path
    before = (settings.labs(served.db), members.members(served.db), settings.about(served.db))
    tag = "0" * 16
    for path in (*CHANGES, f"/course/teacher/marks/1/explain/{tag}"):
        assert ann.post(path.format(id=bo["id"]), data={"yes": "1", "task": "p-half", "sure": "bo", "student": "x"}).status_code == 403, (
            path
        )
    after = (settings.labs(served.db), members.members(served.db), settings.about(served.db))
    assert [r["lab"] for r in before[0]] == [r["lab"] for r in after[0]]
    assert before[0] == after[0]
    assert before[2] == after[2]
    assert {m["id"] for m in before[1]} == {m["id"] for m in after[1]}


def test_an_assistant_sees_and_marks_but_changes_nothing(served: ClassServer, browser: Callable[[str], FlaskClient]) -> None:
    helper, bo = browser("helper"), members.find(served.db, "bo")
    assert all(helper.get(path.format(id=bo["id"])).status_code == 200 for path in TEACHERS)
    for path in CHANGES:
        found = helper.post(path.format(id=bo["id"]), data={"yes": "1", "task": "p-half", "sure": "bo", "student": "x"})
        assert found.status_code == 400, path
        assert "only a teacher" in found.text
    assert "New link" not in helper.get(f"/course/teacher/student/{bo['id']}").text
    assert members.find(served.db, "bo")


def test_a_teacher_takes_the_slides_of_a_lab_along(served: ClassServer, browser: Callable[[str], FlaskClient]) -> None:
    teacher = browser("lecturer")
    page = teacher.get("/course/teacher/lab/1").text
    assert "/slides.html" in page
    assert "[improved]" in page, "a question for all has the names of the numbers"
    assert "{improved}" not in page
    assert browser("ann").get("/course/teacher/lab/1/slides.html").status_code == 403
    found = teacher.get("/course/teacher/lab/1/slides.html", headers={"Accept-Language": "de"})
    assert found.status_code == 200
    assert "attachment" in found.headers["Content-Disposition"]
    assert "one-way time" in found.text, "slides are in English whoever asks"


def test_posts_of_other_origins_and_foreign_names_are_refused(served: ClassServer, browser: Callable[[str], FlaskClient]) -> None:
    teacher = browser("lecturer")
    evil = {"Origin": "https://evil.example"}
    assert teacher.post("/course/teacher/settings", data={}, headers=evil).status_code == 403
    assert teacher.post("/course/me/out", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    secret = members.link_for(served.db, members.find(served.db, "cy")["id"])
    assert browser("").post(f"/join/{secret}", headers=evil).status_code == 403
    assert teacher.get("/course/teacher", headers={"Host": "evil.example"}).status_code == 403
    assert teacher.get("/course/teacher").headers["X-Frame-Options"] == "DENY"


def test_no_page_runs_what_a_student_wrote(served: ClassServer, browser: Callable[[str], FlaskClient]) -> None:
    one, bad = lab("1"), "<script>alert(1)</script> <img src=x onerror=alert(2)> " + WORDS
    change(shelf(served, "ann"), one, lambda w: answer(w, one, {"explain": bad, "p-half": "<script>x</script>"}))
    teacher = browser("lecturer")
    ann = members.find(served.db, "ann")
    for path in (*TEACHERS[:-1], "/course/me"):
        text = teacher.get(path.format(id=ann["id"])).text
        assert "<script" not in text, path
        assert "<b>Bee" not in text, path
        assert "onerror=alert" not in re.sub(r"&lt;.*?&gt;", "", text), path
    assert "&lt;script&gt;alert(1)" in teacher.get("/course/teacher/marks/1/explain").text


def test_a_link_is_not_used_up_by_looking_and_a_code_brings_a_second_device(
    served: ClassServer, browser: Callable[[str], FlaskClient]
) -> None:
    first = browser("bo")
    assert "b" in first.get("/course/me").text
    code = re.search(r'id="device-code">([\w-]+)<', first.post("/course/me/code").text)
    assert code is not None
    second = browser("")
    assert second.post("/login", data={"code": "wrong-code"}).status_code == 403
    assert second.post("/login", data={"code": code[1]}).location == "/"
    assert second.get("/course/me").status_code == 200
    assert browser("").post("/login", data={"code": code[1]}).status_code == 403
    second.post("/course/me/out")
    assert second.get("/course/me").status_code == 302
    assert first.get("/course/me").status_code == 200


def test_a_session_planted_beforehand_is_of_no_use(served: ClassServer, browser: Callable[[str], FlaskClient]) -> None:
    victim = browser("")
    planted = "A" * 32
    name = f"retrompi-session-{served.port}"
    victim.set_cookie(name, planted, domain="127.0.0.1")
    secret = members.link_for(served.db, members.find(served.db, "cy")["id"])
    victim.post(f"/join/{secret}")
    assert members.by_session(served.db, planted) is None


def test_whoever_guesses_is_stopped(served: ClassServer, browser: Callable[[str], FlaskClient]) -> None:
    guesser = browser("")
    guesser.environ_base["REMOTE_ADDR"] = "10.1.2.3"
    codes = [guesser.post("/login", data={"code": f"wrong-{i}"}).status_code for i in range(40)]
    assert set(codes) == {403, 429}
    good = members.code_for(served.db, members.find(served.db, "cy")["id"])
    # a class shares an address: who has a code that nobody guesses comes in, while one that people make up has to wait
    assert guesser.post("/login", data={"class": "guess", "student": "x", "name": "x"}).status_code == 429
    assert guesser.post("/login", data={"code": good}).status_code == 303
    guessed = browser("")
    guessed.environ_base["REMOTE_ADDR"] = "10.1.2.5"
    assert {guessed.get(f"/join/wrong-{i}").status_code for i in range(80)} == {403, 429}
    assert guessed.get(f"/join/{members.link_for(served.db, members.find(served.db, 'bo')['id'])}").status_code == 200


def test_addresses_that_lead_nowhere_answer_without_the_studio(served: ClassServer, browser: Callable[[str], FlaskClient]) -> None:
    stranger, student, lecturer = browser(""), browser("bo"), browser("lecturer")
    for path in ("/lti/", "/lti/nothing", "/join/", "/join/a/b"):
        for who in (stranger, student, lecturer):
            found = who.get(path)
            assert (found.status_code, "_dash" in found.text) == (404, False), path
    for path in ("/course/teacher", "/course/teacher/"):
        assert student.get(path).status_code == 403
        assert lecturer.get(path).status_code == 200
        assert stranger.get(path).location == "/login"
    assert student.get("/course/nothing").status_code == 404
    assert student.get("/labs").status_code == 200


def test_jobs_and_uploads_are_a_members_own_and_counted(served: ClassServer, browser: Callable[[str], FlaskClient]) -> None:
    resources = served.resources
    session = {who: members.enter(served.db, members.find(served.db, who)["id"], "test") for who in ("ann", "bo", "lecturer")}
    ann = members.find(served.db, "ann")["id"]
    served.settings(runs=2)
    try:
        jobs = [resources.jobs.submit(session["ann"], "one", _burn, 0.2) for _ in range(2)]
        with pytest.raises(UsageError, match="the 2 simulations of today"):
            resources.jobs.submit(session["ann"], "three", _burn, 0.0)
        with pytest.raises(UsageError, match="belongs to another session"):
            resources.jobs.state(jobs[0], session["bo"])
        with pytest.raises(UsageError, match="only members"):
            resources.jobs.submit("B" * 32, "stranger's", _burn, 0.0)
        for _ in range(3):  # teachers have no quota
            jobs.append(resources.jobs.submit(session["lecturer"], "theirs", _burn, 0.0))
        for job, whose in zip(jobs, ["ann", "ann", *["lecturer"] * 3], strict=True):
            assert resources.jobs.wait(job, session[whose], 60).status == "done"
        served.quotas.flush()
        today = usage_of(served.db, ann, datetime.now(UTC).date())
        assert today["runs"] == 2
        assert today["cpu_s"] >= 0.3
        served.settings(runs=1000, cpu_s=0.1)
        with pytest.raises(UsageError, match=r"0.1 processor seconds"):
            resources.jobs.submit(session["ann"], "four", _burn, 0.0)
        served.settings(uploads=1)
        resources.uploads.add(session["ann"], "a.csv", "data:text/csv;base64,YQ==")
        with pytest.raises(UsageError, match="uploads of today"):
            resources.uploads.add(session["ann"], "b.csv", "data:text/csv;base64,YQ==")
        assert resources.uploads.of(session["bo"]) == []
    finally:
        served.settings(runs=3000, cpu_s=3600.0, uploads=60)


def _burn(report: Any, seconds: float) -> str:
    import time

    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
    return "done"


def test_turns_are_a_members_wherever_the_browsers_are(served: ClassServer, browser: Callable[[str], FlaskClient]) -> None:
    from flask import g

    clients = []
    for who, address in (("ann", "10.0.0.1"), ("ann", "10.0.0.2"), ("bo", "10.0.0.1")):
        with browser(who) as client:
            client.get("/", environ_overrides={"REMOTE_ADDR": address})
            clients.append(g.client)
    assert clients[0] == clients[1] != clients[2]


# -- works, checks, marks ----------------------------------------------------------------------------------------------


def solve(served: ClassServer, student: str, **wrong: str) -> None:
    """Predicts, seals, answers and checks lab 1 as a student does, with some answers wrong."""
    one, mine = lab("1"), shelf(served, student)
    store = open_store(str(served.resources.folder / "test-runs.db"))
    usual = {"s": "1 ms", "1": "3"}
    guesses = {t.id: wrong.get(t.id, t.choices[0] if t.choices else usual.get(t.unit, "4 KiB")) for t in one.predictions}
    guesses = {k: v for k, v in guesses.items() if k not in mine.open(one).state.sealed}
    change(mine, one, lambda w: seal(answer(w, one, guesses), one))
    p, bench = draw(one, student), Bench(store)
    right = right_values(one, p, bench)
    units = {t.id: {"s": "s", "B/s": "B/s", "B": "B"}.get(t.unit, "") for t in one.tasks}
    given = {k: v if isinstance(v, str) else f"{v:.9g} {units[k]}".strip() for k, v in right.items()}
    given |= {t.id: WORDS for t in one.tasks if t.kind == "text"}
    work = change(mine, one, lambda w: answer(w, one, given | {k: v for k, v in wrong.items() if not k.startswith("p-")}))
    after, grading = check(work, one, bench)
    mine.keep_check(mine.ask(mine.save(after)), grading)


def test_a_class_is_seen_marked_and_graded(served: ClassServer, browser: Callable[[str], FlaskClient]) -> None:
    db, one = served.db, lab("1")
    solve(served, "bo")
    solve(served, "cy", startup="1 s", **{"p-startup": "20 us"})
    standing = records.standings(db)
    bo, cy = (members.find(db, who)["id"] for who in ("bo", "cy"))
    name = one.name
    texts = sum(t.points for t in one.tasks if t.kind == "text")
    assert standing[bo, name].points == one.points - texts
    assert standing[bo, name].open == texts
    assert standing[cy, name].results["startup"] == "wrong"
    rows = {r.task: r for r in records.statistics(db, one)}
    assert (rows["startup"].answered, rows["startup"].right, rows["startup"].first) == (2, 1, 1)
    assert rows["explain"].open == 2
    assert len(records.mistakes(db, one)["startup"][0].students) == 1
    found = predictions.distribution(one.task("p-startup"), predictions.sealed_predictions(db, one))
    assert found.count == 2
    assert sum(b.count for b in found.bins) == 2
    assert not found.answer
    teacher, student = browser("lecturer"), browser("bo")
    assert "Simulated:" not in teacher.get("/course/teacher/lab/1").text
    teacher.post("/course/teacher/lab/1/reveal", data={"task": "p-startup", "yes": "1"})
    assert "Simulated:" in teacher.get("/course/teacher/lab/1").text
    # Marks: by criteria, within their points, seen by the student only once they are shown.
    task = one.task("explain")
    sheet = next(s for s in marks.sheets(db, one, task) if s.member_id == bo)
    assert sheet.model
    place = f"/course/teacher/marks/1/explain/{sheet.tag}"
    rubric = marks.criteria(task)
    too_many = {"points-0": str(rubric[0].points + 1), "comment": ""}
    assert teacher.post(place, data=too_many).status_code == 400
    assert teacher.post(place, data={"points-0": "many"}).status_code == 400
    given = {f"points-{i}": str(c.points) for i, c in enumerate(rubric)} | {"comment": "Well <i>said</i>."}
    assert teacher.post(place, data=given).status_code == 303
    assert records.standings(db)[bo, name].points == one.points - texts + task.points
    assert "Well" not in student.get("/course/me").text
    hidden = json.loads(zipfile.ZipFile(io.BytesIO(student.get("/course/me/data.zip").data)).read("data.json"))
    assert hidden["marks"] == []
    teacher.post("/course/teacher/lab/1/release", data={"yes": "1"})
    assert "Well &lt;i&gt;said" in student.get("/course/me").text
    assert "Well" not in browser("cy").get("/course/me").text
    grades = {r["student"]: r for r in records.grades(db)}
    assert grades["bo"]["01 points"] == one.points - texts + task.points
    assert "bo," in teacher.get("/course/teacher/grades.csv").text
    # Without names the page of answers has none.
    served.settings(anonymous=True)
    text = teacher.get("/course/teacher/marks/1/explain").text
    assert all(m["name"] not in text for m in members.members(db, "student") if len(m["name"]) > 2)
    served.settings(anonymous=False)


def test_before_a_lab_opens_nobody_begins_and_after_it_closes_checks_are_late(served: ClassServer) -> None:
    db, two, now = served.db, lab("2"), datetime.now(UTC)
    settings.dates(db, "2", opens=now + timedelta(hours=1))
    with pytest.raises(UsageError, match="opens at"):
        shelf(served, "ann").open(two)
    assert shelf(served, "lecturer").open(two)
    with pytest.raises(UsageError, match="close before"):
        settings.dates(db, "2", closes=now)
    settings.dates(db, "2", opens=None, closes=None)
    one, dee = lab("1"), members.add(db, "dee")
    solve(served, "dee", startup="1 s")
    before = records.standings(db)[dee, one.name]
    settings.dates(db, "1", closes=now - timedelta(hours=1))
    solve(served, "dee")
    after = records.standings(db)[dee, one.name]
    assert after.points == before.points
    assert after.late_points is not None
    assert after.late_points > before.points
    settings.dates(db, "1", closes=None)
    members.remove(db, dee)


def test_a_work_is_its_owners_and_two_browsers_do_not_overwrite_each_other(served: ClassServer) -> None:
    one = lab("1")
    mine, theirs = shelf(served, "ann"), shelf(served, "bo")
    work = mine.open(one)
    with pytest.raises(UsageError, match="another student"):
        theirs.save(work)
    mine.save(answer(work, one, {"advice": "from the phone"}))
    with pytest.raises(Conflict):
        mine.save(answer(work, one, {"advice": "from the desk"}))
    assert mine.open(one).answers["advice"] == "from the phone"


def test_a_folder_of_the_command_line_goes_on_in_the_course_but_not_back(served: ClassServer) -> None:
    one, mine = lab("1"), shelf(served, "ann")
    kept = mine.open(one)
    own = answer(kept, one, {"advice": "done on the train"})
    assert bring(served.db, mine.member, own).answers["advice"] == "done on the train"
    with pytest.raises(UsageError, match="work of 'bo'"):
        bring(served.db, mine.member, shelf(served, "bo").open(one))
    sealed = change(mine, one, lambda w: seal(answer(w, one, {"p-startup": "1 ms", "p-half": "1 KiB"}), one))
    assert sealed.state.sealed
    with pytest.raises(UsageError, match="ahead of it"):
        bring(served.db, mine.member, own)
    assert _work.folder_files(sealed, one)


def test_own_data_is_complete_and_deletion_leaves_nothing(served: ClassServer, browser: Callable[[str], FlaskClient]) -> None:
    db = served.db
    gone = members.add(db, "deleted.student", name="Dora Deleted")
    mine = browser("deleted.student")
    one = lab("1")
    shelf(served, "deleted.student").open(one)
    with zipfile.ZipFile(io.BytesIO(mine.get("/course/me/data.zip").data)) as packed:
        told = json.loads(packed.read("data.json"))
        assert told["member"]["name"] == "Dora Deleted"
        assert told["works"][0]["lab"] == one.name
        assert f"{one.name}/answers.toml" in packed.namelist()
        assert "digest" not in packed.read("data.json").decode()
    teacher = browser("lecturer")
    assert "Not deleted" in teacher.post(f"/course/teacher/student/{gone}/remove", data={"sure": "no"}).text
    assert teacher.post(f"/course/teacher/student/{gone}/remove", data={"sure": "deleted.student"}).status_code == 303
    assert mine.get("/course/me").status_code == 302
    from retrompi.classroom.course.schema import Base

    with db.reading() as connection:
        for name, table in Base.metadata.tables.items():
            if "member_id" in table.c:
                assert not connection.execute(table.select().where(table.c.member_id == gone)).all(), name


# -- class lists, addresses --------------------------------------------------------------------------------------------


def test_a_class_list_is_taken_as_platforms_write_it(tmp_path: Any) -> None:
    file = tmp_path / "list.csv"
    file.write_text("﻿First name;Surname;Username;Email address\nÅsa;Öberg;asa;a@example.edu\n\n", encoding="utf-8")
    assert read(file) == [Entry("asa", "Åsa Öberg", "student", "a@example.edu")]
    file.write_text("ann\nbo\n")
    assert [e.student for e in read(file)] == ["ann", "bo"]
    wrong = {"student,role\nann,boss\n": (2, "role"), "student\nann\nANN\n": (3, "line 2"), "x,y\n1,2\n": (1, "column"),
             "student,name\n,x\n": (2, "empty")}
    for text, (line, says) in wrong.items():
        file.write_text(text)
        with pytest.raises(InputError, match=says) as error:
            read(file)
        assert error.value.line == line


@for_each(
    "text", ["lab.example.org", "ftp://x/", "https://x/path", "https://u:p@x/", "https://x:99999/", "https://x/?a", ""]
)
def test_an_address_that_no_link_can_begin_with_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no address"):
        checked_address(text)
    assert checked_address("https://Lab.example.org:8443") == "https://lab.example.org:8443/"


def test_no_class_is_served_as_root_unless_told(retrompi: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    refused = retrompi("course", "serve", "--database", str(tmp_path / "none.db"))
    assert refused.code == 2
    assert "--as-root" in refused.err
    told = retrompi("course", "serve", "--as-root", "--database", str(tmp_path / "none.db"))
    assert "--as-root" not in told.err  # it goes on to the database, which is not there
    assert told.code == 2
