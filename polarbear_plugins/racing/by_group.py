"""What each group of instances says by itself: who is first there how often, and the ratings in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.inference.fitting import fit
from polarbear_plugins.inference.task import LikelihoodName
from polarbear_plugins.rankings.comparable import compared_rows
from polarbear_plugins.rankings.summaries import win_shares
from polarbear_plugins.rankings.table import RankingTable

_DRAWS = 500  # enough for a mean
_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupPart:
    """What a group of instances says by itself.

    Attributes
    ----------
    shares
        ``[timepoint, algorithm]``: share of the first places, ties split; ``nan`` where nothing was compared.
    ratings
        Mean ratings inferred from this group alone; ``nan`` likewise.  ``None`` if they were not asked for.
    """

    group: str
    instances: int
    algorithms: tuple[str, ...]
    timepoints: FloatArray
    shares: FloatArray
    ratings: FloatArray | None = None

    def leaders(self, place: int) -> tuple[tuple[str, ...], float, float | None]:
        """Algorithms most often first at a timepoint, the share and the mean rating of each of them; none if unknown.

        Those that are first equally often have one rating only if there is one of them.
        """
        shares = self.shares[place]
        if np.isnan(shares).all():
            return (), 0.0, None
        top = float(np.nanmax(shares))
        places = np.flatnonzero(shares >= top - 1e-9)
        rating = None if self.ratings is None or places.size > 1 else float(self.ratings[place, places[0]])
        return tuple(self.algorithms[each] for each in places), top, rating

    def to_json(self) -> dict[str, Any]:
        """JSON-ready dict; what is not known is null."""
        known: dict[str, Any] = {
            "group": self.group,
            "instances": self.instances,
            "timepoints": self.timepoints.tolist(),
        }
        for name, array in (("win_shares", self.shares), ("ratings", self.ratings)):
            if array is not None:
                known[name] = [[None if np.isnan(value) else value for value in row] for row in array.tolist()]
        return known


def by_group(
    table: RankingTable, places: Sequence[int], *, likelihood: LikelihoodName | None = None
) -> tuple[GroupPart, ...]:
    """Each group of instances by itself, in the natural order of their names.

    Parameters
    ----------
    places
        Timepoints, by their places in the grid.
    likelihood
        From what to infer ratings in each group, with a Dirichlet prior; none are inferred by default.

    Examples
    --------
    >>> values = [[[3.0, 1.0]], [[2.0, 4.0]], [[2.0, 5.0]]]
    >>> table = RankingTable.from_values(
    ...     values, algorithms=["csa", "msr"], timepoints=[10], groups=["f10", "f2", "f2"]
    ... )
    >>> [(part.group, part.instances, part.leaders(0)) for part in by_group(table, [0])]
    [('f2', 2, (('csa',), 1.0, None)), ('f10', 1, (('msr',), 1.0, None))]
    """
    if not table.groups:
        raise InvalidInputError(
            "There are no groups: the instances belong to none. Name them in a column group, or with group= of the "
            "trajectories."
        )
    return tuple(
        GroupPart(
            group=group,
            instances=len(part.instances),
            algorithms=part.algorithms,
            timepoints=part.timepoints,
            shares=win_shares(part),
            ratings=None if likelihood is None else _ratings(part, likelihood),
        )
        for group, part in _at(table, places).split_by_group().items()
    )


def _at(table: RankingTable, places: Sequence[int]) -> RankingTable:
    """Rankings at some timepoints only."""
    algorithms, timepoints, repetitions, tolerance, values, instances, weights, groups, fixed, _ = table.parts()
    chosen = list(places)
    empty = RankingTable(algorithms, timepoints[chosen], repetitions=repetitions, tolerance=tolerance)
    return empty.extended(values[:, chosen], instances, weights, groups, fixed)


def _ratings(part: RankingTable, likelihood: LikelihoodName) -> FloatArray:
    """Mean ratings, ``[timepoint, algorithm]``, where something was compared."""
    known = compared_rows(part)
    if not known.any():
        return np.full((part.timepoints.size, len(part.algorithms)), np.nan)
    posterior = fit(part, draws=_DRAWS, seed=_SEED, likelihood=likelihood, groups="none", check=False)
    there = (part.ranks > 0) & known[..., None]
    mean: FloatArray = np.where(there.any(axis=0), posterior.ratings.mean(axis=0), np.nan)
    return mean
