"""A Bayesmark database: its studies as arrays for scores and as trajectories."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polarbear_plugins.adapters.bayesmark.files import (
    GENERALIZATION,
    VISIBLE,
    Fallbacks,
    Study,
    is_database,
    read_log,
    read_seconds,
    read_study,
)
from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_choice
from polarbear_plugins.errors import PolarBearWarning, SourceError
from polarbear_plugins.measures.scores import Studies, incumbents
from polarbear_plugins.trajectories.trajectory import Trajectory

#: Bayesmark's names of the objectives, by the names that users give.
OBJECTIVES = {"visible": VISIBLE, "generalization": GENERALIZATION}
AXES = ("iterations", "evaluations", "seconds")
#: What functions can be split by.
PARTS = ("model", "data", "metric")


@dataclass(frozen=True, slots=True)
class Database:
    """Studies of optimizers on functions, in the order of their names; made by :func:`read_database`."""

    folder: Path
    studies: tuple[Study, ...]

    @property
    def optimizers(self) -> tuple[str, ...]:
        """Names: the optimizer, its version and the revision of the benchmark."""
        return tuple(sorted({study.optimizer for study in self.studies}))

    @property
    def functions(self) -> tuple[str, ...]:
        """Names: the model, the data and the metric."""
        return tuple(sorted({study.function for study in self.studies}))

    def part_of(self, by: str) -> dict[str, str]:
        """The ``model``, ``data`` or ``metric`` of each function."""
        return {study.function: getattr(study, as_choice(by, PARTS, "by")) for study in self.studies}

    def arrays(self, objective: str = "visible", random: Sequence[str] | None = None) -> Studies:
        """Values of all studies, as :func:`polarbear_plugins.measures.scores.score_studies` takes them.

        Parameters
        ----------
        random
            Which optimizers are random search; by default those that Bayesmark regards as such.
        """
        cells: dict[str, dict[tuple[str, str], list[FloatArray]]] = {VISIBLE: {}, OBJECTIVES[objective]: {}}
        for study in self.studies:
            for name, found in cells.items():
                found.setdefault((study.optimizer, study.function), []).append(study.values[name])
        visible, scored = (
            {key: np.stack(values) for key, values in cells[name].items()} for name in (VISIBLE, OBJECTIVES[objective])
        )
        if random is None:
            random = sorted({study.optimizer for study in self.studies if study.random})
        return Studies(visible=visible, scored=scored, random=random)

    def trajectories(
        self, objective: str = "visible", time: str = "iterations", *, parallel: bool = False
    ) -> Iterator[Trajectory]:
        """One trajectory for each study; repeated studies of a function have the seeds 0, 1, ... in the order of names.

        The groups of the functions are their datasets.

        Parameters
        ----------
        objective
            ``visible``, or ``generalization``: that of the point with the best visible loss, which may get worse.
        time
            ``iterations``; ``evaluations``, counted when their iteration is over; or ``seconds``.
        parallel
            On the axis of seconds: the suggestions of an iteration were evaluated at the same time.
        """
        seeds: dict[tuple[str, str], int] = {}
        for study in self.studies:
            key = study.optimizer, study.function
            seed = seeds[key] = seeds.get(key, -1) + 1
            best = incumbents(study.values[VISIBLE], study.values[OBJECTIVES[objective]])
            iterations, suggestions = study.shape
            if time == "seconds":
                clock, horizon = read_seconds(self.folder, study, parallel=parallel)
            else:
                clock = np.arange(1.0, iterations + 1) * (suggestions if time == "evaluations" else 1)
                horizon = clock[-1]
            # A coarse clock may show the same time twice: the later value counts.
            kept = np.append(clock[1:] > clock[:-1], True)
            yield Trajectory(
                algorithm=study.optimizer,
                instance=study.function,
                seed=seed,
                times=clock[kept],
                best=best[kept],
                horizon=horizon,
                incumbent=objective != "visible",
                group=study.data,
            )

    def fallbacks(self) -> dict[str, Fallbacks]:
        """Failures of each optimizer, from its logs."""
        found = dict.fromkeys(self.optimizers, Fallbacks())
        for study in self.studies:
            found[study.optimizer] += read_log(self.folder, study)
        return found

    def warn_of_fallbacks(self) -> None:
        """Warn about optimizers that random search replaced in some iterations."""
        for optimizer, found in self.fallbacks().items():
            if found.random:
                warnings.warn(
                    f"{self.folder.name}: {optimizer} failed to suggest in {found.random} of {found.iterations} "
                    f"iterations, and random search replaced it there (from the logs of {found.logs} of "
                    f"{found.studies} studies).",
                    PolarBearWarning,
                    stacklevel=3,
                )


def read_database(source: str | Path, *, uneven: bool = False) -> Database:
    """Read all studies of a database; of its folders only ``eval/`` is needed.

    Parameters
    ----------
    uneven
        Accept studies of different lengths; each is observed as far as it went.

    Raises
    ------
    SourceError
        The folder is not a database, or a file in it is damaged; names the place.
    """
    folder = Path(source)
    if not is_database(folder):
        raise SourceError(_explain_not_a_database(folder))
    paths = sorted(path for path in (folder / "eval").iterdir() if path.suffix == ".json" and path.is_file())
    studies = tuple(read_study(path) for path in paths)
    if not studies:
        raise SourceError(f"{folder}: eval/ holds no study. Bayesmark writes a JSON file for each study there.")
    seen: dict[str, Study] = {}
    for study in studies:
        twin = seen.setdefault(study.uuid, study)
        if twin is not study:
            raise SourceError(
                f"{twin.place} and {study.place} are both the study {study.uuid}. Remove the copy, which would count "
                "twice."
            )
        if study.shape != studies[0].shape and not uneven:
            (n, m), (first_n, first_m) = study.shape, studies[0].shape
            raise SourceError(
                f"{study.place} has {n} iterations of {m} suggestions, but {studies[0].place} {first_n} of {first_m}. "
                "Studies of one database must be equally long. Move others out, or compare them over time with "
                "uneven=true."
            )
    _warn_of_signatures(folder, studies)
    return Database(folder, studies)


def _warn_of_signatures(folder: Path, studies: Sequence[Study]) -> None:
    """Warn about functions that are not the same in all studies."""
    first: dict[str, Study] = {}
    for study in studies:
        if study.signature:
            known = first.setdefault(study.function, study)
            same = len(known.signature) == len(study.signature)
            if not (same and np.allclose(known.signature, study.signature, rtol=1e-4, atol=0, equal_nan=True)):
                warnings.warn(
                    f"{folder.name}: {study.function} is not the same function in {known.place} and {study.place}: "
                    "their signatures differ. Do not compare their losses.",
                    PolarBearWarning,
                    stacklevel=3,
                )
                return


def _explain_not_a_database(folder: Path) -> str:
    expected = "Expected the folder of a Bayesmark database, with eval/*.json in it"
    try:
        if not folder.exists():
            return f"{folder}: there is no such folder. {expected}."
        if not folder.is_dir():
            return f"{folder} is a file. {expected}."
        if is_database(folder.parent):
            return f"{folder} is part of a database. Give the whole folder: {folder.parent}."
        inside = sorted(path.name for path in folder.iterdir() if path.is_dir() and is_database(path))
    except (OSError, ValueError):
        return f"{folder} cannot be opened. {expected}."
    if inside:
        return f"{folder} is not a database, but contains some: {', '.join(inside[:5])}. Give one of them."
    return f"{folder} has no eval/ with studies in it. {expected}."
