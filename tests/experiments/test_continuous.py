"""Races without barriers: whatever order the runs end in, the answer is that of rounds."""

from __future__ import annotations

import functools
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import assert_same_result
from hypothesis import given, settings
from hypothesis import strategies as st

from polarbear_plugins import RaceResult, RaceSettings, Trajectory, load_plugins, race, resume
from polarbear_plugins.errors import InvalidInputError, PolarBearError, RunWarning
from polarbear_plugins.execution.local_processes import LocalProcesses
from polarbear_plugins.execution.requests import Request, RunExecutor, perform
from polarbear_plugins.experiments import driver
from polarbear_plugins.experiments.watching import Progress
from polarbear_plugins.journal.copies import journal_copy
from polarbear_plugins.journal.journal import Journal
from polarbear_plugins.journal.reading import NO_ROUND, JournalRun
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.plugins.synthetic import SyntheticAlgorithm, SyntheticSuite, synthetic_portfolio
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.posteriors import infer
from polarbear_plugins.racing.rules import last_unresolved
from polarbear_plugins.racing.state import RaceState

TIMES = [1, 2, 3]
OPTIONS = {"log_ratings": [[2.0, 0.0, 1.0, -9.0], [1.0, 1.0, 1.0, -9.0], [0.0, 2.0, 6.0, -9.0]]}
ROUNDS = RaceSettings(seed=4, draws=200, max_rounds=4, batch_size=6, batch_min=2, guard="none")
CONTINUOUS = replace(ROUNDS, schedule="continuous")

Choose = Callable[[list[Request]], int]


class Workers(RunExecutor):
    """Workers of which a given rule says who is done next; the others take as long as that needs."""

    def __init__(self, workers: int, choose: Choose) -> None:
        self._count, self._choose = workers, choose
        self._calls: list[tuple[Future[Any], Request]] = []
        self._changed = threading.Condition()
        self._closing = False
        self.begun: list[Request] = []
        self.done: list[Request] = []
        self.running: list[tuple[Future[Any], Request]] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def submit_run(self, request: Request, *_: object) -> Future[Any]:
        future: Future[Any] = Future()
        with self._changed:
            self._calls.append((future, request))
            self._changed.notify()
        return future

    def capacity(self) -> int:
        return self._count

    @property
    def waiting(self) -> list[Request]:
        with self._changed:
            return [request for _, request in self._calls]

    def news(self) -> list[str]:
        return []

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        del wait, cancel_futures
        with self._changed:
            self._closing = True
            self._changed.notify()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._calls or self.running or self._closing)
                if self._closing:
                    return
                while self._calls and len(self.running) < self._count:
                    call = self._calls.pop(0)
                    if call[0].set_running_or_notify_cancel():
                        self.begun.append(call[1])
                        self.running.append(call)
                running = list(self.running)
            if running:
                call = running[self._choose([request for _, request in running])]
                with self._changed:
                    if call not in self.running:  # it was ended
                        continue
                    self.running.remove(call)
                try:
                    call[0].set_result(perform(call[1]))
                except Exception as problem:
                    call[0].set_exception(problem)
                self.done.append(call[1])


def at_random(seed: int) -> Choose:
    chance = random.Random(seed)  # noqa: S311 - an order of runs
    return lambda requests: chance.randrange(len(requests))


def last_of(*names: str) -> Choose:
    """These algorithms are done when there is nobody else."""

    def choose(requests: list[Request]) -> int:
        return min(range(len(requests)), key=lambda place: requests[place].algorithm_name in names)

    return choose


@pytest.fixture
def workers() -> Iterator[Callable[..., Workers]]:
    made: list[Workers] = []

    def make(count: int, choose: Choose) -> Workers:
        made.append(Workers(count, choose))
        return made[-1]

    yield make
    for executor in made:
        executor.shutdown()


def synthetic(chosen: RaceSettings, executor: Executor | None = None, **options: Any) -> RaceResult:
    where: dict[str, Any] = {"workers": 0} if executor is None else {"executor": executor}
    return race(synthetic_portfolio(**OPTIONS), SyntheticSuite(), TIMES, chosen, **where, **options)


def assert_same_answer(one: RaceResult, other: RaceResult) -> None:
    """Two results are the same but for the schedule and what was spent besides."""
    assert {one.settings.schedule, other.settings.schedule} == {"rounds", "continuous"}
    state = replace(one.state, settings=other.settings)
    assert_same_result(replace(one, state=state, unused_cost=other.unused_cost), other)


