from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.plugins.random_search import RandomSearch
from polarbear_plugins.problems.protocols import ChargedProblem, Identity, ObjectivesProblem
from polarbear_plugins.problems.spaces import Configuration, ConfigurationSpace, Float
from polarbear_plugins.trajectories.hypervolume import undominated_volume
from polarbear_plugins.trajectories.recording import Charges

SPACE = ConfigurationSpace({"x": Float(0, 1), "y": Float(0, 1)})


class Costly:
    identity = Identity("costly")
    space = SPACE
    least_fidelity = 0.1

    def evaluate(self, configuration: Configuration, /) -> float:
        return float(configuration["x"])

    def measure(self, configuration: Configuration, fidelity: float = 1.0, /) -> tuple[float, float]:
        return float(configuration["x"]), fidelity * (1 + float(configuration["y"]))


class Two:
    identity = Identity("two")
    space = SPACE
    objectives = ("x", "y")

    def measure_objectives(self, configuration: Configuration, /) -> tuple[tuple[float, ...], float]:
        return (float(configuration["x"]), float(configuration["y"])), 1.0


@given(st.lists(st.floats(0.01, 3), min_size=1, max_size=30), st.floats(0.1, 20))
def test_a_run_never_spends_more_than_its_horizon(costs: list[float], horizon: float) -> None:
    charges = Charges(horizon)
    paid = [cost for place, cost in enumerate(costs) if charges.pay(cost, -float(place))]
    assert charges.spent == pytest.approx(sum(paid))
    assert charges.spent <= horizon * (1 + 1e-9)
    run = charges.trajectory(algorithm="a", instance="f", seed=3)
    assert run.horizon == horizon
    assert run.times.size == len(paid)
    assert all(one < other for one, other in pairwise([*run.times, math.inf]))


@pytest.mark.parametrize("budget", [77, 110, 126, 170, 267])
def test_percents_of_a_budget_add_up_to_all_of_it(budget: int) -> None:
    charges = Charges(100)
    paid = 0
    while charges.room() and charges.pay(100 / budget, 1.0):
        paid += 1
    assert paid == budget


def test_what_is_not_finished_in_time_does_not_count() -> None:
    charges = Charges(2)
    assert charges.pay(1.5, 5.0)
    assert not charges.pay(1.0, 1.0)
    assert charges.room()
    assert not charges.room(1.0)
    assert charges.trajectory(algorithm="a", instance="f", seed=0).best.tolist() == [5.0]


@pytest.mark.parametrize("cost", [0.0, -1.0, math.nan, math.inf])
def test_a_cost_must_be_positive(cost: float) -> None:
    with pytest.raises(InvalidInputError, match="cost"):
        Charges(5).pay(cost)


def test_a_negative_horizon_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="horizon"):
        Charges(-1)


def test_random_search_pays_what_evaluations_cost() -> None:
    assert isinstance(Costly(), ChargedProblem)
    run = RandomSearch().run(Costly(), 30, 1)
    rng = np.random.default_rng(1)
    spent, times, best = 0.0, [], []
    while True:
        drawn = SPACE.sample(rng)
        spent += 1 + float(drawn["y"])
        if spent > 30:
            break
        if not best or drawn["x"] < best[-1]:
            times.append(spent)
            best.append(drawn["x"])
    np.testing.assert_allclose(run.times, times)
    np.testing.assert_allclose(run.best, best)


def test_random_search_covers_the_volume_of_several_objectives() -> None:
    pytest.importorskip("moocore")
    assert isinstance(Two(), ObjectivesProblem)
    run = RandomSearch().run(Two(), 50.5, 1)
    rng = np.random.default_rng(1)
    drawn = [SPACE.sample(rng) for _ in range(50)]
    grid = (np.arange(400) + 0.5) / 400
    covered = np.zeros((400, 400), dtype=bool)
    for point in drawn:
        covered |= (grid[:, None] >= point["x"]) & (grid[None, :] >= point["y"])
    assert run.best[-1] == pytest.approx(1 - covered.mean(), abs=0.005)
    assert run.horizon == 50.5


unit = st.floats(0, 1)


@given(st.lists(st.tuples(unit, unit), min_size=1, max_size=8))
def test_the_volume_of_two_objectives_is_that_of_a_staircase(points: list[tuple[float, float]]) -> None:
    pytest.importorskip("moocore")
    found = undominated_volume(points)
    for count in range(1, len(points) + 1):
        volume, height = 0.0, 1.0
        for x, y in sorted(points[:count]):
            volume += (1 - x) * max(0.0, height - y)
            height = min(height, y)
        assert found[count - 1] == pytest.approx(1 - volume, abs=1e-9)


def test_values_beyond_the_bounds_count_as_the_bounds_and_failures_change_nothing() -> None:
    pytest.importorskip("moocore")
    found = undominated_volume([[2.0, 0.5], [math.nan, 0.0], [-3.0, 0.5], [0.0, -1.0]])
    np.testing.assert_allclose(found, [1, 1, 0.5, 0])


def test_one_objective_has_no_hypervolume() -> None:
    with pytest.raises(InvalidInputError, match="two or more"):
        undominated_volume([[1.0], [2.0]])
