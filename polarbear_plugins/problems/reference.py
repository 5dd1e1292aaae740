"""A run that always computes the same, to see by its time how fast a machine is at the moment."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from polarbear_plugins.problems.given import GivenProblem
from polarbear_plugins.problems.protocols import Identity, Problem
from polarbear_plugins.trajectories.trajectory import Trajectory

REFERENCE_PROBLEM = GivenProblem(Identity("reference"), None)


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """An algorithm that computes for some 70 ms, whatever the problem: with numbers one by one, and in large arrays.

    What runs on other cores slows down the latter most, since cores share caches and memory.  It takes so long that it
    is never sent together with short runs.
    """

    name: str = "reference"

    def run(self, problem: Problem, horizon: float, seed: int, /) -> Trajectory:
        """Compute, and return as the value for how many seconds it had a processor."""
        began = time.thread_time()
        for number in range(300_000):
            number * number % 7
        values = np.arange(250_000, dtype=np.float64)
        for _ in range(36):
            values = np.sqrt(values * values + 1.0)
        best = time.thread_time() - began
        return Trajectory(
            algorithm=self.name,
            instance=problem.identity.name,
            seed=seed,
            times=[horizon],
            best=[best],
            horizon=horizon,
        )
