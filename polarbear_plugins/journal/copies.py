"""Reading a journal without touching it, even while a race uses it.

A race locks its journal, so that no other race goes on with it; who only wants to read takes a copy.  SQLite first
writes to a second file, the log, and now and then moves what is there into the first.  A copy of both is whole if the
log has not been begun anew meanwhile: whatever was moved while the first file was copied is still in the log.
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
_LOG_HEADER = 32  # bytes; among them two random numbers, new whenever the log is begun anew


@contextlib.contextmanager
def journal_copy(path: Path) -> Iterator[Journal]:
    """Open a copy of a journal, as it is now; needs no lock and no permission to write."""
    with tempfile.TemporaryDirectory(prefix="polarbear-") as folder:
        copy = Path(folder) / "copy.db"
        try:
            _copy(path, copy)
        except OSError as problem:
            raise SourceError(f"{path} cannot be copied to be read: {problem.strerror}.") from None
        with Journal.open(copy, called=path) as journal:
            yield journal


def _copy(path: Path, copy: Path) -> None:
    for _ in range(_TRIES):
        before = _moment(path)
        shutil.copyfile(path, copy)
        try:
            shutil.copyfile(_log(path), _log(copy))
        except FileNotFoundError:
            _log(copy).unlink(missing_ok=True)
        if _moment(path) == before:
            return
        time.sleep(_PAUSE)
    raise SourceError(f"{path} changes faster than it can be read. Try again.")


def _moment(path: Path) -> object:
    """Something that stays the same as long as a copy may go on."""
    with contextlib.suppress(FileNotFoundError), _log(path).open("rb") as log:
        header = log.read(_LOG_HEADER)
        if len(header) == _LOG_HEADER:
            return header
    status = path.stat()  # without a log nobody writes; who has written and gone is seen here
    return status.st_mtime_ns, status.st_size


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")
