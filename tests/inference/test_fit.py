from __future__ import annotations

import itertools
import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import gibbs_sweep, table_of, wins_table
from scipy.special import betaln, expit, logsumexp
from scipy.stats import beta, chisquare

from polarbear_plugins import UNRANKED, Posterior, RankingTable, compare, fit, hookimpl
from polarbear_plugins.errors import InferenceWarning, InvalidInputError, UnknownNameError
from polarbear_plugins.inference import fitting
from polarbear_plugins.inference.fitting import scaled_time
from polarbear_plugins.inference.native import independent
from polarbear_plugins.inference.task import Draws, Task
from polarbear_plugins.plackett_luce.likelihood import helmert
from polarbear_plugins.plackett_luce.subsets import statistics_of
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.posterior.posterior import Diagnostics
from polarbear_plugins.priors import BUILT_IN_PRIORS, BSpline, Dirichlet

PRIORS = list(BUILT_IN_PRIORS)
TEMPORAL = ["gp", "sparse-gp", "hsgp", "random-walk", "bspline"]
NAMES = [f"a{i}" for i in range(100)]


def random_table(instances: int, timepoints: int, n: int, seed: int = 0) -> RankingTable:
    """Rankings of algorithms of which the first ones are somewhat better."""
    noise = np.random.default_rng([seed, instances, timepoints, n]).gumbel(size=(instances, timepoints, n))
    return table_of(np.linspace(0, 1, n) - noise)


