"""MPI's rules for messages between two ranks, on every runtime, on one machine and between two."""

from __future__ import annotations

from typing import Any

import pytest
from cases import for_each
from engine_runs import ANY_SOURCE, ANY_TAG, PATHS, PROC_NULL, completed, job, run

from retrompi.sim.result import Result
from retrompi.spec import registry

KIB = 1024
# Below a packet, above a packet, and long enough for a rendezvous where a runtime has one.
SIZES = (0, 1, 3000, 60 * KIB, 400 * KIB)
everywhere = for_each("model, mode", PATHS)


def go(model: str, mode: str, *ranks: str, **options: Any) -> Result:
    return completed(job(*ranks), model, mode, **options)


@everywhere
@pytest.mark.parametrize("send", ["send", "Ssend", "bsend", "rsend"])
def test_every_blocking_send_meets_its_receive(model: str, mode: str, send: str) -> None:
    result = go(model, mode, "; ".join(f"{send} 1 7 {n} 6" for n in SIZES), "; ".join(f"recv 0 7 {n} 6" for n in SIZES))
    assert (result.messages, result.bytes) == (len(SIZES), sum(SIZES))


@everywhere
@pytest.mark.parametrize("send", ["isend", "ISsend", "ibsend", "irsend"])
def test_every_nonblocking_send_meets_its_receive(model: str, mode: str, send: str) -> None:
    tags = range(len(SIZES))
    # Received in another order than sent: tags, not luck, decide which is which.
    order = tags if send == "irsend" else reversed(tags)
    receives = "; ".join(f"recv 0 {t} {SIZES[t]} 6" for t in order)
    go(model, mode, "; ".join(f"{send} 1 {t} {SIZES[t]} 6" for t in tags) + "; waitall 5", receives)


@everywhere
def test_messages_of_a_pair_and_tag_do_not_overtake(model: str, mode: str) -> None:
    """Sizes fall, receive buffers fit exactly: a message that overtakes is too long for the buffer it meets."""
    sizes = (1, 200, 3000, 70 * KIB, 300 * KIB)
    sends = "; ".join(f"isend 1 0 {n} 6" for n in sizes) + "; waitall 5"
    go(model, mode, sends, "sleep 0.05; " + "; ".join(f"recv 0 0 {n} 6" for n in sizes))
    go(model, mode, sends, "; ".join(f"irecv 0 0 {n} 6" for n in sizes) + "; waitall 5")
    # Through wildcards too.
    any_message = "; ".join(f"recv {ANY_SOURCE} {ANY_TAG} {n} 6" for n in sizes)
    go(model, mode, "; ".join(f"send 1 {t} {n} 6" for t, n in enumerate(sizes)), any_message)


@everywhere
def test_posted_receives_match_in_the_order_of_posting(model: str, mode: str) -> None:
    """The wildcard is posted first and must take the first message; the named receive has room only for the second."""
    go(model, mode, "send 1 3 5000 6; send 1 3 10 6", f"irecv {ANY_SOURCE} {ANY_TAG} 5000 6; irecv 0 3 10 6; waitall 2")


@everywhere
def test_tags_select_among_unexpected_messages(model: str, mode: str) -> None:
    go(model, mode, "send 1 1 100 6; send 1 2 2000 6; send 1 3 30000 6", "sleep 0.2; recv 0 3 30000 6; recv 0 1 100 6; recv 0 2 2000 6")


@everywhere
def test_either_side_may_come_first(model: str, mode: str) -> None:
    sends = "isend 1 0 20000 6; isend 1 0 20000 6; waitall 2"
    late = completed(job(sends, "sleep 1; recv 0 0 20000 6; recv 0 0 20000 6"), model, mode)
    early = completed(job(f"sleep 1; {sends}", "irecv 0 0 20000 6; irecv 0 0 20000 6; waitall 2"), model, mode)
    assert late.per_rank[1]["time_s"] >= 1.0
    assert early.per_rank[1]["time_s"] >= 1.0


@everywhere
@for_each("size", SIZES)
def test_sendrecv_head_to_head(model: str, mode: str, size: int) -> None:
    """Both send before either receives: no order of the two may hang."""
    go(model, mode, *(f"sendRecv {size} {1 - me} {size} {1 - me} 6 6; " * 3 for me in (0, 1)))


@everywhere
def test_a_synchronous_send_ends_only_after_its_receive_began(model: str, mode: str) -> None:
    result = completed(job("Ssend 1 0 8 6", "sleep 0.8; recv 0 0 8 6"), model, mode)
    assert result.per_rank[0]["time_s"] >= 0.8
    result = completed(job("ISsend 1 0 8 6; wait 0 1 0", "sleep 0.8; recv 0 0 8 6"), model, mode)
    assert result.per_rank[0]["time_s"] >= 0.8


@everywhere
def test_a_buffered_send_ends_before_its_receive(model: str, mode: str) -> None:
    marks = completed(job("bsend 1 0 8 6; # mark sent; recv 1 0 0 6", "sleep 5; recv 0 0 8 6; send 0 0 0 6"), model, mode).marks
    assert marks[0]["time_s"] < 5


@everywhere
def test_wait_and_its_family(model: str, mode: str) -> None:
    three = "isend 1 0 10 6; isend 1 1 9000 6; isend 1 2 100000 6"
    posted = "irecv 0 0 10 6; irecv 0 1 9000 6; irecv 0 2 100000 6"
    go(model, mode, f"{three}; wait 0 1 0; wait 0 1 1; wait 0 1 2", f"{posted}; wait 0 1 2; wait 0 1 1; wait 0 1 0")
    go(model, mode, f"{three}; waitall 3", f"{posted}; waitAny 3; waitAny 2; waitAny 1")
    go(model, mode, f"{three}; waitall 3", f"{posted}; waitsome 3; waitall 3")
    go(model, mode, "waitall 0; waitAny 0; waitsome 0", "testall 0; testany 0; testsome 0")  # nothing outstanding: they return at once


