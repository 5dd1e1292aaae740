"""A study with one trial for each candidate of a race, which Optuna's plots, importances and dashboard can show.

In the study of a race a trial is one candidate on one instance: its best trial is the easiest instance, and the
instance is the most important parameter.
"""

from __future__ import annotations

import random
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from optuna.exceptions import DuplicatedStudyError, StorageInternalError
from optuna.storages import BaseStorage, RDBStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.display.text import probability_text
from polarbear_plugins.errors import InvalidInputError, PolarBearError, PolarBearWarning, reason
from polarbear_plugins.integrations.optuna_sampler.result import read_race, result_of_race
from polarbear_plugins.integrations.optuna_sampler.study_storage import assignment_of, read_all_trials, storage_of
from polarbear_plugins.integrations.optuna_sampler.study_view import StudyView, sign_of
from polarbear_plugins.measures.mean_losses import MeanModel
from polarbear_plugins.racing.asynchronous import Cells
from polarbear_plugins.racing.result import RaceResult

_CANDIDATES_OF = "polarbear:candidates of"  # user attribute of a study that was written here: the study of the race
_BEGAN = "race began"  # another: when; a study that is deleted and begun again has the same name
_TRIALS = "trials of the race"  # another, written last: how many finished trials the study rests on

_ASSUMPTION = (
    "A value is the estimated mean over all instances of the race. A candidate that was eliminated has not run on all "
    "of them: it is assumed that candidates differ by the same amount on every instance. The noisier the values, the "
    "more they are drawn towards each other. Instances on which a candidate failed or was pruned are left out of its "
    "value. Eliminations are decided by ranks, not by these means."
)
_WHY = {
    "resolved": "every pair is settled",
    "max_rounds": "as many rounds as allowed",
    "max_cost": "the next instance would cost more than allowed",
    "instances": "no more instances",
    "inference": "no posterior is good enough to decide on",
}

_ATTEMPTS = 5
# What a storage raises if another process replaces the same study at the same time.  InvalidInputError is ours: a study
# that another process has only just created does not say yet what it is.
_CONFLICTS = (DuplicatedStudyError, InvalidInputError, KeyError, StorageInternalError)
_writing = threading.RLock()  # threads need not get into conflicts


def candidate_study(
    study: optuna.Study, *, storage: str | BaseStorage | None = None, study_name: str | None = None
) -> optuna.Study:
    """Study with one trial for each candidate of a race that has finished runs.

    The parameters of a trial are those of its candidate, without the instance.  Its value, in the units and the
    direction of the objective, is the candidate's estimated mean over all instances of the race, at the last timepoint
    if there are several: instances that are hard or easy for everyone cancel out, as if a candidate had also run on
    those that came after its elimination.  Noisy values are drawn towards each other, since the best of many is partly
    luck.  A candidate without any finite value is a failed trial.

    User attributes of each trial: ``candidate``; ``instances`` that its value rests on; ``failures``, the number of
    instances on which it failed or was pruned; ``spread``, the standard deviation of the value; ``rating`` and
    ``p_best``, the probability of having the highest rating, at the last timepoint; ``status``.  Those of the study say
    what it rests on, why the race stopped, and what was assumed.

    Parameters
    ----------
    study
        The study of a race, finished or not.
    storage
        Where to write it: a storage, or its URL.  In memory by default.
    study_name
        ``<name of the study>:candidates`` by default.  In a storage it replaces the one that was written before.

    Examples
    --------
    >>> from polarbear_plugins.integrations.optuna_sampler import PolarBearSampler
    >>> def objective(trial):
    ...     fold, depth = trial.suggest_int("instance", 0, 9), trial.suggest_int("depth", 1, 8)
    ...     return 100.0 * fold + (depth - 3) ** 2
    >>> race = optuna.create_study(sampler=PolarBearSampler([{"depth": depth} for depth in (1, 3, 8)], seed=1))
    >>> race.optimize(objective, n_trials=100)
    >>> candidates = candidate_study(race)
    >>> len(candidates.trials), candidates.best_params
    (3, {'depth': 3})

    :raises InvalidInputError: there is no race in the study, fewer than two candidates have finished trials, or the
        storage has a study of that name that was not written by this function.
    """
    content = _Content.of(study)
    if content.contradiction:
        warnings.warn(content.contradiction, PolarBearWarning, stacklevel=2)
    name = study_name or _default_name(study)
    if storage is None:
        return content.write(optuna.create_study(study_name=name, direction=content.direction))
    return _replace(content, RDBStorage(storage) if isinstance(storage, str) else storage, name)


