from __future__ import annotations

import gc
import itertools
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from polarbear_plugins import PolarBearError
from polarbear_plugins.planning.critical_values import EXACT_RANKS
from polarbear_plugins.planning.paired_tests import compare_pairs, holm_correction, judge_differences, normality_of

TESTS: list[Any] = ["t", "wilcoxon", "sign"]


def test_the_t_test_interval_and_effect_are_those_of_scipy() -> None:
    sample = np.random.default_rng(0).normal(0.4, 1.0, 30)
    found = judge_differences(sample)
    theirs = stats.ttest_1samp(sample, 0.0)
    low, high = theirs.confidence_interval(0.95)
    assert found.p == pytest.approx(theirs.pvalue)
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.effect == pytest.approx(sample.mean() / sample.std(ddof=1))
    assert found.estimate == pytest.approx(sample.mean())


def test_the_first_experiment_of_campelo_and_takahashi() -> None:
    """Table 2: mean -0.379 (-0.517 to -0.242), p = 2.90e-6; here from differences rounded to two places."""
    left = "-.14 -.36 .69 -.63 -.29 .05 .07 -.95 -.90 -.38 -.04 -.65 -.46 -.92 -.17 -.40 -.29"
    right = ".46 -.08 -.11 -.89 -.86 -.21 -.82 -.75 -.35 -.19 -.74 0 -.47 -.54 -.71 -.69 -.18"
    found = judge_differences([float(value) for value in f"{left} {right}".split()])
    assert found.instances == 34
    assert (found.estimate, found.low, found.high) == pytest.approx((-0.379, -0.517, -0.242), abs=1e-3)
    assert found.p == pytest.approx(2.90e-6, rel=0.02)


def test_a_known_answer_of_wilcoxons_interval() -> None:
    # Hollander and Wolfe's depression data, as in the help page of R's wilcox.test: V = 5, p = 0.01953 one-sided, and
    # the pseudomedian is -0.46 with the interval -0.786 to -0.01.
    first = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
    second = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])
    found = judge_differences(second - first, "wilcoxon", "less")
    assert found.p == pytest.approx(0.01953, abs=1e-5)
    assert found.estimate == pytest.approx(-0.46)
    assert (found.low, found.high) == pytest.approx((-0.786, -0.01))


def signed_rank_probability(sample: list[float], direction: str) -> float:
    """P value of Wilcoxon's test by going through all signs of the ranks."""
    sizes = stats.rankdata(np.abs(sample))
    positive = float(sizes[np.asarray(sample) > 0].sum())
    sums = np.array([np.dot(signs, sizes) for signs in itertools.product((0, 1), repeat=len(sample))])
    less, greater = float((sums <= positive + 1e-9).mean()), float((sums >= positive - 1e-9).mean())
    return {"less": less, "greater": greater, "two-sided": min(1.0, 2 * min(less, greater))}[direction]


@pytest.mark.parametrize("direction", ["two-sided", "less", "greater"])
def test_without_ties_wilcoxons_test_goes_through_all_signs(direction: Any) -> None:
    sample = [1.0, -2.0, 3.5, 4.0, -5.0, 6.0, 7.0, 8.5]
    expected = signed_rank_probability(sample, direction)
    assert judge_differences(sample, "wilcoxon", direction).p == pytest.approx(expected)
    # A zero is left out, and what remains is still exact.
    assert judge_differences([0.0, *sample], "wilcoxon", direction).p == pytest.approx(expected)


@pytest.mark.parametrize("direction", ["two-sided", "less", "greater"])
def test_with_ties_wilcoxons_test_is_normal_with_correction_for_continuity(direction: Any) -> None:
    sample = [1.0, -1.0, 2.0, 2.0, -3.0, 4.0, 5.0, 5.0, 6.0, -7.0]
    sizes = stats.rankdata(np.abs(sample))
    positive, mean = float(sizes[np.array(sample) > 0].sum()), float(sizes.sum()) / 2
    spread = float(np.sqrt((sizes**2).sum() / 4))
    # Half a unit towards the middle.
    towards = {"two-sided": -0.5, "greater": -0.5, "less": 0.5}[direction]
    score = (positive - mean + towards) / spread
    tail = {"greater": stats.norm.sf(score), "less": stats.norm.cdf(score), "two-sided": 2 * stats.norm.sf(score)}
    assert positive > mean
    assert judge_differences(sample, "wilcoxon", direction).p == pytest.approx(tail[direction])


