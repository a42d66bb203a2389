"""This machine and its load: processor, cores, run queue, stolen time, a fixed piece of work (Linux)."""

from __future__ import annotations

import hashlib
import os
import platform
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from retrompi.measure.launch.execution import NativeMachine
from retrompi.measure.launch.mpi_job import cores

__all__ = ["CpuTimes", "elsewhere", "machine", "probe", "wait_until_quiet", "waiting"]

_WORK = bytes(256 << 10)
_PROBES = 12


def _cpu() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def waiting() -> float:
    """Other processes that are runnable now; 0 where the kernel does not report it."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
        running = next(int(line.split()[1]) for line in lines if line.startswith("procs_running"))
        return float(max(0, running - 1))
    return 0.0


def machine() -> NativeMachine:
    """A description of this machine and its current load."""
    return NativeMachine(platform.node() or "unknown", _cpu(), len(cores()), waiting())


def probe() -> list[float]:
    """Seconds of a fixed piece of work (a hash of 256 KiB), several times on each core: interference makes some of them longer."""
    allowed = cores()
    out = []
    try:
        for core in allowed:
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(0, {core})
            for _ in range(_PROBES):
                began = time.perf_counter()
                hashlib.sha256(_WORK).digest()
                out.append(time.perf_counter() - began)
    finally:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, allowed)
    return out


@dataclass(frozen=True)
class CpuTimes:
    """Accumulated times, seconds summed over the machine's cores: ``total``, ``busy`` and ``steal``; ``ours``: of this process and its
    terminated children."""

    total: float
    busy: float
    steal: float
    ours: float

    @staticmethod
    def now() -> CpuTimes:
        """The current counters; zeros where the kernel does not report them."""
        mine = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        ours = sum(u.ru_utime + u.ru_stime for u in mine)
        try:
            fields = [int(v) for v in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]]
        except (OSError, ValueError, IndexError):
            return CpuTimes(0.0, 0.0, 0.0, ours)
        fields += [0] * (8 - len(fields))
        user, nice, system, idle, iowait, irq, soft, steal = (v / os.sysconf("SC_CLK_TCK") for v in fields)
        busy = user + nice + system + irq + soft
        return CpuTimes(busy + idle + iowait + steal, busy, steal, ours)


def elsewhere(before: CpuTimes, after: CpuTimes) -> float:
    """Share (0..1) of the cores' time between two readings that was stolen or used by others; 0 if too little time passed to resolve it.

    The kernel counts in ticks of 10 ms, so an interval of less than half a second summed over the cores is not meaningful.
    """
    total = after.total - before.total
    if total < 0.5:
        return 0.0
    others = (after.busy - before.busy) - (after.ours - before.ours)
    share = (after.steal - before.steal + max(0.0, others)) / total
    return min(max(share, 0.0), 1.0)


def wait_until_quiet(limit_s: float, report: Callable[[str], None] = lambda text: None) -> bool:
    """Wait until other processes leave the machine idle for half a second, at most ``limit_s``; returns whether they did."""
    until = time.monotonic() + limit_s
    while True:
        before, seen = CpuTimes.now(), []
        for _ in range(10):
            time.sleep(0.05)
            seen.append(waiting())
        if sum(seen) / len(seen) < 0.2 and elsewhere(before, CpuTimes.now()) < 0.05:
            return True
        if time.monotonic() >= until:
            return False
        report("waiting for the machine to come to rest")
