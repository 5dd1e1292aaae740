"""The worker's side: each run is carried out in a child process, which may hang or crash without harm."""

from __future__ import annotations

import json
import multiprocessing
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias

from polarbear_plugins.errors import InvalidInputError, PolarBearError
from polarbear_plugins.execution.local_processes import LocalProcesses
from polarbear_plugins.execution.requests import UnfitWorkerError
from polarbear_plugins.execution.starting import WorkersCannotStartError
from polarbear_plugins.integrations.dask_executor.messages import perform_all_written, write_problem
from polarbear_plugins.integrations.dask_executor.versions import describe_misfit, present_versions

_IDLE = 60.0  # seconds after which unused child processes are ended: their race may have been killed


def run_message(text: str, given: Sequence[bytes | None]) -> str:
    """Carry out the runs in a message and return a list of their answers, or one problem of all; both are JSON text.

    Parameters
    ----------
    given
        For each run, its parts that were given as Python, pickled.
    """
    from distributed import get_worker  # here, since child processes import this module, too

    worker = get_worker()
    message = json.loads(text)
    reason = describe_misfit(present_versions(), message["needs"])
    if reason is None:
        try:
            key = (message["executor"], message["timeout"], message["memory"])
            runs = list(zip(map(json.dumps, message["runs"]), given, strict=True))
            return _run_in_child(key, worker.state.nthreads, message["name"], runs, worker.address)
        except (WorkersCannotStartError, InvalidInputError) as problem:  # the latter: it cannot enforce a limit
            reason = str(problem)
        except PolarBearError as problem:
            return write_problem(problem)
    return _write_refusal(reason, worker.address)


def end_children(executor: str) -> None:
    """End the child processes of an executor, and with them its runs, at once."""
    with _lock:
        ended = [_children.pop(key) for key in list(_children) if key[0] == executor]
    for children in ended:
        children.processes.shutdown(cancel_futures=True)


def end_runs(least: Mapping[str, float]) -> dict[str, float]:
    """End runs that have taken at least so many seconds, by their names; returns those, with these seconds."""
    with _lock:
        running = {name: _running[name] for name in least if name in _running}
    return {
        name: seconds
        for name, (processes, future) in running.items()
        for seconds in processes.end({future: least[name]}).values()
    }


class _Children:
    """Child processes for the runs of one executor."""

    def __init__(self, count: int, timeout: float | None, memory: float | None) -> None:
        # multiprocessing does not let daemons have child processes, and Dask's workers are daemons.
        if multiprocessing.current_process().daemon:
            multiprocessing.current_process().daemon = False
        self.processes = LocalProcesses(count, timeout, with_main=False, memory=memory)
        self.busy = 0
        self.used = time.monotonic()


_lock = threading.Lock()
_Key: TypeAlias = tuple[str, float | None, float | None]  # the executor, its limits of time and memory
_children: dict[_Key, _Children] = {}
_running: dict[str, tuple[LocalProcesses, Future[list[str]]]] = {}  # by the names of the runs


def _run_in_child(key: _Key, count: int, name: str, runs: list[tuple[str, bytes | None]], address: str) -> str:
    with _lock:
        children = _children.get(key)
        if children is None:
            children = _children[key] = _Children(count, *key[1:])
            threading.Thread(target=_end_when_idle, args=(key, children), daemon=True).start()
        children.busy += 1
        future = children.processes.submit(perform_all_written, runs)
        _running[name] = children.processes, future
    try:
        answers: list[str] = future.result()
    finally:
        with _lock:
            del _running[name]
            children.busy -= 1
            children.used = time.monotonic()
    for answer in answers:
        problem: dict[str, Any] = json.loads(answer)
        if problem.get("problem") == UnfitWorkerError.__name__:
            return _write_refusal(problem["reason"], address)
    return json.dumps(answers)


def _end_when_idle(key: _Key, children: _Children) -> None:
    while True:
        time.sleep(_IDLE)
        with _lock:
            if _children.get(key) is not children:
                return
            if not children.busy and time.monotonic() - children.used > _IDLE:
                del _children[key]
                break
    children.processes.shutdown()


def _write_refusal(reason: str, address: str) -> str:
    return json.dumps({"refused": address, "reason": reason})