@pytest.fixture(scope="module")
def in_rounds() -> RaceResult:
    return synthetic(ROUNDS)


@given(count=st.integers(1, 12), seed=st.integers(0, 2**32), race_seed=st.integers(0, 30))
@settings(max_examples=12, deadline=None)
def test_in_whatever_order_runs_end_the_answer_is_that_of_rounds(count: int, seed: int, race_seed: int) -> None:
    with Workers(count, at_random(seed)) as executor:
        result = synthetic(replace(CONTINUOUS, seed=race_seed), executor)
    assert_same_answer(synthetic(replace(ROUNDS, seed=race_seed)), result)


@pytest.mark.parametrize("late", ["A", "B", "C", "D", "AB"])
def test_an_algorithm_whose_runs_always_come_last_is_not_judged_without_them(
    in_rounds: RaceResult, workers: Callable[..., Workers], late: str
) -> None:
    executor = workers(12, last_of(*late))
    result = synthetic(CONTINUOUS, executor)
    assert_same_answer(in_rounds, result)
    assert result.unused_cost > 0  # the others did run ahead


class Uneven:
    """Good on half of the instances; its bad runs are the slow ones, so that what comes first looks too good."""

    name = "uneven"

    def run(self, problem: Any, horizon: float, seed: int, /) -> Trajectory:
        level = 5.0 if is_slow(seed) else -5.0
        return curve(self.name, problem, horizon, level)


class Steady:
    name = "steady"

    def run(self, problem: Any, horizon: float, seed: int, /) -> Trajectory:
        return curve(self.name, problem, horizon, np.random.default_rng(seed).uniform(-1, 1))


def is_slow(seed: int) -> bool:
    return seed % 3 > 0


def curve(name: str, problem: Any, horizon: float, level: float) -> Trajectory:
    times = np.arange(1.0, horizon + 1)
    instance = problem.identity.name
    return Trajectory(algorithm=name, instance=instance, times=times, best=level - times, horizon=horizon)


def test_an_algorithm_does_not_look_good_because_its_slow_runs_are_missing(workers: Callable[..., Workers]) -> None:
    # It loses two of three runs, and those take longest: of the first that finish it has won nearly all.
    def slow_ones_last(requests: list[Request]) -> int:
        return min(
            range(len(requests)),
            key=lambda place: requests[place].algorithm_name == "uneven" and is_slow(requests[place].seed),
        )

    executor = workers(30, slow_ones_last)
    chosen = RaceSettings(seed=1, draws=500, max_rounds=8, schedule="continuous")
    result = race([Uneven(), Steady()], SyntheticSuite(), TIMES, chosen, executor=executor)
    won = (result.state.table.values[:, 0, 0] < 0).mean()
    assert 0.2 < won < 0.45
    assert result.posterior.mean_ratings[-1].argmax() == 1
    assert "steady" in result.pareto_set


def test_the_eliminated_do_not_begin_to_run_again(workers: Callable[..., Workers]) -> None:
    executor = workers(3, at_random(1))
    begun_at: list[int] = []

    def watch(progress: Progress) -> None:
        if not progress.planned and progress.state.eliminations:
            begun_at.append(len(executor.begun))

    result = synthetic(CONTINUOUS, executor, progress=watch)
    out = {elimination.algorithm for elimination in result.eliminations}
    assert out
    assert not any(request.algorithm_name in out for request in executor.begun[begun_at[0] + 3 :])


class Ending(Workers):
    """Workers that can end a run."""

    def __init__(self, workers: int, choose: Choose) -> None:
        self.ended: list[Request] = []
        super().__init__(workers, choose)

    def end(self, least: Mapping[Future[Any], float]) -> dict[Future[Any], float]:
        with self._changed:
            calls = [call for call in self.running if call[0] in least]
            self.running = [call for call in self.running if call not in calls]
            self.ended += [request for _, request in calls]
        return dict.fromkeys((future for future, _ in calls), 1.0)


