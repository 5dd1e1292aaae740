"""``polarbear analyze``: what existing results say."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import click
import numpy as np
from rich.text import Text

from polarbear_plugins.cli.output import console, json_option, print_json, text_table
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.plugins import load_plugins
from polarbear_plugins.rankings import RankingTable, Repetitions
from polarbear_plugins.streams import default_timepoints, rank
from polarbear_plugins.trajectories import Trajectory
from polarbear_plugins.validation import FloatArray
from polarbear_plugins.win_shares import observed_dominators, win_shares

__all__ = ["analyze"]

_MOST_TIMEPOINTS = 10_000


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
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
    help="How many timepoints, spaced evenly on the log scale over the time of the runs; or which ones.",
)
@click.option(
    "--repetitions",
    type=click.Choice(["weight", "independent"]),
    default="weight",
    show_default=True,
    help="Whether repeated runs on an instance count as one instance together, or each as an instance.",
)
@click.option("--tolerance", type=float, default=0.0, show_default=True, help="Values this close count as tied.")
@json_option
def analyze(
    sources: Sequence[str],
    options: Sequence[str],
    timepoints: str,
    repetitions: Repetitions,
    tolerance: float,
    as_json: bool,
) -> None:
    """Rank the algorithms in existing results at every timepoint on every instance.

    SOURCE is whatever an installed adapter reads; `polarbear plugins` lists them. A table (CSV or Parquet) has a row
    for each value of each run, with the columns algorithm, instance, time, value and optionally seed and horizon.
    """
    plugins = load_plugins()
    wishes = dict(_pair(option) for option in options)
    runs: list[Trajectory] = list(
        itertools.chain.from_iterable(plugins.read_trajectories(source, **wishes) for source in sources)
    )
    table = rank(runs, _grid(timepoints, runs), repetitions, tolerance=tolerance)
    shares, dominators = win_shares(table), observed_dominators(table)
    if as_json:
        print_json(
            {
                "sources": list(sources),
                "runs": len(runs),
                "instances": list(table.instances),
                "timepoints": table.timepoints.tolist(),
                "algorithms": [
                    {
                        "name": name,
                        "runs": sum(run.algorithm == name for run in runs),
                        "win_share": [None if np.isnan(share) else share for share in shares[:, place].tolist()],
                        "beaten_by": dominators.get(name),
                    }
                    for place, name in enumerate(table.algorithms)
                ],
                "observed_pareto_set": [name for name in table.algorithms if name not in dominators],
            }
        )
    else:
        _show(runs, table, shares, dominators)


def _show(runs: Sequence[Trajectory], table: RankingTable, shares: FloatArray, dominators: Mapping[str, str]) -> None:
    grid = table.timepoints
    columns = sorted({0, grid.size // 3, 2 * grid.size // 3, grid.size - 1})
    out = console()
    out.print(
        f"{len(runs)} runs of {len(table.algorithms)} algorithms on {len(table.instances)} instances · "
        f"{grid.size} timepoints {grid[0]:g}..{grid[-1]:g} · share of the instances on which each is best"
    )
    view = text_table("algorithm", *(f">at {grid[t]:,.5g}" for t in columns), "")
    leader = np.argmax(np.nan_to_num(shares, nan=-1.0), axis=1)
    for place, name in enumerate(table.algorithms):
        cells = ["-" if np.isnan(shares[t, place]) else f"{shares[t, place]:.0%}" for t in columns]
        if name in dominators:
            says = f"{dominators[name]} wins more often at every timepoint"
        else:
            says = _leads(grid, leader == place) or "never leads, but no rival is ahead at every timepoint"
        view.add_row(Text(name), *cells, Text(says), style="dim" if name in dominators else None)
    out.print(view)
    kept = [name for name in table.algorithms if name not in dominators]
    out.print(
        f"{len(kept)} of {len(table.algorithms)} algorithms may be right for some budget: {', '.join(kept)}. "
        "These are observed shares, without any statement of how sure they are.",
        soft_wrap=True,
    )


def _leads(grid: FloatArray, ahead: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    """Say in words where an algorithm leads."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], ahead, [False])).astype(np.int8)))
    spans = [
        f"{grid[start]:,.5g}" if start == stop - 1 else f"{grid[start]:,.5g} to {grid[stop - 1]:,.5g}"
        for start, stop in zip(edges[::2], edges[1::2], strict=True)
    ]
    more = f" and {len(spans) - 3} more spans" if len(spans) > 3 else ""
    return f"most wins at {', '.join(spans[:3])}{more}" if spans else ""


def _grid(timepoints: str, runs: Sequence[Trajectory]) -> FloatArray | list[float]:
    try:
        numbers = [float(text) for text in timepoints.split(",")]
    except ValueError:
        raise InvalidInputError(
            f"--timepoints: expected a number of timepoints, or timepoints separated by commas, got {timepoints!r}."
        ) from None
    if len(numbers) > 1:
        return numbers
    if not numbers[0].is_integer() or not 1 <= numbers[0] <= _MOST_TIMEPOINTS:
        raise InvalidInputError(
            f"--timepoints: expected a whole number of timepoints up to {_MOST_TIMEPOINTS}, got {timepoints!r}."
        )
    return default_timepoints(runs, int(numbers[0]))


def _pair(option: str) -> tuple[str, str]:
    key, equals, value = option.partition("=")
    if not equals or not key:
        raise InvalidInputError(f"--option: expected KEY=VALUE, got {option!r}.")
    return key.strip(), value
