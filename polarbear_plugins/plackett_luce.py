"""The Plackett-Luce likelihood, from subset statistics.

The log-likelihood of a ranking is the sum of the utilities of its members minus the sum of log theta(S) over the sets S
that each place was chosen from.  With the counts of those sets (:mod:`polarbear_plugins.subset_statistics`) the cost of
a posterior hardly depends on the number of rankings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.ranks import RankArray
from polarbear_plugins.subset_statistics import Statistics
from polarbear_plugins.tie_blocks import tie_gradient, tie_hessian, tie_value
from polarbear_plugins.validation import Float32Array, FloatArray

__all__ = ["Likelihood", "Remainder", "helmert", "scores"]

# Utilities further below the best count as this far below in sums, which then never vanish.
_LOWEST = -300.0
_MOST_PAIRS = 1 << 18
# Single precision is good for steps up to this, which exp can take, and for so many choices: logarithms of numbers near
# 1 err by less than 1e-7, and no sum of them by more than 0.01, which is nothing to the weight of a draw.
_LONGEST_STEP = 80.0
_MOST_COUNTS = 1e5
# Numbers worked on at a time: few enough to stay in the cache, enough to hide the cost of a call.
_CHUNK = 1 << 16
_MOST_SHARES = 1 << 20


@dataclass(frozen=True)
class _Block:
    """Timepoints that share a list of sets."""

    timepoints: slice
    members: FloatArray
    counts: FloatArray

    @cached_property
    def pairs(self) -> FloatArray | None:
        """``[set, algorithm * algorithm]``: who are in it together; not where that would be large."""
        count, n = self.members.shape
        if count * n * n > _MOST_PAIRS:
            return None
        return (self.members[:, :, None] * self.members[:, None, :]).reshape(count, n * n)


class Likelihood:
    """The log-likelihood of utilities, its gradient and its curvature, over all timepoints at once.

    Parameters
    ----------
    statistics
        What was observed.

    Examples
    --------
    Two algorithms, one win: the probability of it is 1/2 at equal utilities.

    >>> from polarbear_plugins.subset_statistics import statistics_of
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
        value: FloatArray = self.values(x).sum(axis=-1)
        return value

    def values(self, x: FloatArray) -> FloatArray:
        """Log-likelihood of each timepoint at ``x[..., timepoint, algorithm]``."""
        shifted = x - x.max(axis=-1, keepdims=True)
        theta = np.exp(np.maximum(shifted, _LOWEST))
        values: FloatArray = np.einsum("...tn,tn->...t", shifted, self.wins)
        for block in self.blocks:
            sums = _set_sums(theta, block)
            values[..., block.timepoints] -= np.einsum("...ts,ts->...t", np.log(sums, out=sums), block.counts)
        for tie in self.ties:
            for t in np.flatnonzero(tie.counts):
                values[..., t] -= tie.counts[t] * tie_value(shifted[..., t, :], tie.block, tie.rest)
        return values

    def gradient(self, x: FloatArray) -> FloatArray:
        """Gradient at ``x[..., timepoint, algorithm]``, of the same shape."""
        shifted = x - x.max(axis=-1, keepdims=True)
        theta = np.exp(np.maximum(shifted, _LOWEST))
        gradient: FloatArray = np.empty_like(theta)
        for block in self.blocks:
            sums = _set_sums(theta, block)
            np.divide(block.counts, sums, out=sums)
            part = theta[..., block.timepoints, :]
            pulls = sums.reshape(part[..., 0].size, len(block.members)) @ block.members
            gradient[..., block.timepoints, :] = -part * pulls.reshape(part.shape)
        gradient += self.wins
        for tie in self.ties:
            for t in np.flatnonzero(tie.counts):
                gradient[..., t, :] -= tie.counts[t] * tie_gradient(shifted[..., t, :], tie.block, tie.rest)
        return gradient

    def information(self, x: FloatArray) -> FloatArray:
        """Negative second derivative at ``x[timepoint, algorithm]``, ``[timepoint, algorithm, algorithm]``."""
        shifted = x - x.max(axis=-1, keepdims=True)
        theta = np.exp(np.maximum(shifted, _LOWEST))
        timepoints, n = x.shape
        information = np.empty((timepoints, n, n))
        for block in self.blocks:
            part = theta[block.timepoints]
            sums = part @ block.members.T
            first = block.counts / sums
            second = first / sums
            here = -_weighted_squares(block, second) * part[:, :, None] * part[:, None, :]
            here[:, range(n), range(n)] += part * (first @ block.members)
            information[block.timepoints] = here
        for tie in self.ties:
            for t in np.flatnonzero(tie.counts):
                information[t] += tie.counts[t] * tie_hessian(shifted[t], tie.block, tie.rest)
        return information


