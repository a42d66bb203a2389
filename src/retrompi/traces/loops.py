"""Loops in the calls of a rank: the longest repetition of a sequence of calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .lines import split

__all__ = ["CallLoop", "find_loop"]

MIN_TURNS = 3
_PARTS = (4, 8, 16, 32)


@dataclass(frozen=True)
class CallLoop:
    """A loop: ``starts[i]`` is the index of the first line of iteration i, ``end`` the index after the last call of the last iteration."""

    starts: tuple[int, ...]
    end: int

    @property
    def turns(self) -> int:
        """Number of iterations."""
        return len(self.starts)


def find_loop(lines: Sequence[str]) -> CallLoop | None:
    """The loop that covers the most calls of a rank; None if nothing repeats three times.

    Iterations are equal if their calls are, including peers, tags and sizes; computation, marks and request identities are ignored.
    The period is the shortest period of the middle half of the calls, so that an outer loop is preferred to an inner one if both
    cover the middle. If neither the middle nor a half is periodic (e.g. a reduction in every 25th of 100 iterations), successively
    shorter ranges are searched, and the longest loop found from one of them is returned.
    """
    at: list[int] = []
    calls: list[int] = []
    numbers: dict[tuple[object, ...], int] = {}
    for i, line in enumerate(lines):
        action, a, attributes = split(line)
        if action in ("#", "compute", "sleep", "kernel"):
            continue
        what = (
            action,
            *a,
            *(f"{k}={v}" for k, v in sorted(attributes.items()) if k not in ("req", "reqs", "done", "from", "mtag", "flag")),
        )
        at.append(i)
        calls.append(numbers.setdefault(what, len(numbers)))
    n = len(calls)
    if n < MIN_TURNS:
        return None
    best: tuple[int, int, int] | None = None  # covered, first, period
    wide = [(n // 4, n - n // 4), (0, n), (n // 2, n), (0, n // 2)]
    for stretches in (wide, *([(n * k // parts, n * (k + 1) // parts) for k in range(parts)] for parts in _PARTS)):
        for low, high in stretches:
            period = _period(calls[low:high])
            if period is None:
                continue
            first, last = _grow_range(calls, low, period)
            covered = (last - first) // period * period
            if covered // period >= MIN_TURNS and (best is None or covered > best[0]):
                best = covered, first, period
        if best is not None:
            break
    if best is None:
        return None
    covered, first, period = best
    starts = tuple(at[first + k] for k in range(0, covered, period))
    return CallLoop(starts, at[first + covered - 1] + 1)


def _grow_range(calls: Sequence[int], low: int, period: int) -> tuple[int, int]:
    """(first, last + 1) of the maximal range of calls around ``low`` with this ``period``."""
    first, last = low, low + period
    while first > 0 and calls[first - 1] == calls[first - 1 + period]:
        first -= 1
    while last < len(calls) and calls[last] == calls[last - period]:
        last += 1
    return first, last


def _period(calls: Sequence[int]) -> int | None:
    """The shortest period of a sequence of at least three periods, else None (failure function of Knuth, Morris and Pratt)."""
    n = len(calls)
    if n == 0:
        return None
    fail = [0] * n
    k = 0
    for i in range(1, n):
        while k and calls[i] != calls[k]:
            k = fail[k - 1]
        if calls[i] == calls[k]:
            k += 1
        fail[i] = k
    period = n - fail[-1]
    return period if n >= MIN_TURNS * period else None
