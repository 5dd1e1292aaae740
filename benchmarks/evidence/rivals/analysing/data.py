"""Data sets of finished runs, split into what a method sees and what it is asked about."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np

from rivals.analysing.answers import Population, Sample
from rivals.analysing.aocc import areas
from rivals.contest import Truth
from rivals.recorded_runs import hpob, ma_bbob

sys.path.append(str(Path(__file__).parents[2]))
from misfit_cases import TIMEPOINTS, Generator, Kind

#: Simulated ones by their generators in benchmarks/misfit_cases.py.
SIMULATED = ("plackett-luce", "heavy tails", "two kinds")
RECORDED = ("ma-bbob", "hpo-b", "hpo-b new spaces")
_LONG = 20_000  # instances of a simulation that is taken for the truth
_SOLVED = 1e-8  # precision below which a function of MA-BBOB is solved


@dataclass(frozen=True)
class Split:
    """What a method sees, what it is asked about, and what holds over all instances."""

    sample: Sample
    held_out: Truth
    population: Population


class Simulated:
    """Each replication has its own truth, and the held-out instances are a long simulation."""

    def __init__(self, kind: Kind, timepoints: int) -> None:
        self._kind, self._places = kind, _spread(TIMEPOINTS, timepoints)

    def splits(self, sizes: list[int], seed: int) -> Iterator[Split]:
        """One for each number of training instances, of the same truth."""
        generator, times = Generator(self._kind, seed), 2.0**self._places
        everything = generator.sample(_LONG, np.random.default_rng([seed, 1]))[:, self._places]
        population = Population(everything, areas(everything, times))
        for size in sizes:
            seen = generator.sample(size, np.random.default_rng([seed, 2, size]))[:, self._places]
            names = tuple(f"a{i}" for i in range(seen.shape[2]))
            yield Split(Sample(names, times, seen), population.truth, population)


class Recorded:
    """Each replication is a random choice of training instances from one table; the others are held out.

    With groups that are to be new, training instances come from a random half of the groups, and the other half is held
    out.
    """

    def __init__(
        self,
        algorithms: tuple[str, ...],
        timepoints: np.ndarray,
        values: np.ndarray,
        keep: int,
        groups: tuple[str, ...] | None = None,
    ) -> None:
        places = _spread(len(timepoints), keep)
        self._algorithms, self._timepoints, self._values = algorithms, timepoints[places], values[:, places]
        self._groups = None if groups is None else np.array(groups)
        self._population = Population(self._values, areas(self._values, self._timepoints))

    def splits(self, sizes: list[int], seed: int) -> Iterator[Split]:
        """One for each number of training instances."""
        for size in sizes:
            rng = np.random.default_rng([seed, size])
            open_ = np.ones(len(self._values), dtype=bool)
            if self._groups is not None:
                names = rng.permutation(np.unique(self._groups))
                open_ = np.isin(self._groups, names[: len(names) // 2])
            seen = rng.choice(np.flatnonzero(open_), size, replace=False)
            out = ~open_ if self._groups is not None else np.isin(np.arange(len(open_)), seen, invert=True)
            groups = None if self._groups is None else tuple(map(str, self._groups[seen]))
            sample = Sample(self._algorithms, self._timepoints, self._values[seen], groups)
            yield Split(sample, Truth.of(self._values[out]), self._population)


def load(
    name: str, timepoints: int, table: Path | None, hpob_path: Path | None, instances: int
) -> Simulated | Recorded:
    """A data set by its name.

    :raises FileNotFoundError: it needs a file that was not given.
    """
    if name in SIMULATED:
        (kind,) = (kind for kind in get_args(Kind) if kind == name)
        return Simulated(kind, timepoints)
    if name == "ma-bbob":
        if table is None:
            raise FileNotFoundError("ma-bbob needs --table, a file that is made if it does not exist")
        runs = ma_bbob(table, instances)
        return Recorded(runs.algorithms, runs.timepoints, np.log10(np.maximum(runs.values, _SOLVED)), timepoints)
    if hpob_path is None:
        raise FileNotFoundError(f"{name} needs --hpob, the results of the benchmark as a CSV file")
    runs = hpob(hpob_path)
    groups = search_spaces(hpob_path) if name == "hpo-b new spaces" else None
    if groups is not None and len(groups) != len(runs.values):
        raise ValueError(f"{hpob_path}: {len(groups)} runs of tasks, of which {len(runs.values)} are complete")
    return Recorded(runs.algorithms, runs.timepoints, runs.values, timepoints, groups)


def search_spaces(path: Path) -> tuple[str, ...]:
    """Search space of each task and seed, in the order of :func:`rivals.recorded_runs.hpob`."""
    with path.open(newline="", encoding="utf-8") as file:
        keys = {(row["instance"], row["seed"]) for row in csv.DictReader(file)}
    return tuple(task.partition("/")[0] for task, _ in sorted(keys))


def _spread(available: int, wanted: int) -> np.ndarray:
    """Places of the wanted number of timepoints, evenly spread, the last one among them."""
    return np.unique(np.linspace(available / wanted - 1, available - 1, wanted).round().astype(int))
