"""The runs of a race: those that are finished, those under way, and what all of them cost."""

from __future__ import annotations

import collections
import statistics
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from polarbear_plugins.errors import RunWarning, foreign_text
from polarbear_plugins.execution.dispatcher import Dispatcher
from polarbear_plugins.execution.requests import Request
from polarbear_plugins.journal.reading import NO_ROUND, JournalRun
from polarbear_plugins.racing.state import Failure, Order
from polarbear_plugins.trajectories.runs import cut_at
from polarbear_plugins.trajectories.trajectory import Trajectory

#: Algorithm, and name of the run: that of the instance, unless there are several runs on it.
RunKey: TypeAlias = tuple[str, str]

_LONG = 2.0  # times the seconds of a usual run
_RECENT = 10  # failures that whoever watches is told


@dataclass(frozen=True, slots=True)
class WantedRun:
    """A run that a race asks for."""

    order: Order
    replication: int
    name: str

    @property
    def key(self) -> RunKey:
        """What it is known by."""
        return self.order.algorithm, self.name


class RunPool:
    """Performs runs, and keeps the finished ones until a round uses them.

    Parameters
    ----------
    make_request
        Makes the request for a run.
    plans_by_horizon
        Whether an algorithm of a name runs differently if it has more time.

    Attributes
    ----------
    finished
        Finished runs that no round has used yet.
    failures
        Runs that failed for good, also those that a round has used.
    spent
        Cost of everything that was begun.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        make_request: Callable[[WantedRun], Request],
        plans_by_horizon: Callable[[str], bool],
    ) -> None:
        self.dispatcher = dispatcher
        self.finished: dict[RunKey, Trajectory] = {}
        self.failures: dict[RunKey, Failure] = {}
        self.spent = 0.0
        self._make_request, self._plans_by_horizon = make_request, plans_by_horizon
        self._under_way: dict[Request, WantedRun] = {}
        self._under_way_cost = 0.0
        self._horizons: dict[RunKey, float] = {}  # of runs under way
        self._stored_round: dict[RunKey, int] = {}  # of finished runs
        self._used: set[RunKey] = set()  # runs of earlier rounds
        self._round = 0
        self._planned: dict[RunKey, WantedRun] = {}
        self._missing: set[RunKey] = set()  # of the planned ones
        self._waited_for: collections.Counter[str] = collections.Counter()
        self._seconds: dict[str, tuple[float, int]] = {}  # that runs of an algorithm took: sum and number
        self._warned: set[str] = set()
        self._recent_failures: collections.deque[Failure] = collections.deque(maxlen=_RECENT)
        self._utilisation = _Utilisation()

    def restore(self, runs: Iterable[JournalRun], failures: Iterable[Failure], spent: float) -> None:
        """Go on with runs that are finished and unused, the failures so far, and what was spent."""
        for run in runs:
            self._keep(run)
        self.failures = {(failure.algorithm, failure.instance): failure for failure in failures}
        self._recent_failures.extend(self.failures.values())
        self.spent = spent

    def plan(self, runs: Iterable[WantedRun], number: int) -> None:
        """Begin what is missing of a round; before, :meth:`withdraw` what waits for a worker."""
        self._count_time()
        self._used.update(self._planned)
        self._round = number
        self._planned = {wanted.key: wanted for wanted in runs}
        self._missing = {key for key, wanted in self._planned.items() if not self.has(wanted)}
        self._waited_for = collections.Counter(algorithm for algorithm, _ in self._missing)
        to_begin = [wanted for key, wanted in self._planned.items() if key in self._missing and not self._begun(wanted)]
        self._begin(to_begin if self.dispatcher.capacity == 1 else self._long_ones_first(to_begin))

    @property
    def planned(self) -> int:
        """Number of runs of the round."""
        return len(self._planned)

    @property
    def ended_cost(self) -> float:
        """Cost of all runs that have ended, in whatever way; of those under way some may never begin."""
        return self.spent - self._under_way_cost

    @property
    def missing(self) -> int:
        """Number of runs that the round waits for."""
        return len(self._missing)

    def all_failed(self) -> Failure | None:
        """The first failure if every run of the round has failed."""
        failures = [self.failures.get(key) for key in self._planned]
        return failures[0] if failures and all(failures) else None

    def run_ahead(self, runs: Iterator[WantedRun], most: float | None) -> None:
        """Begin runs of later rounds while workers have nothing else to do, and not more than ``most`` is spent."""
        self._count_time()
        while self.dispatcher.room > 0:
            wanted = next(runs, None)
            if wanted is None or (most is not None and self.spent + wanted.order.until > most):
                return
            if not self.is_begun(wanted):
                self._begin([wanted])

    def withdraw(self) -> None:
        """Take back what has not begun."""
        self._count_time()
        for request in self.dispatcher.withdraw(self._under_way):
            self.spent -= self._end(request).order.until

    def end_all_but(self, algorithms: Collection[str]) -> None:
        """End runs of other algorithms where that frees a worker soon enough; what they cost stays spent."""
        unwanted = [request for request in self._under_way if request.algorithm_name not in algorithms]
        for request in self.dispatcher.end(unwanted):
            self._end(request)

    def collect(self) -> list[JournalRun]:
        """Wait for runs to finish; :meth:`finish` them once they are stored."""
        in_flight = self.dispatcher.in_flight
        outcomes = self.dispatcher.collect()
        self._count_time(in_flight)
        runs = []
        for outcome in outcomes:
            wanted = self._end(outcome.request)
            planned = self._planned.get(wanted.key)
            if wanted.key in self._used or (planned is not None and self.has(planned)):
                continue  # a run with another horizon was what was needed; it must not be replaced
            run = outcome.named(wanted.name).trajectory
            if planned is not None and self._serves(run, outcome.failure, planned):
                runs.append(JournalRun(self._round, cut_at(run, planned.order.until), outcome.seconds, outcome.failure))
            else:
                runs.append(JournalRun(NO_ROUND, run, outcome.seconds, outcome.failure))
        return runs

    def finish(self, runs: Iterable[JournalRun]) -> None:
        """Keep runs that have finished."""
        for run in runs:
            key = self._keep(run)
            self.failures.pop(key, None)  # of an earlier run, with another horizon
            if run.failure is None:
                total, count = self._seconds.get(key[0], (0.0, 0))
                self._seconds[key[0]] = total + run.seconds, count + 1
            else:
                self.failures[key] = Failure(*key, run.failure)
                self._recent_failures.append(self.failures[key])
                self._warn_of_failure(key, run.failure)
            if key in self._missing:
                if self.has(self._planned[key]):
                    self._missing.discard(key)
                    self._waited_for[key[0]] -= 1
                elif not self._begun(self._planned[key]):
                    self._begin([self._planned[key]])

    def has(self, wanted: WantedRun) -> bool:
        """Whether a run is finished."""
        run, failure = self.finished.get(wanted.key), self.failures.get(wanted.key)
        return run is not None and self._serves(run, None if failure is None else failure.reason, wanted)

    def is_begun(self, wanted: WantedRun) -> bool:
        """Whether a run is finished or under way."""
        return self._begun(wanted) or self.has(wanted)

    def is_paid(self, wanted: WantedRun) -> bool:
        """Whether a run is sure to cost nothing more: a longer one that is under way may fail, and be repeated."""
        return self._horizons.get(wanted.key) == wanted.order.until or self.has(wanted)

    def used_failures(self) -> list[Failure]:
        """Failed runs that rounds have used."""
        return [failure for key, failure in self.failures.items() if key not in self.finished]

    def take(self) -> list[Trajectory]:
        """The runs of the round, in the order of the plan, each until where it was asked for."""
        return [cut_at(self.finished[key], wanted.order.until) for key, wanted in self._planned.items()]

    def unused(self) -> dict[RunKey, Trajectory]:
        """Finished runs that are not those of the round."""
        return {key: run for key, run in self.finished.items() if key not in self._planned}

    def to_store(self) -> tuple[list[Trajectory], list[RunKey]]:
        """Runs of the round that were stored as those of none, and runs stored as those of the round that are not."""
        ahead = [run for run in self.take() if self._stored_round[run.algorithm, run.instance] != self._round]
        return ahead, [key for key in self.unused() if self._stored_round[key] == self._round]

    def progress(self) -> dict[str, Any]:
        """How much is going on, as fields of a :class:`~polarbear_plugins.experiments.watching.Progress`."""
        return {
            "done": self.planned - self.missing,
            "planned": self.planned,
            "failed": len(self.failures),
            "under_way": self.dispatcher.in_flight,
            "ahead": max(0, len(self._under_way) - self.missing),
            "waited_for": {algorithm: count for algorithm, count in self._waited_for.items() if count},
            "utilisation": self._utilisation.share,
            "recent_failures": tuple(self._recent_failures),
        }

    def _serves(self, run: Trajectory, failure: str | None, wanted: WantedRun) -> bool:
        """Whether a finished run is the one that is wanted.

        One that went on for longer serves as well, unless it failed, which may have been later, or its algorithm would
        have run differently.
        """
        if run.horizon == wanted.order.until:
            return True
        return run.horizon > wanted.order.until and failure is None and not self._plans_by_horizon(run.algorithm)

    def _begun(self, wanted: WantedRun) -> bool:
        horizon = self._horizons.get(wanted.key, 0.0)
        if horizon > wanted.order.until and self._plans_by_horizon(wanted.order.algorithm):
            return False
        return horizon >= wanted.order.until

    def _count_time(self, in_flight: int | None = None) -> None:
        """Count the time since the last call, in which so many runs were under way; by default as many as now."""
        now = self.dispatcher.in_flight if in_flight is None else in_flight
        self._utilisation.add(now, self.dispatcher.capacity)

    def _begin(self, runs: Iterable[WantedRun]) -> None:
        for wanted in runs:
            request = self._make_request(wanted)
            self._under_way[request] = wanted
            self._horizons[wanted.key] = wanted.order.until
            self.spent += wanted.order.until
            self._under_way_cost += wanted.order.until
            self.dispatcher.submit(request)

    def _end(self, request: Request) -> WantedRun:
        wanted = self._under_way.pop(request)
        self._under_way_cost -= wanted.order.until
        if self._horizons.get(wanted.key) == wanted.order.until:
            del self._horizons[wanted.key]
        return wanted

    def _keep(self, run: JournalRun) -> RunKey:
        key = run.trajectory.algorithm, run.trajectory.instance
        self.finished[key], self._stored_round[key] = run.trajectory, run.round
        return key

    def _long_ones_first(self, runs: Sequence[WantedRun]) -> list[WantedRun]:
        """Runs of algorithms that take much longer than most first, so that nobody waits for them at the end.

        The others stay in the order of the plan, instance by instance: if a machine is slow for a while, it is so for
        all algorithms.
        """
        means = {algorithm: total / count for algorithm, (total, count) in self._seconds.items()}
        usual = statistics.median(means.values()) if means else 0.0
        long = {algorithm: mean for algorithm, mean in means.items() if mean > _LONG * usual}
        return sorted(runs, key=lambda wanted: -long.get(wanted.order.algorithm, 0.0))

    def _warn_of_failure(self, key: RunKey, why: str) -> None:
        algorithm, instance = key
        if algorithm not in self._warned:
            self._warned.add(algorithm)
            warnings.warn(
                f"A run of {algorithm!r} on {instance!r} failed and counts as having found nothing: "
                f"{foreign_text(why)}. Further failures of this algorithm are counted silently.",
                RunWarning,
                stacklevel=2,
            )


class _Utilisation:
    """Share of the time of the workers in which they had something to do."""

    def __init__(self) -> None:
        self._busy = self._there = 0.0
        self._last: float | None = None

    def add(self, in_flight: int, capacity: int | None) -> None:
        """Count the time since the last call, in which so many runs were under way; it begins with the first one."""
        now = time.monotonic()
        if capacity is not None and self._last is not None:
            self._busy += min(in_flight, capacity) * (now - self._last)
            self._there += capacity * (now - self._last)
        self._last = now

    @property
    def share(self) -> float | None:
        """``None`` if nothing is known about the workers."""
        return self._busy / self._there if self._there else None