@pytest.mark.parametrize(("count", "exact"), [(EXACT_RANKS, True), (EXACT_RANKS + 1, False)])
def test_wilcoxons_test_is_exact_up_to_a_number_of_ranks(count: int, exact: bool) -> None:
    sample = np.where(np.arange(count) % 3 == 0, -1, 1) * np.arange(1.0, count + 1)
    theirs = stats.wilcoxon(sample, method="exact" if exact else "asymptotic", correction=not exact)
    assert judge_differences(sample, "wilcoxon").p == pytest.approx(theirs.pvalue, rel=1e-12)


@pytest.mark.parametrize(("count", "tested"), [(2, False), (3, True), (5000, True), (5001, False)])
def test_normality_is_tested_where_the_test_of_shapiro_and_wilk_is_defined(count: int, tested: bool) -> None:
    sample = np.random.default_rng(1).normal(size=count)
    with mock.patch("polarbear_plugins.planning.paired_tests._RESAMPLES", 3):
        found = normality_of(sample).p
    assert found == (pytest.approx(stats.shapiro(sample).pvalue) if tested else None)


def test_the_sign_test_counts_wins_and_leaves_out_ties() -> None:
    found = judge_differences([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 0.0, -1.0], "sign", "greater")
    assert found.p == pytest.approx(9 / 256)


numbers = st.lists(st.integers(-9, 40), min_size=6, max_size=30, unique_by=abs).filter(lambda values: any(values))


@given(numbers, st.integers(0, 20), st.floats(0.01, 0.3))
def test_wilcoxons_interval_and_test_treat_zeros_alike(values: list[int], zeros: int, alpha: float) -> None:
    """Zeros change neither, and the interval excludes 0 exactly if the test rejects."""
    away = [float(value) for value in values if value]
    found = judge_differences([*away, *[0.0] * max(zeros, 2 - len(away))], "wilcoxon", alpha=alpha)
    if len(away) > 1:
        alone = judge_differences(away, "wilcoxon", alpha=alpha)
        assert (found.estimate, found.low, found.high, found.p) == (alone.estimate, alone.low, alone.high, alone.p)
    if "too few" not in found.note:
        assert found.significant == (not found.low <= 0 <= found.high)


def test_zeros_that_are_left_out_are_said_to_be() -> None:
    sample = [0.0, 0.0, *range(1, 9)]
    assert "2 instances without a difference left out, as Wilcoxon did" in judge_differences(sample, "wilcoxon").note
    assert "1 instance without a difference left out of the test" in judge_differences(sample[1:], "sign").note
    assert judge_differences(sample).note == ""


@pytest.mark.slow
@pytest.mark.parametrize("test", TESTS)
def test_intervals_cover_as_often_as_they_say(test: Any) -> None:
    rng, rounds = np.random.default_rng(5), 600
    hits = 0
    for _ in range(rounds):
        found = judge_differences(rng.normal(0.7, 1.0, 12), test, alpha=0.1)
        hits += found.low <= 0.7 <= found.high
    assert hits / rounds > 0.9 - 4 * np.sqrt(0.09 / rounds)
    assert hits / rounds < 0.99


@pytest.mark.slow
@pytest.mark.parametrize("test", TESTS)
def test_without_a_difference_alpha_is_kept(test: Any) -> None:
    rng, rounds = np.random.default_rng(6), 600
    wrong = sum(judge_differences(rng.normal(0, 1, 15), test, alpha=0.1).significant for _ in range(rounds))
    assert wrong / rounds < 0.1 + 4 * np.sqrt(0.09 / rounds)


