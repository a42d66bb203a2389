"""The trace of a recognised pattern on a wanted number of ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from retrompi._engine import Trace
from retrompi.traces.files import parse
from retrompi.traces.lines import RECVS, SENDS

from .calls import write_call
from .grid import Grid, Relation, peer_of, simplest, vector_text
from .laws import Law
from .program import Round, Step, turns
from .recognise import Class, NotRecognised, Pattern, call_context, contexts, is_root, relations_of

__all__ = ["ExtrapolatedTrace", "make"]


@dataclass
class ExtrapolatedTrace:
    """The trace made, its grid, and how many numbers come from laws that no further recorded size has tested."""

    trace: Trace
    grid: Grid
    untested: int
    numbers: int


def make(pattern: Pattern, ranks: int) -> ExtrapolatedTrace:
    """The trace of ``pattern`` on ``ranks`` ranks. Raises Refused."""
    dims = pattern.law.of(ranks)
    if dims is None:
        raise NotRecognised(f"{ranks} ranks do not make a grid of this law: {pattern.law.name}")
    grid = Grid(dims)
    writer = _Writer(pattern, grid)
    texts = [writer.rank(rank) for rank in range(ranks)]
    lonely = next(iter((writer.sent - writer.received) or (writer.received - writer.sent)), None)
    if lonely is not None:
        raise NotRecognised(f"on {ranks} ranks a message from {lonely[0]} to {lonely[1]} with tag {lonely[2]} would have only one end")
    return ExtrapolatedTrace(parse(texts, name="extrapolated"), grid, writer.untested, writer.numbers)


class _Planned(NamedTuple):
    """A call of a class on the wanted grid: where it is in the program, its numbers, and what scales the computation before it."""

    step: Step
    id: int
    spot: tuple[int, int]
    turn: int
    numbers: list[int]
    ratio: float


class _Writer:
    def __init__(self, pattern: Pattern, grid: Grid) -> None:
        self.pattern = pattern
        self.grid = grid
        self.top = pattern.grids[pattern.largest.ranks]
        self.sent: Counter[tuple[int, int, int]] = Counter()
        self.received: Counter[tuple[int, int, int]] = Counter()
        self.untested = 0
        self.numbers = 0
        self._values: dict[int, int] = {}
        self._ratios: dict[tuple[tuple[int, int, bool], ...], float] = {}
        self._kept: list[Sequence[Law]] = []
        self._plans: dict[str, list[_Planned]] = {}

    def rank(self, rank: int) -> str:
        """The lines of a rank."""
        key = self.pattern.key(rank, self.grid)
        of = self.pattern.classes.get(key)
        if of is None:
            raise NotRecognised(f"rank {rank} of {self.grid.size} is at a place ({_place_text(self.grid.place(rank))}) that no rank of the "
                          f"largest recording has, on {self.top}")
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._plan(of, rank)
        # Another member for each rank in turn, so that what varies between them (computation) varies here as well.
        member = of.members[rank % len(of.members)]
        computed: dict[tuple[int, int], list[float]] = {}
        for (p, place, _, _), call in zip(self.pattern.where[member], self.pattern.largest.calls[member], strict=True):
            computed.setdefault((p, place), []).append(call.compute)
        partners = {p: part.partners(rank, self.grid) for p, part in enumerate(of.parts) if isinstance(part, Round)}
        peers_of: dict[int, list[int]] = {}
        lines: list[str] = []
        for step, id_, spot, turn, numbers, ratio in plan:
            amounts = computed[spot]
            # The first turn of a round follows other computation than the later ones, which repeat.
            compute = amounts[turn if turn < len(amounts) else 1 + (turn - 1) % (len(amounts) - 1)]
            if compute:
                lines.append(f"{rank} compute {compute * ratio:.6g}\n")
            if spot[0] in partners:
                peers = [partners[spot[0]][turn]] * step.shape.peers
            else:
                known = peers_of.get(id_)
                peers = peers_of[id_] = self._peers(step, rank) if known is None else known
            lines.append(write_call(rank, step.shape, peers, numbers) + "\n")
            self._count(rank, step, peers, numbers)
        rest = self.pattern.largest.rest[member]
        if rest:
            lines.append(f"{rank} compute {rest:.6g}\n")
        return "".join(lines)

    def _plan(self, of: Class, rank: int) -> list[_Planned]:
        """The calls of the ranks of a class, all of which are the same but for their peers and computation."""
        plan: list[_Planned] = []
        calls: list[tuple[int, int, bool]] = []
        for p, part in enumerate(of.parts):
            place, last = 0, -1
            for turn, count, _, step in turns(part, rank, self.grid):
                place = place + 1 if turn == last else 0
                last = turn
                calls.append(call_context(self.pattern, of, p, place, turn))
                numbers = [self._number(of, p, place, n, turn, count) for n in range(len(step.shape.names))]
                plan.append(_Planned(step, self.pattern.ids[of.key, p, place], (p, place), turn, numbers, self._ratio(calls[-4:])))
        return plan

    def _peers(self, step: Step, rank: int) -> list[int]:
        found = []
        for among, relation in zip(step.peers, relations_of(step, is_root(step.shape)), strict=True):
            if among is None or relation is None:
                raise AssertionError("a peer that no rank has shown")
            if relation[0] == "shift":
                relation = self._direction(step, rank, [r for r in among if r[0] == "shift"])
            peer = peer_of(relation, rank, self.grid)
            if not 0 <= peer < self.grid.size:
                raise NotRecognised(f"{step.shape.action}: there is no rank {peer} among {self.grid.size}")
            found.append(peer)
        return found

    def _direction(self, step: Step, rank: int, among: list[Relation]) -> Relation:
        """The neighbour among those that the recorded grids do not tell apart: a grid whose borders matter does not wrap around."""
        at = self.grid.at(rank)
        inside = [
            r for r in among
            if all(0 <= c + s < d or not b for c, s, d, b in zip(at, r[1], self.grid.dims, self.pattern.borders, strict=True))
        ]
        chosen = simplest(frozenset(inside or among))
        peer = peer_of(chosen, rank, self.grid)
        other = next((r for r in inside or among if peer_of(r, rank, self.grid) != peer), None)
        if other is not None:
            raise NotRecognised(f"{step.shape.action}: the grid {self.top} of the largest recording is too small to tell a peer at "
                          f"{vector_text(chosen[1])} from one at {vector_text(other[1])}")
        return chosen

    def _number(self, of: Class, p: int, place: int, n: int, turn: int, count: int) -> int:
        form = self.pattern.forms[of.key, p, place, n]
        self.numbers += 1

        def value(which: str) -> int:
            return self._value(self.pattern.numbers[of.key, p, place, n, which])

        if form == "same":
            return value("value")
        at = turn if form in ("up", "double") else count - 1 - turn
        return value("first") + at * value("step") if form in ("up", "down") else value("first") << at

    def _value(self, laws: Sequence[Law]) -> int:
        known = self._values.get(id(laws))
        if known is None:
            values = {law.at(self.grid): law for law in laws}
            if len(values) > 1:
                told = " or ".join(sorted(f"{float(v):g} ({law.text})" for v, law in values.items())[:3])
                raise NotRecognised(f"the recorded sizes do not tell apart: {told} on {self.grid}; record a further size")
            (exact,) = values
            if exact < 0:
                raise NotRecognised(f"a number would be {float(exact):g} on {self.grid} ({laws[0].text})")
            known = self._values[id(laws)] = round(exact)
            self._kept.append(laws)
        if laws[0].spare <= 0:
            self.untested += 1
        return known

    def _ratio(self, around: list[tuple[int, int, bool]]) -> float:
        widest = tuple(around)
        known = self._ratios.get(widest)
        if known is None:
            known = 1.0
            for context in contexts(around):
                law = self.pattern.amounts.get(context)
                if law is not None and law.at(self.top) > 0:
                    known = law.at(self.grid) / law.at(self.top)
                    break
            self._ratios[widest] = known
        return known

    def _count(self, rank: int, step: Step, peers: list[int], numbers: list[int]) -> None:
        action, names = step.shape.action, step.shape.names
        if action in SENDS and peers:
            self.sent[rank, peers[0], numbers[0] if names[0] == "tag" else 0] += 1
        elif action in RECVS and peers and names[:1] == ("tag",):
            self.received[peers[0], rank, numbers[0]] += 1
        elif action == "sendRecv" and step.shape.peers == 2:
            self.sent[rank, peers[0], -1] += 1
            self.received[peers[1], rank, -1] += 1


def _place_text(place: str) -> str:
    words = {"L": "first", "H": "last", "I": "between", "S": "alone"}
    return ", ".join(f"axis {a + 1} {words[c]}" for a, c in enumerate(place[1:]))
