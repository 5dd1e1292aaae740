"""Optuna studies as trajectories: best value against trials, seconds or a reported resource."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from polarbear_plugins.adapters.optuna_study.options import StudyOptions
from polarbear_plugins.adapters.optuna_study.storages import find_storage, load_studies
from polarbear_plugins.errors import SourceError
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    import optuna

__all__ = ["polarbear_read_trajectories"]


@hookimpl
def polarbear_read_trajectories(source: object, options: Mapping[str, object]) -> Iterable[Trajectory] | None:
    """Optuna studies: a storage URL (sqlite:///studies.db), an SQLite or journal file, a study, a list of studies."""
    if isinstance(source, str | Path):
        open_storage = find_storage(str(source))
        if open_storage is None:
            return None
        given = StudyOptions.parse(options)
        studies = load_studies(open_storage(), given.studies, str(source))
        try:
            return _read(studies, given)
        except SourceError as problem:
            raise SourceError(f"{source}: {problem}") from None
    # A program that hands over a study has imported Optuna: this check imports nothing.
    library = sys.modules.get("optuna")
    if library is None:
        return None
    if isinstance(source, library.storages.BaseStorage):
        given = StudyOptions.parse(options)
        return _read(load_studies(source, given.studies, type(source).__name__), given)
    handed_over = [source] if isinstance(source, library.Study) else source
    if not isinstance(handed_over, list | tuple) or not handed_over:
        return None
    if not all(isinstance(study, library.Study) for study in handed_over):
        return None
    given = StudyOptions.parse(options)
    return _read([study for study in handed_over if fnmatch.fnmatchcase(study.study_name, given.studies)], given)


def _read(studies: Sequence[optuna.Study], options: StudyOptions) -> list[Trajectory]:
    from polarbear_plugins.adapters.optuna_study.reading import read_studies  # which imports Optuna

    return read_studies(studies, options)
