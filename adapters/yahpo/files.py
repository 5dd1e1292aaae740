"""The files of a copy of yahpo_data: where they are, and how they are read."""

from __future__ import annotations

import csv
import functools
import json
import math
import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from polarbear_plugins.adapters.yahpo.scenarios import META_FILE, SCENARIOS, Description, read_description
from polarbear_plugins.errors import InvalidInputError, SourceError, reason, short
from polarbear_plugins.problems.spaces import Categorical, Condition, ConfigurationSpace, Float, Integer, Parameter
from polarbear_plugins.regular_files import open_regular_text

#: The environment variable that names the folder.
VARIABLE = "YAHPO_DATA"
#: The scenario that the package contains: a formula on 24 instances, for first steps and tests.
DEMO = "demo"
#: Least and greatest value of each target, by scenario, instance and target.
Statistics = Mapping[tuple[str, str, str], tuple[float, float]]

_DEMO_FOLDER = Path(__file__).parent / "demo_data"
_MOST_NEAR = 4  # names in a suggestion
_MOST_DIGITS = 18  # of a name that is compared as a number
_STATISTICS = Path("global_statistics") / "instance_target_statistics.csv"
_HELP = (
    "Download https://github.com/slds-lmu/yahpo_data (release v1.0.2, for instance by git clone) and say where it is: "
    f"data=FOLDER, --data FOLDER, or the variable {VARIABLE}. For a first try without it there is yahpo:{DEMO}."
)


def data_folder(data: object = None, scenario: str | None = None) -> Path:
    """Folder with the data of a scenario: the given one, or that of the variable ``YAHPO_DATA``.

    The scenario ``demo`` is in the package, unless a folder is given.

    :raises SourceError: none is given, or it does not exist; says what to download.
    """
    if data is None and scenario == DEMO:
        return _DEMO_FOLDER
    given = data if data is not None else os.environ.get(VARIABLE)
    if given is None or not str(given).strip():
        raise SourceError(f"The folder with the surrogates of YAHPO Gym is not given. {_HELP}")
    if not isinstance(given, str | Path):
        raise InvalidInputError(f"data: expected the folder of yahpo_data, got {given!r}.")
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise SourceError(f"{folder} is not a folder with the surrogates of YAHPO Gym. {_HELP}")
    return folder


def names_near(name: str, known: list[str]) -> str:
    """Sentence with the known names that are similar to a wrong one, or some of them.

    Numbers, as the identifiers of datasets are, are similar if they are close.

    >>> names_near("lcbnech", ["lcbench", "nb301"])
    'Did you mean lcbench?'
    >>> names_near("x", ["lcbench", "nb301"])
    'There are lcbench, nb301.'
    >>> names_near("13", ["3", "12", "14", "4135", "15", "16"])
    'Did you mean 12 or 14 or 15 or 16?'
    """
    near = _numbers_near(name, known) or get_close_matches(name, known, n=_MOST_NEAR, cutoff=0.6)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    shown = ", ".join(known[:14])
    return f"There are {shown}{f' and {len(known) - 14} more' if len(known) > 14 else ''}."


def _numbers_near(name: str, known: list[str]) -> list[str]:
    """The known numbers that are closest to a number; none if it is not one."""
    if not _is_number(name):
        return []
    return sorted(filter(_is_number, known), key=lambda other: (abs(int(other) - int(name)), int(other)))[:_MOST_NEAR]


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= _MOST_DIGITS


def description_of(folder: Path, scenario: str) -> Description:
    """Description of a scenario: one of the 14, or one of the user's own from the file in the data folder.

    :raises InvalidInputError: there is no such scenario; names similar ones.
    """
    if scenario in SCENARIOS:
        return SCENARIOS[scenario]
    path = folder / META_FILE
    own = _read_json(path) if path.is_file() else {}
    if scenario in own:
        if not isinstance(own[scenario], dict):
            raise SourceError(f"{path}: expected an object for the scenario {scenario!r}.")
        return read_description(own[scenario], f"{path}, scenario {scenario!r}")
    raise InvalidInputError(
        f"YAHPO Gym has no scenario {scenario!r}. {names_near(scenario, [*SCENARIOS, *(set(own) - set(SCENARIOS))])}"
    )


def model_of(folder: Path, scenario: str) -> Path:
    """Path of the surrogate; the file may be missing."""
    return folder / scenario / "model.onnx"


