"""``fit``: from a ranking table to a posterior."""

from __future__ import annotations

import functools
import importlib
import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_choice, as_whole_number
from polarbear_plugins.errors import InferenceWarning, InvalidInputError, UnknownNameError
from polarbear_plugins.inference.checking import check_model
from polarbear_plugins.inference.scores import ranks_used
from polarbear_plugins.inference.task import Engine, Groups, LikelihoodName, Task
from polarbear_plugins.plackett_luce.subsets import first_place_statistics, statistics_of
from polarbear_plugins.plugins.manager import installed_plugins
from polarbear_plugins.posterior.group_effect import GroupEffect
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.priors import BUILT_IN_PRIORS, Prior, TemporalPrior
from polarbear_plugins.rankings.comparable import check_comparable, observed
from polarbear_plugins.rankings.table import RankingTable
from polarbear_plugins.seeds import derived_seed

# By the place of their function: they import scipy or PyMC, which must not happen before one is used.
BUILT_IN_ENGINES = {
    "native": "polarbear_plugins.inference.native.engine:native",
    "nuts": "polarbear_plugins.inference.pymc.chains:nuts",
    "pathfinder": "polarbear_plugins.inference.pymc.engines:pathfinder",
    "laplace": "polarbear_plugins.inference.pymc.engines:laplace",
    "advi": "polarbear_plugins.inference.pymc.engines:advi",
    "fullrank-advi": "polarbear_plugins.inference.pymc.engines:fullrank_advi",
}

TimeScale = Literal["auto", "linear", "log"]


