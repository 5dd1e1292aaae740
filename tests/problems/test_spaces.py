from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.problems.spaces import (
    Categorical,
    Condition,
    ConfigurationSpace,
    Float,
    Integer,
    Parameter,
    Value,
)


def ordered(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[list[float]]:
    return st.lists(numbers, min_size=2, max_size=2).map(sorted)


PARAMETERS = st.one_of(
    ordered(st.floats(-1e6, 1e6)).map(lambda bounds: Float(*bounds)),
    ordered(st.floats(1e-6, 1e6)).map(lambda bounds: Float(*bounds, log=True)),
    ordered(st.integers(-(10**9), 10**9)).map(lambda bounds: Integer(*bounds)),
    ordered(st.integers(1, 5)).map(lambda bounds: Integer(*bounds, log=True)),
    st.lists(st.booleans() | st.integers() | st.text(max_size=3), min_size=1, max_size=4).map(
        lambda choices: Categorical(tuple(choices))
    ),
)


@st.composite
def spaces(draw: st.DrawFn) -> ConfigurationSpace:
    """Spaces in which later parameters depend on earlier ones, listed in any order."""
    parameters = draw(st.lists(PARAMETERS, min_size=1, max_size=6))
    conditions = [
        Condition(f"p{child}", parent=f"p{parent}", values=draw(values_of(parameters[parent])))
        for child in range(1, len(parameters))
        for parent in draw(st.lists(st.integers(0, child - 1), max_size=2))
    ]
    order = draw(st.permutations(range(len(parameters))))
    return ConfigurationSpace({f"p{k}": parameters[k] for k in order}, conditions)


def values_of(parameter: Parameter) -> st.SearchStrategy[tuple[Value, ...]]:
    if isinstance(parameter, Categorical):
        some: st.SearchStrategy[Value] = st.sampled_from(parameter.choices)
    elif isinstance(parameter, Integer):
        some = st.integers(parameter.lower, parameter.upper)
    else:
        some = st.floats(parameter.lower, parameter.upper)
    return st.lists(some, min_size=1, max_size=3).map(tuple)


def support_vector_machine() -> ConfigurationSpace:
    """A chain (degree needs the kernel, coefficient needs the degree) and two conditions on one child (gamma)."""
    return ConfigurationSpace(
        {
            "coefficient": Float(0.0, 1.0),
            "degree": Integer(1, 5),
            "kernel": Categorical(("linear", "radial", "polynomial")),
            "scale": Categorical((True, False)),
            "gamma": Float(1e-4, 1.0, log=True),
        },
        [
            Condition("degree", parent="kernel", values=("polynomial",)),
            Condition("coefficient", parent="degree", values=(3, 4, 5)),
            Condition("gamma", parent="kernel", values=("radial", "polynomial")),
            Condition("gamma", parent="scale", values=(True,)),
        ],
    )


@given(spaces(), st.integers(0, 2**32))
def test_every_sample_passes_the_check(space: ConfigurationSpace, seed: int) -> None:
    space.check(space.sample(np.random.default_rng(seed)))


@settings(max_examples=50)
@given(spaces(), st.integers(0, 2**32))
def test_a_sample_sets_the_active_parameters_and_no_others(space: ConfigurationSpace, seed: int) -> None:
    drawn = space.sample(np.random.default_rng(seed))
    assert tuple(drawn) == space.active(drawn)


@settings(max_examples=50)
@given(spaces(), st.integers(0, 2**32))
def test_a_sample_without_one_of_its_parameters_fails_the_check(space: ConfigurationSpace, seed: int) -> None:
    drawn = space.sample(np.random.default_rng(seed))
    for name in drawn:
        with pytest.raises(InvalidInputError):
            space.check({other: value for other, value in drawn.items() if other != name})


@settings(max_examples=50)
@given(spaces(), st.integers(0, 2**32))
def test_a_sample_with_an_inactive_parameter_fails_the_check(space: ConfigurationSpace, seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = space.sample(rng)
    for name in set(space.parameters) - set(drawn):
        with pytest.raises(InvalidInputError, match=f"The parameter '{name}' is set, but is active only if"):
            space.check({**drawn, name: space.parameters[name].sample(rng)})


@settings(max_examples=50)
@given(spaces(), st.integers(0, 2**32))
def test_the_same_seed_draws_the_same_configuration(space: ConfigurationSpace, seed: int) -> None:
    assert space.sample(np.random.default_rng(seed)) == space.sample(np.random.default_rng(seed))


@settings(max_examples=50)
@given(spaces())
def test_the_repr_of_a_space_makes_an_equal_space(space: ConfigurationSpace) -> None:
    again = eval(repr(space))  # noqa: S307 - our own text
    assert again == space
    assert hash(again) == hash(space)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda space: pickle.loads(pickle.dumps(space))])  # noqa: S301
