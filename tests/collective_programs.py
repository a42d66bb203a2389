"""Programs of collectives: right ones, and ones in which a rank's call does not fit the others'. Seeded: a number names a program.

Each step is first a row of lines that fit by construction: on the world, on half of it, on a grid, on a graph or between two groups;
blocking or not; from a few bytes to sizes at which libraries change their algorithm. `wrong` changes one rank's line of one step.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from retrompi import traces
from retrompi.traces import Trace

SIZES = (1, 8, 100, 2000, 20_000, 70_000)
"""Bytes on both sides of the limits at which the runtimes choose another algorithm."""

Row = dict[int, str]
"""What each member's line says, by rank of the world."""


class Room:
    """A communicator with its members, and how they make it."""

    def __init__(self, number: int, group: list[int], far: list[int] | None = None) -> None:
        self.number, self.group, self.far = number, group, far or []
        self.sources: list[list[int]] = []
        self.destinations: list[list[int]] = []

    @property
    def members(self) -> list[int]:
        return [*self.group, *self.far]

    @property
    def attribute(self) -> str:
        return f" comm={self.number}" if self.number else ""

    def other(self, rank: int) -> list[int]:
        """Those a member exchanges data with: its own group, or the other one of an intercommunicator."""
        return self.group if not self.far or rank in self.far else self.far


def _text(group: list[int]) -> str:
    return ",".join(map(str, group))


