"""Runs the steps of all members of a collective on paper: which byte of whom lies where, and who has been combined into it.

A member has two buffers, 0 for what the operation gives and 1 for a running partial result. A cell of a buffer (a byte of the vector, a
block of a rank, a block on its way from one rank to another) holds the set of the members whose data are in it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

from retrompi import _engine

Cells = dict[int, frozenset[int]]
REDUCTIONS = ("reduce", "allreduce", "reducescatter", "reducescatterblock")
"""Operations in which every member begins with a whole vector of its own and combines what comes once."""


@dataclass
class Case:
    """A call by all members: vectors of ``size`` bytes, or blocks of ``counts`` bytes by rank, or ``matrix[i][j]`` bytes from i to j."""

    op: str
    algorithm: str
    n: int
    root: int = 0
    size: int = 0
    counts: list[int] = field(default_factory=list)
    matrix: list[list[int]] = field(default_factory=list)
    choices: dict[str, str] = field(default_factory=dict)
    hosts: list[int] = field(default_factory=list)

    def steps(self, me: int) -> list[dict[str, Any]]:
        args: dict[str, Any] = {"root": self.root, "choices": self.choices, "hosts": self.hosts}
        match self.op:
            case "gather" | "scatter" | "allgather":
                args |= {"bytes": self.counts[me], "bytes_in": self.counts[me]}
            case "gatherv":
                args |= {"bytes": self.counts[me], "in_": self.counts if me == self.root else []}
            case "scatterv":
                args |= {"bytes_in": self.counts[me], "out": self.counts if me == self.root else []}
            case "allgatherv" | "reducescatter":
                args |= {"in_": self.counts, "bytes": self.counts[me]}
            case "reducescatterblock":
                args |= {"bytes": self.counts[me], "bytes_in": self.counts[me]}
            case "alltoall":
                args |= {"bytes": self.matrix[0][0], "bytes_in": self.matrix[0][0]}
            case "alltoallv" | "alltoallw":
                args |= {"out": self.matrix[me], "in_": [row[me] for row in self.matrix]}
            case _:
                args |= {"bytes": self.size}
        return _engine.collective_steps(self.op, self.algorithm, self.n, me, **args)

    @property
    def total(self) -> int:
        """Bytes of the vector, or of all blocks together."""
        return self.size or sum(self.counts)

    def displacement(self, rank: int) -> int:
        return sum(self.counts[:rank])

    # -- what is where before and must be after

    def before(self, me: int) -> list[Cells]:
        """The two buffers of a member."""
        own = frozenset([me])
        match self.op:
            case "bcast":
                return [dict.fromkeys(range(self.size), own) if me == self.root else {}, {}]
            case "reduce" | "allreduce" | "reducescatter" | "reducescatterblock":
                return [dict.fromkeys(range(self.total), own), {}]
            case "scan":
                return [dict.fromkeys(range(self.size), own) for _ in range(2)]
            case "exscan":
                return [{}, dict.fromkeys(range(self.size), own)]
            case "gather" | "gatherv" | "allgather" | "allgatherv":
                return [dict.fromkeys(self.block(me), own), {}]
            case "scatter" | "scatterv":
                return [dict.fromkeys(range(self.total), own) if me == self.root else {}, {}]
            case "alltoall" | "alltoallv" | "alltoallw":
                return [{me * self.n + r: own for r in range(self.n)}, {}]
            case _:  # a barrier: a word of one byte that some tell
                return [{0: own}, {}]

    def block(self, rank: int) -> range:
        return range(self.displacement(rank), self.displacement(rank + 1))

    def after(self, me: int) -> Cells:
        """What must lie in buffer 0."""
        everybody = frozenset(range(self.n))
        match self.op:
            case "bcast":
                return dict.fromkeys(range(self.size), frozenset([self.root]))
            case "reduce":
                return dict.fromkeys(range(self.size), everybody) if me == self.root else {}
            case "allreduce":
                return dict.fromkeys(range(self.size), everybody)
            case "reducescatter" | "reducescatterblock":
                return dict.fromkeys(self.block(me), everybody)
            case "scan":
                return dict.fromkeys(range(self.size), frozenset(range(me + 1)))
            case "exscan":
                return dict.fromkeys(range(self.size), frozenset(range(me))) if me else {}
            case "gather" | "gatherv":
                return self.all_blocks() if me == self.root else {}
            case "allgather" | "allgatherv":
                return self.all_blocks()
            case "scatter" | "scatterv":
                return dict.fromkeys(self.block(me), frozenset([self.root]))
            case "alltoall" | "alltoallv" | "alltoallw":
                return {r * self.n + me: frozenset([r]) for r in range(self.n) if self.matrix[r][me]}
            case _:
                return {}

    def all_blocks(self) -> Cells:
        return {cell: frozenset([r]) for r in range(self.n) for cell in self.block(r)}

    def cells(self, moves: dict[str, Any]) -> list[int]:
        """The cells that a send or receive names."""
        named = [i for a, b in moves["ranges"] for i in range(a, b)]
        if moves["unit"] == "bytes" or self.op.startswith("alltoall"):
            return named
        return [cell for block in named for cell in self.block(block)]

    def weight(self, cells: list[int]) -> int:
        """Bytes of cells."""
        if self.op.startswith("alltoall"):
            return sum(self.matrix[c // self.n][c % self.n] for c in cells)
        return len(cells)


@dataclass
class Flow:
    """What happened: messages and bytes sent, bytes combined, by member; which members a member has heard of."""

    messages: list[int]
    bytes: list[int]
    combined: list[int]
    heard: list[set[int]]


class WrongFlow(AssertionError):
    """A step that a real library could not make, or a result that is not what the operation says."""


def run(case: Case) -> Flow:
    """Executes all members until the end; WrongFlow for a deadlock, a wrong length, data used twice, missing or wrong at the end."""
    n = case.n
    steps = [case.steps(me) for me in range(n)]
    at = [0] * n
    memory = [case.before(me) for me in range(n)]
    heard = [{me} for me in range(n)]
    wires: dict[tuple[int, int], deque[tuple[int, Cells, frozenset[int]]]] = defaultdict(deque)
    receives: dict[tuple[int, int], deque[int]] = defaultdict(deque)  # (from, to) -> ids of posted receives, in order
    arrived: dict[tuple[int, int], tuple[int, Cells, frozenset[int]]] = {}  # (member, id) -> what came
    open_slots: list[dict[int, tuple[str, dict[str, Any], int, list[int]]]] = [{} for _ in range(n)]
    numbers = [0] * n
    flow = Flow([0] * n, [0] * n, [0] * n, heard)
    to_combine = [0] * n

    def fail(me: int, why: str) -> WrongFlow:
        return WrongFlow(f"{case.op} {case.algorithm}, {n} members, root {case.root}: member {me}, step {at[me]}: {why}")

    def deliver(pair: tuple[int, int]) -> None:
        while wires[pair] and receives[pair]:
            arrived[pair[1], receives[pair].popleft()] = wires[pair].popleft()

    def finish(me: int, slot: int) -> bool:
        kind, step, number, cells = open_slots[me][slot]
        if kind == "irecv":
            if (me, number) not in arrived:
                return False
            size, data, known = arrived.pop((me, number))
            if size != step["bytes"]:
                raise fail(me, f"{size} B came from {step['peer']} where {step['bytes']} B are waited for")
            if sorted(data) != sorted(cells):
                raise fail(me, f"cells {sorted(data)} came from {step['peer']} where {sorted(cells)} are waited for")
            heard[me].update(known)
            for buffer in (b for b in (0, 1) if step["moves"]["buffers"] >> b & 1):
                mine = memory[me][buffer]
                for cell, who in data.items():
                    there = mine.get(cell, frozenset()) if step["moves"]["combine"] else frozenset()
                    if there & who:
                        raise fail(me, f"{sorted(there & who)} combined twice in cell {cell}")
                    mine[cell] = there | who
            if step["moves"]["combine"]:
                to_combine[me] += size
        del open_slots[me][slot]
        return True

    def advance(me: int) -> bool:
        step = steps[me][at[me]]
        kind = step["kind"]
        if kind in ("isend", "irecv"):
            if step["slot"] in open_slots[me]:
                raise fail(me, f"slot {step['slot']} is in use")
            peer, cells = step["peer"], case.cells(step["moves"])
            if not 0 <= peer < n:
                raise fail(me, f"there is no member {peer}")
            if case.weight(cells) != step["bytes"]:
                raise fail(me, f"{step['bytes']} B for {case.weight(cells)} B of data")
            if len(set(cells)) != len(cells):
                raise fail(me, "a cell twice in one message")
            numbers[me] += 1
            buffers = [step["moves"]["buffers"]] if kind == "isend" else [b for b in (0, 1) if step["moves"]["buffers"] >> b & 1]
            for slot, (other, s, _, busy) in open_slots[me].items():
                theirs = [s["moves"]["buffers"]] if other == "isend" else [b for b in (0, 1) if s["moves"]["buffers"] >> b & 1]
                if case.op.startswith("alltoall") and cells == busy:
                    continue  # the own block goes from the send buffer to the receive buffer, which are two
                lands = any(k == "irecv" and not x["moves"]["combine"] for k, x in ((kind, step), (other, s)))
                if lands and set(buffers) & set(theirs) and set(cells) & set(busy):
                    raise fail(me, f"what lands overlaps with slot {slot}")
            if kind == "isend":
                mine = memory[me][buffers[0]]
                missing = [c for c in cells if c not in mine]
                if missing:
                    raise fail(me, f"sends {missing[:5]} to {peer}, which it does not have")
                wires[me, peer].append((step["bytes"], {c: mine[c] for c in cells}, frozenset(heard[me])))
                flow.messages[me] += 1
                flow.bytes[me] += step["bytes"]
                deliver((me, peer))
            else:
                receives[peer, me].append(numbers[me])
                deliver((peer, me))
            open_slots[me][step["slot"]] = (kind, step, numbers[me], cells)
        elif kind == "wait":
            if step["slot"] not in open_slots[me]:
                raise fail(me, f"nothing is open in slot {step['slot']}")
            if not finish(me, step["slot"]):
                return False
        elif kind == "waitall":
            while open_slots[me]:
                if not finish(me, next(iter(open_slots[me]))):
                    return False
        elif kind == "combine":
            flow.combined[me] += step["bytes"]
        elif kind != "copy":
            raise fail(me, f"a step '{kind}' that messages cannot do")
        at[me] += 1
        return True

    moved = True
    while moved:
        moved = False
        for me in range(n):
            while at[me] < len(steps[me]) and advance(me):
                moved = True
    for me in range(n):
        if at[me] < len(steps[me]):
            raise fail(me, f"waits for ever in {steps[me][at[me]]}")
        if open_slots[me]:
            raise fail(me, f"slots {list(open_slots[me])} are never waited for")
        wanted = case.after(me)
        got = {c: memory[me][0].get(c, frozenset()) for c in wanted}
        if got != wanted:
            bad = next(c for c in wanted if got[c] != wanted[c])
            raise fail(me, f"has {sorted(got[bad])} in cell {bad} at the end instead of {sorted(wanted[bad])}")
    left = {pair: len(q) for pair, q in wires.items() if q} | {pair: len(q) for pair, q in receives.items() if q}
    if left:
        raise WrongFlow(f"{case.op} {case.algorithm}, {n} members: messages or receives without their other end: {left}")
    if case.op in REDUCTIONS and flow.combined != to_combine:
        raise WrongFlow(f"{case.op} {case.algorithm}, {n} members: {flow.combined} B combined where {to_combine} B came to be")
    return flow
