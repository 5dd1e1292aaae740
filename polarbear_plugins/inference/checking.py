"""Check of the model: whether rankings that it would give look like those observed, in first places and in pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.posterior.model_check import Gap, ModelCheck
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.rankings.comparable import compared_rows
from polarbear_plugins.rankings.table import RankingTable
from polarbear_plugins.rankings.tallies import first_places, tally

_REPLICATIONS = 500
_PAIR_DRAWS = 100  # over which the probability of a count is averaged
_SETS = 20  # of algorithms that took part together; rarer ones are left out of the check of first places
_LEAST_EXPECTED = 0.5  # so that one first place of an algorithm that should have none does not decide alone
_REMARKABLE = 2.5  # standard errors; the exact probability of a smaller difference would be of no interest


def check_model(posterior: Posterior, table: RankingTable, seed: int | None = None) -> ModelCheck:
    """Compare the rankings with those that the model would give: posterior predictive p-values.

    First places: the sum of squared differences to what is expected, relative to it, at each timepoint; and its largest
    value over timepoints, standardised, for the overall p-value.  Timepoints count as independent there, which for runs
    that repeat over time makes alarms rarer.  Pairs: the exact probability of a count as far off, the smallest over all
    pairs and timepoints, with Bonferroni's correction.

    Parameters
    ----------
    table
        The rankings to which the posterior was fitted.
    seed
        Seed of the rankings that are simulated; without one, every call differs.

    Examples
    --------
    >>> from polarbear_plugins import fit
    >>> kinds = np.tile([[1.0, 3.0, 2.0], [3.0, 1.0, 2.0]], (30, 1))[:, None, :]  # c is always second
    >>> table = RankingTable.from_values(kinds, algorithms=["a", "b", "c"], timepoints=[100])
    >>> print(check_model(fit(table, seed=1), table, seed=1))
    The model does not fit (p = 0.004): c is first on 0% of the instances at 100, and by the model on 41%.
    """
    if posterior.algorithms != table.algorithms or not np.array_equal(posterior.timepoints, table.timepoints):
        raise InvalidInputError("check_model: the posterior was not fitted to this table, which differs in its axes.")
    if posterior.likelihood != "rankings" or (posterior.groups is not None and posterior.groups.scope == "new"):
        raise InvalidInputError(
            "check_model: the posterior must be about the rankings of the table, and this one is about "
            f"{'first places' if posterior.likelihood != 'rankings' else 'a new group; see its own check'}."
        )
    rng = np.random.default_rng(None if seed is None else as_whole_number(seed, "seed", at_least=0))
    ratings = np.exp(posterior.log_ratings)
    scale = _worth(table)
    p_first, p_all_first, observed, modelled = _check_first_places(ratings, table, scale, rng)
    p_pairs, pair_gap = np.ones(table.timepoints.size), None
    if posterior.likelihood == "rankings":
        p_pairs, pair_gap = _check_pairs(ratings, table, scale)
    p_all_pairs = min(1.0, float(p_pairs.min()) * p_pairs.size)
    return ModelCheck(
        algorithms=table.algorithms,
        timepoints=table.timepoints,
        p=min(1.0, 2 * min(p_all_first, p_all_pairs)),
        p_first=p_first,
        p_pairs=p_pairs,
        observed=observed,
        modelled=modelled,
        first_gap=_first_gap(table, observed, modelled),
        pair_gap=pair_gap,
    )


def _worth(table: RankingTable) -> float:
    """Number of single rankings that a unit of weight is worth, by how first places vary between instances.

    An instance with several runs, or with ties, varies less than one ranking.
    """
    independent = table.repetitions == "independent"
    units = np.arange(len(table)) if independent else table.instance_index
    leads, there = first_places(table.ranks)
    heavy = table.weights[:, None, None] * (there & compared_rows(table)[..., None])
    weight, sums = np.zeros((2, int(units.max()) + 1, *leads.shape[1:]))
    np.add.at(weight, units, heavy)
    np.add.at(sums, units, heavy * leads)
    total = np.maximum(weight.sum(axis=0), 1e-100)  # its square must not be zero
    mean = sums.sum(axis=0) / total
    expected = (mean * (1 - mean) / total).sum()
    actual = (((sums - weight * mean) / total) ** 2).sum()  # in this order, since the square of a tiny total is 0
    # With few instances, as many rankings as there are rows would be too many.
    most = len(table) / len(weight)
    return float(min(expected / max(actual, 1e-300), most)) if expected > 0 else 1.0


def _check_first_places(
    ratings: FloatArray, table: RankingTable, scale: float, rng: np.random.Generator
) -> tuple[FloatArray, float, FloatArray, FloatArray]:
    """P-value at each timepoint, the overall one, and the observed and modelled shares of first places."""
    timepoints, n = ratings.shape[1:]
    drawn = rng.integers(len(ratings), size=_REPLICATIONS)
    p = np.ones(timepoints)
    most, most_simulated = np.full(_REPLICATIONS, -np.inf), np.full(_REPLICATIONS, -np.inf)
    observed, modelled = np.full((timepoints, n), np.nan), np.full((timepoints, n), np.nan)
    leads, there = first_places(table.ranks)
    compared, weights = compared_rows(table), table.weights * scale
    for t in range(timepoints):
        rows = np.flatnonzero(compared[:, t])
        if not rows.size:
            continue
        theta = ratings[drawn, t]
        expected, simulated = np.zeros((2, _REPLICATIONS, n))
        counted, took_part = np.zeros((2, n))
        for inside, of_set in _common_sets(there[rows, t], weights[rows]):
            those = rows[of_set]
            heavy = weights[those]
            counted += heavy @ leads[those, t]
            took_part[inside] += heavy.sum()
            share = theta[:, inside] / theta[:, inside].sum(axis=1, keepdims=True)
            expected[:, inside] += heavy.sum() * share
            count = max(1, round(float(heavy.sum())))
            simulated[:, inside] += rng.multinomial(count, share) * (heavy.sum() / count)
        denominator = np.maximum(expected, _LEAST_EXPECTED)
        distance = ((counted - expected) ** 2 / denominator).sum(axis=1)
        distance_simulated = ((simulated - expected) ** 2 / denominator).sum(axis=1)
        p[t] = _share_at_least(distance_simulated, distance)
        centre, spread = distance_simulated.mean(), max(float(distance_simulated.std()), 1e-300)
        most = np.maximum(most, (distance - centre) / spread)
        most_simulated = np.maximum(most_simulated, (distance_simulated - centre) / spread)
        np.divide(counted, took_part, out=observed[t], where=took_part > 0)
        np.divide(expected.mean(axis=0), took_part, out=modelled[t], where=took_part > 0)
    # The two sums of a share may differ in their last digit.
    observed, modelled = np.minimum(observed, 1.0), np.minimum(modelled, 1.0)
    return p, _share_at_least(most_simulated, most), observed, modelled


def _share_at_least(simulated: FloatArray, seen: FloatArray) -> float:
    return float((np.count_nonzero(simulated >= seen) + 1) / (seen.size + 1))


def _common_sets(there: NDArray[np.bool_], weights: FloatArray) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Sets of algorithms that took part together, the most frequent first, each with its rows."""
    keys, inverse = np.unique(np.packbits(there, axis=1), axis=0, return_inverse=True)
    inverse = inverse.ravel()
    order = np.argsort(-np.bincount(inverse, weights, minlength=len(keys)), kind="stable")[:_SETS]
    members = np.unpackbits(keys, axis=1, count=there.shape[1]).astype(bool)
    return [(np.flatnonzero(members[key]), np.flatnonzero(inverse == key)) for key in order]


