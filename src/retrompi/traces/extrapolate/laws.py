"""How a number follows from the grid: the simplest law that gives every recorded value exactly."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .grid import Grid

__all__ = ["Amount", "Law", "amount", "exact_laws"]

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


def _features(grid: Grid) -> list[list[Feature]]:
    """Features by the degree of the laws they make, the simple ones first."""
    axes = [a for a in range(len(grid.dims))]

    def inverse(*which: int) -> Feature:
        return "1/" + ("P" if len(which) == len(axes) else "(" + " ".join(f"D{a + 1}" for a in which) + ")" if len(which) > 1 else f"D{which[0] + 1}"), (
            lambda g: Fraction(1, math.prod(g.dims[a] for a in which))
        )  # fmt: skip

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
    shares, grows, logs = _features(grids[0])
    for choices in (
        [(f,) for f in shares],
        [(f,) for f in grows + logs],
        [(CONSTANT, f) for f in shares],
        [(CONSTANT, f) for f in grows],
        [(CONSTANT, f) for f in logs],
        _products(len(grids[0].dims)),
    ):
        found = [law for features in choices if (law := _solved(features, grids, values)) is not None]
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


def _solved(features: Sequence[Feature], grids: Sequence[Grid], values: Sequence[Fraction]) -> Law | None:
    """The law of these features through all values, if they determine one."""
    rows = [[f(g) for _, f in features] + [v] for g, v in zip(grids, values, strict=True)]
    n = len(features)
    rank = 0
    for column in range(n):
        pivot = next((r for r in range(rank, len(rows)) if rows[r][column]), None)
        if pivot is None:
            return None
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        rows[rank] = [x / rows[rank][column] for x in rows[rank]]
        for r in range(len(rows)):
            if r != rank and rows[r][column]:
                rows[r] = [a - rows[r][column] * b for a, b in zip(rows[r], rows[rank], strict=True)]
        rank += 1
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
        return " + ".join(f"{c:.4g}" + ("" if n == "constant" else n[1:] if n.startswith("1/") else f" {n}")
                          for c, n in zip(self.coefficients, self.names, strict=True)) or "0"  # fmt: skip

    @property
    def kind(self) -> str:
        """The features of the law."""
        return " + ".join(self.names) or "0"


def amount(points: Mapping[Grid, float]) -> Amount:
    """The law of a measured amount (noisy): a constant, a share that falls with an axis or with P, or a constant and one such share with
    coefficients of at least 0, whichever has the least relative error; of laws that are equally good, the one of fewer terms."""
    grids = list(points)
    values = np.array([points[g] for g in grids])
    if not values.any():
        return Amount((), (), 0.0, ())
    shares = _features(grids[0])[0]
    choices: list[tuple[Feature, ...]] = [(CONSTANT,), *((f,) for f in shares)]
    if len(grids) > 1:
        choices += [(CONSTANT, f) for f in shares]
    best: tuple[float, Amount] | None = None
    weight = 1 / np.maximum(values, values.max() * 1e-6)
    for features in choices:
        matrix = np.array([[float(f(g)) for _, f in features] for g in grids])
        scaled = matrix * weight[:, None]
        if np.linalg.matrix_rank(scaled) < len(features):
            continue
        found, *_ = np.linalg.lstsq(scaled, values * weight, rcond=None)
        if (found < 0).any():
            continue
        errors = np.abs(matrix @ found - values) * weight
        # A further coefficient has to pay: it explains two points of noise exactly.
        score = float(np.sqrt((errors**2).mean())) + 0.05 * (len(features) - 1)
        if best is None or score < best[0] - 1e-12:
            law = Amount(tuple(n for n, _ in features), tuple(map(float, found)), float(errors.max()), tuple(f for _, f in features))
            best = score, law
    assert best is not None
    return best[1]
