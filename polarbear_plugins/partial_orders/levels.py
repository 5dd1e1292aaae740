"""Which of many sets of orders are union-free generic, from small to large: each from the witnesses of its parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.partial_orders.bits import Flags, Places, Words
from polarbear_plugins.partial_orders.lattice import Sets
from polarbear_plugins.partial_orders.witness import Columns, Family, PackedOrders, WitnessSearch, join
from polarbear_plugins.partial_orders.work import Work

_WORDS = 400_000  # of the relations of the sets that are searched at once
_PARTS = 4  # whose witnesses are tried before a search from the beginning


@dataclass(slots=True)
class _Witnesses(Columns):
    """Witnesses of some sets of one size, in ascending order."""

    sets: Sets
    relation: Words
    transpose: Words

    @classmethod
    def none(cls, orders: PackedOrders) -> _Witnesses:
        empty = np.zeros((orders.bits.words, 0), dtype=np.uint64)
        return cls(np.zeros(0, dtype=np.uint32), empty, empty)

    def of(self, sets: Sets) -> tuple[Places, Places]:
        """Which of some sets have a witness here, and at which place."""
        if not self.sets.size:
            return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
        places = np.minimum(np.searchsorted(self.sets, sets), self.sets.size - 1)
        known = np.flatnonzero(self.sets[places] == sets)
        return known, places[known]


def which_are_generic(sets: Sets, orders: PackedOrders, work: Work) -> Flags:
    """Whether each set, a number whose bits are its members, is union-free generic."""
    generic = np.zeros(sets.size, dtype=np.bool_)
    sizes = np.bitwise_count(sets)
    work.start(float(sizes.sum(dtype=np.int64)))  # the time for a set grows with its size
    smaller = _Witnesses.none(orders)
    for size in np.unique(sizes).tolist():
        level = np.flatnonzero(sizes == size)
        found = [_Witnesses.none(orders)]
        step = max(1024, _WORDS // orders.bits.words)
        for first in range(0, level.size, step):
            places = level[first : first + step]
            generic[places], witnesses = _search(sets[places], size, orders, smaller)
            found.append(witnesses)
            work.advance(size * places.size)
        smaller = join(found)
    return generic


def _search(sets: Sets, size: int, orders: PackedOrders, smaller: _Witnesses) -> tuple[Flags, _Witnesses]:
    members = members_of(sets, size)
    family = Family.of(members, orders)
    search = WitnessSearch(family, orders)
    # A member with many edges of its own most likely has one that can be added to a witness of the others.
    own = [np.bitwise_count(np.take(orders.words, member, axis=1) & family.only_one).sum(axis=0) for member in members]
    most_own = np.argsort(-np.array(own, dtype=np.int16), axis=0, kind="stable")
    for place in most_own[:_PARTS]:
        columns = np.flatnonzero(~search.found)
        last = members[place[columns], columns].astype(np.uint32)
        known, there = smaller.of(sets[columns] ^ (np.uint32(1) << last))
        start = smaller.take(there)
        search.climb(columns[known], start.relation, start.transpose)
    search.complete(np.flatnonzero(~search.found))
    found = np.flatnonzero(search.found)
    return search.found, _Witnesses(sets, *search.witnesses).take(found)


def members_of(sets: Sets, size: int) -> NDArray[np.uint16]:
    """Members of sets of one size in ascending order, ``[place, column]``.

    >>> members_of(np.array([5, 6], dtype=np.uint32), 2)
    array([[0, 1],
           [2, 2]], dtype=uint16)
    """
    members = np.empty((size, sets.size), dtype=np.uint16)
    rest = sets.copy()
    for place in range(size):
        lowest = rest & (~rest + np.uint32(1))
        members[place] = np.bitwise_count(lowest - np.uint32(1))
        rest ^= lowest
    return members
