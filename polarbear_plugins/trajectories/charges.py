"""Problems whose evaluations differ in what they cost: by their fidelity, or by the time that each of them takes.

An algorithm that knows these protocols keeps an account of what it has spent, so that cheap looks at a configuration
and full evaluations share one time axis.
"""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

from numpy.typing import ArrayLike

from polarbear_plugins.checks import as_number, as_vector
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.problems.protocols import Problem
from polarbear_plugins.problems.spaces import Configuration, ConfigurationSpace
from polarbear_plugins.trajectories.trajectory import Trajectory

__all__ = ["ChargedProblem", "Charges", "ObjectivesProblem"]

# Costs such as 100/126 add up to the horizon only nearly.
_ROUNDING = 1e-9


@runtime_checkable
class ChargedProblem(Problem, Protocol):
    """A problem over a configuration space whose evaluations have fidelities and costs.

    It is a :class:`~polarbear_plugins.problems.protocols.SpaceProblem` too: ``evaluate`` is the value at full fidelity.
    """

    @property
    def space(self) -> ConfigurationSpace:
        """Parameters and conditions."""
        ...

    @property
    def least_fidelity(self) -> float:
        """Smallest fidelity; the full one is 1.  It is 1 for a problem that has no other."""
        ...

    def measure(self, configuration: Configuration, fidelity: float = 1.0, /) -> tuple[float, float]:
        """Value to be minimised, and the cost of this evaluation on the time axis of the problem."""
        ...


@runtime_checkable
class ObjectivesProblem(Problem, Protocol):
    """A problem over a configuration space with several objectives."""

    @property
    def space(self) -> ConfigurationSpace:
        """Parameters and conditions."""
        ...

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of the objectives."""
        ...

    def measure_objectives(self, configuration: Configuration, /) -> tuple[tuple[float, ...], float]:
        """Values to be minimised, scaled such that 0 and 1 are the bounds of each; and the cost of this evaluation."""
        ...


class Charges:
    """The account of one run: what each evaluation cost, and what it found.

    An evaluation that would end after the horizon is never finished: it does not count, and the run is over.

    Parameters
    ----------
    horizon
        Where the run ends, in units of the costs.

    Examples
    --------
    >>> charges = Charges(2)
    >>> [charges.pay(0.5, 7.0), charges.pay(1.0, 3.0), charges.pay(1.0, 1.0)]
    [True, True, False]
    >>> charges.trajectory(algorithm="a", instance="f", seed=0)
    Trajectory(algorithm='a', instance='f', seed=0, 2 steps to 3 at time 1.5, watched until 2)
    """

    def __init__(self, horizon: float) -> None:
        self.horizon = as_number(horizon, "horizon")
        if self.horizon < 0:
            raise InvalidInputError(f"horizon: expected a number of at least 0, got {self.horizon:g}.")
        self.spent = 0.0
        self._times: list[float] = []
        self._values: list[float] = []

    def room(self, cost: float = 0.0) -> bool:
        """Tell whether something is left, and enough for an evaluation of that cost."""
        return self.spent < self.horizon * (1 - _ROUNDING) and self.spent + cost <= self.horizon * (1 + _ROUNDING)

    def pay(self, cost: float, value: float = math.nan) -> bool:
        """Charge an evaluation; false if it would not be finished in time.

        Parameters
        ----------
        cost
            More than 0.
        value
            What it found; ``nan`` if it failed, or was a look at lower fidelity whose value does not count.
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
        """Make the account with other values of the same evaluations, for objectives that count together."""
        other = Charges(self.horizon)
        other.spent, other._times = self.spent, list(self._times)
        other._values = as_vector(values, "values of the evaluations").tolist()
        return other

    def trajectory(self, *, algorithm: str, instance: str, seed: int) -> Trajectory:
        """Make the trajectory of the values, watched until the horizon."""
        return Trajectory.from_evaluations(
            self._values, times=self._times, algorithm=algorithm, instance=instance, seed=seed, horizon=self.horizon
        )
