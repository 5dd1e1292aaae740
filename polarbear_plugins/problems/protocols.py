"""The protocols that hooks speak: problems, suites of them, and algorithms that run on them.

A race draws *identities* from a suite, sends them to workers, and builds each problem where it is needed: an identity
is plain data, a problem may be neither small nor picklable.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.names import as_name
from polarbear_plugins.problems.spaces import Configuration, ConfigurationSpace
from polarbear_plugins.trajectories.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Identity:
    """What it takes to build a problem again, in another process or by another person.

    Parameters
    ----------
    name
        Short, and different for every problem of a suite: the ``instance`` of the trajectories.
    parameters
        What :meth:`Suite.build` needs beside the name: JSON data only.

    Examples
    --------
    >>> Identity("f1-i3-d5", {"function": 1, "instance": 3, "dimension": 5}).to_json()
    '{"name": "f1-i3-d5", "parameters": {"function": 1, "instance": 3, "dimension": 5}}'
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", as_name(self.name, "identity of a problem"))
        try:
            # A round trip also copies, so that the identity cannot change behind its back.
            parameters = json.loads(json.dumps(dict(self.parameters), allow_nan=False))
        except (TypeError, ValueError) as problem:
            raise InvalidInputError(f"identity {self.name!r}: parameters must be JSON data ({problem}).") from None
        object.__setattr__(self, "parameters", MappingProxyType(parameters))

    def to_json(self) -> str:
        """Text from which :meth:`from_json` makes the same identity."""
        return json.dumps({"name": self.name, "parameters": dict(self.parameters)})

    @classmethod
    def from_json(cls, text: str) -> Identity:
        """Identity from the text of :meth:`to_json`."""
        try:
            data = json.loads(text)
            return cls(data["name"], data["parameters"])
        except (KeyError, TypeError, ValueError, RecursionError) as problem:
            raise InvalidInputError(f"Not the identity of a problem: {str(text)[:80]!r} ({problem}).") from None

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[Callable[[str], Identity], tuple[str]]:
        return Identity.from_json, (self.to_json(),)


@runtime_checkable
class Problem(Protocol):
    """Something an algorithm can run on.  Concrete kinds: :class:`BoxProblem` and :class:`SpaceProblem`."""

    @property
    def identity(self) -> Identity:
        """What it takes to build this problem again."""
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
    """Problems that instances are drawn from.

    It may have a number ``budget``: how far ``polarbear race`` goes on it unless the user says otherwise.
    """

    @property
    def name(self) -> str:
        """Name, as users ask for it."""
        ...

    def identities(self, seed: int, /) -> Iterator[Identity]:
        """Draw problems, cheaply and without building them.

        The same seed gives the same identities in the same order.  A finite suite gives each of its problems once.
        """
        ...

    def build(self, identity: Identity, /) -> Problem:
        """Build the problem of an identity, as it was drawn; any process gets the same problem."""
        ...


@runtime_checkable
class Algorithm(Protocol):
    """An anytime algorithm that runs itself on a problem."""

    @property
    def name(self) -> str:
        """Name, different for every algorithm of a portfolio."""
        ...

    def run(self, problem: Problem, horizon: float, seed: int, /) -> Trajectory:
        """Run until ``horizon`` and return the trajectory, labelled with algorithm, instance and seed.

        All random choices derive from ``seed``.  The trajectory is watched until ``horizon`` unless the algorithm
        ends by itself earlier and would never improve again, in which case the horizon is still ``horizon``.

        :raises InvalidInputError: this algorithm cannot run on such a problem; says which it takes.
        """
        ...


@runtime_checkable
class ChargedProblem(Problem, Protocol):
    """A problem over a configuration space whose evaluations have fidelities and costs.

    It is a :class:`~polarbear_plugins.problems.protocols.SpaceProblem` too: ``evaluate`` is the value at full fidelity.
    """

    @property
    def space(self) -> ConfigurationSpace:
        """Parameters and conditions."""
        ...

    @property
    def least_fidelity(self) -> float:
        """Smallest fidelity; the full one is 1.  It is 1 for a problem that has no other."""
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
        """Values to be minimised, scaled such that 0 and 1 are the bounds of each; and the cost of this evaluation."""
        ...
