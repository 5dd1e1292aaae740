"""Result of the race in a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from polarbear_plugins.environment import installed_versions
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.integrations.optuna_sampler.rules import Rules
from polarbear_plugins.integrations.optuna_sampler.study_storage import read_all_trials, read_rules
from polarbear_plugins.integrations.optuna_sampler.study_view import StudyView, sign_of
from polarbear_plugins.racing.asynchronous import AsynchronousRace, Standing
from polarbear_plugins.racing.posteriors import infer
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.state import Failure, RaceState, start_race
from polarbear_plugins.rankings.stream import rank_cells


def race_result(study: optuna.Study) -> RaceResult:
    """Result of the race in a study so far.

    The algorithms of the result are the candidates; ``result.about["candidates"]`` has their parameters.  All finished
    trials count, also those of a round that is not over.

    :raises InvalidInputError: there is no race in the study, or fewer than two candidates have finished trials.
    """
    return result_of_race(study, *read_race(study))


def read_race(study: optuna.Study, ended: FrozenTrial | None = None) -> tuple[AsynchronousRace, StudyView]:
    """The race in a study, and its trials as they are now, with one that the storage does not know to have ended.

    :raises InvalidInputError: there is no race in the study.
    """
    rules, race = _find_race(study)
    trials = {trial.number: trial for trial in read_all_trials(study)}
    if ended is not None:
        trials[ended.number] = ended
    return race, StudyView(rules, sign_of(study)).with_trials(trials.values())


def result_of_race(study: optuna.Study, race: AsynchronousRace, view: StudyView) -> RaceResult:
    """Result of the race whose trials are in a view.

    :raises InvalidInputError: fewer than two candidates have finished trials.
    """
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
            "versions": installed_versions(view.rules.settings.engine),
            "study": study.study_name,
            "candidates": {name: dict(view.parameters.get(name, {})) for name in names},
        },
    )


def _find_race(study: optuna.Study) -> tuple[Rules, AsynchronousRace]:
    """Rules of the race in a study, and the race; that of the study's sampler, which remembers it, if it can be."""
    # Of a PolarBearSampler, which is not imported: it keeps a study of candidates up to date, which reads the race.
    rules, race = getattr(study.sampler, "rules", None), getattr(study.sampler, "race", None)
    written = read_rules(study)
    if isinstance(rules, Rules) and isinstance(race, AsynchronousRace) and written in (None, rules.to_json()):
        return rules, race
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
