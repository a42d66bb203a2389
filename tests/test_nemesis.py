"""Nemesis: what caches, buses and pinned cores do to queues and direct copies; sockets that do not wait; locks; the study's checks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from engine_runs import completed, job
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import refused
from test_engine_properties import facts, matched

from retrompi import traces
from retrompi.base.errors import InputError, UsageError
from retrompi.papers.judging import verdicts
from retrompi.papers.statements import claims
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.machine import platform_file
from retrompi.spec.question import Message, Question, Replay, Starts
from retrompi.traces import generate, osu

KIB, MIB = 1 << 10, 1 << 20
UNIX, WINDOWS, QUEUES = ("nemesis", "abe"), ("nemesis:windows", "abe-windows"), ("nemesis:windows-queues", "abe-windows")
ALL = (UNIX, WINDOWS, QUEUES)
SHARED, SPLIT, DIE = "shared-cache", "split-cache", "split-die"
modest = settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@cache
def rates(who: tuple[str, str], placement: str, sizes: tuple[int, ...], sets: tuple[str, ...] = ()) -> dict[int, float]:
    """OSU bandwidth in B/s by size."""
    result = simulate.run(Question(*who, Replay(osu.bandwidth(sizes)), placement, sets))
    return {r["size_B"]: r["bandwidth_MBps"] * 1e6 for r in simulate.rows_from_marks(result, 1)}


@cache
def latencies(who: tuple[str, str], placement: str, sizes: tuple[int, ...] = (0,), sets: tuple[str, ...] = ()) -> dict[int, float]:
    """OSU latency in s by size."""
    result = simulate.run(Question(*who, Replay(osu.latency(sizes)), placement, sets))
    return {r["size_B"]: r["time_us"] * 1e-6 for r in simulate.rows_from_marks(result, 2)}


def doubling(low: int, high: int) -> tuple[int, ...]:
    return tuple(1 << k for k in range(low.bit_length() - 1, high.bit_length()))


# ---------------------------------------------------------------- where the curve bends, and why


def local_maxima(rate: dict[int, float]) -> list[int]:
    sizes = sorted(rate)
    return [b for a, b, c in zip(sizes, sizes[1:], sizes[2:], strict=False) if rate[b] > rate[a] and rate[b] > 1.01 * rate[c]]


SWEEP = doubling(1 * KIB, 4 * MIB)


def test_the_first_knee_follows_the_first_level_cache() -> None:
    """No bandwidth is stated by size: with another cache the bend is elsewhere."""
    for cache_size, knee in ((16 * KIB, 4 * KIB), (32 * KIB, 8 * KIB), (64 * KIB, 16 * KIB)):
        rate = rates(QUEUES, SHARED, doubling(1 * KIB, 32 * KIB), (f"platform.host.l1={cache_size} B",))
        assert local_maxima(rate) == [knee], cache_size


def test_the_last_knee_follows_the_second_level_cache() -> None:
    for cache_size, knee in ((2 * MIB, 512 * KIB), (4 * MIB, 1 * MIB), (8 * MIB, 2 * MIB)):
        rate = rates(QUEUES, SHARED, doubling(128 * KIB, 4 * MIB), (f"platform.host.l2={cache_size} B",))
        assert local_maxima(rate) == [knee], cache_size


def test_the_recovery_follows_the_pipeline_of_the_copy_buffer() -> None:
    """A message of as many pieces as the copy buffer has costs one piece more than its bytes; shorter pieces cost less."""
    usual, short = (rates(QUEUES, SHARED, (64 * KIB, 128 * KIB), s) for s in ((), ("short_chunk=4KiB",)))
    assert usual[128 * KIB] > 1.05 * usual[64 * KIB]
    assert short[64 * KIB] > usual[64 * KIB]
    assert short[128 * KIB] / short[64 * KIB] < usual[128 * KIB] / usual[64 * KIB]


def test_larger_cells_move_the_switch_to_the_copy_buffer() -> None:
    usual, larger = (rates(QUEUES, SHARED, (64 * KIB,), s) for s in ((), ("cell=128KiB", "cells=16")))
    assert larger[64 * KIB] > 1.1 * usual[64 * KIB]


# ---------------------------------------------------------------- placement


@pytest.mark.parametrize("who", ALL)
def test_small_messages_wait_for_lines_of_the_other_core(who: tuple[str, str]) -> None:
    near, far = (latencies(who, p)[0] for p in (SHARED, SPLIT))
    lines = 3  # the queue's tail; the link to the cell and its header
    assert far - near == pytest.approx(lines * (125e-9 - 30e-9), rel=1e-6)


def test_queues_cross_the_bus_twice_and_direct_copies_once() -> None:
    """The copies' shares of one long message, from its anatomy: what a placement adds to them."""

    def copied(who: tuple[str, str], placement: str) -> float:
        told = simulate.explain(Question(*who, Message(1 * MIB), placement))
        return sum(s["seconds"] for s in told["stages"] if s["stage"] == "copy")

    queued = copied(QUEUES, SPLIT) - copied(QUEUES, SHARED)
    direct = copied(WINDOWS, SPLIT) - copied(WINDOWS, SHARED)
    assert queued > 2 * direct > 0
    assert rates(WINDOWS, SPLIT, (256 * KIB,))[256 * KIB] > 2 * rates(QUEUES, SPLIT, (256 * KIB,))[256 * KIB]


