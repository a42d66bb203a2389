"""Grids of processes: how the dimensions follow from the number of ranks, and where a peer is relative to a rank."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["Grid", "GridLaw", "Relation", "grid_laws", "peer_of", "relation_text", "relations", "rival", "simplest"]

Relation = tuple[str, tuple[int, ...]]
"""Where a peer is: a kind, and a vector of steps or a number. See `peer_of`."""

FARTHEST = 2
"""The longest step along an axis that counts as a neighbour."""


@dataclass(frozen=True)
class Grid:
    """A grid of processes; ``dims[0]`` is the axis along which ranks are consecutive."""

    dims: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of ranks."""
        return math.prod(self.dims)

    def at(self, rank: int) -> tuple[int, ...]:
        """The coordinates of a rank."""
        found = []
        for length in self.dims:
            rank, c = divmod(rank, length)
            found.append(c)
        return tuple(found)

    def rank(self, at: Sequence[int]) -> int:
        """The rank at these coordinates, taken modulo the dimensions."""
        found = 0
        for length, c in zip(reversed(self.dims), reversed(at), strict=True):
            found = found * length + c % length
        return found

    def place(self, rank: int) -> str:
        """The position of a rank along each axis: ``L`` first, ``H`` last, ``I`` between, ``S`` the only one; ``0`` before it for rank
        0."""
        flags = "".join(
            "S" if d == 1 else "L" if c == 0 else "H" if c == d - 1 else "I" for c, d in zip(self.at(rank), self.dims, strict=True)
        )
        return ("0" if rank == 0 else "-") + flags

    def __str__(self) -> str:
        return "x".join(map(str, self.dims))


@dataclass(frozen=True)
class GridLaw:
    """How a program arranges its ranks: a name, and the dimensions for a number of ranks (None: it has none). Laws of one ``kind`` differ
    only in the order of the axes."""

    name: str
    of: Callable[[int], tuple[int, ...] | None]
    kind: str


def grid_laws(sizes: Sequence[int]) -> Iterator[GridLaw]:
    """The laws worth trying for these numbers of ranks, simple ones first: a line, grids as square as possible in any order of the
    axes, and grids with an axis of fixed length. Laws with the same dimensions at all of ``sizes`` are given once."""
    seen: set[tuple[tuple[int, ...] | None, ...]] = set()
    for law in _all_laws(sizes):
        dims = tuple(law.of(p) for p in sizes)
        if None not in dims and dims not in seen:
            seen.add(dims)
            yield law


def rival(law: GridLaw, sizes: Sequence[int], ranks: int) -> tuple[int, ...] | None:
    """Dimensions on ``ranks`` that a law as simple as ``law`` gives, if ``sizes`` do not tell the two apart and it gives others there."""
    for other in _all_laws(sizes):
        if other.kind == law.kind and other.of(ranks) != law.of(ranks) and all(other.of(p) == law.of(p) for p in sizes):
            return other.of(ranks)
    return None


