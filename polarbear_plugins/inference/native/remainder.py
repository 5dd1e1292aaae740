"""Error of the quadratic expansion of the Plackett-Luce log-likelihood: the log-weight of a draw around the mode.

With ``e = exp(step) - 1`` and ``u`` the mean of ``e`` over a set, weighted by the shares of its members, the logarithm
of the rating of the set grows by ``log(1 + u)``.  A timepoint can have a hundred thousand sets.  Then its steps are
short, and the sums over all sets of ``u``, ``u^2`` and ``u^3`` are nearly sufficient; these are polynomials of ``e``
whose coefficients take one pass over the sets, whatever the number of draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import Float32Array, FloatArray
from polarbear_plugins.plackett_luce.likelihood import MANY_SETS, Block, Likelihood, set_shares

# Single precision suffices for steps up to this, where exp does not overflow, and for this many choices: logarithms of
# numbers near 1 err by less than 1e-7, and their sums by at most 0.01, which is negligible in the weight of a draw.
_LONGEST_STEP = 80.0
_MOST_COUNTS = 1e5
_LONGEST_DOUBLE_STEP = 690.0
# The same bound for the error of the cubic expansion: draws that could exceed it are weighted set by set.
_MOST_LEFT = 0.01
# Numbers processed at a time: few enough to stay in the cache, enough to hide the cost of a call.
_CHUNK = 1 << 16
_MOST_SHARES = 1 << 20
# With very many sets: draws weighted at a time, and the number of draws from which the sums of cubes pay off.
_MANY_DRAWS = 64
_WORTH_CUBES = 256
_SMALL_CHANGE = 0.5


class Remainder:
    """Error of the second-order expansion around ``x`` of the log-likelihood of utilities ``x + step``.

    Ratings of sets are divided by those at ``x``.  Their logarithms are then near 0, and single precision suffices
    unless steps are long, which takes a third of the time.

    Parameters
    ----------
    likelihood
        Likelihood to expand.
    x, gradient, information
        Centre of the expansion and derivatives there: ``[timepoint, algorithm]``, and for the information
        ``[timepoint, algorithm, algorithm]``.
    """

    def __init__(self, likelihood: Likelihood, x: FloatArray, gradient: FloatArray, information: FloatArray) -> None:
        self._likelihood, self._x, self._gradient, self._information = likelihood, x, gradient, information
        totals = [block.counts.sum(axis=1) for block in likelihood.blocks]
        most_sets = max(block.counts.shape[1] for block in likelihood.blocks)
        self._many = most_sets > MANY_SETS and not likelihood.ties
        self._large = float(np.linalg.norm(np.concatenate(totals))) > _MOST_COUNTS and not self._many
        # Shares of many sets among many algorithms are recomputed each time, because they would fill the memory.
        self._few = sum(block.counts.size for block in likelihood.blocks) * x.shape[1] <= _MOST_SHARES
        self._shares_of_blocks: dict[type[np.floating[Any]], list[NDArray[Any]]] = {}
        # The gradient is that of the wins minus that of the sets; the wins are linear.
        self._pulls = likelihood.wins - gradient
        self._single = self._pulls.astype(np.float32), information.astype(np.float32)
        self.most_draws = 512 if self._many else max(1, min(512, _CHUNK // max(1, most_sets)))

    def value(self, step: Float32Array) -> FloatArray:
        """Remainder for each ``step[draw, timepoint, algorithm]``; fastest for up to ``most_draws`` draws."""
        if self._is_beyond_shares(step):
            return self._exact_value(step)
        here, pulls, information = self._precise(step)
        if self._many and here is step:
            return self._value_of_many(step)
        value = np.einsum("ztn,ztn->z", here, pulls + 0.5 * _times(here, information))
        for _, _, counts, _, sums in self._groups(here):
            value -= (np.log(sums, out=sums) @ counts[:, :, None]).sum(axis=0)[:, 0]
        return value.astype(np.float64)

    def gradient(self, step: Float32Array) -> Float32Array:
        """Gradient of the remainder, of the same shape as the steps."""
        if self._is_beyond_shares(step):
            exact = self._likelihood.gradient(self._x + step) - self._gradient
            return (exact + _times(step, self._information)).astype(np.float32)
        here, pulls, information = self._precise(step)
        gradient = pulls + _times(here, information)
        for timepoints, shares, counts, theta, sums in self._groups(here):
            won = np.divide(counts[:, None, :], sums, out=sums) @ shares.transpose(0, 2, 1)
            gradient[:, timepoints] -= (theta * won).transpose(1, 0, 2)
        return gradient.astype(np.float32, copy=False)

    def _is_beyond_shares(self, step: Float32Array) -> bool:
        """Whether the steps must be computed anew from the likelihood."""
        return bool(self._likelihood.ties) or float(np.abs(step).max(initial=0.0)) >= _LONGEST_DOUBLE_STEP

    def _precise(self, step: Float32Array) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Steps, pulls and information in the precision that these steps need."""
        if self._large or float(np.abs(step).max(initial=0.0)) >= _LONGEST_STEP:
            return step.astype(np.float64), self._pulls, self._information
        return step, *self._single

    def _exact_value(self, step: Float32Array) -> FloatArray:
        change = self._likelihood.value(self._x + step) - self._likelihood.value(self._x)
        slope = self._gradient - 0.5 * _times(step, self._information)
        return change - np.einsum("ztn,ztn->z", step, slope)

    def _value_of_many(self, step: Float32Array) -> FloatArray:
        """Remainder for very many sets: by sums of powers, or set by set where these are not accurate enough."""
        long = step.astype(np.float64)
        change = np.expm1(long)
        pulls = self._pulls
        value: FloatArray = np.einsum("ztn,ztn->z", long, 0.5 * _times(long, self._information))
        far = np.ones(len(step), dtype=bool)
        if len(step) >= _WORTH_CUBES:
            sums, left = self._sums_of_powers(change, pulls)
            far = ~(left <= _MOST_LEFT)
            # The sum of u is linear in the change: its difference from that of the step is of second order.
            value[~far] += np.einsum("ztn,tn->z", (long - change)[~far], pulls) - sums[~far]
        if far.any():
            value[far] += np.einsum("ztn,tn->z", long[far], pulls) - self._set_by_set(change[far])
        return value

    def _sums_of_powers(self, change: FloatArray, pulls: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sum of ``-u^2 / 2 + u^3 / 3`` over the sets, and a bound on its difference from ``log(1 + u) - u``.

        As ``u`` is a weighted mean, ``u^4`` is at most the square of the mean of ``e^2``, and the sum of those squares
        is known.
        """
        squares = -self._information.copy()
        squares[:, range(pulls.shape[1]), range(pulls.shape[1])] += pulls
        cubic = np.zeros(len(change))
        for t, cubes in enumerate(self._cubes):
            here = change[:, t]
            planes = (here @ cubes.reshape(len(cubes), -1)).reshape(len(here), *cubes.shape[1:])
            cubic += np.einsum("zi,zij,zj->z", here, planes, here, optimize=["einsum_path", (0, 1), (0, 1)])
        quadratic = np.einsum("ztn,ztn->z", change, _times(change, squares))
        fourth = np.einsum("ztn,ztn->z", change**2, _times(change**2, squares))
        longest = np.abs(change).max(axis=(1, 2))
        left = np.full(len(change), np.inf)
        np.divide(fourth / 4, 1 - longest, out=left, where=longest < 1)
        return cubic / 3 - quadratic / 2, left

    @cached_property
    def _cubes(self) -> FloatArray:
        """``[timepoint, i, j, k]``: sum over sets of the product of three shares, for ``i <= j, k`` only.

        Products in another order are equal; their number is a factor of these.
        """
        timepoints, n = self._x.shape
        cubes = np.zeros((timepoints, n, n, n))
        for block, part, first, weights in self._shares_in_parts():
            shares = self._shares(block, slice(first, first + 1), part, np.float64)[0]
            for i in range(n):
                cubes[block.timepoints.start + first, i, i:, i:] += (shares[i:] * (shares[i] * weights)) @ shares[i:].T
        for i in range(n):
            cubes[:, i, i + 1 :, i + 1 :] *= 3
            cubes[:, i, i, i + 1 :] *= 1.5
            cubes[:, i, i + 1 :, i] *= 1.5
        return cubes

    def _set_by_set(self, change: FloatArray) -> FloatArray:
        """Sum of ``log(1 + u)`` over the sets."""
        total = np.zeros(len(change))
        # Small numbers are rounded less than those near 1, whose rounding errors would be the same in all sets; but
        # 1 plus a number near -1 must not be computed that way.
        later = np.where(np.abs(change).max(axis=(1, 2)) < _SMALL_CHANGE, 1.0, 0.0)
        rounded = (change + (1 - later)[:, None, None]).astype(np.float32)
        added = later[:, None].astype(np.float32)
        for block, part, first, weights in self._shares_in_parts():
            shares, counts = self._shares(block, slice(first, first + 1), part)[0], weights.astype(np.float32)
            here = np.ascontiguousarray(rounded[:, block.timepoints.start + first])
            for start in range(0, len(change), _MANY_DRAWS):
                means = here[start : start + _MANY_DRAWS] @ shares
                means += added[start : start + _MANY_DRAWS]
                total[start : start + _MANY_DRAWS] += np.log(means, out=means) @ counts
        return total

    def _shares_in_parts(self) -> Iterator[tuple[Block, slice, int, FloatArray]]:
        """Yield each timepoint of each block, some sets at a time, with their counts there."""
        for block in self._likelihood.blocks:
            for first in range(len(block.counts)):
                for part in block.parts:
                    yield block, part, first, block.counts[first, part]

    def _groups(
        self, step: NDArray[Any]
    ) -> Iterator[tuple[slice, NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]]:
        """Yield some timepoints at a time, with shares and counts of sets, ratings of algorithms, ratings of sets."""
        dtype = step.dtype.type
        if self._few and dtype not in self._shares_of_blocks:
            every = slice(None)
            self._shares_of_blocks[dtype] = [self._shares(b, every, every, dtype) for b in self._likelihood.blocks]
        for place, block in enumerate(self._likelihood.blocks):
            size = max(1, _CHUNK // max(1, len(step) * block.counts.shape[1]))
            for first in range(0, len(block.counts), size):
                inside = slice(first, min(first + size, len(block.counts)))
                here = slice(block.timepoints.start + inside.start, block.timepoints.start + inside.stop)
                theta = np.exp(step[:, here].transpose(1, 0, 2))
                for part in block.parts:
                    shares = (
                        self._shares_of_blocks[dtype][place][inside, :, part]
                        if self._few
                        else self._shares(block, inside, part, dtype)
                    )
                    yield here, shares, block.counts[inside, part].astype(dtype), theta, theta @ shares

    def _shares(
        self, block: Block, inside: slice, part: slice = slice(None), dtype: type[np.floating[Any]] = np.float32
    ) -> NDArray[Any]:
        """Share ``[timepoint, algorithm, set]`` of each algorithm in the rating of some sets of a block."""
        shares = set_shares(self._x[block.timepoints][inside], block.members_of(part))
        return shares.transpose(0, 2, 1).astype(dtype, copy=False)


def _times(step: NDArray[Any], matrices: NDArray[Any]) -> NDArray[Any]:
    """Product of ``step[draw, timepoint, algorithm]`` with a matrix for each timepoint."""
    return (step.transpose(1, 0, 2) @ matrices).transpose(1, 0, 2)
