"""The media that carry messages, and the wait policies of processes, with one declaration per field.

The path of a message is a list of media, one per hop. Each medium accepts only its own fields: ``Ring(..., nagle=True)`` raises
TypeError. Sizes are bytes, rates bytes per second. A time that is work of a processor or a service of the operating system (``scale``) is
in seconds on the reference host, `retrompi.spec.host`, and the engine charges what it takes on the host at hand; other times are
seconds as they are. A value outside its declared bounds raises UsageError. The engine's structs and their readers are generated from
these classes (`retrompi.spec.compiled.cpp`); docs/add-a-parameter.md walks through adding a field and a medium.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from retrompi.base.errors import UsageError
from retrompi.base.units import NO_LIMIT
from retrompi.spec.declare.fields import Use, choice, fields_of, flag, quantity, to_engine, whole, word

__all__ = ["BINOMIAL", "BLOCK", "MEDIA", "NO_LIMIT", "Broadcast", "Datagram", "Dma", "Medium", "OneSided", "Pool", "Ring", "SampledCurve",
           "Stream", "WaitPolicy", "calls_system"]


class Checked:
    """Base of declarations that validate their values on construction; raises UsageError."""

    __slots__ = ()

    def __post_init__(self) -> None:
        what = getattr(self, "name", type(self).__name__.lower())
        for name, field in fields_of(type(self)).items():
            value = getattr(self, name)
            if not (field.optional and value == field.default):
                field.check(value, f"{what}: {name}")


def calls_system(part: Any) -> bool:
    """Whether a medium or wait policy has a cost that is a service of the operating system."""
    return any(f.scale == "os" and getattr(part, name) > 0 for name, f in fields_of(type(part)).items())


@dataclass(frozen=True, slots=True)
class WaitPolicy(Checked):
    """How a process waits: it blocks, polls without a break, yields the processor after so many polls, or looks again in a period."""

    kind: str = choice("how it waits", ("block", "spin", "spin_yield", "poll"), enum="WaitKind", default="block")
    _: KW_ONLY
    polls: float = whole("polls before the processor is offered to others (spin_yield)", default=1)
    poll_cost: float = quantity("s", "one look at the queues", scale="work", default=0.0)
    poll_call: float = quantity("s", "the system's part of one look at the queues", scale="os", default=0.0)
    period: float = quantity("s", "time-out asked of the system (poll); it ends on a clock tick", scale="time", default=0.0)
    look_every: float = whole("polls of shared memory for one look at the network", low=1, default=1)
    look_cost: float = quantity("s", "a look at the network that finds nothing, where it is not in every poll", scale="os", default=0.0)

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if self.look_every > 1 and self.poll_cost + self.poll_call <= 0:
            raise UsageError("wait: look_every above 1 needs a poll_cost above 0", code="out-of-range")


BLOCK = WaitPolicy()


@dataclass(frozen=True, slots=True)
class Medium(Checked):
    """One hop of a message's path; what all media have in common."""

    name: ClassVar[str] = ""

    between: tuple[str, str] = word("the processes at its ends: rank, NAME@src or NAME@dst", cpp="Ends")
    packet: float = quantity("B", "largest payload of a packet", low=1, kw_only=True)
    header: float = quantity("B", "header of a packet", kw_only=True)

    def uses(self, remote: bool) -> set[Use]:
        """The kinds of work it causes on the processors and network of a platform; ``remote``: between two hosts, else within one."""
        return ({Use.WIRE} if remote else set()) | ({Use.CALLS} if calls_system(self) else set())

    def to_engine(self) -> dict[str, Any]:
        """The channel specification read by the engine."""
        return {"medium": self.name, **to_engine(self)}

    @staticmethod
    def of(row: Mapping[str, Any]) -> Medium:
        """The inverse of `to_engine`."""
        cls: Any = MEDIA[row["medium"]]
        given = {name: row[name] for name in fields_of(cls)}
        made: Medium = cls(**{name: WaitPolicy(**value) if name == "space_wait" else value for name, value in given.items()})
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied(Medium):
    """A medium that the processor copies packets into and out of.

    The working set of a copy consists of the channel's memory and of the message's buffers, which compete for the same cache: those of
    both ranks if they share it. A process that only passes packets on uses the buffer of a packet.
    """

    copies_in: float = quantity("count", "copies of a packet at the sender", default=1.0, low=0)
    copies_out: float = quantity("count", "copies of a packet at the receiver", default=1.0, low=0)
    send_cpu: float = quantity("s", "library work of a packet at the sender", scale="work", default=0.0)
    recv_cpu: float = quantity("s", "library work of a packet at the receiver", scale="work", default=0.0)
    space_wait: WaitPolicy = word("how a sender waits for room", default=BLOCK, cpp="WaitPolicy")  # noqa: RUF009

    def uses(self, remote: bool) -> set[Use]:
        return Medium.uses(self, remote) | {Use.COPIES}


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedMemory(Copied):
    """Memory that processes of one host share: the sender copies in, links and signals; the receiver copies out and frees."""

    event: float = quantity("s", "signalling the receiver", scale="os", default=0.0)
    take_call: float = quantity("s", "system calls of the receiver for a packet", scale="os", default=0.0)
    by_event: bool = flag("0 when the receiver finds a packet only when it looks", default=True)
    progress: bool = flag("1 when a sender that waits for room takes in packets meanwhile", default=True)
    lock: bool = flag("1 when copies in and out are made one at a time on a host", default=False)
    until_taken: bool = flag("1 when a sender waits until its packet has been copied out", default=False)
    ws_message: float = quantity("count", "buffers of a message's size in a cache that both ranks use", default=2.0, low=0)
    pack: float = quantity("count", "copies in the sender's own memory before those in, outside the lock", default=0.0, low=0)
    unpack: float = quantity("count", "copies in the receiver's own memory after those out, outside the lock", default=0.0, low=0)

    def uses(self, remote: bool) -> set[Use]:
        return Copied.uses(self, remote) | {Use.CACHES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool(SharedMemory):
    """Shared memory with an allocator of size classes, as p4's: a packet takes a buffer of the next class out of a host's pool."""

    name: ClassVar[str] = "pool"

    pool: float = quantity("B", "memory of the pool, a host")
    classes: tuple[int, ...] = word("sizes of its buffers, rising (B); a larger request is cut out as it is", cpp="std::vector<int64_t>")
    prefix: float = quantity("B", "the allocator's header before each buffer", default=0.0)
    exhausted_aborts: bool = flag("1 when no room ends the job, unless the receiver has agreed to take the message", default=False)
    hold_unexpected: bool = flag("1 when a packet that no receive waits for stays in the pool", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring(SharedMemory):
    """Shared memory cut into slots of a packet for each receiving process (or for each sending one)."""

    name: ClassVar[str] = "ring"

    slots: float = whole("packets that it holds", low=1)
    slots_of_sender: bool = flag("1 when the slots belong to the sending process", default=False)
    one_message: bool = flag("1 when a message enters only when the one before has left", default=False)
    short_packet: float = quantity("B", "largest payload of a packet of a short message; 0: as of any other", default=0.0)
    short_until: float = quantity("B", "size up to which a message is short", default=0.0)
    ws_packet: float = quantity("count", "packets in use in turn; 0: all its slots", default=0.0, low=0)
    alone: float = quantity("B", "size above which a message's header goes alone, as a packet before its data; 0: none", default=0.0)
    cores: bool = flag("1 when its memory lies in the caches of the cores that use it", default=False)
    lines_in: float = whole("cache lines of the other core that queueing a packet touches (cores)", default=0)
    lines_out: float = whole("cache lines of the other core that taking out a packet touches (cores)", default=0)

    def uses(self, remote: bool) -> set[Use]:
        return SharedMemory.uses(self, remote) | ({Use.CORES} if self.cores else set())


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream(Copied):
    """A TCP connection."""

    name: ClassVar[str] = "stream"

    call: float = quantity("s", "library work of a socket call beside the bare system call", scale="work")
    message_cpu: float = quantity("s", "library work at either end of a message, whatever its length", scale="work", default=0.0)
    message_call: float = quantity("s", "system calls at either end of a message, whatever its length", scale="os", default=0.0)
    connect: float = quantity("s", "opening the connection, on its first use", scale="os", default=0.0)
    domain: str = choice(
        "inet: TCP; unix: a Unix-domain socket between two processes of one host, without the protocol stack", ("inet", "unix"),
        enum="SocketDomain", default="inet",
    )
    calls_out: float = quantity("count", "system calls of a write: itself, the select before it (not with io async)", default=1.0, low=1)
    calls_in: float = quantity("count", "system calls of a read: itself and the select before it (not with io async)", default=1.0, low=1)
    message_header: float = quantity("B", "more header in a packet that begins a message", default=0.0)
    io: str = choice(
        "how the library drives the socket: it waits in each call; it writes and reads what is possible whenever it runs; the system "
        "moves the data and tells of completed operations; a signal handler moves the data (SIGIO)",
        ("blocking", "nonblocking", "async", "signal"),
        enum="SocketIo",
        default="blocking",
    )
    first_read: float = quantity("B", "buffer that a message's beginning is read into (io nonblocking or async)", default=0.0)
    sndbuf: float = quantity("B", "send buffer; 0: the host's", default=0.0)
    rcvbuf: float = quantity("B", "receive buffer; 0: the host's window", default=0.0)
    nagle: bool = flag("1 when a short segment waits for what is not acknowledged", default=False)
    header_write: bool = flag("1 when header and data are two writes", default=False)
    header_write_above: float = quantity("B", "data of a first packet up to which they are one write all the same", default=0.0)
    signal: float = quantity("s", "delivering a signal and returning from its handler (io signal)", scale="os", default=0.0)
    header_read: bool = flag("1 when a packet's header is read by itself (io blocking)", default=False)
    by_segment: bool = flag("1 when the system sends each segment as soon as a write has copied it (io blocking)", default=False)
    credits: float = whole("packets outstanding before the receiver must have taken them in; 0: any number", default=0)
    progress: bool = flag("1 when a sender that waits for room takes in packets meanwhile", default=True)

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if self.io in ("nonblocking", "async") and self.first_read < 1:
            raise UsageError("stream: a socket that does not wait needs a first_read of at least 1 B", code="out-of-range")

    def uses(self, remote: bool) -> set[Use]:
        if self.domain == "unix":
            found = Copied.uses(self, False) | {Use.CALLS}
            return found | (set() if self.sndbuf else {Use.TCP_SEND_BUFFER}) | (set() if self.rcvbuf else {Use.TCP_RECEIVE_BUFFER})
        found = Copied.uses(self, remote) | {Use.TCP, Use.CALLS} | ({Use.TCP_REMOTE, Use.IP} if remote else {Use.TCP_LOCAL})
        return found | (set() if self.sndbuf else {Use.TCP_SEND_BUFFER}) | (set() if self.rcvbuf else {Use.TCP_RECEIVE_BUFFER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Datagram(Copied):
    """UDP with acknowledgement and retry by the processes themselves."""

    name: ClassVar[str] = "datagram"

    call: float = quantity("s", "library work of a socket call beside the bare system call", scale="work")
    timeout: float = quantity("s", "time to the first retry; it doubles with each", scale="time")
    retries: float = whole("retries before the sender gives up")
    window: float = whole("datagrams that may be unacknowledged", low=1, default=1)
    calls_out: float = quantity("count", "system calls of sending a datagram: itself and those before it", default=1.0, low=1)
    calls_in: float = quantity("count", "system calls of receiving one or an acknowledgement: itself and those before", default=1.0, low=1)
    message_header: float = quantity("B", "more header in a packet that begins a message", default=0.0)
    loss: float = quantity("probability", "datagrams lost", default=0.0, high=1)
    duplicate: float = quantity("probability", "datagrams delivered twice", default=0.0, high=1)
    reorder: float = quantity("probability", "datagrams delayed past their successors", default=0.0, high=1)
    reorder_delay: float = quantity("s", "delay of a datagram that is overtaken", scale="time", default=0.0)

    def uses(self, remote: bool) -> set[Use]:
        return Copied.uses(self, remote) | {Use.CALLS} | ({Use.IP, Use.FRAGMENTS} if remote else set())


@dataclass(frozen=True, slots=True, kw_only=True)
class Dma(Copied):
    """From memory to memory without the operating system, by the card or (``cpu_driven``) by the processor itself.

    A message is cut into ``pieces`` of ``piece_min`` to ``piece`` bytes, one of which must have crossed a stage before the next stage
    starts. Rendezvous messages go into the user's buffer after both ends have made it known to the card. A library's ``message_header``
    is in the first packet; a message longer than ``alone`` sends it alone and its data behind it, from memory to memory without a copy.
    A message with such a header is copied as a whole, before its first packet is sent and after its last has come. With ``reads`` the
    request for permission to send says where the data lie: the sender's processor has no part in moving them.
    """

    name: ClassVar[str] = "dma"

    piece: float = quantity("B", "largest piece of a message", low=1)
    piece_min: float = quantity("B", "smallest piece of a message", default=1.0, low=1)
    pieces: float = whole("pieces that a message is cut into, within these sizes", default=1, low=1)
    slots: float = whole("places of a sender at a receiver for messages it has not asked for; 0: any number", default=0)
    rate: float = quantity("B/s", "rate out of the sender's memory; 0: the card's", scale="device", default=0.0)
    cpu_driven: bool = flag("1 when the processor moves the data itself", default=False)
    pio_limit: float = quantity("B", "size up to which the processor writes a message to the card", default=0.0)
    pio_rate: float = quantity("B/s", "rate of that", scale="device", default=1.0, above=0)
    fetch: float = quantity("s", "until the card has the first bytes of what it reads from memory", scale="device", default=0.0)
    pin: float = quantity("s", "making memory known to the card, a call (rendezvous)", scale="os", default=0.0)
    pin_page: float = quantity("s", "making memory known to the card, a page (rendezvous)", scale="os", default=0.0)
    page: float = quantity("B", "size of such a page", default=4096.0, low=1)
    pin_cache: bool = flag("1 when such memory stays known: a longer message pins only what it has more", default=False)
    recv_buffers: float = quantity("B", "buffers of the receiver that the card fills in turn; 0: a packet's", default=0.0)
    sleeps: bool = flag("1 when a receiver that waits sleeps in the system until the card interrupts", default=False)
    told_by: float = quantity("B", "message behind rendezvous data that tells the receiver; 0: the data do", default=0.0)
    interleaved: bool = flag("1 when what fits into a packet of the link goes between the packets of longer messages", default=False)
    reads: bool = flag("1 when the receiver's card reads rendezvous data and the receiver tells the sender when it has them", default=False)
    answer: float = quantity("s", "until the card that is asked for such data has their first byte", scale="device", default=0.0)
    message_header: float = quantity("B", "the library's header of a message, in its first packet", default=0.0)
    alone: float = quantity("B", "size above which an eager message's header goes alone, its data uncopied; 0: none", default=0.0)
    message_cpu: float = quantity("s", "library work of the sender for a message, whatever its length", scale="work", default=0.0)
    fragment: float = quantity("B", "bytes for which the sender's library works once more; 0: none", default=0.0)
    fragment_cpu: float = quantity("s", "that work", scale="work", default=0.0)
    progress: bool = flag("1 when a sender that waits takes in packets meanwhile", default=True)

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if self.reads and (self.cpu_driven or self.sleeps or self.told_by > 0):
            raise UsageError("dma: data that the receiver's card reads need no processor, interrupt or message", code="out-of-range")

    def uses(self, remote: bool) -> set[Use]:
        found = Copied.uses(self, remote) | ({Use.BURSTS, Use.FRAGMENTS} if remote else set())
        return found | ({Use.CALLS, Use.INTERRUPTS} if self.sleeps else set())


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledCurve(Medium):
    """A sampled curve in place of a mechanism (`retrompi.sim.fidelity`)."""

    name: ClassVar[str] = "curve"

    curve: Mapping[str, Any] = word(
        "classes of ranks and the table of each pair of them", cpp="std::shared_ptr<const CurveSet>"
    )
    connect: float = quantity("s", "what the first message between two ranks adds", scale="time", default=0.0)

    def uses(self, remote: bool) -> set[Use]:
        return Medium.uses(self, remote) | (set() if remote else {Use.CORES})


MEDIA: Mapping[str, type[Medium]] = {cls.name: cls for cls in (Pool, Ring, Stream, Datagram, Dma, SampledCurve)}
"""Medium name -> class. A class added here gets a struct in the engine, which must then implement its ``make_chan``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSided(Checked):
    """One-sided operations between two ranks; on one host they are copies."""

    put_rate: float = quantity("B/s", "rate of a put between hosts", scale="device", low=0)
    get_rate: float = quantity("B/s", "rate of a get between hosts", scale="device", low=0)
    cpu: float = quantity("s", "library work of an operation", scale="work")
    latency: float = quantity("s", "until the first byte is on its way; a get pays it before its data set out", scale="device")
    piece: float = quantity("B", "what must have crossed a stage before the next stage starts", low=1)
    fragment: float = quantity("B", "bytes of a put for which the library works once more; 0: none", default=0.0)
    fragment_cpu: float = quantity("s", "that work", scale="work", default=0.0)


@dataclass(frozen=True, slots=True)
class Broadcast(Checked):
    """How a broadcast is made."""

    algorithm: str = word("a tree of messages (binomial), of puts (put_tree), or one shared buffer (by_reference)", default="binomial")
    copies_root: float = quantity("count", "copies of the data at the root", default=0.0, low=0)
    copies_leaf: float = quantity("count", "copies of the data at any other rank", default=0.0, low=0)


BINOMIAL = Broadcast()
