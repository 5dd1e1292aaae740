"""How many more instances a race will likely need: simulated from its posterior until every pair is settled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import BoolArray, FloatArray
from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.display.frames import long_frame
from polarbear_plugins.plackett_luce.likelihood import margin_of
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.rules import next_batch
from polarbear_plugins.racing.state import RaceState

if TYPE_CHECKING:
    import pandas as pd


_FARTHEST = 100  # a race that needs more times the instances there are is not followed to its end
_FINEST = 0.02  # growth between two looks, at least: a long race is not followed round by round
_CELLS = 400_000  # simulations times pairs times timepoints at most, if no number of simulations is given
_SIMULATIONS = 200, 40  # by default: as a rule, and for large races
_ROWS = 1000  # the newest are enough to see how timepoints hang together
_DRAWS = 400  # enough for the probability of dominance at all timepoints at once


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Forecast:
    """How many more instances, and how much more cost, would settle every pair, in simulations of the race.

    Attributes
    ----------
    instances, costs
        One number for each simulation; ``inf`` where it takes more than 100 times the instances there are.
    """

    instances: FloatArray
    costs: FloatArray

    @property
    def median(self) -> int | None:
        """Median of the instances; ``None`` stands for more than 100 times those there are, here and below."""
        return self.quantile(0.5)

    @property
    def low(self) -> int | None:
        """Lower end of the middle 80 %."""
        return self.quantile(0.1)

    @property
    def high(self) -> int | None:
        """Upper end of the middle 80 %."""
        return self.quantile(0.9)

    @property
    def mean(self) -> float | None:
        """Expected instances; ``None`` if some simulation did not come to its end."""
        mean = float(self.instances.mean())
        return mean if math.isfinite(mean) else None

    def quantile(self, share: float, *, cost: bool = False) -> int | None:
        """Instances, or cost, that this share of the simulations does not exceed."""
        share = as_number(share, "quantile", at_least=0, at_most=1)
        count = float(np.quantile(self.costs if cost else self.instances, share, method="higher"))
        return math.ceil(count) if math.isfinite(count) else None

    def to_pandas(self) -> pd.DataFrame:
        """Give a row for each ``simulation``, with the ``instances`` and the ``cost`` still to come in it."""
        axes = {"simulation": np.arange(self.instances.size)}
        return long_frame(axes, {"instances": self.instances, "cost": self.costs})

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON data."""
        shares = {"low": 0.1, "median": 0.5, "high": 0.9}
        return {
            "instances": {"mean": self.mean, **{name: self.quantile(share) for name, share in shares.items()}},
            "cost": {name: self.quantile(share, cost=True) for name, share in shares.items()},
            "interval": 0.8,
            "simulations": self.instances.size,
            "unfinished": int(np.isinf(self.instances).sum()),
        }

    def __str__(self) -> str:
        if self.median is None:
            return "more than a hundred times as many instances as there are"
        most = "many" if self.high is None else f"{self.high:,}"
        return f"about {self.median:,} more instances (80 % interval {self.low:,} to {most})"

    def __repr__(self) -> str:
        return f"Forecast({self}, {self.instances.size} simulations)"