def _check_pairs(ratings: FloatArray, table: RankingTable, scale: float) -> tuple[FloatArray, Gap | None]:
    """P-value of the most deviating pair at each timepoint, and the largest gap."""
    from scipy.special import betainc

    one, other = np.triu_indices(len(table.algorithms), 1)
    counts = tally(table)
    won = scale * (counts.wins + counts.ties / 2)[:, one, other]
    total = scale * counts.compared[:, one, other]
    mean = ratings.mean(axis=0)
    modelled = mean[:, one] / (mean[:, one] + mean[:, other])
    observed = np.divide(won, total, out=modelled.copy(), where=total > 0)
    gap = np.abs(observed - modelled)
    # The model was fitted to these data: a difference that is ordinary at its mean is not remarkable on average.
    error = np.sqrt(np.maximum(modelled * (1 - modelled), 1e-12) / np.maximum(total, 1.0))
    p = np.ones(won.shape)
    few = ratings[:: max(1, len(ratings) // _PAIR_DRAWS)]
    for t, pair in np.argwhere(gap > _REMARKABLE * error):
        share = few[:, t, one[pair]] / (few[:, t, one[pair]] + few[:, t, other[pair]])
        k, m = won[t, pair], total[t, pair]
        at_least = betainc(k, m - k + 1, share).mean() if k > 0 else 1.0
        at_most = betainc(m - k, k + 1, 1 - share).mean() if k < m else 1.0
        p[t, pair] = min(1.0, 2 * min(at_least, at_most))
    by_time: FloatArray = np.minimum(1.0, p.min(axis=1) * one.size)
    if not (total > 0).any():
        return by_time, None
    t, pair = np.unravel_index(int(np.argmax(gap)), gap.shape)
    names = table.algorithms[one[pair]], table.algorithms[other[pair]]
    return by_time, Gap(float(table.timepoints[t]), *names, float(observed[t, pair]), float(modelled[t, pair]))


def _first_gap(table: RankingTable, observed: FloatArray, modelled: FloatArray) -> Gap | None:
    gap = np.abs(observed - modelled)
    if np.isnan(gap).all():
        return None
    t, i = np.unravel_index(int(np.nanargmax(gap)), gap.shape)
    return Gap(float(table.timepoints[t]), table.algorithms[i], None, float(observed[t, i]), float(modelled[t, i]))
