"""Groups of instances: whether they order algorithms differently, how much, and what that means for a new group.

Instances of one group resemble each other, so they tell less about other groups than as many independent instances
would.  In a group the utilities of the algorithms are those of the centre plus a deviation with standard deviation
``spread`` in each.  Given the spread, the deviations of the groups there are are found by Newton's method and
integrated out by Laplace's approximation, the centre too; a grid of spreads then has a posterior.  A draw for a new
group is a draw of the centre plus a deviation.  How well the centre is known follows from the scores of groups: their
variance, relative to that of independent instances, lowers the weight of the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray, RankArray
from polarbear_plugins.inference.native.engine import native
from polarbear_plugins.inference.scores import instance_scores, ranks_used
from polarbear_plugins.inference.task import Groups, LikelihoodName, Task
from polarbear_plugins.plackett_luce.likelihood import Likelihood, helmert
from polarbear_plugins.plackett_luce.subsets import Statistics, first_place_statistics, statistics_of
from polarbear_plugins.posterior.group_effect import GroupEffect, Scope
from polarbear_plugins.priors import BUILT_IN_PRIORS
from polarbear_plugins.rankings.table import RankingTable

# Not 0.05: that no difference is found between few groups is no evidence that there is none, and a spread that is
# likely small changes little.  Only groups that look no more different than chance would make them are passed over.
_PASSED_OVER = 0.5
_PERMUTATIONS = 499
_TIMEPOINTS = 16  # at which the spread is estimated at most; the others take that of the nearest
_PILOT_DRAWS = 200
_SPREADS = np.array([0.05, 0.15, 0.3, 0.5, 0.75, 1.0, 1.4, 2.0, 3.0])
_PRIOR_SCALE = 2.0  # of the half-normal prior of the spread
_STEPS = 4
_LONGEST_STEP = 3.0
_CENTRE_PRECISION = 1e-6  # beforehand: next to nothing is known, but where nothing was compared it is not nothing


@dataclass(frozen=True, slots=True, eq=False)
class GroupModel:
    """Effect of groups, and what turns draws of the mean over groups into draws for a new one.

    Attributes
    ----------
    shares
        ``shares[spread, timepoint]``: posterior of the spread on the grid.
    shifts
        ``shifts[spread, timepoint, algorithm]``: from the utilities that fit all instances best to the centre.
    """

    effect: GroupEffect
    shares: FloatArray
    shifts: FloatArray

    def for_new_group(self, utilities: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draws of utilities in a new group, from ``utilities[draw, timepoint, algorithm]`` of the mean."""
        draws, timepoints, n = utilities.shape
        # A group deviates alike at all timepoints, as its instances do.
        deviation, level = rng.standard_normal((draws, n)), rng.random(draws)
        result = np.array(utilities)
        for t in range(timepoints):
            place = np.minimum(np.searchsorted(np.cumsum(self.shares[:, t]), level), _SPREADS.size - 1)
            result[:, t] += self.shifts[place, t] + _SPREADS[place, None] * deviation
        return result


def model_groups(
    table: RankingTable,
    likelihood: LikelihoodName,
    statistics: Statistics,
    groups: Groups,
    seed: np.random.SeedSequence,
) -> GroupModel | None:
    """Model of the groups of a table; ``None`` where groups say nothing.

    That is so if none are wanted or there is only one, and if each instance is a group of its own.
    """
    names = table.groups
    count = len(set(names))
    if groups == "none" or count < 2 or count == len(names):
        return None
    position = {name: place for place, name in enumerate(dict.fromkeys(names))}
    member_of = np.array([position[name] for name in names], dtype=np.intp)
    pilot_seed, permutation_seed = seed.spawn(2)
    centre = _pilot(table, statistics, pilot_seed)
    scores = instance_scores(table, ranks_used(table, likelihood), centre)
    p = _permutation_test(scores, member_of, np.random.default_rng(permutation_seed))
    scope: Scope = "same"
    if groups == "new" or (groups == "auto" and not table.fixed_groups and p <= _PASSED_OVER):
        scope = "new"
    # An instance with several runs varies less than the single ranking that the likelihood takes it for.
    noise = _noise(scores, member_of, Likelihood(statistics).information(centre))
    shares, shifts = _spread(table, likelihood, member_of, centre, noise)
    effect = GroupEffect(
        scope=scope,
        groups=count,
        instances=len(names),
        p=p,
        inflation=_inflation(scores, member_of),
        spread=_SPREADS @ shares,
    )
    return GroupModel(effect, shares, shifts)


def _pilot(table: RankingTable, statistics: Statistics, seed: np.random.SeedSequence) -> FloatArray:
    """Utilities that fit all instances, without regard to groups; they sum to zero."""
    task = Task(
        statistics=statistics,
        time=np.zeros(table.timepoints.size),
        prior=BUILT_IN_PRIORS["dirichlet"](),
        draws=_PILOT_DRAWS,
        seed=seed,
    )
    mean = native(task).utilities.mean(axis=0)
    return mean - mean.mean(axis=1, keepdims=True)


