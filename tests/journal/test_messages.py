"""What is said about the file of a journal, word by word, and what the checksum of a row is."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from polarbear_plugins.errors import SourceError
from polarbear_plugins.journal import custody, messages
from polarbear_plugins.journal.log import LogDamage
from polarbear_plugins.journal.tables import Rows

RACE = Path("race.db")
SALVAGE = "polarbear resume race.db --salvage (in Python, resume(..., salvage=True)) continues without"


def test_a_file_or_log_in_the_way_of_a_new_journal_is_named_with_the_ways_out() -> None:
    assert str(messages.file_exists_error(RACE)) == (
        "race.db already exists and is not overwritten. Continue that race with resume('race.db'), or choose another "
        "name."
    )
    assert str(messages.foreign_log_error(Path("here/race.db"))) == (
        "here/race.db-wal has the newest runs of a race whose journal, here/race.db, was moved or deleted. If it was "
        "moved, move the log with it, beside it and with the same ending -wal; otherwise choose another name, or "
        "delete race.db-wal."
    )
    assert str(messages.empty_journal_error(RACE)) == (
        "race.db is empty: its race was ended before it began. Start that race again."
    )


def test_a_missing_log_is_looked_for_where_the_race_was(tmp_path: Path) -> None:
    file, old = tmp_path / "race.db", tmp_path / "old.db"

    def said(used_as: Path) -> str:
        begin, middle, end = str(messages.missing_log_error(RACE, file, used_as)).partition(" is not beside it. ")
        assert begin + middle == (
            "race.db was in use when its race was ended or when it was copied, and its log, "
            f"{file}-wal, which has the newest runs, is not beside it. "
        )
        where, _, lost = end.partition(" If the log is gone, ")
        assert lost == f"{SALVAGE} the runs in that log."
        return where

    put = "Put it there, if it was left behind when the journal was moved or copied."
    assert said(file) == put
    assert said(old) == f"{put} A race used the journal last as {old}."
    Path(f"{file}-wal").touch()
    assert said(file) == put
    Path(f"{old}-wal").touch()
    assert said(old) == f"It is {old}-wal: move it to {file}-wal."


def test_a_damaged_log_is_named_with_the_place_and_what_would_be_lost() -> None:
    assert str(messages.damaged_log_error(RACE, LogDamage(intact=4152, lost=12_360))) == (
        "race.db-wal, byte 4,152: damaged (it does not match its checksum: it was altered after it was written, or the "
        f"power failed while it was). What comes before is intact; {SALVAGE} the 12,360 bytes from there on, and keeps "
        "a copy of the log."
    )


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        ("database is locked", " is in use by another process; wait until that race is over, or stop it."),
        ("the file is busy", " is in use by another process; wait until that race is over, or stop it."),
        ("attempt to write a readonly database", " cannot be written: attempt to write a readonly database."),
        ("unable to open database file", " cannot be written: unable to open database file."),
        ("database or disk is full", ": the disk is full. Make room and resume; no finished run is lost."),
        (
            "disk I/O error",
            (
                " cannot be read or written: disk I/O error. Check whether the disk is full or was removed, and "
                "resume; no finished run is lost."
            ),
        ),
        ("file is not a database", " is damaged, or not the journal of a race: file is not a database."),
    ],
)
def test_an_error_of_sqlite_says_what_to_do(problem: str, said: str) -> None:
    assert str(messages.describe_sqlite_error(RACE, sqlite3.OperationalError(problem))) == f"race.db{said}"


def test_a_journal_that_vanished_and_can_be_written_nowhere_is_an_error_with_every_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, places = tmp_path / "race.db", [tmp_path / "no" / "race.db", tmp_path / "nor" / "race.db"]
    monkeypatch.setattr(custody, "_places_for_a_copy", lambda _: iter(places))
    path.touch()
    file = custody.OpenFile(path)
    with pytest.raises(SourceError) as caught:
        file.move_to_a_copy()
    file.close()
    tried = "; ".join(f"{place}: unable to open database file" for place in places)
    assert str(caught.value) == f"{path} was deleted or moved during the race, and cannot be written again ({tried})."


def test_the_checksum_of_a_row_is_the_same_in_all_versions() -> None:
    # Journals outlive the version that wrote them: another checksum needs another version of the format.
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        found = Rows(connection, '"0123"').checksum("runs", (1, 0.1, "Müller", None, b"\x00\x01", b"\xff"))
    assert found.hex() == "ef9d92e2053a5024334327c8dca175c8"
