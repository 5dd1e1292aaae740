"""Subset statistics of rankings: all that the Plackett-Luce likelihood needs.

Over all rankings of a timepoint only two things matter: how often each algorithm was chosen, and how often each set was
chosen from.  A tie of k algorithms counts as the average over its k! orders, without enumerating them: each nonempty
part U of the tie, together with all worse algorithms, is a set chosen from with the count 1 / C(k, |U|).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray, RankArray

# Up to this many algorithms, a table of all possible sets fits into memory, and ties of any size become sets.
_FEW_ALGORITHMS = 12
# With more algorithms than that, larger ties than this are integrated instead of expanded into sets.
_SMALL_TIE = 8
# Choices counted at a time where there is no table of all sets; bounds the memory.
_MOST_CHOICES = 1 << 20


@dataclass(frozen=True, slots=True)
class TieBlock:
    """A tie too large to expand: the tied algorithms, the worse ones, and its weight at each timepoint."""

    block: NDArray[np.intp]
    rest: NDArray[np.intp]
    counts: FloatArray


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the rankings of all timepoints say.

    Attributes
    ----------
    wins
        ``wins[t, i]``: how often algorithm ``i`` was chosen.
    sets
        For each timepoint, ``members[set, algorithm]`` (0 or 1; booleans where sets can be very many) and
        ``counts[set]``.
    ties
        Large ties.
    """

    wins: FloatArray
    sets: tuple[tuple[NDArray[Any], FloatArray], ...]
    ties: tuple[TieBlock, ...] = ()

    @property
    def timepoints(self) -> int:
        """Number of timepoints."""
        return len(self.sets)

    @property
    def algorithms(self) -> int:
        """Number of algorithms."""
        return int(self.wins.shape[1])

    def at(self, start: int, stop: int | None = None) -> Statistics:
        """Statistics of the timepoint ``start``, or of those from ``start`` up to ``stop``, which is excluded."""
        here = slice(start, start + 1 if stop is None else stop)
        ties = (TieBlock(tie.block, tie.rest, tie.counts[here]) for tie in self.ties)
        return Statistics(self.wins[here], self.sets[here], tuple(tie for tie in ties if tie.counts.any()))

    def with_dirichlet(self, alpha: float) -> Statistics:
        """Add the density of a Dirichlet(alpha) prior over softmax(utilities), which has the same form."""
        n = self.algorithms
        sets = tuple(
            (np.vstack([members, np.ones((1, n), dtype=members.dtype)]), np.append(counts, n * alpha))
            for members, counts in self.sets
        )
        return Statistics(self.wins + alpha, sets, self.ties)

    def weighted(self, weights: FloatArray) -> Statistics:
        """Multiply all counts of a timepoint by its weight."""
        sets = tuple((members, counts * weight) for (members, counts), weight in zip(self.sets, weights, strict=True))
        ties = tuple(TieBlock(tie.block, tie.rest, tie.counts * weights) for tie in self.ties)
        return Statistics(self.wins * weights[:, None], sets, ties)


