from __future__ import annotations

import itertools

import numpy as np
import pytest

from polarbear_plugins import RaceSettings
from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.racing.asynchronous import AsynchronousRace, Standing

INSTANCES = [f"f{k}" for k in range(40)]
SETTINGS = RaceSettings(seed=1, batch_size=4, batch_min=4, draws=500, epsilon=0.2, alpha=0.95)
CellDict = dict[tuple[str, str], list[FloatArray]]


def value(name: str, instance: str) -> FloatArray:
    """What a run finds: candidates with later letters are worse, and all depend on luck."""
    seed = np.random.default_rng([ord(name[0]), *instance.encode()])
    return np.array([ord(name[0]) + 2 * seed.normal()])


def drive(race: AsynchronousRace, entrants: dict[int, list[str]], order: int = 0) -> tuple[Standing, CellDict]:
    """Do whatever the race asks for, one run at a time, in an order of its own."""
    cells: CellDict = {}
    rng = np.random.default_rng(order)
    for _ in range(1000):
        progress = race.standing(cells, INSTANCES, entrants)
        if not progress.orders:
            return progress, cells
        chosen = progress.orders[rng.integers(len(progress.orders))]
        cell = chosen.algorithm, INSTANCES[chosen.instance]
        assert cell not in cells, "asked for again"
        cells[cell] = [value(*cell)]
    raise AssertionError("no end")


def test_the_race_ends_with_the_best_and_does_not_depend_on_the_order_of_the_runs() -> None:
    ends = [drive(AsynchronousRace(SETTINGS, [1.0]), {1: ["a", "e", "c"]}, order) for order in (0, 1)]
    for progress, _ in ends:
        assert progress.over == "resolved"
        assert progress.state is not None
        assert progress.state.pareto_set == ("a",)
    assert ends[0][1].keys() == ends[1][1].keys()
    one, other = (progress.state.eliminations for progress, _ in ends if progress.state is not None)
    assert one == other


def test_somebody_who_knows_nothing_but_the_runs_comes_to_the_same_state() -> None:
    progress, cells = drive(AsynchronousRace(SETTINGS, [1.0]), {1: ["a", "e", "c"]})
    again = AsynchronousRace(SETTINGS, [1.0]).standing(cells, INSTANCES, {1: ["a", "e", "c"]})
    assert again.over == progress.over
    assert again.state is not None
    assert progress.state is not None
    assert again.state.rounds == progress.state.rounds


def test_runs_that_were_not_asked_for_wait_until_they_are() -> None:
    cells = {("a", "f9"): [np.array([0.0])]}
    orders = AsynchronousRace(SETTINGS, [1.0]).standing(cells, INSTANCES, {1: ["a", "b"]}).orders
    assert len(orders) == 8
    cells = {(name, f"f{k}"): [value(name, f"f{k}")] for name in "ab" for k in range(3)} | {("a", "f3"): [np.zeros(1)]}
    [order] = AsynchronousRace(SETTINGS, [1.0]).standing(cells, INSTANCES, {1: ["a", "b"]}).orders
    assert (order.algorithm, order.instance) == ("b", 3)


def test_who_is_ahead_takes_what_later_rounds_will_ask_for() -> None:
    progress = AsynchronousRace(SETTINGS, [1.0]).standing({}, INSTANCES, {1: ["a", "b"]})
    assert list(itertools.islice(progress.ahead(40), 3)) == [("a", 0), ("b", 0), ("a", 1)]


def test_a_race_with_room_asks_for_newcomers_and_never_ends_by_itself() -> None:
    race = AsynchronousRace(SETTINGS, [1.0], room=3)
    assert race.standing({}, INSTANCES, {}).newcomers == 3
    assert race.standing({}, INSTANCES, {1: ["c"]}).newcomers == 2
    entrants = {1: ["c", "d", "e"]}
    progress, cells = drive(race, entrants)
    assert progress.over is None
    assert progress.newcomers >= 1
    entrants[progress.round] = ["a"]
    waiting = race.standing(cells, INSTANCES, entrants)
    assert {order.algorithm for order in waiting.orders} == {"a"}, "the newcomer catches up first"
    assert min(order.instance for order in waiting.orders) == 0


def test_limits_end_a_race_with_room_as_well() -> None:
    settings = RaceSettings(seed=1, batch_size=4, batch_min=4, draws=500, max_cost=12)
    progress, cells = drive(AsynchronousRace(settings, [1.0], room=3), {1: ["c", "d", "e"]})
    assert progress.over == "max_cost"
    assert len(cells) == 12


def test_the_race_ends_when_the_instances_are_used_up() -> None:
    cells = {(name, f"f{k}"): [np.array([float(k)])] for name in "ab" for k in range(5)}
    race = AsynchronousRace(SETTINGS, [1.0])
    assert race.standing(cells, INSTANCES[:5], {1: ["a", "b"]}).over == "instances"


def test_settings_need_a_seed() -> None:
    with pytest.raises(InvalidInputError, match="seed"):
        AsynchronousRace(RaceSettings(), [1.0])
