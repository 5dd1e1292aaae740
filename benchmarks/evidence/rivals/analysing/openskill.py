"""Ratings with uncertainties that are updated after each instance, by openskill's Plackett-Luce model."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from rivals.analysing.answers import Answer, Sample


def analyse(sample: Sample, seed: int) -> Answer:  # noqa: ARG001
    """Predict by ``predict_win``; state that one is better if its normal rating is higher with a probability of 0.95.

    The statement is not openskill's own, but what its means and standard deviations say.
    """
    from openskill.models import PlackettLuce

    model, ranks = PlackettLuce(), sample.ranks
    count, n = len(sample.timepoints), len(sample.algorithms)
    wins, first, means, better = np.full((count, n, n), 0.5), np.zeros((count, n)), np.zeros((count, n)), []
    for t in range(count):
        teams = [[model.rating()] for _ in range(n)]
        for places in ranks[:, t].tolist():
            teams = model.rate(teams, ranks=places)
        first[t] = model.predict_win(teams)
        for i in range(n):
            for j in range(i):
                wins[t, i, j], wins[t, j, i] = model.predict_win([teams[i], teams[j]])
        means[t], deviations = np.array([(player.mu, player.sigma) for (player,) in teams]).T
        spread = np.sqrt(deviations[:, None] ** 2 + deviations**2)
        better.append(norm.cdf((means[t, :, None] - means[t]) / spread) >= 0.95)
    return Answer(means.argmax(axis=1), wins=wins, first=first, better=np.array(better))
