"""The Plackett-Luce likelihood, from subset statistics.

The log-likelihood of a ranking is the sum of the utilities of its members minus the sum of log theta(S) over the sets S
that each place was chosen from.  With the counts of those sets (:mod:`polarbear_plugins.plackett_luce.subsets`) the
cost of a posterior hardly depends on the number of rankings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray, RankArray
from polarbear_plugins.plackett_luce.subsets import Statistics
from polarbear_plugins.plackett_luce.ties import tie_gradient, tie_hessian, tie_value

# Ratings further than this below the best one would underflow when squared; sets are then summed in logarithms.
LOWEST = -300.0
_CHUNK = 1 << 18  # numbers processed at a time where sets are summed in logarithms
_MOST_PAIRS = 1 << 18
# More sets than this are kept as booleans and processed in parts of this size.  Up to 12 algorithms have fewer.
MANY_SETS = 1 << 12


@dataclass(frozen=True)
class Block:
    """Timepoints that share a list of sets; a timepoint with very many sets is a block of its own, in parts."""

    timepoints: slice
    members: NDArray[Any]
    counts: FloatArray

    @property
    def parts(self) -> list[slice]:
        """Slices of the list of sets."""
        return [slice(start, start + MANY_SETS) for start in range(0, max(1, len(self.members)), MANY_SETS)]

    def members_of(self, part: slice) -> FloatArray:
        """Members of the sets in a slice, as floats."""
        return self.members[part].astype(np.float64, copy=False)

    @cached_property
    def pairs(self) -> FloatArray | None:
        """``[set, algorithm * algorithm]``: which pairs are in it; ``None`` where that would be large."""
        count, n = self.members.shape
        if count * n * n > _MOST_PAIRS:
            return None
        return (self.members[:, :, None] * self.members[:, None, :]).reshape(count, n * n)


class Likelihood:
    """Log-likelihood of utilities, its gradient and its curvature, over all timepoints at once.

    Parameters
    ----------
    statistics
        What was observed.

    Examples
    --------
    Two algorithms, one win: its probability is 1/2 at equal utilities.

    >>> from polarbear_plugins.plackett_luce.subsets import statistics_of
    >>> likelihood = Likelihood(statistics_of(np.array([[[1, 2]]], dtype=np.int16), np.array([1.0])))
    >>> float(np.exp(likelihood.value(np.zeros((1, 2)))))
    0.5
    """

    def __init__(self, statistics: Statistics) -> None:
        self.wins = statistics.wins
        self.ties = statistics.ties
        self.blocks = _blocks(statistics)

    def value(self, x: FloatArray) -> FloatArray:
        """Log-likelihood at ``x[..., timepoint, algorithm]``, summed over the timepoints."""
        return self.values(x).sum(axis=-1)

    def values(self, x: FloatArray) -> FloatArray:
        """Log-likelihood of each timepoint at ``x[..., timepoint, algorithm]``."""
        shifted = x - x.max(axis=-1, keepdims=True)
        far, theta = _is_far(shifted), np.exp(np.maximum(shifted, LOWEST))
        values: FloatArray = np.einsum("...tn,tn->...t", shifted, self.wins)
        for block in self.blocks:
            for part in block.parts:
                members = block.members_of(part)
                if far:
                    logs = log_set_sums(shifted[..., block.timepoints, :], members)
                else:
                    sums = _set_sums(theta[..., block.timepoints, :], members)
                    logs = np.log(sums, out=sums)
                values[..., block.timepoints] -= np.einsum("...ts,ts->...t", logs, block.counts[:, part])
        for tie in self.ties:
            for t in np.flatnonzero(tie.counts):
                values[..., t] -= tie.counts[t] * tie_value(shifted[..., t, :], tie.block, tie.rest)
        return values

    def gradient(self, x: FloatArray) -> FloatArray:
        """Gradient at ``x[..., timepoint, algorithm]``, of the same shape."""
        shifted = x - x.max(axis=-1, keepdims=True)
        far, theta = _is_far(shifted), np.exp(np.maximum(shifted, LOWEST))
        gradient: FloatArray = np.empty_like(theta)
        for block in self.blocks:
            if far:
                gradient[..., block.timepoints, :] = -_expected_wins(shifted[..., block.timepoints, :], block)
                continue
            here = theta[..., block.timepoints, :]
            pulls = np.zeros((here[..., 0].size, here.shape[-1]))
            for part in block.parts:
                members = block.members_of(part)
                sums = _set_sums(here, members)
                np.divide(block.counts[:, part], sums, out=sums)
                pulls += sums.reshape(len(pulls), len(members)) @ members
            gradient[..., block.timepoints, :] = -here * pulls.reshape(here.shape)
        gradient += self.wins
        for tie in self.ties:
            for t in np.flatnonzero(tie.counts):
                gradient[..., t, :] -= tie.counts[t] * tie_gradient(shifted[..., t, :], tie.block, tie.rest)
        return gradient

    def information(self, x: FloatArray) -> FloatArray:
        """Negative second derivative at ``x[timepoint, algorithm]``, ``[timepoint, algorithm, algorithm]``."""
        return self.mean_information(x[None])

    def mean_information(self, x: FloatArray) -> FloatArray:
        """Information averaged over ``x[draw, timepoint, algorithm]``; that of large ties is taken at the mean."""
        shifted = x - x.max(axis=-1, keepdims=True)
        far, theta = _is_far(shifted), np.exp(np.maximum(shifted, LOWEST))
        _, timepoints, n = x.shape
        information = np.empty((timepoints, n, n))
        for block in self.blocks:
            if far:
                information[block.timepoints] = _information_of_choices(shifted[:, block.timepoints], block)
                continue
            here = theta[:, block.timepoints]
            squares, pulls = np.zeros((*here.shape, n)), np.zeros_like(here)
            for part in block.parts:
                members = block.members_of(part)
                sums = _set_sums(here, members)
                first = block.counts[:, part] / sums
                squares += _weighted_squares(block.pairs, members, first / sums)
                pulls += _set_sums(first, members.T)
            squares *= here[..., :, None] * here[..., None, :]
            information[block.timepoints] = -squares.mean(axis=0)
            information[block.timepoints, range(n), range(n)] += (here * pulls).mean(axis=0)
        for tie in self.ties:
            centre = shifted.mean(axis=0)
            for t in np.flatnonzero(tie.counts):
                information[t] += tie.counts[t] * tie_hessian(centre[t], tie.block, tie.rest)
        return information


def _set_sums(theta: FloatArray, members: FloatArray) -> FloatArray:
    """Sums ``[..., set]`` of ``theta[..., algorithm]`` over the members of sets, by one matrix product."""
    sums = theta.reshape(math.prod(theta.shape[:-1]), theta.shape[-1]) @ members.T
    return sums.reshape(*theta.shape[:-1], len(members))


def set_shares(x: FloatArray, members: FloatArray) -> FloatArray:
    """Share ``[..., set, algorithm]`` of each algorithm in the ratings of sets at ``x[..., algorithm]``."""
    shifted = x - x.max(axis=-1, keepdims=True)
    if _is_far(shifted):
        shares = [_softmax(inside) for inside in _members_only(x, members)]
        return np.concatenate(shares).reshape(*x.shape[:-1], *members.shape)
    theta = np.exp(shifted)
    return theta[..., None, :] * members / _set_sums(theta, members)[..., None]


def _softmax(x: FloatArray) -> FloatArray:
    return np.exp(x - _log_sum(x))


def _is_far(shifted: FloatArray) -> bool:
    return float(shifted.min(initial=0.0)) < LOWEST


def log_set_sums(x: FloatArray, members: FloatArray) -> FloatArray:
    """Logarithms of the ratings of sets, ``[..., set]``, however far apart the utilities ``x[..., algorithm]`` are."""
    # Algorithms are few: a reduction along the first axis is faster than one along a short last axis.
    columns = np.ascontiguousarray(x.reshape(-1, x.shape[-1]).T)
    largest = columns.max(axis=0)
    if float(np.max(largest - columns.min(axis=0), initial=0.0)) <= -LOWEST:
        logs = members @ np.exp(columns - largest)
        with np.errstate(divide="ignore"):  # of the empty set
            np.log(logs, out=logs)
        logs += largest
    else:
        logs = np.empty((len(members), columns.shape[1]))
        for inside, out in zip(members > 0, logs, strict=True):
            if not inside.any():  # the empty set has no rating
                out[:] = -np.inf
                continue
            chosen = columns[inside]
            largest = chosen.max(axis=0)
            np.log(np.exp(chosen - largest).sum(axis=0), out=out)
            out += largest
    return logs.T.reshape(*x.shape[:-1], len(members))


def _log_sum(x: FloatArray) -> FloatArray:
    largest = x.max(axis=-1, keepdims=True)
    return np.log(np.exp(x - largest).sum(axis=-1, keepdims=True)) + largest


def _members_only(x: FloatArray, members: FloatArray) -> Iterator[FloatArray]:
    """Yield utilities ``[row, set, algorithm]`` of the members of each set, some rows at a time."""
    rows, outside = x.reshape(-1, x.shape[-1]), np.where(members > 0, 0.0, -np.inf)
    size = max(1, _CHUNK // max(1, outside.size))
    for start in range(0, len(rows), size):
        yield rows[start : start + size, None, :] + outside


def _choices(x: FloatArray, block: Block) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Yield the first row, probabilities ``[row, set, algorithm]`` of choosing from sets, and the counts of these."""
    timepoints = len(block.counts)
    for part in block.parts:
        start = 0
        for inside in _members_only(x, block.members_of(part)):
            probabilities = _softmax(inside)
            timepoint = np.arange(start, start + len(inside)) % timepoints
            yield start, probabilities, block.counts[timepoint][:, part]
            start += len(inside)


