"""What the two case studies share: options, the race, and what is printed at the end."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polarbear_plugins import RaceResult, RaceSettings, log_timepoints, race, resume, select, uniform_timepoints
from polarbear_plugins.experiments.watching import Progress
from polarbear_plugins.measures.ecdf_and_aocc import mean_area_over_curve


@dataclass(frozen=True)
class Study:
    """One of the paper's case studies, at any scale."""

    portfolio: str
    suite: str
    suite_options: Callable[[argparse.Namespace], dict[str, Any]]
    horizon: Callable[[argparse.Namespace], float]
    first: Callable[[float], float]
    whole: bool
    unit: str
    optimum_is_zero: bool


def main(study: Study, about: str | None) -> None:
    """Race as the options say, and print what was found."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dimension", default="5" if study.whole else "20", help="of the problems")
    parser.add_argument("--budget", type=float, help=f"{study.unit} of a run")
    parser.add_argument("--timepoints", type=int, default=50)
    parser.add_argument("--preset", default="paper", choices=["paper", "appendix-b"], help="of CMA-ES, see docs")
    parser.add_argument("--alpha", type=float, default=0.99)
    parser.add_argument("--prior", default="dirichlet")
    parser.add_argument("--elimination", default="pointwise", choices=["pointwise", "joint"])
    parser.add_argument("--resolution", default="strict", choices=["strict", "crossing"])
    parser.add_argument("--spacing", default="log", choices=["log", "uniform"], help="of the timepoints")
    parser.add_argument("--guard", default="counts", choices=["counts", "none"], help="none is the paper's rule")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-rounds", type=int)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--run-timeout", type=float, help="seconds after which a run counts as hung")
    parser.add_argument("--journal", type=Path, help="keep every run, and go on from there")
    parser.add_argument("--output", type=Path, help="save the result")
    parser.add_argument("--figure", type=Path, help="draw the ratings over time (.png), with the extra plots")
    parser.add_argument("--report", type=Path, help="write a page (.html), with figures if the extra plots is there")
    parser.add_argument("--quick", action="store_true", help="a few rounds with a small budget")
    options = parser.parse_args()
    if study.whole:
        options.dimension = int(options.dimension)
    if options.quick:
        options.budget = options.budget or (500 if study.whole else 0.2)
        options.max_rounds = options.max_rounds or 2
        options.timepoints = min(options.timepoints, 10)
    result = run(study, options)
    report(study, result)
    if options.output:
        print(f"saved {result.save(options.output)}")
    if options.figure:
        print(f"drew {draw(result, study.unit, options.figure)}")
    if options.report:
        print(f"wrote {result.report(options.report, unit=study.unit)}")


def run(study: Study, options: argparse.Namespace) -> RaceResult:
    """Begin the race, or go on with the one in the journal."""
    horizon = study.horizon(options)
    execution = {"workers": options.workers, "run_timeout": options.run_timeout, "progress": show}
    if options.journal and options.journal.exists():
        return resume(options.journal, max_rounds=options.max_rounds, **execution)
    make = log_timepoints if options.spacing == "log" else uniform_timepoints
    return race(
        study.portfolio,
        study.suite,
        make(study.first(horizon), horizon, options.timepoints, integer=study.whole),
        RaceSettings(
            alpha=options.alpha,
            prior=options.prior,
            elimination=options.elimination,
            resolution=options.resolution,
            guard=options.guard,
            seed=options.seed,
            max_rounds=options.max_rounds,
        ),
        portfolio_options={"preset": options.preset, "axis": study.unit},
        suite_options=study.suite_options(options),
        journal=options.journal,
        **execution,
    )


def draw(result: RaceResult, unit: str, path: Path) -> Path:
    """Draw the ratings over time; those that were eliminated are grey."""
    import matplotlib.pyplot as plt

    from polarbear_plugins.plots import plot_ratings

    out = [each.algorithm for each in result.eliminations]
    axes = plot_ratings(result.posterior, eliminated=out)
    axes.set_xlabel(unit)
    axes.figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(axes.figure)
    return path


def show(progress: Progress) -> None:
    """Print a line for each finished round."""
    if not progress.planned:
        done = progress.state.rounds[-1]
        out = "".join(f", {each.algorithm} out ({each.by} better)" for each in done.eliminations)
        print(f"round {done.number}: {done.instances} instances, {done.resolved_share:.0%} settled{out}", flush=True)


def report(study: Study, result: RaceResult) -> None:
    """Print the Pareto set, what it cost, what to choose, and the traditional measure beside it."""
    print(result.summary().to_string())
    leader = np.argmax(result.posterior.ratings.mean(axis=0), axis=1)
    for name in result.pareto_set:
        ahead = result.timepoints[leader == result.algorithms.index(name)]
        where = f"most likely best from {ahead[0]:.5g} to {ahead[-1]:.5g} {study.unit}" if ahead.size else "never first"
        print(f"{name}: {where}")
    print(
        f"Pareto set {', '.join(result.pareto_set)} after {len(result.rounds)} rounds ({result.stopped}), "
        f"{len(result.state.table)} instances, {result.cost / result.full_cost:.0%} of the {study.unit} of running "
        "everything on as many"
    )
    for preference in ("uniform", "log-uniform"):
        print(select(result.posterior, among=result.pareto_set, preference=preference))
    if study.optimum_is_zero:
        areas = mean_area_over_curve(result.trajectories(), float(result.timepoints[-1]))
        print("AOCC:", ", ".join(f"{name} {area:.3f} ({runs} full runs)" for name, (area, runs) in areas.items()))
