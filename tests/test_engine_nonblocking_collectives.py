"""Non-blocking collectives, requests by identity, and receives that match what is recorded."""

from __future__ import annotations

import pytest
from cases import for_each
from engine_runs import PATHS, completed, job, run
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from retrompi.base.errors import InputError, UsageError

everywhere = for_each("model, mode", PATHS)
N = 4
TENS = " ".join(["10"] * N)
CALLS = (
    "barrier", "bcast 50000 1 6", "reduce 500 0 2 6", "allreduce 800 0 6", "gather 10 10 0 6 6", "scatter 10 10 0 6 6",
    "allgather 10 10 6 6", "alltoall 10 10 6 6", "scan 10 0 6", "exscan 10 0 6", f"reducescatter {TENS} 0 6", "reducescatterblock 10 0 6",
    f"gatherv 10 {TENS} 0 6 6", f"scatterv {TENS} 10 0 6 6", f"allgatherv 10 {TENS} 6 6", f"alltoallv 40 {TENS} 40 {TENS} 6 6",
    f"alltoallw {TENS} {TENS}",
)
ENDS = {
    "waitall": lambda ids: [f"waitall {len(ids)} reqs={','.join(ids)}"],
    "all at the end": lambda ids: ["waitall"],
    "backwards": lambda ids: [f"wait req={k}" for k in reversed(ids)],
    "test that succeeded": lambda ids: [f"test req={k} flag=1" for k in ids],
    "tests": lambda ids: [*[f"test req={k} flag=0" for k in ids], *[f"wait req={k}" for k in ids]],
    "waitany": lambda ids: [f"waitany {len(ids) - i} reqs={','.join(ids[i:])} done={ids[i]}" for i in range(len(ids))],
    "waitsome": lambda ids: [f"waitsome {len(ids)} reqs={','.join(ids)} done={','.join(ids[1:])}", f"wait req={ids[0]}"],
    "testall": lambda ids: [f"testall {len(ids)} reqs={','.join(ids)} flag={flag}" for flag in (0, 1)],
    "testsome": lambda ids: [f"testsome {len(ids)} reqs={','.join(ids)} done={done}" for done in ("none", ",".join(ids))],
    "testany": lambda ids: [f"testany {len(ids) - i} reqs={','.join(ids[i:])} done={ids[i]}" for i in range(len(ids))],
}


@everywhere
@for_each("call", CALLS)
def test_a_call_that_returns_at_once_sends_the_same_messages(model: str, mode: str, call: str) -> None:
    blocking = completed(job(*[call] * N), model, mode)
    started = completed(job(*[f"i{call} req=1; wait req=1"] * N), model, mode)
    assert (started.messages, started.bytes) == (blocking.messages, blocking.bytes)


@everywhere
@for_each("end", ENDS)
def test_several_at_once_end_by_every_call_that_waits_or_tests(model: str, mode: str, end: str) -> None:
    ids = [str(k) for k in range(1, len(CALLS) + 1)]
    started = [f"i{call} req={k}" for k, call in zip(ids, CALLS, strict=True)]
    plain = completed(job(*["; ".join(CALLS)] * N), model, mode)
    both = completed(job(*["; ".join([*started, *ENDS[end](ids)])] * N), model, mode)  # type: ignore[no-untyped-call]
    assert (both.messages, both.bytes) == (plain.messages, plain.bytes)


def test_it_goes_on_only_inside_the_library() -> None:
    """Rank 0 computes for a second between the call and its wait; rank 2 needs what it sends in the second round."""
    others = ["ibarrier req=1; wait req=1"] * 3
    trace = job("ibarrier req=1; sleep 1; wait req=1", *others)
    assert completed(trace, "wmpi", "shared").per_rank[2]["time_s"] >= 1
    looks = "; ".join(["sleep 0.1; test req=1 flag=0"] * 10)
    assert completed(job(f"ibarrier req=1; {looks}; wait req=1", *others), "wmpi", "shared").per_rank[2]["time_s"] < 0.5


