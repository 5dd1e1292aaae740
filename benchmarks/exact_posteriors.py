"""Posteriors of two or three algorithms by quadrature, for scripts that compare an engine with the exact answer.

Nothing here uses the likelihood or the inference of the package: a ranking with ties is the average over the orders
that agree with it, enumerated one by one.

Given the hyperparameters, the utilities of a timepoint have one or two dimensions.  In polar coordinates each order of
the algorithms is a sector; the integrand is smooth inside and may have kinks at its edges.  The radius is integrated
on a log scale, by the trapezoidal rule, and the angle by the tanh-sinh rule within each sector, so that neither long
tails nor edges cost accuracy.  For two algorithms the result agrees with the Beta distribution to 1e-8.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import gammaln, logsumexp

from polarbear_plugins import RankingTable
from polarbear_plugins.priors import BUILT_IN_PRIORS

# Logarithm of the radius.  The longest tails have the rate exp(-16) / 3.
RADII = np.arange(-20.0, 22.0, 0.04)
ANGLES = 100  # in each sector of three algorithms
LOG_KAPPA = np.linspace(-16.0, 7.0, 47)
LOG_SPREAD = np.linspace(-10.0, 10.0, 81)
FINE = 40  # points between two of those, after interpolation


@dataclass(frozen=True)
class Exact:
    """Probabilities, and mean and standard deviation of each hyperparameter."""

    p_better: np.ndarray
    p_anytime: np.ndarray | None = None
    hyperparameters: dict[str, tuple[float, float]] = field(default_factory=dict)


def has_exact(prior: str, algorithms: int, timepoints: int) -> bool:
    """Whether :func:`exact_posterior` can compute this posterior."""
    return algorithms <= 3 and (timepoints == 1 or prior in ("dirichlet", "hierarchical-dirichlet"))


def exact_posterior(table: RankingTable, prior: str) -> Exact:
    """Posterior of two or three algorithms: at one timepoint, or at any number of them under Dirichlet priors."""
    n = len(table.algorithms)
    if not has_exact(prior, n, table.timepoints.size):
        raise ValueError(f"no quadrature for prior {prior}, n={n}, T={table.timepoints.size}")
    plane = Plane(n)
    likelihoods = (plane.log_likelihood(table.ranks[:, t], table.weights) for t in range(table.timepoints.size))
    if prior == "dirichlet":
        flat = plane.log_dirichlet(BUILT_IN_PRIORS[prior]().alpha)
        return Exact(np.stack([plane.p_better(plane.log_masses(values + flat)) for values in likelihoods]))
    if prior == "hierarchical-dirichlet":
        return _hierarchical(plane, list(likelihoods))
    return _single_timepoint(plane, next(likelihoods), BUILT_IN_PRIORS[prior]())


class Plane:
    """Quadrature points over the utilities of two or three algorithms.

    ``terms[s, point]`` is the logarithm of the summed ratings of a set of algorithms, whose bits are those of ``s``;
    for a single algorithm that is its utility.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.orders = list(itertools.permutations(range(n)))
        angles, log_weights = (np.zeros(1), np.zeros(1)) if n == 2 else _tanh_sinh(ANGLES)
        radii = np.exp(RADII)
        points, self.log_weights = [], np.add.outer(log_weights, (n - 1) * RADII).ravel()
        for order in self.orders:
            direction = np.zeros((angles.size, n))
            if n == 2:
                direction[:, list(order)] = [math.sqrt(0.5), -math.sqrt(0.5)]
            else:
                # From the edge where the first two are equal to the edge where the last two are.
                edges = np.array([[1.0, 1.0, -2.0], [2.0, -1.0, -1.0]]) / math.sqrt(6)
                parts = np.sin(math.pi / 3 - angles), np.sin(angles)
                direction[:, list(order)] = sum(np.outer(part, edge) for part, edge in zip(parts, edges, strict=True))
                direction /= math.sin(math.pi / 3)
            points.append((direction[:, None, :] * radii[:, None]).reshape(-1, n))
        utilities = np.concatenate(points).T
        self.terms = np.zeros((1 << n, utilities.shape[1]))
        for s in range(1, 1 << n):
            self.terms[s] = np.logaddexp.reduce(utilities[[i for i in range(n) if s >> i & 1]], axis=0)

    def log_likelihood(self, ranks: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Log-likelihood of the rankings of one timepoint at each point; ties are averaged over their orders."""
        counts = np.zeros(1 << self.n)
        for row, weight in zip(ranks, weights, strict=True):
            present = [int(i) for i in np.flatnonzero(row)]
            agreeing = [
                order
                for order in itertools.permutations(present)
                if all(row[a] <= row[b] for a, b in itertools.pairwise(order))
            ]
            for order in agreeing:
                for place in range(len(order) - 1):
                    counts[1 << order[place]] += weight / len(agreeing)
                    counts[sum(1 << i for i in order[place:])] -= weight / len(agreeing)
        return counts @ self.terms

    def log_dirichlet(self, alpha: float) -> np.ndarray:
        """Log-density of utilities whose softmax is Dirichlet(alpha)."""
        n = self.n
        logs = self.terms[[1 << i for i in range(n)]].sum(axis=0) - n * self.terms[-1]
        return alpha * logs + (gammaln(n * alpha) - n * gammaln(alpha))

    def log_normal(self, log_spread: float) -> np.ndarray:
        """Log-density of normal contrasts, up to a constant."""
        one_sector = np.tile(-0.5 * np.exp(2 * (RADII - log_spread)), self.log_weights.size // RADII.size)
        return np.tile(one_sector, len(self.orders)) - (self.n - 1) * log_spread

    def log_masses(self, log_density: np.ndarray) -> np.ndarray:
        """Logarithm of the mass of each order, up to a constant."""
        return logsumexp(log_density.reshape(len(self.orders), -1) + self.log_weights, axis=1)

    def p_better(self, log_masses: np.ndarray) -> np.ndarray:
        """``p_better[..., i, j]`` from ``log_masses[..., order]``."""
        shares = np.exp(log_masses - logsumexp(log_masses, axis=-1, keepdims=True))
        better = np.zeros((*shares.shape[:-1], self.n, self.n))
        for place, order in enumerate(self.orders):
            for i, j in itertools.combinations(order, 2):
                better[..., i, j] += shares[..., place]
        return better


def _tanh_sinh(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Angles between 0 and 60 degrees, and their log-weights."""
    t = np.linspace(-3.2, 3.2, count)
    u = 0.5 * math.pi * np.sinh(t)
    angles = math.pi / 3 / (1 + np.exp(-2 * u))
    return angles, np.log(np.cosh(t)) - 2 * np.log(np.cosh(u))


def _on_nodes(
    plane: Plane, likelihood: np.ndarray, log_prior: Callable[[float], np.ndarray], nodes: np.ndarray
) -> CubicSpline:
    """Logarithm of the mass of each order as a function of a hyperparameter."""
    return CubicSpline(nodes, [plane.log_masses(likelihood + log_prior(node)) for node in nodes])


def _hierarchical(plane: Plane, likelihoods: list[np.ndarray]) -> Exact:
    """Kappa is shared by all timepoints, which are independent given kappa."""
    log_kappa = np.linspace(LOG_KAPPA[0], LOG_KAPPA[-1], (LOG_KAPPA.size - 1) * FINE + 1)
    masses = [
        _on_nodes(plane, values, lambda node: plane.log_dirichlet(math.exp(node) / plane.n), LOG_KAPPA)(log_kappa)
        for values in likelihoods
    ]
    rate = BUILT_IN_PRIORS["hierarchical-dirichlet"]().rate
    log_density = log_kappa - rate * np.exp(log_kappa) + sum(logsumexp(mass, axis=1) for mass in masses)
    weights = np.exp(log_density - logsumexp(log_density))
    better = np.stack([np.einsum("k,kij->ij", weights, plane.p_better(mass)) for mass in masses])
    return Exact(better, None, {"log_kappa": _moments(log_kappa, weights)})


def _single_timepoint(plane: Plane, likelihood: np.ndarray, prior: Any) -> Exact:
    """A temporal prior at one timepoint: only the standard deviation of the contrasts matters."""
    spline = _on_nodes(plane, likelihood, plane.log_normal, LOG_SPREAD)
    axes = [_hyperprior_range(prior, place) for place in range(len(prior.hyperparameters))]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    time = np.zeros(1)
    spread = np.array([0.5 * math.log(np.sum(prior.factor(phi, time) ** 2)) for phi in grid])
    masses = spline(np.clip(spread, LOG_SPREAD[0], LOG_SPREAD[-1]))
    log_density = np.array([float(prior.log_hyperprior(phi)) for phi in grid]) + logsumexp(masses, axis=1)
    weights = np.exp(log_density - logsumexp(log_density))
    better = np.einsum("k,kij->ij", weights, plane.p_better(masses))
    moments = {name: _moments(grid[:, place], weights) for place, name in enumerate(prior.hyperparameters)}
    return Exact(better[None], better, moments)


def _hyperprior_range(prior: Any, place: int) -> np.ndarray:
    """Values of one hyperparameter whose prior density is not negligible.

    The likelihood of a single timepoint is between fixed bounds over them, so that the posterior is no wider.
    """
    wide = np.linspace(-12.0, 15.0, 2701)
    start = np.asarray(prior.start, dtype=float)
    points = np.repeat(start[None], wide.size, axis=0)
    points[:, place] = wide
    log_density = np.array([float(prior.log_hyperprior(phi)) for phi in points])
    kept = wide[log_density > log_density.max() - 30]
    return np.linspace(kept[0], kept[-1], 301)


def _moments(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation."""
    mean = float(weights @ values)
    return mean, math.sqrt(float(weights @ (values - mean) ** 2))
