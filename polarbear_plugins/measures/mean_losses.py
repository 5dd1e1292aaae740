"""Mean losses of algorithms that were not all run on the same instances, and which of them is the lowest.

A loss is the effect of its instance, plus the mean loss of its algorithm, plus noise:

    loss[i, c] = instance[i] + mean[c] + noise[i, c],        mean ~ N(level, signal * K),    noise ~ N(0, variance)

Instances may be as different as they like (a flat prior).  The means are drawn towards their common level, the more
the noisier they are: the lowest of many means is partly luck.  Where a correlation ``K`` between algorithms is given,
such as that of configurations with similar parameters, neighbours inform each other.

Repetitions whose numbers mean nothing have no instances; then all losses share one level.

The variance is integrated in closed form; the ratio of signal to noise, and the choice of ``K``, are summed over a
grid.  So nothing is sampled or optimised until draws are asked for.
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
    level: float  # mean of the rows' means
    level_variance: float  # of the level, in units of the noise, if the effects were known


def _reduce(losses: FloatArray, paired: bool, resolution: float) -> _Data:
    present = ~np.isnan(losses)
    counts = present.astype(np.float64) if paired else present.sum(axis=0, keepdims=True, dtype=np.float64)
    in_row = counts.sum(axis=1, keepdims=True)
    freedom = int(in_row.sum()) - in_row.size
    if freedom < 1:
        raise InvalidInputError("MeanModel: expected an instance on which two algorithms were run, got none.")
    shares = counts / in_row
    row_means = np.nansum(losses, axis=1 if paired else None, keepdims=True) / in_row
    within = np.where(present, losses - row_means, 0.0)
    sizes, axes = np.linalg.eigh(np.diag(counts.sum(axis=0)) - counts.T @ shares)
    axes, scales = axes[:, sizes > 1e-9 * sizes[-1]], np.sqrt(sizes[sizes > 1e-9 * sizes[-1]])
    observed = axes.T @ within.sum(axis=0) / scales
    effects = axes @ (observed / scales)
    residuals = within - np.where(present, effects - (shares @ effects)[:, None], 0.0)
    # Without any noise the likelihood has no maximum; rounding is noise, too.
    rounding = max(resolution, _ROUNDING) ** 2 / 12
    rest = max(float((residuals**2).sum()), float(in_row.sum()) * rounding)
    level_variance = float((1 / in_row).mean()) / in_row.size
    runs = float(counts.sum(axis=0).max())
    share, level = shares.mean(axis=0), float(row_means.mean())
    return _Data(axes * scales, observed, rest, freedom, runs, share, level, level_variance)


@dataclass(frozen=True, slots=True)
class _Fit:
    """Posterior of the effects of the algorithms, given a correlation and ratios of signal to noise."""

    correlation: FloatArray
    directions: FloatArray  # [algorithm, direction] in which signal and noise are both independent
    loadings: FloatArray  # their covariance with the effects
    scores: FloatArray  # what was observed in these directions
    gains: FloatArray  # [ratio, direction]
    ratios: FloatArray
    sums: FloatArray  # [ratio], squares that the noise has to explain
    log_weights: FloatArray

    def moments(self, share: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means of effects above their weighted mean, and variances in units of the noise, ``[ratio, algorithm]``."""
        loadings = self.loadings - share @ self.loadings
        covariance = self.correlation - share @ self.correlation
        prior = np.diag(covariance) - covariance @ share
        return (self.gains * self.scores) @ loadings.T, self.ratios[:, None] * (prior - self.gains @ (loadings**2).T)

    def draw(self, at: NDArray[np.intp], freedom: int, rng: np.random.Generator) -> FloatArray:
        """Draw effects at each of these ratios: from the prior, corrected by the difference to what was observed."""
        sizes, axes = np.linalg.eigh(self.correlation)
        root = axes * np.sqrt(np.maximum(sizes, 0.0))
        prior = np.sqrt(self.ratios[at])[:, None] * rng.standard_normal((at.size, sizes.size)) @ root.T
        seen = prior @ self.directions + rng.standard_normal((at.size, self.scores.size))
        noise = np.sqrt(self.sums[at] / rng.chisquare(freedom, at.size))[:, None]
        return noise * prior + (self.gains[at] * (self.scores - noise * seen)) @ self.loadings.T


def _fit(data: _Data, correlation: FloatArray) -> _Fit:
    spread, turn = np.linalg.eigh(data.roots.T @ correlation @ data.roots)
    directions, scores = data.roots @ turn, turn.T @ data.observed
    ratios = np.exp(-_LOGITS) / data.runs
    total = 1 + ratios[:, None] * np.maximum(spread, 0.0)
    sums = data.rest + (scores**2 / total).sum(axis=1)
    uniform = log_expit(_LOGITS) + log_expit(-_LOGITS)  # shares, in terms of their logits
    log_weights = uniform - 0.5 * np.log(total).sum(axis=1) - 0.5 * data.freedom * np.log(sums)
    gains = ratios[:, None] / total
    return _Fit(correlation, directions, correlation @ directions, scores, gains, ratios, sums, log_weights)


class MeanModel:
    """Posterior of the mean losses of algorithms.

    Parameters
    ----------
    losses
        ``losses[instance, algorithm]``, finite, or ``nan`` where an algorithm was not run.
    correlations
        Correlations between the means of algorithms, any of which may hold; that means are independent of each other
        is always considered as well.
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
        paired: bool = True,
        resolution: float = 0.0,
    ) -> None:
        losses = losses[~np.isnan(losses).all(axis=1)]
        given = losses[~np.isnan(losses)]
        if not np.isfinite(given).all():
            raise InvalidInputError("MeanModel: expected finite losses, or nan where there is none.")
        # A power of two: squares do not overflow, and nothing is rounded.
        self._unit = float(np.ldexp(1.0, np.frexp(np.abs(given).max(initial=0.0))[1] - 1))
        self._data = data = _reduce(losses / self._unit, paired, resolution / self._unit)
        everywhere = [np.eye(losses.shape[1]), *correlations]
        self._fits = [_fit(data, np.asarray(correlation, dtype=np.float64)) for correlation in everywhere]
        weights = softmax([fit.log_weights for fit in self._fits])
        weights[weights < _NEGLIGIBLE * weights.max()] = 0.0
        self._weights: FloatArray = weights / weights.sum()
        self._summarise()

    def _summarise(self) -> None:
        data = self._data
        means, squares, variances = np.zeros(data.share.size), np.zeros(data.share.size), 0.0
        for weights, fit in zip(self._weights, self._fits, strict=True):
            if weights.any():
                effects, spreads = fit.moments(data.share)
                variance = fit.sums / max(data.freedom - 2, 1)
                means += weights @ effects
                squares += weights @ (effects**2 + variance[:, None] * (spreads + data.level_variance))
                variances += float(weights @ variance)
        self.means: FloatArray = self._unit * (data.level + means)
        self.spread: FloatArray = self._unit * np.sqrt(np.maximum(squares - means**2, 0.0))
        self.noise = self._unit * float(np.sqrt(variances))

    def draw(self, draws: int, rng: np.random.Generator) -> FloatArray:
        """Draws of all means together, ``[draw, algorithm]``; the level of the instances is that of the data."""
        fits, ratios = np.unravel_index(
            rng.choice(self._weights.size, draws, p=self._weights.ravel()), self._weights.shape
        )
        parts = [self._fits[k].draw(ratios[fits == k], self._data.freedom, rng) for k in np.unique(fits)]
        effects = np.concatenate(parts)
        return self._unit * (self._data.level + effects - (effects @ self._data.share)[:, None])
