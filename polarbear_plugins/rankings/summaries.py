"""Summaries of rankings without a model: win shares, mean ranks, mean regret; and virtual algorithms."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_array
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.names import as_name
from polarbear_plugins.rankings.comparable import compared_rows
from polarbear_plugins.rankings.ranks import UNRANKED_RANK, ranks_of
from polarbear_plugins.rankings.table import RankingTable
from polarbear_plugins.trajectories.timepoints import timepoint_index
from polarbear_plugins.trajectories.trajectory import UNRANKED, minimised

if TYPE_CHECKING:
    import pandas as pd

Unit: TypeAlias = Literal["instances", "runs"]


def win_shares(table: RankingTable) -> FloatArray:
    """Share of the instances on which each algorithm is best, at each timepoint.

    The plug-in estimate of the ratings: how often an algorithm ranks first among those present, a tie for the first
    place split evenly, rows weighted as in the table.  ``nan`` where an algorithm was never compared.

    Returns
    -------
    shares[timepoint, algorithm]

    Examples
    --------
    >>> table = RankingTable.from_values([[[1.0, 2.0]], [[3.0, 3.0]]], algorithms=["csa", "msr"], timepoints=[10])
    >>> win_shares(table)
    array([[0.75, 0.25]])
    """
    compared = compared_rows(table)[..., None]  # an algorithm alone neither wins nor loses
    first = ((table.ranks == 1) & compared).astype(np.float64)
    first /= np.maximum(first.sum(axis=-1, keepdims=True), 1.0)
    weights = table.weights
    observed = np.einsum("r,rta->ta", weights, (table.ranks > 0) & compared)
    shares: FloatArray = np.full(observed.shape, np.nan)
    np.divide(np.einsum("r,rta->ta", weights, first), observed, out=shares, where=observed > 0)
    return shares


def table_among(table: RankingTable, algorithms: Sequence[str]) -> RankingTable:
    """Rankings of some of the algorithms of a table, as if the others had not taken part.

    >>> table = RankingTable.from_values([[[1.0, 2.0, 3.0]]], algorithms=["a", "b", "c"], timepoints=[10])
    >>> table_among(table, ["b", "c"]).ranks
    array([[[1, 2]]], dtype=int16)
    """
    columns = [table.algorithms.index(name) for name in algorithms]
    _, timepoints, repetitions, tolerance, values, instances, weights, groups, fixed, ends = table.parts()
    empty = RankingTable(algorithms, timepoints, repetitions=repetitions, tolerance=tolerance)
    among = empty.extended(values[:, :, columns], instances, weights, groups, fixed)
    return among.with_early_ends([each for each in ends if each.algorithm in algorithms])


def regroup(table: RankingTable, groups: Mapping[str, str]) -> RankingTable:
    """The same rankings with other groups, which are named for each instance.

    >>> table = RankingTable.from_values([[[1.0, 2.0]]], algorithms=["a", "b"], timepoints=[10], instances=["f1"])
    >>> regroup(table, {"f1": "d = 5"}).groups
    ('d = 5',)
    """
    algorithms, timepoints, repetitions, tolerance, values, instances, weights, _, _, ends = table.parts()
    empty = RankingTable(algorithms, timepoints, repetitions=repetitions, tolerance=tolerance)
    return empty.extended(values, instances, weights, [groups[name] for name in instances]).with_early_ends(ends)


@dataclass(frozen=True, slots=True, eq=False)
class MeanCurves:
    """Means over instances at each timepoint.

    Attributes
    ----------
    algorithms : tuple of str
        The algorithms compared.
    timepoints : array
        The timepoints.
    mean, standard_error : arrays[timepoint, algorithm]
        ``nan`` where no instance, or a single one, has all algorithms.
    count : array[timepoint]
        Number of those instances; of runs, if there is one instance only or repeated runs are independent.
    unit : str
        What was counted: ``"instances"`` or ``"runs"``.
    """

    algorithms: tuple[str, ...]
    timepoints: FloatArray
    mean: FloatArray
    standard_error: FloatArray
    count: FloatArray
    unit: Unit = "instances"

    def to_frame(self) -> pd.DataFrame:
        """Table with the columns ``time``, ``algorithm``, ``mean``, ``standard_error`` and ``count``."""
        import pandas as pd

        times, names = len(self.timepoints), len(self.algorithms)
        return pd.DataFrame(
            {
                "time": np.repeat(self.timepoints, names),
                "algorithm": list(self.algorithms) * times,
                "mean": self.mean.ravel(),
                "standard_error": self.standard_error.ravel(),
                "count": np.repeat(self.count.astype(int), names),
            }
        )


def mean_ranks(table: RankingTable, among: Sequence[str] | None = None) -> MeanCurves:
    """Mean rank of each algorithm at each timepoint: 1 is best, ties get the mean of their ranks.

    Parameters
    ----------
    table
        Rankings, from :func:`polarbear_plugins.rank` or a race.  Where an algorithm is missing, as after its
        elimination, the instance does not count, since ranks among fewer algorithms are smaller.  Unranked
        algorithms are refused: their ranks are not known.
    among
        Rank only these, on instances that have all of them.

    Examples
    --------
    >>> values = [[[1.0, 2.0]], [[3.0, 3.0]]]
    >>> table = RankingTable.from_values(values, algorithms=["csa", "msr"], timepoints=[10])
    >>> mean_ranks(table).mean, mean_ranks(table).standard_error
    (array([[1.25, 1.75]]), array([[0.25, 0.25]]))
    """
    from scipy.stats import rankdata

    names, values = _values_among(table, among, "mean_ranks")
    places = rankdata(ranks_of(values, table.tolerance), axis=-1)  # values within the tolerance tie
    return _average_rows(table, names, np.where(np.isnan(values), np.nan, places))


def mean_regret(table: RankingTable, among: Sequence[str] | None = None) -> MeanCurves:
    """Mean normalised regret: 0 is the best value found on the instance, 1 the worst.

    The range of an instance is that of the values at the timepoints, over all algorithms and runs.  An algorithm
    without a value so far has a regret of 1.

    Parameters
    ----------
    table, among
        As for :func:`mean_ranks`; the range is that of all algorithms.

    Examples
    --------
    >>> values = [[[4.0, 8.0], [2.0, 0.0]]]
    >>> table = RankingTable.from_values(values, algorithms=["csa", "msr"], timepoints=[1, 10])
    >>> mean_regret(table).mean
    array([[0.5 , 1.  ],
           [0.25, 0.  ]])
    """
    names, values = _values_among(table, among, "mean_regret")
    regrets = np.full(values.shape, np.nan)
    for instance in range(len(table.instances)):
        rows = table.instance_index == instance
        finite = table.values[rows]
        finite = finite[np.isfinite(finite)]
        low, span = (finite.min(), np.ptp(finite)) if finite.size else (0.0, 0.0)
        with np.errstate(invalid="ignore"):  # inf, no value so far, becomes 1 below
            scaled = (values[rows] - low) / (span if span > 0 else 1.0)
        regrets[rows] = np.clip(scaled, 0, 1)
    return _average_rows(table, names, regrets)


def _values_among(table: RankingTable, among: Sequence[str] | None, who: str) -> tuple[tuple[str, ...], FloatArray]:
    """Values of some algorithms; ``nan`` for all of them where one is missing."""
    unranked = (table.ranks == UNRANKED_RANK).any(axis=(0, 1))
    if unranked.any():
        some = ", ".join(itertools.compress(table.algorithms, unranked))
        raise InvalidInputError(
            f"{who}: {some}: unranked in some rankings, so neither rank nor value is known there. win_shares and fit "
            "use what is known."
        )
    names = table.algorithms if among is None else tuple(among)
    unknown = [name for name in names if name not in table.algorithms]
    if unknown or not names or len(set(names)) < len(names):
        raise InvalidInputError(
            f"among: expected distinct names from {', '.join(table.algorithms)}, got {list(names)}."
        )
    every: FloatArray = table.values
    values = every[..., [table.algorithms.index(name) for name in names]]
    values[np.isnan(values).any(axis=-1)] = np.nan
    return names, values


def values_by_instance(
    table: RankingTable, timepoint: float | None, among: Sequence[str] | None, who: str
) -> tuple[tuple[str, ...], FloatArray]:
    """Mean of each algorithm on each instance at a timepoint, by default the last: ``values[instance, algorithm]``.

    Only instances that have all algorithms.  Rows that are independent, or of a single instance, are not averaged.
    """
    names, values = _values_among(table, among, who)
    means = _instance_means(table, values[:, timepoint_index(table.timepoints, timepoint)])
    return names, means[~np.isnan(means).any(axis=-1)]


def counted_unit(table: RankingTable) -> Unit:
    """What means over a table count: runs, if several of an instance are not averaged."""
    return "instances" if _averages_instances(table) or len(table) == len(table.instances) else "runs"


def _averages_instances(table: RankingTable) -> bool:
    return len(table.instances) > 1 and table.repetitions == "weight"


def _instance_means(table: RankingTable, each: FloatArray) -> FloatArray:
    """Average the rows of each instance; ``nan`` is left out.  Rows that are independent or of one instance remain."""
    index = table.instance_index if _averages_instances(table) else np.arange(len(table))
    present = ~np.isnan(each)
    sums = np.zeros((int(index.max()) + 1 if len(index) else 0, *each.shape[1:]))
    counts = np.zeros_like(sums)
    np.add.at(sums, index, np.where(present, each, 0.0))
    np.add.at(counts, index, present)
    with np.errstate(invalid="ignore", divide="ignore"):  # nan where no algorithm has a value
        return sums / counts


def _average_rows(table: RankingTable, names: tuple[str, ...], each: FloatArray) -> MeanCurves:
    """Average the rows of each instance, then the instances."""
    means = _instance_means(table, each)
    there = ~np.isnan(means)
    with np.errstate(invalid="ignore", divide="ignore"):  # nan where no algorithm has a value
        number = there.sum(axis=0)
        mean = np.where(there, means, 0.0).sum(axis=0) / number
        squares = np.where(there, (means - mean) ** 2, 0.0).sum(axis=0)
        error = np.sqrt(squares / (number - 1) / number)
    error[number < 2] = np.nan
    return MeanCurves(names, table.timepoints, mean, error, number.min(axis=-1).astype(np.float64), counted_unit(table))


def add_virtual_algorithms(
    table: RankingTable, virtual: Mapping[str, Sequence[str] | ArrayLike], *, maximize: bool = False
) -> RankingTable:
    """Rank virtual algorithms with the others, such as a portfolio measured jointly.

    The sum of the members' ratings underestimates a portfolio whose members complement each other, as when the
    hypervolume of their joint front exceeds that of each.  Measured jointly and ranked like an algorithm, it gets its
    own rating from the same runs.

    Parameters
    ----------
    virtual
        By name, either the algorithms that run in parallel, the best result of which counts (``nan`` where one was not
        observed), or the values ``[row, timepoint]`` of the joint measurement, in the rows of the table.
    maximize
        Larger values are better in those measurements.

    Examples
    --------
    >>> table = RankingTable.from_values(
    ...     [[[3.0, 1.0, 2.0]], [[1.0, 3.0, 2.0]]], algorithms=["a", "b", "c"], timepoints=[10]
    ... )
    >>> longer = add_virtual_algorithms(table, {"a+b": ["a", "b"]})
    >>> longer.algorithms
    ('a', 'b', 'c', 'a+b')
    >>> longer.values[:, 0, 3]
    array([1., 1.])
    """
    if not virtual:
        raise InvalidInputError("virtual: expected at least one name with its members or its values.")
    columns = [_virtual_values(table, as_name(name, "virtual"), given, maximize) for name, given in virtual.items()]
    names = [*table.algorithms, *(as_name(name, "virtual") for name in virtual)]
    empty = RankingTable(names, table.timepoints, repetitions=table.repetitions, tolerance=table.tolerance)
    *_, rows, weights, groups, fixed_groups, ends = table.parts()
    values = np.concatenate([table.values, np.stack(columns, axis=-1)], axis=-1)
    return empty.extended(values, rows, weights, groups, fixed_groups).with_early_ends(ends)


def _virtual_values(table: RankingTable, name: str, given: Sequence[str] | ArrayLike, maximize: bool) -> FloatArray:
    if isinstance(given, str):
        raise InvalidInputError(f"virtual {name!r}: expected a list of members or an array of values, got {given!r}.")
    if isinstance(given, list | tuple) and given and all(isinstance(member, str) for member in given):
        unknown = [member for member in given if member not in table.algorithms]
        if unknown:
            raise InvalidInputError(
                f"virtual {name!r}: there is no {', '.join(map(repr, unknown))} in the table; it has "
                f"{', '.join(table.algorithms)}."
            )
        return _best_member(table.values[:, :, [table.algorithms.index(member) for member in given]])
    values = as_array(given, f"virtual {name!r}")
    shape = table.values.shape[:2]
    if values.shape != shape:
        raise InvalidInputError(
            f"virtual {name!r}: expected values of the shape [{shape[0]} rows, {shape[1]} timepoints], "
            f"got {list(values.shape)}."
        )
    return minimised(values, maximize)


def _best_member(values: FloatArray) -> FloatArray:
    """Best value along the last axis; an unranked one is not better than any other."""
    unranked = values == UNRANKED
    best: FloatArray = np.where(unranked, np.inf, values).min(axis=-1)
    return np.where(unranked.all(axis=-1), UNRANKED, best)
