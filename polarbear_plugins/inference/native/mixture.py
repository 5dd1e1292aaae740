"""Mixtures of Gaussian approximations, one for each grid point of the hyperparameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import Float32Array, FloatArray
from polarbear_plugins.inference.native.importance import (
    antithetic_normals,
    resample,
    smooth_weights,
    systematic_resample,
)
from polarbear_plugins.inference.native.quality import weights_suffice
from polarbear_plugins.inference.native.target import Target
from polarbear_plugins.inference.native.tempering import Particles

# Proposals, in multiples of the draws, and a tail of the weights that more proposals do not make lighter.
_MOST_BATCHES, _HEAVY = 4, 0.5


@dataclass(frozen=True, slots=True)
class Component:
    """An approximation, the logarithm of its weight in the mixture, and that of its evidence by the approximation."""

    target: Target
    log_weight: float
    log_evidence: float


class Mixture:
    """Draws ``(component, z)``, and the logarithm of the ratio of the posterior to the mixture.

    Can be tempered; where there are several components, a subclass has to jump between them.
    """

    def __init__(self, components: list[Component]) -> None:
        self.components = components

    @property
    def dimension(self) -> int:
        """Length of ``z``."""
        return self.components[0].target.whitener.dimension

    def probabilities(self) -> FloatArray:
        """Weights of the components."""
        logs = np.array([component.log_weight for component in self.components])
        weights = np.exp(logs - logs.max())
        return weights / weights.sum()

    def groups(self, which: NDArray[np.intp]) -> Iterator[tuple[Component, NDArray[np.intp]]]:
        """Yield each component with the rows of its draws."""
        for k in np.unique(which):
            yield self.components[k], np.flatnonzero(which == k)

    def remainder(self, which: NDArray[np.intp], z: FloatArray) -> FloatArray:
        """Logarithm of the ratio of the posterior to the mixture, up to a constant."""
        value = np.empty(len(z))
        for component, rows in self.groups(which):
            value[rows] = component.target.remainder(z[rows]) + component.log_evidence - component.log_weight
        return value

    def gradient(self, which: NDArray[np.intp], z: FloatArray) -> FloatArray:
        """Gradient of the remainder in terms of ``z``."""
        gradient = np.empty_like(z)
        for component, rows in self.groups(which):
            gradient[rows] = component.target.gradient(z[rows])
        return gradient

    def utilities(self, which: NDArray[np.intp], z: FloatArray) -> FloatArray:
        """Utilities ``[draw, timepoint, algorithm]``."""
        utilities = np.empty((len(z), *self.components[0].target.centre.shape))
        for component, rows in self.groups(which):
            utilities[rows] = component.target.utilities(z[rows])
        return utilities

    def rough_utilities(self, which: NDArray[np.intp], z: FloatArray) -> Float32Array:
        """Utilities in single precision."""
        utilities = np.empty((len(z), *self.components[0].target.centre.shape), dtype=np.float32)
        for component, rows in self.groups(which):
            utilities[rows] = component.target.rough_utilities(z[rows])
        return utilities

    def draw(self, count: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], FloatArray]:
        """Draw from the mixture; a point and its mirror image have the same component."""
        one = rng.permutation(systematic_resample(self.probabilities(), -(-count // 2), rng))
        return np.concatenate([one, one])[:count], antithetic_normals(count, self.dimension, rng)

    def start(self, count: int, rng: np.random.Generator) -> Particles:
        """Draws of the mixture, to be tempered."""
        which, z = self.draw(count, rng)
        return Particles(which, z, self.remainder(which, z))

    def jump(self, particles: Particles, temperature: float, rng: np.random.Generator) -> Particles:  # noqa: ARG002
        """Stay: there is only one component."""
        return particles

    def hyperparameters(self, which: NDArray[np.intp]) -> FloatArray:
        """None."""
        return np.empty((len(which), 0))


@dataclass(frozen=True, slots=True)
class Weighted:
    """Draws resampled by their weights, and what the weights are worth."""

    which: NDArray[np.intp]
    z: FloatArray
    k_hat: float
    effective: float
    suffices: bool


def sample_by_importance(mixture: Mixture, draws: int, rng: np.random.Generator) -> Weighted:
    """Importance sampling, with more proposals where weights are uneven."""
    places: list[NDArray[np.intp]] = []
    points: list[FloatArray] = []
    logs: list[FloatArray] = []
    while True:
        which, z = mixture.draw(draws, rng)
        places.append(which)
        points.append(z)
        logs.append(mixture.remainder(which, z))
        weights, k_hat, effective = smooth_weights(np.concatenate(logs))
        if effective >= 0.9 * draws or k_hat > _HEAVY or len(points) == _MOST_BATCHES:
            break
    chosen = resample(weights, draws, rng)
    suffices = weights_suffice(k_hat, effective, draws, weights.size)
    which, z = np.concatenate(places)[chosen], np.concatenate(points)[chosen]
    return Weighted(which, z, k_hat, min(effective, float(draws)), suffices)
