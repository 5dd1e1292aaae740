"""Importance sampling: proposals, smoothed weights, resampling."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray


def smooth_weights(log_weights: FloatArray) -> tuple[FloatArray, float, float]:
    """Pareto-smoothed and normalised weights, the shape k-hat of their tail, and the effective number of draws.

    After Vehtari, Simpson, Gelman, Yao and Gabry (2024), as in arviz-stats, which takes four times as long.
    """
    weights = np.exp(log_weights - log_weights.max())
    size = min(weights.size // 5, int(3 * math.sqrt(weights.size)))
    largest = np.argpartition(weights, -size - 1)[-size - 1 :]
    largest = largest[np.argsort(weights[largest])]
    cutoff, tail = weights[largest[0]], largest[1:]
    k_hat = 0.0
    if weights[tail[-1]] - cutoff > 1e-10:  # nearly equal weights have no tail to fit
        with np.errstate(all="ignore"):  # a tail that cannot be fitted gets the shape inf, and very heavy ones overflow
            k_hat, scale = _fit_pareto(weights[tail] - cutoff)
            if math.isfinite(k_hat):
                above = np.log1p((np.arange(size) + 0.5) / -size)
                excess = np.expm1(-k_hat * above) / k_hat if k_hat else -above
                weights[tail] = np.minimum(cutoff + scale * excess, 1.0)
    weights /= weights.sum()
    return weights, k_hat, float(1 / (weights @ weights))


def _fit_pareto(excess: FloatArray) -> tuple[float, float]:
    """Shape and scale of a generalised Pareto distribution (Zhang and Stephens 2009) fitted to sorted values.

    The shape is shrunk a little towards 0.5; it is infinite if the fit fails.
    """
    size = excess.size
    count = 30 + int(math.sqrt(size))
    slopes = 1 / excess[-1] + (1 - np.sqrt(count / (np.arange(count) + 0.5))) / (3 * excess[int(size / 4 + 0.5) - 1])
    shapes = np.log(1 - slopes[:, None] * excess).mean(axis=1)
    fits = size * (np.log(-slopes / shapes) - shapes - 1)
    shares = np.exp(fits - fits.max())
    slope = float(shares @ slopes / shares.sum())
    shape = float(np.log1p(-slope * excess).mean())
    scale = -shape / slope
    if not (math.isfinite(shape) and scale > 0):
        return math.inf, 1.0
    return (size * shape + 5) / (size + 10), scale


def systematic_resample(probabilities: FloatArray, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """``count`` indices in increasing order, each within one of its expected number (systematic resampling)."""
    edges = np.cumsum(probabilities)
    times = np.ceil(edges * (count / edges[-1]) - rng.random()).astype(np.intp)
    times[np.searchsorted(edges, edges[-1]) :] = count  # whatever the rounding, the last possible index
    times[1:] -= times[:-1].copy()
    return np.repeat(np.arange(times.size), times)


def resample(weights: FloatArray, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """``count`` indices in random order, each within one of its expected number."""
    return rng.permutation(systematic_resample(weights, count, rng))


def antithetic_normals(count: int, dimension: int, rng: np.random.Generator) -> FloatArray:
    """Standard normal points, each with its mirror image: odd functions around the mode cancel exactly."""
    half = rng.standard_normal((-(-count // 2), dimension))
    return np.concatenate([half, -half])[:count]
