"""Shared by all figures: colours, axes, time, legends.  Imports matplotlib only to draw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.extras import require
from polarbear_plugins.names import as_name
from polarbear_plugins.plots.look import look
from polarbear_plugins.plots.look import narrow_figures as narrow_figures  # beside the rest of the style
from polarbear_plugins.plots.texts import row_height
from polarbear_plugins.regular_files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap


# Six of Okabe and Ito, two of Tol, and two that are far from all of them: distinguishable with any kind of colour
# blindness (tests/plots/test_plots.py measures it).
_PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
    "#332288",
    "#882255",
    "#000000",
    "#9B30FF",
)
BLUE, ORANGE, GREY = _PALETTE[0], _PALETTE[1], "#B0B0B0"
_DARK_BLUE = "#003A5C"
_SOLID = 8  # lines that are distinguished by colour alone
DASHES = ("-", (0, (5, 2)), (0, (1.2, 1.4)), (0, (6, 2, 1.2, 2)))
_MARKERS = ("o", "s", "^", "v")
_HATCHES = ("", "////", "....", "xxxx")
# In a paper, which may be printed in grey, every line and area differs from the first algorithm on.
_PAPER_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_PAPER_HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "||||", "++++", "oooo", "****")
_MARKED = 6  # places of a line in a paper
_NARROW = 4.8  # inches
_CELL = 0.2  # inches, the height of a cell in a paper
_TICKS = 5  # of a vertical axis in a paper
_POWERS = 5  # of ten, that are labelled in a paper
_PRINTED = 600  # pixels in an inch
_METADATA = {
    "pdf": ("CreationDate", "Creator", "Producer"),
    "svg": ("Date", "Creator", "Format", "Type"),
    "png": ("Software",),
}


def colours(names: Iterable[str]) -> dict[str, str]:
    """One colour for each algorithm, the same for the same sequence of names, also distinct for the colour-blind.

    Make them once and pass them to all figures of a report.  After the first eight, figures also change the kind of
    line, marker or hatching, by the place in this mapping.

    >>> colours(["csa", "msr"])
    {'csa': '#0072B2', 'msr': '#D55E00'}
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidInputError(f"colours: expected the names of algorithms, got {short(names)}.")
    distinct = dict.fromkeys(as_name(name, "name of an algorithm") for name in names)
    return {name: _PALETTE[place % len(_PALETTE)] for place, name in enumerate(distinct)}


def as_colours(colour: Mapping[str, str] | None, names: Sequence[str]) -> Mapping[str, str]:
    """Given colours, checked to have one for each name, or new ones."""
    if colour is None:
        return colours(names)
    if not isinstance(colour, Mapping):
        raise InvalidInputError(f"colour: expected a colour for each algorithm, as of colours(), got {short(colour)}.")
    missing = [name for name in names if name not in colour]
    if missing:
        raise InvalidInputError(f"colour: there is none for {', '.join(map(repr, missing))}. Make them with colours().")
    is_colour = require("matplotlib.colors", extra="plots", who="A figure").is_color_like
    for name in names:
        if not is_colour(colour[name]):
            raise InvalidInputError(f"colour: {short(colour[name])} for {name!r} is not a colour.")
    return colour


