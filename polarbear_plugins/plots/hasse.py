"""Hasse diagrams of partial orders: who is better stands above, with a line to those directly below."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.extras import require
from polarbear_plugins.partial_orders.order import PartialOrder
from polarbear_plugins.plots.layers import Layout, lay_out
from polarbear_plugins.plots.style import BLUE, ORANGE, broken

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_hasse_diagram", "save_hasse_diagrams"]

_GREY = "#666666"
_FONT = 9.0
_POINTS = 72.0  # in an inch
_PAD = 5.0
_GAP = 12.0
_BETWEEN = 40.0  # from the boxes of one layer to those of the next
_LINE = 16  # characters, before a name is broken


def plot_hasse_diagram(
    order: PartialOrder,
    *,
    ax: Axes | None = None,
    title: str | None = None,
    highlight: Iterable[tuple[str, str]] = (),
) -> Axes:
    """Draw a partial order in layers; undominated optimizers have a blue frame.

    Parameters
    ----------
    ax
        Where to draw; by default a new figure that is large enough.  Names shrink to fit into given axes.
    highlight
        Pairs (better, worse) to draw thick and orange where there is a line between them, such as what the deepest
        orders have in common.
    """
    labels = [broken(name, _LINE) for name in order.optimizers]
    layout = _layout(order, labels)
    ax = _figure([layout], [_height(layout, labels)]).subplots() if ax is None else ax
    thick = set(highlight)
    frame = ax.get_window_extent()
    width, height = (size / ax.figure.dpi * _POINTS for size in (frame.width, frame.height))
    scale = min(1.0, width / (layout.width + 2 * _PAD), height / _height(layout, labels))
    layers = max(layout.layer) + 1
    left = (width / scale - layout.width) / 2
    half = _box(labels) / 2 * scale / height

    def y(layer: int) -> float:
        return (layers - layer - 0.5) / layers

    for (better, worse), points in layout.lines.items():
        strong = (order.optimizers[better], order.optimizers[worse]) in thick
        # Upright beside and behind the boxes of a layer, slanting only between layers: no line crosses a box.
        ax.plot(
            [left + x for x, _ in points for _ in range(2)],
            [
                y(layer) + side
                for place, (_, layer) in enumerate(points)
                for side in (half * (place > 0), -half * (place < len(points) - 1))
            ],
            color=ORANGE if strong else _GREY,
            linewidth=2.6 if strong else 1.0,
            solid_joinstyle="round",
            zorder=2 if strong else 1,
        )
    for place, label in enumerate(labels):
        first = not order.better[:, place].any()
        ax.text(
            left + layout.x[place],
            y(layout.layer[place]),
            label,
            ha="center",
            va="center",
            fontsize=_FONT * scale,
            parse_math=False,
            zorder=3,
            bbox={
                "boxstyle": f"round,pad={_PAD / _FONT / 1.6:.2f}",
                "facecolor": "white",
                "edgecolor": BLUE if first else _GREY,
                "linewidth": 1.8 if first else 0.8,
            },
        )
    ax.set_xlim(0, width / scale)
    ax.set_ylim(0, 1)
    ax.set_axis_off()
    if title:
        ax.set_title(title, fontsize=_FONT + 1, parse_math=False)
    return ax


def save_hasse_diagrams(
    orders: Sequence[PartialOrder],
    path: str | Path,
    *,
    titles: Sequence[str] = (),
    highlight: Iterable[tuple[str, str]] = (),
) -> Path:
    """Draw partial orders beside each other into a file; its ending says of which kind (.png, .pdf, .svg)."""
    path, thick = Path(path), list(highlight)
    labels = [[broken(name, _LINE) for name in order.optimizers] for order in orders]
    layouts = [_layout(order, names) for order, names in zip(orders, labels, strict=True)]
    figure = _figure(layouts, [_height(layout, names) for layout, names in zip(layouts, labels, strict=True)])
    widths = [layout.width for layout in layouts]
    for place, (order, ax) in enumerate(zip(orders, _side_by_side(figure, widths), strict=True)):
        plot_hasse_diagram(order, ax=ax, title=titles[place] if place < len(titles) else None, highlight=thick)
    try:
        figure.savefig(path)
    except (ValueError, OSError) as problem:
        raise InvalidInputError(f"The figure cannot be saved as {path}: {' '.join(str(problem).split())}") from None
    return path


def _side_by_side(figure: Figure, widths: Sequence[float]) -> list[Any]:
    axes = figure.subplots(1, len(widths), squeeze=False, gridspec_kw={"width_ratios": list(widths)})
    return list(axes[0])


def _box(labels: Sequence[str]) -> float:
    """Height of the highest box."""
    return max(label.count("\n") + 1 for label in labels) * _FONT * 1.25 + 2 * _PAD


def _height(layout: Layout, labels: Sequence[str]) -> float:
    return (_box(labels) + _BETWEEN) * (max(layout.layer) + 1)


def _figure(layouts: Sequence[Layout], heights: Sequence[float]) -> Figure:
    """Make a figure with room for some diagrams beside each other."""
    module = require("matplotlib.figure", extra="plots", who="A Hasse diagram")
    width = sum(max(layout.width + 4 * _GAP, 150.0) for layout in layouts)
    height = max(heights) + 40
    figure: Figure = module.Figure(figsize=(width / _POINTS, height / _POINTS), dpi=120)
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.02, top=1 - 30 / height, wspace=0.04)
    return figure


def _layout(order: PartialOrder, labels: Sequence[str]) -> Layout:
    """Lay out boxes that are as large as their names."""
    text = require("matplotlib.textpath", extra="plots", who="A Hasse diagram")
    font = require("matplotlib.font_manager", extra="plots", who="A Hasse diagram").FontProperties()

    def width(line: str) -> float:
        return float(text.text_to_path.get_text_width_height_descent(line, font, False)[0])

    # The width is that of the size of the font, which is the default one.
    scale = _FONT / font.get_size_in_points()
    widths = [max(width(line) for line in label.split("\n")) * scale + 2 * _PAD for label in labels]
    return lay_out(order, widths, _GAP)
