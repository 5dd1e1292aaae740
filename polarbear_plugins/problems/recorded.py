"""A problem that keeps every vector of objectives evaluated on it, for an analysis when all runs have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from polarbear_plugins.problems.protocols import Identity, ObjectivesProblem
from polarbear_plugins.problems.spaces import Configuration, ConfigurationSpace
from polarbear_plugins.trajectories.columns import ROLES

if TYPE_CHECKING:
    import pandas as pd

# Costs such as 100/126 add up to the horizon only approximately.
_ROUNDING = 1e-9


class RecordedObjectives:
    """A problem that hands everything to another one, and remembers the values and costs of the evaluations.

    Wrap a problem for each run, run an algorithm on it, and take its :meth:`table`: a row for each evaluation, which
    :func:`polarbear_plugins.read_trajectories` reads with the option ``objectives``.

    Parameters
    ----------
    problem
        A problem with several objectives.
    """

    def __init__(self, problem: ObjectivesProblem) -> None:
        self._problem = problem
        self._values: list[tuple[float, ...]] = []
        self._costs: list[float] = []

    @property
    def identity(self) -> Identity:
        """Identity of the problem."""
        return self._problem.identity

    @property
    def space(self) -> ConfigurationSpace:
        """Space of the problem."""
        return self._problem.space

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of the objectives."""
        return self._problem.objectives

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the objectives in the table: their names, ``time_objective`` for one called as another column."""
        return tuple(f"{name}_objective" if name in ROLES else name for name in self.objectives)

    def measure_objectives(self, configuration: Configuration, /) -> tuple[tuple[float, ...], float]:
        """Values and cost, as the problem gives them."""
        values, cost = self._problem.measure_objectives(configuration)
        self._values.append(values)
        self._costs.append(cost)
        return values, cost

    def table(self, *, algorithm: str, seed: int, horizon: float) -> pd.DataFrame:
        """The evaluations that ended by the horizon; a column for each objective, as the problem gives it."""
        import pandas as pd

        times = np.cumsum(self._costs)
        inside = times <= horizon * (1 + _ROUNDING)
        identity = self.identity
        labels = {"algorithm": algorithm, "instance": identity.name}
        labels |= {} if identity.group is None else {"group": identity.group}
        values = np.array(self._values, dtype=np.float64).reshape(-1, len(self.objectives))[inside].T
        return pd.DataFrame(
            {
                **{name: [label] * int(inside.sum()) for name, label in labels.items()},
                "seed": seed,
                "time": np.minimum(times[inside], horizon),
                **dict(zip(self.columns, values, strict=True)),
                "horizon": horizon,
            }
        )
