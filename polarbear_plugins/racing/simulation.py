"""Simulated continuations of a race, from its posterior and by its rules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import BoolArray, Float32Array, FloatArray
from polarbear_plugins.plackett_luce.likelihood import margin_of
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.rules import next_batch
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.racing.state import RaceState
from polarbear_plugins.rankings.ranks import UNRANKED_RANK

_FARTHEST = 100  # times the instances there are: a race that needs more is not followed to its end
_ROWS = 1000  # the newest are enough to see how timepoints are correlated
_DRAWS = 400  # enough for the probability of dominance at all timepoints at once


@dataclass(frozen=True, slots=True)
class _Pairs:
    """All pairs of algorithms: the places of the two, also as indicators ``[pair, algorithm]``."""

    one: NDArray[np.intp]
    other: NDArray[np.intp]
    is_one: Float32Array
    is_other: Float32Array

    @classmethod
    def among(cls, algorithms: int) -> _Pairs:
        one, other = np.triu_indices(algorithms, 1)
        is_one, is_other = ((pair[:, None] == np.arange(algorithms)).astype(np.float32) for pair in (one, other))
        return cls(one, other, is_one, is_other)

    def differences(self, values: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):  # inf is worse than any number, and as bad as inf
            return values[..., self.one] - values[..., self.other]

    def both(self, flags: BoolArray) -> BoolArray:
        return flags[..., self.one] & flags[..., self.other]


class _Deviations(Protocol):
    """How far estimates ``[timepoint, pair]`` are off."""

    def sample(self, count: int, rng: np.random.Generator) -> FloatArray: ...


@dataclass(frozen=True, slots=True)
class _JointDeviations:
    """A joint posterior knows how timepoints are correlated: its own draws."""

    draws: FloatArray
    pairs: _Pairs

    def sample(self, count: int, rng: np.random.Generator) -> FloatArray:
        return self.pairs.differences(self.draws[rng.integers(len(self.draws), size=count)])


@dataclass(frozen=True, slots=True)
class _PointwiseDeviations:
    """Timepoints have posteriors of their own; how they are correlated is seen in the rankings of the same runs."""

    across: NDArray[np.floating[Any]]  # root of the correlation over time
    within: FloatArray  # roots of the covariances at each timepoint
    pairs: _Pairs

    def sample(self, count: int, rng: np.random.Generator) -> FloatArray:
        normal = rng.standard_normal((count, *self.within.shape[:2]))
        coupled = np.einsum("tu,sui->sti", self.across, normal)
        return self.pairs.differences(np.einsum("tij,stj->sti", self.within, coupled))


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What is known before the simulation starts, ``[timepoint, pair]`` unless it says otherwise.

    Attributes
    ----------
    instances
        How many there are, by weight.
    unit
        Variance of a difference of log-ratings from one ranking, at each timepoint.
    rankings
        How many rankings have both algorithms of a pair, the prior included.
    mean, spread
        Of the differences of log-ratings under the posterior.
    """

    instances: float
    unit: FloatArray
    rankings: FloatArray
    mean: FloatArray
    spread: FloatArray
    deviations: _Deviations

    @classmethod
    def of(cls, state: RaceState, posterior: Posterior, inside: list[int], pairs: _Pairs) -> _Evidence:
        weights, ranks = state.table.weights, state.table.ranks
        seen, unranked = ranks > 0, ranks[:, :, inside] == UNRANKED_RANK
        logs = posterior.log_ratings[:, :, inside]
        mean = logs.mean(axis=0)
        off = logs - mean
        unit = _variance(_mean_size(seen, weights))
        deviations: _Deviations
        if posterior.joint:
            deviations = _JointDeviations(off, pairs)
        else:
            values = np.where(unranked, np.inf, state.table.values[:, :, inside])[-_ROWS:]
            signs = np.sign(pairs.differences(values))
            across = np.linalg.cholesky(_correlation(signs))
            within = _roots(off - off.mean(axis=2, keepdims=True))
            deviations = _PointwiseDeviations(across, within, pairs)
        return cls(
            instances=float(state.instances_run if state.stored else weights.sum()),
            unit=unit,
            # The prior counts too: a uniform one as half a unit of rankings, which is 2 rankings of two algorithms.
            # Between two unranked ones nothing is known.
            rankings=np.einsum("r,rtp->tp", weights, pairs.both(seen[:, :, inside]) & ~pairs.both(unranked))
            + unit[:, None] / 2,
            mean=pairs.differences(mean),
            spread=pairs.differences(off).std(axis=0),
            deviations=deviations,
        )


