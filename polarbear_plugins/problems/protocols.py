"""Protocols of the hooks: problems, suites, and algorithms that run on problems.

A race draws *identities* from a suite, sends them to workers, and builds each problem there: an identity is plain data,
a problem may be large or not picklable.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import STORED, InvalidInputError, foreign_text, reason, short
from polarbear_plugins.names import as_name
from polarbear_plugins.problems.spaces import Configuration, ConfigurationSpace
from polarbear_plugins.trajectories.given import check_group
from polarbear_plugins.trajectories.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Identity:
    """What is needed to rebuild a problem, in another process or by another person.

    Parameters
    ----------
    name
        Short and unique in the suite: the ``instance`` of the trajectories.
    parameters
        What :meth:`Suite.build` needs besides the name: JSON data only.
    group, fixed_group
        The group to which the instance belongs, if any, and whether the groups are all there are; as for
        :class:`~polarbear_plugins.Trajectory`.  Either all instances of a suite have a group, or none has.

    Examples
    --------
    >>> Identity("f1-i3-d5", {"function": 1, "instance": 3, "dimension": 5}).to_json()
    '{"name": "f1-i3-d5", "parameters": {"function": 1, "instance": 3, "dimension": 5}}'
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    group: str | None = None
    fixed_group: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", as_name(self.name, "identity of a problem"))
        try:
            # The round trip also copies, so that later changes to the argument do not matter.
            parameters = json.loads(json.dumps(dict(self.parameters), allow_nan=False))
        except (TypeError, ValueError) as problem:
            raise InvalidInputError(
                f"identity {self.name!r}: parameters must be JSON data ({reason(problem)})."
            ) from None
        object.__setattr__(self, "parameters", MappingProxyType(parameters))
        group, fixed_group = check_group(self.group, self.fixed_group, f"identity {self.name!r}")
        object.__setattr__(self, "group", group)
        object.__setattr__(self, "fixed_group", fixed_group)

    @property
    def dimension(self) -> int | None:
        """Dimension of the problem: the parameter ``dimension``, or how many coordinates ``xopt``, its optimum, has.

        >>> Identity("d2-0-1", {"xopt": [0.5, -4.0]}).dimension
        2
        """
        given = self.parameters.get("dimension")
        if given is None:
            optimum = self.parameters.get("xopt")
            given = len(optimum) if isinstance(optimum, list) else None
        return given if isinstance(given, int) and not isinstance(given, bool) and given >= 1 else None

    def label(self, run: Trajectory) -> Trajectory:
        """A run on this problem, with its name, and the group and the dimension that are known of it."""
        run = run if run.instance == self.name else run.changed(instance=self.name)
        return run.in_group(self.group, self.fixed_group).described(dimension=self.dimension, end=run.end)

    def to_json(self) -> str:
        """Text from which :meth:`from_json` makes the same identity."""
        group = {} if self.group is None else {"group": self.group, "fixed_group": self.fixed_group}
        return json.dumps({"name": self.name, "parameters": dict(self.parameters), **group})

    @classmethod
    def from_json(cls, text: str) -> Identity:
        """Identity from the text of :meth:`to_json`."""
        try:
            data = json.loads(text)
            return cls(data["name"], data["parameters"], data.get("group"), data.get("fixed_group", False))
        except (KeyError, TypeError, ValueError, RecursionError) as problem:
            raise InvalidInputError(f"Not the identity of a problem: {short(text)} ({reason(problem)}).") from None

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[Callable[[str], Identity], tuple[str]]:
        return Identity.from_json, (self.to_json(),)


@runtime_checkable
class Problem(Protocol):
    """Something an algorithm can run on.  Concrete kinds: :class:`BoxProblem` and :class:`SpaceProblem`."""

    @property
    def identity(self) -> Identity:
        """What is needed to rebuild this problem."""
        ...


@runtime_checkable
class BoxProblem(Problem, Protocol):
    """Minimise a function of real numbers between bounds; the dimension is the number of bounds."""

    @property
    def lower(self) -> FloatArray:
        """Lower bounds."""
        ...

    @property
    def upper(self) -> FloatArray:
        """Upper bounds."""
        ...

    def evaluate(self, x: ArrayLike, /) -> float:
        """Value at ``x``, to be minimised; ``nan`` if the evaluation failed."""
        ...


@runtime_checkable
class SpaceProblem(Problem, Protocol):
    """Minimise a function of configurations from a space with conditions."""

    @property
    def space(self) -> ConfigurationSpace:
        """Parameters and conditions."""
        ...

    def evaluate(self, configuration: Configuration, /) -> float:
        """Value of a configuration, to be minimised; ``nan`` if the evaluation failed."""
        ...


