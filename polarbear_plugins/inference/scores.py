"""Scores of single instances: how each would pull the utilities."""

from __future__ import annotations

import numpy as np

from polarbear_plugins.arrays import FloatArray, RankArray
from polarbear_plugins.inference.task import LikelihoodName
from polarbear_plugins.plackett_luce.likelihood import scores
from polarbear_plugins.rankings.ranks import UNRANKED_RANK
from polarbear_plugins.rankings.table import RankingTable


def ranks_used(table: RankingTable, likelihood: LikelihoodName) -> RankArray:
    """The ranks that a likelihood uses: where only the first place counts, all others are unranked."""
    ranks = table.ranks
    return ranks if likelihood == "rankings" else np.where(ranks > 1, np.int16(UNRANKED_RANK), ranks)


def instance_scores(table: RankingTable, ranks: RankArray, x: FloatArray) -> FloatArray:
    """Gradient of the log-likelihood of each instance, ``[instance, timepoint, algorithm]``, at utilities ``x``."""
    rows = scores(ranks, x) * table.weights[:, None, None]
    by_instance = np.zeros((len(table.instances), *rows.shape[1:]))
    np.add.at(by_instance, table.instance_index, rows)
    return by_instance
