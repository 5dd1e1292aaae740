"""Checks of what users say about a ranking table: its algorithms, and the weights and groups of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_array
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.names import as_name, distinct_names


def as_algorithms(algorithms: Sequence[str]) -> tuple[str, ...]:
    """Check the names of the algorithms to compare: at least two, all distinct."""
    if isinstance(algorithms, str) or not isinstance(algorithms, Iterable):
        raise InvalidInputError(f"algorithms: expected a list of names, got {algorithms!r}.")
    given = (as_name(name, f"algorithms[{place}]") for place, name in enumerate(algorithms))
    names = distinct_names(given, "algorithms")
    if len(names) < 2:
        raise InvalidInputError(
            f"A ranking needs at least two algorithms, got {f'only {names[0]!r}' if names else 'none'}. "
            "Add the runs of another algorithm on the same instances."
        )
    return names


def as_weights(weights: ArrayLike, rows: int) -> FloatArray:
    """Check the weights of rows: positive numbers, one for each."""
    array = as_array(weights, "weights")
    if array.shape != (rows,):
        raise InvalidInputError(f"weights: expected one for each of {rows} rows, got the shape {list(array.shape)}.")
    if not (np.isfinite(array) & (array > 0)).all():
        raise InvalidInputError("weights: expected positive finite numbers.")
    return array


def as_groups(groups: Sequence[str | int | None]) -> list[str | None]:
    """Check the names of the groups of rows; ``None`` for a row without one."""
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise InvalidInputError(f"groups: expected a list of names, got {groups!r}.")
    return [None if group is None else as_name(group, f"groups[{row}]") for row, group in enumerate(groups)]


def describe_grid(timepoints: FloatArray) -> str:
    """Timepoints in a message: how many, and from when to when."""
    return f"{timepoints.size} from {timepoints[0]:g} to {timepoints[-1]:g}"
