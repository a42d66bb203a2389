"""The journey of a message: what the engine records of each packet, of what crosses cards and wires for it, and of every process meanwhile.

    told = simulate.journey(Question("wmpi", "nt-pair", Message(100_000)))
    there = told.legs[0]                     # from the call of MPI_Send to the return of MPI_Recv
    sum(k.took for k in there.chain) == there.took      # exactly
    [p for p in told.passages if p.sent >= there.begin] # each packet through each channel

Times are whole picoseconds since the start of the run.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["KINDS", "Channel", "Journey", "Leg", "Link", "Passage", "Process", "Stretch", "Thing", "Work"]

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
    """Place in `Journey.processes`, -1: no process."""
    thing: int
    """Place in `Journey.things`, -1: none."""

    @property
    def took(self) -> int:
        """Picoseconds."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Leg:
    """One way of a message. The links of ``chain`` follow each other without a gap from ``begin`` to ``end``."""

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
    """A one-way channel between two processes (places in `Journey.processes`); ``total`` ``unit`` of ``resource``, if it can be full."""

    number: int
    source: int
    target: int
    medium: str
    resource: str
    total: int
    unit: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A packet goes through a channel (``channel`` -1: the receiver copies straight out of the sender's memory).

    ``asked``: its process wants to put it in; ``put``: there is room and it begins to; ``laid``: it has; ``out`` and ``taken``: the other
    process begins to take it out, and has it. -1: not before the run ended. ``message`` and ``bytes``: of the message, of this packet.
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
    asked: int
    put: int
    laid: int
    out: int
    taken: int


@dataclass(frozen=True, slots=True)
class Thing:
    """What kernels, cards and the wire move: ``segment ack credit datagram 'datagram ack' transfer read curve``; hosts by their place."""

    kind: str
    channel: int
    source: int
    target: int
    bytes: int
    passage: int


@dataclass(frozen=True, slots=True)
class Work:
    """Work of a host's kernel or card, of the wire or of a timer: ``stage`` from ``start`` to ``end``, ``before`` from ``asked`` on."""

    where: str
    stage: str
    before: str
    asked: int
    start: int
    end: int
    thing: int


def _column(kind: str, data: bytes) -> list[int]:
    out = array(kind)
    out.frombytes(data)
    return out.tolist()


_WIDTHS = {"kind": "b", "first": "b", "last": "b", "channel": "i", "source": "i", "target": "i", "src": "i", "dst": "i"}


@dataclass(frozen=True, slots=True)
class Journey:
    """All that was recorded from the begin of the first leg to the end of the last one."""

    hosts: list[str]
    legs: list[Leg]
    processes: list[Process]
    channels: dict[int, Channel]
    passages: list[Passage]
    things: list[Thing]
    work: list[Work]

    @staticmethod
    def from_engine(told: Mapping[str, Any]) -> Journey:
        """From what the engine returns."""
        stages, waits = told["stages"], told["waits"]
        legs = []
        for leg in told["legs"]:
            columns = [_column(k, leg[n]) for n, k in (("links_begin", "q"), ("links_end", "q"), ("stage", "b"))]
            ends = [_column("i", leg[n]) for n in ("process", "thing")]
            chain = [
                Link(b, e, stages[s], who, process, thing) for b, e, s, who, process, thing in zip(*columns, leg["who"], *ends, strict=True)
            ]
            legs.append(Leg(leg["begin"], leg["end"], chain))
        processes = []
        for p in told["processes"]:
            rows = zip(*(_column(k, p[n]) for n, k in (("begin", "q"), ("end", "q"), ("stage", "b"), ("why", "b"))), strict=True)
            stretches = [Stretch(b, e, stages[s], waits[w] if stages[s] == "wait" else "") for b, e, s, w in rows]
            processes.append(Process(p["name"], p["host"], stretches))
        table = {name: _column(_WIDTHS.get(name, "q"), data) for name, data in told["passages"].items()}
        passages = []
        for row in zip(*table.values(), strict=True):
            p = dict(zip(table, row, strict=True))
            passages.append(Passage(**{**p, "kind": KINDS[p["kind"]], "first": bool(p["first"]), "last": bool(p["last"])}))
        work = [Work(w, stages[s], stages[b], asked, start, end, thing) for w, s, b, asked, start, end, thing in told["work"]]
        return Journey(
            list(told["hosts"]),
            legs,
            processes,
            {c[0]: Channel(*c) for c in told["channels"]},
            passages,
            [Thing(*t) for t in told["things"]],
            work,
        )

    def of(self, leg: int) -> list[Passage]:
        """The passages that belong to the message of a leg, in the order in which they were asked for."""
        it = self.legs[leg]
        first = next((p for p in self.passages if p.sent >= it.begin and p.kind in ("data", "request")), None)
        if first is None:
            return []
        return [p for p in self.passages if p.sent == first.sent and p.message == first.message]
