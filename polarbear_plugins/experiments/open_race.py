"""An open race: plans, runs, observes, decides, and keeps the journal."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from polarbear_plugins.environment import installed_versions
from polarbear_plugins.errors import InvalidInputError, PolarBearError, RunWarning, foreign_text
from polarbear_plugins.execution.dispatcher import Dispatcher, Outcome
from polarbear_plugins.execution.interruptions import ignore_sigint
from polarbear_plugins.execution.requests import PortfolioSource, Request, SuiteSource, check_sendable, make_request
from polarbear_plugins.experiments.archives import restore_rivals
from polarbear_plugins.experiments.changes import FINGERPRINTS, fingerprints_of, note_newcomers, warn_of_changes
from polarbear_plugins.experiments.drawing import DrawnInstances
from polarbear_plugins.experiments.stored_sources import choose_source, registered_names, restore_portfolio, unit_of
from polarbear_plugins.experiments.watching import Progress, Watcher, notify_plugins
from polarbear_plugins.journal.journal import Journal
from polarbear_plugins.journal.reading import JournalRun
from polarbear_plugins.journal.replay import observed_failures, recorded_versions, reopen_journal, replay
from polarbear_plugins.plugins.manager import Plugins, installed_plugins
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.racing.posteriors import checked, infer
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.rules import decide, enter, observe, plan
from polarbear_plugins.racing.state import Failure, Order, Plan, RaceState, StopReason
from polarbear_plugins.racing.stored import StoredRivals
from polarbear_plugins.seeds import derived_seed
from polarbear_plugins.trajectories.trajectory import Trajectory


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
        self.state = state
        self._rivals = rivals
        self._portfolio, self._suite = portfolio, suite
        self._dispatcher = dispatcher
        self._watch = progress or (lambda _: None)
        self._plugins = plugins
        self._journal: Journal | None = None
        self._posterior: Posterior | None = None
        # Newcomers meet stored rivals on the instances of the archive, and on no others.
        self._instances = DrawnInstances(
            suite.suite.name,
            suite.suite.identities(derived_seed(self._seed, "instances")) if rivals is None else iter(rivals.instances),
        )
        self._finished: dict[tuple[str, str], Trajectory] = {}  # runs of the current round
        self._failures: list[Failure] = []
        self._warned: set[str] = set()
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
        dispatcher: Dispatcher | None = None,
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
            race = cls(state, *sources, dispatcher or Dispatcher(0), **options)
            race._attach_journal(journal, unused)
            warn_of_changes(journal.path, about, installed_versions(state.settings.engine), fingerprints_of(*sources))
            return race
        except BaseException:
            journal.close()
            raise

    @property
    def _seed(self) -> int:
        if self.state.settings.seed is None:
            raise InvalidInputError("A race needs a seed in its settings.")
        return self.state.settings.seed

    def keep_journal(self, path: str | Path, *, durable: bool = False) -> None:
        """Start a journal; call it before the first round."""
        about = {
            "settings": self.state.settings.to_json(),
            "timepoints": self.state.timepoints.tolist(),
            **({"tolerance": self.state.table.tolerance} if self.state.table.tolerance else {}),
            **self._versions,
            **self._origin(),
            FINGERPRINTS: fingerprints_of(self._portfolio, self._suite),
        }
        if self._rivals is not None:  # the journal has all instances from the start
            self._draw(len(self._rivals.instances))
        self._journal = Journal.create(path, about, self.state.algorithms, self._rivals, durable=durable)

    def _origin(self) -> dict[str, Any]:
        against = {} if self._rivals is None else {"against": dict(self._rivals.about)}
        return {**registered_names(self._portfolio, self._suite), **against}

    def change_limits(self, max_rounds: int | None = None, max_cost: float | None = None) -> None:
        """Set new limits; ``None`` keeps the old one."""
        given = {"max_rounds": max_rounds, "max_cost": max_cost}
        changes: dict[str, Any] = {name: limit for name, limit in given.items() if limit is not None}
        if changes:
            self.state = replace(self.state, settings=replace(self.state.settings, **changes))
            if self._journal is not None:
                self._journal.write_about(settings=self.state.settings.to_json())

    def enter(self, algorithm: Any) -> None:
        """Add a newcomer, an Algorithm or ``{name: run}``; it catches up on the instances observed so far."""
        newcomers = PortfolioSource.of(algorithm if isinstance(algorithm, Mapping) else [algorithm], None, None)
        if self._dispatcher.pickles:
            check_sendable(newcomers, self._suite)
        for name in newcomers.algorithms:
            self.state = enter(self.state, name)
            if self._journal is not None:
                self._journal.add_entry(name, len(self.state.rounds))
        self._portfolio |= newcomers
        self._posterior = None
        if self._journal is not None:
            note_newcomers(self._journal, fingerprints_of(newcomers, self._suite))

    def run(self) -> RaceResult:
        """Race until it stops; after ctrl-C the result is that of the last finished round."""
        try:
            stopped = self.step()
            while stopped is None:
                stopped = self.step()
        except KeyboardInterrupt:
            with ignore_sigint():
                self._dispatcher.close(at_once=True)
                return self._stop("interrupted")
        return self._stop(stopped)

    def step(self) -> StopReason | None:
        """Perform one round; returns the reason instead if the race is over."""
        available = self._draw(len(self.state.table.instances) + self.state.batch)
        planned = plan(self.state, available)
        if planned.over is not None:
            return planned.over
        number = len(self.state.rounds) + 1
        observed = observe(self.state, self._carry_out(planned, number))
        posterior = infer(observed, number)
        state = decide(observed, posterior)
        later = self._unplanned(planned)
        if self._journal is not None:
            self._journal.add_round(state.rounds[-1], state.resolved, later)
        unused = {run: self._finished[run] for run in later}
        # In one statement, so that ctrl-C never leaves half a round.
        self.state, self._posterior, self._finished = state, posterior, unused
        self._plugins = self._plugins or installed_plugins()
        notify_plugins(self._plugins, self.state)
        self._watch(Progress(self.state, self._posterior, 0, 0, len(self._failures)))
        return None

    def _stop(self, stopped: StopReason) -> RaceResult:
        if self._journal is not None and self._journal.about.get("stopped") != stopped:
            self._journal.write_about(stopped=stopped)
        return self.result(stopped)

    def result(self, stopped: StopReason) -> RaceResult:
        """Result of the rounds so far."""
        self._posterior = checked(self.state, self._posterior)
        return RaceResult(
            state=self.state,
            stopped=stopped,
            _posterior=self._posterior,
            failures=observed_failures(self.state, self._failures),
            about={**self._versions, **self._origin()},
            identities=tuple(self._instances.drawn[: len(self.state.table.instances)]),
            continuation=self._continuation(),
        )

    def __enter__(self) -> Race:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with ignore_sigint():
            self._dispatcher.close(at_once=kind is not None)
            if self._journal is not None:
                self._journal.close()

    def _carry_out(self, planned: Plan, number: int) -> list[Trajectory]:
        """Perform the runs that are not finished yet; returns all runs in the order of the plan."""
        runs = self._runs(planned)
        requests = {
            self._request(order, replication): name
            for order, replication, name in runs
            if not self._is_finished(order.algorithm, name, order.until)
        }
        total = len(runs)
        self._watch(Progress(self.state, self._posterior, total - len(requests), total, len(self._failures)))
        left = len(requests)
        for finished in self._dispatcher.carry_out(requests):
            outcomes = [outcome.named(requests[outcome.request]) for outcome in finished]
            if self._journal is not None:
                self._journal.add_runs(
                    JournalRun(number, outcome.trajectory, outcome.seconds, outcome.failure) for outcome in outcomes
                )
            for outcome in outcomes:
                self._finish(outcome)
            left -= len(outcomes)
            self._watch(Progress(self.state, self._posterior, total - left, total, len(self._failures)))
        if number == 1 and len(self._failures) == total:
            raise PolarBearError(
                "Every run of the first round failed. The reason of the first failure: "
                f"{foreign_text(self._failures[0].reason)}."
            )
        return [
            self._instances.drawn[order.instance].label(self._finished[order.algorithm, name])
            for order, _, name in runs
        ]

    def _runs(self, planned: Plan) -> list[tuple[Order, int, str]]:
        """Runs of a plan: order, replication, and name of the run."""
        return [
            (order, replication, name)
            for order in planned.orders
            for replication, name in enumerate(
                self.state.settings.run_names(self._instances.drawn[order.instance].name)
            )
        ]

    def _request(self, order: Order, replication: int) -> Request:
        identity = self._instances.drawn[order.instance]
        path = (replication,) if replication else ()  # the first one has the seed that it has alone
        seed = derived_seed(self._seed, "run", order.algorithm, identity.name, *path)
        unit = unit_of(identity, self.state.settings)
        sources = self._portfolio, self._suite
        return make_request(*sources, order.algorithm, identity, order.until, seed, self.state.timepoints, unit)

    def _unplanned(self, planned: Plan) -> list[tuple[str, str]]:
        """Finished runs that are not part of the plan, which is possible after the limits have changed."""
        used = {(order.algorithm, name) for order, _, name in self._runs(planned)}
        return [run for run in self._finished if run not in used]

    def _is_finished(self, algorithm: str, instance: str, until: float) -> bool:
        run = self._finished.get((algorithm, instance))
        return run is not None and run.horizon == until

    def _finish(self, outcome: Outcome) -> None:
        run = outcome.trajectory
        key = run.algorithm, run.instance
        if key in self._finished:  # the earlier run did not reach the horizon needed now
            self._failures = [known for known in self._failures if (known.algorithm, known.instance) != key]
        self._finished[key] = run
        if outcome.failure is not None:
            self._failures.append(Failure(run.algorithm, run.instance, outcome.failure))
            if run.algorithm not in self._warned:
                self._warned.add(run.algorithm)
                warnings.warn(
                    f"A run of {run.algorithm!r} on {run.instance!r} failed and counts as having found nothing: "
                    f"{foreign_text(outcome.failure)}. Further failures of this algorithm are counted silently.",
                    RunWarning,
                    stacklevel=2,
                )

    def _draw(self, count: int) -> int | None:
        """Draw instances until there are ``count``; returns how many there are if the suite has fewer, else None."""
        new = self._instances.draw(count)
        there = len(self._instances.drawn)
        if self._journal is not None and new:
            self._journal.add_instances(there - len(new), new)
        return None if there >= count else there

    def _attach_journal(self, journal: Journal, unused: Iterable[Trajectory]) -> None:
        """Continue in the journal of this race; ``unused`` are its finished runs that belong to no finished round."""
        self._journal = journal
        about, now = journal.about, self._versions["versions"]
        if about.get("versions") != now:
            journal.write_about(resumed_with=now)
        self._versions = recorded_versions(journal.about)
        self._instances.redraw(journal.instances)
        self._finished = {(run.algorithm, run.instance): run for run in unused}
        names = self.state.settings.run_names
        observed = {run for instance in self.state.table.instances for run in names(instance)}
        self._failures = [
            failure
            for failure in journal.failures
            if failure.instance in observed or (failure.algorithm, failure.instance) in self._finished
        ]

    def _continuation(self) -> Continuation:
        return Continuation(
            state=self.state,
            portfolio=self._portfolio,
            suite=self._suite,
            plugins=self._plugins,
            identities=tuple(self._instances.drawn),
            failures=tuple(self._failures),
            unused=dict(self._finished),
            journal=None if self._journal is None else self._journal.path,
            rivals=self._rivals,
        )

    def _continue_from(self, stopped: Continuation) -> None:
        """Continue where a race stopped: in its journal, or with what was kept in memory."""
        if stopped.journal is not None:
            self._attach_journal(*reopen_journal(stopped.journal, stopped.state))
        else:
            self._instances.redraw(stopped.identities)
            self._failures, self._finished = list(stopped.failures), dict(stopped.unused)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Continuation:
    """What it takes to continue a race that has stopped; holds no process and no open file.

    Attributes
    ----------
    unused
        Finished runs that no round has used yet.
    """

    state: RaceState
    portfolio: PortfolioSource
    suite: SuiteSource
    plugins: Plugins | None
    identities: tuple[Identity, ...]
    failures: tuple[Failure, ...]
    unused: Mapping[tuple[str, str], Trajectory]
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
        dispatcher = Dispatcher(**execution)
        options: dict[str, Any] = {"progress": progress, "plugins": self.plugins, "rivals": self.rivals}
        with Race(self.state, self.portfolio, self.suite, dispatcher, **options) as race:
            race._continue_from(self)
            race.change_limits(max_rounds, max_cost)
            race.enter(algorithm)
            return race.run()
