"""How much the rankings of a run repeat over time, and the corrections of the posterior for it.

The likelihood multiplies the rankings of all timepoints as if they were independent.  They come from the same runs:
what one timepoint says, the next repeats.  A prior that pools over time then mistakes repetition for evidence, and
persistent noise for change.  Two corrections undo this, both based on the correlation ``R`` over time of the scores
(gradients) of single instances.

Weights.  Each timepoint gets a weight such that the variance claimed by the weighted posterior equals the actual
variance of its mean.  With ``B`` the posterior covariance of a latent function, ``w`` the information at each
timepoint and ``k`` the weights, the share of the data in the claimed variance at ``t`` is ``sum_u k_u w_u B_tu^2``; in
the actual variance it is ``sum_uv k_u k_v sqrt(w_u w_v) R_uv B_tu B_tv``.  Independent rankings have the weight 1.

Hyperparameters.  Weighting loses information about how fast ratings change: with correlated errors, the change from one
timepoint to the next is known better than the level.  The evidence of the hyperparameters is therefore shifted by the
difference between two Gaussian approximations of it, with correlated and with weighted observations, if that finds
more change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from threadpoolctl import threadpool_limits

from polarbear_plugins.arrays import FloatArray, RankArray
from polarbear_plugins.inference.native.modes import GridPoint, Modes, WarmStart, find_centre
from polarbear_plugins.inference.scores import instance_scores
from polarbear_plugins.inference.task import Task
from polarbear_plugins.plackett_luce.likelihood import Likelihood, helmert
from polarbear_plugins.rankings.table import RankingTable

_ROUNDS = 3
_SMALLEST_WEIGHT = 1e-3
# The correlation is estimated and errs in both directions, and a weight that is too large costs more coverage than one
# that is too small gains: weights below 1 are lowered a little (benchmarks/evidence/dependence.py).
_CAUTION = 1.1
_LARGEST_STEP_CORRELATION = 0.999


@dataclass(frozen=True, slots=True)
class Correction:
    """Weights of the rankings at each timepoint, and the shift of the log-evidence given a prior's factor.

    ``start`` is the mode under the correction, from which to start the search.
    """

    weights: FloatArray
    evidence_shift: EvidenceShift | None
    start: WarmStart


def correct_dependence(task: Task, table: RankingTable, ranks: RankArray) -> Correction:
    """Correction for the repetition over time of the rankings of a run, estimated from the ranks of the table."""
    with threadpool_limits(1, user_api="blas"):
        return _correct(task, table, ranks)


def _correct(task: Task, table: RankingTable, ranks: RankArray) -> Correction:
    likelihood, basis = Likelihood(task.statistics), helmert(len(table.algorithms))

    def centre(task: Task, start: WarmStart | None) -> tuple[GridPoint, Correction]:
        point, _ = find_centre(Modes(task, start), start)
        return point, _correction_at(point, likelihood, basis, table, ranks)

    point, correction = centre(task, task.start if isinstance(task.start, WarmStart) else None)
    for _ in range(_ROUNDS):
        before = correction.weights
        weighted = replace(task, statistics=task.statistics.weighted(before))
        point, correction = centre(weighted, correction.start)
        if np.abs(np.log(correction.weights / before)).max() < 0.05:
            break
    weighted = replace(task, statistics=task.statistics.weighted(correction.weights))
    shifted, shift_correction = centre(replace(weighted, evidence_shift=correction.evidence_shift), correction.start)
    # Persistent noise hides change, and the shift restores it.  It must not smooth more than the weights alone do: a
    # prior that cannot be constant would have to vanish where all rankings repeat.
    if _roughness(shifted.factor) > _roughness(point.factor):
        return shift_correction
    return replace(correction, evidence_shift=None)


def _roughness(factor: FloatArray) -> float:
    """Prior variance of the change from one timepoint to the next, on average."""
    return float(np.mean(np.sum(np.diff(factor, axis=0) ** 2, axis=1)))


def _correction_at(
    point: GridPoint, likelihood: Likelihood, basis: FloatArray, table: RankingTable, ranks: RankArray
) -> Correction:
    eta = point.mode.eta
    x = eta @ basis.T
    information = basis.T @ likelihood.information(x) @ basis
    correlation = score_correlation(table, ranks, x, information)
    # Directions with much or little information are pooled over short or long times: each is treated separately.
    scale = np.trace(information, axis1=1, axis2=2)
    _, directions = np.linalg.eigh(np.mean(information / np.maximum(scale, 1e-300)[:, None, None], axis=0))
    amount = np.maximum(np.einsum("iq,tij,jq->tq", directions, information, directions), 1e-12)
    weights = balanced_weights(point.factor, amount, correlation) ** _CAUTION
    # One step of Newton's method from the mode: what the rankings of each timepoint say by themselves, in units of
    # its standard error.
    observed = np.sqrt(amount) * (eta @ directions) + (likelihood.gradient(x) @ basis @ directions) / np.sqrt(amount)
    shift = EvidenceShift(observed, np.sqrt(amount), _markov(correlation), np.diag(1 / weights))
    return Correction(weights, shift, WarmStart(point.phi, point.mode.eta))


def _log_normal(x: FloatArray, covariance: FloatArray) -> float:
    """Log-density of a normal vector up to a constant."""
    root = cholesky(covariance, lower=True, check_finite=False)
    scaled = solve_triangular(root, x, lower=True, check_finite=False)
    return float(-0.5 * scaled @ scaled - np.log(np.diag(root)).sum())


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceShift:
    """Log-evidence with correlated observations minus that with weighted ones, given the factor of a prior.

    Attributes
    ----------
    observed
        ``observed[timepoint, direction]``: what the rankings say, in units of its standard error.
    scale
        ``scale[timepoint, direction]``: those units, as factors.
    correlated, weighted
        Covariances over time of the errors of ``observed``.
    """

    observed: FloatArray
    scale: FloatArray
    correlated: FloatArray
    weighted: FloatArray

    def __call__(self, factor: Any, log_normal: Callable[[FloatArray, Any], Any] = _log_normal) -> Any:
        """The shift; for a symbolic factor it needs ``log_normal(x, covariance)`` in the same symbols."""
        shift = 0.0
        for seen, scale in zip(self.observed.T, self.scale.T, strict=True):
            scaled = factor * scale[:, None]
            signal = scaled @ scaled.T
            shift += log_normal(seen, signal + self.correlated) - log_normal(seen, signal + self.weighted)
        return shift


def _markov(correlation: FloatArray) -> FloatArray:
    """Correlation matrix of a Markov process with the same correlations from each timepoint to the next."""
    steps = np.clip(np.diag(correlation, 1), 1e-6, _LARGEST_STEP_CORRELATION)
    position = np.concatenate(([0.0], np.cumsum(-np.log(steps))))
    return np.exp(-np.abs(position[:, None] - position))


def score_correlation(table: RankingTable, ranks: RankArray, x: FloatArray, information: FloatArray) -> FloatArray:
    """Correlation over time of the scores of an instance, ``[timepoint, timepoint]``.

    Parameters
    ----------
    ranks
        The ranks of the table that count.
    x
        Utilities at which the scores are taken.
    information
        Information of the Helmert coordinates at each timepoint, by which the scores are scaled.
    """
    basis = helmert(len(table.algorithms))
    latent = instance_scores(table, ranks, x) @ basis
    white = np.empty_like(latent)
    for t, here in enumerate(information):
        # Where hardly anything was observed, some directions have no information.
        values, vectors = np.linalg.eigh(here)
        usable = values > 1e-8 * max(values.max(), 1e-300)
        white[:, t] = latent[:, t] @ (vectors[:, usable] / np.sqrt(values[usable])) @ vectors[:, usable].T
    flat = white.transpose(1, 0, 2).reshape(len(information), -1)
    covariance = flat @ flat.T
    scale = np.sqrt(np.diag(covariance))
    scale[scale == 0] = 1.0
    correlation: FloatArray = covariance / np.outer(scale, scale)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def balanced_weights(factor: FloatArray, information: FloatArray, correlation: FloatArray) -> FloatArray:
    """Weights under which the claimed variance equals the actual one at each timepoint.

    Parameters
    ----------
    factor
        Factor of the temporal prior.
    information
        ``information[timepoint, direction]``: information in the rankings of a timepoint about independent directions.
    correlation
        Correlation over time of the scores of an instance.

    Examples
    --------
    >>> factor, information = np.ones((4, 1)), np.full((4, 1), 10.0)
    >>> balanced_weights(factor, information, np.eye(4))
    array([1., 1., 1., 1.])
    >>> balanced_weights(factor, information, np.ones((4, 4))).round(2)
    array([0.25, 0.25, 0.25, 0.25])
    """
    weights = np.ones(len(information))
    identity = np.eye(factor.shape[1])
    for _ in range(100):
        excess, share, pooling = np.zeros_like(weights), np.zeros_like(weights), np.zeros_like(correlation)
        for here in information.T:
            scaled = factor * (weights * here)[:, None]
            covariance = factor @ np.linalg.solve(identity + scaled.T @ factor, factor.T)
            variance = np.maximum(np.diag(covariance), 1e-300)
            pulls = covariance * (weights * np.sqrt(here))
            claimed = np.sum(covariance**2 * (weights * here), axis=1)
            actual = np.sum((pulls @ correlation) * pulls, axis=1)
            excess += (actual - claimed) / variance
            share += claimed / variance
            pooling += covariance**2
        # Less weight where the actual variance exceeds the claimed one.  Timepoints that the prior pools share their
        # weight; otherwise a few would take all of it.
        change = -np.log1p(np.maximum(excess / np.maximum(share, 1e-12), -0.9))
        wanted = np.log(weights) + 0.6 * change
        new = np.clip(np.exp(pooling @ wanted / pooling.sum(axis=1)), _SMALLEST_WEIGHT, 1.0)
        done = np.abs(np.log(new / weights)).max() < 1e-3
        weights = new
        if done:
            break
    return weights
