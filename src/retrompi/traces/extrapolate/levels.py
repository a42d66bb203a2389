"""Recognising exchanges over the levels of a multigrid: a block with N points along an axis of D ranks, N halved from level to level.

Where a level has fewer points than ranks along an axis, only every D/N-th rank has one: neighbours are D/N ranks apart, the other ranks sit
the level out, and between two levels those that go on hand over to those that join. So distances, sizes and who takes part all follow from
N/D, and the distances recorded show N. `recognise_levels` finds the levels, `Levels.plan` gives the exchanges of a rank on any grid.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from .calls import RecordedCalls, Shape
from .grid import Grid, GridLaw, grid_laws
from .laws import Law, exact_laws
from .recognise import NotRecognised, is_root

__all__ = ["ExchangeSpec", "Form", "Item", "Levels", "Planned", "Role", "face", "form_of", "recognise_levels", "steps_of"]

Form = tuple[Shape, ...]
"""The calls of an exchange without peers and numbers."""

MARGINS = range(5)
"""Widths of a margin around a block, both sides together, that are tried."""

GUARDS = {
    "none": "all that have points along the axis",
    "fine": "those that have points of the finer level along all axes",
    "coarse": "those that have points of the coarser level along the other axes",
}
"""Which ranks take part in what is handed over along an axis between two levels."""


@dataclass(frozen=True)
class LevelToken:
    """The next step of a rank: a call with no neighbour (``axis`` -1), or an exchange with ranks ``stride`` away along ``axis``."""

    form: Form
    axis: int
    stride: int
    first: int
    """The index of its first call."""


@dataclass(frozen=True)
class Item:
    """A part of the program that all ranks with points do: a call (``axes`` empty) or exchanges along ``axes``, in order."""

    form: Form
    axes: tuple[int, ...]


@dataclass
class ExchangeSpec:
    """An exchange: for each call the directions (+1, -1) that each of its peers can have, and for each of its numbers the laws over grids,
    or the faces of a block: (bytes a point, margins along the other axes) that give every recorded size. ``spare``: the recorded blocks
    beyond those that a face needs."""

    form: Form
    axis: int
    signs: list[list[frozenset[int]]]
    laws: dict[tuple[int, int], list[Law]] = field(default_factory=dict)
    faces: dict[tuple[int, int], list[tuple[int, tuple[int, ...]]]] = field(default_factory=dict)
    spare: dict[tuple[int, int], int] = field(default_factory=dict)


Role = tuple[str, tuple[str, Form], int]
"""Which exchange: ``all``, ``coarse`` or ``fine`` (those that have points of the coarser level, those that only have some of the finer
one), the direction and form of the step between levels, and the axis."""


@dataclass(frozen=True)
class Planned:
    """A call with no neighbour or an exchange of a rank: item of the program, role, distance, and the points of the rank's block."""

    item: int
    role: Role | None
    stride: int
    level: int
    points: tuple[int, ...]


