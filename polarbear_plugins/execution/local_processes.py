"""A pool of local processes in which a call that hangs or crashes does not affect the others.

The pools of the standard library break as a whole when one process dies, and cannot end a single call that hangs.
"""

from __future__ import annotations

import collections
import contextlib
import multiprocessing
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from multiprocessing.connection import wait
from typing import Any

from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.environment import available_cores
from polarbear_plugins.errors import InvalidInputError, PolarBearError, foreign_text
from polarbear_plugins.execution.channel import LARGEST
from polarbear_plugins.execution.memory import can_be_measured
from polarbear_plugins.execution.starting import (
    UNGUARDED,
    cannot_start,
    describe_exit,
    exit_if_unguarded,
    start_context,
)
from polarbear_plugins.execution.worker_process import MEMORY_CHECKS, Limits, ProcessDiedError, WorkerProcess

_START_TRIES = 3
_START_PAUSE = 0.2  # seconds before a start is tried again, and more after each failure
_LONGEST_PAUSE = 10.0
_LONGEST_WAIT = 0.5  # seconds; a wait of twice that means that this process was suspended
_SENDING = 0.001  # seconds until a process may have read more of a large call
_MOST_CALLS = 5_000  # a new process takes tens of milliseconds, and as long as imports take in its first call
_MOST_GROWTH = 500.0  # megabytes


class UnsendableError(PolarBearError):
    """An object cannot be pickled, so it cannot be sent to another process."""


