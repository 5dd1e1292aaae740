"""The journal of a race: an SQLite file that stores every finished run before the race uses it.

It holds plain data only, and each row has a checksum.  It is locked while a race uses it.  If the process is killed,
the file is complete up to the last finished run; if the machine loses power, runs may be lost that together took less
than 0.05 s, unless the journal is durable.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import PolarBearWarning, SourceError
from polarbear_plugins.files import sync_folder
from polarbear_plugins.journal.copies import journal_copy
from polarbear_plugins.journal.custody import OpenFile, application_of, is_sqlite, real_path
from polarbear_plugins.journal.log import find_damage, log_of, log_size, set_damage_aside
from polarbear_plugins.journal.messages import file_exists_error, foreign_log_error
from polarbear_plugins.journal.reading import APPLICATION, LOG_EXPECTED, NO_ROUND, JournalContent, JournalRun
from polarbear_plugins.journal.tables import Row, create_tables
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.racing.state import Round
from polarbear_plugins.racing.stored import StoredRivals
from polarbear_plugins.trajectories.trajectory import Trajectory

# Waiting for the disk takes about a millisecond.  Runs that together took fewer seconds than this do not wait for it.
_SECONDS_WITHOUT_SYNC = 0.05
# Bytes from which on the content of the log is moved into the file.
_LONG_LOG = 4 << 20


class Journal(JournalContent):
    """A journal that a race uses, from :meth:`create` or :meth:`open`; close it, or use it in a ``with`` statement.

    Parameters
    ----------
    durable
        Whether every run waits for the disk.
    """

    def __init__(self, path: Path, file: OpenFile, *, durable: bool = False) -> None:
        super().__init__(path, file)
        self._sync_after = 0.0 if durable else _SECONDS_WITHOUT_SYNC
        self._unsynced_seconds = 0.0  # how long the runs took that may not be on the disk yet
        self._next_place = 0  # of a run
        self._began = False  # to write
        self._expects_log = False  # whether the file says so; what is written first to the log takes it back

    @classmethod
    def create(
        cls,
        path: str | Path,
        about: Mapping[str, Any],
        algorithms: Iterable[str],
        rivals: StoredRivals | None = None,
        *,
        durable: bool = False,
    ) -> Journal:
        """Start a journal at a path where there is no file, or only the remains of a process killed in this method."""
        path, real = Path(path), real_path(path)
        rows = _about_rows(about)
        try:
            if log_size(real) and not (real.exists() and real.stat().st_size):
                raise foreign_log_error(path)
            real.touch(exist_ok=False)
        except FileExistsError:
            if not _is_leftover(real):
                raise file_exists_error(path) from None
        except OSError as problem:
            raise SourceError(f"{path} cannot be written: {problem.strerror}.") from None
        journal = cls(path, OpenFile(real), durable=durable)
        try:
            journal._lock()
            with journal._transaction():
                if not journal._is_empty():  # another process was faster
                    raise file_exists_error(path)
                connection = journal._file.connection
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                write = create_tables(connection).write
                write("about", rows)
                write("entries", ((place, name, 0) for place, name in enumerate(algorithms)))
                if rivals is not None:
                    stored = ((*key, _bytes(values)) for key, repeated in rivals.values.items() for values in repeated)
                    write("stored", ((place, *row) for place, row in enumerate(stored)))
                    write("instances", _identity_rows(0, rivals.instances))
            journal._begin_log()
        except BaseException:
            # The file stays: it is empty, create() accepts it later, and another process may be using it already.
            journal._file.close()
            raise
        sync_folder(real.parent)
        return journal

    @classmethod
    def open(cls, path: str | Path, *, salvage: bool = False, durable: bool = False) -> Journal:
        """Open an existing journal to continue its race.

        Parameters
        ----------
        salvage
            Continue without what is lost if its log is damaged or missing.
        """
        path, real = Path(path), real_path(path)
        if real.is_file() and not (os.access(real, os.R_OK | os.W_OK) and os.access(real.parent, os.W_OK)):
            raise SourceError(f"{path} cannot be written: a race needs write permission for the file and its folder.")
        if salvage and (damage := find_damage(log_of(real))) is not None:
            kept = set_damage_aside(real, damage)
            _warn(f"{path}: what was in its damaged log from byte {damage.intact:,} on is lost; {kept} is a copy.")
        # In a copy: whoever opens the file itself and closes it moves the content of the log into it, right or wrong.
        with journal_copy(path, without_log=salvage) as content:
            content.check_rows()
        journal = cls(path, OpenFile(real), durable=durable)
        try:
            journal._lock()
            journal.check_file(quiet=True)
            [[last]] = journal._query("SELECT coalesce(max(place), -1) FROM runs")
            journal._next_place = last + 1
            journal._expects_log = journal.expects_log is not None
        except BaseException:
            journal._file.close()
            raise
        return journal

    def write_about(self, **about: Any) -> None:
        """Add to the description of the race, or change it."""
        with self._writing():
            self._rows.write("about", _about_rows(about), replace=True)

    def add_entry(self, algorithm: str, after_round: int) -> None:
        """Store that an algorithm entered."""
        with self._writing():
            self._rows.write("entries", [(len(self.entries), algorithm, after_round)])

    def add_instances(self, start: int, identities: Iterable[Identity]) -> None:
        """Store instances that were drawn."""
        with self._writing():
            self._rows.write("instances", _identity_rows(start, identities))

    def add_runs(self, runs: Iterable[JournalRun], about: Mapping[str, Any] | None = None) -> None:
        """Store finished runs, and what they change in the description of the race.

        When this returns they survive the end of this process.  They are also on the disk, unless they and the runs
        before them that are not took less than 0.05 s together and the journal is not durable; then a later call
        writes them to the disk.
        """
        runs = list(runs)
        rows = [_run_row(place, run) for place, run in enumerate(runs, self._next_place)]
        # How long a failed run took is not known, so it is always worth waiting for the disk.
        self._unsynced_seconds += sum(run.seconds if run.failure is None else _SECONDS_WITHOUT_SYNC for run in runs)
        sync = self._unsynced_seconds >= self._sync_after
        if not sync:
            self._query("PRAGMA synchronous = NORMAL")
        try:
            with self._writing():
                self._rows.write("runs", rows, replace=True)
                if about:
                    self._rows.write("about", _about_rows(about), replace=True)
        finally:
            if not sync:
                self._query("PRAGMA synchronous = FULL")
        self._next_place += len(runs)
        if sync:
            self._unsynced_seconds = 0.0

    def add_round(
        self,
        finished: Round,
        resolved: np.ndarray[Any, np.dtype[np.bool_]],
        ahead: Iterable[Trajectory] = (),
        later: Iterable[tuple[str, str]] = (),
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """Store a finished round.

        Parameters
        ----------
        ahead
            Runs that it used and that were stored before they belonged to it, as it used them.
        later
            Runs (algorithm, instance) that were stored as runs of this round, and that it did not use.
        about
            What to change in the description of the race.
        """
        with self._writing():
            packed = np.packbits(resolved).tobytes()
            self._rows.write("rounds", [(finished.number, json.dumps(asdict(finished)), packed)])
            moved = [self._moved((run.algorithm, run.instance), finished.number, run) for run in ahead]
            moved += [self._moved(run, NO_ROUND) for run in later]
            self._rows.write("runs", moved, replace=True)
            self._rows.write("about", _about_rows(about or {}), replace=True)

    def _moved(self, names: tuple[str, str], number: int, run: Trajectory | None = None) -> Row:
        """Row of a run in another round, and as a shorter one if that is given."""
        [row] = self._rows.read("runs", "algorithm = ? AND instance = ?", names)
        place, _, _, _, seed, horizon, times, best, seconds, failure = row
        if run is not None:
            horizon, times, best = float(run.horizon), _bytes(run.times), _bytes(run.best)
        return place, number, *names, seed, horizon, times, best, seconds, failure

    def close(self) -> None:
        """Close the file and unlock it; what is in the log moves into the file, written again if it is gone."""
        expects_log = self._expects_log
        if self._began and (expects_log or not self._file.is_there()):
            with contextlib.suppress(SourceError):  # the disk is full, for example
                with self._writing():
                    pass
                expects_log = False
        super().close()
        if expects_log:  # SQLite has deleted it; an empty one says that nothing is missing
            log_of(self._file.path).touch()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction, in a file that expects a log or had one, and that is still there."""
        if not self._began:
            self._begin_log()
        elif not self._file.is_there():
            self._write_again()
        elif self._file.log_bytes >= _LONG_LOG:
            self._begin_log()
        with self._transaction():
            if self._expects_log:
                self._rows.remove("about", (LOG_EXPECTED, ""))
            yield
        self._expects_log = False

    def _lock(self) -> None:
        """Lock the file, and turn on the write-ahead log, which undoes interrupted transactions."""
        self._query("PRAGMA journal_mode = WAL")
        self._query("PRAGMA wal_autocheckpoint = 0")  # would overwrite the log: see the module log
        self._query("PRAGMA synchronous = FULL")
        with self._transaction():
            pass

    def _begin_log(self) -> None:
        """Move the content of the log into the file, and note there that a log belongs to it.

        Whatever is written to the log takes that back.  So a file that says so and has no log beside it has lost its
        log, but not if another program has moved the content of the log into the file.
        """
        self._empty_log()
        if not log_size(self._file.path):
            with self._transaction():
                mark = json.dumps(str(self._file.path))
                self._rows.write("about", [(LOG_EXPECTED, mark)], replace=True)
            self._empty_log()
            self._expects_log = True
        self._began = self._file.is_there()

    def _empty_log(self) -> None:
        # If the disk is full, the content stays in the log, where it is as safe.
        with contextlib.suppress(sqlite3.Error):
            self._file.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _write_again(self) -> None:
        """Write a file that was deleted, moved or replaced during the race again, and go on there."""
        gone = self._file.path
        self._file = self._file.move_to_a_copy()
        self._stored_rows = None
        self.path = self._file.path
        self._lock()
        self._begin_log()
        sync_folder(self.path.parent)
        _warn(
            f"{gone} or its log was deleted, moved or replaced while the race was using it. The journal was written "
            f"again, with every finished run: {self.path}."
        )


