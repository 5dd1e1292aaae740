from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polarbear_plugins import read_trajectories
from polarbear_plugins.errors import InvalidInputError, PolarBearError
from polarbear_plugins.trajectories.trajectory import Trajectory, best_at, sample_staircase

INF, NAN = math.inf, math.nan


def run(times: object, best: object, **more: object) -> Trajectory:
    return Trajectory(**{"algorithm": "csa", "instance": "f1", "times": times, "best": best, **more})


def evaluated(values: object, **more: object) -> Trajectory:
    return Trajectory.from_evaluations(values, **{"algorithm": "csa", "instance": "f1", **more})


@st.composite
def runs(draw: st.DrawFn) -> Trajectory:
    times = draw(st.lists(st.integers(0, 40), max_size=8, unique=True).map(sorted))
    size = len(times)
    best = draw(st.lists(st.integers(-9, 9) | st.just(INF), min_size=size, max_size=size).map(sorted))[::-1]
    return run(times, best, horizon=draw(st.integers(times[-1] if times else 0, 50)))


def staircase(trajectory: Trajectory, time: float) -> float:
    """What the class promises, one time at a time."""
    if time > trajectory.horizon:
        return NAN
    so_far = [value for at, value in zip(trajectory.times, trajectory.best, strict=True) if at <= time]
    return so_far[-1] if so_far else INF


# The staircase


def test_the_best_value_is_a_staircase() -> None:
    sampled = best_at(run([2, 10], [5.0, 2.0], horizon=20), [0, 1.9, 2, 9.9, 10, 20, 20.1, 30])
    np.testing.assert_array_equal(sampled, [INF, INF, 5, 5, 2, 2, NAN, NAN])


def test_a_run_without_a_value_has_nothing_up_to_its_horizon() -> None:
    np.testing.assert_array_equal(best_at(run([], [], horizon=3), [0, 3, 4]), [INF, INF, NAN])


@given(runs(), st.lists(st.integers(0, 60).map(lambda half: half / 2), min_size=1, unique=True).map(sorted))
def test_sampling_follows_the_definition(trajectory: Trajectory, timepoints: list[float]) -> None:
    expected = [staircase(trajectory, time) for time in timepoints]
    np.testing.assert_array_equal(best_at(trajectory, timepoints), expected)
    np.testing.assert_array_equal(sample_staircase(trajectory, np.array(timepoints)), expected)


def test_writing_into_a_sample_leaves_the_run_alone() -> None:
    trajectory = run([1, 2], [5.0, 3.0])
    best_at(trajectory, [1, 2])[:] = 0
    assert trajectory == run([1, 2], [5.0, 3.0])


def test_the_default_horizon_is_the_last_time() -> None:
    assert run([1, 7], [5.0, 2.0]).horizon == 7


@pytest.mark.parametrize(
    ("best", "read_as"),
    [
        ([5, NAN, 3, NAN], [5, 5, 3, 3]),
        ([NAN, NAN, 3, 2], [INF, INF, 3, 2]),
        ([NAN, NAN, NAN, NAN], [INF, INF, INF, INF]),
        ([INF, NAN, 3, -INF], [INF, INF, 3, -INF]),
        ([4, 4, 4, NAN], [4, 4, 4, 4]),
        ([NAN], [INF]),
    ],
)
def test_a_failed_evaluation_repeats_the_best_value_before_it(best: list[float], read_as: list[float]) -> None:
    trajectory = run(range(len(best)), best)
    np.testing.assert_array_equal(trajectory.best, read_as)
    assert trajectory == run(range(len(best)), read_as)


@pytest.mark.parametrize("timepoints", [[], [2, 1], [1, 1], [-1, 2], [NAN], [INF], [[1, 2]], ["a"]])
def test_sampling_refuses_what_is_no_grid(timepoints: list[object]) -> None:
    with pytest.raises(InvalidInputError, match=r"^timepoints: "):
        best_at(run([1], [1.0]), timepoints)


# From single evaluations


def test_only_improvements_are_kept_of_the_evaluations() -> None:
    trajectory = evaluated([4.0, 7.0, 4.0, NAN, 1.5, 3.0])
    np.testing.assert_array_equal(trajectory.times, [1, 5])
    np.testing.assert_array_equal(trajectory.best, [4, 1.5])
    assert trajectory.horizon == 6


def test_evaluations_have_the_times_and_the_horizon_given() -> None:
    assert evaluated([4.0, 5.0, 2.0], times=[0.5, 2, 8], horizon=9) == run([0.5, 8], [4.0, 2.0], horizon=9)


