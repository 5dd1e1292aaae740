"""Power of Wilcoxon's signed-rank test for normal differences.

The sum of the ranks of negative differences has no closed distribution, but an exact recursion.  Given that all of k
absolute differences are at most y, the largest of them is some t with density k F(t)^(k-1) f(t) / F(y)^k, where F and f
belong to one absolute difference; it has rank k, and is negative with a probability that depends on t alone; and the
other k - 1 are all at most t.  So each distribution is an average over t of the one for k - 1, evaluated here by
interpolation in t.  The averages do not amplify errors, and one pass gives the powers for all numbers of instances.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.planning.critical_values import EXACT_RANKS, signed_rank_critical

_POINTS = 12  # Gauss-Legendre points between two nodes
_NO_WRONG_SIDE = 6.0  # effect times the root of the number of instances above which the other side never rejects
_REACH = 7.0  # standard deviations from the mean difference beyond which nothing is expected
_CERTAIN = 8.0  # effect from which on negative differences do not occur
# Times the number of instances: more than the normal approximation was too high in any of the cases that
# tests/planning/test_powers.py computes exactly.
_APPROXIMATION_ERROR = 0.8


def signed_rank_powers(most: int, effect: float, tails: Sequence[float], sides: int) -> Iterator[list[float]]:
    """For 1, 2, ... up to ``most`` instances, at most 200: the power for each probability ``tails`` of a tail."""
    critical = [[signed_rank_critical(count, tail) for tail in tails] for count in range(1, most + 1)]
    size = 1 + max(max(values) for values in critical)
    for values, sums in zip(critical, _low_sums(most, effect, size, sides), strict=True):
        yield [min(1.0, float(sums[:, : value + 1].sum())) for value in values]


def signed_rank_power(instances: int, effect: float, tails: Sequence[float], sides: int) -> list[float]:
    """Power for each probability of a tail; beyond 200 instances at least this, and at most 2 / ``instances`` more."""
    if instances > EXACT_RANKS:
        return [_approximate_power(instances, effect, tail, sides) for tail in tails]
    *_, powers = signed_rank_powers(instances, effect, tails, sides)
    return powers


def _low_sums(most: int, effect: float, size: int, sides: int) -> Iterator[FloatArray]:
    """Probabilities that the ranks of negative differences sum to 0, 1, ... ``size`` - 1, for 1, 2, ... instances.

    The differences are normal with mean ``effect`` and variance 1.  With two sides, a second row is for positive ones.
    """
    from scipy.special import expit

    effect = min(effect, _CERTAIN)
    nodes = _nodes(effect, most)
    signs = [-1, 1][: 1 if effect * math.sqrt(most) > _NO_WRONG_SIDE else sides]
    counted = [expit(2 * sign * effect * nodes)[:, None] for sign in signs]  # P(sign), given the absolute difference
    chances = np.zeros((len(signs), nodes.size, max(size, 1)))
    chances[:, :, 0] = 1.0
    for count, average in enumerate(_averages(most, effect, nodes), 1):
        known = min(count * (count + 1) // 2 + 1, chances.shape[2])  # beyond it all probabilities are 0
        for share, rows in zip(counted, chances, strict=True):
            mixed = (1 - share) * rows[:, :known]
            mixed[:, count:] += share * rows[:, : max(known - count, 0)]
            rows[:, :known] = average @ mixed
        yield chances[:, -1]


def _nodes(effect: float, most: int) -> FloatArray:
    """Chebyshev points for absolute differences, the last one as good as infinite.

    Twice as many change no power by more than 1e-6, and none below 0.999 by more than 1e-7.
    """
    number = min(24 + math.ceil(3 * effect * math.sqrt(most)), 64)
    return (effect + _REACH) * (1 - np.cos(np.pi * np.arange(1, number + 1) / number)) / 2


def _averages(most: int, effect: float, nodes: FloatArray) -> Iterator[FloatArray]:
    """For 1, 2, ... differences, the matrix that averages over the largest of them, given that it is below a node."""
    from scipy.special import ndtr

    def below(y: FloatArray) -> FloatArray:
        return ndtr(y - effect) - ndtr(-y - effect)

    start, end = np.concatenate([[0.0], nodes[:-1]])[:, None], nodes[:, None]
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    largest = ((start + end) / 2 + (end - start) / 2 * points).ravel()
    density = np.exp(-((largest - effect) ** 2) / 2) + np.exp(-((largest + effect) ** 2) / 2)
    share = (largest <= end) * (((end - start) * weights).ravel() * density)
    another_below = np.minimum(below(largest) / below(nodes)[:, None], 1.0)
    values_at = _interpolation(nodes, largest)
    for _ in range(most):
        yield (share / share.sum(axis=1, keepdims=True)) @ values_at
        share *= another_below


def _interpolation(nodes: FloatArray, points: FloatArray) -> FloatArray:
    """Matrix that gives the values at points from those at nodes, by the polynomial through all of them."""
    gaps = (nodes[:, None] - nodes) * 4 / nodes[-1]
    np.fill_diagonal(gaps, 1.0)
    terms = 1 / gaps.prod(axis=1) / (points[:, None] - nodes)
    return terms / terms.sum(axis=1, keepdims=True)


def _approximate_power(instances: int, effect: float, tail: float, sides: int) -> float:
    """Power by the normal distribution with the true mean and variance, less the most that it was found too high."""
    from scipy.special import ndtr

    mean, deviation = _moments(instances, effect)
    total, critical = instances * (instances + 1) / 2, signed_rank_critical(instances, tail) + 0.5
    power = ndtr((critical - total + mean) / deviation)
    if sides == 2:
        power += ndtr((critical - mean) / deviation)
    return max(float(power) - _APPROXIMATION_ERROR / instances, 0.0)


def _moments(instances: int, effect: float) -> tuple[float, float]:
    """Mean and standard deviation of the sum of positive ranks: the number of positive means of two differences."""
    one, two, one_and_two, three = _chances_of_positive_sums(min(effect, _CERTAIN))
    pairs = instances * (instances - 1)
    variance = (
        instances * one * (1 - one)
        + pairs / 2 * two * (1 - two)
        + 2 * pairs * (one_and_two - one * two)
        + pairs * (instances - 2) * (three - two**2)
    )
    return instances * one + pairs / 2 * two, math.sqrt(max(variance, 1e-9))


def _chances_of_positive_sums(effect: float) -> tuple[float, float, float, float]:
    """P(X > 0), P(X + Y > 0), P(X > 0, X + Y > 0) and P(X + Y > 0, X + Z > 0) for normal differences X, Y, Z."""
    from scipy.special import ndtr

    points, weights = np.polynomial.legendre.leggauss(100)
    found = []
    for low, high, power in ((0.0, effect + 9, 1), (-9.0 + min(effect, 0), 0.0, 2), (0.0, effect + 9, 2)):
        x = (low + high) / 2 + (high - low) / 2 * points
        density = np.exp(-((x - effect) ** 2) / 2) / math.sqrt(2 * math.pi)
        found.append((high - low) / 2 * float(weights @ (density * ndtr(x + effect) ** power)))
    return float(ndtr(effect)), float(ndtr(effect * math.sqrt(2))), found[0], found[1] + found[2]
