"""Elo ratings of a tournament, by IOHinspector, which takes a data frame of results."""

from __future__ import annotations

import numpy as np

from rivals.analysing.answers import Answer, Sample

# Everybody plays everybody else twice on each instance in a round.  Ratings forget a game after some 40 further ones,
# so that more rounds than these cost time and change nothing but chance.
_INSTANCES_PLAYED = 30


def analyse(sample: Sample, seed: int) -> Answer:
    """Predict wins by the logistic formula, and winners by ratings as Bradley-Terry strengths.

    Its deviations tell how much a rating moved in the last games, not how well it is known; it makes no statements.
    Its games come in an order from numpy's global generator, which is seeded for that reason.  skelo, which computes
    them, counts a tie as a win of the first player and sorts games by player, so that ties favour whoever is listed
    last.
    """
    import polars as pl
    from iohinspector.metrics import get_tournament_ratings

    rounds = max(1, _INSTANCES_PLAYED // len(sample.values))
    logs = np.empty(sample.values.shape[1:])
    names = np.array(sample.algorithms)
    for t in range(len(sample.timepoints)):
        instances = np.repeat(np.arange(len(sample.values)), len(names)).astype(str)
        results = {"algorithm_name": np.tile(names, len(sample.values)), "function_name": instances}
        frame = pl.DataFrame(results | {"raw_y": sample.values[:, t].ravel()})
        np.random.seed(seed % 2**32)
        found = get_tournament_ratings(frame, nrounds=rounds).set_index("algorithm_name")["Rating"]
        logs[t] = found.loc[list(names)].to_numpy(dtype=float) * np.log(10) / 400
    wins = 1 / (1 + np.exp(logs[:, None, :] - logs[:, :, None]))
    first = np.exp(logs - logs.max(axis=1, keepdims=True))
    return Answer(logs.argmax(axis=1), wins=wins, first=first / first.sum(axis=1, keepdims=True))
