"""Recording a run while it lasts: count its evaluations or its seconds, end it, and make its trajectory."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

import numpy as np

from polarbear_plugins.checks import as_number, short
from polarbear_plugins.errors import InvalidInputError, PolarBearError
from polarbear_plugins.trajectories.trajectory import Trajectory

__all__ = ["AXES", "HorizonReached", "Recorder", "as_axis"]

#: What time can be for an algorithm that evaluates an objective.
AXES = ("evaluations", "seconds")

Objective: TypeAlias = Callable[[Any], float]


class HorizonReached(Exception):  # noqa: N818 - no error: it is how a run ends
    """Raised through the algorithm after its last evaluation."""


class Recorder:
    """Watches the evaluations of one run, and ends the run at its horizon.

    On the axis of evaluations a run ends after evaluation number ``horizon``, not one more.  On the axis of seconds the
    clock starts when the recorder is made; the evaluation during which the time runs out is the last one, and does
    not count.

    Parameters
    ----------
    axis
        ``evaluations`` or ``seconds`` of wall-clock time.
    horizon
        Where the run ends.

    Examples
    --------
    >>> recorder = Recorder("evaluations", 3)
    >>> objective = recorder.watch(abs)
    >>> try:
    ...     for x in range(-5, 5):
    ...         value = objective(x)
    ... except HorizonReached:
    ...     print(recorder.trajectory(algorithm="walk", instance="abs", seed=0))
    Trajectory(algorithm='walk', instance='abs', seed=0, 3 steps to 3 at time 3, watched until 3)
    """

    def __init__(self, axis: str, horizon: float) -> None:
        self.axis = as_axis(axis)
        self.horizon = as_number(horizon, "horizon")
        if self.horizon < 0:
            raise InvalidInputError(f"horizon: expected a number of at least 0, got {self.horizon:g}.")
        self._times: list[float] = []
        self._best: list[float] = []
        self._failed = 0
        self._began = time.perf_counter()

    @property
    def over(self) -> bool:
        """Whether the horizon leaves no room for a first evaluation."""
        return self.horizon < 1 if self.axis == "evaluations" else self.horizon <= 0

    def watch(self, evaluate: Objective) -> Objective:
        """Make the objective that the algorithm calls instead of ``evaluate``.

        It costs about a tenth of a microsecond a call, two tenths on the axis of seconds: cheap objectives take no
        more than two microseconds, and are evaluated millions of times.
        """
        # A generator, since resuming one is cheaper than calling a function, and a range is the cheapest counter.
        loop = self._counted(evaluate) if self.axis == "evaluations" else self._timed(evaluate)
        next(loop)
        return loop.send

    def trajectory(self, *, algorithm: str, instance: str, seed: int) -> Trajectory:
        """Make the trajectory of what was recorded, watched until the horizon.

        :raises PolarBearError: no evaluation gave a value, and some gave ``nan``.
        """
        if self._failed and not self._best:
            raise PolarBearError(f"{algorithm!r} on {instance!r} found nothing: {self._failed} evaluations gave nan.")
        times, best = np.array(self._times, dtype=np.float64), np.array(self._best, dtype=np.float64)
        if self.axis == "seconds":
            times -= self._began
            # A coarse clock may show the same time twice: the later value is the better one.
            kept = (times <= self.horizon) & np.append(times[1:] > times[:-1], [True] * bool(times.size))
            times, best = times[kept], best[kept]
        return Trajectory(
            algorithm=algorithm, instance=instance, seed=seed, times=times, best=best, horizon=self.horizon
        )

    def _counted(self, evaluate: Objective) -> Generator[float, Any, None]:
        best, value = math.inf, math.nan
        for evaluations in range(1, math.floor(self.horizon) + 1):
            x = yield value
            value = evaluate(x)
            if not value >= best:
                best = self._improve(evaluations, value, best)
        raise HorizonReached

    def _timed(self, evaluate: Objective) -> Generator[float, Any, None]:
        best, value = math.inf, math.nan
        clock, end = time.perf_counter, self._began + self.horizon
        while True:
            x = yield value
            value = evaluate(x)
            now = clock()
            if not value >= best:
                best = self._improve(now, value, best)
            if now >= end:
                raise HorizonReached

    def _improve(self, now: float, value: float, best: float) -> float:
        if value < best:
            self._times.append(now)
            self._best.append(value)
            return value
        self._failed += 1
        return best


def as_axis(axis: object) -> str:
    """Check the name of an axis."""
    if axis not in AXES:
        raise InvalidInputError(f"axis: expected {' or '.join(AXES)}, got {short(axis)}.")
    return str(axis)
