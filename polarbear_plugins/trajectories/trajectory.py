"""Trajectories: the best value found so far against time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number, as_vector, as_whole_number
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.names import as_name
from polarbear_plugins.trajectories.timepoints import as_timepoints, check_times

if TYPE_CHECKING:
    import pandas as pd


# "Not better than any ranked run; nothing more is known."  It is never compared with other values, so its size does not
# matter.  It survives single precision, JSON and text, and no run reports it by accident: the number above it, the
# largest of single precision, may be reported by a run that has not found anything yet.
UNRANKED = 2.0**128 - 2.0**105


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Trajectory:
    """Best value so far of one run of one algorithm on one instance, minimised.

    The curve is a staircase: ``best[k]`` holds from ``times[k]`` until ``times[k + 1]``, the last step until
    ``horizon``.  Before ``times[0]`` the run has no value (``inf``); past ``horizon`` it was not watched (``nan``).

    Parameters
    ----------
    algorithm, instance
        Names.  Whole numbers become their decimal text.
    seed
        Distinguishes repeated runs of an algorithm on an instance.
    times
        When the best value changed: finite, not negative, strictly increasing.  Evaluations, seconds, any cost.
    best
        Best value so far at those times, never increasing.  ``nan`` is a failed evaluation, which leaves
        the best value unchanged; ``inf`` a run without a value so far; ``UNRANKED`` a run of which it is only known
        from then on, until its next value, that it is not better than those with a value.
    horizon
        How far the run was watched; by default until its last time.
    incumbent
        ``best`` is the value of what the run would return, chosen by another criterion, such as the test loss of the
        model with the best validation loss.  It may increase, and ``nan`` is refused.
    group
        Name of the group to which the instance belongs, such as its function, search space or dataset; ``None`` if
        instances are not grouped.
    fixed_group
        The groups are all there are, as the 24 functions of BBOB, rather than a sample of more.

    Examples
    --------
    >>> Trajectory(algorithm="csa", instance="f1", seed=0, times=[1, 10], best=[5.0, 2.0], horizon=20)
    Trajectory(algorithm='csa', instance='f1', seed=0, 2 steps to 2 at time 10, watched until 20)
    """

    algorithm: str
    instance: str
    seed: int
    times: FloatArray
    best: FloatArray
    horizon: float
    group: str | None
    fixed_group: bool

    def __init__(
        self,
        *,
        algorithm: str | int,
        instance: str | int,
        seed: int = 0,
        times: ArrayLike,
        best: ArrayLike,
        horizon: float | None = None,
        incumbent: bool = False,
        group: str | int | None = None,
        fixed_group: bool = False,
    ) -> None:
        labels, who = _check_labels(algorithm, instance, seed)
        grouping = check_group(group, fixed_group, who)
        clock = as_vector(times, f"{who}: times")
        values = as_vector(best, f"{who}: best")
        _check_clock(clock, values, who)
        values = _check_incumbent(values, who) if incumbent else _check_best(values, clock, who)
        self._set(*labels, clock, values, _check_horizon(horizon, clock, who), *grouping)

    def _set(
        self,
        algorithm: str,
        instance: str,
        seed: int,
        times: FloatArray,
        best: FloatArray,
        horizon: float,
        group: str | None,
        fixed_group: bool,
    ) -> None:
        """Set the fields, which were checked before."""
        times.flags.writeable = best.flags.writeable = False
        for field, value in (
            ("algorithm", algorithm),
            ("instance", instance),
            ("seed", seed),
            ("times", times),
            ("best", best),
            ("horizon", horizon),
            ("group", group),
            ("fixed_group", fixed_group),
        ):
            object.__setattr__(self, field, value)

    @classmethod
    def from_evaluations(
        cls,
        values: ArrayLike,
        *,
        algorithm: str | int,
        instance: str | int,
        seed: int = 0,
        times: ArrayLike | None = None,
        horizon: float | None = None,
        maximize: bool = False,
        group: str | int | None = None,
        fixed_group: bool = False,
    ) -> Trajectory:
        """Trajectory of a run from the values of all its evaluations.

        Parameters
        ----------
        values
            The objective values in the order of evaluation; ``nan`` for a failed one, ``UNRANKED`` where it is only
            known that the run is not better than those with a value.
        times
            When each evaluation was finished; 1, 2, 3, ... by default.
        horizon
            How far the run was watched; until its last evaluation by default.
        maximize
            Larger values are better; the trajectory holds them with the sign flipped.
        group, fixed_group
            As for the class.

        Examples
        --------
        >>> run = Trajectory.from_evaluations([4.0, 7.0, float("nan"), 1.5, 3.0], algorithm="a", instance="f1")
        >>> run.times, run.best, run.horizon
        (array([1., 4.]), array([4. , 1.5]), 5.0)
        """
        labels, who = _check_labels(algorithm, instance, seed)
        grouping = check_group(group, fixed_group, who)
        observed = as_vector(values, f"{who}: values")
        clock = np.arange(1.0, observed.size + 1) if times is None else as_vector(times, f"{who}: times")
        _check_clock(clock, observed, who)
        horizon = _check_horizon(horizon, clock, who)
        best = _best_so_far(minimised(observed, maximize))
        changed = best != np.concatenate(([np.inf], best[:-1]))
        trajectory = cls.__new__(cls)
        trajectory._set(*labels, clock[changed], best[changed], horizon, *grouping)
        return trajectory

    def in_group(self, group: str | int | None, fixed_group: bool = False) -> Trajectory:
        """The same run with its instance in another group, or in none; it shares the arrays of this one.

        >>> run = Trajectory(algorithm="a", instance="f1-i2", times=[1], best=[5.0])
        >>> run.in_group("f1", fixed_group=True)
        Trajectory(algorithm='a', instance='f1-i2', group='f1', seed=0, 1 steps to 5 at time 1, watched until 1)
        """
        grouping = check_group(group, fixed_group, f"trajectory of {self.algorithm!r} on {self.instance!r}")
        labelled = Trajectory.__new__(Trajectory)
        labelled._set(self.algorithm, self.instance, self.seed, self.times, self.best, self.horizon, *grouping)
        return labelled

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that the arrays of a copy are read-only again.
        fields = (self.algorithm, self.instance, self.seed, self.times, self.best, self.horizon)
        return _rebuild, (*fields, self.group, self.fixed_group)

    def to_pandas(self) -> pd.DataFrame:
        """The run as a table that :func:`polarbear_plugins.read_trajectories` reads: a row for each improvement.

        Columns: ``algorithm``, ``instance``, ``seed``, ``time``, ``value`` (minimised) and ``horizon``; after
        ``instance`` also ``group``, if it has one.  Join tables of several runs with ``pandas.concat``; a run without
        any value has no rows.

        >>> Trajectory(algorithm="a", instance="f", times=[1, 4], best=[8, 2], horizon=9).to_pandas()
          algorithm instance  seed  time  value  horizon
        0         a        f     0   1.0    8.0      9.0
        1         a        f     0   4.0    2.0      9.0
        """
        import pandas as pd

        same: dict[str, Any] = {"algorithm": self.algorithm, "instance": self.instance}
        same |= {} if self.group is None else {"group": self.group}
        same["seed"] = self.seed
        frame = pd.DataFrame({"time": self.times, "value": self.best, "horizon": self.horizon})
        for place, (column, value) in enumerate(same.items()):
            frame.insert(place, column, value)
        return frame

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trajectory):
            return NotImplemented
        return (
            (self.algorithm, self.instance, self.seed, self.horizon, self.group, self.fixed_group)
            == (other.algorithm, other.instance, other.seed, other.horizon, other.group, other.fixed_group)
            and np.array_equal(self.times, other.times)
            and np.array_equal(self.best, other.best)
        )

    def __hash__(self) -> int:
        return hash((self.algorithm, self.instance, self.seed, self.horizon, self.times.size))

    def __repr__(self) -> str:
        end = "no value"
        if self.times.size:
            last = "unranked" if self.best[-1] == UNRANKED else f"{self.best[-1]:g}"
            end = f"{self.times.size} steps to {last} at time {self.times[-1]:g}"
        group = "" if self.group is None else f"group={self.group!r}, "
        return (
            f"Trajectory(algorithm={self.algorithm!r}, instance={self.instance!r}, {group}seed={self.seed}, "
            f"{end}, watched until {self.horizon:g})"
        )


def _rebuild(
    algorithm: str,
    instance: str,
    seed: int,
    times: FloatArray,
    best: FloatArray,
    horizon: float,
    group: str | None = None,  # without it and the next in pickles of before there were groups
    fixed_group: bool = False,
) -> Trajectory:
    return Trajectory(
        algorithm=algorithm,
        instance=instance,
        seed=seed,
        times=times,
        best=best,
        horizon=horizon,
        incumbent=True,  # the values were checked at its creation, as best values so far or as an incumbent's
        group=group,
        fixed_group=fixed_group,
    )


def best_at(trajectory: Trajectory, timepoints: ArrayLike) -> FloatArray:
    """Best value so far at each timepoint: ``inf`` before the first value, ``nan`` past the horizon.

    >>> run = Trajectory(algorithm="a", instance="f1", seed=0, times=[2, 10], best=[5.0, 2.0], horizon=20)
    >>> best_at(run, [1, 2, 9, 10, 30])
    array([inf,  5.,  5.,  2., nan])
    """
    return sample_staircase(trajectory, as_timepoints(timepoints))


def sample_staircase(trajectory: Trajectory, timepoints: FloatArray) -> FloatArray:
    """:func:`best_at` without its checks, for loops over many runs on one grid."""
    step = trajectory.times.searchsorted(timepoints, side="right")
    values = np.concatenate(([np.inf], trajectory.best))[step]
    values[timepoints.searchsorted(trajectory.horizon, side="right") :] = np.nan
    return values


def _check_labels(algorithm: object, instance: object, seed: object) -> tuple[tuple[str, str, int], str]:
    """Names and seed, and what to call the trajectory in messages."""
    algorithm = as_name(algorithm, "algorithm of a trajectory")
    instance = as_name(instance, f"instance of a trajectory of {algorithm!r}")
    who = f"trajectory of {algorithm!r} on {instance!r}"
    return (algorithm, instance, as_whole_number(seed, f"{who}: seed")), who


def check_group(group: object, fixed_group: object, who: str) -> tuple[str | None, bool]:
    """Group of an instance, and whether the groups are all there are."""
    if not isinstance(fixed_group, bool):
        raise InvalidInputError(f"{who}: fixed_group: expected true or false, got {short(fixed_group)}.")
    if group is None:
        if fixed_group:
            raise InvalidInputError(f"{who}: fixed_group=True says something about its group, and it has none.")
        return None, False
    return as_name(group, f"{who}: group"), fixed_group


def _check_clock(times: FloatArray, values: FloatArray, who: str) -> None:
    if times.size != values.size:
        raise InvalidInputError(f"{who}: expected a value for each time, got {times.size} times, {values.size} values.")
    check_times(times, who)


def _check_horizon(horizon: float | None, times: FloatArray, who: str) -> float:
    if horizon is None:
        if not times.size:
            raise InvalidInputError(f"{who} is empty: say with horizon= how long it was watched.")
        horizon = times[-1]
    horizon = as_number(horizon, f"{who}: horizon")
    if horizon < (times[-1] if times.size else 0):
        last = f"the last time {times[-1]:g}" if times.size else "time 0"
        raise InvalidInputError(f"{who}: horizon {horizon:g} lies before {last}.")
    return horizon


def _check_incumbent(values: FloatArray, who: str) -> FloatArray:
    absent = np.isnan(values)
    if absent.any():
        raise InvalidInputError(f"{who}: an incumbent needs a value, got nan at position {int(np.argmax(absent))}.")
    return values


def _check_best(best: FloatArray, times: FloatArray, who: str) -> FloatArray:
    """Refuse a best value that increases; a failed evaluation (nan) repeats the best value before it."""
    if not best.size or ((best[1:] <= best[:-1]).all() and best[0] == best[0]):
        return best
    filled = _best_so_far(best)
    worse = best > filled
    if worse.any():
        place = int(np.argmax(worse))
        raise InvalidInputError(
            f"{who}: the best value so far cannot increase, got {best[place]:.17g} after {filled[place]:.17g} at time "
            f"{times[place]:g}. Use Trajectory.from_evaluations for the values of single evaluations, "
            "with maximize=True if larger is better."
        )
    filled.flags.writeable = False
    return filled


def minimised(values: FloatArray, maximize: bool) -> FloatArray:
    """Values with their sign flipped if larger ones are better; ``UNRANKED`` stays as it is."""
    return np.where(values == UNRANKED, UNRANKED, -values) if maximize else values


def _best_so_far(values: FloatArray) -> FloatArray:
    """Best value so far: ``inf`` before the first one, unchanged by ``nan``, unknown from ``UNRANKED`` to the next."""
    unranked = values == UNRANKED
    if not unranked.any():
        best = np.fmin.accumulate(values)
    else:
        best = np.fmin.accumulate(np.where(unranked, np.nan, values))
        latest = np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(values.size)))
        best[unranked[latest]] = UNRANKED
    best[np.isnan(best)] = np.inf
    return best


def hitting_times(trajectory: Trajectory, targets: FloatArray) -> FloatArray:
    """When a run first reached each target, a value at most as large; ``inf`` if never.

    >>> run = Trajectory(algorithm="a", instance="f", times=[1, 10], best=[5.0, 2.0], horizon=20)
    >>> hitting_times(run, np.array([9.0, 2.0, 1.0]))
    array([ 1., 10., inf])
    """
    # A target stays reached, although the value of an incumbent may increase again.
    falling = -np.minimum.accumulate(trajectory.best)
    return np.append(trajectory.times, np.inf)[np.searchsorted(falling, -targets, side="left")]
