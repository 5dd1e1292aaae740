"""The anytime ribbon: which algorithm to choose at which time, on one line."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from polarbear_plugins.arrays import BoolArray, FloatArray
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.extras import require
from polarbear_plugins.plots.look import look
from polarbear_plugins.plots.style import as_colours, edges, new_axes, show_time, size_in_points, time_text
from polarbear_plugins.plots.texts import break_lines, legend, set_title
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.selection.choice import as_candidates, ratings_among, warn_of_misfit
from polarbear_plugins.selection.stretches import Stretch, candidates_observed, stretches
from polarbear_plugins.selection.support import SUPPORTED, about_best

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RIBBON = 30.0  # points, its height
_KEY = 26  # characters of a line of what letters stand for
_MOST_NAMES = 3  # that may be best where no choice is supported
_DARK = 0.55  # luminance below which a text on a colour is white


def plot_ribbon(
    source: RaceResult | Posterior,
    *,
    among: Iterable[str] | None = None,
    ax: Axes | None = None,
    colour: Mapping[str, str] | None = None,
) -> Axes:
    """Draw which algorithm to choose at which time as one ribbon, about an inch high.

    It shows what the advice of a report says in words.  A stretch of one colour carries the name of its choice.  Its
    height is the support at each timepoint, the probability that nothing else is noticeably better there; the dashed
    line is at 0.95.  A stretch whose support is below 0.95 on average is hatched in grey: no choice is supported
    there, and the names are those of the candidates.  It is empty where none of them was ever observed.  Where a name
    does not fit, a letter stands for it.

    Parameters
    ----------
    source
        A result, of which those in the Pareto set are compared, by first places if the model does not fit; or a
        posterior.
    among
        Algorithms to choose from; by default the Pareto set of a result, or all of a posterior.
    ax, colour
        As in :func:`polarbear_plugins.plots.plot_ratings`.
    """
    posterior, names = _source(source, among)
    grid, borders = posterior.timepoints, edges(posterior.timepoints)
    tones = as_colours(colour, source.algorithms)
    found = stretches(posterior, names)
    known = candidates_observed(posterior, names)
    ratings = ratings_among(posterior, names)
    alone = ax is None
    ax = new_axes(ax, "plot_ribbon", height=1.3)
    show_time(ax, grid, ends=(float(borders[0]), float(borders[-1])))
    if grid.size == 1:
        ax.set_xticks(grid, labels=[time_text(grid[0])])
    for stretch in found:
        inside = slice(stretch.first, stretch.last + 1)
        if known[stretch.first]:
            support = about_best(ratings[:, inside], names.index(stretch.algorithm)).mean(axis=0)
            _draw(ax, borders[stretch.first : stretch.last + 2], support, _fill(stretch, tones))
    ax.axhline(SUPPORTED, color="#404040", linewidth=look().scaled(0.7), linestyle=(0, (4, 3)), zorder=4)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_ylim(0, 1)
    ax.set_yticks([0, 1])
    ax.set_ylabel("support")
    set_title(ax, f"Which algorithm to choose when (hatched: none is supported by {SUPPORTED:.0%})")
    explained = _write_names(ax, _labels(found, known), borders, tones)
    if explained:
        patch = require("matplotlib.patches", extra="plots", who="plot_ribbon").Patch
        empty = {"facecolor": "white", "edgecolor": "none"}
        entries = [
            (patch(**(_fill(label.stretch, tones) if label.there else empty)), text)
            for text, label in explained.items()
        ]
        legend(ax, entries, below=True, line=_KEY)
    if alone:
        _set_height(ax)
    return ax


def _source(source: RaceResult | Posterior, among: Iterable[str] | None) -> tuple[Posterior, tuple[str, ...]]:
    """Posterior to choose from, and the candidates."""
    if isinstance(source, RaceResult):
        names = as_candidates(source.posterior, source.pareto_set if among is None else among)
        return source.robust_posterior(names), names
    if not isinstance(source, Posterior):
        raise InvalidInputError(f"plot_ribbon: expected a result or a posterior, got {short(source)}.")
    warn_of_misfit(source, "plot_ribbon")
    return source, as_candidates(source, among)


class _Label(NamedTuple):
    """A text and what it is about: places of the first and the last timepoint, and one of the stretches there.

    ``there`` is whether any of the candidates was observed.
    """

    text: str
    first: int
    last: int
    stretch: Stretch
    there: bool


def _labels(found: Sequence[Stretch], known: Sequence[bool] | BoolArray) -> list[_Label]:
    """What to write where; neighbouring stretches without support have one text, as in the advice."""
    labels: list[_Label] = []
    for (there, chosen), group in itertools.groupby(found, lambda each: (bool(known[each.first]), _choice(each))):
        parts = list(group)
        text = chosen if there else "not observed"
        if not text:
            names = list(dict.fromkeys(name for part in parts for name in (part.algorithm, *part.rivals)))
            more = [f"{len(names) - _MOST_NAMES} others"] if len(names) > _MOST_NAMES + 1 else names[_MOST_NAMES:]
            text = f"{' or '.join([*names[:_MOST_NAMES], *more])}?"
        labels.append(_Label(text, parts[0].first, parts[-1].last, parts[0], there))
    return labels


def _choice(stretch: Stretch) -> str:
    """The algorithm that is chosen there; empty if none is supported."""
    return stretch.algorithm if stretch.supported else ""


def _fill(stretch: Stretch, tones: Mapping[str, str]) -> dict[str, Any]:
    """Look of a stretch: the colour of its choice, or hatched in grey without one."""
    if stretch.supported:
        return {"facecolor": tones[stretch.algorithm], "edgecolor": "none", "linewidth": 0.0}
    return {"facecolor": "#EFEFEF", "hatch": "////", "edgecolor": "#9A9A9A", "linewidth": 0.0}


def _draw(ax: Axes, borders: FloatArray, support: FloatArray, fill: Mapping[str, Any]) -> None:
    """One stretch: a step for each timepoint, as high as its support."""
    ax.fill_between(borders, np.append(support, support[-1]), step="post", **fill, zorder=2)
    if fill["edgecolor"] == "none":
        ax.axvline(borders[0], color="white", linewidth=look().scaled(2.0), zorder=3)
        ax.axvline(borders[-1], color="white", linewidth=look().scaled(2.0), zorder=3)


def _write_names(
    ax: Axes, labels: Sequence[_Label], borders: FloatArray, tones: Mapping[str, str]
) -> dict[str, _Label]:
    """Write each name on its stretch, or a letter where it does not fit; returns what letters stand for."""
    size_in_points(ax)  # lays it out, so that positions are known
    pixels = ax.get_figure(root=True).dpi / 72
    letters: dict[str, str] = {}
    explained: dict[str, _Label] = {}
    for place, label in enumerate(labels):
        ends = [float(ax.transData.transform((borders[at], 0))[0]) for at in (label.first, label.last + 1)]
        middle = ax.transAxes.inverted().transform((sum(ends) / 2, 0))[0]
        drawn = ax.annotate(
            "",
            (middle, 0.48),
            xycoords="axes fraction",
            ha="center",
            va="center",
            fontsize=look().points(8.5),
            linespacing=1.1,
            parse_math=False,
            color=_on(tones[label.stretch.algorithm]) if label.stretch.supported else "black",
            zorder=5,
            annotation_clip=False,
        )
        room = (ends[1] - ends[0]) / pixels - 4
        if not label.stretch.supported:
            drawn.set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0})
        if _fits(drawn, label.text, room, pixels):
            continue
        letter = letters.setdefault(label.text, _letter(len(letters)))
        explained[f"{letter}: {label.text}"] = label
        drawn.set_text(letter)
        if drawn.get_window_extent().width / pixels > room + 3:  # narrower than a letter: above, at two heights
            drawn.set(color="black", va="bottom")
            drawn.xy = (middle, 1.04 + 0.28 * (place % 2))
    return explained


def _fits(drawn: Any, text: str, room: float, pixels: float) -> bool:
    """Whether a text fits on its stretch, on up to three lines that do not break a word; it is written if so."""
    longest = max(map(len, re.findall(r"[^\s_\-+/.,:;]+[\s_\-+/.,:;]*|[\s_\-+/.,:;]+", text))) + 1
    for lines in (1, 2, 3):
        drawn.set_text(break_lines(text, max(longest, len(text) if lines == 1 else len(text) // lines + 4)))
        box = drawn.get_window_extent()
        if box.width / pixels <= room and box.height / pixels <= _RIBBON - 2:
            return True
    return False


def _letter(number: int) -> str:
    """A, B, ... Z, A1, B1, ..."""
    return string.ascii_uppercase[number % 26] + (str(number // 26) if number >= 26 else "")


def _set_height(ax: Axes) -> None:
    """Make a figure of its own as high as the ribbon and what is beside it need."""
    figure = ax.get_figure(root=True)
    for _ in range(2):  # what is beside the axes depends a little on their height
        _, height = size_in_points(ax)
        figure.set_figheight(figure.get_figheight() + (_RIBBON - height) / 72)


def _on(tone: str) -> str:
    """Colour of a text that is readable on another colour, also in grey."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(tone)
    return "white" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < _DARK else "black"
