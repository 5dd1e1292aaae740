"""``polarbear demo``: a race in under a minute, ending in a report."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from polarbear_plugins.cli.browser import open_option, show_report
from polarbear_plugins.cli.output import (
    console,
    json_option,
    print_json,
    redirect_stdout_to_stderr,
    show_next,
    show_result,
    show_saved,
)
from polarbear_plugins.cli.outputs import JournalFile, OutputFile, Saving
from polarbear_plugins.cli.progress import ProgressView, spinner
from polarbear_plugins.execution.interruptions import ignore_sigint
from polarbear_plugins.experiments.races import race as run_race
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.report.computed import compute
from polarbear_plugins.report.next_steps import Kept
from polarbear_plugins.report.page import check_replaceable, write_report
from polarbear_plugins.trajectories.timepoints import log_timepoints, uniform_timepoints

_INSTALL = "pip install 'polarbear-plugins[ioh,plots]'"
_MOST_EVALUATIONS, _MOST_ROUNDS = 500_000.0, 15
_REAL: dict[str, Any] = {
    "portfolio": "modcma-ssa",
    "suite": "ma-bbob",
    "timepoints": log_timepoints(100, 2000, 25, integer=True),
    "suite_options": {"dimension": "3"},
}
_SYNTHETIC: dict[str, Any] = {
    "portfolio": "synthetic",
    "suite": "synthetic",
    "timepoints": uniform_timepoints(1, 20, 20),
    "portfolio_options": {"algorithms": "7", "correlation": "0.9", "seed": "2"},
}


@click.command(short_help="Race CMA-ES variants for under a minute, with a report.")
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    default=Path("demo-report.html"),
    show_default=True,
    help="The report.",
)
@click.option("--journal", type=JournalFile(), help="Also keep every finished run here.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of all random choices.")
@click.option("--workers", type=int, help="Number of local processes; one per core by default, 0 for none.")
@click.option("--force", is_flag=True, help="Also replace a file that is not a report.")
@open_option
@json_option
def demo(
    output: Path,
    journal: Path | None,
    seed: int,
    workers: int | None,
    force: bool,
    wanted: bool | None,
    as_json: bool,
) -> None:
    """Race variants of CMA-ES on random problems for less than a minute, and write a report about it.

    Six step-size adaptations of CMA-ES and random search run on problems of MA-BBOB in three dimensions. Without the
    extra ioh, algorithms with known ratings race instead. After ctrl-C the report is about the rounds finished so far.
    """
    if not force:
        check_replaceable(output)  # before anything runs
    real = find_spec("ioh") is not None and find_spec("modcma") is not None
    limit = {"max_cost": _MOST_EVALUATIONS} if real else {"max_rounds": _MOST_ROUNDS}
    # A lower alpha than usual and a limit, to finish within a minute.
    settings = RaceSettings(alpha=0.95, resolution="crossing", seed=seed, **limit)
    if not as_json:
        console().print(_introduction(real), soft_wrap=True)
    with ProgressView() as view, redirect_stdout_to_stderr():
        sources = _REAL if real else _SYNTHETIC
        result = run_race(**sources, settings=settings, workers=workers, journal=journal, progress=view)
    with ignore_sigint(enabled=result.stopped == "interrupted"):  # a second ctrl-C must not lose the report
        report = _write_and_show(result, real, output, Kept(journal=journal), force, as_json)
        if report is not None:
            show_report(report, wanted, quiet=as_json)


def _write_and_show(
    result: RaceResult, real: bool, output: Path, kept: Kept, force: bool, as_json: bool
) -> Path | None:
    """Write the report, unless that fails, and return where it is."""
    unit = "evaluations" if real else ""
    title = "Demonstration: step-size adaptations of CMA-ES on MA-BBOB" if real else "Demonstration: known ratings"
    with Saving() as saving:
        with spinner("writing the report"):
            known = compute(result)
            saving.save(
                output,
                lambda path: write_report(result, path, title=title, unit=unit, force=force, known=known, kept=kept),
            )
        report = saving.saved[0] if saving.saved else None
        if as_json:
            print_json({"report": None if report is None else str(report), "real": real, **result.to_dict()})
            return report
        out = console()
        show_result(out, result, unit, known)
        show_saved(out, [path for path in (report, kept.journal) if path is not None])
        show_next(out, result, known, kept)
    return report


def _introduction(real: bool) -> str:
    if real:
        return (
            "Which step-size adaptation of CMA-ES is worth keeping when the budget is unknown? Six of them and random "
            "search race on problems of MA-BBOB, 3 dimensions, up to 2,000 evaluations."
        )
    return (
        "ioh and modcma are not installed, so this is a race of synthetic algorithms with known ratings. "
        f"For the race of CMA-ES variants on MA-BBOB: {_INSTALL}"
    )
