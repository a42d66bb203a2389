"""Checks in a class, from the click to the record: whatever becomes of the page, of the member, of the lab's dates, of the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import studio_work
from flask.testing import FlaskClient
from postgres import database_place, server  # noqa: F401  (fixtures)
from studio_app import UPDATE, soon

from retrompi.base.errors import StoreError, UsageError
from retrompi.classroom.course import members, settings
from retrompi.classroom.course.backup import backup, restore
from retrompi.classroom.course.class_list import Entry
from retrompi.classroom.course.database import Database
from retrompi.classroom.course.schema import AskedCheck, Base, Check
from retrompi.classroom.grades import records
from retrompi.classroom.lti import lti_scores
from retrompi.classroom.lti.lti_schema import LtiLink, LtiPlatform, LtiSeat
from retrompi.classroom.serve import ClassServer
from retrompi.classroom.works import asked_checks, marks
from retrompi.classroom.works.shelf import DatabaseShelf
from retrompi.labs.grade import Grading, TaskResult
from retrompi.labs.lab import lab
from retrompi.labs.work import CheckRequest, answer, change, put, seal
from retrompi.studio.labs import lab_jobs, lab_page, lab_text

ONE = lab("1")


@pytest.fixture
def db(database_place: str) -> Iterator[Database]:  # noqa: F811
    """A course with a teacher and two students."""
    made = Database.open(database_place, new=True)
    settings.new(made, "MPI", ["1", "9"], [Entry("lecturer", role="teacher"), Entry("ann"), Entry("bo")])
    yield made
    made.close()


def shelf(db: Database, student: str = "ann") -> DatabaseShelf:
    return DatabaseShelf(db, members.person(members.find(db, student)))


def ask(db: Database, student: str = "ann", **answers: str) -> CheckRequest:
    """A check is asked for, as the page does it."""
    mine = shelf(db, student)
    return mine.ask(change(mine, ONE, lambda w: seal(answer(w, ONE, answers), ONE)))


def said(number: int, points: float = 3.0, student: str = "ann") -> Grading:
    """What a check said, made up."""
    results = (TaskResult("startup", "number", "right", points, 4.0, given="190 us"), TaskResult("p-half", "prediction", "sealed", 1.0, 1.0,
               compared="4 KiB predicted, 8 KiB found"), TaskResult("explain", "text", "open", 0.0, 2.0, open=2.0))
    return Grading(ONE.name, student, results, checks=number)


def checks(db: Database) -> list[Any]:
    with db.reading() as connection:
        return list(connection.execute(sa.select(Check.__table__).order_by(Check.id)))


def notes(db: Database) -> list[Any]:
    with db.reading() as connection:
        return list(connection.execute(sa.select(AskedCheck.__table__).order_by(AskedCheck.id)))


# -- the record ----------------------------------------------------------------------------------------------------------


def test_a_check_is_recorded_once_however_many_tell_of_it(db: Database) -> None:
    one = ask(db)
    with ThreadPoolExecutor(6) as pool:
        told = list(pool.map(lambda _: asked_checks.record(db, one, said(1)), range(6)))
    assert sorted(told) == [False] * 5 + [True]
    (row,) = checks(db)
    assert (row.points, row.of, row.number, row.at) == (4.0, 7.0, 1, one.at)
    last = shelf(db).last(ONE.name)
    assert Grading.from_row(last.row) == said(1), "the page shows all of it, on every device"
    assert not last.error


def test_the_record_is_of_the_time_of_asking(db: Database) -> None:
    before, ann = ask(db), members.find(db, "ann")["id"]
    settings.dates(db, "1", closes=datetime.now(UTC) - timedelta(hours=1))
    after = ask(db, advice="another")
    settings.dates(db, "1", closes=None)
    shelf(db).keep_check(before, said(before.number, 2.0))
    shelf(db).keep_check(after, said(after.number, 4.0))
    assert [(c.number, c.late, c.at) for c in checks(db)] == [(before.number, False, before.at), (after.number, True, after.at)]
    one = records.standings(db)[ann, ONE.name]
    assert (one.points, one.late_points, one.late) == (3.0, 5.0, False)


def test_of_two_checks_the_one_asked_for_last_counts_whichever_is_graded_first(db: Database) -> None:
    first, second = ask(db), ask(db, advice="another")
    shelf(db).keep_check(second, said(second.number, 4.0))
    shelf(db).keep_check(first, said(first.number, 1.0))
    one = records.standings(db)[members.find(db, "ann")["id"], ONE.name]
    assert (one.points, one.checked) == (5.0, second.at)
    assert shelf(db).last(ONE.name).row["checks"] == second.number
    assert [n.number for n in notes(db)] == [second.number], "of those that are done only the newest is kept"
    assert len(checks(db)) == 2


def test_who_is_removed_while_a_check_is_graded_is_gone_for_good(db: Database) -> None:
    for _ in range(5):
        ann = members.add(db, "removed.student")
        some = [ask(db, "removed.student", advice=f"{i}") for i in range(3)]
        with ThreadPoolExecutor(4) as pool:
            told = [pool.submit(asked_checks.record, db, one, said(one.number, student="removed.student")) for one in some]
            gone = pool.submit(members.remove, db, ann)
            [t.result() for t in told]
            gone.result()
        assert not asked_checks.record(db, some[0], said(1))
        asked_checks.fail(db, some[0], "too late")
        with db.reading() as connection:
            for name, table in Base.metadata.tables.items():
                if "member_id" in table.c:
                    assert not connection.execute(table.select().where(table.c.member_id == ann)).all(), name
    with pytest.raises(UsageError, match="no longer in the course"):
        DatabaseShelf(db, replace(shelf(db).member, id=9999)).open(ONE)


def test_a_check_taken_back_leaves_nothing_and_one_that_failed_says_why_until_the_next(db: Database) -> None:
    mine = shelf(db)
    mine.keep_failure(ask(db), "")
    assert notes(db) == []
    done, failed = ask(db), ask(db)
    mine.keep_check(done, said(done.number))
    mine.keep_failure(failed, "it took too much memory")
    mine.keep_failure(done, "too late to fail")
    assert (mine.last(ONE.name).row["checks"], mine.last(ONE.name).error) == (done.number, "it took too much memory")
    following = ask(db)
    mine.keep_check(following, said(following.number))
    assert mine.last(ONE.name).error == ""
    assert [n.status for n in notes(db)] == ["done"]
    assert shelf(db, "bo").last(ONE.name).row == {}


def test_a_waiting_check_keeps_the_work_as_it_was(db: Database, tmp_path: Path) -> None:
    nine, mine = lab("9"), shelf(db)
    source = b"int main(void) { return 0; }\n\xff"
    work = change(mine, nine, lambda w: seal(put(w, "exchange.c", source), nine))
    waits = mine.ask(work)
    change(mine, nine, lambda w: put(w, "exchange.c", b"another\n"))
    counts = backup(db, tmp_path / "b.zip")
    restore(tmp_path / "b.zip", str(tmp_path / "again.db"))
    again = Database.open(tmp_path / "again.db")
    assert counts["asked_checks"] == 1
    for place in (db, again):
        (one,) = asked_checks.waiting(place)
        assert (one.asked, one.member, one.language) == (waits, mine.member, "en")
        assert (one.work.state, dict(one.work.answers), dict(one.work.files)) == (work.state, dict(work.answers), dict(work.files))
    again.close()


def test_a_course_without_the_table_gets_it(tmp_path: Path) -> None:
    made = Database.open(tmp_path / "c.db", new=True)
    settings.new(made, "MPI", ["1"], [Entry("ann")])
    with made.transaction() as connection:
        AskedCheck.__table__.drop(connection)
    made.close()
    made = Database.open(tmp_path / "c.db")
    assert asked_checks.record(made, ask(made), said(1))
    made.close()


def test_a_score_goes_to_the_platform_with_the_record(db: Database) -> None:
    ann = members.find(db, "ann")["id"]
    with db.transaction() as connection:
        platform = {"name": "Moodle", "issuer": "https://lms", "client_id": "x", "auth_url": "https://lms/a", "token_url": "https://lms/t",
                    "keys_url": "https://lms/k", "deployments": ["1"], "created": datetime.now(UTC)}
        known = {c.name for c in LtiPlatform.__table__.c}
        made = connection.execute(sa.insert(LtiPlatform).returning(LtiPlatform.id), [{k: v for k, v in platform.items() if k in known}])
        row = {"platform_id": made.scalar_one(), "deployment": "1", "resource": "r", "lab": ONE.name, "lineitem": "https://lms/42"}
        link = connection.execute(sa.insert(LtiLink).returning(LtiLink.id), [row]).scalar_one()
        connection.execute(sa.insert(LtiSeat), [{"link_id": link, "member_id": ann, "sub": "7"}])
    one, two = ask(db), ask(db)
    assert lti_scores.outbox(db.engine) == []
    with ThreadPoolExecutor(2) as pool:  # the newer one's score is the one that is sent, whichever is recorded first
        list(pool.map(lambda c: asked_checks.record(db, c, said(c.number, 1.0 * c.number)), (two, one)))
    (score,) = lti_scores.outbox(db.engine)
    assert (score["points"], score["of"], bool(score["pending"])) == (1.0 + two.number, 7.0, True)


# -- the server ----------------------------------------------------------------------------------------------------------

Press = Callable[..., Any]


class Class:
    """A course's server that nobody waits for: browsers post as pages do."""

    def __init__(self, db: Database, folder: Path) -> None:
        self.server = ClassServer(db, host="127.0.0.1", port=0, store=str(folder / "runs.db"))
        self.resources = self.server.resources

    def browser(self, student: str = "ann") -> FlaskClient:
        client: FlaskClient = self.server.app.server.test_client()
        client.environ_base["HTTP_HOST"] = f"127.0.0.1:{self.server.port}"
        secret = members.link_for(self.server.db, members.find(self.server.db, student)["id"])
        assert client.post(f"/join/{secret}").status_code == 303
        return client

    def post(self, client: FlaskClient, by: str = "", **values: Any) -> dict[str, Any]:
        """What the page posts of its checks: when it is opened, or when ``by`` has changed."""
        told = {"labs-lab.value": ONE.name, "labs-step.data": 1, "studio-tab.data": "tab", "labs-tick.n_intervals": 0, **values}
        (one,) = [c for c in client.get("/_dash-dependencies").json if "labs-job.data" in c["output"]]
        given = {what: [{"id": i["id"], "property": i["property"], "value": told.get(f"{i['id']}.{i['property']}")} for i in one[what]]
                 for what in ("inputs", "state")}
        outputs = [dict(zip(("id", "property"), o.rsplit(".", 1), strict=True)) for o in one["output"].strip(".").split("...")]
        found = client.post(UPDATE, json={"output": one["output"], "outputs": outputs, **given, "changedPropIds": [by] if by else []})
        assert found.status_code == 200, found.text
        return dict(found.json.get("response", {}), aside=found.json.get("sideUpdate", {}))

    def press(self, client: FlaskClient, number: int = 1) -> str:
        """Check! Returns the id of the job."""
        question = {"lab": ONE.name, "student": None, "task": "*", "step": 1, "count": number}
        answer = self.post(client, "labs-question.data", **{"labs-question.data": question})
        assert "labs-job" in answer, answer
        return str(answer["labs-job"]["data"])


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Checks that are graded (made up) once the returned function is called."""
    gate, true = tmp_path / "gate", lab_jobs.check

    def check(one: CheckRequest, mine: Any, work: Any, *more: Any) -> Any:
        title, _function, _args, then = true(one, mine, work, *more)
        row = said(one.number, student=work.state.student).row()
        return title, studio_work.wait_for, (str(gate), {"grading": row, "known": {"expected": {}, "mistakes": {}}}), then

    monkeypatch.setattr("retrompi.studio.labs.lab_jobs.check", check)
    monkeypatch.setattr("retrompi.classroom.works.owed_checks.check", check)
    return gate.touch


@pytest.fixture
def class_(db: Database, tmp_path: Path) -> Iterator[Class]:
    made = Class(db, tmp_path)
    yield made
    made.server.close()


def test_a_check_is_recorded_though_its_page_is_closed_and_shown_on_another_device(class_: Class, db: Database, held: Any) -> None:
    phone, desk = class_.browser(), class_.browser()
    job = class_.press(phone)
    assert [n.status for n in notes(db)] == ["waiting"]
    assert "points" not in phone.get("/labs?lab=1").text
    phone.delete_cookie(f"retrompi-session-{class_.server.port}")
    found = class_.post(desk)
    assert found["labs-job"]["data"] == job, "the page finds the check that runs, on another device too"
    held()
    assert soon(lambda: bool(checks(db)))
    assert soon(lambda: "labs-checked" in class_.post(desk, "labs-tick.n_intervals", **{"labs-job.data": job}))
    told = class_.post(desk, "labs-tick.n_intervals", **{"labs-job.data": job})["aside"]
    assert told["labs-summary"]["children"] == "4 of 7 points; 2 open until marked; check 1"
    assert len(checks(db)) == 1, "the page that comes after it records nothing"
    row = records.standings(db)[members.find(db, "ann")["id"], ONE.name]
    assert (row.points, row.open) == (4.0, 2.0)


def test_a_second_check_does_not_cancel_the_first(class_: Class, db: Database, held: Any) -> None:
    ann = class_.browser()
    first, second = class_.press(ann, 1), class_.press(ann, 2)
    assert first != second
    held()
    assert soon(lambda: len(checks(db)) == 2)
    assert shelf(db).last(ONE.name).row["checks"] == 2


def test_a_check_that_is_cancelled_or_refused_is_not_graded_later(class_: Class, db: Database, held: Any) -> None:
    ann = class_.browser()
    job = class_.press(ann)
    class_.post(ann, "labs-cancel.n_clicks", **{"labs-job.data": job, "labs-cancel.n_clicks": 1})
    assert soon(lambda: notes(db) == [])
    class_.server.settings(runs=1)
    answer = class_.post(ann, "labs-question.data", **{"labs-question.data": {"lab": ONE.name, "task": "*", "step": 1, "count": 2}})
    assert "simulations of today" in str(answer)
    assert notes(db) == []
    held()
    assert checks(db) == []


def test_a_job_that_fails_says_so_on_the_page_that_comes_back(class_: Class, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    true = lab_jobs.check

    def broken(*given: Any) -> Any:
        title, _function, _args, then = true(*given)
        return title, studio_work.abort, (), then

    monkeypatch.setattr("retrompi.studio.labs.lab_jobs.check", broken)
    class_.press(class_.browser())
    assert soon(lambda: [n.status for n in notes(db)] == ["failed"])
    assert "died (signal 6)" in shelf(db).last(ONE.name).error


def test_a_server_that_was_stopped_grades_what_was_asked_for_and_again_only_once(db: Database, tmp_path: Path, held: Any) -> None:
    before = Class(db, tmp_path)
    try:
        before.press(before.browser())
        (note,) = notes(db)
    finally:
        before.server.close()
    assert [n.status for n in notes(db)] == ["waiting"], "nothing is taken for cancelled"
    some = [Class(db, tmp_path) for _ in range(2)]  # two servers of one course, even
    try:
        for one in some:
            one.server.owed.find()
        settings.dates(db, "1", closes=datetime.now(UTC) - timedelta(hours=1))
        for one in some:
            one.server.owed.pay()
        ann = some[0].browser()
        assert some[0].post(ann)["labs-job"]["data"], "the page finds it"
        held()
        assert soon(lambda: bool(checks(db)))
        assert soon(lambda: not any(one.resources.jobs._open for one in some))
    finally:
        for one in some:
            one.server.close()
    (row,) = checks(db)
    assert (row.at, row.late) == (note.at, False)
    assert asked_checks.waiting(db) == []


def test_more_than_the_studio_takes_at_once_waits_and_another_version_is_told(class_: Class, db: Database, held: Any) -> None:
    many = class_.resources.jobs.limits.jobs_a_session + 2
    for i in range(many):
        ask(db, advice=f"{i}")
    old = ask(db, "bo")
    with db.transaction() as connection:
        work = dict(connection.scalar(sa.select(AskedCheck.work).where(AskedCheck.id == old.id)) or {})
        work["state"] = {**work["state"], "version": 0}
        connection.execute(sa.update(AskedCheck).where(AskedCheck.id == old.id).values(work=work))
    class_.server.owed.find()
    class_.server.owed.pay()
    assert len(asked_checks.waiting(db)) == many + 1
    held()
    assert soon(lambda: len(checks(db)) == many - 2)
    class_.server.owed.pay()
    assert soon(lambda: len(checks(db)) == many)
    assert "version 0" in shelf(db, "bo").last(ONE.name).error


def test_a_result_that_the_database_does_not_take_is_recorded_later(
    class_: Class, db: Database, held: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = class_.browser()

    def locked(*_: Any) -> bool:
        raise StoreError("the course is locked by another process")

    with monkeypatch.context() as m:
        m.setattr(asked_checks, "record", locked)
        m.setattr("retrompi.classroom.works.owed_checks.record", locked)
        job = class_.press(ann)
        held()
        assert soon(lambda: "labs-job-line" in (told := class_.post(ann, "labs-tick.n_intervals", **{"labs-job.data": job}))
                    and "recorded when the course's database takes it" in told["labs-job-line"]["children"])
        class_.server.owed.pay()
        assert checks(db) == []
    class_.server.owed.pay()
    assert len(checks(db)) == 1
    class_.server.owed.pay()
    assert len(checks(db)) == 1


def test_files_that_a_run_makes_are_kept_though_its_page_is_closed(class_: Class, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    from flask import g

    from retrompi.studio.labs.lab_session import Desk

    nine, mine = lab("9"), shelf(db)
    change(mine, nine, lambda w: seal(answer(w, nine, {t.id: t.choices[0] if t.choices else "3" for t in nine.predictions}), nine))
    monkeypatch.setattr("retrompi.studio.labs.lab_commands.run", studio_work.made)
    session = members.enter(db, mine.member.id, "test")
    with class_.server.app.server.test_request_context("/labs"):
        g.session = session
        desk = Desk(class_.resources)
        keys = [p.key for s in lab_text.steps(nine, mine.open(nine)) for p in s.pieces if p.form is not None and p.form.kind == "record"]
        desk.run("9", "", keys[0], {})
    assert soon(lambda: mine.open(nine).files.get("trace.tar.zst") == b"a trace")


def test_a_mark_stands_at_the_work_once_it_is_shown(db: Database) -> None:
    """In the points, at the task and after another check; not before the teacher shows the marks, and to nobody else."""
    mine, ann = shelf(db), members.find(db, "ann")["id"]
    mine.keep_check(ask(db), said(1))
    shelf(db, "bo").keep_check(ask(db, "bo"), said(1, student="bo"))
    explain = ONE.task("explain")
    given = {c.name: marks.GivenMark(c.points / 2, f"about {c.name}") for c in marks.criteria(explain)}
    given[marks.WHOLE] = marks.GivenMark(None, "good")
    marks.give(db, ONE, explain, ann, given, None)
    assert (mine.last(ONE.name).row["points"], mine.last(ONE.name).row["open"]) == (4.0, 2.0)
    marks.release(db, ONE.name, True)
    for number in (1, 2):
        row = mine.last(ONE.name).row
        task = next(t for t in row["tasks"] if t["task"] == "explain")
        assert (task["status"], task["points"], task["open"]) == ("marked", explain.points / 2, 0.0)
        assert all(g.comment in task["says"] for g in given.values())
        assert (row["points"], row["open"], row["checks"]) == (4.0 + explain.points / 2, 0.0, number)
        if number == 1:
            mine.keep_check(ask(db), said(2))
    assert shelf(db, "bo").last(ONE.name).row["open"] == 2.0
    shown = str(lab_page.result_parts(task))
    assert "marked by your teacher" in shown
    assert "good" in shown
