"""The abstract machine: ranks that carry out their steps, messages that have been sent, receives that have been posted.

Time does not exist. What can differ between two executions is

* which message a receive from any source takes, or a probe finds. MPI 1.1, 3.5: messages of one pair and communicator do not overtake each
  other, and a message takes the first posted receive that it matches; messages of different senders come in any order, whatever the order
  in which they were sent. A match is therefore a step of its own, open for as long as the receive is unmatched;
* the outcome of a test: it may fail, and may succeed if what it tests for can complete by then (`Choose`);
* where a buffer of the runtime can overflow, how far each rank is when it does (`Begin`). Only then are calls interleaved; and messages
  then come in the order in which they are sent, since what a receive takes decides what stays in a buffer.

Everything else is carried out at once, because nobody can tell when it happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

from .buffers import Buffers, PoolSize
from .program import ANY_SOURCE, ANY_TAG, CALL, CHOICE, COUNTED, JOIN, NOTIFY, PROBE, RECV, SEND, SPAWN, WAIT, ExploredProgram

__all__ = ["Begin", "Choose", "ExecutionState", "Move", "ProgramMachine", "Take"]


class Take(NamedTuple):
    """A receive (or probe) takes (or finds) a message: both by the number of the step that starts them."""

    rank: int
    receive: int
    message: int
    probe: bool = False


class Choose(NamedTuple):
    """A test or wait ends: the requests that it completes, empty if it fails."""

    rank: int
    choice: int
    slots: tuple[int, ...]
    probe: bool = False


class Begin(NamedTuple):
    """A rank begins its next call."""

    rank: int
    call: int


Move = Take | Choose | Begin


class Posted(NamedTuple):
    """A receive that has not matched."""

    step: int
    src: int
    ctx: int
    tag: int
    bytes: int
    slot: int


class PendingMessage(NamedTuple):
    """A message that no receive has taken. ``slot`` is complete when one has (0: it was at once); ``held``: its buffers in a pool;
    ``eager``: its data are on their way."""

    step: int
    src: int
    ctx: int
    tag: int
    bytes: int
    slot: int
    held: tuple[int, ...] = ()
    eager: bool = True


_STEPS = 1 << 24


def _takes(src: int, ctx: int, tag: int, m: PendingMessage) -> bool:
    return m.ctx == ctx and src in (ANY_SOURCE, m.src) and tag in (ANY_TAG, m.tag)


class ExecutionState:
    """A point of an execution. ``taken`` are the outcomes so far that the order decided; ``path`` is how it was reached and ``pairs`` are
    its matches (steps of the receive and the send), last first."""

    __slots__ = (
        "aborted", "absorbs", "counted", "finished", "inbox", "joined", "must", "open", "pairs", "path", "pc", "pins", "pools",
        "posted", "probed", "pushing", "queue", "spaces", "taken", "work",
    )

    pc: list[int]
    open: set[int]
    posted: list[list[Posted]]
    queue: list[list[PendingMessage]]
    inbox: list[list[PendingMessage]]
    pins: list[list[tuple[int, int, int, PendingMessage]]]
    probed: dict[tuple[int, int], PendingMessage]
    joined: dict[Any, int]
    counted: list[int]
    must: set[int]
    taken: frozenset[tuple[int, Any]]
    path: Any
    pairs: Any
    pools: dict[int, tuple[int, tuple[int, ...]]]
    spaces: dict[tuple[int, int], int]
    pushing: dict[int, int]
    absorbs: list[bool]
    aborted: str
    finished: int
    work: list[int]

    def copy(self) -> ExecutionState:
        """An independent copy."""
        new = ExecutionState.__new__(ExecutionState)
        new.pc = self.pc.copy()
        new.open = self.open.copy()
        new.posted = [p.copy() for p in self.posted]
        new.queue = [q.copy() for q in self.queue]
        new.inbox = [q.copy() for q in self.inbox]
        new.pins = [p.copy() for p in self.pins]
        new.probed = self.probed.copy()
        new.joined = self.joined.copy()
        new.counted = self.counted.copy()
        new.must = self.must.copy()
        new.taken, new.path, new.pairs = self.taken, self.path, self.pairs
        new.pools, new.spaces, new.pushing = self.pools.copy(), self.spaces.copy(), self.pushing.copy()
        new.absorbs = self.absorbs.copy()
        new.aborted, new.finished = self.aborted, self.finished
        new.work = []
        return new

    def probed_by(self, rank: int) -> dict[int, PendingMessage]:
        """The messages that a rank's probes have found, by step."""
        return {at: m for (strand, at), m in self.probed.items() if strand == rank}

    def key(self) -> tuple[Any, ...]:
        """Equal for two states that cannot be told apart from here on, nor by what led to them."""
        return (
            tuple(self.pc), self.taken, tuple(sorted(self.pools.items())), tuple(sorted(self.spaces.items())),
            tuple(sorted(self.pushing.items())),
            tuple(tuple(m.step for m in q) for q in self.inbox), tuple(self.absorbs), self.aborted,
        )


