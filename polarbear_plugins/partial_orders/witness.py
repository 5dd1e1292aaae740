"""Search for the witnesses that make sets of partial orders union-free generic, for many sets at once.

A set S of two or more distinct orders is union-free generic if some order lies between the intersection and the union
of S, but not between those of S without any one member.  Such a *witness* has, for each member, an edge that only this
member has, or lacks an edge that only this member lacks: S surrounds its witness, and needs every member to do so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.partial_orders.bits import BitRelations, Flags, Places, Words, any_bit

_WORDS = 49152  # of the relations that are searched at once: few enough for the cache, many enough for numpy
_FEW_ITEMS = 15  # up to which edges can be counted in 8 bits

ColumnsT = TypeVar("ColumnsT", bound="Columns")


class Columns:
    """A dataclass of arrays whose last axis is the same columns."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def take(self: ColumnsT, columns: Places) -> ColumnsT:
        """The columns at some indices."""
        return type(self)(*(np.take(array, columns, axis=-1) for array in self.arrays()))

    def part(self: ColumnsT, columns: slice) -> ColumnsT:
        """A range of columns."""
        return type(self)(*(array[..., columns] for array in self.arrays()))

    def arrays(self) -> list[Any]:
        """The arrays in the order of the fields."""
        return [getattr(self, field.name) for field in fields(self)]


def join(parts: Sequence[ColumnsT]) -> ColumnsT:
    """Concatenate the columns."""
    if len(parts) == 1:
        return parts[0]
    arrays = zip(*(part.arrays() for part in parts), strict=True)
    return type(parts[0])(*(np.concatenate(_pad_rows(pieces), axis=-1) for pieces in arrays))


def _pad_rows(pieces: Sequence[NDArray[Any]]) -> Sequence[NDArray[Any]]:
    """Pad arrays with fewer rows than others by repeating their first row."""
    heights = {len(piece) for piece in pieces if piece.ndim > 1}
    if len(heights) < 2:
        return pieces
    return [np.concatenate((piece, np.repeat(piece[:1], max(heights) - len(piece), axis=0))) for piece in pieces]


class PackedOrders:
    """Distinct partial orders ``relations[order, i, j]``, packed into words."""

    def __init__(self, relations: Flags) -> None:
        self.relations = relations
        self.bits = BitRelations(relations.shape[-1])
        self.words = self.bits.pack(relations)
        self.transposes = self.bits.pack(relations.swapaxes(1, 2))

    def __len__(self) -> int:
        return int(self.words.shape[1])


@dataclass(slots=True)
class Family(Columns):
    """Sets of orders, a column for each.

    Attributes
    ----------
    members
        Indices of the orders, ``[place, column]``; places beyond the size of a set repeat its first member.
    size
        Number of members.
    common, transpose
        Edges that all members have, and their transpose.
    union
        Edges that some member has.
    only_one, all_but_one
        Edges that exactly one member has, and that exactly one lacks.
    """

    members: NDArray[np.uint16]
    size: Places
    common: Words
    transpose: Words
    union: Words
    only_one: Words
    all_but_one: Words

    def __len__(self) -> int:
        return int(self.size.size)

    @classmethod
    def of(cls, members: NDArray[np.uint16], orders: PackedOrders) -> Family:
        """Family of sets of one size, ``members[place, column]``."""
        empty = np.zeros((orders.bits.words, members.shape[1]), dtype=np.uint64)
        no_members = np.zeros((0, members.shape[1]), dtype=np.uint16)
        family = cls(no_members, np.zeros(members.shape[1], dtype=np.intp), ~empty, ~empty, empty, empty, empty)
        for order in members:
            family = family.with_member(order, orders)
        return family

    def with_member(self, order: NDArray[np.uint16], orders: PackedOrders) -> Family:
        """The sets with one more member each, which they do not have yet."""
        words = np.take(orders.words, order, axis=1)
        if len(self) and self.size.max() < len(self.members):
            members = self.members.copy()
        else:
            members = np.concatenate((self.members, self.members[:1] if len(self.members) else order[None]))
        members[self.size, np.arange(len(self))] = order
        return Family(
            members,
            self.size + 1,
            self.common & words,
            self.transpose & np.take(orders.transposes, order, axis=1),
            self.union | words,
            (self.only_one & ~words) | (words & ~self.union),
            (self.all_but_one & words) | (self.common & ~words),
        )


