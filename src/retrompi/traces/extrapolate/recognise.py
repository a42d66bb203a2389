"""Recognising a program in recordings of several sizes: the grid, the programs of its classes of ranks, and the laws of its numbers.

The structure is read off the largest recording and every smaller one must be what it gives there. The idea of finding the grid, the
classes of places in it and laws over several sizes is that of ScalaExtrap (Wu and Mueller, PPoPP 2011); runs folded into rounds are the
parametrised loops of ScalaTrace (Noeth et al., JPDC 69, 2009).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from retrompi.base.errors import UsageError
from retrompi.traces.errors import TraceError

from .calls import RecordedCalls, Shape
from .grid import Grid, GridLaw, Relation, grid_laws, simplest
from .laws import CONSTANT, Amount, Law, amount, exact_laws, extents
from .program import Mismatch, Part, Round, Step, align, program_of

__all__ = ["Class", "NotRecognised", "Pattern", "Spot", "recognise"]

Spot = tuple[str, int, int]
"""A call in the programs: the class, the part of its program, the place in the part's body."""

Key = tuple[str, int, int, int, str]
"""A number in the programs: a spot, the number's index in the call, and which coefficient over the turns of a round."""


class NotRecognised(Exception):
    """A part that is not recognised: rank and index of a call of a recording, or -1."""

    def __init__(self, why: str, recorded: RecordedCalls | None = None, rank: int = -1, index: int = -1) -> None:
        super().__init__(why)
        self.recorded = recorded
        self.rank = rank
        self.index = index
        self.stage = 0
        """How far it was recognised: the largest recording alone (0), the smaller ones as well (1), numbers (2)."""

    def error(self) -> TraceError:
        """The error that is shown."""
        if self.recorded is None:
            return TraceError(f"not recognised: {self}", code="not-recognised")
        file, line = self.recorded.place(self.rank, self.index)
        return TraceError(f"rank {self.rank} of {self.recorded.ranks}: {self}", file, line, code="not-recognised")


@dataclass
class Class:
    """The ranks at one kind of place: their program, and the members in the largest recording."""

    key: str
    parts: list[Part]
    members: list[int] = field(default_factory=list)


@dataclass
class Pattern:
    """The recognised pattern: the law of the grid, the recorded grids by size, the axes whose borders matter, the classes, and the laws.

    ``numbers`` holds the possible laws of each number, ``forms`` how it varies over the turns of a round, ``amounts`` the law of
    computation by context (the calls before and after it, `context`), ``where`` the part of each call of the largest recording.
    """

    law: GridLaw
    grids: dict[int, Grid]
    borders: tuple[bool, ...]
    root: bool
    classes: dict[str, Class]
    largest: RecordedCalls
    numbers: dict[Key, list[Law]] = field(default_factory=dict)
    forms: dict[tuple[str, int, int, int], str] = field(default_factory=dict)
    ids: dict[Spot, int] = field(default_factory=dict)
    fine: dict[Spot, int] = field(default_factory=dict)
    amounts: dict[tuple[object, ...], Amount] = field(default_factory=dict)
    where: dict[int, list[tuple[int, int, int, int]]] = field(default_factory=dict)

    def key(self, rank: int, grid: Grid) -> str:
        """The class of a rank."""
        return _key(grid.place(rank), self.borders, self.root)


def recognise(recorded: Sequence[RecordedCalls]) -> Pattern:
    """The pattern of recordings of increasing size. Raises Refused with the first place that is not recognised."""
    sizes = [r.ranks for r in recorded]
    best: tuple[tuple[int, int], NotRecognised] | None = None
    for law in grid_laws(sizes):
        grids = {p: Grid(dims) for p in sizes if (dims := law.of(p)) is not None}
        for fold in (True, False):
            try:
                return _with(recorded, law, grids, fold=fold)
            except NotRecognised as e:
                reached = e.stage, e.index
                if best is None or reached > best[0]:
                    best = reached, e
    if best is None:
        raise UsageError(f"no process grid fits {', '.join(map(str, sizes))} ranks", code="wrong-ranks")
    raise best[1]


