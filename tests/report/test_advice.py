"""Advice: only what the data support."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from builders import posterior_of, run_of, table_of

from polarbear_plugins import RaceSettings, analyze, fit, rank, select
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.rankings.comparable import instances_seen
from polarbear_plugins.report.advice import advice_from
from polarbear_plugins.report.computed import compute
from polarbear_plugins.report.observations import assumptions, never_found_anything, pooled_text
from polarbear_plugins.report.page import render
from polarbear_plugins.report.words import conclusion, reasons
from polarbear_plugins.selection.choice import ratings_among
from polarbear_plugins.selection.stretches import Stretch, stretches
from polarbear_plugins.selection.support import about_best

GRID = np.array([1.0, 10.0, 100.0, 1000.0])


def said(result: RaceResult) -> str:
    return conclusion(result, "", *compute(result))


def equal_algorithms(instances: int, seed: int = 1) -> RaceResult:
    values = np.random.default_rng(seed).normal(size=(instances, 3, 3))
    return analyze(table_of(values), RaceSettings(seed=seed))


@pytest.mark.parametrize("instances", [1, 4, 30])
def test_nothing_is_advised_where_algorithms_are_equal(instances: int) -> None:
    text = said(equal_algorithms(instances))
    assert "Choose" not in text
    assert "No choice is supported for any budget: " in text
    assert "would likely settle" in text  # and what would


def test_an_algorithm_that_is_mostly_first_is_advised() -> None:
    values = np.tile([[[1.0, 2.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [1.0, 2.0]]], (20, 1, 1))
    result = analyze(table_of(values), RaceSettings(seed=1))
    assert [stretch.supported for stretch in stretches(result.posterior, ("a", "b"))] == [True]
    assert result.pareto_set == ("a",)


def test_neighbouring_stretches_without_support_are_one() -> None:
    found = [Stretch(0, 0, "a", 0.5, ("b",)), Stretch(1, 1, "b", 0.6, ("c", "a")), Stretch(2, 3, "c")]
    assert advice_from(found, GRID, "s") == (
        "Up to 10 s, no choice is supported: a, b or c may be best; choose c beyond."
    )
    found = [Stretch(0, 0, "a"), Stretch(1, 2, "b", 0.94, ("a",)), Stretch(3, 3, "c")]
    assert advice_from(found, GRID) == (
        "Choose a up to 1; up to 100, no choice is supported: b or a may be best; choose c beyond."
    )
    assert Stretch(0, 0, "a", 0.95).supported


def test_support_is_the_probability_that_nothing_is_noticeably_better() -> None:
    # In the third draw, a is too far behind; c is never the best.
    draws = [[[0.5, 0.4, 0.1]], [[0.44, 0.5, 0.06]], [[0.4, 0.55, 0.05]], [[0.9, 0.05, 0.05]]]
    [stretch] = stretches(posterior_of(draws), ("a", "b", "c"))
    assert (stretch.algorithm, stretch.support, stretch.rivals) == ("a", 0.75, ("b",))
    assert about_best(np.array([-2.0, -1.0]), 1)
    assert not about_best(np.array([-2.0, -1.0]), 0)


def test_a_choice_says_whether_it_is_supported() -> None:
    draws = [[[0.55, 0.4, 0.05]], [[0.44, 0.55, 0.01]], [[0.9, 0.05, 0.05]], [[0.9, 0.05, 0.05]]]
    choice = select(posterior_of(draws))
    assert (choice.algorithm, choice.support, choice.supported, choice.rivals) == ("a", 0.75, False, ("b",))
    sure = select(posterior_of([draws[0], draws[2], draws[3]]))
    assert (sure.supported, sure.rivals) == (True, ())
    assert "not supported: b may be better" in repr(choice)
    assert "supported" not in repr(sure)


# Timepoints without observations


def test_nothing_is_advised_where_no_candidate_was_ever_observed() -> None:
    sure = replace(posterior_of([[[0.9, 0.1]] * 4] * 3), observed=np.array([[True, True]] * 2 + [[False, False]] * 2))
    assert stretches(sure, ("a", "b")) == [Stretch(0, 1, "a"), Stretch(2, 3, "a", 0.0, ("b",))]
    text = advice_from(stretches(sure, ("a", "b")), GRID)
    assert text == "Choose a up to 10; beyond, no choice is supported: a or b may be best."


@functools.cache
def ended_early(ended: str = "cut", lead: float = 5) -> RaceResult:
    """``short`` is best up to 10 (worst if its lead is negative) and not observed later."""
    noise = np.random.default_rng(1).normal(size=(60, 8))
    runs = [run_of("short", f"f{k}", best=noise[k, 0] - lead, horizon=10) for k in range(60)]
    means = [-2, 0, 0, 0, 1, 1, 1]
    runs += [
        run_of(name, f"f{k}", best=means[i] + noise[k, i + 1]) for k in range(60) for i, name in enumerate("abcdefg")
    ]
    return analyze(rank(runs, [1, 10, 100], ended=ended), RaceSettings(seed=1, alpha=0.95, guard="none"))


def test_a_rating_without_observations_is_a_gap() -> None:
    result = ended_early()
    place = result.algorithms.index("short")
    assert result.posterior.observed[:, place].tolist() == [True, True, False]
    assert np.isnan(result.posterior.mean_ratings[2, place])
    assert result.to_dict()["ratings"][2][place] is None
    assert result.to_dict()["instances_seen"][2][place] == 0
    assert np.isnan(result.posterior.summary().loc[(100.0, "short"), "mean"])
    assert instances_seen(result.state.table)[1, place] == 60


def test_what_was_never_observed_is_neither_eliminated_nor_eliminates() -> None:
    result = ended_early()
    # By the prior alone, the best of the seven others would dominate the eighth there.
    place = result.algorithms.index("short"), result.algorithms.index("a")
    assert result.relations.p_better[2, place[1], place[0]] > 0.95
    assert "short" in result.pareto_set
    assert not any(out.by == "short" for out in result.eliminations)
    assert ("a", "short", (100.0,)) in result.open_pairs


def test_the_prior_alone_would_eliminate_nothing() -> None:
    result = ended_early(lead=-5)
    place = result.algorithms.index("short")
    assert (result.relations.p_better[:, result.algorithms.index("a"), place] > 0.95).all()
    assert "short" in result.pareto_set
    assert all(kept.algorithm != "short" for kept in result.rounds[-1].held)


def test_what_was_never_observed_is_not_advised_there() -> None:
    result = ended_early()
    assert (ratings_among(result.posterior, result.pareto_set)[:, 2, result.pareto_set.index("short")] == 0).all()
    assert select(result.posterior, result.pareto_set, preference="final").algorithm == "a"
    assert "Choose short up to 10, a beyond." in said(result)
    assert reasons(result)["short"] == "most likely best at 1 to 10"
    assert assumptions(result) == [
        "short ended before others in 60 runs, at 10, and is left out from there on.",
        "Never observed, so that nothing is decided or advised there: short at 100.",
    ]


def test_nothing_is_forecast_where_something_was_never_observed() -> None:
    assert ended_early().forecast_if_open() is None
    assert "would likely settle" not in said(ended_early())


def test_one_that_keeps_its_last_value_is_observed_everywhere() -> None:
    result = ended_early("hold")
    assert result.posterior.observed.all()
    assert result.pareto_set == ("short",)


def test_a_posterior_keeps_what_was_observed(tmp_path) -> None:
    posterior = ended_early().posterior
    again = Posterior.load(posterior.save(tmp_path / "posterior.npz"))
    np.testing.assert_array_equal(again.observed, posterior.observed)
    full = fit(table_of(np.ones((3, 2, 2))), seed=1)
    assert full.observed.all()
    assert "observed" not in full.arrays()
    with pytest.raises(ValueError, match="observed: expected true or false for each rating"):
        Posterior.from_arrays(posterior.arrays() | {"observed": np.ones((1, 1), dtype=bool)})


def test_where_no_candidate_was_observed_there_is_nothing_to_choose() -> None:
    result = ended_early()
    assert (ratings_among(result.posterior, ["short"])[:, 2] == 0).all()


def test_an_algorithm_whose_every_run_failed_is_not_right_for_any_budget() -> None:
    runs = [run_of(name, f"f{k}", best=value) for k in range(3) for value, name in enumerate("ab", 1)]
    runs += [run_of("failed", f"f{k}", times=[], best=[], horizon=100) for k in range(3)]
    result = analyze(rank(runs, [1, 100]), RaceSettings(seed=1))
    assert never_found_anything(result) == ["failed"]
    assert "failed" in result.pareto_set  # three instances decide nothing
    assert said(result).startswith("2 of 3 algorithms may be right for some budget: a, b. No run of failed found a val")
    assert reasons(result)["failed"] == "found no value in any run"


def test_pooled_dimensions_are_said() -> None:
    values = np.tile([[[1.0, 2.0]]], (3, 1, 1))
    about = {"dimensions": {"0": 2, "1": 2, "2": 5}}
    [text] = pooled_text(analyze(table_of(values), RaceSettings(seed=1), about))
    assert text.startswith(
        "Instances of 2 dimensions are pooled (2 with d = 2, 1 with d = 5): a budget is as many eval"
    )
    [text] = pooled_text(analyze(table_of(values), RaceSettings(seed=1), about | {"per_dimension": True}))
    assert "budgets are multiples of d" in text
    assert pooled_text(analyze(table_of(values), RaceSettings(seed=1), {"dimensions": {"0": 2}})) == []


@pytest.mark.usefixtures("without_figures")
def test_a_report_says_what_was_observed_and_what_was_assumed() -> None:
    page = render(ended_early(), plugins=Plugins())
    assert "What was observed, and what was assumed" in page
    assert "<p>short ended before others in 60 runs, at 10, and is left out from there on.</p>" in page
    assert "On how many of the 60 instances each algorithm was compared" in page
    full = render(equal_algorithms(4), plugins=Plugins())
    assert "what was assumed" not in full
    several = analyze(
        table_of(np.random.default_rng(1).normal(size=(4, 2, 2))),
        RaceSettings(seed=1),
        {"dimensions": {"0": 2, "1": 2, "2": 5, "3": 5}},
    )
    page = render(several, plugins=Plugins())
    assert '<section id="dimensions">' in page
    assert "d = 5" in page
    assert '<section id="dimensions">' not in full
