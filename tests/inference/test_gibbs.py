from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from builders import gibbs_sweep, table_of, wins_table
from scipy.special import digamma, polygamma
from scipy.stats import beta, kstest

from polarbear_plugins import RankingTable
from polarbear_plugins.inference.native import gibbs
from polarbear_plugins.inference.native.gibbs import Sweeps, sample_by_sweeps
from polarbear_plugins.plackett_luce.subsets import Statistics, statistics_of


def with_prior(table: RankingTable, alpha: float) -> Statistics:
    return statistics_of(table.ranks, table.weights).with_dirichlet(alpha)


def swept(statistics: Statistics, draws: int = 8000, seed: int = 1) -> list[Sweeps]:
    """All timepoints swept together, from a start that knows nothing."""
    rng = np.random.default_rng(seed)
    parts = [statistics.at(t) for t in range(statistics.timepoints)]
    begin = [rng.normal(size=(draws, statistics.algorithms)) for _ in parts]
    return sample_by_sweeps(parts, begin, rng)


def better(utilities: np.ndarray, i: int, j: int) -> float:
    return float(np.mean(utilities[:, i] > utilities[:, j]))


def assert_log_odds(found: np.ndarray, a: float, b: float, effective: float) -> None:
    """Check mean and standard deviation of the log-odds of a share that is Beta(a, b)."""
    deviation = math.sqrt(float(polygamma(1, a) + polygamma(1, b)))
    assert found.mean() == pytest.approx(float(digamma(a) - digamma(b)), abs=4 * deviation / math.sqrt(effective))
    assert found.std() == pytest.approx(deviation, rel=0.1)


@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_of_two_algorithms_swept_together_each_timepoint_has_its_beta_posterior(alpha: float) -> None:
    wins, instances = [1, 4, 7, 10], 10
    done = swept(with_prior(wins_table(wins, instances), alpha))
    for sweeps, won in zip(done, wins, strict=True):
        a, b = alpha + won, alpha + instances - won
        gap = sweeps.utilities[:, 0] - sweeps.utilities[:, 1]
        assert sweeps.problems == ()
        assert sweeps.effective > 2000
        assert_log_odds(gap, a, b, sweeps.effective)
        assert np.mean(gap > 0) == pytest.approx(beta(a, b).sf(0.5), abs=0.025)


@pytest.mark.parametrize("alpha", [0.05, 1.0])
def test_timepoints_swept_together_have_the_posterior_of_each_alone(alpha: float) -> None:
    # The same sets everywhere, observed in different numbers.
    values = np.tile([0.0, 1.0, 2.0], (7, 3, 1))
    values[4:] = np.array([[0.0, 1.0, 2.0], [1.0, 2.0, 0.0], [2.0, 0.0, 1.0]])[:, None, :]
    values[0, 0] = [2.0, 1.0, 0.0]
    values[:2, 2] = [1.0, 0.0, 2.0]
    statistics = with_prior(table_of(values), alpha)
    assert len({statistics.sets[t][0].tobytes() for t in range(3)}) == 1
    together = swept(statistics)
    for t, sweeps in enumerate(together):
        (alone,) = swept(statistics.at(t), seed=2)
        assert sweeps.problems == alone.problems == ()
        for i, j in itertools.combinations(range(3), 2):
            assert better(sweeps.utilities, i, j) == pytest.approx(better(alone.utilities, i, j), abs=0.03)
        spread = alone.utilities.std(axis=0)
        error = 4 * spread * math.sqrt(1 / sweeps.effective + 1 / alone.effective)
        assert (np.abs(sweeps.utilities.mean(axis=0) - alone.utilities.mean(axis=0)) < error).all()
        np.testing.assert_allclose(sweeps.utilities.std(axis=0), spread, rtol=0.1)


def test_more_timepoints_than_fit_at_a_time_are_swept_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics = with_prior(wins_table([0, 1, 5], 5), 1.0)
    calls = []
    joint = gibbs._Joint

    def counted(timepoints: list[Statistics], chains: int) -> gibbs._Joint:
        calls.append(len(timepoints))
        return joint(timepoints, chains)

    monkeypatch.setattr(gibbs, "_Joint", counted)
    monkeypatch.setattr(gibbs, "_MOST_NUMBERS", 1000 * 2 * 2)  # chains, sets, timepoints
    done = swept(statistics, draws=4000)
    assert calls == [2, 1]
    for sweeps, won in zip(done, [0, 1, 5], strict=True):
        assert better(sweeps.utilities, 0, 1) == pytest.approx(beta(1 + won, 6 - won).sf(0.5), abs=0.035)


