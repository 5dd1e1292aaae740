"""All sets of up to 24 orders at once: a set is a number whose bits are its members, and an array has a place for each.

Whether a member has an edge of its own in a set, or a set surrounds an order, follows for all sets from a few of them:
what holds for a set holds for its subsets.  That costs a few operations on whole arrays for each order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.partial_orders.bits import Flags

MOST_ORDERS = 24  # 64 MB for an array of all sets
_BLOCK_ORDERS = 16  # of which all sets fit in the cache
_SHORT = 16  # numpy is slow on runs of fewer numbers
_FEW = 5000  # sets that are searched as quickly as halves are tried
_SAMPLE = 500  # sets on which halves are tried
_HALVINGS = 24
_QUERIES = 32

Sets: TypeAlias = NDArray[np.uint32]
_Array: TypeAlias = NDArray[Any]


class Lattice:
    """All sets of some orders ``relations[order, i, j]``.

    >>> a, b = np.zeros((2, 3, 3), dtype=bool)
    >>> a[0, 1] = b[1, 2] = True
    >>> Lattice(np.array([a, b])).candidates(largest=2)
    array([3], dtype=uint32)
    """

    def __init__(self, relations: Flags) -> None:
        self.count, self.items, _ = relations.shape
        powers = np.uint32(1) << np.arange(self.count, dtype=np.uint32)
        #: Which orders have each edge, as a set.
        self.owners = np.bitwise_or.reduce(np.where(relations, powers[:, None, None], np.uint32(0)), axis=0)
        self.everyone = np.uint32((1 << self.count) - 1)
        self._off_diagonal = ~np.eye(self.items, dtype=np.bool_)

    def candidates(self, largest: int) -> Sets:
        """Sets of 2 to ``largest`` members that each have an edge only they have, or lack one only they lack."""
        anywhere = self._off_diagonal
        marked = self._marked(anywhere, anywhere)
        marked &= self._sizes_between(2, largest)
        return np.flatnonzero(marked).astype(np.uint32)

    def leave_out_simple(self, sets: Sets, rng: np.random.Generator) -> Sets:
        """The sets that are not seen at once to be union-free generic.

        Divide the optimizers into two halves.  If no edge common to the set leads from the second half to the first,
        edges from the first to the second that only one member has can be added to the common edges in any number: no
        two of them form a chain, and what follows from one, its owner has.  If each member has such an edge, or alone
        lacks another edge, the set is union-free generic.  Halves that show it for many of some sets are tried on all.
        """
        while sets.size > _FEW:
            sample = _Sample(self, sets[rng.integers(sets.size, size=_SAMPLE)])
            halves = rng.permuted(np.tile(np.arange(self.items) < (self.items + 1) // 2, (_HALVINGS, 1)), axis=1)
            gains = [sample.shown(half).mean() for half in halves]
            best = int(np.argmax(gains))
            # A search takes longer than a pass over all sets for each of them, by about the square of the optimizers.
            if gains[best] * sets.size * self.items**2 < 1 << self.count:
                break
            sets = sets[~self._shown(halves[best])[sets]]
        return sets

    def _shown(self, half: Flags) -> Flags:
        forwards, backwards = _directions(half)
        shown = self._marked(forwards, self._off_diagonal & ~forwards)
        common = np.zeros(shown.size, dtype=np.bool_)
        common[self.owners[backwards]] = True
        _spread_to_subsets(common, self.count)
        shown &= ~common
        return shown

    def _marked(self, has: Flags, lacks: Flags) -> Flags:
        """Whether each member of each set alone has one of some edges, or alone lacks one of some others."""
        marks = np.zeros(1 << self.count, dtype=np.uint32)  # orders that would have a mark if added to the set
        with_edge, without = self.owners[has], self.everyone & ~self.owners[lacks]
        np.bitwise_or.at(marks, self.everyone & ~with_edge, with_edge)
        np.bitwise_or.at(marks, self.everyone & ~without, without)
        _spread_to_subsets(marks, self.count)
        for block, orders in _blocks(marks, self.count):
            for order in orders:
                for without, with_order in _without_and_with(block, order):
                    with_order |= without & np.uint32(1 << order)
        missing = np.arange(1 << self.count, dtype=np.uint32)
        missing &= ~marks
        return missing == 0

    def _sizes_between(self, least: int, most: int) -> Flags:
        sizes = np.bitwise_count(np.arange(1 << self.count, dtype=np.uint32))
        return (sizes >= least) & (sizes <= most)

    def sums(self, sets: Sets, weights: FloatArray, queries: Flags) -> tuple[float, FloatArray]:
        """Sum of the weights of some sets, and of those that surround each query: products over the members."""
        half = self.count // 2
        low, high = _products(weights[:half]), _products(weights[half:])
        weight = low[sets & np.uint32((1 << half) - 1)] * high[sets >> np.uint32(half)]
        around = [
            np.where((outside >> np.uint32(bit)) & np.uint32(1), 0.0, weight).sum()
            for first in range(0, len(queries), _QUERIES)
            for part in [queries[first : first + _QUERIES]]
            for outside in [self._outside(part)[sets]]
            for bit in range(len(part))
        ]
        return float(weight.sum()), np.array(around)

    def _outside(self, queries: Flags) -> Sets:
        """Queries that each set does not surround, as bits: all members have an edge it lacks, or lack one it has."""
        outside = np.zeros(1 << self.count, dtype=np.uint32)
        owners = self.owners[self._off_diagonal]
        for bit, query in enumerate(queries):
            disagree = np.where(query[self._off_diagonal], self.everyone & ~owners, owners)
            outside[disagree] |= np.uint32(1 << bit)
        _spread_to_subsets(outside, self.count)
        return outside


class _Sample:
    """A sample of sets, on which halvings are tried."""

    def __init__(self, lattice: Lattice, sets: Sets) -> None:
        self.sets = sets
        having = sets[:, None, None] & lattice.owners
        lacking = sets[:, None, None] & ~lattice.owners
        self.only_one = np.where(np.bitwise_count(having) == 1, having, np.uint32(0))
        self.all_but_one = np.where(np.bitwise_count(lacking) == 1, lacking, np.uint32(0))
        self.common = lacking == 0

    def shown(self, half: Flags) -> Flags:
        """Which sets a halving shows to be union-free generic."""
        forwards, backwards = _directions(half)
        marks = np.bitwise_or.reduce(self.only_one[:, forwards], axis=1)
        marks |= np.bitwise_or.reduce(self.all_but_one[:, ~forwards], axis=1)
        return (marks == self.sets) & ~self.common[:, backwards].any(axis=1)


def _directions(half: Flags) -> tuple[Flags, Flags]:
    """Edges from the first half to the second, and back."""
    return half[:, None] & ~half, ~half[:, None] & half


def _blocks(values: _Array, count: int) -> Iterator[tuple[_Array, range]]:
    """Parts of an array of all sets with orders to go through there: those that are far apart first, in the whole."""
    yield values, range(_BLOCK_ORDERS, count)
    for block in values.reshape(-1, min(1 << _BLOCK_ORDERS, values.size)):
        yield block, range(min(_BLOCK_ORDERS, count))


def _without_and_with(values: _Array, order: int) -> Iterator[tuple[_Array, _Array]]:
    """Views of the sets without an order, and of the same sets with it."""
    step = 1 << order
    if step < _SHORT:
        for first in range(step):
            yield values[first :: 2 * step], values[first + step :: 2 * step]
    else:
        pairs = values.reshape(-1, 2, step)
        yield pairs[:, 0], pairs[:, 1]


def _spread_to_subsets(values: _Array, count: int) -> None:
    """Let each set have what any of its supersets has, in place."""
    for block, orders in _blocks(values, count):
        for order in orders:
            for without, with_order in _without_and_with(block, order):
                without |= with_order


def _products(weights: FloatArray) -> FloatArray:
    """Product of the weights of the members of each set.

    >>> _products(np.array([0.5, 0.25]))
    array([1.   , 0.5  , 0.25 , 0.125])
    """
    products = np.ones(1)
    for weight in weights:
        products = np.concatenate((products, weight * products))
    return products
