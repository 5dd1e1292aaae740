"""F-race at every timepoint: the textbook procedure (Birattari et al. 2002), written here."""

from __future__ import annotations

import numpy as np
from misfit import _friedman_worse as friedman_worse

from rivals.contest import Contest, Verdict
from rivals.racing.ranks import best_by_rank


def version() -> str:
    """What is measured."""
    return "textbook procedure, written here"


def f_race(contest: Contest, seed: int, *, most: int = 300, level: float = 0.05, first: int = 10) -> Verdict:
    """Friedman's test and its post-hoc tests after each instance, from the tenth on.

    An algorithm is out once it is significantly worse than the best of a timepoint at every timepoint, so that the
    best ones may differ over time.  Each budget gets the survivor with the best mean rank there.
    """
    del seed  # nothing is random
    values = contest.values[:most]
    kept, cost, seen = np.ones(values.shape[2], dtype=bool), 0.0, 0
    while seen < len(values) and kept.sum() > 1:
        seen += 1
        cost += kept.sum() * contest.timepoints[-1]
        if seen < first:
            continue
        survivors = np.flatnonzero(kept)
        worse = np.ones(survivors.size, dtype=bool)
        for at in range(values.shape[1]):
            if worse.any():
                worse &= friedman_worse(values[:seen, at][:, survivors], level)
        kept[survivors[worse]] = False
    return Verdict(kept, best_by_rank(values[:seen], kept), cost)
