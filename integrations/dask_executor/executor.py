"""The race's side: an executor that sends runs to a scheduler of Dask and survives the loss of workers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import pkgutil
import queue
import time
import uuid
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from typing import Any, TypeVar

from polarbear_plugins.errors import InvalidInputError, PolarBearError, describe_exception, short
from polarbear_plugins.execution.batches import Answer
from polarbear_plugins.execution.requests import Request, RunExecutor, UnfitWorkerError
from polarbear_plugins.execution.worker import RemoteError
from polarbear_plugins.execution.worker_process import ProcessDiedError
from polarbear_plugins.extras import require
from polarbear_plugins.integrations.dask_executor.messages import (
    python_parts,
    read_answers,
    read_refusal,
    write_request,
)
from polarbear_plugins.integrations.dask_executor.versions import needed_versions
from polarbear_plugins.integrations.dask_executor.worker import end_children, end_runs, run_message
from polarbear_plugins.integrations.dask_executor.workers import ANSWER_WITHIN, Workers
from polarbear_plugins.trajectories.trajectory import Trajectory

T = TypeVar("T")

_POLL = 1.0  # seconds between two queries for the workers
_WARN_AFTER = 5.0  # seconds without a worker, after which the user is told
_LOST_AFTER = 15.0  # seconds without an answer from the scheduler, after which it counts as lost
_MOST_FAILED_STARTS = 5  # of a run, before the race is given up
_RUN = f"{run_message.__module__}:{run_message.__name__}"
WHO = "A race on Dask"


class SchedulerLostError(BrokenExecutor):
    """The scheduler has ended, or can no longer be reached."""


@dataclass(eq=False)
class _Job:
    """A submitted call that has not ended."""

    answer: Future[Any]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)
    requests: Sequence[Request] = ()  # of runs
    task: asyncio.Task[None] | None = None
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    key: str | None = None  # of the task of Dask, since it was sent
    number: int = 0  # in the order of sending

    def read(self, result: Any) -> Any:
        """Result of the call, or what came of the run or the runs."""
        if not self.requests:
            return result
        answers = read_answers(result, self.requests)
        if len(self.requests) > 1:
            return answers
        if not answers:
            raise RemoteError("its worker sent an empty answer")
        performed, _ = answers[0]
        if isinstance(performed, PolarBearError):
            raise performed
        return performed


class DaskExecutor(RunExecutor):
    """Executor on the workers of a Dask scheduler.

    Parameters
    ----------
    client
        A client of ``distributed``, not asynchronous.  The caller closes it, unless it is among ``belongings``.
    belongings
        What to close at the shutdown: the client and the cluster, if the executor owns them.
    """

    sends_together = True

    def __init__(self, client: Any, belongings: Sequence[Any] = ()) -> None:
        distributed = require("distributed", extra="dask", who=WHO)
        if not isinstance(client, distributed.Client) or client.asynchronous:
            raise InvalidInputError(
                f"DaskExecutor needs a distributed.Client that is not asynchronous, got {short(client)}."
            )
        self.client = client
        self._belongings = belongings
        self._killed: type[Exception] = distributed.KilledWorker
        self._apply = require("dask.utils", extra="dask", who=WHO).apply
        self._name = uuid.uuid4().hex
        self._news: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._closing = False
        self._where = str(client.scheduler.address)
        # The following is changed only in the thread of the client's event loop.
        self._jobs: set[_Job] = set()
        self._numbers = itertools.count()
        self._workers = Workers(client, self._announce)
        self._announced: set[str] = set()
        self._had_fit_worker = False
        self._one_suspect = asyncio.Lock()
        self._lost: SchedulerLostError | None = None
        client.sync(self._workers.update)
        if self._workers.threads and not self._workers.fit:
            raise self._workers.no_fit_worker()
        client.loop.add_callback(self._watch)

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule any call; Dask pickles it."""
        return self._begin(_Job(Future(), function, args, kwargs))

    def submit_run(
        self, request: Request, timeout: float | None, memory: float | None = None
    ) -> Future[tuple[Trajectory, float]]:
        """Schedule a run as JSON text; the parts that were given as Python are sent beside it, pickled."""
        return self._begin(self._job_of([request], timeout, memory))

    def submit_together(self, requests: Sequence[Request]) -> Future[list[Answer]]:
        """Schedule several short runs in one message."""
        return self._begin(self._job_of(requests, None, None))

    def _job_of(self, requests: Sequence[Request], timeout: float | None, memory: float | None) -> _Job:
        parts = [python_parts(request) for request in requests]
        dumps = require("cloudpickle", extra="dask", who=WHO).dumps
        packed = [None if part is None else dumps(part) for part in parts]
        job = _Job(Future(), run_message, (), requests=requests)
        message = {
            "runs": [write_request(request) for request in requests],
            "name": job.name,
            "executor": self._name,
            "timeout": timeout,
            "memory": memory,
            "needs": needed_versions(),
        }
        job.arguments = (json.dumps(message), packed)
        return job

    def capacity(self) -> int:
        """Threads of the workers that fit, as of the last second; 0 while there is no worker."""
        return self._workers.capacity

    def withdraw(self, runs: Collection[Future[Any]]) -> list[Future[Any]]:
        """Withdraw runs that have not begun, as far as it is known; returns those.

        Only a worker knows which of the runs that the scheduler has assigned to it have begun.  Counted as begun are,
        on each worker, those that were sent first, as many as it has threads, since workers take them in this order.
        One that begins at the very moment is performed in vain.
        """
        return self._ask_scheduler(self._withdraw(set(runs)), [])

    async def _withdraw(self, runs: set[Future[Any]]) -> list[Future[Any]]:
        under_way = await self._jobs_under_way()
        jobs = sorted((job for job in self._jobs if job.answer in runs), key=lambda job: job.number)
        return [job.answer for job in jobs if job not in under_way and job.answer.cancel()]

    def end(self, least: Mapping[Future[Any], float]) -> dict[Future[Any], float]:
        """End runs that have taken at least so many seconds on their workers; returns those, with these seconds."""
        return self._ask_scheduler(self._end(least), {})

    async def _end(self, least: Mapping[Future[Any], float]) -> dict[Future[Any], float]:
        unwanted = {job: worker for job, worker in (await self._jobs_under_way()).items() if job.answer in least}
        if not unwanted:
            return {}
        answers = {job.name: job.answer for job in unwanted}
        seconds = {name: least[answer] for name, answer in answers.items()}
        workers = sorted(set(unwanted.values()))
        asking = self.client.run(end_runs, seconds, workers=workers, on_error="ignore", asynchronous=True)
        found = await asyncio.wait_for(asking, ANSWER_WITHIN)
        ended = {answers[name]: taken for part in found.values() for name, taken in part.items()}
        for answer in ended:
            answer.cancel()
        return ended

    async def _jobs_under_way(self) -> dict[_Job, str]:
        """The runs that count as begun, each with its worker."""
        assigned = await asyncio.wait_for(self.client.scheduler.processing(workers=None), _LOST_AFTER)
        jobs = {job.key: job for job in self._jobs}
        found = {}
        for worker, keys in assigned.items():
            there = sorted((jobs[key] for key in keys if key in jobs), key=lambda job: job.number)
            found.update(dict.fromkeys(there[: self._workers.threads.get(worker, 1)], worker))
        return found

    def _ask_scheduler(self, question: Coroutine[Any, Any, T], otherwise: T) -> T:
        """The answer to a question; something else if the scheduler does not give one, which is noticed elsewhere."""
        try:
            answer: T = self.client.sync(lambda: question)
            return answer
        except Exception:
            question.close()
            return otherwise

    def news(self) -> Sequence[str]:
        """Messages since the last call: which workers are left out and why, and that there is no worker."""
        found = []
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self._news.get_nowait())
        return found

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for the scheduled calls, or cancel them; then end the child processes of runs on the workers."""
        if self._closing:
            return
        self._closing = True
        waiting = [job.answer for job in list(self._jobs)]
        if cancel_futures:
            for answer in waiting:
                answer.cancel()
        elif wait:
            wait_for(waiting)
        if self._lost is None:
            with contextlib.suppress(Exception):  # a worker that is gone has no child processes
                self.client.run(end_children, self._name, on_error="ignore")
        with _silence_client(self._lost is not None):
            for thing in self._belongings:
                with contextlib.suppress(Exception):  # a lost scheduler does not answer
                    thing.close()

    def _begin(self, job: _Job) -> Future[Any]:
        if self._closing:
            raise RuntimeError("cannot submit after shutdown")
        if self._lost is not None:
            raise self._lost
        job.answer.add_done_callback(lambda answer: self._cancel_task(job) if answer.cancelled() else None)
        self.client.loop.add_callback(self._start, job)
        return job.answer

    def _cancel_task(self, job: _Job) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self.client.loop.add_callback(lambda: job.task.cancel() if job.task is not None else None)

    def _start(self, job: _Job) -> None:
        if self._lost is not None:
            self._settle(job, problem=self._lost)
        elif not job.answer.cancelled():
            self._jobs.add(job)
            job.task = asyncio.ensure_future(self._carry_out(job))

    async def _carry_out(self, job: _Job) -> None:
        try:
            try:
                result = await self._attempt(job)
            except self._killed:
                # Workers died while they ran it.  Another run on the same worker may be the cause, or someone ended the
                # workers.  Running such calls one at a time shows which one it is.
                async with self._one_suspect:
                    result = await self._attempt(job)
            self._settle(job, job.read(result))
        except self._killed:
            self._settle(job, problem=ProcessDiedError("every worker that it was sent to died"))
        except asyncio.CancelledError:
            self._settle(job, problem=self._lost or SchedulerLostError("its event loop has ended"))
        except Exception as problem:
            self._settle(job, problem=problem)
        finally:
            self._jobs.discard(job)

    async def _attempt(self, job: _Job) -> Any:
        """Run a call on a worker that fits, and again if neither the call nor its worker caused the failure."""
        failed_starts = 0
        while True:
            workers = self._workers
            fit = workers.fit if job.requests and workers.refused else None
            if fit is not None and not fit and workers.threads:
                if not self._had_fit_worker:
                    raise workers.no_fit_worker()
                self._announce("unfit", f"No fitting worker is left; the race waits for one. {workers.no_fit_worker()}")
                await asyncio.sleep(_POLL)
                continue
            future = self._send(job, fit)
            try:
                result = await self._wait_for_result(future, fit)
            except CancelledError:
                if self.client.status != "running":
                    raise self._lose("is gone") from None
                await asyncio.sleep(_POLL)  # the cluster was restarted
                continue
            except self._killed:
                raise
            except Exception as problem:
                if not job.requests:
                    raise
                # Runs report their failures in their answers.  This worker could not load the function that answers: it
                # is not installed there, or two threads imported the same modules at the same moment, which Python
                # refuses.
                failed_starts += 1
                await workers.update(again=True)
                if failed_starts > _MOST_FAILED_STARTS:
                    raise UnfitWorkerError(f"No worker could begin a run ({describe_exception(problem)}).") from None
                await asyncio.sleep(_POLL / 10)
                continue
            if result is None and fit:  # all of these workers are gone
                continue
            if not job.requests or (refusal := read_refusal(result)) is None:
                self._had_fit_worker = True
                return result
            workers.refuse(*refusal)

    def _send(self, job: _Job, fit: Sequence[str] | None) -> Any:
        if not job.requests:
            return self.client.submit(job.function, *job.arguments, **job.keywords, pure=False)
        # A worker ends if it cannot load the function of a task.  So the function is sent as a name, and a worker that
        # does not have it reports an error.
        task = (self._apply, (pkgutil.resolve_name, _RUN), list(job.arguments))
        job.key, job.number = f"polarbear-run-{uuid.uuid4()}", next(self._numbers)
        return self.client.get({job.key: task}, job.key, sync=False, workers=fit or None, allow_other_workers=False)

    async def _wait_for_result(self, future: Any, fit: Collection[str] | None) -> Any:
        """Result of a call; ``None`` as soon as all workers that may run it are gone."""
        gathering = asyncio.ensure_future(self.client.gather(future, asynchronous=True))
        # Its exception is fetched even if it is not needed any more: asyncio warns about exceptions never fetched.
        gathering.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        try:
            while not (await asyncio.wait({gathering}, timeout=_POLL if fit else None))[0]:
                if fit and self._workers.threads.keys().isdisjoint(fit):
                    return None
            return gathering.result()
        finally:
            if not gathering.done():
                future.release()  # also ends the gathering

    async def _watch(self) -> None:
        """Follow the workers until the shutdown; a scheduler that does not answer is lost."""
        alone = answered = time.monotonic()
        while not self._closing and self._lost is None:
            await asyncio.sleep(_POLL)
            try:
                await asyncio.wait_for(self._workers.update(), _LOST_AFTER)
                answered = time.monotonic()
            except Exception:
                if time.monotonic() - answered > _LOST_AFTER and not self._closing:
                    self._lose(f"has not answered for {_LOST_AFTER:g} s")
                continue
            if self._workers.threads or not self._jobs:
                alone = time.monotonic()
                self._announced.discard("alone")
            elif time.monotonic() - alone > _WARN_AFTER:
                self._announce("alone", f"The scheduler at {self._where} has no worker; the race waits for one.")

    def _announce(self, key: str, text: str) -> None:
        if key not in self._announced:
            self._announced.add(key)
            self._news.put(text)

    def _lose(self, how: str) -> SchedulerLostError:
        if self._lost is None:
            self._lost = SchedulerLostError(f"the scheduler at {self._where} {how}")
            for job in self._jobs:
                if job.task is not None:
                    job.task.cancel()
        return self._lost

    @staticmethod
    def _settle(job: _Job, result: object = None, problem: Exception | None = None) -> None:
        if not job.answer.set_running_or_notify_cancel():
            return
        if problem is None:
            job.answer.set_result(result)
        else:
            job.answer.set_exception(problem)


@contextlib.contextmanager
def _silence_client(enabled: bool) -> Iterator[None]:
    """Keep Dask from logging at length that it cannot close the connection to a lost scheduler."""
    logger = logging.getLogger("distributed.client")
    before = logger.level
    if enabled:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
