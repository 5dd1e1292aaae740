"""From the files of IOHprofiler to trajectories."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from polarbear_plugins.adapters.ioh_logs.catalog import Catalog, LogFile
from polarbear_plugins.adapters.ioh_logs.fixed_evaluations import FixedEvaluations
from polarbear_plugins.adapters.ioh_logs.index import Run
from polarbear_plugins.adapters.ioh_logs.objectives import check_one_objective
from polarbear_plugins.adapters.ioh_logs.options import LogOptions
from polarbear_plugins.adapters.ioh_logs.rows import Block, has_values, parse_rows, split_runs
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning, SourceError
from polarbear_plugins.trajectories.logs.damage import Damage
from polarbear_plugins.trajectories.logs.naming import title
from polarbear_plugins.trajectories.logs.places import Opener, Place, as_text, open_each
from polarbear_plugins.trajectories.trajectory import Trajectory


class LoggedRuns:
    """Trajectories of IOHprofiler data, read from the files at each iteration, one run at a time.

    The JSON files are read at construction, the rows during iteration.

    Parameters
    ----------
    places
        Where the files are; the order does not matter.
    wanted
        For .dat files, by their identity, the numbers of the runs to read; by default all of all files.
    """

    def __init__(
        self, places: Sequence[Place], options: LogOptions, wanted: Mapping[str, frozenset[int]] | None = None
    ) -> None:
        self._options = options
        damage = Damage(options.skip_damaged)
        self._catalog = Catalog(places, options, damage, wanted)
        self._known_damage = tuple(damage.found)

    def __iter__(self) -> Iterator[Trajectory]:
        damage = Damage(self._options.skip_damaged, self._known_damage)
        seeds = _Seeds()
        rounded: dict[str, set[str]] = defaultdict(set)
        rounded_runs = 0
        fixed = FixedEvaluations()
        looks_for_gaps = self._options.time == "evaluations" and self._options.value in (None, "raw_y")
        for file, opener in open_each(self._catalog.files):
            algorithm = self._catalog.algorithm(file)
            name = title(file.place, file.rows)
            header = ""
            for run, block in self._blocks(file, opener, damage):
                instance = self._catalog.instance(file, run)
                group, fixed_group = self._catalog.group(run, instance)
                seed = seeds.next(algorithm, instance, run)
                who = f"{name}, run {run.number}"
                if block.header != header:
                    header = block.header
                    # Not damage, so it cannot be skipped.
                    check_one_objective(block.columns, self._options.value, who)
                try:
                    rows = parse_rows(block, run, file.experiment.maximize, self._options, who)
                    trajectory = Trajectory(
                        algorithm=algorithm,
                        instance=instance,
                        seed=seed,
                        times=rows.times,
                        best=rows.best,
                        horizon=rows.horizon,
                        group=group,
                        fixed_group=fixed_group,
                        dimension=file.scenario.dimension or None,  # our writer says 0 where it is not known
                        end="unknown" if run.notes is None else run.notes.end,
                    )
                except SourceError as problem:
                    damage.add(str(problem))
                    continue
                except InvalidInputError as problem:  # a name with an unpaired surrogate
                    damage.add(f"{who}: {problem}")
                    continue
                if looks_for_gaps and run.notes is None:
                    fixed.add(name, rows)
                if rows.rounded:
                    rounded_runs += 1
                    rounded[instance].add(algorithm)
                yield trajectory
        damage.warn(stacklevel=2)
        _warn_of_ties(rounded, rounded_runs, seeds.runs)
        fixed.warn()

    def _blocks(self, file: LogFile, opener: Opener, damage: Damage) -> Iterator[tuple[Run, Block]]:
        """The wanted runs of a file with their lines, which are in the order of the JSON."""
        who, index = title(file.place, file.rows), PurePosixPath(file.index).name
        total = len(file.scenario.runs)
        described = iter(file.scenario.runs)
        run = next(described, None)
        problem = f"{index} describes {total} runs, and the file ends before"
        try:
            with as_text(opener(file.rows)) as lines:
                for block in split_runs(lines, who):
                    # A run without any value is in the rows, but not in the JSON that ioh writes.
                    empty = run is None or (run.best is not None and not has_values(block, self._options))
                    if run is not None and not empty:
                        if run.number in file.kept:
                            yield run, block
                        run = next(described, None)
                        continue
                    why = "" if has_values(block, self._options) else ", since it has no value"
                    damage.add(f"{who}, line {block.line}: a run that is not among the {total} in {index}{why}.")
        except (FileNotFoundError, KeyError):
            problem = f"there is no such file, and {index} describes"
        except UnicodeDecodeError:
            problem = "the file is not text, so there is nothing of"
        except SourceError as error:
            if not damage.skip:
                raise
            problem = f"{error} So there is nothing of"
        except OSError as error:
            problem = f"{error.strerror or error}, so there is nothing of"
        if run is not None:
            some = f"run {run.number}" if run.number == total else f"runs {run.number} to {total}"
            damage.add(f"{problem if problem.startswith(who) else f'{who}: {problem}'} {some}.")


class _Seeds:
    """Seeds of the runs: those that our writer noted, otherwise 0, 1, 2, ... on each instance."""

    def __init__(self) -> None:
        self.runs: Counter[tuple[str, str]] = Counter()
        self._taken: dict[tuple[str, str], set[int]] = defaultdict(set)

    def next(self, algorithm: str, instance: str, run: Run) -> int:
        """Seed of a run, which no other run of the algorithm on the instance has."""
        taken = self._taken[algorithm, instance]
        seed = self.runs[algorithm, instance] if run.notes is None else run.notes.seed
        if seed in taken:  # runs from several races, or a part of them without notes
            seed = next(number for number in itertools.count() if number not in taken)
        taken.add(seed)
        self.runs[algorithm, instance] += 1
        return seed


def _warn_of_ties(rounded: Mapping[str, set[str]], runs: int, seeds: Mapping[tuple[str, str], int]) -> None:
    tied = sum(len(algorithms) > 1 for algorithms in rounded.values())
    if tied:
        warnings.warn(
            f"{runs} of {sum(seeds.values())} runs reach values that the files print as 0, with 10 decimals, before "
            f"the final value in the JSON. On {tied} of {len({instance for _, instance in seeds})} "
            "instances several algorithms have such values, and are tied while they do.",
            PolarBearWarning,
            stacklevel=3,
        )
