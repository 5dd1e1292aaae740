from __future__ import annotations

import numpy as np
import pytest
from builders import table_of
from scipy.stats import multivariate_normal

from polarbear_plugins import RankingTable, fit
from polarbear_plugins.inference.dependence import EvidenceShift, balanced_weights, score_correlation
from polarbear_plugins.plackett_luce.likelihood import Likelihood, helmert
from polarbear_plugins.plackett_luce.subsets import statistics_of
from polarbear_plugins.priors import BSpline, GaussianProcess, RandomWalk

ALGORITHMS = ["a", "b", "c", "d"]
STRENGTHS = np.array([0.8, 0.2, -0.3, -0.7])


def independent_runs(instances: int = 40, timepoints: int = 12, seed: int = 0) -> RankingTable:
    """Rankings that have nothing to do with those of other timepoints."""
    noise = np.random.default_rng(seed).gumbel(size=(instances, timepoints, 4))
    return table_of(-(STRENGTHS + noise))


def repeated_runs(instances: int = 40, timepoints: int = 12, seed: int = 0) -> RankingTable:
    """The ranking of an instance is the same at all timepoints."""
    noise = np.random.default_rng(seed).gumbel(size=(instances, 1, 4))
    return table_of(np.repeat(-(STRENGTHS + noise), timepoints, axis=1))


def correlation_of(table: RankingTable) -> np.ndarray:
    x = np.tile(STRENGTHS, (table.timepoints.size, 1))
    basis = helmert(4)
    information = basis.T @ Likelihood(statistics_of(table.ranks, table.weights)).information(x) @ basis
    return score_correlation(table, table.ranks, x, information)


@pytest.mark.parametrize("prior", [RandomWalk(), BSpline(), GaussianProcess()], ids=lambda prior: prior.name)
@pytest.mark.parametrize("told", [0.1, 10.0, 1000.0])
def test_rankings_that_do_not_correlate_count_in_full(
    prior: RandomWalk | BSpline | GaussianProcess, told: float
) -> None:
    factor = prior.factor(prior.start, np.linspace(0, 1, 10))
    np.testing.assert_allclose(balanced_weights(factor, np.full((10, 3), told), np.eye(10)), 1.0, atol=1e-6)


@pytest.mark.parametrize("timepoints", [2, 5, 20])
@pytest.mark.parametrize("told", [1.0, 50.0])
def test_under_a_constant_prior_what_is_said_t_times_counts_once(timepoints: int, told: float) -> None:
    weights = balanced_weights(
        np.ones((timepoints, 1)), np.full((timepoints, 2), told), np.ones((timepoints, timepoints))
    )
    np.testing.assert_allclose(weights, 1 / timepoints, rtol=0.02)


def test_a_prior_that_does_not_pool_over_time_needs_no_correction() -> None:
    weights = balanced_weights(2 * np.eye(6), np.full((6, 2), 10.0), np.ones((6, 6)))
    np.testing.assert_allclose(weights, 1.0, atol=1e-6)


def test_the_more_the_rankings_correlate_the_less_they_count() -> None:
    factor, told = RandomWalk().factor(np.array([0.0]), np.linspace(0, 1, 10)), np.full((10, 2), 10.0)
    apart = np.abs(np.arange(10)[:, None] - np.arange(10))
    means = [balanced_weights(factor, told, rho**apart).mean() for rho in (0.01, 0.3, 0.6, 0.9, 0.99)]
    assert (np.diff(means) < 0).all()
    assert 0.1 / 1.1 < means[-1] < means[0] <= 1


def test_the_scores_of_repeated_rankings_correlate_perfectly_and_those_of_independent_ones_do_not() -> None:
    np.testing.assert_allclose(correlation_of(repeated_runs()), 1.0, atol=1e-9)
    independent = correlation_of(independent_runs(instances=200))
    np.testing.assert_allclose(np.diag(independent), 1.0)
    np.testing.assert_allclose(independent, independent.T)
    assert np.abs(independent - np.eye(12)).max() < 0.2


