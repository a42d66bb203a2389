"""The trace of a program over levels on a wanted number of ranks, with the laws of its computation."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrompi.traces.files import parse

from .calls import RecordedCalls, write_call
from .grid import Grid
from .laws import TOLERANCE, Law
from .levels import GUARDS, ExchangeSpec, Levels, Planned, Role, face, steps_of
from .make import ExtrapolatedTrace
from .recognise import NotRecognised
from .report import Report

__all__ = ["Amounts", "make_levels", "told_levels"]

Vector = np.ndarray[Any, np.dtype[np.float64]]

Kind = tuple[object, ...]
"""What computation depends on apart from the size of a block: the call, the one before it, and how far apart their levels are."""


def make_levels(found: Levels, amounts: Amounts, ranks: int) -> ExtrapolatedTrace:
    """The trace on ``ranks`` ranks. Raises Refused."""
    dims = found.law.of(ranks)
    if dims is None:
        raise NotRecognised(f"{ranks} ranks do not make a grid of this law: {found.law.name}")
    grid = Grid(dims)
    found.fits(grid)
    _told_apart(found, grid)
    writer = _Writer(found, grid, amounts)
    trace = parse([writer.rank(rank) for rank in range(ranks)], name="extrapolated")
    return ExtrapolatedTrace(trace, grid, writer.untested, writer.numbers)


def _told_apart(found: Levels, grid: Grid) -> None:
    """Raises Refused where rules that the recordings do not tell apart differ on this grid."""
    differ = _differing(found, grid)
    if differ is None:
        return
    sizes = range(found.largest.ranks + 1, grid.size + 1)
    enough = next(p for p in sizes if (dims := found.law.of(p)) is not None and _differing(found, Grid(dims)) is not None)
    raise NotRecognised(f"the recorded sizes do not tell apart which ranks hand over to others that join a level on {grid} ({differ}); "
                  + (f"a recording on {enough} ranks would" if enough < grid.size else "no smaller size does"))


def _differing(found: Levels, grid: Grid) -> str | None:
    """Two rules that differ on this grid, in words."""
    first = {step: among[0] for step, among in found.guards.items()}
    others = [(step, rule) for step, among in found.guards.items() for rule in among[1:]]
    try:
        found.fits(grid)
    except NotRecognised:
        return None
    for place in itertools.product(*(range(s) for s in found.strides(0, grid))):
        plan = list(found.plan(place, grid, first))
        for step, rule in others:
            if list(found.plan(place, grid, {**first, step: rule})) != plan:
                return f"{GUARDS[first[step]]} or {GUARDS[rule]}"
    return None


class _Numbers:
    """The numbers of calls on a grid."""

    def __init__(self, found: Levels, grid: Grid) -> None:
        self.found = found
        self.grid = grid
        self._known: dict[tuple[object, ...], list[int]] = {}

    def of(self, plan: Planned, j: int) -> list[int]:
        """The numbers of a planned call."""
        what = plan.item if plan.role is None else plan.role, plan.points, j
        if what not in self._known:
            self._known[what] = self._of(plan, j)
        return self._known[what]

    def _of(self, plan: Planned, j: int) -> list[int]:
        if plan.role is None:
            count = len(self.found.items[plan.item].form[0].names)
            return [self.by_law(self.found.plain[plan.item, n]) for n in range(count)]
        spec = self.found.specs[plan.role]
        return [self._number(spec, plan, j, n) for n in range(len(spec.form[j].names))]

    def _number(self, spec: ExchangeSpec, plan: Planned, j: int, n: int) -> int:
        if (j, n) in spec.laws:
            return self.by_law(spec.laws[j, n])
        values = {face(plan.points, spec.axis, f) for f in spec.faces[j, n]}
        if len(values) > 1:
            told = " or ".join(map(str, sorted(values)[:3]))
            action = spec.form[j].action
            raise NotRecognised(f"{action}: the recorded sizes do not tell apart {told} bytes on {self.grid}; record a further size")
        return values.pop()

    def by_law(self, laws: Sequence[Law]) -> int:
        """The value that all of ``laws`` give."""
        values = {law.at(self.grid) for law in laws}
        if len(values) > 1:
            told = " or ".join(sorted(f"{float(law.at(self.grid)):g} ({law.text})" for law in laws)[:3])
            raise NotRecognised(f"the recorded sizes do not tell apart: {told} on {self.grid}; record a further size")
        value = values.pop()
        if value < 0:
            raise NotRecognised(f"a number would be {float(value):g} on {self.grid} ({laws[0].text})")
        return round(value)


class _Writer:
    def __init__(self, found: Levels, grid: Grid, amounts: Amounts) -> None:
        self.found = found
        self.grid = grid
        self.amounts = amounts
        self.values = _Numbers(found, grid)
        self.untested = 0
        self.numbers = 0
        self._places: dict[tuple[int, ...], list[tuple[Planned, int, list[int], float]]] = {}

    def rank(self, rank: int) -> str:
        """The lines of a rank."""
        place = self.found.place(rank, self.grid)
        if place not in self._places:
            self._places[place] = self._at(place)
        known: dict[tuple[object, ...], str] = {}
        lines: list[str] = []
        for plan, j, numbers, compute in self._places[place]:
            if compute >= 0.5:
                lines.append(f"{rank} compute {compute:.6g}\n")
            what = (plan.item if plan.role is None else plan.role, plan.stride, j, *numbers)
            line = known.get(what)
            if line is None:
                line = known[what] = self._line(rank, plan, j, numbers)
            lines.append(line)
        rest = self.found.largest.rest[rank % self.found.largest.ranks]
        if rest:
            lines.append(f"{rank} compute {rest:.6g}\n")
        return "".join(lines)

    def _line(self, rank: int, plan: Planned, j: int, numbers: list[int]) -> str:
        if plan.role is None:
            shape = self.found.items[plan.item].form[0]
            peers = numbers[len(shape.names) :]
        else:
            spec = self.found.specs[plan.role]
            shape = spec.form[j]
            peers = [self._peer(self.grid.at(rank), spec, signs, plan) for signs in spec.signs[j]]
        return write_call(rank, shape, peers, numbers[: len(shape.names)]) + "\n"

    def _at(self, place: tuple[int, ...]) -> list[tuple[Planned, int, list[int], float]]:
        numbers = self.values
        steps = steps_of(self.found, self.grid, place)
        sizes = [numbers.of(plan, j) for plan, j, _ in steps]
        computed = self.amounts.on(self.grid, steps, sizes)
        out = []
        for (plan, j, shape), values, compute in zip(steps, sizes, computed, strict=True):
            self.numbers += len(values)
            if plan.role is None:
                self.untested += sum(self.found.plain[plan.item, n][0].spare <= 0 for n in range(len(values)))
            else:
                spec = self.found.specs[plan.role]
                self.untested += sum(laws[0].spare <= 0 for (k, _), laws in spec.laws.items() if k == j)
                self.untested += sum(spare <= 0 for (k, _), spare in spec.spare.items() if k == j)
            root = [numbers.by_law(self.found.plain[plan.item, -1])] if plan.role is None and shape.peers else []
            out.append((plan, j, [*values, *root], compute))
        return out

    def _peer(self, here: tuple[int, ...], spec: ExchangeSpec, signs: frozenset[int], plan: Planned) -> int:
        found = {self.grid.rank([c + (s * plan.stride if a == spec.axis else 0) for a, c in enumerate(here)]) for s in signs}
        if len(found) > 1:
            action = spec.form[0].action
            raise NotRecognised(f"{action}: the recorded grids are too small to tell the directions of axis {spec.axis + 1} apart")
        return found.pop()


class Amounts:
    """Computation before a call: for each kind of call a sum, with no negative term, of a constant, the bytes of this call and of the one
    before it, and products of a block's points along some of the axes; from all levels and recorded sizes together, because a level on
    a larger grid has the blocks that a coarser one has on a smaller grid."""

    def __init__(self, found: Levels, recorded: Sequence[RecordedCalls]) -> None:
        self.found = found
        self._classes = self._structure()
        self._seen: dict[Kind, dict[tuple[float, ...], list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0]))
        self._laws: dict[Kind, Vector | None] = {}
        self._share: Counter[int] = Counter()
        self._of_level: dict[Kind, int] = {}
        for of in recorded:
            grid = found.grids[of.ranks]
            members: dict[tuple[int, ...], list[int]] = defaultdict(list)
            for rank in range(of.ranks):
                members[found.place(rank, grid)].append(rank)
            for place, ranks in members.items():
                steps = steps_of(found, grid, place)
                sizes = [list(call.numbers) for call in of.calls[ranks[0]]]
                computed = np.array([[call.compute for call in of.calls[rank]] for rank in ranks]).sum(axis=0)
                for (plan, _, _), kinds, features, total in zip(steps, *self._call_kinds(steps, sizes), computed, strict=True):
                    self._of_level[kinds[0]] = max(plan.level, self._of_level.get(kinds[0], 0))
                    if of is found.largest:
                        self._share[plan.level] += total
                    for kind in kinds:
                        entry = self._seen[kind][features]
                        entry[0] += total
                        entry[1] += len(ranks)

    def on(self, grid: Grid, steps: Sequence[tuple[Planned, int, Any]], sizes: Sequence[Sequence[int]]) -> list[float]:
        """The computation before each call of a rank."""
        out = []
        for kinds, features in zip(*self._call_kinds(steps, sizes), strict=True):
            kind = next((k for k in kinds if k in self._seen), None)
            out.append(self._value(kind, features) if kind is not None else 0.0)
        return out

    def level_rows(self) -> list[dict[str, Any]]:
        """A row for each level: its share of the operations of the largest recording, and the mean over its calls of the largest relative
        error of their law at a recorded size."""
        total = sum(self._share.values()) or 1.0
        errors: dict[int, list[float]] = defaultdict(list)
        for kind, level in self._of_level.items():
            law = self._law(self._seen[kind])
            if law is not None:
                known = np.array([t / n for t, n in self._seen[kind].values()])
                made = np.array(list(self._seen[kind])) @ law
                errors[level].append(float((np.abs(made - known) / np.maximum(known, known.max() * 1e-6)).max()))
        mean = {level: sum(of) / len(of) for level, of in errors.items()}
        return [
            {"law": f"bytes and blocks, level {level}", "share": share / total, "error": mean.get(level, 0.0)}
            for level, share in sorted(self._share.items(), reverse=True)
        ]

    def _structure(self) -> list[tuple[object, ...]]:
        """The kind of each item: calls apart, and exchanges by where the levels go before and after them. Programs do other things on the
        finest level than on all others."""
        found = self.found
        top = max(found.level)
        forms: dict[object, int] = {}

        def beside(i: int, other: int) -> object:
            if not 0 <= other < len(found.items):
                return None
            if found.level[other] < 0:
                return found.items[other].form[0].action
            return found.level[other] - found.level[i]

        return [
            (forms.setdefault(item.form, len(forms)), beside(i, i - 1), beside(i, i + 1), found.level[i] == top) if item.axes else (i,)
            for i, item in enumerate(found.items)
        ]

    def _call_kinds(
        self, steps: Sequence[tuple[Planned, int, Any]], sizes: Sequence[Sequence[int]]
    ) -> tuple[list[tuple[Kind, ...]], list[tuple[float, ...]]]:
        """For each call its kinds, the most specific first, and the features of its amount."""
        kinds: list[tuple[Kind, ...]] = []
        features: list[tuple[float, ...]] = []
        before: tuple[Kind, int, int] = ((), 0, 0)
        axes = range(len(self.found.coarsest))
        some = [which for n in range(1, len(axes) + 1) for which in itertools.combinations(axes, n)]
        for (plan, j, shape), numbers in zip(steps, sizes, strict=True):
            what: Kind = (self._classes[plan.item], j) if plan.role is None else (self._classes[plan.item], plan.role[0], plan.role[2], j)
            size = sum(v for name, v in zip(shape.names, numbers, strict=False) if name == "bytes")
            kinds.append(((what, before[0], plan.level - before[1]), (what,), (shape.action, j)))
            products = (math.prod(plan.points[a] for a in which) for which in some)
            features.append((1.0, float(size), float(before[2]), *map(float, products)))
            before = what, plan.level, size
        return kinds, features

    def _value(self, kind: Kind, features: tuple[float, ...]) -> float:
        seen = self._seen[kind]
        if features in seen:
            total, count = seen[features]
            return total / count
        if kind not in self._laws:
            self._laws[kind] = self._law(seen)
        law = self._laws[kind]
        return 0.0 if law is None else float(law @ np.array(features))

    def _law(self, seen: dict[tuple[float, ...], list[float]]) -> Vector | None:
        """The coefficients of the features: of all, where enough blocks were recorded to tell them apart; else of few, those that give the
        smallest block best from the others, as the wanted blocks are smaller still. Of laws that are as good, the first."""
        values = np.array([total / count for total, count in seen.values()])
        if not values.any():
            return None
        known = np.array(list(seen))
        count = known.shape[1]
        if len(known) >= 2 * count:
            return _sum(known, values, range(count))
        volume = count - 1
        smallest = int(np.argmin(known[:, volume] + known[:, 1] / known[:, 1].max(initial=1)))
        others = np.arange(len(known)) != smallest
        best: tuple[float, Sequence[int]] | None = None
        single, pairs = ([volume], [0], [1], [2]), ([0, volume], [1, volume], [2, volume], [0, 1], [0, 2])
        for few in [*single, *pairs, *([i, volume] for i in range(3, volume))]:
            if len(few) > max(1, others.sum()):
                continue
            trial = _sum(known[others], values[others], few) if others.any() else _sum(known, values, few)
            error = abs(float(known[smallest] @ trial) / max(values[smallest], values.max() * 1e-6) - 1)
            if best is None or error < best[0] - TOLERANCE:
                best = error, few
        assert best is not None
        return _sum(known, values, best[1])


def _sum(known: Vector, values: Vector, features: Sequence[int]) -> Vector:
    """The coefficients, none negative, 0 but for those of ``features``, of least relative error: fine levels do not drown coarse ones."""
    from scipy.optimize import nnls

    weight = 1 / np.maximum(values, values.max() * 1e-6) if values.any() else np.ones_like(values)
    matrix = known[:, list(features)] * weight[:, None]
    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-300)
    found, _ = nnls(matrix / scale, values * weight)
    out = np.zeros(known.shape[1])
    out[list(features)] = found / scale
    return out


# --- the report ------------------------------------------------------------------------------------------------------------


def told_levels(found: Levels, amounts: Amounts, ranks: int, grid: str) -> Report:
    """The report on levels extrapolated to ``ranks`` on ``grid``."""
    top = found.grids[found.largest.ranks]
    law = f"{found.law.name}; levels of " + " to ".join("x".join(map(str, found.points(k))) for k in (0, max(found.level))) + " points"
    members = Counter(found.place(rank, top) for rank in range(top.size))
    calls: Counter[tuple[Role | None, int, int]] = Counter()
    for place, count in members.items():
        for plan, j, _ in steps_of(found, top, place):
            calls[plan.role, plan.item if plan.role is None else -1, j] += count
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for (role, item, j), count in calls.items():
        row = _row_of_call(found, item) if role is None else _row_of_exchange(found.specs[role], role, j)
        same = rows.setdefault((row["action"], row["peers"], row["law"]), {**row, "calls": 0})
        same["calls"] += count
    grids = {p: str(g) for p, g in found.grids.items()} | {ranks: grid}
    return Report(law, grids, len(members), sorted(rows.values(), key=lambda row: -row["calls"]), amounts.level_rows())


def _row_of_call(found: Levels, item: int) -> dict[str, Any]:
    shape = found.items[item].form[0]
    laws = [found.plain[item, n] for n in range(len(shape.names))]
    root = found.plain.get((item, -1))
    texts = [f"{name} " + " or ".join(law.text for law in of) for name, of in zip(shape.names, laws, strict=True)]
    return {"action": shape.action, "peers": f"root rank {root[0].text}" if root else "", "law": "; ".join(texts),
            "tested": min((of[0].spare for of in laws), default=None)}


def _row_of_exchange(spec: ExchangeSpec, role: Role, j: int) -> dict[str, Any]:
    which = {"all": "next with points of the level", "coarse": "rank that joins a finer level", "fine": "rank of the coarser level"}
    directions = "/".join("+" if s > 0 else "-" for signs in spec.signs[j] for s in sorted(signs, reverse=True))
    texts, tested = [], []
    for n, name in enumerate(spec.form[j].names):
        if (j, n) in spec.laws:
            texts.append(f"{name} " + " or ".join(law.text for law in spec.laws[j, n]))
            tested.append(spec.laws[j, n][0].spare)
        else:
            others = [a for a in range(len(spec.faces[j, n][0][1]) + 1) if a != spec.axis]
            told = (
                f"{unit} " + " ".join(f"(n{a + 1} + {m})" if m else f"n{a + 1}" for a, m in zip(others, margins, strict=True))
                for unit, margins in spec.faces[j, n]
            )
            texts.append(f"{name} " + " or ".join(told))
            tested.append(spec.spare[j, n])
    return {"action": spec.form[j].action, "peers": f"{which[role[0]]}, axis {spec.axis + 1} {directions}", "law": "; ".join(texts),
            "tested": min(tested, default=None)}