class Remainder:
    """What is left of the log-likelihood of utilities ``x + step`` after its expansion of second order around ``x``.

    Ratings of sets are divided by those at ``x``.  Their logarithms are then near 0, and single precision suffices,
    in which they take a third of the time.

    Parameters
    ----------
    likelihood
        What to expand.
    x, gradient, information
        Where, and its derivatives there: of the shape ``[timepoint, algorithm]``, information once more.
    """

    def __init__(self, likelihood: Likelihood, x: FloatArray, gradient: FloatArray, information: FloatArray) -> None:
        self._likelihood, self._x, self._gradient, self._information = likelihood, x, gradient, information
        totals = [block.counts.sum(axis=1) for block in likelihood.blocks]
        self._exact = bool(likelihood.ties) or float(np.linalg.norm(np.concatenate(totals))) > _MOST_COUNTS
        self._theta = np.exp(np.maximum(x - x.max(axis=-1, keepdims=True), _LOWEST))
        # Shares of many sets among many algorithms are computed again each time, or they would fill the memory.
        few = sum(block.counts.size for block in likelihood.blocks) * x.shape[1] <= _MOST_SHARES
        self._blocks = [
            (block, block.counts.astype(np.float32), self._shares(block, slice(None)) if few else None)
            for block in likelihood.blocks
        ]
        # The gradient is that of the wins minus that of the sets, and the wins are linear.
        self._pulls = (likelihood.wins - gradient).astype(np.float32)
        self._single_information = information.astype(np.float32)
        most_sets = max(block.counts.shape[1] for block in likelihood.blocks)
        self.most_draws = max(1, min(512, _CHUNK // max(1, most_sets)))

    def value(self, step: Float32Array) -> FloatArray:
        """Remainder for each ``step[draw, timepoint, algorithm]``; quickest for up to ``most_draws`` of them."""
        if not self._single_suffices(step):
            change = self._likelihood.value(self._x + step) - self._likelihood.value(self._x)
            slope = self._gradient - 0.5 * _times(step, self._information)
            exact: FloatArray = change - np.einsum("ztn,ztn->z", step, slope)
            return exact
        value = np.einsum("ztn,ztn->z", step, self._pulls + 0.5 * _times(step, self._single_information))
        for _, _, counts, _, sums in self._groups(step):
            value -= (np.log(sums, out=sums) @ counts[:, :, None]).sum(axis=0)[:, 0]
        remainder: FloatArray = value.astype(np.float64)
        return remainder

    def gradient(self, step: Float32Array) -> Float32Array:
        """Gradient of the remainder, of the same shape as the steps."""
        if not self._single_suffices(step):
            exact = self._likelihood.gradient(self._x + step) - self._gradient
            gradient: Float32Array = (exact + _times(step, self._information)).astype(np.float32)
            return gradient
        gradient = self._pulls + _times(step, self._single_information)
        for timepoints, shares, counts, theta, sums in self._groups(step):
            theta *= np.divide(counts[:, None, :], sums, out=sums) @ shares.transpose(0, 2, 1)
            gradient[:, timepoints] -= theta.transpose(1, 0, 2)
        return gradient

    def _single_suffices(self, step: Float32Array) -> bool:
        return not self._exact and float(np.abs(step).max(initial=0.0)) < _LONGEST_STEP

    def _groups(
        self, step: Float32Array
    ) -> Iterator[tuple[slice, Float32Array, Float32Array, Float32Array, Float32Array]]:
        """For a few timepoints at a time: these, shares and counts of the sets, ratings of algorithms and of sets."""
        for block, counts, ready in self._blocks:
            size = max(1, _CHUNK // max(1, len(step) * counts.shape[1]))
            for first in range(0, len(counts), size):
                inside = slice(first, min(first + size, len(counts)))
                shares = self._shares(block, inside) if ready is None else ready[inside]
                here = slice(block.timepoints.start + inside.start, block.timepoints.start + inside.stop)
                theta = np.exp(step[:, here].transpose(1, 0, 2))
                yield here, shares, counts[inside], theta, theta @ shares

    def _shares(self, block: _Block, inside: slice) -> Float32Array:
        """Share of each algorithm in the rating of each set at some timepoints of a block."""
        part = self._theta[block.timepoints][inside]
        shares: Float32Array = (part[:, :, None] * block.members.T / (part @ block.members.T)[:, None]).astype(
            np.float32
        )
        return shares


def _times(step: NDArray[Any], matrices: NDArray[Any]) -> NDArray[Any]:
    """Product of ``step[draw, timepoint, algorithm]`` with a matrix for each timepoint."""
    product: NDArray[Any] = (step.transpose(1, 0, 2) @ matrices).transpose(1, 0, 2)
    return product


def _set_sums(theta: FloatArray, block: _Block) -> FloatArray:
    """Ratings of the sets of a block, ``[..., timepoint, set]``, by one matrix product."""
    part = theta[..., block.timepoints, :]
    sums = part.reshape(-1, part.shape[-1]) @ block.members.T
    return sums.reshape(*part.shape[:-1], len(block.members))


def _weighted_squares(block: _Block, weights: FloatArray) -> FloatArray:
    """Sum over sets of weight times the outer product of their members, ``[timepoint, algorithm, algorithm]``."""
    n = block.members.shape[1]
    if block.pairs is not None:
        return (weights @ block.pairs).reshape(len(weights), n, n)
    squares: FloatArray = np.stack([(block.members.T * row) @ block.members for row in weights])
    return squares


def _blocks(statistics: Statistics) -> list[_Block]:
    """Join neighbouring timepoints as long as their sets are mostly the same: fewer and larger products."""
    blocks: list[_Block] = []
    start = 0
    if statistics.timepoints == 1:
        [(members, counts)] = statistics.sets
        return [_Block(slice(0, 1), members, counts[None])]
    keys = [[row.tobytes() for row in members.astype(bool)] for members, _ in statistics.sets]
    while start < statistics.timepoints:
        union = dict.fromkeys(keys[start])
        stop, used = start + 1, len(union)
        while stop < statistics.timepoints:
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
        blocks.append(_Block(slice(start, stop), members, counts))
        start = stop
    return blocks


def scores(ranks: RankArray, x: FloatArray) -> FloatArray:
    """Gradient of the log-likelihood of every single ranking, ``[row, timepoint, algorithm]``.

    Parts of a tie are taken at their mean rating, which is exact without ties.
    """
    theta = np.exp(np.maximum(x - x.max(axis=-1, keepdims=True), _LOWEST))
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
    k = np.arange(1, n)
    above = np.arange(n)[:, None] < k
    matrix = np.where(above, 1.0, 0.0)
    matrix[k, k - 1] = -k
    scaled: FloatArray = matrix / np.sqrt(k * (k + 1.0))
    return scaled
