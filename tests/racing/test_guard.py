"""The guard: what direct counts say about relations that the model sees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import posterior_of_logs, table_of, wins_table
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc

from polarbear_plugins import RaceSettings, analyze
from polarbear_plugins.racing.guard import difference_at_most, support_of
from polarbear_plugins.racing.rules import decide, plan
from polarbear_plugins.racing.state import Elimination, RaceState, start_race
from polarbear_plugins.rankings.table import RankingTable
from polarbear_plugins.rankings.tallies import Tallies, tally

KINDS = np.tile([[1.0, 3.0, 2.0], [3.0, 1.0, 2.0]], (30, 1))[:, None, :]  # c is always second
SETTINGS = RaceSettings(seed=1, draws=1000)

amounts = st.floats(1.0, 200.0)


def state_of(table: RankingTable, **settings: object) -> RaceState:
    """A race that has observed a table and decided nothing."""
    options = {"seed": 0, **settings}
    race = start_race(table.algorithms, table.timepoints, RaceSettings(**options))  # type: ignore[arg-type]
    return replace(race, table=table)


# The difference of two shares


@pytest.mark.parametrize("bound", [-0.1, 0.0, 0.05, 0.3])
@pytest.mark.parametrize(
    "parameters", [(1, 1, 3), (31, 1, 31), (8, 12, 1), (3, 3, 40), (40, 60, 20), (1, 1, 400), (2.5, 1.5, 0.5)]
)
def test_the_difference_of_two_shares_is_distributed_as_draws_say(
    parameters: tuple[float, float, float], bound: float
) -> None:
    draws = np.random.default_rng(1).dirichlet(parameters, 100_000)
    expected = (draws[:, 0] - draws[:, 1] <= bound).mean()
    one, other, rest = (np.array([float(amount)]) for amount in parameters)
    assert difference_at_most(bound, one, other, rest)[0] == pytest.approx(expected, abs=0.006)


@given(amounts, amounts, st.floats(-0.9, 0.9))
def test_two_algorithms_alone_have_all_first_places(one: float, other: float, bound: float) -> None:
    found = difference_at_most(bound, np.array([one]), np.array([other]), np.array([0.0]))
    assert found[0] == pytest.approx(betainc(one, other, (1 + bound) / 2), abs=1e-12)


@given(amounts, amounts, st.floats(0.0, 200.0), st.floats(0.0, 0.4))
def test_either_the_difference_is_small_or_the_opposite_one_is(
    one: float, other: float, rest: float, bound: float
) -> None:
    mine, theirs, others = (np.array([amount]) for amount in (one, other, rest))
    both = difference_at_most(bound, mine, theirs, others) + difference_at_most(-bound, theirs, mine, others)
    assert both[0] == pytest.approx(1.0, abs=1e-9)


# What counts say


def support(wins: int, losses: int, ties: int = 0, *, alpha: float = 0.99) -> tuple[bool, bool, bool]:
    """Whether counts of two algorithms say better, equivalent, worse of the first."""
    pair = np.array([[[0.0, wins], [losses, 0.0]]])
    split = np.array([[[0.0, ties], [ties, 0.0]]])
    found = support_of(Tallies(pair, split, pair + split / 2), 0.05, alpha)
    return bool(found.better[0, 0, 1]), bool(found.equivalent[0, 0, 1]), bool(found.worse[0, 0, 1])


@pytest.mark.parametrize(
    ("wins", "losses", "ties", "better"),
    # With one of each beforehand the probability of a majority is 1 - 2^-(wins + 1) without a loss.
    [
        (5, 0, 0, False),
        (6, 0, 0, True),
        (8, 1, 0, True),
        (7, 1, 0, False),
        (6, 0, 4, False),
        (9, 0, 6, True),
        (60, 40, 0, False),
        (61, 39, 0, True),
    ],
)
def test_a_dominance_needs_a_majority_that_is_sure(wins: int, losses: int, ties: int, better: bool) -> None:
    assert support(wins, losses, ties)[0] is better
    assert not support(losses, wins, ties)[0]


@pytest.mark.parametrize(
    ("wins", "losses", "possible"), [(5, 5, True), (60, 40, True), (12, 0, False), (70, 30, False)]
)
def test_an_equivalence_is_possible_until_the_counts_refute_it(wins: int, losses: int, possible: bool) -> None:
    assert support(wins, losses)[1] is possible
    assert support(losses, wins)[1] is possible


@pytest.mark.parametrize(("alpha", "losses"), [(0.99, 6), (0.9, 3)])
def test_counts_are_sure_of_the_opposite_with_probability_alpha(alpha: float, losses: int) -> None:
    assert support(0, losses, alpha=alpha)[2]  # 1 - 2^-(losses + 1) is at least alpha
    assert not support(0, losses - 1, alpha=alpha)[2]
    assert not support(losses, 0, alpha=alpha)[2]


def test_a_majority_does_not_make_up_for_first_places() -> None:
    # b beats a on two thirds of the instances and is never first.
    values = np.tile([[1.0, 3.0, 2.0], [3.0, 2.0, 1.0], [3.0, 2.0, 1.0]], (20, 1))[:, None, :]
    found = support_of(tally(table_of(values)), 0.05, 0.99)
    a, b = 0, 1
    assert not found.better[0, b, a]
    assert not found.better[0, a, b]
    assert found.worse[0, b, a]  # in first places
    assert found.worse[0, a, b]  # in wins
    assert not found.equivalent[0, a, b]


def test_first_places_do_not_make_up_for_a_majority() -> None:
    # c is never first, and a and c split their pair evenly: neither has a majority.
    found = support_of(tally(table_of(KINDS)), 0.05, 0.99)
    a, c = 0, 2
    assert not found.better[0, a, c]
    assert not found.equivalent[0, a, c]
    assert found.worse[0, c, a]
    assert not found.worse[0, a, c]


def test_as_many_first_places_do_not_make_two_equivalent_of_which_one_always_wins() -> None:
    found = support_of(tally(table_of(np.tile([1.0, 2.0, 0.0], (60, 1, 1)))), 0.05, 0.99)
    assert not found.equivalent[0, 0, 1]
    assert found.better[0, 0, 1]


# In a race


def test_of_two_kinds_of_instances_the_guard_keeps_the_best_of_each() -> None:
    table = table_of(np.repeat(KINDS, 4, axis=0))
    unguarded = analyze(table, replace(SETTINGS, guard="none"))
    assert unguarded.pareto_set == ("c",)
    guarded = analyze(table, SETTINGS)
    assert guarded.pareto_set == ("a", "b", "c")
    assert {(one.algorithm, one.by) for one in guarded.rounds[-1].held} == {("a", "c"), ("b", "c")}
    assert all(one.probability >= 0.99 for one in guarded.rounds[-1].held)
    assert unguarded.rounds[-1].held == ()


def test_a_pair_in_dispute_is_settled_and_nobody_is_eliminated() -> None:
    guarded = analyze(table_of(np.repeat(KINDS, 4, axis=0)), SETTINGS)
    resolved = guarded.state.resolved[0]
    assert resolved[0, 2]
    assert resolved[1, 2]


@pytest.mark.parametrize("instances", [8, 20])
def test_the_guard_does_not_hinder_what_is_clear(instances: int) -> None:
    clear = analyze(wins_table([instances] * 3, instances), SETTINGS)
    assert clear.pareto_set == ("a",)
    assert clear.rounds[-1].held == ()
    five = table_of(np.tile(np.arange(5.0), (instances, 3, 1)))
    guarded, unguarded = (analyze(five, replace(SETTINGS, guard=guard)) for guard in ("counts", "none"))  # type: ignore[arg-type]
    assert guarded.pareto_set == unguarded.pareto_set
    assert guarded.rounds[-1].held == ()
    assert len(guarded.eliminations) >= 3


def test_what_the_guard_holds_is_named_once_and_only_if_nobody_else_eliminates_it() -> None:
    # By the model c is better than a and b; d is worse than everybody, and the counts agree about d only.
    values = np.concatenate([np.repeat(KINDS, 4, axis=0), np.full((240, 1, 1), 9.0)], axis=2)
    result = analyze(table_of(values), SETTINGS)
    assert result.pareto_set == ("a", "b", "c")
    assert sorted(one.algorithm for one in result.rounds[-1].held) == ["a", "b"]


def test_a_relation_needs_the_counts_of_its_own_timepoint() -> None:
    # The hand-made model is sure of a at both timepoints, the counts at the first one only.
    table = wins_table([20, 10], 20)
    sure = posterior_of_logs([[[1.0, 0.0]] * 2] * 100, joint=False)
    out = decide(state_of(table), sure)
    assert out.resolved[:, 0, 1].tolist() == [True, False]
    assert out.pareto_set == ("a", "b")
    assert [(one.algorithm, one.by) for one in out.rounds[-1].held] == [("b", "a")]
    assert decide(state_of(table, guard="none"), sure).pareto_set == ("a",)


def test_an_equivalence_that_the_counts_refute_is_not_settled() -> None:
    equal = posterior_of_logs([[[0.01, 0.0]], [[0.0, 0.01]]] * 50, joint=False)
    refuted, possible = wins_table([20], 20), wins_table([10], 20)
    assert not decide(state_of(refuted), equal).resolved.all()
    assert decide(state_of(possible), equal).resolved.all()
    assert decide(state_of(refuted, guard="none"), equal).resolved.all()


def test_first_places_count_among_those_that_are_in_the_race() -> None:
    # d is first on all instances, and was eliminated; by the model a and c are equivalent, and of a, b and c it is only
    # a and b that are ever first.
    table = table_of(np.concatenate([KINDS, np.zeros((60, 1, 1))], axis=2))
    logs = [[[0.01, 5.0, 0.0, -5.0]], [[0.0, 5.0, 0.01, -5.0]]] * 50
    before = state_of(table)
    nothing = decide(before, posterior_of_logs(np.random.default_rng(1).normal(size=(100, 1, 4)), joint=False))
    out = replace(nothing.rounds[-1], eliminations=(Elimination("d", "a", 1.0, 1),))
    resolved = np.array(nothing.resolved)
    resolved[:, 3] = resolved[:, :, 3] = True
    eliminated = replace(nothing, rounds=(out,), resolved=resolved)
    posterior = posterior_of_logs(logs, joint=False)
    assert decide(before, posterior).resolved[0, 0, 2]
    assert not decide(eliminated, posterior).resolved[0, 0, 2]


def test_a_disputed_pair_does_not_run_on() -> None:
    race = decide(state_of(wins_table([0], 20)), posterior_of_logs([[[1.0, 0.0]]] * 100, joint=False))
    assert race.pareto_set == ("a", "b")
    assert plan(race).over == "resolved"


def test_other_rankings_than_those_of_the_state_can_be_given() -> None:
    sure = posterior_of_logs([[[1.0, 0.0]]] * 100, joint=False)
    assert decide(state_of(wins_table([0], 20)), sure, wins_table([20], 20)).pareto_set == ("a",)
