"""A timeline as a Perfetto trace (ui.perfetto.dev, `trace_processor`), by the official protos of the package `perfetto`.

Hosts are processes, ranks, proxies and daemons their threads. A thread's own track has the calls as slices, and the sending, passing and
receiving of messages as instants, which a flow connects; a second track below it has the states; two counters of the whole run have the
messages and bytes in flight. Perfetto counts nanoseconds: times are rounded down, and what that removes is kept in the annotations
`begin_ps` and `end_ps` (0 to 999).

Every track is a packet sequence of its own with its own interned names, written event by event: memory does not grow with their number.
The format: protos/perfetto/trace/track_event/track_event.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from retrompi.base.errors import UsageError
from retrompi.sim.timeline import Timeline

__all__ = ["LOSS", "MISSING", "available", "write"]

MISSING = "Perfetto needs the package perfetto: pip install 'retrompi[perfetto]'"
LOSS = (
    "the traffic between ranks and the sums by state, which count the whole run",
    "communicators' members: a call has the number of its communicator",
)
_RESET, _NEEDS = 1, 2  # TracePacket.SequenceFlags: the interned state begins here; the packet needs it
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4  # TrackEvent.Type
_PER_NS = 1000
_ALONE = ("compute", "sleep", "kernel", "init", "finalize")
"""Calls that have no peer."""


def available() -> bool:
    """Whether the package is installed."""
    try:
        import perfetto.protos.perfetto.trace.perfetto_trace_pb2  # noqa: F401
    except ImportError:
        return False
    return True


def write(timeline: Timeline, path: Path) -> list[str]:
    """Write the trace ``path``; returns what the format cannot express.

    Raises UsageError when the package is missing.
    """
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
    except ImportError:
        raise UsageError(MISSING, code="missing-tool") from None
    t = timeline
    with path.open("wb") as out:
        tracks = _Tracks(pb, out)
        hosts = {h: i + 1 for i, h in enumerate(dict.fromkeys(p.host for p in t.processes))}
        for host, pid in hosts.items():
            tracks.process(pid, host)
        threads = [tracks.thread(hosts[p.host], len(hosts) + 1 + i, p.name, i) for i, p in enumerate(t.processes)]
        ranks = {place: rank for rank, place in enumerate(t.process_of())}
        calls = _calls(t)
        instants = _instants(t)
        for i, p in enumerate(t.processes):
            with tracks.child(threads[i], "states") as states:
                for begin, end, state, merged in p.states():
                    states.plain(begin, _BEGIN, t.states[state], merged)
                    states.plain(end, _END)
            with _Track(tracks, threads[i]) as thread:
                _thread(t, thread, calls.get(ranks.get(i, -1), range(0)), instants[i])
        loss = [*LOSS, *t.notes()]
        if t.every_message == 1:
            _in_flight(t, tracks)
        elif len(t.messages):
            loss.append("the counters of messages in flight: not every message was recorded")
    return loss


def _calls(t: Timeline) -> dict[int, range]:
    """Rank -> its places in ``Timeline.calls``."""
    out: dict[int, range] = {}
    for i, rank in enumerate(t.calls.rank):
        out[rank] = range(out[rank].start if rank in out else i, i + 1)
    return out


def _instants(t: Timeline) -> list[list[tuple[int, int, int, str]]]:
    """For every process (time, message, flow: 1 begins or goes on, 2 ends; the instant's name) in order of time."""
    place, m = t.process_of(), t.messages
    out: list[list[tuple[int, int, int, str]]] = [[] for _ in t.processes]
    for i, path in enumerate(m.paths()):
        out[place[m.source[i]]].append((m.sent[i], i, 1, "message sent"))
        for process, entered, left in path:
            out[process].append((entered, i, 1, "message in"))
            if left >= 0:
                out[process].append((left, i, 1, "message out"))
        if m.received[i] >= 0:
            out[place[m.destination[i]]].append((m.received[i], i, 2, "message received"))
    for mine in out:
        mine.sort(key=lambda x: (x[0], x[3] == "message sent"))  # at one time, what a call ends with before what the next begins with
    return out


def _thread(t: Timeline, track: _Track, calls: Sequence[int], instants: Sequence[tuple[int, int, int, str]]) -> None:
    """The calls of a rank in order, each with the messages that it sends and receives inside it; of any other process the messages."""
    c, m, k = t.calls, t.messages, 0

    def until(end: int, line: int | None = None) -> Iterator[tuple[int, int, int, str]]:
        """Those before ``end``, and with ``line`` those at it which the call of that line ends with, or sends."""
        nonlocal k
        while k < len(instants):
            at, i, _, name = instants[k]
            if at > end or (at == end and (line is None or (name == "message sent" and m.line[i] != line))):
                return
            yield instants[k]
            k += 1

    def note(found: Iterator[tuple[int, int, int, str]]) -> None:
        for at, i, flow, name in found:
            told = {"from rank": m.source[i], "to rank": m.destination[i], "bytes": m.bytes[i], "sent in line": m.line[i]}
            if m.receive_line and m.receive_line[i]:
                told["received in line"] = m.receive_line[i]
            if m.context[i] % 2:
                told["of a collective"] = 1
            else:
                told["tag"] = m.tag[i]
            if m.rendezvous[i]:
                told["rendezvous"] = 1
            track.instant(at, name, told, i + 1, ends=flow == 2)

    for i in calls:
        op = t.ops[c.op[i]]
        note(until(c.begin[i]))
        told: dict[str, int | str] = {"file": t.files[c.rank[i]], "line": c.line[i]}
        if c.comm[i] > 0:
            told["communicator"] = t.comms[c.comm[i]][0] if c.comm[i] < len(t.comms) else c.comm[i]
        if op not in _ALONE and c.peer[i] >= 0:
            told |= {"peer": c.peer[i]}
        if op not in _ALONE and c.peer[i] != -1 and c.tag[i] >= 0:
            told |= {"tag": c.tag[i]}
        if c.bytes[i] > 0:
            told |= {"bytes": c.bytes[i]}
        track.begin(c.begin[i], op, told)
        note(until(c.end[i], c.line[i]))
        if not c.open[i]:  # a call that had not returned stays open: Perfetto says that it did not end
            track.end(c.end[i])
    note(until(2**63))


def _in_flight(t: Timeline, tracks: _Tracks) -> None:
    """Messages and bytes that were sent and not yet received, at every change."""
    m = t.messages
    changes = [(m.sent[i], 1, m.bytes[i]) for i in range(len(m))]
    changes += [(m.received[i], -1, -m.bytes[i]) for i in range(len(m)) if m.received[i] >= 0]
    changes.sort(key=lambda x: x[0])
    for name, unit, which in (("messages in flight", 2, 1), ("bytes in flight", 3, 2)):
        with tracks.counter(name, unit) as counter:
            value = 0
            for k, change in enumerate(changes):
                value += change[which]
                if k + 1 == len(changes) or changes[k + 1][0] // _PER_NS != change[0] // _PER_NS:
                    counter.count(change[0], value)


class _Tracks:
    """The file: it numbers tracks and sequences and writes their descriptors."""

    def __init__(self, pb: Any, out: IO[bytes]) -> None:
        self.pb, self.out, self._used = pb, out, 0

    def _descriptor(self, **fields: Any) -> int:
        self._used += 1
        packet = self.pb.TracePacket(trusted_packet_sequence_id=1)
        packet.track_descriptor.MergeFrom(self.pb.TrackDescriptor(uuid=self._used, **fields))
        put(self.out, packet.SerializeToString())
        return self._used

    def process(self, pid: int, name: str) -> None:
        self._descriptor(process=self.pb.ProcessDescriptor(pid=pid, process_name=name))

    def thread(self, pid: int, tid: int, name: str, rank: int) -> int:
        return self._descriptor(thread=self.pb.ThreadDescriptor(pid=pid, tid=tid, thread_name=name), sibling_order_rank=rank)

    def child(self, parent: int, name: str) -> _Track:
        return _Track(self, self._descriptor(parent_uuid=parent, name=name))

    def counter(self, name: str, unit: int) -> _Track:
        """``unit``: 2 a number, 3 bytes (CounterDescriptor.Unit)."""
        return _Track(self, self._descriptor(name=name, counter=self.pb.CounterDescriptor(unit=unit)))


class _Track:
    """One packet sequence that fills one track; its names are interned at their first use."""

    def __init__(self, tracks: _Tracks, uuid: int) -> None:
        self.pb, self.out = tracks.pb, tracks.out
        self.uuid = uuid
        self._sequence = uuid + 1  # 1 has the descriptors
        self._names: dict[str, int] = {}
        self._keys: dict[str, int] = {}
        self._bodies: dict[tuple[int, int, str, int], bytes] = {}

    def __enter__(self) -> _Track:
        first = self.pb.TracePacket(trusted_packet_sequence_id=self._sequence, sequence_flags=_RESET, first_packet_on_sequence=True)
        first.trace_packet_defaults.track_event_defaults.track_uuid = self.uuid
        put(self.out, first.SerializeToString())
        return self

    def __exit__(self, *what: object) -> None:
        pass

    def _packet(self, ps: int, kind: int) -> Any:
        packet = self.pb.TracePacket(timestamp=ps // _PER_NS, trusted_packet_sequence_id=self._sequence, sequence_flags=_NEEDS)
        packet.track_event.type = kind
        return packet

    def _key(self, packet: Any, text: str) -> int:
        if (iid := self._keys.get(text)) is None:
            iid = self._keys[text] = len(self._keys) + 1
            packet.interned_data.debug_annotation_names.add(iid=iid, name=text)
        return iid

    def _annotate(self, packet: Any, told: dict[str, Any]) -> None:
        add = packet.track_event.debug_annotations.add
        for key, value in told.items():
            iid = self._key(packet, key)
            if isinstance(value, int):
                add(name_iid=iid, int_value=value)
            else:
                add(name_iid=iid, string_value=value)

    def _named_packet(self, ps: int, kind: int, name: str, told: dict[str, Any]) -> Any:
        packet = self._packet(ps, kind)
        if (iid := self._names.get(name)) is None:
            iid = self._names[name] = len(self._names) + 1
            packet.interned_data.event_names.add(iid=iid, name=name)
        packet.track_event.name_iid = iid
        if rest := ps % _PER_NS:
            told = {**told, "begin_ps": rest}
        if told:
            self._annotate(packet, told)
        return packet

    def plain(self, ps: int, kind: int, name: str = "", merged: int = 0) -> None:
        """The begin or end of a slice that has no annotations of its own.

        Such packets differ in little but their time, and serialized messages may be concatenated (the fields are merged): the rest
        is serialized once.
        """
        ns, rest = divmod(ps, _PER_NS)
        body = self._bodies.get((kind, rest, name, merged))
        if body is None:
            told = {"merged": 1} if merged else {}
            packet = self._named_packet(ps, kind, name, told) if kind == _BEGIN else self._end_packet(ps)
            if packet.HasField("interned_data"):
                put(self.out, packet.SerializeToString())
                return
            packet.ClearField("timestamp")
            body = self._bodies[kind, rest, name, merged] = packet.SerializeToString()
        put(self.out, b"\x40" + varint(ns) + body)  # field 8: timestamp

    def begin(self, ps: int, name: str, told: dict[str, Any]) -> None:
        put(self.out, self._named_packet(ps, _BEGIN, name, told).SerializeToString())

    def _end_packet(self, ps: int) -> Any:
        packet = self._packet(ps, _END)
        if rest := ps % _PER_NS:
            self._annotate(packet, {"end_ps": rest})
        return packet

    def end(self, ps: int) -> None:
        self.plain(ps, _END)

    def instant(self, ps: int, name: str, told: dict[str, Any], flow: int, ends: bool) -> None:
        packet = self._named_packet(ps, _INSTANT, name, told)
        (packet.track_event.terminating_flow_ids if ends else packet.track_event.flow_ids).append(flow)
        put(self.out, packet.SerializeToString())

    def count(self, ps: int, value: int) -> None:
        packet = self._packet(ps, _COUNTER)
        packet.track_event.counter_value = value
        put(self.out, packet.SerializeToString())


def varint(n: int) -> bytes:
    """A number of seven bits a byte, the lowest first."""
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def put(out: IO[bytes], packet: bytes) -> None:
    """A packet as field 1 of the message Trace: tag, length, bytes."""
    out.write(b"\x0a" + varint(len(packet)) + packet)
