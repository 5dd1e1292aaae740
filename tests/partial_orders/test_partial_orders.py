from __future__ import annotations

import copy
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from builders import column_kinds
from hypothesis import given

from polarbear_plugins.errors import InvalidInputError, PolarBearError
from polarbear_plugins.partial_orders import PartialOrder
from polarbear_plugins.partial_orders.order import IndifferenceError, from_criteria

INF, NAN = float("inf"), float("nan")


def frame(*rows: tuple[float, ...]) -> pd.DataFrame:
    return pd.DataFrame(rows, index=list("abcdefgh")[: len(rows)], columns=[f"c{i}" for i in range(len(rows[0]))])


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    optimizers, criteria = draw(st.integers(2, 6)), draw(st.integers(1, 4))
    row = st.tuples(*[st.sampled_from([-INF, -1.0, 0.0, 1.0, 2.5, INF])] * criteria)
    return frame(*draw(st.lists(row, min_size=optimizers, max_size=optimizers)))


def test_better_is_better_in_one_criterion_and_worse_in_none() -> None:
    order = from_criteria(frame((1, 5), (2, 5), (3, 4), (3, 6)))
    assert order.edges() == [("a", "b"), ("a", "d"), ("b", "d"), ("c", "d")]
    assert order.incomparable() == [("a", "c"), ("b", "c")]


@given(frames())
def test_every_edge_is_what_the_criteria_say_of_the_pair(values: pd.DataFrame) -> None:
    order = from_criteria(values, indifferent="incomparable")
    for i, one in enumerate(values.to_numpy()):
        for j, other in enumerate(values.to_numpy()):
            assert order.better[i, j] == (all(one <= other) and any(one < other))


@given(frames())
def test_maximizing_is_minimizing_the_negative(values: pd.DataFrame) -> None:
    turned = values.assign(c0=-values["c0"])
    assert from_criteria(values, indifferent="incomparable") == from_criteria(turned, "c0", indifferent="incomparable")


@given(frames())
def test_only_the_order_of_the_values_counts(values: pd.DataFrame) -> None:
    stretched = np.arctan(values) * 7 + 3
    assert from_criteria(values, indifferent="incomparable") == from_criteria(stretched, indifferent="incomparable")


def test_infinity_is_the_worst_value_and_equal_to_itself() -> None:
    assert from_criteria(frame((1, INF), (2, INF), (3, 9))).edges() == [("a", "b")]
    assert from_criteria(frame((-INF, 1), (5, 1))).edges() == [("a", "b")]


def test_equality_in_all_criteria_is_refused_unless_it_may_count_as_incomparable() -> None:
    values = frame((1, 2), (1, 2), (3, 3))
    with pytest.raises(IndifferenceError, match="'a' and 'b' are equal in all criteria, which is indifference"):
        from_criteria(values)
    order = from_criteria(values, indifferent="incomparable")
    assert order.edges() == [("a", "c"), ("b", "c")]
    assert order.incomparable() == [("a", "b")]


def test_a_missing_value_is_refused_or_means_what_is_said() -> None:
    values = frame((1, 2), (2, NAN), (3, 3))
    with pytest.raises(InvalidInputError, match="The criterion 'c1' is missing for 'b'"):
        from_criteria(values)
    assert from_criteria(values, missing="worst").edges() == [("a", "b"), ("a", "c")]
    assert from_criteria(values, missing="incomparable").edges() == [("a", "c")]


def test_two_optimizers_that_miss_the_same_are_not_indifferent_but_unknown() -> None:
    values = frame((1, NAN), (1, NAN), (0, 3))
    assert from_criteria(values, missing="incomparable").edges() == []
    with pytest.raises(IndifferenceError):
        from_criteria(values, missing="worst")


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (frame((1, 2)), {}, "at least 2 and at most 64 optimizers, got 1"),
        (frame((1,), (2,)).iloc[:, :0], {}, "at least one column, got none"),
        (frame((1, 2), (2, 1)).set_axis(["a", "a"]), {}, "optimizers: 'a' is named more than once"),
        (frame((1, 2), (2, 1)).set_axis(["c", "c"], axis=1), {}, "criteria: 'c' is named more than once"),
        (frame((1, 2), (2, 1)).assign(c1=["fast", "slow"]), {}, "criterion 'c1': expected numbers"),
        (frame((1, 2), (2, 1)), {"maximize": ["c9"]}, "'c9' is not one of the criteria c0, c1"),
        (frame((1, 2), (2, 1)), {"indifferent": "yes"}, 'expected "refuse" or "incomparable"'),
        (frame((1, 2), (2, 1)), {"missing": "best"}, 'expected "refuse", "worst" or "incomparable"'),
        (frame((1, 2), (2, 1)).set_axis([1.5, 2.5]), {}, "expected a name"),
        ([[1, 2], [2, 1]], {}, "expected a data frame"),
    ],
)
def test_bad_criteria_are_refused(values: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PolarBearError, match=message):
        from_criteria(values, **options)


