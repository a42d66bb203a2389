"""What all processes that simulate have in common: how many there are, how they end, and what is said of that.

Three kinds use it: the server behind one thread's simulations (`retrompi.sim.worker`), the workers of a study
(`retrompi.studies.worker_pool`) and the jobs of the studio (`retrompi.studio.jobs`). Each leads a process group of its own: Ctrl-C
at a terminal is for the one who asked, who then ends the group, the simulation with it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress

__all__ = ["end_with_parent", "how_ended", "kill_group", "last_words", "processors"]

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def processors() -> int:
    """How many processors this process may use: so many simulations run side by side by default."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def end_with_parent(parent: int) -> None:
    """In a child: be ended when ``parent`` is, by whatever (Linux: prctl PR_SET_PDEATHSIG)."""
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it had died before
            os._exit(1)


def kill_group(leader: int) -> None:
    """End the process group of ``leader`` at once; nothing where it is gone."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def how_ended(code: int) -> str:
    """An exit code in words; below zero it is that of a signal, as `subprocess` and `os.waitstatus_to_exitcode` give it."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def last_words(code: int, said: bytes) -> str:
    """How a process ended and the last line of what it wrote to stderr."""
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    return f"{how_ended(code)}; last words: {lines[-1].strip()}" if lines else how_ended(code)
