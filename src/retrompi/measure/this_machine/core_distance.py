"""The current distance of two cores: the transfer of a cache line from one to the other, in nanoseconds.

On a virtual machine the hypervisor may put two virtual processors on one core's threads, on neighbouring cores, or far from each other,
and change that while a program runs. /proc does not show it, but messages through shared memory take several times as long. Therefore
every launch of a measurement is framed by this one; launches in another state than the rest are left out, counted and reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retrompi.measure.launch.stats import MOVED
from retrompi.measure.this_machine.bench import BenchRow, PairBench, two_ranks

__all__ = ["alike", "line_ns", "of"]


def of(rows: Iterable[BenchRow]) -> tuple[float, ...]:
    """The nanoseconds before and after a launch; () where none were reported (ranks of two hosts)."""
    return tuple(r.values[0] for r in rows if r.what == "state")


def alike(found: Sequence[float], reference: float) -> bool:
    """Whether a launch ran in the state of ``reference`` nanoseconds throughout, judged by the values before and after it."""
    return all(reference / MOVED <= ns <= reference * MOVED for ns in found)


def line_ns(family: str = "mpich", bench: PairBench | None = None) -> float:
    """Current nanoseconds of a cache-line transfer between this machine's first two cores; 0 if they share no memory. Takes 0.2 s.

    Raises BackendError where no MPI of ``family`` can be compiled and run.
    """
    one = bench or two_ranks(family)
    return max(of(one.run("state", rounds=1, quick=True)), default=0.0)
