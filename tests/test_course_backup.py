"""Backups of a course: whole or not at all, on SQLite and PostgreSQL and from one to the other, also when killed in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from postgres import Server, server  # noqa: F401  (fixture)

from retrompi.base.errors import InputError, RetrompiError, UsageError
from retrompi.classroom.course import members, settings
from retrompi.classroom.course.backup import backup, restore
from retrompi.classroom.course.class_list import Entry
from retrompi.classroom.course.database import Database
from retrompi.classroom.course.schema import Base, Usage
from retrompi.classroom.works.shelf import DatabaseShelf
from retrompi.labs.lab import lab
from retrompi.labs.work import answer, put
from retrompi.studio.jobs.resources import SessionMember


def made(where: str, people: int = 3) -> Database:
    """A course with works, files, a session and something used."""
    db = Database.open(where, new=True)
    entries = [Entry("lecturer", role="teacher"), *(Entry(f"s{i}", f"Stüdent {i} ☃") for i in range(people))]
    settings.new(db, "MPI", ["1", "9"], entries)
    one = lab("1")
    for row in members.members(db, "student"):
        shelf = DatabaseShelf(db, SessionMember(row["id"], row["name"], row["student"], "student"))
        work = shelf.save(answer(shelf.open(one), one, {"p-startup": "1 ms"}))
        shelf.save(put(work, "notes.txt", bytes(range(256)) * 40))
        members.enter(db, row["id"], "link")
    with db.transaction() as connection:
        row = {"member_id": 2, "day": datetime.now(UTC).date(), "runs": 3, "cpu_s": 0.1, "uploads": 3, "upload_B": 1 << 40}
        connection.execute(sa.insert(Usage), [row])
    return db


def rows(db: Database) -> dict[str, list[Any]]:
    with db.reading() as connection:
        queries = {t.name: sa.select(t).order_by(*t.primary_key.columns) for t in Base.metadata.sorted_tables}
        return {name: [tuple(r) for r in connection.execute(query)] for name, query in queries.items()}


def place(kind: str, server: Server, folder: Path, name: str) -> str:  # noqa: F811
    return server.database() if kind == "postgresql" else str(folder / name)


@pytest.mark.parametrize("before", ["sqlite", "postgresql"])
@pytest.mark.parametrize("after", ["sqlite", "postgresql"])
def test_what_is_restored_is_what_was_backed_up(before: str, after: str, server: Server, tmp_path: Path) -> None:  # noqa: F811
    db = made(place(before, server, tmp_path, "a.db"))
    counts = backup(db, tmp_path / "b.zip")
    assert counts["members"] == 4
    assert (tmp_path / "b.zip").stat().st_mode & 0o077 == 0
    where = place(after, server, tmp_path, "c.db")
    assert restore(tmp_path / "b.zip", where) == counts
    again = Database.open(where)
    assert rows(again) == rows(db)
    # It goes on from there: new rows get ids of their own.
    assert members.add(again, "new") not in {m["id"] for m in members.members(db)}
    with pytest.raises(RetrompiError, match="already"):
        restore(tmp_path / "b.zip", where)
    db.close()
    again.close()


def test_a_backup_while_students_work_is_of_one_moment(tmp_path: Path) -> None:
    db = made(str(tmp_path / "a.db"))
    one, person = lab("1"), members.members(db, "student")[0]
    shelf = DatabaseShelf(db, SessionMember(person["id"], person["name"], person["student"], "student"))
    ending = threading.Event()

    def write() -> None:
        number = 0
        while not ending.is_set():
            number += 1
            with db.transaction() as connection:  # the two always change together
                connection.execute(sa.text("UPDATE usage SET runs = :n, uploads = :n"), {"n": number})
            work = shelf.open(one)
            shelf.save(put(answer(work, one, {"p-half": f"{number} B"}), "notes.txt", str(number).encode()))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for i in range(6):
            backup(db, tmp_path / f"{i}.zip")
            restore(tmp_path / f"{i}.zip", str(tmp_path / f"{i}.db"))
            again = Database.open(tmp_path / f"{i}.db")
            with again.reading() as connection:
                runs, uploads = connection.execute(sa.text("SELECT runs, uploads FROM usage")).one()
                assert runs == uploads
            kept = DatabaseShelf(again, shelf.member).open(one)
            if "p-half" in kept.answers:
                assert kept.answers["p-half"] == f"{kept.files['notes.txt'].decode()} B"
    finally:
        ending.set()
        writer.join()


def run(*words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "retrompi.cli.main", "course", *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_killed_at_any_moment_there_is_a_whole_file_or_none(tmp_path: Path) -> None:
    db = made(str(tmp_path / "a.db"), people=4)
    with db.transaction() as connection:  # large enough that a kill hits the middle of it
        for i in range(24):
            row = {"work_id": 1, "name": f"big{i}", "content": os.urandom(400_000)}
            connection.execute(sa.insert(Base.metadata.tables["work_files"]), [row])
    whole = rows(db)
    began = time.monotonic()
    assert run("backup", str(tmp_path / "whole.zip"), "--database", str(tmp_path / "a.db")).wait() == 0
    long = time.monotonic() - began
    states = []
    for part in (0.3, 0.75, 0.95):  # the first hits it even if the measured one was slowed by its neighbours
        out, again = tmp_path / f"{part}.zip", tmp_path / f"{part}.db"
        writing = ("backup", str(out), "--database", str(tmp_path / "a.db"))
        for words in (writing, ("restore", str(tmp_path / "whole.zip"), "--database", str(again))):
            process = run(*words)
            time.sleep(long * part)
            process.send_signal(signal.SIGKILL)
            process.wait()
        if out.exists():
            restore(out, str(tmp_path / f"{part}-checked.db"))
            assert rows(Database.open(tmp_path / f"{part}-checked.db")) == whole
        if again.exists():
            assert rows(Database.open(again)) == whole
        states += [out.exists(), again.exists()]
    assert not all(states)  # some were hit
    assert rows(db) == whole
    restore(tmp_path / "whole.zip", str(tmp_path / "last.db"))  # what a kill left behind is in nobody's way
    assert rows(Database.open(tmp_path / "last.db")) == whole


def test_a_damaged_backup_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    db = made(str(tmp_path / "a.db"))
    backup(db, tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "b.zip") as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}

    def changed(**new: bytes) -> Path:
        file = tmp_path / "changed.zip"
        with zipfile.ZipFile(file, "w") as out:
            for name, content in {**parts, **{k.replace("__", "/").replace("_dot_", "."): v for k, v in new.items()}}.items():
                out.writestr(name, content)
        return file

    members_now = parts["tables/members.jsonl"]
    about = json.loads(parts["manifest.json"])
    about["tables"]["sqlite_master"] = {"rows": 0, "sha256": ""}
    damaged = [
        changed(tables__members_dot_jsonl=members_now.replace(b"student", b"teacher")),
        changed(tables__members_dot_jsonl=members_now[: len(members_now) // 2]),
        changed(manifest_dot_json=b"{}"),
        changed(manifest_dot_json=json.dumps(about).encode()),
    ]
    for number, file in enumerate(damaged):
        with pytest.raises(InputError):
            restore(file, str(tmp_path / f"r{number}.db"))
    data = bytearray((tmp_path / "b.zip").read_bytes())
    for at in range(200, len(data), len(data) // 12):
        (tmp_path / "bits.zip").write_bytes(bytes([*data[:at], data[at] ^ 0x55, *data[at + 1 :]]))
        try:
            restore(tmp_path / "bits.zip", str(tmp_path / f"bits{at}.db"))
        except InputError:
            assert not (tmp_path / f"bits{at}.db").exists()
        else:  # a bit that says nothing: a time in the zip's directory
            assert rows(Database.open(tmp_path / f"bits{at}.db")) == rows(db)
    (tmp_path / "text.zip").write_text("no zip")
    with pytest.raises(InputError, match="not a backup"):
        restore(tmp_path / "text.zip", str(tmp_path / "t.db"))
    with pytest.raises(InputError, match="No such file"):
        restore(tmp_path / "none.zip", str(tmp_path / "t.db"))
    with pytest.raises(UsageError, match="exists already"):
        restore(tmp_path / "b.zip", str(tmp_path / "a.db"))
    assert not [f for f in tmp_path.iterdir() if f.name.startswith(".")]
