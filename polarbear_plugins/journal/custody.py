"""The file of a journal: where it is, who has it open, and whether it is still there."""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from polarbear_plugins.errors import SourceError
from polarbear_plugins.journal.log import find_damage, log_of
from polarbear_plugins.journal.messages import damaged_log_error, describe_sqlite_error
from polarbear_plugins.journal.tables import VERSION

_HEADER = b"SQLite format 3\x00"
_LOCK = "hhqqi0q"  # flock of Linux: type, whence, start, length, process
_LOCK_PLACE, _LOCK_BYTES = 0x40000000, 512  # that SQLite locks
_VERSION_PLACE, _APPLICATION_PLACE = slice(60, 64), slice(68, 72)  # in the header
# Journals that are open in this process.  On POSIX, a process that closes a file releases all its locks on that file,
# even those of another connection, so none of these may be opened a second time, not even for reading.
_OPEN_HERE: set[tuple[int, int]] = set()


def real_path(path: str | Path) -> Path:
    """Path of the file behind any links: SQLite looks for the log beside the file, not beside a link to it."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError):  # links in a circle
        raise SourceError(f"{path}: its symbolic links lead in a circle.") from None


def is_sqlite(path: Path) -> bool:
    """Whether a file has the header of an SQLite file.

    :raises SourceError: it is a journal that this process has open.
    """
    if file_id(path) in _OPEN_HERE:
        raise SourceError(f"{path} is in use by a race in this process; wait until that race is over.")
    with path.open("rb") as file:
        return file.read(len(_HEADER)) == _HEADER


def is_in_use(path: str | Path) -> bool | None:
    """Whether a process on this computer has a journal open to write; ``None`` where that cannot be told.

    It only asks for the lock, without taking it, so that a race that begins at this moment does not notice.
    """
    file = real_path(path)
    if file_id(file) in _OPEN_HERE:
        return True
    if sys.platform != "linux" or sys.maxsize < 2**32:  # others have other structures
        return None
    import fcntl  # not on Windows

    with file.open("rb") as open_file:
        asked = struct.pack(_LOCK, fcntl.F_RDLCK, os.SEEK_SET, _LOCK_PLACE, _LOCK_BYTES, 0)
        found = struct.unpack(_LOCK, fcntl.fcntl(open_file, fcntl.F_GETLK, asked))
    return found[0] != fcntl.F_UNLCK


def check_log(path: Path, called: Path) -> None:
    """Raise an error if the log of a journal is damaged; ``called`` is the name of the journal in messages."""
    # Version 1 overwrote its logs, so that not all that does not match is damage.
    damage = find_damage(log_of(path)) if _number_at(path, _VERSION_PLACE) == VERSION else None
    if damage is not None:
        raise damaged_log_error(called, damage)


def application_of(path: Path) -> int:
    """Program that an SQLite file says it belongs to, read without SQLite, which would change its log."""
    return _number_at(path, _APPLICATION_PLACE)


def _number_at(path: Path, place: slice) -> int:
    with path.open("rb") as file:
        return int.from_bytes(file.read(place.stop)[place], "big")


def file_id(path: str | Path) -> tuple[int, int]:
    """Device and number of a file, which stay when it is renamed."""
    status = Path(path).stat()
    return status.st_dev, status.st_ino


class OpenFile:
    """A journal that is open in this process."""

    def __init__(self, path: Path) -> None:
        try:
            self.connection = sqlite3.connect(path, timeout=1.0, isolation_level=None)
            # The lock is held until the file is closed, or the process ends.
            self.connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        except sqlite3.Error as problem:
            raise describe_sqlite_error(path, problem) from None
        self.path = path
        self.log_bytes = 0  # when last seen
        self._names = str(path), str(log_of(path))
        self._id = file_id(path)
        self._log_id: tuple[int, int] | None = None
        _OPEN_HERE.add(self._id)

    def is_there(self) -> bool:
        """Whether file and log are still the ones that are open, and not deleted, moved or replaced."""
        try:
            file, log = map(os.stat, self._names)
        except OSError:
            return False
        self.log_bytes, log_id = log.st_size, (log.st_dev, log.st_ino)
        self._log_id = self._log_id or log_id
        return (file.st_dev, file.st_ino) == self._id and log_id == self._log_id

    def move_to_a_copy(self) -> OpenFile:
        """Close the file, and open a copy at the same path, if there is nothing now, or where one can be written."""
        problems = []
        for place in _places_for_a_copy(self.path):
            try:
                with contextlib.closing(sqlite3.connect(place)) as copy:
                    self.connection.backup(copy)
            except sqlite3.Error as problem:
                problems.append(f"{place}: {problem}")
                continue
            self.close()  # before the copy is opened: it deletes whatever has the name of its log
            return OpenFile(place)
        raise SourceError(
            f"{self.path} was deleted or moved during the race, and cannot be written again ({'; '.join(problems)})."
        )

    def close(self) -> None:
        """Close and unlock it."""
        self.connection.close()
        _OPEN_HERE.discard(self._id)


def _places_for_a_copy(path: Path) -> Iterator[Path]:
    for folder in (path.parent, Path.cwd(), Path(tempfile.gettempdir())):
        if not os.access(folder, os.W_OK):
            continue
        names = itertools.chain([path.name], (f"{path.stem}-{number}{path.suffix}" for number in range(2, 100)))
        for place in map(folder.joinpath, names):
            if not place.exists() and (place == path or not log_of(place).exists()):
                yield place
                break
