"""A message's path as an animation: what is where at each moment, from the engine's record alone.

`scene` returns plain JSON for ``assets/anatomy.js``, which draws boxes and lines and moves tokens along them. A token's steps are
consecutive in time; in each it is at a box or crosses a line of the diagram. Times are picoseconds since the direction began.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate, pairwise
from typing import Any

from retrompi.base.translate import _, lazy
from retrompi.base.units import format_bytes
from retrompi.render.document.engine_words import process_name, stage_name
from retrompi.sim.message_path import Direction, HostWork, MessagePath, NetworkPacket, PacketTransit, PathLink, Stretch
from retrompi.sim.stages import STAGE_WORDS
from retrompi.studio.anatomy.path_diagram import Diagram, card_of, diagram, kernel_of, memory_of
from retrompi.studio.anatomy.path_words import Speaker

Piece = tuple[Any, ...]
"""(begin, end, stage, further attributes …): an interval of a lane or of the chain's strip."""

__all__ = ["STAGES", "Token", "TokenStep", "bars", "scene", "tokens"]

MOST_TOKENS = 500
"""The most tokens of an animation; of more, every k-th of each kind is shown, and the page says so."""
MOST_PIECES = 900
"""The most intervals of the chain's strip, and of a process's lane."""

STAGES: dict[str, tuple[str, bool]] = {
    "library": ("#0072B2", False),
    "copy": ("#E69F00", False),
    "syscall": ("#56B4E9", False),
    "event": ("#56B4E9", True),
    "switch": ("#CC79A7", False),
    "tick": ("#CC79A7", True),
    "quantum": ("#D55E00", False),
    "queueing": ("#D55E00", True),
    "poll": ("#F0E442", False),
    "ack": ("#F0E442", True),
    "stack": ("#009E73", False),
    "interrupt": ("#009E73", True),
    "nic": ("#8a8a8a", True),
    "wire": ("#6b6b6b", False),
    "compute": ("#0072B2", True),
    "lock": ("#E69F00", True),
    "line": ("#b0a05a", False),
    "wait": ("none", False),
}
"""Stage -> (colour, hatched): two visual cues, so that no reader depends on colour alone."""


@dataclass(frozen=True, slots=True)
class TokenStep:
    """From ``begin`` to ``end`` a token is at the box ``at``, or crosses the line ``at`` from the box ``start`` to the box ``stop``."""

    begin: int
    end: int
    at: str
    start: str = ""
    stop: str = ""


@dataclass(slots=True)
class Token:
    """A packet, frame, acknowledgement or timer on its way; ``back``: it moves against the message's direction."""

    kind: str
    label: str
    bytes: int
    back: bool
    steps: list[TokenStep] = field(default_factory=list)


_LABELS = {
    "data": lazy("packet of the message"),
    "request": lazy("request to send"),
    "ready": lazy("answer: ready to receive"),
    "matched": lazy("answer: matched"),
    "done": lazy("answer: copied"),
    "segment": lazy("TCP segment"),
    "ack": lazy("TCP acknowledgement"),
    "credit": lazy("credits given back"),
    "datagram": lazy("UDP datagram"),
    "datagram ack": lazy("acknowledgement of a datagram"),
    "transfer": lazy("transfer by the card"),
    "read": lazy("copy by the system"),
    "timer": lazy("timer"),
}
_BACK = {"ack", "credit", "datagram ack"}


def tokens(path: MessagePath, direction: int, picture: Diagram) -> list[Token]:
    """All moving objects of a direction: its message's packets through their channels, then the traffic of kernels, cards and the wire."""
    it = path.directions[direction]
    transits = path.of(direction)
    waits = _until_passed_on(transits)
    found = [t for i, p in enumerate(transits) for t in _of_transit(path, it, picture, p, waits.get(i))]
    work: dict[int, list[HostWork]] = defaultdict(list)
    for w in path.work:
        if w.packet >= 0 and w.end > it.begin and w.asked < it.end:
            work[w.packet].append(w)
    onward = {p.channel for p in transits if p.kind in ("data", "request")}
    for packet, rows in work.items():
        if token := _of_network_packet(path, it, picture, path.packets[packet], sorted(rows, key=lambda w: (w.asked, w.end)), onward):
            found.append(token)
    return [t for t in found if t.steps]


