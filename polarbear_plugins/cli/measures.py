"""``polarbear measures``: classical anytime measures of existing results, and the pairs where rankings disagree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, get_args

import click
import numpy as np

from polarbear_plugins.cli.completion import complete_files
from polarbear_plugins.cli.measures_view import (
    RankSummary,
    orders_json,
    rows_of,
    show_measures,
    show_posterior,
    show_ranks,
)
from polarbear_plugins.cli.options import (
    parse_key_values,
    parse_numbers,
    parse_timepoints,
    read_runs,
    settings_from,
    settings_options,
)
from polarbear_plugins.cli.output import console, json_option, print_json, save_figures, show_saved
from polarbear_plugins.cli.outputs import FigureFolder, Saving, Source
from polarbear_plugins.cli.progress import compute_unless_interrupted, inference_spinner, spinner
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.disagreements import find_contradictions
from polarbear_plugins.measures.ecdf_and_aocc import ecdf
from polarbear_plugins.measures.orders import AreaScale, order_by_measures
from polarbear_plugins.measures.tables import fixed_budget, fixed_target
from polarbear_plugins.measures.targets import LOWER, UPPER, Scale, spread_targets
from polarbear_plugins.racing.analysis import analyze as analyze_table
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.rankings.stream import default_timepoints, rank
from polarbear_plugins.trajectories.runs import hold_last_value, relative_to_range
from polarbear_plugins.trajectories.timepoints import as_timepoints
from polarbear_plugins.trajectories.trajectory import Trajectory


@click.command(short_help="AOCC, ECDF and fixed tables beside the posterior.")
@click.argument("sources", nargs=-1, required=True, type=Source(), metavar="SOURCE...", shell_complete=complete_files)
@click.option(
    "-o", "--option", "options", multiple=True, metavar="KEY=VALUE", help="An option for the adapter of the sources."
)
@click.option(
    "--budget",
    "budgets",
    metavar="A,B,...",
    help="Budgets of the fixed-budget table; the areas use the last one. By default some of the timepoints.",
)
@click.option(
    "--targets", metavar="A,B,...", help="Targets of the ECDF and the fixed-target table; by default 51 and 6."
)
@click.option(
    "--scale",
    type=click.Choice(["auto", *get_args(AreaScale)]),
    default="auto",
    show_default=True,
    help="Scale of the areas: log, for values with a known optimum of 0; linear between --lower and --upper; relative "
    "to the best and the worst value found on each instance. auto takes log unless there are values below 0, then "
    "linear if there are bounds, else relative.",
)
@click.option("--lower", type=float, help=f"Values below it count as this one. On the log scale {LOWER:g} by default.")
@click.option(
    "--upper", type=float, help=f"Values above it add nothing to an area. On the log scale {UPPER:g} by default."
)
@click.option("--hold", is_flag=True, help="Assume that runs which ended before the budget would not have improved.")
@click.option(
    "--timepoints",
    default="50",
    show_default=True,
    metavar="N or A,B,...",
    help="Timepoints of the posterior; by default those of a race.",
)
@click.option("--no-posterior", is_flag=True, help="Only the measures.")
@click.option(
    "--figures",
    type=FigureFolder(),
    help="Folder for figures: mean ranks and regret over time, and critical differences at each budget.",
)
@settings_options
@json_option
def measures(
    sources: Sequence[str],
    options: Sequence[str],
    budgets: str | None,
    targets: str | None,
    scale: AreaScale | Literal["auto"],
    lower: float | None,
    upper: float | None,
    hold: bool,
    timepoints: str,
    no_posterior: bool,
    figures: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Show AOCC, ECDF area, fixed tables, mean ranks with their test, and the posterior of the rankings beside them.

    SOURCE is as for `polarbear analyze`, or the journal or saved result of a race, which keeps values only at its
    timepoints. Areas and tables use the instances on which every algorithm has a run up to the last budget. Runs on an
    instance are averaged before instances are ranked for the test.
    """
    wanted, chosen = parse_timepoints(timepoints), settings_from(**settings)
    given = None if budgets is None else as_timepoints(sorted(parse_numbers(budgets, "--budget")))
    goals = None if targets is None else parse_numbers(targets, "--targets")
    with spinner("reading"):
        runs, known_at = read_runs(sources, parse_key_values(options, "--option"))
    if hold and runs:
        runs = list(hold_last_value(runs, max(run.horizon for run in runs) if given is None else float(given[-1])))
    if not isinstance(wanted, int):
        grid = as_timepoints(wanted)
    elif known_at is not None and _is_default("timepoints"):
        grid = known_at
    else:
        grid = default_timepoints(runs, wanted)
    spread = grid if given is None else given
    budget = float(spread[-1])
    grid = grid[grid <= budget]
    if not grid.size:
        raise InvalidInputError(f"--budget {budget:g} lies before the first of the timepoints. Give --timepoints.")
    if given is None:
        spread = grid[sorted({0, grid.size // 3, 2 * grid.size // 3, grid.size - 1})]
    first = float(grid[0]) if 0 < grid[0] < budget else None
    kind = _choose_scale(runs, scale, lower, upper)
    orders = order_by_measures(runs, budget, first=first, targets=goals, scale=kind, lower=lower, upper=upper)
    kept = [run for run in runs if run.instance in set(orders.instances) and run.horizon >= budget]
    values = fixed_budget(kept, spread)
    # Given targets are in the unit of the values, those spread on a relative scale are not.
    scaled = relative_to_range(kept, budget) if kind == "relative" and goals is None else kept
    steps: Scale = "log" if kind == "log" else "linear"
    spaced = spread_targets(steps, orders.lower, orders.upper, 6) if goals is None else goals
    times = fixed_target(scaled, spaced, budget)
    summary = RankSummary.of(rank(kept, np.union1d(grid, spread)), spread)
    shares = ecdf(scaled, grid, goals, orders.lower, orders.upper, scale=steps)

    def infer() -> RaceResult:
        table = rank(runs, grid)
        with inference_spinner(table, chosen):
            return analyze_table(table, chosen, {"sources": list(sources)})

    result = None if no_posterior else compute_unless_interrupted(infer, "the posterior")
    pairs = [] if result is None else find_contradictions(orders, result.posterior, chosen.alpha)
    with Saving() as saving:
        saving.save(figures, lambda folder: _draw(summary, folder))
        if as_json:
            print_json(
                {
                    "sources": list(sources),
                    **orders_json(orders),
                    "ecdf": {
                        "timepoints": grid.tolist(),
                        "shares": {str(name): shares[name].tolist() for name in shares},
                    },
                    "fixed_budget": rows_of(values.reset_index()),
                    "fixed_target": rows_of(times.reset_index()),
                    **summary.to_json(),
                    "posterior": None if result is None else result.to_dict(),
                    "contradictions": [{**asdict(pair), "text": str(pair)} for pair in pairs],
                    "figures": [str(path) for path in saving.saved],
                }
            )
            return
        out = console()
        show_measures(out, orders, values, times)
        show_ranks(out, summary)
        if result is not None:
            show_posterior(out, result, pairs)
        show_saved(out, saving.saved)


def _choose_scale(
    runs: Sequence[Trajectory], scale: AreaScale | Literal["auto"], lower: float | None, upper: float | None
) -> AreaScale:
    """Scale that the values and the bounds allow, if it is to be chosen; bounds that are missing are asked for."""
    if scale == "auto":
        slack = LOWER if lower is None else max(lower, 0.0)  # rounding may leave an optimum slightly below 0
        negative = any(run.best.size and run.best.min() < -slack for run in runs)
        given = lower is not None and upper is not None
        scale = "log" if not negative else "linear" if given else "relative"
    if scale == "linear" and (lower is None or upper is None):
        raise InvalidInputError("--scale linear needs both bounds, --lower and --upper, in the unit of the values.")
    if scale == "relative" and (lower is not None or upper is not None):
        raise InvalidInputError(
            "--scale relative takes the best and the worst value found on each instance: leave out --lower and "
            "--upper, or give both with --scale linear."
        )
    return scale


def _draw(summary: RankSummary, folder: Path) -> list[Path]:
    """Draw mean ranks and regret over time and the critical differences at the budgets."""
    from polarbear_plugins.plots.mean_ranks import plot_critical_differences, plot_mean_curves

    drawn = {
        "mean_ranks": plot_mean_curves(summary.ranks),
        "mean_regret": plot_mean_curves(summary.regret, label="mean regret"),
        **{f"critical_difference_{test.timepoint:g}": plot_critical_differences(test) for test in summary.tests},
    }
    return save_figures(drawn, folder)


def _is_default(option: str) -> bool:
    return click.get_current_context().get_parameter_source(option) is click.core.ParameterSource.DEFAULT
