"""Mean losses of algorithms that were not all run on the same instances, and which of them is the lowest.

A loss is the effect of its instance, plus the mean loss of its algorithm, plus noise:

    loss[i, c] = instance[i] + mean[c] + noise[i, c],        mean ~ N(level, signal * K),    noise ~ N(0, variance)

Instances may be as different as they like (a flat prior).  The means are drawn towards their common level, the more
the noisier they are: the lowest of many means is partly luck.  Where a correlation ``K`` between algorithms is given,
such as that of configurations with similar parameters, neighbours inform each other.

The variance is integrated in closed form; the ratio of signal to noise, and the choice of ``K``, are summed over a
grid.  So nothing is sampled or optimised until draws are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError

# Shares by which a mean over all instances is drawn towards the level: uniform, so that no share is ruled out.
_SHRINKAGE = (np.arange(16) + 0.5) / 16
# Points of the grid with less than this weight are left out.
_NEGLIGIBLE = 1e-4


@dataclass(frozen=True, slots=True)
class _Fit:
    """Posterior of the effects of the algorithms, given a correlation and ratios of signal to noise."""

    correlation: FloatArray
    loadings: FloatArray  # from effects to the directions in which noise and signal are both independent
    gains: FloatArray  # [ratio, direction]
    scores: FloatArray  # what was observed in these directions
    ratios: FloatArray
    sums: FloatArray  # [ratio], squares that the noise has to explain
    log_weights: FloatArray

    def effects(self, at: int) -> FloatArray:
        """Posterior mean of the effects at one ratio."""
        return self.loadings @ (self.gains[at] * self.scores)

    def covariance(self, at: int) -> FloatArray:
        """Posterior covariance of the effects at one ratio, in units of the variance of the noise."""
        return self.ratios[at] * (self.correlation - (self.loadings * self.gains[at]) @ self.loadings.T)


class MeanModel:
    """Posterior of the mean losses of algorithms.

    Parameters
    ----------
    losses
        ``losses[instance, algorithm]``, finite, or ``nan`` where an algorithm was not run.
    correlations
        Correlations between the means of algorithms, any of which may hold; that means are independent of each other
        is always considered as well.

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
    array([5.1, 6. , 6.9])
    """

    def __init__(self, losses: FloatArray, correlations: Sequence[FloatArray] = ()) -> None:
        present = ~np.isnan(losses)
        if not np.isfinite(losses[present]).all():
            raise InvalidInputError("MeanModel: expected finite losses, or nan where there is none.")
        present, losses = present[present.any(axis=1)], losses[present.any(axis=1)]
        in_row = present.sum(axis=1)
        self._freedom = int(in_row.sum()) - in_row.size
        if self._freedom < 1:
            raise InvalidInputError("MeanModel: expected an instance on which two algorithms were run, got none.")
        row_means = np.nanmean(losses, axis=1)
        shares = present / in_row[:, None]
        within = np.where(present, losses - row_means[:, None], 0.0)
        # The instances are integrated out: what remains of the data are sums of differences from their row's mean.
        information = np.diag(present.sum(axis=0)) - present.T @ shares
        sizes, directions = np.linalg.eigh(information)
        seen = sizes > 1e-9 * sizes[-1]
        self._roots = directions[:, seen] * np.sqrt(sizes[seen])
        observed = (directions[:, seen].T @ within.sum(axis=0)) / np.sqrt(sizes[seen])
        squares = float((within**2).sum())
        # Without noise at all the likelihood has no maximum; rounding is noise, too.
        rest = max(squares - float(observed @ observed), 1e-14 * float((np.abs(losses[present]).max()) ** 2), 1e-300)
        ratios = (1 / _SHRINKAGE - 1) / float(present.sum(axis=0).max())
        everywhere = [np.eye(losses.shape[1]), *correlations]
        self._fits = [self._fit(np.asarray(one, dtype=np.float64), observed, rest, ratios) for one in everywhere]
        weights = softmax(np.concatenate([fit.log_weights for fit in self._fits]))
        weights[weights < _NEGLIGIBLE * weights.max()] = 0.0
        self._weights: FloatArray = weights / weights.sum()
        self._share, self._level = shares.mean(axis=0), float(row_means.mean())
        self._summarise(float((1 / in_row).mean()) / in_row.size)

    def _fit(self, correlation: FloatArray, observed: FloatArray, rest: float, ratios: FloatArray) -> _Fit:
        spread, turn = np.linalg.eigh(self._roots.T @ correlation @ self._roots)
        spread = np.maximum(spread, 0.0)
        scores = turn.T @ observed
        total = 1 + ratios[:, None] * spread
        sums = rest + (scores**2 / total).sum(axis=1)
        log_weights = -0.5 * np.log(total).sum(axis=1) - 0.5 * self._freedom * np.log(sums)
        loadings = correlation @ self._roots @ turn
        gains = ratios[:, None] / total
        return _Fit(correlation, loadings, gains, scores, ratios, sums, log_weights)

    def _summarise(self, instance_share: float) -> None:
        means, squares, variances = np.zeros(self._share.size), np.zeros(self._share.size), 0.0
        for weight, fit, at in self._points():
            effects = self._level + self._relative(fit.effects(at))
            variance = fit.sums[at] / max(self._freedom - 2, 1)
            covariance = self._relative(self._relative(fit.covariance(at)).T)
            means += weight * effects
            squares += weight * (effects**2 + variance * (np.diag(covariance) + instance_share))
            variances += weight * variance
        self.means: FloatArray = means
        self.spread: FloatArray = np.sqrt(np.maximum(squares - means**2, 0.0))
        self.noise = float(np.sqrt(variances))

    def _points(self) -> list[tuple[float, _Fit, int]]:
        """Points of the grid that matter: weight, fit and place of the ratio."""
        size = len(_SHRINKAGE)
        return [(float(self._weights[k]), self._fits[k // size], int(k % size)) for k in np.flatnonzero(self._weights)]

    def _relative(self, effects: FloatArray) -> FloatArray:
        """Effects relative to the level of the instances, which is known where the effects are."""
        return effects - self._share @ effects

    def draw(self, draws: int, rng: np.random.Generator) -> FloatArray:
        """Draws of all means together, ``[draw, algorithm]``; the level of the instances is that of the data."""
        points = self._points()
        counts = rng.multinomial(draws, [weight for weight, _, _ in points])
        parts = []
        for count, (_, fit, at) in zip(counts.tolist(), points, strict=True):
            sizes, axes = np.linalg.eigh(fit.covariance(at))
            normal = rng.standard_normal((count, sizes.size)) * np.sqrt(np.maximum(sizes, 0.0)) @ axes.T
            noise = np.sqrt(fit.sums[at] / rng.chisquare(self._freedom, (count, 1)))
            parts.append(fit.effects(at) + noise * normal)
        effects = np.concatenate(parts)
        return self._level + self._relative(effects.T).T
