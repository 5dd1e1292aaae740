"""``race`` and ``resume``."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.execution.requests import PortfolioSource, SuiteSource
from polarbear_plugins.experiments.archives import MatchedArchive, match_archive
from polarbear_plugins.experiments.interference import dispatcher_for
from polarbear_plugins.experiments.left_out import leave_out_unfit
from polarbear_plugins.experiments.open_race import Race
from polarbear_plugins.experiments.watching import Watcher
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.problems.given import RunFunction
from polarbear_plugins.problems.protocols import Algorithm, Suite
from polarbear_plugins.racing.posteriors import check_inference
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.racing.state import RaceState, start_race
from polarbear_plugins.racing.stored import StoredRivals, start_against
from polarbear_plugins.rankings.stream import default_timepoints
from polarbear_plugins.trajectories.runs import per_dimension


def race(
    portfolio: str | Mapping[str, RunFunction] | Sequence[Algorithm | str | Mapping[str, RunFunction]],
    suite: str | Suite | Sequence[object] | Callable[[np.random.Generator], object],
    timepoints: ArrayLike | None = None,
    settings: RaceSettings | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    journal: str | Path | None = None,
    *,
    durable: bool = False,
    against: object = None,
    against_options: Mapping[str, Any] | None = None,
    tolerance: float = 0.0,
    portfolio_options: Mapping[str, Any] | None = None,
    suite_options: Mapping[str, Any] | None = None,
    run_timeout: float | None = None,
    run_memory: float | None = None,
    retries: int = 0,
    progress: Watcher | None = None,
    plugins: Plugins | None = None,
) -> RaceResult:
    """Race algorithms over instances until every pair is settled.

    Parameters
    ----------
    portfolio
        A registered name, functions ``run(problem, horizon, seed) -> Trajectory`` by name, or a list of algorithms,
        names and functions: ``["modcma-ssa", {"mine": run}]``.  Algorithms that say that they cannot run on such
        problems are left out, with a warning.
    suite
        A registered name, a list of problems (drawn without replacement), or a function ``rng -> problem``.
    timepoints
        Where to compare the algorithms, in units of the time axis.  Against an archive by default 50, spaced evenly on
        a log scale over its time.
    settings
        When to eliminate, when to stop and how to infer.
    workers
        Number of local processes, each of which performs one run at a time; by default one per core.  With 0
        everything happens in this process, where closures and debuggers work.
    executor
        Any ``concurrent.futures`` executor, instead of local processes.
    journal
        A file that keeps every finished run; :func:`resume` continues from there.
    durable
        Whether each run waits until the disk has it in the journal.  Otherwise a power failure may lose the last runs
        if they took less than 0.05 s together.
    against
        An archive to race against: a source that :func:`polarbear_plugins.read_trajectories` reads, a list of sources,
        or a list of trajectories.  Its runs cost nothing; only the portfolio runs, on those instances of the archive
        that the suite has, until every pair that involves one of its algorithms is settled.
    against_options
        For the adapter that reads the archive.
    tolerance
        Values this close tie; by default only equal ones.  Stored values may have been rounded: IOHprofiler writes ten
        decimals.
    portfolio_options, suite_options
        For a registered portfolio and suite.
    run_timeout
        Seconds that a run may take.  A run that hangs or crashes is ended, repeated ``retries`` times, and then counts
        as having found nothing.
    run_memory
        Megabytes that a run may use beyond what its process used before, together with the processes it starts.  They
        are counted every 0.2 s, on Linux; a run that uses more is ended, and treated as one that takes too long.
    progress
        Called with a :class:`Progress` after each run and each round.  If it returns ``True``, the race stops after the
        round, and can be resumed.
    plugins
        Where to look up names; by default all installed plugins.

    Examples
    --------
    >>> from polarbear_plugins import Trajectory
    >>> def walk(step):
    ...     def run(target, horizon, seed):
    ...         values = [abs(target - step * time) for time in range(1, int(horizon) + 1)]
    ...         return Trajectory.from_evaluations(values, algorithm="?", instance="?")
    ...     return run
    >>> result = race({"slow": walk(1), "fast": walk(2)}, list(range(30, 60)), [5, 10], RaceSettings(seed=1), workers=0)
    >>> result.pareto_set, result.stopped
    (('fast',), 'resolved')
    >>> stored = [run for run in result.trajectories() if run.algorithm == "fast"]
    >>> race({"faster": walk(3)}, list(range(30, 60)), [5, 10], RaceSettings(seed=1), workers=0, against=stored)
    RaceResult(1 of 2 algorithms in the Pareto set (faster), 1 round, 8 instances, stopped: resolved)
    """
    if durable and journal is None:
        raise InvalidInputError("durable=True is for a journal; give one with journal=.")
    state, entrants, problems, rivals = prepare(
        portfolio,
        suite,
        timepoints,
        settings,
        against=against,
        against_options=against_options,
        tolerance=tolerance,
        portfolio_options=portfolio_options,
        suite_options=suite_options,
        plugins=plugins,
    )
    execution = workers, executor, run_timeout, retries, run_memory
    dispatcher = dispatcher_for(entrants.algorithms.values(), *execution)
    with Race(state, entrants, problems, dispatcher, progress=progress, plugins=plugins, rivals=rivals) as open_race:
        if journal is not None:
            open_race.keep_journal(journal, durable=durable)
        return open_race.run()


class Prepared(NamedTuple):
    """A race before its first run: its state, its portfolio and suite, and its stored rivals, if any."""

    state: RaceState
    portfolio: PortfolioSource
    suite: SuiteSource
    rivals: StoredRivals | None


def prepare(
    portfolio: Any,
    suite: Any,
    timepoints: ArrayLike | None,
    settings: RaceSettings | None,
    *,
    against: object = None,
    against_options: Mapping[str, Any] | None = None,
    tolerance: float = 0.0,
    portfolio_options: Mapping[str, Any] | None = None,
    suite_options: Mapping[str, Any] | None = None,
    plugins: Plugins | None = None,
) -> Prepared:
    """Check what :func:`race` is given, and leave out algorithms that cannot take part."""
    settings = settings or RaceSettings()
    seed = secrets.randbits(31) if settings.seed is None else settings.seed
    settings = replace(settings, seed=seed)
    check_inference(settings)
    drawn_from = SuiteSource.of(suite, suite_options, plugins)
    given = PortfolioSource.of(portfolio, portfolio_options, plugins)
    settings = replace(settings, replications=_replications(settings, drawn_from.suite, against))
    least = 2 if against is None else 1
    remaining = leave_out_unfit(given, drawn_from.suite, seed, least, stacklevel=4)
    rivals: StoredRivals | None = None
    if against is not None:
        matched = (
            against
            if isinstance(against, MatchedArchive)
            else match_archive(against, drawn_from.suite, seed, options=against_options, plugins=plugins)
        )
        if settings.per_dimension:
            matched = replace(matched, runs=tuple(per_dimension(matched.runs)))
        timepoints = default_timepoints(matched.runs) if timepoints is None else timepoints
        rivals = matched.rivals(timepoints, seed)
        state = start_against(remaining.algorithms, timepoints, settings, rivals, tolerance)
    elif timepoints is None:
        raise InvalidInputError("race: say with timepoints= where to compare the algorithms.")
    else:
        state = start_race(remaining.algorithms, timepoints, settings, tolerance)
    return Prepared(state, remaining, drawn_from, rivals)


def _replications(settings: RaceSettings, suite: Suite, against: object) -> int:
    """How often each algorithm runs on an instance: what the settings say, or the suite."""
    of_suite = as_whole_number(getattr(suite, "replications", 1), f"{suite.name}: replications", at_least=1)
    replications = settings.replications if settings.replications > 1 else of_suite
    if replications > 1 and against is not None:
        raise InvalidInputError(
            f"{replications} replications: against an archive a newcomer runs once on each instance, and meets there "
            "every stored run. Leave replications out."
        )
    return replications


def resume(
    journal: str | Path,
    portfolio: str | Mapping[str, RunFunction] | Sequence[Algorithm | str | Mapping[str, RunFunction]] | None = None,
    suite: str | Suite | Sequence[object] | Callable[[np.random.Generator], object] | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    *,
    max_rounds: int | None = None,
    max_cost: float | None = None,
    durable: bool = False,
    salvage: bool = False,
    run_timeout: float | None = None,
    run_memory: float | None = None,
    retries: int = 0,
    progress: Watcher | None = None,
    plugins: Plugins | None = None,
) -> RaceResult:
    """Continue a race from its journal: no finished run is repeated, and the result is as if it had never stopped.

    Packages, algorithms or problems that are not those with which the race began are a warning that names them, as far
    as a journal can tell.

    Parameters
    ----------
    journal
        The file.
    portfolio, suite
        Needed if they were given as Python rather than by registered names; they must be the same.
    max_rounds, max_cost
        New limits, for a race that was stopped by them.
    salvage
        Continue without the newest runs if the log of the journal, ``race.db-wal``, is damaged or gone; without it,
        that is an error.
    durable, workers, executor, run_timeout, run_memory, retries, progress, plugins
        As for :func:`race`; the journal does not store them.
    """
    execution = workers, executor, run_timeout, retries, run_memory
    options: dict[str, Any] = {"progress": progress, "plugins": plugins, "durable": durable, "salvage": salvage}
    with Race.from_journal(
        journal, portfolio, suite, lambda algorithms: dispatcher_for(algorithms, *execution), **options
    ) as open_race:
        open_race.change_limits(max_rounds, max_cost)
        return open_race.run()
