"""What needs no method: a coin, and counting with one win more for everybody."""

from __future__ import annotations

import numpy as np
from scipy.stats import beta

from rivals.analysing.answers import Answer, Sample
from rivals.contest import Truth


def coin(sample: Sample, seed: int) -> Answer:
    """One half for each pair, equal chances for all, and a pick by chance."""
    count, n = sample.values.shape[1:]
    picks = np.random.default_rng(seed).integers(0, n, count)
    return Answer(picks, wins=np.full((count, n, n), 0.5), first=np.full((count, n), 1 / n))


def counts(sample: Sample, seed: int) -> Answer:  # noqa: ARG001
    """Observed shares after one more win and one more loss, or one more first place for each algorithm.

    Statements and intervals are those of the Beta distribution of which that is the mean.
    """
    seen, count = Truth.of(sample.values), len(sample.values)
    won = count * seen.wins + 1
    lost = count + 2 - won
    first = (count * seen.first + 1) / (count + seen.first.shape[1])
    return Answer(
        first.argmax(axis=1),
        wins=won / (count + 2),
        first=first,
        better=beta.sf(0.5, won, lost) >= 0.95,
        intervals={"wins": (beta.ppf(0.025, won, lost), beta.ppf(0.975, won, lost))},
    )
