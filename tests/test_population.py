"""Priors of a machine without measurement: the population of those with one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

from retrompi.papers.predict import predictions
from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.studies.draws import posteriors
from retrompi.studies.draws.population import Population, measured_moments, population
from retrompi.studies.draws.uncertainty import Spec, drawn_of

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


def sampled(means: np.ndarray, noise: np.ndarray, seed: int) -> np.ndarray:
    """z of a new machine by importance sampling of the model itself: rho, then all machines, weighted by what was measured."""
    rng = np.random.default_rng(seed)
    rho = rng.uniform(size=400_000)
    common = np.sqrt(rho) * rng.standard_normal(len(rho))
    others = common[:, None] + np.sqrt(1 - rho)[:, None] * rng.standard_normal((len(rho), len(means)))
    new = common + np.sqrt(1 - rho) * rng.standard_normal(len(rho))
    logs = -0.5 * ((others - means) ** 2 / noise).sum(axis=1)
    weights = np.exp(logs - logs.max())
    at = np.argsort(new)
    return np.interp(SHARES, np.cumsum(weights[at]) / weights.sum(), new[at])


def test_a_new_machine_is_drawn_as_the_model_says() -> None:
    """The oracle samples the hierarchical model: no formula in common."""
    means, variances = np.array([0.8, 1.1, 0.3]), np.array([0.2, 0.3, 0.5])
    noise = 1 / (1 / variances - 1)
    found = Population(tuple(means), tuple(variances))
    got = ndtri([found.share(u) for u in SHARES])
    assert got == pytest.approx(sampled(means * noise / variances, noise, 5), abs=0.08)


def test_machines_that_agree_narrow_it_and_one_that_says_little_does_not() -> None:
    def width(of: Population) -> float:
        return of.share(0.95) - of.share(0.05)

    alike = Population((1.0,) * 6, (0.05,) * 6)
    assert width(alike) < 0.6
    assert alike.share(0.5) > 0.75
    assert width(Population((0.0,), (0.94,))) == pytest.approx(0.9, abs=0.02)


def test_only_hosts_and_cards_are_a_population() -> None:
    files = posteriors.files(registry.model("lam"))
    told = measured_moments([posteriors.read(f) for f in files], "nic_latency")
    assert "ge-ga620.card.nic_latency" in told
    assert population("lam.library", files) is None
    mine = population("ge-ga620.card.nic_latency", files)
    other = population("gigabit.card.nic_latency", files)
    assert mine is not None
    assert other is not None
    assert len(other.means) == len(mine.means) + 1  # a machine is not its own neighbour


def test_predictions_have_it_and_other_intervals_do_not() -> None:
    asked = Resolved.of(predictions.plan("woodall-2004/gigabit-lam").question())
    alone, among = drawn_of(asked, Spec(draws=20)), drawn_of(asked, Spec(draws=20, population=True))
    prior = next(p for p in alone.priors if p.path == "gigabit.card.nic_latency")
    assert alone.population(prior) is None
    assert among.population(prior) is not None
    assert [alone.share(prior, i) for i in range(20)] != [among.share(prior, i) for i in range(20)]
    known = next(p for p in alone.priors if p.path in alone.applied.paths)
    assert [alone.share(known, i) for i in range(20)] == [among.share(known, i) for i in range(20)]
