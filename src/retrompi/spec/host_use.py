"""Which numbers of a platform a run uses: by what its channels, its program and what runs beside it ask of a host and of the link.

Each key of a host or link belongs to one situation (`SITUATIONS`); `holds` says which situations a compiled run has. The engine reads a
key in no other: tests/test_used_parameters.py changes every key on every platform and compares the picoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from retrompi.spec.platform import HOST_KEYS, LINK_KEYS, LINK_MORE_KEYS

if TYPE_CHECKING:
    from retrompi.spec.compile import Calls
    from retrompi.spec.layout import Layout

__all__ = ["SITUATIONS", "USED_BY", "holds", "used", "why_not"]

SITUATIONS: Mapping[str, tuple[str, str]] = {
    "always": ("", ""),
    "charged waits": ("what a wait costs of a quantum", "a quantum of this platform does not outlive a wait (quantum_carry is 0)"),
    "copies": ("copies in memory", "no message of this run is copied by a mechanism"),
    "system calls": ("sockets and direct copies", "this run has neither"),
    "protocol stack": ("the protocol stack between machines", "no socket of this run reaches another machine"),
    "segments": ("TCP between machines", "this run has no TCP connection between machines"),
    "receive window": ("TCP between machines", "this run has no TCP connection whose receive buffer the model leaves to the system"),
    "send buffer": ("TCP sockets", "this run has no TCP connection whose send buffer the model leaves to the system"),
    "losses": ("retransmission by TCP", "nothing of this run can lose a segment (--failure does)"),
    "loopback": ("TCP connections within one machine", "this run has none"),
    "card": ("the network card", "no message of this run leaves its machine"),
    "card rate": ("the network card", "no message of this run goes through it at the card's own rate"),
    "memory bus": ("transfers by card or E-registers", "this run has none"),
    "shared caches": ("channels in the caches of two cores", "this run has none"),
    "computing": ("computation", "the trace has none"),
    "loops": ("named loops (kernel lines)", "the trace has none"),
    "link": ("the link between machines", "this run is on one machine"),
    "frames": ("frames on the link", "no message of this run is cut into frames by it"),
    "wan": ("the line between two sites", "this link joins no sites"),
}
"""Situation -> (what its keys belong to, why a run without it does not use them)."""

USED_BY: Mapping[str, str] = {
    **dict.fromkeys(("cores", "speed", "quantum", "tick", "dispatch", "boost", "quantum_carry", "quantum_at_tick"), "always"),
    "wait_charge": "charged waits",
    **dict.fromkeys(("l1", "l2", "l2_ways", "copy_l1", "copy_l2", "copy_mem"), "copies"),
    "syscall": "system calls",
    **dict.fromkeys(("tcp_segment", "tcp_byte", "interrupt"), "protocol stack"),
    **dict.fromkeys(("mss", "delayed_ack"), "segments"),
    "window": "receive window",
    "sndbuf": "send buffer",
    **dict.fromkeys(("rto_first", "rto_min", "rto_max", "tcp_retries", "dup_acks"), "losses"),
    **dict.fromkeys(("loopback_segment", "loopback_mss"), "loopback"),
    "nic_latency": "card",
    "nic_rate": "card rate",
    "bus_rate": "memory bus",
    **dict.fromkeys(("l2_shared_by", "package_cores", "line_shared", "line_bus", "lines_in_flight", "fsb_rate"), "shared caches"),
    "flops": "computing",
    "clock": "loops",
    **dict.fromkeys(("bandwidth", "latency", "frame_overhead", "rails"), "link"),
    "mtu": "frames",
    **dict.fromkeys(("wan_bandwidth", "wan_latency"), "wan"),
}
"""Key of a host or of the link -> the situation in which the engine reads it."""


def holds(layout: Layout, rows: Mapping[str, Any], calls: Calls) -> set[str]:
    """The situations of a compiled run."""
    within, between = [*rows["same"], *rows["same_bulk"]], list(rows["remote"])
    media = {h["medium"] for h in (*within, *between)}
    sockets = [h for h in (*within, *between) if h["medium"] == "stream"]
    crossing = [h for h in between if _crosses(h)]
    tcp = [h for h in crossing if h["medium"] == "stream"]
    datagrams = any(h["medium"] == "datagram" for h in crossing)
    dma = any(h["medium"] == "dma" for h in crossing)
    direct = any(kind == "direct" for _, _, kind in rows["protocol_same"])
    one_sided = calls.one_sided or rows["bcast"]["algorithm"] == "put_tree"
    put = layout.several_hosts and one_sided and rows["one_sided_remote"] is not None
    found = {
        "always": True,
        "charged waits": any(h.quantum_carry or row["quantum_carry"] for h, row in zip(layout.hosts, rows["hosts"], strict=True)),
        "copies": bool(media - {"curve"}) or calls.collective or calls.one_sided,
        "system calls": bool(media & {"stream", "datagram"}) or direct,
        "protocol stack": bool(tcp) or datagrams,
        "segments": bool(tcp),
        "receive window": any(not h["rcvbuf"] for h in sockets),
        "send buffer": any(not h["sndbuf"] for h in sockets),
        "losses": bool(tcp) and calls.failures,
        "loopback": any(not _crosses(h) or h in within for h in sockets),
        "card": (bool(crossing) and "curve" not in {h["medium"] for h in crossing}) or put,
        "card rate": bool(tcp) or datagrams or dma or put,
        "memory bus": dma or put,
        "shared caches": any(h["medium"] == "ring" and h["cores"] for h in within) or direct,
        "computing": calls.computing,
        "loops": calls.kernels,
        "link": layout.several_hosts and (bool(media & {"stream", "datagram", "dma"}) or put),
        "frames": datagrams or dma or put,
        "wan": layout.several_hosts and layout.platform.link.kind == "wan",
    }
    return {name for name, there in found.items() if there}


def _crosses(hop: Mapping[str, Any]) -> bool:
    """Whether a hop of the path between machines leaves its machine: those to a proxy or daemon of the same machine do not."""
    ends = {str(hop[end]).partition("@")[2] for end in ("from", "to")}
    first, last = hop["from"] == "rank", hop["to"] == "rank"
    # rank -> proxy@src and proxy@dst -> rank stay on a host; rank -> rank and proxy@src -> proxy@dst do not.
    return ends in ({"src", "dst"},) or (first and last)


def used(layout: Layout, rows: Mapping[str, Any], calls: Calls) -> set[str]:
    """Paths (``platform.server.quantum``) of the platform's numbers that a compiled run uses."""
    there = holds(layout, rows, calls)
    fixed = layout.fixed
    keys = {k for k, situation in USED_BY.items() if situation in there and k not in fixed}
    found = {f"platform.{h.name}.{k}" for h in layout.hosts for k in keys & HOST_KEYS.keys()} | {f"platform.{path}" for path in layout.read}
    if layout.several_hosts:
        found |= {f"platform.link.{k}" for k in keys & {*LINK_KEYS, *LINK_MORE_KEYS}}
    return found


def why_not(path: str, layout: Layout, calls: Calls) -> str:
    """Why a run does not use the platform's number at ``path`` (``server.quantum``): what follows its name in a line for the user."""
    owner, _, key = path.rpartition(".")
    if owner != "link" and owner not in {h.name for h in layout.hosts}:
        return f"is not used; no rank of this run is on '{owner}'"
    if key in layout.fixed:
        return "is not used; the model states a value of its own"
    if owner == "link" and not layout.several_hosts:
        return "belongs to the link between machines; this run is on one machine"
    belongs, reason = SITUATIONS[USED_BY[key]]
    return f"belongs to {belongs}; {reason}"
