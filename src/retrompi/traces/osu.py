"""Benchmarks of the Nemesis study: OSU latency and bandwidth, and the overlap test that the paper derived from NetMPI.

Marks as in `generate`: ``size S reps R`` on rank 0 before each timed part, ``end`` after the last. The
warm-up has the mark ``warm-up``, which is not reported as a row.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from retrompi._engine import Trace
from retrompi.base.errors import UsageError
from retrompi.traces.making import Again, trace_of_lines

__all__ = ["LATENCY_SIZES", "bandwidth", "latency", "overlap"]

LATENCY_SIZES: tuple[int, ...] = (0, *(1 << k for k in range(23)))
"""0 B and the powers of two up to 4 MiB."""
MESSAGES = 4
"""Messages in each direction of an overlap test."""
LARGE = 8192
"""OSU's threshold (B) of large messages, which have fewer repetitions."""


def latency(sizes: Iterable[int] = LATENCY_SIZES, reps: int = 0, warm_up: int = 2) -> Trace:
    """OSU latency: PingPong of two ranks after ``warm_up`` untimed exchanges.

    ``reps`` 0 is 100 up to 8 KiB and 10 above it; OSU uses a hundred times as many, which does not change the simulated mean.
    """
    ranks: list[list[str | Again]] = [["0 init\n"], ["1 init\n"]]
    for size in _sizes(sizes):
        n = reps or (100 if size <= LARGE else 10)
        ping, pong = f"0 send 1 0 {size} 6\n0 recv 1 0 {size} 6\n", f"1 recv 0 0 {size} 6\n1 send 0 0 {size} 6\n"
        ranks[0] += ["# mark warm-up\n", Again(ping, warm_up), f"# mark size {size} reps {n}\n", Again(ping, n)]
        ranks[1].append(Again(pong, warm_up + n))
    return _trace("osu-latency", ranks)


def bandwidth(sizes: Iterable[int] = LATENCY_SIZES[1:], window: int = 64, reps: int = 0, warm_up: int = 1) -> Trace:
    """OSU bandwidth: rank 0 sends ``window`` messages without waiting, rank 1 replies with 4 B after receiving all of them.

    A row's repetitions are messages, so its time is that of one message. ``reps`` windows of a size, 0 for 4 up to 8 KiB
    and 2 above it (OSU takes many more).
    """
    if window < 1:
        raise UsageError(f"a window is of at least 1 message, not {window}", code="out-of-range")
    ranks: list[list[str | Again]] = [["0 init\n"], ["1 init\n"]]
    for size in _sizes(sizes):
        n = reps or (4 if size <= LARGE else 2)
        send = f"0 isend 1 100 {size} 6\n" * window + f"0 waitall {window}\n0 recv 1 101 4 6\n"
        receive = f"1 irecv 0 100 {size} 6\n" * window + f"1 waitall {window}\n1 send 0 101 4 6\n"
        ranks[0] += ["# mark warm-up\n", Again(send, warm_up), f"# mark size {size} reps {n * window}\n", Again(send, n)]
        ranks[1].append(Again(receive, warm_up + n))
    return _trace("osu-bandwidth", ranks)


@dataclass(frozen=True)
class Overlap:
    """The modified NetMPI test: ranks 0 and 1 exchange ``messages`` messages each way without waiting, compute between calls of
    MPI_Testall, and wait for the remaining messages after ``tests`` of these.

    ``compute_ns`` nanoseconds of computation on a host of ``flops`` operations per second. Further ``ranks`` only open connections:
    each sends one empty message to rank 0, which is not timed.
    """

    size: int
    messages: int = MESSAGES
    tests: int = 1000
    compute_ns: float = 300.0
    flops: float = 2.33e9
    ranks: int = 2
    reps: int = 1


def overlap(size: int, **options: Any) -> Trace:
    """The trace of an `Overlap`; ``options`` are its fields."""
    o = Overlap(size, **options)
    if min(o.messages, o.tests, o.reps) < 1 or o.ranks < 2:
        raise UsageError("overlap needs at least 1 message, 1 test, 1 repetition and 2 ranks", code="out-of-range")
    _sizes([size])
    messages, tests, ranks, reps = o.messages, o.tests, o.ranks, o.reps
    work = f"compute {o.compute_ns * 1e-9 * o.flops!r}\n"
    lines: list[list[str | Again]] = [["0 init\n"], ["1 init\n"]]
    lines += ([f"{r} init\n{r} send 0 7 0 6\n"] for r in range(2, ranks))
    lines[0] += [f"0 recv {r} 7 0 6\n" for r in range(2, ranks)]
    for me, other in ((0, 1), (1, 0)):
        post = f"{me} irecv {other} 0 {size} 6\n" * messages + f"{me} isend {other} 0 {size} 6\n" * messages
        step = post + f"{me} testall {2 * messages}\n{me} {work}" * tests + f"{me} waitall {2 * messages}\n"
        greet = f"{me} {'send' if me == 0 else 'recv'} {other} 8 0 6\n{me} {'recv' if me == 0 else 'send'} {other} 8 0 6\n"
        lines[me].append(greet)
        if me == 0:
            lines[me].append(f"# mark size {size} reps {reps}\n")
        lines[me].append(Again(step, reps))
    return _trace("overlap", lines)


overlap.__signature__ = inspect.signature(Overlap)  # type: ignore[attr-defined]
"""The signature reported by `retrompi.traces.generate.Generator`."""


def _sizes(sizes: Iterable[int]) -> tuple[int, ...]:
    told = tuple(sizes)
    if not told:
        raise UsageError("at least one message size is needed", code="out-of-range")
    for size in told:
        if size < 0:
            raise UsageError(f"a message size is at least 0 B, not {size}", code="out-of-range")
    return told


def _trace(name: str, ranks: list[list[str | Again]]) -> Trace:
    ends = ["# mark end\n0 finalize\n", *(f"{r} finalize\n" for r in range(1, len(ranks)))]
    return trace_of_lines(name, ([*lines, end] for lines, end in zip(ranks, ends, strict=True)))
