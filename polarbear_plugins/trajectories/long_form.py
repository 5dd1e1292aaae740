"""Trajectories from data frames in long form: a row for each value of each run."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning, SourceError, short
from polarbear_plugins.options import Reader, flag, read_options
from polarbear_plugins.trajectories.trajectory import UNRANKED, Trajectory

if TYPE_CHECKING:
    import pandas as pd


_REQUIRED = ("algorithm", "instance", "time", "value")
NUMBER_ROLES = ("time", "value", "seed", "horizon")
NAME_ROLES = ("algorithm", "instance", "group")
_ROLES = (*_REQUIRED, "seed", "horizon", "group")
_UNRANKED = "unranked"  # how a table says UNRANKED


@dataclass(frozen=True, slots=True)
class LongFormOptions:
    """How to read a table.

    Parameters
    ----------
    columns
        Names of the columns for ``algorithm``, ``instance``, ``group``, ``seed``, ``time``, ``value`` and ``horizon``
        where they differ.  Several columns may make up the instance, and the group.
    maximize
        Larger values are better.
    horizon
        How far runs were watched: a number for all runs; ``"last"``, until their own last row; ``"longest"``, until the
        last row of any run, as when only improvements were logged.  ``None`` is the column if there is one, otherwise
        ``"last"`` with a warning if runs on one instance end at different times.
    fixed_groups
        The groups are all there are, rather than a sample of more.
    """

    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    maximize: bool = False
    horizon: float | str | None = None
    fixed_groups: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, object]) -> LongFormOptions:
        """Read options: objects from Python, text from the command line."""
        readers: dict[str, Reader] = {
            "columns": _read_columns,
            "maximize": flag,
            "horizon": _read_horizon,
            "fixed_groups": flag,
        }
        return cls(**read_options(options, readers, "A table"))

    def columns_of(self, role: str) -> tuple[str, ...]:
        """Names of the columns with a role."""
        return self.columns.get(role, (role,))


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
    table = _Table(frame, options, who, first_line)
    if not len(frame):
        raise SourceError(f"{who} has no rows. Expected a row for each value of each run.")
    algorithm, instance, seeds = table.names("algorithm"), table.names("instance"), table.seeds()
    group = _groups(table, instance)
    times, values = table.numbers("time"), table.numbers("value")
    table.refuse("time", ~np.isfinite(times), "a finite number")
    table.refuse("time", times < 0, "a number that is not negative")
    runs = _runs(algorithm.codes, instance.codes, seeds)
    _check_order(table, runs, times)
    horizons = _horizons(table, runs, times, instance.codes)
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
            )
            for rows, horizon in zip(runs, horizons, strict=True)
        ]
    except InvalidInputError as problem:
        raise SourceError(f"{who}: {problem}") from None


@dataclass(frozen=True, slots=True)
class _Names:
    """A column of names: ``codes[row]`` is the position in ``names``."""

    codes: NDArray[np.intp]
    names: tuple[str, ...]

    def of(self, row: int) -> str:
        return self.names[int(self.codes[row])]


class _Table:
    """The columns of a data frame by role, with messages that name the place."""

    def __init__(self, frame: pd.DataFrame, options: LongFormOptions, who: str, first_line: int | None) -> None:
        self.frame, self.options, self.who, self.first_line = frame, options, who, first_line
        missing = [name for role in _REQUIRED for name in self.options.columns_of(role) if name not in frame.columns]
        missing += [name for names in options.columns.values() for name in names if name not in frame.columns]
        if missing:
            found = ", ".join(str(name)[:60] for name in frame.columns[:20]) or "none"
            raise SourceError(
                f"{who} has no column {missing[0]!r}. It has {found}. Expected {', '.join(_REQUIRED)} and "
                "optionally group, seed and horizon; name the columns with columns= if they differ."
            )

    def has(self, role: str) -> bool:
        return all(name in self.frame.columns for name in self.options.columns_of(role))

    def refuse(self, role: str, bad: NDArray[np.bool_], expected: str) -> None:
        """Raise for the first bad row in the single column of a role."""
        self._refuse(self.options.columns_of(role)[0], bad, expected)

    def place(self, row: int) -> str:
        if self.first_line is None:
            return f"{self.who}, row {row}"
        return f"{self.who}, line {int(self.frame.index[row]) + self.first_line}"

    def _refuse(self, name: str, bad: NDArray[np.bool_], expected: str) -> None:
        if bad.any():
            raise self._error(name, int(np.argmax(bad)), expected)

    def _error(self, name: str, row: int, expected: str) -> SourceError:
        return SourceError(f"{self.place(row)}: expected {expected} in {name!r}, got {short(self._cell(name, row))}.")

    def numbers(self, role: str) -> FloatArray:
        return np.asarray(self._numeric(role), dtype=np.float64)

    def seeds(self) -> NDArray[np.int64]:
        if not self.has("seed"):
            return np.zeros(len(self.frame), dtype=np.int64)
        numbers = self._numeric("seed")
        if numbers.dtype.kind not in "iu":
            # Floats beyond this are not exact, and two seeds must not become one.
            whole = np.abs(numbers) < 2.0**53
            whole &= numbers == np.rint(np.where(whole, numbers, 0.5))
            self.refuse("seed", ~whole, "a whole number")
        elif numbers.dtype.kind == "u":
            self.refuse("seed", numbers > np.iinfo(np.int64).max, "a whole number below 2**63")
        return numbers.astype(np.int64)

    def names(self, role: str) -> _Names:
        columns = [self._names(name) for name in self.options.columns_of(role)]
        if len(columns) == 1:
            return columns[0]
        codes = np.stack([column.codes for column in columns], axis=1)
        distinct, inverse = np.unique(codes, axis=0, return_inverse=True)
        names = tuple(
            ",".join(
                f"{name}={column.names[code]}"
                for name, column, code in zip(self.options.columns_of(role), columns, row, strict=True)
            )
            for row in distinct
        )
        return _Names(inverse.reshape(-1), names)

    def _names(self, name: str) -> _Names:
        import pandas as pd

        column = self._column(name)
        try:
            codes, cells = pd.factorize(column)
        except (TypeError, NotImplementedError):  # lists and other structures, as objects or Arrow types
            row = next((row for row, cell in enumerate(column) if not _is_hashable(cell)), 0)
            raise self._error(name, row, "a name") from None
        self._refuse(name, codes < 0, "a name")
        texts = [_name_text(cell) for cell in cells]
        self._refuse(name, np.isin(codes, [k for k, text in enumerate(texts) if not text.strip()]), "a name")
        # Cells of different types may have the same text; the text is the name.
        position = {text: k for k, text in enumerate(dict.fromkeys(texts))}
        same = np.array([position[text] for text in texts], dtype=np.intp)
        return _Names(same[codes], tuple(position))

    def _numeric(self, role: str) -> NDArray[Any]:
        import pandas as pd

        name = self.options.columns_of(role)[0]
        column = self._column(name)
        expected = "a number"
        if role == "value":
            expected = f"a number or {_UNRANKED!r}"
            column = _unranked_as_number(column)
        if column.dtype.kind not in "iuf":
            if column.dtype == object:  # pandas would convert these to numbers
                odd = (bool, np.bool_, complex)
                self._refuse(name, np.array([isinstance(cell, odd) for cell in column]), expected)
            numbers = pd.Series(np.nan, index=column.index)
            if column.dtype.kind not in "bmMc":
                try:
                    numbers = pd.to_numeric(column, errors="coerce")
                except OverflowError:
                    row = next((row for row, cell in enumerate(column) if _is_too_large(cell)), 0)
                    raise self._error(name, row, "a finite number") from None
            self._refuse(name, np.asarray(numbers.isna() & column.notna()), expected)
            column = numbers
        return column.to_numpy(dtype=np.float64, na_value=np.nan) if column.isna().any() else column.to_numpy()

    def _column(self, name: str) -> pd.Series[Any]:
        column = self.frame[name]
        if column.ndim != 1:
            raise SourceError(f"{self.who} has more than one column {name!r}.")
        return column

    def _cell(self, name: str, row: int) -> object:
        cell = self._column(name).iloc[row]
        return cell.item() if isinstance(cell, np.generic) else cell


def _runs(algorithm: NDArray[np.intp], instance: NDArray[np.intp], seed: NDArray[np.int64]) -> list[NDArray[np.intp]]:
    """Rows of each run in table order; runs in order of first appearance."""
    order = np.lexsort((seed, instance, algorithm))
    new = np.zeros(order.size, dtype=bool)
    for key in (algorithm, instance, seed):
        new[1:] |= key[order[1:]] != key[order[:-1]]
    runs = np.split(order, np.flatnonzero(new))
    return sorted(runs, key=lambda rows: int(rows[0]))


def _groups(table: _Table, instance: _Names) -> _Names | None:
    """Groups of the rows, the same in all rows of an instance; ``None`` if there is no such column."""
    if not table.has("group"):
        if table.options.fixed_groups:
            raise SourceError(f"{table.who}: fixed_groups says something about groups, and there is no column 'group'.")
        return None
    group = table.names("group")
    _, first, place = np.unique(instance.codes, return_index=True, return_inverse=True)
    before = first[place.reshape(-1)]
    differs = group.codes != group.codes[before]
    if differs.any():
        row = int(np.argmax(differs))
        raise SourceError(
            f"{table.place(row)}: expected the group {group.of(before[row])!r}, which the instance "
            f"{instance.of(row)!r} has at {table.place(int(before[row]))}, got {group.of(row)!r}. An instance has one "
            "group; rename the column if it means something else."
        )
    return group


def _check_order(table: _Table, runs: Sequence[NDArray[np.intp]], times: FloatArray) -> None:
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


def _horizons(
    table: _Table, runs: Sequence[NDArray[np.intp]], times: FloatArray, instance: NDArray[np.intp]
) -> list[float]:
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
    if horizon is None:
        where = np.array([instance[rows[0]] for rows in runs])
        longest = np.zeros(int(where.max()) + 1)
        np.maximum.at(longest, where, own)
        early = int((own < longest[where]).sum())
        if early:
            warnings.warn(
                f"{table.who}: {early} of {len(runs)} runs end before others on the same instance and are absent from "
                "the rankings after their end. If only improvements were logged, say how far the runs were watched: "
                "with a column 'horizon', a number as horizon=, or horizon='longest'. horizon='last' keeps the current "
                "interpretation.",
                PolarBearWarning,
                stacklevel=2,
            )
    return [float(end) for end in own]


def _unranked_as_number(column: pd.Series[Any]) -> pd.Series[Any]:
    """Cells that hold the word for it become ``UNRANKED``; a column of numbers is returned as it is."""
    if column.dtype.kind in "iufbmMc":
        return column
    said = np.array([isinstance(cell, str) and cell.strip().lower() == _UNRANKED for cell in column])
    return column.astype(object).mask(said, UNRANKED) if said.any() else column


def _is_hashable(cell: object) -> bool:
    try:
        hash(cell)
    except TypeError:
        return False
    return True


def _is_too_large(cell: object) -> bool:
    return isinstance(cell, int) and abs(cell) > sys.float_info.max


def _name_text(cell: object) -> str:
    # Whole numbers in a column with gaps are floats; 3.0 is instance 3.
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _read_columns(columns: object, what: str) -> dict[str, tuple[str, ...]]:
    columns = columns or {}
    if isinstance(columns, str):
        pairs = [pair.partition("=") for pair in columns.split(",")]
        columns = {role.strip(): tuple(name.strip() for name in names.split("+")) for role, _, names in pairs}
    if not isinstance(columns, Mapping):
        raise InvalidInputError(f"{what}: expected a mapping such as {{'time': 'evaluations'}}, got {columns!r}.")
    parsed: dict[str, tuple[str, ...]] = {}
    for role, names in columns.items():
        if role not in _ROLES:
            raise InvalidInputError(f"{what}: there is no role {role!r}. The roles are {', '.join(_ROLES)}.")
        listed = [names] if isinstance(names, str) else names
        if not (isinstance(listed, list | tuple) and listed and all(isinstance(n, str) and n for n in listed)):
            raise InvalidInputError(f"{what}: expected the name of a column for {role!r}, got {names!r}.")
        parsed[role] = tuple(listed)
        if len(listed) > 1 and role in NUMBER_ROLES:
            raise InvalidInputError(f"{what}: {role!r} is one column, got {', '.join(parsed[role])}.")
    return parsed


def _read_horizon(horizon: object, what: str) -> float | str | None:
    if horizon is None or (isinstance(horizon, str) and horizon in ("last", "longest")):
        return horizon
    try:
        return as_number(float(horizon) if isinstance(horizon, str) else horizon, what)
    except ValueError:
        raise InvalidInputError(f"{what}: expected a number, 'last' or 'longest', got {horizon!r}.") from None