def fit(
    table: RankingTable,
    prior: str | Prior = "dirichlet",
    engine: str | Engine = "native",
    draws: int = 4000,
    seed: int | None = None,
    dependence: Literal["auto", "none"] = "auto",
    *,
    likelihood: LikelihoodName = "rankings",
    groups: Groups = "auto",
    check: bool = True,
    start: Posterior | None = None,
    time_scale: TimeScale = "auto",
    engine_options: Mapping[str, object] | None = None,
    **options: object,
) -> Posterior:
    """Infer the ratings of the algorithms over time.

    Parameters
    ----------
    table
        The rankings.
    prior
        ``dirichlet``, ``hierarchical-dirichlet``, ``gp``, ``sparse-gp``, ``hsgp``, ``random-walk``, ``bspline``, the
        name of a plugin's prior, or a prior object.
    engine
        ``native``, or through PyMC ``nuts``, ``pathfinder``, ``laplace``, ``advi`` and ``fullrank-advi``; the name of
        a plugin's engine, or a function.
    draws
        Number of draws.
    seed
        Seed of all random numbers; without one, every call differs.
    dependence
        The rankings of one run at neighbouring timepoints repeat each other.  Under priors that pool over time
        ``"auto"`` estimates how much and weights them accordingly; ``"none"`` treats them as independent, as the
        likelihood of the paper does.
    likelihood
        ``"rankings"``: the whole rankings, by the Plackett-Luce model.  ``"first-places"``: only who is first, which is
        multinomial whatever the model; less precise, and the ratings are shares of first places also where rankings do
        not fit the model.
    groups
        What the posterior is about, if the instances belong to groups.  ``"new"``: ratings in a new group, of which
        those there are a sample.  ``"same"``: further instances of these groups.  ``"auto"``: new groups, unless the
        table says that its groups are all there are, or they look no more different than chance would make them.
        ``"none"``: groups are ignored.
    check
        Whether to check that the rankings look as the model says; the result is ``posterior.check``.  First places
        need no check.
    start
        An earlier posterior of nearly the same data, from which to start the search for the mode.
    time_scale
        Whether temporal priors see time on a linear or a log scale; ``"auto"`` takes the log scale if the
        timepoints are more evenly spaced on it.
    engine_options
        Options of the engine.
    options
        Options of the prior: ``alpha``, ``kernel``, ``inducing``, ... .

    Examples
    --------
    >>> table = RankingTable.from_values([[[1.0, 2.0]]] * 8, algorithms=["csa", "msr"], timepoints=[10])
    >>> posterior = fit(table, seed=1)
    >>> round(float(posterior.ratings[:, 0, 0].mean()), 2)  # 9 / 10, the mean of Beta(9, 1)
    0.9
    """
    check_comparable(table)
    chosen = make_prior(prior, options)
    engine_name, run = find_engine(engine)
    as_choice(dependence, ("auto", "none"), "dependence")
    as_choice(likelihood, LikelihoodName, "likelihood")
    as_choice(groups, Groups, "groups")
    temporal = isinstance(chosen, TemporalPrior)
    count = statistics_of if likelihood == "rankings" else first_place_statistics
    task = Task(
        statistics=count(table.ranks, table.weights),
        time=scaled_time(table.timepoints, time_scale),
        prior=chosen,
        draws=as_whole_number(draws, "draws", at_least=100),
        seed=np.random.SeedSequence(None if seed is None else as_whole_number(seed, "seed", at_least=0)),
        start=_usable_state(start, table, chosen),
    )
    group_seed = np.random.SeedSequence(None if seed is None else derived_seed(seed, "groups"))
    group_model: Any = None
    if table.groups and groups != "none":
        model_groups = _import("polarbear_plugins.inference.groups:model_groups")
        group_model = model_groups(table, likelihood, task.statistics, groups, group_seed)
    effect: GroupEffect | None = None if group_model is None else group_model.effect
    about_new = effect is not None and effect.scope == "new"
    if effect is not None and about_new:
        task = replace(task, statistics=task.statistics.weighted(1 / effect.inflation))
    weights: FloatArray | None = None
    if temporal and dependence == "auto" and table.timepoints.size > 1:
        correction = _import("polarbear_plugins.inference.dependence:correct_dependence")(
            task, table, ranks_used(table, likelihood)
        )
        weights = correction.weights
        task = replace(task, statistics=task.statistics.weighted(weights), evidence_shift=correction.evidence_shift)
    _check_options(run, engine_options or {}, f"engine {engine_name!r}", given=1)
    done = run(task, **(engine_options or {}))
    diagnostics = replace(
        done.diagnostics,
        engine=engine_name,
        dependence=None if weights is None else tuple(float(weight) for weight in weights),
    )
    if not diagnostics.good:
        warnings.warn(
            f"The posterior under prior {chosen.name!r} by engine {engine_name!r} is not good enough to decide on: "
            f"{'; '.join(diagnostics.problems) or 'the engine gave no reason'}.",
            InferenceWarning,
            stacklevel=2,
        )
    posterior = Posterior(
        algorithms=table.algorithms,
        timepoints=table.timepoints,
        log_ratings=_log_softmax(done.utilities),
        prior=chosen.name,
        joint=temporal,
        diagnostics=diagnostics,
        hyperparameters=dict(done.hyperparameters),
        likelihood=likelihood,
        observed=observed(table),
        state=done.state,
    )
    if check and likelihood == "rankings":  # first places are multinomial: there is nothing to check
        posterior = with_check(posterior, table, seed)
    if about_new:  # after the check, which is about the groups there are
        rng = np.random.default_rng(group_seed.spawn(1)[0])
        posterior = replace(posterior, log_ratings=_log_softmax(group_model.for_new_group(done.utilities, rng)))
    return replace(posterior, groups=effect)


def with_check(posterior: Posterior, table: RankingTable, seed: int | None) -> Posterior:
    """The posterior with a check of the model against the rankings to which it was fitted."""
    return replace(
        posterior, check=check_model(posterior, table, None if seed is None else derived_seed(seed, "check"))
    )


