"""Many relations on the same items as bits in 64-bit words.

An array ``[word, column]`` holds a relation in each column: the rows of its matrix one after the other, as many per
word as fit; bit j of row i is the edge from i to j.  Every operation is a few operations on whole arrays.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
Flags: TypeAlias = NDArray[np.bool_]
Places: TypeAlias = NDArray[np.intp]

MOST_ITEMS = 64
_ONE = np.uint64(1)


def any_bit(words: Words) -> Flags:
    """Whether each column has any edge."""
    return np.bitwise_or.reduce(words, axis=0) != 0


class BitRelations:
    """Layout of relations on a number of items in words.

    >>> bits = BitRelations(3)
    >>> chain = bits.pack(np.array([[[0, 1, 0], [0, 0, 1], [0, 0, 0]]], dtype=bool))
    >>> int(bits.product(chain, chain)[0, 0])  # two steps down: the edge from 0 to 2
    4
    """

    def __init__(self, items: int) -> None:
        self.items = items
        self.rows_in_word = 64 // items
        self.words = -(-items // self.rows_in_word)
        self._row = np.uint64((1 << items) - 1)
        rows = [min(self.rows_in_word, items - first) for first in range(0, items, self.rows_in_word)]
        #: The first column of the matrix.
        self._column = np.array([sum(1 << (items * row) for row in range(count)) for count in rows], dtype=np.uint64)[
            :, None
        ]
        self.diagonal = self.pack(np.eye(items, dtype=np.bool_)[None])

    def pack(self, matrices: Flags) -> Words:
        """Words of ``matrices[column, i, j]``."""
        words = np.zeros((self.words, len(matrices)), dtype=np.uint64)
        for i in range(self.items):
            place, shift = self._place(i)
            for j in range(self.items):
                words[place] |= matrices[:, i, j].astype(np.uint64) << np.uint64(shift + j)
        return words

    def row(self, relation: Words, i: int) -> Words:
        """One row of each relation."""
        place, shift = self._place(i)
        return (relation[place] >> np.uint64(shift)) & self._row

    def product(self, first: Words, second: Words) -> Words:
        """Edges from i to j over some b: (i, b) in the first and (b, j) in the second."""
        result = np.zeros_like(first)
        work = np.empty_like(first)
        for b in range(self.items):
            np.right_shift(first, np.uint64(b), out=work)
            work &= self._column
            work *= self.row(second, b)  # copies the row wherever the column has a bit; rows do not overlap
            result |= work
        return result

    def first_edge(self, edges: Words) -> tuple[Places, Places]:
        """The two items of one edge of each column, none of which is empty."""
        word = np.full(edges.shape[1], self.words - 1)
        bits = edges[-1]
        for place in range(self.words - 2, -1, -1):
            here = edges[place] != 0
            bits = np.where(here, edges[place], bits)
            word[here] = place
        lowest = bits & (~bits + _ONE)
        position = np.bitwise_count(lowest - _ONE).astype(np.intp)
        return word * self.rows_in_word + position // self.items, position % self.items

    def outer(self, first: Words, i: Places, second: Words, j: Places) -> Words:
        """Edges from each a with an edge from a to i in the first, to each b with an edge from j to b in the second."""
        place, slot = np.divmod(j, self.rows_in_word)
        row = second[place, np.arange(j.size)] >> (slot * self.items).astype(np.uint64)
        row &= self._row
        result = first >> i.astype(np.uint64)
        result &= self._column
        result *= row
        return result

    def close(self, relation: Words, i: Places, j: Places) -> Words:
        """Add the edge from i to j to reflexive transitive relations, and close them."""
        result = self.outer(relation, i, relation, j)
        result |= relation
        return result

    def _place(self, row: int) -> tuple[int, int]:
        word, slot = divmod(row, self.rows_in_word)
        return word, slot * self.items
