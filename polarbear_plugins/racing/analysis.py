"""Inference in a race, and the analysis of existing data as if it were one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.environment import installed_versions
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.inference.fitting import find_engine, fit, make_prior
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.priors import TemporalPrior
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.rules import decide
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.racing.state import RaceState, start_race
from polarbear_plugins.rankings.table import RankingTable
from polarbear_plugins.seeds import derived_seed

if TYPE_CHECKING:
    pass


def infer(state: RaceState, number: int) -> Posterior:
    """Posterior in round ``number``; depends only on the data, the settings and the number."""
    settings = state.settings
    if settings.seed is None:
        raise InvalidInputError("infer: the settings need a seed.")
    return fit(
        state.table,
        settings.prior,
        settings.engine,
        settings.draws,
        derived_seed(settings.seed, "inference", number),
        settings.dependence,
        engine_options=settings.engine_options,
        **settings.prior_options,
    )


def analyze(
    table: RankingTable, settings: RaceSettings | None = None, about: Mapping[str, Any] | None = None
) -> RaceResult:
    """Result of existing data, treated as a race that has run: posterior, relations, Pareto set, open pairs.

    Examples
    --------
    >>> table = RankingTable.from_values([[[1.0, 2.0]]] * 20, algorithms=["csa", "msr"], timepoints=[10])
    >>> analyze(table, RaceSettings(seed=1)).pareto_set
    ('csa',)
    """
    settings = settings or RaceSettings()
    if settings.seed is None:
        settings = replace(settings, seed=0)
    check_inference(settings)
    empty = start_race(table.algorithms, table.timepoints, settings)
    watched = (~np.isnan(table.values)).sum(axis=1)
    cost = float(np.concatenate(([0.0], table.timepoints))[watched].sum())
    state = replace(empty, table=table, cost=cost)
    posterior = infer(state, 1)
    made_with = {"version": version("polarbear-plugins"), "versions": installed_versions(settings.engine)}
    return RaceResult(
        state=decide(state, posterior), stopped="analyzed", _posterior=posterior, about={**made_with, **(about or {})}
    )


def check_inference(settings: RaceSettings) -> None:
    """Refuse an unknown prior or engine, and joint elimination without a joint posterior, before anything runs."""
    prior = make_prior(settings.prior, settings.prior_options)
    if settings.elimination == "joint" and not isinstance(prior, TemporalPrior):
        raise InvalidInputError(
            f'elimination="joint" needs a joint posterior over time, and prior {prior.name!r} has none. Use a temporal '
            'prior (bspline, hsgp, gp, sparse-gp, random-walk) or elimination="pointwise".'
        )
    find_engine(settings.engine)
