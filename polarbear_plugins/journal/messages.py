"""Errors and warnings about the file of a journal, in words."""

from __future__ import annotations

from pathlib import Path

from polarbear_plugins.errors import SourceError
from polarbear_plugins.journal.log import LogDamage, log_of

_SALVAGE = "polarbear resume {path} --salvage (in Python, resume(..., salvage=True)) continues without {what}."


def file_exists_error(path: Path) -> SourceError:
    """Error about a file that a new journal would overwrite."""
    return SourceError(
        f"{path} already exists and is not overwritten. Continue that race with resume({str(path)!r}), or choose "
        "another name."
    )


def empty_journal_error(path: Path) -> SourceError:
    """Error about a journal whose race never began."""
    return SourceError(f"{path} is empty: its race was ended before it began. Start that race again.")


def foreign_log_error(path: Path) -> SourceError:
    """Error about a log where a new journal would be, without its journal."""
    log = log_of(path)
    return SourceError(
        f"{log} has the newest runs of a race whose journal, {path}, was moved or deleted. If it was moved, move the "
        f"log with it, beside it and with the same ending -wal; otherwise choose another name, or delete {log.name}."
    )


def missing_log_error(path: Path, file: Path, used_as: Path) -> SourceError:
    """Error about a journal without its log; it is ``file`` now, and ``used_as`` is where a race used it last."""
    log, old = log_of(file), log_of(used_as)
    if old != log and old.exists():
        where = f"It is {old}: move it to {log}."
    else:
        last = "" if old == log else f" A race used the journal last as {used_as}."
        where = f"Put it there, if it was left behind when the journal was moved or copied.{last}"
    lost = _SALVAGE.format(path=path, what="the runs in that log")
    return SourceError(
        f"{path} was in use when its race was ended or when it was copied, and its log, {log}, which has the newest "
        f"runs, is not beside it. {where} If the log is gone, {lost}"
    )


def damaged_log_error(path: Path, damage: LogDamage) -> SourceError:
    """Error about a log that does not match its checksums."""
    rest = _SALVAGE.format(path=path, what=f"the {damage.lost:,} bytes from there on, and keeps a copy of the log")
    return SourceError(
        f"{log_of(path)}, byte {damage.intact:,}: damaged (it does not match its checksum: it was altered after it was "
        f"written, or the power failed while it was). What comes before is intact; {rest}"
    )


def describe_sqlite_error(path: Path, problem: Exception) -> SourceError:
    """Error of SQLite as what the user can do about it."""
    text = str(problem)
    if "locked" in text or "busy" in text:
        return SourceError(f"{path} is in use by another process; wait until that race is over, or stop it.")
    if "readonly" in text or "unable to open" in text:
        return SourceError(f"{path} cannot be written: {text}.")
    if "full" in text:
        return SourceError(f"{path}: the disk is full. Make room and resume; no finished run is lost.")
    if "disk I/O" in text:  # a quota, a limit on the size of files, a disk that was removed
        return SourceError(
            f"{path} cannot be read or written: {text}. Check whether the disk is full or was removed, and resume; no "
            "finished run is lost."
        )
    return SourceError(f"{path} is damaged, or not the journal of a race: {text}.")
