"""Reading and writing files: JSON, arrays, tables of text; what is packed, and what is damaged."""

from __future__ import annotations

import gzip
import json
import math
import warnings
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from polarbear_plugins.errors import SourceError, reason

if TYPE_CHECKING:
    import pandas as pd

#: Numbers in text shrink to about a fifth.  What claims to have shrunk a hundred times as much is not data.
MOST_GROWTH = 500
#: Bytes that anything may grow to.
HARMLESS = 10_000_000

_MISSING = ("", "nan", "NaN", "NAN", "NA", "N/A", "null", "None")  # numbers in tables of text
_PIECE = 1 << 20


def check_growth(packed: int, unpacked: int, who: str) -> None:
    """Refuse a packed file that would grow more than real data does.

    >>> check_growth(1_000, 2_000_000_000, "logs.zip/a.dat")
    Traceback (most recent call last):
    polarbear_plugins.errors.SourceError: logs.zip/a.dat would grow from 1,000 to 2,000,000,000 bytes, which \
no real data does. Unpack it yourself if you trust it.
    """
    if unpacked > HARMLESS and unpacked > MOST_GROWTH * packed:
        raise SourceError(
            f"{who} would grow from {packed:,} to {unpacked:,} bytes, which no real data does. Unpack it yourself if "
            "you trust it."
        )


def check_packed_arrays(archive: zipfile.ZipFile) -> None:
    """Refuse arrays whose headers claim more or less than there is, before room is made for them.

    :raises ValueError: an array is not what its header says.
    """
    # numpy makes room for as many numbers as the header claims, and reads afterwards.
    for member in archive.infolist():
        check_growth(member.compress_size, member.file_size, member.filename[:60])
        with archive.open(member) as file:
            shape, dtype = _header(file)
            if dtype.hasobject:
                raise ValueError(f"{member.filename[:60]} holds objects, not numbers or text")
            claimed, there = math.prod(shape) * dtype.itemsize, member.file_size - file.tell()
            if claimed != there:
                raise ValueError(f"{member.filename[:60]} claims {claimed:,} bytes, and has {there:,}")


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if any(length < 0 for length in shape):
        raise ValueError(f"an array of shape {shape}")
    return shape, dtype


def parse_json(text: str) -> Any:
    """Read JSON that has only numbers which JSON knows, as what is written again must.

    :raises ValueError: it is no JSON, or has a number that is not finite.
    """
    return json.loads(text, parse_constant=_not_json, parse_float=_finite_float)


