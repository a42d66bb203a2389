"""The laws of the levels `curve` and `loggp`: no packets, no wire, no operating system.

A message costs its sender ``send``, travels for ``transit``, and costs its receiver ``recv``; the numbers of a size lie on straight lines
between those that were sampled. It occupies what lies between: its pair's channel for ``gap``, one direction of the port at either end
for ``port``, a whole port for ``both``, and the wire that all share for ``wire``. It begins when all that it occupies is free, and does
not wait for what it does not
occupy. Messages of a pair do not overtake each other. `loggp` is the same law with the five numbers of LogGP (Alexandrov et al. 1995) in
the table and a port for every rank.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from types import SimpleNamespace
from typing import Any

from retrompi.reference.channel import Channel, Packet, Process, SimulatedJob
from retrompi.reference.host import Steps
from retrompi.reference.loop import Abort
from retrompi.reference.values import NEVER

__all__ = ["CurveTable", "Port", "SampledCurve"]

NUMBERS = ("send", "transit", "recv", "gap", "port", "both", "wire")


class CurveTable:
    """The numbers of each sampled size (ps), and from which size on the mechanism did not carry a message."""

    def __init__(self, rows: list[tuple[int, ...]], limit: int | None, reason: str) -> None:
        self.sizes = [row[0] for row in rows]
        self.rows = [row[1:] for row in rows]
        self.limit = NEVER if limit is None else limit
        self.reason = reason

    def at(self, size: int) -> Any:
        """The numbers of a size: of the first below the first, along the last line beyond the last."""
        i = bisect_left(self.sizes, size)
        if (i < len(self.sizes) and self.sizes[i] == size) or i == 0 or len(self.sizes) == 1:
            return SimpleNamespace(**dict(zip(NUMBERS, self.rows[min(i, len(self.sizes) - 1)], strict=True)))
        i = min(i, len(self.sizes) - 1)
        x = float(size - self.sizes[i - 1]) / float(self.sizes[i] - self.sizes[i - 1])
        mixed = [max(0, u + math.floor(x * float(v - u) + 0.5)) for u, v in zip(self.rows[i - 1], self.rows[i], strict=True)]
        return SimpleNamespace(**dict(zip(NUMBERS, mixed, strict=True)))


class Port:
    """Busy until: outwards, inwards, in both directions together."""

    def __init__(self) -> None:
        self.out = self.inwards = self.any = 0


class SampledCurve(Channel):
    """A channel that follows a table."""

    def __init__(
        self, job: SimulatedJob, spec: Any, source: Process, target: Process, table: CurveTable, ports: tuple[Port, Port, Port]
    ) -> None:
        super().__init__(job, spec, source, target)
        self.table = table
        self.out, self.into, self.wire = ports
        self.free = self.last = 0
        self.open = False
        self.reverse: SampledCurve | None = None
        self.flying: deque[Packet] = deque()
        self.arrived: deque[Packet] = deque()

    def push(self, packet: Packet) -> Steps:
        if packet.kind == "cts":  # part of its message's sampled time
            self._hand_over(packet)
            return
        if packet.kind == "rts":  # costs nothing itself, and does not overtake
            self._fly(packet, self._arrival(self.loop.now))
            return
        if not self.open:
            self.open = True
            if self.reverse:
                self.reverse.open = True
            yield from self.source.thread.run(self.spec.connect)
        if packet.size >= self.table.limit:
            raise Abort(f"a message of {packet.size} B from rank {packet.source}: the mechanism did not carry one of {self.table.limit} B: "
                        f"{self.table.reason}")
        numbers = self.table.at(packet.size)
        yield from self.source.thread.run(numbers.send)
        self.job.count.packets += 1
        self._fly(packet, self._depart(numbers))

    def pull(self, what: Any) -> Steps:
        packet = self.arrived.popleft()
        if packet.kind in ("data", "ack"):
            yield from self.target.thread.run(self.table.at(packet.size).recv)
        yield from self.target.handle(packet)

    def _depart(self, n: Any) -> int:
        start = max(self.loop.now, self.free)
        if n.port > 0:
            start = max(start, self.out.out, self.into.inwards)
        if n.both > 0:
            start = max(start, self.out.any, self.into.any)
        if n.wire > 0:
            start = max(start, self.wire.any)
        self.free = start + n.gap
        if n.port > 0:
            self.out.out = self.into.inwards = start + n.port
        if n.both > 0:
            self.out.any = self.into.any = start + n.both
        if n.wire > 0:
            self.wire.any = start + n.wire
        return self._arrival(start + n.transit)

    def _arrival(self, t: int) -> int:
        self.last = max(t, self.last)
        return self.last

    def _fly(self, packet: Packet, end: int) -> None:
        if end == self.loop.now and not self.flying:
            self._hand_over(packet)
            return
        self.flying.append(packet)
        self.loop.schedule(end, lambda: self._hand_over(self.flying.popleft()))

    def _hand_over(self, packet: Packet) -> None:
        self.arrived.append(packet)
        self.target.arrive(self)