def has_own_marks(family: Family, orders: PackedOrders) -> Flags:
    """Whether each member has an edge that only it has, or lacks one that only it lacks.

    Otherwise there is no witness, and none for any larger set: a member's own mark in a set is its own in every subset.
    So all supersets can be left out.  Not being union-free generic does not justify that: a set may be union-free
    generic although a subset is not.
    """
    good = np.ones(len(family), dtype=np.bool_)
    for words in _members(family.members, family.size, orders):
        good &= _has_mark(words, family.only_one ^ family.all_but_one, family.all_but_one)
    return good


def find_witnesses(
    family: Family, orders: PackedOrders, start: tuple[Words, Words], started: Flags
) -> tuple[Flags, tuple[Words, Words]]:
    """Which sets have a witness, and one witness for each.

    Parameters
    ----------
    start
        For each set an order between its intersection and its union to try first, such as the witness of a set with
        one member less: the reflexive relation and its transpose.
    started
        Which sets have such an order.

    Returns
    -------
    found, witnesses
        The witnesses, in the form of ``start``; undefined where there is none.
    """
    search = WitnessSearch(family, orders)
    columns = np.flatnonzero(started)
    search.climb(columns, *(np.take(words, columns, axis=1) for words in start))
    search.complete(np.flatnonzero(~search.found))
    return search.found, search.witnesses


@dataclass(slots=True)
class _Order(Columns):
    """Partial witnesses: the set, the reflexive relation, its transpose, and the edges that must not be added.

    Forbidden are the edges whose transitive closure would leave the union of the set, which also prevents cycles, and
    those that were tried without success.
    """

    column: Places
    relation: Words
    transpose: Words
    forbidden: Words


@dataclass(slots=True)
class _States(Columns):
    """Partial witnesses with the edges of which one has to be added."""

    column: Places
    relation: Words
    transpose: Words
    forbidden: Words
    options: Words


