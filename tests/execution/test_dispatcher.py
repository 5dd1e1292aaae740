"""Requests that are submitted, collected and withdrawn one by one while others run."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from polarbear_plugins.errors import InvalidInputError, PolarBearError
from polarbear_plugins.execution import dispatcher as dispatchers
from polarbear_plugins.execution.dispatcher import Dispatcher
from polarbear_plugins.execution.outcomes import Outcome
from polarbear_plugins.execution.requests import Request
from polarbear_plugins.problems.given import GivenProblem
from polarbear_plugins.problems.protocols import Identity

ALGORITHMS = """
import os
import time
from pathlib import Path

from polarbear_plugins import Trajectory


def answer(name, problem, horizon, seed):
    return Trajectory(
        algorithm=name, instance=problem.identity.name, seed=seed, times=[1], best=[float(seed)], horizon=horizon
    )


class Quick:
    name = "quick"

    def run(self, problem, horizon, seed):
        return answer(self.name, problem, horizon, seed)


class Gated:
    '''Notes that it has begun, and waits until it may go on.'''

    name = "gated"

    def __init__(self, folder):
        self.folder = Path(folder)

    def run(self, problem, horizon, seed):
        (self.folder / f"begun-{seed}").touch()
        while not (self.folder / "open").exists():
            time.sleep(0.01)
        return answer(self.name, problem, horizon, seed)


class Moody:
    '''Fails as often as it was told to, and then succeeds.'''

    name = "moody"

    def __init__(self, folder, failures):
        self.folder, self.failures = Path(folder), failures

    def run(self, problem, horizon, seed):
        with (self.folder / f"tries-{seed}").open("a") as log:
            log.write("x")
        if (self.folder / f"tries-{seed}").stat().st_size <= self.failures:
            raise ValueError("not today")
        return answer(self.name, problem, horizon, seed)
