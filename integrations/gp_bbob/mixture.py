"""The weights of the 24 functions at each point of the box, from Gaussian processes."""

from __future__ import annotations

import math
from bisect import bisect_left
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.integrations.gp_bbob.distributions import Distribution

FUNCTIONS = 24


class Mixture:
    """The weights of the 24 functions at each point: a sparse softmax of Gaussian processes.

    Parameters
    ----------
    lengthscale, sparsity_lengthscale
        Of the squared-exponential kernels, in the units of the box [-5, 5]^d.
    sparsity
        Distribution of the number of active functions, rounded to whole numbers.
    field_seed
        Seed of all random features.
    """

    def __init__(
        self,
        *,
        dimension: int,
        temperature: float,
        features: int,
        lengthscale: float,
        amplitude: float,
        sparsity: Distribution,
        sparsity_features: int,
        sparsity_lengthscale: float,
        sparsity_amplitude: float,
        field_seed: list[int],
    ) -> None:
        rng = np.random.default_rng(field_seed)
        logits = _random_features(rng, dimension, features, lengthscale, amplitude, FUNCTIONS)
        level = _random_features(rng, dimension, sparsity_features, sparsity_lengthscale, sparsity_amplitude, 1)
        self._frequencies = np.ascontiguousarray(np.hstack([logits[0], level[0]]))
        self._phases = np.concatenate([logits[1], level[1]])
        self._features = features
        self._logits = logits[2] / temperature
        self._level = level[2][:, 0]
        self._thresholds = _thresholds(sparsity)

    def logits(self, points: FloatArray) -> FloatArray:
        """z(x) / T of each function, ``[point, function]``."""
        waves = np.cos(points @ self._frequencies + self._phases)
        return waves[:, : self._features] @ self._logits

    def sparsity(self, points: FloatArray) -> NDArray[np.int64]:
        """k(x): number of active functions at each point."""
        level = np.cos(points @ self._frequencies + self._phases)[:, self._features :] @ self._level
        return np.searchsorted(self._thresholds, level, side="left") + 1

    def weights(self, points: FloatArray) -> FloatArray:
        """w(x), ``[point, function]``: they sum to 1, and all but k(x) of them are 0."""
        logits = self.logits(points)
        order = np.argsort(-logits, axis=1, kind="stable")
        ranks = np.argsort(order, axis=1)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares[ranks >= self.sparsity(points)[:, None]] = 0
        return shares / shares.sum(axis=1, keepdims=True)

    def active(self, point: FloatArray) -> tuple[list[int], list[float]]:
        """The active functions at one point and their weights: :meth:`weights` without the zeros, but faster."""
        waves = np.cos(point @ self._frequencies + self._phases)
        logits = waves[: self._features] @ self._logits
        count = bisect_left(self._thresholds, float(waves[self._features :] @ self._level)) + 1
        chosen = logits.argpartition(FUNCTIONS - count)[FUNCTIONS - count :]
        shares = np.exp(logits[chosen] - logits.max())
        return chosen.tolist(), (shares / shares.sum()).tolist()


def _random_features(
    rng: np.random.Generator, dimension: int, features: int, lengthscale: float, amplitude: float, outputs: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Frequencies, phases and coefficients of a Gaussian process with a squared-exponential kernel."""
    frequencies = rng.standard_normal((dimension, features)) / lengthscale
    phases = rng.uniform(0, 2 * math.pi, features)
    return frequencies, phases, amplitude * math.sqrt(2 / features) * rng.standard_normal((features, outputs))


def _thresholds(sparsity: Distribution) -> list[float]:
    """Levels h at which k = F_K^-1(Phi(h)) goes from 1 to 2, from 2 to 3, ..., from 23 to 24."""
    normal = NormalDist()
    limits = [sparsity.cdf(count + 0.5) for count in range(1, FUNCTIONS)]
    return [-math.inf if p <= 0 else math.inf if p >= 1 else normal.inv_cdf(p) for p in limits]
