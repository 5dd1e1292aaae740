"""What a race would do first, how long that takes by a run of each algorithm, and what a full comparison costs."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.execution.dispatcher import Dispatcher
from polarbear_plugins.execution.outcomes import Outcome
from polarbear_plugins.execution.requests import Request, check_sendable, make_request
from polarbear_plugins.experiments.drawing import DrawnInstances
from polarbear_plugins.experiments.interference import dispatcher_for
from polarbear_plugins.experiments.races import Prepared, prepare
from polarbear_plugins.experiments.stored_sources import unit_of
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.problems.given import RunFunction
from polarbear_plugins.problems.protocols import Algorithm, Identity, Suite
from polarbear_plugins.racing.rules import plan
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.seeds import derived_seed

MOST_COUNTED = 1_000  # instances of a suite: others have no end
FULL = 100  # instances of the full comparison
_BUSY = 0.8  # share of the time of the workers below which they would wait for much of it
_SHORT = 1.0  # seconds; what a process does in its first run only, such as imports, may take as long


@dataclass(frozen=True, slots=True)
class FirstRun:
    """A run of the first round."""

    algorithm: str
    instance: str
    until: float


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a run of an algorithm took.

    Attributes
    ----------
    seconds
        ``None`` if it failed.
    ended
        Whether it was ended after so many seconds, and would have taken longer.
    failure
        Why it failed.
    """

    algorithm: str
    seconds: float | None
    ended: bool = False
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What a race would do first, how long that would take, and what a full comparison would cost.

    Made by :func:`dry_run`.  Times follow from one run of each algorithm, as if it took as long on every instance.
    Starting processes, building problems, sending runs and inference come on top.

    Attributes
    ----------
    settings
        Settings of the race, its seed included.
    algorithms, stored
        Who would run, and who would not since all runs are in an archive.
    instances
        Number of instances that there are; ``None`` if more than 1,000, or no end.
    timepoints
        The timepoints.
    first_round
        Runs of the first round, in the order in which they would begin.
    timings
        How long a run of each algorithm took, on the first instance.
    workers
        How many runs would be performed at once; ``None`` if the executor does not say.
    """

    settings: RaceSettings
    algorithms: tuple[str, ...]
    stored: tuple[str, ...]
    instances: int | None
    timepoints: FloatArray
    first_round: tuple[FirstRun, ...]
    timings: tuple[Timing, ...]
    workers: int | None

    @property
    def first_cost(self) -> float:
        """Cost of the first round, in units of the time axis."""
        return sum(run.until for run in self.first_round)

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds that a run of each algorithm took, without those that failed."""
        return {timing.algorithm: timing.seconds for timing in self.timings if timing.seconds is not None}

    @property
    def at_least(self) -> bool:
        """Whether times are lower bounds, since a run was ended or failed."""
        return any(timing.ended or timing.seconds is None for timing in self.timings)

    @property
    def first_seconds(self) -> float | None:
        """Seconds until the last run of the first round has finished; ``None`` without workers or timings."""
        if self.workers is None or not self.seconds:
            return None
        return _makespan((self.seconds.get(run.algorithm, 0.0) for run in self.first_round), self.workers)

    @property
    def utilisation(self) -> float | None:
        """Share of that time in which the workers would have something to do if they waited for the round to end."""
        until = self.first_seconds
        if self.workers is None or not until:
            return None
        return sum(self.seconds.get(run.algorithm, 0.0) for run in self.first_round) / (self.workers * until)

    @property
    def would_wait(self) -> bool:
        """Whether workers would wait so much for the end of the round that ``schedule="continuous"`` pays."""
        busy = self.utilisation
        waiting = busy is not None and busy < _BUSY and (self.first_seconds or 0.0) > _SHORT
        return waiting and self.settings.schedule == "rounds"

    @property
    def full_instances(self) -> int:
        """Number of instances of the full comparison: 100, or all if there are fewer."""
        return FULL if self.instances is None else min(FULL, self.instances)

    @property
    def full_cost(self) -> float:
        """Cost of running every algorithm until the last timepoint on so many instances."""
        runs = self.full_instances * self.settings.replications * len(self.algorithms)
        return float(runs * self.timepoints[-1])

    @property
    def full_seconds(self) -> float | None:
        """Seconds that this takes if no worker ever waits; ``None`` without workers or timings."""
        if self.workers is None or not self.seconds:
            return None
        return self.full_instances * self.settings.replications * sum(self.seconds.values()) / self.workers

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict of everything."""
        return {
            "settings": self.settings.to_json(),
            "algorithms": list(self.algorithms),
            "stored": list(self.stored),
            "instances": self.instances,
            "timepoints": self.timepoints.tolist(),
            "workers": self.workers,
            "timings": [asdict(timing) for timing in self.timings],
            "first_round": {
                "runs": [asdict(run) for run in self.first_round],
                "cost": self.first_cost,
                "seconds": self.first_seconds,
                "utilisation": self.utilisation,
            },
            "full": {"instances": self.full_instances, "cost": self.full_cost, "seconds": self.full_seconds},
            "at_least": self.at_least,
        }


def dry_run(
    portfolio: str | Mapping[str, RunFunction] | Sequence[Algorithm | str | Mapping[str, RunFunction]],
    suite: str | Suite | Sequence[object] | Callable[[np.random.Generator], object],
    timepoints: ArrayLike | None = None,
    settings: RaceSettings | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    *,
    longest: float = 30.0,
    run_timeout: float | None = None,
    run_memory: float | None = None,
    retries: int = 0,
    plugins: Plugins | None = None,
    **origin: Any,
) -> DryRun:
    """Say what :func:`race` would do with the same arguments; nothing is raced, and nothing is written.

    Each algorithm performs one run, on the first instance until the last timepoint, as it would in the race: in the
    same processes or on the same executor, under the same limits, and with the same seed.  One that takes less than a
    second is repeated, since a process may do something in its first run only.

    Parameters
    ----------
    longest
        Seconds after which a run is ended; it is then known to take longer.  With ``workers=0`` no run can be ended.
    portfolio, suite, timepoints, settings, workers, executor, run_timeout, run_memory, retries, plugins, origin
        As for :func:`race`.

    Examples
    --------
    >>> found = dry_run("synthetic", "synthetic", [1, 2], RaceSettings(seed=1), workers=0)
    >>> len(found.first_round), found.first_cost, found.full_cost
    (40, 80.0, 1000.0)
    """
    longest = as_number(longest, "longest", above=0)
    run_timeout = None if run_timeout is None else as_number(run_timeout, "run_timeout", above=0)
    race = prepare(portfolio, suite, timepoints, settings, plugins=plugins, **origin)
    limited = run_timeout is not None and run_timeout <= longest
    limit = run_timeout if limited or workers == 0 else longest
    dispatcher = dispatcher_for(race.portfolio.algorithms.values(), workers, executor, limit, retries, run_memory)
    try:
        if dispatcher.pickles:
            check_sendable(race.portfolio, race.suite)
        drawn, count = _draw(race)
        first_round, requests = _first_round(race, drawn, count)
        found = _timings(dispatcher, requests, None if limited else limit)
        capacity = dispatcher.capacity
    except BaseException:
        dispatcher.close(at_once=True)
        raise
    dispatcher.close()
    return DryRun(
        settings=race.state.settings,
        algorithms=tuple(race.portfolio.algorithms),
        stored=race.state.stored,
        instances=count,
        timepoints=race.state.timepoints,
        first_round=first_round,
        timings=found,
        workers=capacity or None,
    )


def _draw(race: Prepared) -> tuple[list[Identity], int | None]:
    """The first instances of a race, and how many there are; ``None`` if too many to count."""
    if race.rivals is not None:
        return list(race.rivals.instances), len(race.rivals.instances)
    seed = derived_seed(race.state.settings.seed or 0, "instances")
    instances = DrawnInstances(race.suite.suite.name, iter(race.suite.suite.identities(seed)))
    instances.draw(max(MOST_COUNTED + 1, race.state.batch))
    count = len(instances.drawn)
    return instances.drawn, count if count <= MOST_COUNTED else None


def _first_round(
    race: Prepared, drawn: list[Identity], count: int | None
) -> tuple[tuple[FirstRun, ...], list[Request]]:
    """Runs of the first round; and requests for a run of each algorithm, on the first instance of that round."""
    state, seed = race.state, race.state.settings.seed or 0
    planned = plan(state, count)
    if not planned.orders:
        raise InvalidInputError(f"The race would stop before its first run: {planned.over}.")
    runs = tuple(
        FirstRun(order.algorithm, drawn[order.instance].name, order.until)
        for order in planned.orders
        for _ in range(state.settings.replications)
    )
    identity, until = drawn[planned.orders[0].instance], float(state.timepoints[-1])
    rest = state.timepoints, unit_of(identity, state.settings)
    requests = [
        make_request(
            race.portfolio, race.suite, name, identity, until, derived_seed(seed, "run", name, identity.name), *rest
        )
        for name in race.portfolio.algorithms
    ]
    return runs, requests


def _timings(dispatcher: Dispatcher, requests: list[Request], limit: float | None) -> tuple[Timing, ...]:
    """Timings of runs that may have been ended after ``limit`` seconds; the better one of two for short runs."""
    outcomes = itertools.chain.from_iterable(dispatcher.carry_out(requests))
    first = {outcome.request: _timing(outcome, limit) for outcome in outcomes}
    short = [request for request, timing in first.items() if (timing.seconds or _SHORT) < _SHORT]
    for outcome in itertools.chain.from_iterable(dispatcher.carry_out(short)):
        again = _timing(outcome, limit)
        if (again.seconds or _SHORT) < (first[outcome.request].seconds or _SHORT):
            first[outcome.request] = again
    return tuple(first[request] for request in requests)


def _timing(outcome: Outcome, limit: float | None) -> Timing:
    """Timing of a run that may have been ended after ``limit`` seconds."""
    name = outcome.request.algorithm_name
    if outcome.failure is None:
        return Timing(name, outcome.seconds)
    if limit is not None and outcome.failure.startswith(f"it ran for more than {limit:g} s"):
        return Timing(name, limit, ended=True)
    return Timing(name, None, failure=outcome.failure)


def _makespan(seconds: Iterable[float], workers: int) -> float:
    """Time until the last run has finished if each begins, in this order, as soon as a worker is free.

    >>> _makespan([3.0, 1.0, 1.0, 1.0], 2), _makespan([1.0, 1.0, 1.0, 3.0], 2)
    (3.0, 4.0)
    """
    free = [0.0] * workers
    for run in seconds:
        heapq.heapreplace(free, free[0] + run)
    return max(free)