@dataclass
class Levels:
    """The levels that were recognised. ``last``: the ranks with points are counted from the last along each axis, not from the first;
    ``coarsest`` points along the axes at level 0; ``level`` of each item (-1: none); ``steps``: the axes along which what is handed over
    was recorded, in order, by direction and form; ``everyone``: along all axes a rank must have points to exchange (False: along the
    one)."""

    law: GridLaw
    grids: dict[int, Grid]
    largest: RecordedCalls
    last: bool
    items: list[Item]
    coarsest: tuple[int, ...] = ()
    level: list[int] = field(default_factory=list)
    steps: dict[tuple[str, Form], tuple[int, ...]] = field(default_factory=dict)
    specs: dict[Role, ExchangeSpec] = field(default_factory=dict)
    plain: dict[tuple[int, int], list[Law]] = field(default_factory=dict)
    everyone: bool = True
    guards: dict[tuple[str, Form], list[str]] = field(default_factory=dict)

    def points(self, level: int) -> tuple[int, ...]:
        """Points along each axis of the whole grid at a level."""
        return tuple(n << level for n in self.coarsest)

    def strides(self, level: int, grid: Grid) -> tuple[int, ...]:
        """The distance of neighbours along each axis at a level."""
        return tuple(max(1, d // n) for n, d in zip(self.points(level), grid.dims, strict=True))

    def offset(self, rank: int, grid: Grid) -> tuple[int, ...]:
        """The coordinates of a rank, counted from the corner whose rank has points at every level."""
        return tuple(d - 1 - c if self.last else c for c, d in zip(grid.at(rank), grid.dims, strict=True))

    def block(self, offset: Sequence[int], level: int, grid: Grid) -> tuple[int, ...]:
        """Points along each axis of a rank's block; 0 where it has none."""
        return tuple(
            n // d if n >= d else int(o % (d // n) == 0)
            for o, n, d in zip(offset, self.points(level), grid.dims, strict=True)
        )

    def fits(self, grid: Grid) -> None:
        """Raises Refused where the points of a level do not divide evenly."""
        for level in sorted({k for k in self.level if k >= 0}):
            for axis, (n, d) in enumerate(zip(self.points(level), grid.dims, strict=True)):
                if n % d and d % n:
                    raise NotRecognised(f"{n} points of a level do not divide evenly over {d} ranks along axis {axis + 1}")

    def place(self, rank: int, grid: Grid) -> tuple[int, ...]:
        """What of a rank's place matters for what it does: its offset along each axis modulo the longest distance of neighbours."""
        return tuple(o % s for o, s in zip(self.offset(rank, grid), self.strides(0, grid), strict=True))

    def plan(self, offset: Sequence[int], grid: Grid, guards: dict[tuple[str, Form], str]) -> Iterator[Planned]:
        """The steps of a rank, in order, by its offset or its place."""
        blocks = {k: self.block(offset, k, grid) for k in set(self.level) if k >= 0}
        strides = {k: self.strides(k, grid) for k in blocks}
        top = max(blocks)
        before = -1
        for i, item in enumerate(self.items):
            if not item.axes:
                yield Planned(i, None, 0, top, blocks[top])
                continue
            here = self.level[i]
            step = self.step(before, i)
            if step is not None and step in self.steps:
                coarse, fine = sorted((before, here))
                for axis in range(len(grid.dims)):
                    wide, near = strides[coarse][axis], strides[fine][axis]
                    if wide == near or offset[axis] % near:
                        continue
                    if axis not in self.steps[step]:
                        raise NotRecognised(f"no recorded size has ranks that join a level along axis {axis + 1}, so what they do is not "
                                            "known; record a size with more ranks along it")
                    guard = blocks[fine] if guards[step] == "fine" else blocks[coarse] if guards[step] == "coarse" else ()
                    role: Role = "coarse" if offset[axis] % wide == 0 else "fine", step, axis
                    if role in self.specs and all(n for a, n in enumerate(guard) if a != axis):
                        yield Planned(i, role, near, fine, blocks[fine])
            for axis in item.axes:
                if all(blocks[here]) if self.everyone else blocks[here][axis]:
                    yield Planned(i, ("all", ("", item.form), axis), strides[here][axis], here, blocks[here])
            before = here

    def step(self, before: int, item: int) -> tuple[str, Form] | None:
        """The step to the level of an item from the level ``before`` it (-1: none): its direction and the form of the item."""
        here = self.level[item]
        if before < 0 or here in (-1, before):
            return None
        return "finer" if here > before else "coarser", self.items[item].form


def recognise_levels(recorded: Sequence[RecordedCalls]) -> Levels:
    """The levels in recordings of increasing size. Raises Refused with the first place that is not recognised."""
    best: NotRecognised | None = None
    for law in grid_laws([r.ranks for r in recorded]):
        grids = {r.ranks: Grid(dims) for r in recorded if (dims := law.of(r.ranks)) is not None}
        if len(grids[recorded[-1].ranks].dims) < 2:
            continue
        for last in (True, False):
            try:
                return _with(recorded, law, grids, last=last)
            except NotRecognised as e:
                if best is None or (e.stage, e.index) > (best.stage, best.index):
                    best = e
    raise best or NotRecognised("no grid of two or three dimensions")


def _with(recorded: Sequence[RecordedCalls], law: GridLaw, grids: dict[int, Grid], *, last: bool) -> Levels:
    corners = {of.ranks: _tokens(of, _corner(of.ranks, last), grids[of.ranks]) for of in recorded}
    forms = Counter(token.form for mine in corners.values() for token in mine if token.axis >= 0)
    if not forms:
        raise NotRecognised("no exchanges with ranks 1, 2, 4, … away along one axis")
    usual = forms.most_common(1)[0][0]
    corners = {p: list(_split(mine, usual)) for p, mine in corners.items()}
    found = Levels(law, grids, recorded[-1], last, _items(recorded, corners, len(grids[recorded[-1].ranks].dims), last=last))
    tokens = {
        of.ranks: [list(_split(_tokens(of, rank, grids[of.ranks]), usual)) for rank in range(of.ranks)] for of in recorded
    }
    stage = 1
    try:
        _find_levels(found, recorded, tokens)
        stage = 2
        for grid in grids.values():
            found.fits(grid)
        _find_steps(found, recorded, tokens)
        _find_guards(found, recorded, tokens)
        stage = 3
        _find_numbers(found, recorded)
    except NotRecognised as e:
        e.stage = stage
        raise
    return found


# --- what a rank does ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 17)
def neighbour(rank: int, peers: tuple[int, ...], grid: Grid) -> tuple[int, int, list[frozenset[int]]] | None:
    """(axis, distance, possible directions of each peer) if all peers are as far along one axis; None if not."""
    here = grid.at(rank)
    found: set[tuple[int, int]] = set()
    signs: list[frozenset[int]] = []
    for peer in peers:
        apart = [(a, (t - h) % d) for a, (h, t, d) in enumerate(zip(here, grid.at(peer), grid.dims, strict=True)) if h != t]
        if not apart:  # its own neighbour, along an axis of one rank
            alone = [a for a, d in enumerate(grid.dims) if d == 1]
            if len(alone) != 1:
                return None
            apart = [(alone[0], 0)]
        if len(apart) != 1:
            return None
        axis, forward = apart[0]
        length = grid.dims[axis]
        distance = min(forward, length - forward)
        if distance & (distance - 1):
            return None
        found.add((axis, max(1, distance)))
        signs.append(frozenset(s for s in (1, -1) if (s * distance) % length == forward))
    return (*found.pop(), signs) if len(found) == 1 else None


def _tokens(of: RecordedCalls, rank: int, grid: Grid) -> list[LevelToken]:
    found: list[LevelToken] = []
    form: list[Shape] = []
    start, where = 0, (-1, 0)

    def close() -> None:
        if form:
            found.append(LevelToken(tuple(form), *where, start))
            form.clear()

    for i, call in enumerate(of.calls[rank]):
        if not call.peers or is_root(call.shape):
            close()
            found.append(LevelToken((call.shape,), -1, 0, i))
            continue
        got = neighbour(rank, call.peers, grid)
        if got is None:
            raise NotRecognised(f"{call.shape.action} with rank {call.peers[0]}, which is not 1, 2, 4, … away along one axis (grid {grid})",
                          of, rank, i)
        if not form or got[:2] != where:
            close()
            start, where = i, got[:2]
        form.append(call.shape)
    close()
    return found


def _split(tokens: Sequence[LevelToken], usual: Form) -> Iterator[LevelToken]:
    """The tokens, with the usual exchange apart from what a rank does just before or after it along the same axis."""
    for token in tokens:
        start = 0
        at = 0
        while token.axis >= 0 and at + len(usual) <= len(token.form):
            if token.form[at : at + len(usual)] != usual:
                at += 1
                continue
            if at > start:
                yield LevelToken(token.form[start:at], token.axis, token.stride, token.first + start)
            yield LevelToken(usual, token.axis, token.stride, token.first + at)
            start = at = at + len(usual)
        if start < len(token.form):
            yield LevelToken(token.form[start:], token.axis, token.stride, token.first + start)


def _corner(ranks: int, last: bool) -> int:
    return ranks - 1 if last else 0


def _items(recorded: Sequence[RecordedCalls], tokens: dict[int, list[LevelToken]], axes: int, *, last: bool) -> list[Item]:
    """The program of the rank in the corner that has points at every level: the exchanges that it does at every size."""
    by_size: list[list[Item]] = []
    for of in recorded:
        groups: list[Item] = []
        for token in tokens[of.ranks]:
            before = groups[-1] if groups else None
            if token.axis >= 0 and before is not None and before.form == token.form and before.axes and token.axis not in before.axes:
                groups[-1] = Item(before.form, (*before.axes, token.axis))
            else:
                groups.append(Item(token.form, (token.axis,) if token.axis >= 0 else ()))
        by_size.append(groups)
    forms = {g.form for groups in by_size for g in groups if g.axes}
    always = {f for f in forms if len({tuple(g.axes for g in groups if g.form == f) for groups in by_size}) == 1}
    programs = [[g for g in groups if not g.axes or g.form in always] for groups in by_size]
    for of, groups in zip(recorded, programs, strict=True):
        for i, (a, b) in enumerate(itertools.zip_longest(groups, programs[-1])):
            if a != b:
                rank = _corner(of.ranks, last)
                raise NotRecognised(f"its exchanges are not those of rank {_corner(recorded[-1].ranks, last)} of {recorded[-1].ranks}, "
                                    f"from the {i + 1}th on", of, rank, 0)
    if not any(len(g.axes) == axes for g in programs[-1]):
        raise NotRecognised(f"rank {_corner(recorded[-1].ranks, last)} of {recorded[-1].ranks} has no exchanges along all axes")
    partial = next((g for g in programs[-1] if g.axes and len(g.axes) != axes), None)
    if partial is not None:
        raise NotRecognised("exchanges along some of the axes only")
    return programs[-1]


# --- the levels ------------------------------------------------------------------------------------------------------------


def _find_levels(found: Levels, recorded: Sequence[RecordedCalls], tokens: dict[int, list[list[LevelToken]]]) -> None:
    """The level of each item. Distances of two and more give the points along their axis; the sizes of messages, the faces of blocks of
    as many points with margins, order the levels at which all ranks have points."""
    axes = range(len(found.grids[recorded[-1].ranks].dims))
    exchanges = {item.form for item in found.items if item.axes}
    strides: dict[int, dict[Grid, dict[int, int]]] = defaultdict(lambda: defaultdict(dict))
    sizes: dict[tuple[Form, int, int], dict[int, dict[Grid, int]]] = defaultdict(lambda: defaultdict(dict))
    for of in recorded:
        grid, rank = found.grids[of.ranks], _corner(of.ranks, found.last)
        mine = iter(t for t in tokens[of.ranks][rank] if t.axis < 0 or t.form in exchanges)
        for i, item in enumerate(found.items):
            for _ in item.axes or (-1,):
                token = next(mine)
                if token.axis < 0:
                    continue
                strides[i][grid][token.axis] = token.stride
                for j, shape in enumerate(token.form):
                    for name, value in zip(shape.names, of.calls[rank][token.first + j].numbers, strict=True):
                        if name == "bytes":
                            sizes[item.form, j, token.axis][i][grid] = value
    known = {i: {a: g.dims[a] // s for g, by in of.items() for a, s in by.items() if s > 1} for i, of in strides.items()}
    coarsest = {a: min((n[a] for n in known.values() if a in n), default=0) for a in axes}
    never = [str(a + 1) for a, n in coarsest.items() if not n]
    if never:
        raise NotRecognised(f"no recorded size has neighbours more than one rank away along axis {', '.join(never)}: no levels")
    found.coarsest = tuple(coarsest.values())
    # Sizes that differ between the exchanges of one grid are faces; the others are buffers.
    faces = [key for key, by in sizes.items() if any(len({v[g] for v in by.values()}) > 1 for g in found.grids.values())]
    if not faces:
        raise NotRecognised("the sizes of messages do not differ from level to level")
    form, call = faces[0][:2]
    given = {a: sizes[form, call, a] for a in axes}
    for hypothesis in _hypotheses(found, given, known):
        level = [_level(found, i, given, strides[i], hypothesis) if item.axes else -1 for i, item in enumerate(found.items)]
        if all(k is not None for k in level):
            found.level = [k for k in level if k is not None]
            return
    raise NotRecognised("no points of a block at each level give the sizes of messages and the distances of neighbours")


Hypothesis = dict[int, tuple[int, tuple[int, ...]]]
"""The face across each axis: bytes a point, and margins along the other axes."""


def face(points: Sequence[int], axis: int, face: tuple[int, tuple[int, ...]]) -> int:
    others = [n for a, n in enumerate(points) if a != axis]
    return face[0] * math.prod(n + m for n, m in zip(others, face[1], strict=True))


def _hypotheses(found: Levels, sizes: dict[int, dict[int, dict[Grid, int]]], known: dict[int, dict[int, int]]) -> Iterator[Hypothesis]:
    """The faces that explain the coarsest level, of as many bytes a point across each axis."""
    lowest = [i for i, points in known.items() if points and all(points[a] == found.coarsest[a] for a in points)]
    common = math.gcd(*(v for by in sizes.values() for of in by.values() for v in of.values()))
    corner = (0,) * len(sizes)
    for unit in _divisors(common):
        fitting: list[list[tuple[int, tuple[int, ...]]]] = []
        for axis, by in sizes.items():
            wanted = {(found.block(corner, 0, grid), v) for i in lowest for grid, v in by.get(i, {}).items()}
            fitting.append([
                (unit, margins) for margins in itertools.product(MARGINS, repeat=len(sizes) - 1)
                if all(face(block, axis, (unit, margins)) == v for block, v in wanted)
            ])
        for faces in itertools.product(*fitting):
            yield dict(enumerate(faces))


def _divisors(n: int) -> list[int]:
    """Divisors, the largest first."""
    return [d for d in range(min(n, 4096), 0, -1) if n % d == 0]


def _level(
    found: Levels, item: int, sizes: dict[int, dict[int, dict[Grid, int]]], strides: dict[Grid, dict[int, int]], faces: Hypothesis
) -> int | None:
    corner = (0,) * len(found.coarsest)
    if not all(item in by for by in sizes.values()):
        return None
    for level in range(32):
        if all(
            found.strides(level, grid)[axis] == apart
            and face(found.block(corner, level, grid), axis, faces[axis]) == sizes[axis][item][grid]
            for grid, by in strides.items()
            for axis, apart in by.items()
        ):
            return level
    return None


# --- who takes part --------------------------------------------------------------------------------------------------------


def _find_steps(found: Levels, recorded: Sequence[RecordedCalls], tokens: dict[int, list[list[LevelToken]]]) -> None:
    """The exchanges between levels, from those of the corner outwards."""
    exchanges = {item.form for item in found.items if item.axes}
    handed: dict[tuple[str, Form], set[int]] = defaultdict(set)
    for of in recorded:
        grid, rank = found.grids[of.ranks], _corner(of.ranks, found.last)
        at = before = -1  # the item that the last token was of, and the level of the last exchanges
        left = 0
        for token in tokens[of.ranks][rank]:
            if token.axis < 0 or token.form in exchanges:
                if not left:
                    at += 1
                    left = len(found.items[at].axes) or 1
                    before = found.level[at] if found.items[at].axes else before
                left -= 1
                continue
            step = found.step(before, at + 1) if at + 1 < len(found.items) else None
            if step is None:
                raise NotRecognised(f"{token.form[0].action}: an exchange that other ranks do not have, where the level does not change",
                              of, rank, token.first)
            handed[step].add(token.axis)
            _add_spec(found, ("coarse", step, token.axis), token, of, rank, grid)
    found.steps = {step: tuple(sorted(axes)) for step, axes in handed.items()}
    for of in recorded:
        grid = found.grids[of.ranks]
        for rank in range(of.ranks):
            offset = found.offset(rank, grid)
            for token in tokens[of.ranks][rank]:
                if token.axis < 0:
                    continue
                if token.form in exchanges:
                    _add_spec(found, ("all", ("", token.form), token.axis), token, of, rank, grid)
                    continue
                kind = "coarse" if offset[token.axis] % (2 * token.stride) == 0 else "fine"
                for step, among in found.steps.items():
                    if token.axis in among:
                        _add_spec(found, (kind, step, token.axis), token, of, rank, grid)


def _add_spec(found: Levels, role: Role, token: LevelToken, of: RecordedCalls, rank: int, grid: Grid) -> None:
    """Add what a rank does to what is known of an exchange."""
    seen = []
    for j in range(len(token.form)):
        got = neighbour(rank, of.calls[rank][token.first + j].peers, grid)
        assert got is not None
        seen.append(got[2])
    spec = found.specs.get(role)
    if spec is None:
        found.specs[role] = ExchangeSpec(token.form, token.axis, seen)
        return
    if spec.form != token.form:
        raise NotRecognised(f"{token.form[0].action} where other ranks at the same place have {spec.form[0].action}", of, rank, token.first)
    for j, (known, here) in enumerate(zip(spec.signs, seen, strict=True)):
        spec.signs[j] = [a & b for a, b in zip(known, here, strict=True)]
        if not all(spec.signs[j]):
            raise NotRecognised(f"{token.form[j].action} in the other direction than other ranks", of, rank, token.first + j)


def _find_guards(found: Levels, recorded: Sequence[RecordedCalls], tokens: dict[int, list[list[LevelToken]]]) -> None:
    """The rules for which ranks take part that agree with every recorded rank: all that the recordings do not tell apart."""
    worst: tuple[int, NotRecognised] | None = None
    for everyone in (True, False):
        found.everyone = everyone
        passed = False
        fitting: dict[tuple[str, Form], list[str]] = defaultdict(list)
        for chosen in itertools.product(GUARDS, repeat=len(found.steps)):
            guards = dict(zip(found.steps, chosen, strict=True))
            try:
                for of in recorded:
                    grid = found.grids[of.ranks]
                    plans: dict[tuple[int, ...], list[Planned]] = {}
                    for rank in range(of.ranks):
                        place = found.place(rank, grid)
                        if place not in plans:
                            plans[place] = list(found.plan(place, grid, guards))
                        _check(found, of, rank, tokens[of.ranks][rank], plans[place])
            except NotRecognised as e:
                if worst is None or e.index > worst[0]:
                    worst = e.index, e
                continue
            passed = True
            for step, guard in guards.items():
                if guard not in fitting[step]:
                    fitting[step].append(guard)
        if passed:
            found.guards = dict(fitting)
            return
    assert worst is not None
    raise worst[1]


def _check(found: Levels, of: RecordedCalls, rank: int, tokens: Sequence[LevelToken], planned: Sequence[Planned]) -> None:
    for token, plan in itertools.zip_longest(tokens, planned):
        if plan is None:
            raise NotRecognised(f"{token.form[0].action} where the levels give nothing more", of, rank, token.first)
        form = found.items[plan.item].form if plan.role is None else found.specs[plan.role].form
        axis = -1 if plan.role is None else plan.role[2]
        if token is None or (token.form, token.axis, token.stride) != (form, axis, plan.stride):
            first = token.first if token is not None else len(of.calls[rank]) - 1
            was = token.form[0].action if token is not None else "the end"
            where = f" {plan.stride} away along axis {axis + 1}" if axis >= 0 else ""
            raise NotRecognised(f"{was} where its level gives {form[0].action}{where}", of, rank, first)


# --- numbers ---------------------------------------------------------------------------------------------------------------


def steps_of(found: Levels, grid: Grid, place: Sequence[int]) -> list[tuple[Planned, int, Shape]]:
    """The calls of the ranks at a place: what is planned, the place in it, and the call's shape."""
    guards = {step: among[0] for step, among in found.guards.items()}
    return [(plan, j, shape) for plan in found.plan(place, grid, guards) for j, shape in enumerate(form_of(found, plan))]


def form_of(found: Levels, plan: Planned) -> Form:
    """The calls of what is planned."""
    return found.items[plan.item].form if plan.role is None else found.specs[plan.role].form


def _find_numbers(found: Levels, recorded: Sequence[RecordedCalls]) -> None:
    """The laws of all numbers. Ranks at the same place have the same numbers in the same calls."""
    seen: dict[tuple[Role, int, int], dict[Grid, dict[tuple[int, ...], int]]] = defaultdict(lambda: defaultdict(dict))
    plain: dict[tuple[int, int], dict[Grid, int]] = defaultdict(dict)
    first: dict[object, tuple[RecordedCalls, int, int]] = {}
    for of in recorded:
        grid = found.grids[of.ranks]
        steps: dict[tuple[int, ...], list[tuple[Planned, int, Shape]]] = {}
        done: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for rank in range(of.ranks):
            place = found.place(rank, grid)
            numbers = [call.numbers for call in of.calls[rank]]
            if place in done:
                if numbers != done[place]:
                    index = next(i for i, (a, b) in enumerate(zip(numbers, done[place], strict=True)) if a != b)
                    action = of.calls[rank][index].shape.action
                    raise NotRecognised(f"{action} with other numbers than ranks at the same place", of, rank, index)
                continue
            done[place] = numbers
            steps[place] = steps_of(found, grid, place)
            for index, ((plan, j, _), call) in enumerate(zip(steps[place], of.calls[rank], strict=True)):
                roots = [(-1, call.peers[0])] if plan.role is None and call.peers else []
                for n, value in [*enumerate(call.numbers), *roots]:
                    if plan.role is None:
                        known = plain[plan.item, n].setdefault(grid, value)
                        first[plan.item, n] = of, rank, index
                    else:
                        known = seen[plan.role, j, n][grid].setdefault(plan.points, value)
                        first[plan.role, j, n] = of, rank, index
                    if known != value:
                        raise NotRecognised(f"{call.shape.action} with {value} where its level gives {known}", of, rank, index)
    for key, by in plain.items():
        found.plain[key] = _laws(by, first[key])
    families: dict[tuple[str, tuple[str, Form], int, int], list[int]] = defaultdict(list)
    buffers: dict[tuple[Role, int, int], dict[Grid, int]] = {}
    for (role, j, n), of_grid in seen.items():
        if all(len(set(v.values())) == 1 for v in of_grid.values()):
            buffers[role, j, n] = {g: next(iter(v.values())) for g, v in of_grid.items()}
        elif found.specs[role].form[j].names[n] == "bytes":
            families[role[0], role[1], j, n].append(role[2])
        else:
            raise NotRecognised(f"its {found.specs[role].form[j].names[n]} differs from level to level", *first[role, j, n])
    for (role, j, n), by in buffers.items():
        # Calls of one kind whose numbers agree wherever both were recorded have one law: together they were recorded on more grids.
        shape = found.specs[role].form[j]
        for other, values in buffers.items():
            if found.specs[other[0]].form[other[1]] == shape and other[2] == n and all(by.get(g, v) == v for g, v in values.items()):
                by = {**values, **by}
        buffers_of = _buffers(found, by) if shape.names[n] == "bytes" else []
        same = len(set(by.values())) == 1
        found.specs[role].laws[j, n] = [*(_laws(by, first[role, j, n]) if same or not buffers_of else []), *buffers_of]
    for (kind, step, j, n), axes in families.items():
        by_axis = {a: {(block, v) for blocks in seen[(kind, step, a), j, n].values() for block, v in blocks.items()} for a in axes}
        _fit_faces(found, (kind, step), (j, n), by_axis, first[(kind, step, axes[0]), j, n])


def _laws(points: dict[Grid, int], where: tuple[RecordedCalls, int, int]) -> list[Law]:
    laws = exact_laws(points)
    if not laws:
        raise NotRecognised("no law gives its number: " + ", ".join(f"{v} on {g}" for g, v in points.items()), *where)
    return laws


def _buffers(found: Levels, points: dict[Grid, int]) -> list[Law]:
    """The laws of a buffer that holds faces of a block of the finest level, which need fewer free numbers than any other law: the points
    are known."""
    whole = found.points(max(found.level))
    out: list[Law] = []
    for unit in _divisors(math.gcd(*points.values())):
        for a, b in itertools.combinations_with_replacement(range(len(whole)), 2):
            for margins in itertools.product(MARGINS, repeat=2):
                if a == b and margins[0] > margins[1]:
                    continue

                def holds(g: Grid, sides: tuple[int, int] = (a, b), margins: tuple[int, ...] = margins) -> Fraction:
                    return math.prod((Fraction(whole[i], g.dims[i]) + m for i, m in zip(sides, margins, strict=True)), start=Fraction(1))

                if all(unit * holds(g) == v for g, v in points.items()):
                    name = " ".join(f"({whole[i]}/D{i + 1}" + (f" + {m})" if m else ")") for i, m in zip((a, b), margins, strict=True))
                    out.append(Law(((Fraction(unit), (name, holds)),), len(points) - 1))
    return out


def _fit_faces(
    found: Levels, what: tuple[str, tuple[str, Form]], number: tuple[int, int], by_axis: dict[int, set[tuple[tuple[int, ...], int]]],
    where: tuple[RecordedCalls, int, int],
) -> None:
    """The faces that give the sizes across all axes, of as many bytes a point."""
    common = math.gcd(*(v for of in by_axis.values() for _, v in of))
    good: dict[int, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
    for unit in _divisors(common):
        fitting = {
            a: [
                (unit, margins) for margins in itertools.product(MARGINS, repeat=len(found.coarsest) - 1)
                if all(face(block, a, (unit, margins)) == v for block, v in of)
            ]
            for a, of in by_axis.items()
        }
        if all(fitting.values()):
            for a, faces in fitting.items():
                good[a] += faces
    if not good:
        raise NotRecognised("no face of a block of points gives the sizes of its messages", *where)
    # All faces together need the bytes a point and the margins of each.
    spare = max(0, sum(map(len, by_axis.values())) - 1 - len(by_axis) * (len(found.coarsest) - 1))
    for a, faces in good.items():
        spec = found.specs[(*what, a)]
        spec.faces[number] = faces
        spec.spare[number] = spare
