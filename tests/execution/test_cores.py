"""Processes that keep to cores of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import pytest

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.execution import cores
from polarbear_plugins.execution.cores import cores_for
from polarbear_plugins.execution.dispatcher import Dispatcher
from polarbear_plugins.execution.local_processes import LocalProcesses

needs_affinity = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system has no such choice")


def mine(executor: LocalProcesses) -> list[set[int]]:
    """Cores of each process: all of them are kept busy at once."""
    futures = [executor.submit(time.sleep, 0.3) for _ in range(executor.workers)]
    futures += [executor.submit(os.sched_getaffinity, 0) for _ in range(20 * executor.workers)]
    return [future.result() for future in futures[executor.workers :]]


@needs_affinity
def test_each_process_has_a_core_of_its_own_and_so_has_its_successor() -> None:
    available = os.sched_getaffinity(0)
    workers = min(2, len(available))
    with LocalProcesses(workers, pin=True) as executor:
        found = mine(executor)
        assert all(len(each) == 1 and each <= available for each in found)
        assert len(set(map(frozenset, found))) <= workers
        for future in [executor.submit(os._exit, 1) for _ in range(workers)]:
            assert future.exception() is not None
        pinned = {worker.core for worker in executor._workers}
        found = mine(executor)
        assert {core for each in found for core in each} <= {worker.core for worker in executor._workers} | pinned
        assert len({worker.core for worker in executor._workers}) == len(executor._workers)
    assert os.sched_getaffinity(0) == available


@needs_affinity
def test_what_a_run_starts_keeps_to_the_same_core() -> None:
    ask = [sys.executable, "-c", "import os; print(*os.sched_getaffinity(0))"]
    with LocalProcesses(1, pin=True) as executor:
        assert {int(executor.submit(subprocess.check_output, ask).result())} == mine(executor)[0]


@needs_affinity
def test_processes_share_all_cores_unless_told_otherwise() -> None:
    with LocalProcesses(1) as executor:
        assert executor.submit(os.sched_getaffinity, 0).result() == os.sched_getaffinity(0)


@needs_affinity
def test_more_workers_than_cores_are_refused() -> None:
    count = len(os.sched_getaffinity(0))
    assert sorted(cores_for(count)) == sorted(os.sched_getaffinity(0))
    for make in (LocalProcesses, Dispatcher):
        with pytest.raises(
            InvalidInputError, match=f"{count + 1} workers need .* may use {count}. Use at most {count}"
        ):
            make(count + 1, pin=True)  # type: ignore[operator]


@needs_affinity
def test_one_core_is_left_to_the_race_unless_a_number_of_workers_is_given() -> None:
    assert LocalProcesses(pin=True).workers == max(1, len(os.sched_getaffinity(0)) - 1)
    assert LocalProcesses().workers == len(os.sched_getaffinity(0))


@needs_affinity
def test_second_threads_of_a_core_are_used_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0, 1, 2, 3})
    monkeypatch.setattr(cores, "_place_in_core", lambda core: core % 2)
    assert cores_for(4) == [0, 2, 1, 3]
    assert cores_for(2) == [0, 2]


def test_a_system_without_a_choice_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    with pytest.raises(InvalidInputError, match=r"needs Linux.*pin=False"):
        cores_for(1)


@pytest.mark.parametrize("how", [{"workers": 0}, {"executor": LocalProcesses(1)}])
def test_only_local_processes_can_be_pinned(how: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="pin is for local processes"):
        Dispatcher(**how, pin=True)
