from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from builders import posterior_of_logs
from hypothesis import given, settings
from hypothesis import strategies as st

from polarbear_plugins import Posterior, RaceSettings
from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.racing import asynchronous
from polarbear_plugins.racing.asynchronous import AsynchronousRace, Standing
from polarbear_plugins.racing.posteriors import infer
from polarbear_plugins.racing.state import RaceState

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
    assert {order.instance for order in progress.orders} == {0, 1, 2, 3}
    assert list(itertools.islice(progress.ahead(40), 3)) == [("a", 4), ("b", 4), ("a", 5)]


@pytest.mark.parametrize(("here", "wanted"), [([], 2), (["a"], 1)])
def test_a_race_of_given_algorithms_waits_for_two(here: list[str], wanted: int) -> None:
    standing = AsynchronousRace(SETTINGS, [1.0]).standing({}, INSTANCES, {1: here})
    assert (standing.round, standing.newcomers, standing.orders) == (1, wanted, ())


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


# What is remembered


def described(standing: Standing) -> dict[str, Any]:
    """Everything that a standing says, such that two can be compared."""
    state, posterior = standing.state, standing.posterior
    return {
        "where": (standing.round, standing.orders, standing.newcomers, standing.over, standing.retired),
        "rounds": state and (state.rounds, state.algorithms, state.newcomers, state.batch, state.cost),
        "resolved": state and state.resolved.tolist(),
        "values": state and (state.table.instances, np.nan_to_num(state.table.values, nan=-1.0).tolist()),
        "ratings": posterior and posterior.log_ratings.tolist(),
        "means": standing.mean_log_ratings(),
    }


