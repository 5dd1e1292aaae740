"""``polarbear export``: runs in a format that other programs read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.cli.completion import complete_files
from polarbear_plugins.cli.exported_files import (
    FORMATS,
    Format,
    check_destination,
    format_of,
    write_coco,
    write_ioh_runs,
    write_parquet,
    write_table,
)
from polarbear_plugins.cli.options import parse_key_values
from polarbear_plugins.cli.output import console, json_option, print_json
from polarbear_plugins.cli.outputs import FileOrFolder, Source
from polarbear_plugins.cli.progress import spinner
from polarbear_plugins.errors import InvalidInputError, UnknownNameError
from polarbear_plugins.journal.replay import load_without_posterior
from polarbear_plugins.plugins.manager import installed_plugins
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.trajectories.trajectory import Trajectory

_UNKNOWN_SUITE = "unknown_suite"  # as ioh calls it


@dataclass(frozen=True, slots=True)
class Exported:
    """Runs to write, and what is known of where they come from.

    Attributes
    ----------
    timepoints
        Where the runs are known, if not everywhere.
    """

    runs: list[Trajectory]
    identities: tuple[Identity, ...] = ()
    suite: str | None = None
    timepoints: FloatArray | None = None


@click.command(short_help="Write runs as a table, as IOHprofiler data or for COCO.")
@click.argument("sources", nargs=-1, required=True, type=Source(), metavar="SOURCE...", shell_complete=complete_files)
@click.option("-o", "--output", type=FileOrFolder(), required=True, help="The file or folder to write.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    help="table: CSV, a row for each improvement. parquet: the same as a Parquet file. ioh: a folder of IOHprofiler "
    "data. coco: CSV with function, dimension, instance, evaluations and precision.  [default: by the ending of "
    "--output: .csv and .tsv, also with .gz, .parquet, none for ioh]",
)
@click.option(
    "-O",
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option for the adapter of the sources, such as maximize=true.",
)
@click.option("--suite", help="Name of the suite, for ioh and coco.  [default: that of the race]")
@click.option(
    "--maximize", is_flag=True, help="Larger values are better: write them with their own sign, not with that turned."
)
@click.option("--force", is_flag=True, help="Replace what is there.")
@json_option
def export(
    sources: Sequence[str],
    output: Path,
    kind: Format | None,
    options: Sequence[str],
    suite: str | None,
    maximize: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write the runs in SOURCE in a format that other programs read, and this one reads again.

    SOURCE is the journal or the saved result of a race, or whatever an installed adapter reads, as for `polarbear
    analyze`. Runs of a race are known at its timepoints only, and the race cut them off: they are marked as stopped, so
    that no analysis holds their last value.
    """
    kind = kind or format_of(output)
    if kind == "coco" and maximize:
        raise InvalidInputError("--maximize: a table for COCO holds differences from the optimum, which are minimised.")
    check_destination(output, kind, force=force)
    with spinner("reading"):
        found = read_exported(sources, parse_key_values(options, "--option"))
    if not found.runs:
        raise InvalidInputError(f"{', '.join(sources)}: there are no runs to write.")
    with spinner(f"writing {len(found.runs):,} runs"):
        incomplete = _write(
            found, output, kind, suite=suite or found.suite or _UNKNOWN_SUITE, maximize=maximize, force=force
        )
    told = {**_summary(found, output, kind, maximize=maximize), "without": incomplete}
    if as_json:
        print_json(told)
        return
    out = console()
    out.print(
        f"{told['runs'] - told['left_out']:,} runs of {len(told['algorithms'])} algorithms on "
        f"{told['instances']:,} instances",
        soft_wrap=True,
    )
    for note in _notes(found, told):
        out.print(note, soft_wrap=True)
    out.print(f"saved {output}", soft_wrap=True)


def read_exported(sources: Sequence[str], options: Mapping[str, str]) -> Exported:
    """Runs of sources that an adapter reads, or of a race from its journal or saved result, without inference."""
    try:
        return Exported(list(installed_plugins().read_trajectories(*sources, **options)))
    except UnknownNameError:
        if len(sources) != 1 or not Path(sources[0]).is_file():
            raise
    if options:
        raise InvalidInputError(f"--option is for adapters, and {sources[0]} is the journal or result of a race.")
    result = load_without_posterior(sources[0])
    source = result.about.get("suite")
    return Exported(
        list(result.trajectories()), result.identities, source["name"] if source else None, result.timepoints
    )


def _write(found: Exported, output: Path, kind: Format, *, suite: str, maximize: bool, force: bool) -> list[str]:
    """Write the runs; returns the columns that were left out of a table."""
    if kind == "table":
        return write_table(found.runs, output, maximize=maximize)
    if kind == "parquet":
        return write_parquet(found.runs, output, maximize=maximize)
    if kind == "coco":
        write_coco(found.runs, output, identities=found.identities, suite=suite)
    else:
        write_ioh_runs(found.runs, output, identities=found.identities, suite=suite, maximize=maximize, force=force)
    return []


def _summary(found: Exported, output: Path, kind: Format, *, maximize: bool) -> dict[str, Any]:
    """What was written, as JSON."""
    empty = sum(not np.isfinite(run.best[-1:]).any() for run in found.runs)
    return {
        "output": str(output),
        "format": kind,
        "runs": len(found.runs),
        "left_out": empty if kind == "ioh" else 0,
        "algorithms": list(dict.fromkeys(run.algorithm for run in found.runs)),
        "instances": len({run.instance for run in found.runs}),
        "stopped": sum(run.end == "stopped" for run in found.runs),
        "timepoints": None if found.timepoints is None else found.timepoints.tolist(),
        "read_with": _read_with(found.runs, kind, maximize=maximize),
    }


def _read_with(runs: Sequence[Trajectory], kind: Format, *, maximize: bool) -> dict[str, str]:
    """Options with which the runs are read again as they are."""
    if kind == "ioh":
        return {}
    if kind == "coco":
        roles = "instance=function+dimension+instance,time=evaluations,value=precision,seed=run,group=function"
        return {"columns": roles}
    fixed = all(run.fixed_group for run in runs)
    return ({"fixed_groups": "true"} if fixed else {}) | ({"maximize": "true"} if maximize else {})


def _notes(found: Exported, told: Mapping[str, Any]) -> list[str]:
    """What to know about what was written."""
    notes = []
    if found.timepoints is not None:
        grid = found.timepoints
        notes.append(f"Values are known at {grid.size} timepoints, {grid[0]:g} to {grid[-1]:g}, and not between them.")
    if told["stopped"]:
        notes.append(
            f"{told['stopped']:,} runs were cut off where they end and would have gone on: they are marked as stopped, "
            "so that no analysis holds their last value."
        )
    notes += [f"Without the column {name}, since not every instance has exactly one." for name in told["without"]]
    if told["format"] != "ioh" and any((np.diff(run.best) > 0).any() for run in found.runs):
        notes.append("Some values increase, as those of an incumbent may: read again, they count as best so far.")
    if told["read_with"]:
        options = " ".join(f"-o {key}={value}" for key, value in told["read_with"].items())
        notes.append(f"Read again: polarbear analyze {told['output']} {options}")
    return notes
