"""Which sets of partial orders are union-free generic: the search for a witness, for many sets at once.

A set S of two or more distinct orders is union-free generic if some order lies between the intersection and the union
of S, but not between those of S without any one member.  Such a *witness* has, for each member, an edge that only this
member has, or lacks an edge that only this member lacks.  Equivalently, S is a smallest set around its witness: none of
its members can be spared.

Sets are columns.  A relation is a row of bits for each item, ``relation[item, column]``, bit j of row i being the edge
from i to j; that makes every step a few operations on whole arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bits", "Family", "Flags", "bit_rows", "find_witnesses", "has_own_marks"]

Bits: TypeAlias = NDArray[Any]  # unsigned, as wide as there are items
Flags: TypeAlias = NDArray[np.bool_]

_BATCH = 4096  # columns that stay in the cache together


def bit_rows(relations: Flags) -> Bits:
    """Pack ``relations[order, i, j]`` into rows of bits, ``[order, i]``.

    >>> bit_rows(np.array([[[False, True], [False, False]]]))
    array([[2, 0]], dtype=uint16)
    """
    items = relations.shape[-1]
    width = np.uint16 if items <= 16 else np.uint32 if items <= 32 else np.uint64
    return np.bitwise_or.reduce(relations.astype(width) << np.arange(items, dtype=width), axis=-1)


@dataclass(slots=True)
class Family:
    """Sets of orders, a column for each.

    Attributes
    ----------
    inside
        Which orders are members, ``[order, column]``.
    common, union
        Edges that all members have, and that some have.
    only_one, all_but_one
        Edges that exactly one member has, and that exactly one lacks.
    """

    inside: Flags
    common: Bits
    union: Bits
    only_one: Bits
    all_but_one: Bits

    def __len__(self) -> int:
        return self.inside.shape[1]

    @classmethod
    def of(cls, inside: Flags, rows: Bits) -> Family:
        """Family of the sets ``inside[order, column]``."""
        count, width = rows.shape[1], rows.dtype
        empty = np.zeros((count, inside.shape[1]), dtype=width)
        full = np.full_like(empty, (1 << count) - 1)
        family = cls(np.zeros_like(inside), full, empty, empty, empty)
        for order, members in enumerate(inside):
            joined = family.with_member(order, rows)
            for field in ("common", "union", "only_one", "all_but_one"):
                setattr(family, field, np.where(members, getattr(joined, field), getattr(family, field)))
        family.inside = inside
        return family

    def with_member(self, order: int, rows: Bits) -> Family:
        """The same sets with one more member, which none of them has yet."""
        row = rows[order][:, None]
        inside = self.inside.copy()
        inside[order] = True
        return Family(
            inside,
            self.common & row,
            self.union | row,
            (self.only_one & ~row) | (row & ~self.union),
            (self.all_but_one & row) | (self.common & ~row),
        )

    def take(self, columns: NDArray[np.intp] | slice) -> Family:
        """Some of the sets."""
        return Family(*(getattr(self, field.name)[:, columns] for field in fields(self)))


def has_own_marks(family: Family, rows: Bits) -> Flags:
    """Whether each member has an edge that only it has, or lacks one that only it lacks.

    Without that there is no witness, and none for any larger set either: what is a member's own in a set is its own in
    every subset.  That makes it a sound reason to leave out all supersets, which being union-free generic itself is not
    (a set may be so although a subset is not).
    """
    either = family.only_one ^ family.all_but_one
    good = np.ones(len(family), dtype=np.bool_)
    for members, row in zip(family.inside, rows, strict=True):
        mark = np.bitwise_or.reduce(family.all_but_one ^ (either & row[:, None]), axis=0)
        good &= (mark != 0) | ~members
    return good


def find_witnesses(family: Family, rows: Bits, start: Bits, started: Flags) -> tuple[Flags, Bits]:
    """Which sets have a witness, and one for each of those.

    Parameters
    ----------
    start
        For each set an order between its intersection and its union to try first, such as the witness of a set with
        one member less, reflexive.
    started
        Which sets have one.

    Returns
    -------
    found, witnesses
        The witnesses are reflexive relations, undefined where there is none.
    """
    found = np.zeros(len(family), dtype=np.bool_)
    witnesses = np.empty_like(family.common)
    quick = np.flatnonzero(started)
    for first in range(0, quick.size, _BATCH):
        _climb(family, rows, start, quick[first : first + _BATCH], found, witnesses)
    rest = np.flatnonzero(~found)
    diagonal = (1 << np.arange(rows.shape[1])).astype(rows.dtype)[:, None]
    _search(family, rows, rest, family.common[:, rest] | diagonal, found, witnesses)
    return found, witnesses


@dataclass(slots=True)
class _States:
    """Orders on the way to a witness: of which set, the reflexive relation, and its transpose."""

    column: NDArray[np.intp]
    relation: Bits
    transpose: Bits
    options: Bits  # the edges of which the next one is chosen

    def take(self, chosen: Flags | slice) -> _States:
        return _States(
            self.column[chosen], self.relation[:, chosen], self.transpose[:, chosen], self.options[:, chosen]
        )


def _climb(
    family: Family, rows: Bits, start: Bits, columns: NDArray[np.intp], found: Flags, witnesses: Bits
) -> None:
    """Add edges to the start as long as possible, without ever going back."""
    relation = start[:, columns]
    states = _evaluate(family, rows, columns, relation, _transposed(relation), found, witnesses)
    while states.column.size:
        relation, transpose, _ = _add_first_option(states)
        states = _evaluate(family, rows, states.column, relation, transpose, found, witnesses)


def _search(
    family: Family, rows: Bits, columns: NDArray[np.intp], start: Bits, found: Flags, witnesses: Bits
) -> None:
    """Search completely, depth first, the most recent states of all sets together."""
    stack: list[_States] = []
    waiting = list(range(0, columns.size, _BATCH))[::-1]
    while stack or waiting:
        if not stack:
            here = slice(waiting[-1], waiting.pop() + _BATCH)
            relation = start[:, here]
            states = _evaluate(family, rows, columns[here], relation, _transposed(relation), found, witnesses)
        else:
            states = _pop(stack, found)
            relation, transpose, left = _add_first_option(states)
            states.options = left
            more = np.bitwise_or.reduce(left, axis=0) != 0
            if more.any():
                stack.append(states.take(more))
            states = _evaluate(family, rows, states.column, relation, transpose, found, witnesses)
        if states.column.size:
            stack.append(states)


def _pop(stack: list[_States], found: Flags) -> _States:
    """Take states from the top until there are enough to be worth an operation; those of settled sets are dropped."""
    taken: list[_States] = []
    size = 0
    while stack and size < _BATCH:
        states = stack.pop()
        open_ = ~found[states.column]
        states = states if open_.all() else states.take(open_)
        if size + states.column.size > 2 * _BATCH:
            stack.append(states.take(slice(0, -_BATCH)))
            states = states.take(slice(-_BATCH, None))
        taken.append(states)
        size += states.column.size
    if len(taken) == 1:
        return taken[0]
    return _States(
        np.concatenate([states.column for states in taken]),
        np.concatenate([states.relation for states in taken], axis=1),
        np.concatenate([states.transpose for states in taken], axis=1),
        np.concatenate([states.options for states in taken], axis=1),
    )


def _evaluate(
    family: Family,
    rows: Bits,
    column: NDArray[np.intp],
    relation: Bits,
    transpose: Bits,
    found: Flags,
    witnesses: Bits,
) -> _States:
    """Note the witnesses among some orders, and say of the others how to go on, where it is possible.

    The options are the edges that only one member has, for the member in need that has the fewest; an edge counts if
    the transitive closure with it stays within the union of the set, which also keeps it free of cycles.
    """
    only_one, all_but_one = family.only_one[:, column], family.all_but_one[:, column]
    free = only_one & ~_forbidden(~family.union[:, column], relation, transpose)
    lacked = all_but_one & ~relation
    either = (only_one & relation) ^ lacked
    most = np.iinfo(np.uint16).max
    fewest = np.full(column.size, most, dtype=np.uint16)
    neediest = np.zeros(column.size, dtype=np.intp)
    for order, row in enumerate(rows[:, :, None]):
        needs = np.bitwise_or.reduce(lacked ^ (either & row), axis=0) == 0
        needs &= family.inside[order, column]
        if not needs.any():
            continue
        count = np.add.reduce(np.bitwise_count(free & row), axis=0, dtype=np.uint16)
        count[~needs] = most
        fewer = count < fewest
        neediest[fewer] = order
        np.minimum(fewest, count, out=fewest)
    done = fewest == most
    if done.any():
        found[column[done]] = True
        witnesses[:, column[done]] = relation[:, done]
    on = (fewest > 0) & ~done
    return _States(column[on], relation[:, on], transpose[:, on], free[:, on] & rows[neediest[on]].T)


def _forbidden(outside: Bits, relation: Bits, transpose: Bits) -> Bits:
    """Edges that cannot be added: the transitive closure would have an edge that lies outside.

    With (i, j) come the edges from all that are above i, and i itself, to all that are below j, and j itself.
    """
    items = relation.shape[0]
    one = relation.dtype.type(1)
    reaches = np.zeros_like(relation)  # reaches[a]: the j from which an edge outside, from a, would follow
    result = np.zeros_like(relation)
    work = np.empty_like(relation)
    for j in range(items):
        np.bitwise_and(outside, relation[j], out=work)
        np.minimum(work, one, out=work)
        np.left_shift(work, relation.dtype.type(j), out=work)
        reaches |= work
    for a in range(items):
        np.right_shift(transpose, relation.dtype.type(a), out=work)
        work &= one
        work *= reaches[a]
        result |= work
    return result


def _add_first_option(states: _States) -> tuple[Bits, Bits, Bits]:
    """Add the first option of each state, and say which options are left."""
    here = np.arange(states.column.size)
    above = (states.options != 0).argmax(axis=0)
    bits = states.options[above, here]
    lowest = bits & (~bits + bits.dtype.type(1))
    below = np.bitwise_count(lowest - bits.dtype.type(1)).astype(bits.dtype)
    left = states.options.copy()
    left[above, here] ^= lowest
    one = bits.dtype.type(1)
    relation = states.relation | (
        ((states.relation >> above.astype(bits.dtype)) & one) * states.relation[below.astype(np.intp), here]
    )
    transpose = states.transpose | (((states.transpose >> below) & one) * states.transpose[above, here])
    return relation, transpose, left


def _transposed(relation: Bits) -> Bits:
    result = np.zeros_like(relation)
    one = relation.dtype.type(1)
    for i, row in enumerate(relation):
        for j in range(relation.shape[0]):
            result[j] |= ((row >> relation.dtype.type(j)) & one) << relation.dtype.type(i)
    return result
