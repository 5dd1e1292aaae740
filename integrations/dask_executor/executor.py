"""The race's side: an executor that sends runs to a scheduler of Dask and survives the loss of workers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import pkgutil
import queue
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from typing import Any

from polarbear_plugins.errors import InvalidInputError, PolarBearError, describe_exception, reason, short
from polarbear_plugins.execution.requests import Request, RunExecutor, UnfitWorkerError
from polarbear_plugins.execution.worker_process import ProcessDiedError
from polarbear_plugins.extras import require
from polarbear_plugins.integrations.dask_executor.messages import python_parts, read_answer, read_refusal, write_request
from polarbear_plugins.integrations.dask_executor.versions import (
    describe_difference,
    describe_misfit,
    needed_versions,
    present_versions,
)
from polarbear_plugins.integrations.dask_executor.worker import end_children, run_message
from polarbear_plugins.trajectories.trajectory import Trajectory

_POLL = 1.0  # seconds between two queries for the workers
_WARN_AFTER = 5.0  # seconds without a worker, after which the user is told
_LOST_AFTER = 15.0  # seconds without an answer from the scheduler, after which it counts as lost
_VERSIONS_WITHIN = 10.0  # seconds for workers to report their versions; a run checks again before it begins
_MOST_FAILED_STARTS = 5  # of a run, before the race is given up
_RUN = f"{run_message.__module__}:{run_message.__name__}"
_WHO = "A race on Dask"


class SchedulerLostError(BrokenExecutor):
    """The scheduler has ended, or can no longer be reached."""


@dataclass(eq=False)
class _Job:
    """A submitted call that has not ended."""

    answer: Future[Any]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)
    request: Request | None = None
    task: asyncio.Task[None] | None = None


class DaskExecutor(RunExecutor):
    """Executor on the workers of a Dask scheduler.

    Parameters
    ----------
    client
        A client of ``distributed``, not asynchronous.  The caller closes it, unless it is among ``belongings``.
    belongings
        What to close at the shutdown: the client and the cluster, if the executor owns them.
    """

    def __init__(self, client: Any, belongings: Sequence[Any] = ()) -> None:
        distributed = require("distributed", extra="dask", who=_WHO)
        if not isinstance(client, distributed.Client) or client.asynchronous:
            raise InvalidInputError(
                f"DaskExecutor needs a distributed.Client that is not asynchronous, got {short(client)}."
            )
        self.client = client
        self._belongings = belongings
        self._killed: type[Exception] = distributed.KilledWorker
        self._apply = require("dask.utils", extra="dask", who=_WHO).apply
        self._name = uuid.uuid4().hex
        self._news: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._closing = False
        self._where = str(client.scheduler.address)
        # The following is changed only in the thread of the client's event loop.
        self._jobs: set[_Job] = set()
        self._workers: set[str] = set()
        self._refused: dict[str, str] = {}
        self._announced: set[str] = set()
        self._had_fit_worker = False
        self._one_suspect = asyncio.Lock()
        self._lost: SchedulerLostError | None = None
        client.sync(self._update_workers)
        if self._workers and not self._fit_workers():
            raise self._no_fit_worker()
        client.loop.add_callback(self._watch)

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule any call; Dask pickles it."""
        return self._begin(_Job(Future(), function, args, kwargs))

    def submit_run(
        self, request: Request, timeout: float | None, memory: float | None = None
    ) -> Future[tuple[Trajectory, float]]:
        """Schedule a run as JSON text; the parts that were given as Python are sent beside it, pickled."""
        given = python_parts(request)
        packed = None if given is None else require("cloudpickle", extra="dask", who=_WHO).dumps(given)
        message = {
            "run": write_request(request),
            "executor": self._name,
            "timeout": timeout,
            "memory": memory,
            "needs": needed_versions(),
        }
        return self._begin(_Job(Future(), run_message, (json.dumps(message), packed), request=request))

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
            self._settle(job, result if job.request is None else read_answer(result, job.request))
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
            fit = self._fit_workers() if job.request is not None and self._refused else None
            if fit is not None and not fit and self._workers:
                if not self._had_fit_worker:
                    raise self._no_fit_worker()
                self._announce("unfit", f"No fitting worker is left; the race waits for one. {self._no_fit_worker()}")
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
                if job.request is None:
                    raise
                # Runs report their failures in their answers.  This worker could not load the function that answers: it
                # is not installed there, or two threads imported the same modules at the same moment, which Python
                # refuses.
                failed_starts += 1
                await self._update_workers(again=True)
                if failed_starts > _MOST_FAILED_STARTS:
                    raise UnfitWorkerError(f"No worker could begin a run ({describe_exception(problem)}).") from None
                await asyncio.sleep(_POLL / 10)
                continue
            if result is None and fit:  # all of these workers are gone
                continue
            if job.request is None or (refusal := read_refusal(result)) is None:
                self._had_fit_worker = True
                return result
            self._refuse(*refusal)

    def _send(self, job: _Job, fit: Sequence[str] | None) -> Any:
        if job.request is None:
            return self.client.submit(job.function, *job.arguments, **job.keywords, pure=False)
        # A worker ends if it cannot load the function of a task.  So the function is sent as a name, and a worker that
        # does not have it reports an error.
        task = (self._apply, (pkgutil.resolve_name, _RUN), list(job.arguments))
        key = f"polarbear-run-{uuid.uuid4()}"
        return self.client.get({key: task}, key, sync=False, workers=fit or None, allow_other_workers=False)

    async def _wait_for_result(self, future: Any, fit: Collection[str] | None) -> Any:
        """Result of a call; ``None`` as soon as all workers that may run it are gone."""
        gathering = asyncio.ensure_future(self.client.gather(future, asynchronous=True))
        # Its exception is fetched even if it is not needed any more: asyncio warns about exceptions never fetched.
        gathering.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        try:
            while not (await asyncio.wait({gathering}, timeout=_POLL if fit else None))[0]:
                if fit and self._workers.isdisjoint(fit):
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
                await asyncio.wait_for(self._update_workers(), _LOST_AFTER)
                answered = time.monotonic()
            except Exception:
                if time.monotonic() - answered > _LOST_AFTER and not self._closing:
                    self._lose(f"has not answered for {_LOST_AFTER:g} s")
                continue
            if self._workers or not self._jobs:
                alone = time.monotonic()
                self._announced.discard("alone")
            elif time.monotonic() - alone > _WARN_AFTER:
                self._announce("alone", f"The scheduler at {self._where} has no worker; the race waits for one.")

    async def _update_workers(self, again: bool = False) -> None:
        """Query the scheduler for its workers, and new workers for their versions."""
        before, self._workers = self._workers, set(await self.client.scheduler.ncores())
        self._refused = {worker: reason for worker, reason in self._refused.items() if worker in self._workers}
        newcomers = list(self._workers if again else self._workers - before)
        if not newcomers:
            return
        asking = self.client.run(present_versions, workers=newcomers, on_error="return", asynchronous=True)
        try:
            found = await asyncio.wait_for(asking, _VERSIONS_WITHIN)
        except TimeoutError:
            return
        for worker, have in found.items():
            if isinstance(have, Exception):
                if "ModuleNotFoundError" in repr(have):  # other errors are temporary, or recur when a run begins
                    self._refuse(worker, f"it has no polarbear-plugins that fits ({have})")
                continue
            reason = describe_misfit(have, needed_versions())
            if reason is not None:
                self._refuse(worker, reason)
            elif (other := describe_difference(have, needed_versions())) is not None:
                self._announce(other, f"The worker {worker}: {other}. Its runs may differ from those of others.")

    def _fit_workers(self) -> list[str]:
        return sorted(self._workers - self._refused.keys())

    def _refuse(self, worker: str, reason: str) -> None:
        self._refused[worker] = reason
        self._workers.add(worker)  # it may have joined after the last query
        if self._fit_workers():
            self._announce(worker + reason, f"The worker {worker} is left out: {reason}.")

    def _no_fit_worker(self) -> UnfitWorkerError:
        worker, reason = next(iter(self._refused.items()))
        return UnfitWorkerError(
            f"No worker of the scheduler at {self._where} can take part. The worker {worker}: {reason.rstrip('.')}. "
            "Install the same versions on all machines."
        )

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


