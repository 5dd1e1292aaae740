"""Mean area over the convergence curve, with a bootstrap; a short implementation."""

from __future__ import annotations

import numpy as np

from rivals.analysing.answers import Answer, Sample
from rivals.analysing.autorank import by_normal_differences
from rivals.contest import log_uniform

RESAMPLES = 1000


def areas(values: np.ndarray, timepoints: np.ndarray) -> np.ndarray:
    """Area over the curve until each timepoint, ``[instance, t, i]``: larger is better.

    Time is on a log scale, and values are on the scale on which they are given, without bounds, so that no choice of
    bounds favours anybody.
    """
    steps = log_uniform(timepoints)[:, None]
    return -np.cumsum(steps * values, axis=1) / np.cumsum(steps, axis=0)


def analyse(sample: Sample, seed: int) -> Answer:
    """State whose mean area is larger in 95 % of the resamples; predict by normal differences of areas.

    The prediction is not part of the method, which makes none.
    """
    found = areas(sample.values, sample.timepoints)
    count = len(found)
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), RESAMPLES) / count
    means = np.tensordot(drawn, found, axes=1)
    ahead = (means[:, :, :, None] > means[:, :, None, :]).mean(axis=0)
    return Answer(
        found.mean(axis=0).argmax(axis=1), wins=by_normal_differences(found), better=ahead >= 0.95, meaning="area"
    )
