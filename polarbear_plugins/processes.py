"""Local processes in which one run at a time can hang or crash without harm to the others.

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
import traceback
from collections.abc import Callable
from concurrent.futures import Executor, Future
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from polarbear_plugins.errors import PolarBearError
from polarbear_plugins.validation import as_number, as_whole_number

__all__ = [
    "LocalProcesses",
    "ProcessDiedError",
    "RemoteError",
    "RunTimeoutError",
    "UnloadableError",
    "UnsendableError",
    "WorkersCannotStartError",
    "available_cores",
    "loaded",
    "serialized",
    "told",
]

_START_TRIES = 3


class ProcessDiedError(PolarBearError):
    """The process of a call ended before the call did."""


class RunTimeoutError(PolarBearError, TimeoutError):
    """A call took longer than allowed, and its process was ended."""


class RemoteError(PolarBearError):
    """A call raised an exception in its process."""


class UnloadableError(PolarBearError):
    """What was sent cannot be loaded in the process."""


class UnsendableError(PolarBearError):
    """Something cannot be sent to another process."""


class WorkersCannotStartError(PolarBearError):
    """Processes end before they are ready for their first call."""


class LocalProcesses(Executor):
    """Executor of local processes; a call that hangs or crashes costs its own process and nothing else.

    Parameters
    ----------
    workers
        How many processes.
    timeout
        Seconds after which a call is ended, counted from when it begins; ``None`` for no limit.
    with_main
        Whether the processes import the main module, as they must for calls of its functions.

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
        # Not a plain fork, which copies the locks of running threads.
        self._context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            self._context.set_forkserver_preload([__name__, "polarbear_plugins.execution"])
        self._lock = threading.Lock()
        self._waiting: collections.deque[tuple[Future[Any], bytes]] = collections.deque()
        self._workers: list[_Worker] = []
        self._closing = False
        self._failed_starts = 0
        self._wake_up, self._alarm = multiprocessing.Pipe(duplex=False)
        self._supervisor: threading.Thread | None = None

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule a call; what cannot be sent raises :class:`UnsendableError` here."""
        message = serialized((function, args, kwargs))
        future: Future[Any] = Future()
        with self._lock:
            if self._closing:
                raise RuntimeError("cannot submit after shutdown")
            self._waiting.append((future, message))
            if self._supervisor is None:
                self._supervisor = threading.Thread(target=self._supervise, name="polarbear-processes", daemon=True)
                self._supervisor.start()
        self._alarm.send_bytes(b"!")
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the scheduled calls finish, or end everything at once if ``cancel_futures``."""
        with self._lock:
            self._closing = True
            if cancel_futures:
                while self._waiting:
                    self._waiting.popleft()[0].cancel()
                for worker in list(self._workers):  # the supervisor takes dead ones off meanwhile
                    worker.kill()
        with contextlib.suppress(OSError):
            self._alarm.send_bytes(b"!")
        if wait and self._supervisor is not None:
            self._supervisor.join()

    def _supervise(self) -> None:
        """Hand out calls, collect results, end what takes too long, replace what died; the only one to do so."""
        try:
            while self._step():
                deadlines = [worker.deadline for worker in self._workers if worker.deadline is not None]
                patience = max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
                ready = wait([self._wake_up, *(worker.connection for worker in self._workers)], patience)
                if self._wake_up in ready:
                    self._wake_up.recv_bytes()
        except Exception as problem:  # nobody else would ever answer those who wait
            with self._lock:
                self._closing = True
            self._give_up(_cannot_start(problem))
        finally:
            for worker in self._workers:
                worker.fail(ProcessDiedError("its process was ended"))
                worker.stop()

    def _give_up(self, problem: Exception) -> None:
        with self._lock:
            hopeless, self._waiting = self._waiting, collections.deque()
        for future, _ in hopeless:
            if future.set_running_or_notify_cancel():
                future.set_exception(problem)

    def _step(self) -> bool:
        for worker in list(self._workers):
            worker.receive()
            if worker.deadline is not None and time.monotonic() > worker.deadline:
                worker.fail(RunTimeoutError(f"it ran for more than {self._timeout:g} s and was ended"))
                worker.kill()
            if worker.gone:
                self._bury(worker)
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

    def _bury(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        code = worker.stop()
        worker.fail(ProcessDiedError(f"its process died ({_death(code)})"))
        self._failed_starts = 0 if worker.ready else self._failed_starts + 1
        if self._failed_starts >= _START_TRIES:
            self._failed_starts = 0
            self._give_up(_cannot_start(_death(code)))


def serialized(thing: object) -> bytes:
    """Bytes in which something travels to a process of ours; nobody else's bytes are ever read.

    :raises UnsendableError: it cannot.
    """
    try:
        return pickle.dumps(thing)
    except Exception as problem:  # objects may do anything when they are asked for their bytes
        raise UnsendableError(str(problem)) from None


def loaded(message: bytes) -> Any:
    """Load what travelled as bytes from the process that races, and from nobody else."""
    return pickle.loads(message)  # noqa: S301 - from our own process


class _Worker:
    """A process and the call it is working on."""

    def __init__(self, context: Any, with_main: bool) -> None:
        self.connection, theirs = multiprocessing.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), name="polarbear-worker", daemon=True)
        self.ready = False
        self.gone = False
        self.deadline: float | None = None
        self._future: Future[Any] | None = None
        with _main_module(with_main):
            self.process.start()
        theirs.close()  # so that the pipe ends when the process does

    @property
    def idle(self) -> bool:
        """Whether it can take a call."""
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
        """Take what has come from the process."""
        try:
            while not self.gone and self.connection.poll():
                message = self.connection.recv_bytes()
                if not self.ready:
                    self.ready = True
                    continue
                problem, answer = loaded(message)
                future, self._future, self.deadline = self._future, None, None
                if future is not None:
                    if problem is None:
                        future.set_result(answer)
                    else:
                        future.set_exception(problem(answer))
        except (EOFError, OSError):
            self.gone = True

    def fail(self, problem: Exception) -> None:
        future, self._future, self.deadline = self._future, None, None
        if future is not None:
            future.set_exception(problem)

    def kill(self) -> None:
        self.gone = True
        with contextlib.suppress(OSError, ValueError):
            self.process.kill()

    def stop(self) -> int | None:
        """End the process, and say with which code it ended."""
        self.connection.close()
        if not self.gone:
            self.process.kill()
        self.process.join()
        code: int | None = self.process.exitcode
        self.process.close()
        return code