def test_two_dies_of_a_package_share_a_bus() -> None:
    """Same line transfers as across packages, but one bus for both: a slow bus is felt twice."""
    slow = ("platform.host.fsb_rate=1 GB/s",)
    assert rates(UNIX, DIE, (256 * KIB,)) == rates(UNIX, SPLIT, (256 * KIB,))
    die, split = (rates(UNIX, p, (256 * KIB,), slow)[256 * KIB] for p in (DIE, SPLIT))
    assert die <= split < rates(UNIX, SPLIT, (256 * KIB,))[256 * KIB]


def test_pinned_ranks_stay_on_their_cores(tmp_path: Path) -> None:
    """Two ranks on one core share it by quanta; on two they do not wait for each other, nor where the scheduler may choose."""
    file = tmp_path / "mine.toml"
    text = (registry.platform("abe").path or file).read_text(encoding="utf-8")
    file.write_text(text + '\n[placement.one-core]\nhosts = ["n1", "n1"]\ncores = [3, 3]\n', encoding="utf-8")
    trace = job("compute 233e6; send 1 0 8 6", "compute 233e6; recv 0 0 8 6")
    apart, free, together = (simulate.run(Question("nemesis", str(file), Replay(trace), p)).time_s for p in (SHARED, "n1,n1", "one-core"))
    assert apart == pytest.approx(free, rel=1e-3)
    assert together == pytest.approx(2 * apart, rel=0.01)
    with pytest.raises(InputError, match="rank 1 is pinned to core 4 of 2 on n1"):
        simulate.run(Question("nemesis", "abe", Replay(trace), SPLIT, ["platform.host.cores=2"]))


# ---------------------------------------------------------------- direct copies


def test_who_copies_is_decided_by_size() -> None:
    def stages(size: int, sets: Any = ()) -> dict[tuple[str, str], float]:
        rows = simulate.explain(Question(*WINDOWS, Message(size), SHARED, sets))["stages"]
        return {(r["stage"], r["process"]): r["seconds"] for r in rows}

    below, above = stages(16 * KIB - 1), stages(16 * KIB)
    assert not any(stage == "syscall" for stage, _ in below)
    assert any(stage == "syscall" for stage, _ in above)
    later = stages(256 * KIB, ["direct_from=1MiB"])  # too long for a cell and too short for a direct copy
    assert not any(stage == "syscall" for stage, _ in later)


