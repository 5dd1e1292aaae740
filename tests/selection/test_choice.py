from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from builders import column_kinds, posterior_of, table_of
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from polarbear_plugins import Posterior, RaceResult, fit, select
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.selection.support import about_best

PREFERENCES = ["uniform", "log-uniform", "final", "worst"]
RISKS = ["best", "expected", "quantile:0.05"]


# Three algorithms at timepoints 1 and 2 in four draws: a is good early, c late, b steady.
RATINGS = [
    [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]],
    [[0.7, 0.2, 0.1], [0.1, 0.4, 0.5]],
    [[0.5, 0.4, 0.1], [0.2, 0.4, 0.4]],
    [[0.1, 0.1, 0.8], [0.1, 0.1, 0.8]],
]


@st.composite
def posteriors(draw: st.DrawFn) -> Posterior:
    shape = draw(st.integers(1, 20)), draw(st.integers(1, 4)), draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    return posterior_of(rng.dirichlet(np.ones(shape[2]), size=shape[:2]), timepoints=np.geomspace(1, 100, shape[1]))


def test_the_value_is_the_preference_of_the_ratings_draw_by_draw() -> None:
    one = posterior_of(RATINGS)
    np.testing.assert_allclose(
        select(one, preference="uniform").values,
        [[0.35, 0.3, 0.35], [0.4, 0.3, 0.3], [0.35, 0.4, 0.25], [0.1, 0.1, 0.8]],
    )
    np.testing.assert_allclose(select(one, preference="final").values, np.array(RATINGS)[:, 1])
    np.testing.assert_allclose(
        select(one, preference="worst").values,
        [[0.1, 0.3, 0.1], [0.1, 0.2, 0.1], [0.2, 0.4, 0.1], [0.1, 0.1, 0.8]],
    )


def test_each_risk_profile_chooses_by_its_own_score() -> None:
    # Values: a 0.9 0.1 0.1, b 0.05 0.5 0.5, c 0.05 0.4 0.4 at one timepoint.
    one = posterior_of([[[0.9, 0.05, 0.05]], [[0.1, 0.5, 0.4]], [[0.1, 0.5, 0.4]]])
    best = select(one, risk="best")
    assert best.algorithm == "b"
    assert best.scores == pytest.approx({"a": 1 / 3, "b": 2 / 3, "c": 0})
    expected = select(one, risk="expected")
    assert expected.algorithm == "a"
    assert expected.scores == pytest.approx({"a": 1.1 / 3, "b": 1.05 / 3, "c": 0.85 / 3})
    # The median of b is the highest; the lowest quarter interpolates between the two lowest draws.
    assert select(one, risk="quantile:0.5").scores == pytest.approx({"a": 0.1, "b": 0.5, "c": 0.4})
    quarter = select(one, risk="quantile:0.25")
    assert quarter.scores == pytest.approx({"a": 0.1, "b": 0.275, "c": 0.225})
    assert (quarter.algorithm, quarter.risk) == ("b", "quantile:0.25")


def test_the_expected_regret_is_the_mean_gap_to_the_best_of_each_draw() -> None:
    choice = select(posterior_of(RATINGS), preference="final")
    # c is 0.6, 0.5, 0.4 (shared with b) and 0.8: never behind.
    assert (choice.algorithm, choice.expected_regret) == ("c", 0.0)
    choice = select(posterior_of(RATINGS), preference="worst", risk="best")
    # b leads by the worst rating in three draws, and in the last c has 0.8 against 0.1.
    assert choice.algorithm == "b"
    assert choice.expected_regret == pytest.approx(0.7 / 4)


def test_who_shares_the_highest_value_counts_in_full() -> None:
    choice = select(posterior_of([[[0.4, 0.4, 0.2]], [[0.5, 0.3, 0.2]]]), risk="best")
    assert choice.scores == {"a": 1.0, "b": 0.5, "c": 0.0}


