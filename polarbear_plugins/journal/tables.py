"""The tables of a journal, and the checksum of each row.

A row ends with a checksum of its other columns, its table and the identifier of the journal, so that a row that was
altered, or that belongs to another journal, is noticed when it is read.  For each table the number of its rows and
their checksums combined are kept, so that a row that is missing, or there twice, is noticed, too.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

Row: TypeAlias = tuple[Any, ...]

#: Version of the format.  Version 1 had no checksums.
VERSION = 2
#: Key of the identifier of a journal in its table ``about``.
IDENTIFIER = "journal"
# Several stored runs of an algorithm on an instance are repetitions, in the order of their places.  They are values at
# the timepoints, so that resuming a race against an archive does not need the archive.
TABLES = {
    "about": "key TEXT PRIMARY KEY, json TEXT NOT NULL",
    "entries": "place INTEGER PRIMARY KEY, algorithm TEXT NOT NULL UNIQUE, after_round INTEGER NOT NULL",
    "instances": "place INTEGER PRIMARY KEY, identity TEXT NOT NULL",
    "runs": (
        "place INTEGER PRIMARY KEY, round INTEGER NOT NULL, algorithm TEXT NOT NULL, instance TEXT NOT NULL, "
        "seed INTEGER NOT NULL, horizon REAL NOT NULL, times BLOB NOT NULL, best BLOB NOT NULL, seconds REAL NOT NULL, "
        "failure TEXT"
    ),
    "rounds": "number INTEGER PRIMARY KEY, json TEXT NOT NULL, resolved BLOB NOT NULL",
    "stored": "place INTEGER PRIMARY KEY, algorithm TEXT NOT NULL, instance TEXT NOT NULL, best BLOB NOT NULL",
    "totals": "name TEXT PRIMARY KEY, rows INTEGER NOT NULL, combined BLOB NOT NULL",
}
_COLUMNS = {table: [column.partition(" ")[0] for column in columns.split(", ")] for table, columns in TABLES.items()}
# Which rows a new one replaces: those with the same first column, and of the runs also an earlier one of the same.
_REPLACED = {table: f"{columns[0]} = :{columns[0]}" for table, columns in _COLUMNS.items()}
_REPLACED["runs"] += " OR (algorithm = :algorithm AND instance = :instance)"
_BYTES = 16  # of a checksum
_CONSTRAINTS = {"runs": ", UNIQUE (algorithm, instance)"}
SCHEMA = frozenset(
    f"CREATE TABLE {table} ({columns}, checksum BLOB NOT NULL{_CONSTRAINTS.get(table, '')}) STRICT"
    for table, columns in TABLES.items()
)
_FIRST_STORED = f"CREATE TABLE stored ( {TABLES['stored']} ) STRICT"
_FIRST_RUNS = TABLES["runs"].removeprefix("place INTEGER PRIMARY KEY, ")
#: Tables of version 1, white space folded; ``stored`` only where a race had rivals.
FIRST_SCHEMA = frozenset(
    [f"CREATE TABLE {table} ({TABLES[table]}) STRICT" for table in ("about", "entries", "instances", "rounds")]
    + [f"CREATE TABLE runs ( {_FIRST_RUNS}, PRIMARY KEY (algorithm, instance) ) STRICT"]
)


class AlteredError(ValueError):
    """A row does not match its checksum."""


class Rows:
    """Reads and writes rows with their checksums.

    Parameters
    ----------
    identifier
        Of the journal; by default the one it has.
    """

    def __init__(self, connection: sqlite3.Connection, identifier: str | None = None) -> None:
        self._connection = connection
        if identifier is None:
            found = connection.execute("SELECT json FROM about WHERE key = ?", (IDENTIFIER,)).fetchone()
            if found is None:
                raise AlteredError("its identifier is missing")
            identifier = str(found[0])
        self._key = hashlib.blake2b(identifier.encode()).digest()

    def checksum(self, table: str, row: Row) -> bytes:
        """Checksum of a row of None, whole numbers, floats, text and bytes."""
        blobs = [value for value in row if isinstance(value, bytes)]
        described = (table, *(len(value) if isinstance(value, bytes) else (value,) for value in row))
        # ascii() writes each of the other types unambiguously, and unlike repr() alike in all versions of Python.
        digest = hashlib.blake2b(ascii(described).encode(), digest_size=_BYTES, key=self._key)
        digest.update(b"".join(blobs))
        return digest.digest()

    def read(self, table: str, where: str = "", values: Row = ()) -> Iterator[Row]:
        """Rows in the order of their first column, without the checksum; by default all.

        :raises AlteredError: a row does not match its checksum; or one is missing, if all are read.
        """
        statement = f"SELECT * FROM {table} WHERE {where or 'TRUE'} ORDER BY 1"  # noqa: S608 - names of our own
        count = combined = 0
        for *row, checksum in self._connection.execute(statement, values):
            if self.checksum(table, tuple(row)) != checksum:
                raise AlteredError("a row does not match its checksum: it was altered after it was written")
            count, combined = count + 1, combined ^ int.from_bytes(checksum)
            yield tuple(row)
        if not where and table != "totals" and (count, combined) != self._total(table):
            raise AlteredError("rows are missing, or others were added")

    def write(self, table: str, rows: Iterable[Row], *, replace: bool = False) -> None:
        """Add rows; with ``replace``, one with the same key replaces the old one."""
        count, combined = self._total(table)
        for row in rows:
            if replace:
                count, combined = self._remove(table, row, count, combined)
            checksum = self._insert(table, row)
            count, combined = count + 1, combined ^ int.from_bytes(checksum)
        self._keep_total(table, count, combined)

    def remove(self, table: str, row: Row) -> None:
        """Remove the rows that a row would replace."""
        self._keep_total(table, *self._remove(table, row, *self._total(table)))

    def _remove(self, table: str, row: Row, count: int, combined: int) -> tuple[int, int]:
        """Remove the rows that a row would replace; returns the new total."""
        where, values = _REPLACED[table], dict(zip(_COLUMNS[table], row, strict=True))
        found = self._connection.execute(f"SELECT checksum FROM {table} WHERE {where}", values).fetchall()  # noqa: S608
        if found:
            self._connection.execute(f"DELETE FROM {table} WHERE {where}", values)  # noqa: S608 - names of our own
        for (checksum,) in found:
            count, combined = count - 1, combined ^ int.from_bytes(checksum)
        return count, combined

    def _insert(self, table: str, row: Row, how: str = "INSERT") -> bytes:
        checksum = self.checksum(table, row)
        places = ", ".join("?" * (len(row) + 1))
        self._connection.execute(f"{how} INTO {table} VALUES ({places})", (*row, checksum))
        return checksum

    def _total(self, table: str) -> tuple[int, int]:
        """Number of rows of a table, and their checksums combined."""
        for _, count, combined in self.read("totals", "name = ?", (table,)):
            return count, int.from_bytes(combined)
        return 0, 0

    def _keep_total(self, table: str, count: int, combined: int) -> None:
        self._insert("totals", (table, count, combined.to_bytes(_BYTES)), "INSERT OR REPLACE")


def create_tables(connection: sqlite3.Connection) -> Rows:
    """Create the tables inside a transaction, with a new identifier."""
    for statement in sorted(SCHEMA):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    identifier = f'"{secrets.token_hex(16)}"'
    rows = Rows(connection, identifier)
    rows.write("about", [(IDENTIFIER, identifier)])
    return rows


def is_first_version(schema: frozenset[str]) -> bool:
    """Whether these are the tables of version 1."""
    return schema - {_FIRST_STORED} == FIRST_SCHEMA


def upgrade(connection: sqlite3.Connection) -> None:
    """Give a journal of version 1 checksums, inside a transaction; its content is taken as it is."""
    old: Mapping[str, list[Row]] = {
        table: connection.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall()  # noqa: S608 - names of our own
        for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    }
    for table in old:
        connection.execute(f"DROP TABLE {table}")
    rows = create_tables(connection)
    for table, content in old.items():
        rows.write(table, ((place, *row) for place, row in enumerate(content)) if table == "runs" else content)
