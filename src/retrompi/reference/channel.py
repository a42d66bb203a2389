"""Messages, the packets that carry them, the processes that exchange packets, and what all channels have in common.

A channel is one way from a process to another over one medium. `Channel.push` is what the sending process does to put a packet in,
`Channel.pull` what the receiving one does for a token that it finds in its inbox. A packet is written as a whole before the next one:
what is posted while a packet is half written waits, and goes out right behind it.

A *token* in an inbox is a notice: the channel, and what the channel needs to know again (a place, a number). The packet itself stays in the
channel until the process takes the token (`Process.absorb`) and pulls. A packet of the library carries a message or a part of it; on a
network it travels in one or several *frames*, which the chapter on links counts apart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from retrompi.reference.host import Host, Steps
from retrompi.reference.loop import EventLoop
from retrompi.reference.memory import CopyCost, CopySide
from retrompi.reference.values import Values

__all__ = ["Channel", "Forwarder", "MpiMessage", "Packet", "Process", "SimulatedJob"]


@dataclass(eq=False)
class MpiMessage:
    """One MPI message.

    ``envelope_known``: the receiving library has read who it is from. ``send``, ``receive``: the requests, as long as they are open.
    ``asked``: the bytes of data that the request to send carried; ``arrived``: those that were taken out of channels; ``unexpected``: those
    of them that wait in the library's memory; ``in_pool``: those that still lie in shared memory, each with its channel, place and bytes.
    ``packed``, ``unpacked``: it goes through another buffer of its length at the sender, at the receiver. ``sent``, ``received``: times,
    -1 for not yet.
    """

    src: int
    dst: int
    tag: int
    context: int
    size: int
    line: int
    sent: int
    synchronous: bool = False
    rendezvous: bool = False
    direct: bool = False
    packed: bool = False
    unpacked: bool = False
    envelope_known: bool = False
    send: Any = None
    receive: Any = None
    asked: int = 0
    arrived: int = 0
    unexpected: int = 0
    ack_sent: bool = False
    acked: bool = False
    send_complete: bool = False
    sent_all: bool = False
    delivered: bool = False
    received: int = -1
    receive_line: int = 0
    in_pool: list[tuple[Any, Any, int]] = field(default_factory=list)


@dataclass(eq=False)
class Packet:
    """A part of a message, or what the library says about one: ``data``, ``rts`` (request to send), ``cts`` (clear to send), ``ack`` (of a
    synchronous send), ``done`` (the receiver has copied the data itself). ``held``: it was left in the pool."""

    message: MpiMessage
    size: int
    source: int
    target: int
    kind: str = "data"
    first: bool = True
    last: bool = True
    held: bool = False


class SimulatedJob:
    """State shared by the processes of one job."""

    def __init__(self, loop: EventLoop, hosts: list[Host], random: Any) -> None:
        self.loop, self.hosts, self.random = loop, hosts, random
        self.net: Any = None
        self.ranks: list[Any] = []
        self.count = SimpleNamespace(messages=0, bytes=0, packets=0, frames=0, delivered=0, delivered_bytes=0, retransmissions=0,
            duplicates=0,
                                     lost=0, own_bytes=0)
        self.pool_locks: dict[Host, Any] = {}
        self.messages: list[MpiMessage] = []
        self.marks: list[tuple[int, str, int]] = []


class Process:
    """A rank, proxy or daemon: a thread with an inbox of tokens, each of which says that a channel has something for it."""

    holds_messages = True
    """Whether it copies from and to the message's own memory; otherwise to the buffer of a packet, which it uses again for the next."""

    def __init__(self, job: SimulatedJob, host: Host, name: str) -> None:
        from retrompi.reference.host import Thread

        self.job, self.host = job, host
        self.thread = Thread(host, name)
        host.threads.append(self.thread)
        self.core = 0
        self.pinned_to_send = self.pinned_to_receive = 0
        self.inbox: deque[tuple[Channel, Any]] = deque()

    def arrive(self, channel: Channel, what: Any = None, immediate: bool = True, network: bool = False) -> None:
        """A channel has something for it; one that was killed takes nothing."""
        if self.thread.dead:
            return
        self.inbox.append((channel, what))
        self.thread.signal(immediate, network)

    def absorb(self) -> Steps:
        """Takes the first token out of the inbox and does what it needs."""
        channel, what = self.inbox.popleft()
        yield from channel.pull(what)

    def post(self, channel: Channel, packet: Packet) -> Steps:
        """Sends a packet over a channel, behind those that wait for it."""
        if channel.busy:
            channel.deferred.append(packet)
            return
        channel.busy = True
        channel.deferred.append(packet)
        while channel.deferred:
            packet = channel.deferred.popleft()
            yield from channel.push(packet)
            if not channel.tells_sent and packet.last and packet.kind == "data":
                self.on_sent(packet.message)
        channel.busy = False

    def until(self, condition: Callable[[], bool], policy: Values, progress: bool) -> Steps:
        """Waits until the condition holds; takes in what arrives meanwhile if ``progress``."""
        while not condition():
            if progress and self.inbox:
                yield from self.absorb()
            else:
                yield from self.thread.wait(policy)

    def copy(self, cost: CopyCost, other_core: int) -> Steps:
        """A copy that the processor makes; it also takes its turn on the bus."""
        passed = self.host.claim_bus(self.core, other_core, cost)
        yield from self.thread.copy(cost)
        yield from self.thread.run(passed - self.host.loop.now)

    def take(self, packet: Packet) -> bool:
        """Stores a packet if that is all that is to be done with it."""
        return False

    def handle(self, packet: Packet) -> Steps:
        """Handles a packet that has reached the process."""
        raise NotImplementedError

    def leave_in_pool(self, packet: Packet) -> bool:
        """Whether a packet stays in shared memory."""
        return False

    def on_sent(self, message: MpiMessage) -> None:
        """The last byte of a message has left this process."""


