"""MPI's semantics: the engine and real MPI libraries do what MPI's standard decides (real_mpi.py)."""

from __future__ import annotations

import itertools
import random
from typing import Any

import program_generator
import pytest
import real_mpi
from cases import for_each
from test_run import FAMILIES, need_mpi

from retrompi.reference.programs import DrawnProgram
from retrompi.reference.standard import Decision, Undecided, decide

MANY = 2000


def _of(*ranks: str) -> Decision:
    return decide([[line.strip() for line in lines.split(";") if line.strip()] for lines in ranks])


@for_each("ranks, outcome", [
    (("send 1 0 8 6", "recv 0 0 8 6"), "completed"),
    (("", "recv 0 0 8 6"), "deadlock"),
    (("Ssend 1 0 8 6; recv 1 0 8 6", "Ssend 0 0 8 6; recv 0 0 8 6"), "deadlock"),
    (("bsend 1 0 8 6; recv 1 0 8 6", "bsend 0 0 8 6; recv 0 0 8 6"), "completed"),
    (("send 1 0 9 6", "recv 0 0 8 6"), "truncated"),
    (("irecv 1 0 8 6 req=1; wait req=1; recv 1 1 8 6", "send 0 0 9 6"), "truncated"),
    (("barrier", ""), "deadlock"),
    (("isend 1 0 8 6 req=1; waitall 1 reqs=1", "irecv -555 -444 8 6 req=3; test req=3; wait req=3"), "completed"),
    (("sendInit 1 9 8 6; start 0 1 9; wait 0 1 9", "recvInit 0 9 8 6; startall; waitall; requestFree 0 1 9"), "completed"),
])
def test_what_the_standard_decides(ranks: tuple[str, ...], outcome: str) -> None:
    assert _of(*ranks).outcome == outcome


@for_each("ranks, why", [
    (("send 1 0 8 6; recv 1 0 8 6", "send 0 0 8 6; recv 0 0 8 6"), "buffered"),
    (("send 2 0 8 6", "send 2 0 8 6", "recv -555 0 8 6; recv -555 0 8 6"), "first"),
    (("irecv 1 0 8 6 req=1; irecv 2 0 8 6 req=2; waitany 2 reqs=1,2 done=1; wait req=2", "send 0 0 8 6", "send 0 0 8 6"), "first"),
    (("irecv 1 4 8 6 req=1; irecv 2 5 8 6 req=2; waitany 2 reqs=1,2 done=1", "recv 2 0 8 6", "send 0 5 8 6"), "first"),
    (("bsend 1 0 8 6", ""), "nobody receives"),
    (("ibarrier req=1", "barrier"), "another collective"),
    (("ibarrier req=1", "ibarrier req=1"), "nobody completes"),
    (("irecv 1 0 8 6 req=1; recv 1 1 8 6; wait req=1", "send 0 0 9 6"), "is told"),
    (("irecv 1 0 8 6 req=1", "send 0 0 9 6"), "is told"),
])
def test_what_it_leaves_open(ranks: tuple[str, ...], why: str) -> None:
    with pytest.raises(Undecided, match=why):
        _of(*ranks)


def test_a_sender_that_has_heard_of_the_first_message_comes_second() -> None:
    """By a message, by a synchronous send's return, by a barrier."""
    second = "recv -555 0 8 6; {} recv -555 0 8 6"
    for ranks in (
        ("send 2 0 8 6", "recv 2 1 0 6; send 2 0 8 6", second.format("send 1 1 0 6;")),
        ("Ssend 2 0 8 6; send 1 1 0 6", "recv 0 1 0 6; send 2 0 8 6", second.format("")),
        ("send 2 0 8 6; barrier", "barrier; send 2 0 8 6", second.format("barrier;")),
    ):
        matches = sorted(_of(*ranks).matches)
        assert [match[2] for match in matches if match[0] == 2] == [0, 1]


def test_where_a_rank_is_stuck_that_ends_before_its_requests_is_open() -> None:
    assert _of("recv 1 0 8 6; recv 1 1 8 6", "isend 0 0 8 6 req=1").stuck is None
    assert _of("recv 1 0 8 6; recv 1 1 8 6", "isend 0 0 8 6 req=1; wait req=1").stuck == ((0, 2),)


