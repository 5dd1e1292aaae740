"""SMAC3 as algorithms that race on boxes and configuration spaces: an evaluation is a trial, by ask and tell."""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.extras import require
from polarbear_plugins.options import names, read_options
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.problems.protocols import (
    Algorithm,
    BoxProblem,
    ChargedProblem,
    ObjectivesProblem,
    Problem,
    SpaceProblem,
    refusal,
)
from polarbear_plugins.problems.spaces import Categorical, ConfigurationSpace, Float, Integer, Parameter, Value
from polarbear_plugins.trajectories.recording import Charges
from polarbear_plugins.trajectories.trajectory import Trajectory

_WHO = "The portfolio 'smac'"
NAMES = ("smac", "smac-hb")

Evaluate: TypeAlias = Callable[[Mapping[str, Any], float], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class SmacAlgorithm:
    """A facade of SMAC3 with its default settings; each run is an optimisation of its own.

    ``smac`` is the facade for hyperparameter optimisation, with random forests, and evaluates fully.  ``smac-hb`` is
    the multi-fidelity facade, which lets Hyperband choose the fidelities; values at a low fidelity do not enter the
    trajectory.

    Parameters
    ----------
    name
        ``smac`` or ``smac-hb``.
    """

    name: str
    plans_by_horizon: ClassVar[bool] = True  # the number of trials decides how many of them are the initial design

    def refuses(self, problem: Problem, /) -> str | None:
        """Why it cannot run on the problem, if it cannot."""
        if isinstance(problem, ObjectivesProblem):
            return "it takes one objective"
        if self.name == "smac-hb":
            fidelities = isinstance(problem, ChargedProblem) and problem.least_fidelity < 1
            return None if fidelities else "it needs a problem with fidelities"
        if isinstance(problem, BoxProblem | SpaceProblem | ChargedProblem):
            return None
        return "it runs on boxes and configuration spaces, and the problem is neither"

    def run(self, problem: Problem, horizon: float, seed: int, /) -> Trajectory:
        """Run trials until the horizon; an evaluation that is ``nan`` is a crashed trial, told as the worst value."""
        why = self.refuses(problem)
        if why is not None:
            raise refusal(self, problem, why)
        space, evaluate, least = _as_task(problem)
        charges = Charges(horizon)
        # SMAC wants a folder, in which nothing is saved.  Hyperband averages over instances, of which there are none.
        # Its forests would start a thread for each core, while a race runs as many algorithms at a time.
        joblib = require("joblib", extra="smac", who=_WHO)
        with (
            tempfile.TemporaryDirectory(prefix="polarbear-smac-") as folder,
            joblib.parallel_config("sequential"),
            warnings.catch_warnings(),
        ):
            warnings.filterwarnings("ignore", "Mean of empty slice|invalid value encountered", RuntimeWarning)
            trials = _Trials(self._make_optimizer(space, problem, horizon, seed, folder), evaluate, charges)
            while charges.room(least) and trials.run_next():
                pass
        return charges.trajectory(algorithm=self.name, instance=problem.identity.name, seed=seed)

    def _make_optimizer(
        self, space: ConfigurationSpace, problem: Problem, horizon: float, seed: int, folder: str
    ) -> Any:
        smac = require("smac", extra="smac", who=_WHO)
        options = {"deterministic": True, "seed": seed % 2**31, "output_directory": folder}
        given, trials = encode_space(space), _expected_trials(problem, space, horizon)
        if self.name == "smac":
            facade, scenario = smac.HyperparameterOptimizationFacade, smac.Scenario(given, n_trials=trials, **options)
            return _optimizer(facade, scenario)
        least = problem.least_fidelity  # type: ignore[attr-defined]
        scenario = smac.Scenario(given, n_trials=trials, min_budget=least, max_budget=1.0, **options)
        return _optimizer(smac.MultiFidelityFacade, scenario)


def _optimizer(facade: Any, scenario: Any) -> Any:
    maximizer = facade.get_acquisition_maximizer(scenario)
    # SMAC begins its local searches in the order of a set of configurations, which hash their texts: without an order
    # of their own, a run would differ from process to process.
    search = maximizer._local_search
    starts = search._get_init_points_from_previous_configs
    search._get_init_points_from_previous_configs = lambda *given: sorted(starts(*given), key=repr)
    return facade(scenario, None, acquisition_maximizer=maximizer, overwrite=True, logging_level=False)


@hookimpl
def polarbear_portfolio(name: str, options: Mapping[str, object]) -> Sequence[Algorithm] | None:
    """smac: SMAC3; option algorithms=smac,smac-hb."""
    if name != "smac":
        return None
    return smac_portfolio(read_options(options, {"algorithms": names}, _WHO).get("algorithms"))


def smac_portfolio(chosen: Sequence[str] | None = None) -> tuple[SmacAlgorithm, ...]:
    """Algorithms of SMAC3 by their names, all by default."""
    require("smac", extra="smac", who=_WHO)
    unknown = [name for name in chosen or () if name not in NAMES]
    if unknown:
        raise InvalidInputError(f"{_WHO} has no algorithm {unknown[0]!r}. It has {', '.join(NAMES)}.")
    return tuple(SmacAlgorithm(name) for name in chosen or NAMES)


def _expected_trials(problem: Problem, space: ConfigurationSpace, horizon: float) -> int:
    """Number of full evaluations that a run may take, by which SMAC sizes its initial design.

    What an evaluation costs is known only afterwards, if the problem has costs of its own: then what YAHPO Gym
    proposes for the space.
    """
    proposed = math.ceil(20 + 40 * math.sqrt(len(space.parameters)))
    return proposed if isinstance(problem, ChargedProblem) else max(1, math.floor(horizon))


class _Trials:
    """Trials of a run, carried out one after the other."""

    def __init__(self, optimizer: Any, evaluate: Evaluate, charges: Charges) -> None:
        self.optimizer, self.evaluate, self.charges = optimizer, evaluate, charges
        self.worst: float | None = None
        self.failed: list[Any] = []

    def run_next(self) -> bool:
        """Carry out the next trial; false if the horizon is reached or all configurations have been evaluated."""
        try:
            trial = self.optimizer.ask()
        except StopIteration:
            return False
        fidelity = 1.0 if trial.budget is None else float(trial.budget)
        value, cost = self.evaluate(trial.config, fidelity)
        if not self.charges.pay(cost, value if fidelity == 1 else math.nan):
            return False
        if math.isnan(value):
            self.failed.append(trial)
        else:
            self.worst = value if self.worst is None else max(self.worst, value)
            self._tell(trial, value)
        self._tell_failed()
        return True

    def _tell_failed(self) -> None:
        """Failed trials count as the worst value so far, and wait for one: SMAC's model takes finite numbers only."""
        while self.failed and self.worst is not None:
            self._tell(self.failed.pop(0), self.worst, failed=True)

    def _tell(self, trial: Any, value: float, *, failed: bool = False) -> None:
        history = require("smac.runhistory", extra="smac", who=_WHO)
        status = history.StatusType.CRASHED if failed else history.StatusType.SUCCESS
        self.optimizer.tell(trial, history.TrialValue(cost=value, status=status), save=False)


def _as_task(problem: Any) -> tuple[ConfigurationSpace, Evaluate, float]:
    """Space of a problem, how to evaluate a configuration of SMAC at a fidelity, and the least cost."""
    if isinstance(problem, BoxProblem):
        bounds = zip(problem.lower, problem.upper, strict=True)
        box = ConfigurationSpace({f"x{k}": Float(float(low), float(high)) for k, (low, high) in enumerate(bounds)})
        return box, lambda point, _: (float(problem.evaluate(list(decode(point, box).values()))), 1.0), 1.0
    space: ConfigurationSpace = problem.space
    if isinstance(problem, ChargedProblem):
        return space, lambda point, fidelity: problem.measure(decode(point, space), fidelity), 0.0
    return space, lambda point, _: (float(problem.evaluate(decode(point, space))), 1.0), 1.0


def encode_space(space: ConfigurationSpace) -> Any:
    """The same space for ConfigSpace, with choices by their positions: it does not distinguish ``1`` and ``True``."""
    library = require("ConfigSpace", extra="smac", who=_WHO)
    encoded = library.ConfigurationSpace()
    encoded.add([_encode(library, name, parameter) for name, parameter in space.parameters.items()])
    for child in dict.fromkeys(condition.child for condition in space.conditions):
        conditions = [
            library.InCondition(
                encoded[child], encoded[condition.parent], _codes(space.parameters[condition.parent], condition.values)
            )
            for condition in space.conditions
            if condition.child == child
        ]
        encoded.add(conditions[0] if len(conditions) == 1 else library.AndConjunction(*conditions))
    return encoded


def _encode(library: Any, name: str, parameter: Parameter) -> Any:
    if isinstance(parameter, Categorical):
        return library.CategoricalHyperparameter(name, list(range(len(parameter.choices))))
    if parameter.lower == parameter.upper:
        return library.CategoricalHyperparameter(name, [0])
    kind = (
        library.UniformIntegerHyperparameter if isinstance(parameter, Integer) else library.UniformFloatHyperparameter
    )
    return kind(name, parameter.lower, parameter.upper, log=parameter.log)


def _codes(parent: Parameter, values: Sequence[Value]) -> list[Value]:
    return [parent.choices.index(value) for value in values] if isinstance(parent, Categorical) else list(values)


def decode(point: Mapping[str, Any], space: ConfigurationSpace) -> dict[str, Value]:
    """Configuration of a point of ConfigSpace; its inactive parameters are missing."""
    return {name: _decode(point[name], parameter) for name, parameter in space.parameters.items() if name in point}


def _decode(value: Any, parameter: Parameter) -> Value:
    if isinstance(parameter, Categorical):
        return parameter.choices[int(value)]
    if parameter.lower == parameter.upper:
        return parameter.lower
    if isinstance(parameter, Integer):
        return int(value)
    return min(max(float(value), parameter.lower), parameter.upper)  # rounding may leave the range
