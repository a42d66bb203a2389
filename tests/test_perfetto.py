"""A timeline as a Perfetto trace: read by the official protos, and by Perfetto's own query engine where it is installed."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from engine_runs import job, run
from hypothesis import given, settings
from hypothesis import strategies as st

from retrompi.convert.perfetto import LOSS, varint
from retrompi.convert.timelines import write
from retrompi.sim.timeline import Timeline, TimelineRequest
from retrompi.traces import generate

pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="no perfetto (pip install 'retrompi[perfetto]')")

CASES = {
    "halo": lambda: run(generate.halo2d(3, 3, 8192, 3, flops=1e5), "wmpi", "distributed", timeline=TimelineRequest()),
    "rendezvous": lambda: run(generate.pingpong([1024, 600_000], 2), "winmpich", "distributed", timeline=TimelineRequest()),
    "deadlock": lambda: run(job("recv 1 4 10 6", "send 0 1 2 6; recv 0 5 10 6"), "wmpi", "distributed", timeline=TimelineRequest()),
    "part": lambda: run(generate.halo2d(2, 2, 8192, 3, flops=1e5), "wmpi", "distributed",
                        timeline=TimelineRequest(from_s=0.01, until_s=0.05)),
    "sampled": lambda: run(generate.halo2d(3, 3, 8192, 3, flops=1e5), "hpvm", "distributed", timeline=TimelineRequest(limit=60)),
}
every_case = pytest.mark.parametrize("case", CASES)


def expected(t: Timeline) -> dict[str, int]:
    """What a reader of the file must count."""
    hops = sum(t.messages.hops) + sum(1 for out in t.messages.hop_out if out >= 0)
    received = sum(1 for at in t.messages.received if at >= 0)
    states = sum(len(p.begin) for p in t.processes)
    return {
        "slices": states + len(t.calls) + len(t.messages) + received + hops, "states": states, "calls": len(t.calls),
        "open": sum(t.calls.open), "flows": received + hops, "threads": len(t.processes), "processes": len({p.host for p in t.processes}),
    }


@dataclass
class Sequence:
    """What a reader keeps of a packet sequence."""

    track: int = 0
    names: dict[int, str] = field(default_factory=dict)
    keys: dict[int, str] = field(default_factory=dict)
    last: int = 0
    depth: int = 0
    packets: int = 0


def decoded(path: Path) -> tuple[dict[str, int], dict[int, list[tuple[Any, ...]]], dict[int, Any]]:
    """(counts, the events of each track, its descriptors): by the rules of the format, each of which is asserted."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

    trace = pb.Trace.FromString(path.read_bytes())
    sequences: dict[int, Sequence] = {}
    tracks: dict[int, Any] = {}
    events: dict[int, list[tuple[Any, ...]]] = {}
    flows: Counter[int] = Counter()
    ended: set[int] = set()
    counted: Counter[str] = Counter()
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            d = packet.track_descriptor
            assert d.uuid not in tracks
            assert not d.parent_uuid or d.parent_uuid in tracks
            tracks[d.uuid] = d
            counted["processes"] += d.HasField("process")
            counted["threads"] += d.HasField("thread")
            continue
        number = packet.trusted_packet_sequence_id
        if packet.sequence_flags & 1:
            assert number not in sequences
            sequences[number] = Sequence(packet.trace_packet_defaults.track_event_defaults.track_uuid)
            continue
        s = sequences[number]
        assert packet.sequence_flags & 2
        for kept, added in ((s.names, packet.interned_data.event_names), (s.keys, packet.interned_data.debug_annotation_names)):
            for x in added:
                assert x.iid not in kept
                kept[x.iid] = x.name
        assert packet.timestamp >= s.last, "time goes back on a track"
        s.last = packet.timestamp
        e = packet.track_event
        told = {s.keys[a.name_iid]: a.string_value or a.int_value for a in e.debug_annotations}
        counter = tracks[s.track].HasField("counter")
        assert counter == (e.type == 4)
        if e.type == 1:
            s.depth += 1
        elif e.type == 2:
            s.depth -= 1
            assert s.depth >= 0
            counted["ends"] += 1
        counted["slices"] += e.type in (1, 3)
        counted["begins"] += e.type == 1
        flows.update((*e.flow_ids, *e.terminating_flow_ids))
        assert all(n == 1 for n in Counter(e.terminating_flow_ids).values())
        assert not ended & set(e.terminating_flow_ids), "a flow ends once"
        ended |= set(e.terminating_flow_ids)
        events.setdefault(s.track, []).append((e.type, packet.timestamp, s.names.get(e.name_iid, ""), told, e.counter_value))
    counted["open"] = sum(s.depth for s in sequences.values())
    counted["flows"] = sum(n - 1 for n in flows.values())
    return dict(counted), events, tracks


