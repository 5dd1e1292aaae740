"""A pruner for Optuna that races trials over folds, seeds or problem instances."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning
from polarbear_plugins.extras import require
from polarbear_plugins.plackett_luce.likelihood import margin_of
from polarbear_plugins.plackett_luce.pairwise import RatingMode

if TYPE_CHECKING:
    import optuna
else:
    optuna = require("optuna", extra="optuna", who="PolarBearPruner")


StepArray: TypeAlias = NDArray[np.int64]

# Storages keep steps as 32-bit whole numbers.
_LARGEST_STEP = 2**31 - 1


class PolarBearPruner(optuna.pruners.BasePruner):
    """Prune a trial once a finished trial is better with high posterior probability, at every timepoint seen.

    A trial reports its loss on one instance (fold, seed, problem) after another: ``trial.report(loss, step=instance)``.
    The same step must mean the same instance in all trials; their order does not matter, and is best drawn anew for
    each trial.  Only ranks on the same instance count, so instances may differ in scale.

    Parameters
    ----------
    alpha
        Posterior probability with which the finished trial must be better.  The larger, the fewer good trials are
        pruned; 0.98 prunes earlier than the default.
    epsilon
        Region of practical equivalence: the finished trial must beat this one with a probability above
        ``1/2 + epsilon``.  The larger, the later trials that are nearly as good are pruned.
    min_instances
        Instances that a trial reports before it may be pruned.
    max_references
        How many finished trials, those with the best values, are ranked with the current one.
    n_timepoints
        Timepoints (epochs) at which the loss on an instance is reported, by :meth:`report`.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", 0, 10)
    ...     losses = []
    ...     for fold in range(10):
    ...         losses.append((x - 2) ** 2 + fold)
    ...         trial.report(losses[-1], step=fold)
    ...         if trial.should_prune():
    ...             raise optuna.TrialPruned
    ...     return sum(losses) / len(losses)
    >>> sampler = optuna.samplers.RandomSampler(seed=1)
    >>> study = optuna.create_study(sampler=sampler, pruner=PolarBearPruner())
    >>> study.optimize(objective, n_trials=20)
    >>> sum(len(trial.intermediate_values) for trial in study.trials) < 20 * 10
    True
    """

    def __init__(
        self,
        *,
        alpha: float = 0.995,
        epsilon: float = 0.05,
        min_instances: int = 3,
        max_references: int = 16,
        n_timepoints: int = 1,
    ) -> None:
        self._alpha = as_number(alpha, "alpha", above=0.5, below=1)
        self._epsilon = as_number(epsilon, "epsilon", at_least=0, below=0.5)
        self._min_instances = as_whole_number(min_instances, "min_instances", at_least=1)
        self._max_references = as_whole_number(max_references, "max_references", at_least=1)
        self._n_timepoints = as_whole_number(n_timepoints, "n_timepoints", at_least=1)
        self._warned: set[str] = set()

    def __repr__(self) -> str:
        return (
            f"PolarBearPruner(alpha={self._alpha}, epsilon={self._epsilon}, min_instances={self._min_instances}, "
            f"max_references={self._max_references}, n_timepoints={self._n_timepoints})"
        )

    def report(self, trial: optuna.Trial, loss: float, *, instance: int, time: int = 0) -> None:
        """Report the loss on an instance at a timepoint, as step ``instance * n_timepoints + time``.

        Parameters
        ----------
        trial
            The trial that runs.
        loss
            As for ``trial.report``; ``nan`` means that the trial failed there.
        instance
            The same number for the same instance in all trials.
        time
            0 to ``n_timepoints - 1``.
        """
        time = as_whole_number(time, "time", at_least=0, at_most=self._n_timepoints - 1)
        most = (_LARGEST_STEP - time) // self._n_timepoints
        instance = as_whole_number(instance, "instance", at_least=0, at_most=most)
        trial.report(loss, instance * self._n_timepoints + time)

    def prune(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> bool:
        """Whether to prune a trial, given what it reported; Optuna calls this for ``trial.should_prune()``."""
        sign = _sign(study)
        seen = trial.intermediate_values
        if len({step // self._n_timepoints for step in seen}) < self._min_instances or not self._usable(trial):
            return False
        references = self._references(study, trial, sign)
        if not references:
            return False
        steps, losses = _table([*references, trial], sign)
        return self._dominated(losses, steps % self._n_timepoints)

    def estimate(self, study: optuna.Study, trial: optuna.Trial | optuna.trial.FrozenTrial) -> float:
        """Estimate of the value that a trial would have ended with, to be returned instead of raising ``TrialPruned``.

        Each finished trial gives a guess: its value plus the mean difference between the losses of this trial and its
        own, on the instances that both have.  The estimate is the median of the guesses, so that hard and easy
        instances cancel out.  A trial that failed on an instance is at least as bad as the worst finished trial.
        Without finished trials the estimate is the mean of the trial's own losses.

        The value is meant for objectives that are the mean of the losses.
        """
        sign = _sign(study)
        if not isinstance(trial, optuna.trial.FrozenTrial):
            [trial] = [one for one in study.get_trials(deepcopy=False) if one.number == trial.number]
        references = [one for one in self._references(study, trial, sign) if math.isfinite(one.value or 0.0)]
        steps, losses = _table([*references, trial], sign)
        # The last timepoint that the trial has seen on each instance.
        last = {int(step) // self._n_timepoints: row for row, step in enumerate(steps) if not np.isnan(losses[row, -1])}
        rows = list(last.values())
        own, others = losses[rows, -1], losses[rows, :-1]
        guesses, values = [], [sign * float(one.value or 0.0) for one in references]
        for value, other in zip(values, others.T, strict=True):
            both = np.isfinite(own) & np.isfinite(other)
            if both.any():
                guesses.append(value + float((own[both] - other[both]).mean()))
        finite = own[np.isfinite(own)]
        if not guesses:
            guesses = [float(finite.mean())] if finite.size else [math.inf]
        estimate = float(np.median(guesses))
        if values and np.isposinf(own).any():
            estimate = max(estimate, *values)
        return sign * estimate

    def _dominated(self, losses: FloatArray, times: StepArray) -> bool:
        """Whether one trial is better than the last, with probability alpha, at each timepoint of the last."""
        last = losses.shape[1] - 1
        margin = margin_of(self._epsilon)
        present = ~np.isnan(losses)
        shared = present[:, last] & present[:, :last].any(axis=1)
        modes, least = [], np.full(last, np.inf)
        for time in np.unique(times[present[:, last]]):
            here = times == time
            if np.count_nonzero(shared & here) < self._min_instances:
                return False
            modes.append(RatingMode(losses[here]))
            np.minimum(least, modes[-1].normal_scores(last, margin)[:last], out=least)
            if least.max() <= 0:
                return False
        # Only the trial that is most probably better is tested: each test is a chance of error.
        best = int(least.argmax())
        return all(mode.p_better(best, last, margin) >= self._alpha for mode in modes)

    def _references(
        self, study: optuna.Study, trial: optuna.trial.FrozenTrial, sign: float
    ) -> list[optuna.trial.FrozenTrial]:
        """Finished trials with the best values among those that share a step with the current one."""
        finished = [
            one
            for one in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
            if one.number != trial.number and one.intermediate_values
        ]
        finished.sort(key=lambda one: (sign * (one.value or 0.0), one.number))
        steps = trial.intermediate_values.keys()
        chosen: list[optuna.trial.FrozenTrial] = []
        for one in finished:
            if not steps.isdisjoint(one.intermediate_values) and self._usable(one):
                chosen.append(one)
                if len(chosen) == self._max_references:
                    break
        if finished and steps and not chosen:
            self._warn(
                "no shared step",
                f"Trial {trial.number} shares no step with any finished trial, so PolarBearPruner cannot compare them "
                f"and does not prune. Report the same step for the same instance in every trial.",
            )
        return chosen

    def _usable(self, trial: optuna.trial.FrozenTrial) -> bool:
        if min(trial.intermediate_values) >= 0:
            return True
        self._warn(
            "negative step",
            f"Trial {trial.number} has the negative step {min(trial.intermediate_values)}, so "
            f"PolarBearPruner ignores it. Number the instances from 0.",
        )
        return False

    def _warn(self, kind: str, message: str) -> None:
        """Warn about each kind of problem once."""
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(message, PolarBearWarning, stacklevel=2)


def report(trial: optuna.Trial, loss: float, *, instance: int, time: int = 0) -> None:
    """Report to the :class:`PolarBearPruner` of the trial's study, see :meth:`PolarBearPruner.report`."""
    pruner = trial.study.pruner
    if not isinstance(pruner, PolarBearPruner):
        raise InvalidInputError(
            f"report: expected a study with a PolarBearPruner, got {type(pruner).__name__}. "
            f"Where it is wrapped in another pruner, call its own method report."
        )
    pruner.report(trial, loss, instance=instance, time=time)


def _sign(study: optuna.Study) -> float:
    """Factor that turns the values of a study into values to be minimised."""
    if len(study.directions) > 1:
        raise InvalidInputError(f"PolarBearPruner needs a study with one objective, got {len(study.directions)}.")
    return -1.0 if study.directions[0] == optuna.study.StudyDirection.MAXIMIZE else 1.0


def _table(trials: Sequence[optuna.trial.FrozenTrial], sign: float) -> tuple[StepArray, FloatArray]:
    """All steps of some trials, and ``losses[step, trial]``: ``nan`` where there is none, infinite for a failure."""
    reports = [trial.intermediate_values for trial in trials]
    given = np.fromiter(itertools.chain.from_iterable(reports), dtype=np.int64)
    values = sign * np.fromiter(itertools.chain.from_iterable(one.values() for one in reports), dtype=np.float64)
    steps, row = np.unique(given, return_inverse=True)
    losses = np.full((steps.size, len(trials)), np.nan)
    column = np.repeat(np.arange(len(trials)), [len(one) for one in reports])
    losses[row, column] = np.where(np.isnan(values), np.inf, values)
    return steps, losses
