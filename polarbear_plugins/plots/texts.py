"""Texts of figures: titles, labels, names, legends.  All are shown verbatim, but for characters that hide others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from polarbear_plugins.errors import visible
from polarbear_plugins.extras import require
from polarbear_plugins.plots.look import look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SMALL = 8.0
_SIGN = 0.56  # width of a usual character, of its size


def set_title(ax: Axes, text: str, **options: Any) -> None:
    """Title of a figure, except in a paper, where the caption says it."""
    if not look().paper:
        ax.set_title(text, **{"fontsize": 10, "parse_math": False, **options})


def label_x(ax: Axes, text: str, **options: Any) -> None:
    """Label the horizontal axis, on several lines in a paper whose figure is narrower than the text is long."""
    if look().paper:
        width = 0.72 * ax.get_figure(root=True).get_figwidth() * 72
        text = break_lines(text, int(width / (_SIGN * look().font)))
    ax.set_xlabel(text, parse_math=False, **options)


def label_y(ax: Axes, text: str) -> None:
    """Label the vertical axis, on several lines in a paper whose figure is lower than the text is long."""
    if look().paper:
        height = 0.72 * ax.get_figure(root=True).get_figheight() * 72
        words = " ".join(text.split())
        text = break_lines(words, max(8, int(height / (_SIGN * look().font))))
    ax.set_ylabel(text, parse_math=False)


def legend(
    ax: Axes, entries: Iterable[tuple[Any, str]], *, aside: float = 8.0, below: bool = False, line: int | None = None
) -> None:
    """Put a legend ``aside`` points to the right of the axes, or below if asked for or if all are.

    Texts are shown verbatim, and broken after ``line`` characters.
    """
    moved = require("matplotlib.transforms", extra="plots", who="A figure").ScaledTranslation
    handles, texts = zip(*entries, strict=True)
    labels = [break_lines(label, look().line if line is None else line) for label in texts]
    if below or look().legend_below:
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
        fontsize=look().points(_SMALL),
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
            fontsize=look().points(_SMALL),
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
        text.set_text(label)


def label_rows(ax: Axes, names: Sequence[str], grey: Iterable[str] = ()) -> None:
    """Label the rows 0, 1, ... of a figure, the first on top."""
    eliminated = set(grey)
    ax.set_yticks(
        range(len(names)),
        labels=[break_lines(name, look().line) for name in names],
        parse_math=False,
        fontsize=look().points(_SMALL + 0.5),
    )
    for text, name in zip(ax.get_yticklabels(), names, strict=True):
        if name in eliminated:
            text.set_color("#808080")
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)


def row_height(names: Sequence[str]) -> float:
    """Inches between the labels of rows that keep these apart, which may have several lines."""
    lines = [break_lines(name, look().line).count("\n") + 1 for name in names]
    most = max((one + other) / 2 for one, other in zip(lines, [*lines[1:], lines[-1]], strict=True))
    return (most * 1.2 * look().points(_SMALL + 0.5) + 2) / 72


def label_columns(ax: Axes, names: Sequence[str]) -> None:
    """Label the columns 0, 1, ... of a figure whose rows have the same names: by these, in a paper by numbers."""
    if look().paper:
        numbers = [str(place + 1) for place in range(len(names))]
        size = look().points(_SMALL)
        ax.set_xticks(range(len(names)), labels=numbers, fontsize=size)
        label_rows(ax, [f"{name} {number}" for name, number in zip(names, numbers, strict=True)])
    else:
        labels = [break_lines(name, look().line) for name in names]
        ax.set_xticks(range(len(names)), labels=labels, rotation=90, parse_math=False, fontsize=_SMALL + 0.5)
        label_rows(ax, names)
    ax.tick_params(axis="x", length=0)


def break_lines(name: str, line: int) -> str:
    """Name with line breaks after spaces or punctuation, or anywhere if a part is too long.

    What would turn, hide or overwrite other characters is written as an escape.

    >>> print(break_lines("sep-CMA-ES with restarts", 16))
    sep-CMA-ES with
    restarts
    """
    lines = [""]
    for part in re.findall(rf"[^\s_\-+/.,:;]{{1,{line}}}[\s_\-+/.,:;]*|[\s_\-+/.,:;]+", visible(name)):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > line:
            lines.append("")
        lines[-1] += part
    return "\n".join(text.strip() for text in lines)
