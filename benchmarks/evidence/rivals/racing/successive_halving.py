"""Successive halving over instances: the textbook procedure (Karnin et al. 2013), written here."""

from __future__ import annotations

import numpy as np
from scipy import stats

from rivals.contest import Contest, Verdict


def version() -> str:
    """What is measured."""
    return "textbook procedure, written here"


def successive_halving(contest: Contest, seed: int, *, most: int = 300, first: int = 8) -> Verdict:
    """Keep the better half by mean rank at the last timepoint each time the number of instances has doubled.

    One algorithm is left at the end, and is the choice for every budget.
    """
    del seed  # nothing is random
    final = contest.values[:most, -1]
    survivors, seen, until, cost = np.arange(final.shape[1]), 0, first, 0.0
    while survivors.size > 1 and seen < len(final):
        until = min(until, len(final))
        cost += survivors.size * (until - seen) * contest.timepoints[-1]
        ranks = stats.rankdata(final[:until, survivors], axis=1).mean(axis=0)
        survivors = survivors[np.argsort(ranks, kind="stable")[: -(-survivors.size // 2)]]
        seen, until = until, 2 * until
    kept = np.isin(np.arange(final.shape[1]), survivors)
    return Verdict(kept, np.full(len(contest.timepoints), survivors[0]), cost)