def update_companion(study: optuna.Study, ended: FrozenTrial | None = None) -> None:
    """Bring the candidates of a race up to date, in the storage of its study.

    Nothing that goes wrong here ends the race: it is a warning, and the next update is another chance.

    Parameters
    ----------
    ended
        A trial that the storage does not know to have ended: Optuna asks a sampler before it stores how a trial ended,
        and the last trial of a race has no successor that could see it.
    """
    storage, name = storage_of(study), _default_name(study)
    try:
        with _writing:
            began, trials = _progress(study, ended)
            if _trials_behind(storage, name, began) >= trials:
                return  # another process has seen as much
            content = _Content.of(study, ended)
            _replace(content, storage, name)
            if content.over and content.contradiction:
                warnings.warn(content.contradiction, PolarBearWarning, stacklevel=2)
    except Exception as problem:
        warnings.warn(
            f"The study {name!r} is not up to date: {type(problem).__name__}, {reason(problem)} The race itself "
            "continues. Write it again with candidate_study(study, storage=...).",
            PolarBearWarning,
            stacklevel=2,
        )


@dataclass(frozen=True, slots=True)
class _Content:
    """What a study of candidates says.

    Attributes
    ----------
    race
        Name of the study of the race.
    over
        Whether the race is over.
    contradiction
        Where the best mean and the verdict of the race disagree; empty if they do not.
    """

    race: str
    over: bool
    direction: StudyDirection
    trials: Sequence[FrozenTrial]
    attributes: Mapping[str, Any]
    contradiction: str

    @classmethod
    def of(cls, study: optuna.Study, ended: FrozenTrial | None = None) -> _Content:
        began, finished = _progress(study, ended)
        race, view = read_race(study, ended)
        result = result_of_race(study, race, view)
        sign = sign_of(study)
        trials = _trials(view, result, sign)
        contradiction = _contradiction(trials, result, sign)
        attributes = {
            "stopped": _stopped(result),
            "assumption": _ASSUMPTION,
            **({"timepoint of the values": float(result.timepoints[-1])} if view.rules.timepoints else {}),
            **(
                {} if result.posterior.diagnostics.good else {"ratings": "The posterior is not good enough to rely on."}
            ),
            **({"contradiction": contradiction} if contradiction else {}),
            _BEGAN: began,
            _TRIALS: finished,
        }
        return cls(study.study_name, result.stopped in _WHY, study.direction, trials, attributes, contradiction)

    def write(self, study: optuna.Study) -> optuna.Study:
        """Fill a new study; what it is comes first, so that an interrupted one can be replaced."""
        study.set_user_attr(_CANDIDATES_OF, self.race)
        study.add_trials(self.trials)
        for key, value in self.attributes.items():
            study.set_user_attr(key, value)
        return study


def _trials(view: StudyView, result: RaceResult, sign: float) -> list[FrozenTrial]:
    """One trial for each candidate with finished runs, in the order of their entry."""
    names = [name for name in result.algorithms if any(candidate == name for candidate, _ in view.cells)]
    losses = _losses(view.cells, names)
    means, spread = _estimate(losses)
    trials = []
    for place, name in enumerate(names):
        parameters, distributions = view.parameters_of(name), view.distributions_of(name)
        attributes = {
            "candidate": name,
            "status": _status(name, result),
            "instances": int(np.isfinite(losses[:, place]).sum()),
            "failures": _count_failures(view.cells, name),
            "spread": _finite(spread[place]),
            **_ratings(name, result),
        }
        known = bool(np.isfinite(means[place]))
        trials.append(
            optuna.trial.create_trial(
                state=TrialState.COMPLETE if known else TrialState.FAIL,
                value=sign * float(means[place]) if known else None,
                params={key: parameters[key] for key in distributions},
                distributions=dict(distributions),
                user_attrs=attributes,
            )
        )
    return trials


def _losses(cells: Cells, names: Sequence[str]) -> FloatArray:
    """``losses[instance, candidate]``: mean of the finite runs at the last timepoint, ``nan`` if there are none."""
    columns = {name: column for column, name in enumerate(names)}
    rows = {instance: row for row, instance in enumerate(dict.fromkeys(instance for _, instance in cells))}
    losses = np.full((len(rows), len(columns)), np.nan)
    for (name, instance), runs in cells.items():
        ends = np.array([run[-1] for run in runs])
        if np.isfinite(ends).any():
            losses[rows[instance], columns[name]] = ends[np.isfinite(ends)].mean()
    return losses


