"""The files of one Bayesmark study: its evaluations, its times, its log."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_array
from polarbear_plugins.errors import InvalidInputError, SourceError, reason, short
from polarbear_plugins.names import as_name
from polarbear_plugins.regular_files import open_regular, open_regular_text

VISIBLE, GENERALIZATION = "_visible_to_opt", "generalization"
_STUDY_FILE = re.compile(r"[0-9a-f]{32}\.json", re.IGNORECASE)
_FUNCTION = ("--classifier", "--data", "--metric")
_OPTIMIZER = ("--opt", "opt_rev", "rev")
# What bayesmark/experiment.py writes when it catches an exception. A traceback follows, whose lines are indented where
# they quote this text.
_SUGGEST = re.compile(rb"^Failure in optimizer suggest\. Falling back to random search\.\s*$", re.MULTILINE)
_OBSERVE = re.compile(rb"^Failure in optimizer observe\. Ignoring these observations\.\s*$", re.MULTILINE)
_EVALUATE = re.compile(rb"^Failure in function eval\. Setting to inf\.\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One optimizer on one function once.

    Attributes
    ----------
    place
        Name of the file, for messages.
    model, data, metric
        Parts of the name of the function.
    random
        Whether Bayesmark regards the optimizer as random search.
    signature
        Values of the function at points that are the same for all studies; empty if there are none.
    values
        For each objective ``[iteration, suggestion]``; always losses, ``inf`` where the evaluation failed.
    """

    place: str
    uuid: str
    optimizer: str
    function: str
    model: str
    data: str
    metric: str
    random: bool
    signature: tuple[float, ...]
    values: Mapping[str, FloatArray]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of iterations and of suggestions in each."""
        iterations, suggestions = self.values[VISIBLE].shape
        return iterations, suggestions


@dataclass(frozen=True, slots=True)
class Fallbacks:
    """Failures in studies, from their logs.

    Attributes
    ----------
    studies, logs
        How many studies there are, and how many of them have a log; of the others nothing is known.
    iterations
        How many iterations the studies with a log have.
    random
        Iterations in which the optimizer failed to suggest and random search silently replaced it.
    ignored
        Iterations in which it failed to observe the results.
    failed
        Evaluations that failed and count as infinitely bad.
    """

    studies: int = 0
    logs: int = 0
    iterations: int = 0
    random: int = 0
    ignored: int = 0
    failed: int = 0

    def __add__(self, other: Fallbacks) -> Fallbacks:
        return Fallbacks(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


def is_database(folder: Path) -> bool:
    """Whether a folder looks like a database of Bayesmark; reads file names and at most the start of one file."""
    try:
        evaluations = folder / "eval"
        if not evaluations.is_dir():
            return False
        files = sorted(path for path in evaluations.iterdir() if path.suffix == ".json")
        if any(_STUDY_FILE.fullmatch(path.name) for path in files):
            return True
        if not files:
            return all((folder / name).is_dir() for name in ("suggest_log", "time", "derived"))
        with open_regular(files[0]) as file:
            return file.read(20).lstrip().startswith(b'{"meta"')
    except (OSError, ValueError):  # text that cannot be a path, or no permission
        return False


def read_study(path: Path) -> Study:
    """Read a file of ``eval/``."""
    place = f"eval/{path.name}"
    data = _read_json(path, place)
    arguments = _look_up(data, place, "meta", "args")
    function, optimizer = (
        "_".join(_check_text(_look_up(arguments, f"{place}, meta.args", key), key, place) for key in keys)
        for keys in (_FUNCTION, _OPTIMIZER)
    )
    values = {name: _read_array(data, place, name, 2) for name in (VISIBLE, GENERALIZATION)}
    if values[VISIBLE].shape != values[GENERALIZATION].shape:
        raise SourceError(
            f"{place}: {VISIBLE} has {_shape_text(values[VISIBLE])}, but {GENERALIZATION} has "
            f"{_shape_text(values[GENERALIZATION])}. The file is damaged."
        )
    for name, array in values.items():
        if np.isnan(array).any():
            iteration, suggestion = (int(k) for k in np.argwhere(np.isnan(array))[0])
            raise SourceError(
                f"{place}: {name} is nan at iteration {iteration}, suggestion {suggestion}. Expected a number, or "
                "Infinity for an evaluation that failed."
            )
    return Study(
        place=place,
        uuid=str(arguments.get("--uuid", path.stem)),
        optimizer=optimizer,
        function=function,
        model=arguments["--classifier"],
        data=arguments["--data"],
        metric=arguments["--metric"],
        random=arguments["--opt"] == "RandomSearch",
        signature=_signature(data["meta"].get("signature")),
        values=values,
    )


def read_seconds(folder: Path, study: Study, *, parallel: bool) -> tuple[FloatArray, float]:
    """Seconds from the start of a study until the values of each iteration were known, and until its end."""
    name = Path(study.place).name
    place, path = f"time/{name}", folder / "time" / name
    if not path.is_file():
        raise SourceError(
            f"{folder} has no {place}, which says how long the study took. Without it use time=iterations or "
            "time=evaluations."
        )
    data = _read_json(path, place)
    suggest, evaluate, observe = (
        _read_array(data, place, part, n) for part, n in (("suggest", 1), ("eval", 2), ("observe", 1))
    )
    for part, array in (("suggest", suggest), ("eval", evaluate), ("observe", observe)):
        if array.shape != study.shape[: array.ndim]:
            raise SourceError(
                f"{place}: {part} has {_shape_text(array)}, but {study.place} {_shape_text(study.shape)}."
            )
        if not ((array >= 0) & (array < np.inf)).all():
            raise SourceError(f"{place}: {part} has seconds that are negative or not finite.")
    work = suggest + (evaluate.max(axis=1) if parallel else evaluate.sum(axis=1))
    ends = np.cumsum(work + observe)
    return ends - observe, float(ends[-1])


def read_log(folder: Path, study: Study) -> Fallbacks:
    """Count the failures in the log of a study, if there is one."""
    path = folder / "log" / f"{Path(study.place).stem}.log"
    try:
        with open_regular(path) as file:
            text = file.read()
    except FileNotFoundError:
        return Fallbacks(studies=1)
    except OSError as problem:
        raise SourceError(f"log/{path.name} cannot be read: {problem.strerror}.") from None
    found = (len(pattern.findall(text)) for pattern in (_SUGGEST, _OBSERVE, _EVALUATE))
    return Fallbacks(1, 1, study.shape[0], *found)


def _read_json(path: Path, place: str) -> Any:
    try:
        with open_regular_text(path) as file:
            return json.load(file)
    except json.JSONDecodeError as problem:
        raise SourceError(
            f"{place}, line {problem.lineno}, column {problem.colno}: the JSON is damaged or cut off ({problem.msg}). "
            "Copy the file again, or move it out of the database to leave the study out."
        ) from None
    except UnicodeDecodeError as problem:
        raise SourceError(f"{place}, byte {problem.start}: expected JSON text, got other bytes.") from None
    except (OSError, RecursionError, ValueError) as problem:
        raise SourceError(f"{place} cannot be read as JSON: {reason(problem)}") from None


def _look_up(data: Any, place: str, *keys: str) -> Any:
    for depth, key in enumerate(keys):
        if not isinstance(data, dict) or key not in data:
            raise SourceError(
                f"{place}: there is no {'.'.join(keys[: depth + 1])!r}. Expected a file that Bayesmark wrote."
            )
        data = data[key]
    return data


def _check_text(value: object, key: str, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise SourceError(f"{place}, meta.args: expected text for {key!r}, got {short(value)}.")
    try:
        return as_name(value, key)
    except InvalidInputError as problem:
        raise SourceError(f"{place}, meta.args: {problem}") from None


def _signature(value: object) -> tuple[float, ...]:
    """Values of a signature, [points, values]; empty if it has another form."""
    values = value[1] if isinstance(value, list) and len(value) == 2 else None
    if not isinstance(values, list) or not all(isinstance(number, int | float) for number in values):
        return ()
    try:
        return tuple(float(number) for number in values)
    except OverflowError:
        return ()


def _read_array(data: Any, place: str, name: str, dimensions: int) -> FloatArray:
    values = _look_up(data, place, "data", "data_vars", name, "data")
    rows = values if isinstance(values, list) else []
    if any(isinstance(cell, bool) for row in rows for cell in (row if isinstance(row, list) else [row])):
        raise SourceError(f"{place}: {name}: expected numbers, got true or false.")  # which numpy takes for 1 and 0
    try:
        array = as_array(values, f"{place}: {name}")
    except InvalidInputError as problem:
        raise SourceError(str(problem)) from None
    if array.ndim != dimensions or not array.size:
        expected = "a number for each iteration" + (" and suggestion" if dimensions == 2 else "")
        raise SourceError(f"{place}: {name}: expected {expected}, got an array of shape {array.shape}.")
    return array


def _shape_text(shape: FloatArray | tuple[int, ...]) -> str:
    numbers = shape.shape if isinstance(shape, np.ndarray) else shape
    return f"{numbers[0]} iterations" + (f" of {numbers[1]} suggestions" if len(numbers) > 1 else "")
