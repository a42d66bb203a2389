"""Datagrams between daemons, made reliable by the daemons themselves: sequence numbers, acknowledgement, retry.

The kernel cuts a datagram into frames (RFC 791), and it has arrived when all of them have; losing one loses it. The receiver acknowledges
every datagram, repeated ones too, since the first acknowledgement may have been lost. The sender's timer is a timed wait: it ends on a
tick of its host's clock, and doubles with each retry.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from retrompi.reference.channel import Channel, Packet, Process, SimulatedJob
from retrompi.reference.host import Steps
from retrompi.reference.loop import Abort
from retrompi.reference.memory import CopyCost

__all__ = ["Datagram"]

UDP_HEADER = 8
IP_HEADER = 20


@dataclass(eq=False)
class Out:
    """A datagram that has been sent: it leaves the sender's queue when it is acknowledged and taken in."""

    packet: Packet
    tries: int = 0
    acked: bool = False
    fetched: bool = False
    timer: int = 0


@dataclass(eq=False)
class SentDatagram:
    """A datagram or acknowledgement on its way, and how many of its frames have not arrived."""

    sender: Process
    kind: str
    seq: int
    frames: int
    lost: bool
    late: bool


class Datagram(Channel):
    """A channel of datagrams."""

    def __init__(self, job: SimulatedJob, spec: Any, source: Process, target: Process) -> None:
        super().__init__(job, spec, source, target)
        self.out: deque[Out] = deque()
        self.base = self.expected = 0
        self.early: dict[int, Packet] = {}

    def push(self, packet: Packet) -> Steps:
        yield from self.source.until(lambda: len(self.out) < self.spec.window, self.spec.space_wait, True)
        self.out.append(Out(packet))
        self.job.count.packets += 1
        seq = self.base + len(self.out) - 1
        yield from self.source.thread.run(self.source.host.work(self.spec.send_cpu))
        yield from self._transmit(seq)

    def pull(self, what: Any) -> Steps:
        kind, seq = what
        if kind == "ack":
            yield from self._socket_call(self.source, self.spec.calls_in)
            if out := self._find(seq):
                out.acked = True
            while self.out and self.out[0].acked and self.out[0].fetched:
                self.out.popleft()
                self.base += 1
        elif kind == "timer":
            out = self._find(seq)
            if out is None or out.acked:
                return
            out.tries += 1
            if out.tries > self.spec.retries:
                raise Abort(f"datagram {seq} from {self.source.thread.name} to {self.target.thread.name} was not acknowledged after "
                            f"{self.spec.retries} retries")
            self.job.count.retransmissions += 1
            yield from self._transmit(seq)
        else:
            yield from self._receive(seq)

    def _socket_call(self, process: Process, calls: float) -> Steps:
        yield from process.thread.run(process.host.work(self.spec.call) + process.host.calls(calls))

    def _length(self, packet: Packet) -> int:
        return int(packet.size + self.spec.header + (self.spec.message_header if packet.first else 0))

    def _find(self, seq: int) -> Out | None:
        return self.out[seq - self.base] if 0 <= seq - self.base < len(self.out) else None

    def _transmit(self, seq: int) -> Steps:
        found = self._find(seq)
        assert found is not None
        packet, host = found.packet, self.source.host
        yield from self._socket_call(self.source, self.spec.calls_out)
        yield from self.source.thread.copy(self.copy_cost(packet, packet.size, True).times(self.spec.copies_in))
        out = self._find(seq)
        if out is None or out.acked:  # acknowledged while it was sent again
            return
        due = host.next_tick(self.loop.now + self.spec.timeout * (1 << min(out.tries, 6)))
        out.timer += 1
        self.loop.schedule(due, self._timer, seq, out.timer)
        self._ship(self.source, "data", seq, self._length(packet))
        if self.spec.duplicate > 0 and self.job.random.uniform() < self.spec.duplicate:
            self.job.count.duplicates += 1
            self._ship(self.source, "data", seq, self._length(packet))

    def _timer(self, seq: int, timer: int) -> None:
        out = self._find(seq)
        if out and not out.acked and out.timer == timer:
            self.source.arrive(self, ("timer", seq))

    def _ship(self, sender: Process, kind: str, seq: int, size: int) -> None:
        """Hands a datagram to the kernel. One random number decides whether any of its frames is lost, another one whether all are late."""
        host, payload = sender.host, self.job.net.mtu - IP_HEADER
        left = size + UDP_HEADER
        lost = self.spec.loss > 0 and self.job.random.uniform() < self.spec.loss
        late = self.spec.reorder > 0 and self.job.random.uniform() < self.spec.reorder
        shipped = SentDatagram(sender, kind, seq, (left + payload - 1) // payload, lost, late)
        while left > 0:
            n = min(left, payload)
            left -= n
            host.kernel(host.spec.tcp_segment + int(host.spec.tcp_byte * n), self._leaves, shipped, n)

    def _leaves(self, shipped: SentDatagram, size: int) -> None:
        hosts, other = self.job.hosts, self._receiver(shipped)
        self.job.net.frame(hosts.index(shipped.sender.host), hosts.index(other.host), size,
                           lambda: self._frame(shipped, size, shipped.late), lambda: self._frame_done(shipped, True))

    def _receiver(self, shipped: SentDatagram) -> Process:
        return self.target if shipped.sender is self.source else self.source

    def _frame(self, shipped: SentDatagram, size: int, late: bool) -> None:
        if late:
            self.loop.schedule(self.loop.now + self.spec.reorder_delay, self._frame, shipped, size, False)
            return
        host = self._receiver(shipped).host
        host.kernel(host.frame_interrupt() + host.spec.tcp_segment + int(host.spec.tcp_byte * size), self._frame_done, shipped, False)

    def _frame_done(self, shipped: SentDatagram, lost: bool) -> None:
        shipped.lost |= lost
        shipped.frames -= 1
        if shipped.frames == 0 and not shipped.lost:
            self._receiver(shipped).arrive(self, (shipped.kind, shipped.seq))

    def _receive(self, seq: int) -> Steps:
        receiver, out = self.target, self._find(seq)
        cost = self.copy_cost(out.packet, out.packet.size, False).times(self.spec.copies_out) if out else CopyCost()
        yield from self._socket_call(receiver, self.spec.calls_in)
        yield from receiver.thread.copy(cost)
        yield from self._socket_call(receiver, self.spec.calls_out)
        self._ship(receiver, "ack", seq, self.spec.header)
        out = self._find(seq)
        if seq < self.expected or out is None or out.fetched:
            return
        out.fetched = True
        if seq != self.expected:
            self.early[seq] = out.packet
            return
        packet: Packet | None = out.packet
        while packet is not None:
            self.expected += 1
            yield from receiver.thread.run(receiver.host.work(self.spec.recv_cpu))
            if not receiver.take(packet):
                yield from receiver.handle(packet)
            packet = self.early.pop(self.expected, None)
