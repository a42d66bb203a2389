"""Common functions of simulating processes: their number, their termination, and messages about it.

Three kinds of processes use them: the server behind one thread's simulations (`retrompi.sim.worker`), the workers of a study
(`retrompi.studies.execute.worker_pool`) and the jobs of the studio (`retrompi.studio.jobs.queue`). Each leads its own process group: Ctrl-C
at a terminal reaches only the parent, which then ends the group and with it the simulation.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["end_with_parent", "end_with_pipe", "how_ended", "kill_group", "last_words", "processors"]

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def processors() -> int:
    """Number of processors available to this process; the default number of concurrent simulations."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def end_with_parent(parent: int, by: int = signal.SIGKILL) -> None:
    """In a child: receive ``by`` when ``parent`` dies, for whatever reason (Linux: prctl PR_SET_PDEATHSIG; no effect elsewhere).

    For the kernel the parent is the thread that started the child: only for children that do not outlive that thread.
    """
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, by)
        if os.getppid() != parent:  # the parent died before the call
            os._exit(1)


@contextmanager
def end_with_pipe(pipe: int) -> Iterator[None]:
    """While active, this process dies when the last writer of ``pipe`` closes it, whichever thread of whom that is.

    The kernel's signal (SIGIO) needs no interpreter: it acts while the engine computes. Data would raise it too: nobody may write then.
    """
    before = fcntl.fcntl(pipe, fcntl.F_GETFL)
    signal.signal(signal.SIGIO, signal.SIG_DFL)  # a process may inherit that it is ignored
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETFL, before | os.O_ASYNC)
    try:
        gone = select.poll()
        gone.register(pipe, 0)
        if gone.poll(0):  # closed before the call
            os._exit(1)
        yield
    finally:
        fcntl.fcntl(pipe, fcntl.F_SETFL, before)


def kill_group(leader: int) -> None:
    """Kill the process group of ``leader``; no effect if it no longer exists."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def how_ended(code: int) -> str:
    """An exit code as text; negative for a signal, as in `subprocess` and `os.waitstatus_to_exitcode`."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def last_words(code: int, said: bytes) -> str:
    """How a process ended, and the last line that it wrote to stderr."""
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    return f"{how_ended(code)}; last words: {lines[-1].strip()}" if lines else how_ended(code)
