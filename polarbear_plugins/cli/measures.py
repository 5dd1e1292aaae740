"""``polarbear measures``: classical anytime measures of existing results, and the pairs where rankings disagree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console
from rich.text import Text

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.cli.completion import complete_files
from polarbear_plugins.cli.options import (
    parse_key_values,
    parse_numbers,
    parse_timepoints,
    read_runs,
    settings_from,
    settings_options,
)
from polarbear_plugins.cli.output import console, json_option, print_json, show_result, text_table
from polarbear_plugins.cli.progress import compute_unless_interrupted, inference_spinner, spinner
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.disagreements import Contradiction, find_contradictions
from polarbear_plugins.measures.ecdf_and_aocc import ecdf
from polarbear_plugins.measures.orders import MeasureOrders, order_by_measures
from polarbear_plugins.measures.tables import fixed_budget, fixed_target
from polarbear_plugins.measures.targets import LOWER, UPPER, log_targets
from polarbear_plugins.racing.analysis import analyze as analyze_table
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.rankings.stream import default_timepoints, rank
from polarbear_plugins.trajectories.runs import hold_last_value
from polarbear_plugins.trajectories.timepoints import as_timepoints
from polarbear_plugins.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    import pandas as pd


_MOST_PAIRS = 10


@click.command(short_help="AOCC, ECDF and fixed tables beside the posterior.")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...", shell_complete=complete_files)
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
@click.option("--lower", type=float, default=LOWER, show_default=True, help="Values below it count as this one.")
@click.option("--upper", type=float, default=UPPER, show_default=True, help="Values above it add nothing to an area.")
@click.option("--hold", is_flag=True, help="Assume that runs which ended before the budget would not have improved.")
@click.option(
    "--timepoints",
    default="50",
    show_default=True,
    metavar="N or A,B,...",
    help="Timepoints of the posterior; by default those of a race.",
)
@click.option("--no-posterior", is_flag=True, help="Only the measures.")
@settings_options
@json_option
def measures(
    sources: Sequence[str],
    options: Sequence[str],
    budgets: str | None,
    targets: str | None,
    lower: float,
    upper: float,
    hold: bool,
    timepoints: str,
    no_posterior: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Show AOCC, ECDF area, fixed-budget and fixed-target tables, and the posterior of the rankings beside them.

    SOURCE is as for `polarbear analyze`, or the journal or saved result of a race, which keeps values only at its
    timepoints. Areas and tables use the instances on which every algorithm has a run up to the last budget. They need
    values with a known optimum of 0, on a log scale between --lower and --upper.
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
    orders = order_by_measures(runs, budget, first=first, targets=goals, lower=lower, upper=upper)
    kept = [run for run in runs if run.instance in set(orders.instances) and run.horizon >= budget]
    values = fixed_budget(kept, spread)
    times = fixed_target(kept, log_targets(lower, upper, 6) if goals is None else goals, budget)

    def infer() -> RaceResult:
        table = rank(runs, grid)
        with inference_spinner(table, chosen):
            return analyze_table(table, chosen, {"sources": list(sources)})

    result = None if no_posterior else compute_unless_interrupted(infer, "the posterior")
    pairs = [] if result is None else find_contradictions(orders, result.posterior, chosen.alpha)
    if as_json:
        print_json(
            {
                "sources": list(sources),
                **_orders_json(orders),
                "ecdf": _ecdf_json(kept, grid, goals, lower, upper),
                "fixed_budget": _rows(values),
                "fixed_target": _rows(times),
                "posterior": None if result is None else result.to_dict(),
                "contradictions": [{**asdict(pair), "text": str(pair)} for pair in pairs],
            }
        )
        return
    out = console()
    _show(out, orders, values, times)
    if result is not None:
        _show_posterior(out, result, pairs)


def _is_default(option: str) -> bool:
    return click.get_current_context().get_parameter_source(option) is click.core.ParameterSource.DEFAULT


def _show(out: Console, orders: MeasureOrders, values: pd.DataFrame, times: pd.DataFrame) -> None:
    out.print(
        f"{orders.runs} runs of {len(orders.algorithms)} algorithms on {len(orders.instances)} instances · budget "
        f"{orders.budget:g} · log scale {orders.lower:g}..{orders.upper:g}"
    )
    if orders.left_out:
        out.print(
            f"{orders.left_out} runs are left out: they end before the budget, or not all algorithms ran on that "
            "instance."
        )
    ranked = orders.order("AOCC")
    budgets = values.index.unique("budget")
    view = text_table("algorithm", ">AOCC", ">ECDF area", *(f">median at {budget:,.5g}" for budget in budgets))
    for name in ranked:
        place = orders.algorithms.index(name)
        areas = [f"{orders.by_measure[measure][place]:.4f}" for measure in ("AOCC", "ECDF area")]
        view.add_row(Text(name), *areas, *(f"{values.loc[(name, b), 'median']:.4g}" for b in budgets))
    out.print("Areas are best at 1; medians of the best values:")
    out.print(view)
    targets = times.index.unique("target")
    view = text_table("algorithm", *(f">{target:.3g}" for target in targets))
    for name in ranked:
        cells = [(times.loc[(name, target), "ert"], times.loc[(name, target), "success_rate"]) for target in targets]
        view.add_row(Text(name), *("never" if ert == math.inf else f"{ert:,.5g} ({rate:.0%})" for ert, rate in cells))
    out.print("Expected running time until a target, and the share of runs that reached it:")
    out.print(view)


def _show_posterior(out: Console, result: RaceResult, pairs: Sequence[Contradiction]) -> None:
    show_result(out, result)
    if not pairs:
        out.print("Rankings confirm the order of the measures for every pair.")
        return
    out.print("\nWhere rankings do not confirm the order of the measures:")
    for pair in pairs[:_MOST_PAIRS]:
        out.print(f"- {pair}", soft_wrap=True)
    if len(pairs) > _MOST_PAIRS:
        out.print(f"- and {len(pairs) - _MOST_PAIRS} more pairs, all with --json.")


def _orders_json(orders: MeasureOrders) -> dict[str, Any]:
    return {
        "runs": orders.runs,
        "left_out": orders.left_out,
        "algorithms": list(orders.algorithms),
        "instances": list(orders.instances),
        "budget": orders.budget,
        "lower": orders.lower,
        "upper": orders.upper,
        "measures": {
            measure: dict(zip(orders.algorithms, map(_finite, values.tolist()), strict=True))
            for measure, values in orders.by_measure.items()
        },
        "orders": {measure: list(orders.order(measure)) for measure in orders.by_measure},
    }


def _ecdf_json(
    runs: Sequence[Trajectory], grid: FloatArray, targets: list[float] | None, lower: float, upper: float
) -> dict[str, Any]:
    table = ecdf(runs, grid, targets, lower, upper)
    return {"timepoints": grid.tolist(), "shares": {str(name): table[name].tolist() for name in table}}


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table; values that are not finite, such as the time to a target never reached, become null."""
    rows = table.reset_index().to_dict("records")
    return [{str(key): _finite(value) for key, value in row.items()} for row in rows]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float | np.floating) and not math.isfinite(value) else value
