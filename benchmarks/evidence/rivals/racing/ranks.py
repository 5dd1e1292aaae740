"""Choices by mean ranks, which several rivals share."""

from __future__ import annotations

import numpy as np
from scipy import stats


def best_by_rank(values: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """For each timepoint, the place of the kept algorithm with the best mean rank among the kept ones."""
    survivors = np.flatnonzero(kept)
    ranks = stats.rankdata(values[:, :, survivors], axis=2).mean(axis=0)
    return survivors[ranks.argmin(axis=1)]
