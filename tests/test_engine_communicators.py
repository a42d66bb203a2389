"""Communicators: who is in them, what making them costs, collectives over them, over grids, and between two groups."""

from __future__ import annotations

import pytest
from cases import for_each
from engine_runs import ANY_SOURCE, ANY_TAG, PATHS, completed, job, run
from refusals import refused

from retrompi.base.errors import InputError
from retrompi.sim import simulate
from retrompi.spec.question import Question, Replay

everywhere = for_each("model, mode", PATHS)
LINES = (
    "barrier", "bcast 5000 1 6", "reduce 5000 0 1 6", "allreduce 800 0 6", "scan 300 0 6", "exscan 300 0 6", "gather 90 90 2 6 6",
    "scatter 90 90 0 6 6", "allgather 200 200 6 6", "alltoall 200 200 6 6", "reducescatter 10 20 30 0 6", "reducescatterblock 50 0 6",
    "gatherv 10 10 10 10 0 6 6", "scatterv 10 10 10 10 0 6 6", "allgatherv 10 10 10 10 6 6", "alltoallv 30 10 10 10 30 10 10 10 6 6",
    "alltoallw 10 20 30 10 20 30",
)




def over(comm: int, line: str, me: int) -> str:
    if line.startswith("alltoallw"):
        mine = 10 * (me + 1)
        line = f"alltoallw 10 20 30 {mine} {mine} {mine}"
    return f"{line} comm={comm}"


@everywhere
def test_every_collective_runs_on_every_part(model: str, mode: str) -> None:
    """Two halves of six ranks: one in order, one backwards; nobody's messages meet the other half's."""
    groups = {1: [0, 2, 4], 2: [5, 3, 1]}
    ranks = []
    for r in range(6):
        comm = 1 if r in groups[1] else 2
        group = ",".join(map(str, groups[comm]))
        me = groups[comm].index(r)
        ranks.append("; ".join([f"comm_split {comm} {group}", *(over(comm, line, me) for line in LINES), f"comm_free comm={comm}"]))
    completed(job(*ranks), model, mode)


@for_each("line", LINES)
def test_a_collective_of_three_is_the_same_whoever_they_are(line: str) -> None:
    """As many messages and bytes on ranks 0-2 of three as on ranks 3, 1, 5 of six."""
    made = "comm_dup 1 0-2"
    few = [f"{made}; {over(1, line, r)}" for r in range(3)]
    whole = completed(job(*few), "wmpi", "distributed", platform="nt-cluster")
    group = [3, 1, 5]
    many = [f"comm_split 1 3,1,5; {over(1, line, group.index(r))}" if r in group else "comm_split -1" for r in range(6)]
    part = completed(job(*many), "wmpi", "distributed", platform="nt-cluster")
    split = completed(
        job(*("comm_split 1 3,1,5" if r in group else "comm_split -1" for r in range(6))), "wmpi", "distributed", platform="nt-cluster"
    )
    dup = completed(job(*[made] * 3), "wmpi", "distributed", platform="nt-cluster")
    assert (part.messages - split.messages, part.bytes - split.bytes) == (whole.messages - dup.messages, whole.bytes - dup.bytes)


@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_making_a_communicator_is_the_traffic_of_agreeing_on_it(ranks: int) -> None:
    """MPICH 1.x: an allreduce of a number for the context; a split first reduces everybody's color and key."""
    everybody = f"0-{ranks - 1}"
    dup = completed(job(*[f"comm_dup 1 {everybody}"] * ranks), "wmpi", "shared")
    assert (dup.messages, dup.bytes) == (2 * (ranks - 1), 2 * (ranks - 1) * 4)
    split = completed(job(*[f"comm_split 1 {everybody}"] * ranks), "wmpi", "shared")
    assert (split.messages, split.bytes) == (4 * (ranks - 1), 2 * (ranks - 1) * (4 + 8 * ranks))
    few = completed(job("comm_create_group 1 0-1", "comm_create_group 1 0-1", *["compute 1"] * (ranks - 2)), "wmpi", "shared")
    assert (few.messages, few.bytes) == (2, 8)


def test_messages_of_two_communicators_do_not_meet() -> None:
    """The same pair, the same tag: the receive in the duplicate takes what was sent there, though it came second."""
    made = "comm_dup 1 0-1"
    trace = job(f"{made}; isend 1 7 3000 6; isend 1 7 10 6 comm=1; waitall", f"{made}; recv 0 7 10 6 comm=1; recv 0 7 3000 6")
    completed(trace, "hpvm", "shared")
    trace = job(f"{made}; send 1 7 3000 6 comm=1", f"{made}; recv {ANY_SOURCE} {ANY_TAG} 3000 6")
    assert run(trace, "hpvm", "shared").outcome == "deadlock"


