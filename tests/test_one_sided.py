"""One-sided operations, memory-to-memory channels and the torus: Cray MPT and MPI-BIP."""

from __future__ import annotations

import pytest
from asking import ask
from cases import for_each
from engine_runs import job
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from retrompi import traces
from retrompi.base.errors import InputError, UsageError
from retrompi.sim import simulate
from retrompi.spec.question import Question, pingpong
from retrompi.traces import generate, rates

MIB = 1 << 20


def run(trace: object, model: str, platform: str, mode: object = "distributed", **options: object) -> simulate.Result:
    return ask(model, platform, trace, mode, **options)


def peak(name: str, model: str, platform: str, mode: object, **args: object) -> float:
    made = generate.generator(name)
    result = run(made.make(**args), model, platform, mode)
    simulate.require_completed(result, name)
    return max(r["bandwidth_MBps"] for r in simulate.rows_from_marks(result, made.parts, made.counted, args))


def test_a_trace_keeps_one_sided_operations() -> None:
    text = "0 init\n0 Put 1 0 100 6\n0 Get 1 0 4 1\n0 Accumulate 1 0 3 0\n0 Win_flush_all\n0 Win_fence\n0 finalize\n"
    trace = traces.Trace.parse([(text.encode(), "a", 0), (b"1 init\n1 Win_fence\n1 finalize\n", "b", 1)])
    again = traces.Trace.parse([(trace.to_ti(r).encode(), "x", r) for r in range(2)])
    assert again == trace
    assert "0 Get 1 0 16 6" in trace.to_ti(0)
    assert trace.unsupported() == []
    assert traces.Trace.load(trace.dump()) == trace


@pytest.mark.parametrize(("model", "mode"), [("wmpi", "shared"), ("winmpich", "distributed"), ("hpvm", "shared")])
def test_a_runtime_without_them_says_so_by_line(model: str, mode: str) -> None:
    with refused(InputError, "bad-input | rank-0.txt:2 | one-sided"):
        run(job("Put 1 0 8 6; Win_fence", "Win_fence"), model, "nt-pair", mode)


def test_a_put_is_over_for_everybody_after_the_fence() -> None:
    """The origin goes on when its data have left; what it told another rank after a flush is true."""
    n = 4 * MIB
    trace = job(f"Put 1 0 {n} 6; # mark left; Win_flush_all; # mark there; Win_fence", "Win_fence")
    at = {m["label"]: m["time_s"] for m in run(trace, "craympt:shmem", "cray-t3e", [0, 1]).marks}
    assert n / at["left"] / 1e6 == pytest.approx(363, rel=0.02)
    assert at["there"] > at["left"]


def test_a_get_takes_the_targets_time_not_its_processor() -> None:
    compute = "compute 6e8"  # a second
    trace = job(f"# mark a; Get 1 0 {MIB} 6; # mark b; Win_fence", f"{compute}; Win_fence")
    result = run(trace, "craympt:shmem", "cray-t3e", [0, 1])
    at = {m["label"]: m["time_s"] for m in result.marks}
    assert at["b"] - at["a"] == pytest.approx(MIB / 333e6, rel=0.02)
    assert result.time_s >= 1


def test_an_accumulate_costs_a_get_and_a_put() -> None:
    def took(line: str) -> float:
        marks = run(job(f"# mark a; {line}; Win_flush_all; # mark b; Win_fence", "Win_fence"), "craympt:shmem", "cray-t3e", [0, 1]).marks
        return float(marks[1]["time_s"] - marks[0]["time_s"])

    n = f"1 0 {MIB} 6"
    assert took(f"Accumulate {n}") == pytest.approx(took(f"Get {n}") + took(f"Put {n}"), rel=1e-3)


def test_both_directions_share_a_processing_elements_memory() -> None:
    one = peak("put_one_way", "craympt:shmem", "cray-t3e", [0, 1], sizes=[MIB], reps=20)
    both = peak("one_sided_halves", "craympt:shmem", "cray-t3e", [0, 1], ranks=2, sizes=[MIB], reps=20)
    assert one < both < 2 * one


