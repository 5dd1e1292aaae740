"""Race made-up algorithms and draw every figure of the package.

    python examples/figures.py --quick
    python examples/figures.py --folder figures
    python examples/figures.py --docs

The optimum is 0 on every instance.  `sprinter` and `steady-es` lead early and stall, `marathon` and `late_bloomer` are
the best in the end, the others are worse at all times.  `--docs` writes only the figures of docs/guide/report.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from polarbear_plugins import RaceResult, RaceSettings, Trajectory, log_timepoints, race
from polarbear_plugins.measures.bootstrap import bootstrap_scores
from polarbear_plugins.partial_orders.order import from_criteria
from polarbear_plugins.plots import (
    colours,
    plot_allocation,
    plot_attainment_difference,
    plot_bootstrap_ranks,
    plot_dominance,
    plot_ecdf,
    plot_hasse_diagram,
    plot_ratings,
    plot_ribbon,
    plot_timeline,
    plot_values,
    plot_wins,
)
from polarbear_plugins.trajectories.trajectory import best_at

BUDGET = 10_000.0
# Of each algorithm the logarithm of its best value at the beginning, and its falls per decade early and late.
FALLS = {
    "sprinter": (0.6, 1.1, 0.25),
    "steady-es": (0.6, 0.9, 0.7),
    "marathon": (1.2, 0.65, 1.4),
    "late_bloomer": (1.5, 0.5, 1.9),
    "copycat": (1.1, 1.05, 0.22),
    "walker": (1.3, 0.6, 0.5),
    "random-search": (1.6, 0.35, 0.2),
}
DOCS = ("ribbon", "ratings", "dominance", "values", "allocation", "timeline", "wins")


def make_run(name: str) -> Any:
    """Make the function that runs an algorithm: the best value falls by a power of time, with noise."""
    start, early, late = FALLS[name]

    def run(problem: float, horizon: float, seed: int) -> Trajectory:
        rng = np.random.default_rng(seed)
        times = log_timepoints(1, BUDGET, 120, integer=True)
        decades = np.log10(times)
        fall = early * np.minimum(decades, 2.0) + late * np.maximum(decades - 2.0, 0.0)
        noise = rng.normal(0, 0.45) + rng.normal(0, 0.12, times.size)
        best = np.minimum.accumulate(10 ** (start + problem - fall + noise))
        inside = times <= horizon
        return Trajectory(
            algorithm=name, instance="any", seed=seed, times=times[inside], best=best[inside], horizon=horizon
        )

    return run


def run_race(quick: bool) -> RaceResult:
    """Race the algorithms in this process."""
    settings = RaceSettings(seed=1, draws=1000 if quick else 4000, max_rounds=6 if quick else 25, resolution="crossing")
    runs = {name: make_run(name) for name in FALLS}
    grid = log_timepoints(10, BUDGET, 12 if quick else 60, integer=True)
    return race(runs, lambda rng: rng.uniform(-0.5, 0.5), grid, settings, workers=0)


def draw(result: RaceResult) -> dict[str, Any]:
    """Draw all figures, each algorithm in one colour throughout; gives their axes by name."""
    posterior, inside = result.posterior, result.pareto_set
    out = [name for name in result.algorithms if name not in inside]
    tone = colours(result.algorithms)
    runs = list(result.trajectories())
    best = posterior.ratings.mean(axis=0).sum(axis=0)
    first, second = (result.algorithms[place] for place in np.argsort(-best)[:2])
    watched = [run for run in runs if run.horizon >= 2000]
    losses = {
        (name, "all"): np.array([np.log10(best_at(run, [2000])[0]) for run in watched if run.algorithm == name][:24])
        for name in result.algorithms
    }
    ratings = pd.DataFrame(posterior.ratings.mean(axis=0).T, index=result.algorithms, columns=result.timepoints)
    order = from_criteria(-ratings)  # of criteria, smaller is better
    return {
        "ribbon": plot_ribbon(result, colour=tone),
        "ratings": plot_ratings(posterior, eliminated=out, colour=tone),
        "dominance": plot_dominance(result, colour=tone),
        "values": plot_values(posterior, among=inside, colour=tone),
        "values_log_uniform": plot_values(posterior, preference="log-uniform", among=inside, colour=tone),
        "allocation": plot_allocation(result),
        "wins": plot_wins(posterior, timepoint=1000),
        "timeline": plot_timeline(posterior, among=inside, colour=tone),
        "bootstrap_ranks": plot_bootstrap_ranks(bootstrap_scores(losses, result.algorithms, ["all"]), colour=tone),
        "ecdf": plot_ecdf(runs, lower=1e-4, upper=1e2, colour=tone),
        "attainment_difference": plot_attainment_difference(runs, first, second),
        "hasse": plot_hasse_diagram(order, title="Whose mean rating is higher at all timepoints"),
    }


def main() -> None:
    """Race, draw, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few timepoints, draws and rounds")
    parser.add_argument("--folder", type=Path, default=Path("figures"), help="where to save the figures")
    parser.add_argument("--docs", action="store_true", help="save the figures of docs/guide/report.md beside it")
    arguments = parser.parse_args()
    folder = Path(__file__).parent.parent / "docs" / "figures" if arguments.docs else arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    result = run_race(arguments.quick)
    print(result)
    for name, ax in draw(result).items():
        if name in DOCS or not arguments.docs:
            path = folder / f"{name}.png"
            ax.figure.savefig(path, dpi=110)
            if arguments.docs:
                with Image.open(path) as image:  # fewer colours make small files
                    small = image.convert("RGB").quantize(200)
                small.save(path, optimize=True)
            print(path)


if __name__ == "__main__":
    main()
