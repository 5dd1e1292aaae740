from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import ArrayLike

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.plugins import random_search as module
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.plugins.random_search import RandomSearch
from polarbear_plugins.problems.given import GivenProblem
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.problems.spaces import Configuration, ConfigurationSpace, Float
from polarbear_plugins.testing import check_portfolio


@dataclass
class Box:
    """The squared distance from the origin, which remembers where it was evaluated."""

    lower: np.ndarray
    upper: np.ndarray
    identity: Identity = field(default_factory=lambda: Identity("box"))
    points: list[np.ndarray] = field(default_factory=list)

    def evaluate(self, x: ArrayLike, /) -> float:
        self.points.append(np.array(x))
        return float(np.sum(np.square(x)))


class Space:
    identity = Identity("space")
    space = ConfigurationSpace({"rate": Float(1e-4, 1.0, log=True)})

    def evaluate(self, configuration: Configuration, /) -> float:
        return float(configuration["rate"])


def box() -> Box:
    return Box(np.array([-5.0, 0.0, 100.0]), np.array([5.0, 1.0, 101.0]))


def plugins() -> Plugins:
    made = Plugins()
    made.register(module, "random-search")
    return made


@pytest.mark.parametrize("problem", [box(), Space()])
def test_the_plugin_keeps_the_contract(problem: Box | Space) -> None:
    [algorithm] = check_portfolio(module, "random-search", problem, 50)
    assert algorithm.name == "RS"


def test_points_are_uniform_in_the_box_and_exactly_as_many_as_asked_for() -> None:
    problem = box()
    run = RandomSearch().run(problem, 5000.7, 1)
    points = np.array(problem.points)
    assert points.shape == (5000, 3)
    assert (points >= problem.lower).all()
    assert (points <= problem.upper).all()
    share = (points - problem.lower) / (problem.upper - problem.lower)
    assert np.abs(np.quantile(share, [0.1, 0.5, 0.9], axis=0).T - [0.1, 0.5, 0.9]).max() < 0.03
    assert run.best[-1] == min(np.square(points).sum(axis=1))


def test_a_longer_run_begins_with_the_shorter_one_and_another_seed_differs() -> None:
    short, long, other = (
        RandomSearch().run(box(), 10, 1),
        RandomSearch().run(box(), 3000, 1),
        RandomSearch().run(box(), 10, 2),
    )
    assert np.array_equal(short.best, long.best[: short.best.size])
    assert not np.array_equal(short.best, other.best)


def test_time_can_be_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()  # an evaluation takes a second by it
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(clock)))
    [algorithm] = plugins().portfolio("random-search", axis="seconds", name="chance")
    problem = box()
    run = algorithm.run(problem, 20, 1)
    assert (run.algorithm, run.horizon) == ("chance", 20)
    assert 0 < run.times[-1] <= 20
    assert 20 <= len(problem.points) <= 21


def test_a_horizon_before_the_first_evaluation_evaluates_nothing() -> None:
    problem = box()
    assert RandomSearch().run(problem, 0.5, 1).times.size == 0
    assert not problem.points


def test_a_problem_that_is_neither_box_nor_space_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"'RS' cannot run on 'seven': .* the problem is neither"):
        RandomSearch().run(GivenProblem(Identity("seven"), 7), 5, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"colour": "red"}, "no option 'colour'. It takes axis, name"),
        ({"axis": "weeks"}, 'axis: expected "evaluations" or "seconds", got \'weeks\''),
        ({"name": " "}, "the name is empty"),
    ],
)
def test_options_without_meaning_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        plugins().portfolio("random-search", **options)