@dataclass(frozen=True, slots=True)
class _Thresholds:
    """When a difference of log-ratings with a normal posterior is settled."""

    alpha: float
    quantile: float  # standard deviations
    margin: float

    @classmethod
    def of(cls, settings: RaceSettings, algorithms: int) -> _Thresholds:
        # With alpha = 1 nothing would ever be settled; the forecast is for what 4,000 draws can resolve.
        alpha = min(settings.alpha, 1 - 1 / 4000)
        quantile = NormalDist().inv_cdf(alpha)
        if settings.rule == "anytime-valid":
            # The logarithm of an e-value is about half the squared number of standard deviations, less what it costs
            # not to know the best stake, and direct wins tell less than whole rankings.
            quantile = math.sqrt(2 * math.log(algorithms / (1 - alpha)) + 3)
        return cls(alpha, quantile, margin_of(settings.epsilon))

    def relations(self, mean: FloatArray, spread: FloatArray) -> tuple[BoolArray, BoolArray, BoolArray]:
        """Where one is surely better, surely worse, surely equivalent."""
        from scipy.special import ndtr

        better, worse = mean >= self.quantile * spread, -mean >= self.quantile * spread
        equivalent = np.zeros_like(better)
        near = (np.abs(mean) < self.margin) & (self.quantile * spread < self.margin) & ~better & ~worse
        offset, scale = mean[near], spread[near]
        equivalent[near] = ndtr((self.margin - offset) / scale) - ndtr((-self.margin - offset) / scale) >= self.alpha
        return better, worse, equivalent


