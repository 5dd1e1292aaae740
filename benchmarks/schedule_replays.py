"""Discrete-event replays of a recorded race: in rounds, and without barriers."""

from __future__ import annotations

import heapq
import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from recorded_races import RecordedRace, RecordedRound

from polarbear_plugins.racing.lookahead import ahead
from polarbear_plugins.racing.rules import last_unresolved
from polarbear_plugins.racing.state import Order, RaceState

Cell: TypeAlias = tuple[str, int]
#: Which runs to begin ahead of time, given the state, the runs of the plan, the number of instances in all and the mean
#: seconds of a run of each algorithm so far.
Policy: TypeAlias = Callable[[RaceState, Iterable[Order], int, Mapping[str, float]], Iterator[Order]]


def default_policy(
    state: RaceState, planned: Iterable[Order], available: int, _seconds: Mapping[str, float]
) -> Iterator[Order]:
    """The rule of the package, which does not ask how long runs take."""
    return ahead(state, tuple(planned), available)


@dataclass(frozen=True)
class Setup:
    """How runs are carried out.

    Attributes
    ----------
    driver
        Seconds that the driver needs for each run: to send it and to take its result.
    long_first
        Whether the runs of a plan begin with those that take much longer than usual, by the mean of their algorithm.
    ends
        Whether runs under way are ended when nobody needs them any longer.
    """

    workers: int
    driver: float = 0.001
    policy: Policy = default_policy
    long_first: bool = True
    ends: bool = True


@dataclass(frozen=True)
class Replay:
    """What a schedule took: wall time, seconds in which workers ran something, cost of all runs begun, their number."""

    wall: float
    busy: float
    cost: float
    runs: int
    workers: int

    @property
    def idle(self) -> float:
        """Share of the time of all workers in which they ran nothing."""
        return 1 - self.busy / (self.wall * self.workers)


class Pool:
    """Workers, the runs they are busy with, and the driver that serves them.

    As many runs as there are workers wait at the executor, so that a worker begins its next run at once as long as the
    driver keeps pace.
    """

    def __init__(self, setup: Setup, full: np.ndarray, horizon: float, names: tuple[str, ...]) -> None:
        self._setup, self._full, self._horizon = setup, full, horizon
        self._column = {name: place for place, name in enumerate(names)}
        self._ends: list[tuple[float, int, Order]] = []
        self._number = itertools.count()
        self._handled: list[float] = []
        self.running: dict[int, tuple[Order, float]] = {}
        self.begun: set[Cell] = set()
        self.finished: set[Cell] = set()
        self.busy = self.cost = 0.0
        self._timings: dict[str, tuple[float, int]] = {}

    @property
    def free(self) -> int:
        """How many workers have nothing to do."""
        return self._setup.workers - len(self.running)

    def duration(self, order: Order) -> float:
        """Seconds of a run; half the horizon takes half the time."""
        return float(self._full[order.instance, self._column[order.algorithm]]) * order.until / self._horizon

    def mean_seconds(self) -> dict[str, float]:
        """Mean seconds of a finished run in full by algorithm."""
        return {name: total / count for name, (total, count) in self._timings.items()}

    def begin(self, order: Order, now: float) -> None:
        """Give a run to a free worker."""
        place = len(self.begun) - 2 * self._setup.workers
        start = now if place < 0 else max(now, self._handled[min(place, len(self._handled) - 1)])
        number = next(self._number)
        self.begun.add((order.algorithm, order.instance))
        self.cost += order.until
        self.running[number] = order, start
        heapq.heappush(self._ends, (start + self.duration(order), number, order))

    def end_next(self) -> tuple[float, Order] | None:
        """The next run that finishes and when its result is known; ``None`` if nothing runs."""
        while self._ends:
            now, number, order = heapq.heappop(self._ends)
            if number in self.running:
                _, start = self.running.pop(number)
                self.busy += now - start
                self._handle(now)
                self.finished.add((order.algorithm, order.instance))
                total, count = self._timings.get(order.algorithm, (0.0, 0))
                self._timings[order.algorithm] = total + (now - start) * self._horizon / order.until, count + 1
                return now, order
        return None

    def peek(self) -> float:
        """When the next run finishes."""
        while self._ends and self._ends[0][1] not in self.running:
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else np.inf

    def stop(self, now: float, unneeded: Callable[[Order], bool]) -> None:
        """End runs under way."""
        for number, (order, start) in list(self.running.items()):
            if unneeded(order):
                self.busy += max(0.0, now - start)
                self._handle(now)
                del self.running[number]

    def _handle(self, now: float) -> None:
        self._handled.append(max(now, self._handled[-1] if self._handled else 0.0) + self._setup.driver)

    @property
    def handled(self) -> float:
        """When the driver has dealt with everything that has ended."""
        return self._handled[-1] if self._handled else 0.0


def in_rounds(race: RecordedRace, full: np.ndarray, setup: Setup) -> Replay:
    """The runs of a round, then its inference, then the next round."""
    pool = _pool(race, full, setup)
    now = 0.0
    for one in race.rounds:
        waiting = iter(_sorted(one.orders, pool, setup))
        while True:
            for order in itertools.islice(waiting, pool.free):
                pool.begin(order, now)
            ended = pool.end_next()
            if ended is None:
                break
            now = ended[0]
        now = pool.handled + one.seconds
    return Replay(now, pool.busy, pool.cost, len(pool.begun), setup.workers)


def continuously(race: RecordedRace, full: np.ndarray, setup: Setup) -> Replay:
    """A free worker begins the next run of the plan, or one that later rounds will probably ask for."""
    pool = _pool(race, full, setup)
    now = 0.0
    after = [*(one.state for one in race.rounds[1:]), race.final]
    for one, state in zip(race.rounds, after, strict=True):
        missing = {(order.algorithm, order.instance) for order in one.orders} - pool.finished
        waiting = _waiting(one, pool, race.instances, setup)
        decided = np.inf if missing else max(now, pool.handled) + one.seconds
        while True:
            for order in itertools.islice(waiting, pool.free):
                pool.begin(order, now)
            if decided <= pool.peek():
                now = max(now, decided)
                break
            ended = pool.end_next()
            if ended is None:
                raise RuntimeError("nothing runs, and runs are missing")
            now, order = ended
            missing.discard((order.algorithm, order.instance))
            if not missing and decided == np.inf:
                decided = pool.handled + one.seconds
        if setup.ends:
            needed = last_unresolved(state)
            pool.stop(now, lambda order, needed=needed: order.algorithm not in needed)
    pool.stop(now, lambda _: True)
    return Replay(now, pool.busy, pool.cost, len(pool.begun), setup.workers)


def _pool(race: RecordedRace, full: np.ndarray, setup: Setup) -> Pool:
    return Pool(setup, full, float(race.final.timepoints[-1]), race.final.algorithms)


def _waiting(one: RecordedRound, pool: Pool, available: int, setup: Setup) -> Iterator[Order]:
    """Runs to begin in this order: those of the plan, then those ahead of it."""
    later = setup.policy(one.state, one.orders, available, pool.mean_seconds())
    for order in itertools.chain(_sorted(one.orders, pool, setup), later):
        if (order.algorithm, order.instance) not in pool.begun:
            yield order


def _sorted(orders: Iterable[Order], pool: Pool, setup: Setup) -> list[Order]:
    means = pool.mean_seconds() if setup.long_first else {}
    usual = statistics.median(means.values()) if means else 0.0
    long = {name: mean for name, mean in means.items() if mean > 2 * usual}
    return sorted(orders, key=lambda order: -long.get(order.algorithm, 0.0))
