"""The one optimiser of all calibrations: bounded least squares in the shares 0..1 of the free values' ranges, from several seeded starts.

What is fitted differs (claims of a model, measured curves, the loops of Rinf1), and with it how finely a difference is taken and how much
an outlier counts: a `OptimiserSettings` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["UNDETERMINED", "BestPoint", "OptimiserSettings", "at_edge", "identifiability", "minimise", "sensitivity"]

UNDETERMINED = 1e-2
"""A value whose whole range moves no residual by more than this many units is not determined by what is seen."""
EDGE = 1e-3
"""Shares of a range this close to its ends are its edge."""
Residuals = Callable[[Any], Any]


@dataclass(frozen=True)
class OptimiserSettings:
    """How a minimum is looked for: from the middle of the ranges and ``starts`` - 1 drawn points, ``margin`` from their ends.

    ``step`` is the difference of a derivative, ``scale`` the size of a step, both shares of a range; ``linear`` the residual beyond which
    the cost grows linearly; ``steps`` the evaluations of the residuals beside those of derivatives from each start. ``finer``: a second
    search (step, scale) from the best point. ``simplexes``: initial sizes of Nelder-Mead searches after that, of ``simplex_steps`` each,
    which cope with costs that jump.
    """

    starts: int
    steps: int
    step: float
    scale: float
    linear: float = 1.0
    margin: float = 0.1
    xtol: float = 1e-8
    ftol: float = 1e-8
    finer: tuple[float, float] | None = None
    simplexes: tuple[float, ...] = ()
    simplex_steps: int = 0


@dataclass(frozen=True)
class BestPoint:
    """The best point, as shares of the ranges, and the derivatives of the residuals there (or where the last gradient search ended)."""

    x: np.ndarray
    jacobian: np.ndarray


def minimise(residuals: Residuals, free: int, how: OptimiserSettings, seed: int) -> BestPoint:
    """The point of least cost (soft L1 of the residuals) that a search finds for ``free`` values; the same seed gives the same one."""
    from scipy.optimize import least_squares, minimize  # half a second, which whoever draws a figure does not need

    draw = np.random.default_rng(seed)
    starts = [np.full(free, 0.5), *(draw.uniform(how.margin, 1 - how.margin, free) for _ in range(how.starts - 1))]

    def descend(start: Any, step: float, scale: float) -> Any:
        return least_squares(residuals, start, bounds=(0, 1), diff_step=step, x_scale=scale, loss="soft_l1", f_scale=how.linear,
                             max_nfev=how.steps, xtol=how.xtol, ftol=how.ftol)

    best = min((descend(start, how.step, how.scale) for start in starts), key=lambda f: float(f.cost))
    if how.finer is not None:
        near = descend(np.clip(best.x, 1e-6, 1 - 1e-6), *how.finer)
        best = near if near.cost < best.cost else best

    def cost(x: Any) -> float:
        r = np.asarray(residuals(np.asarray(x))) / how.linear
        return float(np.sum(2 * (np.sqrt(1 + r * r) - 1)))

    point = np.asarray(best.x)
    for width in how.simplexes:
        polished = minimize(
            cost, point, method="Nelder-Mead", bounds=[(0.0, 1.0)] * free,
            options={"maxfev": how.simplex_steps, "xatol": 1e-6, "fatol": 1e-9, "initial_simplex": _simplex(point, width)},
        )
        if polished.fun < cost(point):
            point = np.asarray(polished.x)
    return BestPoint(point, np.asarray(best.jac))


def _simplex(x: np.ndarray, width: float) -> np.ndarray:
    """A simplex around ``x`` that stays inside 0..1."""
    corners = [np.array(x)]
    for i in range(len(x)):
        corner = np.array(x)
        corner[i] += width if corner[i] + width <= 1 else -width
        corners.append(corner)
    return np.array(corners)


def sensitivity(residuals: Residuals, x: Any, reach: float = 0.1) -> np.ndarray:
    """The change of the residuals over ``reach`` of each range either way, a whole range: where costs jump, or at the edge of a range, a
    derivative is not meaningful."""
    columns = []
    for i in range(len(x)):
        ends = [np.clip(np.asarray(x) + step * np.eye(len(x))[i], 0, 1) for step in (-reach, reach)]
        columns.append((np.asarray(residuals(ends[1])) - np.asarray(residuals(ends[0]))) / (ends[1][i] - ends[0][i]))
    return np.array(columns).T


def at_edge(x: float) -> bool:
    """Whether a share of a range is one of its ends."""
    return x < EDGE or x > 1 - EDGE


def identifiability(jacobian: Any, x: Any, i: int, unit: str, seen: str = "claim that may be seen") -> str:
    """How well value ``i`` is determined by what was ``seen``: by how many ``unit`` its whole range moves the residuals."""
    moved = float(np.linalg.norm(jacobian[:, i]))
    others = np.delete(jacobian, i, axis=1)
    alone = moved
    if others.shape[1]:
        alone = float(np.linalg.norm(jacobian[:, i] - others @ np.linalg.lstsq(others, jacobian[:, i], rcond=None)[0]))
    if moved < UNDETERMINED:
        note = f"not determined: no {seen} depends on it"
    elif alone < 0.05 * moved:
        note = "determined only together with others: a change of them can stand in for it"
    else:
        note = f"determined: its range moves the residuals by {moved:.3g} {unit}"
    return note + (" (at the edge of its range)" if at_edge(float(x[i])) else "")