class Simulations:
    """Races side by side: arrays ``[simulation, timepoint, pair]`` of differences of log-ratings."""

    def __init__(
        self, state: RaceState, posterior: Posterior, inside: list[int], count: int, rng: np.random.Generator
    ) -> None:
        self._settings, self._rng = state.settings, rng
        self._thresholds = _Thresholds.of(state.settings, len(state.algorithms))
        self._steps = np.diff(state.timepoints, prepend=0.0)
        self._pairs = _Pairs.among(len(inside))
        self._known = _Evidence.of(state, posterior, inside, self._pairs)
        self._truth = self._known.mean + self._known.deviations.sample(count, rng)
        self._noise, self._added = np.zeros_like(self._truth), np.zeros_like(self._truth)
        resolved = state.resolved[:, inside][:, :, inside][:, self._pairs.one, self._pairs.other]
        # The race is not about pairs of stored rivals, which cost nothing.
        resolved = resolved | ~state.contested[np.ix_(inside, inside)][self._pairs.one, self._pairs.other]
        self._pays = ~np.isin([state.algorithms[place] for place in inside], state.stored)
        self._resolved = np.repeat(resolved[None], count, axis=0)
        self._alive = np.ones((count, len(inside)), dtype=bool)
        self._batch = np.full(count, state.batch)
        self._instances, self._cost, self._rounds = np.zeros((3, count))

    def run(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Instances, cost and rounds until every pair is settled, for each simulation; ``inf`` if too many."""
        limit = _FARTHEST * self._known.instances
        going = np.flatnonzero(~self._resolved.all(axis=(1, 2)))
        while going.size:
            mean, spread = self._observe(going)
            self._decide(going, mean, spread)
            self._rounds[going] += 1
            going = going[~self._resolved[going].all(axis=(1, 2))]
            lost = going[self._instances[going] > limit]
            self._instances[lost] = self._cost[lost] = self._rounds[lost] = np.inf
            going = np.setdiff1d(going, lost)
        return self._instances, self._cost, self._rounds

    def _observe(self, going: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Run a batch; returns mean and spread of the posterior after it."""
        known, pairs = self._known, self._pairs
        count = self._batch[going]
        is_open = (~self._resolved[going]).astype(np.float32)
        open_at: BoolArray = is_open @ (pairs.is_one + pairs.is_other) > 0
        if self._settings.needs_full_runs:
            open_at |= open_at.any(axis=1, keepdims=True)
        runs = np.logical_or.accumulate(open_at[:, ::-1], axis=1)[:, ::-1]
        self._instances[going] += count
        self._cost[going] += self._settings.replications * count * (runs[:, :, self._pays].sum(axis=2) @ self._steps)
        worth = known.unit / _variance(np.maximum(runs.sum(axis=2), 2.0))
        added = (count[:, None] * worth)[:, :, None] * pairs.both(runs)
        self._added[going] += added
        # The variance of an estimate falls with the number of instances; these are the sums of its errors.
        self._noise[going] += np.sqrt(added * known.rankings) * known.deviations.sample(going.size, self._rng)
        truth, total = self._truth[going], known.rankings + self._added[going]
        mean = truth + (known.rankings * (known.mean - truth) + self._noise[going]) / total
        return mean, known.spread * np.sqrt(known.rankings / total)

    def _decide(self, going: NDArray[np.intp], mean: FloatArray, spread: FloatArray) -> None:
        """Eliminate and settle by the rules of the race."""
        pairs = self._pairs
        better, worse, equivalent = self._thresholds.relations(mean, spread)
        settled = better | worse | equivalent
        if self._settings.resolution == "crossing":
            kinds = sum(kind.any(axis=1).astype(int) for kind in (better, worse, equivalent))
            settled |= np.asarray(kinds >= 2)[:, None, :]
        resolved, alive = self._resolved[going], self._alive[going]
        wins = self._dominates(better, mean, spread) & alive[:, pairs.one]
        losses = self._dominates(worse, -mean, spread) & alive[:, pairs.other]
        alive &= wins.astype(np.float32) @ pairs.is_other + losses.astype(np.float32) @ pairs.is_one == 0
        open_before = (~resolved.all(axis=1)).sum(axis=1)
        resolved |= settled | ~pairs.both(alive)[:, None, :]
        open_after = (~resolved.all(axis=1)).sum(axis=1)
        self._resolved[going], self._alive[going] = resolved, alive
        instances = self._known.instances + self._instances[going]
        self._batch[going] = next_batch(self._batch[going], open_before, open_after, instances, self._settings)

    def _dominates(self, better: BoolArray, mean: FloatArray, spread: FloatArray) -> BoolArray:
        """Whether one dominates the other, ``[simulation, pair]``: at each timepoint by itself, or at all at once."""
        everywhere: BoolArray = np.asarray(better.all(axis=1))
        deviations = self._known.deviations
        if self._settings.elimination == "joint" and isinstance(deviations, _JointDeviations):
            draws = self._pairs.differences(deviations.draws[:: max(1, len(deviations.draws) // _DRAWS)])
            for k, pair in np.argwhere(everywhere):
                scale = spread[k, :, pair] / np.maximum(self._known.spread[:, pair], 1e-300)
                above = (mean[k, :, pair] + scale * draws[:, :, pair] > 0).all(axis=1)
                everywhere[k, pair] = above.mean() >= self._thresholds.alpha
        return everywhere


def _variance(algorithms: FloatArray) -> FloatArray:
    """Variance of a difference of log-ratings from one ranking of this many equal algorithms.

    The information of a Plackett-Luce ranking is a sum over its choices; 4 for two algorithms, towards 2 for many.
    """
    from scipy.special import digamma

    harmonic = digamma(algorithms + 1) + np.euler_gamma
    return 2 * (algorithms - 1) / (algorithms - harmonic)


def _mean_size(seen: BoolArray, weights: FloatArray) -> FloatArray:
    """Average number of algorithms in the rankings of each timepoint."""
    sizes = seen.sum(axis=2)
    counted = weights[:, None] * (sizes > 1)
    mean: FloatArray = (counted * sizes).sum(axis=0) / np.maximum(counted.sum(axis=0), 1e-300)
    return np.maximum(mean, 2.0)


def _correlation(signs: FloatArray) -> FloatArray:
    """Correlation over time of who wins a pair, ``signs[row, timepoint, pair]``, ``nan`` where unknown."""
    seen = ~np.isnan(signs)
    known = np.where(seen, signs, 0.0)
    centred = np.where(seen, known - known.sum(axis=0) / np.maximum(seen.sum(axis=0), 1), 0.0)
    flat, there = (array.transpose(1, 0, 2).reshape(array.shape[1], -1).astype(float) for array in (centred, seen))
    squares = (flat * flat) @ there.T
    correlation = flat @ flat.T / np.sqrt(np.maximum(squares * squares.T, 1e-300))
    np.fill_diagonal(correlation, 1.0)
    roots, vectors = np.linalg.eigh(correlation)  # with gaps in the data it may not be quite positive
    repaired = (vectors * np.maximum(roots, 1e-6)) @ vectors.T
    scale = np.sqrt(np.diag(repaired))
    return repaired / scale[:, None] / scale


def _roots(deviations: FloatArray) -> FloatArray:
    """Square root of the covariance at each timepoint, from ``deviations[draw, timepoint, algorithm]``."""
    covariance = np.einsum("sti,stj->tij", deviations, deviations) / len(deviations)
    values, vectors = np.linalg.eigh(covariance)
    return np.einsum("tik,tk,tjk->tij", vectors, np.sqrt(np.maximum(values, 0.0)), vectors)
