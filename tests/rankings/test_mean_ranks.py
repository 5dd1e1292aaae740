from __future__ import annotations

import numpy as np
import pytest
from builders import table_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.rankings.summaries import mean_ranks, mean_regret

NAMES = ["a", "b", "c"]
cubes = arrays.arrays(
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
