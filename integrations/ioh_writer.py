"""Trajectories written as ordinary IOHprofiler data, for IOHanalyzer, iohinspector and other readers.

Each algorithm gets a folder, as from ``ioh.logger.Analyzer``: a JSON file for each function, and the runs of each
dimension as rows of ``evaluations raw_y``.  What the format has no place for, such as the name of an instance, stands
in the object ``polarbear`` of a run in the JSON: other readers skip it, and ours gives the same runs again.
"""

from __future__ import annotations

import csv
import json
import math
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.errors import InvalidInputError, RunWarning, short
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.regular_files import naming_output
from polarbear_plugins.trajectories.runs import check_values_known
from polarbear_plugins.trajectories.trajectory import Trajectory

_VERSION = "0.3.22"  # of the ioh that writes the same files
_EXACT = 2.0**53  # from here on decimals say nothing


@dataclass(frozen=True, slots=True)
class Scenario:
    """An instance in the terms of IOHprofiler: a function, a dimension, and the number of the instance.

    Parameters
    ----------
    function
        Number of the function; 0 for problems without one, such as those of MA-BBOB.
    function_name
        Its name, which becomes part of the names of the files.
    dimension
        0 if it is not known.
    maximize
        Larger values are better: they are written with their own sign, which trajectories have turned.
    """

    function: int
    function_name: str
    dimension: int
    instance: int
    maximize: bool = False

    def __post_init__(self) -> None:
        for what in ("function", "dimension", "instance"):
            as_whole_number(getattr(self, what), f"{what} of a scenario", at_least=0)
        if not re.fullmatch(r"[\w.+-]+", str(self.function_name)):
            raise InvalidInputError(
                "function_name of a scenario: it is part of file names; expected letters, digits, '_', '.', '+' and "
                f"'-', got {short(self.function_name)}."
            )


def scenario_of(identity: Identity) -> Scenario | None:
    """Scenario from the parameters of an identity; ``None`` if they do not contain one.

    The whole numbers ``function``, ``dimension`` and ``instance`` are needed.  ``function_name`` is optional: a group
    such as ``f1 Sphere`` has it, too.  ``maximize`` is true if larger values are better.

    >>> scenario_of(Identity("f1-i3-d5", {"function": 1, "instance": 3, "dimension": 5}, group="f1 Sphere"))
    Scenario(function=1, function_name='Sphere', dimension=5, instance=3, maximize=False)
    """
    given = identity.parameters
    numbers: list[Any] = [given.get(key) for key in ("function", "dimension", "instance")]
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        return None
    function, dimension, instance = numbers
    name = str(given.get("function_name") or _name_in_group(identity.group, function) or f"f{function}")
    return Scenario(function, name, dimension, instance, given.get("maximize") is True)


def scenario_in_name(run: Trajectory) -> Scenario | None:
    """Scenario from the name of an instance such as ``f1_d5_i2`` or ``f1-i2-d5``; ``None`` if it is another name.

    These are the names of logged data and of the suite BBOB.  The dimension and the group of the run must agree.
    """
    found = _NAMED.fullmatch(run.instance)
    if found is None:
        return None
    function, dimension, instance = (int(found[key] or found[f"{key}2"]) for key in ("function", "dimension", "number"))
    name = _name_in_group(run.group, function)
    if not function or dimension != run.dimension or (run.group is not None and name is None):
        return None
    return Scenario(function, name or f"f{function}", dimension, instance)


_NAMED = re.compile(
    r"f(?P<function>\d{1,9})_d(?P<dimension>\d{1,9})_i(?P<number>\d{1,9})"
    r"|f(?P<function2>\d{1,9})-i(?P<number2>\d{1,9})-d(?P<dimension2>\d{1,9})"
)


def _name_in_group(group: str | None, function: int) -> str | None:
    """Name of a function from that of its group, such as ``f1 Sphere``; ``None`` if the group is another one."""
    number, _, name = (group or "").partition(" ")
    if number != f"f{function}":
        return None
    return _as_file_name(name) or number


def _as_file_name(name: str) -> str:
    return re.sub(r"[^\w.+-]+", "-", name).strip("-")


@dataclass(slots=True)
class _Function:
    """The runs of an algorithm on a function, by dimension."""

    stem: str
    maximize: bool
    runs: dict[int, list[str]] = field(default_factory=dict)


