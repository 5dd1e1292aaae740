"""Grids of timepoints at which trajectories are compared."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear_plugins.checks import FloatArray, as_number, as_vector, as_whole_number, check_times
from polarbear_plugins.errors import InvalidInputError

__all__ = ["as_timepoints", "few_places", "log_timepoints", "spans", "uniform_timepoints"]

_LATEST = 1e300  # so that a sum of costs is a number


def log_timepoints(first: float, last: float, count: int, *, integer: bool = False) -> FloatArray:
    """Timepoints from ``first`` to ``last`` at equal ratios.

    Parameters
    ----------
    first, last
        Both ends are part of the grid.
    count
        How many timepoints.
    integer
        Whole timepoints, as for evaluations: rounded, and moved apart where they would coincide.

    Examples
    --------
    >>> log_timepoints(1, 1000, 4)
    array([   1.,   10.,  100., 1000.])
    >>> log_timepoints(1, 20, 8, integer=True)
    array([ 1.,  2.,  3.,  4.,  6.,  8., 13., 20.])
    """
    first, last, count = _check_grid(first, last, count, "log_timepoints")
    if first <= 0:
        raise InvalidInputError(
            f"log_timepoints: first must be positive, got {first:g}. Use uniform_timepoints from 0."
        )
    grid = np.geomspace(first, last, count)
    return _whole(grid, "log_timepoints") if integer else grid


def uniform_timepoints(first: float, last: float, count: int, *, integer: bool = False) -> FloatArray:
    """Timepoints from ``first`` to ``last`` at equal distances; see :func:`log_timepoints`.

    >>> uniform_timepoints(0, 100, 5)
    array([  0.,  25.,  50.,  75., 100.])
    """
    first, last, count = _check_grid(first, last, count, "uniform_timepoints")
    grid = np.linspace(first, last, count)
    return _whole(grid, "uniform_timepoints") if integer else grid


def as_timepoints(timepoints: ArrayLike) -> FloatArray:
    """Check a grid of timepoints: at least one, finite, not negative, strictly increasing."""
    grid = as_vector(timepoints, "timepoints")
    if not grid.size:
        raise InvalidInputError("timepoints: expected at least one, got none.")
    check_times(grid, "timepoints")
    if grid[-1] > _LATEST:
        raise InvalidInputError(f"timepoints: expected none after {_LATEST:g}, got {grid[-1]:g}.")
    return grid


def few_places(count: int) -> list[int]:
    """Places of up to four timepoints that stand for a grid of so many: the ends, and two between.

    >>> few_places(50), few_places(1)
    ([0, 16, 33, 49], [0])
    """
    return sorted({0, count // 3, 2 * count // 3, count - 1})


def spans(grid: FloatArray, inside: NDArray[np.bool_]) -> list[str]:
    """Stretches of timepoints, as text.

    >>> spans(np.array([1.0, 5.0, 20.0, 1500.0]), np.array([True, True, False, True]))
    ['1 to 5', '1,500']
    """
    edges = np.flatnonzero(np.diff(np.concatenate(([False], inside, [False])).astype(np.int8)))
    return [
        f"{grid[start]:,.5g}" if start == stop - 1 else f"{grid[start]:,.5g} to {grid[stop - 1]:,.5g}"
        for start, stop in zip(edges[::2], edges[1::2], strict=True)
    ]


def _check_grid(first: float, last: float, count: int, who: str) -> tuple[float, float, int]:
    first, last = as_number(first, f"{who}: first"), as_number(last, f"{who}: last")
    count = as_whole_number(count, f"{who}: count", at_least=1)
    if first < 0:
        raise InvalidInputError(f"{who}: first must not be negative, got {first:g}.")
    if count == 1:
        if first != last:
            raise InvalidInputError(f"{who}: one timepoint needs first == last, got {first:g} and {last:g}.")
    elif not first < last:
        raise InvalidInputError(f"{who}: first must lie before last, got {first:g} and {last:g}.")
    return first, last, count


def _whole(grid: FloatArray, who: str) -> FloatArray:
    """Round a grid to distinct whole numbers between its ends, as near as they can be."""
    first, last = math.ceil(grid[0]), math.floor(grid[-1])
    if grid.size > last - first + 1:
        raise InvalidInputError(
            f"{who}: there are no {grid.size} whole timepoints between {grid[0]:g} and {grid[-1]:g}; ask for fewer."
        )
    steps = np.arange(grid.size, dtype=np.float64)
    rounded = np.clip(np.rint(grid), float(first), float(last))
    apart: FloatArray = np.maximum.accumulate(rounded - steps) + steps
    whole: FloatArray = np.minimum(apart, float(last) - steps[::-1])  # room for those behind
    return whole
