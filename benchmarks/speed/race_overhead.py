"""What a race costs beside its runs: inference, journal and bookkeeping against the wall time.

    python benchmarks/speed/race_overhead.py --seconds 0.5 --rounds 3

Seven synthetic algorithms, each run made to last half a second, on two local processes with a journal.  The named
alternative is the same number of runs on a bare ``ProcessPoolExecutor``, measured in the same run: the ratio says what
racing costs besides.  Printed also: what inference takes by itself.
"""

import argparse
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from polarbear_plugins import RaceSettings, Trajectory, race
from polarbear_plugins.experiments.watching import Progress
from polarbear_plugins.plugins.synthetic import SyntheticAlgorithm, SyntheticSuite, synthetic_portfolio
from polarbear_plugins.problems.protocols import Problem
from polarbear_plugins.racing.posteriors import infer

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure


class SlowAlgorithm:
    """An algorithm whose runs take their time."""

    def __init__(self, fast: SyntheticAlgorithm, seconds: float) -> None:
        self.name, self._fast, self._seconds = fast.name, fast, seconds

    def run(self, problem: Problem, horizon: float, seed: int, /) -> Trajectory:
        """Draw a run and wait."""
        time.sleep(self._seconds)
        return self._fast.run(problem, horizon, seed)


def main() -> None:
    """Race, repeat as many runs without racing, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.5, help="that a run takes")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--algorithms", type=int, default=7)
    parser.add_argument("--timepoints", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    options = parse_arguments(parser, {"seconds": 0.05, "rounds": 1})
    portfolio = [
        SlowAlgorithm(algorithm, options.seconds)
        for algorithm in synthetic_portfolio(options.algorithms, options.timepoints, correlation=0.9)
    ]
    runs = 0

    def count(progress: Progress) -> None:
        nonlocal runs
        if progress.planned and progress.done == progress.planned:
            runs += progress.planned

    # Import what is imported once, and start with warm caches, as every round but the first does.
    race(portfolio[:2], SyntheticSuite(), [1, 2], RaceSettings(seed=0, max_rounds=1, batch_size=1), workers=0)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        result = race(
            portfolio,
            SyntheticSuite(),
            range(1, options.timepoints + 1),
            RaceSettings(seed=1, max_rounds=options.rounds),
            options.workers,
            journal=Path(folder) / "race.db",
            progress=count,
        )
        raced = time.perf_counter() - began
    began = time.perf_counter()
    with ProcessPoolExecutor(options.workers) as pool:
        list(pool.map(time.sleep, [options.seconds] * runs))
    bare = time.perf_counter() - began
    began = time.perf_counter()
    infer(result.state, 1)
    inference = time.perf_counter() - began
    print(f"{runs} runs of {options.seconds} s in {len(result.rounds)} rounds on {options.workers} processes")
    report_figure(
        f"race {raced:.2f} s, bare pool {bare:.2f} s, ratio {raced / bare:.3f}",
        "time of a race",
        raced / bare,
        "bare ProcessPoolExecutor",
        "lower",
    )
    print(f"the last posterior by itself: {inference:.2f} s ({len(result.state.table)} instances)")


if __name__ == "__main__":
    main()