class IOHWriter:
    """Appends runs to a folder of IOHprofiler data; a context manager that writes the JSON files at the end.

    Parameters
    ----------
    folder
        A new or empty folder.
    scenarios
        Function, dimension and instance of the instances, by their names.  An instance that is not among them, and
        whose name is not one such as ``f1_d5_i2``, gets function 0, the name of the suite, its dimension and a number
        of its own.  ``instances.csv`` lists them all.
    suite
        Name of the suite.
    dimension
        Of the instances without a scenario whose runs do not know it; 0 if it is not known.
    maximize
        Larger values are better on all instances: they are written with their own sign, which trajectories have turned.

    Examples
    --------
    >>> import tempfile
    >>> run = Trajectory(algorithm="csa", instance="a", times=[1, 4], best=[3.5, 0.25], horizon=10)
    >>> with tempfile.TemporaryDirectory() as folder, IOHWriter(folder, suite="mine", dimension=2) as writer:
    ...     data = writer.add(run)
    ...     print(data.read_text())
    evaluations raw_y
    1 3.5000000000
    4 0.2500000000
    10 0.2500000000
    <BLANKLINE>
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        scenarios: Mapping[str, Scenario] | None = None,
        suite: str = "polarbear",
        dimension: int = 0,
        maximize: bool = False,
    ) -> None:
        self._folder = Path(folder)
        if self._folder.exists() and (not self._folder.is_dir() or any(self._folder.iterdir())):
            raise InvalidInputError(f"{self._folder} is not an empty folder. Give a new folder for IOHprofiler data.")
        self._scenarios = dict(scenarios or {})
        self._suite = suite
        self._file_name = _as_file_name(suite) or "polarbear"
        self._dimension = as_whole_number(dimension, "dimension", at_least=0)
        self._maximize = maximize
        self._numbered: dict[str, int] = {}
        self._folders: dict[str, Path] = {}
        self._functions: dict[tuple[str, int, str], _Function] = {}
        self._written: dict[str, Scenario] = {}
        self._left_out: list[str] = []

    def add(self, trajectory: Trajectory) -> Path | None:
        """Append a run and return its data file; ``None`` for a run that found nothing, which cannot be written.

        :raises InvalidInputError: its times are not numbers of evaluations, or its value increases.
        """
        who = f"{trajectory.algorithm!r} on {trajectory.instance!r}"
        times, best = _improvements(trajectory, who)
        if not times.size or not math.isfinite(best[-1]):
            self._left_out.append(who)
            return None
        scenario = self._find_scenario(trajectory, who)
        function = self._function_of(trajectory.algorithm, scenario, who)
        path = f"data_{function.stem}/IOHprofiler_f{scenario.function}_DIM{scenario.dimension}.dat"
        data = self._folder_of(trajectory.algorithm) / path
        sign = -1.0 if scenario.maximize else 1.0
        evaluations = max(math.floor(trajectory.horizon), int(times[-1]))
        rows = [(int(time), sign * value) for time, value in zip(times.tolist(), best.tolist(), strict=True)]
        if times[0] > 1:
            # iohinspector tells runs apart by their evaluation 1.  So far there is no value, as ioh writes it, too.
            rows.insert(0, (1, sign * math.inf))
        if evaluations > times[-1]:
            rows.append((evaluations, sign * float(best[-1])))
        text = "\n".join(["evaluations raw_y", *(f"{time} {_text(value)}" for time, value in rows), ""])
        with naming_output(self._folder):
            data.parent.mkdir(parents=True, exist_ok=True)
            with data.open("a", encoding="utf-8", newline="\n") as file:
                file.write(text)
        found = f'"best": {{"evals": {times[-1]:.0f}, "y": {json.dumps(sign * float(best[-1]))}, "x": []}}'
        noted = json.dumps(_notes(trajectory, evaluations))
        function.runs.setdefault(scenario.dimension, []).append(
            f'\t\t\t{{"instance": {scenario.instance}, "evals": {evaluations}, {found}, "polarbear": {noted}}}'
        )
        self._written[trajectory.instance] = scenario
        return data

    def close(self) -> None:
        """Write the JSON files and the list of instances; warns about runs that were left out."""
        with naming_output(self._folder):
            self._write_indices()
        if self._left_out:
            more = f" and {len(self._left_out) - 3} more" if len(self._left_out) > 3 else ""
            warnings.warn(
                f"Left out {', '.join(self._left_out[:3])}{more}: IOHprofiler data cannot hold runs without a value.",
                RunWarning,
                stacklevel=2,
            )
            self._left_out = []

    def __enter__(self) -> IOHWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_indices(self) -> None:
        for (algorithm, number, _), function in self._functions.items():
            path = self._folders[algorithm] / f"IOHprofiler_{function.stem}.json"
            path.write_text(self._json_text(algorithm, number, function), encoding="utf-8", newline="\n")
        if self._written:
            with (self._folder / "instances.csv").open("w", encoding="utf-8", newline="") as file:
                table = csv.writer(file, lineterminator="\n")
                table.writerow(["instance", "function", "function_name", "dimension", "number"])
                for name, scenario in self._written.items():
                    table.writerow(
                        [name, scenario.function, scenario.function_name, scenario.dimension, scenario.instance]
                    )

    def _find_scenario(self, run: Trajectory, who: str) -> Scenario:
        known = self._scenarios.get(run.instance) or scenario_in_name(run)
        if known is None:
            number = self._numbered.setdefault(run.instance, len(self._numbered) + 1)
            known = Scenario(0, self._file_name, run.dimension or self._dimension, number)
        if run.dimension is not None and known.dimension not in (0, run.dimension):
            raise InvalidInputError(
                f"{who}: its scenario has dimension {known.dimension}, the run {run.dimension}. Correct one of them."
            )
        known = replace(known, dimension=known.dimension or run.dimension or 0)
        return replace(known, maximize=True) if self._maximize else known

    def _function_of(self, algorithm: str, scenario: Scenario, who: str) -> _Function:
        stem = f"f{scenario.function}_{scenario.function_name}"
        function = self._functions.setdefault((algorithm, scenario.function, stem), _Function(stem, scenario.maximize))
        if function.maximize != scenario.maximize:
            raise InvalidInputError(
                f"{who}: function {stem} is maximised on some instances and minimised on others. Give the functions "
                "different names in their scenarios."
            )
        return function

    def _folder_of(self, algorithm: str) -> Path:
        if algorithm not in self._folders:
            plain = re.sub(r"[^\w.+=-]+", "-", algorithm).strip("-.") or "algorithm"
            # Different names may give the same file name, and file systems may ignore case.
            taken = {path.name.lower() for path in self._folders.values()}
            names = (plain if not number else f"{plain}-{number + 1}" for number in range(len(taken) + 1))
            self._folders[algorithm] = self._folder / next(name for name in names if name.lower() not in taken)
        return self._folders[algorithm]

    def _json_text(self, algorithm: str, number: int, function: _Function) -> str:
        """Text of a JSON file, with the same spacing as that of ``ioh.logger.Analyzer``."""
        name = function.stem.partition("_")[2]
        scenarios = []
        for dimension, runs in function.runs.items():
            path = f"data_{function.stem}/IOHprofiler_f{number}_DIM{dimension}.dat"
            scenarios.append(
                f'\t\t{{"dimension": {dimension},\n\t\t"path": {json.dumps(path)},\n\t\t"runs": [\n'
                + ",\n".join(runs)
                + "\n\t\t]}"
            )
        head = [
            f'"version": {json.dumps(_VERSION)}, ',
            f'"suite": {json.dumps(self._suite)}, ',
            f'"function_id": {number}, ',
            f'"function_name": {json.dumps(name)}, ',
            f'"maximization": {json.dumps(function.maximize)}, ',
            f'"algorithm": {{"name": {json.dumps(algorithm)}, "info": "polarbear-plugins"}},',
            '"attributes": ["evaluations", "raw_y"],',
            '"scenarios": [',
        ]
        return "{\n" + "".join(f"\t{line}\n" for line in head) + ",\n".join(scenarios) + "\n\t]\n}\n"


def write_ioh(
    trajectories: Iterable[Trajectory],
    folder: str | Path,
    *,
    scenarios: Mapping[str, Scenario] | None = None,
    suite: str = "polarbear",
    dimension: int = 0,
    maximize: bool = False,
) -> None:
    """Write trajectories over evaluations as IOHprofiler data into a new folder; see :class:`IOHWriter`.

    ``read_trajectories`` of the folder gives the same runs again.
    """
    with IOHWriter(folder, scenarios=scenarios, suite=suite, dimension=dimension, maximize=maximize) as writer:
        for trajectory in trajectories:
            writer.add(trajectory)


def _improvements(run: Trajectory, who: str) -> tuple[FloatArray, FloatArray]:
    """When the best value improved, and to what; without the times at which there is no value."""
    check_values_known(run, "IOHprofiler data")
    times, best = run.times, run.best
    if times.size and ((times % 1 != 0).any() or times[0] < 1):
        odd = next(time for time in times.tolist() if time % 1 or time < 1)
        raise InvalidInputError(
            f"{who}: IOHprofiler counts evaluations, got the time {odd:.17g}. Runs over seconds cannot be written."
        )
    before = np.concatenate(([np.inf], best[:-1]))
    if (best > before).any():
        time = times[np.argmax(best > before)]
        raise InvalidInputError(
            f"{who}: IOHprofiler data hold best values so far, and this value increases at time {time:g}, as that of "
            "an incumbent may. Write such runs as a table."
        )
    improved = best < before
    return times[improved], best[improved]


def _notes(run: Trajectory, evaluations: int) -> dict[str, Any]:
    """What the format has no place for."""
    notes: dict[str, Any] = {"instance": run.instance, "seed": run.seed}
    if run.group is not None:
        notes |= {"group": run.group, "fixed_group": run.fixed_group}
    if run.end != "unknown":
        notes["end"] = run.end
    if run.horizon != evaluations:
        notes["horizon"] = run.horizon
    return notes


def _text(value: float) -> str:
    """Ten decimals, as ioh writes them; all digits where ten decimals would lose some."""
    fixed = f"{value:.10f}"
    return fixed if abs(value) < _EXACT and float(fixed) == value else repr(value)
