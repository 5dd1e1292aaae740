"""Optuna's samplers as algorithms that race on boxes and configuration spaces: an evaluation is a trial."""

from __future__ import annotations

import importlib.util
import math
import multiprocessing
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polarbear_plugins.errors import InvalidInputError, MissingExtraError, PolarBearWarning
from polarbear_plugins.extras import require
from polarbear_plugins.integrations.optuna_portfolio.suggesting import NO_POINTS, POINTS, make_suggest, silence_optuna
from polarbear_plugins.problems.protocols import (
    BoxProblem,
    ChargedProblem,
    ObjectivesProblem,
    Problem,
    refusal,
)
from polarbear_plugins.problems.spaces import Categorical, ConfigurationSpace
from polarbear_plugins.trajectories.hypervolume import undominated_volume
from polarbear_plugins.trajectories.recording import Charges
from polarbear_plugins.trajectories.trajectory import Trajectory

_WHO = "The portfolio 'optuna-samplers'"


def _tpe_multivariate(samplers: Any, seed: int) -> Any:
    # With groups, so that the parameters of each branch of a conditional space are modelled together, too.
    return samplers.TPESampler(multivariate=True, group=True, seed=seed)


def _qmc(samplers: Any, seed: int) -> Any:
    return samplers.QMCSampler(scramble=True, seed=seed)


# From the samplers of Optuna and a seed to a sampler with Optuna's default settings.
_SAMPLERS: dict[str, Callable[[Any, int], Any]] = {
    "random": lambda samplers, seed: samplers.RandomSampler(seed=seed),
    "qmc": _qmc,
    "tpe": lambda samplers, seed: samplers.TPESampler(seed=seed),
    "tpe-multivariate": _tpe_multivariate,
    "cma-es": lambda samplers, seed: samplers.CmaEsSampler(seed=seed),
    "gp": lambda samplers, seed: samplers.GPSampler(seed=seed),
    "nsga-ii": lambda samplers, seed: samplers.NSGAIISampler(seed=seed),
}
_NEEDS = {"cma-es": "cmaes", "gp": "torch"}

NAMES = tuple(_SAMPLERS)


@dataclass(frozen=True, slots=True)
class SamplerAlgorithm:
    """A sampler of Optuna; each run is a study of its own, in memory, with ask and tell."""

    name: str

    def refuses(self, problem: Problem, /) -> str | None:
        """Why the sampler cannot run on a problem; ``None`` if it can."""
        if not isinstance(problem, POINTS):
            return NO_POINTS
        if self.name == "cma-es":
            if isinstance(problem, ObjectivesProblem):
                return "it takes one objective, and the problem has several"
            if not isinstance(problem, BoxProblem) and not _numbers_always_active(problem.space):
                return "it adapts numbers that are always active, and the space has none: it would draw at random"
        return None

    def run(self, problem: Problem, horizon: float, seed: int, /) -> Trajectory:
        """Run trials until the horizon; an evaluation that is ``nan`` is a failed trial.

        With several objectives the study has several directions, and the trajectory is the volume not dominated yet.
        """
        optuna = require("optuna", extra="optuna", who=_WHO)
        why = self.refuses(problem)
        if why is not None:
            raise refusal(self, problem, why)
        suggest = make_suggest(problem)
        several = isinstance(problem, ObjectivesProblem)
        charges = Charges(horizon)
        found: list[tuple[float, ...]] = []
        measure, least = _make_measure(problem)
        with silence_optuna(optuna):
            sampler = _SAMPLERS[self.name](optuna.samplers, seed)
            directions = ["minimize"] * len(problem.objectives) if isinstance(problem, ObjectivesProblem) else None
            study = optuna.create_study(sampler=sampler, directions=directions)
            while charges.room(least):
                trial = study.ask()
                values, cost = measure(suggest(trial))
                if not charges.pay(cost, values[0]):
                    break
                found.append(values)
                failed = any(math.isnan(value) for value in values)
                study.tell(trial, None if failed else values, optuna.trial.TrialState.FAIL if failed else None)
        if several:
            charges = charges.with_values(undominated_volume(found))
        return charges.trajectory(algorithm=self.name, instance=problem.identity.name, seed=seed)


def optuna_samplers(names: Sequence[str] | None = None) -> tuple[SamplerAlgorithm, ...]:
    """Algorithms of samplers by their names; by default of all whose packages are installed.

    :raises MissingExtraError: a sampler was asked for by name and needs a package that is not installed.
    """
    require("optuna", extra="optuna", who=_WHO)
    missing = [name for name, package in _NEEDS.items() if importlib.util.find_spec(package) is None]
    if names is None:
        if missing and multiprocessing.parent_process() is None:  # workers do not repeat it
            packages = " ".join(_NEEDS[name] for name in missing)
            warnings.warn(
                f"{_WHO} leaves out {' and '.join(missing)}. Install what they need with: pip install {packages}",
                PolarBearWarning,
                stacklevel=2,
            )
        return tuple(SamplerAlgorithm(name) for name in NAMES if name not in missing)
    for name in names:
        if name not in _SAMPLERS:
            raise InvalidInputError(f"{_WHO} has no sampler {name!r}. It has {', '.join(NAMES)}.")
        if name in missing:
            raise MissingExtraError(
                f"The sampler {name!r} needs '{_NEEDS[name]}', which is not installed. "
                f"Install it with: pip install {_NEEDS[name]}",
                name=_NEEDS[name],
            )
    return tuple(SamplerAlgorithm(name) for name in names)


def _numbers_always_active(space: ConfigurationSpace) -> list[str]:
    conditional = {condition.child for condition in space.conditions}
    return [
        name
        for name, parameter in space.parameters.items()
        if not isinstance(parameter, Categorical) and name not in conditional
    ]


def _make_measure(problem: Any) -> tuple[Callable[[Any], tuple[tuple[float, ...], float]], float]:
    """Function from a point to the values of the objectives and the cost, and the least cost of an evaluation.

    An evaluation costs 1 unless the problem has costs of its own, which are known only afterwards.
    """
    if isinstance(problem, ObjectivesProblem):
        return problem.measure_objectives, 0.0
    if isinstance(problem, ChargedProblem):

        def measure(point: Any) -> tuple[tuple[float, ...], float]:
            value, cost = problem.measure(point)
            return (float(value),), cost

        return measure, 0.0
    return (lambda point: ((float(problem.evaluate(point)),), 1.0)), 1.0
