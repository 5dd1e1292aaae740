from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from polarbear_plugins import RaceSettings, Trajectory, race, resume
from polarbear_plugins.environment import available_cores
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning
from polarbear_plugins.execution.dispatcher import Dispatcher
from polarbear_plugins.execution.outcomes import Outcome
from polarbear_plugins.execution.requests import Request
from polarbear_plugins.experiments import dry_run, interference
from polarbear_plugins.experiments.interference import (
    ClockDispatcher,
    Interference,
    dispatcher_for,
    noted_interference,
)
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.plugins.random_search import RandomSearch
from polarbear_plugins.problems.given import FunctionAlgorithm
from polarbear_plugins.problems.protocols import Identity, counts_seconds
from polarbear_plugins.problems.reference import REFERENCE_PROBLEM, ReferenceRun

CLOCK = """
from polarbear_plugins import Trajectory
from polarbear_plugins.trajectories import HorizonReached, Recorder


def search(problem, horizon, seed):
    recorder = Recorder("seconds", horizon)
    objective = recorder.watch(lambda x: float(x))
    try:
        while True:
            objective(seed % 97)
    except HorizonReached:
        return recorder.trajectory(algorithm="?", instance="?", seed=seed)


search.axis = "seconds"


def other(problem, horizon, seed):
    return search(problem, horizon, seed + 1)
"""


class Box:
    """A problem that random search takes."""

    identity = Identity("box")
    lower, upper = np.zeros(2), np.ones(2)

    def evaluate(self, x: Any) -> float:
        return float(np.sum(x))


def request_of(seconds: float, unit: float = 1.0) -> Request:
    """A run of the race that takes so long."""
    return Request(
        algorithm=RandomSearch("RS", "seconds"),
        algorithm_name="RS",
        problem=REFERENCE_PROBLEM,
        suite=None,
        identity=REFERENCE_PROBLEM.identity,
        horizon=seconds / unit,
        seed=0,
        timepoints=np.array([seconds / unit]),
        unit=unit,
    )


def outcome_of(request: Request, seconds: float, failure: str | None = None, processor: float | None = None) -> Outcome:
    had = seconds if processor is None else processor
    run = Trajectory(algorithm="reference", instance="reference", times=[1], best=[had], horizon=1)
    return Outcome(request, run, seconds, failure)


def measured(alone: float, *beside: float) -> Interference:
    """Interference after reference runs of so many seconds."""
    found = Interference(workers=2)
    found.take_alone(outcome_of(found.request(), seconds) for seconds in (9.0, alone, alone, alone))
    for seconds in beside:
        assert found.take(outcome_of(found.request(), seconds))
    return found


def test_a_reference_run_is_due_after_so_much_work_for_each_worker() -> None:
    found = Interference(workers=2)
    # First after 2 s for each of two workers, then after 4, 8, 16, 30 and 30.
    due = [place for place in range(1, 190) if found.due_before(request_of(1.0))]
    assert due == [4, 12, 28, 60, 120, 180]
    assert found.due_before(request_of(60.0, unit=20.0))


def test_slower_runs_are_a_warning_and_only_one() -> None:
    with pytest.warns(PolarBearWarning, match=r"takes 20% longer .* alone \(36 and 30 ms\).*fewer workers") as caught:
        found = measured(0.03, 0.03, 0.036, 0.036, 0.036, 0.036)
    assert len(caught) == 1
    assert found.figures() == {"alone": 0.03, "beside": 0.036, "slower": pytest.approx(0.2), "measured": 5}


def test_a_machine_that_is_busy_before_the_race_is_a_warning_and_told_even_after_a_short_one() -> None:
    found = Interference(workers=2)
    before = [outcome_of(found.request(), seconds, processor=0.03) for seconds in (9.0, 0.05, 0.06, 0.04)]
    with pytest.warns(
        PolarBearWarning, match=r"took 67% longer before .* \(50 and 30 ms\): something else runs"
    ) as told:
        found.take_alone(before)
    assert found.figures() == {"alone": 0.03, "beside": 0.05, "slower": pytest.approx(2 / 3), "measured": 3}
    # Beside the runs it is no slower than before them, and as slow as it is on a busy machine.
    for _ in range(3):
        found.take(outcome_of(found.request(), 0.045, processor=0.03))
    assert len(told) == 1
    assert found.figures() == {"alone": 0.03, "beside": 0.045, "slower": pytest.approx(0.5), "measured": 3}


def test_a_reference_run_says_for_how_long_it_had_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([5.0, 5.0625])
    monkeypatch.setattr("polarbear_plugins.problems.reference.time", SimpleNamespace(thread_time=lambda: next(clock)))
    assert ReferenceRun().run(REFERENCE_PROBLEM, 1.0, 0).best.tolist() == [0.0625]


def test_what_was_long_ago_does_not_make_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = measured(0.03, 0.05, *[0.031] * 9)
    found.take(outcome_of(found.request(), 0.05))
    found.take(outcome_of(found.request(), 0.05))
    with pytest.warns(PolarBearWarning, match="longer"):
        found.take(outcome_of(found.request(), 0.05))
    assert found.figures()["beside"] == 0.031  # the median of all