def test_missing_numbers_of_pandas_are_missing() -> None:
    values = frame((1, 2), (2, 1)).assign(c1=pd.array([1, None], dtype="Int64"))
    with pytest.raises(InvalidInputError, match="The criterion 'c1' is missing for 'b'"):
        from_criteria(values)


def test_a_cycle_is_refused_with_its_members() -> None:
    with pytest.raises(InvalidInputError, match="Not a partial order: it has the cycle b > c > d > b"):
        PartialOrder.from_edges("abcd", [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")])
    with pytest.raises(InvalidInputError, match="the cycle a > a"):
        PartialOrder.from_edges("ab", [("a", "a")], close=True)


def test_what_is_not_transitive_is_refused_with_an_example_and_can_be_closed() -> None:
    edges = [("a", "b"), ("b", "c"), ("c", "d")]
    with pytest.raises(InvalidInputError, match="a > b and b > c, but not a > c"):
        PartialOrder.from_edges("abcd", edges)
    order = PartialOrder.from_edges("abcd", edges, close=True)
    assert len(order.edges()) == 6
    assert order.covers() == edges


@pytest.mark.parametrize(
    ("optimizers", "better", "message"),
    [
        (["a"], [[0]], "at least 2"),
        ([f"a{i}" for i in range(65)], np.zeros((65, 65)), "at most 64"),
        (["a", "a"], np.zeros((2, 2)), "named more than once"),
        (["a", ""], np.zeros((2, 2)), "empty"),
        (["a", "b"], np.zeros((2, 3)), "a matrix of 2 x 2"),
        (["a", "b"], [[0, 0.5], [0, 0]], "true or false"),
        (["a", "b"], [[0, NAN], [0, 0]], "true or false"),
        (["a", "b"], [["x", "y"], ["x", "y"]], "expected numbers"),
    ],
)
def test_bad_matrices_are_refused(optimizers: list[str], better: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        PartialOrder(optimizers, better)


@pytest.mark.parametrize(
    ("edges", "message"), [([("a", "x")], "'x' is not one of"), (["ab"], "pairs"), ([(1,)], "pairs")]
)
def test_bad_edges_are_refused(edges: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        PartialOrder.from_edges("ab", edges)


@given(frames())
def test_an_order_equals_itself_with_the_optimizers_in_another_sequence(values: pd.DataFrame) -> None:
    order = from_criteria(values, indifferent="incomparable")
    turned = from_criteria(values.iloc[::-1], indifferent="incomparable")
    assert (order, hash(order)) == (turned, hash(turned))
    assert order.reversed().reversed() == order
    assert (order.reversed() == order) == (not order.edges())


@given(frames())
def test_covers_generate_the_order(values: pd.DataFrame) -> None:
    order = from_criteria(values, indifferent="incomparable")
    assert PartialOrder.from_edges(order.optimizers, order.covers(), close=True) == order


def test_an_order_cannot_be_changed_and_is_copied() -> None:
    order = PartialOrder.from_edges("ab", [("a", "b")])
    with pytest.raises(AttributeError):
        order.optimizers = ("x", "y")
    with pytest.raises(ValueError, match="read-only"):
        order.better[0, 0] = True
    assert copy.deepcopy(order) == order
    assert order != PartialOrder.from_edges("ab", [])
    assert order != "a > b"


def test_among_names_who_is_not_there() -> None:
    order = PartialOrder.from_edges("abc", [("a", "b")])
    assert order.among("ba").edges() == [("a", "b")]
    with pytest.raises(InvalidInputError, match="'x' is not one of the optimizers"):
        order.among("ax")


def test_partial_orders_give_their_pairs() -> None:
    order = PartialOrder.from_edges("abc", [("a", "b"), ("b", "c")], close=True)
    frame = order.to_pandas()
    assert column_kinds(frame) == {"optimizer": "names", "other": "names", "better": "bool", "cover": "bool"}
    assert len(frame) == 6
    better = frame[frame["better"]]
    assert list(zip(better["optimizer"], better["other"], strict=True)) == order.edges()
    covers = frame[frame["cover"]]
    assert list(zip(covers["optimizer"], covers["other"], strict=True)) == order.covers() == [("a", "b"), ("b", "c")]
