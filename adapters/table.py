"""Tables in long form: CSV and Parquet files, and pandas data frames."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.extras import require
from polarbear_plugins.files import check_growth, read_text_table, unreadable
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.regular_files import open_regular
from polarbear_plugins.trajectories.columns import NAME_ROLES, NUMBER_ROLES, LongFormOptions
from polarbear_plugins.trajectories.long_form import read_long_form
from polarbear_plugins.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    import pandas as pd


_TEXT = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_PARQUET = (".parquet", ".pq")


@hookimpl(trylast=True)  # a plugin that knows a special kind of table is asked first
def polarbear_read_trajectories(source: object, options: Mapping[str, object]) -> Iterable[Trajectory] | None:
    """CSV and Parquet files and pandas data frames with the columns algorithm, instance, [seed], time, value."""
    if isinstance(source, list) and "objectives" in options:
        raise InvalidInputError(
            "objectives: the hypervolume is measured against all runs on an instance, so they must be in one table; "
            f"got {len(source)} sources. Join them into one."
        )
    if isinstance(source, str | Path):
        path = Path(source)
        separator = next((sep for suffix, sep in _TEXT.items() if path.name.lower().endswith(suffix)), None)
        if separator is not None:
            columns = LongFormOptions.parse(options)
            return read_long_form(_read_text(path, separator, columns), columns, path.name, first_line=2)
        if path.name.lower().endswith(_PARQUET):
            return read_long_form(_read_parquet(path), LongFormOptions.parse(options), path.name)
        return None
    # A program that hands over a data frame has imported pandas: this check imports nothing.
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(source, pandas.DataFrame):
        return read_long_form(source, LongFormOptions.parse(options), "data frame")
    return None


def _read_text(path: Path, separator: str, options: LongFormOptions) -> pd.DataFrame:
    numbers = {name for role in NUMBER_ROLES for name in options.columns_of(role)} | set(options.objective_columns)
    names = {name for role in NAME_ROLES for name in options.columns_of(role)}
    return read_text_table(path, separator, names=names, numbers=numbers)


def _read_parquet(path: Path) -> pd.DataFrame:
    pyarrow = require("pyarrow", extra="parquet", who=f"Reading {path.name}")
    parquet = require("pyarrow.parquet", extra="parquet", who=f"Reading {path.name}")
    try:
        with open_regular(path) as file:
            content = parquet.ParquetFile(file)
            # A column that is always the same takes a few bytes however long it is: rows are counted first.
            cells = content.metadata.num_rows * content.metadata.num_columns
            check_growth(path.stat().st_size, cells * 8, path.name)
            table = content.read()
            table.validate(full=True)  # text is decoded later, outside of this block
            frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    except (pyarrow.ArrowException, OSError, ValueError, KeyError, OverflowError) as problem:
        raise unreadable(path, "Parquet file", problem) from None
    return frame
