"""How often to run algorithms on one instance until their difference is known precisely enough.

Algorithm 1 of Campelo and Takahashi as a pure function: :func:`next_runs` takes the values so far and returns which
algorithms to run next.  :mod:`polarbear_plugins.experiments.campaigns`, or the user, runs them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import Check, as_choice, as_number, as_vector, as_whole_number, check_fields
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.seeds import derived_seed

Difference = Literal["simple", "percent"]
ErrorMethod = Literal["parametric", "delta", "bootstrap"]

_CONSTRAINTS: dict[str, Check] = {
    "error": partial(as_number, above=0),  # no number of runs reaches a standard error of 0
    "difference": lambda value, what: as_choice(value, Difference, what),
    "method": lambda value, what: as_choice(value, ErrorMethod, what),
    "first": partial(as_whole_number, at_least=2),
    "most": partial(as_whole_number, at_least=1),
    "resamples": partial(as_whole_number, at_least=10),
    "seed": partial(as_whole_number, at_least=0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RepetitionSettings:
    """When the difference of two algorithms on an instance is known precisely enough.

    Parameters
    ----------
    error
        Standard error of the difference to stop at.
    difference
        ``"simple"``: second mean minus first.  ``"percent"``: the same as a share of the first mean, which must be
        positive.
    method
        How the standard error is estimated: ``"parametric"`` by equations 12 and 15; ``"delta"``, which for percent
        differences includes the covariance that equation 15 leaves out; or ``"bootstrap"``.
    first
        Initial runs of each algorithm (n0): 3 or 4 for bell-shaped values, 10 for symmetric ones, 20 and more for
        skewed ones.
    most
        Maximum number of runs on the instance, all algorithms together (n_max).
    balanced
        Run all algorithms equally often, rather than in the ratio that needs the fewest runs.
    resamples
        Number of bootstrap resamples.
    seed
        Seed of the bootstrap.

    Examples
    --------
    >>> RepetitionSettings(error=0.05, difference="percent", first=15).most
    200
    """

    error: float
    difference: Difference = "simple"
    method: ErrorMethod = "parametric"
    first: int = 10
    most: int = 200
    balanced: bool = False
    resamples: int = 999
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self, _CONSTRAINTS)
        if self.most < 2 * self.first:
            raise InvalidInputError(
                f"most: expected room for the first runs of both algorithms, 2 x {self.first}, got {self.most}."
            )


@dataclass(frozen=True, slots=True)
class Estimate:
    """A difference on one instance, second algorithm minus first, and its standard error."""

    difference: float
    error: float


def next_runs(
    values: Mapping[str, ArrayLike], settings: RepetitionSettings, reference: str | None = None
) -> tuple[str, ...]:
    """Algorithms to run next on an instance; none if the differences are known precisely enough.

    The first runs are requested all at once and may run in parallel; later ones one at a time.  Of more than two
    algorithms, the pair with the largest standard error comes next, until all are small enough.

    Parameters
    ----------
    values
        The values so far of each algorithm; an empty list at the start.
    reference
        Compare the others with this algorithm only, rather than all pairs.

    Examples
    --------
    >>> settings = RepetitionSettings(error=0.5, first=3)
    >>> next_runs({"a": [], "b": [4.0]}, settings)
    ('a', 'a', 'a', 'b', 'b')
    >>> next_runs({"a": [1.0, 5.0, 9.0], "b": [4.0, 4.1, 4.2]}, settings)
    ('a',)
    >>> next_runs({"a": [5.0, 5.1, 4.9], "b": [4.0, 4.1, 4.2]}, settings)
    ()
    """
    samples = {name: _as_sample(sample, name) for name, sample in values.items()}
    pairs = pairs_of(tuple(samples), reference)
    if settings.most < len(samples) * settings.first:
        raise InvalidInputError(
            f"most: expected room for the first runs of all algorithms, {len(samples)} x {settings.first}, got "
            f"{settings.most}."
        )
    missing = tuple(name for name, sample in samples.items() for _ in range(settings.first - sample.size))
    if missing:
        return missing
    if sum(sample.size for sample in samples.values()) >= settings.most:
        return ()
    errors = {pair: estimate_difference(samples[pair[0]], samples[pair[1]], settings, pair).error for pair in pairs}
    pair = max(errors, key=lambda pair: errors[pair])
    if errors[pair] <= settings.error:
        return ()
    one, other = (samples[name] for name in pair)
    if settings.balanced:
        return (pair[0] if one.size <= other.size else pair[1],)
    # n1 / n2 < r1 / r2, without dividing: an algorithm whose values do not vary gets no more runs.
    first, second = _error_contributions(one, other, settings, pair)
    return (pair[0] if one.size * second < other.size * first else pair[1],)


def estimate_difference(
    one: ArrayLike,
    other: ArrayLike,
    settings: RepetitionSettings,
    names: tuple[str, str] = ("the first algorithm", "the second algorithm"),
) -> Estimate:
    """Difference of two algorithms on an instance, from at least two values of each.

    >>> estimate_difference([1.0, 3.0], [4.0, 6.0], RepetitionSettings(error=0.1))
    Estimate(difference=3.0, error=1.4142135623730951)
    """
    first, second = (_as_sample(sample, name, 2) for sample, name in zip((one, other), names, strict=True))
    if settings.method == "bootstrap":
        error = _bootstrap_error(first, second, settings, names)
    else:
        shares = _error_contributions(first, second, settings, names)
        scale = first.mean() if settings.difference == "percent" else 1.0
        error = math.hypot(shares[0] / math.sqrt(first.size), shares[1] / math.sqrt(second.size)) / scale
    return Estimate(float(_difference(first.mean(), second.mean(), settings.difference, names)), error)


def optimal_ratio(one: ArrayLike, other: ArrayLike, settings: RepetitionSettings) -> float:
    """Ratio of runs, first to second algorithm, that needs the fewest in total (equations 11 and 17).

    >>> optimal_ratio([1.0, 3.0, 5.0], [4.0, 5.0, 6.0], RepetitionSettings(error=0.1))
    2.0
    """
    names = ("the first algorithm", "the second algorithm")
    samples = [_as_sample(sample, name, 2) for sample, name in zip((one, other), names, strict=True)]
    first, second = _error_contributions(samples[0], samples[1], settings, names)
    if second == 0:
        raise InvalidInputError(
            "The values of the second algorithm do not vary: it needs no further runs, and there is no optimal ratio."
        )
    return first / second


def pairs_of(algorithms: Sequence[str], reference: str | None = None) -> tuple[tuple[str, str], ...]:
    """Pairs to compare: all, in the order of the algorithms, or those of a reference with each other algorithm."""
    if len(algorithms) < 2:
        raise InvalidInputError(f"A comparison needs at least two algorithms, got {len(algorithms)}.")
    if reference is None:
        return tuple(itertools.combinations(algorithms, 2))
    if reference not in algorithms:
        raise InvalidInputError(f"reference: there is no algorithm {reference!r}. There are {', '.join(algorithms)}.")
    return tuple((reference, name) for name in algorithms if name != reference)


def _error_contributions(
    one: FloatArray, other: FloatArray, settings: RepetitionSettings, names: tuple[str, str]
) -> tuple[float, float]:
    """Contribution of each algorithm to the standard error; optimal numbers of runs are proportional to it.

    For percent differences, in units of the first mean; this is equation 15 without its divisions by a difference,
    which may be 0.
    """
    first, second = float(one.std(ddof=1)), float(other.std(ddof=1))
    if settings.difference == "simple":
        return first, second
    share = float(_difference(one.mean(), other.mean(), "percent", names))
    # The numerator contains the denominator, with covariance -s1^2: the exact term is (1 + share) squared.
    return first * (abs(1 + share) if settings.method == "delta" else math.hypot(1, share)), second


def _bootstrap_error(one: FloatArray, other: FloatArray, settings: RepetitionSettings, names: tuple[str, str]) -> float:
    """Algorithm 4.  The resamples depend only on the seed and the numbers of runs."""
    rng = np.random.default_rng(derived_seed(settings.seed, "bootstrap", one.size, other.size))
    means = [
        sample[rng.integers(sample.size, size=(settings.resamples, sample.size))].mean(1) for sample in (one, other)
    ]
    return float(np.std(_difference(means[0], means[1], settings.difference, names), ddof=1))


def _difference(one: FloatArray, other: FloatArray, difference: Difference, names: tuple[str, str]) -> FloatArray:
    if difference == "simple":
        return other - one
    if np.min(one) <= 0:
        raise InvalidInputError(
            f"Percent differences need positive means, and that of {names[0]!r} is {np.min(one):g} (or may be, given "
            'these runs). Use difference="simple", or a measure that is always positive.'
        )
    return (other - one) / one


def _as_sample(values: ArrayLike, name: str, at_least: int = 0) -> FloatArray:
    sample = as_vector(values, f"values of {name!r}")
    if not np.isfinite(sample).all():
        raise InvalidInputError(
            f"values of {name!r}: a mean needs finite numbers, got {sample[~np.isfinite(sample)][0]} at position "
            f"{int(np.argmin(np.isfinite(sample)))}. Rankings (polarbear race) accept such values."
        )
    if sample.size < at_least:
        raise InvalidInputError(f"values of {name!r}: expected at least {at_least}, got {sample.size}.")
    return sample
