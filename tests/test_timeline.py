"""The timeline of a run: complete, causal, without influence on the run; sampled when told so; and its exports read back."""

from __future__ import annotations

import csv
import itertools
import json
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import for_each
from engine_runs import PATHS, job, run
from hypothesis import given, settings
from hypothesis import strategies as st
from program_generator import seeds
from refusals import refused

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.cli.main import run as cli
from retrompi.convert import flat, paje
from retrompi.convert.timelines import FORMATS, check, write
from retrompi.reference.collectives import is_collective
from retrompi.reference.programs import MOST, DrawnProgram, draw_program
from retrompi.render.timeline import timeline_page
from retrompi.render.timeline.tiles import GAP, MERGED
from retrompi.render.timeline.timeline_view import span_of, tracks_of
from retrompi.sim import simulate
from retrompi.sim.observe import Observe
from retrompi.sim.timeline import PS, STORED, Process, Timeline, TimelineRequest, _coarser
from retrompi.sim.timeline.kinds import KINDS
from retrompi.spec.conditions.bounds import Bounds
from retrompi.spec.question import Question, Replay
from retrompi.store import open_store
from retrompi.store.lookup import answer
from retrompi.traces import generate

HALO = generate.halo2d(3, 3, 8192, 3, flops=1e5)
everywhere = for_each("model, mode", PATHS)


def timed(trace: Any, model: str = "wmpi", mode: Any = "distributed", wanted: TimelineRequest | None = None, **options: Any) -> Timeline:
    found = run(trace, model, mode, timeline=wanted or TimelineRequest(), **options).timeline
    assert isinstance(found, Timeline)
    return found


@everywhere
@pytest.mark.parametrize("trace", [generate.pingpong([1, 1024, 600_000], 4), HALO], ids=["pingpong", "halo"])
def test_looking_changes_nothing(model: str, mode: str, trace: Any) -> None:
    plain, seen, few = (run(trace, model, mode, timeline=t) for t in (None, TimelineRequest(), TimelineRequest(limit=50)))
    for other in (seen, few):
        assert (plain.time_ps, plain.frames, plain.per_rank, plain.packets) == (other.time_ps, other.frames, other.per_rank, other.packets)
        assert plain.events <= other.events  # repetitions are seen only where they are simulated
    assert plain.timeline is None


@pytest.mark.parametrize(
    ("model", "platform", "mode"),
    [
        ("nemesis", "abe", "shared"),
        ("nemesis", "abe", "distributed"),
        ("craympt", "cray-t3e", "distributed"),
        ("mpibip", "myrinet-piii", "distributed"),
    ],
)
def test_looking_changes_nothing_elsewhere(model: str, platform: str, mode: str) -> None:
    trace = generate.pingpong([1024, 300_000], 3)
    plain, seen = (simulate.run(Question(model, platform, Replay(trace), mode), Observe(timeline=t)) for t in (None, TimelineRequest()))
    assert (plain.time_ps, plain.events, plain.per_rank) == (seen.time_ps, seen.events, seen.per_rank)
    tiles(seen.timeline)


def tiles(t: Timeline) -> None:
    """The states of every process follow each other from the beginning to the end, and add up to its sums."""
    for p in t.processes:
        sums: Counter[str] = Counter()
        at = 0
        for begin, end, state, merged in p.states():
            assert begin == at
            assert end > begin
            assert not merged
            sums[t.states[state]] += end - begin
            at = end
        assert at == p.end == t.end
        assert dict(sums) == p.totals
        assert all(a != b for a, b in zip(p.state, p.state[1:], strict=False)), "equal neighbours are one state"


@everywhere
@pytest.mark.parametrize("trace", [generate.pingpong([0, 600_000], 3), HALO], ids=["pingpong", "halo"])
def test_states_tile_the_time_of_every_process(model: str, mode: str, trace: Any) -> None:
    result = run(trace, model, mode, timeline=TimelineRequest())
    t = result.timeline
    assert t.notes() == []
    tiles(t)
    kinds = Counter(p.kind for p in t.processes)
    assert kinds["rank"] == trace.ranks
    if mode == "distributed":
        assert kinds[{"winmpich": "proxy", "wmpi": "daemon", "hpvm": "rank"}[model]] > 0
    computed = {r["rank"]: r["compute_s"] for r in result.per_rank}
    for rank, place in enumerate(t.process_of()):
        assert t.processes[place].totals.get("compute", 0) * PS <= computed[rank] * (1 + 1e-9)


