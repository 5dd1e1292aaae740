"""A pool of local processes in which a call that hangs or crashes does not affect the others.

The pools of the standard library break as a whole when one process dies, and cannot end a single call that hangs.
"""

from __future__ import annotations

import collections
import contextlib
import math
import pickle
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from typing import Any

from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.environment import available_cores
from polarbear_plugins.errors import InvalidInputError, PolarBearError, foreign_text
from polarbear_plugins.execution.channel import LARGEST
from polarbear_plugins.execution.cores import cores_for
from polarbear_plugins.execution.memory import can_be_measured
from polarbear_plugins.execution.readiness import Readiness
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
        Number of processes; ``None`` for one per core, or with ``pin`` one fewer: the caller needs one, too.
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
    pin
        Whether each process, with those that it starts, keeps to a core of its own, so that they do not disturb each
        other's times; only on Linux.  Others may use the same cores.

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
        pin: bool = False,
    ) -> None:
        self._with_main = with_main
        cores = max(1, available_cores() - 1) if pin else available_cores()
        self._count = as_whole_number(workers or cores, "workers", at_least=1)
        self._cores: list[int | None] = list(cores_for(self._count)) if pin else [None] * self._count
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
        self._idle: dict[WorkerProcess, None] = {}  # in the order in which they became so
        self._sending: set[WorkerProcess] = set()
        self._closing = False
        self._failed_starts = 0
        self._next_start = 0.0
        self._missing = 0
        self._woken = False
        self._supervisor: threading.Thread | None = None

    @property
    def workers(self) -> int:
        """Number of processes, as many as there are calls to perform at once."""
        return self._count

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
                self._start_supervisor()
            self._wake()
        return future

    def _start_supervisor(self) -> None:
        self._wakeup_reader, self._wakeup_writer = socket.socketpair()
        # A worker, and whether it is its process that has ended; None for a wake-up.
        self._readiness: Readiness[tuple[WorkerProcess, bool] | None] = Readiness()
        self._readiness.add(self._wakeup_reader, None)
        self._supervisor = threading.Thread(target=self._supervise, name="polarbear-processes", daemon=True)
        self._supervisor.start()

    def _wake(self) -> None:
        """Let the supervisor look for what is new; the caller holds the lock."""
        if self._supervisor is not None and not self._woken:
            self._woken = True
            with contextlib.suppress(OSError):  # it has ended
                self._wakeup_writer.send(b"!")

    def end(self, least: Mapping[Future[Any], float]) -> dict[Future[Any], float]:
        """End calls that are being performed, with their processes, which are replaced.

        Returns those that were ended, and the seconds that they had taken.  They raise :class:`RunEndedError`, or have
        the result that arrived at the same moment.

        Parameters
        ----------
        least
            Calls, and the seconds that each must have taken.
        """
        ended: dict[Future[Any], float] = {}
        with self._lock:  # so that none of these workers is given another call, or is removed
            for worker in self._workers:
                future, seconds = worker.call, time.monotonic() - worker.began
                if future is not None and seconds >= least.get(future, math.inf) and not worker.gone:
                    ended[future] = seconds
                    worker.end()
        return ended

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the scheduled calls finish, or end everything at once if ``cancel_futures``."""
        with self._lock:
            self._closing = True
            if cancel_futures:
                while self._waiting:
                    self._waiting.popleft()[0].cancel()
                for worker in list(self._workers):  # a copy: the supervisor removes dead ones meanwhile
                    worker.kill()
            self._wake()
        if wait and self._supervisor is not None:
            self._supervisor.join()

    def _supervise(self) -> None:
        """Hand out calls, collect results, end overdue calls, replace dead processes; only this thread does so."""
        try:
            ready: dict[WorkerProcess, bool] = {}
            while self._step(ready):
                timeout, before = self._longest_wait(), time.monotonic()
                ready = self._wait(timeout)
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
            self._readiness.close()
            self._wakeup_reader.close()
            self._wakeup_writer.close()

    def _wait(self, timeout: float | None) -> dict[WorkerProcess, bool]:
        """Wait until something happens; returns the workers with news, and whether their processes have ended."""
        ready: dict[WorkerProcess, bool] = {}
        for news in self._readiness.wait(timeout):
            if news is None:
                with self._lock:
                    self._wakeup_reader.recv(1)
                    self._woken = False
            else:
                worker, ended = news
                ready[worker] = ended or ready.get(worker, False)
        return ready

    def _longest_wait(self) -> float | None:
        """Seconds until there is something to do even if nothing happens; ``None`` for never."""
        now = time.monotonic()
        times: list[float] = []
        if self._limits.timeout is not None:
            times = [worker.deadline - now for worker in self._workers if worker.deadline is not None]
            times += [_LONGEST_WAIT] if times else []
        times += [_SENDING] if self._sending else []
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

    def _step(self, ready: Mapping[WorkerProcess, bool]) -> bool:
        """Deal with workers that have news, and with whatever is due; whether there is more to do."""
        for worker, ended in ready.items():
            self._receive(worker, ended)
        for worker in list(self._sending):
            worker.send_more()
            self._note_state(worker)
        if self._limits.timeout is not None or self._limits.memory is not None:
            for worker in list(self._workers):
                worker.check_limits()
                if worker.gone:
                    self._remove_worker(worker)
        with self._lock:
            while self._idle and self._waiting:
                worker = self._idle.popitem()[0]  # the last one: it has in its caches what it needs
                while worker.idle and self._waiting:
                    worker.begin(*self._waiting.popleft())
                self._note_state(worker)
            missing = min(self._count, len(self._waiting) + len(self._workers) - len(self._idle))
            self._missing = missing - len(self._workers)
            done = self._closing and not self._waiting and all(worker.idle or worker.gone for worker in self._workers)
        if self._missing > 0 and time.monotonic() >= self._next_start:
            self._start_workers()
        return not done

    def _receive(self, worker: WorkerProcess, ended: bool) -> None:
        if ended:
            self._readiness.remove(worker.sentinel)  # it would be ready forever
        was_ready = worker.ready
        worker.receive(ended)
        if worker.ready and not was_ready:
            self._failed_starts, self._next_start = 0, 0.0
        if worker.idle and worker.worn:
            worker.kill()
        if worker.gone:
            self._remove_worker(worker)
        else:
            self._note_state(worker)

    def _note_state(self, worker: WorkerProcess) -> None:
        if worker.idle:
            self._idle[worker] = None
        if worker.sending:
            self._sending.add(worker)
        else:
            self._sending.discard(worker)

    def _start_workers(self) -> None:
        try:
            while self._missing > 0:
                worker = WorkerProcess(self._context, self._with_main, self._limits, self._cores[-1])
                self._cores.pop()
                self._workers.append(worker)
                self._readiness.add(worker.channel.end, (worker, False))
                self._readiness.add(worker.sentinel, (worker, True))
                self._missing -= 1
        except (OSError, EOFError) as problem:  # no descriptors, no memory, or the fork server has died
            self._count_failed_start(problem)

    def _remove_worker(self, worker: WorkerProcess) -> None:
        with self._lock:
            self._workers.remove(worker)
        self._cores.append(worker.core)
        self._idle.pop(worker, None)
        self._sending.discard(worker)
        self._readiness.remove(worker.channel.end)
        self._readiness.remove(worker.sentinel)
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
