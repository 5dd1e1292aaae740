"""Result of the race in a study, and the configuration of a noisy study that is probably the best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState

from polarbear_plugins.environment import installed_versions
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.inference.fitting import fit
from polarbear_plugins.integrations.optuna_sampler.rules import Parameters, Rules
from polarbear_plugins.integrations.optuna_sampler.sampler import PolarBearSampler, check_one_objective
from polarbear_plugins.integrations.optuna_sampler.study_storage import read_rules
from polarbear_plugins.integrations.optuna_sampler.study_view import StudyView, sign_of
from polarbear_plugins.racing.asynchronous import AsynchronousRace, Standing
from polarbear_plugins.racing.posteriors import infer
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.state import Failure, RaceState, start_race
from polarbear_plugins.rankings.stream import rank_cells
from polarbear_plugins.rankings.table import RankingTable

# Name, type and value of each parameter of a configuration: True, 1 and 1.0 are different values.
_Key: TypeAlias = tuple[tuple[str, str, Any], ...]


def race_result(study: optuna.Study) -> RaceResult:
    """Result of the race in a study so far.

    The algorithms of the result are the candidates; ``result.about["candidates"]`` has their parameters.  All finished
    trials count, also those of a round that is not over.

    :raises InvalidInputError: there is no race in the study, or fewer than two candidates have finished trials.
    """
    rules, race = _find_race(study)
    view = StudyView.of(study, rules)
    standing = race.standing(view.cells, view.instances, view.entrants)
    with_runs = [name for name in view.parameters if any(candidate == name for candidate, _ in view.cells)]
    if len(with_runs) < 2:
        raise InvalidInputError(
            f"The study {study.study_name!r} has {len(with_runs)} candidates with finished trials; expected two."
        )
    state = _with_everybody(standing, view, with_runs)
    names = state.algorithms
    instances = [name for name in view.instances if any(instance == name for _, instance in view.cells)]
    table = rank_cells(names, race.timepoints, view.cells, instances)
    state = replace(state, table=table, cost=float(view.cost))
    return RaceResult(
        state=state,
        stopped=standing.over or "interrupted",
        _posterior=infer(state, len(state.rounds) + 1, check=True),
        failures=tuple(Failure(*cell, f"{count} trials failed") for cell, count in view.given_up.items()),
        about={
            "versions": installed_versions(rules.settings.engine),
            "study": study.study_name,
            "candidates": {name: dict(view.parameters.get(name, {})) for name in names},
        },
    )


def _find_race(study: optuna.Study) -> tuple[Rules, AsynchronousRace]:
    """Rules of the race in a study, and the race; that of the study's sampler, which remembers it, if it can be."""
    sampler, written = study.sampler, read_rules(study)
    if isinstance(sampler, PolarBearSampler) and written in (None, sampler.rules.to_json()):
        return sampler.rules, sampler.race
    if written is None:
        raise InvalidInputError(
            f"There is no race in the study {study.study_name!r}: none of its trials came from a PolarBearSampler."
        )
    rules = Rules.from_json(written)
    return rules, rules.race()


def _with_everybody(standing: Standing, view: StudyView, with_runs: Sequence[str]) -> RaceState:
    """State of the race without its table, also with those that have left its model or not yet entered."""
    before = standing.state
    entered = (
        []
        if before is None
        else [name for number, names in sorted(view.entrants.items()) if number <= standing.round for name in names]
    )
    names = (*entered, *(name for name in with_runs if name not in entered))
    state = start_race(names, view.rules.grid, view.rules.settings)
    if before is None:
        return state
    resolved = np.array(state.resolved)
    inside = [names.index(name) for name in before.algorithms]
    resolved[np.ix_(range(len(state.timepoints)), inside, inside)] = before.resolved
    out = np.isin(names, [one.algorithm for one in before.eliminations])
    now_in = np.isin(names, entered)
    settled = (out[:, None] & now_in) | (out & now_in[:, None])
    return replace(state, resolved=resolved | settled, rounds=before.rounds, batch=before.batch)


