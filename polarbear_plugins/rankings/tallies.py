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
    instances: int | None = None,
) -> Tallies:
    """Count comparisons between some algorithms of a table, given by their places; by default between all.

    Parameters
    ----------
    most
        No instance counts more than this, whatever its weight.
    instances
        Count only this many, the first of the table.

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
    weights = table.weights if most is None else _capped_weights(table, most)
    ranks, units = table.ranks, table.instance_index
    if instances is not None:
        rows = np.flatnonzero(units < instances)
        weights, ranks, units = weights[rows], ranks[rows], units[rows]
    n, timepoints = places.size, table.timepoints.size
    wins, ties, first = (np.zeros((timepoints, n, n)) for _ in range(3))
    # A table of one row an instance needs no sums over repetitions, which take a sort.
    repeated = table.repetitions == "weight" and len(table) > len(table.instances)
    by_algorithm = np.ascontiguousarray(ranks[:, :, places].transpose(2, 0, 1))
    for i in range(n):
        for j in range(i):
            won, tied, lost = _count(by_algorithm[i], by_algorithm[j], weights, units if repeated else None)
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


def _capped_weights(table: RankingTable, most: float) -> FloatArray:
    """Weights of the rows, such that those of an instance add up to at most ``most``."""
    weights = table.weights
    if table.repetitions == "independent":
        return np.minimum(weights, most)
    total = np.bincount(table.instance_index, weights, minlength=len(table.instances))
    return weights * np.minimum(1.0, most / np.maximum(total, 1e-300))[table.instance_index]
