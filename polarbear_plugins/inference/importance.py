"""Importance sampling: proposals, smoothed weights, resampling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.validation import FloatArray

__all__ = ["antithetic_normals", "resample", "smooth_weights", "systematic"]


def smooth_weights(log_weights: FloatArray) -> tuple[FloatArray, float, float]:
    """Pareto-smoothed and normalised weights, the shape k-hat of their tail, and the effective number of draws."""
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]  # imports much of scipy, so not before it is needed

    weights = np.exp(log_weights - log_weights.max())
    tail = np.partition(weights, -(weights.size // 5) - 1)[-(weights.size // 5) - 1 :]
    if np.ptp(tail) < 1e-10:
        k_hat = 0.0  # weights that are all but equal have no tail to fit
    else:
        # It takes log-likelihoods, and weighs by their inverse.
        smoothed, shape = array_stats.psislw(-log_weights)  # type: ignore[no-untyped-call]
        weights = np.exp(smoothed - smoothed.max())
        k_hat = float(shape) if np.isfinite(shape) else np.inf
    weights /= weights.sum()
    return weights, k_hat, float(1 / (weights @ weights))


def systematic(probabilities: FloatArray, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """``count`` indices in increasing order, each as often as its probability says, up to one."""
    edges = np.cumsum(probabilities)
    places = np.searchsorted(edges, (np.arange(count) + rng.random()) / count * edges[-1], side="right")
    chosen: NDArray[np.intp] = np.minimum(places, len(probabilities) - 1)
    return chosen


def resample(weights: FloatArray, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """``count`` indices in random order, each as often as its weight says, up to one."""
    return rng.permutation(systematic(weights, count, rng))


def antithetic_normals(count: int, dimension: int, rng: np.random.Generator) -> FloatArray:
    """Draw standard normal points, each with its mirror image: what is odd around the mode cancels exactly."""
    half = rng.standard_normal((-(-count // 2), dimension))
    return np.concatenate([half, -half])[:count]