def test_the_mean_decides_between_equal_scores_and_then_the_order() -> None:
    one = posterior_of([[[0.55, 0.45]], [[0.1, 0.9]]])
    assert select(one, risk="best").algorithm == "b"
    assert select(posterior_of([[[0.5, 0.5]]]), risk="best").algorithm == "a"


def test_ratings_are_those_among_the_candidates() -> None:
    choice = select(posterior_of(RATINGS), among=["c", "a"], preference="final")
    assert choice.candidates == ("a", "c")
    np.testing.assert_allclose(choice.values, [[1 / 7, 6 / 7], [1 / 6, 5 / 6], [1 / 3, 2 / 3], [1 / 9, 8 / 9]])


def test_candidates_that_hardly_ever_win_among_all_are_still_told_apart() -> None:
    one = posterior_of([[[1.0, 1.0, 1.0]]])
    one.log_ratings[0, 0] = [0.0, -2000.0, -2001.0]
    np.testing.assert_allclose(select(one, among=["b", "c"]).values, [[1 / (1 + np.exp(-1)), 1 / (1 + np.e)]])


@given(posteriors(), st.sampled_from(PREFERENCES), st.sampled_from(RISKS))
def test_an_algorithm_left_out_does_not_change_who_is_preferred_at_a_timepoint(
    one: Posterior, preference: str, risk: str
) -> None:
    # With ratings at one timepoint only, values among candidates are a monotone transform, the same for all.
    final = Posterior(one.algorithms, one.timepoints[-1:], one.log_ratings[:, -1:], "gp", True, one.diagnostics)
    everyone = select(final, preference=preference, risk=risk).values
    few = select(final, among=one.algorithms[:2], preference=preference, risk=risk).values
    np.testing.assert_allclose(few[:, 0] / few[:, 1], everyone[:, 0] / everyone[:, 1])


def test_a_single_candidate_is_the_choice() -> None:
    choice = select(posterior_of(RATINGS), among={"b"}, risk="best")
    assert (choice.algorithm, choice.scores, choice.expected_regret) == ("b", {"b": 1.0}, 0.0)


@given(posteriors(), st.sampled_from(PREFERENCES), st.sampled_from(RISKS), st.randoms(use_true_random=False))
def test_relabelling_the_algorithms_relabels_the_choice(one: Posterior, preference: str, risk: str, rng: Any) -> None:
    order = list(range(len(one.algorithms)))
    rng.shuffle(order)
    names = tuple(one.algorithms[place] for place in order)
    other = Posterior(names, one.timepoints, one.log_ratings[:, :, order], "gp", True, one.diagnostics)
    first, second = (select(each, preference=preference, risk=risk) for each in (one, other))
    assert first.algorithm == second.algorithm
    assert first.scores == pytest.approx(second.scores)
    assert first.expected_regret == pytest.approx(second.expected_regret)


@given(posteriors(), st.sampled_from(PREFERENCES), st.sampled_from(RISKS))
def test_the_choice_has_the_highest_score_and_a_regret_of_at_least_zero(
    one: Posterior, preference: str, risk: str
) -> None:
    choice = select(one, preference=preference, risk=risk)
    assert choice.scores[choice.algorithm] == max(choice.scores.values())
    assert choice.expected_regret >= 0
    column = choice.values[:, choice.candidates.index(choice.algorithm)]
    assert (choice.expected_regret == 0) == (column >= choice.values.max(axis=1)).all()


@given(posteriors(), st.sampled_from(PREFERENCES))
def test_no_candidate_has_less_expected_regret_than_the_one_of_highest_expected_value(
    one: Posterior, preference: str
) -> None:
    table = select(one, preference=preference, risk="expected").summary()
    assert table["expected_regret"].iloc[0] == pytest.approx(table["expected_regret"].min())


@given(posteriors(), st.sampled_from(PREFERENCES), st.sampled_from(RISKS))
def test_a_dominated_algorithm_is_never_chosen(one: Posterior, preference: str, risk: str) -> None:
    log_ratings = one.log_ratings.copy()
    log_ratings[:, :, 0] = log_ratings[:, :, 1] - 0.1  # a below b everywhere
    other = Posterior(one.algorithms, one.timepoints, log_ratings, "gp", True, one.diagnostics)
    assert select(other, preference=preference, risk=risk).algorithm != "a"


