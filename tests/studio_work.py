"""What the jobs of tests/test_studio.py do: functions of a module, which a job's process imports."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from retrompi.base.errors import UsageError


def echo(report: Any, value: Any) -> Any:
    report(1, 1, "said")
    return value


def count(report: Any, total: int, apart_s: float) -> int:
    """Reports each step."""
    for i in range(total):
        report(i, total, f"step {i}")
        time.sleep(apart_s)
    return total


def note(report: Any, file: str, word: str) -> str:
    """Writes its word at the end of a file when it begins."""
    with Path(file).open("a") as out:
        out.write(word + "\n")
    return word


def hang(report: Any, file: str) -> None:
    """Writes its process and that of a child, which both stay."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(file).write_text(f"{os.getpid()} {child.pid}")
    time.sleep(600)


def wait_for(report: Any, file: str, result: Any = "there") -> Any:
    """Ends when the file is there."""
    while not Path(file).exists():
        time.sleep(0.01)
    return result


def made(report: Any, *_: Any) -> dict[str, Any]:
    """Makes a file, as a form of a lab does."""
    return {"lines": [], "tables": [], "figures": {}, "files": {"trace.tar.zst": b"a trace".hex()}}


def refuse(report: Any) -> None:
    raise UsageError("this is\nnot possible")


def fail(report: Any) -> None:
    raise KeyError("secret/path/of/ours")


def abort(report: Any) -> None:
    os.abort()


def no_json(report: Any) -> Any:
    return {1, 2}


def nan(report: Any) -> float:
    return float("nan")


def say(report: Any, text: str) -> None:
    """Sends what no job of ours sends."""
    line = next(c.cell_contents for c in report.__closure__ if hasattr(c.cell_contents, "send_bytes"))
    line.send_bytes(text.encode())
    os._exit(3)


def large(report: Any, size: int) -> str:
    return "x" * size


def eat(report: Any, size: int) -> int:
    return len(bytearray(size))


def hold(report: Any, size: int) -> None:
    """Keeps so much memory."""
    kept = bytearray(os.urandom(1 << 20)) * (size >> 20)
    time.sleep(600)
    del kept


ENDLESS = "0 init\n0 send 1 0 1099511627776 6\n0 finalize\n1 init\n1 recv 0 0 1099511627776 6\n1 finalize\n"
"""A trace of 94 bytes whose one message of 1 TiB is simulated for hours."""


def endless(report: Any, file: str) -> Any:
    """Replays a trace as the studio's page does."""
    from retrompi.studio.anatomy.replay_job import perform

    asked = {"trace": "upload:an-upload-of-mine", "model": "wmpi", "platform": "nt-pair", "mode": "distributed", "set": ""}
    return perform(report, {**asked, "ranks": 2, "size": 1}, file, "endless")


def no_box(report: Any) -> str:
    """Why a job can run no student's program; empty if it can."""
    from retrompi.labs import sandbox

    return sandbox.missing()


def simulate_for_ever(report: Any) -> None:
    """Hours of simulation in 6 calls."""
    from retrompi.sim import simulate
    from retrompi.spec.question import Question, Replay
    from retrompi.traces import generate

    simulate.run(Question("wmpi", "nt-pair", Replay(generate.pingpong([512 << 20], 1)), "shared", ["wmpi.packet=1"]))
