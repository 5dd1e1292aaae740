"""The native engine for Dirichlet priors: timepoints one by one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.environment import available_cores
from polarbear_plugins.inference.native.gibbs import fewest_choices, sample_by_sweeps
from polarbear_plugins.inference.native.importance import antithetic_normals, resample, smooth_weights
from polarbear_plugins.inference.native.mixture import Component, Mixture
from polarbear_plugins.inference.native.quality import weights_suffice
from polarbear_plugins.inference.native.target import Target
from polarbear_plugins.inference.native.tempering import sample_tempered
from polarbear_plugins.plackett_luce.likelihood import Likelihood, helmert
from polarbear_plugins.plackett_luce.subsets import Statistics

_T_DEGREES = 7.0
# The rating of an algorithm that was chosen less often than this has a long lower tail.
_FEW_WINS = 4.0
# With fewer choices than this, Hamiltonian moves take long to cross the tail, and with still fewer no weights suffice.
_LONG_TAIL, _HOPELESS_TAIL = 1.0, 0.2
_WORTH_WEIGHING = 0.05  # share of the draws that weights must be worth to be used
_MOST_SWEPT = 1 << 13  # sets; a sweep draws an arrival for each set and draw
_WORTH_THREADS = 1 << 18  # draws times sets; with fewer, threads would mostly wait for the GIL
_PART = 16  # timepoints that one thread works on at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Timepoint:
    """Draws of ``utilities[draw, algorithm]`` at one timepoint, and how they were made."""

    utilities: FloatArray
    mode: FloatArray
    route: str
    k_hat: float | None
    effective: float
    moves: int = 0
    acceptance: float | None = None
    memory: float | None = None
    problems: tuple[str, ...] = ()


def sample_timepoints(
    statistics: Statistics, draws: int, seeds: Sequence[np.random.SeedSequence], starts: FloatArray | None = None
) -> list[Timepoint]:
    """Draws at every timepoint, each with its own random numbers; ``statistics`` include the prior."""

    def work(part: NDArray[np.intp]) -> list[Timepoint]:
        targets = expand(statistics.at(part[0], part[-1] + 1), None if starts is None else starts[part])
        done = [
            _sample(statistics.at(t), target, draws, np.random.default_rng(seeds[t]))
            for t, target in zip(part.tolist(), targets, strict=True)
        ]
        return _sweep_unfinished(done)

    # Modes are found for parts of fixed size, so the result does not depend on the number of threads.
    parts = np.array_split(np.arange(statistics.timepoints), -(-statistics.timepoints // _PART))
    size = draws * max(counts.size for _, counts in statistics.sets)
    with ThreadPoolExecutor(min(available_cores(), len(parts)) if size > _WORTH_THREADS else 1) as threads:
        return list(itertools.chain.from_iterable(threads.map(work, parts)))


@dataclass(frozen=True, slots=True)
class _Unfinished:
    """A timepoint whose weights do not suffice, and where its Gibbs sweeps are to begin."""

    statistics: Statistics
    begin: FloatArray
    mode: FloatArray
    k_hat: float | None
    rng: np.random.Generator


def _sample(statistics: Statistics, target: Target, draws: int, rng: np.random.Generator) -> Timepoint | _Unfinished:
    """Importance sampling around the mode; where that does not suffice, tempering, or Gibbs sweeps later.

    Tempering is faster, but slow to cross a long tail; sweeps do not support large ties.
    """
    sweepable = not statistics.ties and statistics.sets[0][1].size <= _MOST_SWEPT
    tail = fewest_choices(statistics) if sweepable else math.inf
    if tail < _HOPELESS_TAIL:
        z = antithetic_normals(draws, target.whitener.dimension, rng)
        return _Unfinished(statistics, _utilities(target, z), target.centre[0], None, rng)
    heavy = bool(statistics.wins.min() < _FEW_WINS)
    z, weights, k_hat, effective = _propose(target, draws, heavy, rng)
    if weights_suffice(k_hat, effective, draws, weights.size):
        return Timepoint(
            utilities=_utilities(target, z[resample(weights, draws, rng)]),
            mode=target.centre[0],
            route="importance sampling (t)" if heavy else "importance sampling",
            k_hat=k_hat,
            effective=min(effective, draws),
        )
    if tail >= _LONG_TAIL:
        done = _temper(target, draws, k_hat, rng)
        if not sweepable and statistics.wins.min() < _HOPELESS_TAIL:
            done = replace(done, problems=(*done.problems, "an algorithm that never won has too long a tail to sample"))
        if not (done.problems and sweepable):
            return done
    # Weights that are worth hardly anything would leave copies of a few draws to begin with.
    begin = z[resample(weights, draws, rng)] if effective > _WORTH_WEIGHING * draws else z[:draws]
    return _Unfinished(statistics, _utilities(target, begin), target.centre[0], k_hat, rng)


def _sweep_unfinished(timepoints: list[Timepoint | _Unfinished]) -> list[Timepoint]:
    """Finish all timepoints; those with the same sets are swept together, which saves the cost of many calls."""
    together: dict[bytes, list[int]] = {}
    for place, timepoint in enumerate(timepoints):
        if isinstance(timepoint, _Unfinished):
            together.setdefault(timepoint.statistics.sets[0][0].tobytes(), []).append(place)
    done = {place: timepoint for place, timepoint in enumerate(timepoints) if isinstance(timepoint, Timepoint)}
    for places in together.values():
        parts = [timepoint for place in places if isinstance(timepoint := timepoints[place], _Unfinished)]
        swept = sample_by_sweeps([part.statistics for part in parts], [part.begin for part in parts], parts[0].rng)
        for place, part, sweeps in zip(places, parts, swept, strict=True):
            done[place] = Timepoint(
                utilities=sweeps.utilities,
                mode=part.mode,
                route="Gibbs sweeps",
                k_hat=part.k_hat,
                effective=sweeps.effective,
                moves=sweeps.count,
                memory=sweeps.memory,
                problems=sweeps.problems,
            )
    return [done[place] for place in range(len(timepoints))]


def _temper(target: Target, draws: int, k_hat: float, rng: np.random.Generator) -> Timepoint:
    done = sample_tempered(Mixture([Component(target, 0.0, 0.0)]), draws, rng)
    return Timepoint(
        utilities=done.utilities[:, 0],
        mode=target.centre[0],
        route="tempering",
        k_hat=k_hat,
        effective=done.effective,
        moves=done.moves,
        acceptance=done.acceptance,
        memory=done.memory,
        problems=done.problems,
    )


def expand(statistics: Statistics, start: FloatArray | None = None) -> list[Target]:
    """Find the mode of each timepoint by Newton's method and expand the log-density there.

    Parameters
    ----------
    start
        Utilities ``[timepoint, algorithm]`` to start from.
    """
    likelihood, basis = Likelihood(statistics), helmert(statistics.algorithms)
    x = np.zeros_like(statistics.wins) if start is None else start
    values = likelihood.values(x)
    stuck = np.zeros(values.size, dtype=bool)
    for _ in range(100):
        gradient, information = likelihood.gradient(x), likelihood.information(x)
        curvature = basis.T @ information @ basis
        step = np.linalg.solve(curvature, (gradient @ basis)[:, :, None])[:, :, 0] @ basis.T
        decrement = np.einsum("tn,tn->t", gradient, step)
        moving = (decrement >= 1e-9) & ~stuck
        if not moving.any():
            break
        scale = np.where(moving, 1.0, 0.0)
        while True:
            new = x + scale[:, None] * step
            new_values = likelihood.values(new)
            short = new_values < values + 1e-4 * scale * decrement - 1e-10 * np.abs(values)
            if not (short & (scale > 0)).any():
                break
            scale[short] *= 0.5
            stuck |= moving & (scale < 1e-8)  # no progress possible in floating point
            scale[stuck] = 0.0
        x, values = new, new_values
    matrices = np.linalg.inv(np.linalg.cholesky(curvature)) @ basis.T
    targets = []
    for t in range(statistics.timepoints):
        single, place = Likelihood(statistics.at(t)), slice(t, t + 1)
        whitener, residual = _Whitener(matrices[t]), matrices[t] @ gradient[t]
        targets.append(Target(single, x[place], gradient[place], information[place], whitener, residual))
    return targets


@dataclass(frozen=True, slots=True)
class _Whitener:
    """Map ``[z, algorithm]`` from standard normal ``z`` to steps of the utilities of a timepoint."""

    matrix: NDArray[Any]

    @property
    def dimension(self) -> int:
        return len(self.matrix)

    def single(self) -> _Whitener:
        return _Whitener(self.matrix.astype(np.float32))

    def step(self, z: NDArray[Any], /) -> NDArray[Any]:
        return (z @ self.matrix)[:, None, :]

    def back(self, pull: NDArray[Any], /) -> NDArray[Any]:
        return pull[:, 0, :] @ self.matrix.T


def _propose(
    target: Target, draws: int, heavy: bool, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, float, float]:
    """Proposals in ``z``, their weights, k-hat and the effective number of draws; more proposals where that helps."""
    dimension = target.whitener.dimension
    points: list[FloatArray] = []
    logs: list[FloatArray] = []
    while True:
        z = antithetic_normals(draws, dimension, rng)
        log_weights = np.zeros(draws)
        if heavy:
            half = rng.chisquare(_T_DEGREES, -(-draws // 2)) / _T_DEGREES
            z = z / np.sqrt(np.concatenate([half, half])[:draws, None])
            square = np.sum(z**2, axis=1)
            # Ratio of the normal density to that of the t distribution, up to a constant.
            log_weights = -0.5 * square + 0.5 * (_T_DEGREES + dimension) * np.log1p(square / _T_DEGREES)
        points.append(z)
        logs.append(log_weights + target.remainder(z))
        weights, k_hat, effective = smooth_weights(np.concatenate(logs))
        if effective >= 0.9 * draws or k_hat > 0.5 or len(points) == 4:
            return np.concatenate(points), weights, k_hat, effective


def _utilities(target: Target, z: FloatArray) -> FloatArray:
    return target.utilities(z)[:, 0]
