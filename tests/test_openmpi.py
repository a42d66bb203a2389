"""Open MPI 1.1 over VAPI: fragments in a ring up to 32 KiB, reads by the receiver's card above, and its collectives; PMB."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from engine_runs import job

from retrompi.base.errors import UsageError
from retrompi.sim import simulate
from retrompi.sim.result import Result
from retrompi.spec.media import Dma
from retrompi.spec.question import Question, Replay, Starts, pingpong

HOSTS = "poweredge-2650*{}@infiniband-topspin"
ASK = 32 * 1024 - 64
"""Longest message that is sent without asking."""
MIB = 1 << 20


def times(sizes: Sequence[int], *sets: str, warm_up: int = 1) -> dict[int, float]:
    """Size -> one-way time, us."""
    rows = simulate.benchmark(Question("openmpi", HOSTS.format(2), pingpong(list(sizes), 2, warm_up), overrides=list(sets)))
    return {r["size_B"]: r["time_us"] for r in rows}


def replay(*ranks: str, sets: Sequence[str] = ()) -> Result:
    return simulate.run(Question("openmpi", HOSTS.format(len(ranks)), Replay(job(*ranks)), "distributed", overrides=list(sets)))


def at(result: Result, label: str) -> float:
    """Microseconds of a mark."""
    (found,) = [row["time_s"] for row in result.marks if row["label"] == label]
    return float(found) * 1e6


def test_a_message_asks_where_it_no_longer_fits_into_a_fragment() -> None:
    got = times([ASK, ASK + 1, 12 * 1024 - 63])
    assert got[ASK + 1] != pytest.approx(got[ASK], rel=0.01)
    assert times([ASK], "openmpi.fragment=12 KiB")[ASK] == pytest.approx(got[ASK + 1], abs=0.1)
    assert times([ASK + 1], "openmpi.answer=30 us")[ASK + 1] == pytest.approx(
        times([ASK + 1], "openmpi.answer=10 us")[ASK + 1] + 20, abs=0.01)


def test_what_the_processor_has_not_written_to_the_card_is_fetched() -> None:
    """34 B and 30 of headers are 64 B, which with the card's headers take the processor 90 B at 500 MB/s."""
    short, longer = times([34, 35], "openmpi.fetch=2 us").values()
    assert longer - short == pytest.approx(2 - 90 / 500, abs=0.02)
    assert times([35], "openmpi.inline=92 B")[35] == pytest.approx(short, abs=0.02)


def test_the_sender_has_no_part_in_moving_long_data_and_is_told_at_the_end() -> None:
    """It computes after it has asked; where it answers itself (MVAPICH) the data wait for that."""
    sender = f"isend 1 0 {MIB} 6 req=1; compute 2e7; # 0 mark computed; wait req=1; # 0 mark sent"
    receiver = f"recv 0 0 {MIB} 6; # 1 mark received"
    got = replay(sender, receiver)
    assert at(got, "received") < 2000 < at(got, "computed") == pytest.approx(at(got, "sent"), rel=0.01)
    other = simulate.run(Question("mvapich", "pc-2003*2@infiniband-2003", Replay(job(sender, receiver)), "distributed"))
    assert at(other, "received") > at(other, "computed")
    told = replay(f"send 1 0 {MIB} 6; # 0 mark sent", f"recv 0 0 {MIB} 6; # 1 mark received")
    assert at(told, "received") + 2 < at(told, "sent") < at(told, "received") + 20


def test_registered_memory_stays_registered() -> None:
    first, again = (times([65536], warm_up=w)[65536] for w in (0, 1))
    assert first > again + 10
    anew = times([65536], "openmpi.leave_pinned=no", "openmpi.pin=10 us", "openmpi.pin_page=0 us")[65536]
    assert anew == pytest.approx(again + 20, abs=0.1)  # at both ends
    assert times([8192], warm_up=0) == times([8192])  # fragments are registered at the start


