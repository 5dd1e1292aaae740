"""What every configurator gets: losses that are counted, and at which numbers of them it must name its pick."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fold_tasks import Drawn, Parameters, Task

#: What a rival would take at each budget, by the name of the row; ``None`` where it refuses.
Picks: TypeAlias = Mapping[str, Mapping[int, Parameters | None]]
#: A rival gets a task, a seed and budgets.
Rival: TypeAlias = Callable[[Task, int, Sequence[int]], Picks]


class RivalMissingError(Exception):
    """A rival is not installed here."""


class RefusedError(Exception):
    """A rival says that a budget is too small for it."""


@dataclass
class Meter:
    """Losses of a seed, one configuration on one instance at a time.

    Attributes
    ----------
    drawn
        What belongs to the seed.
    limit
        Evaluations that may be spent.
    spent
        Evaluations so far; one that is repeated counts again.
    """

    drawn: Drawn
    limit: int
    spent: int = 0

    def loss(self, parameters: Parameters, instance: int) -> float:
        """Loss of a configuration on an instance, which is paid for."""
        if self.spent >= self.limit:
            raise RuntimeError(f"A rival asks for more than its {self.limit} evaluations.")
        self.spent += 1
        return float(self.drawn.losses(parameters)[instance])
