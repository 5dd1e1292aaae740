"""Figures of ``polarbear leaderboard``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from polarbear_plugins.cli.output import save_figures
from polarbear_plugins.measures.audit import Audit
from polarbear_plugins.measures.bootstrap import Bootstrap
from polarbear_plugins.measures.score_parts import Part
from polarbear_plugins.measures.scores import Scores
from polarbear_plugins.plots.comparisons import plot_bootstrap_ranks
from polarbear_plugins.plots.leaderboard import plot_random_search, plot_rank_intervals, plot_score_parts
from polarbear_plugins.plots.style import colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def save_database_figures(
    folder: Path,
    scores: Scores,
    bootstrap: Bootstrap | None,
    parts: Sequence[Part] | None,
    by: str | None,
    audit: Audit | None,
) -> list[Path]:
    """Draw what there is to draw of a Bayesmark database, and return the files."""
    tones = colours(scores.algorithms)
    figures: dict[str, Axes] = {}
    if scores.by_visible:
        figures["random_search"] = plot_random_search(scores, colour=tones)
        figures["random_search_zoom"] = plot_random_search(scores, zoom=True, colour=tones)
    if bootstrap is not None:
        figures["places"] = plot_bootstrap_ranks(bootstrap, colour=tones)
    if parts is not None:
        figures[f"scores_by_{by}"] = plot_score_parts(parts, colour=tones)
    if audit is not None:
        figures["rank_intervals"] = plot_rank_intervals(audit)
    return save_figures(figures, folder)


def save_table_figures(folder: Path, audit: Audit) -> list[Path]:
    """Draw the audit of a table of results, and return the file."""
    return save_figures({"rank_intervals": plot_rank_intervals(audit)}, folder)
