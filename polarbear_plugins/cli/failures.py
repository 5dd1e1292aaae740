"""What ends a command: mistakes of the user, standard output that cannot be written, and mistakes of ours."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import platform
import re
import shlex
import sys
import tempfile
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import click

from polarbear_plugins.cli.outputs import declared_files
from polarbear_plugins.display.text import visible
from polarbear_plugins.environment import installed_versions, versions_text
from polarbear_plugins.errors import reason

INTERRUPTED = 130  # as shells say it: 128 + SIGINT
_BROKEN_PIPE = 141  # 128 + SIGPIPE
_UNEXPECTED = 70  # EX_SOFTWARE of sysexits.h
_SECRET = re.compile(r"pass|secret|token|key|credential", re.IGNORECASE)
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s'\"]+(?=@)")
_LEAST_SECRET = 4  # characters; shorter ones are part of many words


class Failure(click.ClickException):
    """An error that the user can fix: one line, exit code 2."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(visible(" ".join(message.split())))


class ClosedPipe(Failure):
    """The reader of standard output has closed it, as ``head`` does: nothing is said."""

    exit_code = _BROKEN_PIPE

    def show(self, file: IO[Any] | None = None) -> None:
        """Print nothing."""


class Unexpected(Failure):
    """A mistake of ours, or something nobody thought of: one line, a report in a file, exit code 70."""

    exit_code = _UNEXPECTED

    def __init__(self, problem: BaseException, ctx: click.Context) -> None:
        name, says = type(problem).__name__, _text_of(problem)
        what = "Memory ran out" if isinstance(problem, MemoryError) else "An unexpected error"
        place = _write_report(problem)
        report = "No report could be written." if place is None else f"The full report is in {place}."
        words = [f"{what} ({f'{name}: {says}' if says else name}).", *_kept(ctx), report]
        super().__init__(" ".join([*words, "POLARBEAR_DEBUG=1 shows it here instead."]))


def wants_traceback() -> bool:
    """Whether unexpected errors are to be shown as Python shows them."""
    return os.environ.get("POLARBEAR_DEBUG", "0") not in ("", "0")


class OutputError(Exception):
    """Standard output cannot be written: no OSError, so that nobody takes it for that of another file."""

    def __init__(self, problem: OSError) -> None:
        super().__init__(problem.strerror)
        self.code = problem.errno


class _StandardOutput(io.FileIO):
    """Standard output, with errors that tell it from other files."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as problem:
            raise OutputError(problem) from None


def prepare_streams() -> None:
    """Refuse to run with standard output closed, and replace the other standard streams if they are.

    The next file would take the place of a closed one, and what libraries print would be written to it.
    """
    with contextlib.suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(number, True)
        os.close(number)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    if sys.stdout is None:
        raise Failure("Standard output is closed, so that nothing could be shown. Send it to a file or to /dev/null.")
    old = sys.__stdout__
    if old is not None and old is sys.stdout and isinstance(getattr(old.buffer, "raw", old.buffer), io.FileIO):
        raw = io.BufferedWriter(_StandardOutput(old.fileno(), "w", closefd=False))
        sys.stdout = io.TextIOWrapper(raw, old.encoding, old.errors, line_buffering=True)


def describe_output_error(problem: OutputError) -> Failure:
    """Failure for an error in writing to standard output, to which nothing more is written."""
    _discard(1)
    if problem.code == errno.EPIPE:
        return ClosedPipe("Nobody reads standard output.")
    return Failure(f"Standard output cannot be written ({problem}).")


def exit_code_of(problem: click.ClickException) -> int:
    """Exit code of an error, which is shown if it can be."""
    try:
        problem.show()
    except OSError:
        _discard(2)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OutputError:
        _discard(1)  # one error is enough
    return problem.exit_code


def _discard(stream: int) -> None:
    """Discard what waits for a stream that cannot be written: Python would try again at its end, and complain."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def _kept(ctx: click.Context) -> list[str]:
    """What a command has kept, and how to go on."""
    kept = []
    for file in declared_files(ctx):
        with contextlib.suppress(OSError):
            if file.is_journal and file.path.stat().st_size:
                again = "The same command" if ctx.invoked_subcommand == "campaign" else f"polarbear resume {file.path}"
                kept.append(f"Finished runs are kept in {file.path}: {again} goes on.")
    return kept


def _write_report(problem: BaseException) -> Path | None:
    """Write all about an error to a new file that only the user can read."""
    try:
        number, name = tempfile.mkstemp(prefix="polarbear-error-", suffix=".txt")
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(_report(problem, sys.argv[1:]))
    except (OSError, MemoryError):
        return None
    return Path(name)


def _report(problem: BaseException, arguments: Iterable[str]) -> str:
    arguments = list(arguments)
    trace = "".join(traceback.format_exception(problem))
    text = (
        f"polarbear {shlex.join(arguments)}\n\n"
        f"{versions_text(installed_versions('all'))}\n{platform.platform()}\n\n{trace}"
    )
    for secret in _secrets(arguments):
        text = text.replace(secret, "***")
    return _CREDENTIALS.sub("***", text)


def _secrets(arguments: Iterable[str]) -> set[str]:
    """Values of options in ``KEY=VALUE`` whose key sounds secret."""
    pairs = (word.rpartition("--")[2].partition("=") for word in arguments)
    return {value for key, _, value in pairs if len(value) >= _LEAST_SECRET and _SECRET.search(key)}


def _text_of(problem: BaseException) -> str:
    """Text of an error, which may fail to make one."""
    try:
        says = str(problem)
    except Exception:  # whatever its __str__ raises
        return ""
    return reason(problem) if says.strip() else ""
