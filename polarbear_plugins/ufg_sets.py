"""Sums over the union-free generic sets of some partial orders: complete, or from a sample of the larger sets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.ufg_witness import Bits, Family, Flags, find_witnesses, has_own_marks
from polarbear_plugins.validation import FloatArray

__all__ = ["SetSums", "estimate_candidates", "largest_size", "sample_sums", "sum_over_sets", "weight_by_size"]

_CHUNK = 4096  # sets that grow together
_LEAST_DRAWS = 64  # for each size, however little it weighs
_POPULATION = 500  # sets by which the number of candidates is estimated


@dataclass(slots=True)
class SetSums:
    """What was found: sums of the weights of union-free generic sets.

    Attributes
    ----------
    total
        Of all of them.
    around
        Of those around each order that was asked for.
    candidates, generic
        How many sets were tested, and how many are union-free generic, by their size.
    errors
        Standard error of ``around / total``; 0 where all sets were looked at.
    """

    total: float
    around: FloatArray
    candidates: dict[int, int]
    generic: dict[int, int]
    errors: FloatArray


def weight_by_size(weights: FloatArray) -> FloatArray:
    """Sum of the products of the weights over all sets of a size, for each size from 0 on.

    >>> weight_by_size(np.array([0.5, 0.25, 0.25]))
    array([1.     , 1.     , 0.3125 , 0.03125])
    """
    sums = np.zeros(weights.size + 1)
    sums[0] = 1.0
    for weight in weights:
        sums[1:] += weight * sums[:-1]
    return sums


def largest_size(weights: FloatArray, least_total: float, tolerance: float) -> int:
    """How large sets must be looked at, so that all larger ones together move no depth by more than the tolerance.

    ``least_total`` is a lower bound of the sum of weights over all union-free generic sets.
    """
    tails = np.cumsum(weight_by_size(weights)[::-1])[::-1]  # tails[k]: all sets of k or more members
    sizes = np.flatnonzero(np.append(tails, 0.0) <= tolerance * least_total)
    return int(max(sizes[0] - 1, 2))


def sum_over_sets(rows: Bits, weights: FloatArray, queries: Bits, largest: int) -> SetSums:
    """Look at every set of up to ``largest`` members that may be union-free generic.

    Sets grow by members of higher number, as long as each member has a mark of its own; that holds for all subsets of
    a union-free generic set, so that none is missed.  The sets on top of the stack grow first, and memory stays small.
    """
    sums = SetSums(0.0, np.zeros(len(queries)), {}, {}, np.zeros(len(queries)))
    stack = [_Branch.singles(rows, weights)]
    while stack:
        grown = _pop(stack).grown(rows, weights)
        if not len(grown.family):
            continue
        grown.found, grown.witness = find_witnesses(grown.family, rows, grown.witness, grown.found)
        _count(grown.size, sums.candidates)
        _count(grown.size[grown.found], sums.generic)
        weight = grown.weight[grown.found]
        sums.total += float(weight.sum())
        sums.around += _around(grown.family.take(np.flatnonzero(grown.found)), queries) @ weight
        # A pair is no union-free generic set only if one order has just one edge more than the other, and then the two
        # are together in none.  Larger sets may become one although they are none.
        fertile = (grown.size < largest) & (grown.found | (grown.size > 2))
        stack.append(grown.take(np.flatnonzero(fertile)))
    return sums


def sample_sums(
    rows: Bits, weights: FloatArray, queries: Bits, largest: int, samples: int, rng: np.random.Generator
) -> SetSums:
    """Look at all small sets, and at a sample of the larger ones up to ``largest`` members.

    Sizes are complete as long as they have at most ``samples`` sets together.  The ``samples`` sets of larger sizes are
    shared out in proportion to the weight of all sets of a size, and drawn in proportion to their weights.
    """
    count, complete, sets = len(rows), 2, math.comb(len(rows), 2)
    while complete < largest and sets + math.comb(count, complete + 1) <= samples:
        complete += 1
        sets += math.comb(count, complete)
    sums = sum_over_sets(rows, weights, queries, complete)
    by_size = weight_by_size(weights)
    sizes = range(complete + 1, largest + 1)
    sampled = by_size[complete + 1 : largest + 1].sum()
    strata = []
    for size in sizes:
        draws = max(_LEAST_DRAWS, round(samples * by_size[size] / sampled))
        hits = np.zeros(draws, dtype=np.bool_)
        around = np.zeros((len(queries), draws), dtype=np.bool_)
        for part, inside in _draws(weights, size, draws, rng):
            family = Family.of(inside, rows)
            likely = np.flatnonzero(has_own_marks(family, rows))
            family = family.take(likely)
            found, _ = find_witnesses(family, rows, family.common, np.zeros(len(family), dtype=np.bool_))
            hit = likely[found]
            hits[part.start + hit] = True
            around[:, part.start + hit] = _around(family.take(np.flatnonzero(found)), queries)
        sums.candidates[size], sums.generic[size] = draws, int(hits.sum())
        sums.total += by_size[size] * hits.mean()
        sums.around += by_size[size] * around.mean(axis=1)
        strata.append((by_size[size], hits, around))
    variance = np.zeros(len(queries))
    if sums.total > 0:
        depth = sums.around / sums.total
        for weight, hits, around in strata:  # by the delta method, for a ratio
            variance += weight**2 * np.var(around - depth[:, None] * hits, axis=1) / (hits.size * sums.total**2)
    sums.errors = np.sqrt(variance)
    return sums


def estimate_candidates(rows: Bits, largest: int, rng: np.random.Generator) -> float:
    """About how many sets :func:`sum_over_sets` would test.

    A uniform sample of the candidates of one size grows by a member; what survives is a uniform sample of the next
    size, because every subset of a candidate is a candidate.
    """
    count = len(rows)
    inside = np.zeros((count, count), dtype=np.bool_)
    np.fill_diagonal(inside, True)
    total, sets = 0.0, float(count)
    for size in range(2, largest + 1):
        grown = [
            family.take(np.flatnonzero(has_own_marks(family, rows))).inside
            for order in range(count)
            if (family := Family.of(inside[:, ~inside[order]], rows).with_member(order, rows))
        ]
        survivors = np.concatenate(grown, axis=1)
        sets *= survivors.shape[1] / inside.shape[1] / size
        total += sets
        if not survivors.shape[1]:
            break
        chosen = rng.permutation(survivors.shape[1])[:_POPULATION]
        inside = survivors[:, chosen]
    return total


@dataclass(slots=True)
class _Branch:
    """Sets from which larger ones grow."""

    family: Family
    last: NDArray[np.intp]  # the member of the highest number
    size: NDArray[np.intp]
    weight: FloatArray
    found: Flags
    witness: Bits

    @classmethod
    def singles(cls, rows: Bits, weights: FloatArray) -> _Branch:
        count = len(rows)
        family = Family.of(np.eye(count, dtype=np.bool_), rows)
        none = np.zeros(count, dtype=np.bool_)
        return cls(family, np.arange(count), np.ones(count, dtype=np.intp), weights, none, family.common)

    def take(self, columns: NDArray[np.intp] | slice) -> _Branch:
        return _Branch(
            self.family.take(columns),
            self.last[columns],
            self.size[columns],
            self.weight[columns],
            self.found[columns],
            self.witness[:, columns],
        )

    def grown(self, rows: Bits, weights: FloatArray) -> _Branch:
        """All sets with one more member, of a higher number, whose members have marks of their own.

        Until it is known whether they have a witness, ``found`` and ``witness`` are those of the smaller set.
        """
        parts = [self.take(slice(0, 0))]
        for order in range(1, len(rows)):
            below = np.flatnonzero(self.last < order)
            family = self.family.take(below).with_member(order, rows)
            good = np.flatnonzero(has_own_marks(family, rows))
            parts.append(
                _Branch(
                    family.take(good),
                    np.full(good.size, order),
                    self.size[below[good]] + 1,
                    self.weight[below[good]] * weights[order],
                    self.found[below[good]],
                    self.witness[:, below[good]],
                )
            )
        return _joined(parts)


def _joined(parts: list[_Branch]) -> _Branch:
    if len(parts) == 1:
        return parts[0]
    families = [part.family for part in parts]
    return _Branch(
        Family(
            *(
                np.concatenate([getattr(family, field) for family in families], axis=1)
                for field in ("inside", "common", "union", "only_one", "all_but_one")
            )
        ),
        np.concatenate([part.last for part in parts]),
        np.concatenate([part.size for part in parts]),
        np.concatenate([part.weight for part in parts]),
        np.concatenate([part.found for part in parts]),
        np.concatenate([part.witness for part in parts], axis=1),
    )


def _pop(stack: list[_Branch]) -> _Branch:
    """Take sets from the top until there are enough to be worth an operation."""
    taken: list[_Branch] = []
    size = 0
    while stack and size < _CHUNK:
        branch = stack.pop()
        if len(branch.family) > _CHUNK:
            stack.append(branch.take(slice(0, -_CHUNK)))
            branch = branch.take(slice(-_CHUNK, None))
        taken.append(branch)
        size += len(branch.family)
    return _joined(taken)


def _around(family: Family, queries: Bits) -> Flags:
    """Whether each query lies between the intersection and the union of each set, ``[query, column]``."""
    result = np.empty((len(queries), len(family)), dtype=np.bool_)
    for place, query in enumerate(queries[:, :, None]):
        wrong = (family.common & ~query) | (query & ~family.union)
        result[place] = np.bitwise_or.reduce(wrong, axis=0) == 0
    return result


def _draws(
    weights: FloatArray, size: int, draws: int, rng: np.random.Generator
) -> Iterator[tuple[range, Flags]]:
    """Sets of one size, in proportion to the product of their weights, a chunk at a time."""
    count = weights.size
    later = np.zeros((count + 1, size + 1))  # later[i, k]: the weight of all sets of k of the orders from i on
    later[count, 0] = 1.0
    for order in range(count - 1, -1, -1):
        later[order] = later[order + 1]
        later[order, 1:] += weights[order] * later[order + 1, :-1]
    for first in range(0, draws, _CHUNK):
        part = range(first, min(first + _CHUNK, draws))
        inside = np.zeros((count, len(part)), dtype=np.bool_)
        missing = np.full(len(part), size)
        for order in range(count):
            fewer = np.where(missing > 0, later[order + 1, missing - 1], 0.0)
            inside[order] = rng.random(len(part)) * later[order, missing] < weights[order] * fewer
            missing -= inside[order]
        yield part, inside


def _count(sizes: NDArray[np.intp], counts: dict[int, int]) -> None:
    for size, number in zip(*np.unique(sizes, return_counts=True), strict=True):
        counts[int(size)] = counts.get(int(size), 0) + int(number)
