"""What the charts and controls of a report show: the numbers and sentences that Python puts into the page."""

from __future__ import annotations

import base64
import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from builders import posterior_of, synthetic_race, table_of

from polarbear_plugins import Posterior, RaceResult, RaceSettings, analyze, compare, plots, select
from polarbear_plugins.posterior.posterior import Diagnostics
from polarbear_plugins.report import explorer, render
from polarbear_plugins.report.at_budget import choices_at_timepoints
from polarbear_plugins.report.explorer import encode_shares, explorer_data
from polarbear_plugins.selection.stretches import stretches


def data_of(result: RaceResult, robust: Posterior | None = None, unit: str = "") -> dict[str, Any]:
    found = explorer_data(result, robust or result.posterior, unit, plots.colours(result.algorithms))
    return dict(json.loads(json.dumps(found, allow_nan=False)))  # as the page gets it


def decoded(text: str) -> np.ndarray[Any, Any]:
    steps = np.frombuffer(base64.b64decode(text), dtype="<u2")
    return np.where(steps == 65535, np.nan, steps / 65534)


@pytest.fixture(scope="module")
def raced() -> RaceResult:
    return synthetic_race(algorithms=7, timepoints=10)


@pytest.fixture(scope="module")
def gappy() -> RaceResult:
    """An analysis in which c was not observed at the first two timepoints, and nobody but a at the third."""
    values = np.random.default_rng(1).normal(size=(25, 5, 3))
    values[:, :2, 2] = np.nan
    values[:, 2, 1:] = np.nan
    return analyze(table_of(values, timepoints=[1, 10, 100, 1000, 10000]), RaceSettings(seed=1, draws=300))


def test_the_sentence_for_a_budget_says_what_select_chooses_there(raced: RaceResult) -> None:
    said = data_of(raced, unit="evaluations")["budgets"]
    supported = set()
    for place, weights in enumerate(np.eye(raced.timepoints.size)):
        choice = select(raced.posterior, raced.pareto_set, weights)
        says = said[place]["says"]
        assert said[place]["supported"] == choice.supported
        supported.add(choice.supported)
        begin = f"With a budget of {raced.timepoints[place]:g} evaluations, "
        if choice.supported:
            assert says.startswith(f"{begin}choose {choice.algorithm} (P(best) ")
        else:
            assert says.startswith(f"{begin}no choice is supported: {choice.algorithm} is highest (P(best) ")
            assert all(name in says.partition(");")[2].partition(" may be best")[0] for name in choice.rivals)
        if choice.expected_regret >= 0.001:
            assert f"Expected regret {choice.expected_regret:.2g}: " in says
            assert f" on {100 * choice.expected_regret:.2g} more of 100 new instances than {choice.algorithm}." in says
    assert supported == {True, False}


def test_a_budget_has_the_numbers_of_select(raced: RaceResult) -> None:
    for place, (found, weights) in enumerate(
        zip(choices_at_timepoints(raced, raced.posterior), np.eye(raced.timepoints.size), strict=True)
    ):
        choice = select(raced.posterior, raced.pareto_set, weights)
        p_best = choice.summary()["p_best"]
        assert found["p_best"] == {name: pytest.approx(p_best[name]) for name in choice.candidates}
        assert (found["algorithm"], found["support"], found["regret"]) == (
            choice.algorithm,
            pytest.approx(choice.support),
            pytest.approx(choice.expected_regret),
        ), place


def test_where_the_advice_over_time_is_another_one_the_sentence_says_so(told: RaceResult) -> None:
    """A lead of a moment is not worth a change."""
    hair = np.array([[[0.02, 0.45, 0.02, 0.49, 0.02]], [[0.02, 0.57, 0.02, 0.37, 0.02]]])
    ratings = np.concatenate([hair[1:], hair[1:], hair[:1]]).reshape(1, 3, 5).repeat(20, axis=0)
    ratings[:, 2] = [0.02, 0.469, 0.02, 0.471, 0.02]
    posterior = posterior_of(ratings, algorithms=told.algorithms, timepoints=told.timepoints)
    names = [
        stretch.algorithm
        for stretch in stretches(posterior, told.pareto_set)
        for _ in range(stretch.first, stretch.last + 1)
    ]
    found = choices_at_timepoints(told, posterior)
    chosen = [at["algorithm"] for at in found]
    assert chosen[2] != names[2]
    assert f" Over the budgets 10 to 2,000 the advice above is {names[2]}: a change must gain" in found[2]["says"]
    assert "advice above" not in found[0]["says"]


