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
from polarbear_plugins.plackett_luce.likelihood import Likelihood, log_set_sums
from polarbear_plugins.plackett_luce.subsets import Statistics

_SEARCH_DRAWS, _FEWEST_DRAWS = 250, 1000
_LONGEST_STEP, _STEPS = 0.1, 2.5  # of log kappa, between two nodes; how many a standard deviation has at least
_DROP = 5.5  # of the log-density, beyond which kappa is left out
_WORTH = 0.4  # share of its draws that the weights of every timepoint must be worth within reach of an anchor
_LONGEST_REACH = 2.0
_MOST_NODES = 400
_SLOPE_DRAWS = 1000
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
    """Draws given one kappa, and what they say about larger ones nearby.

    Given a smaller kappa ratings have longer tails, which draws do not reach: weights go one way only.
    """

    def __init__(self, log_kappa: float, done: list[Timepoint], likelihood: Likelihood) -> None:
        self.log_kappa, self.done = log_kappa, done
        utilities = np.stack([timepoint.utilities for timepoint in done], axis=1)
        self.timepoints, self.algorithms = utilities.shape[1:]
        totals = log_set_sums(utilities, np.ones((1, self.algorithms)))
        log_ratings = utilities - totals
        # Mean log-rating ``[draw, timepoint]``: all that the prior sees of a draw.
        self._means = log_ratings.mean(axis=2)
        self._few = slice(0, _SLOPE_DRAWS)
        few = log_ratings[self._few]
        self._entropy = -(np.exp(few) * few).sum(axis=2)
        self._radial = np.einsum("ztn,ztn->zt", few, likelihood.gradient(few))

    def weights(self, log_kappa: float) -> FloatArray:
        """Weights ``[draw, timepoint]`` that make the draws those given another kappa."""
        return _normalised((math.exp(log_kappa) - math.exp(self.log_kappa)) * self._means)

    def worth(self, log_kappa: float) -> float:
        """Share of the draws that they are worth given another kappa, at the worst timepoint."""
        return float(1 / (self.weights(log_kappa) ** 2).sum(axis=0).max()) / len(self._means)

    def slope(self, log_kappa: float, rate: float) -> float:
        """Derivative of the log-density of log kappa.

        It needs the mean log-rating, which varies wildly where kappa is small.  For any density ``p`` in ``d``
        dimensions the mean of ``x * grad log p(x)`` is ``-d``, which connects it to quantities that vary little.
        """
        kappa, means = math.exp(log_kappa), self._means[self._few]
        weights = _normalised((kappa - math.exp(self.log_kappa)) * means)
        control = kappa * (means + self._entropy) + self._radial + (self.algorithms - 1)
        expected, off = (weights * means).sum(axis=0), (weights * control).sum(axis=0)
        spread = (weights * (control - off) ** 2).sum(axis=0)
        common = (weights * (control - off) * (means - expected)).sum(axis=0)
        logs = float((expected - off * np.divide(common, spread, out=np.zeros_like(spread), where=spread > 0)).sum())
        normaliser = self.timepoints * (digamma(kappa) - digamma(kappa / self.algorithms))
        return float(kappa * (logs + normaliser - rate) + 1)

    def draw(self, log_kappa: float, count: int, rng: np.random.Generator) -> FloatArray:
        """Draws ``[draw, timepoint, algorithm]`` given another kappa."""
        drawn = np.empty((count, self.timepoints, self.algorithms))
        for t, weights in enumerate(self.weights(log_kappa).T):
            drawn[:, t] = self.done[t].utilities[resample(weights, count, rng)]
        return drawn

    def reach(self) -> float:
        """How far above the anchor its draws are worth enough."""
        reach = _LONGEST_REACH
        while reach > 0.02 and self.worth(self.log_kappa + reach) < _WORTH:
            reach *= 0.7
        return reach


def _normalised(logs: FloatArray) -> FloatArray:
    weights = np.exp(logs - logs.max(axis=0))
    return weights / weights.sum(axis=0)