def _key(place: str, borders: Sequence[bool], root: bool) -> str:
    return ("0" if root and place[0] == "0" else "-") + "".join(c if b else "*" for c, b in zip(place[1:], borders, strict=True))


def _with(recorded: Sequence[RecordedCalls], law: GridLaw, grids: dict[int, Grid], *, fold: bool) -> Pattern:
    largest = recorded[-1]
    grid = grids[largest.ranks]
    exact = _classes(largest, grid, fold=fold)
    borders, root = _that_matter(exact, largest, grid)
    pattern = Pattern(law, grids, borders, root, {}, largest)
    for place, ranks in exact.items():
        key = _key(place, borders, root)
        if key not in pattern.classes:
            pattern.classes[key] = Class(key, program_of(largest.calls[ranks[0]], ranks[0], grid, fold=fold))
        pattern.classes[key].members += ranks
    stage = 1
    try:
        aligned = {of.ranks: dict(_all_aligned(pattern, of)) for of in reversed(recorded)}
        pattern.where = {rank: where for rank, (_, where) in aligned[largest.ranks].items()}
        _identify(pattern)
        stage = 2
        _numbers(pattern, recorded, aligned)
    except NotRecognised as e:
        e.stage = stage
        raise
    _amounts(pattern, recorded, aligned)
    return pattern


def _all_aligned(pattern: Pattern, of: RecordedCalls) -> Iterator[tuple[int, tuple[Class, list[tuple[int, int, int, int]]]]]:
    """The ranks of a recording, their class and where each of their calls is in its program."""
    grid = pattern.grids[of.ranks]
    for rank in range(of.ranks):
        found = pattern.classes.get(pattern.key(rank, grid))
        if found is not None:  # None: a place that the largest grid does not have, as on an axis of one rank
            yield rank, (found, _align(found, of, rank, grid))


def _align(of: Class, recorded: RecordedCalls, rank: int, grid: Grid) -> list[tuple[int, int, int, int]]:
    try:
        return align(of.parts, recorded.calls[rank], rank, grid)
    except Mismatch as e:
        raise NotRecognised(f"{e} (grid {grid})", recorded, rank, e.index) from None


def _classes(recorded: RecordedCalls, grid: Grid, *, fold: bool) -> dict[str, list[int]]:
    """The ranks at each kind of place. Raises Refused if ranks at the same place do different things."""
    found: dict[str, list[int]] = defaultdict(list)
    for rank in range(recorded.ranks):
        found[grid.place(rank)].append(rank)
    for ranks in found.values():
        trial = Class("", program_of(recorded.calls[ranks[0]], ranks[0], grid, fold=fold))
        for rank in ranks:
            _align(trial, recorded, rank, grid)
    return found


def _that_matter(places: dict[str, list[int]], recorded: RecordedCalls, grid: Grid) -> tuple[tuple[bool, ...], bool]:
    """The axes along which a rank's place matters for what it does, and whether rank 0 is a case of its own."""
    borders = [True] * len(grid.dims)
    root = True
    for axis in range(-1, len(borders)):
        trial = [b and a != axis for a, b in enumerate(borders)]
        groups: dict[str, list[int]] = defaultdict(list)
        for place, ranks in places.items():
            groups[_key(place, trial, root and axis >= 0)] += ranks
        if all(_same(ranks, recorded, grid) for ranks in groups.values()):
            borders, root = trial, root and axis >= 0
    return tuple(borders), root


def _same(ranks: Sequence[int], recorded: RecordedCalls, grid: Grid) -> bool:
    first = recorded.calls[ranks[0]]
    parts = program_of(first, ranks[0], grid, fold=True)
    if not any(isinstance(part, Round) for part in parts) and any(len(recorded.calls[rank]) != len(first) for rank in ranks):
        return False
    try:
        for rank in ranks:
            align(parts, recorded.calls[rank], rank, grid)
    except Mismatch:
        return False
    return True


def _steps(of: Class) -> Iterator[tuple[int, int, Part, Step]]:
    for p, part in enumerate(of.parts):
        for place, step in enumerate(part.body if isinstance(part, Round) else (part,)):
            yield p, place, part, step


