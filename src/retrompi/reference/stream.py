"""A channel over a stream socket: packets are bytes in a TCP connection, and the reader finds where each ends.

Libraries drive a socket in four ways, each with its class. Whatever the way, a socket call costs the library's work and the system's
calls, and a packet costs its library work at either end. Sources: docs/models.md; the style of each library is in its model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from retrompi.reference.channel import Channel, Packet, Process, SimulatedJob
from retrompi.reference.host import Host, Steps
from retrompi.reference.memory import CopyCost
from retrompi.reference.tcp import Tcp, backed_off, give_up

__all__ = ["STYLES", "Stream"]


@dataclass(eq=False)
class StreamPacket:
    """A packet in the stream: it ends at a byte, and carries credits."""

    packet: Packet
    end: int
    credits: int = 0


class Credits:
    """Flow control above a connection, as in Illinois Fast Messages: how many packets may be out that the receiver has not taken in. The
    receiver returns credits with packets of the other direction, or by an update when it owes half of them."""

    def __init__(self, channel: Stream, total: int) -> None:
        self.channel, self.total, self.available, self.owed = channel, total, total, 0
        self.retransmits = 0

    @property
    def exhausted(self) -> bool:
        """Whether the sender has to wait."""
        return self.total > 0 and self.available <= 0

    def refill(self, n: int) -> None:
        """Credits have come back."""
        self.available += n
        self.channel.source.thread.signal()

    def pay(self) -> int:
        """What the receiver owes is returned."""
        n, self.owed = self.owed, 0
        return n

    def send_update(self) -> None:
        """An update is a segment without data; a lost one is sent again after the connection's timeout."""
        n, tcp, host = self.pay(), self.channel.tcp, self.channel.target.host
        if not tcp.stack:
            self.channel.loop.schedule(self.channel.loop.now, self.refill, n)
        elif tcp.local:
            host.kernel(host.spec.loopback_segment, self._update, n)
        else:
            self._put_on_wire(n)

    def _update(self, n: int) -> None:
        self.refill(n)

    def _put_on_wire(self, n: int) -> None:
        self.channel.tcp._frame(self.channel.target, 0, lambda: self._frame(n), lambda: self._retry(n))

    def _frame(self, n: int) -> None:
        host = self.channel.source.host
        self.retransmits = 0
        host.kernel(host.frame_interrupt() + host.spec.tcp_segment, self._update, n)

    def _retry(self, n: int) -> None:
        host, tcp = self.channel.target.host.spec, self.channel.tcp
        if tcp.closed:
            return
        if self.retransmits >= host.tcp_retries:
            give_up(self.channel.target, self.channel.source, host.tcp_retries)
        rto = tcp.reverse.rto() if tcp.reverse else host.rto_first
        wait = backed_off(rto, self.retransmits, host.rto_max)
        self.retransmits += 1
        self.channel.loop.schedule(self.channel.loop.now + wait, self._again, n)

    def _again(self, n: int) -> None:
        if self.channel.target.thread.dead:
            return
        self.channel.job.count.retransmissions += 1
        self._put_on_wire(n)


