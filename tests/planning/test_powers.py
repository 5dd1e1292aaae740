from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from polarbear_plugins.planning import signed_rank_powers
from polarbear_plugins.planning.critical_values import sign_critical, signed_rank_critical
from polarbear_plugins.planning.paired_tests import judge_differences
from polarbear_plugins.planning.powers import smallest_level
from polarbear_plugins.planning.sample_size import effect_of_share, number_of_instances, power_of
from polarbear_plugins.planning.signed_rank_powers import signed_rank_power

COUNTING: list[Any] = ["wilcoxon", "sign"]


def rejections(samples: np.ndarray, test: str, alpha: float, sides: int) -> float:
    """Share of samples that a test rejects, by formulas other than those of the package."""
    if test == "sign":
        chances = stats.binom.cdf((samples < 0).sum(axis=1), samples.shape[1], 0.5)
        other = stats.binom.cdf((samples > 0).sum(axis=1), samples.shape[1], 0.5)
        p = chances if sides == 1 else 2 * np.minimum(chances, other)
    else:
        p = stats.wilcoxon(samples, axis=1, method="exact", alternative="greater" if sides == 1 else "two-sided").pvalue
    return float((p <= alpha).mean())


@pytest.mark.parametrize("test", COUNTING)
@pytest.mark.parametrize(
    ("count", "effect", "alpha", "sides"),
    [(16, 1.0, 0.05, 2), (7, 1.5, 0.05, 1), (12, 0.1, 0.2, 2), (30, 0.6, 0.01, 2)],
)
def test_simulated_powers_are_within_their_monte_carlo_error(
    test: Any, count: int, effect: float, alpha: float, sides: int
) -> None:
    rounds = 10_000
    samples = np.random.default_rng(count).normal(effect, 1, (rounds, count))
    power = power_of(count, effect, alpha, test, "one-sided" if sides == 1 else "two-sided")
    error = math.sqrt(power * (1 - power) / rounds)
    assert rejections(samples, test, alpha, sides) == pytest.approx(power, abs=4 * error)


def test_the_sign_test_falls_short_where_its_efficiency_says_it_does_not() -> None:
    assert power_of(16, 1.0, test="sign") == pytest.approx(0.759, abs=5e-4)
    wins = stats.norm.cdf(1.0)
    assert power_of(16, 1.0, test="sign") == pytest.approx(
        stats.binom.cdf(3, 16, 1 - wins) + stats.binom.cdf(3, 16, wins), abs=1e-12
    )
    assert number_of_instances(1.0, test="sign") == 17


@pytest.mark.parametrize("share", [0.6, 0.8, 0.95])
def test_the_sign_test_needs_only_the_share_of_wins(share: float) -> None:
    rng, rounds, count = np.random.default_rng(1), 10_000, 25
    skewed = rng.exponential(size=(rounds, count)) + math.log(share)  # positive with that probability
    power = power_of(count, effect_of_share(share), test="sign")
    error = math.sqrt(power * (1 - power) / rounds)
    assert rejections(skewed, "sign", 0.05, 2) == pytest.approx(power, abs=4 * error)


def test_wilcoxons_power_is_that_of_all_orders_and_signs() -> None:
    """With two differences there are eight cases; P(both positive) and the like are known."""
    effect = 0.7
    positive = stats.norm.cdf(effect)
    [power] = signed_rank_power(2, effect, [0.25], 1)
    assert power == pytest.approx(positive**2, abs=1e-9)
    # Up to rank sum 1 of negatives: both positive, or one negative with the smaller absolute value.
    [power] = signed_rank_power(2, effect, [0.5], 1)
    larger_sum = stats.norm.cdf(effect * math.sqrt(2))
    assert power == pytest.approx(larger_sum, abs=1e-9)


