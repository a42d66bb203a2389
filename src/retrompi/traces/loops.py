"""Loops in a rank's calls: the longest stretch that repeats one sequence of calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .lines import split

__all__ = ["Loop", "find_loop"]

MIN_TURNS = 3
_PARTS = (4, 8, 16, 32)


@dataclass(frozen=True)
class Loop:
    """A loop: ``starts[i]`` is the index of the line with which turn i begins, ``end`` the index after the last turn's last call."""

    starts: tuple[int, ...]
    end: int

    @property
    def turns(self) -> int:
        """How many turns it has."""
        return len(self.starts)


def find_loop(lines: Sequence[str]) -> Loop | None:
    """The loop that covers the most calls of a rank; None when nothing repeats three times.

    Two turns are the same when their calls are, with peers, tags and sizes; computation, marks and identities of requests do not count.
    The period is the shortest one of the middle half of the calls, so that a loop within an outer loop gives way to the outer one when both
    cover the middle. Where neither half nor middle repeats anything (a sum in every 25th of 100 turns interrupts it) ever shorter
    stretches are looked at, and the longest loop that one of them begins counts.
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
            first, last = _grown(calls, low, period)
            covered = (last - first) // period * period
            if covered // period >= MIN_TURNS and (best is None or covered > best[0]):
                best = covered, first, period
        if best is not None:
            break
    if best is None:
        return None
    covered, first, period = best
    starts = tuple(at[first + k] for k in range(0, covered, period))
    return Loop(starts, at[first + covered - 1] + 1)


def _grown(calls: Sequence[int], low: int, period: int) -> tuple[int, int]:
    """First call, and the one after the last, of all that repeats with ``period`` around ``low``."""
    first, last = low, low + period
    while first > 0 and calls[first - 1] == calls[first - 1 + period]:
        first -= 1
    while last < len(calls) and calls[last] == calls[last - period]:
        last += 1
    return first, last


def _period(calls: Sequence[int]) -> int | None:
    """The shortest period of a sequence that it repeats at least three times (Knuth, Morris and Pratt's failure function)."""
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
