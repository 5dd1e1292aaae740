from __future__ import annotations

import math
import sys

import numpy as np
import pandas as pd
import pytest
from builders import run
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import Trajectory, best_at
from polarbear_plugins.errors import InvalidInputError, MissingExtraError
from polarbear_plugins.measures.attainment import attained, attainment_differences, attainment_surfaces

BUDGET, LOWER, UPPER = 20.0, 1.0, 10.0
# Inside the window, on its steps and between them.
GRID = np.arange(0, BUDGET, 0.5)
VALUES = np.arange(LOWER, UPPER, 0.5)


@st.composite
def runs(draw: st.DrawFn) -> list[Trajectory]:
    """Some runs; values may lie outside the bounds, and a run may find nothing."""
    made = []
    for seed in range(draw(st.integers(1, 5))):
        times = sorted(draw(st.sets(st.integers(0, 25), max_size=6)))
        best = sorted(draw(st.sets(st.integers(-1, 13), min_size=len(times), max_size=len(times))), reverse=True)
        made.append(run(times, best, seed=seed, horizon=30))
    return made


def reference(group: list[Trajectory]) -> np.ndarray:
    """Share of the runs with a value at most as large, by the definition."""
    best = np.stack([best_at(each, GRID) for each in group])
    return (best[:, :, None] <= VALUES).mean(axis=0)


def painted(rectangles: pd.DataFrame) -> np.ndarray:
    """The differences at the points of the grid; overlapping rectangles would add up."""
    seen = np.zeros((GRID.size, VALUES.size))
    for each in rectangles.itertuples():
        across = (each.time_from <= GRID) & (each.time_to > GRID)
        seen[np.ix_(across, (each.value_from <= VALUES) & (each.value_to > VALUES))] += each.difference
    return seen


def test_known_shares() -> None:
    two = [run([2, 6], [8, 3]), run([4], [5])]
    expected = [[0, 0, 0], [0.5, 0, 0], [1, 0.5, 0], [1, 1, 0.5]]
    np.testing.assert_array_equal(attained(two, [1, 2, 4, 6], [3, 5, 8]), expected)


@given(runs())
def test_shares_follow_the_definition(group: list[Trajectory]) -> None:
    np.testing.assert_array_equal(attained(group, GRID, VALUES)[:, ::-1], reference(group))


def test_runs_that_were_not_watched_so_long_are_refused() -> None:
    two = [run([1], [5.0]), run([1], [5.0], horizon=10)]
    with pytest.raises(InvalidInputError, match=r"watched until 10\) was not watched until 11.*hold_last_value"):
        attained(two, [11], [5])
    with pytest.raises(InvalidInputError, match="attained: there are no trajectories"):
        attained([], [11], [5])


