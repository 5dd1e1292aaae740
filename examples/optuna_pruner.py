"""Tune a model of scikit-learn over folds, before and after: evaluations spent, and what is chosen.

    python examples/optuna_pruner.py --quick

Support vector regression on the diabetes data, 5-fold cross-validation repeated four times. Needs:
pip install 'polarbear-plugins[optuna,examples]'
"""

import argparse

import optuna
from sklearn.datasets import load_diabetes
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import RepeatedKFold
from sklearn.svm import SVR

from polarbear_plugins.integrations.optuna_pruner import PolarBearPruner, explain, race_folds
from polarbear_plugins.integrations.optuna_sampler import likely_best


def main() -> None:
    """Tune the same model without pruning and with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 trials instead of 60")
    trials = 20 if parser.parse_args().quick else 60
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    x, y = load_diabetes(return_X_y=True)
    x = x / x.std(axis=0)
    splitter = RepeatedKFold(n_splits=5, n_repeats=4, random_state=1)

    def objective(trial: optuna.Trial) -> float:
        model = SVR(
            C=trial.suggest_float("C", 0.1, 1e4, log=True),
            gamma=trial.suggest_float("gamma", 1e-4, 1.0, log=True),
        )
        folds = race_folds(trial, splitter, x)
        for fold in folds:
            model.fit(x[fold.train], y[fold.train])
            fold.report(mean_squared_error(y[fold.test], model.predict(x[fold.test])))
        return folds.value

    spent = []
    for pruner in (optuna.pruners.NopPruner(), PolarBearPruner()):
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1), pruner=pruner)
        study.optimize(objective, n_trials=trials)
        spent.append(sum(len(trial.intermediate_values) for trial in study.trials))
        chosen = ", ".join(f"{name} {value:.3g}" for name, value in study.best_params.items())
        print(f"{type(pruner).__name__:16s} {spent[-1]:5d} fits, chosen: {chosen}, loss {study.best_value:.1f}")
    print(f"{1 - spent[1] / spent[0]:.0%} fewer fits\n")
    print("Why trials were pruned:")
    print(explain(study)[["by", "probability", "mean", "mean_by"]].head().round(3).to_string(), "\n")
    print(likely_best(study))


if __name__ == "__main__":
    main()