def begins_collectives(program: DrawnProgram) -> bool:
    """Whether some call begins a collective and does not wait for it."""
    return any(line.startswith("i") and is_collective(line.split()[0]) for lines in program.lines for line in lines)


def test_drawn_programs_have_whole_timelines() -> None:
    """However they end: states tile, calls of a rank follow each other, and each message was sent in a call of its line and received after
    its receive was posted in one."""
    messages = 0
    for seed in seeds(120):
        try:
            program = draw_program(seed)
            question = replace(program.question(), bounds=Bounds(events=MOST))
            t = simulate.run(question, Observe(timeline=TimelineRequest(limit=1 << 40))).timeline
        except RetrompiError:
            continue
        if t is None or t.about["outcome"] == "limit":
            continue
        tiles(t)
        calls = {(t.calls.rank[i], t.calls.line[i]): (t.calls.begin[i], t.calls.end[i]) for i in range(len(t.calls))}
        assert len(calls) == len(t.calls) == t.calls_seen
        for a, b in itertools.pairwise(range(len(t.calls))):
            assert t.calls.rank[a] != t.calls.rank[b] or t.calls.end[a] <= t.calls.begin[b], seed
        for i in range(len(t.messages)):
            m, messages = t.messages, messages + 1
            begin, end = calls[m.source[i], m.line[i]]
            assert begin <= m.sent[i], (seed, i)
            # A collective that is not waited for goes on whenever the library runs, at last after the last call.
            assert m.sent[i] <= end or begins_collectives(program), (seed, i)
            if m.receive_line[i]:
                posted, _ = calls[m.destination[i], m.receive_line[i]]
                assert m.received[i] == -1 or m.received[i] >= max(m.sent[i], posted), (seed, i)
            assert m.received[i] == -1 or m.receive_line[i], (seed, i)
    assert messages > 100


@everywhere
def test_calls_are_those_of_the_trace_in_order(model: str, mode: str) -> None:
    t = timed(HALO, model, mode)
    for rank in range(HALO.ranks):
        mine = [i for i, r in enumerate(t.calls.rank) if r == rank]
        assert [t.calls.line[i] for i in mine] == sorted(t.calls.line[i] for i in mine)
        traced = [(a[0], a[1]) for a in HALO.rank_actions(rank) if not a[1].startswith("mark")]
        assert [(t.calls.line[i], t.ops[t.calls.op[i]]) for i in mine] == traced
        assert all(t.calls.begin[b] >= t.calls.end[a] for a, b in itertools.pairwise(mine))
    assert t.calls_seen == len(t.calls) == HALO.actions
    assert not any(t.calls.open)


@everywhere
@pytest.mark.parametrize("trace", [generate.pingpong([1024, 300_000], 3), HALO], ids=["pingpong", "halo"])
def test_messages_are_received_after_they_were_sent(model: str, mode: str, trace: Any) -> None:
    result = run(trace, model, mode, timeline=TimelineRequest())
    t = result.timeline
    assert len(t.messages) == t.messages_seen == result.messages
    places = t.process_of()
    hosts = [t.processes[i].host for i in places]
    for i, path in enumerate(t.messages.paths()):
        times = [t.messages.sent[i], *(at for _, at, _ in path), t.messages.received[i]]
        assert times == sorted(times)
        assert all(entered <= left <= t.messages.received[i] for _, entered, left in path)
        assert t.messages.line[i] > 0
        apart = hosts[t.messages.source[i]] != hosts[t.messages.destination[i]]
        passed = [t.processes[p].kind for p, _, _ in path]
        assert passed == ([{"winmpich": "proxy", "wmpi": "daemon"}[model]] * 2 if apart and model != "hpvm" else [])
        if path:
            assert [t.processes[p].host for p, _, _ in path] == [hosts[t.messages.source[i]], hosts[t.messages.destination[i]]]


