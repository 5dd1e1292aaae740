"""A log-concave posterior in coordinates in which it is nearly standard normal."""

from __future__ import annotations

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


class Target:
    """The posterior of utilities ``centre + whitener @ z``: log-density ``-|z|^2 / 2 + remainder(z)``.

    The remainder is the error of a quadratic approximation of the log-likelihood.  It is both the logarithm of an
    importance weight for standard normal ``z`` and the potential of a Hamiltonian whose Gaussian part is solved
    exactly.

    Parameters
    ----------
    likelihood
        Likelihood of the utilities.
    centre, gradient, information
        Centre of the approximation (``[timepoint, algorithm]``), gradient of the likelihood there, and the information
        that the approximation assumes.
    whitener
        Map from ``z`` to the utilities of all timepoints.
    residual
        Gradient of the whole posterior at the centre in terms of ``z``.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        centre: FloatArray,
        gradient: FloatArray,
        information: FloatArray,
        whitener: Whitener,
        residual: FloatArray,
    ) -> None:
        self.centre, self.whitener, self.residual = centre, whitener, residual
        self._single = whitener.single()
        self._remainder = Remainder(likelihood, centre, gradient, information)

    def utilities(self, z: FloatArray) -> FloatArray:
        """Utilities ``[draw, timepoint, algorithm]``."""
        return self.centre + self.whitener.step(z)

    def rough_utilities(self, z: FloatArray) -> Float32Array:
        """Utilities in single precision."""
        step: Float32Array = self._single.step(z.astype(np.float32))
        step += self.centre.astype(np.float32)
        return step

    def remainder(self, z: FloatArray) -> FloatArray:
        """Logarithm of the importance weight of each ``z``."""
        remainder: FloatArray = z @ self.residual
        for rows, step in self._steps(z):
            remainder[rows] += self._remainder.value(step)
        return remainder

    def gradient(self, z: FloatArray) -> FloatArray:
        """Gradient of the remainder at each ``z``."""
        gradient = np.tile(self.residual, (len(z), 1))
        for rows, step in self._steps(z):
            gradient[rows] += self._single.back(self._remainder.gradient(step))
        return gradient

    def _steps(self, z: FloatArray) -> Iterator[tuple[slice, Float32Array]]:
        """Yield steps from the centre, some rows at a time; single precision suffices for weights and moves."""
        for start in range(0, len(z), self._remainder.most_draws):
            rows = slice(start, start + self._remainder.most_draws)
            yield rows, self._single.step(z[rows].astype(np.float32))
