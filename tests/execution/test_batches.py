"""Short runs that are sent together: each has its own outcome, whatever the others do."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.execution import batches
from polarbear_plugins.execution.batches import batches_of, enough_for_a_worker, is_short, perform_all
from polarbear_plugins.execution.dispatcher import Dispatcher
from polarbear_plugins.execution.outcomes import Outcome
from polarbear_plugins.execution.process_state import Restored
from polarbear_plugins.execution.requests import Request
from polarbear_plugins.execution.run_times import RunTimes
from polarbear_plugins.problems.given import GivenProblem
from polarbear_plugins.problems.protocols import Identity

ALGORITHMS = """
import os
import signal
import time
from pathlib import Path

import numpy as np

from polarbear_plugins import Trajectory


class Algorithm:
    '''Does something odd for some seeds, and leaves a trace of each run.'''

    def __init__(self, name, folder=None, odd=()):
        self.name, self.folder, self.odd = name, folder and Path(folder), odd

    def run(self, problem, horizon, seed):
        if self.folder:
            with (self.folder / f"run-{seed}").open("a") as log:
                log.write(f"{os.getcwd()}\\n")
        if seed in self.odd:
            getattr(self, self.name)()
        best = float(np.random.default_rng(seed).random())
        return Trajectory(
            algorithm=self.name, instance=problem.identity.name, seed=seed, times=[1], best=[best], horizon=horizon
        )

    def raises(self):
        raise ValueError("not today")

    def leaves(self):
        raise SystemExit(3)

    def dies(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def moves(self):
        os.chdir("/")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def waits(self):
        while not (self.folder / "open").exists():
            time.sleep(0.01)

    def sleeps(self):
        time.sleep(0.3)

    def __setstate__(self, state):
        if state["name"] == "traps":
            raise OSError("no such licence")
        self.__dict__.update(state)
"""


@pytest.fixture
def algorithms(worker_module: Callable[[str, str], ModuleType]) -> ModuleType:
    """Algorithms that workers can import."""
    return worker_module("batched_algorithms", ALGORITHMS)


def request(algorithm: Any, seed: int = 0, horizon: float = 2.0) -> Request:
    problem = GivenProblem(Identity(f"p{seed}"), "p")
    times = np.array([1.0, horizon])
    return Request(algorithm, algorithm.name, problem, None, problem.identity, horizon, seed, times)


class Named:
    """An algorithm that is never run."""

    def __init__(self, name: str) -> None:
        self.name = name


class Watched(Dispatcher):
    """A dispatcher to which all algorithms are known to be short, and which notes what is sent together."""

    def __init__(self, *given: Any, seconds: float = 0.001, **options: Any) -> None:
        super().__init__(*given, **options)
        self.seconds, self.sizes = seconds, list[int]()

    def submit(self, request: Request) -> None:
        if self._times.expected(request) is None:
            self._times.note(request, self.seconds)
        super().submit(request)

    def _send(self, requests: list[Request]) -> None:
        self.sizes.append(len(requests))
        super()._send(requests)

    def perform(self, requests: list[Request]) -> dict[int, Outcome]:
        return {outcome.request.seed: outcome for outcome in self.stream(requests)}

    def stream(self, requests: list[Request]) -> Iterator[Outcome]:
        for outcomes in self.carry_out(requests):
            yield from outcomes


def values(outcomes: dict[int, Outcome]) -> dict[int, list[float]]:
    return {seed: outcome.trajectory.best.tolist() for seed, outcome in outcomes.items()}


def threads() -> Executor:
    return ThreadPoolExecutor(2)


def pool() -> Executor:
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


@pytest.mark.parametrize("make", [lambda: None, threads, pool])
@pytest.mark.parametrize("oddity", ["raises", "leaves"])
def test_each_run_has_the_outcome_that_it_has_alone(algorithms: ModuleType, make: Any, oddity: str) -> None:
    sent = [request(algorithms.Algorithm(oddity, odd=(3, 17)), seed) for seed in range(40)]
    executor = make()
    together = Watched(None if executor else 2, executor)
    alone = Dispatcher(0)
    try:
        found = together.perform(sent)
        expected = {each.request.seed: each for outcomes in alone.carry_out(sent) for each in outcomes}
    finally:
        together.close()
        if executor:
            executor.shutdown()
    assert together.sizes[:2] == [20, 20]
    assert values(found) == values(expected)
    assert {seed: each.failure for seed, each in found.items()} == {
        seed: each.failure for seed, each in expected.items()
    }
    assert [seed for seed in sorted(found) if found[seed].failure] == [3, 17]


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_a_run_that_kills_its_process_fails_alone_and_its_neighbours_are_run_again(
    algorithms: ModuleType, tmp_path: Path
) -> None:
    algorithm = algorithms.Algorithm("dies", tmp_path, odd=(5,))
    dispatcher = Watched(2)
    try:
        found = dispatcher.perform([request(algorithm, seed) for seed in range(20)])
    finally:
        dispatcher.close()
    assert sorted(found) == list(range(20))
    assert {seed: each.failure for seed, each in found.items() if each.failure} == {
        5: "its process died (killed by SIGKILL)"
    }
    tries = (tmp_path / "run-5").read_text().count("\n")
    # With the others, which is no attempt, and alone, which is the only one allowed.  On a busy machine a worker may
    # have handed it back before.
    assert tries in (1, 2)
    assert max(dispatcher.sizes) == 10


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_a_retry_is_counted_for_the_run_alone(algorithms: ModuleType, tmp_path: Path) -> None:
    dispatcher = Watched(1, retries=2)
    try:
        found = dispatcher.perform(
            [request(algorithms.Algorithm("dies", tmp_path, odd=(1,)), seed) for seed in range(3)]
        )
        assert found[1].failure
        found = dispatcher.perform(
            [request(algorithms.Algorithm("raises", tmp_path, odd=(4,)), seed) for seed in range(3, 6)]
        )
    finally:
        dispatcher.close()
    assert found[4].failure
    assert (tmp_path / "run-1").read_text().count("\n") in (3, 4)
    assert (tmp_path / "run-4").read_text().count("\n") == 3


def test_what_a_run_does_to_its_process_is_undone_before_the_next_run(algorithms: ModuleType, tmp_path: Path) -> None:
    dispatcher = Watched(1)
    try:
        algorithm = algorithms.Algorithm("moves", tmp_path, odd=range(8))
        assert len(dispatcher.perform([request(algorithm, seed) for seed in range(8)])) == 8
    finally:
        dispatcher.close()
    assert dispatcher.sizes[0] == 8
    assert {(tmp_path / f"run-{seed}").read_text().strip() for seed in range(8)} == {str(Path.cwd())}


def test_runs_that_wait_in_a_batch_can_be_withdrawn_and_the_others_come(algorithms: ModuleType, tmp_path: Path) -> None:
    blocking = request(algorithms.Algorithm("waits", tmp_path, odd=(0,)))
    short = [request(algorithms.Algorithm("raises"), seed) for seed in range(1, 11)]
    dispatcher = Watched(1)
    try:
        dispatcher._send([blocking])
        for each in short:
            dispatcher.submit(each)
        assert dispatcher.in_flight == 11
        assert dispatcher.withdraw([short[0]]) == [short[0]]  # it was not even sent
        dispatcher.wake()
        assert dispatcher.collect() == []
        assert dispatcher.sizes == [1, 9]
        assert dispatcher.withdraw(short[:4]) == short[1:4]
        assert dispatcher.in_flight == 7
        (tmp_path / "open").touch()
        found = []
        while dispatcher.in_flight:
            found += [outcome.request.seed for outcome in dispatcher.collect()]
    finally:
        dispatcher.close()
    assert found == [0, *range(5, 11)]


def test_runs_that_take_longer_than_thought_are_not_kept_together(algorithms: ModuleType) -> None:
    dispatcher = Watched(2)
    sent = [request(algorithms.Algorithm("sleeps", odd=range(10)), seed) for seed in range(10)]
    try:
        found = dispatcher.perform(sent)
    finally:
        dispatcher.close()
    assert sorted(found) == list(range(10))
    assert dispatcher.sizes[:2] == [5, 5]
    assert dispatcher.sizes[-1] == 1
    assert len(perform_all(sent[:3])) == 1


def test_what_cannot_be_sent_or_loaded_is_named_though_it_was_sent_with_others(algorithms: ModuleType) -> None:
    class Local(Named):
        def run(self, *_given: Any) -> None: ...

    good = [request(algorithms.Algorithm("good"), seed) for seed in range(3)]
    for bad, message in ((Local("local"), "'local' on 'p9' cannot be sent"), (None, "'traps' on 'p9': .*no such lic")):
        dispatcher = Watched(1)
        found: list[int] = []
        try:
            with pytest.raises(InvalidInputError, match=message):  # noqa: PT012 - what came before it is kept
                for outcome in dispatcher.stream([*good, request(bad or algorithms.Algorithm("traps"), 9)]):
                    found.append(outcome.request.seed)  # noqa: PERF401
        finally:
            dispatcher.close(at_once=True)
        assert 4 in dispatcher.sizes
        assert set(found) <= {0, 1, 2}


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured on Linux only")
@pytest.mark.parametrize("limits", [{"run_timeout": 60.0}, {"run_memory": 5000.0}])
def test_limits_hold_for_one_run_so_each_is_sent_alone(algorithms: ModuleType, limits: dict[str, float]) -> None:
    dispatcher = Watched(1, None, **limits)
    try:
        assert len(dispatcher.perform([request(algorithms.Algorithm("good"), seed) for seed in range(5)])) == 5
    finally:
        dispatcher.close()
    assert dispatcher.sizes == [1] * 5


def test_runs_of_unknown_length_are_sent_alone_until_one_has_finished(algorithms: ModuleType) -> None:
    dispatcher = Watched(1, seconds=10.0)
    try:
        dispatcher.perform([request(algorithms.Algorithm("good"), seed) for seed in range(3)])
        assert dispatcher.sizes == [1] * 3
        assert dispatcher.room == 2 - dispatcher.in_flight
        for _ in range(8):  # by now they are known to be shorter than was thought
            dispatcher.perform([request(algorithms.Algorithm("good"), seed) for seed in range(10)])
        assert 10 in dispatcher.sizes
        assert dispatcher.room > 2
    finally:
        dispatcher.close()


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.5, 50)), max_size=100),
    st.lists(st.floats(1e-7, 0.02), min_size=3, max_size=3),
    st.integers(-5, 70),
)
def test_batches_keep_the_order_and_are_neither_long_nor_many(
    runs: list[tuple[str, float]], seconds: list[float], workers: int
) -> None:
    times = RunTimes()
    for name, each in zip("abc", seconds, strict=True):
        times.note(request(Named(name), horizon=10), each)
    sent = [request(Named(name), horizon=horizon) for name, horizon in runs]
    found = list(batches_of(sent, times, workers))
    assert [each for batch in found for each in batch] == sent
    for batch in found:
        assert 1 <= len(batch) <= 32
        assert len(batch) == 1 or sum(times.expected(each) or 0 for each in batch) <= 0.05 + 1e-9
    if 0 < len(sent) <= workers:
        assert len(found) == len(sent)


def test_expected_seconds_follow_the_algorithm_and_the_horizon() -> None:
    times = RunTimes()
    first = request(Named("a"), horizon=10)
    assert times.expected(first) is None
    assert not is_short(first, times)
    assert enough_for_a_worker(times) == 2
    times.note(first, 0.01)
    assert times.expected(first) == pytest.approx(0.01)
    assert times.expected(request(Named("a"), horizon=30)) == pytest.approx(0.03)
    assert times.expected(request(Named("b"))) is None
    assert is_short(first, times)
    assert not is_short(request(Named("a"), horizon=30), times)
    assert enough_for_a_worker(times) == 10
    for _ in range(100):
        times.note(first, 0.0)
    assert enough_for_a_worker(times) == 64
    for _ in range(100):
        times.note(first, 9.0)
    assert times.expected(first) == pytest.approx(9.0)
    assert enough_for_a_worker(times) == 2


def test_a_run_that_changes_its_process_for_good_has_no_successor_in_it(
    algorithms: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_HANDED_BACK", 100.0)
    sent = [request(algorithms.Algorithm("good"), seed) for seed in range(3)]
    assert len(perform_all(sent)) == 3
    monkeypatch.setattr(batches, "restore_process_state", lambda: contextlib.nullcontext(Restored(complete=False)))
    assert len(perform_all(sent)) == 1
