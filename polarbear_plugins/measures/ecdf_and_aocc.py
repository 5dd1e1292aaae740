"""Classical anytime measures: ECDF and AOCC."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning
from polarbear_plugins.measures.attainment import attained
from polarbear_plugins.measures.targets import LOWER, UPPER, Scale, as_targets, check_bounds
from polarbear_plugins.trajectories.runs import check_values_known, group_runs, watched_until
from polarbear_plugins.trajectories.timepoints import as_timepoints
from polarbear_plugins.trajectories.trajectory import Trajectory, hitting_times, sample_staircase

if TYPE_CHECKING:
    import pandas as pd


def area_over_curve(
    trajectory: Trajectory, budget: float, lower: float = LOWER, upper: float = UPPER, *, scale: Scale = "log"
) -> float:
    """Area over the convergence curve (AOCC): 1 is best, 0 is worst.

    Values are clipped to ``lower`` and ``upper`` and scaled between them; the area is the mean over the time from 0 to
    ``budget``.  The log scale needs values with a known optimum of 0; the linear one takes values of any sign.

    >>> run = Trajectory(algorithm="a", instance="f", times=[0, 50], best=[1e2, 1e-8], horizon=100)
    >>> area_over_curve(run, 100)
    0.5
    """
    budget = as_number(budget, "budget")
    lower, upper = check_bounds(lower, upper, "area_over_curve", scale)
    check_values_known(trajectory, "area_over_curve")
    if not 0 < budget <= trajectory.horizon:
        raise InvalidInputError(f"{trajectory!r}: it was not watched until {budget:g}.")
    inside = trajectory.times < budget
    ends = np.concatenate((trajectory.times[inside][1:], [budget]))
    durations = ends - trajectory.times[inside] if inside.any() else np.zeros(0)
    return float(durations @ _progress(trajectory, trajectory.best[inside], lower, upper, scale) / budget)


def mean_area_over_curve(
    trajectories: Iterable[Trajectory],
    budget: float,
    lower: float = LOWER,
    upper: float = UPPER,
    *,
    scale: Scale = "log",
) -> dict[str, tuple[float, int]]:
    """Mean AOCC of each algorithm and its number of runs, the best first; only runs watched until ``budget`` count."""
    areas: dict[str, list[float]] = {}
    for trajectory in trajectories:
        if trajectory.horizon >= budget:
            area = area_over_curve(trajectory, budget, lower, upper, scale=scale)
            areas.setdefault(trajectory.algorithm, []).append(area)
    means = {name: (float(np.mean(each)), len(each)) for name, each in areas.items()}
    return dict(sorted(means.items(), key=lambda item: -item[1][0]))


def ecdf(
    trajectories: Iterable[Trajectory],
    timepoints: ArrayLike,
    targets: ArrayLike | None = None,
    lower: float = LOWER,
    upper: float = UPPER,
    *,
    scale: Scale = "log",
) -> pd.DataFrame:
    """Empirical cumulative distribution function (ECDF): share of all (run, target) pairs reached by each timepoint.

    Parameters
    ----------
    targets
        By default infinitely many, evenly spread on the scale between ``lower`` and ``upper``: then the share is the
        progress of the best value between the bounds, and its mean over time is the AOCC.  The log scale needs values
        with a known optimum of 0.  Given targets may have any sign; :func:`log_targets` returns some.

    Returns
    -------
    pandas.DataFrame
        A row for each timepoint, a column for each algorithm.  Only runs watched until the last timepoint count, so
        that all timepoints refer to the same runs; a warning says how many are left out.

    Examples
    --------
    >>> runs = [Trajectory(algorithm="a", instance="f", seed=k, times=[1, 4], best=[8, k], horizon=9) for k in (0, 1)]
    >>> ecdf(runs, [1, 5], targets=[8, 0])["a"].to_dict()
    {1.0: 0.5, 5.0: 0.75}
    """
    import pandas as pd

    grid = as_timepoints(timepoints)
    goals = None if targets is None else as_targets(targets)
    lower, upper = check_bounds(lower, upper, "ecdf", scale)
    shares: dict[str, FloatArray] = {}
    for name, runs in _drop_unwatched(trajectories, float(grid[-1]), "ecdf").items():
        if goals is not None:
            shares[name] = attained(runs, grid, goals).mean(axis=1)
        else:
            # A target stays reached, although the value of an incumbent may increase again.
            best = [np.minimum.accumulate(sample_staircase(run, grid)) for run in runs]
            each = [_progress(run, values, lower, upper, scale) for run, values in zip(runs, best, strict=True)]
            shares[name] = np.mean(each, axis=0)
    return pd.DataFrame(shares, index=pd.Index(grid, name="time"))


def ecdf_area(
    trajectories: Iterable[Trajectory], budget: float, targets: ArrayLike, first: float | None = None
) -> dict[str, float]:
    """Area under the ECDF of each algorithm over given targets: 1 is best, 0 is worst.

    Parameters
    ----------
    budget
        End of the area.  Only runs watched until then count; a warning says how many are left out.
    first
        Start of the area over the logarithm of time, as ECDFs are usually drawn; by default the area is over time
        from 0, which with many targets is the AOCC.

    Examples
    --------
    >>> run = Trajectory(algorithm="a", instance="f", times=[1, 10], best=[5, 2], horizon=100)
    >>> ecdf_area([run], 100, [2]), ecdf_area([run], 100, [2], first=1)
    ({'a': 0.9}, {'a': 0.5})
    """
    budget, goals = as_number(budget, "ecdf_area: budget"), as_targets(targets)
    start = 0.0 if first is None else as_number(first, "ecdf_area: first")
    if not start < budget or (first is not None and start <= 0):
        raise InvalidInputError(f"ecdf_area: expected 0 < first < budget, got {start:g} and {budget:g}.")
    areas = {}
    for name, runs in _drop_unwatched(trajectories, budget, "ecdf_area").items():
        hits = np.clip([hitting_times(run, goals) for run in runs], start, budget)
        rest = budget - hits if first is None else np.log(budget / hits)
        areas[name] = float(np.mean(rest) / (budget if first is None else np.log(budget / start)))
    return areas


def _progress(trajectory: Trajectory, values: FloatArray, lower: float, upper: float, scale: Scale) -> FloatArray:
    """Progress of values on a scale, 0 at ``upper`` and 1 at ``lower``."""
    clipped = np.clip(values, lower, upper)
    if scale == "linear":
        return (upper - clipped) / (upper - lower)
    # Rounding may leave an optimum slightly below 0, but by no more than ``lower``.
    if values.size and values.min() < -lower:
        raise InvalidInputError(
            f"{trajectory!r}: values below 0 are not on a log scale between {lower:g} and {upper:g}. Use the linear "
            "scale, subtract the known optimum, or rank the runs: rankings need no scale."
        )
    return 1 - (np.log10(clipped) - np.log10(lower)) / (np.log10(upper) - np.log10(lower))


def _drop_unwatched(trajectories: Iterable[Trajectory], budget: float, who: str) -> dict[str, list[Trajectory]]:
    """Runs of each algorithm that were watched until a time; warns about the others."""
    groups = group_runs(trajectories, who)
    kept = watched_until(groups, budget, who)
    given, dropped = sum(map(len, groups.values())), sum(len(groups[name]) - len(kept[name]) for name in groups)
    if dropped:
        warnings.warn(
            f"{who}: {dropped} of {given} runs were not watched until {budget:g} and are left out.",
            PolarBearWarning,
            stacklevel=3,
        )
    return kept
