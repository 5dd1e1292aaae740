from __future__ import annotations

import math

import numpy as np
import pytest
from builders import run
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import Trajectory
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning
from polarbear_plugins.measures.ecdf_and_aocc import area_over_curve, ecdf, ecdf_area, mean_area_over_curve
from polarbear_plugins.measures.targets import log_targets
from polarbear_plugins.trajectories.runs import hold_last_value


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


@st.composite
def runs(draw: st.DrawFn) -> list[Trajectory]:
    """Some runs of one algorithm whose values pass both bounds; some find nothing."""
    made = []
    for _ in range(draw(st.integers(1, 4))):
        times = sorted(draw(st.sets(st.integers(0, 90), max_size=6)))
        logs = sorted(draw(st.lists(st.floats(-10, 4), min_size=len(times), max_size=len(times))), reverse=True)
        made.append(run(times, [10**log for log in logs]))
    return made


def test_targets_are_spread_evenly_on_the_log_scale_between_the_bounds() -> None:
    np.testing.assert_allclose(log_targets(), 10 ** np.linspace(2, -8, 51))
    np.testing.assert_allclose(log_targets(1e-2, 1, 3), [1, 0.1, 0.01])


def test_known_shares_of_targets() -> None:
    two = [run([1, 10], [10, 0.1]), run([5], [1.0])]
    table = ecdf(two, [0, 1, 5, 10], targets=[10, 1, 0.1, 0.01])
    assert table["a"].tolist() == [0, 1 / 8, 3 / 8, 5 / 8]
    between = ecdf(two, [0, 1, 5, 10], lower=1e-2, upper=1e2)
    np.testing.assert_allclose(between["a"], [0, 1 / 8, 3 / 8, 5 / 8])


def test_each_algorithm_has_its_column_in_the_order_of_the_names() -> None:
    table = ecdf([run([1], [1e-8], algorithm="b10"), run([1], [1e2], algorithm="b9")], [1])
    assert list(table.columns) == ["b9", "b10"]
    assert table.loc[1].tolist() == [0, 1]


@given(runs(), st.booleans())
def test_a_share_never_falls_and_lies_between_0_and_1(given_runs: list[Trajectory], finite: bool) -> None:
    share = ecdf(given_runs, np.arange(101), log_targets() if finite else None)["a"]
    assert share.is_monotonic_increasing
    assert share.between(0, 1).all()


@given(runs())
def test_the_area_over_the_curve_is_the_mean_share_over_time(given_runs: list[Trajectory]) -> None:
    # Steps are at whole times, so the share is constant from each to the next.
    share = ecdf(given_runs, np.arange(100))["a"]
    assert mean_area_over_curve(given_runs, 100)["a"][0] == pytest.approx(share.mean())


@given(runs())
def test_the_area_over_the_curve_is_that_of_ever_more_targets(given_runs: list[Trajectory]) -> None:
    count = 2001
    edges = log_targets(count=count)
    targets = np.sqrt(edges[1:] * edges[:-1])  # the middle of each of 2,000 parts
    area = mean_area_over_curve(given_runs, 100)["a"][0]
    assert ecdf_area(given_runs, 100, targets)["a"] == pytest.approx(area, abs=0.5 / (count - 1) + 1e-9)


@given(runs(), st.floats(0.5, 50))
def test_the_area_over_the_logarithm_of_time_is_the_integral_of_the_share(
    given_runs: list[Trajectory], first: float
) -> None:
    cuts = np.unique([first, *(t for t in range(101) if t > first)])
    share = ecdf(given_runs, cuts, log_targets())["a"].to_numpy()
    expected = share[:-1] @ np.diff(np.log(cuts)) / np.log(100 / first)
    assert ecdf_area(given_runs, 100, log_targets(), first=first)["a"] == pytest.approx(expected)


@given(runs(), st.randoms(use_true_random=False))
def test_the_order_of_the_runs_does_not_matter(given_runs: list[Trajectory], random: object) -> None:
    mixed = list(given_runs)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    for targets in (None, log_targets()):
        np.testing.assert_allclose(ecdf(mixed, [5, 50], targets), ecdf(given_runs, [5, 50], targets))
    assert ecdf_area(mixed, 100, [1.0]) == {"a": pytest.approx(ecdf_area(given_runs, 100, [1.0])["a"])}


