from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import Trajectory
from polarbear_plugins.anytime import area_over_curve, mean_area_over_curve
from polarbear_plugins.errors import InvalidInputError


def run(times: list[float], best: list[float], horizon: float = 100, algorithm: str = "a") -> Trajectory:
    return Trajectory(algorithm=algorithm, instance="f", times=times, best=best, horizon=horizon)


@pytest.mark.parametrize(
    ("times", "best", "expected"),
    [
        ([0], [1e-8], 1.0),
        ([0], [1e2], 0.0),
        ([0], [1e-3], 0.5),  # halfway on the log scale
        ([50], [1e-8], 0.5),  # nothing at first is as bad as the upper bound
        ([0, 25], [1e2, 1e-3], 0.375),
        ([0], [0.0], 1.0),  # what is better than the lower bound counts as the bound
        ([0], [1e9], 0.0),
        ([], [], 0.0),
    ],
)
def test_known_areas(times: list[float], best: list[float], expected: float) -> None:
    assert area_over_curve(run(times, best), 100) == pytest.approx(expected)


@given(st.lists(st.floats(-9, 3), min_size=1, max_size=20), st.integers(1, 40))
def test_the_area_is_the_mean_over_evaluations(logs: list[float], budget: int) -> None:
    values = np.minimum.accumulate(10.0 ** np.array(logs))
    each = [values[min(step, len(values) - 1)] for step in range(budget)]
    expected = np.mean(1 - (np.log10(np.clip(each, 1e-8, 1e2)) + 8) / 10)
    steps = list(range(len(values)))
    assert area_over_curve(run(steps, values.tolist()), budget) == pytest.approx(expected)


def test_a_better_run_has_no_smaller_area() -> None:
    assert area_over_curve(run([0, 10], [1.0, 0.1]), 100) > area_over_curve(run([0, 20], [1.0, 0.1]), 100)


def test_means_are_over_the_runs_that_were_watched_so_long() -> None:
    runs = [run([0], [1e2]), run([0], [1e-8]), run([0], [1e-8], horizon=50), run([0], [1e-3], algorithm="b")]
    assert mean_area_over_curve(runs, 100) == {"a": (0.5, 2), "b": (0.5, 1)}


@pytest.mark.parametrize("wrong", [{"budget": 101}, {"budget": 0}, {"lower": 0.0}, {"lower": 2.0, "upper": 1.0}])
def test_what_has_no_meaning_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError):
        area_over_curve(run([0], [1.0]), **{"budget": 100, **wrong})