def test_a_blocking_call_moves_what_is_under_way() -> None:
    """Rank 0 waits a second for another message after it has begun; what the others need of it is sent meanwhile."""
    others = ["ibarrier req=1; wait req=1"] * 3
    trace = job("ibarrier req=1; recv 1 1 8 6; wait req=1", others[0] + "; sleep 1; send 0 1 8 6", *others[1:])
    assert completed(trace, "wmpi", "shared").per_rank[2]["time_s"] < 0.5


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_mixture_completes_and_is_the_same_each_time(data: st.DataObject) -> None:
    """Collectives of two kinds of communicators and messages, blocking and not, waited for in any order: nothing is lost or doubled."""
    ranks = data.draw(st.integers(2, 5))
    lines: list[list[str]] = [[f"comm_dup 1 0-{ranks - 1}"] for _ in range(ranks)]
    open_: list[int] = []
    for k in range(1, data.draw(st.integers(1, 10)) + 1):
        kinds = ["bcast 3000 0 6", "allreduce 80 0 6", "barrier", "alltoall 70 70 6 6", "reduce 9 0 1 6", "ring", "wait"]
        what = data.draw(st.sampled_from(kinds))
        comm = data.draw(st.sampled_from(["", " comm=1"]))
        if what == "wait":
            for each in lines:
                order = data.draw(st.permutations(open_))
                each += [f"wait req={i}" for i in order]
            open_ = []
        elif what == "ring":
            for r, each in enumerate(lines):
                each += [f"irecv {(r - 1) % ranks} {k} 50 6 req={2 * k}{comm}", f"isend {(r + 1) % ranks} {k} 50 6 req={2 * k + 1}{comm}"]
            open_ += [2 * k, 2 * k + 1]
        elif data.draw(st.booleans()):
            for each in lines:
                each.append(f"i{what} req={2 * k}{comm}")
            open_.append(2 * k)
        else:
            for each in lines:
                each.append(what + comm)
    for each in lines:
        each.append("waitall")
    trace = job(*("; ".join(each) for each in lines))
    model, mode = data.draw(st.sampled_from(PATHS))
    first = completed(trace, model, mode, seed=3)
    again = completed(trace, model, mode, seed=3)
    assert first.per_rank == again.per_rank


@everywhere
def test_requests_are_known_by_their_identity(model: str, mode: str) -> None:
    """Two receives of the same key: the later one is waited for first, which its key could not say."""
    first = "isend 1 5 10 6 req=4; isend 1 5 20 6 req=5; wait req=5; wait req=4"
    second = "irecv 0 5 10 6 req=7; irecv 0 5 20 6 req=8; wait req=8; wait req=7; irecv 0 6 9 6 req=7; wait 0 1 6 req=7"
    completed(job(first + "; send 1 6 9 6", second), model, mode)


def test_waitall_waits_for_those_that_it_names() -> None:
    """The request that it leaves out is of a message that comes a second later."""
    two = "irecv 0 1 8 6 req=1; irecv 0 2 8 6 req=2; "
    trace = job("send 1 1 8 6; sleep 1; send 1 2 8 6", two + "waitall 1 reqs=1; # mark one; wait req=2; # mark two")
    marks = {m["label"]: m["time_s"] for m in completed(trace, "wmpi", "shared").marks}
    assert marks["one"] < 0.5 < 1 <= marks["two"]


def test_a_recorded_outcome_is_followed() -> None:
    """waitany completed the slow one when it was recorded, and so it does here."""
    sends, two = "send 1 1 8 6; sleep 1; send 1 2 8 6", "irecv 0 1 8 6 req=1; irecv 0 2 8 6 req=2; "
    trace = job(sends, two + "waitany 2 reqs=1,2 done=2; # mark slow; wait req=1")
    assert completed(trace, "wmpi", "shared").marks[0]["time_s"] >= 1
    trace = job(sends, two + "waitany 2 reqs=1,2 done=1; # mark fast; wait req=2")
    assert completed(trace, "wmpi", "shared").marks[0]["time_s"] < 0.5
    trace = job("sleep 1; send 1 1 8 6", "irecv 0 1 8 6 req=1; test req=1 flag=0; # mark looked; test req=1 flag=1; # mark had")
    at = {m["label"]: m["time_s"] for m in completed(trace, "wmpi", "shared").marks}
    assert at["looked"] < 0.5 < 1 <= at["had"]
    trace = job("sleep 1; send 1 1 8 6", "iprobe 0 1 flag=0; # mark looked; iprobe 0 1 flag=1; # mark had; recv 0 1 8 6")
    at = {m["label"]: m["time_s"] for m in completed(trace, "wmpi", "shared").marks}
    assert at["looked"] < 0.5 < 1 <= at["had"]


def test_without_a_recorded_outcome_whatever_is_complete_counts() -> None:
    for call in ("waitany 2 reqs=1,2", "waitsome 2 reqs=1,2"):
        trace = job("send 1 1 8 6; sleep 1; send 1 2 8 6", f"irecv 0 2 8 6 req=1; irecv 0 1 8 6 req=2; {call}; # mark one; waitall")
        assert completed(trace, "wmpi", "shared").marks[0]["time_s"] < 0.5, call


