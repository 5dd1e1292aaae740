"""Reading and writing files: JSON, arrays, text tables; compressed and damaged ones."""

from __future__ import annotations

import collections
import csv
import gzip
import hashlib
import json
import math
import os
import warnings
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.errors import PolarBearWarning, SourceError, reason
from polarbear_plugins.regular_files import check_regular, open_regular, write_whole

if TYPE_CHECKING:
    import pandas as pd

#: Numbers in text compress to about a fifth.  A ratio a hundred times as large is not data.
MAX_GROWTH = 500
#: Bytes up to which any growth is allowed.
HARMLESS_SIZE = 10_000_000

_MISSING = ("", "nan", "NaN", "NAN", "NA", "N/A", "null", "None")  # in columns of numbers
_PIECE = 1 << 20
_CHECKSUM = "checksum"  # name of the array that has it
_START = 64  # bytes that identify the type of a file

T = TypeVar("T")

#: Arrays that a file holds: the kinds of numpy's types that each may have, and its number of dimensions.
Arrays: TypeAlias = Mapping[str, tuple[str, int]]
TEXT, NUMBERS = ("U", 0), "fiu"


def check_growth(packed: int, unpacked: int, who: str) -> None:
    """Refuse a compressed file that would expand more than real data does.

    >>> check_growth(1_000, 2_000_000_000, "logs.zip/a.dat")
    Traceback (most recent call last):
    polarbear_plugins.errors.SourceError: logs.zip/a.dat would grow from 1,000 to 2,000,000,000 bytes, which \
no real data does. Unpack it yourself if you trust it.
    """
    if unpacked > HARMLESS_SIZE and unpacked > MAX_GROWTH * packed:
        raise SourceError(
            f"{who} would grow from {packed:,} to {unpacked:,} bytes, which no real data does. Unpack it yourself if "
            "you trust it."
        )


def check_packed_arrays(archive: zipfile.ZipFile, expected: Arrays) -> None:
    """Refuse arrays whose headers do not match their size, or are not as expected, before they are read.

    :raises ValueError: an array does not match its header, or has another type or number of dimensions.
    """
    # numpy allocates what the header claims before it reads.
    for member in archive.infolist():
        check_growth(member.compress_size, member.file_size, member.filename[:60])
        with archive.open(member) as file:
            shape, dtype = _read_array_header(file)
            if dtype.hasobject:
                raise ValueError(f"{member.filename[:60]} holds objects, not numbers or text")
            claimed, there = math.prod(shape) * dtype.itemsize, member.file_size - file.tell()
            if claimed != there:
                raise ValueError(f"{member.filename[:60]} claims {claimed:,} bytes but has {there:,}")
            name = member.filename.removesuffix(".npy")
            kinds, dimensions = expected.get(name, (dtype.kind, len(shape)))
            if dtype.kind not in kinds or len(shape) != dimensions:
                what = {"U": "text", NUMBERS: "numbers"}.get(kinds, "true or false")
                raise ValueError(f"{name}: expected {what} in {dimensions} dimensions, got {dtype} in {len(shape)}")


def _read_array_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if any(length < 0 for length in shape):
        raise ValueError(f"an array of shape {shape}")
    return shape, dtype


def parse_json(text: str) -> Any:
    """Parse strict JSON: what is read can be written again.

    :raises ValueError: it is not JSON, or contains a number that is not finite.
    """
    return json.loads(text, parse_constant=_not_json, parse_float=_finite_float)


