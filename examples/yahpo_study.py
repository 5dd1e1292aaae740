"""Find out which samplers of Optuna are in the anytime Pareto set on surrogates of YAHPO Gym.

    python examples/yahpo_study.py --quick
    python examples/yahpo_study.py --data yahpo_data --scenarios lcbench,rbv2_rpart --max-rounds 3

A race for each scenario, up to the budget that the authors of YAHPO Gym propose, and beside the posterior what they
report: mean rank and mean normalised regret, with standard errors.  It begins at a quarter of the budget: all samplers
begin at random, so that with the first trials in view nobody could be better everywhere.  --quick takes
the small stand-in of the package, yahpo:demo.

Needs: pip install 'polarbear-plugins[optuna,yahpo]' cmaes
"""

from __future__ import annotations

import argparse
import time

from polarbear_plugins import RaceResult, RaceSettings, load_plugins, log_timepoints, race, select
from polarbear_plugins.rankings.summaries import mean_ranks, mean_regret


def study(scenario: str, options: argparse.Namespace) -> RaceResult:
    """Race on the instances of a scenario, from a share of the budget on."""
    name, data = f"yahpo:{scenario}", {"data": options.data} if options.data else {}
    budget = options.budget or load_plugins().suite(name, **data).budget
    return race(
        "optuna-samplers",
        name,
        timepoints=log_timepoints(max(1, round(options.first * budget)), budget, 12, integer=True),
        settings=RaceSettings(seed=options.seed, max_rounds=options.max_rounds, replications=options.replications),
        workers=options.workers,
        portfolio_options={"samplers": options.samplers} if options.samplers else None,
        suite_options=data,
    )


def report(scenario: str, result: RaceResult, seconds: float) -> None:
    """Print what a race found, and the means over those instances that have all algorithms."""
    table, last = result.state.table, result.timepoints[-1]
    print(f"\n{scenario}: {len(table.instances)} instances, {last:g} evaluations, {seconds:.0f} s, {result.stopped}")
    ranks, regret = mean_ranks(table), mean_regret(table)
    heads = [f"{what} at {result.timepoints[place]:g}" for place in (0, -1) for what in ("mean rank", "regret")]
    print(f"{'':18}{''.join(f'{head:>20}' for head in heads)}   status")
    out = {elimination.algorithm: elimination for elimination in result.eliminations}
    for column, name in enumerate(result.algorithms):
        cells = [
            f"{curves.mean[place, column]:.2f} ± {curves.standard_error[place, column]:.2f}"
            for place in (0, -1)
            for curves in (ranks, regret)
        ]
        status = f"out: {out[name].by} is better at every timepoint" if name in out else "in"
        print(f"{name:18}{''.join(f'{cell:>20}' for cell in cells)}   {status}")
    print(f"means over {ranks.count[-1]:g} instances · anytime Pareto set: {', '.join(result.pareto_set)}")
    for preference in ("log-uniform", "final"):
        print(select(result.posterior, among=result.pareto_set, preference=preference))


def main() -> None:
    """Race on each scenario and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="yahpo:demo, two samplers, 25 evaluations, one round, one process",
    )
    parser.add_argument("--data", help="a copy of yahpo_data; by default the folder in the variable YAHPO_DATA")
    parser.add_argument("--scenarios", default="lcbench", help="names with commas between")
    parser.add_argument("--samplers", help="names with commas between; by default all whose packages are installed")
    parser.add_argument("--budget", type=int, help="evaluations in a run; by default what the paper proposes")
    parser.add_argument("--first", type=float, default=0.25, help="first timepoint, as a share of the budget")
    parser.add_argument("--max-rounds", type=int)
    parser.add_argument("--replications", type=int, default=1, help="runs of a sampler on an instance; 30 in the paper")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.scenarios, arguments.samplers = "demo", arguments.samplers or "random,tpe"
        arguments.budget, arguments.workers, arguments.max_rounds = arguments.budget or 25, 0, 1
    for scenario in arguments.scenarios.split(","):
        began = time.perf_counter()
        result = study(scenario, arguments)
        report(scenario, result, time.perf_counter() - began)


if __name__ == "__main__":
    main()
