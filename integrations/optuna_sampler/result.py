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
from polarbear_plugins.integrations.optuna_sampler.sampler import check_one_objective
from polarbear_plugins.integrations.optuna_sampler.study_storage import read_rules
from polarbear_plugins.integrations.optuna_sampler.study_view import EndingTrial, StudyView, sign_of
from polarbear_plugins.racing.asynchronous import AsynchronousRace
from polarbear_plugins.racing.posteriors import infer
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.state import Failure, start_race
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
    return result_of_race(study, *read_race(study))


def read_race(study: optuna.Study, ending: EndingTrial | None = None) -> tuple[Rules, AsynchronousRace, StudyView]:
    """Rules of the race in a study, the race, and its trials as they are now, with a trial that is ending.

    :raises InvalidInputError: there is no race in the study.
    """
    # Those of a PolarBearSampler.  It is not imported: it keeps a study of candidates up to date, which reads the race.
    rules, race = getattr(study.sampler, "rules", None), getattr(study.sampler, "race", None)
    if not isinstance(rules, Rules) or not isinstance(race, AsynchronousRace):
        written = read_rules(study)
        rules = None if written is None else Rules.from_json(written)
        race = None if rules is None else rules.race()
    if rules is None or race is None:
        raise InvalidInputError(
            f"There is no race in the study {study.study_name!r}: none of its trials came from a PolarBearSampler."
        )
    return rules, race, StudyView.of(study, rules, ending)


def result_of_race(study: optuna.Study, rules: Rules, race: AsynchronousRace, view: StudyView) -> RaceResult:
    """Result of the race whose trials are in a view.

    :raises InvalidInputError: fewer than two candidates have finished trials.
    """
    standing = race.standing(view.cells, view.instances, view.entrants)
    with_runs = [name for name in view.parameters if any(candidate == name for candidate, _ in view.cells)]
    if len(with_runs) < 2:
        raise InvalidInputError(
            f"The study {study.study_name!r} has {len(with_runs)} candidates with finished trials; expected two."
        )
    decided = () if standing.state is None else standing.state.algorithms
    names = (*decided, *(name for name in with_runs if name not in decided))
    state = start_race(names, race.timepoints, rules.settings)
    if standing.state is not None:
        resolved = np.array(state.resolved)
        known = len(decided)
        resolved[:, :known, :known] = standing.state.resolved
        state = replace(state, resolved=resolved, rounds=standing.state.rounds, batch=standing.state.batch)
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
