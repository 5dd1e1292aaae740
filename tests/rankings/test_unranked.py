"""Partial rankings: algorithms of which it is only known that they are not better than the ranked ones."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import run_of, table_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from polarbear_plugins import RaceSettings, Trajectory, analyze, best_at, load_result, rank
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.attainment import attained
from polarbear_plugins.measures.ecdf_and_aocc import area_over_curve, ecdf
from polarbear_plugins.measures.orders import order_by_measures
from polarbear_plugins.measures.tables import fixed_budget, fixed_target
from polarbear_plugins.partial_orders.criteria import best_at_timepoints, time_to_targets
from polarbear_plugins.rankings import (
    UNRANKED,
    UNRANKED_RANK,
    RankingTable,
    add_virtual_algorithms,
    default_timepoints,
    mean_ranks,
    mean_regret,
    win_shares,
)
from polarbear_plugins.rankings.ranks import ranks_of

INF, NAN = math.inf, math.nan
LARGEST = float(np.finfo(np.float64).max)
VALUES = [-INF, -LARGEST, -1.0, 0.0, 0.4, 1.0, 1e30, 3.4028234663852886e38, LARGEST, INF, NAN, UNRANKED]


# Ranks


@given(arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 30)), elements=st.sampled_from(VALUES)))
@pytest.mark.parametrize("tolerance", [0.0, 0.5, LARGEST])
def test_unranked_values_take_no_part_in_the_places_of_the_others(tolerance: float, values: np.ndarray) -> None:
    unranked = values == UNRANKED
    ranks = ranks_of(values, tolerance)
    assert (ranks[unranked] == UNRANKED_RANK).all()
    others = ranks_of(np.where(unranked, np.nan, values), tolerance)
    np.testing.assert_array_equal(ranks[~unranked], others[~unranked])
    assert (ranks[~unranked] <= values.shape[-1]).all()


def test_the_value_survives_single_precision_text_and_json() -> None:
    assert float(np.float32(UNRANKED)) == UNRANKED
    assert float(str(UNRANKED)) == UNRANKED
    assert json.loads(json.dumps(UNRANKED)) == UNRANKED


def test_the_largest_numbers_are_values_like_any_other() -> None:
    """Programs report them for a run that has found nothing."""
    for largest in (np.finfo(np.float64).max, np.finfo(np.float32).max):
        assert ranks_of(np.array([float(largest), 1.0])).tolist() == [2, 1]


# Tables


def test_the_same_value_says_it_whether_smaller_or_larger_is_better() -> None:
    small = table_of([[[1.0, UNRANKED, 2.0, UNRANKED]]])
    large = table_of([[[-1.0, UNRANKED, -2.0, UNRANKED]]], maximize=True)
    assert small == large
    assert small.ranks.tolist() == [[[1, UNRANKED_RANK, 2, UNRANKED_RANK]]]


def test_a_table_of_single_precision_keeps_it() -> None:
    values = np.array([[[1.0, UNRANKED, 2.0]]], dtype=np.float32)
    assert table_of(values).ranks.tolist() == [[[1, UNRANKED_RANK, 2]]]


def test_a_table_comes_back_from_its_parts() -> None:
    table = table_of([[[1.0, UNRANKED, INF, NAN]], [[UNRANKED, 0.1, UNRANKED, 3.0]]])
    for again in (RankingTable.from_parts(*table.parts()), copy.deepcopy(table)):
        assert again == table
        np.testing.assert_array_equal(again.ranks, table.ranks)


def test_a_saved_result_keeps_it(tmp_path: Path) -> None:
    table = table_of([[[1.0, UNRANKED, UNRANKED]]] * 9)
    result = analyze(table, RaceSettings(seed=1, draws=200))
    again = load_result(result.save(tmp_path / "result.npz"))
    assert again.state.table == table
    assert rank(again.trajectories(), timepoints=table.timepoints).ranks.tolist() == table.ranks.tolist()


@pytest.mark.parametrize("row", [[UNRANKED, UNRANKED, UNRANKED], [1.0, NAN, NAN], [UNRANKED, NAN, NAN]])
def test_a_table_in_which_nothing_is_compared_is_refused(row: list[float]) -> None:
    with pytest.raises(InvalidInputError, match="nothing can be compared"):
        table_of([[row]])
    table_of([[row], [[1.0, UNRANKED, NAN]]])


def test_in_a_data_frame_the_rank_is_missing() -> None:
    frame = table_of([[[1.0, UNRANKED, NAN, UNRANKED]]]).to_pandas()
    assert frame["algorithm"].tolist() == ["a", "b", "d"]
    assert frame["value"].tolist() == [1.0, UNRANKED, UNRANKED]
    assert frame["rank"].isna().tolist() == [False, True, True]
    assert frame["rank"][0] == 1
    assert table_of([[[1.0, 2.0]]]).to_pandas()["rank"].dtype == np.int16


def test_in_a_notebook_a_mean_rank_that_is_not_known_is_not_shown() -> None:
    shown = table_of([[[1.0, UNRANKED, 2.0]], [[1.0, 2.0, 3.0]]])._repr_html_()
    assert "unranked" in shown
    assert "1.00" in shown
    assert "2.50" in shown
    assert "327" not in shown
    assert "unranked" not in table_of([[[1.0, 3.0, 2.0]]])._repr_html_()


# Summaries


def test_unranked_algorithms_lose_against_ranked_ones_only() -> None:
    unranked = [UNRANKED] * 3
    table = table_of([[[1.0, UNRANKED, UNRANKED]], [[UNRANKED, 2.0, 2.0]], [unranked]])
    np.testing.assert_allclose(win_shares(table), [[0.5, 0.25, 0.25]])


@pytest.mark.parametrize("mean", [mean_ranks, mean_regret])
def test_means_over_unknown_ranks_or_values_are_refused(mean: Callable[[RankingTable], Any]) -> None:
    with pytest.raises(InvalidInputError, match=rf"{mean.__name__}: b, d: unranked in some rankings"):
        mean(table_of([[[1.0, UNRANKED, 3.0, UNRANKED]], [[1.0, 2.0, 3.0, 4.0]]]))


def test_a_portfolio_is_as_good_as_its_best_ranked_member() -> None:
    rows = [[1.0, UNRANKED, 2.0], [UNRANKED, UNRANKED, 2.0], [INF, UNRANKED, 2.0], [NAN, UNRANKED, 2.0]]
    longer = add_virtual_algorithms(table_of([[row] for row in rows]), {"a+b": ["a", "b"]})
    np.testing.assert_array_equal(longer.values[:, 0, 3], [1.0, UNRANKED, INF, NAN])
    given = add_virtual_algorithms(table_of([[[-1.0, -2.0]]] * 2), {"v": [[UNRANKED], [5.0]]}, maximize=True)
    np.testing.assert_array_equal(given.values[:, 0, 2], [UNRANKED, -5.0])


# Trajectories


def test_a_run_is_unranked_from_then_on_until_its_next_value() -> None:
    values = [NAN, UNRANKED, NAN, 3.0, 4.0, UNRANKED, NAN, 5.0, 1.0]
    seen = Trajectory.from_evaluations(values, algorithm="a", instance="f")
    expected = [INF, UNRANKED, UNRANKED, 3.0, 3.0, UNRANKED, UNRANKED, 3.0, 1.0]
    assert best_at(seen, range(1, 10)).tolist() == expected
    assert seen.times.tolist() == [2, 4, 6, 8, 9]
    large = Trajectory.from_evaluations(
        [value if value == UNRANKED else -value for value in values], algorithm="a", instance="f", maximize=True
    )
    assert large == seen


def test_a_best_value_may_be_followed_by_unranked_but_not_by_a_worse_value() -> None:
    seen = run_of("a", best=[5.0, UNRANKED, NAN, 5.0, 2.0], horizon=1e4)
    assert seen.best.tolist() == [5.0, UNRANKED, UNRANKED, 5.0, 2.0]
    with pytest.raises(InvalidInputError, match="got 6 after 5"):
        run_of("a", best=[5.0, UNRANKED, 6.0])


def test_a_run_says_that_it_is_unranked() -> None:
    assert "1 steps to unranked at time 1," in repr(run_of("a", best=UNRANKED))


def test_runs_are_ranked_by_what_is_known() -> None:
    runs = [run_of("a", best=[3.0, 1.0]), run_of("b", best=[2.0, UNRANKED]), run_of("c", best=[UNRANKED, 2.0])]
    ranks = rank(runs, timepoints=[1, 10]).ranks
    assert ranks.tolist() == [[[2, 1, UNRANKED_RANK], [1, UNRANKED_RANK, 2]]]
    assert default_timepoints(runs).tolist() == default_timepoints([*runs[:2], run_of("c", best=[9.0, 2.0])]).tolist()


NEEDS_VALUES: dict[str, Callable[[list[Trajectory]], object]] = {
    "fixed_budget": lambda runs: fixed_budget(runs, [10]),
    "fixed_target": lambda runs: fixed_target(runs, [1.0]),
    "area_over_curve": lambda runs: area_over_curve(runs[1], 10),
    "ecdf": lambda runs: ecdf(runs, [10]),
    "order_by_measures": lambda runs: order_by_measures(runs, 10),
    "attained": lambda runs: attained(runs, [10], [1.0]),
    "best_at_timepoints": lambda runs: best_at_timepoints(runs, [10]),
    "time_to_targets": lambda runs: time_to_targets(runs, [1.0]),
}


@pytest.mark.parametrize("who", NEEDS_VALUES)
def test_what_needs_values_refuses_unranked_runs(who: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{who}: .*'b'.* is unranked at some time"):
        NEEDS_VALUES[who]([run_of("a", best=[3.0, 1.0]), run_of("b", best=[2.0, UNRANKED])])
    NEEDS_VALUES[who]([run_of("a", best=[3.0, 1.0]), run_of("b", best=[2.0, 1.5])])