def forecast(state: RaceState, posterior: Posterior, simulations: int | None = None, seed: int = 0) -> Forecast:
    """Simulate how a race goes on until every open pair is settled.

    Each simulation takes a draw of the posterior for the truth.  With every batch of instances the posterior moves
    towards that truth, with noise, and becomes narrower; the rules of the race decide who is eliminated, what is
    settled, how far algorithms run and how large the next batch is.  The posterior is taken for normal, with a
    precision in proportion to the instances; an instance tells less where fewer algorithms run.

    Parameters
    ----------
    simulations
        By default 200; fewer, but at least 40, for races of many algorithms and timepoints.
    """
    inside = [state.algorithms.index(name) for name in state.pareto_set]
    cells = max(1, state.timepoints.size * len(inside) * (len(inside) - 1) // 2)
    most, fewest = _SIMULATIONS
    count = (
        min(most, max(fewest, _CELLS // cells))
        if simulations is None
        else as_whole_number(simulations, "simulations", at_least=1)
    )
    rng = np.random.default_rng(as_whole_number(seed, "seed", at_least=0))
    if len(inside) < 2:
        return Forecast(np.zeros(count), np.zeros(count))
    return _Simulations(state, posterior, inside, count, rng).run()


class _Simulations:
    """Races side by side: arrays ``[simulation, timepoint, pair]`` of differences of log-ratings."""

    def __init__(
        self, state: RaceState, posterior: Posterior, inside: list[int], count: int, rng: np.random.Generator
    ) -> None:
        self._settings, self._rng = state.settings, rng
        self._steps = np.diff(state.timepoints, prepend=0.0)
        self._one, self._other = np.triu_indices(len(inside), 1)
        algorithms = np.arange(len(inside))
        self._is_one, self._is_other = (
            (pair[:, None] == algorithms).astype(np.float32) for pair in (self._one, self._other)
        )
        logs = posterior.log_ratings[:, :, inside]
        values = state.table.values[:, :, inside]
        weights, seen = state.table.weights, ~np.isnan(state.table.values)
        both = seen[:, :, inside][:, :, self._one] & seen[:, :, inside][:, :, self._other]
        self._drawn = float(weights.sum())
        self._unit = _variance(_mean_size(seen, weights))
        # The prior counts too: a uniform one as half a unit of rankings, which is 2 rankings of two algorithms.
        self._together = np.einsum("r,rtp->tp", weights, both) + self._unit[:, None] / 2
        self._mean = self._pairs(logs.mean(axis=0))
        deviations = logs - logs.mean(axis=0)
        self._spread = self._pairs(deviations).std(axis=0)
        self._draws = deviations if posterior.joint else None
        if self._draws is None:
            self._across = np.linalg.cholesky(_correlation(np.sign(self._pairs(values[-_ROWS:]))))
            self._within = _roots(deviations - deviations.mean(axis=2, keepdims=True))
        # For alpha = 1 nothing would ever be sure; the forecast is for what 4,000 draws can tell.
        self._alpha = min(state.settings.alpha, 1 - 1 / 4000)
        self._z = NormalDist().inv_cdf(self._alpha)
        self._width = margin_of(state.settings.epsilon)
        self._truth = self._mean + self._deviations(count)
        self._noise, self._more = np.zeros_like(self._truth), np.zeros_like(self._truth)
        resolved = state.resolved[:, inside][:, :, inside][:, self._one, self._other]
        self._resolved = np.repeat(resolved[None], count, axis=0)
        self._alive = np.ones((count, len(inside)), dtype=bool)
        self._batch = np.full(count, state.batch)
        self._instances, self._cost = np.zeros(count), np.zeros(count)

    def run(self) -> Forecast:
        limit = _FARTHEST * self._drawn
        going = np.flatnonzero(~self._resolved.all(axis=(1, 2)))
        while going.size:
            mean, spread = self._observe(going)
            self._decide(going, mean, spread)
            going = going[~self._resolved[going].all(axis=(1, 2))]
            lost = going[self._instances[going] > limit]
            self._instances[lost] = self._cost[lost] = np.inf
            going = np.setdiff1d(going, lost)
        return Forecast(self._instances, self._cost)

    def _observe(self, going: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Run a batch; returns mean and spread of the posterior after it."""
        count = np.maximum(self._batch[going], np.ceil(_FINEST * (self._drawn + self._instances[going])))
        is_open = (~self._resolved[going]).astype(np.float32)
        open_at: BoolArray = is_open @ (self._is_one + self._is_other) > 0
        if self._settings.elimination == "joint":
            open_at |= open_at.any(axis=1, keepdims=True)
        runs = np.logical_or.accumulate(open_at[:, ::-1], axis=1)[:, ::-1]
        self._instances[going] += count
        self._cost[going] += count * (runs.sum(axis=2) @ self._steps)
        worth = self._unit / _variance(np.maximum(runs.sum(axis=2), 2.0))
        more = (count[:, None] * worth)[:, :, None] * (runs[:, :, self._one] & runs[:, :, self._other])
        self._more[going] += more
        # What n instances estimate is off the truth by a variance that falls with n; these are its sums.
        self._noise[going] += np.sqrt(more * self._together) * self._deviations(going.size)
        truth, total = self._truth[going], self._together + self._more[going]
        mean = truth + (self._together * (self._mean - truth) + self._noise[going]) / total
        return mean, self._spread * np.sqrt(self._together / total)

    def _decide(self, going: NDArray[np.intp], mean: FloatArray, spread: FloatArray) -> None:
        """Eliminate and settle by the rules of the race."""
        from scipy.special import ndtr

        better, worse = mean >= self._z * spread, -mean >= self._z * spread
        equivalent = np.zeros_like(better)
        near = (np.abs(mean) < self._width) & (self._z * spread < self._width) & ~better & ~worse
        offset, scale = mean[near], spread[near]
        share = ndtr((self._width - offset) / scale) - ndtr((-self._width - offset) / scale)
        equivalent[near] = share >= self._alpha
        settled = better | worse | equivalent
        if self._settings.resolution == "crossing":
            kinds = sum(kind.any(axis=1).astype(int) for kind in (better, worse, equivalent))
            settled |= np.asarray(kinds >= 2)[:, None, :]
        resolved, alive = self._resolved[going], self._alive[going]
        wins = self._dominates(better, mean, spread) & alive[:, self._one]
        losses = self._dominates(worse, -mean, spread) & alive[:, self._other]
        alive &= wins.astype(np.float32) @ self._is_other + losses.astype(np.float32) @ self._is_one == 0
        open_before = (~resolved.all(axis=1)).sum(axis=1)
        resolved |= settled | ~(alive[:, self._one] & alive[:, self._other])[:, None, :]
        open_after = (~resolved.all(axis=1)).sum(axis=1)
        self._resolved[going], self._alive[going] = resolved, alive
        self._batch[going] = next_batch(self._batch[going], open_before, open_after, self._settings)

    def _dominates(self, better: BoolArray, mean: FloatArray, spread: FloatArray) -> BoolArray:
        """Say of each simulation and pair whether one is better at each timepoint by itself, or at all at once."""
        everywhere: BoolArray = np.asarray(better.all(axis=1))
        if self._settings.elimination == "joint" and self._draws is not None:
            draws = self._pairs(self._draws[:: max(1, len(self._draws) // _DRAWS)])
            for k, pair in np.argwhere(everywhere):
                scale = spread[k, :, pair] / np.maximum(self._spread[:, pair], 1e-300)
                above = (mean[k, :, pair] + scale * draws[:, :, pair] > 0).all(axis=1)
                everywhere[k, pair] = above.mean() >= self._alpha
        return everywhere

    def _deviations(self, count: int) -> FloatArray:
        """Draw how far estimates are off.

        A joint posterior knows how timepoints hang together.  Under the other priors each timepoint has its own; what
        they have in common comes from the same runs, and is seen in the rankings.
        """
        if self._draws is not None:
            return self._pairs(self._draws[self._rng.integers(len(self._draws), size=count)])
        normal = self._rng.standard_normal((count, *self._within.shape[:2]))
        coupled = np.einsum("tu,sui->sti", self._across, normal)
        return self._pairs(np.einsum("tij,stj->sti", self._within, coupled))

    def _pairs(self, values: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):  # inf is worse than any number, and as bad as inf
            difference: FloatArray = values[..., self._one] - values[..., self._other]
        return difference


def _variance(algorithms: FloatArray) -> FloatArray:
    """Give the variance of a difference of log-ratings from one ranking of so many equal algorithms.

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
    """Correlation over time of who wins a pair, ``signs[row, timepoint, pair]``, ``nan`` where that is not known."""
    seen = ~np.isnan(signs)
    known = np.where(seen, signs, 0.0)
    centred = np.where(seen, known - known.sum(axis=0) / np.maximum(seen.sum(axis=0), 1), 0.0)
    flat, there = (array.transpose(1, 0, 2).reshape(array.shape[1], -1).astype(float) for array in (centred, seen))
    squares = (flat * flat) @ there.T
    correlation = flat @ flat.T / np.sqrt(np.maximum(squares * squares.T, 1e-300))
    np.fill_diagonal(correlation, 1.0)
    roots, vectors = np.linalg.eigh(correlation)  # gaps in the data may leave it a little off a correlation
    repaired = (vectors * np.maximum(roots, 1e-6)) @ vectors.T
    scale = np.sqrt(np.diag(repaired))
    return repaired / scale[:, None] / scale


def _roots(deviations: FloatArray) -> FloatArray:
    """Square root of the covariance at each timepoint, from ``deviations[draw, timepoint, algorithm]``."""
    covariance = np.einsum("sti,stj->tij", deviations, deviations) / len(deviations)
    values, vectors = np.linalg.eigh(covariance)
    return np.einsum("tik,tk,tjk->tij", vectors, np.sqrt(np.maximum(values, 0.0)), vectors)
