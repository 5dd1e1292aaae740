from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from polarbear_plugins import RankingTable, fit, select
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.rankings.summaries import add_virtual_algorithms

VALUES = [[[3.0, 1.0, 2.0], [1.0, 1.0, 0.5]], [[1.0, 3.0, 2.0], [1.0, np.nan, 0.5]], [[5.0, 4.0, np.inf]] * 2]


def table(**options: Any) -> RankingTable:
    return RankingTable.from_values(VALUES, algorithms=["a", "b", "c"], timepoints=[1, 2], **options)


def test_members_in_parallel_have_the_best_of_their_values() -> None:
    longer = add_virtual_algorithms(table(), {"a+b": ["a", "b"], "b+c": ("c", "b")})
    assert longer.algorithms == ("a", "b", "c", "a+b", "b+c")
    np.testing.assert_array_equal(longer.values[:, :, :3], VALUES)
    np.testing.assert_array_equal(longer.values[:, :, 3], [[1, 1], [1, np.nan], [4, 4]])
    np.testing.assert_array_equal(longer.values[:, :, 4], [[1, 0.5], [2, np.nan], [4, 4]])


def test_a_joint_measurement_is_ranked_like_an_algorithm() -> None:
    longer = add_virtual_algorithms(table(), {"joint": [[0.5, 2.0], [1.5, 0.1], [4.5, 4.5]]})
    assert longer.ranks[:, 0].tolist() == [[4, 2, 3, 1], [1, 4, 3, 2], [3, 1, 4, 2]]
    turned = add_virtual_algorithms(table(), {"joint": [[-0.5, -2.0], [-1.5, -0.1], [-4.5, -4.5]]}, maximize=True)
    assert turned == longer


@pytest.mark.parametrize("repetitions", ["weight", "independent"])
def test_instances_weights_and_tolerance_stay(repetitions: Any) -> None:
    one = table(instances=["f", "f", "g"], weights=[1.0, 2.0, 3.0], repetitions=repetitions, tolerance=0.25)
    longer = add_virtual_algorithms(one, {"a+b": ["a", "b"]})
    assert (longer.instances, longer.repetitions, longer.tolerance) == (("f", "g"), repetitions, 0.25)
    np.testing.assert_array_equal(longer.instance_index, one.instance_index)
    np.testing.assert_allclose(longer.weights, one.weights)


def test_members_that_complete_each_other_are_worth_more_than_their_sum() -> None:
    # a wins on even instances and is last on odd ones, b the other way round; c is always second.
    values = [[[1.0, 3.0, 2.0]], [[3.0, 1.0, 2.0]]] * 20
    plain = RankingTable.from_values(values, algorithms=["a", "b", "c"], timepoints=[1])
    longer = add_virtual_algorithms(plain, {"a+b": ["a", "b"], "c+c": ["c"]})
    choice = select(fit(longer, seed=1), among=["a+b", "c+c"])
    a, b, c = fit(plain, seed=1).ratings.mean(axis=0)[0]
    # Really always ahead; the sum of the ratings sees no difference.
    assert (a + b) / (a + b + 2 * c) < 0.6
    assert choice.values[:, 0].mean() > 0.8


@pytest.mark.parametrize(
    ("virtual", "message"),
    [
        ({}, "expected at least one name"),
        ({"x": ["a", "z"]}, "virtual 'x': there is no 'z' in the table; it has a, b, c"),
        ({"x": "ab"}, "virtual 'x': expected a list of members"),
        ({"x": [[1.0, 2.0]]}, r"virtual 'x': expected values of the shape \[3 rows, 2 timepoints\], got \[1, 2\]"),
        ({"x": []}, "virtual 'x': expected values of the shape"),
        ({"a": ["b", "c"]}, "'a' is named more than once"),
        ({" ": ["b", "c"]}, "the name is empty"),
    ],
)
def test_virtual_algorithms_that_make_no_sense_are_refused(virtual: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        add_virtual_algorithms(table(), virtual)
