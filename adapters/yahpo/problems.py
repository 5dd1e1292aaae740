"""A configuration space on an instance of a scenario, as a problem that algorithms run on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

import numpy as np

from polarbear_plugins.adapters.yahpo.encoding import Inactive
from polarbear_plugins.adapters.yahpo.files import Statistics
from polarbear_plugins.adapters.yahpo.scenarios import Description
from polarbear_plugins.arrays import Float32Array, FloatArray
from polarbear_plugins.checks import as_number
from polarbear_plugins.errors import InvalidInputError, SourceError
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.problems.spaces import Configuration, ConfigurationSpace, Float, Integer, Value

#: Units of time: full evaluations and fractions of them, percent of the paper's budget, predicted seconds.
Axis: TypeAlias = Literal["evaluations", "percent", "seconds"]
AXES: tuple[Axis, ...] = ("evaluations", "percent", "seconds")

# Predicted times can be tiny or negative far from the observations; no training counts as faster than this.
_LEAST_SECONDS = 1e-3


class Predictor(Protocol):
    """Predicts the targets of configurations: a surrogate, or a user's ``BenchmarkSet``."""

    scenario: str
    description: Description
    space: ConfigurationSpace
    fidelities: dict[str, Float | Integer]
    instances: tuple[str, ...]

    def predict(
        self,
        configurations: Sequence[Configuration],
        instance: str,
        fidelities: dict[str, Value],
        inactive: Inactive = "refuse",
        /,
    ) -> Float32Array:
        """``values[configuration, target]``."""
        ...


def full_budget(dimension: int) -> int:
    """Full evaluations that the authors of YAHPO Gym propose for a space with ``dimension`` parameters.

    The formula gives every budget in Tables 3 and 4 of the paper but that of ``nb301``, which :func:`budget_of` knows.

    >>> full_budget(7), full_budget(38)
    (126, 267)
    """
    return math.ceil(20 + 40 * math.sqrt(dimension))


def budget_of(predictor: Predictor) -> int:
    """Full evaluations that the authors propose for a scenario."""
    return predictor.description.budget or full_budget(len(predictor.space.parameters))


class _InstanceProblem:
    """Common base of problems with one and with several objectives."""

    def __init__(
        self,
        identity: Identity,
        predictor: Predictor,
        instance: str,
        statistics: Statistics,
        axis: Axis,
        inactive: Inactive,
    ) -> None:
        self.identity = identity
        self.instance = instance
        self.space = predictor.space
        self.axis = axis
        self._predictor, self._inactive = predictor, inactive
        self._description = predictor.description
        self._places = {name: place for place, name in enumerate(self._description.targets)}
        #: The budget that the authors propose, in full evaluations.
        self.budget = budget_of(predictor)
        self._varied = next(iter(predictor.fidelities))
        self._range = predictor.fidelities[self._varied]
        self._full: dict[str, Value] = {name: parameter.upper for name, parameter in predictor.fidelities.items()}
        self.least_fidelity = float(self._range.lower / self._range.upper)
        self._runtime_place = None
        self._least_seconds = _LEAST_SECONDS
        if axis == "seconds":
            runtime = self._description.runtime
            if runtime is None:
                raise InvalidInputError(
                    f"{identity.name}: seconds need a target that is the time of training, and this scenario has none."
                )
            self._runtime_place = self._places[runtime]
            least = statistics.get((predictor.scenario, instance, runtime), (0.0, 0.0))[0]
            self._least_seconds = max(least * self.least_fidelity, _LEAST_SECONDS)

    def _fidelities_at(self, fidelity: float) -> tuple[dict[str, Value], float]:
        """Fidelities of the surrogate for a share of the full one, and that share after rounding."""
        if fidelity == 1:
            return self._full, 1.0
        share = as_number(fidelity, f"{self.identity.name}: fidelity")
        if not self.least_fidelity * (1 - 1e-9) <= share <= 1:
            raise InvalidInputError(
                f"{self.identity.name}: expected a fidelity from {self.least_fidelity:g} to 1, got {share:g}: "
                f"the share of {self._varied} = {self._range.upper}."
            )
        value: float = share * self._range.upper
        if isinstance(self._range, Integer):
            value = round(value)
        value = max(value, self._range.lower)
        return {**self._full, self._varied: value}, value / self._range.upper

    def _cost(self, values: Float32Array, share: float) -> float:
        if self._runtime_place is not None:
            seconds = float(values[self._runtime_place])
            return seconds if seconds > self._least_seconds else self._least_seconds
        return share if self.axis == "evaluations" else 100 * share / self.budget