class LocalProcesses(Executor):
    """Executor of local processes; a call that hangs or crashes costs its own process and nothing else.

    Parameters
    ----------
    workers
        Number of processes.
    timeout
        Seconds after which a call is ended, counted from its start; ``None`` for no limit.
    with_main
        Whether the processes import the main module, which calls of its functions need.
    memory
        Megabytes that a call may use beyond what its process used before, together with the processes it starts;
        ``None`` for no limit.  It is measured every 0.2 s, and only on Linux.
    most_calls, most_growth
        A process is replaced by a new one after so many calls, and when it has grown by so many megabytes since its
        first call, so that one that loses memory does not use up all of it.

    Examples
    --------
    >>> with LocalProcesses(1) as executor:
    ...     executor.submit(divmod, 7, 2).result()
    (3, 1)
    """

    def __init__(
        self,
        workers: int | None = None,
        timeout: float | None = None,
        *,
        with_main: bool = True,
        memory: float | None = None,
        most_calls: int = _MOST_CALLS,
        most_growth: float = _MOST_GROWTH,
    ) -> None:
        self._with_main = with_main
        self._count = as_whole_number(workers or available_cores(), "workers", at_least=1)
        self._limits = Limits(
            timeout=None if timeout is None else as_number(timeout, "timeout"),
            memory=None if memory is None else as_number(memory, "memory", above=0),
            most_calls=as_whole_number(most_calls, "most_calls", at_least=1),
            most_growth=as_number(most_growth, "most_growth", above=0),
        )
        if memory is not None and not can_be_measured():
            raise InvalidInputError(
                "A limit for the memory of runs needs Linux, whose /proc says how much a process uses; there is none "
                "here. Limit all processes together by the means of the system."
            )
        self._context = start_context()
        self._lock = threading.Lock()
        self._waiting: collections.deque[tuple[Future[Any], bytes]] = collections.deque()
        self._workers: list[WorkerProcess] = []
        self._closing = False
        self._failed_starts = 0
        self._next_start = 0.0
        self._missing = 0
        self._wakeup_reader, self._wakeup_writer = multiprocessing.Pipe(duplex=False)
        self._supervisor: threading.Thread | None = None

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule a call; raises :class:`UnsendableError` if it cannot be pickled."""
        exit_if_unguarded()
        message = pickle_or_raise((function, args, kwargs))
        future: Future[Any] = Future()
        with self._lock:
            if self._closing:
                raise RuntimeError("cannot submit after shutdown")
            self._waiting.append((future, message))
            if self._supervisor is None:
                self._supervisor = threading.Thread(target=self._supervise, name="polarbear-processes", daemon=True)
                self._supervisor.start()
        self._wakeup_writer.send_bytes(b"!")
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the scheduled calls finish, or end everything at once if ``cancel_futures``."""
        with self._lock:
            self._closing = True
            if cancel_futures:
                while self._waiting:
                    self._waiting.popleft()[0].cancel()
                for worker in list(self._workers):  # a copy: the supervisor removes dead ones meanwhile
                    worker.kill()
        with contextlib.suppress(OSError):
            self._wakeup_writer.send_bytes(b"!")
        if wait and self._supervisor is not None:
            self._supervisor.join()

    def _supervise(self) -> None:
        """Hand out calls, collect results, end overdue calls, replace dead processes; only this thread does so."""
        try:
            while self._step():
                timeout, before = self._longest_wait(), time.monotonic()
                waitables = [waitable for worker in self._workers for waitable in worker.waitables]
                if self._wakeup_reader in wait([self._wakeup_reader, *waitables], timeout):
                    self._wakeup_reader.recv_bytes()
                if timeout is not None:
                    self._extend_deadlines(time.monotonic() - before - timeout)
        except Exception as problem:  # without this thread, waiting calls would never be answered
            with self._lock:
                self._closing = True
            self._fail_waiting(cannot_start(problem, self._with_main))
        finally:
            for worker in self._workers:
                worker.fail(ProcessDiedError("its process was ended"))
                worker.stop()

    def _longest_wait(self) -> float | None:
        """Seconds until there is something to do even if nothing happens; ``None`` for never."""
        now = time.monotonic()
        times = [worker.deadline - now for worker in self._workers if worker.deadline is not None]
        times += [_LONGEST_WAIT] if times else []
        times += [_SENDING for worker in self._workers if worker.sending]
        if self._limits.memory is not None and any(worker.busy for worker in self._workers):
            times.append(MEMORY_CHECKS)
        if self._missing > 0:
            times.append(self._next_start - now)
        return max(0.0, min(times)) if times else None

    def _extend_deadlines(self, overslept: float) -> None:
        """Give calls more time if this process was suspended, as by ctrl-Z: so were the workers."""
        if overslept > _LONGEST_WAIT:
            for worker in self._workers:
                if worker.deadline is not None:
                    worker.deadline += overslept

    def _fail_waiting(self, problem: Exception) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, collections.deque()
        for future, _ in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(problem)

    def _step(self) -> bool:
        """One pass over all workers; whether there is more to do."""
        for worker in list(self._workers):
            was_ready = worker.ready
            worker.receive()
            if worker.ready and not was_ready:
                self._failed_starts, self._next_start = 0, 0.0
            worker.check_limits()
            if worker.sending:
                worker.send_more()
            if worker.idle and worker.worn:
                worker.kill()
            if worker.gone:
                self._remove_worker(worker)
        with self._lock:
            for worker in self._workers:
                while worker.idle and self._waiting:
                    worker.begin(*self._waiting.popleft())
            missing = min(self._count, len(self._waiting) + sum(not worker.idle for worker in self._workers))
            self._missing = missing - len(self._workers)
            done = self._closing and not self._waiting and all(worker.idle or worker.gone for worker in self._workers)
        if self._missing > 0 and time.monotonic() >= self._next_start:
            self._start_workers()
        return not done

    def _start_workers(self) -> None:
        try:
            while self._missing > 0:
                self._workers.append(WorkerProcess(self._context, self._with_main, self._limits))
                self._missing -= 1
        except (OSError, EOFError) as problem:  # no descriptors, no memory, or the fork server has died
            self._count_failed_start(problem)

    def _remove_worker(self, worker: WorkerProcess) -> None:
        self._workers.remove(worker)
        code = worker.stop()
        worker.fail(ProcessDiedError(f"its process died ({describe_exit(code)})"))
        if not worker.ready:
            self._count_failed_start(code)

    def _count_failed_start(self, problem: object) -> None:
        """Try again a little later; give up after a few failures in a row, unless other workers do the work."""
        self._failed_starts += 1
        self._next_start = time.monotonic() + min(_START_PAUSE * self._failed_starts, _LONGEST_PAUSE)
        given_up = self._failed_starts >= _START_TRIES and not any(worker.ready for worker in self._workers)
        if given_up or problem == UNGUARDED:
            self._failed_starts, self._next_start = 0, 0.0
            self._fail_waiting(cannot_start(problem, self._with_main))


def pickle_or_raise(thing: object) -> bytes:
    """Pickle an object for a worker process.

    :raises UnsendableError: it cannot be pickled.
    """
    try:
        message = pickle.dumps(thing)
    except Exception as problem:  # pickling runs the user's code, which may raise anything
        raise UnsendableError(foreign_text(problem)) from None
    if len(message) > LARGEST:
        raise UnsendableError(f"it has {len(message):,} bytes, and at most {LARGEST:,} can be sent")
    return message
