"""The dispatcher performs runs: in this process, or on an executor."""

from __future__ import annotations

import collections
import contextlib
import queue
import time
import warnings
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from typing import Any, TypeAlias

from threadpoolctl import threadpool_limits

from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.errors import (
    InvalidInputError,
    PolarBearError,
    PolarBearWarning,
    reason,
)
from polarbear_plugins.execution.batches import Answer, batches_of, enough_for_a_worker, is_short, perform_all
from polarbear_plugins.execution.local_processes import LocalProcesses
from polarbear_plugins.execution.outcomes import Outcome, answers_of, describe_request, executor_error, failure
from polarbear_plugins.execution.process_state import restore_process_state
from polarbear_plugins.execution.requests import (
    Request,
    RunExecutor,
    perform,
)
from polarbear_plugins.execution.run_times import RunTimes
from polarbear_plugins.execution.starting import exit_if_unguarded

Call: TypeAlias = Future[Any]

_POLL = 0.5  # seconds between checks for overdue runs, and for news of an executor
_WORTH_ENDING = 5.0  # seconds of a run; a new process takes up to two, with what it imports
_UNKNOWN_WORKERS = 32  # assumed of an executor that does not say how many it has


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
    pin
        Whether each local process keeps to a core of its own, for runs whose seconds are compared.
    """

    def __init__(
        self,
        workers: int | None = None,
        executor: Executor | None = None,
        run_timeout: float | None = None,
        retries: int = 0,
        run_memory: float | None = None,
        *,
        pin: bool = False,
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
        if pin and (workers == 0 or executor is not None):
            raise InvalidInputError("pin is for local processes: use workers=1 or more, and no executor.")
        self._executor = executor
        self._own: LocalProcesses | None = None
        if executor is None and workers != 0:
            exit_if_unguarded()
            self._executor = self._own = LocalProcesses(workers, self._timeout, memory=self._memory, pin=pin)
        # Several runs travel together only without limits, which hold for one run.
        self._alone = self._timeout is not None or self._memory is not None
        if isinstance(self._executor, RunExecutor) and not self._executor.sends_together:
            self._alone = True
        self._waiting: collections.deque[Request] = collections.deque()  # for this process, or to be sent with others
        self._calls: dict[Call, list[Request]] = {}
        self._sent = 0  # requests in these calls
        self._failures: collections.Counter[Request] = collections.Counter()
        self._times = RunTimes()
        self._started: dict[Call, float] = {}
        self._done: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._fatal: PolarBearError | None = None

    @property
    def pickles(self) -> bool:
        """Whether requests are known to be pickled; other executors may send them in another way."""
        return isinstance(self._executor, LocalProcesses | ProcessPoolExecutor)

    @property
    def in_process(self) -> bool:
        """Whether runs are performed in this process, by :meth:`collect`."""
        return self._executor is None

    @property
    def capacity(self) -> int | None:
        """How many runs are performed at once; ``None`` if the executor does not say."""
        return 1 if self._executor is None else _capacity(self._executor)

    @property
    def in_flight(self) -> int:
        """How many requests have been submitted and not been answered."""
        return len(self._waiting) + self._sent

    @property
    def room(self) -> int:
        """How many more requests keep every worker busy until the next answers have been dealt with."""
        wanted = 1 if self._executor is None else enough_for_a_worker(self._times) * self._workers(self._executor)
        return max(0, wanted - self.in_flight)

    def _workers(self, executor: Executor) -> int:
        """How many runs an executor performs at once, as far as it can be known."""
        known = _capacity(executor)
        if known is not None:
            return max(1, known)  # a cluster without workers may grow when there is something to do
        # What waits needlessly can be withdrawn; what was not submitted may leave workers idle for as long as a run.
        return max(_UNKNOWN_WORKERS, sum(call.running() for call in self._calls))

    def submit(self, request: Request) -> None:
        """Begin a run as soon as a worker is free, a short one after the next :meth:`collect` has begun.

        If the executor does not take it, the next :meth:`collect` raises the error, after what has finished before.
        """
        if self._executor is None or (not self._alone and is_short(request, self._times)):
            self._waiting.append(request)
        else:
            self._send([request])

    def withdraw(self, requests: Collection[Request]) -> list[Request]:
        """Withdraw requests that have not begun; returns those, of which there will be no outcome."""
        unwanted = set(requests)
        calls = [call for call, sent in self._calls.items() if not unwanted.isdisjoint(sent)]
        if isinstance(self._executor, RunExecutor):
            calls = self._executor.withdraw(calls)
        else:
            calls = [call for call in calls if call.cancel()]
        # What a cancelled call puts into the queue is not known any more; its other requests are sent again.
        back = [request for call in calls for request in self._pop(call)] + list(self._waiting)
        self._waiting = collections.deque(request for request in back if request not in unwanted)
        return [request for request in back if request in unwanted]

    def end(self, requests: Collection[Request]) -> dict[Request, float]:
        """End runs that are under way if that is worth it; returns those, and the seconds that they had taken.

        There will be no outcome of them.  It is worth it for runs that have taken, or will probably take, more than
        5 seconds: a process is lost with each, and the next one begins with its imports.  Runs on executors that cannot
        end them go on, and so do those of which this returns nothing.
        """
        if not isinstance(self._executor, LocalProcesses | RunExecutor):
            return {}
        unwanted = set(requests)
        least = {
            call: 0.0 if (self._times.expected(sent[0]) or 0.0) > _WORTH_ENDING else _WORTH_ENDING
            for call, sent in self._calls.items()
            if unwanted.issuperset(sent)
        }
        ended = self._executor.end(least) if least else {}
        shares = {call: seconds / len(self._calls[call]) for call, seconds in ended.items()}
        return {request: seconds for call, seconds in shares.items() for request in self._pop(call)}

    def wake(self) -> None:
        """Let a :meth:`collect` that waits return, or the next one that would wait; other threads may call it."""
        self._done.put(None)

    def collect(self) -> list[Outcome]:
        """Wait until runs have finished, and return their outcomes; none after :meth:`wake`.

        If nothing is in flight, only :meth:`wake` ends the wait.
        """
        if self._executor is None and self._waiting:
            return [self._perform_here(self._waiting.popleft())]
        takes_requests = isinstance(self._executor, RunExecutor)
        # Local processes and run executors enforce the time limit themselves.
        limit = None if self._own is not None or takes_requests else self._timeout
        poll = _POLL if takes_requests or limit is not None else None
        outcomes: list[Outcome] = []
        woken = False
        while not outcomes and not woken:
            self._send_waiting()
            done = self._wait_for_calls(poll if self._fatal is None else 0.0)
            woken = None in done
            self._warn_of_news()
            if limit is not None:
                done += self._overdue(limit)
            for call in done:
                if call is not None and call in self._calls:
                    self._take(call, outcomes)
            if self._fatal is not None and not outcomes:
                raise self._fatal
        return outcomes

    def _take(self, call: Call, outcomes: list[Outcome]) -> None:
        """Add the outcomes of a call that has ended; what failed may be tried again."""
        requests = self._pop(call)
        try:
            answers = answers_of(requests, call) if call.done() else [self._abandon(call)]
        except PolarBearError as problem:  # ends the race, but only after the other outcomes are collected
            self._fatal = self._fatal or problem
            return
        if not answers:
            for request in requests:
                self._send([request])
            return
        for request, (performed, seconds) in zip(requests, answers, strict=False):
            if isinstance(performed, PolarBearError) and self._failures[request] < self.retries:
                self._failures[request] += 1
                self.submit(request)
                continue
            del self._failures[request]  # a Counter does not mind if there are none
            if seconds:
                self._times.note(request, seconds)
            outcomes.append(Outcome.of(request, performed))
        for request in requests[len(answers) :]:  # handed back
            self.submit(request)

    def _abandon(self, call: Call) -> Answer:
        call.cancel()
        return PolarBearError(f"it ran for more than {self._timeout:g} s and was abandoned"), 0.0

    def _wait_for_calls(self, poll: float | None) -> list[Call | None]:
        """Calls in the order in which they ended, at least one within ``poll`` seconds; ``None`` for a wake-up."""
        done: list[Call | None] = []
        with contextlib.suppress(queue.Empty):
            done.append(self._done.get(timeout=poll))
            while True:
                done.append(self._done.get_nowait())
        return done

    def carry_out(self, requests: Iterable[Request]) -> Iterator[list[Outcome]]:
        """Yield outcomes as soon as runs finish."""
        for request in requests:
            self.submit(request)
        with self.performing():
            while self.in_flight or self._fatal is not None:
                yield self.collect()

    def performing(self) -> contextlib.AbstractContextManager[object]:
        """Context in which requests are performed; runs in this process use one thread there."""
        return threadpool_limits(1) if self._executor is None else contextlib.nullcontext()

    def close(self, at_once: bool = False) -> None:
        """Cancel pending runs and end local processes."""
        for call in self._calls:
            call.cancel()
        if self._own is not None:
            self._own.shutdown(cancel_futures=at_once or bool(self._calls))

    def _send_waiting(self) -> None:
        """Send what waits to be sent with others, shared among the workers that have nothing to do."""
        if self._executor is not None and self._waiting:
            waiting, self._waiting = list(self._waiting), collections.deque()
            for batch in batches_of(waiting, self._times, self._workers(self._executor) - len(self._calls)):
                self._send(batch)

    def _send(self, requests: list[Request]) -> None:
        if self._executor is None or self._fatal is not None:
            return
        try:
            call = self._submit(self._executor, requests)
        except PolarBearError as problem:
            if len(requests) > 1 and isinstance(problem, InvalidInputError):  # one of them cannot be sent: which one?
                for request in requests:
                    self._send([request])
            else:
                self._fatal = problem
            return
        self._calls[call] = requests
        self._sent += len(requests)
        call.add_done_callback(self._done.put)

    def _pop(self, call: Call) -> list[Request]:
        """Forget a call; returns its requests."""
        requests = self._calls.pop(call)
        self._sent -= len(requests)
        return requests

    def _submit(self, executor: Executor, requests: list[Request]) -> Call:
        try:
            if isinstance(executor, RunExecutor):
                if len(requests) > 1:
                    return executor.submit_together(requests)
                limits = (self._timeout,) if self._memory is None else (self._timeout, self._memory)
                return executor.submit_run(requests[0], *limits)
            return executor.submit(perform_all, requests)
        except BrokenExecutor as problem:
            raise executor_error(problem) from problem
        except Exception as problem:  # each executor raises its own errors
            who = describe_request(requests[0])
            raise InvalidInputError(f"{who} cannot be sent to a worker ({reason(problem)}).") from None

    def _warn_of_news(self) -> None:
        if isinstance(self._executor, RunExecutor):
            for news in self._executor.news():
                warnings.warn(news, PolarBearWarning, stacklevel=2)

    def _perform_here(self, request: Request) -> Outcome:
        tries = 0
        while True:
            tries += 1
            try:
                with restore_process_state():
                    return Outcome.of(request, perform(request))
            except KeyboardInterrupt:
                raise
            except BaseException as problem:  # even SystemExit is only a failure of this run
                if tries > self.retries:
                    return Outcome.of(request, failure(problem))

    def _overdue(self, limit: float) -> list[Call]:
        now = time.monotonic()
        self._started = {call: self._started.get(call, now) for call in self._calls if call.running()}
        return [call for call, began in self._started.items() if now - began > limit]


def _capacity(executor: Executor) -> int | None:
    """How many runs an executor says that it performs at once."""
    if isinstance(executor, LocalProcesses):
        return executor.workers
    if isinstance(executor, RunExecutor):
        return executor.capacity()
    # Pools of the standard library and loky keep it for themselves, MPI tells it.
    for attribute in ("_max_workers", "num_workers"):
        size = getattr(executor, attribute, None)
        if isinstance(size, int):
            return size
    return None