@pytest.mark.parametrize(("count", "effect"), [(6, 3.0), (25, 0.5), (40, 1.6), (100, 0.3)])
def test_finer_grids_change_no_power_of_wilcoxons_test(
    count: int, effect: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    tails = [0.05, 0.025, 0.001]
    coarse = signed_rank_power(count, effect, tails, 2)
    nodes = signed_rank_powers._nodes
    monkeypatch.setattr(signed_rank_powers, "_nodes", lambda *_: nodes(effect, 10**6))
    monkeypatch.setattr(signed_rank_powers, "_POINTS", 24)
    assert signed_rank_power(count, effect, tails, 2) == pytest.approx(coarse, abs=1e-6)


def test_without_an_effect_the_power_is_the_level_that_the_test_really_has() -> None:
    for count, test in itertools.product((6, 17, 40), COUNTING):
        power = power_of(count, 0.0, test=test)
        assert power <= 0.05
        critical = sign_critical(count, 0.025) if test == "sign" else signed_rank_critical(count, 0.025)
        exact = stats.binom.cdf(critical, count, 0.5) if test == "sign" else _rank_sums(count)[: critical + 1].sum()
        assert power == pytest.approx(2 * exact, abs=1e-12)


def _rank_sums(count: int) -> np.ndarray:
    chances = np.ones(1)
    for rank in range(1, count + 1):
        chances = np.convolve(chances, [0.5, *[0] * (rank - 1), 0.5])
    return chances


@pytest.mark.parametrize("test", COUNTING)
@settings(max_examples=40)
@given(st.floats(0.8, 900.0), st.floats(0.3, 0.99), st.floats(1e-4, 0.2), st.sampled_from([1, 2]), st.integers(1, 12))
def test_no_plan_has_fewer_instances_than_can_reject(
    test: Any, effect: float, power: float, alpha: float, sides: int, comparisons: int
) -> None:
    if power <= alpha:
        return
    alternative: Any = ["one-sided", "two-sided"][sides - 1]
    count = number_of_instances(effect, power, alpha, test, alternative, comparisons=comparisons)
    assert smallest_level(count, sides) <= alpha / comparisons
    assert power_of(count, effect, alpha, test, alternative, comparisons=comparisons) >= power


@pytest.mark.parametrize("test", COUNTING)
def test_the_plans_that_could_not_succeed_have_one_instance_more(test: Any) -> None:
    """With five instances the smallest two-sided p value is 0.0625."""
    assert power_of(5, 5.0, test=test) == 0.0
    assert number_of_instances(5.0, test=test) == 6
    same = np.arange(1.0, 7.0)
    assert judge_differences(same, test).significant
    assert not judge_differences(same[:5], test).significant


@given(st.integers(2, 60), st.floats(-9.0, -0.31).map(lambda exponent: 10**exponent))
@example(30, 1e-6)  # the normal quantile is too low
def test_critical_values_are_the_largest_that_reject(count: int, tail: float) -> None:
    losses = sign_critical(count, tail)
    assert losses < 0 or stats.binom.cdf(losses, count, 0.5) <= tail * (1 + 1e-12)
    assert stats.binom.cdf(losses + 1, count, 0.5) > tail * (1 - 1e-12)
    chances = np.cumsum(_rank_sums(count))
    total = signed_rank_critical(count, tail)
    assert total < 0 or chances[total] <= tail * (1 + 1e-12)
    assert chances[total + 1] > tail * (1 - 1e-12)


@pytest.mark.parametrize("shift", [1.0, 2.0, 2.8, 3.5, 5.0])
def test_the_approximation_for_many_instances_never_promises_too_much(shift: float) -> None:
    """Compared where the exact power is known; its error times the number of instances hardly depends on them."""
    for count in (60, 120):
        effect, tails = shift / math.sqrt(count), [0.05, 0.025, 0.005, 0.0005, 0.0001]
        exact = signed_rank_power(count, effect, tails, 2)
        for tail, power in zip(tails, exact, strict=True):
            found = signed_rank_powers._approximate_power(count, effect, tail, 2)
            assert power - 2 / count <= found <= power


@pytest.mark.slow
def test_the_approximation_for_many_instances_agrees_with_simulation() -> None:
    rng, rounds, count, effect = np.random.default_rng(3), 20_000, 300, 0.15
    samples = rng.normal(effect, 1, (rounds, count))
    ranks = np.abs(samples).argsort(axis=1).argsort(axis=1) + 1
    low = np.minimum((ranks * (samples < 0)).sum(axis=1), (ranks * (samples > 0)).sum(axis=1))
    found = (low <= signed_rank_critical(count, 0.025)).mean()
    power = power_of(count, effect, test="wilcoxon")
    error = 3 * math.sqrt(power * (1 - power) / rounds)
    assert power - error <= found <= power + 2 / count + error
    sample = samples[0]
    p = judge_differences(sample, "wilcoxon").p
    assert p is not None
    assert (p <= 0.05) == (low[0] <= signed_rank_critical(count, 0.025))


def test_effects_beyond_the_grid_are_found_for_sure() -> None:
    assert power_of(10, 50.0, test="wilcoxon") == pytest.approx(1.0, abs=1e-6)
    assert power_of(500, 50.0, test="wilcoxon") > 0.99
