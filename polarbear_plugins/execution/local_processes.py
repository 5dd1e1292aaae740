"""A pool of local processes in which a call that hangs or crashes does not affect the others.

The pools of the standard library break as a whole when one process dies, and cannot end a single call that hangs.
"""

from __future__ import annotations

import collections
import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.environment import available_cores
from polarbear_plugins.errors import PolarBearError
from polarbear_plugins.execution.worker import RemoteError, describe_exception, end_group, serve, unpickle

_START_TRIES = 3
_EXIT_SECONDS = 1.0  # for a process to exit after it has closed its connection
_LONGEST_WAIT = 0.5  # seconds; a wait of twice that means that this process was suspended


class ProcessDiedError(PolarBearError):
    """The process of a call ended before the call did."""


class RunTimeoutError(PolarBearError, TimeoutError):
    """A call took longer than allowed, and its process was ended."""


class UnsendableError(PolarBearError):
    """An object cannot be pickled, so it cannot be sent to another process."""


class WorkersCannotStartError(PolarBearError):
    """Worker processes end before they are ready for their first call."""


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

    Examples
    --------
    >>> with LocalProcesses(1) as executor:
    ...     executor.submit(divmod, 7, 2).result()
    (3, 1)
    """

    def __init__(self, workers: int | None = None, timeout: float | None = None, *, with_main: bool = True) -> None:
        self._with_main = with_main
        self._count = as_whole_number(workers or available_cores(), "workers", at_least=1)
        self._timeout = None if timeout is None else as_number(timeout, "timeout")
        methods = multiprocessing.get_all_start_methods()
        # Not a plain fork, which would copy locks that other threads hold.
        self._context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            self._context.set_forkserver_preload(
                ["polarbear_plugins.execution.worker", "polarbear_plugins.execution.requests"]
            )
        self._lock = threading.Lock()
        self._waiting: collections.deque[tuple[Future[Any], bytes]] = collections.deque()
        self._workers: list[_Worker] = []
        self._closing = False
        self._failed_starts = 0
        self._wakeup_reader, self._wakeup_writer = multiprocessing.Pipe(duplex=False)
        self._supervisor: threading.Thread | None = None

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule a call; raises :class:`UnsendableError` if it cannot be pickled."""
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
                deadlines = [worker.deadline for worker in self._workers if worker.deadline is not None]
                before = time.monotonic()
                timeout = min(_LONGEST_WAIT, max(0.0, min(deadlines) - before)) if deadlines else None
                waitables = [waitable for worker in self._workers for waitable in worker.waitables]
                if self._wakeup_reader in wait([self._wakeup_reader, *waitables], timeout):
                    self._wakeup_reader.recv_bytes()
                if timeout is not None:
                    self._extend_deadlines(time.monotonic() - before - timeout)
        except Exception as problem:  # without this thread, waiting calls would never be answered
            with self._lock:
                self._closing = True
            self._fail_waiting(_cannot_start(problem))
        finally:
            for worker in self._workers:
                worker.fail(ProcessDiedError("its process was ended"))
                worker.stop()

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
            worker.receive()
            if worker.deadline is not None and time.monotonic() > worker.deadline:
                worker.fail(RunTimeoutError(f"it ran for more than {self._timeout:g} s and was ended"))
                worker.kill()
            if worker.gone:
                self._remove_worker(worker)
        with self._lock:
            for worker in self._workers:
                while worker.idle and self._waiting:
                    worker.begin(*self._waiting.popleft(), self._timeout)
            missing = min(self._count, len(self._waiting) + sum(not worker.idle for worker in self._workers))
            missing -= len(self._workers)
            done = self._closing and not self._waiting and all(worker.idle or worker.gone for worker in self._workers)
        for _ in range(missing):
            self._workers.append(_Worker(self._context, self._with_main))
        return not done

    def _remove_worker(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        code = worker.stop()
        worker.fail(ProcessDiedError(f"its process died ({_describe_exit(code)})"))
        self._failed_starts = 0 if worker.ready else self._failed_starts + 1
        if self._failed_starts >= _START_TRIES:
            self._failed_starts = 0
            self._fail_waiting(_cannot_start(_describe_exit(code)))


def pickle_or_raise(thing: object) -> bytes:
    """Pickle an object for a worker process.

    :raises UnsendableError: it cannot be pickled.
    """
    try:
        return pickle.dumps(thing)
    except Exception as problem:  # pickling runs the user's code, which may raise anything
        raise UnsendableError(str(problem)) from None


class _Worker:
    """A process and the call that it is performing."""

    def __init__(self, context: Any, with_main: bool) -> None:
        self.connection, theirs = multiprocessing.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), name="polarbear-worker", daemon=True)
        self.ready = False
        self.gone = False
        self.deadline: float | None = None
        self._future: Future[Any] | None = None
        with _main_module(with_main):
            self.process.start()
        theirs.close()  # so that the connection reports EOF when the process ends
        self._leader: int | None = self.process.pid  # of its process group
        self._sentinel: list[int] = [self.process.sentinel]

    @property
    def waitables(self) -> list[Any]:
        """What to wait for: an answer, or the end of the process, since a child of it may keep the connection open."""
        return [self.connection, *self._sentinel]

    @property
    def idle(self) -> bool:
        """Whether it can accept a call."""
        return self.ready and not self.gone and self._future is None

    def begin(self, future: Future[Any], message: bytes, timeout: float | None) -> None:
        if not future.set_running_or_notify_cancel():
            return
        self._future = future
        self.deadline = None if timeout is None else time.monotonic() + timeout
        try:
            self.connection.send_bytes(message)
        except OSError:
            self.gone = True

    def receive(self) -> None:
        """Handle all messages from the process."""
        try:
            ended = self._has_ended()
            while not self.gone and self.connection.poll():
                message = self.connection.recv_bytes()
                if not self.ready:
                    self.ready = True
                    continue
                self._handle_answer(message)
            self.gone = self.gone or ended
        except (EOFError, OSError):
            self.gone = True

    def _handle_answer(self, message: bytes) -> None:
        try:
            problem, answer = unpickle(message)
        except Exception as reason:  # unpickling runs the user's code, which may raise anything
            problem, answer = RemoteError, f"its answer cannot be read ({describe_exception(reason)})"
        future, self._future, self.deadline = self._future, None, None
        if future is not None:
            if problem is None:
                future.set_result(answer)
            else:
                future.set_exception(problem(answer))

    def _has_ended(self) -> bool:
        if not self._sentinel or not wait(self._sentinel, 0):
            return False
        self._sentinel = []
        return not _process_exists(self._leader)  # the sentinel also fires if the fork server has died

    def fail(self, problem: Exception) -> None:
        future, self._future, self.deadline = self._future, None, None
        if future is not None:
            future.set_exception(problem)

    def kill(self) -> None:
        self.gone = True
        end_group(self._leader)
        with contextlib.suppress(OSError, ValueError):
            self.process.kill()

    def stop(self) -> int | None:
        """End the process and return its exit code."""
        self.connection.close()
        if self.gone:  # either it has exited, or a call has closed the connection and is still running
            self.process.join(_EXIT_SECONDS)
        self.kill()
        self.process.join()
        code: int | None = self.process.exitcode
        self.process.close()
        return code


@contextlib.contextmanager
def _main_module(wanted: bool) -> Any:
    """Keep workers from importing the main module if it is not wanted, or not a file (a script read from a pipe)."""
    main = sys.modules["__main__"]
    path, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    if path is None or (wanted and (Path(path).exists() or spec is not None)):
        yield
        return
    del main.__file__
    main.__spec__ = None
    try:
        yield
    finally:
        main.__file__, main.__spec__ = path, spec


def _cannot_start(problem: object) -> WorkersCannotStartError:
    reason = str(problem).strip().partition("\n")[0]
    return WorkersCannotStartError(
        f"Worker processes end before they can work ({reason}). A script that races must guard its start with  "
        'if __name__ == "__main__":  since workers import it; or race with workers=0, in this process.'
    )


def _process_exists(pid: int | None) -> bool:
    if pid is None or sys.platform == "win32":
        return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _describe_exit(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
