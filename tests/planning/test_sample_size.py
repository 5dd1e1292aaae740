from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from polarbear_plugins import PolarBearError
from polarbear_plugins.planning.paired_tests import holm_correction
from polarbear_plugins.planning.sample_size import (
    detectable_effect,
    effect_of_share,
    number_of_instances,
    power_curve,
    power_of,
    standardized_effect,
)

effects = st.floats(0.4, 3.0)
powers = st.floats(0.3, 0.99)
alphas = st.floats(0.001, 0.2)
tests = st.sampled_from(["t", "wilcoxon", "sign"])
alternatives = st.sampled_from(["two-sided", "one-sided"])


def test_the_known_answers_of_the_paper() -> None:
    assert number_of_instances(0.5, power=0.8, alpha=0.05) == 34
    found = detectable_effect(200, power=0.9, alpha=0.05, alternative="one-sided")
    assert found == pytest.approx(0.2, abs=0.02)
    assert power_of(200, 0.2, alternative="one-sided") > 0.85
    assert power_of(200, 0.1, alternative="one-sided") < 0.5


def test_the_rule_of_thumb_of_the_paper_is_near_the_exact_numbers() -> None:
    """Equation 26 divides by 0.86 and 0.637; its supplement has 38 instances for the t test and 45 for Wilcoxon's."""
    assert number_of_instances(0.5, power=0.85) == 38
    assert 38 < number_of_instances(0.5, power=0.85, test="wilcoxon") < 45
    assert number_of_instances(0.5, power=0.85, test="sign") > math.ceil(38 / 0.637)


@pytest.mark.parametrize("alternative", ["two-sided", "one-sided"])
@pytest.mark.parametrize("effect", [0.1, 0.35, 0.5, 1.2, 4.0])
@pytest.mark.parametrize("alpha", [0.01, 0.05])
def test_power_is_that_of_statsmodels(alternative: Any, effect: float, alpha: float) -> None:
    reference = pytest.importorskip("statsmodels.stats.power").TTestPower()
    its = {"two-sided": "two-sided", "one-sided": "larger"}[alternative]
    for count in (3, 10, 34, 200):
        theirs = float(reference.power(effect, count, alpha, alternative=its))
        if not math.isnan(theirs):  # where scipy's lower tail is, and the power close to 1
            assert power_of(count, effect, alpha, alternative=alternative) == pytest.approx(theirs, abs=1e-9)
    if effect < 4:
        exact = float(reference.solve_power(effect, None, alpha, 0.9, alternative=its))
        assert number_of_instances(effect, 0.9, alpha, alternative=alternative) == math.ceil(exact)
    theirs = float(reference.solve_power(None, 25, alpha, 0.9, alternative=its))
    assert detectable_effect(25, 0.9, alpha, alternative=alternative) == pytest.approx(theirs, rel=1e-6)


@settings(max_examples=15)
@given(effects, powers, alphas, tests, alternatives, st.integers(1, 10))
def test_the_number_is_the_fewest_with_the_power(
    effect: float, power: float, alpha: float, test: Any, alternative: Any, comparisons: int
) -> None:
    if power <= alpha:
        return
    count = number_of_instances(effect, power, alpha, test, alternative, comparisons=comparisons)
    assert power_of(count, effect, alpha, test, alternative, comparisons=comparisons) >= power
    # Powers of tests that count go up and down, so all smaller numbers matter.
    for fewer in range(max(2, count - 12), count):
        assert power_of(fewer, effect, alpha, test, alternative, comparisons=comparisons) < power


@settings(max_examples=15)
@given(st.integers(15, 40), powers, alphas, tests, alternatives)
def test_the_detectable_effect_has_the_power(
    count: int, power: float, alpha: float, test: Any, alternative: Any
) -> None:
    if power <= alpha:
        return
    effect = detectable_effect(count, power, alpha, test, alternative)
    assert power_of(count, effect, alpha, test, alternative) == pytest.approx(power, abs=1e-6)


@settings(max_examples=40)
@given(st.integers(5, 40), effects, alphas, tests, alternatives)
def test_power_grows_with_effect_and_alpha_and_that_of_a_t_test_with_instances(
    count: int, effect: float, alpha: float, test: Any, alternative: Any
) -> None:
    base = power_of(count, effect, alpha, test, alternative) - 1e-6
    assert power_of(count, 1.1 * effect, alpha, test, alternative) >= base
    assert (
        power_of(count + 1, effect, alpha, "t", alternative) >= power_of(count, effect, alpha, "t", alternative) - 1e-9
    )
    assert power_of(count, effect, 1.1 * alpha, test, alternative) >= base
    assert power_of(count, -effect, alpha, test, alternative) == power_of(count, effect, alpha, test, alternative)


def test_simulated_power_is_within_its_monte_carlo_error() -> None:
    rng, rounds = np.random.default_rng(1), 20_000
    for count, effect, alternative in ((34, 0.5, "two-sided"), (12, 0.8, "greater")):
        found = stats.ttest_1samp(rng.normal(effect, 1, (rounds, count)), 0, axis=1, alternative=alternative).pvalue
        sides: Any = "two-sided" if alternative == "two-sided" else "one-sided"
        power = power_of(count, effect, alternative=sides)
        assert (found <= 0.05).mean() == pytest.approx(power, abs=4 * math.sqrt(power * (1 - power) / rounds))


