"""Figures, with the extra ``plots``.  Each function draws into given or new axes and returns them."""

from __future__ import annotations

from polarbear_plugins.plots.attainment import plot_attainment_difference, plot_ecdf
from polarbear_plugins.plots.comparisons import plot_bootstrap_ranks, plot_values, plot_wins
from polarbear_plugins.plots.depths import plot_above, plot_depths
from polarbear_plugins.plots.differences import (
    plot_differences,
    plot_normal_quantiles,
    plot_power,
    save_differences,
    save_power,
)
from polarbear_plugins.plots.hasse import plot_hasse_diagram, save_hasse_diagrams
from polarbear_plugins.plots.leaderboard import plot_random_search, plot_rank_intervals, plot_score_parts
from polarbear_plugins.plots.look import paper_figures
from polarbear_plugins.plots.mean_ranks import plot_critical_differences, plot_mean_curves
from polarbear_plugins.plots.over_time import plot_model_check, plot_ratings, plot_timeline
from polarbear_plugins.plots.ribbon import plot_ribbon
from polarbear_plugins.plots.rounds import plot_allocation, plot_dominance
from polarbear_plugins.plots.style import colours

__all__ = [
    "colours",
    "paper_figures",
    "plot_above",
    "plot_allocation",
    "plot_attainment_difference",
    "plot_bootstrap_ranks",
    "plot_critical_differences",
    "plot_depths",
    "plot_differences",
    "plot_dominance",
    "plot_ecdf",
    "plot_hasse_diagram",
    "plot_mean_curves",
    "plot_model_check",
    "plot_normal_quantiles",
    "plot_power",
    "plot_random_search",
    "plot_rank_intervals",
    "plot_ratings",
    "plot_ribbon",
    "plot_score_parts",
    "plot_timeline",
    "plot_values",
    "plot_wins",
    "save_differences",
    "save_hasse_diagrams",
    "save_power",
]