@runtime_checkable
class Suite(Protocol):
    """A source of problem instances.

    It may have a number ``budget``: the default budget of ``polarbear race`` on it; and a whole number
    ``replications``: how often a race runs each algorithm on an instance by default.  It may have a method
    ``identity_named(name)`` that returns the identity of the instance to which an archive gives that name, or ``None``;
    without it, an archive to race against must call instances as the suite does.
    """

    @property
    def name(self) -> str:
        """Name, as users write it."""
        ...

    def identities(self, seed: int, /) -> Iterator[Identity]:
        """Draw problems cheaply, without building them.

        The same seed gives the same identities in the same order.  A finite suite yields each problem once.
        """
        ...

    def build(self, identity: Identity, /) -> Problem:
        """Build the problem of an identity; the same in every process."""
        ...


@runtime_checkable
class Algorithm(Protocol):
    """An anytime algorithm that runs itself on a problem.

    It may have a method ``refuses(problem)`` that returns why it cannot run on such a problem ("it takes one
    objective"), or ``None``.  A race asks it about the first problem of its suite, and leaves out an algorithm that
    has a reason.

    It may say with ``plans_by_horizon = True`` that it runs differently if it has more time, as one does that cools
    down until the end.  A race then never takes the beginning of a longer run for a shorter one.

    It may say with ``axis = "seconds"`` that its horizon is in seconds of the clock.  A race then performs no more runs
    at once than there are cores, and measures how much they slow each other down.
    """

    @property
    def name(self) -> str:
        """Name, different for every algorithm of a portfolio."""
        ...

    def run(self, problem: Problem, horizon: float, seed: int, /) -> Trajectory:
        """Run until ``horizon`` and return the trajectory, labelled with algorithm, instance and seed.

        All random choices derive from ``seed``.  The horizon of the trajectory is ``horizon``, also if the algorithm
        ends by itself earlier and would not improve any more.

        :raises InvalidInputError: this algorithm cannot run on such a problem; says which it accepts.
        """
        ...


def reason_against(algorithm: Algorithm, problem: Problem) -> str | None:
    """Why an algorithm cannot run on a problem; ``None`` if it can, or does not say.

    >>> class OneObjective:
    ...     name = "cma-es"
    ...     def refuses(self, problem):
    ...         return "it takes one objective"
    >>> reason_against(OneObjective(), problem=None)
    'it takes one objective'
    """
    refuses = getattr(algorithm, "refuses", None)
    why = None if refuses is None else refuses(problem)
    return None if why is None else foreign_text(why, STORED)


def plans_by_horizon(algorithm: Algorithm) -> bool:
    """Whether an algorithm says that it runs differently if it has more time."""
    return bool(getattr(algorithm, "plans_by_horizon", False))


def counts_seconds(algorithm: Algorithm) -> bool:
    """Whether an algorithm says that its horizon is in seconds of the clock."""
    return bool(getattr(algorithm, "axis", None) == "seconds")


def refusal(algorithm: Algorithm, problem: Problem, why: str) -> InvalidInputError:
    """The error of an algorithm that is run on a problem that it refuses."""
    return InvalidInputError(f"{algorithm.name!r} cannot run on {problem.identity.name!r}: {why}.")


@runtime_checkable
class ChargedProblem(Problem, Protocol):
    """A problem over a configuration space whose evaluations have fidelities and costs.

    It is also a :class:`~polarbear_plugins.problems.protocols.SpaceProblem`; ``evaluate`` is the full-fidelity value.
    """

    @property
    def space(self) -> ConfigurationSpace:
        """Parameters and conditions."""
        ...

    @property
    def least_fidelity(self) -> float:
        """Smallest fidelity; full fidelity is 1, which is the value for a problem without others."""
        ...

    def measure(self, configuration: Configuration, fidelity: float = 1.0, /) -> tuple[float, float]:
        """Value to be minimised, and the cost of this evaluation on the time axis of the problem."""
        ...


@runtime_checkable
class ObjectivesProblem(Problem, Protocol):
    """A problem over a configuration space with several objectives."""

    @property
    def space(self) -> ConfigurationSpace:
        """Parameters and conditions."""
        ...

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of the objectives."""
        ...

    def measure_objectives(self, configuration: Configuration, /) -> tuple[tuple[float, ...], float]:
        """Values to be minimised, each scaled to bounds 0 and 1; and the cost of this evaluation."""
        ...