def _until_passed_on(transits: Sequence[PacketTransit]) -> dict[int, int]:
    """Index of a transit into a forwarder -> when the forwarder begins to put its last byte into the next channel."""
    out: dict[int, int] = {}
    for kind in dict.fromkeys(p.kind for p in transits):
        into: dict[int, list[int]] = defaultdict(list)
        on: dict[int, list[PacketTransit]] = defaultdict(list)
        for i, p in enumerate(transits):
            if p.kind == kind:
                into[p.target].append(i)
                on[p.source].append(p)
        for process, arrived in into.items():
            ends = list(accumulate(p.bytes for p in on.get(process, [])))
            for i, total in zip(arrived, accumulate(transits[i].bytes for i in arrived), strict=True):
                k = bisect_left(ends, total)
                if k < len(ends):
                    out[i] = on[process][k].copy_in_begin
    return out


def _clip(it: Direction, steps: Iterable[TokenStep]) -> list[TokenStep]:
    """Steps clipped to the direction, from its start on, without those of zero length."""
    return [
        TokenStep(max(s.begin, it.begin) - it.begin, min(s.end, it.end) - it.begin, s.at, s.start, s.stop)
        for s in steps
        if min(s.end, it.end) > max(s.begin, it.begin)
    ]


def _of_transit(path: MessagePath, it: Direction, picture: Diagram, p: PacketTransit, passed_on: int | None) -> list[Token]:
    """A packet through one channel: one token, or one at each end while the system or a card holds it in between."""
    a, b = f"process {p.source}", f"process {p.target}"
    inside, out, taken = (t if t >= 0 else it.end for t in (p.copy_in_end, p.copy_out_begin, p.copy_out_end))
    label = f"{_(_LABELS[p.kind])}, {format_bytes(p.bytes)}"
    back = p.kind in ("ready", "matched", "done")
    stay = [TokenStep(taken, passed_on, b)] if passed_on is not None and passed_on > taken else []

    def token(*steps: TokenStep) -> Token:
        return Token(p.kind, label, p.bytes, back, _clip(it, steps))

    def cross(begin: int, end: int, start: str, stop: str) -> TokenStep:
        return TokenStep(begin, end, picture.line(start, stop), start, stop)

    if p.channel < 0:
        return [token(cross(p.copy_in_begin, taken, a, b))]
    channel = path.channels[p.channel]
    hosts = [path.processes[i].host for i in (p.source, p.target)]
    if channel.medium in ("pool", "ring"):
        memory = memory_of(channel)
        in_memory = [cross(p.copy_in_begin, inside, a, memory), TokenStep(inside, out, memory), cross(out, taken, memory, b)]
        return [token(TokenStep(p.queued, p.copy_in_begin, a), *in_memory, *stay)]
    if channel.medium == "dma":
        start = min((w.asked for w in path.work if w.packet >= 0 and _carries(path, w, p)), default=inside)
        return [token(TokenStep(p.queued, start, a)), token(TokenStep(out, taken, b), *stay)]
    ends = [kernel_of(h) for h in hosts]
    sent = token(TokenStep(p.queued, p.copy_in_begin, a), cross(p.copy_in_begin, inside, a, ends[0]))
    return [sent, token(cross(out, taken, ends[1], b), *stay)]


def _carries(path: MessagePath, w: HostWork, p: PacketTransit) -> bool:
    t = path.packets[w.packet]
    if t.kind != "transfer" or t.channel != p.channel or w.stage != "nic":
        return False
    return p.copy_in_begin <= w.asked <= (p.copy_in_end if p.copy_in_end >= 0 else w.asked)


