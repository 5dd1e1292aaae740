"""Checks on what users hand over, shared by everything that takes names, numbers and times."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear_plugins.errors import InvalidInputError

__all__ = [
    "Float32Array",
    "FloatArray",
    "as_array",
    "as_name",
    "as_number",
    "as_vector",
    "as_whole_number",
    "check_times",
    "parse_json",
    "reason",
    "short",
    "visible",
]

FloatArray: TypeAlias = NDArray[np.float64]
Float32Array: TypeAlias = NDArray[np.float32]

# What steers a terminal, turns the direction of writing, or cannot be written as UTF-8.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_HALVES = re.compile("[\ud800-\udfff]")


def as_name(name: object, what: str) -> str:
    """Turn the name of an algorithm or instance into text; whole numbers are their decimal text."""
    if isinstance(name, str):
        text = name
    elif isinstance(name, int | np.integer) and not isinstance(name, bool):
        text = str(name)
    else:
        raise InvalidInputError(f"{what}: expected a name (text or a whole number), got {name!r}.")
    if not text.strip():
        raise InvalidInputError(f"{what}: the name is empty.")
    if not text.isascii() and _HALVES.search(text):  # which no file and no table takes
        raise InvalidInputError(f"{what}: {short(name)} is no text, it has half a character.")
    return text


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


def check_times(times: FloatArray, who: str) -> None:
    """Refuse times that are not finite, negative, or not strictly increasing."""
    if not times.size:
        return
    # One comparison settles the ordinary case: nan fails it, and what increases is finite if its ends are.
    if (times[1:] > times[:-1]).all() and times[0] >= 0 and times[-1] < np.inf:
        return
    finite = np.isfinite(times)
    if not finite.all():
        place = int(np.argmin(finite))
        raise InvalidInputError(f"{who}: times must be finite, got {times[place]} at position {place}.")
    if times.min() < 0:
        raise InvalidInputError(f"{who}: times must not be negative, got {times.min():g}.")
    place = int(np.argmax(times[1:] <= times[:-1])) + 1
    raise InvalidInputError(
        f"{who}: times must increase strictly, got {times[place]:.17g} after {times[place - 1]:.17g} "
        f"at position {place}."
    )


def short(value: object) -> str:
    """Text of a value for a message, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits has no text
        text = f"a huge {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def reason(problem: BaseException) -> str:
    """Text of another package's error for a message of ours: one line, cut where it is long.

    >>> reason(ValueError("bad    news"))
    'bad news'
    """
    text = " ".join(str(problem).split()) or type(problem).__name__
    return text if len(text) <= 200 else f"{text[:197]}..."


def parse_json(text: str) -> Any:
    """Read JSON that has only numbers which JSON knows, as what is written again must.

    :raises ValueError: it is no JSON, or has a number that is not finite.
    """
    return json.loads(text, parse_constant=_not_json, parse_float=_finite_float)


def _not_json(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _finite_float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _not_json(text[:20])


def visible(text: str) -> str:
    r"""Text from data as people may see it: what would steer a terminal or a page is written as JSON escapes it.

    >>> print(visible(chr(27) + "[31mcsa"))
    \u001b[31mcsa
    """
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
