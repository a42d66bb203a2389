"""Inference on arrays: known posteriors are found, the emulator knows its error, and ranks show when something is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from retrompi.base.errors import UsageError
from retrompi.inference import emulator, likelihood, ranks, sampling
from retrompi.inference.likelihood import Array, CurveData, Likelihood, Observations, StatedInterval
from retrompi.studies.draws import uncertainty

pytest.importorskip("emcee")
pytest.importorskip("sklearn")

SIZES = (0, 64, 1024, 16384, 262144, 1048576)
DECADES = tuple(float(np.log10(1 + s)) for s in SIZES)


def runs(n: int, dims: int = 6, seed: int = 1) -> tuple[Array, Array]:
    """A design, and the logarithms of the times of a message: a latency, two rates one after the other; further dimensions do nothing."""
    u = np.random.default_rng(seed).uniform(size=(n, dims))
    latency, copy, wire = 50e-6 * 8 ** u[:, 0], 30e6 * 4 ** u[:, 1], 5e6 * 3 ** u[:, 2]
    return u, np.log(latency[:, None] + np.array(SIZES) * (1 / copy + 1 / wire)[:, None])


CURVE = Observations(curves=[CurveData(range(6), [0.0] * 6, [0.05] * 6, DECADES)])


# --- sampler -----------------------------------------------------------------------------------------------------------------------


def linear() -> tuple[Array, Array, Array, float]:
    """A linear model with normal prior and errors: its matrix, data, posterior mean, and the logarithm of its evidence."""
    rng = np.random.default_rng(3)
    a = rng.normal(size=(4, 6)) * np.exp(-np.arange(6) / 2)
    data = a @ rng.normal(size=6) + 0.1 * rng.normal(size=4)
    of_data = a @ a.T + 0.01 * np.eye(4)
    evidence = -0.5 * data @ np.linalg.solve(of_data, data) - 0.5 * np.linalg.slogdet(2 * np.pi * of_data)[1]
    return a, data, a.T @ np.linalg.solve(of_data, data), float(evidence)


def of_linear(u: Array) -> Array:
    a, data, _, _ = linear()
    away = data - ndtri(u) @ a.T
    return np.asarray(-0.5 * (away**2).sum(axis=1) / 0.01 - 4 * np.log(0.1 * np.sqrt(2 * np.pi)))


def test_a_known_posterior_and_its_evidence_are_found() -> None:
    a, _, mean, evidence = linear()
    deviation = np.sqrt(np.diag(np.linalg.inv(np.eye(6) + a.T @ a / 0.01)))
    found = sampling.sample(of_linear, 6, seed=1)
    z = ndtri(found.u)
    assert np.abs((z.mean(axis=0) - mean) / deviation).max() < 0.2
    assert np.abs(z.std(axis=0) / deviation - 1).max() < 0.15
    assert found.r_hat < 1.03
    assert found.ess > 800
    assert abs(found.log_evidence - evidence) < 5 * found.log_evidence_error + 0.05


def test_the_same_seed_gives_the_same_draws() -> None:
    one, same, other = (sampling.sample(of_linear, 6, seed=seed, draws=50, evidence=False) for seed in (1, 1, 2))
    assert np.array_equal(one.u, same.u)
    assert not np.array_equal(one.u, other.u)


def test_without_data_the_prior_comes_back() -> None:
    found = sampling.sample(lambda u: np.zeros(len(u)), 3, seed=1)
    shares = np.sort(found.u, axis=0)
    away = np.abs(shares - (np.arange(len(shares))[:, None] + 0.5) / len(shares)).max()
    assert away < 0.06  # Kolmogorov's distance of 1000 draws
    assert abs(found.log_evidence) < 0.05


def test_a_likelihood_of_zero_everywhere_is_refused() -> None:
    with pytest.raises(UsageError, match="zero everywhere"):
        sampling.sample(lambda u: np.full(len(u), -np.inf), 2, seed=1)


def test_r_hat_sees_chains_at_other_places_and_of_other_widths() -> None:
    chains = np.random.default_rng(1).normal(size=(4, 1000, 2))
    assert sampling.r_hat(chains) < 1.01
    assert sampling.r_hat(chains + np.array([0, 0, 0, 1.0])[:, None, None]) > 1.05
    assert sampling.r_hat(chains * np.array([1, 1, 1, 2.0])[:, None, None]) > 1.05


# --- likelihood --------------------------------------------------------------------------------------------------------------------


def test_a_statement_is_the_probability_of_its_interval() -> None:
    said = Observations([StatedInterval(0, 3.35, 3.45)])
    y = np.log([[3.4], [3.0], [30.0]])
    told = likelihood.log_likelihood(y, np.zeros(1), np.full(3, 0.1), said)
    spread = np.hypot(0.1, likelihood.LEAST)
    wanted = ndtr((np.log(3.45) - y[:, 0]) / spread) - ndtr((np.log(3.35) - y[:, 0]) / spread)
    assert np.exp(told[:2]) == pytest.approx(wanted[:2])
    assert -300 < told[2] < -200  # far away it is small and precise, not zero


def test_a_limit_judges_one_side() -> None:
    least = Observations([StatedInterval(0, 10.0, np.inf)])
    told = np.exp(likelihood.log_likelihood(np.log([[20.0], [10.0], [5.0]]), np.zeros(1), np.full(3, 0.1), least))
    assert told == pytest.approx([1.0, 0.5, 0.0], abs=1e-6)


def test_readings_of_one_number_are_alternatives() -> None:
    both = Observations([StatedInterval(0, 80.0, 100.0), StatedInterval(0, 850.0, 950.0)])
    told = np.exp(likelihood.log_likelihood(np.log([[90.0], [900.0], [280.0]]), np.zeros(1), np.full(3, 0.01), both))
    assert told == pytest.approx([0.5, 0.5, 0.0], abs=1e-3)


def test_a_difference_has_a_discrepancy_in_proportion() -> None:
    said = Observations([StatedInterval(0, -2.0, 2.0, log=False)])
    told = np.exp(likelihood.log_likelihood(np.array([[0.0], [-4.0]]), np.zeros(1), np.full(2, 0.5), said))
    assert told[0] == pytest.approx(1.0)
    assert told[1] == pytest.approx(ndtr(3.0) - ndtr(1.0), rel=1e-3)


def test_points_of_a_curve_have_the_density_of_their_covariance() -> None:
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(1)
    times, y, emulated = rng.normal(size=6), rng.normal(size=(1, 6)), np.diag(rng.uniform(0.01, 0.1, size=6))
    data = Observations(curves=[replace(CURVE.curves[0], log_time=times)])
    whole = emulated + 0.05**2 * np.eye(6) + 0.2**2 * likelihood.correlation(DECADES)
    wanted = multivariate_normal(y[0], whole).logpdf(times)
    assert likelihood.log_likelihood(y, emulated, np.array([0.2]), data)[0] == pytest.approx(wanted)


def test_a_whole_curve_has_a_part_without_correlation_too() -> None:
    from scipy.stats import multivariate_normal

    n = likelihood.ROUGH_POINTS
    rng = np.random.default_rng(2)
    sizes, times, emulated = np.linspace(0, 7, n), rng.normal(size=n), np.diag(rng.uniform(0.01, 0.1, size=n))
    data = Observations(curves=[CurveData(range(n), list(times), [0.03] * n, list(sizes)), replace(CURVE.curves[0], group=1)], groups=2)
    assert (data.rough, data.deviations) == ((0,), 3)
    sigma = np.array([[0.2, 0.1, 0.05], [0.01, 0.1, 0.3], [0.1, 0.1, 0.0]])
    y = rng.normal(size=(3, n))
    whole = [emulated + 0.03**2 * np.eye(n) + s**2 * likelihood.correlation(sizes) + t**2 * np.eye(n) for s, _, t in sigma]
    wanted = [multivariate_normal(row, c).logpdf(times) for row, c in zip(y, whole, strict=True)]
    assert likelihood.Likelihood(data, emulated).terms(y, sigma)[:, 0] == pytest.approx(wanted)
    y[1, 3] = np.nan
    assert likelihood.Likelihood(data, emulated)(y, sigma)[1] == -np.inf


def test_a_run_that_did_not_complete_is_impossible() -> None:
    assert likelihood.log_likelihood(np.full((1, 6), np.nan), np.zeros(6), np.array([0.1]), CURVE)[0] == -np.inf


def test_the_discrepancy_has_a_half_normal_prior() -> None:
    sigma = likelihood.sigma_of(np.random.default_rng(1).uniform(size=100_000))
    assert np.sqrt((sigma**2).mean()) == pytest.approx(uncertainty.DISCREPANCY_SCALE, rel=0.02)
    assert sigma.min() >= 0


# --- emulator ----------------------------------------------------------------------------------------------------------------------


def test_the_stated_error_covers_the_actual_error() -> None:
    """At points that it has not seen, of a smooth function and of one with steps like those of a clock."""
    u, y = runs(240)
    tick = 0.2
    y = np.column_stack([y, np.floor(y[:, -1] / tick) * tick])
    made = emulator.fit(u[:160], y[:160])
    away = made.predict(u[160:]) - y[160:]
    actual = np.sqrt((away**2).mean(axis=0))
    assert (actual < 1.5 * made.error).all()
    assert actual[:6].max() < 0.02
    assert 0.04 < made.error[6] < 0.15  # a step of 0.2 has a deviation of 0.2 / sqrt(12)
    assert (np.abs(away) < 2 * made.error).mean() > 0.9


def test_the_emulator_sees_what_matters_and_nothing_else() -> None:
    u, y = runs(160, dims=30)
    made = emulator.fit(u, y)
    assert made.active[0] == (0,)
    assert set(made.active[-1]) == {1, 2}
    assert made.parameters_of([0, 5]) == [0, 1, 2]
    moved = u.copy()
    moved[:, 3:] = 0.5
    assert np.array_equal(made.predict(u), made.predict(moved))


def test_runs_without_a_number_are_left_out() -> None:
    u, y = runs(160)
    y[::7, 2] = np.nan
    made = emulator.fit(u, y)
    assert np.isfinite(made.predict(u)).all()
    assert made.error[2] < 0.05
    y[20:, 2] = np.nan
    with pytest.raises(ValueError, match="observable 2 has fewer than 30"):
        emulator.fit(u, y)


def test_a_number_that_nothing_changes_is_exact() -> None:
    u, y = runs(60)
    made = emulator.fit(u, np.column_stack([y, np.full(60, 3.0)]))
    assert made.predict(u)[:, 6] == pytest.approx(3.0)
    assert made.error[6] == 0
    assert made.active[6] == ()


# --- ranks -------------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def known() -> ranks.Ranks:
    return ranks.check(*runs(260), CURVE, truths=100)


def test_ranks_are_uniform_on_a_known_problem(known: ranks.Ranks) -> None:
    assert known.seen == (0, 1, 2)
    every = known.judge_columns(known.seen)
    assert 0.85 <= every.coverage <= 0.95
    assert every.p > 0.005
    assert 0.8 <= known.judge_columns([known.dims]).coverage <= 0.98  # of the discrepancy, of 100 truths


def test_the_same_seed_gives_the_same_ranks() -> None:
    u, y = runs(100)
    one, same = (ranks.check(u, y, CURVE, truths=5) for _ in range(2))
    assert np.array_equal(one.ranks, same.ranks)


def test_a_parameter_that_the_data_cannot_see_returns_its_prior(known: ranks.Ranks) -> None:
    unseen = [3, 4, 5]
    assert known.left[unseen] == pytest.approx(1.0, abs=0.05)
    assert known.left[0] < 0.1
    assert 0.85 <= known.judge_columns(unseen).coverage <= 0.95


@pytest.mark.parametrize(("share", "add"), [(0.1, 0.0), (1.0, 0.4)], ids=["too narrow", "too wide"])
def test_ranks_show_a_wrong_likelihood(monkeypatch: pytest.MonkeyPatch, share: float, add: float) -> None:
    """Posteriors that take the discrepancy for another than it is do not pass."""
    class Wrong(Likelihood):
        def terms(self, y: Array, sigma: Array, which: Array | None = None) -> Array:
            return super().terms(y, share * sigma + add, which)

    monkeypatch.setattr(ranks, "Likelihood", Wrong)
    found = ranks.check(*runs(220), CURVE, truths=60).judge_columns((0, 1, 2))
    assert found.p < 0.05
    assert found.coverage < 0.85 if share < 1 else found.coverage > 0.95


def test_censored_data_have_the_width_of_what_was_published() -> None:
    """Numbers rounded to the published digits, one limit, a difference: ranks are as uniform as with curves."""
    u, y = runs(260)
    y = np.column_stack([y, np.exp(y[:, 5]) - 0.1])
    said = Observations([
        StatedInterval(0, 95e-6, 105e-6), StatedInterval(5, 0.0, 0.12), StatedInterval(2, 150e-6, 160e-6),
        StatedInterval(6, -0.05, 0.05, log=False),
    ])
    data, replicas = ranks.published_like(y[:5], np.full((5, 1), 0.1), said, np.random.default_rng(1))
    assert len(data.statements) == 4
    width = replicas.limits[:, :, 1] - replicas.limits[:, :, 0]
    assert width[:, 0] == pytest.approx(np.log(105 / 95))
    assert np.isinf(width[:, 1]).all()
    assert width[:, 3] == pytest.approx(0.1)
    found = ranks.check(u[:220], y[:220], said, truths=60)
    assert 0.85 <= found.judge_columns(found.seen).coverage <= 0.95


def test_a_truth_without_numbers_is_counted() -> None:
    u, y = runs(260)
    y[-10:] = np.nan
    found = ranks.check(u, y, CURVE, truths=15)
    assert found.skipped == 10
    assert len(found.ranks) == 5


def test_coverage_and_histogram_of_ranks() -> None:
    told = ranks.judge(np.arange(100), 99)
    assert told.coverage == 0.90
    assert told.histogram == (10,) * 10
    assert told.p == pytest.approx(1.0)
    assert ranks.judge(np.zeros(50), 99).coverage == 0
