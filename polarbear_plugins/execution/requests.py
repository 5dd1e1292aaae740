"""What a worker does: build the problem, run the algorithm, bring home its values at the timepoints.

A request is what travels to the worker.  Registered portfolios and suites travel as their names and are made there;
what the user handed over as Python travels as it is.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import operator
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError, PolarBearError, short
from polarbear_plugins.execution.local_processes import UnsendableError, serialized
from polarbear_plugins.plugins.manager import Plugins, installed_plugins
from polarbear_plugins.problems.given import GivenSuite, as_portfolio, as_suite
from polarbear_plugins.problems.protocols import Algorithm, Identity, Problem, Suite
from polarbear_plugins.trajectories.trajectory import Trajectory, sample_staircase


@dataclass(frozen=True, slots=True)
class Registered:
    """A portfolio or suite that a plugin makes, by its name and options (JSON text)."""

    name: str
    options: str


@dataclass(frozen=True, slots=True)
class Request:
    """One run, with everything a worker needs for it."""

    algorithm: Algorithm | Registered
    algorithm_name: str
    problem: Problem | None
    suite: Suite | Registered | None
    identity: Identity
    horizon: float
    seed: int
    timepoints: tuple[float, ...]


class UnfitWorkerError(PolarBearError):
    """No worker can carry out a run: they lack what it needs, or have another version."""


class RunExecutor(Executor):
    """An executor that knows what a run is: it keeps the time of each, and has its own way to send it."""

    @abstractmethod
    def submit_run(self, request: Request, timeout: float | None) -> Future[tuple[Trajectory, float]]:
        """Schedule a run, which is ended after so many seconds.

        The future raises a :class:`PolarBearError` if the run failed, :class:`UnfitWorkerError` if nobody can carry it
        out, and ``BrokenExecutor`` if the executor is lost.
        """

    @abstractmethod
    def news(self) -> Sequence[str]:
        """Tell what the user should know and has not been told yet, such as that there is no worker."""


@dataclass(frozen=True)
class PortfolioSource:
    """Where the algorithms of a race come from: for each name, the algorithm itself or who makes it."""

    algorithms: Mapping[str, Algorithm]
    registered: Mapping[str, Registered] = field(default_factory=dict)

    @classmethod
    def of(cls, portfolio: Any, options: Mapping[str, Any] | None, plugins: Plugins | None) -> PortfolioSource:
        """Make algorithms of a registered name, of functions by name, or of a list of these and of algorithms."""
        if isinstance(portfolio, str):
            source = Registered(portfolio, _options_text(options, "portfolio_options"))
            made = (plugins or installed_plugins()).portfolio(portfolio, **json.loads(source.options))
            names = {algorithm.name: algorithm for algorithm in made}
            # Plugins that were registered by hand exist in this process only.
            return cls(names, dict.fromkeys(names, source) if plugins is None else {})
        if options:
            raise InvalidInputError("portfolio_options are for a registered portfolio, given by its name.")
        if isinstance(portfolio, list | tuple) and any(isinstance(part, str | Mapping) for part in portfolio):
            parts = [cls.of(part if isinstance(part, str | Mapping) else [part], None, plugins) for part in portfolio]
            as_portfolio([algorithm for part in parts for algorithm in part.algorithms.values()])  # names must differ
            return functools.reduce(operator.or_, parts)
        return cls({algorithm.name: algorithm for algorithm in as_portfolio(portfolio)})

    def __or__(self, other: PortfolioSource) -> PortfolioSource:
        return PortfolioSource({**self.algorithms, **other.algorithms}, {**self.registered, **other.registered})


@dataclass(frozen=True)
class SuiteSource:
    """Where the problems of a race come from."""

    suite: Suite
    registered: Registered | None = None

    @classmethod
    def of(cls, suite: Any, options: Mapping[str, Any] | None, plugins: Plugins | None) -> SuiteSource:
        """Make a suite of a registered name, of a list of problems or of a function ``rng -> problem``."""
        if isinstance(suite, str):
            registered = Registered(suite, _options_text(options, "suite_options"))
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
) -> Request:
    """Put a run together, sending no more than it needs: of a list of problems only the one."""
    given = isinstance(suite.suite, GivenSuite)
    return Request(
        algorithm=portfolio.registered.get(algorithm) or portfolio.algorithms[algorithm],
        algorithm_name=algorithm,
        problem=suite.suite.build(identity) if given else None,
        suite=None if given else suite.registered or suite.suite,
        identity=identity,
        horizon=horizon,
        seed=seed,
        timepoints=_until(timepoints.tobytes(), horizon),
    )


@functools.lru_cache(maxsize=64)
def _until(timepoints: bytes, horizon: float) -> tuple[float, ...]:
    """Timepoints up to the horizon, the same object for all the runs of a round."""
    grid = np.frombuffer(timepoints)
    return tuple(grid[grid <= horizon].tolist())


def perform(request: Request) -> tuple[Trajectory, float]:
    """Run an algorithm on a problem; returns its values at the timepoints, as a trajectory, and the seconds it took.

    :raises InvalidInputError: the run broke the contract of :class:`Algorithm`.
    """
    algorithm = _algorithm(request)
    problem = request.problem if request.problem is not None else _suite(request).build(request.identity)
    began = time.perf_counter()
    trajectory = algorithm.run(problem, request.horizon, request.seed)
    seconds = time.perf_counter() - began
    return sampled(trajectory, request), seconds


def perform_alone(request: Request) -> tuple[Trajectory, float]:
    """:func:`perform` on one thread, beside others that do the same."""
    if multiprocessing.parent_process() is not None:
        _one_thread_from_now_on()
        return perform(request)
    with threadpool_limits(1):
        return perform(request)


def sampled(trajectory: object, request: Request) -> Trajectory:
    """Check what a run returned and keep of it the values at the timepoints."""
    who = f"{request.algorithm_name!r} on {request.identity.name!r}"
    if not isinstance(trajectory, Trajectory):
        raise InvalidInputError(f"{who} must return a Trajectory, got {short(trajectory)}.")
    if trajectory.algorithm != request.algorithm_name or trajectory.instance != request.identity.name:
        raise InvalidInputError(
            f"{who} returned a trajectory of {trajectory.algorithm!r} on {trajectory.instance!r}; labels must agree."
        )
    if trajectory.horizon < request.timepoints[-1]:
        raise InvalidInputError(
            f"{who} was asked to run until {request.horizon:g} and was watched only until {trajectory.horizon:g}. A "
            "run that ends by itself and would never improve again has horizon=horizon."
        )
    grid = np.asarray(request.timepoints)
    values = sample_staircase(trajectory, grid)
    steps = np.concatenate(([values[0] < np.inf], values[1:] < values[:-1]))
    # A plain one, whatever class of his own an algorithm's author derived from it.
    return Trajectory(
        algorithm=request.algorithm_name,
        instance=request.identity.name,
        seed=request.seed,
        times=grid[steps],
        best=values[steps],
        horizon=request.horizon,
    )


def check_sendable(portfolio: PortfolioSource, suite: SuiteSource) -> None:
    """Refuse what cannot travel to another process, by its name and before anything has run."""
    parts: list[tuple[str, object]] = [
        (f"The algorithm {name!r}", algorithm)
        for name, algorithm in portfolio.algorithms.items()
        if name not in portfolio.registered
    ]
    if suite.registered is None:
        parts.append((f"The suite {suite.suite.name!r}", suite.suite))
    for what, part in parts:
        try:
            serialized(part)
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
        f"The portfolio {request.algorithm.name!r} has no {request.algorithm_name!r} in the worker; do all machines "
        "have the same versions?"
    )


def _suite(request: Request) -> Suite:
    if request.suite is None:
        raise InvalidInputError(f"{request.identity.name!r} came without a suite.")
    return _registered_suite(request.suite) if isinstance(request.suite, Registered) else request.suite


@functools.cache
def _one_thread_from_now_on() -> None:
    """Limit the threads of a process that does nothing else; looking for the libraries takes milliseconds."""
    threadpool_limits(1)


@functools.cache
def _registered_portfolio(source: Registered) -> tuple[Algorithm, ...]:
    return installed_plugins().portfolio(source.name, **json.loads(source.options))


@functools.cache
def _registered_suite(source: Registered) -> Suite:
    return installed_plugins().suite(source.name, **json.loads(source.options))


def _options_text(options: Mapping[str, Any] | None, what: str) -> str:
    try:
        return json.dumps(dict(options or {}), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise InvalidInputError(f"{what} must be JSON data ({problem}).") from None
