from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.selection.preferences import as_preference, vectorized

grids = st.lists(st.integers(1, 1000), min_size=1, max_size=8, unique=True).map(lambda times: np.sort(times) * 1.0)


def weights(preference: Any, *timepoints: float) -> np.ndarray:
    found = as_preference(preference, np.array(timepoints, dtype=float)).weights
    assert found is not None
    return found


def test_uniform_is_the_mean_over_time_with_straight_lines_between_the_timepoints() -> None:
    # From 0 to 10: the segments have the lengths 2 and 8, and each end of a segment takes half of it.
    np.testing.assert_allclose(weights("uniform", 0, 2, 10), [0.1, 0.5, 0.4])


@given(grids, st.integers(0, 1000))
def test_uniform_equals_the_area_under_the_curve_over_its_width(grid: np.ndarray, seed: int) -> None:
    ratings = np.random.default_rng(seed).uniform(size=(3, grid.size))
    width = grid[-1] - grid[0]
    expected = np.trapezoid(ratings, grid) / width if width else ratings[:, 0]
    np.testing.assert_allclose(as_preference("uniform", grid).values(ratings), expected)


@given(grids, st.integers(0, 1000))
def test_log_uniform_equals_the_area_over_the_logarithm_of_time(grid: np.ndarray, seed: int) -> None:
    ratings = np.random.default_rng(seed).uniform(size=(3, grid.size))
    width = np.log(grid[-1] / grid[0])
    expected = np.trapezoid(ratings, np.log(grid)) / width if width else ratings[:, 0]
    np.testing.assert_allclose(as_preference("log-uniform", grid).values(ratings), expected)


def test_log_uniform_at_equal_ratios_is_uniform_at_equal_distances() -> None:
    np.testing.assert_allclose(weights("log-uniform", 1, 10, 100, 1000), weights("uniform", 0, 1, 2, 3))


def test_log_uniform_cannot_start_at_time_zero() -> None:
    with pytest.raises(InvalidInputError, match='"log-uniform" needs positive timepoints, and the first is 0'):
        weights("log-uniform", 0, 1, 10)


@pytest.mark.parametrize("name", ["uniform", "log-uniform", "final"])
def test_a_single_timepoint_takes_all_the_weight(name: str) -> None:
    assert weights(name, 0.0).tolist() == [1.0]


def test_final_is_the_last_rating_and_worst_the_lowest() -> None:
    ratings = np.array([[0.5, 0.2, 0.3], [0.4, 0.6, 0.9]])
    grid = np.array([1.0, 2.0, 3.0])
    assert as_preference("final", grid).values(ratings).tolist() == [0.3, 0.9]
    assert as_preference("worst", grid).values(ratings).tolist() == [0.2, 0.4]
    assert as_preference("worst", grid).weights is None


@given(st.lists(st.floats(0.001, 1), min_size=3, max_size=3), st.sampled_from([1e-300, 0.1, 7.0, 1.7e308]))
def test_only_the_ratios_of_weights_matter(given_weights: list[float], factor: float) -> None:
    one, other = weights(given_weights, 1, 2, 3), weights(np.array(given_weights) * factor, 1, 2, 3)
    np.testing.assert_allclose(one, other, rtol=1e-12)
    assert one.sum() == pytest.approx(1.0)


def test_weights_are_copied_and_cannot_be_changed_later() -> None:
    mine = np.array([1.0, 3.0])
    found = weights(mine, 1, 2)
    assert mine.tolist() == [1.0, 3.0]
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([1, 2], "a weight for each of 3 timepoints, got 2"),
        ([1, 2, -1], "not negative, got -1"),
        ([1, 2, np.nan], "finite and not negative, got nan"),
        ([1, 2, np.inf], "finite and not negative, got inf"),
        ([0, 0, 0], "all are 0"),
        ([[1, 2, 3]], "expected a list of numbers"),
        (["a", "b", "c"], "expected numbers"),
        (None, "expected"),
        ("median", "expected one of uniform, log-uniform, final, worst, a weight .* got 'median'"),
        (stats.norm, "the distribution norm is not frozen. Call it first"),
        (stats.norm([1, 2], 1), "expected one distribution of a budget, got several"),
        (stats.norm(0, -1), "do not increase from 0 to 1"),
    ],
)
def test_a_preference_without_meaning_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        as_preference(wrong, np.array([1.0, 2.0, 3.0]))


def test_weights_that_are_no_vector_are_refused_as_a_preference() -> None:
    with pytest.raises(InvalidInputError, match=r"^preference\b"):
        weights([[1, 2, 3], [4, 5, 6]], 1, 2, 3)


def test_a_budget_is_served_by_the_last_timepoint_it_reaches() -> None:
    # Uniform from 0 to 10: below 2 and up to 5 the first timepoint serves, from 5 to 9 the second, beyond the last.
    np.testing.assert_allclose(weights(stats.uniform(0, 10), 2, 5, 9), [0.5, 0.4, 0.1])


