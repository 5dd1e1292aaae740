"""Trajectories of Optuna studies: best value against trials, seconds or a reported resource.

Imported only for sources that are studies, since it needs Optuna.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from polarbear_plugins.adapters.optuna_study.options import StudyOptions, TimeAxis
from polarbear_plugins.errors import InvalidInputError, SourceError, reason
from polarbear_plugins.extras import require
from polarbear_plugins.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    import optuna
else:
    optuna = require("optuna", extra="optuna", who="Reading Optuna studies")

# From the trials of a study, the sign of its values and whether steps count from 0, to times, values and horizon.
_Points: TypeAlias = tuple[list[float], list[float], float]
_Clock: TypeAlias = Callable[[Sequence[optuna.trial.FrozenTrial], int, bool], _Points]


def read_studies(studies: Sequence[optuna.Study], options: StudyOptions) -> list[Trajectory]:
    """One trajectory for each study.

    :raises SourceError: a study is damaged, has no finished trial, or has no algorithm and instance.
    """
    if not studies:
        raise InvalidInputError(f"studies: no name matches {options.studies!r}.")
    finished = []
    for study in studies:
        with _naming_damage(study):
            finished.append(_finished_trials(study))
    # Some programs count epochs from 0, some from 1; one rule for all studies, so that they can be compared.
    from_zero = any(0 in trial.intermediate_values for trials in finished for trial in trials)
    trajectories: list[Trajectory] = []
    names: dict[tuple[str, str, int], str] = {}
    groups: dict[str, tuple[str | None, str]] = {}
    for study, trials in zip(studies, finished, strict=True):
        label = options.label_of(study)
        run = label.algorithm, label.instance, label.seed
        group, other = groups.setdefault(label.instance, (label.group, study.study_name))
        if group != label.group:
            raise SourceError(
                f"The instance {label.instance!r} has the group {group!r} in the study {other!r} and {label.group!r} "
                f"in {study.study_name!r}. Instances of different groups need different names."
            )
        if run in names:
            raise SourceError(
                f"The studies {names[run]!r} and {study.study_name!r} are both {label.algorithm!r} on "
                f"{label.instance!r} with the seed {label.seed}. Give repeated runs different seeds."
            )
        names[run] = study.study_name
        with _naming_damage(study):
            sign = -1 if study.direction == optuna.study.StudyDirection.MAXIMIZE else 1
            times, values, horizon = _CLOCKS[options.time](trials, sign, from_zero)
            trajectories.append(
                Trajectory.from_evaluations(
                    values,
                    algorithm=label.algorithm,
                    instance=label.instance,
                    seed=label.seed,
                    times=times,
                    horizon=horizon,
                    group=label.group,
                )
            )
    return trajectories


@contextmanager
def _naming_damage(study: optuna.Study) -> Iterator[None]:
    """Turn whatever damaged trials raise into an error that names the study."""
    try:
        yield
    except SourceError as problem:
        raise SourceError(f"The study {study.study_name!r} {problem}") from None
    except Exception as problem:  # Optuna checks what it writes, and trusts what it reads
        raise SourceError(f"The study {study.study_name!r} is damaged: {reason(problem)}") from None


def _finished_trials(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    if len(study.directions) > 1:
        raise SourceError(f"has {len(study.directions)} objectives; expected one.")
    trials = [trial for trial in study.get_trials(deepcopy=False) if trial.state.is_finished()]
    if not trials:
        raise SourceError("has no finished trial. Leave it out with studies=, a pattern of names.")
    return sorted(trials, key=lambda trial: trial.number)


def _value(trial: optuna.trial.FrozenTrial, sign: int) -> float:
    """Value of a trial, minimised; nan, as of a failed evaluation, if it failed, was pruned or broke a constraint."""
    feasible = all(violation <= 0 for violation in _constraints(trial).values())
    if trial.state != optuna.trial.TrialState.COMPLETE or not feasible:
        return math.nan
    if trial.value is None:
        raise SourceError(f"is damaged: trial {trial.number} is complete and has no value.")
    return sign * float(trial.value)


def _constraints(trial: optuna.trial.FrozenTrial) -> dict[str, float]:
    """Constraints of a trial by name; a value above 0 breaks one.

    Read from the storage's own form, as ``FrozenTrial.constraints`` of Optuna 5 does: Optuna 4 has no such attribute.
    """
    # All in one list from a sampler's constraints_func, None if that failed; one attribute each from set_constraint.
    listed = trial.system_attrs.get("constraints") or ()
    named = {key: value for key, value in trial.system_attrs.items() if key.startswith("constraints:")}
    return {f"constraints:{place}": value for place, value in enumerate(listed)} | named


def _by_trial(trials: Sequence[optuna.trial.FrozenTrial], sign: int, _: bool) -> _Points:
    times = [trial.number + 1.0 for trial in trials]
    return times, [_value(trial, sign) for trial in trials], times[-1]


def _by_seconds(trials: Sequence[optuna.trial.FrozenTrial], sign: int, _: bool) -> _Points:
    """Seconds since the first trial began; idle time between two sessions counts."""
    starts = [trial.datetime_start for trial in trials if trial.datetime_start is not None]
    ended = [(trial.datetime_complete, trial) for trial in trials if trial.datetime_complete is not None]
    if not starts or len(ended) < len(trials):
        raise SourceError('has trials without dates. Use time="trials" instead.')
    best: dict[float, float] = {}
    for end, trial in sorted(ended, key=lambda pair: pair[0]):
        time = max((end - min(starts)).total_seconds(), 0.0)
        value = _value(trial, sign)
        # Trials that ended in the same microsecond are one step of the trajectory.
        best[time] = value if math.isnan(best.get(time, math.nan)) else min(best[time], value)
    return list(best), list(best.values()), max(best)


def _by_step(trials: Sequence[optuna.trial.FrozenTrial], sign: int, from_zero: bool) -> _Points:
    """Resource spent: that of the trials before, each up to its last step, and the step itself."""
    times: list[float] = []
    values: list[float] = []
    spent = 0.0
    for trial in trials:
        steps = sorted(trial.intermediate_values.items())
        if steps and steps[0][0] < 0:
            raise SourceError(f"reports the step {steps[0][0]} in trial {trial.number}; a resource is not negative.")
        times += [spent + step + from_zero for step, _ in steps]
        values += [sign * float(value) for _, value in steps]
        spent = times[-1] if steps else spent
    if not times:
        raise SourceError('reports no steps. Use time="trials" or time="seconds" instead.')
    return times, values, spent


_CLOCKS: dict[TimeAxis, _Clock] = {"trials": _by_trial, "seconds": _by_seconds, "step": _by_step}
