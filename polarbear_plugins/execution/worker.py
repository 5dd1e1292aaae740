"""The worker process: answers calls one after the other, whatever they do to the process.

A call may print, fork, change the working directory or raise a ``BaseException``; the next call must not be affected.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import struct
import sys
import threading
from typing import Any

from polarbear_plugins.errors import PolarBearError, describe_exception
from polarbear_plugins.execution.channel import LARGEST, Channel, GarbledError
from polarbear_plugins.execution.memory import resident_bytes
from polarbear_plugins.execution.process_state import restore_process_state

#: Precedes an answer: the memory of the worker in bytes (0: unknown), and whether it is as it was before the call.
STATE = struct.Struct(">Q?")


class RemoteError(PolarBearError):
    """A call raised an exception in its process."""


class UnloadableError(PolarBearError):
    """What was sent cannot be unpickled in the worker process."""


def serve(end: Any, secret: bytes, core: int | None = None) -> None:
    """Answer calls that come through a socket until the other side closes it, on one core if one is given."""
    channel = Channel(end, secret)
    # Ctrl-C reaches every process of the terminal; the race decides what to do about it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)  # so that processes started by a call can be killed together with this one
    for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # standard output is reserved for the result of the race
    if core is not None:
        with contextlib.suppress(OSError):  # it was taken away meanwhile
            os.sched_setaffinity(0, {core})
    _leave_fork_server()
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    # The other side is gone, or a call has closed the connection.
    with contextlib.suppress(EOFError, OSError, GarbledError):
        channel.send(b"ready")
        while True:
            message = channel.receive()
            with restore_process_state() as restored:
                answer = _answer(message)
            end.setblocking(True)  # a call may have changed it
            with contextlib.suppress(Exception):  # a call may have closed it
                sys.stdout.flush()
            channel.send(STATE.pack(resident_bytes(["self"]), restored.complete) + answer)


def _leave_fork_server() -> None:
    """Close the pipe by which this process would keep the fork server alive: that ends if a call writes into it."""
    server = getattr(sys.modules.get("multiprocessing.forkserver"), "_forkserver", None)
    descriptor = getattr(server, "_forkserver_alive_fd", None)
    if server is not None and descriptor is not None:
        server._forkserver_alive_fd = None
        with contextlib.suppress(OSError):
            os.close(descriptor)


def unpickle(message: bytes) -> Any:
    """Unpickle a message between a race and its own workers; never use it for bytes from anywhere else."""
    return pickle.loads(message)  # noqa: S301 - from our own process


def _answer(message: bytes) -> bytes:
    try:
        function, args, kwargs = unpickle(message)
    except BaseException as problem:  # unpickling runs the user's code, which may raise anything
        reason = (
            f"it cannot be loaded in a worker process ({describe_exception(problem, with_place=False)}). Whatever is "
            "defined in a notebook or on the command line exists only there: put it in a module, or race with workers=0"
        )
        return pickle.dumps((UnloadableError, reason))
    try:
        answer = pickle.dumps((None, function(*args, **kwargs)))
        if len(answer) + STATE.size > LARGEST:
            raise RemoteError(f"its answer has {len(answer):,} bytes, and at most {LARGEST:,} can be sent")
        return answer
    except RemoteError as problem:  # already text
        return pickle.dumps((RemoteError, str(problem)))
    except BaseException as problem:  # including SystemExit; SIGINT is ignored here
        return pickle.dumps((RemoteError, describe_exception(problem)))


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