def test_a_budget_of_exactly_a_timepoint_reaches_it() -> None:
    coin = stats.rv_discrete(values=([5, 9], [0.25, 0.75]))()
    np.testing.assert_allclose(weights(coin, 2, 5, 9), [0.0, 0.25, 0.75])
    np.testing.assert_allclose(weights(coin, 5, 7, 8), [0.25, 0.0, 0.75])


@pytest.mark.parametrize("off", [-1e-6, 1e-6])
def test_probabilities_that_rounding_takes_out_of_bounds_count_as_the_bounds(off: float) -> None:
    rounded = SimpleNamespace(cdf=lambda times: np.where(times < 3, min(off, 0.0), 1 + max(off, 0.0)))
    np.testing.assert_array_equal(weights(rounded, 1, 2, 3), [0.0, 1.0, 0.0])


@given(st.floats(0.1, 3), st.floats(1, 1000), grids)
def test_the_probabilities_of_a_budget_are_all_used(shape: float, scale: float, grid: np.ndarray) -> None:
    found = weights(stats.lognorm(shape, scale=scale), *grid)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("budget", "place"), [(0.0, 0), (1.5, 0), (2.5, 1), (3.5, 2), (99.0, 2)])
def test_a_certain_budget_gives_all_weight_to_one_timepoint(budget: float, place: int) -> None:
    np.testing.assert_allclose(weights(stats.norm(budget, 1e-6), 1, 2, 3), np.eye(3)[place], atol=1e-12)


def test_distributions_of_both_kinds_have_a_telling_name() -> None:
    grid = np.array([1.0, 2.0])
    assert as_preference(stats.lognorm(0.5, scale=90), grid).name == "lognorm(0.5, scale=90)"

    class Mine:
        def cdf(self, x: Any) -> Any:
            return np.clip(np.asarray(x) / 4, 0, 1)

        def __repr__(self) -> str:
            return "up to 4"

    mine = as_preference(Mine(), grid)  # type: ignore[arg-type]
    assert mine.name == "up to 4"
    assert mine.weights is not None
    assert mine.weights.tolist() == [0.5, 0.5]


def test_a_function_gets_the_ratings_of_one_algorithm_over_time() -> None:
    shapes = []

    def early_and_late(ratings: np.ndarray) -> float:
        shapes.append(ratings.shape)
        return min(ratings[0], ratings[-1])

    ratings = np.random.default_rng(0).uniform(size=(4, 2, 3))
    preference = as_preference(early_and_late, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(preference.values(ratings), np.minimum(ratings[..., 0], ratings[..., 2]))
    assert shapes == [(3,)] * 8
    assert preference.name == "early_and_late"
    assert preference.weights is None


def test_a_function_that_works_in_place_changes_no_result() -> None:
    def median(ratings: np.ndarray) -> float:
        ratings.sort()
        return float(ratings[1])

    ratings = np.array([[0.3, 0.1, 0.2]])
    assert as_preference(median, np.arange(3.0)).values(ratings).tolist() == [0.2]
    assert ratings.tolist() == [[0.3, 0.1, 0.2]]


def test_a_vectorized_function_is_called_once_with_time_last() -> None:
    calls = []

    @vectorized
    def second(ratings: np.ndarray) -> np.ndarray:
        calls.append(ratings.shape)
        return ratings[..., 1]

    ratings = np.random.default_rng(0).uniform(size=(4, 2, 3))
    preference = as_preference(second, np.arange(3.0))
    np.testing.assert_array_equal(preference.values(ratings), ratings[..., 1])
    assert calls == [(4, 2, 3)]
    assert preference.name == "second"


@pytest.mark.parametrize("value", [np.nan, np.inf, None, "0.5", [0.5], np.array([1.0, 2.0]), True])
def test_a_function_must_return_one_finite_number(value: Any) -> None:
    def mine(_: np.ndarray) -> Any:
        return value

    with pytest.raises(InvalidInputError, match="preference mine: expected one finite number"):
        as_preference(mine, np.arange(2.0)).values(np.ones((1, 2)))


def test_a_vectorized_function_must_return_a_finite_value_for_each_algorithm() -> None:
    ratings = np.ones((4, 2, 3))
    with pytest.raises(InvalidInputError, match=r"shape \[4, 2\] for .* \[4, 2, 3\], got \[2, 3\]. Time is the last"):
        as_preference(vectorized(lambda r: r[-1]), np.arange(3.0)).values(ratings)
    with pytest.raises(InvalidInputError, match="expected finite values"):
        as_preference(vectorized(lambda r: r[..., 0] * np.nan), np.arange(3.0)).values(ratings)
