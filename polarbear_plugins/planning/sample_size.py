"""How many instances a comparison of mean performance needs, before anything has run.

Classical planning after Campelo and Takahashi: instances are the independent observations, a paired test on their
differences decides, and its power for the smallest relevant effect determines their number.
Effects are standardized: a mean difference divided by the standard deviation of the differences over instances.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_choice, as_number, as_vector, as_whole_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.planning.powers import (
    MOST_INSTANCES,
    PairedTest,
    PowerTarget,
    combined_power,
    fewest_instances,
    smallest_level,
)

Alternative = Literal["two-sided", "one-sided"]

_LARGEST_EFFECT = 1e3
_MOST_COMPARISONS = 10_000


def number_of_instances(
    effect: float,
    power: float = 0.8,
    alpha: float = 0.05,
    test: PairedTest = "t",
    alternative: Alternative = "two-sided",
    *,
    comparisons: int = 1,
    power_target: PowerTarget = "worst-case",
) -> int:
    """Smallest number of instances with which a paired test finds an effect with the given power.

    Exact for differences that are independent and normal.  The sign test depends on them only by the share of positive
    ones, see :func:`effect_of_share`.  Beyond 200 instances Wilcoxon's test has at least the power, and at most 0.01
    more.  The sign test may have a little less power with one instance more, since it counts.

    Parameters
    ----------
    effect
        The smallest relevant effect, in standard deviations of the differences; the sign is ignored.
    power
        Probability of finding an effect of that size.
    alpha
        Probability of finding one where there is none.
    test
        ``"t"``, ``"wilcoxon"`` (signed ranks) or ``"sign"``.
    alternative
        ``"two-sided"`` or ``"one-sided"``.
    comparisons
        Number of pairs tested with Holm's correction, which divides ``alpha`` by their number for the smallest p value,
        by one less for the next, and so on.
    power_target
        Of several comparisons, ``"worst-case"``: each that has the effect is found with the power, whatever the others
        are.  ``"mean"`` and ``"median"``, as in CAISEr: of the powers at Holm's levels.  They promise less, since they
        suppose that all pairs have the effect and that all smaller p values were significant.

    Examples
    --------
    >>> number_of_instances(0.5), number_of_instances(0.5, test="wilcoxon"), number_of_instances(0.5, test="sign")
    (34, 35, 51)
    """
    size = _as_effect(effect)
    if size == 0:
        raise InvalidInputError(
            "effect: no number of instances can detect an effect of 0. Give the smallest relevant effect, "
            "such as 0.5 standard deviations."
        )
    levels, sides = _levels(alpha, comparisons, power_target), _sides(alternative)
    wanted = _as_power(power, levels)
    found = fewest_instances(_as_test(test), size, wanted, levels, sides, power_target)
    if found is None:
        raise InvalidInputError(
            f"effect: {size:g} needs more than {MOST_INSTANCES:,} instances. Give a larger effect or less power."
        )
    return found


def power_of(
    instances: int,
    effect: float,
    alpha: float = 0.05,
    test: PairedTest = "t",
    alternative: Alternative = "two-sided",
    *,
    comparisons: int = 1,
    power_target: PowerTarget = "worst-case",
) -> float:
    """Probability that a paired test finds an effect; parameters as in :func:`number_of_instances`.

    >>> round(power_of(34, 0.5), 3), power_of(5, 3.0, test="wilcoxon")
    (0.808, 0.0)
    """
    number, size = as_whole_number(instances, "instances", at_least=2), _as_effect(effect)
    levels = _levels(alpha, comparisons, power_target)
    return combined_power(_as_test(test), number, size, levels, _sides(alternative), power_target)


def detectable_effect(
    instances: int,
    power: float = 0.8,
    alpha: float = 0.05,
    test: PairedTest = "t",
    alternative: Alternative = "two-sided",
    *,
    comparisons: int = 1,
    power_target: PowerTarget = "worst-case",
) -> float:
    """Smallest effect that a paired test finds with the given power; parameters as in :func:`number_of_instances`.

    >>> round(detectable_effect(200, alternative="one-sided"), 2)
    0.18
    """
    from scipy.optimize import brentq

    number = as_whole_number(instances, "instances", at_least=2)
    levels, sides = _levels(alpha, comparisons, power_target), _sides(alternative)
    wanted = _as_power(power, levels)

    def missing(size: float) -> float:
        return combined_power(_as_test(test), number, size, levels, sides, power_target) - wanted

    high = 1.0
    while missing(high) < 0:
        high *= 2
        if high > _LARGEST_EFFECT:
            raise InvalidInputError(
                f"{number} instances find no effect of up to {_LARGEST_EFFECT:g} standard deviations with power "
                f"{wanted:g}{_why_not(number, test, levels, sides)}. Use more instances, or less power."
            )
    return float(brentq(missing, 0.0, high, xtol=1e-9, rtol=1e-9))


def power_curve(
    instances: int,
    alpha: float = 0.05,
    test: PairedTest = "t",
    alternative: Alternative = "two-sided",
    *,
    effects: ArrayLike | None = None,
    comparisons: int = 1,
    power_target: PowerTarget = "worst-case",
) -> tuple[FloatArray, FloatArray]:
    """Effects, and the power for each with a number of instances.

    Parameters
    ----------
    effects
        Effects; by default 51 from 0 to the one found with power 0.999.

    Examples
    --------
    >>> effects, powers = power_curve(200, alternative="one-sided", effects=[0, 0.1, 0.2])
    >>> powers.round(2)
    array([0.05, 0.41, 0.88])
    """
    several: Any = {"comparisons": comparisons, "power_target": power_target}
    if effects is None:
        high = detectable_effect(instances, 0.999, alpha, test, alternative, **several)
        sizes: FloatArray = np.linspace(0.0, high, 51)
    else:
        sizes = as_vector(effects, "effects")
    return sizes, np.array([power_of(instances, size, alpha, test, alternative, **several) for size in sizes])


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


def effect_of_share(share: float) -> float:
    """Effect of the sign test, from the share of instances on which one of the algorithms is better.

    The power of a sign test with this effect is exact whatever the distribution of the differences is, if none is 0.

    >>> number_of_instances(effect_of_share(0.8), test="sign")
    20
    """
    from scipy.special import ndtri

    return float(ndtri(as_probability(share, "share")))


def as_probability(value: object, what: str) -> float:
    """Check a probability strictly between 0 and 1."""
    return as_number(value, what, above=0, below=1)


def _why_not(instances: int, test: PairedTest, levels: list[float], sides: int) -> str:
    """Why a test finds nothing, if it cannot."""
    least = smallest_level(instances, sides)
    if test == "t" or least <= min(levels):
        return ""
    return f": no p value of that test is below {least:.3g}, and {min(levels):.3g} is needed"


def _as_test(test: PairedTest) -> PairedTest:
    return as_choice(test, PairedTest, "test")


def _as_power(power: float, levels: list[float]) -> float:
    wanted, level = as_probability(power, "power"), max(levels)
    if wanted <= level:
        raise InvalidInputError(f"power: expected more than alpha ({level:g}), which a test has without any effect.")
    return wanted


def _sides(alternative: Alternative) -> int:
    return 2 if as_choice(alternative, Alternative, "alternative") == "two-sided" else 1


def _levels(alpha: float, comparisons: int, target: PowerTarget) -> list[float]:
    """Levels of the steps of Holm's correction that matter."""
    number = as_whole_number(comparisons, "comparisons", at_least=1, at_most=_MOST_COMPARISONS)
    steps = 1 if as_choice(target, PowerTarget, "power_target") == "worst-case" else number
    return [as_probability(alpha, "alpha") / (number - step) for step in range(steps)]


def _as_effect(effect: float) -> float:
    size = abs(as_number(effect, "effect"))
    return as_number(size, "effect in standard deviations", at_most=_LARGEST_EFFECT)
