"""Large ties averaged over their orders: value, gradient and Hessian in polynomial time, over plain arrays.

Algorithm ``j`` has utility ``x[j]`` and worth ``theta[j] = exp(x[j])``.  A tie of the ``k`` algorithms ``B`` above the
worse algorithms ``R`` adds ``sum(x[B]) - D(x)`` to the Plackett-Luce log-likelihood averaged over the ``k!`` orders of
``B``, with ``D(x)`` the sum over the nonempty subsets ``U`` of ``B`` of ``log(theta(U) + theta(R)) / C(k, |U|)``.
The ``2^k`` subsets of a small tie can be enumerated.  For a large one, two integrals replace them:

- ``log(y)`` is the integral of ``(exp(-s) - exp(-s y)) / s`` over ``s > 0``, which turns the logarithm of a sum into
  products of ``z[j] = exp(-s theta[j])``;
- the sum of ``z(U) / C(k, |U|)`` over all subsets, with ``z(U)`` the product and 1 for the empty one, is ``k + 1``
  times the integral of ``prod(1 - u + u z[j])`` over ``0 < u < 1``.

The first is done by the trapezoidal rule in ``v``, where ``s = exp(v - exp(-v))``: one grid, evenly accurate for all
magnitudes of worth.  The second is done by the Gauss-Legendre rule.  All terms of a derivative are positive, so that
hardly anything cancels and small entries are about as accurate as large ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError

# Steps of the trapezoidal rule.  Measured for y from 1 to exp(-60): at 0.32 errors of 2e-13 in log(y) and, relative, of
# 3e-12 in 1/y; at 0.28 of 1e-12 in 1/y^2.
_STEP, _HESSIAN_STEP = 0.32, 0.28
# The largest y being 1 and the smallest exp(-span), v runs from here, where s = 6e-14, to span + _END, where s y = 36.
_START, _END = -3.3, math.log(36.0)
# exp(-50) is nothing beside the 1 of the empty subset, and the product of a group of such factors does not underflow.
_NOTHING = 50.0
# exp(600) and exp(-600) neither overflow nor underflow.
_HUGE = 600.0
# Factors multiplied out into one polynomial in u, and numbers processed at a time: measured.
_GROUP, _CHUNK = 8, 1 << 15
# Steps in v taken at once: enough that little time goes into calls, few enough that s changes by at most exp(90).
_FEWEST_STEPS, _MOST_STEPS = 16, 256


def tie_value(x: FloatArray, block: ArrayLike, rest: ArrayLike) -> FloatArray:
    """``D(x)``: what the tie subtracts from the log-likelihood, averaged over its orders, after the tied utilities.

    Adding a constant ``c`` to all utilities adds ``k c``.  The error is about 1e-12 times ``k``.

    Parameters
    ----------
    x
        Utilities, of shape ``(..., n)``.  The value is ``nan`` where those of the block and the rest are not all
        finite.
    block
        Places of the ``k`` tied algorithms along the last axis of ``x``; at least one.
    rest
        Places of the worse algorithms; may be empty.  Algorithms in neither do not matter.

    Returns
    -------
    An array of shape ``x.shape[:-1]``.

    Examples
    --------
    Of two equal algorithms, one is chosen out of two and the other out of one:

    >>> tie_value(np.zeros(2), block=[0, 1], rest=[]).round(10) == np.log(2).round(10)
    np.True_
    >>> tie_value(np.zeros((2, 30)), block=np.arange(20), rest=np.arange(20, 29)).round(6)
    array([58.455211, 58.455211])
    """
    return _over_rows(x, block, rest, gradient=False)[0]


def tie_gradient(x: FloatArray, block: ArrayLike, rest: ArrayLike) -> FloatArray:
    """Gradient of :func:`tie_value`: how many of the ``k`` places each algorithm would be expected to win.

    It adds up to ``k``, and is 0 for algorithms in neither the block nor the rest.  The relative error of each entry is
    about 1e-11 at most.

    Parameters
    ----------
    x, block, rest
        As for :func:`tie_value`.

    Returns
    -------
    An array of the shape of ``x``.

    Examples
    --------
    >>> tie_gradient(np.zeros(4), block=[0, 1], rest=[2]).round(6)
    array([0.583333, 0.583333, 0.833333, 0.      ])
    """
    return _over_rows(x, block, rest, gradient=True)[1]


def tie_value_and_gradient(x: FloatArray, block: ArrayLike, rest: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """:func:`tie_value` and :func:`tie_gradient` at the cost of the gradient.

    Examples
    --------
    >>> value, gradient = tie_value_and_gradient(np.zeros(12), block=np.arange(12), rest=[])
    >>> value.round(6), gradient.sum().round(6)
    (np.float64(19.987214), np.float64(12.0))
    """
    return _over_rows(x, block, rest, gradient=True)


def tie_hessian(x: FloatArray, block: ArrayLike, rest: ArrayLike) -> FloatArray:
    """Hessian of :func:`tie_value`.

    No entry off the diagonal is positive and every row adds up to 0: it is positive semidefinite, and constants over
    the block and the rest are in its null space.  The relative error of each entry is about 1e-12; it can reach
    1e-9 for ``k`` of 100 in the smallest, those between two algorithms of a rest worth far less than the block.

    Parameters
    ----------
    x
        Utilities, of shape ``(n,)``.
    block, rest
        As for :func:`tie_value`.

    Returns
    -------
    An array of shape ``(n, n)``.

    Examples
    --------
    >>> tie_hessian(np.zeros(3), block=[0, 1], rest=[]).round(6)
    array([[ 0.25, -0.25,  0.  ],
           [-0.25,  0.25,  0.  ],
           [ 0.  ,  0.  ,  0.  ]])
    """
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 1:
        raise InvalidInputError(f"tie_hessian: x must be a vector, got an array of shape {x.shape}.")
    tied, worse = _places(block, rest, len(x))
    both = np.concatenate([tied, worse])
    couplings = np.zeros((len(x), len(x)))
    usable = np.isfinite(x[both]).all()
    couplings[np.ix_(both, both)] = _couplings(_Ties.of(x[None, tied], x[None, worse])) if usable else np.nan
    # log(theta(S)) has the Hessian diag(p) - p p', and p adds up to 1: a graph Laplacian with the couplings p p'.
    np.fill_diagonal(couplings, 0.0)
    return np.diag(couplings.sum(axis=1)) - couplings


@dataclass(frozen=True, slots=True)
class _Ties:
    """One tie in each row; worth is relative to that of the block and the rest together."""

    log_total: FloatArray  # what the shares are of
    log_worth: FloatArray  # of each in the block
    log_rest: FloatArray  # of the rest; -inf if there is none
    rest_shares: FloatArray  # of each in the rest, in the rest
    spans: FloatArray  # from the smallest nonempty subset with the rest to everything

    @classmethod
    def of(cls, block: FloatArray, rest: FloatArray) -> _Ties:
        total = _log_sum_exp(np.concatenate([block, rest], axis=1))
        rest_total = _log_sum_exp(rest)
        log_worth = block - total[:, None]
        log_rest = rest_total - total
        spans = -np.logaddexp(log_worth.min(axis=1), log_rest)
        return cls(total, log_worth, log_rest, np.exp(rest - rest_total[:, None]), spans)


def _log_sum_exp(values: FloatArray) -> FloatArray:
    if not values.shape[1]:
        return np.full(len(values), -np.inf)
    top = values.max(axis=1)
    return top + np.log(np.exp(values - top[:, None]).sum(axis=1))


def _places(block: ArrayLike, rest: ArrayLike, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    given = np.asarray(block), np.asarray(rest)
    if any(places.ndim != 1 or (places.size and places.dtype.kind not in "iu") for places in given):
        raise InvalidInputError("A tie: block and rest must be lists of places, which are whole numbers.")
    tied, worse = (places.astype(np.intp) for places in given)
    if not tied.size:
        raise InvalidInputError("A tie: the block must have at least one algorithm, got none.")
    both = np.concatenate([tied, worse])
    if both.min() < 0 or both.max() >= n:
        raise InvalidInputError(f"A tie: places must be from 0 to {n - 1}, got {both.min()} to {both.max()}.")
    counts = np.bincount(both)
    if counts.max() > 1:
        raise InvalidInputError(f"A tie: each place may occur once, got {counts.argmax()} {counts.max()} times.")
    return tied, worse


def _over_rows(x: FloatArray, block: ArrayLike, rest: ArrayLike, gradient: bool) -> tuple[FloatArray, FloatArray]:
    """Value and gradient of each row; ignore the gradient unless ``gradient`` is set."""
    x = np.asarray(x, dtype=np.float64)
    tied, worse = _places(block, rest, x.shape[-1])
    flat = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    usable = np.isfinite(flat[:, tied]).all(axis=1) & np.isfinite(flat[:, worse]).all(axis=1)
    values = np.full(len(flat), np.nan)
    gradients = np.zeros(flat.shape)
    gradients[np.ix_(~usable, np.concatenate([tied, worse]))] = np.nan

    rows = np.flatnonzero(usable)[:, None]
    steps = int(np.clip(_CHUNK // (len(tied) * max(1, len(rows))), _FEWEST_STEPS, _MOST_STEPS))
    chunk = max(1, _CHUNK // (len(tied) * steps))
    if len(rows) > chunk:  # a chunk takes as many steps as its largest span needs
        rows = rows[np.argsort(_Ties.of(flat[rows, tied], flat[rows, worse]).spans)]
    groups, size = _groups(len(tied))
    # Allocated once: fresh pages for every chunk took as long as the arithmetic.
    scratch = np.empty((size + 1) * (size + 2) // 2 * groups * steps * min(chunk, len(rows)))
    for start in range(0, len(rows), chunk):
        part = rows[start : start + chunk]
        ties = _Ties.of(flat[part, tied], flat[part, worse])
        values[part[:, 0]], by_block, by_rest = _integrals(ties, steps, gradient, scratch)
        if gradient:
            gradients[part, tied] = by_block
            gradients[part, worse] = by_rest[:, None] * ties.rest_shares
    return values.reshape(x.shape[:-1])[()], gradients.reshape(x.shape)


def _groups(k: int) -> tuple[int, int]:
    """Number of groups of the factors of a block, and the size of each."""
    groups = math.ceil(k / _GROUP)
    return groups, math.ceil(k / groups)


def _integrals(
    ties: _Ties, steps: int, gradient: bool, scratch: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Values and, with ``gradient``, derivatives by the utilities of the block and by the log worth of the rest."""
    rows, k = ties.log_worth.shape
    groups, size = _groups(k)
    # Padded with algorithms of worth 0, whose factors are 1.  The axes: within a group, groups, steps, rows.
    filled = np.full((groups * size, rows), -np.inf)
    filled[:k] = ties.log_worth.T
    log_worth = filled.reshape(groups, size, 1, rows).swapaxes(0, 1)
    values = k * ties.log_total
    by_block = np.zeros((size, groups, rows))
    by_rest = np.zeros(rows)
    for log_s, weights in _trapezoid(ties.spans, _STEP, steps):
        exponents = _scaled(log_s, log_worth, _NOTHING)
        rest = _scaled(log_s, ties.log_rest, _HUGE)
        z = np.exp(-exponents)
        sums = _symmetric_sums(z.reshape(size, -1), scratch)
        by_group = (
            sums[-1].reshape(size + 1, groups, -1).swapaxes(0, 1)
        )  # too small for BLAS to start threads, which cost more
        nodes = _enough_nodes(k, float(log_s[-1, 0]))
        _, u_weights, basis = _legendre(nodes, size)
        factors = basis @ by_group
        products = factors.prod(axis=0)
        products *= (k + 1) * u_weights
        subsets = products.sum(axis=0).reshape(rest.shape) - 1.0  # all but the empty one
        everything = _scaled(log_s, np.zeros(1), _HUGE)
        rest_weights = weights * np.exp(-rest)
        values += (weights * (k * np.exp(-everything)) - rest_weights * subsets).sum(axis=0)
        if gradient:
            by_rest += (rest_weights * rest * subsets).sum(axis=0)
            np.divide(products, factors, out=factors)  # of the other groups
            np.matmul(basis.T, factors, out=by_group)
            slopes = _slopes(sums, z.reshape(size, -1))
            exponents *= z
            exponents *= slopes.reshape(z.shape)
            by_block += np.einsum("igsr,sr->igr", exponents, rest_weights)
    return values, by_block.swapaxes(0, 1).reshape(groups * size, rows)[:k].T, by_rest


