"""Hasse diagrams of partial orders: better optimizers are higher, with a line to those directly below."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.extras import require
from polarbear_plugins.partial_orders.order import PartialOrder
from polarbear_plugins.plots.style import BLUE, ORANGE, save_figure
from polarbear_plugins.plots.texts import break_lines, set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_GREY = "#666666"
_FONT = 9.0
_POINTS = 72.0  # in an inch
_PAD = 5.0
_GAP = 12.0
_BETWEEN = 40.0  # from the boxes of one layer to those of the next
_LINE = 16  # characters, before a name is break_lines


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
        Axes to draw into; by default those of a new figure that is large enough.  Names shrink to fit given axes.
    highlight
        Pairs (better, worse) to draw thick and orange if there is a line between them, such as the pairs that the
        deepest orders share.
    """
    labels = [break_lines(name, _LINE) for name in order.optimizers]
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
        # Vertical beside and behind the boxes of a layer, slanted only between layers: no line crosses a box.
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
        set_title(ax, title, fontsize=_FONT + 1)
    return ax


def save_hasse_diagrams(
    orders: Sequence[PartialOrder],
    path: str | Path,
    *,
    titles: Sequence[str] = (),
    highlight: Iterable[tuple[str, str]] = (),
) -> Path:
    """Draw partial orders side by side into a file, whose suffix is its format (.png, .pdf, .svg); returns its path."""
    path, thick = Path(path), list(highlight)
    labels = [[break_lines(name, _LINE) for name in order.optimizers] for order in orders]
    layouts = [_layout(order, names) for order, names in zip(orders, labels, strict=True)]
    figure = _figure(layouts, [_height(layout, names) for layout, names in zip(layouts, labels, strict=True)])
    widths = [layout.width for layout in layouts]
    for place, (order, ax) in enumerate(zip(orders, _side_by_side(figure, widths), strict=True)):
        plot_hasse_diagram(order, ax=ax, title=titles[place] if place < len(titles) else None, highlight=thick)
    return save_figure(figure, path)


def _side_by_side(figure: Figure, widths: Sequence[float]) -> list[Any]:
    axes = figure.subplots(1, len(widths), squeeze=False, gridspec_kw={"width_ratios": list(widths)})
    return list(axes[0])


def _box(labels: Sequence[str]) -> float:
    """Height of the tallest box."""
    return max(label.count("\n") + 1 for label in labels) * _FONT * 1.25 + 2 * _PAD


def _height(layout: Layout, labels: Sequence[str]) -> float:
    return (_box(labels) + _BETWEEN) * (max(layout.layer) + 1)


def _figure(layouts: Sequence[Layout], heights: Sequence[float]) -> Figure:
    """New figure large enough for several diagrams side by side."""
    module = require("matplotlib.figure", extra="plots", who="A Hasse diagram")
    width = sum(max(layout.width + 4 * _GAP, 150.0) for layout in layouts)
    height = max(heights) + 40
    figure: Figure = module.Figure(figsize=(width / _POINTS, height / _POINTS), dpi=120)
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.02, top=1 - 30 / height, wspace=0.04)
    return figure


def _layout(order: PartialOrder, labels: Sequence[str]) -> Layout:
    """Layout of boxes that are as large as their names."""
    text = require("matplotlib.textpath", extra="plots", who="A Hasse diagram")
    font = require("matplotlib.font_manager", extra="plots", who="A Hasse diagram").FontProperties()

    def width(line: str) -> float:
        return float(text.text_to_path.get_text_width_height_descent(line, font, False)[0])

    # Widths are measured at the default size of the font.
    scale = _FONT / font.get_size_in_points()
    widths = [max(width(line) for line in label.split("\n")) * scale + 2 * _PAD for label in labels]
    return lay_out(order, widths, _GAP)


_SWEEPS = 24


