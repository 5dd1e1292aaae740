"""Figures of ``polarbear leaderboard``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from polarbear_plugins.errors import SourceError
from polarbear_plugins.measures.audit import Audit
from polarbear_plugins.measures.bootstrap import Bootstrap
from polarbear_plugins.measures.score_parts import Part
from polarbear_plugins.measures.scores import Scores
from polarbear_plugins.plots.comparisons import plot_bootstrap_ranks
from polarbear_plugins.plots.leaderboard import plot_random_search, plot_rank_intervals, plot_score_parts
from polarbear_plugins.plots.style import colours, save_figure

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
    figures: dict[str, Callable[[], Axes]] = {}
    if scores.by_visible:
        figures["random_search"] = lambda: plot_random_search(scores, colour=tones)
        figures["random_search_zoom"] = lambda: plot_random_search(scores, zoom=True, colour=tones)
    if bootstrap is not None:
        figures["places"] = lambda: plot_bootstrap_ranks(bootstrap, colour=tones)
    if parts is not None:
        figures[f"scores_by_{by}"] = lambda: plot_score_parts(parts, colour=tones)
    if audit is not None:
        figures["rank_intervals"] = lambda: plot_rank_intervals(audit)
    return _save(folder, figures)


def save_table_figures(folder: Path, audit: Audit) -> list[Path]:
    """Draw the audit of a table of results, and return the file."""
    return _save(folder, {"rank_intervals": lambda: plot_rank_intervals(audit)})


def show_saved(out: Console, paths: Sequence[Path]) -> None:
    """Print which files were written."""
    if paths:
        out.print(f"saved {', '.join(map(str, paths))}", soft_wrap=True)


def _save(folder: Path, figures: Mapping[str, Callable[[], Axes]]) -> list[Path]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise SourceError(f"{folder}: the folder cannot be made ({problem.strerror}).") from None
    return [save_figure(draw(), folder / f"{name}.png") for name, draw in figures.items()]
