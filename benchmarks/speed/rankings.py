"""How fast rankings are made, against ``scipy.stats.rankdata`` along the axis in the same run.

    python benchmarks/speed/rankings.py

Prints the best of several repetitions, CPU seconds on one core.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from polarbear_plugins import RankingTable, Trajectory, log_timepoints, rank
from polarbear_plugins.rankings.ranks import ranks_of

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure, seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--timepoints", type=int, default=200)
    parser.add_argument("--algorithms", type=int, default=7)
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parse_arguments(parser, {"instances": 100, "timepoints": 20, "repetitions": 1})
    shape = (arguments.instances, arguments.timepoints, arguments.algorithms)
    rng = np.random.default_rng(0)
    values = np.minimum.accumulate(rng.lognormal(size=shape).round(3), axis=1)
    names = [f"a{i}" for i in range(shape[2])]
    grid = log_timepoints(1, 10_000, shape[1])
    if not np.array_equal(ranks_of(values), rankdata(values, method="min", axis=-1)):
        raise SystemExit("The two do not agree.")

    def table(instances: int) -> RankingTable:
        return RankingTable.from_values(values[:instances], algorithms=names, timepoints=grid)

    def least(action: Callable[[], object]) -> float:
        return seconds(action, arguments.repetitions)

    ours = least(lambda: ranks_of(values))
    theirs = least(lambda: rankdata(values, method="min", axis=-1))
    whole, half = least(lambda: table(shape[0])), least(lambda: table(shape[0] // 2))
    print(f"{shape[0]} instances x {shape[1]} timepoints x {shape[2]} algorithms, CPU seconds")
    report_figure(
        f"ranks            {ours:.4f}   scipy.stats.rankdata {theirs:.4f}   ratio {theirs / ours:.1f}",
        "speed of ranks",
        theirs / ours,
        "scipy.stats.rankdata",
        "higher",
    )
    report_figure(
        f"RankingTable     {whole:.4f}   half the instances {half:.4f}     growth {whole / half:.2f}",
        "time of RankingTable",
        whole / half,
        "half the instances",
        "lower",
    )

    steps = np.sort(rng.choice(np.arange(1, 10_001), size=(40,), replace=False))
    runs = [
        Trajectory(algorithm=name, instance=i, times=steps, best=np.sort(rng.lognormal(size=40))[::-1], horizon=10_000)
        for i in range(shape[0])
        for name in names
    ]
    grid = log_timepoints(steps[0], 10_000, shape[1])
    whole, half = least(lambda: rank(runs, grid)), least(lambda: rank(runs[: len(runs) // 2], grid))
    report_figure(
        f"rank(runs)       {whole:.4f}   half the instances {half:.4f}     growth {whole / half:.2f}",
        "time of rank(runs)",
        whole / half,
        "half the instances",
        "lower",
    )

    block = table(8)
    growing = RankingTable(names, block.timepoints)
    clocks = [time.process_time()]
    for _ in range(2):
        for _ in range(500):
            growing = growing.append(block)
        clocks.append(time.process_time())
    first, second = np.diff(clocks) / 500
    report_figure(
        f"append 8 rows    {first:.6f} up to 4,000 rows, {second:.6f} from there to 8,000",
        "time to append, 4,000 to 8,000 rows",
        second / first,
        "up to 4,000 rows",
        "lower",
    )


if __name__ == "__main__":
    main()
