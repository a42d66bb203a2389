"""The rows that a model hands to the engine: hops, wait policies, protocols. One function a row, every key spelled out.

The engine (``engine/bind/module.cpp``) refuses a missing or unknown key, so a model cannot state a number that nothing reads.
Times are seconds on the reference host (``platform.host.speed`` 1), sizes bytes, rates bytes per second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrompi.spec.fields import to_engine
from retrompi.spec.host import Host
from retrompi.spec.link import Link

__all__ = ["BLOCK", "NO_PATH", "Library", "Path", "bcast", "curve", "datagram", "direct", "dma", "eager", "host_row", "link_row",
           "one_sided", "pool", "rendezvous", "ring", "stream", "wait", "wait_by", "work"]  # fmt: skip

Row = dict[str, Any]
NO_LIMIT = 1e18


def wait(
    kind: str, *, polls: float = 1, poll_cost: float = 0.0, period: float = 0.0, look_every: float = 1, look_cost: float = 0.0
) -> Row:
    """How a process waits: ``block``, ``spin``, ``spin_yield`` (after ``polls`` polls) or ``poll`` (every ``period`` s).

    A spinning process looks at the network in each ``look_every``-th poll, at ``look_cost`` beside the poll.
    """
    return {"kind": kind, "polls": polls, "poll_cost": poll_cost, "period": period, "look_every": look_every, "look_cost": look_cost}


BLOCK = wait("block")


def wait_by(kind: str, polls: Callable[[], float], poll_cost: Callable[[], float]) -> Row:
    """``block``, ``spin`` or ``spin_yield``, asking for the polls and what one costs (s) only where a process polls."""
    if kind == "block":
        return BLOCK
    return wait(kind, polls=polls() if kind == "spin_yield" else 1, poll_cost=poll_cost())

_HOP: Row = {
    "send_cpu": 0.0, "recv_cpu": 0.0, "message_cpu": 0.0, "event": 0.0, "by_event": 1, "progress": 1,
    "hold_unexpected": 0, "space_wait": BLOCK,
    "copies_in": 1.0, "copies_out": 1.0, "ws_message": 0.0, "ws_packet": 2.0, "ws_fixed": 0.0,
    "short_packet": 0.0, "short_until": 0.0, "slots_of_sender": 0, "one_message": 0, "cores": 0, "lines_in": 0, "lines_out": 0,
    "io": "blocking", "first_read": 0.0,
    "slots": 0, "pool": 0.0, "prefix": 0.0, "exhausted_aborts": 0, "sndbuf": 0.0, "rcvbuf": 0.0, "nagle": 0, "header_write": 0,
    "credits": 0, "connect": 0.0, "call": 0.0,
    "window": 1, "retries": 0, "timeout": 0.0, "loss": 0.0, "duplicate": 0.0, "reorder": 0.0, "reorder_delay": 0.0,
    "lock": 0, "until_taken": 0, "pack": 0.0, "unpack": 0.0,
    "rate": 0.0, "cpu_driven": 0, "pio_limit": 0, "pio_rate": 1.0, "piece_min": 1, "piece": 1, "pieces": 1,
    "pin": 0.0, "pin_page": 0.0, "page": 4096,
    "curve": None,
}  # fmt: skip


def _hop(medium: str, between: tuple[str, str], packet: float, header: float, facts: Row) -> Row:
    unknown = facts.keys() - _HOP.keys()
    if unknown:
        raise TypeError(f"a {medium} hop has no '{sorted(unknown)[0]}'")
    return {"medium": medium, "from": between[0], "to": between[1], "packet": packet, "header": header, **_HOP, **facts}


def pool(between: tuple[str, str], *, packet: float, header: float, pool: float, **facts: Any) -> Row:
    """Shared memory with p4's size-class allocator: a packet takes a buffer of the next class out of ``pool`` bytes a host."""
    return _hop("pool", between, packet, header, {"pool": pool, **facts})


def ring(between: tuple[str, str], *, packet: float, header: float, slots: float, **facts: Any) -> Row:
    """Shared memory cut into ``slots`` packets for each receiving process."""
    return _hop("ring", between, packet, header, {"slots": slots, **facts})


