"""Small real races whose runs sleep, which needs no core, under both schedules."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.special  # noqa: F401 - so that no run waits for it

from polarbear_plugins import RaceResult, RaceSettings, Trajectory, race
from polarbear_plugins.experiments.watching import Progress
from polarbear_plugins.plugins.synthetic import SyntheticAlgorithm, SyntheticSuite, synthetic_portfolio
from polarbear_plugins.problems.protocols import Problem
from polarbear_plugins.racing.posteriors import infer

_TIMEPOINTS = 5


class SleepingAlgorithm:
    """An algorithm whose runs sleep, and note when they began and how long they sleep."""

    def __init__(self, drawn: SyntheticAlgorithm, seconds: float, notes: Path) -> None:
        self.name, self._drawn, self._seconds, self._notes = drawn.name, drawn, seconds, notes

    def run(self, problem: Problem, horizon: float, seed: int, /) -> Trajectory:
        """Draw a run and sleep; the same run sleeps as long under any schedule."""
        seconds = self._seconds * horizon / _TIMEPOINTS * np.random.default_rng([seed, 1]).lognormal(0, 0.5)
        with self._notes.open("a", encoding="ascii") as file:  # short lines, so they do not mix
            file.write(f"{time.monotonic()} {seconds} {horizon} {os.getpid()}\n")
        time.sleep(seconds)
        return self._drawn.run(problem, horizon, seed)


@dataclass(frozen=True)
class Measured:
    """A race, what it took, the share of worker time in which no run slept, and the cost of all runs begun."""

    result: RaceResult
    wall: float
    idle: float
    cost: float


def measure(schedule: str, workers: int, shortest: float, seed: int) -> Measured:
    """Race 8 algorithms whose runs differ by a factor of 30 until every pair is settled."""
    drawn = synthetic_portfolio(8, _TIMEPOINTS, seed, correlation=0.9)
    seconds = np.random.default_rng(seed).permutation(shortest * 30 ** np.linspace(0, 1, len(drawn)))
    settings = RaceSettings(seed=seed, draws=1000, epsilon=0.15, resolution="crossing")
    settings = replace(settings, schedule=schedule)
    rounds: dict[int, float] = {}  # when each was over

    def watch(progress: Progress) -> None:
        rounds.setdefault(len(progress.state.rounds), time.monotonic())

    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "runs"
        portfolio = [SleepingAlgorithm(one, float(each), notes) for one, each in zip(drawn, seconds, strict=True)]
        times = range(1, _TIMEPOINTS + 1)
        result = race(portfolio, SyntheticSuite(), times, settings, workers, progress=watch)
        runs = np.loadtxt(notes, ndmin=2)
    # From when every process is up until the last decision: both schedules start and end in the same way.
    start, end = max(runs[runs[:, 3] == pid, 0].min() for pid in set(runs[:, 3])), rounds[len(result.rounds)]
    slept = np.minimum(runs[:, 0] + runs[:, 1], end) - np.maximum(runs[:, 0], start)
    wall = end - start
    return Measured(result, wall, 1 - np.maximum(slept, 0).sum() / (workers * wall), float(runs[:, 2].sum()))


def driver_seconds(runs: int, workers: int) -> float:
    """Processor time that this process needs for each of many empty runs, without inference."""
    portfolio = synthetic_portfolio(8, _TIMEPOINTS, 1)
    settings = RaceSettings(seed=1, draws=1000, max_rounds=1, batch_size=runs // 8, schedule="continuous")
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        journal = Path(folder) / "race.db"
        result = race(portfolio, SyntheticSuite(), range(1, _TIMEPOINTS + 1), settings, workers, journal=journal)
        took = time.process_time() - began
    began = time.process_time()
    infer(result.state, 1)
    return (took - (time.process_time() - began)) / runs