def test_neighbours_of_the_torus_do_not_disturb_each_other_but_shared_links_do() -> None:
    """In 2 x 2 x 2 the partners i and i + 4 are neighbours; in a ring of eight they are four hops apart and share links."""
    args = {"ranks": 8, "sizes": [MIB], "reps": 5}
    pairs = peak("one_sided_halves", "craympt:shmem", "cray-t3e", list(range(8)), **args)
    alone = peak("one_sided_halves", "craympt:shmem", "cray-t3e", [0, 4], ranks=2, sizes=[MIB], reps=5)
    assert pairs == pytest.approx(4 * alone, rel=0.01)


def test_the_pools_lock_holds_pvm_back_on_a_j90() -> None:
    one = peak("halves", "craympt:pvm", "cray-j90", "shared", ranks=2, sizes=[MIB], reps=5)
    four = peak("halves", "craympt:pvm", "cray-j90", "shared", ranks=8, sizes=[MIB], reps=5)
    mpi = peak("halves", "craympt", "cray-j90", "shared", ranks=8, sizes=[MIB], reps=5)
    assert one < four < 2.5 * one
    assert mpi > 3.9 * peak("halves", "craympt", "cray-j90", "shared", ranks=2, sizes=[MIB], reps=5)


@for_each("model", ["craympt", "craympt:pvm", "craympt:shmem"])
@for_each("platform, mode", [("cray-j90", "shared"), ("cray-t3e", "distributed")])
@for_each("root", [0, 3])
def test_every_broadcast_reaches_everybody(model: str, platform: str, mode: str, root: int) -> None:
    lines = f"bcast 5000 {root} 6; bcast 0 {root} 6; barrier"
    result = run(job(*[lines] * 8), model, platform, mode)
    assert result.outcome == "completed"
    assert result.messages == result.delivered


def test_the_j90_carries_a_caution_for_mpi_alone() -> None:
    trace = job("send 1 0 8 6", "recv 0 0 8 6")
    assert run(trace, "craympt", "cray-j90", "shared").cautions
    assert not run(trace, "craympt:pvm", "cray-j90", "shared").cautions
    assert not run(trace, "craympt", "cray-t3e", [0, 1]).cautions


def one_way(model: str, size: int, *sets: str) -> float:
    return float(simulate.benchmark(Question(model, "myrinet-piii", pingpong([size], reps=5), "distributed", sets))[0]["time_us"]) * 1e-6


def test_bip_is_below_mpi_bip_and_linux_below_windows() -> None:
    for size in (0, 512, 4096, MIB):
        assert one_way("mpibip:bip", size) < one_way("mpibip", size) < one_way("mpibip:windows", size)


def test_a_long_message_runs_at_the_rate_of_the_link_and_pays_for_pinning() -> None:
    n = 4 * MIB
    assert 230e6 < n / one_way("mpibip", n) < 250e6
    pages = n // 4096
    assert one_way("mpibip", n, "mpibip.pin_page=1 us") - one_way("mpibip", n, "mpibip.pin_page=0.2 us") == pytest.approx(
        2 * pages * 0.8e-6, rel=0.05
    )


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 700, 1024, 1025, 40_000, 300_000]), st.booleans()), min_size=1, max_size=12),
    st.sampled_from([("mpibip", "myrinet-piii"), ("mpibip:windows", "myrinet-piii"), ("craympt", "cray-t3e"), ("craympt:pvm", "cray-t3e")]),
)
def test_messages_arrive_once_and_in_order_whatever_their_sizes(messages: list[tuple[int, bool]], where: tuple[str, str]) -> None:
    """A receive that is too short for what comes ends the job, so in-order delivery is what lets this complete."""
    first = "; ".join(f"{'isend' if later else 'send'} 1 7 {n} 6" for n, later in messages) + "; waitall"
    second = "; ".join(f"recv 0 7 {n} 6" for n, _ in messages)
    result = run(job(first, second), *where, [0, 1])
    assert result.outcome == "completed", result.detail
    assert result.delivered_bytes == sum(n for n, _ in messages)


def test_wrong_arguments_are_told() -> None:
    with refused(UsageError, "wrong-ranks"):
        rates.halves(3, [8], 1)
    with refused(UsageError, "unknown-name"):
        rates.one_sided_halves(2, [8], 1, "put")
    with refused(UsageError, "unknown-name | 'halfs'"):
        generate.generator("halfs")
    with refused(UsageError, "unknown-key | 'rank'"):
        generate.generator("halves").check({"rank": 3})


