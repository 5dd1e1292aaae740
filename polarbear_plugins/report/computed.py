"""What takes time and is told in several places: computed once for a command or a report, and handed on."""

from __future__ import annotations

from typing import NamedTuple

from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.analysis import analyze_other_scope
from polarbear_plugins.racing.forecast import Forecast
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.verdicts import about_new_groups
from polarbear_plugins.report.words import misfits


class Computed(NamedTuple):
    """The last arguments of :func:`polarbear_plugins.report.words.conclusion`.

    Attributes
    ----------
    forecast
        Forecast of the instances that would settle the open pairs; ``None`` if none are open, if the model, on which
        it would rest, does not fit, and about new groups: how much these differ does not shrink with more instances.
    robust
        Posterior to choose from among the algorithms that are left: that of first places if the model does not fit.
    other_scope
        Analysis about the other scope of groups; ``None`` without groups.
    """

    forecast: Forecast | None = None
    robust: Posterior | None = None
    other_scope: RaceResult | None = None


def compute(result: RaceResult) -> Computed:
    """Simulate, fit and analyze what the words and the report of a result need."""
    if not result.rounds:
        return Computed()
    forecast = None if misfits(result) or about_new_groups(result.posterior) else result.forecast_if_open()
    return Computed(forecast, result.robust_posterior(result.pareto_set), analyze_other_scope(result))