"""


@pytest.fixture
def algorithms(worker_module: Callable[[str, str], ModuleType]) -> ModuleType:
    """Algorithms that workers can import."""
    return worker_module("streamed_algorithms", ALGORITHMS)


def request(algorithm: Any, seed: int = 0) -> Request:
    problem = GivenProblem(Identity(f"p{seed}"), "p")
    return Request(algorithm, algorithm.name, problem, None, problem.identity, 2.0, seed, np.array([1.0, 2.0]))


def requests(algorithm: Any, count: int) -> list[Request]:
    return [request(algorithm, seed) for seed in range(count)]


def collect_all(dispatcher: Dispatcher) -> list[Outcome]:
    found = []
    while dispatcher.in_flight:
        found += dispatcher.collect()
    return found


def begun(folder: Path) -> int:
    return len(list(folder.glob("begun-*")))


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


KINDS = ("local", "threads", "pool")


@contextlib.contextmanager
def dispatching(kind: str, workers: int = 1, **options: Any) -> Iterator[Dispatcher]:
    """A dispatcher on an executor of some kind, which ends with it."""
    with contextlib.ExitStack() as stack:
        executor: Executor | None = None
        if kind == "threads":
            executor = stack.enter_context(ThreadPoolExecutor(workers))
        elif kind == "pool":
            executor = stack.enter_context(ProcessPoolExecutor(workers, mp_context=get_context("spawn")))
        count = None if executor is not None else 0 if kind == "here" else workers
        dispatcher = Dispatcher(count, executor, **options)
        stack.callback(dispatcher.close, at_once=True)
        yield dispatcher


class Manual(Executor):
    """An executor whose calls end when the test says so."""

    def __init__(self) -> None:
        self.calls: list[tuple[Future[Any], Any]] = []

    def submit(self, call: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.calls.append((future, lambda: call(*given, **named)))
        return future

    def finish(self, place: int, problem: Exception | None = None) -> None:
        future, call = self.calls[place]
        future.set_running_or_notify_cancel()
        if problem is None:
            future.set_result(call())
        else:
            future.set_exception(problem)


@pytest.mark.parametrize("kind", [*KINDS, "here"])
def test_each_request_has_one_outcome(algorithms: ModuleType, kind: str) -> None:
    sent = requests(algorithms.Quick(), 10)
    with dispatching(kind, 2) as dispatcher:
        for each in sent:
            dispatcher.submit(each)
        assert dispatcher.in_flight == 10
        found = collect_all(dispatcher)
    assert len(found) == 10
    assert {outcome.request for outcome in found} == set(sent)
    assert all(outcome.trajectory.best.tolist() == [outcome.request.seed] for outcome in found)


def test_outcomes_come_as_runs_finish_and_requests_may_follow_meanwhile(algorithms: ModuleType, tmp_path: Path) -> None:
    with dispatching("local", 2) as dispatcher:
        slow, quick = request(algorithms.Gated(tmp_path)), requests(algorithms.Quick(), 4)
        dispatcher.submit(slow)
        for each in quick:
            dispatcher.submit(each)
            [outcome] = dispatcher.collect()
            assert outcome.request is each
        assert dispatcher.in_flight == 1
        (tmp_path / "open").touch()
        assert [outcome.request for outcome in dispatcher.collect()] == [slow]
        assert dispatcher.in_flight == 0


def test_outcomes_come_in_the_order_in_which_runs_finished(algorithms: ModuleType) -> None:
    manual = Manual()
    dispatcher = Dispatcher(executor=manual)
    for each in requests(algorithms.Quick(), 10):
        dispatcher.submit(each)
    order = [3, 7, 1, 0, 9, 8, 2, 6, 4, 5]
    for place in order:
        manual.finish(place)
    assert [outcome.request.seed for outcome in dispatcher.collect()] == order


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_not_begun_can_be_withdrawn_and_the_rest_comes(
    algorithms: ModuleType, tmp_path: Path, kind: str
) -> None:
    sent = requests(algorithms.Gated(tmp_path), 8)
    with dispatching(kind) as dispatcher:
        for each in sent:
            dispatcher.submit(each)
        wait_until(lambda: begun(tmp_path))
        withdrawn = dispatcher.withdraw(sent)
        # A pool of processes counts one more as begun than it has workers, and another that waits for them.
        assert withdrawn == sent[8 - len(withdrawn) :]
        assert len(withdrawn) >= (5 if kind == "pool" else 7)
        assert dispatcher.in_flight == 8 - len(withdrawn)
        assert dispatcher.withdraw(withdrawn) == []
        (tmp_path / "open").touch()
        found = [outcome.request for outcome in collect_all(dispatcher)]
        dispatcher.submit(request(algorithms.Quick(), 99))  # workers are free, and nothing of the withdrawn comes
        found += [outcome.request for outcome in collect_all(dispatcher)]
    assert [each.seed for each in found] == [*range(8 - len(withdrawn)), 99]
    assert begun(tmp_path) == 8 - len(withdrawn)


def test_what_waits_in_this_process_can_be_withdrawn(algorithms: ModuleType) -> None:
    sent = requests(algorithms.Quick(), 3)
    with dispatching("here") as dispatcher:
        for each in sent:
            dispatcher.submit(each)
        assert dispatcher.withdraw([sent[1]]) == [sent[1]]
        assert [outcome.request for outcome in collect_all(dispatcher)] == [sent[0], sent[2]]


def test_a_withdrawn_call_that_ends_later_is_not_mistaken_for_an_outcome(algorithms: ModuleType) -> None:
    manual = Manual()
    dispatcher = Dispatcher(executor=manual)
    first, second = requests(algorithms.Quick(), 2)
    dispatcher.submit(first)
    dispatcher.submit(second)
    assert dispatcher.withdraw([first]) == [first]  # its callback has put it into the queue
    manual.finish(1)
    assert [outcome.request for outcome in dispatcher.collect()] == [second]
    dispatcher.wake()
    assert dispatcher.collect() == []


@pytest.mark.parametrize("kind", ["here", "local"])
def test_another_thread_ends_a_wait(algorithms: ModuleType, tmp_path: Path, kind: str) -> None:
    with dispatching(kind) as dispatcher:
        if kind == "local":
            dispatcher.submit(request(algorithms.Gated(tmp_path)))
        threading.Timer(0.1, dispatcher.wake).start()
        assert dispatcher.collect() == []
        dispatcher.wake()  # also if nobody is waiting yet
        assert dispatcher.collect() == []
        (tmp_path / "open").touch()
        assert len(collect_all(dispatcher)) == dispatcher.in_flight + (kind == "local")


@pytest.mark.parametrize("at_submission", [False, True])
def test_an_error_that_ends_a_race_comes_after_what_has_finished(algorithms: ModuleType, at_submission: bool) -> None:
    manual = Manual()
    dispatcher = Dispatcher(executor=manual)
    sent = requests(algorithms.Quick(), 3)
    for each in sent:
        dispatcher.submit(each)
    manual.finish(0)
    if at_submission:
        manual.submit = lambda *_given, **_named: (_ for _ in ()).throw(BrokenExecutor("gone"))  # type: ignore[method-assign]
        dispatcher.submit(request(algorithms.Quick(), 7))
    else:
        manual.finish(1, BrokenExecutor("gone"))
    manual.finish(2)
    assert {outcome.request for outcome in dispatcher.collect()} == {sent[0], sent[2]}
    dispatcher.submit(request(algorithms.Quick(), 8))  # nothing is begun any more
    assert len(manual.calls) == 3
    for _ in range(2):
        with pytest.raises(PolarBearError, match=r"The executor broke .*gone"):
            dispatcher.collect()
    dispatcher.close(at_once=True)


def test_a_request_that_cannot_be_sent_is_named_after_what_has_finished(algorithms: ModuleType) -> None:
    class Local:
        name = "local"

        def run(self, *_given: Any) -> None: ...

    with dispatching("local") as dispatcher:
        dispatcher.submit(request(algorithms.Quick()))
        wait_until(lambda: not dispatcher._done.empty())
        dispatcher.submit(request(Local(), 3))
        assert [outcome.request.seed for outcome in dispatcher.collect()] == [0]
        with pytest.raises(InvalidInputError, match=r"'local' on 'p3' cannot be sent to a worker"):
            dispatcher.collect()


@pytest.mark.parametrize(("workers", "kind"), [(3, "local"), (3, "threads"), (3, "pool")])
def test_there_is_room_for_one_that_runs_and_one_that_waits_for_each_worker(
    algorithms: ModuleType, tmp_path: Path, workers: int, kind: str
) -> None:
    with dispatching(kind, workers) as dispatcher:
        for place in range(2 * workers):
            assert dispatcher.room == 2 * workers - place
            dispatcher.submit(request(algorithms.Gated(tmp_path), place))
        dispatcher.submit(request(algorithms.Gated(tmp_path), 9))
        assert dispatcher.room == 0
        (tmp_path / "open").touch()
        collect_all(dispatcher)
        assert dispatcher.room >= 2 * workers


def test_one_request_at_a_time_is_performed_in_this_process(algorithms: ModuleType) -> None:
    with dispatching("here") as dispatcher:
        assert dispatcher.room == 1
        dispatcher.submit(request(algorithms.Quick()))
        dispatcher.submit(request(algorithms.Quick()))
        assert dispatcher.room == 0


def test_an_executor_that_does_not_say_how_many_workers_it_has_is_not_starved(algorithms: ModuleType) -> None:
    manual = Manual()
    dispatcher = Dispatcher(executor=manual)
    while dispatcher.room:
        dispatcher.submit(request(algorithms.Quick()))
    enough = dispatcher.in_flight
    assert enough >= 64
    for future, _ in manual.calls:
        future.set_running_or_notify_cancel()
    assert dispatcher.room >= enough  # all of them run at once: there may be as many workers, and more


@pytest.mark.parametrize("kind", [*KINDS, "here"])
def test_a_failed_run_is_tried_again_as_often_as_allowed(algorithms: ModuleType, tmp_path: Path, kind: str) -> None:
    with dispatching(kind, retries=2) as dispatcher:
        dispatcher.submit(request(algorithms.Moody(tmp_path, 2), 1))
        dispatcher.submit(request(algorithms.Moody(tmp_path, 3), 2))
        good, bad = sorted(collect_all(dispatcher), key=lambda outcome: outcome.request.seed)
    assert good.failure is None
    assert bad.failure is not None
    assert "ValueError: not today" in bad.failure
    assert [(tmp_path / f"tries-{seed}").stat().st_size for seed in (1, 2)] == [3, 3]


@pytest.mark.slow
def test_a_run_that_takes_too_long_on_another_executor_is_abandoned(algorithms: ModuleType, tmp_path: Path) -> None:
    with dispatching("threads", 2, run_timeout=1.5) as dispatcher:
        dispatcher.submit(request(algorithms.Gated(tmp_path)))
        dispatcher.submit(request(algorithms.Quick(), 1))
        quick, slow = collect_all(dispatcher)
        (tmp_path / "open").touch()
        assert quick.failure is None
        assert slow.failure == "it ran for more than 1.5 s and was abandoned"
        dispatcher.submit(request(algorithms.Quick(), 2))  # what the abandoned run returns is not taken for another
        assert [outcome.request.seed for outcome in collect_all(dispatcher)] == [2]


def test_a_run_that_is_not_needed_any_more_is_ended_and_its_worker_replaced(
    algorithms: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatchers, "_WORTH_ENDING", 0.2)
    sent = requests(algorithms.Gated(tmp_path), 3)
    with dispatching("local", 2) as dispatcher:
        for each in sent:
            dispatcher.submit(each)
        wait_until(lambda: begun(tmp_path) == 2)
        time.sleep(0.3)
        ended = dispatcher.end([sent[0], sent[2]])  # the last of which has not begun
        assert list(ended) == [sent[0]]
        assert ended[sent[0]] > 0.2
        assert dispatcher.in_flight == 2
        assert dispatcher.end([sent[0]]) == {}
        wait_until(lambda: begun(tmp_path) == 3)
        (tmp_path / "open").touch()
        assert {outcome.request for outcome in collect_all(dispatcher)} == {sent[1], sent[2]}
        dispatcher.submit(request(algorithms.Quick(), 9))
        assert [outcome.request.seed for outcome in collect_all(dispatcher)] == [9]


def test_only_long_runs_are_ended_and_a_run_is_long_if_others_of_its_algorithm_were(
    algorithms: ModuleType, tmp_path: Path
) -> None:
    first, second = requests(algorithms.Gated(tmp_path), 2)
    with dispatching("local") as dispatcher:
        dispatcher.submit(first)
        wait_until(lambda: begun(tmp_path))
        assert dispatcher.end([first]) == {}
        (tmp_path / "open").touch()
        collect_all(dispatcher)
        (tmp_path / "open").unlink()
        dispatcher._times.note(second, 100.0)
        dispatcher.submit(second)
        wait_until(lambda: begun(tmp_path) == 2)
        assert list(dispatcher.end([second])) == [second]
        assert dispatcher.in_flight == 0


def test_an_executor_that_cannot_end_runs_has_their_outcomes(algorithms: ModuleType, tmp_path: Path) -> None:
    sent = request(algorithms.Gated(tmp_path))
    with dispatching("threads") as dispatcher:
        dispatcher._times.note(sent, 100.0)
        dispatcher.submit(sent)
        wait_until(lambda: begun(tmp_path))
        assert dispatcher.end([sent]) == {}
        (tmp_path / "open").touch()
        assert [outcome.request for outcome in collect_all(dispatcher)] == [sent]


def test_requests_are_carried_out_as_a_stream_and_nothing_is_left(algorithms: ModuleType) -> None:
    with dispatching("local", 2) as dispatcher:
        found = [outcome for outcomes in dispatcher.carry_out(requests(algorithms.Quick(), 50)) for outcome in outcomes]
        assert sorted(outcome.request.seed for outcome in found) == list(range(50))
        assert dispatcher.in_flight == 0
        assert list(dispatcher.carry_out([])) == []
