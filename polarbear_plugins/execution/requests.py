"""Requests for runs, and how a worker performs them: build the problem, run the algorithm, sample the trajectory.

Registered portfolios and suites are sent by name and built in the worker; Python objects given by the user are sent
as they are.
"""

from __future__ import annotations

import contextlib
import functools
import json
import multiprocessing
import operator
import threading
import time
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError, PolarBearError, reason, short
from polarbear_plugins.execution.local_processes import UnsendableError, pickle_or_raise
from polarbear_plugins.plugins.manager import Plugins, installed_plugins
from polarbear_plugins.problems.given import GivenSuite, as_portfolio, as_suite
from polarbear_plugins.problems.protocols import Algorithm, Identity, Problem, Suite
from polarbear_plugins.trajectories.trajectory import Trajectory, sample_staircase


@dataclass(frozen=True, slots=True)
class Registered:
    """A portfolio or suite of a plugin, by its name and options (JSON text)."""

    name: str
    options: str


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One run, with everything a worker needs for it.  Requests are compared and hashed by identity.

    Horizon and timepoints are in units of the race, each of which is ``unit`` on the time axis of the run.
    """

    algorithm: Algorithm | Registered
    algorithm_name: str
    problem: Problem | None
    suite: Suite | Registered | None
    identity: Identity
    horizon: float
    seed: int
    timepoints: FloatArray
    unit: float = 1.0


class UnfitWorkerError(PolarBearError):
    """No worker can perform a run: a package is missing, or has another version."""


class RunExecutor(Executor):
    """An executor that takes requests: it sends them in its own way, and enforces the limits of each run."""

    @abstractmethod
    def submit_run(
        self, request: Request, timeout: float | None, memory: float | None = None
    ) -> Future[tuple[Trajectory, float]]:
        """Schedule a run that is ended after ``timeout`` seconds, and when it uses more than ``memory`` megabytes.

        A limit of memory is given only if the race has one.
        The future raises a :class:`PolarBearError` if the run failed, :class:`UnfitWorkerError` if no worker can
        perform it, and ``BrokenExecutor`` if the executor is lost.
        """

    #: Whether it has :meth:`submit_together`.
    sends_together: bool = False

    def submit_together(self, requests: Sequence[Request]) -> Future[Any]:
        """Schedule several short runs without limits, to be performed one after the other by the same worker.

        The future has a list of pairs, in the order of the requests and not necessarily for all of them: a trajectory
        with its seconds or the :class:`PolarBearError` of a run that failed, and the seconds that its worker took.
        """
        raise NotImplementedError

    def capacity(self) -> int | None:
        """How many runs it performs at once as it is now; ``None`` if it cannot tell."""
        return None

    def withdraw(self, runs: Collection[Future[Any]]) -> list[Future[Any]]:
        """Withdraw runs that have not begun, as far as it is known; returns those."""
        return [run for run in runs if run.cancel()]

    def end(self, least: Mapping[Future[Any], float]) -> dict[Future[Any], float]:  # noqa: ARG002 - for those that can
        """End runs that have taken at least so many seconds; returns those, and the seconds that they had taken."""
        return {}

    @abstractmethod
    def news(self) -> Sequence[str]:
        """Messages for the user since the last call, such as that there is no worker."""


@dataclass(frozen=True)
class PortfolioSource:
    """The algorithms of a race by name, and the registered portfolio that each comes from, if any."""

    algorithms: Mapping[str, Algorithm]
    registered: Mapping[str, Registered] = field(default_factory=dict)

    @classmethod
    def of(cls, portfolio: Any, options: Mapping[str, Any] | None, plugins: Plugins | None) -> PortfolioSource:
        """Algorithms from a registered name, from functions by name, or from a list of these and of algorithms."""
        if isinstance(portfolio, str):
            source = Registered(portfolio, _options_json(options, "portfolio_options"))
            made = (plugins or installed_plugins()).portfolio(portfolio, **json.loads(source.options))
            names = {algorithm.name: algorithm for algorithm in made}
            # Plugins registered by hand exist only in this process, so workers cannot look them up.
            return cls(names, dict.fromkeys(names, source) if plugins is None else {})
        if options:
            raise InvalidInputError("portfolio_options are for a registered portfolio, given by its name.")
        if isinstance(portfolio, list | tuple) and any(isinstance(part, str | Mapping) for part in portfolio):
            parts = [cls.of(part if isinstance(part, str | Mapping) else [part], None, plugins) for part in portfolio]
            as_portfolio([algorithm for part in parts for algorithm in part.algorithms.values()])  # checks the names
            return functools.reduce(operator.or_, parts)
        return cls({algorithm.name: algorithm for algorithm in as_portfolio(portfolio)})

    def without(self, names: Collection[str]) -> PortfolioSource:
        """The other algorithms."""
        kept = {name: algorithm for name, algorithm in self.algorithms.items() if name not in names}
        return PortfolioSource(kept, {name: source for name, source in self.registered.items() if name in kept})

    def __or__(self, other: PortfolioSource) -> PortfolioSource:
        return PortfolioSource({**self.algorithms, **other.algorithms}, {**self.registered, **other.registered})


@dataclass(frozen=True)
class SuiteSource:
    """The suite of a race, and its registered name, if any."""

    suite: Suite
    registered: Registered | None = None

    @classmethod
    def of(cls, suite: Any, options: Mapping[str, Any] | None, plugins: Plugins | None) -> SuiteSource:
        """Suite from a registered name, from a list of problems or from a function ``rng -> problem``."""
        if isinstance(suite, str):
            registered = Registered(suite, _options_json(options, "suite_options"))
            made = (plugins or installed_plugins()).suite(suite, **json.loads(registered.options))
            return cls(made, registered if plugins is None else None)
        if options:
            raise InvalidInputError("suite_options are for a registered suite, given by its name.")
        return cls(as_suite(suite))


def make_request(
    portfolio: PortfolioSource,
    suite: SuiteSource,
    algorithm: str,
    identity: Identity,
    horizon: float,
    seed: int,
    timepoints: FloatArray,
    unit: float = 1.0,
) -> Request:
    """Request for a run, with no more than it needs: only one problem of a list."""
    given = isinstance(suite.suite, GivenSuite)
    return Request(
        algorithm=portfolio.registered.get(algorithm) or portfolio.algorithms[algorithm],
        algorithm_name=algorithm,
        problem=suite.suite.build(identity) if given else None,
        suite=None if given else suite.registered or suite.suite,
        identity=identity,
        horizon=horizon,
        seed=seed,
        # A view, not a copy: a round may have thousands of runs.
        timepoints=timepoints[: np.searchsorted(timepoints, horizon, side="right")],
        unit=unit,
    )


def perform(request: Request) -> tuple[Trajectory, float]:
    """Run an algorithm on a problem; returns its trajectory at the timepoints, and the seconds it took.

    :raises InvalidInputError: the run broke the contract of :class:`Algorithm`.
    """
    algorithm = _algorithm(request)
    problem = request.problem if request.problem is not None else _suite(request).build(request.identity)
    began = time.perf_counter()
    trajectory = algorithm.run(problem, request.horizon * request.unit, request.seed)
    seconds = time.perf_counter() - began
    return sample_at_timepoints(trajectory, request), seconds


def single_threaded() -> contextlib.AbstractContextManager[object]:
    """Limit numerical libraries to one thread, since other workers use the other cores."""
    if multiprocessing.parent_process() is None:
        return _ONE_THREAD
    _limit_threads_once()
    return contextlib.nullcontext()


class _OneThread:
    """Limits the threads of a process while any of its own threads performs a run, and then restores what was before.

    The limit is one of the whole process: if each run restored what it has found, the last one would find that of
    another run, and leave it behind.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs = 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._runs += 1
            if self._runs == 1:
                self._limits = threadpool_limits(1)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._runs -= 1
            if not self._runs:
                self._limits.restore_original_limits()


