from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from builders import posterior_of_logs
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import RaceSettings, Trajectory
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.racing.lookahead import ahead
from polarbear_plugins.racing.rules import decide, enter, last_unresolved, observe, plan
from polarbear_plugins.racing.state import Order, RaceState, start_race
from polarbear_plugins.racing.stored import StoredRivals, start_against

NAMES = "abc"
TIMES = (1.0, 2.0, 4.0)


def started(**settings: object) -> RaceState:
    options = {"seed": 0, "guard": "none", "alpha": 0.9, "batch_size": 2, "batch_min": 2, "batch_max": 4, **settings}
    return start_race(NAMES, TIMES, RaceSettings(**options))  # type: ignore[arg-type]


def after_a_round(state: RaceState, *draws: list[list[float]]) -> RaceState:
    """State after the next round, with a posterior of these draws: a row of log-ratings for each timepoint."""
    runs = [
        Trajectory(
            algorithm=order.algorithm,
            instance=f"i{order.instance}",
            times=[1.0],
            best=[float(NAMES.index(order.algorithm))],
            horizon=order.until,
        )
        for order in plan(state).orders
    ]
    return decide(observe(state, runs), posterior_of_logs(draws))


def undecided(state: RaceState) -> RaceState:
    return after_a_round(state, [[0.0, 1.0, 2.0]] * 3, [[2.0, 1.0, 0.0]] * 3)


def test_the_next_plan_is_what_comes_first_if_nobody_is_eliminated() -> None:
    state = started()
    orders = plan(state).orders
    later = list(ahead(state, orders))
    following = plan(undecided(state)).orders
    assert tuple(later[: len(following)]) == following


def test_nothing_of_the_plan_is_begun_again() -> None:
    state = undecided(started())
    orders = plan(state).orders
    later = list(ahead(state, orders))
    assert not {(order.algorithm, order.instance) for order in orders} & {
        (order.algorithm, order.instance) for order in later
    }
    assert len({(order.algorithm, order.instance) for order in later}) == len(later)


def test_only_algorithms_with_open_pairs_run_ahead_and_no_further_than_needed() -> None:
    # c is worse than everyone everywhere; a and b are settled at the last timepoint.
    state = after_a_round(started(), [[1.0, 0.0, -9.0]] * 2 + [[1.0, 0.0, -9.0]], [[0.0, 1.0, -9.0]] * 2 + [[1, 0, -9]])
    assert last_unresolved(state) == {"a": 1, "b": 1}
    later = list(ahead(state, plan(state).orders))
    assert {(order.algorithm, order.until) for order in later} == {("a", 2.0), ("b", 2.0)}


def test_a_settled_race_runs_nothing_ahead() -> None:
    state = after_a_round(started(), [[9.0, 0.0, -9.0]] * 3)
    assert state.settled
    assert list(ahead(state, ())) == []


def test_the_last_round_runs_nothing_ahead() -> None:
    state = started(max_rounds=2)
    assert list(ahead(state, plan(state).orders))
    state = undecided(state)
    assert list(ahead(state, plan(state).orders)) == []
    late = enter(state, "d")
    assert {order.algorithm for order in plan(late).orders} == {"d"}
    assert list(ahead(late, plan(replace(late, batch=1)).orders)) == []


@given(rounds=st.integers(2, 5), batch=st.integers(1, 3))
def test_no_instance_is_asked_for_that_the_rounds_that_are_left_cannot_reach(rounds: int, batch: int) -> None:
    state = first = started(max_rounds=rounds, batch_size=batch, batch_min=1, batch_max=64)
    later = {order.instance for order in ahead(first, plan(first).orders)}
    # As large as can be: nothing is ever settled.
    while (planned := plan(state)).over is None:
        reached = {order.instance for order in planned.orders}
        state = undecided(state)
    assert planned.over == "max_rounds"
    assert max(later) == max(reached)


@given(st.integers(0, 30))
def test_no_instance_is_asked_for_that_does_not_exist(available: int) -> None:
    state = started()
    later = ahead(state, plan(state, available).orders, available)
    assert all(order.instance < available for order in later)


def test_a_run_that_hangs_starts_a_limited_number_of_others() -> None:
    """At most as many instances again as there are, and two batches of the largest size."""
    state = started()
    places = {order.instance for order in ahead(state, plan(state).orders)}
    assert places == set(range(2, 2 * 2 + 2 * 4))


def test_a_newcomer_catches_up_before_new_instances_begin() -> None:
    state = enter(undecided(undecided(started())), "d")
    seen = len(state.table.instances)
    orders = plan(replace(state, batch=2)).orders
    assert orders == (Order("d", 0, 4.0), Order("d", 1, 4.0))
    later = list(ahead(state, orders))
    missed = list(itertools.takewhile(lambda order: order.instance < seen, later))
    assert missed == [Order("d", place, 4.0) for place in range(2, seen)]
    assert np.all([order.instance >= seen for order in later[len(missed) :]])
    assert {order.algorithm for order in later[len(missed) :]} == set("abcd")


def test_beyond_the_next_round_nothing_runs_once_everything_before_has_finished() -> None:
    state = started()
    orders = plan(state).orders
    assert {order.instance for order in orders} == {0, 1}
    assert plan(undecided(state)).orders[-1].instance == 5  # the largest batch that can follow one of 2
    assert {order.instance for order in ahead(state, orders, is_finished=lambda _: True)} == {2, 3, 4, 5}
    for unfinished in (orders[0], Order("a", 5, 4.0)):
        later = ahead(state, orders, is_finished=lambda order, awaited=unfinished: order != awaited)
        assert {order.instance for order in later} > set(range(2, 7))


def test_newcomers_run_ahead_on_the_instances_of_an_archive_and_on_no_others() -> None:
    instances = tuple(Identity(f"i{place}") for place in range(5))
    values = {(name, one.name): [np.array([3.0, 2.0, 1.0])] for name in "ab" for one in instances}
    settings = RaceSettings(seed=0, batch_size=2, batch_min=2, batch_max=4)
    state = start_against("c", TIMES, settings, StoredRivals(values, instances, {}))
    orders = plan(state).orders
    assert [order.instance for order in orders] == [0, 1]
    assert [(order.algorithm, order.instance) for order in ahead(state, orders)] == [("c", 2), ("c", 3), ("c", 4)]