class YahpoProblem(_InstanceProblem):
    """Minimise a target on an instance; a target to be maximised is negated.

    Parameters
    ----------
    predictor
        A surrogate, or another object that predicts targets.
    instance, target
        Names.
    statistics
        Bounds of the targets, for the least time that an evaluation takes.
    axis
        What an evaluation costs: its fidelity (``evaluations``), the same in ``percent`` of the paper's budget, or the
        predicted ``seconds`` of training.
    inactive
        Whether a parameter that is set but not active is refused, or dropped.
    """

    def __init__(
        self,
        identity: Identity,
        predictor: Predictor,
        instance: str,
        target: str,
        statistics: Statistics,
        axis: Axis = "evaluations",
        inactive: Inactive = "refuse",
    ) -> None:
        super().__init__(identity, predictor, instance, statistics, axis, inactive)
        self.target = target
        self._place = self._places[target]
        self._sign = -1.0 if target in self._description.maximized else 1.0

    def evaluate(self, configuration: Configuration, /) -> float:
        """Value at full fidelity."""
        values = self._predictor.predict([configuration], self.instance, self._full, self._inactive)
        return self._sign * float(values[0, self._place])

    def evaluate_many(self, configurations: Sequence[Configuration], /) -> FloatArray:
        """Values of many configurations in one batch; they differ from those of :meth:`evaluate` in the last digits."""
        values = self._predictor.predict(configurations, self.instance, self._full, self._inactive)
        return self._sign * values[:, self._place].astype(np.float64)

    def measure(self, configuration: Configuration, fidelity: float = 1.0, /) -> tuple[float, float]:
        """Value at a share of the full fidelity, and what it costs."""
        fidelities, share = self._fidelities_at(fidelity)
        values = self._predictor.predict([configuration], self.instance, fidelities, self._inactive)[0]
        return self._sign * float(values[self._place]), self._cost(values, share)


class YahpoObjectivesProblem(_InstanceProblem):
    """Minimise several targets on an instance, scaled by their bounds in the global statistics.

    :raises SourceError: the statistics have no bounds for a target.
    """

    def __init__(
        self,
        identity: Identity,
        predictor: Predictor,
        instance: str,
        targets: Sequence[str],
        statistics: Statistics,
        axis: Axis = "evaluations",
        inactive: Inactive = "refuse",
    ) -> None:
        super().__init__(identity, predictor, instance, statistics, axis, inactive)
        self.objectives = tuple(targets)
        self._columns = [self._places[name] for name in targets]
        bounds = []
        for name in targets:
            found = statistics.get((predictor.scenario, instance, name))
            if found is None or not found[0] < found[1]:
                raise SourceError(
                    f"{identity.name}: the hypervolume needs the bounds of {name!r}, and "
                    "global_statistics/instance_target_statistics.csv does not have them."
                )
            bounds.append(found if name not in self._description.maximized else found[::-1])
        ideal, worst = np.array(bounds).T
        self._ideal, self._span = ideal, worst - ideal

    def measure_objectives(self, configuration: Configuration, /) -> tuple[tuple[float, ...], float]:
        """Scaled values at full fidelity, and what they cost."""
        values = self._predictor.predict([configuration], self.instance, self._full, self._inactive)[0]
        scaled = (values[self._columns] - self._ideal) / self._span
        return tuple(scaled.tolist()), self._cost(values, 1.0)
