from __future__ import annotations

import numpy as np
import pytest

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.options import read_options, whole_number, whole_numbers

READERS = {"dimension": whole_number(2, 40), "functions": whole_numbers(1, 24)}


def test_text_and_python_values_mean_the_same() -> None:
    texts = read_options({"dimension": "5", "functions": "1, 3, 5-8"}, READERS, "It")
    values = read_options({"dimension": np.int64(5), "functions": [1, 3, "5-8"]}, READERS, "It")
    assert texts == values == {"dimension": 5, "functions": (1, 3, 5, 6, 7, 8)}


def test_options_that_are_not_given_are_not_there() -> None:
    assert read_options({}, READERS, "It") == {}


def test_an_unknown_option_is_refused_with_the_names_of_all_that_exist() -> None:
    with pytest.raises(InvalidInputError, match=r"^It has no option 'dim'\. It takes dimension, functions\.$"):
        read_options({"dim": 5}, READERS, "It")


@pytest.mark.parametrize("value", [1, 41, "1", "five", "", 5.0, None, True, [5]])
def test_what_is_no_whole_number_within_the_bounds_is_refused(value: object) -> None:
    with pytest.raises(InvalidInputError, match="It: dimension must be a whole number of at"):
        read_options({"dimension": value}, READERS, "It")


@pytest.mark.parametrize(
    ("value", "numbers"), [(7, (7,)), ("2-2", (2,)), ("3,1-4,3", (3, 1, 2, 4)), (range(4, 6), (4, 5))]
)
def test_ranges_keep_their_order_and_give_each_number_once(value: object, numbers: tuple[int, ...]) -> None:
    assert whole_numbers(1, 24)(value, "functions") == numbers


@pytest.mark.parametrize(
    "value", ["", "0", "25", "20-25", "8-5", "1,,2", "1-", "-3", "a-b", "1.5", 1.5, None, [], [True], {"1": 1}, b"1"]
)
def test_what_is_no_range_is_refused(value: object) -> None:
    with pytest.raises(InvalidInputError, match=r"^functions must "):
        whole_numbers(1, 24)(value, "functions")
