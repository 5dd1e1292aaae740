"""B-splines over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.priors.base import Numeric, check_pair, log_normal


class BSpline:
    """Latent functions are splines with independent normal coefficients.

    Parameters
    ----------
    basis
        Number of basis functions; by default half the number of timepoints.
    degree
        Degree of the polynomials; 3 is cubic.
    scale
        Location and scale of the LogNormal hyperprior of the standard deviation of the coefficients.
    """

    name = "bspline"
    hyperparameters = ("log_scale",)

    def __init__(self, *, basis: int | None = None, degree: int = 3, scale: tuple[float, float] = (0.0, 1.0)) -> None:
        self.degree = as_whole_number(degree, "bspline: degree", at_least=0)
        self.basis = None if basis is None else as_whole_number(basis, "bspline: basis", at_least=1)
        if self.basis is not None and self.basis <= self.degree:
            raise InvalidInputError(f"bspline: basis must be larger than the degree {self.degree}, got {self.basis}.")
        self.scale = check_pair(scale, "bspline: scale (location and scale of a LogNormal)")

    @property
    def start(self) -> FloatArray:
        """Centre of the hyperprior."""
        return np.array([self.scale[0]])

    def factor(self, phi: Numeric, time: FloatArray, xp: Any = np, /) -> Numeric:
        """Basis functions with inner knots at quantiles of the timepoints."""
        from scipy.interpolate import BSpline as Spline

        basis = max(self.degree + 1, time.size // 2) if self.basis is None else self.basis
        inner = np.quantile(time, np.linspace(0, 1, basis - self.degree + 1)[1:-1])
        ends = np.zeros(self.degree + 1), np.ones(self.degree + 1)
        knots = np.concatenate([ends[0], inner, ends[1]])
        return xp.exp(phi[0]) * Spline.design_matrix(time, knots, self.degree).toarray()

    def log_hyperprior(self, phi: Numeric, xp: Any = np, /) -> Numeric:  # noqa: ARG002 - part of the protocol
        """LogNormal scale."""
        return log_normal(phi[0], *self.scale)
