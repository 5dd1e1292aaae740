"""Robust rankings by resampling instances, by robustranking."""

from __future__ import annotations

import warnings

import numpy as np

from rivals.analysing.answers import Answer, Sample

RESAMPLES = 1000


def analyse(sample: Sample, seed: int) -> Answer:
    """State whose mean rank is lower in 95 % of the resamples; it says nothing about single new instances.

    It is given ranks within instances, since values of different instances are not on one scale.
    """
    import pandas as pd
    from robustranking import Benchmark
    from robustranking.comparison import BootstrapComparison

    ranks, names = sample.ranks, list(sample.algorithms)
    count, n = len(sample.timepoints), len(names)
    better, ends = np.zeros((count, n, n), dtype=bool), np.zeros((2, count, n))
    for t in range(count):
        long = pd.DataFrame(ranks[:, t], columns=names).rename_axis(index="instance", columns="algorithm")
        benchmark = Benchmark()
        benchmark.from_pandas(long.stack().rename("rank").reset_index(), "algorithm", "instance", "rank")  # noqa: PD013
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            comparison = BootstrapComparison(benchmark, True, RESAMPLES, alpha=0.05, rng=seed).compute()
        intervals = comparison.get_confidence_intervals().droplevel("objective").loc[names]
        ends[:, t] = intervals[["lb", "ub"]].to_numpy().T
        better[t] = [[i != j and comparison.statistical_test(i, j) < 0.05 for j in names] for i in names]
    return Answer(
        ranks.mean(axis=0).argmin(axis=1),
        better=better,
        meaning="mean ranks",
        intervals={"mean ranks": (ends[0], ends[1])},
    )
