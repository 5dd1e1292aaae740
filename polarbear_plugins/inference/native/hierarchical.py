"""The native engine for the hierarchical Dirichlet prior: the posterior of its one hyperparameter, then draws given it.

Given kappa, timepoints are independent, and the derivative of the log-evidence of kappa is an expectation over their
draws.  Integrated, it gives the posterior of kappa without computing any evidence.  Draws given one kappa, reweighted,
are draws given another one nearby: a few anchors suffice, a single one where there are many timepoints.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import digamma

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.inference.native.importance import resample, systematic_resample
from polarbear_plugins.inference.native.independent import Timepoint, sample_timepoints
from polarbear_plugins.plackett_luce.likelihood import log_set_sums
from polarbear_plugins.plackett_luce.subsets import Statistics

_SEARCH_DRAWS, _FEWEST_DRAWS = 250, 1000
_STEP = 0.1  # of log kappa, between two places where its density is computed
_DROP = 6.5  # of the log-density, beyond which kappa is left out
_WORTH = 0.3  # share of its draws that the weights of every timepoint must be worth within reach of an anchor
_LONGEST_REACH = 2.0
_MOST_ANCHORS = 40
_SMALLEST_ALPHA, _LARGEST_ALPHA = 1e-6, 1000.0
_NEGLIGIBLE = 2e-3  # probability of a place


@dataclass(frozen=True, slots=True)
class Hierarchical:
    """Draws of ``utilities[draw, timepoint, algorithm]`` and ``log_kappa[draw]``; the timepoints sampled."""

    utilities: FloatArray
    log_kappa: FloatArray
    sampled: list[Timepoint]
    anchors: int
    problems: tuple[str, ...]


class _Anchor:
    """Draws given one kappa, and what they say about others nearby."""

    def __init__(self, log_kappa: float, done: list[Timepoint]) -> None:
        self.log_kappa, self.done = log_kappa, done
        utilities = np.stack([timepoint.utilities for timepoint in done])
        self.timepoints, _, self.algorithms = utilities.shape
        # Mean log-rating ``[timepoint, draw]``: all that the prior sees of a draw.
        self._means = utilities.mean(axis=2) - log_set_sums(utilities, np.ones((1, self.algorithms)))[..., 0]

    def weights(self, log_kappa: float) -> FloatArray:
        """Weights ``[timepoint, draw]`` that make the draws those given another kappa."""
        logs = (math.exp(log_kappa) - math.exp(self.log_kappa)) * self._means
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def worth(self, log_kappa: float) -> float:
        """Share of the draws that they are worth given another kappa, at the worst timepoint."""
        return float(1 / (self.weights(log_kappa) ** 2).sum(axis=1).max()) / self._means.shape[1]

    def slope(self, log_kappa: float, rate: float) -> float:
        """Derivative of the log-density of log kappa."""
        kappa = math.exp(log_kappa)
        logs = float((self.weights(log_kappa) * self._means).sum())
        normaliser = self.timepoints * (digamma(kappa) - digamma(kappa / self.algorithms))
        return float(kappa * (logs + normaliser - rate) + 1)

    def draw(self, log_kappa: float, count: int, rng: np.random.Generator) -> FloatArray:
        """Draws ``[draw, timepoint, algorithm]`` given another kappa."""
        drawn = np.empty((count, self.timepoints, self.algorithms))
        for t, weights in enumerate(self.weights(log_kappa)):
            drawn[:, t] = self.done[t].utilities[resample(weights, count, rng)]
        return drawn

    def reach(self, direction: float) -> float:
        """How far from the anchor its draws are worth enough."""
        reach = _LONGEST_REACH
        while reach > 0.02 and self.worth(self.log_kappa + direction * reach) < _WORTH:
            reach *= 0.7
        return reach


class _Density:
    """The posterior of log kappa, by sampling the timepoints given kappa."""

    def __init__(self, statistics: Statistics, rate: float, seed: np.random.SeedSequence) -> None:
        self.statistics, self.rate, self.seed = statistics, rate, seed
        n = statistics.algorithms
        self.low, self.high = math.log(n * _SMALLEST_ALPHA), math.log(n * _LARGEST_ALPHA)
        self._modes: FloatArray | None = None

    def anchor(self, log_kappa: float, draws: int) -> _Anchor:
        """Draw at every timepoint given kappa."""
        alpha = math.exp(log_kappa) / self.statistics.algorithms
        seeds = self.seed.spawn(self.statistics.timepoints)
        done = sample_timepoints(self.statistics.with_dirichlet(alpha), draws, seeds, self._modes)
        self._modes = np.array([timepoint.mode for timepoint in done])
        return _Anchor(log_kappa, done)

    def slope(self, log_kappa: float) -> float:
        """Rough estimate of the derivative of the log-density, from few draws."""
        return self.anchor(log_kappa, _SEARCH_DRAWS).slope(log_kappa, self.rate)

    def mode(self) -> float:
        """Where the slope changes its sign, roughly."""
        here = min(max(math.log(self.statistics.algorithms), self.low), self.high)
        slope, reach = self.slope(here), 0.5
        while True:  # step uphill until the slope turns
            ahead = min(max(here + math.copysign(reach, slope), self.low), self.high)
            if ahead == here:
                return here
            there = self.slope(ahead)
            if there * slope <= 0:
                break
            here, slope, reach = ahead, there, 2 * reach
        for _ in range(3):
            share = min(max(slope / (slope - there), 0.05), 0.95)
            middle = here + (ahead - here) * share
            between = self.slope(middle)
            if between * slope > 0:
                here, slope = middle, between
            else:
                ahead, there = middle, between
        return middle


def sample_hierarchical(statistics: Statistics, rate: float, draws: int, seed: np.random.SeedSequence) -> Hierarchical:
    """Draws from the posterior with kappa ~ Exponential(rate) and ratings Dirichlet(kappa / n) at each timepoint."""
    density = _Density(statistics, rate, seed)
    anchors, places, slopes = _follow(density, density.mode(), draws)
    logs = CubicSpline(places, slopes).antiderivative()(places)
    probabilities = np.exp(logs - logs.max())
    probabilities /= probabilities.sum()
    rng = np.random.default_rng(seed.spawn(1)[0])
    counts = np.bincount(systematic_resample(probabilities, draws, rng), minlength=places.size)
    utilities = np.empty((draws, statistics.timepoints, statistics.algorithms))
    start = 0
    nearest = np.abs(np.subtract.outer(places, [anchor.log_kappa for anchor in anchors])).argmin(axis=1)
    for place, near, count in zip(places.tolist(), nearest, counts, strict=True):
        if count:
            utilities[start : start + count] = anchors[near].draw(place, count, rng)
            start += count
    log_kappa = np.repeat(places, counts) + _STEP * (rng.random(draws) - 0.5)
    order = rng.permutation(draws)
    edge = probabilities[[0, -1]] > _NEGLIGIBLE
    bounds = [f"{name} than {math.exp(bound):.2g}" for name, bound in (("smaller", density.low), ("larger", density.high))]
    problems = tuple(f"kappa may be {bound}" for bound, there in zip(bounds, edge, strict=True) if there)
    used = [anchors[near].done for near in np.unique(nearest[counts > 0])]
    sampled = [timepoint for done in used for timepoint in done]
    return Hierarchical(utilities[order], log_kappa[order], sampled, len(used), problems)


def _follow(density: _Density, mode: float, draws: int) -> tuple[list[_Anchor], FloatArray, FloatArray]:
    """Anchors, and the slope at places one step apart, from the mode to where the density is negligible."""
    first = density.anchor(mode, draws)
    anchors = [first]
    slopes = {0: first.slope(first.log_kappa, density.rate)}
    for direction in (1, -1):
        anchor, reach, number, drop = first, first.reach(direction), 0, 0.0
        while drop > -_DROP and len(anchors) < _MOST_ANCHORS:
            number += direction
            place = first.log_kappa + number * _STEP
            if not density.low <= place <= density.high:
                break
            if abs(place - anchor.log_kappa) > reach:
                beyond = min(max(place + direction * reach, density.low), density.high)
                anchor = density.anchor(beyond, min(draws, max(_FEWEST_DRAWS, draws // 4)))
                anchors.append(anchor)
                reach = anchor.reach(direction)
            slopes[number] = anchor.slope(place, density.rate)
            drop += direction * _STEP * (slopes[number - direction] + slopes[number]) / 2
    numbers = sorted(slopes)
    return anchors, first.log_kappa + _STEP * np.array(numbers), np.array([slopes[number] for number in numbers])
