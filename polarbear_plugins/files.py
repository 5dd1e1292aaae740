"""Files that hold more than their size tells: how far a packed file may grow, and arrays that are what they claim."""

from __future__ import annotations

import math
import zipfile
from typing import IO, Any

import numpy as np

from polarbear_plugins.errors import SourceError

__all__ = ["HARMLESS", "MOST_GROWTH", "check_growth", "check_packed_arrays"]

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