class ProgramMachine:
    """Carries out a program under the buffers of a runtime.

    ``interleave``: calls are steps of their own (`Begin`), as they must be where buffers can overflow (``coupled``); else every rank goes
    on by itself.
    """

    def __init__(self, program: ExploredProgram, buffers: Buffers, *, interleave: bool | None = None) -> None:
        self.program, self.buffers = program, buffers
        self.ops, self.rank_of = program.strands, program.rank_of
        self.ranks = program.ranks
        self._strands_of: list[list[int]] = [[] for _ in range(self.ranks)]
        for strand, rank in enumerate(self.rank_of):
            self._strands_of[rank].append(strand)
        self._owner: dict[int, int] = {}  # slot -> strand
        self._spawned: dict[int, int] = {}  # strand -> slot that it completes
        self._last: list[dict[tuple[int, int, int], int]] = [{} for _ in self.ops]
        self.messages: dict[int, PendingMessage] = {}
        """Every message that has been sent in some execution, by step."""
        self._calls: list[list[int]] = []
        self._about: dict[int, tuple[str, int, int]] = {}
        self._look_ahead()
        self.tight = _Tight(program, buffers)
        self.coupled = bool(self.tight)
        """Whether a buffer can overflow: messages then come in the order in which they are sent."""
        self.interleave = self.coupled if interleave is None else interleave

    def _look_ahead(self) -> None:
        """By strand: the last step that sends to a rank, in a context, with a tag (ANY_TAG: any)."""
        for strand, ops in enumerate(self.ops):
            last, calls = self._last[strand], [-1]
            for at, op in enumerate(ops):
                calls.append(op[1] if op[0] == CALL else calls[-1])
                if op[0] in (SEND, RECV):
                    what = "collective" if op[2] % 2 else "send" if op[0] == SEND else "receive"
                    self._about[op[6] if op[0] == SEND else op[5]] = what, op[1], op[3]
                if op[0] == SEND:
                    last[op[1], op[2], op[3]] = last[op[1], op[2], ANY_TAG] = at
                    self._owner[op[6]] = strand
                elif op[0] == RECV:
                    self._owner[op[5]] = strand
                elif op[0] == SPAWN:
                    self._owner[op[2]], self._spawned[op[1]] = strand, op[2]

            self._calls.append(calls)

    def call_of(self, strand: int, step: int) -> int:
        """The call that a step belongs to (index in `ExploredProgram.calls`)."""
        return self._calls[strand][step + 1]

    def calls_before(self, strand: int, step: int) -> int:
        """How many calls a rank has begun when it is at a step."""
        return sum(op[0] == CALL for op in self.ops[strand][:step])

    def about(self, slot: int) -> tuple[str, int, int]:
        """The operation that a slot belongs to: ``send``, ``receive`` or ``collective``, the peer, the tag."""
        return self._about.get(slot, ("collective", ANY_SOURCE, 0))

    def start(self) -> ExecutionState:
        """The state in which no rank can go on by itself."""
        st = ExecutionState.__new__(ExecutionState)
        strands, n = len(self.ops), self.ranks
        st.pc = [0] * n + [-1] * (strands - n)
        st.open, st.must = set(), set()
        st.posted, st.queue, st.inbox, st.pins = ([[] for _ in range(n)] for _ in range(4))  # type: ignore[assignment]
        st.probed, st.joined = {}, {}
        st.counted = [0] * n
        st.taken, st.path, st.pairs = frozenset(), None, None
        st.pools = {h: (p.total, (0,) * len(p.classes)) for h, p in self.tight.pools.items()}
        st.spaces, st.pushing = {}, {}
        st.absorbs = [False] * n
        st.aborted, st.finished = "", 0
        st.work = list(range(n))
        self.settle(st)
        return st

    # ---- moves

    def moves(self, st: ExecutionState) -> list[Move]:
        """The possible next steps, in a fixed order; without any the execution is over."""
        if st.aborted:
            return []
        found: list[Move] = []
        for strand in range(self.ranks):
            at = st.pc[strand]
            if at < len(self.ops[strand]):
                op = self.ops[strand][at]
                if op[0] == CHOICE and -op[3] not in st.must:
                    found += self._outcomes(st, strand, op)
                elif op[0] == CALL and self.interleave:
                    found.append(Begin(strand, op[1]))
                elif op[0] == PROBE:
                    found += self._finds(st, strand, at, op)
        for rank in range(self.ranks if not self.coupled else 0):
            for posted in st.posted[rank]:
                if posted.src == ANY_SOURCE:
                    found += [Take(rank, posted.step, m.step) for m in self.candidates(st, rank, posted)]
        return found

    def apply(self, st: ExecutionState, move: Move) -> ExecutionState:
        """The state after a move, and all that follows from it by itself."""
        new = st.copy()
        new.path = (move, st.path)
        if isinstance(move, Begin):
            new.pc[move.rank] += 1
            new.absorbs[move.rank] = False
            new.work.append(move.rank)
        elif isinstance(move, Choose):
            new.taken = st.taken | {(-move.choice, move.slots)}
            if move.slots:
                new.must |= {-move.choice, *move.slots}
            else:
                new.pc[move.rank] += 1
            new.work.append(move.rank)
        elif move.probe:
            if move.message:
                m = next(m for m in new.queue[move.rank] if m.step == move.message)
                op = self.ops[move.rank][new.pc[move.rank]]
                new.pins[move.rank].append((op[1], op[2], op[3], m))
                new.probed[move.rank, new.pc[move.rank]] = m
            new.taken = st.taken | {(move.receive, move.message)}
            new.pc[move.rank] += 1
            new.work.append(move.rank)
        else:
            at = next(i for i, p in enumerate(new.posted[move.rank]) if p.step == move.receive)
            m = next(m for m in new.queue[move.rank] if m.step == move.message)
            self._match(new, move.rank, at, m)
        self.settle(new)
        return new

    def _outcomes(self, st: ExecutionState, strand: int, op: tuple[Any, ...]) -> Iterator[Choose]:
        _, what, slots, number = op
        active = [s for s in slots if s not in st.must]  # those that another choice has completed are gone
        if what in ("test", "all", "anytest", "sometest"):
            yield Choose(strand, number, ())
        if what in ("test", "all"):
            if active:
                yield Choose(strand, number, tuple(active))
        elif what in ("any", "anytest"):
            yield from (Choose(strand, number, (s,)) for s in active)
            if what == "any" and not active:
                yield Choose(strand, number, ())
        else:
            for k in range(1, len(active) + 1):
                yield from (Choose(strand, number, some) for some in combinations(active, k))
            if what == "some" and not active:
                yield Choose(strand, number, ())

    def _finds(self, st: ExecutionState, strand: int, at: int, op: tuple[Any, ...]) -> Iterator[Take]:
        probe = Posted(0, op[1], op[2], op[3], -1, 0)
        step = strand * _STEPS + at + 1
        known = any(_takes(probe.src, probe.ctx, probe.tag, pinned) for *_, pinned in st.pins[strand])  # found before, and still there
        found = self.candidates(st, strand, probe, of_probe=True)
        for m in found[:1] if self.coupled else found:
            yield Take(strand, step, m.step, True)
        if not op[4] and not known:
            yield Take(strand, step, 0, True)

    def candidates(self, st: ExecutionState, rank: int, r: Posted, *, of_probe: bool = False) -> list[PendingMessage]:
        """The messages that an unmatched receive may take now, the first of each sender."""
        earlier = []
        if st.posted[rank]:
            for p in st.posted[rank]:
                if p.step == r.step and not of_probe:
                    break
                earlier.append(p)
        found: list[PendingMessage] = []
        senders = set()
        for m in st.queue[rank]:
            if m.src in senders or not _takes(r.src, r.ctx, r.tag, m):
                continue
            senders.add(m.src)
            if any(_takes(p.src, p.ctx, p.tag, m) for p in earlier):
                continue
            found.append(m)
        if st.pins[rank] and len(found) > 1:
            for src, ctx, tag, pinned in st.pins[rank]:
                if _takes(r.src, r.ctx, r.tag, pinned):
                    found = [m for m in found if m is pinned or not _takes(src, ctx, tag, m)]
        return found

    def is_closed(self, st: ExecutionState, rank: int, r: Posted, found: list[PendingMessage]) -> bool:
        """Whether the receive can never have other candidates than ``found``: nobody else will send it anything."""
        if len(found) == 1 and any(
            found[0] is pinned and src in (ANY_SOURCE, r.src) and ctx == r.ctx and tag in (ANY_TAG, r.tag)
            for src, ctx, tag, pinned in st.pins[rank]
        ):  # a probe that looked for all that the receive takes has found it first
            return True
        senders = {m.src for m in found}
        if any(m.src not in senders and _takes(r.src, r.ctx, r.tag, m) for m in st.queue[rank] + st.inbox[rank]):
            return False
        key = (rank, r.ctx, r.tag)
        # The messages of collectives have contexts of their own, so that only the ranks themselves count.
        return not any(s not in senders and self._last[s].get(key, -1) >= st.pc[s] for s in range(self.ranks))

    # ---- what happens by itself

    def settle(self, st: ExecutionState) -> None:
        """Carries out every step that is nobody's choice."""
        while not st.aborted:
            while st.work and not st.aborted:
                self._go(st, st.work.pop())
            if self.coupled and not st.aborted and self._absorb(st):
                continue
            if st.aborted or not self._only_ones(st):
                return

    def _only_ones(self, st: ExecutionState) -> bool:
        """Matches receives from any source that have one candidate and will have no other."""
        if self.interleave:
            return False  # it may happen later: buffers are held until then
        for rank in range(self.ranks):
            for at, r in enumerate(st.posted[rank]):
                if r.src != ANY_SOURCE or not st.queue[rank]:
                    continue
                found = self.candidates(st, rank, r)
                if len(found) == 1 and self.is_closed(st, rank, r, found):
                    self._match(st, rank, at, found[0])
                    return True
        return False

    def _go(self, st: ExecutionState, strand: int) -> None:
        """Carries out a strand's steps until it has to wait."""
        ops, rank, interleave = self.ops[strand], self.rank_of[strand], self.interleave
        at = st.pc[strand]
        if at < 0:
            return
        while at < len(ops):
            op = ops[at]
            kind = op[0]
            if kind == CALL:
                if interleave:
                    break
            elif kind == SEND:
                if not self._send(st, strand, rank, at, op):
                    break
            elif kind == RECV:
                _, src, ctx, tag, size, slot, after = op
                if after >= 0:
                    found = st.probed.get((strand, after))
                    if found is not None:
                        src, tag = found.src, found.tag
                st.open.add(slot)
                st.posted[rank].append(Posted(strand * _STEPS + at + 1, src, ctx, tag, size, slot))
                st.pc[strand] = at + 1
                self._pair(st, rank)
            elif kind == WAIT:
                if not st.open.isdisjoint(op[1]):
                    break
            elif kind == CHOICE:
                if -op[3] not in st.must or not st.open.isdisjoint(s for s in op[2] if s in st.must):
                    break
            elif kind == PROBE:
                if op[1] != ANY_SOURCE and op[4]:  # one sender: the first message is the one it finds
                    found_ = self.candidates(st, rank, Posted(0, op[1], op[2], op[3], -1, 0), of_probe=True)
                    if not found_:
                        break
                    st.pins[rank].append((op[1], op[2], op[3], found_[0]))
                    st.probed[strand, at] = found_[0]
                else:
                    break
            elif kind == NOTIFY:
                st.counted[op[1]] += 1
                st.work += self._strands_of[op[1]]
            elif kind == COUNTED:
                if st.counted[rank] < op[1]:
                    break
                st.counted[rank] -= op[1]
            elif kind == JOIN:
                there = st.joined.get(op[1], 0) | (1 << rank)
                if there != st.joined.get(op[1], 0):
                    st.joined[op[1]] = there
                    if there.bit_count() == len(op[2]):
                        st.work += [r for r in op[2] if r != rank]
                if there.bit_count() < len(op[2]):
                    break
            elif kind == SPAWN:
                st.open.add(op[2])
                st.pc[op[1]] = 0
                st.work.append(op[1])
            at += 1
            st.pc[strand] = at
            if st.aborted:
                return
        else:
            if strand < self.ranks:
                st.finished |= 1 << strand
            else:
                self._complete(st, self._spawned[strand])
        if strand == rank and self.coupled:  # it waits in a call, and not for space; or it has finished
            takes_in = strand not in st.pushing or self._drains(rank, st.pushing[strand])
            st.absorbs[rank] = (at >= len(ops) or ops[at][0] != CALL) and takes_in

    def _complete(self, st: ExecutionState, slot: int) -> None:
        if slot in st.open:
            st.open.discard(slot)
            st.work += self._strands_of[self.rank_of[self._owner[slot]]]

    def _send(self, st: ExecutionState, strand: int, rank: int, at: int, op: tuple[Any, ...]) -> bool:
        _, dst, ctx, tag, size, waits, slot, eager = op
        held: tuple[int, ...] = ()
        if self.coupled and dst != rank and eager:
            if not self._takes_space(st, strand, rank, dst, size):
                return False
            held = self._hold(st, rank, dst, size)
            if st.aborted:
                return False
        if waits:
            st.open.add(slot)
        m = PendingMessage(strand * _STEPS + at + 1, rank, ctx, tag, size, slot if waits else 0, held, eager)
        self.messages[m.step] = m
        st.pc[strand] = at + 1
        if self.coupled and dst != rank:
            st.inbox[dst].append(m)
        else:
            st.queue[dst].append(m)
            self._pair(st, dst)
        return True

    def _pair(self, st: ExecutionState, rank: int) -> None:
        """Matches what nobody can choose: receives that name their source; where messages come as they are sent, all."""
        posted = st.posted[rank]
        if self.coupled:
            self._pair_as_they_come(st, rank)
            posted = []
        again = True
        while again and posted and st.queue[rank]:
            again = False
            for at, r in enumerate(posted):
                if r.src == ANY_SOURCE:
                    continue
                found = self.candidates(st, rank, r)
                if found:
                    self._match(st, rank, at, found[0])
                    again = True
                    break
        if st.queue[rank]:
            st.work += [s for s in self._strands_of[rank] if s < self.ranks and self._probes(st, s)]

    def _pair_as_they_come(self, st: ExecutionState, rank: int) -> None:
        for m in list(st.queue[rank]):
            at = next((i for i, p in enumerate(st.posted[rank]) if _takes(p.src, p.ctx, p.tag, m)), None)
            if at is not None:
                self._match(st, rank, at, m)
                return  # it has looked again

    def _probes(self, st: ExecutionState, strand: int) -> bool:
        ops, at = self.ops[strand], st.pc[strand]
        return 0 <= at < len(ops) and ops[at][0] == PROBE

    def _match(self, st: ExecutionState, rank: int, at: int, m: PendingMessage) -> None:
        r = st.posted[rank].pop(at)
        st.queue[rank].remove(m)
        st.pairs = (r.step, m.step, st.pairs)
        if st.pins[rank]:
            st.pins[rank] = [p for p in st.pins[rank] if p[3] is not m]
        if self.program.strands[(r.step - 1) // _STEPS][(r.step - 1) % _STEPS][1] == ANY_SOURCE:
            st.taken |= {(r.step, m.step)}
        if 0 <= r.bytes < m.bytes:
            st.aborted = f"a message of {m.bytes} B from rank {m.src} to rank {rank} is longer than its receive buffer of {r.bytes} B"
        if m.held:
            self._give(st, rank, m.held)
        self._complete(st, r.slot)
        if m.slot:
            self._complete(st, m.slot)
        self._pair(st, rank)

    # ---- buffers that can overflow

    def _takes_space(self, st: ExecutionState, strand: int, rank: int, dst: int, size: int) -> bool:
        """Whether a sender that takes in nothing can put a message into its path; it waits until the receiver has taken all in."""
        key = self.tight.space(rank, dst)
        if key is None:
            return True
        path = self.buffers.path(rank, dst)
        assert path.space is not None
        used, need = st.spaces.get(key, 0), path.units(size)
        if st.absorbs[dst]:
            st.pushing.pop(strand, None)
            return True
        if used + need > path.space.total:
            st.spaces[key] = path.space.total
            st.pushing[strand] = dst
            return False
        st.spaces[key] = used + need
        st.pushing.pop(strand, None)
        return True

    def _drains(self, rank: int, dst: int) -> bool:
        space = self.buffers.path(rank, dst).space
        return space is not None and space.drains

    def _hold(self, st: ExecutionState, rank: int, dst: int, size: int) -> tuple[int, ...]:
        host = self.buffers.hosts[rank]
        pool = self.tight.pools.get(host) if self.buffers.hosts[dst] == host else None
        if pool is None:
            return ()
        path = self.buffers.path(rank, dst)
        took: list[int] = []
        for buffer in pool.buffers(path.packets(size)):
            rest, free = st.pools[host]
            if buffer >= 0 and free[buffer]:
                free = (*free[:buffer], free[buffer] - 1, *free[buffer + 1 :])
            else:
                rest -= pool.bytes_of(buffer)
            if rest < 0:
                st.aborted = f"the shared memory pool of {pool.total} B on host {self.host(host)} is exhausted"
                return ()
            st.pools[host] = rest, free
            took.append(buffer)
        return tuple(took)

    def host(self, index: int) -> str:
        """A host's name."""
        return self.buffers.names[index] if index < len(self.buffers.names) else str(index)

    def _give(self, st: ExecutionState, rank: int, held: tuple[int, ...]) -> None:
        host = self.buffers.hosts[rank]
        pool = self.tight.pools[host]
        rest, free = st.pools[host]
        for buffer in held:
            if buffer < 0:
                rest += pool.bytes_of(buffer)
            else:
                free = (*free[:buffer], free[buffer] + 1, *free[buffer + 1 :])
        st.pools[host] = rest, free

    def _absorb(self, st: ExecutionState) -> bool:
        """The ranks that wait in a call take in what has come; whether anything changed."""
        changed = False
        for rank in range(self.ranks):
            if not st.absorbs[rank] or (not st.inbox[rank] and not any(key[1] == rank for key in st.spaces)):
                continue
            for key in [k for k in st.spaces if k[1] == rank]:
                del st.spaces[key]
                st.work += [s for s, to in st.pushing.items() if to == rank]
                changed = True
            while st.inbox[rank] and st.absorbs[rank] and not self._may_go_on(st, rank):
                m = st.inbox[rank].pop(0)
                if m.held and not self.tight.pools[self.buffers.hosts[rank]].holds:
                    self._give(st, rank, m.held)
                    m = m._replace(held=())
                st.queue[rank].append(m)
                changed = True
                self._pair(st, rank)
                self._overflow(st, rank)
                if st.aborted:
                    return False
        return changed

    def _may_go_on(self, st: ExecutionState, rank: int) -> bool:
        """Whether what a rank waits for has come: it then takes in nothing more."""
        ops, at = self.ops[rank], st.pc[rank]
        return at < len(ops) and (
            (ops[at][0] == WAIT and st.open.isdisjoint(ops[at][1]))
            or (ops[at][0] == CHOICE and -ops[at][3] in st.must and st.open.isdisjoint(s for s in ops[at][2] if s in st.must))
            or (ops[at][0] == PROBE and any(_takes(ops[at][1], ops[at][2], ops[at][3], m) for m in st.queue[rank]))
        )

    def _overflow(self, st: ExecutionState, rank: int) -> None:
        limit = self.buffers.unexpected
        if not limit or st.aborted:
            return
        nobodys = sum(m.bytes for m in st.queue[rank] if m.eager and not any(_takes(p.src, p.ctx, p.tag, m) for p in st.posted[rank]))
        if nobodys > limit:
            st.aborted = f"the fixed buffer of rank {rank} for unexpected messages ({limit} B) overflows"


class _Tight:
    """The buffers that the messages of a program could fill, if none were taken out: the only ones that matter."""

    def __init__(self, program: ExploredProgram, buffers: Buffers) -> None:
        self.buffers = buffers
        self.pools: dict[int, PoolSize] = {}
        in_pool: dict[int, int] = {}
        to_rank = [0] * program.ranks
        in_space: dict[tuple[int, int], int] = {}
        for strand, ops in enumerate(program.strands):
            rank = program.rank_of[strand]
            for op in ops:
                if op[0] != SEND or op[1] == rank or not op[7]:
                    continue
                dst, size = op[1], op[4]
                path = buffers.path(rank, dst)
                if path.pool is not None:
                    host = buffers.hosts[rank]
                    in_pool[host] = in_pool.get(host, 0) + sum(map(path.pool.bytes_of, path.pool.buffers(path.packets(size))))
                to_rank[dst] += size
                if path.space is not None:
                    key = (-1 if path.space.shared else rank, dst)
                    in_space[key] = in_space.get(key, 0) + path.units(size)
        for host, total in in_pool.items():
            pool = buffers.same.pool
            if pool is not None and total > pool.total and pool.aborts:
                self.pools[host] = pool
        self.unexpected = bool(buffers.unexpected) and max(to_rank, default=0) > buffers.unexpected
        if not (self.pools or self.unexpected):  # where a sender drains, space alone stops nobody for good
            in_space = {key: total for key, total in in_space.items() if not self._space_drains(key)}
        self.spaces = {key for key, total in in_space.items() if self._fills(key, total, program)}

    def _fills(self, key: tuple[int, int], total: int, program: ExploredProgram) -> bool:
        path = self.buffers.same if key[0] < 0 else self.buffers.path(*key)
        assert program.ranks > key[1]
        return path.space is not None and total > path.space.total

    def _space_drains(self, key: tuple[int, int]) -> bool:
        path = self.buffers.same if key[0] < 0 else self.buffers.path(*key)
        return path.space is not None and path.space.drains

    def __bool__(self) -> bool:
        return bool(self.pools or self.unexpected or self.spaces)

    def space(self, rank: int, dst: int) -> tuple[int, int] | None:
        """The buffer space that messages from one rank to another share, if it can be full."""
        path = self.buffers.path(rank, dst)
        if path.space is None:
            return None
        key = (-1 if path.space.shared else rank, dst)
        return key if key in self.spaces else None
