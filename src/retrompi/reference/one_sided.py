"""One-sided operations: the origin moves the data, and the target takes no part.

A put is complete at its origin when the data have left, and at the target when they have arrived; a flush waits for that. A get is complete
when the data have come. An accumulate reads, combines and writes back, so its data cross twice. Between hosts a card moves them as one
burst, on one host they are a copy (assumed: models/craympt). A window is made by telling each other where its memory is (code: MPICH2,
ch3u_rma_ops.c: 24 B of each member). A lock is a word in the target's memory that is read and changed at once; exposures are opened and
closed by empty messages (code: MPICH2, ch3u_rma_sync.c).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from retrompi.reference.collectives import context_agreed
from retrompi.reference.host import Steps
from retrompi.reference.values import PROC_NULL, NotCovered, Values

__all__ = ["OneSided", "is_one_sided"]

PUTS = ("Put", "Rput")
GETS = ("Get", "Rget")
UPDATES = ("Accumulate", "Raccumulate", "Get_accumulate", "Rget_accumulate", "Fetch_and_op", "Compare_and_swap")
SYNCHRONISATION = ("Win_fence", "Win_flush_all", "Win_flush", "Win_flush_local_all", "Win_flush_local", "Win_lock", "Win_lock_all",
                   "Win_unlock", "Win_unlock_all", "Win_post", "Win_start", "Win_complete", "Win_wait")
POST, COMPLETE = 1, 2
"""Tags of a window's own messages."""
WORD = 8
ADDRESSES = 24


def is_one_sided(name: str) -> bool:
    """Whether a call of a trace is on a window."""
    return name in (*PUTS, *GETS, *UPDATES, *SYNCHRONISATION, "win_create", "win_free")


@dataclass(eq=False)
class Epoch:
    """What a rank and a window are to each other: whom it has exposed its memory to, whose memory it accesses and has locked (exclusively
    or not), and who has locked, or waits to lock, its own."""

    exposed_to: Sequence[int] = ()
    access_to: Sequence[int] = ()
    locked: dict[int, bool] = field(default_factory=dict)
    shared: int = 0
    exclusive: bool = False
    wanted: list[Any] = field(default_factory=list)

    def is_released(self, rank: Any) -> bool:
        """Whether a rank that waits for a lock may look again."""
        return rank not in self.wanted


