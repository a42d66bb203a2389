"""OTF2 collectives as actions: deriving the counts from the sizes recorded by all members.

OTF2 records for each rank of a collective only how many bytes it sent and received in total. Writers differ in whether a rank that sends
one buffer to n ranks has sent it once or n times; the records of all members together determine which.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from retrompi.convert.otf2.events import Collective
from retrompi.convert.script import BYTE

__all__ = ["Instance", "action"]


@dataclass
class Instance:
    """One collective with the records of its members, by rank of the communicator of ``size`` ranks."""

    size: int
    members: dict[int, Collective] = field(default_factory=dict)

    def sent_by(self, rank: int) -> int:
        """Bytes that a rank sent, 0 without a record."""
        return self.members[rank].sent if rank in self.members else 0

    def received_by(self, rank: int) -> int:
        """Bytes that a rank received."""
        return self.members[rank].received if rank in self.members else 0

    def every(self, what: Callable[[int], int]) -> list[int]:
        """A quantity of every rank, in rank order."""
        return [what(rank) for rank in range(self.size)]


Line = tuple[str, list[object], str | None]
"""Action, arguments, what had to be estimated (None: nothing)."""


def _whole(value: int, n: int) -> tuple[int, bool]:
    return value // n if n else 0, bool(n and value % n == 0)


def _barrier(i: Instance, me: int, root: int) -> Line:
    return "barrier", [], None


def _bcast(i: Instance, me: int, root: int) -> Line:
    size = max(i.every(i.received_by)) or i.sent_by(root)
    return "bcast", [size, root, BYTE], None


def _reduce(i: Instance, me: int, root: int) -> Line:
    others = [i.sent_by(r) for r in range(i.size) if r != root] or [i.sent_by(root)]
    return "reduce", [max(others), 0, root, BYTE], None


def _allreduce(i: Instance, me: int, root: int) -> Line:
    return "allreduce", [max(i.every(i.sent_by)) or max(i.every(i.received_by)), 0, BYTE], None


def _prefix(name: str) -> Callable[[Instance, int, int], Line]:
    def line(i: Instance, me: int, root: int) -> Line:
        # Some writers count forwarded data: rank r receives r or r + 1 times the length; the smallest is the length itself.
        some = [v for v in i.every(i.received_by) if v] or [v for v in i.every(i.sent_by) if v] or [0]
        return name, [min(some), 0, BYTE], None

    return line


def _contributions(i: Instance, total: int) -> list[int] | None:
    """Every rank's contribution when they add up to ``total``; the writer may have counted it once per receiver."""
    sent = i.every(i.sent_by)
    if sum(sent) == total:
        return sent
    if sum(sent) == total * i.size and all(s % i.size == 0 for s in sent):
        return [s // i.size for s in sent]
    return None


def _gather(i: Instance, me: int, root: int) -> Line:
    each, _ = _whole(i.received_by(root), i.size)
    return "gather", [each, each, root, BYTE, BYTE], None


def _gatherv(i: Instance, me: int, root: int) -> Line:
    sent = i.every(i.sent_by)
    in_place = i.received_by(root) - sum(sent)
    if in_place > 0 and sent[root] == 0:
        sent[root] = in_place
    counts = sent if me == root else [0] * i.size
    return "gatherv", [sent[me], *counts, root, BYTE, BYTE], None


def _scatter(i: Instance, me: int, root: int) -> Line:
    each, _ = _whole(i.sent_by(root), i.size)
    each = each or max(i.every(i.received_by))
    return "scatter", [each, each, root, BYTE, BYTE], None


def _scatterv(i: Instance, me: int, root: int) -> Line:
    received = i.every(i.received_by)
    in_place = i.sent_by(root) - sum(received)
    if in_place > 0 and received[root] == 0:
        received[root] = in_place
    counts = received if me == root else [0] * i.size
    return "scatterv", [*counts, received[me], root, BYTE, BYTE], None


def _allgather(i: Instance, me: int, root: int) -> Line:
    each, exact = _whole(max(i.every(i.received_by)), i.size)
    return "allgather", [each, each, BYTE, BYTE], None if exact else "the length is no multiple of the ranks"


def _allgatherv(i: Instance, me: int, root: int) -> Line:
    total = max(i.every(i.received_by))
    counts = _contributions(i, total)
    note = None
    if counts is None:
        counts, note = _even(total, i.size), "counts of the ranks are not recorded: taken as equal"
    return "allgatherv", [counts[me], *counts, BYTE, BYTE], note


def _reduce_scatter(i: Instance, me: int, root: int) -> Line:
    parts = i.every(i.received_by)
    total = max(i.every(i.sent_by))
    if total and sum(parts) == total * i.size and all(p % i.size == 0 for p in parts):
        parts = [p // i.size for p in parts]
    return "reducescatter", [*parts, 0, BYTE], None


def _reduce_scatter_block(i: Instance, me: int, root: int) -> Line:
    total = max(i.every(i.sent_by))
    part = max(i.every(i.received_by))
    if total and part == total and i.size > 1:
        part = total // i.size
    return "reducescatterblock", [part, 0, BYTE], None


def _alltoall(i: Instance, me: int, root: int) -> Line:
    sent, _ = _whole(max(i.every(i.sent_by)) or max(i.every(i.received_by)), i.size)
    return "alltoall", [sent, sent, BYTE, BYTE], None


def _alltoallv(name: str) -> Callable[[Instance, int, int], Line]:
    def line(i: Instance, me: int, root: int) -> Line:
        table = _table(i.every(i.sent_by), i.every(i.received_by))
        sent, received = table[me], [row[me] for row in table]
        arguments: list[object] = [*sent, *received]
        if name == "alltoallv":
            arguments = [sum(sent), *sent, sum(received), *received, BYTE, BYTE]
        return name, arguments, "counts a peer are not recorded: every pair gets its share of what the two ranks sent and received"

    return line


def _even(total: int, n: int) -> list[int]:
    return [total * (k + 1) // n - total * k // n for k in range(n)]


def _table(sent: list[int], received: list[int]) -> list[list[int]]:
    """A table of pairs in proportion to what one rank sent and the other received; row sums equal what was sent."""
    total = sum(received)
    table = []
    for value in sent:
        row, at = [], 0
        for there in received:
            row.append(value * (at + there) // total - value * at // total if total else 0)
            at += there
        table.append(row)
    return table


_WORK: dict[str, Callable[[Instance, int, int], Line]] = {
    "BARRIER": _barrier,
    "BCAST": _bcast,
    "GATHER": _gather,
    "GATHERV": _gatherv,
    "SCATTER": _scatter,
    "SCATTERV": _scatterv,
    "ALLGATHER": _allgather,
    "ALLGATHERV": _allgatherv,
    "ALLTOALL": _alltoall,
    "ALLTOALLV": _alltoallv("alltoallv"),
    "ALLTOALLW": _alltoallv("alltoallw"),
    "ALLREDUCE": _allreduce,
    "REDUCE": _reduce,
    "REDUCE_SCATTER": _reduce_scatter,
    "REDUCE_SCATTER_BLOCK": _reduce_scatter_block,
    "SCAN": _prefix("scan"),
    "EXSCAN": _prefix("exscan"),
}
PER_PEER = ("ALLTOALLV", "ALLTOALLW")
"""Collectives whose counts OTF2 does not have."""


def action(instance: Instance, me: int) -> Line | None:
    """The line of rank ``me`` of the communicator; None for a collective without data (creating a handle, for example)."""
    record = instance.members[me]
    work = _WORK.get(record.op)
    return None if work is None else work(instance, me, record.root)