def line_style(name: str, colour: Mapping[str, str]) -> Any:
    """Line style: solid for the first eight algorithms, except in a paper."""
    place = list(colour).index(name)
    return DASHES[(place + place // len(_PAPER_MARKERS) if look().paper else place // _SOLID) % len(DASHES)]


def marker(name: str, colour: Mapping[str, str]) -> str:
    """Marker of an algorithm."""
    return _variant(_MARKERS, _PAPER_MARKERS, name, colour)


def hatch(name: str, colour: Mapping[str, str]) -> str:
    """Hatching: none for the first eight algorithms, except in a paper."""
    return _variant(_HATCHES, _PAPER_HATCHES, name, colour)


def _variant(usual: Sequence[str], paper: Sequence[str], name: str, colour: Mapping[str, str]) -> str:
    place = list(colour).index(name)
    return paper[place % len(paper)] if look().paper else usual[place // _SOLID % len(usual)]


def line_look(name: str, colour: Mapping[str, str], points: int, *, width: float = 1.8) -> dict[str, Any]:
    """Look of a line with that many points; in a paper it has markers at a few of them, each line at others."""
    found = {"color": colour[name], "linestyle": line_style(name, colour), "linewidth": look().scaled(width)}
    if look().paper:
        step = max(1, round(points / _MARKED))
        start = int(step * list(colour).index(name) / len(colour))
        found |= {"marker": marker(name, colour), "markevery": (start, step), "markersize": look().scaled(4.5)}
    return found


def new_axes(
    ax: Axes | None,
    who: str,
    *,
    width: float = 7.0,
    height: float = 4.0,
    narrow_width: float = _NARROW,
    rows: Sequence[str] = (),
    row: float = 0.0,
    paper_row: float | None = None,
) -> Axes:
    """Given axes, or those of a new figure of about that size in inches, with a layout that fits labels and legends.

    A figure that has ``rows``, labelled with these names, is ``row`` higher for each; in a paper ``paper_row``, by
    default in proportion to the font, and as much as the names need.
    """
    module = require("matplotlib.figure", extra="plots", who=who)
    if ax is None:
        if rows:
            each = look().scaled(row) if paper_row is None else paper_row
            each = max(each, row_height(rows)) if look().paper else row
            size = look().width_of(width, narrow_width), look().scaled(height) + each * len(rows)
        else:
            size = look().width_of(width, narrow_width), look().height_of(height)
        ax = module.Figure(figsize=size, dpi=110, layout="constrained").subplots()
        if look().paper:  # as many as fit would change with the layout, and the layout with them
            ax.locator_params(axis="y", nbins=_TICKS)
    elif not isinstance(ax, require("matplotlib.axes", extra="plots", who=who).Axes):
        raise InvalidInputError(f"{who}: ax must be Axes of matplotlib, got {short(ax)}.")
    return ax


def square_axes(ax: Axes | None, who: str, names: Sequence[str]) -> Axes:
    """Axes as of :func:`new_axes` for a table of each against each, with names on two sides, in a paper on one."""
    size = 1.9 + 0.42 * len(names)
    # Narrower, and a name would not fit under its column.
    narrow = max(_NARROW, 1.6 + 0.2 * len(names))
    frame = 0.7 if look().paper else 1.9
    return new_axes(ax, who, width=size + 1.4, height=frame, narrow_width=narrow, rows=names, row=0.42, paper_row=_CELL)


def save_figure(figure: Any, path: Path) -> Path:
    """Save a figure completely or not at all, in the format of the suffix (.png, .pdf, .svg); returns the path.

    In the look of a paper with many pixels, and without the date and other metadata.
    """
    known = sorted(figure.canvas.get_supported_filetypes())
    kind = path.suffix.lstrip(".").lower()
    if kind not in known:
        raise InvalidInputError(f"The figure cannot be saved as {path}: the suffix must be one of {', '.join(known)}.")
    more = {"dpi": _PRINTED, "metadata": dict.fromkeys(_METADATA.get(kind, ()))} if look().paper else {}
    return write_whole(path, lambda file: figure.savefig(file, format=kind, **more))


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes in points, after the layout of labels and legends."""
    layout = ax.figure.get_layout_engine()
    if layout is not None:
        layout.execute(ax.figure)
    frame = ax.get_window_extent()
    return frame.width / ax.figure.dpi * 72, frame.height / ax.figure.dpi * 72


def known_names(names: Iterable[str], known: Sequence[str], what: str) -> tuple[str, ...]:
    """Names of algorithms, checked to be known, in the order of ``known``."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidInputError(f"{what}: expected names of algorithms, got {short(names)}.")
    given = [as_name(name, what) for name in names]
    unknown = [name for name in given if name not in known]
    if unknown:
        raise InvalidInputError(f"{what}: there is no {', '.join(map(repr, unknown))}; there are {', '.join(known)}.")
    return tuple(name for name in known if name in given)


def log_spaced(timepoints: FloatArray) -> bool:
    """Whether timepoints are more evenly spaced on the logarithm of time than on time itself.

    >>> log_spaced(np.array([1.0, 2.0, 3.0, 6.0, 10.0, 18.0])), log_spaced(np.array([1.0, 2.0, 3.0, 4.0]))
    (True, False)
    """
    if timepoints.size < 3 or timepoints[0] <= 0:
        return False
    plain, logs = np.diff(timepoints), np.diff(np.log(timepoints))
    return bool(logs.std() / logs.mean() < plain.std() / plain.mean())


def show_time(ax: Axes, timepoints: FloatArray, *, ends: tuple[float, float] | None = None) -> None:
    """Make the horizontal axis a time axis, logarithmic if the timepoints are log-spaced."""
    left, right = ends or (timepoints[0], timepoints[-1])
    if log_spaced(timepoints):
        ax.set_xscale("log")
        if timepoints[-1] < 30 * timepoints[0]:  # few powers of ten: the labels between them would overlap
            _label_some(ax, timepoints)
        elif look().paper:
            label_powers(ax.xaxis, left, right)
    if left < right:
        ax.set_xlim(left, right)
    ax.set_xlabel("time (unit of the timepoints)")


def _label_some(ax: Axes, timepoints: FloatArray) -> None:
    """Label a few timepoints of a short logarithmic axis, evenly spread, with plain numbers."""
    from matplotlib.ticker import NullFormatter

    logs = np.log(timepoints)
    chosen = sorted({int(np.abs(logs - at).argmin()) for at in np.linspace(logs[0], logs[-1], 4)})
    ax.set_xticks(timepoints[chosen], [time_text(float(time)) for time in timepoints[chosen]])
    ax.xaxis.set_minor_formatter(NullFormatter())


def label_powers(axis: Axis, low: float, high: float) -> None:
    """Label powers of ten with plain numbers: exponents would be smaller than what can be read on paper."""
    from matplotlib.ticker import NullFormatter

    powers = np.arange(np.ceil(np.log10(low) - 1e-9), np.floor(np.log10(high) + 1e-9) + 1)
    shown = powers[:: -(-powers.size // _POWERS)]
    axis.set_ticks(10.0**shown, [time_text(float(10.0**power)) for power in shown])
    axis.set_minor_formatter(NullFormatter())


def edges(timepoints: FloatArray) -> FloatArray:
    """Borders of the cells around the timepoints, halfway between them on the scale of the axis."""
    if timepoints.size == 1:
        half = abs(float(timepoints[0])) / 2 or 0.5
        return np.array([timepoints[0] - half, timepoints[0] + half])
    grid = np.log(timepoints) if log_spaced(timepoints) else timepoints
    middle = (grid[1:] + grid[:-1]) / 2
    borders: FloatArray = np.concatenate(([2 * grid[0] - middle[0]], middle, [2 * grid[-1] - middle[-1]]))
    return np.exp(borders) if log_spaced(timepoints) else borders


def time_text(time: float) -> str:
    """Text of a time for a title.

    >>> time_text(20000.0), time_text(0.25)
    ('20,000', '0.25')
    """
    return f"{time:,.0f}" if float(time).is_integer() and abs(time) < 1e9 else f"{time:.4g}"


def diverging() -> Colormap:
    """Colour map from orange over white to blue."""
    return _colour_map(ORANGE, "#FFFFFF", BLUE)


def shades() -> Colormap:
    """Colour map of probabilities: :func:`diverging`, in a paper from white to blue, darker where higher in grey."""
    return _colour_map("#FFFFFF", "#8FBBDA", _DARK_BLUE) if look().paper else diverging()


def _colour_map(*tones: str) -> Colormap:
    made = require("matplotlib.colors", extra="plots", who="A figure").LinearSegmentedColormap
    return made.from_list("polarbear", tones)
