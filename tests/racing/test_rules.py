from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from builders import posterior_of_logs
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import Posterior, RaceSettings, Trajectory
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.racing.rules import decide, enter, next_batch, observe, plan, retire
from polarbear_plugins.racing.state import Order, Plan, RaceState, start_race
from polarbear_plugins.racing.verdicts import crossing

NAMES = "abcdefgh"


def posterior(*draws: list[list[float]], **options: bool) -> Posterior:
    """Hand-made draws: for each draw a row of log-ratings for each timepoint."""
    return posterior_of_logs(draws, **options)


def state(algorithms: int, timepoints: int, **settings: object) -> RaceState:
    # Without a guard: hand-made posteriors have no rankings behind them.
    options = {"alpha": 0.9, "seed": 0, "guard": "none", **settings}
    return start_race(NAMES[:algorithms], range(1, timepoints + 1), RaceSettings(**options))  # type: ignore[arg-type]


def runs(race: RaceState, orders: tuple[Order, ...]) -> list[Trajectory]:
    """Runs as ordered: the earlier in the alphabet the better."""
    grid = race.timepoints
    return [
        Trajectory(
            algorithm=order.algorithm,
            instance=f"i{order.instance}",
            times=grid[grid <= order.until],
            best=-grid[grid <= order.until] + NAMES.index(order.algorithm) / 100,
            horizon=order.until,
        )
        for order in orders
    ]


def advance(race: RaceState, available: int | None = None) -> RaceState:
    return observe(race, runs(race, plan(race, available).orders))


# Equations 22-28: dominance, equivalence, elimination.


