"""Races against the clock: no two runs share a core, and reference runs tell how much runs disturb each other."""

from __future__ import annotations

import os
import statistics
import warnings
from collections.abc import Iterable
from concurrent.futures import Executor
from typing import Any

import numpy as np

from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.environment import available_cores
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning
from polarbear_plugins.execution.dispatcher import Dispatcher
from polarbear_plugins.execution.outcomes import Outcome
from polarbear_plugins.execution.requests import Request
from polarbear_plugins.problems.protocols import Algorithm, counts_seconds
from polarbear_plugins.problems.reference import REFERENCE_PROBLEM, ReferenceRun

_ALONE = 5  # reference runs before the race
_FIRST = 2.0  # seconds of work at each worker before the first reference run: by then all processes have started
_EVERY = 30.0  # between later ones; at first twice as long from one to the next
_RECENT = 5
_LEAST = 3  # reference runs before anything is said
_SLOWER = 0.1  # share of the time alone from which on it is a warning


class Interference:
    """Compares how long a reference run takes beside the runs of a race with how long it takes if it has a core.

    That is for how long it had a processor before the race: on a machine that is busy then, it took longer than that,
    too, which is told at once.

    It is due by the work that has been given to the workers, not by the clock: then it takes its turn between runs that
    wait for a worker, and is performed while others run.

    Parameters
    ----------
    workers
        How many runs are performed at once.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._alone: list[float] = []  # for how long they had a processor
        self._before: list[float] = []  # and how long they took
        self._beside: list[float] = []
        self._under_way: set[Request] = set()
        self._gap = _FIRST
        self._until_next = _FIRST * workers
        self._warned = False

    def request(self) -> Request:
        """A reference run; :meth:`take` has to get its outcome."""
        request = Request(
            algorithm=ReferenceRun(),
            algorithm_name=ReferenceRun().name,
            problem=REFERENCE_PROBLEM,
            suite=None,
            identity=REFERENCE_PROBLEM.identity,
            horizon=1.0,
            seed=0,
            timepoints=np.ones(1),
        )
        self._under_way.add(request)
        return request

    def due_before(self, request: Request) -> list[Request]:
        """Reference runs to begin before a run of the race, none or one."""
        self._until_next -= request.horizon * request.unit
        if self._until_next > 0:
            return []
        self._gap = min(2 * self._gap, _EVERY)
        self._until_next = self._gap * self._workers
        return [self.request()]

    def take_alone(self, outcomes: Iterable[Outcome]) -> None:
        """Note reference runs before the race, without the first one: a new process takes longer for it.

        Warns if they took longer than they had a processor.
        """
        performed = [outcome for outcome in outcomes if self._ends(outcome) and outcome.failure is None]
        for outcome in performed[1:]:
            self._alone.append(float(outcome.trajectory.best[0]))
            self._before.append(outcome.seconds)
        self._warn_once(self._before, "took {slower:.0%} longer before this race than it had a processor", "")

    def take(self, outcome: Outcome) -> bool:
        """Note an outcome if it is that of a reference run, and warn once if it takes longer than alone; else false."""
        if not self._ends(outcome):
            return False
        if outcome.failure is None:
            self._beside.append(outcome.seconds)
            if len(self._beside) >= _LEAST:
                took = "takes {slower:.0%} longer beside the runs of this race than alone"
                self._warn_once(self._beside[-_RECENT:], took, "they slow each other down, or ")
        return True

    def figures(self) -> dict[str, float]:
        """Seconds ``alone`` and ``beside`` others, how much ``slower`` that is, and how often it was measured.

        If that was too seldom beside the runs of the race, those before it if the machine was busy then, else nothing.
        """
        if len(self._beside) >= _LEAST:
            return self._figures(self._beside)
        before = self._figures(self._before)
        return before if before.get("slower", 0.0) > _SLOWER else {}

    def _figures(self, taken: list[float]) -> dict[str, float]:
        alone = statistics.fmean(self._alone) if self._alone else 0.0  # a clock of a processor may be coarse
        if not alone or len(taken) < _LEAST:
            return {}
        others = statistics.median(taken)
        return {"alone": alone, "beside": others, "slower": others / alone - 1.0, "measured": len(taken)}

    def _ends(self, outcome: Outcome) -> bool:
        known = outcome.request in self._under_way
        self._under_way.discard(outcome.request)
        return known

    def _warn_once(self, taken: list[float], took: str, why: str) -> None:
        found = self._figures(taken)
        if self._warned or not found or found["slower"] <= _SLOWER:
            return
        self._warned = True
        warnings.warn(
            f"A reference run {took.format(**found)} ({1e3 * found['beside']:.3g} and {1e3 * found['alone']:.3g} ms): "
            f"{why}something else runs here, and a race against the clock counts that as the time of its runs. Use "
            "fewer workers, or a machine on which nothing else runs.",
            PolarBearWarning,
            stacklevel=2,
        )


class ClockDispatcher(Dispatcher):
    """Performs runs that count seconds: in local processes that do not share cores, with reference runs between them.

    Parameters
    ----------
    workers
        Number of local processes, each of which keeps to a core of its own, where the system has such a choice;
        ``None`` for one fewer than there are cores, 0 for this process.
    run_timeout, retries, run_memory
        As for :class:`Dispatcher`.
    """

    def __init__(
        self,
        workers: int | None = None,
        run_timeout: float | None = None,
        retries: int = 0,
        run_memory: float | None = None,
    ) -> None:
        cores = available_cores()
        if workers is not None and as_whole_number(workers, "workers", at_least=0) > cores:
            raise InvalidInputError(
                f"workers: these runs count seconds, so each needs a core of its own; {workers} were asked for, and "
                f"this process may use {cores}. Use at most {cores}, and one fewer if the race itself is to have one."
            )
        can_pin = workers != 0 and hasattr(os, "sched_setaffinity")
        super().__init__(workers, None, run_timeout, retries, run_memory, pin=can_pin)
        self.interference = Interference(self.capacity or 1)
        self._measured_alone = False

    def submit(self, request: Request) -> None:
        """Begin a run as soon as a worker is free, and a reference run before it if one is due."""
        if not self._measured_alone:
            self._measured_alone = True
            self._measure_alone()
        for reference in self.interference.due_before(request):
            super().submit(reference)
        super().submit(request)

    def collect(self) -> list[Outcome]:
        """Wait until runs have finished, and return their outcomes; none if it was a reference run."""
        return [outcome for outcome in super().collect() if not self.interference.take(outcome)]

    def _measure_alone(self) -> None:
        outcomes: list[Outcome] = []
        with self.performing():
            for _ in range(_ALONE + 1):
                super().submit(self.interference.request())
                while self.in_flight:
                    outcomes += super().collect()
        self.interference.take_alone(outcomes)


def dispatcher_for(
    algorithms: Iterable[Algorithm],
    workers: int | None = None,
    executor: Executor | None = None,
    run_timeout: float | None = None,
    retries: int = 0,
    run_memory: float | None = None,
) -> Dispatcher:
    """Dispatcher of a race.

    One against the clock is measured in local processes only: elsewhere nobody knows what shares a core with what.
    """
    if executor is None and any(map(counts_seconds, algorithms)):
        return ClockDispatcher(workers, run_timeout, retries, run_memory)
    return Dispatcher(workers, executor, run_timeout, retries, run_memory)


def noted_interference(dispatcher: Dispatcher) -> dict[str, Any]:
    """What a result says about interference, by its key; nothing if it was not measured."""
    found = dispatcher.interference.figures() if isinstance(dispatcher, ClockDispatcher) else {}
    return {"interference": found} if found else {}