class Stream(Channel):
    """Common to all styles of socket I/O."""

    def __init__(self, job: SimulatedJob, spec: Any, source: Process, target: Process) -> None:
        super().__init__(job, spec, source, target)
        self.tcp = Tcp(self, spec.sndbuf, spec.rcvbuf, spec.nagle, spec.domain == "inet")
        self.credits = Credits(self, spec.credits)
        self.offered = False
        self.frames: deque[StreamPacket] = deque()
        self.reverse: Stream | None = None
        self.open = False

    def join(self, other: Stream) -> None:
        """The two directions of one connection."""
        self.reverse, other.reverse = other, self
        self.tcp.reverse, other.tcp.reverse = other.tcp, self.tcp

    def memory(self, host: Host, message: float, packet: float, inwards: bool) -> float:
        own = self.spec.sndbuf if inwards else self.spec.rcvbuf
        return min(message, float(own if own > 0 else host.spec.sndbuf if inwards else host.spec.window))

    def push(self, packet: Packet) -> Steps:
        """The connection is opened on its first use."""
        if not self.open:
            self.open = True
            if self.reverse:
                self.reverse.open = True
            yield from self.source.thread.run(self.source.host.service(self.spec.connect))
        yield from self.send(packet)

    def send(self, packet: Packet) -> Steps:
        """Puts a packet into the connection."""
        raise NotImplementedError

    def on_readable(self) -> None:
        """Bytes have come."""
        self.offer()

    def on_acknowledged(self, was_full: bool) -> None:
        """Bytes have been acknowledged."""

    def offer(self) -> None:
        """Tells the reader, once at a time."""
        if not self.offered:
            self.offered = True
            self.target.arrive(self, "data", network=True)

    def length(self, packet: Packet) -> int:
        """Bytes of a packet in the stream; one that has none would never be read."""
        return int(max(1, packet.size + self.header_of(packet)))

    def header_of(self, packet: Packet) -> int:
        """Its header; a message's first packet has more."""
        return int(self.spec.header + (self.spec.message_header if packet.first else 0))

    def socket_call(self, process: Process) -> Steps:
        """A write or a read, with the calls before it."""
        calls = self.spec.calls_out if process is self.source else self.spec.calls_in
        yield from process.thread.run(process.host.work(self.spec.call) + process.host.calls(calls))

    def bare_call(self, process: Process) -> Steps:
        """One call alone."""
        yield from process.thread.run(process.host.work(self.spec.call) + process.host.spec.syscall)

    def library_work(self, process: Process, packet: Packet) -> Steps:
        """What the library does for a packet at one end, and for a message with its first one."""
        packet_cpu = self.spec.send_cpu if process is self.source else self.spec.recv_cpu
        message_cpu = self.spec.message_cpu if packet.first else 0
        system = process.host.service(self.spec.message_call) if packet.first else 0
        yield from process.thread.run(process.host.work(packet_cpu + message_cpu) + system)


