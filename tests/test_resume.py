"""A study that somebody or something interrupts goes on where it was: nothing is lost, nothing is done twice, nothing is left running."""

from __future__ import annotations

import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from postgres import Server
from study_runs import POINTS, Sweep, check_store, children, descendants, done, ended, lives, small, sweep, told, until

from retrompi.errors import StoreError
from retrompi.store import open_store
from retrompi.studies.pool import Pool
from retrompi.studies.run import run_study

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
KILLS = 20
STORES = ["sqlite", "postgresql"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The rows of the study when nothing happens to it."""
    store = open_store(tmp_path_factory.mktemp("undisturbed") / "runs.db")
    run_study(store, small(), executor=Pool(2))
    return check_store(store, small())


@pytest.fixture(params=STORES)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new store can be made."""
    if request.param == "sqlite":
        return str(tmp_path / "runs.db")
    server: Server = request.getfixturevalue("postgres")
    return server.database()


def _workers(main: int) -> list[int]:
    """The pool's workers and what they simulate in."""
    return [p for p in descendants(main) if lives(p)]


def test_twenty_kills(tmp_path: Path, undisturbed: list[dict[str, Any]]) -> None:
    """Of the main process or of a worker, at moments that a seed chooses and whose effect nobody knows."""
    draw = random.Random(1998)
    kills = {"main": 0, "worker": 0}
    studies = 0
    while sum(kills.values()) < KILLS:
        location = tmp_path / f"{studies}.db"
        studies += 1
        code = None
        while code is None:
            with Sweep(location, "--jobs", "2") as running:
                main, begun = running.process, done(location)
                while main.poll() is None and sum(kills.values()) < KILLS:
                    wanted = begun + draw.choice((0, 1, 1, 2, 3, 5, 8))
                    until(lambda m=main, w=wanted, at=location: m.poll() is not None or done(at) >= w)  # type: ignore[misc]
                    time.sleep(draw.uniform(0, 0.05))
                    begun = done(location)
                    who = draw.choice(("main", "worker"))
                    left = _workers(main.pid)
                    if main.poll() is not None or (who == "worker" and not left):
                        continue
                    kills[who] += 1
                    os.kill(main.pid if who == "main" else draw.choice(left), signal.SIGKILL)
                    if who == "main":
                        main.wait()
                        ended(left)
                if main.poll() == -signal.SIGKILL:
                    continue
                code, _, err = running.end()
                assert (code, err) == (0, "")
        store = open_store(location)
        assert check_store(store, small()) == undisturbed
    assert min(kills.values()) > 2, kills


@pytest.mark.parametrize("executor", ["pool", "dask"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130)])
def test_ctrl_c(executor: str, number: int, code: int, tmp_path: Path, undisturbed: list[dict[str, Any]]) -> None:
    if executor == "dask":
        pytest.importorskip("distributed", reason="distributed not installed")
    location = tmp_path / "runs.db"
    with Sweep(location, "--executor", executor, "--jobs", "2") as running:
        until(lambda: done(location) > 3 or running.process.poll() is not None)
        left = descendants(running.process.pid)
        assert left
        os.killpg(running.process.pid, number)  # as a terminal does
        ended_with, out, err = running.end(20)
    assert ended_with == code, (ended_with, out, err)
    assert out == ""
    kept = done(location)
    assert err == f"{kept} of {POINTS} points are stored; the same command goes on from there\nerror: interrupted\n"
    ended(left)
    assert sweep(location)[0] == 0
    assert check_store(open_store(location), small()) == undisturbed


def test_a_second_main_is_told_of_the_first(location: str, undisturbed: list[dict[str, Any]]) -> None:
    with Sweep(location, "--jobs", "1") as first:
        until(lambda: done(location) > 0)
        os.kill(first.process.pid, signal.SIGSTOP)
        code, out, err = sweep(location)
        os.kill(first.process.pid, signal.SIGCONT)
        assert (code, out) == (2, "")
        assert err == (
            f"error: this study is being run by another process (process {first.process.pid} on {os.uname().nodename}); "
            "wait for it, or stop it\n"
        )
        assert first.end()[0] == 0
    assert check_store(open_store(location), small()) == undisturbed
    assert not list(Path(location).parent.glob("*.lock"))