@st.composite
def histories(draw: st.DrawFn) -> tuple[int | None, list[tuple[CellDict, dict[int, list[str]]]]]:
    """What a caller might ask one after another: runs end in any order, are repeated, and newcomers turn up late."""
    room = draw(st.sampled_from([None, 3]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    entrants: dict[int, list[str]] = {1: ["c", "d", "e"]}
    cells: CellDict = {}
    asked: list[tuple[CellDict, dict[int, list[str]]]] = []
    names = itertools.cycle("afbgh")
    quick = AsynchronousRace(QUICK, [1.0], room)
    for step in range(draw(st.integers(5, 30))):
        standing = quick.standing(cells, INSTANCES, entrants)
        if standing.newcomers:
            entrants = {**entrants, standing.round: [*entrants.get(standing.round, []), f"{next(names)}{step}"]}
        for order in rng.permutation(np.array(standing.orders, dtype=object), axis=0)[: rng.integers(1, 6)]:
            cell = order.algorithm, INSTANCES[order.instance]
            cells = {**cells, cell: [value(*cell)]}
        change = draw(st.sampled_from(["none"] * 6 + ["repeat", "forget", "enter", "copy"]))
        if change == "repeat" and cells:
            cell = list(cells)[rng.integers(len(cells))]
            cells = {**cells, cell: [*cells[cell], rng.normal(size=1)]}
        elif change == "forget" and cells:
            gone = list(cells)[rng.integers(len(cells))]
            cells = {cell: runs for cell, runs in cells.items() if cell != gone}
        elif change == "enter":
            late = int(rng.integers(1, standing.round + 1))
            entrants = {**entrants, late: [f"{next(names)}{step}", *entrants.get(late, [])]}
        elif change == "copy":  # the same runs as other objects
            cells = {cell: [run.copy() for run in runs] for cell, runs in cells.items()}
        asked.append((cells, entrants))
    return room, asked


QUICK = RaceSettings(seed=1, batch_size=2, batch_min=1, epsilon=0.2, alpha=0.9, guard="none")


def guess(state: RaceState, number: int) -> Posterior:
    """A posterior for those in a hurry: mean ranks and some noise, which depends on the data and the round alone."""
    observed = np.ma.masked_equal(state.table.ranks[:, 0], 0)
    spread = np.random.default_rng(number).normal(size=(30, 1, len(state.algorithms)))
    means = observed.mean(axis=0).filled(0.0)
    return posterior_of_logs(0.5 * spread - means, algorithms=state.algorithms, timepoints=state.timepoints)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.data())
def test_an_answer_depends_on_the_data_alone_whatever_was_asked_before(data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asynchronous, "infer", guess)
        room, asked = data.draw(histories())
        race = AsynchronousRace(QUICK, [1.0], room)
        for cells, entrants in asked:
            race.standing(cells, INSTANCES, entrants)
        for cells, entrants in data.draw(st.permutations(asked))[:5]:
            fresh = AsynchronousRace(QUICK, [1.0], room).standing(cells, INSTANCES, entrants)
            assert described(race.standing(cells, INSTANCES, entrants)) == described(fresh)


def test_other_instances_are_another_race() -> None:
    race = AsynchronousRace(SETTINGS, [1.0])
    cells = {(name, instance): [value(name, instance)] for name in "ab" for instance in INSTANCES}
    for instances in (INSTANCES, INSTANCES[::-1], INSTANCES[:6]):
        fresh = AsynchronousRace(SETTINGS, [1.0]).standing(cells, instances, {1: ["a", "b"]})
        assert described(race.standing(cells, instances, {1: ["a", "b"]})) == described(fresh)


@pytest.mark.parametrize("room", [None, 3])
def test_a_round_is_decided_once_and_nothing_else_is_remembered(
    room: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided: list[int] = []

    def count(state: RaceState, number: int) -> Posterior:
        decided.append(number)
        return infer(state, number)

    monkeypatch.setattr(asynchronous, "infer", count)
    race = AsynchronousRace(SETTINGS, [1.0], room)
    progress, cells = drive(race, {1: ["a", "e", "c"]})
    assert progress.state is not None
    assert decided == list(range(1, len(progress.state.rounds) + 1))
    early = min(cells, key=lambda cell: INSTANCES.index(cell[1]))
    for repetition in range(5):  # which the first round rests on: all are decided again
        cells[early] = [*cells[early], value("a", f"again {repetition}")]
        race.standing(cells, INSTANCES, {1: ["a", "e", "c"]})
        assert len(race._last[1]) <= len(progress.state.rounds) + 2
    assert decided.count(1) == 6


# Who leaves the model


def keep_entering(room: int, newcomers: str) -> tuple[Standing, dict[int, list[str]], list[int]]:
    """A race with room that newcomers enter one after another; also how many algorithms the model had."""
    race = AsynchronousRace(SETTINGS, [1.0], room)
    waiting = list(newcomers)
    entrants: dict[int, list[str]] = {}
    cells: CellDict = {}
    sizes = []
    while True:
        standing = race.standing(cells, INSTANCES, entrants)
        if standing.state is not None:
            sizes.append(len(standing.state.algorithms))
        if standing.newcomers:
            if not waiting:
                return standing, entrants, sizes
            entrants.setdefault(standing.round, []).append(waiting.pop(0))
        for order in standing.orders:
            cell = order.algorithm, INSTANCES[order.instance]
            cells[cell] = [value(*cell)]


def test_a_race_with_room_has_no_more_algorithms_in_its_model_than_there_is_room_for() -> None:
    standing, _, sizes = keep_entering(3, "xyzwvutsrq")
    assert standing.state is not None
    assert len(standing.state.eliminations) > 4
    assert max(sizes) <= 4  # beside a single survivor the last eliminated one stays


def test_whoever_leaves_the_model_keeps_its_distance_from_the_rival_that_eliminated_it() -> None:
    standing, entrants, _ = keep_entering(3, "xyzwvutsrq")
    assert standing.state is not None
    assert standing.posterior is not None
    means = standing.mean_log_ratings()
    assert set(means) == {name for names in entrants.values() for name in names}
    assert {one.algorithm for one in standing.state.eliminations} >= set(standing.retired)
    for one in standing.state.eliminations:
        assert means[one.algorithm] < means[one.by]
        if one.algorithm in standing.retired and one.algorithm not in standing.posterior.algorithms:
            rival, gap = standing.retired[one.algorithm]
            assert rival == one.by
            assert means[one.algorithm] == means[rival] - gap


def test_given_algorithms_all_stay_in_the_model() -> None:
    progress, _ = drive(AsynchronousRace(SETTINGS, [1.0]), {1: ["a", "e", "c"]})
    assert progress.state is not None
    assert progress.state.eliminations
    assert progress.state.algorithms == ("a", "e", "c")
    assert not progress.retired
    assert progress.mean_log_ratings().keys() == {"a", "e", "c"}


def test_settings_need_a_seed() -> None:
    with pytest.raises(InvalidInputError, match="seed"):
        AsynchronousRace(RaceSettings(), [1.0])


def test_replications_are_refused_where_a_candidate_runs_once_on_an_instance() -> None:
    with pytest.raises(InvalidInputError, match="replications=3: here each candidate runs once on an instance"):
        AsynchronousRace(RaceSettings(seed=1, replications=3), [1.0])