def test_a_run_is_watched_until_its_last_evaluation_even_if_that_failed() -> None:
    assert evaluated([4.0, 5.0, NAN], times=[1, 2, 8]).horizon == 8


@pytest.mark.parametrize("values", [[NAN, NAN], [INF, NAN], [INF, INF]])
def test_a_run_of_failures_has_no_value(values: list[float]) -> None:
    assert evaluated(values) == run([], [], horizon=2)


def test_leading_failures_are_times_without_a_value() -> None:
    assert evaluated([NAN, INF, 3.0]) == run([3], [3.0])


def test_maximised_evaluations_are_held_with_the_sign_turned() -> None:
    values = [1.0, NAN, 0.5, 3.0, -INF, INF]
    assert evaluated(values, maximize=True) == run([1, 4, 6], [-1.0, -3.0, -INF])


@given(st.lists(st.integers(-5, 5) | st.sampled_from([NAN, INF]), min_size=1, max_size=20))
def test_at_each_evaluation_the_best_value_is_the_smallest_so_far(values: list[float]) -> None:
    trajectory = evaluated(values)
    smallest = [min((v for v in values[:k] if not math.isnan(v)), default=INF) for k in range(1, len(values) + 1)]
    np.testing.assert_array_equal(best_at(trajectory, range(1, len(values) + 1)), smallest)
    assert (np.diff(trajectory.best) < 0).all()


@given(st.lists(st.integers(-5, 5) | st.sampled_from([NAN, INF, -INF]), min_size=1, max_size=20))
def test_maximising_is_minimising_the_negative(values: list[float]) -> None:
    assert evaluated(values, maximize=True) == evaluated([-value for value in values])


def test_no_evaluations_need_a_horizon() -> None:
    assert evaluated([], horizon=4) == run([], [], horizon=4)
    with pytest.raises(InvalidInputError, match=r"'csa' on 'f1' is empty: say with horizon="):
        evaluated([])


@pytest.mark.parametrize(
    ("values", "more", "message"),
    [
        ([1.0, 2.0], {"times": [1]}, "'csa' on 'f1': expected a value for each time, got 1 times, 2 values"),
        ([1.0, 2.0], {"times": [2, 1]}, "'csa' on 'f1': times must increase strictly, got 1 after 2"),
        ([1.0, 2.0], {"times": [1, NAN]}, "'csa' on 'f1': times must be finite, got nan at position 1"),
        ([2.0, 1.0], {"horizon": 1}, "'csa' on 'f1': horizon 1 lies before the last time 2"),
        ([1.0, 2.0], {"horizon": 1}, "'csa' on 'f1': horizon 1 lies before the last time 2"),
        ([NAN, NAN], {"horizon": 1}, "'csa' on 'f1': horizon 1 lies before the last time 2"),
        ([10**400], {}, "'csa' on 'f1': values: expected numbers, got .* too large"),
        (["low"], {}, r"'csa' on 'f1': values: expected numbers, got \['low'\]"),
        ([[1.0]], {}, r"'csa' on 'f1': values: expected a list of numbers, got an array of shape \(1, 1\)"),
        ([1.0], {"seed": "one"}, "'csa' on 'f1': seed must be a whole number, got 'one'"),
        ([1.0], {"algorithm": ""}, "algorithm of a trajectory: the name is empty"),
    ],
)
def test_evaluations_that_mean_nothing_are_refused(values: object, more: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        evaluated(values, **more)


# Immutability


@pytest.mark.parametrize("best", [[5.0, 2.0], [NAN, 2.0]])
def test_the_arrays_of_a_run_are_read_only(best: list[float]) -> None:
    trajectory = run([1, 2], best)
    for array in (trajectory.times, trajectory.best):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize("field", ["algorithm", "seed", "times", "best", "horizon"])
def test_the_fields_of_a_run_cannot_be_set(field: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(run([1], [1.0]), field, 3)


def test_a_run_does_not_share_the_arrays_it_was_made_from() -> None:
    times, best = np.array([1.0, 2.0]), np.array([5.0, 3.0])
    trajectory, from_values = run(times, best), evaluated(best, times=times)
    times[:] = best[:] = 0
    assert trajectory == from_values == run([1, 2], [5, 3])


def test_making_a_run_leaves_its_input_as_it_was() -> None:
    times, best = np.array([1.0, 2.0, 3.0]), np.array([NAN, 3.0, NAN])
    run(times, best)
    evaluated(best, times=times, maximize=True)
    np.testing.assert_array_equal(times, [1, 2, 3])
    np.testing.assert_array_equal(best, [NAN, 3, NAN])
    assert times.flags.writeable
    assert best.flags.writeable


# Equality, copies and names


def test_runs_are_equal_when_everything_is() -> None:
    assert run([1, 2], [5.0, 3.0], seed=4, horizon=9) == run((1, 2), np.array([5, 3]), seed=np.int64(4), horizon=9.0)


@pytest.mark.parametrize(
    "change",
    [
        {"algorithm": "msr"},
        {"instance": "f2"},
        {"seed": 1},
        {"times": [1, 3]},
        {"best": [5.0, 4.0]},
        {"horizon": 10},
        {"times": [1], "best": [5.0]},
    ],
)
def test_runs_that_differ_in_one_thing_are_not_equal(change: dict[str, object]) -> None:
    trajectory = run([1, 2], [5.0, 3.0], horizon=9)
    assert trajectory != dataclasses.replace(trajectory, **change)


def test_a_run_is_equal_to_nothing_but_runs() -> None:
    assert run([1], [1.0]) != "csa"


@settings(max_examples=30)
@given(runs())
def test_equal_runs_have_equal_hashes(trajectory: Trajectory) -> None:
    assert len({trajectory, dataclasses.replace(trajectory)}) == 1


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda run: pickle.loads(pickle.dumps(run))])  # noqa: S301
@settings(max_examples=30)
@given(trajectory=runs())
def test_copies_and_pickles_are_equal_to_the_run(
    duplicate: Callable[[Trajectory], Trajectory], trajectory: Trajectory
) -> None:
    twin = duplicate(trajectory)
    assert twin == trajectory
    assert hash(twin) == hash(trajectory)
    assert repr(twin) == repr(trajectory)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda run: pickle.loads(pickle.dumps(run))])  # noqa: S301
