"""Merging: files of ranks, jobs side by side, jobs one after the other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from conftest import Outcome
from engine_runs import job
from hypothesis import assume, given, settings
from random_jobs import jobs
from refusals import refused

from retrompi import traces
from retrompi.sim import simulate
from retrompi.spec.question import Question, Replay
from retrompi.traces import Trace, TraceError
from retrompi.traces.cut import cut
from retrompi.traces.lines import join, parse_group, rank_lines, show_group, split
from retrompi.traces.matching import MatchedJob
from retrompi.traces.merge import rank_files, side_by_side, then
from retrompi.traces.subset import keep_ranks

DATA = Path(__file__).parent / "data" / "traces"
Run = Callable[..., Outcome]


def lines(trace: Trace, rank: int = 0) -> list[str]:
    return [line.split(" ", 1)[1] for line in trace.to_ti(rank).splitlines()]


def matched(trace: Trace) -> MatchedJob:
    found = MatchedJob([rank_lines(trace, r)[0] for r in range(trace.ranks)])
    assert found.lonely == []
    return found


def volume(trace: Trace) -> tuple[int, int]:
    found = matched(trace)
    return len(found.messages), sum(m.send.bytes for m in found.messages)


ONE = ("irecv 1 4 8 6 req=1; wait 1 0 4 req=1; bcast 8 1 6; comm_split 1 1,0; barrier comm=1; win_create 1 8; "
       "Put 1 0 8 6 win=1; Win_fence win=1",
       "send 0 4 8 6; bcast 8 1 6; comm_split 1 1,0; barrier comm=1; win_create 1 8; Win_fence win=1")


def test_side_by_side() -> None:
    merged = side_by_side([job(*ONE), job(*ONE), job("compute 5", "")])
    assert merged.ranks == 6
    assert lines(merged, 0) == [
        "init", "comm_create_group 1 0,1", "irecv 1 4 8 6 req=1", "wait 1 0 4 req=1", "bcast 8 1 6 comm=1",
        "comm_split 2 1,0 comm=1",
        "barrier comm=2",
        "win_create 1 8 comm=1", "Put 1 0 8 6 win=1", "Win_fence win=1", "finalize",
    ]
    assert lines(merged, 3) == [
        "init", "comm_create_group 3 2,3", "send 2 4 8 6", "bcast 8 1 6 comm=3", "comm_split 4 3,2 comm=3", "barrier comm=4",
        "win_create 2 8 comm=3",
        "Win_fence win=2", "finalize",
    ]
    assert lines(merged, 4) == ["init", "compute 5", "finalize"]


def test_one_after_the_other() -> None:
    left_open = job("isend 1 1 8 6 req=5; barrier", "recv 0 1 8 6; barrier")
    merged = then([left_open, job(*ONE), job(*ONE)])
    assert lines(merged, 0)[:5] == ["init", "isend 1 1 8 6 req=5", "barrier", "waitall 1 reqs=5", "irecv 1 4 8 6 req=1"]
    assert [line for line in lines(merged, 0) if line.startswith(("comm_split", "win_create", "finalize", "init"))] == [
        "init", "comm_split 1 1,0", "win_create 1 8", "comm_split 2 1,0", "win_create 2 8", "finalize",
    ]
    with refused(TraceError, "wrong-ranks | rank-0.txt"):
        then([left_open, job("compute 1")])


def test_files_of_one_rank_each(tmp_path: Path, retrompi: Run) -> None:
    cg = traces.read(DATA / "npb3.3.1-cg-A-4.tar.zst")
    names = []
    for rank in (2, 0, 3, 1):
        names.append(str(tmp_path / f"part-{rank}"))
        Path(names[-1]).write_text("# captured apart\n" + cg.to_ti(rank))
    told = retrompi("trace", "merge", *names, str(tmp_path / "whole"), "--json")
    assert told.code == 0
    assert json.loads(told.out)[0]["how"] == "ranks of one job"
    assert traces.read(tmp_path / "whole") == cg
    assert rank_files(names[:2]) is None  # ranks 2 and 0 alone are no job


def test_the_command(tmp_path: Path, retrompi: Run) -> None:
    cg = str(DATA / "npb3.3.1-cg-A-4.tar.zst")
    told = retrompi("trace", "merge", cg, cg, str(tmp_path / "two.zst"), "--json")
    assert json.loads(told.out)[0] | {"trace": ""} == {
        "trace": "",
        "how": "jobs side by side",
        "ranks": 8,
        "actions": 80668,
        "jobs": [4, 4],
    }
    assert retrompi("trace", "merge", "--then", cg, cg, str(tmp_path / "long")).code == 0
    assert traces.read(tmp_path / "long").info()["sends"] == 2 * traces.read(cg).info()["sends"]
    assert "exists; choose another name" in retrompi("trace", "merge", cg, cg, str(tmp_path / "long")).err
    assert "give at least two traces" in retrompi("trace", "merge", cg, str(tmp_path / "x")).err


@settings(max_examples=60, deadline=None)
@given(one=jobs(max_ranks=3, max_steps=12), two=jobs(max_ranks=3, max_steps=12))
def test_side_by_side_keeps_every_message_and_comes_apart_again(one: Trace, two: Trace) -> None:
    merged = side_by_side([one, two])
    assert merged.unsupported() == []
    assert [sum(x) for x in zip(volume(one), volume(two), strict=True)] == list(volume(merged))
    # Taken apart, each job has its messages and its collectives on the communicator that was its world.
    for part, ranks in ((one, range(one.ranks)), (two, range(one.ranks, merged.ranks))):
        apart = keep_ranks(merged, list(ranks))
        assert volume(apart) == volume(part)
        for rank in range(part.ranks):
            calls = [split(line)[:2] for line in rank_lines(apart, rank)[0] if not line.split()[1].startswith("comm_")]
            assert calls == [split(line)[:2] for line in rank_lines(part, rank)[0] if not line.split()[1].startswith("comm_")]


@settings(max_examples=60, deadline=None)
@given(one=jobs(max_ranks=3, max_steps=12), two=jobs(max_ranks=3, max_steps=12))
def test_then_cuts_back(one: Trace, two: Trace) -> None:
    assume(one.ranks == two.ranks)
    double = then([one, job(*["barrier"] * one.ranks), two])
    assert [sum(x) for x in zip(volume(one), volume(two), strict=True)] == list(volume(double))
    border = next(n for n, line in enumerate(rank_lines(double, 0)[0], 1) if n >= len(rank_lines(one, 0)[0]) and line == "0 barrier")
    first, second = cut(double, None, str(border)), cut(double, str(border + 1), None)
    assert (first.crossing, second.crossing, first.waited, second.moved) == (0, 0, 0, 0)
    assert (volume(first.trace), volume(second.trace)) == (volume(one), volume(two))
    assert first.trace == then([one, job(*["barrier"] * one.ranks)])


@settings(max_examples=15, deadline=None)
@given(one=jobs(max_ranks=3, max_steps=10), two=jobs(max_ranks=3, max_steps=10))
def test_what_is_merged_runs(one: Trace, two: Trace) -> None:
    for merged in [side_by_side([one, two])] + ([then([one, two])] if one.ranks == two.ranks else []):
        result = simulate.run(Question("mpibip", "myrinet-piii", Replay(merged), "distributed"))
        assert result.outcome == "completed", result.waits


@settings(max_examples=100, deadline=None)
@given(trace=jobs())
def test_lines_split_and_join(trace: Trace) -> None:
    for rank in range(trace.ranks):
        for line in rank_lines(trace, rank)[0]:
            assert join(rank, *split(line)) == line


def test_groups() -> None:
    for ranks in ([0], [0, 1], [3, 1], [0, 1, 2, 3], [0, 2, 4, 6, 7], [5, 4, 3], [0, 10, 20, 21, 22]):
        assert parse_group(show_group(ranks)) == ranks
    assert show_group([0, 1, 2, 3, 10, 20, 30]) == "0-3,10-30:10"
