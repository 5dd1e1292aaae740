"""Sets of runs: grouped by algorithm, checked, and extended past their end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.names import natural_key
from polarbear_plugins.trajectories.trajectory import UNRANKED, Trajectory


def group_runs(trajectories: Iterable[Trajectory], who: str) -> dict[str, list[Trajectory]]:
    """Runs of each algorithm, by name; there must be at least one, and their values must be known."""
    groups: dict[str, list[Trajectory]] = {}
    for trajectory in trajectories:
        groups.setdefault(check_values_known(trajectory, who).algorithm, []).append(trajectory)
    if not groups:
        raise InvalidInputError(f"{who}: there are no trajectories.")
    return {name: groups[name] for name in sorted(groups, key=natural_key)}


def watched_until(groups: Mapping[str, Sequence[Trajectory]], time: float, who: str) -> dict[str, list[Trajectory]]:
    """Runs of each algorithm that were watched until a time; each algorithm must have one."""
    kept = {name: [run for run in runs if run.horizon >= time] for name, runs in groups.items()}
    for name, runs in kept.items():
        if not runs:
            longest = max(run.horizon for run in groups[name])
            raise InvalidInputError(
                f"{who}: no run of {name!r} was watched until {time:g}, the longest until {longest:g}. Choose an "
                "earlier time, leave it out, or use hold_last_value if its runs ended by themselves."
            )
    return kept


def hold_last_value(trajectories: Iterable[Trajectory], until: float) -> Iterator[Trajectory]:
    """Treat runs that ended before ``until`` as watched until then, with their last value.

    Right for algorithms that ended by themselves, since they would not have improved.  Wrong for runs that were
    stopped, such as those of a race, which runs an algorithm only as far as a pair is unsettled.

    >>> run = Trajectory(algorithm="a", instance="f", times=[1, 10], best=[5.0, 2.0], horizon=20)
    >>> next(hold_last_value([run], until=100))
    Trajectory(algorithm='a', instance='f', seed=0, 2 steps to 2 at time 10, watched until 100)
    """
    until = as_number(until, "hold_last_value: until")
    for run in trajectories:
        held = check_trajectory(run).horizon < until
        yield run.changed(horizon=until) if held else run


def end_at_target(trajectories: Iterable[Trajectory], target: float) -> Iterator[Trajectory]:
    """Treat runs as done from where they reached a value that is at least as good as ``target``.

    >>> run = Trajectory(algorithm="a", instance="f", times=[1, 10, 15], best=[5.0, 2.0, 1.0], horizon=20)
    >>> next(end_at_target([run], target=3))
    Trajectory(algorithm='a', instance='f', seed=0, 2 steps to 2 at time 10, watched until 20, done)
    """
    target = as_number(target, "target")
    for run in trajectories:
        there = np.flatnonzero(check_trajectory(run).best <= target)
        if there.size:
            until = there[0] + 1
            yield run.changed(times=run.times[:until], best=run.best[:until], end="done")
        else:
            yield run


def relative_to_range(trajectories: Iterable[Trajectory], until: float = math.inf) -> list[Trajectory]:
    """Runs with their values as regret: 0 is the best that any of them found on the instance until a time, 1 the worst.

    Right where values have no known optimum and differ in scale between instances, such as accuracies that change
    sign to be minimised.  All depends on which runs are given: another algorithm can change the range.

    >>> runs = [Trajectory(algorithm=f"a{k}", instance="f", times=[1, 5], best=[4, k]) for k in (0, 1)]
    >>> [run.best.tolist() for run in relative_to_range(runs)]
    [[1.0, 0.0], [1.0, 0.25]]
    """
    runs = [check_values_known(run, "relative_to_range") for run in trajectories]
    seen: dict[str, list[FloatArray]] = {}
    for run in runs:
        seen.setdefault(run.instance, []).append(run.best[(run.times <= until) & np.isfinite(run.best)])
    ranges = {name: _range(np.concatenate(values)) for name, values in seen.items()}
    return [run.changed(best=_scaled(run.best, *ranges[run.instance])) for run in runs]


def _range(values: FloatArray) -> tuple[float, float]:
    return (float(values.min()), float(np.ptp(values))) if values.size else (0.0, 0.0)


def _scaled(values: FloatArray, low: float, span: float) -> FloatArray:
    return (values - low) / (span if span > 0 else 1.0)


def per_dimension(trajectories: Iterable[Trajectory]) -> Iterator[Trajectory]:
    """Runs with their time in multiples of the dimension of their instance.

    >>> run = Trajectory(algorithm="a", instance="f", times=[10, 50], best=[5.0, 2.0], horizon=100, dimension=5)
    >>> next(per_dimension([run]))
    Trajectory(algorithm='a', instance='f', dimension=5, seed=0, 2 steps to 2 at time 10, watched until 20)
    """
    for run in trajectories:
        dimension = check_trajectory(run).dimension
        if dimension is None:
            raise InvalidInputError(
                f"{run!r} does not say the dimension of its instance, so its time cannot be counted in multiples of "
                "it. Give a table a column dimension."
            )
        yield run.changed(times=run.times / dimension, horizon=run.horizon / dimension)


def check_trajectory(trajectory: Trajectory) -> Trajectory:
    """Refuse anything but a trajectory."""
    if not isinstance(trajectory, Trajectory):
        raise InvalidInputError(
            f"Expected Trajectory objects, got {type(trajectory).__name__}. "
            "polarbear_plugins.read_trajectories turns files and data frames into them."
        )
    return trajectory


def check_values_known(trajectory: Trajectory, who: str) -> Trajectory:
    """Refuse a run that is unranked at some time, where values and not only ranks are needed."""
    if (check_trajectory(trajectory).best == UNRANKED).any():
        raise InvalidInputError(
            f"{who}: {trajectory!r} is unranked at some time, so its value there is not known. Rankings can be made of "
            "it (rank), but nothing that needs values."
        )
    return trajectory


def cut_at(run: Trajectory, horizon: float) -> Trajectory:
    """A run until an earlier horizon, as if nobody had watched it for longer.

    >>> run = Trajectory(algorithm="a", instance="f1", times=[1, 4, 9], best=[8, 4, 2], horizon=10)
    >>> cut_at(run, 5)
    Trajectory(algorithm='a', instance='f1', seed=0, 2 steps to 4 at time 4, watched until 5)
    """
    if run.horizon <= horizon:
        return run
    seen = run.times <= horizon
    end = run.end if run.end == "unknown" else "stopped"
    return run.changed(times=run.times[seen], best=run.best[seen], horizon=horizon, end=end)
