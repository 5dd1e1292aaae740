"""How long a report of a race takes and how large it is, against drawing its figures with matplotlib alone in one run.

    python benchmarks/speed/report.py

The alternative draws the same figures at their usual size and saves each as an SVG file in memory: what somebody does
who needs the figures only.  A race of the paper's size has 7 algorithms and 200 timepoints.  Prints the best of several
repetitions, seconds of processor time.
"""

import argparse
import io
import sys
from pathlib import Path
from typing import Any

from polarbear_plugins import RaceResult, RaceSettings, log_timepoints, plots, race
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.report import render

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure, seconds

PREFERENCES = ("uniform", "log-uniform", "final", "worst")


def raced(algorithms: int, timepoints: int, rounds: int) -> RaceResult:
    """Race algorithms with known ratings."""
    grid = log_timepoints(50, 10_000, timepoints)
    settings = RaceSettings(seed=1, max_rounds=rounds, alpha=0.9)
    options = {"algorithms": algorithms, "timepoints": timepoints, "correlation": 0.9, "seed": 2}
    return race("synthetic", "synthetic", grid, settings, workers=0, portfolio_options=options)


def figures_alone(result: RaceResult) -> int:
    """Draw the figures of a report; gives the size of the files."""
    colour = plots.colours(result.algorithms)
    among = result.pareto_set
    drawn: list[Any] = [
        plots.plot_timeline(result.posterior, among=among, colour=colour),
        plots.plot_dominance(result, colour=colour),
        plots.plot_ratings(result.posterior, colour=colour),
        plots.plot_wins(result.posterior),
        plots.plot_allocation(result),
    ]
    drawn += [plots.plot_values(result.posterior, preference=p, among=among, colour=colour) for p in PREFERENCES]
    size = 0
    for ax in drawn:
        file = io.StringIO()
        ax.figure.savefig(file, format="svg")
        size += len(file.getvalue().encode())
    return size


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--algorithms", default="7,10", help="numbers of algorithms with commas between")
    parser.add_argument("--timepoints", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--repetitions", type=int, default=2)
    arguments = parse_arguments(parser, {"algorithms": "3", "timepoints": 10, "rounds": 1, "repetitions": 1})
    for algorithms in map(int, arguments.algorithms.split(",")):
        result = raced(algorithms, arguments.timepoints, arguments.rounds)
        size = len(render(result, plugins=Plugins()).encode())
        alone = figures_alone(result)  # both once before the clock runs: fonts, imports
        ours = seconds(lambda result=result: render(result, plugins=Plugins()), arguments.repetitions)  # type: ignore[misc]
        theirs = seconds(lambda result=result: figures_alone(result), arguments.repetitions)  # type: ignore[misc]
        report_figure(
            f"{algorithms} algorithms, {arguments.timepoints} timepoints, {len(result.rounds)} rounds, "
            f"{len(result.pareto_set)} left: report {ours:.1f} s, {size / 1e6:.2f} MB; its figures alone "
            f"{theirs:.1f} s, {alone / 1e6:.2f} MB as files; ratio {ours / theirs:.2f} in time, ",
            f"time of a report, {algorithms} algorithms",
            ours / theirs,
            "its figures alone",
            "lower",
            end="",
        )
        report_figure(
            f"{size / alone:.2f} in size",
            f"size of a report, {algorithms} algorithms",
            size / alone,
            "its figures alone",
            "lower",
        )


if __name__ == "__main__":
    main()
