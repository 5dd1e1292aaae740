"""Figures that compare algorithms: values under a preference, wins, places."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.arrays import BoolArray, FloatArray
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.measures.bootstrap import Bootstrap
from polarbear_plugins.plots.look import look
from polarbear_plugins.plots.style import as_colours, hatch, new_axes, shades, size_in_points, square_axes, time_text
from polarbear_plugins.plots.texts import label_columns, label_rows, label_y, set_title
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.selection.choice import select
from polarbear_plugins.selection.preferences import PreferenceLike, probability_best
from polarbear_plugins.trajectories.timepoints import timepoint_index

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_POINTS = 200  # of a density
_SURE = 0.95
_LEVEL = 0.9


def plot_values(
    posterior: Posterior,
    *,
    preference: PreferenceLike = "uniform",
    among: Iterable[str] | None = None,
    ax: Axes | None = None,
    colour: Mapping[str, str] | None = None,
) -> Axes:
    """Draw the posterior of the value of each algorithm under a preference over time, the highest mean on top.

    The dot is the mean, the line below is the 90 % interval; on the right is the probability of having the highest
    value.

    Parameters
    ----------
    preference, among
        As in :func:`polarbear_plugins.select`.
    ax, colour
        As in :func:`polarbear_plugins.plots.plot_ratings`.
    """
    choice = select(posterior, among, preference)
    tones = as_colours(colour, posterior.algorithms)
    order = np.argsort(-choice.values.mean(axis=0), kind="stable")
    names = [choice.candidates[place] for place in order]
    values = choice.values[:, order]
    best = probability_best(values)
    ax = new_axes(ax, "plot_values", width=6.4, height=1.2, rows=names, row=0.42)
    low, high = np.quantile(values, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
    beside: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "center", "color": "#404040"}
    beside["fontsize"] = look().points(8)
    for row, name in enumerate(names):
        ax.axhline(row + 0.28, color="#E4E4E4", linewidth=0.8, zorder=0)
        x, height = _density(values[:, row])
        base = row + 0.28
        ax.fill_between(
            x,
            base,
            base - 0.72 * height,
            facecolor=tones[name],
            alpha=0.55,
            hatch=hatch(name, tones),
            edgecolor=tones[name],
            linewidth=1.0,
            zorder=2,
        )
        ax.plot([low[row], high[row]], [base, base], color=tones[name], linewidth=3, solid_capstyle="butt", zorder=3)
        mean = values[:, row].mean()
        ax.plot([mean], [base], marker="o", color="white", markeredgecolor=tones[name], markersize=5, zorder=4)
        sure = _share_text(float(best[row]))
        sure = sure.removeprefix("= ") if look().paper else f"P(best) {sure}"
        ax.text(1.02, row, sure, **beside)
    if look().paper:  # once, above the numbers
        ax.text(1.02, -0.62, "P(best)", **{**beside, "va": "bottom", "ha": "center"})
    label_rows(ax, names)
    ax.set_xlabel("value (rating under the preference)")
    set_title(ax, f"Values under the preference {choice.preference}")
    return ax


def plot_wins(posterior: Posterior, *, timepoint: float | None = None, ax: Axes | None = None) -> Axes:
    """Draw the probability that the algorithm of each row beats that of each column at a timepoint.

    Numbers are posterior means of the probability of a win; they are bold where the posterior probability of which one
    wins more often is at least 0.95.  The highest rating is on top.

    Parameters
    ----------
    timepoint
        The last timepoint up to this one is shown; by default the last of all.
    ax
        As in :func:`polarbear_plugins.plots.plot_ratings`.  Numbers fit the current size of the axes: in a figure
        with several, draw this one last.
    """
    place = timepoint_index(posterior.timepoints, timepoint)
    logs = posterior.log_ratings[:, place]
    order = np.argsort(-np.exp(logs).mean(axis=0), kind="stable")
    names, logs = [posterior.algorithms[column] for column in order], logs[:, order]
    ax = square_axes(ax, "plot_wins", names)
    wins, sure = _wins(logs)
    shown = np.where(np.eye(len(names), dtype=bool), np.nan, wins)
    image = ax.imshow(shown, cmap=shades(), vmin=0, vmax=1, aspect="auto")
    label_columns(ax, names)
    ax.set_ylabel("winner")
    ax.set_xlabel("loser")
    set_title(ax, f"Probabilities of a win at time {time_text(posterior.timepoints[place])}")
    if not look().paper:  # where the numbers alone say it, if they can be read
        _add_bar(ax, image)
    if not _write_numbers(ax, wins, sure) and look().paper:
        _add_bar(ax, image)
    return ax


def plot_bootstrap_ranks(
    bootstrap: Bootstrap, *, ax: Axes | None = None, colour: Mapping[str, str] | None = None
) -> Axes:
    """Draw the share of the resamples in which each algorithm has each place, the best mean rank on top.

    Parameters
    ----------
    ax, colour
        As in :func:`polarbear_plugins.plots.plot_ratings`.
    """
    if not isinstance(bootstrap, Bootstrap):
        raise InvalidInputError(f"plot_bootstrap_ranks: expected a Bootstrap, got {short(bootstrap)}.")
    tones = as_colours(colour, bootstrap.algorithms)
    order = np.argsort(bootstrap.ranks.mean(axis=0), kind="stable")
    names = [bootstrap.algorithms[place] for place in order]
    shares = bootstrap.places[order]
    ax = new_axes(ax, "plot_bootstrap_ranks", width=6.4, height=1.2, rows=names, row=0.42)
    places = np.arange(1, len(names) + 1)
    for row, name in enumerate(names):
        base = row + 0.45
        ax.axhline(base, color="#E4E4E4", linewidth=0.8, zorder=0)
        bar = {"facecolor": tones[name], "hatch": hatch(name, tones), "edgecolor": "white", "linewidth": 0.5}
        ax.bar(places, -0.85 * shares[row] / shares.max(), width=0.84, bottom=base, zorder=2, **bar)
    label_rows(ax, names)
    step = -(-len(names) // 20)
    ax.set_xticks(places[::step])
    ax.set_xlim(0.4, len(names) + 0.6)
    ax.set_xlabel("place (1 is best)")
    set_title(ax, f"Places in {len(bootstrap.ranks):,} resamples (the highest bar: {shares.max() * 100:.0f} %)")
    return ax


def _share_text(p: float) -> str:
    """Text of a probability, which is never written as 0 or 1."""
    return "< 0.01" if p < 0.005 else "> 0.99" if p > 0.995 else f"= {p:.2f}"


def _density(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points of a density and its height there, 1 at the mode; a vertical line if all values are equal."""
    from scipy.stats import gaussian_kde

    spread = float(values.std())
    if spread < 1e-9:
        return np.full(2, values.mean()), np.array([0.0, 1.0])
    ends = np.quantile(values, [0.001, 0.999])
    # Ratings lie between 0 and 1, but values of a user's function need not.
    x = np.linspace(ends[0] - spread / 2, ends[1] + spread / 2, _POINTS)
    height: FloatArray = gaussian_kde(values)(x)
    return x, height / height.max()


