"""Make examples/runs.csv: real runs of five optimizers on random problems, as any user might have logged them.

Each run has 500 evaluations; a row tells when the best value improved.  Run it again with another --seed or budget
for a table of your own:

    python examples/make_runs.py --seed 7 --output my_runs.csv
"""

import argparse
import contextlib
import csv
import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import optimize

from polarbear_plugins import Trajectory

DIMENSION = 5
BOUNDS = optimize.Bounds([-5.0] * DIMENSION, [5.0] * DIMENSION)
Objective = Callable[[np.ndarray], float]


class BudgetSpentError(Exception):
    """Ends a run after its last evaluation."""


def landscapes() -> dict[str, Objective]:
    """Functions with their minimum 0 at the origin."""
    scale = 10 ** np.linspace(0, 4, DIMENSION)
    return {
        "ellipsoid": lambda z: float(scale @ z**2),
        "rastrigin": lambda z: float(10 * DIMENSION + np.sum(z**2 - 10 * np.cos(2 * math.pi * z))),
        "rosenbrock": lambda z: float(np.sum(100 * (z[1:] + 1 - (z[:-1] + 1) ** 2) ** 2 + z[:-1] ** 2)),
        "sharp-ridge": lambda z: float(z[0] ** 2 + 100 * math.sqrt(np.sum(z[1:] ** 2))),
    }


def random_instance(function: Objective, rng: np.random.Generator) -> Objective:
    """Rotate the function and move its minimum somewhere into the box."""
    rotation, _ = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))
    center = rng.uniform(-4, 4, DIMENSION)
    return lambda x: function(rotation @ (np.asarray(x) - center))


def random_search(objective: Objective, rng: np.random.Generator) -> None:
    """Draw points until the budget is spent."""
    while True:
        objective(rng.uniform(BOUNDS.lb, BOUNDS.ub))


def restarted(method: str) -> Callable[[Objective, np.random.Generator], None]:
    """Start a local method of scipy from random points."""

    def run(objective: Objective, rng: np.random.Generator) -> None:
        while True:
            optimize.minimize(objective, rng.uniform(BOUNDS.lb, BOUNDS.ub), method=method, bounds=BOUNDS)

    return run


def differential_evolution(objective: Objective, rng: np.random.Generator) -> None:
    """Population-based, without a local polish; starts again when it has converged."""
    while True:
        optimize.differential_evolution(objective, BOUNDS, popsize=6, polish=False, rng=rng, maxiter=10_000)


def dual_annealing(objective: Objective, rng: np.random.Generator) -> None:
    """Annealing with local searches."""
    while True:
        optimize.dual_annealing(objective, BOUNDS, rng=rng)


OPTIMIZERS = {
    "differential-evolution": differential_evolution,
    "dual-annealing": dual_annealing,
    "nelder-mead": restarted("Nelder-Mead"),
    "powell": restarted("Powell"),
    "random-search": random_search,
}


def one_run(algorithm: str, instance: str, objective: Objective, budget: int, rng: np.random.Generator) -> Trajectory:
    """Count and record every evaluation, and stop after exactly ``budget``."""
    values: list[float] = []

    def recorded(x: np.ndarray) -> float:
        if len(values) == budget:
            raise BudgetSpentError
        values.append(objective(x))
        return values[-1]

    with contextlib.suppress(BudgetSpentError):
        OPTIMIZERS[algorithm](recorded, rng)
    return Trajectory.from_evaluations(values, algorithm=algorithm, instance=instance, horizon=budget)


def main() -> None:
    """Run everything and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("runs.csv"))
    parser.add_argument("--instances", type=int, default=5, help="random instances of each of 4 functions")
    parser.add_argument("--budget", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with arguments.output.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["algorithm", "instance", "time", "value", "horizon"])
        for place, (name, function) in enumerate(landscapes().items()):
            for number in range(arguments.instances):
                instance = f"{name}-{number + 1}"
                objective = random_instance(function, np.random.default_rng([arguments.seed, place, number]))
                for rank, algorithm in enumerate(OPTIMIZERS):
                    rng = np.random.default_rng([arguments.seed, place, number, rank])
                    run = one_run(algorithm, instance, objective, arguments.budget, rng)
                    for time, best in zip(run.times, run.best, strict=True):
                        table.writerow([algorithm, instance, int(time), f"{best:.6g}", arguments.budget])
                print(f"\r{instance:20s}", end="", file=sys.stderr, flush=True)
    print(f"\nwrote {arguments.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
