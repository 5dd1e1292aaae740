"""Ridge regression over folds, before and after: evaluations spent, and what is chosen.

python examples/optuna_pruner.py --quick
"""

import argparse

import numpy as np
import optuna

from polarbear_plugins.integrations.optuna_pruner import PolarBearPruner


def main() -> None:
    """Tune the same model without pruning and with it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer trials")
    quick = parser.parse_args().quick
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 40))
    y = x @ (rng.normal(size=40) * (rng.random(40) < 0.3)) + 3 * rng.normal(size=200)
    folds = np.array_split(rng.permutation(200), 20)

    def loss(penalty: float, fold: int) -> float:
        test = folds[fold]
        train = np.setdiff1d(np.arange(200), test)
        inside = x[train]
        weights = np.linalg.solve(inside.T @ inside + penalty * np.eye(40), inside.T @ y[train])
        return float(np.mean((y[test] - x[test] @ weights) ** 2))

    def objective(trial: optuna.Trial) -> float:
        penalty = trial.suggest_float("penalty", 1e-2, 1e5, log=True)
        losses = []
        for fold in np.random.default_rng(trial.number).permutation(20):
            losses.append(loss(penalty, int(fold)))
            trial.report(losses[-1], int(fold))
            if trial.should_prune():
                raise optuna.TrialPruned
        return float(np.mean(losses))

    spent = []
    for pruner in (optuna.pruners.NopPruner(), PolarBearPruner()):
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1), pruner=pruner)
        study.optimize(objective, n_trials=20 if quick else 100)
        spent.append(sum(len(trial.intermediate_values) for trial in study.trials))
        best, penalty = study.best_value, study.best_params["penalty"]
        print(f"{type(pruner).__name__:16s} {spent[-1]:5d} evaluations, penalty {penalty:8.3g}, loss {best:.3f}")
    print(f"{1 - spent[1] / spent[0]:.0%} fewer evaluations")


if __name__ == "__main__":
    main()
