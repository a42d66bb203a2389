"""Collectives of 2 to 6 ranks, on one machine and on several."""

from __future__ import annotations

import pytest
from cases import for_each
from engine_runs import MODELS, PATHS, completed, job, run

everywhere = for_each("model, mode", PATHS)
RANKS = (2, 3, 4, 5, 6)


def counts(n: int, unit: int = 1000) -> str:
    """A count a rank, all different, the first 0."""
    return " ".join(str(unit * i) for i in range(n))


def vector(name: str, n: int) -> list[str]:
    """The lines of a collective that has a count a rank."""
    total = sum(1000 * i for i in range(n))
    match name:
        case "alltoallv":
            # Rank i sends 100 (i + j) bytes to rank j: what it sends to j is what j expects of it.
            rows = [[100 * (i + j) for j in range(n)] for i in range(n)]
            return [f"alltoallv {sum(r)} {' '.join(map(str, r))} {sum(r)} {' '.join(map(str, r))} 6 6" for r in rows]
        case "gatherv":
            return [f"gatherv {1000 * i} {counts(n)} 0 6 6" for i in range(n)]
        case "allgatherv":
            return [f"allgatherv {1000 * i} {counts(n)} 6 6" for i in range(n)]
        case "scatterv":
            return [f"scatterv {counts(n)} {1000 * i} 0 6 6" for i in range(n)]
        case _:
            assert total or n == 1
            return [f"reducescatter {counts(n)} 0 6"] * n


@everywhere
@for_each("ranks", RANKS)
def test_every_collective_ends(model: str, mode: str, ranks: int) -> None:
    last = ranks - 1
    same = [
        "barrier", "bcast 5000 0 6", f"bcast 70000 {last} 6", "reduce 5000 0 0 6", f"reduce 9000 1000 {last} 6", "allreduce 5000 1000 6",
        "scan 3000 0 6", "exscan 3000 0 6", "gather 900 900 0 6 6", f"gather 9000 9000 {last} 6 6",
        "scatter 900 900 0 6 6", f"scatter 9000 9000 {last} 6 6",
        "allgather 2000 2000 6 6", "alltoall 2000 2000 6 6",
    ]
    vectors = [vector(name, ranks) for name in ("alltoallv", "gatherv", "allgatherv", "scatterv", "reducescatter")]
    result = completed(job(*("; ".join([*same, *(v[r] for v in vectors), "barrier"]) for r in range(ranks))), model, mode)
    assert result.messages > 0


@for_each("ranks", RANKS)
@for_each(
    "line, messages, volume",
    [
        ("bcast 1000 0 6", lambda n: n - 1, lambda n: 1000 * (n - 1)),
        ("reduce 1000 0 0 6", lambda n: n - 1, lambda n: 1000 * (n - 1)),
        ("allreduce 1000 0 6", lambda n: 2 * (n - 1), lambda n: 2000 * (n - 1)),
        ("gather 1000 1000 0 6 6", lambda n: n - 1, lambda n: 1000 * (n - 1)),
        ("scatter 1000 1000 0 6 6", lambda n: n - 1, lambda n: 1000 * (n - 1)),
        ("scan 1000 0 6", lambda n: n - 1, lambda n: 1000 * (n - 1)),
        ("allgather 1000 1000 6 6", lambda n: n * (n - 1), lambda n: 1000 * n * (n - 1)),
        ("alltoall 1000 1000 6 6", lambda n: n * n, lambda n: 1000 * n * n),
        ("reducescatter " + "{each} 0 6", lambda n: 2 * (n - 1), lambda n: (n - 1) * (1000 * n + 1000)),
    ],
)
def test_a_collective_sends_what_its_algorithm_says(ranks: int, line: str, messages: object, volume: object) -> None:
    line = line.replace("{each}", " ".join(["1000"] * ranks))
    result = completed(job(*[line] * ranks), "wmpi", "shared")
    assert callable(messages)
    assert callable(volume)
    assert (result.messages, result.bytes) == (messages(ranks), volume(ranks))


@everywhere
@pytest.mark.parametrize("ranks", [2, 3, 6])
def test_nobody_leaves_a_barrier_before_the_last_has_come(model: str, mode: str, ranks: int) -> None:
    trace = job(*(("sleep 1; " if r == ranks - 1 else "") + "barrier" for r in range(ranks)))
    result = completed(trace, model, mode)
    assert min(r["time_s"] for r in result.per_rank) >= 1


@everywhere
def test_results_that_depend_on_all_come_after_the_last(model: str, mode: str) -> None:
    for line in ("allreduce 8 0 6", "allgather 8 8 6 6", "alltoall 8 8 6 6"):
        result = completed(job(line, f"sleep 1; {line}", line), model, mode)
        assert min(r["time_s"] for r in result.per_rank) >= 1, line


@everywhere
def test_collectives_and_messages_do_not_meet(model: str, mode: str) -> None:
    """A wildcard receive posted over a broadcast must not take the broadcast's message."""
    trace = job("isend 1 0 10 6; bcast 5000 0 6; wait 0 1 0", "bcast 5000 0 6; recv -555 -444 10 6")
    completed(trace, model, mode)
    trace = job("bcast 5000 0 6; send 1 0 10 6", "irecv -555 -444 10 6; bcast 5000 0 6; wait -555 1 -444")
    completed(trace, model, mode)


@pytest.mark.parametrize("model", MODELS)
def test_a_collective_that_one_rank_leaves_out_is_a_deadlock(model: str) -> None:
    result = run(job("barrier", "barrier", "sleep 0.1"), model, "shared")
    assert result.outcome == "deadlock"
    assert result.waits
    assert all(w["action"] == "barrier" for w in result.waits)


@pytest.mark.parametrize("model", MODELS)
def test_one_rank_alone(model: str) -> None:
    trace = job("barrier; bcast 10 0 6; allreduce 10 0 6; gather 5 5 0 6 6; allgather 5 5 6 6; alltoall 5 5 6 6; scan 5 0 6")
    completed(trace, model, "shared")
