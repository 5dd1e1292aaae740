"""Tables in long form: CSV and Parquet files, and pandas data frames."""

from __future__ import annotations

import gzip
import sys
import warnings
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from polarbear_plugins.errors import SourceError, reason
from polarbear_plugins.extras import require
from polarbear_plugins.files import check_growth
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.trajectories.long_form import NUMBER_ROLES, LongFormOptions, read_long_form
from polarbear_plugins.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    import pandas as pd


_TEXT = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_PARQUET = (".parquet", ".pq")
_PIECE = 1 << 20
_MISSING = ("", "nan", "NaN", "NAN", "NA", "N/A", "null", "None")


@hookimpl(trylast=True)  # a plugin that knows a special kind of table is asked first
def polarbear_read_trajectories(source: object, options: Mapping[str, object]) -> Iterable[Trajectory] | None:
    """CSV and Parquet files and pandas data frames with the columns algorithm, instance, [seed], time, value."""
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
    import pandas as pd

    numbers = {name for role in NUMBER_ROLES for name in options.columns_of(role)}
    names = {name for role in ("algorithm", "instance") for name in options.columns_of(role)}
    try:
        with _open(path) as file, warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header
            frame = pd.read_csv(
                file,
                sep=separator,
                index_col=False,
                dtype=dict.fromkeys(names - numbers, "str"),  # 01 and 1 are different names
                keep_default_na=False,  # an algorithm may be called NA
                na_values={name: list(_MISSING) for name in numbers - names},
                skip_blank_lines=False,  # they count as lines
                low_memory=False,
                encoding="utf-8-sig",
            )
    except pd.errors.EmptyDataError:
        raise SourceError(f"{path.name} is empty. Expected a line with the names of the columns.") from None
    except (pd.errors.ParserWarning, EOFError, OSError, ValueError, OverflowError, zlib.error) as problem:
        raise _damaged(path, "table of text", problem) from None
    blank = (frame.isna() | (frame == "")).all(axis=1)
    return frame[~blank]


def _read_parquet(path: Path) -> pd.DataFrame:
    pyarrow = require("pyarrow", extra="parquet", who=f"Reading {path.name}")
    parquet = require("pyarrow.parquet", extra="parquet", who=f"Reading {path.name}")
    try:
        with _open(path) as file:
            content = parquet.ParquetFile(file)
            # A column that is always the same takes a few bytes however long it is: rows are counted first.
            cells = content.metadata.num_rows * content.metadata.num_columns
            check_growth(path.stat().st_size, cells * 8, path.name)
            table = content.read()
            table.validate(full=True)  # text is decoded later, outside of this block
            frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    except (pyarrow.ArrowException, OSError, ValueError, KeyError, OverflowError) as problem:
        raise _damaged(path, "Parquet file", problem) from None
    return frame


def _open(path: Path) -> IO[bytes]:
    return _Unpacked(path) if path.name.lower().endswith(".gz") else path.open("rb")  # type: ignore[return-value]


class _Unpacked(gzip.GzipFile):
    """A gzip file, refused as soon as it unpacks to more than real data would."""

    def __init__(self, path: Path) -> None:
        self._path, self._size = path, path.stat().st_size
        super().__init__(path)

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            # In pieces: the whole would be in memory before its size is checked.
            return b"".join(iter(lambda: self.read(_PIECE), b""))
        return self._check(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        return self._check(super().read1(size))

    def _check(self, piece: bytes) -> bytes:
        check_growth(self._size, self.tell(), self._path.name)
        return piece


def _damaged(path: Path, kind: str, problem: Exception) -> SourceError:
    if isinstance(problem, FileNotFoundError):
        return SourceError(f"{path}: there is no such file.")
    return SourceError(f"{path.name} cannot be read as a {kind}: {reason(problem)}")
