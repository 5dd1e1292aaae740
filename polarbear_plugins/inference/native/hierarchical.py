"""The native engine for the hierarchical Dirichlet prior: a grid over its one hyperparameter.

Given kappa, timepoints are independent, and the derivative of the log-evidence of kappa is an expectation over their
draws.  Integrated over a grid it gives the posterior of kappa, without computing any evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import digamma, logsumexp

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.inference.native.importance import systematic_resample
from polarbear_plugins.inference.native.independent import Timepoint, sample_timepoints
from polarbear_plugins.plackett_luce.subsets import Statistics

_SEARCH_DRAWS, _NODE_DRAWS = 250, 1000
_DROP = 7.0  # grid points whose log-density is this far below the best are left out
_SMALLEST_ALPHA, _LARGEST_ALPHA = 0.01, 1000.0


@dataclass(frozen=True, slots=True)
class Hierarchical:
    """Draws of ``utilities[draw, timepoint, algorithm]`` and ``log_kappa[draw]``; the timepoints sampled."""

    utilities: FloatArray
    log_kappa: FloatArray
    sampled: list[Timepoint]
    nodes: int


class _Density:
    """Slope of the log-density of ``log kappa``, by sampling the timepoints given kappa."""

    def __init__(self, statistics: Statistics, rate: float, seed: np.random.SeedSequence) -> None:
        self.statistics, self.rate, self.seed = statistics, rate, seed
        self._modes: FloatArray | None = None

    def sample(self, log_kappa: float, draws: int) -> list[Timepoint]:
        """Draw at every timepoint given kappa."""
        alpha = math.exp(log_kappa) / self.statistics.algorithms
        seeds = self.seed.spawn(self.statistics.timepoints)
        done = sample_timepoints(self.statistics.with_dirichlet(alpha), draws, seeds, self._modes)
        self._modes = np.array([timepoint.mode for timepoint in done])
        return done

    def slope(self, log_kappa: float, done: list[Timepoint]) -> float:
        """Derivative at ``log_kappa``, estimated from draws given it."""
        kappa, n = math.exp(log_kappa), self.statistics.algorithms
        utilities = np.stack([timepoint.utilities for timepoint in done])
        utilities -= utilities.max(axis=-1, keepdims=True)
        logs = float(np.sum(utilities.mean(axis=(1, 2)) - np.log(np.exp(utilities) @ np.ones(n)).mean(axis=1)))
        normaliser = self.statistics.timepoints * (digamma(kappa) - digamma(kappa / n))
        return float(kappa * (logs + normaliser - self.rate) + 1)

    def search(self, log_kappa: float) -> float:
        """Rough estimate of the derivative, from few draws."""
        return self.slope(log_kappa, self.sample(log_kappa, _SEARCH_DRAWS))


def sample_hierarchical(statistics: Statistics, rate: float, draws: int, seed: np.random.SeedSequence) -> Hierarchical:
    """Draws from the posterior with kappa ~ Exponential(rate) and ratings Dirichlet(kappa / n) at each timepoint."""
    density = _Density(statistics, rate, seed)
    low, high = (math.log(statistics.algorithms * alpha) for alpha in (_SMALLEST_ALPHA, _LARGEST_ALPHA))
    mode, slopes = _mode(density, low, high)
    width = _width(mode, slopes)
    nodes = _nodes(density, mode, width, low, high)
    places = np.array(sorted(nodes))
    values = _integrate(places, np.array([nodes[here][0] for here in places]))
    probabilities = np.exp(values - logsumexp(values))
    rng = np.random.default_rng(seed.spawn(1)[0])
    counts = np.bincount(systematic_resample(probabilities, draws, rng), minlength=places.size)
    utilities = np.empty((draws, statistics.timepoints, statistics.algorithms))
    log_kappa = np.empty(draws)
    sampled: list[Timepoint] = []
    start = 0
    for node, count in zip(places.tolist(), counts, strict=True):
        if not count:
            continue
        done = nodes[node][1] if count <= _NODE_DRAWS else density.sample(node, int(count))
        rows = slice(start, start + count)
        utilities[rows] = np.stack([timepoint.utilities[:count] for timepoint in done], axis=1)
        log_kappa[rows] = node + width * (rng.random(count) - 0.5)  # uniform in the cell of its node
        sampled += done
        start += count
    order = rng.permutation(draws)
    return Hierarchical(utilities[order], log_kappa[order], sampled, int(np.count_nonzero(counts)))


def _nodes(
    density: _Density, mode: float, width: float, low: float, high: float
) -> dict[float, tuple[float, list[Timepoint]]]:
    """Slope and draws given kappa at points one width apart around the mode, as far as the density reaches."""
    done = density.sample(mode, _NODE_DRAWS)
    nodes = {mode: (density.slope(mode, done), done)}
    for direction in (1, -1):
        drop, last = 0.0, nodes[mode][0]
        for step in range(1, 25):
            here = mode + direction * step * width
            if not low <= here <= high:
                break
            done = density.sample(here, _NODE_DRAWS)
            slope = density.slope(here, done)
            nodes[here] = slope, done
            drop += direction * width * (last + slope) / 2
            last = slope
            if drop < -_DROP:
                break
    return nodes


def _integrate(places: FloatArray, slopes: FloatArray) -> FloatArray:
    """Log-density, up to a constant, from its slope."""
    if places.size == 1:
        return np.zeros(1)
    return CubicSpline(places, slopes).antiderivative()(places)


def _mode(density: _Density, low: float, high: float) -> tuple[float, dict[float, float]]:
    """Where the slope changes its sign, and all slopes computed on the way."""
    here = min(max(math.log(density.statistics.algorithms), low), high)
    slopes = {here: density.search(here)}
    reach = 0.5
    while True:  # step uphill until the slope turns
        ahead = min(max(here + math.copysign(reach, slopes[here]), low), high)
        if ahead == here:
            return here, slopes
        slopes[ahead] = density.search(ahead)
        if slopes[ahead] * slopes[here] <= 0:
            break
        here, reach = ahead, 2 * reach
    a, b = sorted((here, ahead))
    for _ in range(3):
        middle = a + (b - a) * slopes[a] / (slopes[a] - slopes[b])
        middle = min(max(middle, a + 0.05 * (b - a)), b - 0.05 * (b - a))
        slopes[middle] = density.search(middle)
        a, b = (middle, b) if slopes[middle] > 0 else (a, middle)
    return middle, slopes


def _width(mode: float, slopes: dict[float, float]) -> float:
    """Distance of the nodes: a little less than the standard deviation around the mode."""
    near = sorted(slopes, key=lambda here: abs(here - mode))[:4]
    if len(near) < 2:
        return 0.6
    curvature = -float(np.polyfit(near, [slopes[here] for here in near], 1)[0])
    return 0.8 * float(np.clip(1 / math.sqrt(curvature), 0.02, 0.8)) if curvature > 0 else 0.6
