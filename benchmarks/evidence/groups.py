"""Coverage of 95 % intervals for a group of instances that was left out.

    python benchmarks/evidence/groups.py --simulations 300 --output groups.json
    python benchmarks/evidence/groups.py --table runs.csv --timepoints 1,2,5,10,20,50,100

Simulated: algorithms have utilities, each group deviates from them by a normal amount with a given spread, and each
instance adds Gumbel noise.  Printed for groups="none", which counts all instances as independent, and for the default:
how often intervals of the ratings contain those of a new group, and those of the mean over very many groups; how often
the default took the groups for different; and the spread it found.

With a table that has a column group, each of its groups is left out in turn, and its own ratings, with their
uncertainty, are compared with what the others say about a new group: the share of differences of log-ratings whose 95 %
interval contains 0.
"""

import argparse
import functools
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from polarbear_plugins import Posterior, RankingTable, fit, rank, read_trajectories

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure

SPREADS = (0.0, 0.5, 1.0)
DESIGNS = ((16, 5), (6, 5), (24, 3), (10, 15))  # groups, instances in each
ALGORITHMS = 5
CHOICES = ("none", "auto")


def one_fit(job: tuple[int, float, int, int]) -> dict[str, float]:
    """Simulate once; coverage under each choice."""
    seed, spread, groups, size = job
    rng = np.random.default_rng([seed, int(10 * spread), groups, size])
    centre = rng.normal(size=ALGORITHMS)
    deviation = spread * rng.normal(size=(groups + 1, ALGORITHMS))
    member_of = np.repeat(np.arange(groups), size)
    values = -(centre + deviation[member_of] + rng.gumbel(size=(member_of.size, ALGORITHMS)))
    table = RankingTable.from_values(
        values[:, None], algorithms=list("abcde"), timepoints=[1], groups=[f"g{place}" for place in member_of]
    )
    new = softmax(centre + deviation[-1])
    mean = softmax(centre + spread * np.random.default_rng(0).normal(size=(20_000, ALGORITHMS))).mean(axis=0)
    found: dict[str, float] = {}
    for choice in CHOICES:
        posterior = fit(table, seed=seed, groups=choice, check=False, draws=2000)  # type: ignore[arg-type]
        found |= {f"{choice} new": coverage(posterior, new), f"{choice} mean": coverage(posterior, mean)}
    if posterior.groups is not None:
        found |= {"about new": float(posterior.groups.scope == "new"), "spread": float(posterior.groups.spread[0])}
    return found


def softmax(utilities: np.ndarray) -> np.ndarray:
    """Ratings of utilities."""
    ratings = np.exp(utilities)
    return ratings / ratings.sum(axis=-1, keepdims=True)


def coverage(posterior: Posterior, truth: np.ndarray) -> float:
    """Share of ratings inside their 95 % interval."""
    low, high = np.quantile(posterior.ratings[:, 0], [0.025, 0.975], axis=0)
    return float(((low <= truth) & (truth <= high)).mean())


def leave_one_out(job: tuple[RankingTable, str, str]) -> float:
    """Share of log-ratings of a group that agree with what the other groups say."""
    table, group, choice = job
    parts = table.split_by_group()
    _, _, _, tolerance, values, instances, *_ = parts.pop(group).parts()
    # What these instances say about themselves: every run counts.
    runs = RankingTable(table.algorithms, table.timepoints, repetitions="independent", tolerance=tolerance)
    own = fit(runs.extended(values, instances), seed=2, check=False)
    rest = functools.reduce(RankingTable.append, parts.values())
    predicted = fit(rest, seed=1, groups=choice, check=False)  # type: ignore[arg-type]
    difference = predicted.log_ratings - own.log_ratings
    difference -= difference.mean(axis=2, keepdims=True)
    low, high = np.quantile(difference, [0.025, 0.975], axis=0)
    return float(((low <= 0) & (high >= 0)).mean())


def main() -> None:
    """Simulate, or leave out the groups of a table; print and write the figures down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=300, help="for each spread and design")
    parser.add_argument("--table", help="a table of runs with a column group, or another source with groups")
    parser.add_argument("--timepoints", help="of the table, separated by commas")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path)
    options = parse_arguments(parser, {"simulations": 2})
    rows: list[dict[str, Any]] = []
    if options.table:
        grid = [float(time) for time in options.timepoints.split(",")] if options.timepoints else None
        table = rank(read_trajectories(options.table), grid)
        names = list(dict.fromkeys(table.groups))
        for choice in CHOICES:
            with ProcessPoolExecutor(options.workers) as pool:
                shares = list(pool.map(leave_one_out, [(table, name, choice) for name in names]))
            rows.append({"table": Path(options.table).name, "groups": choice, "left_out": len(names)})
            rows[-1]["coverage"] = float(np.mean(shares))
            report_figure(
                f"{len(names)} groups left out in turn, groups={choice!r}: coverage {np.mean(shares):.3f}",
                f"coverage for a group left out, {choice}",
                float(np.mean(shares)),
                "nominal: 0.95",
            )
    else:
        print(f"{'groups':>6}{'size':>5}{'spread':>8}", end="")
        columns = [f"{choice} {what}" for choice in CHOICES for what in ("new", "mean")] + ["about new", "spread found"]
        print("".join(f"{column:>14}" for column in columns))
        for groups, size in DESIGNS:
            for spread in SPREADS:
                jobs = [(seed, spread, groups, size) for seed in range(options.simulations)]
                with ProcessPoolExecutor(options.workers) as pool:
                    found = list(pool.map(one_fit, jobs, chunksize=10))
                mean = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
                rows.append({"groups": groups, "size": size, "true_spread": spread, **mean})
                report_figure(
                    f"{groups:6d}{size:5d}{spread:8.1f}" + "".join(f"{value:14.3f}" for value in mean.values()),
                    f"coverage for a new group, {groups} groups of {size}, spread {spread:g}",
                    mean["auto new"],
                    "nominal: 0.95",
                )
    if options.output:
        options.output.write_text(json.dumps({"simulations": options.simulations, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