@settings(max_examples=30)
@given(space=spaces())
def test_copies_and_pickles_are_equal_to_the_space(
    duplicate: Callable[[ConfigurationSpace], ConfigurationSpace], space: ConfigurationSpace
) -> None:
    twin = duplicate(space)
    assert twin == space
    assert repr(twin) == repr(space)
    assert twin.sample(np.random.default_rng(0)) == space.sample(np.random.default_rng(0))


def test_a_parameter_without_conditions_is_always_active() -> None:
    assert support_vector_machine().active({}) == ("kernel", "scale")


def test_active_parameters_come_in_the_order_of_the_space() -> None:
    configuration = {"gamma": 0.1, "scale": True, "kernel": "polynomial", "degree": 3, "coefficient": 0.5}
    assert support_vector_machine().active(configuration) == ("coefficient", "degree", "kernel", "scale", "gamma")


def test_a_parameter_at_the_end_of_a_chain_is_inactive_when_the_chain_breaks_at_its_start() -> None:
    configuration = {"kernel": "linear", "scale": False, "degree": 3, "coefficient": 0.5}
    assert support_vector_machine().active(configuration) == ("kernel", "scale")


@pytest.mark.parametrize(("kernel", "scale", "active"), [("radial", True, True), ("radial", False, False)])
def test_several_conditions_on_one_parameter_must_all_hold(kernel: str, scale: bool, active: bool) -> None:
    assert ("gamma" in support_vector_machine().active({"kernel": kernel, "scale": scale})) is active


def test_two_conditions_on_the_same_parent_leave_what_both_allow() -> None:
    space = ConfigurationSpace(
        {"parent": Integer(1, 3), "child": Integer(0, 1)},
        [Condition("child", "parent", (1, 2)), Condition("child", "parent", (2, 3))],
    )
    assert [n for n in (1, 2, 3) if "child" in space.active({"parent": n})] == [2]


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ({"kernel": "linear", "scale": True, "colour": 1}, "no parameter 'colour'. It has 'coefficient', 'degree',"),
        ({"kernel": "linear"}, r"'scale' is missing; expected Categorical\(choices=\(True, False\)\)"),
        ({"kernel": "cubic", "scale": True}, "'kernel' is 'cubic'; expected Categorical"),
        ({"kernel": "linear", "scale": 1}, "'scale' is 1; expected Categorical"),
        (
            {"kernel": "linear", "scale": True, "degree": 3},
            "'degree' is set, but is active only if kernel is polynomial",
        ),
        (
            {"kernel": "radial", "scale": False, "gamma": 0.1},
            "'gamma' is set, but is active only if kernel is radial or polynomial and scale is True",
        ),
        ({"kernel": "radial", "scale": True, "gamma": 2.0}, r"'gamma' is 2\.0; expected Float\(lower=0\.0001, upper"),
        ({"kernel": "polynomial", "scale": False, "degree": True}, "'degree' is True; expected Integer"),
        ({"kernel": "polynomial", "scale": False, "degree": 2.0}, r"'degree' is 2\.0; expected Integer"),
    ],
)
def test_a_wrong_configuration_is_refused_by_name(configuration: dict[str, Value], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        support_vector_machine().check(configuration)


@pytest.mark.parametrize(
    ("parameter", "inside", "outside"),
    [
        (Float(0.0, 1.0), (0.0, 1.0, 0.5, 1, 0), (-1e-9, 1.1, math.nan, math.inf, True, "0.5", None)),
        (Integer(0, 3), (0, 3, 1), (-1, 4, 1.0, True, False, "1", None, math.nan)),
        (Categorical((1, "a", False)), (1, "a", False), (True, 1.0, "1", 0, None)),
        (Categorical((1.0,)), (1.0,), (1, True)),
    ],
)
def test_a_parameter_accepts_its_own_type_and_range(
    parameter: Parameter, inside: tuple[object, ...], outside: tuple[object, ...]
) -> None:
    assert all(parameter.accepts(value) for value in inside)
    assert not any(parameter.accepts(value) for value in outside)


@pytest.mark.parametrize("kind", [Float, Integer])
@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((1, 0), "A parameter needs finite bounds with lower <= upper, got 1.* and 0.*"),
        ((math.nan, 1), "The bound of an? .*parameter.* number, got nan"),
        ((0, math.nan), "The bound of an? .*parameter.* number, got nan"),
        ((-math.inf, 0), "The bound of an? .*parameter.* number, got -inf"),
        ((0, math.inf), "The bound of an? .*parameter.* number, got inf"),
    ],
)
def test_bounds_that_leave_no_finite_range_are_refused(
    kind: type[Float] | type[Integer], bounds: tuple[float, float], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"^{message}\\.$"):
        kind(*bounds)


