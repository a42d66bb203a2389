"""A message's path in words: the chain of causes as a table of hops, with repetitions merged."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from retrompi.base.translate import _, lazy
from retrompi.base.units import PS, format_bytes, format_time
from retrompi.render.document.engine_words import process_name
from retrompi.sim.message_path import MessagePath, PacketTransit, PathLink
from retrompi.sim.stages import STAGE_WORDS
from retrompi.spec.declare.outcome import Outcome

__all__ = ["OUTCOME_WORDS", "Hop", "Speaker", "hops", "seconds", "time_of"]

OUTCOME_WORDS = {
    Outcome.LIMIT: lazy("A bound of this studio ended the simulation; what it had computed until then is shown. On the command line, "
             "--event-limit, --wall-limit, --memory-limit and --time-limit set other bounds."),
    Outcome.TIMEOUT: lazy("The run reached the longest simulated time that this studio allows; what happened until then is shown."),
    Outcome.OVERFLOW: lazy("A time or an amount passed what 64 bits can count, usually because of a parameter far outside of anything "
                           "real."),
}
"""What a user is told in addition about a run that ended like this."""
_MEDIUM = {
    "pool": lazy("the shared memory pool"),
    "ring": lazy("a packet slot"),
    "stream": lazy("the TCP socket"),
    "datagram": lazy("the UDP socket"),
    "dma": lazy("the card's packet buffer"),
}
_NETWORK_PACKET = {
    "segment": lazy("a TCP segment"),
    "ack": lazy("a TCP acknowledgement"),
    "credit": lazy("returned credits"),
    "datagram": lazy("a frame of a datagram"),
    "datagram ack": lazy("a datagram's acknowledgement"),
    "transfer": lazy("the packet"),
    "read": lazy("data into the user's buffer"),
}


@dataclass(frozen=True, slots=True)
class Hop:
    """A row of the table: ``times`` repetitions of one or more links together, ``begin`` ps after the direction began, ``took`` ps."""

    begin: int
    took: int
    where: str
    stage: str
    what: str
    times: int


def time_of(ps: int) -> str:
    """A time in picoseconds, formatted for readers."""
    return seconds(ps * PS)


def seconds(value: float) -> str:
    """A time in seconds, formatted for readers with the symbol µ."""
    return format_time(value).replace(" us", " µs")


class Speaker:
    """Determines which packet a process was copying in or out at a given moment."""

    def __init__(self, path: MessagePath) -> None:
        self.path = path
        self.doing: dict[int, list[tuple[int, int, PacketTransit, bool]]] = {}
        for p in path.transits:
            if p.copy_in_end >= 0:
                self.doing.setdefault(p.source, []).append((p.queued, p.copy_in_end, p, True))
            if p.copy_out_begin >= 0 and p.copy_out_end >= 0:
                self.doing.setdefault(p.target, []).append((p.copy_out_begin, p.copy_out_end, p, False))
        for rows in self.doing.values():
            rows.sort(key=lambda r: r[0])
        self.begins = {k: [r[0] for r in rows] for k, rows in self.doing.items()}

    def at(self, link: PathLink) -> tuple[PacketTransit, bool] | None:
        """The packet that the link's process is copying, and whether it copies it in."""
        rows = self.doing.get(link.process, [])
        i = bisect_right(self.begins.get(link.process, []), link.begin)
        for begin, end, p, into in reversed(rows[max(0, i - 6) : i]):
            if begin <= link.begin and link.end <= end:
                return p, into
        return None

    def of(self, link: PathLink) -> str:
        """A description of a link's activity."""
        if link.process < 0:
            return self._elsewhere(link)
        process = self.path.processes[link.process].name
        name = process_name(process)
        found = self.at(link)
        packet, channel = "", _("a channel")
        if found:
            p = found[0]
            packet = {
                "data": _("a packet of {bytes}").format(bytes=format_bytes(p.bytes)),
                "request": _("the request to send"),
                "ready": _("the answer “ready”"),
            }.get(p.kind, _("the last word"))
            channel = _("the sender's memory") if p.channel < 0 else _(_MEDIUM[self.path.channels[p.channel].medium])
        into = found is not None and found[1]
        match link.stage:
            case "copy" if found:
                if found[0].channel < 0:
                    return _("{name} copies {packet} directly from the sender's memory").format(name=name, packet=packet)
                told = _("{name} copies {packet} into {channel}") if into else _("{name} copies {packet} out of {channel}")
                return told.format(name=name, packet=packet, channel=channel)
            case "library" if found:
                send = lazy("{name} runs the library's code to send {packet}")
                receive = lazy("{name} runs the library's code to receive {packet}")
                return _(send if into else receive).format(name=name, packet=packet)
            case "library":
                if not process.startswith("rank"):
                    return _("{name} routes the packet").format(name=name)
                return _("{name} runs its part of the send or receive call in the library").format(name=name)
            case "syscall" if found:
                told = _("{name} calls the system to write {packet}") if into else _("{name} calls the system to read {packet}")
                return told.format(name=name, packet=packet)
            case "nic":
                what = packet or _("the data")
                return _("{name} writes {packet} to the network card by programmed I/O").format(name=name, packet=what)
            case "event":
                return _("{name} signals the other process through a kernel object").format(name=name)
            case "switch":
                return _("the processor switches to {name}").format(name=name)
            case "quantum":
                return _("{name} is ready, but another process spins until its quantum ends").format(name=name)
            case "queueing":
                return _("{name} is ready, but the processor is busy with other work").format(name=name)
            case "tick":
                return _("{name} sleeps until the next clock tick").format(name=name)
            case "interrupt":
                return _("{name} is interrupted by the kernel").format(name=name)
            case "poll":
                return _("{name} detects the arrival by polling").format(name=name)
            case "line":
                return _("{name} waits for a cache line of another core").format(name=name)
            case "lock":
                return _("{name} takes or releases the library's lock").format(name=name)
        return f"{name}: {_(STAGE_WORDS[link.stage])}"

    def _elsewhere(self, link: PathLink) -> str:
        packet = self.path.packets[link.packet] if link.packet >= 0 else None
        what = _(_NETWORK_PACKET.get(packet.kind, lazy("a frame"))) if packet else _("a frame")
        match link.stage:
            case "stack":
                return _("TCP/IP on {who} processes {what}").format(who=link.who, what=what)
            case "copy":
                return _("the system of {who} copies {what}").format(who=link.who, what=what)
            case "nic":
                return _("{what} crosses the bus of {who}'s card").format(what=what, who=link.who)
            case "wire":
                return _("{what} is on the wire").format(what=what)
            case "ack":
                retry = _("retry timer") if "retr" in link.who else _("delayed acknowledgement's timer")
                return _("nothing is sent until the {retry} expires").format(retry=retry)
            case "queueing":
                busy = _("the network card") if packet and packet.kind == "transfer" else _("the kernel or the card")
                return _("{what} waits on {who}: {busy} is busy with earlier work").format(what=what, who=link.who, busy=busy)
            case "tick":
                return _("nothing happens until the next clock tick")
        return f"{link.who}: {_(STAGE_WORDS[link.stage])}"


