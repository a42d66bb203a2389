"""Pausing jobs' processes, their priority and their memory. A job's process leads a process group
(`retrompi.studio.jobs.child_process`)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["cpu_s", "lower", "pause", "private_B", "resume"]

NICE = 10
"""Priority of long jobs: together with a new job on one processor, each gets about a tenth of it."""
_STOPS_WITHIN_S = 0.05


def pause(leader: int, safe: Callable[[], bool]) -> bool:
    """Pauses a process group and returns whether it did: not if it is somewhere else than in a simulation.

    A process that is stopped in the middle of a transaction would keep the store locked. So ``safe``, which reads what the process has
    noted about itself, is called after it has stopped: it cannot change any more.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGSTOP)
        until = time.monotonic() + _STOPS_WITHIN_S
        while (stopped := _state(leader) in "Tt") is False and time.monotonic() < until:
            time.sleep(0.0005)
        if stopped and safe():
            return True
        os.killpg(leader, signal.SIGCONT)
    return False


def resume(leader: int) -> None:
    """Continues a paused process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGCONT)


def cpu_s(pid: int) -> float:
    """Processor seconds of a process and of those of its children that have ended; 0 where the system does not report them."""
    try:
        values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]
        return sum(map(int, values)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return 0.0


def lower(leader: int) -> None:
    """Lowers the priority of a process group on the processors."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PGRP, leader, NICE)


def private_B(leaders: Iterable[int]) -> dict[int, int]:
    """Bytes of memory that the process groups of ``leaders`` do not share with others; 0 where the system does not report it."""
    found = dict.fromkeys(leaders, 0)
    for entry in Path("/proc").glob("[0-9]*") if found else ():
        with suppress(OSError, ValueError, IndexError):  # it has ended in the meantime
            group = int((entry / "stat").read_text().rpartition(")")[2].split()[2])
            if group in found:
                lines = (entry / "smaps_rollup").read_text().splitlines()
                found[group] += sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("Private_Dirty:", "Swap:")))
    return found


def _state(pid: int) -> str:
    """The letter of a process's state; where the system does not report it, T after a moment in which a signal arrives."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        time.sleep(0.005)
        return "T"
