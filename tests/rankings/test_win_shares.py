from __future__ import annotations

import math

import numpy as np
from builders import table_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from polarbear_plugins.rankings.summaries import win_shares

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
