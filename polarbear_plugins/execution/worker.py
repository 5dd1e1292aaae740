"""The worker process: answers calls one after the other, whatever they do to the process.

A call may print, fork, change the working directory or raise a ``BaseException``; the next call must not be affected.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from polarbear_plugins.errors import PolarBearError


class RemoteError(PolarBearError):
    """A call raised an exception in its process."""


class UnloadableError(PolarBearError):
    """What was sent cannot be unpickled in the worker process."""


def serve(connection: Connection) -> None:
    """Answer calls until the other side closes the connection."""
    # Ctrl-C reaches every process of the terminal; the race decides what to do about it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)  # so that processes started by a call can be killed together with this one
    for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # standard output is reserved for the result of the race
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):  # the other side is gone, or a call has closed the connection
        connection.send_bytes(b"ready")
        while True:
            message = connection.recv_bytes()
            with restore_process_state():
                answer = _answer(message)
            with contextlib.suppress(Exception):  # a call may have closed it
                sys.stdout.flush()
            connection.send_bytes(answer)


@contextlib.contextmanager
def restore_process_state() -> Iterator[None]:
    """Undo what a call does to its process: end a child that it forked, and return to the working directory."""
    process = os.getpid()
    try:
        folder = os.getcwd()  # noqa: PTH109 - a string, passed to chdir unchanged
    except OSError:  # it was removed
        folder = None
    try:
        yield
    finally:
        if os.getpid() != process:
            os._exit(1)
        if folder is not None:
            with contextlib.suppress(OSError):
                os.chdir(folder)


def unpickle(message: bytes) -> Any:
    """Unpickle a message between a race and its own workers; never use it for bytes from anywhere else."""
    return pickle.loads(message)  # noqa: S301 - from our own process


def _answer(message: bytes) -> bytes:
    try:
        function, args, kwargs = unpickle(message)
    except BaseException as problem:  # unpickling runs the user's code, which may raise anything
        reason = (
            f"it cannot be loaded in a worker process ({type(problem).__name__}: {problem}). Whatever is defined in a "
            "notebook or on the command line exists only there: put it in a module, or race with workers=0"
        )
        return pickle.dumps((UnloadableError, reason))
    try:
        return pickle.dumps((None, function(*args, **kwargs)))
    except BaseException as problem:  # including SystemExit; SIGINT is ignored here
        return pickle.dumps((RemoteError, describe_exception(problem)))


def describe_exception(problem: BaseException) -> str:
    """Type, message, file and line of an exception, in one line."""
    frames = traceback.extract_tb(problem.__traceback__)
    where = f", {Path(frames[-1].filename).name} line {frames[-1].lineno}" if frames else ""
    return f"{type(problem).__name__}: {problem}{where}"


def end_group(leader: int | None) -> None:
    """Kill a worker and every process that its calls have started."""
    if leader is not None and hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(leader, signal.SIGKILL)


def _exit_with_parent() -> None:
    """End this process when that of the race dies, even by kill -9 in the middle of a run."""
    process, parent = os.getpid(), multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        end_group(process)
        os._exit(1)
