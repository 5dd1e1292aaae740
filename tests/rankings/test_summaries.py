from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from builders import table_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from polarbear_plugins import fit, select
from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError, ModelWarning
from polarbear_plugins.rankings.summaries import add_virtual_algorithms, mean_ranks, mean_regret, win_shares

# Mean ranks and regret.

cubes = arrays(
    np.float64,
    st.tuples(st.integers(2, 6), st.integers(1, 3), st.just(3)),
    elements=st.sampled_from([0.0, 1.0, 2.5, 4.0]),
)


@given(cubes)
def test_mean_ranks_and_their_errors_are_those_of_scipy(values: FloatArray) -> None:
    found = mean_ranks(table_of(values))
    ranks = stats.rankdata(values, axis=-1)
    np.testing.assert_allclose(found.mean, ranks.mean(axis=0))
    np.testing.assert_allclose(found.standard_error, stats.sem(ranks, axis=0), atol=1e-12)
    np.testing.assert_allclose(found.mean.sum(axis=1), 6)


@given(cubes)
def test_regret_is_the_distance_to_the_best_in_units_of_the_range(values: FloatArray) -> None:
    found = mean_regret(table_of(values))
    low, high = values.min(axis=(1, 2)), values.max(axis=(1, 2))
    span = np.where(high > low, high - low, 1)
    expected = (values - low[:, None, None]) / span[:, None, None]
    np.testing.assert_allclose(found.mean, expected.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.standard_error, stats.sem(expected, axis=0), atol=1e-12)


@given(cubes)
def test_a_monotone_transform_changes_no_mean_rank_and_a_linear_one_no_regret(values: FloatArray) -> None:
    np.testing.assert_array_equal(mean_ranks(table_of(values)).mean, mean_ranks(table_of(np.exp(values))).mean)
    np.testing.assert_allclose(mean_regret(table_of(values)).mean, mean_regret(table_of(3 * values - 7)).mean)


def test_repeated_runs_count_as_one_instance_unless_they_are_independent() -> None:
    values = np.array([[[1.0, 2.0]], [[1.0, 2.0]], [[1.0, 2.0]], [[2.0, 1.0]]])
    instances = ["f", "f", "f", "g"]
    weighted = mean_ranks(table_of(values, instances=instances))
    np.testing.assert_allclose(weighted.mean, [[1.5, 1.5]])
    assert weighted.count == [2]
    free = mean_ranks(table_of(values, instances=instances, repetitions="independent"))
    np.testing.assert_allclose(free.mean, [[1.25, 1.75]])
    alone = mean_ranks(table_of(values, instances=["f"] * 4))
    np.testing.assert_allclose(alone.mean, free.mean)
    np.testing.assert_allclose(alone.standard_error, free.standard_error)


def test_instances_without_all_algorithms_do_not_count() -> None:
    values = np.array([[[1.0, 2.0, 3.0]], [[2.0, 1.0, np.nan]], [[3.0, 2.0, 1.0]]])
    table = table_of(values)
    everybody = mean_ranks(table)
    np.testing.assert_allclose(everybody.mean, [[2, 2, 2]])
    assert everybody.count == [2]
    two = mean_ranks(table, among=["b", "a"])
    assert two.algorithms == ("b", "a")
    np.testing.assert_allclose(two.mean, [[4 / 3, 5 / 3]])
    assert two.count == [3]


def test_who_has_nothing_yet_is_last_and_has_a_regret_of_one() -> None:
    table = table_of(np.array([[[np.inf, 2.0], [1.0, 2.0]]]))
    np.testing.assert_allclose(mean_ranks(table).mean, [[2, 1], [1, 2]])
    np.testing.assert_allclose(mean_regret(table).mean, [[1, 1], [0, 1]])
    assert np.isnan(mean_ranks(table).standard_error).all()


def test_the_frame_has_a_row_for_each_timepoint_and_algorithm() -> None:
    frame = mean_ranks(table_of(np.array([[[1.0, 2.0], [5.0, 4.0]]]))).to_frame()
    assert frame["time"].tolist() == [1, 1, 2, 2]
    assert frame["algorithm"].tolist() == ["a", "b", "a", "b"]
    assert frame["mean"].tolist() == [1, 2, 2, 1]