def _expected_wins(x: FloatArray, block: Block) -> FloatArray:
    """How often each algorithm would be chosen, ``[..., timepoint, algorithm]``, for utilities however far apart."""
    wins = np.zeros((x[..., 0].size, x.shape[-1]))
    for start, probabilities, counts in _choices(x, block):
        wins[start : start + len(counts)] += np.einsum("rs,rsi->ri", counts, probabilities)
    return wins.reshape(x.shape)


def _information_of_choices(x: FloatArray, block: Block) -> FloatArray:
    """Information averaged over ``x[draw, timepoint, algorithm]``, for utilities however far apart."""
    draws, timepoints, n = x.shape
    information = np.zeros((draws * timepoints, n, n))
    for start, probabilities, counts in _choices(x, block):
        here = information[start : start + len(counts)]
        here -= np.einsum("rs,rsi,rsj->rij", counts, probabilities, probabilities, optimize=True)
        here[:, range(n), range(n)] += np.einsum("rs,rsi->ri", counts, probabilities)
    return information.reshape(draws, timepoints, n, n).mean(axis=0)


def _weighted_squares(pairs: FloatArray | None, members: FloatArray, weights: FloatArray) -> FloatArray:
    """Sum over sets of ``weights[..., set]`` times the outer product of members, ``[..., algorithm, algorithm]``."""
    n = members.shape[1]
    if pairs is not None:
        return _set_sums(weights, pairs.T).reshape(*weights.shape[:-1], n, n)
    rows = weights.reshape(-1, len(members))
    return np.stack([(members.T * row) @ members for row in rows]).reshape(*weights.shape[:-1], n, n)


