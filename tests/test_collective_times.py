"""On an ideal network every algorithm takes the time and the messages of its closed form, to the picosecond.

c(n) = alpha + n beta is a message; the sender is busy for it, the receiver is not (tests/ideal.py). Vectors are multiples of the number of
their pieces, so that the forms have no rounding; odd sizes are compared with the critical path of the steps instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cases import for_each
from collective_flow import Case
from ideal import cost as c
from ideal import run

MEMBERS = range(2, 18)
BLOCKS = (0, 8, 1000)
"""Bytes of a block, or of a piece of a vector."""


def power(p: int) -> int:
    """The largest power of two up to p."""
    return 1 << (p.bit_length() - 1)


def up(p: int) -> int:
    """ceil(log2 p): rounds of a dissemination, depth of a tree whose root sends to its largest subtree first."""
    return (p - 1).bit_length()


def depth(p: int) -> int:
    """Depth of a binomial tree in messages on a path, when children do not wait for each other."""
    return max(r.bit_count() for r in range(p))


def is_power(p: int) -> bool:
    return p == power(p)


def anyone(p: int) -> bool:
    return True


def scatter(p: int, b: int) -> int:
    """A binomial scatter of p blocks until the last has its own: the root gives away what is beyond a power of two, and both go on."""
    if p == 1:
        return 0
    half = 1 << ((p - 1).bit_length() - 1)
    return c((p - half) * b) + max(scatter(p - half, b), scatter(half, b))


def gather(p: int, b: int) -> int:
    """A binomial gather of p blocks until the root has all; its children do not wait for each other."""
    children = [(m, min(m, p - m)) for m in (1 << k for k in range(up(p)))]
    return max((gather(size, b) + c(size * b) for _, size in children), default=0)


def halves(p: int, b: int) -> int:
    """log2 p messages of half of the vector, a quarter and so on down to one of p pieces of b bytes."""
    return sum(c((p >> k) * b) for k in range(1, up(p) + 1))


def folded(p: int) -> int:
    """1 when some members are beside the power of two."""
    return int(not is_power(p))


def weight_scatter(p: int) -> int:
    """Blocks that a binomial scatter or gather sends in all."""
    if p == 1:
        return 0
    half = 1 << ((p - 1).bit_length() - 1)
    return (p - half) + weight_scatter(p - half) + weight_scatter(half)


def bintree(p: int) -> int:
    """Messages on the longest way down a binary tree, the left child's first: member m of level k has m + 2^k and m + 2^(k+1) below it."""

    def below(m: int) -> int:
        width = 1 << ((m + 1).bit_length() - 1)
        return max((k + below(m + k * width) for k in (1, 2) if m + k * width < p), default=0)

    return below(0)


