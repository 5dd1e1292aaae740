"""Result of the race in a study."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import optuna

from polarbear_plugins.environment import installed_versions
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.integrations.optuna_sampler.rules import Rules
from polarbear_plugins.integrations.optuna_sampler.study_storage import read_rules
from polarbear_plugins.integrations.optuna_sampler.study_view import EndingTrial, StudyView
from polarbear_plugins.racing.asynchronous import AsynchronousRace
from polarbear_plugins.racing.posteriors import infer
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.state import Failure, start_race
from polarbear_plugins.rankings.stream import rank_cells


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