def test_the_arrays_of_copies_and_pickles_are_read_only(duplicate: Callable[[Trajectory], Trajectory]) -> None:
    twin = duplicate(run([1, 2], [5.0, 3.0]))
    for array in (twin.times, twin.best):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_replace_checks_like_the_constructor() -> None:
    trajectory = run([1, 2], [5.0, 3.0])
    assert dataclasses.replace(trajectory, horizon=8) == run([1, 2], [5.0, 3.0], horizon=8)
    with pytest.raises(InvalidInputError, match="horizon 1 lies before the last time 2"):
        dataclasses.replace(trajectory, horizon=1)


@pytest.mark.parametrize("number", [7, np.int32(7)])
def test_whole_numbers_are_names_by_their_decimal_text(number: int) -> None:
    trajectory = run([1], [1.0], algorithm=number, instance=number)
    assert (trajectory.algorithm, trajectory.instance) == ("7", "7")
    assert type(trajectory.algorithm) is str


def test_a_run_tells_who_it_is() -> None:
    described = repr(run([1, 10], [5.0, 2.0], seed=3, horizon=20))
    assert described == (
        "Trajectory(algorithm='csa', instance='f1', seed=3, 2 steps to 2 at time 10, watched until 20)"
    )
    assert "no value, watched until 5" in repr(run([], [], horizon=5))


# Errors