def test_the_lock_of_a_killed_main_is_free(location: str) -> None:
    with Sweep(location, "--jobs", "1") as first:
        until(lambda: done(location) > 0)
        left = children(first.process.pid)
    ended(left)
    code, _, err = sweep(location)
    assert (code, err) == (0, "")
    check_store(open_store(location), small())


def test_postgresql_has_the_same_rows(postgres: Server, undisturbed: list[dict[str, Any]]) -> None:
    location = postgres.database()
    code, _, err = sweep(location, "--jobs", "2")
    assert (code, err) == (0, "")
    assert check_store(open_store(location), small()) == undisturbed


def test_a_server_that_restarts_is_one_line(postgres: Server, undisturbed: list[dict[str, Any]]) -> None:
    location = postgres.database()
    with Sweep(location, "--jobs", "2") as running:
        until(lambda: done(location) > 3)
        left = descendants(running.process.pid)
        postgres.stop()
        try:
            code, out, err = running.end()
        finally:
            postgres.start()
    assert (code, out) == (2, "")
    assert err.startswith("error: the store postgresql+psycopg://")
    assert err.count("\n") == 1, err
    ended(left)
    assert 3 < done(location) < POINTS
    assert sweep(location)[0] == 0
    assert check_store(open_store(location), small()) == undisturbed


def test_no_room_in_the_store(tmp_path: Path, undisturbed: list[dict[str, Any]]) -> None:
    """A database that may not grow stands for a full disk: SQLite says the same of both."""
    location = tmp_path / "runs.db"
    open_store(location)
    code = (
        "import sys, sqlite3\n"
        "from retrompi.store import database\n"
        "real = database._write_ahead\n"
        "def bounded(connection):\n"
        "    real(connection)\n"
        "    connection.execute('PRAGMA max_page_count = 110')\n"
        "database._write_ahead = bounded\n"
        "from retrompi.cli.main import main\n"
        "main()\n"
    )
    from study_runs import words

    command = words(location, "--jobs", "2")
    command[1:3] = ["-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"error: the store {location} has no room left: database or disk is full\n"
    kept = done(location)
    assert 0 < kept < POINTS
    with sqlite3.connect(location) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    code_, out, _ = sweep(location)
    assert code_ == 0
    assert f"{POINTS - kept} simulated, {kept} found" in out
    assert check_store(open_store(location), small()) == undisturbed


def test_a_file_that_may_not_grow(tmp_path: Path, undisturbed: list[dict[str, Any]]) -> None:
    """The kernel refuses to write further, wherever in SQLite's files that happens to be."""
    location = tmp_path / "runs.db"
    limit = 400_000

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    from study_runs import words

    ran = subprocess.run(words(location, "--jobs", "2"), capture_output=True, text=True, check=False, timeout=60, preexec_fn=bounded)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: the store {location} ")
    assert ran.stderr.count("\n") == 1, ran.stderr
    kept = done(location)
    assert 0 < kept < POINTS
    code, out, _ = sweep(location)
    assert code == 0
    assert f"{POINTS - kept} simulated, {kept} found" in out
    assert check_store(open_store(location), small()) == undisturbed


def test_the_lock_is_held_once(location: str) -> None:
    store = open_store(location)
    with store.study_lock("f" * 64):
        with pytest.raises(StoreError, match=rf"another process \(process {os.getpid()} on"), open_store(location).study_lock("f" * 64):
            pass
        with open_store(location).study_lock("0" * 64):
            pass
    with open_store(location).study_lock("f" * 64):
        pass


def test_rows_tell_of_runs(undisturbed: list[dict[str, Any]], tmp_path: Path) -> None:
    """What the comparisons above rest on: another study's rows are others."""
    from retrompi.studies.design import from_command

    store = open_store(tmp_path / "runs.db")
    other = from_command("bf-wmpi-distributed", ["wmpi.packet=2KiB"], [], ["trace.sizes=1KiB", "trace.reps=20"])
    run_study(store, other)
    (row,) = told(store, 1)
    assert row not in undisturbed
    assert row["points"]
