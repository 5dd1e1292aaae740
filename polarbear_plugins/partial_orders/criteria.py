"""Criteria for partial orders, from trajectories or from a table with a row for each optimizer."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_choice, as_vector
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning, SourceError, short
from polarbear_plugins.files import read_text_table, text_table_header
from polarbear_plugins.names import natural_key
from polarbear_plugins.partial_orders.order import (
    IndifferenceError,
    Missing,
    PartialOrder,
    as_optimizers,
    from_criteria,
)
from polarbear_plugins.trajectories.runs import check_values_known
from polarbear_plugins.trajectories.timepoints import as_timepoints
from polarbear_plugins.trajectories.trajectory import Trajectory, hitting_times, sample_staircase

if TYPE_CHECKING:
    import pandas as pd


SuiteIndifference: TypeAlias = Literal["refuse", "incomparable", "leave-out"]
Statistic: TypeAlias = Literal["median", "mean"]


def best_at_timepoints(
    trajectories: Iterable[Trajectory], timepoints: ArrayLike, statistic: Statistic = "median"
) -> dict[str, pd.DataFrame]:
    """Criteria of each instance: the best value at several timepoints.

    A run without a value so far counts as ``inf``, one that was not watched that far as missing (``nan``).

    Parameters
    ----------
    statistic
        Statistic of repeated runs; missing if one of them is.

    Returns
    -------
    For each instance a row for each algorithm and a column for each timepoint, for
    :func:`~polarbear_plugins.partial_orders.from_criteria`; algorithms without a run there have missing values.

    Examples
    --------
    >>> runs = [
    ...     Trajectory(algorithm="csa", instance="f1", times=[1, 10], best=[5.0, 2.0], horizon=20),
    ...     Trajectory(algorithm="msr", instance="f1", times=[4, 12], best=[4.0, 3.0], horizon=20),
    ... ]
    >>> best_at_timepoints(runs, [2, 20])["f1"]
         best at 2  best at 20
    csa        5.0         2.0
    msr        inf         3.0
    """
    grid = as_timepoints(timepoints)
    runs = [check_values_known(run, "best_at_timepoints") for run in trajectories]
    names = [f"best at {point:.15g}" for point in grid]
    return _frames(runs, [sample_staircase(run, grid) for run in runs], names, statistic)


def time_to_targets(
    trajectories: Iterable[Trajectory], targets: ArrayLike, statistic: Statistic = "median"
) -> dict[str, pd.DataFrame]:
    """Criteria of each instance: the time until the best value is at most each of several targets.

    A target that was not reached counts as ``inf``; but as missing (``nan``) if another run on the instance was watched
    longer, since it might have been reached.  See :func:`best_at_timepoints`.

    Examples
    --------
    >>> run = Trajectory(algorithm="csa", instance="f1", times=[1, 10], best=[5.0, 2.0], horizon=20)
    >>> time_to_targets([run], [5, 1])["f1"]
         time to 5  time to 1
    csa        1.0        inf
    """
    goals = as_vector(targets, "targets")
    if not goals.size or not np.isfinite(goals).all() or np.unique(goals).size < goals.size:
        raise InvalidInputError(f"targets: expected distinct finite numbers, got {short(targets)}.")
    runs = [check_values_known(run, "time_to_targets") for run in trajectories]
    watched: dict[str, float] = {}
    for run in runs:
        watched[run.instance] = max(run.horizon, watched.get(run.instance, 0.0))
    values = []
    for run in runs:
        hits = hitting_times(run, goals)
        never = np.inf if run.horizon >= watched[run.instance] else np.nan
        values.append(np.where(hits < np.inf, hits, never))
    return _frames(runs, values, [f"time to {goal:.15g}" for goal in goals], statistic)


def split_criteria(
    frame: pd.DataFrame,
    function: str = "function",
    optimizer: str = "optimizer",
    criteria: Sequence[str] | None = None,
    *,
    who: str = "The table of criteria",
) -> dict[str, pd.DataFrame]:
    """Criteria of each test function, from a table with a row for each function and optimizer.

    Parameters
    ----------
    function, optimizer
        Names of the columns with the function and the optimizer.
    criteria
        Columns of the criteria; by default all others with a name.
    who
        Name of the table in messages.
    """
    columns = [str(column) for column in frame.columns]
    frame = frame.set_axis(columns, axis=1)
    chosen = (
        [name for name in columns if name not in (function, optimizer) and name and not name.startswith("Unnamed: ")]
        if criteria is None
        else list(criteria)
    )
    for name in (function, optimizer, *chosen):
        if name not in columns:
            there = ", ".join(name[:60] for name in columns[:20]) or "none"
            raise SourceError(f"{who} has no column {name!r}. It has {there}.")
    if not chosen:
        raise SourceError(f"{who} has no column of criteria besides {function!r} and {optimizer!r}.")
    if not len(frame):
        raise SourceError(f"{who} has no rows. Expected a row for each test function and optimizer.")
    everyone = list(dict.fromkeys(frame[optimizer]))
    for row, names in enumerate(zip(frame[function], frame[optimizer], strict=True), start=1):
        if not all(str(name).strip() for name in names):
            raise SourceError(
                f"{who}, row {row}: expected names of a test function and an optimizer, got {short(names)}."
            )
    frames = {}
    for group, rows in frame.groupby(function, sort=False):
        twice = rows[optimizer][rows[optimizer].duplicated()]
        if len(twice):
            raise SourceError(
                f"{who} has more than one row for the optimizer {short(twice.iloc[0])} on {short(str(group))}."
            )
        frames[str(group)] = rows.set_index(optimizer)[chosen].reindex(everyone)
    return frames


def read_criteria(
    path: str | Path,
    function: str = "function",
    optimizer: str = "optimizer",
    criteria: Sequence[str] | None = None,
    *,
    separator: str | None = None,
    decimal: str = ".",
) -> dict[str, pd.DataFrame]:
    """Criteria of each test function, from a CSV file; see :func:`split_criteria`.

    Parameters
    ----------
    separator
        Between columns; by default a comma, or a tab in files that end with .tsv.
    decimal
        Decimal separator.
    """
    path = Path(path)
    mark = separator or ("\t" if path.suffix.lower() == ".tsv" else ",")
    header = text_table_header(path, mark)
    if len(header) == 1 and ";" in header[0]:
        raise SourceError(
            f"{path.name}: the columns seem to be separated by semicolons. Use separator=';', and "
            "decimal=',' if decimals have commas."
        )
    names = [name for name in (function, optimizer) if name in header]
    frame = read_text_table(path, mark, names=names, numbers=set(header) - set(names), decimal=decimal)
    frames = split_criteria(frame, function, optimizer, criteria, who=path.name)
    for name in next(iter(frames.values())).columns:
        column = frame[name]
        if column.ndim == 1 and column.dtype.kind not in "iuf":
            for row, cell in zip(column.index, column, strict=True):
                if not _is_number(cell):
                    # Not the line: a quoted name may span several.
                    raise SourceError(
                        f"{path.name}, row {int(row) + 1} below the header: expected a number in {short(name)}, "
                        f"got {short(cell)}."
                    )
    try:  # here, where the file has a name
        as_optimizers(map(str, next(iter(frames.values())).index))
    except InvalidInputError as problem:
        raise SourceError(f"{path.name}: {problem}") from None
    return frames


def orders_of_functions(
    frames: Mapping[str, pd.DataFrame],
    maximize: Iterable[str] = (),
    *,
    indifferent: SuiteIndifference = "refuse",
    missing: Missing = "refuse",
) -> dict[str, PartialOrder]:
    """Partial order of each test function; see :func:`~polarbear_plugins.partial_orders.from_criteria`.

    ``indifferent="leave-out"`` leaves out the test functions on which two optimizers are equal in all criteria, with a
    warning that names them.
    """
    larger = [maximize] if isinstance(maximize, str) else list(maximize)
    orders, left_out = {}, []
    for name, frame in frames.items():
        try:
            kind: Literal["refuse", "incomparable"] = "refuse" if indifferent == "leave-out" else indifferent
            orders[name] = from_criteria(frame, larger, indifferent=kind, missing=missing)
        except IndifferenceError as problem:
            if indifferent != "leave-out":
                raise IndifferenceError(
                    f'{name}: {problem} Or leave out such test functions with indifferent="leave-out".'
                ) from None
            left_out.append(name)
        except InvalidInputError as problem:
            raise InvalidInputError(f"{name}: {problem}") from None
    if left_out:
        warnings.warn(
            f"Left out because optimizers are equal in all criteria: {', '.join(left_out)}.",
            PolarBearWarning,
            stacklevel=2,
        )
    return orders


def _is_number(cell: object) -> bool:
    """Whether a cell is a number, also as text: a word in the same column keeps numbers as text."""
    import pandas as pd

    try:
        if isinstance(cell, str):  # as pandas reads it: Python also reads 1_000, -nan and digits of other scripts
            number = float(pd.to_numeric(cell, errors="coerce"))
            return math.isfinite(number) or (not math.isnan(number) and "inf" in cell.lower())  # not by its many digits
        return isinstance(cell, int | float) and isinstance(float(cell), float)
    except OverflowError:  # an integer too large for a float
        return False


def _frames(
    runs: Sequence[Trajectory], values: Sequence[FloatArray], names: Sequence[str], statistic: str
) -> dict[str, pd.DataFrame]:
    import pandas as pd

    as_choice(statistic, Statistic, "statistic")
    if not runs:
        raise InvalidInputError("There are no trajectories to take criteria from.")
    summarize = np.median if statistic == "median" else np.mean
    algorithms = sorted({run.algorithm for run in runs}, key=natural_key)
    found: dict[str, dict[str, list[FloatArray]]] = {}
    for run, value in zip(runs, values, strict=True):
        found.setdefault(run.instance, {}).setdefault(run.algorithm, []).append(value)
    return {
        instance: pd.DataFrame(
            {algorithm: summarize(each, axis=0) for algorithm, each in found[instance].items()}, index=list(names)
        ).T.reindex(algorithms)
        for instance in sorted(found, key=natural_key)
    }
