"""Gaussian random walk over the timepoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.priors.base import Numeric, check_pair, check_positive, log_normal


class RandomWalk:
    """Latent functions start at random and change by independent steps.

    Parameters
    ----------
    first
        Standard deviation of the first value.
    scale
        Location and scale of the LogNormal hyperprior of the standard deviation of the change over the whole time;
        that of a step over the share ``d`` of the time is ``sqrt(d)`` times as large.
    """

    name = "random-walk"
    hyperparameters = ("log_scale",)

    def __init__(self, *, first: float = 1.5, scale: tuple[float, float] = (0.0, 1.0)) -> None:
        self.first = check_positive(first, "random-walk: first")
        self.scale = check_pair(scale, "random-walk: scale (location and scale of a LogNormal)")

    @property
    def start(self) -> FloatArray:
        """Centre of the hyperprior."""
        return np.array([self.scale[0]])

    def factor(self, phi: Numeric, time: FloatArray, xp: Any = np, /) -> Numeric:
        """Cumulative sums of the steps."""
        steps = np.tril(np.ones((time.size, time.size)))[:, 1:] * np.sqrt(np.diff(time))
        return xp.concatenate([np.full((time.size, 1), self.first), xp.exp(phi[0]) * steps], axis=1)

    def log_hyperprior(self, phi: Numeric, xp: Any = np, /) -> Numeric:  # noqa: ARG002 - part of the protocol
        """LogNormal scale."""
        return log_normal(phi[0], *self.scale)