def _couplings(tie: _Ties) -> FloatArray:
    """Sum of ``p p' / C(k, |U|)`` over the subsets, ``p`` being the shares in ``U`` and the rest; not on the diagonal.

    For a single row; first come the algorithms of the block, then those of the rest.
    """
    k = tie.log_worth.shape[1]
    within, across, in_rest = np.zeros((k, k)), np.zeros(k), 0.0
    for log_s, weights in _trapezoid(tie.spans, _HESSIAN_STEP, min(_MOST_STEPS, max(1, _CHUNK // k**2))):
        u, u_weights, _ = _legendre(_enough_nodes(k, float(log_s[-1, 0])), 1)
        exponents = _scaled(log_s, tie.log_worth, _HUGE)
        rest = _scaled(log_s, tie.log_rest, _HUGE)
        z = np.exp(-exponents)
        factors = (1.0 - u) + u * z[:, None]  # the axes: steps, nodes, algorithms
        products = (k + 1) * u_weights * factors.prod(axis=2, keepdims=True)
        slopes = u / factors * (exponents * z)[:, None]
        rest_weights = weights * np.exp(-rest)
        weighted = slopes * (products * rest_weights[:, None])
        within += (slopes.swapaxes(1, 2) @ weighted).sum(axis=0)  # step by step: again too small for threads
        across += (weighted.sum(axis=1) * rest).sum(axis=0)
        in_rest += float((rest_weights * rest**2 * (products.sum(axis=1) - 1.0)).sum())
    shares = tie.rest_shares[0]
    beside = np.outer(across, shares)
    return np.block([[(within + within.T) / 2, beside], [beside.T, in_rest * np.outer(shares, shares)]])


def _trapezoid(spans: FloatArray, step: float, steps: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield columns of ``log(s)``, and their weights for each row in an integral over ``log(s)``.

    Each row ends at its own span, beyond which there are only rounding errors.
    """
    ends = _END + spans
    count = math.ceil((ends.max() - _START) / step) + 1
    for start in range(0, count, steps):
        v = _START + step * np.arange(start, min(start + steps, count))[:, None]
        yield v - np.exp(-v), step * (1.0 + np.exp(-v)) * (v < ends + step)


def _scaled(log_s: FloatArray, log_worth: FloatArray, most: float) -> FloatArray:
    """``s theta``, or ``most`` if that is less; few exponentials, none of which overflows."""
    top = log_s[-1]
    scaled: FloatArray = np.exp(np.minimum(log_worth + top, _HUGE)) * np.exp(log_s - top)
    return np.minimum(scaled, most, out=scaled)


def _enough_nodes(k: int, log_s: float) -> int:
    """Number of Gauss-Legendre nodes that integrate the product over the block to a relative 1e-12, up to ``s``.

    It is a polynomial of degree ``k``, and as the worth adds up to at most 1 it falls no faster than ``exp(-s u)``
    or ``(1 - u)^k``, for which the rule was measured.
    """
    steepness = math.exp(min(log_s, math.log(k)))
    return min((k + 2) // 2, math.ceil(3 + 2.8 * math.sqrt(steepness)))


@lru_cache(maxsize=1024)
def _legendre(nodes: int, degree: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Columns of nodes ``u`` and weights over (0, 1), and ``u^m (1 - u)^(degree - m)`` at the nodes for each ``m``."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    u = (1.0 + points[:, None]) / 2
    m = np.arange(degree + 1)
    rule = u, weights[:, None] / 2, u**m * (1.0 - u) ** (degree - m)
    for array in rule:
        array.flags.writeable = False
    return rule


def _symmetric_sums(z: FloatArray, scratch: FloatArray) -> list[FloatArray]:
    """Elementary symmetric sums of the first 0, 1, ..., all rows of ``z``: coefficients of ``prod(1 - u + u z)``."""
    ends = np.cumsum(np.arange(len(z) + 2)) * z.shape[1]
    sums = [scratch[start:end].reshape(-1, z.shape[1]) for start, end in itertools.pairwise(ends)]
    sums[0][0] = 1.0
    for mine, before, after in zip(z, sums[:-1], sums[1:], strict=True):
        after[0] = 1.0
        np.multiply(before, mine, out=after[1:])
        after[1:-1] += before[1:]
    return sums


def _slopes(sums: list[FloatArray], z: FloatArray) -> FloatArray:
    """Derivatives by ``z``, from those by its symmetric sums, which are in the last entry of ``sums``."""
    slopes = np.empty(z.shape)
    by_sums = sums[-1]
    for place in range(len(z))[::-1]:
        after = by_sums[1 : place + 2]
        np.einsum("mc,mc->c", after, sums[place], out=slopes[place])
        by_sums[: place + 1] += np.multiply(after, z[place], out=sums[place])
    return slopes
