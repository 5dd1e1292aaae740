"""Limits of the memory of runs, and workers that are replaced before they have used up all of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from builders import assert_same_result

from polarbear_plugins import RaceSettings, race
from polarbear_plugins.errors import InvalidInputError, RunWarning
from polarbear_plugins.execution import local_processes
from polarbear_plugins.execution.local_processes import LocalProcesses
from polarbear_plugins.execution.worker_process import RunMemoryError
from polarbear_plugins.plugins.synthetic import SyntheticSuite, synthetic_portfolio

CALLS = """
import os
import resource
import time
import warnings
from pathlib import Path

import numpy as np

from polarbear_plugins import Trajectory
from polarbear_plugins.execution.memory import MEGABYTE, resident_bytes

kept = []
log = Path(__file__).with_name("log")


def size():
    return resident_bytes(["self"]) / MEGABYTE


def allocate(megabytes):
    '''Use memory, piece by piece.'''
    pieces = []
    for _ in range(megabytes // 20):
        pieces.append(np.ones(20 * MEGABYTE, dtype=np.uint8))
        time.sleep(0.01)
    return pieces


def leak(megabytes):
    kept.append(np.ones(megabytes * MEGABYTE, dtype=np.uint8))
    return os.getpid(), size()


def lower_limit():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    return os.getpid()


def fork():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def allocate_in_a_child(megabytes):
    if not fork():
        allocate(megabytes)
        time.sleep(600)
    os.wait()


def share_with_children(megabytes, children):
    pieces = allocate(megabytes)
    pids = [fork() for _ in range(children)]
    if 0 in pids:
        time.sleep(600)
    time.sleep(1)
    for pid in pids:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    return len(pieces)


def honest(problem, horizon, seed):
    return Trajectory(algorithm="?", instance="?", times=[1, 2], best=[seed % 7 + 10, seed % 5], horizon=horizon)


def greedy(problem, horizon, seed):
    allocate(2000)
    time.sleep(600)


def leaky(problem, horizon, seed):
    with log.open("a") as file:
        file.write(f"{leak(100)[1]}\\n")
    return honest(problem, horizon, seed)
"""

TIMES = [1, 2]
SETTINGS = RaceSettings(seed=5, draws=100, max_rounds=1, batch_size=4, batch_min=4)

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="memory is measured on Linux only")


@pytest.fixture
def calls(worker_module: Callable[[str, str], ModuleType]) -> ModuleType:
    """Functions for workers."""
    return worker_module("calls", CALLS)


@needs_proc
@pytest.mark.slow
def test_a_call_that_uses_too_much_memory_is_ended_and_the_others_go_on(calls: ModuleType) -> None:
    with LocalProcesses(2, memory=300) as executor:
        greedy = executor.submit(calls.greedy, None, 1.0, 1)
        modest = [executor.submit(calls.leak, 10) for _ in range(10)]
        with pytest.raises(RunMemoryError, match="it used more than 300 MB of memory and was ended"):
            greedy.result(timeout=120)
        assert all(future.result() for future in modest)


@needs_proc
@pytest.mark.slow
def test_what_was_used_before_a_call_is_not_counted(calls: ModuleType) -> None:
    with LocalProcesses(1, memory=300, most_growth=5000) as executor:
        sizes = [executor.submit(calls.leak, 100).result()[1] for _ in range(6)]
        assert max(sizes) > 600
        assert executor.submit(calls.share_with_children, 200, 0).result() == 10


@needs_proc
@pytest.mark.slow
def test_the_memory_of_processes_that_a_call_starts_counts_and_what_they_share_counts_once(calls: ModuleType) -> None:
    with LocalProcesses(1, memory=300) as executor:
        assert executor.submit(calls.share_with_children, 200, 4).result(timeout=120) == 10
        with pytest.raises(RunMemoryError):
            executor.submit(calls.allocate_in_a_child, 2000).result(timeout=120)


@needs_proc
@pytest.mark.slow
def test_a_run_that_uses_too_much_memory_fails_alone_and_the_race_goes_on(calls: ModuleType) -> None:
    portfolio = {"honest": calls.honest, "greedy": calls.greedy}
    with pytest.warns(RunWarning, match="it used more than 500 MB"):
        found = race(portfolio, ["p0", "p1", "p2", "p3"], TIMES, SETTINGS, workers=2, run_memory=500)
    assert [failure.algorithm for failure in found.failures] == ["greedy"] * 4
    assert {failure.reason for failure in found.failures} == {"it used more than 500 MB of memory and was ended"}
    assert np.isfinite(found.state.table.values[:, :, 0]).all()
    assert np.isposinf(found.state.table.values[:, :, 1]).all()


@needs_proc
@pytest.mark.slow
def test_a_race_whose_algorithm_loses_memory_does_not_use_up_all_of_it(calls: ModuleType) -> None:
    settings = RaceSettings(seed=5, draws=100, max_rounds=1, batch_size=20, batch_min=20)
    problems = [f"p{number}" for number in range(20)]
    portfolio = {"honest": calls.honest, "leaky": calls.leaky}
    found = race(portfolio, problems, TIMES, settings, workers=1)
    sizes = [float(line) for line in calls.log.read_text().splitlines()]
    assert len(sizes) == 20  # which lost 2 GB altogether
    assert max(sizes) < 1000
    honest = {"honest": calls.honest, "leaky": calls.honest}
    assert_same_result(found, race(honest, problems, TIMES, settings, workers=0), about=False)


def test_a_process_is_replaced_after_its_last_call_and_results_stay_the_same() -> None:
    # Given as Python: a new process would first load all plugins.
    given = synthetic_portfolio()[:3], SyntheticSuite(), TIMES, SETTINGS
    with LocalProcesses(2, most_calls=1) as executor:
        found = race(*given, executor=executor)
    assert_same_result(found, race(*given, workers=0), about=False)
    with LocalProcesses(1, most_calls=3) as executor:
        pids = [executor.submit(os.getpid).result() for _ in range(9)]
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [3, 3, 3]


@needs_proc
def test_a_process_that_grows_is_replaced(calls: ModuleType) -> None:
    with LocalProcesses(1, most_growth=100) as executor:
        found = [executor.submit(calls.leak, 40).result() for _ in range(8)]
    assert len({pid for pid, _ in found}) == 2  # the first call of each counts as what its process needs
    assert all(size < found[0][1] + 170 for _, size in found)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may raise every limit again")
def test_a_process_that_was_changed_for_good_is_replaced(calls: ModuleType) -> None:
    with LocalProcesses(1) as executor:
        assert executor.submit(calls.lower_limit).result() != executor.submit(os.getpid).result()


def test_a_limit_that_cannot_be_kept_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def start(**how: object) -> None:
        race("synthetic", "synthetic", TIMES, SETTINGS, run_memory=500, journal=tmp_path / "race.db", **how)  # type: ignore[arg-type]

    with pytest.raises(InvalidInputError, match="run_memory needs processes that can be watched and ended"):
        start(workers=0)
    with ThreadPoolExecutor(1) as threads, pytest.raises(InvalidInputError, match="run_memory needs processes"):
        start(executor=threads)
    monkeypatch.setattr(local_processes, "can_be_measured", lambda: False)
    with pytest.raises(InvalidInputError, match="needs Linux"):
        start(workers=1)
    assert not (tmp_path / "race.db").exists()
