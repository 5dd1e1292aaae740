from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins.errors import InvalidInputError, PolarBearError
from polarbear_plugins.trajectories.timepoints import as_timepoints, log_timepoints, uniform_timepoints

Grid = Callable[..., np.ndarray]
both_grids = pytest.mark.parametrize("grid", [log_timepoints, uniform_timepoints])
ends = st.tuples(st.floats(1e-3, 1e6), st.floats(1.01, 1e6)).map(lambda pair: (pair[0], pair[0] * pair[1]))


@both_grids
@given(ends=ends, count=st.integers(2, 60))
def test_a_grid_has_its_ends_its_count_and_increases(grid: Grid, ends: tuple[float, float], count: int) -> None:
    timepoints = grid(*ends, count)
    assert (timepoints[0], timepoints[-1]) == ends
    assert timepoints.shape == (count,)
    assert (np.diff(timepoints) > 0).all()


@given(ends=ends, count=st.integers(3, 60))
def test_log_timepoints_lie_at_equal_ratios(ends: tuple[float, float], count: int) -> None:
    timepoints = log_timepoints(*ends, count)
    np.testing.assert_allclose(timepoints[1:] / timepoints[:-1], (ends[1] / ends[0]) ** (1 / (count - 1)), rtol=1e-9)


@given(first=st.floats(0, 1e6), length=st.floats(1e-2, 1e6), count=st.integers(3, 60))
def test_uniform_timepoints_lie_at_equal_distances(first: float, length: float, count: int) -> None:
    steps = np.diff(uniform_timepoints(first, first + length, count))
    np.testing.assert_allclose(steps, length / (count - 1), rtol=1e-5)


def test_uniform_timepoints_may_begin_at_zero() -> None:
    np.testing.assert_array_equal(uniform_timepoints(0, 100, 5), [0, 25, 50, 75, 100])


@both_grids
def test_a_single_timepoint_is_both_ends(grid: Grid) -> None:
    np.testing.assert_array_equal(grid(7, 7, 1), [7])
    np.testing.assert_array_equal(grid(7, 7, 1, integer=True), [7])


@both_grids
@given(data=st.data(), first=st.floats(1, 500), length=st.floats(2, 500))
def test_whole_timepoints_are_distinct_and_fill_the_space_between_the_ends(
    grid: Grid, data: st.DataObject, first: float, length: float
) -> None:
    low, high = math.ceil(first), math.floor(first + length)
    count = data.draw(st.integers(2, high - low + 1))
    timepoints = grid(first, first + length, count, integer=True)
    assert timepoints.shape == (count,)
    assert (timepoints == np.rint(timepoints)).all()
    assert (np.diff(timepoints) >= 1).all()
    assert (timepoints[0], timepoints[-1]) == (low, high)


@both_grids
@given(first=st.integers(1, 500), length=st.integers(1, 5000), count=st.integers(2, 40))
def test_whole_timepoints_are_the_rounded_ones_where_those_are_distinct(
    grid: Grid, first: int, length: int, count: int
) -> None:
    rounded = np.rint(grid(first, first + length, count))
    if (np.diff(rounded) > 0).all():
        np.testing.assert_array_equal(grid(first, first + length, count, integer=True), rounded)


@both_grids
def test_as_many_whole_timepoints_as_there_are_is_all_of_them(grid: Grid) -> None:
    np.testing.assert_array_equal(grid(3, 9, 7, integer=True), [3, 4, 5, 6, 7, 8, 9])
    np.testing.assert_array_equal(grid(2.5, 6.5, 4, integer=True), [3, 4, 5, 6])


def test_crowded_whole_timepoints_are_moved_apart() -> None:
    np.testing.assert_array_equal(log_timepoints(1, 20, 8, integer=True), [1, 2, 3, 4, 6, 8, 13, 20])


@both_grids
def test_whole_timepoints_may_reach_beyond_all_whole_numbers_of_the_machine(grid: Grid) -> None:
    timepoints = grid(1, 1e19, 5, integer=True)
    assert (timepoints[0], timepoints[-1], timepoints.size) == (1, 1e19, 5)
    assert (np.diff(timepoints) >= 1).all()


@both_grids
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((math.nan, 10, 3), "first: expected a finite number, got nan"),
        ((1, math.inf, 3), "last: expected a finite number, got inf"),
        ((1, None, 3), "last: expected a finite number, got None"),
        (("now", 10, 3), "first: expected a finite number, got 'now'"),
        ((-1, 10, 3), "first must not be negative, got -1"),
        ((10, 1, 3), "first must lie before last, got 10 and 1"),
        ((10, 10, 3), "first must lie before last, got 10 and 10"),
        ((1, 10, 1), "one timepoint needs first == last, got 1 and 10"),
        ((1, 10, 0), "count must be a whole number of at least 1, got 0"),
        ((1, 10, -3), "count must be a whole number of at least 1, got -3"),
        ((1, 10, 2.0), r"count must be a whole number of at least 1, got 2\.0"),
        ((1, 10, True), "count must be a whole number of at least 1, got True"),
    ],
)
def test_ends_and_counts_that_mean_nothing_are_refused(grid: Grid, arguments: tuple[object], message: str) -> None:
    with pytest.raises(PolarBearError, match=f"^{grid.__name__}: {message}"):
        grid(*arguments)


@both_grids
@pytest.mark.parametrize("arguments", [(1, 10, 11), (1.5, 4.5, 4), (1.2, 1.8, 2), (2.5, 2.5, 1)])
def test_more_whole_timepoints_than_there_are_is_refused(grid: Grid, arguments: tuple[float, float, int]) -> None:
    first, last, count = arguments
    with pytest.raises(
        PolarBearError,
        match=f"^{grid.__name__}: there are fewer than {count} whole timepoints between {first} and {last}; ask",
    ):
        grid(first, last, count, integer=True)


def test_log_timepoints_cannot_begin_at_zero() -> None:
    with pytest.raises(PolarBearError, match=r"^log_timepoints: first must be positive, got 0\. Use uniform_"):
        log_timepoints(0, 10, 3)


def test_a_checked_grid_is_a_read_only_copy() -> None:
    given_grid = np.array([0.0, 1.0, 5.0])
    checked = as_timepoints(given_grid)
    given_grid[:] = 9
    np.testing.assert_array_equal(checked, [0, 1, 5])
    with pytest.raises(ValueError, match="read-only"):
        checked[0] = 3


@pytest.mark.parametrize(
    ("timepoints", "message"),
    [
        ([], "timepoints: expected at least one, got none"),
        ([1, 3, 2], "timepoints: times must increase strictly, got 2 after 3 at position 2"),
        ([1, 1], "timepoints: times must increase strictly, got 1 after 1 at position 1"),
        ([-1, 2], "timepoints: times must not be negative, got -1"),
        ([1, math.nan], "timepoints: times must be finite, got nan at position 1"),
        ([1, math.inf], "timepoints: times must be finite, got inf at position 1"),
        (["1"], r"timepoints: expected numbers, got \['1'\]"),
        ([[1, 2]], r"timepoints: expected a list of numbers, got an array of shape \(1, 2\)"),
        (3, r"timepoints: expected a list of numbers, got an array of shape \(\)"),
    ],
)
def test_what_is_no_grid_is_refused(timepoints: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^{message}"):
        as_timepoints(timepoints)