def read_encoding(folder: Path, scenario: str) -> dict[str, dict[str, int]]:
    """Codes of the values of each categorical column; ``#na#`` is the value of a column that is not active."""
    path = folder / scenario / "encoding.json"
    encoding = _read_json(path)
    for name, codes in encoding.items():
        # The surrogate takes them as whole numbers of 32 bits.
        if not isinstance(codes, dict) or not all(type(c) is int and abs(c) < 2**31 for c in codes.values()):
            raise SourceError(f"{path}: expected whole numbers for the values of {short(name)}.")
    return encoding


def read_space(folder: Path, scenario: str) -> ConfigurationSpace:
    """All parameters of a scenario, instance and fidelities included, with their conditions.

    :raises SourceError: the file is missing, damaged, or has an unknown kind of parameter or condition.
    """
    path = folder / scenario / "config_space.json"
    data = _read_json(path)
    try:
        if data.get("forbiddens"):
            raise SourceError(f"{path}: it forbids combinations of values, which is not supported.")
        parameters = {entry["name"]: _parse_parameter(entry) for entry in data["hyperparameters"]}
        conditions = [condition for entry in data["conditions"] for condition in _parse_conditions(entry)]
        return ConfigurationSpace(parameters, conditions)
    except (KeyError, TypeError, AttributeError) as problem:
        raise SourceError(f"{path}: not a configuration space ({type(problem).__name__}: {reason(problem)}).") from None
    except (ValueError, OverflowError, RecursionError) as problem:
        raise SourceError(f"{path}: {reason(problem)}") from None


def read_statistics(folder: Path) -> Statistics:
    """Least and greatest value of each target on each instance; empty if the folder does not have the file.

    :raises SourceError: the file is damaged; names the line.
    """
    path = folder / _STATISTICS
    try:
        stamp = path.stat()
    except OSError:
        return {}
    return _read_statistics(path, stamp.st_mtime_ns, stamp.st_size)


@functools.lru_cache(maxsize=4)
def _read_statistics(path: Path, *_: int) -> Statistics:
    bounds: dict[tuple[str, str, str], dict[str, float]] = {}
    try:
        with open_regular_text(path, newline="") as file:
            rows = csv.DictReader(file)
            for row in rows:
                try:
                    key = row["scenario"], row["instance"], row["metric"]
                    value = float(row["value"])
                    if row["statistic"] not in ("min", "max") or not math.isfinite(value):
                        raise ValueError(f"{row['statistic']} {row['value']}")
                except (KeyError, TypeError, ValueError) as problem:
                    raise SourceError(
                        f"{path}, line {rows.line_num}: expected metric,statistic,value,scenario,instance "
                        f"({reason(problem)})."
                    ) from None
                bounds.setdefault(key, {})[row["statistic"]] = value
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise SourceError(f"{path} is damaged ({reason(problem)}). Download it again.") from None
    return {key: (found["min"], found["max"]) for key, found in bounds.items() if len(found) == 2}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        with open_regular_text(path) as file:
            data = json.load(file)
    except FileNotFoundError:
        raise SourceError(f"{path} is missing. {_HELP}") from None
    except (OSError, ValueError, RecursionError) as problem:
        raise SourceError(f"{path} is damaged ({reason(problem)}). Download it again.") from None
    if not isinstance(data, dict):
        raise SourceError(f"{path} is damaged (expected a JSON object, got {type(data).__name__}). Download it again.")
    return data


def _parse_parameter(entry: Mapping[str, Any]) -> Parameter:
    kind = entry["type"]
    if kind == "uniform_float":
        return Float(float(entry["lower"]), float(entry["upper"]), log=bool(entry["log"]))
    if kind == "uniform_int":
        return Integer(entry["lower"], entry["upper"], log=bool(entry["log"]))
    if kind == "categorical":
        return Categorical(tuple(entry["choices"]))
    raise InvalidInputError(f"{entry['name']!r} is of the unknown type {kind!r}.")


def _parse_conditions(entry: Mapping[str, Any]) -> list[Condition]:
    kind = entry["type"]
    if kind == "AND":
        return [condition for part in entry["conditions"] for condition in _parse_conditions(part)]
    if kind == "EQ":
        return [Condition(entry["child"], entry["parent"], (entry["value"],))]
    if kind == "IN":
        return [Condition(entry["child"], entry["parent"], tuple(entry["values"]))]
    raise InvalidInputError(f"the condition on {entry.get('child')!r} is of the unknown type {kind!r}.")
