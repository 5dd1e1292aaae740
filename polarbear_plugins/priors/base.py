"""Protocols of priors over ratings, and what their hyperpriors share."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number
from polarbear_plugins.errors import InvalidInputError

# A numpy array, or a symbolic tensor when the module of functions is not numpy.
Numeric: TypeAlias = Any


@runtime_checkable
class Prior(Protocol):
    """Any prior: it has the name that users ask for."""

    @property
    def name(self) -> str:
        """Name of the prior."""
        ...


@runtime_checkable
class TemporalPrior(Prior, Protocol):
    """A prior that pools over time: each latent function is ``factor(phi) @ u`` with standard normal ``u``.

    The utilities are the Helmert transform of the latent functions, one fewer than there are algorithms.  The
    hyperparameters ``phi`` live on the whole real line; positive ones are given by their logarithm.

    Both methods take numpy as their last argument, or a module that behaves like it, so that the PyMC engines can
    run them symbolically: use ``xp.exp``, ``xp.sqrt``, ``xp.linalg.cholesky`` and arithmetic on ``phi``.
    """

    @property
    def hyperparameters(self) -> tuple[str, ...]:
        """Names of the entries of ``phi``."""
        ...

    @property
    def start(self) -> FloatArray:
        """Plausible ``phi`` to start the search from."""
        ...

    def factor(self, phi: Numeric, time: FloatArray, xp: Any = np, /) -> Numeric:
        """Matrix ``[timepoint, coefficient]`` at the timepoints ``time``, scaled to run from 0 to 1."""
        ...

    def log_hyperprior(self, phi: Numeric, xp: Any = np, /) -> Numeric:
        """Log-density of ``phi``, up to a constant."""
        ...


def log_normal(log_value: Numeric, location: float, scale: float) -> Numeric:
    """Log-density of ``log_value`` if the value is LogNormal(location, scale), up to a constant."""
    return -0.5 * ((log_value - location) / scale) ** 2


def inverse_gamma(log_value: Numeric, shape: float, rate: float, xp: Any) -> Numeric:
    """Log-density of ``log_value`` if the value is InverseGamma(shape, rate), up to a constant."""
    return -shape * log_value - rate * xp.exp(-log_value)


def check_positive(value: object, what: str) -> float:
    """Check a positive number."""
    number = as_number(value, what)
    if number <= 0:
        raise InvalidInputError(f"{what}: must be positive, got {number:g}.")
    return number


def check_pair(pair: object, what: str, *, positive_first: bool = False) -> tuple[float, float]:
    """Check the two parameters of a hyperprior, the second one positive."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InvalidInputError(f"{what}: expected two numbers, got {pair!r}.")
    first, second = pair
    check = check_positive if positive_first else as_number
    return check(first, what), check_positive(second, what)
