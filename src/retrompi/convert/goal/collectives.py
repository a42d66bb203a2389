"""Collectives as point-to-point messages, for formats without collectives.

The algorithms are the basic ones of the first MPI libraries, independent of any runtime model: binomial trees (broadcast, reduce),
linear gather and scatter, a ring (allgather), pairwise exchange (alltoall), dissemination (barrier), a chain (scan), and reduce followed
by broadcast (allreduce) or scatter (reduce_scatter).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["Step", "expand"]

Step = list[tuple[str, int, int]]
"""Operations started together and waited for together: ("send" | "recv", rank of the communicator, bytes)."""


def _barrier(me: int, n: int, a: Sequence[int]) -> list[Step]:
    steps: list[Step] = []
    k = 1
    while k < n:
        steps.append([("send", (me + k) % n, 0), ("recv", (me - k) % n, 0)])
        k *= 2
    return steps


def _bcast(me: int, n: int, a: Sequence[int]) -> list[Step]:
    size, root = a[0], a[1]
    at, k, steps = (me - root) % n, 1, list[Step]()
    while k < n and not at & k:
        k *= 2
    if at:
        steps.append([("recv", (me - k) % n, size)])
    k //= 2
    while k:
        if at + k < n:
            steps.append([("send", (me + k) % n, size)])
        k //= 2
    return steps


def _reduce(me: int, n: int, a: Sequence[int]) -> list[Step]:
    size, root = a[0], a[1]
    at, k, steps = (me - root) % n, 1, list[Step]()
    while k < n:
        if at & k:
            steps.append([("send", (me - k) % n, size)])
            break
        if at + k < n:
            steps.append([("recv", (me + k) % n, size)])
        k *= 2
    return steps


def _allreduce(me: int, n: int, a: Sequence[int]) -> list[Step]:
    return _reduce(me, n, [a[0], 0]) + _bcast(me, n, [a[0], 0])


def _chain(me: int, n: int, a: Sequence[int]) -> list[Step]:
    steps: list[Step] = [[("recv", me - 1, a[0])]] if me else []
    return [*steps, [("send", me + 1, a[0])]] if me + 1 < n else steps


def _gather(me: int, n: int, a: Sequence[int]) -> list[Step]:
    """a: bytes of every rank, then the root."""
    counts, root = a[:n], a[n]
    if me != root:
        return [[("send", root, counts[me])]]
    return [[("recv", r, counts[r]) for r in range(n) if r != root]] if n > 1 else []


def _scatter(me: int, n: int, a: Sequence[int]) -> list[Step]:
    counts, root = a[:n], a[n]
    if me != root:
        return [[("recv", root, counts[me])]]
    return [[("send", r, counts[r]) for r in range(n) if r != root]] if n > 1 else []


def _allgather(me: int, n: int, a: Sequence[int]) -> list[Step]:
    return [[("send", (me + 1) % n, a[(me - k) % n]), ("recv", (me - 1) % n, a[(me - k - 1) % n])] for k in range(n - 1)]


def _alltoall(me: int, n: int, a: Sequence[int]) -> list[Step]:
    """a: bytes to every rank, then bytes from every rank."""
    return [[("send", (me + k) % n, a[(me + k) % n]), ("recv", (me - k) % n, a[n + (me - k) % n])] for k in range(1, n)]


def _reduce_scatter(me: int, n: int, a: Sequence[int]) -> list[Step]:
    return _reduce(me, n, [sum(a[:n]), 0]) + _scatter(me, n, [*a[:n], 0])


Work = Callable[[int, int, Sequence[int]], list[Step]]


def expand(action: str, a: Sequence[str], me: int, n: int, counts: Callable[[int], Sequence[int]]) -> list[Step] | None:
    """The steps of rank ``me`` of ``n`` for a collective's line (action, arguments in bytes); None for an unknown action.

    ``counts(r)`` returns the numbers on another member's line, needed where only the root has them.
    """

    def num(i: int) -> int:
        return int(float(a[i]))

    name = action.removeprefix("i") if action not in ("init",) else action
    if n == 1:
        return []
    match name:
        case "barrier":
            return _barrier(me, n, [])
        case "bcast":
            return _bcast(me, n, [num(0), num(1)])
        case "reduce":
            return _reduce(me, n, [num(0), num(2)])
        case "allreduce":
            return _allreduce(me, n, [num(0)])
        case "scan" | "exscan":
            return _chain(me, n, [num(0)])
        case "reducescatter":
            return _reduce_scatter(me, n, [num(i) for i in range(n)])
        case "reducescatterblock":
            return _reduce_scatter(me, n, [num(0)] * n)
        case "gather":
            return _gather(me, n, [*[num(0)] * n, num(2)])
        case "scatter":
            return _scatter(me, n, [*[num(1)] * n, num(2)])
        case "gatherv":
            root = num(n + 1)
            return _gather(me, n, [*(int(counts(r)[0]) for r in range(n)), root])
        case "scatterv":
            root = num(n + 1)
            return _scatter(me, n, [*(int(counts(r)[n]) for r in range(n)), root])
        case "allgather":
            return _allgather(me, n, [num(0)] * n)
        case "allgatherv":
            return _allgather(me, n, [num(1 + i) for i in range(n)])
        case "alltoall":
            return _alltoall(me, n, [num(0)] * n + [num(1)] * n)
        case "alltoallv":
            return _alltoall(me, n, [num(1 + i) for i in range(n)] + [num(2 + n + i) for i in range(n)])
        case "alltoallw":
            return _alltoall(me, n, [num(i) for i in range(2 * n)])
    return None
