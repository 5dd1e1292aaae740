"""``polarbear race`` and ``polarbear resume``."""

from __future__ import annotations

import contextlib
import functools
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import click

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number
from polarbear_plugins.cli.completion import complete_files, complete_registered
from polarbear_plugins.cli.dry_run import show_dry_run
from polarbear_plugins.cli.exported_files import write_ioh_runs
from polarbear_plugins.cli.options import (
    parse_budget,
    parse_key_values,
    parse_timepoints,
    settings_from,
    settings_options,
)
from polarbear_plugins.cli.output import (
    console,
    json_option,
    print_json,
    redirect_stdout_to_stderr,
    show_next,
    show_result,
    show_saved,
)
from polarbear_plugins.cli.outputs import InputPath, JournalFile, NewFolder, OutputFile, Saving, Source
from polarbear_plugins.cli.progress import ProgressView, spinner
from polarbear_plugins.cli.watch import both, page_options, race_page
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning
from polarbear_plugins.execution.interruptions import ignore_sigint
from polarbear_plugins.experiments.archives import match_archive
from polarbear_plugins.experiments.dry_runs import DryRun
from polarbear_plugins.experiments.dry_runs import dry_run as time_race
from polarbear_plugins.experiments.races import race as run_race
from polarbear_plugins.experiments.races import resume as resume_race
from polarbear_plugins.journal.messages import file_exists_error
from polarbear_plugins.plugins.manager import installed_plugins
from polarbear_plugins.problems.protocols import Suite
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.rankings.stream import default_timepoints
from polarbear_plugins.report.computed import compute
from polarbear_plugins.report.next_steps import Kept
from polarbear_plugins.trajectories.runs import per_dimension
from polarbear_plugins.trajectories.timepoints import log_timepoints, uniform_timepoints
from polarbear_plugins.trajectories.trajectory import Trajectory


def _execution_options(command: Callable[..., RaceResult | DryRun]) -> Callable[..., None]:
    """Add the options that ``race`` and ``resume`` share: how to perform the runs, and what to save.

    The command receives the former as ``execution``, keyword arguments of a race, and returns the result.  What a dry
    run has found is shown and not saved.
    """

    @functools.wraps(command)
    def run(
        *,
        executor: str | None,
        executor_options: Sequence[str],
        workers: int | None,
        run_timeout: float | None,
        run_memory: float | None,
        retries: int,
        durable: bool,
        output: Path | None,
        ioh_output: Path | None,
        watch: bool,
        port: int,
        wanted: bool | None,
        as_json: bool,
        **rest: Any,
    ) -> None:
        with race_page(watch and not rest.get("dry_run"), port, wanted) as page:
            with (
                connect_executor(executor, executor_options) as connected,
                ProgressView() as view,
                redirect_stdout_to_stderr(),
            ):
                execution = {
                    "durable": durable,
                    "workers": workers,
                    "executor": connected,
                    "run_timeout": run_timeout,
                    "run_memory": run_memory,
                    "retries": retries,
                    "progress": both(view, page),
                }
                result = command(**rest, execution=execution)
            if isinstance(result, DryRun):
                show_dry_run(result, f"{rest['portfolio']} on {rest['suite']}", as_json)
                return
            if page is not None:
                page.finish(result)
            # A second ctrl-C must not lose the result.
            with ignore_sigint(enabled=result.stopped == "interrupted"), Saving() as saving:
                saving.save(output, result.save)
                saving.save(ioh_output, lambda folder: _write_ioh(result, folder))
                saved = output if output in saving.saved else None
                kept = Kept(journal=_kept_journal(result, rest["journal"]), saved=saved)
                _show(result, as_json, kept, saving.saved)

    options = [
        click.option("--max-rounds", type=int, help="Stop after this many rounds."),
        click.option("--max-cost", type=float, help="Spend no more than this on all runs together."),
        click.option(
            "--workers",
            type=int,
            help="Number of local processes; one per core by default (one fewer if runs count seconds), 0 for none.",
        ),
        click.option("--executor", metavar="ADDRESS", help="Run elsewhere; `polarbear plugins` lists the executors."),
        click.option(
            "-E", "--executor-option", "executor_options", multiple=True, metavar="KEY=VALUE", help="For the executor."
        ),
        click.option("--run-timeout", type=float, metavar="SECONDS", help="End a run that takes longer."),
        click.option("--run-memory", type=float, metavar="MB", help="End a run that uses more memory (Linux)."),
        click.option("--retries", type=int, default=0, show_default=True, help="How often to repeat a failed run."),
        click.option("--durable", is_flag=True, help="Wait with each run until the disk has it in the journal."),
        click.option("--output", type=OutputFile(), help="Save the result, including the draws."),
        click.option(
            "--ioh-output",
            type=NewFolder(),
            help="Write the runs as IOHprofiler data into this new folder, their values at the timepoints; so does "
            "`polarbear export` later.",
        ),
        click.option("--watch", is_flag=True, help="Show the race while it runs, on a page on this computer."),
        page_options,
        json_option,
    ]
    for option in reversed(options):
        run = option(run)
    return run