def test_the_shift_is_the_difference_of_the_evidence_with_correlated_and_with_weighted_observations() -> None:
    rng = np.random.default_rng(3)
    observed, scale, factor = rng.normal(size=(5, 2)), rng.uniform(1, 4, size=(5, 2)), rng.normal(size=(5, 3))
    correlated, weighted = 0.7 ** np.abs(np.subtract.outer(range(5), range(5))), np.diag(rng.uniform(1, 9, size=5))
    expected = 0.0
    for direction in range(2):
        signal = np.outer(scale[:, direction], scale[:, direction]) * (factor @ factor.T)
        for sign, errors in ((1, correlated), (-1, weighted)):
            expected += sign * multivariate_normal(cov=signal + errors).logpdf(observed[:, direction])
    assert EvidenceShift(observed, scale, correlated, weighted)(factor) == pytest.approx(expected, rel=1e-12)
    assert EvidenceShift(observed, scale, weighted, weighted)(factor) == 0.0


@pytest.mark.parametrize("prior", ["random-walk", "bspline", "gp"])
def test_independent_runs_count_almost_in_full(prior: str) -> None:
    medians = [
        np.median(fit(independent_runs(seed=seed), prior, draws=1000, seed=1).diagnostics.dependence)
        for seed in range(3)
    ]
    assert np.median(medians) > 0.8


@pytest.mark.parametrize("prior", ["random-walk", "bspline", "gp"])
def test_repeated_rankings_count_much_less_and_give_wider_intervals(prior: str) -> None:
    table = repeated_runs()
    honest, naive = (fit(table, prior, draws=1000, seed=1, dependence=way) for way in ("auto", "none"))
    weights = honest.diagnostics.dependence
    assert weights is not None
    assert len(weights) == 12
    assert np.median(weights) < 0.6  # a spline pools few timepoints, and fewest at the ends
    spread, naive_spread = honest.ratings.std(axis=0), naive.ratings.std(axis=0)
    assert np.median(spread / naive_spread) > 1.2


@pytest.mark.parametrize("prior", ["random-walk", "bspline", "gp", "hsgp"])
def test_repeated_rankings_say_as_much_as_one_timepoint_alone(prior: str) -> None:
    table = repeated_runs()
    many, alone = (fit(data, prior, draws=2000, seed=1) for data in (table, table_of(table.values[:, :1])))
    np.testing.assert_allclose(many.ratings.mean(axis=0)[6], alone.ratings.mean(axis=0)[0], atol=0.06)
    ratio = many.ratings.std(axis=0)[6] / alone.ratings.std(axis=0)[0]
    assert (ratio > 0.8).all()
    assert (ratio < 1.5).all()


@pytest.mark.parametrize("prior", ["random-walk", "gp"])
def test_a_single_instance_that_repeats_itself_is_one_ranking(prior: str) -> None:
    table = table_of(repeated_runs().values[:1])
    many, alone = (fit(data, prior, draws=2000, seed=1) for data in (table, table_of(table.values[:, :1])))
    np.testing.assert_allclose(many.ratings.mean(axis=0)[6], alone.ratings.mean(axis=0)[0], atol=0.12)


def test_several_rows_of_an_instance_are_taken_together() -> None:
    once = repeated_runs(instances=20)
    twice = RankingTable.from_values(
        np.concatenate([once.values, once.values]),
        algorithms=once.algorithms,
        timepoints=once.timepoints,
        instances=[*range(20), *range(20)],
    )
    one, other = (fit(table, "random-walk", draws=200, seed=1).diagnostics.dependence for table in (once, twice))
    assert one == pytest.approx(other, rel=1e-6)


@pytest.mark.parametrize("prior", ["dirichlet", "hierarchical-dirichlet"])
def test_priors_that_do_not_pool_over_time_are_not_corrected(prior: str) -> None:
    assert fit(repeated_runs(timepoints=2), prior, draws=200, seed=1).diagnostics.dependence is None


def test_without_correction_there_are_no_weights() -> None:
    table = repeated_runs(timepoints=3)
    assert fit(table, "random-walk", draws=200, seed=1, dependence="none").diagnostics.dependence is None
    assert fit(table, "random-walk", draws=200, seed=1).diagnostics.dependence is not None


def test_one_timepoint_needs_no_correction() -> None:
    table = repeated_runs(timepoints=1)
    one, other = (fit(table, "random-walk", draws=200, seed=1, dependence=way) for way in ("auto", "none"))
    assert one.diagnostics.dependence is None
    np.testing.assert_array_equal(one.log_ratings, other.log_ratings)