def fit_checked(table: RankingTable, prior: str = "dirichlet", **options: Any) -> Posterior:
    """Posterior; a poor one must come with exactly one warning, a good one with none."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        posterior = fit(table, prior, **options)
    assert [warning.category for warning in told] == ([] if posterior.diagnostics.good else [InferenceWarning])
    assert np.isfinite(posterior.log_ratings).all()
    np.testing.assert_allclose(posterior.ratings.sum(axis=-1), 1.0)
    return posterior


def standard_error(one: Posterior, other: Posterior | None = None) -> np.ndarray:
    """Monte-Carlo error of a mean rating (or of the difference of two), as if each draw were worth half."""
    variance = one.ratings.var(axis=0) / (one.draws / 2)
    return np.sqrt(variance + (0 if other is None else other.ratings.var(axis=0) / (other.draws / 2)))


# Known answers


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("wins", [0, 1, 4, 9, 12])
def test_of_two_algorithms_the_rating_has_a_beta_posterior(wins: int, alpha: float) -> None:
    posterior = fit(wins_table([wins], 12), alpha=alpha, seed=1)
    exact = beta(alpha + wins, alpha + 12 - wins)
    ratings = posterior.ratings[:, 0, 0]
    assert posterior.diagnostics.good
    assert ratings.mean() == pytest.approx(exact.mean(), abs=4 * exact.std() / math.sqrt(2000))
    assert ratings.std() == pytest.approx(exact.std(), rel=0.15)
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert np.mean(ratings < exact.ppf(level)) == pytest.approx(level, abs=0.035)


@pytest.mark.parametrize("alpha", [1.0, 2.0])
@pytest.mark.parametrize(
    "rankings",
    [
        pytest.param([[1, 2, 3]], id="one ranking"),
        pytest.param([[1, 2, 2]], id="a tie"),
        pytest.param([[2, 1, 0], [1, 3, 2], [0, 1, 2]], id="partial rankings"),
    ],
)
def test_of_three_algorithms_the_posterior_is_that_of_numerical_integration(
    rankings: list[list[int]], alpha: float
) -> None:
    axis = np.arange(-20, 20, 0.08)
    x = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2) @ helmert(3).T
    log_ratings = x - logsumexp(x, axis=1, keepdims=True)
    log_density = alpha * log_ratings.sum(axis=1)  # Dirichlet times the Jacobian of the softmax
    for ranking in rankings:
        present = [i for i in range(3) if ranking[i]]
        orders = [
            order
            for order in itertools.permutations(present)
            if all(ranking[a] <= ranking[b] for a, b in itertools.pairwise(order))
        ]
        for order in orders:
            for place in range(len(order)):
                left = logsumexp(x[:, list(order[place:])], axis=1)
                log_density += (x[:, order[place]] - left) / len(orders)
    weights = np.exp(log_density - logsumexp(log_density))
    mean = weights @ np.exp(log_ratings)

    values = np.where(np.array(rankings) > 0, rankings, np.nan)[:, None, :]
    posterior = fit(table_of(values), alpha=alpha, seed=1)
    np.testing.assert_allclose(posterior.ratings.mean(axis=0)[0], mean, atol=0.02)
    deviation = np.sqrt(weights @ (np.exp(log_ratings) - mean) ** 2)
    np.testing.assert_allclose(posterior.ratings.std(axis=0)[0], deviation, rtol=0.1)
    p_better = compare(posterior).p_better[0]
    for i, j in itertools.permutations(range(3), 2):
        assert p_better[i, j] == pytest.approx(weights[x[:, i] > x[:, j]].sum(), abs=0.04)


def test_of_an_unranked_and_a_ranked_algorithm_the_ranked_one_has_won() -> None:
    posterior = fit(table_of([[[1.0, UNRANKED]]] * 3 + [[[UNRANKED, 1.0]]] * 9), seed=1)
    np.testing.assert_array_equal(posterior.ratings, fit(wins_table([3], 12), seed=1).ratings)


def test_of_the_best_alone_the_rating_has_a_dirichlet_posterior() -> None:
    """A choice from all, and nothing more: the ratings of the others have the proportions of the prior."""
    counts = np.array([6, 3, 1, 0])
    best = np.repeat(np.arange(4), counts)
    values = np.where(np.arange(4) == best[:, None], 1.0, UNRANKED)[:, None, :]
    posterior = fit(table_of(values), draws=20_000, seed=1)
    for i, count in enumerate(counts):
        exact = beta(1 + count, 3 + 10 - count)
        assert posterior.ratings[:, 0, i].mean() == pytest.approx(exact.mean(), abs=4 * exact.std() / 100)
        for level in (0.05, 0.25, 0.5, 0.75, 0.95):
            assert np.mean(posterior.ratings[:, 0, i] < exact.ppf(level)) == pytest.approx(level, abs=0.015)


def test_unranked_algorithms_stay_unknown_where_tied_ones_become_equal() -> None:
    unranked, tied = (
        fit(table_of([[[0.0, last, last]]] * 20), draws=20_000, seed=1).log_ratings[:, 0] for last in (UNRANKED, 1.0)
    )
    # Under the prior, and without evidence after it, the share of one of the two is uniform and its log-odds logistic.
    assert (unranked[:, 1] - unranked[:, 2]).std() == pytest.approx(math.pi / math.sqrt(3), rel=0.05)
    assert (tied[:, 1] - tied[:, 2]).std() < 0.6


@pytest.mark.parametrize("prior", TEMPORAL)
def test_unranked_algorithms_are_no_obstacle_to_any_prior(prior: str) -> None:
    noise = np.random.default_rng(5).gumbel(size=(25, 6, 4))
    values = np.linspace(0, 1, 4) - noise
    values[values >= np.sort(values, axis=-1)[..., 2:3]] = UNRANKED  # the first two are known
    posterior = fit_checked(table_of(values), prior, seed=1)
    assert posterior.diagnostics.good
    mean = posterior.ratings.mean(axis=(0, 1))
    assert mean[0] > mean[3]


def test_one_ranking_of_three_gives_a_half_a_third_and_a_sixth() -> None:
    posterior = fit(table_of([[[0.0, 1.0, 2.0]]]), draws=20_000, seed=2)
    np.testing.assert_allclose(posterior.ratings.mean(axis=0)[0], [1 / 2, 1 / 3, 1 / 6], atol=0.008)


@pytest.mark.parametrize(("wins", "rate"), [([5], 0.1), ([7], 1.0), ([3, 5, 7, 9], 0.1)])
def test_of_two_algorithms_the_hierarchical_posterior_is_that_of_numerical_integration(
    wins: list[int], rate: float
) -> None:
    log_kappa = np.linspace(-8, 9, 4000)
    kappa = np.exp(log_kappa)
    log_density = log_kappa - rate * kappa
    for count in wins:
        log_density += betaln(kappa / 2 + count, kappa / 2 + 10 - count) - betaln(kappa / 2, kappa / 2)
    weights = np.exp(log_density - logsumexp(log_density))
    expected = [weights @ ((kappa / 2 + count) / (kappa + 10)) for count in wins]

    posterior = fit(wins_table(wins, 10), "hierarchical-dirichlet", rate=rate, seed=1)
    np.testing.assert_allclose(posterior.ratings.mean(axis=0)[:, 0], expected, atol=0.012)
    found, mean = posterior.hyperparameters["log_kappa"], weights @ log_kappa
    assert found.mean() == pytest.approx(mean, abs=0.12)
    assert found.std() == pytest.approx(math.sqrt(weights @ (log_kappa - mean) ** 2), rel=0.12)


@pytest.mark.parametrize("wins", [6, 10, 12])
def test_of_two_algorithms_the_posterior_under_a_scale_is_that_of_numerical_integration(wins: int) -> None:
    # At a single timepoint a B-spline is one coefficient times the scale.
    log_scale, u = np.meshgrid(np.linspace(-5, 5, 401), np.linspace(-6, 6, 401), indexing="ij")
    gap = math.sqrt(2) * np.exp(log_scale) * u
    log_density = -0.5 * (log_scale**2 + u**2) - wins * np.logaddexp(0, -gap) - (12 - wins) * np.logaddexp(0, gap)
    weights = np.exp(log_density - logsumexp(log_density))
    rating = expit(gap)

    posterior = fit(wins_table([wins], 12), "bspline", seed=1)
    found = {"rating": posterior.ratings[:, 0, 0], "log_scale": posterior.hyperparameters["log_scale"]}
    for name, exact in (("rating", rating), ("log_scale", log_scale)):
        mean = np.sum(weights * exact)
        deviation = math.sqrt(np.sum(weights * (exact - mean) ** 2))
        assert found[name].mean() == pytest.approx(mean, abs=0.1 * deviation)
        assert found[name].std() == pytest.approx(deviation, rel=0.1)


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.3])
def test_a_small_alpha_gives_the_exact_posterior_or_a_warning(alpha: float) -> None:
    posterior = fit_checked(table_of([[[0.0, 1.0, 2.0]]]), alpha=alpha, seed=1)
    exact = beta(alpha + 1, 2 * alpha)
    error = abs(posterior.ratings[:, 0, 0].mean() - exact.mean()) / (exact.std() / math.sqrt(posterior.draws))
    assert error < 4 or not posterior.diagnostics.good


REFERENCES: list[tuple[str, str, dict[str, Any]]] = [
    ("dirichlet-n7-p100-t20", "dirichlet", {"alpha": 1}),
    ("bspline-n5-p30-t30", "bspline", {"basis": 15}),
    ("gp-matern32-n5-p30-t30", "gp", {}),
    ("random-walk-n5-p30-t100", "random-walk", {"first": 1.5, "scale": (-2 + 0.5 * math.log(99), 1)}),
]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("name", "prior", "options"), REFERENCES, ids=[prior for _, prior, _ in REFERENCES])
def test_the_posterior_is_that_of_long_markov_chains(
    shared: Path, name: str, prior: str, options: dict[str, Any], seed: int
) -> None:
    with np.load(shared / "posteriors" / f"{name}.npz") as reference:
        expected = {key: reference[key].astype(float) for key in ("p_better", "p_anytime", "mean", "sd")}
        places = np.argsort(reference["orders"], axis=-1).transpose(1, 0, 2)
    posterior = fit(table_of(places), prior, draws=4000, seed=seed, dependence="none", time_scale="linear", **options)
    assert posterior.diagnostics.good
    relations = compare(posterior)
    off = ~np.eye(places.shape[2], dtype=bool)
    assert np.abs(relations.p_better - expected["p_better"])[:, off].max() <= 0.035
    assert np.abs(posterior.ratings.mean(axis=0) - expected["mean"]).max() <= 0.01
    np.testing.assert_allclose(posterior.ratings.std(axis=0), expected["sd"], rtol=0.12)
    if posterior.joint:
        assert np.abs(relations.p_anytime - expected["p_anytime"])[off].max() <= 0.035


@pytest.mark.parametrize("seed", [1, 2])
def test_the_dirichlet_posterior_is_that_of_gibbs_sampling(seed: int) -> None:
    table = random_table(10, 1, 4, seed)
    statistics = statistics_of(table.ranks, table.weights).with_dirichlet(1.0)
    rng, draws = np.random.default_rng(seed), np.zeros((10_000, 4))
    for _ in range(25):
        draws = gibbs_sweep(statistics, draws, rng)
    relations = compare(fit(table, draws=10_000, seed=seed))
    for i, j in itertools.permutations(range(4), 2):
        assert np.mean(draws[:, i] > draws[:, j]) == pytest.approx(relations.p_better[0, i, j], abs=0.035)


# Simulation-based calibration: the true value has every place among the draws equally often.


def place_of(truth: float, draws: np.ndarray) -> int:
    return int(np.count_nonzero(draws[:: len(draws) // 99][:99] < truth))


@pytest.mark.slow
def test_a_truth_drawn_from_the_dirichlet_prior_is_anywhere_among_the_draws() -> None:
    rng = np.random.default_rng(1)
    places = []
    for simulation in range(200):
        truth = rng.dirichlet(np.ones(3))
        table = table_of(-(np.log(truth) + rng.gumbel(size=(5, 1, 3))))
        places.append(place_of(truth[0], fit_checked(table, draws=990, seed=simulation).ratings[:, 0, 0]))
    counts = np.bincount(np.array(places) // 10, minlength=10)
    assert chisquare(counts).pvalue > 0.001


@pytest.mark.slow
@pytest.mark.long
def test_a_truth_drawn_from_the_bspline_prior_is_anywhere_among_the_draws() -> None:
    rng, prior, timepoints = np.random.default_rng(2), BSpline(), 6
    places: list[list[int]] = []
    for simulation in range(60):
        factor = prior.factor(rng.normal(size=1), np.linspace(0, 1, timepoints))
        utilities = factor @ rng.normal(size=(factor.shape[1], 2)) @ helmert(3).T
        table = table_of(-(utilities + rng.gumbel(size=(8, timepoints, 3))))
        posterior = fit_checked(table, "bspline", draws=495, seed=simulation, dependence="none", time_scale="linear")
        gaps = posterior.log_ratings[..., 0] - posterior.log_ratings[..., 1]
        truth = utilities[:, 0] - utilities[:, 1]
        places.append([place_of(truth[t], gaps[:, t]) for t in (0, 3, 5)])
    for column in np.array(places).T:
        assert chisquare(np.bincount(column // 20, minlength=5)).pvalue > 0.001


# Difficult data

RNG = np.random.default_rng(3)
ANYHOW = RNG.normal(size=(6, 3, 3))
PARTIAL = ANYHOW.copy()
PARTIAL[[0, 1, 2, 3], :, [0, 1, 2, 0]] = np.nan
DIFFICULT = {
    "one instance": ANYHOW[:1],
    "one never wins": ANYHOW + np.array([0.0, 0.0, 100.0]),
    "one always wins": ANYHOW - np.array([100.0, 0.0, 0.0]),
    "all rankings identical": np.tile([0.0, 1.0, 2.0], (6, 3, 1)),
    "all tied": np.zeros((6, 3, 3)),
    "partial rankings": PARTIAL,
    "one timepoint": ANYHOW[:, :1],
    "two algorithms": ANYHOW[..., :2],
}


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("case", DIFFICULT)
def test_difficult_data_give_ratings_that_make_sense(prior: str, case: str) -> None:
    values = DIFFICULT[case][:, :2] if prior == "hierarchical-dirichlet" else DIFFICULT[case]
    posterior = fit_checked(table_of(values), prior, draws=1000, seed=1)
    assert posterior.ratings.shape == (1000, *values.shape[1:])
    means = posterior.ratings.mean(axis=0)
    if case in ("one never wins", "all rankings identical"):
        assert (means.argmin(axis=1) == 2).all()
    if case in ("one always wins", "all rankings identical"):
        assert (means.argmax(axis=1) == 0).all()
    if case == "all tied":
        np.testing.assert_allclose(means, 1 / 3, atol=0.06)


def test_a_hundred_algorithms_can_be_rated() -> None:
    posterior = fit_checked(random_table(20, 1, 100), draws=1000, seed=1)
    assert posterior.diagnostics.good
    means = posterior.ratings.mean(axis=0)[0]
    assert np.corrcoef(means, np.linspace(0, 1, 100))[0, 1] < -0.3


@pytest.mark.parametrize("prior", ["dirichlet", "random-walk"])
def test_big_ties_among_twenty_algorithms_can_be_rated(prior: str) -> None:
    values = random_table(8, 2, 20).values.copy()
    values[:4, :, :10] = -50.0  # the first half ties at the top
    values[4:6, :, 8:] = 50.0  # most tie at the end
    posterior = fit_checked(table_of(values), prior, draws=1000, seed=1)
    means = posterior.ratings.mean(axis=0)
    assert (means[:, :8].min(axis=1) > means[:, 10:].max(axis=1)).all()


@pytest.mark.parametrize("prior", ["dirichlet", "random-walk"])
def test_many_algorithms_that_always_tie_are_equal(prior: str) -> None:
    posterior = fit_checked(table_of(np.zeros((3, 1, 14))), prior, draws=1000, seed=1)
    np.testing.assert_allclose(posterior.ratings.mean(axis=0), 1 / 14, atol=0.02)


@pytest.mark.parametrize(
    ("instances", "n", "prior"),
    [
        (10, 4, "dirichlet"),
        (10, 4, "random-walk"),
        (100, 7, "random-walk"),
        (10, 14, "dirichlet"),
        (10, 14, "random-walk"),
    ],
)
def test_timepoints_without_observations_are_known_from_the_prior(instances: int, n: int, prior: str) -> None:
    values = random_table(instances, 3, n).values.copy()
    values[:, :2] = np.nan
    posterior = fit_checked(table_of(values), prior, draws=1000, seed=1)
    spread = posterior.log_ratings.std(axis=0).mean(axis=1)
    assert spread[0] > spread[2]


# Laws


@pytest.mark.parametrize("prior", ["dirichlet", "random-walk", "bspline", "gp"])
def test_relabelling_the_algorithms_permutes_the_ratings(prior: str) -> None:
    table, order = random_table(12, 3, 4), [2, 0, 3, 1]
    relabelled = table_of(table.values[..., order])
    one, other = (fit(data, prior, seed=seed) for data, seed in ((table, 1), (relabelled, 2)))
    expected = one.ratings.mean(axis=0)[:, order]
    error = standard_error(one)[:, order] + standard_error(other)
    assert (np.abs(other.ratings.mean(axis=0) - expected) < 4 * error).all()


@pytest.mark.parametrize("prior", ["dirichlet", "hierarchical-dirichlet", "random-walk", "bspline", "gp"])
def test_the_weight_two_is_the_data_twice(prior: str) -> None:
    values = random_table(6, 2, 3).values
    twice = fit(table_of(np.concatenate([values, values])), prior, draws=500, seed=1)
    heavier = fit(table_of(values, weights=np.full(6, 2.0)), prior, draws=500, seed=1)
    np.testing.assert_allclose(heavier.ratings, twice.ratings, atol=1e-6)


def test_an_algorithm_without_data_leaves_the_comparison_of_the_others_alone() -> None:
    values = random_table(7, 1, 2, seed=4).values
    with_third = np.concatenate([values, np.full((7, 1, 1), np.nan)], axis=2)
    one, other = (compare(fit(table_of(data), draws=10_000, seed=1)) for data in (values, with_third))
    assert 0.1 < one.p_better[0, 0, 1] < 0.9
    assert other.p_better[0, 0, 1] == pytest.approx(one.p_better[0, 0, 1], abs=0.03)
    assert other.p_equivalent[0, 0, 1] == pytest.approx(one.p_equivalent[0, 0, 1], abs=0.03)


@pytest.mark.parametrize("prior", PRIORS)
def test_another_win_never_lowers_the_rating(prior: str) -> None:
    means = [
        fit_checked(wins_table([wins], 6), prior, draws=1000, seed=1).ratings[:, 0, 0].mean() for wins in (0, 2, 3, 6)
    ]
    assert (np.diff(means) > 0).all()


@pytest.mark.parametrize("prior", ["dirichlet", "random-walk"])
def test_a_better_place_on_one_instance_never_lowers_the_rating(prior: str) -> None:
    values = np.tile([0.0, 1.0, 2.0], (5, 2, 1)) + np.random.default_rng(5).normal(size=(5, 2, 3))
    means = []
    for value in (10.0, np.sort(values[0], axis=1)[:, :2].mean(axis=1), -10.0):  # last, second, first
        values[0, :, 2] = value
        means.append(fit(table_of(values), prior, seed=1, dependence="none").ratings.mean(axis=0)[:, 2])
    assert (np.diff(means, axis=0) > 0).all()


@pytest.mark.parametrize("prior", PRIORS)
def test_the_same_seed_gives_the_same_draws_and_another_seed_others(prior: str) -> None:
    table = random_table(8, 2, 3)
    one, same, other = (fit_checked(table, prior, draws=500, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.log_ratings, same.log_ratings)
    for name, draws in one.hyperparameters.items():
        np.testing.assert_array_equal(draws, same.hyperparameters[name])
    assert not np.isclose(one.log_ratings, other.log_ratings).all(axis=(1, 2)).any()


def test_without_a_seed_every_call_differs() -> None:
    table = random_table(5, 1, 3)
    assert not np.array_equal(fit(table, draws=100).log_ratings, fit(table, draws=100).log_ratings)


@pytest.mark.parametrize("prior", ["dirichlet", "hierarchical-dirichlet", "gp"])
def test_the_global_random_numbers_are_neither_used_nor_changed(prior: str) -> None:
    table, draws = random_table(5, 2, 3), []
    for state in (1, 2):
        np.random.seed(state)
        before = np.random.get_state()
        draws.append(fit_checked(table, prior, draws=500, seed=7).log_ratings)
        after = np.random.get_state()
        assert before[0] == after[0]
        assert before[2:] == after[2:]
        np.testing.assert_array_equal(before[1], after[1])
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize("prior", ["dirichlet", "hierarchical-dirichlet", "random-walk", "gp"])
def test_a_warm_start_gives_the_same_posterior(prior: str) -> None:
    earlier, table = random_table(9, 3, 3), random_table(10, 3, 3)
    cold = fit(table, prior, seed=1)
    warm = fit(table, prior, seed=1, start=fit(earlier, prior, seed=2, draws=500))
    error = standard_error(warm, cold)
    assert (np.abs(warm.ratings.mean(axis=0) - cold.ratings.mean(axis=0)) < 4 * error).all()
    np.testing.assert_allclose(warm.ratings.std(axis=0), cold.ratings.std(axis=0), rtol=0.15)


def test_a_start_that_does_not_fit_is_left_alone() -> None:
    table = random_table(6, 3, 3)
    cold = fit(table, "random-walk", draws=500, seed=1)
    for start in (
        fit(table, draws=100, seed=1),  # another prior
        fit(random_table(6, 3, 4), "random-walk", draws=500, seed=1),  # other algorithms
        fit(random_table(6, 2, 3), "random-walk", draws=500, seed=1),  # other timepoints
    ):
        warm = fit(table, "random-walk", draws=500, seed=1, start=start)
        np.testing.assert_array_equal(warm.log_ratings, cold.log_ratings)


def test_a_start_with_other_options_of_the_prior_does_no_harm() -> None:
    table = random_table(6, 6, 3)
    start = fit(table, "bspline", draws=500, seed=1, basis=6)
    warm, cold = (fit(table, "bspline", seed=1, basis=4, start=given) for given in (start, None))
    error = standard_error(warm, cold)
    assert (np.abs(warm.ratings.mean(axis=0) - cold.ratings.mean(axis=0)) < 4 * error).all()


def test_a_fit_does_not_change_the_table() -> None:
    table = random_table(5, 2, 3)
    values, ranks, weights = table.values.copy(), table.ranks.copy(), table.weights.copy()
    fit(table, "random-walk", draws=200, seed=1)
    np.testing.assert_array_equal(table.values, values)
    np.testing.assert_array_equal(table.ranks, ranks)
    np.testing.assert_array_equal(table.weights, weights)


@pytest.mark.parametrize("prior", PRIORS)
def test_a_posterior_says_what_it_was_made_from(prior: str) -> None:
    table = random_table(5, 2, 3)
    posterior = fit_checked(table, prior, draws=500, seed=1)
    assert (posterior.algorithms, posterior.prior, posterior.draws) == (table.algorithms, prior, 500)
    np.testing.assert_array_equal(posterior.timepoints, table.timepoints)
    assert posterior.joint == (prior in TEMPORAL)
    assert posterior.diagnostics.engine == "native"
    assert posterior.diagnostics.route
    for draws in posterior.hyperparameters.values():
        assert draws.shape == (500,)
    names = {"dirichlet": set(), "hierarchical-dirichlet": {"log_kappa"}}
    names |= {name: {"log_scale"} for name in ("random-walk", "bspline")}
    names |= {name: {"log_amplitude", "log_lengthscale"} for name in ("gp", "sparse-gp", "hsgp")}
    assert set(posterior.hyperparameters) == names[prior]


# Tempering

TEMPERED: dict[str, Any] = {"engine_options": {"temper": True}, "dependence": "none"}


def assert_moments(draws: np.ndarray, mean: float, deviation: float) -> None:
    assert draws.mean() == pytest.approx(mean, abs=0.12 * deviation)
    assert draws.std() == pytest.approx(deviation, rel=0.1)


@pytest.mark.parametrize("prior", ["random-walk", "bspline", "gp"])
def test_tempering_gives_the_posterior_of_importance_sampling(prior: str) -> None:
    table = random_table(12, 3, 3)
    tempered = fit_checked(table, prior, seed=1, **TEMPERED)
    plain = fit_checked(table, prior, seed=1, dependence="none")
    assert plain.diagnostics.moves == 0
    assert tempered.diagnostics.moves > 0
    assert tempered.diagnostics.good
    assert tempered.diagnostics.acceptance is not None
    assert tempered.diagnostics.acceptance > 0.6
    error = standard_error(tempered, plain)
    assert (np.abs(tempered.ratings.mean(axis=0) - plain.ratings.mean(axis=0)) < 4 * error).all()
    np.testing.assert_allclose(tempered.ratings.std(axis=0), plain.ratings.std(axis=0), rtol=0.1)
    for name, draws in plain.hyperparameters.items():
        assert_moments(tempered.hyperparameters[name], float(draws.mean()), float(draws.std()))


@pytest.mark.parametrize("wins", [(6,), (12,), (12, 12), (0, 12)])
@pytest.mark.parametrize("prior", ["random-walk", "bspline", pytest.param("gp", marks=pytest.mark.slow)])
def test_of_two_algorithms_the_tempered_posterior_is_that_of_numerical_integration(
    prior: str, wins: tuple[int, ...]
) -> None:
    """At one or two timepoints: coefficients on a grid for each of the hyperparameters on a grid."""
    model: Any = BUILT_IN_PRIORS[prior]()
    time = np.linspace(0, 1, len(wins)) if len(wins) > 1 else np.zeros(1)
    axes = [np.linspace(centre - 5, centre + 5, 61 if len(model.start) == 1 else 31) for centre in model.start]
    phis = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    axis = np.linspace(-6, 6, 81)
    coefficients = np.stack(np.meshgrid(*[axis] * time.size, indexing="ij"), axis=-1).reshape(-1, time.size)
    log_normal = -0.5 * np.sum(coefficients**2, axis=1)
    won = np.array(wins)
    logs, better = np.empty(len(phis)), np.empty((len(phis), time.size))
    for k, phi in enumerate(phis):
        factor = model.factor(phi, time)
        root = np.linalg.cholesky(factor @ factor.T + 1e-12 * np.eye(time.size))
        gap = math.sqrt(2) * coefficients @ root.T
        density = log_normal - (won * np.logaddexp(0, -gap) + (12 - won) * np.logaddexp(0, gap)).sum(axis=1)
        logs[k] = model.log_hyperprior(phi) + logsumexp(density)
        better[k] = np.exp(density - logsumexp(density)) @ expit(gap)
    weights = np.exp(logs - logsumexp(logs))

    posterior = fit_checked(wins_table(wins, 12), prior, seed=1, **TEMPERED)
    assert posterior.diagnostics.good
    assert posterior.diagnostics.moves > 0
    np.testing.assert_allclose(posterior.ratings.mean(axis=0)[:, 0], weights @ better, atol=0.01)
    for i, name in enumerate(model.hyperparameters):
        mean = float(weights @ phis[:, i])
        deviation = math.sqrt(float(weights @ (phis[:, i] - mean) ** 2))
        assert_moments(posterior.hyperparameters[name], mean, deviation)


def test_the_same_seed_gives_the_same_tempered_draws() -> None:
    table = table_of(np.tile([0.0, 1.0, 2.0], (8, 4, 1)))
    one, same, other = (fit_checked(table, "bspline", draws=1000, seed=seed) for seed in (1, 1, 2))
    assert one.diagnostics.moves > 0
    np.testing.assert_array_equal(one.log_ratings, same.log_ratings)
    np.testing.assert_array_equal(one.hyperparameters["log_scale"], same.hyperparameters["log_scale"])
    assert not np.array_equal(one.log_ratings, other.log_ratings)


@pytest.mark.parametrize("prior", ["dirichlet", pytest.param("hierarchical-dirichlet", marks=pytest.mark.slow)])
def test_swept_draws_do_not_depend_on_the_number_of_threads(prior: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(np.tile([0.0, 1.0, 2.0], (5, 18, 1)))  # two parts
    options = {"alpha": 0.05} if prior == "dirichlet" else {}
    monkeypatch.setattr(independent, "_WORTH_THREADS", 0)
    draws = []
    for cores in (1, 2):
        monkeypatch.setattr(independent, "available_cores", lambda cores=cores: cores)
        posterior = fit_checked(table, prior, draws=500, seed=1, **options)
        assert "Gibbs sweeps" in posterior.diagnostics.route
        draws.append(posterior.log_ratings)
    np.testing.assert_array_equal(*draws)


# Time


def test_time_runs_from_zero_to_one_on_the_scale_on_which_it_is_spaced_evenly() -> None:
    np.testing.assert_allclose(scaled_time(np.array([1.0, 10.0, 100.0])), [0, 0.5, 1])
    np.testing.assert_allclose(scaled_time(np.array([10.0, 20.0, 30.0])), [0, 0.5, 1])
    np.testing.assert_allclose(scaled_time(np.array([0.0, 10.0, 100.0])), [0, 0.1, 1])
    np.testing.assert_allclose(scaled_time(np.array([1.0, 10.0, 100.0]), "linear"), [0, 9 / 99, 1])
    np.testing.assert_allclose(scaled_time(np.array([10.0, 20.0, 40.0]), "log"), [0, 0.5, 1])
    np.testing.assert_allclose(scaled_time(np.array([7.0])), [0])


def test_the_log_scale_needs_timepoints_above_zero() -> None:
    with pytest.raises(InvalidInputError, match='time_scale="log" needs timepoints above 0'):
        scaled_time(np.array([0.0, 1.0]), "log")


# What users bring


class Constant:
    """Ratings that do not change over time, without any hyperparameter."""

    name = "constant"
    hyperparameters: tuple[str, ...] = ()
    start = np.zeros(0)

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def factor(self, _phi: np.ndarray, time: np.ndarray, _xp: Any = np, /) -> np.ndarray:
        return np.full((time.size, 1), self.scale)

    def log_hyperprior(self, _phi: np.ndarray, _xp: Any = np, /) -> float:
        return 0.0


class Sloped:
    """A straight line with a slope of unknown size."""

    name = "sloped"
    hyperparameters = ("log_slope",)
    start = np.zeros(1)

    def factor(self, phi: np.ndarray, time: np.ndarray, xp: Any = np, /) -> np.ndarray:
        return np.stack([np.ones_like(time), xp.exp(phi[0]) * time], axis=1)

    def log_hyperprior(self, phi: np.ndarray, _xp: Any = np, /) -> float:
        return -0.5 * float(phi[0]) ** 2


def uniform(task: Task, *, good: bool = True) -> Draws:
    """Engine that looks at nothing."""
    shape = task.draws, task.statistics.timepoints, task.statistics.algorithms
    problems = () if good else ("it looked at nothing",)
    return Draws(
        utilities=np.zeros(shape), diagnostics=Diagnostics(engine="?", route="-", good=good, problems=problems)
    )


class Plugin:
    @hookimpl
    def polarbear_priors(self) -> dict[str, Any]:
        """constant: ratings that do not change."""
        return {"constant": Constant, "loose": lambda **options: Constant(**options)}

    @hookimpl
    def polarbear_engines(self) -> dict[str, Any]:
        """uniform: looks at nothing."""
        return {"uniform": uniform}


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> Plugins:
        plugins = Plugins()
        plugins.register(Plugin(), "mine")
        return plugins

    monkeypatch.setattr(fitting, "installed_plugins", load)


def test_a_prior_of_ones_own_can_be_used() -> None:
    posterior = fit_checked(random_table(10, 4, 3), Sloped(), seed=1)  # type: ignore[arg-type]
    assert (posterior.prior, posterior.joint, posterior.diagnostics.good) == ("sloped", True, True)
    assert list(posterior.hyperparameters) == ["log_slope"]
    gaps = posterior.log_ratings - posterior.log_ratings.mean(axis=-1, keepdims=True)
    np.testing.assert_allclose(np.diff(gaps, n=2, axis=1), 0, atol=1e-9)


def test_a_prior_without_hyperparameters_pools_all_timepoints_into_one() -> None:
    table = random_table(10, 4, 3)
    pooled = table_of(table.values.reshape(40, 1, 3))
    one = fit_checked(table, Constant(), seed=1, dependence="none")  # type: ignore[arg-type]
    other = fit_checked(pooled, Constant(), seed=2)  # type: ignore[arg-type]
    np.testing.assert_allclose(one.ratings, one.ratings[:, :1].repeat(4, axis=1))
    error = standard_error(one)[:1] + standard_error(other)
    assert (np.abs(one.ratings.mean(axis=0)[:1] - other.ratings.mean(axis=0)) < 4 * error).all()


def test_a_prior_object_is_used_as_it_is() -> None:
    table = random_table(5, 1, 3)
    one, other = fit(table, Dirichlet(alpha=3.0), draws=500, seed=1), fit(table, alpha=3.0, draws=500, seed=1)
    np.testing.assert_array_equal(one.log_ratings, other.log_ratings)
    assert not np.allclose(one.log_ratings, fit(table, draws=500, seed=1).log_ratings)


@pytest.mark.usefixtures("plugin")
def test_the_priors_of_plugins_are_found_by_name_and_take_options() -> None:
    table = random_table(5, 2, 3)
    one = fit_checked(table, "constant", draws=500, seed=1, scale=0.5)
    other = fit_checked(table, Constant(0.5), draws=500, seed=1)  # type: ignore[arg-type]
    np.testing.assert_array_equal(one.log_ratings, other.log_ratings)
    with pytest.raises(InvalidInputError, match=r"prior 'constant' has no option 'width'\. It takes scale"):
        fit(table, "constant", width=2)


@pytest.mark.usefixtures("plugin")
def test_the_maker_of_a_prior_may_take_any_options() -> None:
    assert fit_checked(random_table(5, 2, 3), "loose", draws=500, seed=1, scale=0.5).prior == "constant"


@pytest.mark.usefixtures("plugin")
def test_the_engines_of_plugins_are_found_by_name_and_take_options() -> None:
    table = random_table(5, 2, 3)
    posterior = fit(table, engine="uniform", draws=100)
    assert posterior.diagnostics.engine == "uniform"
    np.testing.assert_allclose(posterior.ratings, 1 / 3)
    with pytest.warns(InferenceWarning, match="by engine 'uniform' is not good enough.*: it looked at nothing"):
        fit(table, engine="uniform", draws=100, engine_options={"good": False})


@pytest.mark.usefixtures("plugin")
def test_an_unknown_name_is_answered_with_those_of_plugins_too() -> None:
    with pytest.raises(UnknownNameError, match=r"no prior 'constnt'.*bspline, constant, dirichlet"):
        fit(random_table(5, 2, 3), "constnt")
    with pytest.raises(UnknownNameError, match=r"no engine 'unifrm'.*native.*uniform"):
        fit(random_table(5, 2, 3), engine="unifrm")


def test_a_function_can_be_the_engine() -> None:
    posterior = fit(random_table(5, 2, 3), engine=uniform, draws=150)
    assert (posterior.diagnostics.engine, posterior.draws) == ("uniform", 150)


# Errors


def test_an_unknown_prior_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="There is no prior 'dirichelt'") as problem:
        fit(random_table(3, 1, 2), "dirichelt")
    assert all(name in str(problem.value) for name in PRIORS)


def test_an_unknown_engine_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"There is no engine 'stan'.*native, nuts"):
        fit(random_table(3, 1, 2), engine="stan")


def test_an_unknown_option_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match=r"prior 'dirichlet' has no option 'alhpa'\. It takes alpha"):
        fit(random_table(3, 1, 2), alhpa=1)
    with pytest.raises(
        InvalidInputError, match=r"'gp' has no option 'inducing'\. It takes kernel, amplitude, lengthscale"
    ):
        fit(random_table(3, 1, 2), "gp", inducing=3)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"draws": 99}, "draws must be a whole number of at least 100, got 99"),
        ({"draws": 1000.0}, "draws must be a whole number of at least 100"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"seed": "7"}, "seed must be a whole number of at least 0"),
        ({"dependence": "always"}, 'dependence: expected "auto" or "none", got \'always\''),
        ({"time_scale": "sqrt"}, 'time_scale: expected "auto", "linear" or "log", got \'sqrt\''),
        ({"alpha": 0}, "alpha: must be positive"),
        ({"prior": Dirichlet(), "alpha": 2}, "A prior object has its options already, got alpha"),
        ({"prior": 7}, "prior: expected a name or a prior, got 7"),
        ({"engine": 7}, "engine: expected a name or a function, got 7"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        fit(random_table(3, 1, 2), **arguments)


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="nothing can be compared"):
        fit(RankingTable(["a", "b"], [1, 2]))


def test_a_prior_that_the_native_engine_cannot_handle_is_refused() -> None:
    class Named:
        name = "only a name"

    with pytest.raises(InvalidInputError, match="The native engine does not support the prior"):
        fit(random_table(3, 1, 2), Named())


def test_gibbs_sweeps_of_nearly_vanishing_ratings_stay_numbers() -> None:
    statistics = statistics_of(table_of([[[0.0, 1.0, 2.0, 3.0]]] * 3).ranks, np.ones(3)).with_dirichlet(1e-3)
    rng, draws = np.random.default_rng(1), np.tile([0.0, -400.0, -700.0, -900.0], (200, 1))
    for _ in range(5):
        draws = gibbs_sweep(statistics, draws, rng)
        assert np.isfinite(draws).all()


def test_timepoints_take_no_more_threads_than_cores_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Recorded(ThreadPoolExecutor):
        def __init__(self, threads: int) -> None:
            asked.append(threads)
            super().__init__(threads)

    table = random_table(4, 100, 3)
    alone = fit(table, draws=100, seed=1)
    monkeypatch.setattr(independent, "ThreadPoolExecutor", Recorded)
    monkeypatch.setattr(independent, "_WORTH_THREADS", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 64)  # of the machine, as seen from within a container
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 3}, raising=False)
    np.testing.assert_array_equal(fit(table, draws=100, seed=1).log_ratings, alone.log_ratings)
    assert asked == [2]


def test_an_absent_algorithm_and_a_small_alpha_leave_the_others_alone() -> None:
    table = table_of([[[0.0, 1.0, 2.0, np.nan]]] * 3)
    posterior = fit(table, alpha=0.01, seed=0)
    assert posterior.diagnostics.good
    assert compare(posterior).p_better[0, 0, 1] > 0.95
    assert compare(posterior).p_better[0, 0, 3] == pytest.approx(0.7, abs=0.3)  # nothing was observed of the last one


def test_a_tail_that_cannot_be_swept_and_is_too_long_to_temper_is_not_good() -> None:
    ranks = np.tile(np.concatenate([[1], np.full(12, 2), [14]]), (6, 1, 1)).astype(float)  # a tie of twelve
    with pytest.warns(InferenceWarning, match="too long a tail"):
        posterior = fit(table_of(ranks), alpha=0.05, seed=0)
    assert not posterior.diagnostics.good
