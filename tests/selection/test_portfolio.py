from __future__ import annotations

import html
import json
from collections.abc import Callable
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from builders import cells_of, column_kinds, posterior_of
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import Posterior, RaceResult, select, select_portfolio
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.selection.preferences import vectorized

RISKS = ["best", "expected", "quantile:0.25"]
LINEAR = ["uniform", "log-uniform", "final"]


@st.composite
def posteriors(draw: st.DrawFn, least: int = 1) -> Posterior:
    shape = draw(st.integers(1, 12)), draw(st.integers(1, 4)), draw(st.integers(max(2, least), 5))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    return posterior_of(rng.dirichlet(np.ones(shape[2]), size=shape[:2]), timepoints=np.geomspace(1, 50, shape[1]))


# At the first timepoint a wins, at the second c; b is second at both, d never wins.
CROSSING = [
    [[0.6, 0.3, 0.08, 0.02], [0.08, 0.3, 0.6, 0.02]],
    [[0.5, 0.3, 0.1, 0.1], [0.1, 0.3, 0.5, 0.1]],
]


def test_the_rating_of_a_portfolio_is_the_sum_over_its_members() -> None:
    choice = select_portfolio(posterior_of(CROSSING), size=2, preference="worst")
    # a + c has 0.68 and 0.6 at both timepoints, b + b 0.6 and 0.6, a + b 0.38 and 0.4.
    assert choice.algorithms == ("a", "c")
    np.testing.assert_allclose(choice.values, [0.68, 0.6])
    assert choice.scores["a", "c"] == pytest.approx(0.64)
    assert choice.scores["b", "b"] == pytest.approx(0.6)
    assert choice.scores["a", "b"] == pytest.approx(0.39)
    assert len(choice.scores) == 10
    assert choice.method == "enumeration"
    assert choice.expected_regret == 0.0


def test_an_algorithm_that_runs_twice_counts_twice() -> None:
    choice = select_portfolio(posterior_of(CROSSING), size=3, preference="final")
    assert choice.algorithms == ("c", "c", "c")
    assert choice.counts == {"c": 3}
    np.testing.assert_allclose(choice.values, [1.8, 1.5])


def test_without_repetition_members_differ() -> None:
    choice = select_portfolio(posterior_of(CROSSING), size=2, preference="final", repeat=False)
    assert choice.algorithms == ("b", "c")
    assert set(choice.scores) == set(combinations("abcd", 2))
    np.testing.assert_allclose(choice.values, [0.9, 0.8])


def test_the_probability_of_being_best_and_the_regret_refer_to_all_portfolios() -> None:
    # In three draws a + c has the highest worst rating, in the other two d + d.
    two = [[[0.1, 0.1, 0.1, 0.7], [0.1, 0.1, 0.1, 0.7]]]
    choice = select_portfolio(posterior_of(CROSSING + CROSSING[:1] + two * 2), size=2, preference="worst", risk="best")
    assert choice.scores["a", "c"] == pytest.approx(0.6)
    assert choice.scores["d", "d"] == pytest.approx(0.4)
    assert sum(choice.scores.values()) == pytest.approx(1.0)
    assert choice.expected_regret == pytest.approx(2 * (1.4 - 0.2) / 5)


def by_hand(one: Posterior, size: int, value: Callable[[np.ndarray], float], repeat: bool) -> dict[Any, np.ndarray]:
    """Values of all portfolios, computed draw by draw from the definition."""
    choose = combinations_with_replacement if repeat else combinations
    ratings = one.ratings / one.ratings.sum(axis=-1, keepdims=True)
    return {
        tuple(one.algorithms[place] for place in places): np.array(
            [value(np.array([sum(row[place] for place in places) for row in draw])) for draw in ratings]
        )
        for places in choose(range(len(one.algorithms)), size)
    }


@given(posteriors(), st.integers(1, 3), st.sampled_from(RISKS), st.booleans())
def test_enumeration_is_what_the_definition_gives(one: Posterior, size: int, risk: str, repeat: bool) -> None:
    size = size if repeat else min(size, len(one.algorithms))
    values = by_hand(one, size, min, repeat)
    choice = select_portfolio(one, size, preference="worst", risk=risk, repeat=repeat)
    table = np.array(list(values.values()))
    if risk == "best":
        # Rounding must not decide who shares the first place.
        expected = (table >= table.max(axis=0) - 1e-12).mean(axis=1)
    else:
        expected = table.mean(axis=1) if risk == "expected" else np.quantile(table, 0.25, axis=1)
    assert choice.scores == pytest.approx(dict(zip(values, expected, strict=True)))
    np.testing.assert_allclose(choice.values, values[choice.algorithms])
    assert choice.expected_regret == pytest.approx((table.max(axis=0) - values[choice.algorithms]).mean(), abs=1e-12)
    assert choice.scores[choice.algorithms] == max(choice.scores.values())


