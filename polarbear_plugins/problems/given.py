"""Problems, suites and portfolios from a user's list, function or mapping."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.names import as_name, distinct_names
from polarbear_plugins.problems.protocols import Algorithm, Identity, Problem, Suite
from polarbear_plugins.trajectories.trajectory import Trajectory

RunFunction: TypeAlias = Callable[[Any, float, int], Trajectory]


@dataclass(frozen=True, slots=True)
class GivenProblem:
    """A user's object as a problem; plain functions receive ``value`` itself."""

    identity: Identity
    value: object


@dataclass(frozen=True, slots=True)
class FunctionAlgorithm:
    """A function ``run(problem, horizon, seed)`` as an algorithm; labels the trajectory it returns."""

    name: str
    function: RunFunction

    @property
    def axis(self) -> object:
        """What the function says that its horizon counts: its attribute ``axis``, if it has one."""
        return getattr(self.function, "axis", None)

    def run(self, problem: Problem, horizon: float, seed: int, /) -> Trajectory:
        """Run the function on the problem, or on the user's object that it wraps."""
        trajectory = self.function(problem.value if isinstance(problem, GivenProblem) else problem, horizon, seed)
        if not isinstance(trajectory, Trajectory):
            raise InvalidInputError(f"{self.name!r} must return a Trajectory, got {type(trajectory).__name__}.")
        # Checked again: a race keeps best values so far, so an incumbent that gets worse is refused.
        return replace(trajectory, algorithm=self.name, instance=problem.identity.name, seed=seed)


class GivenSuite:
    """A list as a suite: problems are drawn without replacement, in an order that depends on the seed."""

    def __init__(self, problems: Sequence[object], name: str = "given") -> None:
        if not problems:
            raise InvalidInputError("The list of problems is empty.")
        self.name = name
        self._problems: dict[str, Problem] = {}
        for position, problem in enumerate(problems):
            if isinstance(problem, Problem) and isinstance(problem.identity, Identity):
                built: Problem = problem
            else:
                built = GivenProblem(_identity_of(problem, position), problem)
            if built.identity.name in self._problems:
                raise InvalidInputError(
                    f"Two problems in the list are called {built.identity.name!r}; names must differ."
                )
            self._problems[built.identity.name] = built

    def identities(self, seed: int, /) -> Iterator[Identity]:
        """Draw each problem once."""
        seed = as_whole_number(seed, "seed", at_least=0)
        problems = list(self._problems.values())
        for position in np.random.default_rng(seed).permutation(len(problems)):
            yield problems[position].identity

    def identity_named(self, name: str, /) -> Identity | None:
        """Identity of the problem of that name; ``None`` if there is none."""
        return self._problems[name].identity if name in self._problems else None

    def build(self, identity: Identity, /) -> Problem:
        """Return the problem of that name."""
        try:
            return self._problems[identity.name]
        except KeyError:
            raise InvalidInputError(f"The list has no problem called {identity.name!r}.") from None


class SampledSuite:
    """A function that draws a problem from a random generator, as an endless suite."""

    def __init__(self, sample: Callable[[np.random.Generator], object], name: str | None = None) -> None:
        self.name = str(name or getattr(sample, "__name__", "sampled"))
        self._sample = sample

    def identities(self, seed: int, /) -> Iterator[Identity]:
        """Draw problems endlessly; each has its own random stream."""
        seed = as_whole_number(seed, "seed", at_least=0)
        for index in itertools.count():
            yield Identity(f"{seed}-{index}", {"seed": seed, "index": index})

    def identity_named(self, name: str, /) -> Identity | None:
        """Identity of a problem that was drawn with some seed."""
        numbers = re.fullmatch(r"(0|[1-9]\d{0,18})-(0|[1-9]\d{0,18})", name, re.ASCII)
        return None if numbers is None else Identity(name, {"seed": int(numbers[1]), "index": int(numbers[2])})

    def build(self, identity: Identity, /) -> Problem:
        """Call the function with the random stream of that identity."""
        try:
            stream = [
                as_whole_number(identity.parameters[key], f"identity {identity.name!r}: {key}", at_least=0)
                for key in ("seed", "index")
            ]
        except KeyError as missing:
            raise InvalidInputError(
                f"identity {identity.name!r} has no {missing}; it was not drawn from this suite."
            ) from None
        return GivenProblem(identity, self._sample(np.random.default_rng(stream)))


def cube(dimension: int, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """Bounds of a box with equal sides, read-only.

    >>> cube(2, -5, 5)
    (array([-5., -5.]), array([5., 5.]))
    """
    lower, upper = np.full(dimension, float(low)), np.full(dimension, float(high))
    lower.flags.writeable = upper.flags.writeable = False
    return lower, upper


def as_suite(problems: Suite | Sequence[object] | Callable[[np.random.Generator], object]) -> Suite:
    """Suite from a list of problems or a function ``rng -> problem``; a suite is returned unchanged.

    >>> suite = as_suite(["easy.txt", "hard.txt"])
    >>> [identity.name for identity in suite.identities(0)]
    ['easy.txt', 'hard.txt']
    >>> suite.build(Identity("hard.txt")).value
    'hard.txt'
    """
    if isinstance(problems, Suite):
        return problems
    if isinstance(problems, Sequence) and not isinstance(problems, str | bytes):
        return GivenSuite(problems)
    if callable(problems):
        return SampledSuite(problems)
    raise InvalidInputError(
        f"A suite is a registered name, a list of problems or a function rng -> problem; got {problems!r}."
    )


def as_portfolio(algorithms: Mapping[str, RunFunction] | Iterable[Algorithm]) -> tuple[Algorithm, ...]:
    """Portfolio from functions by name, or from a list of algorithms.

    >>> def stand_still(problem, horizon, seed):
    ...     return Trajectory(algorithm="?", instance="?", times=[1], best=[float(problem)], horizon=horizon)
    >>> [algorithm] = as_portfolio({"lazy": stand_still})
    >>> algorithm.run(as_suite([7]).build(Identity("7")), 10, 0)
    Trajectory(algorithm='lazy', instance='7', seed=0, 1 steps to 7 at time 1, watched until 10)
    """
    if isinstance(algorithms, Mapping):
        for name, function in algorithms.items():
            if not callable(function):
                raise InvalidInputError(f"The algorithm {name!r} must be a function run(problem, horizon, seed).")
        portfolio: tuple[Algorithm, ...] = tuple(
            FunctionAlgorithm(as_name(name, "name of an algorithm"), function) for name, function in algorithms.items()
        )
    else:
        try:
            portfolio = tuple(algorithms)
        except TypeError:
            raise InvalidInputError(
                f"A portfolio is a registered name, functions by name or a list of algorithms; got {algorithms!r}."
            ) from None
        for algorithm in portfolio:
            if not isinstance(algorithm, Algorithm):
                raise InvalidInputError(
                    f"{algorithm!r} is not an algorithm: it needs a name and run(problem, horizon, seed). "
                    "Pass plain functions by name: {'mine': run}."
                )
    distinct_names((algorithm.name for algorithm in portfolio), "algorithms of the portfolio")
    return portfolio


def _identity_of(problem: object, position: int) -> Identity:
    """Identity of a user's object: its text or whole number, its ``name``, or else its position."""
    if isinstance(problem, str | int | np.integer) and not isinstance(problem, bool):
        return Identity(as_name(problem, f"problems[{position}]"))
    name = getattr(problem, "name", None)
    return Identity(name if isinstance(name, str) and name else str(position))