_ONE_THREAD = _OneThread()


def sample_at_timepoints(trajectory: object, request: Request) -> Trajectory:
    """Check what a run returned, and reduce it to its values at the timepoints."""
    who = f"{request.algorithm_name!r} on {request.identity.name!r}"
    if not isinstance(trajectory, Trajectory):
        raise InvalidInputError(f"{who} must return a Trajectory, got {short(trajectory)}.")
    if trajectory.algorithm != request.algorithm_name or trajectory.instance != request.identity.name:
        raise InvalidInputError(
            f"{who} returned a trajectory of {trajectory.algorithm!r} on {trajectory.instance!r}; labels must agree."
        )
    grid, times = request.timepoints, request.timepoints * request.unit
    done = trajectory.end == "done"
    if trajectory.horizon < times[-1] and not done:
        raise InvalidInputError(
            f"{who} was asked to run until {request.horizon * request.unit:g}, and returned a trajectory with horizon "
            f"{trajectory.horizon:g}. A run that stops early and would never improve again returns horizon=horizon; "
            'one that has reached its target returns end="done".'
        )
    values = sample_staircase(trajectory, times)
    if done:  # nothing is better than the target, and all that reached it are equal
        values[times >= trajectory.times[-1]] = -np.inf
    steps = np.concatenate(([values[0] < np.inf], values[1:] < values[:-1]))
    # A plain Trajectory, even if the algorithm returned a subclass.
    return Trajectory(
        algorithm=request.algorithm_name,
        instance=request.identity.name,
        seed=request.seed,
        times=grid[steps],
        best=values[steps],
        horizon=request.horizon,
    )


