"""Configuration spaces: named parameters, some active only when others have certain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.errors import InvalidInputError

Value: TypeAlias = bool | int | float | str
Configuration: TypeAlias = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Float:
    """A real parameter between two bounds, both included; ``log`` if sampled on the log scale."""

    lower: float
    upper: float
    log: bool = False

    def __post_init__(self) -> None:
        _check_bounds(self.lower, self.upper, self.log)

    def accepts(self, value: object) -> bool:
        """Whether the value lies in the range."""
        return isinstance(value, int | float) and not isinstance(value, bool) and self.lower <= value <= self.upper

    def sample(self, rng: np.random.Generator) -> float:
        """Draw a value uniformly, on the log scale if ``log``."""
        if self.log:
            drawn = math.exp(rng.uniform(math.log(self.lower), math.log(self.upper)))
            return min(max(drawn, self.lower), self.upper)
        return float(rng.uniform(self.lower, self.upper))


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer parameter between two bounds, both included; ``log`` if sampled on the log scale."""

    lower: int
    upper: int
    log: bool = False

    def __post_init__(self) -> None:
        for bound in (self.lower, self.upper):
            if abs(as_whole_number(bound, "The bound of an integer parameter")) >= 2**62:
                raise InvalidInputError(f"The bound of an integer parameter must be below 2**62, got {bound}.")
        _check_bounds(self.lower, self.upper, self.log)

    def accepts(self, value: object) -> bool:
        """Whether the value is whole and lies in the range."""
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        return whole and bool(self.lower <= value <= self.upper)  # type: ignore[operator]

    def sample(self, rng: np.random.Generator) -> int:
        """Draw a value uniformly, on the log scale if ``log``."""
        if self.log:
            # Half a unit on either side gives the bounds as much probability as their neighbours.
            drawn = round(math.exp(rng.uniform(math.log(self.lower - 0.5), math.log(self.upper + 0.5))))
            return min(max(drawn, self.lower), self.upper)
        return int(rng.integers(self.lower, self.upper, endpoint=True))


@dataclass(frozen=True, slots=True)
class Categorical:
    """A parameter with unordered values."""

    choices: tuple[Value, ...]

    def __post_init__(self) -> None:
        if not self.choices:
            raise InvalidInputError("A categorical parameter needs at least one choice.")

    def accepts(self, value: object) -> bool:
        """Whether the value is one of the choices."""
        return any(value == choice and type(value) is type(choice) for choice in self.choices)

    def sample(self, rng: np.random.Generator) -> Value:
        """Draw a choice, each equally likely."""
        return self.choices[int(rng.integers(len(self.choices)))]


Parameter: TypeAlias = Float | Integer | Categorical


@dataclass(frozen=True, slots=True)
class Condition:
    """``child`` is active only if ``parent`` is active and has one of the ``values``."""

    child: str
    parent: str
    values: tuple[Value, ...]


class ConfigurationSpace:
    """Named parameters and the conditions under which they are active.

    Several conditions on one parameter must all hold.

    Examples
    --------
    >>> space = ConfigurationSpace(
    ...     {"kernel": Categorical(("linear", "radial")), "gamma": Float(1e-4, 1.0, log=True)},
    ...     [Condition("gamma", parent="kernel", values=("radial",))],
    ... )
    >>> space.active({"kernel": "linear", "gamma": 0.1})
    ('kernel',)
    >>> space.check({"kernel": "linear", "gamma": 0.1})
    Traceback (most recent call last):
    polarbear_plugins.errors.InvalidInputError: The parameter 'gamma' is set, but is active only if kernel is radial.
    """

    __slots__ = ("_order", "conditions", "parameters")

    def __init__(self, parameters: Mapping[str, Parameter], conditions: tuple[Condition, ...] | list[Condition] = ()):
        self.parameters: Mapping[str, Parameter] = MappingProxyType(dict(parameters))
        self.conditions = tuple(conditions)
        for condition in self.conditions:
            for name in (condition.child, condition.parent):
                if name not in self.parameters:
                    raise InvalidInputError(f"A condition names the parameter {name!r}, which the space does not have.")
            for value in condition.values:
                if not self.parameters[condition.parent].accepts(value):
                    raise InvalidInputError(
                        f"The condition on {condition.child!r} requires {condition.parent} = {value!r}, "
                        "which is not a value of that parameter."
                    )
        self._order = self._parents_first()

    def active(self, configuration: Configuration) -> tuple[str, ...]:
        """Names of the active parameters, in the order of the space."""
        active: set[str] = set()
        for name in self._order:
            if all(
                condition.parent in active and configuration.get(condition.parent) in condition.values
                for condition in self._conditions_on(name)
            ):
                active.add(name)
        return tuple(name for name in self.parameters if name in active)

    def check(self, configuration: Configuration) -> None:
        """Refuse a configuration that lacks an active parameter, sets an inactive one or leaves a range."""
        unknown = [name for name in configuration if name not in self.parameters]
        if unknown:
            raise InvalidInputError(
                f"The space has no parameter {unknown[0]!r}. It has {', '.join(map(repr, self.parameters))}."
            )
        active = self.active(configuration)
        for name, parameter in self.parameters.items():
            if name in configuration and name not in active:
                why = " and ".join(
                    f"{condition.parent} is {' or '.join(map(str, condition.values))}"
                    for condition in self._conditions_on(name)
                )
                raise InvalidInputError(f"The parameter {name!r} is set, but is active only if {why}.")
            if name in active:
                if name not in configuration:
                    raise InvalidInputError(f"The parameter {name!r} is missing; expected {parameter}.")
                if not parameter.accepts(configuration[name]):
                    raise InvalidInputError(f"The parameter {name!r} is {configuration[name]!r}; expected {parameter}.")

    def sample(self, rng: np.random.Generator) -> dict[str, Value]:
        """Draw a configuration: each active parameter from its range; inactive ones are left out."""
        drawn = {name: parameter.sample(rng) for name, parameter in self.parameters.items()}
        return {name: drawn[name] for name in self.active(drawn)}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConfigurationSpace):
            return NotImplemented
        return self.parameters == other.parameters and set(self.conditions) == set(other.conditions)

    def __hash__(self) -> int:
        return hash((frozenset(self.parameters.items()), frozenset(self.conditions)))

    def __reduce__(self) -> tuple[Any, ...]:
        return ConfigurationSpace, (dict(self.parameters), self.conditions)

    def __repr__(self) -> str:
        return f"ConfigurationSpace({dict(self.parameters)!r}, {list(self.conditions)!r})"

    def _conditions_on(self, name: str) -> list[Condition]:
        return [condition for condition in self.conditions if condition.child == name]

    def _parents_first(self) -> tuple[str, ...]:
        order: list[str] = []
        left = dict.fromkeys(self.parameters)
        while left:
            free = [name for name in left if all(c.parent not in left for c in self._conditions_on(name))]
            if not free:
                raise InvalidInputError(
                    f"The conditions on {', '.join(map(repr, left))} depend on each other in a circle."
                )
            order += free
            for name in free:
                del left[name]
        return tuple(order)


def _check_bounds(lower: float, upper: float, log: bool) -> None:
    lower, upper = (as_number(bound, "The bound of a parameter") for bound in (lower, upper))
    if not (lower <= upper and math.isfinite(upper - lower)):
        raise InvalidInputError(f"A parameter needs finite bounds with lower <= upper, got {lower!r} and {upper!r}.")
    if log and lower <= 0:
        raise InvalidInputError(f"A parameter on the log scale needs a positive lower bound, got {lower!r}.")
