"""Glicko-2 ratings with their deviations, by the package glicko2; an instance is a rating period."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from rivals.analysing.answers import Answer, Sample

_LOG = np.log(10) / 400  # of a point of rating


def analyse(sample: Sample, seed: int) -> Answer:  # noqa: ARG001
    """Predict wins by Glicko's formula, which shrinks by both deviations, and winners by Bradley-Terry strengths.

    On an instance everybody plays everybody else once, and all ratings change at its end.  It states that one is better
    if its normal rating is higher with a probability of 0.95: what its deviations say, not a statement of its own.
    """
    from glicko2 import Player

    count, n = len(sample.timepoints), len(sample.algorithms)
    ratings, deviations = np.zeros((count, n)), np.zeros((count, n))
    for t in range(count):
        players = [Player() for _ in range(n)]
        for places in sample.ranks[:, t]:
            before = [(player.getRating(), player.getRd()) for player in players]
            for i, player in enumerate(players):
                others = [j for j in range(n) if j != i]
                outcomes = [float(0.5 + np.sign(places[j] - places[i]) / 2) for j in others]
                player.update_player([before[j][0] for j in others], [before[j][1] for j in others], outcomes)
        ratings[t], deviations[t] = [player.getRating() for player in players], [player.getRd() for player in players]
    spread = np.hypot(deviations[:, :, None], deviations[:, None, :])
    ahead = ratings[:, :, None] - ratings[:, None, :]
    shrunken = _LOG * ahead / np.sqrt(1 + 3 * (_LOG * spread / np.pi) ** 2)
    strengths = np.exp(_LOG * (ratings - ratings.max(axis=1, keepdims=True)))
    return Answer(
        ratings.argmax(axis=1),
        wins=1 / (1 + np.exp(-shrunken)),
        first=strengths / strengths.sum(axis=1, keepdims=True),
        better=norm.cdf(ahead / spread) >= 0.95,
    )
