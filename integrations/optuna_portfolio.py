"""Optuna's samplers as algorithms that race on boxes and configuration spaces: an evaluation is a trial."""

from __future__ import annotations

import importlib.util
import logging
import math
import multiprocessing
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from polarbear_plugins.errors import InvalidInputError, MissingExtraError, PolarBearWarning
from polarbear_plugins.extras import require
from polarbear_plugins.hookspecs import hookimpl
from polarbear_plugins.options import read_options
from polarbear_plugins.problems import Algorithm, BoxProblem, Problem, SpaceProblem
from polarbear_plugins.spaces import Categorical, Configuration, ConfigurationSpace, Integer, Parameter, Value
from polarbear_plugins.trajectories import Trajectory

__all__ = ["NAMES", "SamplerAlgorithm", "optuna_samplers", "polarbear_portfolio"]

_WHO = "The portfolio 'optuna-samplers'"


def _tpe_multivariate(samplers: Any, seed: int) -> Any:
    # In groups, so that the parameters of each branch of a conditional space are modelled together as well.
    return samplers.TPESampler(multivariate=True, group=True, seed=seed)


def _qmc(samplers: Any, seed: int) -> Any:
    return samplers.QMCSampler(scramble=True, seed=seed)


# From the samplers of Optuna and a seed to a sampler with the settings that Optuna gives it.
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
    """A sampler of Optuna that asks and tells in a study of its own, in memory."""

    name: str

    def run(self, problem: Problem, horizon: float, seed: int, /) -> Trajectory:
        """Run as many trials as the horizon has room for; an evaluation that is ``nan`` is a failed trial."""
        optuna = require("optuna", extra="optuna", who=_WHO)
        suggest = _suggestions(problem, self.name)
        values: list[float] = []
        with _quiet(optuna):
            study = optuna.create_study(sampler=_SAMPLERS[self.name](optuna.samplers, seed))
            for _ in range(math.floor(horizon)):
                trial = study.ask()
                value = float(problem.evaluate(suggest(trial)))  # type: ignore[attr-defined]
                values.append(value)
                failed = math.isnan(value)
                study.tell(trial, None if failed else value, optuna.trial.TrialState.FAIL if failed else None)
        return Trajectory.from_evaluations(
            values, algorithm=self.name, instance=problem.identity.name, seed=seed, horizon=horizon
        )


def optuna_samplers(names: Sequence[str] | None = None) -> tuple[SamplerAlgorithm, ...]:
    """Make the algorithms of some samplers; without names, of all whose packages are installed.

    :raises MissingExtraError: a sampler was asked for by name and needs a package that is not installed.
    """
    require("optuna", extra="optuna", who=_WHO)
    missing = [name for name, package in _NEEDS.items() if importlib.util.find_spec(package) is None]
    if names is None:
        if missing and multiprocessing.parent_process() is None:  # once is enough, workers need not repeat it
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


@hookimpl
def polarbear_portfolio(name: str, options: Mapping[str, object]) -> Sequence[Algorithm] | None:
    """optuna-samplers: random, qmc, tpe, tpe-multivariate, cma-es, gp, nsga-ii; option samplers=tpe,random."""
    if name != "optuna-samplers":
        return None
    return optuna_samplers(read_options(options, {"samplers": _sampler_names}, _WHO).get("samplers"))


def _sampler_names(value: object, what: str) -> Sequence[str] | None:
    wanted = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if wanted is not None and not (isinstance(wanted, Sequence) and wanted):
        raise InvalidInputError(f"{what}: expected names such as tpe,random, got {value!r}.")
    return wanted


def _suggestions(problem: Problem, who: str) -> Callable[[Any], Any]:
    """Find what turns a trial into a point of the problem."""
    if isinstance(problem, BoxProblem):
        bounds = [(float(low), float(high)) for low, high in zip(problem.lower, problem.upper, strict=True)]
        return lambda trial: [trial.suggest_float(f"x{k}", low, high) for k, (low, high) in enumerate(bounds)]
    if isinstance(problem, SpaceProblem):
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
    value: Value = suggest(name, parameter.lower, parameter.upper, log=parameter.log)
    return value


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
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
