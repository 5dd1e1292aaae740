from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from builders import run
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import Trajectory, best_at
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.tables import expected_running_time, fixed_budget, fixed_target

INF, NAN = math.inf, math.nan


@st.composite
def runs(draw: st.DrawFn) -> list[Trajectory]:
    """Some runs of one algorithm, watched for various times; some find nothing."""
    made = []
    for seed in range(draw(st.integers(1, 5))):
        times = sorted(draw(st.sets(st.integers(0, 30), max_size=6)))
        steps = draw(st.lists(st.integers(0, 3), min_size=len(times), max_size=len(times)))
        best = 10.0 - np.cumsum(steps)
        made.append(run(times, best, horizon=max([*times, 1]) + draw(st.integers(0, 20)), seed=seed))
    return made


THREE = [run([1, 10], [8, 1]), run([2, 50], [4, 2]), run([5], [16], horizon=40)]


def test_known_values_at_budgets() -> None:
    table = fixed_budget(THREE, [1, 20, 100])
    assert list(table.columns) == ["runs", "mean", "std", "geometric_mean", "min", "median", "max"]
    np.testing.assert_allclose(table.loc["a", 1], [3, INF, NAN, INF, 8, INF, INF])  # two runs have nothing yet
    np.testing.assert_allclose(table.loc["a", 20], [3, 7, math.sqrt(63), 4, 1, 4, 16])
    np.testing.assert_allclose(table.loc["a", 100], [2, 1.5, math.sqrt(0.5), math.sqrt(2), 1, 1.5, 2])


def test_a_budget_that_nobody_was_watched_until_has_no_values() -> None:
    last = fixed_budget(THREE, [100, 101]).loc["a", 101]
    assert last["runs"] == 0
    assert last.drop("runs").isna().all()


def test_one_run_has_no_deviation_and_a_value_of_zero_has_a_geometric_mean_of_zero() -> None:
    row = fixed_budget([run([1], [0.0])], [50]).loc["a", 50]
    assert math.isnan(row["std"])
    assert row["geometric_mean"] == 0
    assert math.isnan(fixed_budget([run([1], [-1.0])], [50]).loc["a", 50]["geometric_mean"])


def test_known_times_to_targets() -> None:
    table = fixed_target(THREE, [1, 4, 0.5, 16])
    assert list(table.columns) == ["runs", "successes", "success_rate", "ert", "min", "median", "max"]
    assert table.index.get_level_values("target").tolist() == [16, 4, 1, 0.5]
    np.testing.assert_allclose(table.loc["a", 16], [3, 3, 1, (1 + 2 + 5) / 3, 1, 2, 5])
    np.testing.assert_allclose(table.loc["a", 4], [3, 2, 2 / 3, (10 + 2 + 40) / 2, 2, 10, INF])
    np.testing.assert_allclose(table.loc["a", 1], [3, 1, 1 / 3, 10 + 100 + 40, 10, INF, INF])
    np.testing.assert_allclose(table.loc["a", 0.5], [3, 0, 0, INF, INF, INF, INF])


def test_what_comes_after_the_budget_neither_succeeds_nor_costs() -> None:
    table = fixed_target(THREE, [2], budget=30)
    np.testing.assert_allclose(table.loc["a", 2][["successes", "ert"]], [1, 10 + 30 + 30])
    np.testing.assert_allclose(fixed_target(THREE, [2], budget=50).loc["a", 2]["ert"], (10 + 50 + 40) / 2)


def test_an_incumbent_that_was_good_once_has_reached_the_target() -> None:
    values = [5, 1, 4, 4, 4]
    risen = Trajectory(algorithm="a", instance="f", times=range(1, 6), best=values, horizon=9, incumbent=True)
    assert fixed_target([risen], [1]).loc["a", 1]["ert"] == 2


def test_algorithms_are_listed_by_name_and_apart() -> None:
    both = [run([3], [1], algorithm="a10"), run([1], [1], algorithm="a2")]
    assert expected_running_time(both, 1) == {"a2": 1, "a10": 3}
    assert list(expected_running_time(both, 1)) == ["a2", "a10"]


@given(runs(), st.integers(0, 12), st.none() | st.integers(1, 40))
def test_the_running_time_is_all_time_spent_over_successes(
    given_runs: list[Trajectory], target: int, budget: int | None
) -> None:
    spent, successes = 0.0, 0
    for each in given_runs:
        last = min(each.horizon, INF if budget is None else budget)
        reached = [t for t, value in zip(each.times, each.best, strict=True) if value <= target and t <= last]
        spent += reached[0] if reached else last
        successes += bool(reached)
    expected = spent / successes if successes else INF
    assert expected_running_time(given_runs, target, budget) == {"a": pytest.approx(expected)}


@given(runs())
def test_the_order_of_the_runs_does_not_matter(given_runs: list[Trajectory]) -> None:
    tables = fixed_budget(given_runs, [3, 9]), fixed_target(given_runs, [9, 5])
    for order in list(permutations(given_runs))[:10]:
        assert fixed_budget(order, [3, 9]).equals(tables[0])
        assert fixed_target(order, [9, 5]).equals(tables[1])


@given(runs(), st.integers(1, 40))
def test_values_at_a_budget_are_those_of_the_trajectories(given_runs: list[Trajectory], budget: int) -> None:
    values = [float(best_at(each, [budget])[0]) for each in given_runs if each.horizon >= budget]
    row = fixed_budget(given_runs, [budget]).loc["a", budget]
    assert row["runs"] == len(values)
    if values:
        assert (row["min"], row["max"]) == (min(values), max(values))
        assert row["mean"] == pytest.approx(math.fsum(values) / len(values))


@given(runs())
def test_an_easier_target_never_takes_longer(given_runs: list[Trajectory]) -> None:
    table = fixed_target(given_runs, [10, 7, 4])
    for column in ("ert", "min", "median", "max"):
        assert table[column].is_monotonic_increasing
    assert table["successes"].is_monotonic_decreasing


@pytest.mark.parametrize("targets", [[], [1, 1], [NAN], [INF], "1", [[1.0]]])
def test_targets_that_mean_nothing_are_refused(targets: object) -> None:
    with pytest.raises(InvalidInputError, match="targets"):
        fixed_target(THREE, targets)  # type: ignore[arg-type]


def test_no_runs_and_no_budgets_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="fixed_budget: there are no trajectories"):
        fixed_budget([], [1])
    with pytest.raises(InvalidInputError, match="fixed_target: there are no trajectories"):
        fixed_target([], [1])
    with pytest.raises(InvalidInputError, match="timepoints"):
        fixed_budget(THREE, [])
    with pytest.raises(InvalidInputError, match="budget must be positive, got 0"):
        fixed_target(THREE, [1], budget=0)
    with pytest.raises(InvalidInputError, match="Expected Trajectory objects, got dict"):
        fixed_target([{}], [1])  # type: ignore[list-item]
