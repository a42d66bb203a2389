"""The search: every execution that the program can distinguish, each once.

Where no buffer can overflow, two executions differ only in what their open receives, probes and tests do, so a search branches there alone
(as ISP's POE does: Vakkalanka, Gopalakrishnan and Kirby, CAV 2008) and needs no order of calls. It branches on one receive only if nobody
else can still send to it: then its candidates are a persistent set. Where several are open, all are tried, and sleep sets keep an
execution from being followed twice (Godefroid 1996; source sets of Abdulla et al., POPL 2014, are the same idea for programs whose
dependences are found as they run, as in Flanagan and Godefroid, POPL 2005). An abandoned execution is one whose remaining moves all sleep.

Where a buffer can overflow, the order of calls counts: they are interleaved (`Begin`), and a state that has been met is not followed
again.
"""

from __future__ import annotations

import heapq
import math
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from retrompi.spec.declare.outcome import Outcome

from .arrivals import can_arrive, matters
from .buffers import Buffers
from .machine import Begin, Choose, ExecutionState, Move, PendingMessage, ProgramMachine, Take
from .program import ANY_SOURCE, ANY_TAG, CALL, CHOICE, COUNTED, JOIN, PROBE, RECV, WAIT, ExploredProgram
from .result import Count, ExecutionEnd, Explored, Stuck

__all__ = ["SearchLimits", "count_orders", "explore_program"]

Progress = Callable[[int], None]
_STEPS = 1 << 24


@dataclass(frozen=True)
class SearchLimits:
    """When a search stops: after so many orders (0: any number), after so many seconds (0: any time). ``counted``: states of a
    program of 100 calls, in proportion fewer of a longer one, after which the number of orders without reduction is estimated, from up to
    ``descents`` random ones (0: it is not wanted)."""

    orders: int = 0
    seconds: float = 0.0
    counted: int = 20_000
    descents: int = 200


DEFAULT = SearchLimits()
_DESCENDED = 20_000
"""Calls of all random descents together."""


class _Found:
    """The ends, and the shortest execution to each."""

    def __init__(self, program: ExploredProgram, machine: ProgramMachine) -> None:
        self.program, self.machine = program, machine
        self.ends: dict[Any, ExecutionEnd] = {}
        self.states: dict[Any, ExecutionState] = {}
        self.classes: set[Any] = set()
        self.look = not machine.coupled and matters(program)

    def add(self, st: ExecutionState) -> bool:
        """An execution has ended; False if it is none: a test was to succeed and does not, or no order of arrival explains it."""
        program, ops = self.program, self.machine.ops
        stuck: list[tuple[int, int]] = []
        taken = st.taken
        for strand in range(program.ranks):
            at = st.pc[strand]
            if at >= len(ops[strand]):
                continue
            stuck.append((strand, at))
            op = ops[strand][at]
            if op[0] == CHOICE:
                if op[1] not in ("any", "some") or any(s not in st.open and s not in st.must for s in op[2]):
                    return False
                chosen = {s for k, some in taken if k == -op[3] for s in some}
                if len(chosen) > 1 or any(s not in st.open for s in chosen):
                    return False
                taken = frozenset(t for t in taken if t[0] != -op[3])
            elif op[0] == PROBE and not op[4]:
                return False
        if self.look and not can_arrive(st, program, self.machine):
            return False
        key = (Outcome.ABORTED, st.aborted) if st.aborted else (Outcome.DEADLOCK, tuple(stuck)) if stuck else (Outcome.COMPLETED,)
        whole = hash((key, taken))
        if whole in self.classes:
            return True
        self.classes.add(whole)
        calls = self._calls(st)
        end = self.ends.get(key)
        if end is None:
            end = self.ends[key] = ExecutionEnd(key[0], st.aborted, calls=calls)
            self.states[key] = st
        elif calls < end.calls:
            end.calls, self.states[key] = calls, st
        end.classes += 1
        return True

    def _calls(self, st: ExecutionState) -> int:
        """The calls of the program that have begun."""
        if self.machine.interleave:
            return sum(isinstance(m, Begin) for m in _moves(st))
        begun = 0
        for strand in range(self.program.ranks):
            begun += self.machine.calls_before(strand, st.pc[strand])
        return begun

    def sorted_ends(self) -> list[ExecutionEnd]:
        """The ends with their shortest executions, completion first."""
        for key, end in self.ends.items():
            st = self.states[key]
            _tell(end, st, self.program, self.machine)
            if end.outcome == Outcome.DEADLOCK:
                end.stuck = tuple(_stuck_call(st, strand, self.program, self.machine) for strand, _ in key[1])
                end.detail = "; ".join(f"rank {s.rank} waits for {s.waits_for}" for s in end.stuck)
        return sorted(self.ends.values(), key=lambda e: (e.failed, e.calls, e.outcome, e.detail))


