"""How a number follows from the grid: the simplest law that gives every recorded value exactly."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from .grid import Grid

__all__ = ["Amount", "Law", "amount", "exact_laws", "extents"]

Feature = tuple[str, Callable[[Grid], Fraction]]
"""The name of a feature of a grid, and its value."""


@dataclass(frozen=True)
class Law:
    """A law ``sum of coefficient * feature``; ``text`` shows it. ``spare`` is the number of recorded values beyond those it needs: 0
    means that nothing has tested it."""

    terms: tuple[tuple[Fraction, Feature], ...]
    spare: int

    def at(self, grid: Grid) -> Fraction:
        """The value on a grid."""
        return sum((c * f(grid) for c, (_, f) in self.terms), Fraction(0))

    @property
    def text(self) -> str:
        """The law in words of the grid: ``P`` ranks, ``D1``, ``D2``, … along its axes."""
        return " + ".join(_term(c, name) for c, (name, _) in self.terms).replace("+ -", "- ") or "0"

    @property
    def slope(self) -> tuple[tuple[Fraction, str], ...]:
        """The terms that are not constant."""
        return tuple((c, name) for c, (name, _) in self.terms if name != "constant")

    @property
    def axes(self) -> frozenset[int]:
        """The axes on whose lengths the law depends, if it names them (P: none)."""
        return frozenset(int(n) - 1 for _, name in self.slope for n in re.findall(r"D(\d)", name))


def _term(c: Fraction, name: str) -> str:
    value = str(c) if c.denominator < 1000 else f"{float(c):.6g}"
    if name == "constant":
        return value
    return f"{value}{name[1:]}" if name.startswith("1/") else f"{value} {name}"


@lru_cache
def _features(count: int) -> list[list[Feature]]:
    """Features on a grid of ``count`` axes by the degree of the laws they make, the simple ones first."""
    axes = range(count)

    def inverse(*which: int) -> Feature:
        product = " ".join(f"D{a + 1}" for a in which)
        name = "P" if len(which) == len(axes) else f"({product})" if len(which) > 1 else product
        return f"1/{name}", lambda g: Fraction(1, math.prod(g.dims[a] for a in which))

    some: list[Feature] = [inverse(a) for a in axes]
    if len(axes) > 1:
        some += [inverse(a, b) for i, a in enumerate(axes) for b in axes[i + 1 :]]
    if len(axes) > 2:
        some.append(inverse(*axes))
    grows: list[Feature] = [("P", lambda g: Fraction(g.size))]
    if len(axes) > 1:
        grows += [(f"D{a + 1}", lambda g, a=a: Fraction(g.dims[a])) for a in axes]  # type: ignore[misc]
    logs: list[Feature] = [("log2 P", lambda g: _log2(g.size))]
    if len(axes) > 1:
        logs += [(f"log2 D{a + 1}", lambda g, a=a: _log2(g.dims[a])) for a in axes]  # type: ignore[misc]
    return [some, grows, logs]


def _log2(n: int) -> Fraction:
    return Fraction(n.bit_length() - 1) if n & (n - 1) == 0 else Fraction(math.log2(n)).limit_denominator(10**9)


CONSTANT: Feature = ("constant", lambda g: Fraction(1))


def exact_laws(points: Mapping[Grid, int]) -> list[Law]:
    """The laws of least degree that give all ``points``; several if the points cannot tell them apart, none if there is no law."""
    grids = list(points)
    values = [Fraction(points[g]) for g in grids]
    if len(set(values)) == 1:
        return [Law(((values[0], CONSTANT),), len(grids) - 1)]
    shares, grows, logs = _features(len(grids[0].dims))
    for choices in (
        [(f,) for f in shares],
        [(f,) for f in grows + logs],
        [(CONSTANT, f) for f in shares],
        [(CONSTANT, f) for f in grows],
        [(CONSTANT, f) for f in logs],
        _products(len(grids[0].dims)),
    ):
        found = [law for features in choices if (law := _solve(features, grids, values)) is not None]
        if found:
            return found
    return []


def _products(axes: int) -> list[tuple[Feature, ...]]:
    """(a + b/Di) (c + d/Dj): the face of a block with a margin, as the sum of its four terms or of three of them."""
    out: list[tuple[Feature, ...]] = []
    for i in range(axes):
        for j in range(i + 1, axes):
            x: Feature = (f"1/D{i + 1}", lambda g, i=i: Fraction(1, g.dims[i]))  # type: ignore[misc]
            y: Feature = (f"1/D{j + 1}", lambda g, j=j: Fraction(1, g.dims[j]))  # type: ignore[misc]
            xy: Feature = (f"1/(D{i + 1} D{j + 1})", lambda g, i=i, j=j: Fraction(1, g.dims[i] * g.dims[j]))  # type: ignore[misc]
            out += [(x, xy), (y, xy), (x, y), (CONSTANT, x, y), (CONSTANT, x, y, xy)]
    return out


def _solve(features: Sequence[Feature], grids: Sequence[Grid], values: Sequence[Fraction]) -> Law | None:
    """The law of these features through all values, if they determine one."""
    rows = [[f(g) for _, f in features] + [v] for g, v in zip(grids, values, strict=True)]
    n = len(features)
    for column in range(n):
        pivot = next((r for r in range(column, len(rows)) if rows[r][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [x / rows[column][column] for x in rows[column]]
        for r in range(len(rows)):
            if r != column and rows[r][column]:
                rows[r] = [a - rows[r][column] * b for a, b in zip(rows[r], rows[column], strict=True)]
    if any(row[n] for row in rows[n:]):
        return None
    solution = [rows[i][n] for i in range(n)]
    # A coefficient of 0 is a simpler law; a share of a grid or of a vector is a whole number and positive.
    if any(c == 0 or c.denominator != 1 or (c < 0 and f[0] != "constant") for c, f in zip(solution, features, strict=True)):
        return None
    return Law(tuple(zip(solution, features, strict=True)), len(set(grids)) - n)


@dataclass(frozen=True)
class Amount:
    """How a measured amount follows from the grid: ``coefficients`` of ``names``, and the largest relative error at a recorded size."""

    names: tuple[str, ...]
    coefficients: tuple[float, ...]
    error: float
    features: tuple[Callable[[Grid], Fraction], ...]

    def at(self, grid: Grid) -> float:
        """The amount on a grid."""
        return sum(c * float(f(grid)) for c, f in zip(self.coefficients, self.features, strict=True))

    @property
    def text(self) -> str:
        """The law in words."""
        return " + ".join(f"{c:.4g}" + ("" if n == "constant" else n[1:] if n.startswith("1/") and " " not in n else f" {n}")
                          for c, n in zip(self.coefficients, self.names, strict=True)) or "0"

    @property
    def kind(self) -> str:
        """The features of the law."""
        return " + ".join(self.names) or "0"


def extents(laws: Iterable[Law]) -> dict[int, Fraction]:
    """Points of the problem along each axis, from messages that are shorter by a border: ``c (N/D - 1)`` says that there are N."""
    found: dict[int, Counter[Fraction]] = defaultdict(Counter)
    for law in laws:
        if len(law.terms) == 2 and law.terms[0][1] is CONSTANT and law.terms[0][0] < 0 and law.terms[1][1][0].startswith("1/D"):
            (axis,) = law.axes
            found[axis][law.terms[1][0] / -law.terms[0][0]] += 1
    return {axis: of.most_common(1)[0][0] for axis, of in found.items()}


def amount(points: Mapping[Grid, float], borders: Mapping[int, Fraction]) -> Amount:
    """The law of a measured amount: a constant, or a share that falls with an axis, with P, or like a block without its borders
    (``borders``: the points along an axis, `extents`), alone or with a part that is not divided; no coefficient is negative.

    Among the laws that the smaller sizes determine, the one whose largest error is least: at any recorded size, and at the largest one
    from the smaller ones; of laws that are as good, that of fewer terms. With two sizes, a constant or a share, or both if neither alone
    is within 10 %.
    """
    grids = sorted(points, key=lambda g: g.size)
    values = np.array([points[g] for g in grids])
    if not values.any():
        return Amount((), (), 0.0, ())
    shares = _features(len(grids[0].dims))[0] + _blocks(len(grids[0].dims), tuple(sorted(borders.items())))
    single = [(CONSTANT,), *((f,) for f in shares)]
    double = [(CONSTANT, f) for f in shares]
    best: tuple[float, Amount] | None = None
    for features in [*single, *(double if len(grids) > 2 else [])]:
        law = _least_squares(features, grids, values)
        before = None if law is None else _least_squares(features, grids[:-1], values[:-1])
        if law is None or before is None:
            continue
        # A law that misses the sizes it is made from may give the largest one by luck.
        error = max(law.error, abs(before.at(grids[-1]) - values[-1]) / max(values[-1], values.max() * 1e-6))
        if best is None or error < best[0] - TOLERANCE:
            best = error, law
    if len(grids) == 2 and (best is None or best[0] > 0.1):
        for features in double:
            law = _least_squares(features, grids, values)
            if law is not None:
                return law
    assert best is not None
    return best[1]


TOLERANCE = 0.005
"""Laws whose errors on the largest size differ by less are equally good."""


def _least_squares(features: Sequence[Feature], grids: Sequence[Grid], values: np.ndarray) -> Amount | None:
    weight = 1 / np.maximum(values, values.max() * 1e-6)
    matrix = np.array([[_value(f, g) for _, f in features] for g in grids])
    scaled = matrix * weight[:, None]
    found, _, rank, _ = np.linalg.lstsq(scaled, values * weight, rcond=None)
    if rank < len(features) or (found < 0).any():
        return None
    errors = np.abs(matrix @ found - values) * weight
    return Amount(tuple(n for n, _ in features), tuple(map(float, found)), float(errors.max()), tuple(f for _, f in features))


@lru_cache(maxsize=4096)
def _value(feature: Callable[[Grid], Fraction], grid: Grid) -> float:
    return float(feature(grid))


@lru_cache
def _blocks(axes: int, borders: tuple[tuple[int, Fraction], ...]) -> list[Feature]:
    """Shares like the points of a block that lacks a border along some axes."""
    out: list[Feature] = []
    for count in range(1, len(borders) + 1):
        for which in itertools.combinations(borders, count):
            lacking = dict(which)

            def share(g: Grid, lacking: dict[int, Fraction] = lacking) -> Fraction:
                parts = (Fraction(1, d) - (1 / lacking[a] if a in lacking else 0) for a, d in enumerate(g.dims))
                return math.prod(parts, start=Fraction(1))

            name = " ".join(f"(1/D{a + 1} - 1/{lacking[a]})" if a in lacking else f"1/D{a + 1}" for a in range(axes))
            out.append((name, share))
    return out
