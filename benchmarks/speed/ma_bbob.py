"""Evaluations a second of the suite ma-bbob, against ioh's ManyAffine in the same run.

    python benchmarks/speed/ma_bbob.py --dimension 30 --problems 40 --evaluations 200

Both evaluate the same points of the same problems, in turns, five times, of which the fastest counts: once at random
points and once close to the optima, at distances from 1e-12 to 1.  Printed: how fast each is, the ratio, and the
largest relative difference of the values.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from pathlib import Path

import ioh
import numpy as np

from polarbear_plugins.integrations.ma_bbob import MaBbobSuite

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure


def timed(evaluate: Callable[[np.ndarray], float], points: np.ndarray) -> tuple[float, np.ndarray]:
    """Seconds for all points, and the values."""
    began = time.perf_counter()
    values = [evaluate(x) for x in points]
    return time.perf_counter() - began, np.array(values)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dimension", type=int, default=30)
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parse_arguments(parser, {"dimension": 5, "problems": 3, "evaluations": 50, "repeats": 1})
    shape = options.evaluations, options.dimension
    suite = MaBbobSuite(options.dimension)
    seconds = {"random points": np.zeros(2), "near the optimum": np.zeros(2)}
    difference = dict.fromkeys(seconds, 0.0)
    parts = []
    for number, identity in enumerate(itertools.islice(suite.identities(options.seed), options.problems)):
        problem, drawn = suite.build(identity), identity.parameters
        reference = ioh.problem.ManyAffine(drawn["xopt"], drawn["weights"], drawn["instances"], options.dimension)
        parts.append(np.count_nonzero(drawn["weights"]))
        rng = np.random.default_rng([options.seed, number])
        near = drawn["xopt"] + 10 ** rng.uniform(-12, 0, (shape[0], 1)) * rng.normal(size=shape)
        for where, points in zip(seconds, (rng.uniform(-5, 5, shape), near), strict=True):
            rounds = [[timed(f, points) for f in (problem.evaluate, reference)] for _ in range(options.repeats)]
            seconds[where] += np.min([[needed for needed, _ in both] for both in rounds], axis=0)
            (_, mine), (_, known) = rounds[0]
            difference[where] = max(difference[where], float(np.abs(mine / known - 1).max()))
    print(f"d={options.dimension}, {options.problems} problems of {np.mean(parts):.1f} parts on average; evaluations/s")
    print(f"{'':18}{'ma-bbob':>10}{'ManyAffine':>12}{'ratio':>8}  largest relative difference")
    for where, (ours, theirs) in seconds.items():
        total = options.problems * options.evaluations
        report_figure(
            f"{where:18}{total / ours:10,.0f}{total / theirs:12,.0f}{theirs / ours:8.2f}  {difference[where]:.1e}",
            f"evaluations/s, {where}",
            theirs / ours,
            "ioh's ManyAffine",
            "higher",
        )


if __name__ == "__main__":
    main()
