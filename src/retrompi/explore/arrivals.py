"""Whether messages can arrive in an order in which an execution's receives match as they do.

MPI's rules alone (which `retrompi.explore.machine` follows) are per pair of ranks, tag and communicator. A library that puts what arrives
into one queue keeps more: a rank that has received a message knows that whatever the same sender had sent it before is there too, ahead of
what others send later, and a receive from any source that it posts then takes one of those. This matters only for a rank that receives from
any source, and also with other tags or communicators; the events of an execution and the order that they imply must have no cycle.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from .machine import ExecutionState, PendingMessage, ProgramMachine
from .program import ANY_SOURCE, ANY_TAG, CHOICE, PROBE, RECV, SEND, SPAWN, WAIT, ExploredProgram

__all__ = ["can_arrive", "matters"]

_STEPS = 1 << 24


def matters(program: ExploredProgram) -> bool:
    """Whether a rank receives from any source and also otherwise, so that an execution must be looked at."""
    kinds: dict[int, set[tuple[int, int]]] = defaultdict(set)
    wild: set[int] = set()
    for strand, ops in enumerate(program.strands):
        rank = program.rank_of[strand]
        for op in ops:
            if op[0] in (RECV, PROBE):
                kinds[rank].add((op[2], op[3]))
                if op[1] == ANY_SOURCE:
                    wild.add(rank)
    return any(len(kinds[rank]) > 1 for rank in wild)


def can_arrive(st: ExecutionState, program: ExploredProgram, machine: ProgramMachine) -> bool:
    """Whether there is an order of all events that explains the matches of an execution."""
    after: dict[Any, list[Any]] = defaultdict(list)
    receive_of: dict[int, int] = {}  # message -> receive, by step
    pairs = st.pairs
    while pairs is not None:
        receive, message, pairs = pairs
        receive_of[message] = receive
    chosen = {-step: what for step, what in st.taken if step < 0}
    sent: dict[int, list[PendingMessage]] = defaultdict(list)  # by receiver, in the order of each sender
    for strand, ops in enumerate(program.strands):
        last: dict[int, int] = {}
        for at, op in enumerate(ops[: max(st.pc[strand], 0)]):
            here, step = ("e", strand, at), strand * _STEPS + at + 1
            after["e", strand, at - 1].append(here)
            if op[0] == SEND:
                after[here].append(("a", step))
                sent[op[1]].append(machine.messages[step])
                if op[1] in last:
                    after["a", last[op[1]]].append(("a", step))
                last[op[1]] = step
            elif op[0] == RECV:
                after[here].append(("m", op[5]))
            elif op[0] == WAIT:
                for slot in op[1]:
                    after["m", slot].append(here)
            elif op[0] == CHOICE:
                for slot in chosen.get(op[3], ()):
                    after["m", slot].append(here)
            elif op[0] == SPAWN:
                after[here].append(("e", op[1], -1))
                if st.pc[op[1]] >= len(program.strands[op[1]]):
                    after["e", op[1], len(program.strands[op[1]]) - 1].append(("m", op[2]))
            elif op[0] == PROBE and (found := st.probed.get((strand, at))) is not None:
                after["a", found.step].append(here)
    for rank, messages in sent.items():
        for m in messages:
            receive = receive_of.get(m.step)
            if receive is None:
                continue
            op = program.strands[(receive - 1) // _STEPS][(receive - 1) % _STEPS]
            after["a", m.step].append(("m", op[5]))
            if m.slot:
                after["m", op[5]].append(("m", m.slot))
            if op[1] == ANY_SOURCE:
                _behind(after, m, receive, op, messages, receive_of)
        for (strand, at), found in st.probed.items():
            if strand == rank and program.strands[strand][at][1] == ANY_SOURCE:
                _behind(after, found, strand * _STEPS + at + 1, program.strands[strand][at], messages, receive_of)
    return _acyclic(after)


def _behind(
    after: dict[Any, list[Any]], m: PendingMessage, step: int, op: Any, messages: list[PendingMessage], receive_of: dict[int, int]
) -> None:
    """What else would have matched came after ``m``, unless a receive posted earlier took it."""
    _, _, ctx, tag, *_ = op
    for x in messages:
        if x.step != m.step and x.src != m.src and x.ctx == ctx and tag in (x.tag, ANY_TAG) and not receive_of.get(x.step, 1 << 62) < step:
            after["a", m.step].append(("a", x.step))


def _acyclic(after: dict[Any, list[Any]]) -> bool:
    before: dict[Any, int] = defaultdict(int)
    for targets in after.values():
        for t in targets:
            before[t] += 1
    free = [n for n in list(after) if not before[n]]
    passed = 0
    while free:
        n = free.pop()
        passed += 1
        for t in after.get(n, ()):
            before[t] -= 1
            if not before[t]:
                free.append(t)
    return passed == len(set(after) | set(before))
