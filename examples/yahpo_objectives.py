r"""Run optimizers on several targets of YAHPO Gym and keep every vector, for the hypervolume of the paper.

    python examples/yahpo_objectives.py --quick
    python examples/yahpo_objectives.py --suite yahpo:lcbench:167152:167185:189873 --data yahpo_data \
        --targets val_accuracy,val_cross_entropy --replications 30 --output runs.csv
    polarbear analyze runs.csv -o objectives=val_accuracy,val_cross_entropy

The paper measures what a run lacks to the front of all runs of all optimizers on an instance, scaled by the least and
the greatest value that any of them had.  That is known only when all have ended, so nothing is eliminated here.

Needs: pip install 'polarbear-plugins[optuna,yahpo]'
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from polarbear_plugins import load_plugins, rank, read_trajectories
from polarbear_plugins.problems import RecordedObjectives
from polarbear_plugins.rankings.summaries import mean_ranks
from polarbear_plugins.seeds import derived_seed

LABELS = {"algorithm", "instance", "group", "seed", "time", "horizon"}


def run_all(options: argparse.Namespace) -> pd.DataFrame:
    """Every algorithm on every instance, as often as there are replications; a row for each evaluation."""
    plugins = load_plugins()
    data = {"data": options.data} if options.data else {}
    targets = {"target": options.targets} if options.targets else {}
    suite = plugins.suite(options.suite, **data, **targets)
    tables = []
    for identity in suite.identities(options.seed):
        problem = suite.build(identity)
        horizon = options.budget or suite.budget
        for algorithm in plugins.portfolio("optuna-samplers", samplers=options.samplers):
            for replication in range(options.replications):
                seed = derived_seed(options.seed, "run", algorithm.name, identity.name, replication)
                recorded = RecordedObjectives(problem)
                algorithm.run(recorded, horizon, seed)
                tables.append(recorded.table(algorithm=algorithm.name, seed=seed, horizon=horizon))
    return pd.concat(tables)


def report(runs: pd.DataFrame, objectives: list[str]) -> None:
    """Print mean ranks after a quarter of the budget and at its end, as the paper does."""
    last = runs["horizon"].max()
    table = rank(read_trajectories(runs, objectives=objectives), timepoints=[last / 4, last])
    ranks = mean_ranks(table)
    print(f"mean rank over {len(table.instances)} instances at {last / 4:g} and at {last:g}")
    for column, name in enumerate(table.algorithms):
        cells = [f"{ranks.mean[at, column]:.2f} ± {ranks.standard_error[at, column]:.2f}" for at in (0, 1)]
        print(f"{name:18}{cells[0]:>15}{cells[1]:>15}")


def main() -> None:
    """Run, save and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two instances, 20 evaluations, two replications")
    parser.add_argument("--suite", default="yahpo:demo", help="a scenario with its instances, or yahpo-mo")
    parser.add_argument("--data", help="a copy of yahpo_data")
    parser.add_argument("--targets", help="names with commas between; leave it out for yahpo-mo")
    parser.add_argument("--samplers", default="random,qmc,tpe,nsga-ii", help="names with commas between")
    parser.add_argument("--budget", type=float, help="by default what the paper proposes")
    parser.add_argument("--replications", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="write the vectors to this CSV file")
    options = parser.parse_args()
    if options.quick:
        options.suite, options.budget, options.replications = "yahpo:demo:d01:d02", 20, 2
    if options.suite.startswith("yahpo:demo") and options.targets is None:
        options.targets = "val_accuracy,time"
    runs = run_all(options)
    objectives = [name for name in runs if name not in LABELS]
    if options.output is not None:
        runs.to_csv(options.output, index=False)
        print(f"wrote {options.output}; polarbear analyze {options.output} -o objectives={','.join(objectives)}")
    report(runs, objectives)


if __name__ == "__main__":
    main()
