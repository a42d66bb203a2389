"""How runs end when they do not complete, each with a reason; and networks that lose, double and reorder."""

from __future__ import annotations

import pytest
from cases import for_each
from engine_runs import ANY_SOURCE, ANY_TAG, MODELS, PATHS, completed, job, one_way, run
from refusals import refused

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.sim import simulate

KIB = 1024
everywhere = for_each("model, mode", PATHS)


@everywhere
def test_a_receive_without_a_send_is_a_deadlock_that_names_everybody(model: str, mode: str) -> None:
    result = run(job("compute 1000; recv 1 4 10 6", "send 0 3 10 6; recv 0 5 10 6"), model, mode)
    assert result.outcome == "deadlock"
    waits = {w["rank"]: w for w in result.waits}
    assert (waits[0]["file"], waits[0]["line"], waits[0]["action"]) == ("rank-0.txt", 3, "recv")
    assert "rank 1" in waits[0]["on"]
    assert "tag 4" in waits[0]["on"]
    assert (waits[1]["file"], waits[1]["line"]) == ("rank-1.txt", 3)
    assert "rank 0" in waits[1]["on"]


@everywhere
@for_each(
    "lines, action, on",
    [
        (f"recv {ANY_SOURCE} {ANY_TAG} 10 6", "recv", "any source"),
        ("Ssend 1 0 10 6", "Ssend", "rank 1"),
        ("ISsend 1 3 10 6; wait 0 1 3", "wait", "rank 1"),
        ("irecv 1 6 10 6; waitall 1", "waitall", "tag 6"),
        ("irecv 1 6 10 6; waitAny 1", "waitAny", "rank 1"),
        ("probe 1 2", "probe", "tag 2"),
        ("barrier", "barrier", "other ranks"),
        ("bcast 8 1 6", "bcast", "other ranks"),
    ],
)
def test_every_kind_of_waiting_is_named(model: str, mode: str, lines: str, action: str, on: str) -> None:
    result = run(job(lines, ""), model, mode)
    assert result.outcome == "deadlock"
    assert len(result.waits) == 1
    assert result.waits[0]["action"].lower() == action.lower()
    assert on in result.waits[0]["on"]


@everywhere
def test_a_circle_of_receives_is_a_deadlock(model: str, mode: str) -> None:
    result = run(job("recv 1 0 8 6; send 1 0 8 6", "recv 2 0 8 6; send 2 0 8 6", "recv 0 0 8 6; send 0 0 8 6"), model, mode)
    assert result.outcome == "deadlock"
    assert [w["on"].split(",")[0] for w in result.waits] == [f"a message from rank {r}" for r in (1, 2, 0)]


def test_a_benchmark_that_deadlocks_tells_the_caller() -> None:
    result = run(job("recv 1 0 8 6", ""))
    with refused(simulate.SimulationEnded, "not-completed | rank-0.txt:2") as error:
        simulate.require_completed(result, "a test")
    assert error.value.exit_code == 1


def test_a_pool_that_can_never_hold_a_packet_ends_the_run() -> None:
    sizes = ["packet=4MiB", "largest_class=8MiB"]
    try:
        result = run(job("send 1 0 3000000 6", "recv 0 0 3000000 6"), "wmpi", "shared", sets=sizes)
    except UsageError:  # the ranges of the parameters forbid it
        result = run(job("send 1 0 1100000 6", "recv 0 0 1100000 6"), "wmpi", "shared", sets=["packet=2MiB", "largest_class=1MiB"])
    assert result.outcome == "aborted"
    assert "shared memory pool of 1048576 B on host server" in result.detail
    assert "rank 0" in result.detail


def test_a_fixed_buffer_for_unexpected_messages_overflows() -> None:
    result = run(job("send 1 0 400000 6; " * 8, "recv 0 9 1 6"), "hpvm", "shared")
    assert result.outcome == "aborted"
    assert "fixed buffer of rank 1 for unexpected messages (2097152 B)" in result.detail


@for_each("fault", ["loss", "duplicate", "reorder"])
@for_each("seed", [1, 2, 3])
def test_each_fault_of_the_network_is_hidden_from_the_program(fault: str, seed: int) -> None:
    sizes = [40_000, 30_000, 9_000, 100, 1, 0] * 4
    trace = job("; ".join(f"isend 1 0 {n} 6" for n in sizes) + "; waitall 0", "; ".join(f"recv 0 0 {n} 6" for n in sizes))
    result = completed(trace, "wmpi", "distributed", sets=[f"{fault}=0.3"], seed=seed)
    assert result.delivered == len(sizes)
    if fault == "duplicate":
        assert result.duplicates > 0
    if fault == "loss":
        assert result.retransmissions > 0