class OneSided:
    """The one-sided operations of one rank."""

    def __init__(self, rank: Any, same: Values | None, remote: Values | None) -> None:
        self.rank, self.same, self.remote = rank, same, remote
        self.puts = 0
        self.get_open = False
        self.gets: list[Any] = []
        self.epochs: dict[int, Epoch] = defaultdict(Epoch)

    def call(self, call: Any) -> Steps:
        """Any call on a window."""
        name, window = call.name, call.peer2
        if name in (*PUTS, *GETS, *UPDATES):
            yield from self._access(call)
        elif name == "win_create":
            yield from self.rank.collectives.internal(call.more.get("comm", 0), "allgather", ADDRESSES)
            yield from self.rank.collectives.agree(call.more.get("comm", 0), context_agreed)
        elif name == "win_free":
            yield from self.flush()
            yield from self.rank.collectives.internal(call.more.get("comm", 0), "barrier", 0)
            self.epochs.pop(window, None)
        else:
            yield from self._synchronise(call, window, self.epochs[window])

    def _access(self, call: Any) -> Steps:
        request = None
        if call.more.get("req") and (call.name.startswith("R") or call.peer == PROC_NULL):
            request = self.rank.new_request("one-sided")
            self.rank.file(call, request)
        if call.peer == PROC_NULL:
            if request:
                request.done = True
            return
        if call.name in GETS:
            yield from self.get(call.peer, call.size, request)
            return
        if call.name in UPDATES:
            yield from self.get(call.peer, call.size)
        yield from self.put(call.peer, call.size)
        if request:
            request.done = True  # the data have left, and the program's buffer is free

    def _spec(self, target: int) -> Values:
        spec = self.same if self.rank.near(target) else self.remote
        if spec is None:
            raise NotCovered("one-sided operations that the runtime does not have")
        return spec

    def _begin(self, spec: Values, target: int, size: int, put: bool) -> Steps:
        """What a put and a get have in common: the library's work, and on one host the copy."""
        rank, ranks = self.rank, self.rank.job.ranks
        fragments = -(-size // spec.fragment) if put and spec.fragment > 0 else 0
        yield from rank.thread.run(rank.host.work(spec.cpu + fragments * spec.fragment_cpu))
        count = rank.job.count
        count.messages, count.bytes = count.messages + 1, count.bytes + size
        count.delivered, count.delivered_bytes = count.delivered + 1, count.delivered_bytes + size
        source, receiver = (rank, ranks[target]) if put else (ranks[target], rank)
        source.count.sent, source.count.bytes_sent = source.count.sent + 1, source.count.bytes_sent + size
        receiver.count.received, receiver.count.bytes_received = receiver.count.received + 1, receiver.count.bytes_received + size
        yield from rank.thread.run(spec.latency if rank.near(target) else 0)
        if rank.near(target):
            yield from rank.thread.copy(rank.plain_copy(size))

    def _burst(self, source: Any, target: Any, size: int, rate: float, piece: int, arrived: Any) -> int:
        hosts = self.rank.job.hosts
        ends = hosts.index(source.host), hosts.index(target.host)
        return int(self.rank.job.net.burst(*ends, max(size, 1), rate, piece, 0, arrived, lambda: None))

    def put(self, target: int, size: int) -> Steps:
        """Writes into a target's memory; the origin is busy until the data have left."""
        rank, spec = self.rank, self._spec(target)
        yield from self._begin(spec, target, size, True)
        if rank.near(target):
            return
        self.puts += 1
        yield from rank.thread.run(spec.latency)

        def complete_put() -> None:
            self.puts -= 1
            rank.thread.signal()

        left = self._burst(rank, rank.job.ranks[target], size, spec.put_rate, spec.piece, complete_put)
        yield from rank.thread.run(left - rank.loop.now)

    def get(self, target: int, size: int, request: Any = None) -> Steps:
        """Reads a target's memory, which answers without its processor. One with a request does not wait for the data."""
        rank, spec = self.rank, self._spec(target)
        yield from self._begin(spec, target, size, False)
        if rank.near(target):
            if request:
                request.done = True
            return
        yield from rank.thread.run(spec.latency)

        def complete_get() -> None:
            if request:
                request.done = True
                self.gets.remove(request)
            else:
                self.get_open = False
            rank.thread.signal()

        if request:
            self.gets.append(request)
        else:
            self.get_open = True
        self._burst(rank.job.ranks[target], rank, size, spec.get_rate, spec.piece, complete_get)
        if not request:
            yield from rank.until(lambda: not self.get_open, rank.spec.recv_wait, False)

    def flush(self) -> Steps:
        """Waits until everything has arrived."""
        yield from self.rank.drive(lambda: self.puts == 0 and not self.gets, self.rank.spec.send_wait)

    # -- synchronisation

    def _synchronise(self, call: Any, window: int, mine: Epoch) -> Steps:
        rank, name = self.rank, call.name
        context = -1 - window
        if name.startswith("Win_flush"):
            yield from self.flush()
        elif name == "Win_fence":
            yield from self.flush()
            yield from rank.collectives.internal(call.more.get("comm", 0), "barrier", 0)
        elif name == "Win_lock":
            mine.locked[call.peer] = call.tag != 0
            yield from self._lock(window, call.peer, mine.locked[call.peer])
        elif name == "Win_unlock":
            yield from self.flush()
            yield from self._unlock(window, call.peer, mine.locked.pop(call.peer))
        elif name in ("Win_lock_all", "Win_unlock_all"):
            if name == "Win_unlock_all":
                yield from self.flush()
            for target in rank.communicators[call.more.get("comm", 0)].group:
                yield from self._lock(window, target, False) if name == "Win_lock_all" else self._unlock(window, target, False)
        elif name == "Win_post":
            mine.exposed_to = call.more["group"]
            yield from self._tell(mine.exposed_to, context, POST)
        elif name == "Win_start":
            mine.access_to = call.more["group"]
            yield from self._hear(mine.access_to, context, POST)
        elif name == "Win_complete":
            yield from self.flush()
            yield from self._tell(mine.access_to, context, COMPLETE)
        else:
            yield from self._hear(mine.exposed_to, context, COMPLETE)

    def _lock(self, window: int, target: int, exclusive: bool) -> Steps:
        """Reads the word; if it does not allow the lock, looks again after a release."""
        rank = self.rank
        while True:
            yield from self.get(target, WORD)
            theirs: Epoch = rank.job.ranks[target].one_sided.epochs[window]
            if not theirs.exclusive and not (exclusive and theirs.shared):
                theirs.exclusive, theirs.shared = exclusive, theirs.shared + (not exclusive)
                return
            theirs.wanted.append(rank)
            yield from rank.drive(partial(theirs.is_released, rank), rank.spec.recv_wait)

    def _unlock(self, window: int, target: int, exclusive: bool) -> Steps:
        yield from self.put(target, WORD)
        yield from self.flush()
        theirs: Epoch = self.rank.job.ranks[target].one_sided.epochs[window]
        theirs.exclusive, theirs.shared = theirs.exclusive and not exclusive, theirs.shared - (not exclusive)
        if not theirs.exclusive and theirs.shared <= 0:
            waiting, theirs.wanted = theirs.wanted, []
            for other in waiting:
                other.thread.signal()

    def _tell(self, ranks: Sequence[int], context: int, tag: int) -> Steps:
        requests = [self.rank.new_request("send", context) for _ in ranks]
        for other, request in zip(ranks, requests, strict=True):
            yield from self.rank.isend(request, other, tag, 0, "standard")
        for request in requests:
            yield from self.rank.wait(request)

    def _hear(self, ranks: Sequence[int], context: int, tag: int) -> Steps:
        requests = [self.rank.new_request("receive", context) for _ in ranks]
        for other, request in zip(ranks, requests, strict=True):
            yield from self.rank.irecv(request, other, tag, 0)
        for request in requests:
            yield from self.rank.wait(request)