def _of_network_packet(
    path: MessagePath, it: Direction, picture: Diagram, packet: NetworkPacket, rows: Sequence[HostWork], onward: set[int]
) -> Token | None:
    """A frame or a transfer through the sender's system, its bus, the wire, the receiver's bus and system, as far as it gets."""
    channel = path.channels.get(packet.channel)
    if channel is None:
        return None
    a, b = path.hosts[packet.source], path.hosts[packet.target]
    against = (packet.kind in _BACK) == (packet.channel in onward)
    direct = channel.medium == "dma"
    ends = [channel.source, channel.target] if path.processes[channel.source].host == a else [channel.target, channel.source]
    homes = [f"process {p}" for p in ends] if direct else [kernel_of(a), kernel_of(b)]
    steps: list[TokenStep] = []
    kind = packet.kind
    for w in rows:
        if w.stage == "ack":
            kind = "timer"
            steps.append(TokenStep(w.asked, w.end, kernel_of(a)))
        elif packet.kind == "read":
            process = f"process {channel.target}"
            steps.append(TokenStep(w.start, w.end, picture.line(kernel_of(b), process), kernel_of(b), process))
        elif w.stage == "wire":
            steps.append(TokenStep(w.asked, w.end, picture.line(card_of(a), card_of(b)), card_of(a), card_of(b)))
        elif w.stage == "nic":
            start, stop = (homes[0], card_of(a)) if w.where == a else (card_of(b), homes[1])
            steps.append(TokenStep(w.asked, w.start, start))
            steps.append(TokenStep(w.start, w.end, picture.line(start, stop), start, stop))
        else:
            steps.append(TokenStep(w.asked, w.end, kernel_of(w.where)))
    known = all(_is_shown(picture, s) for s in steps)
    if not known:
        return None
    size = f", {format_bytes(packet.bytes)}" if packet.bytes else ""
    return Token(kind, _(_LABELS.get(kind, kind)) + size, packet.bytes, against, _clip(it, steps))


def _is_shown(picture: Diagram, step: TokenStep) -> bool:
    return step.at in (picture.lines if step.start else picture.boxes)