def scaled_time(timepoints: FloatArray, scale: TimeScale = "auto") -> FloatArray:
    """Timepoints scaled to run from 0 to 1, on the log scale if they are more evenly spaced there.

    >>> scaled_time(np.array([1.0, 10.0, 100.0]))
    array([0. , 0.5, 1. ])
    """
    as_choice(scale, TimeScale, "time_scale")
    if timepoints.size == 1:
        return np.zeros(1)
    positive = bool(timepoints[0] > 0)
    if scale == "log" and not positive:
        raise InvalidInputError('time_scale="log" needs timepoints above 0.')
    if scale == "auto" and positive and timepoints.size > 2:
        scale = "log" if _unevenness(np.log(timepoints)) < _unevenness(timepoints) else "linear"
    time = np.log(timepoints) if scale == "log" else timepoints
    return (time - time[0]) / (time[-1] - time[0])


def _import(place: str) -> Any:
    """Import ``module:name``."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _log_softmax(utilities: FloatArray) -> FloatArray:
    # Algorithms are few: a loop over them, or a product, is faster than a reduction along a short axis.
    largest = functools.reduce(np.maximum, np.moveaxis(utilities, -1, 0))
    logs: FloatArray = utilities - largest[..., None]
    logs -= np.log(np.exp(logs) @ np.ones(logs.shape[-1]))[..., None]
    return logs


def _unevenness(time: FloatArray) -> float:
    steps = np.diff(time)
    steps = steps / steps.max()  # squares of large steps would overflow
    return float(steps.std() / steps.mean())


def make_prior(prior: str | Prior, options: Mapping[str, object]) -> Prior:
    """Prior of that name with these options; a prior object is returned as it is."""
    if not isinstance(prior, str):
        if options:
            raise InvalidInputError(f"A prior object has its options already, got {', '.join(options)} as well.")
        if not isinstance(prior, Prior):
            raise InvalidInputError(f"prior: expected a name or a prior, got {prior!r}.")
        return prior
    make: Callable[..., Any] = _look_up(prior, "prior", BUILT_IN_PRIORS, "polarbear_priors")
    _check_options(make, options, f"prior {prior!r}")
    return make(**options)


def _check_options(function: Callable[..., Any], options: Mapping[str, object], who: str, given: int = 0) -> None:
    """Refuse options that a function does not take after its first ``given`` arguments."""
    parameters = list(inspect.signature(function).parameters.values())[given:]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    known = [parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise InvalidInputError(f"fit: {who} has no option {unknown[0]!r}. It takes {', '.join(known) or 'none'}.")


def find_engine(engine: str | Engine) -> tuple[str, Engine]:
    """Name and function of an engine."""
    if isinstance(engine, str):
        found = _look_up(engine, "engine", BUILT_IN_ENGINES, "polarbear_engines")
        return engine, _import(found) if isinstance(found, str) else found
    if not callable(engine):
        raise InvalidInputError(f"engine: expected a name or a function, got {engine!r}.")
    return getattr(engine, "__name__", "custom"), engine


def _look_up(name: str, what: str, built_in: Mapping[str, Any], hook: str) -> Any:
    """What has that name among the built-in ones, then among those of plugins."""
    if name in built_in:
        return built_in[name]
    found = dict(built_in)
    for offered in getattr(installed_plugins().manager.hook, hook)():
        twice = sorted(set(found) & set(offered))
        if twice:
            raise InvalidInputError(f"More than one plugin provides the {what} {', '.join(twice)}; uninstall one.")
        found |= offered
    if name not in found:
        raise UnknownNameError(f"There is no {what} {name!r}. There are {', '.join(sorted(found))}.")
    return found[name]


def _usable_state(start: Posterior | None, table: RankingTable, prior: Prior) -> Any:
    """State of an earlier posterior if it has the same prior, algorithms and timepoints."""
    if start is None:
        return None
    same = (
        start.prior == prior.name
        and start.algorithms == table.algorithms
        and np.array_equal(start.timepoints, table.timepoints)
    )
    return start.state if same else None
