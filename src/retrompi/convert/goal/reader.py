"""GOAL import: a graph of operations as a linear trace.

A schedule only states the dependencies of each operation, whereas a trace is a sequence of calls. All ranks are executed together with
messages that take no time, calculations that take theirs and one calculation at a time per processor; each rank's calls are written in
the order in which they start there. A send or receive is posted when it may start, and waited for when the first operation that depends
on it starts. As the job can run in that order, the trace cannot hang where the schedule does not.
"""

from __future__ import annotations

import heapq
from collections import deque
from pathlib import Path

from retrompi.convert.goal.file import ANY, Op, operations_of, parse_goal
from retrompi.convert.losses import Losses
from retrompi.convert.script import ANY_SOURCE, ANY_TAG, BYTE, Requests, Script
from retrompi.traces.errors import TraceError

__all__ = ["read_goal"]

MAX_ANCESTORS = 8192
"""Operations per rank up to which the pairs left unordered by the schedule are determined."""


def read_goal(path: Path, losses: Losses, *, rate: float = 1e9, shortest: float = 0.0) -> list[str]:
    """The texts of a trace, one per rank. ``rate`` in flop/s converts calculations, which GOAL gives in ns, into operations."""
    ranks = parse_goal(path)
    order, eager = _Run(ranks, str(path)).run()
    return [_linear(rank, ops, order[rank], eager[rank], path.name, losses, rate, shortest) for rank, ops in enumerate(ranks)]


class _Run:
    """Execution of the job without a network: when every operation starts relative to the others."""

    def __init__(self, ranks: list[list[Op]], name: str) -> None:
        self.ranks = ranks
        self.name = name
        self.missing = [[len(op.after) + len(op.after_start) for op in ops] for ops in ranks]
        self.done_next: list[list[list[int]]] = [[[] for _ in ops] for ops in ranks]
        self.start_next: list[list[list[int]]] = [[[] for _ in ops] for ops in ranks]
        for rank, ops in enumerate(ranks):
            for number, op in enumerate(ops):
                for before in op.after:
                    self.done_next[rank][before].append(number)
                for before in op.after_start:
                    self.start_next[rank][before].append(number)
        self.state = [bytearray(len(ops)) for ops in ranks]  # 0 not started, 1 started, 2 complete
        self.order: list[list[int]] = [[] for _ in ranks]
        self.eager: list[dict[int, bool]] = [{} for _ in ranks]  # sends whose receive was not posted in time: matched later?
        self.free: dict[tuple[int, int], int] = {}
        # time, calculations last, sequence, kind (0 ready, 1 start, 2 end), rank, number
        self.events: list[tuple[int, bool, int, int, int, int]] = []
        self.sequence = 0
        self.sent: list[deque[tuple[int, int]]] = [deque() for _ in ranks]  # to a rank: (from, number), oldest first
        self.posted: list[deque[int]] = [deque() for _ in ranks]
        self.unmet: deque[tuple[int, int]] = deque()

    def push(self, time: int, kind: int, rank: int, number: int) -> None:
        self.sequence += 1
        # Operations that are only posted come before a calculation that starts at the same time.
        late = kind == 1 and self.ranks[rank][number].kind == "calc"
        heapq.heappush(self.events, (time, late, self.sequence, kind, rank, number))

    def run(self) -> tuple[list[list[int]], list[dict[int, bool]]]:
        for rank, missing in enumerate(self.missing):
            for number, n in enumerate(missing):
                if n == 0:
                    self.push(0, 0, rank, number)
        now = 0
        while True:
            while self.events:
                now, _, _, kind, rank, number = heapq.heappop(self.events)
                op = self.ranks[rank][number]
                free = 0 if op.kind == "recv" else self.free.get((rank, op.cpu), 0)
                if kind == 0 or (kind == 1 and free > now):
                    self.push(max(now, free), 1, rank, number)
                elif kind == 1:
                    self.begin(now, rank, number, op)
                else:
                    self.end(now, rank, number)
            # No progress is possible unless a send completes before its receive is posted, as a buffered one does.
            while self.unmet and self.state[self.unmet[0][0]][self.unmet[0][1]] == 2:
                self.unmet.popleft()
            if not self.unmet:
                break
            rank, number = self.unmet.popleft()
            self.eager[rank][number] = False
            self.end(now, rank, number)
        for rank, ops in enumerate(self.ranks):
            for number, op in enumerate(ops):
                if self.state[rank][number] != 2:
                    why = (
                        "waits for a message that nobody sends"
                        if self.state[rank][number] == 1
                        else "never begins: what it requires never ends"
                    )
                    raise TraceError(f"rank {rank}: this {op.kind} {why}", self.name, op.line)
        return self.order, self.eager

    def begin(self, now: int, rank: int, number: int, op: Op) -> None:
        self.state[rank][number] = 1
        self.order[rank].append(number)
        self.release(now, rank, self.start_next[rank][number])
        if op.kind == "calc":
            self.free[rank, op.cpu] = now + op.size
            self.push(now + op.size, 2, rank, number)
        elif op.kind == "send":
            for at, receive in enumerate(self.posted[op.peer]):
                wanted = self.ranks[op.peer][receive]
                if wanted.peer in (rank, ANY) and wanted.tag in (op.tag, ANY):
                    del self.posted[op.peer][at]
                    self.push(now, 2, rank, number)
                    self.push(now, 2, op.peer, receive)
                    return
            self.sent[op.peer].append((rank, number))
            self.unmet.append((rank, number))
        else:
            for at, (source, send) in enumerate(self.sent[rank]):
                if op.peer in (source, ANY) and op.tag in (self.ranks[source][send].tag, ANY):
                    del self.sent[rank][at]
                    if self.state[source][send] == 2:
                        self.eager[source][send] = True
                    else:
                        self.push(now, 2, source, send)
                    self.push(now, 2, rank, number)
                    return
            self.posted[rank].append(number)

    def end(self, now: int, rank: int, number: int) -> None:
        self.state[rank][number] = 2
        self.release(now, rank, self.done_next[rank][number])

    def release(self, now: int, rank: int, numbers: list[int]) -> None:
        for n in numbers:
            self.missing[rank][n] -= 1
            if self.missing[rank][n] == 0:
                self.push(now, 0, rank, n)


