from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins.errors import InvalidInputError, PolarBearError
from polarbear_plugins.trajectories.recording import HorizonReached, Recorder
from polarbear_plugins.trajectories.trajectory import Trajectory

LABELS = {"algorithm": "a", "instance": "f", "seed": 3}


def recorded(recorder: Recorder, values: list[float]) -> Trajectory:
    """The trajectory of a run that gets these values, until it is ended or they end."""
    left = iter(values)
    objective = recorder.watch(lambda _: next(left))
    try:
        for _ in values:
            objective(None)
    except HorizonReached:
        pass
    return recorder.trajectory(**LABELS)  # type: ignore[arg-type]


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=30), st.integers(1, 30), st.booleans()
)
def test_the_trajectory_is_that_of_the_evaluations_up_to_the_horizon(
    values: list[float], horizon: int, fraction: bool
) -> None:
    until = horizon + 0.5 * fraction
    counted = values[: int(until)]
    recorder = Recorder("evaluations", until)
    if np.isnan(counted).any() and not (np.array(counted) < np.inf).any():
        with pytest.raises(PolarBearError, match="evaluations gave nan"):
            recorded(recorder, values)
    else:
        expected = Trajectory.from_evaluations(counted, horizon=until, **LABELS)  # type: ignore[arg-type]
        assert recorded(recorder, values) == expected


def test_a_run_ends_with_the_evaluation_that_reaches_the_budget_and_not_one_later() -> None:
    calls = []
    recorder = Recorder("evaluations", 7)
    objective = recorder.watch(lambda x: calls.append(x) or 1.0)
    for x in range(6):
        assert objective(x) == 1.0
    with pytest.raises(HorizonReached):
        objective(6)
    assert calls == list(range(7))


@pytest.mark.parametrize(("axis", "horizon", "over"), [("evaluations", 0.9, True), ("evaluations", 1, False)])
def test_a_horizon_before_the_first_evaluation_leaves_an_empty_trajectory(
    axis: str, horizon: float, over: bool
) -> None:
    recorder = Recorder(axis, horizon)
    assert recorder.over is over
    assert recorder.trajectory(**LABELS).times.size == 0  # type: ignore[arg-type]
    assert Recorder("seconds", 0).over
    assert not Recorder("seconds", 0.01).over


def test_seconds_are_counted_from_the_start_and_what_comes_too_late_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 101.0, 104.0, 105.5, 106.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    run = recorded(Recorder("seconds", 5), [4.0, 3.0, 2.0, 1.0])
    assert next(clock) == 106.0
    assert (run.times.tolist(), run.best.tolist(), run.horizon) == ([1.0, 4.0], [4.0, 3.0], 5.0)


def test_an_evaluation_that_ends_at_the_horizon_counts_and_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 105.0, 106.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    assert recorded(Recorder("seconds", 5), [4.0, 3.0]).times.tolist() == [5.0]
    assert next(clock) == 106.0


def test_of_improvements_at_the_same_moment_the_last_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 11.0, 11.0, 11.0, 12.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    run = recorded(Recorder("seconds", 5), [4.0, 3.0, 2.0, 1.0])
    assert (run.times.tolist(), run.best.tolist()) == ([1.0, 2.0], [2.0, 1.0])


def test_an_error_of_the_objective_is_not_taken_for_the_end() -> None:
    def broken(_: object) -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Recorder("evaluations", 5).watch(broken)(None)


@pytest.mark.parametrize("axis", ["evaluations", "seconds"])
@pytest.mark.parametrize("value", ["x", [1.0, 2.0], None])
def test_what_is_no_number_is_an_error_at_once(axis: str, value: object) -> None:
    with pytest.raises(TypeError):
        recorded(Recorder(axis, 2), [value, value])  # type: ignore[list-item]


@pytest.mark.parametrize(("axis", "horizon"), [("weeks", 5.0), (None, 5.0), ("seconds", -1.0), ("seconds", math.nan)])
def test_axes_and_horizons_without_meaning_are_refused(axis: str, horizon: float) -> None:
    with pytest.raises(InvalidInputError, match=r"axis|horizon"):
        Recorder(axis, horizon)
