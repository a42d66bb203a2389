"""A rank: its calls, one after the other, by the protocols of its library.

Matching follows MPI: a receive takes the first message in order of arrival that fits its source, tag and communicator; a message takes
the first posted receive that fits it (MPI 1.1, 3.5: messages do not overtake). A message is sent

* *eager*: its data leave at once and wait in the receiver's memory if no receive is posted;
* by *rendezvous*: a request to send goes first, and the data when the receiver has answered it;
* *direct*: the receiver is told where the data are and copies them itself.

The library works only within calls: what arrives while a rank computes waits in its channel, with a notice in the rank's inbox.

A line of a trace is ``RANK CALL PEER TAG COUNT DATATYPE``: in ``0 send 1 0 1024 6`` rank 0 sends to rank 1, with tag 0, 1024 elements of
type 6, which is a byte. Of a call that completed something (a test, a wait for any) or took a message by a wildcard, the trace may say
what it was when it was recorded; it is so again (``from``, ``mtag``, ``flag``, ``done``), unless the question leaves wildcards free
(``--wildcards free``).

``spec`` are the library's numbers: those with one value are work, in picoseconds of the reference host, those with two work and system
calls. `Rank` is a `Process` of the chapter on channels, from which it has ``inbox``, ``post``, ``absorb`` and ``copy``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from retrompi.reference.channel import Channel, MpiMessage, Packet, Process, SimulatedJob
from retrompi.reference.collectives import Choices, Collectives, Communicator, is_collective
from retrompi.reference.host import Host, Steps
from retrompi.reference.loop import Abort
from retrompi.reference.memory import CopyCost, CopySide
from retrompi.reference.one_sided import OneSided, is_one_sided
from retrompi.reference.values import ANY_SOURCE, ANY_TAG, PROC_NULL, NotCovered, Values, picoseconds

__all__ = ["Rank", "Request", "TracedCall"]

SENDS = {"send": "standard", "Ssend": "synchronous", "bsend": "buffered", "rsend": "ready"}
ISENDS = {"isend": "standard", "ISsend": "synchronous", "ibsend": "buffered", "irsend": "ready"}
PERSISTENT = {"sendInit": "standard", "ssendInit": "synchronous", "bsendInit": "buffered", "rsendInit": "ready", "recvInit": ""}
SEVERAL = ("waitall", "waitAny", "waitsome", "testall", "testany", "testsome")
COMPUTES = ("compute", "sleep", "kernel")
COVERED = {"init", "finalize", "sendRecv", "recv", "irecv", "probe", "iprobe", "wait", "test", "start", "startall", "requestFree",
           "comm_free", *COMPUTES, *SEVERAL, *SENDS, *ISENDS, *PERSISTENT}
LONGEST = 4e6
"""Seconds that a simulation may take: picoseconds are counted in 63 bits, with some to spare."""


@dataclass(frozen=True)
class TracedCall:
    """A line of a trace: the columns of engine/trace/flat_action.hpp, and what stands behind them."""

    line: int
    name: str
    peer: int
    tag: int
    peer2: int
    size: int
    size2: int
    amount: float
    more: dict[str, Any]

    @property
    def computes(self) -> bool:
        """Whether it is the program's own work."""
        return self.name in COMPUTES


@dataclass(eq=False)
class Request:
    """An operation that a call has begun. ``key``: (source, destination, tag) under which SMPI's replay files it; ``number``: its identity
    in the trace, 0 for none."""

    kind: str
    peer: int = 0
    tag: int = 0
    context: int = 0
    size: int = 0
    mode: str = "standard"
    done: bool = False
    persistent: bool = False
    active: bool = True
    line: int = 0


@dataclass(eq=False)
class Filed:
    """A request as the trace knows it; one without ``request`` was completed by a test, and its wait returns at once.

    ``succeeded``: the trace says of this test that it succeeded, after which the program has no such request any more.
    """

    key: tuple[int, int, int]
    number: int
    request: Request | None
    succeeded: bool = False


def fits(request: Request, message: MpiMessage) -> bool:
    """Whether a receive takes a message."""
    return request.context == message.context and request.peer in (message.src, ANY_SOURCE) and request.tag in (message.tag, ANY_TAG)