def _estimate(losses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean of each candidate over all instances, and its standard deviation; ``nan`` where unknown.

    Where no two candidates have an instance in common, the means are plain ones, and nothing is known of their spread.
    """
    finite = np.isfinite(losses)
    known = finite.any(axis=0)
    means, spread = np.full((2, losses.shape[1]), np.nan)
    if (finite.sum(axis=1) > 1).any():
        model = MeanModel(losses[:, known])
        means[known], spread[known] = model.means, model.spread
    else:
        means[known] = np.nanmean(losses[:, known], axis=0)
    return means, spread


def _count_failures(cells: Cells, name: str) -> int:
    """Number of instances on which a run has no finite value at the last timepoint."""
    mine = [runs for (candidate, _), runs in cells.items() if candidate == name]
    return sum(not all(np.isfinite(run[-1]) for run in runs) for runs in mine)


def _ratings(name: str, result: RaceResult) -> dict[str, float | None]:
    """Rating of a candidate at the last timepoint, and the probability that it is the highest."""
    posterior = result.posterior
    place = posterior.algorithms.index(name)
    if not posterior.observed[-1, place]:  # they would be those of the prior
        return {"rating": None, "p_best": None}
    highest = posterior.log_ratings[:, -1].argmax(axis=1)
    return {
        "rating": float(posterior.mean_ratings[-1, place]),
        "p_best": float((highest == place).mean()),
    }


def _status(name: str, result: RaceResult) -> str:
    for out in result.eliminations:
        if out.algorithm == name:
            return f"eliminated in round {out.round} by {out.by}, {probability_text(out.probability)}"
    return "in the race"


def _stopped(result: RaceResult) -> str:
    if result.stopped not in _WHY:
        return f"not over after round {len(result.rounds)}"
    return f"after round {len(result.rounds)}: {_WHY[result.stopped]}"


def _contradiction(trials: Sequence[FrozenTrial], result: RaceResult, sign: float) -> str:
    """Sentence about the best mean if it is that of a candidate that the race has eliminated."""
    known = [(sign * trial.value, trial.user_attrs) for trial in trials if trial.value is not None]
    if not known:
        return ""
    _, best = min(known, key=lambda pair: pair[0])
    if best["candidate"] in result.pareto_set:
        return ""
    return (
        f"The candidate with the best mean, {best['candidate']!r}, was {best['status']}. The race compares ranks on "
        f"each instance, best_trial compares means. Still in the race: {', '.join(map(repr, result.pareto_set))}."
    )


def _finite(number: float) -> float | None:
    """A number as JSON can hold it."""
    return float(number) if np.isfinite(number) else None


def _progress(study: optuna.Study, ended: FrozenTrial | None = None) -> tuple[str, int]:
    """When the race began, and how many of its trials are finished."""
    trials = [trial for trial in read_all_trials(study) if assignment_of(trial) is not None]
    began = min((trial.datetime_start for trial in trials if trial.datetime_start is not None), default="")
    last = None if ended is None else ended.number
    return str(began), sum(trial.state.is_finished() or trial.number == last for trial in trials)


def _default_name(study: optuna.Study) -> str:
    return f"{study.study_name}:candidates"


def _replace(content: _Content, storage: BaseStorage, name: str) -> optuna.Study:
    """Write a study of candidates in place of an earlier one; again if another process did so at the same time.

    If the other process has seen more trials of the race, its study is kept.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with _writing:
                if _trials_behind(storage, name, content.attributes[_BEGAN]) > content.attributes[_TRIALS]:
                    return optuna.load_study(study_name=name, storage=storage)
                _delete_earlier(storage, name, content.race)
                study = content.write(
                    optuna.create_study(storage=storage, study_name=name, direction=content.direction)
                )
            # SQLite gives the identifier of a deleted study to the next one: two processes may have filled the same.
            if len(study.get_trials(deepcopy=False)) == len(content.trials):
                return study
        except _CONFLICTS:
            if attempt == _ATTEMPTS:
                raise
        time.sleep(random.uniform(0, 0.1 * attempt))  # noqa: S311 - not a secret, and nothing is drawn from it
    raise PolarBearError(
        f"The study {name!r} was changed {_ATTEMPTS} times by another process while it was written. Try again."
    )


def _delete_earlier(storage: BaseStorage, name: str, race: str) -> None:
    """Delete the study that was written here before; refuse any other."""
    try:
        earlier = optuna.load_study(study_name=name, storage=storage)
    except KeyError:
        return
    written_for = earlier.user_attrs.get(_CANDIDATES_OF)
    if written_for != race:
        what = "a study of another kind" if written_for is None else f"the candidates of the study {written_for!r}"
        raise InvalidInputError(
            f"The storage has {what} under the name {name!r}, which is not replaced by the candidates of {race!r}. "
            "Give another study_name."
        )
    optuna.delete_study(study_name=name, storage=storage)


def _trials_behind(storage: BaseStorage, name: str, began: str) -> int:
    """Number of trials that a study of candidates rests on; 0 if it is not complete, or not about this race."""
    try:
        about = optuna.load_study(study_name=name, storage=storage).user_attrs
    except KeyError:
        return 0
    return int(about.get(_TRIALS, 0)) if about.get(_BEGAN) == began else 0