def _is_leftover(path: Path) -> bool:
    """Whether a file is the empty remains of a process that was killed while it created a journal."""
    if not path.is_file():
        return False
    if not path.stat().st_size:
        return not log_size(path)
    try:
        if not is_sqlite(path) or application_of(path) == APPLICATION:
            return False
        content = JournalContent(path, OpenFile(path))
        try:
            return content._is_empty() and content._query("PRAGMA application_id") == [(0,)]
        finally:
            content.close()
    except (OSError, SourceError):  # in use, or damaged: not empty
        return False


def _about_rows(about: Mapping[str, Any]) -> list[Row]:
    return [(key, json.dumps(value, allow_nan=False)) for key, value in about.items()]


def _run_row(place: int, run: JournalRun) -> Row:
    trajectory = run.trajectory
    names = trajectory.algorithm, trajectory.instance
    blobs = _bytes(trajectory.times), _bytes(trajectory.best)
    # As SQLite returns them, since the checksum is of what is read.
    seconds, horizon, seed = float(run.seconds), float(trajectory.horizon), int(trajectory.seed)
    return place, int(run.round), *names, seed, horizon, *blobs, seconds, run.failure


def _identity_rows(start: int, identities: Iterable[Identity]) -> Iterator[Row]:
    return ((place, identity.to_json()) for place, identity in enumerate(identities, start))


def _bytes(values: FloatArray) -> bytes:
    return values.astype("<f8", copy=False).tobytes()


def _warn(text: str) -> None:
    warnings.warn(text, PolarBearWarning, stacklevel=3)
