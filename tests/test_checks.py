from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins.checks import as_choice, as_number, as_whole_number, check_fields, optional
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.names import distinct_names
from polarbear_plugins.options import one_of, whole_number

# Bounds, numbers inside, numbers outside, and how a message describes what is expected.
RANGES: list[tuple[dict[str, float], list[float], list[float], str]] = [
    ({"above": 0}, [1e-9], [0, -1], "a positive number"),
    ({"above": 2}, [2.1], [2], "a number above 2"),
    ({"at_least": 2}, [2], [1.9], "a number of at least 2"),
    ({"at_most": 2}, [2], [2.1], "a number of at most 2"),
    ({"below": 2}, [1.9], [2], "a number below 2"),
    ({"at_least": 0, "at_most": 1}, [0, 1], [-0.1, 1.1], "a number from 0 to 1"),
    ({"at_least": 0, "below": 0.5}, [0, 0.4], [-0.1, 0.5], "a number from 0 to below 0.5"),
    ({"above": 0.5, "at_most": 1}, [0.6, 1], [0.5, 1.1], "a number above 0.5 and up to 1"),
    ({"above": 0, "below": 1}, [0.5], [0, 1], "a number between 0 and 1, both excluded"),
]


@pytest.mark.parametrize(("bounds", "inside", "outside", "expected"), RANGES)
def test_a_number_outside_its_bounds_is_refused_and_told_the_range(
    bounds: dict[str, float], inside: list[float], outside: list[float], expected: str
) -> None:
    for value in inside:
        assert as_number(value, "x", **bounds) == value
    for value in outside:
        with pytest.raises(InvalidInputError) as caught:
            as_number(value, "x", **bounds)
        assert str(caught.value) == f"x: expected {expected}, got {value:g}."


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "1", True, None, [1], 10**400])
def test_what_is_not_a_finite_number_is_refused(value: object) -> None:
    with pytest.raises(InvalidInputError, match="x: expected a finite number, got "):
        as_number(value, "x")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1, "n must be a whole number of at least 2, got 1."),
        (1001, "n must be a whole number of at most 1,000, got 1001."),
        (2.0, "n must be a whole number of at least 2, got 2.0."),
        (True, "n must be a whole number of at least 2, got True."),
        ("2", "n must be a whole number of at least 2, got '2'."),
    ],
)
def test_a_whole_number_outside_its_bounds_is_told_the_one_it_violates(value: object, message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        as_whole_number(value, "n", at_least=2, at_most=1000)
    assert str(caught.value) == message


@given(st.integers(2, 1000))
def test_whole_numbers_inside_their_bounds_are_accepted_as_numpy_has_them_too(number: int) -> None:
    for value in (number, np.int64(number)):
        found = as_whole_number(value, "n", at_least=2, at_most=1000)
        assert (found, type(found)) == (number, int)


@pytest.mark.parametrize("choices", [Literal["linear", "log", "auto"], ("linear", "log", "auto")])
def test_a_choice_is_one_of_the_names(choices: Any) -> None:
    assert as_choice("log", choices, "scale") == "log"
    with pytest.raises(InvalidInputError, match='^scale: expected "linear", "log" or "auto", got \'ln\'.$'):
        as_choice("ln", choices, "scale")


def test_what_is_optional_may_be_none_and_nothing_else() -> None:
    check = optional(partial(as_number, above=0))
    assert check(None, "x") is None
    with pytest.raises(InvalidInputError):
        check(-1, "x")


def test_each_field_is_checked_by_its_own_check() -> None:
    class Thing:
        good, bad = 1, -1

    check_fields(Thing(), {"good": partial(as_number, above=0)})
    with pytest.raises(InvalidInputError, match="^bad: expected a positive number, got -1.$"):
        check_fields(Thing(), {"good": partial(as_number, above=0), "bad": partial(as_number, above=0)})


def test_names_that_occur_twice_are_all_told() -> None:
    assert distinct_names(iter("abc"), "names") == ("a", "b", "c")
    with pytest.raises(InvalidInputError, match="^names: 'a', 'c' are named more than once.$"):
        distinct_names(iter("abcac"), "names")


def test_options_in_text_have_the_same_bounds() -> None:
    assert whole_number(1, 5)("5", "n") == 5
    with pytest.raises(InvalidInputError, match="n must be a whole number of at most 5, got 6"):
        whole_number(1, 5)("6", "n")
    with pytest.raises(InvalidInputError, match='mode: expected "a" or "b", got '):
        one_of(["a", "b"])("c", "mode")
