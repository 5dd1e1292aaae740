"""Options of plugins: keywords in Python, text on the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from polarbear_plugins.checks import as_choice, as_whole_number
from polarbear_plugins.errors import InvalidInputError, short

#: Takes the value of an option and its name for messages; returns what the value means.
Reader: TypeAlias = Callable[[object, str], Any]


def read_options(options: Mapping[str, object], readers: Mapping[str, Reader], who: str) -> dict[str, Any]:
    """Read the given options, and refuse unknown ones.

    Parameters
    ----------
    readers
        Reader of each option.
    who
        Whose options they are, for messages.

    Examples
    --------
    >>> read_options({"dimension": "5"}, {"dimension": whole_number(2)}, "The suite 'ma-bbob'")
    {'dimension': 5}
    >>> read_options({"dim": "5"}, {"dimension": whole_number(2)}, "The suite 'ma-bbob'")
    Traceback (most recent call last):
    polarbear_plugins.errors.InvalidInputError: The suite 'ma-bbob' has no option 'dim'. It takes dimension.
    """
    for name in options:
        if name not in readers:
            raise InvalidInputError(f"{who} has no option {name!r}. It takes {', '.join(readers)}.")
    return {name: readers[name](value, f"{who}: {name}") for name, value in options.items()}


def flag(value: object, what: str) -> bool:
    """Reader of true or false.

    >>> flag("yes", "maximize")
    True
    """
    texts = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    found = texts.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise InvalidInputError(f"{what}: expected true or false, got {short(value)}.")
    return found


def one_of(choices: Iterable[str]) -> Reader:
    """Reader of one of several names.

    >>> one_of(("linear", "log"))("log", "scale")
    'log'
    """
    names = tuple(choices)
    return lambda value, what: as_choice(value, names, what)


def names(value: object, what: str) -> tuple[str, ...]:
    """Reader of several names, separated by commas or as a list.

    >>> names("tpe, random", "samplers")
    ('tpe', 'random')
    """
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, Sequence) or not parts or not all(isinstance(part, str) and part for part in parts):
        raise InvalidInputError(f"{what}: expected names separated by commas, got {short(value)}.")
    return tuple(part.strip() for part in parts)


def whole_number(at_least: int, at_most: int | None = None) -> Reader:
    """Reader of a whole number between bounds, both included.

    >>> whole_number(2)("30", "dimension")
    30
    """

    def read(value: object, what: str) -> int:
        return as_whole_number(_as_int_if_text(value), what, at_least=at_least, at_most=at_most)

    return read


def whole_numbers(at_least: int, at_most: int) -> Reader:
    """Reader of several whole numbers between bounds, both included, in the order given and each once.

    >>> whole_numbers(1, 24)("1, 3, 5-8", "functions")
    (1, 3, 5, 6, 7, 8)
    >>> whole_numbers(1, 24)([4, 2], "functions")
    (4, 2)
    """

    def read(value: object, what: str) -> tuple[int, ...]:
        if isinstance(value, str):
            pieces: list[object] = [piece.strip() for piece in value.split(",")]
        elif isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
            pieces = list(value)
        else:
            pieces = [value]
        numbers: dict[int, None] = {}
        for piece in pieces:
            first, dash, last = piece.partition("-") if isinstance(piece, str) else (piece, "", piece)
            low, high = _as_int_if_text(first), _as_int_if_text(last if dash else first)
            if not isinstance(low, int | np.integer) or not isinstance(high, int | np.integer) or low is True:
                raise InvalidInputError(
                    f"{what} must be whole numbers and ranges of them, such as 1,3,5-8; got {short(value)}."
                )
            if not at_least <= low <= high <= at_most:
                raise InvalidInputError(
                    f"{what} must lie between {at_least} and {at_most}, ranges from low to high; got {short(piece)}."
                )
            numbers.update(dict.fromkeys(range(int(low), int(high) + 1)))
        if not numbers:
            raise InvalidInputError(f"{what} must be at least one whole number, got {short(value)}.")
        return tuple(numbers)

    return read


def _as_int_if_text(value: object) -> object:
    """The whole number that a text holds; any other value unchanged."""
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass
    return value
