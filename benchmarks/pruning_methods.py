"""Ways to prune trials over folds: a pruner, what its user reports, how a pruned trial ends, and which trial is picked.

Each pruner is used as its documentation recommends.  WilcoxonPruner and PolarBearPruner get the loss on each fold, with
the fold as ``step``, in an order that is drawn for each trial.  The others compare trials at the same step, and get the
mean so far, with the number of folds as ``step``; folds come in the same order in all trials, so that the means they
compare are over the same folds.  WilcoxonPruner's documentation returns the mean so far instead of raising
TrialPruned.

The pick "likely best" is that of ``likely_best``.  It works with any pruner that gets the loss on each fold, so
that what pruning gains and what the pick gains can be told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias
from unittest import mock

import numpy as np
import optuna
from fold_tasks import FloatArray, Parameters
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner, SuccessiveHalvingPruner, WilcoxonPruner
from scipy import stats

from polarbear_plugins.integrations.optuna_pruner import PolarBearPruner
from polarbear_plugins.integrations.optuna_sampler import likely_best

#: Value of a pruned trial, given the study, the trial and its losses so far; or raises TrialPruned.
Ending: TypeAlias = Callable[[optuna.Study, optuna.Trial, Sequence[float]], float]
#: The parameters that a user takes from a study.
Pick: TypeAlias = Callable[[optuna.Study], Parameters]


@dataclass(frozen=True)
class Plan:
    """What a user knows before the study: folds of a trial, and evaluations in all."""

    n_folds: int
    budget: int


def raise_pruned(*_: object) -> float:
    """End as pruned, as most users do."""
    raise optuna.TrialPruned


def mean_so_far(_study: optuna.Study, _trial: optuna.Trial, losses: Sequence[float]) -> float:
    """End as complete, with the mean over the folds that were evaluated."""
    return float(np.mean(losses))


def estimated(study: optuna.Study, trial: optuna.Trial, _losses: Sequence[float]) -> float:
    """End as complete, with the pruner's estimate."""
    pruner = study.pruner
    if not isinstance(pruner, PolarBearPruner):
        raise TypeError(f"estimated: expected a study with a PolarBearPruner, got {type(pruner).__name__}.")
    return pruner.estimate(study, trial)


def best_trial(study: optuna.Study) -> Parameters:
    """The trial with the lowest value among the complete ones, estimates included."""
    return study.best_trial.params


def most_likely_best(study: optuna.Study) -> Parameters:
    """The configuration with the lowest posterior mean, pruned ones included."""
    return likely_best(study, steps="instances").parameters


class QuickWilcoxonPruner(WilcoxonPruner):
    """Optuna's pruner with the same p-values, quicker.

    For up to 13 differences with ties scipy enumerates all signs, which takes up to two seconds a call.  Here the same
    probability is counted without enumeration.
    """

    def prune(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> bool:
        """Whether to prune a trial."""
        with mock.patch.object(stats, "permutation_test", count_signs):
            return super().prune(study, trial)


def count_signs(data: tuple[FloatArray], _statistic: object, *, alternative: str, **_: object) -> SimpleNamespace:
    """Share of the 2^n signs with which positive differences have at least the observed sum of ranks.

    >>> float(count_signs((np.array([1.0, 1.0, -1.0]),), None, alternative="greater").pvalue)
    0.5
    """
    if alternative != "greater":
        raise ValueError(
            f"count_signs: expected alternative='greater', for a study that minimises, got {alternative!r}."
        )
    [differences] = data
    # Twice the rank is a whole number.  Zeros keep their rank, but have no sign.
    ranks = np.rint(2 * stats.rankdata(np.abs(differences))).astype(int)
    signed = ranks[differences != 0]
    counts = np.zeros(signed.sum() + 1)
    counts[0] = 1
    for rank in signed:
        counts[rank:] += counts[:-rank].copy()
    observed = ranks[differences > 0].sum()
    return SimpleNamespace(pvalue=counts[observed:].sum() / counts.sum())


@dataclass(frozen=True)
class Method:
    """How a user prunes.

    Parameters
    ----------
    make_pruner
        The pruner of a study, for a plan.
    report
        ``"fold"``: the loss on each fold, in an order that is drawn for each trial; ``"mean"``: the mean so far.
    ending
        What the objective does when it is told to prune.
    picks
        Which parameters the user takes in the end; each pick is a row of the results.
    """

    make_pruner: Callable[[Plan], BasePruner]
    report: Literal["fold", "mean"] = "mean"
    ending: Ending = raise_pruned
    picks: Mapping[str, Pick] = field(default_factory=lambda: {"best trial": best_trial})


#: For studies with the loss on each fold: the posterior pick does not depend on the pruner.
BOTH_PICKS = {"best trial": best_trial, "likely best": most_likely_best}


def wilcoxon(p_threshold: float) -> Method:
    """Optuna's WilcoxonPruner."""
    return Method(lambda _: QuickWilcoxonPruner(p_threshold=p_threshold), "fold", mean_so_far, BOTH_PICKS)


def polarbear(ending: Ending, **options: Any) -> Method:
    """PolarBearPruner with options."""
    return Method(lambda _: PolarBearPruner(**options), "fold", ending, BOTH_PICKS)


METHODS = {
    "none": Method(lambda _: NopPruner(), "fold", picks=BOTH_PICKS),
    "median": Method(lambda _: MedianPruner()),
    "halving-2": Method(lambda _: SuccessiveHalvingPruner(min_resource=1, reduction_factor=2)),
    "halving-4": Method(lambda _: SuccessiveHalvingPruner(min_resource=1, reduction_factor=4)),
    "hyperband": Method(lambda plan: HyperbandPruner(min_resource=1, max_resource=plan.n_folds)),
    "wilcoxon-0.1": wilcoxon(0.1),
    "wilcoxon-0.01": wilcoxon(0.01),
    "polarbear-keep": polarbear(raise_pruned),
    "polarbear-optimize": polarbear(estimated, goal="optimize"),
}