def _wins(log_ratings: FloatArray) -> tuple[FloatArray, BoolArray]:
    """``wins[i, j]``, the mean probability that i beats j, and whether it is sure which one wins more often."""
    n = log_ratings.shape[1]
    wins, sure = np.full((n, n), 0.5), np.zeros((n, n), dtype=bool)
    for i in range(n):
        difference = log_ratings[:, i : i + 1] - log_ratings
        wins[i] = (0.5 * (1 + np.tanh(difference / 2))).mean(axis=0)
        ahead = (difference > 0).mean(axis=0)
        sure[i] = (ahead >= _SURE) | (ahead <= 1 - _SURE)
    return wins, sure


def _add_bar(ax: Axes, image: Any) -> None:
    label_y(ax.figure.colorbar(image, ax=ax, pad=0.02, shrink=0.9).ax, "probability of a win")


def _win_text(share: float) -> str:
    """A probability in three or four characters; no rating is 0, so that none is 0 or 1.

    >>> _win_text(0.256), _win_text(0.001), _win_text(0.999)
    ('.26', '<.01', '>.99')
    """
    text = f"{share:.2f}".removeprefix("0")
    return {".00": "<.01", "1.00": ">.99"}.get(text, text)


def _write_numbers(ax: Axes, wins: FloatArray, sure: BoolArray) -> bool:
    """Write numbers into the cells, as large as they fit, if they would not be too small to read; says whether."""
    width, height = size_in_points(ax)
    cell = min(width / 2.4, height / 1.4) / len(wins)  # for three characters
    if cell < look().smallest:
        return False
    for i, j in itertools.permutations(range(len(wins)), 2):
        ax.text(
            j,
            i,
            _win_text(wins[i, j]),
            ha="center",
            va="center",
            fontsize=min(cell, 7.5),
            fontweight="bold" if sure[i, j] else "normal",
            color="white"
            if wins[i, j] > (0.68 if look().paper else 0.84) or (wins[i, j] < 0.06 and not look().paper)
            else "black",
        )
    return True
