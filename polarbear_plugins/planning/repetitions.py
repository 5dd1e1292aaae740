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
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import Check, as_choice, as_number, as_vector, as_whole_number, check_fields
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.seeds import derived_seed

Difference = Literal["simple", "percent", "percent-of-grand-mean"]
ErrorMethod = Literal["delta", "bootstrap", "parametric"]

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
        positive.  ``"percent-of-grand-mean"``: as a share of the mean of the means of all algorithms, so that it does
        not matter which of a pair is first.
    method
        How the standard error is estimated: ``"delta"`` by the delta method; ``"bootstrap"``; or ``"parametric"`` by
        equations 12 and 15, of which the latter leaves out a covariance and is too small for percent differences above
        0, too large below.
    first
        Initial runs of each algorithm (n0): 3 or 4 for bell-shaped values, 10 for symmetric ones, 20 and more for
        skewed ones.
    most
        Maximum number of runs on the instance, all algorithms together (n_max).
    balanced
        Run all algorithms equally often, one more of each at a time, rather than in the ratio that needs the fewest
        runs.
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
    method: ErrorMethod = "delta"
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

    The first runs are requested all at once and may run in parallel; later ones one at a time, or if balanced, one of
    each algorithm.  Of more than two algorithms, the pair with the largest standard error comes next, until all are
    small enough.

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
    least = max(sample.size for sample in samples.values()) if settings.balanced else 0
    least = max(settings.first, least)
    missing = tuple(name for name, sample in samples.items() for _ in range(least - sample.size))
    if missing:
        return missing
    step = len(samples) if settings.balanced else 1
    if sum(sample.size for sample in samples.values()) + step > settings.most:
        return ()
    errors = {pair: _estimate(samples, pair, settings).error for pair in pairs}
    pair = max(errors, key=lambda pair: errors[pair])
    if errors[pair] <= settings.error:
        return ()
    if settings.balanced:
        return tuple(samples)
    # An algorithm whose values do not vary gets no more runs; of equals, the second of a pair comes first.
    shares = _error_contributions(samples, pair, settings)
    return (max(reversed(shares), key=lambda name: shares[name] / samples[name].size),)


def estimate_difference(
    one: ArrayLike,
    other: ArrayLike,
    settings: RepetitionSettings,
    names: tuple[str, str] = ("the first algorithm", "the second algorithm"),
    others: Mapping[str, ArrayLike] | None = None,
) -> Estimate:
    """Difference of two algorithms on an instance, from at least two values of each.

    ``others`` are the values of the remaining algorithms, which belong to the grand mean.

    >>> estimate_difference([1.0, 3.0], [4.0, 6.0], RepetitionSettings(error=0.1))
    Estimate(difference=3.0, error=1.4142135623730951)
    """
    given = {**dict(zip(names, (one, other), strict=True)), **(others or {})}
    return _estimate({name: _as_sample(sample, name, 2) for name, sample in given.items()}, names, settings)


def optimal_ratio(one: ArrayLike, other: ArrayLike, settings: RepetitionSettings) -> float:
    """Ratio of runs, first to second algorithm, that needs the fewest in total (equations 11 and 17).

    >>> optimal_ratio([1.0, 3.0, 5.0], [4.0, 5.0, 6.0], RepetitionSettings(error=0.1))
    2.0
    """
    names = ("the first algorithm", "the second algorithm")
    samples = {name: _as_sample(sample, name, 2) for sample, name in zip((one, other), names, strict=True)}
    first, second = _error_contributions(samples, names, settings).values()
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


def _estimate(samples: Mapping[str, FloatArray], pair: tuple[str, str], settings: RepetitionSettings) -> Estimate:
    means = {name: sample.mean() for name, sample in samples.items()}
    if settings.method == "bootstrap":
        error = _bootstrap_error(samples, pair, settings)
    else:
        shares = _error_contributions(samples, pair, settings)
        error = math.hypot(*(share / math.sqrt(samples[name].size) for name, share in shares.items()))
    return Estimate(float(_difference(means, pair, settings.difference)), error)


def _error_contributions(
    samples: Mapping[str, FloatArray], pair: tuple[str, str], settings: RepetitionSettings
) -> dict[str, float]:
    """Contribution of one run of each algorithm to the standard error; optimal numbers of runs are proportional to it.

    For percent differences this is the standard deviation times the derivative of the difference by the mean.
    """
    scale, share = 1.0, 0.0
    means = {name: float(sample.mean()) for name, sample in samples.items()}
    parts = {}
    if settings.difference != "simple":
        share = float(_difference(means, pair, settings.difference))
        parts = _parts_of_scale(means, pair, settings.difference)
        scale = sum(part * means[name] for name, part in parts.items())
    found = {}
    for name in (*pair, *(name for name in parts if name not in pair)):
        direct, indirect = {pair[0]: -1.0, pair[1]: 1.0}.get(name, 0.0), -share * parts.get(name, 0.0)
        # The numerator contains the denominator; equation 15 adds the two terms as if they were independent.
        slope = math.hypot(direct, indirect) if settings.method == "parametric" else abs(direct + indirect)
        found[name] = slope * float(samples[name].std(ddof=1)) / scale
    return found


def _parts_of_scale(means: Mapping[str, object], pair: tuple[str, str], difference: Difference) -> dict[str, float]:
    """How the mean that percent differences are divided by is made up of the means of the algorithms."""
    return {pair[0]: 1.0} if difference == "percent" else {name: 1 / len(means) for name in means}


def _bootstrap_error(samples: Mapping[str, FloatArray], pair: tuple[str, str], settings: RepetitionSettings) -> float:
    """Algorithm 4.  The resamples depend only on the seed and the numbers of runs."""
    used = {name: samples[name] for name in (samples if settings.difference == "percent-of-grand-mean" else pair)}
    rng = np.random.default_rng(derived_seed(settings.seed, "bootstrap", *(sample.size for sample in used.values())))
    means = {
        name: sample[rng.integers(sample.size, size=(settings.resamples, sample.size))].mean(1)
        for name, sample in used.items()
    }
    return float(np.std(_difference(means, pair, settings.difference), ddof=1))


def _difference(means: Mapping[str, Any], pair: tuple[str, str], difference: Difference) -> Any:
    """Difference of two means or of arrays of them."""
    simple = means[pair[1]] - means[pair[0]]
    if difference == "simple":
        return simple
    scale = sum(part * means[name] for name, part in _parts_of_scale(means, pair, difference).items())
    if np.min(scale) <= 0:
        whose = f"that of {pair[0]!r}" if difference == "percent" else "the grand mean"
        raise InvalidInputError(
            f"Percent differences need positive means, and {whose} is {np.min(scale):g} (or may be, given "
            'these runs). Use difference="simple", or a measure that is always positive.'
        )
    return simple / scale


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
