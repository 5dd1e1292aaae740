"""The JSON files of IOHprofiler, which describe the runs in the .dat files."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from polarbear_plugins.checks import as_choice, as_number
from polarbear_plugins.errors import InvalidInputError, SourceError, reason, short
from polarbear_plugins.trajectories.given import End, check_group, check_labels

_MAXIMIZATION = ("maximization", "maximisation", "maximize", "maximise")
_SPELLINGS = {
    **dict.fromkeys(("true", "t", "yes", "1", "max", *_MAXIMIZATION), True),
    **dict.fromkeys(("false", "f", "no", "0", "min", "minimization", "minimisation", "minimize", "minimise"), False),
}


def is_index(name: str) -> bool:
    """Whether a file describes runs."""
    return re.fullmatch(r"IOHprofiler_.*\.json", PurePosixPath(name).name, re.IGNORECASE) is not None


def is_rows(name: str) -> bool:
    """Whether a file holds the rows of runs."""
    return re.fullmatch(r"IOHprofiler_.*\.dat", PurePosixPath(name).name, re.IGNORECASE) is not None


def is_old_index(name: str) -> bool:
    """Whether a file describes runs in the format before JSON, which is also that of COCO."""
    return name.lower().endswith(".info")


@dataclass(frozen=True, slots=True)
class Notes:
    """What the writer of this package notes about a run, beyond the format; the rows of such a run have all digits."""

    instance: str
    seed: int
    group: str | None
    fixed_group: bool
    end: End
    horizon: float | None


@dataclass(frozen=True, slots=True)
class Run:
    """A run in the JSON: ``number`` counts from 1 in its file; ``None`` stands for what the JSON does not contain."""

    number: int
    instance: int
    evaluations: int | None
    best_evaluation: int | None
    best: float | None
    notes: Notes | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """Runs in one dimension, with their rows in one file; ``path`` is relative to the folder of the JSON."""

    dimension: int
    path: str
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    """One JSON file: an algorithm on a function."""

    algorithm: str
    suite: str
    function: int
    function_name: str
    maximize: bool
    scenarios: tuple[Scenario, ...]


def parse_experiment(text: str, who: str, maximize: bool | None = None) -> Experiment:
    """Check the text of a JSON file.

    Parameters
    ----------
    who
        Name of the file, for messages.
    maximize
        Overrides what the file says.
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError as problem:
        raise SourceError(
            f"{who}, line {problem.lineno}: expected JSON, {problem.msg[0].lower()}{problem.msg[1:]}."
        ) from None
    except RecursionError:
        raise SourceError(f"{who}: expected the JSON of IOHprofiler, got lists that are nested too deeply.") from None
    except ValueError as problem:  # a number of thousands of digits
        raise SourceError(f"{who}: expected the JSON of IOHprofiler ({reason(problem)}).") from None
    top = _Object(data, who)
    algorithm = top.get("algorithm")
    name = algorithm.get("name") if isinstance(algorithm, Mapping) else algorithm
    if not isinstance(name, str) or not name.strip():
        raise SourceError(f"{who}: expected the name of an algorithm, got {short(name)}.")
    scenarios = top.objects("scenarios")
    return Experiment(
        algorithm=name,
        suite=str(top.get("suite") or "unknown_suite"),
        function=top.whole("function_id"),
        function_name=str(top.get("function_name") or ""),
        maximize=_is_maximized(top) if maximize is None else maximize,
        scenarios=tuple(_parse_scenario(scenario) for scenario in scenarios),
    )


class _Object:
    """An object of the JSON, with error messages that name the place."""

    def __init__(self, data: object, who: str) -> None:
        if not isinstance(data, Mapping):
            raise SourceError(f"{who}: expected an object in braces, got {short(data)}.")
        self.data: Mapping[str, Any] = data
        self.who = who

    def get(self, key: str) -> object:
        return self.data.get(key)

    def whole(self, key: str) -> int:
        value = self.data.get(key)
        number = value if not isinstance(value, float) or not value.is_integer() else int(value)
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise SourceError(f"{self.who}: expected a whole number as {key!r}, got {short(value)}.")
        return number

    def objects(self, key: str) -> list[_Object]:
        value = self.data.get(key)
        if not isinstance(value, list) or not value:
            raise SourceError(f"{self.who}: expected {key}, got {'none' if not value else short(value)}.")
        return [_Object(item, f"{self.who}, {key[:-1]} {place}") for place, item in enumerate(value, start=1)]


def _parse_scenario(scenario: _Object) -> Scenario:
    dimension = scenario.whole("dimension")
    path = scenario.get("path")
    if not isinstance(path, str) or not path.strip():
        raise SourceError(f"{scenario.who}: expected the path of a .dat file, got {short(path)}.")
    path = path.replace("\\", "/")
    if path.startswith("/") or ":" in path or ".." in PurePosixPath(path).parts:
        raise SourceError(f"{scenario.who}: expected the path of a .dat file below the JSON file, got {short(path)}.")
    runs = tuple(_parse_run(run, number) for number, run in enumerate(scenario.objects("runs"), start=1))
    return Scenario(dimension, PurePosixPath(path).as_posix(), runs)


def _parse_run(run: _Object, number: int) -> Run:
    evaluations = run.whole("evals") if run.get("evals") is not None else None
    best_evaluation, best = None, None
    if run.get("best") is not None:
        found = _Object(run.get("best"), f"{run.who}, best")
        best_evaluation = found.whole("evals")
        value = found.get("y")
        # JSON has no numbers that are not finite: they come as null or text, if at all.
        if isinstance(value, int | float) and not isinstance(value, bool):
            best = _finite(value)
    notes = (
        None if run.get("polarbear") is None else _parse_notes(_Object(run.get("polarbear"), f"{run.who}, polarbear"))
    )
    # Runs that were logged by hand have 0 evaluations.
    return Run(number, run.whole("instance"), evaluations or None, best_evaluation or None, best, notes)


def _parse_notes(notes: _Object) -> Notes:
    """Notes of our writer; ``notes.who`` names the place."""
    try:
        labels, who = check_labels("any", notes.get("instance"), notes.data.get("seed", 0))
        group = check_group(notes.get("group"), notes.data.get("fixed_group", False), who)
        end = as_choice(notes.data.get("end", "unknown"), End, "end")
        horizon = notes.get("horizon")
        return Notes(*labels[1:], *group, end, None if horizon is None else as_number(horizon, "horizon"))
    except InvalidInputError as problem:
        raise SourceError(f"{notes.who}: {problem}") from None


def _finite(value: float) -> float | None:
    try:
        number = float(value)
    except OverflowError:  # a whole number too large for a float
        return None
    return number if math.isfinite(number) else None


def _is_maximized(top: _Object) -> bool:
    given = {key.lower(): value for key, value in top.data.items() if key.lower() in _MAXIMIZATION}
    if not given:
        raise SourceError(f"{top.who} does not say whether values are maximised. Give maximize=true or maximize=false.")
    value = next(iter(given.values()))
    text = str(value).strip().lower()
    if text not in _SPELLINGS:
        raise SourceError(f"{top.who}: expected true or false as 'maximization', got {short(value)}.")
    return _SPELLINGS[text]