@pytest.mark.parametrize("alpha", [0.02, 0.5])
def test_of_identical_rankings_the_shares_of_choices_are_beta(alpha: float) -> None:
    """The first algorithm's share of all, and the second's share of the rest, are independent under the prior."""
    instances = 6
    (done,) = swept(with_prior(table_of([[[0.0, 1.0, 2.0]]] * instances), alpha))
    first, second, third = done.utilities.T
    assert_log_odds(first - np.logaddexp(second, third), alpha + instances, 2 * alpha, done.effective)
    assert_log_odds(second - third, alpha + instances, alpha, done.effective)


def test_utilities_far_beyond_the_smallest_number_stay_finite() -> None:
    statistics = with_prior(table_of([[[0.0, 1.0, 2.0, 3.0]]] * 3), 1e-3)
    rng, draws = np.random.default_rng(1), np.tile([0.0, -1e5, -2e5, -1e5], (200, 1))
    for _ in range(5):
        draws = gibbs_sweep(statistics, draws, rng)
        assert np.isfinite(draws).all()
    assert np.ptp(draws, axis=1).max() > 800  # ratings that a number could not hold


def test_a_sweep_leaves_a_mean_utility_of_zero_and_changes_every_draw() -> None:
    statistics, rng = with_prior(wins_table([3], 5), 1.0), np.random.default_rng(2)
    draws = rng.normal(size=(100, 2))
    swept_once = gibbs_sweep(statistics, draws, rng)
    np.testing.assert_allclose(swept_once.mean(axis=1), 0, atol=1e-12)
    assert (swept_once != draws).all()


def test_groups_are_scaled_together_with_the_sets_inside_them() -> None:
    """An algorithm that always wins: the common rating of the others is forgotten in a few sweeps."""
    noise = np.random.default_rng(3).normal(size=(20, 1, 3))
    statistics = with_prior(table_of(np.concatenate([np.full((20, 1, 1), -100.0), noise], axis=2)), 0.1)
    (done,) = swept(statistics, draws=4000)
    assert done.problems == ()
    lead = done.utilities[:, 0] - np.logaddexp.reduce(done.utilities[:, 1:], axis=1)
    assert_log_odds(lead, 0.1 + 20, 0.3, done.effective)
    assert done.count < 30


def test_the_same_seed_gives_the_same_sweeps() -> None:
    statistics = with_prior(wins_table([0, 3], 3), 0.1)
    one, same, other = (swept(statistics, 600, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one[1].utilities, same[1].utilities)
    assert not np.array_equal(one[1].utilities, other[1].utilities)


def test_sweeps_that_may_not_go_on_are_not_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gibbs, "has_forgotten", lambda *_: False)
    monkeypatch.setattr(gibbs, "correlations", lambda before, _: np.full(before.shape[1], 0.9))
    monkeypatch.setattr(gibbs, "_MOST_SWEEPS", 2)
    (done,) = swept(with_prior(wins_table([2], 3), 1.0), draws=600)
    assert done.problems == ("after 5 moves draws still correlate by 0.90 with where they began",)


@pytest.mark.parametrize("alpha", [0.3, 3.0])
def test_a_truth_drawn_from_the_prior_stays_one_under_sweeps_given_its_data(alpha: float) -> None:
    """Of every timepoint one draw: ratings from the prior, rankings given them, then sweeps given the rankings."""
    rng, timepoints = np.random.default_rng(4), 3000
    ratings = rng.dirichlet(np.full(3, alpha), size=timepoints)
    values = rng.exponential(1 / ratings, size=(6, timepoints, 3))  # the fastest is first, by its rating
    for row in range(6):
        values[row, :, row % 3] = np.nan  # pairs: sets that overlap, none in another
    statistics = with_prior(table_of(values), alpha)
    joint = gibbs._Joint([statistics.at(t) for t in range(timepoints)], 1)
    state = joint.sweeps(np.log(ratings), 6, rng)
    shares = np.exp(state - np.logaddexp.reduce(state, axis=1, keepdims=True))
    for share in shares.T:
        assert kstest(share, beta(alpha, 2 * alpha).cdf).pvalue > 0.005
