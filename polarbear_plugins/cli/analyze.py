"""``polarbear analyze``: existing results, analyzed as a race."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.cli.completion import complete_files
from polarbear_plugins.cli.options import (
    parse_budget,
    parse_key_values,
    parse_timepoints,
    settings_from,
    settings_options,
)
from polarbear_plugins.cli.output import (
    WIDE,
    console,
    group_table,
    json_option,
    print_json,
    show_next,
    show_result,
    show_saved,
)
from polarbear_plugins.cli.outputs import OutputFile, Saving, Source
from polarbear_plugins.cli.progress import advise_on_interrupt, inference_spinner, spinner
from polarbear_plugins.display.text import few_places
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.inference.task import LikelihoodName
from polarbear_plugins.plugins.manager import installed_plugins
from polarbear_plugins.racing.analysis import analyze as analyze_table
from polarbear_plugins.racing.analysis import analyze_other_scope
from polarbear_plugins.racing.by_group import GroupPart, by_group
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.rankings.ends import Ended
from polarbear_plugins.rankings.stream import default_timepoints, rank
from polarbear_plugins.rankings.summaries import regroup, win_shares
from polarbear_plugins.rankings.table import Repetitions
from polarbear_plugins.report.computed import compute
from polarbear_plugins.report.next_steps import Kept
from polarbear_plugins.report.observations import dimensions_of
from polarbear_plugins.report.words import misfits
from polarbear_plugins.trajectories.runs import end_at_target, per_dimension
from polarbear_plugins.trajectories.trajectory import Trajectory

_FASTER = "Fewer --timepoints or --draws, --engine native and --prior dirichlet take less time."


@click.command(short_help="Analyze existing results as if they were a race.")
@click.argument("sources", nargs=-1, required=True, type=Source(), metavar="SOURCE...", shell_complete=complete_files)
@click.option(
    "-o",
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option for the adapter of the sources, such as columns=time=evaluations,value=raw_y or maximize=true.",
)
@click.option(
    "--timepoints",
    default="50",
    show_default=True,
    metavar="N or A,B,...",
    help="Number of timepoints, spaced evenly on a log scale over the time of the runs; or the timepoints themselves.",
)
@click.option(
    "--budget",
    metavar="B or Bd",
    help="Last timepoint; 2000d counts time in multiples of the dimension.  [default: the longest run]",
)
@click.option(
    "--ended",
    type=click.Choice(["hold", "cut"]),
    default="hold",
    show_default=True,
    help="Whether a run that ended before others on its instance keeps its last value, or is left out from there on.",
)
@click.option(
    "--target",
    type=float,
    help="A run that reaches this value is done: from there on it is best, with all others that have reached it. Where "
    "larger values are better, give it with the other sign.",
)
@click.option(
    "--repetitions",
    type=click.Choice(["weight", "independent"]),
    default="weight",
    show_default=True,
    help="Whether repeated runs on an instance count together as one instance, or each as an instance.",
)
@click.option("--tolerance", type=float, default=0.0, show_default=True, help="Values this close count as tied.")
@settings_options
@click.option(
    "--by",
    type=click.Choice(["group", "function", "dimension"]),
    help="Also show each group, function or dimension by itself: who is first there.",
)
@click.option("--output", type=OutputFile(), help="Save the result, including the draws.")
@json_option
def analyze(
    sources: Sequence[str],
    options: Sequence[str],
    timepoints: str,
    budget: str | None,
    ended: Ended,
    target: float | None,
    repetitions: Repetitions,
    tolerance: float,
    by: str | None,
    output: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Analyze existing results as a race that has run: ratings over time, the Pareto set, and which pairs are open.

    SOURCE is whatever an installed adapter reads; `polarbear plugins` lists the adapters. A table (CSV or Parquet) has
    a row for each value of each run, with the columns algorithm, instance, time, value and optionally seed, horizon and
    group. Instances of one group (a function, a search space, a dataset) resemble each other; --groups says whether the
    certainty is about a new group or about the same ones.
    """
    adapter_options = parse_key_values(options, "--option")
    if by == "function":
        adapter_options = {"group": "function", **adapter_options}
    last, in_dimensions = parse_budget(budget) if budget is not None else (None, False)
    with spinner("reading"):
        runs = list(installed_plugins().read_trajectories(*sources, **adapter_options))
    dimensions = {run.instance: run.dimension for run in runs if run.dimension is not None}
    if target is not None:
        runs = list(end_at_target(runs, target))
    if in_dimensions:
        runs = list(per_dimension(runs))
    chosen = settings_from(**settings)
    with spinner(f"ranking {len(runs):,} runs"):
        table = rank(runs, _grid(runs, timepoints, last, ended), repetitions, tolerance=tolerance, ended=ended)
    about = {
        "sources": list(sources),
        "options": adapter_options,
        "dimensions": dimensions,
        "ended": ended,
        "target": target,
        "per_dimension": in_dimensions,
        **({} if budget is None else {"budget": budget, "timepoints": timepoints}),
    }
    with advise_on_interrupt(_FASTER), inference_spinner(table, chosen):
        result = analyze_table(table, chosen, about)
    with Saving() as saving:
        saving.save(output, result.save)
        parts = () if by is None else _parts(result, by)
        if as_json:
            _print_json(result, sources, len(runs), parts)
        else:
            _show(result, len(runs), by, parts, saving.saved)


