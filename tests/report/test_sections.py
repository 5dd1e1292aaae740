"""What the tables and sentences of a report say, of a small result that is made by hand."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from builders import cells_of, table_of

from polarbear_plugins import RaceResult
from polarbear_plugins.environment import installed_versions
from polarbear_plugins.posterior.posterior import Diagnostics
from polarbear_plugins.racing.forecast import Forecast
from polarbear_plugins.racing.state import Elimination
from polarbear_plugins.report import sections
from polarbear_plugins.report.words import conclusion, result_table


def text_of(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def test_each_budget_has_the_highest_its_rating_and_how_often_it_is_best_of_those_left(told: RaceResult) -> None:
    header, *rows = cells_of(sections.budgets(told, told.posterior, {}))
    assert header == ["budget", "highest", "rating", "P(best)", "support"]
    # a is best of a and b in three draws at 10, b in two at 100 and in all at 2000; what d has does not count.
    assert rows == [
        ["10", "a not supported: b may be best", "0.47", "0.75", "75%"],
        ["100 to 2,000", "b not supported: a may be best", "0.42 to 0.54", "0.50 to > 0.99", "88%"],
    ]
    assert "by first places" not in sections.budgets(told, told.posterior, {})
    assert "best of those that are left, by first places" in sections.budgets(told, replace(told.posterior), {})


def test_no_choice_is_as_sure_as_no_number_of_draws_can_show(told: RaceResult) -> None:
    logs = np.where(np.arange(len(told.algorithms)) == told.algorithms.index(told.pareto_set[0]), -0.01, -6.0)
    sure = replace(told.posterior, log_ratings=np.broadcast_to(logs, told.posterior.log_ratings.shape).copy())
    _, row = cells_of(sections.budgets(told, sure, {}))
    assert row[3:5] == ["> 0.99", "> 99%"]


def test_an_open_pair_says_how_likely_the_one_that_stands_first_is_better(told: RaceResult) -> None:
    markup = sections.open_questions(told, None)
    assert cells_of(markup) == [
        ["one", "other", "not settled at", "P(one is better)", "P(equivalent)"],
        # a is better in three draws at 10 and in two at 100, in one of them by next to nothing.
        ["a", "b", "10 to 100", "0.50 to 0.75", "< 0.01 to 0.25"],
    ]
    says = text_of(markup)
    assert says.startswith("1 pair is neither surely different nor surely equivalent at some timepoints. ")
    assert "A larger epsilon than 0.05 or a smaller alpha than 0.9 asks for less" in says
    assert "more pair" not in says


def test_open_pairs_of_stored_rivals_are_not_waited_for(told: RaceResult) -> None:
    archive = replace(told, state=replace(told.state, stored=("a", "b")))
    says = text_of(sections.open_questions(archive, None))
    assert "Every pair that involves a newcomer is settled; 1 of stored rivals is not" in says
    assert "is not forecast" not in says


def test_a_strict_race_is_told_of_crossings(told: RaceResult) -> None:
    for resolution in ("strict", "crossing"):
        settings = replace(told.settings, resolution=resolution)
        result = replace(told, state=replace(told.state, settings=settings))
        assert ('resolution "crossing" also settles' in text_of(sections.open_questions(result, None))) == (
            resolution == "strict"
        )


def test_several_open_pairs_are_counted_and_the_first_are_shown(
    told: RaceResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_everywhere = np.broadcast_to(np.eye(5, dtype=bool), (3, 5, 5))
    result = replace(told, state=replace(told.state, resolved=open_everywhere))
    says = text_of(sections.open_questions(result, None))
    assert says.startswith("10 pairs are neither surely different")
    for most, more in ((10, ""), (9, "And 1 more pair."), (7, "And 3 more pairs.")):
        monkeypatch.setattr(sections, "_MOST_ROWS", most)
        markup = sections.open_questions(result, None)
        assert len(cells_of(markup)) == most + 1
        assert text_of(markup).endswith(more)
        assert ("more pair" in markup) == bool(more)


def test_the_forecast_of_what_is_open_stands_beside_what_there_is(told: RaceResult) -> None:
    expected = Forecast(np.full(10, 40.0), np.full(10, 4000.0), np.full(10, 5.0))
    says = text_of(sections.open_questions(told, expected))
    assert f"Likely needed to settle it: {expected} , beside the 6 there are." in says
    assert f"; {expected} would likely settle it." in conclusion(told, forecast=expected)
    assert "is not forecast, since nothing was simulated." in text_of(sections.open_questions(told, None))
    unseen = replace(told.posterior, observed=told.posterior.observed & (told.timepoints < 2000)[:, None])
    says = text_of(sections.open_questions(replace(told, _posterior=unseen), None))
    assert "is not forecast, since some algorithms were never observed at some timepoints." in says


def test_those_left_stand_first_and_then_the_eliminated_the_latest_first(told: RaceResult) -> None:
    markup = sections.algorithms(told, told.posterior, {"a": "#123456"})
    header, *rows = cells_of(markup)
    assert header == ["algorithm", "status", "because", "instances", "cost", "failed runs"]
    assert [row[:2] for row in rows] == [
        ["a", "in"],
        ["b", "in"],
        ["c", "out in round 3"],
        ["e", "out in round 3"],
        ["d", "out in round 2"],
    ]
    assert rows[2][2].startswith("a is better at every timepoint, P = 0.91")
    assert rows[3][2].startswith("b is better at every timepoint, P = 0.96")
    assert [row[3] for row in rows] == ["6", "6", "6", "6", "3"]
    assert [row[4] for row in rows] == ["12,000", "12,000", "12,000", "12,000", "6,000"]
    assert [row[5] for row in rows] == ["0", "0", "2", "0", "0"]
    assert '<span class="swatch" style="--tone:#123456">a</span>' in markup
    assert markup.count("swatch") == 1


def test_a_single_round_and_no_failure_are_not_told(told: RaceResult) -> None:
    only = replace(told.rounds[1], number=1, eliminations=(Elimination("d", "a", 0.93, 1),))
    state = replace(told.state, rounds=(only,))
    header, *rows = cells_of(sections.algorithms(replace(told, state=state, failures=()), told.posterior, {}))
    assert header[-1] == "cost"
    assert rows[-1][:2] == ["d", "out"]


def test_each_round_says_what_it_took_and_whom_it_eliminated(told: RaceResult) -> None:
    assert cells_of(sections.rounds(told)) == [
        ["round", "instances so far", "cost so far", "pairs settled", "eliminated"],
        ["1", "2", "1,500", "30%", "none"],
        ["2", "4", "3,000", "60%", "d"],
        ["3", "6", "4,500", "90%", "e, c"],
    ]


def test_rounds_whose_posterior_was_not_good_enough_are_named(told: RaceResult) -> None:
    assert "No decision was made in the rounds 1: their" in text_of(sections.diagnostics(told))
    good = replace(told, state=replace(told.state, rounds=told.rounds[1:]))
    assert "No decision was made" not in sections.diagnostics(good)


def test_diagnostics_say_what_was_measured_and_whether_it_is_good_enough(told: RaceResult) -> None:
    markup = sections.diagnostics(told)
    assert "4 draws of the engine native under the prior dirichlet: by hand." in text_of(markup)
    assert "The draws are good enough to decide on." in markup
    assert cells_of(markup) == [
        ["what", "value", "meaning"],
        ["moves", "0", "Markov moves after importance sampling"],
    ]
    found = Diagnostics(
        engine="native",
        route="by hand",
        good=False,
        k_hat=0.8,
        effective_draws=123.0,
        dependence=(1.5, 2.25),
        problems=("too <few> draws",),
    )
    markup = sections.diagnostics(replace(told, _posterior=replace(told.posterior, diagnostics=found)))
    assert "The draws are NOT good enough to decide on." in markup
    assert '<p class="warning">too &lt;few&gt; draws</p>' in markup
    assert [row[:2] for row in cells_of(markup)[1:]] == [
        ["k hat", "0.8"],
        ["effective draws", "123"],
        ["moves", "0"],
        ["dependence", "1.50 to 2.25"],
    ]


def test_runs_that_failed_are_listed_with_their_reasons(told: RaceResult, monkeypatch: pytest.MonkeyPatch) -> None:
    def failures() -> str:
        return sections.diagnostics(told).partition("<h3>Runs that failed</h3>")[2]

    assert "They count as having found nothing: 2 of them." in failures()
    assert cells_of(failures()) == [
        ["algorithm", "instance", "reason"],
        ["c", "f2", "it broke"],
        ["c", "f3", "too slow"],
    ]
    assert "more" not in failures()
    monkeypatch.setattr(sections, "_MOST_ROWS", 1)
    assert cells_of(failures())[1:] == [["c", "f2", "it broke"]]
    assert failures().endswith("<p>And 1 more.</p>")
    assert "Runs that failed" not in sections.diagnostics(replace(told, failures=()))


def test_parameters_of_candidates_stand_below_the_algorithms(told: RaceResult) -> None:
    about = {"candidates": {"a": {"lr": 0.1, "depth": 3}, "d": {}}}
    below = sections.algorithms(replace(told, about=about), told.posterior, {}).partition("<h3>Parameters</h3>")[2]
    assert cells_of(below) == [
        ["candidate", "parameters"],
        ["d", ""],
        ["a", "lr = 0.1, depth = 3"],
        ["c", ""],
        ["b", ""],
        ["e", ""],
    ]


def test_how_it_was_made_is_told_in_full(told: RaceResult) -> None:
    def pairs(**about: Any) -> dict[str, str]:
        found = re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", sections.repeat(replace(told, about=about)))
        return dict(found)

    here = installed_versions("native")
    words = pairs(version="0.0.1")
    assert words["timepoints"] == "3 from 10 to 2,000"
    assert words["instances"] == "6 in 6 rows"
    assert words["repetitions"] == "weight"
    assert words["alpha"] == "0.9"
    assert words["max rounds"] == "3"
    assert "max cost" not in words  # no limit was set
    assert words["run with polarbear-plugins"] == "0.0.1"
    assert "numpy" in words["this page was written with"]
    assert pairs()["run with polarbear-plugins"] == "not recorded"
    words = pairs(versions=dict(here), resumed_with={"numpy": "1.0"})
    assert "numpy" in words["run with"]
    assert words["resumed with"] == "numpy 1.0"
    assert "this page was written with" not in words
    assert "numpy 0.1" in pairs(versions={"numpy": "0.1"})["run with"]


def test_options_of_a_setting_are_told_if_there_are_any(told: RaceResult) -> None:
    settings = replace(told.settings, prior="bspline", prior_options={"df": 5})
    words = sections.repeat(replace(told, state=replace(told.state, settings=settings)))
    assert "<dt>prior options</dt><dd>df=5</dd>" in words
    assert "prior options" not in sections.repeat(told)


def test_the_rule_says_what_p_is_and_what_guards_it(told: RaceResult) -> None:
    def rule(**settings: Any) -> str:
        state = replace(told.state, settings=replace(told.settings, **settings))
        return text_of(sections.algorithms(replace(told, state=state), told.posterior, {}))

    assert "with a posterior probability of at least 0.9, at each timepoint taken by itself. P is that" in rule()
    assert "at all timepoints at once. P is that" in rule(elimination="joint", prior="bspline")
    assert "Direct counts of wins and of first places must support it." in rule(guard="counts")
    assert "Direct counts" not in rule(guard="none")
    says = "is wrong, ever, is at most 0.1, whatever the model. P is the posterior probability of the higher rating, "
    assert f"{says}the lowest over the timepoints." in rule(rule="anytime-valid")
    assert f"{says}at all timepoints at once." in rule(rule="anytime-valid", elimination="joint", prior="bspline")


# The conclusion


def test_the_conclusion_counts_names_and_prices(told: RaceResult) -> None:
    says = conclusion(told)
    assert says.startswith("2 of 5 algorithms may be right for some budget: a, b. ")
    assert "1 pair is not settled (a and b), stopped after as many rounds as allowed." in says
    # 4500 of 6 instances x 5 algorithms x 2000.
    assert "3 rounds, 6 instances, 8% of the cost of running everything on as many." in says
    assert "at least one of the 3 eliminations is wrong" in says


@pytest.mark.parametrize(
    ("stopped", "why"),
    [
        ("max_rounds", ", stopped after as many rounds as allowed."),
        ("max_cost", ", stopped because the next instance would cost more than allowed."),
        ("instances", ", stopped because the suite has no more instances."),
        ("inference", ", stopped because no posterior is good enough to decide on."),
        ("interrupted", ", interrupted."),
        ("analyzed", "."),
        ("resolved", "."),
        ("a word of its own", "."),
    ],
)
def test_the_end_is_told_in_words(told: RaceResult, stopped: str, why: str) -> None:
    says = conclusion(replace(told, stopped=stopped))
    assert f"not settled (a and b){why} " in says
    assert ("of the cost of running everything" in says) == (stopped != "analyzed")


def test_only_three_of_many_open_pairs_are_named(told: RaceResult) -> None:
    def says(pairs: list[tuple[int, int]]) -> str:
        resolved = np.ones((3, 5, 5), dtype=bool)
        for i, j in pairs:
            resolved[0, i, j] = resolved[0, j, i] = False
        return conclusion(replace(told, state=replace(told.state, resolved=resolved)))

    assert "3 pairs are not settled (a and c; a and b; c and b)," in says([(1, 2), (1, 3), (2, 3)])
    assert "4 pairs are not settled (d and a; a and c; a and b ...)," in says([(0, 1), (1, 2), (1, 3), (2, 3)])


def test_an_algorithm_without_a_value_is_not_right_for_any_budget(told: RaceResult) -> None:
    values = told.state.table.values.copy()
    values[:, :, 3] = np.inf
    table = table_of(values, algorithms=told.algorithms, timepoints=told.timepoints)
    result = replace(told, state=replace(told.state, table=table))
    assert conclusion(result).startswith("1 of 5 algorithms is right for some budget: a. No run of b found a value. ")


def test_a_notebook_has_in_and_out_in_the_order_of_entry(told: RaceResult) -> None:
    header, *rows = cells_of(result_table(told))
    assert header == ["algorithm", "status", "because"]
    assert [row[:2] for row in rows] == [["d", "out"], ["a", "in"], ["c", "out"], ["b", "in"], ["e", "out"]]
    assert [rows[1][2], rows[3][2]] == ["most likely best at 10", "most likely best at 100 to 2,000"]
