"""Race quadratic functions over noisy instances."""

import numpy as np
import optuna
import optunahub

pruner = optunahub.load_module("pruners/polarbear").PolarBearPruner()
rng = np.random.default_rng(1)


def objective(trial: optuna.Trial) -> float:
    """Mean loss over twenty instances in random order."""
    x = trial.suggest_float("x", -5, 5)
    losses = []
    for instance in rng.permutation(20):
        losses.append(x**2 + instance + float(rng.normal()))
        trial.report(losses[-1], int(instance))
        if trial.should_prune():
            raise optuna.TrialPruned
    return float(np.mean(losses))


study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1), pruner=pruner)
study.optimize(objective, n_trials=20)
