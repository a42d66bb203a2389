"""The diagram of a message's path: processes, channels, kernels, cards and the wire, laid out from the engine's record.

Nothing is specific to a model: every box and line represents a process, channel, kernel or card of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from retrompi.base.translate import _, lazy, ngettext
from retrompi.base.units import format_bytes
from retrompi.render.document.engine_words import process_name
from retrompi.sim.message_path import Channel, MessagePath, PacketTransit

__all__ = ["Box", "Diagram", "DiagramLine", "diagram"]

_MEMORY = ("pool", "ring")
_SOCKETS = ("stream", "datagram")
_WIDTH = 640
_HOST = 308
_MARGIN = 4
_BOX = (136, 52)
_TOP = 64
_ROWS = {"memory": 100, "kernel": 92, "card": 80}
"""Kind of box -> its distance below the previous row; an empty row takes no space."""
_MEDIA = {"pool": lazy("shared memory pool"), "ring": lazy("packet slots"), "stream": "TCP", "datagram": "UDP", "dma": "DMA"}


@dataclass(frozen=True, slots=True)
class Box:
    """A location of a token: upper left corner and size of its box. ``kind``: process, memory, kernel or card."""

    name: str
    kind: str
    label: str
    note: str
    host: str
    x: float
    y: float
    w: float
    h: float


@dataclass(frozen=True, slots=True)
class DiagramLine:
    """A connection of two boxes, from a point on one to a point on the other. ``kind``: memory, socket, bus, wire or direct."""

    name: str
    kind: str
    a: str
    b: str
    points: tuple[tuple[float, float], tuple[float, float]]
    label: str = ""


@dataclass(slots=True)
class Diagram:
    """Boxes and lines by name, and the hosts around them (name, x, y, w, h)."""

    width: float
    height: float
    hosts: list[tuple[str, float, float, float, float]]
    boxes: dict[str, Box] = field(default_factory=dict)
    lines: dict[str, DiagramLine] = field(default_factory=dict)

    def line(self, a: str, b: str) -> str:
        """The name of the line between two boxes; KeyError where there is none."""
        for name in (f"{a}|{b}", f"{b}|{a}"):
            if name in self.lines:
                return name
        raise KeyError(f"no line joins {a} and {b}")


def memory_of(channel: Channel) -> str:
    """The box of a channel's shared memory: both directions of a pool share it; rings of the same two processes have one box per kind."""
    low, high = sorted((channel.source, channel.target))
    return f"memory {channel.medium} {low} {high} {channel.total}"


def kernel_of(host: str) -> str:
    """The box of a host's operating system."""
    return f"kernel {host}"


def card_of(host: str) -> str:
    """The box of a host's network card."""
    return f"card {host}"


def _on_the_way(path: MessagePath, transits: Sequence[PacketTransit]) -> tuple[list[int], list[Channel]]:
    """The processes and the channels that the transits use, in order of first use."""
    processes: dict[int, None] = {}
    channels: dict[int, Channel] = {}
    for p in transits:
        processes |= {p.source: None, p.target: None}
        if p.channel >= 0:
            channels[p.channel] = path.channels[p.channel]
    return list(processes), list(channels.values())


def diagram(path: MessagePath, transits: Sequence[PacketTransit], wire: str = "wire") -> Diagram:
    """The diagram of the processes and channels that ``transits`` use; ``wire`` is the name of the connection between the cards."""
    processes, channels = _on_the_way(path, transits)
    hosts = [h for h in path.hosts if any(path.processes[p].host == h for p in processes)]
    width = _HOST if len(hosts) > 1 else _WIDTH - 2 * _MARGIN
    far = [c for c in channels if path.processes[c.source].host != path.processes[c.target].host]
    out = Diagram(_WIDTH, 0, [])
    rows = _rows(channels, far)
    for i, host in enumerate(hosts):
        x = _MARGIN + i * (_WIDTH - 2 * _MARGIN - width)
        mine = [p for p in processes if path.processes[p].host == host]
        _processes(out, path, mine, host, x, width, mirrored=i > 0)
        _memories(out, path, channels, host, x, width, rows["memory"])
        sockets = [c for c in channels if c.medium in _SOCKETS and host in (path.processes[c.source].host, path.processes[c.target].host)]
        if sockets:
            _add(
                out,
                Box(
                    kernel_of(host),
                    "kernel",
                    _("operating system"),
                    ", ".join(_media(sockets)),
                    host,
                    x + 8,
                    rows["kernel"] - 22,
                    width - 16,
                    44,
                ),
            )
        if any(host in (path.processes[c.source].host, path.processes[c.target].host) for c in far):
            _add(out, Box(card_of(host), "card", _("network card"), "", host, x + width / 2 - 72, rows["card"] - 19, 144, 38))
    bottom = max(b.y + b.h for b in out.boxes.values()) + 14
    out.hosts = [(h, _MARGIN + i * (_WIDTH - 2 * _MARGIN - width), 4, width, bottom - 4) for i, h in enumerate(hosts)]
    out.height = bottom + (24 if far else 6)
    _lines(out, path, transits, channels, wire)
    return out


def _rows(channels: Sequence[Channel], far: Sequence[Channel]) -> dict[str, float]:
    """The vertical position of the middle of each row."""
    used = {
        "memory": any(c.medium in _MEMORY for c in channels),
        "kernel": any(c.medium in _SOCKETS for c in channels),
        "card": bool(far),
    }
    out, y = {}, float(_TOP)
    for row, below in _ROWS.items():
        y += below if used[row] else 0
        out[row] = y
    return out


