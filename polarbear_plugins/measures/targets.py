"""Runs and targets: how classical measures of anytime performance look at trajectories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.checks import FloatArray, as_number, as_vector, as_whole_number, short
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.rankings.stream import check_trajectory, natural_key
from polarbear_plugins.trajectories.trajectory import Trajectory

__all__ = [
    "LOWER",
    "UPPER",
    "as_targets",
    "check_bounds",
    "group_runs",
    "hitting_times",
    "hold_last_value",
    "log_targets",
]

LOWER = 1e-8
UPPER = 1e2


def log_targets(lower: float = LOWER, upper: float = UPPER, count: int = 51) -> FloatArray:
    """Targets from ``upper`` down to ``lower`` at equal ratios, both ends included; the easiest first.

    >>> log_targets(1e-2, 1e2, 3)
    array([1.e+02, 1.e+00, 1.e-02])
    """
    check_bounds(lower, upper, "log_targets")
    return np.geomspace(upper, lower, as_whole_number(count, "log_targets: count", at_least=2))


def as_targets(targets: ArrayLike) -> FloatArray:
    """Check targets: at least one, finite, distinct.  They are sorted, the easiest first."""
    goals = as_vector(targets, "targets")
    if not goals.size or not np.isfinite(goals).all() or np.unique(goals).size < goals.size:
        raise InvalidInputError(f"targets: expected distinct finite numbers, at least one, got {short(targets)}.")
    return np.sort(goals)[::-1]


def check_bounds(lower: float, upper: float, who: str) -> tuple[float, float]:
    """Refuse bounds between which there is no log scale."""
    lower, upper = as_number(lower, f"{who}: lower"), as_number(upper, f"{who}: upper")
    if not 0 < lower < upper:
        raise InvalidInputError(f"{who}: expected 0 < lower < upper, got {lower:g} and {upper:g}.")
    return lower, upper


def hitting_times(trajectory: Trajectory, targets: FloatArray) -> FloatArray:
    """When a run first had a value at most as large as each target; ``inf`` if never.

    >>> run = Trajectory(algorithm="a", instance="f", times=[1, 10], best=[5.0, 2.0], horizon=20)
    >>> hitting_times(run, np.array([9.0, 2.0, 1.0]))
    array([ 1., 10., inf])
    """
    # Reached is reached: the value of an incumbent may grow again.
    falling = -np.minimum.accumulate(trajectory.best)
    return np.append(trajectory.times, np.inf)[np.searchsorted(falling, -targets, side="left")]


def group_runs(trajectories: Iterable[Trajectory], who: str) -> dict[str, list[Trajectory]]:
    """Sort runs by their algorithm, in the order of the names; there must be one at least."""
    groups: dict[str, list[Trajectory]] = {}
    for trajectory in trajectories:
        groups.setdefault(check_trajectory(trajectory).algorithm, []).append(trajectory)
    if not groups:
        raise InvalidInputError(f"{who}: there are no trajectories.")
    return {name: groups[name] for name in sorted(groups, key=natural_key)}


def hold_last_value(trajectories: Iterable[Trajectory], until: float) -> Iterator[Trajectory]:
    """Take runs that ended before ``until`` as watched until then: their last value stands.

    Right for algorithms that ended by themselves, since nothing better would have come.  Wrong for runs that somebody
    stopped, such as those of a race, which runs an algorithm only as long as a question is open.

    >>> run = Trajectory(algorithm="a", instance="f", times=[1, 10], best=[5.0, 2.0], horizon=20)
    >>> next(hold_last_value([run], until=100))
    Trajectory(algorithm='a', instance='f', seed=0, 2 steps to 2 at time 10, watched until 100)
    """
    until = as_number(until, "hold_last_value: until")
    for trajectory in trajectories:
        if check_trajectory(trajectory).horizon >= until:
            yield trajectory
        else:
            yield Trajectory(
                algorithm=trajectory.algorithm,
                instance=trajectory.instance,
                seed=trajectory.seed,
                times=trajectory.times,
                best=trajectory.best,
                horizon=until,
                incumbent=True,  # it may be such, and was checked when it was made
            )
