"""Figures of a suite of partial orders: how often one optimizer is above another, and how deep the orders are."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.extras import require
from polarbear_plugins.partial_orders.order import PartialOrder, names_and_orders
from polarbear_plugins.partial_orders.shared import above_counts
from polarbear_plugins.partial_orders.suite import SuiteDepth
from polarbear_plugins.plots.look import look
from polarbear_plugins.plots.style import BLUE, GREY, ORANGE, new_axes, size_in_points, square_axes
from polarbear_plugins.plots.texts import break_lines, label_columns, label_y, set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STEP = 0.07  # between dots of the same depth
_MOST_NAMES = 3  # beside a dot


def plot_above(orders: Iterable[PartialOrder] | Mapping[str, PartialOrder], *, ax: Axes | None = None) -> Axes:
    """Draw in how many orders the optimizer of each row is above that of each column.

    The optimizer that is most often above others, and least often below, is on top.  Where the two numbers of a pair
    add up to less than the number of orders, the two are incomparable in the others.

    Parameters
    ----------
    ax
        Axes to draw into; by default those of a new figure.  Numbers fit the current size of the axes.
    """
    given = names_and_orders(orders, "plot_above")[1]
    frame = above_counts(given)
    counts = frame.to_numpy()
    order = np.argsort(counts.sum(axis=0) - counts.sum(axis=1), kind="stable")
    names, counts = [str(frame.index[place]) for place in order], counts[np.ix_(order, order)]
    ax = square_axes(ax, "plot_above", names)
    tones = require("matplotlib.colors", extra="plots", who="plot_above").LinearSegmentedColormap
    shown = np.where(np.eye(len(names), dtype=bool), np.nan, counts)
    map_ = tones.from_list("above", ["#FFFFFF", BLUE])
    image = ax.imshow(shown, cmap=map_, vmin=0, vmax=len(given), aspect="auto")
    label_columns(ax, names)
    ax.set_ylabel("above")
    ax.set_xlabel("below")
    label_y(ax.figure.colorbar(image, ax=ax, pad=0.02, shrink=0.9).ax, f"number of the {len(given)} orders")
    set_title(ax, f"How often one is above another in {len(given)} orders")
    _write_counts(ax, counts, len(given))
    return ax


def plot_depths(found: SuiteDepth, *, ax: Axes | None = None) -> Axes:
    """Draw the depths of a suite as a boxplot, with a dot for each test function.

    The most central and the most outlying functions are named, unless all depths are equal.  Dots of equal depth are
    stacked; lines are two standard errors to each side, if sets were sampled.

    Parameters
    ----------
    ax
        Axes to draw into; by default those of a new figure.
    """
    if not isinstance(found, SuiteDepth):
        raise InvalidInputError(f"plot_depths: expected a SuiteDepth, as of measure_depth, got {short(found)}.")
    ax = new_axes(ax, "plot_depths", width=6.4, height=2.8)
    dark = {"color": "#404040"}
    ax.boxplot(
        found.depths,
        orientation="horizontal",
        positions=[0],
        widths=0.5,
        showfliers=False,
        boxprops=dark,
        medianprops={"color": "#404040", "linewidth": 2},
        manage_ticks=False,
    )
    height = 0.4 + _stacked(found.depths)
    ends = [(found.central(), BLUE), (found.outlying(), ORANGE)]
    tones = {name: tone for names, tone in ends for name in names}
    colour = [tones.get(name, GREY) for name in found.functions]
    ax.errorbar(found.depths, height, xerr=2 * found.errors, fmt="none", ecolor=GREY, linewidth=0.8, zorder=2)
    ax.scatter(found.depths, height, color=colour, edgecolor="#404040", linewidth=0.5, s=28, zorder=3)
    for (names, tone), side in zip(ends, ("right", "left"), strict=True):
        _name(ax, found, names, tone, height, side)
    ax.set_yticks([])
    ax.set_ylim(-0.5, max(1.3, float(height.max()) + 0.6))
    ax.set_xlabel("depth")
    ax.margins(x=0.12)
    spread = found.dispersion()["standard_deviation"]
    title = f"Depths of {len(found.functions)} orders, standard deviation {spread:.3f}"
    set_title(ax, title if tones else f"{title}; none is more central than another")
    return ax


def _stacked(depths: FloatArray) -> FloatArray:
    """Heights of dots, so that those of equal depth are above each other."""
    _, group = np.unique(depths.round(12), return_inverse=True)
    group = group.reshape(-1)
    return np.array([_STEP * np.count_nonzero(group[:place] == own) for place, own in enumerate(group)])


def _name(ax: Axes, found: SuiteDepth, names: list[str], tone: str, height: FloatArray, side: str) -> None:
    """Name the functions at one end above the highest of their dots, towards the middle of the figure."""
    if not names:
        return
    places = [found.functions.index(name) for name in names]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    text = break_lines(", ".join(names[:_MOST_NAMES]) + more, 26)
    at = float(found.depths[places].mean()), float(height[places].max()) + 0.12
    ax.text(*at, text, ha=side, va="bottom", fontsize=look().points(8), color=tone, parse_math=False)


def _write_counts(ax: Axes, counts: FloatArray, most: int) -> None:
    """Write numbers into the cells, as large as they fit; none if they would be too small to read."""
    width, height = size_in_points(ax)
    cell = min(width / (0.8 * len(str(most)) + 0.4), height / 1.4) / len(counts)
    if cell < look().smallest:
        return
    for i, j in itertools.permutations(range(len(counts)), 2):
        colour = "white" if counts[i, j] > 0.65 * most else "black"
        ax.text(j, i, f"{counts[i, j]:d}", ha="center", va="center", fontsize=min(cell, 7.5), color=colour)
