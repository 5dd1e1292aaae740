"""The side of the race: an executor that sends runs to a scheduler of Dask and outlives its workers."""

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

from polarbear_plugins.errors import InvalidInputError, PolarBearError
from polarbear_plugins.execution.local_processes import ProcessDiedError
from polarbear_plugins.execution.requests import Request, RunExecutor, UnfitWorkerError
from polarbear_plugins.execution.worker import told
from polarbear_plugins.extras import require
from polarbear_plugins.integrations.dask_executor.messages import given_in, read_answer, write_request
from polarbear_plugins.integrations.dask_executor.versions import difference, misfit, needed, present
from polarbear_plugins.integrations.dask_executor.worker import end_children, run_message
from polarbear_plugins.trajectories.trajectory import Trajectory

_TICK = 1.0  # seconds between looks at who is there
_PATIENCE = 5.0  # seconds without a worker, after which the user is told
_GIVEN_UP = 15.0  # seconds without an answer of the scheduler, after which it counts as lost
_ASKING = 10.0  # seconds in which workers must tell their versions; a run looks again before it begins
_TROUBLES = 5  # times that a run may fail to begin before the race is given up
_RUN = f"{run_message.__module__}:{run_message.__name__}"
_WHO = "A race on Dask"


class SchedulerLostError(BrokenExecutor):
    """The scheduler is gone, or cannot be reached any more."""


