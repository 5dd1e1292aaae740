"""Figures over time: ratings, the probability of being best, and the check of the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.extras import require
from polarbear_plugins.plots.look import look
from polarbear_plugins.plots.style import (
    DASHES,
    GREY,
    as_colours,
    edges,
    hatch,
    known_names,
    line_look,
    line_style,
    log_spaced,
    marker,
    new_axes,
    show_time,
    time_text,
)
from polarbear_plugins.plots.texts import label_y, legend, set_title
from polarbear_plugins.posterior.model_check import ModelCheck
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.selection.choice import as_candidates
from polarbear_plugins.selection.preferences import probability_best

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 15  # observed shares that are drawn; more hide each other
_ASIDE = 14.0  # points over which those of one timepoint are spread
_ROOM = 0.03  # of the axis


def plot_ratings(
    posterior: Posterior,
    *,
    ax: Axes | None = None,
    algorithms: Iterable[str] | None = None,
    eliminated: Iterable[str] = (),
    level: float = 0.9,
    colour: Mapping[str, str] | None = None,
) -> Axes:
    """Draw the ratings over time: posterior means, with credible bands.

    Parameters
    ----------
    ax
        Axes to draw into; by default those of a new figure.  The legend is to the right of the axes, so a figure with
        several needs ``layout="constrained"``.
    algorithms
        Algorithms to draw; by default all.
    eliminated
        Algorithms to draw in grey and without a band.
    level
        Probability of the bands.
    colour
        Colour of each algorithm, as of :func:`polarbear_plugins.plots.colours`.
    """
    names = posterior.algorithms if algorithms is None else known_names(algorithms, posterior.algorithms, "algorithms")
    if not names:
        raise InvalidInputError("algorithms: expected at least one, got none.")
    out = known_names(eliminated, posterior.algorithms, "eliminated")
    level = as_number(level, "level", above=0, below=1)
    ax = new_axes(ax, "plot_ratings")
    tones = as_colours(colour, posterior.algorithms)
    columns = [posterior.algorithms.index(name) for name in names]
    ratings = np.exp(posterior.log_ratings[:, :, columns])
    bands = np.stack([ratings.mean(axis=0), *np.quantile(ratings, [(1 - level) / 2, (1 + level) / 2], axis=0)])
    # A gap where an algorithm was never observed.
    mean, low, high = np.where(posterior.observed[:, columns], bands, np.nan)
    grid = posterior.timepoints
    entries = []
    greys = 0
    for place, name in enumerate(names):
        grey = name in out
        tone = GREY if grey else tones[name]
        shown = line_look(name, tones, grid.size)
        if grey:
            shown = {"color": tone, "linestyle": DASHES[greys % len(DASHES)], "linewidth": look().scaled(1.1)}
        greys += grey
        if grid.size == 1:
            bars = [[mean[0, place] - low[0, place]], [high[0, place] - mean[0, place]]]
            drawn = ax.errorbar(
                [place], mean[0, place], yerr=np.maximum(bars, 0), color=tone, fmt=marker(name, tones), capsize=3
            )
        else:
            (drawn,) = ax.plot(
                grid,
                mean[:, place],
                **shown,
                zorder=2 if grey else 3,
            )
            if not grey:
                ax.fill_between(grid, low[:, place], high[:, place], color=tone, alpha=0.16, linewidth=0, zorder=1)
        entries.append((drawn, f"{name} (eliminated)" if grey else name))
    if grid.size == 1:
        ax.set_xlim(-0.75, len(names) - 0.25)
        ax.set_xticks([(len(names) - 1) / 2], labels=[time_text(grid[0])])
        ax.set_xlabel("time (unit of the timepoints)")
    else:
        show_time(ax, grid)
    ax.set_ylim(bottom=0)
    label_y(ax, "rating (probability of being best)")
    set_title(ax, f"Ratings over time, with {level * 100:g} % credible bands")
    legend(ax, [entry for entry, name in sorted(zip(entries, names, strict=True), key=lambda pair: pair[1] in out)])
    return ax


def plot_timeline(
    posterior: Posterior,
    *,
    among: Iterable[str] | None = None,
    ax: Axes | None = None,
    colour: Mapping[str, str] | None = None,
) -> Axes:
    """Draw the probability of each algorithm of having the highest rating at each timepoint, stacked.

    Parameters
    ----------
    among
        Algorithms to compare; by default all.  After a race, pass its Pareto set.
    ax, colour
        As in :func:`plot_ratings`.
    """
    names = as_candidates(posterior, among)
    ax = new_axes(ax, "plot_timeline", height=3.2)
    tones = as_colours(colour, posterior.algorithms)
    grid = posterior.timepoints
    logs = posterior.log_ratings[:, :, [posterior.algorithms.index(name) for name in names]]
    best = np.stack([probability_best(logs[:, place]) for place in range(grid.size)])
    best /= best.sum(axis=1, keepdims=True)  # exactly equal ratings share
    top = np.cumsum(best, axis=1)
    x = grid
    if grid.size == 1:
        x, best, top = edges(grid), np.repeat(best, 2, axis=0), np.repeat(top, 2, axis=0)
    patch = require("matplotlib.patches", extra="plots", who="plot_timeline").Patch
    entries = []
    for place, name in enumerate(names):
        area = {"facecolor": tones[name], "hatch": hatch(name, tones), "edgecolor": "white", "linewidth": 0.6}
        ax.fill_between(x, top[:, place] - best[:, place], top[:, place], **area)
        entries.append((patch(**area), name))
    show_time(ax, grid, ends=(float(x[0]), float(x[-1])))
    if grid.size == 1:
        ax.set_xticks([grid[0]], labels=[time_text(grid[0])])
    ax.set_ylim(0, 1)
    label_y(ax, "probability of being best")
    set_title(ax, "Which algorithm is best when")
    legend(ax, reversed(entries))  # in the order in which they are stacked
    return ax


def plot_model_check(
    check: ModelCheck,
    *,
    ax: Axes | None = None,
    algorithms: Iterable[str] | None = None,
    colour: Mapping[str, str] | None = None,
) -> Axes:
    """Draw the share of first places of each algorithm over time: points as observed, lines by the model.

    Parameters
    ----------
    check
        Check of the model, ``result.check`` or ``posterior.check``.
    algorithms
        Algorithms to draw; by default all.
    ax, colour
        As in :func:`plot_ratings`.
    """
    if not isinstance(check, ModelCheck):
        raise InvalidInputError(f"plot_model_check: expected the check of a model, got {short(check)}.")
    names = check.algorithms if algorithms is None else known_names(algorithms, check.algorithms, "algorithms")
    if not names:
        raise InvalidInputError("algorithms: expected at least one, got none.")
    ax = new_axes(ax, "plot_model_check")
    tones = as_colours(colour, check.algorithms)
    grid = check.timepoints
    moved = require("matplotlib.transforms", extra="plots", who="plot_model_check").ScaledTranslation
    some = np.unique(np.linspace(0, grid.size - 1, min(grid.size, _POINTS)).round().astype(int))
    entries = []
    for place, name in enumerate(names):
        column = check.algorithms.index(name)
        observed, modelled = check.observed[:, column], check.modelled[:, column]
        line: dict[str, Any] = {"color": tones[name], "linestyle": line_style(name, tones)}
        line["linewidth"] = look().scaled(1.6)
        points: dict[str, Any] = {"color": tones[name], "linestyle": "", "marker": marker(name, tones)}
        points |= {"zorder": 3, "markersize": look().scaled(5)}
        if grid.size == 1:
            ax.plot([place - 0.3, place + 0.3], [modelled[0]] * 2, **line)
            ax.plot([place], observed, **points)
        else:
            ax.plot(grid, modelled, **line)
            # Moved aside a little, so that equal shares do not hide each other.
            aside = moved((place - (len(names) - 1) / 2) * _ASIDE / len(names) / 72, 0, ax.figure.dpi_scale_trans)
            points |= {"transform": ax.transData + aside, "clip_on": False}
            ax.plot(grid[some], observed[some], **points)
        entries.append((_line_and_point(line, points), name))
    if grid.size == 1:
        ax.set_xlim(-0.75, len(names) - 0.25)
        ax.set_xticks([(len(names) - 1) / 2], labels=[time_text(grid[0])])
        ax.set_xlabel("time (unit of the timepoints)")
    else:
        show_time(ax, grid, ends=_with_room(grid))
    columns = [check.algorithms.index(name) for name in names]
    shares = np.concatenate((check.observed[:, columns], check.modelled[:, columns]))
    ax.set_ylim(0, 1.05 * max(0.01, float(np.nanmax(shares, initial=0.0))))  # points moved aside do not scale the axis
    label_y(ax, "share of first places")
    set_title(ax, "First places: observed (points), by the model (lines)")
    legend(ax, entries)
    return ax


def _line_and_point(line: Mapping[str, Any], points: Mapping[str, Any]) -> Any:
    """Entry of a legend for both."""
    made = require("matplotlib.lines", extra="plots", who="A figure").Line2D
    return made([0], [0], **{**line, "marker": points["marker"]})


def _with_room(grid: FloatArray) -> tuple[float, float]:
    """Ends of a time axis with some room for points beside the first and the last timepoint."""
    scale, back = (np.log, np.exp) if log_spaced(grid) else (np.asarray, np.asarray)
    first, last = scale(grid[[0, -1]])
    room = _ROOM * (last - first)
    return float(back(first - room)), float(back(last + room))
