"""Cores for processes that must not share them."""

from __future__ import annotations

import os
from pathlib import Path

from polarbear_plugins.environment import available_cores
from polarbear_plugins.errors import InvalidInputError


def cores_for(workers: int) -> list[int]:
    """As many of the cores that this process may use; two threads of one core only if there is no other.

    :raises InvalidInputError: there are not so many, or the system does not let processes choose.
    """
    if not hasattr(os, "sched_getaffinity"):
        raise InvalidInputError(
            "Keeping each worker to a core of its own needs Linux; there is no such choice here. Use pin=False, and no "
            "more workers than there are free cores."
        )
    cores = sorted(os.sched_getaffinity(0), key=lambda core: (_place_in_core(core), core))
    if workers > len(cores):
        raise InvalidInputError(
            f"{workers} workers need as many cores of their own, and this process may use {available_cores()}. Use at "
            f"most {len(cores)} workers, or let them share cores, which makes their seconds less comparable."
        )
    return cores[:workers]


def _place_in_core(core: int) -> int:
    """What number a hardware thread has in its core; 0 if nothing is known."""
    try:
        siblings = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list").read_text()
        first = int(siblings.replace("-", ",").split(",")[0])
    except (OSError, ValueError):
        return 0
    return int(core != first)
