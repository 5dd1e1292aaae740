"""The native engine for temporal priors: a grid over the hyperparameters, a Gaussian expansion at each grid point.

With ``eta = factor(phi) @ u`` and standard normal ``u``, Newton's method finds the mode of ``u`` for any ``phi``, and
the expansion there gives the evidence of ``phi``.  A grid along the main axes of that evidence replaces the continuous
hyperparameters.  Draws come from the grid and the expansions by importance sampling, against the exact density; where
that does not suffice, Hamiltonian moves of ``z`` and jumps between grid points follow, which leave that density
invariant.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.inference.native.importance import (
    antithetic_normals,
    resample,
    smooth_weights,
    systematic_resample,
)
from polarbear_plugins.inference.native.laplace import LaplaceTarget, has_mixed, hmc_move, memory, weights_suffice
from polarbear_plugins.inference.native.precision import Root, find_coordinates
from polarbear_plugins.inference.task import Draws, Task
from polarbear_plugins.plackett_luce.likelihood import Likelihood, helmert
from polarbear_plugins.posterior.posterior import Diagnostics
from polarbear_plugins.priors.base import TemporalPrior

_DIFFERENCE = 0.2  # step of the finite differences of the log-evidence
_DROP = 6.0  # grid points whose log-evidence is this far below the best are left out
_MAX_GRID = 150
_MAX_MOVES = 60


@dataclass(frozen=True, slots=True)
class WarmStart:
    """Mode of the hyperparameters and latent functions of an earlier posterior."""

    phi: FloatArray
    eta: FloatArray


@dataclass(frozen=True, slots=True)
class Expansion:
    """The log-likelihood of latent functions ``eta[timepoint, function]`` and its derivatives."""

    eta: FloatArray
    value: float
    gradient: FloatArray
    information: FloatArray


@dataclass(frozen=True, slots=True)
class GridPoint:
    """Mode of the latent functions for given hyperparameters, and the evidence of these hyperparameters."""

    phi: FloatArray
    factor: FloatArray
    mode: Expansion
    root: Root
    residual: FloatArray
    log_evidence: float


class Modes:
    """Finds modes for given hyperparameters; each search starts from the mode found before."""

    def __init__(self, task: Task, start: WarmStart | None = None) -> None:
        self.prior = cast(TemporalPrior, task.prior)
        self.time = task.time
        self.likelihood = Likelihood(task.statistics)
        self.basis = helmert(task.statistics.algorithms)
        self._shift = task.evidence_shift
        self._zero = self._expand(np.zeros((self.time.size, self.basis.shape[1])))
        self._last = self._zero if start is None else self._expand(start.eta)

    def at(self, phi: FloatArray, near: GridPoint | None = None) -> GridPoint:
        """Expand the posterior for the hyperparameters ``phi``."""
        factor = _square(np.asarray(self.prior.factor(phi, self.time, np), dtype=np.float64))
        point = self._newton(phi, factor, self._last if near is None else near.mode)
        self._last = point.mode
        return point

    def _newton(self, phi: FloatArray, factor: FloatArray, near: Expansion) -> GridPoint:
        coordinates = find_coordinates(factor, self.basis.shape[1])
        loadings, precision = coordinates.loadings, coordinates.precision
        v, here = np.zeros((loadings.shape[1], self.basis.shape[1])), self._zero
        density = here.value
        if near is not here:
            # Other hyperparameters change the latent functions little, and their likelihood not at all: its expansion
            # at the mode for other hyperparameters gives nearly the mode for these.
            root = Root(coordinates, near.information)
            pull = near.gradient + np.einsum("tqr,tr->tq", near.information, near.eta)
            new = root.back(root.half(loadings.T @ pull))
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
        evidence = density + v.shape[1] * coordinates.log_scale - root.log_determinant
        evidence += float(self.prior.log_hyperprior(phi, np)) + (self._shift(factor) if self._shift else 0.0)
        return GridPoint(phi, factor, here, root, half, float(evidence))

    def _expand(self, eta: FloatArray) -> Expansion:
        x = eta @ self.basis.T
        information = self.basis.T @ self.likelihood.information(x) @ self.basis
        return Expansion(eta, float(self.likelihood.value(x)), self.likelihood.gradient(x) @ self.basis, information)

    def target(self, point: GridPoint) -> LaplaceTarget:
        """Coordinates around the mode in which the posterior is nearly standard normal."""
        basis, mode = self.basis, point.mode
        information = basis @ mode.information @ basis.T
        x, gradient = mode.eta @ basis.T, mode.gradient @ basis.T
        return LaplaceTarget(self.likelihood, x, gradient, information, point.root.whitener(basis), point.residual)


def _square(factor: FloatArray) -> FloatArray:
    """Factor of the same covariance with at most as many coefficients as timepoints."""
    if factor.shape[1] <= factor.shape[0]:
        return factor
    _, root = np.linalg.qr(factor.T)
    return root.T


def find_centre(modes: Modes, start: WarmStart | None) -> tuple[GridPoint, FloatArray]:
    """Mode of the evidence over the hyperparameters, and the axes of its curvature scaled to one standard deviation."""
    phi = np.asarray(modes.prior.start if start is None else start.phi, dtype=np.float64)
    d = phi.size
    for _ in range(15):
        centre = modes.at(phi)
        slope, curvature = _differences(lambda phi: -modes.at(phi).log_evidence, phi, -centre.log_evidence)
        lengths, axes = np.linalg.eigh(curvature)
        lengths = np.maximum(np.abs(lengths), 0.3)  # flat or indefinite: bounds the step by the width of the hyperprior
        step = -axes @ ((axes.T @ slope) / lengths)
        step *= min(1.0, 1.0 / np.abs(step).max()) if d and np.abs(step).max() > 0 else 1.0
        if not d or np.sqrt(np.sum((axes.T @ step) ** 2 * lengths)) < 0.3:
            break
        phi = phi + step
    return centre, axes / np.sqrt(lengths)


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


def _grid(modes: Modes, centre: GridPoint, axes: FloatArray) -> list[GridPoint]:
    """Points around the centre, one standard deviation apart, up to where the evidence is negligible."""
    d = centre.phi.size
    origin = (0,) * d
    points = {origin: centre}
    best = centre.log_evidence
    todo = list(_neighbours(origin))
    while todo and len(points) < _MAX_GRID:
        place, origin = todo.pop(0)
        if place in points:
            continue
        near = points[origin]
        point = modes.at(centre.phi + axes @ np.array(place, dtype=np.float64), near)
        points[place] = point
        best = max(best, point.log_evidence)
        if point.log_evidence > best - _DROP:
            todo += _neighbours(place)
    return [point for point in points.values() if point.log_evidence > best - _DROP]


def _neighbours(place: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for axis, by in itertools.product(range(len(place)), (1, -1)):
        yield (*place[:axis], place[axis] + by, *place[axis + 1 :]), place


def sample_temporal(task: Task, *, min_moves: int = 0) -> Draws:
    """Draws from the posterior under a temporal prior.

    Parameters
    ----------
    min_moves
        Number of Hamiltonian moves to make even where importance sampling suffices.
    """
    start = task.start if isinstance(task.start, WarmStart) else None
    rng = np.random.default_rng(task.seed)
    modes = Modes(task, start)
    prior = modes.prior
    if start is not None and start.phi.shape != np.shape(prior.start):
        start = None
    centre, axes = find_centre(modes, start)
    points = _grid(modes, centre, axes)
    sampler = _Sampler([modes.target(point) for point in points], points)
    which, z, k_hat, effective = sampler.propose(task.draws, rng)

    shares: list[float] = []
    left: float | None = None
    well_weighted = weights_suffice(k_hat, effective, task.draws)
    if not well_weighted or min_moves:
        first = sampler.utilities(which, z).reshape(task.draws, -1)
        remainder = sampler.remainder(which, z)
        while len(shares) < _MAX_MOVES:
            which, z, remainder, share = sampler.move(which, z, remainder, rng)
            shares.append(share)
            if len(shares) >= max(min_moves, 2):
                left = memory(first, sampler.utilities(which, z).reshape(task.draws, -1))
                if well_weighted or has_mixed(left, task.draws):
                    break
    good = well_weighted or has_mixed(left, task.draws)
    problem = (
        f"importance sampling has k-hat {k_hat:.2f} and {effective:.0f} effective draws of {task.draws}, and after "
        f"{len(shares)} moves draws still correlate by {left or 0:.2f} with where they began"
    )
    # A grid point represents its cell.
    cell = rng.uniform(-0.5, 0.5, (task.draws, centre.phi.size)) @ axes.T
    phis = np.array([point.phi for point in points])[which] + cell
    return Draws(
        utilities=sampler.utilities(which, z),
        hyperparameters={name: phis[:, i] for i, name in enumerate(prior.hyperparameters)},
        diagnostics=Diagnostics(
            engine="native",
            route=f"{len(points)} grid points, importance sampling" + (f", {len(shares)} moves" if shares else ""),
            good=good,
            problems=() if good else (problem,),
            k_hat=k_hat,
            effective_draws=effective,
            moves=len(shares),
            acceptance=float(np.mean(shares)) if shares else None,
            memory=left,
        ),
        state=WarmStart(centre.phi, centre.mode.eta),
    )


class _Sampler:
    """Draws ``(grid point, z)``."""

    def __init__(self, targets: list[LaplaceTarget], points: list[GridPoint]) -> None:
        self.targets = targets
        evidence = np.array([point.log_evidence for point in points])
        self.probabilities = np.exp(evidence - evidence.max())
        self.probabilities /= self.probabilities.sum()

    def groups(self, which: NDArray[np.intp]) -> Iterator[tuple[LaplaceTarget, NDArray[np.intp]]]:
        for k in np.unique(which):
            yield self.targets[k], np.flatnonzero(which == k)

    def remainder(self, which: NDArray[np.intp], z: FloatArray) -> FloatArray:
        value = np.empty(len(z))
        for target, rows in self.groups(which):
            value[rows] = target.remainder(z[rows])
        return value

    def utilities(self, which: NDArray[np.intp], z: FloatArray) -> FloatArray:
        utilities = np.empty((len(z), *self.targets[0].mode.shape))
        for target, rows in self.groups(which):
            utilities[rows] = target.utilities(z[rows])
        return utilities

    def propose(self, draws: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], FloatArray, float, float]:
        """Importance sampling, with more proposals than draws where the weights are uneven."""
        dimension = self.targets[0].whitener.dimension
        places: list[NDArray[np.intp]] = []
        points: list[FloatArray] = []
        logs: list[FloatArray] = []
        half = -(-draws // 2)
        while True:
            # A point and its mirror image have the same hyperparameters.
            one = rng.permutation(systematic_resample(self.probabilities, half, rng))
            places.append(np.concatenate([one, one])[:draws])
            points.append(antithetic_normals(draws, dimension, rng))
            logs.append(self.remainder(places[-1], points[-1]))
            weights, k_hat, effective = smooth_weights(np.concatenate(logs))
            if effective >= 0.9 * draws or k_hat > 0.7 or len(points) == 4:
                break
        chosen = resample(weights, draws, rng)
        return np.concatenate(places)[chosen], np.concatenate(points)[chosen], k_hat, min(effective, float(draws))

    def move(
        self, which: NDArray[np.intp], z: FloatArray, remainder: FloatArray, rng: np.random.Generator
    ) -> tuple[NDArray[np.intp], FloatArray, FloatArray, float]:
        """Move every ``z`` at its grid point, then propose a jump to another one; both leave the density invariant."""
        new, here, taken = np.empty_like(z), np.empty_like(remainder), np.empty(len(z), dtype=bool)
        for target, rows in self.groups(which):
            new[rows], here[rows], taken[rows] = hmc_move(target, z[rows], remainder[rows], rng)
        if len(self.targets) > 1:
            other = rng.choice(len(self.targets), len(z), p=self.probabilities)
            there = self.remainder(other, new)
            jumps = np.log(rng.random(len(z))) < there - here
            which, here = np.where(jumps, other, which), np.where(jumps, there, here)
        return which, new, here, float(taken.mean())
