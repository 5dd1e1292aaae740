"""Reading a journal without changing it, even while a race uses it.

A race locks its journal so that no other race continues it; readers therefore make a copy.  SQLite first writes to a
second file, the write-ahead log, and moves its content into the first from time to time.  A copy of both is consistent
unless the log was emptied meanwhile: whatever was moved while the first file was copied is still in the log.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from polarbear_plugins.errors import SourceError
from polarbear_plugins.journal.custody import OpenFile, check_log, is_sqlite, real_path
from polarbear_plugins.journal.log import log_of
from polarbear_plugins.journal.messages import empty_journal_error, missing_log_error
from polarbear_plugins.journal.reading import JournalContent

_TRIES, _PAUSE = 20, 0.1
_LOG_HEADER = 32  # bytes; they contain two random numbers that change whenever the log is begun anew


@contextlib.contextmanager
def journal_copy(path: str | Path, *, without_log: bool = False) -> Iterator[JournalContent]:
    """Open a copy of a journal as it is now; needs neither a lock nor write permission.

    Parameters
    ----------
    without_log
        Also read a journal whose log is missing.
    """
    path, file = Path(path), real_path(path)
    if not file.is_file():
        raise SourceError(f"{path}: there is no such file.")
    if not file.stat().st_size:
        raise empty_journal_error(path)
    try:
        if not is_sqlite(file):
            raise SourceError(f"{path} is not the journal of a race.")
    except OSError as problem:
        raise SourceError(f"{path} cannot be read: {problem.strerror}.") from None
    with tempfile.TemporaryDirectory(prefix="polarbear-") as folder:
        copy = Path(folder) / "copy.db"
        try:
            _copy(file, copy)
        except OSError as problem:
            raise SourceError(f"{path} cannot be copied for reading: {problem.strerror}.") from None
        check_log(copy, path)
        has_log = log_of(copy).exists()  # now: SQLite makes one
        content = JournalContent(path, OpenFile(copy))
        try:
            content.check_file()
            used_as = content.expects_log
            if used_as is not None and not (has_log or without_log):
                raise missing_log_error(path, file, used_as)
            yield content
        finally:
            content.close()


def _copy(path: Path, copy: Path) -> None:
    for _ in range(_TRIES):
        before = _log_generation(path)
        shutil.copyfile(path, copy)
        try:
            shutil.copyfile(log_of(path), log_of(copy))
        except FileNotFoundError:
            log_of(copy).unlink(missing_ok=True)
        if _log_generation(path) == before:
            return
        time.sleep(_PAUSE)
    raise SourceError(f"{path} changes faster than it can be read. Try again.")


def _log_generation(path: Path) -> object:
    """A value that changes whenever the log is begun anew; a copy is consistent if it stayed the same."""
    with contextlib.suppress(FileNotFoundError), log_of(path).open("rb") as log:
        header = log.read(_LOG_HEADER)
        if len(header) == _LOG_HEADER:
            return header
    status = path.stat()  # without a log nothing is writing now; this shows whether something has written since
    return status.st_mtime_ns, status.st_size