@pytest.mark.parametrize("among", [["nobody"], [], ["a", "a"]])
def test_wrong_names_are_refused(among: list[str]) -> None:
    with pytest.raises(InvalidInputError, match="among"):
        mean_ranks(table_of(np.array([[[1.0, 2.0]]])), among)


# Win shares.

INF, NAN = math.inf, math.nan


def test_the_share_of_an_algorithm_is_how_often_it_ranks_first() -> None:
    table = table_of([[[1, 2, 3]], [[1, 2, 3]], [[2, 1, 3]], [[1, 5, 3]]])
    np.testing.assert_array_equal(win_shares(table), [[0.75, 0.25, 0]])


def test_a_tie_for_the_first_place_is_split_evenly() -> None:
    np.testing.assert_allclose(win_shares(table_of([[[1, 1, 2]], [[4, 4, 4]]])), [[5 / 12, 5 / 12, 1 / 6]])


def test_each_timepoint_has_its_own_shares() -> None:
    np.testing.assert_array_equal(win_shares(table_of([[[1, 2], [2, 1], [3, 3]]])), [[1, 0], [0, 1], [0.5, 0.5]])


def test_an_absent_algorithm_neither_wins_nor_loses() -> None:
    shares = win_shares(table_of([[[1, 2, NAN]], [[3, 2, 1]], [[2, 1, NAN]]]))
    np.testing.assert_allclose(shares, [[1 / 3, 1 / 3, 1]])


def test_an_algorithm_alone_on_an_instance_neither_wins_nor_loses() -> None:
    shares = win_shares(table_of([[[1, 2, 3]], [[NAN, 1, NAN]], [[NAN, 1, NAN]]]))
    np.testing.assert_array_equal(shares, [[1, 0, 0]])
    np.testing.assert_array_equal(win_shares(table_of([[[1, 2, NAN]], [[NAN, NAN, 1]]])), [[1, 0, NAN]])


def test_an_algorithm_never_observed_has_no_share() -> None:
    np.testing.assert_array_equal(win_shares(table_of([[[1, 2, NAN], [2, 1, 0]]])), [[1, 0, NAN], [0, 0, 1]])


def test_a_run_with_nothing_yet_was_observed_and_did_not_win() -> None:
    np.testing.assert_array_equal(win_shares(table_of([[[INF, 2.0]], [[1.0, 2.0]]])), [[0.5, 0.5]])


def test_repetitions_share_one_win_under_weight_and_win_each_when_independent() -> None:
    values, instances = [[[1, 2]], [[1, 2]], [[1, 2]], [[2, 1]]], ["f", "f", "f", "g"]
    np.testing.assert_allclose(win_shares(table_of(values, instances=instances)), [[0.5, 0.5]])
    independent = table_of(values, instances=instances, repetitions="independent")
    np.testing.assert_allclose(win_shares(independent), [[0.75, 0.25]])


def test_rows_win_by_their_weight() -> None:
    table = table_of([[[1, 2, NAN]], [[2, 1, 3]]], weights=[3, 1])
    np.testing.assert_allclose(win_shares(table), [[0.75, 0.25, 0]])


def test_values_within_the_tolerance_share_a_win() -> None:
    np.testing.assert_array_equal(win_shares(table_of([[[1.0, 1.25]]], tolerance=0.5)), [[0.5, 0.5]])


@given(
    arrays(np.float64, (4, 2, 3), elements=st.sampled_from([0.0, 1.0, 2.0]), fill=st.nothing()),
    st.lists(st.floats(0.1, 10), min_size=4, max_size=4),
)
def test_the_shares_of_complete_rankings_sum_to_one(values: np.ndarray, weights: list[float]) -> None:
    np.testing.assert_allclose(win_shares(table_of(values, weights=weights)).sum(axis=-1), 1)


