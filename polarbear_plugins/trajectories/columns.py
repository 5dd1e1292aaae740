"""The columns of a table in long form by their role, read with messages that name the place."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number
from polarbear_plugins.errors import InvalidInputError, SourceError, short
from polarbear_plugins.options import Reader, flag, read_options
from polarbear_plugins.trajectories.trajectory import UNRANKED

if TYPE_CHECKING:
    import pandas as pd


REQUIRED = ("algorithm", "instance", "time", "value")
NUMBER_ROLES = ("time", "value", "seed", "horizon", "dimension")
NAME_ROLES = ("algorithm", "instance", "group", "end")
OPTIONAL = ("group", "dimension", "seed", "horizon", "end")
ROLES = (*REQUIRED, *OPTIONAL)
_UNRANKED = "unranked"  # how a table says UNRANKED


@dataclass(frozen=True, slots=True)
class LongFormOptions:
    """How to read a table.

    Parameters
    ----------
    columns
        Names of the columns for ``algorithm``, ``instance``, ``group``, ``dimension``, ``seed``, ``time``, ``value``,
        ``horizon`` and ``end`` where they differ.  Several columns may make up the instance, and the group.
    maximize
        Larger values are better.
    horizon
        How far runs were watched: a number for all runs; ``"last"``, until their own last row; ``"longest"``, until the
        last row of any run, as when only improvements were logged.  ``None`` is the column if there is one, otherwise
        ``"last"``.
    fixed_groups
        The groups are all there are, rather than a sample of more.
    objectives
        Columns of several objectives instead of ``value``, minimised; a minus before a name says that larger values are
        better.  The value is then the hypervolume that a run lacks to the front of all runs on the instance.
    """

    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    maximize: bool = False
    horizon: float | str | None = None
    fixed_groups: bool = False
    objectives: tuple[str, ...] = ()

    @classmethod
    def parse(cls, options: Mapping[str, object]) -> LongFormOptions:
        """Read options: objects from Python, text from the command line."""
        readers: dict[str, Reader] = {
            "columns": _read_columns,
            "maximize": flag,
            "horizon": _read_horizon,
            "fixed_groups": flag,
            "objectives": _read_objectives,
        }
        parsed = cls(**read_options(options, readers, "A table"))
        if parsed.objectives and (parsed.maximize or "value" in parsed.columns):
            raise InvalidInputError(
                "A table: objectives= takes the place of the column of the value and of maximize=. Put a minus before "
                "each objective that is maximised, as in objectives=-acc,memory."
            )
        return parsed

    @property
    def objective_columns(self) -> tuple[str, ...]:
        """Names of the columns of the objectives."""
        return tuple(name.removeprefix("-") for name in self.objectives)

    @property
    def required(self) -> tuple[str, ...]:
        """Roles without which a table cannot be read."""
        return tuple(role for role in REQUIRED if role != "value" or not self.objectives)

    def columns_of(self, role: str) -> tuple[str, ...]:
        """Names of the columns with a role."""
        return self.columns.get(role, (role,))


@dataclass(frozen=True, slots=True)
class Names:
    """A column of names: ``codes[row]`` is the position in ``names``."""

    codes: NDArray[np.intp]
    names: tuple[str, ...]

    def of(self, row: int) -> str:
        """Name in a row."""
        return self.names[int(self.codes[row])]


class Table:
    """The columns of a data frame by role, with messages that name the place."""

    def __init__(self, frame: pd.DataFrame, options: LongFormOptions, who: str, first_line: int | None) -> None:
        self.frame, self.options, self.who, self.first_line = frame, options, who, first_line
        needed = [name for role in options.required for name in options.columns_of(role)]
        missing = [name for name in (*needed, *options.objective_columns) if name not in frame.columns]
        missing += [name for names in options.columns.values() for name in names if name not in frame.columns]
        if missing:
            expected = ", ".join((*options.required, *options.objective_columns))
            found = ", ".join(str(name)[:60] for name in frame.columns[:20]) or "none"
            raise SourceError(
                f"{who} has no column {missing[0]!r}. It has {found}. Expected {expected} and "
                f"optionally {', '.join(OPTIONAL)}; name the columns with columns= if they differ."
            )

    def has(self, role: str) -> bool:
        """Whether the table has the column of a role."""
        return all(name in self.frame.columns for name in self.options.columns_of(role))

    def refuse(self, role: str, bad: NDArray[np.bool_], expected: str) -> None:
        """Raise for the first bad row in the single column of a role."""
        self._refuse(self.options.columns_of(role)[0], bad, expected)

    def place(self, row: int) -> str:
        """Where a row stands, for messages."""
        if self.first_line is None:
            return f"{self.who}, row {row}"
        return f"{self.who}, line {int(self.frame.index[row]) + self.first_line}"

    def _refuse(self, name: str, bad: NDArray[np.bool_], expected: str) -> None:
        if bad.any():
            raise self._error(name, int(np.argmax(bad)), expected)

    def _error(self, name: str, row: int, expected: str) -> SourceError:
        return SourceError(f"{self.place(row)}: expected {expected} in {name!r}, got {short(self._cell(name, row))}.")

    def numbers(self, role: str) -> FloatArray:
        """Numbers of a column."""
        return np.asarray(self._numeric(role), dtype=np.float64)

    def objectives(self) -> FloatArray:
        """``[row, objective]``, minimised; ``nan`` where an evaluation failed or an instance does not have it."""
        columns = []
        for name in self.options.objectives:
            column = name.removeprefix("-")
            numbers = np.asarray(self._numbers_in(column, self._column(column), "a number"), dtype=np.float64)
            self._refuse(column, np.isinf(numbers), "a finite number")
            columns.append(-numbers if name.startswith("-") else numbers)
        return np.stack(columns, axis=1)

    def seeds(self) -> NDArray[np.int64]:
        """Seeds, 0 where the table has none."""
        if not self.has("seed"):
            return np.zeros(len(self.frame), dtype=np.int64)
        numbers = self._numeric("seed")
        if numbers.dtype.kind not in "iu":
            numbers = numbers.astype(np.float64)  # half precision cannot even hold the bound
            # Floats beyond this are not exact, and two seeds must not become one.
            whole = np.abs(numbers) < 2.0**53
            whole &= numbers == np.rint(np.where(whole, numbers, 0.5))
            self.refuse("seed", ~whole, "a whole number")
        elif numbers.dtype.kind == "u":
            self.refuse("seed", numbers > np.iinfo(np.int64).max, "a whole number below 2**63")
        return numbers.astype(np.int64)

    def words(self, role: str, known: Sequence[str], empty: str) -> NDArray[Any]:
        """Words of a column, one of those that are known; an empty cell is ``empty``."""
        name = self.options.columns_of(role)[0]
        column = self._column(name)
        absent = np.asarray(column.isna())
        words = np.array(
            [empty if gap else str(cell).strip() or empty for gap, cell in zip(absent, column, strict=True)]
        )
        self._refuse(name, ~np.isin(words, known), " or ".join(known))
        return words

    def names(self, role: str) -> Names:
        """Names of a column, or of several together."""
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
        return Names(inverse.reshape(-1), names)

    def _names(self, name: str) -> Names:
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
        return Names(same[codes], tuple(position))

    def _numeric(self, role: str) -> NDArray[Any]:
        name = self.options.columns_of(role)[0]
        column = self._column(name)
        expected = "a number"
        if role == "value":
            expected = f"a number or {_UNRANKED!r}"
            column = _unranked_as_number(column)
        return self._numbers_in(name, column, expected)

    def _numbers_in(self, name: str, column: pd.Series[Any], expected: str) -> NDArray[Any]:
        import pandas as pd

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
        if role not in ROLES:
            raise InvalidInputError(f"{what}: there is no role {role!r}. The roles are {', '.join(ROLES)}.")
        listed = [names] if isinstance(names, str) else names
        if not (isinstance(listed, list | tuple) and listed and all(isinstance(n, str) and n for n in listed)):
            raise InvalidInputError(f"{what}: expected the name of a column for {role!r}, got {names!r}.")
        parsed[role] = tuple(listed)
        if len(listed) > 1 and role in NUMBER_ROLES:
            raise InvalidInputError(f"{what}: {role!r} is one column, got {', '.join(parsed[role])}.")
    return parsed


def _read_objectives(objectives: object, what: str) -> tuple[str, ...]:
    names = [part.strip() for part in objectives.split(",")] if isinstance(objectives, str) else objectives
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name.strip("-") for name in names):
        raise InvalidInputError(f"{what}: expected names of columns, such as -acc,memory; got {objectives!r}.")
    if len({name.removeprefix("-") for name in names}) < max(len(names), 2):
        raise InvalidInputError(f"{what}: expected two or more different columns, got {', '.join(names)}.")
    return tuple(names)


def _read_horizon(horizon: object, what: str) -> float | str | None:
    if horizon is None or (isinstance(horizon, str) and horizon in ("last", "longest")):
        return horizon
    try:
        return as_number(float(horizon) if isinstance(horizon, str) else horizon, what)
    except ValueError:
        raise InvalidInputError(f"{what}: expected a number, 'last' or 'longest', got {horizon!r}.") from None