def test_without_an_effect_the_power_is_alpha() -> None:
    for alternative in ("two-sided", "one-sided"):
        assert power_of(20, 0.0, 0.05, alternative=alternative) == pytest.approx(0.05)  # type: ignore[arg-type]


def test_a_power_curve_has_the_power_of_each_effect() -> None:
    sizes, found = power_curve(50, test="sign", effects=[0.0, 0.3, 0.6])
    assert found.tolist() == [power_of(50, size, test="sign") for size in sizes]
    sizes, found = power_curve(50)
    assert (sizes[0], len(sizes)) == (0.0, 51)
    assert (np.diff(found) > 0).all()
    assert found[-1] == pytest.approx(0.999)


def test_several_comparisons_share_alpha() -> None:
    assert number_of_instances(0.5, 0.8, 0.05, comparisons=5) == number_of_instances(0.5, 0.8, 0.01)


@pytest.mark.parametrize("test", ["t", "wilcoxon", "sign"])
def test_mean_and_median_power_are_those_of_holms_levels(test: Any) -> None:
    steps = [power_of(30, 0.6, 0.05 / left, test) for left in (4, 3, 2, 1)]
    for target, expected in (("worst-case", steps[0]), ("mean", np.mean(steps)), ("median", np.median(steps))):
        options: Any = {"comparisons": 4, "power_target": target}
        assert power_of(30, 0.6, test=test, **options) == pytest.approx(expected, abs=1e-6)
        count = number_of_instances(0.6, test=test, **options)
        assert power_of(count, 0.6, test=test, **options) >= 0.8
        assert power_of(count - 1, 0.6, test=test, **options) < 0.8
        assert number_of_instances(0.6, test=test, power_target=target) == number_of_instances(0.6, test=test)
        effect = detectable_effect(30, test=test, **options)
        assert power_of(30, effect, test=test, **options) == pytest.approx(0.8, abs=1e-6)


def test_the_worst_case_holds_whatever_the_other_comparisons_are() -> None:
    """Among pairs without a difference, and among copies of itself, a pair with the effect is found with the power."""
    rng, rounds, pairs = np.random.default_rng(5), 4000, 3
    count = number_of_instances(0.8, comparisons=pairs)
    with_effect = rng.normal(0.8, 1, (rounds, count))
    p = stats.ttest_1samp(with_effect, 0, axis=1).pvalue
    for others in (np.ones((2, rounds)), np.stack([p, p])):
        corrected = [holm_correction([p[k], *others[:, k]])[0] for k in range(rounds)]
        assert np.mean(np.array(corrected) <= 0.05) > 0.8 - 3 * 0.4 / math.sqrt(rounds)


def test_measurement_error_makes_an_effect_smaller() -> None:
    assert standardized_effect(0.05, 0.1) == 0.5
    assert standardized_effect(3.0, 3.0, error=4.0) == 0.6
    assert standardized_effect(-1.0, 2.0) == -0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: number_of_instances(0), "effect: no number of instances can detect an effect of 0"),
        (lambda: number_of_instances(0.5, power=1), "power: expected a number between 0 and 1, both excluded, got 1"),
        (lambda: number_of_instances(0.5, power=0), "power: expected a number between 0 and 1"),
        (lambda: number_of_instances(0.5, alpha=0), "alpha: expected a number between 0 and 1"),
        (lambda: number_of_instances(0.5, power=0.05), r"power: expected more than alpha \(0.05\)"),
        (lambda: detectable_effect(20, power=0.05), r"power: expected more than alpha \(0.05\)"),
        (lambda: number_of_instances(1e-9), "effect: 1e-09 needs more than 1,000,000,000 instances"),
        (lambda: number_of_instances(float("nan")), "effect: expected a finite number"),
        (lambda: number_of_instances(1e9), "effect in standard deviations: expected a number of at most 1000"),
        (lambda: number_of_instances(0.5, test="u"), 'test: expected "t", "wilcoxon" or "sign"'),  # type: ignore[arg-type]
        (lambda: number_of_instances(0.5, alternative="less"), 'alternative: expected "two-sided" or "one-sided"'),  # type: ignore[arg-type]
        (lambda: number_of_instances(0.5, comparisons=0), "comparisons must be a whole number of at least 1"),
        (lambda: power_of(1, 0.5), "instances must be a whole number of at least 2"),
        (
            lambda: detectable_effect(5, test="sign"),
            r"5 instances find no effect .*: no p value of that test is below 0.0625, and 0.05 is needed\.",
        ),
        (
            lambda: number_of_instances(0.5, power_target="best"),
            'power_target: expected "worst-case", "mean" or "median"',
        ),  # type: ignore[arg-type]
        (lambda: effect_of_share(1.0), "share: expected a number between 0 and 1, both excluded, got 1"),
        (lambda: standardized_effect(0.5, 0), "Without any variation one instance is enough"),
        (lambda: standardized_effect(0.5, -1), "deviation and error: expected numbers that are not negative"),
    ],
)
def test_bad_input_is_refused(call: Any, message: str) -> None:
    with pytest.raises(PolarBearError, match=message):
        call()