class TestThroughMoocore:
    @pytest.fixture(autouse=True)
    def _moocore(self) -> None:
        pytest.importorskip("moocore")

    def test_known_surfaces(self) -> None:
        two = [run([2, 6], [8, 3]), run([4], [5])]
        frame = attainment_surfaces(two, BUDGET, LOWER, UPPER)
        corners = [(50, 2, 8), (50, 4, 5), (50, 6, 3), (100, 4, 8), (100, 6, 5)]
        assert list(frame.itertuples(index=False, name=None)) == corners
        median = attainment_surfaces(two, BUDGET, LOWER, UPPER, percentiles=[100])
        assert list(median.itertuples(index=False, name=None)) == corners[3:]

    def test_values_below_the_lower_bound_count_as_the_bound(self) -> None:
        frame = attainment_surfaces([run([2, 3, 6], [8, 0.5, 0.1])], BUDGET, LOWER, UPPER)
        assert list(frame.itertuples(index=False, name=None)) == [(100, 2, 8), (100, 3, 1)]
        beyond = attainment_differences([run([2], [0.5])], [run([4], [0.1])], BUDGET, LOWER, UPPER)
        assert list(beyond.itertuples(index=False, name=None)) == [(2, 4, 1, 10, 1)]

    def test_a_run_that_found_nothing_counts_as_a_run(self) -> None:
        frame = attainment_surfaces([run([2], [8]), run([], [], seed=1), run([3], [99], seed=2)], BUDGET, LOWER, UPPER)
        assert frame["percentile"].tolist() == pytest.approx([100 / 3])
        assert attainment_surfaces([run([], [])], BUDGET, LOWER, UPPER).empty

    @given(group=runs())
    def test_surfaces_are_where_so_many_runs_arrived(self, group: list[Trajectory]) -> None:
        share = reference(group)
        frame = attainment_surfaces(group, BUDGET, LOWER, UPPER)
        for level in range(1, len(group) + 1):
            corners = frame[np.isclose(frame["percentile"], 100 * level / len(group))]
            reached = np.zeros(share.shape, dtype=bool)
            for each in corners.itertuples():
                reached |= (GRID[:, None] >= each.time) & (each.value <= VALUES)
            np.testing.assert_array_equal(reached, share >= (level - 0.5) / len(group))

    def test_known_differences(self) -> None:
        frame = attainment_differences([run([2], [5])], [run([4], [3])], BUDGET, LOWER, UPPER)
        found = set(frame.itertuples(index=False, name=None))
        assert found == {(2, 4, 5, 10, 1), (4, 20, 3, 5, -1)}

    @given(first=runs(), second=runs())
    def test_differences_are_those_of_the_shares_whatever_the_numbers_of_runs(
        self, first: list[Trajectory], second: list[Trajectory]
    ) -> None:
        frame = attainment_differences(first, second, BUDGET, LOWER, UPPER)
        np.testing.assert_allclose(painted(frame), reference(first) - reference(second), atol=1e-12)

    @given(first=runs(), second=runs())
    def test_differences_change_sign_when_the_groups_change_places(
        self, first: list[Trajectory], second: list[Trajectory]
    ) -> None:
        one = attainment_differences(first, second, BUDGET, LOWER, UPPER)
        other = attainment_differences(second, first, BUDGET, LOWER, UPPER)
        np.testing.assert_allclose(painted(one), -painted(other), atol=1e-12)

    @given(group=runs())
    def test_a_group_does_not_differ_from_itself(self, group: list[Trajectory]) -> None:
        assert attainment_differences(group, group[::-1], BUDGET, LOWER, UPPER).empty

    def test_numbers_of_runs_that_take_too_much_to_compare_are_refused(self) -> None:
        one = [run([1], [5.0], seed=seed) for seed in range(97)]
        with pytest.raises(InvalidInputError, match="97 and 96 runs take 9,312 sets"):
            attainment_differences(one, one[:-1], BUDGET)

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"budget": 0}, "budget must be positive"),
            ({"budget": 101}, "was not watched until 101"),
            ({"lower": 0}, "expected 0 < lower < upper"),
            ({"lower": 3, "upper": 2}, "expected 0 < lower < upper"),
            ({"upper": math.inf}, "upper: expected a finite number"),
        ],
    )
    def test_a_window_that_means_nothing_is_refused(self, wrong: dict[str, float], message: str) -> None:
        with pytest.raises(InvalidInputError, match=message):
            attainment_differences([run([1], [5.0])], [run([2], [5.0])], **{"budget": BUDGET, **wrong})
        with pytest.raises(InvalidInputError, match=message):
            attainment_surfaces([run([1], [5.0])], **{"budget": BUDGET, **wrong})

    def test_percentiles_that_mean_nothing_are_refused(self) -> None:
        with pytest.raises(InvalidInputError, match="between 0 and 100"):
            attainment_surfaces([run([1], [5.0])], BUDGET, percentiles=[101])


def test_a_missing_moocore_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "moocore", None)
    with pytest.raises(MissingExtraError, match=r"attainment_surfaces needs 'moocore'.*polarbear-plugins\[eaf\]"):
        attainment_surfaces([run([1], [5.0])], BUDGET)
    with pytest.raises(MissingExtraError, match=r"attainment_differences needs 'moocore'"):
        attainment_differences([run([1], [5.0])], [run([1], [5.0])], BUDGET)
