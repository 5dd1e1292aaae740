"""How often a choice is advised, and how often what is advised is noticeably worse than another algorithm.

    python benchmarks/evidence/advice.py --tables 300

Rankings are drawn from Plackett-Luce models at five timepoints: with equal ratings, where every advice would come from
noise, and with ratings drawn from the prior, where advice is right in as many cases as its support says.  A timepoint
is advised if its stretch is supported; wrong means that another algorithm would beat the choice in more than 55 of 100
instances.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from polarbear_plugins import RankingTable, fit
from polarbear_plugins.selection.stretches import stretches
from polarbear_plugins.selection.support import about_best

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure

TIMEPOINTS = 5


def advised(truth: np.ndarray, instances: int, seed: int) -> tuple[int, int]:
    """Number of timepoints at which a choice is advised, and at how many of them it is wrong."""
    rng = np.random.default_rng(seed)
    names = [f"a{place}" for place in range(truth.shape[1])]
    values = -np.log(truth) - rng.gumbel(size=(instances, *truth.shape))
    table = RankingTable.from_values(values, algorithms=names, timepoints=range(1, TIMEPOINTS + 1))
    given = wrong = 0
    for stretch in stretches(fit(table, draws=1000, seed=seed, check=False), names):
        if stretch.supported:
            right = about_best(truth[stretch.first : stretch.last + 1], names.index(stretch.algorithm))
            given, wrong = given + right.size, wrong + int((~right).sum())
    return given, wrong


def main() -> None:
    """Draw and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=300, help="for each row")
    parser.add_argument("--algorithms", type=int, default=4)
    parser.add_argument("--instances", type=int, nargs="+", default=[1, 4, 20, 100])
    options = parse_arguments(parser, {"tables": 3, "instances": [4]})
    for kind in ("equal", "drawn"):
        for instances in options.instances:
            given = wrong = 0
            for seed in range(options.tables):
                rng = np.random.default_rng([seed, instances])
                truth = np.full((TIMEPOINTS, options.algorithms), 1 / options.algorithms)
                if kind == "drawn":
                    truth = rng.dirichlet(np.ones(options.algorithms), TIMEPOINTS)
                found = advised(truth, instances, seed)
                given, wrong = given + found[0], wrong + found[1]
            share = given / (TIMEPOINTS * options.tables)
            report_figure(
                f"{kind:5s} ratings, {instances:3d} instances: advised at {share:.1%} of the timepoints"
                + (f", wrong at {wrong / given:.1%} of these" if given and kind == "drawn" else ""),
                f"share of timepoints with advice, {kind} ratings, {instances} instances",
                share,
                "none should be advised" if kind == "equal" else f"wrong: {wrong / max(given, 1):.3f}",
            )


if __name__ == "__main__":
    main()
