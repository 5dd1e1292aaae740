"""``polarbear gate``: whether a new version of an optimizer may pass, for continuous integration."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.cli.completion import complete_files
from polarbear_plugins.cli.gate_files import junit_of, markdown_of
from polarbear_plugins.cli.gate_words import ROW, caveats, conclusion, heading, row_of
from polarbear_plugins.cli.options import parse_key_values, parse_numbers, read_runs
from polarbear_plugins.cli.output import console, json_option, print_json, show_saved, text_table
from polarbear_plugins.cli.outputs import OutputFile, Saving, Source
from polarbear_plugins.cli.progress import spinner
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.gates import FailOn, Gate, default_budgets, select_algorithms
from polarbear_plugins.measures.gates import gate as compare_versions
from polarbear_plugins.measures.run_pairs import PairGroups
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.rankings.ends import Ended
from polarbear_plugins.rankings.table import Repetitions
from polarbear_plugins.regular_files import write_whole
from polarbear_plugins.trajectories.timepoints import as_timepoints
from polarbear_plugins.trajectories.trajectory import Trajectory

_DEFAULTS = RaceSettings()
_BUDGETS = 5
_FAILED = 1  # exit code
_STANDARD_OUTPUT = Path("-")


class _FileOrStandardOutput(OutputFile):
    """A file to write, or ``-`` for standard output."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Path of the output."""
        return _STANDARD_OUTPUT if os.fspath(value) == "-" else super().convert(value, param, ctx)


@click.command(short_help="Fail if a new version of an optimizer is worse than the one before.")
@click.argument("base", type=Source(), shell_complete=complete_files)
@click.argument("new", type=Source(), shell_complete=complete_files)
@click.option(
    "-o",
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option for the adapter of BASE and NEW, as for analyze.",
)
@click.option(
    "--algorithm",
    "algorithms",
    multiple=True,
    metavar="NAME",
    help="Compare this algorithm of both; may be repeated.  [default: the only one of each, or all that both have]",
)
@click.option("--budgets", metavar="A,B,...", help="Compare at these budgets.")
@click.option(
    "--timepoints",
    type=int,
    help="Compare at this many budgets, at equal ratios over the last two decades that both have.  "
    f"[default: {_BUDGETS}]",
)
@click.option(
    "--alpha",
    type=float,
    default=_DEFAULTS.alpha,
    show_default=True,
    help="If the two are equal, the gate says better or worse anywhere with a probability of at most 1 - alpha.",
)
@click.option(
    "--epsilon",
    type=float,
    default=_DEFAULTS.epsilon,
    show_default=True,
    help="Equivalent: NEW wins with a probability this close to 1/2.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["worse", "open"]),
    default="worse",
    show_default=True,
    help="Fail if NEW is worse at some budget; or also if one is open or was not compared.",
)
@click.option(
    "--require", type=click.Choice(["better"]), help="Also fail unless NEW is better at some budget, each algorithm."
)
@click.option(
    "--groups",
    type=click.Choice(["auto", "new", "same", "none"]),
    default="auto",
    show_default=True,
    help="If instances belong to groups: a group counts as one (new), or each instance (same, none).",
)
@click.option(
    "--repetitions",
    type=click.Choice(["weight", "independent"]),
    default="weight",
    show_default=True,
    help="Whether repeated runs on an instance count together as one instance, or each as an instance.",
)
@click.option(
    "--ended",
    type=click.Choice(["hold", "cut"]),
    default="cut",
    show_default=True,
    help="Whether a run that ended before its partner keeps its last value, or is not compared from there on.",
)
@click.option("--tolerance", type=float, default=0.0, show_default=True, help="Values this close count as tied.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random flips.")
@click.option(
    "--markdown", type=_FileOrStandardOutput(), help="Write a comment for a pull request; - is standard output."
)
@click.option("--junit", type=OutputFile(), help="Write JUnit XML, a test case for each budget.")
@json_option
def gate(
    base: str,
    new: str,
    options: Sequence[str],
    algorithms: Sequence[str],
    budgets: str | None,
    timepoints: int | None,
    require: str | None,
    markdown: Path | None,
    junit: Path | None,
    as_json: bool,
    **settings: Any,
) -> int:
    """Compare a new version of an optimizer with the one before: better, worse, equivalent or open at each budget.

    BASE and NEW are as for `polarbear analyze`, or the saved result or journal of a race. Runs are paired by instance
    and seed, or by instance where seeds differ. Exit code 0: the gate passes; 1: it fails; 2: a mistake in the input.

    The error level holds for one look at data whose size was chosen before, not for adding runs until it passes.
    """
    if as_json and markdown == _STANDARD_OUTPUT:
        raise InvalidInputError("--markdown - and --json both print to standard output: give --markdown a file.")
    adapter_options = parse_key_values(options, "--option")
    with spinner("reading"):
        (before, known), (after, also_known) = (read_runs([source], adapter_options) for source in (base, new))
    grid = _grid(before, after, algorithms, budgets, timepoints, [known, also_known], settings["ended"])
    with spinner("comparing"):
        found = _compare(before, after, grid, algorithms, require is not None, **settings)
    with Saving() as saving:
        if markdown != _STANDARD_OUTPUT:
            saving.save(markdown, lambda path: write_text(path, markdown_of(found)))
        saving.save(junit, lambda path: write_text(path, junit_of(found)))
        if as_json:
            print_json({"base": base, "new": new, **found.to_dict(), "conclusion": conclusion(found)})
        elif markdown == _STANDARD_OUTPUT:
            click.echo(markdown_of(found))
        else:
            _show(found)
            show_saved(console(), saving.saved)
    return 0 if found.passed else _FAILED


