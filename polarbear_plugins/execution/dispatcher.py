"""The dispatcher performs the runs of a round: in this process, or on an executor."""

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
from dataclasses import dataclass, replace
from typing import TypeAlias

from threadpoolctl import threadpool_limits

from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.errors import (
    STORED,
    InvalidInputError,
    PolarBearError,
    PolarBearWarning,
    describe_exception,
    foreign_text,
    reason,
)
from polarbear_plugins.execution.local_processes import LocalProcesses
from polarbear_plugins.execution.process_state import restore_process_state
from polarbear_plugins.execution.requests import (
    Request,
    RunExecutor,
    UnfitWorkerError,
    perform,
    perform_elsewhere,
)
from polarbear_plugins.execution.starting import WorkersCannotStartError, exit_if_unguarded
from polarbear_plugins.execution.worker import UnloadableError
from polarbear_plugins.trajectories.trajectory import Trajectory

Call: TypeAlias = Future[tuple[Trajectory, float]]

_POLL = 0.5  # seconds between checks for overdue runs, and for news of an executor


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a request; ``failure`` says why if it failed, and the trajectory is empty then."""

    request: Request
    trajectory: Trajectory
    seconds: float
    failure: str | None = None

    def named(self, name: str) -> Outcome:
        """The same outcome, its run on an instance of another name: one of several runs on it."""
        run = self.trajectory
        return self if run.instance == name else replace(self, trajectory=run.changed(instance=name))


class Dispatcher:
    """Performs requests.

    Parameters
    ----------
    workers
        Number of local processes; ``None`` for one per core, 0 for this process.
    executor
        Any other executor, instead of local processes.  The caller shuts it down.
    run_timeout
        Seconds that a run may take.  A local process is ended, and a :class:`RunExecutor` ends the run; on another
        executor the run is abandoned and may go on.
    retries
        How often a failed run is repeated before it counts as failed.
    run_memory
        Megabytes that a run may use, in local processes and on a :class:`RunExecutor`.
    """

    def __init__(
        self,
        workers: int | None = None,
        executor: Executor | None = None,
        run_timeout: float | None = None,
        retries: int = 0,
        run_memory: float | None = None,
    ) -> None:
        self.retries = as_whole_number(retries, "retries", at_least=0)
        self._timeout = None if run_timeout is None else as_number(run_timeout, "run_timeout", above=0)
        if workers is not None:
            workers = as_whole_number(workers, "workers", at_least=0)
            if executor is not None:
                raise InvalidInputError("Give workers or an executor, not both.")
        if workers == 0 and self._timeout is not None:
            raise InvalidInputError("run_timeout needs processes that can be ended: use workers=1 or more.")
        self._memory = None if run_memory is None else as_number(run_memory, "run_memory", above=0)
        if self._memory is not None and (workers == 0 or not isinstance(executor, RunExecutor | None)):
            raise InvalidInputError(
                "run_memory needs processes that can be watched and ended: use workers=1 or more, or Dask."
            )
        self._executor = executor
        self._own: LocalProcesses | None = None
        if executor is None and workers != 0:
            exit_if_unguarded()
            self._executor = self._own = LocalProcesses(workers, self._timeout, memory=self._memory)
        self._pending: set[Call] = set()

    @property
    def pickles(self) -> bool:
        """Whether requests are known to be pickled; other executors may send them in another way."""
        return isinstance(self._executor, LocalProcesses | ProcessPoolExecutor)

    def carry_out(self, requests: Iterable[Request]) -> Iterator[list[Outcome]]:
        """Yield outcomes as soon as runs finish."""
        if self._executor is None:
            with threadpool_limits(1):
                for request in requests:
                    yield [self._perform_here(request)]
            return
        attempts: dict[Call, tuple[Request, int]] = {}
        started: dict[Call, float] = {}
        self._pending = set()
        try:
            for request in requests:
                future = self._submit(self._executor, request)
                attempts[future] = (request, 1)
                self._pending.add(future)
        except PolarBearError:  # first yield the finished runs, so that none is lost
            finished = [future for future in attempts if future.done() and not future.cancelled()]
            outcomes = [self._outcome(attempts[future][0], future) for future in finished if not future.exception()]
            if outcomes:
                yield outcomes
            raise
        takes_requests = isinstance(self._executor, RunExecutor)
        # Local processes and run executors enforce the time limit themselves.
        limit = None if self._own is not None or takes_requests else self._timeout
        poll = _POLL if takes_requests or limit is not None else None
        while self._pending:
            done, _ = wait(self._pending, timeout=poll, return_when=FIRST_COMPLETED)
            self._warn_of_news()
            if limit is not None:
                done |= self._overdue(started, limit)
            outcomes, fatal = [], None
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
                except PolarBearError as problem:  # ends the race, but only after the other outcomes are yielded
                    fatal = fatal or problem
                    continue
                outcomes.append(outcome)
            if outcomes:
                yield outcomes
            if fatal is not None:
                raise fatal

    def close(self, at_once: bool = False) -> None:
        """Cancel pending runs and end local processes."""
        for future in self._pending:
            future.cancel()
        if self._own is not None:
            self._own.shutdown(cancel_futures=at_once or bool(self._pending))

    def _submit(self, executor: Executor, request: Request) -> Call:
        try:
            if isinstance(executor, RunExecutor):
                limits = (self._timeout,) if self._memory is None else (self._timeout, self._memory)
                return executor.submit_run(request, *limits)
            return executor.submit(perform_elsewhere, request)
        except BrokenExecutor as problem:
            raise _executor_error(problem) from problem
        except Exception as problem:  # each executor raises its own errors
            who = f"{request.algorithm_name!r} on {request.identity.name!r}"
            raise InvalidInputError(f"{who} cannot be sent to a worker ({reason(problem)}).") from None

    def _warn_of_news(self) -> None:
        if isinstance(self._executor, RunExecutor):
            for news in self._executor.news():
                warnings.warn(news, PolarBearWarning, stacklevel=2)

    def _perform_here(self, request: Request) -> Outcome:
        why = ""
        for _ in range(self.retries + 1):
            try:
                with restore_process_state():
                    trajectory, seconds = perform(request)
                return Outcome(request, trajectory, seconds)
            except KeyboardInterrupt:
                raise
            except BaseException as problem:  # even SystemExit is only a failure of this run
                why = describe_exception(problem)
        return _failed_outcome(request, why)

    def _outcome(self, request: Request, future: Call) -> Outcome:
        if not future.done():
            future.cancel()
            return _failed_outcome(request, f"it ran for more than {self._timeout:g} s and was abandoned")
        try:
            trajectory, seconds = future.result()
            return Outcome(request, trajectory, seconds)
        except UnloadableError as problem:
            raise InvalidInputError(f"{request.algorithm_name!r} on {request.identity.name!r}: {problem}.") from None
        except (WorkersCannotStartError, UnfitWorkerError):
            raise
        except (BrokenExecutor, CancelledError) as problem:
            raise _executor_error(problem) from problem
        except PolarBearError as problem:
            return _failed_outcome(request, foreign_text(problem, STORED))
        except KeyboardInterrupt:
            raise
        except BaseException as problem:  # other executors re-raise what the algorithm raised
            return _failed_outcome(request, describe_exception(problem))

    def _overdue(self, started: dict[Call, float], limit: float) -> set[Call]:
        now = time.monotonic()
        for future in self._pending:
            if future.running():
                started.setdefault(future, now)
        return {future for future in self._pending if now - started.get(future, now) > limit}


def _executor_error(problem: BaseException) -> PolarBearError:
    why = describe_exception(problem, with_place=False).rstrip(".")
    return PolarBearError(
        f"The executor broke ({why}). With a journal no finished "
        "run is lost: resume the race on another executor, or on this one when it is back."
    )


def _failed_outcome(request: Request, why: str) -> Outcome:
    """Outcome of a run that failed for good: it found nothing up to its horizon."""
    nothing = Trajectory(
        algorithm=request.algorithm_name,
        instance=request.identity.name,
        seed=request.seed,
        times=[],
        best=[],
        horizon=request.horizon,
    )
    return Outcome(request, nothing, 0.0, foreign_text(why, STORED))
