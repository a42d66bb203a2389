"""Rate tests of Hudson and Wang (section 3): one-way between two ranks, half to half, broadcast; with messages and one-sided.

Every function takes ``sizes`` (bytes) and ``reps``, and rank 0 has the marks ``size S reps R``. The bytes counted in a rate are given
by the generator's ``rule``: the paper does not define them and is not consistent (notes of HW-T2-*, HW-T6-*).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from retrompi._engine import Trace
from retrompi.base.errors import UsageError
from retrompi.traces.generate import GENERATORS, Generator

__all__ = ["broadcasts", "fork_join", "get_one_way", "halves", "one_sided_halves", "one_way", "put_one_way"]

Sizes = Sequence[int]


def _build(name: str, ranks: int, sizes: Sizes, reps: int, step: Callable[[int, int], str], end: str) -> Trace:
    """``step(rank, size)`` is one repetition of a rank, ``end`` closes the loop of a size (``{me}`` is the rank)."""
    if ranks < 2 or reps < 1 or not sizes:
        raise UsageError(f"{name} needs at least 2 ranks, 1 repetition and 1 size", code="out-of-range")
    sources = []
    for me in range(ranks):
        lines = [f"{me} init\n"]
        for size in sizes:
            mark = f"# mark size {size} reps {reps}\n" if me == 0 else ""
            lines.append(mark + step(me, size) * reps + end.format(me=me))
        lines.append(("# mark end\n" if me == 0 else "") + f"{me} finalize\n")
        sources.append(("".join(lines).encode(), f"{name}/rank-{me}.txt", me))
    return Trace.parse(sources)


def one_way(sizes: Sizes, reps: int) -> Trace:
    """Rank 0 sends ``reps`` messages to rank 1, which receives them; a barrier ends the loop."""
    return _build("one-way", 2, sizes, reps, lambda me, n: f"{me} {'recv' if me else 'send'} {1 - me} 0 {n} 6\n", "{me} barrier\n")


def put_one_way(sizes: Sizes, reps: int) -> Trace:
    """Rank 0 puts ``reps`` messages into rank 1's memory; a fence ends the loop."""
    return _build("put", 2, sizes, reps, lambda me, n: "" if me else f"0 Put 1 0 {n} 6\n", "{me} Win_fence\n")


def get_one_way(sizes: Sizes, reps: int) -> Trace:
    """Rank 0 gets ``reps`` messages out of rank 1's memory; a fence ends the loop."""
    return _build("get", 2, sizes, reps, lambda me, n: "" if me else f"0 Get 1 0 {n} 6\n", "{me} Win_fence\n")


def halves(ranks: int, sizes: Sizes, reps: int) -> Trace:
    """Half of the ranks send to their partners in the other half, which return the messages [HW-09]."""
    half = _half(ranks)

    def step(me: int, n: int) -> str:
        send, receive = f"{me} send {(me + half) % ranks} 0 {n} 6\n", f"{me} recv {(me + half) % ranks} 0 {n} 6\n"
        return send + receive if me < half else receive + send

    return _build("halves", ranks, sizes, reps, step, "{me} barrier\n")


def one_sided_halves(ranks: int, sizes: Sizes, reps: int, operation: str = "Put") -> Trace:
    """Both halves put to (or ``operation = "Get"``: get from) their partners at the same time, and a fence ends the loop."""
    half = _half(ranks)
    if operation not in ("Put", "Get"):
        raise UsageError(f"operation '{operation}' is neither Put nor Get", code="unknown-name")


    def step(me: int, n: int) -> str:
        return f"{me} {operation} {(me + half) % ranks} 0 {n} 6\n"

    return _build(f"{operation} halves", ranks, sizes, reps, step, "{me} Win_fence\n")


def broadcasts(ranks: int, sizes: Sizes, reps: int) -> Trace:
    """``reps`` broadcasts from rank 0 to all ranks, then a barrier."""
    return _build("broadcasts", ranks, sizes, reps, lambda me, n: f"{me} bcast {n} 0 6\n", "{me} barrier\n")


def _half(ranks: int) -> int:
    if ranks < 2 or ranks % 2:
        raise UsageError(f"half-to-half needs an even number of ranks, not {ranks}", code="wrong-ranks")
    return ranks // 2


GENERATORS |= {
    "one_way": Generator(one_way, rule="the bytes of one message in the time of one, messages following each other"),
    "put_one_way": Generator(put_one_way, rule="the bytes of one put in the time of one, puts following each other"),
    "get_one_way": Generator(get_one_way, rule="the bytes of one get in the time of one, gets following each other"),
    "halves": Generator(
        halves, parts=2, counted=lambda size, a: size * int(a["ranks"]) // 2,
        rule="half of the ranks send at a time: one message a pair in half the time of a repetition (out and back)",
    ),
    "one_sided_halves": Generator(
        one_sided_halves, counted=lambda size, a: size * int(a["ranks"]),
        rule="all ranks transfer at the same time: one message a rank in the time of a repetition",
    ),
    "broadcasts": Generator(
        broadcasts, counted=lambda size, a: size * int(a["ranks"]), rule="the bytes of one message times the ranks in the broadcast"
    ),
}


def fork_join(ranks: int, fraction: float, flops: float, regions: int = 10) -> Trace:
    """A program of ``flops`` operations with a parallel ``fraction``: in each of ``regions`` rank 0 computes the serial part while the
    others wait, then all compute their share, separated by barriers. Rank 0 has the marks ``begin`` and ``end``. Raises UsageError."""
    if ranks < 1 or regions < 1 or not 0 <= fraction <= 1 or not flops > 0:
        raise UsageError("fork_join needs a rank, a region, a fraction of 0 to 1 and an amount of work")
    serial, share = flops * (1 - fraction) / regions, flops * fraction / regions / ranks
    sources = []
    for me in range(ranks):
        alone = f"0 compute {serial!r}\n" if me == 0 and serial > 0 else ""
        step = f"{alone}{me} barrier\n" + (f"{me} compute {share!r}\n" if share > 0 else "") + f"{me} barrier\n"
        begin, end = ("# mark begin\n", "# mark end\n") if me == 0 else ("", "")
        sources.append((f"{me} init\n{begin}{step * regions}{end}{me} finalize\n".encode(), f"fork-join/rank-{me}.txt", me))
    return Trace.parse(sources)
