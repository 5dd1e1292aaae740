"""Recording a run: counting evaluations, seconds or costs, ending it at its horizon, and its trajectory."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.checks import as_choice, as_number, as_vector
from polarbear_plugins.errors import InvalidInputError, PolarBearError
from polarbear_plugins.trajectories.trajectory import Trajectory

#: What time can mean for an algorithm that evaluates an objective.
AXES = ("evaluations", "seconds")

Objective: TypeAlias = Callable[[Any], float]


class HorizonReached(Exception):  # noqa: N818 - not an error: runs end this way
    """Raised through the algorithm after its last evaluation."""


class Recorder:
    """Records the evaluations of one run, and ends the run at its horizon.

    On the axis of evaluations a run ends after exactly ``horizon`` evaluations.  On the axis of seconds the clock
    starts when the recorder is created; the evaluation during which the time runs out is the last one, and does not
    count.

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
        self.horizon = as_number(horizon, "horizon", at_least=0)
        self._times: list[float] = []
        self._best: list[float] = []
        self._failed = 0
        self._began = time.perf_counter()

    @property
    def over(self) -> bool:
        """Whether the horizon leaves no room for a first evaluation."""
        return self.horizon < 1 if self.axis == "evaluations" else self.horizon <= 0

    def watch(self, evaluate: Objective) -> Objective:
        """The objective for the algorithm to call instead of ``evaluate``.

        The overhead is about 0.1 microseconds a call, 0.2 on the axis of seconds: cheap objectives take no more than
        two microseconds, and are evaluated millions of times.
        """
        # Resuming a generator is cheaper than calling a function, and a range is the cheapest counter.
        loop = self._counted(evaluate) if self.axis == "evaluations" else self._timed(evaluate)
        next(loop)
        return loop.send

    def trajectory(self, *, algorithm: str, instance: str, seed: int) -> Trajectory:
        """Trajectory of what was recorded, watched until the horizon.

        :raises PolarBearError: no evaluation gave a value, and some gave ``nan``.
        """
        if self._failed and not self._best:
            raise PolarBearError(f"{algorithm!r} on {instance!r} found nothing: {self._failed} evaluations gave nan.")
        times, best = np.array(self._times, dtype=np.float64), np.array(self._best, dtype=np.float64)
        if self.axis == "seconds":
            times -= self._began
            # A coarse clock may repeat a time: the later value is better.
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
    return str(as_choice(axis, AXES, "axis"))


# Costs such as 100/126 add up to the horizon only approximately.
_ROUNDING = 1e-9


class Charges:
    """Costs and values of the evaluations of one run.

    An evaluation that would end after the horizon does not count, and ends the run.

    Parameters
    ----------
    horizon
        Where the run ends, in units of cost.

    Examples
    --------
    >>> charges = Charges(2)
    >>> [charges.pay(0.5, 7.0), charges.pay(1.0, 3.0), charges.pay(1.0, 1.0)]
    [True, True, False]
    >>> charges.trajectory(algorithm="a", instance="f", seed=0)
    Trajectory(algorithm='a', instance='f', seed=0, 2 steps to 3 at time 1.5, watched until 2)
    """

    def __init__(self, horizon: float) -> None:
        self.horizon = as_number(horizon, "horizon", at_least=0)
        self.spent = 0.0
        self._times: list[float] = []
        self._values: list[float] = []

    def room(self, cost: float = 0.0) -> bool:
        """Whether the budget is not used up and suffices for an evaluation of that cost."""
        return self.spent < self.horizon * (1 - _ROUNDING) and self.spent + cost <= self.horizon * (1 + _ROUNDING)

    def pay(self, cost: float, value: float = math.nan) -> bool:
        """Charge an evaluation; false if it would end after the horizon.

        Parameters
        ----------
        cost
            Positive.
        value
            Its value; ``nan`` if it failed, or if its value does not count because of its lower fidelity.
        """
        if not 0 < cost < math.inf:
            raise InvalidInputError(f"The cost of an evaluation must be a positive number, got {cost!r}.")
        if not self.room(cost):
            return False
        self.spent += cost
        self._times.append(min(self.spent, self.horizon))
        self._values.append(value)
        return True

    def with_values(self, values: ArrayLike) -> Charges:
        """The same evaluations with other values, such as the joint value of several objectives."""
        other = Charges(self.horizon)
        other.spent, other._times = self.spent, list(self._times)
        other._values = as_vector(values, "values of the evaluations").tolist()
        return other

    def trajectory(self, *, algorithm: str, instance: str, seed: int) -> Trajectory:
        """Trajectory of the values, watched until the horizon."""
        return Trajectory.from_evaluations(
            self._values, times=self._times, algorithm=algorithm, instance=instance, seed=seed, horizon=self.horizon
        )