@pytest.mark.parametrize("mode", ["shared", "distributed"])
def test_a_deadlock_in_a_part_names_who_is_missing(mode: str) -> None:
    made = "comm_split 4 1-3"
    ranks = ["comm_split -1; compute 1000", f"{made}; barrier comm=4", f"{made}; barrier comm=4", f"{made}; recv 1 0 8 6"]
    result = run(job(*ranks), "wmpi", mode)
    assert result.outcome == "deadlock"
    waits = {w["rank"]: w["on"] for w in result.waits}
    assert set(waits) == {1, 2, 3}
    assert waits[3].startswith("a message from rank 1")
    assert waits[1] == "the other ranks in barrier, communicator 4: rank 3"


GRIDS = (
    ("cart_create 3 0-5 dims=2x3 periods=0x0", lambda r: [r - 3 if r >= 3 else None, r + 3 if r < 3 else None, *line(r)]),
    ("cart_create 3 0-5 dims=6 periods=1", lambda r: [(r - 1) % 6, (r + 1) % 6]),
)


def line(r: int) -> list[int | None]:
    return [r - 1 if r % 3 else None, r + 1 if r % 3 < 2 else None]


@everywhere
@pytest.mark.parametrize("grid", [0, 1])
def test_neighbours_of_a_grid(model: str, mode: str, grid: int) -> None:
    made, neighbours = GRIDS[grid]
    around = [neighbours(r) for r in range(6)]  # type: ignore[no-untyped-call]
    edges = sum(1 for some in around for peer in some if peer is not None)
    counts = " ".join(["7"] * len(around[0]))
    before = completed(job(*[made] * 6), model, mode)
    for call, each in (
        ("neighbor_allgather 100 100 6 6", 100),
        ("neighbor_alltoall 100 100 6 6", 100),
        (f"neighbor_allgatherv 7 {counts} 6 6", 7),
        (f"neighbor_alltoallv {counts} {counts} 6 6", 7),
        (f"neighbor_alltoallw {counts} {counts}", 7),
    ):
        result = completed(job(*[f"{made}; {call} comm=3"] * 6), model, mode)
        assert (result.messages - before.messages, result.bytes - before.bytes) == (edges, edges * each), call


def test_a_graph_sends_along_its_edges() -> None:
    """A star whose centre tells everybody; the others tell nobody."""
    ranks = ["graph_create 2 0-3 in=none out=1,2,3; neighbor_alltoallv 10 20 30 6 6 comm=2"]
    ranks += [f"graph_create 2 0-3 in=0 out=none; neighbor_alltoallv {10 * r} 6 6 comm=2" for r in range(1, 4)]
    before = completed(job(*(r.partition(";")[0] for r in ranks)), "wmpi", "shared")
    result = completed(job(*ranks), "wmpi", "shared")
    assert (result.messages - before.messages, result.bytes - before.bytes) == (3, 60)


