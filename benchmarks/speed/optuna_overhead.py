"""What the pruner and the sampler cost beside the objective.

    python benchmarks/speed/optuna_overhead.py

should_prune: CPU milliseconds of a call, in a study in memory with 100 finished trials of 50 steps, when the trial has
reported 5, 25 or 50 steps, with values that differ and with values that tie, beside Optuna's WilcoxonPruner.
ask: CPU milliseconds of a trial under PolarBearSampler with 16 given candidates, beside Optuna's GridSampler.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import optuna

from polarbear_plugins.integrations.optuna_pruner import PolarBearPruner
from polarbear_plugins.integrations.optuna_sampler import PolarBearSampler

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure

STEPS = 50


def filled_study(trials: int, digits: int | None) -> optuna.Study:
    """Make a study with finished trials; few digits make ties."""
    rng = np.random.default_rng(1)
    study = optuna.create_study()
    for effect in rng.gamma(2.0, 1.0, trials):
        values = effect + rng.normal(size=STEPS)
        if digits is not None:
            values = values.round(digits)
        reports = dict(enumerate(values.tolist()))
        study.add_trial(optuna.trial.create_trial(value=float(values.mean()), intermediate_values=reports))
    return study


def milliseconds(study: optuna.Study, pruner: optuna.pruners.BasePruner, reported: int, digits: int | None) -> float:
    """Time of a call of should_prune for a trial of the middle field, the median of several."""
    rng = np.random.default_rng(2)
    times = []
    for _ in range(9):
        values = 1.0 + rng.normal(size=reported)
        if digits is not None:
            values = values.round(digits)
        trial = optuna.trial.create_trial(
            state=optuna.trial.TrialState.RUNNING, intermediate_values=dict(enumerate(values.tolist()))
        )
        trial.number = len(study.trials)
        began = time.process_time()
        pruner.prune(study, trial)
        times.append(time.process_time() - began)
    return 1000 * float(np.median(times))


def trial_milliseconds(sampler: optuna.samplers.BaseSampler, trials: int) -> float:
    """Time of a trial whose objective takes none."""
    study = optuna.create_study(sampler=sampler)
    rng = np.random.default_rng(3)

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_int("instance", 0, 99)
        return trial.suggest_int("x", 0, 15) + 20 * float(rng.normal())

    began = time.process_time()
    study.optimize(objective, n_trials=trials)
    return 1000 * (time.process_time() - began) / len(study.trials)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100, help="finished trials of the study (default: 100)")
    arguments = parse_arguments(parser, {"trials": 10})
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    print(f"should_prune, CPU ms a call, {arguments.trials} finished trials of {STEPS} steps")
    print(f"{'values':>8s} {'reported':>8s} {'PolarBear':>10s} {'Wilcoxon':>10s} {'ratio':>7s}")
    for name, digits in (("differ", None), ("tie", 0)):
        study = filled_study(arguments.trials, digits)
        for reported in (5, 25, STEPS):
            ours = milliseconds(study, PolarBearPruner(), reported, digits)
            theirs = milliseconds(study, optuna.pruners.WilcoxonPruner(), reported, digits)
            report_figure(
                f"{name:>8s} {reported:8d} {ours:10.2f} {theirs:10.2f} {ours / theirs:7.2f}",
                f"time of should_prune, {reported} steps, values {name}",
                ours / theirs,
                "WilcoxonPruner",
                "lower",
            )
    ours = trial_milliseconds(PolarBearSampler([{"x": x} for x in range(16)], seed=1), 300)
    theirs = trial_milliseconds(optuna.samplers.GridSampler({"instance": range(100), "x": range(16)}, seed=1), 300)
    report_figure(
        f"a trial, CPU ms: PolarBearSampler {ours:.2f}, GridSampler {theirs:.2f}, ratio {ours / theirs:.2f}",
        "time of a trial",
        ours / theirs,
        "GridSampler",
        "lower",
    )


if __name__ == "__main__":
    main()
