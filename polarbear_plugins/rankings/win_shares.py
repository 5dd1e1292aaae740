"""Observed shares of wins: what the rankings say by themselves, before any inference."""

from __future__ import annotations

import numpy as np

from polarbear_plugins.checks import FloatArray
from polarbear_plugins.rankings.table import RankingTable

__all__ = ["win_shares"]


def win_shares(table: RankingTable) -> FloatArray:
    """Share of the instances on which each algorithm is best, at each timepoint.

    The plug-in estimate of the ratings: how often an algorithm ranks first among those present, a tie for the first
    place split evenly, rows weighted as the table says.  ``nan`` where an algorithm was never compared.

    Returns
    -------
    shares[timepoint, algorithm]

    Examples
    --------
    >>> table = RankingTable.from_values([[[1.0, 2.0]], [[3.0, 3.0]]], algorithms=["csa", "msr"], timepoints=[10])
    >>> win_shares(table)
    array([[0.75, 0.25]])
    """
    compared = np.count_nonzero(table.ranks, axis=-1, keepdims=True) > 1  # who is alone neither wins nor loses
    first = ((table.ranks == 1) & compared).astype(np.float64)
    first /= np.maximum(first.sum(axis=-1, keepdims=True), 1.0)
    weights = table.weights
    observed = np.einsum("r,rta->ta", weights, (table.ranks > 0) & compared)
    shares: FloatArray = np.full(observed.shape, np.nan)
    np.divide(np.einsum("r,rta->ta", weights, first), observed, out=shares, where=observed > 0)
    return shares