def test_traffic_counts_everything_whatever_the_limit() -> None:
    for wanted in (TimelineRequest(), TimelineRequest(limit=10), TimelineRequest(from_s=0.1, until_s=0.2)):
        result = run(HALO, "wmpi", "distributed", timeline=wanted)
        assert sum(x.messages for x in result.timeline.traffic) == result.messages
        assert sum(x.bytes for x in result.timeline.traffic) == result.bytes
    t = timed(job("bcast 100 0 6; send 1 0 10 6", "bcast 100 0 6; recv 0 0 10 6"))
    (x,) = t.traffic
    assert (x.source, x.destination, x.messages, x.bytes, x.collective_messages, x.collective_bytes) == (0, 1, 1, 10, 1, 100)
    assert [c % 2 for c in t.messages.context] == [1, 0]


def test_one_sided_transfers_are_in_the_matrix() -> None:
    trace = job("Put 1 0 5000 6; Win_fence", "Win_fence")
    t = simulate.run(Question("craympt:shmem", "cray-t3e", Replay(trace)), Observe(timeline=TimelineRequest())).timeline
    assert [(x.source, x.destination, x.transfers, x.transferred) for x in t.traffic if x.transfers] == [(0, 1, 1, 5000)]


def spent(t: Timeline, p: Process) -> dict[str, int]:
    """The time of a process in each state, from its states."""
    sums: Counter[str] = Counter()
    for begin, end, state, _ in p.states():
        sums[t.states[state]] += end - begin
    return dict(sums)


@pytest.mark.parametrize("limit", [1, 20, 300])
def test_beyond_the_limit_it_samples_and_says_so(limit: int) -> None:
    whole, few = timed(HALO), timed(HALO, wanted=TimelineRequest(limit=limit))
    assert sum(len(p.begin) for p in few.processes) <= max(limit, sum(len(p.totals) for p in few.processes))
    assert len(few.messages) <= limit
    assert len(few.calls) <= max(limit, HALO.ranks)
    assert few.sampled
    assert not whole.sampled
    said = " ".join(few.notes())
    assert "the times are kept, not the order" in said
    assert f"of {whole.states_seen} states" in said
    assert (f"of {whole.messages_seen}" in said) == (limit < whole.messages_seen)
    for a, b in zip(whole.processes, few.processes, strict=True):
        assert a.totals == b.totals == spent(few, b), "shares are exact however much is merged"
        assert (b.begin[0], b.end) == (0, whole.end)
        assert list(b.begin) == sorted(set(b.begin))
    # Every k-th message, from the first one on.
    k = few.every_message
    assert list(few.messages.sent) == list(whole.messages.sent[::k])
    assert list(few.messages.paths()) == list(whole.messages.paths())[::k]
    again = timed(HALO, wanted=TimelineRequest(limit=limit))
    assert again.row() == few.row()


@pytest.mark.parametrize("most", [1, 30, 500])
def test_thinning_afterwards_follows_the_same_rules(most: int) -> None:
    whole = timed(HALO)
    thin = whole.thin_to(most)
    assert sum(len(p.begin) for p in thin.processes) <= max(most, sum(len(p.totals) for p in thin.processes))
    assert [spent(thin, p) for p in thin.processes] == [p.totals for p in whole.processes]
    assert list(thin.messages.sent) == list(whole.messages.sent[:: thin.every_message])
    assert [p.totals for p in thin.processes] == [p.totals for p in whole.processes]
    assert thin.notes()
    assert whole.notes() == [], "the original stays whole"


