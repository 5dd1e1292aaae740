from __future__ import annotations

import math

import numpy as np
import pytest
from builders import table_of, wins_table
from scipy.special import betaln, digamma, logsumexp

from polarbear_plugins import Posterior, fit
from polarbear_plugins.errors import InferenceWarning
from polarbear_plugins.inference.native import hierarchical
from polarbear_plugins.inference.native.independent import Timepoint
from polarbear_plugins.plackett_luce.likelihood import Likelihood
from polarbear_plugins.plackett_luce.subsets import Statistics, statistics_of

RATE = 0.1
LOG_KAPPA = np.linspace(-16, 8, 12_001)


def log_evidence(kappa: np.ndarray, n: int, instances: int) -> np.ndarray:
    """Of identical rankings at a timepoint: the shares of the choices are independent Beta variables.

    Of each place the winner is one against ``left - 1`` others.
    """
    alpha = kappa / n
    return sum(
        betaln(alpha + instances, (left - 1) * alpha) - betaln(alpha, (left - 1) * alpha) for left in range(n, 1, -1)
    )


def exact_moments(log_density: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation of log kappa, whose density is that of the exponential hyperprior times this."""
    log_density = log_density + LOG_KAPPA - RATE * np.exp(LOG_KAPPA)
    weights = np.exp(log_density - logsumexp(log_density))
    mean = float(weights @ LOG_KAPPA)
    return mean, math.sqrt(weights @ (LOG_KAPPA - mean) ** 2)


def assert_log_kappa(posterior: Posterior, exact: tuple[float, float]) -> None:
    mean, deviation = exact
    found = posterior.hyperparameters["log_kappa"]
    assert posterior.diagnostics.good
    assert found.mean() == pytest.approx(mean, abs=0.06 * deviation)
    assert found.std() == pytest.approx(deviation, rel=0.06)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("n", "timepoints", "instances"), [(2, 3, 10), (2, 1, 10), (3, 1, 8), (3, 3, 8), (4, 3, 8), (6, 4, 20)]
)
def test_of_identical_rankings_the_posterior_of_kappa_is_exact(
    n: int, timepoints: int, instances: int, seed: int
) -> None:
    posterior = fit(
        table_of(np.tile(np.arange(float(n)), (instances, timepoints, 1))),
        "hierarchical-dirichlet",
        seed=seed,
        rate=RATE,
    )
    assert_log_kappa(posterior, exact_moments(timepoints * log_evidence(np.exp(LOG_KAPPA), n, instances)))


@pytest.mark.parametrize("wins", [[0, 10, 10], [0, 5, 10], [10, 10, 1]])
def test_of_two_algorithms_that_lead_in_turn_the_posterior_of_kappa_is_exact(wins: list[int]) -> None:
    half = np.exp(LOG_KAPPA) / 2
    log_density = sum(betaln(half + won, half + 10 - won) - betaln(half, half) for won in wins)
    posterior = fit(wins_table(wins, 10), "hierarchical-dirichlet", seed=1, rate=RATE)
    assert_log_kappa(posterior, exact_moments(log_density))


def test_of_identical_rankings_the_ratings_are_those_of_the_exact_posterior() -> None:
    n, timepoints, instances = 3, 2, 8
    kappa = np.exp(LOG_KAPPA)
    log_density = timepoints * log_evidence(kappa, n, instances) + LOG_KAPPA - RATE * kappa
    weights = np.exp(log_density - logsumexp(log_density))
    alpha = kappa / n
    first = (alpha + instances) / (n * alpha + instances)
    second = (1 - first) * (alpha + instances) / (2 * alpha + instances)
    values = np.tile([0.0, 1.0, 2.0], (instances, timepoints, 1))
    posterior = fit(table_of(values), "hierarchical-dirichlet", seed=1, rate=RATE)
    expected = np.array([weights @ first, weights @ second, weights @ (1 - first - second)])
    np.testing.assert_allclose(posterior.ratings.mean(axis=0), np.tile(expected, (2, 1)), atol=0.006)


def test_ratings_and_kappa_are_drawn_together() -> None:
    posterior = fit(wins_table([10], 10), "hierarchical-dirichlet", seed=1, draws=16_000)
    log_kappa = posterior.hyperparameters["log_kappa"]
    alpha = np.exp(log_kappa) / 2
    lost, expected = posterior.ratings[:, 0, 1], alpha / (2 * alpha + 10)
    for low, high in ((0.2, 0.5), (0.5, 0.75), (0.75, 0.95)):
        inside = (log_kappa > np.quantile(log_kappa, low)) & (log_kappa <= np.quantile(log_kappa, high))
        assert lost[inside].mean() == pytest.approx(expected[inside].mean(), rel=0.15)


@pytest.mark.parametrize("wins", [[10], [5], [0, 10, 10], [3, 4, 5, 6, 5, 4]])
def test_kappa_is_followed_by_anchors_whose_draws_are_worth_enough(wins: list[int]) -> None:
    table = wins_table(wins, 10)
    density = hierarchical._Density(statistics_of(table.ranks, table.weights), RATE, np.random.SeedSequence(1))
    nodes = hierarchical._follow(density, density.mode(), 2000)
    places = np.array([node.log_kappa for node in nodes])
    np.testing.assert_allclose(np.diff(places), hierarchical._LONGEST_STEP)
    slopes = np.array([node.slope for node in nodes])
    assert slopes[0] > 0 > slopes[-1]
    for node in nodes:
        assert node.anchor.log_kappa <= node.log_kappa + 1e-9
        assert node.anchor.worth(node.log_kappa) > 0.3
    logs = np.cumsum(slopes) * hierarchical._LONGEST_STEP
    assert logs[[0, -1]].max() < logs.max() - 4  # what is left out is negligible


# The slope of the density of kappa


def exact_draws(kappa: float, n: int, instances: int, timepoints: int, draws: int, seed: int) -> list[Timepoint]:
    """Independent draws given kappa and identical rankings."""
    rng, alpha = np.random.default_rng(seed), kappa / n

    def log_gamma(shape: float) -> np.ndarray:
        return np.log(rng.gamma(shape + 1, size=draws)) + np.log(rng.random(draws)) / shape

    done = []
    for _ in range(timepoints):
        logs, rest = np.empty((draws, n)), np.zeros(draws)
        for place in range(n - 1):
            won, lost = log_gamma(alpha + instances), log_gamma((n - 1 - place) * alpha)
            total = np.logaddexp(won, lost)
            logs[:, place], rest = rest + won - total, rest + lost - total
        logs[:, n - 1] = rest
        done.append(Timepoint(utilities=logs, mode=logs[0], route="exact", k_hat=0.0, effective=float(draws)))
    return done


def anchor_of(log_kappa: float, n: int, instances: int, timepoints: int, draws: int, seed: int) -> hierarchical._Anchor:
    likelihood = Likelihood(
        statistics_of(table_of(np.tile(np.arange(float(n)), (instances, timepoints, 1))).ranks, np.ones(instances))
    )
    done = exact_draws(math.exp(log_kappa), n, instances, timepoints, draws, seed)
    return hierarchical._Anchor(log_kappa, done, likelihood)


def exact_slope(log_kappa: float, n: int, instances: int, timepoints: int) -> float:
    """Derivative of the log-density of log kappa, by finite differences."""
    step = 1e-4
    up, down = log_evidence(np.exp(log_kappa + np.array([step, -step])), n, instances)
    return float(timepoints * (up - down) / (2 * step) + 1 - RATE * math.exp(log_kappa))


def plain_slope(anchor: hierarchical._Anchor, done: list[Timepoint]) -> float:
    """Without the identity: from the mean log-rating alone."""
    kappa, n = math.exp(anchor.log_kappa), anchor.algorithms
    expected = sum(float(each.utilities.mean()) for each in done)
    normaliser = len(done) * (digamma(kappa) - digamma(kappa / n))
    return float(kappa * (expected + normaliser - RATE) + 1)


@pytest.mark.parametrize("log_kappa", [-4.0, -1.0, 1.0, 3.0])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_slope_is_that_of_the_exact_density_with_less_error_than_a_plain_mean(n: int, log_kappa: float) -> None:
    exact = exact_slope(log_kappa, n, 8, 3)
    errors, plain = [], []
    for seed in range(10):
        anchor = anchor_of(log_kappa, n, 8, 3, 1000, seed)
        errors.append(anchor.slope(log_kappa, RATE) - exact)
        plain.append(plain_slope(anchor, anchor.done) - exact)
    root_mean_square = math.sqrt(np.mean(np.square(errors)))
    assert root_mean_square < 0.08
    assert root_mean_square < 0.8 * math.sqrt(np.mean(np.square(plain)))
    assert abs(np.mean(plain)) < 4 * np.std(plain) / math.sqrt(10) + 1e-12  # both estimate the same


@pytest.mark.parametrize("ahead", [0.2, 0.5])
def test_reweighted_draws_are_draws_given_a_larger_kappa(ahead: float) -> None:
    anchor, there = anchor_of(-1.0, 3, 8, 2, 20_000, 1), -1.0 + ahead
    assert anchor.worth(-1.0) == pytest.approx(1.0)
    assert 0.3 < anchor.worth(there) < 1
    assert anchor.slope(there, RATE) == pytest.approx(exact_slope(there, 3, 8, 2), abs=0.1)
    alpha = math.exp(there) / 3
    drawn = anchor.draw(there, 20_000, np.random.default_rng(2))
    expected = float(digamma(alpha + 8) - digamma(alpha))
    for t in range(2):
        assert (drawn[:, t, 1] - drawn[:, t, 2]).mean() == pytest.approx(expected, rel=0.06)


def test_draws_reach_as_far_as_they_are_worth_enough() -> None:
    anchor = anchor_of(-1.0, 3, 8, 2, 4000, 1)
    reach = anchor.reach()
    assert 0.02 < reach < hierarchical._LONGEST_REACH
    assert anchor.worth(-1.0 + reach) >= hierarchical._WORTH
    assert anchor.worth(-1.0 + reach / 0.7) < hierarchical._WORTH


# Bounds


def separated() -> tuple[Statistics, np.random.SeedSequence]:
    table = table_of(np.tile([0.0, 1.0, 2.0], (8, 2, 1)))
    return statistics_of(table.ranks, table.weights), np.random.SeedSequence(1)


@pytest.mark.parametrize(
    ("bound", "value", "complaint"),
    [
        ("_SMALLEST_ALPHA", 0.05, "kappa may be smaller than 0.15"),
        ("_LARGEST_ALPHA", 0.2, "kappa may be larger than 0.6"),
    ],
)
def test_a_kappa_beyond_the_bounds_is_told(
    bound: str, value: float, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statistics, seed = separated()
    assert hierarchical.sample_hierarchical(statistics, RATE, 1000, seed).problems == ()
    monkeypatch.setattr(hierarchical, bound, value)
    assert hierarchical.sample_hierarchical(statistics, RATE, 1000, seed).problems == (complaint,)
    with pytest.warns(InferenceWarning, match=complaint):
        posterior = fit(table_of(np.tile([0.0, 1.0, 2.0], (8, 2, 1))), "hierarchical-dirichlet", draws=1000, seed=1)
    assert complaint in posterior.diagnostics.problems
    assert not posterior.diagnostics.good


@pytest.mark.slow
def test_many_timepoints_that_know_kappa_well_have_nodes_closer_than_its_standard_deviation() -> None:
    rng, timepoints, instances = np.random.default_rng(3), 300, 200
    wins = rng.binomial(instances, rng.beta(2.0, 2.0, timepoints))
    ranks = np.where(np.arange(instances)[:, None] < wins, 1, 2).astype(np.int16)
    statistics = statistics_of(np.stack([ranks, 3 - ranks], axis=2), np.ones(instances))
    # Of two algorithms, the evidence of kappa is a product of Beta functions.
    alpha = np.exp(LOG_KAPPA[:, None]) / 2
    mean, sd = exact_moments((betaln(wins + alpha, instances - wins + alpha) - betaln(alpha, alpha)).sum(axis=1))
    assert sd < 0.1
    done = hierarchical.sample_hierarchical(statistics, RATE, 2000, np.random.SeedSequence(1))
    assert done.log_kappa.mean() == pytest.approx(mean, abs=0.15 * sd)
    assert done.log_kappa.std() == pytest.approx(sd, rel=0.06)
    nodes = hierarchical._follow(hierarchical._Density(statistics, RATE, np.random.SeedSequence(1)), mean, 500)
    assert nodes[1].log_kappa - nodes[0].log_kappa < 0.5 * sd
