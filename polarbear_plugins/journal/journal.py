"""The journal of a race: an SQLite file that holds every finished run before it counts.

Plain data only.  The file is locked while a race uses it, and what a process that was killed leaves behind is complete
up to its last finished run.  A machine that loses its power may take runs with it that together took a moment.
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
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.racing.state import Failure, Round
from polarbear_plugins.trajectories.trajectory import Trajectory

# "PLBR", so that no other program's file is taken for a journal.
_APPLICATION = 0x504C4252
_HEADER = b"SQLite format 3\x00"
_VERSION = 1
# Waiting for the disk takes about a millisecond: runs that took fewer seconds than this together wait with the next.
_WORTH_WAITING = 0.05
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
# Journals that are open in this process.  On POSIX, a process that closes a file gives up all its locks on it, whoever
# in the process holds them; nobody may open one of these a second time, not even to look at it.
_OPEN_HERE: set[tuple[int, int]] = set()


@dataclass(frozen=True, slots=True)
class Entry:
    """An algorithm and after which round it entered; 0 is the start."""

    algorithm: str
    after_round: int


@dataclass(frozen=True, slots=True)
class JournalRun:
    """A finished run: in which round, its trajectory, how long it took, and why it failed if it did."""

    round: int
    trajectory: Trajectory
    seconds: float
    failure: str | None = None


class Journal:
    """An open journal.  :meth:`create` and :meth:`open` make one; close it, or use it in a ``with`` statement."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._file = _file(connection.execute("PRAGMA database_list").fetchone()[2])
        _OPEN_HERE.add(self._file)
        self._at_stake = 0.0  # seconds that runs took which the disk may not hold yet

    @classmethod
    def create(cls, path: str | Path, about: Mapping[str, Any], algorithms: Iterable[str]) -> Journal:
        """Begin a journal at a path where there is nothing yet, or what a process left that was killed in here."""
        path = Path(path)
        rows = [(key, json.dumps(value, allow_nan=False)) for key, value in about.items()]
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            if not _is_leftover(path):
                raise _taken(path) from None
        except OSError as problem:
            raise SourceError(f"{path} cannot be written: {problem.strerror}.") from None
        journal = cls(path, _connect(path))
        try:
            journal._prepare()
            with journal._writing():
                if not journal._is_empty():  # another process was faster
                    raise _taken(path)
                execute = journal._connection.execute
                for statement in _SCHEMA.split(";"):
                    execute(statement)
                execute(f"PRAGMA application_id = {_APPLICATION}")
                execute(f"PRAGMA user_version = {_VERSION}")
                journal._connection.executemany("INSERT INTO about VALUES (?, ?)", rows)
                for place, name in enumerate(algorithms):
                    execute("INSERT INTO entries VALUES (?, ?, 0)", (place, name))
        except BaseException:
            # What is left is empty, and the next one may begin there; it may be in use by another process already.
            journal.close()
            raise
        return journal

    @classmethod
    def open(cls, path: str | Path, *, called: str | Path | None = None) -> Journal:
        """Open a journal that exists; ``called`` is how messages name it, if it is a copy."""
        file, path = Path(path), Path(called or path)
        if not file.is_file():
            raise SourceError(f"{path}: there is no such file.")
        if not (os.access(file, os.R_OK | os.W_OK) and os.access(file.parent, os.W_OK)):
            raise SourceError(f"{path} cannot be written: going on needs permission for the file and for its folder.")
        if not file.stat().st_size:
            raise _begun_nowhere(path)
        if not is_sqlite(file):
            raise SourceError(f"{path} is not the journal of a race.")
        journal = cls(path, _connect(file))
        try:
            [[application]] = journal._rows("PRAGMA application_id")
            [[version]] = journal._rows("PRAGMA user_version")
            if application != _APPLICATION:
                if journal._is_empty():
                    raise _begun_nowhere(path)
                raise SourceError(f"{path} is an SQLite file, but not the journal of a race.")
            if version != _VERSION:
                raise SourceError(
                    f"{path} is a journal of version {version}; this version of polarbear-plugins reads {_VERSION}."
                )
            # A view or a trigger of another hand would run when the journal is read or written.
            schema = {
                " ".join(sql.split()) for (sql,) in journal._rows("SELECT sql FROM sqlite_master WHERE sql <> ''")
            }
            if schema != {" ".join(statement.split()) for statement in _SCHEMA.split(";") if statement.strip()}:
                raise SourceError(f"{path} is damaged: its tables are not those of a journal.")
            found = [str(row[0]) for row in journal._rows("PRAGMA quick_check(1)")]
            if found != ["ok"]:
                raise SourceError(f"{path} is damaged: {found[0]}.")
            journal._prepare()  # not before: it changes the file, which may be another program's
        except BaseException:
            journal.close()
            raise
        return journal

    @property
    def about(self) -> dict[str, Any]:
        """What was written at the start, and changed since."""
        with self.understanding("about"):
            return {str(key): parse_json(text) for key, text in self._rows("SELECT key, json FROM about")}

    @property
    def entries(self) -> list[Entry]:
        """Algorithms in the order of their entry."""
        return [Entry(*row) for row in self._rows("SELECT algorithm, after_round FROM entries ORDER BY place")]

    @property
    def instances(self) -> list[Identity]:
        """Instances in the order in which they were drawn."""
        with self.understanding("instances"):
            rows = self._rows("SELECT identity FROM instances ORDER BY place")
            return [Identity.from_json(text) for (text,) in rows]

    @property
    def rounds(self) -> list[Round]:
        """Finished rounds."""
        with self.understanding("rounds"):
            rows = self._rows("SELECT json FROM rounds ORDER BY number")
            return [Round.from_json(parse_json(text)) for (text,) in rows]

    def resolved(self, timepoints: int, algorithms: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Read what was settled after the last round."""
        with self.understanding("rounds"):
            [[blob]] = self._rows("SELECT resolved FROM rounds ORDER BY number DESC LIMIT 1")
            count = timepoints * algorithms**2
            if len(blob) != -(-count // 8):
                raise ValueError(f"expected {count} bits, got {len(blob)} bytes")
            bits = np.unpackbits(np.frombuffer(blob, dtype=np.uint8), count=count)
            return bits.reshape(timepoints, algorithms, algorithms).astype(bool)

    def runs(self) -> Iterator[JournalRun]:
        """Finished runs in the order in which they finished."""
        with self.understanding("runs"):
            cursor = self._connection.execute(
                "SELECT round, algorithm, instance, seed, horizon, times, best, seconds, failure FROM runs "
                "ORDER BY rowid"
            )
        for number in itertools.count(1):
            with self.understanding(f"runs, number {number}"):
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

    @property
    def failures(self) -> list[Failure]:
        """Runs that failed for good, in the order of the rounds."""
        statement = "SELECT algorithm, instance, failure FROM runs WHERE failure IS NOT NULL ORDER BY rowid"
        return [Failure(*row) for row in self._rows(statement)]

    def write_about(self, **about: Any) -> None:
        """Change what is known about the race."""
        with self._writing():
            for key, value in about.items():
                text = json.dumps(value, allow_nan=False)
                self._connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (key, text))

    def add_entry(self, algorithm: str, after_round: int) -> None:
        """Note that an algorithm entered."""
        with self._writing():
            self._connection.execute(
                "INSERT INTO entries SELECT max(place) + 1, ?, ? FROM entries", (algorithm, after_round)
            )

    def add_instances(self, start: int, identities: Iterable[Identity]) -> None:
        """Note which instances were drawn."""
        rows = [(place, identity.to_json()) for place, identity in enumerate(identities, start)]
        with self._writing():
            self._connection.executemany("INSERT INTO instances VALUES (?, ?)", rows)

    def add_runs(self, runs: Iterable[JournalRun]) -> None:
        """Write finished runs.

        They outlive this process when this returns, and are on the disk unless they and others before them took less
        than a moment together; those are with the next.
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
        # How long a failed run took is not known.
        self._at_stake += sum(run.seconds if run.failure is None else _WORTH_WAITING for run in runs)
        wait = self._at_stake >= _WORTH_WAITING
        if not wait:
            self._rows("PRAGMA synchronous = NORMAL")
        try:
            with self._writing():
                self._connection.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        finally:
            if not wait:
                self._rows("PRAGMA synchronous = FULL")
        if wait:
            self._at_stake = 0.0

    def add_round(
        self,
        finished: Round,
        resolved: np.ndarray[Any, np.dtype[np.bool_]],
        later: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Write a finished round; runs that it did not use (algorithm, instance) are kept for a later one."""
        row = (finished.number, json.dumps(asdict(finished)), np.packbits(resolved).tobytes())
        with self._writing():
            self._connection.execute("INSERT INTO rounds VALUES (?, ?, ?)", row)
            self._connection.executemany(
                "UPDATE runs SET round = round + 1 WHERE algorithm = ? AND instance = ?", later
            )

    @contextlib.contextmanager
    def understanding(self, place: str) -> Iterator[None]:
        """Turn whatever is wrong with stored data into an error that names the place."""
        try:
            yield
        except (
            *(PolarBearError, sqlite3.Error, AttributeError, LookupError, TypeError, ValueError),
            *(OverflowError, RecursionError),
        ) as problem:
            if isinstance(problem, SourceError):
                raise
            why = f"{reason(problem)} is missing" if isinstance(problem, KeyError) else reason(problem)
            raise SourceError(f"{self.path}, table {place}: damaged ({why}).") from None

    def close(self) -> None:
        """Close the file and unlock it."""
        self._connection.close()
        _OPEN_HERE.discard(self._file)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement).fetchall()
        except (sqlite3.Error, UnicodeError) as problem:
            raise _source_error(self.path, problem) from None

    def _is_empty(self) -> bool:
        return not self._rows("SELECT 1 FROM sqlite_schema LIMIT 1")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction: all of it is on the disk, or nothing."""
        try:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.commit()
            except BaseException:
                self._connection.rollback()
                raise
        except sqlite3.Error as problem:
            raise _source_error(self.path, problem) from None

    def _prepare(self) -> None:
        """Lock the file, and have it written such that an interrupted transaction leaves no trace."""
        self._rows("PRAGMA journal_mode = WAL")
        self._rows("PRAGMA synchronous = FULL")
        with self._writing():
            pass


def is_sqlite(path: Path) -> bool:
    """Whether a file looks like one of SQLite.

    :raises SourceError: it is a journal that this very process has open.
    """
    if _file(path) in _OPEN_HERE:
        raise SourceError(f"{path} is in use by a race in this process; wait until that race is over.")
    with path.open("rb") as file:
        return file.read(len(_HEADER)) == _HEADER


def _is_leftover(path: Path) -> bool:
    """Whether a file is what remains of a process that was killed while it began a journal: it holds nothing."""
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


def _file(path: str | Path) -> tuple[int, int]:
    status = Path(path).stat()
    return status.st_dev, status.st_ino


def _taken(path: Path) -> SourceError:
    return SourceError(
        f"{path}: there is a file already, and it is not overwritten. Go on with that race by "
        f"resume({str(path)!r}), or choose another name."
    )


def _begun_nowhere(path: Path) -> SourceError:
    return SourceError(f"{path} is empty: its race was ended before it began. Start that race again.")


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, timeout=1.0, isolation_level=None)
        # The lock stays until the file is closed, or its process dies.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    except sqlite3.Error as problem:
        raise _source_error(path, problem) from None
    return connection


def _source_error(path: Path, problem: Exception) -> SourceError:
    text = str(problem)
    if "locked" in text or "busy" in text:
        return SourceError(f"{path} is in use by another process; wait until that race is over, or stop it.")
    if "readonly" in text or "unable to open" in text:
        return SourceError(f"{path} cannot be written: {text}.")
    if "full" in text:
        return SourceError(f"{path}: the disk is full. Make room and resume; no finished run is lost.")
    if "disk I/O" in text:  # a quota, a limit on the size of files, a disk that is gone
        return SourceError(
            f"{path} cannot be read or written: {text}. Is the disk full, or gone? Mend that and resume; no finished "
            "run is lost."
        )
    return SourceError(f"{path} is damaged, or not the journal of a race: {text}.")


def _bytes(values: FloatArray) -> bytes:
    return values.astype("<f8", copy=False).tobytes()