def test_direct_copies_cost_small_messages_a_system_call() -> None:
    queued, direct = (latencies(WINDOWS, SHARED, (64,), s)[64] for s in ((), ("direct_from=1B",)))
    assert direct - queued > 1.5e-6


# ---------------------------------------------------------------- threads


@for_each("kind, seconds", [("pthread", 85e-9), ("critical_section", 50e-9), ("mutex", 1e-6)])
@for_each("who", [UNIX, WINDOWS])
def test_thread_support_costs_a_lock_in_every_call_and_poll(who: tuple[str, str], kind: str, seconds: float) -> None:
    sets = ("thread_level=multiple", f"lock_kind={kind}")
    added = latencies(who, SHARED, (0,), sets)[0] - latencies(who, SHARED)[0]
    assert added == pytest.approx(3 * seconds + 150e-9, rel=1e-6)  # send, receive, and a poll that gives lock and processor away
    stages = simulate.explain(Question(*who, Message(0), SHARED, sets))["stages"]
    stage = "syscall" if kind == "mutex" else "lock"  # a mutex is the system's
    assert sum(s["seconds"] for s in stages if s["stage"] == stage) == pytest.approx(2 * seconds, rel=1e-6)


def test_a_lock_without_threads_is_refused() -> None:
    with refused(UsageError, "idle-override | nemesis.thread_level=single | nemesis.thread_level=multiple"):
        latencies(WINDOWS, SHARED, (0,), ("lock_kind=mutex",))


# ---------------------------------------------------------------- sockets that do not wait


def inside(who: tuple[str, str], sets: Iterable[str] = (), ranks: int = 2, tests: int = 4000) -> float:
    result = simulate.run(Question(*who, Replay(osu.overlap(32 * KIB, messages=2, tests=tests, ranks=ranks)), "two-nodes", list(sets)))
    (row,) = simulate.rows_from_marks(result, 1)
    return float(row["time_us"]) * 1e-6 - tests * 300e-9


def test_the_system_overlaps_what_polling_does_itself() -> None:
    ports = inside(WINDOWS)
    for how in ("poll", "select"):
        assert inside(WINDOWS, [f"progress={how}"]) > 3 * ports
    assert inside(UNIX, ranks=14) > inside(UNIX, ranks=6) > inside(UNIX) > 3 * ports


def test_skipped_looks_at_the_port_delay_a_message() -> None:
    often, seldom = (latencies(WINDOWS, "two-nodes", (0,), s)[0] for s in (("tcp_skip=1",), ("tcp_skip=2048",)))
    assert 0 < seldom - often < 2048 * 30e-9
    assert latencies(UNIX, "two-nodes")[0] < latencies(WINDOWS, "two-nodes")[0]


@pytest.mark.parametrize("how", ["poll", "select", "iocp"])
def test_a_long_send_returns_at_once_and_is_delivered_later(how: str) -> None:
    trace = job("isend 1 0 4000000 6; # mark posted; waitall 1; recv 1 0 0 6", "recv 0 0 4000000 6; send 0 0 0 6")
    for eager in ("8 MiB", "128 KiB"):
        result = completed(trace, *WINDOWS[:1], "two-nodes", platform=WINDOWS[1], sets=[f"progress={how}", f"eager={eager}"])
        (posted,) = [m["time_s"] for m in result.marks if m["label"] == "posted"]
        assert posted < 1e-3 < 0.03 < result.time_s


# ---------------------------------------------------------------- what holds for every program

VARIANTS = [
    (*UNIX, SHARED, ()),
    (*UNIX, SPLIT, ("thread_level=multiple",)),
    (*WINDOWS, SHARED, ("direct_from=1B",)),
    (*QUEUES, DIE, ()),
    (*UNIX, "two-nodes", ()),
    (*WINDOWS, "two-nodes", ()),
    (*WINDOWS, "two-nodes", ("progress=select", "eager=4KiB")),
    (*WINDOWS, "two-nodes", ("first_read=64B", "eager=4KiB")),
]
everywhere = for_each("model, room, mode, sets", VARIANTS)


