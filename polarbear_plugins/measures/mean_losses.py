"""Mean losses of algorithms that were not all run on the same instances, and which of them is the lowest.

A loss is the effect of its instance, plus the mean loss of its algorithm, plus noise:

    loss[i, c] = instance[i] + mean[c] + noise[i, c],     mean ~ N(level, signal * K),     noise[i] ~ N(0, variance * R)

Instances may be as different as they like (a flat prior).  The means are drawn towards their common level, the more
the noisier they are: the lowest of many means is partly luck.  Where a correlation ``K`` between algorithms is given,
such as that of configurations with similar parameters, neighbours inform each other.  They may also have a part of the
noise in common (``R``): two similar models make similar errors on the same fold.  Then the difference between them is
known better than either of them, and a smooth curve through the means would hide it.

Repetitions whose numbers mean nothing have no instances; then all losses share one level.

The variance is integrated in closed form; the ratio of signal to noise, and the choice of ``K`` and ``R``, are summed
over a grid.  So nothing is sampled or optimised until draws are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, softmax

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError

# Logits of the share by which a mean over all instances is drawn towards the level.  All shares are equally likely
# beforehand; tiny ones are there for algorithms that differ by orders of magnitude.
_LOGITS = np.arange(-30.0, 4.25, 0.25)
# Losses are taken to be rounded at least by this, relative to the largest.
_ROUNDING = 1e-12
# A part of a mean may have nothing to do with its neighbours: this share of its variance.
_ALONE = 0.2
# Points of the grid with less than this weight are left out.
_NEGLIGIBLE = 1e-4


@dataclass(frozen=True, slots=True)
class _Data:
    """What the losses say about the effects of the algorithms once the instances are integrated out."""

    roots: FloatArray  # [algorithm, direction]: directions that the losses show, by the root of their precision
    observed: FloatArray  # what was observed in these directions, with unit noise
    rest: float  # squares that no effects explain
    freedom: int
    runs: float  # of the algorithm that has most
    share: FloatArray  # of the algorithms in the level
    level: float  # mean of the rows' levels
    level_variance: float  # of the level, in units of the noise, if the effects were known
    log_volume: float  # of the noise
    noise_correlation: FloatArray


@dataclass(frozen=True, slots=True)
class _Row:
    """Losses with one level: what remains of their precision when the level is integrated out."""

    places: NDArray[np.intp]  # of the algorithms
    losses: FloatArray  # above their mean
    precision: FloatArray
    weights: FloatArray  # of the losses in the level
    level: float  # if all effects were zero
    information: float  # about the level
    log_volume: float

    @classmethod
    def of(cls, places: NDArray[np.intp], losses: FloatArray, correlation: FloatArray | None) -> _Row:
        """A row with noise that is independent, or correlated between algorithms."""
        ones, log_volume = np.ones(places.size), 0.0
        if correlation is None:
            precision, towards = np.eye(places.size), ones
        else:
            root = np.linalg.cholesky(correlation[np.ix_(places, places)])
            log_volume = 2 * float(np.log(np.diag(root)).sum())
            inverse = np.linalg.inv(root)
            precision = inverse.T @ inverse
            towards = precision @ ones
        information, middle = float(towards.sum()), float(losses.mean())
        weights = towards / information
        return cls(
            places=places,
            losses=losses - middle,
            precision=precision - np.outer(towards, weights),
            weights=weights,
            level=middle + float(weights @ (losses - middle)),
            information=information,
            log_volume=log_volume + float(np.log(information)),
        )


def _rows(losses: FloatArray, paired: bool, correlation: FloatArray | None) -> list[_Row]:
    present = ~np.isnan(losses)
    if not paired:
        rows, places = np.nonzero(present)
        return [_Row.of(places, losses[rows, places], None)]
    return [_Row.of(np.flatnonzero(here), row[here], correlation) for here, row in zip(present, losses, strict=True)]


def _reduce(losses: FloatArray, paired: bool, resolution: float, correlation: FloatArray | None = None) -> _Data:
    count = losses.shape[1]
    rows = _rows(losses, paired, correlation)
    runs = sum(row.places.size for row in rows)
    freedom = runs - len(rows)
    if freedom < 1:
        raise InvalidInputError("MeanModel: expected an instance on which two algorithms were run, got none.")
    information, towards, share = np.zeros((count, count)), np.zeros(count), np.zeros(count)
    for row in rows:
        np.add.at(information, np.ix_(row.places, row.places), row.precision)
        np.add.at(towards, row.places, row.precision @ row.losses)
        np.add.at(share, row.places, row.weights / len(rows))
    sizes, axes = np.linalg.eigh(information)
    axes, scales = axes[:, sizes > 1e-9 * sizes[-1]], np.sqrt(sizes[sizes > 1e-9 * sizes[-1]])
    observed = axes.T @ towards / scales
    effects = axes @ (observed / scales)
    residuals = [row.losses - effects[row.places] for row in rows]
    squares = sum(float(one @ row.precision @ one) for one, row in zip(residuals, rows, strict=True))
    # Without any noise the likelihood has no maximum; rounding is noise, too.
    rounding = max(resolution, _ROUNDING) ** 2 / 12
    return _Data(
        roots=axes * scales,
        observed=observed,
        rest=max(squares, runs * rounding),
        freedom=freedom,
        runs=float((~np.isnan(losses)).sum(axis=0).max()),
        share=share,
        level=float(np.mean([row.level for row in rows])),
        level_variance=float(np.mean([1 / row.information for row in rows])) / len(rows),
        log_volume=sum(row.log_volume for row in rows),
        noise_correlation=np.eye(count) if correlation is None else correlation,
    )


@dataclass(frozen=True, slots=True)
class _Fit:
    """Posterior of the effects of the algorithms, given correlations and ratios of signal to noise."""

    data: _Data
    correlation: FloatArray
    directions: FloatArray  # [algorithm, direction] in which signal and noise are both independent
    loadings: FloatArray  # their covariance with the effects
    scores: FloatArray  # what was observed in these directions
    gains: FloatArray  # [ratio, direction]
    ratios: FloatArray
    sums: FloatArray  # [ratio], squares that the noise has to explain
    log_weights: FloatArray

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means of the losses, and variances in units of the noise, ``[ratio, algorithm]``."""
        share = self.data.share
        loadings = self.loadings - share @ self.loadings
        covariance = self.correlation - share @ self.correlation
        prior = np.diag(covariance) - covariance @ share
        variances = self.ratios[:, None] * (prior - self.gains @ (loadings**2).T)
        return self.data.level + (self.gains * self.scores) @ loadings.T, variances + self.data.level_variance

    def draw(self, at: NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
        """Draw means at each of these ratios: from the prior, corrected by the difference to what was observed."""
        sizes, axes = np.linalg.eigh(self.correlation)
        root = axes * np.sqrt(np.maximum(sizes, 0.0))
        prior = np.sqrt(self.ratios[at])[:, None] * rng.standard_normal((at.size, sizes.size)) @ root.T
        seen = prior @ self.directions + rng.standard_normal((at.size, self.scores.size))
        noise = np.sqrt(self.sums[at] / rng.chisquare(self.data.freedom, at.size))[:, None]
        effects = noise * prior + (self.gains[at] * (self.scores - noise * seen)) @ self.loadings.T
        return self.data.level + effects - (effects @ self.data.share)[:, None]


def _fit(data: _Data, correlation: FloatArray) -> _Fit:
    spread, turn = np.linalg.eigh(data.roots.T @ correlation @ data.roots)
    directions, scores = data.roots @ turn, turn.T @ data.observed
    ratios = np.exp(-_LOGITS) / data.runs
    total = 1 + ratios[:, None] * np.maximum(spread, 0.0)
    sums = data.rest + (scores**2 / total).sum(axis=1)
    uniform = log_expit(_LOGITS) + log_expit(-_LOGITS)  # shares, in terms of their logits
    log_weights = uniform - 0.5 * (data.log_volume + np.log(total).sum(axis=1) + data.freedom * np.log(sums))
    gains = ratios[:, None] / total
    return _Fit(data, correlation, directions, correlation @ directions, scores, gains, ratios, sums, log_weights)


class MeanModel:
    """Posterior of the mean losses of algorithms.

    Parameters
    ----------
    losses
        ``losses[instance, algorithm]``, finite, or ``nan`` where an algorithm was not run.
    correlations
        Correlations between the means of algorithms, any of which may hold; that means are independent of each other
        is always considered as well.
    common
        Shares of the noise that algorithms with correlated means may have in common on an instance, beside none.
    paired
        Whether the losses in a row belong to the same instance; otherwise a row is the number of a repetition, and
        algorithms may have different numbers of them.
    resolution
        Losses are rounded to multiples of this, so that the noise is at least that of rounding.

    Attributes
    ----------
    means
        Posterior mean of each algorithm's mean loss over all instances, in the units of the losses.
    spread
        Posterior standard deviation of the same.
    noise
        Standard deviation of the noise.

    Examples
    --------
    The third algorithm was run on the two easy instances only.

    >>> model = MeanModel(np.array([[1.0, 2.0, 3.1], [2.0, 3.1, 4.0], [8.1, 9.0, np.nan], [9.0, 10.1, np.nan]]))
    >>> model.means.round(1)
    array([5.1, 6. , 7. ])
    """

    def __init__(
        self,
        losses: FloatArray,
        correlations: Sequence[FloatArray] = (),
        *,
        common: Sequence[float] = (),
        paired: bool = True,
        resolution: float = 0.0,
    ) -> None:
        losses = losses[~np.isnan(losses).all(axis=1)]
        given = losses[~np.isnan(losses)]
        if not np.isfinite(given).all():
            raise InvalidInputError("MeanModel: expected finite losses, or nan where there is none.")
        # A power of two: squares do not overflow, and nothing is rounded.
        self._unit = float(np.ldexp(1.0, np.frexp(np.abs(given).max(initial=0.0))[1] - 1))
        losses, resolution = losses / self._unit, resolution / self._unit
        same = np.eye(losses.shape[1])
        independent = _reduce(losses, paired, resolution)
        mixed = [(1 - _ALONE) * correlation + _ALONE * same for correlation in correlations]
        self._fits = [_fit(independent, correlation) for correlation in (same, *correlations, *mixed)]
        for correlation in correlations if paired else ():
            for share in common:
                data = _reduce(losses, paired, resolution, share * correlation + (1 - share) * same)
                self._fits.append(_fit(data, correlation))
        weights = softmax([fit.log_weights for fit in self._fits])
        weights[weights < _NEGLIGIBLE * weights.max()] = 0.0
        self._weights: FloatArray = weights / weights.sum()
        self._summarise()

    def _summarise(self) -> None:
        count = self._fits[0].data.share.size
        means, squares, variances = np.zeros(count), np.zeros(count), np.zeros((count, count))
        for weights, fit in zip(self._weights, self._fits, strict=True):
            if weights.any():
                found, spreads = fit.moments()
                variance = fit.sums / max(fit.data.freedom - 2, 1)
                means += weights @ found
                squares += weights @ (found**2 + variance[:, None] * spreads)
                variances += float(weights @ variance) * fit.data.noise_correlation
        self.means: FloatArray = self._unit * means
        self.spread: FloatArray = self._unit * np.sqrt(np.maximum(squares - means**2, 0.0))
        self.noise = self._unit * float(np.sqrt(variances[0, 0]))
        self._noise_covariance: FloatArray = variances

    def noise_of_differences(self, place: int) -> FloatArray:
        """Standard deviation of the noise in the difference between each algorithm and one of them, on one instance."""
        of_each = np.diag(self._noise_covariance)
        return self._unit * np.sqrt(np.maximum(of_each + of_each[place] - 2 * self._noise_covariance[place], 0.0))

    def draw(self, draws: int, rng: np.random.Generator) -> FloatArray:
        """Draws of all means together, ``[draw, algorithm]``; the level of the instances is that of the data."""
        fits, ratios = np.unravel_index(
            rng.choice(self._weights.size, draws, p=self._weights.ravel()), self._weights.shape
        )
        return self._unit * np.concatenate([self._fits[k].draw(ratios[fits == k], rng) for k in np.unique(fits)])