@pytest.mark.parametrize("test", TESTS)
@given(data=st.data())
def test_swapping_the_algorithms_turns_the_signs(test: Any, data: st.DataObject) -> None:
    values = st.lists(st.floats(-5, 5).map(lambda x: round(x, 3)), min_size=4, max_size=30)
    sample = np.array(data.draw(values.filter(lambda values: np.ptp(values) > 0.1)))
    found, turned = judge_differences(sample, test, "less"), judge_differences(-sample, test, "greater")
    assert turned.p == pytest.approx(found.p)
    assert (turned.low, turned.high, turned.estimate) == pytest.approx((-found.high, -found.low, -found.estimate))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_that_of_statsmodels(values: list[float]) -> None:
    # It collects garbage at every call, which takes longer than all else the more is loaded.
    with mock.patch.object(gc, "collect"):
        expected = multipletests(values, method="holm")[1]
    assert holm_correction(values) == pytest.approx(expected.tolist())


def test_several_pairs_are_corrected_and_their_intervals_wider() -> None:
    rng = np.random.default_rng(1)
    samples = {("a", "b"): rng.normal(0.5, 1, 20), ("a", "c"): rng.normal(0, 1, 20), ("b", "c"): rng.normal(2, 1, 20)}
    together = compare_pairs(samples)
    for (pair, sample), found in zip(samples.items(), together, strict=True):
        alone = judge_differences(sample)
        assert (found.one, found.other) == pair
        assert found.p == alone.p
        assert found.high - found.low > alone.high - alone.low
        assert found.significant == (found.p_corrected is not None and found.p_corrected <= 0.05)
    plain = [found.p for found in together if found.p is not None]
    assert [found.p_corrected for found in together] == holm_correction(plain)


def test_no_difference_anywhere_is_no_test_but_counts_as_one() -> None:
    samples = {("a", "b"): np.zeros(10), ("a", "c"): np.array([0.1, 0.3, 0.2, 0.5])}
    nothing, some = compare_pairs(samples)
    assert (nothing.p, nothing.p_corrected, nothing.significant, nothing.effect) == (None, None, False, None)
    assert "no difference on any instance" in nothing.note
    assert some.p_corrected == pytest.approx(2 * (some.p or 0))


def test_the_same_difference_everywhere_is_no_t_test() -> None:
    found = judge_differences([0.1 + 0.2] * 12)
    assert (found.p, found.effect, found.normality) == (None, None, None)
    assert "the sign test does not" in found.note
    assert judge_differences([0.3] * 12, "sign").p == pytest.approx(2 / 4096)


def test_too_few_instances_for_an_interval_are_said_to_be() -> None:
    found = judge_differences([1.0, 2.0, 3.0], "sign")
    assert (found.low, found.high) == (1.0, 3.0)
    assert "too few instances for an interval of 0.95" in found.note
    assert judge_differences(np.arange(1.0, 21), "sign").note == ""


def test_normality_is_doubted_where_it_should_be() -> None:
    rng = np.random.default_rng(0)
    normal, skewed = normality_of(rng.normal(size=50)), normality_of(rng.lognormal(sigma=1.5, size=50))
    assert normal.p == pytest.approx(stats.shapiro(np.random.default_rng(0).normal(size=50)).pvalue)
    assert normal.p is not None
    assert normal.p > 0.05
    assert skewed.p is not None
    assert skewed.p < 0.01
    assert skewed.correlation < skewed.mean_correlation < normal.mean_correlation
    assert normality_of([1.0, 2.0]).p is None
    assert normality_of([1.0, 2.0, 4.0], seed=1) == normality_of([1.0, 2.0, 4.0], seed=1)
    assert normality_of([1.0, 2.0, 4.0], seed=1) != normality_of([1.0, 2.0, 4.0], seed=2)


@pytest.mark.parametrize(
    ("sample", "options", "message"),
    [
        ([1.0], {}, "expected at least two finite numbers, one per instance, got 1"),
        ([1.0, np.inf], {}, "got 2, not all finite"),
        ([1.0, 2.0], {"test": "u"}, 'test: expected "t"'),
        ([1.0, 2.0], {"alternative": "one-sided"}, 'alternative: expected "two-sided", "less" or "greater"'),
        ([1.0, 2.0], {"alpha": 1.0}, "alpha: expected a number between 0 and 1"),
    ],
)
def test_bad_input_is_refused(sample: list[float], options: Any, message: str) -> None:
    with pytest.raises(PolarBearError, match=message):
        judge_differences(sample, **options)
    with pytest.raises(PolarBearError, match="normality needs at least two values that differ"):
        normality_of([1.0, 1.0])