def relations_of(step: Step, root: bool) -> tuple[Relation | None, ...]:
    """The relation of each peer of a step: the simplest that is left; the root of a collective is a fixed rank if it can be."""
    found: list[Relation | None] = []
    for among in step.peers:
        fixed = frozenset(r for r in among or () if r[0] in ("rank", "last")) if root else frozenset()
        found.append(simplest(fixed or among) if among else None)
    return tuple(found)


def _identify(pattern: Pattern) -> None:
    """Number the calls of the programs: those of one shape with one relation have one number, in whatever class."""
    known: dict[tuple[Shape, tuple[Relation | None, ...], str], int] = {}
    for of in pattern.classes.values():
        for p, place, part, step in _steps(of):
            kind = f"{part.kind} {part.axis} {part.order}" if isinstance(part, Round) else ""
            what = step.shape, relations_of(step, is_root(step.shape)), kind
            pattern.ids[of.key, p, place] = known.setdefault(what, len(known))


def is_root(shape: Shape) -> bool:
    """Whether the peer of this call is the root of a collective."""
    return shape.peers > 0 and "tag" not in shape.names and not shape.action.startswith("sendRecv")


# --- numbers ---------------------------------------------------------------------------------------------------------------

Aligned = dict[int, dict[int, tuple[Class, list[tuple[int, int, int, int]]]]]
Points = dict[Grid, set[int]]


def _numbers(pattern: Pattern, recorded: Sequence[RecordedCalls], aligned: Aligned) -> None:
    """Find the law of each number."""
    seen: dict[tuple[str, int, int, int], dict[Grid, set[tuple[int, ...]]]] = defaultdict(lambda: defaultdict(set))
    first: dict[tuple[str, int, int, int], tuple[int, int]] = {}
    for of in recorded:
        grid = pattern.grids[of.ranks]
        done: dict[str, list[list[tuple[int, ...]]]] = defaultdict(list)
        for rank, (group, where) in aligned[of.ranks].items():
            mine = [call.numbers for call in of.calls[rank]]
            if mine in done[group.key]:
                continue
            done[group.key].append(mine)
            over: dict[tuple[str, int, int, int], list[int]] = defaultdict(list)
            for index, (p, place, _, _) in enumerate(where):
                for n, value in enumerate(mine[index]):
                    spot = group.key, p, place, n
                    over[spot].append(value)
                    if of is pattern.largest:
                        first.setdefault(spot, (rank, index))
            for spot, values in over.items():
                seen[spot][grid].add(tuple(values))
    points: dict[Key, Points] = {}
    for spot, by_grid in seen.items():
        form, coefficients = _over_turns(by_grid)
        if form is None:
            rank, index = first[spot]
            name = pattern.largest.calls[rank][index].shape.names[spot[3]]
            raise NotRecognised(f"the {name} of its {pattern.largest.calls[rank][index].shape.action} follow no rule over the round",
                          pattern.largest, rank, index)
        pattern.forms[spot] = form
        for which, found in coefficients.items():
            points[(*spot, which)] = found
    families: dict[tuple[object, ...], list[Key]] = defaultdict(list)
    for key in points:
        families[pattern.ids[key[0], key[1], key[2]], key[3], key[4]].append(key)
    for keys in families.values():
        _family(pattern, keys, points, first)


def _over_turns(by_grid: dict[Grid, set[tuple[int, ...]]]) -> tuple[str | None, dict[str, Points]]:
    """How the values over the turns of a round vary, and the coefficients: ``same``; ``up`` and ``down`` (first + step * turn, counted
    from the first or the last turn); ``double`` and ``halve`` (first or last value, doubled each turn)."""
    best: tuple[int, str, dict[str, Points]] | None = None
    for form in ("same", "up", "down", "double", "halve"):
        found: dict[str, Points] = defaultdict(lambda: defaultdict(set))
        fits = True
        for grid, all_values in by_grid.items():
            for values in all_values:
                got = _coefficients(form, values)
                if got is None:
                    fits = False
                    break
                for which, value in got.items():
                    found[which][grid].add(value)
            if not fits:
                break
        if fits:
            # The same coefficients at all sizes, and counting upwards, are simpler.
            cost = 2 * sum(len(set().union(*p.values())) - 1 for p in found.values())
            cost += any(v < 0 for values in found.get("step", {}).values() for v in values)
            if best is None or cost < best[0]:
                best = cost, form, dict(found)
            if form == "same":
                break
    return (best[1], best[2]) if best is not None else (None, {})