def test_a_request_goes_between_the_packets_of_long_data() -> None:
    """In a chain each has to ask while its own data are being read: four take as long as two."""
    def chain(n: int) -> float:
        calls = [f"sendRecv {MIB} {(me + 1) % n} {MIB} {(me - 1) % n} 6 6; " * 4 for me in range(n)]
        return float(replay(*calls).time_ps)

    assert chain(4) == pytest.approx(chain(2), rel=0.01)


def test_data_that_a_card_reads_need_nothing_of_the_sender() -> None:
    with pytest.raises(UsageError, match="no processor, interrupt or message"):
        Dma(("rank", "rank"), packet=8192, header=26, piece=1024, reads=True, told_by=20)


@for_each("call, n, used", [
    ("barrier", 4, {("barrier", "doubling")}),
    ("bcast 4194304 0 6", 2, {("bcast", "posted")}),
    ("bcast 4194304 0 6", 4, {("bcast", "bintree")}),
    ("bcast 1000 0 6", 6, {("bcast", "posted")}),
    ("bcast 5000 0 6", 6, {("bcast", "bintree")}),
    ("bcast 600000 0 6", 6, {("bcast", "pipeline_16k")}),
    ("bcast 40000 0 6", 9, {("bcast", "bintree_16k")}),
    ("allreduce 4194304 0 6", 4, {("allreduce", "reduce_bcast"), ("reduce", "linear_copy"), ("bcast", "bintree")}),
    ("alltoall 4194304 4194304 6 6", 2, {("alltoall", "rotated")}),
    ("alltoall 32768 32768 6 6", 4, {("alltoall", "linear")}),
    ("alltoall 65536 65536 6 6", 4, {("alltoall", "rotated")}),
    ("alltoall 48 48 6 6", 16, {("alltoall", "bruck")}),
])
def test_collectives_are_those_of_the_fixed_decisions(call: str, n: int, used: set[tuple[str, str]]) -> None:
    got = replay(*[call] * n)
    assert {(row["operation"], row["algorithm"]) for row in got.collectives} == used


def test_operands_are_added_at_the_rate_of_the_processor() -> None:
    """The root alone: 1 MiB beyond the cache."""
    calls = f"reduce {MIB} 0 0 6; # 0 mark end", f"reduce {MIB} 0 0 6"
    slow, fast = (replay(*calls, sets=[f"openmpi.add_far={rate} ns/B"]) for rate in (2, 1))
    assert at(slow, "end") - at(fast, "end") == pytest.approx(MIB * 1e-3, rel=0.02)


def test_it_starts_by_a_daemon_on_each_machine() -> None:
    told = simulate.startup(Question("openmpi", HOSTS.format(2), Starts(2)))
    assert (told["daemons"], told["failure_rate"]) == (2, 0)


@pytest.fixture
def script(application: Callable[[str], Any]) -> Any:
    return application("pmb")


def test_the_predicted_rows_are_those_of_the_benchmark(script: Any, predicted: Callable[[Path], Any]) -> None:
    """Every row once, and the nominal values of some made again."""
    rows = predicted(script.FILE)
    assert list(rows) == [*(f"PMBA-{i:03}" for i in range(1, 56)), *(f"PMBC-{i:03}" for i in range(1, 233))]
    assert all(0 < float(row["low_us"]) <= float(row["median_us"]) <= float(row["high_us"]) for row in rows.values())
    for name in ("PMBA-024", "PMBC-042", "PMBC-092", "PMBC-105", "PMBC-232"):
        row = rows[name]
        (bench,) = [b for b in script.BENCHMARKS if b.set == name[:4] and b.first <= int(name[5:]) < b.first + len(b.sizes)]
        assert float(row["nominal_us"]) == pytest.approx(script.value(bench, int(row["points"]), None), rel=1e-3)


def test_a_pingpong_is_corrected_to_what_is_published(script: Any) -> None:
    bench = next(b for b in script.BENCHMARKS if b.name == "PingPong")
    assert script.value(bench, 512, None) == pytest.approx(script.published()[512])
    assert 0.95 < script.correction(65536, None) < 1.05 < script.correction(4096, None)
