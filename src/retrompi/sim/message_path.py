"""The path of a message: the packets, the network traffic and work they cause, and the activity of all processes.

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

__all__ = ["KINDS", "Channel", "Direction", "HostWork", "MessagePath", "NetworkPacket", "PacketTransit", "PathLink", "Process", "Stretch"]

KINDS = ("data", "request", "ready", "matched", "done")
"""Kinds of packets: data; rendezvous request to send and its reply; match of a synchronous send; end of a direct copy."""


@dataclass(frozen=True, slots=True)
class PathLink:
    """An interval of the critical path: ``stage`` of ``who`` (a process, a host's kernel or card, the wire, the clock); times in ps."""

    begin: int
    end: int
    stage: str
    who: str
    process: int
    """Index in `MessagePath.processes`, -1: no process."""
    packet: int
    """Index in `MessagePath.packets`, -1: none."""

    @property
    def took(self) -> int:
        """Picoseconds."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of a message exchange. The links of ``chain`` are contiguous from ``begin`` to ``end`` (ps)."""

    begin: int
    end: int
    chain: list[PathLink]

    @property
    def took(self) -> int:
        """Picoseconds."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Stretch:
    """An interval of a process in one ``stage``; ``why`` is what it waited for if that is ``wait``."""

    begin: int
    end: int
    stage: str
    why: str


@dataclass(frozen=True, slots=True)
class Process:
    """A rank, proxy or daemon, or a thread that does not belong to the job (unnamed)."""

    name: str
    host: str
    stretches: list[Stretch]


@dataclass(frozen=True, slots=True)
class Channel:
    """A one-way channel between two processes (indices in `MessagePath.processes`); ``total`` ``unit`` of ``resource``, if limited."""

    number: int
    source: int
    target: int
    medium: str
    resource: str
    total: int
    unit: str


@dataclass(frozen=True, slots=True)
class PacketTransit:
    """The transit of an MPI packet through a channel (``channel`` -1: the receiver copies directly from the sender's memory).

    ``queued``: queued for sending; ``copy_in_begin``: there is space and the process begins to copy it into the channel;
    ``copy_in_end``: copied in; ``copy_out_begin`` and ``copy_out_end``: the other process begins and completes copying it out. -1: not
    before the run ended. ``message`` and ``bytes``: size of the message and of this packet in bytes.
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
    """A unit moved by kernels, cards and the wire: ``segment ack credit datagram 'datagram ack' transfer read curve``; hosts by index."""

    kind: str
    channel: int
    source: int
    target: int
    bytes: int
    transit: int


@dataclass(frozen=True, slots=True)
class HostWork:
    """Work of a host's kernel or card, of the wire or of a timer: ``before`` from ``asked``, ``stage`` from ``start`` to ``end``."""

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
    """Everything recorded from the beginning of the first direction to the end of the last."""

    hosts: list[str]
    directions: list[Direction]
    processes: list[Process]
    channels: dict[int, Channel]
    transits: list[PacketTransit]
    packets: list[NetworkPacket]
    work: list[HostWork]

    @staticmethod
    def from_engine(told: Mapping[str, Any]) -> MessagePath:
        """From the record ``told`` returned by the engine."""
        stages, waits = told["stages"], told["waits"]
        directions = []
        for direction in told["directions"]:
            columns = [_column(k, direction[n]) for n, k in (("links_begin", "q"), ("links_end", "q"), ("stage", "b"))]
            ends = [_column("i", direction[n]) for n in ("process", "packet")]
            links = zip(*columns, direction["who"], *ends, strict=True)
            chain = [PathLink(b, e, stages[s], who, process, packet) for b, e, s, who, process, packet in links]
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
        work = [HostWork(w, stages[s], stages[b], asked, start, end, packet) for w, s, b, asked, start, end, packet in told["work"]]
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
        """The transits of the message of a direction (index in ``directions``), in the order in which they were queued."""
        it = self.directions[direction]
        first = next((p for p in self.transits if p.sent >= it.begin and p.kind in ("data", "request")), None)
        if first is None:
            return []
        return [p for p in self.transits if p.sent == first.sent and p.message == first.message]
