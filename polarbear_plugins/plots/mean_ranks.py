"""Figures of mean ranks: curves over time, and the diagram of critical differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.measures.friedman import FriedmanTest
from polarbear_plugins.plots.look import look
from polarbear_plugins.plots.style import as_colours, line_look, marker, new_axes, show_time, time_text
from polarbear_plugins.plots.texts import break_lines, label_x, label_y, legend, set_title
from polarbear_plugins.rankings.summaries import MeanCurves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAR = 0.16  # between the bars of algorithms that are not told apart
_ROW = 0.34  # between the names below the axis


def plot_mean_curves(
    curves: MeanCurves,
    *,
    label: str = "mean rank",
    title: str | None = None,
    ax: Axes | None = None,
    colour: Mapping[str, str] | None = None,
) -> Axes:
    """Draw means over instances against time, with a band of one standard error on each side.

    Parameters
    ----------
    curves
        From :func:`polarbear_plugins.rankings.mean_ranks` or :func:`polarbear_plugins.rankings.mean_regret`.
    label, title
        What the means are of, and a title of your own.
    ax, colour
        As in :func:`polarbear_plugins.plots.plot_ratings`.
    """
    if not isinstance(curves, MeanCurves):
        raise InvalidInputError(
            f"plot_mean_curves: expected what mean_ranks or mean_regret return, got {short(curves)}."
        )
    ax = new_axes(ax, "plot_mean_curves")
    tones = as_colours(colour, curves.algorithms)
    grid, entries = curves.timepoints, []
    for place, name in enumerate(curves.algorithms):
        mean, error = curves.mean[:, place], np.nan_to_num(curves.standard_error[:, place])
        shown = line_look(name, tones, grid.size)
        if grid.size == 1:
            shown |= {"marker": marker(name, tones)}
        (line,) = ax.plot(grid, mean, **shown, zorder=3)
        ax.fill_between(grid, mean - error, mean + error, color=tones[name], alpha=0.16, linewidth=0)
        entries.append((line, name))
    show_time(ax, grid)
    label_y(ax, label)
    if title is None:
        fewest, most = int(curves.count.min()), int(curves.count.max())
        count = f"{most}" if fewest == most else f"{fewest} to {most}"
        title = f"{label[:1].upper()}{label[1:]} on {count} {curves.unit}, with one standard error"
    set_title(ax, title)
    legend(ax, entries)
    return ax


def plot_critical_differences(test: FriedmanTest, *, ax: Axes | None = None) -> Axes:
    """Draw mean ranks on a line, the best on the left, with a bar over those that are not told apart.

    Parameters
    ----------
    test
        From :func:`polarbear_plugins.measures.friedman_test`.
    ax
        As in :func:`polarbear_plugins.plots.plot_ratings`.
    """
    if not isinstance(test, FriedmanTest):
        raise InvalidInputError(f"plot_critical_differences: expected what friedman_test returns, got {short(test)}.")
    size = len(test.algorithms)
    joined = [group for group in test.groups() if len(group) > 1]
    left = (size + 1) // 2
    depth = _BAR * (len(joined) + 1) + _ROW * left
    longer = [max(test.algorithms[row], test.algorithms[-1 - row], key=len) for row in range(left)]
    frame = 1.3 + 0.62 * _BAR * (len(joined) + 1)
    ax = new_axes(ax, "plot_critical_differences", height=frame, rows=longer, row=0.62 * _ROW)
    where = dict(zip(test.algorithms, test.mean_ranks.tolist(), strict=True))
    _draw_scale(ax, size)
    for row, group in enumerate(joined):
        height = -_BAR * (row + 1)
        ends = where[group[0]] - 0.04, where[group[-1]] + 0.04
        ax.plot(ends, [height, height], color="black", linewidth=3.2, solid_capstyle="butt")
    below = -_BAR * (len(joined) + 1)
    for place, name in enumerate(test.algorithms):
        best_side = place < left
        height = below - _ROW * (place if best_side else size - 1 - place) - 0.08
        end = 1 - 0.15 if best_side else size + 0.15
        ax.plot([where[name], where[name], end], [0, height, height], color="black", linewidth=0.8)
        side = "right" if best_side else "left"
        outside = end - 0.06 if best_side else end + 0.06
        ax.text(
            outside,
            height,
            break_lines(name, look().line),
            ha=side,
            va="center",
            fontsize=look().points(8.5),
            parse_math=False,
        )
        inner = "left" if best_side else "right"
        ax.text(
            end,
            height + 0.02,
            f"{where[name]:.2f}",
            ha=inner,
            va="bottom",
            fontsize=look().points(7.5),
            color="#505050",
        )
    _draw_difference(ax, test)
    ax.set_ylim(-depth - 0.15, 0.75)
    ax.spines[:].set_visible(False)
    ax.set_xticks([])
    ax.set_yticks([])
    told = "mean rank, 1 is best; a bar joins those that are not told apart"
    label_x(ax, told, fontsize=look().points(8.5))
    set_title(ax, _title(test))
    return ax


def _draw_scale(ax: Axes, size: int) -> None:
    ax.plot([1, size], [0, 0], color="black", linewidth=1)
    for rank in range(1, size + 1):
        ax.plot([rank, rank], [0, 0.07], color="black", linewidth=1)
        ax.text(rank, 0.11, str(rank), ha="center", va="bottom", fontsize=look().points(8))


def _draw_difference(ax: Axes, test: FriedmanTest) -> None:
    """The critical difference as a length, unless nothing is told apart anyway."""
    if not test.rejects:
        return
    end = 1 + test.critical_difference
    ax.plot([1, end], [0.48, 0.48], color="black", linewidth=1.2, marker="|")
    ax.text(
        (1 + end) / 2, 0.53, f"CD {test.critical_difference:.2f}", ha="center", va="bottom", fontsize=look().points(8)
    )


def _title(test: FriedmanTest) -> str:
    found = "" if test.rejects else ": no differences shown"
    return f"Mean ranks at time {time_text(test.timepoint)}, {test.count} {test.unit}\nFriedman {test.p_text}{found}"