def test_nothing_is_said_after_two_reference_runs_nor_from_failed_ones() -> None:
    found = measured(0.03, 0.06, 0.06)
    assert found.figures() == {}
    assert found.take(outcome_of(found.request(), 0.0, failure="it broke"))
    assert found.figures() == {}
    assert Interference(2).figures() == {}


def test_runs_of_the_race_are_not_taken() -> None:
    found = measured(0.03)
    assert not found.take(outcome_of(request_of(1.0), 1.0))
    request = found.request()
    assert found.take(outcome_of(request, 0.03))
    assert not found.take(outcome_of(request, 0.03))


def test_an_algorithm_says_that_it_counts_seconds() -> None:
    def run(problem: Any, horizon: float, seed: int) -> Trajectory:
        raise NotImplementedError

    assert counts_seconds(RandomSearch("RS", "seconds"))
    assert not counts_seconds(RandomSearch())
    assert not counts_seconds(FunctionAlgorithm("mine", run))
    run.axis = "seconds"  # type: ignore[attr-defined]
    assert counts_seconds(FunctionAlgorithm("mine", run))


def test_runs_that_count_seconds_do_not_share_cores() -> None:
    clock, others = [RandomSearch("RS", "seconds")], [RandomSearch()]
    many = available_cores() + 1
    with pytest.raises(InvalidInputError, match=f"each needs a core of its own; {many} were asked for"):
        dispatcher_for(clock, many)
    assert type(dispatcher_for(others, many)) is Dispatcher
    assert isinstance(dispatcher_for([*others, *clock], 0), ClockDispatcher)
    portfolio = [RandomSearch("one", "seconds"), RandomSearch("two", "seconds")]
    for start in (race, dry_run):
        with pytest.raises(InvalidInputError, match="core of its own"):
            start(portfolio, [Box()], [0.1], RaceSettings(), many)  # type: ignore[operator]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="there is no choice of cores")
def test_a_core_is_left_to_the_race_itself() -> None:
    dispatcher = dispatcher_for([RandomSearch("RS", "seconds")])
    assert dispatcher.capacity == max(1, available_cores() - 1)
    dispatcher.close()


def test_reference_runs_are_performed_between_those_of_a_race_and_not_handed_out() -> None:
    dispatcher = dispatcher_for([RandomSearch("RS", "seconds")], 0)
    assert isinstance(dispatcher, ClockDispatcher)
    performed = []

    class Run(ReferenceRun):
        def run(self, problem: Any, horizon: float, seed: int, /) -> Trajectory:
            performed.append(horizon)
            return super().run(problem, horizon, seed)

    requests = [request_of(seconds) for seconds in (1.0, 1.5, 40.0, 0.5)]
    requests = [replaced(request, Run("RS")) for request in requests]
    outcomes = [outcome for found in dispatcher.carry_out(requests) for outcome in found]
    assert [outcome.request for outcome in outcomes] == requests
    assert performed == [1.0, 1.5, 40.0, 0.5]
    assert len(dispatcher.interference._alone) == 5
    assert len(dispatcher.interference._beside) == 2
    assert noted_interference(dispatcher).keys() <= {"interference"}  # whether something else runs here now
    assert noted_interference(Dispatcher(0)) == {}


def replaced(request: Request, algorithm: Any) -> Request:
    fields = {name: getattr(request, name) for name in Request.__slots__}
    return Request(**{**fields, "algorithm": algorithm})


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reference runs after a twentieth of a second of work."""
    monkeypatch.setattr(interference, "_FIRST", 0.05)
    monkeypatch.setattr(interference, "_EVERY", 0.05)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A reference run takes", PolarBearWarning)  # whatever else runs here
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("schedule", ["rounds", "continuous"])
def test_a_race_against_the_clock_measures_interference_and_its_journal_keeps_it(
    worker_module: Callable[[str, str], ModuleType], tmp_path: Path, schedule: Any
) -> None:
    module = worker_module("clock", CLOCK)
    portfolio = {"one": module.search, "two": module.other}
    settings = RaceSettings(seed=1, draws=200, max_rounds=1, batch_size=4, schedule=schedule)
    problems = [f"p{number}" for number in range(30)]
    journal = tmp_path / "race.db"
    result = race(portfolio, problems, [0.01, 0.05], settings, 1, journal=journal)
    found = result.about["interference"]
    assert set(found) == {"alone", "beside", "slower", "measured"}
    assert found["measured"] >= 3
    assert found["slower"] == found["beside"] / found["alone"] - 1
    assert len(result.state.table.instances) == 4
    assert load_result(journal).about["interference"] == found
    assert "reference" not in {run.algorithm for run in result.trajectories()}
    more = resume(journal, portfolio, problems, 1, max_rounds=2)
    assert more.about["interference"]["measured"] >= 3
    assert load_result(journal).about["interference"] == more.about["interference"]