class Rank(Process):
    """One rank."""

    def __init__(
        self,
        job: SimulatedJob,
        host: Host,
        number: int,
        spec: Values,
        calls: list[TracedCall],
        choices: Choices,
        communicators: Mapping[int, Communicator],
    ) -> None:
        super().__init__(job, host, f"rank {number}")
        self.number, self.spec, self.calls = number, spec, calls
        self.communicators = communicators
        self.collectives = Collectives(self, choices, communicators)
        self.one_sided = OneSided(self, spec.one_sided_same, spec.one_sided_remote)
        self.out: Any = {}
        self.bulk: Any = {}
        self.now_at: TracedCall | None = None
        self.call_began = 0
        self.finished = False
        self.end = 0
        self.count = SimpleNamespace(mpi=0, compute=0, sent=0, received=0, bytes_sent=0, bytes_received=0)
        self.returned: list[tuple[int, int, int]] = []
        self.filed: list[Filed] = []
        self.posted: list[Request] = []
        self.unexpected: list[MpiMessage] = []
        self.unexpected_bytes = 0
        self.open_sends = 0
        self.bulk_waiting: dict[int, deque[MpiMessage]] = {}
        self.bulk_active: set[int] = set()
        self.tests = 0

    # ---------------------------------------------------------------------------------------------------------- its calls

    def main(self) -> Steps:
        """All calls, then whatever its sends still need (MPI 1.1, 7.5: MPI_Finalize completes them), then answers until the job is over."""
        for call in self.calls:
            self.now_at = call
            began = self.call_began = self.loop.now
            if call.name.startswith("mark "):
                self.job.marks.append((self.number, call.name[5:], began))
                continue
            yield from self.execute(call)
            self.returned.append((call.line, began, self.loop.now))
            if call.computes:
                self.count.compute += self.loop.now - began
            else:
                self.count.mpi += self.loop.now - began
        self.call_began = self.loop.now
        yield from self.finish_pending()
        self.now_at = None
        self.finished = True
        self.end = self.loop.now
        if all(rank.finished for rank in self.job.ranks):
            self.loop.stopped = True
        while True:
            if self.inbox:
                yield from self.absorb()
            else:
                yield from self.thread.wait(SimpleNamespace(kind="block", poll_cost=0, poll_call=0))

    @property
    def loop(self) -> Any:
        """The clock."""
        return self.job.loop

    def execute(self, call: TracedCall) -> Steps:
        """One call."""
        name = call.name
        if name == "compute":
            yield from self.compute_operations(call.amount)
        elif name == "kernel":
            seconds = self.spec.kernels[call.more["kernel"], call.size]
            yield from self.busy(call.amount * seconds[self.job.hosts.index(self.host)])
        elif is_one_sided(name):
            yield from self.one_sided.call(call)
        elif is_collective(name):
            yield from self.collectives.call(call)
        elif name == "sleep":
            self._countable(call.amount)
            yield from self.thread.sleep(picoseconds(call.amount))
        elif name == "finalize":
            yield from self.finish_pending()
        elif name == "sendRecv":
            yield from self.send_and_receive(call)
        elif name in SENDS or name == "recv":
            request = self.new_request("receive" if name == "recv" else "send", self.context(call))
            yield from self.begin(call, request)
            yield from self.wait(request)
        elif name in ISENDS or name == "irecv":
            request = self.new_request("receive" if name == "irecv" else "send", self.context(call))
            self.file(call, request)
            yield from self.begin(call, request)
        elif name in PERSISTENT:
            kind = "receive" if name == "recvInit" else "send"
            context = self.context(call)
            self.file(call, Request(kind, call.peer, call.tag, context, call.size, PERSISTENT[name], True, True, False))
        elif name in ("probe", "iprobe"):
            yield from self.probe(call)
        elif name == "wait":
            yield from self.wait_for(call)
        elif name == "test":
            yield from self.test(call)
        elif name == "start":
            filed = self.find(call)
            if filed is None or filed.request is None or not filed.request.persistent or filed.request.active:
                raise NotCovered(f"line {call.line}: no inactive persistent request of this key")
            yield from self.start(filed, (call.more["from"], call.more["mtag"]) if "from" in call.more else None)
        elif name == "startall":
            yield from self.start_several(call)
        elif name == "requestFree":
            filed = self.find(call)
            if filed is None:
                raise NotCovered(f"line {call.line}: no request of this key")
            self.filed.remove(filed)
        elif name in SEVERAL:
            yield from self.complete_listed(call) if "reqs" in call.more else self.complete_all(call)

    @staticmethod
    def new_request(kind: str, context: int = 0) -> Request:
        """A request that nothing has happened to yet."""
        return Request(kind, context=context)

    def context(self, call: TracedCall) -> int:
        """What tells the messages of the program over a call's communicator from all others."""
        return self.communicators[call.more.get("comm", 0)].program

    def compute_operations(self, amount: float) -> Steps:
        """Computes so many operations."""
        yield from self.busy(amount * self.spec.compute_scale / self.host.spec.flops)

    def busy(self, seconds: float) -> Steps:
        """Computes for so long, in parts of a day or so."""
        while seconds > 0:
            self._countable(seconds)
            part = min(seconds, 1e5)
            seconds -= part
            yield from self.thread.run(picoseconds(part), self.spec.memory_share)

    def _countable(self, seconds: float) -> None:
        if self.loop.now / 1e12 + seconds >= LONGEST:
            raise NotCovered("the simulated time would pass 4e6 s, the longest that can be counted")

    def begin(self, call: TracedCall, request: Request) -> Steps:
        """Begins the send or receive of a call."""
        if request.kind == "send":
            mode = (SENDS | ISENDS)[call.name]
            yield from self.isend(request, call.peer, call.tag, call.size, mode)
        else:
            source, tag = self.recorded_choice(call, call.peer, call.tag)
            yield from self.irecv(request, source, tag, call.size)

    def recorded_choice(self, call: TracedCall, source: int, tag: int) -> tuple[int, int]:
        """The message that a receive with a wildcard took when it was recorded, unless the question leaves wildcards free."""
        if "from" in call.more and not self.spec.free_wildcards:
            return call.more["from"], call.more["mtag"]
        return source, tag

    def send_and_receive(self, call: TracedCall) -> Steps:
        """MPI_Sendrecv: posts the receive, sends, waits for the send, then for the receive."""
        receive, send = self.new_request("receive", self.context(call)), self.new_request("send", self.context(call))
        source, tag = self.recorded_choice(call, call.peer2, call.more["rtag"])
        yield from self.irecv(receive, source, tag, call.size2)
        yield from self.isend(send, call.peer, call.more["stag"], call.size, "standard")
        yield from self.wait(send)
        yield from self.wait(receive)

    def probe(self, call: TracedCall) -> Steps:
        """A probe waits until a message is there; so does an iprobe that is recorded as successful. One that failed, or whose outcome is
        unknown, is one look."""
        source, tag = self.recorded_choice(call, call.peer, call.tag)
        want = Request("receive", source, tag, self.context(call))
        yield from self.library_call(*self.spec.test)
        if source == PROC_NULL:
            return
        if call.name == "probe" or call.more.get("flag") is True:
            if call.name == "iprobe":
                yield from self.progress()
            yield from self.drive(lambda: any(fits(want, m) for m in self.unexpected), self.spec.recv_wait)
        else:
            yield from self.progress()

    # ---------------------------------------------------------------------------------------------------------- the library

    def library_call(self, work: int, system: int = 0) -> Steps:
        """The library's work in one call; a library with a lock pays for taking it each time (no other thread of its process wants it)."""
        lock_work, lock_system = self.spec.lock
        if lock_work or lock_system or work or system:
            for ps in (self.host.work(lock_work), self.host.service(lock_system), self.host.work(work), self.host.service(system)):
                yield from self.thread.run(ps)

    def progress(self) -> Steps:
        """Takes in everything that has arrived. Where a look at the network is not in every poll, what has come over it stays until
        then."""
        every = self.spec.recv_wait.look_every
        self.tests += every > 1
        look = every <= 1 or self.tests % every == 0

        def network(token: tuple[Channel, Any]) -> bool:
            return bool(token[0].spec.medium == "stream")

        if look and every > 1 and not any(map(network, self.inbox)):
            yield from self.thread.run(self.host.service(self.spec.recv_wait.look_cost))
        while True:
            token = next((t for t in self.inbox if look or not network(t)), None)
            if token is not None:
                self.inbox.remove(token)
                self.inbox.appendleft(token)
                yield from self.absorb()
            elif self.collectives.can_advance():
                yield from self.collectives.advance_all()
            else:
                return

    def drive(self, condition: Callable[[], bool], policy: Values) -> Steps:
        """Waits in a call of the library until the condition holds: takes in what arrives, and takes the steps of collectives. While a
        packet waits for space in its channel (`Process.until`) no collective goes on."""
        while not condition():
            if self.collectives.can_advance():
                yield from self.collectives.advance_all()
            elif self.inbox:
                yield from self.absorb()
            else:
                yield from self.thread.wait(policy)

    def wait(self, request: Request) -> Steps:
        """Waits for one request, by the policy of sends or of receives."""
        policy = self.spec.send_wait if request.kind == "send" else self.spec.recv_wait
        yield from self.drive(lambda: request.done, policy)

    def finish_pending(self) -> Steps:
        """The operations that MPI_Finalize waits for."""
        yield from self.drive(lambda: self.open_sends == 0 and not self.collectives.running, self.spec.send_wait)

    def near(self, other: int) -> bool:
        """Whether a rank is on the same host."""
        return self.job.ranks[other].host is self.host

    def staging(self, peer: int) -> Values:
        """How messages with a rank pass through the library's own memory."""
        return self.spec.staging_same if self.near(peer) else self.spec.staging_remote

    def plain_copy(self, size: int, copies: float = 1, passing: float = 0) -> CopyCost:
        """A copy between two places of its own memory."""
        both = 2.0 * size + passing
        return self.host.copy_cost(size, CopySide(both, both), CopySide(both, both)).times(copies)

    def stage(self, message: MpiMessage, copies: float, byte: float) -> Steps:
        """Packs or unpacks a message; what its channel holds of it passes the cache as well."""
        yield from self.thread.run(self.host.work(int(byte * message.size)))
        if copies > 0:
            sends = message.src == self.number
            channel = self.out[message.dst if sends else message.src]
            yield from self.thread.copy(self.plain_copy(message.size, copies, channel.holds(message.size, sends)))

    def conversion(self, peer: int, size: int) -> int:
        """Converting data of a rank whose byte order is another, a buffer of ``convert_buffer`` bytes at a time."""
        spec = self.spec
        if spec.convert_buffer <= 0 or self.job.ranks[peer].host.spec.byte_order == self.host.spec.byte_order:
            return 0
        buffers = (size + spec.convert_buffer - 1) // spec.convert_buffer
        return self.host.work(int(spec.convert_byte * size) + buffers * spec.convert_call)

    # ---------------------------------------------------------------------------------------------------------- sending

    def isend(self, request: Request, target: int, tag: int, size: int, mode: str) -> Steps:
        """Begins a send: the library's call, a copy into the attached buffer (buffered: the request is complete then, MPI 1.1, 3.4),
        packing, and the first packet."""
        request.kind, request.peer, request.tag, request.size, request.mode, request.done = "send", target, tag, size, mode, False
        if target == PROC_NULL:
            request.done = True
            return
        m = MpiMessage(self.number, target, tag, request.context, size, self.now_at.line if self.now_at else 0, self.loop.now)
        m.synchronous = mode == "synchronous"
        to_self = target == self.number
        own = self.staging(target)
        if not to_self:
            m.packed, m.unpacked = own.packs(size), own.unpacks(size)
        m.send = request
        self.job.messages.append(m)
        self.job.count.messages += 1
        self.job.count.bytes += size
        if request.context % 2 == 0:  # the program's own messages; those of collectives have odd contexts
            self.job.count.own_bytes += size
        self.count.sent += 1
        self.count.bytes_sent += size
        self.open_sends += 1
        if mode == "buffered" or to_self or any(self.spec.lock) or self.spec.send_cpu or own.packs(size):
            yield from self.library_call(self.spec.send_cpu)
            if mode == "buffered":
                yield from self.thread.copy(self.plain_copy(size))
                request.done = True
                m.send = None
            if to_self:
                yield from self.library_call(self.spec.recv_cpu)
                m.sent_all = True
                yield from self.from_self(m)
                return
            if own.packs(size):
                yield from self.stage(m, own.packed(size), own.byte)
        kind = next(kind for low, high, kind in (self.spec.same if self.near(target) else self.spec.remote) if low <= size < high)
        m.rendezvous, m.direct = kind != "eager", kind == "direct"
        if not m.rendezvous:
            yield from self.push_data(m)
        else:
            m.asked = 0 if m.direct else min(size, own.ask)
            yield from self.post(self.out[target], Packet(m, m.asked, self.number, target, "rts"))

    def push_data(self, m: MpiMessage) -> Steps:
        """The data of a message, packet by packet: by the path for the data of a rendezvous, where there is one."""
        bulk = self.bulk[m.dst] if m.rendezvous else None
        channel = bulk or self.out[m.dst]
        packet = channel.packet_of(m)
        left, first = m.size - m.asked, True
        while first or left > 0:
            size = min(left, channel.first_of(m, packet) if first else packet)
            yield from self.thread.run(self.conversion(m.dst, size))
            left -= size
            yield from self.post(channel, Packet(m, size, self.number, m.dst, "data", first, left == 0))
            first = False

    def send_cleared(self, m: MpiMessage) -> Steps:
        """The receiver is ready. Where two ranks of a host have a buffer of their own for the data of a rendezvous, one message goes
        through it at a time; others wait for their turn."""
        if not self.bulk[m.dst]:
            yield from self.push_data(m)
            return
        waiting = self.bulk_waiting.setdefault(m.dst, deque())
        waiting.append(m)
        if m.dst in self.bulk_active:
            return
        self.bulk_active.add(m.dst)
        while waiting:
            yield from self.push_data(waiting.popleft())
        self.bulk_active.discard(m.dst)

    def on_sent(self, message: MpiMessage) -> None:
        message.sent_all = True
        self.try_complete(message)

    def try_complete(self, m: MpiMessage) -> None:
        """A send is complete when its data have left, and a synchronous one when it has been matched besides. A rendezvous needs no word
        about that: it was matched before its data left."""
        if m.send_complete or not m.sent_all or (m.synchronous and not m.rendezvous and not m.acked):
            return
        m.send_complete = True
        self.open_sends -= 1
        if m.send:
            m.send.done = True
            m.send = None

    # ---------------------------------------------------------------------------------------------------------- receiving

    def irecv(self, request: Request, source: int, tag: int, size: int) -> Steps:
        """Takes the first message that fits out of those that have arrived, or is posted."""
        request.kind, request.peer, request.tag, request.size, request.done = "receive", source, tag, size, False
        request.line = self.now_at.line if self.now_at else 0
        if source == PROC_NULL:
            request.done = True
            return
        message = next((m for m in self.unexpected if fits(request, m)), None)
        if message is None:
            self.posted.append(request)
            return
        self.unexpected.remove(message)
        message.receive = request
        yield from self.on_match(message)

    def arrive_envelope(self, m: MpiMessage) -> None:
        """An envelope has come: it takes the first posted receive that fits, or waits for one."""
        m.envelope_known = True
        request = next((r for r in self.posted if fits(r, m)), None)
        if request is None:
            self.unexpected.append(m)
        else:
            self.posted.remove(request)
            m.receive = request

    def handle(self, packet: Packet) -> Steps:
        """A packet has been taken out of its channel. The work of matching and completing (``recv_cpu``) is charged here and not when the
        receive is posted: there it would overlap the wait for the message, and a PingPong would not show it. An envelope is matched
        first, and its data are converted then."""
        m, kind = packet.message, packet.kind
        begins = packet.first and (kind == "rts" or (kind == "data" and not m.rendezvous))
        if begins and (any(self.spec.lock) or self.spec.recv_cpu):
            yield from self.library_call(self.spec.recv_cpu)
        if kind == "data" and not packet.held and (converts := self.conversion(m.src, packet.size)):
            if not m.envelope_known:
                self.arrive_envelope(m)
            yield from self.thread.run(converts)
        match kind:
            case "rts":
                self.arrive_envelope(m)
                m.arrived += packet.size
                if packet.size > 0 and not m.receive:
                    self.keep_unexpected(m, packet.size)
                if m.receive:
                    yield from self.on_match(m)
            case "cts":
                yield from self.send_cleared(m)
            case "done":
                self.on_sent(m)
            case "ack":
                m.acked = True
                self.try_complete(m)
            case "data":
                yield from self.on_data(m, packet)

    def on_match(self, m: MpiMessage) -> Steps:
        """A receive and a message have met: the protocol's next step."""
        self._check_length(m)
        if m.direct:
            yield from self.copy_directly(m)
        elif m.rendezvous:
            yield from self.clear_to_send(m)
        elif m.in_pool or m.unexpected > 0 or (m.synchronous and not m.ack_sent):
            yield from self.take_unexpected(m)
        elif m.arrived == m.size and not m.delivered:
            yield from self.finish(m)

    def clear_to_send(self, m: MpiMessage) -> Steps:
        """Answers a request to send; what it carried of the data is copied first."""
        size, m.unexpected = m.unexpected, 0
        if size > 0:
            self.unexpected_bytes -= size
            if not self.unpacks(m):
                yield from self.thread.copy(self.plain_copy(size))
        yield from self.post(self.out[m.src], Packet(m, 0, self.number, m.src, "cts"))

    def take_unexpected(self, m: MpiMessage) -> Steps:
        """Data that have waited in the pool are fetched, those in the library's buffer are copied once more; a synchronous send is told."""
        while m.in_pool:
            channel, place, size = m.in_pool.pop(0)
            yield from channel.fetch(m, place, size)
            m.arrived += size
        size, m.unexpected = m.unexpected, 0
        if size > 0:
            self.unexpected_bytes -= size
            if not self.unpacks(m):  # else it stays there until it is complete, as every message
                yield from self.thread.copy(self.plain_copy(size))
        if m.synchronous and not m.ack_sent:
            m.ack_sent = True
            if m.src == self.number:
                m.acked = True
                self.try_complete(m)
            else:
                yield from self.post(self.out[m.src], Packet(m, 0, self.number, m.src, "ack"))
        if m.arrived == m.size and not m.in_pool and not m.delivered:
            yield from self.finish(m)

    def on_data(self, m: MpiMessage, packet: Packet) -> Steps:
        """Data of a message have been copied out of their channel."""
        if not m.envelope_known:
            self.arrive_envelope(m)
        if packet.held:
            return
        m.arrived += packet.size
        if not m.receive:
            self.keep_unexpected(m, packet.size)
            return
        self._check_length(m)
        if m.synchronous and not m.ack_sent and not m.rendezvous:
            yield from self.on_match(m)
        elif m.arrived == m.size:
            yield from self.finish(m)

    def copy_directly(self, m: MpiMessage) -> Steps:
        """The receiver copies out of the sender's buffer, by a system call, and tells it. Either side of the copy is used again after as
        many bytes as both buffers have; through the first-level cache the message's envelope passes as well. The sender's core is taken to
        have read its buffer last (``clean``)."""
        sender = self.job.ranks[m.src]
        near = 2 * float(m.size) + float(self.out[m.src].spec.header)
        source, target = CopySide(near, 2 * float(m.size), "clean"), CopySide(near, 2 * float(m.size))
        yield from self.thread.run(self.host.spec.syscall + self.host.service(self.spec.direct_call))
        kin = self.host.kinship(self.core, sender.core)
        yield from self.copy(self.host.copy_cost(m.size, source, target, kin), sender.core)
        m.arrived = m.size
        yield from self.post(self.out[m.src], Packet(m, 0, self.number, m.src, "done"))
        self.complete(m)

    def from_self(self, m: MpiMessage) -> Steps:
        """A message of a rank to itself is in the library's buffer at once."""
        m.arrived = m.unexpected = m.size
        self.unexpected_bytes += m.size
        self.arrive_envelope(m)
        if not m.synchronous:
            self.try_complete(m)
        if m.receive:
            yield from self.on_match(m)

    def unpacks(self, m: MpiMessage) -> bool:
        """Whether a message goes through another buffer of its length here."""
        return m.src != self.number and bool(self.staging(m.src).unpacks(m.size))

    def finish(self, m: MpiMessage) -> Steps:
        """All of a message has arrived and is matched."""
        if self.unpacks(m):
            own = self.staging(m.src)
            yield from self.stage(m, own.unpacked(m.size), own.byte)
        self.complete(m)

    def complete(self, m: MpiMessage) -> None:
        """A message has been received."""
        m.delivered, m.received = True, self.loop.now
        m.receive.done = True
        m.receive_line = m.receive.line
        m.receive = None
        self.count.received += 1
        self.count.bytes_received += m.size
        self.job.count.delivered += 1
        self.job.count.delivered_bytes += m.size

    def leave_in_pool(self, packet: Packet) -> bool:
        """Data that no receive waits for stay in the pool."""
        if packet.kind != "data":
            return False
        if not packet.message.envelope_known:
            self.arrive_envelope(packet.message)
        return packet.message.receive is None

    def keep_unexpected(self, m: MpiMessage, size: int) -> None:
        """Data without a receive are kept in the library's memory; some libraries bound it (``unexpected_limit``, 0: no bound)."""
        m.unexpected += size
        self.unexpected_bytes += size
        limit = self.spec.unexpected_limit
        if 0 < limit < self.unexpected_bytes:
            raise Abort(f"the fixed buffer of rank {self.number} for unexpected messages ({limit} B) overflows with a "
                        f"message of {m.size} B from "
                        f"rank {m.src}")

    def _check_length(self, m: MpiMessage) -> None:
        if 0 <= m.receive.size < m.size:
            raise Abort(f"message of {m.size} B from rank {m.src} to rank {m.dst} (tag {m.tag}) is longer than the receive buffer of "
                        f"{m.receive.size} B (MPI_ERR_TRUNCATE)")

    # ---------------------------------------------------------------------------------------------------------- requests

    def file(self, call: TracedCall, request: Request) -> None:
        """The trace knows a request by its number, or by its key."""
        key = (self.number, call.peer, call.tag) if request.kind == "send" else (call.peer, self.number, call.tag)
        if request.kind in ("collective", "one-sided"):
            key = (0, self.number, 0)
        self.filed.append(Filed(key, call.more.get("req", 0), request))

    def find(self, call: TracedCall) -> Filed | None:
        """The request of a call: the one with its number, if the line has one. Without a number the oldest of its key; one whose test
        succeeded is dropped if another of this key has been posted since. By key, an inactive persistent request is found only to be
        started (MPI 1.1, 3.9) or freed."""
        number = call.more.get("req", 0)
        if number > 0:
            return self.find_request(number)
        key = (call.peer, call.peer2, call.tag)
        mine = [filed for filed in self.filed if filed.key == key]
        if call.name == "start":
            return next((f for f in mine if f.request and f.request.persistent and not f.request.active), None)
        for i, filed in enumerate(mine):
            r = filed.request
            if r is None and filed.succeeded and any(f.request and (not f.request.persistent or f.request.active) for f in mine[i + 1 :]):
                self.filed.remove(filed)
            elif r is None or not r.persistent or r.active or call.name == "requestFree":
                return filed
        return None

    def find_request(self, number: int) -> Filed | None:
        """The request with a number; None: an earlier test or wait has completed it."""
        return next((filed for filed in self.filed if filed.number == number), None)

    def retire(self, filed: Filed) -> None:
        """A complete request is gone; a persistent one is inactive."""
        if filed.request and filed.request.persistent:
            filed.request.active = False
        else:
            self.filed.remove(filed)

    def wait_for(self, call: TracedCall) -> Steps:
        """MPI_Wait. It returns at once for an inactive persistent request (MPI 1.1, 3.9) and for one that a test has completed."""
        filed = self.find(call)
        if filed is None:
            return
        if filed.request is None:
            self.filed.remove(filed)
            return
        if filed.request.persistent and not filed.request.active:
            return
        yield from self.wait(filed.request)
        self.retire(filed)

    def test(self, call: TracedCall) -> Steps:
        """MPI_Test: one look. A recorded success completes its request, and waits if that is necessary; a recorded failure does not. A
        request that a test has completed is filed again, behind the others of its key, for the wait that the program may still make."""
        filed = self.find(call)
        if filed is not None and filed.request is None:  # tested again
            self.filed.remove(filed)
            self.filed.append(Filed(filed.key, 0, None, call.more.get("flag") is True))
            filed = None
        yield from self.library_call(*self.spec.test)
        yield from self.progress()
        if filed is None or call.more.get("flag") is False:
            return
        request = filed.request
        assert request is not None
        if call.more.get("flag") is True and (not request.persistent or request.active):
            yield from self.wait(request)
        if not request.done:
            return
        if call.more.get("req", 0) == 0 and not request.persistent:
            filed.request, filed.number, filed.succeeded = None, 0, call.more.get("flag") is True
        else:
            self.retire(filed)

    def complete_listed(self, call: TracedCall) -> Steps:
        """Calls on the requests that a line names. What it completed was recorded, or is decided now: the first that is complete, or all
        that are."""
        name, named = call.name, call.more["reqs"]
        looks = name.startswith("test")
        told = "done" in call.more or "flag" in call.more
        if looks:
            yield from self.library_call(*self.spec.test)
            yield from self.progress()

        def active(r: Request) -> bool:
            return not r.persistent or r.active

        completed = call.more.get("done", [])
        if name == "waitall" or (name == "testall" and call.more.get("flag") is True):
            completed = named
        elif not told:
            there = [(n, f.request) for n in named if (f := self.find_request(n)) and f.request]

            def complete(r: Request) -> bool:
                return active(r) and r.done

            if not looks and any(active(r) for _, r in there):
                yield from self.drive(lambda: any(complete(r) for _, r in there), self.spec.recv_wait)
            completed = []
            if name != "testall" or all(r.done for _, r in there):
                completed = [n for n, r in there if complete(r)]
                if name in ("waitAny", "testany"):
                    completed = completed[:1]
        for number in completed:
            filed = self.find_request(number)
            if filed and filed.request and active(filed.request):
                yield from self.wait(filed.request)
                filed.number = filed.number if filed.request.persistent else -1  # -1: goes below
                if filed.request.persistent:
                    filed.request.active = False
        self.filed = [f for f in self.filed if f.number != -1]

    def complete_all(self, call: TracedCall) -> Steps:
        """Calls on all outstanding requests of the rank."""
        name = call.name

        def live() -> list[Filed]:
            return [f for f in self.filed if f.request and f.request.active]

        if name == "waitall":
            for filed in list(self.filed):
                if filed.request and (not filed.request.persistent or filed.request.active):
                    yield from self.wait(filed.request)
            for filed in list(self.filed):
                self.retire(filed)
        elif name in ("waitAny", "waitsome"):
            if live():
                yield from self.drive(lambda: any(f.request and f.request.done for f in live()), self.spec.recv_wait)
                self.retire_complete(one=name == "waitAny")
        else:
            yield from self.library_call(*self.spec.test)
            yield from self.progress()
            if call.more.get("flag") is False:
                return
            if call.more.get("flag") is True and name == "testall":
                for filed in live():
                    assert filed.request is not None
                    yield from self.wait(filed.request)
            if name == "testall" and any(f.request and not f.request.done for f in live()):
                return
            self.retire_complete(one=name == "testany")

    def retire_complete(self, one: bool) -> None:
        """Retires the requests that are complete, or the first of them."""
        for filed in list(self.filed):
            if filed.request and filed.request.active and filed.request.done:
                self.retire(filed)
                if one:
                    return

    def start(self, filed: Filed, matched: tuple[int, int] | None) -> Steps:
        """MPI_Start of a persistent request; it keeps the wildcards that a recorded match replaces."""
        r = filed.request
        assert r is not None
        r.active = True
        if r.kind == "send":
            yield from self.isend(r, filed.key[1], filed.key[2], r.size, r.mode)
        else:
            source, tag = matched if matched and not self.spec.free_wildcards else (filed.key[0], filed.key[2])
            yield from self.irecv(r, source, tag, r.size)

    def start_several(self, call: TracedCall) -> Steps:
        """MPI_Startall: of those named, or of every inactive one."""
        if "reqs" not in call.more:
            for filed in list(self.filed):
                if filed.request and filed.request.persistent and not filed.request.active:
                    yield from self.start(filed, None)
            return
        for number in call.more["reqs"]:
            named = self.find_request(number)
            if named is None or not named.request or not named.request.persistent or named.request.active:
                raise NotCovered(f"line {call.line}: request {number} cannot be started")
            yield from self.start(named, call.more.get("matched", {}).get(number))
