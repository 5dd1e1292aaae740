"""Where the boxes of a layered drawing go: order within layers, and places without overlap.  Pure numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polarbear_plugins.checks import FloatArray
from polarbear_plugins.partial_orders.order import PartialOrder

__all__ = ["Layout", "lay_out"]

_SWEEPS = 24
_WIDTH_OF_A_LINE = 8.0  # room for a line that passes through a layer


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of a drawing.

    Attributes
    ----------
    x
        Middle of the box of each optimizer.
    layer
        Its layer, 0 on top: one more than that of the lowest optimizer that is better.
    lines
        For each cover (better, worse) the points ``(x, layer)`` of its line.
    width
        From the left edge, at 0, to the right edge.
    """

    x: FloatArray
    layer: tuple[int, ...]
    lines: dict[tuple[int, int], list[tuple[float, int]]]
    width: float


def lay_out(order: PartialOrder, widths: Sequence[float], gap: float) -> Layout:
    """Lay out the Hasse diagram of an order in layers.

    A line that passes through a layer has a place of its own there, so that it runs beside the boxes.

    Parameters
    ----------
    widths
        Of the boxes of the optimizers.
    gap
        Least distance between two of them.
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
    """Order the nodes of each layer by the means of their neighbours, then move them as near to these as they fit."""
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
    """Nearest places in this sequence whose boxes keep their distance (least squares, by pooling neighbours)."""
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
