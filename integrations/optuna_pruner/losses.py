"""Losses that trials have reported, as arrays."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.trial import FrozenTrial

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError

StepArray: TypeAlias = NDArray[np.int64]


def sign_of(study: optuna.Study) -> float:
    """Factor that turns the values of a study into values to be minimised."""
    if len(study.directions) > 1:
        raise InvalidInputError(
            f"PolarBearPruner needs a study with one objective, got {len(study.directions)}. Optuna prunes no trial "
            f"with several: optimise them one by one, or a weighted sum, or leave the pruner out."
        )
    return -1.0 if study.directions[0] == optuna.study.StudyDirection.MAXIMIZE else 1.0


def table_of(trials: Sequence[FrozenTrial], sign: float) -> tuple[StepArray, FloatArray]:
    """All steps of some trials, and ``losses[step, trial]``: ``nan`` where there is none, infinite for a failure."""
    reports = [trial.intermediate_values for trial in trials]
    given = np.fromiter(itertools.chain.from_iterable(reports), dtype=np.int64)
    values = sign * np.fromiter(itertools.chain.from_iterable(one.values() for one in reports), dtype=np.float64)
    steps, row = np.unique(given, return_inverse=True)
    losses = np.full((steps.size, len(trials)), np.nan)
    column = np.repeat(np.arange(len(trials)), [len(one) for one in reports])
    losses[row, column] = np.where(np.isnan(values), np.inf, values)
    return steps, losses