def between(line: str, low: int = 2, ranks: int = 6) -> list[str]:
    """``line`` on an intercommunicator of the first ``low`` ranks and the others; ``{root K}`` is the root rank K of the world."""
    text = []
    for r in range(ranks):
        mine, other = (f"0-{low - 1}", f"{low}-{ranks - 1}") if r < low else (f"{low}-{ranks - 1}", f"0-{low - 1}")
        near, far = (low, ranks - low) if r < low else (ranks - low, low)
        own = 1 if r < low else 2
        said = line.replace("{near}", str(near))
        for k in range(ranks):
            root = "-777" if r == k else "-666" if (r < low) == (k < low) else str(k if k < low else k - low)
            said = said.replace(f"{{root {k}}}", root)
        said = said.replace("{far*10}", " ".join(["10"] * far)).replace("{own}", " ".join([str(120 // near)] * near))
        text.append(f"comm_split {own} {mine}; intercomm_create 3 {mine} {other} comm={own}; {said}")
    return text


@everywhere
@for_each(
    "line, messages, volume",
    [
        # Two on one side, four on the other. Trees within, one exchange between the leaders.
        ("bcast 1000 {root 0} 6", 1 + 3, 4000),
        ("bcast 1000 {root 4} 6", 1 + 1, 2000),
        ("reduce 1000 0 {root 1} 6", 3 + 1, 4000),
        ("allreduce 1000 0 6", (1 + 3) + 2 + (1 + 3), 10_000),
        ("gather 10 10 {root 0} 6 6", 3 + 1, 30 + 40),
        ("gather 1000 1000 {root 0} 6 6", 4, 4000),
        ("scatter 10 10 {root 5} 6 6", 1 + 1, 20 + 10),
        ("scatter 2000 2000 {root 5} 6 6", 2, 4000),
        ("gatherv 10 {far*10} {root 0} 6 6", 4, 40),
        ("scatterv {far*10} 10 {root 0} 6 6", 4, 40),
        # Gathered, then broadcast to the other side, both ways.
        ("allgather 10 10 6 6", (1 + 3) + (1 + 3) + (1 + 1), (10 + 30) + 4 * 20 + 2 * 40),
        ("allgatherv 10 {far*10} 6 6", 6 + (1 + 3), 60 + 40 + 3 * 20),
        ("alltoall 10 10 6 6", 2 * 4 * 2, 160),
        ("reducescatter {own} 0 6", (3 + 1) + (1 + 1) + (1 + 3), 4 * 120 + 2 * 120 + 60 + 3 * 30),
    ],
)
def test_two_groups(model: str, mode: str, line: str, messages: int, volume: int) -> None:
    before = completed(job(*between("sleep 0")), model, mode)
    result = completed(job(*between(f"{line} comm=3")), model, mode)
    assert (result.messages - before.messages, result.bytes - before.bytes) == (messages, volume)


def test_groups_meet_at_a_barrier_and_become_one() -> None:
    ranks = between("sleep {wait}; barrier comm=3; intercomm_merge 4 0-5 comm=3; barrier comm=4; comm_dup 5 {side} comm=3; barrier comm=5")
    ranks = [
        text.replace("{wait}", "1" if r == 3 else "0").replace("{side}", "0-1" if r < 2 else "2-5") for r, text in enumerate(ranks)
    ]
    result = completed(job(*ranks), "wmpi", "distributed")
    assert min(r["time_s"] for r in result.per_rank) >= 1


def test_point_to_point_between_groups_and_non_blocking_collectives() -> None:
    ranks = between("iallreduce 80 0 6 comm=3 req=1; ibarrier comm=3 req=2; {p2p}waitall 2 reqs=1,2")
    told = {0: "send 5 3 70 6 comm=3; ", 5: f"recv {ANY_SOURCE} 3 70 6 comm=3 from=0; "}
    completed(job(*(text.replace("{p2p}", told.get(r, "")) for r, text in enumerate(ranks))), "wmpi", "shared")


def test_rows_and_columns_do_not_wait_for_each_other() -> None:
    """A broadcast along one row of a grid is over before the other row, which computes, has begun its own."""
    rows = [f"comm_split {1 + r // 2} {'0-1' if r < 2 else '2-3'}" for r in range(4)]
    trace = job(*(f"{rows[r]}; {'sleep 1; ' if r >= 2 else ''}bcast 1000 0 6 comm={1 + r // 2}" for r in range(4)))
    result = completed(trace, "winmpich", "distributed")
    assert max(r["time_s"] for r in result.per_rank[:2]) < 1 < min(r["time_s"] for r in result.per_rank[2:])


@pytest.mark.parametrize(("platform", "mode"), [("cray-j90", "shared"), ("cray-t3e", "distributed")])
def test_the_special_broadcasts_work_on_a_part_too(platform: str, mode: str) -> None:
    """craympt: puts along a tree, or one shared buffer, whoever takes part; a broadcast beside it does not count its readers."""
    ranks = []
    for r in range(8):
        comm, group = (1, "0-3") if r < 4 else (2, "4-7")
        ranks.append(f"comm_split {comm} {group}; bcast 5000 3 6 comm={comm}; bcast 7000 1 6; bcast 9000 0 6 comm={comm}")
    for model in ("craympt", "craympt:shmem"):
        result = simulate.run(Question(model, platform, Replay(job(*ranks)), mode))
        assert result.outcome == "completed"
        assert result.messages == result.delivered


def test_a_call_on_a_foreign_communicator_is_refused_by_line() -> None:
    with refused(InputError, "bad-trace | rank-1.txt:3"):
        run(job("comm_split 1 0; barrier comm=1", "comm_split -1; barrier comm=1"), "wmpi", "shared")


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_mpich2_combines_a_mask_and_gathers_the_colors(ranks: int) -> None:
    everybody, tree, ring = f"0-{ranks - 1}", "nemesis.coll.allreduce=reduce_bcast", "nemesis.coll.allgather=ring"
    dup = completed(job(*[f"comm_dup 1 {everybody}"] * ranks), "nemesis", "shared", platform="abe", sets=[tree])
    assert dup.bytes == 2 * (ranks - 1) * 256
    split = completed(job(*[f"comm_split 1 {everybody}"] * ranks), "nemesis", "shared", platform="abe", sets=[tree, ring])
    assert split.bytes - dup.bytes == 8 * ranks * (ranks - 1)