@dataclass(frozen=True, slots=True)
class LikelyBest:
    """The configuration that is probably the best, and the evidence for it.

    Attributes
    ----------
    parameters
        Of the configuration.
    probability
        That it has the highest rating of all.
    beats
        The probability that it beats another configuration on a new instance, averaged over the others.
    evaluations
        How many values it rests on.
    rivals
        The next ones: parameters, and the probability that they are the best.
    """

    parameters: Mapping[str, Any]
    probability: float
    beats: float
    evaluations: int
    rivals: tuple[tuple[Mapping[str, Any], float], ...] = field(repr=False)


def likely_best(study: optuna.Study, *, instance: str = "instance", most: int = 64, seed: int = 0) -> LikelyBest:
    """Configuration of a noisy study that is probably the best; ``study.best_trial`` is the luckiest one.

    Trials with the same parameters are one configuration.  Values are compared on the same instance: that of the
    parameter ``instance`` if there is one; otherwise the steps if trials report a value for each of several instances
    (folds, seeds); otherwise repeated trials of a configuration are compared in the order in which they ran.

    Parameters
    ----------
    instance
        Name of the parameter that is the instance.
    most
        How many configurations are compared at most: those with most values, and of these the better ones.
    """
    check_one_objective(study)
    sign = sign_of(study)
    values: dict[_Key, dict[str, list[float]]] = {}
    parameters: dict[_Key, Parameters] = {}
    for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        configuration = {name: value for name, value in sorted(trial.params.items()) if name != instance}
        key = tuple((name, type(value).__name__, value) for name, value in configuration.items())
        parameters[key] = configuration
        own = values.setdefault(key, {})
        for name, value in _observations(trial, instance, len(own)).items():
            own.setdefault(name, []).append(math.inf if math.isnan(value) else sign * value)
    if len(values) < 2:
        raise InvalidInputError(
            f"The study {study.study_name!r} has {len(values)} configurations with finished trials; expected several."
        )

    def rank_of(key: _Key) -> tuple[int, float]:
        numbers = [value for cell in values[key].values() for value in cell]
        return -len(numbers), float(np.mean(numbers))

    chosen = sorted(values, key=rank_of)[: max(most, 2)]
    names = [str(place) for place in range(len(chosen))]
    cells = {
        (name, where): [np.array([value]) for value in repeated]
        for name, key in zip(names, chosen, strict=True)
        for where, repeated in values[key].items()
    }
    table = rank_cells(names, [1.0], cells, sorted({where for _, where in cells}))
    return _likely_best(table, [parameters[key] for key in chosen], [-rank_of(key)[0] for key in chosen], seed)


def _observations(trial: FrozenTrial, instance: str, repetition: int) -> dict[str, float]:
    """Values of a complete trial on each of its instances."""
    if instance not in trial.params and len(trial.intermediate_values) > 1:
        return {str(step): value for step, value in trial.intermediate_values.items()}
    name = str(trial.params[instance]) if instance in trial.params else f"repetition {repetition}"
    return {name: math.nan if trial.value is None else trial.value}


def _likely_best(
    table: RankingTable, parameters: Sequence[Parameters], evaluations: Sequence[int], seed: int
) -> LikelyBest:
    logs = fit(table, seed=seed).log_ratings[:, -1, :]
    best = np.bincount(logs.argmax(axis=1), minlength=logs.shape[1]) / len(logs)
    first, *others = np.argsort(-best, kind="stable").tolist()
    gaps = logs[:, [first]] - np.delete(logs, first, axis=1)
    return LikelyBest(
        parameters=parameters[first],
        probability=float(best[first]),
        beats=float((1 / (1 + np.exp(-gaps))).mean()),
        evaluations=evaluations[first],
        rivals=tuple((parameters[k], float(best[k])) for k in others[:5]),
    )