def _show(result: RaceResult, runs: int, by: str | None, parts: Sequence[GroupPart], saved: Sequence[Path]) -> None:
    table = result.state.table
    with inference_spinner(table, result.settings):
        known = compute(result)
    out = console()
    points = table.timepoints
    out.print(
        f"{runs} runs of {len(table.algorithms)} algorithms on {len(table.instances)} instances · "
        f"{points.size} timepoints {points[0]:g}..{points[-1]:g} · alpha {result.settings.alpha:g} · "
        f"prior {result.settings.prior}"
    )
    show_result(out, result, known=known)
    if parts:
        out.print(
            f"\nIn each {by} by itself the algorithm most often first, its share of the first places and, in brackets, "
            "its mean rating:",
            soft_wrap=True,
        )
        out.print(group_table(parts, str(by), narrow=out.width < WIDE))
    show_saved(out, saved)
    show_next(out, result, known, Kept(saved=saved[0] if saved else None))


def _grid(runs: Sequence[Trajectory], timepoints: str, last: float | None, ended: Ended) -> FloatArray | list[float]:
    wanted = parse_timepoints(timepoints)
    if not isinstance(wanted, int):
        if last is not None:
            raise InvalidInputError("--timepoints A,B,... is complete: leave out --budget.")
        return wanted
    return default_timepoints(runs, wanted, ended=ended, last=last)


def _parts(result: RaceResult, by: str) -> tuple[GroupPart, ...]:
    """Each group, function or dimension by itself, at a few timepoints."""
    table = result.state.table
    if by == "dimension":
        known = dimensions_of(result)
        if len(known) < len(table.instances):
            raise InvalidInputError(
                "--by dimension: the data do not say the dimension of every instance. Give a table a column dimension."
            )
        table = regroup(table, {name: f"d = {known[name]}" for name in table.instances})
    elif not table.groups:
        raise InvalidInputError(
            f"--by {by}: the data have no groups. Add a column group to the table, or see `polarbear plugins` for "
            "adapters that know them."
        )
    likelihood: LikelihoodName = "first-places" if misfits(result) else "rankings"
    return by_group(table, few_places(result.timepoints.size), likelihood=likelihood)


def _print_json(result: RaceResult, sources: Sequence[str], runs: int, parts: Sequence[GroupPart]) -> None:
    table = result.state.table
    shares = win_shares(table)
    other = analyze_other_scope(result)
    data = {
        "sources": list(sources),
        "runs": runs,
        **result.to_dict(),
        "win_shares": {
            name: [None if np.isnan(share) else share for share in shares[:, place].tolist()]
            for place, name in enumerate(table.algorithms)
        },
        "other_scope": None
        if other is None or other.posterior.groups is None
        else {
            "scope": other.posterior.groups.scope,
            "pareto_set": list(other.pareto_set),
            "ratings": other.to_dict()["ratings"],
        },
    }
    print_json(data | ({"by_group": [part.to_json() for part in parts]} if parts else {}))
