"""Figures of a race: the probability of being dominated over rounds, and where the budget went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.extras import require
from polarbear_plugins.plots.look import look
from polarbear_plugins.plots.style import (
    as_colours,
    edges,
    line_style,
    marker,
    new_axes,
    show_time,
    size_in_points,
    time_text,
)
from polarbear_plugins.plots.texts import label_rows, label_y, legend, set_title
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.state import Round

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_KNEE = 0.9  # above, each further nine takes the same height
_TOP = 1 - 1e-4  # shown as 1: draws cannot resolve more
_NINE = 0.45  # height of a factor of 10, where 0 to 0.9 has height 1
_DODGE = 0.5  # of the distance between two rounds, so that points of different algorithms do not overlap
_SIGN = 5.8  # points: width of a digit below the axis
_ASIDE = 52.0  # points: to the right of the second scale


def plot_dominance(result: RaceResult, *, ax: Axes | None = None, colour: Mapping[str, str] | None = None) -> Axes:
    """Draw for each algorithm, round by round, the greatest probability with which another dominates it.

    A cross marks an elimination, a diamond the round in which all pairs of a member of the Pareto set are settled; its
    line ends there.  The scale is stretched above 0.9.  The black line is the share of the pairs that are settled.

    Parameters
    ----------
    ax, colour
        As in :func:`polarbear_plugins.plots.plot_ratings`.
    """
    _check_result(result, "plot_dominance")
    if not result.rounds:
        raise InvalidInputError("plot_dominance: the race has no finished round.")
    ax = new_axes(ax, "plot_dominance", width=7.6)
    tones = as_colours(colour, result.algorithms)
    lines = require("matplotlib.lines", extra="plots", who="plot_dominance")
    out = {elimination.algorithm: elimination.round for elimination in result.eliminations}
    settled = rounds_of_settling(result.rounds)
    many = len(result.algorithms)
    entries: list[tuple[Any, str]] = []
    for place, name in enumerate(result.algorithms):
        shift = _DODGE * ((place + 0.5) / many - 0.5)
        end = out.get(name, settled.get(name, len(result.rounds)))
        points = [(done.number, done.rivals[name][1]) for done in result.rounds[:end] if name in done.rivals]
        shown: dict[str, Any] = {
            "color": tones[name],
            "linestyle": line_style(name, tones),
            "marker": marker(name, tones),
        }
        entries.append((lines.Line2D([], [], markersize=4, linewidth=look().scaled(1.2), **shown), name))
        if not points:
            continue
        x = np.array([number for number, _ in points]) + shift
        y = np.minimum([probability for _, probability in points], _TOP)
        ax.plot(x, y, markersize=look().scaled(3.5), linewidth=look().scaled(1.1), clip_on=False, zorder=3, **shown)
        if name in out or name in settled:
            ax.plot(x[-1:], y[-1:], **_end_marker(name in out), color=tones[name], clip_on=False, zorder=4)
    alpha = result.settings.alpha
    ax.axhline(min(alpha, _TOP), color="#606060", linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    share = _show_share(ax, result.rounds)
    ax.set_yscale("function", functions=(_to_height, _to_probability))
    ticks = [0, 0.3, 0.6, 0.9, 0.99, 0.999, _TOP]
    ax.set_yticks(ticks, labels=[*(f"{tick:g}" for tick in ticks[:-1]), "1"])
    ax.set_yticks([], minor=True)
    ax.set_ylim(0, _TOP)
    joint = result.settings.elimination == "joint"
    label_y(ax, f"probability of being dominated\n({'at all timepoints' if joint else 'at the least sure timepoint'})")
    set_title(ax, "How surely each algorithm is dominated", pad=11)  # space for crosses at 1
    entries.append((lines.Line2D([], [], **_end_marker(True), color="#606060"), "eliminated"))
    entries.append((lines.Line2D([], [], **_end_marker(False), color="#606060"), "settled, in Pareto set"))
    entries.append((lines.Line2D([], [], color="#606060", linewidth=0.9, linestyle=(0, (4, 3))), f"alpha = {alpha:g}"))
    entries.append((share, "settled pairs (right)"))
    legend(ax, entries, aside=_ASIDE)
    _show_rounds(ax, result.rounds)
    return ax


def plot_allocation(result: RaceResult, *, ax: Axes | None = None) -> Axes:
    """Draw on how many instances each algorithm was run until which time: a row for each, the colour counts instances.

    Parameters
    ----------
    ax
        As in :func:`polarbear_plugins.plots.plot_ratings`.
    """
    _check_result(result, "plot_allocation")
    table, names = result.state.table, result.algorithms
    seen = np.zeros((len(table.instances), *table.values.shape[1:]), dtype=bool)
    np.logical_or.at(seen, table.instance_index, ~np.isnan(table.values))  # repetitions are on the same instance
    seen[:, :, np.isin(names, result.state.stored)] = False  # they did not run
    if not seen.any():
        raise InvalidInputError("plot_allocation: nothing has run yet.")
    ax = new_axes(ax, "plot_allocation", height=1.3, rows=names, row=0.3)
    counts = seen.sum(axis=0).T
    borders = edges(result.timepoints)
    # On a log scale, because rounds grow: 8 and 16 instances differ as much as 500 and 1,000.
    fewest, most = int(counts[counts > 0].min()), int(counts.max())
    scale = require("matplotlib.colors", extra="plots", who="plot_allocation").LogNorm
    mesh = ax.pcolormesh(
        borders,
        np.arange(len(names) + 1) - 0.5,
        np.ma.masked_equal(counts, 0),
        cmap="cividis_r",
        norm=scale(fewest, max(most, fewest + 1)),
        rasterized=True,
    )
    ax.set_facecolor("#E8E8E8")  # where nothing ran
    out = {elimination.algorithm: elimination.round for elimination in result.eliminations}
    label_rows(ax, names, out)
    for place in range(1, len(names)):
        ax.axhline(place - 0.5, color="white", linewidth=1.5)
    show_time(ax, result.timepoints, ends=(float(borders[0]), float(borders[-1])))
    if result.timepoints.size == 1:
        ax.set_xticks(result.timepoints, labels=[time_text(result.timepoints[0])])
    bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02)
    label_y(bar.ax, "instances run until this time")
    # Both ends, and round numbers not too close to them.
    between = (digit * 10**power for power in range(7) for digit in (1, 2, 5))
    ticks = sorted({fewest, most, *(tick for tick in between if 1.3 * fewest < tick < most / 1.3)})
    bar.set_ticks(ticks, labels=[f"{tick:,}" for tick in ticks])
    bar.minorticks_off()
    share = result.cost / result.full_cost
    set_title(ax, f"Where the budget went: {share * 100:.0f} % of the full cost\n(eliminated in grey)")
    return ax


def rounds_of_settling(rounds: tuple[Round, ...]) -> dict[str, int]:
    """For each algorithm that is in and whose pairs are all settled: the round since which they are."""
    pairs: set[frozenset[str]] = set()
    since: dict[str, int] = {}
    for done in rounds:
        pairs |= {frozenset(pair) for pair in done.resolved}
        inside = set(done.rivals) - {elimination.algorithm for elimination in done.eliminations}
        full = {one for one in inside if all(frozenset((one, other)) in pairs for other in inside - {one})}
        # A newcomer opens pairs again; an algorithm left alone has no rival and stays settled.
        since = {name: since.get(name, done.number) for name in (full if done.rivals else since)}
    return since


def _end_marker(cross: bool) -> dict[str, Any]:
    sign, size = ("X", 9) if cross else ("D", 7)
    edge = {"markeredgecolor": "white", "markeredgewidth": 0.7, "linestyle": "none"}
    return {"marker": sign, "markersize": look().scaled(size), **edge}


def _show_share(ax: Axes, rounds: tuple[Round, ...]) -> Any:
    beside = ax.twinx()
    (line,) = beside.plot(
        [done.number for done in rounds],
        [done.resolved_share for done in rounds],
        color="black",
        linewidth=0.9,
        marker=".",
        markersize=3,
        zorder=2,
        clip_on=False,
    )
    beside.set_ylim(0, 1)
    label_y(beside, "share of pairs settled")
    # The lines of the algorithms are in front.
    ax.set_zorder(beside.get_zorder() + 1)
    ax.patch.set_visible(False)
    return line


def _show_rounds(ax: Axes, rounds: tuple[Round, ...]) -> None:
    """Label the rounds with their number and the instances drawn so far; only some if there are many."""
    ax.set_xlim(1 - 0.7 * _DODGE, len(rounds) + 0.7 * _DODGE)
    ax.set_xlabel("round, and instances drawn so far")
    widest = max(len(f"{done.instances:,}") for done in rounds) * _SIGN + 8
    step = -(-len(rounds) // max(int(size_in_points(ax)[0] / widest), 1))
    shown = rounds[step - 1 :: step]
    ax.set_xticks(
        [done.number for done in shown],
        labels=[f"{done.number}\n{done.instances:,}" for done in shown],
        fontsize=look().points(9),
    )


def _to_height(probability: FloatArray) -> FloatArray:
    p = np.asarray(probability, dtype=float)
    above = 1 + _NINE * np.log10((1 - _KNEE) / (1 - np.clip(p, _KNEE, 1 - 1e-9)))
    return np.where(p <= _KNEE, p / _KNEE, above)


def _to_probability(height: FloatArray) -> FloatArray:
    h = np.asarray(height, dtype=float)
    return np.where(h <= 1, h * _KNEE, 1 - (1 - _KNEE) * 10 ** -((np.maximum(h, 1) - 1) / _NINE))


def _check_result(result: RaceResult, who: str) -> None:
    if not isinstance(result, RaceResult):
        raise InvalidInputError(f"{who}: expected the result of a race or of analyze, got {short(result)}.")
