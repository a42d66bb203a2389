"""How far apart two cores are just now: a cache line from one to the other, in nanoseconds.

On a virtual machine the hypervisor may put two virtual processors on one core's threads, on neighbouring cores, or far from each other, and
change that while a program runs. Nothing in /proc tells, but messages through shared memory take several times as long. So every launch of
a measurement is framed by this one, and what was measured in another state than the rest is left out, counted and said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retrompi.measure.launch.stats import MOVED
from retrompi.measure.this_machine.bench import Bench, Row, two_ranks

__all__ = ["alike", "line_ns", "of"]


def of(rows: Iterable[Row]) -> tuple[float, ...]:
    """The nanoseconds before and after a launch; () where nothing was told (ranks of two hosts)."""
    return tuple(r.values[0] for r in rows if r.what == "state")


def alike(found: Sequence[float], reference: float) -> bool:
    """Whether a launch ran in the state of ``reference`` nanoseconds all the time, as far as its ends tell."""
    return all(reference / MOVED <= ns <= reference * MOVED for ns in found)


def line_ns(family: str = "mpich", bench: Bench | None = None) -> float:
    """Nanoseconds of a cache line between this machine's first two cores now; 0 where they share no memory. Takes 0.2 s.

    Raises BackendError where no MPI of ``family`` can be compiled and run.
    """
    one = bench or two_ranks(family)
    return max(of(one.run("state", rounds=1, quick=True)), default=0.0)