def make_rooms(rng: random.Random, n: int, lines: list[list[str]]) -> list[Room]:
    """MPI_COMM_WORLD and three more, with the lines that make them."""
    world = Room(0, list(range(n)))
    half = Room(1, sorted(rng.sample(range(n), rng.randint(2, n))))
    for r in range(n):
        lines[r].append(f"comm_split 1 {_text(half.group)}" if r in half.group else "comm_split -1")
    grid = Room(2, list(range(n)))
    for r in range(n):
        lines[r].append(f"cart_create 2 {_text(grid.group)} dims={n} periods=1")
    # One dimension, periodic: first the lower neighbour, then the upper one.
    grid.sources = grid.destinations = [[(r - 1) % n, (r + 1) % n] for r in range(n)]
    graph = Room(3, list(range(n)))
    edges = sorted({(rng.randrange(n), rng.randrange(n)) for _ in range(2 * n)})
    graph.sources = [[a for a, b in edges if b == r] for r in range(n)]
    graph.destinations = [[b for a, b in edges if a == r] for r in range(n)]
    for r in range(n):
        ends = [_text(x) or "none" for x in (graph.sources[r], graph.destinations[r])]
        lines[r].append(f"graph_create 3 {_text(graph.group)} in={ends[0]} out={ends[1]}")
    low, high = list(range(n // 2)), list(range(n // 2, n))
    for r in range(n):
        own, far = (low, high) if r in low else (high, low)
        lines[r].append(f"comm_split {4 if r in low else 5} {_text(own)}")
        lines[r].append(f"intercomm_create 6 {_text(own)} {_text(far)} comm={4 if r in low else 5}")
    return [world, half, grid, graph, Room(6, low, high)]


def _vector(counts: list[int]) -> str:
    return " ".join(map(str, counts))


def _same(word: str) -> Callable[[random.Random, Room], Row]:
    """All give the same vector."""

    def make(rng: random.Random, room: Room) -> Row:
        flops = "" if word == "bcast" else " 0"
        size = rng.choice(SIZES)
        if word not in ("bcast", "reduce"):
            if word == "reducescatterblock" and room.far:
                parts = len(room.group) * len(room.far)
                return {r: f"{word} {parts * size // (len(room.group) if r in room.group else len(room.far))} 0 6" for r in room.members}
            return dict.fromkeys(room.members, f"{word} {size} 0 6")
        return {r: f"{word} {size if root != '-666' else 0}{flops} {root} 6" for r, root in _roots(rng, room).items()}

    return make


def _roots(rng: random.Random, room: Room) -> dict[int, str]:
    """Each member's argument for the root."""
    if not room.far:
        root = rng.randrange(len(room.group))
        return {r: str(root) for r in room.group}
    own, far = rng.choice(((room.group, room.far), (room.far, room.group)))
    root = rng.randrange(len(own))
    return {r: "-777" if r == own[root] else "-666" for r in own} | {r: str(root) for r in far}


def _is_root(room: Room, rank: int, root: str) -> bool:
    return root == "-777" if room.far else room.group[int(root)] == rank


def _gather(rng: random.Random, room: Room) -> Row:
    size = rng.choice(SIZES)
    return {r: f"gather {size} {size} {root} 6 6" for r, root in _roots(rng, room).items()}


def _scatter(rng: random.Random, room: Room) -> Row:
    size = rng.choice(SIZES)
    return {r: f"scatter {size} {size} {root} 6 6" for r, root in _roots(rng, room).items()}


def _all(word: str) -> Callable[[random.Random, Room], Row]:
    def make(rng: random.Random, room: Room) -> Row:
        low, high = rng.choice(SIZES), rng.choice(SIZES)
        if not room.far:
            high = low
        return {r: f"{word} {low if r in room.group else high} {high if r in room.group else low} 6 6" for r in room.members}

    return make


def _gatherv(rng: random.Random, room: Room) -> Row:
    sizes = {r: rng.choice(SIZES) for r in room.members}
    rows = {}
    for r, root in _roots(rng, room).items():
        others = room.other(r)
        counts = [sizes[o] if _is_root(room, r, root) else 0 for o in others]
        rows[r] = f"gatherv {sizes[r]} {_vector(counts)} {root} 6 6"
    return rows


def _scatterv(rng: random.Random, room: Room) -> Row:
    sizes = {r: rng.choice(SIZES) for r in room.members}
    rows = {}
    for r, root in _roots(rng, room).items():
        counts = [sizes[o] if _is_root(room, r, root) else 0 for o in room.other(r)]
        rows[r] = f"scatterv {_vector(counts)} {sizes[r]} {root} 6 6"
    return rows


def _allgatherv(rng: random.Random, room: Room) -> Row:
    sizes = {r: rng.choice(SIZES) for r in room.members}
    return {r: f"allgatherv {sizes[r]} {_vector([sizes[o] for o in room.other(r)])} 6 6" for r in room.members}


def _reducescatter(rng: random.Random, room: Room) -> Row:
    def parts(total: int, n: int) -> str:
        return _vector([total // n] * (n - 1) + [total - total // n * (n - 1)])

    total = rng.choice(SIZES) * 12
    return {r: f"reducescatter {parts(total, len(room.group if r in room.group else room.far))} 0 6" for r in room.members}


def _alltoallv(word: str) -> Callable[[random.Random, Room], Row]:
    def make(rng: random.Random, room: Room) -> Row:
        pair = {(a, b): rng.choice(SIZES) for a in room.members for b in room.members}
        rows = {}
        for r in room.members:
            out, into = [pair[r, o] for o in room.other(r)], [pair[o, r] for o in room.other(r)]
            rows[r] = (
                f"{word} {_vector(out)} {_vector(into)}" if word == "alltoallw"
                else f"{word} {sum(out)} {_vector(out)} {sum(into)} {_vector(into)} 6 6"
            )
        return rows

    return make


def _neighbours(word: str) -> Callable[[random.Random, Room], Row]:
    def make(rng: random.Random, room: Room) -> Row:
        size, pair = rng.choice(SIZES), {(a, b): rng.choice(SIZES) for a in room.group for b in room.group}
        own = {r: rng.choice(SIZES) for r in room.group}
        rows = {}
        for r in room.group:
            out, into = [pair[r, o] for o in room.destinations[r]], [pair[o, r] for o in room.sources[r]]
            if word in ("neighbor_allgather", "neighbor_alltoall"):
                rows[r] = f"{word} {size} {size} 6 6"
            elif word == "neighbor_allgatherv":
                rows[r] = f"{word} {own[r]} {_vector([own[o] for o in room.sources[r]])} 6 6"
            else:
                rows[r] = f"{word} {_vector([*out, *into])}" + (" 6 6" if word.endswith("v") else "")
        return rows

    return make


REDUCTIONS = ("allreduce", "scan", "exscan", "reducescatterblock")
MAKERS: dict[str, Callable[[random.Random, Room], Row]] = {
    "barrier": lambda _, room: dict.fromkeys(room.members, "barrier"),
    **{word: _same(word) for word in ("bcast", "reduce", *REDUCTIONS)},
    "gather": _gather,
    "scatter": _scatter,
    "allgather": _all("allgather"),
    "alltoall": _all("alltoall"),
    "gatherv": _gatherv,
    "scatterv": _scatterv,
    "allgatherv": _allgatherv,
    "reducescatter": _reducescatter,
    "alltoallv": _alltoallv("alltoallv"),
    "alltoallw": _alltoallv("alltoallw"),
    **{word: _neighbours(word) for word in ("neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv",
                                            "neighbor_alltoallw")},
}


def _step(rng: random.Random, word: str, rooms: list[Room]) -> tuple[Row, Room, bool]:
    """A collective that fits, its communicator, and whether it is non-blocking."""
    fitting = rooms[2:4] if word.startswith("neighbor") else [room for room in rooms if not room.far or word not in ("scan", "exscan")]
    room = rng.choice(fitting)
    return MAKERS[word](rng, room), room, rng.random() < 0.25


def _write(lines: list[list[str]], row: Row, room: Room, later: bool, requests: list[int]) -> None:
    for r, text in row.items():
        if not later:
            lines[r].append(text + room.attribute)
            continue
        requests[r] += 1
        lines[r].append(f"i{text}{room.attribute} req={requests[r]}")
        lines[r].append(f"wait req={requests[r]}")


def _trace(lines: list[list[str]], name: str) -> Trace:
    return traces.parse(["".join(f"{r} {line}\n" for line in ["init", *rows, "finalize"]) for r, rows in enumerate(lines)], name=name)


def right(seed: int) -> Trace:
    """A program of one to eight collectives that fit, among computation."""
    rng = random.Random(f"right {seed}")
    n = rng.randint(2, 6)
    lines: list[list[str]] = [[] for _ in range(n)]
    rooms, requests = make_rooms(rng, n, lines), [0] * n
    for word in rng.choices(list(MAKERS), k=rng.randint(1, 8)):
        _write(lines, *_step(rng, word, rooms), requests)
        lines[rng.randrange(n)].append(f"compute {rng.randrange(100_000)}")
    return _trace(lines, f"right-{seed}")


def wrong(seed: int) -> tuple[Trace, str]:
    """A program in which one rank's line does not fit, and what was done to it: ``count``, ``root``, ``other`` call, ``missing`` call."""
    rng = random.Random(f"wrong {seed}")
    n = rng.randint(2, 6)
    lines: list[list[str]] = [[] for _ in range(n)]
    rooms, requests = make_rooms(rng, n, lines), [0] * n
    words = rng.choices([w for w in MAKERS if w != "barrier"], k=rng.randint(1, 4))
    at = rng.randrange(len(words))
    words[at] = [w for w in MAKERS if w != "barrier"][seed % (len(MAKERS) - 1)]
    what = "count"
    for i, word in enumerate(words):
        row, room, later = _step(rng, word, rooms)
        if i == at:
            row, what = _spoiled(rng, word, row, room)
        _write(lines, row, room, later, requests)
    return _trace(lines, f"wrong-{seed}"), what


def _spoiled(rng: random.Random, word: str, row: Row, room: Room) -> tuple[Row, str]:
    how = rng.choices(("count", "root", "other", "missing"), (8, 2, 1, 1))[0]
    rank = rng.choice(list(row))
    if how == "missing":
        return {r: text for r, text in row.items() if r != rank}, how
    if how == "other":
        return row | {rank: "barrier"}, how
    fields = row[rank].split(" ")
    if how == "root" and word in ("bcast", "reduce", "gather", "scatter", "gatherv", "scatterv") and len(room.group) > 1 and not room.far:
        place = _root_field(word, room)
        fields[place] = str((int(fields[place]) + 1) % len(room.group))
        return row | {rank: " ".join(fields)}, how
    places = [(r, p) for r in row for p in _counts(word, row[r].split(" "), room, r)]
    rank, place = rng.choice(places)
    fields = row[rank].split(" ")
    old = int(fields[place])
    fields[place] = str(rng.choice([x for x in (old + 1, max(old - 1, 0), 2 * old, old // 500) if x != old]))
    return row | {rank: " ".join(fields)}, "count"


def _root_field(word: str, room: Room) -> int:
    n = len(room.group)
    return {"bcast": 2, "reduce": 3, "gather": 3, "scatter": 3, "gatherv": n + 2, "scatterv": n + 2}[word]


def _counts(word: str, fields: list[str], room: Room, rank: int) -> list[int]:
    """Which fields of a line are significant counts that another member's line has to agree with."""
    n = len(room.other(rank))
    if word in ("bcast", "reduce"):
        return [] if "-666" in fields else [1]
    if word in REDUCTIONS:
        return [1]
    if word in ("gather", "scatter", "gatherv", "scatterv"):
        root = fields[_root_field(word, room) if word in ("gather", "scatter") else n + 2]
        if root == "-666":
            return []
        at_root, vector = _is_root(room, rank, root), word.endswith("v")
        gather = word.startswith("gather")
        many = (list(range(2, n + 2)) if gather else list(range(1, n + 1))) if vector else [2 if gather else 1]
        one = [1] if gather else [n + 1 if vector else 2]
        return (many + ([] if room.far else one)) if at_root else one
    if word in ("allgather", "alltoall"):
        return [1, 2]
    if word == "allgatherv":
        return list(range(1, n + 2))
    if word == "reducescatter":
        return list(range(1, len(room.group if rank in room.group else room.far) + 1))
    if word == "alltoallv":
        return [*range(2, n + 2), *range(n + 3, 2 * n + 3)]
    if word == "alltoallw":
        return list(range(1, 2 * n + 1))
    ins, outs = len(room.sources[rank]), len(room.destinations[rank])
    if word in ("neighbor_allgather", "neighbor_alltoall"):
        return ([1] if outs else []) + ([2] if ins else [])
    if word == "neighbor_allgatherv":
        return ([1] if outs else []) + list(range(2, ins + 2))
    return list(range(1, ins + outs + 1))