class WitnessSearch:
    """Search for a witness of each set of a family.

    Attributes
    ----------
    found
        Which sets have one.
    witnesses
        The reflexive relation and its transpose; undefined where there is none.
    """

    def __init__(self, family: Family, orders: PackedOrders) -> None:
        self.family, self.orders = family, orders
        self.found = np.zeros(len(family), dtype=np.bool_)
        self._batch = max(1024, _WORDS // orders.bits.words)
        self.witnesses = np.empty_like(family.common), np.empty_like(family.common)

    def climb(self, columns: Places, relation: Words, transpose: Words) -> None:
        """Add edges to an order for each of some sets as long as possible, without backtracking."""
        states, first = None, 0
        while first < columns.size or (states is not None and states.column.size):
            # Refill finished columns: operations on few columns are inefficient.
            fresh = slice(first, first + self._batch - (0 if states is None else states.column.size))
            first = fresh.stop
            orders = [self._begin(columns[fresh], relation[:, fresh], transpose[:, fresh])]
            if states is not None and states.column.size:
                orders.append(self._extend(states)[0])
            states = self._evaluate(join(orders))

    def complete(self, columns: Places) -> None:
        """Exhaustive depth-first search from the intersections, over the latest states of many sets at once."""
        stack: list[_States] = []
        diagonal = self.orders.bits.diagonal
        first = 0
        while stack or first < columns.size:
            states = self._pop(stack) if stack else None
            fresh = columns[first : first + max(0, self._batch - (0 if states is None else states.column.size))]
            first += fresh.size
            common = (np.take(words, fresh, axis=1) | diagonal for words in (self.family.common, self.family.transpose))
            orders = [self._begin(fresh, *common)]
            if states is not None and states.column.size:
                extended, left = self._extend(states)
                orders.append(extended)
                stack.append(left)
            stack.append(self._evaluate(join(orders)))
            stack = [states for states in stack if states.column.size]

    def _pop(self, stack: list[_States]) -> _States:
        """Take states from the top until there are enough for an efficient operation; drops those of finished sets."""
        taken: list[_States] = []
        size = 0
        while stack and size < self._batch:
            states = stack.pop()
            finished = self.found[states.column]
            if finished.any():
                states = states.take(np.flatnonzero(~finished))
            if size + states.column.size > 2 * self._batch:
                stack.append(states.part(slice(0, -self._batch)))
                states = states.part(slice(-self._batch, None))
            taken.append(states)
            size += states.column.size
        return join(taken)

    def _begin(self, column: Places, relation: Words, transpose: Words) -> _Order:
        """Partial witnesses to start from: adding an edge also adds those from all above it to all below it."""
        bits = self.orders.bits
        forbidden = ~np.take(self.family.union, column, axis=1)
        edges = np.flatnonzero(any_bit(relation ^ bits.diagonal))
        below = np.take(transpose, edges, axis=1)
        forbidden[:, edges] = bits.product(below, bits.product(np.take(forbidden, edges, axis=1), below))
        return _Order(column, relation, transpose, forbidden)

    def _extend(self, states: _States) -> tuple[_Order, _States]:
        """Orders with one option added, and the states with the options left to try, without that edge."""
        bits = self.orders.bits
        i, j = bits.first_edge(states.options)
        relation, transpose, forbidden = states.relation, states.transpose, states.forbidden
        # What is below j has more above it now, and what is above i more below it.
        more = forbidden | bits.outer(transpose, j, forbidden, i)
        more |= bits.outer(forbidden, j, transpose, i)  # both would need the edge from i to j to be forbidden
        extended = _Order(states.column, bits.close(relation, i, j), bits.close(transpose, j, i), more)
        states.forbidden = forbidden | bits.outer(transpose, i, transpose, j)
        states.options = states.options & ~states.forbidden
        return extended, states.take(np.flatnonzero(any_bit(states.options)))

    def _evaluate(self, order: _Order) -> _States:
        """Record the witnesses among some orders, and return the options of the others, where there are any.

        The options are edges of the unmarked member with the fewest: those that only it has and that may be added.
        """
        bits, family = self.orders.bits, self.family
        column, relation, transpose = order.column, order.relation, order.transpose
        only_one, lacked = (np.take(words, column, axis=1) for words in (family.only_one, family.all_but_one))
        free = only_one & ~order.forbidden
        lacked &= ~relation
        only_one &= relation
        only_one ^= lacked
        small = np.uint8 if bits.items <= _FEW_ITEMS else np.uint16
        marked = np.iinfo(small).max  # more than the number of options can be
        fewest: NDArray[Any] = np.full(column.size, marked, dtype=small)
        scarcest = np.zeros(column.size, dtype=np.uint16)
        members = np.take(family.members, column, axis=1)
        for place, words in enumerate(_members(members, family.size[column], self.orders)):
            has_mark = _has_mark(words, only_one, lacked)
            words &= free
            counts = np.bitwise_count(words)
            count = counts[0].astype(small, copy=False)
            for more in counts[1:]:
                count += more
            count |= has_mark.view(np.uint8) * small(marked)
            np.copyto(scarcest, members[place], where=count < fewest)
            np.minimum(fewest, count, out=fewest)
        done = np.flatnonzero(fewest == marked)
        self.found[column[done]] = True
        for witnesses, words in zip(self.witnesses, (relation, transpose), strict=True):
            witnesses[:, column[done]] = np.take(words, done, axis=1)
        open_ = np.flatnonzero((fewest > 0) & (fewest != marked))
        states = _States(column, relation, transpose, order.forbidden, free).take(open_)
        states.options &= np.take(self.orders.words, scarcest[open_], axis=1)
        return states


def _members(members: NDArray[np.uint16], size: Places, orders: PackedOrders) -> Iterator[Words]:
    """Words of the orders at each place of some sets."""
    for numbers in members[: size.max(initial=0)]:
        yield np.take(orders.words, numbers, axis=1)


def _has_mark(words: Words, either: Words, lacking: Words) -> Flags:
    """Whether orders have an edge of one relation, or lack one of ``lacking``; ``either`` is where the two differ."""
    marks = words & either
    marks ^= lacking
    return any_bit(marks)
