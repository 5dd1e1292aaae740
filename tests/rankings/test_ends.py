"""Runs that ended before others on the same instance."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest
from builders import run_of, table_of
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import RaceSettings, race
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.rankings.comparable import instances_seen, observed
from polarbear_plugins.rankings.ends import EarlyEnds
from polarbear_plugins.rankings.stream import rank, stream_rankings
from polarbear_plugins.rankings.summaries import add_virtual_algorithms, table_among
from polarbear_plugins.rankings.table import RankingTable
from polarbear_plugins.trajectories.runs import end_at_target
from polarbear_plugins.trajectories.trajectory import UNRANKED, Trajectory, best_at

GRID = [10, 50, 100]


def short_and_long(**short: object) -> list[Trajectory]:
    """A run of ``nm`` with value 3 that was watched until 20 and got 2 between two timepoints, and one until 100."""
    nm = run_of("nm", best=[3, 2], times=[1, 15], horizon=20, **short)
    return [nm, run_of("rs", best=[4, 1], times=[1, 100])]


def test_a_run_that_ended_keeps_its_last_value() -> None:
    table = rank(short_and_long(), GRID)
    assert table.values.tolist() == [[[3, 4], [2, 4], [2, 1]]]
    assert table.early_ends == (EarlyEnds("nm", "hold", 1, 20.0, 20.0, 90.0),)


def test_a_run_that_ended_is_left_out_if_cut() -> None:
    table = rank(short_and_long(), GRID, ended="cut")
    assert table.ranks.tolist() == [[[1, 2], [0, 1], [0, 1]]]
    assert table.early_ends == (EarlyEnds("nm", "cut", 1, 20.0, 20.0),)


def test_a_run_that_was_stopped_is_left_out_whatever_the_rule() -> None:
    for ended in ("hold", "cut"):
        table = rank(short_and_long(end="stopped"), GRID, ended=ended)
        assert table.ranks.tolist() == [[[1, 2], [0, 1], [0, 1]]]
        assert table.early_ends == ()


@pytest.mark.parametrize("ended", ["hold", "cut"])
def test_a_run_that_is_done_never_loses_to_rivals_that_go_on(ended: str) -> None:
    table = rank(short_and_long(end="done"), GRID, ended=ended)
    assert table.ranks.tolist() == [[[1, 2], [1, 2], [1, 1]]]
    assert table.early_ends == (EarlyEnds("nm", "done", 1, 15.0, 15.0, 90.0),)


def test_runs_that_are_done_tie_from_then_on() -> None:
    runs = [
        run_of("a", best=[9, 0.5], times=[1, 10], horizon=10, end="done"),
        run_of("b", best=[9, 0.4], times=[1, 60], horizon=60, end="done"),
        run_of("c", best=[9, 0.3], times=[1, 80]),
    ]
    assert rank(runs, GRID).ranks.tolist() == [[[1, 2, 2], [1, 2, 2], [1, 1, 1]]]


def test_done_is_said_of_an_instance_and_not_of_others() -> None:
    runs = [*short_and_long(end="done"), run_of("nm", "f2", best=2.0), run_of("rs", "f2", best=1.0)]
    assert rank(runs, [100]).ranks.tolist() == [[[1, 1]], [[2, 1]]]


def test_a_value_is_held_only_while_another_run_on_the_instance_was_watched() -> None:
    short = [run_of(name, "small", horizon=20) for name in "ab"]
    table = rank([*short, run_of("a", "large"), run_of("b", "large")], GRID)
    assert table.instances == ("large", "small")
    assert np.isnan(table.values[1, 1:]).all()
    assert table.early_ends == ()


def test_what_is_done_is_compared_only_as_long_as_another_run_was_watched() -> None:
    runs = [run_of(name, best=1.0, horizon=20, end="done") for name in "ab"] + [run_of("c", best=2.0, horizon=50)]
    table = rank([*runs, run_of("a", "f2"), run_of("b", "f2")], GRID)
    assert table.ranks[0].tolist() == [[1, 1, 3], [1, 1, 3], [0, 0, 0]]


def test_a_run_that_ended_without_a_value_stays_last() -> None:
    runs = [run_of("failed", times=[], best=[], horizon=5), run_of("b"), run_of("c", best=2.0)]
    assert rank(runs, GRID, algorithms=["failed", "b", "c"]).ranks.tolist() == [[[3, 1, 2]] * 3]


def test_an_unranked_run_stays_unranked() -> None:
    runs = [run_of("a", best=[UNRANKED], times=[1], horizon=20), run_of("b")]
    assert (rank(runs, GRID).values[0, :, 0] == UNRANKED).all()


def test_an_end_between_two_timepoints_that_are_compared_does_not_count_as_early() -> None:
    runs = [run_of("a", horizon=99), run_of("b")]
    assert rank(runs, [10, 98]).early_ends == ()
    assert rank(runs, [10, 100]).early_ends == (EarlyEnds("a", "hold", 1, 99.0, 99.0, 90.0),)


def test_early_ends_are_counted_over_instances_and_seeds() -> None:
    runs = [run_of("a", f"f{k % 3}", seed=k, horizon=10 + k) for k in range(6)]
    runs += [run_of("b", f"f{k}") for k in range(3)]
    assert rank(runs, GRID).early_ends == (EarlyEnds("a", "hold", 6, 10.0, 15.0, 540.0),)


@given(
    st.lists(st.tuples(st.integers(10, 100), st.sampled_from(["unknown", "stopped", "done"])), min_size=1, max_size=5),
    st.sampled_from(["hold", "cut"]),
)
def test_the_blocks_of_a_stream_have_the_early_ends_of_the_table(ends: list[tuple[int, str]], ended: str) -> None:
    runs = [run_of("a", f"f{k}", horizon=horizon, end=end) for k, (horizon, end) in enumerate(ends)]
    runs += [run_of("b", f"f{k}") for k in range(len(ends))]
    table = rank(runs, GRID, ended=ended)
    blocks = stream_rankings(runs, ["a", "b"], GRID, ended=ended)
    together = RankingTable(["a", "b"], GRID)
    for block in blocks:
        together = together.append(block)
    assert together == table
    assert set(together.early_ends) == set(table.early_ends)


@given(st.integers(1, 100), st.lists(st.integers(-3, 3), min_size=1, max_size=4, unique=True))
def test_holding_changes_nothing_where_a_run_was_watched(horizon: int, values: list[int]) -> None:
    best = sorted(values, reverse=True)
    run = run_of("a", best=best, times=[1 + k * horizon / len(best) for k in range(len(best))], horizon=horizon + 1)
    held = rank([run, run_of("b", best=0)], GRID).values[0, :, 0]
    watched = np.array(GRID) <= run.horizon
    np.testing.assert_array_equal(held[watched], best_at(run, GRID)[watched])
    assert (held[~watched] == min(values)).all()


def test_early_ends_survive_copies_and_views() -> None:
    table = rank([*short_and_long(), run_of("c")], GRID)
    ends = table.early_ends
    assert pickle.loads(pickle.dumps(table)).early_ends == ends  # noqa: S301
    assert table_among(table, ["nm", "c"]).early_ends == ends
    assert table_among(table, ["rs", "c"]).early_ends == ()
    assert add_virtual_algorithms(table, {"both": ["nm", "c"]}).early_ends == ends
    assert [EarlyEnds.from_json(json.loads(json.dumps(each.to_json()))) for each in ends] == list(ends)


@pytest.mark.parametrize(
    "change", [{"rule": "stop"}, {"added": -1}, {"runs": 0}, {"first": math.nan}, {"algorithm": ""}]
)
def test_damaged_early_ends_are_refused(change: dict[str, object]) -> None:
    good = EarlyEnds("a", "hold", 1, 20.0, 20.0).to_json()
    with pytest.raises(InvalidInputError, match="early end"):
        EarlyEnds.from_json(good | change)


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r'ended: expected "hold" or "cut", got \'keep\''):
        rank(short_and_long(), GRID, ended="keep")


def test_alone_at_a_timepoint_an_algorithm_was_not_observed() -> None:
    table = table_of([[[1.0, 2.0], [1.0, math.nan]]])
    assert observed(table).tolist() == [[True, True], [False, False]]
    assert instances_seen(table).tolist() == [[1, 1], [0, 0]]


def test_a_value_equal_to_the_target_reaches_it() -> None:
    [done, other] = end_at_target([run_of("a", best=[3, 2, 1]), run_of("b", best=[3, 2.5, 2.25])], target=2)
    assert (done.end, done.times.tolist(), done.horizon) == ("done", [1, 10], 100)
    assert (other.end, other.times.size) == ("unknown", 3)


def test_in_a_race_a_run_that_is_done_is_best_from_there_on() -> None:
    def done(*_: object) -> Trajectory:
        return run_of("?", "?", best=[5, 2], times=[1, 4], horizon=4, end="done")

    def going_on(_: object, horizon: float, __: int) -> Trajectory:
        return run_of("?", "?", best=[4, 3, 0], times=[1, 5, 8], horizon=horizon)

    settings = RaceSettings(seed=1, max_rounds=1)
    result = race({"done": done, "on": going_on}, list(range(8)), [2, 6, 10], settings, workers=0)
    assert result.state.table.ranks[0].tolist() == [[2, 1], [1, 2], [1, 2]]
