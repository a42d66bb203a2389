"""Frames of other programs on the same network: at a constant rate, at random, or in bursts.

A frame that sets out from a host of the job is work of its kernel (`Host.kernel`), and so is one that arrives there (interrupt and
protocol stack); it crosses cards and links as all do. Of the other machines there is only the card's place on the network. At most 256
frames of a source are between where they are made and the receiver's card; one more is dropped. Source: docs/networks.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from retrompi.reference.values import Values, picoseconds

__all__ = ["CrossTraffic"]

CONSTANT, RANDOM, BURSTS = range(3)
QUEUE = 256


class TrafficSource:
    """One flow of frames, from ``source`` to ``target`` (places of the network, the job's hosts first; -1: drawn for each frame).

    ``rate`` (B/s) and ``size`` (B) count headers. The first frame comes within one mean gap. At random: the gaps after it are
    exponentially distributed. In bursts: so are the lengths of the periods with and without frames, of mean ``on`` and ``off``, the first
    of which has frames; within it gaps are equal, and the rate is that of both periods together.
    """

    def __init__(self, traffic: CrossTraffic, row: Any, random: Any) -> None:
        self.traffic, self.loop, self.random = traffic, traffic.job.loop, random
        self.source, self.target, rate, self.size, self.law, on, off = row
        self.gap = max(1, picoseconds(self.size / rate))
        self.on, self.off = picoseconds(on), picoseconds(off)
        self.waiting = 0
        self.count = {"frames": 0, "arrived": 0, "bytes": 0, "dropped": 0, "lost": 0}
        self.on_left = self._draw(self.on) if self.law == BURSTS else 0
        self._plan(int(random.uniform() * self.gap))

    def _draw(self, mean: int) -> int:
        return int(-math.log1p(-self.random.uniform()) * float(mean)) + 1

    def _plan(self, gap: int) -> None:
        at = self.loop.now
        if self.law == BURSTS:
            gap = int(float(gap) * float(self.on) / float(self.on + self.off))
            while gap > self.on_left:
                gap -= self.on_left
                at += self.on_left + self._draw(self.off)
                self.on_left = self._draw(self.on)
            self.on_left -= gap
        self.loop.schedule(at + max(gap, 1), self._comes, passive=True)

    def _comes(self) -> None:
        self.count["frames"] += 1
        if self.waiting < QUEUE:
            self.waiting += 1
            self.traffic.send(self, *self._ends())
        else:
            self.count["dropped"] += 1
        self._plan(self._draw(self.gap) if self.law == RANDOM else self.gap)

    def _ends(self) -> tuple[int, int]:
        n, source, target = len(self.traffic.places), self.source, self.target
        if source < 0:
            source = self.random.next() % (n if target < 0 else n - 1)
            source += 0 <= target <= source
        if target < 0:
            target = (source + 1 + self.random.next() % (n - 1)) % n
        return source, target

    def count_arrival(self) -> None:
        """A frame has come to its card."""
        self.waiting -= 1
        self.count["arrived"] += 1
        self.count["bytes"] += self.size

    def count_loss(self) -> None:
        """A frame has been lost on its way."""
        self.waiting -= 1
        self.count["lost"] += 1


class CrossTraffic:
    """All flows beside a job."""

    def __init__(self, job: Any, rows: list[Any], link: Values, places: list[int], random: Callable[[int], Any]) -> None:
        self.job, self.places, self.rails, self.overhead = job, places, link.rails, link.frame_overhead
        self.sources: list[TrafficSource] = []
        for number, row in enumerate(rows, 1):  # one after another: each begins at a time of its own
            self.sources.append(TrafficSource(self, row, random(0x7472616666696B ^ 0x9E3779B97F4A7C15 * number % (1 << 64))))

    def send(self, source: TrafficSource, a: int, b: int) -> None:
        """A frame of a source from one place to another."""
        job, net = self.job, self.job.net
        rail = (self.places[a] ^ self.places[b]) % self.rails
        size = source.size

        def leaves() -> None:
            job.loop.schedule(net.cross(True, a, rail, size), sets_out, passive=True)

        def sets_out() -> None:
            ends = a * self.rails + rail, b * self.rails + rail
            net.wire.send(job.loop.now, *ends, size, comes, source.count_loss, of_others=True)

        def comes() -> None:
            source.count_arrival()
            if b < len(job.hosts):
                job.loop.schedule(net.cross(False, b, rail, size), interrupts, passive=True)

        def interrupts() -> None:
            host = job.hosts[b]
            host.kernel(host.frame_interrupt() + self._stack(host.spec, size), lambda: None, of_others=True)

        if a < len(job.hosts):
            host = job.hosts[a]
            host.kernel(self._stack(host.spec, size), leaves, of_others=True)
        else:
            sets_out()

    def _stack(self, spec: Values, size: int) -> int:
        return int(spec.tcp_segment) + int(spec.tcp_byte * max(0, size - self.overhead))
