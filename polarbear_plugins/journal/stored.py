"""Stored rivals in a journal: a table that only the journal of a race against an archive has."""

from __future__ import annotations

import sqlite3

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.racing.stored import StoredRivals

# Values at the timepoints, so that resuming does not need the archive.  Several runs of an algorithm on an instance are
# repetitions, in the order of their places.
STORED_SCHEMA = """CREATE TABLE stored (
    place INTEGER PRIMARY KEY, algorithm TEXT NOT NULL, instance TEXT NOT NULL, best BLOB NOT NULL
) STRICT"""


def write_stored(connection: sqlite3.Connection, rivals: StoredRivals) -> None:
    """Write rivals and the instances of their race, inside the transaction that starts a journal."""
    connection.execute(STORED_SCHEMA)
    runs = ((*key, values.astype("<f8").tobytes()) for key, each in rivals.values.items() for values in each)
    connection.executemany("INSERT INTO stored (algorithm, instance, best) VALUES (?, ?, ?)", runs)
    instances = [(place, identity.to_json()) for place, identity in enumerate(rivals.instances)]
    connection.executemany("INSERT INTO instances VALUES (?, ?)", instances)


def read_stored(connection: sqlite3.Connection, timepoints: int) -> dict[tuple[str, str], list[FloatArray]]:
    """Values of stored rivals, ``[algorithm, instance]``; none in an ordinary race.

    :raises ValueError: a run has not as many values as there are timepoints.
    """
    found: dict[tuple[str, str], list[FloatArray]] = {}
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'stored'").fetchone() is None:
        return found
    for algorithm, instance, blob in connection.execute("SELECT algorithm, instance, best FROM stored ORDER BY place"):
        values = np.frombuffer(blob, dtype="<f8")
        if values.size != timepoints:
            raise ValueError(f"expected {timepoints} values, got {values.size}")
        found.setdefault((algorithm, instance), []).append(values)
    return found
