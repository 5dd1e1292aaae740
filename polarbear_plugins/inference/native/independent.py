"""The native engine for Dirichlet priors: timepoints one by one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.environment import available_cores
from polarbear_plugins.inference.native.importance import antithetic_normals, resample, smooth_weights
from polarbear_plugins.inference.native.mixture import Component, Mixture
from polarbear_plugins.inference.native.quality import (
    distinct_share,
    has_forgotten,
    memory,
    shortcomings,
    weights_suffice,
    worth_of_rounds,
)
from polarbear_plugins.inference.native.target import Target
from polarbear_plugins.inference.native.tempering import sample_tempered
from polarbear_plugins.plackett_luce.likelihood import Likelihood, helmert, log_set_sums
from polarbear_plugins.plackett_luce.subsets import Statistics

_T_DEGREES = 7.0
# The rating of an algorithm that was chosen less often than this has a long lower tail.
_FEW_WINS = 4.0
_MAX_GIBBS_SWEEPS = 200
_SWEEPS = 2  # between two looks at what was forgotten
_ROUNDS = 4  # times that the draws of parallel chains are kept
_FEWEST_CHAINS = 500
_WORTH_WEIGHING = 0.05  # share of the draws that weights must be worth to be used
_MOST_SWEPT = 1 << 13  # sets; a sweep draws an arrival for each set and draw
_MOST_GROUPS = 8
_WORTH_THREADS = 1 << 18  # draws times sets; with fewer, threads would mostly wait for the GIL
_PART = 16  # timepoints that one thread works on at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Timepoint:
    """Draws of ``utilities[draw, algorithm]`` at one timepoint, and how they were made."""

    utilities: FloatArray
    mode: FloatArray
    route: str
    k_hat: float
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
        return [
            _sample(statistics.at(t), target, draws, np.random.default_rng(seeds[t]))
            for t, target in zip(part.tolist(), targets, strict=True)
        ]

    # Modes are found for parts of fixed size, so the result does not depend on the number of threads.
    parts = np.array_split(np.arange(statistics.timepoints), -(-statistics.timepoints // _PART))
    size = draws * max(counts.size for _, counts in statistics.sets)
    with ThreadPoolExecutor(min(available_cores(), len(parts)) if size > _WORTH_THREADS else 1) as threads:
        return list(itertools.chain.from_iterable(threads.map(work, parts)))


def _sample(statistics: Statistics, target: Target, draws: int, rng: np.random.Generator) -> Timepoint:
    """Importance sampling around the mode; where that does not suffice, Gibbs sweeps, or tempering."""
    heavy = bool(statistics.wins.min() < _FEW_WINS)
    z, weights, k_hat, effective = _propose(target, draws, heavy, rng)
    if weights_suffice(k_hat, effective, draws):
        return Timepoint(
            utilities=_utilities(target, z[resample(weights, draws, rng)]),
            mode=target.centre[0],
            route="importance sampling (t)" if heavy else "importance sampling",
            k_hat=k_hat,
            effective=effective,
        )
    if statistics.ties or statistics.sets[0][1].size > _MOST_SWEPT:
        return _temper(target, draws, k_hat, rng)
    # Weights that are worth hardly anything would leave copies of a few draws to begin with.
    begin = z[resample(weights, draws, rng)] if effective > _WORTH_WEIGHING * draws else z[:draws]
    return _sweep(statistics, target, _utilities(target, begin), k_hat, rng)


def _sweep(
    statistics: Statistics, target: Target, begin: FloatArray, k_hat: float, rng: np.random.Generator
) -> Timepoint:
    """Gibbs sweeps, which cross a long tail in one step, until the draws have forgotten where they began."""
    draws = len(begin)
    chains = min(draws, max(_FEWEST_CHAINS, -(-draws // _ROUNDS)))
    rounds, sweeps, left = [begin[:chains]], 0, 1.0

    def go_on(utilities: FloatArray, count: int) -> FloatArray:
        for _ in range(count):
            utilities = gibbs_sweep(statistics, utilities, rng)
        return utilities

    while sweeps < _MAX_GIBBS_SWEEPS and not has_forgotten(left, chains):
        rounds[0] = go_on(rounds[0], _SWEEPS)
        sweeps += _SWEEPS
        left = memory(begin[:chains], rounds[0])
    # As many again: what is left of a start that was far from the posterior is then negligible, too.
    rounds[0] = go_on(rounds[0], sweeps)
    gap = -(-sweeps // 2)
    while chains * len(rounds) < draws:
        rounds.append(go_on(rounds[-1], gap))
    sweeps += sweeps + gap * (len(rounds) - 1)
    utilities = np.concatenate(rounds)[:draws]
    effective = worth_of_rounds(rounds)
    problems = shortcomings(
        draws,
        distinct=distinct_share(utilities),
        effective=effective,
        acceptance=None,
        left=left,
        chains=chains,
        moves=sweeps,
    )
    return Timepoint(
        utilities=utilities,
        mode=target.centre[0],
        route="Gibbs sweeps",
        k_hat=k_hat,
        effective=min(effective, float(draws)),
        moves=sweeps,
        memory=left,
        problems=problems,
    )


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
        problems=done.problems(distinct_share(done.utilities)),
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
            return np.concatenate(points), weights, k_hat, min(effective, draws)


def _utilities(target: Target, z: FloatArray) -> FloatArray:
    return target.utilities(z)[:, 0]


def gibbs_sweep(statistics: Statistics, utilities: FloatArray, rng: np.random.Generator) -> FloatArray:
    """One exact Gibbs sweep over latent gamma variables of every draw; for a timepoint's statistics with its prior.

    The last set is that of the prior, all algorithms together.  After the arrivals of the sets and the ratings given
    them, groups of algorithms are scaled together with the arrivals of the sets inside them: the common rating of a
    group that is far behind would change only in small steps if ratings moved one by one.  All are logarithms, since
    ratings under a small alpha are smaller than the smallest number.
    """
    members, counts = statistics.sets[0][0][:-1].astype(np.float64, copy=False), statistics.sets[0][1][:-1]
    shape, everything = statistics.wins[0], np.ones((1, utilities.shape[1]))
    draws = len(utilities)
    # The prior makes ratings the shares of independent gamma variables; their sum is independent of the shares.
    total = _log_gamma(np.full(1, statistics.sets[0][1][-1]), draws, rng)
    logs = utilities - log_set_sums(utilities, everything) + total
    arrivals = _log_gamma(counts, draws, rng) - log_set_sums(logs, members)
    logs = _log_gamma(shape, draws, rng)
    if len(members):
        logs -= np.logaddexp(0.0, log_set_sums(arrivals, members.T))
    for group, inside, power in _groups(members, counts, shape):
        across = members * group
        crossing = ~inside & across.any(axis=1)
        rate = log_set_sums(logs, group[None])[:, 0]
        if crossing.any():
            each = arrivals[:, crossing] + log_set_sums(logs, across[crossing])
            rate = np.logaddexp(rate, log_set_sums(each, np.ones((1, each.shape[1])))[:, 0])
        scale = _log_gamma(np.full(1, power), draws, rng)[:, 0] - rate
        logs += scale[:, None] * group
        arrivals[:, inside] -= scale[:, None]
    return logs - logs.mean(axis=1, keepdims=True)


def _log_gamma(shape: FloatArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Logarithms of gamma variables ``[draw, variable]``; one of small shape would underflow, its logarithm does not."""
    size = (draws, shape.size)
    return np.log(rng.gamma(shape + 1, size=size)) + np.log(rng.random(size)) / shape


def _groups(
    members: FloatArray, counts: FloatArray, shape: FloatArray
) -> list[tuple[FloatArray, NDArray[np.bool_], float]]:
    """Observed sets whose common rating is least certain: their members, the sets inside them, how often they won."""
    groups = []
    for group in members:
        if group.all():
            continue
        inside = (members @ (1 - group)) == 0
        groups.append((group, inside, float(shape @ group - counts[inside].sum())))
    return sorted(groups, key=lambda entry: entry[2])[:_MOST_GROUPS]
