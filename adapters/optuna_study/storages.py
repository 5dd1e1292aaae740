"""Storages of Optuna studies: recognised without importing Optuna, opened without changing them."""

from __future__ import annotations

import fnmatch
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from polarbear_plugins.errors import InvalidInputError, SourceError, reason
from polarbear_plugins.extras import require
from polarbear_plugins.regular_files import check_regular, open_regular

if TYPE_CHECKING:
    import optuna

_WHO = "Reading Optuna studies"
_APPLICATION = slice(68, 72)  # in the header of an SQLite file: the program it belongs to, which Optuna leaves out
_DATABASES = ("sqlite", "mysql", "postgresql", "postgres", "oracle", "mssql", "mariadb", "cockroachdb")


def find_storage(source: str) -> Callable[[], optuna.storages.BaseStorage] | None:
    """Function that opens the storage at a URL or path; ``None`` if there is none.  Creates no file."""
    scheme, separator, rest = source.partition("://")
    if separator:
        dialect = scheme.partition("+")[0]
        if dialect not in _DATABASES:
            return None
        # The path of sqlite:///x.db is x.db, that of sqlite:////x.db is /x.db.
        path = rest.removeprefix("/").partition("?")[0] if dialect == "sqlite" else ""
        check_regular(path)
        if path and path != ":memory:" and not path.startswith("file:") and not Path(path).is_file():
            raise SourceError(f"{source}: there is no such storage: the file {path} does not exist.")
        return lambda: _open_database(source)
    try:
        with open_regular(Path(source)) as file:
            start = file.read(200)
    except (OSError, ValueError):  # missing, a folder, or text that cannot be a file name
        return None
    # Files of other programs may say so; even looking into them with SQLite can leave files beside them.
    if start.startswith(b"SQLite format 3\0") and not any(start[_APPLICATION]) and _has_studies(Path(source)):
        return lambda: _open_database(f"sqlite:///{source}")
    if start.startswith(b'{"op_code"'):
        return lambda: _open_journal(source)
    return None


def _has_studies(path: Path) -> bool | None:
    """Whether an SQLite file is a storage of Optuna; does not change the file.

    ``None`` if that cannot be read without writing: a process that was killed has left half a transaction.
    """
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        kinds = dict(connection.execute("SELECT name, type FROM sqlite_master").fetchall())
    except sqlite3.OperationalError:
        return None
    except sqlite3.DatabaseError:
        return False
    finally:
        connection.close()
    if not {"view", "trigger"}.isdisjoint(kinds.values()):
        raise SourceError(f"{path} holds views or triggers, which storages of Optuna do not have. It was not opened.")
    return all(kinds.get(name) == "table" for name in ("studies", "trials", "version_info"))


def _open_database(url: str) -> optuna.storages.BaseStorage:
    library = require("optuna", extra="optuna", who=_WHO)
    if url.startswith("sqlite:///"):
        path = Path(url.removeprefix("sqlite:///").partition("?")[0])
        if path.is_file() and _has_studies(path) is False:
            raise SourceError(f"{url}: the file is not a storage of Optuna: it has no table of studies.")
    try:
        return library.storages.get_storage(url)
    except ImportError as problem:
        raise SourceError(f"{url} needs a driver that is not installed: {reason(problem)}") from None
    except Exception as problem:  # from SQLAlchemy, the driver or Optuna's version check
        raise SourceError(f"{url} cannot be opened as a storage of Optuna: {reason(problem)}") from None


def _open_journal(path: str) -> optuna.storages.BaseStorage:
    library = require("optuna", extra="optuna", who=_WHO)
    backend = require("optuna.storages.journal", extra="optuna", who=_WHO).JournalFileBackend(path)
    try:
        return library.storages.JournalStorage(backend)
    except Exception as problem:  # from replaying a damaged line
        raise SourceError(f"{path} cannot be read as a journal of Optuna: {reason(problem)}") from None


def load_studies(storage: optuna.storages.BaseStorage, wanted: str, who: str) -> list[optuna.Study]:
    """Load the studies of a storage whose names match a pattern."""
    library = require("optuna", extra="optuna", who=_WHO)
    try:
        names = [study.study_name for study in storage.get_all_studies()]
        if not names:
            raise SourceError(f"{who} holds no studies.")
        chosen = [name for name in names if fnmatch.fnmatchcase(name, wanted)]
        if not chosen:
            some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            raise InvalidInputError(f"studies: no name in {who} matches {wanted!r}. There are {some}.")
        return [library.load_study(study_name=name, storage=storage) for name in chosen]
    except (InvalidInputError, SourceError):
        raise
    except Exception as problem:  # from SQLAlchemy, the driver or Optuna
        raise SourceError(f"{who} cannot be read: {reason(problem)}") from None