@given(st.lists(st.tuples(st.integers(1, 500), st.integers(0, 4)), min_size=1, max_size=60), st.sampled_from([1, 8, 64, 512, 4096]))
@settings(max_examples=200, deadline=None)
def test_coarser_states_still_tile(stretches: list[tuple[int, int]], resolution: int) -> None:
    begin, state, at = [], [], 7
    for length, s in stretches:
        begin.append(at)
        state.append(s)
        at += length
    p = Process("rank 0", "rank", "n1", at, begin, state, [0] * len(begin), {})
    c = _coarser(p, resolution)
    assert c.begin[0] == 7
    assert c.end == at
    assert list(c.begin) == sorted(set(c.begin))
    for resolution_ in (1, 2 * resolution):  # merged once more
        sums = [Counter[int](), Counter[int]()]
        for one, counted in zip((p, _coarser(c, resolution_)), sums, strict=True):
            for b, e, s, _ in one.states():
                counted[s] += e - b
        assert sums[0] == sums[1], "no state gains or loses time"
    alike: dict[tuple[int, int], int] = {(b, e): s for b, e, s, m in c.states() if not m}
    exact = [(b, e, s) for b, e, s, _ in p.states()]
    for (b, e), s in alike.items():  # what is not marked as put together is exactly so
        assert all(s == s2 for b2, e2, s2 in exact if b <= b2 and e2 <= e)


def test_a_window_shows_that_stretch_only() -> None:
    t = timed(HALO, wanted=TimelineRequest(from_s=0.05, until_s=0.1))
    for p in t.processes:
        assert (p.begin[0], p.end) == (50_000_000_000, 100_000_000_000)
    assert all(50_000_000_000 <= s < 100_000_000_000 for s in t.messages.sent)
    assert all(b < 100_000_000_000 and e >= 50_000_000_000 for b, e in zip(t.calls.begin, t.calls.end, strict=True))
    assert "Only 50 ms to 100 ms" in t.notes()[0]
    with refused(UsageError, "out-of-range"):
        TimelineRequest(from_s=2, until_s=1)
    with refused(UsageError, "out-of-range"):
        TimelineRequest(limit=0)


def test_a_run_that_hangs_has_a_timeline_to_its_end() -> None:
    result = run(job("recv 1 4 10 6", "compute 1e6; recv 0 5 10 6; send 0 1 2 6"), "wmpi", "distributed", timeline=TimelineRequest())
    assert result.outcome == "deadlock"
    t = result.timeline
    tiles(t)
    assert [(t.calls.rank[i], t.calls.line[i]) for i in range(len(t.calls)) if t.calls.open[i]] == [(0, 2), (1, 3)]
    assert t.processes[t.process_of()[0]].totals["wait: a message"] > 0.9 * t.end
    killed = run(generate.pingpong([100], 50), "hpvm", "distributed", timeline=TimelineRequest(), kills=["rank 1@0.01s"])
    tiles(killed.timeline)
    assert -1 in killed.timeline.messages.received


def test_a_timeline_survives_json() -> None:
    t = timed(HALO)
    again = Timeline.from_row(json.loads(json.dumps(t.row())))
    assert again.row() == t.row()
    assert list(again.processes[0].states()) == list(t.processes[0].states())


# ---------------------------------------------------------------- exports