@for_each(
    "receive",
    [
        "recv -555 -444 10 6 {0}; recv -555 -444 10 6 {1}",
        "irecv -555 -444 10 6 req=1; wait req=1 {0}; irecv -555 -444 10 6 req=1; waitall 1 reqs=1 {2}",
        "probe -555 -444 {0}; recv 2 9 10 6; recv 1 9 10 6",
        "sendRecv 0 -666 10 -555 6 6 rtag=-444 {0}; recv 1 9 10 6",
        "recvInit -555 -444 10 6 req=1; start req=1 {0}; wait req=1; start req=1 {1}; wait req=1; requestFree req=1",
    ],
)
def test_a_wildcard_matches_what_it_matched(receive: str) -> None:
    """Rank 2 sends a second after rank 1; the trace says that its message was taken first."""
    text = receive.format("from=2 mtag=9", "from=1 mtag=9", "from=1:1 mtag=1:9")
    lines = text.split("; ")
    first = next(i for i, line in enumerate(lines) if line.split()[0] in ("recv", "wait", "probe", "sendRecv"))
    lines.insert(first + 1, "# mark first")
    trace = job("; ".join(lines), "send 0 9 10 6", "sleep 1; send 0 9 10 6")
    assert completed(trace, "wmpi", "shared").marks[0]["time_s"] >= 1
    if "probe" not in receive:
        free = run(trace, "wmpi", "shared", wildcards="free")
        assert free.marks[0]["time_s"] < 0.5


def test_the_choice_of_wildcards_is_checked() -> None:
    with refused(UsageError, "unknown-name | 'fre'"):
        run(job("barrier"), "wmpi", "shared", wildcards="fre")


@everywhere
def test_persistent_requests_by_identity(model: str, mode: str) -> None:
    free = "requestFree req=1; requestFree req=2"
    first = f"sendInit 1 3 100 6 req=1; ssendInit 1 4 100 6 req=2; startall 2 reqs=1,2; waitall 2 reqs=1,2; start req=2; wait req=2; {free}"
    second = "recvInit 0 3 100 6 req=1; recvInit 0 4 100 6 req=2; startall 2 reqs=1,2; waitsome 2 reqs=1,2 done=2; wait req=1; "
    second += f"start req=2; wait req=2; {free}"
    assert completed(job(first, second), model, mode).messages == 3


@everywhere
def test_a_request_that_is_given_up_completes_by_itself(model: str, mode: str) -> None:
    """The send is freed before the receiver, which waits for a later message first, takes it."""
    n = 300_000
    completed(job(f"isend 1 1 {n} 6 req=1; requestFree req=1; send 1 2 8 6", f"recv 0 2 8 6; recv 0 1 {n} 6"), model, mode)


@everywhere
def test_tags_of_a_sendrecv(model: str, mode: str) -> None:
    second = "isend 0 5 9 6; sendRecv 20 0 10 0 6 6 stag=4 rtag=3; waitall"
    completed(job("sendRecv 10 1 20 1 6 6 stag=3 rtag=4; recv 1 5 9 6", second), model, mode)


def test_a_deadlock_of_a_non_blocking_collective_names_who_is_missing() -> None:
    result = run(job("ibarrier req=1; wait req=1", "ibarrier req=1; wait req=1", "recv 0 1 8 6"), "wmpi", "shared")
    assert result.outcome == "deadlock"
    on = {w["rank"]: w["on"] for w in result.waits}
    assert on[2].startswith("a message from rank 0, tag 1")
    assert "rank 2" in on[0] + on[1]


def test_an_identity_that_is_not_in_use_is_refused_by_line() -> None:
    with refused(InputError, "bad-trace | rank-0.txt:3"):
        run(job("isend 1 1 8 6 req=1; wait req=2", "recv 0 1 8 6"), "wmpi", "shared")


@pytest.mark.parametrize(("platform", "mode"), [("cray-j90", "shared"), ("cray-t3e", "distributed")])
def test_a_broadcast_by_puts_has_a_tree_of_messages_as_its_non_blocking_form(platform: str, mode: str) -> None:
    """Puts and shared buffers wait in the middle of a step; what an allreduce is made of follows its form."""
    lines = "ibcast 5000 0 6 req=1; iallreduce 5000 0 6 req=2; bcast 300 0 6; waitall 2 reqs=2,1"
    result = run(job(*[lines] * 5), "craympt:shmem", mode, platform=platform)
    assert result.outcome == "completed"
    assert result.messages == result.delivered


@for_each("again", ("wait req=1", "waitall reqs=1", "test req=1 flag=1", "waitany reqs=1 done=1", "wait 1 0 5", "waitall"))
def test_a_number_is_free_once_a_test_by_key_has_completed_its_request(again: str) -> None:
    sends = "send 0 4 8 6; compute 1e8; send 0 5 8 6"
    texts = [f"irecv 1 4 8 6 req=1; {done} flag=1; irecv 1 5 8 6 req=1; {again}; compute 1e7" for done in ("test 1 0 4", "test req=1")]
    by_key, by_number = (completed(job(text, sends), "hpvm", "shared") for text in texts)
    assert by_key.time_ps == by_number.time_ps
