"""How many instances a comparison of mean performance needs, before anything has run.

Classical planning after Campelo and Takahashi: instances are the independent observations, a paired test on their
differences decides, and its power for the smallest relevant effect determines their number.
Effects are standardized: a mean difference divided by the standard deviation of the differences over instances.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_choice, as_number, as_vector, as_whole_number
from polarbear_plugins.errors import InvalidInputError

PairedTest = Literal["t", "wilcoxon", "sign"]
Alternative = Literal["two-sided", "one-sided"]

#: Efficiency relative to the t test: the conservative values of equation 26.
EFFICIENCY: dict[str, float] = {"t": 1.0, "wilcoxon": 0.86, "sign": 0.637}

_MOST_INSTANCES = 10**9  # more than any experiment; beyond it quantiles lose precision
_LARGEST_EFFECT = 1e3


def number_of_instances(
    effect: float,
    power: float = 0.8,
    alpha: float = 0.05,
    test: PairedTest = "t",
    alternative: Alternative = "two-sided",
    *,
    comparisons: int = 1,
) -> int:
    """Smallest number of instances with which a paired test finds an effect with the given power.

    Parameters
    ----------
    effect
        The smallest relevant effect, in standard deviations of the differences; the sign is ignored.
    power
        Probability of finding an effect of that size.
    alpha
        Probability of finding one where there is none.
    test
        ``"t"``, ``"wilcoxon"`` (signed ranks) or ``"sign"``.  The latter two take 1/0.86 and 1/0.637 times as many as
        the t test.
    alternative
        ``"two-sided"`` or ``"one-sided"``.
    comparisons
        Number of pairs tested; each gets its part of ``alpha``, as in the first step of Holm's correction.

    Examples
    --------
    >>> number_of_instances(0.5), number_of_instances(0.5, test="wilcoxon"), number_of_instances(0.5, test="sign")
    (34, 40, 54)
    """
    size = _as_effect(effect)
    wanted, level = as_probability(power, "power"), _level(alpha, comparisons)
    sides, efficiency = _sides(alternative), _efficiency(test)
    if size == 0:
        raise InvalidInputError(
            "effect: no number of instances can detect an effect of 0. Give the smallest relevant effect, "
            "such as 0.5 standard deviations."
        )
    if wanted <= level:
        raise InvalidInputError(f"power: expected more than alpha ({level:g}), which a test has without any effect.")
    low, high = 1, 2
    while _t_power(high, size, level, sides) < wanted:
        low, high = high, min(2 * high, _MOST_INSTANCES)
        if low == high:
            raise InvalidInputError(f"effect: {size:g} needs more than {_MOST_INSTANCES:,} instances.")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _t_power(middle, size, level, sides) >= wanted else (middle, high)
    return math.ceil(high / efficiency - 1e-9)


def power_of(
    instances: int,
    effect: float,
    alpha: float = 0.05,
    test: PairedTest = "t",
    alternative: Alternative = "two-sided",
    *,
    comparisons: int = 1,
) -> float:
    """Probability that a paired test finds an effect; parameters as in :func:`number_of_instances`.

    >>> round(power_of(34, 0.5), 3)
    0.808
    """
    equivalent = _t_test_equivalent(instances, test)
    return _t_power(equivalent, _as_effect(effect), _level(alpha, comparisons), _sides(alternative))


def detectable_effect(
    instances: int,
    power: float = 0.8,
    alpha: float = 0.05,
    test: PairedTest = "t",
    alternative: Alternative = "two-sided",
    *,
    comparisons: int = 1,
) -> float:
    """Smallest effect that a paired test finds with the given power; parameters as in :func:`number_of_instances`.

    >>> round(detectable_effect(200, alternative="one-sided"), 2)
    0.18
    """
    from scipy.optimize import brentq

    equivalent = _t_test_equivalent(instances, test)
    wanted, level, sides = as_probability(power, "power"), _level(alpha, comparisons), _sides(alternative)
    if wanted <= level:
        raise InvalidInputError(f"power: expected more than alpha ({level:g}), which a test has without any effect.")
    high = 1.0
    while _t_power(equivalent, high, level, sides) < wanted:
        high *= 2
        if high > _LARGEST_EFFECT:
            raise InvalidInputError(
                f"{instances} instances find no effect of up to {_LARGEST_EFFECT:g} standard deviations with power "
                f"{wanted:g}. Use more instances, or less power."
            )
    return float(
        brentq(lambda size: _t_power(equivalent, size, level, sides) - wanted, 0.0, high, xtol=1e-12, rtol=1e-12)
    )


def power_curve(
    instances: int,
    alpha: float = 0.05,
    test: PairedTest = "t",
    alternative: Alternative = "two-sided",
    *,
    effects: ArrayLike | None = None,
    comparisons: int = 1,
) -> tuple[FloatArray, FloatArray]:
    """Effects, and the power for each with a number of instances.

    Parameters
    ----------
    effects
        Effects; by default 101 from 0 to the one found with power 0.999.

    Examples
    --------
    >>> effects, powers = power_curve(200, alternative="one-sided", effects=[0, 0.1, 0.2])
    >>> powers.round(2)
    array([0.05, 0.41, 0.88])
    """
    if effects is None:
        high = detectable_effect(instances, 0.999, alpha, test, alternative, comparisons=comparisons)
        sizes: FloatArray = np.linspace(0.0, high, 101)
    else:
        sizes = as_vector(effects, "effects")
    powers = [power_of(instances, size, alpha, test, alternative, comparisons=comparisons) for size in sizes]
    return sizes, np.array(powers)


def standardized_effect(difference: float, deviation: float, error: float = 0.0) -> float:
    """Effect of a mean difference, from its two sources of variation (equation 25).

    Parameters
    ----------
    difference
        Relevant mean difference, in the units of the measure, or as a share for percent differences.
    deviation
        Standard deviation of the true differences over instances.
    error
        Standard error of the difference on one instance; repetitions reduce it.

    Examples
    --------
    >>> round(standardized_effect(0.05, 0.1), 3), round(standardized_effect(0.05, 0.1, error=0.05), 3)
    (0.5, 0.447)
    """
    spread = math.hypot(as_number(deviation, "deviation"), as_number(error, "error"))
    if deviation < 0 or error < 0 or spread == 0:
        raise InvalidInputError(
            f"deviation and error: expected numbers that are not negative and not both 0, got {deviation:g} and "
            f"{error:g}. Without any variation one instance is enough."
        )
    return as_number(difference, "difference") / spread


def as_probability(value: object, what: str) -> float:
    """Check a probability strictly between 0 and 1."""
    return as_number(value, what, above=0, below=1)


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


def _t_test_equivalent(instances: int, test: PairedTest) -> int:
    """Equivalent number of instances for a t test; the inverse of rounding up in :func:`number_of_instances`."""
    return math.floor(as_whole_number(instances, "instances", at_least=2) * _efficiency(test) + 1e-9)


def _efficiency(test: PairedTest) -> float:
    return EFFICIENCY[as_choice(test, PairedTest, "test")]


def _sides(alternative: Alternative) -> int:
    return 2 if as_choice(alternative, Alternative, "alternative") == "two-sided" else 1


def _level(alpha: float, comparisons: int) -> float:
    return as_probability(alpha, "alpha") / as_whole_number(comparisons, "comparisons", at_least=1)


def _as_effect(effect: float) -> float:
    size = abs(as_number(effect, "effect"))
    return as_number(size, "effect in standard deviations", at_most=_LARGEST_EFFECT)
