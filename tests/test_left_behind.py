"""Commands that are ended from outside, in the middle of a simulation without end: no process is left, and nothing stored is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from study_runs import children, descendants, lives, until

from retrompi.store import open_store

ENDLESS = ("-m", "wmpi", "--mode", "shared", "--sizes", "512MiB", "--reps", "1", "--set", "wmpi.packet=1")
"""Hours of simulation in 6 calls."""
COMMANDS = {
    "in the server": ("pingpong", *ENDLESS),
    "in a fork of the server": ("pingpong", *ENDLESS, "--wall-limit", "9999s"),
    "in a worker": ("sweep", "bf-wmpi-shared", "--vary", "seed=1..2", "-j", "1", "--set", "trace.sizes=512MiB", "--set", "trace.reps=1",
                    "--set", "wmpi.packet=1"),
}
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL)


def _works(pid: int) -> bool:
    """Whether a process has computed for longer than it takes to start."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11]) > 1.5 * os.sysconf("SC_CLK_TCK")
    except FileNotFoundError:
        return False


def _begin(tmp_path: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "retrompi.cli.main", "--store", str(tmp_path / "runs.db"), *words], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}, process_group=0,
    )


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("where", COMMANDS)
def test_nothing_is_left_of_a_command_that_is_ended(where: str, number: signal.Signals, tmp_path: Path) -> None:
    stored = _begin(tmp_path, "pingpong", "-m", "wmpi", "--mode", "shared", "--sizes", "1KiB", "--reps", "2")
    assert stored.communicate(timeout=300)[1] == ""
    process = _begin(tmp_path, *COMMANDS[where])
    begun: list[int] = []
    try:
        until(lambda: process.poll() is not None or any(_works(pid) for pid in descendants(process.pid)), 60)
        begun = descendants(process.pid)
        process.send_signal(number)
        _, said = process.communicate(timeout=300)
        until(lambda: not [pid for pid in begun if lives(pid)], 10)  # within milliseconds, but the machine may be busy
    finally:
        for pid in [process.pid, *begun]:
            if lives(pid):
                os.kill(pid, signal.SIGKILL)
    if number == signal.SIGKILL:
        assert (process.returncode, said) == (-signal.SIGKILL, "")
    else:
        assert process.returncode == 130
        assert said.splitlines()[-1] == "error: interrupted"
        assert "Traceback" not in said
    assert [run["model"] for run in open_store(tmp_path / "runs.db").runs()] == ["wmpi"]
    assert not list(tmp_path.glob("retrompi-*"))  # temporary traces


def test_a_command_that_ignores_hang_ups_goes_on(tmp_path: Path) -> None:
    """As one that was started by nohup."""
    process = subprocess.Popen(
        ["nohup", sys.executable, "-m", "retrompi.cli.main", "--store", str(tmp_path / "runs.db"), *COMMANDS["in the server"]],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    until(lambda: process.poll() is not None or any(_works(pid) for pid in descendants(process.pid)), 60)
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=300)[1].splitlines()[-1] == "error: interrupted"
    assert process.returncode == 130


@pytest.mark.parametrize("paused", [False, True])
def test_nothing_is_left_of_a_studio_that_is_killed(paused: bool) -> None:
    """Neither its jobs, also those that are paused, nor the process that starts them."""
    code = ("import time, studio_work; from retrompi.studio.jobs.queue import Jobs; "
            "jobs = Jobs(); jobs.submit('session', 'title', studio_work.simulate_for_ever); time.sleep(600)")
    process = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parent)

    def job() -> int:
        """The process of the job, once it or its child simulates; its parent is the process that starts jobs."""
        jobs = (pid for child in children(process.pid) for pid in children(child))
        return next((pid for pid in jobs if any(map(_works, (pid, *descendants(pid))))), 0)

    until(lambda: process.poll() is not None or job(), 60)
    begun = descendants(process.pid)
    try:
        if paused:
            os.killpg(job(), signal.SIGSTOP)
        process.kill()
        process.wait()
        until(lambda: not [pid for pid in begun if lives(pid)], 10)
    finally:
        for pid in begun:
            if lives(pid):
                os.kill(pid, signal.SIGKILL)
