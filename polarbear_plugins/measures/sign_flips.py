"""Tests of all pairs of algorithms at once, by flipping the signs of whole observations at random.

If two algorithms are equally good, the sign of their difference on an instance is a matter of chance.  The signs are
flipped for all algorithms together, and the largest standardized difference of any pair shows how large chance alone
makes it.
"""

from __future__ import annotations

import math

import numpy as np

from polarbear_plugins.arrays import FloatArray

_CELLS = 4_000_000  # statistics held at once, to bound memory
_ROUNDING = 1e-12  # relative to the scores


def least_observations(alpha: float) -> int:
    """Smallest number of signs whose agreement is rarer than alpha: 2 ** (1 - n) <= alpha.

    >>> least_observations(0.05)
    6
    """
    return math.ceil(1 - math.log2(alpha) - 1e-9)


def counts_all(units: int, flips: int) -> bool:
    """Whether there are few enough flips to count them all."""
    return units <= 40 and 2 ** (units - 1) <= flips + 1


def flip_signs(units: int, flips: int, seed: int) -> FloatArray:
    """``[flip, unit]``: signs, the first row all positive, which is the observation itself.

    Counting the observation among the flips makes p values of drawn flips valid, not only nearly so.
    """
    if counts_all(units, flips):
        bits = np.arange(2 ** (units - 1))[:, None] >> np.arange(units) & 1  # opposite flips give the same statistics
        return np.where(bits, -1.0, 1.0)
    drawn = np.random.default_rng(seed).integers(0, 2, (flips, units))
    return np.concatenate([np.ones((1, units)), np.where(drawn, -1.0, 1.0)])


def corrected_p(units: FloatArray, signs: FloatArray) -> FloatArray:
    """P values of all pairs by the step-down method of Westfall and Young, with flipped signs."""
    n = units.shape[1]
    one, other = np.triu_indices(n, 1)
    spread = _root_sum_of_squares(units)[one, other]
    observed = np.abs(units.sum(axis=0)[one] - units.sum(axis=0)[other]) / spread
    order = np.argsort(observed, kind="stable")
    one, other, spread, observed = one[order], other[order], spread[order], observed[order]
    reached = np.zeros(order.size)
    rows = max(1, _CELLS // order.size)
    for start in range(0, len(signs), rows):
        flipped = signs[start : start + rows] @ units
        statistics = np.abs(flipped[:, one] - flipped[:, other]) / spread
        # A pair competes with those that are no further apart: those further apart were decided before it.
        np.maximum.accumulate(statistics, axis=1, out=statistics)
        reached += (statistics >= observed * (1 - 1e-9)).sum(axis=0)
    # No pair is surer than one that is further apart.
    falling = np.maximum.accumulate((reached / len(signs))[::-1])[::-1]
    p = np.ones((n, n))
    p[one, other] = p[other, one] = falling
    return p


def _root_sum_of_squares(units: FloatArray) -> FloatArray:
    """``[i, j]``: root of the summed squares of the differences, which no flip changes; ``inf`` if all are zero."""
    spread: FloatArray = np.stack([np.sqrt(((units - column[:, None]) ** 2).sum(axis=0)) for column in units.T])
    spread[spread <= rounding_of(units)] = np.inf
    return spread


def rounding_of(units: FloatArray) -> float:
    """Size of differences, or of sums of them, that are rounding."""
    return _ROUNDING * float(np.sqrt((units**2).sum(axis=0).max()))