class _Density:
    """The posterior of log kappa, by sampling the timepoints given kappa."""

    def __init__(self, statistics: Statistics, rate: float, seed: np.random.SeedSequence) -> None:
        self.statistics, self.rate, self.seed = statistics, rate, seed
        n = statistics.algorithms
        self.low, self.high = math.log(n * _SMALLEST_ALPHA), math.log(n * _LARGEST_ALPHA)
        self._likelihood = Likelihood(statistics)
        self._modes: FloatArray | None = None

    def anchor(self, log_kappa: float, draws: int) -> _Anchor:
        """Draw at every timepoint given kappa."""
        alpha = math.exp(log_kappa) / self.statistics.algorithms
        seeds = self.seed.spawn(self.statistics.timepoints)
        done = sample_timepoints(self.statistics.with_dirichlet(alpha), draws, seeds, self._modes)
        self._modes = np.array([timepoint.mode for timepoint in done])
        return _Anchor(log_kappa, done, self._likelihood)

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
    nodes = _follow(density, density.mode(), draws)
    places = np.array([node.log_kappa for node in nodes])
    logs = CubicSpline(places, [node.slope for node in nodes]).antiderivative()(places)
    probabilities = np.exp(logs - logs.max())
    probabilities /= probabilities.sum()
    rng = np.random.default_rng(seed.spawn(1)[0])
    counts = np.bincount(systematic_resample(probabilities, draws, rng), minlength=places.size)
    utilities = np.empty((draws, statistics.timepoints, statistics.algorithms))
    start = 0
    used: dict[float, _Anchor] = {}
    for node, count in zip(nodes, counts.tolist(), strict=True):
        if count:
            utilities[start : start + count] = node.anchor.draw(node.log_kappa, count, rng)
            used[node.anchor.log_kappa] = node.anchor
            start += count
    log_kappa = np.repeat(places, counts) + (places[1] - places[0]) * (rng.random(draws) - 0.5)
    order = rng.permutation(draws)
    bounds = (("smaller", density.low, probabilities[0]), ("larger", density.high, probabilities[-1]))
    problems = tuple(
        f"kappa may be {name} than {math.exp(bound):.2g}" for name, bound, chance in bounds if chance > _NEGLIGIBLE
    )
    sampled = [timepoint for anchor in used.values() for timepoint in anchor.done]
    return Hierarchical(utilities[order], log_kappa[order], sampled, len(used), problems)


@dataclass(frozen=True, slots=True)
class _Node:
    """A value of log kappa, the slope of its log-density, and the anchor for draws given it."""

    log_kappa: float
    slope: float
    anchor: _Anchor


def _step(anchor: _Anchor, rate: float) -> float:
    """Distance of the nodes: many timepoints know kappa well."""
    here, ahead = (anchor.slope(anchor.log_kappa + by, rate) for by in (0.0, 0.02))
    curvature = (here - ahead) / 0.02
    return min(_LONGEST_STEP, 1 / (_STEPS * math.sqrt(curvature))) if curvature > 0 else _LONGEST_STEP


def _follow(density: _Density, mode: float, draws: int) -> list[_Node]:
    """Nodes one step apart, from the mode to where the density is negligible on either side."""
    first = density.anchor(mode, draws)
    few = min(draws, max(_FEWEST_DRAWS, draws // 4))
    step = _step(first, density.rate)
    both = []
    for direction in (1, -1):
        anchor, nodes, drop = first, [_Node(mode, first.slope(mode, density.rate), first)], 0.0
        reach = first.reach()
        while drop > -_DROP and len(nodes) < _MOST_NODES:
            place = mode + direction * step * len(nodes)
            if not density.low <= place <= density.high:
                break
            if direction > 0 and place > anchor.log_kappa + reach:
                anchor = density.anchor(place, few)
                reach = anchor.reach()
            elif direction < 0 and place < anchor.log_kappa - 1e-9:
                # As far below as the last anchor reached above itself: this one then reaches the place.
                anchor = density.anchor(max(place - reach, density.low), few)
                reach = anchor.reach()
            nodes.append(_Node(place, anchor.slope(place, density.rate), anchor))
            drop += direction * step * (nodes[-2].slope + nodes[-1].slope) / 2
        both.append(nodes)
    return both[1][:0:-1] + both[0]
