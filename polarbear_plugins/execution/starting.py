"""How worker processes are started, and why they could not be."""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import multiprocessing.util
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polarbear_plugins.errors import PolarBearError, foreign_text, reason

NAME = "polarbear-worker"

UNGUARDED = 78  #: exit code of a worker whose main module races when it is imported
_DESCRIPTORS = 16  # free ones, more than a start takes
_LONGEST_PATH = 100  # bytes in the address of a socket on every system
_PATH_IN_FOLDER = len("/pymp-12345678/listener-12345678")
_SHORT_FOLDERS = ("/tmp", "/var/tmp")  # noqa: S108 - a new folder is made there that nobody else can open

_REMEDIES = {
    errno.EMFILE: "Raise the limit of open files (ulimit -n), or use fewer workers",
    errno.ENFILE: "Close other programs, or use fewer workers",
    errno.EAGAIN: "Raise the limit of processes (ulimit -u, or that of the container), or use fewer workers",
    errno.ENOMEM: "There is not enough memory: use fewer workers",
}


class WorkersCannotStartError(PolarBearError):
    """Worker processes cannot be started, or end before they are ready for their first call."""


def start_context() -> Any:
    """How processes are started: not by a plain fork, which would copy locks that other threads hold."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["polarbear_plugins.execution.worker", "polarbear_plugins.execution.requests"])
    return context


def start_process(context: Any, target: Any, arguments: tuple[Any, ...], with_main: bool) -> Any:
    """Start a process.

    :raises OSError: the system does not have what it takes.
    """
    _check_descriptors()
    _shorten_socket_path()
    process = context.Process(target=target, args=arguments, name=NAME, daemon=True)
    with _main_module(with_main):
        process.start()
    return process


def exit_if_unguarded() -> None:
    """End this process if it is a worker that still imports the main module: that should not have come to races.

    Its race would have workers that import the main module, and so on.  The exit code tells the race what to say.
    """
    process = multiprocessing.current_process()
    if process.name == NAME and getattr(process, "_inheriting", False):
        os._exit(UNGUARDED)


def cannot_start(problem: object, with_main: bool) -> WorkersCannotStartError:
    """The error of workers that cannot start.

    Parameters
    ----------
    problem
        What starting one raised, or the exit code of one that ended before it was ready.
    """
    if problem == UNGUARDED:
        return WorkersCannotStartError(
            "Worker processes end before they can work: they import the main module, and that starts a race. A script "
            'that races must guard its start with  if __name__ == "__main__":  or race with workers=0, in this process.'
        )
    if isinstance(problem, OSError) and problem.errno in _REMEDIES:
        what, remedy = str(problem.strerror).lower(), _REMEDIES[problem.errno]
    elif isinstance(problem, OSError) and "AF_UNIX" in str(problem):
        folder = foreign_text(multiprocessing.util.get_temp_dir())
        what = f"the path of a folder for temporary files is too long for a socket: {folder}"
        remedy = "Set TMPDIR to a shorter one"
    elif isinstance(problem, EOFError | ConnectionError):
        what = "the server that starts them has ended"
        remedy = "It has printed why, and may lack memory or reach a limit of processes: use fewer workers"
    elif isinstance(problem, BaseException):
        what, remedy = reason(problem), "Use fewer workers"
    else:
        what = describe_exit(problem if isinstance(problem, int) else None)
        main = getattr(sys.modules["__main__"], "__file__", None) if with_main else None
        imports = f" They import {Path(main).name} first, which may have failed." if main else ""
        remedy = f"What they have printed says why.{imports} Use fewer workers if memory is short"
    return WorkersCannotStartError(
        f"Worker processes cannot start ({what.rstrip('.')}). {remedy}; or race with workers=0, in this process."
    )


def describe_exit(code: int | None) -> str:
    """Text of an exit code.

    >>> describe_exit(1), describe_exit(-9)
    ('exit code 1', 'killed by SIGKILL')
    """
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def _check_descriptors() -> None:
    """Raise an OSError unless there are free descriptors: a start that fails for want of one does not return others."""
    spare: list[int] = []
    try:
        spare.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(_DESCRIPTORS))
    finally:
        for descriptor in spare:
            os.close(descriptor)


def _shorten_socket_path() -> None:
    """Let multiprocessing make its folder, which has the socket of the fork server, where the path is short enough."""
    if len(os.fsencode(tempfile.gettempdir())) + _PATH_IN_FOLDER <= _LONGEST_PATH:
        return
    for folder in _SHORT_FOLDERS:
        if os.access(folder, os.W_OK | os.X_OK):
            before, tempfile.tempdir = tempfile.tempdir, folder
            try:
                multiprocessing.util.get_temp_dir()  # the same for the rest of the process
            finally:
                tempfile.tempdir = before
            return


@contextlib.contextmanager
def _main_module(wanted: bool) -> Iterator[None]:
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
