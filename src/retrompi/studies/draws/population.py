"""Priors of a machine without measurement, from the machines that have one: a hierarchical prior over the library's hosts and cards.

    population("card.nic_latency")        # None, or a `Population`: the share at which a new card's value is

The rule was decided before it was used (docs/uncertainty/decided.md). z is where a value lies in its own sourced range, on the scale on
which the range's prior is standard normal. The values of one field on different machines are exchangeable with a correlation rho, uniform
in 0..1; what a posterior says about a machine is a normal likelihood of its z. Without a measured machine z stays standard normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from retrompi.base.paths import stamp
from retrompi.spec import registry
from retrompi.spec.machine import machines
from retrompi.studies.draws import posteriors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["Population", "measured_moments", "population"]

_RHO = (np.arange(200) + 0.5) / 200
"""Values of the correlation, equally credible before anything is known."""
_Z = np.linspace(-6.0, 6.0, 2401)
LEAST, MOST = 1e-4, 0.95
"""Least variance of a measured z; one above ``MOST`` says nothing."""


@dataclass(frozen=True)
class Population:
    """The distribution of a field over measured machines: of each the mean and the variance of its z, under a standard normal prior."""

    means: tuple[float, ...]
    variances: tuple[float, ...]

    @cached_property
    def _distribution(self) -> NDArray[np.float64]:
        """The distribution function of a new machine's z at `_Z`: a mixture over rho of normal distributions."""
        from scipy.special import ndtr  # a third of a second, which a question without a posterior need not wait for

        posterior = np.array(self.variances)
        noise = 1 / (1 / posterior - 1)
        seen = np.array(self.means) * noise / posterior
        weights = np.zeros_like(_RHO)
        at = np.zeros((len(_RHO), len(_Z)))
        for i, rho in enumerate(_RHO):
            covariance = rho * np.ones((len(seen), len(seen))) + np.diag(1 - rho + noise)
            gain = np.linalg.solve(covariance, np.full(len(seen), rho))
            weights[i] = -0.5 * (seen @ np.linalg.solve(covariance, seen) + np.linalg.slogdet(covariance)[1])
            at[i] = ndtr((_Z - gain @ seen) / np.sqrt(1 - rho * gain.sum()))
        weights = np.exp(weights - weights.max())
        return np.asarray(weights @ at / weights.sum())

    def share(self, u: float) -> float:
        """The share in 0..1 of its own range at which a new machine's value is, at the quantile ``u`` of its distribution."""
        from scipy.special import ndtr

        return float(ndtr(np.interp(u, self._distribution, _Z)))


def measured_moments(found: Sequence[posteriors.PosteriorFile], field: str) -> dict[str, tuple[float, float]]:
    """Path -> (mean, variance) of z of every parameter of this field in these posteriors; the one whose fit was for it comes first."""
    from scipy.special import ndtri

    told: dict[str, tuple[float, float]] = {}
    for of in sorted(found, key=lambda p: field not in {path.rpartition(".")[2] for path in p.fitted}):
        for path, (low, high, log, _) in of.priors.items():
            if path.rpartition(".")[2] != field or path in told or not low < high or not _of_a_machine(path):
                continue
            values = of.column(path)
            shares = np.log(values / low) / np.log(high / low) if log else (values - low) / (high - low)
            z = ndtri(np.clip(shares, 1e-4, 1 - 1e-4))
            told[path] = float(z.mean()), float(max(z.var(), LEAST))
    return told


def _of_a_machine(path: str) -> bool:
    owner = path.partition(".")[0]
    return owner in {*machines.host_names(), *machines.network_names(), *registry.platform_names()}


def population(path: str, files: Sequence[Path]) -> Population | None:
    """The population of a path's field, of the other machines in these posteriors; None where none of them is measured, and for what is no
    machine's."""
    return _population(path, tuple((f, stamp(f)) for f in files)) if _of_a_machine(path) else None


@lru_cache(maxsize=1024)
def _population(path: str, files: tuple[tuple[Path, Any], ...]) -> Population | None:
    told = measured_moments([posteriors.read(f) for f, _ in files], path.rpartition(".")[2])
    kept = [(mean, variance) for other, (mean, variance) in told.items() if other != path and variance < MOST]
    return Population(tuple(m for m, _ in kept), tuple(v for _, v in kept)) if kept else None
