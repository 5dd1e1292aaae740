"""The empirical attainment function (EAF): the share of runs that attained a value by a time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.extras import require
from polarbear_plugins.measures.targets import LOWER, UPPER, as_targets, check_bounds
from polarbear_plugins.trajectories.runs import check_values_known
from polarbear_plugins.trajectories.timepoints import as_timepoints
from polarbear_plugins.trajectories.trajectory import Trajectory, hitting_times

if TYPE_CHECKING:
    import pandas as pd


_MAX_SETS = 5_000


def attained(trajectories: Iterable[Trajectory], timepoints: ArrayLike, targets: ArrayLike) -> FloatArray:
    """Share of the runs that reached each target by each timepoint: ``share[timepoint, target]``, the easiest first.

    Runs of any algorithms.  All must have been watched until the last timepoint.

    >>> runs = [Trajectory(algorithm="a", instance="f", seed=k, times=[1, 4], best=[8, k], horizon=9) for k in (0, 1)]
    >>> attained(runs, [1, 5], [8, 0])
    array([[1. , 0. ],
           [1. , 0.5]])
    """
    grid, goals = as_timepoints(timepoints), as_targets(targets)
    runs = _require_watched_until(trajectories, float(grid[-1]), "attained")
    hits = np.stack([hitting_times(run, goals) for run in runs])
    return (hits <= grid[:, None, None]).mean(axis=1)


def attainment_surfaces(
    trajectories: Iterable[Trajectory],
    budget: float,
    lower: float = LOWER,
    upper: float = UPPER,
    percentiles: Iterable[float] = (),
) -> pd.DataFrame:
    """Surfaces of the EAF: by which time at least a given percentage of the runs attained which value.

    Parameters
    ----------
    budget
        End of the window; all runs must have been watched until then.
    lower, upper
        Values are clipped at ``lower``; those above ``upper`` do not count.
    percentiles
        Which surfaces, such as 50 for the median; by default all.

    Returns
    -------
    pandas.DataFrame
        The corners of each surface, with columns ``percentile``, ``time`` and ``value``.  Needs the extra ``eaf``.
    """
    import pandas as pd

    moocore = require("moocore", extra="eaf", who="attainment_surfaces")
    budget, lower, upper = _check_window(budget, lower, upper, "attainment_surfaces")
    wanted = [as_number(each, "attainment_surfaces: percentiles") for each in percentiles]
    if any(not 0 <= each <= 100 for each in wanted):
        raise InvalidInputError(f"attainment_surfaces: percentiles must lie between 0 and 100, got {wanted}.")
    runs = _require_watched_until(trajectories, budget, "attainment_surfaces")
    points = _number_runs(_staircase_corners(runs, budget, lower, upper))
    corners = moocore.eaf(points[:, :2], points[:, 2], percentiles=wanted)
    corners = corners[(corners[:, 0] <= budget) & (corners[:, 1] <= upper)]
    frame = pd.DataFrame(corners[:, [2, 0, 1]], columns=["percentile", "time", "value"])
    return frame.sort_values(["percentile", "time"], ignore_index=True)


def attainment_differences(
    first: Iterable[Trajectory],
    second: Iterable[Trajectory],
    budget: float,
    lower: float = LOWER,
    upper: float = UPPER,
) -> pd.DataFrame:
    """Where and by how much two groups of runs differ in their EAF.

    Parameters
    ----------
    first, second
        For example, runs of two algorithms on the same instances.
    budget, lower, upper
        As in :func:`attainment_surfaces`.

    Returns
    -------
    pandas.DataFrame
        Rectangles ``time_from <= time < time_to``, ``value_from <= value < value_to``, and the ``difference`` in them:
        the share of the runs of ``first`` that attained it minus that of ``second``.  Elsewhere the difference is 0.
        Needs the extra ``eaf``.
    """
    import pandas as pd

    who = "attainment_differences"
    moocore = require("moocore", extra="eaf", who=who)
    budget, lower, upper = _check_window(budget, lower, upper, who)
    groups = [_require_watched_until(each, budget, who) for each in (first, second)]
    # moocore splits the sets in half regardless of their group: repetition makes the numbers equal without changing
    # the attainment functions.
    sets = math.lcm(*(len(runs) for runs in groups))
    if sets > _MAX_SETS:
        raise InvalidInputError(
            f"{who}: {len(groups[0])} and {len(groups[1])} runs take {sets:,} sets to compare, more than "
            f"{_MAX_SETS:,}. Use equally many of both."
        )
    one, other = (_staircase_corners(runs, budget, lower, upper) for runs in groups)
    if all(np.array_equal(one[0], part) for part in one + other):  # moocore fails without a difference
        rectangles = np.zeros((0, 5))
    else:
        repeated = (_number_runs(parts * (sets // len(parts))) for parts in (one, other))
        rectangles = moocore.eafdiff(*repeated, rectangles=True)
    frame = pd.DataFrame(rectangles, columns=["time_from", "value_from", "time_to", "value_to", "difference"])
    frame["difference"] /= sets
    frame["time_to"] = frame["time_to"].clip(upper=budget)
    frame["value_to"] = frame["value_to"].clip(upper=upper)
    inside = (frame["time_from"] < frame["time_to"]) & (frame["value_from"] < frame["value_to"])
    frame = frame[inside & (frame["difference"] != 0)]
    order = ["time_from", "time_to", "value_from", "value_to", "difference"]
    return frame[order].sort_values(order, ignore_index=True)


def _check_window(budget: float, lower: float, upper: float, who: str) -> tuple[float, float, float]:
    budget = as_number(budget, f"{who}: budget")
    if budget <= 0:
        raise InvalidInputError(f"{who}: budget must be positive, got {budget:g}.")
    return budget, *check_bounds(lower, upper, who)


def _require_watched_until(trajectories: Iterable[Trajectory], budget: float, who: str) -> list[Trajectory]:
    runs = [check_values_known(run, who) for run in trajectories]
    if not runs:
        raise InvalidInputError(f"{who}: there are no trajectories.")
    for run in runs:
        if run.horizon < budget:
            raise InvalidInputError(
                f"{who}: {run!r} was not watched until {budget:g}. Leave it out, choose an earlier time, or use "
                "hold_last_value if it ended by itself."
            )
    return runs


def _staircase_corners(runs: Iterable[Trajectory], budget: float, lower: float, upper: float) -> list[FloatArray]:
    """Corners of the staircase of each run inside the window, as rows of time and value."""
    parts = []
    for run in runs:
        values = np.maximum(np.minimum.accumulate(run.best), lower)
        corner = values < np.concatenate(([np.inf], values[:-1]))
        inside = corner & (run.times <= budget) & (values <= upper)
        # A run that attained nothing still counts: it gets a point outside the window.
        outside = [[2 * budget, 2 * upper]]
        parts.append(np.concatenate((np.column_stack((run.times[inside], values[inside])), outside)))
    return parts


def _number_runs(parts: list[FloatArray]) -> FloatArray:
    """All points as moocore takes them: time, value, number of the run."""
    numbers = np.repeat(np.arange(float(len(parts))), [len(part) for part in parts])
    return np.column_stack((np.concatenate(parts), numbers))