def _not_json(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _finite_float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _not_json(text[:20])


Made = TypeVar("Made")


_START = 64  # bytes that tell what a file is


def write_whole(path: str | Path, write: Callable[[IO[bytes]], object]) -> Path:
    """Write a file whole or not at all; returns its path."""
    path = Path(path)
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        with unfinished.open("wb") as file:
            write(file)
        unfinished.replace(path)
    except OSError as problem:
        unfinished.unlink(missing_ok=True)
        raise SourceError(f"{path}: cannot be written ({problem.strerror or problem}).") from None
    return path


def write_arrays(path: str | Path, arrays: Mapping[str, Any]) -> Path:
    """Write arrays to a file, whole or not at all; returns its path."""
    return write_whole(path, lambda file: np.savez_compressed(file, **arrays))


def read_arrays(path: str | Path, what: str, make: Callable[[Mapping[str, Any]], Made]) -> Made:
    """Make something of the arrays in a file; whatever is wrong with them becomes an error that names the file."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            start = file.read(_START)
            if not start.lstrip().startswith(b"{"):
                if not start.startswith(b"PK"):  # about other files numpy speaks of pickle
                    raise ValueError("it is no .npz file")
                with zipfile.ZipFile(file) as archive:
                    check_packed_arrays(archive)
                file.seek(0)
                with np.load(file, allow_pickle=False) as arrays:
                    return make(arrays)
    except FileNotFoundError:
        raise SourceError(f"{path}: there is no such file.") from None
    except IsADirectoryError:
        raise SourceError(
            f"{path} is a folder, not {what}. If it holds data: polarbear analyze {path} --output result.npz, then "
            "give that file."
        ) from None
    except SourceError as problem:
        raise SourceError(f"{path.name}: {problem}") from None
    # A damaged archive fails in many ways: zip, zlib, header, JSON, missing names.
    except Exception as problem:
        raise SourceError(f"{path.name} is not {what}, or is damaged: {reason(problem)}") from None
    raise SourceError(
        f"{path.name} is JSON, which tells what was found but holds no draws, and so is not {what}. Give the file that "
        "--output (in Python, save()) wrote, or the journal of the race."
    )


def read_text_table(
    path: Path, separator: str, *, names: Collection[str], numbers: Collection[str] | None = None, decimal: str = "."
) -> pd.DataFrame:
    """Table of text, packed by gzip or not, without its blank lines; the index counts all lines below the header.

    Parameters
    ----------
    names
        Columns that are text whatever they look like: 01 and 1 are different names, and NA is one.
    numbers
        Columns in which ``NA`` and the like are missing numbers; by default all but the names.
    decimal
        What separates the digits of fractions.
    """
    import pandas as pd

    if numbers is None:
        numbers = text_table_header(path, separator)
    with _naming_damage(path), open_unpacked(path) as file, warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header
        frame = pd.read_csv(
            file,
            sep=separator,
            decimal=decimal,
            index_col=False,
            dtype=dict.fromkeys(set(names) - set(numbers), "str"),
            keep_default_na=False,
            na_values={name: list(_MISSING) for name in set(numbers) - set(names)},
            skip_blank_lines=False,  # they count as lines
            low_memory=False,
            encoding="utf-8-sig",
        )
    blank = (frame.isna() | (frame == "")).all(axis=1)
    return frame[~blank]


def text_table_header(path: Path, separator: str) -> list[str]:
    """Names of the columns of a table of text."""
    import pandas as pd

    with _naming_damage(path), open_unpacked(path) as file:
        frame = pd.read_csv(file, sep=separator, nrows=0, index_col=False, encoding="utf-8-sig")
    return [str(name) for name in frame.columns]


@contextmanager
def _naming_damage(path: Path) -> Iterator[None]:
    """Turn whatever reading a table of text may raise into an error that names the file."""
    import pandas as pd

    try:
        yield
    except pd.errors.EmptyDataError:
        raise SourceError(f"{path.name} is empty. Expected a line with the names of the columns.") from None
    except (pd.errors.ParserWarning, EOFError, OSError, ValueError, TypeError, OverflowError, zlib.error) as problem:
        raise unreadable(path, "table of text", problem) from None


def unreadable(path: Path, kind: str, problem: Exception) -> SourceError:
    """Make the error about a file that is not there, or not what it should be."""
    if isinstance(problem, FileNotFoundError):
        return SourceError(f"{path}: there is no such file.")
    return SourceError(f"{path.name} cannot be read as a {kind}: {reason(problem)}")


def open_unpacked(path: Path) -> IO[bytes]:
    """Open a file that may be packed by gzip."""
    return _Unpacked(path) if path.name.lower().endswith(".gz") else path.open("rb")  # type: ignore[return-value]


class _Unpacked(gzip.GzipFile):
    """A file packed by gzip, refused as soon as it grows more than real data does."""

    def __init__(self, path: Path) -> None:
        self._path, self._size = path, path.stat().st_size
        super().__init__(path)

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            # In pieces: all at once would be in memory before anybody looks.
            return b"".join(iter(lambda: self.read(_PIECE), b""))
        return self._checked(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        return self._checked(super().read1(size))

    def _checked(self, piece: bytes) -> bytes:
        check_growth(self._size, self.tell(), self._path.name)
        return piece
