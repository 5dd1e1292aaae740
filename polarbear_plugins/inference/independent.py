"""The native engine for Dirichlet priors: timepoints one by one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.inference.importance import antithetic_normals, resample, smooth_weights
from polarbear_plugins.inference.laplace import LaplaceTarget, enough, forgotten, hmc_move, memory
from polarbear_plugins.plackett_luce import Likelihood, Statistics, helmert
from polarbear_plugins.validation import FloatArray

__all__ = ["Timepoint", "expand", "gibbs_sweep", "sample_timepoint", "sample_timepoints"]

_T_DEGREES = 7.0
# A coordinate whose algorithm was chosen less often than this has a long lower tail.
_FEW_WINS = 4.0
_MAX_HMC_MOVES = 20
_MAX_GIBBS_SWEEPS = 200
_MOST_GROUPS = 8
_LOWEST_LOG = -650.0  # below, exp vanishes


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

    @property
    def good(self) -> bool:
        """Whether the weights were good, or the moves forgot where they began."""
        draws = len(self.utilities)
        return enough(self.k_hat, self.effective, draws) or forgotten(self.memory, draws)


def sample_timepoints(
    statistics: Statistics, draws: int, seeds: Sequence[np.random.SeedSequence], starts: FloatArray | None = None
) -> list[Timepoint]:
    """Sample every timepoint of statistics that include their prior; each has random numbers of its own."""

    def work(t: int) -> Timepoint:
        start = None if starts is None else starts[t]
        return sample_timepoint(statistics.at(t), draws, np.random.default_rng(seeds[t]), start)

    smooth_weights(np.linspace(-1, 0, 100))  # imports what the threads would otherwise all import at once
    with ThreadPoolExecutor(min(os.cpu_count() or 1, statistics.timepoints)) as threads:
        return list(threads.map(work, range(statistics.timepoints)))


def sample_timepoint(
    statistics: Statistics, draws: int, rng: np.random.Generator, start: FloatArray | None = None
) -> Timepoint:
    """Sample around the mode by importance, and move on from there where that does not suffice.

    The proposal is normal, or has the tails of a t distribution where an algorithm hardly ever won.
    """
    target = expand(statistics, start)
    heavy = bool(statistics.wins.min() < _FEW_WINS)
    z, weights, k_hat, effective = _propose(target, draws, heavy, rng)
    done: dict[str, Any] = {"mode": target.mode[0], "k_hat": k_hat, "effective": effective}
    z = z[resample(weights, draws, rng)]
    if enough(k_hat, effective, draws):
        route = "importance sampling (t)" if heavy else "importance sampling"
        return Timepoint(utilities=_utilities(target, z), route=route, **done)

    first = z
    shares: list[float] = []
    # Sweeps go down a long tail in one step, where Hamiltonian moves would crawl; they know no large ties.
    long_tail = bool(statistics.wins.min() < 1.0) and not statistics.ties
    while len(shares) < _MAX_HMC_MOVES and not long_tail:
        z, accepted = hmc_move(target, z, rng)
        shares.append(float(accepted.mean()))
        if len(shares) % 2 == 0 and forgotten(memory(first, z), draws):
            break
    left = memory(first, z)
    if forgotten(left, draws) or statistics.ties:
        return Timepoint(
            utilities=_utilities(target, z),
            route="Hamiltonian moves",
            moves=len(shares),
            acceptance=float(np.mean(shares)),
            memory=left,
            **done,
        )
    utilities = _utilities(target, z)
    begun, sweeps = utilities, 0
    while sweeps < _MAX_GIBBS_SWEEPS and (sweeps == 0 or not forgotten(memory(begun, utilities), draws)):
        for _ in range(5):
            utilities = gibbs_sweep(statistics, utilities, rng)
        sweeps += 5
    return Timepoint(
        utilities=utilities,
        route="Gibbs sweeps",
        moves=sweeps,
        memory=memory(begun, utilities),
        **done,
    )


def expand(statistics: Statistics, start: FloatArray | None = None) -> LaplaceTarget:
    """Find the mode of a single timepoint by Newton's method and expand the log-density there."""
    likelihood, basis = Likelihood(statistics), helmert(statistics.algorithms)
    eta = np.zeros((1, basis.shape[1])) if start is None else start.reshape(1, -1)
    value = likelihood.value(eta @ basis.T)
    for _ in range(100):
        x = eta @ basis.T
        gradient = likelihood.gradient(x) @ basis
        information = basis.T @ likelihood.information(x) @ basis
        factor = np.linalg.cholesky(information[0])
        step = np.linalg.solve(information[0], gradient[0])
        decrement = gradient[0] @ step
        if decrement < 1e-9:
            break
        scale = 1.0
        while True:
            new = eta + scale * step
            new_value = likelihood.value(new @ basis.T)
            if new_value >= value + 1e-4 * scale * decrement - 1e-10 * abs(value) or scale < 1e-8:
                break
            scale *= 0.5
        if scale < 1e-8:
            break  # no progress to be had in floating-point numbers
        eta, value = new, new_value
    whitener = np.linalg.inv(factor).T
    return LaplaceTarget(likelihood, basis, eta, gradient, information, whitener, gradient[0] @ whitener)