def _not_json(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _finite_float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _not_json(text[:20])


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the names of new files in a folder, where the system can say so."""
    with suppress(OSError):  # not on Windows, nor on some network file systems
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_arrays(path: str | Path, arrays: Mapping[str, Any]) -> Path:
    """Write arrays and their checksum to a file completely or not at all, and return its path."""
    sealed = {**arrays, _CHECKSUM: np.array(_checksum({name: np.asarray(array) for name, array in arrays.items()}))}
    return write_whole(path, lambda file: np.savez_compressed(file, **sealed))


def read_arrays(path: str | Path, what: str, make: Callable[[Mapping[str, Any]], T], expected: Arrays) -> T:
    """What ``make`` makes of the arrays in a file; any failure becomes an error that names the file."""
    path = Path(path)
    check_regular(path)
    try:
        with path.open("rb") as file:
            start = file.read(_START)
            if not start.lstrip().startswith(b"{"):
                if not start.startswith(b"PK"):  # numpy's message about other files suggests pickle
                    raise ValueError("it is not an .npz file")
                with zipfile.ZipFile(file) as archive:
                    check_packed_arrays(archive, {**expected, _CHECKSUM: TEXT})
                file.seek(0)
                with np.load(file, allow_pickle=False) as packed:
                    arrays = {name: packed[name] for name in packed}
                sealed = _check_arrays(arrays)
                made = make(arrays)
                if not sealed:
                    warnings.warn(
                        f"{path.name} was saved by an earlier version of polarbear-plugins and has no checksum: if its "
                        "content was altered, nobody can tell.",
                        PolarBearWarning,
                        stacklevel=3,
                    )
                return made
    except FileNotFoundError:
        raise SourceError(f"{path}: there is no such file.") from None
    except IsADirectoryError:
        raise SourceError(
            f"{path} is a folder, not {what}. If it holds data: polarbear analyze {path} --output result.npz, then "
            "use that file."
        ) from None
    except SourceError as problem:
        raise SourceError(f"{path.name}: {problem}") from None
    except PolarBearWarning:  # where warnings are errors
        raise
    # A damaged archive fails in many ways: zip, zlib, header, JSON, missing names.
    except Exception as problem:
        raise SourceError(f"{path.name} is not {what}, or is damaged: {reason(problem)}") from None
    raise SourceError(
        f"{path.name} is JSON, which has the findings but not the draws, so it is not {what}. Use the file that "
        "--output (in Python, save()) wrote, or the journal of the race."
    )


def _check_arrays(arrays: dict[str, NDArray[Any]]) -> bool:
    """Take the checksum out of the arrays of a file, which must match it; whether there was one."""
    checksum = arrays.pop(_CHECKSUM, None)
    if checksum is not None and (checksum.shape or checksum != _checksum(arrays)):
        raise ValueError("its content does not match its checksum, so it was altered after it was saved")
    return checksum is not None


def _checksum(arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name, array in sorted(arrays.items()):
        digest.update(ascii((name, array.dtype.str, array.shape)).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def read_text_table(
    path: Path, separator: str, *, names: Collection[str], numbers: Collection[str] | None = None, decimal: str = "."
) -> pd.DataFrame:
    """Text table without its blank lines, gzip-compressed or not; the index counts all lines below the header.

    Parameters
    ----------
    names
        Columns that are always text: 01 and 1 are different names, and NA is a name.
    numbers
        Columns in which ``NA`` and the like are missing values; by default all but the names.
    decimal
        Decimal separator.
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
    _check_last_line(path, separator, len(frame.columns))
    blank = (frame.isna() | (frame == "")).all(axis=1)
    return frame[~blank]


def _check_last_line(path: Path, separator: str, columns: int) -> None:
    """Refuse a file that was cut within a line; pandas would take what is missing for missing values."""
    with _naming_damage(path), open_unpacked(path) as file:
        [*last] = collections.deque(file, maxlen=1)
        text = "" if not last or last[0].endswith((b"\n", b"\r")) else last[0].decode("utf-8", "replace")
        found = len(next(csv.reader([text], delimiter=separator), []))
    if 0 < found < columns:
        raise SourceError(
            f"{path.name}: its last line has {found} of {columns} columns and no end, so the file was cut. Use a whole "
            "copy, or delete that line."
        )


def text_table_header(path: Path, separator: str) -> list[str]:
    """Column names of a text table."""
    import pandas as pd

    with _naming_damage(path), open_unpacked(path) as file:
        frame = pd.read_csv(file, sep=separator, nrows=0, index_col=False, encoding="utf-8-sig")
    return [str(name) for name in frame.columns]


@contextmanager
def _naming_damage(path: Path) -> Iterator[None]:
    """Turn any error in reading a text table into one that names the file."""
    import pandas as pd

    try:
        yield
    except pd.errors.EmptyDataError:
        raise SourceError(f"{path.name} is empty. Expected a line with the column names.") from None
    except (pd.errors.ParserWarning, EOFError, OSError, ValueError, TypeError, OverflowError, zlib.error) as problem:
        raise unreadable(path, "text table", problem) from None


def unreadable(path: Path, kind: str, problem: Exception) -> SourceError:
    """The error for a file that is missing or of another kind."""
    if isinstance(problem, FileNotFoundError):
        return SourceError(f"{path}: there is no such file.")
    if isinstance(problem, IsADirectoryError):
        return SourceError(f"{path} is a folder, not a {kind}. Give a file.")
    return SourceError(f"{path.name} cannot be read as a {kind}: {reason(problem)}")


def open_unpacked(path: Path) -> IO[bytes]:
    """Open a file that may be gzip-compressed."""
    return open_gzip(path) if path.name.lower().endswith(".gz") else open_regular(path)


def open_gzip(path: Path) -> IO[bytes]:
    """Open a gzip-compressed file, which is refused as soon as it expands more than real data does."""
    return _Unpacked(path)  # type: ignore[return-value]


class _Unpacked(gzip.GzipFile):
    """A gzip file, refused as soon as it expands more than real data does."""

    def __init__(self, path: Path) -> None:
        check_regular(path)
        self._path, self._size = path, path.stat().st_size
        super().__init__(path)

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            # In pieces: otherwise everything is in memory before it is checked.
            return b"".join(iter(lambda: self.read(_PIECE), b""))
        return self._check_piece(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        return self._check_piece(super().read1(size))

    def _check_piece(self, piece: bytes) -> bytes:
        check_growth(self._size, self.tell(), self._path.name)
        return piece
