"""Nothing that was altered is believed: flipped bits, rows of another journal, journals without checksums."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import warnings
from pathlib import Path

import numpy as np
import pytest
from builders import assert_same_result, change_journal

from polarbear_plugins import RaceResult, RaceSettings, load_result, race, resume
from polarbear_plugins.errors import PolarBearWarning, SourceError
from polarbear_plugins.journal.copies import journal_copy
from polarbear_plugins.journal.journal import Journal
from polarbear_plugins.journal.log import find_damage, log_of

SETTINGS = RaceSettings(seed=3, max_rounds=2, draws=100, batch_size=4, batch_min=4)
OPTIONS = {"portfolio_options": {"algorithms": 2, "seed": 4}, "workers": 0}

# The tables of version 1, as it made them.
FIRST_VERSION = """
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
STORED_IN_FIRST_VERSION = """CREATE TABLE stored (
    place INTEGER PRIMARY KEY, algorithm TEXT NOT NULL, instance TEXT NOT NULL, best BLOB NOT NULL
) STRICT"""


def copied(source: Path, folder: Path) -> Path:
    """Copy of a journal and its log, to be harmed."""
    path = folder / source.name
    path.write_bytes(source.read_bytes())
    if log_of(source).exists():
        log_of(path).write_bytes(log_of(source).read_bytes())
    return path


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def content_of(path: Path) -> list[object]:
    """Everything that a journal says; a warning is a complaint, too."""
    with warnings.catch_warnings(), journal_copy(path) as journal:
        warnings.simplefilter("error")
        runs = [(run.round, *run.trajectory.times, *run.trajectory.best, run.seconds) for run in journal.runs()]
        said = [journal.about, journal.entries, journal.instances, journal.rounds, journal.resolved(2, 2).tolist()]
        return [*said, runs, journal.failures, journal.stored(2)]


@pytest.mark.parametrize("which", ["whole", "killed, file", "killed, log"])
@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_bit_is_refused_or_changes_nothing(
    whole: Path, killed_once: Path, tmp_path: Path, which: str, seed: int
) -> None:
    source = whole if which == "whole" else killed_once
    path = copied(source, tmp_path)
    harmed = log_of(path) if which == "killed, log" else path
    expected, intact = content_of(path), harmed.read_bytes()
    rng = np.random.default_rng(seed)
    refused = 0
    for bit in rng.integers(0, 8 * len(intact), 25):
        flip(harmed, int(bit))
        reason = ""
        try:
            assert content_of(path) == expected
        except SourceError as problem:
            reason = str(problem)
        assert not reason or str(path) in reason
        refused += bool(reason)
        harmed.write_bytes(intact)
    assert refused or which == "killed, file"  # most of that file is unused space


def test_a_value_that_was_altered_is_refused_by_its_place(whole: Path, tmp_path: Path) -> None:
    path = copied(whole, tmp_path)
    change_journal(path, "UPDATE runs SET horizon = 3.0 WHERE place = 6", seal=False)
    for read in (load_result, lambda path: resume(path, workers=0)):
        with pytest.raises(SourceError, match=r"race\.db, table runs, number 7: damaged \(a row does not match its"):
            read(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE about SET json = '[1, 3]' WHERE key = 'timepoints'",
        "UPDATE entries SET after_round = 1 WHERE place = 1",
        "UPDATE instances SET identity = replace(identity, '0', '1') WHERE place = 1",
        "UPDATE rounds SET json = replace(json, 'true', 'false') WHERE number = 1",
        "UPDATE rounds SET resolved = x'00' WHERE number = 2",
        "UPDATE runs SET round = 2 WHERE place = 0",
        "UPDATE runs SET seconds = seconds * 2 WHERE place = 3",
        "UPDATE runs SET failure = 'crashed' WHERE place = 3",
        "UPDATE runs SET place = 100 WHERE place = 3",
    ],
)
def test_no_column_can_be_altered_unnoticed(whole: Path, tmp_path: Path, statement: str) -> None:
    path = copied(whole, tmp_path)
    expected = content_of(path)
    change_journal(path, statement, seal=False)
    table = statement.split()[1]
    with pytest.raises(SourceError, match=rf"race\.db, table {table}\b.* does not match its checksum"):
        content_of(path)
    change_journal(path, seal=True)  # and it is the checksum that tells
    with contextlib.suppress(SourceError):
        assert content_of(path) != expected


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("DELETE FROM about WHERE key = 'stopped'", "about"),
        ("DELETE FROM entries WHERE place = 1", "entries"),
        ("DELETE FROM instances WHERE place = (SELECT max(place) FROM instances)", "instances"),
        ("DELETE FROM rounds WHERE number = 2", "rounds"),
        ("DELETE FROM rounds", "rounds"),
        ("DELETE FROM runs WHERE round = 2", "runs"),
        ("DELETE FROM totals WHERE name = 'runs'", "runs"),
    ],
)
def test_no_row_is_missing_unnoticed(whole: Path, tmp_path: Path, statement: str, table: str) -> None:
    path = copied(whole, tmp_path)
    change_journal(path, statement, seal=False)
    refusal = rf"table {table}.*: damaged \(rows are missing, or others were added\)"
    with pytest.raises(SourceError, match=refusal):
        content_of(path)
    with pytest.raises(SourceError, match=refusal):
        resume(path, workers=0)


