"""The journal of a race: an SQLite file that stores every finished run before the race uses it.

It holds plain data only.  It is locked while a race uses it.  If the process is killed, the file is complete up to the
last finished run; if the machine loses power, runs may be lost that together took less than 0.05 s.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import PolarBearError, SourceError, reason
from polarbear_plugins.files import parse_json
from polarbear_plugins.journal.messages import describe_sqlite_error, empty_journal_error, file_exists_error
from polarbear_plugins.journal.stored import STORED_SCHEMA, read_stored, write_stored
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.racing.state import Failure, Round
from polarbear_plugins.racing.stored import StoredRivals
from polarbear_plugins.trajectories.trajectory import Trajectory

# "PLBR", to tell a journal from the SQLite files of other programs.
_APPLICATION = 0x504C4252
_HEADER = b"SQLite format 3\x00"
_VERSION = 1
# Waiting for the disk takes about a millisecond.  Runs that together took fewer seconds than this do not wait for it.
_SECONDS_WITHOUT_SYNC = 0.05
_SCHEMA = """
CREATE TABLE about (key TEXT PRIMARY KEY, json TEXT NOT NULL) STRICT;
CREATE TABLE entries (place INTEGER PRIMARY KEY, algorithm TEXT NOT NULL UNIQUE, after_round INTEGER NOT NULL) STRICT;
CREATE TABLE instances (place INTEGER PRIMARY KEY, identity TEXT NOT NULL) STRICT;
CREATE TABLE runs (
    round INTEGER NOT NULL, algorithm TEXT NOT NULL, instance TEXT NOT NULL, seed INTEGER NOT NULL,
    horizon REAL NOT NULL, times BLOB NOT NULL, best BLOB NOT NULL, seconds REAL NOT NULL, failure TEXT,
    PRIMARY KEY (algorithm, instance)
) STRICT;
CREATE TABLE rounds (number INTEGER PRIMARY KEY, json TEXT NOT NULL, resolved BLOB NOT NULL) STRICT;
"""
# Journals that are open in this process.  On POSIX, a process that closes a file releases all its locks on that file,
# even those of another connection, so none of these may be opened a second time, not even for reading.
_OPEN_HERE: set[tuple[int, int]] = set()
# What damaged data raise while they are read and made into objects.
_DAMAGE_ERRORS = (
    PolarBearError,
    sqlite3.Error,
    AttributeError,
    LookupError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """An algorithm, and the round after which it entered; 0 is the start."""

    algorithm: str
    after_round: int


@dataclass(frozen=True, slots=True)
class JournalRun:
    """A finished run: its round, its trajectory, the seconds it took, and the reason if it failed."""

    round: int
    trajectory: Trajectory
    seconds: float
    failure: str | None = None


class Journal:
    """An open journal, from :meth:`create` or :meth:`open`; close it, or use it in a ``with`` statement."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._file_id = _file_id(connection.execute("PRAGMA database_list").fetchone()[2])
        _OPEN_HERE.add(self._file_id)
        self._unsynced_seconds = 0.0  # how long the runs took that may not be on the disk yet

    @classmethod
    def create(
        cls, path: str | Path, about: Mapping[str, Any], algorithms: Iterable[str], rivals: StoredRivals | None = None
    ) -> Journal:
        """Start a journal at a path where there is no file, or only the remains of a process killed in this method."""
        path = Path(path)
        rows = [(key, json.dumps(value, allow_nan=False)) for key, value in about.items()]
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            if not _is_leftover(path):
                raise file_exists_error(path) from None
        except OSError as problem:
            raise SourceError(f"{path} cannot be written: {problem.strerror}.") from None
        journal = cls(path, _connect(path))
        try:
            journal._prepare()
            with journal._writing():
                if not journal._is_empty():  # another process was faster
                    raise file_exists_error(path)
                execute = journal._connection.execute
                for statement in _SCHEMA.split(";"):
                    execute(statement)
                execute(f"PRAGMA application_id = {_APPLICATION}")
                execute(f"PRAGMA user_version = {_VERSION}")
                journal._connection.executemany("INSERT INTO about VALUES (?, ?)", rows)
                for place, name in enumerate(algorithms):
                    execute("INSERT INTO entries VALUES (?, ?, 0)", (place, name))
                if rivals is not None:
                    write_stored(journal._connection, rivals)
        except BaseException:
            # The file stays: it is empty, create() accepts it later, and another process may be using it already.
            journal.close()
            raise
        return journal

    @classmethod
    def open(cls, path: str | Path, *, called: str | Path | None = None) -> Journal:
        """Open an existing journal; ``called`` is its name in messages, if the file is a copy."""
        file, path = Path(path), Path(called or path)
        if not file.is_file():
            raise SourceError(f"{path}: there is no such file.")
        if not (os.access(file, os.R_OK | os.W_OK) and os.access(file.parent, os.W_OK)):
            raise SourceError(f"{path} cannot be written: a race needs write permission for the file and its folder.")
        if not file.stat().st_size:
            raise empty_journal_error(path)
        if not is_sqlite(file):
            raise SourceError(f"{path} is not the journal of a race.")
        journal = cls(path, _connect(file))
        try:
            [[application]] = journal._rows("PRAGMA application_id")
            [[version]] = journal._rows("PRAGMA user_version")
            if application != _APPLICATION:
                if journal._is_empty():
                    raise empty_journal_error(path)
                raise SourceError(f"{path} is an SQLite file, but not the journal of a race.")
            if version != _VERSION:
                raise SourceError(
                    f"{path} is a journal of version {version}; this version of polarbear-plugins reads {_VERSION}."
                )
            # A view or trigger that someone added would run when the journal is read or written.
            schema = {
                " ".join(sql.split()) for (sql,) in journal._rows("SELECT sql FROM sqlite_master WHERE sql <> ''")
            } - {" ".join(STORED_SCHEMA.split())}
            if schema != {" ".join(statement.split()) for statement in _SCHEMA.split(";") if statement.strip()}:
                raise SourceError(f"{path} is damaged: its tables are not those of a journal.")
            found = [str(row[0]) for row in journal._rows("PRAGMA quick_check(1)")]
            if found != ["ok"]:
                raise SourceError(f"{path} is damaged: {found[0]}.")
            journal._prepare()  # not earlier: it changes the file, which might belong to another program
        except BaseException:
            journal.close()
            raise
        return journal

    @property
    def about(self) -> dict[str, Any]:
        """Description of the race: written at the start, and updated since."""
        with self.naming_damage("about"):
            return {str(key): parse_json(text) for key, text in self._rows("SELECT key, json FROM about")}

    @property
    def entries(self) -> list[Entry]:
        """Algorithms in the order of their entry."""
        return [Entry(*row) for row in self._rows("SELECT algorithm, after_round FROM entries ORDER BY place")]

    @property
    def instances(self) -> list[Identity]:
        """Instances in the order in which they were drawn."""
        with self.naming_damage("instances"):
            rows = self._rows("SELECT identity FROM instances ORDER BY place")
            return [Identity.from_json(text) for (text,) in rows]

    @property
    def rounds(self) -> list[Round]:
        """Finished rounds."""
        with self.naming_damage("rounds"):
            rows = self._rows("SELECT json FROM rounds ORDER BY number")
            return [Round.from_json(parse_json(text)) for (text,) in rows]

    def resolved(self, timepoints: int, algorithms: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Pairs settled after the last round, as ``[timepoint, algorithm, algorithm]``."""
        with self.naming_damage("rounds"):
            [[blob]] = self._rows("SELECT resolved FROM rounds ORDER BY number DESC LIMIT 1")
            count = timepoints * algorithms**2
            if len(blob) != -(-count // 8):
                raise ValueError(f"expected {count} bits, got {len(blob)} bytes")
            bits = np.unpackbits(np.frombuffer(blob, dtype=np.uint8), count=count)
            return bits.reshape(timepoints, algorithms, algorithms).astype(bool)

    def runs(self) -> Iterator[JournalRun]:
        """Finished runs in the order in which they finished."""
        with self.naming_damage("runs"):
            cursor = self._connection.execute(
                "SELECT round, algorithm, instance, seed, horizon, times, best, seconds, failure FROM runs "
                "ORDER BY rowid"
            )
        for number in itertools.count(1):
            with self.naming_damage(f"runs, number {number}"):
                row = next(cursor, None)
                if row is None:
                    return
                in_round, algorithm, instance, seed, horizon, times, best, seconds, failure = row
                trajectory = Trajectory(
                    algorithm=algorithm,
                    instance=instance,
                    seed=seed,
                    times=np.frombuffer(times, dtype="<f8"),
                    best=np.frombuffer(best, dtype="<f8"),
                    horizon=horizon,
                )
                yield JournalRun(in_round, trajectory, seconds, failure)

    def stored(self, timepoints: int) -> dict[tuple[str, str], list[FloatArray]]:
        """Values of stored rivals, ``[algorithm, instance]``; none in an ordinary race."""
        with self.naming_damage("stored"):
            return read_stored(self._connection, timepoints)

    @property
    def failures(self) -> list[Failure]:
        """Failed runs in the order in which they finished."""
        statement = "SELECT algorithm, instance, failure FROM runs WHERE failure IS NOT NULL ORDER BY rowid"
        return [Failure(*row) for row in self._rows(statement)]

    def write_about(self, **about: Any) -> None:
        """Add to the description of the race, or change it."""
        with self._writing():
            for key, value in about.items():
                text = json.dumps(value, allow_nan=False)
                self._connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (key, text))

    def add_entry(self, algorithm: str, after_round: int) -> None:
        """Store that an algorithm entered."""
        with self._writing():
            self._connection.execute(
                "INSERT INTO entries SELECT max(place) + 1, ?, ? FROM entries", (algorithm, after_round)
            )

    def add_instances(self, start: int, identities: Iterable[Identity]) -> None:
        """Store instances that were drawn."""
        rows = [(place, identity.to_json()) for place, identity in enumerate(identities, start)]
        with self._writing():
            self._connection.executemany("INSERT INTO instances VALUES (?, ?)", rows)

    def add_runs(self, runs: Iterable[JournalRun]) -> None:
        """Store finished runs.

        When this returns they survive the end of this process.  They are also on the disk, unless they and the runs
        before them that are not took less than 0.05 s together; then a later call writes them to the disk.
        """
        runs = list(runs)
        rows = [
            (
                run.round,
                run.trajectory.algorithm,
                run.trajectory.instance,
                run.trajectory.seed,
                run.trajectory.horizon,
                _bytes(run.trajectory.times),
                _bytes(run.trajectory.best),
                run.seconds,
                run.failure,
            )
            for run in runs
        ]
        # How long a failed run took is not known, so it is always worth waiting for the disk.
        self._unsynced_seconds += sum(run.seconds if run.failure is None else _SECONDS_WITHOUT_SYNC for run in runs)
        sync = self._unsynced_seconds >= _SECONDS_WITHOUT_SYNC
        if not sync:
            self._rows("PRAGMA synchronous = NORMAL")
        try:
            with self._writing():
                self._connection.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        finally:
            if not sync:
                self._rows("PRAGMA synchronous = FULL")
        if sync:
            self._unsynced_seconds = 0.0

    def add_round(
        self,
        finished: Round,
        resolved: np.ndarray[Any, np.dtype[np.bool_]],
        later: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Store a finished round; ``later`` are the runs (algorithm, instance) that it leaves for the next one."""
        row = (finished.number, json.dumps(asdict(finished)), np.packbits(resolved).tobytes())
        with self._writing():
            self._connection.execute("INSERT INTO rounds VALUES (?, ?, ?)", row)
            self._connection.executemany(
                "UPDATE runs SET round = round + 1 WHERE algorithm = ? AND instance = ?", later
            )

    @contextlib.contextmanager
    def naming_damage(self, place: str) -> Iterator[None]:
        """Turn errors that damaged data cause into an error that names the file and the place."""
        try:
            yield
        except SourceError:
            raise
        except _DAMAGE_ERRORS as problem:
            why = f"{reason(problem)} is missing" if isinstance(problem, KeyError) else reason(problem)
            raise SourceError(f"{self.path}, table {place}: damaged ({why}).") from None

    def close(self) -> None:
        """Close the file and unlock it."""
        self._connection.close()
        _OPEN_HERE.discard(self._file_id)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement).fetchall()
        except (sqlite3.Error, UnicodeError) as problem:
            raise describe_sqlite_error(self.path, problem) from None

    def _is_empty(self) -> bool:
        return not self._rows("SELECT 1 FROM sqlite_schema LIMIT 1")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction: either all of it is stored, or nothing."""
        try:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.commit()
            except BaseException:
                self._connection.rollback()
                raise
        except sqlite3.Error as problem:
            raise describe_sqlite_error(self.path, problem) from None

    def _prepare(self) -> None:
        """Lock the file, and turn on the write-ahead log, which undoes interrupted transactions."""
        self._rows("PRAGMA journal_mode = WAL")
        self._rows("PRAGMA synchronous = FULL")
        with self._writing():
            pass


def is_sqlite(path: Path) -> bool:
    """Whether a file has the header of an SQLite file.

    :raises SourceError: it is a journal that this process has open.
    """
    if _file_id(path) in _OPEN_HERE:
        raise SourceError(f"{path} is in use by a race in this process; wait until that race is over.")
    with path.open("rb") as file:
        return file.read(len(_HEADER)) == _HEADER


def _is_leftover(path: Path) -> bool:
    """Whether a file is the empty remains of a process that was killed while it created a journal."""
    if not path.is_file():
        return False
    if not path.stat().st_size:
        return not path.with_name(f"{path.name}-wal").exists()
    try:
        if not is_sqlite(path):
            return False
        with Journal(path, _connect(path)) as journal:
            return journal._is_empty() and journal._rows("PRAGMA application_id") == [(0,)]
    except (OSError, SourceError):  # in use, or damaged: not empty
        return False


def _file_id(path: str | Path) -> tuple[int, int]:
    status = Path(path).stat()
    return status.st_dev, status.st_ino


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, timeout=1.0, isolation_level=None)
        # The lock is held until the file is closed, or the process ends.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    except sqlite3.Error as problem:
        raise describe_sqlite_error(path, problem) from None
    return connection


def _bytes(values: FloatArray) -> bytes:
    return values.astype("<f8", copy=False).tobytes()