class Blocking(Stream):
    """The library waits in each call."""

    waiting = False

    def send(self, packet: Packet) -> Steps:
        spec, sender, tcp = self.spec, self.source, self.tcp
        if self.credits.total > 0:
            yield from sender.until(lambda: not self.credits.exhausted, spec.space_wait, spec.progress)
            self.credits.available -= 1
        yield from self.library_work(sender, packet)
        left = self.length(packet)
        self.frames.append(StreamPacket(packet, tcp.written + left, self.reverse.credits.pay() if self.reverse else 0))
        self.job.count.packets += 1
        split = spec.header_write and packet.size > spec.header_write_above and packet.first
        piece = self.header_of(packet) if split else left
        while left > 0:
            if not tcp.send_space > 0:
                self.waiting = True
                yield from sender.until(lambda: tcp.writable, spec.space_wait, spec.progress)
                self.waiting = False
            piece = piece or left
            n = min(piece, tcp.send_space)
            piece -= n
            left -= n
            yield from self.socket_call(sender)
            # The system sends a segment when it has copied it, or everything when the write is complete.
            step = tcp.mss if spec.by_segment else n
            while n > 0:
                part = min(n, step)
                yield from sender.thread.copy(self.copy_cost(packet, part, True).times(spec.copies_in))
                tcp.write(part)
                n -= part

    def pull(self, what: Any) -> Steps:
        self.offered = False
        spec, receiver, tcp = self.spec, self.target, self.tcp
        first = self.frames[0]
        end = first.end
        body = first.end - self.length(first.packet) + spec.header
        if spec.header_read and tcp.read_bytes < body:
            end = body
        n = min(tcp.readable, end - tcp.read_bytes)
        cost = self.copy_cost(first.packet, n, False).times(spec.copies_out)
        yield from self.socket_call(receiver)
        yield from receiver.thread.copy(cost)
        tcp.read(n)
        done = None
        if tcp.read_bytes == self.frames[0].end:
            done = self.frames.popleft()
        if tcp.readable > 0:
            self.offer()
        if done is None:
            return
        yield from self.library_work(receiver, done.packet)
        if done.credits > 0 and self.reverse:
            self.reverse.credits.refill(done.credits)
        if self.credits.total > 0:
            self.credits.owed += 1
            if self.credits.owed >= max(1, self.credits.total // 2):
                yield from self.socket_call(receiver)
                self.credits.send_update()
        if not receiver.take(done.packet):
            yield from receiver.handle(done.packet)

    def on_acknowledged(self, was_full: bool) -> None:
        if (self.waiting if self.tcp.counts_memory else was_full) and self.tcp.writable:
            self.source.thread.signal()


class Queued(Stream):
    """The library queues packets, and they leave it later."""

    tells_sent = True

    def __init__(self, job: SimulatedJob, spec: Any, source: Process, target: Process) -> None:
        super().__init__(job, spec, source, target)
        self.queued = 0
        self.unsent: deque[StreamPacket] = deque()
        self.packets_end = 0

    def send(self, packet: Packet) -> Steps:
        yield from self.library_work(self.source, packet)
        self.queued += self.length(packet)
        self.frames.append(StreamPacket(packet, self.queued))
        self.unsent.append(StreamPacket(packet, self.queued))
        self.job.count.packets += 1
        yield from self.submit(packet)

    def submit(self, packet: Packet) -> Steps:
        """Writes what can be written."""
        raise NotImplementedError

    def finish_sent(self, upto: int) -> None:
        """Packets that end before a byte have left."""
        while self.unsent and self.unsent[0].end <= upto:
            packet = self.unsent.popleft().packet
            if packet.last and packet.kind == "data":
                self.source.on_sent(packet.message)

    @property
    def at_packet(self) -> bool:
        """Whether the next byte begins a packet."""
        return self.tcp.read_bytes == self.packets_end

    def next_read(self) -> int:
        """What a read takes: the rest of a message goes to the user's buffer; what begins one is read into the library's, with whatever
        follows."""
        return int(self.spec.first_read if self.at_packet else self.frames[0].end - self.tcp.read_bytes)

    def whole_packets(self) -> list[Packet]:
        """Packets that have been read to their end."""
        whole = []
        while self.frames and self.frames[0].end <= self.tcp.read_bytes:
            self.packets_end = self.frames[0].end
            whole.append(self.frames.popleft().packet)
        return whole

    def copy_out(self, n: int) -> CopyCost:
        """Copying bytes of the first packet out."""
        return self.copy_cost(self.frames[0].packet, n, False)

    def take_in(self, packets: list[Packet]) -> Steps:
        """The library's work for packets that it has read."""
        for packet in packets:
            yield from self.library_work(self.target, packet)
            if not self.target.take(packet):
                yield from self.target.handle(packet)


class Nonblocking(Queued):
    """The library writes and reads what is possible whenever it runs."""

    writing = announced_space = False

    def pull(self, what: Any) -> Steps:
        if what == "space":
            self.announced_space = False
            yield from self._write()
            return
        yield from self.socket_call(self.target)
        self.offered = False
        begins = self.at_packet
        n = min(self.tcp.readable, self.next_read())
        yield from self.target.thread.copy(self.copy_out(n))
        self.tcp.read(n)
        if begins:
            yield from self.target.thread.copy(self.copy_out(n))
        whole = self.whole_packets()
        if self.tcp.readable > 0:
            self.offer()
        yield from self.take_in(whole)

    def submit(self, packet: Packet) -> Steps:
        yield from self._write()

    def _write(self) -> Steps:
        if self.writing:
            return
        self.writing = True
        tcp = self.tcp
        while tcp.written < self.queued and tcp.send_space > 0:
            n = min(self.unsent[0].end - tcp.written, tcp.send_space)
            yield from self.socket_call(self.source)
            yield from self.source.thread.copy(self.copy_cost(self.unsent[0].packet, n, True))
            tcp.write(n)
            self.finish_sent(tcp.written)
        self.writing = False

    def on_acknowledged(self, was_full: bool) -> None:
        if self.tcp.written < self.queued and self.tcp.send_space > 0 and not self.announced_space:
            self.announced_space = True
            self.source.arrive(self, "space", network=True)


class Asynchronous(Queued):
    """The system moves the data and tells of operations that are complete: the buffer of a read is posted, and the rest of a write is
    copied as space becomes free."""

    told_sent = told_read = filling = completed_begins = False
    completed = 0

    def pull(self, what: Any) -> Steps:
        if what == "sent":
            yield from self.bare_call(self.source)
            self.told_sent = False
            self.finish_sent(self._buffered_until())
            return
        n, begins = self.completed, self.completed_begins
        yield from self.bare_call(self.target)
        if begins:
            yield from self.target.thread.copy(self.copy_out(n))
        whole = self.whole_packets()
        yield from self.bare_call(self.target)  # the next read is posted
        self.told_read = False
        self._fill()
        yield from self.take_in(whole)

    def submit(self, packet: Packet) -> Steps:
        fits = min(max(self.tcp.send_space, 0), self.length(packet))
        yield from self.bare_call(self.source)
        yield from self.source.thread.copy(self.copy_cost(packet, fits, True))
        self.tcp.write(self.queued - self.tcp.written)
        self.finish_sent(self._buffered_until())

    def _buffered_until(self) -> int:
        """Up to where written bytes are in the send buffer or sent."""
        return self.tcp.una + self.tcp.sndbuf

    def _fill(self) -> None:
        """The system fills the posted buffer with what has arrived."""
        n = min(self.tcp.readable, 0 if self.told_read or self.filling else self.next_read())
        if n > 0:
            self.filling = True
            cost = self.copy_out(n)
            self.target.host.kernel(cost.core, self._on_filled, n, memory=cost.memory)

    def _on_filled(self, n: int) -> None:
        begins = self.at_packet
        self.filling = False
        self.completed, self.completed_begins = n, begins
        self.tcp.read(n)
        if not begins and self.tcp.read_bytes < self.frames[0].end:
            self._fill()
            return
        self.told_read = True
        self.target.arrive(self, "data", network=True)

    def on_readable(self) -> None:
        self._fill()

    def on_acknowledged(self, was_full: bool) -> None:
        if self.unsent and self.unsent[0].end <= self._buffered_until() and not self.told_sent:
            self.told_sent = True
            self.source.arrive(self, "sent", network=True)


class Signalled(Queued):
    """A process writes what is possible in its call. Whenever there are data, or a third of the buffer is free, a signal interrupts it,
    and the handler writes and reads on, from and into the users' buffers."""

    writing = reading = told = False

    def __init__(self, job: SimulatedJob, spec: Any, source: Process, target: Process) -> None:
        super().__init__(job, spec, source, target)
        self.whole: list[Packet] = []

    def pull(self, what: Any) -> Steps:
        self.told = False
        whole, self.whole = self.whole, []
        yield from self.take_in(whole)

    def submit(self, packet: Packet) -> Steps:
        if self.writing:
            return
        self.writing = True
        tcp = self.tcp
        while tcp.written < self.queued and tcp.send_space > 0:
            left = min(self.unsent[0].end - tcp.written, tcp.send_space)
            yield from self.socket_call(self.source)
            while left > 0:  # the system sends each segment as soon as it has copied it
                n = min(left, tcp.mss)
                yield from self.source.thread.copy(self.copy_cost(self.unsent[0].packet, n, True))
                tcp.write(n)
                left -= n
            self.finish_sent(tcp.written)
        self.writing = False
        self.on_acknowledged(False)

    def _interrupt(self, process: Process, calls: float, handler: Callable[[], None]) -> None:
        """A signal, and a call for each look."""
        process.host.kernel(process.host.service(self.spec.signal) + process.host.calls(calls), handler)

    def on_acknowledged(self, was_full: bool) -> None:
        if self.source.thread.dead:
            return
        if not self.writing and self.tcp.written < self.queued and 3 * self.tcp.send_space >= self.tcp.sndbuf:
            self.writing = True
            self._interrupt(self.source, self.spec.calls_out, self._may_write)

    def _may_write(self) -> None:
        tcp = self.tcp
        n = min(self.unsent[0].end - tcp.written, tcp.send_space, tcp.mss)
        cost = self.copy_cost(self.unsent[0].packet, n, True)
        self.source.host.kernel(cost.core, self._copied_in, n, memory=cost.memory)

    def _copied_in(self, n: int) -> None:
        tcp = self.tcp
        tcp.write(n)
        ended = tcp.written == self.unsent[0].end
        if ended:
            self.finish_sent(tcp.written)
        if tcp.written < self.queued and tcp.send_space > 0:
            self._may_write()
            return
        self.writing = False
        if ended:
            self.source.thread.signal()

    def on_readable(self) -> None:
        if not self.reading and not self.target.thread.dead:
            self.reading = True
            self._interrupt(self.target, self.spec.calls_in, self._may_read)

    def _may_read(self) -> None:
        n = min(self.tcp.readable, self.frames[0].end - self.tcp.read_bytes)
        cost = self.copy_out(n)
        self.target.host.kernel(cost.core, self._copied_out, n, memory=cost.memory)

    def _copied_out(self, n: int) -> None:
        self.tcp.read(n)
        self.whole += self.whole_packets()
        if self.whole and not self.told:
            self.told = True
            self.target.arrive(self, "data", network=True)
        if self.tcp.readable > 0:
            self._may_read()
            return
        self.reading = False


STYLES: dict[str, type[Stream]] = {"blocking": Blocking, "nonblocking": Nonblocking, "async": Asynchronous, "signal": Signalled}