@given(posteriors(), st.integers(1, 4), st.sampled_from(["uniform", "worst"]), st.booleans())
def test_the_search_never_beats_enumeration_and_no_exchange_of_two_beats_the_search(
    one: Posterior, size: int, preference: str, repeat: bool
) -> None:
    size = size if repeat else min(size, len(one.algorithms))
    options: dict[str, Any] = {"preference": preference, "risk": "quantile:0.25", "repeat": repeat}
    exact = select_portfolio(one, size, **options)
    found = select_portfolio(one, size, exact_up_to=0, **options)
    assert (exact.method, found.method) == ("enumeration", "greedy+local search")
    score = found.scores[found.algorithms]
    assert exact.scores[found.algorithms] == score
    assert score <= exact.scores[exact.algorithms]
    for members, other in exact.scores.items():
        rest = list(found.algorithms)
        shared = sum(1 for name in members if name in rest and not rest.remove(name))  # type: ignore[func-returns-value]
        if shared >= size - 2:
            assert other <= score


def test_the_search_finds_the_best_portfolio_in_nearly_all_small_cases() -> None:
    rng = np.random.default_rng(0)
    same = []
    for _ in range(60):
        one = posterior_of(rng.dirichlet(np.full(6, 0.3), size=(30, 4)))
        for risk in RISKS:
            exact, found = (
                select_portfolio(one, 3, preference="worst", risk=risk, exact_up_to=up_to) for up_to in (10_000, 0)
            )
            same.append(exact.algorithms == found.algorithms)
    assert np.mean(same) > 0.9


def test_the_search_starts_from_copies_of_each_candidate_and_goes_on_from_the_best() -> None:
    # In 60 % of the draws a is best, in the others b or c: nothing but copies is ever best under a weighted mean.
    draws = [[[0.5, 0.3, 0.2]]] * 6 + [[[0.1, 0.8, 0.1]]] * 3 + [[[0.1, 0.1, 0.8]]]
    found = select_portfolio(posterior_of(draws), 4, risk="best", exact_up_to=0)
    assert found.algorithms == ("a",) * 4
    assert {members: score for members, score in found.scores.items() if score} == pytest.approx(
        {("a",) * 4: 0.6, ("b",) * 4: 0.3, ("c",) * 4: 0.1}
    )


def test_an_exchange_mends_what_the_greedy_start_got_wrong() -> None:
    # b has the highest worst rating, so the greedy start takes it; a + c is the better pair.
    one = posterior_of([[[0.55, 0.29, 0.16], [0.16, 0.29, 0.55]]])
    assert select_portfolio(one, 1, preference="worst", exact_up_to=0).algorithms == ("b",)
    # From b + b (0.58) to a + c (0.71) no single exchange leads upwards: a + b has 0.45.
    assert select_portfolio(one, 2, preference="worst", exact_up_to=0).algorithms == ("a", "c")
    assert select_portfolio(one, 3, preference="worst", exact_up_to=0).algorithms == ("a", "b", "c")


def test_where_exchanges_of_two_are_too_many_members_are_exchanged_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    one = posterior_of([[[0.55, 0.29, 0.16], [0.16, 0.29, 0.55]]])
    monkeypatch.setattr("polarbear_plugins.selection.portfolio._MAX_EXCHANGES", 6)  # one pair leaves, six can enter
    assert select_portfolio(one, 2, preference="worst", exact_up_to=0).algorithms == ("a", "c")
    monkeypatch.setattr("polarbear_plugins.selection.portfolio._MAX_EXCHANGES", 5)
    found = select_portfolio(one, 2, preference="worst", exact_up_to=0)
    assert found.algorithms == ("b", "b")
    assert set(found.scores) == {("a", "a"), ("b", "b"), ("c", "c"), ("a", "b"), ("b", "c")}


def test_a_large_search_stays_a_search() -> None:
    one = posterior_of(np.random.default_rng(1).dirichlet(np.ones(8), size=(20, 3)))
    found = select_portfolio(one, 30, preference="worst", risk="quantile:0.25")
    assert found.method == "greedy+local search"
    assert found.size == 30
    assert len(found.scores) < 10_000


