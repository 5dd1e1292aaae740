"""Reading a journal without changing it, even while a race uses it.

A race locks its journal so that no other race continues it; readers therefore make a copy.  SQLite first writes to a
second file, the write-ahead log, and moves its content into the first from time to time.  A copy of both is consistent
unless the log was restarted meanwhile: whatever was moved while the first file was copied is still in the log.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from polarbear_plugins.errors import SourceError
from polarbear_plugins.journal.journal import Journal

_TRIES, _PAUSE = 20, 0.1
_LOG_HEADER = 32  # bytes; they contain two random numbers that change whenever the log is restarted


@contextlib.contextmanager
def journal_copy(path: Path) -> Iterator[Journal]:
    """Open a copy of a journal as it is now; needs neither a lock nor write permission."""
    with tempfile.TemporaryDirectory(prefix="polarbear-") as folder:
        copy = Path(folder) / "copy.db"
        try:
            _copy(path, copy)
        except OSError as problem:
            raise SourceError(f"{path} cannot be copied for reading: {problem.strerror}.") from None
        with Journal.open(copy, called=path) as journal:
            yield journal


def _copy(path: Path, copy: Path) -> None:
    for _ in range(_TRIES):
        before = _log_generation(path)
        shutil.copyfile(path, copy)
        try:
            shutil.copyfile(_log(path), _log(copy))
        except FileNotFoundError:
            _log(copy).unlink(missing_ok=True)
        if _log_generation(path) == before:
            return
        time.sleep(_PAUSE)
    raise SourceError(f"{path} changes faster than it can be read. Try again.")


def _log_generation(path: Path) -> object:
    """A value that changes whenever the log is restarted; a copy is consistent if it stayed the same."""
    with contextlib.suppress(FileNotFoundError), _log(path).open("rb") as log:
        header = log.read(_LOG_HEADER)
        if len(header) == _LOG_HEADER:
            return header
    status = path.stat()  # without a log nothing is writing now; this shows whether something has written since
    return status.st_mtime_ns, status.st_size


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")
