"""Value of information: how much less a number would vary if a parameter, or a measurement, were known.

    found = information(number, known)      # arrays over the draws of an ensemble
    found.items[0].share                    # expected reduction of the number's variance, 0..1

The expected reduction is Var(E[y|x]) / Var(y): for a number y, the value of partial perfect information under squared error (Raiffa and
Schlaifer 1961), and for independent parameters the first-order Sobol index. E[y|x] is estimated from the draws by regression (Strong,
Oakley and Brennan 2014) on Legendre polynomials, their degree chosen by leave-one-out, so that no further run is needed and parameters
that a posterior correlates are right: what x tells about others counts. A share is the reduction of the squared error of leave-one-out
predictions; its error is that of the mean of the draws' differences, as in comparisons of models by cross-validation (Vehtari, Gelman and
Gabry 2017). Regression of a degree that the draws support misses effects that oscillate: a share is rather too small than too large.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from retrompi.studies.search.reading import NoNumber

__all__ = ["FEWEST", "Information", "KnownQuantity", "KnownStep", "information"]

Array = Sequence[float] | NDArray[np.float64]
FEWEST = 20
"""Draws below which nothing is estimated."""
DEGREE = 4
"""The highest degree that is tried; at most one for ten draws."""
DOUBT = 0.05
"""Probability of calling any of the items that tell nothing resolved, and of one wrong order."""


@dataclass(frozen=True)
class KnownQuantity:
    """The value of knowing one quantity: ``share`` of the variance that would vanish, with its standard ``error``.

    ``resolved``: the draws show that it is not zero. ``ranks`` are the first and the last place that it can have among the resolved
    ones: those before it and those after it by more than the error of the difference. (0, 0) if it is not resolved.
    """

    name: str
    share: float
    error: float
    resolved: bool
    ranks: tuple[int, int] = (0, 0)

    def row(self) -> dict[str, Any]:
        """One flat row."""
        return {"name": self.name, "share": self.share, "error": self.error, "resolved": self.resolved,
                "rank_low": self.ranks[0] or None, "rank_high": self.ranks[1] or None}


@dataclass(frozen=True)
class KnownStep:
    """One more quantity that would be known, after those of the steps before it: ``share`` of the variance that all of them together
    would remove, with its standard ``error``; their effects are added, without interactions."""

    name: str
    share: float
    error: float


@dataclass(frozen=True)
class Information:
    """The ``items``, the largest share first; ``draws`` that were used; ``below``: what each unresolved item's share is below.

    ``steps``: what to learn first, then next, each the one that adds most, until the draws show no further gain.
    """

    items: tuple[KnownQuantity, ...]
    steps: tuple[KnownStep, ...]
    draws: int
    below: float

    @property
    def resolved(self) -> tuple[KnownQuantity, ...]:
        """The items that the draws show to matter."""
        return tuple(i for i in self.items if i.resolved)


def information(number: Array, known: Mapping[str, Any]) -> Information:
    """The value of knowing each of ``known`` for ``number``: arrays with a value for each draw, in any unit, finite.

    Raises NoNumber for fewer than `FEWEST` draws, and if the number is the same in all of them.
    """
    y = np.asarray(number, dtype=float)
    if len(y) < FEWEST:
        raise NoNumber(f"{len(y)} draws are too few to say what would make the number more certain; it takes {FEWEST}")
    if np.ptp(y) <= 1e-9 * np.max(np.abs(y)):
        raise NoNumber(f"the number is the same in all {len(y)} draws: nothing would make it more certain")
    start = _left_out(y, np.ones((len(y), 1))) ** 2
    bases = {name: _basis(np.asarray(x, dtype=float), len(y)) for name, x in known.items()}
    losses = {name: _loss(y, np.ones((len(y), 1)), basis, start)[0] for name, basis in bases.items()}
    sure = NormalDist().inv_cdf(1 - DOUBT / max(len(known), 1))
    found = {name: _gain(start, loss, start) for name, loss in losses.items()}
    resolved = [name for name, (share, error) in found.items() if share > sure * error]
    below = max((share + sure * error for name, (share, error) in found.items() if name not in resolved), default=0.0)
    before = {name: [_differs(losses[other], losses[name]) for other in resolved if other != name] for name in resolved}
    items = []
    for name, (share, error) in sorted(found.items(), key=lambda f: -f[1][0]):
        ranks = (1 + before[name].count(1), len(resolved) - before[name].count(-1)) if name in before else (0, 0)
        items.append(KnownQuantity(name, min(max(share, 0.0), 1.0), error, name in before, ranks))
    return Information(tuple(items), tuple(_steps(y, bases, start, sure)), len(y), min(below, 1.0))


def _steps(y: Any, bases: Mapping[str, Any], start: Any, sure: float) -> Iterator[KnownStep]:
    chosen, now, rest = np.ones((len(y), 1)), start, dict(bases)
    while rest and chosen.shape[1] < len(y) // 5:
        tried = {name: _loss(y, chosen, basis, now) for name, basis in rest.items()}
        name = min(tried, key=lambda n: float(tried[n][0].mean()))
        loss, basis = tried[name]
        share, error = _gain(now, loss, start)
        if share <= sure * error:
            return
        now, chosen = loss, np.hstack([chosen, basis])
        del rest[name]
        share, error = _gain(start, now, start)
        yield KnownStep(name, share, error)


def _gain(one: Any, other: Any, start: Any) -> tuple[float, float]:
    """How much less ``other`` loses than ``one``, as a share of ``start``, and its standard error (of a ratio, by the delta method)."""
    scale = float(start.mean())
    share = float((one - other).mean()) / scale
    return share, float(np.std(one - other - share * start, ddof=1) / np.sqrt(len(start))) / scale


def _left_out(y: Any, basis: Any) -> Any:
    """The errors of predicting each of ``y`` [n] by least squares on ``basis`` [n, k] from all others."""
    q, _ = np.linalg.qr(basis)
    leverage = np.sum(q * q, axis=1)
    return (y - q @ (q.T @ y)) / np.maximum(1 - leverage, 1e-9)


def _basis(x: Any, draws: int) -> Any:
    """Legendre polynomials [n, k] of ``x`` scaled to -1..1, without the constant; no column if ``x`` is constant."""
    spread = float(np.ptp(x))
    if spread <= 1e-12 * float(np.max(np.abs(x))):
        return np.empty((len(x), 0))
    most = max(1, min(DEGREE, draws // 10, len(np.unique(x)) - 1))
    return legendre.legvander(2 * (x - x.min()) / spread - 1, most)[:, 1:]


def _loss(y: Any, chosen: Any, basis: Any, otherwise: Any) -> tuple[Any, Any]:
    """Squared leave-one-out errors [n] with the best number of columns of ``basis`` beside ``chosen``, and these columns.

    ``otherwise``, and no column, if there is none.
    """
    tried = [(_left_out(y, np.hstack([chosen, basis[:, :k]])) ** 2, basis[:, :k]) for k in range(1, basis.shape[1] + 1)]
    return min(tried, key=lambda t: float(t[0].mean())) if tried else (otherwise, basis)


def _differs(one: Any, other: Any) -> int:
    """1 if ``one`` loses less than ``other`` beyond the error of the difference, -1 if more, 0 if the draws cannot tell."""
    by = other - one
    error = float(np.std(by, ddof=1)) / np.sqrt(len(by))
    sure = NormalDist().inv_cdf(1 - DOUBT) * error
    return 1 if by.mean() > sure else -1 if by.mean() < -sure else 0
