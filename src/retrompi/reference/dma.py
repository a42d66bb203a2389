"""Transfers from memory to memory by a card, or by the processor itself, without the operating system.

A small message goes into a place that the sender has in the receiver's memory, and is copied out of it. The data of a rendezvous go into
the user's buffer, when both ends have made their memory known to the card: written by the sender's card when the receiver has answered, or
read by the receiver's, which then tells the sender. Nothing is sent again: a burst that the network loses is lost.
Messages on one path stay in order. Sources: the models (BIP, HPVM, GM); docs/networks.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from retrompi.reference.channel import Channel, MpiMessage, Packet, Process, SimulatedJob
from retrompi.reference.host import Steps
from retrompi.reference.values import picoseconds

__all__ = ["Dma"]


@dataclass(eq=False)
class Burst:
    """A burst: the bytes that the card moves at once."""

    packet: Packet
    arrived: bool = False
    lost: bool = False


def _in_order(under_way: deque[Burst], ended: Burst, lost: bool) -> Iterator[Packet]:
    """A burst has come, or never will: what is there now, as those before it come first."""
    ended.arrived, ended.lost = True, lost
    while under_way and under_way[0].arrived:
        first = under_way.popleft()
        if not first.lost:
            yield first.packet


class Dma(Channel):
    """A channel of a card."""

    def __init__(self, job: SimulatedJob, spec: Any, source: Process, target: Process) -> None:
        super().__init__(job, spec, source, target)
        self.places = spec.slots
        self.flying: deque[Burst] = deque()
        self.landed: deque[Packet] = deque()
        self.answers: deque[Burst] = deque()
        self.read: deque[Packet] = deque()
        self.reading = self.header_went = False
        self.moved = 0

    def memory(self, host: Any, message: float, packet: float, inwards: bool) -> float:
        return packet if inwards else max(packet, float(self.spec.recv_buffers))

    def _header_alone(self, message: MpiMessage) -> bool:
        return 0 < self.spec.alone < message.size and not message.rendezvous

    def first_of(self, message: MpiMessage, packet: int) -> int:
        """The library's header takes its part of a message's first packet, or all of it."""
        if message.rendezvous or self.spec.message_header == 0:
            return packet
        return 0 if self._header_alone(message) else max(packet - self.spec.message_header, 1)

    def _copied_bytes(self, packet: Packet, whole: bool) -> int:
        """What is copied with a packet between the user's memory and the library's. A message with a header is copied as a whole: ``whole``
        says whether with this packet."""
        if packet.kind != "data":
            return packet.size
        if packet.message.rendezvous or self._header_alone(packet.message):
            return 0
        if self.spec.message_header == 0:
            return packet.size
        return packet.message.size if whole else 0

    def _work(self, process: Process, ps: int) -> Steps:
        yield from process.thread.run(process.host.work(ps))

    def push(self, packet: Packet) -> Steps:
        spec, source, message = self.spec, self.source, packet.message
        data = packet.kind == "data"
        direct = data and message.rendezvous
        if data and not direct and spec.slots > 0:
            yield from source.until(lambda: self.places > 0, spec.space_wait, spec.progress)
            self.places -= 1
        # Data behind a header that went alone are a second message of the layer below.
        begins = packet.first or (self.header_went and data)
        if data:
            self.header_went = packet.first and not packet.last and self._header_alone(message)
        fragments = -(-packet.size // spec.fragment) if spec.fragment > 0 else 0
        yield from self._work(source, spec.send_cpu + begins * spec.message_cpu + fragments * spec.fragment_cpu)
        if size := self._copied_bytes(packet, packet.first):
            yield from source.thread.copy(self.copy_cost(packet, size, True).times(spec.copies_in))
        if spec.reads and packet.kind == "rts":
            source.pinned_to_send = yield from self._pin(0, message.size, source.pinned_to_send)
        if packet.kind == "cts":
            source.pinned_to_receive = yield from self._pin(0, message.size, source.pinned_to_receive)
        if direct:
            begin = 0 if packet.first else self.moved
            self.moved = begin + packet.size
            source.pinned_to_send = yield from self._pin(begin, self.moved, source.pinned_to_send)
        self.job.count.packets += 1
        by_card = direct or (spec.reads and packet.kind == "cts")
        size = packet.size + spec.header + (spec.message_header if packet.first and not by_card else 0)
        burst = Burst(packet)
        self.flying.append(burst)
        by_processor = size <= spec.pio_limit
        if by_processor:  # it writes the message to the card
            yield from source.thread.run(picoseconds(size / spec.pio_rate))
        # The card puts data into memory without a word: a message behind them says that they are there.
        behind = spec.told_by if direct else 0
        hosts = self.job.hosts
        ends = hosts.index(source.host), hosts.index(self.target.host)
        fetch = 0 if by_processor or (by_card and not direct) else spec.fetch
        left = self.job.net.burst(*ends, size, spec.rate, self._piece(size), behind, lambda: self._ends(burst, False),
                                  lambda: self._ends(burst, True), fetch, spec.interleaved)
        if behind > 0:
            yield from self._work(source, spec.send_cpu)
        if spec.cpu_driven:
            yield from source.thread.run(left - self.loop.now)
        elif direct and packet.last:  # its memory is the user's only when the card has read it
            self.reading = True
            self.loop.schedule(left, self._is_read)
            yield from source.until(lambda: not self.reading, spec.space_wait, spec.progress)

    def _pin(self, begin: int, end: int, known: int) -> Any:
        """Makes bytes of a buffer known to the card, page by page; where that is remembered, only those beyond what it knows. Returns up to
        where it knows them."""
        spec, host = self.spec, self.source.host
        if spec.pin_cache:
            begin = max(begin, known)
        if end <= begin:
            return known
        pages = -(-(end - begin) // spec.page)
        yield from self.source.thread.run(host.service(spec.pin + pages * spec.pin_page))
        return max(known, end)

    def _is_read(self) -> None:
        self.reading = False
        self.source.thread.signal()

    def _piece(self, size: int) -> int:
        """The part of a burst that must have crossed a stage before the next one starts."""
        return int(min(self.spec.piece, max(self.spec.piece_min, size // self.spec.pieces)))

    def _ends(self, burst: Burst, lost: bool) -> None:
        for packet in _in_order(self.flying, burst, lost):
            if self.spec.reads and packet.kind == "cts":
                self._answer(packet.message)
                continue
            self.landed.append(packet)
            if self.spec.sleeps and self.target.thread.mode != "work":
                host = self.target.host
                host.kernel(host.spec.interrupt, self.target.arrive, self, "woken")
            else:
                self.target.arrive(self)

    def _answer(self, message: MpiMessage) -> None:
        """The other end's card reads its memory and sends the data back; no process of that host takes part."""
        self.job.count.packets += 1
        spec, hosts = self.spec, self.job.hosts
        size = message.size + spec.header
        answer = Burst(Packet(message, message.size, message.src, message.dst))
        self.answers.append(answer)
        ends = hosts.index(self.target.host), hosts.index(self.source.host)
        self.job.net.burst(*ends, size, spec.rate, self._piece(size), 0, lambda: self._answer_ends(answer, False),
                           lambda: self._answer_ends(answer, True), spec.answer, spec.interleaved)

    def _answer_ends(self, answer: Burst, lost: bool) -> None:
        for packet in _in_order(self.answers, answer, lost):
            self.read.append(packet)
            self.source.arrive(self, "read")

    def _has_read(self) -> Steps:
        """The data are there: the message is complete here, and the sender is told."""
        source, packet = self.source, self.read.popleft()
        message = packet.message
        yield from self._work(source, self.spec.recv_cpu)
        yield from source.handle(packet)
        yield from source.post(self, Packet(message, 0, message.dst, message.src, "done"))

    def pull(self, what: Any) -> Steps:
        if what == "read":
            yield from self._has_read()
            return
        target, packet = self.target, self.landed.popleft()
        if what == "woken":
            yield from target.thread.run(target.host.spec.syscall)
        yield from self._work(target, self.spec.recv_cpu)
        if packet.kind == "data" and not packet.message.rendezvous:
            if size := self._copied_bytes(packet, packet.last):
                yield from target.thread.copy(self.copy_cost(packet, size, False).times(self.spec.copies_out))
            if self.spec.slots > 0:
                self.places += 1
                self.source.thread.signal()
        if not target.take(packet):
            yield from target.handle(packet)