class Forwarder(Process):
    """A proxy or daemon: passes packets on to the next hop of their way."""

    holds_messages = False

    def __init__(self, job: SimulatedJob, host: Host, name: str, idle: Values, cost: int) -> None:
        super().__init__(job, host, name)
        self.idle, self.cost = idle, cost
        self.next: dict[int, Channel] = {}
        self.pending: deque[Packet] = deque()

    def take(self, packet: Packet) -> bool:
        self.pending.append(packet)
        return True

    def handle(self, packet: Packet) -> Steps:
        self.take(packet)
        yield from ()

    def main(self) -> Steps:
        """What is pending goes first, then what has arrived. A packet too long for the next hop is cut again; one that has only a header
        is a piece of its own."""
        while True:
            if self.pending:
                packet = self.pending.popleft()
                yield from self.thread.run(self.host.work(self.cost))
                channel = self.next[packet.target]
                left, first = packet.size, packet.first
                while True:
                    size = min(left, channel.spec.packet) if packet.kind == "data" else packet.size
                    left -= size
                    yield from self.post(channel, replace(packet, size=size, first=first, last=packet.last and left <= 0))
                    first = False
                    if left <= 0:
                        break
            elif self.inbox:
                yield from self.absorb()
            else:
                yield from self.thread.wait(self.idle)


class Channel:
    """One way from a process to another."""

    tells_sent = False
    """Whether it says when a message has left; otherwise it has when `push` returns."""
    shared = False
    """Whether its memory is written by one process and read by another one of the same host."""

    def __init__(self, job: SimulatedJob, spec: Values, source: Process, target: Process) -> None:
        self.job, self.loop, self.spec, self.source, self.target = job, job.loop, spec, source, target
        self.busy = False
        self.deferred: deque[Packet] = deque()

    def push(self, packet: Packet) -> Steps:
        """The sending process's work for a packet."""
        raise NotImplementedError

    def pull(self, what: Any) -> Steps:
        """What the receiving process does about a token; about one of an acknowledgement or a timer, the sending one."""
        raise NotImplementedError

    def packet_of(self, message: MpiMessage) -> int:
        """The largest payload of a packet of this message."""
        return int(self.spec.packet)

    def first_of(self, message: MpiMessage, packet: int) -> int:
        """The payload of its first packet where the others carry ``packet``."""
        return packet

    # -- what copying a packet in or out costs

    def memory(self, host: Host, message: float, packet: float, inwards: bool) -> float:
        """The channel's memory (B) that a message goes through in packets, at the end where they go in or out."""
        return packet

    def in_caches(self) -> bool:
        """Whether its memory lies in the caches of the cores that use it."""
        return False

    def holds(self, size: int, inwards: bool) -> float:
        """The part of a message that the channel holds at one end."""
        host = (self.source if inwards else self.target).host
        return self.memory(host, float(size), min(float(size), float(self.spec.packet)), inwards)

    def copy_cost(self, packet: Packet, size: int, inwards: bool) -> CopyCost:
        """Copying ``size`` bytes of a packet from the user's buffer into the channel's memory, or out of it.

        Between two uses of a line of one side, everything that passes this cache is used: the buffers of the message (source and
        destination where both ranks use the same cache), and the channel's memory, of the longer one only as much as the other lets pass.
        """
        end = self.source if inwards else self.target
        local = self.source.host is self.target.host
        kin = self.source.host.kinship(self.source.core, self.target.core) if local else "same"
        data = packet.kind == "data" or packet.size > 0
        whole = data and end.holds_messages
        n_packet = float(packet.size)
        n_message = float(packet.message.size) if data else n_packet
        n = n_message if whole else n_packet
        memory = self.memory(end.host, n_message, n_packet, inwards)
        buffers = 1.0
        if whole and local and self.source.holds_messages and self.target.holds_messages:
            both = self.spec.ws_message if self.shared else 2.0
            buffers = both / 2 if kin == "bus" else both
        if whole and (packet.message.packed if inwards else packet.message.unpacked):
            buffers += 1  # the user's, and the one that it is packed in
        held = "own"
        if self.spec.medium == "ring" and kin == "same" and not self.in_caches():
            # One processor fills a ring and empties it in turns, so that its slots stay in the cache.
            user_near = user_set = buffers * n + memory
            own_near = own_set = memory
        else:
            passing = min(memory, n)
            user_set = buffers * n + passing
            own_set = memory + buffers * passing
            alone = kin == "same" and not self.in_caches()
            user_near = user_set if alone else n + passing + (float(self.spec.header) if self.in_caches() else 0)
            own_near = own_set if alone else memory
            held = "dirty" if self.shared else "own"
        user, own = CopySide(user_near, user_set), CopySide(own_near, own_set, held)
        return end.host.copy_cost(size, user, own, kin) if inwards else end.host.copy_cost(size, own, user, kin)
