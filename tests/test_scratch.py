"""Temporary folders: only their owner enters them, and one left by a killed process is removed by the next start. Files that never end."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusals import agrees

from retrompi.base import files, scratch

HOLDS = "import sys, time; from retrompi.base import scratch\nwith scratch.folder('test') as f: print(f, flush=True); time.sleep(60)"


@pytest.fixture
def own_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files that nobody else uses."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr("tempfile.tempdir", None)
    scratch._sweep.cache_clear()
    return place


def _started(place: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(place)})
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_folder_is_its_owner_s_alone_and_goes_with_the_body(own_tmp: Path) -> None:
    with scratch.folder("test") as place:
        assert place.parent == own_tmp
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        (place / "inner").mkdir()
        (place / "inner" / "x").touch()
    assert list(own_tmp.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next_and_nothing_else(own_tmp: Path) -> None:
    killed, left = _started(own_tmp)
    running, used = _started(own_tmp)
    (left / "deep").mkdir()
    (left / "deep" / "x").touch()
    (own_tmp / "retrompi-mine").mkdir()  # not made by `folder`: no lock in it
    (own_tmp / "retrompi-link").symlink_to(used)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    with scratch.folder("next") as now:
        assert {p.name for p in own_tmp.iterdir()} == {used.name, now.name, "retrompi-mine", "retrompi-link"}
    running.terminate()
    running.wait()


def test_a_studio_that_was_killed_leaves_nothing_for_ever(own_tmp: Path) -> None:
    code = ("import time; from retrompi.studio.jobs.queue import Jobs; from retrompi.studio.jobs.resources import Resources\n"
            "r = Resources(Jobs())\n"
            "print(r.folder, flush=True); time.sleep(60)")
    env = {**os.environ, "TMPDIR": str(own_tmp)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=env, process_group=0) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert folder.is_dir()
        os.killpg(process.pid, signal.SIGKILL)
    until = time.monotonic() + 300
    while folder.exists() and time.monotonic() < until:  # its fork server may hold the lock for a moment longer
        scratch.remove_left_over()
        time.sleep(0.05)
    assert not folder.exists()


@pytest.fixture
def odd(tmp_path: Path) -> list[Path]:
    """A named pipe without a writer, a socket, a device, under names of every kind."""
    made = []
    for ending in (".toml", ".zip", ".db", ".ti", ""):
        os.mkfifo(tmp_path / f"pipe{ending}")
        with socket.socket(socket.AF_UNIX) as line:
            line.bind(str(tmp_path / f"s{ending}"))
        (tmp_path / f"zero{ending}").symlink_to("/dev/zero")
        made += [tmp_path / f"{name}{ending}" for name in ("pipe", "s", "zero")]
    return made


def test_nothing_but_a_regular_file_is_opened(odd: list[Path], tmp_path: Path) -> None:
    for path in odd:
        with pytest.raises(OSError, match=r"not a file|No such device"):
            files.open_regular(path)
    (tmp_path / "x").write_bytes(b"a\r\nb")
    assert files.read_text(tmp_path / "x") == "a\nb"


@pytest.mark.parametrize("words", [
    ("--store", "{}.db", "runs", "list"), ("--store", "{}.db", "pingpong", "-m", "wmpi"), ("--store", "sqlite:///{}.db", "runs", "list"),
    ("study", "run", "{}.zip"), ("study", "unpack", "{}.zip", "out"), ("study", "run", "{}.toml"), ("sweep", "{}.toml"),
    ("scenarios", "show", "{}.toml"), ("platforms", "show", "{}.toml"), ("pingpong", "-m", "wmpi", "-p", "{}.toml"),
    ("pingpong", "-m", "{}"), ("lab", "check", "{}"), ("lab", "collect", "{}.zip"),
])
def test_a_file_that_would_never_end_is_one_line(
    words: tuple[str, ...], odd: list[Path], retrompi: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert odd
    monkeypatch.chdir(tmp_path)
    for name in ("pipe", "s", "zero"):
        done = retrompi(*(w.format(tmp_path / name) for w in words))
        assert done.code in (1, 2), done.err
        assert "internal error" not in done.err
        if done.code == 2:
            assert done.err.count("error:") == 1


def test_a_pipe_beside_a_model_is_one_line(retrompi: Callable[..., Any], tmp_path: Path) -> None:
    from test_users_model import PLAIN

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text(PLAIN)
    os.mkfifo(tmp_path / "mine" / "fit.toml")
    agrees(retrompi("pingpong", "-m", str(tmp_path / "mine")), "unreadable-file | fit.toml | named pipe")
