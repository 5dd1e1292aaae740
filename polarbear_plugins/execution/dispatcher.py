"""Carrying out the runs of a round: in this process, or on an executor."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from dataclasses import dataclass
from typing import TypeAlias

from threadpoolctl import threadpool_limits

from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.errors import InvalidInputError, PolarBearError, PolarBearWarning
from polarbear_plugins.execution.local_processes import LocalProcesses, WorkersCannotStartError
from polarbear_plugins.execution.requests import Request, RunExecutor, UnfitWorkerError, perform, perform_alone
from polarbear_plugins.execution.worker import UnloadableError, left_as_found, told
from polarbear_plugins.trajectories.trajectory import Trajectory

Call: TypeAlias = Future[tuple[Trajectory, float]]

_POLL = 0.5  # seconds between looks at the runs of an executor that cannot end them by itself


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request: a trajectory, or why there is none."""

    request: Request
    trajectory: Trajectory
    seconds: float
    failure: str | None = None


class Dispatcher:
    """Carries out requests.

    Parameters
    ----------
    workers
        Local processes; ``None`` for as many as there are cores, 0 for this process.
    executor
        Any other executor, instead of local processes.  Who hands it over shuts it down.
    run_timeout
        Seconds that a run may take.  A local process is ended, and a :class:`RunExecutor` ends the run; on another
        executor the run is given up.
    retries
        How often a run that failed is repeated before it counts as failed.
    """

    def __init__(
        self,
        workers: int | None = None,
        executor: Executor | None = None,
        run_timeout: float | None = None,
        retries: int = 0,
    ) -> None:
        self.retries = as_whole_number(retries, "retries", at_least=0)
        self._timeout = None if run_timeout is None else as_number(run_timeout, "run_timeout", above=0)
        if workers is not None:
            workers = as_whole_number(workers, "workers", at_least=0)
            if executor is not None:
                raise InvalidInputError("Give workers or an executor, not both.")
        if workers == 0 and self._timeout is not None:
            raise InvalidInputError("run_timeout needs processes that can be ended: use workers=1 or more.")
        self._executor = executor
        self._own: LocalProcesses | None = None
        if executor is None and workers != 0:
            self._executor = self._own = LocalProcesses(workers, self._timeout)
        self._pending: set[Call] = set()

    @property
    def pickles(self) -> bool:
        """Whether requests are pickled, as for processes; other executors have their own ways."""
        return isinstance(self._executor, LocalProcesses | ProcessPoolExecutor)

    def carry_out(self, requests: Iterable[Request]) -> Iterator[list[Outcome]]:
        """Give out what has finished, as soon as it has."""
        if self._executor is None:
            with threadpool_limits(1):
                for request in requests:
                    yield [self._here(request)]
            return
        attempts: dict[Call, tuple[Request, int]] = {}
        began: dict[Call, float] = {}
        self._pending = set()
        try:
            for request in requests:
                future = self._submit(self._executor, request)
                attempts[future] = (request, 1)
                self._pending.add(future)
        except PolarBearError:  # finished runs are given out first, so that none is lost
            finished = [future for future in attempts if future.done() and not future.cancelled()]
            outcomes = [self._outcome(attempts[future][0], future) for future in finished if not future.exception()]
            if outcomes:
                yield outcomes
            raise
        # Our own processes keep the time themselves.
        knowing = isinstance(self._executor, RunExecutor)
        limit = None if self._own is not None or knowing else self._timeout
        patience = _POLL if knowing or limit is not None else None
        while self._pending:
            done, _ = wait(self._pending, timeout=patience, return_when=FIRST_COMPLETED)
            self._pass_on_news()
            if limit is not None:
                done |= self._overdue(began, limit)
            outcomes, end = [], None
            for future in done:
                self._pending.discard(future)
                request, attempt = attempts.pop(future)
                try:
                    outcome = self._outcome(request, future)
                    if outcome.failure is not None and attempt <= self.retries:
                        again = self._submit(self._executor, request)
                        attempts[again] = (request, attempt + 1)
                        self._pending.add(again)
                        continue
                except PolarBearError as problem:  # the end of the race, but not before the rest is given out
                    end = end or problem
                    continue
                outcomes.append(outcome)
            if outcomes:
                yield outcomes
            if end is not None:
                raise end

    def close(self, at_once: bool = False) -> None:
        """Give up what is pending, and end processes of our own."""
        for future in self._pending:
            future.cancel()
        if self._own is not None:
            self._own.shutdown(cancel_futures=at_once or bool(self._pending))

    def _submit(self, executor: Executor, request: Request) -> Call:
        try:
            if isinstance(executor, RunExecutor):
                return executor.submit_run(request, self._timeout)
            return executor.submit(perform_alone, request)
        except BrokenExecutor as problem:
            raise _broken(problem) from problem
        except Exception as problem:  # each executor has its own way to say no
            raise InvalidInputError(
                f"{request.algorithm_name!r} on {request.identity.name!r} cannot be sent to a worker ({problem})."
            ) from None

    def _pass_on_news(self) -> None:
        if isinstance(self._executor, RunExecutor):
            for news in self._executor.news():
                warnings.warn(news, PolarBearWarning, stacklevel=2)

    def _here(self, request: Request) -> Outcome:
        reason = ""
        for _ in range(self.retries + 1):
            try:
                with left_as_found():
                    trajectory, seconds = perform(request)
                return Outcome(request, trajectory, seconds)
            except KeyboardInterrupt:
                raise
            except BaseException as problem:  # whatever an algorithm does is its own failure
                reason = told(problem)
        return _failed(request, reason)

    def _outcome(self, request: Request, future: Call) -> Outcome:
        if not future.done():
            future.cancel()
            return _failed(request, f"it ran for more than {self._timeout:g} s and was given up")
        try:
            trajectory, seconds = future.result()
            return Outcome(request, trajectory, seconds)
        except UnloadableError as problem:
            raise InvalidInputError(f"{request.algorithm_name!r} on {request.identity.name!r}: {problem}.") from None
        except (WorkersCannotStartError, UnfitWorkerError):
            raise
        except (BrokenExecutor, CancelledError) as problem:
            raise _broken(problem) from problem
        except PolarBearError as problem:
            return _failed(request, str(problem))
        except KeyboardInterrupt:
            raise
        except BaseException as problem:  # what foreign executors hand back is what the algorithm raised
            return _failed(request, told(problem))

    def _overdue(self, began: dict[Call, float], limit: float) -> set[Call]:
        now = time.monotonic()
        for future in self._pending:
            if future.running():
                began.setdefault(future, now)
        return {future for future in self._pending if now - began.get(future, now) > limit}


def _broken(problem: BaseException) -> PolarBearError:
    reason = " ".join(str(problem).split()).rstrip(".")
    return PolarBearError(
        f"The executor broke ({type(problem).__name__}{': ' if reason else ''}{reason}). With a journal no finished "
        "run is lost: resume the race on another executor, or on this one when it is back."
    )


def _failed(request: Request, reason: str) -> Outcome:
    """Make the outcome of a run that failed for good: it has found nothing for as long as it was to be watched."""
    nothing = Trajectory(
        algorithm=request.algorithm_name,
        instance=request.identity.name,
        seed=request.seed,
        times=[],
        best=[],
        horizon=request.horizon,
    )
    return Outcome(request, nothing, 0.0, " ".join(reason.split()))
