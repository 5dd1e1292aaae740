"""Figures of classical comparisons: differences over instances, whether they are normal, and powers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.checks import as_vector
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.extras import require
from polarbear_plugins.plots.style import BLUE, GREY, ORANGE, new_axes, save_figure
from polarbear_plugins.plots.texts import label_x, label_y

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from polarbear_plugins.planning.paired_tests import Comparison

_HEIGHT = 3.0  # inches of the two figures of a pair


def plot_differences(
    differences: ArrayLike, errors: ArrayLike, comparison: Comparison, *, ax: Axes | None = None
) -> Axes:
    """Difference of two algorithms on each instance, in ascending order, with its standard error.

    The line and the band are the estimate of the comparison over instances and its interval.
    """
    ax = new_axes(ax, "plot_differences", height=_HEIGHT)
    values, widths = as_vector(differences, "differences"), as_vector(errors, "errors")
    if values.shape != widths.shape:
        raise InvalidInputError(f"errors: expected one for each of {values.size} differences, got {widths.size}.")
    order = np.argsort(values, kind="stable")
    ax.axhspan(comparison.low, comparison.high, color=ORANGE, alpha=0.2, linewidth=0)
    ax.axhline(comparison.estimate, color=ORANGE, linewidth=1.2)
    ax.axhline(0.0, color=GREY, linewidth=1)
    places = np.arange(1, values.size + 1)
    ax.errorbar(places, values[order], widths[order], fmt="o", color=BLUE, markersize=3, linewidth=1)
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("instances, by their difference")
    label_y(ax, f"{comparison.other} - {comparison.one}")
    return ax


def plot_normal_quantiles(values: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Quantiles of values against those of a normal distribution with their mean and deviation: a line, if normal."""
    from scipy.special import ndtri

    ax = new_axes(ax, "plot_normal_quantiles", width=3.5, height=_HEIGHT)
    ordered = np.sort(as_vector(values, "values"))
    quantiles = ndtri((np.arange(1, ordered.size + 1) - 0.375) / (ordered.size + 0.25))
    ax.plot(quantiles, ordered.mean() + quantiles * ordered.std(ddof=1), color=GREY, linewidth=1)
    ax.plot(quantiles, ordered, "o", color=BLUE, markersize=3)
    ax.set_xlabel("normal quantiles")
    ax.set_ylabel("difference")
    return ax


def plot_power(effects: ArrayLike, powers: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Power against the effect, as of :func:`polarbear_plugins.planning.power_curve`."""
    ax = new_axes(ax, "plot_power", width=5.0, height=3.2)
    ax.axhline(0.8, color=GREY, linewidth=1)
    ax.plot(as_vector(effects, "effects"), as_vector(powers, "powers"), color=BLUE)
    ax.set_ylim(0.0, 1.0)
    ax.set_xlim(left=0.0)
    label_x(ax, "effect in standard deviations of the differences")
    ax.set_ylabel("power")
    return ax


def save_power(effects: ArrayLike, powers: ArrayLike, path: str | Path) -> Path:
    """Draw a power curve into a file, whose suffix is its format (.png, .pdf, .svg); returns its path."""
    return save_figure(plot_power(effects, powers).figure, Path(path))


def save_differences(pairs: Mapping[Comparison, tuple[ArrayLike, ArrayLike]], path: str | Path) -> Path:
    """Draw the differences of each comparison, given with their standard errors, and their normality into a file.

    The suffix of the file is its format (.png, .pdf, .svg).
    """
    module = require("matplotlib.figure", extra="plots", who="save_differences")
    figure = module.Figure(figsize=(8.0, _HEIGHT * len(pairs)), dpi=110, layout="constrained")
    rows = figure.subplots(len(pairs), 2, squeeze=False, gridspec_kw={"width_ratios": [2, 1]})
    for row, (comparison, (differences, errors)) in zip(rows, pairs.items(), strict=True):
        plot_differences(differences, errors, comparison, ax=row[0])
        plot_normal_quantiles(differences, ax=row[1])
    return save_figure(figure, Path(path))
