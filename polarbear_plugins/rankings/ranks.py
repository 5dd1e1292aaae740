"""The ranking kernel: ranks of values, on plain arrays."""

from __future__ import annotations

import numpy as np

from polarbear_plugins.arrays import FloatArray, RankArray
from polarbear_plugins.trajectories.trajectory import UNRANKED

# Counting better values takes n^2 vector operations and no sort; measured, sorting is faster above this.
_COUNTING_UP_TO = 18
# Values ranked at a time, so that counting stays in the second-level cache.
_CHUNK = 1 << 15
# The rank of an unranked value.  It is larger than any place, so that what is worse than a place has a larger rank.
UNRANKED_RANK = int(np.iinfo(np.int16).max)


def ranks_of(values: FloatArray, tolerance: float = 0.0) -> RankArray:
    """Rank of each value along the last axis: 1 is the smallest, equal values share the better rank.

    ``nan`` is absent and gets rank 0; ``inf`` ranks behind every finite value.  A rank is one more than the number of
    strictly better values, so two values tied at rank 1 are followed by rank 3.  ``UNRANKED`` is no place: it gets the
    rank ``UNRANKED_RANK``, which is above all others, and two of them are not tied.

    Parameters
    ----------
    values
        Any shape; at most 32,766 along the last axis.
    tolerance
        Values at most this far above the best of their tie belong to it, so no tie spans more.

    Examples
    --------
    >>> ranks_of(np.array([[0.3, 0.1, np.nan, 0.1, np.inf]]))
    array([[3, 1, 0, 1, 4]], dtype=int16)
    >>> ranks_of(np.array([0.0, 0.4, 0.8]), tolerance=0.5)
    array([1, 1, 3], dtype=int16)
    >>> ranks_of(np.array([0.3, UNRANKED, 0.1, np.inf, UNRANKED]))
    array([    2, 32767,     1,     3, 32767], dtype=int16)
    """
    n = values.shape[-1]
    unranked = values == UNRANKED
    some = bool(unranked.any())
    # Unranked ones are absent from the places of the others.
    flat = (np.where(unranked, np.nan, values) if some else values).reshape(-1, n)
    ranks = np.empty(flat.shape, dtype=np.int16)
    rows = max(1, _CHUNK // max(1, n))
    for start in range(0, len(flat), rows):
        part = slice(start, start + rows)
        if tolerance == 0 and n <= _COUNTING_UP_TO:
            _by_counting(flat[part], ranks[part])
        else:
            _by_sorting(flat[part], tolerance, ranks[part])
    if some:
        ranks[unranked.reshape(flat.shape)] = UNRANKED_RANK
    return ranks.reshape(values.shape)


def _by_counting(values: FloatArray, ranks: RankArray) -> None:
    columns = np.ascontiguousarray(values.T)
    places = (~np.isnan(columns)).astype(np.int8)
    for place, mine in zip(places, columns, strict=True):
        for other in columns:
            place += other < mine  # never true where one of the two is nan
    ranks[...] = places.T


def _by_sorting(values: FloatArray, tolerance: float, ranks: RankArray) -> None:
    order = np.argsort(values, axis=-1)  # nan goes last; the order inside a tie does not matter
    ordered = np.take_along_axis(values, order, axis=-1)
    place = np.ones(ordered.shape, dtype=np.int16)
    if tolerance == 0:
        worse = ordered[:, 1:] > ordered[:, :-1]
        positions = np.arange(2, ordered.shape[1] + 1, dtype=np.int16)
        np.maximum.accumulate(np.where(worse, positions, np.int16(1)), axis=-1, out=place[:, 1:])
    else:
        best = ordered[:, 0]
        for k in range(1, ordered.shape[1]):
            with np.errstate(invalid="ignore", over="ignore"):  # inf - inf: equal, not worse
                worse = ordered[:, k] - best > tolerance
            best = np.where(worse, ordered[:, k], best)
            place[:, k] = np.where(worse, k + 1, place[:, k - 1])
    place[np.isnan(ordered)] = 0
    np.put_along_axis(ranks, order, place, axis=-1)
