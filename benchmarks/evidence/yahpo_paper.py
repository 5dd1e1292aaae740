"""The comparison of the paper on YAHPO Gym at a reduced scale.

    python benchmarks/evidence/yahpo_paper.py                          # the stand-in in the package
    python benchmarks/evidence/yahpo_paper.py --data yahpo_data        # YAHPO-SO

Every algorithm runs to the full budget on every instance of YAHPO-SO whose surrogate is there, several times with other
seeds.  Printed at a quarter of the budget and at its end, as in the paper: mean ranks, mean normalised regret with its
standard error, Friedman's test, critical differences, the consensus ranking, and which of the paper's findings have the
same direction.  Runs are kept in the file --runs, from which an interrupted comparison goes on.  A run of random search
takes a second, one of SMAC about a minute, one of SMAC with Hyperband five.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

from polarbear_plugins import RankingTable, Trajectory, load_plugins, rank
from polarbear_plugins.measures import FriedmanTest, consensus_ranking, friedman_test, pairwise_wins
from polarbear_plugins.rankings import mean_ranks, mean_regret
from polarbear_plugins.seeds import derived_seed

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure

ALGORITHMS = ("random", "tpe", "tpe-median", "hyperband", "tpe-hyperband", "smac", "smac-hb")
MULTIFIDELITY = ("tpe-median", "hyperband", "tpe-hyperband", "smac-hb")
#: The paper's findings: at which share of the budget, who is ahead of whom by mean rank (section 5.1, figure 3).
FINDINGS = (
    (0.25, MULTIFIDELITY, ("random",), "multi-fidelity methods before random search"),
    (0.25, ("tpe-median", "tpe-hyperband", "smac-hb", "hyperband"), ("smac",), "optuna, BOHB, SMAC-HB, HB before SMAC"),
    (1.0, ("smac",), ("random", "hyperband", "tpe-hyperband", "tpe-median", "smac-hb"), "SMAC before all others"),
    (1.0, ("smac-hb",), ("hyperband", "tpe-hyperband", "tpe-median"), "SMAC-HB before other multi-fidelity methods"),
)
Job = tuple[str, str, str, int]


def algorithm_named(name: str) -> object:
    """An algorithm of the portfolios that have it."""
    plugins = load_plugins()
    if name.startswith("smac"):
        return plugins.portfolio("smac", algorithms=name)[0]
    if name in ("random", "tpe"):
        return plugins.portfolio("optuna-samplers", samplers=name)[0]
    return plugins.portfolio("optuna-multifidelity", algorithms=name)[0]


def suite_in(data: str) -> object:
    """YAHPO-SO, or the stand-in with the same axis; time is in percent of the budget."""
    plugins = load_plugins()
    return plugins.suite("yahpo-so", data=data) if data else plugins.suite("yahpo:demo", time="percent")


def carry_out(job: Job) -> list[tuple[str, str, int, float, float]]:
    """A run as rows of the file of runs."""
    data, name, instance, replication = job
    suite = suite_in(data)
    identity = next(each for each in suite.identities(1) if each.name == instance)
    seed = derived_seed(1, "run", name, instance, replication)
    run = algorithm_named(name).run(suite.build(identity), 100.0, seed)
    return [(name, instance, replication, *step) for step in zip(run.times.tolist(), run.best.tolist(), strict=True)]


def carry_out_all(jobs: Sequence[Job], path: Path, workers: int) -> None:
    """Carry out the runs that the file does not have yet, each written when it has ended."""
    if not path.exists():
        path.write_text("algorithm,instance,seed,time,value,horizon\n")
    done = {tuple(row) for row in pd.read_csv(path)[["algorithm", "instance", "seed"]].drop_duplicates().to_numpy()}
    left = [job for job in jobs if job[1:] not in done]
    with ProcessPoolExecutor(workers) as pool, path.open("a") as file:
        for count, rows in enumerate(pool.map(carry_out, left), 1):
            file.writelines(",".join(map(str, (*row, 100.0))) + "\n" for row in rows)
            file.flush()
            print(f"{count} of {len(left)} runs", end="\r", file=sys.stderr, flush=True)


def read_runs(path: Path) -> Iterator[Trajectory]:
    """Runs of the file."""
    from polarbear_plugins import read_trajectories

    yield from read_trajectories(str(path))


def report(table: RankingTable, share: float) -> FriedmanTest:
    """Print what the paper reports at a share of the budget."""
    time = 100.0 * share
    place = int(np.argmin(np.abs(table.timepoints - time)))
    regret, test = mean_regret(table), friedman_test(table, time)
    print(f"\nat {share:.0%} of the budget: Friedman {test.p_text}, critical difference {test.critical_difference:.2f}")
    for name, mean in zip(test.algorithms, test.mean_ranks, strict=True):
        column = table.algorithms.index(name)
        lost = f"{regret.mean[place, column]:.3f} ± {regret.standard_error[place, column]:.3f}"
        print(f"  {name:14s} mean rank {mean:.2f}  regret {lost}")
    groups = " | ".join(", ".join(group) for group in test.groups() if len(group) > 1)
    print(f"  not told apart: {groups or 'none'}")
    found = consensus_ranking(pairwise_wins(table, time))
    print(f"  consensus (one of {found.optima}): {found}")
    return test


def compare_with_paper(tests: dict[float, FriedmanTest]) -> None:
    """Print which findings have the direction of the paper, and which are told apart here."""
    print("\nfinding of the paper                                   pairs in its direction, told apart of these")
    for share, better, worse, words in FINDINGS:
        test = tests[share]
        places = dict(zip(test.algorithms, test.mean_ranks.tolist(), strict=True))
        pairs = [(a, b) for a in better for b in worse if a != b and a in places and b in places]
        same = [(a, b) for a, b in pairs if places[a] < places[b]]
        sure = sum(test.differ(a, b) for a, b in same)
        line = f"  {share:4.0%} {words:48s} {len(same)} of {len(pairs)}, {sure}"
        report_figure(line, f"pairs as in the paper: {words}", len(same) / max(1, len(pairs)), "the paper", "higher")


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="", help="a copy of yahpo_data; by default the stand-in yahpo:demo")
    parser.add_argument("--algorithms", default=",".join(ALGORITHMS))
    parser.add_argument("--replications", type=int, default=3)
    parser.add_argument("--runs", type=Path, default=Path("yahpo_paper.csv"))
    parser.add_argument("--figures", type=Path, help="a folder")
    parser.add_argument("--workers", type=int, default=1)
    given = parse_arguments(parser, {"replications": 1, "algorithms": "random,tpe,hyperband"})
    instances = [each.name for each in suite_in(given.data).identities(1)]
    jobs = [
        (given.data, name, instance, replication)
        for replication in range(given.replications)
        for instance in instances
        for name in given.algorithms.split(",")
    ]
    carry_out_all(jobs, given.runs, given.workers)
    grid = np.unique([25.0, 100.0, *np.geomspace(5, 100, 20)])
    wanted = {job[1:] for job in jobs}
    runs = [run for run in read_runs(given.runs) if (run.algorithm, run.instance, run.seed) in wanted]
    table = rank(runs, grid)
    print(f"{len(instances)} instances, {given.replications} replications, {len(runs)} runs")
    compare_with_paper({share: report(table, share) for share in (0.25, 1.0)})
    if given.figures:
        draw(table, given.figures)


def draw(table: RankingTable, folder: Path) -> None:
    """Draw mean ranks and regret over time, and critical differences as in figure 3."""
    from polarbear_plugins.plots import plot_critical_differences, plot_mean_curves

    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        "yahpo_ranks": plot_mean_curves(mean_ranks(table), title="Mean rank against percent of the budget"),
        "yahpo_regret": plot_mean_curves(mean_regret(table), label="mean normalised regret"),
        **{f"yahpo_cd_{time:g}": plot_critical_differences(friedman_test(table, time)) for time in (25.0, 100.0)},
    }
    for name, ax in figures.items():
        ax.figure.savefig(folder / f"{name}.png")


if __name__ == "__main__":
    main()
