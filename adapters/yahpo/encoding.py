"""Checked configurations as the rows that a surrogate takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.problems.spaces import Categorical, Configuration, ConfigurationSpace, Integer, Value

#: The value of a categorical column that is not active.
NOT_ACTIVE = "#na#"
#: What happens to a parameter that is set although it is not active.
Inactive: TypeAlias = Literal["refuse", "drop"]

_Conditions: TypeAlias = tuple[tuple[str, frozenset[Value]], ...]


class Rows(NamedTuple):
    """A row of each input of a surrogate: codes of the categorical columns, and numbers."""

    codes: list[int]
    numbers: list[float]


class _Category(NamedTuple):
    name: str
    place: int
    conditions: _Conditions
    codes: Mapping[Value, int]


class _Number(NamedTuple):
    name: str
    place: int
    conditions: _Conditions
    lower: float
    upper: float
    kinds: tuple[type, ...]


class Encoder:
    """Writes configurations of a space into rows.

    Parameters
    ----------
    space
        The parameters that are searched.
    numbers, categories
        Position of each column in its row; also of columns that are not searched.
    encoding
        Code of each value of each categorical column.
    who
        Whose configurations they are, for messages.
    """

    def __init__(
        self,
        space: ConfigurationSpace,
        numbers: Mapping[str, int],
        categories: Mapping[str, int],
        encoding: Mapping[str, Mapping[str, int]],
        who: str,
    ) -> None:
        self._space, self._who = space, who
        self._numbers: list[_Number] = []
        self._categories: list[_Category] = []
        for name, parameter in space.parameters.items():
            conditions = tuple((on.parent, frozenset(on.values)) for on in space.conditions if on.child == name)
            if isinstance(parameter, Categorical):
                codes = {choice: encoding[name][str(choice)] for choice in parameter.choices}
                self._categories.append(_Category(name, categories[name], conditions, codes))
            else:
                kinds: tuple[type, ...] = (int, np.integer) if isinstance(parameter, Integer) else (float, int)
                self._numbers.append(_Number(name, numbers[name], conditions, parameter.lower, parameter.upper, kinds))

    def encode(self, configuration: Configuration, empty: Rows, inactive: Inactive = "refuse") -> Rows:
        """Write a configuration into a copy of rows in which the other columns are filled already.

        :raises InvalidInputError: an active parameter is missing or out of range, an inactive one is set (unless
            ``inactive`` is ``drop``), or one is unknown.
        """
        rows = Rows(empty.codes.copy(), empty.numbers.copy())
        if self._write(configuration, rows):
            return rows
        # Something is wrong.  The following is slower and says what.
        if inactive == "drop":
            active = set(self._space.active(configuration))
            configuration = {
                name: value
                for name, value in configuration.items()
                if name in active or name not in self._space.parameters
            }
        try:
            self._space.check(configuration)
        except InvalidInputError as problem:
            raise InvalidInputError(f"{self._who}: {problem}") from None
        rows = Rows(empty.codes.copy(), empty.numbers.copy())
        if not self._write(configuration, rows):
            raise InvalidInputError(f"{self._who}: the configuration {dict(configuration)!r} cannot be encoded.")
        return rows

    def _write(self, configuration: Configuration, rows: Rows) -> bool:
        """Write the active parameters; false if one is missing or out of range, or an inactive one is set."""
        codes, numbers = rows
        written = 0
        get = configuration.get
        for name, place, conditions, lower, upper, kinds in self._numbers:
            if conditions and not _hold(conditions, configuration):
                continue
            value: Any = get(name)
            if not isinstance(value, kinds) or value is True or value is False:
                return False
            if not lower <= value <= upper:  # type: ignore[operator]
                return False
            numbers[place] = value  # type: ignore[call-overload]
            written += 1
        for name, place, conditions, choices in self._categories:
            if conditions and not _hold(conditions, configuration):
                continue
            choice = get(name)
            try:
                codes[place] = choices[choice]  # type: ignore[index]  # None is refused like other unknown values
            except (KeyError, TypeError):
                return False
            written += 1
        # A parent that is set but not active is one too many here, so conditions need not be followed further up.
        return written == len(configuration)


def _hold(conditions: _Conditions, configuration: Configuration) -> bool:
    return all(configuration.get(parent) in values for parent, values in conditions)
