"""Recording the objectives that are evaluated on a problem."""

from __future__ import annotations

import numpy as np
import pytest

from polarbear_plugins import read_trajectories
from polarbear_plugins.plugins.random_search import RandomSearch
from polarbear_plugins.problems import ConfigurationSpace, Float, Identity, ObjectivesProblem, RecordedObjectives
from polarbear_plugins.problems.spaces import Configuration

pytest.importorskip("moocore")


class Tradeoff:
    """Two objectives, of which one falls where the other rises; an evaluation costs 0.4."""

    identity = Identity("tradeoff", group="g")
    space = ConfigurationSpace({"x": Float(0.0, 1.0)})
    objectives = ("left", "right")

    def measure_objectives(self, configuration: Configuration, /) -> tuple[tuple[float, ...], float]:
        x = float(configuration["x"])
        return (x, 1 - x), 0.4


def test_a_recorded_problem_is_the_problem_and_keeps_what_ended_by_the_horizon() -> None:
    recorded = RecordedObjectives(Tradeoff())
    assert isinstance(recorded, ObjectivesProblem)
    run = RandomSearch("RS").run(recorded, 2, 7)
    assert run == RandomSearch("RS").run(Tradeoff(), 2, 7)
    table = recorded.table(algorithm="RS", seed=7, horizon=2)
    assert list(table) == ["algorithm", "instance", "group", "seed", "time", "left", "right", "horizon"]
    np.testing.assert_allclose(table["time"], [0.4, 0.8, 1.2, 1.6, 2.0])
    np.testing.assert_allclose(table["left"] + table["right"], 1)
    assert len(recorded.table(algorithm="RS", seed=7, horizon=1)) == 2
    [again] = read_trajectories(table, objectives="left,right")
    assert (again.algorithm, again.instance, again.group, again.seed, again.horizon) == ("RS", "tradeoff", "g", 7, 2.0)
    assert again.best[-1] == 0  # the only run has the whole front


def test_a_problem_on_which_nothing_was_evaluated_has_an_empty_table() -> None:
    assert RecordedObjectives(Tradeoff()).table(algorithm="RS", seed=0, horizon=1).empty


def test_an_objective_called_time_is_not_taken_for_the_time() -> None:
    class Timed(Tradeoff):
        objectives = ("acc", "time")

    recorded = RecordedObjectives(Timed())
    RandomSearch("RS").run(recorded, 2, 7)
    table = recorded.table(algorithm="RS", seed=7, horizon=2)
    assert recorded.columns == ("acc", "time_objective")
    np.testing.assert_allclose(table["time"], [0.4, 0.8, 1.2, 1.6, 2.0])
    np.testing.assert_allclose(table["acc"] + table["time_objective"], 1)
