"""The second opinion: e-values for dominance by majorities, without a model and at every look."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from builders import names, posterior_of_logs, table_of, wins_table
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from scipy.stats import binom

from polarbear_plugins import RaceSettings, Trajectory, analyze
from polarbear_plugins.racing.betting import SecondOpinion, log_e_values, opinion_from, second_opinion
from polarbear_plugins.racing.rules import decide, enter, next_batch, observe, plan
from polarbear_plugins.racing.state import RaceState, start_race
from polarbear_plugins.rankings.tallies import Tallies, tally

STAKES = [(place + 0.5) / 40 for place in range(40)]
MONEY = [stake * (1 - stake) ** 2 for stake in STAKES]
FIRST = 12  # instances before half of the money goes on one rival


def bet(*outcomes: float) -> float:
    """E-value of shares won, one after another, by someone whose money is spread over the stakes."""
    gains = [math.prod(1 + stake * (2 * share - 1) for share in outcomes) for stake in STAKES]
    return float(np.average(gains, weights=MONEY))


def e_value(wins: float, losses: float, ties: float = 0.0) -> float:
    pair = np.array([[[0.0, wins], [losses, 0.0]]])
    return float(np.exp(log_e_values(Tallies(pair, np.full((1, 2, 2), ties), pair))[0, 0, 1]))


# E-values of pairs


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=12))
def test_the_e_value_is_the_gain_of_betting_on_one_instance_after_another(outcomes: list[float]) -> None:
    counts = (outcomes.count(1.0), outcomes.count(0.0), outcomes.count(0.5))
    assert e_value(*counts) == pytest.approx(bet(*outcomes))


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (12, 0), (20, 5), (60, 45), (3, 9)])
def test_the_e_value_is_nearly_that_of_all_stakes(wins: int, losses: int) -> None:
    integral, _ = quad(lambda s: 12 * s * (1 - s) ** 2 * (1 + s) ** wins * (1 - s) ** losses, 0, 1)
    assert e_value(wins, losses) == pytest.approx(integral, rel=0.01)


@pytest.mark.parametrize("length", [1, 2, 5, 9])
def test_under_fair_coin_flips_the_expected_e_value_is_one(length: int) -> None:
    flips = itertools.product([0.0, 1.0], repeat=length)
    tables = (table_of(np.array([[[1.0 - won, won]] for won in sequence])) for sequence in flips)
    gains = [np.exp(log_e_values(tally(table))[0]) for table in tables]
    assert np.mean(gains, axis=0)[[0, 1], [1, 0]] == pytest.approx([1.0, 1.0])


@given(st.integers(0, 200), st.integers(0, 200))
def test_no_look_is_expected_to_gain_from_the_next_fair_instance(wins: int, losses: int) -> None:
    assert e_value(wins + 1, losses) + e_value(wins, losses + 1) == pytest.approx(2 * e_value(wins, losses))
    assert e_value(wins + 1, losses) > e_value(wins, losses) > e_value(wins, losses + 1)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 50))
def test_ties_neither_win_nor_lose(wins: int, losses: int, ties: int) -> None:
    assert e_value(wins, losses, ties) == pytest.approx(e_value(wins, losses))


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=5), min_size=1, max_size=6))
def test_repetitions_that_disagree_count_no_more_than_the_bet_on_their_share(runs: list[list[float]]) -> None:
    rows = [([[1.0 - won, won]], f"i{place}") for place, repeated in enumerate(runs) for won in repeated]
    table = table_of([row for row, _ in rows], instances=[instance for _, instance in rows])
    shares = [float(np.mean(repeated)) for repeated in runs]
    evidence = np.exp(second_opinion(table).log_e_values[0, 1])
    assert evidence <= bet(*shares) * (1 + 1e-9)
    if all(share in (0.0, 0.5, 1.0) for share in shares):
        assert evidence == pytest.approx(bet(*shares))


@pytest.mark.parametrize("repetitions", ["weight", "independent"])
def test_a_heavy_instance_is_one_bet_and_a_light_one_a_smaller_one(repetitions: str) -> None:
    values = [[[0.0, 1.0]]] * 9
    plain, heavy, light = (
        second_opinion(table_of(values, weights=[weight] * 9, repetitions=repetitions)).log_e_values[0, 1]
        for weight in (1.0, 7.0, 0.5)
    )
    assert heavy == pytest.approx(plain)
    assert 0 < light < plain


def test_dominance_at_every_timepoint_has_the_smallest_gain_of_them() -> None:
    table = wins_table([20, 14, 18], 20)
    found = second_opinion(table)
    one, other = (log_e_values(tally(table))[:, i, j] for i, j in ((0, 1), (1, 0)))
    assert found.log_e_values[0, 1] == one[1] == one.min()
    assert found.log_e_values[1, 0] == other[0] == other.min()
    assert found.algorithms == ("a", "b")


def test_an_algorithm_that_was_never_compared_has_no_evidence() -> None:
    values = np.concatenate([np.tile([0.0, 1.0], (30, 1, 1)), np.full((30, 1, 1), np.nan)], axis=2)
    found = second_opinion(table_of(values))
    assert found.log_e_values[2].tolist() == found.log_e_values[:, 2].tolist() == [0, 0, 0]
    assert found.certain(0.99).tolist() == [False, True, False]


@given(arrays(np.float64, (12, 2, 4), elements=st.sampled_from([0.0, 1.0, 2.0, np.nan]), fill=st.nothing()))
def test_relabelling_permutes_the_opinion(values: np.ndarray) -> None:
    values[0, 0, :2] = 0.0  # so that something is compared
    order = [2, 0, 3, 1]
    one, other = second_opinion(table_of(values)), second_opinion(table_of(values[:, :, order]))
    np.testing.assert_allclose(other.log_e_values, one.log_e_values[np.ix_(order, order)], atol=1e-9)
    assert other.certain(0.9).tolist() == one.certain(0.9)[order].tolist()


# Closed testing


@st.composite
def opinions(draw: st.DrawFn) -> SecondOpinion:
    n = draw(st.integers(2, 5))
    logs = draw(arrays(np.float64, (n, n), elements=st.floats(-3.0, 9.0), fill=st.nothing()))
    np.fill_diagonal(logs, 0.0)
    evidence = np.exp(draw(arrays(np.float64, n, elements=st.floats(-3.0, 9.0), fill=st.nothing())))
    return SecondOpinion(tuple(names(n)), logs, evidence)


def closed(opinion: SecondOpinion, alpha: float) -> list[bool]:
    """An algorithm is certain if the mean e-value of every set of algorithms with it is large enough."""
    n = len(opinion.algorithms)
    e = opinion.evidence
    sets = [part for size in range(1, n + 1) for part in itertools.combinations(range(n), size)]
    return [all(np.mean([e[k] for k in part]) >= 1 / (1 - alpha) for part in sets if j in part) for j in range(n)]


@given(opinions(), st.sampled_from([0.6, 0.9, 0.99]))
def test_who_is_certain_passes_every_test_with_it(opinion: SecondOpinion, alpha: float) -> None:
    assert opinion.certain(alpha).tolist() == closed(opinion, alpha)


@given(opinions())
def test_who_is_certain_at_a_level_is_so_at_every_lower_one(opinion: SecondOpinion) -> None:
    levels = [opinion.certain(alpha) for alpha in (0.55, 0.7, 0.9, 0.99, 0.999, 1.0)]
    for lower, higher in itertools.pairwise(levels):
        assert (lower | ~higher).all()
    assert not levels[-1].any()
    assert not opinion.dominates(1.0).any()


@given(opinions(), st.sampled_from([0.6, 0.9, 0.99]))
def test_only_rivals_with_evidence_of_their_own_are_named(opinion: SecondOpinion, alpha: float) -> None:
    named, certain = opinion.dominates(alpha), opinion.certain(alpha)
    needed = 1 / (1 - alpha)
    for j in range(len(opinion.algorithms)):
        expected = [bool(certain[j]) and math.exp(log) >= needed for log in opinion.log_e_values[:, j]]
        assert named[:, j].tolist() == expected


@given(arrays(np.float64, (30, 2, 3), elements=st.sampled_from([0.0, 1.0, 2.0]), fill=st.nothing()))
def test_half_of_the_money_is_on_all_rivals_and_half_on_the_one_that_was_ahead(values: np.ndarray) -> None:
    def smallest(i: int, j: int, rows: slice) -> float:
        shares = (np.sign(values[rows, :, j] - values[rows, :, i]) + 1) / 2
        return min(bet(*shares[:, t]) for t in range(2))

    found = second_opinion(table_of(values)).evidence
    for j in range(3):
        rivals = [i for i in range(3) if i != j]
        before = [smallest(i, j, slice(FIRST)) for i in rivals]
        ahead = [i for i, e in zip(rivals, before, strict=True) if e > max(before) * (1 - 1e-9)]
        on_all = np.mean([smallest(i, j, slice(None)) for i in rivals])
        possible = [(on_all + smallest(i, j, slice(FIRST, None))) / 2 for i in ahead]
        assert any(found[j] == pytest.approx(e) for e in possible)


def test_about_new_groups_a_group_is_one_bet() -> None:
    values, groups = clear(40, 1), [f"g{place % 4}" for place in range(40)]
    table = table_of(values, groups=groups)
    assert second_opinion(table).certain(0.99).tolist() == [False, True]
    by_group = second_opinion(table, by_group=True)
    assert np.exp(by_group.log_e_values[0, 1]) == pytest.approx(bet(1, 1, 1, 1))
    values[0] = values[0, :, ::-1]  # one of ten instances of the first group
    mixed = second_opinion(table_of(values, groups=groups), by_group=True)
    assert bet(0.8, 1, 1, 1) * 0.8 < np.exp(mixed.log_e_values[0, 1]) <= bet(0.9, 1, 1, 1)


def test_overwhelming_evidence_stays_finite() -> None:
    found = second_opinion(wins_table([5000], 5000))
    assert np.isfinite(found.log_e_values).all()
    assert found.log_e_values[0, 1] > 3000
    assert found.certain(0.99).tolist() == [False, True]


# As the rule of a race


def state_of(algorithms: int, timepoints: int, **settings: object) -> RaceState:
    options = {"rule": "anytime-valid", "seed": 0, **settings}
    return start_race(names(algorithms), range(1, timepoints + 1), RaceSettings(**options))  # type: ignore[arg-type]


def observed(race: RaceState, values: np.ndarray) -> RaceState:
    """The race after instances with ``values[instance, timepoint, algorithm]``."""
    return observe(
        race,
        [
            Trajectory(algorithm=name, instance=f"i{k}", times=race.timepoints, best=run[:, place])
            for k, run in enumerate(values)
            for place, name in enumerate(race.algorithms)
        ],
    )


def clear(instances: int, timepoints: int) -> np.ndarray:
    """The earlier in the alphabet the better, at every timepoint."""
    return np.tile(-np.arange(timepoints, dtype=float)[:, None] * 10 + np.arange(2.0), (instances, 1, 1))


SURE = posterior_of_logs([[[1.0, 0.0]] * 3] * 100, joint=False)


@pytest.mark.parametrize("guard", ["counts", "none"])
def test_the_rule_eliminates_only_who_is_certain_and_keeps_the_pair_open_until_then(guard: str) -> None:
    few, enough = (decide(observed(state_of(2, 3, guard=guard), clear(number, 3)), SURE) for number in (8, 15))
    assert few.pareto_set == ("a", "b")
    assert not few.resolved[:, 0, 1].any()
    assert plan(few).over is None
    assert few.rounds[-1].held == ()
    assert enough.pareto_set == ("a",)
    assert [(out.algorithm, out.by, out.probability) for out in enough.eliminations] == [("b", "a", 1.0)]
    assert plan(enough).over == "resolved"


def test_the_rule_needs_no_posterior_to_eliminate_and_one_to_settle() -> None:
    poor = posterior_of_logs([[[0.0, 0.0]] * 3] * 100, joint=False, good=False)
    assert decide(observed(state_of(2, 3), clear(15, 3)), poor).pareto_set == ("a",)
    out = decide(observed(state_of(2, 3, guard="none"), clear(8, 3)), poor)
    assert not out.resolved[:, 0, 1].any()
    assert not out.rounds[-1].good


def test_what_only_the_model_sees_eliminates_nobody() -> None:
    values = clear(12, 3)
    values[:6] = values[:6, :, ::-1]
    assert decide(observed(state_of(2, 3, guard="none"), values), SURE).pareto_set == ("a", "b")


def test_under_the_rule_every_run_is_in_full() -> None:
    # The model settles the first and the last timepoint, in opposite directions: only the second one is open.
    draws = [[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]] * 50
    posterior = posterior_of_logs(draws, joint=False)
    values = clear(30, 3)
    values[:, 2] = values[:, 2, ::-1]
    values[::2, 1] = values[::2, 1, ::-1]
    untils = {
        rule: {order.until for order in plan(decide(observed(state_of(2, 3, rule=rule), values), posterior)).orders}
        for rule in ("anytime-valid", "posterior")
    }
    assert untils == {"anytime-valid": {3.0}, "posterior": {2.0}}


def test_under_the_rule_a_newcomer_catches_up_in_full() -> None:
    race = enter(observed(state_of(2, 3), clear(4, 3)), "late")
    resolved = np.array(race.resolved)
    resolved[2] = True
    assert {order.until for order in plan(replace(race, resolved=resolved)).orders} == {3.0}
    by_model = replace(race, resolved=resolved, settings=replace(race.settings, rule="posterior"))
    assert {order.until for order in plan(by_model).orders} == {2.0}


def test_a_result_says_which_eliminations_are_certain_without_the_model() -> None:
    result = analyze(wins_table([9, 9], 9), RaceSettings(seed=1, draws=500))
    assert result.pareto_set == ("a",)
    opinion = result.second_opinion()
    np.testing.assert_array_equal(opinion.log_e_values, second_opinion(result.state.table).log_e_values)
    assert not opinion.certain(0.99).any()
    assert analyze(wins_table([15, 15], 15), RaceSettings(seed=1)).second_opinion().certain(0.99).tolist() == [0, 1]


def test_under_the_rule_a_batch_is_at_most_a_quarter_of_the_instances() -> None:
    by_model, by_bets = (RaceSettings(rule=rule) for rule in ("posterior", "anytime-valid"))  # type: ignore[arg-type]
    assert int(next_batch(16, 3, 3, 40, by_model)) == 32
    assert int(next_batch(16, 3, 3, 40, by_bets)) == 10
    assert int(next_batch(16, 3, 3, 10, by_bets)) == by_bets.batch_min


# How often it is wrong


def _counts(wins: np.ndarray) -> Tallies:
    return Tallies(wins, np.zeros_like(wins), wins)


def crossings(values: Callable[[np.random.Generator], np.ndarray], simulations: int) -> int:
    """In how many simulations somebody is certainly dominated at some look, from ``values[look, t, algorithm]``."""
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(simulations):
        drawn = values(rng)
        n = drawn.shape[2]
        beats = (drawn[..., :, None] < drawn[..., None, :]).astype(float).cumsum(axis=0)
        later = np.maximum(beats - beats[FIRST - 1], 0.0)
        logs = [
            log_e_values(_counts(part.reshape(-1, n, n))).reshape(beats.shape).min(axis=1) for part in (beats, later)
        ]
        for look in np.flatnonzero(np.maximum(*logs).max(axis=(1, 2)) >= math.log(100)):
            counts = (_counts(beats[place]) for place in (look, min(look, FIRST - 1)))
            if opinion_from(tuple(names(n)), *counts).certain(0.99).any():
                wrong += 1
                break
    return wrong


def better_at_one_timepoint_only(rng: np.random.Generator) -> np.ndarray:
    """Values of two algorithms at two timepoints: the first is always better at one, and as good at the other."""
    values = rng.random((300, 2, 2))
    values[:, 0] = [0.0, 1.0]
    return values


@pytest.mark.slow
@pytest.mark.parametrize(
    "values", [lambda rng: rng.random((300, 1, 2)), lambda rng: rng.random((300, 1, 5)), better_at_one_timepoint_only]
)
def test_who_is_not_dominated_is_called_so_at_any_of_300_looks_in_at_most_one_percent(
    values: Callable[[np.random.Generator], np.ndarray],
) -> None:
    simulations = 200
    assert crossings(values, simulations) <= binom.ppf(0.999, simulations, 0.01)
