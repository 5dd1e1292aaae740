"""The driver of a race: it plans a round, gives workers runs, stores what they return, infers and decides.

There is one for both schedules.  Without barriers a worker that would wait gets a run that a later round will probably
ask for.  Such a run changes nothing until a round asks for it, and a round decides on the runs of its plan alone: all
of them, and no others.  So who is quick and who is slow makes no difference to the answer, only to the time it takes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from polarbear_plugins.errors import InvalidInputError, PolarBearError, foreign_text
from polarbear_plugins.execution.dispatcher import Dispatcher
from polarbear_plugins.execution.requests import PortfolioSource, Request, SuiteSource, make_request
from polarbear_plugins.experiments.drawing import DrawnInstances
from polarbear_plugins.experiments.run_pool import RunPool, WantedRun
from polarbear_plugins.experiments.stored_sources import unit_of
from polarbear_plugins.experiments.watching import Progress, Watcher
from polarbear_plugins.journal.journal import Journal
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.problems.protocols import plans_by_horizon
from polarbear_plugins.racing.lookahead import ahead
from polarbear_plugins.racing.posteriors import infer
from polarbear_plugins.racing.rules import decide, last_unresolved, observe, plan
from polarbear_plugins.racing.state import Order, Plan, RaceState, StopReason
from polarbear_plugins.racing.stored import StoredRivals
from polarbear_plugins.seeds import derived_seed
from polarbear_plugins.trajectories.trajectory import Trajectory

Answer = TypeVar("Answer")

_DRAWN_AT_ONCE = 16  # instances for runs ahead of time; storing them one by one would take longer than some runs


class Driver:
    """Performs the rounds of a race.

    Parameters
    ----------
    rivals
        From an archive, if the race is against one.

    Attributes
    ----------
    state, posterior
        After the last finished round; no posterior before there is one.
    journal
        Where runs, instances and rounds are stored, if anywhere.
    instances
        The instances drawn so far.
    stop_requested
        Whether whoever watches wants the race to stop after the round.
    """

    def __init__(
        self,
        state: RaceState,
        portfolio: PortfolioSource,
        suite: SuiteSource,
        dispatcher: Dispatcher,
        watch: Watcher,
        rivals: StoredRivals | None,
    ) -> None:
        self.state = state
        self.posterior: Posterior | None = None
        self.journal: Journal | None = None
        self.portfolio, self._suite = portfolio, suite
        self.dispatcher = dispatcher
        self.pool = RunPool(dispatcher, self._request, lambda name: plans_by_horizon(self.portfolio.algorithms[name]))
        self._watch = watch
        self.stop_requested = False
        # Newcomers meet stored rivals on the instances of the archive, and on no others.
        supply = suite.suite.identities(derived_seed(self._seed, "instances")) if rivals is None else rivals.instances
        self.instances = DrawnInstances(suite.suite.name, iter(supply))
        self._ahead: Iterator[WantedRun] = iter(())

    @property
    def _seed(self) -> int:
        if self.state.settings.seed is None:
            raise InvalidInputError("A race needs a seed in its settings.")
        return self.state.settings.seed

    @property
    def _continuous(self) -> bool:
        return self.state.settings.schedule == "continuous"

    def perform_round(self) -> StopReason | None:
        """Perform one round; returns the reason instead if the race is over."""
        available = self.draw(len(self.state.table.instances) + self.state.batch)
        planned = plan(self.state, available, **self._spending())
        if planned.over is not None:
            return planned.over
        if self.journal is not None and self.journal.about.get("stopped"):
            self.journal.write_about(stopped=None)  # it goes on, and may be killed
        number = len(self.state.rounds) + 1
        observed = observe(self.state, self._carry_out(planned, number))
        posterior = self._infer(observed, number)
        state = decide(observed, posterior)
        pool = self.pool
        unused = pool.unused()
        if self.journal is not None:
            self.journal.add_round(state.rounds[-1], state.resolved, *pool.to_store(), self._spent(pool.ended_cost))
        # In one statement, so that ctrl-C never leaves half a round.
        self.state, self.posterior, pool.finished = state, posterior, unused
        return None

    def tell(self, **other: Any) -> None:
        """Tell whoever watches how far the race is."""
        wanted = self._watch(Progress(self.state, self.posterior, **{**self.pool.progress(), **other}))
        self.stop_requested = self.stop_requested or wanted is True

    def draw(self, count: int) -> int | None:
        """Draw instances until there are ``count``; returns how many there are if the suite has fewer, else None."""
        new = self.instances.draw(count)
        there = len(self.instances.drawn)
        if self.journal is not None and new:
            self.journal.add_instances(there - len(new), new)
        return None if there >= count else there

    def note_end(self, stopped: StopReason, **other: Any) -> None:
        """Write into the journal why the race has stopped; what is still under way then was spent in vain."""
        if self.journal is not None and (other or self.journal.about.get("stopped") != stopped):
            self.journal.write_about(stopped=stopped, **self._spent(self.pool.spent), **other)

    def _spent(self, cost: float) -> dict[str, float]:
        """What the journal keeps of the cost: that of runs ahead of time is in no round."""
        return {"spent": cost} if self._continuous else {}

    def _carry_out(self, planned: Plan, number: int) -> list[Trajectory]:
        """Perform the runs that are not finished yet; returns all runs in the order of the plan."""
        pool = self.pool
        pool.withdraw()
        pool.end_all_but({*last_unresolved(self.state), *(order.algorithm for order in planned.orders)})
        pool.plan(self._wanted(planned.orders), number)
        self._ahead = self._runs_ahead(planned)
        self.tell()
        with self.dispatcher.performing():
            while pool.missing:
                self._advance()
        failure = pool.all_failed()
        if number == 1 and failure is not None:
            raise PolarBearError(
                f"Every run of the first round failed. The reason of the first failure: {foreign_text(failure.reason)}."
            )
        places = {name: order.instance for order in planned.orders for name in self._run_names(order)}
        return [self.instances.drawn[places[run.instance]].label(run) for run in pool.take()]

    def _infer(self, observed: RaceState, number: int) -> Posterior:
        """Posterior of a round; without barriers, workers get runs meanwhile."""
        if not self._continuous or self.dispatcher.in_process:
            return infer(observed, number)
        answer = _call_in_thread(lambda: infer(observed, number), self.dispatcher.wake)
        while not answer.done():
            self._advance()
        return answer.result()

    def _advance(self) -> None:
        """Give workers something to do, wait until something has finished, and store it."""
        pool = self.pool
        pool.run_ahead(self._ahead, self.state.settings.max_cost)
        runs = pool.collect()
        if self.journal is not None and runs:
            self.journal.add_runs(runs, self._spent(pool.ended_cost))
        pool.finish(runs)
        self.tell()

    def _runs_ahead(self, planned: Plan) -> Iterator[WantedRun]:
        """Runs of later rounds, while there are instances."""
        if self._continuous:
            for order in ahead(self.state, planned.orders, is_finished=self._is_finished):
                if len(self.instances.drawn) <= order.instance:
                    self.draw(order.instance + _DRAWN_AT_ONCE)
                if len(self.instances.drawn) <= order.instance:
                    return
                yield from self._wanted([order])

    def _is_finished(self, order: Order) -> bool:
        return all(map(self.pool.has, self._wanted([order])))

    def _wanted(self, orders: Iterable[Order]) -> Iterator[WantedRun]:
        return (
            WantedRun(order, replication, name)
            for order in orders
            for replication, name in enumerate(self._run_names(order))
        )

    def _run_names(self, order: Order) -> tuple[str, ...]:
        return self.state.settings.run_names(self.instances.drawn[order.instance].name)

    def _request(self, wanted: WantedRun) -> Request:
        order = wanted.order
        identity = self.instances.drawn[order.instance]
        path = (wanted.replication,) if wanted.replication else ()  # the first one has the seed that it has alone
        seed = derived_seed(self._seed, "run", order.algorithm, identity.name, *path)
        unit = unit_of(identity, self.state.settings)
        sources = self.portfolio, self._suite
        return make_request(*sources, order.algorithm, identity, order.until, seed, self.state.timepoints, unit)

    def _spending(self) -> dict[str, Any]:
        """What was spent, and what of the next round is paid; only runs ahead of time make a difference."""
        if not self._continuous or self.state.settings.max_cost is None:
            return {}
        return {"is_paid": lambda order: all(map(self.pool.is_paid, self._wanted([order]))), "spent": self.pool.spent}


def _call_in_thread(function: Callable[[], Answer], then: Callable[[], None]) -> Future[Answer]:
    """Call a function in another thread, which does not keep the process from ending; and a second one at its end."""
    answer: Future[Answer] = Future()

    def call() -> None:
        try:
            answer.set_result(function())
        except BaseException as problem:  # raised where the answer is asked for
            answer.set_exception(problem)
        then()

    threading.Thread(target=call, name="polarbear-inference", daemon=True).start()
    return answer
