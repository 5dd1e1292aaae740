"""Stored rivals: what a race may assume of runs that it did not make."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from builders import run_of
from hypothesis import given, settings
from hypothesis import strategies as st

from polarbear_plugins import RaceSettings, Trajectory, rank
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.racing.forecast import forecast
from polarbear_plugins.racing.posteriors import infer
from polarbear_plugins.racing.rules import decide, enter, observe, plan
from polarbear_plugins.racing.state import Order, RaceState, check_about
from polarbear_plugins.racing.stored import StoredRivals, sample_stored, start_against
from polarbear_plugins.rankings.ends import EarlyEnds
from polarbear_plugins.rankings.stream import default_timepoints

GRID = [1.0, 10.0, 100.0]
SETTINGS = RaceSettings(seed=1, draws=200, batch_size=2, batch_min=2)


def start(runs: list[Trajectory], *newcomers: str, **more: Any) -> RaceState:
    names = dict.fromkeys(run.instance for run in runs)
    rivals = StoredRivals(sample_stored(runs, GRID).values, tuple(map(Identity, names)), {})
    return start_against(newcomers, GRID, replace(SETTINGS, **more), rivals)


def archive(instances: int = 4, rivals: str = "ab") -> list[Trajectory]:
    """Each rival is better than the next on every instance."""
    return [
        run_of(name, f"f{number}", [9.0, 5.0, 1.0 + place])
        for number in range(instances)
        for place, name in enumerate(rivals)
    ]


def test_newcomers_catch_up_on_the_instances_of_the_archive_and_stored_rivals_never_run() -> None:
    state = start(archive(), "new")
    assert state.algorithms == ("a", "b", "new")
    assert state.stored == ("a", "b")
    planned = plan(state, len(state.table.instances))
    assert planned.orders == (Order("new", 0, 100.0), Order("new", 1, 100.0))
    assert state.cost == 0
    assert state.full_cost == 4 * 100  # of the newcomer alone
    assert state.instances_run == 0


def test_only_what_ran_is_charged() -> None:
    state = observe(start(archive(), "new"), [run_of("new", "f1", [9.0, 5.0, 3.0])])
    assert state.cost == 100
    assert state.instances_run == 1


def test_pairs_of_stored_rivals_do_not_keep_the_race_open() -> None:
    state = start(archive(), "new")
    resolved = np.array(state.resolved)
    resolved[:, 2, :] = resolved[:, :, 2] = True
    done = replace(state, resolved=resolved)
    assert not resolved.all()
    assert done.settled
    assert done.resolved_share == 1
    assert plan(done).over == "resolved"
    # One open pair of the newcomer is enough to go on.
    resolved = resolved.copy()
    resolved[1, 0, 2] = resolved[1, 2, 0] = False
    opened = replace(state, resolved=resolved)
    assert not opened.settled
    assert plan(opened, 4).orders[0] == Order("new", 0, 10.0)
    assert opened.resolved_share == 0.5


def test_a_newcomer_runs_only_as_far_as_a_rival_was_watched() -> None:
    runs = [run_of("a", "f0", [9.0, 5.0], horizon=10), run_of("a", "f1", [9.0, 5.0, 1.0])]
    assert [order.until for order in plan(start(runs, "new"), 2).orders] == [10.0, 100.0]


def test_newcomers_that_are_settled_against_all_rivals_still_meet_each_other_on_the_archive() -> None:
    state = start(archive(), "x", "y")
    resolved = np.ones_like(state.resolved)
    resolved[:2, 2, 3] = resolved[:2, 3, 2] = False
    state = replace(state, resolved=resolved)
    orders = plan(state, 4).orders
    assert orders == tuple(Order(name, place, 10.0) for place in (0, 1) for name in "xy")
    # When both have run everywhere, the archive has nothing more to say.
    ran = observe(state, [run_of(name, f"f{number}", [9.0]) for number in range(4) for name in "xy"])
    assert plan(ran, 4).over == "instances"


def test_one_run_of_a_newcomer_meets_every_repetition_and_the_instance_weighs_as_one() -> None:
    runs = [run_of("a", "f0", value, seed=seed) for seed, value in enumerate([3.0, 1.0, 3.0])]
    runs += [run_of("b", "f0", 5.0), run_of("a", "f1", 1.0), run_of("b", "f1", 2.0)]
    state = start(runs, "new")
    new = [run_of("new", "f0", 2.0), run_of("new", "f1", 9.0)]
    assert plan(state, 2).orders == (Order("new", 0, 100.0), Order("new", 1, 100.0))
    table = observe(state, new).table
    assert table == rank([*runs, *new], GRID)
    assert table.weights.tolist() == [1 / 3, 1 / 3, 1 / 3, 1.0]
    assert observe(state, new).cost == 200


runs_of_archives = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["f0", "f1", "f2"]), st.integers(0, 3), st.integers(0, 5)),
    min_size=1,
    unique_by=lambda run: run[:3],
)


@settings(max_examples=60, deadline=None)
@given(runs_of_archives, st.lists(st.integers(0, 5), min_size=3, max_size=3))
def test_the_rankings_are_those_of_all_runs_together(drawn: list[tuple[str, str, int, int]], values: list[int]) -> None:
    runs = [run_of(name, instance, float(value), seed=seed) for name, instance, seed, value in drawn]
    state = start(runs, "new")
    names = state.table.instances
    new = [run_of("new", instance, float(value)) for instance, value in zip(names, values, strict=False)]
    found, expected = observe(state, new).table, rank([*runs, *new], GRID)
    in_order = sorted(range(len(found)), key=lambda row: names[found.instance_index[row]])
    np.testing.assert_array_equal(found.values[in_order], expected.values)
    np.testing.assert_array_equal(found.weights[in_order], expected.weights)


def test_another_newcomer_may_enter_beside_repetitions() -> None:
    runs = [run_of("a", "f0", value, seed=seed) for seed, value in enumerate([3.0, 1.0])]
    state = enter(observe(start(runs, "new"), [run_of("new", "f0", 2.0)]), "late")
    assert state.newcomers == ("new", "late")
    assert plan(state, 1).orders == (Order("late", 0, 100.0),)
    table = observe(state, [run_of("late", "f0", 0.5)]).table
    assert table.values[:, 0].tolist() == [[3.0, 2.0, 0.5], [1.0, 2.0, 0.5]]


def test_rounds_count_the_instances_that_newcomers_ran_on_not_those_of_the_archive() -> None:
    state = start(archive(300), "new")
    ran = observe(state, [run_of("new", f"f{number}", [9.0, 5.0, 0.5]) for number in range(2)])
    [finished] = decide(ran, infer(ran, 1)).rounds
    assert finished.instances == 2
    assert finished.next_batch <= 4  # not a fiftieth of the archive


def test_stored_rivals_are_eliminated_by_the_data_of_the_archive() -> None:
    state = start(archive(40), "new")
    ran = observe(state, [run_of("new", f"f{number}", [9.0, 5.0, 0.5]) for number in range(2)])
    decided = decide(ran, infer(ran, 1))
    assert decided.resolved[2, 0, 1]  # a beat b on 40 instances


def test_runs_hold_their_last_value_as_long_as_any_run_on_the_instance_was_watched() -> None:
    short = run_of("a", "f0", [9.0, 5.0], horizon=10)
    stopped = replace_end(run_of("b", "f0", [9.0, 5.0], horizon=10), "stopped")
    long, other = run_of("c", "f0", [9.0, 5.0, 1.0]), run_of("a", "f1", [9.0], horizon=1)
    values, targets, ends = sample_stored([short, stopped, long, other], GRID)
    assert (targets, ends) == ({}, (EarlyEnds("a", "hold", 1, 10.0, 10.0, 90.0),))
    np.testing.assert_array_equal(values["a", "f0"], [[9.0, 5.0, 5.0]])
    np.testing.assert_array_equal(values["b", "f0"], [[9.0, 5.0, np.nan]])
    np.testing.assert_array_equal(values["a", "f1"], [[9.0, np.nan, np.nan]])


def test_a_newcomer_that_reaches_the_target_of_a_stored_run_is_equal_to_it() -> None:
    runs = [run_of("a", "f0", [9.0, 1.0], horizon=10, end="done"), run_of("b", "f0", [9.0, 5.0, 2.0])]
    values, targets, ends = sample_stored(runs, GRID)
    assert targets == {"f0": 1.0}
    about = json.loads(json.dumps({"targets": targets, "early_ends": [each.to_json() for each in ends]}))
    state = start_against(["new"], GRID, RaceSettings(seed=1), StoredRivals(values, (Identity("f0", {}),), about))
    assert state.table.early_ends == (EarlyEnds("a", "done", 1, 10.0, 10.0, 90.0),)
    ran = observe(state, [run_of("new", "f0", [8.0, 3.0, 0.25])])
    assert ran.table.ranks[0].tolist() == [[2, 2, 1], [1, 3, 2], [1, 3, 1]]


def test_a_stored_run_that_is_done_is_compared_as_long_as_newcomers_run() -> None:
    values, *_ = sample_stored([run_of("a", "f0", [9.0, 1.0], horizon=10, end="done"), run_of("a", "f1")], GRID)
    np.testing.assert_array_equal(values["a", "f0"], [[9.0, 1.0, 1.0]])


def replace_end(run: Trajectory, end: Any) -> Trajectory:
    return Trajectory(
        algorithm=run.algorithm, instance=run.instance, times=run.times, best=run.best, horizon=run.horizon, end=end
    )


def test_timepoints_go_over_the_time_in_which_all_rivals_count() -> None:
    runs = [run_of("a", "f0", [9.0, 5.0], horizon=10), run_of("b", "f0", [9.0, 5.0, 1.0])]
    assert default_timepoints(runs, 3).tolist() == [1, 10, 100]


def test_a_timepoint_outside_the_archive_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"1 of 2 lie outside every run \(200\)"):
        sample_stored(archive(), [10, 200])


def test_names_and_seeds_must_differ() -> None:
    with pytest.raises(InvalidInputError, match="b: both the archive and the portfolio have this name"):
        start(archive(), "b", "c")
    with pytest.raises(InvalidInputError, match="Two stored runs of 'a' on instance 'f0' have the seed 0"):
        sample_stored([*archive(1), *archive(1)], GRID)


def test_groups_and_ties_reach_the_rankings() -> None:
    runs = archive(2)
    identities = tuple(Identity(f"f{number}", {}, f"g{number}", True) for number in range(2))
    rivals = StoredRivals(sample_stored(runs, GRID).values, identities, {})
    table = start_against(["new"], GRID, SETTINGS, rivals, tolerance=2.0).table
    assert table.groups == ("g0", "g1")
    assert table.fixed_groups
    state = observe(start_against(["new"], GRID, SETTINGS, rivals, tolerance=2.0), [run_of("new", "f0", [9, 9, 2.5])])
    assert state.table.tolerance == 2
    assert state.table.ranks[0, 2].tolist() == [1, 1, 1]


def test_newcomers_meet_each_other_only_as_far_as_a_rival_was_watched() -> None:
    """Past that, the instances would be others than those on which they meet the rivals."""
    runs = [run_of("a", "f0", [9.0, 5.0], horizon=10), run_of("a", "f1", [9.0, 5.0, 1.0])]
    state = start(runs, "x", "y")
    resolved = np.ones_like(state.resolved)
    resolved[:, 1, 2] = resolved[:, 2, 1] = False
    orders = plan(replace(state, resolved=resolved), 2).orders
    assert [(order.instance, order.until) for order in orders] == [(0, 10.0)] * 2 + [(1, 100.0)] * 2


def test_batches_shrink_with_the_pairs_that_the_race_is_about() -> None:
    """Ten stored rivals that always tie have 45 open pairs, which say nothing about how fast newcomers are settled."""
    runs = [run_of(name, f"f{number}", 5.0) for number in range(40) for name in "abcdefghij"]
    state = start(runs, "new", batch_size=30, epsilon=0.0, guard="none")
    ran = observe(state, [run_of("new", f"f{number}", 9.0) for number in range(30)])
    decided = decide(ran, infer(ran, 1))
    assert decided.settled
    assert not decided.resolved.all()
    assert decided.rounds[-1].next_batch == 15


def test_pairs_of_stored_rivals_that_the_archive_settles_are_listed() -> None:
    runs = [
        run_of(name, f"f{number}", [9.0, early, late])
        for number in range(60)
        for name, early, late in (("a", 1.0, 1.0), ("b", 5.0, 0.5))
    ]
    state = start(runs, "new", epsilon=0.3, resolution="crossing", guard="none")
    ran = observe(state, [run_of("new", f"f{number}", [9.0, 5.0, 0.7]) for number in range(2)])
    assert ("a", "b") in decide(ran, infer(ran, 1)).rounds[-1].resolved


def test_open_pairs_of_stored_rivals_are_not_forecast() -> None:
    runs = [run_of(name, f"f{number}", 5.0) for number in range(20) for name in "ab"]
    state = start(runs, "new", epsilon=0.0)
    ran = observe(state, [run_of("new", f"f{number}", 9.0) for number in range(20)])
    posterior = infer(ran, 1)
    decided = decide(ran, posterior)
    assert not decided.resolved.all()
    assert decided.settled
    assert forecast(decided, posterior).instances.max() == 0


@pytest.mark.parametrize(
    "damaged",
    [
        {"against": []},
        {"against": {"sources": "archive"}},
        {"against": {"options": 3}},
        {"against": {"not_in_suite": "many"}},
        {"against": {"not_in_archive": -1}},
        {"interference": []},
        {"interference": {"alone": 0.03, "beside": 0.04, "slower": "much", "measured": 3}},
    ],
)
def test_a_description_that_no_race_writes_is_refused(damaged: dict[str, Any]) -> None:
    check_about({"against": {"sources": None, "options": {}, "not_in_suite": 0, "not_in_archive": None}})
    check_about({"interference": {"alone": 0.03, "beside": 0.04, "slower": 0.33, "measured": 3}})
    with pytest.raises(ValueError, match="about"):
        check_about(damaged)