@pytest.mark.parametrize("kind", [Float, Integer])
@pytest.mark.parametrize("lower", [0, -1])
def test_a_log_scale_needs_a_positive_lower_bound(kind: type[Float] | type[Integer], lower: int) -> None:
    with pytest.raises(InvalidInputError, match=f"positive lower bound, got {lower}"):
        kind(lower, 10, log=True)


def test_a_categorical_parameter_needs_a_choice() -> None:
    with pytest.raises(InvalidInputError, match="at least one choice"):
        Categorical(())


def test_an_integer_needs_whole_bounds() -> None:
    with pytest.raises(InvalidInputError, match=r"0\.2"):
        Integer(0.2, 0.7)


def test_bounds_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="'low'"):
        Float("low", 1)


@pytest.mark.parametrize(("kind", "bounds"), [(Integer, (0, 10**30)), (Float, (-1.7e308, 1.7e308))])
def test_a_range_too_wide_to_draw_from_is_refused(kind: type[Float] | type[Integer], bounds: tuple[int, int]) -> None:
    with pytest.raises(InvalidInputError, match="bound"):
        kind(*bounds)


@pytest.mark.parametrize("parameter", [Integer(-(2**61), 2**61), Float(-8e307, 8e307)])
def test_a_range_that_was_accepted_can_be_drawn_from(parameter: Float | Integer) -> None:
    assert parameter.accepts(parameter.sample(np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (Condition("child", "nobody", (1,)), "names the parameter 'nobody', which the space does not have"),
        (Condition("nobody", "parent", (1,)), "names the parameter 'nobody', which the space does not have"),
        (
            Condition("child", "parent", (1, 9)),
            "on 'child' requires parent = 9, which is not a value of that parameter",
        ),
        (Condition("child", "parent", (True,)), "requires parent = True, which is not a value of that parameter"),
    ],
)
def test_a_condition_that_can_never_be_asked_is_refused(condition: Condition, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ConfigurationSpace({"parent": Integer(0, 3), "child": Integer(0, 3)}, [condition])


@pytest.mark.parametrize("circle", ["a", "ab", "abc"])
def test_conditions_in_a_circle_are_refused_with_the_names_in_it(circle: str) -> None:
    parameters = {name: Integer(0, 1) for name in "abcd"}
    conditions = [Condition(name, circle[k - 1], (1,)) for k, name in enumerate(circle)]
    with pytest.raises(InvalidInputError, match=f"on {', '.join(map(repr, circle))} depend on each other in a circle"):
        ConfigurationSpace(parameters, conditions)


def test_a_space_does_not_change_with_the_mapping_it_was_made_of() -> None:
    parameters: dict[str, Parameter] = {"a": Integer(0, 1)}
    space = ConfigurationSpace(parameters)
    parameters["b"] = Integer(0, 1)
    assert list(space.parameters) == ["a"]
    with pytest.raises(TypeError, match="does not support item assignment"):
        space.parameters["b"] = Integer(0, 1)


def test_spaces_are_equal_whatever_the_order_of_their_conditions() -> None:
    space = support_vector_machine()
    turned = ConfigurationSpace(space.parameters, space.conditions[::-1])
    assert turned == space
    assert hash(turned) == hash(space)
    assert ConfigurationSpace(space.parameters, space.conditions[1:]) != space
    assert space != "a space"


@pytest.mark.parametrize("log", [False, True])
def test_samples_of_an_integer_reach_every_value(log: bool) -> None:
    rng = np.random.default_rng(0)
    assert {Integer(1, 6, log=log).sample(rng) for _ in range(500)} == {1, 2, 3, 4, 5, 6}


@pytest.mark.parametrize(
    ("parameter", "middle"),
    [(Float(1.0, 100.0), 50.5), (Float(1.0, 100.0, log=True), 10.0), (Integer(1, 10_000, log=True), 70.7)],
)
def test_half_of_the_samples_lie_below_the_middle_of_the_scale(parameter: Float | Integer, middle: float) -> None:
    rng = np.random.default_rng(0)
    assert sum(parameter.sample(rng) < middle for _ in range(4000)) == pytest.approx(2000, abs=130)


def test_the_bounds_of_an_integer_on_the_log_scale_have_half_a_unit_of_room_on_their_outer_side() -> None:
    rng = np.random.default_rng(0)
    ones = sum(Integer(1, 2, log=True).sample(rng) == 1 for _ in range(4000))
    assert ones == pytest.approx(4000 * math.log(1.5 / 0.5) / math.log(2.5 / 0.5), abs=120)


def test_samples_of_a_categorical_reach_every_choice_equally() -> None:
    rng = np.random.default_rng(0)
    drawn = [Categorical(("a", "b", "c", "d")).sample(rng) for _ in range(4000)]
    assert [drawn.count(choice) for choice in "abcd"] == pytest.approx([1000] * 4, abs=110)
