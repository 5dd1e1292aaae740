"""Fixed-budget and fixed-target tables, and expected running times."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.targets import as_targets
from polarbear_plugins.trajectories.runs import group_runs
from polarbear_plugins.trajectories.timepoints import as_timepoints
from polarbear_plugins.trajectories.trajectory import Trajectory, hitting_times, sample_staircase

if TYPE_CHECKING:
    import pandas as pd


def fixed_budget(trajectories: Iterable[Trajectory], budgets: ArrayLike) -> pd.DataFrame:
    """Table of the best values at several budgets.

    Returns
    -------
    pandas.DataFrame
        For each algorithm and budget: number of ``runs``, mean, standard deviation, geometric mean, min, median and
        max.  Only runs watched until the budget count; without any, all are ``nan``.  A run without a value so far
        counts as ``inf``.

    Examples
    --------
    >>> runs = [Trajectory(algorithm="a", instance="f", seed=k, times=[1, 4], best=[8, k], horizon=9) for k in (0, 1)]
    >>> fixed_budget(runs, [2, 9])["mean"].to_dict()
    {('a', 2.0): 8.0, ('a', 9.0): 0.5}
    """
    import pandas as pd

    grid = as_timepoints(budgets)
    rows = {}
    for name, runs in group_runs(trajectories, "fixed_budget").items():
        values = np.stack([sample_staircase(run, grid) for run in runs])
        for place, budget in enumerate(grid.tolist()):
            rows[name, budget] = _describe(values[:, place])
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["algorithm", "budget"])


def fixed_target(trajectories: Iterable[Trajectory], targets: ArrayLike, budget: float | None = None) -> pd.DataFrame:
    """Table of the times until several targets are reached.

    Parameters
    ----------
    targets
        A value at most as large reaches a target.
    budget
        Later successes and later time do not count; by default all watched time does.

    Returns
    -------
    pandas.DataFrame
        For each algorithm and target, the easiest first: number of ``runs`` and of ``successes``, their ratio, the
        expected running time ``ert``, and min, median and max of the time, which is ``inf`` for a run that did not
        reach the target.  All runs count, as far as they were watched.

    Notes
    -----
    The expected running time is all time spent, by failures as far as they were watched, divided by the number of
    successes: what restarts need on average until the first success.  Without any success it is ``inf``.

    Examples
    --------
    >>> runs = [Trajectory(algorithm="a", instance="f", seed=k, times=[1, 4], best=[8, k], horizon=9) for k in (0, 1)]
    >>> fixed_target(runs, [0, -1])["ert"].to_dict()
    {('a', 0.0): 13.0, ('a', -1.0): inf}
    """
    import pandas as pd

    goals = as_targets(targets)
    cut = math.inf if budget is None else as_number(budget, "fixed_target: budget")
    if cut <= 0:
        raise InvalidInputError(f"fixed_target: budget must be positive, got {cut:g}.")
    rows = {}
    for name, runs in group_runs(trajectories, "fixed_target").items():
        hits = np.stack([hitting_times(run, goals) for run in runs])
        hits[hits > cut] = np.inf
        spent = np.array([min(run.horizon, cut) for run in runs])
        for place, target in enumerate(goals.tolist()):
            times = hits[:, place]
            reached = times < np.inf
            rows[name, target] = {
                "runs": len(runs),
                "successes": int(reached.sum()),
                "success_rate": float(reached.mean()),
                "ert": _expected_time(times, spent),
                "min": float(times.min()),
                "median": float(np.median(times)),
                "max": float(times.max()),
            }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["algorithm", "target"])


def expected_running_time(
    trajectories: Iterable[Trajectory], target: float, budget: float | None = None
) -> dict[str, float]:
    """Expected running time (ERT) of each algorithm until a target; see :func:`fixed_target`.

    >>> run = Trajectory(algorithm="a", instance="f", times=[1, 4], best=[8, 2], horizon=9)
    >>> expected_running_time([run], 2), expected_running_time([run], 1)
    ({'a': 4.0}, {'a': inf})
    """
    table = fixed_target(trajectories, [target], budget)["ert"].droplevel("target")
    return {str(name): float(time) for name, time in table.items()}


def _expected_time(times: FloatArray, spent: FloatArray) -> float:
    reached = times < np.inf
    successes = int(reached.sum())
    return math.fsum(np.where(reached, times, spent)) / successes if successes else math.inf


def _describe(values: FloatArray) -> dict[str, float]:
    """Statistics of the values of the runs that were watched (not nan)."""
    known = np.sort(values[~np.isnan(values)])  # sorted, so that the order of runs does not matter
    if not known.size:
        return {"runs": 0} | dict.fromkeys(("mean", "std", "geometric_mean", "min", "median", "max"), math.nan)
    with np.errstate(divide="ignore", invalid="ignore"):  # inf - inf, and the logarithm of 0
        return {
            "runs": known.size,
            "mean": float(np.mean(known)),
            "std": float(np.std(known, ddof=1)) if known.size > 1 else math.nan,
            "geometric_mean": float(np.exp(np.mean(np.log(known)))),
            "min": float(known[0]),
            "median": float(np.median(known)),
            "max": float(known[-1]),
        }
