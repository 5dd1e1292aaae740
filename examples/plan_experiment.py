"""Plan a comparison, carry it out as planned, and see what a race would need for more than a mean.

    python examples/plan_experiment.py --quick
    python examples/plan_experiment.py --effect 0.5 --power 0.8 --journal campaign.db

Two variants of an evolution strategy run on random quadratic functions.  First the classical way: how many instances
does a t test need, how often must each variant run on each of them, and what does the test say?  Then the question that
no mean answers, which variant is right for which budget: how many more instances will a race take, after three rounds?
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from polarbear_plugins import RaceSettings, Trajectory, log_timepoints, race
from polarbear_plugins.experiments.campaigns import CampaignSettings, campaign
from polarbear_plugins.planning.repetitions import RepetitionSettings
from polarbear_plugins.planning.sample_size import detectable_effect, number_of_instances, power_of


def instance(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw a quadratic function of five variables: where its optimum lies, and how steep it is along each axis."""
    return rng.uniform(-2, 2, 5), 10 ** rng.uniform(0, 2, 5)


def evolve(problem: tuple[np.ndarray, np.ndarray], horizon: float, seed: int, adapt: float) -> Trajectory:
    """Minimise by a (1+1) evolution strategy that makes its steps longer after a success, and shorter otherwise."""
    optimum, steepness = problem
    rng = np.random.default_rng(seed)
    x, step, values = rng.uniform(-4, 4, optimum.size), 0.5, []
    best = float(steepness @ (x - optimum) ** 2)
    for _ in range(int(horizon)):
        trial = x + step * rng.normal(size=x.size)
        value = float(steepness @ (trial - optimum) ** 2)
        step *= math.exp(0.8 * adapt) if value < best else math.exp(-0.2 * adapt)
        if value < best:
            x, best = trial, value
        values.append(best)
    return Trajectory.from_evaluations(values, algorithm="?", instance="?", horizon=horizon)


def adaptive(problem: tuple[np.ndarray, np.ndarray], horizon: float, seed: int) -> Trajectory:
    """Adapt the step length."""
    return evolve(problem, horizon, seed, adapt=0.5)


def slow(problem: tuple[np.ndarray, np.ndarray], horizon: float, seed: int) -> Trajectory:
    """Hardly adapt it."""
    return evolve(problem, horizon, seed, adapt=0.03)


def log_of_the_end(trajectory: Trajectory) -> float:
    """Measure a run by the decimal logarithm of its last value, since values are skewed."""
    return math.log10(float(trajectory.best[-1]) + 1e-12)


def main() -> None:
    """Plan, compare, forecast."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a large effect, short runs, one process")
    parser.add_argument("--effect", type=float, default=0.5, help="smallest effect that matters, in deviations")
    parser.add_argument("--power", type=float, default=0.8)
    parser.add_argument("--horizon", type=int, default=500, help="evaluations of a run")
    parser.add_argument("--journal", help="a file that keeps the runs of the comparison")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.effect, arguments.horizon = 1.0, 60
    effect, power = arguments.effect, arguments.power
    workers = 0 if arguments.quick else None
    portfolio = {"slow": slow, "adaptive": adaptive}

    count = number_of_instances(effect, power)
    print(f"An effect of {effect:g} with power {power:g}: {count} instances for a t test,", end=" ")
    print(f"{number_of_instances(effect, power, test='wilcoxon')} for Wilcoxon's test.")
    print(f"With half as many the power is {power_of(count // 2, effect):.2f},", end=" ")
    print(f"or an effect of {detectable_effect(count // 2, power):.2f} is found with power {power:g}.\n")

    found = campaign(
        portfolio,
        instance,
        arguments.horizon,
        CampaignSettings(
            repetitions=RepetitionSettings(error=0.2, first=5, most=60), effect=effect, power=power, seed=arguments.seed
        ),
        workers=workers,
        journal=arguments.journal,
        measure=log_of_the_end,
    )
    [comparison] = found.comparisons
    runs = found.repetitions()["runs"]
    print(f"{len(found.instances)} instances, {int(runs.to_numpy().sum())} runs: on average", end=" ")
    print(" and ".join(f"{runs[name].mean():.1f} of {name}" for name in found.algorithms), "on each.")
    print(f"log10 of the last value, {comparison.other} minus {comparison.one}: {comparison.estimate:.2f}", end=" ")
    print(f"({comparison.low:.2f} to {comparison.high:.2f}), effect {comparison.effect:.2f}, p = {comparison.p:.2g}.")
    if comparison.normality is not None and comparison.normality.p is not None:
        print(f"Shapiro and Wilk's test of normality: p = {comparison.normality.p:.2g}.\n")

    raced = race(
        portfolio,
        instance,
        log_timepoints(5, arguments.horizon, 8, integer=True),
        RaceSettings(seed=arguments.seed, max_rounds=3, alpha=0.99),
        workers=workers,
    )
    print(f"A race after {len(raced.state.table)} instances: {', '.join(raced.pareto_set)} may be right.", end=" ")
    if raced.resolved:
        print("Every pair is settled.")
    else:
        print(f"To settle every timepoint, {raced.forecast()} are needed.")


if __name__ == "__main__":
    main()
