"""When the sign test and Wilcoxon's test reject: the same critical values for tests, intervals and powers.

Both statistics are discrete.  A critical value is the largest value that rejects, so a test has at most the level it
was given, and with few instances nothing rejects at all.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from polarbear_plugins.arrays import FloatArray

EXACT_RANKS = 200  # instances up to which the null distribution of signed ranks is computed exactly


def sign_critical(instances: int, tail: float) -> int:
    """Largest number of losses with a probability of at most ``tail`` if signs are random; -1 if there is none.

    >>> sign_critical(6, 0.025), sign_critical(5, 0.025)
    (0, -1)
    """
    from scipy.special import betainc

    def chance(losses: int) -> float:
        return float(betainc(instances - losses, losses + 1, 0.5)) if losses >= 0 else 0.0

    # Near the normal quantile; the exact probabilities decide.
    losses = min(max(math.floor(_normal_quantile(tail, instances / 2, math.sqrt(instances) / 2)), -1), instances - 1)
    while chance(losses) > tail:
        losses -= 1
    while losses + 1 < instances and chance(losses + 1) <= tail:
        losses += 1
    return losses


def signed_rank_critical(instances: int, tail: float) -> int:
    """Largest sum of ranks with a probability of at most ``tail`` if signs are random; -1 if there is none.

    Beyond 200 instances by the normal distribution with a continuity correction, as the test itself.

    >>> signed_rank_critical(6, 0.025), signed_rank_critical(5, 0.025)
    (0, -1)
    """
    if instances > EXACT_RANKS:
        total = instances * (instances + 1) // 2
        spread = math.sqrt(total * (2 * instances + 1) / 12)
        return max(math.floor(_normal_quantile(tail, total / 2, spread) - 0.5), -1)
    return int(np.searchsorted(_rank_sum_chances(instances), tail, side="right")) - 1


@cache
def _rank_sum_chances(instances: int) -> FloatArray:
    """Probability of each sum of ranks or a smaller one, if signs are random."""
    total = instances * (instances + 1) // 2
    chances = np.zeros(total + 1)
    chances[0] = 1.0
    for rank in range(1, instances + 1):
        chances[rank:] = (chances[rank:] + chances[:-rank]) / 2
        chances[:rank] /= 2
    return np.cumsum(chances)


def _normal_quantile(probability: float, mean: float, deviation: float) -> float:
    from scipy.special import ndtri

    return float(mean + ndtri(probability) * deviation)
