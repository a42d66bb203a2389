"""Generated programs of collectives: a right one is never refused, a wrong one is always told, on every model.

A share runs here; ``python tests/test_collective_programs.py`` runs all of them (RETROMPI_COLLECTIVES sets how many in the suite).
"""

from __future__ import annotations

import collections
import os
import sys

import pytest
from cases import for_each
from collective_programs import right, wrong

from retrompi.base.errors import UsageError
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.question import Question, Replay
from retrompi.traces import Trace

MODELS = [name for name in registry.model_names() if ":" not in name]
ROOMS = {"nemesis": "abe", "craympt": "cray-t3e", "mpibip": "myrinet-piii"}
RIGHT, WRONG = 1000, 480
SHARE = int(os.environ.get("RETROMPI_COLLECTIVES", "4"))
"""Programs of each kind for each model in the suite."""


POOL = "shared memory pool"
"""WMPI's pool of p4 runs out where many large messages are on their way at once: a property of the runtime, not of the program."""


def _run(model: str, trace: Trace, fidelity: str = "mechanism") -> simulate.Result:
    return simulate.run(Question(model, ROOMS.get(model, "nt-cluster"), Replay(trace), "shared", fidelity=fidelity))


def _told(model: str, seed: int, fidelity: str = "mechanism") -> str:
    """How a wrong program is told; empty: not at all."""
    trace, _ = wrong(seed)
    try:
        result = _run(model, trace, fidelity)
    except UsageError as error:
        return "refused" if error.code == "unsupported-action" and any(f"{file}:" in str(error) for file in trace.files) else ""
    return result.outcome if result.outcome != "completed" else "caution" if result.cautions else ""


def _seeds(model: str, count: int) -> range:
    """Different ones for each model."""
    return range(MODELS.index(model), count, count // SHARE)


@for_each("model", MODELS)
def test_a_wrong_program_is_told(model: str) -> None:
    assert [seed for seed in _seeds(model, WRONG) if not _told(model, seed)] == []


@pytest.mark.parametrize("fidelity", ["curve", "loggp"])
def test_a_wrong_program_is_told_at_every_level_of_detail(fidelity: str) -> None:
    assert [seed for seed in range(4) if not _told("wmpi", seed, fidelity)] == []


@for_each("model", MODELS)
def test_a_right_program_completes_without_a_caution_of_its_own(model: str) -> None:
    for seed in _seeds(model, RIGHT):
        trace = right(seed)
        assert trace.unsupported() == []
        result = _run(model, trace)
        if POOL in result.detail:
            continue
        assert result.outcome == "completed", (seed, result.detail)
        assert not [c for c in result.cautions if "rank" in c.text], (seed, result.cautions)
        assert sum(r["sent"] for r in result.per_rank) == sum(r["received"] for r in result.per_rank)
        assert sum(r["bytes_sent"] for r in result.per_rank) == sum(r["bytes_received"] for r in result.per_rank)


def test_every_wrong_count_is_refused_when_the_trace_is_read() -> None:
    missed = []
    for seed in range(WRONG):
        trace, what = wrong(seed)
        if what != "missing" and not trace.unsupported():
            missed.append(seed)
    assert missed == []


def test_no_right_program_is_refused_when_the_trace_is_read() -> None:
    assert [seed for seed in range(RIGHT) if right(seed).unsupported()] == []


LINES = [  # lines of rank 0, of rank 1, the facts of the refusal
    ("bcast 100 0 6", "bcast 50 0 6", "rank 1 has 50 B, rank 0 has 100 B (t/rank-0.txt:2)"),
    ("iallreduce 8 0 6 req=1; wait req=1", "iallreduce 16 0 6 req=1; wait req=1", "rank 1 has 16 B, rank 0 has 8 B"),
    ("allgatherv 50000 50000 100 6 6", "allgatherv 50000 50000 50000 6 6",
     "sends 50000 B to rank 0, rank 0 receives 100 B | MPI_ERR_TRUNCATE"),
    ("gather 100 100 0 6 6", "gather 200 0 0 6 6", "rank 1 sends 200 B to the root, rank 0 receives 100 B from each | MPI_ERR_TRUNCATE"),
    ("scatter 100 100 0 6 6", "scatter 0 200 0 6 6", "rank 1 receives 200 B from the root, rank 0 sends 100 B to each"),
    ("gatherv 100 100 50 0 6 6", "gatherv 200 0 0 0 6 6", "rank 1 sends 200 B to rank 0, rank 0 receives 50 B"),
    ("scatterv 100 50 100 0 6 6", "scatterv 0 0 200 0 6 6", "rank 1 receives 200 B from rank 0, rank 0 sends 50 B"),
    ("alltoall 8 8 6 6", "alltoall 8 9 6 6", "rank 1 receives 9 B from each"),
    ("alltoallv 3 1 2 4 1 3 6 6", "alltoallv 7 3 4 5 1 4 6 6", "rank 1 receives 1 B from rank 0, rank 0 sends 2 B to rank 1"),
    ("alltoallw 1 2 1 3", "alltoallw 3 4 1 4", "rank 1 receives 1 B from rank 0, rank 0 sends 2 B to rank 1"),
    ("reducescatter 1 2 0 6", "reducescatter 1 3 0 6", "rank 1 has 3 B for member 1, rank 0 has 2 B"),
    ("reducescatterblock 8 0 6", "reducescatterblock 4 0 6", "rank 1 has 4 B, rank 0 has 8 B"),
    ("cart_create 1 0-1 dims=2 periods=1; neighbor_allgather 10 10 6 6 comm=1",
     "cart_create 1 0-1 dims=2 periods=1; neighbor_allgather 10 11 6 6 comm=1", "rank 1 receives 11 B from rank 0, rank 0 sends 10 B"),
]


@for_each("zero, one, facts", LINES)
def test_both_lines_of_a_mismatch_are_named(zero: str, one: str, facts: str) -> None:
    from retrompi import traces

    texts = ["".join(f"{r} {line.strip()}\n" for line in ["init", *rows.split(";"), "finalize"]) for r, rows in enumerate((zero, one))]
    ((file, _, _, reason),) = traces.parse(texts, name="t").unsupported()
    assert file == "t/rank-1.txt"
    assert "(t/rank-0.txt:" in reason
    for fact in facts.split(" | "):
        assert fact in reason


def test_what_is_in_place_or_not_significant_is_not_compared() -> None:
    from retrompi import traces

    # The root's own block is in place; away from the root the other side's arguments say nothing.
    texts = ["0 gather 0 100 0 6 6\n0 scatterv 5 6 0 0 6 6\n", "1 gather 100 7 0 6 6\n1 scatterv 9 9 6 0 6 6\n"]
    assert traces.parse(texts).unsupported() == []


def main() -> None:
    """All programs on all models."""
    for model in MODELS:
        ends = collections.Counter(_told(model, seed) or "silent" for seed in range(WRONG))
        refused, pool, not_completed = 0, 0, []
        for seed in range(RIGHT):
            try:
                result = _run(model, right(seed))
            except UsageError:
                refused += 1
                continue
            if POOL in result.detail:
                pool += 1
            elif result.outcome != "completed" or [c for c in result.cautions if "rank" in c.text]:
                not_completed.append(seed)
        print(f"{model}: {WRONG} wrong {dict(ends)}; "
              f"{RIGHT} right: {refused} refused, {pool} exhaust a pool, not completed or with cautions {not_completed}",
              flush=True)


if __name__ == "__main__":
    sys.exit(main())
