"""The cost of copying: caches, lines that another core has changed, and processors that wait for the same memory.

The state of a cache is not simulated. A copy is given, for either side, the bytes that were used between two uses of a line (its *reuse
distance*; each channel knows it from the buffers that a message goes through), and the cost follows from where such a line is found.

Sources: the rates and sizes are the platform's; the statistics of pages in a cache of an operating system that does not colour them are
those of Kessler and Hill (1992); the slowdown of processors at a shared memory is mean value analysis (Reiser and Lavenberg 1980), of
shares that were measured alone. The page *NAS* says how they were found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from retrompi.reference.values import PS, Values, picoseconds

__all__ = ["CopyCost", "CopySide", "copy_cost", "slowdown"]

LINE = 64
"""Bytes of a cache line."""


@dataclass(frozen=True)
class CopySide:
    """One side of a copy: ``near`` are the bytes that this core uses between two uses of a line, ``set`` those of all cores that use its
    second-level cache.
    ``held`` says who used the line last: this core (own), another one that read it (clean) or wrote it (dirty)."""

    near: float = 0.0
    set: float = 0.0
    held: str = "own"


@dataclass(frozen=True)
class CopyCost:
    """``core``: picoseconds with memory and bus to itself; ``memory``: the share of it (0 to 1) spent waiting for main memory; ``bus``:
    bytes that cross the front-side bus, on which copies of cores in one package wait for each other (`Host.claim_bus`)."""

    core: int = 0
    memory: float = 0.0
    bus: float = 0.0

    def times(self, copies: float) -> CopyCost:
        """So many copies of as many bytes, each through other buffers; a part of a copy counts as a part."""
        return CopyCost(int(copies * self.core), self.memory, copies * self.bus)


def _misses(host: Values, working_set: float) -> float:
    """The share of a working set's lines that are not in the second-level cache.

    Its pages fall on the cache's page colours at random. A colour holds as many pages as the cache has ways; one that gets more loses
    all of them when they are walked in order under LRU. So a page is lost if as many others as there are ways have its colour; how many
    have is about a Poisson number of mean ``load``, pages by colours (a page's size cancels).
    """
    load = working_set * host.l2_ways / host.l2
    term, below = math.exp(-load), 0.0
    for k in range(int(host.l2_ways)):
        below += term
        term *= load / (k + 1)
    return min(max(1 - below, 0.0), 1.0)


def copy_cost(host: Values, size: int, source: CopySide, target: CopySide, kin: str) -> CopyCost:
    """The cost of copying ``size`` bytes. ``kin``: what the two cores are to each other, the ``same`` one, two at one ``cache``, or two
    that only share a ``bus``.

    A byte read crosses the memory bus once. A byte written crosses it twice: its line is fetched first and written back later. The host's
    rates are bytes copied in a second: of a copy in a cache either side has a half, of one from memory to memory each crossing a third.
    A line that another core has read only (clean) and that a common cache has is like an own one.
    """
    if size <= 0:
        return CopyCost()
    time = memory = bus = 0.0
    for side, transfers in ((source, 1), (target, 2)):
        foreign = side.held != "own" and kin != "same"
        miss = _misses(host, side.set)
        missed = miss * (transfers / 3) / host.copy_mem
        if not foreign or (side.held == "clean" and kin == "cache"):
            if side.near <= host.l1:
                time += 0.5 / host.copy_l1
            else:
                time += (1 - miss) * 0.5 / host.copy_l2 + missed
                memory += missed
                bus += miss * transfers * size
            continue
        hit = 0.5 / host.copy_l2
        if kin == "bus":
            # The line crosses the bus once. A clean one comes from memory. A changed one comes out of the other core's cache and does not
            # wait for memory; nothing fetches it in advance, and a core has only so many of them under way (``line_bus``: picoseconds of
            # one line). Its way back to memory is counted with the side's misses.
            hit = 1.0 / 3 / host.copy_mem
            if side.held == "clean":
                memory += (1 - miss) * hit
            else:
                hit = max(hit, host.line_bus / PS / LINE / host.lines_in_flight)
            bus += (1 - miss) * size
        elif side.held == "dirty":
            hit = max(hit, host.line_shared / PS / LINE / host.lines_in_flight)
        time += (1 - miss) * hit + missed
        memory += missed
        bus += miss * transfers * size
    return CopyCost(picoseconds(size * time), memory / time, bus)


def slowdown(share: float, others: Sequence[float], streams: float) -> float:
    """How much longer than alone a processor takes that waits for memory for a ``share`` of its time, beside ``others`` with theirs.

    On its arrival at the memory it finds each of the others there with the probability of that one's share. The memory serves ``streams``
    at their full rate; more divide it. Many long shares would still get more than there is: the capacity of the memory bounds them.
    """
    total = sum(others)
    if share <= 0 or total <= 0 or len(others) + 1 <= streams:
        return 1.0
    # The expectation of max(1, (1 + N) / streams), N of the others being there: that of (1 + N) / streams, and for every N that leaves it
    # below 1 what it lacks, by the probability of that N (``number``).
    wait = (1 + total) / streams
    small = int(max(0.0, math.ceil(streams - 1)))
    number = [1.0] + [0.0] * (small - 1) if small else []
    for other in others:
        for n in reversed(range(small)):
            number[n] = number[n] * (1 - other) + (number[n - 1] * other if n > 0 else 0)
    for n in range(small):
        wait += number[n] * (1 - (1 + n) / streams)
    return max(1.0, 1 - share + share * wait, (share + total) / streams)