@given(st.data(), arrays(np.float64, (4, 2, 3), elements=st.sampled_from([0.0, 1.0, 2.0, INF]), fill=st.nothing()))
def test_permuting_the_algorithms_permutes_the_shares(data: st.DataObject, values: np.ndarray) -> None:
    order = data.draw(st.permutations(range(3)))
    np.testing.assert_allclose(win_shares(table_of(values[..., order])), win_shares(table_of(values))[:, order])


# Virtual algorithms.

VALUES = [[[3.0, 1.0, 2.0], [1.0, 1.0, 0.5]], [[1.0, 3.0, 2.0], [1.0, np.nan, 0.5]], [[5.0, 4.0, np.inf]] * 2]


def test_members_in_parallel_have_the_best_of_their_values() -> None:
    longer = add_virtual_algorithms(table_of(VALUES), {"a+b": ["a", "b"], "b+c": ("c", "b")})
    assert longer.algorithms == ("a", "b", "c", "a+b", "b+c")
    np.testing.assert_array_equal(longer.values[:, :, :3], VALUES)
    np.testing.assert_array_equal(longer.values[:, :, 3], [[1, 1], [1, np.nan], [4, 4]])
    np.testing.assert_array_equal(longer.values[:, :, 4], [[1, 0.5], [2, np.nan], [4, 4]])


def test_a_joint_measurement_is_ranked_like_an_algorithm() -> None:
    longer = add_virtual_algorithms(table_of(VALUES), {"joint": [[0.5, 2.0], [1.5, 0.1], [4.5, 4.5]]})
    assert longer.ranks[:, 0].tolist() == [[4, 2, 3, 1], [1, 4, 3, 2], [3, 1, 4, 2]]
    turned = add_virtual_algorithms(
        table_of(VALUES), {"joint": [[-0.5, -2.0], [-1.5, -0.1], [-4.5, -4.5]]}, maximize=True
    )
    assert turned == longer


@pytest.mark.parametrize("repetitions", ["weight", "independent"])
def test_instances_weights_and_tolerance_stay(repetitions: Any) -> None:
    one = table_of(VALUES, instances=["f", "f", "g"], weights=[1.0, 2.0, 3.0], repetitions=repetitions, tolerance=0.25)
    longer = add_virtual_algorithms(one, {"a+b": ["a", "b"]})
    assert (longer.instances, longer.repetitions, longer.tolerance) == (("f", "g"), repetitions, 0.25)
    np.testing.assert_array_equal(longer.instance_index, one.instance_index)
    np.testing.assert_allclose(longer.weights, one.weights)


def test_members_that_complete_each_other_are_worth_more_than_their_sum() -> None:
    # a wins on even instances and is last on odd ones, b the other way round; c is always second.
    values = [[[1.0, 3.0, 2.0]], [[3.0, 1.0, 2.0]]] * 20
    plain = table_of(values)
    longer = add_virtual_algorithms(plain, {"a+b": ["a", "b"], "c+c": ["c"]})
    with pytest.warns(ModelWarning, match="select: The model does not fit"):
        choice = select(fit(longer, seed=1), among=["a+b", "c+c"])
    a, b, c = fit(plain, seed=1).ratings.mean(axis=0)[0]
    # Really always ahead; the sum of the ratings sees no difference.
    assert (a + b) / (a + b + 2 * c) < 0.6
    assert choice.values[:, 0].mean() > 0.8


@pytest.mark.parametrize(
    ("virtual", "message"),
    [
        ({}, "expected at least one name"),
        ({"x": ["a", "z"]}, "virtual 'x': there is no 'z' in the table; it has a, b, c"),
        ({"x": "ab"}, "virtual 'x': expected a list of members"),
        ({"x": [[1.0, 2.0]]}, r"virtual 'x': expected values of the shape \[3 rows, 2 timepoints\], got \[1, 2\]"),
        ({"x": []}, "virtual 'x': expected values of the shape"),
        ({"a": ["b", "c"]}, "'a' is named more than once"),
        ({" ": ["b", "c"]}, "the name is empty"),
    ],
)
def test_virtual_algorithms_that_make_no_sense_are_refused(virtual: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        add_virtual_algorithms(table_of(VALUES), virtual)