def connect(address: str, timeout: float) -> DaskExecutor:
    """Connect to the scheduler at an address; for ``tls://`` with the certificates in Dask's configuration."""
    distributed = require("distributed", extra="dask", who=_WHO)
    try:
        # A client without certificates fails, and waits for itself when it is deleted.
        if address.startswith("tls://") and not distributed.Security().get_connection_args("client").get("ssl_context"):
            raise ValueError("Dask's configuration, distributed.comm.tls, names no certificate for this client")
        client = distributed.Client(address, timeout=timeout, set_as_default=False, direct_to_workers=False)
    except (OSError, ValueError, TypeError) as problem:
        raise PolarBearError(f"No scheduler of Dask answers at {address} ({reason(problem)}).") from None
    try:
        return DaskExecutor(client, [client])
    except BaseException:
        client.close()
        raise


def start_local(workers: int, threads: int) -> DaskExecutor:
    """Start a scheduler and workers on this machine, which end with the executor."""
    distributed = require("distributed", extra="dask", who=_WHO)
    cluster = distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=threads,
        processes=True,
        dashboard_address="127.0.0.1:0",  # there is a port even without a dashboard, and the default one may be taken
        host="127.0.0.1",
        memory_limit=0,
    )
    client = distributed.Client(cluster, set_as_default=False)
    return DaskExecutor(client, [client, cluster])


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
