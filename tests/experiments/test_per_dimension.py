"""Races whose timepoints are multiples of the dimension."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders import assert_same_result

from polarbear_plugins import RaceSettings, Trajectory, race, resume
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.report.commands import how_to_repeat
from polarbear_plugins.report.observations import pooled_text

SETTINGS = RaceSettings(seed=1, per_dimension=True, max_rounds=2)


class Problem:
    def __init__(self, identity: Identity) -> None:
        self.identity = identity


class Suite:
    """Instances with 3 and 7 dimensions in turn."""

    name = "two dimensions"

    def identities(self, _: int):
        for number in range(40):
            yield Identity(f"i{number}", {"dimension": (3, 7)[number % 2]})

    def build(self, identity: Identity) -> Problem:
        return Problem(identity)


class Counting:
    """Finds 1 / evaluations, or later, and notes how far it was asked to run."""

    def __init__(self, name: str, factor: float) -> None:
        self.name, self.factor = name, factor
        self.asked: set[tuple[int, float]] = set()

    def run(self, problem: Problem, horizon: float, seed: int) -> Trajectory:
        dimension = problem.identity.parameters["dimension"]
        self.asked.add((dimension, horizon))
        evaluations = np.arange(1, int(horizon) + 1)
        return Trajectory.from_evaluations(
            self.factor * dimension / evaluations,
            algorithm=self.name,
            instance=problem.identity.name,
            seed=seed,
            horizon=horizon,
        )


def test_runs_last_as_many_times_their_dimension() -> None:
    algorithms = [Counting("a", 1), Counting("b", 2)]
    result = race(algorithms, Suite(), [1.5, 10, 20], SETTINGS, workers=0)
    assert {(3, 60.0), (7, 140.0)} <= algorithms[0].asked
    # After t times the dimension, a has found 1 / t on all instances alike.
    first = result.state.table.values[:, :, 0]
    np.testing.assert_allclose(first[:, 1:], np.tile([1 / 10, 1 / 20], (len(first), 1)))
    assert (first[::2, 0] == 3 / 4).all()  # 4 whole evaluations of 4.5
    assert result.cost == sum(run.horizon for run in result.trajectories())
    assert "budgets are multiples of d" in pooled_text(result)[0]


def test_such_a_race_is_resumed_from_its_journal(tmp_path: Path) -> None:
    whole = race([Counting("a", 1), Counting("b", 2)], Suite(), [1.5, 10, 20], SETTINGS, workers=0)
    journal = tmp_path / "race.db"
    one = RaceSettings(seed=1, per_dimension=True, max_rounds=1)
    race([Counting("a", 1), Counting("b", 2)], Suite(), [1.5, 10, 20], one, workers=0, journal=journal)
    again = resume(journal, [Counting("a", 1), Counting("b", 2)], Suite(), workers=0, max_rounds=2)
    assert_same_result(again, whole)


def test_an_instance_without_a_dimension_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"'\d' does not say its dimension, so timepoints cannot be multiples"):
        race({"a": lambda *_: None, "b": lambda *_: None}, [1, 2], [1, 2], SETTINGS, workers=0)


def test_the_command_says_that_the_budget_is_in_multiples_of_d() -> None:
    settings = RaceSettings(seed=1, per_dimension=True, max_rounds=1)
    options = {"dimension": 5}
    pytest.importorskip("ioh")
    pytest.importorskip("modcma")
    result = race("modcma-ssa", "bbob", [1, 2, 4], settings, workers=0, suite_options=options)
    _, command = how_to_repeat(result)
    assert "--budget 4d " in command