def check_sendable(portfolio: PortfolioSource, suite: SuiteSource) -> None:
    """Raise an error that names the algorithm or suite that cannot be pickled, before anything has run."""
    parts: list[tuple[str, object]] = [
        (f"The algorithm {name!r}", algorithm)
        for name, algorithm in portfolio.algorithms.items()
        if name not in portfolio.registered
    ]
    if suite.registered is None:
        parts.append((f"The suite {suite.suite.name!r}", suite.suite))
    for what, part in parts:
        try:
            pickle_or_raise(part)
        except UnsendableError as problem:
            raise InvalidInputError(
                f"{what} cannot be sent to a worker process ({problem}). Define its functions and classes at the top "
                "level of a module, or race with workers=0, in this process."
            ) from None


def _algorithm(request: Request) -> Algorithm:
    if not isinstance(request.algorithm, Registered):
        return request.algorithm
    for algorithm in _registered_portfolio(request.algorithm):
        if algorithm.name == request.algorithm_name:
            return algorithm
    raise InvalidInputError(
        f"The portfolio {request.algorithm.name!r} has no algorithm {request.algorithm_name!r} in the worker. Check "
        "that all machines have the same versions."
    )


def _suite(request: Request) -> Suite:
    if request.suite is None:
        raise InvalidInputError(f"The request for {request.identity.name!r} has neither a problem nor a suite.")
    return _registered_suite(request.suite) if isinstance(request.suite, Registered) else request.suite


@functools.cache
def _limit_threads_once() -> None:
    """Limit the threads for the rest of the process; doing so for each run would take milliseconds each time."""
    threadpool_limits(1)


@functools.cache
def _registered_portfolio(source: Registered) -> tuple[Algorithm, ...]:
    return installed_plugins().portfolio(source.name, **json.loads(source.options))


@functools.cache
def _registered_suite(source: Registered) -> Suite:
    return installed_plugins().suite(source.name, **json.loads(source.options))


def _options_json(options: Mapping[str, Any] | None, what: str) -> str:
    try:
        return json.dumps(dict(options or {}), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise InvalidInputError(f"{what} must be JSON data ({reason(problem)}).") from None