def test_a_bad_network_delivers_every_message_once_in_order_and_slower() -> None:
    # Falling sizes into buffers that fit exactly, both ways at once: whatever overtakes or comes twice does not fit.
    sizes = [120_000 - 1_000 * i for i in range(100)]
    sends, receives = ("; ".join(f"{what} {{}} 0 {n} 6" for n in sizes) for what in ("isend", "irecv"))
    trace = job(*(f"{receives.format(*[1 - me] * 100)}; {sends.format(*[1 - me] * 100)}; waitall 0" for me in (0, 1)))
    good = completed(trace, "wmpi", "distributed")
    bad = completed(trace, "wmpi", "distributed", sets=["loss=0.05", "duplicate=0.05", "reorder=0.05"])
    assert bad.delivered == 200
    assert (bad.retransmissions > 0, bad.duplicates > 0) == (True, True)
    assert good.retransmissions == good.duplicates == 0
    assert bad.time_s > good.time_s
    lossy = ["loss=0.05", "duplicate=0.05", "reorder=0.05"]
    assert one_way("wmpi", "distributed", 4 * KIB, sets=lossy, reps=100) > one_way("wmpi", "distributed", 4 * KIB, reps=100)


def test_a_dead_network_ends_the_run_with_its_reason() -> None:
    result = run(job("send 1 0 100 6", "recv 0 0 100 6"), "wmpi", "distributed", sets=["loss=1"])
    assert result.outcome == "aborted"
    assert "datagram 0 from daemon on server to daemon on workstation was not acknowledged after 10 retries" in result.detail
    assert [w["rank"] for w in result.waits] == [1] or 0 in [w["rank"] for w in result.waits]


@everywhere
def test_a_run_is_given_up_after_its_time(model: str, mode: str) -> None:
    ping = "; ".join(["send 1 0 0 6; recv 1 0 0 6"] * 5000)
    pong = "; ".join(["recv 0 0 0 6; send 0 0 0 6"] * 5000)
    result = run(job(ping, pong), model, mode, limit_s=0.5)
    assert result.outcome == "timeout"
    assert "0.5" in result.detail
    assert {w["rank"] for w in result.waits} == {0, 1}
    assert result.time_s < 10


@everywhere
def test_one_long_computation_does_not_pass_the_limit(model: str, mode: str) -> None:
    """It is a single event: the run ends at the limit, not after what was under way."""
    result = run(job("compute 1e12", "compute 1e12"), model, mode, limit_s=1.0)
    assert (result.outcome, result.time_s) == ("timeout", 1.0)


@pytest.mark.parametrize("model", MODELS)
def test_a_start_may_fail_where_history_says_so(model: str) -> None:
    trace = job("send 1 0 0 6", "recv 0 0 0 6")
    results = {s: run(trace, model, "distributed", start_up=True, seed=s) for s in range(30)}
    failed = [r for r in results.values() if r.outcome == "failed-start"]
    assert all(r.startup for r in results.values())
    if model != "winmpich":
        assert not failed
        return
    assert 0 < len(failed) < 30
    assert all("before the proxy" in r.detail and r.messages == 0 for r in failed)
    assert all(r.outcome == "completed" for r in results.values() if r not in failed)


@pytest.mark.parametrize("model", MODELS)
def test_wrong_placements_are_refused(model: str) -> None:
    trace = job("", "")
    with refused(UsageError, "bad-placement"):
        run(trace, model, [0])
    with refused(UsageError, "unknown-host | 0..1"):
        run(trace, model, [0, 7])
    with refused(UsageError, "unknown-host | 'nowhere'"):
        run(trace, model, "nowhere")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("wait 0 1 3", "no request is outstanding on rank 0"),
        ("sendInit 1 0 8 6; start 0 1 9", "no inactive persistent request of this key"),
        ("recvInit 1 0 8 6; startall; start 1 0 0", "no inactive persistent request of this key"),
        ("recvInit 1 0 8 6 req=1; start req=1; test req=1; start req=1", "request 1 is started already"),
        ("recvInit 1 0 8 6 req=1; start req=1; test req=1; startall reqs=1", "request 1 is started already"),
        ("requestFree 0 1 0", "no request of this key"),
    ],
)
def test_requests_that_are_not_there_are_refused_by_line(line: str, says: str) -> None:
    with pytest.raises(RetrompiError, match=rf"rank-0.txt:\d: .*{says}") as error:
        run(job(line, ""))
    assert error.value.exit_code == 2
