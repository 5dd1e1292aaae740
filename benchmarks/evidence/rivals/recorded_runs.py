"""Tables of runs that every rival replays: CMA-ES variants on MA-BBOB, hyperparameter optimizers on HPO-B.

A table is a population of instances.  Contests draw from it with replacement, so that what holds over all of its
instances is the exact truth.
"""

from __future__ import annotations

import csv
import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

DIMENSION = 5
EVALUATIONS = 2000
HPOB_TIMEPOINTS = (1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class RunTable:
    """Values ``[instance, timepoint, algorithm]`` of all runs, to be minimised."""

    algorithms: tuple[str, ...]
    timepoints: np.ndarray
    values: np.ndarray

    def save(self, path: Path) -> None:
        """Write it, so that a next call need not run anything."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part.npz")
        np.savez(part, algorithms=np.array(self.algorithms), timepoints=self.timepoints, values=self.values)
        part.replace(path)

    @classmethod
    def load(cls, path: Path) -> RunTable:
        """Read what :meth:`save` wrote."""
        with np.load(path) as stored:
            return cls(tuple(map(str, stored["algorithms"])), stored["timepoints"], stored["values"])


def ma_bbob(path: Path, instances: int, seed: int = 1) -> RunTable:
    """Runs of six step-size adaptations of CMA-ES and of random search on MA-BBOB, from a file as far as it goes.

    Parameters
    ----------
    path
        Where the runs are kept; the file is extended if it has too few instances.
    instances
        Number of problems.  The first ones are the same whatever the number.
    seed
        Of the problems and of the runs.
    """
    from polarbear_plugins import best_at, load_plugins, log_timepoints

    plugins = load_plugins()
    suite, portfolio = plugins.suite("ma-bbob", dimension=DIMENSION), plugins.portfolio("modcma-ssa")
    names, timepoints = tuple(one.name for one in portfolio), log_timepoints(50, EVALUATIONS, 12, integer=True)
    rows = list(RunTable.load(path).values) if path.exists() else []
    for place, identity in itertools.islice(enumerate(suite.identities(seed)), len(rows), instances):
        problem = suite.build(identity)
        columns = [
            best_at(algorithm.run(problem, EVALUATIONS, _run_seed(seed, place, column)), timepoints)
            for column, algorithm in enumerate(portfolio)
        ]
        rows.append(np.stack(columns, axis=1))
        if len(rows) % 50 == 0 or len(rows) == instances:
            RunTable(names, timepoints, np.stack(rows)).save(path)
            print(f"recorded {len(rows)} of {instances} MA-BBOB instances", flush=True)
    return RunTable(names, timepoints, np.stack(rows[:instances]))


def _run_seed(seed: int, instance: int, algorithm: int) -> int:
    return int(np.random.SeedSequence([seed, instance, algorithm]).generate_state(1)[0])


def hpob(path: Path) -> RunTable:
    """Results of the public HPO-B benchmark; an instance is a task with a seed.

    Expects columns algorithm, instance, seed, time and value, in which only improvements are listed.
    """
    best: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            curves = best.setdefault((row["instance"], row["seed"]), {})
            curve = curves.setdefault(row["algorithm"], np.full(len(HPOB_TIMEPOINTS), np.inf))
            curve[np.array(HPOB_TIMEPOINTS) >= float(row["time"])] = float(row["value"])
    algorithms = tuple(sorted({name for curves in best.values() for name in curves}))
    complete = [curves for _, curves in sorted(best.items()) if len(curves) == len(algorithms)]
    values = np.stack([np.stack([curves[name] for name in algorithms], axis=1) for curves in complete])
    return RunTable(algorithms, np.array(HPOB_TIMEPOINTS, dtype=np.float64), values)