def hops(path: MessagePath, direction: int = 0, most: int = 60) -> list[Hop]:
    """The chain of a direction as rows that sum to it exactly; if it has more than ``most`` links, repetitions are merged.

    A repetition is a run of rounds of the same stages at the same places (packet after packet): each of its rows represents all rounds.
    """
    it, speaker = path.directions[direction], Speaker(path)
    rows: list[Hop] = []
    for link in it.chain:
        where = link.who if link.process < 0 else path.processes[link.process].name
        what = speaker.of(link)
        if rows and (rows[-1].where, rows[-1].stage, rows[-1].what) == (where, link.stage, what):
            last = rows.pop()
            rows.append(Hop(last.begin, last.took + link.took, where, link.stage, what, 1))
        else:
            rows.append(Hop(link.begin - it.begin, link.took, where, link.stage, what, 1))
    return rows if len(rows) <= most else _told_once(rows, most)


def _told_once(rows: Sequence[Hop], most: int) -> list[Hop]:
    """Repeating rounds of up to 24 rows are merged; if that is not enough, all rows of one place and stage between them."""
    out: list[Hop] = []
    keys = [(r.where, r.stage, r.what) for r in rows]
    i = 0
    while i < len(rows):
        period, rounds = 0, 1
        for length in range(1, 25):
            n = 1
            while keys[i : i + length] == keys[i + n * length : i + (n + 1) * length]:
                n += 1
            if n > 1 and n * length > period * rounds * (1 if rounds > 1 else 0):
                period, rounds = length, n
                if n > 2:
                    break
        if rounds == 1:
            out.append(rows[i])
            i += 1
            continue
        for k in range(period):
            same = rows[i + k : i + period * rounds : period]
            first = same[0]
            out.append(Hop(first.begin, sum(r.took for r in same), first.where, first.stage, first.what, sum(r.times for r in same)))
        i += period * rounds
    if len(out) <= most:
        return out
    return _by_place(out, most)


def _by_place(rows: Sequence[Hop], most: int) -> list[Hop]:
    """The first and the last rows unchanged; those between them summed by place, stage and words."""
    ends = max(4, most // 4)
    head, middle, tail = rows[:ends], rows[ends:-ends], rows[-ends:]
    sums: dict[tuple[str, str, str], Hop] = {}
    for r in middle:
        key = (r.where, r.stage, r.what)
        known = sums.get(key)
        sums[key] = Hop(known.begin, known.took + r.took, *key, known.times + r.times) if known else r
    return [*head, *sums.values(), *tail]
