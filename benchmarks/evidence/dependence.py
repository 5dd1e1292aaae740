"""Coverage of 95 % intervals when the rankings of a run repeat over time, with and without the correction.

    python benchmarks/evidence/dependence.py --simulations 100 --output docs/results/dependence.json

Ratings are drawn from the prior, hyperparameters included.  Each simulated run carries a Gaussian copula: its noise at
neighbouring timepoints correlates by rho, so rho = 0 is the likelihood of the paper.  Printed: the share of
timepoints at which the interval of a difference of two log-ratings holds the true one, for the likelihood as it is
(dependence="none") and corrected ("auto"), and the median weight that the correction gave the rankings.
"""

import argparse
import itertools
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from polarbear_plugins import fit
from polarbear_plugins.plackett_luce.likelihood import helmert
from polarbear_plugins.priors import BUILT_IN_PRIORS

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure
from simulated_rankings import simulate

PRIORS = ("bspline", "hsgp", "sparse-gp", "gp", "random-walk")
CORRELATIONS = (0.0, 0.5, 0.9, 0.99)


def draw_hyperparameters(prior: Any, rng: np.random.Generator) -> np.ndarray:
    """Draw phi from the hyperprior."""
    if hasattr(prior, "lengthscale"):
        shape, rate = prior.lengthscale
        return np.array([rng.normal(*prior.amplitude), np.log(rate / rng.gamma(shape))])
    return np.array([rng.normal(*prior.scale)])


def draw_utilities(prior: Any, n: int, timepoints: int, rng: np.random.Generator) -> np.ndarray:
    """Draw ``utilities[timepoint, algorithm]`` from the prior."""
    factor = prior.factor(draw_hyperparameters(prior, rng), np.linspace(0, 1, timepoints))
    return factor @ rng.normal(size=(factor.shape[1], n - 1)) @ helmert(n).T


def coverage(log_ratings: np.ndarray, utilities: np.ndarray) -> float:
    """Share of the pairwise differences inside their 95 % interval."""
    hits = []
    for i, j in itertools.combinations(range(utilities.shape[1]), 2):
        low, high = np.quantile(log_ratings[:, :, i] - log_ratings[:, :, j], [0.025, 0.975], axis=0)
        truth = utilities[:, i] - utilities[:, j]
        hits.append(((low <= truth) & (truth <= high)).mean())
    return float(np.mean(hits))


def one_simulation(job: tuple[str, float, int, int, int, int, int]) -> tuple[float, float, float]:
    """Coverage without and with the correction, and the median weight."""
    name, rho, seed, n, instances, timepoints, draws = job
    rng = np.random.default_rng([seed, int(rho * 1000), PRIORS.index(name)])
    utilities = draw_utilities(BUILT_IN_PRIORS[name](), n, timepoints, rng)
    table = simulate(utilities, instances, rho, rng)
    plain = fit(table, name, draws=draws, seed=seed, dependence="none", time_scale="linear")
    corrected = fit(table, name, draws=draws, seed=seed, dependence="auto", time_scale="linear")
    weight = float(np.median(corrected.diagnostics.dependence or [1.0]))
    return coverage(plain.log_ratings, utilities), coverage(corrected.log_ratings, utilities), weight


def main() -> None:
    """Simulate, print a table, keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--simulations", type=int, default=100)
    parser.add_argument(
        "--first-seed", type=int, default=0, help="other simulations than those the method was made with"
    )
    parser.add_argument("--priors", nargs="+", default=PRIORS, choices=PRIORS)
    parser.add_argument("--correlations", nargs="+", type=float, default=CORRELATIONS)
    parser.add_argument("--algorithms", type=int, default=4)
    parser.add_argument("--instances", type=int, default=40)
    parser.add_argument("--timepoints", type=int, default=40)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, help="keep the results as JSON")
    parser.add_argument("--figure", type=Path, help="draw the coverage (needs matplotlib)")
    parser.add_argument("--draw", type=Path, help="only draw the figure, from the JSON of an earlier run")
    arguments = parse_arguments(
        parser, {"simulations": 4, "priors": ["bspline"], "correlations": [0.0, 0.9], "draws": 200}
    )
    if arguments.draw:
        draw(json.loads(arguments.draw.read_text())["results"], arguments.figure)
        return
    size = (arguments.algorithms, arguments.instances, arguments.timepoints, arguments.draws)
    results = []
    print(f"n={size[0]} P={size[1]} T={size[2]}, {arguments.simulations} simulations each")
    print("prior         rho    none           auto           weight")
    with ProcessPoolExecutor(arguments.workers) as pool:
        for name, rho in itertools.product(arguments.priors, arguments.correlations):
            start = time.perf_counter()
            jobs = [
                (name, rho, seed, *size)
                for seed in range(arguments.first_seed, arguments.first_seed + arguments.simulations)
            ]
            done = np.array(list(pool.map(one_simulation, jobs)))
            mean, error = done.mean(axis=0), done.std(axis=0) / np.sqrt(len(done))
            results.append({"prior": name, "rho": rho, "none": mean[0], "auto": mean[1], "auto_error": error[1]})
            report_figure(
                f"{name:12s} {rho:5.2f}   {mean[0]:.3f} ± {error[0]:.3f}  {mean[1]:.3f} ± {error[1]:.3f}  "
                f"{np.median(done[:, 2]):.2f}   ({time.perf_counter() - start:.0f} s)",
                f"coverage, {name}, rho {rho:g}",
                mean[1],
                f"nominal 0.95; uncorrected {mean[0]:.3f}",
            )
    outside = [row for row in results if not 0.92 <= row["auto"] <= 0.98]
    print(f"{len(results) - len(outside)} of {len(results)} corrected figures lie between 0.92 and 0.98")
    if arguments.output:
        arguments.output.write_text(json.dumps({"results": results}, indent=1) + "\n")
    if arguments.figure:
        draw(results, arguments.figure)


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """Coverage against the correlation between neighbouring timepoints, as it is and corrected."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row["prior"] for row in results))
    figure, axes = plt.subplots(1, len(names), figsize=(2.4 * len(names), 3), sharey=True, layout="constrained")
    for ax, name in zip(np.atleast_1d(axes), names, strict=True):
        rows = [row for row in results if row["prior"] == name]
        places = range(len(rows))
        ax.axhspan(0.92, 0.98, color="0.9")
        ax.axhline(0.95, color="0.5", linewidth=0.8)
        ax.plot(places, [row["none"] for row in rows], "o--", color="#D55E00", label="rankings taken as independent")
        ax.errorbar(
            places,
            [row["auto"] for row in rows],
            yerr=[2 * row["auto_error"] for row in rows],
            fmt="s-",
            color="#0072B2",
            capsize=3,
            label="corrected",
        )
        ax.set(title=name, xticks=list(places), xticklabels=[f"{row['rho']:g}" for row in rows], ylim=(0.5, 1))
    figure.supxlabel("correlation of a run's noise from one timepoint to the next")
    figure.supylabel("coverage of 95 % intervals")
    handles, labels = np.atleast_1d(axes)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