@pytest.mark.parametrize(
    ("leads", "says"),
    [
        # sure at the second and the third, and so on average, but not at the first
        (
            [0.9, 1.0, 1.0],
            [
                (
                    " Over the budgets 10 to 2,000 together, b is supported (97 % on average), which is the advice "
                    "above; for this one alone the data are not as sure."
                ),
                "",
                "",
            ],
        ),
        # sure at the second alone
        (
            [0.9, 1.0, 0.9],
            [
                "",
                (
                    " Over the budgets 10 to 2,000 together, no choice is supported: the advice above is about all of "
                    "them."
                ),
                "",
            ],
        ),
        ([0.9, 0.9, 0.9], ["", "", ""]),
        ([1.0, 1.0, 1.0], ["", "", ""]),
    ],
)
def test_a_budget_that_is_surer_or_less_sure_than_the_advice_around_it_says_so(
    told: RaceResult, leads: list[float], says: list[str]
) -> None:
    """``leads``: the share of the draws in which b is much better than a, at each timepoint."""
    ratings = np.full((20, 3, 5), 0.02)
    a, b = (told.algorithms.index(name) for name in "ab")
    for place, lead in enumerate(leads):
        first = np.arange(20) < 20 * lead
        ratings[:, place, b], ratings[:, place, a] = np.where(first, 0.84, 0.1), np.where(first, 0.1, 0.84)
    posterior = posterior_of(ratings, algorithms=told.algorithms, timepoints=told.timepoints)
    found = choices_at_timepoints(told, posterior)
    assert [at["algorithm"] for at in found] == ["b"] * 3
    assert [at["supported"] for at in found] == [lead == 1 for lead in leads]
    assert [at["says"].partition(" more of 100 new instances than b.")[2] for at in found] == says


def test_the_summary_of_p_best_is_no_surer_than_the_draws(told: RaceResult) -> None:
    ratings = np.full((4000, 3, 5), 0.02)
    ratings[..., told.algorithms.index("a")] = 0.92
    posterior = posterior_of(ratings, algorithms=told.algorithms, timepoints=told.timepoints)
    said = data_of(replace(told, _posterior=posterior), unit="s")["summaries"]
    assert said["best"] == "Highest: a > 0.999 at 10 s, a > 0.999 at 100, a > 0.999 at 2,000."
    assert said["ratings"] == "Highest: a 0.92 at 10 s, a 0.92 at 100, a 0.92 at 2,000."


def test_no_number_stands_where_nothing_was_observed(gappy: RaceResult) -> None:
    data = data_of(gappy)
    c, left = gappy.algorithms.index("c"), [data["names"][place] for place in data["left"]]
    assert left == ["a", "b", "c"]
    for band in data["ratings"].values():
        assert band[c][:3] == [None] * 3
        assert None not in band[c][3:] + band[0][:2] + band[0][3:]
    assert data["best"][c][:3] == [None] * 3
    assert None not in data["best"][c][3:]
    assert data["best"][0][2] is None  # alone, it has nobody to be better than
    says = [at["says"] for at in data["budgets"]]
    assert says[2] == "None of those that are left was compared at 100: nothing is advised there."
    assert not data["budgets"][2]["supported"]
    wins = decoded(data["pairs"]["shares"]).reshape(3, 4, 5)
    assert np.isnan(wins[1][:, :3]).all()  # a against c
    assert not np.isnan(wins[1][:, 3:]).any()
    assert any(note.startswith("c was never observed at 1 to 100") for note in data["notes"]["several"])


def test_ratings_are_posterior_means_with_a_band_of_90_percent(raced: RaceResult) -> None:
    data, ratings = data_of(raced), raced.posterior.ratings
    low, high = np.quantile(ratings, [0.05, 0.95], axis=0)
    for name, expected in (("mean", ratings.mean(axis=0)), ("low", low), ("high", high)):
        assert np.array(data["ratings"][name]) == pytest.approx(expected.T, rel=1e-4)


def test_pairs_are_wins_and_the_probability_of_the_higher_rating(raced: RaceResult) -> None:
    data, logs = data_of(raced), raced.posterior.log_ratings
    p_better = compare(raced.posterior).p_better
    wins = decoded(data["pairs"]["shares"]).reshape(-1, 4, 10)
    assert [tuple(pair) for pair in data["pairs"]["pairs"]] == list(itertools.combinations(range(7), 2))
    for (i, j), found in zip(data["pairs"]["pairs"], wins, strict=True):
        win = 1 / (1 + np.exp(logs[:, :, j] - logs[:, :, i]))
        expected = [win.mean(axis=0), *np.quantile(win, [0.05, 0.95], axis=0), p_better[:, i, j]]
        assert found == pytest.approx(np.array(expected), abs=2e-3)
        assert found[[0, 3]] == pytest.approx(np.array(expected)[[0, 3]], abs=1e-5)


