"""Every algorithm of every collective moves the right data: all members run on paper, for 1 to 20 members and any root."""

from __future__ import annotations

import random
from typing import Any

import pytest
from collective_flow import Case, WrongFlow, run
from hypothesis import given, settings
from hypothesis import strategies as st

from retrompi import _engine
from retrompi.spec.collectives import OPERATIONS, algorithms

BY_MEMORY = ("put_tree", "by_reference")
"""Not made of messages: tests/test_one_sided.py."""
ALL = [(op, name) for op in OPERATIONS for name in algorithms(op) if name not in BY_MEMORY]
MEMBERS = range(1, 21)
SIZES = (0, 1, 7, 37, 61)
ROOTED = ("bcast", "reduce", "gather", "gatherv", "scatter", "scatterv")
EQUAL = ("gather", "scatter", "allgather", "reducescatterblock")
VECTOR = ("gatherv", "scatterv", "allgatherv", "reducescatter")


def case(op: str, name: str, n: int, size: int, root: int, draw: random.Random) -> Case:
    """A call with about ``size`` bytes; vector forms get unequal counts with zeros among them."""
    facts: dict[str, Any] = {"root": root if op in ROOTED else 0}
    if op in EQUAL:
        facts["counts"] = [size] * n
    elif op in VECTOR:
        facts["counts"] = [draw.choice((0, 0, 1, 3, size)) if size else 0 for _ in range(n)]
    elif op == "alltoall":
        facts["matrix"] = [[size] * n for _ in range(n)]
    elif op in ("alltoallv", "alltoallw"):
        facts["matrix"] = [[draw.choice((0, 1, size)) for _ in range(n)] for _ in range(n)]
    elif op != "barrier":
        facts["size"] = size
    if name.startswith("nodes"):
        hosts = draw.randint(1, n)
        facts["hosts"] = [draw.randrange(hosts) for _ in range(n)]
    return Case(op, name, n, **facts)


def sizes(name: str, n: int) -> tuple[int, ...]:
    """For more than eight members one size below their number and one above: what else sizes do shows with few members."""
    if name == "nothing":
        return (0,)
    usual = SIZES if n <= 8 else (7, 61)
    return (*usual, 20000) if name in ("chain", "ring_pipelined", "bintree_16k", "pipeline_16k") and n in (1, 2, 3, 7) else usual


@pytest.mark.parametrize(("op", "name"), ALL)
def test_every_byte_arrives_where_the_operation_says(op: str, name: str) -> None:
    for n in MEMBERS:
        draw = random.Random(n)
        for size in sizes(name, n):
            run(case(op, name, n, size, draw.randrange(n), draw))


@pytest.mark.parametrize("op", ROOTED)
def test_every_root_is_served(op: str) -> None:
    for name in algorithms(op):
        if name in (*BY_MEMORY, "nothing"):
            continue
        for n in (2, 3, 6, 8, 11):
            for root in range(n):
                run(case(op, name, n, 13, root, random.Random(root)))


@pytest.mark.parametrize("name", algorithms("barrier"))
def test_nobody_leaves_a_barrier_before_everybody_has_come(name: str) -> None:
    for n in MEMBERS:
        flow = run(case("barrier", name, n, 0, 0, random.Random(n)))
        assert all(heard == set(range(n)) for heard in flow.heard), (name, n)


@pytest.mark.parametrize("op", ["allreduce", "allgather", "reducescatter"])
def test_algorithms_made_of_others_work_with_any_of_them(op: str) -> None:
    made = {"allreduce": ("reduce_bcast", ("reduce", "bcast")), "allgather": ("gather_bcast", ("gather", "bcast")),
            "reducescatter": ("reduce_scatterv", ("reduce", "scatterv"))}
    name, (first, second) = made[op]
    for a in algorithms(first):
        for b in algorithms(second):
            if {a, b} & {*BY_MEMORY, "nothing", "nodes", "nodes_scatter", "nodes_forward"}:
                continue
            for n in (1, 2, 5, 8, 13):
                call = case(op, name, n, 11, 0, random.Random(n))
                call.choices = {first: a, second: b}
                run(call)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_size_root_and_number(data: st.DataObject) -> None:
    op, name = data.draw(st.sampled_from([x for x in ALL if x[1] != "nothing"]))
    n = data.draw(st.integers(1, 34))
    root = data.draw(st.integers(0, n - 1))
    size = data.draw(st.integers(0, 90))
    run(case(op, name, n, size, root, random.Random(data.draw(st.integers(0, 9)))))


# -- the checker itself can fail


def broken(call: Case, change: Any, members: tuple[int, ...] = (0,)) -> str:
    """What the checker says of a call whose ``members`` make other steps."""
    right = call.steps
    call.steps = lambda me: change(right(me)) if me in members else right(me)  # type: ignore[method-assign]
    with pytest.raises(WrongFlow) as error:
        run(call)
    return str(error.value)


def sends(steps: list[dict[str, Any]], **other: Any) -> list[dict[str, Any]]:
    """The steps with other facts of every send."""

    def changed(s: dict[str, Any]) -> dict[str, Any]:
        return s | {k: {**s[k], **v} if isinstance(v, dict) else v for k, v in other.items()}

    return [changed(s) if s["kind"] == "isend" else s for s in steps]


@pytest.mark.parametrize(
    ("call", "change", "members", "says"),
    [
        (Case("bcast", "binomial", 4, 0, 8), lambda steps: [], (0,), "waits for ever"),
        (Case("bcast", "binomial", 4, 0, 8), lambda steps: sends(steps, bytes=7), (0,), "7 B for 8 B of data"),
        (Case("bcast", "binomial", 4, 0, 8), lambda steps: sends(steps, bytes=7, moves={"ranges": [(0, 7)]}), (0,), "7 B came"),
        (Case("bcast", "binomial", 4, 0, 8), lambda steps: steps[:1], (3,), "never waited for"),
        (Case("bcast", "binomial", 4, 0, 8), lambda steps: [], (3,), "instead of [0]"),
        (Case("bcast", "linear", 4, 0, 8), lambda steps: steps[:-2], (0,), "waits for ever"),
        (Case("barrier", "dissemination", 4), lambda steps: [s for s in steps if s["kind"] != "wait"], (0,), "is in use"),
        (Case("reduce", "binomial", 2, 1, 8), lambda steps: [*steps, *steps], (0,), "without their other end"),
        (Case("allreduce", "doubling", 2, 0, 8), lambda steps: [*steps, *steps], (0, 1), "combined twice"),
        (Case("allreduce", "doubling", 2, 0, 8), lambda steps: steps[:-1], (0,), "B combined where"),
        (Case("gather", "linear", 3, 1, counts=[4, 4, 4]), lambda steps: sends(steps, moves={"ranges": [(2, 3)]}), (0,), "does not have"),
        (Case("allgather", "ring", 3, counts=[4, 4, 4]), lambda steps: sends(steps, peer=9), (0,), "no member 9"),
    ],
)
def test_the_checker_sees_what_is_wrong(call: Case, change: Any, members: tuple[int, ...], says: str) -> None:
    assert says in broken(call, change, members)


def test_every_algorithm_of_the_engine_belongs_to_an_operation_of_ours() -> None:
    known = set(_engine.collective_algorithms())
    assert set(OPERATIONS) <= known
    assert all(op.startswith("neighbor_") for op in known - set(OPERATIONS))