_WIDTH_OF_A_LINE = 8.0  # room for a line that passes through a layer


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions in a drawing.

    Attributes
    ----------
    x
        Middle of the box of each optimizer.
    layer
        Layer of each optimizer, 0 on top: one more than that of the lowest better optimizer.
    lines
        Points ``(x, layer)`` of the line of each cover (better, worse).
    width
        Width from the left edge, at 0, to the right edge.
    """

    x: FloatArray
    layer: tuple[int, ...]
    lines: dict[tuple[int, int], list[tuple[float, int]]]
    width: float


def lay_out(order: PartialOrder, widths: Sequence[float], gap: float) -> Layout:
    """Layout of the Hasse diagram of an order in layers.

    A line that passes through a layer has its own place there, so that it runs beside the boxes.

    Parameters
    ----------
    widths
        Widths of the boxes of the optimizers.
    gap
        Smallest distance between two boxes.
    """
    count = len(order.optimizers)
    layer = [0] * count
    for item in sorted(range(count), key=lambda item: int(order.better[:, item].sum())):
        layer[item] = max((layer[above] + 1 for above in np.flatnonzero(order.better[:, item])), default=0)
    place = {name: number for number, name in enumerate(order.optimizers)}
    covers = [(place[better], place[worse]) for better, worse in order.covers()]
    # Nodes are the optimizers, and one for each layer that a line passes through.
    node_layer, node_width = list(layer), [float(width) for width in widths]
    chains: dict[tuple[int, int], list[int]] = {}
    for above, below in covers:
        passing = range(layer[above] + 1, layer[below])
        chains[above, below] = [above, *range(len(node_layer), len(node_layer) + len(passing)), below]
        node_layer += passing
        node_width += [_WIDTH_OF_A_LINE] * len(passing)
    neighbours: list[list[int]] = [[] for _ in node_layer]
    for chain in chains.values():
        for one, other in itertools.pairwise(chain):
            neighbours[one].append(other)
            neighbours[other].append(one)
    rows = [[node for node, at in enumerate(node_layer) if at == level] for level in range(max(node_layer) + 1)]
    x = _places(rows, neighbours, node_layer, np.array(node_width), gap)
    half = np.array(node_width) / 2
    x -= (x - half).min()
    lines = {ends: [(float(x[node]), node_layer[node]) for node in chain] for ends, chain in chains.items()}
    return Layout(x[:count], tuple(layer), lines, float((x + half).max()))


def _places(
    rows: list[list[int]], neighbours: list[list[int]], layer: Sequence[int], width: FloatArray, gap: float
) -> FloatArray:
    """Positions of the nodes: ordered by the means of their neighbours, then as close to these means as they fit."""
    x = np.zeros(width.size)
    for row in rows:
        x[row] = _spread(np.zeros(len(row)), width[row], gap)
    best, fewest = [list(row) for row in rows], np.inf
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for level in range(len(rows)) if down else range(len(rows) - 1, -1, -1):
            beside = level - 1 if down else level + 1
            mean = {
                node: float(np.mean([x[other] for other in neighbours[node] if layer[other] == beside] or [x[node]]))
                for node in rows[level]
            }
            rows[level] = sorted(rows[level], key=lambda node: (mean[node], x[node]))
            x[rows[level]] = _spread(np.array([mean[node] for node in rows[level]]), width[rows[level]], gap)
        crossings = _crossings(rows, neighbours, layer)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    for row in best:
        x[row] = _spread(np.zeros(len(row)), width[row], gap)
    for _ in range(_SWEEPS):
        for row in best:
            wanted = np.array([np.mean([x[other] for other in neighbours[node]] or [x[node]]) for node in row])
            x[row] = _spread(wanted, width[row], gap)
    return x


def _crossings(rows: list[list[int]], neighbours: list[list[int]], layer: Sequence[int]) -> int:
    rank = {node: place for row in rows for place, node in enumerate(row)}
    total = 0
    for level, row in enumerate(rows[:-1]):
        ends = [(rank[a], rank[b]) for a in row for b in neighbours[a] if layer[b] == level + 1]
        total += sum((a - c) * (b - d) < 0 for place, (a, b) in enumerate(ends) for c, d in ends[:place])
    return total


def _spread(wanted: FloatArray, width: FloatArray, gap: float) -> FloatArray:
    """Positions closest to ``wanted``, in this order, at which boxes do not overlap (least squares, by pooling)."""
    offset = np.concatenate(([0.0], np.cumsum((width[1:] + width[:-1]) / 2 + gap)))
    blocks: list[tuple[float, int]] = []  # mean and size
    for value in wanted - offset:
        mean, size = float(value), 1
        while blocks and blocks[-1][0] >= mean:
            before, more = blocks.pop()
            mean, size = (mean * size + before * more) / (size + more), size + more
        blocks.append((mean, size))
    pooled: FloatArray = np.repeat([mean for mean, _ in blocks], [size for _, size in blocks])
    return pooled + offset
