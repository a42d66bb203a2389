"""The trace of a recognised pattern on a wanted number of ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from retrompi._engine import Trace
from retrompi.traces.files import parse
from retrompi.traces.lines import RECVS, SENDS

from .calls import write_call
from .grid import Grid, peer_of
from .laws import Law
from .program import Step, turns
from .recognise import Class, Pattern, Refused, called, contexts, is_root, related

__all__ = ["Made", "make"]


@dataclass
class Made:
    """The trace made, its grid, and how many numbers come from laws that no further recorded size has tested."""

    trace: Trace
    grid: Grid
    untested: int
    numbers: int


def make(pattern: Pattern, ranks: int) -> Made:
    """The trace of ``pattern`` on ``ranks`` ranks. Raises Refused."""
    dims = pattern.law.of(ranks)
    if dims is None:
        raise Refused(f"{ranks} ranks do not make a grid of this law: {pattern.law.name}")
    grid = Grid(dims)
    writer = _Writer(pattern, grid)
    texts = [writer.rank(rank) for rank in range(ranks)]
    lonely = next(iter((writer.sent - writer.received) or (writer.received - writer.sent)), None)
    if lonely is not None:
        raise Refused(f"on {ranks} ranks a message from {lonely[0]} to {lonely[1]} with tag {lonely[2]} would have only one end")
    return Made(parse(texts, name="extrapolated"), grid, writer.untested, writer.numbers)


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

    def rank(self, rank: int) -> str:
        """The lines of a rank."""
        key = self.pattern.key(rank, self.grid)
        of = self.pattern.classes.get(key)
        if of is None:
            raise Refused(f"rank {rank} of {self.grid.size} is at a place ({_told(self.grid.place(rank))}) that no rank of the largest "
                          f"recording has, on {self.top}")  # fmt: skip
        # Another member for each rank in turn, so that what varies between them (computation) varies here as well.
        member = of.members[rank % len(of.members)]
        recorded = self.pattern.largest.calls[member]
        places: dict[tuple[int, int], list[float]] = {}
        for (p, place, _, _), call in zip(self.pattern.where[member], recorded, strict=True):
            places.setdefault((p, place), []).append(call.compute)
        lines: list[str] = []
        calls: list[tuple[int, int, bool]] = []
        for p, part in enumerate(of.parts):
            place, last = 0, -1
            for turn, count, partner, step in turns(part, rank, self.grid):
                place = place + 1 if turn == last else 0
                last = turn
                calls.append(called(self.pattern, of, p, place, turn))
                computed = places[p, place]
                # The first turn of a round follows other computation than the later ones, which repeat.
                compute = computed[turn if turn < len(computed) else 1 + (turn - 1) % (len(computed) - 1)]
                if compute:
                    compute *= self._ratio(calls[-4:])
                    if compute:
                        lines.append(f"{rank} compute {compute:.6g}\n")
                peers = self._peers(step, rank, partner)
                numbers = [self._number(of, p, place, n, turn, count) for n in range(len(step.shape.names))]
                lines.append(write_call(rank, step.shape, peers, numbers) + "\n")
                self._count(rank, step, peers, numbers)
        rest = self.pattern.largest.rest[member]
        if rest:
            lines.append(f"{rank} compute {rest:.6g}\n")
        return "".join(lines)

    def _peers(self, step: Step, rank: int, partner: int) -> list[int]:
        if partner >= 0:
            return [partner] * step.shape.peers
        found = []
        for among, relation in zip(step.peers, related(step, is_root(step.shape)), strict=True):
            assert among is not None and relation is not None
            peer = peer_of(relation, rank, self.grid)
            if relation[0] == "shift":
                other = next((r for r in among if r[0] == "shift" and peer_of(r, rank, self.grid) != peer), None)
                if other is not None:
                    raise Refused(f"{step.shape.action}: the grid {self.top} of the largest recording is too small to tell a peer at "
                                  f"{_steps(relation[1])} from one at {_steps(other[1])}")  # fmt: skip
            if not 0 <= peer < self.grid.size:
                raise Refused(f"{step.shape.action}: there is no rank {peer} among {self.grid.size}")
            found.append(peer)
        return found

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
                raise Refused(f"the recorded sizes do not tell apart: {told} on {self.grid}; record a further size")
            (exact,) = values
            if exact < 0:
                raise Refused(f"a number would be {float(exact):g} on {self.grid} ({laws[0].text})")
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
        elif action == "sendRecv":
            if step.shape.peers == 2:
                self.sent[rank, peers[0], -1] += 1
                self.received[peers[1], rank, -1] += 1


def _told(place: str) -> str:
    words = {"L": "first", "H": "last", "I": "between", "S": "alone"}
    return ", ".join(f"axis {a + 1} {words[c]}" for a, c in enumerate(place[1:]))


def _steps(vector: tuple[int, ...]) -> str:
    return "(" + ", ".join(f"{s:+d}" if s else "0" for s in vector) + ")"
