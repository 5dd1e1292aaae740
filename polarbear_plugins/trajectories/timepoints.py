"""Grids of timepoints at which trajectories are compared."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number, as_vector, as_whole_number
from polarbear_plugins.errors import InvalidInputError

_LATEST = 1e300  # so that sums of costs stay finite


def log_timepoints(first: float, last: float, count: int, *, integer: bool = False) -> FloatArray:
    """Timepoints from ``first`` to ``last`` at equal ratios.

    Parameters
    ----------
    first, last
        The ends of the grid, both included.
    count
        How many timepoints.
    integer
        Whole timepoints, as for evaluations: rounded, and kept distinct.

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


def timepoint_index(timepoints: FloatArray, timepoint: float | None) -> int:
    """Place in a grid of its last timepoint that is not after the one given; of the very last for ``None``."""
    if timepoint is None:
        return timepoints.size - 1
    wanted = as_number(timepoint, "timepoint")
    place = int(np.searchsorted(timepoints, wanted * (1 + 1e-12), side="right")) - 1
    if place < 0:
        raise InvalidInputError(f"timepoint: {wanted:g} lies before the first timepoint, {timepoints[0]:g}.")
    return place


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
    """Round a grid to distinct whole numbers between its ends."""
    first, last = math.ceil(grid[0]), math.floor(grid[-1])
    if grid.size > last - first + 1:
        raise InvalidInputError(
            f"{who}: there are fewer than {grid.size} whole timepoints between {grid[0]:g} and {grid[-1]:g}; ask for "
            "fewer."
        )
    steps = np.arange(grid.size, dtype=np.float64)
    rounded = np.clip(np.rint(grid), float(first), float(last))
    apart: FloatArray = np.maximum.accumulate(rounded - steps) + steps
    return np.minimum(apart, float(last) - steps[::-1])  # leaves room for later ones


def check_times(times: FloatArray, who: str) -> None:
    """Refuse times that are not finite, are negative, or do not increase strictly."""
    if not times.size:
        return
    # One comparison covers the ordinary case: nan fails it, and increasing numbers are finite if the ends are.
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
