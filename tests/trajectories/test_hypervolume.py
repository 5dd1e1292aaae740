"""The hypervolume that runs lack to the front of all runs on their instance."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import rank, read_trajectories
from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError, SourceError
from polarbear_plugins.trajectories.hypervolume import hypervolume_losses

pytest.importorskip("moocore")

VALUES = st.integers(0, 5).map(float)
RUNS = st.lists(
    st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=6).map(lambda run: np.array(run)), min_size=1, max_size=4
)


def by_cells(points: FloatArray, lower: FloatArray, span: FloatArray) -> float:
    """Hypervolume up to 1 beyond the nadir: the cells between all coordinates of which some point is better."""
    scaled = (points - lower) / span
    axes = [np.unique(np.append(scaled[:, column], 2.0)) for column in range(scaled.shape[1])]
    total = 0.0
    for cell in product(*(range(len(axis) - 1) for axis in axes)):
        low = np.array([axis[place] for axis, place in zip(axes, cell, strict=True)])
        high = np.array([axis[place + 1] for axis, place in zip(axes, cell, strict=True)])
        total += float((high - low).prod()) * bool((scaled <= low).all(axis=1).any())
    return total


@given(RUNS)
def test_losses_are_those_of_the_definition(runs: list[FloatArray]) -> None:
    everything = np.concatenate(runs)
    lower, span = everything.min(axis=0), np.ptp(everything, axis=0)
    span[span == 0] = 1
    best = by_cells(everything, lower, span)
    for run, losses in zip(runs, hypervolume_losses(runs), strict=True):
        expected = [best - by_cells(run[: place + 1], lower, span) for place in range(len(run))]
        np.testing.assert_allclose(losses, expected, atol=1e-9)


@given(RUNS, st.floats(0.1, 10), st.floats(-5, 5))
def test_units_of_the_objectives_do_not_matter(runs: list[FloatArray], scale: float, shift: float) -> None:
    moved = [run * [scale, 1.0] + [shift, -shift] for run in runs]
    for losses, others in zip(hypervolume_losses(runs), hypervolume_losses(moved), strict=True):
        np.testing.assert_allclose(losses, others, atol=1e-6)


def test_whoever_finds_the_whole_front_lacks_nothing_and_failures_are_no_points() -> None:
    nan = np.nan
    losses = hypervolume_losses([[[nan, 1], [0, 4], [nan, nan], [2, 0]], [[2, 4]], [[nan, nan]]])
    np.testing.assert_array_equal(losses[0], [nan, 1, 1, 0])
    np.testing.assert_array_equal(losses[1], [2])
    np.testing.assert_array_equal(losses[2], [nan])


def test_a_further_run_changes_what_the_others_lack() -> None:
    before, after = (
        hypervolume_losses(runs)[0] for runs in ([[[1.0, 1.0]]], [[[1.0, 1.0]], [[0.0, 2.0]], [[2.0, 0.0]]])
    )
    assert before[0] == 0 < after[0]


@pytest.mark.parametrize(
    ("runs", "message"),
    [([[[1.0]]], "two or more objectives"), ([[[1, 2]], [[1, 2, 3]]], "same number of objectives")],
)
def test_points_of_another_shape_are_refused(runs: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        hypervolume_losses(runs)


# --- tables


def table(**columns: Any) -> pd.DataFrame:
    rows = {
        "algorithm": ["a", "a", "b"],
        "instance": "f",
        "time": [1, 2, 1],
        "acc": [0.9, 0.5, 0.5],
        "memory": [4.0, 0.0, 4.0],
    }
    return pd.DataFrame({**rows, **columns})


def losses_of(source: object, objectives: Any) -> dict[str, list[float]]:
    return {run.algorithm: run.best.tolist() for run in read_trajectories(source, objectives=objectives)}


@pytest.mark.parametrize("objectives", ["-acc,memory", ["-acc", "memory"]])
def test_columns_of_objectives_are_read_as_what_a_run_lacks(objectives: Any, tmp_path: Path) -> None:
    table().to_csv(tmp_path / "runs.csv", index=False)
    for source in (table(), str(tmp_path / "runs.csv")):
        found = losses_of(source, objectives)
        assert found["a"] == pytest.approx([1.0, 0.0])
        assert found["b"] == pytest.approx([2.0])
    assert rank(read_trajectories(table(), objectives=objectives), [1]).ranks.tolist() == [[[1, 2]]]


def test_instances_are_measured_by_themselves_and_may_have_other_objectives() -> None:
    nan = np.nan
    other = table(instance="g", acc=nan, speed=[0.0, 1.0, 1.0]).assign(memory=[4.0, 0.0, 4.0])
    both = pd.concat([table(speed=nan), other])
    runs = list(read_trajectories(both, objectives="-acc,memory,speed"))
    assert [run.best.tolist() for run in runs if run.instance == "f"] == [[1.0, 0.0], [2.0]]
    assert [run.best.tolist() for run in runs if run.instance == "g"] == [[1.0, 0.0], [2.0]]


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (table(), {"objectives": "-acc,mem"}, "no column 'mem'"),
        (table(), {"objectives": "acc"}, "two or more different columns"),
        (table(), {"objectives": "acc,-acc"}, "two or more different columns"),
        (table(), {"objectives": 3}, "names of columns, such as -acc,memory"),
        (table(), {"objectives": "-acc,memory", "maximize": True}, "takes the place of .* maximize"),
        (table(acc=np.nan), {"objectives": "-acc,memory"}, "the instance 'f' has values of 1 of the objectives"),
        (table(acc=[1.0, np.inf, 0.0]), {"objectives": "-acc,memory"}, "expected a finite number in 'acc', got inf"),
        (table(acc=["x", "1", "2"]), {"objectives": "-acc,memory"}, "row 0: expected a number in 'acc', got 'x'"),
        (table(), {}, "no column 'value'"),
    ],
)
def test_what_cannot_be_read_as_objectives_is_refused(
    frame: pd.DataFrame, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((InvalidInputError, SourceError), match=message):
        list(read_trajectories(frame, **options))


def test_several_tables_with_objectives_are_refused_since_each_would_have_its_own_nadir() -> None:
    with pytest.raises(InvalidInputError, match="all runs on an instance, so they must be in one table; got 2 sources"):
        list(read_trajectories(table(), table(algorithm="c"), objectives="-acc,memory"))
