"""What a journal says, checked against its checksums."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import PolarBearError, PolarBearWarning, SourceError, reason
from polarbear_plugins.files import parse_json
from polarbear_plugins.journal.custody import OpenFile
from polarbear_plugins.journal.messages import describe_sqlite_error, empty_journal_error
from polarbear_plugins.journal.tables import (
    IDENTIFIER,
    SCHEMA,
    TABLES,
    VERSION,
    AlteredError,
    Row,
    Rows,
    is_first_version,
    upgrade,
)
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.racing.state import Failure, Round
from polarbear_plugins.trajectories.trajectory import Trajectory

#: "PLBR", to tell a journal from the SQLite files of other programs.
APPLICATION = 0x504C4252
#: Key in ``about``: the path of the file if it has a log, unless the log takes that back.
LOG_EXPECTED = "log_expected"
#: Round of a run that was begun ahead of time and that no round has used yet.
NO_ROUND = 0
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
    """A finished run: its round, or ``NO_ROUND``, its trajectory, the seconds it took, and why it failed, if it did."""

    round: int
    trajectory: Trajectory
    seconds: float
    failure: str | None = None


class JournalContent:
    """What an open journal says.

    Parameters
    ----------
    path
        Its name in messages; the file may be a copy.
    """

    def __init__(self, path: Path, file: OpenFile) -> None:
        self.path = path
        self._file = file
        self._stored_rows: Rows | None = None

    @property
    def about(self) -> dict[str, Any]:
        """Description of the race: written at the start, and updated since."""
        with self.naming_damage("about"):
            found = {str(key): parse_json(text) for key, text in self._rows.read("about")}
        return {key: value for key, value in found.items() if key not in (IDENTIFIER, LOG_EXPECTED)}

    @property
    def expects_log(self) -> Path | None:
        """The path that the file had if it expects a log beside it, and that log has not been read; else ``None``."""
        with self.naming_damage("about"):
            for _, text in self._rows.read("about", "key = ?", (LOG_EXPECTED,)):
                return Path(parse_json(text))
        return None

    @property
    def entries(self) -> list[Entry]:
        """Algorithms in the order of their entry."""
        with self.naming_damage("entries"):
            return [Entry(algorithm, after_round) for _, algorithm, after_round in self._rows.read("entries")]

    @property
    def instances(self) -> list[Identity]:
        """Instances in the order in which they were drawn."""
        with self.naming_damage("instances"):
            return [Identity.from_json(text) for _, text in self._rows.read("instances")]

    @property
    def rounds(self) -> list[Round]:
        """Finished rounds."""
        with self.naming_damage("rounds"):
            return [Round.from_json(parse_json(text)) for _, text, _ in self._rows.read("rounds")]

    def resolved(self, timepoints: int, algorithms: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Pairs settled after the last round, as ``[timepoint, algorithm, algorithm]``."""
        with self.naming_damage("rounds"):
            [[_, _, blob]] = self._rows.read("rounds", "number = (SELECT max(number) FROM rounds)")
            count = timepoints * algorithms**2
            if len(blob) != -(-count // 8):
                raise ValueError(f"expected {count} bits, got {len(blob)} bytes")
            bits = np.unpackbits(np.frombuffer(blob, dtype=np.uint8), count=count)
            return bits.reshape(timepoints, algorithms, algorithms).astype(bool)

    def runs(self) -> Iterator[JournalRun]:
        """Finished runs in the order in which they finished."""
        with self.naming_damage("runs"):
            rows = self._rows.read("runs")
        for number in itertools.count(1):
            with self.naming_damage(f"runs, number {number}"):
                row = next(rows, None)
                if row is None:
                    return
                _, in_round, algorithm, instance, seed, horizon, times, best, seconds, failure = row
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
        found: dict[tuple[str, str], list[FloatArray]] = {}
        with self.naming_damage("stored"):
            for _, algorithm, instance, blob in self._rows.read("stored"):
                values = np.frombuffer(blob, dtype="<f8")
                if values.size != timepoints:
                    raise ValueError(f"expected {timepoints} values, got {values.size}")
                found.setdefault((algorithm, instance), []).append(values)
        return found

    @property
    def failures(self) -> list[Failure]:
        """Failed runs in the order in which they finished."""
        with self.naming_damage("runs"):
            return [
                Failure(algorithm, instance, failure)
                for _, _, algorithm, instance, *_, failure in self._rows.read("runs", "failure IS NOT NULL")
            ]

    def check_rows(self) -> None:
        """Raise an error if any row does not match its checksum."""
        for table in TABLES:
            rows: Iterator[Row | None] = iter(())
            with self.naming_damage(table):
                rows = self._rows.read(table)
            row: Row | None = ()
            for number in itertools.count(1):
                with self.naming_damage(f"{table}, number {number}"):
                    row = next(rows, None)
                if row is None:
                    break

    def check_file(self, *, quiet: bool = False) -> None:
        """Raise an error if the file is not a journal; one of version 1 gets checksums, with a warning."""
        [[application]] = self._query("PRAGMA application_id")
        [[version]] = self._query("PRAGMA user_version")
        if application != APPLICATION:
            if self._is_empty():
                raise empty_journal_error(self.path)
            raise SourceError(f"{self.path} is an SQLite file, but not the journal of a race.")
        if version not in (1, VERSION):
            raise SourceError(
                f"{self.path} is a journal of version {version}; this version of polarbear-plugins reads 1 and "
                f"{VERSION}."
            )
        # A view or trigger that someone added would run when the journal is read or written.
        statements = self._query("SELECT sql FROM sqlite_schema WHERE sql <> ''")
        schema = frozenset(" ".join(sql.split()) for (sql,) in statements)
        if not (schema == SCHEMA if version == VERSION else is_first_version(schema)):
            raise SourceError(f"{self.path} is damaged: its tables are not those of a journal.")
        found = [str(row[0]) for row in self._query("PRAGMA integrity_check(1)")]
        if found != ["ok"]:
            raise SourceError(f"{self.path} is damaged: {found[0]}.")
        if version == 1:
            with self._transaction():
                upgrade(self._file.connection)
            if not quiet:
                warnings.warn(
                    f"{self.path} was begun by an earlier version of polarbear-plugins and has no checksums: if its "
                    "content was altered before now, nobody can tell.",
                    PolarBearWarning,
                    stacklevel=2,
                )

    @contextlib.contextmanager
    def naming_damage(self, place: str) -> Iterator[None]:
        """Turn errors that damaged data cause into an error that names the file and the place."""
        try:
            yield
        except SourceError:
            raise
        except AlteredError as problem:
            raise SourceError(
                f"{self.path}, table {place}: damaged ({problem}). Use a copy of the journal that is intact, or "
                "race again."
            ) from None
        except _DAMAGE_ERRORS as problem:
            why = f"{reason(problem)} is missing" if isinstance(problem, KeyError) else reason(problem)
            raise SourceError(f"{self.path}, table {place}: damaged ({why}).") from None

    def close(self) -> None:
        """Close the file and unlock it."""
        self._file.close()

    @property
    def _rows(self) -> Rows:
        if self._stored_rows is None:
            self._stored_rows = Rows(self._file.connection)
        return self._stored_rows

    def _query(self, statement: str) -> list[Row]:
        try:
            return self._file.connection.execute(statement).fetchall()
        except (sqlite3.Error, UnicodeError) as problem:
            raise describe_sqlite_error(self.path, problem) from None

    def _is_empty(self) -> bool:
        return not self._query("SELECT 1 FROM sqlite_schema LIMIT 1")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """One transaction: either all of it is stored, or nothing."""
        connection = self._file.connection
        try:
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
        except sqlite3.Error as problem:
            raise describe_sqlite_error(self.path, problem) from None