def test_rows_of_another_journal_are_refused(whole: Path, tmp_path: Path) -> None:
    path = copied(whole, tmp_path)
    race("synthetic", "synthetic", [1, 2], SETTINGS, journal=tmp_path / "other.db", **OPTIONS)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("ATTACH ? AS other", (str(tmp_path / "other.db"),))
        connection.execute("DELETE FROM runs")
        connection.execute("INSERT INTO runs SELECT * FROM other.runs")
        connection.commit()
    with pytest.raises(SourceError, match="table runs, number 1: damaged"):
        load_result(path)


# --- journals of version 1


def first_version(path: Path, old: Path, *, stored: bool = False) -> Path:
    """The same journal as version 1 would have written it."""
    with contextlib.closing(sqlite3.connect(old)) as connection:
        connection.executescript(FIRST_VERSION + (STORED_IN_FIRST_VERSION if stored else ""))
        connection.execute(f"PRAGMA application_id = {0x504C4252}")
        connection.execute("PRAGMA user_version = 1")
        connection.execute("ATTACH ? AS new", (str(path),))
        connection.execute("INSERT INTO about SELECT key, json FROM new.about WHERE key <> 'journal'")
        for table in ("entries", "instances", "rounds", *(["stored"] if stored else [])):
            columns = [row[1] for row in connection.execute(f"PRAGMA new.table_info({table})")][:-1]
            connection.execute(f"INSERT INTO {table} SELECT {', '.join(columns)} FROM new.{table}")  # noqa: S608
        columns = "round, algorithm, instance, seed, horizon, times, best, seconds, failure"
        connection.execute(f"INSERT INTO runs SELECT {columns} FROM new.runs ORDER BY place")  # noqa: S608
        connection.commit()
    return old


NO_CHECKSUMS = r"race\.db was begun by an earlier version of polarbear-plugins and has no checksums"


@pytest.mark.parametrize("stored", [False, True])
def test_a_journal_without_checksums_is_read_and_says_so(whole: Path, tmp_path: Path, stored: bool) -> None:
    old = first_version(whole, tmp_path / "race.db", stored=stored)
    before = old.read_bytes()
    with pytest.warns(PolarBearWarning, match=NO_CHECKSUMS):
        result = load_result(old)
    assert_same_result(result, load_result(whole))
    assert old.read_bytes() == before


def test_a_race_without_checksums_goes_on_with_them(whole: Path, tmp_path: Path) -> None:
    old = first_version(whole, tmp_path / "race.db")
    with pytest.warns(PolarBearWarning, match=NO_CHECKSUMS) as told:
        result = resume(old, workers=0, max_rounds=3)
    assert len([warning for warning in told if re.search(NO_CHECKSUMS, str(warning.message))]) == 1
    path = copied(whole, tmp_path / "..")
    assert_same_result(result, resume(path, workers=0, max_rounds=3))
    assert_same_result(load_result(old), result)  # without a warning
    change_journal(old, "UPDATE runs SET seconds = 1 WHERE place = 1", seal=False)
    with pytest.raises(SourceError, match="does not match its checksum"):
        load_result(old)


