"""An open race: it begins or resumes, keeps its journal, takes newcomers, and has a result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from polarbear_plugins.environment import installed_versions
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.execution.dispatcher import Dispatcher
from polarbear_plugins.execution.interruptions import ignore_sigint
from polarbear_plugins.execution.requests import PortfolioSource, SuiteSource, check_sendable
from polarbear_plugins.experiments.archives import restore_rivals
from polarbear_plugins.experiments.changes import FINGERPRINTS, fingerprints_of, note_newcomers, warn_of_changes
from polarbear_plugins.experiments.driver import Driver
from polarbear_plugins.experiments.interference import dispatcher_for, noted_interference
from polarbear_plugins.experiments.stored_sources import choose_source, registered_names, restore_portfolio
from polarbear_plugins.experiments.watching import Watcher, notify_plugins
from polarbear_plugins.journal.journal import Journal
from polarbear_plugins.journal.reading import NO_ROUND, JournalRun
from polarbear_plugins.journal.replay import (
    observed_failures,
    recorded_interference,
    recorded_versions,
    reopen_journal,
    replay,
    spent_so_far,
)
from polarbear_plugins.journal.stopping import is_stop_requested, withdraw_stop
from polarbear_plugins.plugins.manager import Plugins, installed_plugins
from polarbear_plugins.problems.protocols import Algorithm, Identity
from polarbear_plugins.racing.posteriors import checked
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.rules import enter, plan
from polarbear_plugins.racing.state import Failure, RaceState, StopReason, unused_cost
from polarbear_plugins.racing.stored import StoredRivals


class Race:
    """An open race: :meth:`step` by step or all at once; newcomers may :meth:`enter` between two rounds.

    Made by :func:`race` and :func:`resume`; use it in a ``with`` statement, which ends its processes and closes its
    journal.
    """

    def __init__(
        self,
        state: RaceState,
        portfolio: PortfolioSource,
        suite: SuiteSource,
        dispatcher: Dispatcher,
        *,
        progress: Watcher | None = None,
        plugins: Plugins | None = None,
        rivals: StoredRivals | None = None,
    ) -> None:
        self._driver = Driver(state, portfolio, suite, dispatcher, progress or (lambda _: None), rivals)
        self._rivals, self._suite, self._plugins = rivals, suite, plugins
        self._versions: dict[str, Any] = {
            "version": version("polarbear-plugins"),
            "versions": installed_versions(state.settings.engine),
        }
        if dispatcher.pickles:
            check_sendable(portfolio, suite)

    @classmethod
    def from_journal(
        cls,
        path: str | Path,
        portfolio: Any = None,
        suite: Any = None,
        make_dispatcher: Callable[[Iterable[Algorithm]], Dispatcher] | None = None,
        *,
        progress: Watcher | None = None,
        plugins: Plugins | None = None,
        **opening: bool,
    ) -> Race:
        """Race of a journal, as it was after its last finished round; ``opening`` are options of its opening."""
        journal = Journal.open(path, **opening)
        try:
            about = journal.about
            sources = (
                restore_portfolio(portfolio, about, plugins, path),
                SuiteSource.of(*choose_source(suite, about, "suite", path), plugins),
            )
            state, unused = replay(journal, about)
            known = {*sources[0].algorithms, *state.stored}
            missing = [entry.algorithm for entry in journal.entries if entry.algorithm not in known]
            if missing:
                raise InvalidInputError(
                    f"{path}: the portfolio lacks {', '.join(missing)}, which this race has. Give resume() a portfolio "
                    "with every algorithm that entered the race as Python."
                )
            rivals = restore_rivals(journal, about, state, sources[1].suite) if state.stored else None
            options: dict[str, Any] = {"progress": progress, "plugins": plugins, "rivals": rivals}
            dispatcher = (make_dispatcher or partial(dispatcher_for, workers=0))(sources[0].algorithms.values())
            race = cls(state, *sources, dispatcher, **options)
            race._attach_journal(journal, unused)
            warn_of_changes(journal.path, about, installed_versions(state.settings.engine), fingerprints_of(*sources))
            return race
        except BaseException:
            journal.close()
            raise

    @property
    def state(self) -> RaceState:
        """The race after its last finished round."""
        return self._driver.state

    def keep_journal(self, path: str | Path, *, durable: bool = False) -> None:
        """Start a journal; call it before the first round."""
        about = {
            "settings": self.state.settings.to_json(),
            "timepoints": self.state.timepoints.tolist(),
            **({"tolerance": self.state.table.tolerance} if self.state.table.tolerance else {}),
            **self._versions,
            **self._origin(),
            FINGERPRINTS: fingerprints_of(self._driver.portfolio, self._suite),
        }
        if self._rivals is not None:  # the journal has all instances from the start
            self._driver.draw(len(self._rivals.instances))
        self._driver.journal = Journal.create(path, about, self.state.algorithms, self._rivals, durable=durable)

    def _origin(self) -> dict[str, Any]:
        against = {} if self._rivals is None else {"against": dict(self._rivals.about)}
        return {**registered_names(self._driver.portfolio, self._suite), **against}

    def change_limits(self, max_rounds: int | None = None, max_cost: float | None = None) -> None:
        """Set new limits; ``None`` keeps the old one."""
        given = {"max_rounds": max_rounds, "max_cost": max_cost}
        changes: dict[str, Any] = {name: limit for name, limit in given.items() if limit is not None}
        if changes:
            self._driver.state = replace(self.state, settings=replace(self.state.settings, **changes))
            if self._driver.journal is not None:
                self._driver.journal.write_about(settings=self.state.settings.to_json())

    def enter(self, algorithm: Any) -> None:
        """Add a newcomer, an Algorithm or ``{name: run}``; it catches up on the instances observed so far."""
        newcomers = PortfolioSource.of(algorithm if isinstance(algorithm, Mapping) else [algorithm], None, None)
        driver = self._driver
        if driver.dispatcher.pickles:
            check_sendable(newcomers, self._suite)
        for name in newcomers.algorithms:
            driver.state = enter(driver.state, name)
            if driver.journal is not None:
                driver.journal.add_entry(name, len(driver.state.rounds))
        driver.portfolio |= newcomers
        driver.posterior = None
        if driver.journal is not None:
            note_newcomers(driver.journal, fingerprints_of(newcomers, self._suite))

    def run(self) -> RaceResult:
        """Race until it stops; after ctrl-C the result is that of the last finished round."""
        if self._driver.journal is not None:
            withdraw_stop(self._driver.journal.path)  # it was meant for a race that was killed
        try:
            stopped = self.step()
            while stopped is None:
                stopped = self._stop_on_request() or self.step()
        except KeyboardInterrupt:
            with ignore_sigint():
                self._driver.dispatcher.close(at_once=True)
                return self._stop("interrupted")
        return self._stop(stopped)

    def step(self) -> StopReason | None:
        """Perform one round; returns the reason instead if the race is over."""
        over = self._driver.perform_round()
        if over is None:
            self._plugins = self._plugins or installed_plugins()
            notify_plugins(self._plugins, self.state)
            self._driver.tell(done=0, planned=0, result=self._result("running", None))
        return over

    def _stop_on_request(self) -> StopReason | None:
        """Why the race stops now if it was asked to, unless it is over anyway."""
        driver = self._driver
        asked = driver.stop_requested or (driver.journal is not None and is_stop_requested(driver.journal.path))
        return (plan(self.state).over or "requested") if asked else None

    def _stop(self, stopped: StopReason) -> RaceResult:
        driver = self._driver
        driver.pool.withdraw()
        driver.note_end(stopped, **noted_interference(driver.dispatcher))
        return self.result(stopped)

    def result(self, stopped: StopReason) -> RaceResult:
        """Result of the rounds so far."""
        self._driver.posterior = checked(self.state, self._driver.posterior)
        return self._result(stopped, self._continuation())

    def _result(self, stopped: StopReason | str, continuation: Continuation | None) -> RaceResult:
        driver = self._driver
        spent = driver.pool.ended_cost if stopped == "running" else driver.pool.spent
        return RaceResult(
            state=self.state,
            stopped=stopped,
            _posterior=driver.posterior,
            failures=observed_failures(self.state, driver.pool.used_failures()),
            about={**self._versions, **self._origin(), **self._interference()},
            identities=tuple(driver.instances.drawn[: len(self.state.table.instances)]),
            continuation=continuation,
            unused_cost=unused_cost(self.state, spent),
        )

    def _interference(self) -> dict[str, Any]:
        """What was measured now, or else before the race was resumed."""
        journal = self._driver.journal
        return noted_interference(self._driver.dispatcher) or recorded_interference(journal.about if journal else {})

    def __enter__(self) -> Race:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with ignore_sigint():
            self._driver.dispatcher.close(at_once=kind is not None)
            if self._driver.journal is not None:
                self._driver.journal.close()
                withdraw_stop(self._driver.journal.path)

    def _attach_journal(self, journal: Journal, unused: Sequence[JournalRun]) -> None:
        """Continue in the journal of this race; ``unused`` are its finished runs that belong to no finished round."""
        driver = self._driver
        driver.journal = journal
        about, now = journal.about, self._versions["versions"]
        if about.get("versions") != now:
            journal.write_about(resumed_with=now)
        self._versions = recorded_versions(journal.about)
        driver.instances.redraw(journal.instances)
        names = self.state.settings.run_names
        observed = {run for instance in self.state.table.instances for run in names(instance)}
        kept = {(run.trajectory.algorithm, run.trajectory.instance) for run in unused}
        failures = [
            failure
            for failure in journal.failures
            if failure.instance in observed or (failure.algorithm, failure.instance) in kept
        ]
        driver.pool.restore(unused, failures, spent_so_far(journal, about, self.state, unused))

    def _continuation(self) -> Continuation:
        driver = self._driver
        return Continuation(
            state=self.state,
            portfolio=driver.portfolio,
            suite=self._suite,
            plugins=self._plugins,
            identities=tuple(driver.instances.drawn),
            failures=tuple(driver.pool.failures.values()),
            unused=tuple(JournalRun(NO_ROUND, run, 0.0) for run in driver.pool.finished.values()),
            spent=driver.pool.spent,
            journal=None if driver.journal is None else driver.journal.path,
            rivals=self._rivals,
        )

    def _continue_from(self, stopped: Continuation) -> None:
        """Continue where a race stopped: in its journal, or with what was kept in memory."""
        if stopped.journal is not None:
            self._attach_journal(*reopen_journal(stopped.journal, stopped.state))
        else:
            self._driver.instances.redraw(stopped.identities)
            self._driver.pool.restore(stopped.unused, stopped.failures, stopped.spent)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Continuation:
    """What it takes to continue a race that has stopped; holds no process and no open file.

    Attributes
    ----------
    unused
        Finished runs that no round has used yet.
    spent
        Cost of everything that was begun.
    """

    state: RaceState
    portfolio: PortfolioSource
    suite: SuiteSource
    plugins: Plugins | None
    identities: tuple[Identity, ...]
    failures: tuple[Failure, ...]
    unused: tuple[JournalRun, ...]
    spent: float
    journal: Path | None
    rivals: StoredRivals | None

    def enter(
        self,
        algorithm: Any,
        *,
        max_rounds: int | None = None,
        max_cost: float | None = None,
        progress: Watcher | None = None,
        **execution: Any,
    ) -> RaceResult:
        """Add a newcomer and race on; see :meth:`polarbear_plugins.RaceResult.enter`."""
        dispatcher = dispatcher_for(self.portfolio.algorithms.values(), **execution)
        options: dict[str, Any] = {"progress": progress, "plugins": self.plugins, "rivals": self.rivals}
        with Race(self.state, self.portfolio, self.suite, dispatcher, **options) as race:
            race._continue_from(self)
            race.change_limits(max_rounds, max_cost)
            race.enter(algorithm)
            return race.run()
