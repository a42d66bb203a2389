"""DUMPI sends and collectives as trace actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrompi.convert.script import BYTE

__all__ = ["COLLECTIVES", "SENDS", "Bytes"]

Bytes = Callable[[int, int], int]
"""(count, type handle) -> bytes"""

SENDS = {
    "Send": "send",
    "Bsend": "bsend",
    "Ssend": "Ssend",
    "Rsend": "rsend",
    "Isend": "isend",
    "Ibsend": "ibsend",
    "Issend": "ISsend",
    "Irsend": "irsend",
    "Send_init": "sendInit",
    "Bsend_init": "bsendInit",
    "Ssend_init": "ssendInit",
    "Rsend_init": "rsendInit",
}

Line = tuple[str, list[object]]
Args = dict[str, Any]


def _barrier(a: Args, b: Bytes, n: int) -> Line:
    return "barrier", []


def _bcast(a: Args, b: Bytes, n: int) -> Line:
    return "bcast", [b(a["count"], a["datatype"]), a["root"], BYTE]


def _reduce(a: Args, b: Bytes, n: int) -> Line:
    return "reduce", [b(a["count"], a["datatype"]), 0, a["root"], BYTE]


def _reduction(action: str) -> Callable[[Args, Bytes, int], Line]:
    return lambda a, b, n: (action, [b(a["count"], a["datatype"]), 0, BYTE])


def _reduce_scatter(a: Args, b: Bytes, n: int) -> Line:
    return "reducescatter", [*(b(c, a["datatype"]) for c in a["recvcounts"]), 0, BYTE]


def _gather(a: Args, b: Bytes, n: int) -> Line:
    sent = b(a["sendcount"], a["sendtype"])
    # Only the root knows what it receives; all ranks send the same amount.
    return "gather", [sent, b(a["recvcount"], a["recvtype"]) if "recvcount" in a else sent, a["root"], BYTE, BYTE]


def _gatherv(a: Args, b: Bytes, n: int) -> Line:
    counts = [b(c, a["recvtype"]) for c in a["recvcounts"]] if "recvcounts" in a else [0] * n
    return "gatherv", [b(a["sendcount"], a["sendtype"]), *counts, a["root"], BYTE, BYTE]


def _scatter(a: Args, b: Bytes, n: int) -> Line:
    received = b(a["recvcount"], a["recvtype"])
    return "scatter", [b(a["sendcount"], a["sendtype"]) if "sendcount" in a else received, received, a["root"], BYTE, BYTE]


def _scatterv(a: Args, b: Bytes, n: int) -> Line:
    counts = [b(c, a["sendtype"]) for c in a["sendcounts"]] if "sendcounts" in a else [0] * n
    return "scatterv", [*counts, b(a["recvcount"], a["recvtype"]), a["root"], BYTE, BYTE]


def _each(action: str) -> Callable[[Args, Bytes, int], Line]:
    def line(a: Args, b: Bytes, n: int) -> Line:
        return action, [b(a["sendcount"], a["sendtype"]), b(a["recvcount"], a["recvtype"]), BYTE, BYTE]

    return line


def _allgatherv(a: Args, b: Bytes, n: int) -> Line:
    return "allgatherv", [b(a["sendcount"], a["sendtype"]), *(b(c, a["recvtype"]) for c in a["recvcounts"]), BYTE, BYTE]


def _alltoallv(a: Args, b: Bytes, n: int) -> Line:
    sent, received = [b(c, a["sendtype"]) for c in a["sendcounts"]], [b(c, a["recvtype"]) for c in a["recvcounts"]]
    return "alltoallv", [sum(sent), *sent, sum(received), *received, BYTE, BYTE]


def _alltoallw(a: Args, b: Bytes, n: int) -> Line:
    sent = [b(c, t) for c, t in zip(a["sendcounts"], a["sendtypes"], strict=False)]
    received = [b(c, t) for c, t in zip(a["recvcounts"], a["recvtypes"], strict=False)]
    return "alltoallw", [*sent, *received]


COLLECTIVES: dict[str, Callable[[Args, Bytes, int], Line]] = {
    "Barrier": _barrier,
    "Bcast": _bcast,
    "Gather": _gather,
    "Gatherv": _gatherv,
    "Scatter": _scatter,
    "Scatterv": _scatterv,
    "Allgather": _each("allgather"),
    "Allgatherv": _allgatherv,
    "Alltoall": _each("alltoall"),
    "Alltoallv": _alltoallv,
    "Alltoallw": _alltoallw,
    "Reduce": _reduce,
    "Allreduce": _reduction("allreduce"),
    "Reduce_scatter": _reduce_scatter,
    "Scan": _reduction("scan"),
    "Exscan": _reduction("exscan"),
}