def _moves(st: ExecutionState) -> Iterable[Move]:
    """The moves that led to a state, last first."""
    path = st.path
    while path is not None:
        yield path[0]
        path = path[1]


def explore_program(
    program: ExploredProgram, buffers: Buffers, limits: SearchLimits = DEFAULT, progress: Progress | None = None
) -> Explored:
    """Visit every distinguishable execution of ``program``. ``progress`` is called with the orders followed so far."""
    began = time.perf_counter()
    machine = ProgramMachine(program, buffers)
    found = _Found(program, machine)
    result = Explored(open_ended=program.open_ended, interleaved=machine.interleave)
    search = _calls_too if machine.interleave else _matches
    search(machine, found, result, limits, progress, began)
    result.ends = found.sorted_ends()
    result.seconds = time.perf_counter() - began
    if limits.descents:
        result.unreduced = count_orders(program, buffers, limits)
    return result


def _over(result: Explored, limits: SearchLimits, began: float) -> bool:
    done = result.orders + result.abandoned
    if limits.orders and done >= limits.orders:
        result.limited = f"after {limits.orders} orders"
    elif limits.seconds and done % 64 == 0 and time.perf_counter() - began > limits.seconds:
        result.limited = f"after {limits.seconds:g} s"
    return bool(result.limited)


def _matches(
    machine: ProgramMachine, found: _Found, result: Explored, limits: SearchLimits, progress: Progress | None, began: float
) -> None:
    """Depth first over what is open, with persistent and sleep sets."""
    stack: list[tuple[ExecutionState, frozenset[Move]]] = [(machine.start(), frozenset())]
    while stack:
        st, asleep = stack.pop()
        moves, alone = _persistent(machine, st)
        if not moves:
            if found.add(st):
                result.orders += 1
            else:
                result.abandoned += 1
            if progress is not None:
                progress(result.orders + result.abandoned)
            if _over(result, limits, began):
                return
            continue
        awake = [m for m in moves if m not in asleep]
        if not awake:
            result.abandoned += 1
            if _over(result, limits, began):
                return
            continue
        tried: set[Move] = set() if alone else set(asleep)
        nexts: list[tuple[ExecutionState, frozenset[Move]]] = []
        for move in awake:
            sleeping = asleep if alone else tried
            nexts.append((machine.apply(st, move), frozenset(m for m in sleeping if independent(m, move))))
            tried.add(move)
        stack += reversed(nexts)


def independent(a: Move, b: Move) -> bool:
    """Whether two moves that are possible in one state lead to the same state in either order, neither disabling the other."""
    if isinstance(a, Take) and isinstance(b, Take):
        if a.rank != b.rank:
            return True
        # A probe and a receive of one rank: the probe's message must be the first to have come, which changes what others may take.
        return not a.probe and not b.probe and a.receive != b.receive and a.message != b.message
    return not isinstance(a, Begin) and not isinstance(b, Begin) and a.rank != b.rank


def _persistent(machine: ProgramMachine, st: ExecutionState) -> tuple[list[Move], bool]:
    """The moves to try in a state, and whether they are alternatives of one receive or test that nothing else can affect."""
    moves = machine.moves(st)
    groups: dict[tuple[int, int], list[Move]] = {}
    for m in moves:
        if isinstance(m, Choose):
            return [c for c in moves if isinstance(c, Choose) and c.choice == m.choice], True
        if isinstance(m, Take):
            groups.setdefault((m.rank, m.receive), []).append(m)
    best: list[Move] | None = None
    for rank in range(machine.ranks):
        for r in st.posted[rank]:
            group = groups.get((rank, r.step))
            if group is None or (best is not None and len(group) >= len(best)):
                continue
            if machine.is_closed(st, rank, r, machine.candidates(st, rank, r)):
                best = group
    return (best, True) if best is not None else (moves, False)


