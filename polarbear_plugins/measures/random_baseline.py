"""What random search reaches: the scale of Bayesmark's scores, and random-search equivalents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.errors import InvalidInputError

# Bayesmark lowers the best known value by this many units in the last place, to avoid division by zero.
_PADDING = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomBaseline:
    """The scale of each instance and the progress of random search on it, from pooled random evaluations.

    Attributes
    ----------
    clip
        ``clip[instance]``: median of a single random evaluation.  It has the loss 1, and so have worse values.
    best
        ``best[instance]``: slightly below the best value found.  It has the loss 0.
    mean, median
        ``mean[iteration, instance]``: expected best value of random search, clipped, and its median, not clipped.
    doubtful
        Instances on which random search does best, so that the scale means little.
    pooled
        For each instance the losses of all random evaluations, from good to bad.
    """

    instances: tuple[str, ...]
    evaluations: int
    clip: FloatArray
    best: FloatArray
    mean: FloatArray
    median: FloatArray
    doubtful: tuple[str, ...]
    pooled: tuple[FloatArray, ...]
    _curves: tuple[FloatArray, ...]
    _known: dict[int, float] = field(default_factory=dict, repr=False)

    @property
    def limit(self) -> int:
        """Number of random evaluations on every instance; longer random searches cannot be assessed."""
        return min(len(losses) for losses in self.pooled)

    def expected_loss(self, evaluations: int) -> float:
        """Mean over the instances of the expected loss of that many random evaluations."""
        number = as_whole_number(evaluations, "evaluations", at_least=1)
        if number > self.limit:
            raise InvalidInputError(
                f"evaluations: there are {self.limit} random evaluations to pool, which say nothing about {number}."
            )
        if number not in self._known:
            self._known[number] = sum(
                _weighted_sum(_weights_of_smallest(len(curve), number), curve) for curve in self._curves
            )
        return self._known[number]

    def equivalent(self, loss: float) -> int | None:
        """Smallest number of random evaluations expected to reach a loss; ``None`` if all together do not."""
        if not self.expected_loss(self.limit) <= loss:
            return None
        low, high = 1, self.limit  # the expected loss never increases with the number of evaluations
        while low < high:
            middle = (low + high) // 2
            if self.expected_loss(middle) <= loss:
                high = middle
            else:
                low = middle + 1
        return high


def make_baseline(
    random: Mapping[str, FloatArray], best: Mapping[str, float], batches: Sequence[int]
) -> RandomBaseline:
    """Baseline from random evaluations.

    Parameters
    ----------
    random
        For each instance, all values of random search in any order; ``inf`` for failed evaluations.
    best
        For each instance, the best value found by any algorithm.
    batches
        Number of evaluations made after each iteration.
    """
    evaluations = np.asarray(batches)
    weights = {n: np.zeros((len(evaluations), n)) for n in {len(values) for values in random.values()}}
    for n, rows in weights.items():
        for row, m in zip(rows, evaluations.tolist(), strict=True):
            found = _weights_of_smallest(n, m)
            row[: len(found)] = found
    clips, lows, means, medians, doubtful, pooled = [], [], [], [], [], []
    for instance, values in random.items():
        clip = float(np.quantile(values, 0.5, method="inverted_cdf"))
        if not math.isfinite(clip):
            raise InvalidInputError(f"{instance}: more than half of the random evaluations failed; there is no scale.")
        if not math.isfinite(best[instance]):
            raise InvalidInputError(f"{instance}: the best value found is {best[instance]}; there is no scale.")
        # Medians of the best of m random evaluations are quantiles of a single one.
        median = np.quantile(values, 1.0 - (1.0 - 0.5) ** (1.0 / evaluations), method="inverted_cdf")
        if (median <= best[instance]).any():
            doubtful.append(instance)
        low = float(best[instance] + _PADDING * np.spacing(-max(np.nextafter(0, 1), abs(best[instance]))))
        clipped = np.sort(np.minimum(clip, values))
        mean = weights[len(values)] @ clipped
        clips.append(clip)
        lows.append(low)
        means.append(np.minimum.accumulate(np.minimum(clip, mean)))
        medians.append(median)
        pooled.append(normalise(clipped, low, clip))
    return RandomBaseline(
        instances=tuple(random),
        evaluations=int(evaluations[-1]),
        clip=np.array(clips),
        best=np.array(lows),
        mean=np.stack(means, axis=1),
        median=np.stack(medians, axis=1),
        doubtful=tuple(doubtful),
        pooled=tuple(pooled),
        # The weights of sorted losses depend only on their number: sum the instances with equally many.
        _curves=tuple(np.sum([each for each in pooled if len(each) == n], axis=0) / len(pooled) for n in weights),
    )


def normalise(values: FloatArray, best: FloatArray | float, worst: FloatArray | float) -> FloatArray:
    """Losses of values: 0 at the best, 1 at the worst.

    >>> normalise(np.array([2.0, 3.0, 4.0]), 2.0, 4.0)
    array([0. , 0.5, 1. ])
    """
    # The order of operations is Bayesmark's: it matters where the scale is a few units in the last place.
    with np.errstate(over="ignore", invalid="ignore"):  # the inverse of a tiny scale overflows
        losses: FloatArray = np.true_divide(1.0, np.subtract(worst, best)) * (values - best)
    return losses


def smallest_of(values: FloatArray, number: int) -> float:
    """Mean of the smallest of ``number`` values drawn without replacement: unbiased for independent draws.

    >>> smallest_of(np.array([3.0, 1.0, 2.0]), 2)  # of 1 2, 1 3, 2 3
    1.3333333333333333
    """
    return _weighted_sum(_weights_of_smallest(len(values), number), np.sort(values))


def _weights_of_smallest(n: int, number: int) -> FloatArray:
    """Probability of each of n sorted values to be the smallest of ``number`` drawn, without negligible ones."""
    # The i-th weight is C(n - i - 1, number - 1) / C(n, number), computed from the previous one. Weights fall at least
    # as fast as exp(-i (number - 1) / (n - 1)), and soon to subnormal numbers, which are slow.
    last = n if number == 1 else min(n, 2 + math.ceil(100 * (n - 1) / (number - 1)))
    left = np.arange(n - 1, n - last, -1, dtype=np.float64)
    ratios = np.maximum(left - number + 1, 0.0) / left
    return number / n * np.concatenate(([1.0], np.cumprod(ratios)))


def _weighted_sum(weights: FloatArray, ordered: FloatArray) -> float:
    return float((weights * ordered[: len(weights)]).sum())
