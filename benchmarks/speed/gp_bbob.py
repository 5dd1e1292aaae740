"""The suite gp-bbob: building, evaluations a second, and how many functions count.

    python benchmarks/speed/gp_bbob.py --dimensions 40 160 240 320

Evaluations: against a mixture that evaluates all 24 functions, as their weights would allow, on the same points.
Functions that count: the mean over points of instances with the default priors, with k(x) rounded as here and cut off,
beside the mean of ma-bbob.
"""

import argparse
import itertools
import sys
import time
from pathlib import Path

import numpy as np

from polarbear_plugins.integrations.gp_bbob import PRIORS, GpBbobProblem, GpBbobSuite
from polarbear_plugins.integrations.gp_bbob.distributions import as_distribution
from polarbear_plugins.integrations.ma_bbob import MaBbobSuite

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure


def evaluate_all(problem: GpBbobProblem, x: np.ndarray) -> float:
    """Value at a point by all 24 functions."""
    [weights] = problem.mixture.weights(x[None])
    place = x.tolist()
    return float(sum(w * f(place) for w, f in zip(weights, problem._functions, strict=True))) + problem._offset


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[40, 160])
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parse_arguments(parser, {"dimensions": [5], "evaluations": 20})
    rng = np.random.default_rng(options.seed)
    for dimension in options.dimensions:
        suite = GpBbobSuite({"dimension": dimension})
        began = time.perf_counter()
        problem = suite.build(next(suite.identities(options.seed)))
        built = time.perf_counter() - began
        points = rng.uniform(-5, 5, (options.evaluations, dimension))
        times, values = [], []
        for evaluate in (problem.evaluate, lambda x, problem=problem: evaluate_all(problem, x)):
            began = time.perf_counter()
            values.append([evaluate(x) for x in points])
            times.append(time.perf_counter() - began)
        np.testing.assert_allclose(values[0], values[1], rtol=1e-9)
        ratio = times[1] / times[0]
        report_figure(
            f"d = {dimension}: built in {built:.1f} s, {options.evaluations / times[0]:.0f} evaluations/s, "
            f"all 24 functions {options.evaluations / times[1]:.0f}, ratio {ratio:.1f}",
            f"evaluations/s, d = {dimension}",
            ratio,
            "all 24 functions",
            "higher",
        )
    sparsity = as_distribution(PRIORS["sparsity"], "sparsity")
    drawn = np.array([sparsity.quantile(u) for u in rng.random(100_000)])
    weights = [
        np.count_nonzero(identity.parameters["weights"])
        for identity in itertools.islice(MaBbobSuite(2).identities(options.seed), 5_000)
    ]
    print(
        f"functions that count: {np.round(drawn).mean():.2f} rounded, {np.floor(drawn).mean():.2f} cut off, "
        f"ma-bbob {np.mean(weights):.2f}"
    )


if __name__ == "__main__":
    main()
