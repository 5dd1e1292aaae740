"""What a report says about choices: preferences to choose from, what each of them chooses, and advice in words."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import numpy as np
import pytest
from builders import posterior_of, table_of

from polarbear_plugins import RaceResult, select
from polarbear_plugins.display.html import Markup
from polarbear_plugins.racing.state import Elimination
from polarbear_plugins.report.advice import advice_from
from polarbear_plugins.report.at_budget import bounded
from polarbear_plugins.report.choices import RISKS, choices_of, preferences_of, selection_section
from polarbear_plugins.selection.stretches import Stretch, stretches

GRID = np.array([1.0, 20.0, 300.0, 4000.0, 50_000.0])


def with_grid(told: RaceResult, grid: list[float]) -> RaceResult:
    table = table_of(np.ones((1, len(grid), 5)), algorithms=told.algorithms, timepoints=grid)
    return replace(told, state=replace(told.state, table=table))


def test_preferences_are_described_with_their_budgets(told: RaceResult) -> None:
    found = preferences_of(told, "evaluations")
    assert {key: says for key, (says, _) in found.items()} == {
        "uniform": "uniform: any budget from 10 to 2,000 evaluations alike",
        "log-uniform": "log-uniform: each factor of the budget alike",
        "final": "final: the whole budget, 2,000 evaluations",
        "worst": "worst: the budget at which it is worst",
        "budget-10": "a budget of 10 evaluations",
        "budget-100": "a budget of 100 evaluations",
        "budget-2000": "a budget of 2,000 evaluations",
    }
    assert preferences_of(told)["final"][0] == "final: the whole budget, 2,000"
    for key in ("uniform", "log-uniform", "final", "worst"):
        assert found[key][1] == key
    assert list(found["budget-100"][1]) == [0.0, 1.0, 0.0]  # type: ignore[call-overload]


def test_a_few_budgets_between_the_first_and_the_last_are_offered(told: RaceResult) -> None:
    many = with_grid(told, list(np.arange(1.0, 102.0)))
    offered = [key for key in preferences_of(many) if key.startswith("budget")]
    assert offered == ["budget-1", "budget-26", "budget-51", "budget-76"]
    assert "log-uniform" not in preferences_of(with_grid(told, [0.0, 1.0, 2.0]))
    assert {key: says for key, (says, _) in preferences_of(with_grid(told, [5.0]), "s").items()} == {
        "uniform": "the only timepoint, 5 s"
    }


def test_every_choice_is_that_of_select_and_says_what_it_loses(told: RaceResult) -> None:
    choices = choices_of(told, told.posterior)
    for key, (says, preference) in preferences_of(told).items():
        for risk in RISKS:
            chosen = select(told.posterior, told.pareto_set, preference, risk=risk)
            shown = choices[key][risk]
            assert shown["algorithm"] == chosen.algorithm
            assert shown["supported"] == chosen.supported
            little = chosen.expected_regret < 0.001
            regret = "below 0.001" if little else f"{chosen.expected_regret:.3g}"
            lost = f"Expected regret {regret}: the value lost on average against the best choice."
            if chosen.supported:
                assert shown["says"] == f"Choose {chosen.algorithm} (preference {says}; risk {risk}). {lost}"
            else:
                assert shown["says"] == (
                    f"No choice is supported (preference {says}; risk {risk}): {chosen.algorithm} is highest; "
                    f"{' or '.join(chosen.rivals)} may be better. {lost}"
                )
            for row, (name, values) in zip(shown["rows"], chosen.summary().iterrows(), strict=True):
                interval = f"{values['low']:.3g} to {values['high']:.3g}"
                draws = told.posterior.draws
                score = bounded(values["score"], draws) if risk == "best" else f"{values['score']:.3g}"
                lost = "< 0.001" if values["expected_regret"] < 0.001 else f"{values['expected_regret']:.3g}"
                assert row == [name, score, f"{values['mean']:.3g}", interval, bounded(values["p_best"], draws), lost]


def test_no_choice_is_surer_than_its_draws(told: RaceResult) -> None:
    ratings = np.full((4000, 3, 5), 0.02)
    ratings[..., told.algorithms.index("a")] = 0.92
    sure = posterior_of(ratings, algorithms=told.algorithms, timepoints=told.timepoints)
    found = choices_of(told, sure)["final"]
    assert found["best"]["says"].endswith(
        "Expected regret below 0.001: the value lost on average against the best choice."
    )
    assert [row[0] for row in found["best"]["rows"]] == ["a", "b"]
    assert [(row[1], row[4]) for row in found["best"]["rows"]] == [("> 0.999", "> 0.999"), ("< 0.001", "< 0.001")]
    assert [row[5] for row in found["expected"]["rows"]] == ["< 0.001", "0.957"]


def test_of_one_that_is_left_no_choice_is_made(told: RaceResult) -> None:
    last = replace(told.rounds[-1], eliminations=(*told.rounds[-1].eliminations, Elimination("b", "a", 0.99, 3)))
    alone = replace(told, state=replace(told.state, rounds=(*told.rounds[:-1], last)))
    assert alone.pareto_set == ("a",)
    assert choices_of(alone, alone.posterior)["final"]["expected"]["says"] == (
        "a is the only one that is left (preference final: the whole budget, 2,000; risk expected)."
    )


def test_the_section_shows_the_first_choice_the_control_and_all_choices(told: RaceResult) -> None:
    choices = choices_of(told, told.posterior)
    page = selection_section(told, choices, Markup("<figure>here</figure>"))
    options = re.findall(r'<option value="(.*?)">(.*?)</option>', page)
    preferences = preferences_of(told)
    assert [key for key, _ in options] == [*preferences, *RISKS]
    assert [says for _, says in options[len(preferences) :]] == [f"{risk}: {says}" for risk, says in RISKS.items()]
    first = choices["uniform"]["expected"]
    assert f'id="choice-says">{first["says"]}</p>' in page
    shown, overview = re.findall(r"<tbody.*?</tbody>", page)
    assert shown.startswith('<tbody id="choice-rows">')
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>.*?</tr>", html.unescape(shown))]
    assert rows == first["rows"]
    assert 'class="says" id="choice-says"' in page
    doubtful = choices | {"uniform": choices["uniform"] | {"expected": first | {"supported": False}}}
    assert 'class="says doubtful" id="choice-says"' in selection_section(told, doubtful, Markup(""))
    assert [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>.*?</tr>", overview)] == [
        [
            says,
            *(
                choices[key][risk]["algorithm"] + " (not supported)" * (not choices[key][risk]["supported"])
                for risk in RISKS
            ),
        ]
        for key, (says, _) in preferences.items()
    ]
    assert {choices[key][risk]["supported"] for key in preferences for risk in RISKS} == {True, False}
    assert "<figure>here</figure>" in page
    assert "follows from first places" not in page


@pytest.mark.parametrize(("joint", "timepoints", "warned"), [(False, 3, True), (True, 3, False), (False, 1, False)])
def test_independent_timepoints_are_said_to_be_overconfident(
    told: RaceResult, joint: bool, timepoints: int, warned: bool
) -> None:
    result = with_grid(told, [10.0, 100.0, 2000.0][:timepoints])
    ratings = np.random.default_rng(1).dirichlet(np.ones(5), size=(9, timepoints))
    posterior = posterior_of(ratings, algorithms=told.algorithms, timepoints=result.timepoints, joint=joint)
    result = replace(result, _posterior=posterior)
    page = selection_section(result, choices_of(result, posterior), Markup(""))
    assert ("The prior dirichlet treats timepoints as independent" in page) == warned
    assert (
        "choice is supported are overconfident. Means are not affected; for the rest, use a temporal" in page
    ) == warned


def test_the_control_names_budgets_with_their_unit(told: RaceResult) -> None:
    page = selection_section(told, choices_of(told, told.posterior, "seconds"), Markup(""), "seconds")
    assert page.count("final: the whole budget, 2,000 seconds") == 2  # in the control and in the table


# Advice


def test_advice_names_everybody_where_nothing_is_supported() -> None:
    def said(*found: Stretch) -> str:
        return advice_from(found, GRID, "evaluations")

    doubt = Stretch(0, 4, "a", 0.5, ("b", "c"))
    assert said(doubt) == "No choice is supported for any budget: a, b or c may be best."
    assert said(Stretch(0, 4, "a", 0.5)) == "No choice is supported for any budget: a may be best."
    assert said(Stretch(0, 1, "a", 0.5, ("b",)), Stretch(2, 4, "c", 0.5, ("a",))) == (
        "No choice is supported for any budget: a, b or c may be best."
    )
    # Stretches without support that follow each other are one.
    assert said(Stretch(0, 0, "a", 0.5, ("b",)), Stretch(1, 2, "b", 0.5, ("c",)), Stretch(3, 4, "d")) == (
        "Up to 300 evaluations, no choice is supported: a, b or c may be best; choose d beyond."
    )
    assert said(Stretch(0, 0, "a"), Stretch(1, 2, "b", 0.5, ("a",)), Stretch(3, 3, "c"), Stretch(4, 4, "d")) == (
        "Choose a up to 1 evaluations; up to 300, no choice is supported: b or a may be best; choose c up to 4,000, "
        "d beyond."
    )


def test_rivals_are_named_the_likeliest_first() -> None:
    # In ten draws a is first four times, c three times, b twice and d once.
    places = [0, 0, 0, 0, 2, 2, 2, 1, 1, 3]
    ratings = np.full((10, 1, 4), 0.1)
    ratings[np.arange(10), 0, places] = 0.7
    [found] = stretches(posterior_of(ratings), ("a", "b", "c", "d"))
    assert found.algorithm == "a"
    assert found.support == pytest.approx(0.4)
    assert found.rivals[:2] == ("c", "b")
