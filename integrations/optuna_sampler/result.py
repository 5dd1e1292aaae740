"""What a study has found: the result of the race in it, and the configuration that is probably the best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from polarbear_plugins.environment import installed_versions
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.inference.fitting import fit
from polarbear_plugins.integrations.optuna_sampler.rules import Parameters, Rules
from polarbear_plugins.integrations.optuna_sampler.sampler import RACE, PolarBearSampler, refuse_several_objectives
from polarbear_plugins.integrations.optuna_sampler.study_view import Look
from polarbear_plugins.racing.analysis import infer
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.state import Failure, start_race
from polarbear_plugins.rankings.stream import rank_cells
from polarbear_plugins.rankings.table import RankingTable


def race_result(study: Any) -> RaceResult:
    """Tell what the race in a study has found so far.

    The algorithms of the result are the candidates; ``result.about["candidates"]`` has their parameters.  All finished
    trials count, also those of a round that is not over.

    :raises InvalidInputError: there is no race in the study, or no two candidates with a finished trial yet.
    """
    sampler, written = study.sampler, study._storage.get_study_system_attrs(study._study_id).get(RACE)
    if isinstance(sampler, PolarBearSampler):
        rules, race = sampler.rules, sampler.race
    elif written is not None:
        rules = Rules.from_json(written)
        race = rules.race()
    else:
        raise InvalidInputError(f"There is no race in the study {study.study_name!r}: no PolarBearSampler was at work.")
    look = Look.at(study, rules)
    progress = race.standing(look.cells, look.instances, look.entrants)
    found = [name for name in look.parameters if any(candidate == name for candidate, _ in look.cells)]
    decided = () if progress.state is None else progress.state.algorithms
    names = (*decided, *(name for name in found if name not in decided))
    if len(found) < 2:
        raise InvalidInputError(f"The study {study.study_name!r} has no two candidates with a finished trial yet.")
    state = start_race(names, race.timepoints, rules.settings)
    if progress.state is not None:
        resolved = np.array(state.resolved)
        known = len(decided)
        resolved[:, :known, :known] = progress.state.resolved
        state = replace(state, resolved=resolved, rounds=progress.state.rounds, batch=progress.state.batch)
    seen = [name for name in look.instances if any(instance == name for _, instance in look.cells)]
    table = rank_cells(names, race.timepoints, look.cells, seen)
    state = replace(state, table=table, cost=float(look.cost))
    return RaceResult(
        state=state,
        stopped=progress.over or "interrupted",
        _posterior=infer(state, len(state.rounds) + 1),
        failures=tuple(Failure(*cell, f"{times} trials failed") for cell, times in look.given_up.items()),
        about={
            "versions": installed_versions(rules.settings.engine),
            "study": study.study_name,
            "candidates": {name: dict(look.parameters.get(name, {})) for name in names},
        },
    )


@dataclass(frozen=True, slots=True)
class LikelyBest:
    """Which configuration is probably the best one.

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


def likely_best(study: Any, *, instance: str = "instance", most: int = 64, seed: int = 0) -> LikelyBest:
    """Tell which configuration of a noisy study is probably the best; ``study.best_trial`` is the luckiest.

    Trials with the same parameters are one configuration.  Values are compared on the same instance: that of the
    parameter ``instance`` if there is one; otherwise the steps if trials report a value for each of several instances
    (folds, seeds); otherwise repeated trials of a configuration are compared in the order in which they ran.

    Parameters
    ----------
    instance
        Name of the parameter that is the instance.
    most
        At most so many configurations are compared: those with most values, and of these the better ones.
    """
    refuse_several_objectives(study)
    sign = -1.0 if study.direction.name == "MAXIMIZE" else 1.0
    values: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    parameters: dict[tuple[Any, ...], dict[str, Any]] = {}
    for trial in study.get_trials(deepcopy=False):
        if trial.state.name != "COMPLETE":
            continue
        configuration = {name: value for name, value in sorted(trial.params.items()) if name != instance}
        key = tuple((name, type(value).__name__, value) for name, value in configuration.items())
        parameters[key] = configuration
        own = values.setdefault(key, {})
        if instance in trial.params:
            observed = {str(trial.params[instance]): trial.value}
        elif len(trial.intermediate_values) > 1:
            observed = {str(step): value for step, value in trial.intermediate_values.items()}
        else:
            observed = {f"repetition {len(own)}": trial.value}
        for name, value in observed.items():
            own.setdefault(name, []).append(math.inf if math.isnan(value) else sign * value)
    if len(values) < 2:
        raise InvalidInputError(
            f"The study {study.study_name!r} has {len(values)} configurations with finished trials; expected several."
        )

    def rank_of(key: tuple[Any, ...]) -> tuple[int, float]:
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
