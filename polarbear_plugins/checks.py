"""Checks on what users hand over, shared by everything that takes names, numbers and times."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError, reason, short


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


def as_number(value: object, what: str) -> float:
    """Check a finite number."""
    try:
        number = math.nan if isinstance(value, str | bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInputError(f"{what}: expected a finite number, got {short(value)}.")
    return number


def as_whole_number(value: object, what: str, *, at_least: int | None = None) -> int:
    """Check a whole number."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | np.integer)
        or (at_least is not None and value < at_least)
    ):
        bound = "" if at_least is None else f" of at least {at_least}"
        raise InvalidInputError(f"{what} must be a whole number{bound}, got {short(value)}.")
    return int(value)
