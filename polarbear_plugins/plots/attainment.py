"""Classical figures of runs, to set beside the posterior: the ECDF, and the difference of two EAFs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.attainment import attained
from polarbear_plugins.measures.ecdf_and_aocc import ecdf
from polarbear_plugins.measures.targets import LOWER, UPPER
from polarbear_plugins.names import as_name
from polarbear_plugins.plots.look import look
from polarbear_plugins.plots.style import (
    as_colours,
    diverging,
    label_powers,
    line_look,
    log_spaced,
    new_axes,
    show_time,
    time_text,
)
from polarbear_plugins.plots.texts import label_y, legend, set_title
from polarbear_plugins.trajectories.runs import group_runs
from polarbear_plugins.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_STEPS = 400  # of time, at most
_CELLS = 160  # of values


def plot_ecdf(
    trajectories: Iterable[Trajectory],
    *,
    lower: float = LOWER,
    upper: float = UPPER,
    ax: Axes | None = None,
    colour: Mapping[str, str] | None = None,
) -> Axes:
    """Draw the ECDF of each algorithm: how far its runs have come from ``upper`` to ``lower`` on a log scale.

    Only runs count that were watched until the last time for which every algorithm has a run.  The legend gives
    their number n.  Values need a known optimum of 0; see
    :func:`polarbear_plugins.measures.ecdf_and_aocc.ecdf`.

    Parameters
    ----------
    ax, colour
        As in :func:`polarbear_plugins.plots.plot_ratings`.
    """
    groups = group_runs(trajectories, "plot_ecdf")
    budget = min(max(run.horizon for run in runs) for runs in groups.values())
    kept = {name: [run for run in runs if run.horizon >= budget] for name, runs in groups.items()}
    grid = _grid([run for runs in kept.values() for run in runs], budget)
    shares = ecdf([run for runs in kept.values() for run in runs], grid, lower=lower, upper=upper)
    ax = new_axes(ax, "plot_ecdf")
    tones = as_colours(colour, list(groups))
    entries = []
    for name, runs in kept.items():
        shown = line_look(name, tones, grid.size, width=1.6)
        (line,) = ax.plot(grid, shares[name].to_numpy(), drawstyle="steps-post", **shown)
        if grid.size == 1:
            line.set_marker("o")
        entries.append((line, f"{name} (n={len(runs)})"))
    show_time(ax, grid)
    ax.set_ylim(0, 1)
    label_y(ax, "share of targets attained")
    set_title(ax, f"ECDF over targets from {upper:g} to {lower:g}")
    legend(ax, entries)
    return ax


def plot_attainment_difference(
    trajectories: Iterable[Trajectory], one: str, other: str, *, ax: Axes | None = None
) -> Axes:
    """Draw where ``one`` has attained more (blue) or less (orange) than ``other``: the difference of their EAFs.

    Both are taken on the same instances, equally often on each, up to where both were watched.

    Parameters
    ----------
    one, other
        Names of two algorithms.
    ax
        As in :func:`polarbear_plugins.plots.plot_ratings`.
    """
    names = as_name(one, "one"), as_name(other, "other")
    groups = group_runs(trajectories, "plot_attainment_difference")
    for name in names:
        if name not in groups:
            raise InvalidInputError(f"plot_attainment_difference: no run of {name!r}; there are {', '.join(groups)}.")
    if names[0] == names[1]:
        raise InvalidInputError(f"plot_attainment_difference: expected two algorithms, got {names[0]!r} twice.")
    budget, first, second = _pair_runs(groups[names[0]], groups[names[1]])
    times = _grid([*first, *second], budget)
    seen = np.concatenate([run.best for run in (*first, *second)])
    seen = np.clip(seen[np.isfinite(seen)], LOWER, UPPER)
    if not seen.size or seen.min() == seen.max():
        seen = np.array([LOWER, UPPER])
    borders = np.geomspace(seen.min(), seen.max(), _CELLS + 1)
    # A cell shows the value at its middle height, from its left border on.
    middles = np.sqrt(borders[1:] * borders[:-1])[::-1]
    difference = (attained(first, times, middles) - attained(second, times, middles)).T[::-1]
    ax = new_axes(ax, "plot_attainment_difference")
    widest = max(float(np.abs(difference).max()), 0.01)
    ends = _ends(times)
    mesh = ax.pcolormesh(ends, borders, difference, cmap=diverging(), vmin=-widest, vmax=widest, rasterized=True)
    show_time(ax, times, ends=(float(ends[0]), float(ends[-1])))
    if times.size == 1:
        ax.set_xticks(times, labels=[time_text(times[0])])
    ax.set_yscale("log")
    ax.set_ylim(borders[0], borders[-1])
    label_y(ax, "best value (distance to the optimum)")
    if look().paper:
        label_powers(ax.yaxis, borders[0], borders[-1])
    bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02)
    label_y(bar.ax, "difference of the shares of runs")
    set_title(ax, f"EAF of {names[0]} (more: blue)\nminus EAF of {names[1]} (more: orange), {len(first):,} runs each")
    return ax


def _grid(runs: Sequence[Trajectory], budget: float) -> FloatArray:
    """Times at which a best value changes, or an even grid where there are many."""
    times: FloatArray = np.unique(np.concatenate([*(run.times[run.times <= budget] for run in runs), [budget]]))
    if times.size > _STEPS:
        if log_spaced(times):
            return np.geomspace(times[0], budget, _STEPS)
        return np.linspace(times[0], budget, _STEPS)
    return times


def _ends(times: FloatArray) -> FloatArray:
    """Borders of the cells that start at each time."""
    if times.size == 1:
        return np.array([times[0], times[0] + (abs(times[0]) or 1.0)])
    last = times[-1] ** 2 / times[-2] if log_spaced(times) else 2 * times[-1] - times[-2]
    return np.append(times, last)


def _pair_runs(
    first: Sequence[Trajectory], second: Sequence[Trajectory]
) -> tuple[float, list[Trajectory], list[Trajectory]]:
    """Time until which both were watched on a common instance, and equally many runs of both on each such instance."""
    longest: list[dict[str, float]] = [{}, {}]
    for found, runs in zip(longest, (first, second), strict=True):
        for run in runs:
            found[run.instance] = max(run.horizon, found.get(run.instance, 0.0))
    common = longest[0].keys() & longest[1].keys()
    if not common:
        raise InvalidInputError(
            f"plot_attainment_difference: {first[0].algorithm!r} and {second[0].algorithm!r} share no instance."
        )
    budget = max(min(found[instance] for found in longest) for instance in common)
    counts = [Counter(run.instance for run in runs if run.horizon >= budget) for runs in (first, second)]
    room = {instance: min(count[instance] for count in counts) for instance in common}
    return budget, _first_runs(first, budget, room), _first_runs(second, budget, room)


def _first_runs(runs: Sequence[Trajectory], budget: float, room: Mapping[str, int]) -> list[Trajectory]:
    left, kept = dict(room), []
    for run in runs:
        if run.horizon >= budget and left.get(run.instance, 0):
            left[run.instance] -= 1
            kept.append(run)
    return kept
