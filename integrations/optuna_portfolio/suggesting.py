"""From a trial of Optuna to a point of a problem."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.problems.protocols import BoxProblem, ChargedProblem, ObjectivesProblem, Problem, SpaceProblem
from polarbear_plugins.problems.spaces import Categorical, Configuration, ConfigurationSpace, Integer, Parameter, Value


def suggestions(problem: Problem, who: str) -> Callable[[Any], Any]:
    """Find what turns a trial into a point of the problem."""
    if isinstance(problem, BoxProblem):
        bounds = [(float(low), float(high)) for low, high in zip(problem.lower, problem.upper, strict=True)]
        return lambda trial: [trial.suggest_float(f"x{k}", low, high) for k, (low, high) in enumerate(bounds)]
    if isinstance(problem, SpaceProblem | ChargedProblem | ObjectivesProblem):
        space = problem.space
        return lambda trial: _suggest_configuration(trial, space)
    raise InvalidInputError(
        f"{who!r} runs on boxes (lower, upper, evaluate) and configuration spaces (space, evaluate); "
        f"the problem {problem.identity.name!r} is neither."
    )


def _suggest_configuration(trial: Any, space: ConfigurationSpace) -> Configuration:
    """Ask for the parameters that count, parents first; those that do not count are never asked for."""
    chosen: dict[str, Value] = {}
    while waiting := [name for name in space.active(chosen) if name not in chosen]:
        for name in waiting:
            chosen[name] = _suggest(trial, name, space.parameters[name])
    return chosen


def _suggest(trial: Any, name: str, parameter: Parameter) -> Value:
    if isinstance(parameter, Categorical):
        # By their places: choices such as 1 and True are different to us and the same to Optuna.
        place: int = trial.suggest_categorical(name, range(len(parameter.choices)))
        return parameter.choices[place]
    suggest = trial.suggest_int if isinstance(parameter, Integer) else trial.suggest_float
    return suggest(name, parameter.lower, parameter.upper, log=parameter.log)


@contextmanager
def quiet(optuna: Any) -> Iterator[None]:
    """Keep Optuna from logging each trial, and from warning that QMC and groups of TPE are experimental."""
    logger = logging.getLogger("optuna")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        logger.setLevel(before)