@click.command(short_help="Race a portfolio on a suite until every pair is settled.")
@click.argument("portfolio", shell_complete=complete_registered("polarbear_portfolio"))
@click.argument("suite", shell_complete=complete_registered("polarbear_suite"))
@click.option(
    "--against",
    multiple=True,
    type=Source(),
    metavar="ARCHIVE",
    shell_complete=complete_files,
    help="Race against the runs of an archive, which cost nothing, on its instances; may be repeated.",
)
@click.option(
    "-A",
    "--against-option",
    "against_options",
    multiple=True,
    metavar="KEY=VALUE",
    help="For the adapter that reads the archive.",
)
@click.option(
    "--budget",
    metavar="B or Bd",
    help="Last timepoint, up to which runs go; 2000d is 2000 times the dimension.  [default: the suite's, if any; the "
    "end of the archive]",
)
@click.option(
    "--timepoints",
    default="50",
    show_default=True,
    metavar="N or A,B,...",
    help="Number of timepoints up to the budget, or the timepoints themselves.",
)
@click.option("--first", type=float, help="First timepoint.  [default: a 200th of the budget, at least 1]")
@click.option(
    "--spacing", type=click.Choice(["log", "uniform"]), default="log", show_default=True, help="Of the timepoints."
)
@click.option("--tolerance", type=float, default=0.0, show_default=True, help="Values this close count as tied.")
@click.option("--dimension", type=int, help="Dimension of the suite's problems.")
@click.option("--data", type=InputPath(), help="Folder with the data of the suite, such as yahpo_data.")
@click.option(
    "-P", "--portfolio-option", "portfolio_options", multiple=True, metavar="KEY=VALUE", help="For PORTFOLIO."
)
@click.option("-S", "--suite-option", "suite_options", multiple=True, metavar="KEY=VALUE", help="For SUITE.")
@settings_options
@click.option("--batch-size", type=int, default=8, show_default=True, help="Instances in the first round.")
@click.option("--batch-min", type=int, default=8, show_default=True, help="Fewest instances in later rounds.")
@click.option(
    "--replications",
    type=int,
    default=1,
    help="Runs of each algorithm on an instance; together they count as one instance.  [default: the suite's, or 1]",
)
@click.option("--batch-max", type=int, default=128, show_default=True, help="Most instances in a round.")
@click.option(
    "--schedule",
    type=click.Choice(["rounds", "continuous"]),
    default="rounds",
    show_default=True,
    help="Workers that are done wait for the end of a round, or go on with runs that later rounds will probably need: "
    "the same answer in less time, at a higher cost, since not all of these runs turn out to be needed.",
)
@click.option("--journal", type=JournalFile(), help="Keep every finished run in this file.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Perform one run of each algorithm, for up to 30 s, and say what the race would do first, how long that takes "
    "and what a full comparison costs; writes no file.",
)
@_execution_options
def race(
    portfolio: str,
    suite: str,
    against: Sequence[str],
    against_options: Sequence[str],
    budget: str | None,
    timepoints: str,
    first: float | None,
    spacing: str,
    tolerance: float,
    dimension: int | None,
    data: Path | None,
    portfolio_options: Sequence[str],
    suite_options: Sequence[str],
    journal: Path | None,
    dry_run: bool,
    execution: dict[str, Any],
    **settings: Any,
) -> RaceResult | DryRun:
    """Race the algorithms of PORTFOLIO over instances of SUITE until every pair is settled.

    `polarbear plugins` lists the portfolios and suites. For a first look: polarbear race synthetic synthetic --budget
    20. With --against, PORTFOLIO races against stored runs, such as IOHprofiler data or a table: only PORTFOLIO runs,
    on the instances that the archive and SUITE have in common. After ctrl-C the result is that of the last finished
    round; with --journal, `polarbear resume` continues.
    """
    options = parse_key_values(suite_options, "--suite-option")
    if dimension is not None:
        options["dimension"] = str(dimension)
    if data is not None:
        options["data"] = os.path.realpath(data)  # so that the race can be resumed from another folder
    last, in_dimensions = (None, False) if budget is None else parse_budget(budget)
    if in_dimensions and last is not None and dimension is not None:
        last, in_dimensions = last * dimension, False
    chosen, archive = settings_from(**settings, per_dimension=in_dimensions), None
    if against:
        reading = parse_key_values(against_options, "--against-option")
        with spinner("reading the archive"):
            archive = match_archive(list(against), quiet_suite(suite, options), chosen.seed or 0, options=reading)
        runs = tuple(per_dimension(archive.runs)) if in_dimensions else archive.runs
        last, first = _within(runs, timepoints, last, first)
    elif against_options:
        raise InvalidInputError("--against-option is for an archive: give it with --against.")
    elif last is None and isinstance(parse_timepoints(timepoints), int):
        last = getattr(quiet_suite(suite, options), "budget", None)
    what: dict[str, Any] = {
        "timepoints": _grid(timepoints, last, first, spacing),
        "settings": chosen,
        "against": archive,
        "tolerance": tolerance,
        "portfolio_options": parse_key_values(portfolio_options, "--portfolio-option"),
        "suite_options": options,
    }
    if dry_run:
        if journal is not None and journal.exists():
            raise file_exists_error(journal)
        with spinner("timing a run of each algorithm"):
            how = ("workers", "executor", "run_timeout", "run_memory", "retries")
            return time_race(portfolio, suite, **what, **{name: execution[name] for name in how})
    return run_race(portfolio, suite, journal=journal, **what, **execution)


