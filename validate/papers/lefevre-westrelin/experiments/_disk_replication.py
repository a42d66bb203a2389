"""Copying the disk of one machine to many: a chain or a tree of machines that receive, write and forward chunk by chunk.

A machine has a card for each direction, a disk and a few chunk buffers. Within a chunk, writing overlaps receiving, since
it arrives in pieces; a chunk is forwarded when it is complete and on the disk. `simulate_chain` follows every chunk through
every machine; `closed_form` is the result for uniform rates.

    T = (C + N - 1) x chunk / min(disk, network) + time before and after the copy
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from retrompi.base.errors import UsageError
from retrompi.spec.question import Question, Replay

__all__ = ["LIMIT_CELLS", "NETWORKS", "Copy", "Network", "closed_form", "levels", "network_rate", "replicate", "simulate_chain"]

LIMIT_CELLS = 1_000_000_000
"""Chunks x machines above which only the closed form is used: the simulation needs little memory but much time."""

RELAYED = 24
"""Chunks that the engine sends through a relay when it measures a network's rate."""


@dataclass(frozen=True)
class Copy:
    """One replication. Rates in bytes/s, ``chunk`` in bytes, ``extra_s`` seconds in addition to the copy (editing the registry).

    ``network`` is the rate of one transfer at a machine that receives and forwards at once. ``buffers`` chunks fit in a
    machine's memory.
    """

    chunks: int
    chunk: float
    disk: float
    network: float
    extra_s: float = 0.0
    buffers: int = 2

    def __post_init__(self) -> None:
        if self.chunks < 1:
            raise UsageError(f"{self.chunks} chunks to copy; at least one is needed", code="out-of-range")
        for name in ("chunk", "disk", "network"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} is {getattr(self, name):g}; it must be more than nothing", code="out-of-range")
        if self.buffers < 2:
            raise UsageError(f"{self.buffers} buffer: one is written while the next is received, so two are needed")

    @property
    def local_s(self) -> float:
        """Copying from one disk of a machine to another, without any network."""
        return self.chunks * self.chunk / self.disk


def levels(machines: int, fan_out: int) -> int:
    """Levels of receivers below the master in a tree with this fan-out; 1 is a chain. UsageError if either is below 1."""
    if machines < 1:
        raise UsageError("a replication needs a machine to copy to")
    if fan_out < 1:
        raise UsageError(f"the fan-out must be at least 1, not {fan_out}", code="out-of-range")
    if fan_out == 1:
        return machines
    reached, depth, width = 0, 0, 1
    while reached < machines:
        width *= fan_out
        reached += width
        depth += 1
    return depth


def closed_form(copy: Copy, machines: int, fan_out: int = 1) -> float:
    """Seconds by the formula; a machine that serves ``fan_out`` others at once divides its card's rate equally among them."""
    depth = levels(machines, fan_out)
    slowest = max(copy.chunk / copy.disk, min(fan_out, machines) * copy.chunk / copy.network)
    return (copy.chunks + depth - 1) * slowest + copy.extra_s


def simulate_chain(copy: Copy, machines: int, fan_out: int = 1) -> float:
    """Seconds until the last machine has the last chunk on its disk, by following every chunk through every level.

    Events are taken along the diagonals (level + chunk = constant): each depends on the one before it in time only, so a
    diagonal is one step of arithmetic on vectors and memory does not grow with the machines.
    """
    depth, n = levels(machines, fan_out), copy.chunks
    net, disk = min(fan_out, machines) * copy.chunk / copy.network, copy.chunk / copy.disk
    # Index c of a diagonal d is chunk c at level d - c. `got`: the chunk has been received; `done`: it is on the disk as well.
    never = -math.inf
    rows = copy.buffers + 1
    got = [np.full(n, never) for _ in range(rows)]
    done = [np.full(n, never) for _ in range(rows)]
    ready_at_master = np.arange(1, n + 1) * disk  # reads ahead of the card, but no further than its buffers
    last = never
    for d in range(1, n + depth):  # level 1 receives chunk d - 1 at diagonal d
        low, high = max(0, d - depth), min(n - 1, d - 1)  # levels d - c of 1..depth
        here = slice(low, high + 1)
        before = done[(d - 1) % rows]
        # The sender has the chunk: the level above (same chunk, one diagonal earlier), or the master's disk.
        start = before[here].copy()
        if high == d - 1:
            # The master sends pieces as they are read: a chunk may start when its reading does.
            start[-1] = ready_at_master[high] - disk
            if high >= copy.buffers:
                start[-1] = max(start[-1], got[(d - copy.buffers) % rows][high - copy.buffers])
        # The receiver's card is free, and so is a buffer: the chunk that held it is on the disk and has been forwarded.
        earlier = np.full(high - low + 1, never)
        shift = max(low, 1)
        if high >= shift:
            earlier[shift - low :] = got[(d - 1) % rows][shift - 1 : high]
        start = np.maximum(start, earlier)
        b = copy.buffers
        free = max(low, b)
        if high >= free:
            start[free - low :] = np.maximum(start[free - low :], done[(d - b) % rows][free - b : high - b + 1])
            forwarded = got[(d - b + 1) % rows][free - b : high - b + 1].copy()
            start[free - low :] = np.maximum(start[free - low :], forwarded)
        received = start + net
        written = np.full(high - low + 1, never)
        if high >= shift:
            written[shift - low :] = before[shift - 1 : high]
        on_disk = np.maximum(received, np.maximum(start, written) + disk)
        if high == d - 1:  # a chunk from the master cannot be complete before the master has read it
            on_disk[-1] = max(on_disk[-1], ready_at_master[high])
        got_row, done_row = got[d % rows], done[d % rows]
        got_row.fill(never)
        done_row.fill(never)
        got_row[here], done_row[here] = received, on_disk
        last = float(on_disk[-1] if low == n - 1 else on_disk[0]) if low == n - 1 or d == n + depth - 1 else last
    return last + copy.extra_s