def _serve(connection: Connection) -> None:
    """Answer calls until the other side is gone."""
    # Ctrl-C reaches every process of the terminal; what it means is for the race to decide.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    threading.Thread(target=_end_with_parent, daemon=True).start()
    connection.send_bytes(b"ready")
    while True:
        try:
            message = connection.recv_bytes()
        except (EOFError, OSError):
            return
        connection.send_bytes(_answer(message))


def _answer(message: bytes) -> bytes:
    try:
        function, args, kwargs = loaded(message)
    except Exception as problem:  # whatever the user's objects do while they are made
        reason = (
            f"it cannot be loaded in a worker process ({type(problem).__name__}: {problem}). What is defined in a "
            "notebook or on the command line exists only there: put it in a module, or race with workers=0"
        )
        return pickle.dumps((UnloadableError, reason))
    try:
        return pickle.dumps((None, function(*args, **kwargs)))
    except Exception as problem:
        return pickle.dumps((RemoteError, told(problem)))


def told(problem: BaseException) -> str:
    """Say what was raised, and where."""
    frames = traceback.extract_tb(problem.__traceback__)
    where = f", {Path(frames[-1].filename).name} line {frames[-1].lineno}" if frames else ""
    return f"{type(problem).__name__}: {problem}{where}"


def _end_with_parent() -> None:
    """End this process when the race's process dies, even if by kill -9 in the middle of a run."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def _main_module(wanted: bool) -> Any:
    """Keep workers from importing a main module that is not wanted, or no file, as when Python reads it from a pipe."""
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


def _death(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
