"""Minimize a quadratic function that is measured on noisy instances."""

from __future__ import annotations

import numpy as np
import optuna
import optunahub


module = optunahub.load_module(package="pruners/polarbear")
rng = np.random.default_rng(1)


def objective(trial: optuna.Trial) -> float:
    """Mean loss over twenty instances, in an order drawn anew for each trial."""
    x = trial.suggest_float("x", -5, 5)
    losses = []
    for instance in rng.permutation(20):
        losses.append(x**2 + instance + float(rng.normal()))
        trial.report(losses[-1], step=int(instance))
        if trial.should_prune():
            raise optuna.TrialPruned
    return float(np.mean(losses))


pruner = module.PolarBearPruner()
study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1), pruner=pruner)
study.optimize(objective, n_trials=40)

evaluations = sum(len(trial.intermediate_values) for trial in study.trials)
pruned = study.get_trials(states=(optuna.trial.TrialState.PRUNED,))
print(f"{evaluations} of {20 * len(study.trials)} evaluations, {len(pruned)} trials pruned")
print("best:", study.best_params)