def _coefficients(form: str, values: tuple[int, ...]) -> dict[str, int] | None:
    n = len(values)
    if form == "same":
        return {"value": values[0]} if len(set(values)) == 1 else None
    ordered = values if form in ("up", "double") else values[::-1]
    if form in ("up", "down"):
        step = ordered[1] - ordered[0] if n > 1 else None
        if any(v != ordered[0] + k * (step or 0) for k, v in enumerate(ordered)):
            return None
        return {"first": ordered[0]} | ({} if step is None else {"step": step})
    return {"first": ordered[0]} if all(v == ordered[0] << k for k, v in enumerate(ordered)) else None


def _family(pattern: Pattern, keys: list[Key], points: dict[Key, Points], first: dict[tuple[str, int, int, int], tuple[int, int]]) -> None:
    """The laws of a number of calls of one shape and relation, in all classes.

    Those with the same value in the largest recording have one law, unless a smaller recording contradicts; one that occurs in a single
    size differs from the others of the family by a constant (a block at a border that lacks a row).
    """
    top = pattern.grids[pattern.largest.ranks]
    groups: dict[tuple[object, ...], list[Key]] = defaultdict(list)
    for key in keys:
        groups[(tuple(sorted(points[key].get(top, ()))),)].append(key)
    for most in (1, 3):  # by class, then by call
        for label in list(groups):
            if not _agree(groups[label], points):
                for key in groups.pop(label):
                    groups[(*label, key[:most])].append(key)
    alone: list[tuple[list[Key], int]] = []
    slopes: list[list[Law]] = []
    several: list[list[Key]] = []
    for members in groups.values():
        merged = _merge_points(members, points)
        where = first[members[0][:4]]
        name = pattern.largest.calls[where[0]][where[1]].shape.names[members[0][3]]
        action = pattern.largest.calls[where[0]][where[1]].shape.action
        for grid, values in merged.items():
            if len(values) > 1:
                told = ", ".join(map(str, sorted(values)[:4]))
                why = f"{action}: ranks at the same place of the grid {grid} have different {name} ({told})"
                raise NotRecognised(why, pattern.largest, *where)
        single = {grid: next(iter(values)) for grid, values in merged.items()}
        if len(single) == 1:
            alone.append((members, next(iter(single.values()))))
            continue
        laws = exact_laws(single)
        if not laws:
            told = ", ".join(f"{v} on {g}" for g, v in single.items())
            raise NotRecognised(f"{action}: no law gives its {name}: {told}", pattern.largest, *where)
        slopes.append(laws)
        several.append(members)
    # Laws that one call cannot tell apart may be told apart by another of the family, which is as wide along the same axis.
    shared = Counter(law.slope for laws in slopes for law in laws)
    for members, laws in zip(several, slopes, strict=True):
        most = max(shared[law.slope] for law in laws)
        kept = [law for law in laws if shared[law.slope] == most]
        grids = list(_merge_points(members, points))
        blind = {a for a in range(len(top.dims)) if len({g.dims[a] for g in grids}) == 1}
        others = [[law for law in of if law.axes and law.axes <= blind] for of in slopes if of is not laws]
        hidden = _shift_laws(others, next(iter(points[members[0]][top])), top) if blind else []
        for key in members:
            pattern.numbers[key] = hidden or kept
    for members, value in alone:
        laws = _shift_laws(slopes, value, top)
        if not laws:
            where = first[members[0][:4]]
            call = pattern.largest.calls[where[0]][where[1]]
            if members[0][4] == "step" or call.shape.names[members[0][3]] == "tag":
                laws = [Law(((Fraction(value), CONSTANT),), 0)]
            else:
                why = f"{call.shape.action}: {value} {call.shape.names[members[0][3]]} at one recorded size only, so no law"
                raise NotRecognised(why, pattern.largest, *where)
        for key in members:
            pattern.numbers[key] = laws


def _agree(keys: Sequence[Key], points: dict[Key, Points]) -> bool:
    return all(len(values) == 1 for values in _merge_points(keys, points).values())