def _calls_too(
    machine: ProgramMachine, found: _Found, result: Explored, limits: SearchLimits, progress: Progress | None, began: float
) -> None:
    """Over calls and matches; a state met before is not followed again.

    How many calls have begun is a fact of a state, not of the way to it, so that the order of the search is free: in turns the state with
    the fullest buffers, and the one that has come furthest (of these with the emptiest). A limited search then finds failures and
    completion early.
    """
    first = machine.start()
    met = {hash(first.key())}
    states = {0: first}
    fullest, furthest = [(0, 0, 0)], [(0, 0, 0)]
    turn = number = 0
    while states:
        turn += 1
        a, b, at = heapq.heappop(fullest if turn % 2 else furthest)
        if at not in states:
            continue
        st, begun = states.pop(at), -(b if turn % 2 else a)
        moves = machine.moves(st)
        if not moves:
            if found.add(st):
                result.orders += 1
            else:
                result.abandoned += 1
            if _over(result, limits, began):
                return
        nexts = [machine.apply(st, move) for move in moves]
        alone = next((new for move, new in zip(moves, nexts, strict=True) if _unseen(st, move, new, machine)), None)
        for new in nexts if alone is None else [alone]:
            key = hash(new.key())
            if key in met:
                result.abandoned += 1
                if _over(result, limits, began):
                    return
                continue
            met.add(key)
            number += 1
            states[number] = new
            held = sum(m.bytes for waiting in (*new.inbox, *new.queue) for m in waiting) + sum(new.spaces.values())
            heapq.heappush(fullest, (-held, -begun - 1, number))
            heapq.heappush(furthest, (-begun - 1, held, number))
        if progress is not None:
            progress(result.orders + result.abandoned)


def _unseen(st: ExecutionState, move: Move, new: ExecutionState, machine: ProgramMachine) -> bool:
    """Whether a call only changed what its own rank sees: it returned without sending, without taking anything in, and without space
    being given back. In any order with the calls of others it does the same, so that it alone is tried."""
    if not isinstance(move, Begin):
        return False
    ops, at = machine.ops[move.rank], new.pc[move.rank]
    return (
        at < len(ops) and ops[at][0] == CALL and new.pools == st.pools and new.spaces == st.spaces and new.inbox == st.inbox
        and new.absorbs == st.absorbs and new.pushing == st.pushing and new.aborted == st.aborted and new.finished == st.finished
        and all(a == b for r, (a, b) in enumerate(zip(st.pc, new.pc, strict=True)) if r != move.rank)
    )


