"""The path of a message: what the engine records of each packet, of what crosses cards and wires for it, and of every process meanwhile.

    told = simulate.message_path(Question("wmpi", "nt-pair", Message(100_000)))
    there = told.directions[0]               # from the call of MPI_Send to the return of MPI_Recv
    sum(k.took for k in there.chain) == there.took      # exactly
    [p for p in told.transits if p.sent >= there.begin] # each packet through each channel

Times are whole picoseconds since the start of the run.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["KINDS", "Channel", "Direction", "Link", "MessagePath", "NetworkPacket", "PacketTransit", "Process", "Stretch", "Work"]

KINDS = ("data", "request", "ready", "matched", "done")
"""What a packet is: data; a rendezvous's request to send and its answer; a synchronous send's match; the end of a direct copy."""


@dataclass(frozen=True, slots=True)
class Link:
    """A stretch of the chain of causes: ``stage`` of ``who`` (a process, a host's kernel or card, the wire, the clock)."""

    begin: int
    end: int
    stage: str
    who: str
    process: int
    """Place in `MessagePath.processes`, -1: no process."""
    packet: int
    """Place in `MessagePath.packets`, -1: none."""

    @property
    def took(self) -> int:
        """Picoseconds."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of a message: there, or back. The links of ``chain`` follow each other without a gap from ``begin`` to ``end``."""

    begin: int
    end: int
    chain: list[Link]

    @property
    def took(self) -> int:
        """Picoseconds."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a process did for a time; ``why`` says what it waited for where ``stage`` is ``wait``."""

    begin: int
    end: int
    stage: str
    why: str


@dataclass(frozen=True, slots=True)
class Process:
    """A rank, proxy or daemon, or a thread that is none of the job's (without a name)."""

    name: str
    host: str
    stretches: list[Stretch]


@dataclass(frozen=True, slots=True)
class Channel:
    """A one-way channel between two processes (places in `MessagePath.processes`); ``total`` ``unit`` of ``resource``, if limited."""

    number: int
    source: int
    target: int
    medium: str
    resource: str
    total: int
    unit: str


@dataclass(frozen=True, slots=True)
class PacketTransit:
    """The transit of an MPI packet through a channel (``channel`` -1: the receiver copies straight out of the sender's memory).

    ``queued``: its process wants to send it; ``copy_in_begin``: there is room and the process begins to copy it into the channel;
    ``copy_in_end``: it has; ``copy_out_begin`` and ``copy_out_end``: the other process begins to copy it out, and has it. -1: not before
    the run ended. ``message`` and ``bytes``: of the message, of this packet.
    """

    channel: int
    source: int
    target: int
    src: int
    dst: int
    kind: str
    first: bool
    last: bool
    sent: int
    message: int
    bytes: int
    queued: int
    copy_in_begin: int
    copy_in_end: int
    copy_out_begin: int
    copy_out_end: int


@dataclass(frozen=True, slots=True)
class NetworkPacket:
    """What kernels, cards and the wire move: ``segment ack credit datagram 'datagram ack' transfer read curve``; hosts by their place."""

    kind: str
    channel: int
    source: int
    target: int
    bytes: int
    transit: int


@dataclass(frozen=True, slots=True)
class Work:
    """Work of a host's kernel or card, of the wire or of a timer: ``stage`` from ``start`` to ``end``, ``before`` from ``asked`` on."""

    where: str
    stage: str
    before: str
    asked: int
    start: int
    end: int
    packet: int


def _column(kind: str, data: bytes) -> list[int]:
    out = array(kind)
    out.frombytes(data)
    return out.tolist()


_WIDTHS = {"kind": "b", "first": "b", "last": "b", "channel": "i", "source": "i", "target": "i", "src": "i", "dst": "i"}


@dataclass(frozen=True, slots=True)
class MessagePath:
    """All that was recorded from the begin of the first direction to the end of the last one."""

    hosts: list[str]
    directions: list[Direction]
    processes: list[Process]
    channels: dict[int, Channel]
    transits: list[PacketTransit]
    packets: list[NetworkPacket]
    work: list[Work]

    @staticmethod
    def from_engine(told: Mapping[str, Any]) -> MessagePath:
        """From what the engine returns."""
        stages, waits = told["stages"], told["waits"]
        directions = []
        for direction in told["directions"]:
            columns = [_column(k, direction[n]) for n, k in (("links_begin", "q"), ("links_end", "q"), ("stage", "b"))]
            ends = [_column("i", direction[n]) for n in ("process", "packet")]
            links = zip(*columns, direction["who"], *ends, strict=True)
            chain = [Link(b, e, stages[s], who, process, packet) for b, e, s, who, process, packet in links]
            directions.append(Direction(direction["begin"], direction["end"], chain))
        processes = []
        for p in told["processes"]:
            rows = zip(*(_column(k, p[n]) for n, k in (("begin", "q"), ("end", "q"), ("stage", "b"), ("why", "b"))), strict=True)
            stretches = [Stretch(b, e, stages[s], waits[w] if stages[s] == "wait" else "") for b, e, s, w in rows]
            processes.append(Process(p["name"], p["host"], stretches))
        table = {name: _column(_WIDTHS.get(name, "q"), data) for name, data in told["transits"].items()}
        transits = []
        for row in zip(*table.values(), strict=True):
            p = dict(zip(table, row, strict=True))
            transits.append(PacketTransit(**{**p, "kind": KINDS[p["kind"]], "first": bool(p["first"]), "last": bool(p["last"])}))
        work = [Work(w, stages[s], stages[b], asked, start, end, packet) for w, s, b, asked, start, end, packet in told["work"]]
        return MessagePath(
            list(told["hosts"]),
            directions,
            processes,
            {c[0]: Channel(*c) for c in told["channels"]},
            transits,
            [NetworkPacket(*t) for t in told["packets"]],
            work,
        )

    def of(self, direction: int) -> list[PacketTransit]:
        """The transits that belong to the message of a direction, in the order in which they were asked for."""
        it = self.directions[direction]
        first = next((p for p in self.transits if p.sent >= it.begin and p.kind in ("data", "request")), None)
        if first is None:
            return []
        return [p for p in self.transits if p.sent == first.sent and p.message == first.message]
