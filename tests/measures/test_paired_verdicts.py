from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from polarbear_plugins.measures.further_units import further_units
from polarbear_plugins.measures.paired_verdicts import Evidence, calibrate, interval, judge_leads

SIZES = {
    "no ties": np.ones((8, 3)),
    "ties": np.array([[1, 0, 1], [1, 0, 0], [1, 1, 1], [1, 1, 0]] * 2, dtype=float),
    "repetitions": np.array([[1, 0.2, 0.6], [0.4, 1, 0.2], [0.8, 0.8, 1], [0.2, 0.2, 0.2]] * 2),
    "absent": np.column_stack([np.ones(8), np.where(np.arange(8) < 2, np.nan, 1.0)]),
}


def leads_of(wins: int, losses: int, ties: int = 0) -> np.ndarray:
    return np.array([1.0] * wins + [-1.0] * losses + [0.0] * ties)[:, None]


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("level", [0.01, 0.05])
def test_over_all_exchanges_of_equal_versions_alarms_are_no_more_frequent_than_the_level(
    kind: str, level: float
) -> None:
    """Exactly, not on average: whatever the data, each exchange of the two on some units is equally probable."""
    flips = list(itertools.product([1.0, -1.0], repeat=7))
    alarms = [(calibrate(SIZES[kind] * np.array([1.0, *signs])[:, None], level)[0] <= level).any() for signs in flips]
    assert np.mean(alarms) <= level
    assert any(alarms)


def test_a_single_budget_is_decided_as_by_the_exact_sign_test() -> None:
    for wins in range(21):
        p, _ = calibrate(leads_of(wins, 20 - wins), 0.01)
        expected = float(binomtest(wins, 20).pvalue)
        assert p[0] == pytest.approx(expected, abs=4 * np.sqrt(expected / 10_000) + 1e-4)


def test_ties_are_no_evidence_for_either_version() -> None:
    some, many = (judge_leads(leads_of(12, 1, ties), 0.01, 0.0) for ties in (0, 500))
    assert some.p_better[0] == pytest.approx(many.p_better[0])
    assert (some.verdicts, many.verdicts) == (("better",), ("better",))
    assert many.share[0] == pytest.approx(0.5 + 11 / 513 / 2)
    assert many.high[0] - many.low[0] < some.high[0] - some.low[0]


def test_too_few_units_decide_nothing_whoever_wins() -> None:
    found = judge_leads(np.ones((7, 2)), 0.01, 0.05)
    assert found.verdicts == ("open", "open")
    assert found.tail == 0
    assert (found.low < 0.5).all()
    assert judge_leads(np.ones((7, 1)), 0.01, 0.05).low[0] < 0.5
    assert judge_leads(np.ones((8, 2)), 0.01, 0.05).verdicts == ("better", "better")


def test_budgets_that_agree_cost_less_than_budgets_that_do_not() -> None:
    rng = np.random.default_rng(0)
    alike = np.repeat(np.sign(rng.normal(size=(60, 1))), 5, axis=1)
    apart = np.sign(rng.normal(size=(60, 5)))
    _, threshold_alike = calibrate(alike, 0.01)
    _, threshold_apart = calibrate(apart, 0.01)
    assert threshold_alike > 2 * threshold_apart > 0


@pytest.mark.parametrize("seed", range(20))
def test_an_interval_excludes_one_half_exactly_where_a_budget_is_decided(seed: int) -> None:
    rng = np.random.default_rng(seed)
    leads = np.sign(rng.normal(0.4 * (seed % 3), 1, size=(40, 4))) * (rng.random((40, 4)) < 0.8)
    found = judge_leads(leads, 0.05, 0.0)
    outside = (found.low > 0.5 - 1e-6) | (found.high < 0.5 + 1e-6)
    assert [verdict in ("better", "worse") for verdict in found.verdicts] == outside.tolist()


