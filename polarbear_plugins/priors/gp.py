"""Gaussian processes over time: exact, with inducing points, and by Hilbert-space basis functions."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.priors.base import Numeric, check_pair, check_positive, inverse_gamma, log_normal

Kernel: TypeAlias = Literal["matern32", "matern52", "se"]

# Boundary and number of basis functions that a kernel needs, Riutort-Mayol et al. (2022): c >= a l/S, m >= b c S/l.
_BASIS_RULES = {"matern32": (4.5, 3.42), "matern52": (4.1, 2.65), "se": (3.2, 1.75)}


class _Process:
    """Shared by all: a kernel, and hyperpriors of its amplitude and lengthscale."""

    hyperparameters = ("log_amplitude", "log_lengthscale")

    def __init__(
        self,
        kernel: Kernel = "matern32",
        amplitude: tuple[float, float] = (0.0, 1.0),
        lengthscale: tuple[float, float] = (3.0, 1.0),
    ) -> None:
        if kernel not in get_args(Kernel):
            raise InvalidInputError(f"kernel: expected {', '.join(get_args(Kernel))}, got {kernel!r}.")
        self.kernel: Kernel = kernel
        self.amplitude = check_pair(amplitude, "amplitude (location and scale of a LogNormal)")
        self.lengthscale = check_pair(
            lengthscale, "lengthscale (shape and rate of an InverseGamma)", positive_first=True
        )

    @property
    def start(self) -> FloatArray:
        shape, rate = self.lengthscale
        return np.array([self.amplitude[0], math.log(rate / (shape + 1))])

    def log_hyperprior(self, phi: Numeric, xp: Any = np, /) -> Numeric:
        return log_normal(phi[0], *self.amplitude) + inverse_gamma(phi[1], *self.lengthscale, xp)

    def _correlation(self, distance: FloatArray, phi: Numeric, xp: Any) -> Numeric:
        scaled = distance * xp.exp(-phi[1])
        if self.kernel == "matern32":
            r = math.sqrt(3.0) * scaled
            return (1.0 + r) * xp.exp(-r)
        if self.kernel == "matern52":
            r = math.sqrt(5.0) * scaled
            return (1.0 + r + r**2 / 3.0) * xp.exp(-r)
        return xp.exp(-0.5 * scaled**2)


class GaussianProcess(_Process):
    """An exact Gaussian process.

    Parameters
    ----------
    kernel
        ``"matern32"``, ``"matern52"`` or ``"se"``.
    amplitude
        Location and scale of the LogNormal hyperprior of the amplitude.
    lengthscale
        Shape and rate of the InverseGamma hyperprior of the lengthscale, in units of the whole time.
    jitter
        Added to the diagonal of the correlation, for numerical stability.
    """

    name = "gp"

    def __init__(
        self,
        *,
        kernel: Kernel = "matern32",
        amplitude: tuple[float, float] = (0.0, 1.0),
        lengthscale: tuple[float, float] = (3.0, 1.0),
        jitter: float = 1e-6,
    ) -> None:
        super().__init__(kernel, amplitude, lengthscale)
        self.jitter = check_positive(jitter, "jitter")

    def factor(self, phi: Numeric, time: FloatArray, xp: Any = np, /) -> Numeric:
        """Cholesky factor of the covariance."""
        correlation = self._correlation(np.abs(time[:, None] - time), phi, xp) + self.jitter * np.eye(time.size)
        return xp.exp(phi[0]) * xp.linalg.cholesky(correlation)


class SparseGaussianProcess(_Process):
    """A Gaussian process through its values at inducing points (deterministic training conditional).

    Parameters
    ----------
    inducing
        Number of inducing points, placed at quantiles of the timepoints.
    kernel, amplitude, lengthscale, jitter
        As for ``gp``.
    """

    name = "sparse-gp"

    def __init__(
        self,
        *,
        inducing: int = 10,
        kernel: Kernel = "matern32",
        amplitude: tuple[float, float] = (0.0, 1.0),
        lengthscale: tuple[float, float] = (3.0, 1.0),
        jitter: float = 1e-6,
    ) -> None:
        super().__init__(kernel, amplitude, lengthscale)
        self.inducing = as_whole_number(inducing, "inducing", at_least=1)
        self.jitter = check_positive(jitter, "jitter")

    def factor(self, phi: Numeric, time: FloatArray, xp: Any = np, /) -> Numeric:
        """Covariance with the inducing points, times the inverse of their Cholesky factor."""
        points = np.quantile(time, np.linspace(0, 1, min(self.inducing, time.size)))
        between = self._correlation(np.abs(points[:, None] - points), phi, xp) + self.jitter * np.eye(points.size)
        across = self._correlation(np.abs(points[:, None] - time), phi, xp)
        return xp.exp(phi[0]) * xp.linalg.solve(xp.linalg.cholesky(between), across).T


class HilbertSpaceGaussianProcess(_Process):
    """A Gaussian process approximated by eigenfunctions of the Laplacian on a somewhat larger interval.

    Parameters
    ----------
    basis
        Number of basis functions; by default what the kernel needs for the central 80 % of the lengthscales under
        the hyperprior.
    boundary
        Half-width of the interval in units of half the time; same default rule.
    kernel, amplitude, lengthscale
        As for ``gp``.
    """

    name = "hsgp"

    def __init__(
        self,
        *,
        basis: int | None = None,
        boundary: float | None = None,
        kernel: Kernel = "matern32",
        amplitude: tuple[float, float] = (0.0, 1.0),
        lengthscale: tuple[float, float] = (3.0, 1.0),
    ) -> None:
        super().__init__(kernel, amplitude, lengthscale)
        short, long = self._likely_lengthscales()
        for_boundary, for_basis = _BASIS_RULES[self.kernel]
        if boundary is None:
            boundary = max(1.2, for_boundary * long / 0.5)
        self.boundary = check_positive(boundary, "boundary")
        if self.boundary <= 1:
            raise InvalidInputError(f"boundary: must be more than 1, outside the time, got {self.boundary:g}.")
        if basis is None:
            basis = math.ceil(for_basis * self.boundary / (short / 0.5))
        self.basis = as_whole_number(basis, "basis", at_least=1)

    def factor(self, phi: Numeric, time: FloatArray, xp: Any = np, /) -> Numeric:
        """Basis functions scaled by the square root of the spectral density at their frequency."""
        half = 0.5 * self.boundary
        frequency: FloatArray = np.arange(1.0, self.basis + 1) * math.pi / (2 * half)
        functions = np.sin(frequency * (time[:, None] - 0.5 + half)) / math.sqrt(half)
        return xp.exp(phi[0]) * functions * xp.sqrt(self._spectral_density(frequency, xp.exp(phi[1]), xp))

    def _spectral_density(self, frequency: FloatArray, lengthscale: Numeric, xp: Any) -> Numeric:
        if self.kernel == "matern32":
            a = math.sqrt(3.0) / lengthscale
            return 4 * a**3 / (a**2 + frequency**2) ** 2
        if self.kernel == "matern52":
            a = math.sqrt(5.0) / lengthscale
            return 16 / 3 * a**5 / (a**2 + frequency**2) ** 3
        return math.sqrt(2 * math.pi) * lengthscale * xp.exp(-0.5 * (lengthscale * frequency) ** 2)

    def _likely_lengthscales(self) -> tuple[float, float]:
        from scipy.special import gammainccinv

        shape, rate = self.lengthscale
        short, long = (rate / gammainccinv(shape, level) for level in (0.1, 0.9))
        return float(short), float(long)
