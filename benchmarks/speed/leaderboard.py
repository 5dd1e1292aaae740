"""How fast scores are resampled, against a loop over algorithms and instances in numpy in the same run.

    python benchmarks/speed/leaderboard.py

The loop draws the studies of each algorithm on each instance by ``Generator.integers`` and averages what they index; it
is timed with fewer resamples, and its time for all of them is extrapolated, since it grows in proportion.  Prints the
best of several repetitions, seconds of wall-clock time.
"""

import argparse
import resource
import sys
import time
from pathlib import Path

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.measures.bootstrap import bootstrap_scores

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure, seconds


def plain(losses: FloatArray, resamples: int, seed: int) -> FloatArray:
    """``mean[resample, algorithm]`` from ``losses[algorithm, instance, study]``, cell by cell."""
    rng = np.random.default_rng(seed)
    algorithms, instances, studies = losses.shape
    total = np.zeros((resamples, algorithms))
    for k in range(algorithms):
        for p in range(instances):
            total[:, k] += losses[k, p][rng.integers(0, studies, (resamples, studies))].mean(axis=1)
    return total / instances


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--algorithms", type=int, default=20)
    parser.add_argument("--instances", type=int, default=60)
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--loop-resamples", type=int, default=1_000, help="from which the loop is extrapolated")
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parse_arguments(parser, {"resamples": 500, "loop_resamples": 50, "repetitions": 1})
    shape = (arguments.algorithms, arguments.instances, arguments.studies)
    rng = np.random.default_rng(0)
    losses = np.clip(rng.beta(0.3, 3.0, size=shape) + rng.normal(0, 0.002, (shape[0], 1, 1)), 0, 1)
    names, places = ([f"{letter}{k}" for k in range(n)] for letter, n in zip("af", shape[:2], strict=True))
    cells = {(name, place): losses[k, p] for k, name in enumerate(names) for p, place in enumerate(places)}

    def ours() -> FloatArray:
        return bootstrap_scores(cells, names, places, arguments.resamples).losses

    def whole() -> object:
        return bootstrap_scores(cells, names, places, arguments.resamples).rankings()

    fast, with_rankings = (seconds(action, arguments.repetitions, time.perf_counter) for action in (ours, whole))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    few = min(arguments.loop_resamples, arguments.resamples)
    slow = seconds(lambda: plain(losses, few, 0), 1, time.perf_counter) * arguments.resamples / few
    one, other = ours(), plain(losses, few, 1)
    spread = other.std(axis=0)
    shift = float(np.abs((one.mean(axis=0) - other.mean(axis=0)) / spread * np.sqrt(few)).max())
    print(
        f"{shape[0]} algorithms x {shape[1]} instances x {shape[2]} studies, {arguments.resamples:,} resamples, seconds"
    )
    report_figure(
        f"bootstrap_scores {fast:.2f}   plain loop {slow:.2f} (from {few:,} resamples)   ratio {slow / fast:.1f}",
        "speed of bootstrap_scores",
        slow / fast,
        "a loop in numpy",
        "higher",
    )
    print(f"with the frequency of every ranking {with_rankings:.2f}")
    print(f"spread of the scores against that of the loop {float((one.std(axis=0) / spread).mean()):.3f}, ", end="")
    print(f"means apart by at most {shift:.1f} standard errors; the process took {memory:.0f} MB")


if __name__ == "__main__":
    main()