@given(posteriors(), st.integers(1, 4), st.sampled_from(LINEAR), st.sampled_from(["best", "expected"]))
def test_under_a_weighted_mean_copies_of_the_best_algorithm_are_optimal(
    one: Posterior, size: int, preference: str, risk: str
) -> None:
    single = select(one, preference=preference, risk=risk)
    for up_to in (0, 10_000):
        choice = select_portfolio(one, size, preference=preference, risk=risk, exact_up_to=up_to)
        assert choice.algorithms == (single.algorithm,) * size
        assert choice.expected_regret == pytest.approx(size * single.expected_regret)


@given(posteriors(), st.sampled_from([*LINEAR, "worst"]), st.sampled_from(RISKS))
def test_a_portfolio_of_one_is_the_single_choice(one: Posterior, preference: str, risk: str) -> None:
    single = select(one, preference=preference, risk=risk)
    for up_to in (0, 10_000):
        choice = select_portfolio(one, 1, preference=preference, risk=risk, exact_up_to=up_to)
        assert choice.algorithms == (single.algorithm,)
        assert choice.scores == pytest.approx({(name,): score for name, score in single.scores.items()})
        assert choice.expected_regret == pytest.approx(single.expected_regret)


@given(posteriors(), st.integers(1, 3), st.sampled_from(["uniform", "worst"]), st.sampled_from(RISKS), st.booleans())
def test_relabelling_the_algorithms_relabels_the_portfolio(
    one: Posterior, size: int, preference: str, risk: str, repeat: bool
) -> None:
    size = size if repeat else min(size, len(one.algorithms))
    turned = Posterior(one.algorithms[::-1], one.timepoints, one.log_ratings[:, :, ::-1], "gp", True, one.diagnostics)
    first, second = (
        select_portfolio(each, size, preference=preference, risk=risk, repeat=repeat) for each in (one, turned)
    )
    assert first.scores[first.algorithms] == pytest.approx(second.scores[second.algorithms])
    assert first.scores == pytest.approx({tuple(sorted(members)): score for members, score in second.scores.items()})


@given(posteriors(), st.integers(1, 3), st.sampled_from(RISKS))
def test_more_slots_never_lower_the_value(one: Posterior, size: int, risk: str) -> None:
    if risk == "best":
        return
    fewer, more = (select_portfolio(one, each, preference="worst", risk=risk) for each in (size, size + 1))
    assert more.scores[more.algorithms] >= fewer.scores[fewer.algorithms]


def test_many_leaders_that_are_overtaken_are_forgotten_without_a_trace() -> None:
    # Five hundred draws, each with its own order, and 126 portfolios that lead for a while.
    one = posterior_of(np.random.default_rng(2).dirichlet(np.full(6, 0.2), size=(500, 3)))
    choice = select_portfolio(one, 4, preference="worst", risk="best")
    values = np.array(list(by_hand(one, 4, min, True).values()))
    expected = (values >= values.max(axis=0) - 1e-12).mean(axis=1)
    names = combinations_with_replacement("abcdef", 4)
    assert choice.scores == pytest.approx(dict(zip(names, expected, strict=True)))
    assert np.count_nonzero(expected) > 64


def test_the_same_function_one_by_one_and_vectorized_gives_the_same() -> None:
    one = posterior_of(CROSSING)
    first = select_portfolio(one, 2, preference=lambda ratings: np.sqrt(ratings).mean())
    second = select_portfolio(one, 2, preference=vectorized(lambda ratings: np.sqrt(ratings).mean(axis=-1)))
    assert first.algorithms == second.algorithms == ("a", "c")
    assert first.scores == pytest.approx(second.scores)


def test_the_search_values_each_portfolio_once_and_the_choice_again() -> None:
    called = []

    @vectorized
    def worst(ratings: np.ndarray) -> np.ndarray:
        called.append(float(ratings.sum()))
        return ratings.min(axis=-1)

    one = posterior_of(np.random.default_rng(0).dirichlet(np.ones(4), size=(5, 3)))
    found = select_portfolio(one, 2, preference=worst, exact_up_to=0)
    # The greedy start builds eight portfolios, four of one member and four of two.
    assert len(called) == 8 + len(found.scores) + 1


def test_the_mean_decides_between_equal_scores() -> None:
    one = posterior_of([[[0.55, 0.45]], [[0.1, 0.9]]])
    for up_to in (0, 100):
        assert select_portfolio(one, 2, risk="best", exact_up_to=up_to).algorithms == ("b", "b")


def test_a_preference_for_chances_of_winning_at_least_somewhere_is_not_taken_for_a_sum() -> None:
    choice = select_portfolio(
        posterior_of(CROSSING), 2, preference=vectorized(lambda r: np.minimum(r, 0.55).sum(axis=-1))
    )
    assert choice.algorithms == ("a", "c")
    np.testing.assert_allclose(choice.values, [1.1, 1.1])


