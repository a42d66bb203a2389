"""What ``make setup`` says and installs: packaging/stage.py, needs.py and constraints.txt."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGE = [sys.executable, str(ROOT / "packaging/stage.py"), "compiling"]
SLOW = "for i in 1 2 3; do echo \"[$i/3] Building x.o\"; sleep 0.6; done"


def in_a_log(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*STAGE, "sh", "-c", script], capture_output=True, text=True, check=False)


def test_a_stage_is_one_line_in_a_log() -> None:
    got = in_a_log(SLOW)
    assert (got.returncode, got.stderr) == (0, "")
    assert re.fullmatch(r"compiling: \d+ s\n", got.stdout)


def test_a_long_stage_says_in_a_log_how_far_it_is(tmp_path: Path) -> None:
    quicker = tmp_path / "stage.py"
    text = (ROOT / "packaging/stage.py").read_text(encoding="utf-8")
    assert text.count("_TOLD_EVERY_S = 20.0") == 1
    quicker.write_text(text.replace("_TOLD_EVERY_S = 20.0", "_TOLD_EVERY_S = 1.2"), encoding="utf-8")
    got = subprocess.run([sys.executable, quicker, "compiling", "sh", "-c", SLOW], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"compiling \.\.\.\n(  \d+ s, [123] of 3\n)+compiling: \d+ s\n", got.stdout)


def test_a_terminal_shows_how_far_it_is() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen([*STAGE, "sh", "-c", SLOW], stdout=theirs) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            said += piece
    os.close(ours)
    assert process.returncode == 0
    assert re.search(rb"compiling: \d+ s, [23] of 3", said)
    assert b"Building" not in said


def test_a_failed_stage_shows_what_was_said_and_passes_the_exit_code_on() -> None:
    got = in_a_log("echo the reason; exit 7")
    assert got.returncode == 7
    assert "compiling: failed after" in got.stdout
    assert got.stderr == "the reason\n"


def test_a_stage_with_nothing_to_do_is_not_mentioned() -> None:
    got = subprocess.run([*STAGE, "true"], capture_output=True, text=True, check=True)
    assert got.stdout + got.stderr == ""


def test_everything_that_set_up_installs_has_a_version() -> None:
    pins = re.findall(r"^([\w.-]+)==", (ROOT / "packaging/constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    known = {re.sub(r"[-_.]+", "-", name).lower() for name in pins}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for arguments in ([], ["build"], *([extra] for extra in extras)):
        told = subprocess.run([sys.executable, ROOT / "packaging/needs.py", *arguments], capture_output=True, text=True, check=True).stdout
        names = {re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", line)[0]).lower() for line in told.splitlines()}  # type: ignore[index]
        assert names
        assert names <= known, f"make newest: {names - known} have no version"