@dataclass(eq=False)
class _Job:
    """A call that is under way."""

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
        A client of ``distributed``, not asynchronous.  Who hands it over closes it.
    belongings
        What to close at the shutdown: the client and cluster if nobody else does.
    """

    def __init__(self, client: Any, belongings: Sequence[Any] = ()) -> None:
        distributed = require("distributed", extra="dask", who=_WHO)
        if not isinstance(client, distributed.Client) or client.asynchronous:
            raise InvalidInputError(
                f"DaskExecutor needs a distributed.Client that is not asynchronous, got {client!r}."
            )
        self.client = client
        self._belongings = belongings
        self._killed: type[Exception] = distributed.KilledWorker
        self._apply = require("dask.utils", extra="dask", who=_WHO).apply
        self._name = uuid.uuid4().hex
        self._news: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._closing = False
        self._where = str(client.scheduler.address)
        # From here on only the thread of the client's event loop changes anything.
        self._jobs: set[_Job] = set()
        self._workers: set[str] = set()
        self._refused: dict[str, str] = {}
        self._told: set[str] = set()
        self._fruitful = False  # whether some worker has fitted
        self._one_suspect = asyncio.Lock()
        self._lost: SchedulerLostError | None = None
        client.sync(self._look)
        if self._workers and not self._fit():
            raise self._unfit()
        client.loop.add_callback(self._watch)

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule any call; Dask pickles it."""
        return self._begin(_Job(Future(), function, args, kwargs))

    def submit_run(self, request: Request, timeout: float | None) -> Future[tuple[Trajectory, float]]:
        """Schedule a run as a JSON text; what of it was given as Python travels beside, pickled."""
        given = given_in(request)
        packed = None if given is None else require("cloudpickle", extra="dask", who=_WHO).dumps(given)
        message = {"run": write_request(request), "executor": self._name, "timeout": timeout, "needs": needed()}
        return self._begin(_Job(Future(), run_message, (json.dumps(message), packed), request=request))

    def news(self) -> Sequence[str]:
        """Tell who is left out and why, and when there is no worker."""
        found = []
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self._news.get_nowait())
        return found

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the scheduled calls finish, or give them up; then end the children that runs had on the workers."""
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
            with contextlib.suppress(Exception):  # who is gone has no children any more
                self.client.run(end_children, self._name, on_error="ignore")
        with _quiet(self._lost is not None):
            for thing in self._belongings:
                with contextlib.suppress(Exception):  # a scheduler that is lost cannot be told
                    thing.close()

    def _begin(self, job: _Job) -> Future[Any]:
        if self._closing:
            raise RuntimeError("cannot submit after shutdown")
        if self._lost is not None:
            raise self._lost
        job.answer.add_done_callback(lambda answer: self._forget(job) if answer.cancelled() else None)
        self.client.loop.add_callback(self._start, job)
        return job.answer

    def _forget(self, job: _Job) -> None:
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
                # Workers died that had it, perhaps through no fault of its own: others were there too, or somebody
                # ended them.  One suspect at a time shows who it is.
                async with self._one_suspect:
                    result = await self._attempt(job)
            self._settle(job, result if job.request is None else read_answer(result, job.request))
        except self._killed:
            self._settle(job, problem=ProcessDiedError("worker after worker died that it was sent to"))
        except asyncio.CancelledError:
            self._settle(job, problem=self._lost or SchedulerLostError("its event loop has ended"))
        except Exception as problem:
            self._settle(job, problem=problem)
        finally:
            self._jobs.discard(job)

    async def _attempt(self, job: _Job) -> Any:
        """Have a call done by whoever fits, and again if it was nobody's fault."""
        troubles = 0
        while True:
            fit = self._fit() if job.request is not None and self._refused else None
            if fit is not None and not fit and self._workers:
                if not self._fruitful:
                    raise self._unfit()
                self._tell("unfit", f"No worker is left that fits; the race waits until one comes. {self._unfit()}")
                await asyncio.sleep(_TICK)
                continue
            future = self._sent(job, fit)
            try:
                result = await self._result(future, fit)
            except CancelledError:
                if self.client.status != "running":
                    raise self._lose("is gone") from None
                await asyncio.sleep(_TICK)  # somebody restarted the cluster
                continue
            except self._killed:
                raise
            except Exception as problem:
                if job.request is None:
                    raise
                # Runs tell of their failures in their answers; this is a worker that could not even load what answers:
                # it lacks it, or two threads of it imported the same modules at the same moment, which Python refuses.
                troubles += 1
                await self._look(again=True)
                if troubles > _TROUBLES:
                    raise UnfitWorkerError(f"No worker could begin a run ({told(problem)}).") from None
                await asyncio.sleep(_TICK / 10)
                continue
            if result is None and fit:  # they are all gone
                continue
            if job.request is None or (refusal := json.loads(result)).get("refused") is None:
                self._fruitful = True
                return result
            self._refuse(refusal["refused"], refusal["reason"])

    def _sent(self, job: _Job, fit: Sequence[str] | None) -> Any:
        if job.request is None:
            return self.client.submit(job.function, *job.arguments, **job.keywords, pure=False)
        # A worker ends if it cannot load the function of a task.  So the function, too, travels as a name, and a worker
        # that lacks it says so.
        task = (self._apply, (pkgutil.resolve_name, _RUN), list(job.arguments))
        key = f"polarbear-run-{uuid.uuid4()}"
        return self.client.get({key: task}, key, sync=False, workers=fit or None, allow_other_workers=False)

    async def _result(self, future: Any, fit: Collection[str] | None) -> Any:
        """Wait for a call; ``None`` as soon as all workers that may do it are gone."""
        gathering = asyncio.ensure_future(self.client.gather(future, asynchronous=True))
        # How it ends may interest nobody any more, and asyncio complains about what nobody looked at.
        gathering.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        try:
            while not (await asyncio.wait({gathering}, timeout=_TICK if fit else None))[0]:
                if fit and self._workers.isdisjoint(fit):
                    return None
            return gathering.result()
        finally:
            if not gathering.done():
                future.release()  # which ends the gathering, too

    async def _watch(self) -> None:
        alone = answered = time.monotonic()
        while not self._closing and self._lost is None:
            await asyncio.sleep(_TICK)
            try:
                await asyncio.wait_for(self._look(), _GIVEN_UP)
                answered = time.monotonic()
            except Exception:
                if time.monotonic() - answered > _GIVEN_UP and not self._closing:
                    self._lose(f"has not answered for {_GIVEN_UP:g} s")
                continue
            if self._workers or not self._jobs:
                alone = time.monotonic()
                self._told.discard("alone")
            elif time.monotonic() - alone > _PATIENCE:
                self._tell("alone", f"The scheduler at {self._where} has no worker; the race waits until one comes.")

    async def _look(self, again: bool = False) -> None:
        """See who is there, and ask newcomers for their versions."""
        before, self._workers = self._workers, set(await self.client.scheduler.ncores())
        self._refused = {worker: reason for worker, reason in self._refused.items() if worker in self._workers}
        newcomers = list(self._workers if again else self._workers - before)
        if not newcomers:
            return
        asking = self.client.run(present, workers=newcomers, on_error="return", asynchronous=True)
        try:
            found = await asyncio.wait_for(asking, _ASKING)
        except TimeoutError:
            return
        for worker, have in found.items():
            if isinstance(have, Exception):
                if "ModuleNotFoundError" in repr(have):  # others are in passing, or show when a run begins
                    self._refuse(worker, f"it has no polarbear-plugins that fits ({have})")
                continue
            reason = misfit(have, needed())
            if reason is not None:
                self._refuse(worker, reason)
            elif (other := difference(have, needed())) is not None:
                self._tell(other, f"The worker {worker}: {other}. Its runs may differ from those of others.")

    def _fit(self) -> list[str]:
        return sorted(self._workers - self._refused.keys())

    def _refuse(self, worker: str, reason: str) -> None:
        self._refused[worker] = reason
        self._workers.add(worker)  # it may have come after the last look
        if self._fit():
            self._tell(worker + reason, f"The worker {worker} is left out: {reason}.")

    def _unfit(self) -> UnfitWorkerError:
        worker, reason = next(iter(self._refused.items()))
        return UnfitWorkerError(
            f"No worker of the scheduler at {self._where} can take part. The worker {worker}: {reason.rstrip('.')}. "
            "Install the same versions on all machines."
        )

    def _tell(self, key: str, text: str) -> None:
        if key not in self._told:
            self._told.add(key)
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
        client = distributed.Client(address, timeout=timeout, set_as_default=False, direct_to_workers=False)
    except (OSError, ValueError, TypeError) as problem:
        reason = " ".join(str(problem).split())
        raise PolarBearError(f"No scheduler of Dask answers at {address} ({reason}).") from None
    try:
        return DaskExecutor(client, [client])
    except BaseException:
        client.close()
        raise


def start_local(workers: int, threads: int) -> DaskExecutor:
    """Start a scheduler and workers on this machine, for as long as the executor lives."""
    distributed = require("distributed", extra="dask", who=_WHO)
    cluster = distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=threads,
        processes=True,
        dashboard_address="127.0.0.1:0",  # also without a dashboard there is a port, and the usual one may be taken
        host="127.0.0.1",
        memory_limit=0,
    )
    client = distributed.Client(cluster, set_as_default=False)
    return DaskExecutor(client, [client, cluster])


@contextlib.contextmanager
def _quiet(wanted: bool) -> Iterator[None]:
    """Keep Dask from telling at length that it cannot say goodbye to a scheduler that is lost."""
    logger = logging.getLogger("distributed.client")
    before = logger.level
    if wanted:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