def _propose(
    target: LaplaceTarget, draws: int, heavy: bool, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, float, float]:
    """Proposals in ``z``, their weights, k-hat, and the effective number out of ``draws``; more where it helps."""
    dimension = target.whitener.shape[1]
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


def _utilities(target: LaplaceTarget, z: FloatArray) -> FloatArray:
    return target.eta(z)[:, 0] @ target.basis.T


def gibbs_sweep(statistics: Statistics, utilities: FloatArray, rng: np.random.Generator) -> FloatArray:
    """One exact sweep over latent gamma variables, of every draw; for statistics of a timepoint with their prior.

    The last set is that of the prior, all algorithms together.  After the arrivals Z of the sets and the ratings given
    them, groups of algorithms are scaled together with the arrivals of the sets inside them: a group that is far behind
    has a rating of its own that single ratings could follow only in small steps.
    """
    members, counts = statistics.sets[0][0][:-1], statistics.sets[0][1][:-1]
    shape = statistics.wins[0]
    theta = np.exp(np.maximum(utilities - utilities.max(axis=1, keepdims=True), _LOWEST_LOG))
    # The prior makes theta the shares of independent gamma variables; their sum is independent of the shares.
    theta *= rng.gamma(statistics.sets[0][1][-1], size=(len(theta), 1)) / theta.sum(axis=1, keepdims=True)
    arrivals = rng.gamma(counts, size=(len(theta), len(counts))) / (theta @ members.T)
    # A gamma variable of small shape underflows; its logarithm does not: G(a) = G(a + 1) U^(1 / a).
    logs = np.log(rng.gamma(shape + 1, size=theta.shape)) + np.log(rng.random(theta.shape)) / shape
    logs -= np.log1p(arrivals @ members)
    for group, inside, power in _groups(members, counts, shape):
        theta = np.exp(np.maximum(logs, _LOWEST_LOG))
        outside = members[~inside] * group
        rate = theta @ group + np.einsum("zs,zs->z", arrivals[:, ~inside], theta @ outside.T)
        log_scale = np.log(rng.gamma(power + 1, size=len(theta))) + np.log(rng.random(len(theta))) / power
        log_scale -= np.log(rate)
        logs += log_scale[:, None] * group
        arrivals[:, inside] *= np.exp(np.clip(-log_scale, _LOWEST_LOG, -_LOWEST_LOG))[:, None]
    centred: FloatArray = logs - logs.mean(axis=1, keepdims=True)
    return centred


def _groups(
    members: FloatArray, counts: FloatArray, shape: FloatArray
) -> list[tuple[FloatArray, NDArray[np.bool_], float]]:
    """Observed sets whose common rating is known least: who is in them, which sets lie inside, how often they won."""
    groups = []
    for group in members:
        if group.all():
            continue
        inside = (members @ (1 - group)) == 0
        groups.append((group, inside, float(shape @ group - counts[inside].sum())))
    return sorted(groups, key=lambda entry: entry[2])[:_MOST_GROUPS]