def _add(out: Diagram, box: Box) -> None:
    out.boxes[box.name] = box


def _media(channels: Sequence[Channel]) -> list[str]:
    return list(dict.fromkeys(_(_MEDIA[c.medium]) for c in channels))


def _processes(out: Diagram, path: MessagePath, mine: Sequence[int], host: str, x: float, width: float, *, mirrored: bool) -> None:
    """Ranks outside, forwarding processes inside; two ranks of one host at its two sides."""
    ranks = [p for p in mine if path.processes[p].name.startswith("rank")]
    ordered = [*ranks[:1], *(p for p in mine if p not in ranks), *ranks[1:]]
    if mirrored:
        ordered.reverse()
    w, h = _BOX
    space = width - 16 - w
    for i, p in enumerate(ordered):
        place = 0.5 if len(ordered) == 1 else i / (len(ordered) - 1)
        short = process_name(path.processes[p].name, short=True)
        _add(out, Box(f"process {p}", "process", short, "", host, x + 8 + place * space, _TOP - h / 2, w, h))


def _memories(out: Diagram, path: MessagePath, channels: Sequence[Channel], host: str, x: float, width: float, y: float) -> None:
    found: dict[str, Channel] = {}
    for c in channels:
        if c.medium in _MEMORY and path.processes[c.source].host == host:
            found.setdefault(memory_of(c), c)
    for i, (name, c) in enumerate(found.items()):
        ends = [out.boxes[f"process {p}"] for p in (c.source, c.target)]
        middle = sum(b.x + b.w / 2 for b in ends) / 2
        w = min(190, width / len(found) - 12)
        if len(found) > 1:
            middle = x + (i + 0.5) * width / len(found)
        size = format_bytes(c.total) if c.unit == "B" else _amount_text(c.total, c.unit)
        _add(out, Box(name, "memory", _(_MEDIA[c.medium]), size if c.total else "", host, middle - w / 2, y - 26, w, 52))


def _amount_text(n: int, unit: str) -> str:
    """What a channel holds, in the engine's unit."""
    if unit == "slots":
        return ngettext("{n} slot", "{n} slots", n).format(n=n)
    return ngettext("{n} packet", "{n} packets", n).format(n=n) if unit == "packets" else f"{n} {unit}"


def _lines(out: Diagram, path: MessagePath, transits: Sequence[PacketTransit], channels: Sequence[Channel], wire: str) -> None:
    for c in channels:
        a, b = f"process {c.source}", f"process {c.target}"
        hosts = [path.processes[p].host for p in (c.source, c.target)]
        if c.medium in _MEMORY:
            memory = memory_of(c)
            _join(out, "memory", a, memory)
            _join(out, "memory", memory, b)
        elif c.medium in _SOCKETS:
            _join(out, "socket", a, kernel_of(hosts[0]))
            _join(out, "socket", b, kernel_of(hosts[1]))
            if hosts[0] != hosts[1]:
                for h in hosts:
                    _join(out, "bus", kernel_of(h), card_of(h))
        elif c.medium == "dma":
            _join(out, "bus", a, card_of(hosts[0]))
            _join(out, "bus", b, card_of(hosts[1]))
        if hosts[0] != hosts[1]:
            _join(out, "wire", card_of(hosts[0]), card_of(hosts[1]), wire)
    for p in transits:
        if p.channel < 0:
            _join(out, "direct", f"process {p.source}", f"process {p.target}", _("direct copy"))


def _join(out: Diagram, kind: str, a: str, b: str, label: str = "") -> None:
    """Adds a line between two boxes, unless there is one: horizontal between sides, else from top to bottom."""
    if f"{a}|{b}" in out.lines or f"{b}|{a}" in out.lines:
        return
    x, y = out.boxes[a], out.boxes[b]
    if abs(x.y + x.h / 2 - y.y - y.h / 2) < 1:
        left, right = (x, y) if x.x < y.x else (y, x)
        ends = {left.name: (left.x + left.w, left.y + left.h / 2), right.name: (right.x, right.y + right.h / 2)}
    else:
        upper, lower = (x, y) if x.y < y.y else (y, x)
        low = min(max(upper.x + upper.w / 2, lower.x + 12), lower.x + lower.w - 12)
        high = min(max(low, upper.x + 12), upper.x + upper.w - 12)
        ends = {upper.name: (high, upper.y + upper.h), lower.name: (low, lower.y)}
    out.lines[f"{a}|{b}"] = DiagramLine(f"{a}|{b}", kind, a, b, (ends[a], ends[b]), label)


def crossings(out: Diagram) -> list[tuple[str, str]]:
    """Pairs of boxes that overlap; a readable diagram has none."""
    boxes = list(out.boxes.values())
    return [
        (a.name, b.name)
        for i, a in enumerate(boxes)
        for b in boxes[i + 1 :]
        if a.x < b.x + b.w and b.x < a.x + a.w and a.y < b.y + b.h and b.y < a.y + a.h
    ]


def neighbours(out: Diagram, path: Sequence[str]) -> bool:
    """Whether consecutive boxes of a path are joined."""
    return all(a == b or any({line.a, line.b} == {a, b} for line in out.lines.values()) for a, b in pairwise(path))
