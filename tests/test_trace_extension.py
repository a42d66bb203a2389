"""Communicators, requests, recorded matches and windows: what a line of the extension means, and what is wrong with one."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from engine_runs import job
from extended_traces import everything, random_trace
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from retrompi import traces
from retrompi.traces import TraceError

DATA = Path(__file__).parent / "data" / "traces"


def again(trace: traces.Trace) -> traces.Trace:
    return traces.parse([trace.to_ti(r) for r in range(trace.ranks)])


def extension(trace: traces.Trace, rank: int, action: str) -> list[dict[str, Any]]:
    return [row[8] for row in trace.rank_actions(rank, extension=True) if row[1] == action]


HARM = ["comm=1", "req=77", "0-99999999", "1,1", "-1", "from=1:2", "done=none", "0", "win=1"]


# --- round trips -----------------------------------------------------------------------------------------------------------


def same_in_every_form(trace: traces.Trace) -> None:
    other = again(trace)
    assert other == trace
    assert other.sha256 == trace.sha256
    assert [other.to_ti(r) for r in range(trace.ranks)] == [trace.to_ti(r) for r in range(trace.ranks)]
    shared = traces.parse("".join(trace.to_ti(r, shared=True) for r in reversed(range(trace.ranks))))  # definitions in another order
    assert shared == trace
    assert shared.sha256 == trace.sha256
    assert traces.Trace.load(trace.dump()) == trace
    assert pickle.loads(pickle.dumps(trace)) == trace


def test_everything_in_the_extension() -> None:
    trace = traces.parse(everything())
    assert (trace.unsupported(), trace.warnings) == ([], [])
    same_in_every_form(trace)
    assert traces.parse("".join(everything())) == trace


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 60))
def test_random_programs(seed: int) -> None:
    trace = traces.parse(random_trace(seed))
    assert trace.unsupported() == []
    same_in_every_form(trace)
    assert trace.actions == trace.scaled(1).actions
    assert again(trace.scaled(1)) == trace
    marked = trace.with_marks([(0, 2, "here")])
    assert again(marked) == marked
    # What SMPI's replay is given, it knows.
    plain = traces.parse([trace.to_smpi(r) for r in range(trace.ranks)])
    assert (plain.unsupported(), traces.smpi_losses(plain)) == ([], [])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 60), st.randoms(use_true_random=False))
def test_damaged_programs_end_in_a_trace_or_in_one_line(seed: int, draw: random.Random) -> None:
    lines = "".join(random_trace(seed)).splitlines()
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(lines))
        words = lines[at].split()
        harm = draw.randrange(5)
        if harm == 0:
            del lines[at]
        elif harm == 1:
            lines.insert(draw.randrange(len(lines)), lines[at])
        elif harm == 2:
            words[draw.randrange(len(words))] = draw.choice(HARM)
            lines[at] = " ".join(words)
        elif harm == 3:
            lines[at] = lines[at][: draw.randint(0, len(lines[at]))]
        else:
            del lines[at:]
        lines = lines or ["0 init"]
    try:
        trace = traces.parse("\n".join(lines) + "\n", np=6, name="t", partial=True)
    except TraceError as e:
        error, at = str(e), e.line
    else:
        if not trace.unsupported():
            copy = traces.parse("".join(trace.to_ti(r, shared=True) for r in range(6)), np=6, partial=True)
            assert copy == trace
        assert traces.Trace.load(trace.dump()) == trace
        return
    assert error.startswith("t:")
    assert at is not None
    assert 1 <= at <= len(lines)
    assert "\n" not in error
    assert len(error) < 600


def test_a_trace_without_the_extension_is_written_without_it() -> None:
    for name in ("npb3.3.1-cg-A-4", "npb3.3.1-is-A-4", "pingpong-c"):
        trace = traces.read(DATA / f"{name}.tar.zst")
        for r in range(trace.ranks):
            text = trace.to_ti(r)
            assert "=" not in text
            assert trace.to_smpi(r) == text
        assert all(row[8] == {} or row[1] == "alltoallv" for row in trace.rank_actions(0, extension=True))
        assert [c["id"] for c in trace.communicators()] == [0]


def test_traces_that_say_different_things_differ() -> None:
    start = "comm_dup 1 0-1; comm_dup 2 0-1; win_create 1 8; win_create 2 8"

    def one(line: str) -> traces.Trace:
        return job(f"{start}; irecv -555 -444 8 6 req=1; irecv 1 0 8 6 req=2; {line}", start)

    lines = [
        *("waitall reqs=1,2", "waitall reqs=2,1", "waitall reqs=1", "waitall", "wait req=1", "wait req=2", "wait req=1 from=0 mtag=1"),
        *("wait req=1 from=1 mtag=1", "wait req=1 from=1 mtag=0", "waitany reqs=1,2 done=1", "waitany reqs=1,2 done=2", "waitany reqs=1,2"),
        *("testany reqs=1,2 done=none", "testany reqs=1,2", "testall reqs=1,2 flag=1", "testall reqs=1,2 flag=0"),
        *("test req=1", "test req=1 flag=1", "test req=1 flag=0"),
        *("send 1 0 8", "send 1 0 8 comm=1", "send 1 0 8 comm=2", "Put 1 0 8 win=1", "Put 1 0 8 win=2", "Put 1 0 8"),
        *("sendRecv 1 1 1 1 6 6", "sendRecv 1 1 1 1 6 6 stag=1", "sendRecv 1 1 1 1 6 6 rtag=1"),
        *("sendRecv 1 1 1 1 6 6 rtag=-444", "sendRecv 1 1 1 1 6 6 rtag=-444 mtag=3"),
        *("Win_lock 1 0 win=1", "Win_lock 1 1 win=1", "Win_lock 0 1 win=1", "Win_flush 1 win=1", "Win_flush_all win=1", "Win_post 0 win=1"),
        *("Win_post 0,1 win=1", "Win_post 1,0 win=1", "iprobe 1 0", "iprobe 1 0 flag=0", "iprobe 1 0 flag=1"),
        *("isend 1 0 8", "isend 1 0 8 req=9"),
    ]
    told = [one(line) for line in lines]
    for i, a in enumerate(told):
        same_in_every_form(a)
        for j, b in enumerate(told):
            assert (a == b) == (a.sha256 == b.sha256) == (i == j), (lines[i], lines[j])


# --- what lines mean -------------------------------------------------------------------------------------------------------


def test_communicators() -> None:
    trace = traces.parse(everything())
    told = {c["id"]: (c["kind"], c["made_by"], c["size"], c["remote_size"]) for c in trace.communicators()}
    assert told == {
        0: ("intra", "", 4, 0), 1: ("intra", "comm_split", 2, 0), 2: ("intra", "comm_split", 2, 0), 3: ("intra", "comm_dup", 4, 0),
        4: ("cart", "cart_create", 4, 0), 5: ("graph", "graph_create", 4, 0), 6: ("intra", "comm_create", 3, 0),
        7: ("intra", "comm_create_group", 2, 0), 10: ("inter", "intercomm_create", 2, 2), 11: ("intra", "intercomm_merge", 4, 0),
        12: ("inter", "comm_dup", 2, 2),
    }
    grid = trace.communicator(4)
    assert (grid["dims"], grid["periods"]) == ([2, 2], [1, 0])
    # Dimension by dimension, the one below before the one above (MPI 3.0, 7.6): rank 0 is at (0, 0), periodic in the first only.
    assert grid["sources"] == grid["destinations"] == [[2, 2, -666, 1], [3, 3, 0, -666], [0, 0, -666, 3], [1, 1, 2, -666]]
    assert trace.communicator(5)["group"] == [3, 2, 1, 0]
    assert trace.communicator(5)["sources"] == [[1], [2], [3], [0]]
    assert (trace.communicator(10)["group"], trace.communicator(10)["remote"]) == ([0, 1], [2, 3])
    assert trace.communicator(6)["group"] == [0, 2, 1]
    with pytest.raises(KeyError):
        trace.communicator(99)


def test_a_duplicate_keeps_the_topology_and_a_grid_may_leave_ranks_out() -> None:
    lines = "cart_create 1 {}; comm_dup 2 0-5 comm=1; neighbor_alltoall 8 8 comm=2; neighbor_alltoallw 1 2 3 4 2 1 4 3 comm=2"
    trace = job(*[lines.format("0-5 dims=3x2 periods=1x1")] * 6, "cart_create -1")
    assert trace.unsupported() == []
    assert trace.communicator(2)["sources"] == trace.communicator(1)["sources"]
    assert trace.communicator(1)["sources"][0] == [4, 2, 1, 1]
    same_in_every_form(trace)


@for_each(
    "text, group",
    [
        ("0-7", list(range(8))),
        ("7-0", list(range(7, -1, -1))),
        ("0-7:2,1-7:2", [0, 2, 4, 6, 1, 3, 5, 7]),
        ("6-0:3,1", [6, 3, 0, 1]),
        ("5,0-3:9", [5, 0]),
        ("3-3,0", [3, 0]),
    ],
)
def test_groups(text: str, group: list[int]) -> None:
    def member(rank: int) -> str:
        return f"comm_split {'1 ' + text if rank in group else -1}"

    trace = job(*[member(r) for r in range(8)])
    assert trace.communicator(1)["group"] == group
    same_in_every_form(trace)


def test_a_match_is_put_where_the_receive_is() -> None:
    trace = job(
        "irecv -555 7 8 6 req=1; irecv 1 -444 8 6 req=2; irecv 1 3 8 6 req=3; waitall reqs=1,2,3 from=1:1,2:1,3:1 mtag=2:9;"
        "recvInit -555 -444 8 6 req=4; start req=4; wait req=4 from=0 mtag=1; startall reqs=4; waitsome reqs=4 done=4 from=4:1 mtag=4:2;"
        "recv -555 -444 8 6; probe 1 -444 mtag=3",
        "",
    )
    receives = extension(trace, 0, "irecv")
    assert receives == [{"req": 1, "from": 1, "mtag": 7}, {"req": 2, "from": 1, "mtag": 9}, {"req": 3}]
    assert extension(trace, 0, "start") == [{"req": 4, "from": 0, "mtag": 1}]
    assert extension(trace, 0, "startall") == [{"reqs": [4], "matched": {4: (1, 2)}}]
    assert extension(trace, 0, "recv") == [{}]
    assert extension(trace, 0, "probe") == [{"from": 1, "mtag": 3}]
    told = trace.traffic()
    assert (told["receives"], told["wildcards"], told["matched"]) == (5, 3, 1)  # two of them are recvInit and a plain recv
    same_in_every_form(trace)


def test_a_late_match_is_put_on_a_receive_far_behind() -> None:
    many = "".join(f"; isend 1 0 8 6 req={q}; wait req={q}" for q in range(10, 20010))
    trace = job("irecv -555 -444 8 6 req=1" + many + "; wait req=1 from=1 mtag=4", "")
    assert extension(trace, 0, "irecv") == [{"req": 1, "from": 1, "mtag": 4}]
    assert trace.actions == 2 * 20000 + 6
    same_in_every_form(trace)


def test_requests_are_told_by_identity() -> None:
    trace = job(
        "isend 1 0 8 6 req=5; irecv 1 0 8 6 req=6; wait req=5; waitany 2 reqs=6 done=6; ibarrier req=5; test req=5 flag=0;"
        "wait -333 -333 -779 req=5; waitall reqs=none; testsome reqs=none done=none",
        "isend 0 0 8; irecv 0 0 8; waitall; ibarrier req=1; wait req=1",
    )
    assert trace.unsupported() == []
    rows = {(row[1], row[0]): row[8] for row in trace.rank_actions(0, extension=True)}
    assert rows["wait", 4] == {"req": 5}
    assert rows["waitAny", 5] == {"reqs": [6], "done": [6]}
    assert rows["ibarrier", 6] == {"req": 5}
    assert rows["test", 7] == {"req": 5, "flag": False}
    assert [row[2:5] for row in trace.rank_actions(0) if row[1] == "wait"] == [(-1, 0, -1)] * 2
    same_in_every_form(trace)


def test_counts_are_those_of_the_communicator() -> None:
    lines = "comm_split {}; gatherv 4 {} 1 6 6 comm={}; reducescatter {} 0 6 comm={}; allgatherv 4 {} 6 6 comm={}"
    pair = [lines.format("1 0-1", "4 4", 1, "1 2", 1, "4 4", 1)] * 2
    three = [lines.format("2 2-4", "4 4 4", 2, "1 2 3", 2, "4 4 4", 2)] * 3
    trace = job(*pair, *three)
    assert trace.unsupported() == []
    assert extension(trace, 4, "reducescatter") == [{"comm": 2, "counts": [1, 2, 3]}]
    same_in_every_form(trace)


def test_requests_of_a_bare_wait_may_have_been_any() -> None:
    # Without done= nobody knows which requests a waitany completed, so any of them may be used again or waited for.
    bare = "isend 1 0 8 6 req=1; isend 1 0 8 6 req=2; waitany 2; isend 1 0 8 6 req=1; wait req=2; wait 0 1 0; isend 1 0 8 6 req=1; "
    trace = job(bare + "testsome; waitall; isend 1 0 8 6 req=1; test req=1; isend 1 0 8 6 req=1; waitall reqs=1", "")
    assert trace.unsupported() == []
    same_in_every_form(trace)


# --- what is wrong ---------------------------------------------------------------------------------------------------------

DUP = "comm_dup 1 0-1"
HALF = "comm_split 1 0"
ERRORS = [  # lines of rank 0, of rank 1, where, what
    ("send 1 0 8 rq=1", "", "0:2", "unknown attribute 'rq'; did you mean 'req='?"),
    ("send 1 0 8 colour=1", "", "0:2", "unknown attribute 'colour'; known are comm, req,"),
    ("send 1 0 8 =10", "", "0:2", "unknown attribute ''"),
    ("irecv 1 0 8 6 req=1 req=2", "", "0:2", "'req=' stands twice in the line"),
    ("irecv 1 0 8 6 req=", "", "0:2", "'req=' has no value"),
    ("send 1 0 8 6 req=1", "", "0:2", "'req=' does not belong to 'send'"),
    ("wait 0 1 0 comm=1", "", "0:2", "'comm=' does not belong to 'wait'"),
    ("compute 5 comm=0", "", "0:2", "'comm=' does not belong to 'compute'"),
    ("bcast 8 comm=x", "", "0:2", "the value of 'comm=', 'x', is not an integer"),
    ("bcast 8 comm=-2", "", "0:2", "'-2', is less than 0"),
    ("isend 1 0 8 6 req=0", "", "0:2", "'0', is less than 1"),
    ("isend 1 0 8 6 req=99999999999", "", "0:2", "is not an integer"),
    ("send 1 req=1 0 8", "", "0:2", "tag 'req=1' is not an integer"),
    # communicators
    ("bcast 8 comm=7", "", "0:2", "unknown communicator 7: rank 0 has not made it before this line"),
    (f"{HALF}; barrier", "comm_split -1; barrier comm=1", "1:3",
     "communicator 1 is made in rank-0.txt:2, but not by rank 1 before this line"),
    (f"{DUP}; comm_free comm=1; barrier comm=1", DUP, "0:4", "communicator 1 was freed in line 3"),
    ("comm_free", "", "0:2", "needs comm="),
    ("comm_split 0 0-1", "", "0:2", "a communicator is numbered from 1"),
    ("comm_dup -1 0-1", "", "0:2", "a communicator is numbered from 1"),
    ("comm_create 1", "", "0:2", "'comm_create' needs at least 2 arguments (NEW GROUP), has 1"),
    ("intercomm_create 1 0", "", "0:2", "(NEW LOCALGROUP REMOTEGROUP)"),
    ("comm_split 1 0-", "", "0:2", "the group '0-' has '0-' in it; it is a list of R, A-B and A-B:STEP"),
    ("comm_split 1 0,,1", "", "0:2", "it is a list of"),
    ("comm_split 1 0-1:0", "", "0:2", "it is a list of"),
    ("comm_split 1 0:2", "", "0:2", "it is a list of"),
    ("comm_split 1 0-9", "", "0:2", "in the group, rank '0-9' is out of range 0..1"),
    ("comm_split 1 0,0", "", "0:2", "rank 0 stands twice in the group"),
    ("comm_split 1 0-1,0", "", "0:2", "names more ranks than there are (2)"),
    ("comm_split 1 1", "", "0:2", "rank 0 is not in the group '1' of the communicator 1 that it makes"),
    (f"{DUP}; {DUP}", DUP, "0:3", "communicator 1 is made a second time by this rank, first in line 2"),
    (DUP, "comm_dup 1 1,0", "1:2", "communicator 1: the group '1,0' differs from that in rank-0.txt:2"),
    ("comm_split 1 0-1", DUP, "1:2", "communicator 1: how it is made, 'comm_dup', differs from that in rank-0.txt:2"),
    (f"{DUP}; comm_dup 2 0-1 comm=1", f"{DUP}; comm_dup 2 0-1", "1:3", "its parent, communicator 0, differs from that in rank-0.txt:3"),
    ("comm_dup 1 0", "", "0:2", "is not that of communicator 0, which it duplicates"),
    (DUP, "", "0:2", "rank 1 is in the group of communicator 1 and never makes it"),
    (f"{HALF}; send 1 0 8 comm=1", "comm_split -1", "0:3", "destination 1 is not in communicator 1 (peers are ranks of MPI_COMM_WORLD)"),
    (f"{HALF}; irecv 1 0 8 comm=1", "comm_split -1", "0:3", "source 1 is not in communicator 1"),
    (f"{HALF}; sendRecv 8 1 8 0 6 6 comm=1", "comm_split -1", "0:3", "destination 1 is not in communicator 1"),
    (f"{HALF}; bcast 8 1 6 comm=1", "comm_split -1", "0:3", "root '1' is out of range 0..0 of communicator 1"),
    (f"{HALF}; gatherv 8 1 1 0 6 6 comm=1", "comm_split -1", "0:3", "'gatherv' of 1 ranks has 2 to 5 arguments, here are 6: the counts"),
    (f"{HALF}; recv -555 0 8 6 comm=1 from=1", "comm_split -1", "0:3",
     "the source that matched, rank 1, is not in the receive's communicator"),
    ("intercomm_merge 1 0-1", "", "0:2", "'intercomm_merge' needs comm= of an intercommunicator"),
    ("comm_split 1 0; intercomm_create 3 0 1 comm=1; bcast 8 1 6 comm=3", "comm_split 2 1", "0:4",
     "neither a rank of the remote group, 0..0, nor -777"),
    ("comm_split 1 0; intercomm_create 3 0 0 comm=1", "", "0:3", "rank 0 stands twice in the groups"),
    ("intercomm_create 3 0 1", "", "0:2", "the local group '0' is not that of the local communicator 0"),
    ("cart_create 1 0-1", "", "0:2", "'cart_create' needs dims="),
    ("cart_create 1 0-1 dims=2x2", "", "0:2", "dims=2x2 does not make the 2 ranks of the group"),
    ("cart_create 1 0-1 dims=2 periods=1x1", "", "0:2", "is not 0 or 1 for each of dims="),
    ("cart_create 1 0-1 dims=2 periods=2", "", "0:2", "is not 0 or 1 for each of dims="),
    ("cart_create 1 0-1 dims=2,1", "", "0:2", "is not numbers with x between them"),
    ("cart_create 1 0-1 dims=2x1", "cart_create 1 0-1 dims=1x2", "1:2", "communicator 1: its grid differs from that in rank-0.txt:2"),
    ("graph_create 1 0-1 in=1", "", "0:2", "'graph_create' needs in= and out="),
    ("graph_create 1 0-1 in=2 out=none", "", "0:2", "is not a list of ranks of the new communicator"),
    ("graph_create 1 0-1 in=none out=1", "graph_create 1 0-1 in=none out=none", "0:2",
     "rank 0 of it sends to rank 1 according to out= of the former, but"),
    ("neighbor_alltoall 8 8", "", "0:2", "needs comm= of a communicator with a topology"),
    ("cart_create 1 0-1 dims=2; neighbor_alltoallv 1 2 3 comm=1", "cart_create 1 0-1 dims=2", "0:3",
     "of 2 destinations and 2 sources has 4 to 6 arguments"),
    # requests
    ("wait req=3", "", "0:2", "request 3 is not outstanding: no call of this rank has returned it, or it is complete"),
    ("isend 1 0 8 6 req=1; wait req=1; wait req=1", "", "0:4", "request 1 is not outstanding"),
    ("isend 1 0 8 6 req=1; waitall; wait req=1", "", "0:4", "request 1 is not outstanding"),
    ("isend 1 0 8 6 req=1; irecv 1 0 8 6 req=1", "", "0:3", "request 1 of 'irecv' is in use since line 2"),
    ("sendInit 1 0 8 6 req=1; isend 1 0 8 6 req=1", "", "0:3", "request 1 of 'isend' is in use since line 2"),
    ("isend 1 0 8 6 req=1; waitall reqs=1,1", "", "0:3", "request 1 stands twice in 'reqs='"),
    ("isend 1 0 8 6 req=1; waitall reqs=1,2", "", "0:3", "request 2 is not outstanding"),
    ("isend 1 0 8 6 req=1; waitany reqs=1 done=2", "", "0:3", "request 2 of 'done=' is not once in 'reqs='"),
    ("isend 1 0 8 6 req=1; isend 1 0 8 6 req=2; waitany reqs=1,2 done=1,2", "", "0:4", "completes one request, 'done=' names 2"),
    ("isend 1 0 8 6 req=1; isend 1 0 8 6 req=2; testall reqs=1,2 done=1", "", "0:4", "'testall' completes all of its requests or none"),
    ("isend 1 0 8 6 req=1; testall reqs=1 done=none flag=1", "", "0:3", "'done=' and 'flag=' say different things"),
    ("waitany 2 done=1", "", "0:2", "'reqs=' is missing"),
    ("waitall reqs=1;", "", "0:2", "request 1 is not outstanding"),
    ("waitall reqs=x", "", "0:2", "the value of 'reqs=', 'x', is not a list as in 1,2,3, or 'none'"),
    ("waitall 2 done=1", "", "0:2", "'done=' does not belong to 'waitall'"),
    ("isend 1 0 8 6 req=1; start req=1", "", "0:3", "request 1 is not persistent"),
    ("sendInit 1 0 8 6 req=1; start req=1; start req=1", "", "0:4", "request 1 is started already, in line"),
    ("test 0 1 0 flag=2", "", "0:2", "the value of 'flag=', '2', is not 0 or 1"),
    ("wait 0 1", "", "0:2", "'wait' needs at least 3 arguments (SRC DST TAG)"),
    ("isend 1 0 8 6 req=1; wait 0 req=1", "", "0:3", "SRC DST TAG, or none beside req="),
    # recorded matches
    ("recv -555 0 8 6 from=2", "", "0:2", "the source that matched, rank '2' is out of range 0..1"),
    ("recv 1 0 8 6 from=0", "", "0:2", "the receive is from rank 1, but 'from=' says 0"),
    ("recv -555 0 8 6 mtag=0", "", "0:2", "'from=' is missing: the receive is from any source"),
    ("recv -555 -444 8 6 from=1", "", "0:2", "'mtag=' is missing: the receive is of any tag"),
    ("recv -555 3 8 6 from=1 mtag=4", "", "0:2", "the receive is of tag 3, but 'mtag=' says 4"),
    ("irecv -555 0 8 6; wait -555 0 0 from=1", "", "0:3", "from= and mtag= need req="),
    ("isend 1 0 8 6 req=1; wait req=1 from=1", "", "0:3", "'from=' or 'mtag=' of request 1, which is not of a receive"),
    ("irecv -555 0 8 6 req=1; waitall reqs=1 from=1", "", "0:3", "'1', is not REQUEST:VALUE, as in 3:0,4:2"),
    ("irecv -555 0 8 6 req=1; waitall reqs=1 from=2:1", "", "0:3",
     "request 2 of 'from=' is not among those that this call completes or starts"),
    ("irecv -555 0 8 6 req=1; waitall reqs=1 from=1:1,1:0", "", "0:3", "request 1 stands twice in 'from='"),
    ("irecv -555 0 8 6 req=1 from=0; wait req=1 from=1", "", "0:3", "is told a second time, and otherwise than in line 2"),
    ("irecv -555 0 8 6 req=1; test req=1 flag=0 from=1", "", "0:3", "flag=1 is missing"),
    ("iprobe -555 0 flag=0 from=1", "", "0:2", "but flag=0"),
    ("recvInit -555 0 8 6 req=1; startall; wait req=1 from=1", "", "0:4", "which no line that names it has started"),
    ("sendRecv 8 1 8 1 6 6 rtag=-5", "", "0:2", "'rtag='"),
    # windows
    ("Put 1 0 8 6 win=1", "", "0:2", "unknown window 1: rank 0 has not made it before this line"),
    ("win_create 0 8", "", "0:2", "a window is numbered from 1"),
    ("win_create 1 8; win_create 1 8", "win_create 1 8", "0:3", "window 1 is made a second time by this rank, first in line 2"),
    ("win_create 1 8; win_free 1; Win_fence win=1", "win_create 1 8", "0:4", "window 1 was freed in line 3"),
    (f"{DUP}; win_create 1 8", f"{DUP}; win_create 1 8 comm=1", "1:3", "window 1 is of another communicator in rank-0.txt:3"),
    (f"{DUP}; win_create 1 8; Put 1 0 8 6 win=1 comm=1", DUP, "0:4", "window 1 is not of the communicator that comm= names"),
    (f"{HALF}; win_create 1 8 comm=1; Put 1 0 8 6 win=1", "comm_split -1", "0:4", "target 1 is not in communicator 1"),
    (f"{HALF}; win_create 1 8 comm=1; Win_post 0-1 win=1", "comm_split -1", "0:4", "rank 1 is not in communicator 1"),
    ("win_create 1 8; Win_lock 1 2 win=1", "win_create 1 8", "0:3", "the kind of lock is 0 (shared) or 1 (exclusive), not '2'"),
    ("win_create 1 8; Win_unlock win=1", "win_create 1 8", "0:3", "'Win_unlock' needs at least 1 argument (TARGET)"),
    ("win_create 1 8; Win_lock 5 1 win=1", "win_create 1 8", "0:3", "target '5' is out of range 0..1"),
]


@for_each("zero, one, place, message", ERRORS)
def test_errors_by_file_and_line(zero: str, one: str, place: str, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        job(zero, one)
    rank, _, line = place.partition(":")
    error = str(caught.value)
    assert error.startswith(f"rank-{rank}.txt:{line}: "), error
    assert message in error
    assert "\n" not in error
    assert len(error) < 300


REFUSED = [
    ("ibcast 8 0 6", "without req=N"),
    ("ineighbor_alltoall 8 8", "without req=N"),
    ("Rput 1 0 8 6", "without req=N"),
    ("Win_lock 1", "one-sided synchronisation of a part of the ranks needs its window"),
    ("Win_post", "needs its window"),
    ("IO - write 100", "MPI-IO is not simulated"),
    ("isendRecv 8 1 8 1 6 6", "MPI_Isendrecv"),
]


@for_each("line, reason", REFUSED)
def test_what_is_refused_up_front(line: str, reason: str) -> None:
    refused = traces.unsupported_lines(job(line, line))
    assert [(row[0], row[1], row[2]) for row in refused] == [(f"rank-{r}.txt", 2, line.split()[0]) for r in range(2)]
    assert reason in refused[0][3]


def test_communicators_of_an_intercommunicator_are_refused() -> None:
    start = "comm_split {0} {1}; intercomm_create 3 {1} {2} comm={0}; comm_split {3} {1} comm=3; barrier comm={3}"
    refused = traces.unsupported_lines(job(start.format(1, 0, 1, 4), start.format(2, 1, 0, 5)))
    assert [row[:3] for row in refused] == [("rank-0.txt", 4, "comm_split"), ("rank-1.txt", 4, "comm_split")]


BARE = ["Win_lock_all", "Win_unlock_all", "Win_flush_local", "Win_flush 3", "Get_accumulate 1 0 8 6", "Fetch_and_op 1 0 8"]


@for_each("line", BARE)
def test_lines_of_smpi_without_a_window_are_read_where_they_are_clear(line: str) -> None:
    trace = job(line, line)
    assert trace.unsupported() == []
    same_in_every_form(trace)


def test_sequences_are_compared_within_each_communicator() -> None:
    split = "comm_split {} {}; {}"
    fine = job(split.format(1, "0-1", "bcast 8 0 6 comm=1; barrier"), split.format(1, "0-1", "bcast 8 0 6 comm=1; barrier"),
               split.format(2, "2", "reduce 8 0 0 6 comm=2; barrier"))
    assert (fine.unsupported(), fine.warnings) == ([], [])
    wrong = [
        ("bcast 8 1 6 comm=1", "'bcast' with root 1, of rank 0 it is 'bcast' with root 0 (rank-0.txt:3)"),
        ("reduce 8 0 0 6 comm=1", "'reduce' with root 0, of rank 0 it is 'bcast' with root 0"),
        ("ibcast 8 0 6 comm=1 req=1", "'ibcast' with root 0, of rank 0 it is 'bcast' with root 0"),
        ("win_create 3 8 comm=1", "'win_create', of rank 0 it is 'bcast'"),
    ]
    for line, says in wrong:
        refused = traces.unsupported_lines(job(split.format(1, "0-1", "bcast 8 0 6 comm=1"), split.format(1, "0-1", line)))
        assert [row[:3] for row in refused] == [("rank-1.txt", 3, line.split()[0])]
        assert "collective 1 of rank 1 on communicator 1 is" in refused[0][3]
        assert says in refused[0][3]
    fewer = job(split.format(1, "0-1", "barrier comm=1"), split.format(1, "0-1", ""))
    assert [row[3] for row in fewer.warnings] == ["rank 1 calls 0 collectives on communicator 1, rank 0 calls 1"]
    # Calls on different communicators may come in different orders; whether that hangs, the replay shows.
    turned = job(f"{DUP}; barrier comm=1; barrier", f"{DUP}; barrier; barrier comm=1")
    assert (turned.unsupported(), turned.warnings) == ([], [])


def test_a_cut_trace_lacks_definitions_and_says_so() -> None:
    files = ["0 init\n0 comm_dup 1 0-2\n0 barrier comm=1\n", "1 init\n1 comm_dup 1 0-2\n", "2 init\n"]
    trace = traces.parse(files)
    assert ("trace/rank-0.txt", 2, "comm_dup", "rank 2 is in the group of communicator 1 and never makes it") in trace.warnings
    assert again(trace) == trace
    with refused(TraceError, "bad-trace | rank-0.txt:2"):
        traces.parse([f + f"{r} finalize\n" for r, f in enumerate(files)])


def test_every_line_cut_short_is_told_or_shows() -> None:
    text = "".join(everything())
    whole = traces.parse(text)
    for size in range(0, len(text) - 1, 7):
        try:
            cut = traces.parse(text[:size], np=4)
        except TraceError:
            continue
        assert cut != whole
        assert cut.warnings


# --- hostile input: one error, soon, and without the memory that it asks for ------------------------------------------------

MILLION = 1_000_000
HOSTILE = {
    "group of everybody and more": ("0 comm_split 1 0-999999999\n", "out of range"),
    "group that repeats": ("0 comm_split 1 " + "0-1," * 50000 + "0\n1 init\n", "names more ranks than there are"),
    "group of a million commas": ("0 comm_split 1 " + "," * MILLION + "\n", "it is a list of"),
    "deep dims": ("0 cart_create 1 0 dims=" + "x".join(["1"] * 100000) + "\n", "more than 16 dimensions"),
    "huge dims": ("0 cart_create 1 0 dims=2147483647x2147483647x2147483647\n", "does not make the 1 ranks"),
    "dims that multiply to zero": ("0 cart_create 1 0 dims=2147483647x2147483647x0\n", "does not make the 1 ranks"),
    "huge request": ("0 isend 0 0 8 6 req=4294967296\n", "is not an integer"),
    "a million requests in one line": ("0 waitall reqs=" + ",".join(map(str, range(1, MILLION))) + "\n", "request 1 is not outstanding"),
    "huge window": ("0 win_create 1 1e300\n", "larger than 256 TiB"),
    "long key": ("0 send 0 0 8 " + "k" * MILLION + "=1\n", "unknown attribute"),
    "long value": ("0 bcast 8 comm=" + "9" * MILLION + "\n", "is not an integer"),
    "a thousand attributes": ("0 bcast 8 " + "comm=0 " * 1000 + "\n", "stands twice"),
    "huge count of a vector": ("0 alltoallw 1e300 1\n", "larger than 256 TiB"),
    "huge neighbours": ("0 graph_create 1 0 in=" + "0," * 100000 + "0 out=2147483647\n", "is not a list of ranks"),
}


@for_each("case", HOSTILE)
def test_hostile_lines_end_in_one_error(case: str) -> None:
    text, message = HOSTILE[case]
    with pytest.raises(TraceError) as caught:
        traces.parse(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_groups_that_are_larger_than_the_trace_take_no_memory() -> None:
    ranks = 20000
    text = "".join(f"{r} init\n" for r in range(ranks)) + "".join(f"0 comm_create {c} 0-{ranks - 1}\n" for c in range(1, 200))
    with pytest.raises(TraceError, match="this trace is too short for that"):
        traces.parse(text)


def test_groups_that_are_spelled_anew_in_every_line_end_in_an_error() -> None:
    ranks, spelled = 4000, 200
    text = "".join(f"{r} init\n" for r in range(ranks))
    forms = [f"0-{k},{k + 1}-{ranks - 1}" for k in range(spelled)]
    text += "".join(f"{r} comm_dup {c} {forms[(r + c) % spelled]}\n" for c in range(1, 20) for r in range(ranks))
    with pytest.raises(TraceError, match="write the same group in the same words on all ranks"):
        traces.parse(text)


def test_a_hundred_thousand_communicators_are_read() -> None:
    trace = traces.parse("0 init\n" + "".join(f"0 comm_split {c} 0\n0 barrier comm={c}\n" for c in range(1, 100001)) + "0 finalize\n")
    assert (len(trace.communicators()), trace.actions) == (100001, 200002)
    assert again(trace) == trace


# --- for SMPI --------------------------------------------------------------------------------------------------------------

SMPI = [  # our line(s), what SMPI's replay gets, reasons of what is lost
    ("Ssend 1 3 8 6", ["send 1 3 8 6"], ["mode of the send"]),
    ("ISsend 1 3 8 6 req=1; wait req=1", ["isend 1 3 8 6", "wait 0 1 3"], ["mode of the send"]),
    ("irecv -555 3 8 6 req=1; wait req=1 from=1", ["irecv 1 3 8 6", "wait 1 0 3"], []),
    ("isend 1 0 8 6 req=1; isend 1 1 8 6 req=2; waitall reqs=1,2", ["isend 1 0 8 6", "isend 1 1 8 6", "waitall 2"], []),
    ("isend 1 0 8 6 req=1; isend 1 1 8 6 req=2; waitall reqs=2", ["isend 1 0 8 6", "isend 1 1 8 6", "wait 0 1 1"],
     ["a wait for each"]),
    ("isend 1 0 8 6; isend 1 1 8 6 req=2; waitall reqs=2", ["isend 1 0 8 6", "isend 1 1 8 6", "wait 0 1 1"], ["a wait for each"]),
    ("isend 1 0 8 6 req=1; isend 1 1 8 6 req=2; waitany reqs=1,2 done=2", ["isend 1 0 8 6", "isend 1 1 8 6", "wait 0 1 1"],
     ["written as waits"]),
    ("isend 1 0 8 6 req=1; test req=1 flag=0; test req=1 flag=1", ["isend 1 0 8 6", "test 0 1 0", "wait 0 1 0"],
     ["that the test failed", "written as waits"]),
    ("isend 1 0 8 6 req=1; isend 1 0 9 6 req=2; wait req=2", ["isend 1 0 8 6", "isend 1 0 9 6", "wait 0 1 0"], ["the oldest request"]),
    ("isend 1 0 8 6 req=1; testany reqs=1 done=none", ["isend 1 0 8 6"], ["completed none"]),
    ("isend 1 0 8 6; waitany 1", ["isend 1 0 8 6"], ["which requests it is about"]),
    ("recvInit 1 4 8 6 req=1; start req=1; wait req=1; startall reqs=1; waitall reqs=1; requestFree req=1",
     ["irecv 1 4 8 6", "wait 1 0 4", "irecv 1 4 8 6", "waitall 1"],
     ["each start", "no persistent", "no persistent", "each start"]),
    ("recvInit 1 4 8 6; start 1 0 4", [], ["persistent", "persistent"]),
    ("sendRecv 8 1 4 1 6 6 stag=3", ["sendRecv 8 1 4 1 6 6"], ["the tags of the exchange"]),
    ("sendRecv 8 1 4 -666 6 6", ["send 1 0 8 6"], ["the other half"]),
    ("sendRecv 8 -666 4 1 6 6", ["recv 1 0 4 6"], ["the other half"]),
    ("send -666 0 8; irecv -666 0 8 6 req=1; wait req=1", [], ["MPI_PROC_NULL", "MPI_PROC_NULL", "of a call that is left out"]),
    ("probe 1 0; kernel triad 100", [], ["does not probe", "no kernels"]),
    ("reducescatterblock 8 5 1", ["reducescatter 32 32 5 6"], ["the same bytes"]),
    ("alltoallw 1 2 3 4", ["alltoallv 3 1 2 7 3 4 6 6"], ["the same bytes"]),
    ("ibarrier req=1; wait req=1", [], ["non-blocking", "of a call that is left out"]),
    ("comm_dup 1 0-1; barrier comm=1; send 1 0 8 6 comm=1", ["barrier", "send 1 0 8 6"], ["making and freeing",
     "on a duplicate", "the communicator of the message"]),
    ("comm_split 1 0; barrier comm=1", [], ["making and freeing", "no communicators"]),
    ("win_create 1 8; Win_fence win=1", [], ["making and freeing", "one-sided"]),
]


@for_each("line, plain, reasons", SMPI)
def test_what_smpi_is_given(line: str, plain: list[str], reasons: list[str]) -> None:
    # Rank 1 says the same where that is collective.
    other = {"comm_dup": "comm_dup 1 0-1; barrier comm=1", "comm_split": "comm_split -1", "win_create": "win_create 1 8; Win_fence win=1"}
    same = {"reducescatterblock", "alltoallw", "ibarrier"}
    word = line.split()[0]
    trace = job(line, line if word in same else other.get(word, ""))
    assert trace.to_smpi(0).splitlines() == [f"0 {text}" for text in ("init", *plain, "finalize")]
    lost = [row for row in traces.smpi_losses(trace) if row[0] == "rank-0.txt"]
    assert len(lost) == len(reasons)
    for (_, at, action, reason), says in zip(lost, reasons, strict=True):
        assert says in reason
        assert action == trace.rank_actions(0, at - 1, 1)[0][1]


def test_writing_for_smpi(tmp_path: Path) -> None:
    trace = traces.parse(everything())
    traces.write(trace, tmp_path / "plain", smpi=True)
    plain = traces.read(tmp_path / "plain")
    assert plain.unsupported() == []
    assert [plain.to_ti(r) for r in range(4)] == [trace.to_smpi(r) for r in range(4)]
    rows, counts = trace.smpi_losses()
    assert len(rows) == sum(n for _, _, _, n in counts) == len(traces.smpi_losses(trace))
    traces.write(trace, tmp_path / "ours")
    assert traces.read(tmp_path / "ours") == trace