def stream(between: tuple[str, str], *, packet: float, header: float, call: float, **facts: Any) -> Row:
    """A TCP connection; ``call`` is what one socket call costs beside the bare system call."""
    return _hop("stream", between, packet, header, {"call": call, **facts})


def datagram(
    between: tuple[str, str], *, packet: float, header: float, call: float, timeout: float, retries: float, **facts: Any
) -> Row:
    """UDP with acknowledgement and retry by the processes themselves."""
    return _hop("datagram", between, packet, header, {"call": call, "timeout": timeout, "retries": retries, **facts})


def dma(between: tuple[str, str], *, packet: float, header: float, piece: float, **facts: Any) -> Row:
    """From memory to memory without the operating system, by the card or (``cpu_driven``) by the processor itself.

    A message is cut into ``pieces`` of ``piece_min`` to ``piece`` bytes, one of which must have crossed a stage before the next stage
    starts; ``slots`` places a sender has at the receiver for
    what was not asked for; rendezvous messages go into the user's buffer after both ends have pinned it (``pin``, ``pin_page``).
    """
    return _hop("dma", between, packet, header, {"piece": piece, **facts})


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


def one_sided(*, put_rate: float, get_rate: float, cpu: float, latency: float, piece: float) -> Row:
    """One-sided operations: rates (B/s) between hosts (on one host they are copies), library work ``cpu`` s, ``latency`` s."""
    return {"put_rate": put_rate, "get_rate": get_rate, "cpu": cpu, "latency": latency, "piece": piece}


def bcast(algorithm: str = "binomial", *, copies_root: float = 0.0, copies_leaf: float = 0.0) -> Row:
    """How a broadcast is made: ``binomial`` tree of messages, ``put_tree``, or ``by_reference`` from one shared buffer."""
    return {"algorithm": algorithm, "copies_root": copies_root, "copies_leaf": copies_leaf}


def curve(tables: Row, *, connect: float) -> Row:
    """A sampled curve in place of a mechanism (`retrompi.sim.fidelity`); ``connect``: what the first message between two ranks adds (s)."""
    return _hop("curve", ("rank", "rank"), NO_LIMIT, 0, {"curve": tables, "connect": connect})


def eager(low: float = 0, high: float = NO_LIMIT) -> tuple[float, float, str]:
    """Messages of ``low`` <= bytes < ``high`` are sent at once."""
    return (low, high, "eager")


def rendezvous(low: float, high: float = NO_LIMIT) -> tuple[float, float, str]:
    """Messages of ``low`` <= bytes < ``high`` wait until the receiver has said that it is ready."""
    return (low, high, "rendezvous")


def direct(low: float, high: float = NO_LIMIT) -> tuple[float, float, str]:
    """Messages of ``low`` <= bytes < ``high`` are copied by the receiver out of the sender's buffer."""
    return (low, high, "direct")


def host_row(h: Host) -> Row:
    """A host as the engine reads it."""
    told = to_engine(h)
    return told | {"big_endian": int(told.pop("byte_order") == "big")}


def link_row(link: Link) -> Row:
    """The link between the hosts as the engine reads it."""
    told = to_engine(link)
    return told | {"stripe": int(told.pop("rail_policy") == "stripe")}


@dataclass(frozen=True, slots=True)
class Path:
    """How messages go between two ranks of one host, or of two: what a model's `within_host` and `between_hosts` return.

    ``hops``: the channels in order; ``protocol``: which sizes go how; ``bulk``: the hops of a rendezvous's data where they are others;
    ``idle`` and ``forward_cost``: how proxies and daemons on the way wait, and what routing a packet costs them (s); ``direct_call``: the
    operating system's part of a direct copy (s).
    """

    hops: Sequence[Row]
    protocol: Sequence[tuple[float, float, str]] = ((0, NO_LIMIT, "eager"),)
    bulk: Sequence[Row] = ()
    idle: Mapping[str, Row] = field(default_factory=dict)
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
    recv_wait: Row
    send_wait: Row
    unexpected_limit: float = 0.0
    call_lock: float = 0.0
    broadcast: Row = field(default_factory=lambda: bcast())


NO_PATH = Path((), ())
"""Stands for the path that no two ranks of a run need."""