Form = tuple[Callable[[int], bool], Callable[[int, int], int], Callable[[int, int], int], Callable[[int, int], int]]
# (operation, algorithm): for which p; picoseconds, messages, bytes of p members and blocks (or pieces of a vector) of b bytes.
# A vector of bcast, reduce, allreduce, scan has p pieces (Rabenseifner's: as many as the power of two).
FORMS: dict[tuple[str, str], Form] = {
    ("barrier", "dissemination"): (anyone, lambda p, b: up(p) * c(0), lambda p, b: p * up(p), lambda p, b: 0),
    ("barrier", "power_of_two"): (anyone, lambda p, b: (up(power(p)) + 2 * folded(p)) * c(0),
                                  lambda p, b: power(p) * up(power(p)) + 2 * (p - power(p)), lambda p, b: 0),
    ("barrier", "tree"): (anyone, lambda p, b: (depth(p) + up(p)) * c(0), lambda p, b: 2 * (p - 1), lambda p, b: 0),
    # a synchronous send is a message and its acknowledgement; half of a power of two reports first and is released last
    ("barrier", "doubling"): (is_power, lambda p, b: (2 if p == 2 else 2 * up(p) + 1) * c(0),
                              lambda p, b: 2 if p == 2 else p + p // 2 * (up(p) - 1), lambda p, b: 0),
    ("bcast", "binomial"): (anyone, lambda p, b: up(p) * c(p * b), lambda p, b: p - 1, lambda p, b: (p - 1) * p * b),
    ("bcast", "folded"): (anyone, lambda p, b: (up(power(p)) + folded(p)) * c(p * b), lambda p, b: p - 1, lambda p, b: (p - 1) * p * b),
    ("bcast", "linear"): (anyone, lambda p, b: (p - 1) * c(p * b), lambda p, b: p - 1, lambda p, b: (p - 1) * p * b),
    ("bcast", "posted"): (anyone, lambda p, b: (p - 1) * c(p * b), lambda p, b: p - 1, lambda p, b: (p - 1) * p * b),
    ("bcast", "bintree"): (anyone, lambda p, b: bintree(p) * c(p * b), lambda p, b: p - 1, lambda p, b: (p - 1) * p * b),
    ("bcast", "scatter_doubling"): (is_power, lambda p, b: (scatter(p, b) if b else 0) + halves(p, b),
                                    lambda p, b: (p - 1 if b else 0) + p * up(p), lambda p, b: weight_scatter(p) * b + p * (p - 1) * b),
    ("bcast", "scatter_ring"): (anyone, lambda p, b: (scatter(p, b) if b else 0) + (p - 1) * c(b),
                                lambda p, b: (p - 1 if b else 0) + p * (p - 1), lambda p, b: weight_scatter(p) * b + p * (p - 1) * b),
    ("reduce", "binomial"): (anyone, lambda p, b: depth(p) * c(p * b), lambda p, b: p - 1, lambda p, b: (p - 1) * p * b),
    ("reduce", "linear"): (anyone, lambda p, b: c(p * b), lambda p, b: p - 1, lambda p, b: (p - 1) * p * b),
    ("reduce", "linear_copy"): (anyone, lambda p, b: c(p * b), lambda p, b: p - 1, lambda p, b: (p - 1) * p * b),
    ("reduce", "rabenseifner"): (anyone, lambda p, b: folded(p) * c(power(p) * b) + 2 * halves(power(p), b),
                                 lambda p, b: p - power(p) + power(p) * up(power(p)) + power(p) - 1,
                                 lambda p, b: (p - power(p)) * power(p) * b + power(p) * (power(p) - 1) * b + weight_scatter(power(p)) * b),
    ("allreduce", "reduce_bcast"): (anyone, lambda p, b: (depth(p) + up(p)) * c(p * b), lambda p, b: 2 * (p - 1),
                                  lambda p, b: 2 * (p - 1) * p * b),
    ("allreduce", "doubling"): (anyone, lambda p, b: (up(power(p)) + 2 * folded(p)) * c(p * b),
                                  lambda p, b: power(p) * up(power(p)) + 2 * (p - power(p)),
                                lambda p, b: (power(p) * up(power(p)) + 2 * (p - power(p))) * p * b),
    ("allreduce", "rabenseifner"): (anyone, lambda p, b: 2 * halves(power(p), b) + 2 * folded(p) * c(power(p) * b),
                                    lambda p, b: 2 * power(p) * up(power(p)) + 2 * (p - power(p)),
                                    lambda p, b: (2 * power(p) * (power(p) - 1) + 2 * (p - power(p)) * power(p)) * b),
    ("allreduce", "ring"): (anyone, lambda p, b: 2 * (p - 1) * c(b), lambda p, b: 2 * p * (p - 1), lambda p, b: 2 * p * (p - 1) * b),
    ("allgather", "ring"): (anyone, lambda p, b: (p - 1) * c(b), lambda p, b: p * (p - 1), lambda p, b: p * (p - 1) * b),
    ("allgather", "doubling"): (is_power, lambda p, b: halves(p, b), lambda p, b: p * up(p), lambda p, b: p * (p - 1) * b),
    ("allgather", "bruck"): (anyone, lambda p, b: sum(c(min(1 << k, p - (1 << k)) * b) for k in range(up(p))), lambda p, b: p * up(p),
                             lambda p, b: p * (p - 1) * b),
    ("allgather", "gather_bcast"): (anyone, lambda p, b: c(b) + up(p) * c(p * b), lambda p, b: 2 * (p - 1),
                                  lambda p, b: (p - 1) * (b + p * b)),
    ("allgatherv", "ring"): (anyone, lambda p, b: (p - 1) * c(b), lambda p, b: p * (p - 1), lambda p, b: p * (p - 1) * b),
    ("allgatherv", "ring_pipelined"): (anyone, lambda p, b: (p - 1) * c(b) if b else 0, lambda p, b: p * (p - 1) if b else 0,
                                  lambda p, b: p * (p - 1) * b),
    ("allgatherv", "doubling"): (is_power, lambda p, b: halves(p, b), lambda p, b: p * up(p), lambda p, b: p * (p - 1) * b),
    ("allgatherv", "bruck"): (anyone, lambda p, b: sum(c(min(1 << k, p - (1 << k)) * b) for k in range(up(p))), lambda p, b: p * up(p),
                              lambda p, b: p * (p - 1) * b),
    ("allgatherv", "gather_bcast"): (anyone, lambda p, b: c(b) + up(p) * c(p * b), lambda p, b: 2 * (p - 1),
                                  lambda p, b: (p - 1) * (b + p * b)),
    ("alltoall", "posted"): (anyone, lambda p, b: (p - 1) * c(b), lambda p, b: p * p, lambda p, b: p * p * b),
    ("alltoall", "linear"): (anyone, lambda p, b: (p - 1) * c(b), lambda p, b: p * (p - 1), lambda p, b: p * (p - 1) * b),
    ("alltoall", "rotated"): (anyone, lambda p, b: (p - 1) * c(b), lambda p, b: p * (p - 1), lambda p, b: p * (p - 1) * b),
    ("alltoall", "in_order"): (anyone, lambda p, b: (p - 1) * c(b), lambda p, b: p * p, lambda p, b: p * p * b),
    ("alltoall", "throttled_4"): (anyone, lambda p, b: (p - 1) * c(b), lambda p, b: p * p, lambda p, b: p * p * b),
    ("alltoall", "throttled_32"): (anyone, lambda p, b: (p - 1) * c(b), lambda p, b: p * p, lambda p, b: p * p * b),
    ("alltoall", "pairwise"): (anyone, lambda p, b: (p - 1) * c(b), lambda p, b: p * (p - 1), lambda p, b: p * (p - 1) * b),
    ("alltoall", "bruck"): (anyone, lambda p, b: sum(c(sum(1 for d in range(p) if d >> k & 1) * b) for k in range(up(p))),
                                  lambda p, b: p * up(p),
                            lambda p, b: p * b * sum(d.bit_count() for d in range(p))),
    ("alltoallv", "posted"): (anyone, lambda p, b: (p - 1) * c(b), lambda p, b: p * p, lambda p, b: p * p * b),
    ("alltoallv", "linear"): (anyone, lambda p, b: (p - 1) * c(b), lambda p, b: p * (p - 1), lambda p, b: p * (p - 1) * b),
    ("alltoallv", "in_order"): (anyone, lambda p, b: (p - 1) * c(b), lambda p, b: p * p, lambda p, b: p * p * b),
    ("alltoallv", "throttled_4"): (anyone, lambda p, b: (p - 1) * c(b) if b else 0, lambda p, b: p * p if b else 0, lambda p, b: p * p * b),
    ("alltoallv", "pairwise"): (anyone, lambda p, b: (p - 1) * c(b), lambda p, b: p * (p - 1), lambda p, b: p * (p - 1) * b),
    ("gather", "linear"): (anyone, lambda p, b: c(b), lambda p, b: p - 1, lambda p, b: (p - 1) * b),
    ("gather", "posted"): (anyone, lambda p, b: c(b) if b else 0, lambda p, b: p - 1 if b else 0, lambda p, b: (p - 1) * b),
    ("gather", "binomial"): (anyone, lambda p, b: gather(p, b), lambda p, b: p - 1, lambda p, b: weight_scatter(p) * b),
    ("gatherv", "linear"): (anyone, lambda p, b: c(b), lambda p, b: p - 1, lambda p, b: (p - 1) * b),
    ("gatherv", "posted"): (anyone, lambda p, b: c(b) if b else 0, lambda p, b: p - 1 if b else 0, lambda p, b: (p - 1) * b),
    ("scatter", "linear"): (anyone, lambda p, b: (p - 1) * c(b), lambda p, b: p - 1, lambda p, b: (p - 1) * b),
    ("scatter", "posted"): (anyone, lambda p, b: (p - 1) * c(b) if b else 0, lambda p, b: p - 1 if b else 0, lambda p, b: (p - 1) * b),
    ("scatter", "binomial"): (anyone, lambda p, b: scatter(p, b), lambda p, b: p - 1, lambda p, b: weight_scatter(p) * b),
    ("scatterv", "linear"): (anyone, lambda p, b: (p - 1) * c(b), lambda p, b: p - 1, lambda p, b: (p - 1) * b),
    ("scatterv", "posted"): (anyone, lambda p, b: (p - 1) * c(b) if b else 0, lambda p, b: p - 1 if b else 0, lambda p, b: (p - 1) * b),
    ("reducescatter", "reduce_scatterv"): (anyone, lambda p, b: depth(p) * c(p * b) + (p - 1) * c(b), lambda p, b: 2 * (p - 1),
                                           lambda p, b: (p - 1) * (p * b + b)),
    ("reducescatter", "halving"): (is_power, lambda p, b: halves(p, b) if b else 0, lambda p, b: p * up(p) if b else 0,
                                  lambda p, b: p * (p - 1) * b),
    ("reducescatter", "pairwise"): (anyone, lambda p, b: (p - 1) * c(b) if b else 0, lambda p, b: p * (p - 1) if b else 0,
                                  lambda p, b: p * (p - 1) * b),
    ("scan", "linear"): (anyone, lambda p, b: (p - 1) * c(p * b), lambda p, b: p - 1, lambda p, b: (p - 1) * p * b),
    ("scan", "doubling"): (anyone, lambda p, b: up(p) * c(p * b), lambda p, b: exchanges(p), lambda p, b: exchanges(p) * p * b),
    ("exscan", "linear"): (anyone, lambda p, b: (p - 1) * c(p * b), lambda p, b: p - 1, lambda p, b: (p - 1) * p * b),
    ("exscan", "doubling"): (anyone, lambda p, b: up(p) * c(p * b), lambda p, b: exchanges(p), lambda p, b: exchanges(p) * p * b),
}


def exchanges(p: int) -> int:
    """Messages of members that have a partner at each power of two."""
    return sum(1 for k in range(up(p)) for r in range(p) if r ^ (1 << k) < p)


def lines(op: str, p: int, b: int, root: int = 0, vector: int | None = None) -> list[str]:
    """The call as a trace's line for each of p members: blocks of b bytes, vectors of p of them."""
    n = p * b if vector is None else vector
    counts = " ".join([str(b)] * p)
    match op:
        case "barrier":
            line = "barrier"
        case "bcast":
            line = f"bcast {n} {root} 6"
        case "reduce":
            line = f"reduce {n} 0 {root} 6"
        case "allreduce" | "scan" | "exscan":
            line = f"{op} {n} 0 6"
        case "reducescatter":
            line = f"reducescatter {counts} 0 6"
        case "gather" | "scatter":
            line = f"{op} {b} {b} {root} 6 6"
        case "gatherv":
            line = f"gatherv {b} {counts} {root} 6 6"
        case "scatterv":
            line = f"scatterv {counts} {b} {root} 6 6"
        case "allgather" | "alltoall":
            line = f"{op} {b} {b} 6 6"
        case "allgatherv":
            line = f"allgatherv {b} {counts} 6 6"
        case _:
            line = f"alltoallv {p * b} {counts} {p * b} {counts} 6 6"
    return [line] * p


def pieces(name: str, p: int) -> int:
    return power(p) if name == "rabenseifner" else p


@for_each("op, name", FORMS)
def test_time_messages_and_bytes_are_those_of_the_closed_form(op: str, name: str) -> None:
    applies, time, messages, volume = FORMS[op, name]
    for p in MEMBERS:
        if not applies(p):
            continue
        for b in BLOCKS:
            if op == "reducescatter" and b == 0:
                continue  # such a line is refused: SMPI writes it for another operation
            got = run(lines(op, p, b, vector=pieces(name, p) * b), algorithms={op: name})
            assert got["time_ps"] == time(p, b), (p, b)
            assert (got["messages"], got["bytes"]) == (messages(p, b), volume(p, b)), (p, b)
            assert (op, name, p) in got["collectives"]


def test_every_algorithm_made_of_messages_alone_has_a_closed_form() -> None:
    from retrompi.spec.collectives import OPERATIONS, algorithms

    # pipelines below; nodes: test_collectives_on_nodes
    apart = {"put_tree", "by_reference", "nothing", "nodes", "nodes_scatter", "nodes_forward", *PIPELINES}
    like = {("reducescatterblock", "*"), ("alltoallw", "*"), ("alltoallv", "throttled_32")}  # the same code as the form that is there
    left = [(op, a) for op in OPERATIONS for a in algorithms(op) if a not in apart and (op, a) not in FORMS]
    assert {(op, a) for op, a in left if (op, "*") not in like} <= like


PIPELINES = {"chain": 8192, "pipeline_16k": 16384, "bintree_16k": 16384}
"""Broadcasts in segments of so many bytes."""


@for_each("n", [1, 16384, 16385, 100_000])
def test_a_tree_in_segments_of_16_kib_is_one_of_whole_messages_for_each(n: int) -> None:
    """Two children limit a member to two messages a segment; down a chain each segment takes one."""
    segments = [min(16384, n - at) for at in range(0, n, 16384)]
    for p in (3, 4, 7, 9, 17):
        for name, first, others in (("bintree_16k", bintree(p), 2), ("pipeline_16k", p - 1, 1)):
            got = run(lines("bcast", p, 0, vector=n), algorithms={"bcast": name})
            assert (got["messages"], got["bytes"]) == ((p - 1) * len(segments), (p - 1) * n)
            full = max(map(c, segments))
            least = (first - others) * c(segments[-1]) + others * sum(map(c, segments))
            assert least <= got["time_ps"] <= (first - others) * full + others * sum(map(c, segments)), (name, p)


@for_each("p", [2, 3, 5, 9, 17])
@for_each("n", [1, 8192, 8193, 100_000])
def test_a_pipelined_chain_takes_all_segments_and_one_more_for_each_link(p: int, n: int) -> None:
    segments = [min(8192, n - at) for at in range(0, n, 8192)]
    got = run(lines("bcast", p, 0, vector=n), algorithms={"bcast": "chain"})
    assert got["time_ps"] == sum(map(c, segments)) + (p - 2) * max(map(c, segments))
    assert (got["messages"], got["bytes"]) == ((p - 1) * len(segments), (p - 1) * n)


# -- any size, any number: the critical path of the steps


def critical_path(case: Case) -> int:
    """Picoseconds until the last member is through, from the steps alone: a send takes c(n) of its member, a wait for a receive lasts until
    the send of the other end is through."""
    steps = [case.steps(me) for me in range(case.n)]
    now, at = [0] * case.n, [0] * case.n
    sent: dict[tuple[int, int], list[int]] = {}
    taken: dict[tuple[int, int], int] = {}
    open_receives: list[dict[int, tuple[int, int, int]]] = [{} for _ in range(case.n)]

    def wait(me: int, slot: int) -> bool:
        if slot in open_receives[me]:
            other, mine, number = open_receives[me][slot]
            if len(sent.get((other, mine), ())) <= number:
                return False
            now[me] = max(now[me], sent[other, mine][number])
            del open_receives[me][slot]
        return True

    moved = True
    while moved:
        moved = False
        for me in range(case.n):
            while at[me] < len(steps[me]):
                step = steps[me][at[me]]
                if step["kind"] == "isend":
                    if step["peer"] != me:
                        now[me] += c(step["bytes"])
                    sent.setdefault((me, step["peer"]), []).append(now[me])
                elif step["kind"] == "irecv":
                    pair = (step["peer"], me)
                    open_receives[me][step["slot"]] = (*pair, taken.get(pair, 0))
                    taken[pair] = taken.get(pair, 0) + 1
                elif step["kind"] in ("wait", "waitall"):
                    slots = [step["slot"]] if step["kind"] == "wait" else list(open_receives[me])
                    if not all(wait(me, slot) for slot in slots):
                        break
                at[me] += 1
                moved = True
    assert at == [len(s) for s in steps]
    return max(now)


@for_each("op, name", [*(form for form in FORMS if form != ("barrier", "doubling")), *(("bcast", name) for name in PIPELINES)])
def test_odd_sizes_and_numbers_take_the_critical_path_of_the_steps(op: str, name: str) -> None:
    for p in MEMBERS:
        root = p // 3 if op in ("bcast", "reduce", "gather", "gatherv", "scatter", "scatterv") else 0
        for b in (1, 333, 10_007):
            facts: dict[str, Any] = {"root": root}
            if op in ("bcast", "reduce", "allreduce", "scan", "exscan"):
                facts["size"] = b
            elif op.startswith("alltoall"):
                facts["matrix"] = [[b] * p for _ in range(p)]
            elif op != "barrier":
                facts["counts"] = [b] * p
            got = run(lines(op, p, b, root, vector=b), algorithms={op: name})
            assert got["time_ps"] == critical_path(Case(op, name, p, **facts)), (p, b)