def placed(mode: str, ranks: int) -> Any:
    """The placement, or hosts in turn where it has too few cores."""
    return mode if mode == "two-nodes" or ranks <= 2 else [0] * ranks


@everywhere
@modest
@given(seed=st.integers(0, 2**32), ranks=st.integers(2, 5), rounds=st.integers(1, 4))
def test_matched_programs_complete_and_lose_nothing(
    model: str, room: str, mode: str, sets: tuple[str, ...], seed: int, ranks: int, rounds: int
) -> None:
    trace = matched(seed, ranks, rounds)
    plain = completed(trace, model, placed(mode, ranks), platform=room, sets=sets, seed=seed % 97)
    watched = completed(
        trace, model, placed(mode, ranks), platform=room, sets=sets, seed=seed % 97, anatomy=True, between=("round", "round")
    )
    assert {k: v for k, v in facts(watched).items() if not k.startswith("anatomy")} == {
        k: v for k, v in facts(plain).items() if not k.startswith("anatomy")
    }


@everywhere
@for_each("size", [0, 1, 5000, 16 * KIB, 64 * KIB, 300_000])
def test_stages_sum_to_the_total(model: str, room: str, mode: str, sets: tuple[str, ...], size: int) -> None:
    told = simulate.explain(Question(model, room, Message(size), mode, sets))
    assert sum(s["ps"] for s in told["stages"]) == told["total_ps"] > 0
    times = {completed(simulate.explained_trace(size), model, mode, platform=room, sets=sets, anatomy=a).time_ps for a in (False, True)}
    assert len(times) == 1


# ---------------------------------------------------------------- placements of a platform


def test_a_wrong_placement_is_told(tmp_path: Any) -> None:
    text = (registry.platform("abe").path or tmp_path).read_text(encoding="utf-8")
    for old, new, says in (
        ("cores = [0, 4]", "cores = [0, 8]", "core 8 is not in 0..7 of host 'n1'"),
        ("cores = [0, 4]", "cores = [0]", "names 2 hosts and 1 cores"),
        ('hosts = ["n1", "n1"]\ncores = [0, 4]', 'hosts = ["n1", "n3"]\ncores = [0, 4]', "no host 'n3'"),
        ('hosts = ["n1", "n1"]\ncores = [0, 4]', "cores = [0, 4]", "needs hosts ="),
        ("[placement.split-cache]", "[placement.shared]", "means something else already"),
    ):
        file = tmp_path / "abe.toml"
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(InputError) as error:
            platform_file.load(file)
        assert says in str(error.value)
    with refused(UsageError, "bad-placement"):
        simulate.place(registry.platform("abe"), SPLIT, 3)
    with refused(UsageError, "unknown-host | 'split-cache'"):
        registry.platform("abe").placement("split-cashe")


def test_placements_are_part_of_a_platforms_identity() -> None:
    room = registry.platform("abe")
    assert set(room.placements) == {"two-nodes", SHARED, SPLIT, DIE}
    assert simulate.place(room, "two-nodes", 3) == [0, 1, 0]
    assert simulate.place(room, "two-nodes", 3).cores == (1, 1, 2)


# ---------------------------------------------------------------- benchmarks


def test_osu_benchmarks_time_what_they_say() -> None:
    assert osu.latency([8], reps=3, warm_up=1).actions == 2 * (2 + 8)  # marks are none
    trace = osu.bandwidth([8], window=5, reps=2, warm_up=1)
    assert trace.actions == 3 * (5 + 2) * 2 + 4
    result = simulate.run(Question(*UNIX, Replay(trace), SHARED))
    (row,) = simulate.rows_from_marks(result, 1)
    assert row["repetitions"] == 10
    for wrong in (
        lambda: osu.latency([]),
        lambda: osu.latency([-1]),
        lambda: osu.bandwidth([1], window=0),
        lambda: osu.overlap(8, tests=0),
        lambda: osu.overlap(8, ranks=1),
    ):
        with pytest.raises(UsageError):
            wrong()
    assert {"osu_latency", "osu_bandwidth", "overlap"} <= set(generate.GENERATORS)
    assert isinstance(osu.overlap(8, tests=2), traces.Trace)