def test_exchanging_the_versions_mirrors_everything() -> None:
    leads = np.random.default_rng(3).integers(-4, 5, size=(25, 3)) / 4
    one, other = judge_leads(leads, 0.05, 0.05), judge_leads(-leads, 0.05, 0.05)
    mirror = {"better": "worse", "worse": "better"}
    assert [mirror.get(str(verdict), verdict) for verdict in one.verdicts] == list(other.verdicts)
    np.testing.assert_allclose(one.low, 1 - other.high, atol=1e-6)
    np.testing.assert_allclose(one.p_better, 1 - other.p_better)


def test_the_interval_is_that_of_a_dirichlet_posterior_of_win_tie_and_loss() -> None:
    drawn = np.random.default_rng(0).dirichlet([21, 3, 41], size=400_000)
    low, high = interval(Evidence.of(leads_of(20, 2, 40)), 0.01)
    expected = np.quantile(drawn[:, 0] + drawn[:, 2] / 2, [0.01, 0.99])
    np.testing.assert_allclose([low[0], high[0]], expected, atol=0.002)


def test_equivalence_needs_the_whole_interval_and_wins_over_a_small_difference() -> None:

    def verdict(leads: np.ndarray, epsilon: float = 0.05) -> str | None:
        [found] = judge_leads(leads, 0.05, epsilon, fewest_flips=999).verdicts
        return found

    assert verdict(leads_of(50, 50)) == "open"
    assert verdict(leads_of(500, 500)) == "equivalent"
    assert verdict(leads_of(0, 0, 100)) == "equivalent"  # the very same runs
    assert verdict(leads_of(0, 0, 20)) == "open"
    assert verdict(leads_of(270, 210), epsilon=0.02) == "better"  # 56 %
    assert verdict(leads_of(270, 210), epsilon=0.15) == "equivalent"


def test_a_win_share_outside_epsilon_is_rarely_called_equivalent() -> None:
    """Over all outcomes with their probabilities, for a win share of 0.55."""
    units = 600
    wins = np.arange(260, 400)
    said = [
        judge_leads(leads_of(w, units - w), 0.01, 0.05, fewest_flips=999).verdicts == ("equivalent",)
        for w in wins[::10]
    ]
    assert binom.pmf(wins[::10], units, 0.55)[said].sum() * 10 <= 0.01


def test_where_nothing_was_compared_there_is_no_verdict_and_no_number() -> None:
    leads = np.column_stack([np.ones(10), np.full(10, np.nan)])
    found = judge_leads(leads, 0.01, 0.05)
    assert found.verdicts == ("better", None)
    assert np.isnan([found.p_better[1], found.share[1], found.low[1], found.high[1], found.p[1]]).all()


def test_the_same_seed_gives_the_same_verdicts() -> None:
    leads = np.sign(np.random.default_rng(5).normal(0.4, 1, size=(50, 3)))
    one, again, other = (calibrate(leads, 0.01, seed, 999)[0] for seed in (7, 7, 8))
    assert one.tolist() == again.tolist() != other.tolist()


@pytest.mark.slow
def test_with_as_many_more_units_as_estimated_most_open_budgets_are_settled() -> None:
    """The truth is drawn as the estimate assumes: from the prior, given an open budget."""
    rng = np.random.default_rng(1)
    settled = []
    while len(settled) < 20:
        share = rng.beta(1, 1)
        first = np.where(rng.random((30, 1)) < share, 1.0, -1.0)
        before = judge_leads(first, 0.05, 0.05, fewest_flips=999)
        further = further_units(Evidence.of(first), before.interval_tail, 0.05)
        if before.verdicts != ("open",) or not further.high or further.high > 2000:
            continue
        later = np.where(rng.random((further.high, 1)) < share, 1.0, -1.0)
        settled.append(judge_leads(np.concatenate([first, later]), 0.05, 0.05, fewest_flips=999).verdicts != ("open",))
    assert np.mean(settled) > 0.7


def test_more_evidence_leaves_fewer_units_to_come() -> None:
    few, some = (further_units(Evidence.of(leads_of(2 * k, k)), 0.002, 0.05) for k in (5, 9))
    assert few.median is not None
    assert some.median is not None
    assert some.median < few.median
    assert further_units(Evidence.of(leads_of(3, 0)), 0.4, 0.05, least=8).low == 5