def _sample_tokens(found: Sequence[Token], most: int) -> tuple[list[Token], str]:
    """At most about ``most`` tokens, every k-th of each kind, in the given order; and a sentence if some were left out."""
    if len(found) <= most:
        return list(found), ""
    k = -(-len(found) // most)
    seen: dict[tuple[str, str], int] = defaultdict(int)
    kept = []
    for t in found:
        key = (t.kind, t.steps[0].at)
        if seen[key] % k == 0:
            kept.append(t)
        seen[key] += 1
    return kept, _("{n} packets, frames and acknowledgements are on their way; of each kind every {k}. is drawn.").format(n=len(found), k=k)


def _thin(pieces: Sequence[Piece], most: int) -> list[Piece]:
    """Equal neighbours merged; if there are still more than ``most``, each of ``most`` intervals is represented by its longest piece."""
    joined: list[Piece] = []
    for p in pieces:
        if joined and joined[-1][1] == p[0] and joined[-1][2:] == p[2:]:
            joined[-1] = (joined[-1][0], p[1], *p[2:])
        else:
            joined.append(p)
    if len(joined) <= most:
        return joined
    begin, end = joined[0][0], joined[-1][1]
    width = -(-(end - begin) // most)
    out: list[Piece] = []
    i = 0
    for at in range(begin, end, width):
        until = min(at + width, end)
        shares: dict[Piece, int] = defaultdict(int)
        while i < len(joined) and joined[i][0] < until:
            p = joined[i]
            shares[p[2:]] += min(p[1], until) - max(p[0], at)
            if p[1] > until:
                break
            i += 1
        if shares:
            out.append((at, until, *max(shares, key=lambda k: shares[k])))
    return _thin(out, most) if len(out) > most else out


def _lane(it: Direction, stretches: Iterable[Stretch]) -> list[Piece]:
    inside = [
        (max(s.begin, it.begin) - it.begin, min(s.end, it.end) - it.begin, s.stage, s.why)
        for s in stretches
        if s.end > it.begin and s.begin < it.end
    ]
    return _thin(inside, MOST_PIECES) if inside else []


def where(path: MessagePath, picture: Diagram, link: PathLink) -> str:
    """The box or line of the diagram at which a link of the chain takes place; empty for the clock."""
    if link.process >= 0:
        name = f"process {link.process}"
        return name if name in picture.boxes else ""
    if link.who == "wire":
        return next((line.name for line in picture.lines.values() if line.kind == "wire"), "")
    if link.packet < 0:
        return ""
    packet = path.packets[link.packet]
    host = path.hosts[packet.source] if link.stage == "ack" else link.who
    name = card_of(host) if link.stage == "nic" else kernel_of(host)
    return name if name in picture.boxes else ""


def bars(links: Iterable[PathLink]) -> list[tuple[str, int]]:
    """(stage, picoseconds) of the links, summed, in the order of `STAGES`; the total equals the direction exactly."""
    sums: dict[str, int] = defaultdict(int)
    for k in links:
        sums[k.stage] += k.took
    order = list(STAGES)
    return sorted(sums.items(), key=lambda s: order.index(s[0]))


def scene(path: MessagePath, direction: int = 0, *, title: str = "", wire: str = "wire") -> dict[str, Any]:
    """The animation of a direction as plain JSON values: boxes, lines, hosts, tokens, lanes of processes, the strip of the chain."""
    it = path.directions[direction]
    picture = diagram(path, path.of(direction), wire)
    moving, note = _sample_tokens(tokens(path, direction, picture), MOST_TOKENS)
    speaker = Speaker(path)
    strip = _thin(
        [(k.begin - it.begin, k.end - it.begin, k.stage, where(path, picture, k), speaker.of(k)) for k in it.chain], MOST_PIECES
    )
    texts = list(dict.fromkeys(p[4] for p in strip))
    processes = [int(name.partition(" ")[2]) for name, box in picture.boxes.items() if box.kind == "process"]
    return {
        "title": title,
        "total": it.took,
        "width": picture.width,
        "height": picture.height,
        "hosts": [list(h) for h in picture.hosts],
        "boxes": [asdict(b) for b in picture.boxes.values()],
        "lines": [{**asdict(line), "points": [list(p) for p in line.points]} for line in picture.lines.values()],
        "tokens": [
            {
                "kind": t.kind,
                "label": t.label,
                "back": t.back,
                "steps": [[s.begin, s.end, s.at, s.start, s.stop] for s in t.steps],
            }
            for t in sorted(moving, key=lambda t: t.steps[0].begin)
        ],
        "lanes": [
            {
                "name": process_name(path.processes[p].name),
                "short": process_name(path.processes[p].name, short=True),
                "box": f"process {p}",
                "pieces": [list(x) for x in _lane(it, path.processes[p].stretches)],
            }
            for p in processes
        ],
        "strip": [[*p[:4], texts.index(p[4])] for p in strip],
        "texts": texts,
        "words": {k: _(v) for k, v in STAGE_WORDS.items()},
        "names": {k: stage_name(k) for k in STAGES},
        "alt": "; ".join(f"{h[0]}: {', '.join(b.label for b in picture.boxes.values() if b.host == h[0])}" for h in picture.hosts),
        "stages": {name: list(look) for name, look in STAGES.items()},
        "note": note,
    }


def gaps(found: Iterable[Token]) -> list[tuple[TokenStep, TokenStep]]:
    """Pairs of consecutive steps of a token of which the second begins before the first ends; empty in a consistent scene."""
    return [(a, b) for t in found for a, b in pairwise(t.steps) if b.begin < a.end]