def _sums(scores: FloatArray, member_of: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
    """Scores summed by group, and the size of each."""
    sums = np.zeros((int(member_of.max()) + 1, *scores.shape[1:]))
    np.add.at(sums, member_of, scores)
    return sums, np.bincount(member_of).astype(np.float64)


def _permutation_test(scores: FloatArray, member_of: NDArray[np.intp], rng: np.random.Generator) -> float:
    """P-value of the sum of squares between groups, over ways to put the instances into groups of the same sizes."""
    flat = scores.reshape(len(scores), -1)
    indicator = np.eye(int(member_of.max()) + 1)[member_of]
    indicator /= np.sqrt(indicator.sum(axis=0))
    between = float(((indicator.T @ flat) ** 2).sum())
    larger = sum(float(((rng.permutation(indicator).T @ flat) ** 2).sum()) >= between for _ in range(_PERMUTATIONS))
    return (larger + 1) / (_PERMUTATIONS + 1)


def _inflation(scores: FloatArray, member_of: NDArray[np.intp]) -> FloatArray:
    """Variance of the mean with groups as units, relative to that with instances as units; at least 1."""
    sums, sizes = _sums(scores, member_of)
    between, total = ((part**2).sum(axis=(0, 2)) for part in (sums, scores))
    ratio = np.divide(between, total, out=np.ones_like(total), where=total > 0)
    return np.maximum(1.0, ratio * sizes.size / (sizes.size - 1))


def _noise(scores: FloatArray, member_of: NDArray[np.intp], information: FloatArray) -> FloatArray:
    """Variance of the scores of instances inside their groups, relative to what the likelihood says."""
    sums, sizes = _sums(scores, member_of)
    between = (sums**2 / sizes[:, None, None]).sum(axis=(0, 2))
    inside = ((scores**2).sum(axis=(0, 2)) - between) / (len(scores) - sizes.size)
    expected = np.trace(information, axis1=1, axis2=2) / len(scores)
    ratio = np.divide(inside, expected, out=np.ones_like(inside), where=expected > 0)
    return np.clip(ratio, 0.05, 20.0)


def _spread(
    table: RankingTable,
    likelihood_name: LikelihoodName,
    member_of: NDArray[np.intp],
    centre: FloatArray,
    noise: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Posterior of the spread between groups, and the shift of the centre under each; see :class:`GroupModel`."""
    timepoints, n = centre.shape
    places = np.unique(np.linspace(0, timepoints - 1, min(timepoints, _TIMEPOINTS)).round().astype(int))
    basis = helmert(n)
    shape = int(member_of.max()) + 1, places.size, n - 1
    count = statistics_of if likelihood_name == "rankings" else first_place_statistics
    counts = count(_apart_by_group(table, table.ranks[:, places], member_of), table.weights)
    likelihood = Likelihood(counts.weighted(np.tile(1 / noise[places], shape[0])))
    evidence, shifts = [], []
    middle = centre[places] @ basis
    own = np.repeat(middle[None], shape[0], axis=0)
    for spread in _SPREADS:  # each search starts where the one before ended
        precision = np.eye(n - 1) / spread**2
        for _ in range(_STEPS):
            x = own.reshape(-1, n - 1) @ basis.T
            pull = (likelihood.gradient(x) @ basis).reshape(shape) - (own - middle) / spread**2
            curvature = (basis.T @ likelihood.information(x) @ basis).reshape(*shape, n - 1) + precision
            step = np.linalg.solve(curvature, pull[..., None])[..., 0]
            own = own + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
            middle = own.mean(axis=0)
        values = likelihood.values(own.reshape(-1, n - 1) @ basis.T).reshape(shape[:2])
        values -= ((own - middle) ** 2).sum(axis=2) / (2 * spread**2) + (n - 1) * np.log(spread)
        values -= np.linalg.slogdet(curvature)[1] / 2
        about_centre = (precision - np.linalg.inv(curvature) / spread**4).sum(axis=0)
        about_centre += _CENTRE_PRECISION * np.eye(n - 1)
        evidence.append(values.sum(axis=0) - np.linalg.slogdet(about_centre)[1] / 2 - (spread / _PRIOR_SCALE) ** 2 / 2)
        shifts.append(middle @ basis.T - centre[places])
    logs = np.array(evidence) + np.log(np.gradient(_SPREADS))[:, None]
    shares = np.exp(logs - logs.max(axis=0))
    shares /= shares.sum(axis=0)
    nearest = np.abs(np.arange(timepoints)[:, None] - places).argmin(axis=1)
    return shares[:, nearest], np.array(shifts)[:, nearest]


def _apart_by_group(table: RankingTable, ranks: RankArray, member_of: NDArray[np.intp]) -> RankArray:
    """Ranks with a place of its own, among timepoints, for each group at each timepoint."""
    rows, timepoints, n = ranks.shape
    wide = np.zeros((rows, int(member_of.max()) + 1, timepoints, n), dtype=ranks.dtype)
    wide[np.arange(rows), member_of[table.instance_index]] = ranks
    return wide.reshape(rows, -1, n)
