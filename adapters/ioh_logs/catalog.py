"""The runs in a place and the names of their algorithms and instances, from the JSON files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from polarbear_plugins.adapters.ioh_logs.index import (
    Experiment,
    Run,
    Scenario,
    is_index,
    is_old_index,
    is_rows,
    parse_experiment,
)
from polarbear_plugins.adapters.ioh_logs.options import LogOptions
from polarbear_plugins.errors import SourceError
from polarbear_plugins.trajectories.logs.damage import Damage
from polarbear_plugins.trajectories.logs.groups import Function, Groups, group_instances
from polarbear_plugins.trajectories.logs.naming import Described, beside, folder_of, name_algorithms, path_key, title
from polarbear_plugins.trajectories.logs.options import instance_name
from polarbear_plugins.trajectories.logs.places import Opener, Place, as_text


@dataclass(frozen=True, slots=True)
class LogFile:
    """A .dat file, its description in the JSON, and the numbers of its runs that are wanted."""

    place: Place
    index: str
    experiment: Experiment
    scenario: Scenario
    kept: frozenset[int]

    @property
    def rows(self) -> str:
        """Name of the .dat file."""
        return beside(self.index, self.scenario.path)

    @property
    def runs(self) -> Iterator[Run]:
        """The runs that are wanted."""
        return (run for run in self.scenario.runs if run.number in self.kept)

    @property
    def folder(self) -> str:
        """Identity of the folder of the JSON file."""
        return folder_of(self.place, self.index)

    @property
    def function(self) -> Function:
        """The function of the runs."""
        experiment = self.experiment
        return Function(experiment.suite, experiment.function, experiment.function_name, self.scenario.dimension)

    def problem(self, run: Run) -> tuple[str, str]:
        """Suite and full name of the instance of a run."""
        return self.experiment.suite, self.instance(run, ("function", "name", "dimension", "instance"))

    def instance(self, run: Run, parts: Sequence[str]) -> str:
        """Name of the instance of a run."""
        return instance_name(
            parts,
            suite=self.experiment.suite,
            function=self.experiment.function,
            name=self.experiment.function_name,
            dimension=self.scenario.dimension,
            instance=run.instance,
        )


class Catalog:
    """The .dat files with wanted runs, in an order that does not depend on the order of the places.

    Parameters
    ----------
    wanted
        For .dat files, by their identity, the numbers of the runs that are wanted; by default all of all files.
    """

    def __init__(
        self,
        places: Sequence[Place],
        options: LogOptions,
        damage: Damage,
        wanted: Mapping[str, frozenset[int]] | None = None,
    ) -> None:
        self._options = options
        self._damage = damage
        self._wanted = wanted
        self._described: dict[str, str] = {}
        self._problems: set[tuple[int, int]] = set()
        self.files: list[LogFile] = []
        for place in sorted(places, key=lambda place: path_key(place.identity(""))):
            self._read(place)
            self._report_undescribed(place)
        if not self.files and not damage.found:
            raise self._explain_empty(places)
        every = [run for file in self.files for run in file.runs]
        #: Whether instances have the names, and groups, that our writer noted; then all of them do.
        self.noted = options.instance is None and all(run.notes is not None for run in every)
        self._check_functions()
        self._check_directions()
        described = [
            Described(file.experiment.algorithm, file.place, file.index, list(map(file.problem, file.runs)))
            for file in self.files
        ]
        self._algorithms = name_algorithms(described, options.algorithm, several=len(places) > 1, stacklevel=4)
        functions = ((file, file.function) for file in self.files)
        runs = ((self.instance(file, run), function) for file, function in functions for run in file.runs)
        # Without a group in the notes, instances are grouped as those of other data.
        noted = self.noted and options.group is None
        self._groups_noted = noted and any(run.notes is not None and run.notes.group is not None for run in every)
        self._groups = Groups() if self._groups_noted else group_instances(runs, options.group)

    def instance(self, file: LogFile, run: Run) -> str:
        """Name of the instance of a run."""
        if self.noted and run.notes is not None:
            return run.notes.instance
        return file.instance(run, self._options.parts)

    def group(self, run: Run, instance: str) -> tuple[str | None, bool]:
        """Group of an instance, on which there is a run, and whether the groups are all there are."""
        if self._groups_noted and run.notes is not None:
            return run.notes.group, run.notes.fixed_group
        return self._groups.of.get(instance), self._groups.fixed

    def algorithm(self, file: LogFile) -> str:
        """Name of the algorithm of a file."""
        return self._algorithms[file.experiment.algorithm, file.folder]

    def _read(self, place: Place) -> None:
        with place.reading() as opener:
            for name in sorted(filter(is_index, place.names), key=path_key):
                who = title(place, name)
                try:
                    experiment = parse_experiment(_read_text(opener, name, who), who, self._options.maximize)
                except SourceError as problem:
                    self._damage.add(str(problem))
                    continue
                for scenario in experiment.scenarios:
                    identity = place.identity(beside(name, scenario.path))
                    if identity in self._described:
                        raise SourceError(
                            f"{who} describes {scenario.path}, as {self._described[identity]} does. Give each folder "
                            "once, and not together with a folder in it."
                        )
                    self._described[identity] = who
                    self._problems.add((experiment.function, scenario.dimension))
                    kept = self._kept(experiment, scenario, identity)
                    if kept:
                        self.files.append(LogFile(place, name, experiment, scenario, kept))

    def _kept(self, experiment: Experiment, scenario: Scenario, identity: str) -> frozenset[int]:
        if not self._options.keeps(experiment.function, experiment.function_name, scenario.dimension):
            return frozenset()
        kept = frozenset(run.number for run in scenario.runs if self._options.instances.keeps(run.instance))
        return kept if self._wanted is None else kept & self._wanted.get(identity, frozenset())

    def _report_undescribed(self, place: Place) -> None:
        """Report runs that no JSON file describes, as far as they may be wanted."""
        for name in sorted(place.names, key=path_key):
            if is_old_index(name):
                self._damage.add(
                    f"{title(place, name)} is in the .info format of COCO and of older IOHprofiler versions, beside "
                    "JSON files of newer ones. Give the folders of the two separately."
                )
            elif is_rows(name) and place.identity(name) not in self._described:
                match = re.search(r"_f(\d+)_DIM(\d+)", PurePosixPath(name).name, re.IGNORECASE)
                named = self._options.functions.names  # which the name of the file does not contain
                if match is None or named or self._options.keeps(int(match[1]), None, int(match[2])):
                    self._damage.add(
                        f"{title(place, name)}: no JSON file describes its runs. ioh writes none if its logger does "
                        "not trigger at evaluation 1, or if no run finds a finite value."
                    )

    def _explain_empty(self, places: Sequence[Place]) -> SourceError:
        if not self._problems:
            where = ", ".join(place.title for place in places)
            return SourceError(f"{where} holds no IOHprofiler data: expected files such as IOHprofiler_f1_Sphere.json.")
        some = ", ".join(f"{function} in dimension {dimension}" for function, dimension in sorted(self._problems)[:5])
        more = ", ..." if len(self._problems) > 5 else ""
        return SourceError(f"functions=, dimensions= and instances= leave no run. There is function {some}{more}.")

    def _check_functions(self) -> None:
        """Refuse different functions of the same number, which would become one instance."""
        if self.noted:
            self._check_noted_names()
            return
        parts = self._options.parts
        if "function" not in parts or "name" in parts:
            return
        first: dict[int, LogFile] = {}
        for file in self.files:
            other = first.setdefault(file.experiment.function, file)
            names = other.experiment.function_name, file.experiment.function_name
            if names[0] != names[1]:
                raise SourceError(
                    f"Function {file.experiment.function} is {names[0]!r} in {title(other.place, other.index)} and "
                    f"{names[1]!r} in {title(file.place, file.index)}. Distinguish them with "
                    f"instance={','.join(parts).replace('function', 'function,name')}, or choose some with functions=."
                )

    def _check_noted_names(self) -> None:
        """Refuse different functions whose instances have the same name."""
        first: dict[str, LogFile] = {}
        for file in self.files:
            for run in file.runs:
                name = self.instance(file, run)
                other = first.setdefault(name, file)
                one, same = (replace(each.function, suite="") for each in (other, file))
                if other.place is file.place:  # who wrote them together may have pooled dimensions
                    one = replace(one, dimension=same.dimension)
                if one != same:
                    raise SourceError(
                        f"Instance {name!r} is another function in {title(other.place, other.index)} than in "
                        f"{title(file.place, file.index)}. Distinguish them with instance=function,name,dimension,"
                        "instance, or read one of them."
                    )

    def _check_directions(self) -> None:
        """Refuse instances that are both minimised and maximised."""
        first: dict[str, LogFile] = {}
        for file in self.files:
            for run in file.runs:
                name = self.instance(file, run)
                other = first.setdefault(name, file)
                if other.experiment.maximize != file.experiment.maximize:
                    raise SourceError(
                        f"{title(file.place, file.index)} {'maximises' if file.experiment.maximize else 'minimises'} "
                        f"instance {name}, which {title(other.place, other.index)} does not. Say with maximize= which "
                        "is right, or distinguish the functions with instance=."
                    )


def _read_text(opener: Opener, name: str, who: str) -> str:
    try:
        with as_text(opener(name)) as file:
            return file.read()
    except OSError as problem:
        raise SourceError(f"{who} cannot be read: {problem.strerror or problem}.") from None
    except UnicodeDecodeError:
        raise SourceError(f"{who}: expected the JSON of IOHprofiler, got bytes that are not text.") from None
