"""A user's own ``yahpo_gym.BenchmarkSet``: any object with the same attributes; values come from its objective."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from polarbear_plugins.adapters.yahpo.encoding import Inactive
from polarbear_plugins.adapters.yahpo.files import Statistics, names_near
from polarbear_plugins.adapters.yahpo.problems import Axis, YahpoObjectivesProblem, YahpoProblem, budget_of
from polarbear_plugins.adapters.yahpo.scenarios import SCENARIOS, Description
from polarbear_plugins.adapters.yahpo.suites import build_problem, draw, identity_of
from polarbear_plugins.arrays import Float32Array
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.problems.spaces import (
    Categorical,
    Condition,
    Configuration,
    ConfigurationSpace,
    Float,
    Integer,
    Parameter,
    Value,
)

_NEEDS = ("config", "config_space", "instances", "objective_function")


class BenchmarkSetSuite:
    """The instances of a ``BenchmarkSet`` as a suite; if it has an instance set, that one alone.

    The object cannot be sent to another process, and so neither can the problems: race with ``workers=0``.

    Parameters
    ----------
    benchmark_set
        Has ``config``, ``config_space``, ``instances`` and ``objective_function``, as in yahpo_gym 1.0.
    target
        One target, or several.
    axis, inactive, replications
        As for :class:`YahpoSuite`.

    Examples
    --------
    >>> race("optuna-samplers", BenchmarkSetSuite(BenchmarkSet("lcbench")), ..., workers=0)  # doctest: +SKIP
    """

    def __init__(
        self,
        benchmark_set: Any,
        target: str | Sequence[str] | None = None,
        axis: Axis = "evaluations",
        inactive: Inactive = "refuse",
        replications: int = 1,
    ) -> None:
        self.replications = replications
        predictor = self._predictor = _BenchmarkSet(benchmark_set)
        self.name = f"yahpo_gym:{predictor.scenario}"
        targets = (predictor.description.target,) if target is None else target
        self._targets = (targets,) if isinstance(targets, str) else tuple(targets)
        for wanted in self._targets:
            if wanted not in predictor.description.targets:
                raise InvalidInputError(
                    f"{self.name} has no target {wanted!r}. {names_near(wanted, list(predictor.description.targets))}"
                )
        self._axis, self._inactive = axis, inactive
        #: How far a race on this suite goes unless the user says otherwise.
        self.budget = {"percent": 100.0, "evaluations": float(budget_of(predictor))}.get(axis)

    def identities(self, seed: int, /) -> Iterator[Identity]:
        """Draw each instance once."""
        scenario, instances = self._predictor.scenario, self._predictor.instances
        return draw([identity_of(scenario, instance, self._targets) for instance in instances], seed)

    def build(self, identity: Identity, /) -> YahpoProblem | YahpoObjectivesProblem:
        """Build the problem of an instance."""
        statistics = self._predictor.statistics if len(self._targets) > 1 or self._axis == "seconds" else {}
        return build_problem(identity, self._predictor, statistics, self._axis, self._inactive)


class _BenchmarkSet:
    """A ``BenchmarkSet`` as a :class:`Predictor`."""

    def __init__(self, benchmark_set: Any) -> None:
        missing = [name for name in _NEEDS if not hasattr(benchmark_set, name)]
        if missing:
            raise InvalidInputError(
                f"Expected a BenchmarkSet as in yahpo_gym; {type(benchmark_set).__name__} has no {missing[0]!r}."
            )
        self._set = benchmark_set
        config = benchmark_set.config
        self.scenario = str(config.config_id)
        self.description = _read_description(config, self.scenario)
        constants = dict(getattr(benchmark_set, "constants", {}))
        column = self.description.instance_column
        chosen = constants.pop(column, None)
        self.instances = tuple(map(str, benchmark_set.instances)) if chosen is None else (str(chosen),)
        complete = _read_space(benchmark_set.config_space)
        fidelities = self.description.fidelities
        self._constants: dict[str, Value] = constants
        self.fidelities: dict[str, Float | Integer] = {}
        for name in fidelities:
            parameter = complete.parameters.get(name)
            if not isinstance(parameter, Float | Integer):
                raise InvalidInputError(f"{self.scenario}: expected a range of the fidelity {name!r}.")
            self.fidelities[name] = parameter
        left_out = {column, *fidelities, *constants}
        self.space = ConfigurationSpace(
            {name: parameter for name, parameter in complete.parameters.items() if name not in left_out},
            [condition for condition in complete.conditions if condition.parent not in constants],
        )

    @property
    def statistics(self) -> Statistics:
        """Bounds of the targets, from ``target_stats``."""
        bounds: dict[tuple[str, str, str], dict[str, float]] = {}
        for row in self._set.target_stats.to_dict("records"):
            key = self.scenario, str(row["instance"]), str(row["metric"])
            bounds.setdefault(key, {})[str(row["statistic"])] = float(row["value"])
        return {key: (found["min"], found["max"]) for key, found in bounds.items() if len(found) == 2}

    def predict(
        self,
        configurations: Sequence[Configuration],
        instance: str,
        fidelities: Mapping[str, Value],
        inactive: Inactive = "refuse",
        /,
    ) -> Float32Array:
        """Values of the objective function of the object."""
        column = self.description.instance_column
        fixed = {**self._constants, **fidelities, **({} if column is None else {column: instance})}
        complete = []
        for configuration in configurations:
            if inactive == "drop":
                active = set(self.space.active(configuration))
                configuration = {name: value for name, value in configuration.items() if name in active}
            self.space.check(configuration)
            complete.append({**configuration, **fixed})
        found = self._set.objective_function(complete)
        targets = self.description.targets
        return np.array([[row.get(name, math.nan) for name in targets] for row in found], dtype=np.float32)


def _read_description(config: Any, scenario: str) -> Description:
    """Description of one of the 14 scenarios, or of another one from the configuration of the object."""
    if scenario in SCENARIOS:
        return SCENARIOS[scenario]
    targets = tuple(config.y_names)
    runtime = getattr(config, "runtime_name", None)
    minimize = getattr(config, "y_minimize", None) or [True] * len(targets)
    return Description(
        numbers=tuple(getattr(config, "cont_names", ())),
        categories=tuple(getattr(config, "cat_names", ())),
        targets=targets,
        maximized=frozenset(name for name, least in zip(targets, minimize, strict=True) if not least),
        target=next((name for name in targets if name != runtime), targets[0]),
        runtime=runtime if runtime in targets else None,
        fidelities=tuple(config.fidelity_params),
        instance_column=config.instance_names,
    )


def _read_space(config_space: Any) -> ConfigurationSpace:
    """Read a configuration space of the package ConfigSpace, of versions below 1 or from 1 on."""
    old = hasattr(config_space, "get_hyperparameters")
    parameters = {
        entry.name: _read_parameter(entry)
        for entry in (config_space.get_hyperparameters() if old else config_space.values())
    }
    conditions = [
        condition
        for entry in (config_space.get_conditions() if old else config_space.conditions)
        for condition in _read_conditions(entry)
    ]
    return ConfigurationSpace(parameters, conditions)


def _read_parameter(entry: Any) -> Parameter:
    if hasattr(entry, "choices"):
        return Categorical(tuple(entry.choices))
    if hasattr(entry, "lower"):
        log = bool(getattr(entry, "log", False))
        if "Integer" in type(entry).__name__:
            return Integer(int(entry.lower), int(entry.upper), log=log)
        return Float(float(entry.lower), float(entry.upper), log=log)
    if hasattr(entry, "value"):
        return Categorical((entry.value,))
    raise InvalidInputError(f"The parameter {entry.name!r} is of the unknown kind {type(entry).__name__}.")


def _read_conditions(entry: Any) -> list[Condition]:
    if hasattr(entry, "components"):
        if "And" not in type(entry).__name__:
            raise InvalidInputError(f"A condition is of the unknown kind {type(entry).__name__}.")
        return [condition for part in entry.components for condition in _read_conditions(part)]
    if hasattr(entry, "values"):
        return [Condition(entry.child.name, entry.parent.name, tuple(entry.values))]
    if "Equals" in type(entry).__name__ and "Not" not in type(entry).__name__:
        return [Condition(entry.child.name, entry.parent.name, (entry.value,))]
    raise InvalidInputError(f"A condition is of the unknown kind {type(entry).__name__}.")