def _blocks(statistics: Statistics) -> list[Block]:
    """Join neighbouring timepoints while their sets are mostly the same: fewer and larger products."""
    blocks: list[Block] = []
    start = 0
    if statistics.timepoints == 1:
        return [_single_block(0, *statistics.sets[0])]
    # Very many sets are not matched with those of the neighbours, which are as many and hardly the same.
    many = [counts.size > MANY_SETS for _, counts in statistics.sets]
    keys = [
        [] if large else [row.tobytes() for row in members.astype(bool)]
        for large, (members, _) in zip(many, statistics.sets, strict=True)
    ]
    while start < statistics.timepoints:
        if many[start]:
            blocks.append(_single_block(start, *statistics.sets[start]))
            start += 1
            continue
        union = dict.fromkeys(keys[start])
        stop, used = start + 1, len(union)
        while stop < statistics.timepoints and not many[stop]:
            more = union | dict.fromkeys(keys[stop])
            if len(more) * (stop + 1 - start) > 2 * (used + len(keys[stop])) + 64:
                break
            union, used, stop = more, used + len(keys[stop]), stop + 1
        position = {key: place for place, key in enumerate(union)}
        members = np.zeros((len(union), statistics.algorithms))
        counts = np.zeros((stop - start, len(union)))
        for t in range(start, stop):
            places = [position[key] for key in keys[t]]
            members[places] = statistics.sets[t][0]
            np.add.at(counts[t - start], places, statistics.sets[t][1])  # the prior may repeat a set
        blocks.append(Block(slice(start, stop), members, counts))
        start = stop
    return blocks


def _single_block(timepoint: int, members: NDArray[Any], counts: FloatArray) -> Block:
    few = counts.size <= MANY_SETS
    return Block(
        slice(timepoint, timepoint + 1), members.astype(np.float64, copy=False) if few else members, counts[None]
    )


def scores(ranks: RankArray, x: FloatArray) -> FloatArray:
    """Gradient of the log-likelihood of every single ranking, ``[row, timepoint, algorithm]``.

    The members of a tie count with their mean rating; without ties this is exact.
    """
    theta = np.exp(np.maximum(x - x.max(axis=-1, keepdims=True), LOWEST))
    gradient = np.zeros(ranks.shape)
    for place in range(1, ranks.shape[-1] + 1):
        block, rest = ranks == place, ranks > place
        size = np.count_nonzero(block, axis=-1)
        if not size.any():
            continue
        tied, worse = np.einsum("rta,ta->rt", block, theta), np.einsum("rta,ta->rt", rest, theta)
        for chosen in range(1, int(size.max()) + 1):
            share = np.where(size >= chosen, chosen / np.maximum(size, 1), 0.0)
            inverse = np.zeros_like(share)
            np.divide(1.0, worse + share * tied, out=inverse, where=share > 0)
            gradient -= (block * share[..., None] + rest) * inverse[..., None] * theta
        gradient += block
    return gradient


def helmert(n: int) -> FloatArray:
    """Matrix ``[n, n - 1]`` with orthonormal columns that each sum to zero.

    >>> helmert(2)
    array([[ 0.70710678],
           [-0.70710678]])
    """
    from scipy.linalg import helmert as helmert_rows

    return helmert_rows(n).T


def margin_of(epsilon: float) -> float:
    """Difference of utilities beyond which one algorithm beats the other with probability above ``1/2 + epsilon``.

    >>> margin_of(0.0)
    0.0
    """
    return math.log((0.5 + epsilon) / (0.5 - epsilon))
