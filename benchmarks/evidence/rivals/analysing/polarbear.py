"""Plackett-Luce ratings by this package, under its default prior, each timepoint on its own."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Literal

import numpy as np

from rivals.analysing.answers import Answer, Sample


def analyse(
    sample: Sample,
    seed: int,
    *,
    groups: Literal["auto", "none"] = "auto",
    likelihood: Literal["rankings", "first-places"] = "rankings",
) -> Answer:
    """Predict by the mean over draws; state what ``compare`` finds with a probability of 0.95.

    From first places alone nothing follows for pairs, so that there are no predictions for them.
    """
    from polarbear_plugins import RankingTable, compare, fit
    from polarbear_plugins.errors import PolarBearWarning

    table = RankingTable.from_values(
        sample.values, algorithms=sample.algorithms, timepoints=sample.timepoints, groups=sample.groups
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolarBearWarning)
        posterior = fit(table, seed=seed, groups=groups, likelihood=likelihood)
    ratings = posterior.ratings
    first = ratings.mean(axis=0)
    ends = np.quantile(ratings, (0.025, 0.975), axis=0)
    intervals = {"first": (ends[0], ends[1])}
    wins = None
    if likelihood == "rankings":
        logs = posterior.log_ratings
        against = 1 / (1 + np.exp(logs[:, :, None, :] - logs[:, :, :, None]))
        wins, ends = against.mean(axis=0), np.quantile(against, (0.025, 0.975), axis=0)
        intervals["wins"] = ends[0], ends[1]
    return Answer(
        picks=first.argmax(axis=1),
        wins=wins,
        first=first,
        better=compare(posterior).p_better >= 0.95,
        meaning="first places",
        intervals=intervals,
        alarm=posterior.check is not None and not posterior.check.fits,
    )


def checked(sample: Sample, seed: int) -> Answer:
    """As the commands do: where the check of the model fails, ratings and statements are those of first places.

    Predictions for pairs stay those of the model, since first places say nothing about them.
    """
    by_model = analyse(sample, seed)
    if not by_model.alarm:
        return by_model
    robust = first_places(sample, seed)
    return replace(robust, wins=by_model.wins, intervals=by_model.intervals | robust.intervals, alarm=True)


def without_groups(sample: Sample, seed: int) -> Answer:
    """As if the instances belonged to no groups."""
    return analyse(sample, seed, groups="none")


def first_places(sample: Sample, seed: int) -> Answer:
    """From who was first alone, which needs no Plackett-Luce model."""
    return analyse(sample, seed, likelihood="first-places")