@given(posteriors(), st.sampled_from(RISKS), st.floats(0.1, 10))
def test_weights_count_up_to_a_factor(one: Posterior, risk: str, factor: float) -> None:
    weights = np.arange(1.0, one.timepoints.size + 1)
    first, second = (select(one, preference=each, risk=risk) for each in (weights, factor * weights))
    np.testing.assert_allclose(first.values, second.values)
    np.testing.assert_allclose(first.weights, weights / weights.sum())


@given(posteriors(), st.sampled_from(RISKS))
def test_a_budget_that_is_surely_large_is_the_final_preference(one: Posterior, risk: str) -> None:
    first = select(one, preference="final", risk=risk)
    second = select(one, preference=stats.norm(1000, 1), risk=risk)
    assert first.algorithm == second.algorithm
    np.testing.assert_allclose(first.values, second.values)


def test_a_budget_that_concentrates_on_the_end_approaches_the_final_preference() -> None:
    one = posterior_of(RATINGS)
    final = select(one, preference="final").values
    gaps = [np.abs(select(one, preference=stats.norm(2.5, sd)).values - final).max() for sd in (2, 1, 0.5, 0.1)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-6


@given(posteriors(), st.sampled_from(RISKS))
def test_a_function_for_the_lowest_rating_is_the_worst_preference(one: Posterior, risk: str) -> None:
    first, second = (select(one, preference=each, risk=risk) for each in ("worst", lambda ratings: ratings.min()))
    np.testing.assert_array_equal(first.values, second.values)
    assert first.algorithm == second.algorithm


def test_independent_timepoints_can_be_averaged_too() -> None:
    first, second = (select(posterior_of(RATINGS, joint=joint)) for joint in (True, False))
    np.testing.assert_array_equal(first.values, second.values)


def test_choosing_leaves_the_posterior_alone() -> None:
    one = posterior_of(RATINGS)
    before = one.log_ratings.copy()
    select(one, preference=lambda ratings: ratings.sort() or ratings[0])
    select(one, preference="worst", among=["a", "b"])
    np.testing.assert_array_equal(one.log_ratings, before)


def test_the_summary_tells_of_each_candidate_with_the_choice_first() -> None:
    choice = select(posterior_of(RATINGS), preference="final", risk="quantile:0.25")
    table = choice.summary(0.5)
    assert table.index.to_list() == ["c", "b", "a"]
    assert table.index.name == "algorithm"
    assert table.columns.to_list() == ["score", "mean", "sd", "low", "high", "p_best", "expected_regret"]
    # c at the end: 0.6, 0.5, 0.4, 0.8, and b: 0.3, 0.4, 0.4, 0.1.
    sd = np.std([0.6, 0.5, 0.4, 0.8])
    np.testing.assert_allclose(table.loc["c"], [0.475, 0.575, sd, 0.475, 0.65, 1.0, 0.0])
    np.testing.assert_allclose(table.loc["b", ["p_best", "expected_regret"]], [0.25, (0.3 + 0.1 + 0 + 0.7) / 4])


def test_the_summary_puts_the_choice_first_where_scores_are_equal() -> None:
    choice = select(posterior_of([[[0.55, 0.45]], [[0.1, 0.9]]]), risk="best")
    assert choice.summary().index[0] == choice.algorithm == "b"


def test_a_choice_goes_through_json() -> None:
    choice = select(posterior_of(RATINGS), preference=[1, 3], risk="best")
    told = json.loads(json.dumps(choice.to_dict()))
    assert told["algorithm"] == choice.algorithm == "c"
    assert (told["preference"], told["risk"], told["weights"]) == ("weights", "best", [0.25, 0.75])
    assert told["expected_regret"] == choice.expected_regret
    assert list(told["candidates"]) == ["a", "b", "c"]
    for name, row in choice.summary().iterrows():
        assert told["candidates"][name] == row.to_dict()
    assert json.loads(json.dumps(select(posterior_of(RATINGS), preference="worst").to_dict()))["weights"] is None


def test_the_representation_says_what_was_chosen_under_what() -> None:
    assert repr(select(posterior_of(RATINGS), preference="worst", risk="best")) == (
        "Choice('b' of 3, preference 'worst', risk 'best', score 0.75, expected regret 0.175, "
        "not supported: c may be better)"
    )


@pytest.mark.parametrize(
    ("among", "message"),
    [
        (["a", "z", "y"], "there is no 'z', 'y' in the posterior; it has a, b, c"),
        (["a", "b", "a"], "'a' is named more than once"),
        ([], "at least one algorithm, got none"),
        ("ab", "expected a list of algorithms, got 'ab'"),
        (3, "expected a list of algorithms, got 3"),
        (["a", None], r"among\[1\]: expected a name"),
    ],
)
def test_candidates_that_make_no_sense_are_refused(among: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        select(posterior_of(RATINGS), among=among)


@pytest.mark.parametrize(
    "risk",
    [
        "",
        "mean",
        "quantile",
        "quantile:",
        "quantile:x",
        "quantile:0",
        "quantile:1",
        "quantile:nan",
        "best:1",
        None,
        0.05,
    ],
)
def test_a_risk_profile_without_meaning_is_refused(risk: Any) -> None:
    with pytest.raises(InvalidInputError, match='risk: expected "best"'):
        select(posterior_of(RATINGS), risk=risk)


def test_a_preference_that_does_not_fit_the_posterior_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="a weight for each of 2 timepoints, got 3"):
        select(posterior_of(RATINGS), preference=[1, 2, 3])


@pytest.mark.parametrize("prior", ["dirichlet", "bspline"])
def test_a_fitted_posterior_gives_the_obvious_choices(prior: str) -> None:
    rng = np.random.default_rng(0)
    means = np.array([[0.0, 1.0, 2.0], [1.0, 1.2, 1.5], [2.0, 1.0, 0.0], [2.0, 1.0, 0.0]])
    values = means + 0.5 * rng.normal(size=(40, 4, 3))
    one = fit(table_of(values), prior, seed=1)
    assert select(one, preference="final").algorithm == "c"
    assert select(one, preference=[1, 0, 0, 0]).algorithm == "a"
    assert select(one, preference=stats.uniform(1, 0.5), risk="best").scores["a"] > 0.99


def test_a_choice_gives_what_it_chose_from(raced: RaceResult) -> None:
    choice = select(raced.posterior, preference="final")
    frame = choice.to_pandas()
    assert column_kinds(frame) == {"draw": "int", "algorithm": "names", "value": "float"}
    means = frame.groupby("algorithm", observed=True)["value"].mean()
    np.testing.assert_allclose(means, choice.summary()["mean"].loc[list(choice.candidates)])


def test_about_the_best_is_what_would_beat_the_best_in_45_of_100_instances() -> None:
    others = np.array([0.8, 0.3, 2.0, 0.0, -1.0])
    just, below = ([*others[:3] * 0.45 / 0.55 + change, *others[3:] + change] for change in (1e-9, -1e-9))
    for values, expected in ((just, True), (below, False)):
        assert about_best(np.stack([others, values], axis=1), 1).tolist() == [expected] * 5


def test_a_candidate_that_is_named_twice_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"^among: 'a' is named more than once\.$"):
        select(posterior_of([[[0.5, 0.5]]]), ["a", "a"])


def test_a_choice_that_is_supported_says_so_in_json_and_names_nobody_else() -> None:
    choice = select(posterior_of([[[0.9, 0.1]]] * 4))
    told = choice.to_dict()
    assert (told["algorithm"], told["support"], choice.support) == ("a", 1.0, 1.0)
    assert "may be better" not in repr(choice)