def test_candidates_are_compared_among_themselves() -> None:
    choice = select_portfolio(posterior_of(CROSSING), 2, among=["d", "b"], preference="final", repeat=False)
    assert choice.algorithms == choice.candidates == ("b", "d")
    np.testing.assert_allclose(choice.values, [1.0, 1.0])


def test_the_summary_lists_portfolios_from_the_best_on() -> None:
    choice = select_portfolio(posterior_of(CROSSING), 2, preference="worst")
    table = choice.summary()
    assert table.index[:2].to_list() == ["a + c", "b + b"]
    assert table["score"].is_monotonic_decreasing
    assert table["copies"].loc["b + b"].to_dict() == {"a": 0, "b": 2, "c": 0, "d": 0}
    assert len(table) == 10


def test_a_portfolio_goes_through_json() -> None:
    choice = select_portfolio(posterior_of(CROSSING), 2, preference="final", risk="best")
    told = json.loads(json.dumps(choice.to_dict(first=3)))
    assert told["algorithms"] == ["c", "c"]
    assert told["counts"] == {"c": 2}
    assert (told["method"], told["considered"], told["repeat"]) == ("enumeration", 10, True)
    assert (told["preference"], told["risk"], told["weights"]) == ("final", "best", [0.0, 1.0])
    assert told["mean"] == pytest.approx(1.1)
    assert told["expected_regret"] == 0
    assert len(told["scores"]) == 3
    assert told["scores"][0] == {"algorithms": ["c", "c"], "score": 1.0}


def test_the_representation_says_which_method_was_used() -> None:
    choice = select_portfolio(posterior_of(CROSSING), 2, preference="worst", exact_up_to=0, repeat=False)
    assert repr(choice).startswith("PortfolioChoice(a + c by greedy+local search of ")
    assert choice.size == 2


def test_a_notebook_shows_the_choice_and_the_ten_best_portfolios() -> None:
    # 15 portfolios of two, from the best on: the value is the sum of the ratings.
    choice = select_portfolio(posterior_of([[[0.4, 0.3, 0.2, 0.06, 0.04]]]), 2)
    page = choice._repr_html_()
    assert page.startswith(f"<p>{html.escape(repr(choice))}</p><")
    assert "<caption>The best 10 of 15 portfolios compared</caption>" in page
    header, *rows = cells_of(page)
    assert header == ["portfolio", "score"]
    assert rows[:4] == [["a + a", "0.8"], ["a + b", "0.7"], ["a + c", "0.6"], ["b + b", "0.6"]]
    assert len(rows) == 10


def test_the_method_changes_exactly_above_the_limit() -> None:
    one = posterior_of(CROSSING)
    methods = [
        select_portfolio(one, 2, repeat=repeat, exact_up_to=up_to).method
        for repeat, up_to in [(True, 10), (True, 9), (False, 6), (False, 5)]
    ]
    assert methods == ["enumeration", "greedy+local search"] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size must be a whole number of at least 1, got 0"),
        ({"size": 1.5}, "size must be a whole number"),
        ({"size": True}, "size must be a whole number"),
        ({"size": 1001}, "at most 1000 slots, got 1001"),
        ({"size": 5, "repeat": False}, r"5 slots cannot be filled with 4 different algorithms \(a, b, c, d\)"),
        ({"size": 2, "exact_up_to": -1}, "exact_up_to must be a whole number of at least 0"),
        ({"size": 2, "among": ["z"]}, "there is no 'z'"),
        ({"size": 2, "preference": "sometimes"}, "preference: expected one of"),
        ({"size": 2, "risk": "none"}, "risk: expected"),
    ],
)
def test_a_portfolio_that_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        select_portfolio(posterior_of(CROSSING), **options)


def test_a_portfolio_gives_the_portfolios_that_it_was_chosen_from(raced: RaceResult) -> None:
    portfolio = select_portfolio(raced.posterior, 3, preference="worst")
    members = portfolio.to_pandas()
    assert column_kinds(members) == {"portfolio": "text", "score": "float", "algorithm": "names", "copies": "int"}
    assert (members.groupby("portfolio")["copies"].sum() == 3).all()
    assert members["portfolio"].nunique() == len(portfolio.scores)
    best = members[members["portfolio"] == members["portfolio"].iloc[0]]
    assert dict(zip(best["algorithm"], best["copies"], strict=True)) == portfolio.counts