def both(text: str, platform: str = "cray-t3e", mode: object = None) -> simulate.Result:
    """``text`` on two ranks, ``{o}`` the other one, in a window over both; everything that is sent arrives."""
    ranks = [f"win_create 1 1000; {text.replace('{o}', str(1 - r)).replace('{r}', str(r))}; win_free 1" for r in range(2)]
    result = run(job(*ranks), "craympt:shmem", platform, mode or [0, 1])
    assert result.outcome == "completed", (result.detail, result.waits)
    assert (result.messages, result.bytes) == (result.delivered, result.delivered_bytes)
    return result


@for_each("platform, mode", [("cray-t3e", [0, 1]), ("cray-j90", "shared")])
@for_each(
    "text, moved",
    [
        ("Win_fence win=1; Put {o} 0 100 6 win=1; Win_fence win=1", 200),
        ("Win_fence win=1; Get_accumulate {o} 0 100 6 win=1; Win_fence win=1", 400),
        ("Win_fence win=1; Fetch_and_op {o} 0 8 6 win=1; Compare_and_swap {o} 0 8 6 win=1; Win_fence win=1", 64),
        ("Win_lock_all win=1; Rput {o} 0 10 6 win=1 req=1; Rget {o} 0 20 6 win=1 req=2; waitall 2 reqs=2,1; Win_unlock_all win=1", 60 + 64),
        ("Win_lock {o} 1 win=1; Put {o} 0 100 6 win=1; Win_flush {o} win=1; Win_unlock {o} win=1", 200 + 32),
        ("Win_lock_all win=1; Put {o} 0 50 6 win=1; Win_flush_local_all win=1; Win_flush_all win=1; Win_unlock_all win=1", 100 + 64),
        ("Win_post {o} win=1; Win_start {o} win=1; Put {o} 0 70 6 win=1; Win_complete win=1; Win_wait win=1", 140),
    ],
)
def test_every_call_of_a_window(platform: str, mode: object, text: str, moved: int) -> None:
    """The bytes are those of the operations, and a word of 8 B to take a lock and to give it back."""
    assert both(text, platform, mode).bytes - both("sleep 0", platform, mode).bytes == moved


def test_an_exclusive_lock_keeps_others_out_and_a_shared_one_does_not() -> None:
    def took(kind: int) -> float:
        return both(f"Win_lock 0 {kind} win=1; sleep 1; Win_unlock 0 win=1").time_s

    assert took(1) >= 2
    assert took(0) < 1.5


def test_an_access_epoch_begins_when_the_target_exposes_its_memory_and_ends_when_the_origin_says_so() -> None:
    origin = "win_create 1 8; Win_start 1 win=1; # mark begun; Put 1 0 8 6 win=1; sleep 1; Win_complete win=1"
    target = "win_create 1 8; sleep 1; Win_post 0 win=1; Win_wait win=1"
    result = run(job(origin, target), "craympt:shmem", "cray-t3e", [0, 1])
    assert result.marks[0]["time_s"] >= 1
    assert result.per_rank[1]["time_s"] >= 2


def test_a_get_with_a_request_leaves_the_processor_free() -> None:
    n = 4 * MIB
    text = "win_create 1 8; Win_lock_all win=1; # mark a; {call}; # mark b; {end}Win_unlock_all win=1"

    def took(call: str, end: str = "") -> float:
        marks = run(job(text.format(call=call, end=end), "win_create 1 8"), "craympt:shmem", "cray-t3e", [0, 1]).marks
        return float(marks[1]["time_s"] - marks[0]["time_s"])

    assert took(f"Rget 1 0 {n} 6 win=1 req=1", "wait req=1; ") < 0.01 * took(f"Get 1 0 {n} 6 win=1")


def test_a_deadlock_over_a_lock_names_whose_it_is() -> None:
    """Rank 0 never gives back the lock on its own memory."""
    ranks = ("win_create 1 8; Win_lock 0 1 win=1; barrier; recv 1 0 8 6", "win_create 1 8; barrier; Win_lock 0 1 win=1; send 0 0 8 6")
    result = run(job(*ranks), "craympt:shmem", "cray-t3e", [0, 1])
    assert result.outcome == "deadlock"
    assert {w["rank"]: w["on"] for w in result.waits}[1] == "the lock on the window of rank 0"
