"""Every execution of a small program by brute force: all interleavings of its calls and of the arrivals of its messages.

Independent of `retrompi.explore`: here messages travel, arrive in the order of each pair, and match when they arrive; there a match is a
step of its own and nothing arrives. Programs are random, of 2 to 4 ranks, and need not complete.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

ANY = -555
ANY_TAG = -444
EAGER = 100
"""Messages of up to so many bytes are buffered, longer ones wait for their receiver."""


@dataclass(frozen=True)
class Op:
    """A call, on line ``line`` of the trace; ``reqs`` are those it makes or completes."""

    what: str
    line: int
    peer: int = 0
    tag: int = 0
    size: int = 0
    reqs: tuple[int, ...] = ()


def program(seed: int) -> list[list[Op]]:
    """A random program; a quarter of them have tests, a quarter probes."""
    source = random.Random(seed)
    n = source.choice([2, 3, 3, 4, 4])
    tests, probes = source.random() < 0.25, source.random() < 0.25
    ranks: list[list[Op]] = []
    line = 0
    plan: list[list[tuple[str, int, int]]] = [[] for _ in range(n)]  # what, peer, tag
    for _ in range(source.choice([2, 3, 3, 4, 4, 5, 6])):
        a, b = source.sample(range(n), 2)
        tag = source.choice([1, 1, 1, 2])
        plan[a].append(("send", b, tag))
        if source.random() < 0.93:
            plan[b].append(("recv", source.choice([a, ANY, ANY]), source.choice([tag, tag, ANY_TAG])))
    for rank in range(n):
        if source.random() < 0.4:
            source.shuffle(plan[rank])
        ops: list[Op] = []
        open_: list[int] = []
        req = 0

        def put(what: str, *rest: Any, reqs: tuple[int, ...] = (), ops: list[Op] = ops) -> None:
            nonlocal line
            line += 1
            ops.append(Op(what, line, *rest, reqs=reqs))

        for what, peer, tag in plan[rank]:
            size = source.choice([10, 10, 1000]) if what == "send" else 5000
            if what == "recv" and probes and source.random() < 0.4:
                put(source.choice(["probe", "iprobe"]), source.choice([peer, peer, ANY]), source.choice([tag, tag, ANY_TAG, 1]))
            if source.random() < 0.4:
                req += 1
                put("i" + what, peer, tag, size, reqs=(req,))
                open_.append(req)
                if tests and source.random() < 0.5:
                    put("test", reqs=(source.choice(open_),))
            else:
                put(source.choice(["send", "send", "Ssend"]) if what == "send" else what, peer, tag, size)
            if len(open_) > 1 and tests and source.random() < 0.3:
                put("waitany", reqs=tuple(open_))
            elif open_ and source.random() < 0.3:
                done = open_.pop(0)
                put("wait", reqs=(done,))
        if open_:
            put("waitall", reqs=tuple(open_))
        ranks.append(ops)
    return ranks


def text(ranks: list[list[Op]]) -> str:
    """The trace of a program, one line a call, in the order of their numbers."""
    lines = {}
    for rank, ops in enumerate(ranks):
        for op in ops:
            reqs = ",".join(map(str, op.reqs))
            if op.what in ("send", "Ssend", "recv"):
                lines[op.line] = f"{rank} {op.what} {op.peer} {op.tag} {op.size} 6"
            elif op.what in ("isend", "irecv"):
                lines[op.line] = f"{rank} {op.what} {op.peer} {op.tag} {op.size} 6 req={reqs}"
            elif op.what in ("probe", "iprobe"):
                lines[op.line] = f"{rank} {op.what} {op.peer} {op.tag}"
            elif op.what in ("wait", "test"):
                lines[op.line] = f"{rank} {op.what} req={reqs}"
            else:
                lines[op.line] = f"{rank} {op.what} {len(op.reqs)} reqs={reqs}"
    return "".join(lines[k] + "\n" for k in sorted(lines))


Msg = tuple[int, int, int, int]  # line, source, tag, whether the sender waits
State = tuple[Any, ...]


def _fits(src: int, tag: int, m: Msg) -> bool:
    return src in (ANY, m[1]) and tag in (ANY_TAG, m[2])


class Brute:
    """The executions of a program: `classes` (how it ends, what each open call did) and the number of `orders`."""

    def __init__(self, ranks: list[list[Op]], most: int = 400_000) -> None:
        self.ranks, self.most = ranks, most
        self.classes: set[tuple[Any, frozenset[Any]]] = set()
        self.orders = self._run()

    def _start(self) -> State:
        n = len(self.ranks)
        # pc, blocked on (lines and requests), in flight by pair, posted, unexpected, open, found, outcomes
        return ((0,) * n, ((),) * n, ((),) * (n * n), ((),) * n, ((),) * n, frozenset(), frozenset(), frozenset())

    def _run(self) -> int:
        counts: dict[State, int] = {}
        first = self._start()
        stack: list[tuple[State, list[State] | None]] = [(first, None)]
        while stack:
            st, nexts = stack.pop()
            if nexts is None:
                if st in counts:
                    continue
                if len(counts) + len(stack) > self.most:
                    raise OverflowError
                nexts = self._next(st)
                stack.append((st, nexts))
                stack += [(s, None) for s in nexts if s not in counts]
            elif st not in counts:
                counts[st] = sum(counts[s] for s in nexts) if nexts else 1
                if not nexts:
                    self._end(st)
        return counts[first]

    def _end(self, st: State) -> None:
        pcs, blocked, *_, taken = st
        stuck = []
        for r, ops in enumerate(self.ranks):
            if any(b in st[5] for b in blocked[r]):
                stuck.append((r, ops[pcs[r] - 1].line))
            elif pcs[r] < len(ops):
                stuck.append((r, ops[pcs[r]].line))
            elif any(kind == "s" and rank == r for kind, rank, _ in st[5]):  # MPI_Finalize waits for its sends
                stuck.append((r, ops[-1].line if ops else 0))
        self.classes.add((tuple(stuck), taken))

    def _next(self, st: State) -> list[State]:
        out: list[State] = []
        n = len(self.ranks)
        for r in range(n):
            out += self._step(st, r)
        for pair in range(n * n):
            if st[2][pair]:
                out.append(self._arrive(st, pair))
        return out

    @staticmethod
    def _put(values: tuple[Any, ...], at: int, value: Any) -> tuple[Any, ...]:
        return (*values[:at], value, *values[at + 1 :])

    def _step(self, st: State, r: int) -> list[State]:
        pcs, blocked, flight, posted, unexpected, open_, found, taken = st
        n = len(self.ranks)
        if blocked[r]:
            if any(b in open_ for b in blocked[r]):
                return []
            return self._step((pcs, self._put(blocked, r, ()), flight, posted, unexpected, open_, found, taken), r)
        if pcs[r] >= len(self.ranks[r]):
            return []
        op = self.ranks[r][pcs[r]]
        on = self._put(pcs, r, pcs[r] + 1)
        if op.what in ("send", "Ssend", "isend"):
            waits = op.what == "Ssend" or op.size > EAGER
            slot = ("s", r, op.reqs[0] if op.reqs else -op.line)
            pair = r * n + op.peer
            flight = self._put(flight, pair, (*flight[pair], (op.line, r, op.tag, slot if waits else None)))
            if waits:
                open_ |= {slot}
            if waits and op.what != "isend":
                blocked = self._put(blocked, r, (slot,))
            return [(on, blocked, flight, posted, unexpected, open_, found, taken)]
        if op.what in ("recv", "irecv"):
            slot = ("r", r, op.reqs[0] if op.reqs else -op.line)
            entry = (op.line, op.peer, op.tag, slot)
            if op.what == "recv":
                blocked = self._put(blocked, r, (slot,))
            for m in unexpected[r]:
                if _fits(op.peer, op.tag, m):
                    unexpected = self._put(unexpected, r, tuple(x for x in unexpected[r] if x is not m))
                    return [self._matched((on, blocked, flight, posted, unexpected, open_ | {slot}, found, taken), entry, m)]
            return [(on, blocked, flight, self._put(posted, r, (*posted[r], entry)), unexpected, open_ | {slot}, found, taken)]
        if op.what in ("probe", "iprobe"):
            there = [m for m in unexpected[r] if _fits(op.peer, op.tag, m)]
            results: list[State] = []
            if there:
                note = {(op.line, there[0][0])} if op.peer == ANY or op.what == "iprobe" else set()
                results.append((on, blocked, flight, posted, unexpected, open_, found | {there[0][0]}, taken | note))
            if op.what == "iprobe" and not any(m[0] in found for m in there):
                results.append((on, blocked, flight, posted, unexpected, open_, found, taken | {(op.line, 0)}))
            return results
        mine = [(k, r, q) for q in op.reqs for k in "sr"]
        if op.what in ("wait", "waitall"):
            waiting = tuple(b for b in mine if b in open_)
            return [(on, self._put(blocked, r, waiting), flight, posted, unexpected, open_, found, taken)]
        gone = {q for line, what in taken if isinstance(what, tuple) and line < 0 and self._rank_of(-line) == r for q in what}
        active = [q for q in op.reqs if q not in gone]
        done = [q for q in active if not {("s", r, q), ("r", r, q)} & open_]
        outcomes: list[tuple[int, ...]] = [(q,) for q in done]
        if op.what == "test" or not active:
            outcomes.append(())
        return [(on, blocked, flight, posted, unexpected, open_, found, taken | {(-op.line, o)}) for o in outcomes]

    def _rank_of(self, line: int) -> int:
        return next(r for r, ops in enumerate(self.ranks) if any(op.line == line for op in ops))

    def _matched(self, st: State, entry: tuple[Any, ...], m: Msg) -> State:
        pcs, blocked, flight, posted, unexpected, open_, found, taken = st
        if entry[1] == ANY:
            taken |= {(entry[0], m[0])}
        return (pcs, blocked, flight, posted, unexpected, open_ - {entry[3], m[3]}, found - {m[0]}, taken)

    def _arrive(self, st: State, pair: int) -> State:
        pcs, blocked, flight, posted, unexpected, open_, found, taken = st
        m, *rest = flight[pair]
        r = pair % len(self.ranks)
        flight = self._put(flight, pair, tuple(rest))
        for entry in posted[r]:
            if _fits(entry[1], entry[2], m):
                posted = self._put(posted, r, tuple(e for e in posted[r] if e is not entry))
                return self._matched((pcs, blocked, flight, posted, unexpected, open_, found, taken), entry, m)
        return (pcs, blocked, flight, posted, self._put(unexpected, r, (*unexpected[r], m)), open_, found, taken)

