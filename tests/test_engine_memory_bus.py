"""Processors of a host that compute at the same time share its memory bus."""

from __future__ import annotations

import pytest
from engine_runs import job
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from retrompi.base.errors import UsageError
from retrompi.sim import simulate
from retrompi.sim.result import Result
from retrompi.spec import registry
from retrompi.spec.conditions.timed_section import Program
from retrompi.spec.question import Question, Replay

FLOPS = registry.platform("nt-pair").host("server").flops
TWO = ("platform.host.cores=2",)


def seconds(*times: float) -> str:
    """Computation of so many seconds, marked at both ends."""
    return "; ".join(f"compute {t * FLOPS!r}" for t in times)


def run(*ranks: str, share: float, cores: int = 2, seed: int = 1) -> Result:
    trace = job(*ranks)
    sets = [f"platform.host.cores={cores}"]
    program = Replay(trace, program=Program(memory_share=share))
    result = simulate.run(Question("hpvm", "nt-pair", program, [0] * trace.ranks, sets, seed=seed))
    assert result.outcome == "completed"
    return result


def computing(result: Result) -> list[float]:
    return [float(r["compute_s"]) for r in result.per_rank]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8, 1.0])
def test_two_equal_computations_stretch_each_other_by_the_queueing_formula(share: float) -> None:
    assert computing(run(seconds(2), seconds(2), share=share)) == pytest.approx([2 * (1 + share**2)] * 2, rel=1e-6)


def test_more_processors_add_their_shares_and_never_get_more_than_the_memory_has() -> None:
    assert computing(run(*[seconds(1)] * 4, share=0.2, cores=4)) == pytest.approx([1 + 3 * 0.04] * 4, rel=1e-6)
    assert computing(run(*[seconds(1)] * 4, share=0.5, cores=4)) == pytest.approx([4 * 0.5] * 4, rel=1e-6)


def test_a_computation_is_stretched_only_while_a_neighbour_computes() -> None:
    """One second of work beside three: 1.64 s together, then the other's remaining two seconds alone."""
    short, long = computing(run(seconds(1), seconds(3), share=0.8))
    assert short == pytest.approx(1.64, rel=1e-6)
    assert long == pytest.approx(1.64 + 2, rel=1e-6)


def test_a_neighbour_that_begins_later_is_felt_from_then_on() -> None:
    late, early = computing(run(f"sleep 1; {seconds(1)}", seconds(3), share=0.8))
    slept = late - 1.64
    assert 1 <= slept <= 1.02  # `compute_s` counts sleeping too; a timed wait ends on a tick
    assert early == pytest.approx(slept + 1.64 + (3 - slept - 1), rel=1e-4)


def test_one_processor_and_separate_hosts_do_not_contend() -> None:
    pair = job(seconds(2), seconds(2))
    alone = simulate.run(Question("hpvm", "nt-pair", Replay(pair, program=Program(memory_share=0.9)), [0, 1], TWO))
    apart = simulate.run(Question("hpvm", "nt-pair", Replay(pair), [0, 1], TWO))
    assert alone.per_rank == apart.per_rank
    assert run(seconds(2), seconds(2), share=0.9, cores=1).per_rank == run(seconds(2), seconds(2), share=0, cores=1).per_rank


def test_no_share_changes_nothing() -> None:
    exchange = [f"{seconds(0.01)}; send 1 0 1000 6; recv 1 0 1000 6; {seconds(0.02)}", f"recv 0 0 1000 6; {seconds(0.03)}; send 0 0 1000 6"]
    with_zero = simulate.run(Question("hpvm", "nt-pair", Replay(job(*exchange), program=Program(memory_share=0.0)), [0, 0], TWO))
    without = simulate.run(Question("hpvm", "nt-pair", Replay(job(*exchange)), [0, 0], TWO))
    assert (with_zero.time_ps, with_zero.per_rank, with_zero.events) == (without.time_ps, without.per_rank, without.events)


def test_waiting_for_a_message_does_not_use_the_bus() -> None:
    """The receiver spins while the sender computes: the sender is not slowed."""
    sender, _ = computing(run(f"{seconds(1)}; send 1 0 0 6", "recv 0 0 0 6", share=1.0))
    assert sender == pytest.approx(1, rel=1e-3)


@settings(max_examples=25, deadline=None)
@given(
    share=st.floats(0.01, 1),
    work=st.lists(st.lists(st.integers(1, 400), min_size=1, max_size=6), min_size=2, max_size=3),
)
def test_the_stretch_lies_between_none_and_full_and_is_the_same_each_time(share: float, work: list[list[int]]) -> None:
    ranks = [seconds(*[w / 1000 for w in parts]) for parts in work]
    result = run(*ranks, share=share, cores=3)
    for parts, took in zip(work, computing(result), strict=True):
        alone = sum(parts) / 1000
        most = max(1 + share**2 * (len(work) - 1), share * len(work))
        assert alone * (1 - 1e-9) <= took <= alone * most * (1 + 1e-6) + 1e-9
    assert run(*ranks, share=share, cores=3).time_ps == result.time_ps


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_a_share_outside_its_range_is_refused(share: float) -> None:
    with refused(UsageError, "out-of-range | 0..1"):
        Program(memory_share=share)


def test_the_librarys_copies_use_the_bus_too() -> None:
    """A long message to itself is a copy: beside a computing neighbour it takes longer, and so does the neighbour."""
    n = 8 << 20
    copies = f"# mark a; isend 0 0 {n} 6; recv 0 0 {n} 6; waitall; # mark b"
    trace = job(copies, "compute 97e6")

    def took(share: float) -> float:
        result = simulate.run(Question("mpibip", "myrinet-piii", Replay(trace, program=Program(memory_share=share)), "shared"))
        begin, end = (m["time_s"] for m in result.marks if m["rank"] == 0)
        return float(end - begin)

    assert took(0.5) == pytest.approx(1.5 * took(0), rel=0.05)
