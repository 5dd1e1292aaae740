"""A wish from another process that a race stops after its round: a file beside the journal, ``race.db.stop``.

The race looks for it between two rounds, and removes it when it ends.  One that a killed race has left behind is
removed when the race goes on.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from polarbear_plugins.errors import SourceError
from polarbear_plugins.journal.custody import real_path


def stop_file(path: str | Path) -> Path:
    """The file beside a journal that asks its race to stop.

    >>> stop_file("nowhere/race.db").name
    'race.db.stop'
    """
    real = real_path(path)
    return real.with_name(f"{real.name}.stop")


def request_stop(path: str | Path) -> None:
    """Ask the race of a journal to stop after its round.

    :raises SourceError: the folder of the journal cannot be written.
    """
    file = stop_file(path)
    try:
        with contextlib.suppress(FileExistsError):
            file.open("x").close()
    except OSError as problem:
        raise SourceError(
            f"{file} cannot be written ({problem.strerror}): a race in another process can only be asked to stop by a "
            "file in the folder of its journal."
        ) from None


def is_stop_requested(path: str | Path) -> bool:
    """Whether the race of a journal is asked to stop."""
    return stop_file(path).is_file()


def withdraw_stop(path: str | Path) -> None:
    """Remove what asks the race of a journal to stop."""
    with contextlib.suppress(OSError):
        stop_file(path).unlink()