def _merge_points(keys: Sequence[Key], points: dict[Key, Points]) -> dict[Grid, set[int]]:
    merged: dict[Grid, set[int]] = defaultdict(set)
    for key in keys:
        for grid, values in points[key].items():
            merged[grid] |= values
    return merged


def _shift_laws(slopes: Sequence[Sequence[Law]], value: int, top: Grid) -> list[Law]:
    """The laws of a family, moved by a constant so that they give ``value`` on the largest recorded grid: those moved least."""
    found: dict[str, tuple[Fraction, Law]] = {}
    for laws in slopes:
        for law in laws:
            moving = tuple(t for t in law.terms if t[1] is not CONSTANT)
            rest = value - Law(moving, 0).at(top)
            made = Law((((rest, CONSTANT),) if rest else ()) + moving, 0)
            found[made.text] = abs(rest), made
    least = min((rest for rest, _ in found.values()), default=Fraction(0))
    return [law for rest, law in found.values() if rest == least]


# --- computation -----------------------------------------------------------------------------------------------------------


Around = tuple[tuple[int, int, bool], ...]
"""Calls in order: their numbers in `Pattern.ids` and `Pattern.fine`, and whether it is a later turn of a round."""


def contexts(around: Sequence[tuple[int, int, bool]]) -> list[tuple[object, ...]]:
    """The contexts of the computation before the last of these calls, from the most specific: that call and those before it, first told
    apart by their numbers as well, then by shape and relation alone."""
    last = tuple(around[-4:])
    return [last, last[-2:], *((n, *((i, later) for i, _, later in last[-n:])) for n in (4, 2, 1)), ()]


def call_context(pattern: Pattern, of: Class, p: int, place: int, turn: int) -> tuple[int, int, bool]:
    """A call as `contexts` takes it."""
    return pattern.ids[of.key, p, place], pattern.fine[of.key, p, place], turn > 0


def _amounts(pattern: Pattern, recorded: Sequence[RecordedCalls], aligned: Aligned) -> None:
    """Find the law of computation in each context: of its mean over ranks and occurrences."""
    known: dict[tuple[int, ...], int] = {}
    for group in pattern.classes.values():
        member = group.members[0]
        for (p, place, _, _), call in zip(pattern.where[member], pattern.largest.calls[member], strict=True):
            spot = group.key, p, place
            pattern.fine.setdefault(spot, known.setdefault((pattern.ids[spot], *call.numbers), len(known)))
    sums: dict[tuple[object, ...], dict[Grid, list[float]]] = defaultdict(dict)
    for of in recorded:
        grid = pattern.grids[of.ranks]
        found: dict[tuple[object, ...], list[float]] = defaultdict(lambda: [0.0, 0])
        # Ranks of a class have the same calls, so the same contexts.
        computed: dict[str, list[list[float]]] = defaultdict(list)
        for rank, (group, _) in aligned[of.ranks].items():
            computed[group.key].append([call.compute for call in of.calls[rank]])
        for group, where in {group.key: (group, where) for group, where in aligned[of.ranks].values()}.values():
            calls = [call_context(pattern, group, p, place, turn) for p, place, turn, _ in where]
            ranks = computed[group.key]
            for index, total in enumerate(map(sum, zip(*ranks, strict=True))):
                for context in contexts(calls[max(0, index - 3) : index + 1]):
                    entry = found[context]
                    entry[0] += total
                    entry[1] += len(ranks)
        for context, entry in found.items():
            sums[context][grid] = entry
    borders = extents(law for laws in pattern.numbers.values() for law in laws)
    varied = _varying_axes(pattern.grids.values())
    for context, by_grid in sums.items():
        # Sizes that do not differ along an axis cannot show whether an amount depends on it; a less specific context may.
        if len(by_grid) > 1 and _varying_axes(by_grid) == varied:
            pattern.amounts[context] = amount({grid: total / count for grid, (total, count) in by_grid.items()}, borders)


def _varying_axes(grids: Iterable[Grid]) -> set[int]:
    """The axes along which grids differ."""
    dims = [g.dims for g in grids]
    return {a for a in range(len(dims[0])) if len({d[a] for d in dims}) > 1}
