"""Means over replications with 95 % intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

#: Measures that are shares of at most 1, whose intervals cannot be points.
SHARES = ("lost", "lost by majority", "family-wise", "family-wise by majority", "dominated kept")
_RESAMPLES = 4000


def interval(values: Sequence[float], name: str) -> dict[str, float]:
    """Mean and 95 % interval: Wilson's for what is 0 or 1, or the same everywhere; otherwise from a bootstrap."""
    known = np.array(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    if not known.size:
        return {"mean": float("nan"), "low": float("nan"), "high": float("nan")}
    mean = float(known.mean())
    if name in SHARES and (np.isin(known, (0, 1)).all()):
        found = stats.binomtest(int(known.sum()), known.size).proportion_ci(method="wilson")
        return {"mean": mean, "low": float(found.low), "high": float(found.high)}
    low, high = np.quantile(_means(known), [0.025, 0.975])
    return {"mean": mean, "low": float(low), "high": float(high)}


def paired(mine: Sequence[float], others: Sequence[float]) -> dict[str, float]:
    """Mean difference on the same contests, with a bootstrap interval."""
    return interval(np.subtract(mine, others).tolist(), "difference")


def cost_ratio(mine: Sequence[float], others: Sequence[float]) -> dict[str, float]:
    """Ratio of mean costs on the same contests, with a bootstrap interval."""
    ratios = _means(np.array(mine)) / _means(np.array(others))
    low, high = np.quantile(ratios, [0.025, 0.975])
    return {"mean": float(np.mean(mine) / np.mean(others)), "low": float(low), "high": float(high)}


def _means(values: np.ndarray) -> np.ndarray:
    """Means of resamples; the same rows for values of one length, so that pairs stay together."""
    rows = np.random.default_rng(0).integers(0, len(values), (_RESAMPLES, len(values)))
    return values[rows].mean(axis=1)


def summarize(rows: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """All measures of the replications of one rival on one kind of data."""
    return {name: interval([row[name] for row in rows], name) for name in rows[0]}
