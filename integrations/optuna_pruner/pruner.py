"""A pruner for Optuna that races trials over folds, seeds or problem instances."""

from __future__ import annotations

import math
import warnings
from typing import Literal, TypeAlias

import numpy as np
import optuna
from optuna.trial import FrozenTrial
from scipy.special import ndtri

from polarbear_plugins.arrays import BoolArray, FloatArray
from polarbear_plugins.checks import as_choice, as_number, as_whole_number
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning
from polarbear_plugins.integrations.optuna_pruner.explanations import Explanation
from polarbear_plugins.integrations.optuna_pruner.losses import StepArray, sign_of, table_of
from polarbear_plugins.integrations.optuna_pruner.references import References
from polarbear_plugins.integrations.optuna_pruner.study_storage import read_reason
from polarbear_plugins.plackett_luce.likelihood import margin_of
from polarbear_plugins.plackett_luce.pairwise import RatingMode

Goal: TypeAlias = Literal["keep", "optimize"]
Criterion: TypeAlias = Literal["mean", "rank"]

# How sure one must be that a finished trial is better.  To keep every good trial, very; to find a good one with a given
# number of evaluations, not very: benchmarks/evidence/equal_budget.py.
_ALPHA: dict[Goal, float] = {"keep": 0.995, "optimize": 0.8}
# Storages keep steps as 32-bit whole numbers.
_LARGEST_STEP = 2**31 - 1