def _compare(
    before: Sequence[Trajectory],
    after: Sequence[Trajectory],
    grid: FloatArray,
    algorithms: Sequence[str],
    require_better: bool,
    *,
    alpha: float,
    epsilon: float,
    fail_on: FailOn,
    groups: PairGroups,
    repetitions: Repetitions,
    tolerance: float,
    ended: Ended,
    seed: int,
) -> Gate:
    return compare_versions(
        before,
        after,
        grid,
        algorithms=algorithms or None,
        alpha=alpha,
        epsilon=epsilon,
        fail_on=fail_on,
        require_better=require_better,
        groups=groups,
        repetitions=repetitions,
        tolerance=tolerance,
        ended=ended,
        seed=seed,
    )


def _grid(
    before: Sequence[Trajectory],
    after: Sequence[Trajectory],
    algorithms: Sequence[str],
    budgets: str | None,
    timepoints: int | None,
    known: Sequence[FloatArray | None],
    ended: Ended,
) -> FloatArray:
    """Budgets; of the race in a result or journal, values are known only at its timepoints."""
    if budgets is not None:
        if timepoints is not None:
            raise InvalidInputError("--budgets and --timepoints: leave out one of the two.")
        grid = as_timepoints(sorted(parse_numbers(budgets, "--budgets")))
    else:
        count = _BUDGETS if timepoints is None else timepoints
        grid = default_budgets(select_algorithms(before, after, algorithms or None), count, ended=ended)
    for timepoints_known in known:
        if timepoints_known is None:
            continue
        if budgets is None:  # the nearest before
            places = np.maximum(np.searchsorted(timepoints_known, grid * (1 + 1e-12), side="right") - 1, 0)
            grid = np.unique(timepoints_known[places])
        elif not np.isin(grid, timepoints_known).all():
            [first, *_] = grid[~np.isin(grid, timepoints_known)]
            raise InvalidInputError(
                f"--budgets: a race keeps values only at its timepoints, and {first:g} is none of them. They are "
                f"{', '.join(f'{time:g}' for time in timepoints_known[:8])}{', ...' * (timepoints_known.size > 8)}."
            )
    return grid


def _show(found: Gate) -> None:
    out = console()
    for comparison in found.comparisons:
        out.print(heading(comparison, found), soft_wrap=True)
        view = text_table(*ROW)
        for each in comparison.verdicts:
            view.add_row(*row_of(each))
        out.print(view)
        for sentence in caveats(comparison, found):
            out.print(sentence, soft_wrap=True)
    out.print(conclusion(found), soft_wrap=True)


def write_text(path: Path, text: str) -> Path:
    """Write a text file completely or not at all."""
    return write_whole(path, lambda file: file.write(text.encode()))
