"""What a worker process does: answer calls, one after the other, whatever they do to the process.

A call may print, fork, move to another folder or raise what is no ``Exception``; the next call must not notice.
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
    """What was sent cannot be loaded in the process."""


def serve(connection: Connection) -> None:
    """Answer calls until the other side is gone."""
    # Ctrl-C reaches every process of the terminal; what it means is for the race to decide.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)  # so that what a call starts can be ended together with this process
    for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # standard output belongs to the race and its result
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):  # the other side is gone, or a call has closed the connection
        connection.send_bytes(b"ready")
        while True:
            message = connection.recv_bytes()
            with left_as_found():
                answer = _answer(message)
            with contextlib.suppress(Exception):  # a call may have closed it
                sys.stdout.flush()
            connection.send_bytes(answer)


@contextlib.contextmanager
def left_as_found() -> Iterator[None]:
    """Undo what a call does to its process: a child that it forks does not return, and the folder is the old one."""
    process = os.getpid()
    try:
        folder = os.getcwd()  # noqa: PTH109 - a string that is handed back
    except OSError:  # somebody has removed it
        folder = None
    try:
        yield
    finally:
        if os.getpid() != process:
            os._exit(1)
        if folder is not None:
            with contextlib.suppress(OSError):
                os.chdir(folder)


def loaded(message: bytes) -> Any:
    """Load what travelled as bytes from the process that races, or back to it, and from nobody else."""
    return pickle.loads(message)  # noqa: S301 - from our own process


def _answer(message: bytes) -> bytes:
    try:
        function, args, kwargs = loaded(message)
    except BaseException as problem:  # whatever the user's objects do while they are made
        reason = (
            f"it cannot be loaded in a worker process ({type(problem).__name__}: {problem}). What is defined in a "
            "notebook or on the command line exists only there: put it in a module, or race with workers=0"
        )
        return pickle.dumps((UnloadableError, reason))
    try:
        return pickle.dumps((None, function(*args, **kwargs)))
    except BaseException as problem:  # sys.exit, too; ctrl-C does not come here
        return pickle.dumps((RemoteError, told(problem)))


def told(problem: BaseException) -> str:
    """Say what was raised, and where."""
    frames = traceback.extract_tb(problem.__traceback__)
    where = f", {Path(frames[-1].filename).name} line {frames[-1].lineno}" if frames else ""
    return f"{type(problem).__name__}: {problem}{where}"


def end_group(leader: int | None) -> None:
    """End a worker and whatever its calls have started, at once."""
    if leader is not None and hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(leader, signal.SIGKILL)


def _end_with_parent() -> None:
    """End this process when the race's process dies, even if by kill -9 in the middle of a run."""
    process, parent = os.getpid(), multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        end_group(process)
        os._exit(1)
