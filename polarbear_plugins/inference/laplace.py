"""A log-concave posterior around its mode, in coordinates in which it is nearly standard normal."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.plackett_luce import Likelihood
from polarbear_plugins.validation import FloatArray

__all__ = ["LaplaceTarget", "enough", "forgotten", "hmc_move", "memory"]

# Numbers worked on at a time: few enough to stay in the cache, enough to hide the cost of a call.
_CHUNK = 1 << 17


class LaplaceTarget:
    """The posterior of latent values ``eta = mode + whitener @ z``: log-density ``-|z|^2 / 2 + remainder(z)``.

    The remainder is what the quadratic approximation leaves over, and so at once the logarithm of an importance weight
    for standard normal ``z`` and the potential of a Hamiltonian whose Gaussian part is solved exactly.

    Parameters
    ----------
    likelihood
        Of the utilities, whose Helmert coordinates ``eta`` are.
    basis
        The Helmert matrix.
    mode, gradient, information
        Where the expansion is made (``[timepoint, coordinate]``), and the derivatives of the likelihood there.
    whitener
        ``[timepoint * coordinate, z]``.
    residual
        Gradient of the whole posterior there in terms of ``z``; nearly 0, and accounted for.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        basis: FloatArray,
        mode: FloatArray,
        gradient: FloatArray,
        information: FloatArray,
        whitener: FloatArray,
        residual: FloatArray,
    ) -> None:
        self.likelihood, self.basis = likelihood, basis
        self.mode, self.gradient, self.information = mode, gradient, information
        self.whitener, self.residual = whitener, residual
        self.value = likelihood.value(mode @ basis.T)
        sets = sum(block.counts.size for block in likelihood.blocks)
        self._rows = max(1, _CHUNK // (sets + 2 * mode.size))

    def eta(self, z: FloatArray) -> FloatArray:
        """Latent values ``[draw, timepoint, coordinate]``."""
        return self.mode + self._step(z)

    def remainder(self, z: FloatArray) -> FloatArray:
        """Logarithm of the importance weight of each ``z``."""
        parts = [self._remainder(z[start : start + self._rows]) for start in range(0, len(z), self._rows)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def remainder_gradient(self, z: FloatArray) -> FloatArray:
        """Gradient of the remainder at each ``z``."""
        gradient = np.empty_like(z)
        for start in range(0, len(z), self._rows):
            part = z[start : start + self._rows]
            step = self._step(part)
            pull = self.likelihood.gradient((self.mode + step) @ self.basis.T) @ self.basis
            pull += self._curved(step) - self.gradient
            gradient[start : start + self._rows] = pull.reshape(len(part), -1) @ self.whitener + self.residual
        return gradient

    def _remainder(self, z: FloatArray) -> FloatArray:
        step = self._step(z)
        value = self.likelihood.value((self.mode + step) @ self.basis.T) - self.value
        flat = step.reshape(len(z), -1)
        value -= flat @ self.gradient.ravel()
        value += 0.5 * np.einsum("zk,zk->z", flat, self._curved(step).reshape(len(z), -1))
        remainder: FloatArray = value + z @ self.residual
        return remainder

    def _step(self, z: FloatArray) -> FloatArray:
        return (z @ self.whitener.T).reshape(len(z), *self.mode.shape)

    def _curved(self, step: FloatArray) -> FloatArray:
        curved: FloatArray = np.matmul(step.transpose(1, 0, 2), self.information).transpose(1, 0, 2)
        return curved


def hmc_move(
    target: LaplaceTarget, z: FloatArray, rng: np.random.Generator, *, step: float = 0.8, steps: int = 2
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """One Hamiltonian move of every ``z``, and whether it was accepted.

    The Gaussian part turns ``z`` and its momentum by an angle, exactly; the remainder kicks the momentum.
    """
    momentum = rng.standard_normal(z.shape)
    start = target.remainder(z) - 0.5 * (np.sum(momentum**2, axis=1) + np.sum(z**2, axis=1))
    angle = step * rng.uniform(0.85, 1.15)
    cos, sin = math.cos(angle), math.sin(angle)
    new = z
    momentum = momentum + 0.5 * angle * target.remainder_gradient(new)
    for number in range(steps):
        new, momentum = new * cos + momentum * sin, momentum * cos - new * sin
        kick = angle if number < steps - 1 else 0.5 * angle
        momentum += kick * target.remainder_gradient(new)
    end = target.remainder(new) - 0.5 * (np.sum(momentum**2, axis=1) + np.sum(new**2, axis=1))
    accepted = np.log(rng.random(len(z))) < end - start
    return np.where(accepted[:, None], new, z), accepted


def enough(k_hat: float, effective: float, draws: int) -> bool:
    """Whether importance weights are good enough to need no moves; k-hat is noisy where all draws count."""
    return effective > 0.5 * draws and (k_hat < 0.5 or (k_hat < 0.7 and effective > 0.9 * draws))


def forgotten(left: float | None, draws: int) -> bool:
    """Whether draws no longer correlate with where their moves began, up to what chance makes of that many."""
    return left is not None and left < max(0.1, 3.5 / math.sqrt(draws))


def memory(before: FloatArray, after: FloatArray) -> float:
    """Largest correlation, over coordinates, between where parallel chains began and where they are."""
    first = before - before.mean(axis=0)
    second = after - after.mean(axis=0)
    spread = np.sqrt(np.sum(first**2, axis=0) * np.sum(second**2, axis=0))
    correlation = np.sum(first * second, axis=0)
    return float(np.max(np.abs(correlation[spread > 0]) / spread[spread > 0], initial=0.0))