def test_what_a_probe_finds_and_where_ranks_are_stuck() -> None:
    told = _of("send 1 5 100 6; recv 1 7 8 6", "probe -555 -444; recv 0 5 100 6")
    assert told.probed == {(1, 1): (0, 5, 100)}
    assert told.stuck == ((0, 2),)
    assert told.matches == {(1, 2, 0, 1, 5, 100)}


def test_the_engine_does_what_is_decided() -> None:
    first = program_generator.seeds(1)[0]
    tally = real_mpi.Tally(())
    tally.add(itertools.islice(real_mpi.cases(itertools.count(first)), 60))
    assert not tally.differences, tally.text()
    assert tally.compared["engine"] > 0


@pytest.mark.exhaustive  # a program that ought to end and does not takes half a minute to be told from a slow one
@for_each("family", FAMILIES)
def test_a_library_does_what_is_decided(family: str) -> None:
    need_mpi(family)
    first = program_generator.seeds(1)[0]
    tally = real_mpi.Tally((family,))
    tally.add(itertools.islice(real_mpi.cases(itertools.count(first), hangs=0.05), 40))
    assert not tally.differences, tally.text()
    assert tally.compared[family] > 0


@pytest.mark.exhaustive
@for_each("family", FAMILIES)
def test_a_library_does_what_is_decided_of_many_programs(family: str) -> None:
    need_mpi(family)
    first = program_generator.seeds(1)[0]
    tally, source = real_mpi.Tally((family,)), real_mpi.cases(itertools.count(first))
    while tally.compared[family] < MANY:
        tally.add(itertools.islice(source, real_mpi.PIECE))
        assert not tally.differences, tally.text()


@for_each("in_, out, word, unequal", [
    ("0,1", "1", "neighbor_alltoallw 8 8 8", True),
    ("1", "1", "neighbor_alltoallw 8 8", False),
    ("0,1", "1", "neighbor_alltoallv 8 8 8 6 6", False),
])
def test_what_a_known_fault_is_about(in_: str, out: str, word: str, unequal: bool) -> None:
    """MPICH's, in neighbor_alltoallw where a rank hears of more ranks than it tells."""
    first = (f"graph_create 1 0,1 in=none out={1 if in_ == '0,1' else 'none'}",)
    lines = (first, (f"graph_create 1 0,1 in={in_} out={out}", f"{word} comm=1"))
    program = DrawnProgram("lam:usysv", "p4-1800*2@ge-ga620", (0, 1), lines)
    assert real_mpi.of_unequal_degrees(program) is unequal


def test_a_buffered_send_that_is_started_again_is_named() -> None:
    """Open MPI's known fault is about a persistent one."""
    for again, is_one in (("start 0 1 9; wait 0 1 9", True), ("", False)):
        sends = ("bsendInit 1 9 8 6", "start 0 1 9", "wait 0 1 9", *again.split("; "))
        program = DrawnProgram("lam", "nt-pair", (0, 1), (sends, ("recv 0 9 8 6",)))
        assert real_mpi.starts_buffered_again(program) is is_one


def test_what_is_too_long_is_named() -> None:
    """Open MPI's known fault is about a rank's message to itself."""
    assert _of("irecv 0 0 8 6 req=1; isend 0 0 9 6 req=2; waitall 2 reqs=1,2").matches == {(0, 1, 0, 2, 0, 9)}


def _changed(decision: Decision) -> Decision:
    rank, line, source, sent, tag, size = min(decision.matches)
    return Decision("completed", frozenset({(rank, line, source, sent + 1, tag, size)}), decision.most)


def test_another_match_than_the_decided_one_is_noticed() -> None:
    seeds: Any = itertools.count(random.Random(5).getrandbits(20))
    case = next(c for c in real_mpi.cases(seeds) if c.decision.outcome == "completed" and c.decision.matches)
    wrong = real_mpi.Case(case.seed, case.program, _changed(case.decision))
    assert "not received" in real_mpi.engine_differs(wrong)
    got = real_mpi.Results(matches=set(case.decision.matches), finished=len(case.program.lines))
    assert not real_mpi.library_differs(case, got)
    assert "not received" in real_mpi.library_differs(wrong, got)
    assert "deadlock instead" in real_mpi.library_differs(case, real_mpi.Results(matches=got.matches))