@pytest.mark.parametrize(
    ("times", "best", "message"),
    [
        (
            [1, 2, 3],
            [5, 2, 4],
            r"the best value so far cannot increase, got 4 after 2 at time 3\. Use .*from_evaluations",
        ),
        ([1, 2, 3], [5, NAN, 6], "the best value so far cannot increase, got 6 after 5 at time 3"),
        ([1, 2, 3], [NAN, 5, INF], "the best value so far cannot increase, got inf after 5 at time 3"),
        ([1, 3, 2], [5, 4, 3], "times must increase strictly, got 2 after 3 at position 2"),
        ([1, 1, 2], [5, 4, 3], "times must increase strictly, got 1 after 1 at position 1"),
        ([-1, 1, 2], [5, 4, 3], "times must not be negative, got -1"),
        ([1, NAN, 2], [5, 4, 3], "times must be finite, got nan at position 1"),
        ([NAN], [5], "times must be finite, got nan at position 0"),
        ([1, 2, INF], [5, 4, 3], "times must be finite, got inf at position 2"),
        ([-INF, 1, 2], [5, 4, 3], "times must be finite, got -inf at position 0"),
        ([1, 2, 3], [5, 4], "expected a value for each time, got 3 times, 2 values"),
        ([1], [], "expected a value for each time, got 1 times, 0 values"),
        ([], [], "is empty: say with horizon= how long it was watched"),
        (["1", "2"], [5, 4], r"times: expected numbers, got \['1', '2'\]"),
        ([1, 2], ["5", "4"], r"best: expected numbers, got \['5', '4'\]"),
        ([1, 2], [5, "low"], r"best: expected numbers, got \[5, 'low'\]"),
        ([1, 2], [5, object], "best: expected numbers, got"),
        ([1], np.array(["2020-01-01"], dtype="M8[D]"), "best: expected numbers, got"),
        ([1], [10**400], "best: expected numbers, got"),
        ([[1, 2]], [5, 4], r"times: expected a list of numbers, got an array of shape \(1, 2\)"),
        ([1, 2], [[5, 4]], r"best: expected a list of numbers, got an array of shape \(1, 2\)"),
        (1, [5], r"times: expected a list of numbers, got an array of shape \(\)"),
    ],
)
def test_times_and_values_that_mean_nothing_are_refused(times: object, best: object, message: str) -> None:
    with pytest.raises(PolarBearError, match=f"^trajectory of 'csa' on 'f1'.*{message}"):
        run(times, best)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"horizon": 1.5}, "trajectory of 'csa' on 'f1': horizon 1.5 lies before the last time 2"),
        ({"horizon": NAN}, "trajectory of 'csa' on 'f1': horizon: expected a finite number, got nan"),
        ({"horizon": INF}, "trajectory of 'csa' on 'f1': horizon: expected a finite number, got inf"),
        ({"horizon": "late"}, "trajectory of 'csa' on 'f1': horizon: expected a finite number, got 'late'"),
        ({"times": [], "best": [], "horizon": -1}, "'csa' on 'f1': horizon -1 lies before time 0"),
        ({"seed": 1.5}, "trajectory of 'csa' on 'f1': seed must be a whole number, got 1.5"),
        ({"seed": "1"}, "trajectory of 'csa' on 'f1': seed must be a whole number, got '1'"),
        ({"seed": True}, "trajectory of 'csa' on 'f1': seed must be a whole number, got True"),
        ({"seed": None}, "trajectory of 'csa' on 'f1': seed must be a whole number, got None"),
        ({"algorithm": ""}, "algorithm of a trajectory: the name is empty"),
        ({"algorithm": " \t"}, "algorithm of a trajectory: the name is empty"),
        ({"algorithm": None}, r"algorithm of a trajectory: expected a name \(text or a whole number\), got None"),
        ({"algorithm": 1.0}, r"algorithm of a trajectory: expected a name .*, got 1\.0"),
        ({"algorithm": True}, "algorithm of a trajectory: expected a name .*, got True"),
        ({"algorithm": b"csa"}, "algorithm of a trajectory: expected a name .*, got b'csa'"),
        ({"instance": ""}, "instance of a trajectory of 'csa': the name is empty"),
        ({"instance": ["f1"]}, r"instance of a trajectory of 'csa': expected a name .*, got \['f1'\]"),
    ],
)
def test_names_seeds_and_horizons_that_mean_nothing_are_refused(more: dict[str, object], message: str) -> None:
    with pytest.raises(PolarBearError, match=message):
        run(**{"times": [1, 2], "best": [5, 4], **more})


def test_the_value_of_an_incumbent_may_grow_and_survives_copies() -> None:
    made = run([1, 2, 3], [5.0, 2.0, 4.0], incumbent=True)
    assert best_at(made, [1, 2, 3]).tolist() == [5, 2, 4]
    assert copy.copy(made) == made
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301 - our own


def test_an_incumbent_without_a_value_is_refused() -> None:
    with pytest.raises(
        PolarBearError, match="trajectory of 'csa' on 'f1': an incumbent needs a value, got nan at position 1"
    ):
        run([1, 2], [5.0, NAN], incumbent=True)


def test_trajectories_are_read_back_from_their_tables() -> None:
    given = [run([1, 4], [8, seed], seed=seed, horizon=9) for seed in (0, 1)]
    assert list(read_trajectories(pd.concat([one.to_pandas() for one in given]))) == given


def test_a_run_can_be_described_without_copying_its_values() -> None:
    run = Trajectory(algorithm="a", instance="f", times=[1], best=[2.0], group="g", fixed_group=True, seed=3)
    known = run.described(dimension=5, end="stopped")
    assert (known.dimension, known.end, known.group, known.fixed_group, known.seed) == (5, "stopped", "g", True, 3)
    assert known.best is run.best
    assert known.described(dimension=None, end="unknown") == run
    with pytest.raises(InvalidInputError, match="dimension"):
        run.described(dimension=0, end="unknown")
    with pytest.raises(InvalidInputError, match="end"):
        run.described(dimension=None, end="never")  # type: ignore[arg-type]


def test_a_run_without_a_value_is_not_described_as_done() -> None:
    run = Trajectory(algorithm="a", instance="f", times=[], best=[], horizon=3)
    with pytest.raises(InvalidInputError, match="end='done' says that it reached its target"):
        run.described(dimension=None, end="done")
