"""What a tool that rewrites a trace must not change: each case was once another program, a hanging one, or an internal error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Outcome
from engine_runs import job
from refusals import refused

from retrompi import convert, traces
from retrompi.sim import simulate
from retrompi.spec.question import Question, Replay
from retrompi.traces import Trace, TraceError
from retrompi.traces.cut import cut
from retrompi.traces.lines import parse_group, rank_lines
from retrompi.traces.matching import MatchedJob
from retrompi.traces.merge import side_by_side, then
from retrompi.traces.subset import keep_ranks

Run = Callable[..., Outcome]


def outcome(trace: Trace) -> str:
    return simulate.run(Question("nemesis", "abe", Replay(trace), "distributed")).outcome


def schedule(trace: Trace, folder: Path) -> list[str]:
    """The schedule of a trace, without its dependencies."""
    convert.save(convert.Converted(trace, "ti"), folder / "x.goal", "goal")
    assert outcome(convert.load(folder / "x.goal").trace) == "completed"
    return [line.split(": ", 1)[1] for line in (folder / "x.goal").read_text().splitlines() if ": " in line]


# -- GOAL


@pytest.mark.parametrize("on", ["", " comm=1"])
def test_any_tag_does_not_take_the_messages_of_a_barrier(tmp_path: Path, on: str) -> None:
    """As many wildcards as messages of one tag: the tag is written."""
    make = "comm_dup 1 0-2; " if on else ""
    trace = job(f"{make}send 1 1 8 6{on}; barrier", f"{make}recv -555 -444 8 6{on}; recv -555 -444 8 6{on}; barrier",
                f"{make}compute 1e8; send 1 1 8 6{on}; barrier")
    tag = 0 if on else 1  # of the schedule: a communicator's tags are others
    assert schedule(trace, tmp_path).count(f"recv 8b from -1 tag {tag}") == 2


def test_any_tag_of_one_sender_is_what_comes_next(tmp_path: Path) -> None:
    trace = job("send 1 5 8 6; send 1 7 16 6; barrier", "recv 0 -444 8 6; recv 0 -444 16 6; barrier")
    assert [x for x in schedule(trace, tmp_path) if "from 0 tag" in x][:2] == ["recv 8b from 0 tag 5", "recv 16b from 0 tag 7"]


def test_a_wildcard_that_another_message_could_match_is_refused(tmp_path: Path) -> None:
    beside = job("send 1 1 8 6; barrier", "recv -555 -444 8 6; recv -555 -444 8 6; barrier", "send 1 2 8 6; barrier")
    with refused(TraceError, "lossy-conversion | rank-1.txt:2 | any tag | barrier | tags 1, 2 | from= | mtag="):
        schedule(beside, tmp_path)
    of_another = job("comm_dup 1 0-2; send 1 1 8 6; send 1 1 8 6 comm=1",
                     "comm_dup 1 0-2; recv -555 -444 8 6; recv -555 -444 8 6; recv 0 1 8 6 comm=1",
                     "comm_dup 1 0-2; send 1 2 8 6")
    with refused(TraceError, "lossy-conversion | rank-1.txt:3 | communicator 1"):
        schedule(of_another, tmp_path)
    recorded = job("send 1 1 8 6; barrier", "recv -555 -444 8 6 from=2 mtag=2; recv -555 -444 8 6 from=0 mtag=1; barrier",
                   "send 1 2 8 6; barrier")
    assert [x for x in schedule(recorded, tmp_path) if x.startswith("recv 8b")] == ["recv 8b from 2 tag 2", "recv 8b from 0 tag 1"]


def test_a_lost_call_that_orders_what_a_wildcard_takes_is_refused(tmp_path: Path) -> None:
    """The Ssend ends when rank 1 has received it, and only then does rank 2 send."""
    trace = job("Ssend 1 1 8 6; send 2 1 8 6", "recv -555 1 8 6; recv 2 1 9 6", "recv 0 1 8 6; send 1 1 9 6")
    for target in ("goal", "smpi"):
        with refused(TraceError, "lossy-conversion | rank-1.txt:2 | Ssend | rank-0.txt:2"):
            convert.save(convert.Converted(trace, "ti"), tmp_path / f"y.{target}", target)


def test_the_buffer_of_a_wildcard_holds_every_message(tmp_path: Path) -> None:
    trace = job("send 1 1 8 6", "recv -555 1 100 6; recv -555 1 100 6", "send 1 1 100 6")
    assert schedule(trace, tmp_path).count("recv 100b from -1 tag 1") == 2


def test_a_collective_that_is_waited_for_later_does_not_block_before(tmp_path: Path) -> None:
    """Rank 1 enters the barrier behind a message that rank 0 sends when it is in it."""
    trace = job("ibarrier req=1; Ssend 1 3 8 6; wait req=1", "recv 0 3 8 6; ibarrier req=1; wait req=1")
    assert "send 8b to 1 tag 3" in schedule(trace, tmp_path)


def test_tags_up_to_the_last_leave_room_for_collectives(tmp_path: Path) -> None:
    last = (1 << 31) - 1
    trace = job(f"comm_dup 1 0,1; send 1 {last} 8 6; send 1 1073741824 8 6 comm=1; barrier; barrier comm=1",
                f"comm_dup 1 0,1; recv 0 {last} 8 6; recv 0 1073741824 8 6 comm=1; barrier; barrier comm=1")
    tags = [int(x.rsplit(" ", 1)[1]) for x in schedule(trace, tmp_path) if x.startswith("send")]
    assert len(set(tags)) == 4


# -- SMPI


def test_messages_of_two_communicators_that_smpi_confuses_are_refused(tmp_path: Path) -> None:
    make = "comm_dup 1 0,1; "
    swapped = job(make + "isend 1 5 8 6 comm=1 req=1; isend 1 5 16 6 req=2; waitall", make + "recv 0 5 16 6; recv 0 5 8 6 comm=1")
    with refused(TraceError, "lossy-conversion | rank-1.txt:3 | source and tag alone | rank-0.txt:3"):
        convert.save(convert.Converted(swapped, "ti"), tmp_path / "a", "smpi")
    in_order = job(make + "send 1 5 8 6 comm=1; send 1 5 16 6", make + "recv 0 5 8 6 comm=1; recv 0 5 16 6")
    convert.save(convert.Converted(in_order, "ti"), tmp_path / "b", "smpi")
    assert outcome(traces.read(tmp_path / "b")) == "completed"


def test_a_start_that_smpi_leaves_out_is_refused(tmp_path: Path) -> None:
    trace = job("sendInit 1 5 8 6; start 0 1 5; wait 0 1 5", "recv 0 5 8 6")
    with refused(TraceError, "lossy-conversion | rank-0.txt:3 | persistent | req="):
        convert.save(convert.Converted(trace, "ti"), tmp_path / "a", "smpi")


def test_a_request_that_nothing_completes_for_smpi_is_refused(tmp_path: Path) -> None:
    trace = job("irecv 1 5 8 6 req=1; waitany reqs=1", "send 0 5 8 6")
    with refused(TraceError, "lossy-conversion | rank-0.txt:2 | rank-0.txt:3 | done="):
        convert.save(convert.Converted(trace, "ti"), tmp_path / "a", "smpi")


def test_buffers_that_a_program_needs_are_not_lost_to_smpi(tmp_path: Path) -> None:
    with refused(TraceError, "lossy-conversion | rank-0.txt:2 | buffered"):
        exchange = job("bsend 1 0 4000000 6; recv 1 0 4000000 6", "bsend 0 0 4000000 6; recv 0 0 4000000 6")
        convert.save(convert.Converted(exchange, "ti"), tmp_path / "a", "smpi")
    one_way = job("bsend 1 0 4000000 6; recv 1 0 4000000 6", "recv 0 0 4000000 6; bsend 0 0 4000000 6")
    convert.save(convert.Converted(one_way, "ti"), tmp_path / "b", "smpi")
    assert outcome(traces.read(tmp_path / "b")) == "completed"


# -- merge and cut

SHORT = ("irecv 1 0 8 6 req=1; wait req=1; recvInit 1 0 8 6 req=2; start req=2; test -333 -333 0 req=2 flag=1; requestFree req=2; "
         "irecv 1 0 8; wait 1 0 0; waitall; comm_split 1 1-0; bcast 8 comm=1",
         "send 0 0 8; send 0 0 8; send 0 0 8; comm_split 1 1,0; bcast 8 comm=1")


def test_short_forms_go_through_merge_and_cut() -> None:
    trace = job(*SHORT)
    both = side_by_side([trace, trace])
    for made in (both, then([trace, trace]), keep_ranks(both, [2, 3]), cut(trace, "3", "8").trace):
        assert outcome(made) == "completed"


def test_merge_of_a_short_wait_is_written(tmp_path: Path, retrompi: Run) -> None:
    (tmp_path / "w.ti").write_text("0 init\n0 irecv 1 0 8 6 req=1\n0 wait req=1\n0 finalize\n1 init\n1 send 0 0 8 6\n1 finalize\n")
    w, out = str(tmp_path / "w.ti"), tmp_path / "o.ti"
    assert retrompi("trace", "merge", w, w, str(out)).code == 0
    assert "2 wait req=1" in out.read_text()


def test_a_group_may_go_down() -> None:
    assert parse_group("5-3,7,20-0:10") == [5, 4, 3, 7, 20, 10, 0]


def test_ranks_in_another_order_keep_the_roots_of_collectives() -> None:
    with refused(TraceError, "cut-crosses | rank-0.txt | rank-1.txt:2 | ascending order"):
        keep_ranks(job("bcast 8 1 6", "bcast 8 1 6"), [1, 0])


def test_a_probe_goes_with_its_message() -> None:
    trace = job("probe 1 37; recv 1 37 8 6", "send 0 37 8 6")
    piece = cut(trace, "1", "2").trace
    assert [line.split()[1] for line in piece.to_ti(0).splitlines()] == ["init", "finalize"]
    assert "probe" in cut(trace, "1", "3").trace.to_ti(0)


def test_what_a_wildcard_took_is_possible() -> None:
    """The second wildcard cannot take what is sent behind the barrier."""
    trace = job("recv -555 -444 -1 6; recv -555 -444 -1 6; barrier; recv 2 -444 8 6; recv 1 4 0 6",
                "send 0 4 8 6; send 0 1 8 6; barrier; send 0 4 0 6", "barrier; send 0 4 8 6")
    found = MatchedJob([rank_lines(trace, r)[0] for r in range(trace.ranks)])
    assert [(m.recv.post, m.send.rank) for m in found.messages if m.recv.rank == 0] == [(1, 1), (2, 1), (4, 2), (5, 1)]
    assert found.lonely == []
