"""Bayesmark databases: the folders that its experiments write, with eval/ and optionally time/ and log/."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from polarbear_plugins.adapters.bayesmark.database import AXES, OBJECTIVES, Database, read_database
from polarbear_plugins.adapters.bayesmark.files import is_database
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.options import Reader, flag, read_options
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.trajectories.trajectory import Trajectory

__all__ = ["Database", "polarbear_read_trajectories", "read_database"]


@hookimpl
def polarbear_read_trajectories(source: object, options: Mapping[str, object]) -> Iterable[Trajectory] | None:
    """Folders of Bayesmark databases: visible or generalization loss over iterations, evaluations or seconds."""
    if not isinstance(source, str | Path) or not is_database(Path(source)):
        return None
    readers: dict[str, Reader] = {
        "objective": _one_of(tuple(OBJECTIVES)),
        "time": _one_of(AXES),
        "parallel": flag,
        "uneven": flag,
    }
    wishes = read_options({k: v for k, v in options.items() if v is not None}, readers, "A Bayesmark database")
    database = read_database(source, uneven=wishes.pop("uneven", False))
    database.warn_of_fallbacks()
    return database.trajectories(**wishes)


def _one_of(choices: tuple[str, ...]) -> Reader:
    def read(value: object, what: str) -> str:
        if value not in choices:
            raise InvalidInputError(f"{what}: expected {', '.join(choices)}, got {short(value)}.")
        return str(value)

    return read
