"""Checks of values that users pass in: arrays, numbers, choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError, reason, short

T = TypeVar("T")

#: Takes a value and its name for messages; returns the value or raises.
Check: TypeAlias = Callable[[Any, str], Any]


def as_array(values: ArrayLike, what: str) -> FloatArray:
    """Copy numbers into an array."""
    try:
        given = np.asarray(values)
        if given.dtype.kind in "USmM":  # numpy would read text and dates as numbers
            raise TypeError(f"they are of type {given.dtype}")
        array: FloatArray = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as problem:
        raise InvalidInputError(f"{what}: expected numbers, got {short(values)} ({reason(problem)}).") from None
    return array


def as_vector(values: ArrayLike, what: str) -> FloatArray:
    """Copy numbers into a read-only vector."""
    vector = as_array(values, what)
    if vector.ndim != 1:
        raise InvalidInputError(f"{what}: expected a list of numbers, got an array of shape {vector.shape}.")
    vector.flags.writeable = False
    return vector


def as_number(
    value: object,
    what: str,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
) -> float:
    """Check that a value is a finite number within the given bounds.

    >>> as_number(2, "alpha", above=0.5, at_most=1)
    Traceback (most recent call last):
    polarbear_plugins.errors.InvalidInputError: alpha: expected a number above 0.5 and up to 1, got 2.
    """
    try:
        number = math.nan if isinstance(value, str | bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInputError(f"{what}: expected a finite number, got {short(value)}.")
    if (
        (at_least is not None and number < at_least)
        or (above is not None and number <= above)
        or (at_most is not None and number > at_most)
        or (below is not None and number >= below)
    ):
        raise InvalidInputError(f"{what}: expected {_range(at_least, above, at_most, below)}, got {number:g}.")
    return number


def _range(at_least: float | None, above: float | None, at_most: float | None, below: float | None) -> str:
    """The allowed range in words."""
    match at_least is not None, above is not None, at_most is not None, below is not None:
        case False, True, False, False:
            return "a positive number" if above == 0 else f"a number above {above:g}"
        case True, False, False, False:
            return f"a number of at least {at_least:g}"
        case False, False, True, False:
            return f"a number of at most {at_most:g}"
        case True, False, True, False:
            return f"a number from {at_least:g} to {at_most:g}"
        case True, False, False, True:
            return f"a number from {at_least:g} to below {below:g}"
        case False, True, True, False:
            return f"a number above {above:g} and up to {at_most:g}"
        case False, True, False, True:
            return f"a number between {above:g} and {below:g}, both excluded"
    return f"a number below {below:g}"


def as_whole_number(value: object, what: str, *, at_least: int | None = None, at_most: int | None = None) -> int:
    """Check that a value is a whole number within the given bounds."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | np.integer)
        or (at_least is not None and value < at_least)
        or (at_most is not None and value > at_most)
    ):
        # Name the bound that is violated.
        large = at_most is not None and isinstance(value, int | np.integer) and value > at_most
        bound = f" of at most {at_most:,}" if large else "" if at_least is None else f" of at least {at_least}"
        raise InvalidInputError(f"{what} must be a whole number{bound}, got {short(value)}.")
    return int(value)


def as_choice(value: T, choices: object, what: str) -> T:
    """Check that a value is one of several names; ``choices`` is a ``Literal`` or a collection.

    >>> as_choice("Median", ("median", "mean"), "statistic")
    Traceback (most recent call last):
    polarbear_plugins.errors.InvalidInputError: statistic: expected "median" or "mean", got 'Median'.
    """
    names = get_args(choices) or tuple(cast("Iterable[object]", choices))
    if value not in names:
        quoted = [f'"{name}"' for name in names]
        known = " or ".join((", ".join(quoted[:-1]), quoted[-1])) if len(quoted) > 1 else quoted[0]
        raise InvalidInputError(f"{what}: expected {known}, got {short(value)}.")
    return value


def check_fields(thing: object, checks: Mapping[str, Check]) -> None:
    """Check the fields of an object by the check declared for each."""
    for name, check in checks.items():
        check(getattr(thing, name), name)


def optional(check: Check) -> Check:
    """The same check, which also accepts ``None``."""
    return lambda value, what: None if value is None else check(value, what)
