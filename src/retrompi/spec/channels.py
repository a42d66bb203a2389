"""What the parts of a model return: the path of a message, what calls of its library cost, which sizes go how.

A path is made of media (`retrompi.spec.media`). Times are seconds on the reference host (``platform.host.speed`` 1), sizes bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrompi.spec.media import BINOMIAL, BLOCK, NO_LIMIT, Broadcast, Medium, WaitPolicy

__all__ = ["NO_PATH", "Library", "Path", "Row", "direct", "eager", "rendezvous", "wait_by", "work"]

Row = dict[str, Any]
"""What the engine is given, plain."""


def wait_by(kind: str, polls: Callable[[], float], poll_cost: Callable[[], float]) -> WaitPolicy:
    """``block``, ``spin`` or ``spin_yield``, asking for the polls and what one costs (s) only where a process polls."""
    if kind == "block":
        return BLOCK
    return WaitPolicy(kind, polls=polls() if kind == "spin_yield" else 1, poll_cost=poll_cost())


Points = Sequence[tuple[int, int]]


def work(*, call: Mapping[str, Points], combine: Points = (), buffers: tuple[Points, Points] = ((), ())) -> Row:
    """What a library does in collectives beside their messages, by points (bytes, ps on the reference host).

    ``call``: operation (named as in a trace) -> a call without a partner, the copy of its own block included; ``combine``: operands of a
    reduction; ``buffers``: what one temporary buffer, or each pair of them, costs beyond ordinary memory when it is filled. A model whose
    rows have no ``work`` has none of it.
    """
    return {
        "call": {k: list(v) for k, v in call.items()},
        "combine": list(combine),
        "buffers": [list(b) for b in buffers],
    }


def eager(low: float = 0, high: float = NO_LIMIT) -> tuple[float, float, str]:
    """Messages of ``low`` <= bytes < ``high`` are sent at once."""
    return (low, high, "eager")


def rendezvous(low: float, high: float = NO_LIMIT) -> tuple[float, float, str]:
    """Messages of ``low`` <= bytes < ``high`` wait until the receiver has said that it is ready."""
    return (low, high, "rendezvous")


def direct(low: float, high: float = NO_LIMIT) -> tuple[float, float, str]:
    """Messages of ``low`` <= bytes < ``high`` are copied by the receiver out of the sender's buffer."""
    return (low, high, "direct")


@dataclass(frozen=True, slots=True)
class Path:
    """How messages go between two ranks of one host, or of two: what a model's `within_host` and `between_hosts` return.

    ``hops``: the channels in order; ``protocol``: which sizes go how; ``bulk``: the hops of a rendezvous's data where they are others;
    ``idle`` and ``forward_cost``: how proxies and daemons on the way wait, and what routing a packet costs them (s); ``direct_call``: the
    operating system's part of a direct copy (s).
    """

    hops: Sequence[Medium]
    protocol: Sequence[tuple[float, float, str]] = ((0, NO_LIMIT, "eager"),)
    bulk: Sequence[Medium] = ()
    idle: Mapping[str, WaitPolicy] = field(default_factory=dict)
    forward_cost: Mapping[str, float] = field(default_factory=dict)
    direct_call: float = 0.0


@dataclass(frozen=True, slots=True)
class Library:
    """What the calls of a library cost on every path: what a model's `calls` returns. Times in seconds on the reference host.

    ``send_cpu`` and ``recv_cpu``: a send and a receive; ``recv_wait`` and ``send_wait``: how they wait; ``unexpected_limit``: bytes for
    messages that no receive was posted for (0: the machine's memory); ``call_lock``: locking the library, for each call.
    """

    send_cpu: float
    recv_cpu: float
    recv_wait: WaitPolicy
    send_wait: WaitPolicy
    unexpected_limit: float = 0.0
    call_lock: float = 0.0
    broadcast: Broadcast = BINOMIAL


NO_PATH = Path((), ())
"""Stands for the path that no two ranks of a run need."""
