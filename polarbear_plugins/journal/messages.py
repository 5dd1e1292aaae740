"""Errors about the file of a journal, in words."""

from __future__ import annotations

from pathlib import Path

from polarbear_plugins.errors import SourceError


def file_exists_error(path: Path) -> SourceError:
    """Error about a file that a new journal would overwrite."""
    return SourceError(
        f"{path} already exists and is not overwritten. Continue that race with resume({str(path)!r}), or choose "
        "another name."
    )


def empty_journal_error(path: Path) -> SourceError:
    """Error about a journal whose race never began."""
    return SourceError(f"{path} is empty: its race was ended before it began. Start that race again.")


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
