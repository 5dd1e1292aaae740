"""What the pruner keeps in the storage of a study, and its only use of Optuna's private names.

A pruner is handed a frozen trial, and Optuna has no public way from there to the attributes of the trial.  Its own
pruners write theirs by ``study._storage`` and ``trial._trial_id``; so does this module, and nothing else here.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import optuna
from optuna.trial import FrozenTrial

_PRUNED = "polarbear:pruned"  # user attribute of a trial: why it was pruned


def identity_of(study: optuna.Study) -> tuple[str, int, int]:
    """What tells a study from others that a pruner is asked about: studies in two storages may have the same name."""
    return study.study_name, id(study._storage), study._study_id


def read_reason(trial: FrozenTrial) -> dict[str, Any] | None:
    """Why a trial was pruned, as it was written; ``None`` if it was not."""
    return trial.user_attrs.get(_PRUNED)


def write_reason(study: optuna.Study, trial: FrozenTrial, reason: Mapping[str, Any]) -> None:
    """Write why a trial is pruned; nothing is written to a trial that has ended or is not in the storage."""
    with suppress(KeyError, RuntimeError):
        study._storage.set_trial_user_attr(trial._trial_id, _PRUNED, dict(reason))
