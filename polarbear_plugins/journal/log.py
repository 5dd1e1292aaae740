"""The write-ahead log of a journal: the file ``race.db-wal`` beside it, which has what was written last.

SQLite reads a log up to the first part that does not match its checksum and ignores the rest, as it must after a power
failure.  A bit that flips in a log would therefore silently undo everything behind it.  A journal never overwrites its
log: it is written from front to back, and emptied when its content has been moved into the journal.  A process that is
killed then leaves at most an incomplete last part, and anything else that does not match is damage.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.errors import SourceError

_HEADER, _FRAME_HEADER = 32, 24  # bytes
_BIG_ENDIAN, _LITTLE_ENDIAN = 0x377F0683, 0x377F0682  # first number of a log: how its checksums read numbers


@dataclass(frozen=True, slots=True)
class LogDamage:
    """Where a log is damaged: up to ``intact`` bytes it is not, and ``lost`` bytes follow."""

    intact: int
    lost: int


def log_of(path: Path) -> Path:
    """File beside a journal that is its log."""
    return path.with_name(f"{path.name}-wal")


def log_size(path: Path) -> int:
    """Bytes in the log of a journal; 0 if there is none."""
    try:
        return log_of(path).stat().st_size
    except FileNotFoundError:
        return 0


def find_damage(log: Path) -> LogDamage | None:
    """First damage in a log; ``None`` if there is none or no log."""
    try:
        content = log.read_bytes()
    except FileNotFoundError:
        return None
    intact = _intact(content)
    rest = content[intact:]
    page = int.from_bytes(content[8:12], "big")
    # Incomplete, or space that the disk had reserved when the power failed: nothing was ever written there.
    unwritten = not any(rest) or (len(rest) < (_HEADER if not intact else _FRAME_HEADER + page))
    return None if unwritten else LogDamage(intact, len(rest))


def _intact(content: bytes) -> int:
    """Bytes of a log up to the first part that does not match its checksum."""
    header = content[:_HEADER]
    order = {_BIG_ENDIAN: ">u4", _LITTLE_ENDIAN: "<u4"}.get(int.from_bytes(header[:4], "big"))
    if len(header) < _HEADER or order is None:
        return 0
    state = _checksum(header[:24], order, (0, 0))
    if state != _pair(header[24:]):
        return 0
    size = _FRAME_HEADER + int.from_bytes(header[8:12], "big")
    intact = _HEADER
    while len(frame := content[intact : intact + size]) == size:
        state = _checksum(frame[:8] + frame[_FRAME_HEADER:], order, state)
        if frame[8:16] != header[16:24] or state != _pair(frame[16:_FRAME_HEADER]):
            break
        intact += size
    return intact


def _pair(content: bytes) -> tuple[int, int]:
    return int.from_bytes(content[:4], "big"), int.from_bytes(content[4:8], "big")


def _checksum(content: bytes, order: str, state: tuple[int, int]) -> tuple[int, int]:
    """SQLite's checksum of a log, for another part of it.

    For each two words, ``first += word + second`` and ``second += next word + first``, modulo 2 ** 32.  That is linear,
    and computed for all words at once.
    """
    words = np.frombuffer(content, order).astype(np.uint32)
    of_words, of_state = _weights(words.size)
    first, second = (of_words * words).sum(axis=1, dtype=np.uint32) + of_state @ np.array(state, dtype=np.uint32)
    return int(first), int(second)


@functools.cache
def _weights(words: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Factors of each word and of the state before them in the state after so many words."""
    of_words, power = np.empty((2, words), dtype=np.uint32), np.eye(2, dtype=np.uint32)
    step, take = np.array([[1, 1], [1, 2]], dtype=np.uint32), np.array([[1, 0], [1, 1]], dtype=np.uint32)
    for place in range(words - 2, -1, -2):
        of_words[:, place : place + 2] = power @ take
        power = power @ step
    return of_words, power


def set_damage_aside(path: Path, damage: LogDamage) -> Path:
    """Keep a copy of a damaged log, cut the log where it is damaged, and return the copy."""
    log = log_of(path)
    number, kept = 1, log.with_name(f"{log.name}.damaged")
    while kept.exists():
        number += 1
        kept = log.with_name(f"{log.name}.damaged-{number}")
    try:
        kept.write_bytes(log.read_bytes())
        with log.open("r+b") as file:
            file.truncate(damage.intact)
    except OSError as problem:
        raise SourceError(f"{kept} cannot be written: {problem.strerror}.") from None
    return kept