def test_waiting_runs_of_the_eliminated_are_withdrawn_and_those_under_way_ended(
    in_rounds: RaceResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing ends from the first inference on until the second round has begun.
    gate = threading.Event()
    gate.set()
    rng = at_random(1)

    def choose(requests: list[Request]) -> int:
        gate.wait()
        return rng(requests)

    def infer_while_they_wait(state: RaceState, number: int) -> Posterior:
        if number == 1:
            gate.clear()
            while not {"D"} <= {request.algorithm_name for request in executor.waiting}:
                time.sleep(0.001)
        return infer(state, number)

    begun_at: list[int] = []

    def watch(progress: Progress) -> None:
        if len(progress.state.rounds) == 1 and progress.planned and not begun_at:
            begun_at.append(len(executor.begun))
            gate.set()

    monkeypatch.setattr(driver, "infer", infer_while_they_wait)
    with Ending(8, choose) as executor:  # twice as many as algorithms
        result = synthetic(CONTINUOUS, executor, progress=watch)
    assert_same_answer(in_rounds, result)
    assert {elimination.algorithm for elimination in result.rounds[0].eliminations} == {"D"}
    assert {request.algorithm_name for request in executor.ended} == {"D"}
    assert "D" not in {request.algorithm_name for request in executor.begun[begun_at[0] :]}
    assert result.unused_cost >= sum(request.horizon for request in executor.ended)


def test_where_the_race_waits_for_its_inference_little_more_than_the_next_round_runs_ahead(
    workers: Callable[..., Workers], monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = workers(3, at_random(1))
    places: list[int] = []

    def infer_slowly(state: RaceState, number: int) -> Posterior:
        if number == 1:
            before = -1
            while len(executor.begun) > before:
                before = len(executor.begun)
                time.sleep(0.5)
            places.append(len({request.identity.name for request in executor.begun}))
        return infer(state, number)

    monkeypatch.setattr(driver, "infer", infer_slowly)
    synthetic(CONTINUOUS, executor)
    # Beside the two rounds some 64 runs for each worker, which wait when the last of these finishes; 268 otherwise.
    assert 6 + 12 <= places[0] < 120


def test_settled_timepoints_are_not_run_to_again(workers: Callable[..., Workers]) -> None:
    executor = workers(1, at_random(3))
    begun_at: list[int] = []

    def watch(progress: Progress) -> None:
        if not progress.planned and set(last_unresolved(progress.state).values()) == {1}:
            begun_at.append(len(executor.begun))

    longer = {"max_rounds": 6}
    result = synthetic(replace(CONTINUOUS, **longer), executor, progress=watch)
    assert_same_answer(synthetic(replace(ROUNDS, **longer)), result)
    assert {request.horizon for request in executor.begun[begun_at[0] + 1 :]} == {2.0}


@pytest.mark.parametrize("count", [1, 5])
def test_what_was_spent_is_the_cost_of_all_runs_that_were_begun(workers: Callable[..., Workers], count: int) -> None:
    executor = workers(count, at_random(5))
    result = synthetic(CONTINUOUS, executor)
    begun = sum(request.horizon for request in executor.begun)
    assert result.cost + result.unused_cost == pytest.approx(begun, abs=count * 3.0)
    assert result.cost + result.unused_cost <= begun


@given(count=st.integers(1, 9), seed=st.integers(0, 2**32), limit=st.integers(30, 300))
@settings(max_examples=8, deadline=None)
def test_no_more_is_spent_than_the_limit(count: int, seed: int, limit: int) -> None:
    with Workers(count, at_random(seed)) as executor:
        result = synthetic(replace(CONTINUOUS, max_rounds=None, max_cost=limit), executor)
    assert sum(request.horizon for request in executor.begun) <= limit
    assert result.cost + result.unused_cost <= limit
    assert result.stopped in ("max_cost", "resolved")


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: ThreadPoolExecutor(3), id="threads"),
        pytest.param(lambda: LocalProcesses(3), id="local processes"),
        pytest.param(lambda: ProcessPoolExecutor(2, get_context("spawn")), id="a pool", marks=pytest.mark.slow),
        pytest.param(lambda: dask_cluster(), id="dask", marks=pytest.mark.slow),
    ],
)
def test_on_every_kind_of_executor_the_answer_is_that_of_rounds(
    in_rounds: RaceResult, make: Callable[[], Executor]
) -> None:
    with make() as executor:
        result = synthetic(CONTINUOUS, executor)
    assert_same_answer(in_rounds, result)


def dask_cluster() -> Executor:
    pytest.importorskip("distributed")
    return load_plugins().executor("dask:local", workers=2, threads=1)


def test_one_worker_in_this_process_never_runs_ahead(in_rounds: RaceResult) -> None:
    result = synthetic(CONTINUOUS)
    assert_same_answer(in_rounds, result)
    assert result.unused_cost == 0


