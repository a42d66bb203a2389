"""The anatomy of a message: exact sums, and the stage that a mechanism is known by."""

from __future__ import annotations

from collections import Counter

import pytest
from cases import for_each
from engine_runs import MODELS, MODES, PATHS, run
from refusals import refused

from retrompi.base.errors import RetrompiError
from retrompi.sim import simulate
from retrompi.spec.question import Message, Question

KIB = 1024
STAGES = {
    "library", "copy", "syscall", "event", "switch", "tick", "quantum", "queueing", "poll", "stack", "interrupt", "nic", "wire",
    "ack", "compute",
}


def shares(model: str, mode: str, size: int, sets: list[str] | None = None) -> dict[str, float]:
    """Share of every stage in the time of a message."""
    told = simulate.explain(Question(model, "nt-pair", Message(size), mode, sets or []))
    by_stage: Counter[str] = Counter()
    for row in told["stages"]:
        by_stage[row["stage"]] += row["ps"]
    return {stage: ps / told["total_ps"] for stage, ps in by_stage.items()}


@for_each("model, mode", PATHS)
@for_each("size", [0, 1, 1000, 16 * KIB, 65 * KIB + 1, 512 * KIB, 4 * KIB * KIB])
def test_the_stages_sum_exactly_to_the_total(model: str, mode: str, size: int) -> None:
    told = simulate.explain(Question(model, "nt-pair", Message(size), mode))
    assert sum(s["ps"] for s in told["stages"]) == told["total_ps"]
    assert sum(s["seconds"] for s in told["stages"]) == told["total_s"]
    assert told["total_s"] == pytest.approx(told["total_ps"] * 1e-12, rel=1e-12)
    assert {s["stage"] for s in told["stages"]} <= STAGES
    assert all(s["ps"] > 0 and s["process"] for s in told["stages"])
    assert len({(s["stage"], s["process"]) for s in told["stages"]}) == len(told["stages"])
    trace = simulate.explained_trace(size)
    result = run(trace, model, mode, anatomy=True)
    times = {m["label"]: m["time_ps"] for m in result.marks}
    assert abs(2 * told["total_ps"] - (times["end"] - times["anatomy"])) <= 2
    assert result.anatomy_ps == times["end"] - times["anatomy"]
    assert sum(r["ps"] for r in result.anatomy) == result.anatomy_ps


def test_hpvm_on_one_machine_waits_for_a_burnt_quantum() -> None:
    assert shares("hpvm", "shared", 0)["quantum"] > 0.9
    assert shares("hpvm", "shared", 512 * KIB)["quantum"] > 0.8


def test_wmpi_collapses_at_512_kib_by_a_burnt_quantum() -> None:
    assert shares("wmpi", "shared", 512 * KIB)["quantum"] > 0.8
    assert "quantum" not in shares("wmpi", "shared", 16 * KIB)


def test_a_sender_that_blocks_burns_no_quantum() -> None:
    assert "quantum" not in shares("wmpi", "shared", 512 * KIB, ["answer_wait=block"])


def test_winmpich_between_machines_waits_for_the_tick() -> None:
    assert shares("winmpich", "distributed", 0)["tick"] > 0.5
    assert "tick" not in shares("winmpich", "distributed", 0, ["proxy_wait=event"])
    assert "tick" not in shares("winmpich", "shared", 0)


@pytest.mark.parametrize("model", MODELS)
def test_what_crosses_a_wire_shows_the_wire_and_what_does_not_does_not(model: str) -> None:
    assert {"wire", "nic"} <= shares(model, "distributed", 4 * KIB).keys()
    assert not {"wire", "nic"} & shares(model, "shared", 4 * KIB).keys()


@pytest.mark.parametrize("mode", MODES)
def test_the_delayed_acknowledgement_rival_shows_the_acknowledgement(mode: str) -> None:
    """A small packet's data wait for the acknowledgement of its header."""
    assert shares("hpvm:delayed-ack", mode, 100)["ack"] > 0.9
    assert "ack" not in shares("hpvm", mode, 100)


def test_a_lost_datagram_shows_its_retry() -> None:
    lossy = [simulate.explain(Question("wmpi", "nt-pair", Message(100), "distributed", ["loss=0.3"], seed=s)) for s in range(1, 9)]
    retried = [told for told in lossy if any(s["process"] == "udp retry" for s in told["stages"])]
    assert retried
    assert all(sum(s["ps"] for s in told["stages"] if s["stage"] == "ack") > told["total_ps"] / 2 for told in retried)


def test_two_equal_explanations_are_equal() -> None:
    question = Question("wmpi", "nt-pair", Message(5000), "distributed")
    assert simulate.explain(question) == simulate.explain(question)


def test_an_explanation_of_a_run_that_ends_badly_says_so() -> None:
    with refused(RetrompiError, "not-completed | 10"):
        simulate.explain(Question("wmpi", "nt-pair", Message(0), "distributed", ["loss=1"]))
