"""Files that hold more than their size tells: how far a packed file may grow, and arrays that are what they claim."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from polarbear_plugins.errors import SourceError, reason

if TYPE_CHECKING:
    pass

#: Numbers in text shrink to about a fifth.  What claims to have shrunk a hundred times as much is no data.
MOST_GROWTH = 500
#: Bytes that anything may grow to.
HARMLESS = 10_000_000


def check_growth(packed: int, unpacked: int, who: str) -> None:
    """Refuse what would grow as no data do.

    >>> check_growth(1_000, 2_000_000_000, "logs.zip/a.dat")
    Traceback (most recent call last):
    polarbear_plugins.errors.SourceError: logs.zip/a.dat would grow from 1,000 to 2,000,000,000 bytes, as no data do. \
Unpack it yourself if you trust it.
    """
    if unpacked > HARMLESS and unpacked > MOST_GROWTH * packed:
        raise SourceError(
            f"{who} would grow from {packed:,} to {unpacked:,} bytes, as no data do. Unpack it yourself if you trust "
            "it."
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


def write_arrays(path: str | Path, arrays: Mapping[str, Any]) -> Path:
    """Write arrays to a file: whole or not at all."""
    path = Path(path)
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        with unfinished.open("wb") as file:
            np.savez_compressed(file, **arrays)
        unfinished.replace(path)
    except OSError as problem:
        unfinished.unlink(missing_ok=True)
        raise SourceError(f"{path}: cannot be written ({problem.strerror or problem}).") from None
    return path


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
