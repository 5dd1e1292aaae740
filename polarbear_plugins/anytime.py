"""Traditional anytime measures, to compare with."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.trajectories import Trajectory
from polarbear_plugins.validation import as_number

__all__ = ["area_over_curve", "mean_area_over_curve"]


def area_over_curve(trajectory: Trajectory, budget: float, lower: float = 1e-8, upper: float = 1e2) -> float:
    """Area over the convergence curve (AOCC): 1 is best, 0 is worst.

    Values are cut to ``lower`` and ``upper`` and scaled between them logarithmically; the area is the mean over the
    time from 0 to ``budget``.  It needs values with a known optimum of 0.

    >>> run = Trajectory(algorithm="a", instance="f", times=[0, 50], best=[1e2, 1e-8], horizon=100)
    >>> area_over_curve(run, 100)
    0.5
    """
    budget = as_number(budget, "budget")
    if not 0 < lower < upper:
        raise InvalidInputError(f"area_over_curve: expected 0 < lower < upper, got {lower:g} and {upper:g}.")
    if not 0 < budget <= trajectory.horizon:
        raise InvalidInputError(f"{trajectory!r}: it was not watched until {budget:g}.")
    inside = trajectory.times < budget
    ends = np.concatenate((trajectory.times[inside][1:], [budget]))
    durations = ends - trajectory.times[inside] if inside.any() else np.zeros(0)
    logs = np.log10(np.clip(trajectory.best[inside], lower, upper))
    shares = 1 - (logs - np.log10(lower)) / (np.log10(upper) - np.log10(lower))
    return float(durations @ shares / budget)


def mean_area_over_curve(
    trajectories: Iterable[Trajectory], budget: float, lower: float = 1e-8, upper: float = 1e2
) -> dict[str, tuple[float, int]]:
    """Mean AOCC of each algorithm, and over how many runs, the best first; only runs watched until ``budget`` count."""
    areas: dict[str, list[float]] = {}
    for trajectory in trajectories:
        if trajectory.horizon >= budget:
            areas.setdefault(trajectory.algorithm, []).append(area_over_curve(trajectory, budget, lower, upper))
    means = {name: (float(np.mean(each)), len(each)) for name, each in areas.items()}
    return dict(sorted(means.items(), key=lambda item: -item[1][0]))
