"""Open MPI of the winter of 2005/06 over TCP: fragments, looks at all sockets, shared memory, its all-to-all; the predicted one (KUT)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from engine_runs import job
from period_curves import stages, total

from retrompi.sim import simulate
from retrompi.sim.result import Result
from retrompi.spec.question import Question, Replay, Starts, pingpong

HOSTS = "opteron-2200*32@gigabit-paused"
EAGER = 65536 - 72
"""Longest message that is sent without asking: a fragment of 64 KiB without room for OB1's largest header."""


def times(sizes: Sequence[int], *sets: str, mode: str = "distributed") -> dict[int, float]:
    """Size -> one-way time, us."""
    rows = simulate.benchmark(Question("ompitcp", HOSTS, pingpong(list(sizes), 2, 1), mode, list(sets)))
    return {r["size_B"]: r["time_us"] for r in rows}


def replay(call: str, n: int, mode: str) -> Result:
    return simulate.run(Question("ompitcp", HOSTS, Replay(job(*[call] * n)), mode))


def test_a_message_asks_where_its_first_fragment_is_not_all() -> None:
    below, last, first = times([EAGER - 1, EAGER, EAGER + 1]).values()
    assert first - last > 20 * abs(last - below) + 20


def test_within_a_machine_it_asks_from_a_kibibyte_on() -> None:
    got = times([951, 952, 953], mode="shared")
    assert got[953] - got[952] > 5 * abs(got[952] - got[951]) + 0.3
    assert got[952] < times([952])[952] / 5


def test_a_look_takes_as_long_as_there_are_sockets() -> None:
    """0.15 us for each process on another machine, beside the call itself; processes of one's own machine have none."""
    few, many = times([1], "ompitcp.sockets=1")[1], times([1], "ompitcp.sockets=101")[1]
    assert few < many < few + 15 * 1.5
    assert times([1])[1] == few
    where = {"platform": HOSTS, "mode": "distributed"}
    assert total(stages("ompitcp", 64, **where), "poll") > 0


def test_what_a_first_read_finds_is_copied_once_more() -> None:
    """Up to 30 KiB, from the connection's buffer; the receiver looks when all has come."""
    calls = "send 1 0 30000 6", "compute 1e7; # 1 mark looks; recv 0 0 30000 6; # 1 mark received"

    def taken(cache: str) -> float:
        slow = [f"platform.host.copy_{where}=100 MB/s" for where in ("l1", "l2", "mem")]
        got = simulate.run(Question("ompitcp", HOSTS, Replay(job(*calls)), "distributed", [*slow, f"ompitcp.cache={cache}"]))
        at = {row["label"]: row["time_s"] * 1e6 for row in got.marks}
        return float(at["received"] - at["looks"])

    assert taken("30 KiB") - taken("1 KiB") == pytest.approx((30000 - 1024) / 100, rel=0.02)


def test_all_of_a_longer_message_waits_for_its_receiver() -> None:
    """Nothing of it goes with the request: it takes its time on the wire after the receiver has come; of a short one all is there."""
    def taken(size: int) -> float:
        calls = f"send 1 0 {size} 6", f"compute 1e7; # 1 mark looks; recv 0 0 {size} 6; # 1 mark received"
        got = simulate.run(Question("ompitcp", HOSTS, Replay(job(*calls)), "distributed"))
        at = {row["label"]: row["time_s"] * 1e6 for row in got.marks}
        return float(at["received"] - at["looks"])

    assert taken(EAGER) < EAGER / 125 / 2
    for size in (EAGER + 1, 200_000):
        assert size / 125 < taken(size) < size / 125 + 300


@for_each("size, n, mode, used", [
    (4, 128, "block:4", "bruck"), (7, 128, "block:4", "linear"), (1024, 128, "block:4", "linear"), (1025, 128, "block:4", "rotated"),
    (48, 16, "distributed", "bruck"), (8192, 16, "distributed", "linear"), (8193, 16, "distributed", "rotated"),
    (100_000, 2, "distributed", "rotated"),
])
def test_its_all_to_all_is_chosen_by_the_bytes_of_all_blocks(size: int, n: int, mode: str, used: str) -> None:
    got = replay(f"alltoall {size} {size} 6 6", n, mode)
    assert {(row["operation"], row["algorithm"]) for row in got.collectives} == {("alltoall", used)}


def test_it_starts_by_a_daemon_on_each_machine() -> None:
    told = simulate.startup(Question("ompitcp", HOSTS, Starts(8), "block:4"))
    assert (told["daemons"], told["failure_rate"]) == (2, 0)


@pytest.fixture
def script(application: Callable[[str], Any]) -> Any:
    return application("kut")


def test_the_predicted_rows_are_those_of_the_set(script: Any, predicted: Callable[[Path], Any]) -> None:
    """Every row once, and the nominal values of some made again."""
    rows = predicted(script.FILE)
    assert list(rows) == [f"KUT-{i:03}" for i in range(1, 185, 3)]
    assert all(0 < float(row["low_s"]) <= float(row["median_s"]) <= float(row["high_s"]) for row in rows.values())
    asked = {f"KUT-{n:03}": question for n, question in script.questions(None)}
    for name in ("KUT-001", "KUT-025", "KUT-121", "KUT-163", "KUT-184"):
        assert float(rows[name]["nominal_s"]) == pytest.approx(script.seconds(asked[name], None), rel=1e-3)


def test_the_standard_decision_is_the_model_s(script: Any) -> None:
    for size in (4, 8, 1024, 2048):
        got = replay(f"alltoall {size} {size} 6 6", 128, "block:4")
        assert {row["algorithm"] for row in got.collectives} == {script.standard(size)}


def test_every_program_exchanges_all_blocks(script: Any) -> None:
    """With each other process once; what a step receives is sent in that step."""
    for program, n in (("hosts", 128), ("ring", 32), ("paired", 32), ("paired barriers", 32)):
        sent: list[set[tuple[int, int]]] = [set() for _ in range(n)]
        received: list[set[tuple[int, int]]] = [set() for _ in range(n)]
        for me in range(n):
            step = 0
            for line in script.lines(script.Asked(program, 8, n), me):
                match line.split():
                    case ["isend", to, *_]:
                        sent[step].add((me, int(to)))
                    case ["irecv", source, *_]:
                        received[step].add((int(source), me))
                    case ["sendRecv", _, to, _, source, *_]:
                        sent[step].add((me, int(to)))
                        received[step].add((int(source), me))
                        step += 1
                    case ["waitall"]:
                        step += 1
        assert sent == received
        assert sorted(pair for step in sent for pair in step) == [(a, b) for a in range(n) for b in range(n) if a != b]
