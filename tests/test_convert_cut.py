"""Pieces of traces: cut at lines, marks and turns of a loop, and by ranks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from cases import for_each
from conftest import Outcome
from engine_runs import job
from hypothesis import given, settings
from hypothesis import strategies as st
from random_jobs import jobs
from refusals import refused

from retrompi import traces
from retrompi.sim import simulate
from retrompi.spec.question import Question, Replay
from retrompi.traces import Trace, TraceError
from retrompi.traces.cut import Piece, cut
from retrompi.traces.lines import rank_lines, split
from retrompi.traces.loops import find_loop
from retrompi.traces.matching import MatchedJob
from retrompi.traces.subset import keep_ranks

DATA = Path(__file__).parent / "data" / "traces"
CG = DATA / "npb3.3.1-cg-A-4.tar.zst"
Run = Callable[..., Outcome]


def lines(trace: Trace, rank: int = 0) -> list[str]:
    return [line if line.startswith("#") else line.split(" ", 1)[1] for line in trace.to_ti(rank).splitlines()]


def matched(trace: Trace) -> MatchedJob:
    """The job of a trace; every send has its receive and every request is waited for."""
    found = MatchedJob([rank_lines(trace, r)[0] for r in range(trace.ranks)])
    assert found.lonely == []
    assert [t.open for t in found.trackers] == [[]] * trace.ranks
    return found


def sound(piece: Piece) -> None:
    assert piece.trace.unsupported() == []
    found = matched(piece.trace)
    assert len(found.messages) == piece.messages


def completes(trace: Trace) -> None:
    result = simulate.run(Question("mpibip", "myrinet-piii", Replay(trace), "distributed"))
    assert result.outcome == "completed", result.waits
    assert result.messages == result.delivered


PINGPONG = ("# mark begin; " + "send 1 0 8 6; recv 1 1 8 6; " * 3 + "# mark end; " + "send 1 0 99 6; recv 1 1 99 6; " * 3,
            "recv 0 0 8 6; send 0 1 8 6; " * 3 + "recv 0 0 99 6; send 0 1 99 6; " * 3)


def test_between_marks_the_other_rank_follows_the_messages() -> None:
    piece = cut(job(*PINGPONG), "begin", "end")
    assert lines(piece.trace, 0) == ["init", "# mark begin", *["send 1 0 8 6", "recv 1 1 8 6"] * 3, "# mark end", "finalize"]
    assert lines(piece.trace, 1) == ["init", *["recv 0 0 8 6", "send 0 1 8 6"] * 3, "finalize"]
    assert (piece.messages, piece.crossing) == (6, 0)
    rest = cut(job(*PINGPONG), "end")
    assert lines(rest.trace, 1) == ["init", *["recv 0 0 99 6", "send 0 1 99 6"] * 3, "finalize"]


def test_by_lines_of_rank_0_with_collectives_as_anchors() -> None:
    trace = job(*["compute 1; barrier; compute 2; allreduce 8 0 6; compute 3; barrier; compute 4"] * 3)
    piece = cut(trace, "4", "6")
    # What rank 0 computes before line 4 is not in it; the other ranks begin at the collective before.
    assert lines(piece.trace, 0) == ["init", "compute 2", "allreduce 8 0 6", "compute 3", "finalize"]
    assert lines(piece.trace, 2) == ["init", "compute 2", "allreduce 8 0 6", "finalize"]
    assert piece.ranges[0] == (4, 6)


def test_a_message_under_way_is_left_out_at_both_ends_or_refused() -> None:
    # The barriers hold the cut between them: what crosses it cannot be avoided.
    trace = job("isend 1 5 100 6; barrier; compute 1; barrier; wait 0 1 5; send 1 6 7 6", "barrier; barrier; recv 0 5 100 6; recv 0 6 7 6")
    piece = cut(trace, "4")
    assert lines(piece.trace, 0) == ["init", "compute 1", "barrier", "send 1 6 7 6", "finalize"]
    assert lines(piece.trace, 1) == ["init", "barrier", "recv 0 6 7 6", "finalize"]
    assert (piece.messages, piece.crossing, piece.crossing_bytes) == (1, 1, 100)
    assert piece.places == ["rank-0.txt:2 -> rank-1.txt:4"]
    with refused(TraceError, "cut-crosses | rank-0.txt:2 | rank-1.txt:4"):
        cut(trace, "4", refuse_crossing=True)


def test_a_probe_without_the_receive_that_takes_its_message_is_left_out() -> None:
    """It would wait for ever."""
    trace = job("probe 1 37; recv 1 37 8 6", "send 0 37 8 6")
    before = cut(trace, "1", "2")  # init, probe
    assert [lines(before.trace, r) for r in (0, 1)] == [["init", "finalize"]] * 2
    whole = cut(trace, "2", "3")
    assert lines(whole.trace, 0) == ["init", "probe 1 37", "recv 1 37 8 6", "finalize"]
    assert (whole.messages, whole.crossing) == (1, 0)
    completes(whole.trace)


def test_a_probe_of_nobody_returns_at_once() -> None:
    """What the receives of any source take is found by going through the program, which a probe of MPI_PROC_NULL does not stop."""
    trace = job("barrier; recv -555 -444 8 6; isend 0 5 8 6; irecv 0 5 8 6; waitall 2", "probe -666 3; barrier; send 0 9 8 6")
    assert len(matched(trace).messages) == 2


def test_without_a_collective_between_the_other_rank_takes_the_message_with_it() -> None:
    trace = job("isend 1 5 100 6; barrier; wait 0 1 5; send 1 6 7 6; barrier", "barrier; recv 0 5 100 6; recv 0 6 7 6; barrier")
    piece = cut(trace, "4")
    assert (piece.messages, piece.crossing) == (1, 0)
    assert lines(piece.trace, 1) == ["init", "recv 0 6 7 6", "barrier", "finalize"]


def test_receives_posted_ahead_move_to_the_start_and_open_ones_are_waited_for_at_the_end() -> None:
    trace = job(
        "irecv 1 1 8 6 req=1; irecv 1 2 8 6 req=2; barrier; wait 1 0 1 req=1; send 1 3 5 6; barrier; wait 1 0 2 req=2",
        "barrier; send 0 1 8 6; send 0 2 8 6; recv 0 3 5 6; barrier",
    )
    piece = cut(trace, "5", "6")
    assert lines(piece.trace, 0) == [
        "init", "irecv 1 1 8 6 req=1", "irecv 1 2 8 6 req=2", "wait 1 0 1 req=1", "send 1 3 5 6", "waitall 1 reqs=2", "finalize",
    ]
    assert (piece.messages, piece.crossing, piece.moved, piece.waited) == (3, 0, 2, 1)


def test_half_an_exchange_becomes_a_send_or_a_receive() -> None:
    trace = job(
        "isend 1 4 8 6; barrier; compute 1; barrier; recv 1 3 10 6; wait 0 1 4", "barrier; barrier; sendRecv 10 0 8 0 6 6 stag=3 rtag=4"
    )
    piece = cut(trace, "4")
    assert piece.crossing == 1
    assert lines(piece.trace, 1) == ["init", "barrier", "send 0 3 10 6", "finalize"]
    sound(piece)


def test_communicators_windows_and_persistent_requests_are_made_again() -> None:
    one = ("comm_split 1 0,1; comm_split 2 0,1 comm=1; comm_free comm=1; comm_dup 3 0,1; comm_free comm=3; win_create 1 64; "
           "{init}; barrier; {start}; barrier comm=2; Win_fence win=1; comm_free comm=2; win_free 1; requestFree {key} req=9")
    trace = job(one.format(init="sendInit 1 7 8 6 req=9", start="start 0 1 7 req=9; wait 0 1 7 req=9", key="0 1 7"),
                one.format(init="recvInit 0 7 8 6 req=9", start="start 0 1 7 req=9; wait 0 1 7 req=9", key="0 1 7"))
    piece = cut(trace, "10")
    assert lines(piece.trace, 0) == [
        "init", "comm_split 1 0,1", "comm_split 2 0,1 comm=1", "win_create 1 64", "sendInit 1 7 8 6 req=9",
        "start 0 1 7 req=9", "wait 0 1 7 req=9",
        "barrier comm=2", "Win_fence win=1", "comm_free comm=2", "win_free 1", "requestFree 0 1 7 req=9", "finalize",
    ]
    assert (piece.messages, piece.crossing) == (1, 0)


def test_lists_of_requests_lose_those_outside() -> None:
    trace = job("isend 1 1 8 6 req=1; barrier; isend 1 2 8 6 req=2; barrier; waitall 2 reqs=1,2; isend 1 3 8 6 req=1; "
                "waitAny 1 reqs=1 done=1",
                "barrier; barrier; recv 0 1 8 6; recv 0 2 8 6; recv 0 3 8 6")
    piece = cut(trace, "4")
    assert lines(piece.trace, 0)[1:4] == ["isend 1 2 8 6 req=2", "barrier", "waitall 1 reqs=2"]
    assert piece.crossing == 1
    sound(piece)


@for_each(
    "programs, first, last, why",
    [
        (("send 1 0 1 6", "recv 0 0 1 6"), "nothing", None, "unknown-name | 'nothing'"),
        (PINGPONG, "end", "begin", "unknown-name | 'begin'"),
        (PINGPONG, "begun", None, "unknown-name | 'begun' | 'begin'"),
        (PINGPONG, "99", None, "no-section | 99"),
        (PINGPONG, "9", "3", "no-section"),
        (
            ("win_create 1 8; Win_lock 1 0 win=1; Put 1 0 8 6 win=1; Win_unlock 1 win=1", "win_create 1 8"),
            "4",
            None,
            "bad-trace | rank-0.txt:3 | one-sided",
        ),
    ],
)
def test_errors(programs: tuple[str, ...], first: str, last: str | None, why: str) -> None:
    with refused(TraceError, why):
        cut(job(*programs), first, last)


def test_a_loop_that_a_sum_interrupts_is_found() -> None:
    """Half and middle of such a program repeat nothing three times: every 25th of its turns ends with a sum."""
    turn = ["0 irecv 1 0 8 6 req={}", "0 isend 1 0 8 6 req={}", "0 waitall 2 reqs={},{}"]
    lines = ["0 init"]
    for i in range(100):
        lines += [turn[0].format(2 * i + 1), turn[1].format(2 * i + 2), turn[2].format(2 * i + 1, 2 * i + 2), "0 compute 5"]
        lines += ["0 allreduce 1 0 0"] * (i % 25 == 24)
    loop = find_loop([*lines, "0 finalize"])
    assert loop is not None
    assert loop.turns == 25
    assert lines[loop.starts[0]].startswith("0 irecv")


def test_turns_of_the_loop() -> None:
    trace = traces.read(CG)
    loop = find_loop(rank_lines(trace, 0)[0])
    assert loop is not None
    assert loop.turns == 15  # the benchmark's iterations
    whole = matched(trace)
    counts = []
    for first, last in ((1, 1), (2, 2), (2, 4), (1, 15)):
        piece = cut(trace, turns=(first, last))
        assert piece.crossing == 0
        sound(piece)
        counts.append(piece.messages)
    assert counts[1] * 3 == counts[2]
    assert counts[3] <= len(whole.messages)
    with refused(TraceError, "no-section | 15 | 16"):
        cut(trace, turns=(3, 16))
    with refused(TraceError, "no-section"):
        cut(job("send 1 0 1 6; send 1 0 2 6", "recv 0 0 1 6; recv 0 0 2 6"), turns=(1, 1))


def test_loops_do_not_mind_computation_and_identities() -> None:
    found = find_loop(["0 init", *[f"0 compute {i}\n0 isend 1 0 8 6 req={1 + i % 2}\n0 wait 0 1 0" for i in range(6)], "0 finalize"][0:1])
    assert found is None
    text = ["0 init", "0 barrier"]
    for i in range(5):
        text += [f"0 compute {i}", f"0 isend 1 0 8 6 req={1 + i % 2}", f"0 wait 0 1 0 req={1 + i % 2}", "0 allreduce 8 0 6"]
    found = find_loop([*text, "0 finalize"])
    assert found is not None
    assert found.turns == 5
    assert [split(text[s])[0] for s in found.starts] == ["isend"] * 5


def test_lines_that_no_action_holds_are_not_lost_in_silence(tmp_path: Path, retrompi: Run) -> None:
    (tmp_path / "io.ti").write_text("0 init\n0 IO - read 8\n0 barrier\n0 IO - write 8\n0 finalize\n")
    trace, out = str(tmp_path / "io.ti"), str(tmp_path / "out")
    for arguments in (("cut", trace, out, "--begin", "1"), ("cut", trace, out, "--ranks", "0"), ("merge", trace, trace, out)):
        told = retrompi("trace", *arguments)
        assert told.code == 2
        assert told.err.startswith(f"error: {tmp_path / 'io.ti'}:2: IO would be lost: ")
        assert told.err.endswith("(2 such lines)\n")
    told = retrompi("trace", "convert", str(tmp_path / "io.ti"), str(tmp_path / "out"), "--strict", "--json")
    assert told.code == 1
    assert [(x["call"], x["count"]) for x in json.loads(told.out)["losses"]] == [("IO", 2)]


# -- ranks


def test_ranks_that_keep_to_themselves() -> None:
    trace = job("send 2 0 8 6", "comm_create_group 1 1,3; bcast 8 1 6 comm=1; recv -555 4 8 6 from=3", "recv 0 0 8 6",
                "comm_create_group 1 1,3; bcast 8 1 6 comm=1; send 1 4 8 6")
    kept = keep_ranks(trace, [1, 3])
    assert lines(kept, 0) == ["init", "comm_create_group 1 0,1", "bcast 8 1 6 comm=1", "recv -555 4 8 6 from=1 mtag=4", "finalize"]
    assert lines(kept, 1) == ["init", "comm_create_group 1 0,1", "bcast 8 1 6 comm=1", "send 0 4 8 6", "finalize"]
    with refused(TraceError, "cut-crosses | rank-0.txt:2 | rank-2.txt:2"):
        keep_ranks(trace, [0, 1, 3])
    with refused(TraceError, "cut-crosses | rank-0.txt:2 | rank-1.txt:2"):
        keep_ranks(job("barrier", "barrier"), [0])
    with refused(TraceError, "unknown-rank"):
        keep_ranks(trace, [7])


# -- any job


@settings(max_examples=120, deadline=None)
@given(trace=jobs(), data=st.data())
def test_every_piece_is_a_trace(trace: Trace, data: st.DataObject) -> None:
    total = matched(trace)
    last_line = rank_lines(trace, 0)[1][-1]
    first = data.draw(st.integers(1, last_line))
    last = data.draw(st.integers(first, last_line))
    try:
        piece = cut(trace, str(first), str(last))
    except TraceError as e:
        told = str(e)
        assert re.search("collective crosses|nothing lies", told)
        return
    sound(piece)
    sent = sum(m.send.bytes for m in matched(piece.trace).messages)
    assert piece.messages <= len(total.messages)
    assert sent + piece.crossing_bytes <= sum(m.send.bytes for m in total.messages)


@settings(max_examples=25, deadline=None)
@given(trace=jobs(max_steps=15), data=st.data())
def test_every_piece_runs(trace: Trace, data: st.DataObject) -> None:
    completes(trace)
    first = data.draw(st.integers(1, rank_lines(trace, 0)[1][-1]))
    try:
        piece = cut(trace, str(first), None)
    except TraceError:
        return
    completes(piece.trace)


@settings(max_examples=60, deadline=None)
@given(trace=jobs())
def test_the_whole_is_a_piece(trace: Trace) -> None:
    piece = cut(trace, "1", None)
    assert (piece.trace == trace, piece.crossing, piece.moved, piece.waited) == (True, 0, 0, 0)


# -- the command


def test_the_command(tmp_path: Path, retrompi: Run) -> None:
    told = retrompi("trace", "cut", str(CG), str(tmp_path / "a"), "--begin", "1000", "--end", "2000", "--json")
    assert (told.code, told.err) == (0, "")
    (row,) = json.loads(told.out)
    assert (row["ranks"], row["crossing"], row["lines"]) == (4, 0, "1000-2000")
    assert traces.read(tmp_path / "a").info()["sends"] == row["messages"]
    assert retrompi("trace", "cut", str(CG), str(tmp_path / "b.zst"), "--iterations", "2-3").code == 0
    assert traces.read(tmp_path / "b.zst").ranks == 4
    for arguments, why in (
        ((), "give --begin, --end, --iterations or --ranks"),
        (("--iterations", "x"), "--iterations x: expected FIRST-LAST, as in 10-20"),
        (("--iterations", "1", "--begin", "3"), "--iterations and --begin/--end"),
        (("--ranks", "0-a"), "--ranks 0-a: expected ranks as in 0-3,8"),
        (("--begin", "nowhere"), "rank 0 has no mark 'nowhere'"),
    ):
        told = retrompi("trace", "cut", str(CG), str(tmp_path / "c"), *arguments)
        assert told.code == 2
        assert why in told.err
        assert told.err.count("\n") == 1
