"""Race four given candidates over noisy instances."""

from __future__ import annotations

import numpy as np
import optuna
import optunahub


module = optunahub.load_module(package="samplers/polarbear")


def objective(trial: optuna.Trial) -> float:
    """Loss of one candidate on one instance, which the race chooses."""
    instance = trial.suggest_int("instance", 0, 99)
    x = trial.suggest_float("x", -5, 5)
    noise = np.random.default_rng((instance, abs(int(10 * x)))).normal()
    return x**2 + instance + float(noise)


candidates = [{"x": 0.0}, {"x": 0.5}, {"x": -2.0}, {"x": 4.0}]
study = optuna.create_study(sampler=module.PolarBearSampler(candidates, seed=1))
study.optimize(objective, n_trials=400)

print(module.race_result(study).summary())
print(module.likely_best(study))