# ---------------------------------------------------------------- the study's checks can fail


def points(model: str, mode: str, rate: dict[int, float]) -> list[dict[str, Any]]:
    return [{"model": model, "mode": mode, "size_B": s, "time_us": s / r * 1e6} for s, r in rate.items()]


KNEES = {"KB-03": 16 * KIB, "KB-04": 128 * KIB, "KB-05": 2 * MIB}


@pytest.mark.parametrize("claim_id", KNEES)
def test_a_knee_that_is_not_there_fails(claim_id: str) -> None:
    factor = 1 / 0.9 if claim_id == "KB-04" else 0.9
    bent = {s: 1e9 * factor ** abs(s.bit_length() - KNEES[claim_id].bit_length()) for s in SWEEP}
    for rate, word in ((bent, "pass"), ({s: 1e9 + s for s in SWEEP}, "fail"), ({s: 1e9 - s for s in SWEEP}, "fail")):
        (told,) = verdicts.judge([claims.find(claim_id)], points(QUEUES[0], f"{SHARED}, bandwidth", rate), {})
        assert told.verdict == word, (rate, told)


def test_other_checks_of_the_study_can_fail() -> None:
    def word(claim_id: str, given_points: Any, given_facts: Any) -> str:
        (told,) = verdicts.judge([claims.find(claim_id)], given_points, given_facts)
        return told.verdict

    assert [word("KB-06", [], {"parameters": {"nemesis:windows": {"direct_from": v}}}) for v in (16384.0, 8192.0)] == ["pass", "fail"]
    for shared, split, expected in ((5, 50, "pass"), (50, 5, "fail"), (-5, 50, "fail"), (-5, -1, "fail")):
        given = {"compared": {SHARED: {"percent": shared}, SPLIT: {"percent": split}}}
        assert word("KB-07", [], given) == expected
    for factor, expected in ((1.2, "pass"), (1.3, "fail"), (0.7, "fail")):
        both = points("nemesis", SHARED, {8: 1e9, 16: 1e9}) + points("nemesis:windows", SHARED, {8: 1e9 / factor, 16: 1e9 / factor})
        assert word("KB-13", both, {}) == expected


@everywhere
def test_who_waits_for_whom_is_told(model: str, room: str, mode: str, sets: tuple[str, ...]) -> None:
    for size in (8, 20 * KIB, 200 * KIB):
        ended = simulate.run(Question(model, room, Replay(job(f"send 1 0 {size} 6; recv 1 5 8 6", f"recv 0 0 {size} 6")), mode, sets))
        assert ended.outcome == "deadlock"
        assert [(w["rank"], w["on"]) for w in ended.waits] == [(0, "a message from rank 1, tag 5")]


# ---------------------------------------------------------------- fit and start-up


def test_a_fit_sees_one_latency_and_meets_it() -> None:
    from retrompi.papers.fit import calibrate

    for who, claim_id in ((UNIX, "KB-01"), (WINDOWS, "KB-02")):
        found = calibrate.fit(*who, evaluations=20)
        assert [v["parameter"] for v in found.values] == ["library"]
        (seen,) = found.residuals
        assert seen["claim"] == claim_id
        assert abs(seen["residual"]) < 0.1


def test_starts_with_a_daemon_a_node_and_one_command() -> None:
    for who in ALL:
        told = simulate.startup(Question(*who, Starts(2, 3), seed=0))
        assert (told["failures"], told["daemons"], told["manual_steps_per_job"], told["windows"]) == (0, 2, 1, 0)
