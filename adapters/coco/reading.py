"""From the files of COCO to trajectories."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from polarbear_plugins.adapters.coco.catalog import Catalog, DataFile
from polarbear_plugins.adapters.coco.info import Run
from polarbear_plugins.adapters.coco.options import CocoOptions
from polarbear_plugins.adapters.coco.rows import Block, Rows, parse_rows, split_runs
from polarbear_plugins.adapters.coco.steps import Steps, fits, join, join_ioh
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning, SourceError
from polarbear_plugins.trajectories.logs.damage import Damage
from polarbear_plugins.trajectories.logs.naming import title
from polarbear_plugins.trajectories.logs.places import Opener, Place, open_each
from polarbear_plugins.trajectories.trajectory import Trajectory

# What one line of the warning about runs of each kind says.
_REMARKS = {
    "unfinished": "are in the .info file without an end: they are as long as their rows",
    "past": "have rows past the evaluations that the .info file counts: these rows are left out",
    "increases": "have best values that increase: the smallest so far counts",
    "better": "have better values in their rows than at their end in the .info file: those of the rows count",
}


class CocoRuns:
    """Trajectories of COCO data, read from the files at each iteration, one .dat file at a time.

    The .info files are read at construction, the rows during iteration.

    Parameters
    ----------
    places
        Where the files are; the order does not matter.
    """

    def __init__(self, places: Sequence[Place], options: CocoOptions) -> None:
        self._options = options
        damage = Damage(options.skip_damaged)
        self._catalog = Catalog(places, options, damage)
        self._known_damage = tuple(damage.found)

    def __iter__(self) -> Iterator[Trajectory]:
        damage = Damage(self._options.skip_damaged, self._known_damage)
        seeds: Counter[tuple[str, str]] = Counter()
        remarks: Counter[str] = Counter()
        groups = self._catalog.groups
        for file, opener in open_each(self._catalog.files):
            algorithm = self._catalog.algorithm(file)
            for run, blocks in self._blocks(file, opener, damage):
                instance = file.instance(run, self._options.instance)
                seed = seeds[algorithm, instance]
                seeds[algorithm, instance] += 1
                who = f"{title(file.place, file.rows)}, run {run.number}"
                try:
                    steps = self._join(file, run, blocks, who)
                    trajectory = Trajectory(
                        algorithm=algorithm,
                        instance=instance,
                        seed=seed,
                        times=steps.times,
                        best=steps.best,
                        horizon=steps.horizon,
                        group=groups.of.get(instance),
                        fixed_group=groups.fixed,
                        dimension=file.problem.dimension,
                        end=steps.end,
                    )
                except SourceError as problem:
                    damage.add(str(problem))
                    continue
                except InvalidInputError as problem:  # a name that is not valid text
                    damage.add(f"{who}: {problem}")
                    continue
                remarks["unfinished"] += run.evaluations is None
                remarks.update(kind for kind in ("past", "increases", "better") if getattr(steps, kind))
                yield trajectory
        damage.warn(stacklevel=2)
        _warn_of_remarks(remarks, sum(seeds.values()))

    def _blocks(self, file: DataFile, opener: Opener, damage: Damage) -> Iterator[tuple[Run, list[Block]]]:
        """The wanted runs of a file with their rows: improvements first, then values at fixed evaluations."""
        is_coco = file.problem.precision is not None
        # IOHprofiler writes those of its files that the user asked for.
        endings = (".dat", ".tdat") if is_coco else (".dat", ".tdat", ".idat", ".cdat")
        found = [self._align(file, file.rows[:-4] + ending, opener, damage) for ending in endings]
        if all(aligned is None for aligned in (found[:1] if is_coco else found)):
            if file.described:
                damage.add(f"{title(file.place, file.rows)}: there is no such file, and {_describe(file)}.")
            return
        for run in file.runs:
            blocks = [aligned[run.number - 1] for aligned in found if aligned is not None]
            there = [block for block in blocks if block is not None]
            if there and (not is_coco or blocks[0] is not None):
                yield run, there

    def _align(self, file: DataFile, name: str, opener: Opener, damage: Damage) -> list[Block | None] | None:
        """The rows of each described run, ``None`` where they are missing; ``None`` alone if there is no such file."""
        who = title(file.place, name)
        nothing: list[Block | None] = [None] * len(file.described)
        try:
            with opener(name) as opened:
                blocks = split_runs(opened.read(), who)
        except (FileNotFoundError, KeyError):
            return None
        except SourceError as problem:
            damage.add(str(problem))
            return nothing
        except OSError as problem:
            damage.add(f"{who} cannot be read: {problem.strerror or problem}.")
            return nothing
        if len(blocks) != len(file.described):  # a run that ended before its first evaluation
            blocks = [block for block in blocks if block.has_rows()]
        if len(blocks) == len(file.described):
            return list(blocks)
        damage.add(
            f"{who}: {_describe(file)}, and this file holds {len(blocks)}. Either runs were begun and did not end, or "
            "the file is cut."
        )
        return self._fit(file, blocks, who, damage)

    @staticmethod
    def _fit(file: DataFile, blocks: Sequence[Block], who: str, damage: Damage) -> list[Block | None]:
        """Of a file with too few or too many runs, those that certainly belong to a description."""
        fitting: list[Block | None] = []
        begin = 0
        for run in file.described:
            place = next((k for k in range(begin, len(blocks)) if _fits(file, run, blocks[k])), None)
            fitting.append(None if place is None else blocks[place])
            begin = begin if place is None else place + 1
        missing = [str(run.number) for run, block in zip(file.described, fitting, strict=True) if block is None]
        if missing:
            damage.add(f"{who}: no rows are certainly those of the run{'s' * (len(missing) > 1)} {', '.join(missing)}.")
        return fitting

    def _join(self, file: DataFile, run: Run, blocks: Sequence[Block], who: str) -> Steps:
        parsed = [parse_rows(block, run.number) for block in blocks]
        if file.problem.precision is None:
            return join_ioh(run, parsed, file.maximize, who)
        for block in blocks:
            if not block.is_coco:
                raise SourceError(
                    f"{block.file}, line {block.line}: expected the columns of COCO, got those of IOHprofiler."
                )
        return join(file.problem, run, parsed[0], parsed[1] if len(parsed) > 1 else None, self._options.best, who)


def _describe(file: DataFile) -> str:
    count = len(file.described)
    return f"{PurePosixPath(file.index).name} describes {count} run{'s' * (count != 1)}"


def _fits(file: DataFile, run: Run, block: Block) -> bool:
    try:
        rows: Rows = parse_rows(block, run.number)
    except SourceError:
        return False
    return fits(file.problem, run, rows)


def _warn_of_remarks(remarks: Counter[str], runs: int) -> None:
    told = [f"{remarks[kind]} of {runs} runs {text}." for kind, text in _REMARKS.items() if remarks[kind]]
    if told:
        warnings.warn("\n".join([*told, "best=rows uses the rows alone."]), PolarBearWarning, stacklevel=3)
