"""Shared by all figures: colours, axes, time, legends.  Imports matplotlib only to draw."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.extras import require
from polarbear_plugins.names import as_name
from polarbear_plugins.regular_files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
_SOLID = 8  # lines that are distinguished by colour alone
DASHES = ("-", (0, (5, 2)), (0, (1.2, 1.4)), (0, (6, 2, 1.2, 2)))
_MARKERS = ("o", "s", "^", "v")
_HATCHES = ("", "////", "....", "xxxx")
_LINE = 22  # characters, before a name is break_lines
_SMALL = 8.0
_NARROW = 4.8  # inches
_narrow: ContextVar[bool] = ContextVar("narrow", default=False)


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
    """Line style: solid for the first eight algorithms."""
    return _variant(DASHES, name, colour)


def marker(name: str, colour: Mapping[str, str]) -> str:
    """Marker of an algorithm."""
    return str(_variant(_MARKERS, name, colour))


def hatch(name: str, colour: Mapping[str, str]) -> str:
    """Hatching: none for the first eight algorithms."""
    return str(_variant(_HATCHES, name, colour))


def _variant(kinds: Sequence[Any], name: str, colour: Mapping[str, str]) -> Any:
    return kinds[list(colour).index(name) // _SOLID % len(kinds)]


@contextlib.contextmanager
def narrow_figures() -> Iterator[None]:
    """Within this context, figures are narrow enough for a phone, with the legend below the axes."""
    token = _narrow.set(True)
    try:
        yield
    finally:
        _narrow.reset(token)


def new_axes(
    ax: Axes | None, who: str, *, width: float = 7.0, height: float = 4.0, narrow_width: float = _NARROW
) -> Axes:
    """Given axes, or those of a new figure of that size in inches, with a layout that fits labels and legends."""
    module = require("matplotlib.figure", extra="plots", who=who)
    if ax is None:
        width = min(width, narrow_width) if _narrow.get() else width
        ax = module.Figure(figsize=(width, height), dpi=110, layout="constrained").subplots()
    elif not isinstance(ax, require("matplotlib.axes", extra="plots", who=who).Axes):
        raise InvalidInputError(f"{who}: ax must be Axes of matplotlib, got {short(ax)}.")
    return ax


def save_figure(figure: Any, path: Path) -> Path:
    """Save a figure completely or not at all, in the format of the suffix (.png, .pdf, .svg); returns the path."""
    known = sorted(figure.canvas.get_supported_filetypes())
    kind = path.suffix.lstrip(".").lower()
    if kind not in known:
        raise InvalidInputError(f"The figure cannot be saved as {path}: the suffix must be one of {', '.join(known)}.")
    return write_whole(path, lambda file: figure.savefig(file, format=kind))


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
    if log_spaced(timepoints):
        ax.set_xscale("log")
        if timepoints[-1] < 30 * timepoints[0]:  # few powers of ten: the labels between them would overlap
            _label_some(ax, timepoints)
    left, right = ends or (timepoints[0], timepoints[-1])
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


def legend(ax: Axes, entries: Iterable[tuple[Any, str]], *, aside: float = 8.0) -> None:
    """Put a legend ``aside`` points to the right of the axes; texts are shown verbatim."""
    moved = require("matplotlib.transforms", extra="plots", who="A figure").ScaledTranslation
    handles, labels = zip(*entries, strict=True)
    if _narrow.get():
        _legend_below(ax, handles, labels)
        return
    # matplotlib omits names that begin with an underscore, so the texts are set afterwards.
    box = ax.legend(
        handles,
        ["-"] * len(handles),
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        bbox_transform=ax.transAxes + moved(aside / 72, 0, ax.figure.dpi_scale_trans),
        borderaxespad=0.0,
        frameon=False,
        fontsize=_SMALL,
        handlelength=2.6,
    )
    _write_labels(box, labels)


def _legend_below(ax: Axes, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """Put the legend below the axes, in as many columns as fit, and make the figure taller by its height."""
    figure = ax.figure
    for columns in range(min(4, len(handles)), 0, -1):
        box = figure.legend(
            handles,
            ["-"] * len(handles),
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            fontsize=_SMALL,
            handlelength=2.6,
            columnspacing=1.5,
        )
        _write_labels(box, labels)
        size = box.get_window_extent()
        if size.width <= figure.bbox.width or columns == 1:
            break
        box.remove()
    figure.set_figheight(figure.get_figheight() + size.height / figure.dpi)


def _write_labels(box: Any, labels: Sequence[str]) -> None:
    for text, label in zip(box.get_texts(), labels, strict=True):
        text.set_parse_math(False)
        text.set_text(break_lines(label, _LINE))


def label_rows(ax: Axes, names: Sequence[str], grey: Iterable[str] = ()) -> None:
    """Label the rows 0, 1, ... of a figure, the first on top."""
    eliminated = set(grey)
    ax.set_yticks(
        range(len(names)), labels=[break_lines(name, _LINE) for name in names], parse_math=False, fontsize=_SMALL + 0.5
    )
    for text, name in zip(ax.get_yticklabels(), names, strict=True):
        if name in eliminated:
            text.set_color("#808080")
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)


def diverging() -> Colormap:
    """Colour map from orange over white to blue."""
    made = require("matplotlib.colors", extra="plots", who="A figure").LinearSegmentedColormap
    return made.from_list("polarbear", [ORANGE, "#FFFFFF", BLUE])


def break_lines(name: str, line: int) -> str:
    """Name with line breaks after spaces or punctuation, or anywhere if a part is too long.

    >>> print(break_lines("sep-CMA-ES with restarts", 16))
    sep-CMA-ES with
    restarts
    """
    lines = [""]
    for part in re.findall(rf"[^\s_\-+/.,:;]{{1,{line}}}[\s_\-+/.,:;]*|[\s_\-+/.,:;]+", name):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > line:
            lines.append("")
        lines[-1] += part
    return "\n".join(text.strip() for text in lines)