def test_pointwise_elimination_asks_for_alpha_at_each_timepoint_by_itself() -> None:
    # b is worse than a in 9 of 10 draws at each timepoint, in different draws.
    draws = [[[1.0, 0.0], [1.0, 0.0]]] * 8 + [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
    out = decide(state(2, 2, elimination="pointwise"), posterior(*draws))
    assert [(e.algorithm, e.by, e.probability, e.round) for e in out.eliminations] == [("b", "a", 0.9, 1)]
    assert out.pareto_set == ("a",)


def test_joint_elimination_keeps_what_pointwise_would_eliminate_when_timepoints_are_negatively_correlated() -> None:
    draws = [[[1.0, 0.0], [1.0, 0.0]]] * 8 + [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
    kept = decide(state(2, 2, elimination="joint"), posterior(*draws))
    assert kept.pareto_set == ("a", "b")
    assert kept.rounds[-1].rivals == {"a": ("b", 0.0), "b": ("a", 0.8)}


def test_joint_elimination_eliminates_when_the_draws_agree() -> None:
    draws = [[[1.0, 0.0], [1.0, 0.0]]] * 9 + [[[0.0, 1.0], [0.0, 1.0]]]
    assert decide(state(2, 2, elimination="joint"), posterior(*draws)).pareto_set == ("a",)


def test_one_timepoint_in_doubt_is_enough_to_stay() -> None:
    draws = [[[1.0, 0.0], [1.0, 0.0]]] * 8 + [[[1.0, 0.0], [0.0, 1.0]]] * 2
    assert decide(state(2, 2), posterior(*draws)).pareto_set == ("a", "b")


def test_two_rivals_that_are_each_better_somewhere_do_not_eliminate_together() -> None:
    # c is always beaten, by a early and by b late, but by neither throughout.
    draws = [[[2.0, 0.0, 1.0], [0.0, 2.0, 1.0]]] * 10
    assert decide(state(3, 2), posterior(*draws)).pareto_set == ("a", "b", "c")


def test_dominance_takes_precedence_over_equivalence() -> None:
    # A tiny advantage that is certain lies within the ROPE and is dominance all the same.
    out = decide(state(2, 1, epsilon=0.05), posterior(*[[[0.01, 0.0]]] * 10))
    assert out.pareto_set == ("a",)


def test_equivalence_settles_a_pair_and_keeps_both() -> None:
    draws = [[[0.01, 0.0]]] * 5 + [[[0.0, 0.01]]] * 5
    out = decide(state(2, 1, epsilon=0.05), posterior(*draws))
    assert out.pareto_set == ("a", "b")
    assert out.resolved.all()
    assert out.rounds[-1].resolved == (("a", "b"),)
    assert plan(out).over == "resolved"


def test_equivalence_needs_alpha() -> None:
    draws = [[[0.01, 0.0]]] * 4 + [[[0.0, 0.01]]] * 4 + [[[3.0, 0.0]]] * 2
    assert not decide(state(2, 1, epsilon=0.05), posterior(*draws)).resolved.all()


def test_a_chain_falls_as_a_whole_and_its_last_dominator_stays() -> None:
    out = decide(state(4, 1), posterior(*[[[3.0, 2.0, 1.0, 0.0]]] * 10))
    assert out.pareto_set == ("a",)
    assert {e.algorithm for e in out.eliminations} == {"b", "c", "d"}


def test_the_surest_rival_of_the_weakest_is_named_even_if_it_falls_in_the_same_round() -> None:
    out = decide(state(3, 1), posterior(*[[[2.0, 1.0, 0.0]]] * 9, [[0.0, 2.0, 1.0]]))
    assert [(e.algorithm, e.by, e.probability) for e in out.eliminations] == [("c", "b", 1.0), ("b", "a", 0.9)]


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_a_circle_of_dominances_does_not_empty_the_race(shift: int) -> None:
    # With alpha = 0.6 three algorithms can dominate each other in a circle.
    orders = [[2.0, 1.0, 0.0], [0.0, 2.0, 1.0], [1.0, 0.0, 2.0]]
    draws = [[list(np.roll(order, shift))] for order in orders]
    out = decide(state(3, 1, alpha=0.6), posterior(*draws))
    assert out.pareto_set


@given(st.integers(0, 300), st.sampled_from([0.55, 0.7, 0.9, 0.99]), st.sampled_from(["pointwise", "joint"]))
def test_whoever_is_eliminated_has_a_dominator_and_somebody_stays(seed: int, alpha: float, mode: str) -> None:
    rng = np.random.default_rng(seed)
    logs = rng.normal(size=(1, 2, 5)) * 3 + rng.normal(size=(12, 2, 5))
    before = state(5, 2, alpha=alpha, elimination=mode)
    after = decide(before, posterior(*logs.tolist()))
    assert after.pareto_set
    for elimination in after.eliminations:
        i, j = NAMES.index(elimination.by), NAMES.index(elimination.algorithm)
        better = logs[:, :, i] > logs[:, :, j]
        share = better.all(axis=1).mean() if mode == "joint" else better.mean(axis=0).min()
        assert elimination.probability == pytest.approx(share)
        assert share >= alpha
    everyone_else = set(after.algorithms) - {e.algorithm for e in after.eliminations}
    assert everyone_else == set(after.pareto_set)
    assert np.array_equal(after.resolved, after.resolved.transpose(0, 2, 1))


@given(st.permutations(range(4)), st.integers(0, 100))
def test_relabelling_the_algorithms_relabels_the_decisions(order: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    logs = 2 * rng.normal(size=(1, 3, 4)) + rng.normal(size=(20, 3, 4))
    one = decide(state(4, 3, resolution="crossing"), posterior(*logs.tolist()))
    other = decide(state(4, 3, resolution="crossing"), posterior(*logs[:, :, order].tolist()))
    assert {NAMES[order[NAMES.index(name)]] for name in other.pareto_set} == set(one.pareto_set)
    assert np.array_equal(other.resolved, one.resolved[:, order][:, :, order])


# Equations 29-31: resolution.


def test_strict_resolution_settles_each_timepoint_by_itself() -> None:
    draws = [[[1.0, 0.0], [1.0, 0.0]]] * 5 + [[[1.0, 0.0], [0.0, 1.0]]] * 5
    out = decide(state(2, 2, epsilon=0.0), posterior(*draws))
    assert out.resolved[:, 0, 1].tolist() == [True, False]


def test_a_crossing_pair_is_settled_at_all_timepoints_and_both_stay() -> None:
    # Sure at both ends, in doubt between.
    draws = [[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]] * 5 + [[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]] * 5
    strict = decide(state(2, 3, resolution="strict", epsilon=0.0), posterior(*draws))
    early = decide(state(2, 3, resolution="crossing", epsilon=0.0), posterior(*draws))
    assert strict.resolved[:, 0, 1].tolist() == [True, False, True]
    assert early.resolved.all()
    assert early.pareto_set == ("a", "b")


def test_dominance_here_and_equivalence_there_is_a_crossing() -> None:
    draws = [[[2.0, 0.0], [0.01, 0.0], [1.0, 0.0]]] * 5 + [[[2.0, 0.0], [0.0, 0.01], [0.0, 1.0]]] * 5
    assert decide(state(2, 3, resolution="crossing"), posterior(*draws)).resolved.all()


def test_a_sure_advantage_inside_the_rope_is_no_crossing_with_itself() -> None:
    draws = [[[0.01, 0.0], [3.0, 0.0]]] * 5 + [[[0.01, 0.0], [0.0, 3.0]]] * 5
    out = decide(state(2, 2, resolution="crossing"), posterior(*draws))
    assert out.resolved[:, 0, 1].tolist() == [True, False]


@pytest.mark.parametrize(
    ("relations", "expected"),
    [
        (">", False),
        ("=", False),
        ("=?", False),
        (">>?", False),
        ("><", True),
        ("<=", True),
        (">?=", True),
        ("?", False),
        ("=>", True),
        ("==", False),
    ],
)
def test_equation_31_holds_when_two_of_the_three_relations_occur(relations: str, expected: bool) -> None:
    def at(sign: str) -> np.ndarray:
        return np.array([[[False, r == sign], [r == {">": "<", "<": ">"}.get(sign, sign), False]] for r in relations])

    assert bool(crossing(at(">"), at("="))[0, 1]) is expected


def test_equation_31_as_written_agrees_with_counting_relations() -> None:
    for signs in itertools.product("><=?", repeat=3):
        better = [sign == ">" for sign in signs]
        worse = [sign == "<" for sign in signs]
        equal = [sign == "=" for sign in signs]
        written = any(
            (better[t] or equal[t]) and (worse[u] or equal[u]) and (better[t] or worse[u])
            for t in range(3)
            for u in range(3)
        )
        dominates = np.array([[[False, b], [w, False]] for b, w in zip(better, worse, strict=True)])
        equivalent = np.array([[[False, e], [e, False]] for e in equal])
        assert bool(crossing(dominates, equivalent)[0, 1]) is written, signs


def test_what_is_settled_stays_settled() -> None:
    sure = posterior(*[[[1.0, 0.0], [0.0, 1.0]]] * 10)
    doubt = posterior(*[[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]] * 5)
    out = decide(decide(state(2, 2, epsilon=0.0), sure), doubt)
    assert out.resolved.all()


def test_all_pairs_of_an_eliminated_algorithm_are_settled() -> None:
    draws = [[[2.0, 2.1, 0.0]]] * 5 + [[[2.1, 2.0, 0.0]]] * 5
    out = decide(state(3, 1, epsilon=0.0), posterior(*draws))
    assert out.pareto_set == ("a", "b")
    assert out.resolved[:, 2].all()
    assert not out.resolved[:, 0, 1].any()
    assert out.resolved_share == pytest.approx(2 / 3)


def test_a_posterior_that_is_not_good_decides_nothing() -> None:
    poor = posterior(*[[[1.0, 0.0]]] * 10, good=False)
    out = decide(state(2, 1), poor)
    assert out.pareto_set == ("a", "b")
    assert not out.resolved.all()
    assert not out.rounds[-1].good
    for _ in range(4):
        assert plan(out).over is None
        out = decide(out, poor)
    assert plan(out).over == "inference"


def test_one_good_posterior_among_five_lets_a_race_go_on() -> None:
    undecided = [[[1.0, 0.0]], [[0.0, 1.0]]]
    good, poor = posterior(*undecided), posterior(*undecided, good=False)
    out = state(2, 1)
    for found in (poor, poor, poor, good, poor, poor, poor, poor):
        out = decide(out, found)
        assert plan(out).over is None
    assert plan(decide(out, poor)) == Plan((), "inference")


# Equation 32 and the batch size.


def test_under_pointwise_elimination_an_algorithm_runs_to_its_last_unsettled_timepoint() -> None:
    # a and b are settled at the last timepoint, c is open with both until the second one.
    half = [[[2.0, 1.0, 1.5], [1.0, 0.5, 0.8], [0.0, 1.0, 9.0]], [[1.0, 2.0, 1.5], [0.5, 1.0, 0.8], [0.0, 1.0, 9.0]]]
    out = decide(state(3, 3, epsilon=0.0), posterior(*half * 5))
    until = {order.algorithm: order.until for order in plan(out).orders}
    assert until == {"a": 2.0, "b": 2.0, "c": 2.0}
    assert {
        order.until for order in plan(replace(out, settings=replace(out.settings, elimination="joint"))).orders
    } == {3.0}


def test_a_settled_algorithm_does_not_run() -> None:
    draws = [[[2.0, 1.0, 0.0], [0.0, 0.5, 9.0]], [[1.0, 2.0, 0.0], [0.0, 0.5, 9.0]]] * 5
    out = decide(state(3, 2, epsilon=0.0), posterior(*draws))
    assert {order.algorithm for order in plan(out).orders} == {"a", "b"}
    assert {order.until for order in plan(out).orders} == {1.0}


@pytest.mark.parametrize(
    ("twins", "batch", "expected"),
    [
        ("abc", 16, 32),  # no pair
        ("abc", 100, 128),
        ("aab", 16, 8),  # one of three
        ("aab", 9, 8),
        ("aabc", 16, 16),  # one of six
        ("aabbc", 16, 16),  # two of ten: not more than a fifth
        ("aaabc", 16, 8),  # three of ten
    ],
)
def test_the_batch_doubles_when_no_pair_settles_and_halves_when_over_a_fifth_do(
    twins: str, batch: int, expected: int
) -> None:
    # Algorithms of the same letter have the same rating in every draw and are equivalent; the others change places.
    letters = sorted(set(twins))
    draws = [[[order.index(letter) for letter in twins]] for order in itertools.permutations(letters)]
    race = replace(state(len(twins), 1, epsilon=0.0), batch=batch)
    assert decide(race, posterior(*draws)).batch == expected


def test_the_first_batch_may_lie_outside_the_bounds_and_later_ones_do_not() -> None:
    race = state(2, 1, batch_size=2, batch_min=4, batch_max=6)
    assert len(plan(race).orders) == 4
    race = decide(advance(race), posterior([[1.0, 0.0]], [[0.0, 1.0]]))
    assert race.batch == 4
    race = decide(advance(race), posterior([[1.0, 0.0]], [[0.0, 1.0]]))
    assert race.batch == 6


# Stopping.


def test_a_race_without_an_open_pair_is_over() -> None:
    assert plan(decide(state(2, 1), posterior(*[[[1.0, 0.0]]] * 10))) == Plan((), "resolved")


def test_a_race_stops_after_its_rounds() -> None:
    out = decide(state(2, 1, max_rounds=1), posterior([[1.0, 0.0]], [[0.0, 1.0]]))
    assert plan(out) == Plan((), "max_rounds")


def test_a_plan_never_costs_more_than_is_left() -> None:
    race = state(2, 3, max_cost=20.0, batch_size=8)
    first = plan(race)
    assert first.cost == 18.0  # three instances of two runs until 3
    race = decide(advance(race), posterior([[1.0, 0.0]] * 3, [[0.0, 1.0]] * 3))
    assert plan(race) == Plan((), "max_cost")


def test_a_limit_that_is_reached_within_an_instance_leaves_the_whole_instance_out() -> None:
    race = state(3, 3, max_cost=20.0, batch_size=8)  # 9 for an instance
    assert [order.instance for order in plan(race).orders] == [0, 0, 0, 1, 1, 1]


def test_runs_that_are_paid_cost_nothing_more_and_all_that_was_spent_counts() -> None:
    race = state(2, 3, max_cost=20.0, batch_size=8)  # 6 for an instance
    assert {order.instance for order in plan(race).orders} == {0, 1, 2}

    def is_paid(order: Order) -> bool:
        return (order.algorithm, order.instance) in {("a", 0), ("b", 0), ("a", 4)}

    assert {order.instance for order in plan(race, is_paid=is_paid, spent=9.0).orders} == {0, 1}
    assert {order.instance for order in plan(race, is_paid=is_paid, spent=8.0).orders} == {0, 1, 2}
    assert {order.instance for order in plan(race, spent=9.0).orders} == {0}


def test_a_finite_suite_ends_the_race_when_it_is_used_up() -> None:
    race = state(2, 1, batch_size=8)
    race = decide(advance(race, 5), posterior([[1.0, 0.0]], [[0.0, 1.0]]))
    assert len(race.table) == 5
    assert plan(race, 5) == Plan((), "instances")


# Observing.


def test_observe_ranks_the_runs_of_each_instance_and_leaves_the_state_before_alone() -> None:
    before = state(3, 2, batch_size=2)
    after = advance(before)
    assert len(before.table) == 0
    assert after.table.instances == ("i0", "i1")
    assert after.table.ranks.tolist() == [[[1, 2, 3]] * 2] * 2
    assert after.cost == 12.0
    assert after.full_cost == 12.0


def test_every_run_costs_its_horizon_whether_or_not_it_found_anything() -> None:
    horizons = {"a": (3.0, 2.0), "b": (3.0, 1.0)}
    given = [
        Trajectory(algorithm=name, instance="i", seed=seed, times=[], best=[], horizon=horizon)
        for name, both in horizons.items()
        for seed, horizon in enumerate(both)
    ]
    after = observe(state(2, 3, replications=2), given)
    assert after.cost == 9.0
    assert np.isposinf(after.table.values[0, 0]).all()  # as bad as can be, but there


def test_what_ran_shorter_is_absent_later() -> None:
    race = state(2, 2)
    short, long = (
        Trajectory(algorithm=name, instance="i", times=[1], best=[0.0], horizon=until)
        for name, until in (("a", 1), ("b", 2))
    )
    assert observe(race, [short, long]).table.ranks[0].tolist() == [[1, 1], [0, 1]]


def test_a_run_that_the_race_does_not_expect_is_refused() -> None:
    race = advance(state(2, 1))
    with pytest.raises(InvalidInputError, match="no such algorithm"):
        observe(race, [Trajectory(algorithm="z", instance="new", times=[1], best=[0.0])])
    with pytest.raises(InvalidInputError, match="already has a run"):
        observe(race, [Trajectory(algorithm="a", instance="i0", times=[1], best=[0.0])])


def test_eliminated_algorithms_stay_in_the_model() -> None:
    race = decide(advance(state(3, 1, batch_size=8)), posterior(*[[[1.0, 2.0, 0.0]], [[2.0, 1.0, 0.0]]] * 5))
    assert race.pareto_set == ("a", "b")
    later = advance(race)
    assert (later.table.ranks[:8, :, 2] > 0).all()
    assert (later.table.ranks[8:, :, 2] == 0).all()


# Late entry.


def newcomer_state(batch: int = 4) -> RaceState:
    race = state(3, 2, batch_size=batch, batch_min=batch, epsilon=0.0)
    doubt = posterior(*[[[1.0, 2.0, 0.0]] * 2, [[2.0, 1.0, 0.0]] * 2] * 5)
    race = decide(advance(race), doubt)  # c is out
    return decide(advance(race), doubt)


def test_a_newcomer_catches_up_on_the_instances_drawn_so_far_before_the_race_goes_on() -> None:
    race = replace(enter(newcomer_state(), "d"), batch=3)
    drawn = len(race.table)
    seen: list[int] = []
    while len(seen) < drawn:
        orders = plan(race).orders
        assert {order.algorithm for order in orders} == {"d"}
        assert len(orders) <= race.batch
        seen += [order.instance for order in orders]
        doubt = posterior(*[[[1.0, 2.0, 0.0, 1.5]] * 2, [[2.0, 1.0, 0.0, 1.6]] * 2] * 5)
        race = decide(advance(race), doubt)
    assert seen == list(range(drawn))
    assert race.newcomers == ()
    assert (race.table.ranks[:, :, 3] > 0).all()
    assert {order.algorithm for order in plan(race).orders} == {"a", "b", "d"}
    assert {order.instance for order in plan(race).orders} == set(range(drawn, drawn + race.batch))


def test_a_newcomer_is_ranked_into_the_stored_trajectories() -> None:
    race = enter(newcomer_state(), "d")
    after = advance(race)
    places = {order.instance for order in plan(race).orders}
    for place in places:
        assert after.table.ranks[place, 0, 3] == (after.table.ranks[place, 0, :3] > 0).sum() + 1
    others = np.array(race.table.values)
    assert np.array_equal(after.table.values[:, :, :3], others[:, :, :3], equal_nan=True)


def test_a_newcomer_that_is_eliminated_stops_catching_up() -> None:
    race = enter(newcomer_state(), "d")
    doubt = posterior(*[[[1.0, 2.0, 0.0, -9.0]] * 2, [[2.0, 1.0, 0.0, -9.0]] * 2] * 5)
    race = decide(advance(race), doubt)
    assert race.newcomers == ()
    assert {order.algorithm for order in plan(race).orders} == {"a", "b"}


@pytest.mark.parametrize(("left", "runs_ordered"), [(1.9, 0), (2.0, 1), (7.9, 3), (8.0, 4)])
def test_a_newcomer_spends_what_is_left_to_the_last_bit(left: float, runs_ordered: int) -> None:
    race = enter(newcomer_state(), "d")  # each of its runs goes until 2
    race = replace(race, settings=replace(race.settings, max_cost=race.cost + left))
    assert len(plan(race).orders) == runs_ordered
    assert plan(race).over == (None if runs_ordered else "max_cost")


def test_a_newcomer_does_not_race_the_eliminated() -> None:
    race = enter(newcomer_state(), "d")
    assert race.resolved[:, 3, 2].all()
    assert not race.resolved[:, 3, :2].any()


def test_a_newcomer_runs_no_further_than_a_rival_did() -> None:
    race = state(2, 3, batch_size=2, epsilon=0.0)
    settled_late = posterior(*[[[1.0, 0.0]] * 2 + [[0.0, 1.0]], [[0.0, 1.0]] * 2 + [[0.0, 1.0]]] * 5)
    race = decide(advance(race), settled_late)
    race = advance(race)  # these runs end at the second timepoint
    race = enter(decide(race, settled_late), "c")
    until = {order.instance: order.until for order in plan(replace(race, batch=100)).orders}
    assert [until[place] for place in sorted(until)] == [3.0, 3.0] + [2.0] * (len(until) - 2)


@pytest.mark.parametrize(("mode", "until"), [("pointwise", 1.0), ("joint", 2.0)])
def test_only_under_pointwise_elimination_a_newcomer_stops_where_it_is_settled(mode: str, until: float) -> None:
    race = state(2, 2, batch_size=2, epsilon=0.0, elimination=mode)
    race = decide(advance(race), posterior(*[[[1.0, 0.0]] * 2, [[0.0, 1.0]] * 2] * 5))
    race = enter(race, "c")
    race.resolved[1, 2] = race.resolved[1, :, 2] = True
    assert {order.until for order in plan(race).orders} == {until}


def test_a_name_enters_once() -> None:
    with pytest.raises(InvalidInputError, match="already"):
        enter(state(2, 1), "a")


# Leaving the model.


def test_a_race_without_its_eliminated_algorithms_asks_for_the_same_runs_and_still_names_them() -> None:
    race = newcomer_state()
    narrower = retire(race, ["c"])
    assert narrower.algorithms == narrower.pareto_set == race.pareto_set == ("a", "b")
    assert plan(narrower) == plan(race)
    assert narrower.eliminations == race.eliminations
    assert np.array_equal(narrower.resolved, race.resolved[:, :2, :2])
    assert np.array_equal(narrower.table.values, race.table.values[:, :, :2], equal_nan=True)
    assert narrower.table.instances == race.table.instances
    assert plan(enter(narrower, "d")) == plan(enter(race, "d"))


def test_whoever_retires_no_longer_catches_up() -> None:
    race = enter(newcomer_state(), "d")
    race = decide(advance(race), posterior(*[[[1.0, 2.0, 0.0, -9.0]] * 2, [[2.0, 1.0, 0.0, -9.0]] * 2] * 5))
    assert retire(replace(race, newcomers=("d",)), ["c", "d"]).newcomers == ()


def test_nobody_retires_who_is_still_in_the_race_and_nobody_comes_back() -> None:
    with pytest.raises(InvalidInputError, match="'a' is still in the race"):
        retire(newcomer_state(), ["a", "c"])
    with pytest.raises(InvalidInputError, match="'c' is already in the race"):
        enter(retire(newcomer_state(), ["c"]), "c")


def test_a_batch_is_at_least_a_fiftieth_of_the_instances_so_far() -> None:
    sizes = [int(next_batch(8, 3, 2, instances, RaceSettings(batch_max=8))) for instances in (100, 400, 401, 10_000)]
    assert sizes == [8, 8, 9, 200]


def test_the_rounds_of_a_long_race_with_small_batches_grow_with_the_logarithm_of_its_length() -> None:
    instances, rounds = 8, 0
    while instances < 10_000:
        instances, rounds = instances + int(next_batch(8, 3, 2, instances, RaceSettings(batch_max=8))), rounds + 1
    assert rounds < 250  # 1,249 with batches of 8
