"""Tables for papers: what they say is what the result says, and no surer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import two_kinds

from polarbear_plugins import RaceResult, RaceSettings, analyze
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.report import paper_table


def test_the_table_of_algorithms_says_who_is_out_because_of_whom(told: RaceResult) -> None:
    found = paper_table(told)
    rows = {row[0]: row for row in found.rows}
    assert list(rows) == list(told.algorithms)
    assert rows["a"][1:6] == ["in", None, None, None, None]
    assert rows["d"][1:5] == ["out", "a", 0.93, 2]
    assert rows["d"][6:] == [3, told.summary().loc["d", "cost"], 0]
    cells = {cells[0]: cells for cells in found.cells}
    assert cells["a"][1:6] == ["in", "-", "-", "-", "-"]
    assert cells["c"][-1] == "2"  # two of its runs failed
    assert len(found.titles) == len(found.cells[0])
    assert any("runs failed and count as having found nothing" in note for note in found.notes)


def test_no_probability_is_surer_than_the_draws(told: RaceResult) -> None:
    cells = {row[0]: row for row in paper_table(told).cells}
    assert told.posterior.draws == 4
    assert cells["d"][3] == "> 0.250"
    many = replace(told, _posterior=replace(told.posterior, log_ratings=np.repeat(told.posterior.log_ratings, 1000, 0)))
    assert {row[0]: row for row in paper_table(many).cells}["d"][3] == "0.930"


def test_a_rating_that_was_never_observed_is_a_dash(told: RaceResult) -> None:
    observed = np.ones((3, 5), dtype=bool)
    observed[0, told.algorithms.index("a")] = False
    blind = replace(told, _posterior=replace(told.posterior, observed=observed))
    found = paper_table(blind, "ratings")
    row = {cells[0]: cells for cells in found.cells}["a"]
    assert row[1] == "-"
    assert row[2] != "-"
    assert next(values[2:] for values in found.rows if values[0] == "a") == [None] * 3
    pairs = paper_table(blind, "pairs", timepoints=[float(told.timepoints[0])])
    assert all(cells[2:4] == ["-", "-"] for cells in pairs.cells if "a" in cells[:2])
    assert not any("-" in cells[2:4] for cells in pairs.cells if "a" not in cells[:2])
    assert all(values[3:5] == [None, None] for values in pairs.rows if "a" in values[:2])


def test_the_ratings_are_those_of_the_posterior_at_the_timepoints_asked_for(told: RaceResult) -> None:
    last = float(told.timepoints[-1])
    found = paper_table(told, "ratings", timepoints=[last + 1, last], unit="s")
    assert found.titles == ("algorithm", f">at {last:,.5g} s")
    ratings = told.posterior.ratings[:, -1]
    for place, (name, time, mean, low, high) in enumerate(found.rows):
        assert (name, time) == (told.algorithms[place], last)
        assert mean == pytest.approx(ratings[:, place].mean())
        assert [low, high] == pytest.approx(np.quantile(ratings[:, place], [0.05, 0.95]))


def test_the_pairs_say_where_they_are_open(told: RaceResult) -> None:
    found = paper_table(told, "pairs")
    assert len(found.cells) == 10
    ends = {(cells[0], cells[1]): cells[-1] for cells in found.cells}
    open_pairs = {pair[:2] for pair in told.open_pairs}
    assert {pair for pair, text in ends.items() if text != "settled"} == open_pairs
    [(one, other, times)] = told.open_pairs
    assert ends[one, other] == f"{times[0]:,.5g} to {times[-1]:,.5g}"
    better = told.relations.p_better[-1]
    for one, other, _, p_better, _, is_open in found.rows:
        assert p_better == better[told.algorithms.index(one), told.algorithms.index(other)]
        assert not is_open  # at the last timepoint


@pytest.mark.parametrize("what", ["algorithms", "ratings", "pairs"])
def test_what_the_numbers_rest_on_is_in_the_comments(told: RaceResult, what: str) -> None:
    found = paper_table(told, what, unit="evaluations")  # type: ignore[arg-type]
    for kind in ("latex", "markdown"):
        text = " ".join(found.text(kind).split())  # type: ignore[arg-type]
        assert "5 algorithms on 6 instances, at 3 timepoints" in text
        assert "4 posterior draws under the prior dirichlet, which treats timepoints as independent" in text
    assert "posterior draws" not in found.text("csv")
    assert len(found.text("csv").splitlines()) == len(found.rows) + 1


def test_if_the_model_does_not_fit_ratings_follow_from_first_places_and_the_notes_say_so() -> None:
    misfit = analyze(two_kinds(40), RaceSettings(seed=1, draws=200))
    found = paper_table(misfit, "ratings")
    assert "by first places, since the model does not fit" in found.notes[0]
    shown = {row[0]: row[1] for row in found.cells}
    assert {name for name, text in shown.items() if text == "-"} == set(misfit.algorithms) - set(misfit.pareto_set)
    assert "by the model, which does not fit" in " ".join(paper_table(misfit, "pairs").notes)
    for what in ("algorithms", "pairs"):
        assert str(misfit.check).removesuffix(".") in " ".join(paper_table(misfit, what).notes)  # type: ignore[arg-type]


def test_what_does_not_exist_is_refused(told: RaceResult) -> None:
    for options, message in (
        ({"what": "everything"}, 'what: expected "algorithms", "ratings" or "pairs"'),
        ({"timepoints": [1.0]}, "the table of algorithms has none"),
        ({"what": "ratings", "timepoints": []}, "expected at least one"),
        ({"what": "ratings", "timepoints": [1e-9]}, "before the first timepoint"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            paper_table(told, **options)  # type: ignore[arg-type]
    nothing = replace(told, state=replace(told.state, rounds=()))
    with pytest.raises(InvalidInputError, match="before its first round was over"):
        paper_table(nothing)
