"""Mean ranks with critical differences: Friedman's and Nemenyi's tests by autorank."""

from __future__ import annotations

import contextlib
import io
import warnings

import numpy as np
from scipy.stats import norm

from rivals.analysing.answers import Answer, Sample


def analyse(sample: Sample, seed: int) -> Answer:  # noqa: ARG001
    """State what differs significantly at 0.05; predict by a normal approximation from differences of ranks.

    The prediction is not autorank's, which makes none.
    """
    import pandas as pd
    from autorank import autorank

    ranks, names = sample.ranks, list(sample.algorithms)
    better = np.zeros((len(sample.timepoints), len(names), len(names)), dtype=bool)
    for t in range(len(sample.timepoints)):
        frame = pd.DataFrame(sample.values[:, t], columns=names)
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            found = autorank(frame, alpha=0.05, order="ascending", force_mode="nonparametric")
        means = found.rankdf.meanrank.loc[names].to_numpy(dtype=float)
        if found.pvalue < 0.05:
            better[t] = means[None, :] - means[:, None] > found.cd
    means = ranks.mean(axis=0)
    return Answer(means.argmin(axis=1), wins=by_normal_differences(-ranks), better=better, meaning="mean ranks")


def by_normal_differences(merits: np.ndarray) -> np.ndarray:
    """Probability that the merit of one exceeds that of another, if differences were normal.

    The mean difference and its standard deviation are estimated, each with one further instance on which there is no
    difference, so that no pair is beyond doubt.
    """
    differences = merits[:, :, :, None] - merits[:, :, None, :]
    count = len(differences)
    mean = differences.sum(axis=0) / (count + 1)
    spread = np.sqrt((differences**2).sum(axis=0) / (count + 1) - mean**2)
    return norm.cdf(np.divide(mean, spread, out=np.zeros_like(mean), where=spread > 0))
