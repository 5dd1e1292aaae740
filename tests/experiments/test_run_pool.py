"""Which runs a pool keeps, for outcomes that come in a given order."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from polarbear_plugins import Trajectory
from polarbear_plugins.errors import PolarBearError, RunWarning
from polarbear_plugins.execution.dispatcher import Dispatcher
from polarbear_plugins.execution.requests import Request, RunExecutor
from polarbear_plugins.experiments import run_pool
from polarbear_plugins.experiments.run_pool import RunPool, WantedRun
from polarbear_plugins.journal.reading import NO_ROUND
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.racing.state import Order


class ByHand(RunExecutor):
    """An executor whose runs begin at once, unless it is busy, and end when the test says so."""

    def __init__(self) -> None:
        self.busy = False
        self.calls: dict[tuple[str, str, float], Future[Any]] = {}

    def submit_run(self, request: Request, *_: object) -> Future[Any]:
        future: Future[Any] = Future()
        if not self.busy:
            future.set_running_or_notify_cancel()
        self.calls[request.algorithm_name, request.identity.name, request.horizon] = future
        return future

    def capacity(self) -> int:
        return 1

    def news(self) -> list[str]:
        return []


def request(wanted: WantedRun) -> Request:
    return Request(
        algorithm=None,  # type: ignore[arg-type]
        algorithm_name=wanted.order.algorithm,
        problem=None,
        suite=None,
        identity=Identity(wanted.name),
        horizon=wanted.order.until,
        seed=0,
        timepoints=np.array([1.0, 2.0, 3.0]),
    )


def wanted(algorithm: str, until: float, instance: int = 0) -> WantedRun:
    return WantedRun(Order(algorithm, instance, until), 0, f"i{instance}")


class Pool(RunPool):
    """A pool without a journal; ``planner`` plans by its horizon."""

    def __init__(self) -> None:
        self.executor = ByHand()
        super().__init__(Dispatcher(executor=self.executor), request, lambda name: name == "planner")

    def begin(self, *runs: WantedRun) -> None:
        self._begin(runs)

    def end(self, algorithm: str, until: float, instance: int = 0, failure: str | None = None) -> list[int]:
        """End a run, whose values tell how long it was asked to run; returns the rounds that it is stored for."""
        future = self.executor.calls[algorithm, f"i{instance}", until]
        times = np.arange(1.0, until + 1)
        run = Trajectory(
            algorithm=algorithm, instance=f"i{instance}", times=times, best=100 * until - times, horizon=until
        )
        if failure is None:
            future.set_result((run, 0.01))
        else:
            future.set_exception(PolarBearError(failure))
        runs = self.collect()
        self.finish(runs)
        return [run.round for run in runs]


def best(runs: list[Trajectory]) -> list[list[float]]:
    return [run.best.tolist() for run in runs]


def test_a_run_that_was_begun_for_longer_serves_until_where_it_is_needed() -> None:
    pool = Pool()
    pool.begin(wanted("a", 3.0))
    pool.plan([wanted("a", 2.0)], 1)
    assert pool.executor.calls.keys() == {("a", "i0", 3.0)}
    assert pool.end("a", 3.0) == [1]
    assert pool.missing == 0
    assert best(pool.take()) == [[299.0, 298.0]]
    assert pool.take()[0].horizon == 2.0
    assert (pool.spent, pool.ended_cost) == (3.0, 3.0)


def test_of_an_algorithm_that_plans_by_its_horizon_the_run_that_was_asked_for_counts_whichever_ends_last() -> None:
    for first, second in ((2.0, 3.0), (3.0, 2.0)):
        pool = Pool()
        pool.begin(wanted("planner", 3.0))
        pool.plan([wanted("planner", 2.0)], 1)
        stored = [pool.end("planner", first), pool.end("planner", second)]
        assert stored == ([[1], []] if first == 2.0 else [[NO_ROUND], [1]])
        assert pool.missing == 0
        assert best(pool.take()) == [[199.0, 198.0]]


def test_what_ends_after_its_round_does_not_take_the_place_of_the_run_that_was_used() -> None:
    pool = Pool()
    pool.begin(wanted("planner", 3.0))
    pool.plan([wanted("planner", 2.0)], 1)
    pool.end("planner", 2.0)
    pool.finished = pool.unused()
    pool.plan([wanted("a", 2.0, 1)], 2)
    assert pool.end("planner", 3.0) == []
    assert pool.finished == {}
    assert pool.missing == 1


def test_a_run_that_is_too_short_now_is_run_again() -> None:
    pool = Pool()
    pool.begin(wanted("a", 2.0))
    pool.plan([wanted("a", 3.0)], 1)
    assert pool.executor.calls.keys() == {("a", "i0", 2.0), ("a", "i0", 3.0)}
    assert pool.end("a", 3.0) == [1]
    assert pool.end("a", 2.0) == []
    assert best(pool.take()) == [[299.0, 298.0, 297.0]]


def test_a_longer_run_that_failed_is_repeated_and_its_failure_forgotten() -> None:
    pool = Pool()
    pool.begin(wanted("a", 3.0))
    pool.plan([wanted("a", 2.0)], 1)
    with pytest.warns(RunWarning, match="'a' on 'i0' failed.*no memory"):
        assert pool.end("a", 3.0, failure="no memory") == [NO_ROUND]
    assert pool.missing == 1
    assert pool.end("a", 2.0) == [1]
    assert not pool.failures
    assert best(pool.take()) == [[199.0, 198.0]]


def test_failures_of_runs_that_no_round_has_used_are_not_those_of_the_race() -> None:
    pool = Pool()
    pool.begin(wanted("a", 2.0, 5))
    pool.plan([wanted("b", 2.0)], 1)
    with pytest.warns(RunWarning, match="'a'"):
        pool.end("a", 2.0, 5, failure="no memory")
    with pytest.warns(RunWarning, match="'b'"):
        pool.end("b", 2.0, failure="no memory")
    assert pool.all_failed() is not None
    pool.finished = pool.unused()
    assert [failure.algorithm for failure in pool.used_failures()] == ["b"]


def test_what_is_stored_for_another_round_than_that_which_uses_it_is_told() -> None:
    pool = Pool()
    pool.begin(wanted("a", 3.0))
    pool.end("a", 3.0)
    pool.plan([wanted("a", 2.0), wanted("b", 2.0)], 1)
    pool.end("b", 2.0)
    ahead, later = pool.to_store()
    assert [(run.algorithm, run.horizon) for run in ahead] == [("a", 2.0)]
    assert later == []


def test_what_is_withdrawn_before_it_began_costs_nothing_and_can_be_begun_again() -> None:
    pool = Pool()
    pool.begin(wanted("a", 3.0))
    pool.executor.busy = True
    pool.begin(wanted("b", 2.0))
    assert (pool.spent, pool.ended_cost) == (5.0, 0.0)
    pool.withdraw()
    assert (pool.spent, pool.ended_cost) == (3.0, 0.0)
    assert pool.is_begun(wanted("a", 3.0))
    assert not pool.is_begun(wanted("b", 2.0))


def test_nothing_is_begun_ahead_that_would_cost_more_than_the_limit() -> None:
    pool = Pool()
    pool.run_ahead(iter([wanted("a", 3.0), wanted("b", 2.0)]), most=4.0)
    assert pool.executor.calls.keys() == {("a", "i0", 3.0)}
    assert pool.spent == 3.0


def test_a_longer_run_is_paid_for_a_shorter_one_only_when_it_has_not_failed() -> None:
    pool = Pool()
    pool.begin(wanted("a", 3.0), wanted("b", 3.0), wanted("planner", 3.0))
    assert all(pool.is_paid(wanted(name, 3.0)) for name in ("a", "b", "planner"))
    assert not any(pool.is_paid(wanted(name, until)) for name in ("a", "b", "planner") for until in (2.0, 4.0))
    pool.end("a", 3.0)
    with pytest.warns(RunWarning, match="'b'"):
        pool.end("b", 3.0, failure="no memory")
    pool.end("planner", 3.0)
    assert [pool.is_paid(wanted(name, 2.0)) for name in ("a", "b", "planner")] == [True, False, False]
    assert not pool.is_paid(wanted("a", 4.0))


def test_a_worker_that_runs_something_is_busy_until_it_ends() -> None:
    pool = Pool()
    pool.plan([wanted("a", 1.0)], 1)
    pool.begin(wanted("b", 1.0))  # it waits
    pool.end("a", 1.0)
    assert pool.progress()["utilisation"] == 1.0


def test_the_time_between_two_rounds_in_which_workers_have_nothing_to_do_does_not_count_as_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr(run_pool, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    pool = Pool()
    pool.plan([wanted("a", 1.0)], 1)
    clock[0] = 1.0
    pool.end("a", 1.0)
    assert pool.progress()["utilisation"] == 1.0
    clock[0] = 4.0  # of inference
    pool.plan([wanted("a", 1.0, 1)], 2)
    clock[0] = 5.0
    pool.end("a", 1.0, 1)
    assert pool.progress()["utilisation"] == 2 / 5
    clock[0] = 9.0  # of waiting for somebody
    pool.run_ahead(iter([wanted("b", 1.0)]), None)
    clock[0] = 10.0
    pool.end("b", 1.0)
    assert pool.progress()["utilisation"] == 3 / 10
