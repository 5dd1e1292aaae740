"""Race the 64 annealing configurations of the pruner yardstick with PolarBearSampler.

    python benchmarks/evidence/optuna_sampler.py --seeds 10 --max-cost 900
    python benchmarks/evidence/optuna_sampler.py TABLE.npz --seeds 10 --max-cost 450

A table, by default that of the yardstick, holds gap[configuration, instance, repetition, checkpoint]. Columns: evals =
trials; lost best / lost top 5 = share of runs in which the truly best configuration / of the true top five that were
eliminated; regret = that of the choice.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import optuna

from polarbear_plugins import RaceSettings
from polarbear_plugins.integrations.optuna_sampler import PolarBearSampler, race_result

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure, skip

TABLE = Path(__file__).parents[2] / "yardsticks" / "pruners" / "annealing_table.npz"


def race(table: np.ndarray, settings: RaceSettings, seed: int) -> dict[str, float]:
    """Race once."""
    configurations, instances, repetitions = table.shape
    drawn = np.random.default_rng(seed).integers(0, repetitions, (configurations, instances))

    def objective(trial: optuna.Trial) -> float:
        instance = trial.suggest_int("instance", 0, instances - 1)
        config = trial.suggest_int("config", 0, configurations - 1)
        return float(table[config, instance, drawn[config, instance]])

    candidates = {str(config): {"config": config} for config in range(configurations)}
    study = optuna.create_study(sampler=PolarBearSampler(candidates, settings=settings, seed=seed))
    start = time.perf_counter()
    study.optimize(objective)
    seconds = time.perf_counter() - start
    result = race_result(study)
    truth = table.mean(axis=(1, 2))
    top, kept = truth.argsort()[:5], {int(name) for name in result.pareto_set}
    ratings = result.posterior.ratings[:, -1].mean(axis=0)
    chosen = int(max(result.pareto_set, key=lambda name: ratings[result.algorithms.index(name)]))
    return {
        "evals": len(study.trials),
        "lost best": float(top[0] not in kept),
        "lost top 5": float(np.mean([config not in kept for config in top])),
        "kept": len(kept),
        "regret": float(truth[chosen] - truth[top[0]]),
        "rounds": len(result.rounds),
        "seconds": seconds,
    }


def main() -> None:
    """Race for several seeds and print the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="?", type=Path, default=TABLE)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--alpha", type=float, default=0.99)
    parser.add_argument("--batch", type=int, nargs=3, default=(4, 1, 8), metavar=("FIRST", "LEAST", "MOST"))
    parser.add_argument("--max-cost", type=float, default=900)
    parser.add_argument("--draws", type=int, default=1000)
    arguments = parse_arguments(parser, {"seeds": 1, "max_cost": 130.0, "draws": 200})
    if not arguments.table.exists():
        skip(f"there is no table {arguments.table}")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    table = np.load(arguments.table)["gap"][..., -1].astype(float)
    first, least, most = arguments.batch
    settings = RaceSettings(
        alpha=arguments.alpha,
        batch_size=first,
        batch_min=least,
        batch_max=most,
        max_cost=arguments.max_cost,
        draws=arguments.draws,
    )
    runs = []
    for seed in range(arguments.seeds):
        runs.append(race(table, settings, seed))
        print(seed, runs[-1], flush=True)
    means = {key: round(float(np.mean([run[key] for run in runs])), 5) for key in runs[0]}
    report_figure(f"{means}", "regret of the choice", means["regret"], "the truly best configuration: 0", "lower")


if __name__ == "__main__":
    main()
