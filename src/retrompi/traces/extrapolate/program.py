"""The program of a class of ranks: calls in order, with runs of calls whose length follows from the grid folded into rounds.

Three kinds of runs are folded: a butterfly (exchanges with the ranks that differ in one bit of a coordinate, each bit once, upwards or
downwards), and a round with every other rank, in order of ranks or beginning with the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from .calls import Shape, ShapedCall
from .grid import Grid, Relation, relations

__all__ = ["Mismatch", "Round", "Step", "align", "program_of", "turns"]

LONGEST_BODY = 6
"""The most calls that are done with one partner of a round."""


@dataclass
class Step:
    """A call of the program, with the relations in which each of its peers can stand to the rank: those left by all ranks seen."""

    shape: Shape
    peers: list[frozenset[Relation] | None] = field(default_factory=list)


@dataclass
class Round:
    """A run of equal sequences of calls, one for each partner. ``kind``: ``butterfly`` with ``axis``, or ``others``.

    ``order`` is 1 (bits or ranks upwards), -1 (downwards), 2 or -2 (others only: the next rank first, the previous rank first)."""

    kind: str
    axis: int
    order: int
    body: list[Step]

    def partners(self, rank: int, grid: Grid) -> list[int]:
        """The partners of ``rank``, in order."""
        return _partners(self.kind, self.axis, self.order, rank, grid)


@lru_cache(maxsize=1 << 14)
def _partners(kind: str, axis: int, order: int, rank: int, grid: Grid) -> list[int]:
    if kind == "others":
        p = grid.size
        if abs(order) == 2:
            return [(rank + k * (1 if order > 0 else -1)) % p for k in range(1, p)]
        return [r for r in range(p)[::order] if r != rank]
    length = grid.dims[axis]
    at = grid.at(rank)
    bits = range(length.bit_length() - 1)[::order]
    return [grid.rank((*at[:axis], at[axis] ^ (1 << b), *at[axis + 1 :])) for b in bits]


Part = Step | Round


class Mismatch(Exception):
    """The calls of a rank are not those of a program, from call ``index`` on."""

    def __init__(self, index: int, why: str) -> None:
        super().__init__(why)
        self.index = index


def turns(part: Part, rank: int, grid: Grid) -> Iterator[tuple[int, int, int, Step]]:
    """(turn, turns, partner or -1, step) of the calls of a part."""
    if isinstance(part, Step):
        yield 0, 1, -1, part
        return
    partners = part.partners(rank, grid)
    for i, partner in enumerate(partners):
        for step in part.body:
            yield i, len(partners), partner, step


def program_of(calls: Sequence[ShapedCall], rank: int, grid: Grid, *, fold: bool) -> list[Part]:
    """The program that ``rank`` runs; with ``fold``, runs are folded into rounds."""
    parts: list[Part] = []
    i = 0
    while i < len(calls):
        found = _round(calls, i, rank, grid) if fold and calls[i].peers else None
        if found is not None:
            part, length = found
            parts.append(part)
            i += length
            continue
        call = calls[i]
        parts.append(Step(call.shape, [None] * call.shape.peers))
        i += 1
    return parts


def align(program: Sequence[Part], calls: Sequence[ShapedCall], rank: int, grid: Grid) -> list[tuple[int, int, int, int]]:
    """For each call of ``rank``: (part, place in its body, turn, turns). Raises Mismatch. Narrows the relations of the program's steps."""
    where: list[tuple[int, int, int, int]] = []
    i = 0
    for p, part in enumerate(program):
        place = 0
        last = -1
        for turn, count, partner, step in turns(part, rank, grid):
            place = place + 1 if turn == last else 0
            last = turn
            if i >= len(calls):
                raise Mismatch(i, f"ends before its {step.shape.action}")
            call = calls[i]
            if call.shape is not step.shape and call.shape != step.shape:
                raise Mismatch(i, f"{call.shape.action} where ranks at the same place of the grid have {step.shape.action}")
            if partner >= 0:
                if any(q != partner for q in call.peers):
                    raise Mismatch(i, f"{call.shape.action} with rank {call.peers[0]} where the round has rank {partner}")
            else:
                for j, q in enumerate(call.peers):
                    known = step.peers[j]
                    here = relations(rank, q, grid)
                    left = here if known is None else known & here
                    if not left:
                        raise Mismatch(i, f"{call.shape.action} with rank {q}, which no rule gives that holds for the other ranks")
                    step.peers[j] = left
            where.append((p, place, turn, count))
            i += 1
    if i < len(calls):
        raise Mismatch(i, f"{calls[i].shape.action} after the end of the program of ranks at the same place of the grid")
    return where


def _round(calls: Sequence[ShapedCall], i: int, rank: int, grid: Grid) -> tuple[Round, int] | None:
    """The round that begins with call ``i``, and the number of its calls."""
    first = calls[i].peers[0]
    candidates = list(_candidates(first, rank, grid))
    if not candidates:
        return None
    body = 0
    while body < LONGEST_BODY and i + body < len(calls) and _with(calls[i + body], first):
        body += 1
        for candidate in candidates:
            partners = candidate.partners(rank, grid)
            if len(partners) >= 2 and _matches(calls, i, body, partners):
                candidate.body = [Step(c.shape, [None] * c.shape.peers) for c in calls[i : i + body]]
                return candidate, body * len(partners)
    return None


def _with(call: ShapedCall, partner: int) -> bool:
    return bool(call.peers) and all(q == partner for q in call.peers)


def _candidates(first: int, rank: int, grid: Grid) -> Iterator[Round]:
    """The rounds that begin with the partner ``first``."""
    for axis, d in enumerate(grid.dims):
        if d >= 4 and d & (d - 1) == 0:
            for order in (1, -1):
                made = Round("butterfly", axis, order, [])
                if made.partners(rank, grid)[0] == first:
                    yield made
    if grid.size > 3:
        for order in (1, -1, 2, -2):
            made = Round("others", -1, order, [])
            if made.partners(rank, grid)[0] == first:
                yield made


def _matches(calls: Sequence[ShapedCall], i: int, body: int, partners: Sequence[int]) -> bool:
    if i + body * len(partners) > len(calls):
        return False
    for t, partner in enumerate(partners):
        for k in range(body):
            call = calls[i + t * body + k]
            if call.shape != calls[i + k].shape or not _with(call, partner):
                return False
    return True
