"""Memory of processes, from Linux's /proc; nothing else tells it for another process without a further package."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

MEGABYTE = 1_000_000  # bytes


def can_be_measured() -> bool:
    """Whether this system says how much memory a process uses."""
    return resident_bytes([os.getpid()]) > 0


def used_bytes(process: int, most: float) -> int:
    """Memory of a process and of those that it has started, exactly only if it may be more than ``most``.

    Pages that several of them share count once, and count less if others share them, too.
    """
    processes = _with_descendants(process)
    used = resident_bytes(processes)
    if used <= most or len(processes) == 1:
        return used
    return sum(map(_proportional_bytes, processes))


def resident_bytes(processes: Iterable[int | str]) -> int:
    """Memory of processes together; pages that they share count for each.  A process that is gone has none.

    >>> resident_bytes([]), resident_bytes([2**22 + 1])
    (0, 0)
    """
    total = 0
    for process in processes:
        with contextlib.suppress(OSError):
            total += int(_read(f"/proc/{process}/statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return total


def _proportional_bytes(process: int) -> int:
    """Memory of a process; of a page that several processes share, each has its part.  Takes milliseconds."""
    with contextlib.suppress(OSError):  # it is gone, or does not let others look
        for line in _read(f"/proc/{process}/smaps_rollup").splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return resident_bytes([process])


def _with_descendants(process: int) -> list[int]:
    """A process, the processes that it has started, and theirs."""
    found = [process]
    for each in found:  # grows meanwhile
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{each}/task"):  # noqa: PTH208 - many times a second
                found += map(int, _read(f"/proc/{each}/task/{thread}/children").split())
    return found


def _read(path: str) -> bytes:
    """Content of a small file in /proc, several times as fast as with a file object: this is done for every run."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 2**16)
    finally:
        os.close(descriptor)
