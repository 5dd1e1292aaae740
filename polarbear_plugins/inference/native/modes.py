"""Gaussian approximations of the posterior under a temporal prior, for given hyperparameters.

With ``eta = factor(phi) @ u`` and standard normal ``u``, Newton's method finds the mode of ``u`` for any ``phi``, and
the expansion there gives the evidence of ``phi``.  Where an algorithm always wins, the mode is at the edge of where the
posterior is.  Derivatives averaged over the approximation itself then give a better one: the Gaussian closest to the
posterior in the Kullback-Leibler divergence.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.inference.native.precision import Coordinates, Root, find_coordinates
from polarbear_plugins.inference.native.target import Target
from polarbear_plugins.inference.task import Task
from polarbear_plugins.plackett_luce.likelihood import Likelihood, helmert
from polarbear_plugins.priors.base import TemporalPrior

_DIFFERENCE = 0.2  # step of the finite differences of the log-evidence
# Curvature of the log-evidence to assume at least: where data say little, hyperpriors rule, which have a steep side.
_LEAST_CURVATURE, _LEAST_GRID_CURVATURE = 0.3, 2.0
_MOST_AVERAGES = 8


@dataclass(frozen=True, slots=True)
class WarmStart:
    """Mode of the hyperparameters and latent functions of an earlier posterior."""

    phi: FloatArray
    eta: FloatArray


@dataclass(frozen=True, slots=True)
class Expansion:
    """The log-likelihood around latent functions ``eta[timepoint, function]``, as a quadratic function.

    ``pull`` is the gradient that the quadratic function has at 0.
    """

    eta: FloatArray
    value: float
    gradient: FloatArray
    information: FloatArray
    pull: FloatArray


@dataclass(frozen=True, slots=True)
class GridPoint:
    """Approximation of the latent functions for given hyperparameters, and the evidence of these hyperparameters.

    ``v`` are the coordinates of the centre.  The evidence is that of the approximation if the remainder were 0.
    """

    phi: FloatArray
    factor: FloatArray
    coordinates: Coordinates
    v: FloatArray
    mode: Expansion
    root: Root
    residual: FloatArray
    log_evidence: float


@dataclass(frozen=True, slots=True)
class _Bound:
    """A Gaussian, draws of its utilities, and the lower bound of the evidence that it gives."""

    v: FloatArray
    root: Root
    utilities: FloatArray
    value: float


class Modes:
    """Finds approximations for given hyperparameters; each search starts from the one found before."""

    def __init__(self, task: Task, start: WarmStart | None = None) -> None:
        self.prior = cast(TemporalPrior, task.prior)
        self.time = task.time
        self.likelihood = Likelihood(task.statistics)
        self.basis = helmert(task.statistics.algorithms)
        self._shift = task.evidence_shift
        self._zero = self._expand(np.zeros((self.time.size, self.basis.shape[1])))
        self._last = self._zero if start is None else self._expand(start.eta)

    def at(self, phi: FloatArray, near: GridPoint | None = None) -> GridPoint:
        """Expand the posterior at its mode for the hyperparameters ``phi``."""
        factor = self._factor(phi)
        point = self._newton(phi, factor, self._last if near is None else near.mode)
        self._last = point.mode
        return point

    def averaged(self, phi: FloatArray, near: GridPoint, z: FloatArray) -> GridPoint:
        """Gaussian closest to the posterior for the hyperparameters ``phi``, from one for hyperparameters near them.

        Derivatives are averaged over the draws ``z`` of a standard normal distribution.
        """
        factor = self._factor(phi)
        coordinates = find_coordinates(factor, self.basis.shape[1])
        loadings, information = coordinates.loadings, near.mode.information
        root = Root(coordinates, information)
        # The quadratic approximation of the likelihood stays the same, or the coefficients do: the better one.
        starts = (
            root.back(root.half(loadings.T @ near.mode.pull)),
            coordinates.from_coefficients(near.coordinates.coefficients(near.v)),
        )
        here = max((self._bound(coordinates, root, v, z) for v in starts), key=lambda bound: bound.value)
        pull = near.mode.pull
        for _ in range(_MOST_AVERAGES):
            new = self.basis.T @ self.likelihood.mean_information(here.utilities) @ self.basis
            gradient = self.likelihood.gradient(here.utilities).mean(axis=0) @ self.basis
            there, share = here, 1.0
            while share > 0.1:
                # Information that is too large makes the next average too small, and the reverse: half a step settles.
                mixed = information + 0.5 * share * (new - information)
                root = Root(coordinates, mixed)
                step = root.back(root.half(loadings.T @ gradient - coordinates.precision @ here.v))
                there = self._bound(coordinates, root, here.v + share * step, z)
                if there.value > here.value:
                    break
                share *= 0.4
            else:
                break
            gain, information, here = there.value - here.value, mixed, there
            pull = gradient + np.einsum("tqr,tr->tq", information, loadings @ here.v)
            if gain < 0.3:
                break
        v, root = here.v, here.root
        eta = loadings @ v
        x = eta @ self.basis.T
        value, gradient = float(self.likelihood.value(x)), self.likelihood.gradient(x) @ self.basis
        residual = root.half(loadings.T @ gradient - coordinates.precision @ v)
        mode = Expansion(eta, value, gradient, information, pull)
        return self._point(phi, factor, coordinates, v, mode, root, residual)

    def _bound(self, coordinates: Coordinates, root: Root, v: FloatArray, z: FloatArray) -> _Bound:
        """Lower bound of the evidence by the Gaussian around ``v``, up to a constant."""
        draws = v + root.steps(z)
        utilities = (coordinates.loadings @ draws) @ self.basis.T
        prior = 0.5 * float(np.einsum("zcq,zcq->", draws, coordinates.precision @ draws)) / len(z)
        value = float(self.likelihood.value(utilities).mean()) - prior - root.log_determinant
        return _Bound(v, root, utilities, value)

    def target(self, point: GridPoint) -> Target:
        """Coordinates around the centre in which the posterior is nearly standard normal."""
        basis, mode = self.basis, point.mode
        information = basis @ mode.information @ basis.T
        x, gradient = mode.eta @ basis.T, mode.gradient @ basis.T
        return Target(self.likelihood, x, gradient, information, point.root.whitener(basis), point.residual)

    def _newton(self, phi: FloatArray, factor: FloatArray, near: Expansion) -> GridPoint:
        coordinates = find_coordinates(factor, self.basis.shape[1])
        loadings, precision = coordinates.loadings, coordinates.precision
        v, here = np.zeros((loadings.shape[1], self.basis.shape[1])), self._zero
        density = here.value
        if near is not here:
            # Other hyperparameters change the latent functions little, and their likelihood not at all: its expansion
            # at the mode for other hyperparameters gives nearly the mode for these.
            root = Root(coordinates, near.information)
            new = root.back(root.half(loadings.T @ near.pull))
            there = self._expand(loadings @ new)
            new_density = there.value - 0.5 * float(np.sum(new * (precision @ new)))
            if new_density > density:
                v, density, here = new, new_density, there
        while True:
            root = Root(coordinates, here.information)
            half = root.half(loadings.T @ here.gradient - precision @ v)
            decrement = float(half @ half)
            if decrement < 1e-4:  # the remaining slope is taken into account
                break
            step = root.back(half)
            scale = 1.0
            while scale > 1e-6:
                new = v + scale * step
                there = self._expand(loadings @ new)
                new_density = there.value - 0.5 * float(np.sum(new * (precision @ new)))
                if new_density >= density + 1e-4 * scale * decrement:
                    break
                scale *= 0.5
            else:
                break
            v, density, here = new, new_density, there
        return self._point(phi, factor, coordinates, v, here, root, half)

    def _point(
        self,
        phi: FloatArray,
        factor: FloatArray,
        coordinates: Coordinates,
        v: FloatArray,
        mode: Expansion,
        root: Root,
        residual: FloatArray,
    ) -> GridPoint:
        evidence = mode.value - 0.5 * float(np.sum(v * (coordinates.precision @ v)))
        evidence += v.shape[1] * coordinates.log_scale - root.log_determinant
        evidence += float(self.prior.log_hyperprior(phi, np)) + (self._shift(factor) if self._shift else 0.0)
        return GridPoint(phi, factor, coordinates, v, mode, root, residual, float(evidence))

    def _factor(self, phi: FloatArray) -> FloatArray:
        return _square(np.asarray(self.prior.factor(phi, self.time, np), dtype=np.float64))

    def _expand(self, eta: FloatArray) -> Expansion:
        x = eta @ self.basis.T
        information = self.basis.T @ self.likelihood.information(x) @ self.basis
        gradient = self.likelihood.gradient(x) @ self.basis
        pull = gradient + np.einsum("tqr,tr->tq", information, eta)
        return Expansion(eta, float(self.likelihood.value(x)), gradient, information, pull)


def _square(factor: FloatArray) -> FloatArray:
    """Factor of the same covariance with at most as many coefficients as timepoints."""
    if factor.shape[1] <= factor.shape[0]:
        return factor
    _, root = np.linalg.qr(factor.T)
    # With a positive diagonal the coefficients mean nearly the same for nearly the same hyperparameters.
    return (root * np.where(np.diag(root) < 0, -1.0, 1.0)[:, None]).T


def find_centre(modes: Modes, start: WarmStart | None) -> tuple[GridPoint, FloatArray]:
    """Mode of the evidence over the hyperparameters, and steps of a grid along the axes of its curvature."""
    phi = np.asarray(modes.prior.start if start is None else start.phi, dtype=np.float64)
    d = phi.size
    for _ in range(15):
        centre = modes.at(phi)
        slope, curvature = _differences(lambda phi: -modes.at(phi).log_evidence, phi, -centre.log_evidence)
        lengths, axes = np.linalg.eigh(curvature)
        lengths = np.maximum(
            np.abs(lengths), _LEAST_CURVATURE
        )  # flat or indefinite: bounds the step by the width of the hyperprior
        step = -axes @ ((axes.T @ slope) / lengths)
        step *= min(1.0, 1.0 / np.abs(step).max()) if d and np.abs(step).max() > 0 else 1.0
        if not d or np.sqrt(np.sum((axes.T @ step) ** 2 * lengths)) < 0.3:
            break
        phi = phi + step
    return centre, axes / np.sqrt(np.maximum(lengths, _LEAST_GRID_CURVATURE))


def _differences(function: Callable[[FloatArray], float], x: FloatArray, value: float) -> tuple[FloatArray, FloatArray]:
    """Gradient and Hessian by finite differences."""
    steps = np.eye(x.size) * _DIFFERENCE
    up = np.array([function(x + step) for step in steps])
    down = np.array([function(x - step) for step in steps])
    slope = (up - down) / (2 * _DIFFERENCE)
    curvature = np.diag((up + down - 2 * value) / _DIFFERENCE**2)
    for i, j in itertools.combinations(range(x.size), 2):
        both = function(x + steps[i] + steps[j]) + function(x - steps[i] - steps[j])
        mixed = (both - up[i] - up[j] - down[i] - down[j] + 2 * value) / (2 * _DIFFERENCE**2)
        curvature[i, j] = curvature[j, i] = mixed
    return slope, curvature