def test_a_target_that_is_never_reached_adds_nothing() -> None:
    assert ecdf([run([1], [5.0])], [50], targets=[1.0]).loc[50, "a"] == 0
    assert ecdf_area([run([1], [5.0]), run([], [])], 100, [1.0]) == {"a": 0.0}


def test_an_incumbent_that_was_good_once_has_reached_its_targets() -> None:
    risen = Trajectory(algorithm="a", instance="f", times=[1, 2, 3], best=[5, 1, 4], horizon=9, incumbent=True)
    for targets in (None, [4, 1]):
        assert ecdf([risen], [1, 2, 3, 9], targets)["a"].is_monotonic_increasing


def test_runs_that_were_not_watched_so_long_are_left_out_with_a_warning() -> None:
    given_runs = [run([1], [1e-8]), run([1], [1e2], horizon=50)]
    with pytest.warns(PolarBearWarning, match="ecdf: 1 of 2 runs were not watched until 60 and are left out"):
        assert ecdf(given_runs, [60]).loc[60, "a"] == 1
    with pytest.warns(PolarBearWarning, match="ecdf_area: 1 of 2 runs"):
        assert ecdf_area(given_runs, 100, [1.0]) == {"a": 0.99}
    assert ecdf(given_runs, [50]).loc[50, "a"] == 0.5


def test_an_algorithm_without_a_run_watched_so_long_is_refused() -> None:
    given_runs = [
        run([1], [1.0]),
        run([1], [1.0], horizon=50, algorithm="short"),
        run([1], [1.0], horizon=40, algorithm="short"),
    ]
    with pytest.raises(InvalidInputError, match="no run of 'short' was watched until 60, the longest until 50"):
        ecdf(given_runs, [60])


def test_runs_that_ended_by_themselves_can_be_watched_on() -> None:
    long, short = run([1], [1.0]), run([1, 5], [4.0, 2.0], horizon=5)
    held = list(hold_last_value([long, short], 50))
    assert held[0] is long
    assert (held[1].horizon, held[1].best.tolist()) == (50, [4.0, 2.0])
    risen = Trajectory(algorithm="a", instance="f", times=[1, 2], best=[1, 4], horizon=9, incumbent=True)
    assert next(hold_last_value([risen], 50)).best.tolist() == [1, 4]


def test_values_below_the_optimum_have_no_place_on_the_log_scale() -> None:
    below = run([1], [-5.0])
    with pytest.raises(InvalidInputError, match="values below 0 are not on a log scale"):
        ecdf([below], [50])
    with pytest.raises(InvalidInputError, match="values below 0 are not on a log scale"):
        area_over_curve(below, 100)
    assert area_over_curve(run([0], [-1e-12]), 100) == 1  # what rounding leaves of an optimum
    assert ecdf([below], [50], targets=[-4.0, -6.0]).loc[50, "a"] == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ecdf([], [1]), "ecdf: there are no trajectories"),
        (lambda: ecdf([run([1], [1.0])], []), "timepoints: expected at least one"),
        (lambda: ecdf([run([1], [1.0])], [1], targets=[]), "targets: expected distinct finite numbers"),
        (lambda: ecdf([run([1], [1.0])], [1], lower=2, upper=1), "ecdf: expected 0 < lower < upper"),
        (lambda: ecdf([run([1], [1.0])], [1], upper=math.inf), "ecdf: upper: expected a finite number"),
        (lambda: ecdf_area([], 1, [1]), "ecdf_area: there are no trajectories"),
        (lambda: ecdf_area([run([1], [1.0])], 0, [1]), "expected 0 < first < budget"),
        (lambda: ecdf_area([run([1], [1.0])], 50, [1], first=0), "expected 0 < first < budget"),
        (lambda: ecdf_area([run([1], [1.0])], 50, [1], first=50), "expected 0 < first < budget"),
        (lambda: log_targets(0, 1), "targets: expected 0 < lower < upper"),
        (lambda: log_targets(count=1), "targets: count must be a whole number of at least 2"),
        (lambda: list(hold_last_value([run([1], [1.0])], math.inf)), "until: expected a finite number"),
    ],
)
def test_input_without_meaning_is_refused(call: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()  # type: ignore[operator]
