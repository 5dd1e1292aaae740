"""Sums over the union-free generic sets of partial orders: over all, or over a sample of the larger sets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.partial_orders.bits import Flags, Places, Words, any_bit
from polarbear_plugins.partial_orders.lattice import MOST_ORDERS, Lattice
from polarbear_plugins.partial_orders.levels import which_are_generic
from polarbear_plugins.partial_orders.witness import Columns, Family, PackedOrders, find_witnesses, has_own_marks, join
from polarbear_plugins.partial_orders.work import Work

_CHUNK = 16384  # sets drawn at once
_MAX_GROWN = 400_000  # sets that grow from others at once, to bound memory
_BATCH = 4096  # columns that fit in the cache
_MIN_DRAWS = 64  # for each size, however small its weight
_POPULATION = 500  # sets used to estimate the number of candidates
_RARE = 64  # if one of this many sets is asked for, going through all of them is not worth it


@dataclass(slots=True)
class SetSums:
    """Sums of the weights of union-free generic sets.

    Attributes
    ----------
    total
        Sum over all of them.
    around
        Sum over those around each query.
    candidates, generic
        Number of sets tested, and of union-free generic ones, by size.
    errors
        Standard error of ``around / total``; 0 if all sets were tested.
    """

    total: float
    around: FloatArray
    candidates: dict[int, int]
    generic: dict[int, int]
    errors: FloatArray


def weight_by_size(weights: FloatArray) -> FloatArray:
    """Sum of the products of the weights over all sets of each size, from 0 on.

    >>> weight_by_size(np.array([0.5, 0.25, 0.25]))
    array([1.     , 1.     , 0.3125 , 0.03125])
    """
    sums = np.zeros(weights.size + 1)
    sums[0] = 1.0
    for weight in weights:
        sums[1:] += weight * sums[:-1]
    return sums


def tail_weights(weights: FloatArray) -> FloatArray:
    """Sum of the weights of all sets with at least k members, for each k from 0 to one more than the number of orders.

    Leaving out the sets with k or more members changes no depth by more than ``tail_weights[k]`` divided by the weight
    of the remaining union-free generic sets.
    """
    return np.append(np.cumsum(weight_by_size(weights)[::-1])[::-1], 0.0)


def sum_over_sets(
    orders: PackedOrders, weights: FloatArray, queries: PackedOrders, largest: int, work: Work | None = None
) -> SetSums:
    """Test every set of up to ``largest`` members that may be union-free generic.

    Raises
    ------
    TooMuchWorkError
        It would take longer than the limit of ``work``.
    """
    work, count = work or Work(), len(orders)
    if count <= MOST_ORDERS and _RARE * sum(math.comb(count, size) for size in range(largest + 1)) >= 2**count:
        return _sum_over_lattice(orders, weights, queries, largest, work)
    return _sum_over_branches(orders, weights, queries, largest, work)


def _sum_over_lattice(
    orders: PackedOrders, weights: FloatArray, queries: PackedOrders, largest: int, work: Work
) -> SetSums:
    lattice = Lattice(orders.relations)
    candidates = lattice.candidates(largest)
    doubtful = lattice.leave_out_simple(candidates, np.random.default_rng(0))
    none = doubtful[~which_are_generic(doubtful, orders, work)]
    generic = np.setdiff1d(candidates, none, assume_unique=True)
    total, around = lattice.sums(generic, weights, queries.relations)
    tested: dict[int, int] = {}
    found: dict[int, int] = {}
    _count(np.bitwise_count(candidates), tested)
    _count(np.bitwise_count(generic), found)
    return SetSums(total, around, tested, found, np.zeros(len(queries)))


def _sum_over_branches(
    orders: PackedOrders, weights: FloatArray, queries: PackedOrders, largest: int, work: Work
) -> SetSums:
    """Test sets that grow from others.

    Sets grow by members of higher number, as long as each member has its own mark; that holds for all subsets of a
    union-free generic set, so none is missed.  For the same reason, only members that could be added to a set before
    its last member can be added after it.  The sets on top of the stack grow first, which keeps memory small.
    """
    expected = estimate_candidates(orders, largest, np.random.default_rng(0))
    work.start(sum(size * number for size, number in expected.items()))
    sums = SetSums(0.0, np.zeros(len(queries)), {}, {}, np.zeros(len(queries)))
    stack = [_Branch.singles(orders, weights)]
    while stack:
        grown = _pop(stack, min(_CHUNK, 1 + _MAX_GROWN // len(orders))).grow(orders, weights)
        family, growth = grown.family, grown.growth
        if not len(family):
            continue
        start = growth.witness, growth.transpose
        growth.found, (growth.witness, growth.transpose) = find_witnesses(family, orders, start, growth.found)
        generic = np.flatnonzero(growth.found)
        _count(family.size, sums.candidates)
        _count(family.size[generic], sums.generic)
        weight = growth.weight[generic]
        sums.total += float(weight.sum())
        sums.around += _surrounds(family.take(generic), queries) @ weight
        stack.append(grown.take(np.flatnonzero((family.size < largest) & growth.further.any(axis=0))))
        work.advance(float(family.size.sum()))
    return sums


def sample_sums(
    orders: PackedOrders,
    weights: FloatArray,
    queries: PackedOrders,
    largest: int,
    samples: int,
    rng: np.random.Generator,
) -> SetSums:
    """Test all small sets, and a sample of the larger ones up to ``largest`` members.

    Small sizes are complete while they have at most ``samples`` sets in total.  The ``samples`` sets of larger sizes
    are allocated in proportion to the weight of all sets of a size, and drawn in proportion to their weights.
    """
    count, complete, sets = len(orders), 2, math.comb(len(orders), 2)
    while complete < largest and sets + math.comb(count, complete + 1) <= samples:
        complete += 1
        sets += math.comb(count, complete)
    sums = sum_over_sets(orders, weights, queries, complete)
    by_size = weight_by_size(weights)
    sizes = range(complete + 1, largest + 1)
    sampled = by_size[complete + 1 : largest + 1].sum()
    strata = []
    for size in sizes:
        draws = max(_MIN_DRAWS, round(samples * by_size[size] / sampled))
        hits = np.zeros(draws, dtype=np.bool_)
        around = np.zeros((len(queries), draws), dtype=np.bool_)
        for part, members in _draw_sets(weights, size, draws, rng):
            family = Family.of(members, orders)
            likely = np.flatnonzero(has_own_marks(family, orders))
            family = family.take(likely)
            found, _ = find_witnesses(
                family, orders, (family.common, family.transpose), np.zeros(len(family), dtype=np.bool_)
            )
            hit = likely[found]
            hits[part.start + hit] = True
            around[:, part.start + hit] = _surrounds(family.take(np.flatnonzero(found)), queries)
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


def estimate_candidates(orders: PackedOrders, largest: int, rng: np.random.Generator) -> dict[int, float]:
    """Estimated number of sets of each size that :func:`sum_over_sets` would test.

    A uniform sample of the candidates of one size grows by a member; the candidates among the results are a uniform
    sample of the next size, because every subset of a candidate is a candidate.
    """
    count, compatible = len(orders), compatible_orders(orders)
    members = np.arange(count, dtype=np.uint16)[None]
    expected, sets = {}, float(count)
    for size in range(2, largest + 1):
        which, new = np.nonzero(np.logical_and.reduce(compatible[members], axis=0))
        family = Family.of(members, orders).take(which).with_member(new.astype(np.uint16), orders)
        good = np.flatnonzero(has_own_marks(family, orders))
        if not good.size:
            break
        sets *= good.size / members.shape[1] / size
        expected[size] = sets
        members = family.members[:, rng.permutation(good)[:_POPULATION]]
    return expected


@dataclass(slots=True)
class _Growth(Columns):
    """State of sets from which larger ones grow, besides the family."""

    further: Flags  # orders of higher number that may be added, ``[order, column]``
    weight: FloatArray
    found: Flags
    witness: Words
    transpose: Words


@dataclass(slots=True)
class _Branch:
    family: Family
    growth: _Growth

    @classmethod
    def singles(cls, orders: PackedOrders, weights: FloatArray) -> _Branch:
        count = len(orders)
        family = Family.of(np.arange(count, dtype=np.uint16)[None], orders)
        none = np.zeros(count, dtype=np.bool_)
        further = np.tril(compatible_orders(orders), -1)
        return cls(family, _Growth(further, weights, none, family.common, family.transpose))

    def take(self, columns: Places) -> _Branch:
        return _Branch(self.family.take(columns), self.growth.take(columns))

    def part(self, columns: slice) -> _Branch:
        return _Branch(self.family.part(columns), self.growth.part(columns))

    def grow(self, orders: PackedOrders, weights: FloatArray) -> _Branch:
        """All sets with one more member, of a higher number, in which each member has its own mark.

        ``found`` and ``witness`` are still those of the smaller set.
        """
        families, growths = [self.family.part(slice(0, 0))], [self.growth.part(slice(0, 0))]
        parents: list[Places] = []
        below, member = np.nonzero(self.growth.further.T)
        compatible = compatible_orders(orders)
        alive = np.zeros_like(self.growth.further)
        for first in range(0, below.size, _BATCH):
            which, new = below[first : first + _BATCH], member[first : first + _BATCH]
            family = self.family.take(which).with_member(new.astype(np.uint16), orders)
            good = np.flatnonzero(has_own_marks(family, orders))
            families.append(family.take(good))
            which, new = which[good], new[good]
            alive[new, which] = True
            parents.append(which)
            growth = self.growth.take(which)
            growth.weight *= weights[new]
            growth.further = np.tril(compatible, -1)[:, new]
            growths.append(growth)
        grown = _Branch(join(families), join(growths))
        grown.growth.further &= np.take(alive, np.concatenate([*parents, np.zeros(0, dtype=np.intp)]), axis=1)
        return grown


def compatible_orders(orders: PackedOrders) -> Flags:
    """Which orders may be together in a set: those that differ in two or more edges.

    Such a pair is always union-free generic.  Of two orders that differ in one edge, the one with the edge needs a
    witness with it, as its only mark in any set, and the other a witness without it.
    """
    differ = orders.words[:, :, None] ^ orders.words[:, None, :]
    return np.bitwise_count(differ).sum(axis=0, dtype=np.intp) > 1


def _pop(stack: list[_Branch], most: int) -> _Branch:
    """Take sets from the top until there are enough for an efficient operation."""
    taken: list[_Branch] = []
    size = 0
    while stack and size < most:
        branch = stack.pop()
        if len(branch.family) > most:
            stack.append(branch.part(slice(0, -most)))
            branch = branch.part(slice(-most, None))
        taken.append(branch)
        size += len(branch.family)
    return _Branch(join([branch.family for branch in taken]), join([branch.growth for branch in taken]))


def _surrounds(family: Family, queries: PackedOrders) -> Flags:
    """Whether each query lies between the intersection and the union of each set, ``[query, column]``."""
    result = np.empty((len(queries), len(family)), dtype=np.bool_)
    for place, query in enumerate(queries.words.T[:, :, None]):
        result[place] = ~any_bit((family.common & ~query) | (query & ~family.union))
    return result


def _draw_sets(
    weights: FloatArray, size: int, draws: int, rng: np.random.Generator
) -> Iterator[tuple[range, NDArray[np.uint16]]]:
    """Draw sets of one size in proportion to their weights: ``members[place, column]``, in chunks."""
    count = weights.size
    later = np.zeros((count + 1, size + 1))  # later[i, k]: the weight of all sets of k of the orders from i on
    later[count, 0] = 1.0
    for order in range(count - 1, -1, -1):
        later[order] = later[order + 1]
        later[order, 1:] += weights[order] * later[order + 1, :-1]
    for first in range(0, draws, _CHUNK):
        part = range(first, min(first + _CHUNK, draws))
        members = np.zeros((size, len(part)), dtype=np.uint16)
        missing = np.full(len(part), size)
        for order in range(count):
            fewer = np.where(missing > 0, later[order + 1, missing - 1], 0.0)
            chosen = np.flatnonzero(rng.random(len(part)) * later[order, missing] < weights[order] * fewer)
            members[size - missing[chosen], chosen] = order
            missing[chosen] -= 1
        yield part, members


def _count(sizes: NDArray[Any], counts: dict[int, int]) -> None:
    for size, number in zip(*np.unique(sizes, return_counts=True), strict=True):
        counts[int(size)] = counts.get(int(size), 0) + int(number)