class OnlyShort(SyntheticAlgorithm):
    """Fails in runs that go on to the last timepoint from a certain instance on."""

    def run(self, problem: Any, horizon: float, seed: int, /) -> Trajectory:
        trajectory = super().run(problem, horizon, seed)
        if horizon > 2 and int(trajectory.instance.rpartition("-")[2]) > 12:
            raise RuntimeError("too long")
        return trajectory


def test_a_longer_run_that_failed_is_repeated_as_far_as_it_is_needed(workers: Callable[..., Workers]) -> None:
    def portfolio() -> list[SyntheticAlgorithm]:
        return [OnlyShort(one.name, one.log_ratings, one.correlation) for one in synthetic_portfolio(**OPTIONS)]

    in_rounds = race(portfolio(), SyntheticSuite(), TIMES, ROUNDS, workers=0)
    with pytest.warns(RunWarning, match="too long"):
        result = race(portfolio(), SyntheticSuite(), TIMES, CONTINUOUS, executor=workers(12, last_of("A")))
    assert_same_answer(in_rounds, result)
    assert not result.failures


def number_of(instance: str) -> int:
    return int(instance.rpartition("-")[2])


class FailsAtFirst(SyntheticAlgorithm):
    """Fails on the first instances while something is missing."""

    missing = True

    def run(self, problem: Any, horizon: float, seed: int, /) -> Trajectory:
        trajectory = super().run(problem, horizon, seed)
        if self.missing and number_of(trajectory.instance) <= 6:
            raise RuntimeError("no licence")
        return trajectory


