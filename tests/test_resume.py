"""A study that somebody or something interrupts goes on where it was: nothing is lost, nothing is done twice, nothing is left running."""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cases import sampled
from postgres import Server
from refusals import refused
from study_runs import POINTS, Sweep, check_store, children, descendants, done, ended, lives, small, sweep, told, until, words

from retrompi.base.errors import StoreError
from retrompi.store import open_store
from retrompi.studies.execute.run import run_study
from retrompi.studies.execute.worker_pool import WorkerPool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
STORES = ["sqlite", "postgresql"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The rows of the study when nothing happens to it."""
    store = open_store(tmp_path_factory.mktemp("undisturbed") / "runs.db")
    run_study(store, small(), executor=WorkerPool(2))
    return check_store(store, small())


@pytest.fixture(params=STORES)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new store can be made."""
    if request.param == "sqlite":
        return str(tmp_path / "runs.db")
    server: Server = request.getfixturevalue("postgres")
    return server.database()


def resumed(location: str | Path) -> tuple[int, int]:
    """Starts the study again: (simulated, done before)."""
    run = run_study(open_store(location), small())
    return run.simulated, run.kept


def _workers(main: int) -> list[int]:
    """The pool's workers and what they simulate in."""
    return [p for p in descendants(main) if lives(p)]


@pytest.mark.parametrize("number", sampled([8, 20], 1))
def test_kills(number: int, tmp_path: Path, undisturbed: list[dict[str, Any]]) -> None:
    """Of the main process or of a worker, at moments that a seed chooses and whose effect nobody knows."""
    draw = random.Random(1998)
    kills = {"main": 0, "worker": 0}
    studies = 0
    while sum(kills.values()) < number:
        location = tmp_path / f"{studies}.db"
        studies += 1
        code = None
        while code is None:
            with Sweep(location, "--jobs", "2") as running:
                main, begun = running.process, done(location)
                while main.poll() is None and sum(kills.values()) < number:
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
    assert min(kills.values()) > number // 10, kills


@pytest.mark.parametrize(("executor", "number"), [("pool", signal.SIGINT), ("pool", signal.SIGTERM), ("dask", signal.SIGINT)])
def test_ctrl_c(executor: str, number: int, tmp_path: Path, undisturbed: list[dict[str, Any]]) -> None:
    if executor == "dask":
        pytest.importorskip("distributed", reason="distributed not installed")
    for attempt in range(5):  # on a busy machine what is to be interrupted may have ended before
        location = tmp_path / f"{attempt}.db"
        with Sweep(location, "--executor", executor, "--jobs", "2") as running:
            until(lambda at=location, main=running.process: done(at) > 3 or main.poll() is not None)  # type: ignore[misc]
            left = descendants(running.process.pid)
            with suppress(ProcessLookupError):
                os.killpg(running.process.pid, number)  # as a terminal does
            ended_with, out, err = running.end()
        if done(location) < POINTS:
            break
    assert left
    assert ended_with == 130, (ended_with, out, err)
    assert out == ""
    kept = done(location)
    lines = [line for line in err.splitlines() if line]  # click ends the terminal's line with ^C first
    assert lines == [f"{kept} of {POINTS} points are stored; run the same command again to continue", "error: interrupted"]
    ended(left)
    assert resumed(location) == (POINTS - kept, kept)
    assert check_store(open_store(location), small()) == undisturbed


def test_a_second_main_is_told_of_the_first(location: str) -> None:
    with Sweep(location, "--jobs", "1") as first:
        until(lambda: done(location) > 0)
        (worker,) = children(first.process.pid)
        os.kill(worker, signal.SIGSTOP)
        code, out, err = sweep(location)
        os.kill(worker, signal.SIGCONT)
        assert (code, out) == (2, "")
        assert err == (
            f"error: this study is being run by another process (process {first.process.pid} on {os.uname().nodename}); "
            "wait for it, or stop it\n"
        )
        assert first.end()[0] == 0
    assert done(location) == POINTS
    assert not list(Path(location).parent.glob("*.lock"))


def test_the_server_frees_the_lock_of_a_killed_main(postgres: Server, undisturbed: list[dict[str, Any]]) -> None:
    location = postgres.database()
    with Sweep(location, "--jobs", "1") as first:
        until(lambda: done(location) > 0)
        left = children(first.process.pid)
    ended(left)
    kept = done(location)
    assert resumed(location) == (POINTS - kept, kept)
    assert check_store(open_store(location), small()) == undisturbed


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
    kept = done(location)
    assert 3 < kept < POINTS
    assert resumed(location) == (POINTS - kept, kept)
    assert check_store(open_store(location), small()) == undisturbed


def test_a_full_disk(tmp_path: Path, undisturbed: list[dict[str, Any]]) -> None:
    """A file system of 400 KiB, which gets more room later."""
    apart = ["unshare", "--user", "--map-root-user", "--mount"]
    disk, script = tmp_path / "disk", tmp_path / "script"
    disk.mkdir()
    script.write_text(
        'set -u; mount -t tmpfs -o size=400k none "$1" || exit 99; shift\n'
        f'"$@"; echo "$?" >&2; mount -o remount,size=30m "{disk}"; "$@" && cp "{disk}/runs.db" "{tmp_path}"\n'
    )
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    command = [*apart, "sh", str(script), str(disk), *words(disk / "runs.db", "--jobs", "2")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if ran.returncode == 99:
        pytest.skip(f"a small file system cannot be mounted here: {ran.stderr.strip()}")
    assert ran.stderr == f"error: the store {disk}/runs.db has no room left: database or disk is full\n2\n"
    simulated, found = (int(n) for n in re.findall(r"(\d+) (?:simulated|found)", ran.stdout))
    assert found > 0
    assert simulated + found == POINTS
    assert check_store(open_store(tmp_path / "runs.db"), small()) == undisturbed


def test_a_file_that_may_not_grow(tmp_path: Path, undisturbed: list[dict[str, Any]]) -> None:
    """The kernel refuses to write further, wherever in SQLite's files that happens to be."""
    location = tmp_path / "runs.db"
    limit = 200_000

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    ran = subprocess.run(words(location, "--jobs", "2"), capture_output=True, text=True, check=False, timeout=300, preexec_fn=bounded)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: the store {location} ")
    assert ran.stderr.count("\n") == 1, ran.stderr
    kept = done(location)
    assert 0 < kept < POINTS
    assert resumed(location) == (POINTS - kept, kept)
    assert check_store(open_store(location), small()) == undisturbed


def test_the_lock_is_held_once(location: str) -> None:
    store = open_store(location)
    with store.study_lock("f" * 64):
        with refused(StoreError, f"store-busy | {os.getpid()}"), open_store(location).study_lock("f" * 64):
            pass
        with open_store(location).study_lock("0" * 64):
            pass
    with open_store(location).study_lock("f" * 64):
        pass


def test_rows_tell_of_runs(undisturbed: list[dict[str, Any]], tmp_path: Path) -> None:
    """What the comparisons above rest on: another study's rows are others."""
    from retrompi.studies.execute.design import from_command

    store = open_store(tmp_path / "runs.db")
    other = from_command("bf-wmpi-distributed", ["wmpi.header=24B"], [], ["trace.sizes=1KiB", "trace.reps=20"])
    run_study(store, other)
    (row,) = told(store, 1)
    assert row not in undisturbed
    assert row["points"]
