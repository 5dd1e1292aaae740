"""TPE with pruners of the comparison at equal budget: a trial is a configuration on all instances, unless pruned.

The pruners and how they are used are those of benchmarks/pruning_methods.py: ``wilcoxon-0.1`` has the lowest mean
regret there of those with ``study.best_trial``, ``polarbear-keep`` of those with the pick of ``likely_best``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import optuna
from equal_budget import BudgetSpentError, FoldObjective, Job
from fold_tasks import Parameters, Sources, Task
from pruning_methods import METHODS

from rivals.configuring.budget import Picks


@dataclass(frozen=True)
class Pruning:
    """A method of benchmarks/pruning_methods.py, one of its picks, and the name of the row."""

    method: str
    pick: str
    label: str


PRUNINGS = {
    "optuna": Pruning("wilcoxon-0.1", "best trial", "TPE, WilcoxonPruner"),
    "optuna-polarbear": Pruning("polarbear-keep", "likely best", "TPE, PolarBearPruner, likely_best"),
}


def configure(pruning: Pruning, task: Task, seed: int, budgets: Sequence[int]) -> Picks:
    """What a user would take at each budget of one study; a trial that the budget cuts off does not count."""
    study = _run_study(task, pruning.method, seed, max(budgets))
    pick = METHODS[pruning.method].picks[pruning.pick]
    picks: dict[int, Parameters | None] = {}
    for budget in budgets:
        picks[budget] = dict(pick(_beginning(study, budget)))
    return {pruning.label: picks}


def _run_study(task: Task, method: str, seed: int, budget: int) -> optuna.Study:
    unused = Sources(Path(), 0, None)  # the task is loaded already
    objective = FoldObjective(Job(task.name, "tpe", method, seed, budget // task.n_folds, unused), task)
    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=seed), pruner=METHODS[method].make_pruner(objective.plan)
    )
    study.optimize(objective, catch=BudgetSpentError, callbacks=[objective.stop])
    return study


def _beginning(study: optuna.Study, budget: int) -> optuna.Study:
    """A study with the first trials of another, those within the budget."""
    beginning, spent = optuna.create_study(pruner=study.pruner), 0
    for trial in study.get_trials(deepcopy=False):
        spent += len(trial.intermediate_values)
        if spent <= budget and trial.state.is_finished() and trial.state != optuna.trial.TrialState.FAIL:
            beginning.add_trial(trial)
    return beginning


RIVALS = {name: functools.partial(configure, pruning) for name, pruning in PRUNINGS.items()}
