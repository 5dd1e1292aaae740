"""What figures are given and called, and the words about the model, groups, archives and observations."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from builders import cells_of, posterior_of, table_of

from polarbear_plugins import RaceResult, plots
from polarbear_plugins.display.html import Markup
from polarbear_plugins.posterior.group_effect import GroupEffect
from polarbear_plugins.posterior.model_check import Gap, ModelCheck
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.racing.state import Elimination
from polarbear_plugins.rankings.ends import EarlyEnds
from polarbear_plugins.report import figures as figures_module
from polarbear_plugins.report import model_sections
from polarbear_plugins.report.choices import choices_of, selection_section
from polarbear_plugins.report.figures import Figures
from polarbear_plugins.report.observations import assumptions, early_end_text, never_found_anything, seen_text
from polarbear_plugins.report.sections import observed
from polarbear_plugins.report.stored_words import matching_text, run_and_stored_text, settled_text
from polarbear_plugins.report.words import conclusion, error_text, misfit_text, reasons


def checked(told: RaceResult, p: float) -> RaceResult:
    """The same result with a check of its model."""
    check = ModelCheck(
        algorithms=told.algorithms,
        timepoints=told.timepoints,
        p=p,
        p_first=np.array([0.5, 0.004, 0.25]),
        p_pairs=np.array([0.75, 0.01, 0.125]),
        observed=np.full((3, 5), 0.2),
        modelled=np.full((3, 5), 0.2),
        first_gap=Gap(100.0, "a", None, 0.5, 0.25),
        pair_gap=Gap(10.0, "a", "b", 0.75, 0.5),
    )
    return replace(told, _posterior=replace(told.posterior, check=check))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Any, dict[str, Any]]]:
    """What each function that draws is given, instead of a figure."""
    given: dict[str, tuple[Any, dict[str, Any]]] = {}

    def record(name: str) -> Callable[..., None]:
        return lambda what, **options: given.update({name: (what, options)})

    for name in ("ratings", "timeline", "dominance", "allocation", "wins", "values", "model_check"):
        monkeypatch.setattr(plots, f"plot_{name}", record(name))

    def draw(_: Figures, name: str, says: str, make: Callable[[], None]) -> Markup:
        make()
        return Markup(f"<figure>{name}: {says}</figure>")

    monkeypatch.setattr(Figures, "_draw", draw)
    monkeypatch.setattr(figures_module, "require", lambda *_, **__: None)
    return given


def test_figures_show_what_their_captions_say(told: RaceResult, drawn: dict[str, tuple[Any, dict[str, Any]]]) -> None:
    robust = replace(told.posterior)
    figures = Figures(told, robust=robust)
    colour = figures.colours
    assert figures.ratings().startswith(
        "<figure>ratings: The probability of being the best of all on a new instance, over time: posterior means, and "
        "bands that hold the truth with probability 90 % as far as the model is right."
    )
    assert drawn["ratings"] == (told.posterior, {"eliminated": ["d", "e", "c"], "colour": colour})
    assert "<figure>timeline: The probability of having the highest rating among" in figures.timeline()
    assert drawn["timeline"] == (robust, {"among": ("a", "b"), "colour": colour})
    assert "<figure>dominance: For each algorithm and round" in figures.dominance()
    assert drawn["dominance"] == (told, {"colour": colour})
    assert "<figure>allocation: How many instances" in figures.allocation()
    assert drawn["allocation"] == (told, {})
    assert "beats the column's at the last timepoint, 2,000.<details>" in figures.wins()
    assert drawn["wins"] == (told.posterior, {"timepoint": 2000.0})
    assert figures.model_check() == ""  # it was not checked
    values = figures.values({"uniform": ("all", "uniform"), "final": ("the end", "final")})
    assert [re.sub(" .*", "", figure) for figure in values.split("<figure ")[1:]] == [
        'data-preference="uniform">values-0:',
        'data-preference="final"',
    ]
    assert 'data-preference="final" hidden>values-1: The posterior of the value' in values
    assert "preference the end.</figure>" in values
    assert drawn["values"] == (robust, {"preference": "final", "among": ("a", "b"), "colour": colour})


def test_figures_of_a_misfit_are_by_the_model(told: RaceResult, drawn: dict[str, tuple[Any, dict[str, Any]]]) -> None:
    result = checked(told, 0.01)
    figures = Figures(result)
    assert (
        "over time, by the model, which does not fit: posterior means, and bands that would hold" in figures.ratings()
    )
    assert "2,000, by the model, which does not fit." in figures.wins()
    assert "<figure>check: The share of the instances" in figures.model_check()
    assert drawn["model_check"] == (result.check, {"colour": figures.colours})
    assert figures.timeline()
    assert drawn["timeline"][0] is result.posterior  # nothing else is given


def test_what_shows_nothing_is_not_drawn(told: RaceResult, drawn: dict[str, tuple[Any, dict[str, Any]]]) -> None:
    out = replace(told.rounds[2].eliminations[0], algorithm="b", by="a")
    alone = replace(told.state, rounds=(replace(told.rounds[2], eliminations=(*told.eliminations, out)),))
    figures = Figures(replace(told, state=alone))
    assert figures.timeline() == figures.dominance() == figures.values({"uniform": ("all", "uniform")}) == ""
    assert drawn == {}
    assert figures.note() == ""


def test_too_many_algorithms_have_no_figures(told: RaceResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures_module, "MOST_NAMES", 5)
    assert "No figures" not in Figures(told).note()
    monkeypatch.setattr(figures_module, "MOST_NAMES", 4)
    monkeypatch.setattr(figures_module, "require", lambda *_, **__: None)
    figures = Figures(told)
    assert figures.note() == "<p>No figures: they are drawn for up to 4 algorithms.</p>"
    assert figures.ratings() == ""


# The model


@pytest.mark.usefixtures("drawn")
def test_the_check_is_told_with_its_p_values_and_gaps(told: RaceResult) -> None:
    result = checked(told, 0.6)
    section = model_sections.model_fit(result, result.posterior, Figures(result))
    assert section.startswith("<p>The rankings do not contradict the model (p = 0.6).</p>")
    assert cells_of(section) == [
        ["p-value of", "at 10", "at 100", "at 2,000"],
        ["first places", "0.5", "0.004", "0.25"],
        ["pairs", "0.75", "0.01", "0.12"],
    ]
    assert re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", section) == [
        ("largest gap, first places", "a is first on 50% of the instances at 100, and by the model on 25%"),
        ("largest gap, pairs", "a beats b on 75% of the instances at 10, and by the model on 50%"),
    ]
    assert "Ratings by the model" not in section
    assert "was not checked" in model_sections.model_fit(told, told.posterior, Figures(told))


@pytest.mark.usefixtures("drawn")
def test_a_misfit_shows_both_ratings_among_those_left(told: RaceResult) -> None:
    result = checked(told, 0.01)
    robust = posterior_of(np.broadcast_to([0.25, 0.75], (2, 3, 2)), algorithms=("a", "b"), timepoints=told.timepoints)
    section = model_sections.model_fit(result, robust, Figures(result))
    assert section.startswith('<p class="warning">The model does not fit (p = 0.01): a is first on 50%')
    below = section.partition("<h3>Ratings by the model / by first places</h3>")[2]
    # By the model a has 0.475 and b 0.1625 at 10, of which a has 75 %.
    means = told.posterior.mean_ratings[:, [1, 3]]
    shares = means / means.sum(axis=1, keepdims=True)
    assert cells_of(below) == [
        ["algorithm", "at 10", "at 100", "at 2,000"],
        ["a", *(f"{share:.0%} / 25%" for share in shares[:, 0])],
        ["b", *(f"{share:.0%} / 75%" for share in shares[:, 1])],
    ]
    assert shares[0, 0] == pytest.approx(0.745, abs=1e-3)


def test_a_misfit_is_one_sentence_with_what_follows_from_it(told: RaceResult) -> None:
    result = checked(told, 0.01)
    found = "The model does not fit (p = 0.01): a is first on 50% of the instances at 100, and by the model on 25%"
    assert misfit_text(result) == f"{found}; what to choose follows from first places instead."
    assert misfit_text(result) in conclusion(result)
    alone = (*told.rounds, replace(told.rounds[1], eliminations=(Elimination("b", "a", 0.9, 4),)))
    assert misfit_text(replace(result, state=replace(told.state, rounds=alone))) == f"{found}."
    assert "does not fit" not in conclusion(checked(told, 0.6))
    # Without a posterior to choose from, nothing is advised.
    assert "may be best" not in conclusion(result)
    assert "may be best" in conclusion(result, robust=told.posterior)
    sure = posterior_of(np.broadcast_to([0.1, 0.9], (9, 3, 2)), algorithms=("a", "b"), timepoints=told.timepoints)
    assert "Choose b for any budget" in conclusion(result, robust=sure)


@pytest.mark.parametrize(("p", "said"), [(0.01, True), (0.6, False)])
def test_choices_say_that_a_misfit_makes_them_follow_from_first_places(told: RaceResult, p: float, said: bool) -> None:
    result = checked(told, p)
    page = selection_section(result, choices_of(result, told.posterior), Markup(""))
    basis = " Since the model does not fit, that probability follows from first places among them."
    assert f"weighted over time by the preference.{basis if said else ''}</p>" in page


def test_an_elimination_says_whether_wins_alone_show_it(told: RaceResult) -> None:
    values = np.tile([5.0, 1.0, 3.0, 2.0, 4.0], (90, 3, 1))
    values[::2, :, 2] = 0.0  # c wins every other time
    table = table_of(values, algorithms=told.algorithms, timepoints=told.timepoints)
    result = replace(told, state=replace(told.state, table=table))
    assert result.certain_without_model == ("d", "e")
    found = reasons(result)
    assert found["d"] == "a is better at every timepoint, P = 0.930; also certain without the model"
    assert found["c"] == "a is better at every timepoint, P = 0.910; rests on the model"
    assert error_text(result).endswith("; 2 of them are also certain without the model.")
    held = replace(told.rounds[2], held=(Elimination("b", "a", 0.97, 3),))
    kept = replace(told, state=replace(told.state, rounds=(*told.rounds[:2], held)))
    assert reasons(kept)["b"] == (
        "kept: the model would eliminate it because of a, P = 0.970, but direct counts do not support it"
    )


def test_groups_are_told_with_what_they_inflate_and_each_by_itself(told: RaceResult) -> None:
    effect = GroupEffect(
        scope="new",
        groups=2,
        instances=6,
        p=0.03,
        inflation=np.array([1.0, 1.5, 2.25]),
        spread=np.array([0.0, 0.125, 0.5]),
    )
    values = np.tile([5.0, 1.0, 3.0, 2.0, 4.0], (6, 3, 1))
    values[4:, 1:, 3] = 0.5  # b is first in the second group from 100 on
    table = table_of(values, algorithms=told.algorithms, timepoints=told.timepoints, groups=["one"] * 4 + ["two"] * 2)
    result = replace(told, state=replace(told.state, table=table), _posterior=replace(told.posterior, groups=effect))
    section = model_sections.groups(result, None)
    assert "a new group, judged by 2 groups (permutation test p = 0.03, variance inflation 1.0 to 2.2)" in section
    assert cells_of(section) == [
        ["", "at 10", "at 100", "at 2,000"],
        ["variance inflation", "1.00", "1.50", "2.25"],
        ["spread between groups", "0.00", "0.12", "0.50"],
    ]
    each = section.partition("<h3>Each group by itself</h3>")[2]
    header, first, second = cells_of(each)
    assert header == ["group", "instances", "at 10", "at 100", "at 2,000"]
    assert first[:2] == ["one", "4"]
    assert second[:2] == ["two", "2"]
    assert all(cell.startswith("a 100%") for cell in [*first[2:], second[2]])
    assert all(cell.startswith("b 100%") for cell in second[3:])
    assert "do not regard groups" in model_sections.groups(replace(result, _posterior=told.posterior), None)
    assert model_sections.groups(told, None) == ""


def test_dimensions_are_told_apart_where_there_are_several(told: RaceResult) -> None:
    dimensions = {f"f{number}": 2 if number < 3 else 5 for number in range(1, 7)}
    result = replace(told, about={"dimensions": dimensions})
    section = model_sections.dimensions(result)
    assert "tells them apart.</p><p>The algorithm most often first, and its share of the first places; ties" in section
    assert "ties are split.</p><div" in section
    assert [row[:2] for row in cells_of(section)] == [["dimension", "instances"], ["d = 2", "2"], ["d = 5", "4"]]
    [sentence] = assumptions(result)
    assert sentence == (
        "Instances of 2 dimensions are pooled (2 with d = 2, 4 with d = 5): a budget is as many evaluations for all of "
        "them; --budget 2000d would count in multiples of d. --by dimension tells them apart."
    )
    assert observed(result).startswith(f"<p>{sentence}</p><p>On how many")
    multiples = replace(result, about={"dimensions": dimensions, "per_dimension": True})
    assert "(2 with d = 2, 4 with d = 5): budgets are multiples of d." in assumptions(multiples)[0]
    assert model_sections.dimensions(told) == ""
    assert model_sections.dimensions(replace(told, about={"dimensions": dict.fromkeys(dimensions, 3)})) == ""


def test_dimensions_are_those_of_the_instances_where_a_race_made_them(told: RaceResult) -> None:
    identities = tuple(Identity(f"f{number}", {"dimension": 2 if number < 3 else 5}) for number in range(1, 7))
    assert "(2 with d = 2, 4 with d = 5)" in assumptions(replace(told, identities=identities))[0]
    unknown = tuple(Identity(f"f{number}", {"dimension": number % 2 == 0}) for number in range(1, 7))
    assert assumptions(replace(told, identities=unknown)) == []


def test_a_busy_machine_is_told_where_seconds_count(told: RaceResult) -> None:
    figures = {"alone": 0.03, "beside": 0.036, "slower": 0.2, "measured": 12}
    [sentence] = assumptions(replace(told, about={"interference": figures}))
    assert sentence == (
        "A reference run took 20% longer here than with a core to itself, by the median of 12: the seconds are those "
        "of a busy machine."
    )
    assert assumptions(replace(told, about={"interference": {**figures, "slower": 0.1}})) == []


def test_what_runs_ahead_of_time_cost_in_vain_is_told(told: RaceResult) -> None:
    # 4500 of 6 instances x 5 algorithms x 2000.
    assert "3 rounds, 6 instances, 8% of the cost of running everything on as many." in conclusion(told)
    for unused, share in ((3600.0, "6%"), (1.0, "less than 1%")):
        says = conclusion(replace(told, unused_cost=unused, stopped="resolved"))
        assert f"on as many; runs ahead of time that were not needed cost another {share}." in says
    stopped = conclusion(replace(told, unused_cost=3600.0, stopped="interrupted"))
    assert "on as many; runs that no round has used yet cost another 6%." in stopped


# Archives


def test_what_was_run_and_what_was_stored_is_told_with_its_cost(told: RaceResult) -> None:
    result = replace(told, state=replace(told.state, stored=("d", "c", "e")))
    # 4500 of 6 instances x 2 newcomers x 2000.
    assert run_and_stored_text(result) == (
        "Run: a, b, in 3 rounds on 6 of 6 instances of the archive, for 4,500, 19% of the cost of all of them in full. "
        "Stored, at no cost: d, c, e."
    )
    wasteful = run_and_stored_text(replace(result, unused_cost=2400.0, stopped="resolved"))
    assert "in full; runs ahead of time that were not needed cost another 10%. Stored" in wasteful
    assert run_and_stored_text(result) in conclusion(result)
    assert matching_text(result) in conclusion(result)
    assert "newcomers have run on all instances of the archive" in conclusion(replace(result, stopped="instances"))


@pytest.mark.parametrize(
    ("against", "expected"),
    [
        ({}, "."),
        ({"not_in_suite": 1200}, "; 1,200 of the archive are not in the suite."),
        (
            {"not_in_suite": 2, "not_in_suite_examples": ["f8", "f9"]},
            "; 2 of the archive are not in the suite, such as f8, f9.",
        ),
        ({"not_in_archive": 3000}, "; 3,000 of the suite are not in the archive."),
        ({"not_in_suite": 0, "not_in_archive": 0}, "."),
    ],
)
def test_how_archive_and_suite_match_is_told(told: RaceResult, against: dict[str, Any], expected: str) -> None:
    said = matching_text(replace(told, about={"against": against}))
    assert said == f"6 instances are both in the archive and in the suite{expected}"


def test_pairs_of_stored_rivals_are_told_apart(told: RaceResult) -> None:
    def result(stored: tuple[str, ...], *pairs: tuple[int, int]) -> RaceResult:
        resolved = np.ones((3, 5, 5), dtype=bool)
        for i, j in pairs:
            resolved[0, i, j] = resolved[0, j, i] = False
        return replace(told, state=replace(told.state, resolved=resolved, stored=stored))

    assert settled_text(result(())) == "Every pair is settled."
    stored = ("d", "c", "e")
    assert settled_text(result(stored)) == "Every pair that involves a newcomer is settled."
    assert settled_text(result(stored, (0, 2))) == (
        "Every pair that involves a newcomer is settled; 1 of stored rivals is not, by the data of the archive."
    )
    assert "; 2 of stored rivals are not, by" in settled_text(result(stored, (0, 2), (2, 4)))
    assert "1 pair is not settled (d and a)" in conclusion(result(stored, (0, 1), (0, 2)))


# Observations


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        (("a", "hold", 1, 10.0, 10.0), "a ended before others in 1 run, at 10, and keeps its last value from there on"),
        (("a", "cut", 2000, 10.0, 1500.0), "a ended before others in 2,000 runs, at 10 to 1,500, and is left out"),
        (
            ("a", "done", 2, 10.0, 20.0),
            "a reached its target in 2 runs, at 10 to 20, and counts as best from there on.",
        ),
    ],
)
def test_early_ends_are_told(ends: tuple[Any, ...], expected: str) -> None:
    assert early_end_text(EarlyEnds(*ends)).startswith(expected)


def test_replications_count_as_one_instance(told: RaceResult) -> None:
    result = replace(told, state=replace(told.state, settings=replace(told.settings, replications=3)))
    assert assumptions(result) == [
        "Each algorithm ran 3 times on each instance; together these runs count as one instance."
    ]
    assert assumptions(replace(result, stopped="analyzed")) == []


def test_on_how_many_instances_each_was_seen_is_told_if_not_on_all(told: RaceResult) -> None:
    assert seen_text(told)["d"] == [" (3)"] * 3
    assert seen_text(told)["a"] == [""] * 3
    section = observed(told)
    assert "On how many of the 6 instances each algorithm was compared:" in section
    assert cells_of(section) == [
        ["algorithm", "at 10", "at 100", "at 2,000"],
        ["d", "3", "3", "3"],
        *([name, "6", "6", "6"] for name in ("a", "c", "b", "e")),
    ]
    complete = table_of(np.ones((6, 3, 5)), algorithms=told.algorithms, timepoints=told.timepoints)
    assert observed(replace(told, state=replace(told.state, table=complete))) == ""


def test_who_found_nothing_took_part(told: RaceResult) -> None:
    values = told.state.table.values.copy()
    values[:, :, 2] = np.inf
    values[0, 2, 4] = 1.0
    values[1:, :, 4] = np.inf  # e found something once
    values[:, :, 0] = np.nan  # d did not run
    table = table_of(values, algorithms=told.algorithms, timepoints=told.timepoints)
    assert never_found_anything(replace(told, state=replace(told.state, table=table))) == ["c"]
