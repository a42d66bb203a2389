"""Return types of the parts of a model: message paths, the cost of library calls, and the protocol by message size.

A path is made of media (`retrompi.spec.media`). Times are seconds on the reference host, as `Values` hands them out; sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrompi.spec.media import BINOMIAL, BLOCK, NO_LIMIT, Broadcast, Medium, WaitPolicy

__all__ = ["NO_PATH", "Cost", "Library", "Path", "Row", "direct", "eager", "rendezvous", "wait_by", "work"]

Row = dict[str, Any]
"""A channel specification for the engine, of plain values."""


@dataclass(frozen=True, slots=True)
class Cost:
    """A time (s on the reference host) that is partly work of the processor and partly services of the operating system (``os``)."""

    work: float = 0.0
    os: float = 0.0

    @staticmethod
    def of(given: Cost | float) -> Cost:
        """``given``; a plain number is work."""
        return given if isinstance(given, Cost) else Cost(given)


def wait_by(kind: str, polls: Callable[[], float], poll_cost: Callable[[], Cost | float]) -> WaitPolicy:
    """The wait policy ``kind`` (``block``, ``spin`` or ``spin_yield``).

    ``polls`` and ``poll_cost`` (s; a plain number is work) are called only if the policy polls, so that parameters without effect do not
    count as read.
    """
    if kind == "block":
        return BLOCK
    each = Cost.of(poll_cost())
    return WaitPolicy(kind, polls=polls() if kind == "spin_yield" else 1, poll_cost=each.work, poll_call=each.os)


Points = Sequence[tuple[int, int]]


def work(*, call: Mapping[str, Points], combine: Points = (), buffers: tuple[Points, Points] = ((), ())) -> Row:
    """The work of a library in collectives beside their messages, as points (bytes, ps on the reference host).

    ``call``: operation (named as in a trace) -> a call on a single rank, including the copy of its own block; ``combine``: combining the
    operands of a reduction; ``buffers``: the extra cost, over ordinary memory, of filling one temporary buffer and of filling each pair. A
    model whose specification has no ``work`` is charged none of this.
    """
    return {
        "call": {k: list(v) for k, v in call.items()},
        "combine": list(combine),
        "buffers": [list(b) for b in buffers],
    }


def eager(low: float = 0, high: float = NO_LIMIT) -> tuple[float, float, str]:
    """Messages of ``low`` <= bytes < ``high`` are sent eagerly."""
    return (low, high, "eager")


def rendezvous(low: float, high: float = NO_LIMIT) -> tuple[float, float, str]:
    """Messages of ``low`` <= bytes < ``high`` wait until the receiver has signalled that it is ready."""
    return (low, high, "rendezvous")


def direct(low: float, high: float = NO_LIMIT) -> tuple[float, float, str]:
    """Messages of ``low`` <= bytes < ``high`` are copied by the receiver out of the sender's buffer."""
    return (low, high, "direct")


@dataclass(frozen=True, slots=True)
class Path:
    """The path of messages between two ranks of one host or of two hosts; returned by a model's `within_host` and `between_hosts`.

    ``hops``: the channels in order; ``protocol``: ranges of message sizes (bytes) with their protocol; ``bulk``: the hops of rendezvous
    data if they differ; ``idle`` and ``forward_cost``: how proxies and daemons on the path wait, and their work of routing a packet (s);
    ``direct_call``: the operating system's part of a direct copy beside a bare call (s).
    ``pack`` and ``unpack``: copies of a whole message in the sender's own memory before its first packet leaves, and in the receiver's
    after its last has arrived (a library that unpacks receives every message into its own memory); ``pack_byte``: work for each byte at
    either end meanwhile (s/B). ``short_copies``: more of such copies at either end of a message up to ``short_until`` bytes, which passes
    through a packet in the library's memory. ``ask``: bytes of a rendezvous message that its request for permission to send carries.
    """

    hops: Sequence[Medium]
    protocol: Sequence[tuple[float, float, str]] = ((0, NO_LIMIT, "eager"),)
    bulk: Sequence[Medium] = ()
    idle: Mapping[str, WaitPolicy] = field(default_factory=dict)
    forward_cost: Mapping[str, float] = field(default_factory=dict)
    direct_call: float = 0.0
    pack: float = 0.0
    unpack: float = 0.0
    pack_byte: float = 0.0
    short_copies: float = 0.0
    short_until: float = 0.0
    ask: float = 0.0

    @property
    def staging(self) -> tuple[float, float, float, float, float, float]:
        """``pack``, ``unpack``, ``pack_byte``, ``short_copies``, ``short_until`` and ``ask``, for the engine."""
        return self.pack, self.unpack, self.pack_byte, self.short_copies, self.short_until, self.ask


@dataclass(frozen=True, slots=True)
class Library:
    """The cost of library calls on every path; returned by a model's `calls`. Times in seconds on the reference host.

    ``send_cpu`` and ``recv_cpu``: CPU time of a send and of a receive; ``recv_wait`` and ``send_wait``: how they wait;
    ``unexpected_limit``: bytes for unexpected messages (0: the host's memory); ``call_lock``: locking the library, per call (a plain
    number is work).
    """

    send_cpu: float
    recv_cpu: float
    recv_wait: WaitPolicy
    send_wait: WaitPolicy
    unexpected_limit: float = 0.0
    call_lock: Cost | float = 0.0
    broadcast: Broadcast = BINOMIAL


NO_PATH = Path((), ())
"""Placeholder for a path that the run does not need."""
