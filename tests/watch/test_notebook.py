"""A race in a notebook."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from builders import cells_of, race_by_hand, synthetic_race

from polarbear_plugins import RaceSettings, load_plugins, race
from polarbear_plugins.errors import MissingExtraError
from polarbear_plugins.experiments import Progress
from polarbear_plugins.watch import NotebookView
from polarbear_plugins.watch.notebook import view_of


class Shown:
    """What a notebook shows, and how it came to be."""

    def __init__(self) -> None:
        self.displayed: list[str] = []
        self.updated: list[str] = []

    def display(self, what: str, *, display_id: bool) -> Shown:
        assert display_id is True
        self.displayed.append(what)
        return self

    def update(self, what: str) -> None:
        self.updated.append(what)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """A notebook, which need not be installed."""
    notebook, module = Shown(), ModuleType("IPython.display")
    module.HTML = str  # type: ignore[attr-defined]
    module.display = notebook.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return notebook


def test_one_view_is_shown_and_then_updated_with_the_ratings_of_each_round(shown: Shown) -> None:
    result = synthetic_race(max_rounds=3, progress=NotebookView())
    assert len(shown.displayed) == 1
    assert "No round has finished yet." in shown.displayed[0]
    assert len(shown.updated) >= 3
    head, *rows = cells_of(shown.updated[-1])
    assert head[:3] == ["algorithm", "status", "because"]
    assert head[3:] == ["at 1", "at 4", "at 7", "at 10"]
    assert [row[0] for row in rows] == list(result.algorithms)
    assert [row[1] == "in" for row in rows] == [name in result.pareto_set for name in result.algorithms]
    assert rows[0][3] == f"{result.posterior.mean_ratings[0, 0]:.0%}"


def test_as_a_plugin_it_is_told_of_rounds_and_knows_no_ratings(shown: Shown) -> None:
    plugins = load_plugins()
    plugins.register(NotebookView(), "notebook")
    settings = RaceSettings(seed=3, max_rounds=2, draws=200)
    race("synthetic", "synthetic", [1, 2], settings, workers=0, plugins=plugins)
    assert (len(shown.displayed), len(shown.updated)) == (1, 1)
    assert cells_of(shown.updated[0])[0] == ["algorithm", "status", "because"]


def test_inside_a_round_it_is_updated_at_most_once_a_second(shown: Shown) -> None:
    view, state = NotebookView(), race_by_hand().state
    for done in range(50):
        view(Progress(state, None, done=done, planned=50, failed=0))
    assert len(shown.displayed) + len(shown.updated) == 1
    view(Progress(state, None, done=0, planned=0, failed=0, result=race_by_hand()))
    assert len(shown.updated) == 1


def test_a_rating_that_was_never_observed_is_a_dash_and_names_are_text() -> None:
    result = race_by_hand()
    view = view_of(result.state, result.posterior, ["<b>"])
    assert "<b>" not in view
    rows = {row[0]: row for row in cells_of(view)[1:]}
    assert rows["d"][1:3] == ["out (round 2)", "a is better at every timepoint, P = 0.930"]
    assert rows["a"][3:] == ["48%", "21%", "10%"]
    assert "whether the model fits is checked at the end" in view


def test_without_ipython_the_error_says_what_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", None)
    monkeypatch.delitem(sys.modules, "IPython.display", raising=False)
    with pytest.raises(MissingExtraError, match="elsewhere use RacePage"):
        NotebookView()


def test_an_unknown_rating_of_an_algorithm_that_is_not_in_the_posterior_is_a_dash() -> None:
    result: Any = race_by_hand()
    posterior = synthetic_race(algorithms=2, timepoints=3, max_rounds=1).posterior
    assert {cell for row in cells_of(view_of(result.state, posterior, []))[1:] for cell in row[3:]} == {"-"}