# --- damaged logs


def test_a_log_without_damage_has_none(killed_once: Path) -> None:
    assert find_damage(log_of(killed_once)) is None
    assert find_damage(killed_once.with_name("nothing")) is None


@pytest.mark.parametrize("lost", [1, 100, 4119])
def test_a_log_that_ends_within_a_part_is_not_damaged(killed_once: Path, tmp_path: Path, lost: int) -> None:
    # As a process leaves it that is killed while it writes.
    path = copied(killed_once, tmp_path)
    os.truncate(log_of(path), log_of(path).stat().st_size - lost)
    assert find_damage(log_of(path)) is None
    assert content_of(path)


def test_space_that_was_reserved_and_not_written_is_no_damage(killed_once: Path, tmp_path: Path) -> None:
    # As some disks leave it when the power fails.
    path = copied(killed_once, tmp_path)
    expected = content_of(path)
    with log_of(path).open("ab") as log:
        log.write(bytes(3 * 4120))
    assert find_damage(log_of(path)) is None
    assert content_of(path) == expected


def test_a_damaged_log_is_refused_and_can_be_salvaged(killed_once: Path, in_peace: RaceResult, tmp_path: Path) -> None:
    path = copied(killed_once, tmp_path)
    size = log_of(path).stat().st_size
    flip(log_of(path), 8 * (size - 5000))
    damaged = log_of(path).read_bytes()
    refusal = rf"race\.db-wal, byte [\d,]+: damaged.*polarbear resume {path} --salvage"
    for read in (load_result, Journal.open):
        with pytest.raises(SourceError, match=refusal):
            read(path)
    assert log_of(path).read_bytes() == damaged
    with pytest.warns(PolarBearWarning, match=r"what was in its damaged log from byte [\d,]+ on is lost"):
        result = resume(path, workers=0, salvage=True)
    assert_same_result(result, in_peace)  # what was lost has run again
    assert path.with_name("race.db-wal.damaged").read_bytes() == damaged
    assert not log_of(path).exists()


def test_salvaging_a_journal_without_damage_changes_nothing(killed_once: Path, whole: Path, tmp_path: Path) -> None:
    path = copied(killed_once, tmp_path)
    assert_same_result(resume(path, workers=0, salvage=True), load_result(whole))
    assert [file.name for file in tmp_path.iterdir()] == ["race.db"]


# --- saved results


def test_a_flipped_bit_in_a_saved_result_is_refused_or_changes_nothing(in_peace: RaceResult, tmp_path: Path) -> None:
    path = in_peace.save(tmp_path / "race.npz")
    intact, expected = path.read_bytes(), load_result(path).to_json()
    rng = np.random.default_rng(5)
    refused = 0
    # The last bytes are the list of contents of the archive, which says what is where.
    for byte in (*rng.integers(0, len(intact), 40), *rng.integers(len(intact) - 1200, len(intact), 40)):
        flip(path, int(8 * byte + rng.integers(8)))
        try:
            assert load_result(path).to_json() == expected
        except SourceError:
            refused += 1
        path.write_bytes(intact)
    assert refused > 50


@pytest.mark.parametrize("name", ["values", "posterior_log_ratings", "posterior_timepoints"])
def test_an_array_that_was_altered_is_refused(in_peace: RaceResult, tmp_path: Path, name: str) -> None:
    path = in_peace.save(tmp_path / "race.npz")
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **{**arrays, name: np.nextafter(arrays[name], np.inf)})
    with pytest.raises(SourceError, match=r"race\.npz .*does not match its checksum"):
        load_result(path)


def test_a_saved_result_without_checksum_is_read_and_says_so(in_peace: RaceResult, tmp_path: Path) -> None:
    path = in_peace.save(tmp_path / "race.npz")
    with np.load(path) as file:
        arrays = {name: array for name, array in file.items() if name != "checksum"}
    np.savez(path, **arrays)
    with pytest.warns(PolarBearWarning, match=r"race\.npz was saved by an earlier version.* has no checksum"):
        assert load_result(path).to_json() == in_peace.to_json()
