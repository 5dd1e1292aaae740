"""Race four candidates over noisy instances."""

import numpy as np
import optuna
import optunahub

package = optunahub.load_module("samplers/polarbear")


def objective(trial: optuna.Trial) -> float:
    """Loss of one candidate on one instance, which the race chooses."""
    instance = trial.suggest_int("instance", 0, 99)
    x = trial.suggest_float("x", -5, 5)
    return x**2 + instance + float(np.random.default_rng((instance, abs(int(10 * x)))).normal())


candidates = [{"x": 0.0}, {"x": 0.5}, {"x": -2.0}, {"x": 4.0}]
study = optuna.create_study(sampler=package.PolarBearSampler(candidates, seed=1))
study.optimize(objective, n_trials=400)
print(package.race_result(study).summary())
print(package.likely_best(study))
