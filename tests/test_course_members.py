"""A course's database and its members: links used once, codes, sessions; on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from postgres import database_place, server  # noqa: F401  (fixtures)

from retrompi.base.errors import StoreError, UsageError
from retrompi.classroom.course import members
from retrompi.classroom.course.database import Database
from retrompi.classroom.course.schema import VERSION_TABLE, Course, Device, EntryLink


@pytest.fixture
def db(database_place: str) -> Iterator[Database]:  # noqa: F811
    made = Database.open(database_place, new=True)
    with made.transaction() as connection:
        row = {"id": 1, "name": "MPI", "created": datetime.now(UTC), "code": "falcon-7", "settings": {}}
        connection.execute(sa.insert(Course), [row])
    yield made
    made.close()


def test_a_link_lets_one_browser_in_once(db: Database) -> None:
    ann = members.add(db, "ann", name="Ann Bee")
    secret = members.link_for(db, ann)
    assert members.of_link(db, secret).name == "Ann Bee"

    def use(_: int) -> str | None:
        try:
            return members.join(db, secret)
        except members.EntryRefused:
            return None

    with ThreadPoolExecutor(6) as pool:
        sessions = [s for s in pool.map(use, range(6)) if s]
    assert len(sessions) == 1
    found = members.by_session(db, sessions[0])
    assert found is not None
    assert (found.id, found.student, found.role, found.teaches) == (ann, "ann", "student", False)
    with pytest.raises(members.EntryRefused, match="used already"):
        members.of_link(db, secret)
    with db.reading() as connection:  # what the database holds lets nobody in
        held = str(connection.execute(sa.select(EntryLink.__table__)).all()) + str(connection.execute(sa.select(Device.__table__)).all())
    assert secret not in held
    assert sessions[0] not in held


def test_a_new_link_replaces_the_unused_one_and_an_old_one_ends(db: Database) -> None:
    ann = members.add(db, "ann")
    first = members.link_for(db, ann)
    second = members.link_for(db, ann)
    with pytest.raises(members.EntryRefused, match="not known"):
        members.join(db, first)
    assert members.join(db, second)
    ended = members.link_for(db, ann, days=-1)
    with pytest.raises(members.EntryRefused, match="too old"):
        members.join(db, ended)


def test_a_further_device_comes_in_by_a_code_of_ten_minutes(db: Database) -> None:
    ann = members.add(db, "ann")
    code = members.code_for(db, ann)
    session = members.join(db, f" {code.upper()} ", kind="device")
    assert members.by_session(db, session) is not None
    with pytest.raises(members.EntryRefused):
        members.join(db, code, kind="device")
    late = members.code_for(db, ann)
    with db.transaction() as connection:
        connection.execute(sa.update(EntryLink).where(EntryLink.used.is_(None)).values(expires=datetime.now(UTC) - timedelta(seconds=1)))
    with pytest.raises(members.EntryRefused, match="too old"):
        members.join(db, late, kind="device")
    with pytest.raises(members.EntryRefused):  # a code is no link
        members.join(db, members.code_for(db, ann))


def test_who_is_removed_or_signed_out_is_a_stranger(db: Database) -> None:
    ann, bo = members.add(db, "ann"), members.add(db, "bo")
    ours, theirs = members.enter(db, ann, "link"), members.enter(db, bo, "link")
    link = members.link_for(db, ann)
    members.sign_out(db, ann)
    assert members.by_session(db, ours) is None
    with pytest.raises(members.EntryRefused):
        members.join(db, link)
    assert members.by_session(db, theirs) is not None
    members.remove(db, bo)
    assert members.by_session(db, theirs) is None
    assert [m["student"] for m in members.members(db)] == ["ann"]


def test_ids_that_draw_the_same_numbers_are_one_person(db: Database) -> None:
    members.add(db, "Ann  Bee")
    with pytest.raises(UsageError, match="'Ann Bee' already"):
        members.add(db, "ann bee")
    with pytest.raises(UsageError, match="did you mean 'student'"):
        members.add(db, "bo", role="studnet")
    with pytest.raises(UsageError, match="did you mean 'Ann Bee'"):
        members.find(db, "an bee")


def test_a_class_code_enrols_new_people_only_and_not_more_than_agreed(db: Database) -> None:
    members.add(db, "ann")
    session = members.enrol(db, " Falcon-7", "bo", "Bo", 2)
    found = members.by_session(db, session)
    assert found is not None
    assert found.role == "student"
    with pytest.raises(UsageError, match="already"):
        members.enrol(db, "falcon-7", "ann", "", 9)
    with pytest.raises(members.EntryRefused, match="not the code"):
        members.enrol(db, "falcon", "cy", "", 9)
    with pytest.raises(members.EntryRefused, match="2 members"):
        members.enrol(db, "falcon-7", "cy", "", 2)


def test_a_member_has_a_bounded_number_of_browsers(db: Database) -> None:
    ann = members.add(db, "ann")
    sessions = [members.enter(db, ann, "link") for _ in range(members.MOST_DEVICES + 2)]
    assert sum(members.by_session(db, s) is not None for s in sessions) == members.MOST_DEVICES
    assert members.by_session(db, sessions[-1]) is not None


def test_a_database_of_something_else_or_a_newer_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no course at"):
        Database.open(tmp_path / "c.db")
    foreign = tmp_path / "f.db"
    with sa.create_engine(f"sqlite:///{foreign}").begin() as connection:
        connection.execute(sa.text("CREATE TABLE recipes (x INTEGER)"))
    with pytest.raises(StoreError, match="something else"):
        Database.open(foreign)
    made = Database.open(tmp_path / "c.db", new=True)
    assert (tmp_path / "c.db").stat().st_mode & 0o077 == 0
    with pytest.raises(UsageError, match="exists already"):
        Database.open(tmp_path / "c.db", new=True)
    with made.transaction() as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(StoreError, match="newer retrompi"):
        Database.open(tmp_path / "c.db")
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at\n" * 100)
    with pytest.raises(StoreError, match="not a course's database"):
        Database.open(tmp_path / "text.db")