@everywhere
def test_waitany_returns_with_the_first_of_two(model: str, mode: str) -> None:
    trace = job("send 1 1 4 6; sleep 2; send 1 0 4 6", "irecv 0 0 4 6; irecv 0 1 4 6; waitAny 2; send 1 9 0 6; recv 1 9 0 6; waitAny 1")
    result = completed(trace, model, mode)
    assert result.per_rank[1]["time_s"] >= 2


@everywhere
def test_tests_never_wait(model: str, mode: str) -> None:
    for test in ("test 0 1 0", "testall 1", "testany 1", "testsome 1"):
        trace = job("sleep 3; send 1 0 4 6", f"irecv 0 0 4 6; {test}; {test}; send 1 5 0 6; recv 1 5 0 6; wait 0 1 0")
        result = completed(trace, model, mode)
        assert result.time_s >= 3
    # A test that found the message done: the wait for the same key is over at once.
    completed(job("send 1 0 4 6; sleep 4", "irecv 0 0 4 6; sleep 2; test 0 1 0; wait 0 1 0"), model, mode)


@everywhere
def test_probe_waits_for_the_message_and_leaves_it(model: str, mode: str) -> None:
    result = completed(job("sleep 0.5; send 1 4 5000 6", f"probe {ANY_SOURCE} {ANY_TAG}; probe 0 4; recv 0 4 5000 6"), model, mode)
    assert result.per_rank[1]["time_s"] >= 0.5
    completed(job("sleep 0.5; send 1 4 5000 6", "iprobe 0 4; recv 0 4 5000 6; iprobe 0 4"), model, mode)


@everywhere
@pytest.mark.parametrize("kind", ["sendInit", "ssendInit", "bsendInit", "rsendInit"])
def test_persistent_requests(model: str, mode: str, kind: str) -> None:
    rounds = 3
    sender = f"{kind} 1 0 5000 6; " + "start 0 1 0; wait 0 1 0; " * rounds + "requestFree 0 1 0"
    receiver = "recvInit 0 0 5000 6; " + "start 0 1 0; wait 0 1 0; " * rounds + "requestFree 0 1 0"
    assert go(model, mode, sender, receiver).messages == rounds
    assert go(model, mode, f"{kind} 1 0 5000 6; {kind} 1 1 50 6; startall 2; waitall 2; startall 2; waitall 2",
              "recvInit 0 0 5000 6; recvInit 0 1 50 6; startall 2; waitall 2; startall 2; waitall 2").messages == 4
    # Of several with one key, each start takes one that is inactive.
    assert go(model, mode, f"{kind} 1 0 5000 6; {kind} 1 0 50 6; start 0 1 0; start 0 1 0; waitall",
              "recvInit 0 0 5000 6; recvInit 0 0 5000 6; start 0 1 0; start 0 1 0; waitall").messages == 2


@everywhere
def test_proc_null_takes_and_gives_nothing(model: str, mode: str) -> None:
    nobody = (
        f"send {PROC_NULL} 0 100 6; recv {PROC_NULL} 0 100 6; isend {PROC_NULL} 0 9 6; irecv {PROC_NULL} 1 9 6; waitall 2; "
        f"sendRecv 8 {PROC_NULL} 8 {PROC_NULL} 6 6"
    )
    assert go(model, mode, nobody, nobody).messages == 0


@everywhere
def test_messages_to_oneself(model: str, mode: str) -> None:
    lines = "isend {me} 0 5000 6; recv {me} 0 5000 6; irecv {me} 1 7 6; send {me} 1 7 6; waitall 2; sendRecv 3 {me} 3 {me} 6 6"
    assert go(model, mode, lines.format(me=0), lines.format(me=1)).messages == 6


@everywhere
@for_each("size", [100, 9000, 400 * KIB])
@for_each("late", [False, True])
def test_a_message_longer_than_its_buffer_ends_the_run(model: str, mode: str, size: int, late: bool) -> None:
    sender, receiver = f"send 1 2 {size} 6", f"recv 0 2 {size - 1} 6"
    trace = job(sender, "sleep 3; " + receiver) if late else job("sleep 1; " + sender, receiver)
    result = run(trace, model, mode)
    assert result.outcome == "aborted"
    assert f"{size} B from rank 0 to rank 1 (tag 2)" in result.detail
    assert f"{size - 1} B" in result.detail


@everywhere
def test_a_shorter_message_fits(model: str, mode: str) -> None:
    assert go(model, mode, "send 1 0 10 6; send 1 0 0 6", "recv 0 0 5000 6; recv 0 0 1 6").bytes == 10


@everywhere
def test_any_source_serves_all_senders(model: str, mode: str) -> None:
    sizes = (100, 5000, 70000)
    collector = f"recv {ANY_SOURCE} {ANY_TAG} 70000 6; " * (2 * len(sizes))
    senders = ["; ".join(f"send 0 {tag} {n} 6" for n in sizes) for tag in (1, 2)]
    completed(job(collector, *senders), model, mode)


@everywhere
def test_computation_takes_the_hosts_time(model: str, mode: str) -> None:
    flops = registry.platform("nt-pair").hosts[0].flops
    result = completed(job(f"compute {flops}", f"compute {flops}"), model, mode)
    assert result.per_rank[0]["compute_s"] >= 0.99
    # Two on one processor share it, two machines do not.
    assert result.time_s >= 1.9
