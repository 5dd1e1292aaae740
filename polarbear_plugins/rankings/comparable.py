"""Whether anything can be compared in a ranking table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import BoolArray
from polarbear_plugins.errors import InvalidInputError

if TYPE_CHECKING:
    from polarbear_plugins.rankings.table import RankingTable


def check_comparable(table: RankingTable) -> None:
    """Refuse a table in which no two algorithms were ever compared."""
    if not compared_rows(table).any():
        if (np.count_nonzero(table.ranks, axis=-1) > 1).any():
            raise InvalidInputError(
                f"The algorithms {', '.join(table.algorithms)} are all unranked wherever two of them are there: "
                "nothing can be compared. Rank at least one of them."
            )
        raise InvalidInputError(
            f"The algorithms {', '.join(table.algorithms)} have no instance in common at any timepoint: nothing can be "
            "compared. Run at least two of them on the same instances, or check the instance names and the timepoints."
        )


def compared_rows(table: RankingTable) -> BoolArray:
    """``[row, timepoint]``: whether something is compared: an algorithm is ranked, and another is there."""
    ranks = table.ranks
    return (np.count_nonzero(ranks, axis=-1) > 1) & (ranks == 1).any(axis=-1)


def observed(table: RankingTable) -> BoolArray:
    """``[timepoint, algorithm]``: whether an algorithm was ever compared with another one there."""
    return instances_seen(table) > 0


def instances_seen(table: RankingTable) -> NDArray[np.int_]:
    """``[timepoint, algorithm]``: on how many instances an algorithm was compared there."""
    there = (table.ranks > 0) & compared_rows(table)[..., None]
    seen = np.zeros((len(table.instances), *there.shape[1:]), dtype=bool)
    np.logical_or.at(seen, table.instance_index, there)
    return np.count_nonzero(seen, axis=0)
