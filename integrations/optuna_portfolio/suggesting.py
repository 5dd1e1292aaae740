"""Points of a problem from the suggestions of an Optuna trial."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from polarbear_plugins.problems.protocols import BoxProblem, ChargedProblem, ObjectivesProblem, Problem, SpaceProblem
from polarbear_plugins.problems.spaces import Categorical, Configuration, ConfigurationSpace, Integer, Parameter, Value

if TYPE_CHECKING:
    import optuna


#: Problems whose points a trial can suggest, and what to say about others.
POINTS = (BoxProblem, SpaceProblem, ChargedProblem, ObjectivesProblem)
NO_POINTS = (
    "it runs on boxes (lower, upper, evaluate) and configuration spaces (space, evaluate), and the problem is neither"
)


def make_suggest(problem: Problem) -> Callable[[optuna.Trial], Any]:
    """Function from a trial to a point of the problem, which is one of ``POINTS``."""
    if isinstance(problem, BoxProblem):
        bounds = [(float(low), float(high)) for low, high in zip(problem.lower, problem.upper, strict=True)]
        return lambda trial: [trial.suggest_float(f"x{k}", low, high) for k, (low, high) in enumerate(bounds)]
    space: ConfigurationSpace = problem.space  # type: ignore[attr-defined]
    return lambda trial: _suggest_configuration(trial, space)


def _suggest_configuration(trial: optuna.Trial, space: ConfigurationSpace) -> Configuration:
    """Suggest the active parameters, parents first; inactive ones are never suggested."""
    chosen: dict[str, Value] = {}
    while waiting := [name for name in space.active(chosen) if name not in chosen]:
        for name in waiting:
            chosen[name] = _suggest(trial, name, space.parameters[name])
    return chosen


def _suggest(trial: optuna.Trial, name: str, parameter: Parameter) -> Value:
    if isinstance(parameter, Categorical):
        # By their positions: Optuna does not distinguish choices such as 1 and True.
        return parameter.choices[trial.suggest_categorical(name, range(len(parameter.choices)))]
    if isinstance(parameter, Integer):
        return trial.suggest_int(name, parameter.lower, parameter.upper, log=parameter.log)
    return trial.suggest_float(name, parameter.lower, parameter.upper, log=parameter.log)


@contextmanager
def silence_optuna(library: Any) -> Iterator[None]:
    """Keep Optuna from logging each trial, and from warning that QMC and groups of TPE are experimental."""
    logger = logging.getLogger("optuna")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", library.exceptions.ExperimentalWarning)
            yield
    finally:
        logger.setLevel(before)
