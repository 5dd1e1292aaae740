"""A log-concave posterior around its mode, in coordinates in which it is nearly standard normal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import Float32Array, FloatArray
from polarbear_plugins.inference.native.remainder import Remainder
from polarbear_plugins.plackett_luce.likelihood import Likelihood


class Whitener(Protocol):
    """Linear map from standard normal ``z`` to steps of the utilities."""

    @property
    def dimension(self) -> int:
        """Length of ``z``."""
        ...

    def single(self) -> Whitener:
        """The same map in single precision."""
        ...

    def step(self, z: NDArray[Any], /) -> NDArray[Any]:
        """Step ``[timepoint, algorithm]`` for each ``z``."""
        ...

    def back(self, pull: NDArray[Any], /) -> NDArray[Any]:
        """Transposed map, from gradients in terms of utilities to those in terms of ``z``."""
        ...


class LaplaceTarget:
    """The posterior of utilities ``mode + whitener @ z``: log-density ``-|z|^2 / 2 + remainder(z)``.

    The remainder is the error of the quadratic approximation.  It is both the logarithm of an importance weight for
    standard normal ``z`` and the potential of a Hamiltonian whose Gaussian part is solved exactly.

    Parameters
    ----------
    likelihood
        Likelihood of the utilities.
    mode, gradient, information
        Centre of the expansion (``[timepoint, algorithm]``), and the derivatives of the likelihood there.
    whitener
        Map from ``z`` to the utilities of all timepoints.
    residual
        Gradient of the whole posterior there in terms of ``z``; nearly 0, and taken into account.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        mode: FloatArray,
        gradient: FloatArray,
        information: FloatArray,
        whitener: Whitener,
        residual: FloatArray,
    ) -> None:
        self.mode, self.whitener, self.residual = mode, whitener, residual
        self._single = whitener.single()
        self._remainder = Remainder(likelihood, mode, gradient, information)

    def utilities(self, z: FloatArray) -> FloatArray:
        """Utilities ``[draw, timepoint, algorithm]``."""
        return self.mode + self.whitener.step(z)

    def remainder(self, z: FloatArray) -> FloatArray:
        """Logarithm of the importance weight of each ``z``."""
        remainder: FloatArray = z @ self.residual
        for rows, step in self._steps(z):
            remainder[rows] += self._remainder.value(step)
        return remainder

    def remainder_gradient(self, z: FloatArray) -> FloatArray:
        """Gradient of the remainder at each ``z``."""
        gradient = np.tile(self.residual, (len(z), 1))
        for rows, step in self._steps(z):
            gradient[rows] += self._single.back(self._remainder.gradient(step))
        return gradient

    def _steps(self, z: FloatArray) -> Iterator[tuple[slice, Float32Array]]:
        """Yield steps from the mode, some rows at a time; single precision suffices for weights and moves."""
        for start in range(0, len(z), self._remainder.most_draws):
            rows = slice(start, start + self._remainder.most_draws)
            yield rows, self._single.step(z[rows].astype(np.float32))


def hmc_move(
    target: LaplaceTarget,
    z: FloatArray,
    remainder: FloatArray,
    rng: np.random.Generator,
    *,
    step: float = 0.8,
    steps: int = 2,
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """One Hamiltonian move of every ``z`` with its remainder, and whether it was accepted.

    The Gaussian part rotates ``z`` and its momentum exactly; the remainder changes the momentum.
    """
    momentum = rng.standard_normal(z.shape)
    start = remainder - 0.5 * (_squares(momentum) + _squares(z))
    angle = step * rng.uniform(0.85, 1.15)
    cos, sin = math.cos(angle), math.sin(angle)
    new = z
    momentum = momentum + 0.5 * angle * target.remainder_gradient(new)
    for number in range(steps):
        new, momentum = new * cos + momentum * sin, momentum * cos - new * sin
        kick = angle if number < steps - 1 else 0.5 * angle
        momentum += kick * target.remainder_gradient(new)
    new_remainder = target.remainder(new)
    end = new_remainder - 0.5 * (_squares(momentum) + _squares(new))
    accepted = np.log(rng.random(len(z))) < end - start
    return np.where(accepted[:, None], new, z), np.where(accepted, new_remainder, remainder), accepted


def _squares(z: FloatArray) -> FloatArray:
    return np.einsum("zk,zk->z", z, z)


def weights_suffice(k_hat: float, effective: float, draws: int) -> bool:
    """Whether importance weights are good enough without moves; k-hat is noisy where all draws count."""
    return effective > 0.5 * draws and (k_hat < 0.5 or (k_hat < 0.7 and effective > 0.9 * draws))


def has_mixed(left: float | None, draws: int) -> bool:
    """Whether draws no longer correlate with where their moves began, beyond chance for that many draws."""
    return left is not None and left < max(0.1, 3.5 / math.sqrt(draws))


def memory(before: FloatArray, after: FloatArray) -> float:
    """Largest correlation, over coordinates, between where parallel chains began and where they are."""
    first = before - before.mean(axis=0)
    second = after - after.mean(axis=0)
    products = [np.einsum("zk,zk->k", one, other) for one, other in ((first, first), (second, second), (first, second))]
    spread = np.sqrt(products[0] * products[1])
    return float(np.max(np.abs(products[2][spread > 0]) / spread[spread > 0], initial=0.0))
