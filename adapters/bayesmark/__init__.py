"""Bayesmark databases: the folders that its experiments write, with eval/ and optionally time/ and log/."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from polarbear_plugins.adapters.bayesmark.database import AXES, OBJECTIVES, Database, read_database
from polarbear_plugins.adapters.bayesmark.files import is_database
from polarbear_plugins.options import Reader, flag, one_of, read_options
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.trajectories.trajectory import Trajectory

__all__ = ["Database", "polarbear_read_trajectories", "read_database"]


@hookimpl
def polarbear_read_trajectories(source: object, options: Mapping[str, object]) -> Iterable[Trajectory] | None:
    """Folders of Bayesmark databases: visible or generalization loss over iterations, evaluations or seconds."""
    if not isinstance(source, str | Path) or not is_database(Path(source)):
        return None
    readers: dict[str, Reader] = {
        "objective": one_of(OBJECTIVES),
        "time": one_of(AXES),
        "parallel": flag,
        "uneven": flag,
    }
    given = read_options({k: v for k, v in options.items() if v is not None}, readers, "A Bayesmark database")
    database = read_database(source, uneven=given.pop("uneven", False))
    database.warn_of_fallbacks()
    return database.trajectories(**given)
