"""Race settings of a model over folds inside Optuna, and ask which one is probably the best.

    python examples/optuna_race.py --quick
    python examples/optuna_race.py --trials 400

Ridge regression on noisy data: which degree and penalty? A trial fits one candidate on one fold. Plain search would try
each candidate on all folds, or believe a lucky one. Needs: pip install 'polarbear-plugins[optuna]'
"""

from __future__ import annotations

import argparse

import numpy as np
import optuna

from polarbear_plugins import RaceSettings
from polarbear_plugins.integrations.optuna_sampler import PolarBearSampler, likely_best, race_result

FOLDS = 40


def objective(trial: optuna.Trial) -> float:
    """Error of a polynomial on one fold."""
    fold = trial.suggest_int("instance", 0, FOLDS - 1)  # the race decides which
    degree = trial.suggest_int("degree", 1, 12)
    penalty = trial.suggest_float("penalty", 1e-6, 10, log=True)
    rng = np.random.default_rng(fold)
    x = rng.uniform(-1, 1, 60)
    y = np.sin(3 * x) + 0.3 * rng.normal(size=60)
    powers = x[:, None] ** np.arange(degree + 1)
    train, test = powers[:25], powers[25:]
    weights = np.linalg.solve(train.T @ train + penalty * np.eye(degree + 1), train.T @ y[:25])
    return float(np.mean((test @ weights - y[25:]) ** 2))


def main() -> None:
    """Race given candidates, then let TPE propose others."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="60 trials for each of the two races")
    parser.add_argument("--trials", type=int, default=400)
    arguments = parser.parse_args()
    trials = 60 if arguments.quick else arguments.trials
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    settings = RaceSettings(alpha=0.95, epsilon=0.1, batch_size=4, batch_min=2, draws=1000, seed=1)

    given = [{"degree": degree, "penalty": penalty} for degree in (1, 3, 9) for penalty in (1e-4, 0.1)]
    study = optuna.create_study(sampler=PolarBearSampler(given, settings=settings))
    study.optimize(objective, n_trials=trials)
    result = race_result(study)
    print(
        f"{len(given)} candidates, {FOLDS} folds, {len(study.trials)} of {len(given) * FOLDS} trials: {result.stopped}"
    )
    print(result.summary()[["status", "by", "probability", "instances"]].to_string())
    best = likely_best(study)
    print(f"probably the best: {best.parameters} (P = {best.probability:.2f} after {best.evaluations} folds)")

    study = optuna.create_study(sampler=PolarBearSampler(settings=settings, n_candidates=4))
    study.optimize(objective, n_trials=trials)
    result, best = race_result(study), likely_best(study)
    print(f"\nfrom TPE: {len(result.algorithms)} candidates, {len(result.eliminations)} eliminated, {trials} trials")
    print(f"probably the best: {best.parameters} (P = {best.probability:.2f} after {best.evaluations} folds)")


if __name__ == "__main__":
    main()
