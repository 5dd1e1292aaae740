"""What a race keeps in the storage of a study, and the only use of Optuna's private names.

Optuna has no public way to a study's storage, to the attributes that a sampler keeps there, or to the trials that some
pruners hide.  Its own samplers reach them by ``study._storage``, ``study._study_id`` and ``trial._trial_id``; so does
this module, and nothing else in this package.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict, cast

import optuna
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

_RACE = "polarbear:race"  # attribute of a study: the rules of its race
_CELL = "polarbear:cell"  # attribute of a trial: its assignment


class Assignment(TypedDict):
    """Which candidate a trial runs on which instance.

    ``instance`` is the position in the order in which the race draws instances.  ``founder`` is set in the first trial
    of a candidate: the round in which the candidate enters.  ``sure``: the trial has seen no other trial with a lower
    number and the same assignment.  ``failed``: the objective failed, and not the process that ran it.
    """

    candidate: str
    instance: int
    founder: int | None
    sure: NotRequired[bool]
    failed: NotRequired[bool]


def assignment_of(trial: FrozenTrial) -> Assignment | None:
    """Assignment of a trial as it was when the trial was read; ``None`` if the trial is not part of the race."""
    return cast("Assignment | None", trial.system_attrs.get(_CELL))


def read_assignment(study: optuna.Study, trial: FrozenTrial) -> Assignment | None:
    """Assignment of a trial as it is in the storage now: Optuna hands over a trial from before it was written."""
    return cast("Assignment | None", study._storage.get_trial_system_attrs(trial._trial_id).get(_CELL))


def write_assignment(study: optuna.Study, trial: FrozenTrial, assignment: Assignment) -> None:
    """Write the assignment of a trial into the storage."""
    study._storage.set_trial_system_attr(trial._trial_id, _CELL, cast("dict[str, Any]", assignment))


def read_rules(study: optuna.Study) -> dict[str, Any] | None:
    """Rules of the race in a study, as JSON data; ``None`` if there are none."""
    return study._storage.get_study_system_attrs(study._study_id).get(_RACE)


def write_rules(study: optuna.Study, rules: Mapping[str, Any]) -> None:
    """Write the rules of the race into the storage."""
    study._storage.set_study_system_attr(study._study_id, _RACE, dict(rules))


def read_all_trials(study: optuna.Study) -> list[FrozenTrial]:
    """Trials of a study, with those that the study hides from its sampler, as under Hyperband."""
    return study._storage.get_all_trials(study._study_id, deepcopy=False)


def storage_of(study: optuna.Study) -> BaseStorage:
    """Storage of a study."""
    return study._storage


def study_id(study: optuna.Study) -> int:
    """Identifier of a study in its storage."""
    return study._study_id


def as_ended(
    trial: FrozenTrial, assignment: Assignment, state: TrialState, values: Sequence[float] | None
) -> FrozenTrial:
    """A trial as it will be when the storage has its end."""
    ended = copy.copy(trial)
    ended.state, ended.values = state, values
    ended.system_attrs = {**trial.system_attrs, _CELL: cast("dict[str, Any]", assignment)}
    return ended


def trial_id(trial: FrozenTrial) -> int:
    """Identifier of a trial in its storage; numbers are unique only within a study."""
    return trial._trial_id
