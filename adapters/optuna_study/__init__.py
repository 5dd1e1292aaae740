"""Optuna studies as trajectories: best value against trials, seconds or a reported resource."""

from __future__ import annotations

import fnmatch
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polarbear_plugins.adapters.optuna_study.name_pattern import Label, NamePattern
from polarbear_plugins.errors import InvalidInputError, SourceError
from polarbear_plugins.extras import require
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.trajectories.trajectory import Trajectory

__all__ = ["polarbear_read_trajectories"]

_WHO = "Reading Optuna studies"
_DATABASES = ("sqlite", "mysql", "postgresql", "postgres", "oracle", "mssql", "mariadb", "cockroachdb")
_ROLES = ("algorithm", "instance", "seed")
_USUAL = (NamePattern("{algorithm}-{instance}-{seed}"), NamePattern("{algorithm}-{instance}"))
_OPTIONS = ("time", "pattern", "attributes", "label", "studies")


@hookimpl
def polarbear_read_trajectories(source: object, options: Mapping[str, object]) -> Iterable[Trajectory] | None:
    """Optuna studies: a storage URL (sqlite:///studies.db), an SQLite or journal file, a study, a list of studies."""
    if isinstance(source, str | Path):
        opened = _opener(str(source))
        if opened is None:
            return None
        wishes = _Options.parse(options)
        studies = _load_all(opened(), wishes.studies, str(source))
        try:
            return _read(studies, wishes)
        except SourceError as problem:
            raise SourceError(f"{source}: {problem}") from None
    # Whoever hands over a study has imported Optuna: looking costs no import.
    optuna = sys.modules.get("optuna")
    if optuna is None:
        return None
    if isinstance(source, optuna.storages.BaseStorage):
        wishes = _Options.parse(options)
        return _read(_load_all(source, wishes.studies, type(source).__name__), wishes)
    given = [source] if isinstance(source, optuna.Study) else source
    if not isinstance(given, list | tuple) or not given or not all(isinstance(study, optuna.Study) for study in given):
        return None
    wishes = _Options.parse(options)
    return _read([study for study in given if fnmatch.fnmatchcase(study.study_name, wishes.studies)], wishes)


# For the trials of a study, the sign of its values, and whether steps count from 0: times, values, horizon.
Clock = Callable[[Sequence[Any], int, bool], tuple[list[float], list[float], float]]


@dataclass(frozen=True, slots=True)
class _Options:
    """How to read studies.

    Parameters
    ----------
    time
        ``trials``: the number of the trial; ``seconds``: since the first trial began; ``step``: the resource reported
        as step, one trial after another.
    pattern
        How the names of the studies tell algorithm, instance and seed: a :class:`NamePattern`.
    attributes
        Which user attributes of the studies tell them: ``{"algorithm": "sampler", "instance": "problem"}``.
    label
        A function of a study that tells them: ``(algorithm, instance)`` or ``(algorithm, instance, seed)``.
    studies
        Which studies: a pattern of names such as ``tpe-*``.
    """

    time: str = "trials"
    pattern: NamePattern | None = None
    attributes: Mapping[str, str] | None = None
    label: Callable[[Any], Sequence[object]] | None = None
    studies: str = "*"

    @classmethod
    def parse(cls, options: Mapping[str, object]) -> _Options:
        """Check options as they come: objects from Python, text from the command line."""
        unknown = sorted(set(options) - set(_OPTIONS))
        if unknown:
            raise InvalidInputError(f"Optuna studies have no option {unknown[0]!r}. They take {', '.join(_OPTIONS)}.")
        given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
        if given.get("time", "trials") not in _CLOCKS:
            raise InvalidInputError(f"time: expected {', '.join(_CLOCKS)}, got {given['time']!r}.")
        if not isinstance(given.get("studies", "*"), str):
            raise InvalidInputError(f"studies: expected a pattern of names such as 'tpe-*', got {given['studies']!r}.")
        ways = [way for way in ("pattern", "attributes", "label") if way in given]
        if len(ways) > 1:
            raise InvalidInputError(f"{' and '.join(ways)} both tell algorithm and instance. Give one of them.")
        if "pattern" in given:
            given["pattern"] = NamePattern(given["pattern"])
        if "attributes" in given:
            given["attributes"] = _parse_attributes(given["attributes"])
        if "label" in given and not callable(given["label"]):
            raise InvalidInputError(f"label: expected a function of a study, got {given['label']!r}.")
        return cls(**given)

    def label_of(self, study: Any) -> Label:
        """Algorithm, instance and seed of a study."""
        who = f"The study {study.study_name!r}"
        if self.label is not None:
            parts: Any = self.label(study)
            if isinstance(parts, str) or not isinstance(parts, Sequence) or len(parts) not in (2, 3):
                raise InvalidInputError(
                    f"label: expected (algorithm, instance) or (algorithm, instance, seed), got {parts!r}."
                )
            return Label.of(dict(zip(_ROLES, parts, strict=False)), who)
        attributes = {role: role for role in _ROLES} if self.attributes is None else self.attributes
        found = {role: study.user_attrs.get(name) for role, name in attributes.items()}
        if self.pattern is None and (
            self.attributes is not None or None not in (found["algorithm"], found["instance"])
        ):
            for role in ("algorithm", "instance"):
                if found.get(role) is None:
                    raise SourceError(
                        f"{who} has no user attribute {attributes.get(role, role)!r}, which tells the {role}."
                    )
            return Label.of(found, who)
        for pattern in _USUAL if self.pattern is None else (self.pattern,):
            label = pattern.read(study.study_name)
            if label is not None:
                return label
        expected = " or ".join(pattern.text for pattern in (_USUAL if self.pattern is None else (self.pattern,)))
        raise SourceError(
            f"{who}: the name does not look like {expected}. Say with pattern=, attributes= or label= how to tell "
            "algorithm and instance, or leave the study out with studies=."
        )


