"""Bayesian signed-rank tests of all pairs, by baycomp."""

from __future__ import annotations

import numpy as np

from rivals.analysing.answers import Answer, Sample

DRAWS = 500


def analyse(sample: Sample, seed: int) -> Answer:
    """State what the signed-rank test finds with a probability of 0.95; predict by its Bayesian sign test.

    The sign test's share of wins on new instances is what baycomp says about them; ties and the prior count half.
    The pick wins most in the mean of these shares.
    """
    from baycomp import SignedRankTest, SignTest

    count, n = len(sample.timepoints), len(sample.algorithms)
    wins, better = np.full((count, n, n), 0.5), np.zeros((count, n, n), dtype=bool)
    for t in range(count):
        for i in range(n):
            for j in range(i):
                mine, other = sample.values[:, t, i], sample.values[:, t, j]
                # Smaller is better here, and larger is for baycomp, where the last share is that of the second.
                options = {"nsamples": DRAWS, "random_state": seed}
                shares = SignTest.sample(-other, -mine, **options).mean(axis=0)
                wins[t, i, j] = shares[2] + shares[1] / 2
                wins[t, j, i] = 1 - wins[t, i, j]
                if (mine != other).any():
                    behind, ahead = SignedRankTest.probs(-other, -mine, **options)
                    better[t, i, j], better[t, j, i] = ahead >= 0.95, behind >= 0.95
    return Answer(wins.mean(axis=2).argmax(axis=1), wins=wins, better=better, meaning="signed ranks")
