"""Tables of what the figures of a report show: the same numbers, and a dash where nothing was observed."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from builders import cells_of, posterior_of

from polarbear_plugins import RaceResult
from polarbear_plugins.display.html import Markup
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.posterior.model_check import ModelCheck
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.report import figure_tables, render


def half_and_half() -> Posterior:
    """a has the rating 0.75 in half of 400 draws and 0.25 in the others; c was not observed at the last timepoint."""
    ratings = np.full((400, 2, 3), 0.0)
    ratings[:200], ratings[200:] = [0.7, 0.2, 0.1], [0.2, 0.7, 0.1]
    ratings[:, 1] = [0.6, 0.2, 0.2]
    observed = np.array([[True, True, True], [True, True, False]])
    made = posterior_of(ratings, algorithms=("a", "b", "c"), timepoints=[10.0, 2000.0])
    return replace(made, observed=observed)


def test_a_figure_has_its_table_inside_and_nothing_has_none() -> None:
    found = figure_tables.with_table(Markup("<figure>x</figure>\n"), Markup("<table></table>"), "a < b")
    assert found == (
        "<figure>x<details><summary>Table: a &lt; b</summary>"
        '<div class="wide" tabindex="0" role="region" aria-label="a &lt; b"><table></table></div></details></figure>\n'
    )
    assert figure_tables.with_table(Markup(""), Markup("<table></table>"), "says") == ""


def test_ratings_have_their_interval_and_a_dash_without_observations() -> None:
    table, says = figure_tables.ratings_table(half_and_half())
    assert says == "mean ratings and 90 % intervals at some timepoints"
    assert cells_of(table) == [
        ["algorithm", "at 10", "at 2,000"],
        ["a", "0.45 (0.20 to 0.70)", "0.60 (0.60 to 0.60)"],
        ["b", "0.45 (0.20 to 0.70)", "0.20 (0.20 to 0.20)"],
        ["c", "0.10 (0.10 to 0.10)", "-"],
    ]


def test_p_best_is_of_those_left_and_no_surer_than_the_draws() -> None:
    table, says = figure_tables.timeline_table(half_and_half(), ("a", "c"))
    assert says == "P(best) at some timepoints"
    assert cells_of(table) == [["algorithm", "at 10", "at 2,000"], ["a", "> 0.992", "> 0.992"], ["c", "< 0.008", "-"]]


def test_wins_are_those_of_the_row_over_the_column() -> None:
    table, says = figure_tables.wins_table(half_and_half())
    assert says == "who beats whom at the last timepoint"
    assert cells_of(table) == [
        ["winner", "a", "b", "c"],
        ["a", "-", "0.75", "-"],
        ["b", "0.25", "-", "-"],
        ["c", "-", "-", "-"],
    ]


def test_nobody_wins_always() -> None:
    ratings = np.tile([0.9995, 0.0005], (10, 1, 1))
    table, _ = figure_tables.wins_table(posterior_of(ratings, algorithms=("a", "b"), timepoints=[1.0]))
    assert cells_of(table)[1:] == [["a", "-", "> 0.99"], ["b", "< 0.01", "-"]]


def test_dominance_names_the_rival_of_each_round_until_the_elimination(told: RaceResult) -> None:
    table, says = figure_tables.dominance_table(told)
    assert says == "P(dominated) and by whom, round by round"
    header, *rows = cells_of(table)
    assert header == ["round", *told.algorithms]
    for row, done in zip(rows, told.rounds, strict=True):
        assert row[0] == str(done.number)
        for name, cell in zip(told.algorithms, row[1:], strict=True):
            gone = [out.round for out in told.eliminations if out.algorithm == name]
            if name in done.rivals and not any(done.number > number for number in gone):
                assert cell.endswith(f" by {done.rivals[name][0]}")
            else:
                assert cell == "-"
    assert any("-" in row for row in rows)


def test_the_round_of_an_elimination_still_has_its_probability(told: RaceResult) -> None:
    [out, *_] = told.eliminations
    rounds = tuple(replace(done, rivals={**done.rivals, out.algorithm: (out.by, 0.5)}) for done in told.rounds)
    table, _ = figure_tables.dominance_table(replace(told, state=replace(told.state, rounds=rounds)))
    cells = [row[1 + told.algorithms.index(out.algorithm)] for row in cells_of(table)[1:]]
    assert [cell.endswith(f" by {out.by}") for cell in cells] == [done.number <= out.round for done in told.rounds]


def test_allocation_counts_instances(told: RaceResult) -> None:
    table, says = figure_tables.allocation_table(told)
    assert says == "instances at some timepoints"
    header, *rows = cells_of(table)
    assert header == ["algorithm", "at 10", "at 100", "at 2,000"]
    seen = {name: told.summary()["instances"][name] for name in told.algorithms}
    assert {row[0]: int(row[1]) for row in rows} == seen


def test_first_places_are_those_observed_and_those_of_the_model() -> None:
    check = ModelCheck(
        algorithms=("a", "b"),
        timepoints=np.array([1.0, 10.0]),
        p=0.5,
        p_first=np.array([0.5, 0.5]),
        p_pairs=np.array([0.5, 0.5]),
        observed=np.array([[0.25, 0.75], [1.0, 0.0]]),
        modelled=np.array([[0.375, 0.625], [0.9, 0.1]]),
        first_gap=None,
        pair_gap=None,
    )
    table, says = figure_tables.model_check_table(check)
    assert says == "first places, observed / by the model, at some timepoints"
    assert cells_of(table)[1:] == [["a", "0.25 / 0.38", "1.00 / 0.90"], ["b", "0.75 / 0.62", "0.00 / 0.10"]]


@pytest.mark.slow
def test_every_figure_of_a_page_has_a_text_and_a_table(told: RaceResult) -> None:
    pytest.importorskip("matplotlib")
    page = render(told, plugins=Plugins())
    figures = re.findall(r"<figure.*?</figure>", page, re.S)
    assert len(figures) > 5
    for figure in figures:
        assert re.search(r'<svg [^>]*role="img" aria-label="[^"]{20,}"', figure)
        assert "<figcaption>" in figure
        # The values of a preference are the table of "Choose" above them.
        assert ("<table>" in figure) != ("data-preference" in figure)