@click.command(short_help="Continue the race in a journal.")
@click.argument("journal", type=JournalFile())
@click.option("--salvage", is_flag=True, help="Go on without the newest runs if their log is damaged or gone.")
@_execution_options
def resume(
    journal: Path, max_rounds: int | None, max_cost: float | None, salvage: bool, execution: dict[str, Any]
) -> RaceResult:
    """Continue the race in JOURNAL where it stopped; no finished run is repeated.

    A race that was stopped by its limits continues if --max-rounds or --max-cost is higher than before.
    """
    return resume_race(journal, max_rounds=max_rounds, max_cost=max_cost, salvage=salvage, **execution)


@contextlib.contextmanager
def connect_executor(address: str | None, options: Sequence[str]) -> Iterator[Executor | None]:
    """Executor at an address, shut down at the end of the block; ``None`` for local processes."""
    executor_options = parse_key_values(options, "--executor-option")
    if address is None:
        if executor_options:
            raise InvalidInputError("--executor-option is for an executor: give its address with --executor.")
        yield None
        return
    with installed_plugins().executor(address, **executor_options) as executor:
        yield executor


def quiet_suite(name: str, options: dict[str, str]) -> Suite:
    """Suite of a name, without its warnings: the race makes it again and warns then."""
    plugins = installed_plugins()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolarBearWarning)
        return plugins.suite(name, **options)


def _within(
    stored: Sequence[Trajectory], timepoints: str, budget: float | None, first: float | None
) -> tuple[float | None, float | None]:
    """Last and first timepoint, inside the time of the archive; as they are if all timepoints are given."""
    if not isinstance(parse_timepoints(timepoints), int):
        return budget, first
    span = default_timepoints(stored, 2)
    begin, end = float(span[0]), float(span[-1])
    last = end if budget is None else min(as_number(budget, "--budget", above=0), end)
    if first is None:
        first = max(begin, 1.0, last // 200) if last.is_integer() and begin.is_integer() else max(begin, last / 200)
        if first > last:
            raise InvalidInputError(
                f"--budget {last:g} is too small: some stored rival has its first value at {first:g}."
            )
    return last, first


def _grid(timepoints: str, budget: float | None, first: float | None, spacing: str) -> FloatArray | list[float]:
    wanted = parse_timepoints(timepoints)
    if isinstance(wanted, list):
        if budget is not None or first is not None:
            raise InvalidInputError("--timepoints A,B,... is complete: leave out --budget and --first.")
        return wanted
    if budget is None:
        raise InvalidInputError("Give --budget, the last timepoint, or a list of --timepoints.")
    budget = as_number(budget, "--budget", above=0)
    whole = float(budget).is_integer() and (first is None or float(first).is_integer())
    if first is None:
        first = max(1.0, budget // 200) if whole else budget / 200
    if whole:
        wanted = min(wanted, max(1, int(budget - first) + 1))
    if wanted == 1:
        return [budget]
    make = log_timepoints if spacing == "log" else uniform_timepoints
    return make(first, budget, wanted, integer=whole)


def _kept_journal(result: RaceResult, journal: Path | None) -> Path | None:
    """The journal of a race: another one than the given one if that was deleted meanwhile."""
    kept = getattr(result.continuation, "journal", None)
    return journal if journal is None or kept is None else kept


def _write_ioh(result: RaceResult, folder: Path) -> None:
    write_ioh_runs(result.trajectories(), folder, identities=result.identities, suite=_source_name(result, "suite"))


def _show(result: RaceResult, as_json: bool, kept: Kept, saved: Sequence[Path]) -> None:
    if as_json:
        print_json(result.to_dict())
        return
    out = console()
    settings = result.settings
    grid = result.timepoints
    against = result.about.get("against") or {}
    archive = f" against {', '.join(against.get('sources') or [])}" if result.state.stored else ""
    schedule = f" · schedule {settings.schedule}" if settings.schedule != "rounds" else ""
    out.print(
        f"race {_source_name(result, 'portfolio')} on {_source_name(result, 'suite')}{archive} · "
        f"{grid.size} timepoints {grid[0]:g}..{grid[-1]:g} · {settings.elimination} elimination, "
        f"{settings.resolution} resolution · alpha {settings.alpha:g} · prior {settings.prior}{schedule} · "
        f"seed {settings.seed}"
    )
    known = compute(result)
    show_result(out, result, known=known)
    paths = [path for path in (kept.journal, *saved) if path is not None]
    show_saved(out, paths)
    if not paths:
        out.print("not saved: --output FILE saves the result, --journal FILE also every run")
    show_next(out, result, known, kept)


def _source_name(result: RaceResult, what: str) -> str:
    source = result.about.get(what)
    return source["name"] if source else what
