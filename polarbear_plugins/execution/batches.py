"""Short runs are sent together: a message costs as much time as a run of a millisecond, on both sides."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

from polarbear_plugins.errors import PolarBearError, describe_exception
from polarbear_plugins.execution.process_state import restore_process_state
from polarbear_plugins.execution.requests import Request, perform, single_threaded
from polarbear_plugins.execution.run_times import RunTimes
from polarbear_plugins.execution.worker import RemoteError
from polarbear_plugins.trajectories.trajectory import Trajectory

#: What came of a run: its trajectory and the seconds that it took, or why it failed; and the seconds of its worker.
Answer: TypeAlias = tuple[tuple[Trajectory, float] | PolarBearError, float]

S = TypeVar("S")
T = TypeVar("T")

_TOGETHER = 0.05  # seconds of runs that are sent together: much more than a message costs, and soon over
_MOST = 32  # runs that are sent together
_HANDED_BACK = (
    0.2  # seconds after which a worker hands back the runs that it has not begun: they are longer than thought
)
_AHEAD = 0.1  # seconds of runs that wait for a worker while the race is busy with something else
_MOST_AHEAD = 64  # runs


def is_short(request: Request, times: RunTimes) -> bool:
    """Whether a run is known to be so short that it should be sent with others."""
    expected = times.expected(request)
    return expected is not None and expected <= _TOGETHER / 2


def enough_for_a_worker(times: RunTimes) -> int:
    """How many runs to have in flight for each worker: one that it performs, and what keeps it busy for a while."""
    expected = times.of_any
    return 2 if expected is None else min(max(2, math.ceil(_AHEAD / max(expected, 1e-9))), _MOST_AHEAD)


def batches_of(requests: Sequence[Request], times: RunTimes, workers: int) -> Iterator[list[Request]]:
    """Divide short runs, in their order, into batches; no more than so many workers can share are kept together."""
    share = min(_MOST, math.ceil(len(requests) / max(1, workers)))
    batch: list[Request] = []
    seconds = 0.0
    for request in requests:
        expected = times.expected(request) or 0.0
        if batch and (len(batch) == share or seconds + expected > _TOGETHER):
            yield batch
            batch, seconds = [], 0.0
        batch.append(request)
        seconds += expected
    if batch:
        yield batch


def perform_all(requests: Sequence[Request]) -> list[Answer]:
    """Perform runs on an executor of any kind; each fails alone.  See :func:`in_turn`."""
    with single_threaded():
        return in_turn(_perform, requests)


def in_turn(perform_one: Callable[[S], T], runs: Sequence[S]) -> list[tuple[T, float]]:
    """Perform runs one after the other; returns what came of each, and the seconds that it took.

    Returns less than asked for if some took longer than thought, or one has changed the process for good: the others
    should be sent again.
    """
    answers: list[tuple[T, float]] = []
    began = time.perf_counter()
    for run in runs:
        start = time.perf_counter()
        if answers and start - began > _HANDED_BACK:
            break
        with _restoring(len(runs) > 1) as restored:
            performed = perform_one(run)
        answers.append((performed, time.perf_counter() - start))
        if restored is not None and not restored.complete:
            break
    return answers


def _perform(request: Request) -> tuple[Trajectory, float] | PolarBearError:
    try:
        return perform(request)
    except KeyboardInterrupt:  # from ctrl-C, which ends the race, not from the run
        raise
    except BaseException as problem:
        # Text: an exception of somebody's own class may not survive its way to another process, and break it instead.
        return RemoteError(describe_exception(problem))


def _restoring(wanted: bool) -> contextlib.AbstractContextManager[Any]:
    """Undo what a run does to its process; threads of one process would undo each other's doings."""
    if wanted and threading.current_thread() is threading.main_thread():
        return restore_process_state()
    return contextlib.nullcontext()
