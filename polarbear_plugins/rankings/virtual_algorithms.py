"""Virtual algorithms: what was not run by itself, but whose results follow from runs that were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.checks import FloatArray, as_array, as_name
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.rankings.table import RankingTable

__all__ = ["add_virtual_algorithms"]


def add_virtual_algorithms(
    table: RankingTable, virtual: Mapping[str, Sequence[str] | ArrayLike], *, maximize: bool = False
) -> RankingTable:
    """Rank virtual algorithms with the others, such as a portfolio measured jointly.

    Adding the ratings of the members underestimates a portfolio whose members complete each other, as when the
    hypervolume of their joined fronts exceeds each one's.  Measured jointly and ranked like an algorithm, it gets a
    rating of its own from the same runs.

    Parameters
    ----------
    virtual
        By name, either the algorithms that run in parallel, of which the best result counts (``nan`` where one of
        them was not observed), or the values ``[row, timepoint]`` of the joint measurement, in the rows of the table.
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
    columns = [_measured(table, as_name(name, "virtual"), given, maximize) for name, given in virtual.items()]
    names = [*table.algorithms, *(as_name(name, "virtual") for name in virtual)]
    empty = RankingTable(names, table.timepoints, repetitions=table.repetitions, tolerance=table.tolerance)
    weights = table.weights
    if table.repetitions == "weight":  # the new table divides them by the rows of the instance again
        weights = weights * np.bincount(table.instance_index)[table.instance_index]
    rows = [table.instances[index] for index in table.instance_index]
    return empty.extended(np.concatenate([table.values, np.stack(columns, axis=-1)], axis=-1), rows, weights)


def _measured(table: RankingTable, name: str, given: Sequence[str] | ArrayLike, maximize: bool) -> FloatArray:
    if isinstance(given, str):
        raise InvalidInputError(f"virtual {name!r}: expected a list of members or an array of values, got {given!r}.")
    if isinstance(given, list | tuple) and given and all(isinstance(member, str) for member in given):
        unknown = [member for member in given if member not in table.algorithms]
        if unknown:
            raise InvalidInputError(
                f"virtual {name!r}: the table knows no {', '.join(map(repr, unknown))}; it has "
                f"{', '.join(table.algorithms)}."
            )
        best: FloatArray = table.values[:, :, [table.algorithms.index(member) for member in given]].min(axis=-1)
        return best
    values = as_array(given, f"virtual {name!r}")
    shape = table.values.shape[:2]
    if values.shape != shape:
        raise InvalidInputError(
            f"virtual {name!r}: expected values of the shape [{shape[0]} rows, {shape[1]} timepoints], "
            f"got {list(values.shape)}."
        )
    return -values if maximize else values
