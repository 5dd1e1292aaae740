from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.integrations.gp_bbob.distributions import Distribution, as_distribution

TEXTS = {
    "normal(3, 2)": stats.norm(3, 2),
    "lognormal(-0.5, 0.5)": stats.lognorm(0.5, scale=math.exp(-0.5)),
    "cauchy(1, 1000)": stats.cauchy(1, 1000),
    "uniform(-1, 4)": stats.uniform(-1, 5),
    "normal(240, 30)[2, 320]": stats.truncnorm(-238 / 30, 80 / 30, 240, 30),
}


@pytest.mark.parametrize("text", TEXTS)
def test_quantiles_and_probabilities_are_those_of_scipy(text: str) -> None:
    distribution, reference = as_distribution(text, "it"), TEXTS[text]
    for u in np.linspace(0.001, 0.999, 41):
        assert distribution.quantile(float(u)) == pytest.approx(reference.ppf(u), rel=1e-9, abs=1e-9)
        x = float(reference.ppf(u))
        assert distribution.cdf(x) == pytest.approx(u, abs=1e-9)


def test_a_truncated_distribution_is_the_rest_and_not_piled_up_at_the_ends() -> None:
    truncated, whole = as_distribution("lognormal(1.1, 0.5)[2, 24]", "it"), as_distribution("lognormal(1.1, 0.5)", "it")
    assert (truncated.cdf(2), truncated.cdf(24)) == (0, 1)
    assert truncated.cdf(3) == pytest.approx((whole.cdf(3) - whole.cdf(2)) / (whole.cdf(24) - whole.cdf(2)))
    assert truncated.quantile(1e-4) == pytest.approx(2, abs=1e-3)
    assert truncated.quantile(1e-4) > 2


def test_integers_are_equally_likely_and_include_both_ends() -> None:
    dice = as_distribution("integers(1, 6)", "it")
    drawn = [dice.quantile(u) for u in (np.arange(6000) + 0.5) / 6000]
    assert np.unique(drawn, return_counts=True)[1].tolist() == [1000] * 6
    assert (dice.quantile(0), dice.quantile(1)) == (1, 6)
    assert [dice.cdf(x) for x in (0.9, 1, 3.5, 6, 99)] == [0, 1 / 6, 0.5, 1, 1]


@pytest.mark.parametrize("value", [20, "20", 20.0, " 20 ", np.float64(20)])
def test_a_number_is_always_that_number(value: object) -> None:
    constant = as_distribution(value, "it")
    assert [constant.quantile(u) for u in (0, 0.3, 1)] == [20, 20, 20]
    assert (constant.cdf(19.9), constant.cdf(20)) == (0, 1)
    assert constant.support == (20, 20)


@given(st.sampled_from([*TEXTS, "integers(1, 9)", "7.5", "cauchy(0, 1)[0, inf]"]))
def test_the_text_of_a_distribution_reads_as_the_same(text: str) -> None:
    distribution = as_distribution(text, "it")
    assert str(distribution) == text
    assert as_distribution(str(distribution), "it") == distribution
    assert as_distribution(distribution, "it") is distribution


@pytest.mark.parametrize("text", [*TEXTS, "cauchy(0, 1)[0, inf]"])
def test_the_ends_of_the_unit_interval_give_numbers(text: str) -> None:
    distribution = as_distribution(text, "it")
    low, high = distribution.support
    for u in (0.0, 1.0, 1 - 2**-53):
        assert math.isfinite(distribution.quantile(u))
        assert low <= distribution.quantile(u) <= high


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "expected a number or a distribution"),
        ("about 7", "expected a number or a distribution"),
        ("normal(1)", "expected a number or a distribution"),
        ("normal(1, x)", "expected a number or a distribution"),
        ("normal(nan, 1)", "expected a number or a distribution"),
        ("normal(0, 1)[nan, 2]", "expected a number or a distribution"),
        ("nan", "expected a number or a distribution"),
        ("inf", "expected a number or a distribution"),
        ("constant(1, 2)", "must be above the first"),
        (None, "expected a finite number"),
        (True, "expected a finite number"),
        ("gauss(0, 1)", "there are normal, lognormal, cauchy, uniform, integers"),
        ("normal(0, 0)", "the second number must be positive"),
        ("uniform(2, 2)", "must be above the first"),
        ("integers(3, 2)", "must be above the first"),
        ("integers(1, 2.5)", "two whole numbers"),
        ("integers(1, 9)[2, 3]", "only normal, lognormal and cauchy can be truncated"),
        ("normal(0, 1)[3, 2]", "almost no probability between 3 and 2"),
        ("normal(0, 1)[30, 31]", "almost no probability between 30 and 31"),
        ("lognormal(0, 1)[-5, 0]", "almost no probability between -5 and 0"),
    ],
)
def test_what_is_no_distribution_is_refused_by_name(value: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^lengthscale: .*{message}"):
        as_distribution(value, "lengthscale")


def test_whole_numbers_given_in_python_are_numbers_like_others() -> None:
    assert Distribution("integers", 1, 6) == as_distribution("integers(1, 6)", "it")