def test_many_algorithms_have_pairs_of_those_that_are_left_or_none(
    raced: RaceResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = len(raced.pareto_set)
    assert 1 < left < 7
    monkeypatch.setattr(explorer, "_MOST_PAIRS", left * (left - 1) // 2)
    data = data_of(raced)
    assert data["pairs"]["algorithms"] == data["left"]
    monkeypatch.setattr(explorer, "_MOST_PAIRS", 0)
    assert data_of(raced)["pairs"] is None


def test_rounds_are_those_of_the_race(told: RaceResult) -> None:
    rounds = data_of(told)["rounds"]
    assert rounds["numbers"] == [1, 2, 3]
    for place, name in enumerate(told.algorithms):
        out = {gone.algorithm: gone.round for gone in told.eliminations}.get(name)
        assert rounds["out"][place] == out
        for at, done in enumerate(told.rounds):
            if name in done.rivals and done.number <= (out or 3) and rounds["settled"][place] is None:
                rival, p = done.rivals[name]
                assert rounds["p"][place][at] == pytest.approx(p)
                assert told.algorithms[rounds["rivals"][place][at]] == rival
            elif out is not None and done.number > out:
                assert rounds["p"][place][at] is None
    one = replace(told, state=replace(told.state, rounds=told.rounds[2:]))
    assert data_of(one)["rounds"] is None


def test_if_the_model_does_not_fit_the_choice_follows_the_robust_posterior_and_says_so(
    raced: RaceResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    turned = raced.posterior.log_ratings[:, :, ::-1]
    robust = replace(raced.posterior, log_ratings=turned)
    fitting = data_of(raced)
    monkeypatch.setattr("polarbear_plugins.report.chart_words.misfits", lambda _: True)
    data = data_of(raced, robust)
    for place, weights in enumerate(np.eye(raced.timepoints.size)):
        chosen = select(robust, raced.pareto_set, weights)
        assert f"hoose {chosen.algorithm} (" in data["budgets"][place]["says"] or not chosen.supported
        p_best = dict(zip(chosen.candidates, chosen.summary()["p_best"][list(chosen.candidates)], strict=True))
        shown = {raced.algorithms[one]: data["best"][at][place] for at, one in enumerate(data["left"])}
        assert shown == {name: pytest.approx(p, rel=1e-4) for name, p in p_best.items()}
    assert any("follows from first places among those that are left" in note for note in data["notes"]["always"])
    assert "by the model, which does not fit" in data["captions"]["ratings"]
    assert "would hold the truth with probability 90 % if the model fitted." in data["captions"]["ratings"]
    assert "by first places" in data["captions"]["best"]
    # The ratings are still those of the model.
    assert data["ratings"] == fitting["ratings"]
    for chart in ("ratings", "pair"):
        assert "hold the truth with probability 90 % as far as the model is right" in fitting["captions"][chart]


def test_notes_say_what_a_choice_rests_on(told: RaceResult) -> None:
    found = data_of(told)["notes"]
    assert found["always"] == ["This rests on 6 instances."]
    assert found["several"][0].startswith("The prior dirichlet treats timepoints as independent: P(best), support")
    poor = replace(told.posterior, joint=True, diagnostics=Diagnostics(engine="native", route="by hand", good=False))
    found = data_of(replace(told, _posterior=poor))["notes"]
    assert "The posterior is not good enough to decide on: see the diagnostics." in found["always"]
    assert found["several"] == []


def test_the_sample_is_of_as_many_draws_as_fit_and_says_what_they_are_worth(
    raced: RaceResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = data_of(raced)["own"]
    left = len(raced.pareto_set)
    assert own["draws"] == raced.posterior.draws == 200
    assert decoded(own["sample"]).size == 200 * len(own["knots"]) * left
    assert own["worth"] <= 200
    worth = replace(raced.posterior.diagnostics, effective_draws=33.3)
    assert data_of(raced, replace(raced.posterior, diagnostics=worth))["own"]["worth"] == 33.3
    monkeypatch.setattr(explorer, "_NUMBERS", 60 * len(own["knots"]) * left)
    assert data_of(raced)["own"]["draws"] == 60


def test_a_single_timepoint_has_no_preference_to_draw_and_a_single_candidate_no_choice() -> None:
    result = analyze(table_of([[[1.0, 2.0]]] * 40, algorithms=["good", "bad"]), RaceSettings(seed=1, draws=200))
    data = data_of(result)
    assert data["own"] is None
    assert data["left"] == [0]
    assert data["best"] == [[1.0]]
    assert data["budgets"][0]["says"] == "With a budget of 1, good is the only one that is left."


def test_missing_shares_and_both_ends_survive_their_16_bits() -> None:
    shares = np.array([[0.0, 1.0], [np.nan, 0.123456]])
    assert decoded(encode_shares(shares)) == pytest.approx(shares.ravel(), abs=1e-5, nan_ok=True)


@pytest.mark.usefixtures("without_figures")
def test_too_many_algorithms_have_no_charts(told: RaceResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polarbear_plugins.report.page.MOST_NAMES", 4)
    page = render(told)
    assert 'id="explorer"' not in page
    assert 'id="explore-bar"' not in page
    assert 'id="choices"' in page
    assert "uPlot" not in page.partition("<body>")[2].partition("(function () {")[0]
