"""Simulation-based calibration of the native engine, for every prior.

    python benchmarks/evidence/calibration.py --simulations 500 --output results.json --figure ranks.png

Ratings are drawn from the prior and rankings from the ratings; then the rank of a true value among the draws of its
posterior is uniform, if the posterior is right.  Tested are a difference of log-ratings at the first and at the last
timepoint, the likelihood (which sees what single quantities do not), and the hyperparameters.  Printed: p-values of
chi-square tests of uniformity; with some forty of them the smallest should be about 1/40.
"""

import argparse
import json
import math
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from dependence import draw_hyperparameters
from scipy.stats import chisquare

from polarbear_plugins import fit
from polarbear_plugins.errors import InferenceWarning
from polarbear_plugins.plackett_luce.likelihood import Likelihood, helmert
from polarbear_plugins.plackett_luce.subsets import statistics_of
from polarbear_plugins.priors import BUILT_IN_PRIORS

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure
from simulated_rankings import simulate

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "dirichlet": ("dirichlet", {}),
    "dirichlet alpha=0.3": ("dirichlet", {"alpha": 0.3}),
    "hierarchical-dirichlet": ("hierarchical-dirichlet", {}),
    "gp matern32": ("gp", {}),
    "gp matern52": ("gp", {"kernel": "matern52"}),
    "gp se": ("gp", {"kernel": "se", "jitter": 1e-5}),
    "sparse-gp": ("sparse-gp", {"inducing": 5}),
    "hsgp": ("hsgp", {}),
    "random-walk": ("random-walk", {}),
    "bspline": ("bspline", {}),
}
RANKS = 99  # thinned draws; ranks run from 0 to this
BINS = 20


def draw_truth(prior: Any, n: int, timepoints: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Utilities ``[timepoint, algorithm]`` and hyperparameters from the prior."""
    if prior.name in ("dirichlet", "hierarchical-dirichlet"):
        kappa = n * prior.alpha if prior.name == "dirichlet" else rng.exponential(1 / prior.rate)
        # The logarithm of a gamma variable of small shape, which itself would vanish.
        shape = np.full((timepoints, n), kappa / n)
        logs = np.log(rng.gamma(shape + 1)) + np.log(rng.random(shape.shape)) / shape
        return logs, np.array([] if prior.name == "dirichlet" else [math.log(kappa)])
    phi = draw_hyperparameters(prior, rng)
    factor = prior.factor(phi, np.linspace(0, 1, timepoints))
    return factor @ rng.normal(size=(factor.shape[1], n - 1)) @ helmert(n).T, phi


def one_simulation(job: tuple[str, int, int, int, int]) -> tuple[list[int], bool]:
    """Ranks of the true quantities among thinned draws, and whether the posterior called itself good."""
    case, seed, n, instances, timepoints = job
    name, options = CASES[case]
    rng = np.random.default_rng([seed, list(CASES).index(case)])
    truth, phi = draw_truth(BUILT_IN_PRIORS[name](**options), n, timepoints, rng)
    table = simulate(truth, instances, 0.0, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)  # counted instead
        posterior = fit(table, name, draws=990, seed=seed, dependence="none", time_scale="linear", **options)
    draws = posterior.log_ratings[:: len(posterior.log_ratings) // RANKS][:RANKS]
    likelihood = Likelihood(statistics_of(table.ranks, table.weights))
    quantities = [
        (draws[:, 0, 0] - draws[:, 0, 1], truth[0, 0] - truth[0, 1]),
        (draws[:, -1, 1] - draws[:, -1, 2], truth[-1, 1] - truth[-1, 2]),
        (likelihood.value(draws), likelihood.value(truth)),
    ]
    step = len(posterior.log_ratings) // RANKS
    for place, values in enumerate(posterior.hyperparameters.values()):
        # Grid points repeat: a tie is broken at random.
        quantities.append((values[::step][:RANKS], phi[place]))
    ranks = []
    for values, true in quantities:
        below, equal = int(np.sum(values < true)), int(np.sum(values == true))
        ranks.append(below + int(rng.integers(0, equal + 1)))
    return ranks, posterior.diagnostics.good


def main() -> None:
    """Simulate, print p-values, draw histograms."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--simulations", type=int, default=500)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--algorithms", type=int, default=4)
    parser.add_argument("--instances", type=int, default=10)
    parser.add_argument("--timepoints", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, help="keep the results as JSON")
    parser.add_argument("--figure", type=Path, help="draw the rank histograms (needs matplotlib)")
    arguments = parse_arguments(parser, {"simulations": 20, "cases": ["dirichlet", "bspline"]})
    size = (arguments.algorithms, arguments.instances, arguments.timepoints)
    print(f"n={size[0]} P={size[1]} T={size[2]}, {arguments.simulations} simulations each; p-values of uniform ranks")
    results: dict[str, Any] = {}
    with ProcessPoolExecutor(arguments.workers) as pool:
        for case in arguments.cases:
            start = time.perf_counter()
            jobs = [(case, seed, *size) for seed in range(arguments.simulations)]
            done = list(pool.map(one_simulation, jobs, chunksize=5))
            ranks = np.array([ranks for ranks, _ in done])
            names = ["first", "last", "likelihood", *(f"phi{k}" for k in range(ranks.shape[1] - 3))]
            counts = [np.bincount(column * BINS // (RANKS + 1), minlength=BINS) for column in ranks.T]
            p_values = {name: float(chisquare(count).pvalue) for name, count in zip(names, counts, strict=True)}
            poor = sum(not good for _, good in done)
            results[case] = {"p_values": p_values, "counts": [count.tolist() for count in counts], "not_good": poor}
            shown = "  ".join(f"{name} {p:.3f}" for name, p in p_values.items())
            print(f"{case:24s} {shown}   not good {poor}   ({time.perf_counter() - start:.0f} s)", flush=True)
    everything = [p for result in results.values() for p in result["p_values"].values()]
    report_figure(
        f"smallest of {len(everything)} p-values: {min(everything):.4f} (fails below {0.01 / len(everything):.5f})",
        f"smallest of {len(everything)} p-values",
        min(everything),
        f"uniform ranks: fails below {0.01 / len(everything):.5f}",
    )
    if arguments.output:
        arguments.output.write_text(json.dumps({"results": results}, indent=1) + "\n")
    if arguments.figure:
        _draw(results, arguments.simulations, arguments.figure)


def _draw(results: dict[str, Any], simulations: int, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from scipy.stats import binom

    low, high = binom.ppf([0.005, 0.995], simulations, 1 / BINS)
    width = max(len(result["counts"]) for result in results.values())
    figure, axes = plt.subplots(
        len(results), width, figsize=(2.2 * width, 1.3 * len(results)), squeeze=False, layout="constrained"
    )
    for row, (case, result) in zip(axes, results.items(), strict=True):
        for ax in row[len(result["counts"]) :]:
            ax.axis("off")
        for ax, counts, (name, p) in zip(row, result["counts"], result["p_values"].items(), strict=False):
            ax.axhspan(low, high, color="0.85")
            ax.bar(range(BINS), counts, width=1.0, color="#0072B2")
            ax.set(xticks=[], ylim=(0, 2.2 * simulations / BINS))
            ax.set_title(f"{name}, p = {p:.2f}", fontsize=7)
            ax.tick_params(labelsize=6)
        row[0].set_ylabel(case, fontsize=6)
    figure.suptitle("Ranks of true values among posterior draws; grey: 99 % if uniform", fontsize=9)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