def statistics_of(ranks: RankArray, weights: FloatArray) -> Statistics:
    """Count wins and sets over weighted rankings.

    Parameters
    ----------
    ranks
        ``ranks[row, timepoint, algorithm]``, 1 is best, ties share the better place, 0 is absent.  A rank above the
        number of algorithms is no place: an unranked algorithm is in every set that was chosen from, and is never
        chosen.
    weights
        ``weights[row]``.

    Examples
    --------
    >>> ranks = np.array([[[1, 2, 3]], [[1, 2, 2]]], dtype=np.int16)
    >>> statistics = statistics_of(ranks, np.array([1.0, 1.0]))
    >>> statistics.wins
    array([[2. , 1.5, 0.5]])
    >>> statistics.sets[0]
    (array([[0., 1., 1.],
           [1., 1., 1.]]), array([2., 2.]))
    """
    rows, timepoints, n = ranks.shape
    size = timepoints if n <= _FEW_ALGORITHMS else max(1, _MOST_CHOICES // max(1, rows * n))
    if size < timepoints:
        return _concatenate([statistics_of(ranks[:, at : at + size], weights) for at in range(0, timepoints, size)])
    few = n <= _FEW_ALGORITHMS
    wins = np.zeros((timepoints, n))
    counter = _SetCounter(timepoints, n)
    ties: dict[tuple[bytes, bytes], TieBlock] = {}
    by_algorithm = np.ascontiguousarray(ranks.transpose(2, 0, 1))  # sums over the first axis are quick
    last = by_algorithm.max(axis=0)
    for place in range(1, n + 1):
        size = np.sum(by_algorithm == place, axis=0, dtype=np.int16)
        single = np.nonzero((size == 1) & (last > place))
        if single[0].size:
            here = ranks[single]
            winner = (here == place).argmax(axis=-1)
            wins += _sum_at(single[1] * n + winner, weights[single[0]], wins.shape)
            counter.add(here >= place, single[1], weights[single[0]])
        tied = np.nonzero(size > 1)
        if tied[0].size:
            block, rest = ranks[tied] == place, ranks[tied] > place
            entry, winner = np.nonzero(block)
            wins += _sum_at(tied[1][entry] * n + winner, weights[tied[0][entry]], wins.shape)
            for who, worse, counts in _distinct_ties(block, rest, tied[1], weights[tied[0]], timepoints):
                if few or who.size <= _SMALL_TIE:
                    _expand_tie(who, worse, counts, counter, wins)
                else:
                    key = (who.tobytes(), worse.tobytes())
                    ties[key] = TieBlock(who, worse, counts + (ties[key].counts if key in ties else 0))
    return Statistics(wins, counter.result(), tuple(ties.values()))


def first_place_statistics(ranks: RankArray, weights: FloatArray) -> Statistics:
    """Count first places only: who was chosen from all that took part; a tie for the first place is split.

    Parameters are those of :func:`statistics_of`.  What is left of the Plackett-Luce likelihood is multinomial: true
    whatever the order of the others.

    Examples
    --------
    >>> ranks = np.array([[[1, 2, 3]], [[1, 1, 3]]], dtype=np.int16)
    >>> first_place_statistics(ranks, np.array([1.0, 1.0])).wins
    array([[1.5, 0.5, 0. ]])
    """
    _, timepoints, n = ranks.shape
    wins = np.zeros((timepoints, n))
    counter = _SetCounter(timepoints, n)
    first = ranks == 1
    ties = first.sum(axis=2)
    chosen = np.nonzero((ties > 0) & ((ranks > 0).sum(axis=2) > 1))
    row, timepoint = chosen
    counter.add(ranks[chosen] > 0, timepoint, weights[row])
    entry, winner = np.nonzero(first[chosen])
    share = weights[row[entry]] / ties[chosen][entry]
    wins += _sum_at(timepoint[entry] * n + winner, share, wins.shape)
    return Statistics(wins, counter.result())


def _concatenate(parts: list[Statistics]) -> Statistics:
    """Concatenate the statistics of neighbouring timepoints."""
    starts = np.cumsum([0, *(part.timepoints for part in parts)])
    ties: dict[tuple[bytes, bytes], TieBlock] = {}
    for start, part in zip(starts[:-1], parts, strict=True):
        for tie in part.ties:
            new = TieBlock(tie.block, tie.rest, np.zeros(starts[-1]))
            known = ties.setdefault((tie.block.tobytes(), tie.rest.tobytes()), new)
            known.counts[start : start + part.timepoints] = tie.counts
    sets = tuple(itertools.chain.from_iterable(part.sets for part in parts))
    return Statistics(np.concatenate([part.wins for part in parts]), sets, tuple(ties.values()))


def _sum_at(places: NDArray[np.intp], weights: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Sum weights by their place in a flattened array."""
    sums: FloatArray = np.bincount(places, weights, minlength=math.prod(shape)).astype(np.float64)
    return sums.reshape(shape)


class _SetCounter:
    """Sums the counts of sets for each timepoint."""

    def __init__(self, timepoints: int, algorithms: int) -> None:
        self.timepoints, self.algorithms = timepoints, algorithms
        self.small = algorithms <= _FEW_ALGORITHMS
        self.bits = 1 << np.arange(algorithms, dtype=np.int64) if self.small else None
        self.table = np.zeros(timepoints << algorithms) if self.small else None
        self.entries: list[tuple[NDArray[Any], NDArray[np.intp], FloatArray]] = []

    def add(self, members: NDArray[np.bool_], timepoint: NDArray[np.intp], counts: FloatArray) -> None:
        """Count sets ``members[entry, algorithm]`` at their timepoints."""
        if self.table is not None and self.bits is not None:
            place = (timepoint << self.algorithms) + members @ self.bits
            if place.size < self.table.size // 16:  # as with ties, which are counted one part at a time
                np.add.at(self.table, place, counts)
            else:
                self.table += np.bincount(place, counts, minlength=self.table.size)
        else:
            self.entries.append((_keys(members), timepoint, counts))

    def result(self) -> tuple[tuple[NDArray[Any], FloatArray], ...]:
        n = self.algorithms
        if self.table is not None:
            table = self.table.reshape(self.timepoints, -1)
            every = (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(np.float64)
            return tuple((every[row != 0], row[row != 0]) for row in table)
        empty = (np.zeros((0, n), dtype=bool), np.zeros(0))
        if not self.entries:
            return (empty,) * self.timepoints
        keys, timepoint, counts = (np.concatenate(parts) for parts in zip(*self.entries, strict=True))
        sets = []
        for t in range(self.timepoints):
            here = timepoint == t
            distinct, inverse = np.unique(keys[here], return_inverse=True)
            total: FloatArray = np.bincount(inverse.ravel(), counts[here], minlength=distinct.size).astype(np.float64)
            sets.append((_members(distinct, n), total))
        return tuple(sets)


def _keys(members: NDArray[np.bool_]) -> NDArray[Any]:
    """Each set as the bits of its members; an integer where it fits into one, which sorts in a tenth of the time."""
    packed = np.packbits(members, axis=-1)
    width = packed.shape[1]
    if width > 8:
        return packed.view(f"V{width}").ravel()
    padded = np.zeros((len(packed), 4 if width <= 4 else 8), dtype=np.uint8)
    padded[:, :width] = packed
    # The first algorithm is the highest bit, whatever the byte order of the machine.
    keys = padded.view(">u4" if width <= 4 else ">u8").ravel()
    return keys.astype(keys.dtype.newbyteorder("="))


def _members(keys: NDArray[Any], algorithms: int) -> NDArray[np.bool_]:
    """Undo :func:`_keys`."""
    packed = keys.astype(keys.dtype.newbyteorder(">")).view(np.uint8).reshape(keys.size, keys.dtype.itemsize)
    return np.unpackbits(packed, axis=-1, count=algorithms).astype(bool)


def _distinct_ties(
    block: NDArray[np.bool_],
    rest: NDArray[np.bool_],
    timepoint: NDArray[np.intp],
    counts: FloatArray,
    timepoints: int,
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]]:
    """Yield each distinct (tied, worse) with its weight at each timepoint."""
    packed = np.packbits(np.concatenate([block, rest], axis=-1), axis=-1)
    keys = np.ascontiguousarray(packed).view(f"V{packed.shape[1]}").ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    places = inverse.ravel() * timepoints + timepoint
    total: FloatArray = np.bincount(places, counts, minlength=first.size * timepoints).astype(np.float64)
    for row, sums in zip(first, total.reshape(first.size, timepoints), strict=True):
        yield np.flatnonzero(block[row]), np.flatnonzero(rest[row]), sums


def _expand_tie(
    who: NDArray[np.intp], worse: NDArray[np.intp], counts: FloatArray, counter: _SetCounter, wins: FloatArray
) -> None:
    """Count every part of a tie together with all worse algorithms."""
    when = np.flatnonzero(counts)
    for size in range(1, who.size + 1):
        share = counts[when] / math.comb(who.size, size)
        for part in itertools.combinations(who.tolist(), size):
            if size + worse.size == 1:
                wins[when, part[0]] -= share  # choosing the last one is not a choice
                continue
            members = np.zeros((when.size, counter.algorithms), dtype=bool)
            members[:, [*part, *worse.tolist()]] = True
            counter.add(members, when, share)
