from __future__ import annotations

import numpy as np
import pytest

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.partial_orders import PartialOrder, SuiteDepth, measure_depth

pytest.importorskip("matplotlib")

from polarbear_plugins.plots import plot_above, plot_depths

EDGES = {"f1": [("a", "b")], "f2": [("a", "c")], "f3": [("b", "a"), ("a", "c")], "f4": [("a", "c")]}
ORDERS = {name: PartialOrder.from_edges("abc", pairs, close=True) for name, pairs in EDGES.items()}


def test_a_cell_says_in_how_many_orders_its_row_is_above_its_column() -> None:
    ax = plot_above(ORDERS)
    rows, columns = ([label.get_text() for label in labels] for labels in (ax.get_yticklabels(), ax.get_xticklabels()))
    assert rows == columns == ["a", "b", "c"]
    shown = {(rows[round(text.get_position()[1])], columns[round(text.get_position()[0])]): text for text in ax.texts}
    assert {cell: text.get_text() for cell, text in shown.items()} == {
        ("a", "b"): "1",
        ("a", "c"): "3",
        ("b", "a"): "1",
        ("b", "c"): "1",
        ("c", "a"): "0",
        ("c", "b"): "0",
    }


def test_numbers_that_would_be_too_small_are_left_out() -> None:
    names = [str(number) for number in range(64)]
    from matplotlib.figure import Figure

    ax = Figure(figsize=(3, 3)).subplots()
    assert plot_above([PartialOrder.from_edges(names, [])] * 2, ax=ax) is ax
    assert not ax.texts


def test_every_function_has_a_dot_at_its_depth_and_the_ends_are_named() -> None:
    found = measure_depth(ORDERS)
    ax = plot_depths(found)
    [dots] = [made for made in ax.collections if len(made.get_offsets()) == 4]
    assert np.asarray(dots.get_offsets())[:, 0].tolist() == found.depths.tolist()
    assert len(np.unique(np.asarray(dots.get_offsets()), axis=0)) == 4  # equal depths do not hide each other
    assert {text.get_text() for text in ax.texts} == {"f2, f4", "f1, f3"}


def test_no_function_is_named_if_all_depths_are_equal() -> None:
    found = measure_depth([PartialOrder.from_edges("ab", [("a", "b")]), PartialOrder.from_edges("ab", [("b", "a")])])
    ax = plot_depths(found)
    assert not ax.texts
    assert "none is more central than another" in ax.get_title()


def test_sampled_depths_have_lines_of_two_errors() -> None:
    orders = (ORDERS["f1"], ORDERS["f2"])
    found = SuiteDepth(("f1", "f2"), orders, np.array([0.2, 0.6]), np.array([0.01, 0.02]), 0.0)
    lines = [made.get_segments() for made in plot_depths(found).collections if hasattr(made, "get_segments")]
    widths = sorted(float(np.ptp(segment[:, 0])) for segments in lines for segment in segments)
    assert widths == pytest.approx([0.04, 0.08])


def test_anything_else_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="expected a SuiteDepth"):
        plot_depths([0.1, 0.2])  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="expected partial orders, got none"):
        plot_above([])