@pytest.mark.filterwarnings("ignore:.*not everything is as it was:polarbear_plugins.errors.PolarBearWarning")
def test_a_first_round_that_failed_is_repeated_also_if_runs_ahead_of_it_did_not(
    in_rounds: RaceResult, workers: Callable[..., Workers], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    portfolio = [FailsAtFirst(one.name, one.log_ratings, one.correlation) for one in synthetic_portfolio(**OPTIONS)]
    path = tmp_path / "race.db"
    with pytest.warns(RunWarning), pytest.raises(PolarBearError, match="Every run of the first round failed"):
        race(portfolio, SyntheticSuite(), TIMES, CONTINUOUS, workers=0, journal=path)
    good = next(run for run in in_rounds.trajectories() if number_of(run.instance) == 7)
    with Journal.open(path) as journal:
        journal.add_runs([JournalRun(NO_ROUND, good, 0.1)])
    monkeypatch.setattr(FailsAtFirst, "missing", False)
    executor = workers(4, at_random(1))
    result = resume(path, portfolio, SyntheticSuite(), executor=executor)
    assert_same_answer(in_rounds, replace(result, about=in_rounds.about))
    assert (good.algorithm, good.instance) not in {
        (request.algorithm_name, request.identity.name) for request in executor.begun
    }


class FailsLater(SyntheticAlgorithm):
    """Fails from the seventh instance on."""

    def run(self, problem: Any, horizon: float, seed: int, /) -> Trajectory:
        trajectory = super().run(problem, horizon, seed)
        if self.name == "D" and int(trajectory.instance.rpartition("-")[2]) > 6:
            raise RuntimeError("too late")
        return trajectory


def test_failures_of_the_eliminated_in_runs_that_nobody_used_are_not_in_the_result(
    in_rounds: RaceResult, workers: Callable[..., Workers], tmp_path: Path
) -> None:
    portfolio = [FailsLater(one.name, one.log_ratings, one.correlation) for one in synthetic_portfolio(**OPTIONS)]
    path = tmp_path / "race.db"
    with pytest.warns(RunWarning, match="too late"):
        result = race(portfolio, SyntheticSuite(), TIMES, CONTINUOUS, executor=workers(8, last_of("A")), journal=path)
    assert_same_answer(in_rounds, result)
    assert not result.failures
    assert not load_result(path).failures
    with journal_copy(path) as journal:
        assert {failure.algorithm for failure in journal.failures} == {"D"}


class Cooling(SyntheticAlgorithm):
    """With more time it begins worse."""

    plans_by_horizon = True

    def run(self, problem: Any, horizon: float, seed: int, /) -> Trajectory:
        run = super().run(problem, horizon, seed)
        return run.changed(best=run.best + horizon)


def test_the_beginning_of_a_longer_run_does_not_serve_if_the_algorithm_plans_by_its_horizon(
    workers: Callable[..., Workers], tmp_path: Path
) -> None:
    portfolio = [Cooling(one.name, one.log_ratings, one.correlation) for one in synthetic_portfolio(**OPTIONS)]
    in_rounds = race(portfolio, SyntheticSuite(), TIMES, ROUNDS, workers=0)
    assert {2, 3} <= set((~np.isnan(in_rounds.state.table.values)).sum(axis=1).ravel().tolist())

    path = tmp_path / "race.db"
    result = race(portfolio, SyntheticSuite(), TIMES, CONTINUOUS, executor=workers(12, last_of("A")), journal=path)
    assert_same_answer(in_rounds, result)
    assert_same_result(load_result(path), result)


@pytest.mark.parametrize("begun", [3, 30, 60, 90])
def test_a_race_that_was_interrupted_goes_on_as_if_it_had_not_been(
    in_rounds: RaceResult, workers: Callable[..., Workers], tmp_path: Path, begun: int
) -> None:
    path, first = tmp_path / "race.db", workers(7, at_random(begun))

    def interrupt(_: Progress) -> None:
        if len(first.begun) >= begun:
            raise KeyboardInterrupt

    stopped = synthetic(CONTINUOUS, first, journal=path, progress=interrupt)
    assert stopped.stopped == "interrupted"
    before = stored_runs(path)
    executor = workers(4, at_random(1))
    result = resume(path, synthetic_portfolio(**OPTIONS), SyntheticSuite(), executor=executor)
    assert_same_answer(in_rounds, replace(result, about=in_rounds.about))
    again = {(request.algorithm_name, request.identity.name, request.horizon) for request in executor.begun}
    assert not again & set(before)
    assert [run[:2] for run in stored_runs(path)][: len(before)] == [run[:2] for run in before]
    assert_same_result(load_result(path), result)


class CrashError(Exception):
    """The process ends without a word to anybody."""


@pytest.mark.parametrize(("rounds", "runs"), [(1, 0), (3, 0), (4, 12), (5, 25)])
def test_after_a_crash_all_that_has_ended_was_spent_and_nothing_that_waited_for_a_worker(
    workers: Callable[..., Workers], tmp_path: Path, rounds: int, runs: int
) -> None:
    rng = at_random(2)

    def choose(requests: list[Request]) -> int:
        time.sleep(0.004)  # so that many wait
        return rng(requests)

    path, executor = tmp_path / "race.db", workers(3, choose)
    done: list[float] = []

    def crash(progress: Progress) -> None:
        if progress.result is not None:
            assert progress.result.cost + progress.result.unused_cost <= done[-1] + 3 * 3.0
        done.append(sum(request.horizon for request in list(executor.done)))
        if len(progress.state.rounds) >= rounds and progress.done >= runs:
            raise CrashError

    with pytest.raises(CrashError):
        synthetic(replace(CONTINUOUS, max_rounds=9), executor, journal=path, progress=crash)
    stopped = load_result(path)
    # What was done two calls ago has surely been stored; at most one of each worker is done and not noted here.
    assert done[-3] <= stopped.cost + stopped.unused_cost <= done[-1] + 3 * 3.0


def stored_runs(path: Path) -> list[tuple[str, str, float]]:
    with journal_copy(path) as journal:
        runs = [run.trajectory for run in journal.runs()]
    return [(run.algorithm, run.instance, run.horizon) for run in runs]


def test_the_journal_keeps_the_order_in_which_runs_ended(workers: Callable[..., Workers], tmp_path: Path) -> None:
    ended: list[tuple[str, str]] = []

    def choose(requests: list[Request]) -> int:
        ended.append((requests[-1].algorithm_name, requests[-1].identity.name))
        return len(requests) - 1

    path = tmp_path / "race.db"
    result = synthetic(CONTINUOUS, workers(5, choose), journal=path)
    stored = [run[:2] for run in stored_runs(path)]
    assert stored == ended[: len(stored)]
    assert_same_result(load_result(path), result)
    assert load_result(path).unused_cost == result.unused_cost > 0


def test_unused_cost_is_saved_with_the_result(workers: Callable[..., Workers], tmp_path: Path) -> None:
    result = synthetic(CONTINUOUS, workers(5, last_of("B")))
    assert result.unused_cost > 0
    assert RaceResult.load(result.save(tmp_path / "race.npz")).unused_cost == result.unused_cost
    assert result.to_dict()["unused_cost"] == result.unused_cost
    assert "unused_cost" not in synthetic(ROUNDS).to_dict()


@pytest.mark.parametrize("journal", [False, True])
def test_newcomers_enter_a_race_without_barriers(
    in_rounds: RaceResult, workers: Callable[..., Workers], tmp_path: Path, journal: bool
) -> None:
    late = SyntheticAlgorithm("late", np.array([1.5, 1.0, 0.5]), 0.0)
    path = {"journal": tmp_path / "race.db"} if journal else {}
    begun = synthetic(CONTINUOUS, workers(6, at_random(2)), **path)
    stored = stored_runs(tmp_path / "race.db") if journal else []
    executor = workers(6, at_random(3))
    after = begun.enter(late, executor=executor, max_rounds=8)
    assert_same_answer(in_rounds.enter(late, workers=0, max_rounds=8), after)
    again = {(request.algorithm_name, request.identity.name, request.horizon) for request in executor.begun}
    assert not again & set(stored)


def test_runs_of_an_instance_that_is_repeated_are_told_apart(workers: Callable[..., Workers]) -> None:
    twice = {"replications": 2, "max_rounds": 2}
    result = synthetic(replace(CONTINUOUS, **twice), workers(6, at_random(2)))
    assert_same_answer(synthetic(replace(ROUNDS, **twice)), result)


def test_against_an_archive_the_answer_is_that_of_rounds(
    in_rounds: RaceResult, workers: Callable[..., Workers]
) -> None:
    stored = [run for run in in_rounds.trajectories() if run.algorithm in "AB"]
    newcomers = [one for one in synthetic_portfolio(**OPTIONS) if one.name in "CD"]
    results = [
        race(newcomers, SyntheticSuite(), TIMES, chosen, against=stored, **where)
        for chosen, where in ((ROUNDS, {"workers": 0}), (CONTINUOUS, {"executor": workers(6, last_of("C"))}))
    ]
    assert_same_answer(*results)


def test_a_list_of_problems_is_not_run_past_its_end(workers: Callable[..., Workers]) -> None:
    problems = [f"p{number}" for number in range(9)]
    functions = {name: functools.partial(walk, name) for name in "ab"}
    results = [
        race(functions, problems, TIMES, replace(chosen, max_rounds=None), **where)
        for chosen, where in ((ROUNDS, {"workers": 0}), (CONTINUOUS, {"executor": workers(6, at_random(2))}))
    ]
    assert_same_answer(*results)
    assert results[0].stopped == "instances"


def walk(name: str, _: object, horizon: float, seed: int) -> Trajectory:
    level = np.random.default_rng(seed).random()
    times = np.arange(1.0, horizon + 1)
    return Trajectory(algorithm=name, instance="?", times=times, best=level - times, horizon=horizon)


def test_progress_says_how_many_run_ahead_and_who_is_waited_for(workers: Callable[..., Workers]) -> None:
    seen: list[Progress] = []
    late = last_of("B")

    def choose(requests: list[Request]) -> int:
        place = late(requests)
        time.sleep(0.01 if requests[place].algorithm_name == "B" else 0.0)  # so that they come one by one
        return place

    synthetic(CONTINUOUS, workers(12, choose), progress=seen.append)
    assert max(progress.ahead for progress in seen) > 0
    assert {"B"} in [set(progress.waited_for) for progress in seen]
    assert all(progress.done + sum(progress.waited_for.values()) == progress.planned for progress in seen[:5])


class Sleeping(SyntheticAlgorithm):
    """Takes a while on demand."""

    def run(self, problem: Any, horizon: float, seed: int, /) -> Trajectory:
        time.sleep({"C": 0.02}.get(self.name, 0.001))
        return super().run(problem, horizon, seed)


def test_a_round_begins_with_those_that_take_long_and_goes_on_instance_by_instance(
    workers: Callable[..., Workers],
) -> None:
    portfolio = [Sleeping(one.name, one.log_ratings, one.correlation) for one in synthetic_portfolio(**OPTIONS)]
    executor = workers(2, at_random(1))
    result = race(portfolio, SyntheticSuite(), TIMES, replace(ROUNDS, max_rounds=2), executor=executor)
    first, second = (finished.instances for finished in result.rounds)
    names = [request.algorithm_name for request in executor.begun]
    assert names[: 4 * first] == ["A", "B", "C", "D"] * first
    assert names[4 * first :] == ["C"] * (second - first) + ["A", "B"] * (second - first)


def test_an_unknown_schedule_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="schedule"):
        RaceSettings(schedule="whenever")  # type: ignore[arg-type]
