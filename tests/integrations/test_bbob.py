from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

from polarbear_plugins.errors import InvalidInputError, MissingExtraError
from polarbear_plugins.integrations import bbob as module
from polarbear_plugins.integrations.bbob import BbobProblem, BbobSuite
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.testing import check_suite


def _suite(name: str, **options: object) -> BbobSuite:
    plugins = Plugins()
    plugins.register(module, "bbob")
    suite = plugins.suite(name, **options)
    assert isinstance(suite, BbobSuite)
    return suite


def _problem(suite: str, function: int, instance: int, dimension: int) -> BbobProblem:
    pytest.importorskip("ioh")
    return BbobProblem(Identity("p"), suite=suite, function=function, instance=instance, dimension=dimension)


def _reference(suite: str, function: int, instance: int, dimension: int) -> Any:
    ioh = pytest.importorskip("ioh")
    return ioh.get_problem(function, instance, dimension, getattr(ioh.ProblemClass, suite.upper()))


@pytest.mark.parametrize("name", ["bbob", "sbox"])
def test_the_suites_keep_the_contract(name: str) -> None:
    pytest.importorskip("ioh")
    check_suite(module, name, {"functions": "1,21-24", "instances": "1-2", "dimension": "2,3"}, count=6)


@pytest.mark.parametrize("name", ["bbob", "sbox"])
@pytest.mark.parametrize("function", range(1, 25))
def test_values_are_differences_from_the_optimum(name: str, function: int) -> None:
    rng = np.random.default_rng(function)
    for instance, dimension in ((1, 2), (7, 5)):
        problem, reference = (
            _problem(name, function, instance, dimension),
            _reference(name, function, instance, dimension),
        )
        for x in rng.uniform(-5, 5, (10, dimension)):
            value = reference(x) - reference.optimum.y
            assert problem.evaluate(x) == pytest.approx(value, rel=1e-12, abs=1e-9)
        # What rounding leaves at the optimum, on the steepest functions.
        assert abs(problem.evaluate(reference.optimum.x)) < 1e-6


def test_small_differences_are_not_lost_in_the_value_of_the_optimum() -> None:
    problem, reference = _problem("bbob", 1, 3, 5), _reference("bbob", 1, 3, 5)
    x = np.array(reference.optimum.x)
    x[0] += 1e-9
    assert reference(x) - reference.optimum.y == 0
    assert problem.evaluate(x) == pytest.approx(1e-18, rel=1e-5, abs=0)


def test_the_default_is_24_functions_of_5_instances_in_5_dimensions_each_once() -> None:
    pytest.importorskip("ioh")
    for name in ("bbob", "sbox"):
        names = [identity.name for identity in _suite(name).identities(0)]
        assert sorted(names) == sorted(f"f{f}-i{i}-d5" for f in range(1, 25) for i in range(1, 6))


def test_ranges_choose_functions_instances_and_dimensions() -> None:
    pytest.importorskip("ioh")
    suite = _suite("bbob", functions="2,4-5", instances=[8], dimension="10,20")
    names = {identity.name for identity in suite.identities(3)}
    assert names == {f"f{f}-i8-d{d}" for f in (2, 4, 5) for d in (10, 20)}


def test_an_identity_says_what_is_in_its_name() -> None:
    for identity in BbobSuite("sbox", [2, 3], [4, 5], [6, 7]).identities(0):
        values = dict(identity.parameters)
        assert identity.name == f"f{values['function']}-i{values['instance']}-d{values['dimension']}"
        assert values["suite"] == "sbox"


def test_the_seed_decides_the_order() -> None:
    orders = {seed: [identity.name for identity in BbobSuite("bbob").identities(seed)] for seed in (1, 2)}
    assert orders[1] != orders[2]
    assert sorted(orders[1]) == sorted(orders[2])


def test_the_problem_built_is_the_one_named() -> None:
    pytest.importorskip("ioh")
    suite = BbobSuite("sbox", [2, 9], [4, 5], [3])
    for identity in suite.identities(0):
        values = identity.parameters
        reference = _reference("sbox", values["function"], values["instance"], 3)
        built = suite.build(identity)
        assert built.evaluate([1, 2, 3]) == pytest.approx(reference([1, 2, 3]) - reference.optimum.y)  # type: ignore[attr-defined]


def test_outside_the_box_sbox_is_infinite_and_bbob_is_not() -> None:
    for function in (1, 5, 24):
        assert _problem("sbox", function, 1, 2).evaluate([0, 5.001]) == math.inf
        assert math.isfinite(_problem("sbox", function, 1, 2).evaluate([-5, 5]))
        assert math.isfinite(_problem("bbob", function, 1, 2).evaluate([0, 7]))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_point_that_is_not_finite_is_nan_and_not_the_value_before(bad: float) -> None:
    for name in ("bbob", "sbox"):
        problem = _problem(name, 3, 1, 2)
        before = problem.evaluate([1, 2])
        assert math.isnan(problem.evaluate([1, bad]))
        assert problem.evaluate([1, 2]) == before


@pytest.mark.parametrize("x", [[1.0], [1.0] * 3, 1.0, [[1.0, 2.0]]])
def test_a_point_of_another_dimension_is_refused(x: object) -> None:
    with pytest.raises(InvalidInputError, match="p: expected 2 numbers"):
        _problem("bbob", 1, 1, 2).evaluate(x)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"function": 1}, r"The suite 'bbob' has no option 'function'\. It takes functions, instances, dimension\."),
        ({"functions": "0-3"}, "functions must lie between 1 and 24"),
        ({"functions": "1-25"}, "functions must lie between 1 and 24"),
        ({"instances": "0"}, "instances must lie between 1 and 200000"),
        ({"dimension": "1"}, "dimension must lie between 2 and 10000"),
        ({"dimension": "large"}, "dimension must be whole numbers"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        _suite("bbob", **options)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "was not drawn by 'bbob'"),
        ({"suite": "sbox", "function": 1, "instance": 1, "dimension": 2}, "was not drawn by 'bbob'"),
        ({"suite": "bbob", "function": 25, "instance": 1, "dimension": 2}, "function must be"),
        ({"suite": "bbob", "function": 1, "dimension": 2}, "instance must be"),
    ],
)
def test_an_identity_of_somebody_else_is_refused(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        BbobSuite("bbob").build(Identity("foreign", parameters))


def test_names_of_others_are_left_to_them() -> None:
    assert module.polarbear_suite("ma-bbob", {}) is None


@pytest.mark.parametrize("name", ["bbob", "sbox"])
def test_without_ioh_the_extra_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ioh", None)
    with pytest.raises(MissingExtraError, match=rf"The suite '{name}' needs 'ioh'.*polarbear-plugins\[ioh\]"):
        _suite(name)
