"""Trajectories from data frames in long form: a row for each value of each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast, get_args

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError, SourceError, short
from polarbear_plugins.trajectories.columns import LongFormOptions, Names, Table
from polarbear_plugins.trajectories.given import End
from polarbear_plugins.trajectories.hypervolume import hypervolume_losses
from polarbear_plugins.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    import pandas as pd


def read_long_form(
    frame: pd.DataFrame, options: LongFormOptions, who: str, first_line: int | None = None
) -> list[Trajectory]:
    """Trajectories of a data frame in long form, in order of first appearance.

    Parameters
    ----------
    frame
        A row for each value, in the order of time within a run.
    options
        See :class:`LongFormOptions`.
    who
        Name of the source, for messages.
    first_line
        Line of the row with index 0 in a text file; without it, messages give row numbers.
    """
    table = Table(frame, options, who, first_line)
    if not len(frame):
        raise SourceError(f"{who} has no rows. Expected a row for each value of each run.")
    algorithm, instance, seeds = table.names("algorithm"), table.names("instance"), table.seeds()
    group, dimension = _groups(table, instance), _dimensions(table, instance)
    times = table.numbers("time")
    table.refuse("time", ~np.isfinite(times), "a finite number")
    table.refuse("time", times < 0, "a number that is not negative")
    runs = _runs(algorithm.codes, instance.codes, seeds)
    _check_order(table, runs, times)
    values = _hypervolume_losses(table, runs, instance) if options.objectives else table.numbers("value")
    ends = _ends(table, runs)
    horizons = _horizons(table, runs, times)
    try:
        return [
            Trajectory.from_evaluations(
                values[rows],
                times=times[rows],
                algorithm=algorithm.of(rows[0]),
                instance=instance.of(rows[0]),
                seed=int(seeds[rows[0]]),
                horizon=horizon,
                maximize=options.maximize,
                group=None if group is None else group.of(rows[0]),
                fixed_group=options.fixed_groups,
                dimension=None if dimension is None else int(dimension[rows[0]]),
                end=end,
            )
            for rows, horizon, end in zip(runs, horizons, ends, strict=True)
        ]
    except InvalidInputError as problem:
        raise SourceError(f"{who}: {problem}") from None


def _runs(algorithm: NDArray[np.intp], instance: NDArray[np.intp], seed: NDArray[np.int64]) -> list[NDArray[np.intp]]:
    """Rows of each run in table order; runs in order of first appearance."""
    order = np.lexsort((seed, instance, algorithm))
    new = np.zeros(order.size, dtype=bool)
    for key in (algorithm, instance, seed):
        new[1:] |= key[order[1:]] != key[order[:-1]]
    runs = np.split(order, np.flatnonzero(new))
    return sorted(runs, key=lambda rows: int(rows[0]))


def _hypervolume_losses(table: Table, runs: Sequence[NDArray[np.intp]], instance: Names) -> FloatArray:
    """Value of each row: the hypervolume that its run lacks so far to the front of all runs on the instance.

    An objective without any value on an instance is none of that instance: a table may hold instances with others.
    """
    points = table.objectives()
    by_instance: dict[int, list[NDArray[np.intp]]] = {}
    for rows in runs:
        by_instance.setdefault(int(instance.codes[rows[0]]), []).append(rows)
    values = np.full(len(points), np.nan)
    for code, of_instance in by_instance.items():
        there = ~np.isnan(points[np.concatenate(of_instance)]).all(axis=0)
        if there.sum() < 2:
            raise SourceError(
                f"{table.who}: the instance {instance.names[code]!r} has values of {int(there.sum())} of the "
                f"objectives {', '.join(table.options.objective_columns)}; expected two or more."
            )
        losses = hypervolume_losses([points[rows][:, there] for rows in of_instance])
        for rows, loss in zip(of_instance, losses, strict=True):
            values[rows] = loss
    return values


def _groups(table: Table, instance: Names) -> Names | None:
    """Groups of the rows, the same in all rows of an instance; ``None`` if there is no such column."""
    if not table.has("group"):
        if table.options.fixed_groups:
            raise SourceError(f"{table.who}: fixed_groups says something about groups, and there is no column 'group'.")
        return None
    group = table.names("group")
    _check_same_in_instance(table, instance, "group", group.codes, group.names)
    return group


def _dimensions(table: Table, instance: Names) -> NDArray[np.int64] | None:
    """Dimensions of the rows, the same in all rows of an instance; ``None`` if there is no such column."""
    if not table.has("dimension"):
        return None
    numbers = table.numbers("dimension")
    # Beyond this, floats are whole without being exact, and so is infinity.
    whole = (numbers >= 1) & (numbers < 2.0**53) & (numbers == np.rint(numbers))
    table.refuse("dimension", ~whole, "a whole number from 1 on")
    dimensions = numbers.astype(np.int64)
    distinct, codes = np.unique(dimensions, return_inverse=True)
    _check_same_in_instance(table, instance, "dimension", codes.reshape(-1), [str(each) for each in distinct])
    return dimensions


def _check_same_in_instance(
    table: Table, instance: Names, role: str, codes: NDArray[np.intp], names: Sequence[str]
) -> None:
    """Refuse an instance whose rows have different names in the column of a role."""
    _, first, place = np.unique(instance.codes, return_index=True, return_inverse=True)
    before = first[place.reshape(-1)]
    differs = codes != codes[before]
    if differs.any():
        row = int(np.argmax(differs))
        raise SourceError(
            f"{table.place(row)}: expected the {role} {short(names[codes[before[row]]])}, which the instance "
            f"{short(instance.of(row))} has at {table.place(int(before[row]))}, got {short(names[codes[row]])}. An "
            f"instance has one {role}; rename the column if it means something else."
        )


def _ends(table: Table, runs: Sequence[NDArray[np.intp]]) -> list[End]:
    """What is known about each run past its horizon; an empty cell says nothing."""
    if not table.has("end"):
        return ["unknown"] * len(runs)
    said = table.words("end", get_args(End), empty="unknown")
    first = said.copy()
    for rows in runs:
        first[rows] = said[rows[0]]
    table.refuse("end", said != first, "the same word in all rows of a run")
    return [cast("End", str(said[rows[0]])) for rows in runs]


def _check_order(table: Table, runs: Sequence[NDArray[np.intp]], times: FloatArray) -> None:
    for rows in runs:
        steps = np.diff(times[rows])
        if (steps > 0).all():
            continue
        at = int(np.argmax(steps <= 0))
        before, here = int(rows[at]), int(rows[at + 1])
        hint = "Distinguish repeated runs with a seed column."
        if steps[at] == 0:
            raise SourceError(
                f"{table.place(here)}: the same algorithm, instance, seed and time ({times[here]:g}) as at "
                f"{table.place(before)}. {hint}"
            )
        raise SourceError(
            f"{table.place(here)}: expected a time after {times[before]:g} ({table.place(before)}) in the same run, "
            f"got {times[here]:g}. Sort the rows by time. {hint}"
        )


def _horizons(table: Table, runs: Sequence[NDArray[np.intp]], times: FloatArray) -> list[float]:
    """How far each run was watched."""
    if table.has("horizon") and table.options.horizon is None:
        given = table.numbers("horizon")
        table.refuse("horizon", ~np.isfinite(given), "a finite number")
        first = np.empty_like(given)
        for rows in runs:
            first[rows] = given[rows[0]]
        table.refuse("horizon", given != first, "the same number in all rows of a run")
        return [float(given[rows[0]]) for rows in runs]
    own = np.array([times[rows[-1]] for rows in runs])
    horizon = table.options.horizon
    if horizon == "longest":
        return [float(own.max())] * len(runs)
    if isinstance(horizon, float):
        return [horizon] * len(runs)
    return [float(end) for end in own]
