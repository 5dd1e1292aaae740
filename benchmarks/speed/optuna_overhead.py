"""What the pruner and the sampler cost beside the objective.

    python benchmarks/speed/optuna_overhead.py

should_prune: CPU milliseconds of a call, in a study in memory with 100 finished trials of 50 steps, when the trial has
reported 5, 25 or 50 steps, with values that differ and with values that tie, beside Optuna's WilcoxonPruner.
A trial: CPU milliseconds by hundreds of trials of a study in memory, under PolarBearSampler with 40 given candidates
and with candidates from TPESampler, beside TPESampler alone; growth is the last hundred against the second.  Of the
times that a trial reads all trials, one is Optuna's own.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

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


class CountingStorage(optuna.storages.InMemoryStorage):
    """Counts how often all trials are read."""

    reads = 0

    def get_all_trials(self, *arguments: Any, **options: Any) -> Any:
        """Trials of a study."""
        self.reads += 1
        return super().get_all_trials(*arguments, **options)


def by_hundreds(sampler: optuna.samplers.BaseSampler, trials: int) -> tuple[list[float], float]:
    """Time of a trial whose objective takes none, in each hundred of trials; and how often all trials were read."""
    storage = CountingStorage()
    study = optuna.create_study(sampler=sampler, storage=storage)
    rng = np.random.default_rng(3)

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_int("instance", 0, 199)
        return trial.suggest_int("x", 0, 39) + 100 * float(rng.normal())

    times = []
    for _ in range(max(trials // 100, 1)):
        began = time.process_time()
        study.optimize(objective, n_trials=100)
        times.append(10 * (time.process_time() - began))
    reads = storage.reads
    return times, reads / len(study.get_trials(deepcopy=False))


def report_samplers(trials: int) -> None:
    """Print a row for each sampler, and how ours compare."""
    print(f"a trial, CPU ms by hundreds of {trials} trials, and how often it reads all trials")
    alone, reads = by_hundreds(optuna.samplers.TPESampler(seed=1), trials)
    print(f"{'TPESampler':>26s} {' '.join(f'{ms:5.1f}' for ms in alone)}  {reads:4.1f}")
    samplers = {
        "40 given candidates": PolarBearSampler([{"x": x} for x in range(40)], seed=1),
        "candidates from TPESampler": PolarBearSampler(seed=1),
    }
    for name, sampler in samplers.items():
        times, reads = by_hundreds(sampler, trials)
        ratio, growth = times[-1] / alone[-1], times[-1] / times[min(1, len(times) - 1)]
        report_figure(
            f"{name:>26s} {' '.join(f'{ms:5.1f}' for ms in times)}  {reads:4.1f}",
            f"time of a trial after {trials}, {name}",
            ratio,
            "TPESampler",
            "lower",
        )
        report_figure(
            f"{'':>26s} {ratio:.2f} times TPESampler, {growth:.2f} times the second hundred",
            f"growth of the time of a trial, {name}",
            growth,
            "the second hundred",
            "lower",
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100, help="finished trials of the study (default: 100)")
    parser.add_argument("--race-trials", type=int, default=1000, help="trials under a sampler (default: 1000)")
    arguments = parse_arguments(parser, {"trials": 10, "race_trials": 100})
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
    report_samplers(arguments.race_trials)


if __name__ == "__main__":
    main()