@dataclass(frozen=True)
class Network:
    """A network of the study: a title, and its platform overrides, each with its source."""

    title: str
    sets: Mapping[str, str]


NETWORKS: Mapping[str, Network] = {
    # IP over GM carries packets of 9000 B at most (assumed: GM's driver), so segments of 8960 B. The rest is the Myrinet cluster.
    "myrinet": Network("TCP/IP over GM on Myrinet 2000", {"platform.host.mss": "8960 B"}),
    # 100BASE-TX through a switch: signalling rate and frame overhead of E-REC-03; a card on a PCI bus (assumed as in nt-cluster).
    "fast-ethernet": Network(
        "TCP/IP on switched Fast Ethernet",
        {
            "platform.link.bandwidth": "100 Mbps",
            "platform.link.latency": "5 us",
            "platform.link.frame_overhead": "58 B",
            "platform.host.mss": "1460 B",
            "platform.host.nic_rate": "80 MB/s",
            "platform.host.nic_latency": "5 us",
        },
    ),
}
"""Name -> network. The rate of TCP on it is simulated (`network_rate`), not entered."""


def network_rate(network: str, platform: str, chunk: int, *, relayed: bool = True, sets: tuple[str, ...] = ()) -> float:
    """Bytes/s of TCP through a machine that receives and forwards at once, from a simulation of three machines.

    The relay's card and processor carry both directions and the acknowledgements of both. Chunks are forwarded when they
    are complete, and the next is received meanwhile. Without ``relayed``: from one machine to another that only receives.
    UsageError for an unknown network.
    """
    if network not in NETWORKS:
        raise UsageError(f"no network '{network}'; valid: {', '.join(NETWORKS)}", code="unknown-name")
    first = RELAYED // 3
    sends = [f"0 send 1 0 {chunk} 6"] * RELAYED
    marked = [f"# mark {name}" for name in ("begin", "end")]
    if not relayed:
        halves = ["0 init", *sends[:first], marked[0], *sends[first:], "0 recv 1 1 0 6", marked[1], "0 finalize"]
        taken = ["1 init", *[f"1 recv 0 0 {chunk} 6"] * RELAYED, "1 send 0 1 0 6", "1 finalize"]
        return _rate([halves, taken], chunk, network, platform, sets)
    master = ["0 init", *sends, "0 finalize"]
    relay = ["1 init", f"1 recv 0 0 {chunk} 6"]
    slave = ["2 init"]
    for k in range(RELAYED):
        more = k + 1 < RELAYED
        relay += [f"1 irecv 0 0 {chunk} 6"] * more + [f"1 isend 2 0 {chunk} 6", "1 wait 1 2 0"] + ["1 wait 0 1 0"] * more
        slave.append(f"2 recv 1 0 {chunk} 6")
        if k + 1 in (first, RELAYED):
            slave.append(marked[k + 1 > first])
    return _rate([master, [*relay, "1 finalize"], [*slave, "2 finalize"]], chunk, network, platform, sets)


def _rate(ranks: list[list[str]], chunk: int, network: str, platform: str, sets: tuple[str, ...]) -> float:
    """Bytes/s of the last two thirds of the chunks, between the marks ``begin`` and ``end``."""
    from retrompi import traces
    from retrompi.sim import simulate

    trace = traces.parse(["\n".join([*lines, ""]) for lines in ranks], name="relay")
    given = [*(f"{k}={v}" for k, v in NETWORKS[network].sets.items()), *sets]
    result = simulate.run(Question("sockets", platform, Replay(trace), range(len(ranks)), given, idle_overrides=bool(sets)))
    simulate.require_completed(result, f"relay on {network}")
    at = {str(m["label"]): float(m["time_s"]) for m in result.marks}
    return (RELAYED - RELAYED // 3) * chunk / (at["end"] - at["begin"])


def replicate(copy: Copy, machines: int, fan_out: int = 1) -> dict[str, Any]:
    """One row: machines, fan_out, levels, simulated_s (None beyond LIMIT_CELLS), closed_form_s, time_s, relative (to a local copy).

    ``relative`` excludes ``extra_s``, so that only copying is compared.
    """
    depth = levels(machines, fan_out)
    simulated = simulate_chain(copy, machines, fan_out) if depth * copy.chunks <= LIMIT_CELLS else None
    formula = closed_form(copy, machines, fan_out)
    time_s = formula if simulated is None else simulated
    return {
        **asdict(copy),
        "machines": machines,
        "fan_out": fan_out,
        "levels": depth,
        "simulated_s": simulated,
        "closed_form_s": formula,
        "time_s": time_s,
        "local_s": copy.local_s,
        "relative": (time_s - copy.extra_s) / copy.local_s,
    }
