"""Trajectories: the best value found so far against time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_vector
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.trajectories.given import (
    End,
    check_clock,
    check_ending,
    check_group,
    check_horizon,
    check_incumbent,
    check_labels,
)
from polarbear_plugins.trajectories.timepoints import as_timepoints

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
    dimension
        Of the instance, if it has one.
    end
        What is known past the horizon: ``"unknown"``, as for most logs; ``"stopped"``, the run was cut off there and
        would have gone on, as those of a race; ``"done"``, it reached its target with its last value, so that there
        is nothing better.

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
    dimension: int | None
    end: End

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
        dimension: int | None = None,
        end: End = "unknown",
    ) -> None:
        labels, who = check_labels(algorithm, instance, seed)
        grouping = check_group(group, fixed_group, who)
        clock = as_vector(times, f"{who}: times")
        values = as_vector(best, f"{who}: best")
        check_clock(clock, values, who)
        values = check_incumbent(values, who) if incumbent else _check_best(values, clock, who)
        horizon = check_horizon(horizon, clock, who)
        self._set(*labels, clock, values, horizon, *grouping, *check_ending(dimension, end, _last_value(values), who))

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
        dimension: int | None,
        end: End,
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
            ("dimension", dimension),
            ("end", end),
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
        dimension: int | None = None,
        end: End = "unknown",
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
        group, fixed_group, dimension, end
            As for the class.

        Examples
        --------
        >>> run = Trajectory.from_evaluations([4.0, 7.0, float("nan"), 1.5, 3.0], algorithm="a", instance="f1")
        >>> run.times, run.best, run.horizon
        (array([1., 4.]), array([4. , 1.5]), 5.0)
        """
        labels, who = check_labels(algorithm, instance, seed)
        grouping = check_group(group, fixed_group, who)
        observed = as_vector(values, f"{who}: values")
        clock = np.arange(1.0, observed.size + 1) if times is None else as_vector(times, f"{who}: times")
        check_clock(clock, observed, who)
        horizon = check_horizon(horizon, clock, who)
        best = _best_so_far(minimised(observed, maximize))
        changed = best != np.concatenate(([np.inf], best[:-1]))
        trajectory = cls.__new__(cls)
        ending = check_ending(dimension, end, _last_value(best), who)
        trajectory._set(*labels, clock[changed], best[changed], horizon, *grouping, *ending)
        return trajectory

    def in_group(self, group: str | int | None, fixed_group: bool = False) -> Trajectory:
        """The same run with its instance in another group, or in none; it shares the arrays of this one.

        >>> run = Trajectory(algorithm="a", instance="f1-i2", times=[1], best=[5.0])
        >>> run.in_group("f1", fixed_group=True)
        Trajectory(algorithm='a', instance='f1-i2', group='f1', seed=0, 1 steps to 5 at time 1, watched until 1)
        """
        grouping = check_group(group, fixed_group, f"trajectory of {self.algorithm!r} on {self.instance!r}")
        return self._labelled(*grouping, self.dimension, self.end)

    def described(self, *, dimension: int | None, end: End) -> Trajectory:
        """The same run with what else is known: the dimension, and what is past the end; it shares the arrays.

        >>> Trajectory(algorithm="a", instance="f1", times=[1], best=[5.0]).described(dimension=2, end="stopped")
        Trajectory(algorithm='a', instance='f1', dimension=2, seed=0, 1 steps to 5 at time 1, watched until 1, stopped)
        """
        who = f"trajectory of {self.algorithm!r} on {self.instance!r}"
        ending = check_ending(dimension, end, _last_value(self.best), who)
        return self._labelled(self.group, self.fixed_group, *ending)

    def changed(self, **fields: Any) -> Trajectory:
        """The same run with other fields; its values may be those of an incumbent, which are not checked again.

        >>> Trajectory(algorithm="a", instance="f1", times=[1], best=[5.0]).changed(instance="f2", horizon=9)
        Trajectory(algorithm='a', instance='f2', seed=0, 1 steps to 5 at time 1, watched until 9)
        """
        build, values = self.__reduce__()
        return build(**dict(zip(_FIELDS, values, strict=True)) | fields)

    def _labelled(self, group: str | None, fixed_group: bool, dimension: int | None, end: End) -> Trajectory:
        copy = Trajectory.__new__(Trajectory)
        same = self.algorithm, self.instance, self.seed, self.times, self.best, self.horizon
        copy._set(*same, group, fixed_group, dimension, end)
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that the arrays of a copy are read-only again.
        fields = (self.algorithm, self.instance, self.seed, self.times, self.best, self.horizon)
        return _rebuild, (*fields, self.group, self.fixed_group, self.dimension, self.end)

    def to_pandas(self) -> pd.DataFrame:
        """The run as a table that :func:`polarbear_plugins.read_trajectories` reads: a row for each improvement.

        Columns: ``algorithm``, ``instance``, ``seed``, ``time``, ``value`` (minimised) and ``horizon``; after
        ``instance`` also ``group`` and ``dimension``, if it has them, and at the end ``end``, if it is known.  Join
        tables of several runs with ``pandas.concat``; a run without any value has no rows.

        >>> Trajectory(algorithm="a", instance="f", times=[1, 4], best=[8, 2], horizon=9).to_pandas()
          algorithm instance  seed  time  value  horizon
        0         a        f     0   1.0    8.0      9.0
        1         a        f     0   4.0    2.0      9.0
        """
        import pandas as pd

        same: dict[str, Any] = {"algorithm": self.algorithm, "instance": self.instance}
        same |= {} if self.group is None else {"group": self.group}
        same |= {} if self.dimension is None else {"dimension": self.dimension}
        same["seed"] = self.seed
        ending = {} if self.end == "unknown" else {"end": self.end}
        frame = pd.DataFrame({"time": self.times, "value": self.best, "horizon": self.horizon, **ending})
        for place, (column, value) in enumerate(same.items()):
            frame.insert(place, column, value)
        return frame

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trajectory):
            return NotImplemented
        return (
            all(getattr(self, name) == getattr(other, name) for name in _SCALARS)
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
        dimension = "" if self.dimension is None else f"dimension={self.dimension}, "
        known = "" if self.end == "unknown" else f", {self.end}"
        return (
            f"Trajectory(algorithm={self.algorithm!r}, instance={self.instance!r}, {group}{dimension}seed={self.seed}, "
            f"{end}, watched until {self.horizon:g}{known})"
        )


_FIELDS = ("algorithm", "instance", "seed", "times", "best", "horizon", "group", "fixed_group", "dimension", "end")
_SCALARS = ("algorithm", "instance", "seed", "horizon", "group", "fixed_group", "dimension", "end")


def _rebuild(
    algorithm: str,
    instance: str,
    seed: int,
    times: FloatArray,
    best: FloatArray,
    horizon: float,
    group: str | None = None,  # pickles of earlier versions lack it and what follows
    fixed_group: bool = False,
    dimension: int | None = None,
    end: End = "unknown",
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
        dimension=dimension,
        end=end,
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


def _last_value(best: FloatArray) -> float | None:
    """Last value of a run; ``None`` if it has none, or if it is not known."""
    return float(best[-1]) if best.size and best[-1] < np.inf and best[-1] != UNRANKED else None


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