@every_case
def test_the_official_protos_count_what_the_timeline_has(case: str, tmp_path: Path) -> None:
    t = CASES[case]().timeline
    assert set(LOSS) <= set(write(t, tmp_path / "t.pftrace"))
    counts, events, tracks = decoded(tmp_path / "t.pftrace")
    wanted = expected(t)
    assert {k: counts.get(k, 0) for k in ("slices", "open", "flows", "threads", "processes")} == {
        k: wanted[k] for k in ("slices", "open", "flows", "threads", "processes")
    }
    by_thread = {d.thread.thread_name: uuid for uuid, d in tracks.items() if d.HasField("thread")}
    state_tracks = {d.parent_uuid: uuid for uuid, d in tracks.items() if d.name == "states"}
    for p in t.processes:
        mine = events.get(state_tracks[by_thread[p.name]], [])
        begun = [e for e in mine if e[0] == 1]
        ended = [e for e in mine if e[0] == 2]
        exact = [(b[1] * 1000 + b[3].get("begin_ps", 0), b[2]) for b in begun]
        ends = [e[1] * 1000 + e[3].get("end_ps", 0) for e in ended]
        assert exact == [(begin, t.states[s]) for begin, _, s, _ in p.states()], "to the picosecond"
        assert ends == [end for _, end, _, _ in p.states()]
    for rank in range(t.ranks):
        mine = [e for e in events.get(by_thread[f"rank {rank}"], []) if e[0] == 1]
        calls = [i for i, r in enumerate(t.calls.rank) if r == rank]
        assert [(e[2], e[3]["line"]) for e in mine] == [(t.ops[t.calls.op[i]], t.calls.line[i]) for i in calls]


def test_messages_are_inside_the_calls_that_send_and_receive_them(tmp_path: Path) -> None:
    t = CASES["rendezvous"]().timeline
    write(t, tmp_path / "t.pftrace")
    _, events, tracks = decoded(tmp_path / "t.pftrace")
    inside: Counter[str] = Counter()
    for uuid, mine in events.items():
        if not tracks[uuid].HasField("thread") or not tracks[uuid].thread.thread_name.startswith("rank"):
            continue
        stack: list[str] = []
        for kind, _, name, told, _ in mine:
            if kind == 1:
                stack.append(name)
            elif kind == 2:
                stack.pop()
            else:
                assert {"from rank", "to rank", "bytes", "tag"} <= set(told)
                inside[f"{name} in {stack[-1]}"] += 1
    assert inside == {"message sent in send": len(t.messages), "message received in recv": len(t.messages)}


def test_what_is_in_flight_begins_and_ends_with_nothing(tmp_path: Path) -> None:
    t = CASES["halo"]().timeline
    write(t, tmp_path / "t.pftrace")
    _, events, tracks = decoded(tmp_path / "t.pftrace")
    values = {d.name: [e[4] for e in events[uuid]] for uuid, d in tracks.items() if d.HasField("counter")}
    assert set(values) == {"messages in flight", "bytes in flight"}
    for counted in values.values():
        assert min(counted) == counted[-1] == 0 < max(counted)


@given(st.integers(0, 2**63 - 1))
@settings(deadline=None)
def test_a_time_is_written_as_protobuf_writes_it(ns: int) -> None:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

    assert b"\x40" + varint(ns) == pb.TracePacket(timestamp=ns).SerializeToString() or ns == 0
    assert pb.TracePacket.FromString(b"\x40" + varint(ns)).timestamp == ns


SHELL = next((found for name in ("trace_processor_shell", "trace_processor") if (found := shutil.which(name))), None)


@pytest.mark.skipif(SHELL is None, reason="Perfetto's trace_processor_shell is not installed")
@every_case
def test_trace_processor_counts_the_same(case: str, tmp_path: Path) -> None:
    t = CASES[case]().timeline
    write(t, tmp_path / "t.pftrace")
    questions = {
        "slices": "select count(*) as n from slice",
        "states": "select count(*) as n from slice join track on slice.track_id = track.id where track.name = 'states'",
        "calls": "select count(*) as n from slice join args using (arg_set_id) where args.key = 'debug.line'",
        "open": "select count(*) as n from slice where dur = -1",
        "flows": "select count(*) as n from flow",
        "threads": "select count(*) as n from thread where name is not null and name != 'swapper'",
        "processes": "select count(*) as n from process where name is not null",
        "wrong": "select ifnull(sum(value), 0) as n from stats where severity in ('error', 'data_loss')",
    }
    (tmp_path / "q.sql").write_text("select " + ", ".join(f"({q}) as {k}" for k, q in questions.items()) + ";\n", encoding="utf-8")
    done = subprocess.run(
        [str(SHELL), "-q", str(tmp_path / "q.sql"), str(tmp_path / "t.pftrace")], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    (told,) = csv.DictReader(io.StringIO(done.stdout))
    assert {k: int(v) for k, v in told.items()} == {**expected(t), "wrong": 0}