class PolarBearPruner(optuna.pruners.BasePruner):
    """Prune a trial once a finished trial is better with high posterior probability, at every timepoint seen.

    A trial reports its loss on one instance (fold, seed, problem) after another: ``trial.report(loss, step=instance)``.
    The same step must mean the same instance in all trials; their order does not matter, and is best drawn anew for
    each trial.  Ranks on the same instance decide, so instances may differ in scale.

    Parameters
    ----------
    goal
        ``"keep"``: hardly ever prune a trial that is as good as the best.  ``"optimize"``: prune early, which leaves
        more of a given number of evaluations for other trials; let objectives return :meth:`estimate` then.
    alpha
        Posterior probability with which the finished trial must be better; by default 0.995 to ``keep`` and 0.8 to
        ``optimize``.  The larger, the fewer good trials are pruned.
    epsilon
        Region of practical equivalence: the finished trial must beat this one with a probability above
        ``1/2 + epsilon``.  The larger, the later trials that are nearly as good are pruned.
    criterion
        ``"mean"``: the objective returns the mean of the losses, so only a finished trial whose mean over the instances
        that both have reported is lower can be a reason to prune.  ``"rank"``: ranks alone, for losses that are not
        comparable between instances.
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
        goal: Goal = "keep",
        alpha: float | None = None,
        epsilon: float = 0.05,
        criterion: Criterion = "mean",
        min_instances: int = 3,
        max_references: int = 16,
        n_timepoints: int = 1,
    ) -> None:
        self._goal = as_choice(goal, Goal, "goal")
        self._alpha = _ALPHA[self._goal] if alpha is None else as_number(alpha, "alpha", above=0.5, below=1)
        self._epsilon = as_number(epsilon, "epsilon", at_least=0, below=0.5)
        self._criterion = as_choice(criterion, Criterion, "criterion")
        self._min_instances = as_whole_number(min_instances, "min_instances", at_least=1)
        self._max_references = as_whole_number(max_references, "max_references", at_least=1)
        self._n_timepoints = as_whole_number(n_timepoints, "n_timepoints", at_least=1)
        # The exact tail of the posterior is worth at most about twice the standard deviations of the approximation.
        self._hopeless = float(ndtri(self._alpha)) / 3
        self._lookups = References()
        self._warned: set[str] = set()

    def __repr__(self) -> str:
        return (
            f"PolarBearPruner(goal={self._goal!r}, alpha={self._alpha}, epsilon={self._epsilon}, "
            f"criterion={self._criterion!r}, min_instances={self._min_instances}, "
            f"max_references={self._max_references}, n_timepoints={self._n_timepoints})"
        )

    @property
    def goal(self) -> Goal:
        """What the pruner is for: to keep good trials, or to find one."""
        return self._goal

    @property
    def criterion(self) -> Criterion:
        """What decides between trials in the end: the mean of the losses, or their ranks alone."""
        return self._criterion

    @property
    def n_timepoints(self) -> int:
        """Timepoints at which the loss on an instance is reported."""
        return self._n_timepoints

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

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Whether to prune a trial, given what it reported; Optuna calls this for ``trial.should_prune()``.

        A trial that is to be pruned keeps the reason as a user attribute, see :func:`explain`.
        """
        sign = sign_of(study)
        seen = trial.intermediate_values
        if len({step // self._n_timepoints for step in seen}) < self._min_instances or not self._usable(trial):
            return False
        references = self._references(study, trial, sign)
        if not references:
            return False
        steps, losses = table_of([*references, trial], sign)
        times = steps % self._n_timepoints
        verdict = self._best_rival(losses, times)
        if verdict is None:
            return False
        rival, probability = verdict
        pair = losses[:, [rival, -1]]
        shared = ~np.isnan(pair).any(axis=1)
        latest = shared & (times == times[shared].max())
        mean_by, mean = (_finite_mean(sign * one) for one in pair[latest].T)
        instances = tuple(np.unique(steps[shared] // self._n_timepoints).tolist())
        Explanation(references[rival].number, probability, instances, mean, mean_by).keep(study, trial)
        return True

    def estimate(self, study: optuna.Study, trial: optuna.Trial | FrozenTrial) -> float:
        """Estimate of the value that a trial would have ended with, to be returned instead of raising ``TrialPruned``.

        Each finished trial gives a guess: its value plus the mean difference between the losses of this trial and its
        own, on the instances that both have.  The estimate is the median of the guesses, so that hard and easy
        instances cancel out.  A trial that failed on an instance is at least as bad as the worst finished trial.
        Without finished trials the estimate is the mean of the trial's own losses.

        A trial that :meth:`prune` has judged is worse than the one that was better: the estimate is never below the
        value of that one, so that it does not become the best trial of the study.

        The value is meant for objectives that are the mean of the losses.
        """
        sign = sign_of(study)
        if not isinstance(trial, FrozenTrial):
            [trial] = [one for one in study.get_trials(deepcopy=False) if one.number == trial.number]
        references = [one for one in self._references(study, trial, sign) if math.isfinite(one.value or 0.0)]
        steps, losses = table_of([*references, trial], sign)
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
        reason = read_reason(trial)
        rivals = [one for one in self._lookups.finished(study, trial, sign) if reason and one.number == reason["by"]]
        return sign * max([estimate, *(math.nextafter(sign * (one.value or 0.0), math.inf) for one in rivals)])

    def _best_rival(self, losses: FloatArray, times: StepArray) -> tuple[int, float] | None:
        """The trial that is better than the last one with probability alpha, at each timepoint of the last one.

        Only the trial that is most probably better is tested: each test is a chance of error.
        """
        last = losses.shape[1] - 1
        margin = margin_of(self._epsilon)
        present = ~np.isnan(losses)
        shared = present[:, last] & present[:, :last].any(axis=1)
        candidates = self._candidates(losses, times)
        modes, least = [], np.where(candidates, np.inf, -np.inf)
        for time in np.unique(times[present[:, last]]):
            here = times == time
            if least.max() <= 0 or np.count_nonzero(shared & here) < self._min_instances:
                return None
            modes.append(RatingMode(losses[here]))
            np.minimum(least, modes[-1].normal_scores(last, margin)[:last], out=least)
        rival = int(least.argmax())
        if least[rival] <= self._hopeless:
            return None
        probability = 1.0
        for mode in modes:
            probability = min(probability, mode.p_better(rival, last, margin))
            if probability < self._alpha:
                return None
        return rival, probability

    def _candidates(self, losses: FloatArray, times: StepArray) -> BoolArray:
        """Which trials may be better than the last one, by the criterion.

        Those with a lower mean on the instances that both have reported, at each timepoint at which there is one.
        Where both means are infinite, they say nothing.
        """
        others, own = losses[:, :-1], losses[:, -1:]
        candidates = np.ones(others.shape[1], dtype=bool)
        if self._criterion == "rank":
            return candidates
        both = ~np.isnan(others) & ~np.isnan(own)
        for time in np.unique(times):
            here = both & (times == time)[:, None]
            with np.errstate(invalid="ignore"):  # infinite losses of either sign
                # Sums over the same instances compare as means do.
                theirs, mine = np.where(here, others, 0.0).sum(axis=0), np.where(here, own, 0.0).sum(axis=0)
            as_good = (mine <= theirs) & (mine < np.inf)
            candidates &= ~as_good | ~here.any(axis=0)
        return candidates

    def _references(self, study: optuna.Study, trial: FrozenTrial, sign: float) -> list[FrozenTrial]:
        """Finished trials with the best values among those that share a step with the current one."""
        chosen = self._lookups.best(study, trial, sign, self._usable, self._max_references)
        others = (one for one in self._lookups.finished(study, trial, sign) if one.number != trial.number)
        if not chosen and trial.intermediate_values and any(others):
            self._warn(
                "no shared step",
                f"Trial {trial.number} shares no step with any finished trial, so PolarBearPruner cannot compare them "
                f"and does not prune. Report the same step for the same instance in every trial.",
            )
        return chosen

    def _usable(self, trial: FrozenTrial) -> bool:
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


def _finite_mean(losses: FloatArray) -> float | None:
    """Mean of some losses; ``None`` if one of them is not finite."""
    return float(losses.mean()) if np.isfinite(losses).all() else None


def report(trial: optuna.Trial, loss: float, *, instance: int, time: int = 0) -> None:
    """Report to the :class:`PolarBearPruner` of the trial's study, see :meth:`PolarBearPruner.report`."""
    pruner = trial.study.pruner
    if not isinstance(pruner, PolarBearPruner):
        raise InvalidInputError(
            f"report: expected a study with a PolarBearPruner, got {type(pruner).__name__}. "
            f"Where it is wrapped in another pruner, call its own method report."
        )
    pruner.report(trial, loss, instance=instance, time=time)
