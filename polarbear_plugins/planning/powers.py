"""Powers of paired tests, and the fewest instances that reach one.

Exact for the t test, the sign test, and Wilcoxon's test up to 200 instances, if differences are normal; the sign test
depends on the distribution only by the probability of a positive difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import Literal

import numpy as np

from polarbear_plugins.planning.critical_values import EXACT_RANKS, sign_critical
from polarbear_plugins.planning.signed_rank_powers import signed_rank_power, signed_rank_powers

PairedTest = Literal["t", "wilcoxon", "sign"]
PowerTarget = Literal["worst-case", "mean", "median"]

MOST_INSTANCES = 10**9  # more than any experiment; beyond it quantiles lose precision
_COMBINE: dict[PowerTarget, Callable[[Sequence[float]], float]] = {
    "worst-case": min,
    "mean": lambda powers: float(np.mean(powers)),
    "median": lambda powers: float(np.median(powers)),
}


def combined_power(
    test: PairedTest, instances: int, effect: float, levels: Sequence[float], sides: int, target: PowerTarget
) -> float:
    """Power at each of several levels, combined."""
    return _COMBINE[target](_powers(test, instances, effect, levels, sides))


def fewest_instances(
    test: PairedTest, effect: float, wanted: float, levels: Sequence[float], sides: int, target: PowerTarget
) -> int | None:
    """Smallest number of instances with the wanted power; ``None`` if it is above 10^9."""
    combine = _COMBINE[target]

    def reached(instances: int) -> bool:
        return combine(_powers(test, instances, effect, levels, sides)) >= wanted

    if test == "t":
        return _first(reached, 2)
    if test == "wilcoxon":
        # For normal differences no test that is unbiased has more power than the t test.
        low = fewest_instances("t", effect, wanted, levels, sides, target)
        tails = [level / sides for level in levels]
        for most in (EXACT_RANKS // 8, EXACT_RANKS // 2, EXACT_RANKS):
            if low is not None and low <= most:
                for instances, powers in enumerate(signed_rank_powers(most, effect, tails, sides), 1):
                    if combine(powers) >= wanted:
                        return instances
        return None if low is None else _first(reached, max(low, EXACT_RANKS + 1))

    # The power of the sign test goes up and down with the number of instances.  If it tossed a coin to have exactly its
    # level, the power would only grow, and be at least as large.
    def bounded(instances: int) -> bool:
        return combine([_sign_power(instances, effect, level, sides, toss=True) for level in levels]) >= wanted

    first = _first(bounded, 1)
    return None if first is None else next(instances for instances in count(first) if reached(instances))


def smallest_level(instances: int, sides: int) -> float:
    """Smallest p value of the sign test and Wilcoxon's test: all differences have the same sign."""
    return sides * 0.5**instances


def _first(reached: Callable[[int], bool], low: int) -> int | None:
    """Smallest number from ``low`` on that reaches something, if all larger ones do, too."""
    if reached(low):
        return low
    high = 2 * low
    while not reached(high):
        if high >= MOST_INSTANCES:
            return None
        low, high = high, min(2 * high, MOST_INSTANCES)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _powers(test: PairedTest, instances: int, effect: float, levels: Sequence[float], sides: int) -> list[float]:
    if test == "wilcoxon":
        return signed_rank_power(instances, effect, [level / sides for level in levels], sides)
    power = _t_power if test == "t" else _sign_power
    return [power(instances, effect, level, sides) for level in levels]


def _t_power(instances: int, effect: float, level: float, sides: int) -> float:
    """Power of the paired t test: equation 22, both tails of a two-sided test included."""
    from scipy.special import nctdtr, stdtrit

    freedom, shift = instances - 1, effect * math.sqrt(instances)
    if freedom < 1:
        return 0.0
    critical = stdtrit(freedom, 1 - level / sides)
    # scipy's series gives nan where the probability is far below 1e-15.
    power = 1 - np.nan_to_num(nctdtr(freedom, shift, critical))
    if sides == 2:
        power += np.nan_to_num(nctdtr(freedom, shift, -critical))
    return float(power)


def _sign_power(instances: int, effect: float, level: float, sides: int, *, toss: bool = False) -> float:
    """Power of the sign test; with ``toss``, if it had exactly its level by rejecting the next value at times."""
    from scipy.special import ndtr

    critical = sign_critical(instances, level / sides)
    power = 0.0
    for losing in [float(ndtr(-effect)), float(ndtr(effect))][:sides]:
        power += _at_most(critical, instances, losing)
        if toss:
            missing = level / sides - _at_most(critical, instances, 0.5)
            share = missing / (_at_most(critical + 1, instances, 0.5) - _at_most(critical, instances, 0.5))
            power += share * (_at_most(critical + 1, instances, losing) - _at_most(critical, instances, losing))
    return power


def _at_most(successes: int, trials: int, probability: float) -> float:
    """Probability of at most so many successes."""
    from scipy.special import betainc

    if successes < 0:
        return 0.0
    return float(betainc(trials - successes, successes + 1, 1 - probability)) if successes < trials else 1.0
