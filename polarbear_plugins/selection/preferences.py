"""Preferences over time, which turn the ratings of an algorithm at all timepoints into one value; and risk profiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_vector
from polarbear_plugins.errors import InvalidInputError, short

NAMES = ("uniform", "log-uniform", "final", "worst")


class BudgetDistribution(Protocol):
    """A distribution of the budget, such as a frozen one of :mod:`scipy.stats`."""

    def cdf(self, x: Any, /) -> Any:
        """Probability of a budget up to ``x``."""


PreferenceLike: TypeAlias = str | ArrayLike | BudgetDistribution | Callable[[FloatArray], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Preference:
    """A preference for given timepoints.  Returned by :func:`as_preference`.

    Attributes
    ----------
    name
        Name of the preference in results.
    weights
        Weight of each timepoint, with sum 1; ``None`` if the value is not a weighted mean of the ratings.
    function
        Values ``[...]`` of ratings ``[..., timepoint]``.
    """

    name: str
    weights: FloatArray | None
    function: Callable[[FloatArray], FloatArray]

    def values(self, ratings: FloatArray) -> FloatArray:
        """Values ``[...]`` of ratings ``[..., timepoint]``."""
        return self.function(ratings)


@dataclass(frozen=True, slots=True)
class _Vectorized:
    function: Callable[[FloatArray], Any]

    def __call__(self, ratings: FloatArray) -> Any:
        return self.function(ratings)


def vectorized(function: Callable[[FloatArray], Any]) -> Callable[[FloatArray], Any]:
    """Mark a preference that takes many algorithms in one call, which is much faster.

    Parameters
    ----------
    function
        Takes ratings ``[..., timepoint]`` and returns the values ``[...]``.  It must not modify its argument.

    Examples
    --------
    >>> @vectorized
    ... def early_and_late(ratings):
    ...     return np.minimum(ratings[..., 0], ratings[..., -1])
    >>> as_preference(early_and_late, np.array([1.0, 10.0])).values(np.array([[0.2, 0.3], [0.8, 0.7]]))
    array([0.2, 0.7])
    """
    return _Vectorized(function)


def as_preference(preference: PreferenceLike, timepoints: FloatArray) -> Preference:
    """Check a preference; see :func:`polarbear_plugins.select` for the kinds.

    Examples
    --------
    >>> timepoints = np.array([0.0, 10.0, 100.0])
    >>> as_preference("uniform", timepoints).weights
    array([0.05, 0.5 , 0.45])
    >>> as_preference([1, 1, 2], timepoints).weights
    array([0.25, 0.25, 0.5 ])
    """
    if isinstance(preference, str):
        return _named_preference(preference, timepoints)
    if hasattr(preference, "cdf"):
        return _weighted_mean(_distribution_name(preference), _budget_weights(preference, timepoints))
    if callable(preference):
        return _from_callable(preference)
    return _weighted_mean("weights", _given_weights(preference, timepoints))


def _named_preference(name: str, timepoints: FloatArray) -> Preference:
    if name == "uniform":
        return _weighted_mean(name, _trapezoid(timepoints))
    if name == "log-uniform":
        if timepoints.size > 1 and timepoints[0] <= 0:
            raise InvalidInputError(
                f'preference "log-uniform" needs positive timepoints, and the first is {timepoints[0]:g}. '
                'Use "uniform", weights, or timepoints that start later.'
            )
        return _weighted_mean(name, _trapezoid(np.log(timepoints) if timepoints.size > 1 else timepoints))
    if name == "final":
        return _weighted_mean(name, np.eye(timepoints.size)[-1])
    if name == "worst":
        return Preference(name, None, _worst)
    raise InvalidInputError(
        f"preference: expected one of {', '.join(NAMES)}, a weight for each timepoint, a distribution of the budget "
        f"or a function of the ratings over time, got {short(name)}."
    )


def _worst(ratings: FloatArray) -> FloatArray:
    return ratings.min(axis=-1)


def _weighted_mean(name: str, weights: FloatArray) -> Preference:
    weights.flags.writeable = False
    return Preference(name, weights, lambda ratings: ratings @ weights)


def _trapezoid(positions: FloatArray) -> FloatArray:
    """Weights of the mean over an interval, with ratings linear between the positions."""
    if positions.size == 1:
        return np.ones(1)
    gaps = np.diff(positions) / (positions[-1] - positions[0])
    return (np.append(gaps, 0.0) + np.insert(gaps, 0, 0.0)) / 2


def _given_weights(weights: Any, timepoints: FloatArray) -> FloatArray:
    given = as_vector(weights, "preference")
    if given.size != timepoints.size:
        raise InvalidInputError(
            f"preference: expected a weight for each of {timepoints.size} timepoints, got {given.size}."
        )
    if not (np.isfinite(given) & (given >= 0)).all():
        wrong = given[~(np.isfinite(given) & (given >= 0))][0]
        raise InvalidInputError(f"preference: weights must be finite and not negative, got {wrong:g}.")
    if not given.any():
        raise InvalidInputError("preference: at least one weight must be positive, and all are 0.")
    scaled = given / given.max()  # the sum of huge weights would overflow
    return scaled / scaled.sum()


def _budget_weights(distribution: Any, timepoints: FloatArray) -> FloatArray:
    """Probability that each timepoint is the last one reached; smaller budgets count at the first timepoint."""
    name = _distribution_name(distribution)
    if hasattr(distribution, "freeze"):
        raise InvalidInputError(
            f"preference: the distribution {name} is not frozen. Call it first, with its parameters if it has any, "
            "as in scipy.stats.lognorm(0.5, scale=90)."
        )
    below = np.asarray(distribution.cdf(timepoints[1:]), dtype=np.float64)
    if hasattr(distribution, "pmf"):
        # A budget of exactly a timepoint reaches it, so P(B < t) is wanted, and cdf is P(B <= t).
        below = below - np.asarray(distribution.pmf(timepoints[1:]), dtype=np.float64)
    # A distribution with array parameters is several distributions, as a single point shows.
    if below.shape != (timepoints.size - 1,) or np.shape(distribution.cdf(timepoints[0])) != ():
        raise InvalidInputError(f"preference: expected one distribution of a budget, got several ({name}).")
    weights: FloatArray = np.diff(np.clip(below, 0.0, 1.0), prepend=0.0, append=1.0)
    if not (weights >= -1e-9).all():  # nan fails as well
        raise InvalidInputError(f"preference: the probabilities of {name} do not increase from 0 to 1.")
    weights[:] = np.maximum(weights, 0.0)
    return weights


def _distribution_name(distribution: Any) -> str:
    if hasattr(distribution, "dist"):  # the repr of scipy's frozen distributions says nothing
        given = [short(value) for value in distribution.args]
        given += [f"{name}={short(value)}" for name, value in distribution.kwds.items()]
        return f"{distribution.dist.name}({', '.join(given)})"
    return str(getattr(distribution, "name", None) or short(distribution))


def _from_callable(function: Callable[[FloatArray], Any]) -> Preference:
    inner = function.function if isinstance(function, _Vectorized) else function
    name = str(getattr(inner, "__name__", type(inner).__name__))

    def one_by_one(ratings: FloatArray) -> FloatArray:
        # A copy: the user's function may modify its argument in place.
        rows = np.array(ratings, order="C").reshape(-1, ratings.shape[-1])
        values = [_as_value(function(row), name) for row in rows]
        return np.array(values).reshape(ratings.shape[:-1])

    def all_at_once(ratings: FloatArray) -> FloatArray:
        values = np.asarray(function(ratings), dtype=np.float64)
        if values.shape != ratings.shape[:-1]:
            raise InvalidInputError(
                f"preference {name}: expected values of the shape {list(ratings.shape[:-1])} for ratings of the shape "
                f"{list(ratings.shape)}, got {list(values.shape)}. Time is the last axis."
            )
        if not np.isfinite(values).all():
            raise InvalidInputError(f"preference {name}: expected finite values, got nan or an infinite one.")
        return values

    return Preference(name, None, all_at_once if isinstance(function, _Vectorized) else one_by_one)


def _as_value(value: Any, name: str) -> float:
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in "fiu" or not np.isfinite(array):
        raise InvalidInputError(
            f"preference {name}: expected one finite number for the ratings of one algorithm over time, "
            f"got {short(value)}."
        )
    return float(array)


@dataclass(frozen=True, slots=True)
class Risk:
    """A risk profile.  Returned by :func:`as_risk`.

    Attributes
    ----------
    name
        ``best``, ``expected`` or ``quantile:LEVEL``.
    level
        Level of the quantile.
    """

    name: str
    level: float | None = None

    def scores(self, values: FloatArray) -> FloatArray:
        """Score of each candidate, larger is better, from ``values[draw, candidate]``."""
        if self.name == "best":
            return probability_best(values)
        return values.mean(axis=0) if self.level is None else np.quantile(values, self.level, axis=0)


def as_risk(risk: str) -> Risk:
    """Check a risk profile.

    >>> as_risk("quantile:0.05")
    Risk(name='quantile:0.05', level=0.05)
    """
    if isinstance(risk, str):
        name, _, level = risk.partition(":")
        if risk in ("best", "expected"):
            return Risk(risk)
        if name == "quantile":
            try:
                number = float(level)
            except ValueError:
                number = np.nan
            if 0 < number < 1:
                return Risk(f"quantile:{number:g}", number)
    raise InvalidInputError(
        f'risk: expected "best" (the probability of being best), "expected" or a quantile strictly between 0 and 1 as '
        f'in "quantile:0.05", got {short(risk)}.'
    )


def probability_best(values: FloatArray) -> FloatArray:
    """Probability of having the highest value, from ``values[draw, candidate]``; ties count in full.

    >>> probability_best(np.array([[0.6, 0.4], [0.5, 0.5], [0.2, 0.8], [0.7, 0.3]]))
    array([0.75, 0.5 ])
    """
    return (values >= values.max(axis=1, keepdims=True)).mean(axis=0)