def _parse_attributes(given: object) -> dict[str, str]:
    if isinstance(given, str):
        given = dict(pair.partition("=")[::2] for pair in given.replace(" ", "").split(","))
    names = dict(given) if isinstance(given, Mapping) else {}
    if not names or not set(names) <= set(_ROLES) or not all(isinstance(name, str) and name for name in names.values()):
        raise InvalidInputError(
            f"attributes: expected algorithm=NAME,instance=NAME and possibly seed=NAME, got {given!r}."
        )
    return {"algorithm": "algorithm", "instance": "instance"} | names


# Storages


def _opener(source: str) -> Callable[[], Any] | None:
    """Find what opens the storage, if the source is one; decided without importing Optuna, and nothing is created."""
    scheme, separator, rest = source.partition("://")
    if separator:
        dialect = scheme.partition("+")[0]
        if dialect not in _DATABASES:
            return None
        # The path of sqlite:///x.db is x.db, that of sqlite:////x.db is /x.db.
        path = rest.removeprefix("/").partition("?")[0] if dialect == "sqlite" else ""
        if path and path != ":memory:" and not path.startswith("file:") and not Path(path).is_file():
            raise SourceError(f"{source}: there is no such storage, the file {path} does not exist.")
        return lambda: _open_database(source)
    try:
        with Path(source).open("rb") as file:
            start = file.read(200)
    except (OSError, ValueError):  # missing, a folder, or no name of a file at all
        return None
    if start.startswith(b"SQLite format 3\0") and _has_studies(Path(source)):
        return lambda: _open_database(f"sqlite:///{source}")
    if start.startswith(b'{"op_code"'):
        return lambda: _open_journal(source)
    return None


def _has_studies(path: Path) -> bool | None:
    """Tell whether an SQLite file is a storage of Optuna, without changing it.

    ``None`` if only somebody who writes can tell: a process that was killed has left half a transaction.
    """
    import sqlite3

    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        kinds = dict(connection.execute("SELECT name, type FROM sqlite_master").fetchall())
    except sqlite3.OperationalError:
        return None
    except sqlite3.DatabaseError:
        return False
    finally:
        connection.close()
    if not {"view", "trigger"}.isdisjoint(kinds.values()):
        raise SourceError(f"{path} holds views or triggers, which no storage of Optuna does; they are not run.")
    return all(kinds.get(name) == "table" for name in ("studies", "trials", "version_info"))


def _open_database(url: str) -> Any:
    optuna = require("optuna", extra="optuna", who=_WHO)
    if url.startswith("sqlite:///"):
        path = Path(url.removeprefix("sqlite:///").partition("?")[0])
        if path.is_file() and _has_studies(path) is False:
            raise SourceError(f"{url}: the file is no storage of Optuna, it has no table of studies.")
    try:
        return optuna.storages.get_storage(url)
    except ImportError as problem:
        raise SourceError(f"{url} needs a driver that is not installed: {_line(problem)}") from None
    except Exception as problem:  # whatever SQLAlchemy, the driver or Optuna's version check raises
        raise SourceError(f"{url} cannot be opened as a storage of Optuna: {_line(problem)}") from None


def _open_journal(path: str) -> Any:
    optuna = require("optuna", extra="optuna", who=_WHO)
    backend = require("optuna.storages.journal", extra="optuna", who=_WHO).JournalFileBackend(path)
    try:
        return optuna.storages.JournalStorage(backend)
    except Exception as problem:  # what a damaged line makes of the replay
        raise SourceError(f"{path} cannot be read as a journal of Optuna: {_line(problem)}") from None


def _load_all(storage: Any, wanted: str, who: str) -> list[Any]:
    optuna = require("optuna", extra="optuna", who=_WHO)
    try:
        names = [study.study_name for study in storage.get_all_studies()]
        if not names:
            raise SourceError(f"{who} holds no studies.")
        chosen = [name for name in names if fnmatch.fnmatchcase(name, wanted)]
        if not chosen:
            some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            raise InvalidInputError(f"studies: no name in {who} looks like {wanted!r}. There are {some}.")
        return [optuna.load_study(study_name=name, storage=storage) for name in chosen]
    except (InvalidInputError, SourceError):
        raise
    except Exception as problem:
        raise SourceError(f"{who} cannot be read: {_line(problem)}") from None


