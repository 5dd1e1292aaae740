"""Counts of direct comparisons: who beat whom, and who was first, whatever the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import BoolArray, FloatArray, RankArray
from polarbear_plugins.rankings.ranks import UNRANKED_RANK
from polarbear_plugins.rankings.table import RankingTable

# Cells of the table that are handled at a time; bounds the memory.
_CHUNK = 1 << 21


@dataclass(frozen=True, slots=True, eq=False)
class Tallies:
    """Counts for each ordered pair of algorithms, ``[timepoint, i, j]``, over the instances that have both.

    Attributes
    ----------
    wins, ties
        Instances on which ``i`` is better than ``j``, and on which neither is.  Where an instance has repeated runs
        that disagree, it counts in part: with a share x of its runs won, as ``2x - 1`` wins or losses, and as a tie for
        the rest.
    first
        Instances on which ``i`` ranks first among all algorithms of the tally; a tie for the first place is split.
    """

    wins: FloatArray
    ties: FloatArray
    first: FloatArray

    @property
    def losses(self) -> FloatArray:
        """Instances on which ``i`` is worse than ``j``."""
        return self.wins.transpose(0, 2, 1)

    @property
    def compared(self) -> FloatArray:
        """Instances on which the two were compared."""
        return self.wins + self.ties + self.losses


def tally(
    table: RankingTable,
    algorithms: Sequence[int] | None = None,
    *,
    most: float | None = None,
    units: int | None = None,
    by_group: bool = False,
) -> Tallies:
    """Count comparisons between some algorithms of a table, given by their places; by default between all.

    Parameters
    ----------
    most
        No instance counts more than this, whatever its weight.
    units
        Count only this many instances, the first of the table.
    by_group
        Count groups instead of instances.

    Examples
    --------
    >>> values = [[[1.0, 2.0, 3.0]], [[2.0, 1.0, 3.0]], [[1.0, 2.0, 2.0]]]
    >>> counts = tally(RankingTable.from_values(values, algorithms=["a", "b", "c"], timepoints=[10]))
    >>> counts.wins[0], counts.ties[0, 1, 2], counts.first[0, :, 2]
    (array([[0., 2., 3.],
           [1., 0., 2.],
           [0., 0., 0.]]), np.float64(1.0), array([2., 1., 0.]))
    """
    places = np.arange(len(table.algorithms)) if algorithms is None else np.asarray(algorithms, dtype=np.intp)
    ranks, weights, unit_of = table.ranks, table.weights, _unit_of_row(table, by_group)
    if most is not None:
        total = np.bincount(unit_of, weights)
        weights = weights * np.minimum(1.0, most / np.maximum(total, 1e-300))[unit_of]
    if units is not None:
        rows = np.flatnonzero(unit_of < units)
        ranks, weights, unit_of = ranks[rows], weights[rows], unit_of[rows]
    n, timepoints = places.size, table.timepoints.size
    wins, ties, first = (np.zeros((timepoints, n, n)) for _ in range(3))
    # Units of one row each need no sums over their rows, which take a sort.
    repeated = np.unique(unit_of).size < unit_of.size
    by_algorithm = np.ascontiguousarray(ranks[:, :, places].transpose(2, 0, 1))
    for i in range(n):
        for j in range(i):
            won, tied, lost = _count(by_algorithm[i], by_algorithm[j], weights, unit_of if repeated else None)
            wins[:, i, j], wins[:, j, i] = won, lost
            ties[:, i, j] = ties[:, j, i] = tied
    size = max(1, _CHUNK // max(1, timepoints * n))
    for start in range(0, len(ranks), size):
        part = slice(start, start + size)
        leads, there = first_places(ranks[part][:, :, places])
        first += (leads * weights[part, None, None]).transpose(1, 2, 0) @ there.transpose(1, 0, 2)
    first[:, np.arange(n), np.arange(n)] = 0.0
    return Tallies(wins, ties, first)


def _count(
    one: RankArray, other: RankArray, weights: FloatArray, units: NDArray[np.intp] | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Wins, ties and losses of one algorithm against another at each timepoint."""
    # Between two unranked algorithms nothing is known.
    compared = (one > 0) & (other > 0) & ((one < UNRANKED_RANK) | (other < UNRANKED_RANK))
    better, worse = compared & (one < other), compared & (one > other)
    tied = compared & (one == other)
    if units is None:
        return weights @ better, weights @ tied, weights @ worse
    order = np.argsort(units, kind="stable")
    starts = np.flatnonzero(np.diff(units[order], prepend=-1))
    heavy = weights[order, None]
    total, lead = (
        np.add.reduceat(heavy * rows[order], starts, axis=0) for rows in (compared, better.astype(np.float64) - worse)
    )
    return np.maximum(lead, 0.0).sum(axis=0), (total - np.abs(lead)).sum(axis=0), np.maximum(-lead, 0.0).sum(axis=0)


def first_places(ranks: RankArray) -> tuple[FloatArray, BoolArray]:
    """Share of each algorithm in the first place of each ranking, and whether it takes part."""
    there = ranks > 0
    best = np.where(there, ranks, UNRANKED_RANK).min(axis=2, keepdims=True)
    leads = there & (ranks == best) & (best < UNRANKED_RANK)
    return leads / np.maximum(leads.sum(axis=2, keepdims=True), 1), there


def _unit_of_row(table: RankingTable, by_group: bool) -> NDArray[np.intp]:
    """What each row counts towards: an instance, a group, or itself."""
    if by_group:
        position = {name: place for place, name in enumerate(dict.fromkeys(table.groups))}
        return np.array([position[name] for name in table.groups], dtype=np.intp)[table.instance_index]
    return np.arange(len(table)) if table.repetitions == "independent" else table.instance_index
