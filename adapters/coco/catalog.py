"""The runs in places and the names of their algorithms and instances, from the .info files."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from polarbear_plugins.adapters.coco.info import Problem, Run, parse_info
from polarbear_plugins.adapters.coco.options import CocoOptions
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning, SourceError, short
from polarbear_plugins.trajectories.logs.damage import Damage
from polarbear_plugins.trajectories.logs.groups import Function, group_instances
from polarbear_plugins.trajectories.logs.naming import Described, beside, folder_of, name_algorithms, path_key, title
from polarbear_plugins.trajectories.logs.options import instance_name
from polarbear_plugins.trajectories.logs.places import Folder, Opener, Place


def is_index(name: str) -> bool:
    """Whether a file describes runs."""
    return name.lower().endswith(".info")


def is_ours(name: str) -> bool:
    """Whether a file is of a kind that is read."""
    return is_index(name) or re.search(r"\.[tic]?dat$", name, re.IGNORECASE) is not None


@dataclass(frozen=True, slots=True)
class DataFile:
    """A .dat file, what an .info file says about it, and the numbers of its runs that are wanted."""

    place: Place
    index: str
    rows: str
    problem: Problem
    algorithm: str
    maximize: bool
    described: tuple[Run, ...]
    kept: frozenset[int]

    @property
    def runs(self) -> Iterator[Run]:
        """The runs that are wanted."""
        return (run for run in self.described if run.number in self.kept)

    @property
    def function(self) -> Function:
        """The function of the runs."""
        problem = self.problem
        return Function(problem.suite, problem.function, problem.name, problem.dimension)

    def instance(self, run: Run, parts: Sequence[str]) -> str:
        """Name of the instance of a run."""
        problem = self.problem
        return instance_name(
            parts,
            suite=problem.suite,
            function=problem.function,
            name=problem.name,
            dimension=problem.dimension,
            instance=run.instance,
        )


class Catalog:
    """The .dat files with wanted runs, in an order that does not depend on the order of the places."""

    def __init__(self, places: Sequence[Place], options: CocoOptions, damage: Damage) -> None:
        self._options = options
        self._damage = damage
        self._described: dict[str, str] = {}
        self._problems: set[tuple[int, int]] = set()
        self.files: list[DataFile] = []
        for place in sorted(places, key=lambda place: path_key(place.identity(""))):
            self._read(place)
            self._report_undescribed(place)
        if not self.files and not damage.found:
            raise self._explain_empty(places)
        self._check_suites()
        described = [
            Described(file.algorithm, file.place, file.index, [self._identify(file, run) for run in file.runs])
            for file in self.files
        ]
        self._algorithms = name_algorithms(described, options.algorithm, several=len(places) > 1, stacklevel=4)
        self._warn_of_joined_archives()
        runs = ((file.instance(run, options.instance), file.function) for file in self.files for run in file.runs)
        self.groups = group_instances(runs, options.group)

    def algorithm(self, file: DataFile) -> str:
        """Name of the algorithm of a file."""
        return self._algorithms[file.algorithm, folder_of(file.place, file.index)]

    def _warn_of_joined_archives(self) -> None:
        """Warn if archives are taken together because of their algorithm's name, which authors often leave as it is."""
        archives: dict[str, set[str]] = defaultdict(set)
        for file in self.files:
            if not isinstance(file.place, Folder):
                archives[self.algorithm(file)].add(file.place.title)
        joined = [(name, sorted(titles)) for name, titles in archives.items() if len(titles) > 1]
        if joined and self._options.algorithm == "auto":
            name, titles = min(joined)
            warnings.warn(
                f"{short(name)} has runs on different problems in the archives {', '.join(titles[:5])}. They are "
                "treated as one algorithm. If they are not, say algorithm=name+folder; algorithm=name confirms it.",
                PolarBearWarning,
                stacklevel=5,
            )

    @staticmethod
    def _identify(file: DataFile, run: Run) -> tuple[str, int, int, int]:
        return file.problem.suite, file.problem.function, file.problem.dimension, run.instance

    def _read(self, place: Place) -> None:
        with place.reading() as opener:
            for name in sorted(filter(is_index, place.names), key=path_key):
                who = title(place, name)
                try:
                    entries = parse_info(_read_text(opener, name, who), who)
                    files = [
                        DataFile(
                            place,
                            name,
                            beside(name, entry.path),
                            entry.problem,
                            entry.problem.algorithm or PurePosixPath(name).parent.name or place.title,
                            self._maximize(entry.problem, who),
                            entry.runs,
                            self._kept(entry.problem, entry.runs),
                        )
                        for entry in entries
                    ]
                except SourceError as problem:
                    self._damage.add(str(problem))
                    continue
                for file in files:
                    self._add(file, who)

    def _add(self, file: DataFile, who: str) -> None:
        identity = file.place.identity(file.rows)
        if identity in self._described:
            raise SourceError(
                f"{who} describes {file.rows}, as {self._described[identity]} does. Give each folder once, and not "
                "together with a folder in it."
            )
        self._described[identity] = who
        self._problems.add((file.problem.function, file.problem.dimension))
        # A file that describes no run is kept too: its rows may have some.
        if file.kept or (not file.described and self._wants(file.problem)):
            self.files.append(file)

    def _wants(self, problem: Problem) -> bool:
        options = self._options
        kept = options.functions.keeps(problem.function, problem.name or None)
        return kept and options.dimensions.keeps(problem.dimension)

    def _kept(self, problem: Problem, runs: Sequence[Run]) -> frozenset[int]:
        if not self._wants(problem):
            return frozenset()
        return frozenset(run.number for run in runs if self._options.instances.keeps(run.instance))

    def _maximize(self, problem: Problem, who: str) -> bool:
        asked = self._options.maximize
        if problem.precision is not None:
            if asked:
                raise InvalidInputError(
                    f"maximize=true: {who} is COCO data, whose values are distances to the optimum and minimised. "
                    "Leave the option out."
                )
            return False
        known = problem.maximize if asked is None else asked
        if known is None:
            raise SourceError(f"{who} does not say whether values are maximised. Give maximize=true or maximize=false.")
        return known

    def _report_undescribed(self, place: Place) -> None:
        """Report runs that no .info file describes, as far as they may be wanted."""
        for name in sorted(place.names, key=path_key):
            match = re.search(r"_f(\d{1,9})_DIM(\d{1,9})[^/]*\.dat$", name, re.IGNORECASE)
            if match is None or place.identity(name) in self._described:
                continue
            options = self._options
            named = options.functions.names  # which the name of the file does not contain
            if (named or options.functions.keeps(int(match[1]))) and options.dimensions.keeps(int(match[2])):
                self._damage.add(f"{title(place, name)}: no .info file describes its runs.")

    def _explain_empty(self, places: Sequence[Place]) -> SourceError:
        if not self._problems:
            where = ", ".join(place.title for place in places)
            return SourceError(f"{where} holds no COCO data: expected files such as bbobexp_f1.info.")
        some = ", ".join(f"{function} in dimension {dimension}" for function, dimension in sorted(self._problems)[:5])
        more = ", ..." if len(self._problems) > 5 else ""
        return SourceError(f"functions=, dimensions= and instances= leave no run. There is function {some}{more}.")

    def _check_suites(self) -> None:
        """Refuse functions of the same number in different suites, which would become one instance or group."""
        parts = self._options.instance
        first: dict[int, DataFile] = {}
        for file in self.files:
            other = first.setdefault(file.problem.function, file)
            suites = other.problem.suite, file.problem.suite
            if suites[0] != suites[1] and "suite" not in parts:
                raise SourceError(
                    f"Function {file.problem.function} is of the suite {short(suites[0])} in "
                    f"{title(other.place, other.index)} and of {short(suites[1])} in {title(file.place, file.index)}. "
                    f"Distinguish them with instance=suite,{','.join(parts)}, or read one of them."
                )


def _read_text(opener: Opener, name: str, who: str) -> str:
    try:
        with opener(name) as file:
            data = file.read()
    except OSError as problem:
        raise SourceError(f"{who} cannot be read: {problem.strerror or problem}.") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")  # the names of authors in older archives