def _line(problem: Exception) -> str:
    return " ".join(str(problem).split())[:300] or type(problem).__name__


# Trajectories


def _read(studies: Sequence[Any], options: _Options) -> list[Trajectory]:
    if not studies:
        raise InvalidInputError(f"studies: no name looks like {options.studies!r}.")
    finished = []
    for study in studies:
        with _understanding(study):
            finished.append(_finished_trials(study))
    # Some count epochs from 0, some from 1; one answer for all, so that the curves can be compared.
    from_zero = any(0 in trial.intermediate_values for trials in finished for trial in trials)
    trajectories: list[Trajectory] = []
    names: dict[Label, str] = {}
    for study, trials in zip(studies, finished, strict=True):
        label = options.label_of(study)
        if label in names:
            raise SourceError(
                f"The studies {names[label]!r} and {study.study_name!r} are both {label.algorithm!r} on "
                f"{label.instance!r} with the seed {label.seed}. Give repeated runs different seeds."
            )
        names[label] = study.study_name
        with _understanding(study):
            sign = -1 if study.direction.name == "MAXIMIZE" else 1
            try:
                times, values, horizon = _CLOCKS[options.time](trials, sign, from_zero)
            except SourceError as problem:
                raise SourceError(f"The study {study.study_name!r} {problem}") from None
            trajectories.append(
                Trajectory.from_evaluations(
                    values,
                    algorithm=label.algorithm,
                    instance=label.instance,
                    seed=label.seed,
                    times=times,
                    horizon=horizon,
                )
            )
    return trajectories


@contextmanager
def _understanding(study: Any) -> Iterator[None]:
    """Turn whatever Optuna makes of damaged trials into an error that names the study."""
    try:
        yield
    except SourceError:
        raise
    except Exception as problem:  # Optuna checks what it writes, and trusts what it reads
        raise SourceError(f"The study {study.study_name!r} is damaged: {_line(problem)}") from None


def _finished_trials(study: Any) -> list[Any]:
    if len(study.directions) > 1:
        raise SourceError(f"The study {study.study_name!r} has {len(study.directions)} objectives; expected one.")
    trials = [trial for trial in study.get_trials(deepcopy=False) if trial.state.is_finished()]
    if not trials:
        raise SourceError(
            f"The study {study.study_name!r} has no finished trial. Leave it out with studies=, a pattern of names."
        )
    return sorted(trials, key=lambda trial: trial.number)


def _value(trial: Any, sign: int) -> float:
    """Value of a trial, minimised; nan, as of a failed evaluation, if it failed, was pruned or broke a constraint."""
    feasible = all(violation <= 0 for violation in trial.constraints.values())
    return sign * float(trial.value) if trial.state.name == "COMPLETE" and feasible else math.nan


def _by_trial(trials: Sequence[Any], sign: int, _: bool) -> tuple[list[float], list[float], float]:
    times = [trial.number + 1.0 for trial in trials]
    return times, [_value(trial, sign) for trial in trials], times[-1]


def _by_seconds(trials: Sequence[Any], sign: int, _: bool) -> tuple[list[float], list[float], float]:
    """Seconds since the first trial began; idle time between two sessions counts."""
    starts = [trial.datetime_start for trial in trials if trial.datetime_start is not None]
    if not starts or any(trial.datetime_complete is None for trial in trials):
        raise SourceError('has trials without dates. Use time="trials" instead.')
    best: dict[float, float] = {}
    for trial in sorted(trials, key=lambda trial: trial.datetime_complete):
        time = max((trial.datetime_complete - min(starts)).total_seconds(), 0.0)
        value = _value(trial, sign)
        # Trials that ended in the same microsecond are one step of the curve.
        best[time] = value if math.isnan(best.get(time, math.nan)) else min(best[time], value)
    return list(best), list(best.values()), max(best)


def _by_step(trials: Sequence[Any], sign: int, from_zero: bool) -> tuple[list[float], list[float], float]:
    """Resource spent: that of the trials before, each up to its last step, and the step itself."""
    times: list[float] = []
    values: list[float] = []
    spent = 0.0
    for trial in trials:
        steps = sorted(trial.intermediate_values.items())
        if steps and steps[0][0] < 0:
            raise SourceError(f"reports the step {steps[0][0]} in trial {trial.number}; a resource is not negative.")
        times += [spent + step + from_zero for step, _ in steps]
        values += [sign * float(value) for _, value in steps]
        spent = times[-1] if steps else spent
    if not times:
        raise SourceError('reports no steps. Use time="trials" or time="seconds" instead.')
    return times, values, spent


_CLOCKS: dict[str, Clock] = {"trials": _by_trial, "seconds": _by_seconds, "step": _by_step}
