"""The analysis of existing data as if they were a race."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np

from polarbear_plugins.environment import installed_versions
from polarbear_plugins.inference.task import Groups
from polarbear_plugins.racing.posteriors import check_inference, infer
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.rules import decide
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.racing.state import start_race
from polarbear_plugins.rankings.table import RankingTable


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
    cost = float(np.concatenate(([0.0], table.timepoints))[watched].sum()) - sum(
        each.added for each in table.early_ends
    )
    state = replace(empty, table=table, cost=cost)
    posterior = infer(state, 1, check=True)
    made_with = {"version": version("polarbear-plugins"), "versions": installed_versions(settings.engine)}
    return RaceResult(
        state=decide(state, posterior), stopped="analyzed", _posterior=posterior, about={**made_with, **(about or {})}
    )


def analyze_other_scope(result: RaceResult) -> RaceResult | None:
    """Analysis of the same data about the other scope: the same groups of instances instead of new ones, or new ones.

    ``None`` if the instances have no groups that count.

    Examples
    --------
    >>> values = np.tile([[[1.0, 2.0]]], (20, 1, 1))
    >>> groups = ["f1", "f2"] * 10
    >>> table = RankingTable.from_values(values, algorithms=["csa", "msr"], timepoints=[10], groups=groups)
    >>> other = analyze_other_scope(analyze(table, RaceSettings(seed=1, groups="same")))
    >>> other.posterior.groups.scope
    'new'
    """
    if not result.rounds or result.posterior.groups is None:
        return None
    other: Groups = "same" if result.posterior.groups.scope == "new" else "new"
    return analyze(result.state.table, replace(result.settings, groups=other), result.about)