def count_orders(program: ExploredProgram, buffers: Buffers, limits: SearchLimits = DEFAULT) -> Count:
    """How many orders of calls and matches there are: counted over the states, or estimated from random descents (Knuth 1975)."""
    machine = ProgramMachine(program, buffers, interleave=True)
    exact = _count_paths(machine, min(limits.counted, 100 * limits.counted // max(len(program.calls), 1)))
    if exact is not None:
        return Count(_log10(exact), True)
    source = random.Random(1)
    logs: list[float] = []
    for _ in range(max(1, min(limits.descents, _DESCENDED // max(len(program.calls), 1)))):
        st, log = machine.start(), 0.0
        while moves := machine.moves(st):
            log += math.log10(len(moves))
            st = machine.apply(st, source.choice(moves))
        logs.append(log)
    most = max(logs)
    return Count(most + math.log10(sum(10 ** (x - most) for x in logs) / len(logs)), False)


def _log10(n: int) -> float:
    digits = max(len(str(n)) - 17, 0)
    return math.log10(n // 10**digits) + digits


def _count_paths(machine: ProgramMachine, most: int) -> int | None:
    """The number of paths through the states; None if there are more than ``most`` states."""
    orders: dict[Any, int] = {}
    stack: list[tuple[ExecutionState, Any, list[ExecutionState] | None]] = [(machine.start(), None, None)]
    stack[0] = (stack[0][0], stack[0][0].key(), None)
    while stack:
        st, key, nexts = stack.pop()
        if key in orders and nexts is None:
            continue
        if nexts is None:
            if len(orders) + len(stack) > most:
                return None
            nexts = [machine.apply(st, m) for m in machine.moves(st)]
            stack.append((st, key, nexts))
            stack += [(n, k, None) for n in nexts if (k := n.key()) not in orders]
        else:
            orders[key] = sum(orders[n.key()] for n in nexts) if nexts else 1
    return orders[machine.start().key()]


# ---- telling


def _tell(end: ExecutionEnd, st: ExecutionState, program: ExploredProgram, machine: ProgramMachine) -> None:
    """Fills in the choices of the open calls of an execution, and the order in which calls began."""
    moves = list(_moves(st))[::-1]
    done: dict[int, PendingMessage] = machine.messages
    line_of = machine.call_of
    for step, what in sorted(st.taken, key=lambda t: t[0]):
        if step < 0:  # a choice
            call, _ = program.choices[-step]
            c = program.calls[call]
            end.completions.append((c.rank, c.line, bool(what), [program.requests[s] for s in what if s in program.requests]))
            continue
        strand, at = (step - 1) >> 24, (step - 1) & (_STEPS - 1)
        c = program.calls[line_of(strand, at)]
        op = program.strands[strand][at]
        if op[0] == PROBE and not op[4]:
            end.completions.append((c.rank, c.line, bool(what), []))
        if what:
            m = done[what]
            end.matches.append((c.rank, c.line, m.src, m.tag))
    for strand in range(program.ranks):  # receives that took what a probe had found
        found = st.probed_by(strand)
        for at, op in enumerate(program.strands[strand][: st.pc[strand]]):
            if op[0] == RECV and op[6] in found:
                m = found[op[6]]
                c = program.calls[line_of(strand, at)]
                end.matches.append((c.rank, c.line, m.src, m.tag))
    end.order = [(program.calls[m.call].rank, program.calls[m.call].line) for m in moves if isinstance(m, Begin)]


def _stuck_call(st: ExecutionState, strand: int, program: ExploredProgram, machine: ProgramMachine) -> Stuck:
    at = st.pc[strand]
    op = machine.ops[strand][at]
    call = program.calls[machine.call_of(strand, at)]
    return Stuck(strand, program.files[strand], call.line, call.name, *_waits(st, strand, op, machine))


def _waits(st: ExecutionState, rank: int, op: tuple[Any, ...], machine: ProgramMachine) -> tuple[str, tuple[int, ...]]:
    """A sentence on the message that a stuck step waits for, and the ranks that could provide it."""
    texts: list[str] = []
    who: set[int] = set()
    others = set(range(machine.ranks)) - {rank}
    if rank in st.pushing:
        return f"rank {st.pushing[rank]} to take in what fills its path", (st.pushing[rank],)
    if op[0] in (WAIT, CHOICE):
        for slot in op[1] if op[0] == WAIT else op[2]:
            if slot not in st.open:
                continue
            kind, peer, tag = machine.about(slot)
            source = "any source" if peer == ANY_SOURCE else f"rank {peer}"
            label = "any tag" if tag == ANY_TAG else f"tag {tag}"
            texts.append(
                "the other ranks of a collective" if kind == "collective" else
                f"{source} to receive its message, {label}" if kind == "send" else f"a message from {source}, {label}"
            )
            who |= others if peer == ANY_SOURCE else {peer}
    elif op[0] == PROBE:
        source = "any source" if op[1] == ANY_SOURCE else f"rank {op[1]}"
        texts.append(f"a message from {source}, " + ("any tag" if op[3] == ANY_TAG else f"tag {op[3]}"))
        who |= others if op[1] == ANY_SOURCE else {op[1]}
    elif op[0] == JOIN:
        missing = [r for r in op[2] if not st.joined.get(op[1], 0) >> r & 1]
        texts.append("the other ranks of a collective")
        who |= set(missing)
    elif op[0] == COUNTED:
        texts.append("the other ranks of a broadcast")
        who |= others
    return " and ".join(dict.fromkeys(texts)), tuple(sorted(who))
