"""How long the sets that are left to test will take, from those that were tested so far."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

_PROBE = 1.0  # CPU seconds before a projection is worth anything

Watch: TypeAlias = Callable[[float, float], None]


class TooMuchWorkError(Exception):
    """Testing all sets would take longer than allowed: ``seconds`` of CPU time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


@dataclass(slots=True)
class Work:
    """Amount of work, and how much of it is done.

    Attributes
    ----------
    limit
        CPU seconds it may take; without one, as long as it takes.
    watch
        Called with the share that is done and the seconds that are left.
    """

    limit: float | None = None
    watch: Watch | None = None
    total: float = 0.0
    done: float = 0.0
    began: float = field(default_factory=time.process_time)

    def start(self, total: float) -> None:
        """Begin with work of this amount, which may be an estimate."""
        self.total, self.done, self.began = total, 0.0, time.process_time()

    def advance(self, amount: float) -> None:
        """Some of the work was done.

        Raises
        ------
        TooMuchWorkError
            At the speed so far, all of it would take longer than the limit.
        """
        self.done += amount
        spent = time.process_time() - self.began
        if spent < _PROBE:
            return
        share = min(self.done / self.total, 1.0)
        if self.limit is not None and spent / share > self.limit:
            raise TooMuchWorkError(spent / share)
        if self.watch is not None:
            self.watch(share, spent / share - spent)