def test_csv_and_json_read_back(tmp_path: Path) -> None:
    t = timed(HALO)
    lost = write(t, tmp_path / "t.csv")
    assert any("traffic" in line for line in lost)
    with (tmp_path / "t.csv").open(encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    kinds = Counter(r["kind"] for r in rows)
    assert kinds["message"] == len(t.messages)
    assert kinds["call"] == len(t.calls)
    assert kinds["state"] == sum(len(p.begin) for p in t.processes)
    assert kinds["hop"] == sum(t.messages.hops)
    for process in t.processes:
        mine = [r for r in rows if r["kind"] == "state" and r["process"] == process.name]
        assert sum(int(r["end_ps"]) - int(r["begin_ps"]) for r in mine) == t.end
    assert write(t, tmp_path / "t.json") == []
    assert Timeline.from_row({k: v for k, v in json.loads((tmp_path / "t.json").read_text()).items() if k != "notes"}).row() == t.row()
    sampled = t.thin_to(20)
    assert set(sampled.notes()) <= set(write(sampled, tmp_path / "s.json"))
    assert set(sampled.notes()) <= set(write(sampled, tmp_path / "s.csv"))


def paje_rows(path: Path) -> list[list[str]]:
    """The events of a Paje file, as its header defines them."""
    import shlex

    fields: dict[str, int] = {}
    rows, current = [], ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("%EventDef"):
            current = line.split()[2]
            fields[current] = 0
        elif line.startswith("%EndEventDef"):
            current = ""
        elif line.startswith("%"):
            fields[current] += 1
        elif line and not line.startswith("#"):
            row = shlex.split(line)
            assert len(row) == 1 + fields[row[0]], line
            rows.append(row)
    return rows


@pytest.mark.parametrize("trace", [generate.pingpong([1024, 100_000], 2), HALO], ids=["pingpong", "halo"])
def test_paje_is_complete_and_ordered(tmp_path: Path, trace: Any) -> None:
    t = timed(trace)
    path = tmp_path / "t.paje"
    lost = write(t, path)
    assert set(paje.LOSS) <= set(lost)
    rows = paje_rows(path)
    events = [r for r in rows if int(r[0]) >= 6 and len(r) > 3]
    assert [float(r[1]) for r in events] == sorted(float(r[1]) for r in events)
    by_kind = Counter((r[0], r[2]) for r in events)
    assert by_kind["6", "State"] == sum(len(p.begin) for p in t.processes)
    assert by_kind["9", "Message"] == by_kind["10", "Message"] == len(t.messages)
    assert by_kind["9", "Hop"] == sum(n + 1 for n in t.messages.hops if n)
    depth: Counter[str] = Counter()
    for r in events:
        if r[0] in ("7", "8"):
            depth[r[3]] += 1 if r[0] == "7" else -1
            assert depth[r[3]] in (0, 1)
    assert not any(depth.values())


@pytest.mark.skipif(shutil.which("pj_dump") is None, reason="pj_dump (Debian package pajeng) is not installed")
def test_pj_dump_reads_it(tmp_path: Path) -> None:
    t = timed(HALO)
    write(t, tmp_path / "t.paje")
    done = subprocess.run(["pj_dump", str(tmp_path / "t.paje")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kinds = Counter(tuple(c.strip() for c in line.split(","))[:3:2] for line in done.stdout.splitlines())
    assert kinds["State", "State"] == sum(len(p.begin) for p in t.processes)
    assert kinds["Link", "Message"] == len(t.messages)
    assert kinds["Container", "Process"] == len(t.processes)


def otf2_events(folder: Path) -> tuple[list[str], dict[str, list[Any]]]:
    import otf2

    events: dict[str, list[Any]] = {}
    with otf2.reader.open(str(folder / "traces.otf2")) as archive:
        assert archive.timer_resolution == 10**12
        names = [location.name for location in archive.definitions.locations]
        for location, event in archive.events:
            events.setdefault(location.name, []).append(event)
    return names, events


def test_otf2_reads_back(tmp_path: Path) -> None:
    pytest.importorskip("otf2")
    trace = job(
        "compute 1e5; isend 1 3 500 6; bcast 100 0 6; waitall; barrier", "recv 0 3 500 6; bcast 100 0 6; barrier", "bcast 100 0 6; barrier"
    )
    t = timed(trace)
    lost = write(t, tmp_path / "t.otf2")
    assert any("hops" in line for line in lost)
    names, events = otf2_events(tmp_path / "t.otf2")
    assert sorted(names) == sorted(p.name for p in t.processes)
    for name, mine in events.items():
        times = [e.time for e in mine]
        assert times == sorted(times)
        stack: list[str] = []
        told: Counter[str] = Counter()
        since = 0
        for e in mine:
            kind = type(e).__name__
            if stack and stack[-1] in t.states:
                told[stack[-1]] += e.time - since
            if kind == "Enter":
                stack.append(e.region.name)
            elif kind == "Leave":
                assert stack.pop() == e.region.name
            since = e.time
        assert not stack
        assert dict(told) == next(p.totals for p in t.processes if p.name == name)
    kinds = {n: Counter(type(e).__name__ for e in mine) for n, mine in events.items()}
    assert [kinds[f"rank {r}"]["MpiSend"] for r in range(3)] == [1, 0, 0]
    assert [kinds[f"rank {r}"]["MpiRecv"] for r in range(3)] == [0, 1, 0]
    assert [kinds[f"rank {r}"]["MpiCollectiveEnd"] for r in range(3)] == [2, 2, 2]
    sent = next(e for e in events["rank 0"] if type(e).__name__ == "MpiSend")
    assert (sent.receiver, sent.msg_tag, sent.msg_length, sent.communicator.name) == (1, 3, 500, "MPI_COMM_WORLD")
    ends = [e for e in events["rank 2"] if type(e).__name__ == "MpiCollectiveEnd"]
    assert [str(e.collective_op).rpartition(".")[2] for e in ends] == ["BCAST", "BARRIER"]


def test_otf2_of_a_sample_leaves_collectives_out_and_says_so(tmp_path: Path) -> None:
    pytest.importorskip("otf2")
    t = timed(job("; ".join(["barrier"] * 30), "; ".join(["barrier"] * 30)), wanted=TimelineRequest(limit=20))
    lost = write(t, tmp_path / "t.otf2")
    assert any(line.startswith("collectives") for line in lost)
    assert set(t.notes()) <= set(lost)
    _, events = otf2_events(tmp_path / "t.otf2")
    assert not any("Collective" in type(e).__name__ for mine in events.values() for e in mine)


def test_without_the_package_otf2_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "otf2", None)
    with refused(UsageError, "missing-tool | 'retrompi[otf2]'"):
        check(tmp_path / "t.otf2")


def test_a_wrong_ending_names_the_right_ones() -> None:
    with refused(UsageError, "unknown-format | '.htm' | '.html'") as caught:
        check("run.htm")
    assert all(f in str(caught.value) for f in FORMATS)


# ---------------------------------------------------------------- the page


def test_the_chart_has_every_state_and_call() -> None:
    t = timed(generate.pingpong([1024], 3))
    tracks = tracks_of(t)
    assert [track.name for track in tracks] == ["rank 0", "daemon on server", "rank 1", "daemon on workstation"]
    first, last = span_of(t)
    for track in tracks:
        p = t.processes[track.process]
        assert [int(v) & (MERGED - 1) for v in track.lane.value] == list(p.state)
        assert (int(track.lane.begin[0]), track.lane.end) == (p.begin[0] - first, p.end - first)
    calls = [t.ops[int(v)] for track in tracks if track.calls is not None for v in track.calls.value if v != GAP]
    assert Counter(calls) == Counter(t.ops[t.calls.op[i]] for i in range(len(t.calls)) if t.calls.end[i] > max(t.calls.begin[i], first))
    assert json.loads(json.dumps([first, last])) == [first, last]


def test_times_of_arrays_are_numbers_of_json() -> None:
    t = timed(generate.pingpong([1024], 3))
    for p in t.processes:
        p.begin = np.asarray(p.begin, dtype=np.int64)
    assert json.loads(json.dumps(span_of(t))) == list(span_of(t))
    assert timeline_page.alone(t).count("<canvas") == 1


def test_every_state_has_a_look_and_looks_differ() -> None:
    t = timed(generate.pingpong([1], 1))
    drawn = [s for _, _, _, states in KINDS for s in states]
    assert sorted(drawn) == sorted(t.states)
    assert len(set(drawn)) == len(drawn)
    assert len({(colour, hatch) for _, colour, hatch, _ in KINDS}) == len(KINDS)


def test_the_matrix_is_that_of_the_run_and_large_ones_are_put_together(tmp_path: Path) -> None:
    t = timed(HALO)
    cells, block = timeline_page.matrix(t, "bytes")
    assert block == 1
    assert len(cells) == 9
    assert sum(map(sum, cells)) == 8192 * t.messages_seen
    assert all(cells[i][i] == 0 for i in range(9))
    halo = Replay(generate.halo2d(10, 10, 100, 1))
    big = simulate.run(Question("hpvm", "nt-cluster", halo), Observe(timeline=TimelineRequest(limit=1000))).timeline
    cells, block = timeline_page.matrix(big, "messages")
    assert block == 2
    assert len(cells) == 50
    assert sum(map(sum, cells)) == big.messages_seen
    timeline_page.write(big, tmp_path / "big.html")
    assert "2 ranks are one cell" in (tmp_path / "big.html").read_text(encoding="utf-8")


def test_a_page_says_when_the_run_was_sampled(tmp_path: Path) -> None:
    for t, sampled in ((timed(generate.pingpong([1], 2)), False), (timed(HALO, wanted=TimelineRequest(limit=50)), True)):
        assert bool(timeline_page.write(t, tmp_path / "t.html")) == sampled
        assert ("Sampled." in (tmp_path / "t.html").read_text(encoding="utf-8")) == sampled


# ---------------------------------------------------------------- store and command line


def test_a_stored_run_keeps_a_sample(tmp_path: Path) -> None:
    store = open_store(f"{tmp_path}/runs.db")
    plain = answer(store, Question("wmpi", "nt-cluster", Replay(HALO, "halo"), "distributed"))
    timed_ = answer(store, Question("wmpi", "nt-cluster", Replay(HALO, "halo"), "distributed"), observe=Observe(timeline=TimelineRequest()))
    assert timed_.timeline.messages_seen == len(timed_.timeline.messages)
    assert plain.rows == timed_.rows
    kept = Timeline.from_row(store.run(timed_.run_id)["facts"]["timeline"])
    assert sum(len(p.begin) for p in kept.processes) <= STORED
    assert [p.totals for p in kept.processes] == [p.totals for p in timed_.timeline.processes]
    assert kept.about["trace"] == "halo"
    # The timed run takes the place of the one without; it is found when no timeline is asked for, and one made again keeps its timeline.
    assert plain.run_id == timed_.run_id
    assert answer(store, Question("wmpi", "nt-cluster", Replay(HALO, "halo"), "distributed")).found
    answer(store, Question("wmpi", "nt-cluster", Replay(HALO, "halo"), "distributed"), fresh=True)
    assert Timeline.from_row(store.run(plain.run_id)["facts"]["timeline"]).about["trace"] == "halo"


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from retrompi import traces

    traces.write(generate.pingpong([1024], 3), f"{tmp_path}/pp")
    common = ["replay", f"{tmp_path}/pp", "-m", "wmpi", "--store", f"{tmp_path}/runs.db"]
    assert cli([*common, "--json", "--timeline", f"{tmp_path}/t.html", "--timeline", f"{tmp_path}/t.paje"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["outcome"] == "completed"
    assert "not in it: the communicator" in err
    assert "rank 1" in (tmp_path / "t.html").read_text(encoding="utf-8")
    assert cli(["timeline", "1", "--store", f"{tmp_path}/runs.db", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {r["process"] for r in rows} >= {"rank 0", "daemon on server"}
    shares = Counter[str]()
    for r in rows:
        shares[r["process"]] += r["share"]
    assert all(s == pytest.approx(1) for s in shares.values())
    assert cli(["timeline", "1", f"{tmp_path}/again.csv", "--store", f"{tmp_path}/runs.db"]) == 0
    assert (tmp_path / "again.csv").read_text().startswith(",".join(flat.COLUMNS))
    capsys.readouterr()
    for wrong in (
        ["--timeline", f"{tmp_path}/t.txt"],
        ["--timeline-window", "1s..2s"],
        ["--timeline", f"{tmp_path}/u.html", "--timeline-window", "1s"],
        ["--timeline", f"{tmp_path}/nowhere/u.html"],
    ):
        assert cli([*common, *wrong]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert cli([*common, "--seed", "2"]) == 0
    capsys.readouterr()
    assert cli(["timeline", "2", "--store", f"{tmp_path}/runs.db"]) == 2
    assert "run 2 has no timeline; replay its trace with --timeline FILE" in capsys.readouterr().err