def _linear(
    rank: int, ops: list[Op], order: list[int], eager: dict[int, bool], name: str, losses: Losses, rate: float, shortest: float
) -> str:
    """One rank's lines in the order in which its operations start."""
    steps: list[tuple[str, int]] = []  # ("post" | "wait" | "calc", operation)
    open_: dict[int, None] = {}
    for number in order:
        op = ops[number]
        for before in op.after:
            if before in open_ and before not in eager:
                steps.append(("wait", before))
                del open_[before]
        if op.kind == "calc":
            steps.append(("calc", number))
            continue
        if eager.get(number) is False:
            losses.add("send", "that nobody receives: left out", f"{name}:{op.line}")
            continue
        steps.append(("post", number))
        open_[number] = None
        if number in eager:
            losses.add("send", "taken as complete before its receive is posted: waited for at the end", f"{name}:{op.line}", "approximated")
    left = list(open_)
    if left and steps[-1] == ("post", left[-1]):  # then it becomes a blocking call
        left.insert(0, left.pop())
    steps += [("wait", number) for number in left]
    _independent(rank, ops, steps, name, losses)

    out, requests, held = Script(rank, rate, shortest), Requests(), dict[int, int]()
    out.add("init")
    skip = False
    for at, (what, number) in enumerate(steps):
        op = ops[number]
        if skip:
            skip = False
        elif what == "calc":
            if op.size * 1e-9 >= shortest:
                out.operations(operations_of(op.size, rate))
        elif what == "post":
            peer, tag = (ANY_SOURCE if op.peer == ANY else op.peer), (ANY_TAG if op.tag == ANY else op.tag)
            skip = at + 1 < len(steps) and steps[at + 1] == ("wait", number)
            if skip:  # posted and waited for immediately: a blocking call
                out.add(op.kind, peer, tag, op.size, BYTE)
            else:
                held[number] = requests.new()
                out.add(f"i{op.kind}", peer, tag, op.size, BYTE, req=held[number])
        else:
            peer, tag = (ANY_SOURCE if op.peer == ANY else op.peer), (ANY_TAG if op.tag == ANY else op.tag)
            ends = (rank, peer) if op.kind == "send" else (peer, rank)
            out.add("wait", *ends, tag, req=held[number])
            requests.release(held.pop(number))
    out.add("finalize")
    return out.text()


def _independent(rank: int, ops: list[Op], steps: list[tuple[str, int]], name: str, losses: Losses) -> None:
    """Report operations that the linear order puts after a calculation or a wait on which they do not depend."""
    exact = len(ops) <= MAX_ANCESTORS
    ancestors: list[int] = [0] * len(ops)
    known = [False] * len(ops)
    if exact:
        for number in (n for what, n in steps if what != "wait"):
            bits = 0
            for before in ops[number].after + ops[number].after_start:
                bits |= ancestors[before] | 1 << before
            ancestors[number], known[number] = bits, True
    behind: int | None = None
    for what, number in steps:
        if what != "wait" and behind is not None:
            told = bool(ancestors[number] >> behind & 1) if exact else behind in ops[number].after
            if not told:
                kind = ops[number].kind
                where = "a calculation" if ops[behind].kind == "calc" else f"the wait for a {ops[behind].kind}"
                losses.add(
                    kind, f"free to go at any time, but in a line it comes behind {where}", f"{name}:{ops[number].line}", "approximated"
                )
        if what != "post":
            behind = number
    other = [op for op in ops if op.kind == "calc" and op.cpu != ops[0].cpu]
    for op in other:
        losses.add("calc", "on another processor of the rank: computed by the one it has", f"{name}:{op.line}", "approximated")
