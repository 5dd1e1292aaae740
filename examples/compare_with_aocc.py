"""Set the area over the convergence curve (AOCC) beside a race of the same algorithms, and see what one number hides.

    python examples/compare_with_aocc.py --quick
    python examples/compare_with_aocc.py --instances 200
    python examples/compare_with_aocc.py my_runs.csv

By default the runs of four algorithms are made up.  `sprinter` is the best at first and then stalls, `marathon` is the
best in the end, `steady` lies between.  On one of eight instances `gambler` finds the optimum at once; on all others
it is a little worse than `steady` at all times.
"""

from __future__ import annotations

import argparse

import numpy as np

from polarbear_plugins import RaceSettings, Trajectory, analyze, rank, read_trajectories
from polarbear_plugins.measures.disagreements import find_contradictions
from polarbear_plugins.measures.ecdf_and_aocc import ecdf
from polarbear_plugins.measures.orders import order_by_measures
from polarbear_plugins.measures.tables import expected_running_time
from polarbear_plugins.rankings.stream import default_timepoints

BUDGET = 1000
TIMES = np.unique(np.geomspace(1, BUDGET, 60).round())


def make_up(instances: int, seed: int) -> list[Trajectory]:
    """Make up runs; the logarithm of the best value falls with the logarithm of time."""
    rng = np.random.default_rng(seed)
    log_time = np.log10(TIMES)
    falls = {
        "sprinter": -0.5 - 0.5 * np.minimum(log_time, 1.0),
        "steady": -0.7 * log_time,
        "marathon": 0.5 - 0.1 * log_time - 6.0 * np.maximum(log_time - 2.3, 0),
        "gambler": 0.05 - 0.7 * log_time,
    }
    runs = []
    for number in range(instances):
        hardness = rng.uniform(0, 1.5)
        lucky = number % 8 == 0
        for name, fall in falls.items():
            noise = -0.1 * rng.exponential(size=TIMES.size).cumsum() / np.arange(1, TIMES.size + 1)
            logs = np.full(TIMES.size, -8.0) if lucky and name == "gambler" else hardness + fall + noise
            best = np.minimum.accumulate(10**logs)
            runs.append(Trajectory(algorithm=name, instance=number, times=TIMES, best=best, horizon=BUDGET))
    return runs


def show(runs: list[Trajectory], timepoints: int, seed: int) -> None:
    """Print what the measures say, what the rankings say, and where they disagree."""
    grid = default_timepoints(runs, timepoints)
    budget = float(grid[-1])
    orders = order_by_measures(runs, budget, first=float(grid[0]))
    result = analyze(rank(runs, grid), RaceSettings(seed=seed))
    print(f"{orders.runs} runs on {len(orders.instances)} instances, budget {budget:g}, log scale 1e-8..1e2\n")
    print(orders.table(result.posterior).to_string(float_format="{:.3g}".format))
    for measure in orders.by_measure:
        print(f"{measure}: {' > '.join(orders.order(measure))}")

    shares = ecdf(runs, np.unique([grid[0], grid[grid.size // 2], budget]))
    print("\nECDF: share of the log scale that is reached by a time")
    print(shares.to_string(float_format="{:.3f}".format))
    times = expected_running_time(runs, 1e-1)
    print("Expected running time to 0.1:", ", ".join(f"{name} {time:,.0f}" for name, time in times.items()))

    print(f"\nAnytime Pareto set: {', '.join(result.pareto_set)}")
    for out in result.eliminations:
        print(f"Out: {out.algorithm}, since {out.by} is better at every timepoint, P = {out.probability:.3f}")
    pairs = find_contradictions(orders, result.posterior)
    print("Where rankings do not confirm the measures:" if pairs else "Rankings confirm the measures for every pair.")
    for pair in pairs:
        print(f"- {pair}")


def main() -> None:
    """Read runs or make some up, and compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("source", nargs="?", help="runs with a known optimum of 0, in any form that an adapter reads")
    parser.add_argument("--quick", action="store_true", help="24 instances, 8 timepoints")
    parser.add_argument("--instances", type=int, default=80)
    parser.add_argument("--timepoints", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.instances, arguments.timepoints = 24, 8
    runs = make_up(arguments.instances, arguments.seed)
    if arguments.source is not None:
        runs = list(read_trajectories(arguments.source))
    show(runs, arguments.timepoints, arguments.seed)


if __name__ == "__main__":
    main()
