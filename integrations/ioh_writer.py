"""Trajectories written as ordinary IOHprofiler data, for IOHanalyzer, iohinspector and other readers.

Each algorithm gets a folder, as from ``ioh.logger.Analyzer``: a JSON file for each function, and the runs of each
dimension as rows of ``evaluations raw_y``.
"""

from __future__ import annotations

import csv
import json
import math
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.errors import InvalidInputError, RunWarning, short
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.trajectories.runs import check_values_known
from polarbear_plugins.trajectories.trajectory import Trajectory

_VERSION = "0.3.22"  # of the ioh that writes the same files


@dataclass(frozen=True, slots=True)
class Scenario:
    """An instance in the terms of IOHprofiler: a function, a dimension, and the number of the instance.

    Parameters
    ----------
    function
        Number of the function; 0 for problems without one, such as those of MA-BBOB.
    function_name
        Its name, which becomes part of the names of the files.
    """

    function: int
    function_name: str
    dimension: int
    instance: int

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

    The whole numbers ``function``, ``dimension`` and ``instance`` are needed; ``function_name`` is optional.

    >>> scenario_of(Identity("f1-i3-d5", {"function": 1, "instance": 3, "dimension": 5}))
    Scenario(function=1, function_name='f1', dimension=5, instance=3)
    """
    numbers: list[Any] = [identity.parameters.get(key) for key in ("function", "dimension", "instance")]
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        return None
    function, dimension, instance = numbers
    return Scenario(function, str(identity.parameters.get("function_name", f"f{function}")), dimension, instance)


@dataclass(slots=True)
class _Function:
    """The runs of an algorithm on a function, by dimension."""

    stem: str
    runs: dict[int, list[str]] = field(default_factory=dict)


class IOHWriter:
    """Appends runs to a folder of IOHprofiler data; a context manager that writes the JSON files at the end.

    Parameters
    ----------
    folder
        A new or empty folder.
    scenarios
        Function, dimension and instance of the instances, by their names.  An instance that is not among them gets
        function 0, the name of the suite, the given dimension and a number of its own, listed in ``instances.csv``.
    suite
        Name of the suite.
    dimension
        Of the instances without a scenario.

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
    ) -> None:
        self._folder = Path(folder)
        if self._folder.exists() and (not self._folder.is_dir() or any(self._folder.iterdir())):
            raise InvalidInputError(f"{self._folder} is not an empty folder. Give a new folder for IOHprofiler data.")
        self._scenarios = dict(scenarios or {})
        self._suite = suite
        self._file_name = re.sub(r"[^\w.+-]+", "-", suite).strip("-") or "polarbear"
        self._dimension = as_whole_number(dimension, "dimension", at_least=0)
        self._numbered: dict[str, int] = {}
        self._folders: dict[str, Path] = {}
        self._functions: dict[tuple[str, int, str], _Function] = {}
        self._written: dict[str, Scenario] = {}
        self._left_out: list[str] = []

    def add(self, trajectory: Trajectory) -> Path | None:
        """Append a run and return its data file; ``None`` for a run that found nothing, which cannot be written.

        :raises InvalidInputError: its times are not numbers of evaluations.
        """
        who = f"{trajectory.algorithm!r} on {trajectory.instance!r}"
        check_values_known(trajectory, "IOHprofiler data")
        times, best = trajectory.times, trajectory.best
        if times.size and ((times % 1 != 0).any() or times[0] < 1):
            odd = next(time for time in times.tolist() if time % 1 or time < 1)
            raise InvalidInputError(
                f"{who}: IOHprofiler counts evaluations, got the time {odd:.17g}. Runs over seconds cannot be written."
            )
        known = best < math.inf
        times, best = times[known], best[known]
        if not times.size or not math.isfinite(best[-1]):
            self._left_out.append(who)
            return None
        scenario = self._find_scenario(trajectory.instance)
        name = f"f{scenario.function}_{scenario.function_name}"
        folder = self._folder_of(trajectory.algorithm)
        function = self._functions.setdefault((trajectory.algorithm, scenario.function, name), _Function(name))
        data = folder / f"data_{name}" / f"IOHprofiler_f{scenario.function}_DIM{scenario.dimension}.dat"
        data.parent.mkdir(parents=True, exist_ok=True)
        rows = [f"{time:.0f} {_text(value)}" for time, value in zip(times.tolist(), best.tolist(), strict=True)]
        evaluations = max(math.floor(trajectory.horizon), int(times[-1]))
        if evaluations > times[-1]:
            rows.append(f"{evaluations} {_text(float(best[-1]))}")
        with data.open("a", encoding="utf-8", newline="\n") as file:
            file.write("\n".join(["evaluations raw_y", *rows, ""]))
        found = f'"best": {{"evals": {times[-1]:.0f}, "y": {json.dumps(float(best[-1]))}, "x": []}}'
        function.runs.setdefault(scenario.dimension, []).append(
            f'\t\t\t{{"instance": {scenario.instance}, "evals": {evaluations}, {found}}}'
        )
        self._written[trajectory.instance] = scenario
        return data

    def close(self) -> None:
        """Write the JSON files and the list of instances; warns about runs that were left out."""
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

    def _find_scenario(self, instance: str) -> Scenario:
        known = self._scenarios.get(instance)
        if known is not None:
            return known
        number = self._numbered.setdefault(instance, len(self._numbered) + 1)
        return Scenario(0, self._file_name, self._dimension, number)

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
            '"maximization": false, ',
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
) -> None:
    """Write trajectories over evaluations as IOHprofiler data into a new folder; see :class:`IOHWriter`."""
    with IOHWriter(folder, scenarios=scenarios, suite=suite, dimension=dimension) as writer:
        for trajectory in trajectories:
            writer.add(trajectory)


def _text(value: float) -> str:
    """Ten decimals, as ioh writes them; all digits where ten decimals would lose some of a small value."""
    fixed = f"{value:.10f}"
    return fixed if abs(value) >= 1 or float(fixed) == value else repr(value)
