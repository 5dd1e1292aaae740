"""The rows of ranking tables, with spare capacity for more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray, RankArray
from polarbear_plugins.errors import InvalidInputError

Array = TypeVar("Array", bound=NDArray[np.generic])


class Store:
    """Rows with spare capacity; several tables may share one, each using the rows up to its own length.

    ``groups`` has the group of each of ``names``, or nothing if instances are not grouped.
    """

    def __init__(self, capacity: int, timepoints: int, algorithms: int) -> None:
        self.rows = 0
        self.values = np.empty((capacity, timepoints, algorithms))
        self.ranks = np.empty((capacity, timepoints, algorithms), dtype=np.int16)
        self.instance_index = np.empty(capacity, dtype=np.intp)
        self.weights = np.empty(capacity)
        self.names: list[str] = []
        self.positions: dict[str, int] = {}
        self.groups: list[str] = []

    def copy(self, rows: int, instances: int, capacity: int) -> Store:
        """Copy of the first rows, which belong to so many instances."""
        copy = Store(capacity, *self.values.shape[1:])
        for name in ("values", "ranks", "instance_index", "weights"):
            getattr(copy, name)[:rows] = getattr(self, name)[:rows]
        copy.rows = rows
        copy.names = self.names[:instances]
        copy.positions = {name: position for position, name in enumerate(copy.names)}
        copy.groups = self.groups[:instances]
        return copy

    def write(
        self,
        values: FloatArray,
        ranks: RankArray,
        instances: Sequence[str],
        weights: FloatArray | None,
        groups: Sequence[str | None] | None,
    ) -> None:
        """Append rows; nothing is changed if their groups contradict those of the rows before."""
        named = self._check_groups(instances, groups or [None] * len(instances))
        new = slice(self.rows, self.rows + len(values))
        self.values[new] = values
        self.ranks[new] = ranks
        self.weights[new] = 1.0 if weights is None else weights
        for row, name in enumerate(instances, start=self.rows):
            position = self.positions.setdefault(name, len(self.names))
            if position == len(self.names):
                self.names.append(name)
                if named:
                    self.groups.append(named[name])
            self.instance_index[row] = position
        self.rows = new.stop

    def _check_groups(self, instances: Sequence[str], groups: Sequence[str | None]) -> dict[str, str]:
        """Groups of the instances of new rows; empty if they have none."""
        # Any instance of the rows before will do, since all of them have groups, or none.
        before = [(self.names[0], self.groups[0] if self.groups else None)] if self.names else []
        each = [*before, *zip(instances, groups, strict=True)]
        inside = next(((name, group) for name, group in each if group is not None), None)
        outside = next((name for name, group in each if group is None), None)
        if inside is None:
            return {}
        if outside is not None:
            raise InvalidInputError(
                f"groups: instance {inside[0]!r} has the group {inside[1]!r}, and {outside!r} has none"
                f"{' in other rows' if inside[0] == outside else ''}. Give every instance a group, or none."
            )
        named: dict[str, str] = {}
        for name, group in zip(instances, groups, strict=True):
            known = self.groups[self.positions[name]] if name in self.positions else named.get(name, group)
            if group is None or group != known:
                raise InvalidInputError(
                    f"groups: instance {name!r} has the groups {known!r} and {group!r}. An instance has one group."
                )
            named[name] = group
        return named


def read_only(array: Array) -> Array:
    """The same array, which can no longer be written to."""
    array.flags.writeable = False
    return array
