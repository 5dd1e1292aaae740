"""Checks of what a trajectory is made from."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_choice, as_number, as_whole_number
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.names import as_name
from polarbear_plugins.trajectories.timepoints import check_times

#: What is known about a run past its horizon.
End: TypeAlias = Literal["unknown", "stopped", "done"]


def check_labels(algorithm: object, instance: object, seed: object) -> tuple[tuple[str, str, int], str]:
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


def check_ending(dimension: object, end: Any, last: float | None, who: str) -> tuple[int | None, End]:
    """Dimension of the instance, and what is known past the horizon; ``last`` is the last value, if there is one."""
    known: End = as_choice(end, End, f"{who}: end")
    if known == "done" and last is None:
        raise InvalidInputError(f"{who}: end='done' says that it reached its target, and it has no value at its end.")
    if dimension is None:
        return None, known
    return as_whole_number(dimension, f"{who}: dimension", at_least=1), known


def check_clock(times: FloatArray, values: FloatArray, who: str) -> None:
    """Refuse times that do not increase, or that are not as many as the values."""
    if times.size != values.size:
        raise InvalidInputError(f"{who}: expected a value for each time, got {times.size} times, {values.size} values.")
    check_times(times, who)


def check_horizon(horizon: float | None, times: FloatArray, who: str) -> float:
    """How far a run was watched, by default until its last time."""
    if horizon is None:
        if not times.size:
            raise InvalidInputError(f"{who} is empty: say with horizon= how long it was watched.")
        horizon = times[-1]
    horizon = as_number(horizon, f"{who}: horizon")
    if horizon < (times[-1] if times.size else 0):
        last = f"the last time {times[-1]:g}" if times.size else "time 0"
        raise InvalidInputError(f"{who}: horizon {horizon:g} lies before {last}.")
    return horizon


def check_incumbent(values: FloatArray, who: str) -> FloatArray:
    """Refuse an incumbent without a value."""
    absent = np.isnan(values)
    if absent.any():
        raise InvalidInputError(f"{who}: an incumbent needs a value, got nan at position {int(np.argmax(absent))}.")
    return values
