"""Which sets of partial orders are union-free generic: the search for a witness, for many sets at once.

A set S of two or more distinct orders is union-free generic if some order lies between the intersection and the union
of S, but not between those of S without any one member.  Such a *witness* has, for each member, an edge that only this
member has, or lacks an edge that only this member lacks.  In other words: S surrounds its witness, and none of its
members can be spared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from polarbear_plugins.bit_relations import BitRelations, Flags, Places, Words, any_bit

__all__ = ["Columns", "Family", "Orders", "find_witnesses", "has_own_marks", "join"]

_BATCH = 4096  # columns that stay in the cache together
_NOBODY = np.iinfo(np.uint16).max

Some = TypeVar("Some", bound="Columns")


class Columns:
    """A dataclass of arrays whose last axis goes over the same columns."""

    __slots__ = ()
    __dataclass_fields__: Any

    def take(self: Some, columns: Places) -> Some:
        """Some of the columns."""
        return type(self)(*(np.take(array, columns, axis=-1) for array in self.arrays()))

    def part(self: Some, columns: slice) -> Some:
        """Columns in a row."""
        return type(self)(*(array[..., columns] for array in self.arrays()))

    def arrays(self) -> list[Any]:
        """The arrays in the order of the fields."""
        return [getattr(self, field.name) for field in fields(self)]


def join(parts: Sequence[Some]) -> Some:
    """One after the other."""
    if len(parts) == 1:
        return parts[0]
    arrays = zip(*(part.arrays() for part in parts), strict=True)
    return type(parts[0])(*(np.concatenate(pieces, axis=-1) for pieces in arrays))


class Orders:
    """Distinct partial orders ``relations[order, i, j]``, and their words."""

    def __init__(self, relations: Flags) -> None:
        self.bits = BitRelations(relations.shape[-1])
        self.words = self.bits.pack(relations)
        self.transposes = self.bits.pack(relations.swapaxes(1, 2))

    def __len__(self) -> int:
        return self.words.shape[1]


@dataclass(slots=True)
class Family(Columns):
    """Sets of orders, a column for each.

    Attributes
    ----------
    inside
        Which orders are members, ``[order, column]``.
    common, transpose
        Edges that all members have, and the same turned around.
    union
        Edges that some member has.
    only_one, all_but_one
        Edges that exactly one member has, and that exactly one lacks.
    """

    inside: Flags
    common: Words
    transpose: Words
    union: Words
    only_one: Words
    all_but_one: Words

    def __len__(self) -> int:
        return self.inside.shape[1]

    @classmethod
    def of(cls, inside: Flags, orders: Orders) -> Family:
        """Family of the sets ``inside[order, column]``."""
        empty = np.zeros((orders.bits.words, inside.shape[1]), dtype=np.uint64)
        family = cls(np.zeros_like(inside), ~empty, ~empty, empty, empty, empty)
        for order, members in enumerate(inside):
            joined = family.with_member(order, orders)
            family = cls(
                *(np.where(members, new, old) for new, old in zip(joined.arrays(), family.arrays(), strict=True))
            )
        return family

    def with_member(self, order: int, orders: Orders) -> Family:
        """The same sets with one more member, which none of them has yet."""
        words = orders.words[:, order, None]
        inside = self.inside.copy()
        inside[order] = True
        return Family(
            inside,
            self.common & words,
            self.transpose & orders.transposes[:, order, None],
            self.union | words,
            (self.only_one & ~words) | (words & ~self.union),
            (self.all_but_one & words) | (self.common & ~words),
        )


def has_own_marks(family: Family, orders: Orders) -> Flags:
    """Whether each member has an edge that only it has, or lacks one that only it lacks.

    Without that there is no witness, and none for any larger set either: what is a member's own in a set is its own in
    every subset.  That makes it a sound reason to leave out all supersets, which not being union-free generic is not
    (a set may be union-free generic although a subset is not).
    """
    good = np.ones(len(family), dtype=np.bool_)
    for order, marked in enumerate(_marked(family.only_one, family.all_but_one, orders)):
        good &= marked | ~family.inside[order]
    return good


def find_witnesses(
    family: Family, orders: Orders, start: tuple[Words, Words], started: Flags
) -> tuple[Flags, tuple[Words, Words]]:
    """Which sets have a witness, and one for each of those.

    Parameters
    ----------
    start
        For each set an order between its intersection and its union to try first, such as the witness of a set with
        one member less: the reflexive relation and its transpose.
    started
        Which sets have one.

    Returns
    -------
    found, witnesses
        The witnesses, as the start, are undefined where there is none.
    """
    search = _Search(family, orders)
    quick = np.flatnonzero(started)
    for first in range(0, quick.size, _BATCH):
        columns = quick[first : first + _BATCH]
        search.climb(columns, *(np.take(words, columns, axis=1) for words in start))
    search.complete(np.flatnonzero(~search.found))
    return search.found, search.witnesses


@dataclass(slots=True)
class _States(Columns):
    """Orders on the way to a witness: of which set, the reflexive relation, its transpose, and what can be added."""

    column: Places
    relation: Words
    transpose: Words
    options: Words


class _Search:
    def __init__(self, family: Family, orders: Orders) -> None:
        self.family, self.orders = family, orders
        self.found = np.zeros(len(family), dtype=np.bool_)
        self.witnesses = np.empty_like(family.common), np.empty_like(family.common)

    def climb(self, columns: Places, relation: Words, transpose: Words) -> None:
        """Add edges as long as possible, without ever going back."""
        states = self._evaluate(columns, relation, transpose)
        while states.column.size:
            states = self._step(states)[0]

    def complete(self, columns: Places) -> None:
        """Search from the intersections, completely; depth first, with the latest states of many sets together."""
        stack: list[_States] = []
        diagonal = self.orders.bits.diagonal
        for first in range(0, columns.size, _BATCH):
            here = columns[first : first + _BATCH]
            relation, transpose = (
                np.take(words, here, axis=1) | diagonal for words in (self.family.common, self.family.transpose)
            )
            stack.append(self._evaluate(here, relation, transpose))
            while stack:
                above, below = self._step(self._pop(stack))
                stack += [states for states in (below, above) if states.column.size]

    def _pop(self, stack: list[_States]) -> _States:
        """Take states from the top until there are enough to be worth an operation; those of settled sets are gone."""
        taken: list[_States] = []
        size = 0
        while stack and size < _BATCH:
            states = stack.pop()
            settled = self.found[states.column]
            if settled.any():
                states = states.take(np.flatnonzero(~settled))
            if size + states.column.size > 2 * _BATCH:
                stack.append(states.part(slice(0, -_BATCH)))
                states = states.part(slice(-_BATCH, None))
            taken.append(states)
            size += states.column.size
        return join(taken)

    def _step(self, states: _States) -> tuple[_States, _States]:
        """Add one option to each order: how it goes on from there, and what else can be tried later."""
        bits = self.orders.bits
        edge, i, j = bits.first_edge(states.options)
        left = states.options ^ edge
        above = self._evaluate(states.column, bits.close(states.relation, i, j), bits.close(states.transpose, j, i))
        states.options = left
        return above, states.take(np.flatnonzero(any_bit(left)))

    def _evaluate(self, column: Places, relation: Words, transpose: Words) -> _States:
        """Note the witnesses among some orders, and say of the others how to go on, where it is possible.

        The options are edges of the member in need that has the fewest: those that only it has, such that the transitive
        closure stays within the union of the set, which also keeps it free of cycles.  With an edge from i to j come
        those from i and all that are above it to j and all that are below it.
        """
        bits, family = self.orders.bits, self.family
        only_one = np.take(family.only_one, column, axis=1)
        outside = ~np.take(family.union, column, axis=1)
        free = only_one & ~bits.product(transpose, bits.product(outside, transpose))
        lacked = np.take(family.all_but_one, column, axis=1) & ~relation
        inside = np.take(family.inside, column, axis=1)
        fewest = np.full(column.size, _NOBODY, dtype=np.uint16)
        neediest = np.zeros(column.size, dtype=np.uint16)
        for order, marked in enumerate(_marked(only_one & relation, lacked, self.orders)):
            content = marked | ~inside[order]
            if content.all():
                continue
            options = np.bitwise_count(free & self.orders.words[:, order, None])
            count = np.add.reduce(options, axis=0, dtype=np.uint16)
            count |= content * np.uint16(_NOBODY)
            np.copyto(neediest, np.uint16(order), where=count < fewest)
            np.minimum(fewest, count, out=fewest)
        done = np.flatnonzero(fewest == _NOBODY)
        self.found[column[done]] = True
        for witnesses, words in zip(self.witnesses, (relation, transpose), strict=True):
            witnesses[:, column[done]] = np.take(words, done, axis=1)
        on = np.flatnonzero((fewest > 0) & (fewest != _NOBODY))
        states = _States(column, relation, transpose, free).take(on)
        states.options &= np.take(self.orders.words, neediest[on], axis=1)
        return states


def _marked(having: Words, lacking: Words, orders: Orders) -> Any:
    """For each order in turn: whether it has an edge of the first, or lacks one of the second."""
    either = having ^ lacking
    work = np.empty_like(either)
    for words in orders.words.T[:, :, None]:
        np.bitwise_and(either, words, out=work)
        work ^= lacking
        yield any_bit(work)
