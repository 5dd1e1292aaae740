from __future__ import annotations

import itertools
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from polarbear_plugins.partial_orders import PartialOrder
from polarbear_plugins.partial_orders.order import from_criteria
from polarbear_plugins.plots.hasse import lay_out, plot_hasse_diagram, save_hasse_diagrams

NAMES = ["RANDOMSEARCH", "PSO", "G3PCX", "MOS", "BIPOP-CMA-ES", "IPOP-CMA-ES", "FULLNEWUOA", "(1+2_m^s) CMA-ES"]
NAMES += ["iAMALGAM", "a_very_long_name_without_any_end_$x^2$", "NELDER-DOERR"]


def random_order(seed: int, criteria: int) -> PartialOrder:
    values = np.random.default_rng(seed).normal(size=(11, criteria))
    return from_criteria(pd.DataFrame(values, index=NAMES))


@given(st.integers(0, 10**6), st.integers(1, 4))
@settings(max_examples=40)
def test_boxes_of_a_layer_keep_their_distance_and_better_stands_above(seed: int, criteria: int) -> None:
    order = random_order(seed, criteria)
    widths = [10.0 + 7 * place for place in range(11)]
    layout = lay_out(order, widths, gap=4)
    for i, j in itertools.permutations(range(11), 2):
        if order.better[i, j]:
            assert layout.layer[i] < layout.layer[j]
        if layout.layer[i] == layout.layer[j]:
            assert abs(layout.x[i] - layout.x[j]) >= (widths[i] + widths[j]) / 2 + 4 - 1e-9
    assert (layout.x - np.array(widths) / 2).min() >= -1e-9
    assert (layout.x + np.array(widths) / 2).max() <= layout.width + 1e-9


@given(st.integers(0, 10**6), st.integers(1, 4))
@settings(max_examples=40)
def test_a_line_for_each_cover_passes_beside_the_boxes_of_other_layers(seed: int, criteria: int) -> None:
    order = random_order(seed, criteria)
    widths = [10.0 + 7 * place for place in range(11)]
    layout = lay_out(order, widths, gap=4)
    assert {(NAMES[i], NAMES[j]) for i, j in layout.lines} == set(order.covers())
    for (above, below), points in layout.lines.items():
        assert [layer for _, layer in points] == list(range(layout.layer[above], layout.layer[below] + 1))
        for x, layer in points[1:-1]:
            others = [place for place in range(11) if layout.layer[place] == layer]
            assert all(abs(x - layout.x[place]) > widths[place] / 2 for place in others)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("inches", [None, 9, 3])
def test_names_do_not_overlap_in_new_or_given_axes(seed: int, inches: int | None) -> None:
    figure_module = pytest.importorskip("matplotlib.figure")
    agg = pytest.importorskip("matplotlib.backends.backend_agg")
    given_axes = None if inches is None else figure_module.Figure(figsize=(inches, inches)).subplots()
    ax = plot_hasse_diagram(random_order(seed, 3), ax=given_axes, title="f1")
    assert given_axes in (None, ax)
    renderer = agg.FigureCanvasAgg(ax.figure).get_renderer()
    ax.figure.draw(renderer)
    assert len(ax.texts) == 11
    boxes = [text.get_bbox_patch().get_window_extent(renderer) for text in ax.texts]
    assert not [(a, b) for a, b in itertools.combinations(range(11), 2) if boxes[a].overlaps(boxes[b])]
    frame = ax.get_window_extent(renderer)
    assert min(box.x0 for box in boxes) >= frame.x0 - 1
    assert max(box.x1 for box in boxes) <= frame.x1 + 1


def test_highlighted_edges_stand_out() -> None:
    pytest.importorskip("matplotlib")
    order = random_order(0, 2)
    ax = plot_hasse_diagram(order, highlight=order.covers()[:2])
    assert sorted(line.get_linewidth() for line in ax.lines)[-3:] == [1.0, 2.6, 2.6]


def test_several_orders_are_saved_beside_each_other(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = save_hasse_diagrams([random_order(0, 2), random_order(1, 3)], tmp_path / "two.png", titles=["one", "two"])
    assert path.read_bytes().startswith(b"\x89PNG")
