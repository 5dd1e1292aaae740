"""Figures of leaderboards: random search's curve, scores by the kind of instance, rank intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.extras import require
from polarbear_plugins.measures.audit import Audit
from polarbear_plugins.measures.random_baseline import RandomBaseline
from polarbear_plugins.measures.score_parts import Part
from polarbear_plugins.measures.scores import Scores
from polarbear_plugins.plots.style import BLUE, GREY, as_colours, known_names, line_style, marker, new_axes
from polarbear_plugins.plots.texts import label_rows, label_x, legend, set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_POINTS = 300  # of random search's curve
_WIDTH = 0.8  # of the algorithms of a part, together
_DARK = "#404040"


def plot_random_search(
    scores: Scores,
    *,
    algorithms: Iterable[str] | None = None,
    zoom: bool = False,
    ax: Axes | None = None,
    colour: Mapping[str, str] | None = None,
) -> Axes:
    """Draw the expected score of random search by its number of evaluations, and where algorithms score as well.

    The curve is an unbiased estimate from all random evaluations, pooled, and ends with them; the score of an
    algorithm that it does not reach is drawn to its end, with an arrow.  The dotted line is the number of evaluations
    that the algorithms had.

    Parameters
    ----------
    scores
        By the visible values.
    algorithms
        Which to draw; all by default.
    zoom
        Only the part of the curve at which algorithms score.
    ax, colour
        As in :func:`polarbear_plugins.plots.plot_ratings`.
    """
    names = scores.algorithms if algorithms is None else known_names(algorithms, scores.algorithms, "algorithms")
    worth = dict(zip(scores.algorithms, scores.equivalents, strict=True))
    points = dict(zip(scores.algorithms, scores.leaderboard.tolist(), strict=True))
    tones = as_colours(colour, scores.algorithms)
    baseline = scores.baseline
    ax = new_axes(ax, "plot_random_search", width=7.4)
    counts, course = _random_course(baseline)
    (line,) = ax.plot(counts, course, color="black", linewidth=1.8, zorder=3)
    entries: list[tuple[Any, str]] = [(line, "random search, expected")]
    ax.axvline(baseline.evaluations, color=GREY, linestyle=":", linewidth=1.2, zorder=1)
    shown = sorted((name for name in names if name not in scores.random), key=lambda name: -points[name])
    for name in shown:
        line = _draw_worth(ax, points[name], worth[name], baseline, name, tones)
        entries.append((line, _worth_text(name, worth[name], baseline)))
    reached = 100.0 * (1.0 - baseline.expected_loss(min(baseline.evaluations, baseline.limit)))
    (dot,) = ax.plot([baseline.evaluations], [reached], marker="o", color="black", linestyle="", zorder=5)
    entries.append((dot, f"random search, {baseline.evaluations:,} evaluations"))
    _show_counts(ax)
    if zoom and shown:
        _zoom(
            ax, [points[name] for name in shown], [worth[name] or baseline.limit for name in shown], baseline, reached
        )
    else:
        ax.set_xlim(1, baseline.limit * 1.15)
    ax.set_xlabel("evaluations of random search")
    ax.set_ylabel("score")
    set_title(ax, "How many random evaluations score as well")
    legend(ax, entries)
    return ax


def _show_counts(ax: Axes) -> None:
    """Logarithmic axis, labelled with plain numbers."""
    ticks = require("matplotlib.ticker", extra="plots", who="plot_random_search")
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(ticks.LogLocator(subs=(1, 2, 5), numticks=9))
    ax.xaxis.set_major_formatter(ticks.StrMethodFormatter("{x:,.0f}"))
    ax.xaxis.set_minor_formatter(ticks.NullFormatter())


def _random_course(baseline: RandomBaseline) -> tuple[FloatArray, FloatArray]:
    """Numbers of random evaluations, and their expected score."""
    counts = np.unique(np.geomspace(1, baseline.limit, _POINTS).round().astype(int))
    return counts.astype(float), np.array([100.0 * (1.0 - baseline.expected_loss(int(count))) for count in counts])


def _draw_worth(
    ax: Axes, score: float, worth: int | None, baseline: RandomBaseline, name: str, tones: Mapping[str, str]
) -> Any:
    """A line at the score, from the evaluations made to those of random search that score as well."""
    end = baseline.limit if worth is None else worth
    shown = {"color": tones[name], "linestyle": line_style(name, tones), "linewidth": 1.4}
    (line,) = ax.plot([baseline.evaluations, end], [score, score], zorder=2, **shown)
    sign = ">" if worth is None else marker(name, tones)
    ax.plot([end], [score], marker=sign, color=tones[name], linestyle="", markersize=6, zorder=4)
    return line


def _worth_text(name: str, worth: int | None, baseline: RandomBaseline) -> str:
    factor = (baseline.limit if worth is None else worth) / baseline.evaluations
    return f"{name} ({'>' if worth is None else ''}{factor:.3g} times)"


def _zoom(ax: Axes, scores: Sequence[float], ends: Sequence[int], baseline: RandomBaseline, reached: float) -> None:
    low, high = min(*scores, reached), max(*scores, reached)
    room = 0.08 * (high - low) or 1.0
    ax.set_ylim(low - room, high + room)
    ax.set_xlim(min(*ends, baseline.evaluations) / 1.3, max(*ends, baseline.evaluations) * 1.3)


def plot_score_parts(
    parts: Sequence[Part],
    *,
    algorithms: Iterable[str] | None = None,
    ax: Axes | None = None,
    colour: Mapping[str, str] | None = None,
) -> Axes:
    """Draw how the scores of the studies spread on each kind of instance.

    A vertical line from the 25th to the 75th percentile, a thick horizontal line at the median, a dot at the mean,
    which is the score.

    Parameters
    ----------
    parts
        From :func:`polarbear_plugins.measures.split_scores`.
    algorithms
        Which to draw; all by default.
    ax, colour
        As in :func:`polarbear_plugins.plots.plot_ratings`.
    """
    if not parts:
        raise InvalidInputError("parts: expected at least one.")
    known = [each.algorithm for each in parts[0].scores]
    names = known if algorithms is None else list(known_names(algorithms, known, "algorithms"))
    tones = as_colours(colour, known)
    step = _WIDTH / len(names)
    ax = new_axes(ax, "plot_score_parts", width=max(6.4, 2.4 + len(parts) * (0.5 + 0.16 * len(names))))
    entries = []
    for place, name in enumerate(names):
        for x, part in enumerate(parts):
            found = part.scores[known.index(name)]
            at = x - _WIDTH / 2 + (place + 0.5) * step
            low, median, high = found.quartiles
            line: dict[str, Any] = {"color": tones[name], "solid_capstyle": "butt"}
            ax.plot([at, at], [low, high], linewidth=1.6, **line)
            ax.plot([at - 0.4 * step, at + 0.4 * step], [median, median], linewidth=3.2, **line)
            (dot,) = ax.plot(
                [at], [found.score], marker=marker(name, tones), color="white", markeredgecolor=tones[name], zorder=4
            )
        entries.append((dot, name))
    ax.set_xticks(
        range(len(parts)), labels=[f"{part.name}\n(n={len(part.instances)})" for part in parts], parse_math=False
    )
    ax.set_xlim(-0.5, len(parts) - 0.5)
    for border in range(1, len(parts)):
        ax.axvline(border - 0.5, color="#E4E4E4", linewidth=0.8, zorder=0)
    ax.set_ylabel("score")
    label_x(ax, "kind of instance (n: how many)")
    set_title(ax, "Scores of the studies: quartiles (line), median (bar), mean (marker)")
    legend(ax, entries)
    return ax


def plot_rank_intervals(audit: Audit, *, ax: Axes | None = None) -> Axes:
    """Draw the place and the rank interval of each algorithm, best on top, and the tie groups as bars on the right.

    All intervals hold together with the level of the audit.  No two algorithms of a bar are told apart.
    """
    names = audit.algorithms
    ax = new_axes(ax, "plot_rank_intervals", width=6.4, height=1.2, rows=names, row=0.26)
    for row, (place, (low, high)) in enumerate(zip(audit.places, audit.rank_intervals, strict=True)):
        ax.plot([low, high], [row, row], color=BLUE, linewidth=2.4, solid_capstyle="butt", zorder=2)
        ax.plot([place], [row], marker="o", color="white", markeredgecolor=_DARK, markersize=5, zorder=3)
    for bar, (first, last) in enumerate(audit.tie_groups):
        x = 1.02 + 0.14 * (bar + 0.5) / len(audit.tie_groups)
        ax.plot(
            [x, x],
            [first - 0.25, last + 0.25],
            transform=ax.get_yaxis_transform(),
            color=_DARK,
            linewidth=2.0,
            solid_capstyle="butt",
            clip_on=False,
        )
    label_rows(ax, names)
    ax.set_xlim(0.5, len(names) + 0.5)
    ticks = require("matplotlib.ticker", extra="plots", who="plot_rank_intervals")
    ax.xaxis.set_major_locator(ticks.MaxNLocator(integer=True))
    label_x(ax, f"rank (1 is best); intervals hold together with {audit.level:.0%}")
    set_title(ax, f"{audit.separable} of {len(audit.neighbours)} neighbours can be told apart (bars: tie groups)")
    return ax
