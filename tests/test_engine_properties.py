"""What must hold whatever the program: everything arrives, time goes forward, equal inputs give equal results."""

from __future__ import annotations

import random
from dataclasses import asdict
from typing import Any

from cases import for_each
from engine_runs import ANY_SOURCE, ANY_TAG, PATHS, completed, job
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retrompi.sim import simulate
from retrompi.sim.result import Result
from retrompi.spec.question import Message, Question

everywhere = for_each("model, mode", PATHS)
modest = settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
SIZES = (0, 1, 100, 1460, 4096, 9000, 40_000, 131_072, 300_000)
SENDS = ("isend", "ISsend", "ibsend")


def matched(seed: int, ranks: int, rounds: int) -> Any:
    """A random program that cannot deadlock: all that a round sends is posted before anything of it is waited for.

    A receive names its source and tag, or neither; then it has room for anything.
    """
    draw = random.Random(seed)
    lines: list[list[str]] = [[] for _ in range(ranks)]
    for number in range(rounds):
        posts: list[list[str]] = [[] for _ in range(ranks)]
        wild = [draw.random() < 0.2 for _ in range(ranks)]  # all of a rank's receives of a round, or none
        for _ in range(draw.randint(1, 2 * ranks)):
            source, target, size = draw.randrange(ranks), draw.randrange(ranks), draw.choice(SIZES)
            posts[source].append(f"{draw.choice(SENDS)} {target} {number} {size} 6")
            posts[target].append(f"irecv {ANY_SOURCE} {ANY_TAG} 300000 6" if wild[target] else f"irecv {source} {number} 300000 6")
        # A wildcard must not take what a later round sends: then nobody goes on before everybody is done.
        after = ["barrier"] if any(wild) or draw.random() < 0.3 else []
        for mine, post in zip(lines, posts, strict=True):
            draw.shuffle(post)
            before = [f"compute {draw.randrange(10**5)}"] if draw.random() < 0.3 else []
            mine += [*before, *post, "waitall 0", "# mark round", *after]
    return job(*("; ".join(mine) for mine in lines))


def facts(result: Result) -> dict[str, Any]:
    """Everything but the time that simulating took."""
    return {k: v for k, v in asdict(result).items() if k != "wall_s"}


@everywhere
@modest
@given(seed=st.integers(0, 2**32), ranks=st.integers(2, 5), rounds=st.integers(1, 4))
def test_matched_programs_complete_and_lose_nothing(model: str, mode: str, seed: int, ranks: int, rounds: int) -> None:
    # With WMPI's own pool of 1 MiB a program that posts much at once may abort, as it did then (BF-FUN-06).
    room = ["pool=16MiB"] if model == "wmpi" else []
    result = completed(matched(seed, ranks, rounds), model, mode, sets=room, seed=seed % 97, idle_overrides=True)
    for rank in range(ranks):
        times = [m["time_ps"] for m in result.marks if m["rank"] == rank]
        assert times == sorted(times)
        assert all(0 <= t <= result.time_ps for t in times)
        row = result.per_rank[rank]
        assert 0 <= row["mpi_s"] <= row["time_s"] <= result.time_s
        assert 0 <= row["cpu_s"] <= row["time_s"] * (1 + 1e-9)
        assert row["compute_s"] >= 0


@everywhere
@settings(modest, max_examples=4)
@given(seed=st.integers(0, 2**32))
def test_the_same_seed_gives_the_same_result(model: str, mode: str, seed: int) -> None:
    trace = matched(seed, 3, 3)
    assert facts(completed(trace, model, mode, seed=5)) == facts(completed(trace, model, mode, seed=5))


@everywhere
@settings(modest, max_examples=4)
@given(seed=st.integers(0, 2**32))
def test_anatomy_observes_and_changes_nothing(model: str, mode: str, seed: int) -> None:
    trace = matched(seed, 3, 3)
    plain = completed(trace, model, mode, seed=3)
    watched = completed(trace, model, mode, seed=3, anatomy=True, between=("round", "round"))
    assert watched.time_ps == plain.time_ps
    assert watched.marks == plain.marks
    assert watched.per_rank == plain.per_rank


@everywhere
@settings(modest, max_examples=6)
@given(size=st.integers(0, 1 << 20))
def test_the_stages_of_a_message_of_any_size_sum_to_its_time(model: str, mode: str, size: int) -> None:
    told = simulate.explain(Question(model, "nt-pair", Message(size), mode))
    assert all(stage["ps"] > 0 for stage in told["stages"])
    assert sum(stage["ps"] for stage in told["stages"]) == told["total_ps"]


@everywhere
def test_anatomy_does_not_change_a_pingpong(model: str, mode: str) -> None:
    for size in (0, 9000, 512 * 1024):
        trace = simulate.explained_trace(size)
        times = {completed(trace, model, mode, anatomy=a).time_ps for a in (False, True)}
        assert len(times) == 1


@everywhere
def test_other_seeds_complete_too(model: str, mode: str) -> None:
    trace = matched(11, 4, 3)
    for seed in range(8):
        completed(trace, model, mode, seed=seed)


def test_a_lossy_network_is_repeatable_by_its_seed() -> None:
    sets = ["loss=0.2", "duplicate=0.1", "reorder=0.2"]
    trace = matched(4, 2, 6)
    times = [completed(trace, "wmpi", "distributed", sets=sets, seed=s).time_ps for s in (1, 2, 1)]
    assert times[0] == times[2]
    assert times[0] != times[1]


@everywhere
@settings(modest, max_examples=6)
@given(seed=st.integers(0, 2**32))
def test_a_woken_thread_that_outranks_its_waker_loses_nothing(model: str, mode: str, seed: int) -> None:
    """NT's priority boost: whoever wakes another is preempted in the middle of what it does."""
    sets = ["platform.host.boost=1"]
    trace = matched(seed, 2, 4)
    result = completed(trace, model, mode, sets=sets)
    assert facts(result) == facts(completed(trace, model, mode, sets=sets))
    if mode == "shared":  # one processor cannot have worked longer than there was time
        assert sum(row["cpu_s"] for row in result.per_rank) <= result.time_s * (1 + 1e-9)
