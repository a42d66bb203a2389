"""Buffers of a compiled model for messages that no receive has been posted for: which are sent eagerly, and where they wait.

Everywhere in these runtimes a rank that waits in a call takes in what arrives, into memory without a stated limit; eager messages then
never hold up their sender for good. Three mechanisms do limit them, and only these are carried along by the search:

* a pool of shared memory in which messages stay until a receive takes them (p4's): full, it ends the job or makes the sender wait;
* a fixed buffer of each rank for unexpected messages: it overflows and ends the job;
* the buffer space of a path, where a sender that waits for it takes in nothing (``progress`` 0), or takes what comes into such a fixed
  buffer.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["BufferPath", "Buffers", "PoolSize", "Space"]

_NO_LIMIT = 1 << 62


@dataclass(frozen=True)
class PoolSize:
    """A host's pool (B): its size, the classes of its buffers (rising), the allocator's header, whether exhausting it ends the job, and
    whether a message stays in it until a receive takes it."""

    total: int
    classes: tuple[int, ...]
    prefix: int
    aborts: bool
    holds: bool

    def buffers(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """For each packet (B, with header) the class of its buffer; a larger one is a negative size."""
        return tuple(k if (k := bisect_left(self.classes, n)) < len(self.classes) else -n for n in sizes)

    def bytes_of(self, buffer: int) -> int:
        """Bytes of the pool that a message occupies, header included."""
        return (self.classes[buffer] if buffer >= 0 else -buffer) + self.prefix


@dataclass(frozen=True)
class Space:
    """The capacity of a path while its receiver receives nothing: ``total`` in ``unit`` (``packets`` or ``B``), of the receiver for all its
    senders (``shared``) or of a pair. ``drains``: a sender that waits for it takes in messages meanwhile."""

    total: int
    unit: str
    shared: bool
    drains: bool = False


@dataclass(frozen=True)
class BufferPath:
    """The messages between two ranks of one host, or of two hosts."""

    protocol: tuple[tuple[float, float, str], ...]
    packet: int
    header: int
    pool: PoolSize | None = None
    space: Space | None = None

    def eager(self, size: int) -> bool:
        """Whether a message of ``size`` bytes leaves before a receive asks for it."""
        return next((kind == "eager" for low, high, kind in self.protocol if low <= size < high), True)

    def packets(self, size: int) -> list[int]:
        """The packets of a message (B, with header)."""
        whole, rest = divmod(size, self.packet)
        return [self.packet + self.header] * whole + ([rest + self.header] if rest or not whole else [])

    def units(self, size: int) -> int:
        """The part of `space` that an eager message occupies."""
        if self.space is None:
            return 0
        return math.ceil(size / self.packet) or 1 if self.space.unit == "packets" else sum(self.packets(size))


@dataclass(frozen=True)
class Buffers:
    """The limits of a runtime for the ranks of a placement. ``unexpected``: bytes of a rank for messages that nobody waits for; 0: no
    limit."""

    hosts: tuple[int, ...]
    same: BufferPath
    remote: BufferPath
    unexpected: int = 0
    names: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, rows: Mapping[str, Any]) -> Buffers:
        """Of a compiled runtime (`retrompi.spec.compiled.compile.Compiled.rows`)."""
        names = tuple(rows["hosts"]["names"])
        return cls(tuple(rows["placement"]), _path(rows, "same"), _path(rows, "remote"), int(rows["unexpected_limit"]), names)

    @classmethod
    def without_limit(cls, ranks: int, eager_until: float = math.inf) -> Buffers:
        """Of no runtime in particular: messages of up to ``eager_until`` bytes are buffered without a limit, longer ones wait for their
        receive (0: all but empty ones)."""
        path = BufferPath(((0, eager_until + 1, "eager"), (eager_until + 1, math.inf, "rendezvous")), _NO_LIMIT, 0)
        return cls(tuple(range(ranks)), path, path)

    def path(self, source: int, destination: int) -> BufferPath:
        """The path from one rank to another."""
        return self.same if self.hosts[source] == self.hosts[destination] else self.remote


def _path(rows: Mapping[str, Any], where: str) -> BufferPath:
    protocol = tuple((float(a), float(b), str(kind)) for a, b, kind in rows[f"protocol_{where}"])
    hops: Sequence[Mapping[str, Any]] = rows[where]
    if not hops:
        return BufferPath(protocol, _NO_LIMIT, 0)
    first = hops[0]
    packet, header = max(1, int(min(first["packet"], _NO_LIMIT))), int(first["header"])
    pool = space = None
    if first["medium"] == "pool":
        pool = PoolSize(
            int(first["pool"]), tuple(int(c) for c in first["classes"]), int(first["prefix"]), bool(first["exhausted_aborts"]),
            bool(first["hold_unexpected"]),
        )
    if not first.get("progress", True) or rows["unexpected_limit"]:
        space = _space(hops, rows)
    return BufferPath(protocol, packet, header, pool, space)


def _space(hops: Sequence[Mapping[str, Any]], rows: Mapping[str, Any]) -> Space | None:
    """The capacity of all hops of a path together, in packets of the first one, or in bytes if that is a socket without credits."""
    first = hops[0]
    drains = bool(first.get("progress", True))
    if first["medium"] == "ring":
        slots = sum(int(h["slots"]) for h in hops if h["medium"] == "ring")
        for hop in hops:
            if hop["medium"] == "stream":
                slots += int(_sockets(hop, rows) // max(1, int(first["packet"]) + int(first["header"])))
        return Space(slots, "packets", len(hops) == 1 and not first["one_message"] and not first["slots_of_sender"], drains)
    if first["medium"] == "stream":
        return Space(int(first["credits"]), "packets", False, drains) if first["credits"] else Space(
            int(_sockets(first, rows)), "B", False, drains)
    return Space(int(first["slots"]), "packets", False, drains) if first["medium"] == "dma" and first["slots"] else None


def _sockets(hop: Mapping[str, Any], rows: Mapping[str, Any]) -> float:
    host = rows["hosts"]["kinds"][rows["hosts"]["kind_of"][0]]
    return float(hop["sndbuf"] or host["sndbuf"]) + float(hop["rcvbuf"] or host["window"])
