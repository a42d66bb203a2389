"""Starting a program's ranks, waiting for them, and cleaning up all their processes."""

from __future__ import annotations

import contextlib
import math
import os
import re
import resource
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from retrompi.base.signals import terminated_is_interrupted
from retrompi.measure.launch.execution import BackendError
from retrompi.sim.processes import end_with_parent
from retrompi.spec.declare.outcome import Outcome

__all__ = ["MOST_OUTPUT", "Ended", "cores", "ending", "first_error_line", "run", "told_signal", "whole_cores"]

MOST_OUTPUT = 1 << 20
"""Bytes of a program's output that are kept, at most."""
_MARK = "RETROMPI_JOB"  # in the environment of every process of a job, even after it was reparented
_GRACE = 2.0  # seconds that a launcher gets to end its ranks itself


@dataclass(frozen=True)
class Ended:
    """How a job ended: its launcher's exit code (below 0: the signal that killed it), its output, and its duration.

    ``timed_out``, ``too_large``: it was ended for its wall time or for its memory.
    """

    code: int
    output: str
    errors: str
    wall_s: float
    timed_out: bool
    too_large: bool = False


def cores() -> list[int]:
    """The processors (cores or hardware threads) that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def whole_cores(allowed: Sequence[int], folder: Path = Path("/sys/devices/system/cpu")) -> int:
    """The number of cores that the processors ``allowed`` belong to; each counts as one where the kernel does not report it."""
    siblings = set()
    for processor in allowed:
        try:
            siblings.add((folder / f"cpu{processor}" / "topology" / "thread_siblings_list").read_text(encoding="ascii").strip())
        except OSError:
            siblings.add(str(processor))
    return len(siblings)


def run(
    words: Sequence[str],
    environment: Mapping[str, str],
    timeout_s: float | None = None,
    cwd: str | None = None,
    memory_B: int | None = None,
) -> Ended:
    """Run a command to completion, for ``timeout_s`` seconds of wall time, or until its processes hold more than ``memory_B`` together.

    None of its processes survives in any case. Output goes to files: reading pipes would disturb the measurement. Raises BackendError when
    it cannot be started.
    """
    mark = uuid.uuid4().hex
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, terminated_is_interrupted():
        began = time.perf_counter()
        try:
            process = subprocess.Popen(
                list(words), env={**environment, _MARK: mark}, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd,
                start_new_session=True, preexec_fn=partial(end_with_parent, os.getpid(), signal.SIGTERM),  # a launcher then ends its ranks
            )
        except OSError as e:
            raise BackendError(f"{words[0]} cannot be run: {e.strerror or e}") from e
        timed_out = too_large = False
        try:
            if memory_B is not None:
                too_large = _outgrows(process, mark, memory_B, timeout_s)
            process.wait(0.0 if too_large else None if timeout_s is None else max(0.0, timeout_s - (time.perf_counter() - began)))
        except subprocess.TimeoutExpired:
            timed_out = not too_large
        finally:
            wall = time.perf_counter() - began
            _end(process, mark)
        return Ended(process.returncode, _text(out), _text(err), wall, timed_out, too_large)


def _outgrows(process: subprocess.Popen[bytes], mark: str, memory_B: int, timeout_s: float | None) -> bool:
    """Wait until the job has ended, its time is up, or its processes hold more than ``memory_B`` bytes; whether it was the last."""
    until = math.inf if timeout_s is None else time.monotonic() + timeout_s
    while process.poll() is None and time.monotonic() < until:
        if sum(map(_resident, _marked_processes(mark))) > memory_B:
            return True
        time.sleep(0.05)
    return False


def _resident(pid: int) -> int:
    """Bytes of memory that a process holds; 0 when it has gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


def _text(file: object) -> str:
    file.seek(0)  # type: ignore[attr-defined]
    data: bytes = file.read(MOST_OUTPUT + 1)  # type: ignore[attr-defined]
    text = data[:MOST_OUTPUT].decode("utf-8", "replace")
    return text + "\n… (more was written)\n" if len(data) > MOST_OUTPUT else text


def _end(process: subprocess.Popen[bytes], mark: str) -> None:
    """End the remaining processes of a job: the launcher is signalled first, since it knows its ranks on other machines too."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    for _ in range(50):  # a rank may be starting another process meanwhile
        left = _marked_processes(mark)
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _marked_processes(mark: str) -> list[int]:
    """Living processes with the job's mark in their environment."""
    needle = f"{_MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            # A zombie has no environment any more.
            if needle in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def told_signal(ended: Ended) -> int | None:
    """The signal that ended a rank, from the exit code or the launcher's output; None if there was none."""
    if found := re.search(r"\(signal (\d+)\)|exited on signal (\d+)", ended.errors + ended.output[-4000:]):
        return int(found[1] or found[2])
    if ended.code < 0:
        return -ended.code
    return ended.code - 128 if 128 < ended.code <= 128 + 64 else None


def ending(ended: Ended, aborted: bool = False) -> tuple[Outcome, str]:
    """(outcome, detail) of a job from its launcher's exit code and output; the caller, who knows the limit, adds a timeout's detail.

    ``aborted``: a rank reported that it called MPI_Abort.
    """
    if ended.timed_out:
        return Outcome.TIMEOUT, ""
    if aborted:
        return Outcome.ABORTED, f"MPI_Abort, exit code {ended.code}{first_error_line(ended)}"
    killed = told_signal(ended)
    if ended.code != 0 and killed is not None:
        try:
            name = signal.Signals(killed).name
        except ValueError:
            name = f"signal {killed}"
        return Outcome.KILLED, f"a rank was ended by {name}"
    return (Outcome.FAILED, f"exit code {ended.code}{first_error_line(ended)}") if ended.code != 0 else (Outcome.COMPLETED, "")


def first_error_line(ended: Ended) -> str:
    """": " and the first line on stderr that is a sentence, for the program's output precedes its launcher's; "" when there is none."""
    lines = [line for line in ended.errors.splitlines() if not line.startswith("retrompi smpi:")]
    if lines and lines[0].startswith("Traceback"):  # Python prints the error on the last line
        lines = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)] + lines
    lines = [line for line in lines if line.startswith("Fortran runtime error")] + lines
    for line in lines:
        text = line.strip()
        if re.search(r"[A-Za-z]{3}", text) and not text.startswith(("Primary job", "application called MPI_Abort")):
            return f": {text[:200]}"
    return ""
