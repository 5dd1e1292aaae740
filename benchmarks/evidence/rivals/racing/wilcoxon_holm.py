"""A fixed sample and Wilcoxon's signed-rank tests with Holm's correction (scipy, statsmodels)."""

from __future__ import annotations

import numpy as np
import scipy
import statsmodels
from scipy import stats
from statsmodels.stats.multitest import multipletests

from rivals.contest import Contest, Verdict
from rivals.racing.ranks import best_by_rank


def version() -> str:
    """Versions of the tests."""
    return f"scipy {scipy.__version__}, statsmodels {statsmodels.__version__}"


def wilcoxon_holm(contest: Contest, seed: int, *, instances: int, level: float = 0.05) -> Verdict:
    """Run everything on so many instances, then test all ordered pairs, each at its least significant timepoint.

    An algorithm is out if another one is significantly better at every timepoint.  Each budget gets the survivor with
    the best mean rank there.
    """
    del seed  # nothing is random
    values = contest.values[:instances]
    n = values.shape[2]
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    p = [_least_significant(values[:, :, j] - values[:, :, i]) for i, j in pairs]
    rejected = multipletests(p, alpha=level, method="holm")[0]
    kept = np.ones(n, dtype=bool)
    kept[[j for (_, j), out in zip(pairs, rejected, strict=True) if out]] = False
    return Verdict(kept, best_by_rank(values, kept), float(len(values) * n * contest.timepoints[-1]))


def _least_significant(differences: np.ndarray) -> float:
    """Largest p-value over time; 1 if a timepoint has nothing but ties."""
    if not (differences != 0).any(axis=0).all():
        return 1.0
    return float(stats.wilcoxon(differences, alternative="greater", axis=0, method="approx").pvalue.max())
