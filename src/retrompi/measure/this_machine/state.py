"""How far apart two cores are just now: a cache line from one to the other, in nanoseconds.

On a virtual machine the hypervisor may put two virtual processors on one core's threads, on neighbouring cores, or far from each other, and
change that while a program runs. Nothing in /proc tells, but messages through shared memory take several times as long. So every launch of
a measurement is framed by this one, and what was measured in another state than the rest is left out, counted and said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retrompi.measure.this_machine.native import Bench, Row

__all__ = ["OTHER", "alike", "line_ns", "of"]

OTHER = 2.5
"""A line that takes so many times as long goes another way. Measured here: 43 to 84 ns beside each other, 200 ns apart."""


def of(rows: Iterable[Row]) -> tuple[float, ...]:
    """The nanoseconds before and after a launch; () where nothing was told (ranks of two hosts)."""
    return tuple(r.values[0] for r in rows if r.what == "state")


def alike(found: Sequence[float], reference: float) -> bool:
    """Whether a launch ran in the state of ``reference`` nanoseconds all the time, as far as its ends tell."""
    return all(reference / OTHER <= ns <= reference * OTHER for ns in found)


def line_ns(family: str = "mpich", bench: Bench | None = None) -> float:
    """Nanoseconds of a cache line between this machine's first two cores now; 0 where they share no memory. Takes 0.2 s.

    Raises BackendError where no MPI of ``family`` can be compiled and run.
    """
    from retrompi.measure.this_machine import native

    one = bench or native.bench(family)
    return max(of(one.run("state", rounds=1, quick=True)), default=0.0)
