"""The journal of a race: an SQLite file that holds every finished run before it counts.

Plain data only.  The file is locked while a race uses it, and what a process that was killed leaves behind is complete
up to its last finished run.
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

from polarbear_plugins.errors import PolarBearError, SourceError
from polarbear_plugins.problems import Identity
from polarbear_plugins.race_state import Round
from polarbear_plugins.results import Failure, round_from_json
from polarbear_plugins.trajectories import Trajectory
from polarbear_plugins.validation import FloatArray, parse_json, reason

__all__ = ["Entry", "Journal", "JournalRun"]

# "PLBR", so that no other program's file is taken for a journal.
_APPLICATION = 0x504C4252
_VERSION = 1
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

    @classmethod
    def create(cls, path: str | Path, about: Mapping[str, Any], algorithms: Iterable[str]) -> Journal:
        """Begin a journal at a path where there is nothing yet."""
        path = Path(path)
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            raise SourceError(
                f"{path}: there is a file already, and it is not overwritten. Go on with that race by "
                f"resume({str(path)!r}), or choose another name."
            ) from None
        except OSError as problem:
            raise SourceError(f"{path} cannot be written: {problem.strerror}.") from None
        journal = cls(path, _connect(path))
        try:
            journal._prepare()
            with journal._writing():
                execute = journal._connection.execute
                for statement in _SCHEMA.split(";"):
                    execute(statement)
                execute(f"PRAGMA application_id = {_APPLICATION}")
                execute(f"PRAGMA user_version = {_VERSION}")
                for key, value in about.items():
                    execute("INSERT INTO about VALUES (?, ?)", (key, json.dumps(value, allow_nan=False)))
                for place, name in enumerate(algorithms):
                    execute("INSERT INTO entries VALUES (?, ?, 0)", (place, name))
        except BaseException:
            journal.close()
            path.unlink(missing_ok=True)
            raise
        return journal

    @classmethod
    def open(cls, path: str | Path) -> Journal:
        """Open a journal that exists."""
        path = Path(path)
        if not path.is_file():
            raise SourceError(f"{path}: there is no such file.")
        if not (os.access(path, os.R_OK | os.W_OK) and os.access(path.parent, os.W_OK)):
            raise SourceError(f"{path} cannot be written: going on needs permission for the file and for its folder.")
        with path.open("rb") as file:
            if file.read(16) != b"SQLite format 3\x00":
                raise SourceError(f"{path} is not the journal of a race.")
        journal = cls(path, _connect(path))
        try:
            [[application]] = journal._rows("PRAGMA application_id")
            [[version]] = journal._rows("PRAGMA user_version")
            if application != _APPLICATION:
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
            return [round_from_json(parse_json(text)) for (text,) in rows]

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
        """Write finished runs; they are on the disk when this returns."""
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
        with self._writing():
            self._connection.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

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

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement).fetchall()
        except (sqlite3.Error, UnicodeError) as problem:
            raise _source_error(self.path, problem) from None

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction: all of it is on the disk, or nothing."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.rollback()
                raise
            self._connection.commit()
        except sqlite3.Error as problem:
            raise _source_error(self.path, problem) from None

    def _prepare(self) -> None:
        """Lock the file, and have it written such that an interrupted transaction leaves no trace."""
        self._rows("PRAGMA journal_mode = WAL")
        self._rows("PRAGMA synchronous = FULL")
        with self._writing():
            pass


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
    return SourceError(f"{path} is damaged, or not the journal of a race: {text}.")


def _bytes(values: FloatArray) -> bytes:
    return values.astype("<f8", copy=False).tobytes()
