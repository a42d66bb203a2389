"""Bounds on a run: simulated time, events, wall time and memory; what a run that reaches one keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from asking import ask
from refusals import refused

from retrompi._engine import Trace
from retrompi.base.errors import UsageError
from retrompi.sim import simulate
from retrompi.sim.worker import ForkServer
from retrompi.spec.conditions.bounds import Bounds
from retrompi.spec.question import Question, Replay, pingpong
from retrompi.store import open_store
from retrompi.store.lookup import answer
from retrompi.studies.define.case import PointJob, evaluate
from retrompi.studies.define.catalogue import scenario
from retrompi.studies.execute.bounded_executor import Bounded
from retrompi.studies.execute.run import Here

LONG = Question("wmpi", "nt-pair", pingpong([0, 1024, 65536], 100), "shared")
ENDLESS = "0 init\n1 init\n0 send 1 0 1099511627776 6\n1 recv 0 0 1099511627776 6\n0 finalize\n1 finalize\n"


def _trace(text: str) -> Trace:
    return Trace.parse([(text.encode(), "made.ti", -1)])


def test_the_bound_on_events_is_exact_and_keeps_finished_sizes() -> None:
    whole = simulate.run(LONG)
    ended = simulate.run(LONG.with_(bounds=Bounds(events=whole.events // 2)))
    assert (ended.outcome, ended.events) == ("limit", whole.events // 2)
    assert ended.detail.startswith(f"the bound of {ended.events} events is reached; {ended.time_s:.9g} s were simulated in")
    again = simulate.run(LONG.with_(bounds=Bounds(events=whole.events // 2)))
    assert (again.time_ps, again.marks, again.per_rank) == (ended.time_ps, ended.marks, ended.per_rank)
    assert whole.marks[: len(ended.marks)] == ended.marks
    assert 0 < len(ended.marks) < len(whole.marks)
    assert [r["rank"] for r in ended.per_rank] == [0, 1]
    enough = simulate.run(LONG.with_(bounds=Bounds(events=whole.events, memory_B=1 << 30)))
    assert (enough.outcome, enough.time_ps) == ("completed", whole.time_ps)


def test_an_endless_run_ends_at_its_wall_time() -> None:
    ended = ask("wmpi", "nt-pair", _trace(ENDLESS), bounds=Bounds(wall_s=0.2))
    assert ended.outcome == "limit"
    assert ended.detail.startswith("the bound of 0.2 s of wall time is reached; ")
    assert ended.events > 0


@pytest.mark.parametrize("sets", [{}, {"wmpi.header": "1e9B"}], ids=["sends", "headers"])
def test_a_run_without_end_of_memory_ends_at_its_bound(sets: dict[str, str]) -> None:
    # Sends that nobody receives pile up in the receiver's memory.
    many = "0 init\n1 init\n" + "0 isend 1 0 10 6\n" * 20000 + "0 waitall 20000\n1 sleep 1000\n0 finalize\n1 finalize\n"
    question = Question("wmpi", "nt-pair", Replay(_trace(many)), "distributed", sets)
    server = ForkServer()
    try:
        # What a run before it has freed is not for it.
        if not sets:
            assert simulate.run(question, server=server).outcome == "completed"
        ended = simulate.run(question.with_(bounds=Bounds(memory_B=2 << 20)), server=server)
    finally:
        server.close()
    assert ended.outcome == "limit"
    assert ended.detail.startswith("the bound of 2 MiB of memory is reached; ")


def test_a_bounded_run_is_kept_and_is_no_answer(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "s.db"))
    some = simulate.run(LONG).events * 9 // 10
    bounded = LONG.with_(bounds=Bounds(events=some))
    for _ in range(2):
        with refused(simulate.SimulationEnded, f"not-completed | limit | {some} events") as ended:
            answer(store, bounded)
    assert ended.value.run_id is not None
    assert [p["size_B"] for p in store.points(ended.value.run_id)] == [0, 1024]
    assert store.run(ended.value.run_id)["outcome"] == "limit"
    found = answer(store, LONG)
    assert not found.found
    assert [p["size_B"] for p in found.rows] == [0, 1024, 65536]
    assert answer(store, bounded).found  # the whole answer is there, and needs no bound


def test_questions_that_differ_in_bounds_are_one_question() -> None:
    bounded = LONG.with_(bounds=Bounds(1, 2.0, 3))
    assert bounded == LONG
    assert hash(bounded) == hash(LONG)
    assert Bounds(5, None, 7).within(Bounds(None, 2.0, 6)) == Bounds(5, 2.0, 6)
    for bad in ({"events": 0}, {"wall_s": float("nan")}, {"wall_s": -1.0}, {"memory_B": 0}):
        with refused(UsageError, "out-of-range | more than zero"):
            Bounds(**bad)  # type: ignore[arg-type]


def test_points_of_a_study_have_bounds() -> None:
    with Bounded(Here(), Bounds(events=500)) as executor:
        ((_, done),) = executor.evaluate([PointJob(0, scenario("bf-wmpi-shared"))])
    assert done.outcome == "limit"
    assert evaluate(PointJob(0, scenario("bf-wmpi-shared"))).runs[-1].spec.identity != done.runs[-1].spec.identity


def test_below_the_mechanism_a_bound_ends_the_samples_too() -> None:
    ended = simulate.run(LONG.with_(fidelity="curve", overrides=["wmpi.packet=100KiB"], bounds=Bounds(events=50)))
    assert ended.outcome == "limit"
    assert simulate.run(LONG.with_(fidelity="curve", overrides=["wmpi.packet=100KiB"])).outcome == "completed"


def test_the_bounds_are_options_of_the_commands(retrompi, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    told = retrompi("pingpong", "-m", "wmpi", "--mode", "shared", "--sizes", "0,1KiB", "--reps", "100", "--event-limit", "12", "--csv")
    assert told.code == 1
    assert [line.split(",")[0] for line in told.out.splitlines()] == ["size_B", "0"]
    assert "limit: the bound of 12 events" in told.err
    file = tmp_path / "made.ti"
    file.write_text(ENDLESS)
    told = retrompi("replay", str(file), "-m", "wmpi", "--wall-limit", "200ms", "--json")
    assert told.code == 1
    row = json.loads(told.out)
    assert row["outcome"] == "limit"
    assert [r["rank"] for r in row["per_rank"]] == [0, 1]
    for option, value in (("--event-limit", "0"), ("--wall-limit", "0s"), ("--memory-limit", "0B"), ("--time-limit", "0s")):
        told = retrompi("replay", str(file), "-m", "wmpi", option, value)
        assert told.code == 2
        assert option in told.err