def _all_laws(sizes: Sequence[int]) -> Iterator[GridLaw]:
    yield GridLaw("a line of P", lambda p: (p,), "line")
    yield GridLaw("2-D, as square as possible, first axis longer", _square(2, (0, 1)), "2-D")
    yield GridLaw("2-D, as square as possible, last axis longer", _square(2, (1, 0)), "2-D")
    fixed = [d for d in range(2, min(sizes) + 1) if all(p % d == 0 for p in sizes)]
    for d in fixed[:16]:
        yield GridLaw(f"2-D, first axis of {d}", lambda p, d=d: None if p % d else (d, p // d), f"first {d}")  # type: ignore[misc]
        yield GridLaw(f"2-D, last axis of {d}", lambda p, d=d: None if p % d else (p // d, d), f"last {d}")  # type: ignore[misc]
    for order in itertools.permutations(range(3)):
        longest = " then ".join(str(order.index(i) + 1) for i in range(3))
        yield GridLaw(f"3-D, as cubic as possible, longer axes first: {longest}", _square(3, order), "3-D")


def _square(count: int, order: tuple[int, ...]) -> Callable[[int], tuple[int, ...]]:
    def of(p: int) -> tuple[int, ...]:
        sides = _balanced_factors(p, count)
        return tuple(sides[i] for i in order)

    return of


@lru_cache(maxsize=4096)
def _balanced_factors(p: int, count: int) -> tuple[int, ...]:
    """``p`` as a product of ``count`` factors, the largest first, as equal as possible (as MPI_Dims_create is to do)."""
    if count == 1:
        return (p,)
    best: tuple[int, ...] | None = None
    for first in range(round(p ** (1 / count)), p + 1):
        if first and p % first == 0:
            rest = _balanced_factors(p // first, count - 1)
            if rest[0] <= first and (best is None or first - rest[-1] < best[0] - best[-1]):
                best = (first, *rest)
        if best is not None and first > best[0]:
            break
    return best or (p, *[1] * (count - 1))


def peer_of(relation: Relation, rank: int, grid: Grid) -> int:
    """The rank that stands in ``relation`` to ``rank``."""
    kind, v = relation
    if kind == "shift":
        return grid.rank([c + s for c, s in zip(grid.at(rank), v, strict=True)])
    if kind == "self":
        return rank
    if kind == "rank":
        return v[0]
    if kind == "last":
        return grid.size - 1
    if kind == "half":
        return grid.rank([c + (d // 2 if s else 0) for c, s, d in zip(grid.at(rank), v, grid.dims, strict=True)])
    if kind == "mirror":
        return grid.rank([d - 1 - c if s else c for c, s, d in zip(grid.at(rank), v, grid.dims, strict=True)])
    if kind == "transpose":
        found = _transpose(rank, grid)
        assert found is not None
        return found
    raise AssertionError(kind)


def _transpose(rank: int, grid: Grid) -> int | None:
    """The rank at the transposed place; on a grid twice as long as wide, pairs of ranks along the longer axis are transposed."""
    if len(grid.dims) != 2:
        return None
    (x, y), (dx, dy) = grid.at(rank), grid.dims
    if dx == dy:
        return grid.rank((y, x))
    if dx == 2 * dy:
        return grid.rank((2 * y + x % 2, x // 2))
    if dy == 2 * dx:
        return grid.rank((y // 2, 2 * x + y % 2))
    return None


@lru_cache(maxsize=1 << 18)
def relations(rank: int, peer: int, grid: Grid) -> frozenset[Relation]:
    """All relations in which ``peer`` stands to ``rank``."""
    found: set[Relation] = set()
    count = len(grid.dims)
    if peer == rank:
        found.add(("self", ()))
    here, there = grid.at(rank), grid.at(peer)
    steps: list[list[int]] = []
    for a, b, d in zip(here, there, grid.dims, strict=True):
        steps.append([s for s in {b - a, b - a - d, b - a + d} if abs(s) <= FARTHEST and (s == 0 or abs(s) < d)])
    found.update(("shift", v) for v in itertools.product(*steps) if any(v))
    found.add(("rank", (peer,)))
    if peer == grid.size - 1:
        found.add(("last", ()))
    for v in itertools.product((0, 1), repeat=count):
        if not any(v):
            continue
        if all(not s or d % 2 == 0 for s, d in zip(v, grid.dims, strict=True)) and peer_of(("half", v), rank, grid) == peer:
            found.add(("half", v))
        if peer_of(("mirror", v), rank, grid) == peer:
            found.add(("mirror", v))
    if _transpose(rank, grid) == peer:
        found.add(("transpose", ()))
    return frozenset(found)


_ORDER = {"self": 0, "shift": 1, "rank": 2, "last": 3, "transpose": 4, "half": 5, "mirror": 6}


def simplest(among: frozenset[Relation]) -> Relation:
    """The simplest relation: a neighbour along one axis before one along two, any neighbour before a transposed place, and so on."""
    return min(among, key=lambda r: (_ORDER[r[0]], sum(map(abs, r[1])), r))


def relation_text(relation: Relation) -> str:
    """A relation in words."""
    kind, v = relation
    if kind == "shift":
        return "neighbour " + vector_text(v)
    along = " and ".join(f"{a + 1}" for a, s in enumerate(v) if s)
    return {
        "self": "itself",
        "rank": f"rank {v[0] if v else ''}",
        "last": "the last rank",
        "transpose": "the transposed place",
        "half": f"half way round axis {along}",
        "mirror": f"mirrored along axis {along}",
    }[kind]


def vector_text(vector: Sequence[int]) -> str:
    """A vector of steps: ``(+1, 0)``."""
    return "(" + ", ".join(f"{s:+d}" if s else "0" for s in vector) + ")"
